/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_write: walks a spec by the tables of cdi_schema.c, and emits YAML or JSON. It does not know
 * which objects exist, in which order their members come, or which versions they need.
 */
#include "formats/cdi/cdi_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/cdi/cdi_object.h"
#include "formats/json/json.h"

#define YAML_STEP  4u
#define ITEM_INSET 2u /* of a list item's own members, after the dash */

struct writer {
	struct graft_buffer out;
	bool yaml;
	struct graft_error *err;
};

/* A map that is being written. */
struct map {
	unsigned int column; /* of its keys, in YAML */
	bool begun;          /* it has a member already */
	bool inlined;        /* its first key goes where the writer is: after a dash, or at the very start */
};

static const void *get_write_slot(const void *object, size_t offset)
{
	return (const char *)object + offset;
}

static size_t count_of(const void *object, const struct cdi_member *member)
{
	return *(const size_t *)get_write_slot(object, member->extra);
}

/* --- what is present --- */

static bool has_written_member(const struct cdi_object *object, const void *target);

/* Returns whether a member is written at all. */
static bool is_written_member(const struct cdi_member *member, const void *target)
{
	const char *text;

	switch (member->kind) {
	case CDI_MEMBER_TEXT:
		text = *(const char *const *)get_write_slot(target, member->offset);
		return text && (text[0] != '\0' || member->empty);
	case CDI_MEMBER_SIGNED:
		return member->extra != 0 ? *(const bool *)get_write_slot(target, member->extra)
					  : *(const int64_t *)get_write_slot(target, member->offset) != 0;
	case CDI_MEMBER_UNSIGNED:
		return *(const bool *)get_write_slot(target, member->extra);
	case CDI_MEMBER_FLAG:
		return *(const bool *)get_write_slot(target, member->offset);
	case CDI_MEMBER_TEXTS:
	case CDI_MEMBER_GROUPS:
	case CDI_MEMBER_WORDS:
	case CDI_MEMBER_OBJECTS:
		return count_of(target, member) > 0;
	case CDI_MEMBER_OBJECT:
		return has_written_member(member->object, get_write_slot(target, member->offset));
	case CDI_MEMBER_POINTER:
		return *(const void *const *)get_write_slot(target, member->offset) != NULL;
	}
	return false;
}

static bool has_written_member(const struct cdi_object *object, const void *target)
{
	for (size_t i = 0; i < object->n_members; i++) {
		if (is_written_member(&object->members[i], target))
			return true;
	}
	return false;
}

static enum cdi_version later(enum cdi_version a, enum cdi_version b)
{
	return a > b ? a : b;
}

static enum cdi_version version_of_members(const struct cdi_object *object, const void *target)
{
	enum cdi_version needed = CDI_0_3_0;

	for (size_t i = 0; i < object->n_members; i++) {
		const struct cdi_member *member = &object->members[i];
		const void *at = get_write_slot(target, member->offset);

		if (!is_written_member(member, target))
			continue;
		needed = later(needed, member->since);
		if (member->kind == CDI_MEMBER_OBJECT)
			needed = later(needed, version_of_members(member->object, at));
		if (member->kind == CDI_MEMBER_POINTER)
			needed = later(needed, version_of_members(member->object, *(const void *const *)at));
		for (size_t j = 0; member->kind == CDI_MEMBER_OBJECTS && j < count_of(target, member); j++)
			needed = later(needed, version_of_members(member->object,
								  *(const char *const *)at + j * member->object->size));
	}
	return needed;
}

const char *graft_cdi_spec_minimum_version(const struct graft_cdi_spec *spec)
{
	enum cdi_version needed = later(cdi_version_of_class(spec->class_),
					version_of_members(&cdi_edits_object, &spec->edits));

	if (spec->n_annotations > 0)
		needed = later(needed, CDI_0_6_0);
	for (size_t i = 0; i < spec->n_devices; i++) {
		needed = later(needed, cdi_version_of_device(spec->devices[i].name));
		needed = later(needed, version_of_members(&cdi_device_object, &spec->devices[i]));
	}
	return cdi_version_names[needed];
}

/* --- lines, braces, commas --- */

static void begin_line(struct writer *writer, unsigned int column)
{
	graft_buffer_char(&writer->out, '\n');
	for (unsigned int i = 0; i < column; i += YAML_STEP)
		graft_buffer_add(&writer->out, "    ", column - i < YAML_STEP ? column - i : YAML_STEP);
}

/*
 * Returns the column for the content of something at `column`: the next step, no deeper (SPEC
 * ctk-and-cdi 1.5).
 */
