/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the host: what is kept of the old file, what is made, and each error. test_oci_file also
 * tests how files are replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../allocation.h"
#include "../unit.h"
#include "apply/host_file.h"
#include "apply/replace.h"
#include "base/cleanup.h"
#include "replaced_files.h"

#define NOBODY 65534

static char taken_name[128]; /* the name that another process creates while we write; "" = none */

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	if (unlink(taken_name) == 0)
		test_put_bytes(AT_FDCWD, taken_name, "half", 4);
	return __real_fsync(fd);
}

struct place {
	char directory[32], path[64];
};

static int open_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	(void)snprintf(place->directory, sizeof(place->directory), "/tmp/graft-test-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	(void)snprintf(place->path, sizeof(place->path), "%s/config.toml", place->directory);
	no_links = false;
	taken_name[0] = '\0';
	*state = place;
	return 0;
}

static int close_place(void **state)
{
	struct place *place = *state;

	assert_int_equal(test_remove_folder(place->directory), 0);
	free(place);
	return 0;
}

static void assert_write(const char *path, const char *text, mode_t mode)
{
	struct graft_error err = { 0 };
	char message[800];

	if (graft_host_file_write(path, text, strlen(text), mode, &err) < 0)
		fail_msg("%s", graft_error_text(&err, message, sizeof(message)));
	assert_content(path, text);
}

static void assert_refused(const char *path, enum graft_status status, const char *why)
{
	struct graft_error err = { 0 };
	char text[800];

	assert_int_equal(graft_host_file_write(path, "new", 3, 0644, &err), -1);
	assert_string_printed(graft_error_text(&err, text, sizeof(text)), "cannot write %s: %s", path, why);
	assert_int_equal(err.status, status);
}

/* Files and parent directories get the requested modes, regardless of the umask. */
static void test_a_new_file(void **state)
{
	const struct place *place = *state;
	char path[128], parent[128];
	mode_t mask = umask(077);

	for (int i = 0; i < 2; i++) {
		no_links = i == 1;
		(void)snprintf(parent, sizeof(parent), "%s/a%d", place->directory, i);
		(void)snprintf(path, sizeof(path), "%s/a%d//b/new.toml", place->directory, i);
		assert_write(path, "x = 1\n", 0644);
		assert_int_equal(stat_of(path).st_mode, S_IFREG | 0644);
		assert_int_equal(stat_of(parent).st_mode, S_IFDIR | 0755);
		assert_int_equal(test_count_names(parent), 1);
		path[strlen(path) - strlen("/new.toml")] = '\0';
		assert_int_equal(stat_of(path).st_mode, S_IFDIR | 0755);
		assert_int_equal(test_count_names(path), 1);
	}
	(void)umask(mask);
}

static void test_relative_paths(void **state)
{
	const struct place *place = *state;
	auto_close int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(chdir(place->directory), 0);
	assert_write("config.toml", "1", 0600);
	assert_write("./config.toml", "2", 0600);
	assert_write("sub/deeper/config.toml", "3", 0600);
	assert_int_equal(fchdir(here), 0);
	assert_content(place->path, "2");
}

static void test_mode_owner_and_attributes_are_kept(void **state)
{
	const struct place *place = *state;
	char value[16] = "";
	bool has_attributes;
	struct stat before, after;

	test_put_bytes(AT_FDCWD, place->path, "old", 3);
	has_attributes = setxattr(place->path, "user.graft", "kept", 4, 0) == 0;
	assert_int_equal(chmod(place->path, 0640), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(place->path, NOBODY, 7), 0);
	for (int i = 0; i < 2; i++) {
		no_links = i == 1;
		before = stat_of(place->path);
		assert_write(place->path, i == 0 ? "longer than before" : "short", 0600);
		after = stat_of(place->path);
		assert_true(before.st_ino != after.st_ino);
		assert_int_equal(after.st_mode, S_IFREG | 0640);
		assert_int_equal(after.st_uid, before.st_uid);
		assert_int_equal(after.st_gid, before.st_gid);
		if (has_attributes) {
			assert_int_equal(getxattr(place->path, "user.graft", value, sizeof(value)), 4);
			assert_memory_equal(value, "kept", 4);
		}
		assert_int_equal(test_count_names(place->directory), 1);
	}
}

