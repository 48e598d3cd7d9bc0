/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities: how the driver controls access to MIG devices (SPEC libnvidia-container 2.5). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "abi/abi.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "formats/procfs.h"

#define ARENA_MAX ((size_t)1 << 20)
#define FILE_MAX  ((size_t)1 << 16)

static bool find_capabilities_major(const struct graft_root *root, struct graft_arena *arena, uint32_t *ret_major)
{
	const char *text = NULL;
	size_t length = 0;

	return graft_root_read(root, "/proc/devices", FILE_MAX, arena, &text, &length) == 0 &&
	       graft_procfs_devices_major(text, length, "nvidia-caps", ret_major);
}

ABI_PUBLIC int nvc_nvcaps_style(void)
{
	auto_arena struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	int style = NVC_NVCAPS_STYLE_NONE;
	struct stat st;
	uint32_t major;

	if (arena && graft_root_open(&root, "/", NULL) == 0) {
		if (find_capabilities_major(&root, arena, &major))
			style = NVC_NVCAPS_STYLE_DEV;
		else if (graft_root_stat(&root, "/proc/driver/nvidia/capabilities", &st) == 0)
			style = NVC_NVCAPS_STYLE_PROC;
	}
	return style;
}

/* Reads the minor number from a capability file. 0 or -errno. */
static int read_minor(const struct graft_root *root, const char *path, struct graft_arena *arena, uint32_t *ret_minor)
{
	struct graft_key_value *items = NULL;
	const char *text = NULL, *value = NULL;
	size_t length = 0, n = 0;
	unsigned long minor;
	char *end = NULL;
	int rc = graft_root_read(root, path, FILE_MAX, arena, &text, &length);

	if (rc == 0)
		rc = graft_procfs_key_values(text, length, arena, &items, &n) < 0 ? -ENOMEM : 0;
	if (rc < 0)
		return rc;
	value = graft_key_value_find(items, n, "DeviceFileMinor");
	if (!value || value[0] < '0' || value[0] > '9')
		return -EINVAL;
	errno = 0;
	minor = strtoul(value, &end, 10);
	if (errno != 0 || *end != '\0' || minor > UINT32_MAX)
		return -EINVAL;
	*ret_minor = (uint32_t)minor;
	return 0;
}

static int find_node(const struct nvc_context *ctx, const char *cap_path, struct graft_arena *arena,
		     struct nvc_device_node *node, struct graft_error *err)
{
	auto_root struct graft_root driver = GRAFT_ROOT_INIT, host = GRAFT_ROOT_INIT;
	uint32_t major = 0, minor = 0;
	char *path;
	int rc;

	if (graft_root_open(&driver, ctx->host.root ? ctx->host.root : "/", err) < 0 ||
	    graft_root_open(&host, "/", err) < 0)
		return -1;
	rc = read_minor(&driver, cap_path, arena, &minor);
	if (rc == 0 && !find_capabilities_major(&host, arena, &major))
		rc = -ENODEV;
	if (rc < 0)
		return graft_fail_errno(err, -rc, "unable to get cap device attributes: %s", cap_path);
	path = graft_arena_printf(arena, "/dev/nvidia-caps/nvidia-cap%u", minor);
	node->path = path ? strdup(path) : NULL;
	if (!node->path)
		return graft_fail_memory(err);
	node->id = makedev(major, minor);
	return 0;
}

ABI_PUBLIC int nvc_nvcaps_device_from_proc_path(struct nvc_context *ctx, const char *cap_path,
						struct nvc_device_node *node)
{
	auto_arena struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_error err = { .status = GRAFT_OK };

	if (abi_check(ctx) < 0)
		return -1;
	if (!cap_path || cap_path[0] != '/' || !node)
		return abi_invalid(ctx);
	if ((arena ? find_node(ctx, cap_path, arena, node, &err) : graft_fail_memory(&err)) < 0)
		return abi_fail(ctx, &err);
	return 0;
}
