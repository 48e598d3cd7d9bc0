/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: walks the table of a struct to write, read, compare or describe it, with one switch over
 * the field kinds for each of the four. Does not know what the fields mean.
 */
#include "formats/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "formats/json/json.h"

#define DEPTH_MAX 64
#define PATH_SIZE 256

static const void *get_field_place(const void *object, size_t offset)
{
	return (const char *)object + offset;
}

/* Members are read through memcpy: only the table knows their types, the compiler does not. */
#define MEMBER(type, object, offset)                                              \
	({                                                                        \
		type value_;                                                      \
		memcpy(&value_, get_field_place(object, offset), sizeof(value_)); \
		value_;                                                           \
	})

static size_t list_length(const struct graft_field *field, const void *object)
{
	return MEMBER(size_t, object, field->count_offset);
}

static size_t item_size(const struct graft_field *field)
{
	return field->kind == GRAFT_FIELD_STRINGS ? sizeof(const char *) : field->record->size;
}

static const void *list_item(const struct graft_field *field, const void *object, size_t i)
{
	return MEMBER(const char *, object, field->offset) + i * item_size(field);
}

static bool is_empty_record(const struct graft_record *record, const void *object);

/* Returns whether a field has the value that it gets if the member is absent. */
static bool is_default_field(const struct graft_field *field, const void *object)
{
	switch (field->kind) {
	case GRAFT_FIELD_STRING:
		return !MEMBER(const char *, object, field->offset);
	case GRAFT_FIELD_BOOL:
		return !MEMBER(bool, object, field->offset);
	case GRAFT_FIELD_U32:
	case GRAFT_FIELD_ENUM:
	case GRAFT_FIELD_FLAGS:
		return MEMBER(uint32_t, object, field->offset) == 0;
	case GRAFT_FIELD_U64:
	case GRAFT_FIELD_I64:
		return MEMBER(uint64_t, object, field->offset) == 0;
	case GRAFT_FIELD_STRINGS:
	case GRAFT_FIELD_RECORDS:
		return list_length(field, object) == 0;
	case GRAFT_FIELD_RECORD:
		return is_empty_record(field->record, get_field_place(object, field->offset));
	}
	return false;
}

/* A required string that is NULL cannot be written. It is omitted, and reading it back fails. */
static bool is_written(const struct graft_field *field, const void *object)
{
	if (field->kind == GRAFT_FIELD_STRING)
		return !is_default_field(field, object);
	return field->required || !is_default_field(field, object);
}

static bool is_empty_record(const struct graft_record *record, const void *object)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		if (is_written(&record->fields[i], object))
			return false;
	}
	return true;
}

static void indent(struct graft_buffer *out, unsigned int level)
{
	for (unsigned int i = 0; i < level; i++)
		graft_buffer_string(out, "  ");
}

static void write_record(const struct graft_record *record, const void *object, unsigned int level,
			 struct graft_buffer *out);

static void write_enum(const struct graft_field *field, uint32_t value, struct graft_buffer *out)
{
	if (value < field->n_enum_names)
		graft_json_quote(out, field->enum_names[value]);
	else
		graft_buffer_printf(out, "%" PRIu32, value);
}

static void write_flags(const struct graft_field *field, uint32_t value, struct graft_buffer *out)
{
	const char *separator = "";

	graft_buffer_char(out, '[');
	for (uint32_t bit = 0; bit < 32; bit++) {
		if (!(value >> bit & 1u))
			continue;
		graft_buffer_string(out, separator);
		write_enum(field, bit, out);
		separator = ", ";
	}
	graft_buffer_char(out, ']');
}

static void write_list_field(const struct graft_field *field, const void *object, unsigned int level,
			     struct graft_buffer *out)
{
	size_t n = list_length(field, object);

	graft_buffer_char(out, '[');
	for (size_t i = 0; i < n; i++) {
		const void *item = list_item(field, object, i);

		graft_buffer_string(out, i == 0 ? "\n" : ",\n");
		indent(out, level + 1);
		if (field->kind == GRAFT_FIELD_STRINGS)
			graft_json_quote(out, MEMBER(const char *, item, 0));
		else
			write_record(field->record, item, level + 1, out);
	}
	if (n > 0) {
		graft_buffer_char(out, '\n');
		indent(out, level);
	}
	graft_buffer_char(out, ']');
}

