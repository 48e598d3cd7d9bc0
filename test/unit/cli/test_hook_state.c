/* SPDX-License-Identifier: Apache-2.0 */
/* SPEC runtime-and-hook 11.2, steps 2 and 3. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "cli/hook/state.h"

/* Hands `text` to the reader through a pipe that stays open behind it when `hold`. */
static int read_state(const char *text, bool hold, struct graft_arena *arena, struct graft_oci_state *ret_state,
		      struct graft_error *err)
{
	int ends[2], rc;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
	if (!hold)
		(void)close(ends[1]);
	rc = hook_state_read(ends[0], arena, ret_state, err);
	if (hold)
		(void)close(ends[1]);
	(void)close(ends[0]);
	return rc;
}

static void test_states(void **state)
{
	static const struct {
		const char *text;
		bool hold; /* the runtime keeps the pipe open */
		const char *bundle;
		int64_t pid; /* -1 = refused */
	} rows[] = {
		{ "{\"pid\":42,\"bundle\":\"/b\"}", false, "/b", 42 },
		{ "{\"pid\":42,\"bundle\":\"/b\"}", true, "/b", 42 },
		{ " \n{\"annotations\":{\"}\":\"\\\"}{\"},\"x\":[{}],\"pid\":42,\"bundlePath\":\"/old\"}\n", true,
		  "/old", 42 },
		{ "{\"pid\":42,\"bundle\":\"\",\"bundlePath\":\"/old\"}", false, "/old", 42 },
		{ "{\"pid\":42,\"bundle\":\"/b\"} trailing", true, "/b", 42 },
		{ "{\"bundle\":\"/b\"}", false, "/b", 0 },
		{ "", false, NULL, -1 },
		{ "null", false, NULL, -1 },
		{ "{\"pid\":42", false, NULL, -1 },
		{ "}", false, NULL, -1 },
		{ "]]]]", true, NULL, -1 },
		{ "{\"pid\":\"42\"}", false, NULL, -1 },
		{ "{\"bundle\":7}", false, NULL, -1 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_oci_state got = { .pid = 0 };
		char text[1024];
		int rc;

		assert_non_null(arena);
		rc = read_state(rows[i].text, rows[i].hold, arena, &got, &err);
		if ((rc < 0) != (rows[i].pid < 0))
			fail_msg("row %zu: %d", i, rc);
		if (rc < 0) {
			(void)graft_error_text(&err, text, sizeof(text));
			assert_memory_equal(text, "could not decode container state", 32);
		} else {
			assert_int_equal(got.pid, rows[i].pid);
			assert_int_equal(got.bundle == NULL, rows[i].bundle == NULL);
			if (got.bundle)
				assert_string_equal(got.bundle, rows[i].bundle);
		}
		(void)graft_arena_free(arena);
	}
}

static void write_file(const char *directory, const char *text)
{
	char path[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/config.json", directory);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_not_equal(fputs(text, file), EOF);
	assert_int_equal(fclose(file), 0);
}

static void test_specs(void **state)
{
	static const struct {
		const char *text;
		const char *error; /* how it begins; NULL = fine */
	} rows[] = {
		{ "{\"ociVersion\":\"1.0.2\",\"process\":{},\"root\":{\"path\":\"rootfs\"}}", NULL },
		{ "{\"ociVersion\":\"1.0.2\",\"process\":{},\"root\":{\"path\":\"rootfs\"},\"new\":1}", NULL },
		{ "{\"process\":{},\"root\":{\"path\":\"rootfs\"}}", "Version is empty in OCI spec" },
		{ "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"rootfs\"}}", "Process is empty in OCI spec" },
		{ "{\"ociVersion\":\"1.0.2\",\"process\":{}}", "Root is empty in OCI spec" },
		{ "", "could not decode OCI spec" },
		{ "[]", "could not decode OCI spec" },
		{ "{", "could not decode OCI spec" },
	};
	char directory[] = "/tmp/graft-hook-XXXXXX", path[256];

	assert_non_null(mkdtemp(directory));
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_json_document struct graft_json_document *document = NULL;
		struct graft_arena *arena = graft_arena_new((size_t)1 << 22);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_oci_spec spec;
		char text[1024];
		int rc;

		assert_non_null(arena);
		write_file(directory, rows[i].text);
		rc = hook_spec_read(directory, arena, &document, &spec, &err);
		(void)graft_error_text(&err, text, sizeof(text));
		if ((rc < 0) != (rows[i].error != NULL))
			fail_msg("row %zu: %s", i, text);
		if (rc < 0)
			assert_memory_equal(text, rows[i].error, strlen(rows[i].error));
		else
			assert_string_equal(spec.root_path, "rootfs");
		(void)graft_arena_free(arena);
	}
	(void)snprintf(path, sizeof(path), "%s/config.json", directory);
	assert_int_equal(unlink(path), 0);
	/* what is no file does not hold us up */
	assert_int_equal(mkfifo(path, 0600), 0);
	{
		auto_json_document struct graft_json_document *document = NULL;
		struct graft_arena *arena = graft_arena_new((size_t)1 << 22);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_oci_spec spec;

		assert_int_equal(hook_spec_read(directory, arena, &document, &spec, &err), -1);
		assert_memory_equal(err.msg, "could not open OCI spec", 23);
		(void)graft_arena_free(arena);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void test_bundles(void **state)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_oci_state s = { .bundle = "/a/../b/" };
	char here[PATH_MAX];

	assert_non_null(arena);
	assert_string_equal(hook_bundle(&s, arena, &err), "/b");
	assert_non_null(getcwd(here, sizeof(here)));
	s.bundle = NULL;
	assert_string_equal(hook_bundle(&s, arena, &err), here);
	(void)graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_specs),
		cmocka_unit_test(test_bundles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
