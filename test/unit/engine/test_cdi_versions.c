/* SPDX-License-Identifier: Apache-2.0 */
/* Which CDI versions each version of an engine reads. */
#include "../unit.h"
#include "base/cleanup.h"
#include "engine/cdi_versions.h"

static void test_readers(void **state)
{
	static const struct {
		const char *engine, *version;
		const char *reads; /* NULL: nothing is known */
		const char *spec;
		bool can;
	} cases[] = {
		{ "podman", "3.4.4+ds1-1ubuntu1", "", "0.5.0", false },         /* Ubuntu 22.04 */
		{ "podman", "4.2.0", "0.4.0", "0.5.0", false },                 /* RHEL 8.7 */
		{ "podman", "4.3.1+ds1-8+deb12u1+b3", "0.5.0", "0.5.0", true }, /* Debian 12 */
		{ "podman", "4.3.1+ds1-8+deb12u1+b3", "0.5.0", "0.6.0", false },
		{ "podman", "4.9.3+ds1-1ubuntu0.2", "0.6.0", "0.6.0", true }, /* Ubuntu 24.04 */
		{ "podman", "4.9.3+ds1-1ubuntu0.2", "0.6.0", "0.7.0", false },
		{ "podman", "5.0.3", "0.6.0", "0.7.0", false },
		{ "podman", "5.4.2+ds1-2", "0.8.0", "0.7.0", true }, /* Debian 13 */
		{ "podman", "6.0", "0.8.0", "1.1.0", true },
		{ "docker", "20.10.24+dfsg1", "", "0.5.0", false },
		{ "docker", "24.0.9", "", "0.5.0", false },
		{ "docker", "25.0.0-rc.1", "0.6.0", "0.7.0", false },
		{ "docker", "26.1.5+dfsg1", "0.7.0", "0.7.0", true }, /* Debian 13 */
		{ "docker", "28.3.3-1~ubuntu", "0.8.0", "1.0.0", true },
		{ "containerd", "1.6.20~ds1", "", "0.3.0", false },
		{ "containerd", "1.7.2", "0.5.0", "0.7.0", false },
		{ "containerd", "1.7.24~ds1", "0.7.0", "0.7.0", true },
		{ "containerd", "2.1.4", "0.8.0", "0.8.0", true },
		{ "cri-o", "1.22.0", "", "0.5.0", false },
		{ "cri-o", "1.30.2", "0.5.0", "0.7.0", false },
		{ "cri-o", "1.31.0", "0.7.0", "0.7.0", true },
		{ "lxd", "5.0", NULL, "", false },
		{ "podman", "", NULL, "", false },
		{ "podman", "v4.3", NULL, "", false },
		{ "podman", NULL, NULL, "", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const struct graft_cdi_reader *reader = graft_cdi_reader_find(cases[i].engine, cases[i].version, NULL);

		if (!cases[i].reads) {
			assert_null(reader);
			continue;
		}
		assert_non_null(reader);
		assert_string_equal(reader->reads, cases[i].reads);
		assert_int_equal(graft_cdi_reader_reads(reader, cases[i].spec), cases[i].can);
	}
	assert_false(graft_cdi_reader_find("docker", "28.1", NULL)->enabled);
	assert_true(graft_cdi_reader_find("docker", "28.2", NULL)->enabled);
	assert_false(graft_cdi_reader_find("containerd", "1.7", NULL)->enabled);
	assert_true(graft_cdi_reader_find("containerd", "2", NULL)->enabled);
}

/* Without a version, by the library in the program. */
static void test_libraries(void **state)
{
	static const struct {
		const char *engine, *library;
		const char *since; /* of the row; NULL: nothing is known */
	} cases[] = {
		{ "podman", "0.4.0", "4.1" },
		{ "podman", "0.5.4", "4.3" },
		{ "podman", "0.6.2", "4.8" },
		{ "podman", "0.7.2", "5.1" },
		{ "podman", "1.0.1", "5.3" },
		{ "podman", "0.3.0", NULL },
		{ "podman", "0.0.0-20240101000000-abcdef", NULL },
		{ "docker", "0.6.2", "25" },
		{ "containerd", "0.6.0", "1.7" },
		{ "containerd", "0.7.2", "1.7.18" },
		{ "containerd", "0.8.0", "2" },
		{ "cri-o", "0.8.0", "1.31" },
		{ "lxd", "0.8.0", NULL },
		{ "podman", "", NULL },
		{ "podman", "v0.8.0", NULL },
		{ "podman", NULL, NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const struct graft_cdi_reader *reader = graft_cdi_reader_find(cases[i].engine, NULL, cases[i].library);

		assert_int_equal(reader != NULL, cases[i].since != NULL);
		if (reader)
			assert_string_equal(reader->since, cases[i].since);
	}
	/* A version says more. */
	assert_string_equal(graft_cdi_reader_find("podman", "4.3.1", "0.8.0")->since, "4.3");
}

static void test_compare(void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} cases[] = {
		{ "0.5.0", "0.5.0", 0 },     { "0.5.0", "0.6.0", -1 }, { "0.10.0", "0.9.0", 1 }, { "1", "1.0.0", 0 },
		{ "1.7.18", "1.7.24", -1 },  { "2", "10", -1 },        { "", "0", 0 },           { "1.x", "1.0", 0 },
		{ "4.3.1+ds1", "4.3.1", 0 }, { "1..5", "1.0.9", -1 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		assert_int_equal(graft_cdi_version_compare(cases[i].a, cases[i].b), cases[i].order);
		assert_int_equal(graft_cdi_version_compare(cases[i].b, cases[i].a), -cases[i].order);
	}
	assert_int_equal(graft_cdi_version_length("4.3.1+ds1-8"), 5);
	assert_int_equal(graft_cdi_version_length("27."), 2);
	assert_int_equal(graft_cdi_version_length(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_compare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
