/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xid: what the kernel log reports about GPUs, line by line, and which of it makes a GPU unhealthy
 * (SPEC kubernetes 6.8). Pure.
 */
#ifndef GRAFT_FORMATS_XID_H
#define GRAFT_FORMATS_XID_H

#include <stdbool.h>
#include <stdint.h>

#define GRAFT_XID_RECOVERY 154  /* the GPU needs a reset or another action, or no longer; the log says which */
#define GRAFT_XID_MAX      1024 /* numbers below this are distinguished; larger ones count as faults */

enum graft_xid_kind {
	GRAFT_XID_NOTHING,
	GRAFT_XID_FAULT,     /* of one GPU */
	GRAFT_XID_RECOVERED, /* one GPU no longer needs a reset */
	GRAFT_XID_LOADED,    /* the driver was loaded: all GPUs start without faults */
	GRAFT_XID_FOUND,     /* the kernel has found one PCI device of NVIDIA, at boot or after it was away */
};

struct graft_xid_line {
	enum graft_xid_kind kind;
	uint32_t domain, bus, device; /* of the GPU */
	bool has_instance;            /* of a MIG device alone */
	uint32_t gi, ci;
	uint32_t number;
	uint64_t sequence; /* of the record of /dev/kmsg; 0: the line has no such prefix */
};

/*
 * Reads one line, with or without the prefix of /dev/kmsg. SECURITY: what a process has written to
 * the log is not a message of the kernel, and is ignored.
 */
struct graft_xid_line graft_xid_parse(const char *line);

/* Which numbers are ignored. */
struct graft_xid_rules {
	bool none; /* ignore all but those of `enabled` */
	uint64_t ignored[GRAFT_XID_MAX / 64];
	uint64_t enabled[GRAFT_XID_MAX / 64];
};

/*
 * Makes the rules of two lists: numbers, separated by commas, "all" or "xids". Application errors
 * and numbers in `disable` are ignored; numbers in `enable` count in any case. Words that are not
 * numbers are skipped.
 */
struct graft_xid_rules graft_xid_rules_make(const char *disable, const char *enable);
/* Returns whether a fault of that number makes its GPU unhealthy. */
bool graft_xid_matters(const struct graft_xid_rules *rules, uint32_t number);
/* Returns whether any fault does. */
bool graft_xid_any_matters(const struct graft_xid_rules *rules);

/* Returns whether `bus_id`, "00000000:3b:00.0", is the GPU of the line. */
bool graft_xid_is_of(const struct graft_xid_line *line, const char *bus_id);
/* Returns whether both lines concern the same GPU. */
bool graft_xid_is_same_gpu(const struct graft_xid_line *a, const struct graft_xid_line *b);
/* The same, and the same MIG device of it, or both the GPU as a whole. */
bool graft_xid_is_same_device(const struct graft_xid_line *a, const struct graft_xid_line *b);

#endif
