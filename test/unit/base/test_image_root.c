/* SPDX-License-Identifier: Apache-2.0 */
/* image_root: what is no regular file or directory is never opened, nothing leads outside, a spent budget ends everything. Some mounts need root. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../folder.h"
#include "../image_root.h"
#include "../unit.h"
#include "base/cleanup.h"

struct fixture {
	char top[64]; /* holds root/ and secret */
	struct graft_image_root root;
	struct graft_arena *arena;
};

static void put(const struct fixture *f, const char *path, const char *content)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s/%s", f->top, path);
	test_put(AT_FDCWD, text, content);
}

static void put_socket(const struct fixture *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/root/socket", f->top);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];

	if (!f)
		return -1;
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-image.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	(void)snprintf(path, sizeof(path), "%s/root", f->top);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(test_image_root_open(&f->root, path), 0);
	put(f, "secret", "outside");
	put(f, "root/file", "inside");
	assert_int_equal(mkdirat(f->root.fd, "usr", 0755), 0);
	put(f, "root/usr/deep", "deep");
	assert_int_equal(mkfifoat(f->root.fd, "fifo", 0644), 0);
	put_socket(f);
	assert_int_equal(symlinkat("../../secret", f->root.fd, "out"), 0);
	assert_int_equal(symlinkat("/usr", f->root.fd, "abs"), 0);
	assert_int_equal(symlinkat("fifo", f->root.fd, "to-fifo"), 0);
	assert_int_equal(symlinkat("/dev/null", f->root.fd, "to-null"), 0);
	f->arena = graft_arena_new((size_t)1 << 20);
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

	test_image_root_close(&f->root);
	graft_arena_free(f->arena);
	assert_int_equal(test_remove_folder(f->top), 0);
	free(f);
	return 0;
}

static void test_read(void **state)
{
	static const struct {
		const char *path;
		int rc;
		const char *content;
	} rows[] = {
		{ "/file", 0, "inside" },   { "/abs/deep", 0, "deep" },   { "/usr/../file", 0, "inside" },
		{ "/fifo", -EINVAL, NULL }, { "/socket", -EINVAL, NULL }, { "/to-fifo", -EINVAL, NULL },
		{ "/usr", -EINVAL, NULL },  { "/out", -ENOENT, NULL },    { "/to-null", -ENOENT, NULL },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *bytes = NULL;
		size_t length = 0;
		int rc = graft_image_root_read(&f->root, rows[i].path, 100, f->arena, &bytes, &length);

		if (rc != rows[i].rc)
			fail_msg("%s: %d", rows[i].path, rc);
		if (rc == 0)
			assert_string_equal(bytes, rows[i].content);
	}
	assert_int_equal(graft_image_root_read(&f->root, "/file", 5, f->arena, &(const char *){ NULL }, &(size_t){ 0 }),
			 -EFBIG);
}

/* Whatever flags are asked for, a descriptor of something that was only looked at can do nothing. */
static void test_look(void **state)
{
	static const char *const paths[] = { "/file", "/fifo", "/socket", "/usr", "/to-fifo" };
	struct fixture *f = *state;
	char byte;

	for (size_t i = 0; i < GRAFT_COUNT(paths); i++) {
		auto_close int fd = graft_image_root_look(&f->root, paths[i], O_RDWR | O_CREAT | O_TRUNC);

		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
		assert_int_equal(read(fd, &byte, 1), -1);
		assert_int_equal(errno, EBADF);
	}
	assert_true(graft_image_root_has(&f->root, "/usr", O_DIRECTORY));
	assert_false(graft_image_root_has(&f->root, "/file", O_DIRECTORY));
	assert_false(graft_image_root_has(&f->root, "/out", 0));
}

/*
 * Without our procfs it is unknown what a name would open; if no node can be opened, that does no
 * harm.
 */
