/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi: the Container Device Interface (SPEC ctk-and-cdi 5): container edits, devices, specs as plain data. Container edits are also what the
 * sink to_oci turns a plan into, so that one function (apply/oci_edits.h) puts both into a config.json.
 */
#ifndef GRAFT_FORMATS_CDI_H
#define GRAFT_FORMATS_CDI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct graft_cdi_node {
	const char *path;      /* in the container */
	const char *host_path; /* NULL = path */
	const char *type;      /* "b", "c", "u", "p"; NULL = from the host */
	int64_t major, minor;  /* 0 and `has_numbers` false = from the host */
	bool has_numbers;      /* a plan knows them, 0:0 included; a file that says major 0 does not */
	bool has_mode;
	uint32_t mode;           /* permission bits */
	const char *permissions; /* cgroup access, subset of "rwm"; NULL = "rwm"; "" = none */
	bool has_uid, has_gid;
	uint32_t uid, gid;
};

struct graft_cdi_net_device {
	const char *host_name, *name;
};

struct graft_cdi_mount {
	const char *host_path, *container_path;
	const char *type; /* NULL = none */
	const char **options;
	size_t n_options;
};

struct graft_cdi_hook {
	const char *stage; /* "createContainer", ...: the CDI's hookName */
	const char *path;
	const char **args;
	size_t n_args;
	const char **env;
	size_t n_env;
	bool has_timeout;
	int64_t timeout;
};

struct graft_cdi_rdt {
	const char *clos_id, *l3_cache_schema, *mem_bw_schema;
	const char **schemata;
	size_t n_schemata;
	bool enable_monitoring;
};

struct graft_cdi_edits {
	const char **env; /* "NAME=VALUE" */
	size_t n_env;
	struct graft_cdi_node *nodes;
	size_t n_nodes;
	struct graft_cdi_net_device *net_devices;
	size_t n_net_devices;
	struct graft_cdi_mount *mounts;
	size_t n_mounts;
	struct graft_cdi_hook *hooks;
	size_t n_hooks;
	uint32_t *gids; /* additionalGids */
	size_t n_gids;
	const struct graft_cdi_rdt *rdt; /* NULL = none */
};

/* Of a file, in its order; each key once. They say things about a spec or device; no container gets them. */
struct graft_cdi_annotation {
	const char *key, *value;
};

struct graft_cdi_device {
	const char *name;
	struct graft_cdi_annotation *annotations;
	size_t n_annotations;
	struct graft_cdi_edits edits;
};

struct graft_cdi_spec {
	const char *file; /* where it was read */
	const char *version, *vendor, *class_;
	struct graft_cdi_annotation *annotations;
	size_t n_annotations;
	struct graft_cdi_device *devices;
	size_t n_devices;
	struct graft_cdi_edits edits; /* common */
};

/* A qualified device name (SPEC ctk-and-cdi 5.2): "nvidia.com/gpu=0". The strings are copies in the arena. */
struct graft_cdi_name {
	const char *vendor, *class_, *device;
};
/* -1: GRAFT_INVALID with the texts of SPEC ctk-and-cdi 5.2. */
int graft_cdi_parse_name(const char *text, struct graft_arena *arena, struct graft_cdi_name *ret_name,
			 struct graft_error *err);
bool graft_cdi_is_qualified(const char *text);
/* The rules of names (SPEC ctk-and-cdi 5.2). -1: GRAFT_INVALID with the texts there. */
int graft_cdi_check_vendor(const char *vendor, struct graft_error *err);
int graft_cdi_check_class(const char *class_, struct graft_error *err);
int graft_cdi_check_device(const char *device, struct graft_error *err);
/*
 * Whether the annotations of one spec or device are what the CDI asks for (SPEC ctk-and-cdi 5.4): keys are names with an optional prefix,
 * "vendor.com/name", and all of them together have at most 256 KiB. Other readers of specs do not look, so graft_cdi_spec_read() does not
 * either; what we write is held to it. -1: GRAFT_INVALID.
 */
int graft_cdi_check_annotations(const struct graft_cdi_annotation *annotations, size_t n, struct graft_error *err);

/* Something that is wrong with a file. */
struct graft_cdi_fault {
	unsigned int line, column; /* from 1; 0 where it is about the file as a whole */
	bool harmless;             /* readers take it, though the CDI does not allow it */
	const char *what;
};
struct graft_cdi_faults {
	struct graft_arena *arena; /* of the faults; set before use */
	struct graft_cdi_fault *items;
	size_t n;
};

/*
 * Reads and validates one spec (SPEC 5.3, 5.4): JSON or YAML by what the text is. `file` is the name that errors speak of. All of the spec lives in `arena`;
 * neither text nor name are needed afterwards.
 * -1: GRAFT_FORMAT "invalid CDI Spec: ...", with line and column where known; GRAFT_TOO_BIG (16 MiB); GRAFT_NO_MEMORY.
 */
int graft_cdi_spec_read(const char *file, const char *text, size_t length, struct graft_arena *arena,
			struct graft_cdi_spec *ret_spec, struct graft_error *err);
/*
 * The same, to the end of the file: adds everything that is wrong to `faults` (at most 100), by place. Where any of it is
 * not harmless the spec must not be used. -1: GRAFT_TOO_BIG, GRAFT_NO_MEMORY; what is wrong with the file is no failure.
 */
int graft_cdi_spec_examine(const char *file, const char *text, size_t length, struct graft_cdi_faults *faults,
			   struct graft_cdi_spec *ret_spec, struct graft_error *err);

#endif