static void write_field(const struct graft_field *field, const void *object, unsigned int level,
			struct graft_buffer *out)
{
	switch (field->kind) {
	case GRAFT_FIELD_STRING:
		graft_json_quote(out, MEMBER(const char *, object, field->offset));
		return;
	case GRAFT_FIELD_BOOL:
		graft_buffer_string(out, MEMBER(bool, object, field->offset) ? "true" : "false");
		return;
	case GRAFT_FIELD_U32:
		graft_buffer_printf(out, "%" PRIu32, MEMBER(uint32_t, object, field->offset));
		return;
	case GRAFT_FIELD_U64:
		graft_buffer_printf(out, "%" PRIu64, MEMBER(uint64_t, object, field->offset));
		return;
	case GRAFT_FIELD_I64:
		graft_buffer_printf(out, "%" PRId64, MEMBER(int64_t, object, field->offset));
		return;
	case GRAFT_FIELD_ENUM:
		write_enum(field, MEMBER(uint32_t, object, field->offset), out);
		return;
	case GRAFT_FIELD_FLAGS:
		write_flags(field, MEMBER(uint32_t, object, field->offset), out);
		return;
	case GRAFT_FIELD_STRINGS:
	case GRAFT_FIELD_RECORDS:
		write_list_field(field, object, level, out);
		return;
	case GRAFT_FIELD_RECORD:
		write_record(field->record, get_field_place(object, field->offset), level, out);
		return;
	}
}

static void write_record(const struct graft_record *record, const void *object, unsigned int level,
			 struct graft_buffer *out)
{
	const char *separator = "\n";

	graft_buffer_char(out, '{');
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct graft_field *field = &record->fields[i];

		if (!is_written(field, object))
			continue;
		graft_buffer_string(out, separator);
		indent(out, level + 1);
		graft_json_quote(out, field->name);
		graft_buffer_string(out, ": ");
		write_field(field, object, level + 1, out);
		separator = ",\n";
	}
	if (separator[0] == ',') {
		graft_buffer_char(out, '\n');
		indent(out, level);
	}
	graft_buffer_char(out, '}');
}

void graft_record_write(const struct graft_record *record, const void *object, struct graft_buffer *out)
{
	write_record(record, object, 0, out);
	graft_buffer_char(out, '\n');
}

/* `path` is the reader's position, for messages: "gpus[2].minor". */
struct reader {
	struct graft_arena *arena;
	struct graft_error *err;
	/*
	 * The path to the value being read, for messages: names of members, and NULL for an item of
	 * a list.
	 */
	struct step {
		const char *name;
		size_t index;
	} way[DEPTH_MAX + 1];
	size_t n_steps;
};

/* JSON that is nested deeper than the path has room is not parsed. `name` NULL: a list's item. */
static void enter(struct reader *reader, const char *name, size_t index)
{
	reader->way[reader->n_steps++] = (struct step){ name, index };
}

static void leave(struct reader *reader)
{
	reader->n_steps--;
}

/* `word` may be NULL. */
static int fail_at_word(struct reader *reader, const char *what, const char *word)
{
	auto_buffer struct graft_buffer way = { .max = 0 };

	for (size_t i = 0; i < reader->n_steps; i++) {
		if (!reader->way[i].name)
			graft_buffer_printf(&way, "[%zu]", reader->way[i].index);
		else
			graft_buffer_printf(&way, "%s%s", i > 0 ? "." : "", reader->way[i].name);
	}
	return graft_fail(reader->err, GRAFT_FORMAT, 0, word ? "%.255s: %s '%.64s'" : "%.255s: %s",
			  way.length > 0 ? graft_buffer_text(&way) : "document", what, word);
}

static int fail_here(struct reader *reader, const char *what)
{
	return fail_at_word(reader, what, NULL);
}

static int read_record(struct reader *reader, const struct graft_record *record, const struct graft_json_node *json,
		       void *object);

