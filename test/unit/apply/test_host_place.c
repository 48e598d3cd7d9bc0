/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's rules for links and files in shared directories, regardless of its own settings: who
 * must own a link, at every component of a path; that the file found is the file written; and paths
 * that no rule forbids.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "apply/host_file.h"
#include "apply/host_place.h"
#include "base/cleanup.h"

#define MALLORY 12345
#define ALICE   12346
#define UNKNOWN 65534

/* directory/secret and directory/target/file belong to root; directory/d depends on the test. */
struct place {
	char directory[32];
};

static char *in(const struct place *place, const char *name)
{
	static char paths[4][256];
	static unsigned int next;
	char *path = paths[next++ % GRAFT_COUNT(paths)];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", place->directory, name);
	return path;
}

static void put(const char *path, const char *text, uid_t owner)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchown(fd, owner, owner), 0);
}

static void plant(const char *text, const char *path, uid_t owner)
{
	assert_int_equal(symlink(text, path), 0);
	assert_int_equal(lchown(path, owner, owner), 0);
}

static void make(const char *path, mode_t mode, uid_t owner)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, owner, owner), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static bool has(const char *path, const char *text)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char content[64] = "";

	return fd >= 0 && read(fd, content, sizeof(content) - 1) >= 0 && strcmp(content, text) == 0;
}

static int open_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	(void)snprintf(place->directory, sizeof(place->directory), "/tmp/graft-test-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	assert_int_equal(chmod(place->directory, 0755), 0);
	put(in(place, "secret"), "secret", geteuid());
	assert_int_equal(mkdir(in(place, "target"), 0755), 0);
	put(in(place, "target/file"), "secret", geteuid());
	*state = place;
	return 0;
}

