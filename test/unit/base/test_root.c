/* SPDX-License-Identifier: Apache-2.0 */
/* root: every lookup both ways, by openat2(2) and by the walk, in a tree with links that lead outside. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "base/root.h"

#define OUTSIDE "outside: must never be seen"

struct fixture {
	char top[64]; /* holds root/ and outside/ */
	struct graft_root root;
	struct graft_arena *arena;
};

/* 'd' directory, 'f' file with content, 'l' link with text, 'p' FIFO, 's' socket, 'S' sparse file of 1 TiB */
static const struct {
	char kind;
	const char *path, *content;
} tree[] = {
	{ 'd', "outside", NULL },
	{ 'f', "outside/secret", OUTSIDE },
	{ 'd', "root", NULL },
	{ 'd', "root/usr", NULL },
	{ 'd', "root/usr/lib", NULL },
	{ 'd', "root/usr/lib/deep", NULL },
	{ 'f', "root/usr/lib/libx.so.1", "x1" },
	{ 'f', "root/secret", "inside" },
	{ 'f', "root/empty", "" },
	{ 'l', "root/lib", "usr/lib" },
	{ 'l', "root/abs", "/usr/lib" },
	{ 'l', "root/usr/lib/libx.so", "libx.so.1" },
	{ 'l', "root/usr/lib/climb", "../../../../../../../../../outside/secret" },
	{ 'l', "root/usr/lib/up", "../../../../secret" },
	{ 'l', "root/slash", "/" },
	{ 'l', "root/dots", "../../.." },
	{ 'l', "root/chain1", "chain2/" },
	{ 'l', "root/chain2", "/abs/../lib/./deep//" },
	{ 'l', "root/loop1", "loop2" },
	{ 'l', "root/loop2", "/loop1" },
	{ 'l', "root/self", "self" },
	{ 'l', "root/dangling", "nowhere/at/all" },
	{ 'l', "root/dangling-up", "../../../../made/by/link" },
	{ 'l', "root/dangling-abs", "/made-abs" },
	{ 'l', "root/file-slash", "secret/" },
	{ 'p', "root/fifo", NULL },
	{ 's', "root/socket", NULL },
	{ 'S', "root/sparse", NULL },
};

static void make_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void make_file(const char *path, const char *content, off_t size)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	if (content)
		assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	if (size > 0)
		assert_int_equal(ftruncate(fd, size), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[PATH_MAX];

	assert_non_null(f);
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-root.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	(void)umask(0022);
	for (size_t i = 0; i < GRAFT_COUNT(tree); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->top, tree[i].path);
		if (tree[i].kind == 'd')
			assert_int_equal(mkdir(path, 0755), 0);
		else if (tree[i].kind == 'f')
			make_file(path, tree[i].content, 0);
		else if (tree[i].kind == 'l')
			assert_int_equal(symlink(tree[i].content, path), 0);
		else if (tree[i].kind == 'p')
			assert_int_equal(mkfifo(path, 0644), 0);
		else if (tree[i].kind == 's')
			make_socket(path);
		else
			make_file(path, NULL, (off_t)1 << 40);
	}
	(void)snprintf(path, sizeof(path), "%s/root", f->top);
	assert_int_equal(graft_root_open(&f->root, path, NULL), 0);
	f->arena = graft_arena_new(1 << 22);
	assert_non_null(f->arena);
	*state = f;
	return 0;
}

static int setup_by_hand(void **state)
{
	int rc = setup(state);

	((struct fixture *)*state)->root.no_openat2 = true;
	return rc;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	graft_root_close(&f->root);
	graft_arena_free(f->arena);
	assert_int_equal(test_remove_folder(f->top), 0);
	free(f);
	return 0;
}

