/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_yaml: a YAML text as a tree of values. The one place of the library that knows libyaml (docs/decisions/0012-yaml.md).
 *
 * One document; no alias to what contains it; no tag but those of the types that JSON has.
 */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "formats/cdi_tree.h"

#define ANCHORS_MAX 1024u

struct anchor {
	const char *name;
	const struct cdi_value *value; /* NULL while it is being read */
};

struct yaml {
	struct cdi_builder *builder;
	yaml_parser_t parser;
	struct anchor *anchors;
	size_t n_anchors;
};

static int fail_mark(const struct yaml *yaml, const yaml_mark_t *mark, const char *what, const char *name)
{
	char quoted[96];

	return cdi_fail_at(yaml->builder->file, (unsigned int)mark->line + 1, (unsigned int)mark->column + 1,
			   yaml->builder->err, "%s%s%s", what, name ? " " : "",
			   name ? cdi_quote(name, quoted, sizeof(quoted)) : "");
}

static int fail_parser(const struct yaml *yaml)
{
	const yaml_parser_t *parser = &yaml->parser;
	const char *problem = parser->problem ? parser->problem : "not understood";

	/* QUIRK: libyaml does not always say that it was memory that failed. */
	if (parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR)
		return graft_fail_memory(yaml->builder->err);
	if (parser->error == YAML_READER_ERROR)
		return cdi_fail_at(yaml->builder->file, 0, 0, yaml->builder->err, "%s at byte %zu", problem,
				   parser->problem_offset);
	return fail_mark(yaml, &parser->problem_mark, problem, NULL);
}

static int next_event(struct yaml *yaml, yaml_event_t *ret_event)
{
	return yaml_parser_parse(&yaml->parser, ret_event) ? 0 : fail_parser(yaml);
}

/* --- scalars --- */

/* What a plain scalar is. Sets what goes with it. */
static void resolve_plain(const struct yaml *yaml, const char *text, struct cdi_value *value)
{
	value->kind = cdi_plain_kind(text, &value->negative, &value->magnitude);
	switch (value->kind) {
	case CDI_NULL:
		value->text = "";
		break;
	case CDI_BOOL:
		value->text = value->magnitude != 0 ? "true" : "false";
		break;
	case CDI_INTEGER:
		value->text = graft_arena_printf(yaml->builder->texts, "%s%llu", value->negative ? "-" : "",
						 (unsigned long long)value->magnitude);
		break;
	case CDI_FRACTION:
	case CDI_STRING:
	case CDI_LIST:
	case CDI_MAP:
		break;
	}
}

static bool is_string_tag(const char *tag)
{
	return tag && (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0);
}

/* A tag says a type: it must be the one that the text has anyway, or "string". */
static int check_tag(const struct yaml *yaml, const char *tag, const yaml_mark_t *mark, struct cdi_value *value)
{
	static const struct {
		const char *tag;
		enum cdi_kind kind;
	} tags[] = {
		{ YAML_NULL_TAG, CDI_NULL },      { YAML_BOOL_TAG, CDI_BOOL }, { YAML_INT_TAG, CDI_INTEGER },
		{ YAML_FLOAT_TAG, CDI_FRACTION }, { YAML_SEQ_TAG, CDI_LIST },  { YAML_MAP_TAG, CDI_MAP },
	};
	bool scalar = value->kind != CDI_LIST && value->kind != CDI_MAP;

	if (!tag)
		return 0;
	if (scalar && is_string_tag(tag))
		return 0;
	for (size_t i = 0; i < GRAFT_COUNT(tags); i++) {
		if (strcmp(tag, tags[i].tag) == 0 && value->kind == tags[i].kind)
			return 0;
	}
	return fail_mark(yaml, mark, "the tag does not fit the value, or is not known:", tag);
}