/* A link stays; its target is replaced, or created if it does not exist. */
static void test_links_are_followed(void **state)
{
	static const char *const rows[][2] = { { "real.toml", "real.toml" }, { "sub/real.toml", "sub/real.toml" } };
	const struct place *place = *state;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/sub", place->directory);
	assert_int_equal(mkdir(path, 0755), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_int_equal(symlink(rows[i][0], place->path), 0);
		(void)snprintf(path, sizeof(path), "%s/%s", place->directory, rows[i][1]);
		assert_write(place->path, "made", 0644);
		assert_write(place->path, "replaced", 0644);
		assert_true(S_ISLNK(stat_of(place->path).st_mode));
		assert_int_equal(stat_of(path).st_mode, S_IFREG | 0644);
		assert_content(path, "replaced");
		assert_int_equal(unlink(place->path), 0);
	}
}

/* A file cannot be renamed over a mount point: the mounted file itself gets the content. */
static int write_mounted(const struct place *place, const char *source)
{
	struct graft_error err = { 0 };
	struct stat before, after;

	if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 77;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(source, place->path, NULL, MS_BIND, NULL) < 0)
		return 1;
	if (stat(place->path, &before) < 0 || graft_host_file_write(place->path, "new", 3, 0644, &err) < 0 ||
	    stat(place->path, &after) < 0)
		return 2;
	return before.st_ino == after.st_ino && after.st_size == 3 && test_count_names(place->directory) == 2 ? 0 : 3;
}

static void test_a_mounted_file(void **state)
{
	const struct place *place = *state;
	char source[128];
	int status;
	pid_t pid;

	(void)snprintf(source, sizeof(source), "%s/source", place->directory);
	test_put_bytes(AT_FDCWD, source, "longer than the new one", 23);
	test_put_bytes(AT_FDCWD, place->path, "below", 5);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(write_mounted(place, source));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("# SKIP: host-file-mount: no mount namespaces here\n");
		skip();
	}
	assert_int_equal(status, 0);
	assert_content(source, "new");
	assert_content(place->path, "below");
}

static void test_streams(void **state)
{
	const struct place *place = *state;
	auto_close int fd = -1;
	char text[8] = "";

	assert_int_equal(mkfifo(place->path, 0600), 0);
	fd = open(place->path, O_RDWR | O_CLOEXEC);
	assert_int_equal(graft_host_file_write(place->path, "piped", 5, 0644, NULL), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "piped");
	assert_true(S_ISFIFO(stat_of(place->path).st_mode));
	assert_int_equal(graft_host_file_write("/dev/null", "gone", 4, 0644, NULL), 0);
	assert_true(S_ISCHR(stat_of("/dev/null").st_mode));
}

