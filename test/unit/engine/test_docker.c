/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.json: what is added, what is kept to the byte, what is refused, and the way back. */
#include "../unit.h"
#include "engine_case.h"

#define BARE    "nvidia-container-runtime"
#define RUNTIME "{\"path\": \"" BARE "\", \"args\": []}"
#define NEW_FILE                                                                                                  \
	"{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"args\": [],\n            \"path\": \"" BARE \
	"\"\n        }\n    }\n}\n"

static const struct engine_case rows[] = {
	{ "a new file", .path = BARE, .expected_config = NEW_FILE, .exactly = true },
	{ "an empty file", .config = "", .path = BARE, .expected_config = NEW_FILE, .exactly = true },
	{ "a file of blanks", .config = " \n", .path = BARE, .expected_config = NEW_FILE, .exactly = true },
	{ "an empty object", .config = "{}", .path = BARE, .expected_config = NEW_FILE, .exactly = true },
	{ "default and CDI", .path = BARE, .set_as_default = true, .enable_cdi = true,
	  .expected_config =
	      "{\"default-runtime\": \"nvidia\", \"features\": {\"cdi\": true}, \"runtimes\": {\"nvidia\": " RUNTIME
	      "}}" },
	{ "another name and path", .name = "gpu", .path = "/opt/<n>&v",
	  .expected_config = "{\"runtimes\": {\"gpu\": {\"path\": \"/opt/<n>&v\", \"args\": []}}}" },
	{ "log settings, as they are written", .path = BARE, .set_as_default = true,
	  .config = "{\n\t\"log-driver\": \"json-file\",\n\t\"log-opts\": {\"max-size\": \"10m\", \"x\": "
		    "\"<\\u00e9>\"},\n\t\"mtu\": 123456789012345678901\n}",
	  .expected_config = "{\n\t\"log-driver\": \"json-file\",\n\t\"log-opts\": {\"max-size\": \"10m\", \"x\": "
			     "\"<\\u00e9>\"},\n\t\"mtu\": 123456789012345678901,\n"
			     "\t\"runtimes\": {\"nvidia\": {\"args\": [], \"path\": \"" BARE
			     "\"}},\n\t\"default-runtime\": \"nvidia\"\n}",
	  .exactly = true },
	{ "other runtimes stay, the same is replaced", .path = BARE,
	  .config = "{\"runtimes\": {\"kata\": {\"path\": \"/k\", \"args\": [\"x\"]}, \"nvidia\": {\"path\": \"/old\", "
		    "\"runtimeArgs\": [\"-v\"]}}}",
	  .expected_config = "{\"runtimes\": {\"kata\": {\"path\": \"/k\", \"args\": [\"x\"]}, \"nvidia\": " RUNTIME
			     "}}" },
	{ "other features stay", .path = BARE, .enable_cdi = true,
	  .config = "{\"features\": {\"buildkit\": true, \"cdi\": false}, \"runtimes\": {\"nvidia\": {\"path\": \"" BARE
		    "\"}}}",
	  .expected_config =
	      "{\"features\": {\"buildkit\": true, \"cdi\": true}, \"runtimes\": {\"nvidia\": {\"path\": \"" BARE
	      "\"}}}",
	  .exactly = true },
	{ "a default is left alone", .path = BARE, .config = "{\"default-runtime\": \"ALREADY_SET\"}",
	  .expected_config = "{\"default-runtime\": \"ALREADY_SET\", \"runtimes\": {\"nvidia\": " RUNTIME "}}" },
	{ "also when it is ours", .path = BARE, .config = "{\"default-runtime\": \"nvidia\"}",
	  .expected_config = "{\"default-runtime\": \"nvidia\", \"runtimes\": {\"nvidia\": " RUNTIME "}}" },
	{ "a default is replaced", .path = BARE, .set_as_default = true, .config = "{\"default-runtime\": \"kata\"}",
	  .expected_config = "{\"default-runtime\": \"nvidia\", \"runtimes\": {\"nvidia\": " RUNTIME "}}" },
	{ "nothing where there is null", .path = BARE, .config = "{\"runtimes\": null}",
	  .expected_config = "{\"runtimes\": {\"nvidia\": " RUNTIME "}}" },
	{ "what dockerd reads as ours is ours", .path = BARE,
	  .config = "{\"runtimes\":{\"nvidia\":{\"path\":\"" BARE "\",\"runtimeArgs\":[]}}}",
	  .expected_config = "{\"runtimes\":{\"nvidia\":{\"path\":\"" BARE "\",\"runtimeArgs\":[]}}}",
	  .exactly = true },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		check_case(&graft_engine_docker, &rows[i]);
}

