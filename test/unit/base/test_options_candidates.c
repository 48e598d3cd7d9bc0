/* SPDX-License-Identifier: Apache-2.0 */
/* What could come next on a command line: rows of words and candidates. */
#include <string.h>

#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/options.h"

#define MAX_WORDS 16
#define NAMES(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

static const struct graft_option root_options[] = {
	{ .name = "debug", .letter = 'd', .help = "Debug" },
	{ .name = "config", .argument = GRAFT_OPTION_REQUIRED, .value_name = "FILE", .help = "File" },
	{ .name = "secret", .help = "Not shown", .hidden = true },
};
static const struct graft_option options[] = {
	{ .name = "mode",
	  .letter = 'm',
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "MODE",
	  .help = "Mode",
	  .values = NAMES("auto", "csv"),
	  .aliases = NAMES("discovery-mode") },
	{ .name = "output", .argument = GRAFT_OPTION_REQUIRED, .value_name = "FILE", .help = "Output" },
};
static const struct graft_command generate = {
	.name = "generate",
	.aliases = NAMES("make"),
	.arguments = "",
	.summary = "Generate",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.go_style = true,
};
static const struct graft_command hidden = {
	.name = "hidden", .arguments = "", .summary = "Hidden", .hidden = true, .go_style = true
};
static const struct graft_command *const group_commands[] = { &generate, &hidden, NULL };
static const struct graft_command group = {
	.name = "cdi", .arguments = "", .summary = "CDI", .go_style = true, .subcommands = group_commands
};
static const struct graft_command *const root_commands[] = { &group, &hidden, NULL };
static const struct graft_command root = {
	.name = "prog",
	.arguments = "COMMAND",
	.summary = "Program",
	.options = root_options,
	.n_options = GRAFT_COUNT(root_options),
	.stop_at_first_argument = true,
	.go_style = true,
	.subcommands = root_commands,
};

static const struct {
	const char *words, *candidates;
} rows[] = {
	{ "", "cdi " },
	{ "cdi", "generate " },
	{ "cdi generate", "" },
	{ "nobody knows", "cdi " },
	{ "cdi nobody", "generate " },
	/* options: the command's, then the program's */
	{ "-", "--config --debug --help --version " },
	{ "--", "--config --debug --help --version " },
	{ "--de", "--debug " },
	{ "-de", "--debug " },
	{ "--secret", "" },
	{ "cdi -", "--help --config --debug " },
	{ "cdi make --", "--mode --output --help --config --debug " },
	{ "cdi generate --out", "--output " },
	{ "--x", "" },
	/* a command behind options and their values */
	{ "-d cdi", "generate " },
	{ "--config cdi", "cdi " },
	{ "--config x cdi", "generate " },
	{ "--config=x cdi", "generate " },
	{ "cdi --config generate --mo", "" },
	{ "cdi generate --config x --mo", "--mode " },
	/* values; the option itself stays one, as long as nothing is behind it */
	{ "cdi generate --mode", "auto csv --mode " },
	{ "cdi generate -m", "auto csv --mode " },
	{ "cdi generate --discovery-mode", "auto csv " },
	{ "cdi generate --mode=", "--mode=auto --mode=csv " },
	{ "cdi generate --mode=c", "--mode=auto --mode=csv " },
	{ "cdi generate --mode csv", "" },
	{ "cdi generate --output", "--output " },
	{ "cdi generate --output -x --mode", "auto csv --mode " },
	{ "cdi generate --output=", "" },
	{ "cdi generate --unknown=", "" },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_free char *copy = strdup(rows[i].words), *rest = NULL;
		char *argv[MAX_WORDS] = { (char *)(uintptr_t) "prog" };
		struct graft_buffer out = { .max = 0 };
		int argc = 1;

		assert_non_null(copy);
		for (char *next = copy; copy[0] != '\0' && next && argc < MAX_WORDS;)
			argv[argc++] = strsep(&next, " ");
		graft_options_candidates(&root, argc, argv, &out);
		rest = strdup(graft_buffer_text(&out));
		assert_non_null(rest);
		for (char *newline = strchr(rest, '\n'); newline; newline = strchr(newline, '\n'))
			*newline = ' ';
		if (strcmp(rest, rows[i].candidates) != 0)
			print_message("# '%s'\n", rows[i].words);
		assert_string_equal(rest, rows[i].candidates);
		graft_buffer_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
