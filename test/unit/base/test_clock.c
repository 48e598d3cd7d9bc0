/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "../unit.h"
#include "base/clock.h"

static void test_units_and_direction(void **state)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	int64_t us = graft_clock_us(), ms = graft_clock_ms();

	assert_in_range(ms - us / 1000, 0, 1000);
	assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL), 0);
	assert_true(graft_clock_us() - us >= 20000);
	assert_true(graft_clock_ms() - ms >= 19);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_units_and_direction) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
