/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_facts: facts of a host that are expensive to get: NVML wakes the GPUs, and so does reading
 * their PCI configuration space. They are collected once per boot and kept in a small file, which
 * the programs that need them share (docs/feature-discovery.md).
 *
 * The file also identifies the host: boot, driver, and the GPUs and MIG devices that the kernel
 * driver shows. If one of these has changed, the file is ignored.
 */
#ifndef GRAFT_HOST_KEPT_FACTS_H
#define GRAFT_HOST_KEPT_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/record.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "host/nvml.h"

#define GRAFT_KEPT_FILE    "/run/graft/facts.json"
#define GRAFT_KEPT_VERSION 3u

/*
 * NVML answers before everything is ready: the fabric, the links, a switch of the MIG mode, all
 * GPUs. Such an answer is kept but marked, and NVML is asked again: after 10 s, then after twice as
 * long each time, at most ten minutes, and eight times in all.
 */
#define GRAFT_KEPT_FIRST_S 10
#define GRAFT_KEPT_LAST_S  600
#define GRAFT_KEPT_ASKS    8u

/* A GPU that a hypervisor has made, and what that reported about its own driver. */
struct graft_kept_vgpu {
	const char *bus_id;
	const char *host_driver_version, *host_driver_branch;
};

struct graft_kept_facts {
	uint32_t version; /* GRAFT_KEPT_VERSION */
	const char *boot_id, *driver_version;
	const char **devices; /* GPUs and MIG devices that the kernel driver shows, one text each */
	size_t n_devices;
	struct graft_nvml_snapshot nvml; /* every fact of enum graft_nvml_fact; `unsettled`: it is preliminary */
	uint32_t n_asked;                /* how often, in a row, without a final answer */
	uint32_t asked_s;                /* when, in seconds of graft_clock_ms() */
	struct graft_kept_vgpu *vgpus;
	size_t n_vgpus;
};
extern const struct graft_record graft_kept_facts_record;

/*
 * Identifies the host: fills all members but `nvml` and `vgpus`, from an inventory that NVML has
 * not completed, and from the kernel below `options->host_root`. Strings are in the arena. Returns
 * 0, or -1 with GRAFT_NO_MEMORY, or if a root cannot be opened.
 */
int graft_kept_identify(const struct graft_host_options *options, const struct graft_inventory *inventory,
			struct graft_arena *arena, struct graft_kept_facts *ret_facts, struct graft_error *err);

/*
 * Reads kept facts. Returns 1, with everything in `facts`, if the text is complete and describes
 * the host that `facts` identifies; 0 if not, with the reason in the log. -1: GRAFT_NO_MEMORY.
 */
int graft_kept_parse(const char *text, size_t length, const struct graft_log *log, struct graft_arena *arena,
		     struct graft_kept_facts *facts, struct graft_error *err);
/* Appends the text that graft_kept_parse() reads. */
void graft_kept_write(const struct graft_kept_facts *facts, struct graft_buffer *out);

/*
 * Asks for everything: NVML, or on a board without NVML libcuda, in the child of host/nvml.h, and
 * PCI devices. Fills `nvml` and `vgpus`. GPUs and MIG devices of the inventory that the answer
 * lacks make it preliminary. Returns 0, or -1 with the errors of graft_nvml_ask(), or
 * GRAFT_NO_LIBRARY if there is no library to ask.
 */
int graft_kept_ask(const struct graft_host_options *options, const struct graft_inventory *inventory,
		   struct graft_arena *arena, struct graft_kept_facts *facts, struct graft_error *err);

/*
 * Returns how many seconds after `now_s` to ask for the facts again; 0: now; -1: never, because
 * they are final or were asked for often enough.
 */
int64_t graft_kept_wait_s(const struct graft_kept_facts *facts, int64_t now_s);

/*
 * Fills in what the inventory lacks, as graft_host_complete() does. Returns 0, or -1 with
 * GRAFT_NO_MEMORY.
 */
int graft_kept_complete(const struct graft_kept_facts *facts, const struct graft_log *log,
			struct graft_inventory *inventory, struct graft_error *err);

#endif
