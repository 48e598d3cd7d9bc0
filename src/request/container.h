/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: what a container requests, from its OCI configuration and config.toml (SPEC
 * runtime-and-hook 4): environment, mounts, annotations, privilege. Pure. Device names are not
 * validated here; graft_request_devices() or CDI does that. Fails closed.
 */
#ifndef GRAFT_REQUEST_CONTAINER_H
#define GRAFT_REQUEST_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/oci_spec.h"
#include "host/platform.h"
#include "request/config.h"
#include "request/request.h"

enum graft_device_origin { GRAFT_ORIGIN_NONE, GRAFT_ORIGIN_ANNOTATIONS, GRAFT_ORIGIN_MOUNTS, GRAFT_ORIGIN_ENVIRONMENT };

struct graft_container {
	bool wants_devices; /* false: not a GPU container */
	enum graft_device_origin origin;
	const char *origin_name; /* for logs: the variable's name, "volume mounts", "annotations" */
	/*
	 * Each once, in order (SPEC runtime-and-hook Q6). A single "none" means the driver without
	 * a device, a single "all" all devices.
	 */
	struct graft_strings devices;
	bool legacy_image; /* SPEC runtime-and-hook 4.3 */
	bool privileged;
	const char *driver_capabilities; /* NVIDIA_DRIVER_CAPABILITIES as written; NULL = unset */
	/* SPEC runtime-and-hook 4.10, in the order of the environment; empty if disabled. */
	struct graft_strings requirements;
	bool requirements_disabled;
	const char *mig_config, *mig_monitor; /* values; NULL = unset or empty */
	struct graft_strings imex_channels;   /* SPEC runtime-and-hook 4.8, Q8: "none" means none */
	bool gates[GRAFT_GATE_MAX];
	bool no_late_mounts;         /* NVIDIA_LATE_MOUNTS=false: its other values, and no value, say nothing */
	const char *lease_wait;      /* NVIDIA_LEASE_WAIT as written; NULL = unset */
	const char *lease_owner;     /* annotation graft.owner, or NVIDIA_LEASE_OWNER, as written; NULL = neither */
	const char *lease_what;      /* the image, if the engine names it, or the program; NULL = neither */
	bool jetpack_csv_mounts_all; /* NVIDIA_REQUIRE_JETPACK=csv-mounts=all */
};

/*
 * SECURITY: an image's environment cannot be distinguished from variables that its user adds, so
 * config.toml specifies whether it is honoured
 * (accept-nvidia-visible-devices-envvar-when-unprivileged), and for which kinds of CDI devices
 * (allowed-envvar-kinds). Everything in it that widens what a container gets is controlled in one
 * of three ways: by the first key, as for `devices`, `imex_channels`, `gates` and
 * `jetpack_csv_mounts_all`; by restriction to privileged containers, as for `mig_config` and
 * `mig_monitor`, which callers must enforce; or by a key of its own, as for `driver_capabilities`.
 */
/*
 * Reads what the container requests. `annotations` false ignores them (hooks; SPEC runtime-and-hook
 * 5.3). Every decision that drops something is logged. Strings belong to the specification or the
 * arena. Returns -1 with GRAFT_TOO_BIG for a list longer than any host's devices; with
 * GRAFT_INVALID if a variable names a CDI device of a kind that it may not, giving variable, kind
 * and key; or with GRAFT_NO_MEMORY.
 */
int graft_container_read(const struct graft_oci_spec *spec, const struct graft_config *config, bool annotations,
			 const struct graft_log *log, struct graft_arena *arena, struct graft_container *ret_container,
			 struct graft_error *err);
/*
 * Adds the requirement that a legacy image's CUDA_VERSION implies (SPEC runtime-and-hook 4.10,
 * 14.13). Returns -1 with GRAFT_INVALID "failed to get requirements: ..." or GRAFT_NO_MEMORY.
 */
int graft_container_legacy_requirement(const struct graft_oci_spec *spec, struct graft_arena *arena,
				       struct graft_container *container, struct graft_error *err);
/*
 * Returns the capabilities that a hook grants (SPEC runtime-and-hook 4.9, 14.10, 14.11) as bits
 * GRAFT_CAP_*. Returns -1 with GRAFT_TOO_BIG if the list is longer than 4 KiB; with GRAFT_INVALID
 * "unsupported capabilities found in '<E>' (allowed '<E and S>')", with sorted lists, or, if
 * `supported` itself is invalid, with a message that names the key, the value and the known
 * capabilities (SPEC runtime-and-hook Q16).
 */
int graft_container_capabilities(const struct graft_container *container, const char *supported,
				 unsigned int *ret_capabilities, struct graft_error *err);

/* ---- mode (SPEC runtime-and-hook 5) ---- */
enum graft_mode { GRAFT_MODE_LEGACY, GRAFT_MODE_JIT_CDI, GRAFT_MODE_CDI, GRAFT_MODE_CSV, GRAFT_MODE_MAX };
extern const char *const graft_mode_names[GRAFT_MODE_MAX]; /* legacy jit-cdi cdi csv */
/*
 * Whether a host with these facts is a Tegra board, whose lists say what a container gets (SPEC
 * runtime-and-hook 5.1).
 */
bool graft_mode_is_board(const struct graft_platform_facts *facts);
/*
 * Resolves a configured mode, given as `word`. `automatic` is what "auto" means if neither CDI
 * names nor Tegra decide: GRAFT_MODE_JIT_CDI for the runtime, GRAFT_MODE_LEGACY for the hook.
 * `probe` is called only if `word` is "auto" and the devices do not decide; it must not touch the
 * driver. Returns -1 with GRAFT_INVALID "invalid mode ..." or "a mode must be specified".
 */
int graft_mode_resolve(const char *word, const struct graft_container *container, enum graft_mode automatic,
		       struct graft_platform_facts (*probe)(void *arg), void *arg, enum graft_mode *ret_mode,
		       struct graft_error *err);

#endif
