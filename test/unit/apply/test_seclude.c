/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seclude: a shared mount leaves its peer group and returns to it; mounts that are not shared, or
 * are to be spared, stay as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "apply/namespace/seclude.h"
#include "base/cleanup.h"

struct fixture {
	char top[64], peer[80], shared[80], plain[80];
	int proc_fd, shared_fd, plain_fd;
	char log[1024];
};

static void note(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct fixture *f = arg;

	(void)snprintf(f->log + strlen(f->log), sizeof(f->log) - strlen(f->log), "%s\n", message);
}

static struct graft_log test_log = { .write = note, .max = GRAFT_LOG_DEBUG };

static void make(struct fixture *f, char *path, size_t size, const char *name)
{
	(void)snprintf(path, size, "%s/%s", f->top, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

/*
 * `shared` and `peer` are a peer group, `plain` is not shared; all are in the test's own mount
 * namespace.
 */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char in[80];

	assert_non_null(f);
	*state = f;
	if (unshare(CLONE_NEWNS) < 0)
		return 0;
	test_log.arg = f;
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-seclude.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	assert_int_equal(mount("top", f->top, "tmpfs", 0, NULL), 0);
	make(f, f->peer, sizeof(f->peer), "peer");
	make(f, f->shared, sizeof(f->shared), "with blank ");
	make(f, f->plain, sizeof(f->plain), "plain");
	assert_int_equal(mount("peer", f->peer, "tmpfs", 0, NULL), 0);
	assert_int_equal(mount(NULL, f->peer, NULL, MS_SHARED, NULL), 0);
	make(f, in, sizeof(in), "peer/in");
	assert_int_equal(mount(f->peer, f->shared, NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount("plain", f->plain, "tmpfs", 0, NULL), 0);
	f->proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	f->shared_fd = open(f->shared, O_PATH | O_CLOEXEC);
	f->plain_fd = open(f->plain, O_PATH | O_CLOEXEC);
	assert_true(f->proc_fd >= 0 && f->shared_fd >= 0 && f->plain_fd >= 0);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->top[0] != '\0') {
		(void)close(f->proc_fd);
		(void)close(f->shared_fd);
		(void)close(f->plain_fd);
		assert_int_equal(umount2(f->top, MNT_DETACH), 0);
		assert_int_equal(rmdir(f->top), 0);
	}
	free(f);
	return 0;
}

static bool is_mounted(const char *directory)
{
	char in[128];
	struct stat outside, inside;

	(void)snprintf(in, sizeof(in), "%s/in", directory);
	assert_int_equal(stat(directory, &outside), 0);
	assert_int_equal(stat(in, &inside), 0);
	return outside.st_dev != inside.st_dev;
}

/* Mounts something below `shared` and returns whether it appeared in `peer`. Unmounts it again. */
static bool reaches_peer(const struct fixture *f)
{
	char in[128];
	bool reaches;

	(void)snprintf(in, sizeof(in), "%s/in", f->shared);
	assert_int_equal(mount("in", in, "tmpfs", 0, NULL), 0);
	assert_true(is_mounted(f->shared));
	reaches = is_mounted(f->peer);
	assert_int_equal(umount2(in, MNT_DETACH), 0);
	return reaches;
}

static void test_leaves_and_comes_back(void **state)
{
	struct fixture *f = *state;
	struct graft_seclusion seclusion = GRAFT_SECLUSION_INIT;

	if (f->top[0] == '\0')
		skip();
	seclusion.proc_fd = f->proc_fd;
	assert_true(reaches_peer(f));
	assert_int_equal(graft_seclude(&seclusion, f->shared_fd), GRAFT_SECLUDE_DONE);
	assert_false(reaches_peer(f));
	assert_int_equal(graft_seclude(&seclusion, f->shared_fd), GRAFT_SECLUDE_PLAIN);
	if (seclusion.mounts[0].group_fd < 0)
		skip(); /* BASELINE 5.15 */
	graft_seclude_end(&seclusion, &test_log);
	assert_true(reaches_peer(f));
	assert_string_equal(f->log, "");
	graft_seclude_end(&seclusion, &test_log);
}

static void test_stays(void **state)
{
	struct fixture *f = *state;
	struct graft_seclusion seclusion = GRAFT_SECLUSION_INIT;

	if (f->top[0] == '\0')
		skip();
	seclusion.proc_fd = f->proc_fd;
	seclusion.spared_fd = f->shared_fd;
	assert_int_equal(graft_seclude(&seclusion, f->plain_fd), GRAFT_SECLUDE_PLAIN);
	assert_int_equal(graft_seclude(&seclusion, f->shared_fd), GRAFT_SECLUDE_SPARED);
	assert_true(reaches_peer(f));
	assert_int_equal(seclusion.n, 0);
	assert_int_equal(graft_seclude(&seclusion, -1), -ENOENT);
}

/*
 * Another mount covers the mount point: the path resolves to that mount, which must not be mistaken
 * for ours.
 */
static void test_covered(void **state)
{
	struct fixture *f = *state;
	struct graft_seclusion seclusion = GRAFT_SECLUSION_INIT;

	if (f->top[0] == '\0')
		skip();
	seclusion.proc_fd = f->proc_fd;
	assert_int_equal(mount(NULL, f->shared, NULL, MS_PRIVATE, NULL), 0);
	assert_int_equal(mount(NULL, f->shared, NULL, MS_SHARED, NULL), 0);
	assert_int_equal(mount("over", f->shared, "tmpfs", 0, NULL), 0);
	assert_int_equal(graft_seclude(&seclusion, f->shared_fd), -ESTALE);
	assert_int_equal(seclusion.n, 0);
}

/* There is a warning if the mount cannot return to its group. */
static void test_no_way_back(void **state)
{
	struct fixture *f = *state;
	struct graft_seclusion seclusion = GRAFT_SECLUSION_INIT;

	if (f->top[0] == '\0')
		skip();
	seclusion.proc_fd = f->proc_fd;
	assert_int_equal(graft_seclude(&seclusion, f->shared_fd), GRAFT_SECLUDE_DONE);
	if (seclusion.mounts[0].group_fd >= 0)
		(void)close(seclusion.mounts[0].group_fd);
	seclusion.mounts[0].group_fd = open(f->plain, O_PATH | O_CLOEXEC);
	graft_seclude_end(&seclusion, &test_log);
	assert_string_equal(f->log,
			    "mounts on a volume are no longer shared between container and host: Invalid argument\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_leaves_and_comes_back),
		TEST(test_stays),
		TEST(test_covered),
		TEST(test_no_way_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
