/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chmod: changes the mode of files in the container (SPEC ctk-and-cdi 2.2; deprecated, but still
 * named by specs on users' disks). SECURITY: a path is resolved once, below the root, and the mode
 * is changed through that descriptor; the original hook followed links of the image on the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/image_root.h"
#include "base/option_rows.h"
#include "cli/cdi_hook/cdi_hook.h"

#define MODE_BITS 07777u

static int parse_mode(const char *text, mode_t *ret_mode, struct graft_error *err)
{
	mode_t mode = 0;

	if (!text || text[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "a non-empty mode must be specified");
	for (const char *c = text; *c != '\0'; c++) {
		if (*c < '0' || *c > '7' || mode > MODE_BITS)
			return graft_fail(err, GRAFT_INVALID, 0, "failed to parse mode as octal: %s", text);
		mode = mode * 8 + (mode_t)(*c - '0');
	}
	if (mode > MODE_BITS)
		return graft_fail(err, GRAFT_INVALID, 0, "failed to parse mode as octal: %s", text);
	*ret_mode = mode;
	return 0;
}

static int check_chmod_paths(const struct cdi_hook *hook, struct graft_error *err)
{
	for (size_t i = 0; i < hook->paths.n; i++)
		if (hook->paths.items[i][strspn(hook->paths.items[i], " \t")] == '\0')
			return graft_fail(err, GRAFT_INVALID, 0, "paths must not be empty");
	return 0;
}

/*
 * QUIRK: fchmod(2) refuses O_PATH descriptors, so the mode is changed through our own
 * /proc/self/fd. Returns 0 or -errno.
 */
static int chmod_container_path(const struct graft_target *target, const char *path, mode_t mode)
{
	auto_close int fd = graft_image_root_look(&target->root, path, 0);
	char link[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* the file does not exist: nothing to change */
	if ((st.st_mode & MODE_BITS) == mode)
		return 0;
	/* SECURITY: a link in the image, or a volume, may resolve to a file of the host. */
	if (graft_image_root_may_write(&target->root, fd, path, GRAFT_IMAGE_CONTENT) < 0)
		return -EXDEV;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return chmod(link, mode) < 0 ? -errno : 0;
}

static int change_modes(void *context, struct graft_error *err)
{
	struct cdi_hook *hook = context;
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	mode_t mode = 0;

	if (parse_mode(hook->mode, &mode, err) < 0 || check_chmod_paths(hook, err) < 0 ||
	    cdi_hook_open(hook, &target, err) < 0)
		return -1;
	graft_target_find_dev(&target.root, &target.oci_dev);
	for (size_t i = 0; i < hook->paths.n; i++) {
		int rc = chmod_container_path(&target, hook->paths.items[i], mode);

		if (rc == -EXDEV)
			graft_warn(&hook->log, "not changing the mode of %s: it is not on the mount of the root",
				   hook->paths.items[i]);
		else if (rc == -EPERM || rc == -EACCES)
			graft_debug(&hook->log, "not changing the mode of %s: %s", hook->paths.items[i], strerror(-rc));
		else if (rc < 0)
			return graft_fail_errno(err, -rc, "failed to change the mode of %s", hook->paths.items[i]);
	}
	return 0;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct cdi_hook, member)
static const struct graft_option options[] = {
	{ .name = "path", .argument = GRAFT_OPTION_REQUIRED, .parse = cdi_hook_parse_list, AT(paths),
	  .value_name = "PATH", .help = "File or directory of the container; can be repeated" },
	{ .name = "mode", TEXT, AT(mode), .value_name = "OCTAL", .help = "The new mode" },
	CDI_HOOK_CONTAINER_SPEC(false),
};
/* clang-format on */

const struct graft_command cdi_hook_chmod = {
	CDI_HOOK_COMMAND,
	.name = "chmod",
	.summary = "Change the mode of files in the container (deprecated)",
	GRAFT_OPTIONS(options),
	.work = change_modes,
};
