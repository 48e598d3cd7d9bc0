/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_text: what is printed from a table of options: --help, --usage, complaints (byte for byte in argp's layout, which the unit
 * test compares with argp itself), the man page in scdoc's format, and shell completions. Reads tables, writes text, does nothing else.
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

/* ---- order ---- */

/*
 * argp's order: by letter or, without one, by the first character of the name, ignoring case, small letters first, names
 * without a letter before letters; two names without letters by the whole name.
 */
static int compare(const struct graft_option *a, const struct graft_option *b)
{
	int first_a = a->letter != 0 ? a->letter : (unsigned char)a->name[0];
	int first_b = b->letter != 0 ? b->letter : (unsigned char)b->name[0];

	if (a->letter == 0 && b->letter == 0)
		return strcasecmp(a->name, b->name);
	if (tolower(first_a) != tolower(first_b))
		return tolower(first_a) - tolower(first_b);
	if (first_a != first_b)
		return first_b - first_a;
	return (a->letter != 0) - (b->letter != 0);
}

/*
 * The visible option that is shown after `previous` (NULL = the first), the built-in ones last; NULL at the end. Tables are short, so
 * that looking for the successor each time needs neither memory nor a sorted copy.
 */
static const struct graft_option *next_in_order(const struct graft_command *command,
						const struct graft_option *previous)
{
	const struct graft_option *best = NULL;

	if (previous && previous >= graft_builtin_options && previous < graft_builtin_options + GRAFT_BUILTIN_OPTIONS)
		return previous + 1 < graft_builtin_options + GRAFT_BUILTIN_OPTIONS ? previous + 1 : NULL;
	for (size_t i = 0; i < command->n_options; i++) {
		const struct graft_option *option = &command->options[i];
		int order = previous ? compare(option, previous) : 1;

		if (option->hidden || option == previous || order < 0 || (order == 0 && option < previous))
			continue;
		if (!best || compare(option, best) < 0)
			best = option;
	}
	return best ? best : &graft_builtin_options[0];
}

#define FOR_EACH_OPTION(option, command)                                               \
	for (const struct graft_option *option = next_in_order(command, NULL); option; \
	     option = next_in_order(command, option))

static bool is_builtin(const struct graft_option *option)
{
	return option >= graft_builtin_options && option < graft_builtin_options + GRAFT_BUILTIN_OPTIONS;
}

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

/* Room for a word of `length` that stays in one piece: on this line if it ends before `end`. `space` = not the first of its text. */
static void start_word(struct graft_buffer *out, size_t length, size_t indent, size_t end, bool space)
{
	if (space && column_of(out) + 1 + length > end) {
		graft_buffer_char(out, '\n');
		indent_to(out, indent);
	} else if (space) {
		graft_buffer_char(out, ' ');
	}
}

static void add_word(struct graft_buffer *out, const char *word, size_t length, size_t indent, bool space)
{
	start_word(out, length, indent, COLUMN_END, space);
	graft_buffer_add(out, word, length);
}

