/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_file: reads and replaces a bundle's config.json. The bundle belongs to the engine and is
 * trusted; nothing here looks into a container's root.
 */
#include "apply/oci/oci_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "apply/replace.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"

#define TEXT_MAX ((size_t)16 * 1024 * 1024)

static const char *path_of(const char *bundle, char *buffer, size_t size)
{
	(void)snprintf(buffer, size, "%s%sconfig.json", bundle ? bundle : "", bundle ? "/" : "");
	return buffer;
}

int graft_oci_file_read(const char *bundle, struct graft_json_document **ret_document, struct graft_error *err)
{
	char path[PATH_MAX];
	const char *bytes;
	size_t length;
	auto_arena struct graft_arena *arena = NULL;
	auto_close int fd = open(path_of(bundle, path, sizeof(path)), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	if (fd < 0)
		return graft_fail_errno(err, errno, "error opening OCI specification file '%s'", path);
	arena = graft_arena_new(2 * TEXT_MAX);
	if (!arena)
		return graft_fail_memory(err);
	rc = graft_read_fd(fd, TEXT_MAX, arena, &bytes, &length);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "error reading OCI specification file '%s'", path);
	if (graft_json_document_parse_first(path, bytes, length, ret_document, err) < 0)
		return graft_wrap(err, "error loading OCI specification from file: error reading OCI specification");
	return 0;
}

static int replace_config_json(const char *bundle, const struct graft_buffer *text)
{
	static const struct graft_replacement how = { .suffix = ".graft" };
	auto_close int dir_fd = open(bundle ? bundle : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return dir_fd < 0 ? -errno : graft_replace(dir_fd, "config.json", &how, text->bytes, text->length);
}

int graft_oci_file_write(const char *bundle, const struct graft_json_document *document, struct graft_error *err)
{
	char path[PATH_MAX];
	struct graft_buffer text = { .max = 4 * TEXT_MAX };
	int rc;

	if (!graft_json_document_changed(document))
		return 0;
	if (graft_json_document_write(document, &text, err) < 0) {
		graft_buffer_done(&text);
		return -1;
	}
	rc = replace_config_json(bundle, &text);
	graft_buffer_done(&text);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "error writing OCI specification file '%s'",
					path_of(bundle, path, sizeof(path)));
	return 0;
}