static const struct {
	const char *path;
	int want;             /* -errno or 0 */
	const char *resolved; /* when 0 */
} lookups[] = {
	{ "/", 0, "/" },
	{ ".", 0, "/" },
	{ "//", 0, "/" },
	{ "..", 0, "/" },
	{ "", -ENOENT, NULL },
	{ "usr/lib/libx.so.1", 0, "/usr/lib/libx.so.1" },
	{ "/usr//lib/./libx.so.1", 0, "/usr/lib/libx.so.1" },
	{ "/lib/libx.so", 0, "/usr/lib/libx.so.1" },
	{ "/abs/libx.so", 0, "/usr/lib/libx.so.1" },
	{ "/usr/lib/deep/../../lib/libx.so", 0, "/usr/lib/libx.so.1" },
	{ "/usr/lib/deep/..", 0, "/usr/lib" },
	{ "/abs/..", 0, "/usr" },
	{ "/../../../../secret", 0, "/secret" },
	{ "/usr/lib/up", 0, "/secret" },
	{ "/usr/lib/climb", -ENOENT, NULL },
	{ "/slash/slash/secret", 0, "/secret" },
	{ "/slash/../outside/secret", -ENOENT, NULL },
	{ "/dots/secret", 0, "/secret" },
	{ "/chain1", 0, "/usr/lib/deep" },
	{ "/chain1/../libx.so", 0, "/usr/lib/libx.so.1" },
	{ "/lib", 0, "/usr/lib" },
	{ "/lib/", 0, "/usr/lib" },
	{ "/lib/deep", 0, "/usr/lib/deep" },
	{ "/lib/none", -ENOENT, NULL },
	{ "/lib/../lib/deep", 0, "/usr/lib/deep" },
	{ "/lib/../secret", -ENOENT, NULL }, /* /usr/secret */
	{ "/lib/libx.so.1/y", -ENOTDIR, NULL },
	{ "/abs/deep", 0, "/usr/lib/deep" },
	{ "/chain1/none", -ENOENT, NULL },
	{ "/dangling/x", -ENOENT, NULL },
	{ "/loop1", -ELOOP, NULL },
	{ "/loop1/x", -ELOOP, NULL },
	{ "/self", -ELOOP, NULL },
	{ "/dangling", -ENOENT, NULL },
	{ "/nowhere", -ENOENT, NULL },
	{ "/secret/x", -ENOTDIR, NULL },
	{ "/secret/", -ENOTDIR, NULL },
	{ "/secret/..", -ENOTDIR, NULL },
	{ "/file-slash", -ENOTDIR, NULL },
	{ "/fifo", 0, "/fifo" },
	{ "/socket", 0, "/socket" },
};

static void test_lookup(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < GRAFT_COUNT(lookups); i++) {
		const char *path = NULL;
		struct stat by_resolve, by_stat, by_path;
		auto_close int fd = -1;
		int rc = graft_root_resolve(&f->root, lookups[i].path, f->arena, &path, &fd);

		if (rc != lookups[i].want || (rc == 0 && strcmp(path, lookups[i].resolved) != 0))
			fail_msg("'%s': %d, '%s'", lookups[i].path, rc, path ? path : "");
		assert_int_equal(graft_root_stat(&f->root, lookups[i].path, &by_stat), rc);
		if (rc < 0)
			continue;
		assert_int_equal(fstat(fd, &by_resolve), 0);
		assert_int_equal(by_stat.st_ino, by_resolve.st_ino);
		assert_int_equal(graft_root_stat(&f->root, path, &by_path), 0);
		assert_int_equal(by_path.st_ino, by_resolve.st_ino);
	}
}

static void test_open_flags(void **state)
{
	struct fixture *f = *state;
	char bytes[64] = "";
	auto_close int file = graft_root_openat(&f->root, "/lib/libx.so", O_RDONLY);
	auto_close int link = graft_root_openat(&f->root, "/lib/libx.so", O_PATH | O_NOFOLLOW);
	auto_close int directory = graft_root_openat(&f->root, "/abs", O_RDONLY | O_DIRECTORY);

	assert_true(file >= 0);
	assert_int_equal(read(file, bytes, sizeof(bytes)), 2);
	assert_string_equal(bytes, "x1");
	assert_int_equal(fcntl(file, F_GETFD), FD_CLOEXEC);
	assert_true(link >= 0);
	assert_int_equal(readlinkat(link, "", bytes, sizeof(bytes)), 9);
	assert_true(directory >= 0);
	assert_int_equal(graft_root_openat(&f->root, "/lib/libx.so", O_RDONLY | O_NOFOLLOW), -ELOOP);
	assert_int_equal(graft_root_openat(&f->root, "/secret", O_PATH | O_DIRECTORY), -ENOTDIR);
	assert_int_equal(graft_root_openat(&f->root, "/secret", O_RDONLY | O_DIRECTORY), -ENOTDIR);
	assert_int_equal(graft_root_openat(&f->root, "/new", O_WRONLY | O_CREAT), -EINVAL);
	assert_int_equal(graft_root_openat(&f->root, "/", O_WRONLY | O_TMPFILE), -EINVAL);
}