static int read_string_field(struct reader *reader, const struct graft_json_node *json, void *member)
{
	const char *text = graft_json_node_string(json);

	if (graft_json_node_kind(json) != GRAFT_JSON_STRING)
		return fail_here(reader, "must be a string");
	if (!text)
		return fail_here(reader, "contains a NUL character");
	text = graft_arena_strdup(reader->arena, text);
	memcpy(member, &text, sizeof(text));
	return text ? 0 : graft_fail_memory(reader->err);
}

/* The parser has refused integers beyond 64 bits. */
static int read_number_field(struct reader *reader, const struct graft_field *field, const struct graft_json_node *json,
			     void *member)
{
	uint64_t value = 0;
	int64_t whole = 0;
	bool is_unsigned = graft_json_node_u64(json, &value), is_signed = graft_json_node_i64(json, &whole);
	uint32_t value32;

	if (!is_unsigned && !is_signed)
		return fail_here(reader, "must be a whole number");
	if (field->kind != GRAFT_FIELD_I64 && whole < 0)
		return fail_here(reader, "must not be negative");
	if (field->kind == GRAFT_FIELD_I64 ? !is_signed : field->kind == GRAFT_FIELD_U32 && value > UINT32_MAX)
		return fail_here(reader, "number out of range");
	value32 = (uint32_t)value;
	if (field->kind == GRAFT_FIELD_U32)
		memcpy(member, &value32, sizeof(value32));
	else
		memcpy(member, is_unsigned ? (const void *)&value : &whole, sizeof(value));
	return 0;
}

static int read_enum(struct reader *reader, const struct graft_field *field, const struct graft_json_node *json,
		     uint32_t *ret_value)
{
	const char *word = graft_json_node_string(json);

	if (!word)
		return fail_here(reader, "must be a string");
	for (size_t i = 0; i < field->n_enum_names; i++) {
		if (strcmp(word, field->enum_names[i]) == 0) {
			*ret_value = (uint32_t)i;
			return 0;
		}
	}
	return fail_at_word(reader, "unknown word", word);
}

static int read_flags_field(struct reader *reader, const struct graft_field *field, const struct graft_json_node *json,
			    uint32_t *ret_value)
{
	const struct graft_json_node *item = graft_json_node_first(json);

	if (graft_json_node_kind(json) != GRAFT_JSON_ARRAY)
		return fail_here(reader, "must be a list of strings");
	for (size_t i = 0; item; i++, item = graft_json_node_next(item)) {
		uint32_t bit = 0;

		enter(reader, NULL, i);
		if (read_enum(reader, field, item, &bit) < 0)
			return -1;
		*ret_value |= 1u << bit;
		leave(reader);
	}
	return 0;
}

/* Creates a list of the array's length and reads its items. */
static int read_list_field(struct reader *reader, const struct graft_field *field, const struct graft_json_node *json,
			   void *object)
{
	const struct graft_json_node *item = graft_json_node_first(json);
	size_t n = graft_json_node_count(json);
	char *items;

	if (graft_json_node_kind(json) != GRAFT_JSON_ARRAY)
		return fail_here(reader, "must be a list");
	items = graft_arena_list(reader->arena, n, item_size(field));
	if (n > 0 && !items)
		return graft_fail_memory(reader->err);
	memcpy((char *)object + field->offset, &items, sizeof(items));
	memcpy((char *)object + field->count_offset, &n, sizeof(n));
	for (size_t i = 0; i < n; i++, item = graft_json_node_next(item)) {
		char *place = items + i * item_size(field);

		enter(reader, NULL, i);
		if ((field->kind == GRAFT_FIELD_RECORDS ? read_record(reader, field->record, item, place)
							: read_string_field(reader, item, place)) < 0)
			return -1;
		leave(reader);
	}
	return 0;
}