static void test_refusals(void **state)
{
	static const struct {
		struct engine_case row;
		const char *message;
	} refusals[] = {
		{ { "no JSON", .config = "{\"a\": 1,}" },
		  "unable to load config for runtime docker: /etc/docker/daemon.json: line 1, column 9" },
		{ { "more than one value", .config = "{} {}" },
		  "unable to load config for runtime docker: /etc/docker/daemon.json: line 1, column 4" },
		{ { "no object", .config = "[]" },
		  "unable to update config: /etc/docker/daemon.json: line 1, column 1: 'the value' is an array, but "
		  "must be an object" },
		{ { "runtimes of another type", .config = "{\"runtimes\": []}" },
		  "unable to update config: /etc/docker/daemon.json: line 1, column 2: 'runtimes' is an array, but "
		  "must be an object" },
		{ { "features of another type", .config = "{\"features\": 1}", .enable_cdi = true },
		  "'features' is a number, but must be an object" },
		{ { "runtimes twice", .config = "{\"runtimes\": {}, \"runtimes\": {}}" }, "'runtimes' is given twice" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(refusals); i++)
		check_refusal(&graft_engine_docker, &refusals[i].row, refusals[i].message);
}

/* The file was changed by others after it was configured, or has no backup: what is theirs stays. */
static void test_undo_of_a_changed_file(void **state)
{
	static const struct {
		const char *backup, *now, *expected;
	} table[] = {
		{ "{\"mtu\": 1}",
		  "{\"mtu\": 2, \"runtimes\": {\"nvidia\": {\"path\": \"x\"}}, \"default-runtime\": \"nvidia\"}",
		  "{\"mtu\": 2}" },
		{ "{\"default-runtime\": \"kata\"}", "{\"x\": 1, \"default-runtime\": \"nvidia\"}",
		  "{\"x\": 1, \"default-runtime\": \"kata\"}" },
		{ "{\"default-runtime\": \"kata\"}", "{\"x\": 1, \"default-runtime\": \"crun\"}",
		  "{\"x\": 1, \"default-runtime\": \"crun\"}" },
		{ "{\"runtimes\": {\"nvidia\": {\"path\": \"/old\", \"n\": [1, null]}}}",
		  "{\"x\": 1, \"runtimes\": {\"nvidia\": {\"path\": \"x\"}, \"k\": {}}}",
		  "{\"x\": 1, \"runtimes\": {\"nvidia\": {\"path\": \"/old\", \"n\": [1, null]}, \"k\": {}}}" },
		{ "{\"runtimes\": {}}", "{\"x\": 1, \"runtimes\": {\"nvidia\": {\"path\": \"x\"}}}",
		  "{\"x\": 1, \"runtimes\": {}}" },
		{ "{\"features\": {\"cdi\": false}}", "{\"x\": 1, \"features\": {\"cdi\": true}}",
		  "{\"x\": 1, \"features\": {\"cdi\": false}}" },
		{ NULL, "{\"mtu\": 2, \"features\": {\"cdi\": true, \"b\": true}, \"runtimes\": {\"nvidia\": {}}}",
		  "{\"mtu\": 2, \"features\": {\"cdi\": true, \"b\": true}}" },
		{ NULL, "{\"mtu\": 2}", "{\"mtu\": 2}" },
		{ "", "{\"runtimes\": {\"nvidia\": {}}}", "" },
		{ NULL,
		  "{\"runtimes\": {\"nvidia\": {}}, \"features\": {\"cdi\": true}, \"default-runtime\": \"nvidia\"}",
		  "{\"features\": {\"cdi\": true}}" },
		{ NULL, "{\"runtimes\": {\"nvidia\": {}}, \"default-runtime\": \"nvidia\"}", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(table); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		const struct engine_case row = { "", .config = table[i].now };
		struct graft_engine_request request = request_of(&graft_engine_docker, &row);
		struct graft_engine_changes changes;
		struct graft_error err = { 0 };

		print_message("# row %zu\n", i);
		request.config.backup = text_of(table[i].backup);
		assert_fine(graft_engine_docker.undo(&request, arena, &changes, &err), &err);
		assert_int_equal(changes.n_edits, 1);
		if (!table[i].expected)
			assert_null(changes.edits[0].text.bytes);
		else
			assert_string_equal(changes.edits[0].text.bytes, table[i].expected);
		(void)graft_arena_free(arena);
	}
}

static void test_no_file_to_undo(void **state)
{
	const struct engine_case row = { "" };
	struct graft_engine_request request = request_of(&graft_engine_docker, &row);
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_engine_changes changes;

	assert_int_equal(graft_engine_docker.undo(&request, arena, &changes, NULL), 0);
	assert_int_equal(changes.n_edits, 0);
	(void)graft_arena_free(arena);
}

static void test_memory(void **state)
{
	const struct engine_case row = { "", .config = "{\"runtimes\": {\"nvidia\": {\"path\": \"/old\", \"x\": [1]}}}",
					 .set_as_default = true, .enable_cdi = true };
	struct graft_engine_request request = request_of(&graft_engine_docker, &row);

	request.config.backup = request.config.text;
	check_memory(&graft_engine_docker, &request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_undo_of_a_changed_file),
		cmocka_unit_test(test_no_file_to_undo),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
