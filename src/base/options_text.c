/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_text: the texts generated from a table of options: --help, --usage and error messages
 * (byte for byte in argp's layout; the unit test compares them with argp's output), and the man
 * page in scdoc's format. Reads tables, writes text, does nothing else.
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/options_table.h"

/* argp's columns. */
enum {
	COLUMN_LETTER = 2,
	COLUMN_NAME = 6,
	COLUMN_HELP = 29,
	COLUMN_USAGE = 12,
	COLUMN_END = 79,
};

/* ---- lines of limited width ---- */

static size_t column_of(const struct graft_buffer *out)
{
	const char *text = graft_buffer_text(out);
	const char *line = out->length > 0 ? memrchr(text, '\n', out->length) : NULL;

	return line ? out->length - (size_t)(line + 1 - text) : out->length;
}

static void indent_to(struct graft_buffer *out, size_t column)
{
	while (column_of(out) < column && !graft_buffer_failed(out))
		graft_buffer_char(out, ' ');
}

/*
 * Makes room for a word of `length`, which is not split: on this line if it ends before `end`.
 * `space`: it is not the first word of its text.
 */
static void start_word(struct graft_buffer *out, size_t length, size_t indent, size_t end, bool space)
{
	if (space && column_of(out) + 1 + length > end) {
		graft_buffer_char(out, '\n');
		indent_to(out, indent);
	} else if (space) {
		graft_buffer_char(out, ' ');
	}
}

static void add_help_word(struct graft_buffer *out, const char *word, size_t length, size_t indent, bool space)
{
	start_word(out, length, indent, COLUMN_END, space);
	graft_buffer_add(out, word, length);
}

/* Appends running text, keeping its line breaks. */
static void add_running_text(struct graft_buffer *out, const char *text, size_t indent)
{
	bool space = false;

	while (*text != '\0') {
		size_t length = strcspn(text, " \n");

		if (length > 0) {
			add_help_word(out, text, length, indent, space);
			space = true;
		}
		text += length;
		if (*text == '\n') {
			graft_buffer_char(out, '\n');
			space = false;
		}
		if (*text != '\0')
			text++;
	}
}

/* ---- --help, --usage ---- */

static void add_synopsis(const struct graft_command *command, const char *program, struct graft_buffer *out)
{
	graft_buffer_printf(out, "Usage: %s [OPTION...]%s", program, command->arguments[0] != '\0' ? " " : "");
	add_running_text(out, command->arguments, COLUMN_USAGE);
	graft_buffer_char(out, '\n');
}

static void add_help_text(struct graft_buffer *out, const char *text)
{
	size_t column = column_of(out);

	if (column > COLUMN_HELP + 3)
		graft_buffer_char(out, '\n');
	else if (column >= COLUMN_HELP)
		graft_buffer_string(out, "   ");
	indent_to(out, COLUMN_HELP);
	add_running_text(out, text, COLUMN_HELP);
	graft_buffer_char(out, '\n');
}

static void add_value_name(struct graft_buffer *out, const struct graft_option *option)
{
	if (option->argument == GRAFT_OPTION_REQUIRED)
		graft_buffer_printf(out, "=%s", option->value_name);
	else if (option->argument == GRAFT_OPTION_OPTIONAL)
		graft_buffer_printf(out, "[=%s]", option->value_name);
}

/* Whether the help of an option has its values already. */
static bool names_values(const struct graft_option *option)
{
	for (size_t i = 0; option->values[i]; i++) {
		if (!strstr(option->help, option->values[i]))
			return false;
	}
	return true;
}

/* The help of an option, its values, its other names and its variables. */
static void add_whole_help(struct graft_buffer *text, const struct graft_option *option)
{
	graft_buffer_string(text, option->help);
	for (size_t i = 0; option->values && !names_values(option) && option->values[i]; i++)
		graft_buffer_printf(text, "%s%s", i == 0 ? ": " : ", ", option->values[i]);
	for (size_t i = 0; option->aliases && option->aliases[i]; i++)
		graft_buffer_printf(text, "%s%s%s", i == 0 ? " (also " : ", ",
				    option->aliases[i][1] != '\0' ? "--" : "-", option->aliases[i]);
	if (option->aliases && option->aliases[0])
		graft_buffer_char(text, ')');
	for (size_t i = 0; option->environment && option->environment[i]; i++)
		graft_buffer_printf(text, "%s$%s", i == 0 ? " [" : ", ", option->environment[i]);
	if (option->environment && option->environment[0])
		graft_buffer_char(text, ']');
}

static void add_option_line(struct graft_buffer *out, const struct graft_option *option, const char *help)
{
	indent_to(out, COLUMN_LETTER);
	if (option->letter != 0)
		graft_buffer_printf(out, "-%c, ", option->letter);
	indent_to(out, COLUMN_NAME);
	graft_buffer_printf(out, "--%s", option->name);
	add_value_name(out, option);
	add_help_text(out, help);
}

