/* SPDX-License-Identifier: Apache-2.0 */
/* Names of CDI: the rows of SPEC ctk-and-cdi 5.2, 6.11, SPEC runtime-and-hook Q23. */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "formats/cdi/cdi.h"

static const struct {
	const char *text, *vendor, *class_, *device;
} good[] = {
	{ "a/b=c", "a", "b", "c" }, /* SPEC runtime-and-hook Q23: one letter is a vendor and a class */
	{ "vendor.com/class=0", "vendor.com", "class", "0" },
	{ "vendor1.com/class.subclass=dev1", "vendor1.com", "class.subclass", "dev1" },
	{ "yet_another-vendor2.com/c-lass_2=dev_1:2.3", "yet_another-vendor2.com", "c-lass_2", "dev_1:2.3" },
	{ "nvidia.com/gpu=GPU-8a56a4bc-e184-a047-2620-be19fdf913d5", "nvidia.com", "gpu",
	  "GPU-8a56a4bc-e184-a047-2620-be19fdf913d5" },
	{ "nvidia.com/gpu=0:1", "nvidia.com", "gpu", "0:1" },
	{ "runtime.nvidia.com/gpu=all", "runtime.nvidia.com", "gpu", "all" },
	{ "A9/B9=9", "A9", "B9", "9" },
};

static const struct {
	const char *text, *message;
} bad[] = {
	{ "", "unqualified device \"\", missing vendor" },
	{ "0", "unqualified device \"0\", missing vendor" },
	{ "/dev/nvidia0=1", "unqualified device \"/dev/nvidia0=1\", missing vendor" },
	{ "vendor.com/class", "unqualified device \"vendor.com/class\", missing vendor" },
	{ "vendor.com=dev", "unqualified device \"vendor.com=dev\", missing vendor" },
	{ "/class=dev", "unqualified device \"/class=dev\", missing vendor" },
	{ "=dev", "unqualified device \"=dev\", missing vendor" },
	{ "v/=dev", "unqualified device \"v/=dev\", missing class" },
	{ "v/c=", "unqualified device \"v/c=\", missing device name" },
	{ "_invalid.com/class=dev",
	  "invalid device \"_invalid.com/class=dev\": invalid vendor. \"_invalid.com\", should "
	  "start with letter" },
	{ "1a/b=c", "invalid device \"1a/b=c\": invalid vendor. \"1a\", should start with letter" },
	{ "invalid2.com-/class=dev",
	  "invalid device \"invalid2.com-/class=dev\": invalid vendor. \"invalid2.com-\", should "
	  "end with a letter or digit" },
	{ "x/_class=dev", "invalid device \"x/_class=dev\": invalid class. \"_class\", should start with letter" },
	{ "x/class_=dev",
	  "invalid device \"x/class_=dev\": invalid class. \"class_\", should end with a letter or digit" },
	{ "x/cl:ass=dev", "invalid device \"x/cl:ass=dev\": invalid class. invalid character ':' in name \"cl:ass\"" },
	{ "x/class=-dev",
	  "invalid device \"x/class=-dev\": invalid class \"-dev\", should start with a letter or digit" },
	{ "x/class=dev:", "invalid device \"x/class=dev:\": \"dev:\", should end with a letter or digit" },
	{ "x/class=d+v", "invalid device \"x/class=d+v\": invalid character '+' in name \"d+v\"" },
	{ "x/class=d\nv", "invalid device \"x/class=d\\x0av\": invalid character '\\x0a' in name \"d\\x0av\"" },
	{ "x/class=a=b", "invalid device \"x/class=a=b\": invalid character '=' in name \"a=b\"" },
	{ "x/a/b=c", "invalid device \"x/a/b=c\": invalid class. invalid character '/' in name \"a/b\"" },
	{ "*.com/*dev=*gpu*",
	  "invalid device \"*.com/*dev=*gpu*\": invalid vendor. \"*.com\", should start with letter" },
	{ "n\303\244me/c=d", "invalid device \"n\\xc3\\xa4me/c=d\": invalid vendor. invalid character '\\xc3' in name "
			     "\"n\\xc3\\xa4me\"" },
	/* a MIG device's old UUID has slashes, which no device name may have */
	{ "nvidia.com/gpu=MIG-GPU-1/3/0",
	  "invalid device \"nvidia.com/gpu=MIG-GPU-1/3/0\": invalid character '/' in name "
	  "\"MIG-GPU-1/3/0\"" },
};

static void test_good(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(good); i++) {
		struct graft_arena *arena = graft_arena_new(4096);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_name name = { NULL, NULL, NULL };

		print_message("# %s\n", good[i].text);
		assert_int_equal(graft_cdi_parse_name(good[i].text, arena, &name, &err), 0);
		assert_string_equal(name.vendor, good[i].vendor);
		assert_string_equal(name.class_, good[i].class_);
		assert_string_equal(name.device, good[i].device);
		assert_true(graft_cdi_is_qualified(good[i].text));
		graft_arena_free(arena);
	}
}

static void test_bad(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(bad); i++) {
		struct graft_arena *arena = graft_arena_new(4096);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_name name;

		print_message("# row %zu\n", i);
		assert_int_equal(graft_cdi_parse_name(bad[i].text, arena, &name, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_string_equal(err.msg, bad[i].message);
		assert_false(graft_cdi_is_qualified(bad[i].text));
		graft_arena_free(arena);
	}
}

/* The message about a name of a million characters is one line. */
static void test_long(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_name name;
	char text[4096];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(graft_cdi_parse_name(text, NULL, &name, &err), -1);
	assert_string_printed(err.msg, "unqualified device \"%.*s...\", missing vendor", 151, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
