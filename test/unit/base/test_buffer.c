/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings up to their maximum: the last byte that fits, the first that does not, and nothing behind it. */
#include <string.h>

#include "../unit.h"
#include "base/buffer.h"

static void test_all_ways_to_append(void **state)
{
	struct graft_buffer buffer = { .max = 0 };
	char *three;

	assert_string_equal(graft_buffer_text(&buffer), "");
	graft_buffer_add(&buffer, NULL, 0);
	assert_string_equal(buffer.bytes, "");
	graft_buffer_string(&buffer, "one");
	graft_buffer_char(&buffer, ' ');
	graft_buffer_printf(&buffer, "%d", 2);
	three = graft_buffer_extend(&buffer, 3);
	assert_non_null(three);
	memcpy(three, " 3!", 3);
	graft_buffer_add(&buffer, "abc", 2);
	assert_string_equal(buffer.bytes, "one 2 3!ab");
	assert_int_equal(buffer.length, strlen("one 2 3!ab"));
	assert_false(graft_buffer_failed(&buffer));
	graft_buffer_done(&buffer);
	assert_null(buffer.bytes);
}

/* By each way, with maxima around the sizes that the memory doubles at. */
static void test_maximum(void **state)
{
	static const size_t maxima[] = { 1, 2, 1022, 1023, 1024, 1025, 2047, 2048, 5000 };

	for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
		for (int way = 0; way < 4; way++) {
			struct graft_buffer buffer = { .max = maxima[i] };

			for (size_t j = 0; j < maxima[i]; j++) {
				assert_false(graft_buffer_failed(&buffer));
				graft_buffer_char(&buffer, 'x');
			}
			assert_false(graft_buffer_failed(&buffer));
			assert_int_equal(buffer.length, maxima[i]);
			assert_int_equal(buffer.bytes[buffer.length], '\0');
			graft_buffer_add(&buffer, "", 0);
			assert_false(graft_buffer_failed(&buffer));
			if (way == 0)
				graft_buffer_char(&buffer, 'y');
			else if (way == 1)
				graft_buffer_add(&buffer, "yy", 2);
			else if (way == 2)
				graft_buffer_printf(&buffer, "%s", "y");
			else
				assert_null(graft_buffer_extend(&buffer, 1));
			assert_true(graft_buffer_failed(&buffer));
			/* Sticky, also for what would fit, and what is there stays. */
			graft_buffer_add(&buffer, "", 0);
			assert_int_equal(buffer.length, maxima[i]);
			assert_int_equal(buffer.bytes[buffer.length], '\0');
			assert_int_equal(buffer.bytes[buffer.length - 1], 'x');
			graft_buffer_done(&buffer);
		}
	}
}

static void test_too_much_at_once(void **state)
{
	struct graft_buffer buffer = { .max = 10 };

	assert_null(graft_buffer_extend(&buffer, SIZE_MAX));
	assert_true(graft_buffer_failed(&buffer));
	assert_string_equal(graft_buffer_text(&buffer), "");
	graft_buffer_done(&buffer);
	assert_false(graft_buffer_failed(&buffer));
	graft_buffer_string(&buffer, "0123456789");
	assert_false(graft_buffer_failed(&buffer));
	graft_buffer_done(&buffer);
}

static void test_visible(void **state)
{
	static const struct {
		const char *text, *visible;
	} rows[] = {
		{ "", "" },
		{ "plain text, 100%s", "plain text, 100%s" },
		{ "a\\b", "a\\\\b" },
		{ "\033]0;x\007\n\t\177", "\\x1b]0;x\\x07\\x0a\\x09\\x7f" },
		{ "Gr\xc3\xbc\xc3\x9f"
		  "e \xe4\xb8\xad \xf0\x9f\x98\x80",
		  "Gr\xc3\xbc\xc3\x9f"
		  "e \xe4\xb8\xad \xf0\x9f\x98\x80" },
		/* Not UTF-8; C1 controls; other directions; separators of lines. */
		{ "\xff\xc3", "\\xff\\xc3" },
		{ "\xc2\x9b"
		  "31m\xc2\xa0",
		  "\\xc2\\x9b31m\xc2\xa0" },
		{ "\xe2\x80\xae\xe2\x80\x8f\xe2\x81\xa6\xe2\x80\xa8",
		  "\\xe2\\x80\\xae\\xe2\\x80\\x8f\\xe2\\x81\\xa6\\xe2\\x80\\xa8" },
		{ "\xe2\x82\xac", "\xe2\x82\xac" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct graft_buffer buffer = { .max = 0 };

		graft_buffer_visible(&buffer, rows[i].text);
		assert_string_equal(graft_buffer_text(&buffer), rows[i].visible);
		graft_buffer_done(&buffer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_ways_to_append),
		cmocka_unit_test(test_maximum),
		cmocka_unit_test(test_visible),
		cmocka_unit_test(test_too_much_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
