/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "plan/planner.h"

/* SPEC runtime-and-hook 7.7 */
static void test_disabled_hooks(void **state)
{
	static const struct {
		const char *words[3];
		uint32_t hooks;
		bool fails;
	} rows[] = {
		{ { NULL }, 0, false },
		{ { "create-symlinks" }, GRAFT_HOOK_SYMLINKS, false },
		{ { "update-ldcache", "enable-cuda-compat" }, GRAFT_HOOK_LDCACHE | GRAFT_HOOK_COMPAT, false },
		{ { "disable-device-node-modification", "update-application-profile" },
		  GRAFT_HOOK_PARAMS | GRAFT_HOOK_PROFILE,
		  false },
		{ { "chmod" }, 0, false },
		{ { "all" }, GRAFT_HOOK_ALL, false },
		{ { "create-symlinks", "nonsense", "all" }, GRAFT_HOOK_SYMLINKS, true },
		{ { "" }, 0, true },
		{ { "ALL" }, 0, true },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		uint32_t hooks = 0;
		int result = 0;

		for (size_t j = 0; j < GRAFT_COUNT(rows[i].words) && rows[i].words[j] && result == 0; j++)
			result = graft_policy_disable_hook(&hooks, rows[i].words[j], &err);
		assert_int_equal(result, rows[i].fails ? -1 : 0);
		assert_int_equal(hooks, rows[i].hooks);
		if (!rows[i].fails)
			continue;
		assert_int_equal(err.status, GRAFT_INVALID);
		/* every word that is allowed is in the message */
		for (unsigned int j = 0; j < GRAFT_HOOK_BITS; j++)
			assert_non_null(strstr(err.msg, graft_hook_names[j]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_disabled_hooks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
