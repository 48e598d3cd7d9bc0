/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that try to escape. Whatever is at the places that a plan names: nothing outside the root
 * is created, changed, removed or mounted over, nothing hangs, and a failure leaves the image as it
 * was. Uses the real refresh of the loader's cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/unit.h"
#include "apply/namespace/mount.h"
#include "apply_world.h"
#include "base/cleanup.h"

#define LIBS        "/usr/lib/" MACHINE_TRIPLET
#define LIMIT_MS    2000
#define MIN_ROUNDS  10000
#define MIN_APPLIES 150

/* The places that a hostile image prepares: directories on the way, and the targets themselves. */
static const char *const places[] = {
	"usr",
	"usr/lib",
	"usr/lib/" MACHINE_TRIPLET,
	"etc",
	"etc/nvidia",
	"dev",
	"run",
	"usr/lib/" MACHINE_TRIPLET "/libcuda.so.550",
	"usr/lib/" MACHINE_TRIPLET "/libcuda.so.1",
	"usr/lib/" MACHINE_TRIPLET "/libcuda.so",
	"etc/nvidia/profile.conf",
	"etc/ld.so.cache",
	"etc/ld.so.conf",
	"etc/ld.so.conf.d",
	"dev/nvidia0",
	"run/nvidia/socket",
	"opt/view",
	"opt/view/file",
};

/*
 * What it puts there: 'l' a link, 'a' a link whose text contains the host's path of TOP, and other
 * kinds of files.
 */
static const struct trap {
	const char *name;
	char kind;
	const char *text;
} traps[] = {
	{ "link to /", 'l', "/" },
	{ "climbing link", 'l', "../../../../../../../.." },
	{ "link outside", 'l', "../../../../../../../../outside" },
	{ "link to a file outside", 'l', "../../../../../../../../outside/secret" },
	{ "link to nothing outside", 'l', "../../../../../../../../outside/new/thing" },
	{ "host path outside", 'a', "%s/outside" },
	{ "host path of a file", 'a', "%s/outside/secret" },
	{ "host path of nothing", 'a', "%s/outside/new/thing" },
	{ "host path by magic", 'a', "/proc/self/root%s/outside/new" },
	{ "/proc/self/root", 'l', "/proc/self/root" },
	{ "/proc/self/cwd", 'l', "/proc/self/cwd/x" },
	{ "/proc/1/root", 'l', "/proc/1/root/tmp" },
	{ "magic descriptor", 'l', "/proc/self/fd/3" },
	{ "loop", 'l', "loop" },
	{ "FIFO", 'p', NULL },
	{ "socket", 's', NULL },
	{ "character device", 'c', NULL },
	{ "directory", 'd', NULL },
	{ "file", 'f', "not what you want" },
	{ "hard link to a file outside", 'h', NULL },
	{ "sparse file of 1 TiB", 'S', NULL },
};

static void put_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path)) {
		assert_int_equal(mknod(path, S_IFSOCK | 0666, 0), 0);
		return;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void put_sparse(const char *path)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
}

static const char *outside(struct world *world, const char *path)
{
	return graft_arena_printf(world->arena, "%s/outside/%s", world->top, path);
}

/*
 * The image is a separate mount, so no hard link can be made into it; it is unmounted for a moment.
 */
static void put_hard_link(struct world *world, const char *file, const char *path)
{
	assert_int_equal(umount2(world->rootfs, MNT_DETACH), 0);
	if (link(file, path) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(mount(world->rootfs, world->rootfs, NULL, MS_BIND, NULL), 0);
}

/* "%s" in a link's text is replaced by TOP. */
static const char *with_top(struct world *world, const char *text)
{
	const char *mark = strstr(text, "%s");

	if (!mark)
		return text;
	return graft_arena_printf(world->arena, "%.*s%s%s", (int)(mark - text), text, world->top, mark + 2);
}

static void set_trap(struct world *world, const char *place, const struct trap *trap)
{
	const char *path = world_path(world, place);

	world_remove(world, place);
	world_parents(world, place);
	if (trap->kind == 'a')
		assert_int_equal(symlink(with_top(world, trap->text), path), 0);
	else if (trap->kind == 'l')
		assert_int_equal(symlink(strcmp(trap->text, "loop") == 0 ? strrchr(path, '/') + 1 : trap->text, path),
				 0);
	else if (trap->kind == 'p')
		assert_int_equal(mkfifo(path, 0666), 0);
	else if (trap->kind == 's')
		put_socket(path);
	else if (trap->kind == 'c')
		assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(1, 5)), 0);
	else if (trap->kind == 'd')
		world_directory(world, place);
	else if (trap->kind == 'f')
		world_file(world, place, trap->text);
	else if (trap->kind == 'h')
		put_hard_link(world, outside(world, "secret"), path);
	else
		put_sparse(path);
}

