/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_object: a tree of values into structs, by tables: which members an object has, where they go, since which version. Strict: what is unknown, given twice,
 * or of a wrong type is refused with its place. For src/formats/cdi*.c alone.
 */
#ifndef GRAFT_FORMATS_CDI_OBJECT_H
#define GRAFT_FORMATS_CDI_OBJECT_H

#include "formats/cdi.h"
#include "formats/cdi_check.h"
#include "formats/cdi_tree.h"

/* What aliases may add to the values that a file holds. */
#define CDI_ALIASED_MAX ((size_t)100000)

enum cdi_member_kind {
	CDI_MEMBER_TEXT,     /* const char *; an empty one counts as not there */
	CDI_MEMBER_TEXTS,    /* const char ** and a count */
	CDI_MEMBER_SIGNED,   /* int64_t */
	CDI_MEMBER_UNSIGNED, /* uint32_t and whether it is there */
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
	size_t offset, extra; /* extra: of the count, or of the bool that says "there" */
	const struct cdi_object *object;
	enum cdi_version since;
	bool since_if_empty; /* its presence alone asks for that version */
	const char *empty;   /* of a text: the word that stands for "" in a file; NULL = "" is the same as not there */
};

struct cdi_object {
	const struct cdi_member *members;
	size_t n_members, size;
	/* Says what is wrong with an object that stood at a value, by cdi_complain(). NULL = nothing to check. */
	int (*check)(struct cdi_reader *reader, const struct cdi_value *value, void *object);
};

/* A spec as a file has it: the kind in one word. */
struct cdi_file_spec {
	const char *version, *kind;
	struct graft_cdi_spec spec;
};
/* Of a struct cdi_file_spec, and of what it is made of. */
extern const struct cdi_object cdi_spec_object, cdi_edits_object, cdi_device_object;
/* The lowest version that allows such a name. */
enum cdi_version cdi_version_of_device(const char *name);
enum cdi_version cdi_version_of_class(const char *class_);

struct cdi_reader {
	const char *file;
	struct graft_arena *arena; /* the caller's */
	size_t budget;             /* of values that may still be read; without aliases they are as many as there are */
	enum cdi_version needed;   /* the lowest version that has what the file uses */
	struct graft_cdi_faults *faults; /* NULL: reading ends with the first fault */
	struct graft_error *err;
};

/* "FILE: line 1, column 2: invalid CDI Spec: ..." at a value's place, a fault as well where they are gathered; -1. */
__attribute__((format(printf, 3, 4))) int cdi_refuse(struct cdi_reader *reader, const struct cdi_value *value,
						     const char *format, ...);
#define cdi_refuse(...) ((void)(cdi_refuse)(__VA_ARGS__), -1)
/* Whether what was refused leaves something else to look at: faults are gathered, and it was one of the file. */
bool cdi_goes_on(const struct cdi_reader *reader);
/* Refuses, and says whether to go on: 0, or -1. */
#define cdi_complain(reader, ...) ((void)(cdi_refuse)(reader, __VA_ARGS__), cdi_goes_on(reader) ? 0 : -1)
/* Something that readers take, and that is not as it should be: a fault of its own kind where faults are gathered. 0, or -1: GRAFT_NO_MEMORY. */
__attribute__((format(printf, 3, 4))) int cdi_remark(struct cdi_reader *reader, const struct cdi_value *value,
						     const char *format, ...);

/* Fills the zeroed struct at `target` from a map (null stands for an empty one). `name` is what messages call it. */
int cdi_read_object(struct cdi_reader *reader, const struct cdi_value *value, const struct cdi_object *object,
		    const char *name, void *target);

#endif