static int read_scalar(const struct yaml *yaml, const yaml_event_t *event, struct cdi_value *value)
{
	const char *bytes = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	const char *tag = (const char *)event->data.scalar.tag;

	if (memchr(bytes, '\0', length))
		return fail_mark(yaml, &event->start_mark, "a text must not hold a NUL character", NULL);
	value->kind = CDI_STRING;
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

/* An anchor is known from its first mention, so that an alias inside of it can be told from one to nothing. */
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

static int read_alias(const struct yaml *yaml, const yaml_event_t *event, struct cdi_value *value)
{
	const char *name = (const char *)event->data.alias.anchor;

	for (size_t i = yaml->n_anchors; i-- > 0;) {
		const struct cdi_value *meant = yaml->anchors[i].value;

		if (strcmp(yaml->anchors[i].name, name) != 0)
			continue;
		if (!meant)
			return fail_mark(yaml, &event->start_mark, "an alias to what it is a part of:", name);
		value->kind = meant->kind;
		value->text = meant->text;
		value->negative = meant->negative;
		value->magnitude = meant->magnitude;
		value->first = meant->first;
		return 0;
	}
	return fail_mark(yaml, &event->start_mark, "an alias to an anchor that is not there:", name);
}

/* --- collections --- */

static int read_value(struct yaml *yaml, yaml_event_t *event, unsigned int depth, struct cdi_value **ret_value);

static bool is_end(const yaml_event_t *event)
{
	return event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT;
}

/* The key of a member: a scalar. Its place becomes the member's. */
static int read_key(struct yaml *yaml, yaml_event_t *event, struct cdi_value **ret_key)
{
	yaml_mark_t mark = event->start_mark;

	if (read_value(yaml, event, CDI_DEPTH_MAX, ret_key) < 0)
		return -1;
	if (!(*ret_key)->text || (*ret_key)->kind == CDI_NULL)
		return fail_mark(yaml, &mark, "a name is expected here", NULL);
	return 0;
}

/* One element or member, which begins with `event`. */
static int read_part(struct yaml *yaml, yaml_event_t *event, bool map, unsigned int depth, struct cdi_value **ret_part)
{
	struct cdi_value *key = NULL;
	yaml_event_t second;
	int rc;

	if (!map)
		return read_value(yaml, event, depth, ret_part);
	if (read_key(yaml, event, &key) < 0 || next_event(yaml, &second) < 0)
		return -1;
	rc = read_value(yaml, &second, depth, ret_part);
	yaml_event_delete(&second);
	if (rc < 0)
		return -1;
	(*ret_part)->key = key->text;
	(*ret_part)->line = key->line;
	(*ret_part)->column = key->column;
	return 0;
}

static int read_collection(struct yaml *yaml, bool map, unsigned int depth, struct cdi_value *value)
{
	const struct cdi_value **end = &value->first;

	value->kind = map ? CDI_MAP : CDI_LIST;
	for (;;) {
		struct cdi_value *part = NULL;
		yaml_event_t event;
		bool last;
		int rc = 0;

		if (next_event(yaml, &event) < 0)
			return -1;
		last = is_end(&event);
		if (!last)
			rc = read_part(yaml, &event, map, depth + 1, &part);
		yaml_event_delete(&event);
		if (last || rc < 0)
			return rc;
		*end = part;
		end = &part->next;
	}
}

/* The value that begins with `event`, which stays the caller's. */
static int read_value(struct yaml *yaml, yaml_event_t *event, unsigned int depth, struct cdi_value **ret_value)
{
	struct cdi_value *value = graft_arena_alloc(yaml->builder->arena, sizeof(*value));
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
	} else if (depth >= CDI_DEPTH_MAX) {
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

/* Takes one event of a stream's frame, and says whether it is of that type. */
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

static int read_stream(struct yaml *yaml, struct cdi_value **ret_root)
{
	yaml_mark_t mark;
	yaml_event_t event;
	bool is;
	int rc;

	if (take_event(yaml, YAML_STREAM_START_EVENT, &mark, &is) < 0 ||
	    take_event(yaml, YAML_DOCUMENT_START_EVENT, &mark, &is) < 0)
		return -1;
	if (!is)
		return cdi_fail_at(yaml->builder->file, 0, 0, yaml->builder->err, "the file is empty");
	if (next_event(yaml, &event) < 0)
		return -1;
	rc = read_value(yaml, &event, 0, ret_root);
	yaml_event_delete(&event);
	if (rc < 0 || take_event(yaml, YAML_DOCUMENT_END_EVENT, &mark, &is) < 0 ||
	    take_event(yaml, YAML_STREAM_END_EVENT, &mark, &is) < 0)
		return -1;
	return is ? 0 : fail_mark(yaml, &mark, "more than one document", NULL);
}

int cdi_tree_from_yaml(struct cdi_builder *builder, const char *text, size_t length, const struct cdi_value **ret_root)
{
	struct yaml yaml = { .builder = builder };
	struct cdi_value *root = NULL;
	int rc;

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
