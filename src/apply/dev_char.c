/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dev_char: links on the host, before any container is touched. Knows numbers and paths; whether systemd runs is none of its business, since the links
 * harm nobody and systemd may be told later.
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

#include "apply/temporary.h"
#include "base/cleanup.h"

#define DEV      "/dev/"
#define DEV_CHAR "/dev/char"
#define MODE     0755

/* What is there in the place of a link. */
enum found { MISSING, RIGHT, WRONG, NO_LINK };

/* "../nvidia0" as udev writes it; a node elsewhere has no shorter name than its own. False when it does not fit. */
static bool link_text(const struct graft_dev_char_options *options, const struct graft_dev_char *node, char *text,
		      size_t size)
{
	size_t skip = !options->absolute && strncmp(node->path, DEV, strlen(DEV)) == 0 ? strlen(DEV) : 0;
	int length = snprintf(text, size, "%s%s", skip > 0 ? "../" : "", node->path + skip);

	return length > 0 && (size_t)length < size;
}

static enum found look(int directory_fd, const char *name, const struct graft_dev_char *node, const char *text)
{
	char existing[PATH_MAX];
	struct stat st;
	ssize_t length;

	if (directory_fd < 0 || fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return MISSING;
	if (!S_ISLNK(st.st_mode))
		return NO_LINK;
	if (fstatat(directory_fd, name, &st, 0) == 0)
		return S_ISCHR(st.st_mode) && st.st_rdev == makedev(node->major, node->minor) ? RIGHT : WRONG;
	/* The node may be in view of the host only, or not made yet. */
	length = readlinkat(directory_fd, name, existing, sizeof(existing));
	return length == (ssize_t)strlen(text) && memcmp(existing, text, (size_t)length) == 0 ? RIGHT : WRONG;
}

/* Nobody sees the moment between an old link and the new one. 0 or -errno. */
static int replace(int directory_fd, const char *name, const char *text)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	int rc = graft_temporary_link(directory_fd, text, temporary);

	if (rc == 0 && renameat(directory_fd, temporary, directory_fd, name) < 0) {
		rc = -errno;
		(void)unlinkat(directory_fd, temporary, 0);
	}
	return rc;
}

static const char *directory_of(const struct graft_dev_char_options *options)
{
	return options->directory ? options->directory : DEV_CHAR;
}

static void announce(const struct graft_dev_char_options *options, const char *name, const char *text)
{
	char link[PATH_MAX];

	(void)snprintf(link, sizeof(link), "%s/%s", directory_of(options), name);
	if (options->making)
		options->making(options->arg, link, text);
	else
		graft_info(options->log, "making %s -> %s, so that systemd knows the device", link, text);
}

static void warn(const struct graft_dev_char_options *options, const struct graft_dev_char *node, const char *name,
		 const char *why)
{
	graft_warn(options->log, "could not make %s/%s: %s; the next 'systemctl daemon-reload' may take %s away",
		   directory_of(options), name, why, node->path);
}

static int make_link(int directory_fd, const char *name, const char *text, bool exists)
{
	if (exists)
		return replace(directory_fd, name, text);
	return symlinkat(text, directory_fd, name) < 0 ? -errno : 0;
}

/* Whether the link was made by us. */
static bool make_one(const struct graft_dev_char_options *options, int directory_fd, const struct graft_dev_char *node)
{
	char name[32], text[PATH_MAX];
	enum found found;
	int rc;

	(void)snprintf(name, sizeof(name), "%u:%u", node->major, node->minor);
	if (!link_text(options, node, text, sizeof(text))) {
		warn(options, node, name, strerror(ENAMETOOLONG));
		return false;
	}
	found = look(directory_fd, name, node, text);
	if (found == NO_LINK)
		warn(options, node, name, "something that is no link is there");
	if (found == NO_LINK || found == RIGHT)
		return false;
	announce(options, name, text);
	rc = options->dry_run ? 0 : make_link(directory_fd, name, text, found == WRONG);
	if (rc < 0 && rc != -EEXIST) /* which means that another container's start was faster */
		warn(options, node, name, strerror(-rc));
	return rc == 0;
}

/* The directory; -1 in *ret_fd when there is none, and none is to be made. */
static int open_directory(const struct graft_dev_char_options *options, int *ret_fd, struct graft_error *err)
{
	const char *directory = directory_of(options);

	if (!options->dry_run && mkdir(directory, MODE) < 0 && errno != EEXIST)
		return graft_fail_errno(err, errno, "directory creation failed: %s", directory);
	*ret_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0 && !(options->dry_run && errno == ENOENT))
		return graft_fail_errno(err, errno, "open failed: %s", directory);
	return 0;
}

int graft_dev_char_make_with(const struct graft_dev_char_options *options, const struct graft_dev_char *nodes,
			     size_t n_nodes, struct graft_error *err)
{
	auto_close int fd = -1;
	int n_made = 0;

	if (n_nodes == 0)
		return 0;
	if (open_directory(options, &fd, err) < 0)
		return -1;
	for (size_t i = 0; i < n_nodes; i++)
		n_made += make_one(options, fd, &nodes[i]);
	return n_made;
}

int graft_dev_char_make(const struct graft_dev_char *nodes, size_t n_nodes, const struct graft_log *log,
			struct graft_error *err)
{
	const struct graft_dev_char_options options = { .log = log };

	return graft_dev_char_make_with(&options, nodes, n_nodes, err);
}
