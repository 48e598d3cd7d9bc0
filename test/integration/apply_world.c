/* SPDX-License-Identifier: Apache-2.0 */
#include "apply_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/unit.h"
#include "apply/temporary.h"
#include "base/cleanup.h"

const char *const world_kind_names[WORLD_KIND_MAX] = { "standalone", "supervised", "userns", "rootless" };

#define LIBS "/usr/lib/" MACHINE_TRIPLET
#define RO   ((uint32_t)GRAFT_MOUNT_RDONLY)
#define NS   ((uint32_t)GRAFT_MOUNT_NOSUID)
#define ND   ((uint32_t)GRAFT_MOUNT_NODEV)
#define NX   ((uint32_t)GRAFT_MOUNT_NOEXEC)

/* ---- namespaces and processes ---- */

/*
 * A defect in the code under test could write to this machine. Everything is therefore read-only in
 * this namespace, except for the working directory (coverage results) and a /tmp of our own.
 */
static void protect_host(void)
{
	char cwd[PATH_MAX];

	if (!getcwd(cwd, sizeof(cwd)) || mount(cwd, cwd, NULL, MS_BIND, NULL) < 0 || chdir(cwd) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") < 0 ||
	    mount(NULL, "/", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0) {
		perror("protect_host");
		exit(1);
	}
}

void world_enter(const char *program)
{
	if (geteuid() != 0) {
		(void)printf("1..0 # SKIP %s: needs root (it mounts)\n", program);
		exit(77);
	}
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		(void)printf("1..0 # SKIP %s: no mount namespaces: %s\n", program, strerror(errno));
		exit(77);
	}
	protect_host();
}

static void write_proc(pid_t pid, const char *file, const char *text)
{
	char path[64];
	auto_close int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail_msg("%s: %s", path, strerror(errno));
}

/*
 * The container's process: enters its namespaces and waits (`dev`: where to mount its /dev; NULL =
 * none). Reports through `ready`, and ends when `go` is closed.
 */
