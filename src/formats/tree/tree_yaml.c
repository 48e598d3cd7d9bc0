/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_yaml: parses YAML into a tree of values. The only place in the library that uses libyaml
 * (docs/decisions/0012-yaml.md).
 *
 * Accepts a single document, no alias to a value that contains it, and no tags but those of JSON's
 * types.
 */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "formats/tree/tree.h"

#define ANCHORS_MAX 1024u

struct anchor {
	const char *name;
	const struct graft_tree_value *value; /* NULL while it is being read */
};

struct yaml {
	struct graft_tree_builder *builder;
	yaml_parser_t parser;
	struct anchor *anchors;
	size_t n_anchors;
};

static int fail_mark(const struct yaml *yaml, const yaml_mark_t *mark, const char *what, const char *name)
{
	char quoted[96];

	return graft_tree_fail_at(yaml->builder->file, yaml->builder->what, (unsigned int)mark->line + 1,
				  (unsigned int)mark->column + 1, yaml->builder->err, "%s%s%s", what, name ? " " : "",
				  name ? graft_tree_quote(name, quoted, sizeof(quoted)) : "");
}

static int fail_parser(const struct yaml *yaml)
{
	const yaml_parser_t *parser = &yaml->parser;
	const char *problem = parser->problem ? parser->problem : "not understood";

	/* QUIRK: libyaml does not always report that memory was exhausted. */
	if (parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR)
		return graft_fail_memory(yaml->builder->err);
	if (parser->error == YAML_READER_ERROR)
		return graft_tree_fail_at(yaml->builder->file, yaml->builder->what, 0, 0, yaml->builder->err,
					  "%s at byte %zu", problem, parser->problem_offset);
	return fail_mark(yaml, &parser->problem_mark, problem, NULL);
}

static int next_event(struct yaml *yaml, yaml_event_t *ret_event)
{
	return yaml_parser_parse(&yaml->parser, ret_event) ? 0 : fail_parser(yaml);
}

/* --- scalars --- */

/* Determines kind and value of a plain scalar. */
static void resolve_plain(const struct yaml *yaml, const char *text, struct graft_tree_value *value)
{
	value->kind = graft_tree_plain_kind(text, &value->negative, &value->magnitude);
	switch (value->kind) {
	case GRAFT_TREE_NULL:
		value->text = "";
		break;
	case GRAFT_TREE_BOOL:
		value->text = value->magnitude != 0 ? "true" : "false";
		break;
	case GRAFT_TREE_INTEGER:
		value->text = graft_arena_printf(yaml->builder->texts, "%s%llu", value->negative ? "-" : "",
						 (unsigned long long)value->magnitude);
		break;
	case GRAFT_TREE_FRACTION:
	case GRAFT_TREE_STRING:
	case GRAFT_TREE_LIST:
	case GRAFT_TREE_MAP:
		break;
	}
}

static bool is_string_tag(const char *tag)
{
	return tag && (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0);
}

/* A tag names a type. It must be the one that the text has anyway, or "string". */
static int check_tag(const struct yaml *yaml, const char *tag, const yaml_mark_t *mark, struct graft_tree_value *value)
{
	static const struct {
		const char *tag;
		enum graft_tree_kind kind;
	} tags[] = {
		{ YAML_NULL_TAG, GRAFT_TREE_NULL },   { YAML_BOOL_TAG, GRAFT_TREE_BOOL },
		{ YAML_INT_TAG, GRAFT_TREE_INTEGER }, { YAML_FLOAT_TAG, GRAFT_TREE_FRACTION },
		{ YAML_SEQ_TAG, GRAFT_TREE_LIST },    { YAML_MAP_TAG, GRAFT_TREE_MAP },
	};
	bool scalar = value->kind != GRAFT_TREE_LIST && value->kind != GRAFT_TREE_MAP;

	if (!tag)
		return 0;
	if (scalar && is_string_tag(tag))
		return 0;
	for (size_t i = 0; i < GRAFT_COUNT(tags); i++) {
		if (strcmp(tag, tags[i].tag) == 0 && value->kind == tags[i].kind)
			return 0;
	}
	return fail_mark(yaml, mark, "the tag does not fit the value, or is unknown:", tag);
}

