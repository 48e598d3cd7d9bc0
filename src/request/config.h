/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: the settings of config.toml as plain data (SPEC runtime-and-hook 2). Parsing is pure; where the file is looked for and what the
 * host adds to the defaults (SUSE, ldconfig.real) is cli/config.h.
 */
#ifndef GRAFT_REQUEST_CONFIG_H
#define GRAFT_REQUEST_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/record.h"
#include "formats/toml.h"

struct graft_strings {
	const char **items;
	size_t n;
};

struct graft_config {
	const char *file; /* where it was read; NULL = built-in defaults */

	bool disable_require;
	const char *swarm_resource; /* "" = none; comma list of variable names */
	bool accept_envvar_unprivileged, accept_volume_mounts;
	const char *supported_driver_capabilities;

	struct {
		const char *root, *path, *debug, *ldcache, *user, *ldconfig; /* "" = unset */
		struct graft_strings environment;
		bool load_kmods, no_pivot, no_cgroups;
	} cli; /* [nvidia-container-cli] */

	const char *ctk_path; /* [nvidia-ctk] path */

	struct {
		const char *path;
		bool skip_mode_detection;
	} hook; /* [nvidia-container-runtime-hook] */

	struct {
		const char *debug, *log_level, *mode; /* as written; not validated when loaded */
		struct graft_strings runtimes;
		const char *csv_mount_spec_path;
		const char *csv_compat_container_root; /* NULL = unset */
		struct graft_strings cdi_spec_dirs, cdi_annotation_prefixes;
		const char *cdi_default_kind;
		struct graft_strings jit_feature_flags, jit_disable_hooks;
		const char *cuda_compat_mode; /* modes.legacy */
	} runtime;                            /* [nvidia-container-runtime] */

	struct {
		bool allow_cuda_compat_libs_from_container, allow_ldconfig_from_container,
		    allow_unknown_oci_spec_fields, disable_cuda_compat_lib_hook, disable_imex_channel_creation,
		    ignore_imex_channel_requests, no_additional_gids_for_device_nodes;
		/* Graft's own, for what the reference ignores in jit-cdi mode: */
		bool
		    honor_driver_capabilities; /* "honor-driver-capabilities": NVIDIA_DRIVER_CAPABILITIES selects files */
		bool honor_requirements;       /* "honor-requirements": NVIDIA_REQUIRE_* are checked */
		bool compat32;                 /* "inject-compat32-libraries" */
	} features;

	struct graft_arena *arena; /* borrowed */
};

/* What a host adds to the defaults; found by cli/config.h, given as data in tests. */
struct graft_config_host {
	bool suse; /* SPEC 2.6 */
	const char
	    *ldconfig; /* the normalised default, "@/sbin/ldconfig" or "@/sbin/ldconfig.real"; NULL = the former */
};

/* The built-in defaults (SPEC 2.3). */
void graft_config_defaults(const struct graft_config_host *host, struct graft_arena *arena,
			   struct graft_config *ret_config);
/*
 * Defaults, then each key that the document has (SPEC 2.2, 2.3). -1: GRAFT_FORMAT with file, line, column, key, value and what is allowed;
 * GRAFT_INVALID for ldconfig ("nvidia-container-cli.ldconfig value ... is not host-relative ...").
 */
int graft_config_read(const struct graft_toml *toml, const struct graft_config_host *host, struct graft_arena *arena,
		      struct graft_config *ret_config, struct graft_error *err);

/* For messages: "line 12: " position of a key in its document is kept by name; see graft_toml_refuse(). */
extern const struct graft_record graft_config_record; /* JSON form, for doctor, tests and bug reports */

#endif
