/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request: what a container asks for, parsed and validated as far as that is possible without the host. Plain data
 * with a JSON form. What a device word means on this host is decided by the planner (plan/select.h).
 *
 * Invariant: selection fails closed. A word that is not understood is an error or stays an UNKNOWN device, which no
 * host has; it never widens the selection.
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
	uint32_t index;     /* INDEX; GPU index of MIG_INDEX */
	uint32_t mig_index; /* MIG_INDEX */
	const char *bus_id; /* PCI: normalised, "0000001b:1c:00.0" ("%08x:%02x:%02x.0") */
	const char *uuid;   /* old MIG form: the GPU's UUID; else NULL */
	uint32_t gi, ci;    /* old MIG form (uuid is set); else 0 */
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
	bool
	    compat_mode_given; /* by graft_request_compat_mode(), to tell the default from a choice; not part of the JSON form */
	bool no_cgroups, no_devbind, no_persistenced, no_fabricmanager, no_gsp_firmware, no_mps;
	uint32_t gates; /* bits 1 << GRAFT_GATE_*; a host that has nothing of it is no error */
	/* Every node of the driver instead of those of selected GPUs, for who looks after all of them (SPEC ctk-and-cdi 4.8). Style OCI. */
	bool management;
	bool all_imex_channels;         /* every channel that the host has, beside those named */
	bool explicit_driver_libraries; /* also what belongs to an image as a rule: libGL.so, libOpenCL.so ... */
	/*
	 * "all" means what programs can run on, as in jit-cdi mode (SPEC runtime-and-hook 7.4): the MIG devices of a GPU in MIG mode instead of the GPU,
	 * and no GPU that only drives a display. Otherwise it means every GPU and every MIG device.
	 */
	bool all_usable;
	struct graft_arena *arena; /* owned; not part of the JSON form */
};

extern const struct graft_record graft_request_record;

/* An empty request in its own arena, or NULL. */
struct graft_request *graft_request_new(void);
/* NULL is fine. Returns NULL. */
struct graft_request *graft_request_free(struct graft_request *request);
/* Appends the JSON form; same value, same bytes. */
void graft_request_write(const struct graft_request *request, struct graft_buffer *out);
/* Reads the JSON form back. -1: GRAFT_FORMAT, GRAFT_TOO_BIG, GRAFT_NO_MEMORY; *ret_request is then not set. */
int graft_request_read(const char *json, size_t length, struct graft_request **ret_request, struct graft_error *err);

/*
 * The parsers below take one option's value and add to the request. Errors are GRAFT_INVALID with the exact texts of
 * SPEC 3.5-3.6, 6.9, 7.3.
 */

/* A comma-separated device list; NULL or "" adds nothing. Stops at "all". Words it cannot classify are kept as UNKNOWN. */
int graft_request_devices(struct graft_request *request, const char *list, struct graft_error *err);
/* NVIDIA_VISIBLE_DEVICES semantics on top: "none" and "void" and "" add nothing. *ret_void tells "void" or "" apart from "none". */
int graft_request_visible_devices(struct graft_request *request, const char *value, bool *ret_void,
				  struct graft_error *err);
/* One requirement expression: counted, not evaluated. "too many requirements" after 32. */
int graft_request_requirement(struct graft_request *request, const char *expression, struct graft_error *err);
/* --mig-config / --mig-monitor: comma list, only "all": "<item>: only 'all' devices are currently supported". */
int graft_request_mig(bool *flag, const char *list, struct graft_error *err);
/* --imex-channel: decimal ids below 2^20: "unsupported IMEX channel value: <item>". Duplicates are kept. */
int graft_request_imex(struct graft_request *request, const char *list, struct graft_error *err);
/*
 * A channel word of a container: "5", "channel5", or "all" for those that the host has; decimal, below 2^20 (SPEC runtime-and-hook 7.11). -1: GRAFT_INVALID
 * "invalid channel ID <word>: ...". A channel is kept once.
 */
int graft_request_imex_word(struct graft_request *request, const char *word, struct graft_error *err);
/*
 * --cuda-compat-mode: disabled, mount, ldconfig; --no-cntlibs is "disabled". "disabled" wins over the others in any order; two different
 * others: "only one cuda-compat-mode can be specified at a time".
 */
int graft_request_compat_mode(struct graft_request *request, const char *mode, struct graft_error *err);
/* A comma list of capability words ("all" = every one). Unknown: GRAFT_INVALID "unsupported capability: <word>". */
int graft_request_capabilities(struct graft_request *request, const char *list, struct graft_error *err);

#endif
