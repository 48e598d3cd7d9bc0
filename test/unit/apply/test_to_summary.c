/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "apply/to_summary.h"
#include "base/cleanup.h"

static const struct graft_summary_style plain = { .colours = false }, terminal = { .colours = true, .lines = true };

static void check(const struct graft_plan *plan, const struct graft_summary_style *style, const char *expected)
{
	struct graft_buffer text = { 0 };

	graft_plan_to_summary(plan, style, &text);
	assert_string_equal(graft_buffer_text(&text), expected);
	graft_buffer_done(&text);
}

static void test_empty(void **state)
{
	static const struct graft_plan plan = { .version = 1 };

	check(&plan, &plain, "driver of unknown version\n\nThe container gets:\n  nothing\n");
	check(&plan, &terminal, "driver of unknown version\n\n\033[32mThe container gets:\033[0m\n  nothing\n");
}

static struct graft_grant grants[] = { { .index = 0, .minor = 3, .model = "T\x1b[4" } };

static struct graft_edit edits[] = {
	{ .kind = GRAFT_EDIT_TMPFS, .target = "/proc/driver", .rule = "procfs-view" },
	{ .kind = GRAFT_EDIT_BIND, .target = "/usr/lib/libcuda.so.1.2", .rule = "library" },
	{ .kind = GRAFT_EDIT_BIND, .target = "/usr/lib/a.so", .rule = "library" },
	{ .kind = GRAFT_EDIT_BIND, .target = "/usr/lib/b.so", .rule = "library" },
	{ .kind = GRAFT_EDIT_BIND, .target = "/usr/lib/c.so", .rule = "library" },
	{ .kind = GRAFT_EDIT_BIND, .target = "/usr/lib/d.so", .rule = "library" },
	{ .kind = GRAFT_EDIT_BIND, .target = "/usr/lib32/a.so", .rule = "library32" },
	{ .kind = GRAFT_EDIT_BIND, .target = "/etc/x.json", .rule = "extra-file" },
	{ .kind = GRAFT_EDIT_DEVICE, .target = "/dev/nvidia3", .rule = "gpu-node" },
	{ .kind = GRAFT_EDIT_CGROUP, .rule = "gpu-node" },
	{ .kind = GRAFT_EDIT_ENV, .target = "NAME", .rule = "environment" },
	{ .kind = GRAFT_EDIT_LDCACHE, .rule = "loader-cache" },
};
static struct graft_refusal refusals[] = { { "a", "no" }, { "b", "never" }, { "c", "no" },
					   { "d", "no" }, { "e", "no" },    { "f", "no" } };
static struct graft_refusal missing[] = { { "libcuda.so", "not\nthere" }, { "/dev/x", "gone" } };
static const struct graft_plan whole = {
	.driver_version = "1.2",
	.simulated = true,
	.grants = grants,
	.n_grants = 1,
	.edits = edits,
	.n_edits = GRAFT_COUNT(edits),
	.refusals = refusals,
	.n_refusals = GRAFT_COUNT(refusals),
	.missing = missing,
	.n_missing = GRAFT_COUNT(missing),
};

/* What is missing comes first; edits are counted by kind; refusals stand under their reason. */
static void test_plain(void **state)
{
	check(&whole, &plain,
	      "driver 1.2 (SIMULATED)\n"
	      "\n"
	      "Missing:\n"
	      "  libcuda.so: not\\x0athere\n"
	      "  /dev/x: gone\n"
	      "\n"
	      "The container gets:\n"
	      "  GPU 0  minor 3, T\\x1b[4\n"
	      "  1 device node: /dev/nvidia3\n"
	      "  5 libraries: libcuda.so.1.2, a.so, b.so, c.so and 1 more\n"
	      "  1 32-bit library: a.so\n"
	      "  1 other file: /etc/x.json\n"
	      "  1 variable: NAME\n"
	      "  new loader cache\n"
	      "\n"
	      "Left out:\n"
	      "  no: a, c, d, e and 1 more\n"
	      "  never: b\n");
}

static void test_terminal(void **state)
{
	check(&whole, &terminal,
	      "driver 1.2 (SIMULATED)\n"
	      "\n"
	      "\033[31mMissing:\033[0m\n"
	      "├─ libcuda.so: not\\x0athere\n"
	      "└─ /dev/x: gone\n"
	      "\n"
	      "\033[32mThe container gets:\033[0m\n"
	      "├─ GPU 0  minor 3, T\\x1b[4\n"
	      "├─ 1 device node: /dev/nvidia3\n"
	      "├─ 5 libraries: libcuda.so.1.2, a.so, b.so, c.so and 1 more\n"
	      "├─ 1 32-bit library: a.so\n"
	      "├─ 1 other file: /etc/x.json\n"
	      "├─ 1 variable: NAME\n"
	      "└─ new loader cache\n"
	      "\n"
	      "\033[33mLeft out:\033[0m\n"
	      "├─ no: a, c, d, e and 1 more\n"
	      "└─ never: b\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
