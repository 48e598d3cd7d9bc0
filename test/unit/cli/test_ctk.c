/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of nvidia-ctk share: lists, words, variables, levels of the log; each allocation fails once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "cli/ctk/ctk.h"

struct options {
	struct ctk_base base;
	struct ctk_list list;
	const char *text;
	bool flag;
};

static const struct graft_option table[] = {
	{ .name = "list",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "ITEM",
	  .help = "A list",
	  .parse = ctk_option_list,
	  .offset = offsetof(struct options, list),
	  .environment = (const char *const[]){ "GRAFT_TEST_LIST", NULL } },
	{ .name = "text",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "TEXT",
	  .help = "A text",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct options, text) },
	{ .name = "flag", .help = "A flag", .parse = graft_option_set_true, .offset = offsetof(struct options, flag) },
};
static const struct graft_command command = { CTK_COMMAND, .name = "command", .summary = "A command", .options = table,
					      .n_options = GRAFT_COUNT(table) };

static int parse(struct ctk *ctk, struct options *options, const char *words, int *ret_first, int *ret_status)
{
	static char copy[256];
	static char *argv[16];
	int argc = 0;

	(void)snprintf(copy, sizeof(copy), "command %s", words);
	for (char *next = copy; next && argc < 15;) {
		char *word = strsep(&next, " ");

		if (word[0] != '\0' || argc == 0)
			argv[argc++] = word;
	}
	argv[argc] = NULL;
	return ctk_parse(ctk, &command, options, argc, argv, ret_first, ret_status);
}

