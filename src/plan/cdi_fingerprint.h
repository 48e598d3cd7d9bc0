/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_fingerprint: what a CDI specification was made from, kept in the specification itself, so that whoever uses it later can see that the host is another one by
 * now. Pure. docs/cdi-generate.md says what other readers of specifications see of it.
 */
#ifndef GRAFT_PLAN_CDI_FINGERPRINT_H
#define GRAFT_PLAN_CDI_FINGERPRINT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi.h"
#include "host/inventory.h"

/* The facts; NULL = not known, or of no matter for this specification. Same host, same texts. */
struct graft_cdi_fingerprint {
	const char *driver_version; /* "550.54.14" */
	const char *gpus;           /* "00000000:1b:00.0=GPU-...,00000000:1c:00.0=": by place, the UUID behind it */
	const char *mig;            /* "00000000:1c:00.0=1/0+2/0": GPU and compute instances; "" = there are none */
	const char *boot_id;        /* host/boot.h */
	const char *flags;          /* how it was made: graft_cdi_flags_write() */
};

/*
 * The options of the command that makes a specification, as one text that any place can hold, and back. What is no printable ASCII, ' ', ';' and '%' are
 * written as %XX. NULL, and -1: GRAFT_NO_MEMORY.
 */
const char *graft_cdi_flags_write(const char *const *words, size_t n, struct graft_arena *arena);
int graft_cdi_flags_read(const char *text, struct graft_arena *arena, const char ***ret_words, size_t *ret_n,
			 struct graft_error *err);

/*
 * The facts of a host. GPUs and MIG devices are taken if the inventory has looked for them: `gpus` says so. Names point into the arena. -1:
 * GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_make(const struct graft_inventory *inventory, bool gpus, const char *boot_id,
			       struct graft_arena *arena, struct graft_cdi_fingerprint *ret_fingerprint,
			       struct graft_error *err);

/*
 * Where it is put. Annotations are for this, but readers of before 0.6.0 of the CDI refuse a specification that has any, so that AUTO has them only where the
 * specification needs 0.6.0 for another reason, and a variable of its first hook otherwise, which everybody passes on and no container sees.
 */
enum graft_cdi_provenance {
	GRAFT_CDI_PROVENANCE_AUTO,
	GRAFT_CDI_PROVENANCE_ANNOTATIONS,
	GRAFT_CDI_PROVENANCE_NONE,
	GRAFT_CDI_PROVENANCE_MAX
};
extern const char *const graft_cdi_provenance_names[GRAFT_CDI_PROVENANCE_MAX]; /* auto annotations none */

/* Puts it into the specification, as the last step of making it. 1: stored; 0: there is no place for it (AUTO without hooks), or none was wanted; -1: GRAFT_NO_MEMORY. */
int graft_cdi_fingerprint_store(const struct graft_cdi_fingerprint *fingerprint, enum graft_cdi_provenance where,
				struct graft_arena *arena, struct graft_cdi_spec *spec, struct graft_error *err);
/* Reads it back, from either place; what is not said is NULL. 1: found; 0: the specification says nothing; -1: GRAFT_NO_MEMORY. */
int graft_cdi_fingerprint_find(const struct graft_cdi_spec *spec, struct graft_arena *arena,
			       struct graft_cdi_fingerprint *ret_fingerprint, struct graft_error *err);

/*
 * Takes it out of the hooks of edits that are about to be used: it was read, and would be all that keeps hooks apart that can run as one process
 * (join_hooks.h). What changes is copied. -1: GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_drop(struct graft_cdi_edits *edits, struct graft_arena *arena, struct graft_error *err);

/*
 * For a comparison that only matters to some devices of the specification, by their names: *ret_places are those in `made` where no GPU is theirs, and what it says
 * of the MIG devices there is left out. Names that are no index and no UUID of a GPU may be anything: then nothing is assumed. In the arena. -1: GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_narrow(struct graft_cdi_fingerprint *made, const char *const *devices, size_t n_devices,
				 struct graft_arena *arena, const char ***ret_places, size_t *ret_n,
				 struct graft_error *err);

/*
 * Why a device of the specification is another GPU than the one that it was made for, which has another node by now (drivers count GPUs that they leave alone, or do
 * not): *ret_why is a sentence for a person, NULL when all are what they were. Devices whose name is no index and no UUID of `made`, and GPUs of which `now` knows no
 * node, are not compared. -1: GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_compare_nodes(const struct graft_cdi_fingerprint *made, const struct graft_inventory *now,
					const struct graft_cdi_spec *spec, const char *const *devices, size_t n_devices,
					struct graft_arena *arena, const char **ret_why, struct graft_error *err);

/*
 * Why a specification that was made from `made` does not fit a host that is as `now`: *ret_why is a sentence for a person, NULL when it fits. Facts that either side
 * does not know are not compared; nor are the flags, which are no fact of the host, nor the boot: our specifications hold no number that changes with it. -1: GRAFT_NO_MEMORY.
 */
int graft_cdi_fingerprint_compare(const struct graft_cdi_fingerprint *made, const struct graft_cdi_fingerprint *now,
				  struct graft_arena *arena, const char **ret_why, struct graft_error *err);

#endif
