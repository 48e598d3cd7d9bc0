/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: from the OCI state, or a path that was given, to the container's root as a descriptor (SPEC ctk-and-cdi 2.0). The state, the bundle and the path
 * are the engine's word and are trusted; nothing below the root is looked at yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "formats/json_document.h"
#include "formats/oci_spec.h"

#define MAX_STATE         ((size_t)1 << 20) /* engines put all annotations into it */
#define MAX_CONFIGURATION ((size_t)16 << 20)

/* Standard input is a pipe. Returns 0 or -errno. */
static int read_all(int fd, struct graft_buffer *out)
{
	char bytes[16384];

	for (;;) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		graft_buffer_add(out, bytes, (size_t)n);
		if (graft_buffer_failed(out))
			return out->length + (size_t)n > out->max ? -EFBIG : -ENOMEM;
	}
}

/* The working directory was the image's: a name that starts there names nothing of ours. */
static int open_state(const char *path, struct graft_error *err)
{
	int fd;

	if (path[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "failed to open file: %s: the path must be absolute", path);
	fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return graft_fail_errno(err, errno, "failed to open file: %s", path);
	return fd;
}

/* The file that an option names instead of standard input; NULL = none. */
static const char *state_file(const struct cdi_hook *hook)
{
	const char *path = hook->container_spec;

	return path && path[0] != '\0' && strcmp(path, "-") != 0 ? path : NULL;
}

static int read_state(struct cdi_hook *hook, struct graft_oci_state *ret_state, struct graft_error *err)
{
	const char *path = state_file(hook);
	struct graft_buffer text = { .max = MAX_STATE };
	auto_close int file_fd = -1;
	int rc = 0;

	if (path) {
		file_fd = open_state(path, err);
		if (file_fd < 0)
			return -1;
	}
	rc = read_all(path ? file_fd : STDIN_FILENO, &text);
	if (rc < 0)
		rc = graft_fail_errno(err, -rc, "failed to decode container state: %s", path ? path : "standard input");
	else
		rc = graft_oci_state_read(graft_buffer_text(&text), text.length, hook->arena, ret_state, err);
	graft_buffer_done(&text);
	return rc;
}

static int read_configuration(struct cdi_hook *hook, const char *bundle, struct graft_json_document **ret_document,
			      struct graft_error *err)
{
	const char *path = graft_arena_printf(hook->arena, "%s/config.json", bundle), *text = NULL;
	auto_close int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	size_t length = 0;
	int rc;

	if (!path)
		return graft_fail_memory(err);
	if (fd < 0)
		return graft_fail_errno(err, errno, "failed to open OCI spec file: %s", path);
	rc = graft_read_fd(fd, MAX_CONFIGURATION, hook->arena, &text, &length);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "failed to load minimal OCI spec: %s", path);
	if (graft_json_document_parse(path, text, length, ret_document, err) < 0)
		return graft_wrap(err, "failed to load minimal OCI spec");
	return 0;
}

/* root.path of the configuration, absolute. In the arena. */
static int find_root(struct cdi_hook *hook, const char *bundle, const char **ret_rootfs, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	const char *path;

	if (!bundle || bundle[0] != '/')
		return graft_fail(err, GRAFT_FORMAT, 0, "the container's state names no bundle by an absolute path");
	if (read_configuration(hook, bundle, &document, err) < 0)
		return -1;
	path = graft_json_node_string(graft_json_node_at(graft_json_document_root(document), "root.path"));
	if (!path || path[0] == '\0')
		return graft_fail(err, GRAFT_FORMAT, 0,
				  "empty container root detected: %s/config.json has no root.path", bundle);
	*ret_rootfs = path[0] == '/' ? graft_arena_strdup(hook->arena, path)
				     : graft_arena_printf(hook->arena, "%s/%s", bundle, path);
	return *ret_rootfs ? 0 : graft_fail_memory(err);
}

/* The working directory is the image's: as for state files. */
static int check_rootfs(const char *rootfs, struct graft_error *err)
{
	if (rootfs[0] == '/')
		return 0;
	return graft_fail(err, GRAFT_INVALID, 0, "the container's root must be an absolute path: '%s'", rootfs);
}

/* Standard input is there once; the hooks of a sequence are of one container. */
static int find_rootfs(struct cdi_hook *hook, const char **ret_rootfs, struct graft_error *err)
{
	struct graft_oci_state state = { .pid = 0 };

	*ret_rootfs = state_file(hook) ? NULL : hook->rootfs;
	if (*ret_rootfs)
		return check_rootfs(*ret_rootfs, err);
	if (read_state(hook, &state, err) < 0)
		return graft_wrap(err, "failed to load container state");
	if (find_root(hook, state.bundle, ret_rootfs, err) < 0)
		return graft_wrap(err, "failed to determined container root");
	if (!state_file(hook))
		hook->rootfs = *ret_rootfs;
	return 0;
}

int cdi_hook_open(struct cdi_hook *hook, struct graft_target *ret_target, struct graft_error *err)
{
	const char *rootfs = NULL;

	if (find_rootfs(hook, &rootfs, err) < 0)
		return -1;
	if (graft_target_open(getpid(), false, rootfs, &hook->log, ret_target, err) < 0)
		return graft_wrap(err, "failed to determined container root");
	return 0;
}
