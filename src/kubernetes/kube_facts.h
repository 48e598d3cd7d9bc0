/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_facts: completes the facts about this node with those that are kept for a boot
 * (host/kept_facts.h), and asks for them if none are kept.
 */
#ifndef GRAFT_KUBERNETES_KUBE_FACTS_H
#define GRAFT_KUBERNETES_KUBE_FACTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "host/kept_facts.h"
#include "host/nvml_watch.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_question.h"

/*
 * Where the driver is, as this process sees it: at the container driver root, if that is mounted;
 * on the host itself at the driver root; in a container that was given the driver's files, at "/".
 */
const char *graft_kube_driver_root(const struct graft_kube_flags *flags);

/*
 * Returns whether the driver of this host is the simulated one, which has a kernel log of its own.
 */
bool graft_kube_is_simulated(const struct graft_kube_flags *flags);

/*
 * Starts a child that watches the GPUs of the inventory through NVML, as graft_nvml_watch_begin()
 * does.
 */
int graft_kube_watch_nvml(const struct graft_kube_flags *flags, const struct graft_log *log,
			  const struct graft_inventory *inventory, struct graft_nvml_watch *ret_watch,
			  struct graft_error *err);

/* When to ask NVML although it has answered in this boot. */
enum graft_kube_ask {
	GRAFT_KUBE_ASK_UNSETTLED, /* if its answer was preliminary, and it is time to ask again */
	GRAFT_KUBE_ASK_EVENT,     /* the same, but after an event, which shortens the delays again */
	GRAFT_KUBE_ASK_ANEW,      /* always */
};

/*
 * Fills in what `inventory` lacks. The facts are those that `file` keeps (NULL: the usual file; of
 * a simulated host, one of its own), if they describe this host and `ask` permits that; otherwise
 * NVML is asked, and the answer is kept if possible. A preliminary answer stays if the next
 * question fails. *ret_facts is in the arena. Returns 0, or -1 with the errors of graft_kept_ask().
 */
int graft_kube_facts(const struct graft_host_options *options, const char *file, enum graft_kube_ask ask,
		     struct graft_inventory *inventory, struct graft_arena *arena, struct graft_kept_facts *ret_facts,
		     struct graft_error *err);
/*
 * The same without waiting for NVML. Returns 0 if it need not be asked; 1 if another process asks
 * it, in which case call graft_kube_facts_end() when *ret_question has been read; or -1.
 */
int graft_kube_facts_begin(const struct graft_host_options *options, const char *file, enum graft_kube_ask ask,
			   struct graft_inventory *inventory, struct graft_arena *arena,
			   struct graft_kept_facts *ret_facts, struct graft_kube_question *ret_question,
			   struct graft_error *err);
/*
 * Merges the answer into what graft_kube_facts_begin() has filled in. Returns like
 * graft_kube_facts().
 */
int graft_kube_facts_end(struct graft_kube_question *question, const struct graft_log *log,
			 struct graft_inventory *inventory, struct graft_arena *arena, struct graft_kept_facts *facts,
			 struct graft_error *err);

#endif
