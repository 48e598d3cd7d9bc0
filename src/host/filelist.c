/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filelist: parses the list into names. It takes what it understands of an entry and ignores the
 * rest: the format belongs to the driver.
 */
#include "host/survey.h"

#include <string.h>

#include "formats/json/json.h"

#define MAX_DEPTH   8
#define MAX_ENTRIES 4096

static const char *last_component(const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	name = slash ? slash + 1 : name;
	return name && name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 ? name : NULL;
}

int graft_filelist_read(const char *bytes, size_t length, struct graft_arena *arena, const char ***ret_names,
			size_t *ret_n, struct graft_error *err)
{
	auto_json_document struct graft_json_document *json = NULL;
	const struct graft_json_node *item;

	*ret_names = NULL;
	*ret_n = 0;
	if (graft_json_parse(bytes, length, MAX_DEPTH, &json, err) < 0)
		return -1;
	if (graft_json_node_kind(graft_json_document_root(json)) != GRAFT_JSON_ARRAY)
		return graft_fail(err, GRAFT_FORMAT, 0, "not a list of files");
	item = graft_json_node_first(graft_json_document_root(json));
	for (; item && *ret_n < MAX_ENTRIES; item = graft_json_node_next(item)) {
		const char *name = last_component(graft_json_node_string(graft_json_node_member(item, "name")));

		if (name && !graft_arena_push_string(arena, ret_names, ret_n, name))
			return graft_fail_memory(err);
	}
	return 0;
}