static void test_read(void **state)
{
	static const struct {
		const char *path;
		size_t max;
		int want;
		const char *content;
	} rows[] = {
		{ "/secret", 100, 0, "inside" },
		{ "/usr/lib/up", 6, 0, "inside" },
		{ "/secret", 5, -EFBIG, NULL },
		{ "/empty", 0, 0, "" },
		{ "/usr/lib/climb", 100, -ENOENT, NULL },
		{ "/fifo", 100, -EINVAL, NULL },
		{ "/socket", 100, -EINVAL, NULL },
		{ "/usr/lib", 100, -EINVAL, NULL },
		{ "/sparse", (size_t)64 << 20, -EFBIG, NULL },
		{ "/loop1", 100, -ELOOP, NULL },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *bytes = NULL;
		size_t length = 0;
		int rc = graft_root_read(&f->root, rows[i].path, rows[i].max, f->arena, &bytes, &length);

		if (rc != rows[i].want)
			fail_msg("'%s': %d", rows[i].path, rc);
		/* The same for a path that belongs to another user. */
		assert_int_equal(
		    graft_root_read_foreign(&f->root, rows[i].path, rows[i].max, f->arena, &bytes, &length), rc);
		if (rc < 0)
			continue;
		assert_int_equal(length, strlen(rows[i].content));
		assert_string_equal(bytes, rows[i].content);
	}
}

/* A device node of an image is not even opened by its reader. */
static void test_read_device(void **state)
{
	struct fixture *f = *state;
	const char *bytes;
	size_t length;

	if (mknodat(f->root.fd, "zero", S_IFCHR | 0666, makedev(1, 5)) < 0)
		skip();
	assert_int_equal(graft_root_read(&f->root, "/zero", 1 << 20, f->arena, &bytes, &length), -EINVAL);
	/* A node without a driver cannot be opened (ENXIO), so -EINVAL shows that nobody tried. */
	assert_int_equal(mknodat(f->root.fd, "nothing", S_IFCHR | 0666, makedev(239, 254)), 0);
	assert_int_equal(graft_root_read_foreign(&f->root, "/nothing", 1 << 20, f->arena, &bytes, &length), -EINVAL);
}

/* procfs: size 0 with content, and links whose text is not a path. */
static void test_proc(void **state)
{
	static const char *const magic[] = { "/self/root",         "/self/cwd",           "/self/exe",
					     "/self/fd/0",         "/self/root/etc",      "/self/ns/mnt",
					     "/thread-self/fd/0/", "/self/task/../root/", "/self/cwd/.." };
	struct fixture *f = *state;
	auto_root struct graft_root proc = GRAFT_ROOT_INIT;
	const char *bytes = NULL;
	size_t length = 0;
	char pid[32];

	assert_int_equal(graft_root_open(&proc, "/proc", NULL), 0);
	proc.no_openat2 = f->root.no_openat2;
	for (size_t i = 0; i < GRAFT_COUNT(magic); i++) {
		int rc = graft_root_openat(&proc, magic[i], O_PATH);

		if (rc != -ELOOP)
			fail_msg("%s: %d", magic[i], rc);
	}
	(void)snprintf(pid, sizeof(pid), "/%d", (int)getpid());
	assert_int_equal(graft_root_resolve(&proc, "self", f->arena, &bytes, NULL), 0);
	assert_string_equal(bytes, pid);
	assert_int_equal(graft_root_read(&proc, "/mounts", 1 << 20, f->arena, &bytes, &length), 0);
	assert_true(length > 0);
	assert_int_equal(graft_root_read(&proc, "/self/mountinfo", 1 << 20, f->arena, &bytes, &length), 0);
	assert_non_null(strstr(bytes, "/proc"));
	assert_int_equal(bytes[length], '\0');
	assert_int_equal(graft_root_read(&proc, "/self/mountinfo", 10, f->arena, &bytes, &length), -EFBIG);
	/* more than one chunk */
	assert_int_equal(graft_root_read(&proc, "/kallsyms", 10000, f->arena, &bytes, &length), -EFBIG);
}

struct seen {
	char text[512];
	int fail_at, n;
};

