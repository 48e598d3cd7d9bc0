/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: the settings of config.toml as plain data (SPEC runtime-and-hook 2). Pure; where the file is looked for and what the host adds
 * to the defaults (SUSE, ldconfig.real) is cli/config.h.
 *
 * One table holds every key: its name, type, default and what it does. Reading, the defaults, the JSON form and docs/config.md come from it.
 * Keys that are not in it are ignored, as are those of older releases (SPEC 2.4).
 */
#ifndef GRAFT_REQUEST_CONFIG_H
#define GRAFT_REQUEST_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
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
		/* Graft's own, for what jit-cdi mode otherwise leaves out: NVIDIA_DRIVER_CAPABILITIES, NVIDIA_REQUIRE_*, 32 bits */
		bool honor_driver_capabilities, honor_requirements, compat32;
	} features;

	struct graft_arena *arena; /* borrowed */
};

enum graft_config_kind { GRAFT_CONFIG_BOOL, GRAFT_CONFIG_STRING, GRAFT_CONFIG_STRINGS };

struct graft_config_key {
	const char *name; /* dotted, as in the document: "nvidia-container-cli.root" */
	enum graft_config_kind kind;
	size_t offset;               /* in struct graft_config: of a bool, a const char *, a struct graft_strings */
	const char *const *standard; /* the default: one word, or the list; NULL-terminated. NULL = unset */
	const char *doc;             /* what it does; one or two sentences of Markdown */
	const char
	    *sample; /* value, in TOML's spelling, that a document shows in a comment instead of the default; or NULL */
	bool omitted;  /* not in the document of defaults */
	bool optional; /* `nil` deletes it */
};
extern const struct graft_config_key graft_config_keys[];
extern const size_t graft_config_n_keys;

/* What a host adds to the defaults; found by cli/config.h, given as data in tests. NULL or zeros = nothing. */
struct graft_config_host {
	bool suse;            /* SPEC 2.6 */
	const char *ldconfig; /* the normalised default (SPEC 2.5); NULL = "@/sbin/ldconfig" */
};

/* The built-in defaults (SPEC 2.3). The strings are constants, or `host`'s. -1: GRAFT_NO_MEMORY. */
int graft_config_defaults(const struct graft_config_host *host, struct graft_arena *arena,
			  struct graft_config *ret_config, struct graft_error *err);
/*
 * Defaults, then each key that the document has (SPEC 2.2, 2.3); its strings are copied. A key and the tables that lead to it are found in
 * lower case, as the table has them, or else all in upper case. -1: GRAFT_FORMAT with file, line, column, key, value and what is allowed;
 * GRAFT_INVALID for ldconfig ("invalid config value: nvidia-container-cli.ldconfig value ... is not host-relative ...").
 */
int graft_config_read(const struct graft_toml *toml, const struct graft_config_host *host, struct graft_arena *arena,
		      struct graft_config *ret_config, struct graft_error *err);

/*
 * The path by which a document has the key of that name: each of its parts as the table has it or, when only that is there, in upper case.
 */
#define GRAFT_CONFIG_NAME_SIZE 128 /* longer than any name of the table */
void graft_config_spelling(const struct graft_toml *toml, const char *name, char path[GRAFT_CONFIG_NAME_SIZE]);

/*
 * config_edit.c: SPEC ctk-and-cdi 1.4, `config --set`.
 *
 * graft_config_set: one setting, "KEY=VALUE", or "KEY" for a bool: VALUE goes into the document, which otherwise stays as it is, but for a comment that
 * graft_config_sample_line() made, whose place the key takes. A list is split at `separator` where VALUE has that, else at commas; an empty VALUE is an
 * empty list. "nil" deletes an optional key. -1: GRAFT_INVALID "invalid --set option SETTING: ...", with the document as it was; GRAFT_NO_MEMORY.
 *
 * graft_config_split_settings: the settings of one option's value: it ends at each comma that the name of a key follows (and behind that '=', a comma or
 * the end). All are copies in the arena.
 */
int graft_config_set(struct graft_toml **toml, const char *setting, const char *separator, struct graft_error *err);
int graft_config_split_settings(const char *value, struct graft_arena *arena, struct graft_strings *ret_settings,
				struct graft_error *err);

/* The document of defaults, which is empty of comments but for samples. Nothing in it that is not what graft_config_defaults() says. */
int graft_config_default_document(const struct graft_config_host *host, struct graft_arena *arena,
				  struct graft_buffer *out, struct graft_error *err);
/* "#KEY = SAMPLE" of a key with a sample, without a newline. */
void graft_config_sample_line(const struct graft_config_key *key, struct graft_buffer *out);

/* Appends one JSON object, a member per key under its full name, for tests and bug reports. What is unset is null. */
void graft_config_to_json(const struct graft_config *config, struct graft_buffer *out);
/* Appends the man page of the file in scdoc's format. */
void graft_config_manual(struct graft_buffer *out);
/* Appends the Markdown tables of all keys, one table per section. */
void graft_config_document(struct graft_buffer *out);

#endif
