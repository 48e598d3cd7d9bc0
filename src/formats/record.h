/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: plain structs with a JSON form, from one table.
 *
 * A record describes a C struct: the name, kind and offset of each field. The JSON writer, the JSON
 * reader, the comparison used by tests and the reference in docs/FORMATS.md are all derived from
 * it. Adding a fact takes one row in a table.
 *
 * Writing is deterministic: fields in table order, two-space indentation, a newline at the end. A
 * NULL string, an empty list, 0 and false are omitted (and read back as such), so read(write(x)) =
 * x, and write(read(t)) = t for any text t that was written. Reading is strict: an unknown member,
 * a wrong type, a number out of range or a missing `required` member is an error that names the
 * path ("gpus[2].minor"). All strings are copied into the arena.
 */
#ifndef GRAFT_FORMATS_RECORD_H
#define GRAFT_FORMATS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"

enum graft_field_kind {
	GRAFT_FIELD_STRING, /* const char *, may be NULL */
	GRAFT_FIELD_BOOL,   /* bool */
	GRAFT_FIELD_U32,    /* uint32_t */
	GRAFT_FIELD_U64,    /* uint64_t */
	GRAFT_FIELD_I64,    /* int64_t; always written when `required` */
	/*
	 * An enum stored in an int-sized field; written as enum_names[value]; the value 0 is
	 * omitted unless `required`.
	 */
	GRAFT_FIELD_ENUM,
	GRAFT_FIELD_FLAGS,   /* uint32_t of bits; written as a list of enum_names[bit number] */
	GRAFT_FIELD_STRINGS, /* const char ** + size_t */
	GRAFT_FIELD_RECORD,  /* embedded struct; written unless all of its fields are omitted */
	GRAFT_FIELD_RECORDS, /* struct * + size_t */
};

struct graft_field {
	const char *name; /* JSON member name, snake_case */
	enum graft_field_kind kind;
	uint32_t offset;                   /* of the field, or of the pointer to the list */
	uint32_t count_offset;             /* of the list's size_t; lists only */
	const struct graft_record *record; /* RECORD, RECORDS */
	const char *const *enum_names;     /* ENUM, FLAGS */
	uint32_t n_enum_names;
	bool required;   /* always written; an error if absent when read */
	const char *doc; /* one sentence for docs/FORMATS.md; NULL in a program that does not write it */
};

struct graft_record {
	const char *name;
	size_t size; /* sizeof the struct */
	const struct graft_field *fields;
	size_t n_fields;
};

/* Appends the JSON text of the struct at `object`. */
void graft_record_write(const struct graft_record *record, const void *object, struct graft_buffer *out);

/*
 * Parses `length` bytes of JSON into the zeroed struct at `object`. The top level must match
 * `record`. Limits: 16 MiB of text, 64 levels. Returns 0, or -1 with GRAFT_FORMAT (and the member's
 * path in the message), GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_record_read(const struct graft_record *record, const char *json, size_t length, struct graft_arena *arena,
		      void *object, struct graft_error *err);

/*
 * Returns whether two structs are deeply equal. If not, and if `ret_path` is given, writes the path
 * of the first difference to it.
 */
bool graft_record_equal(const struct graft_record *record, const void *a, const void *b, char *ret_path,
			size_t path_size);

/* Appends the Markdown reference of a record and, once each, of the records that it contains. */
void graft_record_document(const struct graft_record *record, struct graft_buffer *out);

/*
 * Rows of a table of fields. `S` is the struct, `m` the member. The size of a list is a member
 * named n_<m>.
 */
/* clang-format off */
#define GRAFT_F_ROW(S, m, kind_, ...) \
	{ .name = #m, .kind = (kind_), .offset = offsetof(S, m), __VA_ARGS__ }
#define GRAFT_F_LIST(S, m, kind_, ...) \
	GRAFT_F_ROW(S, m, kind_, .count_offset = offsetof(S, n_##m), __VA_ARGS__)

#define GRAFT_F_STRING(S, m, req, d)  GRAFT_F_ROW(S, m, GRAFT_FIELD_STRING, .required = (req), .doc = GRAFT_DOC(d))
#define GRAFT_F_BOOL(S, m, d)         GRAFT_F_ROW(S, m, GRAFT_FIELD_BOOL, .doc = GRAFT_DOC(d))
#define GRAFT_F_U32(S, m, req, d)     GRAFT_F_ROW(S, m, GRAFT_FIELD_U32, .required = (req), .doc = GRAFT_DOC(d))
#define GRAFT_F_U64(S, m, req, d)     GRAFT_F_ROW(S, m, GRAFT_FIELD_U64, .required = (req), .doc = GRAFT_DOC(d))
#define GRAFT_F_I64(S, m, req, d)     GRAFT_F_ROW(S, m, GRAFT_FIELD_I64, .required = (req), .doc = GRAFT_DOC(d))
#define GRAFT_F_ENUM(S, m, names, n, req, d) \
	GRAFT_F_ROW(S, m, GRAFT_FIELD_ENUM, .enum_names = (names), .n_enum_names = (n), .required = (req), \
		    .doc = GRAFT_DOC(d))
#define GRAFT_F_FLAGS(S, m, names, n, d) \
	GRAFT_F_ROW(S, m, GRAFT_FIELD_FLAGS, .enum_names = (names), .n_enum_names = (n), .doc = GRAFT_DOC(d))
#define GRAFT_F_STRINGS(S, m, d)      GRAFT_F_LIST(S, m, GRAFT_FIELD_STRINGS, .doc = GRAFT_DOC(d))
#define GRAFT_F_RECORD(S, m, rec, d)  GRAFT_F_ROW(S, m, GRAFT_FIELD_RECORD, .record = (rec), .doc = GRAFT_DOC(d))
#define GRAFT_F_RECORDS(S, m, rec, d) GRAFT_F_LIST(S, m, GRAFT_FIELD_RECORDS, .record = (rec), .doc = GRAFT_DOC(d))
/* clang-format on */

#endif