static int close_place(void **state)
{
	struct place *place = *state;
	char command[64];
	pid_t pid;
	int status;

	(void)snprintf(command, sizeof(command), "%s", place->directory);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execlp("rm", "rm", "-rf", command, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	free(place);
	return 0;
}

static void need_root(void)
{
	if (geteuid() != 0) {
		print_message("# SKIP: planted-links: only root can plant another user's links\n");
		skip();
	}
}

/* ---- the table of the rules ---- */

static void test_who_may_be_followed(void **state)
{
	static const struct {
		mode_t mode;
		uid_t directory, link;
		bool may;
	} rows[] = {
		{ 01777, 0, MALLORY, false },       { 01777, MALLORY, ALICE, false }, { 01777, MALLORY, MALLORY, true },
		{ 01777, UNKNOWN, UNKNOWN, false }, { 01775, 0, MALLORY, true },      { 0777, 0, MALLORY, true },
		{ 0755, 0, MALLORY, true },         { 01702, 0, MALLORY, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct stat directory = { .st_mode = S_IFDIR | rows[i].mode, .st_uid = rows[i].directory };
		struct stat link = { .st_mode = S_IFLNK | 0777, .st_uid = rows[i].link, .st_nlink = 1 };

		if (graft_host_may_follow(&directory, &link) != rows[i].may && rows[i].link != geteuid())
			fail_msg("row %zu", i);
		link.st_uid = geteuid();
		assert_true(graft_host_may_follow(&directory, &link));
		/* Anyone can have made the second name. */
		link.st_nlink = 2;
		assert_int_equal(graft_host_may_follow(&directory, &link), (rows[i].mode & 01002) != 01002);
	}
}

/* ---- a link at the end ---- */

enum outcome { FOLLOWED, REPLACED, REFUSED };

static void test_links_at_the_end(void **state)
{
	static const struct {
		mode_t mode;
		uid_t directory, link;
		enum outcome write, read;
	} rows[] = {
		/* a directory like /tmp */
		{ 01777, 0, MALLORY, REPLACED, REFUSED },
		{ 01777, 0, 0, FOLLOWED, FOLLOWED },
		/* shared by another user: the kernel would follow the owner's link */
		{ 01777, MALLORY, MALLORY, REPLACED, REFUSED },
		{ 01777, MALLORY, ALICE, REPLACED, REFUSED },
		{ 01777, MALLORY, 0, FOLLOWED, FOLLOWED },
		/* not shared */
		{ 0755, 0, 0, FOLLOWED, FOLLOWED },
		{ 0755, 0, MALLORY, REPLACED, REFUSED },
		{ 0755, MALLORY, MALLORY, REPLACED, REFUSED },
		{ 0777, 0, MALLORY, REPLACED, REFUSED },
		{ 01775, 0, MALLORY, REPLACED, REFUSED },
	};
	const struct place *place = *state;

	need_root();
	for (size_t i = 0; i < 2 * GRAFT_COUNT(rows); i++) {
		const bool dangling = i % 2 == 1;
		struct graft_arena *arena = graft_arena_new(1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		char name[16], link[64], text[64];
		const char *bytes;
		struct stat st;
		size_t length;
		int rc;

		(void)snprintf(name, sizeof(name), "d%zu", i);
		(void)snprintf(link, sizeof(link), "%s/out.yaml", in(place, name));
		(void)snprintf(text, sizeof(text), "%s", in(place, dangling ? "target/new" : "secret"));
		make(in(place, name), rows[i / 2].mode, rows[i / 2].directory);
		plant(text, link, rows[i / 2].link);
		rc = graft_host_file_read(link, 100, arena, &bytes, &length, &err);
		if (rows[i / 2].read == REFUSED) {
			assert_int_equal(rc, -1);
			assert_int_equal(err.status, GRAFT_PERMISSION);
			assert_string_printed(err.msg, "cannot read %s: %s is a link of user %d%s", link, link,
					      rows[i / 2].link,
					      (rows[i / 2].mode & S_ISVTX) != 0
						  ? " in a directory that others may write to; remove it, or name "
						    "another place"
						  : "; remove it, or give it to yourself or to root ('chown -h')");
		} else {
			assert_int_equal(rc, dangling ? 0 : 1);
		}
		assert_int_equal(graft_host_file_write(link, "new", 3, 0640, &err), 0);
		assert_int_equal(lstat(link, &st), 0);
		if (rows[i / 2].write == REPLACED) {
			/* nothing remains of the link's owner */
			assert_int_equal(st.st_mode, S_IFREG | 0640);
			assert_int_equal(st.st_uid, 0);
			assert_true(has(link, "new"));
			assert_true(dangling ? access(text, F_OK) < 0 : has(text, "secret"));
		} else {
			assert_true(S_ISLNK(st.st_mode));
			assert_true(has(text, "new"));
			put(in(place, "secret"), "secret", 0);
			(void)unlink(in(place, "target/new"));
		}
		(void)graft_arena_free(arena);
	}
}

/* A user who may write to a directory can give root's link a name there (protected_hardlinks = 0). */
static void test_links_with_two_names(void **state)
{
	static const struct {
		mode_t mode;
		uid_t directory;
		bool may;
	} rows[] = {
		{ 0755, 0, true },  { 0555, 0, true },   { 0755, MALLORY, false },
		{ 0777, 0, false }, { 01775, 0, false }, { 01777, 0, false },
	};
	const struct place *place = *state;

	need_root();
	plant(in(place, "secret"), in(place, "roots"), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new(1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		char name[16], link[64];
		const char *bytes;
		size_t length;

		(void)snprintf(name, sizeof(name), "d%zu", i);
		(void)snprintf(link, sizeof(link), "%s/out.yaml", in(place, name));
		make(in(place, name), rows[i].mode, rows[i].directory);
		assert_int_equal(linkat(AT_FDCWD, in(place, "roots"), AT_FDCWD, link, 0), 0);
		assert_int_equal(graft_host_file_read(link, 100, arena, &bytes, &length, &err), rows[i].may ? 1 : -1);
		if (!rows[i].may)
			assert_string_printed(err.msg,
					      "cannot read %s: %s is a link of user 0 in a directory that others may "
					      "write to; remove it, or name another place",
					      link, link);
		assert_int_equal(graft_host_file_write(link, "new", 3, 0644, NULL), 0);
		assert_true(has(in(place, "secret"), rows[i].may ? "new" : "secret"));
		put(in(place, "secret"), "secret", 0);
		(void)graft_arena_free(arena);
	}
}

/* Our own link points into a shared directory with another user's link. */
static void test_a_chain_of_links(void **state)
{
	const struct place *place = *state;

	need_root();
	make(in(place, "d"), 01777, 0);
	plant("d/middle", in(place, "own"), 0);
	plant("../secret", in(place, "d/middle"), MALLORY);
	assert_int_equal(graft_host_file_write(in(place, "own"), "new", 3, 0644, NULL), 0);
	assert_true(has(in(place, "d/middle"), "new"));
	assert_true(has(in(place, "secret"), "secret"));
}

/* ---- links on the way ---- */

static void assert_refused(const char *path, const char *culprit)
{
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_host_file_write(path, "new", 3, 0644, &err), -1);
	assert_int_equal(err.status, GRAFT_PERMISSION);
	assert_string_printed(
	    err.msg,
	    "cannot write %s: %s of user %d in a directory that others may write to; remove it, or name "
	    "another place",
	    path, culprit, MALLORY);
}

static void test_links_on_the_way(void **state)
{
	const struct place *place = *state;
	struct graft_error err = { .status = GRAFT_OK };
	char path[128], culprit[128];

	need_root();
	make(in(place, "d"), 01777, 0);
	plant("../target", in(place, "d/way"), MALLORY);
	(void)snprintf(culprit, sizeof(culprit), "%s is a link", in(place, "d/way"));
	(void)snprintf(path, sizeof(path), "%s", in(place, "d/way/file"));
	assert_refused(path, culprit);
	(void)snprintf(path, sizeof(path), "%s", in(place, "d/way/new"));
	assert_refused(path, culprit);
	(void)snprintf(path, sizeof(path), "%s", in(place, "d/way/deep/er/new"));
	assert_refused(path, culprit);
	assert_int_equal(access(in(place, "target/new"), F_OK), -1);
	assert_int_equal(access(in(place, "target/deep"), F_OK), -1);
	assert_true(has(in(place, "target/file"), "secret"));
	/* nor is a file removed there */
	assert_int_equal(graft_host_file_remove(in(place, "d/way/file"), &err), -1);
	assert_int_equal(err.status, GRAFT_PERMISSION);
	assert_true(has(in(place, "target/file"), "secret"));
	/* nor is a link of our own followed that points through it */
	plant("d/way/file", in(place, "own"), 0);
	assert_refused(in(place, "own"), culprit);
	assert_true(has(in(place, "target/file"), "secret"));
	/* our own link is followed, and so is the directory owner's */
	assert_int_equal(lchown(in(place, "d/way"), 0, 0), 0);
	assert_int_equal(graft_host_file_write(in(place, "d/way/file"), "new", 3, 0644, NULL), 0);
	assert_true(has(in(place, "target/file"), "new"));
}

/* ---- files and pipes ---- */

static void test_files_of_others(void **state)
{
	static const struct {
		mode_t mode;
		uid_t directory, file;
		bool may;
	} rows[] = {
		{ 01777, 0, MALLORY, false }, { 01775, 0, MALLORY, false },      { 01770, 0, MALLORY, false },
		{ 01755, 0, MALLORY, true },  { 0777, 0, MALLORY, true },        { 0755, MALLORY, MALLORY, true },
		{ 01777, 0, 0, true },        { 01777, MALLORY, MALLORY, true }, { 01777, ALICE, MALLORY, false },
	};
	const struct place *place = *state;

	need_root();
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char name[16], path[64], culprit[96];

		(void)snprintf(name, sizeof(name), "d%zu", i);
		make(in(place, name), rows[i].mode, rows[i].directory);
		(void)snprintf(path, sizeof(path), "%s/file", in(place, name));
		put(path, "theirs", rows[i].file);
		if (rows[i].may) {
			struct stat st;

			assert_int_equal(graft_host_file_write(path, "new", 3, 0644, NULL), 0);
			assert_int_equal(stat(path, &st), 0);
			assert_int_equal(st.st_uid, rows[i].file);
			continue;
		}
		(void)snprintf(culprit, sizeof(culprit), "%s is a file", path);
		assert_refused(path, culprit);
		assert_true(has(path, "theirs"));
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkfifo(path, 0666), 0);
		assert_int_equal(chown(path, rows[i].file, rows[i].file), 0);
		(void)snprintf(culprit, sizeof(culprit), "%s is a pipe", path);
		assert_refused(path, culprit);
		/* removing a file does not write to it */
		assert_int_equal(graft_host_file_remove(path, NULL), 0);
	}
}

/*
 * Writes as an ordinary user, for whom root's links in shared directories belong to the
 * directories' owner.
 */
static int write_as_alice(const struct place *place)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (setgid(ALICE) < 0 || setuid(ALICE) < 0)
		return 1;
	if (graft_host_file_write(in(place, "d/root/new"), "new", 3, 0644, &err) < 0)
		return 2;
	if (graft_host_file_write(in(place, "d/mallory/new"), "new", 3, 0644, &err) == 0)
		return 3;
	if (!strstr(err.msg, "/d/mallory is a link of user 12345"))
		return 4;
	/* nor can it be replaced without the right to do so */
	if (graft_host_file_write(in(place, "d/out"), "new", 3, 0644, &err) == 0)
		return 5;
	return strstr(err.msg, "/d/out is a link of user 12345") ? 0 : 6;
}

