/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_container: opens the container's root from the OCI state, or from a path that was given
 * (SPEC ctk-and-cdi 2.0). State, bundle and path come from the engine and are trusted; nothing
 * below the root is read yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/oci/oci_edits.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "formats/json/json_document.h"
#include "formats/oci_spec.h"

#define MAX_STATE         ((size_t)1 << 20) /* engines copy all annotations into it */
#define MAX_CONFIGURATION ((size_t)16 << 20)

/* The file given instead of standard input; NULL if none. */
static const char *state_file(const struct cdi_hook *hook)
{
	const char *path = hook->container_spec;

	return path && path[0] != '\0' && strcmp(path, "-") != 0 ? path : NULL;
}

static int read_cdi_hook_state(struct cdi_hook *hook, struct graft_oci_state *ret_state, struct graft_error *err)
{
	const char *path = state_file(hook), *text = NULL;
	size_t length = 0;
	int rc;

	/* The hook was started in a directory of the image, so a relative path is refused. */
	if (path && path[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "failed to open file: %s: the path must be absolute", path);
	path = path ? path : "-";
	rc = graft_read_input(path, MAX_STATE, hook->arena, &text, &length);
	if (rc == -ENOENT || rc == -EACCES)
		return graft_fail_errno(err, -rc, "failed to open file: %s", path);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "failed to decode container state: %s", graft_input_name(path));
	return graft_oci_state_read(text, length, hook->arena, ret_state, err);
}

static int read_configuration(struct cdi_hook *hook, const char *bundle, struct graft_json_document **ret_document,
			      struct graft_error *err)
{
	const char *path = graft_arena_printf(hook->arena, "%s/config.json", bundle ? bundle : ""), *text = NULL;
	auto_close int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	size_t length = 0;
	int rc;

	if (!bundle || bundle[0] != '/')
		return graft_fail(err, GRAFT_FORMAT, 0, "the container's state names no bundle by an absolute path");
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

/*
 * Reads root.path from the configuration and makes it absolute, in the arena, and what is mounted
 * at /dev.
 */
static int find_root(struct cdi_hook *hook, const char *bundle, struct cdi_hook_root *ret_root, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_oci_spec spec;
	const char *path;

	if (read_configuration(hook, bundle, &document, err) < 0 ||
	    graft_oci_spec_read(document, hook->arena, &spec, err) < 0)
		return -1;
	path = spec.root_path;
	if (!path || path[0] == '\0')
		return graft_fail(err, GRAFT_FORMAT, 0,
				  "empty container root detected: %s/config.json has no root.path", bundle);
	ret_root->path = path[0] == '/' ? graft_arena_strdup(hook->arena, path)
					: graft_arena_printf(hook->arena, "%s/%s", bundle, path);
	graft_oci_dev_read(&spec, hook->arena, &ret_root->oci_dev);
	ret_root->sources = graft_oci_spec_sources(&spec, bundle, hook->arena, &ret_root->n_sources);
	ret_root->has_proc = graft_oci_spec_mount_at(&spec, "/proc", hook->arena) != NULL;
	ret_root->cwd = spec.cwd ? graft_arena_strdup(hook->arena, spec.cwd) : NULL;
	ret_root->hooks_follow = graft_oci_count_hooks(document, "createContainer") > 1;
	return ret_root->path && ret_root->sources && !graft_arena_failed(hook->arena) ? 0 : graft_fail_memory(err);
}

/*
 * Reads DEV:INODE:DIR or DIR. The hook was started in a directory of the image, so a relative path
 * is refused.
 */
static int read_cdi_hook_rootfs(const struct cdi_hook *hook, struct cdi_hook_root *ret_root, struct graft_error *err)
{
	char *end;

	*ret_root =
	    (struct cdi_hook_root){ .path = hook->rootfs, .cwd = hook->cwd, .hooks_follow = hook->hooks_follow };
	if (hook->rootfs[0] >= '0' && hook->rootfs[0] <= '9') {
		ret_root->is_known = true;
		ret_root->dev = (dev_t)strtoumax(hook->rootfs, &end, 10);
		ret_root->inode = *end == ':' ? (ino_t)strtoumax(end + 1, &end, 10) : 0;
		ret_root->path = *end == ':' ? end + 1 : end;
	}
	if (ret_root->path[0] == '/')
		return 0;
	return graft_fail(err, GRAFT_INVALID, 0, "the container's root must be an absolute path: '%s'", hook->rootfs);
}

/* Standard input can be read only once; all hooks of a sequence belong to one container. */
static int find_rootfs(struct cdi_hook *hook, struct cdi_hook_root *ret_root, struct graft_error *err)
{
	struct graft_oci_state state = { .pid = 0 };

	*ret_root = hook->known_root;
	if (hook->rootfs && read_cdi_hook_rootfs(hook, ret_root, err) < 0)
		return -1;
	if (!state_file(hook) && ret_root->path) {
		cdi_hook_share_budget(hook, NULL);
		return 0;
	}
	if (read_cdi_hook_state(hook, &state, err) < 0)
		return graft_wrap(err, "failed to load container state");
	cdi_hook_share_budget(hook, &state);
	if (find_root(hook, state.bundle, ret_root, err) < 0)
		return graft_wrap(err, "failed to determined container root");
	if (!state_file(hook))
		hook->known_root = *ret_root;
	return 0;
}

/* SECURITY: a link of the image may lead a mount over the whole root. */
static int check_root(const struct cdi_hook_root *root, const struct graft_target *target, struct graft_error *err)
{
	struct stat st;

	if (!root->is_known)
		return graft_target_refuse_volume(target, root->sources, root->n_sources, err);
	if (fstat(target->root.fd, &st) == 0 && st.st_dev == root->dev && st.st_ino == root->inode)
		return 0;
	(void)graft_fail(err, GRAFT_UNSAFE, 0, "%s is not the root for which the container was prepared", root->path);
	return graft_with_hint(err, "Make a new bundle for each container.");
}

int cdi_hook_open(struct cdi_hook *hook, struct graft_target *ret_target, struct graft_error *err)
{
	struct cdi_hook_root root;

	if (find_rootfs(hook, &root, err) < 0)
		return -1;
	if (graft_target_open(getpid(), false, root.path, hook->budget, &hook->log, ret_target, err) < 0 ||
	    check_root(&root, ret_target, err) < 0)
		return graft_wrap(err, "failed to determined container root");
	ret_target->oci_dev = root.oci_dev;
	hook->cwd = root.cwd;
	hook->has_proc = root.has_proc;
	hook->hooks_follow = root.hooks_follow;
	return 0;
}

int cdi_hook_read_spec(struct cdi_hook *hook, struct graft_json_document **ret_document,
		       struct graft_oci_spec *ret_spec, struct graft_error *err)
{
	struct graft_oci_state state = { .pid = 0 };

	if (read_cdi_hook_state(hook, &state, err) < 0)
		return graft_wrap(err, "failed to load container state");
	if (read_configuration(hook, state.bundle, ret_document, err) < 0)
		return -1;
	return graft_oci_spec_read(*ret_document, hook->arena, ret_spec, err);
}