static _Noreturn void be_container(enum world_kind kind, int ready, int go, const char *dev)
{
	char byte = 'r';
	int flags = CLONE_NEWNS | (kind >= WORLD_USERNS ? CLONE_NEWUSER : 0);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (kind == WORLD_ROOTLESS &&
	    (setresgid(WORLD_USER, WORLD_USER, WORLD_USER) < 0 || setresuid(WORLD_USER, WORLD_USER, WORLD_USER) < 0))
		_exit(2);
	if (unshare(flags) < 0)
		_exit(3);
	(void)prctl(PR_SET_DUMPABLE, 1);
	if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
		_exit(4);
	if (kind >= WORLD_USERNS && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		_exit(5);
	/* Like a runtime: a /dev that belongs to the container's user namespace. */
	if (dev && mount("tmpfs", dev, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755") < 0)
		_exit(6);
	byte = 'd';
	if (write(ready, &byte, 1) != 1)
		_exit(7);
	/* Waits until the test ends, in whatever way. */
	while (read(go, &byte, 1) > 0)
		continue;
	_exit(0);
}

static void start_process(struct world *world)
{
	int ready[2], go[2], status = 0;
	char byte = 0, dev[128], map[64];
	pid_t pid;

	(void)snprintf(dev, sizeof(dev), "%s/dev", world->rootfs);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(go[1]);
		be_container(world->kind, ready[1], go[0], world->bare ? NULL : dev);
	}
	world->container = pid;
	world->alive_fd = go[1];
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		(void)waitpid(world->container, &status, 0);
		fail_msg("container: status %x", (unsigned int)status);
	}
	if (world->kind >= WORLD_USERNS) {
		int first = world->kind == WORLD_ROOTLESS ? WORLD_USER : WORLD_FIRST_ID;

		(void)snprintf(map, sizeof(map), "0 %d %d", first, world->kind == WORLD_ROOTLESS ? 1 : 65536);
		write_proc(world->container, "setgroups", "deny");
		write_proc(world->container, "gid_map", map);
		write_proc(world->container, "uid_map", map);
	}
	assert_int_equal(write(go[1], "g", 1), 1);
	if (read(ready[0], &byte, 1) != 1) {
		(void)waitpid(world->container, &status, 0);
		fail_msg("container: status %x", (unsigned int)status);
	}
	(void)close(ready[0]);
	(void)close(go[0]);
}

static void note(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct world *world = arg;
	size_t used = strlen(world->log);

	(void)snprintf(world->log + used, sizeof(world->log) - used, "%s\n", message);
}

struct world *world_new(enum world_kind kind)
{
	/* Shared, so that what children record is visible here. */
	struct world *world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char path[128];

	assert_true(world != MAP_FAILED);
	world->kind = kind;
	(void)umask(0022);
	(void)snprintf(world->top, sizeof(world->top), "/tmp/graft-apply.XXXXXX");
	assert_non_null(mkdtemp(world->top));
	assert_int_equal(mount("tmpfs", world->top, "tmpfs", 0, "mode=0755"), 0);
	(void)snprintf(world->rootfs, sizeof(world->rootfs), "%s/image", world->top);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = { "host", "image", "outside" };

		(void)snprintf(path, sizeof(path), "%s/%s", world->top, names[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	assert_int_equal(mount(world->rootfs, world->rootfs, NULL, MS_BIND, NULL), 0);
	world->arena = graft_arena_new(1 << 20);
	assert_non_null(world->arena);
	world->plan.version = GRAFT_PLAN_VERSION;
	world->log_sink = (struct graft_log){ .write = note, .arg = world, .max = GRAFT_LOG_DEBUG };
	return world;
}

void world_free(struct world *world)
{
	if (world->container > 0) {
		(void)close(world->alive_fd);
		(void)kill(world->container, SIGKILL);
		(void)waitpid(world->container, NULL, 0);
	}
	(void)umount2(world->rootfs, MNT_DETACH);
	(void)umount2(world->top, MNT_DETACH);
	(void)rmdir(world->top);
	graft_arena_free(world->arena);
	(void)munmap(world, sizeof(*world));
}

/* ---- files ---- */

const char *world_path(struct world *world, const char *path)
{
	return graft_arena_printf(world->arena, "%s/%s", world->rootfs, path);
}

const char *world_inside_path(struct world *world, const char *path)
{
	return graft_arena_printf(world->arena, "%s%s", world->inside, path);
}

static void make_parents(const char *path)
{
	char parent[PATH_MAX];
	char *slash;

	(void)snprintf(parent, sizeof(parent), "%s", path);
	for (slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(parent, 0755) < 0 && errno != EEXIST)
			fail_msg("%s: %s", parent, strerror(errno));
		*slash = '/';
	}
}

static void put_directory(const char *path)
{
	make_parents(path);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		fail_msg("%s: %s", path, strerror(errno));
}

static void put_file(const char *path, const char *content)
{
	auto_close int fd = -1;

	make_parents(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || graft_write_all(fd, content, strlen(content)) < 0)
		fail_msg("%s: %s", path, strerror(errno));
}

void world_directory(struct world *world, const char *path)
{
	put_directory(world_path(world, path));
}

void world_file(struct world *world, const char *path, const char *content)
{
	put_file(world_path(world, path), content);
}

void world_link(struct world *world, const char *path, const char *text)
{
	make_parents(world_path(world, path));
	if (symlink(text, world_path(world, path)) < 0)
		fail_msg("%s: %s", path, strerror(errno));
}

void world_parents(struct world *world, const char *path)
{
	make_parents(world_path(world, path));
}

void world_remove(struct world *world, const char *path)
{
	char command[PATH_MAX + 16];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", world_path(world, path));
	assert_int_equal(system(command), 0); /* the test's own directory */
}

static void put_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	make_parents(path);
	assert_true(fd >= 0);
	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static const char *host_path(struct world *world, const char *path)
{
	return graft_arena_printf(world->arena, "%s/host%s", world->top, path);
}

static void put_node(const char *path, unsigned int major_number, unsigned int minor_number)
{
	make_parents(path);
	assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(major_number, minor_number)), 0);
	assert_int_equal(chmod(path, 0666), 0);
}