/* Running text with its own line ends kept. */
static void add_text(struct graft_buffer *out, const char *text, size_t indent)
{
	bool space = false;

	while (*text != '\0') {
		size_t length = strcspn(text, " \n");

		if (length > 0) {
			add_word(out, text, length, indent, space);
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
	add_text(out, command->arguments, COLUMN_USAGE);
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
	add_text(out, text, COLUMN_HELP);
	graft_buffer_char(out, '\n');
}

static void add_value(struct graft_buffer *out, const struct graft_option *option)
{
	if (option->argument == GRAFT_OPTION_REQUIRED)
		graft_buffer_printf(out, "=%s", option->value_name);
	else if (option->argument == GRAFT_OPTION_OPTIONAL)
		graft_buffer_printf(out, "[=%s]", option->value_name);
}

static void add_option_help(struct graft_buffer *out, const struct graft_option *option)
{
	indent_to(out, COLUMN_LETTER);
	if (option->letter != 0)
		graft_buffer_printf(out, "-%c, ", option->letter);
	indent_to(out, COLUMN_NAME);
	graft_buffer_printf(out, "--%s", option->name);
	add_value(out, option);
	add_help_text(out, option->help);
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
	bool own_options = !is_builtin(next_in_order(command, NULL));

	add_synopsis(command, program, out);
	add_text(out, command->summary, 0);
	graft_buffer_string(out, "\n\n");
	if (command->subcommands)
		graft_buffer_string(out, " Commands:\n");
	for (size_t i = 0; command->subcommands && command->subcommands[i]; i++) {
		indent_to(out, COLUMN_LETTER);
		graft_buffer_string(out, command->subcommands[i]->name);
		add_help_text(out, command->subcommands[i]->summary);
	}
	if (own_options)
		graft_buffer_printf(out, "%s Options:\n", command->subcommands ? "\n" : "");
	FOR_EACH_OPTION(option, command)
	{
		if (option == &graft_builtin_options[0] && (own_options || command->subcommands))
			graft_buffer_char(out, '\n');
		add_option_help(out, option);
	}
	if (has_letter_with_value(command))
		graft_buffer_string(out, "\nMandatory or optional arguments to long options are also mandatory or "
					 "optional\nfor any corresponding short options.\n");
}

/* " [-d FILE]", " [-u[UID]]": in one piece, which argp ends a column earlier when the value is required. */
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
	add_value(out, option);
	graft_buffer_char(out, ']');
}

void graft_options_usage(const struct graft_command *command, const char *program, struct graft_buffer *out)
{
	graft_buffer_printf(out, "Usage: %s [-", program);
	FOR_EACH_OPTION(option, command)
	{
		if (option->letter != 0 && option->argument == GRAFT_OPTION_FLAG)
			graft_buffer_char(out, (char)option->letter);
	}
	graft_buffer_char(out, ']');
	FOR_EACH_OPTION(option, command)
	{
		if (option->letter != 0 && option->argument != GRAFT_OPTION_FLAG)
			add_letter_usage(out, option);
	}
	FOR_EACH_OPTION(option, command)
	add_name_usage(out, option);
	for (const char *word = command->arguments; *word != '\0';) {
		size_t length = strcspn(word, " ");

		add_word(out, word, length, COLUMN_USAGE, true);
		word += length + strspn(word + length, " ");
	}
	graft_buffer_char(out, '\n');
}

void graft_options_complain(const struct graft_command *command, const char *program, enum graft_parse_result result,
			    const struct graft_error *err, struct graft_buffer *out)
{
	if (result == GRAFT_PARSE_MISSING)
		add_synopsis(command, program, out);
	else
		graft_buffer_printf(out, "%s: %s\n", program, err->msg);
	graft_buffer_printf(out, "Try `%s --help' or `%s --usage' for more information.\n", program, program);
}

/* ---- man page ---- */

/* Text with what scdoc would read as markup escaped. */
static void add_escaped(struct graft_buffer *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (strchr("\\*_#+`", *text))
			graft_buffer_char(out, '\\');
		graft_buffer_char(out, *text);
	}
}

static void add_man_option(struct graft_buffer *out, const struct graft_option *option)
{
	if (option->letter != 0)
		graft_buffer_printf(out, "*-%s%c*, ", option->letter == '?' ? "\\" : "", option->letter);
	graft_buffer_string(out, "*--");
	add_escaped(out, option->name);
	graft_buffer_char(out, '*');
	if (option->argument != GRAFT_OPTION_FLAG) {
		graft_buffer_string(out, option->argument == GRAFT_OPTION_OPTIONAL ? "[=_" : "=_");
		add_escaped(out, option->value_name);
		graft_buffer_string(out, option->argument == GRAFT_OPTION_OPTIONAL ? "_]" : "_");
	}
	graft_buffer_string(out, "\n\t");
	add_escaped(out, option->help);
	graft_buffer_string(out, ".\n\n");
}

