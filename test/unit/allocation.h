/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocation: lets the n-th allocation of a test fail. Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup
 * and include this file in exactly one source file of the program:
 *
 *	for (int n = 1;; n++) {
 *		allocation_fail(n);
 *		rc = ...;
 *		if (!allocation_reported(rc, &err))
 *			break;	... fewer than n were needed ...
 *		... nothing must have leaked ...
 *	}
 */
#ifndef GRAFT_TEST_ALLOCATION_H
#define GRAFT_TEST_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *bytes, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *bytes, size_t size);
char *__wrap_strdup(const char *s);

static int allocation_own_countdown;
static int *allocation_countdown = &allocation_own_countdown; /* 0: nothing fails */

static bool allocation_fails(void)
{
	return *allocation_countdown > 0 && --*allocation_countdown == 0;
}

void *__wrap_malloc(size_t size)
{
	return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *bytes, size_t size)
{
	return allocation_fails() ? NULL : __real_realloc(bytes, size);
}

char *__wrap_strdup(const char *s)
{
	return allocation_fails() ? NULL : __real_strdup(s);
}

/* Lets the n-th allocation from here fail. */
static inline void allocation_fail(int n)
{
	*allocation_countdown = n;
}

/* Whether the failure asked for has happened (nothing fails any more in either case). */
static inline bool allocation_failed(void)
{
	bool failed = *allocation_countdown == 0;

	*allocation_countdown = 0;
	return failed;
}

/*
 * allocation_failed(), for a call that must report the failure: rc -1 and GRAFT_NO_MEMORY if it has happened, 0 and no
 * error otherwise.
 */
#define allocation_reported(rc, err)                                                      \
	({                                                                                \
		bool has_failed = allocation_failed();                                    \
                                                                                          \
		assert_int_equal(rc, has_failed ? -1 : 0);                                \
		assert_int_equal((err)->status, has_failed ? GRAFT_NO_MEMORY : GRAFT_OK); \
		has_failed;                                                               \
	})

/*
 * Evaluates `call`, which must report failures as above, with its first allocation failing, then its second, and so on
 * until none does. Each time it finds a new arena and a new error under these names. The value: how often it failed.
 */
#define allocation_each(own_arena, own_err, call)                                          \
	({                                                                                 \
		int n_failures = -1;                                                       \
		bool is_done = false;                                                      \
                                                                                           \
		while (!is_done) {                                                         \
			struct graft_arena *own_arena = graft_arena_new((size_t)64 << 20); \
			struct graft_error own_err = { .status = GRAFT_OK };               \
			int call_rc;                                                       \
                                                                                           \
			assert_non_null(own_arena);                                        \
			allocation_fail(++n_failures + 1);                                 \
			call_rc = (call);                                                  \
			is_done = !allocation_reported(call_rc, &own_err);                 \
			(void)graft_arena_free(own_arena);                                 \
		}                                                                          \
		n_failures;                                                                \
	})

/* Lets children that are forked from here count as well, and fail. False when there is no memory for that. */
static inline bool allocation_share(void)
{
	void *shared = mmap(NULL, sizeof(*allocation_countdown), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			    0);

	if (shared == MAP_FAILED)
		return false;
	allocation_countdown = shared;
	return true;
}

#endif