static int read_scalar(const struct yaml *yaml, const yaml_event_t *event, struct graft_tree_value *value)
{
	const char *bytes = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	const char *tag = (const char *)event->data.scalar.tag;

	if (memchr(bytes, '\0', length))
		return fail_mark(yaml, &event->start_mark, "a string must not contain a NUL character", NULL);
	value->kind = GRAFT_TREE_STRING;
	value->text = graft_arena_strndup(yaml->builder->texts, bytes, length);
	if (!value->text)
		return graft_fail_memory(yaml->builder->err);
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !is_string_tag(tag))
		resolve_plain(yaml, value->text, value);
	if (!value->text)
		return graft_fail_memory(yaml->builder->err);
	return check_tag(yaml, tag, &event->start_mark, value);
}

/* --- anchors --- */

/*
 * Registers an anchor before its value is read, so that an alias inside of that can be
 * distinguished from an alias to nothing.
 */
static int add_anchor(struct yaml *yaml, const yaml_char_t *name, const yaml_mark_t *mark, size_t *ret_index)
{
	struct anchor *anchor;

	*ret_index = SIZE_MAX;
	if (!name)
		return 0;
	if (yaml->n_anchors == ANCHORS_MAX)
		return fail_mark(yaml, mark, "more than 1024 anchors", NULL);
	anchor = graft_arena_push(yaml->builder->arena, &yaml->anchors, &yaml->n_anchors, sizeof(*anchor));
	if (!anchor)
		return graft_fail_memory(yaml->builder->err);
	anchor->name = graft_arena_strdup(yaml->builder->arena, (const char *)name);
	*ret_index = yaml->n_anchors - 1;
	return anchor->name ? 0 : graft_fail_memory(yaml->builder->err);
}

static int read_alias(const struct yaml *yaml, const yaml_event_t *event, struct graft_tree_value *value)
{
	const char *name = (const char *)event->data.alias.anchor;

	for (size_t i = yaml->n_anchors; i-- > 0;) {
		const struct graft_tree_value *meant = yaml->anchors[i].value;

		if (strcmp(yaml->anchors[i].name, name) != 0)
			continue;
		if (!meant)
			return fail_mark(yaml, &event->start_mark, "an alias to a value that contains it:", name);
		value->kind = meant->kind;
		value->text = meant->text;
		value->negative = meant->negative;
		value->magnitude = meant->magnitude;
		value->first = meant->first;
		return 0;
	}
	return fail_mark(yaml, &event->start_mark, "an alias to an anchor that does not exist:", name);
}

/* --- collections --- */

static int read_yaml_value(struct yaml *yaml, yaml_event_t *event, unsigned int depth,
			   struct graft_tree_value **ret_value);

static bool is_collection_end(const yaml_event_t *event)
{
	return event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT;
}

/* Reads the key of a member, which must be a scalar. Its position becomes the member's. */
static int read_yaml_key(struct yaml *yaml, yaml_event_t *event, struct graft_tree_value **ret_key)
{
	yaml_mark_t mark = event->start_mark;

	if (read_yaml_value(yaml, event, GRAFT_TREE_DEPTH_MAX, ret_key) < 0)
		return -1;
	if (!(*ret_key)->text || (*ret_key)->kind == GRAFT_TREE_NULL)
		return fail_mark(yaml, &mark, "expected a name", NULL);
	return 0;
}

/* Reads an element or member that begins with `event`. */
static int read_part(struct yaml *yaml, yaml_event_t *event, bool map, unsigned int depth,
		     struct graft_tree_value **ret_part)
{
	struct graft_tree_value *key = NULL;
	yaml_event_t second;
	int rc;

	if (!map)
		return read_yaml_value(yaml, event, depth, ret_part);
	if (read_yaml_key(yaml, event, &key) < 0 || next_event(yaml, &second) < 0)
		return -1;
	rc = read_yaml_value(yaml, &second, depth, ret_part);
	yaml_event_delete(&second);
	if (rc < 0)
		return -1;
	(*ret_part)->key = key->text;
	(*ret_part)->line = key->line;
	(*ret_part)->column = key->column;
	return 0;
}

static int read_collection(struct yaml *yaml, bool map, unsigned int depth, struct graft_tree_value *value)
{
	const struct graft_tree_value **end = &value->first;

	value->kind = map ? GRAFT_TREE_MAP : GRAFT_TREE_LIST;
	for (;;) {
		struct graft_tree_value *part = NULL;
		yaml_event_t event;
		bool last;
		int rc = 0;

		if (next_event(yaml, &event) < 0)
			return -1;
		last = is_collection_end(&event);
		if (!last)
			rc = read_part(yaml, &event, map, depth + 1, &part);
		yaml_event_delete(&event);
		if (last || rc < 0)
			return rc;
		*end = part;
		end = &part->next;
	}
}