static void make_host(struct world *world)
{
	static const char *const files[] = { "/lib/libcuda.so.550", "/lib/libnvidia-ml.so.550",
					     "/lib/libptx.so.550",  "/lib/libdangling.so",
					     "/fw/gsp.bin",         "/gpus/0/information" };

	for (size_t i = 0; i < GRAFT_COUNT(files); i++)
		put_file(host_path(world, files[i]), files[i]);
	put_socket(host_path(world, "/run/socket"));
	put_node(host_path(world, "/dev/nvidia0"), 195, 0);
	put_node(host_path(world, "/dev/nvidiactl"), 195, 255);
}

/* An image with something in the way of almost every edit. */
void world_usual_image(struct world *world)
{
	make_host(world);
	put_file(graft_arena_printf(world->arena, "%s/outside/secret", world->top), "secret");
	world_directory(world, "proc/driver");
	world_directory(world, "dev");
	world_directory(world, "run");
	world_link(world, "var/run", "../run");
	world_link(world, "lib64", "usr/lib64");
	world_directory(world, "usr/lib64");
	world_file(world, "usr/elsewhere/real", "image's own ptx");
	world_file(world, LIBS "/libnvidia-ml.so.550", "image's own");
	world_link(world, LIBS "/libptx.so.550", "../../elsewhere/real");
	world_link(world, "usr/lib64/libdangling.so", "/opt/made/here");
	world_file(world, LIBS "/libkept.so", "kept");
	world_link(world, LIBS "/libnvidia-ml.so.1", "libnvidia-ml.so.470");
	world_link(world, LIBS "/libright.so.1", "libcuda.so.550");
	world_file(world, LIBS "/libfile.so.1", "image's file");
	world_directory(world, LIBS "/libdir.so.1");
	world_file(world, "etc/ld.so.cache", "old cache");
	world_file(world, "proc/sys/covered", "below");
	world_file(world, "proc/sys/beside", "beside");
	world_file(world, "usr/elsewhere/below", "below, too");
	world_link(world, "proc/sys/by-link", "../../usr/elsewhere/below");
	if (world->kind == WORLD_ROOTLESS || world->kind == WORLD_USERNS) {
		int id = world->kind == WORLD_ROOTLESS ? WORLD_USER : WORLD_FIRST_ID;
		char command[256];

		(void)snprintf(command, sizeof(command), "chown -hR %d:%d '%s'", id, id, world->rootfs);
		assert_int_equal(system(command), 0); /* the test's own directory */
	}
}

/* ---- the plan ---- */

struct graft_edit *world_add(struct world *world, enum graft_edit_kind kind, const char *source, const char *target)
{
	struct graft_edit *edit = graft_arena_push(world->arena, &world->plan.edits, &world->plan.n_edits,
						   sizeof(*edit));

	assert_non_null(edit);
	edit->kind = kind;
	edit->source = source ? host_path(world, source) : NULL;
	edit->target = target;
	edit->rule = "test";
	edit->why = "test";
	return edit;
}

