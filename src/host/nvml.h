/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml: asking the driver's management library, in a child process without privileges (docs/decisions/0005-nvml.md).
 * The library is the driver's code: it runs in the child alone, and what the child says is parsed like any other
 * untrusted input. One question, one answer: the child writes a snapshot and ends.
 */
#ifndef GRAFT_HOST_NVML_H
#define GRAFT_HOST_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/record.h"

#define GRAFT_NVML_GPUS_MAX 256u
#define GRAFT_NVML_MIGS_MAX 64u
#define GRAFT_NVML_TEXT_MAX 256u

struct graft_nvml_mig {
	uint32_t gi, ci;
	const char *uuid;
	const char *name; /* "NVIDIA A100-SXM4-40GB MIG 1g.5gb" */
};

/* Facts that NVML would not tell are NULL, or 0 with the `has_` bit unset. */
struct graft_nvml_gpu {
	uint32_t index;
	bool has_minor, has_brand, has_arch, has_addressing;
	uint32_t minor;
	uint32_t brand; /* NVML's number */
	uint32_t arch_major, arch_minor;
	uint32_t addressing; /* NVML's number: 0 none, 1 HMM, 2 ATS */
	const char *bus_id;  /* "00000000:1b:00.0" */
	const char *uuid, *model;
	bool mig_capable, mig_enabled;
	struct graft_nvml_mig *migs;
	size_t n_migs;
};

/* What the child says. With `failure` set nothing else counts. */
struct graft_nvml_snapshot {
	const char *failure; /* "nvml error: driver not loaded", "change root failed", ... */
	uint32_t code;       /* NVML's return value, 0 when it was not NVML that failed */
	uint32_t sys;        /* errno, or 0 */
	bool no_library;     /* the library could not be loaded */
	const char *driver_version;
	uint32_t cuda_version; /* 12040 is 12.4; 0 = unknown */
	struct graft_nvml_gpu *gpus;
	size_t n_gpus;
	const char **notes; /* what went wrong on the way, for the log */
	size_t n_notes;
};
extern const struct graft_record graft_nvml_snapshot_record;

struct graft_nvml_question {
	const char *root;    /* the child's root directory, "/" for none of its own */
	const char *library; /* path of the library below that root */
	unsigned int facts;  /* bits of enum graft_nvml_fact */
	/*
	 * `library` is libcuda, for hosts without NVML (Tegra): the answer has the CUDA version and, for GRAFT_NVML_ARCH, one GPU with the
	 * architecture of the first.
	 */
	bool cuda;
	uid_t uid; /* the child's identity */
	gid_t gid;
	int timeout_ms; /* 0 = none */
	const struct graft_log *log;
};

/*
 * Asks. Progress goes to the log every second. Errors: GRAFT_NO_LIBRARY, GRAFT_NO_DRIVER, GRAFT_MISMATCH, GRAFT_PERMISSION ("nvml error: ..."),
 * GRAFT_TIMEOUT, GRAFT_NVML for everything else, a child that crashes included. The child is always reaped.
 */
int graft_nvml_ask(const struct graft_nvml_question *question, struct graft_arena *arena,
		   struct graft_nvml_snapshot *ret_snapshot, struct graft_error *err);

/* The child's side (nvml_child.c): becomes nobody, loads the library, writes the snapshot to `out_fd`, ends. */
_Noreturn void graft_nvml_child(const struct graft_nvml_question *question, pid_t parent, int out_fd);

#endif
