/* SPDX-License-Identifier: Apache-2.0 */
/* clock: time that only goes forward (CLOCK_MONOTONIC), for deadlines and for the length of phases. Never a date. */
#ifndef GRAFT_BASE_CLOCK_H
#define GRAFT_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds and microseconds since an unstated moment; cannot fail. */
int64_t graft_clock_ms(void);
int64_t graft_clock_us(void);

#endif