static int note(void *arg, int parent_fd, const char *name, bool is_directory)
{
	struct seen *seen = arg;
	size_t used = strlen(seen->text);
	struct stat st;

	assert_int_equal(fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(S_ISDIR(st.st_mode), is_directory);
	(void)snprintf(seen->text + used, sizeof(seen->text) - used, "%s%s ", name, is_directory ? "/" : "");
	return ++seen->n == seen->fail_at ? -ENOMEM : 0;
}

static void test_mountpoint(void **state)
{
	static const struct {
		const char *path;
		bool directory;
		int want;
		const char *made;     /* as seen by the watch */
		const char *resolved; /* where it must be afterwards */
	} rows[] = {
		{ "/usr/lib/libx.so", false, 0, "", "/usr/lib/libx.so.1" },
		{ "/usr/lib/new.so", false, 0, "new.so ", "/usr/lib/new.so" },
		{ "/usr/lib/new.so", false, 0, "", "/usr/lib/new.so" },
		{ "/lib/newdir/", true, 0, "newdir/ ", "/usr/lib/newdir" },
		{ "/abs/a/b/c", false, 0, "a/ b/ c ", "/usr/lib/a/b/c" },
		{ "/dangling", false, 0, "nowhere/ at/ all ", "/nowhere/at/all" },
		{ "/dangling-up", true, 0, "made/ by/ link/ ", "/made/by/link" },
		{ "/dangling-abs/sub", false, 0, "made-abs/ sub ", "/made-abs/sub" },
		{ "/usr/lib/climb", false, 0, "outside/ secret ", "/outside/secret" },
		{ "/../../x/../y", true, 0, "x/ y/ ", "/y" },
		{ "/fifo", false, 0, "", "/fifo" },
		{ "/socket", false, 0, "", "/socket" },
		{ "/usr", false, -EISDIR, "", NULL },
		{ "/", false, -EISDIR, "", NULL },
		{ "/", true, 0, "", "/" },
		{ "/secret", true, -ENOTDIR, "", NULL },
		{ "/secret/x", false, -ENOTDIR, "", NULL },
		{ "/fifo/x", true, -ENOTDIR, "", NULL },
		{ "/loop1", false, -ELOOP, "", NULL },
		{ "/loop1/x", true, -ELOOP, "", NULL },
		{ "", true, -ENOENT, "", NULL },
	};
	struct fixture *f = *state;
	const struct graft_beneath at = { f->root.fd, f->root.no_openat2 };
	mode_t mask = umask(0077);

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct seen seen = { .text = "" };
		struct graft_root_watch watch = { .created = note, .arg = &seen };
		struct stat st, found;
		auto_close int fd = -1;
		int rc = graft_beneath_mountpoint(&at, rows[i].path, rows[i].directory, 0640, &watch, &fd);

		if (rc != rows[i].want || strcmp(seen.text, rows[i].made) != 0)
			fail_msg("'%s': %d, made '%s'", rows[i].path, rc, seen.text);
		if (rc < 0)
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(graft_root_stat(&f->root, rows[i].resolved, &found), 0);
		assert_int_equal(st.st_ino, found.st_ino);
		if (seen.n > 0)
			assert_int_equal(st.st_mode & 07777, 0640);
	}
	assert_int_equal(umask(mask), 0077);
}

