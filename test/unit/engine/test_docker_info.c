/* SPDX-License-Identifier: Apache-2.0 */
/* What a Docker daemon answers about itself: real answers, refusals, and malformed answers. */
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "engine/docker_info.h"

#define OK_HEAD "HTTP/1.0 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n\r\n"

static const char full[] = OK_HEAD
    "{\"ID\": \"x\", \"ServerVersion\": \"28.3.0\", \"DefaultRuntime\": \"nvidia\","
    " \"Runtimes\": {\"io.containerd.runc.v2\": {\"path\": \"runc\", \"status\": {\"a\": \"b\"}},"
    " \"nvidia\": {\"path\": \"nvidia-container-runtime\"}, \"shim\": {\"runtimeType\": \"x\"},"
    " \"nvidia-shim\": {\"runtimeType\": \"x\", \"options\": {\"BinaryName\": \"/opt/nvidia\"}},"
    " \"bad\\u001bname\": {\"path\": \"/x\"}, \"bad\\u009b31m\": {}, \"bad\\u202e\": {}, \"escape\": {\"path\": "
    "\"/x\\u001b[31m\"}},"
    " \"CDISpecDirs\": [\"/etc/cdi\", 5, \"relative\", \"/var/run/cdi\"]}\n";

static void test_answer(void **state)
{
	struct graft_docker_info info;
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_docker_info_parse(full, sizeof(full) - 1, arena, &info, &err), 0);
	assert_string_equal(info.version, "28.3.0");
	assert_string_equal(info.default_runtime, "nvidia");
	/* Of the names and paths that would steer a terminal, none is left. */
	assert_int_equal(info.n_runtimes, 5);
	assert_string_equal(info.runtimes[1].name, "nvidia");
	assert_string_equal(info.runtimes[1].path, "nvidia-container-runtime");
	assert_string_equal(info.runtimes[2].name, "shim");
	assert_null(info.runtimes[2].path);
	assert_string_equal(info.runtimes[3].path, "/opt/nvidia");
	assert_string_equal(info.runtimes[4].name, "escape");
	assert_null(info.runtimes[4].path);
	assert_int_equal(info.n_cdi_directories, 2);
	assert_string_equal(info.cdi_directories[1], "/var/run/cdi");
}

static void test_little(void **state)
{
	static const char answer[] = OK_HEAD "{\"CDISpecDirs\": null, \"Runtimes\": [1], \"ServerVersion\": 20}";
	struct graft_docker_info info;

	assert_int_equal(graft_docker_info_parse(answer, sizeof(answer) - 1, arena, &info, NULL), 0);
	assert_null(info.version);
	assert_null(info.default_runtime);
	assert_int_equal(info.n_runtimes, 0);
	assert_int_equal(info.n_cdi_directories, 0);
}

static void test_refused(void **state)
{
	static const struct {
		const char *answer, *why;
	} cases[] = {
		{ "", "its answer is not HTTP" },
		{ "{}", "its answer is not HTTP" },
		{ "HTTP/1.0 200 OK\r\n", "its answer is not HTTP" },
		{ "HTTP/2 200 OK\r\n\r\n{}", "its answer is not HTTP" },
		{ "HTTP/1.1 403 Forbidden\r\n\r\n{}", "it answers 'HTTP/1.1 403 Forbidden'" },
		{ "HTTP/1.1\r\n\r\n{}", "it answers 'HTTP/1.1'" },
		{ "HTTP/1.1 2\r\n\r\n{}", "it answers 'HTTP/1.1 2'" },
		{ "HTTP/1.1 500 \033[31m\r\n\r\n{}", "it answers 'HTTP/1.1 500 '" },
		{ OK_HEAD, "its answer: line 1, column 1: unexpected end" },
		{ OK_HEAD "[1", "its answer: line 1, column 3: unexpected end" },
		{ OK_HEAD "[]", "its answer is not a JSON object" },
		{ OK_HEAD "2\r\n{}\r\n0\r\n\r\n", "its answer: line 2, column 1: unexpected text after the value" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct graft_docker_info info;
		struct graft_error err = { .status = GRAFT_OK };

		assert_int_equal(graft_docker_info_parse(cases[i].answer, strlen(cases[i].answer), arena, &info, &err),
				 -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
		assert_string_equal(err.msg, cases[i].why);
	}
}

static void test_allocations(void **state)
{
	struct graft_docker_info info;

	assert_true(allocation_each(own, err, graft_docker_info_parse(full, sizeof(full) - 1, own, &info, &err)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answer, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_little, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_refused, arena_setup, arena_teardown),
		cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
