/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.json on disk: what is kept of the old file, how the new one is written, and that a kill
 * never leaves a partial file.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../allocation.h"
#include "../unit.h"
#include "apply/oci/oci_file.h"
#include "base/cleanup.h"
#include "replaced_files.h"

#define NOBODY 65534

struct bundle {
	char directory[32], path[64];
};

static int open_bundle(void **state)
{
	struct bundle *bundle = calloc(1, sizeof(*bundle));

	assert_non_null(bundle);
	(void)snprintf(bundle->directory, sizeof(bundle->directory), "/tmp/graft-test-XXXXXX");
	assert_non_null(mkdtemp(bundle->directory));
	(void)snprintf(bundle->path, sizeof(bundle->path), "%s/config.json", bundle->directory);
	test_put_bytes(AT_FDCWD, bundle->path, "{\"a\":1}\n", 8);
	no_links = false;
	*state = bundle;
	return 0;
}

static int close_bundle(void **state)
{
	struct bundle *bundle = *state;

	assert_int_equal(test_remove_folder(bundle->directory), 0);
	free(bundle);
	return 0;
}

/* Sets "a" to `value` and writes the document back. */
static int edit(const char *bundle, uint64_t value, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_json_node *number;

	if (graft_oci_file_read(bundle, &document, err) < 0)
		return -1;
	number = graft_json_new_u64(document, value, err);
	if (!number || graft_json_set(document, graft_json_document_root(document), "a", number, err) < 0)
		return -1;
	return graft_oci_file_write(bundle, document, err);
}

static void assert_edit(const char *bundle, uint64_t value)
{
	struct graft_error err = { 0 };
	char text[600];

	if (edit(bundle, value, &err) < 0)
		fail_msg("%s", graft_error_text(&err, text, sizeof(text)));
}

static void test_replaced(void **state)
{
	struct bundle *bundle = *state;
	struct stat before, after;

	for (int i = 0; i < 2; i++) {
		no_links = i == 1;
		before = stat_of(bundle->path);
		assert_edit(bundle->directory, (uint64_t)(7 + i));
		after = stat_of(bundle->path);
		assert_content(bundle->path, i == 0 ? "{\"a\":7}\n" : "{\"a\":8}\n");
		assert_true(before.st_ino != after.st_ino);
		assert_int_equal(test_count_names(bundle->directory), 1);
	}
}

static void test_unchanged_is_untouched(void **state)
{
	struct bundle *bundle = *state;
	struct stat before = stat_of(bundle->path), after;

	assert_edit(bundle->directory, 1);
	after = stat_of(bundle->path);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(before.st_ctim));
}

static void test_mode_owner_and_attributes_are_kept(void **state)
{
	struct bundle *bundle = *state;
	char value[16] = "";
	bool has_attributes = setxattr(bundle->path, "user.graft", "kept", 4, 0) == 0;
	struct stat after;

	assert_int_equal(chmod(bundle->path, 0640), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(bundle->path, NOBODY, 7), 0);
	for (int i = 0; i < 2; i++) {
		no_links = i == 1;
		assert_edit(bundle->directory, (uint64_t)(7 + i));
		after = stat_of(bundle->path);
		assert_int_equal(after.st_mode & 07777, 0640);
		assert_int_equal(after.st_uid, geteuid() == 0 ? NOBODY : geteuid());
		if (geteuid() == 0)
			assert_int_equal(after.st_gid, 7);
		if (has_attributes) {
			assert_int_equal(getxattr(bundle->path, "user.graft", value, sizeof(value)), 4);
			assert_memory_equal(value, "kept", 4);
		}
	}
}

static void test_the_working_directory(void **state)
{
	struct bundle *bundle = *state;
	auto_close int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(chdir(bundle->directory), 0);
	assert_edit(NULL, 9);
	assert_int_equal(fchdir(here), 0);
	assert_content(bundle->path, "{\"a\":9}\n");
}

/* The link stays; its target is replaced. */
static void test_links_are_followed(void **state)
{
	static const char *const texts[] = { "real.json", "sub/real.json", "hop", "%s/sub/real.json" };
	struct bundle *bundle = *state;
	char path[128], text[128];

	(void)snprintf(path, sizeof(path), "%s/sub", bundle->directory);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/hop", bundle->directory);
	assert_int_equal(symlink("./sub/../sub/real.json", path), 0);
	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		(void)snprintf(text, sizeof(text), "%s", texts[i]);
		if (strchr(texts[i], '%'))
			(void)snprintf(text, sizeof(text), "%s/sub/real.json", bundle->directory);
		(void)snprintf(path, sizeof(path), "%s/%s", bundle->directory, i == 0 ? "real.json" : "sub/real.json");
		test_put_bytes(AT_FDCWD, path, "{\"a\":1}", 7);
		(void)unlink(bundle->path);
		assert_int_equal(symlink(text, bundle->path), 0);
		assert_edit(bundle->directory, 5);
		assert_true(S_ISLNK(stat_of(bundle->path).st_mode));
		assert_true(S_ISREG(stat_of(path).st_mode));
		assert_content(path, "{\"a\":5}");
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(test_count_names(bundle->directory), 3);
}

