/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_compat_command: makes the container's loader prefer the image's CUDA forward-compatibility
 * libraries if they suit the host's driver (SPEC ctk-and-cdi 2.4). The change takes effect with the
 * next update-ldcache.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/path.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "formats/loader/cuda_compat.h"
#include "image/inspect.h"
#include "plan/compat_directory.h"
#include "plan/hook_edits.h"

#define PREFIX "libcuda.so."

static size_t count_cuda(const struct graft_image *image)
{
	size_t n = 0;

	for (size_t i = 0; i < image->n_compat; i++) {
		const char *name = graft_path_name(image->compat[i].path);

		n += strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strchr(name + strlen(PREFIX), '.');
	}
	return n;
}

static bool is_host_version_given(const char *version)
{
	return version && version[0] != '\0';
}

static void warn_of_versions(const struct cdi_hook *hook)
{
	const char *const given[] = { hook->host_driver_version, hook->host_cuda_version };

	for (size_t i = 0; i < GRAFT_COUNT(given); i++)
		if (is_host_version_given(given[i]) && !graft_cuda_compat_is_version(given[i]))
			graft_warn(&hook->log, "Not a version: %s", given[i]);
}

/*
 * Finds the directory of the libraries to use, with links resolved. *ret_path is NULL if they
 * should not be used.
 */
static int find_directory(struct cdi_hook *hook, const struct graft_image_root *root, const char **ret_path,
			  struct graft_error *err)
{
	struct graft_image image = { .debian = false };
	struct graft_compat_directory compat;
	const char *path;
	int rc = graft_image_root_resolve(root, hook->compat_root, hook->arena, &path, NULL);

	*ret_path = NULL;
	if (rc == -ENOENT || rc == -ENOTDIR)
		return 0;
	if (rc < 0)
		return graft_fail_errno(err, -rc, "failed to resolve %s", hook->compat_root);
	if (graft_image_find_compat(root, path, &hook->log, hook->arena, &image.compat, &image.n_compat, err) < 0)
		return -1;
	if (count_cuda(&image) > 1)
		graft_warn(&hook->log, "Unexpected number of CUDA compat libraries in container: %zu in %s",
			   count_cuda(&image), path);
	warn_of_versions(hook);
	compat = graft_compat_directory(&image, hook->host_driver_version, hook->host_cuda_version, hook->arena);
	if (compat.suits && graft_path_is_within(compat.cuda->path, path))
		*ret_path = path;
	return graft_arena_failed(hook->arena) ? graft_fail_memory(err) : 0;
}

/*
 * The file name sorts before the one of update-ldcache and never changes, so that a restarted
 * container does not collect files. SECURITY: an existing file of that name is replaced, never
 * opened.
 */
static int add_configuration(const char *text, struct graft_plan *plan, struct graft_error *err)
{
	struct graft_edit *edit = cdi_hook_edit(plan, GRAFT_EDIT_FILE, GRAFT_HOOK_COMPAT_CONF);

	if (!edit)
		return graft_fail_memory(err);
	edit->content = graft_arena_printf(plan->arena, "%s\n", text);
	edit->mode = 0644;
	return 0;
}

/* The host's driver may have been updated since the container's last start. */
static int take_back(const struct graft_image_root *root, struct graft_plan *plan, struct graft_error *err)
{
	if (!graft_image_root_has(root, GRAFT_HOOK_COMPAT_CONF, 0))
		return 1;
	return add_configuration("# The driver's own libraries are used.", plan, err);
}

static int fill_cuda_compat(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
			    struct graft_error *err)
{
	const char *directory;

	if (find_directory(hook, &target->root, &directory, err) < 0)
		return -1;
	if (!directory)
		return take_back(&target->root, plan, err);
	if (strchr(directory, '\n'))
		return graft_fail(err, GRAFT_UNSAFE, 0,
				  "the name of the directory of CUDA compat libraries has a line break");
	return add_configuration(directory, plan, err);
}

static int enable_cuda_compat(void *target, struct graft_error *err)
{
	static const struct cdi_hook_job job = { .fill = fill_cuda_compat, .failure = "failed to enable CUDA compat" };
	struct cdi_hook *hook = target;

	if (!is_host_version_given(hook->host_driver_version) && !is_host_version_given(hook->host_cuda_version))
		return 0;
	return cdi_hook_do(hook, &job, err);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct cdi_hook, member)
static const struct graft_option options[] = {
	{ .name = "host-driver-version", TEXT, AT(host_driver_version), .value_name = "VERSION",
	  .help = "Version of the host's driver" },
	{ .name = "host-cuda-version", TEXT, AT(host_cuda_version), .value_name = "VERSION",
	  .help = "CUDA version of the host's driver" },
	{ .name = "cuda-compat-container-root", TEXT, AT(compat_root), .value_name = "DIR",
	  .help = "Where the image has the libraries (default: " GRAFT_COMPAT_DIRECTORY ")" },
	CDI_HOOK_CONTAINER_SPEC(true),
};
/* clang-format on */

const struct graft_command cdi_hook_enable_cuda_compat = {
	CDI_HOOK_COMMAND,
	.name = "enable-cuda-compat",
	.summary = "Make the loader prefer the image's CUDA forward-compatibility libraries if they suit the driver",
	GRAFT_OPTIONS(options),
	.work = enable_cuda_compat,
};
