/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dev_char: makes links on the host, before any container is touched. Knows device numbers and
 * paths. Does not check whether systemd runs: the links do no harm, and systemd may need them
 * later.
 */
#include "apply/dev_char.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "apply/host_place.h"
#include "apply/temporary.h"
#include "base/cleanup.h"

#define DEV      "/dev/"
#define DEV_CHAR "/dev/char"

/* What exists under the name of a link. */
enum found { MISSING, RIGHT, WRONG, NO_LINK };

/*
 * Writes the link's text: "../nvidia0", as udev does it, or the full path for a node elsewhere.
 * Returns false if it does not fit.
 */
static bool link_text(const struct graft_dev_char_options *options, const struct graft_dev_char *node, char *text,
		      size_t size)
{
	size_t skip = !options->absolute && strncmp(node->path, DEV, strlen(DEV)) == 0 ? strlen(DEV) : 0;
	int length = snprintf(text, size, "%s%s", skip > 0 ? "../" : "", node->path + skip);

	return length > 0 && (size_t)length < size;
}

/*
 * SECURITY: in a world-writable directory, the owner of a foreign link may change its target later.
 */
static enum found look_at_char_link(int directory_fd, const char *name, const struct graft_dev_char *node,
				    const char *text)
{
	char existing[PATH_MAX];
	struct stat directory, st;
	ssize_t length;

	if (directory_fd < 0 || fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return MISSING;
	if (!S_ISLNK(st.st_mode))
		return NO_LINK;
	if (fstat(directory_fd, &directory) < 0 || !graft_host_may_follow(&directory, &st))
		return WRONG;
	if (fstatat(directory_fd, name, &st, 0) == 0)
		return S_ISCHR(st.st_mode) && st.st_rdev == makedev(node->major, node->minor) ? RIGHT : WRONG;
	/* The node may be visible on the host only, or not be made yet. */
	length = readlinkat(directory_fd, name, existing, sizeof(existing));
	return length == (ssize_t)strlen(text) && memcmp(existing, text, (size_t)length) == 0 ? RIGHT : WRONG;
}

static const char *dev_char_directory(const struct graft_dev_char_options *options)
{
	return options->directory ? options->directory : DEV_CHAR;
}

static void announce(const struct graft_dev_char_options *options, const char *name, const char *text)
{
	char link[PATH_MAX];

	(void)snprintf(link, sizeof(link), "%s/%s", dev_char_directory(options), name);
	if (options->making)
		options->making(options->arg, link, text);
	else
		graft_info(options->log, "creating %s -> %s, so that systemd knows the device", link, text);
}

static void warn_no_char_link(const struct graft_dev_char_options *options, const struct graft_dev_char *node,
			      const char *name, const char *why)
{
	graft_warn(options->log,
		   "could not create %s/%s: %s; the container may lose %s at the next 'systemctl daemon-reload'",
		   dev_char_directory(options), name, why, node->path);
}

static int make_char_link(int directory_fd, const char *name, const char *text, bool exists)
{
	if (exists)
		return graft_link_replace(directory_fd, name, text);
	return symlinkat(text, directory_fd, name) < 0 ? -errno : 0;
}

/* Makes the link of one node, if needed. Returns whether it was made. */
static bool make_one(const struct graft_dev_char_options *options, int directory_fd, const struct graft_dev_char *node)
{
	char name[32], text[PATH_MAX];
	enum found found;
	int rc;

	(void)snprintf(name, sizeof(name), "%u:%u", node->major, node->minor);
	if (!link_text(options, node, text, sizeof(text))) {
		warn_no_char_link(options, node, name, strerror(ENAMETOOLONG));
		return false;
	}
	found = look_at_char_link(directory_fd, name, node, text);
	if (found == NO_LINK)
		warn_no_char_link(options, node, name, "it exists and is not a link");
	if (found == NO_LINK || found == RIGHT)
		return false;
	announce(options, name, text);
	rc = options->dry_run ? 0 : make_char_link(directory_fd, name, text, found == WRONG);
	if (rc < 0 && rc != -EEXIST) /* another container's start was faster */
		warn_no_char_link(options, node, name, strerror(-rc));
	return rc == 0;
}

/*
 * Opens the directory, making it if needed; in a dry run a missing directory yields an empty place.
 */
static int open_dev_char(const struct graft_dev_char_options *options, struct graft_host_place *ret_place,
			 struct graft_error *err)
{
	const unsigned int flags = GRAFT_HOST_DIRECTORY | (options->dry_run ? 0 : GRAFT_HOST_MAKE_LAST);
	const char *directory = dev_char_directory(options);
	int rc = graft_host_place_find(AT_FDCWD, -1, directory, flags, ret_place);

	if (rc == 0)
		return 0;
	if (options->dry_run && rc == -ENOENT) {
		graft_host_place_close(ret_place);
		return 0;
	}
	if (ret_place->why[0] != '\0')
		return graft_fail(err, GRAFT_PERMISSION, 0, "open failed: %s: %s", directory, ret_place->why);
	return graft_fail_errno(err, -rc, "%s failed: %s", rc == -ENOENT ? "directory creation" : "open", directory);
}

int graft_dev_char_make_with(const struct graft_dev_char_options *options, const struct graft_dev_char *nodes,
			     size_t n_nodes, struct graft_error *err)
{
	auto_host_place struct graft_host_place directory = GRAFT_HOST_PLACE_INIT;
	int n_made = 0;

	if (n_nodes == 0)
		return 0;
	if (open_dev_char(options, &directory, err) < 0)
		return -1;
	for (size_t i = 0; i < n_nodes; i++)
		n_made += make_one(options, directory.dir_fd, &nodes[i]);
	return n_made;
}

int graft_dev_char_make(const struct graft_dev_char *nodes, size_t n_nodes, const struct graft_log *log,
			struct graft_error *err)
{
	const struct graft_dev_char_options options = { .log = log };

	return graft_dev_char_make_with(&options, nodes, n_nodes, err);
}
