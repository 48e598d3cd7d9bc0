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
#include <stdio.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Compares the whole of a text with one that snprintf() makes. */
#define assert_string_printed(text, ...)                                       \
	do {                                                                   \
		char wanted_text[4096];                                        \
		(void)snprintf(wanted_text, sizeof(wanted_text), __VA_ARGS__); \
		assert_string_equal(text, wanted_text);                        \
	} while (0)

#endif
