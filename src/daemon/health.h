/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health: which GPUs have failed, without waking a GPU (SPEC kubernetes 6.8): from what the driver
 * writes to the kernel log, and from the presence of a GPU's PCI device, its directory in procfs
 * and its device node.
 *
 * The log of this boot is read from its beginning, so that a restarted plugin knows what its
 * predecessor knew. The log does not always say how a fault ended; a file records observed
 * recoveries (daemon/health_file.h). A fault lasts until it is known to have ended.
 */
#ifndef GRAFT_DAEMON_HEALTH_H
#define GRAFT_DAEMON_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "formats/xid.h"
#include "host/inventory.h"
#include "host/nvml_watch.h"
#include "rpc/loop.h"

#define HEALTH_MAX_FAULTS 256 /* when there are more, every GPU counts as failed */
#define HEALTH_MAX_GPUS   256 /* whose presence is checked */

/* Why a GPU is unhealthy: name in metrics, text in the log. */
#define HEALTH_CAUSE_LIST(X)                                               \
	X(XID, "xid", "Xid")                                               \
	X(PCI, "pci-device", "its PCI device is gone, or does not answer") \
	X(DRIVER, "driver", "the driver does not list it")                 \
	X(NODE, "device-node", "its device node is gone")                  \
	X(NVML, "nvml", "it does not answer NVML")                         \
	X(TABLE, "too-many", "more GPUs have failed than can be remembered")
/* How a fault ends. */
#define HEALTH_END_LIST(X)                                          \
	X(RESET, "reset", "the driver no longer needs to reset it") \
	X(LOADED, "loaded", "the driver was loaded again")          \
	X(FOUND, "found", "the kernel has found it again")          \
	X(BOUND, "bound", "the driver lists it again")              \
	X(RETURNED, "returned", "it is back")                       \
	X(CLEARED, "administrator", "cleared by the administrator") \
	X(UNCHECKED, "configuration", "no longer checked")

#define HEALTH_ENUM(name, word, text) HEALTH_##name,
enum health_cause { HEALTH_CAUSE_LIST(HEALTH_ENUM) HEALTH_CAUSES };
enum health_end { HEALTH_END_LIST(HEALTH_ENUM) HEALTH_ENDS };
/* Their names in metrics. */
extern const char *const health_cause_names[HEALTH_CAUSES], *const health_end_names[HEALTH_ENDS];

/*
 * Identifies one binding of the driver to a GPU, by the inode numbers of its link in sysfs (reused
 * cyclically) and of its directory in procfs (may be reused). 0 = not bound.
 */
struct health_place {
	uint64_t bound, procfs;
};

struct health_fault {
	enum health_cause cause;
	struct graft_xid_line line; /* for causes other than XID, only the GPU */
	struct health_place place;  /* when it failed */
};

/* What the log reports about one GPU up to this record is over. */
struct health_mark {
	struct graft_xid_line gpu;
	uint64_t sequence;
};

/* A GPU of the inventory: which parts of it were present. */
struct health_gpu {
	bool had_pci, had_procfs, had_node;
};

struct health_options {
	struct graft_loop *loop;
	const struct graft_log *log;
	const char *kernel_log;   /* path: /dev/kmsg, or a FIFO or file that stands in for it; NULL: it is not read */
	const char *state_folder; /* of the file of daemon/health_file.h; NULL: nothing is kept */
	const char *sys_root;     /* prefix of /sys; "" for "/" */
	void (*changed)(void *arg);
	void (*loaded)(void *arg); /* may be set after health_begin(): the driver was loaded, or a GPU recovered */
	void *arg;
};

struct health {
	struct health_options options; /* loop NULL: it has not begun */
	struct graft_xid_rules rules;
	const struct graft_inventory *inventory; /* borrowed; NULL: none yet */
	struct health_gpu gpus[HEALTH_MAX_GPUS]; /* as in the inventory */
	struct graft_loop_watch watch;           /* of the log, or of changes of the file that stands in for it */
	int log_fd;                              /* -1: not read */
	bool numbered, counted;                  /* how records get their numbers: from the kernel, or by counting */
	uint64_t sequence;                       /* of the last record */
	char line[1024];                         /* read so far */
	size_t n_line;
	struct health_fault faults[HEALTH_MAX_FAULTS];
	size_t n_faults;
	bool flooded;                                /* every GPU counts as failed */
	struct health_mark marks[HEALTH_MAX_FAULTS]; /* the oldest first */
	size_t n_marks;
	struct health_fault known[HEALTH_MAX_FAULTS]; /* by the predecessor */
	size_t n_known;
	struct graft_loop_timer look; /* while there are faults */
	uint64_t n_nvml_xids;         /* that NVML has reported, whether they matter or not */
	uint64_t n_xids;              /* seen, whether they matter or not */
	uint64_t n_changes;           /* all of the following */
	uint64_t n_began[HEALTH_CAUSES], n_ended[HEALTH_ENDS];
};

/*
 * Begins to read the log. `changed` is called when a GPU fails or recovers. An unreadable log
 * causes a warning, and is not checked. Paths are borrowed until this returns, the rest until
 * health_done().
 */
void health_begin(struct health *health, const struct health_options *options);
/* Sets what has changed with a new configuration. The inventory is borrowed until the next call. */
void health_configure(struct health *health, const struct graft_xid_rules *rules,
		      const struct graft_inventory *inventory);
/* Checks the presence of the GPUs: the hardware has changed. */
void health_look(struct health *health);
/*
 * Forgets what the log has reported so far about the GPU at `bus_id`, "00000000:3b:00.0", or with
 * NULL about all GPUs. Returns whether there was a fault.
 */
bool health_clear(struct health *health, const char *bus_id);
/* Takes a report of NVML: an Xid, unless the log has it too; or that a GPU answers, or does not. */
void health_take_report(struct health *health, const struct graft_nvml_report *report);
/* Forgets what NVML reported, because it is no longer queried. */
void health_forget_nvml(struct health *health);
/* Closes the log. */
void health_done(struct health *health);

/*
 * Returns the fault of a GPU or of its MIG device `mig`, or NULL. A fault of the GPU affects all
 * its MIG devices, a fault of a MIG device only that one. A device without `bus_id` has none.
 */
const struct health_fault *health_find(const struct health *health, const char *bus_id, bool mig, uint32_t gi,
				       uint32_t ci);

#endif
