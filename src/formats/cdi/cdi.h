/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi: the Container Device Interface (SPEC ctk-and-cdi 5): container edits, devices and specs as
 * plain data. The sink to_oci also converts a plan into container edits, so that one function
 * (apply/oci/oci_edits.h) applies both to a config.json.
 */
#ifndef GRAFT_FORMATS_CDI_CDI_H
#define GRAFT_FORMATS_CDI_CDI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct graft_cdi_node {
	const char *path;      /* in the container */
	const char *host_path; /* NULL: same as path */
	const char *type;      /* "b", "c", "u", "p"; NULL: that of the host's node */
	int64_t major, minor;  /* 0 with `has_numbers` false: those of the host's node */
	bool has_numbers;      /* always set by a plan, 0:0 included; not set by a file with major 0 */
	bool has_mode;
	uint32_t mode;           /* permission bits */
	const char *permissions; /* cgroup access, subset of "rwm"; NULL: "rwm"; "": none */
	bool has_uid, has_gid;
	uint32_t uid, gid;
};

struct graft_cdi_net_device {
	const char *host_name, *name;
};

struct graft_cdi_mount {
	const char *host_path, *container_path;
	const char *type; /* NULL: none */
	const char **options;
	size_t n_options;
};

/*
 * A hook of ours that mounts files of the host in the container, and its option:
 * HOST::CONTAINER, or one path for both.
 */
#define GRAFT_CDI_FILES_HOOK  "mount-files"
#define GRAFT_CDI_FILE_OPTION "--file"

struct graft_cdi_hook {
	const char *stage; /* hookName in the CDI: "createContainer", ... */
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
	const struct graft_cdi_rdt *rdt; /* NULL: none */
};

/*
 * From a file, in its order, with unique keys. They describe a spec or device; containers do not
 * get them.
 */
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
	const char *file; /* the file that it was read from */
	const char *version, *vendor, *class_;
	struct graft_cdi_annotation *annotations;
	size_t n_annotations;
	struct graft_cdi_device *devices;
	size_t n_devices;
	struct graft_cdi_edits edits; /* for all devices */
};

/*
 * Returns whether a low-level runtime runs the hook in the container: stage startContainer. Its
 * program belongs to the image, whatever its name: it is not searched for on the host, and is
 * written to config.json unchanged.
 */
bool graft_cdi_hook_is_of_image(const struct graft_cdi_hook *hook);

/*
 * Returns the first createContainer hook of a spec, including those of its devices, that has no
 * environment of its own; NULL if there is none. A low-level runtime runs such a hook with the
 * container's environment, which an image can influence (CVE-2025-23266). Hooks of other stages run
 * with the engine's environment, or in the container.
 */
const struct graft_cdi_hook *graft_cdi_spec_find_open_hook(const struct graft_cdi_spec *spec);

/*
 * A qualified device name (SPEC ctk-and-cdi 5.2): "nvidia.com/gpu=0". The strings are in the arena.
 */
struct graft_cdi_name {
	const char *vendor, *class_, *device;
};
/*
 * Parses a qualified device name. Returns 0, or -1 with GRAFT_INVALID and the messages of SPEC
 * ctk-and-cdi 5.2.
 */
int graft_cdi_parse_name(const char *text, struct graft_arena *arena, struct graft_cdi_name *ret_name,
			 struct graft_error *err);
/* Returns whether graft_cdi_parse_name() accepts the text. */
bool graft_cdi_is_qualified(const char *text);
/*
 * Check the rules for names (SPEC ctk-and-cdi 5.2). Return 0, or -1 with GRAFT_INVALID and the
 * messages given there.
 */
int graft_cdi_check_vendor(const char *vendor, struct graft_error *err);
int graft_cdi_check_class(const char *class_, struct graft_error *err);
int graft_cdi_check_device(const char *device, struct graft_error *err);
/*
 * Checks the annotations of one spec or device against the CDI (SPEC ctk-and-cdi 5.4): keys are
 * names with an optional prefix, "vendor.com/name", and all of them together have at most 256 KiB.
 * Other readers of specs do not check them, so graft_cdi_spec_read() does not either; but whatever
 * we write must comply. Returns 0, or -1 with GRAFT_INVALID.
 */
int graft_cdi_check_annotations(const struct graft_cdi_annotation *annotations, size_t n, struct graft_error *err);

/* A fault of a file. */
struct graft_cdi_fault {
	unsigned int line, column; /* from 1; 0 if it concerns the file as a whole */
	bool harmless;             /* readers accept it, although the CDI does not allow it */
	const char *what;
};
struct graft_cdi_faults {
	struct graft_arena *arena; /* for the faults; set it before use */
	struct graft_cdi_fault *items;
	size_t n;
};

/*
 * Reads and validates a spec (SPEC ctk-and-cdi 5.3, 5.4). The text decides whether it is JSON or
 * YAML. `file` is the name for error messages. The entire spec is in `arena`; text and name are not
 * needed afterwards. Returns 0, or -1 with GRAFT_FORMAT "invalid CDI Spec: ..." (with line and
 * column where known), GRAFT_TOO_BIG (more than 16 MiB) or GRAFT_NO_MEMORY.
 */
int graft_cdi_spec_read(const char *file, const char *text, size_t length, struct graft_arena *arena,
			struct graft_cdi_spec *ret_spec, struct graft_error *err);
/*
 * The same, but does not stop at the first fault: adds all faults to `faults` (at most 100), sorted
 * by position. If any of them is not harmless, the spec must not be used. Returns 0, also if the
 * file has faults, or -1 with GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_cdi_spec_examine(const char *file, const char *text, size_t length, struct graft_cdi_faults *faults,
			   struct graft_cdi_spec *ret_spec, struct graft_error *err);

#endif