/* The rows of the plan, and the expected results. */
static const struct row {
	enum graft_edit_kind kind;
	const char *source, *target;
	uint32_t mode, flags;
	enum graft_source_type type;
	const char *content;
	enum graft_conflict conflict;
	uint32_t major, minor;
	bool optional;
	enum { NOTHING, IS_MOUNT, IS_DIRECTORY, IS_FILE, IS_LINK, IS_KEPT, IS_COVERED } result;
	const char *lands_at; /* where it must be visible; NULL = target */
} rows[] = {
	{ GRAFT_EDIT_DIRECTORY, NULL, "/usr/lib/nvidia/current", 0750, .result = IS_DIRECTORY },
	{ GRAFT_EDIT_TMPFS, NULL, "/proc/driver/nvidia", 0555, NS | ND | NX },
	{ GRAFT_EDIT_FILE, NULL, "/proc/driver/nvidia/params", 0444, .content = "ModifyDeviceFiles: 0\n",
	  .result = IS_FILE },
	{ GRAFT_EDIT_FILE, NULL, "/proc/driver/nvidia/version", 0440, .content = "550\n", .result = IS_FILE },
	{ GRAFT_EDIT_FILE, NULL, "/proc/driver/nvidia/version", 0444, .content = "550.1\n", .result = NOTHING },
	{ GRAFT_EDIT_BIND, "/gpus/0", "/proc/driver/nvidia/gpus/0000:01:00.0", 0555, RO | NS | ND | NX,
	  GRAFT_SOURCE_DIRECTORY, .result = IS_MOUNT },
	{ GRAFT_EDIT_BIND, "/lib/libcuda.so.550", LIBS "/libcuda.so.550", 0644, RO | NS | ND, .result = IS_MOUNT },
	{ GRAFT_EDIT_BIND, "/lib/libnvidia-ml.so.550", LIBS "/libnvidia-ml.so.550", 0644, RO | NS | ND,
	  .result = IS_MOUNT },
	{ GRAFT_EDIT_BIND, "/lib/libptx.so.550", LIBS "/libptx.so.550", 0644, RO | NS | ND, .result = IS_MOUNT,
	  .lands_at = "/usr/elsewhere/real" },
	{ GRAFT_EDIT_BIND, "/lib/libdangling.so", "/lib64/libdangling.so", 0644, RO | NS | ND, .result = IS_MOUNT,
	  .lands_at = "/opt/made/here" },
	{ GRAFT_EDIT_BIND, "/lib/vanished.so", LIBS "/vanished.so", 0644, RO, .optional = true, .result = NOTHING },
	{ GRAFT_EDIT_BIND, "/fw", "/usr/lib/firmware/nvidia/550", 0755, RO | NS | ND, GRAFT_SOURCE_DIRECTORY,
	  .result = IS_MOUNT },
	{ GRAFT_EDIT_BIND, "/run/socket", "/var/run/nvidia-persistenced/socket", 0666, NS | ND | NX,
	  GRAFT_SOURCE_SOCKET, .result = IS_MOUNT, .lands_at = "/run/nvidia-persistenced/socket" },
	{ GRAFT_EDIT_DEVICE, "/dev/nvidia0", "/dev/nvidia0", 0666, RO | NS | NX, .major = 195, .minor = 0,
	  .result = IS_MOUNT },
	{ GRAFT_EDIT_DEVICE, "/dev/nvidiactl", "/dev/nvidiactl", 0666, RO | NS | NX, .major = 195, .minor = 255,
	  .result = IS_MOUNT },
	{ GRAFT_EDIT_SYMLINK, NULL, LIBS "/libcuda.so", .content = "libcuda.so.1", .result = IS_LINK },
	{ GRAFT_EDIT_SYMLINK, NULL, LIBS "/libkept.so", .content = "libkept.so.1", .result = IS_KEPT },
	{ GRAFT_EDIT_SYMLINK, "/lib/libcuda.so.550", LIBS "/libcuda.so.1", .content = "libcuda.so.550",
	  .conflict = GRAFT_CONFLICT_REPLACE, .result = IS_LINK },
	{ GRAFT_EDIT_SYMLINK, "/lib/libnvidia-ml.so.550", LIBS "/libnvidia-ml.so.1", .content = "libnvidia-ml.so.550",
	  .conflict = GRAFT_CONFLICT_REPLACE, .result = IS_LINK },
	{ GRAFT_EDIT_SYMLINK, "/lib/libcuda.so.550", LIBS "/libright.so.1", .content = "libcuda.so.550",
	  .conflict = GRAFT_CONFLICT_REPLACE, .result = IS_LINK },
	{ GRAFT_EDIT_SYMLINK, "/lib/libptx.so.550", LIBS "/libfile.so.1", .flags = RO | NS | ND,
	  .content = "libptx.so.550", .conflict = GRAFT_CONFLICT_REPLACE, .result = IS_MOUNT },
	{ GRAFT_EDIT_SYMLINK, "/lib/libptx.so.550", LIBS "/libdir.so.1", .content = "libptx.so.550",
	  .conflict = GRAFT_CONFLICT_REPLACE, .result = IS_KEPT },
	{ GRAFT_EDIT_COVER, NULL, "/proc/sys/covered", 0444, NS | ND | NX, .content = "cover", .result = IS_COVERED },
	{ GRAFT_EDIT_COVER, NULL, "/proc/sys/by-link", 0440, NS, .content = "linked", .result = IS_COVERED,
	  .lands_at = "/usr/elsewhere/below" },
	{ GRAFT_EDIT_COVER, NULL, "/proc/sys/absent", 0444, NS, .content = "never", .result = NOTHING },
	{ GRAFT_EDIT_COVER, NULL, "/proc/driver/absent/file", 0444, NS, .content = "never", .result = NOTHING },
	{ GRAFT_EDIT_COVER, NULL, "/proc/sys/covered/file", 0444, NS, .content = "never", .result = NOTHING },
	{ GRAFT_EDIT_CGROUP, .major = 195, .minor = 0 },
	{ GRAFT_EDIT_CGROUP, .major = 195, .minor = 255 },
	{ GRAFT_EDIT_LDCACHE, .result = NOTHING },
	{ GRAFT_EDIT_ENV, NULL, "NVIDIA_X", .content = "1" },
};

