/* SPDX-License-Identifier: Apache-2.0 */
/* checked_copies: under names of its own, since glibc has functions of these names. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"

/* checked_copies.c under names of the test's own (meson.build). */
void *checked_memcpy(void *to, const void *from, size_t n, size_t size);
void *checked_memmove(void *to, const void *from, size_t n, size_t size);
void *checked_memset(void *to, int byte, size_t n, size_t size);

static void test_copies(void **state)
{
	char bytes[9] = "abcdefgh";

	assert_ptr_equal(checked_memcpy(bytes, "xy", 2, 8), bytes);
	assert_string_equal(bytes, "xycdefgh");
	assert_ptr_equal(checked_memmove(bytes + 1, bytes, 7, 7), bytes + 1);
	assert_string_equal(bytes, "xxycdefg");
	assert_ptr_equal(checked_memset(bytes + 6, 'z', 2, 2), bytes + 6);
	assert_string_equal(bytes, "xxycdezz");
	/* Nothing to do is always right; a size that is not known is the largest. */
	assert_ptr_equal(checked_memset(bytes, 'z', 0, 0), bytes);
	assert_ptr_equal(checked_memcpy(bytes, "a", 1, SIZE_MAX), bytes);
	assert_string_equal(bytes, "axycdezz");
}

static void copy_too_much(void)
{
	char bytes[4];

	(void)checked_memcpy(bytes, "abcd", 4, 3);
}

static void move_too_much(void)
{
	char bytes[4] = "abc";

	(void)checked_memmove(bytes, bytes, 4, 3);
}

static void set_too_much(void)
{
	char bytes[4];

	(void)checked_memset(bytes, 0, SIZE_MAX, 4);
}

static void test_too_much(void **state)
{
	static void (*const calls[])(void) = { copy_too_much, move_too_much, set_too_much };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0) {
			(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
			(void)signal(SIGILL, SIG_DFL);
			(void)signal(SIGTRAP, SIG_DFL);
			calls[i]();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
