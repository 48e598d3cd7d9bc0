/* SPDX-License-Identifier: Apache-2.0 */
/* device_node: makes one node at a time, in a directory that the caller has opened. */
#include "apply/device_node.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "formats/procfs.h"

static unsigned long number_of(const struct graft_key_value *items, size_t n, const char *key, unsigned long otherwise)
{
	const char *value = graft_key_value_find(items, n, key);

	return value && isdigit((unsigned char)value[0]) ? strtoul(value, NULL, 10) : otherwise;
}

struct graft_node_attributes graft_node_attributes_parse(const char *text, size_t length, struct graft_arena *arena)
{
	struct graft_node_attributes attributes = GRAFT_NODE_ATTRIBUTES_INIT;
	struct graft_key_value *items;
	size_t n;

	if (graft_procfs_key_values(text, length, arena, &items, &n) < 0)
		return attributes;
	attributes.uid = (uid_t)number_of(items, n, "DeviceFileUID", 0);
	attributes.gid = (gid_t)number_of(items, n, "DeviceFileGID", 0);
	attributes.mode = (mode_t)number_of(items, n, "DeviceFileMode", 0666) & 07777;
	attributes.modify = number_of(items, n, "ModifyDeviceFiles", number_of(items, n, "DeviceFileModify", 1)) == 1;
	return attributes;
}

enum graft_node_found graft_device_node_look(int parent_fd, const char *name, dev_t number)
{
	struct stat st;

	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return GRAFT_NODE_ABSENT;
	if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
		return GRAFT_NODE_NONE;
	return S_ISCHR(st.st_mode) && st.st_rdev == number ? GRAFT_NODE_SAME : GRAFT_NODE_OTHER;
}

/*
 * SECURITY: another user may own the directory and replace the node with a link. Then the link is
 * opened instead of a device, and is not followed.
 */
static int set_attributes(int parent_fd, const char *name, dev_t number, const struct graft_node_attributes *attributes)
{
	auto_close int fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != number)
		return -ESTALE;
	if (fchownat(fd, "", attributes->uid, attributes->gid, AT_EMPTY_PATH) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* mknod(2) applies the umask. */
	return chmod(path, attributes->mode) < 0 ? -errno : 0;
}

int graft_device_node_put(int parent_fd, const char *name, dev_t number, const struct graft_node_attributes *attributes)
{
	struct stat st;
	bool made = false;
	int rc;

	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		bool same = S_ISCHR(st.st_mode) && st.st_rdev == number;

		if (same && (st.st_mode & 07777) == attributes->mode && st.st_uid == attributes->uid &&
		    st.st_gid == attributes->gid)
			return 0;
		if (!same && unlinkat(parent_fd, name, 0) < 0)
			return -errno;
		made = !same;
	} else if (errno == ENOENT) {
		made = true;
	} else {
		return -errno;
	}
	if (made && mknodat(parent_fd, name, S_IFCHR | attributes->mode, number) < 0)
		return -errno;
	rc = set_attributes(parent_fd, name, number, attributes);
	if (rc < 0 && made && rc != -ESTALE)
		(void)unlinkat(parent_fd, name, 0);
	return rc;
}