static void test_mkdir(void **state)
{
	struct fixture *f = *state;
	struct seen seen = { .text = "" };
	struct graft_root_watch watch = { .created = note, .arg = &seen };
	struct stat st;
	auto_close int first = -1, second = -1;

	assert_int_equal(graft_root_mkdir(&f->root, "/run/a/b", 0555, &watch, &first), 0);
	assert_string_equal(seen.text, "run/ a/ b/ ");
	assert_int_equal(fstat(first, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	assert_int_equal(graft_root_stat(&f->root, "/run/a", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(graft_root_mkdir(&f->root, "/run/a/b", 0700, NULL, &second), 0);
	assert_int_equal(graft_root_mkdir(&f->root, "/secret", 0755, NULL, &(int){ -1 }), -ENOTDIR);
	assert_int_equal(graft_root_mkdir(&f->root, "/fifo", 0755, NULL, &(int){ -1 }), -ENOTDIR);
}

/* What could not be recorded is not left behind. */
static void test_watch_fails(void **state)
{
	struct fixture *f = *state;
	const struct graft_beneath at = { f->root.fd, f->root.no_openat2 };
	struct seen seen = { .text = "", .fail_at = 3 };
	struct graft_root_watch watch = { .created = note, .arg = &seen };
	struct stat st;
	int fd = -1;

	assert_int_equal(graft_beneath_mountpoint(&at, "/w1/w2/w3", false, 0600, &watch, &fd), -ENOMEM);
	assert_int_equal(fd, -1);
	assert_int_equal(graft_root_stat(&f->root, "/w1/w2", &st), 0);
	assert_int_equal(graft_root_stat(&f->root, "/w1/w2/w3", &st), -ENOENT);
	seen = (struct seen){ .text = "", .fail_at = 1 };
	assert_int_equal(graft_root_mkdir(&f->root, "/v1/v2", 0755, &watch, &fd), -ENOMEM);
	assert_int_equal(graft_root_stat(&f->root, "/v1", &st), -ENOENT);
}

static void test_parent(void **state)
{
	static const struct {
		const char *path;
		int want;
		const char *directory, *name;
	} rows[] = {
		{ "/usr/lib/libx.so", 0, "/usr/lib", "libx.so" },
		{ "/abs/absent", 0, "/usr/lib", "absent" },
		{ "secret", 0, "/", "secret" },
		{ "/secret//", 0, "/", "secret" },
		{ "/dots/x", 0, "/", "x" },
		{ "/", -EINVAL, NULL, NULL },
		{ "/usr/..", -EINVAL, NULL, NULL },
		{ "/usr/.", -EINVAL, NULL, NULL },
		{ "", -EINVAL, NULL, NULL },
		{ "/secret/x", -ENOTDIR, NULL, NULL },
		{ "/nowhere/x", -ENOENT, NULL, NULL },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char name[NAME_MAX + 1] = "";
		struct stat st, want;
		auto_close int fd = -1;
		int rc = graft_root_parent(&f->root, rows[i].path, &fd, name);

		if (rc != rows[i].want)
			fail_msg("'%s': %d", rows[i].path, rc);
		if (rc < 0)
			continue;
		assert_string_equal(name, rows[i].name);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(graft_root_stat(&f->root, rows[i].directory, &want), 0);
		assert_int_equal(st.st_ino, want.st_ino);
	}
}

/* Links full of ".." cost the walk a restart each; it gives up instead of growing. */
static void test_bounds(void **state)
{
	struct fixture *f = *state;
	const struct graft_beneath at = { f->root.fd, f->root.no_openat2 };
	char text[PATH_MAX] = "", name[300];
	struct stat st;
	int rc;

	while (strlen(text) + 20 < PATH_MAX)
		strncat(text, "usr/lib/../../", sizeof(text) - strlen(text) - 1);
	for (int i = 0; i < 35; i++) {
		char link[32];

		(void)snprintf(link, sizeof(link), "big%d", i);
		assert_int_equal(symlinkat(text, f->root.fd, link), 0);
	}
	text[sizeof("usr/lib/../../") * 50] = '\0';
	assert_int_equal(symlinkat(text, f->root.fd, "long"), 0);
	assert_int_equal(graft_root_stat(&f->root, "/long", &st), 0);
	/* 5 us for each component: the walk, which a hostile image makes us do often, ends at a thousand. */
	rc = graft_root_stat(&f->root, "/big0", &st);
	/* The kernel gives up on ".." while anything on the machine is renamed (EAGAIN); the walk has to end then. */
	assert_true(rc == -ELOOP || (rc == 0 && !f->root.no_openat2));
	if (f->root.no_openat2)
		assert_int_equal(graft_root_stat(&f->root, "/big0/big1/big2/big3/big4/big5/big6", &st), -ENAMETOOLONG);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(graft_root_stat(&f->root, name, &st), -ENAMETOOLONG);
	assert_int_equal(graft_beneath_mountpoint(&at, name, false, 0600, NULL, &(int){ -1 }), -ENAMETOOLONG);
}

static void test_no_descriptor_is_lost(void **state)
{
	int before = test_count_fds();

	test_lookup(state);
	test_read(state);
	test_parent(state);
	test_mountpoint(state);
	test_watch_fails(state);
	assert_int_equal(test_count_fds(), before);
}

static void test_open_errors(void **state)
{
	struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_error err = { 0 };
	char text[600];

	assert_int_equal(graft_root_open(&root, "/nonexistent/root", &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "open failed: /nonexistent/root: no such file or directory");
	assert_int_equal(graft_root_open(&root, "/dev/null", &err), -1);
	assert_int_equal(err.sys, ENOTDIR);
	assert_int_equal(root.fd, -1);
	graft_root_close(&root);
}

#define TWO_WAYS(f)                                            \
	{ #f " (openat2)", f, setup, teardown, NULL },         \
	{                                                      \
#f " (walk)", f, setup_by_hand, teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TWO_WAYS(test_lookup),
		TWO_WAYS(test_open_flags),
		TWO_WAYS(test_read),
		TWO_WAYS(test_read_device),
		TWO_WAYS(test_proc),
		TWO_WAYS(test_mountpoint),
		TWO_WAYS(test_mkdir),
		TWO_WAYS(test_watch_fails),
		TWO_WAYS(test_parent),
		TWO_WAYS(test_bounds),
		TWO_WAYS(test_no_descriptor_is_lost),
		cmocka_unit_test(test_open_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
