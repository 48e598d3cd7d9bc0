/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_registry: the CDI specs in the host's directories (SPEC ctk-and-cdi 5.5), and what a list of
 * device names means by them.
 *
 * 	read	the files of the directories; only those that can define a requested kind are parsed
 * 	resolve	names to devices, by priority; fails closed
 * 	merge	the devices' edits into one set, checked against the host; errors name the stale spec
 */
#ifndef GRAFT_HOST_CDI_REGISTRY_H
#define GRAFT_HOST_CDI_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/cdi/cdi.h"

struct graft_cdi_problem {
	const char *file; /* the spec that was skipped, or whose device conflicts */
	const char *why;
};

struct graft_cdi_registry {
	struct graft_cdi_spec *specs; /* in ascending priority, then by name */
	size_t *priorities;           /* of each spec: index of its directory */
	size_t n_specs;
	size_t n_passed_over; /* files that mention no requested kind and were not parsed */
	struct graft_cdi_problem *problems;
	size_t n_problems;
};

/*
 * Reads the directories, which are in ascending priority. If `kinds` ("vendor/class") are given,
 * files that cannot define any of them are not parsed. A missing directory is not an error; an
 * invalid file is recorded as a problem. Returns -1 with GRAFT_IO or GRAFT_PERMISSION if a
 * directory cannot be read, since it might contain a spec that overrides another one; with
 * GRAFT_TOO_BIG if `budget` is spent before the last file is read (NULL: no limit); or with
 * GRAFT_NO_MEMORY.
 */
int graft_cdi_registry_read(const char *const *directories, size_t n_directories, const char *const *kinds,
			    size_t n_kinds, struct graft_budget *budget, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_cdi_registry *ret_registry,
			    struct graft_error *err);

/*
 * Parts of graft_cdi_registry_read(). Lists the files in a directory that are specs by their
 * extension, sorted. Returns -1 as above, also if the directory does not exist.
 */
int graft_cdi_directory_list(const char *directory, struct graft_arena *arena, const char ***ret_names, size_t *ret_n,
			     struct graft_error *err);
/* Reads one file. Returns -1 with GRAFT_TOO_BIG if it exceeds 16 MiB. */
int graft_cdi_file_read(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
			struct graft_error *err);
/* The same for a file that a user names: also from standard input ("-"), pipes and devices. */
int graft_cdi_input_read(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
			 struct graft_error *err);
/* Appends a spec. Its priority must not be lower than that of the specs already there. */
int graft_cdi_registry_add(struct graft_cdi_registry *registry, const struct graft_cdi_spec *spec, size_t priority,
			   struct graft_arena *arena, struct graft_error *err);

/* How a definition of a device relates to others of the same name. */
enum graft_cdi_standing {
	GRAFT_CDI_COUNTS,      /* applies when the name is requested */
	GRAFT_CDI_OVERRIDDEN,  /* `other` has a higher priority */
	GRAFT_CDI_CONFLICTING, /* `other` has the same priority and none is higher: the name is unusable */
};
struct graft_cdi_definition {
	const char *name; /* qualified */
	const struct graft_cdi_spec *spec, *other;
	enum graft_cdi_standing standing;
};

/*
 * Returns all definitions of all devices, sorted by name, those of one name by priority. Follows
 * the same rules as graft_cdi_registry_resolve(). Pure. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_cdi_registry_definitions(const struct graft_cdi_registry *registry, struct graft_arena *arena,
				   struct graft_cdi_definition **ret_definitions, size_t *ret_n,
				   struct graft_error *err);

/*
 * One set of edits: a device's, or, if `device` is NULL, those that its spec has for all its
 * devices.
 */
struct graft_cdi_choice {
	const struct graft_cdi_spec *spec;
	const struct graft_cdi_device *device;
};

/*
 * Returns the edits for qualified names, in order: the common edits of each spec on its first use,
 * then the device's (SPEC runtime-and-hook 8). Repeated names are ignored. Among several
 * definitions of a device, the one of the highest priority applies; two of the same priority
 * conflict, unless a higher one decides: the conflict is recorded as a problem of both files, and
 * the name remains unresolved. Pure. Returns -1 with GRAFT_UNKNOWN_DEVICE "unresolvable CDI devices
 * a, b" or GRAFT_NO_MEMORY.
 */
int graft_cdi_registry_resolve(struct graft_cdi_registry *registry, const char *const *names, size_t n_names,
			       struct graft_arena *arena, struct graft_cdi_choice **ret_choices, size_t *ret_n,
			       struct graft_error *err);

/* Concatenates the choices, list by list. Pure. Returns -1 with GRAFT_NO_MEMORY. */
int graft_cdi_choices_merge(const struct graft_cdi_choice *choices, size_t n, struct graft_arena *arena,
			    struct graft_cdi_edits *ret_edits, struct graft_error *err);

/*
 * Like graft_cdi_choices_merge(), but completes device nodes from the host: type, numbers and mode
 * where the spec leaves them open, and the numbers also where the spec has outdated ones (the log
 * warns: majors change with a reboot). Returns -1 with GRAFT_NOT_FOUND "CDI spec FILE is stale:
 * ..." if the host lacks a node, with GRAFT_INVALID if a node is of another type, or with
 * GRAFT_NO_MEMORY.
 */
int graft_cdi_choices_realize_nodes(const struct graft_cdi_choice *choices, size_t n, const struct graft_log *log,
				    struct graft_arena *arena, struct graft_cdi_edits *ret_edits,
				    struct graft_error *err);
/*
 * Checks that the sources of bind mounts exist on the host, and the programs of hooks that run
 * there. `seen` lists sources of mounts that are known to exist, in the order of the choices; they
 * are not checked again. Returns -1 with GRAFT_NOT_FOUND "CDI spec FILE is stale: ...".
 */
int graft_cdi_choices_check_paths(const struct graft_cdi_choice *choices, size_t n, const char *const *seen,
				  size_t n_seen, struct graft_error *err);
/* graft_cdi_choices_realize_nodes(), then graft_cdi_choices_check_paths(). */
int graft_cdi_choices_realize(const struct graft_cdi_choice *choices, size_t n, const struct graft_log *log,
			      struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_error *err);

/* A file that was examined. */
struct graft_cdi_examined {
	const char *path;
	struct graft_cdi_faults faults; /* sorted by place */
	bool valid;                     /* readers accept it: any faults it has are harmless */
};

/*
 * Examines files and directories of specs. Later directories override earlier ones, as an engine's
 * directories do; files that are named explicitly are examined alone. Conflicts between files are
 * faults of those files: a device that two specs of one directory define, which makes it unusable,
 * and, as harmless faults, devices that a later directory overrides and an explicitly named file
 * whose extension makes readers ignore it.
 *
 * A named file may also be a pipe, or "-" for standard input. A file that cannot be read has that
 * as its fault. With `may_be_missing`, paths that do not exist are ignored. Returns -1 if a
 * directory cannot be read, or with GRAFT_NO_MEMORY.
 */
int graft_cdi_examine(const char *const *paths, size_t n_paths, bool may_be_missing, struct graft_arena *arena,
		      struct graft_cdi_examined **ret_files, size_t *ret_n, struct graft_error *err);

#endif
