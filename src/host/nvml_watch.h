/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_watch: what happens to GPUs, as NVML reports it, from an unprivileged child process that
 * lives until it is ended (host/nvml.h describes how it is confined). NVML keeps the GPUs awake
 * meanwhile. The child's lines are untrusted input.
 */
#ifndef GRAFT_HOST_NVML_WATCH_H
#define GRAFT_HOST_NVML_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "host/nvml.h"

/* A child that has lost a GPU ends after this time; its successor asks whether the GPU is back. */
#define GRAFT_NVML_LOST_ANEW_MS 10000

struct graft_nvml_watch {
	pid_t pid; /* 0: there is none */
	int fd;    /* non-blocking; at its end the child has ended */
};

enum graft_nvml_report_kind {
	GRAFT_NVML_REPORT_XID,
	GRAFT_NVML_REPORT_LOST,    /* does not answer */
	GRAFT_NVML_REPORT_ANSWERS, /* answers; reported once for each GPU at the beginning */
	GRAFT_NVML_REPORT_FAILURE, /* NVML cannot be asked, or no longer */
};

struct graft_nvml_report {
	enum graft_nvml_report_kind kind;
	char text[GRAFT_NVML_TEXT_MAX]; /* the PCI address, or the reason of a failure */
	uint32_t xid;
	bool has_instance; /* the Xid concerns one MIG device */
	uint32_t gi, ci;
};

/*
 * Starts the child, which watches all GPUs of the inventory that are not excluded. Returns 0, or -1
 * with GRAFT_NO_LIBRARY, or if no process can be created. The caller reaps the child.
 */
int graft_nvml_watch_begin(const struct graft_host_options *options, const struct graft_inventory *inventory,
			   struct graft_nvml_watch *ret_watch, struct graft_error *err);
/*
 * Closes the descriptor and, with `kill_child`, kills the child. Does not wait for it. `pid` is
 * kept.
 */
void graft_nvml_watch_end(struct graft_nvml_watch *watch, bool kill_child);
/* Reads one line of the child. Returns false if it is not a report. */
bool graft_nvml_report_parse(const char *line, struct graft_nvml_report *ret_report);

/*
 * The child's side (nvml_events.c): reports to `out_fd` until it ends. `library` is NVML's handle
 * from dlopen(3).
 */
_Noreturn void graft_nvml_events(const struct graft_nvml_question *question, void *library, int out_fd);
/* Reports that NVML cannot be asked, and ends. */
_Noreturn void graft_nvml_events_fail(int out_fd, const char *why);

#endif