static void test_another_user(void **state)
{
	const struct place *place = *state;
	int status;
	pid_t pid;

	need_root();
	make(in(place, "d"), 01777, 0);
	make(in(place, "alices"), 0755, ALICE);
	plant("../alices", in(place, "d/root"), 0);
	plant("../alices", in(place, "d/mallory"), MALLORY);
	plant("../alices/out", in(place, "d/out"), MALLORY);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(write_as_alice(place));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(in(place, "alices/out"), F_OK), -1);
}

/* A log is another file that root writes to. */
static void test_planted_logs(void **state)
{
	const struct place *place = *state;
	struct graft_error err = { 0 };
	char text[800];

	need_root();
	make(in(place, "d"), 01777, 0);
	plant("../secret", in(place, "d/link"), MALLORY);
	put(in(place, "d/file"), "theirs", MALLORY);
	assert_int_equal(link(in(place, "secret"), in(place, "d/name")), 0);
	assert_int_equal(graft_host_log_open(in(place, "d/link"), 0, true, &err), -1);
	assert_int_equal(err.status, GRAFT_PERMISSION);
	assert_string_printed(
	    graft_error_text(&err, text, sizeof(text)),
	    "cannot log to %s/d/link: %s/d/link is a link of user %d in a directory that others may write to; "
	    "remove it, or name another place",
	    place->directory, place->directory, MALLORY);
	assert_int_equal(graft_host_log_open(in(place, "d/file"), 0, true, &err), -1);
	assert_int_equal(err.status, GRAFT_PERMISSION);
	assert_int_equal(graft_host_log_open(in(place, "d/name"), 0, true, &err), -1);
	assert_int_equal(err.status, GRAFT_PERMISSION);
	assert_true(has(in(place, "secret"), "secret"));
	assert_true(has(in(place, "d/file"), "theirs"));
}