void world_plan_all(struct world *world)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_edit *edit = world_add(world, rows[i].kind, rows[i].source, rows[i].target);

		edit->content = rows[i].content;
		edit->mode = rows[i].mode;
		edit->flags = rows[i].flags;
		edit->type = rows[i].type;
		edit->conflict = rows[i].conflict;
		edit->major = rows[i].major;
		edit->minor = rows[i].minor;
		edit->optional = rows[i].optional;
		edit->access = edit->kind == GRAFT_EDIT_CGROUP ? "rw" : NULL;
	}
}

static void check_mount(struct world *world, const struct row *row, const char *path)
{
	struct stat want, got;
	struct statvfs fs;

	assert_int_equal(stat(host_path(world, row->source), &want), 0);
	if (lstat(path, &got) < 0 || got.st_dev != want.st_dev || got.st_ino != want.st_ino)
		fail_msg("%s is not %s", path, row->source);
	assert_int_equal(statvfs(path, &fs), 0);
	if ((fs.f_flag & (RO | NS | ND | NX)) != row->flags)
		fail_msg("%s: flags %lx, not %x", path, fs.f_flag, row->flags);
}

static void check_content(struct world *world, const char *path, const char *want, mode_t mode);

/* Expects a separate file, on a file system that is mounted nowhere else. */
static void check_cover(struct world *world, const struct row *row, const char *at)
{
	const char *path = world_inside_path(world, at);
	struct stat st, parent;
	struct statvfs fs;

	check_content(world, at, row->content, row->mode);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(
	    stat(graft_arena_printf(world->arena, "%s/..", world_inside_path(world, "/proc/sys")), &parent), 0);
	assert_true(st.st_dev != parent.st_dev);
	assert_int_equal(statvfs(path, &fs), 0);
	assert_int_equal(fs.f_flag & (RO | row->flags), RO | row->flags);
	if (open(path, O_WRONLY | O_CLOEXEC) >= 0 || errno != EROFS)
		fail_msg("%s can be written", path);
}

