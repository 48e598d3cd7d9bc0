/* SPDX-License-Identifier: Apache-2.0 */
/* SPEC runtime-and-hook 11.3, 11.6, 11.7: the words for nvidia-container-cli, and the environment of another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "cli/hook/command.h"
#include "cli/hook/hook_program.h"

static void defaults(struct graft_config *config, struct graft_arena *arena)
{
	assert_int_equal(graft_config_defaults(&(struct graft_config_host){ .suse = false }, arena, config, NULL), 0);
}

static void expect_words(char *const *words, const char *expected)
{
	char text[4096] = "";

	for (size_t i = 0; words[i]; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? "|" : "", words[i]);
	assert_string_equal(text, expected);
}

static void expect_command(const struct hook_request *request, struct graft_arena *arena, const char *expected)
{
	struct graft_error err = { .status = GRAFT_OK };
	char **argv = NULL;
	int argc = 0, n = 0;

	assert_int_equal(hook_command_make(request, arena, &argv, &argc, &err), 0);
	while (argv[n])
		n++;
	assert_int_equal(argc, n);
	expect_words(argv, expected);
}

/* Every row of the table. */
static void test_everything(void **state)
{
	const char *devices[] = { "0", "GPU-1" }, *channels[] = { "3", "4" }, *requirements[] = { "cuda>=12.4", "" };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_config config;
	const struct graft_container container = {
		.wants_devices = true,
		.devices = { devices, 2 },
		.imex_channels = { channels, 2 },
		.requirements = { requirements, 2 },
		.mig_config = "all",
		.mig_monitor = "0,1",
	};
	const struct hook_request request = {
		.config = &config,
		.container = &container,
		.capabilities = GRAFT_CAP_ALL,
		.program = "/usr/bin/nvidia-container-cli",
		.ldconfig = "@/sbin/ldconfig.real",
		.rootfs = "/bundle/rootfs",
		.pid = 4711,
	};

	assert_non_null(arena);
	defaults(&config, arena);
	config.cli.root = "/run/nvidia/driver";
	config.cli.no_pivot = true;
	config.cli.no_cgroups = true;
	config.cli.debug = "/var/log/x.log";
	config.cli.ldcache = "/etc/ld.so.cache";
	config.cli.user = "root:video";
	config.features.disable_imex_channel_creation = true;
	expect_command(
	    &request, arena,
	    "/usr/bin/nvidia-container-cli|--root=/run/nvidia/driver|--load-kmods|--no-create-imex-channels|"
	    "--no-pivot|--debug=/var/log/x.log|--ldcache=/etc/ld.so.cache|--user=root:video|configure|"
	    "--cuda-compat-mode=ldconfig|--ldconfig=@/sbin/ldconfig.real|--no-cgroups|--device=0,GPU-1|"
	    "--mig-config=all|--mig-monitor=0,1|--imex-channel=3,4|--compat32|--compute|--display|--graphics|"
	    "--ngx|--utility|--video|--require=cuda>=12.4|--require=|--pid=4711|/bundle/rootfs");
	(void)graft_arena_free(arena);
}

static void test_little(void **state)
{
	const char *devices[] = { "none" };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_config config;
	const struct graft_container container = { .wants_devices = true, .devices = { devices, 1 } };
	struct hook_request request = {
		.config = &config,
		.container = &container,
		.capabilities = GRAFT_CAP_UTILITY,
		.program = "cli",
		.ldconfig = "",
		.rootfs = "/r",
		.debug = true,
	};

	assert_non_null(arena);
	defaults(&config, arena);
	config.cli.load_kmods = false;
	config.cli.debug = "/not/used";
	expect_command(&request, arena,
		       "cli|--debug=/dev/stderr|configure|--cuda-compat-mode=ldconfig|--utility|--pid=0|/r");
	/* with the defaults, as most hosts have them */
	config.cli.load_kmods = true;
	config.cli.debug = "";
	request.debug = false;
	request.ldconfig = config.cli.ldconfig;
	request.capabilities = GRAFT_CAP_COMPUTE | GRAFT_CAP_UTILITY;
	devices[0] = "all";
	expect_command(&request, arena,
		       "cli|--load-kmods|configure|--cuda-compat-mode=ldconfig|--ldconfig=@/sbin/ldconfig|--device=all|"
		       "--compute|--utility|--pid=0|/r");
	(void)graft_arena_free(arena);
}

