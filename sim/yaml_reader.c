/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml_reader: a narrow interface to libyaml. It does not guess types: a value is text until a
 * reader requests something else. The tables that drive the reading bound its depth, so an alias
 * that points to its own ancestor does no harm.
 */
#include "yaml_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)256 * 1024)
#define MAX_TEXT  255u

int sim_yaml_fail(const struct sim_yaml *yaml, const yaml_node_t *node, const char *format, ...)
{
	char text[384];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!node)
		return graft_fail(yaml->err, GRAFT_FORMAT, 0, "%s: %s", yaml->file, text);
	return graft_fail(yaml->err, GRAFT_FORMAT, 0, "%s:%zu:%zu: %s", yaml->file, node->start_mark.line + 1,
			  node->start_mark.column + 1, text);
}

static int fail_parser(const yaml_parser_t *parser, const char *file, struct graft_error *err)
{
	const char *problem = parser->problem ? parser->problem : "not understood";

	/* QUIRK: libyaml does not always report that it ran out of memory. */
	if (parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR)
		return graft_fail_memory(err);
	if (parser->error == YAML_READER_ERROR)
		return graft_fail(err, GRAFT_FORMAT, 0, "%s: byte %zu: %s", file, parser->problem_offset, problem);
	return graft_fail(err, GRAFT_FORMAT, 0, "%s:%zu:%zu: %s", file, parser->problem_mark.line + 1,
			  parser->problem_mark.column + 1, problem);
}

/* Loads one document and refuses anything after it. */
static int load_only(yaml_parser_t *parser, const char *file, yaml_document_t *ret_document, struct graft_error *err)
{
	yaml_document_t rest;
	bool more;

	if (!yaml_parser_load(parser, ret_document))
		return fail_parser(parser, file, err);
	if (!yaml_parser_load(parser, &rest)) {
		yaml_document_delete(ret_document);
		return fail_parser(parser, file, err);
	}
	more = yaml_document_get_root_node(&rest) != NULL;
	yaml_document_delete(&rest);
	if (more) {
		yaml_document_delete(ret_document);
		return graft_fail(err, GRAFT_FORMAT, 0, "%s: more than one document", file);
	}
	return 0;
}

int sim_yaml_load(const void *bytes, size_t length, const char *file, yaml_document_t *ret_document,
		  struct graft_error *err)
{
	yaml_parser_t parser;
	int rc;

	if (length > MAX_BYTES)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "%s: larger than %zu bytes", file, MAX_BYTES);
	if (!yaml_parser_initialize(&parser))
		return graft_fail_memory(err);
	yaml_parser_set_input_string(&parser, bytes, length);
	rc = load_only(&parser, file, ret_document, err);
	yaml_parser_delete(&parser);
	return rc;
}

static const struct sim_yaml_key *find_key(const struct sim_yaml_key *keys, size_t n_keys, const char *name)
{
	for (size_t i = 0; i < n_keys; i++) {
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

int sim_yaml_mapping(const struct sim_yaml *yaml, const yaml_node_t *node, const struct sim_yaml_key *keys,
		     size_t n_keys, void *target)
{
	uint64_t seen = 0;

	if (node->type != YAML_MAPPING_NODE)
		return sim_yaml_fail(yaml, node, "a mapping of keys and values is expected here");
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
	     pair++) {
		const yaml_node_t *key_node = yaml_document_get_node(yaml->document, pair->key);
		const yaml_node_t *value = yaml_document_get_node(yaml->document, pair->value);
		const char *name = sim_yaml_scalar(yaml, key_node);
		const struct sim_yaml_key *key;

		if (!name)
			return -1;
		key = find_key(keys, n_keys, name);
		if (!key)
			return sim_yaml_fail(yaml, key_node, "unknown key '%s'", name);
		if (seen & (UINT64_C(1) << (key - keys)))
			return sim_yaml_fail(yaml, key_node, "key '%s' is given twice", name);
		seen |= UINT64_C(1) << (key - keys);
		if (key->read(yaml, value, (char *)target + key->offset) < 0)
			return -1;
	}
	return 0;
}

int sim_yaml_sequence(const struct sim_yaml *yaml, const yaml_node_t *node, size_t max,
		      int (*each)(const struct sim_yaml *yaml, const yaml_node_t *item, void *arg), void *arg)
{
	size_t n = 0;

	if (node->type != YAML_SEQUENCE_NODE)
		return sim_yaml_fail(yaml, node, "a list is expected here");
	for (const yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
	     item++) {
		const yaml_node_t *value = yaml_document_get_node(yaml->document, *item);

		if (++n > max)
			return sim_yaml_fail(yaml, value, "more than %zu items", max);
		if (each(yaml, value, arg) < 0)
			return -1;
	}
	return 0;
}

const char *sim_yaml_scalar(const struct sim_yaml *yaml, const yaml_node_t *node)
{
	const unsigned char *bytes;
	size_t length;
	const char *copy;

	if (!node || node->type != YAML_SCALAR_NODE) {
		(void)sim_yaml_fail(yaml, node, "a single value is expected here");
		return NULL;
	}
	bytes = node->data.scalar.value;
	length = node->data.scalar.length;
	if (length == 0 || length > MAX_TEXT) {
		(void)sim_yaml_fail(yaml, node, length == 0 ? "a value is missing here" : "value too long");
		return NULL;
	}
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] < 0x20 || bytes[i] > 0x7e) {
			(void)sim_yaml_fail(yaml, node, "only printable ASCII characters are allowed in values");
			return NULL;
		}
	}
	copy = graft_arena_strndup(yaml->arena, (const char *)bytes, length);
	if (!copy)
		(void)graft_fail_memory(yaml->err);
	return copy;
}

int sim_yaml_string(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	const char *text = sim_yaml_scalar(yaml, node);

	if (!text)
		return -1;
	*(const char **)field = text;
	return 0;
}

int sim_yaml_bool(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	const char *text = sim_yaml_scalar(yaml, node);

	if (!text)
		return -1;
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return sim_yaml_fail(yaml, node, "'%s' is neither true nor false", text);
	*(bool *)field = text[0] == 't';
	return 0;
}

int sim_yaml_u32(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	const char *text = sim_yaml_scalar(yaml, node);
	unsigned long value;
	char *end;

	if (!text)
		return -1;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > UINT32_MAX)
		return sim_yaml_fail(yaml, node, "'%s' is not a number", text);
	*(uint32_t *)field = (uint32_t)value;
	return 0;
}