static void check_row(struct world *world, const struct row *row)
{
	const char *path = world_inside_path(world, row->lands_at ? row->lands_at : row->target);
	char text[256] = "";
	struct stat st;

	if (row->result == NOTHING)
		return;
	if (lstat(path, &st) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	if (row->result == IS_MOUNT) {
		check_mount(world, row, path);
	} else if (row->result == IS_DIRECTORY) {
		assert_true(S_ISDIR(st.st_mode));
		assert_int_equal(st.st_mode & 07777, row->mode);
	} else if (row->result == IS_FILE) {
		assert_true(S_ISREG(st.st_mode));
	} else if (row->result == IS_LINK) {
		assert_true(readlink(path, text, sizeof(text) - 1) > 0);
		assert_string_equal(text, row->content);
	} else if (row->result == IS_COVERED) {
		check_cover(world, row, row->lands_at ? row->lands_at : row->target);
	} else {
		assert_false(S_ISLNK(st.st_mode));
	}
}

static void check_content(struct world *world, const char *path, const char *want, mode_t mode)
{
	char text[256] = "";
	const char *inside = world_inside_path(world, path);
	auto_close int fd = open(inside, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		fail_msg("%s: %s", inside, strerror(errno));
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, want);
	assert_int_equal(st.st_mode & 07777, mode);
}

void world_check_all(struct world *world)
{
	struct statvfs fs;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		check_row(world, &rows[i]);
	check_content(world, "/proc/driver/nvidia/params", "ModifyDeviceFiles: 0\n", 0444);
	check_content(world, "/proc/driver/nvidia/version", "550.1\n", 0444);
	check_content(world, "/etc/ld.so.cache", "new cache", 0644);
	check_content(world, LIBS "/libkept.so", "kept", 0644);
	check_content(world, "/proc/sys/beside", "beside", 0644);
	assert_int_equal(statvfs(world_inside_path(world, "/proc/driver/nvidia"), &fs), 0);
	assert_int_equal(fs.f_flag & (RO | NS | ND | NX), NS | ND | NX);
	assert_non_null(strstr(world->log, "skipping"));
}

/* ---- applying ---- */

static int apply_now(struct world *world)
{
	struct graft_namespace_options options = { .log = &world->log_sink,
						   .cgroup = world->cgroup,
						   .step = world->step };
	struct graft_budget *budget = world->spends_budget ? graft_budget_new(20) : NULL;
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	pid_t pid = world->container > 0 ? world->container : getppid();
	int rc = graft_target_open(pid, world->container > 0, world->rootfs, budget, &world->log_sink, &target,
				   &world->error);

	if (rc < 0)
		return rc;
	while (budget && graft_budget_left_ms(budget) > 0)
		continue;
	if (world->kind == WORLD_ROOTLESS)
		assert_true(target.user_ns_fd >= 0);
	return graft_apply_to_namespace(&world->plan, &target, &options, &world->error);
}

static int apply_as_user(struct world *world)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(WORLD_USER, WORLD_USER, WORLD_USER) < 0 ||
		    setresuid(WORLD_USER, WORLD_USER, WORLD_USER) < 0)
			_exit(99);
		(void)prctl(PR_SET_DUMPABLE, 1);
		_exit(apply_now(world) < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0 ? 0 : -1;
}

int world_apply(struct world *world)
{
	if (world->inside[0] == '\0')
		world_start(world);
	world->log[0] = '\0';
	graft_error_clear(&world->error);
	return world->kind == WORLD_ROOTLESS ? apply_as_user(world) : apply_now(world);
}

void world_start(struct world *world)
{
	if (world->kind != WORLD_STANDALONE)
		start_process(world);
	if (world->container > 0)
		(void)snprintf(world->inside, sizeof(world->inside), "/proc/%d/root%s", (int)world->container,
			       world->rootfs);
	else
		(void)snprintf(world->inside, sizeof(world->inside), "%s", world->rootfs);
}

/* ---- snapshots ---- */

static void add_content(const char *path, const struct stat *st, struct graft_buffer *out)
{
	char text[256] = "";
	auto_close int fd = -1;
	ssize_t n;

	if (S_ISLNK(st->st_mode)) {
		n = readlink(path, text, sizeof(text) - 1);
		graft_buffer_printf(out, " -> %.*s", (int)n, text);
	} else if (S_ISREG(st->st_mode)) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		graft_buffer_printf(out, " size %lld '%.*s'", (long long)st->st_size, (int)n, text);
	}
}

