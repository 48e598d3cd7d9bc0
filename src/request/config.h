/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: the settings of config.toml as plain data (SPEC runtime-and-hook 2). Pure;
 * start/config_file.h decides where the file is and what the host adds to the defaults (SUSE,
 * ldconfig.real).
 *
 * One table has every key with its name, type, default and description. Reading, defaults, the JSON
 * form and docs/config.md are derived from it. Keys that are not in it are ignored, including those
 * of older releases (SPEC runtime-and-hook 2.4).
 */
#ifndef GRAFT_REQUEST_CONFIG_H
#define GRAFT_REQUEST_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "formats/toml/toml.h"

struct graft_strings {
	const char **items;
	size_t n;
};

struct graft_config {
	const char *file; /* the file that was read; NULL = built-in defaults */

	bool disable_require;
	const char *swarm_resource; /* "" = none; comma-separated names of variables */
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
		struct graft_strings cdi_allowed_envvar_kinds; /* Graft's own key; see request/container.h */
		const char *cdi_default_kind;
		struct graft_strings jit_feature_flags, jit_disable_hooks;
		const char *cuda_compat_mode; /* modes.legacy */
	} runtime;                            /* [nvidia-container-runtime] */

	struct {
		bool allow_cuda_compat_libs_from_container, allow_ldconfig_from_container,
		    allow_unknown_oci_spec_fields, disable_cuda_compat_lib_hook, disable_imex_channel_creation,
		    ignore_imex_channel_requests, no_additional_gids_for_device_nodes;
		/*
		 * Graft's own, for what jit-cdi mode otherwise leaves out:
		 * NVIDIA_DRIVER_CAPABILITIES, NVIDIA_REQUIRE_*, 32-bit libraries
		 */
		bool honor_driver_capabilities, honor_requirements, compat32;
	} features;

	bool late_mounts; /* Graft's own: see docs/runtime.md */

	/* Graft's own: GPUs that are lent (docs/leases.md) */
	struct {
		const char *mode; /* "off", "on" or "enforce", as written */
		const char *directory;
		struct graft_strings pool;   /* indexes and UUIDs of the GPUs that may be lent; "all" = every GPU */
		const char *wait;            /* how long a claim waits if it does not specify that */
		const char *order;           /* "fair" or "fifo" */
		struct graft_strings limits; /* "1000=8", "anna=2", "default=4": GPUs that a user may hold at once */
		struct graft_strings
		    shared;           /* "2=4", "GPU-...=4", "all=4": GPUs that are lent in slots, and in how many */
		const char *sharing;  /* "time-slice" or "mps" */
		bool mps_exclusive;   /* a GPU with MPS is in compute mode EXCLUSIVE_PROCESS */
		const char *busy;     /* "leases" or "open": what counts as a GPU in use */
		bool health;          /* GPUs that have failed are not lent */
		const char *max_time; /* a lease is overdue after this time; "0s" = never */
	} leases;                     /* [graft.leases] */

	/* Graft's own: containers of pods, for the NRI plugin (docs/nri.md) */
	struct {
		struct graft_strings allowed; /* "VENDOR/CLASS:NAMESPACE" */
		const char *environment;      /* "allotted", "accept" or "ignore" */
		const char *refused;          /* "error" or "skip" */
	} nri;

	/*
	 * One warning for each unknown key or table of the file: see graft_config_find_unknown().
	 */
	struct graft_strings unknown;

	struct graft_arena *arena; /* borrowed */
};

/* Returns whether claims count: graft.leases.mode is "on" or "enforce". */
bool graft_config_lends(const struct graft_config *config);
/* Returns whether GPUs that are named need a lease, too: graft.leases.mode is "enforce". */
bool graft_config_enforces(const struct graft_config *config);

enum graft_config_kind { GRAFT_CONFIG_BOOL, GRAFT_CONFIG_STRING, GRAFT_CONFIG_STRINGS };

struct graft_config_key {
	const char *name; /* dotted, as in the document: "nvidia-container-cli.root" */
	enum graft_config_kind kind;
	size_t offset;               /* in struct graft_config: of a bool, a const char * or a struct graft_strings */
	const char *const *standard; /* the default: one string, or a list; NULL-terminated. NULL = unset */
	const char *doc;             /* description; one or two sentences of Markdown */
	/*
	 * Value in TOML syntax that a document shows in a comment instead of the default; or NULL
	 */
	const char *sample;
	bool omitted;  /* not in the default document */
	bool optional; /* `nil` deletes it */
};
extern const struct graft_config_key graft_config_keys[];
extern const size_t graft_config_n_keys;

/*
 * What a host adds to the defaults; found by start/config_file.h, given as data in tests. NULL or
 * zeros = nothing.
 */
