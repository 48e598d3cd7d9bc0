/* SPDX-License-Identifier: Apache-2.0 */
/* tree: chooses the parser for a text. */
#include "formats/tree/tree.h"

#include "base/strings.h"

static bool begins_like_json(const char *text, size_t length)
{
	size_t i = 0;

	while (i < length && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r'))
		i++;
	return i < length && text[i] == '{';
}

/*
 * JSON is YAML, but its own parser is many times faster. A text that it refuses may still be YAML
 * that begins with a brace.
 */
static int parse_either(struct graft_tree_builder *builder, const char *text, size_t length,
			const struct graft_tree_value **ret_root)
{
	struct graft_error json = { .status = GRAFT_OK }, yaml = { .status = GRAFT_OK }, *err = builder->err;
	int rc;

	if (begins_like_json(text, length)) {
		builder->err = &json;
		rc = graft_tree_from_json(builder, text, length, ret_root);
		builder->err = err;
		if (rc == 0)
			return 0;
		if (json.status != GRAFT_FORMAT) {
			*err = json;
			return -1;
		}
	}
	builder->err = &yaml;
	rc = graft_tree_from_yaml(builder, text, length, ret_root);
	builder->err = err;
	if (rc == 0)
		return 0;
	*err = graft_ends_with(builder->file, ".json") && json.status != GRAFT_OK && yaml.status == GRAFT_FORMAT ? json
														 : yaml;
	return -1;
}

int graft_tree_parse(struct graft_tree_builder *builder, const char *text, size_t length,
		     const struct graft_tree_value **ret_root)
{
	if (length > builder->max)
		return graft_fail(builder->err, GRAFT_TOO_BIG, 0, "%s: larger than %zu bytes", builder->file,
				  builder->max);
	builder->arena = graft_arena_new(SIZE_MAX / 2);
	if (!builder->arena)
		return graft_fail_memory(builder->err);
	if (parse_either(builder, text, length, ret_root) < 0)
		return -1;
	builder->budget = builder->document ? SIZE_MAX : builder->n_values + GRAFT_TREE_ALIASED_MAX;
	return 0;
}