static void add_man_synopsis(struct graft_buffer *out, const struct graft_command *root,
			     const struct graft_command *command)
{
	graft_buffer_char(out, '*');
	add_escaped(out, root->name);
	graft_buffer_string(out, command == root ? "* [OPTION...] " : "* [OPTION...] *");
	if (command != root) {
		add_escaped(out, command->name);
		graft_buffer_string(out, "* [OPTION...] ");
	}
	add_escaped(out, command->arguments);
	graft_buffer_string(out, "\n\n");
}

static void add_man_command(struct graft_buffer *out, const struct graft_command *root,
			    const struct graft_command *command)
{
	graft_buffer_string(out, "## ");
	add_escaped(out, command->name);
	graft_buffer_string(out, "\n\n");
	add_man_synopsis(out, root, command);
	add_escaped(out, command->description ? command->description : command->summary);
	graft_buffer_string(out, "\n\n");
	FOR_EACH_OPTION(option, command)
	{
		if (!is_builtin(option))
			add_man_option(out, option);
	}
}

void graft_options_man(const struct graft_command *root, int section, struct graft_buffer *out)
{
	graft_buffer_printf(out, "%s(%d)\n\n# NAME\n\n%s - ", root->name, section, root->name);
	add_escaped(out, root->summary);
	graft_buffer_string(out, "\n\n# SYNOPSIS\n\n");
	add_man_synopsis(out, root, root);
	if (root->description) {
		graft_buffer_string(out, "# DESCRIPTION\n\n");
		add_escaped(out, root->description);
		graft_buffer_string(out, "\n\n");
	}
	graft_buffer_string(out, "# OPTIONS\n\n");
	FOR_EACH_OPTION(option, root)
	add_man_option(out, option);
	if (root->subcommands)
		graft_buffer_string(out, "# COMMANDS\n\n");
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++)
		add_man_command(out, root, root->subcommands[i]);
	for (size_t i = 0; i < root->n_sections; i++)
		graft_buffer_printf(out, "# %s\n\n%s\n\n", root->sections[i].title, root->sections[i].text);
}

/* ---- completions ---- */

/* Whether a value is a path, by its name in the table. */
static bool is_path(const char *value_name)
{
	static const char *const names[] = { "FILE", "PATH", "DIR", "ROOTFS" };

	for (size_t i = 0; value_name && i < GRAFT_COUNT(names); i++) {
		if (strcmp(value_name, names[i]) == 0)
			return true;
	}
	return false;
}

/* Text inside single quotes of a shell; `also` are further characters to put a backslash before (zsh's ':', '[', ']'). */
static void add_quoted(struct graft_buffer *out, const char *text, const char *also)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			graft_buffer_string(out, "'\\''");
			continue;
		}
		if (strchr(also, *text))
			graft_buffer_char(out, '\\');
		graft_buffer_char(out, *text);
	}
}

