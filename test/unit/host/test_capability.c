/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "host/capability.h"

static void test_names_are_unique_words(void **state)
{
	for (unsigned int i = 0; i < GRAFT_CAP_BITS; i++) {
		assert_non_null(graft_capability_names[i]);
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(graft_capability_names[i], graft_capability_names[j]);
	}
	for (unsigned int i = 0; i < GRAFT_CLASS_MAX; i++) {
		assert_non_null(graft_class_names[i]);
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(graft_class_names[i], graft_class_names[j]);
	}
	assert_string_equal(graft_capability_names[GRAFT_CAP_BIT_COMPAT32], "compat32");
	assert_string_equal(graft_class_names[GRAFT_CLASS_NO_GLVND], "graphics-no-glvnd");
}

/* SPEC libnvidia-container 6.3: which container flags enable which lists. */
static void test_classes_come_with_capabilities(void **state)
{
	static const struct {
		enum graft_class class_;
		unsigned int capability;
		int wanted;
	} rows[] = {
		{ GRAFT_CLASS_UTILITY, GRAFT_CAP_UTILITY, 1 },   { GRAFT_CLASS_UTILITY, GRAFT_CAP_COMPUTE, 0 },
		{ GRAFT_CLASS_COMPUTE, GRAFT_CAP_COMPUTE, 1 },   { GRAFT_CLASS_COMPUTE, GRAFT_CAP_VIDEO, 1 },
		{ GRAFT_CLASS_COMPUTE, GRAFT_CAP_UTILITY, 0 },   { GRAFT_CLASS_VIDEO, GRAFT_CAP_VIDEO, 1 },
		{ GRAFT_CLASS_VIDEO, GRAFT_CAP_COMPUTE, 0 },     { GRAFT_CLASS_GRAPHICS, GRAFT_CAP_DISPLAY, 1 },
		{ GRAFT_CLASS_GLVND, GRAFT_CAP_GRAPHICS, 1 },    { GRAFT_CLASS_NO_GLVND, GRAFT_CAP_GRAPHICS, 1 },
		{ GRAFT_CLASS_GRAPHICS, GRAFT_CAP_COMPAT32, 0 }, { GRAFT_CLASS_NGX, GRAFT_CAP_NGX, 1 },
		{ GRAFT_CLASS_WSL, GRAFT_CAP_NGX, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal((graft_class_capabilities(rows[i].class_) & rows[i].capability) != 0, rows[i].wanted);
	assert_int_equal(graft_class_capabilities(GRAFT_CLASS_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_unique_words),
		cmocka_unit_test(test_classes_come_with_capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