/* ---- the file found is the file opened ---- */

static void test_what_comes_afterwards(void **state)
{
	const struct place *place = *state;
	auto_host_place struct graft_host_place found = GRAFT_HOST_PLACE_INIT;

	put(in(place, "file"), "one", geteuid());
	assert_int_equal(graft_host_place_find(AT_FDCWD, -1, in(place, "file"), GRAFT_HOST_TO_WRITE, &found), 0);
	assert_int_equal(found.found, GRAFT_HOST_OBJECT);
	assert_string_equal(found.name, "file");
	assert_int_equal(rename(in(place, "file"), in(place, "old")), 0);
	assert_int_equal(graft_host_place_open(&found, O_RDONLY), -ENOENT);
	plant("secret", in(place, "file"), geteuid());
	assert_int_equal(graft_host_place_open(&found, O_RDONLY), -ELOOP);
	assert_int_equal(unlink(in(place, "file")), 0);
	put(in(place, "file"), "two", geteuid());
	assert_int_equal(graft_host_place_open(&found, O_RDONLY), -ESTALE);
	assert_int_equal(rename(in(place, "old"), in(place, "file")), 0);
	{
		auto_close int fd = graft_host_place_open(&found, O_RDONLY);

		assert_true(fd >= 0);
	}
}

/* ---- paths ---- */