static void add_option_help(struct graft_buffer *out, const struct graft_option *option)
{
	struct graft_buffer help = { .max = 0 };

	add_whole_help(&help, option);
	out->failed = out->failed || graft_buffer_failed(&help);
	add_option_line(out, option, graft_buffer_text(&help));
	graft_buffer_done(&help);
}

static bool has_letter_with_value(const struct graft_command *command)
{
	for (size_t i = 0; i < command->n_options; i++) {
		const struct graft_option *option = &command->options[i];

		if (!option->hidden && option->letter != 0 && option->argument != GRAFT_OPTION_FLAG)
			return true;
	}
	return false;
}

void graft_options_help(const struct graft_command *command, const char *program, struct graft_buffer *out)
{
	bool own_options = !graft_option_is_builtin(graft_options_next(command, NULL)), builtin = false;

	add_synopsis(command, program, out);
	add_running_text(out, command->summary, 0);
	graft_buffer_string(out, "\n\n");
	if (command->subcommands)
		graft_buffer_string(out, " Commands:\n");
	for (size_t i = 0; command->subcommands && command->subcommands[i]; i++) {
		if (command->subcommands[i]->hidden)
			continue;
		indent_to(out, COLUMN_LETTER);
		graft_buffer_string(out, command->subcommands[i]->name);
		add_help_text(out, command->subcommands[i]->summary);
	}
	if (own_options)
		graft_buffer_printf(out, "%s Options:\n", command->subcommands ? "\n" : "");
	GRAFT_FOR_EACH_OPTION(option, command)
	{
		if (!builtin && graft_option_is_builtin(option) && (own_options || command->subcommands))
			graft_buffer_char(out, '\n');
		builtin = builtin || graft_option_is_builtin(option);
		add_option_help(out, option);
	}
	if (has_letter_with_value(command))
		graft_buffer_string(out, "\nMandatory or optional arguments to long options are also mandatory or "
					 "optional\nfor any corresponding short options.\n");
}

/* " [-d FILE]", " [-u[UID]]": not split; argp wraps a column earlier if the value is required. */
static void add_letter_usage(struct graft_buffer *out, const struct graft_option *option)
{
	bool required = option->argument == GRAFT_OPTION_REQUIRED;
	size_t length = strlen(option->value_name) + (required ? strlen("[-d ]") : strlen("[-d[]]"));

	start_word(out, length, COLUMN_USAGE, required ? COLUMN_END - 1 : COLUMN_END, true);
	graft_buffer_printf(out, required ? "[-%c %s]" : "[-%c[%s]]", option->letter, option->value_name);
}

static void add_name_usage(struct graft_buffer *out, const struct graft_option *option)
{
	static const size_t marks[] = { 0, sizeof("=") - 1, sizeof("[=]") - 1 }; /* by enum graft_option_argument */
	size_t value = option->value_name ? strlen(option->value_name) : 0;

	start_word(out, strlen("[--]") + strlen(option->name) + value + marks[option->argument], COLUMN_USAGE,
		   COLUMN_END, true);
	graft_buffer_printf(out, "[--%s", option->name);
	add_value_name(out, option);
	graft_buffer_char(out, ']');
}

void graft_options_usage(const struct graft_command *command, const char *program, struct graft_buffer *out)
{
	graft_buffer_printf(out, "Usage: %s [-", program);
	GRAFT_FOR_EACH_OPTION(option, command)
	{
		if (option->letter != 0 && option->argument == GRAFT_OPTION_FLAG)
			graft_buffer_char(out, (char)option->letter);
	}
	graft_buffer_char(out, ']');
	GRAFT_FOR_EACH_OPTION(option, command)
	{
		if (option->letter != 0 && option->argument != GRAFT_OPTION_FLAG)
			add_letter_usage(out, option);
	}
	GRAFT_FOR_EACH_OPTION(option, command)
	add_name_usage(out, option);
	for (const char *word = command->arguments; *word != '\0';) {
		size_t length = strcspn(word, " ");

		add_help_word(out, word, length, COLUMN_USAGE, true);
		word += length + strspn(word + length, " ");
	}
	graft_buffer_char(out, '\n');
}

void graft_options_complain(const struct graft_command *command, const char *program, enum graft_parse_result result,
			    const struct graft_error *err, struct graft_buffer *out)
{
	const char *meant = graft_options_meant_option(command, NULL, err);

	if (result == GRAFT_PARSE_MISSING)
		add_synopsis(command, program, out);
	else
		graft_buffer_printf(out, "%s: %s\n", program, err->msg);
	if (meant)
		graft_buffer_printf(out, "Did you mean '--%s'?\n", meant);
	graft_buffer_printf(out, "Try `%s --help' or `%s --usage' for more information.\n", program, program);
}

/* ---- man page ---- */

void graft_manual_escape(struct graft_buffer *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (strchr("\\*_#+`", *text))
			graft_buffer_char(out, '\\');
		graft_buffer_char(out, *text);
	}
}

