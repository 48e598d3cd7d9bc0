/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: time that only moves forward (CLOCK_MONOTONIC), for deadlines and for measuring phases.
 * Never a date.
 */
#ifndef GRAFT_BASE_CLOCK_H
#define GRAFT_BASE_CLOCK_H

#include <stdint.h>

/* Return the milliseconds or microseconds since an unspecified point in time. Cannot fail. */
int64_t graft_clock_ms(void);
int64_t graft_clock_us(void);

#endif
