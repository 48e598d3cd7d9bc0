/* SPDX-License-Identifier: Apache-2.0 */
/* state: reads the runtime's description of a container. Its meaning is left to others. */
#include "cli/hook/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/root.h"

/* The position in an object that is read in pieces. */
struct scan {
	unsigned int depth;
	bool in_string, escaped, complete;
};

/* Counting brackets outside of strings is enough to find the end. The parser checks the rest. */
static void scan_state_bytes(struct scan *scan, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n && !scan->complete; i++) {
		char c = bytes[i];

		if (scan->in_string) {
			scan->in_string = c != '"' || scan->escaped;
			scan->escaped = c == '\\' && !scan->escaped;
		} else if (c == '"') {
			scan->in_string = true;
		} else if (c == '{' || c == '[') {
			scan->depth++;
		} else if (c == '}' || c == ']') {
			scan->complete = scan->depth <= 1;
			scan->depth -= scan->depth > 0;
		}
	}
}

static int read_object(int fd, struct graft_buffer *text, struct graft_error *err)
{
	struct scan scan = { .depth = 0 };
	char chunk[4096];

	while (!scan.complete) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return graft_fail_errno(err, errno, "could not decode container state: read failed");
		if (n == 0)
			return 0;
		graft_buffer_add(text, chunk, (size_t)n);
		if (graft_buffer_failed(text))
			return graft_fail(err, GRAFT_TOO_BIG, 0, "could not decode container state: over %zu bytes",
					  HOOK_TEXT_MAX);
		scan_state_bytes(&scan, chunk, (size_t)n);
	}
	return 0;
}

int hook_state_read(int fd, struct graft_arena *arena, struct graft_oci_state *ret_state, struct graft_error *err)
{
	auto_buffer struct graft_buffer text = { .max = HOOK_TEXT_MAX };

	if (read_object(fd, &text, err) < 0)
		return -1;
	return graft_oci_state_read(graft_buffer_text(&text), text.length, arena, ret_state, err);
}

const char *hook_bundle(const struct graft_oci_state *state, struct graft_arena *arena, struct graft_error *err)
{
	const char *bundle = state->bundle ? state->bundle : "";
	char here[PATH_MAX] = "/", *clean;

	if (bundle[0] != '/' && !getcwd(here, sizeof(here))) {
		(void)graft_fail_errno(err, errno, "could not open OCI spec: no working directory");
		return NULL;
	}
	clean = graft_path_clean(here, bundle, arena);
	if (!clean)
		(void)graft_fail_memory(err);
	return clean;
}

static int read_state_text(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
			   struct graft_error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int rc = fd < 0 ? -errno : graft_read_fd(fd, HOOK_TEXT_MAX, arena, ret_text, ret_length);

	return rc < 0 ? graft_fail_errno(err, -rc, "could not open OCI spec: %s", path) : 0;
}

int hook_spec_read(const char *bundle, struct graft_arena *arena, struct graft_json_document **ret_document,
		   struct graft_oci_spec *ret_spec, struct graft_error *err)
{
	const char *path = graft_path_clean(bundle, "config.json", arena);
	const char *text = NULL;
	size_t length = 0;

	if (!path)
		return graft_fail_memory(err);
	if (read_state_text(path, arena, &text, &length, err) < 0)
		return -1;
	if (graft_json_document_parse(path, text, length, ret_document, err) < 0 ||
	    graft_oci_spec_read(*ret_document, arena, ret_spec, err) < 0)
		return graft_wrap(err, "could not decode OCI spec");
	return graft_oci_spec_check(ret_spec, err);
}
