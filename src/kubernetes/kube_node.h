/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_node: reads this node's facts once, and makes from them everything that the device plugin
 * serves. NVML is asked only for facts that the kernel driver does not report (UUIDs of MIG
 * devices), and once per boot (kubernetes/kube_facts.h).
 */
#ifndef GRAFT_KUBERNETES_KUBE_NODE_H
#define GRAFT_KUBERNETES_KUBE_NODE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "host/inventory.h"
#include "host/pci_tree.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_devices.h"
#include "kubernetes/kube_facts.h"

struct graft_kube_node_facts {
	struct graft_inventory *inventory; /* owned */
	struct graft_pci_tree tree;
	struct graft_kube_offer offer;
	const char **migs; /* MIG devices that the kernel shows, one text each, if they matter */
	size_t n_migs;
	bool watch_migs;   /* MIG devices matter, and there are GPUs */
	bool unsettled;    /* NVML's answer is preliminary */
	int64_t wait_s;    /* delay before NVML is asked again; -1: it was asked often enough */
	bool failed;       /* the host could not be read, and `fail_on_init_error` is off */
	const char *state; /* describes the offer and its reasons: equal texts mean equal offers */
};

/* The question to NVML while a node is read. */
struct graft_kube_node_question {
	struct graft_kube_question nvml;
	struct graft_kept_facts kept; /* the answer */
	bool needed;                  /* nothing can be offered without an answer */
};

/*
 * Reads the host: the driver as this process sees it, at the container driver root if that is
 * there, else at the driver root. A host without a driver has no devices: it is an error only with
 * `fail_on_init_error`. Everything but the inventory belongs to the arena; *ret_facts must be
 * released with graft_kube_node_done(), after a failure too. Returns 0, or -1 with the errors of
 * graft_host_discover(), graft_kube_facts() and graft_kube_offer().
 */
int graft_kube_node_read(const struct graft_kube_config *config, enum graft_kube_ask ask, const struct graft_log *log,
			 struct graft_arena *arena, struct graft_kube_node_facts *ret_facts, struct graft_error *err);
/*
 * The same without waiting for NVML. Returns 1 if another process asks it: call
 * graft_kube_node_end() when `nvml` of *ret_question has been read (kubernetes/kube_question.h).
 * The arguments must live until then, or until graft_kube_question_done().
 */
int graft_kube_node_begin(const struct graft_kube_config *config, enum graft_kube_ask ask, const struct graft_log *log,
			  struct graft_arena *arena, struct graft_kube_node_facts *ret_facts,
			  struct graft_kube_node_question *ret_question, struct graft_error *err);
/* Reads the rest. Returns like graft_kube_node_read(). */
int graft_kube_node_end(const struct graft_kube_config *config, const struct graft_log *log, struct graft_arena *arena,
			struct graft_kube_node_facts *facts, struct graft_kube_node_question *question,
			struct graft_error *err);
void graft_kube_node_done(struct graft_kube_node_facts *facts);

/*
 * Returns whether MIG devices were made or removed since the node was read. No event reports that,
 * so the kernel's list of them is read, which wakes no GPU. A GPU that has disappeared or cannot be
 * read does not count as a change.
 */
bool graft_kube_node_has_other_migs(const struct graft_kube_config *config, const struct graft_kube_node_facts *facts);
/* Returns whether the driver has a GPU that it did not have when the node was read. */
bool graft_kube_node_has_more_gpus(const struct graft_kube_config *config, const struct graft_kube_node_facts *facts);
/*
 * Adds to the inventory those of the driver's common device nodes (kube_allocate.h) that have
 * appeared since the node was read. Returns whether there were any. Costs nothing if none was
 * missing.
 */
bool graft_kube_node_find_nodes(const struct graft_kube_config *config, struct graft_kube_node_facts *facts);

/*
 * Appends what --once prints, as JSON: the resources with their devices and, for each resource, the
 * answer to a request for its first device.
 */
int graft_kube_node_report(const struct graft_kube_config *config, const struct graft_kube_node_facts *facts,
			   struct graft_buffer *out, struct graft_error *err);

#endif