static void test_lists(void **state)
{
	static const char *const standard[] = { "index", "uuid" };
	static const struct {
		const char *words, *variable; /* NULL = not defined */
		const char *items;            /* each with ';' */
	} rows[] = {
		{ "", NULL, "index;uuid;" },
		{ "--list a", NULL, "a;" },
		{ "--list a --list=b", NULL, "a;b;" },
		{ "--list a,b x --list c", NULL, "a;b;c;" },
		{ "--list=", NULL, "" },
		{ "--list= --list a", NULL, "a;" },
		{ "--list a,,b,", NULL, "a;;b;" },
		{ "", "x,y", "x;y;" },
		{ "", "", "" },
		{ "--list a", "x", "a;" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk ctk = { .arena = graft_arena_new((size_t)1 << 16), .words = "prog command" };
		const char **items = graft_arena_memdup(ctk.arena, standard, sizeof(standard));
		struct options options = { .list = { .items = items, .n = 2 } };
		struct graft_buffer text = { .max = 0 };
		int first, status = -1;

		assert_int_equal(
		    rows[i].variable ? setenv("GRAFT_TEST_LIST", rows[i].variable, 1) : unsetenv("GRAFT_TEST_LIST"), 0);
		assert_int_equal(parse(&ctk, &options, rows[i].words, &first, &status), 0);
		for (size_t j = 0; j < options.list.n; j++)
			graft_buffer_printf(&text, "%s;", options.list.items[j]);
		assert_string_equal(graft_buffer_text(&text), rows[i].items);
		assert_int_equal(options.list.given, rows[i].words[0] != '\0' || rows[i].variable);
		graft_buffer_done(&text);
		graft_arena_free(ctk.arena);
	}
	assert_int_equal(unsetenv("GRAFT_TEST_LIST"), 0);
}

static void test_levels(void **state)
{
	static const struct {
		const char *words;
		enum graft_log_level log;
	} rows[] = {
		{ "", GRAFT_LOG_INFO },
		{ "--debug", GRAFT_LOG_DEBUG },
		{ "x -d y", GRAFT_LOG_DEBUG },
		{ "--quiet", GRAFT_LOG_ERROR },
		{ "--quiet --debug", GRAFT_LOG_ERROR },
		{ "--debug --debug=false", GRAFT_LOG_INFO },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk ctk = { .arena = graft_arena_new((size_t)1 << 16), .words = "prog command" };
		struct options options = { .flag = false };
		int first, status;

		assert_int_equal(parse(&ctk, &options, rows[i].words, &first, &status), 0);
		assert_ptr_equal(options.base.ctk, &ctk);
		assert_int_equal(ctk.log.max, rows[i].log);
		assert_int_equal(ctk.steps.max, rows[i].log);
		graft_arena_free(ctk.arena);
	}
}

/* The program's --config goes to the program; a value keeps its bytes. */
static void test_targets(void **state)
{
	struct ctk ctk = { .arena = graft_arena_new((size_t)1 << 16), .words = "prog command" };
	struct options options = { .flag = false };
	int first, status;

	assert_int_equal(parse(&ctk, &options, "a --text=x=y,z --config f --flag b", &first, &status), 0);
	assert_string_equal(options.text, "x=y,z");
	assert_string_equal(ctk.config, "f");
	assert_true(options.flag);
	assert_int_equal(first, 5);
	graft_arena_free(ctk.arena);
}

/* SPEC ctk-and-cdi 1: the flags that scripts use, their other names, their variables by rank. */
#define GENERATE(name, aliases, variable)                                \
	{                                                                \
		&ctk_cdi_generate, name, aliases, "NVIDIA_CTK_" variable \
	}
static const struct {
	const struct graft_command *command;
	const char *name, *aliases, *variables; /* separated by blanks */
} flags[] = {
	{ &ctk_runtime_configure, "dry-run", "", "" },
	{ &ctk_runtime_configure, "runtime", "", "" },
	{ &ctk_runtime_configure, "config", "", "" },
	{ &ctk_runtime_configure, "drop-in-config", "", "" },
	{ &ctk_runtime_configure, "executable-path", "", "" },
	{ &ctk_runtime_configure, "config-mode", "", "" },
	{ &ctk_runtime_configure, "config-source", "", "" },
	{ &ctk_runtime_configure, "oci-hook-path", "", "" },
	{ &ctk_runtime_configure, "nvidia-runtime-name", "", "" },
	{ &ctk_runtime_configure, "nvidia-runtime-path", "runtime-path", "" },
	{ &ctk_runtime_configure, "nvidia-runtime-hook-path", "", "" },
	{ &ctk_runtime_configure, "nvidia-set-as-default", "set-as-default", "" },
	{ &ctk_runtime_configure, "cdi.enabled", "cdi.enable enable-cdi", "" },
	{ &ctk_cdi_list, "spec-dir", "", "NVIDIA_CTK_CDI_SPEC_DIRS" },
	{ &ctk_cdi_transform_root, "from", "", "" },
	{ &ctk_cdi_transform_root, "to", "", "" },
	{ &ctk_cdi_transform_root, "input", "", "" },
	{ &ctk_cdi_transform_root, "output", "", "" },
	{ &ctk_cdi_transform_root, "relative-to", "", "" },
	{ &ctk_config, "config-file", "config c", "" },
	{ &ctk_config, "set", "", "" },
	{ &ctk_config, "set-list-separator", "", "" },
	{ &ctk_config, "in-place", "i", "" },
	{ &ctk_config, "output", "o", "" },
	GENERATE("config-search-path", "", "CDI_GENERATE_CONFIG_SEARCH_PATHS"),
	GENERATE("output", "", "CDI_OUTPUT_FILE_PATH"),
	GENERATE("format", "", "CDI_GENERATE_OUTPUT_FORMAT"),
	GENERATE("mode", "discovery-mode", "CDI_GENERATE_MODE"),
	GENERATE("dev-root", "", "DEV_ROOT"),
	GENERATE("device-name-strategy", "", "CDI_GENERATE_DEVICE_NAME_STRATEGIES"),
	GENERATE("driver-root", "", "DRIVER_ROOT"),
	GENERATE("library-search-path", "", "CDI_GENERATE_LIBRARY_SEARCH_PATHS"),
	GENERATE("nvidia-cdi-hook-path", "nvidia-ctk-path", "CDI_HOOK_PATH"),
	GENERATE("ldconfig-path", "", "CDI_GENERATE_LDCONFIG_PATH"),
	GENERATE("vendor", "cdi-vendor", "CDI_GENERATE_VENDOR"),
	GENERATE("class", "cdi-class", "CDI_GENERATE_CLASS"),
	GENERATE("csv.file", "", "CDI_GENERATE_CSV_FILES"),
	GENERATE("csv.ignore-pattern", "", "CDI_GENERATE_CSV_IGNORE_PATTERNS"),
	GENERATE("csv.compat-container-root", "", "CDI_GENERATE_CSV_CONTAINER_COMPAT_ROOT"),
	GENERATE("disable-hook", "disable-hooks", "CDI_GENERATE_DISABLED_HOOKS"),
	GENERATE("enable-hook", "enable-hooks", "CDI_GENERATE_ENABLED_HOOKS"),
	GENERATE("feature-flag", "feature-flags", "CDI_GENERATE_FEATURE_FLAGS"),
	GENERATE("no-all-device", "", "CDI_GENERATE_NO_ALL_DEVICE"),
	GENERATE("device-id", "device-ids device devices", "CDI_GENERATE_DEVICE_IDS"),
	{ &ctk_system_create_device_nodes, "root", "driver-root", "ROOT NVIDIA_DRIVER_ROOT DRIVER_ROOT" },
	{ &ctk_system_create_device_nodes, "dev-root", "", "NVIDIA_DEV_ROOT DEV_ROOT" },
	{ &ctk_system_create_device_nodes, "control-devices", "", "" },
	{ &ctk_system_create_device_nodes, "load-kernel-modules", "", "" },
	{ &ctk_system_create_device_nodes, "dry-run", "", "DRY_RUN" },
	{ &ctk_system_create_dev_char_symlinks, "dev-char-path", "", "DEV_CHAR_PATH" },
	{ &ctk_system_create_dev_char_symlinks, "driver-root", "", "NVIDIA_DRIVER_ROOT DRIVER_ROOT" },
	{ &ctk_system_create_dev_char_symlinks, "create-all", "", "CREATE_ALL" },
	{ &ctk_system_create_dev_char_symlinks, "load-kernel-modules", "", "LOAD_KERNEL_MODULES" },
	{ &ctk_system_create_dev_char_symlinks, "create-device-nodes", "", "CREATE_DEVICE_NODES" },
	{ &ctk_system_create_dev_char_symlinks, "dry-run", "", "DRY_RUN" },
};

/* The one option that a command line, or the variables, give to a command. */
static void assert_gives(const struct graft_command *given_command, const char *word, const char *option)
{
	struct ctk ctk = { .arena = graft_arena_new((size_t)1 << 16), .words = "prog command" };
	max_align_t target[1024 / sizeof(max_align_t)] = { 0 };
	char copy[128];
	char *argv[] = { copy, copy + 8, NULL };
	int first, status;

	(void)snprintf(copy, sizeof(copy), "command%c%s", '\0', word);
	assert_int_equal(ctk_parse(&ctk, given_command, target, word[0] ? 2 : 1, argv, &first, &status), 0);
	if (ctk.n_given != 1 || strcmp(ctk.given[0], option) != 0)
		fail_msg("%s %s gives %s, not %s", given_command->name, word,
			 ctk.n_given > 0 ? ctk.given[0] : "nothing", option);
	graft_arena_free(ctk.arena);
}

/* The first name of a list, in `name`; the rest. */
static const char *next_name(const char *names, char *name, size_t size)
{
	size_t length = strcspn(names, " ");

	(void)snprintf(name, size, "%.*s", (int)length, names);
	return names + length + strspn(names + length, " ");
}

static void test_flags(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(flags); i++) {
		char option[64], word[128], name[64], earlier[64] = "";
		const char *rest = flags[i].aliases;

		(void)snprintf(option, sizeof(option), "--%s=true", flags[i].name);
		assert_gives(flags[i].command, option, option);
		while (rest[0] != '\0') {
			rest = next_name(rest, name, sizeof(name));
			(void)snprintf(word, sizeof(word), "-%s=true", name);
			assert_gives(flags[i].command, word, option);
		}
		for (rest = flags[i].variables; rest[0] != '\0';) {
			rest = next_name(rest, name, sizeof(name));
			if (earlier[0] != '\0') {
				assert_int_equal(setenv(name, "other", 1), 0);
				assert_gives(flags[i].command, "", option);
				assert_int_equal(unsetenv(earlier), 0);
			}
			assert_int_equal(setenv(name, "true", 1), 0);
			assert_gives(flags[i].command, "", option);
			(void)snprintf(earlier, sizeof(earlier), "%s", name);
		}
		if (earlier[0] != '\0')
			assert_int_equal(unsetenv(earlier), 0);
	}
}

static void test_allocations(void **state)
{
	bool failed = true;

	for (size_t max = 0; failed; max += 16) {
		struct ctk ctk = { .arena = graft_arena_new(max), .words = "prog command" };
		struct options options = { .flag = false };
		int first, status = -1;

		failed = parse(&ctk, &options, "--list a,b,c --list dddddddddddddddddddddddddddddd", &first, &status) <
			 0;
		assert_int_equal(status, failed ? 1 : -1);
		if (!failed)
			assert_int_equal(options.list.n, 4);
		graft_arena_free(ctk.arena);
	}
	/* Help that cannot be made is no success. */
	for (int n = 1; n < 4; n++) {
		struct ctk ctk = { .words = "prog command" };
		struct options options = { .flag = false };
		int first, status = -1;

		allocation_fail(n);
		assert_int_equal(parse(&ctk, &options, "--help", &first, &status), -1);
		assert_true(allocation_failed());
		assert_int_equal(status, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists), cmocka_unit_test(test_levels),      cmocka_unit_test(test_targets),
		cmocka_unit_test(test_flags), cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
