/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_compat: lets the container's loader prefer the image's CUDA forward-compatibility libraries where they suit the host's driver (SPEC ctk-and-cdi 2.4).
 * What it writes takes effect with the next update-ldcache.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "formats/cuda_compat.h"
#include "host/image.h"
#include "plan/hook_edits.h"

#define PREFIX      "libcuda.so."
#define MAX_ENTRIES 4096 /* of a directory of the container */

/* The one libcuda of the directory. */
struct library {
	const char *directory; /* links resolved; in the arena */
	char name[NAME_MAX + 1];
	size_t n_found;
};

/* libcuda.so.*.* */
static bool is_library_name(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strchr(name + strlen(PREFIX), '.');
}

static void look(DIR *dir, int dir_fd, struct library *library)
{
	const struct dirent *entry;
	struct stat st;

	for (int i = 0; i < MAX_ENTRIES && (entry = readdir(dir)); i++) {
		if (!is_library_name(entry->d_name) || fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		(void)snprintf(library->name, sizeof(library->name), "%s", entry->d_name);
		library->n_found++;
	}
}

/* 1: there is exactly one. */
static int find_library(struct cdi_hook *hook, const struct graft_root *root, struct library *library,
			struct graft_error *err)
{
	auto_dir DIR *dir = NULL;
	auto_close int path_fd = -1, fd = -1;
	int dir_fd, rc = graft_root_resolve(root, hook->compat_root, hook->arena, &library->directory, &path_fd);

	if (rc == -ENOENT || rc == -ENOTDIR)
		return 0;
	if (rc < 0)
		return graft_fail_errno(err, -rc, "failed to resolve %s", hook->compat_root);
	fd = graft_root_reopen(root, path_fd, library->directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	if (fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return graft_fail_errno(err, -fd, "directory read error: %s", library->directory);
	dir_fd = fd;
	dir = fdopendir(fd);
	if (!dir)
		return graft_fail_errno(err, errno, "directory read error: %s", library->directory);
	(void)TAKE_FD(fd);
	look(dir, dir_fd, library);
	if (library->n_found > 1)
		graft_warn(&hook->log, "Unexpected number of CUDA compat libraries in container: %zu in %s",
			   library->n_found, library->directory);
	return library->n_found == 1;
}

/* What the library says of itself; 0 when it says nothing that can be understood. */
static int read_header(struct cdi_hook *hook, const struct graft_root *root, const struct library *library,
		       struct graft_cuda_compat *ret_compat)
{
	const char *path = graft_arena_printf(hook->arena, "%s/%s", library->directory, library->name);
	auto_close int path_fd = path ? graft_root_openat(root, path, O_PATH | O_NOFOLLOW) : -1;
	auto_close int fd = -1;
	struct graft_error err = { .status = GRAFT_OK };
	struct stat st;
	int rc;

	/* SECURITY: only a regular file is opened. */
	if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	fd = graft_root_reopen(root, path_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return 0;
	rc = graft_cuda_compat_read_fd(fd, path, hook->arena, ret_compat, &err);
	if (rc < 0)
		graft_warn(&hook->log, "Failed to read the compatibility header of %s: %s", path, err.msg);
	return rc > 0;
}

static bool is_wanted(struct cdi_hook *hook, const struct graft_root *root, const struct library *library)
{
	struct graft_cuda_compat compat = { .cuda_version = NULL };
	const char *version = library->name + strlen(PREFIX);
	const char *const given[] = { version, hook->host_driver_version, hook->host_cuda_version };
	bool has_header = read_header(hook, root, library, &compat) > 0;

	for (size_t i = 0; i < GRAFT_COUNT(given); i++)
		if (given[i] && given[i][0] != '\0' && !graft_cuda_compat_is_version(given[i]))
			graft_warn(&hook->log, "Not a version: %s", given[i]);
	return graft_cuda_compat_suits(has_header ? &compat : NULL, version, hook->host_driver_version,
				       hook->host_cuda_version);
}

/*
 * The name sorts before that of update-ldcache, and is always the same: a container that is started again must not collect files. SECURITY: what has the name is
 * replaced, never opened.
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

/* The host's driver may have become newer since the container was started before. */
static int take_back(const struct graft_root *root, struct graft_plan *plan, struct graft_error *err)
{
	struct stat st;

	if (graft_root_stat(root, GRAFT_HOOK_COMPAT_CONF, &st) < 0)
		return 1;
	return add_configuration("# The driver's own libraries are used.", plan, err);
}

static int fill(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
		struct graft_error *err)
{
	struct library library = { .n_found = 0 };
	int rc = find_library(hook, &target->root, &library, err);

	if (rc < 0)
		return -1;
	if (rc == 0 || !is_wanted(hook, &target->root, &library))
		return take_back(&target->root, plan, err);
	if (strchr(library.directory, '\n'))
		return graft_fail(err, GRAFT_UNSAFE, 0, "the name of the directory of %s has a line break",
				  library.name);
	return add_configuration(library.directory, plan, err);
}

static bool is_given(const char *version)
{
	return version && version[0] != '\0';
}

static int run(void *context, int argc, char **argv)
{
	static const struct cdi_hook_job job = { .fill = fill, .failure = "failed to enable CUDA compat" };
	const struct cdi_hook *hook = context;

	(void)argc;
	(void)argv;
	if (!is_given(hook->host_driver_version) && !is_given(hook->host_cuda_version))
		return 0;
	return cdi_hook_do(context, &job);
}

static const struct graft_option options[] = {
	{ .name = "host-driver-version",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "VERSION",
	  .help = "Version of the host's driver",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct cdi_hook, host_driver_version) },
	{ .name = "host-cuda-version",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "VERSION",
	  .help = "CUDA version of the host's driver",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct cdi_hook, host_cuda_version) },
	{ .name = "cuda-compat-container-root",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "DIR",
	  .help = "Where the image has the libraries (default: " GRAFT_COMPAT_DIRECTORY ")",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct cdi_hook, compat_root) },
	CDI_HOOK_CONTAINER_SPEC(true),
};

const struct graft_command cdi_hook_enable_cuda_compat = {
	.name = "enable-cuda-compat",
	.arguments = "",
	.summary = "Let the loader prefer the image's CUDA forward-compatibility libraries where they suit the driver",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.go_style = true,
	.run = run,
};