static void add_tree(const char *path, dev_t dev, struct graft_buffer *out)
{
	struct dirent **names = NULL;
	struct stat st;
	int n;

	if (lstat(path, &st) < 0) {
		graft_buffer_printf(out, "%s: %s\n", path, strerror(errno));
		return;
	}
	if (st.st_dev != dev) {
		graft_buffer_printf(out, "%s another file system\n", path);
		return;
	}
	/* Without inode and link count: a file that was replaced and restored has a new inode. */
	graft_buffer_printf(out, "%s %o %u:%u dev %lx", path, st.st_mode, st.st_uid, st.st_gid,
			    (unsigned long)st.st_rdev);
	add_content(path, &st, out);
	graft_buffer_char(out, '\n');
	if (!S_ISDIR(st.st_mode))
		return;
	n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char child[PATH_MAX];

		(void)snprintf(child, sizeof(child), "%s/%s", path, names[i]->d_name);
		if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0)
			add_tree(child, dev, out);
		free(names[i]);
	}
	free(names);
}

void world_tree(const char *path, struct graft_buffer *out)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	add_tree(path, st.st_dev, out);
}

static void add_file(const char *path, struct graft_buffer *out)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[4096];
	ssize_t n;

	assert_true(fd >= 0);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		graft_buffer_add(out, bytes, (size_t)n);
}

void world_mounts(pid_t pid, struct graft_buffer *out)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	add_file(path, out);
}

static void add_link(const char *path, struct graft_buffer *out)
{
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text));

	graft_buffer_printf(out, "%s %.*s\n", path, (int)(n < 0 ? 0 : n), text);
}

/* Adds the lines of /proc/self/status about our identity. */
static void add_identity(struct graft_buffer *out)
{
	static const char *const wanted[] = { "Umask", "Uid", "Gid", "Groups", "Cap", "NoNewPrivs" };
	struct graft_buffer status = { 0 };
	char *line, *rest = NULL;

	add_file("/proc/self/status", &status);
	for (line = strtok_r(status.bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		for (size_t i = 0; i < GRAFT_COUNT(wanted); i++)
			if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
				graft_buffer_printf(out, "%s\n", line);
	graft_buffer_done(&status);
}

static void add_descriptors(struct graft_buffer *out)
{
	struct dirent **names = NULL;
	int n = scandir("/proc/self/fd", &names, NULL, versionsort);
	char path[300];

	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%s", names[i]->d_name);
		add_link(path, out);
		free(names[i]);
	}
	free(names);
}

void world_process(struct graft_buffer *out)
{
	add_identity(out);
	add_link("/proc/self/cwd", out);
	add_link("/proc/self/root", out);
	add_link("/proc/self/ns/mnt", out);
	add_link("/proc/self/ns/user", out);
	add_descriptors(out);
}

void world_snapshot(struct world *world, struct graft_buffer *out)
{
	world_tree(world->top, out);
	world_tree(world->rootfs, out);
	world_mounts(getpid(), out);
	if (world->container > 0)
		world_mounts(world->container, out);
	world_process(out);
}

void world_assert_same(const struct graft_buffer *before, const struct graft_buffer *after, const char *when)
{
	const char *a = graft_buffer_text(before), *b = graft_buffer_text(after);

	/* With strict checks of strings AddressSanitizer reads all that is left for each line. */
	if (strcmp(a, b) == 0)
		return;
	while (*a != '\0' || *b != '\0') {
		size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

		if (n != m || memcmp(a, b, n) != 0)
			fail_msg("%s:\n  before: %.*s\n  after:  %.*s", when, (int)n, a, (int)m, b);
		a += n + (a[n] == '\n');
		b += m + (b[m] == '\n');
	}
}
