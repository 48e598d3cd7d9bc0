/* SPDX-License-Identifier: Apache-2.0 */
/* The name that was meant: what counts as near, and what gets no suggestion. */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/nearest.h"

static void test_distance(void **state)
{
	static const struct {
		const char *word, *name;
		unsigned int distance;
	} rows[] = {
		{ "docker", "docker", 0 },
		{ "Docker", "docker", 0 },
		{ "no_cgroups", "no-cgroups", 0 },
		{ "nocgroups", "no-cgroups", 0 },
		{ "log level", "log-level", 0 },
		{ "dockxr", "docker", 1 },
		{ "dcker", "docker", 1 },
		{ "dockerr", "docker", 1 },
		{ "dockar", "docker", 1 },
		{ "podmna", "podman", 1 },
		{ "contaienrdd", "containerd", 2 },
		{ "cdi", "csv", GRAFT_NEAREST_FAR },
		{ "cfi", "cdi", 1 },
		{ "x", "a", GRAFT_NEAREST_FAR },
		{ "", "docker", GRAFT_NEAREST_FAR },
		{ "---", "docker", GRAFT_NEAREST_FAR },
		{ "docker", "", GRAFT_NEAREST_FAR },
		{ "elephant", "docker", GRAFT_NEAREST_FAR },
		/* The beginning of a name is near, but less so than a wrong letter. */
		{ "gen", "generate", GRAFT_NEAREST_FAR - 1 },
		{ "ge", "generate", GRAFT_NEAREST_FAR },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		unsigned int distance = graft_nearest_distance(rows[i].word, rows[i].name);

		if (distance != rows[i].distance)
			fail_msg("%s, %s: %u", rows[i].word, rows[i].name, distance);
	}
}

static void test_long_words(void **state)
{
	char word[GRAFT_NEAREST_MAX + 2];

	memset(word, 'a', sizeof(word));
	word[GRAFT_NEAREST_MAX] = '\0';
	assert_int_equal(graft_nearest_distance(word, word), 0);
	word[GRAFT_NEAREST_MAX] = 'a';
	word[GRAFT_NEAREST_MAX + 1] = '\0';
	assert_int_equal(graft_nearest_distance(word, word), GRAFT_NEAREST_FAR);
	assert_int_equal(graft_nearest_distance("a", word), GRAFT_NEAREST_FAR);
}

static void test_nearest(void **state)
{
	static const char *const names[] = { "generate", "list", "refresh", "transform", "validate" };

	assert_string_equal(graft_nearest(names, GRAFT_COUNT(names), "genexate"), "generate");
	assert_string_equal(graft_nearest(names, GRAFT_COUNT(names), "lixt"), "list");
	assert_string_equal(graft_nearest(names, GRAFT_COUNT(names), "valid"), "validate");
	assert_null(graft_nearest(names, GRAFT_COUNT(names), "remove"));
	assert_null(graft_nearest(names, 0, "list"));
}

static void test_hint(void **state)
{
	static const char *const names[] = { "auto", "jit-cdi" };
	struct graft_arena *arena = graft_arena_new(4096);

	assert_non_null(arena);
	assert_string_equal(graft_nearest_hint(names, GRAFT_COUNT(names), "jitcdi", arena),
			    " (did you mean 'jit-cdi'?)");
	assert_string_equal(graft_nearest_hint(names, GRAFT_COUNT(names), "xyz", arena), "");
	graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_long_words),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_hint),
	};

	return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