static unsigned int next_yaml_step(unsigned int column)
{
	return column / YAML_STEP * YAML_STEP + YAML_STEP;
}

static int write_text(struct writer *writer, const char *text)
{
	if (!graft_is_utf8(text))
		return graft_fail(writer->err, GRAFT_INVALID, 0, "%s is not UTF-8, so it cannot be in a CDI spec",
				  cdi_quote(text));
	if (writer->yaml)
		graft_tree_quote_yaml(&writer->out, text);
	else
		graft_json_quote(&writer->out, text);
	return 0;
}

static int begin_member(struct writer *writer, struct map *map, const char *name)
{
	if (!writer->yaml && map->begun)
		graft_buffer_char(&writer->out, ',');
	if (writer->yaml && (map->begun || !map->inlined))
		begin_line(writer, map->column);
	map->begun = true;
	if (write_text(writer, name) < 0)
		return -1;
	graft_buffer_char(&writer->out, ':');
	return 0;
}

/* Writes the blank before a value on the line of its name. */
static void begin_scalar(struct writer *writer)
{
	if (writer->yaml)
		graft_buffer_char(&writer->out, ' ');
}

static void begin_item(struct writer *writer, unsigned int column, bool first)
{
	if (writer->yaml) {
		begin_line(writer, column);
		graft_buffer_string(&writer->out, "- ");
	} else if (!first) {
		graft_buffer_char(&writer->out, ',');
	}
}

static void bracket(struct writer *writer, char c)
{
	if (!writer->yaml)
		graft_buffer_char(&writer->out, c);
}

/* --- members by kind --- */

static int write_object(struct writer *writer, const struct cdi_object *object, const void *target, struct map *map);

/* Writes an object that is the value of a member. An empty one must be visible, too. */
static int write_value(struct writer *writer, const struct cdi_object *object, const void *target,
		       const struct map *parent)
{
	struct map map = { .column = next_yaml_step(parent->column) };

	if (writer->yaml && !has_written_member(object, target)) {
		graft_buffer_string(&writer->out, " {}");
		return 0;
	}
	return write_object(writer, object, target, &map);
}

static int write_list(struct writer *writer, const struct cdi_member *member, const void *target,
		      const struct map *parent)
{
	const char *item = *(const char *const *)get_write_slot(target, member->offset);
	unsigned int column = next_yaml_step(parent->column);
	int rc = 0;

	bracket(writer, '[');
	for (size_t i = 0; rc == 0 && i < count_of(target, member); i++, item += cdi_item_size(member)) {
		struct map map = { .column = column + ITEM_INSET, .inlined = true };

		begin_item(writer, column, i == 0);
		if (member->kind == CDI_MEMBER_TEXTS)
			rc = write_text(writer, *(const char *const *)(const void *)item);
		else if (member->kind == CDI_MEMBER_GROUPS)
			graft_buffer_printf(&writer->out, "%u", *(const uint32_t *)(const void *)item);
		else
			rc = write_object(writer, member->object, item, &map);
	}
	bracket(writer, ']');
	return rc;
}

static int compare_annotation_keys(const void *a, const void *b)
{
	return strcmp((*(const struct graft_cdi_annotation *const *)a)->key,
		      (*(const struct graft_cdi_annotation *const *)b)->key);
}