static void assert_found(const char *path, int root_fd, unsigned int flags, int rc, const char *directory,
			 const char *name)
{
	auto_host_place struct graft_host_place found = GRAFT_HOST_PLACE_INIT;
	struct stat expected, st;

	if (graft_host_place_find(root_fd >= 0 ? root_fd : AT_FDCWD, root_fd, path, flags, &found) != rc)
		fail_msg("%s", path);
	if (rc < 0)
		return;
	assert_string_equal(found.name, name);
	assert_int_equal(stat(directory, &expected), 0);
	assert_int_equal(fstat(found.dir_fd, &st), 0);
	assert_int_equal(st.st_ino, expected.st_ino);
}

static void test_paths(void **state)
{
	const struct place *place = *state;
	char absolute[128], long_name[300];

	(void)snprintf(absolute, sizeof(absolute), "%s", in(place, "target"));
	plant(absolute, in(place, "absolute"), geteuid());
	plant("target/", in(place, "slash"), geteuid());
	plant("target/..//target/./file", in(place, "winding"), geteuid());
	plant("loop", in(place, "loop"), geteuid());
	plant("gone/x", in(place, "dangling"), geteuid());
	assert_found(in(place, "absolute/file"), -1, 0, 0, absolute, "file");
	assert_found(in(place, "slash///file"), -1, 0, 0, absolute, "file");
	assert_found(in(place, "slash/../target/new"), -1, 0, 0, absolute, "new");
	assert_found(in(place, "winding"), -1, 0, 0, absolute, "file");
	assert_found(in(place, "winding"), -1, GRAFT_HOST_NO_FOLLOW, 0, place->directory, "winding");
	assert_found(in(place, "slash"), -1, GRAFT_HOST_DIRECTORY, 0, absolute, ".");
	assert_found("/", -1, GRAFT_HOST_DIRECTORY, 0, "/", ".");
	assert_found("/etc", -1, 0, 0, "/", "etc");
	assert_found("x", -1, 0, 0, ".", "x");
	assert_found(in(place, "loop"), -1, 0, -ELOOP, NULL, NULL);
	assert_found(in(place, "loop/x"), -1, 0, -ELOOP, NULL, NULL);
	assert_found(in(place, "slash"), -1, 0, -EISDIR, NULL, NULL);
	assert_found(in(place, "target/"), -1, 0, -EISDIR, NULL, NULL);
	assert_found(in(place, "target/.."), -1, 0, -EISDIR, NULL, NULL);
	assert_found("", -1, 0, -EISDIR, NULL, NULL);
	assert_found(in(place, "secret/x"), -1, 0, -ENOTDIR, NULL, NULL);
	assert_found(in(place, "secret"), -1, GRAFT_HOST_DIRECTORY, -ENOTDIR, NULL, NULL);
	assert_found(in(place, "none/x"), -1, 0, -ENOENT, NULL, NULL);
	(void)memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_found(long_name, -1, 0, -ENAMETOOLONG, NULL, NULL);
	/* directories are made for the caller's path, but not for a link's target */
	assert_found(in(place, "dangling"), -1, GRAFT_HOST_MAKE_PARENTS, -ENOENT, NULL, NULL);
	assert_found(in(place, "dangling/x"), -1, GRAFT_HOST_MAKE_PARENTS, -ENOENT, NULL, NULL);
	assert_int_equal(access(in(place, "gone"), F_OK), -1);
	assert_found(in(place, "slash/a/b/c"), -1, GRAFT_HOST_MAKE_PARENTS, 0, in(place, "target/a/b"), "c");
	assert_found(in(place, "l/m"), -1, GRAFT_HOST_DIRECTORY | GRAFT_HOST_MAKE_LAST, -ENOENT, NULL, NULL);
	assert_int_equal(mkdir(in(place, "l"), 0755), 0);
	assert_found(in(place, "l/m"), -1, GRAFT_HOST_DIRECTORY | GRAFT_HOST_MAKE_LAST, 0, in(place, "l/m"), ".");
}