/* Reads the value that begins with `event`, which remains the caller's. */
static int read_yaml_value(struct yaml *yaml, yaml_event_t *event, unsigned int depth,
			   struct graft_tree_value **ret_value)
{
	struct graft_tree_value *value = graft_arena_alloc(yaml->builder->arena, sizeof(*value));
	const yaml_mark_t *mark = &event->start_mark;
	size_t anchor = SIZE_MAX;
	int rc;

	if (!value)
		return graft_fail_memory(yaml->builder->err);
	yaml->builder->n_values++;
	value->line = (unsigned int)mark->line + 1;
	value->column = (unsigned int)mark->column + 1;
	if (event->type == YAML_ALIAS_EVENT) {
		rc = read_alias(yaml, event, value);
	} else if (event->type == YAML_SCALAR_EVENT) {
		rc = add_anchor(yaml, event->data.scalar.anchor, mark, &anchor);
		rc = rc < 0 ? rc : read_scalar(yaml, event, value);
	} else if (depth >= GRAFT_TREE_DEPTH_MAX) {
		rc = fail_mark(yaml, mark, "nested too deeply, or not a single value", NULL);
	} else {
		bool map = event->type == YAML_MAPPING_START_EVENT;
		const yaml_char_t *tag = map ? event->data.mapping_start.tag : event->data.sequence_start.tag;

		rc = add_anchor(yaml, map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor, mark,
				&anchor);
		rc = rc < 0 ? rc : read_collection(yaml, map, depth, value);
		rc = rc < 0 ? rc : check_tag(yaml, (const char *)tag, mark, value);
	}
	if (rc < 0)
		return -1;
	if (anchor != SIZE_MAX)
		yaml->anchors[anchor].value = value;
	*ret_value = value;
	return 0;
}

/* Consumes an event that frames the stream, and returns whether it is of that type. */
static int take_event(struct yaml *yaml, yaml_event_type_t type, yaml_mark_t *ret_mark, bool *ret_is)
{
	yaml_event_t event;

	if (next_event(yaml, &event) < 0)
		return -1;
	*ret_is = event.type == type;
	*ret_mark = event.start_mark;
	yaml_event_delete(&event);
	return 0;
}

static int read_stream(struct yaml *yaml, struct graft_tree_value **ret_root)
{
	yaml_mark_t mark;
	yaml_event_t event;
	bool is;
	int rc;

	if (take_event(yaml, YAML_STREAM_START_EVENT, &mark, &is) < 0 ||
	    take_event(yaml, YAML_DOCUMENT_START_EVENT, &mark, &is) < 0)
		return -1;
	if (!is)
		return graft_tree_fail_at(yaml->builder->file, yaml->builder->what, 0, 0, yaml->builder->err,
					  "the file is empty");
	if (next_event(yaml, &event) < 0)
		return -1;
	rc = read_yaml_value(yaml, &event, 0, ret_root);
	yaml_event_delete(&event);
	if (rc < 0 || take_event(yaml, YAML_DOCUMENT_END_EVENT, &mark, &is) < 0 ||
	    take_event(yaml, YAML_STREAM_END_EVENT, &mark, &is) < 0)
		return -1;
	return is ? 0 : fail_mark(yaml, &mark, "more than one document", NULL);
}

int graft_tree_from_yaml(struct graft_tree_builder *builder, const char *text, size_t length,
			 const struct graft_tree_value **ret_root)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct yaml yaml = { .builder = builder };
	struct graft_tree_value *root = NULL;
	int rc;

	/*
	 * QUIRK: libyaml accepts a byte order mark, which editors on Windows write, only where it
	 * detects the encoding.
	 */
	if (length >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0) {
		text += strlen(mark);
		length -= strlen(mark);
	}
	if (!yaml_parser_initialize(&yaml.parser))
		return graft_fail_memory(builder->err);
	yaml_parser_set_encoding(&yaml.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)text, length);
	rc = read_stream(&yaml, &root);
	yaml_parser_delete(&yaml.parser);
	if (rc < 0)
		return -1;
	if (graft_arena_failed(builder->arena))
		return graft_fail_memory(builder->err);
	*ret_root = root;
	return 0;
}
