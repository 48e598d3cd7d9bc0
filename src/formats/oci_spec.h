/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_spec: the parts of an OCI runtime configuration (config.json), and of the state that hooks
 * receive, that Graft uses. A view of a document: plain data that a fuzzer, a test and the programs
 * can fill in alike. Never strict: unknown members are ignored (SPEC runtime-and-hook 15.1, Q22),
 * and a member of the wrong type is treated as absent unless stated otherwise.
 */
#ifndef GRAFT_FORMATS_OCI_SPEC_H
#define GRAFT_FORMATS_OCI_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/json/json_document.h"

struct graft_oci_mount {
	const char *destination, *source, *type; /* NULL if absent */
	const char **options;
	size_t n_options;
	struct graft_json_node *node;
};

struct graft_oci_annotation {
	const char *key, *value;
};

struct graft_oci_hook {
	const char *path;
	struct graft_json_node *node;
};

struct graft_oci_id_mapping {
	uint32_t container_id, host_id, size;
};

struct graft_oci_spec {
	const char *oci_version; /* NULL if absent */
	bool has_process;
	/*
	 * "NAME=VALUE", unchanged; entries without '=' are omitted (SPEC runtime-and-hook Q5) and
	 * counted
	 */
	const char **env;
	size_t n_env;
	size_t n_malformed_env;
	const char *program; /* the first of process.args; NULL if absent */
	const char *cwd;     /* process.cwd, unchanged; NULL if absent */
	/*
	 * CAP_SYS_ADMIN in process.capabilities.bounding; for 1.0.0-rc1 to rc4, in the plain list
	 * (SPEC runtime-and-hook 4.2).
	 */
	bool privileged;
	uint32_t uid, gid;     /* process.user */
	const char *root_path; /* unchanged; NULL if absent */
	bool root_readonly;
	struct graft_oci_mount *mounts;
	size_t n_mounts;
	struct graft_oci_annotation *annotations; /* sorted by key, bytewise */
	size_t n_annotations;
	struct graft_oci_hook *prestart; /* hooks.prestart */
	size_t n_prestart;
	const char *cgroups_path; /* linux.cgroupsPath */
	const char **devices;     /* paths of linux.devices */
	size_t n_devices;
	const char **masked_paths, **readonly_paths; /* linux.maskedPaths, linux.readonlyPaths */
	size_t n_masked_paths, n_readonly_paths;
	bool new_user_namespace;  /* linux.namespaces has a "user" entry */
	bool new_mount_namespace; /* linux.namespaces has a "mount" entry without a path */
	struct graft_oci_id_mapping *uid_mappings, *gid_mappings;
	size_t n_uid_mappings, n_gid_mappings;
	struct graft_arena *arena; /* borrowed */
};

/*
 * Fills in the view. The strings live as long as the document and the arena. Later edits do not
 * update the view. Returns 0, or -1 with GRAFT_FORMAT (the document is not an object) or
 * GRAFT_NO_MEMORY. graft_oci_spec_check() does the further checks of a hook.
 */
int graft_oci_spec_read(const struct graft_json_document *document, struct graft_arena *arena,
			struct graft_oci_spec *ret_spec, struct graft_error *err);
/*
 * Checks the configuration as a hook does (SPEC runtime-and-hook 11.2 step 3). Returns 0, or -1
 * with GRAFT_FORMAT: "Version is empty in OCI spec", "Process is empty ...", "Root is empty ...".
 */
int graft_oci_spec_check(const struct graft_oci_spec *spec, struct graft_error *err);
/* Returns the value of the last variable with that name, or NULL. */
const char *graft_oci_spec_env(const struct graft_oci_spec *spec, const char *name);
/*
 * Returns a copy of a mount's source in the arena: below the bundle if it is relative, which only
 * matters for binds. NULL: there is none, or no memory.
 */
const char *graft_oci_mount_source(const struct graft_oci_mount *mount, const char *bundle, struct graft_arena *arena);
/*
 * Returns the sources of all mounts but those at "/", in the arena. NULL: out of memory.
 */
const char **graft_oci_spec_sources(const struct graft_oci_spec *spec, const char *bundle, struct graft_arena *arena,
				    size_t *ret_n);
/*
 * Returns the mount that the container sees at `place`, however its destination is spelled ("/dev/"
 * is /dev); NULL if there is none, or no memory in the arena.
 */
const struct graft_oci_mount *graft_oci_spec_mount_at(const struct graft_oci_spec *spec, const char *place,
						      struct graft_arena *arena);

/* The state that a hook reads from its standard input (OCI runtime-spec, "State"). */
struct graft_oci_state {
	int64_t pid;        /* 0 if absent */
	const char *bundle; /* "bundle", or "bundlePath" from runtimes before 1.0; NULL if absent */
	const char *id, *status;
};
/*
 * Reads one JSON object. Other members are ignored, and so is what follows the object (where the
 * reference's decoder stops as well). Returns 0, or -1 with GRAFT_FORMAT "could not decode
 * container state: ..." or GRAFT_NO_MEMORY.
 */
int graft_oci_state_read(const char *text, size_t length, struct graft_arena *arena, struct graft_oci_state *ret_state,
			 struct graft_error *err);

#endif
