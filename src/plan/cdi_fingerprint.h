/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_fingerprint: the facts from which a CDI specification was made, stored in the specification,
 * so that its later users can detect that the host has changed. Pure. docs/cdi-generate.md
 * describes what other readers of specifications see of it.
 */
#ifndef GRAFT_PLAN_CDI_FINGERPRINT_H
#define GRAFT_PLAN_CDI_FINGERPRINT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi/cdi.h"
#include "host/inventory.h"

/*
 * The facts; NULL = not known, or irrelevant to this specification. Equal hosts give equal texts.
 */
struct graft_cdi_fingerprint {
	const char *driver_version; /* "550.54.14" */
	const char *gpus;           /* "00000000:1b:00.0=GPU-...,00000000:1c:00.0=": the UUID by place */
	const char *mig;            /* "00000000:1c:00.0=1/0+2/0": GPU and compute instances; "" = none */
	const char *boot_id;        /* host/discover.h */
	const char *flags;          /* how it was made: graft_cdi_flags_write() */
};

/*
 * graft_cdi_flags_write() encodes the options of the command that makes a specification as one text
 * that can be stored anywhere; graft_cdi_flags_read() decodes them. Everything but printable ASCII,
 * and ' ', ';' and '%', is written as %XX. They return NULL, or -1 with GRAFT_NO_MEMORY, if memory
 * is exhausted.
 */
const char *graft_cdi_flags_write(const char *const *words, size_t n, struct graft_arena *arena);
int graft_cdi_flags_read(const char *text, struct graft_arena *arena, const char ***ret_words, size_t *ret_n,
			 struct graft_error *err);

/*
 * Collects the facts of a host. `gpus` is true if the inventory has looked for GPUs and MIG
 * devices; only then are they included. Strings point into the arena and the inventory. Returns -1
 * with GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_make(const struct graft_inventory *inventory, bool gpus, const char *boot_id,
			       struct graft_arena *arena, struct graft_cdi_fingerprint *ret_fingerprint,
			       struct graft_error *err);

/*
 * Where the fingerprint is stored. Annotations are meant for this, but CDI readers before 0.6.0
 * refuse a specification that has any. AUTO therefore uses them only if the specification needs
 * 0.6.0 for another reason, and otherwise a variable of its first hook, which all readers pass on
 * and no container sees.
 */
enum graft_cdi_provenance {
	GRAFT_CDI_PROVENANCE_AUTO,
	GRAFT_CDI_PROVENANCE_ANNOTATIONS,
	GRAFT_CDI_PROVENANCE_NONE,
	GRAFT_CDI_PROVENANCE_MAX
};
extern const char *const graft_cdi_provenance_names[GRAFT_CDI_PROVENANCE_MAX]; /* auto annotations none */

/*
 * Stores the fingerprint in the specification; this must be the last step of making it. Returns 1
 * if it was stored, 0 if not (AUTO without hooks has no place for it, NONE wants none), or -1 with
 * GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_store(const struct graft_cdi_fingerprint *fingerprint, enum graft_cdi_provenance where,
				struct graft_arena *arena, struct graft_cdi_spec *spec, struct graft_error *err);
/*
 * Reads the fingerprint back from either place; facts that are not stored are NULL. Returns 1 if
 * found, 0 if the specification has none, or -1 with GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_find(const struct graft_cdi_spec *spec, struct graft_arena *arena,
			       struct graft_cdi_fingerprint *ret_fingerprint, struct graft_error *err);

/*
 * Removes the fingerprint from the hooks of edits that are about to be used. It has been read, and
 * would only prevent hooks from being joined into one process (join_hooks.h). What changes is
 * copied. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_drop(struct graft_cdi_edits *edits, struct graft_arena *arena, struct graft_error *err);

/*
 * Restricts a comparison to some devices of the specification, given by name: *ret_places are the
 * places in `made` of GPUs that are not among them, and the MIG devices at those places are removed
 * from `made`. A name that is neither an index nor a UUID of a GPU could refer to anything; then
 * nothing is restricted. Results are in the arena. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_narrow(struct graft_cdi_fingerprint *made, const char *const *devices, size_t n_devices,
				 struct graft_arena *arena, const char ***ret_places, size_t *ret_n,
				 struct graft_error *err);

/*
 * Checks whether a device of the specification is now another GPU than the one that it was made
 * for, because that GPU's node has changed (drivers may or may not number GPUs that they do not
 * use). *ret_why is a sentence for a person; NULL if nothing changed. Devices whose name is not an
 * index or UUID in `made`, and GPUs whose node `now` does not have, are not compared. Returns -1
 * with GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_compare_nodes(const struct graft_cdi_fingerprint *made, const struct graft_inventory *now,
					const struct graft_cdi_spec *spec, const char *const *devices, size_t n_devices,
					struct graft_arena *arena, const char **ret_why, struct graft_error *err);

/*
 * Checks whether a specification made from `made` fits a host in the state `now`. *ret_why is a
 * sentence for a person that explains why not; NULL if it fits. Facts that either side lacks are
 * not compared; nor are the flags, which are not a fact of the host, nor the boot id, because our
 * specifications contain no number that changes with a boot. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_compare(const struct graft_cdi_fingerprint *made, const struct graft_cdi_fingerprint *now,
				  struct graft_arena *arena, const char **ret_why, struct graft_error *err);

#endif
