/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml: asks the driver's management library in a child process without privileges
 * (docs/decisions/0005-nvml.md). The library is the driver's code: it runs only in the child, and
 * the child's output is parsed like any other untrusted input. One question, one answer: the child
 * writes a snapshot and exits.
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
/* The beginning of the log lines that report how long NVML takes. */
#define GRAFT_NVML_WAITING "waiting for NVML, which wakes the GPUs"
#define GRAFT_NVML_SONAME  "libnvidia-ml.so.1"

struct graft_nvml_mig {
	uint32_t gi, ci;
	const char *uuid;
	const char *name; /* "NVIDIA A100-SXM4-40GB MIG 1g.5gb" */
	bool has_size;    /* what follows is known */
	uint32_t memory_mib, multiprocessors;
	uint32_t gi_slices, ci_slices;
	uint32_t copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
};

/* NVLinks of a GPU that lead to one other device. */
struct graft_nvml_link {
	const char *bus_id; /* of the other device: a GPU, or a switch */
	uint32_t count;
};

/* Facts that NVML did not provide are NULL, or 0 with the `has_` member false. */
struct graft_nvml_gpu {
	uint32_t index;
	bool has_minor, has_brand, has_arch, has_addressing, has_memory;
	uint32_t minor;
	uint32_t brand; /* NVML's number */
	uint32_t arch_major, arch_minor;
	uint32_t addressing; /* NVML's number: 0 none, 1 HMM, 2 ATS */
	const char *bus_id;  /* "00000000:1b:00.0" */
	const char *uuid, *model;
	uint32_t memory_mib;
	const char *clique; /* "UUID.NUMBER" of its NVLink domain and clique; NULL: in none */
	bool mig_capable, mig_enabled;
	struct graft_nvml_mig *migs;
	size_t n_migs;
	struct graft_nvml_link *links; /* active ones */
	size_t n_links;
};

/* The child's answer. If `failure` is set, ignore everything else. */
struct graft_nvml_snapshot {
	const char *failure; /* "nvml error: driver not loaded", "change root failed", ... */
	uint32_t code;       /* NVML's return value; 0 if something other than NVML failed */
	uint32_t sys;        /* errno, or 0 */
	bool no_library;     /* the library could not be loaded */
	const char *driver_version;
	uint32_t cuda_version; /* 12040 is 12.4; 0 = unknown */
	struct graft_nvml_gpu *gpus;
	size_t n_gpus;
	const char **notes; /* what went wrong on the way, for the log */
	size_t n_notes;
	const char **unsettled; /* which answers may change, and why */
	size_t n_unsettled;
};
extern const struct graft_record graft_nvml_snapshot_record, graft_nvml_link_record;

struct graft_nvml_question {
	const char *root;    /* the child's root directory; "/" = do not change it */
	const char *library; /* path of the library below that root */
	unsigned int facts;  /* bits of enum graft_nvml_fact */
	/*
	 * `library` is libcuda, for hosts without NVML (Tegra): the answer has the CUDA version
	 * and, for GRAFT_NVML_ARCH and GRAFT_NVML_SIZE, one GPU with the architecture of the first,
	 * or with its name and memory.
	 */
	bool cuda;
	/*
	 * Do not answer, but report what happens to these GPUs, line by line (nvml_events.c), until
	 * the child is ended.
	 */
	const char *const *watched; /* PCI addresses; NULL: answer */
	size_t n_watched;
	uid_t uid; /* the child's identity */
	gid_t gid;
	int timeout_ms; /* 0 = none */
	const struct graft_log *log;
};

/*
 * Asks NVML. Progress goes to the log every second. Strings are in the arena. Returns -1 with
 * GRAFT_NO_LIBRARY, GRAFT_NO_DRIVER, GRAFT_MISMATCH or GRAFT_PERMISSION ("nvml error: ..."),
 * GRAFT_TIMEOUT, GRAFT_NO_MEMORY, or GRAFT_NVML for everything else, including a child that
 * crashes. Kills a child that does not exit, and does not wait for it indefinitely.
 */
int graft_nvml_ask(const struct graft_nvml_question *question, struct graft_arena *arena,
		   struct graft_nvml_snapshot *ret_snapshot, struct graft_error *err);

/*
 * Starts a child for the question. *ret_fd is the end of a pipe from which its answer is read.
 * Returns -1 if that is impossible. The caller reaps the child.
 */
int graft_nvml_start(const struct graft_nvml_question *question, pid_t *ret_pid, int *ret_fd, struct graft_error *err);

/*
 * Returns whether a text from the driver's code may be shown to people and written to files: it is
 * printable, not empty and shorter than GRAFT_NVML_TEXT_MAX.
 */
bool graft_nvml_text_is_valid(const char *text);

/*
 * Runs the child's side (nvml_child.c): drops privileges, loads the library, writes the snapshot to
 * `out_fd` and exits.
 */
_Noreturn void graft_nvml_child(const struct graft_nvml_question *question, pid_t parent, int out_fd);

#endif