/* SPEC runtime-and-hook 11.6 */
static void test_compat_modes(void **state)
{
	static const struct {
		const char *configured;
		bool allow;
		const char *word; /* with its separator */
	} rows[] = {
		{ "ldconfig", false, "--cuda-compat-mode=ldconfig|" },
		{ "ldconfig", true, "--cuda-compat-mode=ldconfig|" },
		{ "mount", false, "--cuda-compat-mode=mount|" },
		{ "disabled", true, "--cuda-compat-mode=disabled|" },
		{ "hook", true, "--cuda-compat-mode=disabled|" },
		{ "", false, "--cuda-compat-mode=disabled|" },
		{ "bogus", false, "--cuda-compat-mode=disabled|" },
		{ "bogus", true, "" },
		{ "", true, "" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		const struct graft_container container = { .wants_devices = true };
		struct graft_config config;
		const struct hook_request request = {
			.config = &config, .container = &container, .program = "cli", .ldconfig = "", .rootfs = "/r"
		};
		char expected[128];

		assert_non_null(arena);
		defaults(&config, arena);
		config.runtime.cuda_compat_mode = rows[i].configured;
		config.features.allow_cuda_compat_libs_from_container = rows[i].allow;
		(void)snprintf(expected, sizeof(expected), "cli|--load-kmods|configure|%s--pid=0|/r", rows[i].word);
		expect_command(&request, arena, expected);
		(void)graft_arena_free(arena);
	}
}

/* SPEC runtime-and-hook Q17: the configured value replaces the existing one. */
static void test_environment(void **state)
{
	char path[] = "PATH=/bin", home[] = "HOME=/root", odd[] = "ODD";
	char *const environment[] = { path, home, odd, NULL };
	const char *items[] = { "PATH=/opt", "NEW=1", "NEW=2", "PATHS=x" };
	const struct graft_strings changes = { items, GRAFT_COUNT(items) }, none = { .n = 0 };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);

	assert_non_null(arena);
	expect_words(hook_environment_make(environment, &changes, arena), "HOME=/root|ODD|PATH=/opt|NEW=2|PATHS=x");
	expect_words(hook_environment_make(environment, &none, arena), "PATH=/bin|HOME=/root|ODD");
	expect_words(hook_environment_make(environment + 3, &none, arena), "");
	(void)graft_arena_free(arena);
}

/* SPEC runtime-and-hook 11.7 */
static void test_search_path(void **state)
{
#define USUAL "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	static const struct {
		const char *path, *root, *want;
	} rows[] = {
		{ NULL, "", USUAL },
		{ "", "/", USUAL },
		{ "/opt/bin:/usr/bin", "", "/opt/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin" },
		{ "/usr/bin2", "", "/usr/bin2:" USUAL },
		{ USUAL, "/drv/",
		  "/drv/usr/local/sbin:/drv/usr/local/bin:/drv/usr/sbin:/drv/usr/bin:/drv/sbin:/drv/bin:" USUAL },
		{ "::/a:", "", "/a:" USUAL },
	};
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);

	assert_non_null(arena);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		assert_string_equal(hook_search_path(rows[i].path, rows[i].root, arena), rows[i].want);
	(void)graft_arena_free(arena);
}

/* An arena that is full at every point in turn. */
static void test_memory(void **state)
{
	const char *devices[] = { "0", "1" };
	const struct graft_container container = { .wants_devices = true, .devices = { devices, 2 } };
	char path[] = "PATH=/bin";
	char *const environment[] = { path, NULL };
	struct graft_arena *keep = graft_arena_new((size_t)1 << 20);
	struct graft_config config;
	const struct hook_request request = {
		.config = &config, .container = &container, .program = "cli", .ldconfig = "@x", .rootfs = "/r"
	};
	size_t failures = 0;

	assert_non_null(keep);
	defaults(&config, keep);
	for (size_t max = 0;; max += 16) {
		struct graft_arena *arena = graft_arena_new(max);
		struct graft_error err = { .status = GRAFT_OK };
		char **argv = NULL;
		int argc = 0, rc;

		assert_non_null(arena);
		rc = hook_command_make(&request, arena, &argv, &argc, &err);
		if (rc == 0 && !hook_search_path("/bin", "/drv", arena))
			rc = graft_fail_memory(&err);
		if (rc == 0 && !hook_environment_make(environment, &container.devices, arena))
			rc = graft_fail_memory(&err);
		(void)graft_arena_free(arena);
		if (rc == 0)
			break;
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
		failures++;
	}
	assert_true(failures > 20);
	(void)graft_arena_free(keep);
}

static void test_own_program(void **state)
{
	assert_true(hook_program_is_own(""));
	assert_true(hook_program_is_own(NULL));
	assert_false(hook_program_is_own("/bin/sh"));
	assert_false(hook_program_is_own("/nowhere/nvidia-container-cli"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),   cmocka_unit_test(test_little),
		cmocka_unit_test(test_compat_modes), cmocka_unit_test(test_environment),
		cmocka_unit_test(test_search_path),  cmocka_unit_test(test_memory),
		cmocka_unit_test(test_own_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