/* With a root of its own, absolute links start there, and ".." does not leave it. */
static void test_a_root(void **state)
{
	const struct place *place = *state;
	auto_close int root_fd = -1;

	root_fd = open(in(place, "target"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root_fd >= 0);
	assert_int_equal(mkdir(in(place, "target/run"), 0755), 0);
	plant("/run", in(place, "target/up"), geteuid());
	plant("../../../run", in(place, "target/higher"), geteuid());
	assert_found("/up/x", root_fd, 0, 0, in(place, "target/run"), "x");
	assert_found("/higher/x", root_fd, 0, 0, in(place, "target/run"), "x");
	assert_found("/../../file", root_fd, 0, 0, in(place, "target"), "file");
	assert_found("/up/../../../file", root_fd, 0, 0, in(place, "target"), "file");
}

/* Links of procfs are the kernel's own, and can refer to objects without a path. */
static void test_links_of_procfs(void **state)
{
	const struct place *place = *state;
	char path[64], text[8] = "";
	int ends[2];
	auto_close int fd = -1;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
	assert_int_equal(graft_host_file_write(path, "piped", 5, 0644, NULL), 0);
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	assert_int_equal(graft_host_file_write(path, "!", 1, 0644, NULL), 0);
	assert_int_equal(read(ends[0], text, sizeof(text)), 6);
	assert_string_equal(text, "piped!");
	(void)close(ends[0]);
	(void)close(ends[1]);
	fd = open(in(place, "target"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/file", fd);
	assert_int_equal(graft_host_file_write(path, "new", 3, 0644, NULL), 0);
	assert_true(has(in(place, "target/file"), "new"));
	(void)snprintf(path, sizeof(path), "/proc/self/root%s", in(place, "secret"));
	assert_int_equal(graft_host_file_write(path, "new", 3, 0644, NULL), 0);
	assert_true(has(in(place, "secret"), "new"));
}

#define AT_PLACE(test) cmocka_unit_test_setup_teardown(test, open_place, close_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_may_be_followed),
		AT_PLACE(test_links_at_the_end),
		AT_PLACE(test_links_with_two_names),
		AT_PLACE(test_a_chain_of_links),
		AT_PLACE(test_links_on_the_way),
		AT_PLACE(test_files_of_others),
		AT_PLACE(test_another_user),
		AT_PLACE(test_planted_logs),
		AT_PLACE(test_what_comes_afterwards),
		AT_PLACE(test_paths),
		AT_PLACE(test_a_root),
		AT_PLACE(test_links_of_procfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