/* Lines are added to what is there; a link is followed; directories are made only if asked for. */
static void test_logs(void **state)
{
	const struct place *place = *state;
	struct graft_error err = { 0 };
	char path[128], text[800];
	int fds[3];

	(void)snprintf(path, sizeof(path), "%s/a/b", place->directory);
	assert_int_equal(symlink("a/b", place->path), 0);
	assert_int_equal(graft_host_log_open(path, 0, false, &err), -1);
	assert_string_printed(graft_error_text(&err, text, sizeof(text)), "cannot log to %s: no such file or directory",
			      path);
	fds[0] = graft_host_log_open(path, O_NONBLOCK, true, NULL);
	fds[1] = graft_host_log_open(place->path, 0, false, NULL);
	fds[2] = graft_host_log_open("/dev/null", 0, false, NULL);
	for (size_t i = 0; i < GRAFT_COUNT(fds); i++) {
		assert_int_equal(write(fds[i], "line\n", 5), 5);
		assert_int_equal(close(fds[i]), 0);
	}
	assert_content(path, "line\nline\n");
	assert_true(S_ISLNK(stat_of(place->path).st_mode));

	(void)snprintf(path, sizeof(path), "%s/pipe", place->directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(graft_host_log_open(path, O_NONBLOCK, false, &err), -1);
	assert_int_equal(err.sys, ENXIO);
	assert_int_equal(unlink(path), 0);
}

static void test_refusals(void **state)
{
	const struct place *place = *state;
	char path[5000];

	assert_refused(place->directory, GRAFT_IO, "is a directory");
	(void)snprintf(path, sizeof(path), "%s/", place->directory);
	assert_refused(path, GRAFT_IO, "is a directory");
	assert_int_equal(symlink("config.toml", place->path), 0);
	assert_refused(place->path, GRAFT_IO, "too many levels of symbolic links");
	assert_int_equal(unlink(place->path), 0);
	assert_int_equal(symlink("/", place->path), 0);
	assert_refused(place->path, GRAFT_IO, "is a directory");
	assert_int_equal(unlink(place->path), 0);
	test_put_bytes(AT_FDCWD, place->path, "old", 3);
	(void)snprintf(path, sizeof(path), "%s/below", place->path);
	assert_refused(path, GRAFT_IO, "not a directory");
	(void)snprintf(path, sizeof(path), "%s/%0300d", place->directory, 0);
	assert_refused(path, GRAFT_IO, "file name too long");
	assert_content(place->path, "old");
	assert_int_equal(test_count_names(place->directory), 1);
}

/* A limit on the file size acts like a full disk. */
static int write_too_much(const struct place *place)
{
	static const char text[8192];
	const struct rlimit limit = { 4096, 4096 };
	struct graft_error err = { 0 };

	if (setrlimit(RLIMIT_FSIZE, &limit) < 0 || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return 1;
	if (graft_host_file_write(place->path, text, sizeof(text), 0644, &err) == 0)
		return 2;
	return err.sys == EFBIG ? 0 : 3;
}

static int write_as_nobody(const struct place *place)
{
	struct graft_error err = { 0 };

	if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
		return 1;
	if (graft_host_file_write(place->path, "new", 3, 0644, &err) == 0)
		return 2;
	return err.status == GRAFT_PERMISSION ? 0 : 3;
}

static void assert_child(int (*once)(const struct place *place), const struct place *place)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(once(place));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_faults_leave_what_was_there(void **state)
{
	const struct place *place = *state;

	for (int i = 0; i < 2; i++) {
		assert_child(write_too_much, place);
		assert_int_equal(test_count_names(place->directory), i);
		assert_int_equal(chmod(place->directory, 0555), 0);
		assert_child(write_as_nobody, place);
		assert_int_equal(chmod(place->directory, 0755), 0);
		assert_int_equal(test_count_names(place->directory), i);
		if (i == 1)
			assert_content(place->path, "old");
		test_put_bytes(AT_FDCWD, place->path, "old", 3);
		assert_int_equal(chmod(place->path, 0444), 0);
	}
}

/* Without O_TMPFILE, a file that another process is writing is not mistaken for ours. */
static void test_another_writer(void **state)
{
	const struct place *place = *state;
	auto_close int dir_fd = open(place->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct graft_replacement how = { .suffix = ".tmp", .make = true, .mode = 0600, .sync = true };

	test_put_bytes(AT_FDCWD, place->path, "old", 3);
	(void)snprintf(taken_name, sizeof(taken_name), "%s/.config.toml.tmp", place->directory);
	no_links = true;
	assert_int_equal(graft_replace(dir_fd, "config.toml", &how, "mine", 4), -EAGAIN);
	assert_content(place->path, "old");
	assert_content(taken_name, "half");
	taken_name[0] = '\0';
	assert_int_equal(graft_replace(dir_fd, "config.toml", &how, "mine", 4), 0);
	assert_content(place->path, "mine");
	assert_int_equal(test_count_names(place->directory), 1);
}

static void test_read(void **state)
{
	const struct place *place = *state;
	struct graft_arena *arena = graft_arena_new(1024 * 1024);
	struct graft_error err = { 0 };
	char text[800], expected[200];
	const char *bytes = "x";
	size_t length = 1;

	assert_int_equal(graft_host_file_read(place->path, 16, arena, &bytes, &length, &err), 0);
	assert_null(bytes);
	assert_int_equal(length, 0);
	test_put_bytes(AT_FDCWD, place->path, "four", 4);
	assert_int_equal(graft_host_file_read(place->path, 16, arena, &bytes, &length, &err), 1);
	assert_string_equal(bytes, "four");
	assert_int_equal(length, 4);
	assert_int_equal(graft_host_file_read(place->path, 3, arena, &bytes, &length, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_int_equal(graft_host_file_read(place->directory, 16, arena, &bytes, &length, &err), -1);
	(void)snprintf(expected, sizeof(expected), "cannot read %s: it is not a regular file", place->directory);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)), expected);
	assert_string_equal(err.hint, "Remove it, or name another file.");
	(void)graft_arena_free(arena);
}

static void test_remove(void **state)
{
	const struct place *place = *state;
	struct graft_error err = { 0 };
	char text[800];

	test_put_bytes(AT_FDCWD, place->path, "four", 4);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(graft_host_file_remove(place->path, &err), 0);
		assert_int_equal(test_count_names(place->directory), 0);
	}
	assert_int_equal(graft_host_file_remove(place->directory, &err), -1);
	assert_string_printed(graft_error_text(&err, text, sizeof(text)), "cannot remove %s: is a directory",
			      place->directory);
}

static void test_folder_is_removed(void **state)
{
	const struct place *place = *state;
	struct graft_error err = { 0 };
	char text[800], folder[256], link[256];

	(void)snprintf(folder, sizeof(folder), "%s/folder", place->directory);
	(void)snprintf(link, sizeof(link), "%s/link", place->directory);
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(symlink("folder", link), 0);
	assert_int_equal(graft_host_folder_remove(link, &err), -1);
	assert_string_printed(graft_error_text(&err, text, sizeof(text)), "cannot remove %s: not a directory", link);
	graft_error_clear(&err);
	assert_int_equal(unlink(link), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(graft_host_folder_remove(folder, &err), 0);
	assert_int_equal(test_count_names(place->directory), 0);
	test_put_bytes(AT_FDCWD, place->path, "four", 4);
	assert_int_equal(graft_host_folder_remove(place->directory, &err), -1);
	assert_string_printed(graft_error_text(&err, text, sizeof(text)), "cannot remove %s: directory not empty",
			      place->directory);
	assert_int_equal(test_count_names(place->directory), 1);
}

static void test_memory(void **state)
{
	const struct place *place = *state;

	test_put_bytes(AT_FDCWD, place->path, "old", 3);
	for (int n = 1;; n++) {
		struct graft_error err = { 0 };
		int rc;

		allocation_fail(n);
		rc = graft_host_file_write(place->path, "new", 3, 0644, &err);
		if (!allocation_reported(rc, &err)) {
			assert_content(place->path, "new");
			return;
		}
		assert_content(place->path, "old");
		assert_int_equal(test_count_names(place->directory), 1);
	}
}

#define AT_PLACE(test) cmocka_unit_test_setup_teardown(test, open_place, close_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AT_PLACE(test_a_new_file),
		AT_PLACE(test_relative_paths),
		AT_PLACE(test_mode_owner_and_attributes_are_kept),
		AT_PLACE(test_links_are_followed),
		AT_PLACE(test_a_mounted_file),
		AT_PLACE(test_streams),
		AT_PLACE(test_logs),
		AT_PLACE(test_refusals),
		AT_PLACE(test_faults_leave_what_was_there),
		AT_PLACE(test_another_writer),
		AT_PLACE(test_read),
		AT_PLACE(test_remove),
		AT_PLACE(test_folder_is_removed),
		AT_PLACE(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
