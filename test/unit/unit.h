/* SPDX-License-Identifier: Apache-2.0 */
/* unit: cmocka, with the headers that it needs before it. */
#ifndef GRAFT_TEST_UNIT_H
#define GRAFT_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