static int read_field(struct reader *reader, const struct graft_field *field, const struct graft_json_node *json,
		      void *object)
{
	void *member = (char *)object + field->offset;
	uint32_t value = 0;
	bool truth;
	int rc;

	switch (field->kind) {
	case GRAFT_FIELD_STRING:
		return read_string_field(reader, json, member);
	case GRAFT_FIELD_BOOL:
		if (graft_json_node_kind(json) != GRAFT_JSON_BOOL)
			return fail_here(reader, "must be true or false");
		truth = graft_json_node_is_true(json);
		memcpy(member, &truth, sizeof(truth));
		return 0;
	case GRAFT_FIELD_U32:
	case GRAFT_FIELD_U64:
	case GRAFT_FIELD_I64:
		return read_number_field(reader, field, json, member);
	case GRAFT_FIELD_ENUM:
	case GRAFT_FIELD_FLAGS:
		rc = field->kind == GRAFT_FIELD_ENUM ? read_enum(reader, field, json, &value)
						     : read_flags_field(reader, field, json, &value);
		memcpy(member, &value, sizeof(value));
		return rc;
	case GRAFT_FIELD_STRINGS:
	case GRAFT_FIELD_RECORDS:
		return read_list_field(reader, field, json, object);
	case GRAFT_FIELD_RECORD:
		/*
		 * Of two members with the same name the last one applies, and nothing of the first
		 * one may remain.
		 */
		memset(member, 0, field->record->size);
		return read_record(reader, field->record, json, member);
	}
	return fail_here(reader, "unknown kind of field");
}

static int read_record(struct reader *reader, const struct graft_record *record, const struct graft_json_node *json,
		       void *object)
{
	uint64_t seen = 0; /* no record has more fields */
	size_t i;

	if (graft_json_node_kind(json) != GRAFT_JSON_OBJECT)
		return fail_here(reader, "must be an object");
	GRAFT_JSON_EACH(member, json) {
		const char *name = graft_json_node_name(member);

		for (i = 0; i < record->n_fields && strcmp(record->fields[i].name, name) != 0;)
			i++;
		enter(reader, name, 0);
		if (i == record->n_fields)
			return fail_here(reader, "unknown member");
		if (read_field(reader, &record->fields[i], member, object) < 0)
			return -1;
		seen |= UINT64_C(1) << i;
		leave(reader);
	}
	for (i = 0; i < record->n_fields; i++) {
		if (record->fields[i].required && (seen >> i & 1) == 0) {
			enter(reader, record->fields[i].name, 0);
			return fail_here(reader, "is missing");
		}
	}
	return 0;
}

int graft_record_read(const struct graft_record *record, const char *json, size_t length, struct graft_arena *arena,
		      void *object, struct graft_error *err)
{
	struct reader reader = { .arena = arena, .err = err };
	auto_json_document struct graft_json_document *parsed = NULL;

	if (graft_json_parse(json, length, DEPTH_MAX, &parsed, err) < 0)
		return -1;
	return read_record(&reader, record, graft_json_document_root(parsed), object);
}

static bool records_equal(const struct graft_record *record, const void *a, const void *b, char *where);

/* Prepends a name to the path of a difference found further inside. */
static bool differs_in(char *where, const char *name, size_t index)
{
	char inner[PATH_SIZE];
	const char *dot;

	memcpy(inner, where, sizeof(inner));
	dot = inner[0] != '\0' && inner[0] != '[' ? "." : "";
	if (name)
		(void)snprintf(where, PATH_SIZE, "%.64s%s%.180s", name, dot, inner);
	else
		(void)snprintf(where, PATH_SIZE, "[%zu]%s%.180s", index, dot, inner);
	return false;
}

static bool lists_equal(const struct graft_field *field, const void *a, const void *b, char *where)
{
	size_t n = list_length(field, a);

	if (n != list_length(field, b))
		return false;
	for (size_t i = 0; i < n; i++) {
		bool equal;

		if (field->kind == GRAFT_FIELD_RECORDS)
			equal = records_equal(field->record, list_item(field, a, i), list_item(field, b, i), where);
		else
			equal = graft_is_same_text(MEMBER(const char *, list_item(field, a, i), 0),
						   MEMBER(const char *, list_item(field, b, i), 0));
		if (!equal)
			return differs_in(where, NULL, i);
	}
	return true;
}

