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

/* "../nvidia0" as udev writes it; a node elsewhere has no shorter name than its own. False when it does not fit. */
static bool link_text(const struct graft_dev_char *node, char *text, size_t size)
{
	size_t skip = strncmp(node->path, DEV, strlen(DEV)) == 0 ? strlen(DEV) : 0;
	int length = snprintf(text, size, "%s%s", skip > 0 ? "../" : "", node->path + skip);

	return length > 0 && (size_t)length < size;
}

/* 1: the link is right, or something is there that is no link; 0: there is none; -1: it is wrong. */
static int look(int directory_fd, const char *name, const struct graft_dev_char *node)
{
	struct stat st;

	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISLNK(st.st_mode))
		return 1;
	if (fstatat(directory_fd, name, &st, 0) < 0 || !S_ISCHR(st.st_mode))
		return -1;
	return st.st_rdev == makedev(node->major, node->minor) ? 1 : -1;
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

/* Whether the link was made by us. */
static bool make_one(int directory_fd, const struct graft_dev_char *node, const struct graft_log *log)
{
	char name[32], text[PATH_MAX];
	int found, rc = 0;

	(void)snprintf(name, sizeof(name), "%u:%u", node->major, node->minor);
	found = look(directory_fd, name, node);
	if (found > 0)
		return false;
	if (!link_text(node, text, sizeof(text)))
		rc = -ENAMETOOLONG;
	else if (found < 0)
		rc = replace(directory_fd, name, text);
	else if (symlinkat(text, directory_fd, name) < 0)
		rc = -errno;
	if (rc == -EEXIST)
		return false; /* another container's start was faster */
	if (rc < 0)
		graft_warn(log,
			   "could not make " DEV_CHAR "/%s: %s; the next 'systemctl daemon-reload' may take %s away",
			   name, strerror(-rc), node->path);
	else
		graft_info(log, "made " DEV_CHAR "/%s -> %s, so that systemd knows the device", name, text);
	return rc == 0;
}

int graft_dev_char_make_in(const char *directory, const struct graft_dev_char *nodes, size_t n_nodes,
			   const struct graft_log *log, struct graft_error *err)
{
	auto_close int fd = -1;
	int n_made = 0;

	if (n_nodes == 0)
		return 0;
	if (mkdir(directory, MODE) < 0 && errno != EEXIST)
		return graft_fail_errno(err, errno, "directory creation failed: %s", directory);
	fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return graft_fail_errno(err, errno, "open failed: %s", directory);
	for (size_t i = 0; i < n_nodes; i++)
		n_made += make_one(fd, &nodes[i], log);
	return n_made;
}

int graft_dev_char_make(const struct graft_dev_char *nodes, size_t n_nodes, const struct graft_log *log,
			struct graft_error *err)
{
	return graft_dev_char_make_in(DEV_CHAR, nodes, n_nodes, log, err);
}
