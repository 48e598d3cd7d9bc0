/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request: what a container requests, parsed and validated as far as possible without the host.
 * Plain data with a JSON form. The planner decides what a device word means on this host
 * (plan/select.h).
 *
 * Invariant: selection fails closed. A word that is not understood is an error or remains an
 * UNKNOWN device, which no host has; it never widens the selection.
 */
#ifndef GRAFT_REQUEST_REQUEST_H
#define GRAFT_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "formats/record.h"
#include "host/capability.h"

#define GRAFT_REQUEST_VERSION    1u
#define GRAFT_REQUIREMENTS_MAX   32
#define GRAFT_IMEX_CHANNEL_LIMIT (1u << 20)

/* The forms of a device word (SPEC libnvidia-container 7.2). */
enum graft_device_kind {
	GRAFT_DEVICE_UNKNOWN,   /* kept so that the error can name it */
	GRAFT_DEVICE_ALL,       /* "all": every GPU and every MIG device; words after it are dropped */
	GRAFT_DEVICE_INDEX,     /* "0" */
	GRAFT_DEVICE_UUID,      /* "GPU-..." */
	GRAFT_DEVICE_PCI,       /* "0000:1b:00.0", "0:1b:0" */
	GRAFT_DEVICE_MIG_UUID,  /* "MIG-...", also the old MIG-GPU-<uuid>/gi/ci */
	GRAFT_DEVICE_MIG_INDEX, /* "0:1" */
};

struct graft_device_word {
	enum graft_device_kind kind;
	const char *text;   /* as given */
	uint32_t index;     /* INDEX; for MIG_INDEX the index of the GPU */
	uint32_t mig_index; /* MIG_INDEX */
	const char *bus_id; /* PCI: normalised, "0000001b:1c:00.0" ("%08x:%02x:%02x.0") */
	const char *uuid;   /* old MIG form: UUID of the GPU; else NULL */
	uint32_t gi, ci;    /* old MIG form (`uuid` is set); else 0 */
};
extern const char *const graft_device_kind_names[7]; /* by enum graft_device_kind */

enum graft_compat_mode { GRAFT_COMPAT_MOUNT, GRAFT_COMPAT_LDCONFIG, GRAFT_COMPAT_DISABLED };
extern const char *const graft_compat_mode_names[3];

struct graft_imex_channel {
	uint32_t id;
};

struct graft_request {
	uint32_t version; /* GRAFT_REQUEST_VERSION */
	struct graft_device_word *devices;
	size_t n_devices;
	uint32_t capabilities;     /* bits GRAFT_CAP_* */
	const char **requirements; /* expressions, evaluated lazily: request/requirement.h */
	size_t n_requirements;
	bool mig_config; /* "all" was given */
	bool mig_monitor;
	struct graft_imex_channel *imex_channels;
	size_t n_imex_channels;
	enum graft_compat_mode compat_mode;
	/*
	 * Set by graft_request_compat_mode(), to distinguish the default from a choice; not part of
	 * the JSON form
	 */
	bool compat_mode_given;
	/*
	 * Of the MPS daemon that serves the GPU, instead of those of the host; NULL = none, or, of
	 * `mps_shm`, the container's own
	 */
	const char *mps_pipe, *mps_shm;
	bool no_cgroups, no_devbind, no_persistenced, no_fabricmanager, no_gsp_firmware, no_mps;
	uint32_t gates; /* bits 1 << GRAFT_GATE_*; a host without them is not an error */
	/*
	 * Give every node of the driver instead of those of selected GPUs, to containers that
	 * manage all GPUs (SPEC ctk-and-cdi 4.8). Style OCI.
	 */
	bool management;
	bool all_imex_channels; /* every channel that the host has, in addition to those named */
	/* Also libraries that normally belong to an image: libGL.so, libOpenCL.so, ... */
	bool explicit_driver_libraries;
	/*
	 * "all" means what programs can run on, as in jit-cdi mode (SPEC runtime-and-hook 7.4): the
	 * MIG devices of a GPU in MIG mode instead of the GPU, and no GPU that only drives a
	 * display. Otherwise it means every GPU and every MIG device.
	 */
	bool all_usable;
	struct graft_arena *arena; /* owned; not part of the JSON form */
};

extern const struct graft_record graft_request_record;

/* Returns an empty request in its own arena, or NULL if memory is exhausted. */
struct graft_request *graft_request_new(void);
/* Frees a request and its arena; NULL is allowed. Returns NULL. */
struct graft_request *graft_request_free(struct graft_request *request);
/* Appends the JSON form; equal values give equal bytes. */
void graft_request_write(const struct graft_request *request, struct graft_buffer *out);
/*
 * Reads the JSON form back; the caller frees the request. Returns -1 with GRAFT_FORMAT,
 * GRAFT_TOO_BIG, GRAFT_UNSUPPORTED (another version) or GRAFT_NO_MEMORY, and then does not set
 * *ret_request.
 */
int graft_request_read(const char *json, size_t length, struct graft_request **ret_request, struct graft_error *err);

/*
 * The parsers below take the value of one option and add it to the request. They return -1 with
 * GRAFT_INVALID and exactly the messages of SPEC libnvidia-container 3.5, 3.6, 6.9, 7.3, or with
 * GRAFT_NO_MEMORY.
 */

/*
 * Adds a comma-separated list of devices; NULL and "" add nothing. Stops at "all". Words of no
 * known form are kept as UNKNOWN.
 */
int graft_request_devices(struct graft_request *request, const char *list, struct graft_error *err);
/*
 * Likewise, with the semantics of NVIDIA_VISIBLE_DEVICES: "none", "void" and "" add nothing.
 * *ret_void is true for "void" and "", but not for "none".
 */
int graft_request_visible_devices(struct graft_request *request, const char *value, bool *ret_void,
				  struct graft_error *err);
/*
 * Adds one requirement expression without evaluating it. Fails with "too many requirements" after
 * 32.
 */
int graft_request_requirement(struct graft_request *request, const char *expression, struct graft_error *err);
/*
 * Parses --mig-config and --mig-monitor: a comma-separated list in which only "all" is allowed:
 * "<item>: only 'all' devices are currently supported".
 */
int graft_request_mig(bool *flag, const char *list, struct graft_error *err);
/*
 * Parses --imex-channel: decimal ids below 2^20: "unsupported IMEX channel value: <item>".
 * Duplicates are kept.
 */
int graft_request_imex(struct graft_request *request, const char *list, struct graft_error *err);
/*
 * Adds an IMEX channel that a container names: "5", "channel5", or "all" for those that the host
 * has; decimal, below 2^20 (SPEC runtime-and-hook 7.11). Duplicates are dropped. Returns -1 with
 * GRAFT_INVALID "invalid channel ID <word>: ..." or GRAFT_NO_MEMORY.
 */
int graft_request_imex_word(struct graft_request *request, const char *word, struct graft_error *err);
/*
 * Parses --cuda-compat-mode: disabled, mount or ldconfig; --no-cntlibs is "disabled". "disabled"
 * overrides the others in any order; two different others are an error: "only one cuda-compat-mode
 * can be specified at a time".
 */
int graft_request_compat_mode(struct graft_request *request, const char *mode, struct graft_error *err);
/*
 * Adds a comma-separated list of capabilities ("all" = every one). An unknown one is GRAFT_INVALID
 * "unsupported capability: <word>".
 */
int graft_request_capabilities(struct graft_request *request, const char *list, struct graft_error *err);

#endif
