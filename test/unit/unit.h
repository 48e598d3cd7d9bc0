/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit: cmocka, with the headers that it needs before it. A test need not use its `state`, nor a
 * stand-in every parameter of the function that it replaces.
 */
#ifndef GRAFT_TEST_UNIT_H
#define GRAFT_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#endif
