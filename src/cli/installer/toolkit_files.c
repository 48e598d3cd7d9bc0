/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolkit_files: what is in the directory of the toolkit on the node (SPEC installer-and-nri 4).
 * The programs need no scripts around them (start/installed.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "cli/installer/installer.h"
#include "cli/installer/toolkit_stage.h"
#include "start/installed.h"

#define REAL ".real"

enum kind { PROGRAM, PLAIN_PROGRAM, LIBRARY, HELPER };

static const struct part {
	const char *name;
	enum kind kind;
	bool is_optional;
} parts[] = {
	{ "libnvidia-container.so.1", LIBRARY, false },
	/* Graft does not have this library; other vendors' packages do. */
	{ "libnvidia-container-go.so.1", LIBRARY, true },
	{ "nvidia-ctk", PROGRAM, false },
	{ "nvidia-cdi-hook", PLAIN_PROGRAM, false },
	{ "nvidia-container-runtime", PROGRAM, false },
	{ "nvidia-container-runtime.cdi", PROGRAM, false },
	{ "nvidia-container-runtime.legacy", PROGRAM, false },
	{ "nvidia-container-cli", PROGRAM, false },
	{ "nvidia-container-runtime-hook", PROGRAM, false },
	/* Graft's own: static programs have it load NVML for them, next to themselves. */
	{ "graft-nvml", HELPER, true },
};

/* ---- one file ---- */

static int copy_part_bytes(int from, int to)
{
	char bytes[65536];
	ssize_t n;
	int rc;

	while ((n = read(from, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		rc = graft_write_all(to, bytes, (size_t)n);
		if (rc < 0)
			return rc;
	}
	return fdatasync(to) < 0 && errno != EINVAL ? -errno : 0;
}

/* Copies the file to `name` in the stage, with the source's mode and `more` of it. */
static int copy_part(const struct installer_stage *stage, const char *source, const char *name, mode_t more,
		     struct graft_error *err)
{
	auto_close int from = open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), to = -1;
	struct stat st;
	int rc;

	if (from < 0 || fstat(from, &st) < 0)
		return graft_fail_errno(err, errno, "failed to install %s: cannot open %s", name, source);
	if (!S_ISREG(st.st_mode))
		return graft_fail(err, GRAFT_INVALID, 0, "failed to install %s: %s is not a regular file", name,
				  source);
	to = openat(stage->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rc = to < 0 ? -errno : copy_part_bytes(from, to);
	if (rc == 0 && fchmod(to, (st.st_mode & 0777) | more) < 0)
		rc = -errno;
	return rc < 0 ? graft_fail_errno(err, -rc, "failed to install %s", name) : 0;
}

/* The first of the directories below the source root that has the file; NULL: none. */
static const char *find_source(const struct installer_stage *stage, const char *const *folders, const char *name)
{
	struct stat st;

	for (; *folders; folders++) {
		const char *path = graft_arena_printf(stage->options->base.ctk->arena, "%s/%s/%s",
						      stage->options->source_root, *folders, name);

		if (path && stat(path, &st) == 0)
			return path;
	}
	return NULL;
}

static int install_library(const struct installer_stage *stage, const char *source, const char *name,
			   struct graft_error *err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(source, target, sizeof(target) - 1);
	const char *folder = graft_path_directory(source, stage->options->base.ctk->arena), *real = name;

	if (n > 0) {
		target[n] = '\0';
		real = graft_arena_strdup(stage->options->base.ctk->arena, graft_path_name(target));
		source = folder ? graft_arena_printf(stage->options->base.ctk->arena, "%s/%s", folder,
						     target[0] == '/' ? real : target)
				: NULL;
	}
	if (!real || !source)
		return graft_fail_memory(err);
	if (copy_part(stage, source, real, 0, err) < 0)
		return -1;
	if (strcmp(real, name) != 0 && symlinkat(real, stage->fd, name) < 0)
		return graft_fail_errno(err, errno, "failed to install %s", name);
	return 0;
}

/* The program and NAME.real, the name by which other programs call it. */
static int install_program(const struct installer_stage *stage, const char *source, const char *name,
			   struct graft_error *err)
{
	const char *real = graft_arena_printf(stage->options->base.ctk->arena, "%s" REAL, name);

	if (!real)
		return graft_fail_memory(err);
	if (copy_part(stage, source, name, 0111, err) < 0)
		return -1;
	if (linkat(stage->fd, name, stage->fd, real, 0) == 0)
		return 0;
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
		return graft_fail_errno(err, errno, "failed to install %s", real);
	return copy_part(stage, source, real, 0111, err);
}

static int install_part(const struct installer_stage *stage, const struct part *part, struct graft_error *err)
{
	static const char *const programs[] = { "usr/bin", NULL };
	static const char *const helpers[] = { "usr/libexec/graft", "usr/lib/graft", "usr/bin", NULL };
	static const char *const libraries[] = { "usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
						 NULL };
	const char *const *folders = part->kind == LIBRARY ? libraries : part->kind == HELPER ? helpers : programs;
	const char *source = find_source(stage, folders, part->name);

	if (!source && part->is_optional)
		return 0;
	if (!source)
		return graft_fail(err, GRAFT_NOT_FOUND, 0, "failed to install %s: there is none in %s", part->name,
				  stage->options->source_root);
	graft_info(&stage->options->base.ctk->log, "Installing '%s'", part->name);
	if (part->kind == LIBRARY)
		return install_library(stage, source, part->name, err);
	if (part->kind == PROGRAM)
		return install_program(stage, source, part->name, err);
	return copy_part(stage, source, part->name, 0, err);
}

static int install_config(const struct installer_stage *stage, const struct ctk_list *runtimes, struct graft_error *err)
{
	struct graft_engine_text text;
	auto_close int fd = -1;
	int rc = 0;

	if (installer_config_make(stage->options, runtimes, &text, err) < 0)
		return -1;
	if (mkdirat(stage->fd, ".config", 0755) < 0 || mkdirat(stage->fd, ".config/nvidia-container-runtime", 0755) < 0)
		return graft_fail_errno(err, errno, "failed to create the directory of config.toml");
	fd = openat(stage->fd, GRAFT_OWN_CONFIG, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	rc = fd < 0 ? -errno : graft_write_all(fd, text.bytes, text.length);
	if (rc == 0 && (fchmod(fd, 0644) < 0 || fdatasync(fd) < 0) && errno != EINVAL)
		rc = -errno;
	if (rc < 0)
		return graft_fail_errno(err, -rc, "failed to write config.toml");
	return 0;
}

/* ---- all of them ---- */

/*
 * Records the error of one part: all parts are tried (SPEC installer-and-nri 4). The first error is
 * kept in `err`.
 */
static void note_part_error(const struct installer_stage *stage, int rc, const struct graft_error *one, bool *failed,
			    struct graft_error *err)
{
	char text[sizeof(one->msg) + sizeof(one->ctx)];

	if (rc == 0)
		return;
	(void)graft_error_text(one, text, sizeof(text));
	if (stage->options->ignore_errors) {
		graft_warn(&stage->options->base.ctk->log, "Ignoring error: %s", text);
		return;
	}
	if (!*failed)
		*err = *one;
	else
		graft_log_write(&stage->options->base.ctk->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s", text);
	*failed = true;
}

static int fill_stage(const struct installer_stage *stage, const struct ctk_list *runtimes, struct graft_error *err)
{
	struct graft_error one = { .status = GRAFT_OK };
	bool failed = false;
	int rc;

	for (size_t i = 0; i < GRAFT_COUNT(parts); i++) {
		rc = install_part(stage, &parts[i], &one);
		note_part_error(stage, rc, &one, &failed, err);
	}
	rc = symlinkat("nvidia-container-runtime-hook", stage->fd, "nvidia-container-toolkit");
	if (rc < 0)
		(void)graft_fail_errno(&one, errno, "failed to install nvidia-container-toolkit");
	note_part_error(stage, rc, &one, &failed, err);
	rc = install_config(stage, runtimes, &one);
	note_part_error(stage, rc, &one, &failed, err);
	return failed ? -1 : 0;
}

int installer_toolkit_install(const struct installer_options *o, const struct ctk_list *runtimes,
			      struct graft_error *err)
{
	struct installer_stage stage = INSTALLER_STAGE_INIT;
	mode_t mask = umask(022);
	int rc = installer_stage_open(o, &stage, err);

	if (rc == 0)
		rc = fill_stage(&stage, runtimes, err);
	if (rc == 0)
		rc = installer_stage_exchange(&stage, err);
	if (rc <= 0)
		installer_stage_remove(&stage);
	installer_stage_close(&stage);
	(void)umask(mask);
	return rc;
}
