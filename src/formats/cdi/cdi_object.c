/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_object: reads objects: one function per kind of member, and the lookup of members by name. */
#include "formats/cdi/cdi_object.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define MEMBERS_MAX 16u /* of an object; the largest has 9 */

#define WHAT_MAX   384
#define FAULTS_MAX 100u /* of a file; more are not useful */

/* --- faults --- */

/*
 * Records a fault. Faults beyond the limit are dropped, but harmless ones always leave room for a
 * serious one.
 */
static int add_cdi_fault(struct cdi_reader *reader, const struct graft_tree_value *value, bool harmless,
			 const char *what)
{
	struct graft_cdi_faults *faults = reader->faults;
	struct graft_cdi_fault *fault;

	if (!faults || faults->n >= FAULTS_MAX - harmless)
		return 0;
	fault = graft_arena_push(faults->arena, &faults->items, &faults->n, sizeof(*fault));
	if (!fault)
		return graft_fail_memory(reader->err);
	*fault = (struct graft_cdi_fault){ graft_tree_line(value), graft_tree_column(value), harmless,
					   graft_arena_strdup(faults->arena, what) };
	return fault->what ? 0 : graft_fail_memory(reader->err);
}

int(cdi_refuse)(struct cdi_reader *reader, const struct graft_tree_value *value, const char *format, ...)
{
	char what[WHAT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (add_cdi_fault(reader, value, false, what) < 0)
		return -1;
	return graft_tree_fail_at(reader->file, CDI_INVALID, graft_tree_line(value), graft_tree_column(value),
				  reader->err, "%s", what);
}

int cdi_remark(struct cdi_reader *reader, const struct graft_tree_value *value, const char *format, ...)
{
	char what[WHAT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return add_cdi_fault(reader, value, true, what);
}

bool cdi_goes_on(const struct cdi_reader *reader)
{
	return reader->faults && reader->faults->n < FAULTS_MAX && reader->err->status == GRAFT_FORMAT;
}

static void *get_read_slot(void *object, size_t offset)
{
	return (char *)object + offset;
}

/*
 * Charges a value to the budget each time it is used, so that aliases of aliases cannot multiply
 * without limit.
 */
static int spend(struct cdi_reader *reader, const struct graft_tree_value *value)
{
	if (reader->budget == 0)
		return cdi_refuse(reader, value, "aliases expand to more than %zu values", GRAFT_TREE_ALIASED_MAX);
	reader->budget--;
	return 0;
}

/* --- members by kind --- */

static int wrong_kind(struct cdi_reader *reader, const struct graft_tree_value *value, const char *name,
		      const char *wanted)
{
	return cdi_refuse(reader, value, "%s is %s, but must be %s", name, graft_tree_kind_names[value->kind], wanted);
}

/*
 * Reads a text. Where a text is expected, a number or boolean is taken for its spelling, as Go's
 * readers do: `name: 0` occurs in many files. null is the empty text.
 */
static int read_text_value(struct cdi_reader *reader, const struct graft_tree_value *value, const char *name,
			   const char **ret_text)
{
	if (spend(reader, value) < 0)
		return -1;
	switch (value->kind) {
	case GRAFT_TREE_FRACTION:
		return cdi_refuse(reader, value, "%s is a number with a fraction; put it in quotes", name);
	case GRAFT_TREE_LIST:
	case GRAFT_TREE_MAP:
		return wrong_kind(reader, value, name, "a string");
	case GRAFT_TREE_NULL:
		*ret_text = "";
		return 0;
	case GRAFT_TREE_STRING:
		if (!value->text)
			return cdi_refuse(reader, value, "a string must not contain a NUL character");
		break;
	case GRAFT_TREE_BOOL:
	case GRAFT_TREE_INTEGER:
		break;
	}
	*ret_text = value->text ? value->text
				: graft_arena_printf(reader->arena, "%s%llu", value->negative ? "-" : "",
						     (unsigned long long)value->magnitude);
	return *ret_text ? 0 : graft_fail_memory(reader->err);
}

static int read_unsigned_member(struct cdi_reader *reader, const struct graft_tree_value *value, const char *name,
				uint32_t *ret_number)
{
	if (value->kind != GRAFT_TREE_INTEGER || value->negative || value->magnitude > UINT32_MAX)
		return wrong_kind(reader, value, name, "a whole number from 0 to 4294967295");
	*ret_number = (uint32_t)value->magnitude;
	return spend(reader, value);
}

static int read_signed_member(struct cdi_reader *reader, const struct graft_tree_value *value,
			      const struct cdi_member *member, void *object)
{
	uint64_t limit = (uint64_t)INT64_MAX + value->negative;

	if (value->kind != GRAFT_TREE_INTEGER || value->magnitude > limit)
		return wrong_kind(reader, value, member->name, "a whole number of 64 bits");
	*(int64_t *)get_read_slot(object, member->offset) = value->negative ? (int64_t)(0 - value->magnitude)
									    : (int64_t)value->magnitude;
	if (member->extra != 0)
		*(bool *)get_read_slot(object, member->extra) = true;
	return 0;
}

static int compare_value_keys(const void *a, const void *b)
{
	return strcmp(((const struct graft_tree_value *)a)->key, ((const struct graft_tree_value *)b)->key);
}

static int refuse_name(struct cdi_reader *reader, const struct graft_tree_value *item)
{
	return cdi_refuse(reader, item, "a name must not contain a NUL character");
}

/* Refuses a map of `n` arbitrary names in which one occurs twice. */
static int check_names(struct cdi_reader *reader, const struct graft_tree_value *map, size_t n)
{
	auto_free struct graft_tree_value *members = calloc(n + 1, sizeof(*members));
	struct graft_tree_value view;

	if (!members)
		return graft_fail_memory(reader->err);
	n = 0;
	GRAFT_TREE_EACH(item, map, view) {
		if (item->key)
			members[n++] = *item;
	}
	qsort(members, n, sizeof(*members), compare_value_keys);
	for (size_t i = 1; i < n; i++) {
		if (strcmp(members[i - 1].key, members[i].key) == 0)
			return cdi_refuse(reader, &members[i], "%s is given twice", cdi_quote(members[i].key));
	}
	return 0;
}

/*
 * Reads an annotation. If its value is refused it becomes the empty text, so that the name can
 * still be checked.
 */
static int read_word(struct cdi_reader *reader, const struct graft_tree_value *item, struct graft_cdi_annotation *word)
{
	*word = (struct graft_cdi_annotation){ item->key, "" };
	return item->key ? read_text_value(reader, item, "an annotation", &word->value) : refuse_name(reader, item);
}

static int read_annotation_members(struct cdi_reader *reader, const struct graft_tree_value *value,
				   const struct cdi_member *member, void *object)
{
	struct graft_cdi_annotation *words;
	struct graft_tree_value view;
	size_t n, n_named = 0;

	if (value->kind != GRAFT_TREE_MAP)
		return wrong_kind(reader, value, member->name, "an object");
	n = graft_tree_count(value);
	words = graft_arena_list(reader->arena, n, sizeof(*words));
	if (n > 0 && !words)
		return graft_fail_memory(reader->err);
	GRAFT_TREE_EACH(item, value, view) {
		if (read_word(reader, item, &words[n_named]) < 0 && !cdi_goes_on(reader))
			return -1;
		n_named += item->key != NULL;
	}
	*(void **)get_read_slot(object, member->offset) = words;
	*(size_t *)get_read_slot(object, member->extra) = n_named;
	return check_names(reader, value, n);
}

/* Reads an item to its place in the list. */
static int read_item(struct cdi_reader *reader, const struct graft_tree_value *item, const struct cdi_member *member,
		     void *place)
{
	if (member->kind == CDI_MEMBER_TEXTS)
		return read_text_value(reader, item, member->name, place);
	if (member->kind == CDI_MEMBER_GROUPS)
		return read_unsigned_member(reader, item, member->name, place);
	return cdi_read_object(reader, item, member->object, member->name, place);
}

static int read_list(struct cdi_reader *reader, const struct graft_tree_value *value, const struct cdi_member *member,
		     void *object)
{
	struct graft_tree_value view;
	size_t n = graft_tree_count(value), size = cdi_item_size(member);
	char *place;

	if (value->kind != GRAFT_TREE_LIST)
		return wrong_kind(reader, value, member->name, "a list");
	if (n > reader->budget)
		return cdi_refuse(reader, value, "aliases expand to more than %zu values", GRAFT_TREE_ALIASED_MAX);
	place = graft_arena_list(reader->arena, n, size);
	if (n > 0 && !place)
		return graft_fail_memory(reader->err);
	*(void **)get_read_slot(object, member->offset) = place;
	*(size_t *)get_read_slot(object, member->extra) = n;
	for (const struct graft_tree_value *item = graft_tree_first(value, &view); item;
	     item = graft_tree_next(item, &view), place += size) {
		if (read_item(reader, item, member, place) < 0 && !cdi_goes_on(reader))
			return -1;
	}
	return 0;
}

static int read_pointer(struct cdi_reader *reader, const struct graft_tree_value *value,
			const struct cdi_member *member, void *object)
{
	void *target = graft_arena_alloc(reader->arena, member->object->size);

	if (!target)
		return graft_fail_memory(reader->err);
	*(void **)get_read_slot(object, member->offset) = target;
	return cdi_read_object(reader, value, member->object, member->name, target);
}

/* Returns whether the member's presence requires the version that introduced it. */
static bool is_used(const struct cdi_member *member, const struct graft_tree_value *value)
{
	struct graft_tree_value view;

	switch (value->kind) {
	case GRAFT_TREE_STRING:
		return !value->text || value->text[0] != '\0';
	case GRAFT_TREE_BOOL:
		return value->magnitude != 0;
	case GRAFT_TREE_LIST:
	case GRAFT_TREE_MAP:
		return member->since_if_empty || graft_tree_first(value, &view);
	case GRAFT_TREE_NULL:
	case GRAFT_TREE_INTEGER:
	case GRAFT_TREE_FRACTION:
		break;
	}
	return true;
}

static int read_member(struct cdi_reader *reader, const struct graft_tree_value *value, const struct cdi_member *member,
		       void *object)
{
	const char **text;

	if (member->since > reader->needed && is_used(member, value))
		reader->needed = member->since;
	switch (member->kind) {
	case CDI_MEMBER_TEXT:
		text = get_read_slot(object, member->offset);
		if (read_text_value(reader, value, member->name, text) < 0)
			return -1;
		if ((*text)[0] == '\0')
			*text = NULL;
		return 0;
	case CDI_MEMBER_TEXTS:
	case CDI_MEMBER_GROUPS:
	case CDI_MEMBER_OBJECTS:
		return read_list(reader, value, member, object);
	case CDI_MEMBER_SIGNED:
		return read_signed_member(reader, value, member, object);
	case CDI_MEMBER_UNSIGNED:
		*(bool *)get_read_slot(object, member->extra) = true;
		return read_unsigned_member(reader, value, member->name, get_read_slot(object, member->offset));
	case CDI_MEMBER_FLAG:
		if (value->kind != GRAFT_TREE_BOOL)
			return wrong_kind(reader, value, member->name, "true or false");
		*(bool *)get_read_slot(object, member->offset) = value->magnitude != 0;
		return 0;
	case CDI_MEMBER_WORDS:
		return read_annotation_members(reader, value, member, object);
	case CDI_MEMBER_OBJECT:
		return cdi_read_object(reader, value, member->object, member->name,
				       get_read_slot(object, member->offset));
	case CDI_MEMBER_POINTER:
		return read_pointer(reader, value, member, object);
	}
	return 0;
}

/* --- objects --- */

/* The members of a map, by row of a table. */
struct rows {
	struct graft_tree_value values[MEMBERS_MAX]; /* copies of the members that are present */
	uint32_t there;                              /* one bit per row */
};
_Static_assert(MEMBERS_MAX <= 32, "a bit for each member");

static bool is_row_present(const struct rows *rows, size_t row)
{
	return (rows->there & UINT32_C(1) << row) != 0;
}

/*
 * Finds a member by name. Go's decoders, which read the same files, ignore case if there is no
 * exact match. Most members occur in the order of the table, so the search begins at `row`, the one
 * after the last match.
 */
static const struct cdi_member *find_cdi_member(const struct cdi_object *object, const char *key, size_t row)
{
	for (size_t i = 0; i < object->n_members; i++, row++) {
		const struct cdi_member *member =
		    &object->members[row < object->n_members ? row : row - object->n_members];

		if (member->name[0] == key[0] && strcmp(member->name, key) == 0)
			return member;
	}
	for (size_t i = 0; i < object->n_members; i++) {
		if (strcasecmp(object->members[i].name, key) == 0)
			return &object->members[i];
	}
	return NULL;
}

/*
 * Assigns a member to its row. Refuses unknown and duplicate names, which readers treat
 * differently.
 */
static int sort_member(struct cdi_reader *reader, const struct graft_tree_value *item, const struct cdi_object *object,
		       size_t *row, struct rows *rows)
{
	const struct cdi_member *member = item->key ? find_cdi_member(object, item->key, *row) : NULL;

	if (!item->key)
		return refuse_name(reader, item);
	if (!member)
		return cdi_refuse(reader, item, "unknown field %s", cdi_quote(item->key));
	*row = (size_t)(member - object->members);
	if (is_row_present(rows, *row))
		return cdi_refuse(reader, item, "field %s is given twice", cdi_quote(member->name));
	rows->values[*row] = *item;
	rows->there |= UINT32_C(1) << (*row)++;
	return 0;
}

static int sort_members(struct cdi_reader *reader, const struct graft_tree_value *map, const struct cdi_object *object,
			struct rows *rows)
{
	struct graft_tree_value view;
	size_t row = 0;

	rows->there = 0;
	GRAFT_TREE_EACH(item, map, view) {
		if (spend(reader, item) < 0 ||
		    (sort_member(reader, item, object, &row, rows) < 0 && !cdi_goes_on(reader)))
			return -1;
	}
	return 0;
}

int cdi_read_object(struct cdi_reader *reader, const struct graft_tree_value *value, const struct cdi_object *object,
		    const char *name, void *target)
{
	bool whole = true;
	struct rows rows;

	if (value->kind != GRAFT_TREE_MAP && value->kind != GRAFT_TREE_NULL)
		return wrong_kind(reader, value, name, "an object");
	if (sort_members(reader, value, object, &rows) < 0)
		return -1;
	for (size_t i = 0; i < object->n_members; i++) {
		if (!is_row_present(&rows, i) || rows.values[i].kind == GRAFT_TREE_NULL ||
		    read_member(reader, &rows.values[i], &object->members[i], target) == 0)
			continue;
		if (!cdi_goes_on(reader))
			return -1;
		whole = false;
	}
	/* If a member is missing because of a fault, do not report it again. */
	return object->check && whole ? object->check(reader, value, target) : 0;
}