static void add_man_help(struct graft_buffer *out, const struct graft_option *option)
{
	struct graft_buffer help = { .max = 0 };

	add_whole_help(&help, option);
	out->failed = out->failed || graft_buffer_failed(&help);
	graft_manual_escape(out, graft_buffer_text(&help));
	graft_buffer_done(&help);
}

static void add_man_option(struct graft_buffer *out, const struct graft_option *option)
{
	if (option->letter != 0)
		graft_buffer_printf(out, "*-%s%c*, ", option->letter == '?' ? "\\" : "", option->letter);
	graft_buffer_string(out, "*--");
	graft_manual_escape(out, option->name);
	graft_buffer_char(out, '*');
	if (option->argument != GRAFT_OPTION_FLAG) {
		graft_buffer_string(out, option->argument == GRAFT_OPTION_OPTIONAL ? "[=_" : "=_");
		graft_manual_escape(out, option->value_name);
		graft_buffer_string(out, option->argument == GRAFT_OPTION_OPTIONAL ? "_]" : "_");
	}
	graft_buffer_string(out, "\n\t");
	add_man_help(out, option);
	graft_buffer_string(out, ".\n\n");
}

/* A command and its parents, without the program. */
struct trail {
	const struct trail *parent; /* NULL: the program itself */
	const struct graft_command *command;
};

static void add_trail(struct graft_buffer *out, const struct trail *trail)
{
	if (trail->parent && trail->parent->parent) {
		add_trail(out, trail->parent);
		graft_buffer_char(out, ' ');
	}
	graft_manual_escape(out, trail->command->name);
}

static void add_man_synopsis(struct graft_buffer *out, const struct graft_command *root, const struct trail *trail)
{
	graft_buffer_char(out, '*');
	graft_manual_escape(out, root->name);
	graft_buffer_string(out, trail->parent ? "* [OPTION...] *" : "* [OPTION...] ");
	if (trail->parent) {
		add_trail(out, trail);
		graft_buffer_string(out, "* [OPTION...] ");
	}
	graft_manual_escape(out, trail->command->arguments);
	graft_buffer_string(out, "\n\n");
}

static void add_man_command(struct graft_buffer *out, const struct graft_command *root, const struct trail *trail)
{
	const struct graft_command *command = trail->command;

	graft_buffer_string(out, "## ");
	add_trail(out, trail);
	graft_buffer_string(out, "\n\n");
	add_man_synopsis(out, root, trail);
	graft_manual_escape(out, command->summary);
	graft_buffer_string(out, ".\n\n");
	if (command->description) {
		graft_manual_escape(out, command->description);
		graft_buffer_string(out, "\n\n");
	}
	for (size_t i = 0; command->aliases && command->aliases[i]; i++) {
		graft_buffer_string(out, i == 0 ? "Also called *" : ", *");
		graft_manual_escape(out, command->aliases[i]);
		graft_buffer_string(out, command->aliases[i + 1] ? "*" : "*.\n\n");
	}
	GRAFT_FOR_EACH_OPTION(option, command)
	{
		if (!graft_option_is_builtin(option))
			add_man_option(out, option);
	}
}

/*
 * The commands below `parent`, each followed by its own sub-commands. A group is only represented
 * by its members.
 */
static void add_man_commands(struct graft_buffer *out, const struct graft_command *root, const struct trail *parent)
{
	for (size_t i = 0; parent->command->subcommands && parent->command->subcommands[i]; i++) {
		const struct trail trail = { parent, parent->command->subcommands[i] };

		if (trail.command->hidden)
			continue;
		if (!trail.command->subcommands || trail.command->run || trail.command->work)
			add_man_command(out, root, &trail);
		add_man_commands(out, root, &trail);
	}
}

void graft_options_man(const struct graft_command *root, int section, struct graft_buffer *out)
{
	const struct trail trail = { NULL, root };

	/* The line that whatis(1) prints, which begins in lower case. */
	graft_buffer_printf(out, "%s(%d)\n\n# NAME\n\n%s - %c", root->name, section, root->name,
			    tolower((unsigned char)root->summary[0]));
	graft_manual_escape(out, root->summary + 1);
	graft_buffer_string(out, "\n\n# SYNOPSIS\n\n");
	add_man_synopsis(out, root, &trail);
	if (root->description) {
		graft_buffer_string(out, "# DESCRIPTION\n\n");
		graft_manual_escape(out, root->description);
		graft_buffer_string(out, "\n\n");
	}
	graft_buffer_string(out, "# OPTIONS\n\n");
	GRAFT_FOR_EACH_OPTION(option, root)
	add_man_option(out, option);
	if (root->subcommands)
		graft_buffer_string(out, "# COMMANDS\n\n");
	add_man_commands(out, root, &trail);
	for (size_t i = 0; i < root->n_sections; i++)
		graft_buffer_printf(out, "# %s\n\n%s\n\n", root->sections[i].title, root->sections[i].text);
}