/* Plans the usual edits of libraries, devices, sockets and /etc, and a view on a tmpfs. */
static void plan_usual(struct world *world)
{
	static const char *const folders[] = { LIBS };
	struct graft_edit *edit = world_add(world, GRAFT_EDIT_BIND, "/lib/libcuda.so.550", LIBS "/libcuda.so.550");

	edit->mode = 0644;
	edit->flags = GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NODEV;
	edit = world_add(world, GRAFT_EDIT_SYMLINK, "/lib/libcuda.so.550", LIBS "/libcuda.so.1");
	edit->content = "libcuda.so.550";
	edit->conflict = GRAFT_CONFLICT_REPLACE;
	edit = world_add(world, GRAFT_EDIT_SYMLINK, NULL, LIBS "/libcuda.so");
	edit->content = "libcuda.so.1";
	edit = world_add(world, GRAFT_EDIT_FILE, NULL, "/etc/nvidia/profile.conf");
	edit->content = "{}";
	edit->mode = 0555;
	edit = world_add(world, GRAFT_EDIT_DEVICE, "/dev/nvidia0", "/dev/nvidia0");
	edit->major = 195;
	edit->mode = 0666;
	edit->flags = GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC;
	edit = world_add(world, GRAFT_EDIT_BIND, "/run/socket", "/run/nvidia/socket");
	edit->type = GRAFT_SOURCE_SOCKET;
	edit->mode = 0666;
	edit = world_add(world, GRAFT_EDIT_TMPFS, NULL, "/opt/view");
	edit->mode = 0555;
	edit = world_add(world, GRAFT_EDIT_FILE, NULL, "/opt/view/file");
	edit->content = "x";
	edit->mode = 0444;
	edit = world_add(world, GRAFT_EDIT_DIRECTORY, NULL, "/etc/nvidia/new");
	edit->mode = 0755;
	edit = world_add(world, GRAFT_EDIT_LDCACHE, NULL, NULL);
	edit->folders = graft_arena_memdup(world->arena, folders, sizeof(folders));
	edit->n_folders = 1;
	edit->entries = graft_arena_alloc(world->arena, sizeof(*edit->entries));
	edit->n_entries = 1;
	edit->entries[0] = (struct graft_ldcache_entry){ "libcuda.so.1", LIBS "/libcuda.so.1", MACHINE_ABI };
}

static struct world *new_image(enum world_kind kind)
{
	struct world *world = world_new(kind);

	world_usual_image(world);
	world_directory(world, "etc/nvidia");
	world_directory(world, "opt");
	world_file(world, "etc/ld.so.conf", LIBS "\n");
	assert_int_equal(mkdir(outside(world, "new"), 0755), 0);
	plan_usual(world);
	return world;
}

/* Everything but the image: the rest of the tmpfs, and the mounts of this process. */
static void snapshot_outside(struct world *world, struct graft_buffer *out)
{
	world_tree(outside(world, ""), out);
	world_tree(graft_arena_printf(world->arena, "%s/host", world->top), out);
	world_mounts(getpid(), out);
}

