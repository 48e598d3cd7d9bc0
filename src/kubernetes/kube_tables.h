/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_tables: the keys of the config file, as tables that reading and writing share. Only for
 * src/kubernetes.
 */
#ifndef GRAFT_KUBERNETES_KUBE_TABLES_H
#define GRAFT_KUBERNETES_KUBE_TABLES_H

#include "formats/record.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "kubernetes/kube_config.h"

extern const struct graft_record kube_config_record, kube_flags_record, kube_sharing_record, kube_replication_record,
    kube_shared_resource_record;

#define KUBE_GPU_RESOURCE GRAFT_KUBE_PREFIX "gpu"

/* SPEC kubernetes 6.2 */
#define KUBE_CDI_NEEDS_NVML "CDI --device-list-strategy options are only supported on NVML-based systems"

/* The value of one of the n words, from 0; -1 for any other text. */
int kube_find_word(const char *const *words, size_t n, const char *text);
/* Makes the text "none, single, mixed" in `buffer`, cut if it is too long. Returns `buffer`. */
const char *kube_list_words(const char *const *words, size_t n, char *buffer, size_t size);

/*
 * Takes the next item, without blanks around it, from the front of the comma-separated `*list`. It
 * may be empty. Returns its length.
 */
size_t kube_take_item(const char **list, const char **ret_item);
/*
 * Sets the bits of a comma-separated list of words; empty words are ignored. Returns NULL, or the
 * first word that is not known, in the arena ("" if that is exhausted).
 */
const char *kube_read_bits(const char *text, const char *const *words, size_t n, struct graft_arena *arena,
			   uint32_t *ret_bits);
/* Returns whether `text` is "0", "0:1" or a UUID: what may stand for a shared device. */
bool kube_is_device_word(const char *text);
/* Returns whether this host has that device node of the driver. */
bool kube_has_node(const struct graft_inventory *inventory, const char *path);
/* Returns whether this host has IMEX channel 0. */
bool kube_has_channel_node(const struct graft_inventory *inventory);
/*
 * Returns whether containers get IMEX channel 0: it is configured, and this host has it. A channel
 * that is not required is left out if the host lacks it.
 */
bool kube_has_channel(const struct graft_kube_config *config, const struct graft_inventory *inventory);
/* How to read this node's driver. */
struct graft_host_options kube_host_options(const struct graft_kube_flags *flags, const struct graft_log *log);

/*
 * Returns whether this is a board whose own GPU is offered, as the configuration or the platform
 * says. It has no UUID; containers get it by the lists of the board.
 */
bool kube_is_board(const struct graft_kube_config *config, const struct graft_inventory *inventory);
/*
 * Returns the rule by which a device is shared, the `place`th of `resource`, with this index ("0",
 * "0:1") and UUID: the first one that includes it. NULL: it is not shared. `replication` may be
 * NULL.
 */
const struct graft_kube_shared_resource *kube_find_sharing(const struct graft_kube_replication *replication,
							   const char *resource, const char *index, const char *id,
							   size_t place);
/*
 * Returns the resource that the rule's replicas belong to, in the arena if it is made; NULL: out of
 * memory.
 */
const char *kube_name_shared(const struct graft_kube_replication *replication,
			     const struct graft_kube_shared_resource *shared, struct graft_arena *arena);
/* Returns "nvidia.com/mig-1g.10gb.me" for "1g.10gb+me", in the arena; NULL: out of memory. */
const char *kube_name_mig(const char *profile, struct graft_arena *arena);

/* Returns the resource name with its prefix, in the arena; NULL: out of memory. */
const char *kube_full_name(const char *name, struct graft_arena *arena);

#endif
