/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: what a container asks for, out of its OCI configuration and config.toml (SPEC runtime-and-hook 4): environment, mounts, annotations,
 * privilege. Pure. The names are not validated here; that is graft_request_devices() or CDI's job. Fails closed.
 */
#ifndef GRAFT_REQUEST_CONTAINER_H
#define GRAFT_REQUEST_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/oci_spec.h"
#include "request/config.h"
#include "request/request.h"

enum graft_device_origin { GRAFT_ORIGIN_NONE, GRAFT_ORIGIN_ANNOTATIONS, GRAFT_ORIGIN_MOUNTS, GRAFT_ORIGIN_ENVIRONMENT };

struct graft_container {
	bool wants_devices; /* false: "not a GPU container" */
	enum graft_device_origin origin;
	const char *origin_name; /* for logs: the variable's name, "volume mounts", "annotations" */
	struct graft_strings
	    devices; /* each once, in order (Q6); "none" alone stands for "the driver, no device"; "all" alone for all */
	bool legacy_image; /* SPEC 4.3 */
	bool privileged;
	const char *driver_capabilities;   /* NVIDIA_DRIVER_CAPABILITIES as written; NULL = unset */
	struct graft_strings requirements; /* SPEC 4.10, in the order of the environment; empty when disabled */
	bool requirements_disabled;
	const char *mig_config, *mig_monitor; /* values; NULL = unset or empty */
	struct graft_strings imex_channels;   /* words; SPEC 4.8 with Q8: "none" is none */
	bool gates[GRAFT_GATE_MAX];
	bool jetpack_csv_mounts_all; /* NVIDIA_REQUIRE_JETPACK=csv-mounts=all */
};

/*
 * Reads what the container asks for. `annotations` false leaves them out (hooks; SPEC 5.3). Every decision that drops something is a line in the log.
 * Strings are the specification's or the arena's. -1: GRAFT_TOO_BIG for a list of more words than any host has devices; GRAFT_NO_MEMORY.
 */
int graft_container_read(const struct graft_oci_spec *spec, const struct graft_config *config, bool annotations,
			 const struct graft_log *log, struct graft_arena *arena, struct graft_container *ret_container,
			 struct graft_error *err);
/* Adds the requirement that a legacy image's CUDA_VERSION means (SPEC 4.10, 14.13). -1: GRAFT_INVALID "failed to get requirements: ...". */
int graft_container_legacy_requirement(const struct graft_oci_spec *spec, struct graft_arena *arena,
				       struct graft_container *container, struct graft_error *err);
/*
 * The capabilities that a hook gives (SPEC 4.9, 14.10, 14.11): bits GRAFT_CAP_*. -1: GRAFT_INVALID "unsupported capabilities found in '<E>' (allowed
 * '<E and S>')", words in alphabetical order, or the key, value and known set when `supported` itself is wrong (Q16).
 */
int graft_container_capabilities(const struct graft_container *container, const char *supported,
				 unsigned int *ret_capabilities, struct graft_error *err);

/* ---- mode (SPEC 5) ---- */
enum graft_mode { GRAFT_MODE_LEGACY, GRAFT_MODE_JIT_CDI, GRAFT_MODE_CDI, GRAFT_MODE_CSV, GRAFT_MODE_MAX };
extern const char *const graft_mode_names[GRAFT_MODE_MAX]; /* legacy jit-cdi cdi csv */
/* What SPEC 5.2 looks at, as data; host/platform.h reads it. */
struct graft_platform_probes {
	bool dxcore, tegra_files, nvml, integrated_gpu;
};
/*
 * The mode for a configured word. `automatic` is what "auto" means when neither CDI names nor Tegra decide: GRAFT_MODE_JIT_CDI for the runtime,
 * GRAFT_MODE_LEGACY for the hook. `probe` is called only when the word is "auto" and the devices do not decide; it must not touch the driver.
 * -1: GRAFT_INVALID "invalid mode ..." or "a mode must be specified".
 */
int graft_mode_resolve(const char *word, const struct graft_container *container, enum graft_mode automatic,
		       struct graft_platform_probes (*probe)(void *arg), void *arg, enum graft_mode *ret_mode,
		       struct graft_error *err);

#endif
