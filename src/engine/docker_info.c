/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker_info: parses a Docker daemon's answer about itself. Does not know where the bytes come
 * from.
 */
#include "engine/docker_info.h"

#include <stdint.h>
#include <string.h>

#include "base/strings.h"
#include "formats/json/json_document.h"

#define TEXT_MAX     256u
#define ITEMS_MAX    256u
#define STATUS_SHOWN 64
#define PROTOCOL     "HTTP/1."
#define END_OF_HEAD  "\r\n\r\n"

/* Returns the length of the start of a text that may reach a terminal. */
static size_t printable_length(const char *text, size_t max)
{
	size_t n = 0, more = 1;

	while (n < max && more > 0) {
		more = graft_visible_length((const unsigned char *)text + n, max - n);
		n += more;
	}
	return n;
}

static const char *take_text(const struct graft_json_node *node, struct graft_arena *arena)
{
	const char *text = graft_json_node_string(node);
	size_t length = text ? strlen(text) : 0;

	if (length == 0 || length > TEXT_MAX || printable_length(text, length) < length)
		return NULL;
	return graft_arena_strdup(arena, text);
}

static void take_runtimes(const struct graft_json_node *runtimes, struct graft_arena *arena,
			  struct graft_docker_info *info)
{
	if (graft_json_node_kind(runtimes) != GRAFT_JSON_OBJECT)
		return;
	for (struct graft_json_node *node = graft_json_node_first(runtimes); node && info->n_runtimes < ITEMS_MAX;
	     node = graft_json_node_next(node)) {
		const char *name = graft_json_node_name(node);
		size_t length = name ? strlen(name) : 0;
		struct graft_docker_runtime *runtime;

		if (length == 0 || length > TEXT_MAX || printable_length(name, length) < length)
			continue;
		runtime = graft_arena_push(arena, &info->runtimes, &info->n_runtimes, sizeof(*runtime));
		if (!runtime)
			return;
		runtime->name = graft_arena_strdup(arena, name);
		runtime->path = take_text(graft_json_node_member(node, "path"), arena);
		if (!runtime->path)
			runtime->path = take_text(graft_json_node_at(node, "options.BinaryName"), arena);
	}
}

static void take_directories(const struct graft_json_node *directories, struct graft_arena *arena,
			     struct graft_docker_info *info)
{
	if (graft_json_node_kind(directories) != GRAFT_JSON_ARRAY)
		return;
	for (struct graft_json_node *node = graft_json_node_first(directories);
	     node && info->n_cdi_directories < ITEMS_MAX; node = graft_json_node_next(node)) {
		const char *directory = take_text(node, arena);

		if (directory && directory[0] == '/')
			(void)graft_arena_push_string(arena, &info->cdi_directories, &info->n_cdi_directories,
						      directory);
	}
}

/* Returns the answer's body, or NULL with the error set. */
static const char *find_body(const char *answer, size_t length, struct graft_error *err)
{
	const char *end = memmem(answer, length, END_OF_HEAD, strlen(END_OF_HEAD)), *status;
	size_t line = printable_length(answer, length);

	if (length < strlen(PROTOCOL) || strncmp(answer, PROTOCOL, strlen(PROTOCOL)) != 0 || !end) {
		(void)graft_fail(err, GRAFT_FORMAT, 0, "its answer is not HTTP");
		return NULL;
	}
	status = memchr(answer, ' ', line);
	if (!status || line < (size_t)(status - answer) + 4 || !graft_starts_with(status, " 200")) {
		(void)graft_fail(err, GRAFT_FORMAT, 0, "it answers '%.*s'",
				 (int)(line < STATUS_SHOWN ? line : STATUS_SHOWN), answer);
		return NULL;
	}
	return end + strlen(END_OF_HEAD);
}

int graft_docker_info_parse(const char *answer, size_t length, struct graft_arena *arena,
			    struct graft_docker_info *ret_info, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	const char *body = find_body(answer, length, err);
	const struct graft_json_node *root;

	*ret_info = (struct graft_docker_info){ .version = NULL };
	if (!body ||
	    graft_json_document_parse("its answer", body, length - (size_t)(body - answer), &document, err) < 0)
		return -1;
	root = graft_json_document_root(document);
	if (graft_json_node_kind(root) != GRAFT_JSON_OBJECT)
		return graft_fail(err, GRAFT_FORMAT, 0, "its answer is not a JSON object");
	ret_info->version = take_text(graft_json_node_member(root, "ServerVersion"), arena);
	ret_info->default_runtime = take_text(graft_json_node_member(root, "DefaultRuntime"), arena);
	take_runtimes(graft_json_node_member(root, "Runtimes"), arena, ret_info);
	take_directories(graft_json_node_member(root, "CDISpecDirs"), arena, ret_info);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