static void add_joined(struct graft_buffer *out, const char *const *words)
{
	for (size_t i = 0; words[i]; i++)
		graft_buffer_printf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

static void add_bash_values(struct graft_buffer *out, const struct graft_command *command)
{
	FOR_EACH_OPTION(option, command)
	{
		if (option->argument != GRAFT_OPTION_REQUIRED)
			continue;
		graft_buffer_printf(out, "\t%s:--%s", command->stop_at_first_argument ? "" : command->name,
				    option->name);
		if (option->letter != 0)
			graft_buffer_printf(out, "|%s:-%c", command->stop_at_first_argument ? "" : command->name,
					    option->letter);
		graft_buffer_string(out, ") ");
		if (option->values) {
			graft_buffer_string(out, "COMPREPLY=($(compgen -W '");
			add_joined(out, option->values);
			graft_buffer_string(out, "' -- \"$cur\"))");
		} else if (is_path(option->value_name)) {
			graft_buffer_string(out, "COMPREPLY=($(compgen -f -- \"$cur\"))");
		} else {
			graft_buffer_string(out, "COMPREPLY=()");
		}
		graft_buffer_string(out, "; return ;;\n");
	}
}

static void add_bash_words(struct graft_buffer *out, const struct graft_command *root,
			   const struct graft_command *command)
{
	graft_buffer_printf(out, "\t%s) words='", command == root ? "''" : command->name);
	FOR_EACH_OPTION(option, command)
	graft_buffer_printf(out, "--%s%s ", option->name, option->argument == GRAFT_OPTION_REQUIRED ? "=" : "");
	for (size_t i = 0; command == root && root->subcommands && root->subcommands[i]; i++)
		graft_buffer_printf(out, "%s ", root->subcommands[i]->name);
	graft_buffer_string(out, "' ;;\n");
}

/* A shell function's name cannot hold dashes everywhere. */
static void add_identifier(struct graft_buffer *out, const char *name)
{
	for (; *name != '\0'; name++)
		graft_buffer_char(out, isalnum((unsigned char)*name) ? *name : '_');
}

/* bash splits "--opt=value" at the '=' of COMP_WORDBREAKS: the word before is then '=', and the option the one before that. */
static void add_bash(const struct graft_command *root, struct graft_buffer *out)
{
	graft_buffer_printf(out, "# bash completion for %s\n_", root->name);
	add_identifier(out, root->name);
	graft_buffer_string(out, "()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
				 "cmd='' words='' i\n"
				 "\tif [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then "
				 "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
				 "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tcase ${COMP_WORDS[i]} in\n\t\t");
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++)
		graft_buffer_printf(out, "%s%s", i > 0 ? "|" : "", root->subcommands[i]->name);
	graft_buffer_string(out, ") cmd=${COMP_WORDS[i]}; break ;;\n\t\tesac\n\tdone\n\tcase $cmd:$prev in\n");
	add_bash_values(out, root);
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++)
		add_bash_values(out, root->subcommands[i]);
	graft_buffer_string(out, "\tesac\n\tcase $cmd in\n");
	add_bash_words(out, root, root);
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++)
		add_bash_words(out, root, root->subcommands[i]);
	graft_buffer_string(out, "\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
				 "\t[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
				 "\t[[ $cmd && $cur != -* ]] && COMPREPLY=($(compgen -d -- \"$cur\"))\n"
				 "\treturn 0\n}\ncomplete -o filenames -F _");
	add_identifier(out, root->name);
	graft_buffer_printf(out, " %s\n", root->name);
}

static void add_zsh_value(struct graft_buffer *out, const struct graft_option *option)
{
	graft_buffer_char(out, ':');
	add_quoted(out, option->value_name, ":[]\\");
	graft_buffer_char(out, ':');
	if (option->values) {
		graft_buffer_char(out, '(');
		add_joined(out, option->values);
		graft_buffer_char(out, ')');
	} else if (is_path(option->value_name)) {
		graft_buffer_string(out, "_files");
	}
}

/* One line for each spelling: '*--device=[help]:ID:' */
static void add_zsh_option(struct graft_buffer *out, const struct graft_option *option)
{
	static const char *const long_marks[] = { "", "=", "=-" };
	static const char *const short_marks[] = { "", "+", "-" };

	for (int spelling = option->letter != 0 ? 0 : 1; spelling < 2; spelling++) {
		if (spelling == 0)
			graft_buffer_printf(out, "\t\t'*-%s%c%s[", option->letter == '?' ? "\\" : "", option->letter,
					    short_marks[option->argument]);
		else
			graft_buffer_printf(out, "\t\t'*--%s%s[", option->name, long_marks[option->argument]);
		add_quoted(out, option->help, ":[]\\");
		graft_buffer_char(out, ']');
		if (option->argument == GRAFT_OPTION_OPTIONAL)
			graft_buffer_char(out, ':');
		if (option->argument != GRAFT_OPTION_FLAG)
			add_zsh_value(out, option);
		graft_buffer_string(out, "' \\\n");
	}
}

