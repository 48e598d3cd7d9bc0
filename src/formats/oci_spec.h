/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_spec: what Graft reads of an OCI runtime configuration (config.json) and of the state that hooks get. A view of a document: plain data that
 * a fuzzer, a test and the programs fill in the same way. Never strict: what is not known is not looked at (SPEC runtime-and-hook 15.1
 * Q22). A member of a wrong type is as good as not there, except where said.
 */
#ifndef GRAFT_FORMATS_OCI_SPEC_H
#define GRAFT_FORMATS_OCI_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/json_document.h"

struct graft_oci_mount {
	const char *destination, *source, *type; /* NULL when not there */
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
	const char *oci_version; /* NULL when not there */
	bool has_process;
	const char **env; /* "NAME=VALUE" as they stand; entries without '=' are left out (Q5) and counted */
	size_t n_env;
	size_t n_malformed_env;
	bool
	    privileged; /* CAP_SYS_ADMIN in process.capabilities.bounding; for 1.0.0-rc1 to rc4, in the plain list (SPEC 4.2) */
	uint32_t uid, gid;     /* process.user */
	const char *root_path; /* as it stands; NULL when not there */
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
	bool new_mount_namespace; /* it has a "mount" entry without a path */
	struct graft_oci_id_mapping *uid_mappings, *gid_mappings;
	size_t n_uid_mappings, n_gid_mappings;
	struct graft_arena *arena; /* borrowed */
};

/*
 * Fills the view. The strings live as long as document and arena; the view is not updated by edits. -1: GRAFT_FORMAT (the text is no object,
 * or, for `hook` rules of SPEC 11.2, see graft_oci_spec_check()), GRAFT_NO_MEMORY.
 */
int graft_oci_spec_read(const struct graft_json_document *document, struct graft_arena *arena,
			struct graft_oci_spec *ret_spec, struct graft_error *err);
/* The demands of a hook on a configuration (SPEC 11.2 step 3): "Version is empty in OCI spec", "Process is empty ...", "Root is empty ...". */
int graft_oci_spec_check(const struct graft_oci_spec *spec, struct graft_error *err);
/* The value of the last variable of that name; NULL when there is none. */
const char *graft_oci_spec_env(const struct graft_oci_spec *spec, const char *name);

/* The state that a hook reads from its standard input (OCI runtime-spec, "State"). */
struct graft_oci_state {
	int64_t pid;        /* 0 when not there */
	const char *bundle; /* "bundle", or "bundlePath" of runtimes before 1.0; NULL when not there */
	const char *id, *status;
};
/* One JSON object; other members are ignored, and so is what follows it (a decoder of the reference stops there). GRAFT_FORMAT: "could not decode container state: ...". */
int graft_oci_state_read(const char *text, size_t length, struct graft_arena *arena, struct graft_oci_state *ret_state,
			 struct graft_error *err);

#endif