static void test_what_a_killed_process_left(void **state)
{
	struct bundle *bundle = *state;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/.config.json.graft", bundle->directory);
	for (int i = 0; i < 2; i++) {
		no_links = i == 1;
		test_put_bytes(AT_FDCWD, path, "{\"half", 6);
		assert_edit(bundle->directory, (uint64_t)(7 + i));
		assert_int_equal(test_count_names(bundle->directory), 1);
	}
}

/*
 * Runs `once` as an ordinary user if the test is root; it returns 0 if everything was as expected.
 */
static void as_ordinary_user(int (*once)(const struct bundle *bundle), const struct bundle *bundle)
{
	pid_t pid = fork();
	int status = -1;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
			_exit(100);
		_exit(once(bundle));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int edit_once(const struct bundle *bundle)
{
	struct graft_error err = { 0 };

	return edit(bundle->directory, 12345, &err) < 0 ? 1 : 0;
}

static int shrink_once(const struct bundle *bundle)
{
	return edit(bundle->directory, 3, NULL) < 0 ? 1 : 0;
}

static int fails_with_permission(const struct bundle *bundle)
{
	struct graft_error err = { 0 };
	char text[600];

	if (edit(bundle->directory, 12345, &err) == 0 || err.status != GRAFT_PERMISSION)
		return 1;
	return strstr(graft_error_text(&err, text, sizeof(text)), "error writing OCI specification file") ? 0 : 2;
}

static void test_a_bundle_that_cannot_be_written(void **state)
{
	struct bundle *bundle = *state;
	struct stat before;

	assert_int_equal(chmod(bundle->directory, 0555), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(bundle->path, NOBODY, NOBODY), 0);
	before = stat_of(bundle->path);
	as_ordinary_user(edit_once, bundle);
	assert_content(bundle->path, "{\"a\":12345}\n");
	as_ordinary_user(shrink_once, bundle);
	assert_content(bundle->path, "{\"a\":3}\n");
	assert_int_equal(stat_of(bundle->path).st_ino, before.st_ino);
	assert_int_equal(chmod(bundle->path, 0444), 0);
	as_ordinary_user(fails_with_permission, bundle);
	assert_content(bundle->path, "{\"a\":3}\n");
	assert_int_equal(chmod(bundle->directory, 0755), 0);
	assert_int_equal(test_count_names(bundle->directory), 1);
}

/* If the new file cannot be given to the old one's owner, the old one stays. */
static void test_an_owner_that_cannot_be_given(void **state)
{
	struct bundle *bundle = *state;
	struct stat before = stat_of(bundle->path), after;

	if (geteuid() != 0) {
		print_message("# SKIP: oci-file-owner: needs two users\n");
		skip();
	}
	assert_int_equal(chmod(bundle->directory, 0777), 0);
	assert_int_equal(chmod(bundle->path, 0666), 0);
	as_ordinary_user(edit_once, bundle);
	after = stat_of(bundle->path);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_uid, 0);
	assert_content(bundle->path, "{\"a\":12345}\n");
	assert_int_equal(test_count_names(bundle->directory), 1);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *content; /* NULL: no such file; "/": a directory */
		enum graft_status status;
		const char *before, *behind; /* the message before and after the file's path */
	} rows[] = {
		{ NULL, GRAFT_NOT_FOUND, "error opening OCI specification file '", "': no such file or directory" },
		{ "/", GRAFT_IO, "error reading OCI specification file '", "': invalid argument" },
		{ "", GRAFT_FORMAT, "error loading OCI specification from file: error reading OCI specification: ",
		  ": line 1, column 1: "
		  "unexpected end" },
		{ "{\"a\":1,}", GRAFT_FORMAT,
		  "error loading OCI specification from file: error reading OCI specification: ",
		  ": line 1, column 8: a comma before a closing bracket" },
	};
	struct bundle *bundle = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { 0 };
		char text[600];

		print_message("# %s\n", rows[i].behind);
		if (unlink(bundle->path) < 0)
			(void)rmdir(bundle->path);
		if (rows[i].content && rows[i].content[0] == '/')
			assert_int_equal(mkdir(bundle->path, 0755), 0);
		else if (rows[i].content)
			test_put_bytes(AT_FDCWD, bundle->path, rows[i].content, strlen(rows[i].content));
		assert_int_equal(edit(bundle->directory, 2, &err), -1);
		assert_int_equal(err.status, rows[i].status);
		assert_string_printed(graft_error_text(&err, text, sizeof(text)), "%s%s%s", rows[i].before,
				      bundle->path, rows[i].behind);
	}
}

