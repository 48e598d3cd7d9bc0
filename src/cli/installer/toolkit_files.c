/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolkit_files: the directory of the toolkit on the node (SPEC installer-and-nri 4). It is made
 * whole under another name and exchanged with the old one at once, so that a container that starts
 * at any moment, and an installer that is killed at any moment, find a whole toolkit, old or new.
 * The programs need no scripts around them (start/installed.h).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/read.h"
#include "base/strings.h"
#include "cli/installer/installer.h"
#include "start/installed.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

#define MAX_STAGES 1000 /* with the toolkits that processes still run */
#define REAL       ".real"
#define MAPS_MAX   ((size_t)8 << 20)

enum kind { PROGRAM, PLAIN_PROGRAM, LIBRARY, HELPER };

static const struct part {
	const char *name;
	enum kind kind;
	bool is_optional;
} parts[] = {
	{ "libnvidia-container.so.1", LIBRARY, false },
	/* Graft has no such library; packages of others do. */
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

struct stage {
	const struct installer_options *options;
	struct graft_arena *arena;
	int parent_fd, fd; /* of DIR, and of the staged directory */
	char name[32];     /* of the staged directory; after the exchange, of the old toolkit */
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
static int copy_part(const struct stage *stage, const char *source, const char *name, mode_t more,
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

/* The first of the folders below the source root that has the file; NULL: none. */
static const char *find_source(const struct stage *stage, const char *const *folders, const char *name)
{
	struct stat st;

	for (; *folders; folders++) {
		const char *path = graft_arena_printf(stage->arena, "%s/%s/%s", stage->options->source_root, *folders,
						      name);

		if (path && stat(path, &st) == 0)
			return path;
	}
	return NULL;
}

static int install_library(const struct stage *stage, const char *source, const char *name, struct graft_error *err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(source, target, sizeof(target) - 1);
	const char *folder = graft_path_directory(source, stage->arena), *real = name;

	if (n > 0) {
		target[n] = '\0';
		real = graft_arena_strdup(stage->arena, graft_path_name(target));
		source = folder ? graft_arena_printf(stage->arena, "%s/%s", folder, target[0] == '/' ? real : target)
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

/* The program and NAME.real, by which others call it. */
static int install_program(const struct stage *stage, const char *source, const char *name, struct graft_error *err)
{
	const char *real = graft_arena_printf(stage->arena, "%s" REAL, name);

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

static int install_part(const struct stage *stage, const struct part *part, struct graft_error *err)
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

static int install_config(const struct stage *stage, const struct ctk_list *runtimes, struct graft_error *err)
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

/* ---- the stage ---- */

/* Removes a directory and what is in it, without following links. */
static void remove_toolkit_tree(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno == EISDIR)
			remove_toolkit_tree(dirfd(dir), entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	else if (fd >= 0)
		(void)close(fd);
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static int make_install_directory(const char *path, struct graft_error *err)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return graft_fail(err, GRAFT_INVALID, 0, "the path %.64s... is too long", path);
	for (size_t i = 1; i <= strlen(path); i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return graft_fail_errno(err, errno, "failed to create %s", part);
	}
	return 0;
}

static int open_stage(struct stage *stage, struct graft_error *err)
{
	const char *parent = stage->options->install_dir;

	if (make_install_directory(parent, err) < 0)
		return -1;
	stage->parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (stage->parent_fd < 0)
		return graft_fail_errno(err, errno, "cannot open %s", parent);
	for (int i = 0; i < MAX_STAGES; i++) {
		(void)snprintf(stage->name, sizeof(stage->name), GRAFT_STAGE_PREFIX "%d", i);
		if (mkdirat(stage->parent_fd, stage->name, 0755) == 0 || errno != EEXIST)
			break;
	}
	stage->fd = openat(stage->parent_fd, stage->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (stage->fd < 0 || fchmod(stage->fd, 0755) < 0)
		return graft_fail_errno(err, errno, "failed to create %s/%s", parent, stage->name);
	return 0;
}

static void close_stage(struct stage *stage)
{
	if (stage->fd >= 0)
		(void)close(stage->fd);
	if (stage->parent_fd >= 0)
		(void)close(stage->parent_fd);
}

/*
 * Notes an error of one part: all parts are tried (SPEC installer-and-nri 4). The first one is kept
 * in `err`.
 */
static int note_part_error(const struct stage *stage, int rc, const struct graft_error *one, bool *failed,
			   struct graft_error *err)
{
	char text[sizeof(one->msg) + sizeof(one->ctx)];

	if (rc == 0)
		return 0;
	(void)graft_error_text(one, text, sizeof(text));
	if (stage->options->ignore_errors) {
		graft_warn(&stage->options->base.ctk->log, "Ignoring error: %s", text);
		return 0;
	}
	if (!*failed)
		*err = *one;
	else
		graft_log_write(&stage->options->base.ctk->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s", text);
	*failed = true;
	return 0;
}

static int fill_stage(const struct stage *stage, const struct ctk_list *runtimes, struct graft_error *err)
{
	struct graft_error one = { .status = GRAFT_OK };
	bool failed = false;
	int rc;

	for (size_t i = 0; i < GRAFT_COUNT(parts); i++) {
		rc = install_part(stage, &parts[i], &one);
		(void)note_part_error(stage, rc, &one, &failed, err);
	}
	rc = symlinkat("nvidia-container-runtime-hook", stage->fd, "nvidia-container-toolkit");
	if (rc < 0)
		(void)graft_fail_errno(&one, errno, "failed to install nvidia-container-toolkit");
	(void)note_part_error(stage, rc, &one, &failed, err);
	rc = install_config(stage, runtimes, &one);
	(void)note_part_error(stage, rc, &one, &failed, err);
	return failed ? -1 : 0;
}

/* ---- exchange ---- */

static bool is_same_part(int a_fd, int b_fd, const char *name, const struct stat *a, const struct stat *b)
{
	char left[4096], right[4096];
	auto_close int from = -1, to = -1;
	ssize_t n;

	if ((a->st_mode & 07777) != (b->st_mode & 07777) || a->st_size != b->st_size || a->st_uid != b->st_uid)
		return false;
	if (S_ISLNK(a->st_mode)) {
		n = readlinkat(a_fd, name, left, sizeof(left));
		return n >= 0 && readlinkat(b_fd, name, right, sizeof(right)) == n &&
		       memcmp(left, right, (size_t)n) == 0;
	}
	from = openat(a_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	to = openat(b_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	while ((n = read(from, left, sizeof(left))) > 0) {
		if (read(to, right, (size_t)n) != n || memcmp(left, right, (size_t)n) != 0)
			return false;
	}
	return n == 0;
}

/* Whether directory `b` has what `a` has, and nothing else. */
static bool is_same_tree(int a_fd, int b_fd)
{
	int copy = openat(a_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	size_t n = 0, n_other = 0;
	bool same = dir != NULL;

	while (same && (entry = readdir(dir)) != NULL) {
		struct stat a, b;

		n++;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		same = fstatat(a_fd, entry->d_name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
		       fstatat(b_fd, entry->d_name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
		       (a.st_mode & S_IFMT) == (b.st_mode & S_IFMT);
		if (same && S_ISDIR(a.st_mode)) {
			auto_close int below_a = openat(a_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			auto_close int below_b = openat(b_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			same = below_a >= 0 && below_b >= 0 && is_same_tree(below_a, below_b);
		} else if (same) {
			same = is_same_part(a_fd, b_fd, entry->d_name, &a, &b);
		}
	}
	if (dir)
		(void)closedir(dir);
	copy = same ? openat(b_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	dir = copy < 0 ? NULL : fdopendir(copy);
	while (dir && readdir(dir))
		n_other++;
	if (dir)
		(void)closedir(dir);
	return same && n == n_other;
}

static int rename_toolkit(int fd, const char *from, const char *to, unsigned int flags)
{
	return syscall(SYS_renameat2, fd, from, fd, to, flags) < 0 ? -errno : 0;
}

/*
 * Exchanges the stage with the toolkit, which then has the stage's name. QUIRK file systems that
 * cannot exchange two names: there, and only there, the toolkit is away for a moment.
 */
static int exchange_toolkit(const struct stage *stage, struct graft_error *err)
{
	char old[sizeof(stage->name) + 8];
	int rc = rename_toolkit(stage->parent_fd, stage->name, GRAFT_TOOLKIT_DIRECTORY, RENAME_NOREPLACE);

	(void)snprintf(old, sizeof(old), "%s-old", stage->name);
	if (rc == -EEXIST)
		rc = rename_toolkit(stage->parent_fd, stage->name, GRAFT_TOOLKIT_DIRECTORY, RENAME_EXCHANGE);
	if (rc == -EINVAL || rc == -ENOSYS) {
		graft_warn(&stage->options->base.ctk->log,
			   "The file system of %s cannot exchange directories: containers that start now may fail",
			   stage->options->install_dir);
		(void)renameat(stage->parent_fd, GRAFT_TOOLKIT_DIRECTORY, stage->parent_fd, old);
		rc = renameat(stage->parent_fd, stage->name, stage->parent_fd, GRAFT_TOOLKIT_DIRECTORY) < 0 ? -errno
													    : 0;
	}
	(void)fsync(stage->parent_fd);
	return rc < 0 ? graft_fail_errno(err, -rc, "failed to exchange %s", stage->options->toolkit) : 0;
}

static int exchange_if_new(const struct stage *stage, struct graft_error *err)
{
	auto_close int there = openat(stage->parent_fd, GRAFT_TOOLKIT_DIRECTORY,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (there >= 0 && is_same_tree(stage->fd, there)) {
		graft_info(&stage->options->base.ctk->log, "%s is up to date", stage->options->toolkit);
		remove_toolkit_tree(stage->parent_fd, stage->name);
		return 0;
	}
	return exchange_toolkit(stage, err) < 0 ? -1 : 1;
}

int installer_toolkit_install(const struct installer_options *o, const struct ctk_list *runtimes,
			      struct graft_error *err)
{
	struct stage stage = { .options = o, .arena = o->base.ctk->arena, .parent_fd = -1, .fd = -1 };
	mode_t mask = umask(022);
	int rc = open_stage(&stage, err);

	if (rc == 0)
		rc = fill_stage(&stage, runtimes, err);
	if (rc == 0)
		rc = exchange_if_new(&stage, err);
	if (rc < 0 && stage.fd >= 0)
		remove_toolkit_tree(stage.parent_fd, stage.name);
	close_stage(&stage);
	(void)umask(mask);
	return rc;
}

/* ---- the old ones ---- */

/* Whether a file below `directory` is in the memory map of a process, or is its program. */
static bool is_used_by(const char *proc, const char *pid, const char *directory, struct graft_arena *arena)
{
	size_t length = strlen(directory), n_text = 0;
	char path[PATH_MAX], link[PATH_MAX];
	auto_close int fd = -1;
	const char *text = NULL;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s/exe", proc, pid);
	n = readlink(path, link, sizeof(link) - 1);
	if (n > 0 && (size_t)n > length && strncmp(link, directory, length) == 0 && link[length] == '/')
		return true;
	(void)snprintf(path, sizeof(path), "%s/%s/maps", proc, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || graft_read_fd(fd, MAPS_MAX, arena, &text, &n_text) < 0)
		return false;
	for (const char *at = text; (at = strstr(at, directory)) != NULL; at += length) {
		if (at[length] == '/')
			return true;
	}
	return false;
}

static bool is_in_use(const char *directory)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool used = !dir;

	while (!used && (entry = readdir(dir)) != NULL) {
		struct graft_arena *arena;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		arena = graft_arena_new(MAPS_MAX * 4);
		used = !arena || is_used_by("/proc", entry->d_name, directory, arena);
		(void)graft_arena_free(arena);
	}
	if (dir)
		(void)closedir(dir);
	return used;
}

bool installer_toolkit_sweep(const struct installer_options *o)
{
	DIR *dir = opendir(o->install_dir);
	struct dirent *entry;
	bool none = true;

	while (dir && (entry = readdir(dir)) != NULL) {
		const char *path;

		if (!graft_starts_with(entry->d_name, GRAFT_STAGE_PREFIX))
			continue;
		path = graft_arena_printf(o->base.ctk->arena, "%s/%s", o->install_dir, entry->d_name);
		if (!path || is_in_use(path)) {
			none = false;
			continue;
		}
		graft_debug(&o->base.ctk->log, "removing %s", path);
		remove_toolkit_tree(dirfd(dir), entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return none;
}