struct graft_config_host {
	bool suse;            /* SPEC runtime-and-hook 2.6 */
	const char *ldconfig; /* the normalised default (SPEC runtime-and-hook 2.5); NULL = "@/sbin/ldconfig" */
};

/*
 * Returns the built-in defaults (SPEC runtime-and-hook 2.3). The strings are constants, or
 * `host`'s. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_config_defaults(const struct graft_config_host *host, struct graft_arena *arena,
			  struct graft_config *ret_config, struct graft_error *err);
/*
 * Sets the defaults, then each key that the document has (SPEC runtime-and-hook 2.2, 2.3); its
 * strings are copied into the arena. A key and the tables that contain it are found in lower case,
 * as the table of keys has them, or all in upper case. Returns -1 with GRAFT_FORMAT, naming file,
 * line, column, key, value and what is allowed; with GRAFT_INVALID for ldconfig ("invalid config
 * value: nvidia-container-cli.ldconfig value ... is not host-relative ..."); or with
 * GRAFT_NO_MEMORY.
 */
int graft_config_read(const struct graft_toml *toml, const struct graft_config_host *host, struct graft_arena *arena,
		      struct graft_config *ret_config, struct graft_error *err);

/*
 * Lists the keys and tables that are not in the table of keys, nor among those of older releases
 * (SPEC runtime-and-hook 2.4): "FILE: line 3: ignoring unknown key
 * 'nvidia-container-cli.no_cgroups' (did you mean 'no-cgroups'?)". What is below an unknown table
 * is not listed. At most GRAFT_CONFIG_UNKNOWN_MAX; the texts are in the arena. graft_config_read()
 * calls this as well. Returns -1 with GRAFT_NO_MEMORY.
 */
#define GRAFT_CONFIG_UNKNOWN_MAX 16u
int graft_config_find_unknown(const struct graft_toml *toml, struct graft_arena *arena,
			      struct graft_strings *ret_unknown, struct graft_error *err);

/*
 * A setting whose value no program understands. `allowed` completes the sentence "it can be ..."
 * and includes the word that was probably meant: "mount, hook or disabled (did you mean 'mount'?)".
 * `standard` is the default, or "".
 */
struct graft_config_mistake {
	const char *key, *value, *allowed, *standard;
};
/*
 * Finds these settings; each word of a list counts by itself. The array and its strings are in the
 * arena, are constants or belong to `config`. Names of files, users and programs are not checked:
 * only the host knows which of them can be used. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_config_find_mistakes(const struct graft_config *config, struct graft_arena *arena,
			       struct graft_config_mistake **ret_mistakes, size_t *ret_n, struct graft_error *err);

/*
 * Writes to `path` the path under which a document has the key `name`: each part as the table of
 * keys has it or, if only that exists, in upper case.
 */
#define GRAFT_CONFIG_NAME_SIZE 128 /* longer than any name in the table */
void graft_config_spelling(const struct graft_toml *toml, const char *name, char path[GRAFT_CONFIG_NAME_SIZE]);

/*
 * config_edit.c: SPEC ctk-and-cdi 1.4, `config --set`.
 *
 * graft_config_set() applies one setting, "KEY=VALUE", or "KEY" for a bool. VALUE goes into the
 * document, which otherwise stays as it is, except that a new key replaces the comment that
 * graft_config_sample_line() made for it. A list is split at `separator` if VALUE contains it, else
 * at commas; an empty VALUE is an empty list. "nil" deletes an optional key. Returns -1 with
 * GRAFT_INVALID "invalid --set option SETTING: ...", leaving the document as it was, or with
 * GRAFT_NO_MEMORY.
 *
 * graft_config_split_settings() splits the value of one option into settings: a setting ends at
 * each comma that is followed by the name of a key (and then by '=', a comma or the end). The
 * results are copies in the arena. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_config_set(struct graft_toml **toml, const char *setting, const char *separator, struct graft_error *err);
int graft_config_split_settings(const char *value, struct graft_arena *arena, struct graft_strings *ret_settings,
				struct graft_error *err);

/*
 * Appends the default document: exactly the values of graft_config_defaults(), with no comments
 * except samples. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_config_default_document(const struct graft_config_host *host, struct graft_arena *arena,
				  struct graft_buffer *out, struct graft_error *err);
/* Appends "#KEY = SAMPLE" for a key with a sample, without a newline. */
void graft_config_sample_line(const struct graft_config_key *key, struct graft_buffer *out);

/* Appends the man page of the file in scdoc's format. */
void graft_config_manual(struct graft_buffer *out);
/* Appends the Markdown tables of all keys, one table per section. */
void graft_config_document(struct graft_buffer *out);

#endif