static int write_words(struct writer *writer, const struct graft_cdi_annotation *words, size_t n,
		       const struct map *parent)
{
	auto_free const struct graft_cdi_annotation **sorted = calloc(n + 1, sizeof(struct graft_cdi_annotation *));
	struct map map = { .column = next_yaml_step(parent->column) };
	int rc = 0;

	if (!sorted)
		return graft_fail_memory(writer->err);
	if (graft_cdi_check_annotations(words, n, writer->err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &words[i];
	qsort(sorted, n, sizeof(struct graft_cdi_annotation *), compare_annotation_keys);
	bracket(writer, '{');
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = begin_member(writer, &map, sorted[i]->key);
		begin_scalar(writer);
		rc = rc < 0 ? rc : write_text(writer, sorted[i]->value);
	}
	bracket(writer, '}');
	return rc;
}

static int write_member(struct writer *writer, const struct cdi_member *member, const void *target, struct map *map)
{
	const void *at = get_write_slot(target, member->offset);
	const char *text;

	if (begin_member(writer, map, member->name) < 0)
		return -1;
	switch (member->kind) {
	case CDI_MEMBER_TEXT:
		text = *(const char *const *)at;
		begin_scalar(writer);
		return write_text(writer, text[0] != '\0' ? text : member->empty);
	case CDI_MEMBER_SIGNED:
		begin_scalar(writer);
		graft_buffer_printf(&writer->out, "%lld", (long long)*(const int64_t *)at);
		return 0;
	case CDI_MEMBER_UNSIGNED:
		begin_scalar(writer);
		graft_buffer_printf(&writer->out, "%u", *(const uint32_t *)at);
		return 0;
	case CDI_MEMBER_FLAG:
		begin_scalar(writer);
		graft_buffer_string(&writer->out, "true");
		return 0;
	case CDI_MEMBER_TEXTS:
	case CDI_MEMBER_GROUPS:
	case CDI_MEMBER_OBJECTS:
		return write_list(writer, member, target, map);
	case CDI_MEMBER_WORDS:
		return write_words(writer, *(const struct graft_cdi_annotation *const *)at, count_of(target, member),
				   map);
	case CDI_MEMBER_OBJECT:
		return write_value(writer, member->object, at, map);
	case CDI_MEMBER_POINTER:
		return write_value(writer, member->object, *(const void *const *)at, map);
	}
	return 0;
}

static int write_object(struct writer *writer, const struct cdi_object *object, const void *target, struct map *map)
{
	int rc = 0;

	bracket(writer, '{');
	for (size_t i = 0; rc == 0 && i < object->n_members; i++) {
		/*
		 * QUIRK: other generators' JSON has an object for empty container edits, their YAML
		 * does not.
		 */
		if (is_written_member(&object->members[i], target) ||
		    (!writer->yaml && object->members[i].kind == CDI_MEMBER_OBJECT))
			rc = write_member(writer, &object->members[i], target, map);
	}
	bracket(writer, '}');
	return rc;
}

/* --- the spec as a whole --- */

/* Reads the result as all its users will. */
static int check_written(const struct graft_cdi_spec *spec, const struct graft_buffer *text, struct graft_error *err)
{
	auto_arena struct graft_arena *arena = graft_arena_new(SIZE_MAX / 2);
	struct graft_cdi_spec again;

	if (!arena)
		return graft_fail_memory(err);
	return graft_cdi_spec_read(spec->file ? spec->file : "the spec", text->bytes, text->length, arena, &again, err);
}

static int write_document(struct writer *writer, const struct cdi_file_spec *file)
{
	struct map map = { .inlined = true };

	if (writer->yaml)
		graft_buffer_string(&writer->out, "---\n");
	if (write_object(writer, &cdi_spec_object, file, &map) < 0)
		return -1;
	if (writer->yaml)
		graft_buffer_char(&writer->out, '\n');
	return graft_buffer_failed(&writer->out) ? graft_fail_memory(writer->err) : 0;
}

/*
 * Makes sure that no spec is written that its readers would refuse. Checks it as JSON, which is
 * read in a tenth of the time.
 */
static int check_spec(const struct graft_cdi_spec *spec, const struct cdi_file_spec *file, struct graft_error *err)
{
	struct writer writer = { .yaml = false, .err = err };
	int rc = write_document(&writer, file);

	if (rc == 0)
		rc = check_written(spec, &writer.out, err);
	graft_buffer_done(&writer.out);
	return rc;
}

static int write_spec(struct writer *writer, const struct graft_cdi_spec *spec)
{
	struct cdi_file_spec file = { .version = spec->version, .spec = *spec };
	auto_free char *kind = NULL;

	if (!file.version)
		file.version = graft_cdi_spec_minimum_version(spec);
	if (asprintf(&kind, "%s/%s", spec->vendor, spec->class_) < 0) {
		kind = NULL;
		return graft_fail_memory(writer->err);
	}
	file.kind = kind;
	if (write_document(writer, &file) < 0)
		return -1;
	return writer->yaml ? check_spec(spec, &file, writer->err) : check_written(spec, &writer->out, writer->err);
}

int graft_cdi_spec_write(const struct graft_cdi_spec *spec, enum graft_cdi_format format, struct graft_buffer *out,
			 struct graft_error *err)
{
	struct writer writer = { .yaml = format == GRAFT_CDI_YAML, .err = err };
	int rc = write_spec(&writer, spec);

	if (rc == 0) {
		graft_buffer_add(out, writer.out.bytes, writer.out.length);
		rc = graft_buffer_failed(out) ? graft_fail_memory(err) : 0;
	}
	graft_buffer_done(&writer.out);
	return rc;
}