static void add_zsh(const struct graft_command *root, struct graft_buffer *out)
{
	graft_buffer_printf(out, "#compdef %s\n\nlocal curcontext=$curcontext state line\n_arguments -C \\\n",
			    root->name);
	FOR_EACH_OPTION(option, root)
	add_zsh_option(out, option);
	graft_buffer_string(out, "\t\t'1:command:((");
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++) {
		graft_buffer_printf(out, "%s%s\\:\"", i > 0 ? " " : "", root->subcommands[i]->name);
		add_quoted(out, root->subcommands[i]->summary, ":\"\\");
		graft_buffer_char(out, '"');
	}
	graft_buffer_string(out, "))' \\\n\t\t'*::argument:->arguments'\n[[ $state == arguments ]] || return\n"
				 "case $line[1] in\n");
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++) {
		const struct graft_command *command = root->subcommands[i];

		graft_buffer_printf(out, "%s)\n\t_arguments \\\n", command->name);
		FOR_EACH_OPTION(option, command)
		add_zsh_option(out, option);
		if (command->max_arguments != 0)
			graft_buffer_printf(out, "\t\t'*:%s:_files'\n", command->arguments);
		else
			graft_buffer_string(out, "\t\t&& return 0\n");
		graft_buffer_string(out, "\t;;\n");
	}
	graft_buffer_string(out, "esac\n");
}

static void add_fish_option(struct graft_buffer *out, const struct graft_command *root,
			    const struct graft_command *command, const struct graft_option *option)
{
	graft_buffer_printf(out, "complete -c %s -n ", root->name);
	if (command == root)
		graft_buffer_string(out, "__fish_use_subcommand");
	else
		graft_buffer_printf(out, "'__fish_seen_subcommand_from %s'", command->name);
	graft_buffer_printf(out, " -l %s", option->name);
	if (option->letter != 0)
		graft_buffer_printf(out, " -s '%c'", option->letter);
	if (option->argument == GRAFT_OPTION_REQUIRED)
		graft_buffer_string(out, is_path(option->value_name) ? " -rF" : " -x");
	if (option->values) {
		graft_buffer_string(out, " -a '");
		add_joined(out, option->values);
		graft_buffer_char(out, '\'');
	}
	graft_buffer_string(out, " -d '");
	for (const char *c = option->help; *c != '\0'; c++)
		graft_buffer_printf(out, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
	graft_buffer_string(out, "'\n");
}

static void add_fish(const struct graft_command *root, struct graft_buffer *out)
{
	graft_buffer_printf(out, "# fish completion for %s\ncomplete -c %s -n __fish_use_subcommand -f\n", root->name,
			    root->name);
	FOR_EACH_OPTION(option, root)
	add_fish_option(out, root, root, option);
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++) {
		const struct graft_command *command = root->subcommands[i];

		graft_buffer_printf(out, "complete -c %s -n __fish_use_subcommand -a %s -d '", root->name,
				    command->name);
		for (const char *c = command->summary; *c != '\0'; c++)
			graft_buffer_printf(out, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
		graft_buffer_string(out, "'\n");
		FOR_EACH_OPTION(option, command)
		add_fish_option(out, root, command, option);
	}
}

static const struct {
	const char *name;
	void (*add)(const struct graft_command *root, struct graft_buffer *out);
} shells[] = {
	{ "bash", add_bash },
	{ "zsh", add_zsh },
	{ "fish", add_fish },
};

int graft_options_completion(const struct graft_command *root, const char *shell, struct graft_buffer *out,
			     struct graft_error *err)
{
	for (size_t i = 0; i < GRAFT_COUNT(shells); i++) {
		if (strcmp(shell, shells[i].name) == 0) {
			shells[i].add(root, out);
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "no completion for shell '%s'", shell);
}