static bool fields_equal(const struct graft_field *field, const void *a, const void *b, char *where)
{
	switch (field->kind) {
	case GRAFT_FIELD_STRING:
		return graft_is_same_text(MEMBER(const char *, a, field->offset),
					  MEMBER(const char *, b, field->offset));
	case GRAFT_FIELD_BOOL:
		return MEMBER(bool, a, field->offset) == MEMBER(bool, b, field->offset);
	case GRAFT_FIELD_U32:
	case GRAFT_FIELD_ENUM:
	case GRAFT_FIELD_FLAGS:
		return MEMBER(uint32_t, a, field->offset) == MEMBER(uint32_t, b, field->offset);
	case GRAFT_FIELD_U64:
	case GRAFT_FIELD_I64:
		return MEMBER(uint64_t, a, field->offset) == MEMBER(uint64_t, b, field->offset);
	case GRAFT_FIELD_STRINGS:
	case GRAFT_FIELD_RECORDS:
		return lists_equal(field, a, b, where);
	case GRAFT_FIELD_RECORD:
		return records_equal(field->record, get_field_place(a, field->offset),
				     get_field_place(b, field->offset), where);
	}
	return false;
}

static bool records_equal(const struct graft_record *record, const void *a, const void *b, char *where)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		if (!fields_equal(&record->fields[i], a, b, where))
			return differs_in(where, record->fields[i].name, 0);
	}
	return true;
}

bool graft_record_equal(const struct graft_record *record, const void *a, const void *b, char *ret_path,
			size_t path_size)
{
	char where[PATH_SIZE] = "";
	bool equal = records_equal(record, a, b, where);

	if (!equal && ret_path && path_size > 0)
		(void)snprintf(ret_path, path_size, "%s", where);
	return equal;
}

static void document_type(const struct graft_field *field, struct graft_buffer *out)
{
	static const char *const words[] = {
		[GRAFT_FIELD_STRING] = "string",       [GRAFT_FIELD_BOOL] = "boolean",
		[GRAFT_FIELD_U32] = "integer, 32 bit", [GRAFT_FIELD_U64] = "integer, 64 bit",
		[GRAFT_FIELD_I64] = "signed integer",  [GRAFT_FIELD_ENUM] = "one of",
		[GRAFT_FIELD_FLAGS] = "list of",       [GRAFT_FIELD_STRINGS] = "list of strings",
		[GRAFT_FIELD_RECORD] = "object",       [GRAFT_FIELD_RECORDS] = "list of",
	};

	graft_buffer_string(out, words[field->kind]);
	for (size_t i = 0; i < field->n_enum_names; i++)
		graft_buffer_printf(out, "%s `%s`", i == 0 ? "" : ",", field->enum_names[i]);
	if (field->record)
		graft_buffer_printf(out, " [%s](#%s)", field->record->name, field->record->name);
}

static void document_one(const struct graft_record *record, struct graft_buffer *out)
{
	graft_buffer_printf(out, "### %s\n\n| member | type | always there | meaning |\n|---|---|---|---|\n",
			    record->name);
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct graft_field *field = &record->fields[i];

		graft_buffer_printf(out, "| `%s` | ", field->name);
		document_type(field, out);
		graft_buffer_printf(out, " | %s | %s |\n", field->required ? "yes" : "", field->doc ? field->doc : "");
	}
	graft_buffer_char(out, '\n');
}

#define DOCUMENTED_MAX 64

struct documented {
	const struct graft_record *records[DOCUMENTED_MAX];
	size_t n;
};

static void document(const struct graft_record *record, struct documented *seen, struct graft_buffer *out)
{
	for (size_t i = 0; i < seen->n; i++) {
		if (seen->records[i] == record)
			return;
	}
	if (seen->n == DOCUMENTED_MAX)
		return;
	seen->records[seen->n++] = record;
	document_one(record, out);
	for (size_t i = 0; i < record->n_fields; i++) {
		if (record->fields[i].record)
			document(record->fields[i].record, seen, out);
	}
}

void graft_record_document(const struct graft_record *record, struct graft_buffer *out)
{
	struct documented seen = { .n = 0 };

	document(record, &seen, out);
}