/* Checks that each new mount of the container is below its root. */
static void check_mounts(struct world *world, const struct graft_buffer *before, const char *when)
{
	struct graft_buffer after = { 0 };
	char *line, *rest = NULL;

	world_mounts(world->container, &after);
	for (line = strtok_r(after.bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char point[PATH_MAX] = "";

		if (strstr(graft_buffer_text(before), line))
			continue;
		assert_int_equal(sscanf(line, "%*s %*s %*s %*s %4095s", point), 1);
		if (strncmp(point, world->rootfs, strlen(world->rootfs)) != 0 || point[strlen(world->rootfs)] != '/')
			fail_msg("%s: mounted at %s", when, point);
	}
	graft_buffer_done(&after);
}

/* CPU time of this process, since the machine may be busy. An endless wait ends with the alarm. */
static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Applies the plan. Everything outside must be unchanged, and after a failure the image, too.
 * Returns whether it was applied.
 */
static bool apply_checked(struct world *world, const char *when)
{
	struct graft_buffer outside_before = { 0 }, outside_after = { 0 }, all_before = { 0 }, all_after = { 0 };
	struct graft_buffer mounts = { 0 };
	long start;
	int rc;

	world_start(world);
	snapshot_outside(world, &outside_before);
	world_snapshot(world, &all_before);
	world_mounts(world->container, &mounts);
	start = now_ms();
	(void)alarm(60);
	rc = world_apply(world);
	(void)alarm(0);
	if (now_ms() - start > LIMIT_MS)
		fail_msg("%s: took %ld ms", when, now_ms() - start);
	snapshot_outside(world, &outside_after);
	world_assert_same(&outside_before, &outside_after, when);
	check_mounts(world, &mounts, when);
	if (rc < 0) {
		world_snapshot(world, &all_after);
		world_assert_same(&all_before, &all_after, when);
		if (strstr(world->log, "could not undo"))
			fail_msg("%s: %s", when, world->log);
	}
	graft_buffer_done(&outside_before);
	graft_buffer_done(&outside_after);
	graft_buffer_done(&all_before);
	graft_buffer_done(&all_after);
	graft_buffer_done(&mounts);
	return rc == 0;
}

static void test_traps(void **state)
{
	int applied = 0, refused = 0;

	for (size_t i = 0; i < GRAFT_COUNT(places); i++) {
		for (size_t j = 0; j < GRAFT_COUNT(traps); j++) {
			struct world *world = new_image(WORLD_SUPERVISED);
			char when[256];

			(void)snprintf(when, sizeof(when), "%s at %s", traps[j].name, places[i]);
			set_trap(world, places[i], &traps[j]);
			/* So that magic links have a target. */
			assert_int_equal(mount("proc", world_path(world, "proc"), "proc", 0, NULL), 0);
			/* The device tmpfs of the container would hide it. */
			world->bare = true;
			if (apply_checked(world, when))
				applied++;
			else
				refused++;
			assert_int_equal(umount2(world_path(world, "proc"), MNT_DETACH), 0);
			world_free(world);
		}
	}
	(void)fprintf(stderr, "# %d hostile images: %d applied below their root, %d refused\n", applied + refused,
		      applied, refused);
	assert_true(applied > 20 && refused > 20);
}

/* A hard link to a file of the host, at every name that is written to or mounted over. */
static void test_hard_links(void **state)
{
	static const char *const names[] = { "usr/lib/" MACHINE_TRIPLET "/libcuda.so.550",
					     "etc/nvidia/profile.conf",
					     "etc/ld.so.cache",
					     "etc/ld.so.cache~",
					     "etc/ld.so.cache.tmp",
					     "etc/.ld.so.cache",
					     "dev/nvidia0",
					     "run/nvidia/socket",
					     "etc/ld.so.conf.d/000_graft.conf" };
	struct world *world = new_image(WORLD_SUPERVISED);
	char text[64];

	world->bare = true;
	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		const char *file = outside(world, graft_arena_printf(world->arena, "host%zu", i));
		auto_close int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

		assert_int_equal(write(fd, "host", 4), 4);
		world_remove(world, names[i]);
		world_parents(world, names[i]);
		put_hard_link(world, file, world_path(world, names[i]));
	}
	world_start(world);
	assert_int_equal(world_apply(world), 0);
	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		const char *file = outside(world, graft_arena_printf(world->arena, "host%zu", i));
		auto_close int fd = open(file, O_RDONLY | O_CLOEXEC);
		struct stat st;

		assert_int_equal(read(fd, text, sizeof(text)), 4);
		assert_memory_equal(text, "host", 4);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
	}
	world_free(world);
}