static void test_without_procfs(void **state)
{
	struct fixture *f = *state;
	const char *bytes;
	size_t length, n;
	const char **names;

	(void)close(f->root.proc_fd);
	f->root.proc_fd = -1;
	assert_int_equal(graft_image_root_read(&f->root, "/file", 100, f->arena, &bytes, &length), -EACCES);
	assert_int_equal(graft_image_root_list(&f->root, "/usr", 10, f->arena, &names, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(names[0], "deep");
	f->root.no_nodes = true;
	assert_int_equal(graft_image_root_read(&f->root, "/file", 100, f->arena, &bytes, &length), 0);
}

static void test_budget(void **state)
{
	struct fixture *f = *state;
	struct graft_image_root root = f->root;
	struct stat st;
	const char *bytes, *path;
	const char **names;
	char name[256];
	size_t n;

	root.budget = graft_budget_new(0);
	assert_int_equal(graft_image_root_look(&root, "/file", 0), -ETIME);
	assert_int_equal(graft_image_root_stat(&root, "/file", &st), -ETIME);
	assert_int_equal(graft_image_root_look_plain(&root, "/file"), -ETIME);
	assert_int_equal(graft_image_root_resolve(&root, "/file", f->arena, &path, NULL), -ETIME);
	assert_int_equal(graft_image_root_read(&root, "/file", 100, f->arena, &bytes, &n), -ETIME);
	assert_int_equal(graft_image_root_list(&root, "/usr", 10, f->arena, &names, &n, NULL), -ETIME);
	assert_int_equal(graft_image_root_open(&root, f->root.fd, "/", NULL), -ETIME);
	assert_int_equal(graft_image_root_parent(&root, "/file", &(int){ -1 }, name), -ETIME);
	assert_int_equal(graft_image_root_mkdir(&root, "/new", 0755, GRAFT_IMAGE_CONTENT, NULL, &(int){ -1 }), -ETIME);
	assert_int_equal(graft_image_root_mountpoint(&root, "/new", true, 0755, NULL, &(int){ -1 }), -ETIME);
	graft_budget_free(root.budget);
	assert_false(graft_image_root_has(&f->root, "/new", 0));
}

static void test_make(void **state)
{
	struct fixture *f = *state;
	auto_close int directory = -1, file = -1;

	assert_int_equal(graft_image_root_mkdir(&f->root, "/abs/a/b", 0755, GRAFT_IMAGE_CONTENT, NULL, &directory), 0);
	assert_int_equal(graft_image_root_mountpoint(&f->root, "/abs/c", false, 0644, NULL, &file), 0);
	assert_true(graft_image_root_has(&f->root, "/usr/a/b", O_DIRECTORY));
	assert_true(graft_image_root_has(&f->root, "/usr/c", 0));
	assert_int_equal(graft_image_root_may_write(&f->root, directory, "/abs/a/b", GRAFT_IMAGE_CONTENT), 0);
}

/* Nothing is written if the mount of a directory is unknown. */
static void test_unknown_mount(void **state)
{
	struct fixture *f = *state;
	struct graft_image_root root = f->root;

	root.mount_id = 0;
	assert_int_equal(graft_image_root_may_write_at(&root, root.fd, true, GRAFT_IMAGE_CONTENT), -EXDEV);
	assert_int_equal(graft_image_root_may_write_at(&root, root.fd, true, GRAFT_IMAGE_MOUNTPOINT), -EXDEV);
	assert_int_equal(graft_image_root_may_write_at(&root, root.fd, false, GRAFT_IMAGE_MOUNTPOINT), 0);
	assert_int_equal(graft_image_root_mkdir(&root, "/new", 0755, GRAFT_IMAGE_CONTENT, NULL, &(int){ -1 }), -EXDEV);
}

/* In a mount namespace of its own. Returns what the parent exits with. */
static int look_through_two_mounts(const char *top, bool by_hand)
{
	auto_test_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	char first[128], second[128];
	auto_close int fd = -1;

	(void)snprintf(first, sizeof(first), "%s/first", top);
	(void)snprintf(second, sizeof(second), "%s/second", top);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mkdir(first, 0755) < 0 || mkdir(second, 0755) < 0 || mount(first, second, NULL, MS_BIND, NULL) < 0 ||
	    test_image_root_open(&root, top) < 0)
		return 1;
	root.no_openat2 = by_hand;
	fd = graft_image_root_look(&root, "/second", O_DIRECTORY);
	if (graft_image_root_may_write(&root, fd, "/second", GRAFT_IMAGE_MOUNTPOINT) != 0)
		return 2;
	if (graft_image_root_may_write(&root, fd, "/second", GRAFT_IMAGE_CONTENT) != -EXDEV)
		return 3;
	return graft_image_root_may_write(&root, fd, "/first", GRAFT_IMAGE_MOUNTPOINT) == -EXDEV ? 0 : 4;
}

/* The same directory through another mount is not where the path leads. */
static void test_two_mounts(void **state)
{
	const struct fixture *f = *state;
	int status = 0;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(look_through_two_mounts(f->top, f->root.no_openat2));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define TWO_WAYS(f)                                            \
	{ #f " (openat2)", f, setup, teardown, NULL },         \
	{                                                      \
#f " (walk)", f, setup_by_hand, teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TWO_WAYS(test_read), TWO_WAYS(test_look),          TWO_WAYS(test_without_procfs), TWO_WAYS(test_budget),
		TWO_WAYS(test_make), TWO_WAYS(test_unknown_mount), TWO_WAYS(test_two_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
