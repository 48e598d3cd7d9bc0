/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_object: converts a tree of values to structs, driven by tables: the members of each object,
 * where they are stored, and the version that introduced them. Strict: anything unknown, duplicate
 * or of the wrong type is refused with its position. Only for src/formats/cdi.
 */
#ifndef GRAFT_FORMATS_CDI_CDI_OBJECT_H
#define GRAFT_FORMATS_CDI_CDI_OBJECT_H

#include "formats/cdi/cdi.h"
#include "formats/cdi/cdi_check.h"
#include "formats/tree/tree.h"

#define CDI_TEXT_MAX ((size_t)16 * 1024 * 1024)
#define CDI_INVALID  "invalid CDI Spec: " /* what messages about a file begin with */

enum cdi_member_kind {
	CDI_MEMBER_TEXT,     /* const char *; an empty one is treated as absent */
	CDI_MEMBER_TEXTS,    /* const char ** and a count */
	CDI_MEMBER_SIGNED,   /* int64_t */
	CDI_MEMBER_UNSIGNED, /* uint32_t, and a bool: present */
	CDI_MEMBER_GROUPS,   /* uint32_t * and a count */
	CDI_MEMBER_FLAG,     /* bool */
	CDI_MEMBER_WORDS,    /* struct graft_cdi_annotation * and a count: a map of texts */
	CDI_MEMBER_OBJECT,   /* a struct */
	CDI_MEMBER_POINTER,  /* a struct, by pointer */
	CDI_MEMBER_OBJECTS,  /* an array of structs and a count */
};

struct cdi_object;
struct cdi_reader;

struct cdi_member {
	const char *name;
	enum cdi_member_kind kind;
	size_t offset, extra; /* extra: of the count, or of the bool "present" */
	const struct cdi_object *object;
	enum cdi_version since;
	bool since_if_empty; /* an empty one already requires that version */
	const char *empty;   /* of a text: the spelling of "" in a file; NULL: "" is the same as absent */
};

struct cdi_object {
	const struct cdi_member *members;
	size_t n_members, size;
	/*
	 * Reports, by cdi_complain(), what is wrong with an object read from `value`. NULL: nothing
	 * to check.
	 */
	int (*check)(struct cdi_reader *reader, const struct graft_tree_value *value, void *object);
};

/* A spec as stored in a file, where the kind is a single string. */
struct cdi_file_spec {
	const char *version, *kind;
	struct graft_cdi_spec spec;
};
/* The table of struct cdi_file_spec, and those of its parts. */
extern const struct cdi_object cdi_spec_object, cdi_edits_object, cdi_device_object;
/* Returns the size of an item of TEXTS, GROUPS or OBJECTS. */
size_t cdi_item_size(const struct cdi_member *member);
/* Return the lowest version that allows such a name. */
enum cdi_version cdi_version_of_device(const char *name);
enum cdi_version cdi_version_of_class(const char *class_);

struct cdi_reader {
	const char *file;
	struct graft_arena *arena;       /* the caller's */
	size_t budget;                   /* how many values may still be read; only aliases can exhaust it */
	enum cdi_version needed;         /* the lowest version that supports everything in the file */
	struct graft_cdi_faults *faults; /* NULL: stop at the first fault */
	struct graft_error *err;
};

/*
 * Refuses a value: sets the error "FILE: line 1, column 2: invalid CDI Spec: ...", and records a
 * fault if faults are collected. Returns -1.
 */
__attribute__((format(printf, 3, 4))) int cdi_refuse(struct cdi_reader *reader, const struct graft_tree_value *value,
						     const char *format, ...);
#define cdi_refuse(...) ((void)(cdi_refuse)(__VA_ARGS__), -1)
/*
 * Returns whether to continue after something was refused: faults are collected, and it was a fault
 * of the file.
 */
bool cdi_goes_on(const struct cdi_reader *reader);
/* Refuses a value. Returns 0 if reading continues, otherwise -1. */
#define cdi_complain(reader, ...) ((void)(cdi_refuse)(reader, __VA_ARGS__), cdi_goes_on(reader) ? 0 : -1)
/*
 * Records a harmless fault, one that readers accept, if faults are collected. Returns 0, or -1 with
 * GRAFT_NO_MEMORY.
 */
__attribute__((format(printf, 3, 4))) int cdi_remark(struct cdi_reader *reader, const struct graft_tree_value *value,
						     const char *format, ...);

/*
 * Fills the zeroed struct at `target` from a map (null is an empty one). `name` is used in
 * messages. Returns 0 or -1.
 */
int cdi_read_object(struct cdi_reader *reader, const struct graft_tree_value *value, const struct cdi_object *object,
		    const char *name, void *target);

#endif