/* A read-only root: the error reports that, unless everything is in place already. */
static void test_read_only_root(void **state)
{
	struct world *world = new_image(WORLD_SUPERVISED);

	world->bare = true;
	assert_int_equal(mount(NULL, world->rootfs, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_false(apply_checked(world, "read-only"));
	assert_int_equal(world->error.status, GRAFT_READ_ONLY);
	world_free(world);

	world = new_image(WORLD_SUPERVISED);
	world->bare = true;
	world_file(world, LIBS "/libcuda.so.550", "");
	world_file(world, "dev/nvidia0", "");
	world->plan.edits[1] = world->plan.edits[4]; /* only the library and the node */
	world->plan.n_edits = 2;
	assert_int_equal(mount(NULL, world->rootfs, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_true(apply_checked(world, "read-only with mount points"));
	world_free(world);
}

static void use_overlay(struct world *world)
{
	const char *options = graft_arena_printf(world->arena, "lowerdir=%s/image,upperdir=%s/up,workdir=%s/work",
						 world->top, world->top, world->top);

	assert_int_equal(mkdir(graft_arena_printf(world->arena, "%s/up", world->top), 0755), 0);
	assert_int_equal(mkdir(graft_arena_printf(world->arena, "%s/work", world->top), 0755), 0);
	assert_int_equal(mkdir(graft_arena_printf(world->arena, "%s/merged", world->top), 0755), 0);
	(void)snprintf(world->rootfs, sizeof(world->rootfs), "%s/merged", world->top);
	if (mount("overlay", world->rootfs, "overlay", 0, options) < 0)
		skip();
}

/* The usual root of a container: the lower layers stay as they are. */
static void test_overlay_root(void **state)
{
	struct world *world = new_image(WORLD_SUPERVISED);
	struct graft_buffer before = { 0 }, after = { 0 };
	const char *lower = graft_arena_strdup(world->arena, world->rootfs);

	world->bare = true;
	world_tree(lower, &before);
	use_overlay(world);
	world_start(world);
	if (world_apply(world) < 0)
		fail_msg("%s: %s", world->error.msg, strerror(world->error.sys));
	world_tree(lower, &after);
	world_assert_same(&before, &after, "lower layer");
	assert_int_equal(umount2(world->rootfs, MNT_DETACH), 0);
	assert_int_equal(umount2(lower, MNT_DETACH), 0);
	graft_buffer_done(&before);
	graft_buffer_done(&after);
	world_free(world);
}

/* ---- mount(2): the mount is found by a name that may resolve elsewhere by then ---- */

static const struct misled {
	const char *what;
	const char *name; /* by which the mount on "mine" is searched for */
	bool found;
} misleds[] = {
	{ "the name is gone", "gone", false },
	{ "the name has an older mount of the same source", "other", false },
	{ "the name has something else", "plain", false },
	{ "the name is a link to the mount", "link", false },
	{ "the name is right", "mine", true },
};

static int mount_misled(struct graft_mounter *mounter, bool directory, int source_fd, const struct graft_spot *spot,
			int *ret_fd)
{
	if (directory)
		return graft_mount_tmpfs(mounter, spot, 0755, 0, ret_fd);
	return graft_mount_bind(mounter, source_fd, spot, 0, ret_fd);
}

static void check_misled(struct world *world, struct graft_mounter *mounter, bool directory, const struct misled *row)
{
	const char *mine = world_path(world, "place/mine");
	auto_close int source_fd = open(outside(world, "secret"), O_PATH | O_CLOEXEC);
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	struct graft_buffer before = { 0 }, after = { 0 };
	int fd = -1, rc;

	spot.fd = open(mine, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	spot.parent_fd = open(world_path(world, "place"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(spot.name, sizeof(spot.name), "%s", row->name);
	world_mounts(getpid(), &before);
	rc = mount_misled(mounter, directory, source_fd, &spot, &fd);
	if (rc != (row->found ? 0 : -ESTALE))
		fail_msg("%s: %d", row->what, rc);
	if (row->found) {
		char number[32];

		assert_int_equal(graft_mount_settle(mounter, fd, GRAFT_MOUNT_RDONLY, true), 0);
		assert_int_equal(
		    open(directory ? world_path(world, "place/mine/new") : mine, O_WRONLY | O_CREAT | O_CLOEXEC, 0644),
		    -1);
		assert_int_equal(errno, EROFS);
		(void)snprintf(number, sizeof(number), "/proc/self/fd/%d", fd);
		assert_int_equal(umount2(number, MNT_DETACH), 0);
		(void)close(fd);
	}
	world_mounts(getpid(), &after);
	world_assert_same(&before, &after, row->what);
	graft_buffer_done(&before);
	graft_buffer_done(&after);
}

static void make_place(struct world *world, const char *place, bool directory)
{
	if (directory)
		world_directory(world, place);
	else
		world_file(world, place, "");
}

/*
 * Whatever has the name: the mount is found or undone, nothing remains (a mount point that stays
 * mounted cannot be removed), and no other mount is mistaken for it, gets its flags or is
 * unmounted.
 */
static void check_all_misled(bool directory)
{
	struct world *world = new_image(WORLD_SUPERVISED);
	auto_close int proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct graft_mounter mounter;
	const char *other;

	graft_mounter_probe(&mounter, proc_fd);
	world_directory(world, "place");
	make_place(world, "place/mine", directory);
	make_place(world, "place/other", directory);
	make_place(world, "place/plain", directory);
	world_link(world, "place/link", "mine");
	other = world_path(world, "place/other");
	if (directory)
		assert_int_equal(mount("tmpfs", other, "tmpfs", 0, NULL), 0);
	else
		assert_int_equal(mount(outside(world, "secret"), other, NULL, MS_BIND, NULL), 0);
	for (size_t i = 0; i < GRAFT_COUNT(misleds); i++)
		check_misled(world, &mounter, directory, &misleds[i]);
	assert_int_equal(remove(world_path(world, "place/mine")), 0);
	assert_int_equal(umount2(other, MNT_DETACH), 0);
	graft_mounter_done(&mounter);
	world_free(world);
}

static void bind_secret(struct world *world, struct graft_mounter *mounter, const char *path)
{
	auto_close int source_fd = open(outside(world, "secret"), O_PATH | O_CLOEXEC);
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	auto_close int fd = -1;

	world_file(world, path, "");
	spot.fd = open(world_path(world, path), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	spot.parent_fd = open(world_path(world, "place"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(spot.name, sizeof(spot.name), "%s", path + strlen("place/"));
	assert_int_equal(graft_mount_bind(mounter, source_fd, &spot, 0, &fd), 0);
	assert_int_equal(graft_mount_settle(mounter, fd, GRAFT_MOUNT_RDONLY, true), 0);
}

static bool ends_with_line_feed(const struct graft_buffer *table)
{
	return table->bytes[table->length - 1] == '\n';
}

/*
 * The mount table, which may be long, is read once, unless another process mounts: of our own mounts
 * only the ids are added.
 */
static void test_table(void **state)
{
	struct world *world = new_image(WORLD_SUPERVISED);
	auto_close int proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct graft_mounter mounter;
	size_t length;

	graft_mounter_probe(&mounter, proc_fd);
	world_directory(world, "place");
	bind_secret(world, &mounter, "place/a");
	assert_false(ends_with_line_feed(&mounter.table));
	length = mounter.table.length;
	bind_secret(world, &mounter, "place/b");
	bind_secret(world, &mounter, "place/c");
	assert_in_range(mounter.table.length, length + 2, length + 64);
	assert_int_equal(umount2(world_path(world, "place/b"), MNT_DETACH), 0);
	length = mounter.table.length;
	bind_secret(world, &mounter, "place/d");
	assert_true(mounter.table.length > length + 64);
	assert_int_equal(umount2(world_path(world, "place/a"), MNT_DETACH), 0);
	assert_int_equal(umount2(world_path(world, "place/c"), MNT_DETACH), 0);
	assert_int_equal(umount2(world_path(world, "place/d"), MNT_DETACH), 0);
	graft_mounter_done(&mounter);
	graft_mounter_done(&mounter);
	world_free(world);
}

static void test_misled(void **state)
{
	check_all_misled(false);
	check_all_misled(true);
}

/* ---- another process keeps swapping a directory and a link ---- */

struct swapper {
	volatile long rounds;
	volatile bool stop;
};

static pid_t start_swapping(struct swapper *swapper, const char *a, const char *b)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion must not leave the process behind */
	/* Ends after an even number of swaps, so that everything has its own name again. */
	while (!swapper->stop || swapper->rounds % 2 != 0) {
		if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) < 0)
			_exit(1);
		swapper->rounds++;
	}
	_exit(0);
}

/*
 * Applies and undoes repeatedly (the last edit cannot succeed) while `place` and a link with this
 * text swap names. After each round the container's mounts are the old ones; at the end the image
 * is, too.
 */
static void swap_while_applying(const char *place, const char *text)
{
	struct world *world = new_image(WORLD_SUPERVISED);
	struct graft_buffer outside_before = { 0 }, outside_after = { 0 }, mounts = { 0 }, again = { 0 };
	struct graft_buffer all_before = { 0 }, all_after = { 0 };
	struct swapper *swapper = mmap(NULL, sizeof(*swapper), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				       0);
	int applies = 0, to_the_end = 0, status = 0;
	pid_t pid;

	assert_true(swapper != MAP_FAILED);
	world->bare = true;
	world->plan.n_edits--; /* the cache is not part of this race */
	world_file(world, "usr/elsewhere/target", "");
	world_directory(world, "opt/view");
	world_add(world, GRAFT_EDIT_BIND, "/lib/libptx.so.550", "/usr/elsewhere/target")->flags = GRAFT_MOUNT_RDONLY;
	world_file(world, "last", "");
	world_add(world, GRAFT_EDIT_TMPFS, NULL, "/last")->mode = 0555; /* not a directory */
	world_link(world, "swap", with_top(world, text));
	world_start(world);
	snapshot_outside(world, &outside_before);
	world_snapshot(world, &all_before);
	world_mounts(world->container, &mounts);
	pid = start_swapping(swapper, world_path(world, place), world_path(world, "swap"));
	while (swapper->rounds < MIN_ROUNDS || applies < MIN_APPLIES) {
		assert_int_equal(world_apply(world), -1);
		if (strstr(world->error.msg, "/last"))
			to_the_end++;
		if (strstr(world->log, "could not undo"))
			fail_msg("%s <-> %s: %s", place, text, world->log);
		again.length = 0;
		world_mounts(world->container, &again);
		world_assert_same(&mounts, &again, place);
		applies++;
	}
	swapper->stop = true;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	snapshot_outside(world, &outside_after);
	world_assert_same(&outside_before, &outside_after, place);
	world_snapshot(world, &all_after);
	world_assert_same(&all_before, &all_after, place);
	(void)fprintf(stderr, "# %s <-> %s: %ld swaps, %d times applied and undone, %d of them to the last edit\n",
		      place, text, swapper->rounds, applies, to_the_end);
	graft_buffer_done(&outside_before);
	graft_buffer_done(&outside_after);
	graft_buffer_done(&mounts);
	graft_buffer_done(&again);
	graft_buffer_done(&all_before);
	graft_buffer_done(&all_after);
	(void)munmap(swapper, sizeof(*swapper));
	world_free(world);
}

static void test_swaps(void **state)
{
	swap_while_applying("usr/lib/" MACHINE_TRIPLET, "../../../../../../outside");
	swap_while_applying("usr/lib", "/");
	swap_while_applying("etc/nvidia", "/proc/self/root/tmp");
	swap_while_applying("etc", "../../../../../../outside/new");
	swap_while_applying("usr", "../outside");
	swap_while_applying("usr/lib/" MACHINE_TRIPLET, "%s/outside/new");
	swap_while_applying("etc/nvidia", "%s/outside/new");
	swap_while_applying("usr/elsewhere/target", "../../../../../../outside/secret");
	swap_while_applying("usr/elsewhere/target", "%s/outside/secret");
	swap_while_applying("usr/elsewhere/target", "another");
	swap_while_applying("opt/view", "../../outside/new");
	swap_while_applying("opt/view", "another");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traps),          cmocka_unit_test(test_hard_links),
		cmocka_unit_test(test_read_only_root), cmocka_unit_test(test_overlay_root),
		cmocka_unit_test(test_misled),         cmocka_unit_test(test_table),
		cmocka_unit_test(test_swaps),
	};

	world_enter("apply_hostile");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
