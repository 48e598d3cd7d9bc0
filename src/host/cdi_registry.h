/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_registry: the CDI specs of the host's directories (SPEC ctk-and-cdi 5.5), and what a list of device names means by them.
 *
 *	read	the files of the directories; only those are parsed that can speak of the kinds asked for
 *	resolve	names to devices, by priority; fails closed
 *	merge	the devices' edits to one set, held against the host: what is not there any more is an error that names the spec
 */
#ifndef GRAFT_HOST_CDI_REGISTRY_H
#define GRAFT_HOST_CDI_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/cdi.h"

struct graft_cdi_problem {
	const char *file; /* spec that was skipped, or whose device conflicts */
	const char *why;
};

struct graft_cdi_registry {
	struct graft_cdi_spec *specs; /* in ascending priority, then by name */
	size_t *priorities;           /* of each spec: index of its directory */
	size_t n_specs, n_priorities;
	size_t n_passed_over; /* files that do not mention a kind that was asked for; not parsed */
	struct graft_cdi_problem *problems;
	size_t n_problems;
};

/*
 * Reads the directories, ascending priority. With `kinds` ("vendor/class") files that cannot define one of them are not parsed. A
 * missing directory is fine; an invalid file is a problem, not a failure. -1: GRAFT_IO, GRAFT_PERMISSION (a directory that cannot be read might hide what
 * overrides another), GRAFT_NO_MEMORY.
 */
int graft_cdi_registry_read(const char *const *directories, size_t n_directories, const char *const *kinds,
			    size_t n_kinds, const struct graft_log *log, struct graft_arena *arena,
			    struct graft_cdi_registry *ret_registry, struct graft_error *err);

/* The parts of which the above is made. Names of the files of a directory that are specs by their endings, sorted. -1: as above, also if it is not there. */
int graft_cdi_directory_list(const char *directory, struct graft_arena *arena, const char ***ret_names, size_t *ret_n,
			     struct graft_error *err);
/* The text of one file; GRAFT_TOO_BIG beyond 16 MiB. */
int graft_cdi_file_read(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
			struct graft_error *err);
/* Adds a spec behind the others. Its priority is not below theirs. */
int graft_cdi_registry_add(struct graft_cdi_registry *registry, const struct graft_cdi_spec *spec, size_t priority,
			   struct graft_arena *arena, struct graft_error *err);

/* What a definition of a device is worth among those of the same name. */
enum graft_cdi_standing {
	GRAFT_CDI_COUNTS,      /* who asks for the name gets this */
	GRAFT_CDI_OVERRIDDEN,  /* `other` has a higher priority */
	GRAFT_CDI_CONFLICTING, /* `other` has the same priority, and none is higher: nobody gets the name */
};
struct graft_cdi_definition {
	const char *name; /* qualified */
	const struct graft_cdi_spec *spec, *other;
	enum graft_cdi_standing standing;
};

/*
 * All definitions of all devices, by name, those of one name by priority; the same rules as graft_cdi_registry_resolve(). Pure. -1:
 * GRAFT_NO_MEMORY.
 */
int graft_cdi_registry_definitions(const struct graft_cdi_registry *registry, struct graft_arena *arena,
				   struct graft_cdi_definition **ret_definitions, size_t *ret_n,
				   struct graft_error *err);

/* One set of edits: a device's, or (device NULL) what its spec has for all of its devices. */
struct graft_cdi_choice {
	const struct graft_cdi_spec *spec;
	const struct graft_cdi_device *device;
};

/*
 * The edits for qualified names, in order: each spec's common edits the first time it is met, then the device's (SPEC runtime-and-hook 8). A
 * name given twice counts once. Of several definitions the one of the highest priority counts; two of the same priority are a conflict, which
 * becomes a problem of both files and leaves the name unresolved, unless a higher priority decides. Pure.
 * -1: GRAFT_UNKNOWN_DEVICE "unresolvable CDI devices a, b"; GRAFT_NO_MEMORY.
 */
int graft_cdi_registry_resolve(struct graft_cdi_registry *registry, const char *const *names, size_t n_names,
			       struct graft_arena *arena, struct graft_cdi_choice **ret_choices, size_t *ret_n,
			       struct graft_error *err);

/* Puts the choices together, list by list. Pure. */
int graft_cdi_choices_merge(const struct graft_cdi_choice *choices, size_t n, struct graft_arena *arena,
			    struct graft_cdi_edits *ret_edits, struct graft_error *err);

/*
 * The same, with what the host has: type, numbers and mode of device nodes are the host's where the spec leaves them open, and also where it says
 * other numbers than the node has now (the log warns: majors change with a reboot). -1: GRAFT_NOT_FOUND "CDI spec FILE is stale: ..." when a node is not on the host;
 * GRAFT_INVALID when it is of another type.
 */
int graft_cdi_choices_realize_nodes(const struct graft_cdi_choice *choices, size_t n, const struct graft_log *log,
				    struct graft_arena *arena, struct graft_cdi_edits *ret_edits,
				    struct graft_error *err);
/*
 * -1: GRAFT_NOT_FOUND "CDI spec FILE is stale: ..." when the source of a bind mount or the program of a hook is not on the host. `seen`: sources of mounts that were found
 * already, in the order of the choices; nobody looks again.
 */
int graft_cdi_choices_check_paths(const struct graft_cdi_choice *choices, size_t n, const char *const *seen,
				  size_t n_seen, struct graft_error *err);
/* Both. */
int graft_cdi_choices_realize(const struct graft_cdi_choice *choices, size_t n, const struct graft_log *log,
			      struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_error *err);

#endif
