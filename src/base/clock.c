/* SPDX-License-Identifier: Apache-2.0 */
/* clock: clock_gettime(2) as a single number. */
#include "base/clock.h"

#include <time.h>

int64_t graft_clock_us(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t graft_clock_ms(void)
{
	return graft_clock_us() / 1000;
}
