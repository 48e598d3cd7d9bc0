/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Man page and completions: well-formed for the programs that read them (scdoc, bash, zsh, fish where they are installed), and complete:
 * every visible option of every command is in them. --help and --usage are compared with argp in test_options.c.
 */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/options.h"

static const char *const modes[] = { "disabled", "mount", NULL };
static const struct graft_option root_options[] = {
	{ "debug", 'd', GRAFT_OPTION_REQUIRED, "FILE", false, "Write a 'debug' log: to [FILE]", NULL, 0, NULL, NULL },
	{ "user", 'u', GRAFT_OPTION_OPTIONAL, "UID[:GID]", false, "Identity", NULL, 0, NULL, NULL },
	{ "secret", 0, GRAFT_OPTION_FLAG, NULL, true, "Not shown", NULL, 0, NULL, NULL },
};
static const struct graft_option configure_options[] = {
	{ "device", 'd', GRAFT_OPTION_REQUIRED, "ID", false, "Device_s *to* give", NULL, 0, NULL, NULL },
	{ "compat-mode", 0, GRAFT_OPTION_REQUIRED, "MODE", false, "How", NULL, 0, NULL, modes },
	{ "json", 0, GRAFT_OPTION_FLAG, NULL, false, "Print JSON", NULL, 0, NULL, NULL },
};
static const struct graft_command configure = {
	.name = "configure",
	.arguments = "ROOTFS",
	.summary = "Configure a container",
	.description = "Gives a container\nits GPUs.\n\nIn full.",
	.options = configure_options,
	.n_options = GRAFT_COUNT(configure_options),
	.max_arguments = 1,
};
static const struct graft_command info = { .name = "info", .arguments = "", .summary = "Don't configure" };
static const struct graft_command *const subcommands[] = { &configure, &info, NULL };
static const struct graft_manual_section sections[] = { { "SEE ALSO", "*other*(1)" } };
static const struct graft_command root = {
	.name = "some-program",
	.arguments = "COMMAND [ARG...]",
	.summary = "Does things",
	.options = root_options,
	.n_options = GRAFT_COUNT(root_options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.subcommands = subcommands,
	.sections = sections,
	.n_sections = 1,
};

extern char **environ;

/* Runs a program with `text` in a file as its last argument or on stdin. 127 = not installed. */
static int run_on(char *const argv[], const char *text, const char *path)
{
	FILE *file = fopen(path, "we");
	pid_t pid = 0;
	int status = 0;

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		return 127;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* `script` is run by sh with the path of the text as $1. */
static int check_with(const char *script, const char *text)
{
	char path[] = "/tmp/graft-options-XXXXXX";
	int fd = mkstemp(path), rc;
	auto_free char *copy = strdup(script);
	char sh[] = "sh", c[] = "-c";
	char *argv[] = { sh, c, copy, sh, path, NULL };

	assert_true(fd >= 0);
	assert_non_null(copy);
	(void)close(fd);
	rc = run_on(argv, text, path);
	(void)unlink(path);
	return rc;
}

static void test_completions_are_complete_and_parse(void **state)
{
	static const struct {
		const char *shell, *check, *device, *mode;
	} shells[] = {
		{ "bash", "bash -n \"$1\"", "--device=", "disabled mount" },
		{ "zsh", "command -v zsh >/dev/null || exit 0; zsh -n \"$1\"", "--device=", "(disabled mount)" },
		{ "fish", "command -v fish >/dev/null || exit 0; fish -n \"$1\"", "-l device ", "-a 'disabled mount'" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(shells); i++) {
		struct graft_buffer text = { .max = 0 };
		struct graft_error err;

		assert_int_equal(graft_options_completion(&root, shells[i].shell, &text, &err), 0);
		assert_int_equal(check_with(shells[i].check, graft_buffer_text(&text)), 0);
		assert_non_null(strstr(graft_buffer_text(&text), shells[i].device));
		assert_non_null(strstr(graft_buffer_text(&text), shells[i].mode));
		assert_non_null(strstr(graft_buffer_text(&text), "json"));
		assert_non_null(strstr(graft_buffer_text(&text), "user"));
		assert_non_null(strstr(graft_buffer_text(&text), "version"));
		assert_null(strstr(graft_buffer_text(&text), "secret"));
		graft_buffer_done(&text);
	}
}

/* What bash offers for a line, with the cursor at its end. */
static void test_bash_completes(void **state)
{
	static const struct {
		const char *line; /* words for COMP_WORDS */
		const char *offers;
	} lines[] = {
		{ "some-program ''", "--debug= --user --help --usage --version configure info " },
		{ "some-program --de", "--debug= " },
		{ "some-program conf", "configure " },
		{ "some-program -u configure --d", "--device= " },
		{ "some-program configure --compat-mode = ''", "disabled mount " },
		{ "some-program configure --compat-mode m", "mount " },
		{ "some-program configure -d ''", "" },
		{ "some-program info --u", "--usage " },
		{ "some-program --debug /etc/host", "/etc/host.conf /etc/hostname /etc/hosts " },
	};
	struct graft_buffer text = { .max = 0 };
	size_t length;

	assert_int_equal(graft_options_completion(&root, "bash", &text, NULL), 0);
	length = text.length;
	for (size_t i = 0; i < GRAFT_COUNT(lines); i++) {
		text.length = length;
		/* compopt works only inside a real completion */
		graft_buffer_printf(
		    &text,
		    "compopt() { :; }\nCOMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
		    "_some_program\nout=$(printf '%%s ' \"${COMPREPLY[@]}\")\n"
		    "[[ ${#COMPREPLY[@]} == 0 ]] && out=''\nwant='%s'\n"
		    "for w in $want; do [[ $w != /* || -e $w ]] && [[ \" $out\" != *\" $w \"* ]] && exit 1; done\n"
		    "[[ $want == /* || $out == \"$want\" ]] || { echo \"# $out\"; exit 1; }\n",
		    lines[i].line, lines[i].offers);
		if (check_with("bash \"$1\"", graft_buffer_text(&text)) != 0)
			fail_msg("%s", lines[i].line);
	}
	graft_buffer_done(&text);
}

/* A program without commands: there is nothing to search among the words. */
static void test_completions_without_commands(void **state)
{
	static const struct {
		const char *shell, *check, *option;
	} shells[] = {
		{ "bash", "bash -n \"$1\"", "words='--level= " },
		{ "zsh", "command -v zsh >/dev/null || exit 0; zsh -n \"$1\"",
		  "'*--level=[How much]:WORD:(low high)'" },
		{ "fish", "command -v fish >/dev/null || exit 0; fish -n \"$1\"",
		  " -l level -x -a 'low high' -d 'How much'" },
	};
	static const char *const levels[] = { "low", "high", NULL };
	const struct graft_option options[] = { { .name = "level",
						  .argument = GRAFT_OPTION_REQUIRED,
						  .parse = graft_option_set_string,
						  .value_name = "WORD",
						  .values = levels,
						  .help = "How much" } };
	const struct graft_command plain = { .name = "plain-program",
					     .options = options,
					     .n_options = 1,
					     .go_style = true,
					     .stop_at_first_argument = true };

	for (size_t i = 0; i < GRAFT_COUNT(shells); i++) {
		struct graft_buffer text = { .max = 0 };

		assert_int_equal(graft_options_completion(&plain, shells[i].shell, &text, NULL), 0);
		assert_int_equal(check_with(shells[i].check, graft_buffer_text(&text)), 0);
		assert_non_null(strstr(graft_buffer_text(&text), shells[i].option));
		graft_buffer_done(&text);
	}
}

static void test_man_page_is_complete_and_renders(void **state)
{
	static const char *const present[] = {
		"some-program(8)",
		"*-d*, *--debug*=_FILE_",
		"*-u*, *--user*[=_UID[:GID]_]",
		"*--compat-mode*=_MODE_",
		"Device\\_s \\*to\\* give.",
		"## configure",
		"# SEE ALSO",
		"# NAME\n\nsome-program - does things\n\n",
		"Configure a container.\n\nGives a container\nits GPUs.\n\nIn full.\n\n",
		"*-\\?*, *--help*",
	};
	struct graft_buffer text = { .max = 0 };

	graft_options_man(&root, 8, &text);
	for (size_t i = 0; i < GRAFT_COUNT(present); i++)
		assert_non_null(strstr(graft_buffer_text(&text), present[i]));
	assert_null(strstr(graft_buffer_text(&text), "secret"));
	assert_int_equal(
	    check_with("command -v scdoc >/dev/null || exit 0; scdoc <\"$1\" >/dev/null", graft_buffer_text(&text)), 0);
	graft_buffer_done(&text);
}

static void test_help_lists_commands_first(void **state)
{
	static const char start[] = "Usage: some-program [OPTION...] COMMAND [ARG...]\nDoes things\n\n Commands:\n"
				    "  configure                  Configure a container\n"
				    "  info                       Don't configure\n\n Options:\n";
	struct graft_buffer text = { .max = 0 };

	graft_options_help(&root, "some-program", &text);
	assert_memory_equal(graft_buffer_text(&text), start, sizeof(start) - 1);
	graft_buffer_done(&text);
}

static void test_unknown_shell(void **state)
{
	struct graft_buffer text = { .max = 0 };
	struct graft_error err;

	assert_int_equal(graft_options_completion(&root, "csh", &text, &err), -1);
	assert_string_equal(err.msg, "no completion for shell 'csh'");
}

/* Commands in commands: groups are shown by what is in them, hidden ones not at all; other names and variables are told. */
static void test_man_page_of_nested_commands(void **state)
{
	static const char *const names[] = { "make", "build", NULL }, *const variables[] = { "A_B", NULL };
	static const struct graft_option options[] = {
		{ .name = "mode", .letter = 'm', .help = "Mode", .aliases = names, .environment = variables },
	};
	const struct graft_command leaf = { .name = "generate",
					    .aliases = names,
					    .arguments = "",
					    .summary = "Generate",
					    .options = options,
					    .n_options = 1,
					    .go_style = true };
	const struct graft_command secret = { .name = "secret", .arguments = "", .summary = "Secret", .hidden = true };
	const struct graft_command *const leaves[] = { &leaf, &secret, NULL };
	const struct graft_command group = {
		.name = "inner", .arguments = "", .summary = "A group", .subcommands = leaves
	};
	const struct graft_command *const groups[] = { &group, NULL };
	const struct graft_command top = { .name = "cdi", .arguments = "", .summary = "Top", .subcommands = groups };
	const struct graft_command *const tops[] = { &top, NULL };
	const struct graft_command program = { .name = "prog", .arguments = "", .summary = "P", .subcommands = tops };
	struct graft_buffer text = { .max = 0 };

	graft_options_man(&program, 1, &text);
	assert_non_null(strstr(graft_buffer_text(&text),
			       "# COMMANDS\n\n## cdi inner generate\n\n*prog* [OPTION...] *cdi inner generate* "
			       "[OPTION...] \n\nGenerate.\n\nAlso called *make*, *build*.\n\n*-m*, *--mode*\n"
			       "\tMode (also --make, --build) [$A\\_B].\n\n"));
	assert_null(strstr(graft_buffer_text(&text), "group"));
	assert_null(strstr(graft_buffer_text(&text), "Secret"));
	assert_null(strstr(graft_buffer_text(&text), "secret"));
	assert_int_equal(
	    check_with("command -v scdoc >/dev/null || exit 0; scdoc <\"$1\" >/dev/null", graft_buffer_text(&text)), 0);
	graft_buffer_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_completions_are_complete_and_parse),
		cmocka_unit_test(test_completions_without_commands),
		cmocka_unit_test(test_bash_completes),
		cmocka_unit_test(test_man_page_is_complete_and_renders),
		cmocka_unit_test(test_man_page_of_nested_commands),
		cmocka_unit_test(test_help_lists_commands_first),
		cmocka_unit_test(test_unknown_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
