/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_labels: the labels of a node (SPEC kubernetes 8.2), from the facts about it. Pure: the same
 * input gives the same labels, in the same order.
 */
#ifndef GRAFT_KUBERNETES_KUBE_LABELS_H
#define GRAFT_KUBERNETES_KUBE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "host/inventory.h"
#include "host/kept_facts.h"
#include "host/pci_tree.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_facts.h"

/* The input of the labels. */
struct graft_kube_label_facts {
	const struct graft_inventory *inventory; /* completed by `kept` */
	const struct graft_kept_facts *kept;     /* NULL: no fact that is expensive to get is known */
	const struct graft_pci_tree *tree;       /* NULL: not known */
	const char *machine_type;                /* text of the machine type file; NULL: it cannot be read */
	int64_t timestamp;                       /* seconds since 1970, for the label with the time; 0: no such label */
};

struct graft_kube_label {
	const char *name, *value;
};

/* By name; each name once. */
struct graft_kube_labels {
	struct graft_kube_label *items;
	size_t n_items;
};

/*
 * Makes the labels. Values have the form that Kubernetes requires: at most 63 characters of
 * "A-Za-z0-9-_.", the first and the last a letter or digit. Unknown facts have no label. Reports to
 * `log` what labels cannot express: several models, MIG devices that `single` does not allow.
 * Strings are in the arena. Returns 0, or -1 with GRAFT_INVALID if MPS is configured and a GPU is
 * in MIG mode, or GRAFT_NO_MEMORY.
 */
int graft_kube_labels(const struct graft_kube_config *config, const struct graft_kube_label_facts *facts,
		      const struct graft_log *log, struct graft_arena *arena, struct graft_kube_labels *ret_labels,
		      struct graft_error *err);

/*
 * Reads this node and makes its labels (kube_label_node.c); NVML is asked once per boot, unless
 * `ask` or its answer requires more. Without `fail_on_init_error`, a driver whose NVML does not
 * answer has the labels that follow from the kernel's facts. *ret_look_again: there is something
 * that changes without an event: a GPU in MIG mode, or a driver whose NVML does not answer or only
 * preliminarily. Returns 0, or -1 with the errors of graft_host_discover(), graft_kube_facts() and
 * graft_kube_labels().
 */
int graft_kube_label_node(const struct graft_kube_config *config, int64_t timestamp, enum graft_kube_ask ask,
			  const struct graft_log *log, struct graft_arena *arena, struct graft_kube_labels *ret_labels,
			  bool *ret_look_again, struct graft_error *err);

/* Sorts labels by name. */
void graft_kube_labels_sort(struct graft_kube_labels *labels);
/* Appends the labels in the format of NFD's local source: a line "NAME=VALUE" for each. */
void graft_kube_labels_write(const struct graft_kube_labels *labels, struct graft_buffer *out);

#endif