static void test_what_follows_is_kept(void **state)
{
	struct bundle *bundle = *state;

	test_put_bytes(AT_FDCWD, bundle->path, "{\"a\":1} {", 9);
	assert_edit(bundle->directory, 2);
	assert_content(bundle->path, "{\"a\":2} {");
}

static void test_memory(void **state)
{
	struct bundle *bundle = *state;

	for (int n = 1;; n++) {
		struct graft_error err = { 0 };
		bool failed;
		int rc;

		test_put_bytes(AT_FDCWD, bundle->path, "{\"a\":1}\n", 8);
		allocation_fail(n);
		rc = edit(bundle->directory, 22, &err);
		failed = allocation_reported(rc, &err);
		assert_content(bundle->path, failed ? "{\"a\":1}\n" : "{\"a\":22}\n");
		assert_int_equal(test_count_names(bundle->directory), 1);
		if (!failed) {
			assert_true(n > 5);
			return;
		}
	}
}

#define KILLS    200
#define PAD      60000
#define TEXT_MAX (2 * PAD)

/* Two texts of different length: the file must contain one or the other, never a part. */
static size_t version_text(uint64_t version, char *text)
{
	int n = snprintf(text, TEXT_MAX, "{\"a\":%d,\"pad\":\"", (int)version);
	size_t length = (size_t)n, pad = version == 0 ? PAD : PAD / 2;

	memset(text + length, version == 0 ? 'x' : 'y', pad);
	length += pad;
	memcpy(text + length, "\"}\n", 3);
	return length + 3;
}

static void write_forever(const char *bundle)
{
	char *pad = calloc(1, PAD + 1);

	if (!pad)
		_exit(1);
	for (uint64_t version = 1;; version = 1 - version) {
		auto_json_document struct graft_json_document *document = NULL;
		struct graft_json_node *root, *text, *number;

		memset(pad, version == 0 ? 'x' : 'y', PAD);
		pad[version == 0 ? PAD : PAD / 2] = '\0';
		if (graft_oci_file_read(bundle, &document, NULL) < 0)
			_exit(1);
		root = graft_json_document_root(document);
		number = graft_json_new_u64(document, version, NULL);
		text = graft_json_new_string(document, pad, NULL);
		if (graft_json_set(document, root, "a", number, NULL) < 0 ||
		    graft_json_set(document, root, "pad", text, NULL) < 0 ||
		    graft_oci_file_write(bundle, document, NULL) < 0)
			_exit(1);
	}
}

static int version_there(const char *path, char *text, char *expected)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, TEXT_MAX);

	for (uint64_t version = 0; version < 2; version++) {
		size_t n = version_text(version, expected);

		if (length == (ssize_t)n && memcmp(text, expected, n) == 0)
			return (int)version;
	}
	return -1;
}

static void kill_at_random(const struct bundle *bundle)
{
	auto_free char *text = malloc(TEXT_MAX), *expected = malloc(TEXT_MAX);
	int seen[2] = { 0, 0 }, left = 0;

	test_put_bytes(AT_FDCWD, bundle->path, text, version_text(0, text));
	for (int i = 0; i < KILLS; i++) {
		pid_t pid = fork();
		int status, version;

		assert_true(pid >= 0);
		if (pid == 0)
			write_forever(bundle->directory);
		/* The delay grows, for machines that are slow or busy. */
		(void)usleep((useconds_t)(500 + rand() % (3000 << (i / 50))));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		version = version_there(bundle->path, text, expected);
		assert_true(version >= 0);
		seen[version]++;
		left += test_count_names(bundle->directory) - 1;
		assert_true(test_count_names(bundle->directory) <= 2);
	}
	/* Both contents were seen, so not every process was killed before it started to write. */
	print_message("# old %d times, new %d times, a temporary file left %d times\n", seen[0], seen[1], left);
	assert_true(seen[0] > 0 && seen[1] > 0);
	assert_edit(bundle->directory, 12);
	assert_int_equal(test_count_names(bundle->directory), 1);
}

static void test_killed(void **state)
{
	kill_at_random(*state);
	no_links = true;
	kill_at_random(*state);
}

#define WITH_BUNDLE(test) cmocka_unit_test_setup_teardown(test, open_bundle, close_bundle)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_BUNDLE(test_replaced),
		WITH_BUNDLE(test_unchanged_is_untouched),
		WITH_BUNDLE(test_mode_owner_and_attributes_are_kept),
		WITH_BUNDLE(test_the_working_directory),
		WITH_BUNDLE(test_links_are_followed),
		WITH_BUNDLE(test_what_a_killed_process_left),
		WITH_BUNDLE(test_a_bundle_that_cannot_be_written),
		WITH_BUNDLE(test_an_owner_that_cannot_be_given),
		WITH_BUNDLE(test_refusals),
		WITH_BUNDLE(test_what_follows_is_kept),
		WITH_BUNDLE(test_memory),
		WITH_BUNDLE(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
