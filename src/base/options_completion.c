/* SPDX-License-Identifier: Apache-2.0 */
/* options_completion: completions for bash, zsh and fish from a table of options. Knows what those shells want, not what options mean. */
#include <ctype.h>
#include <string.h>

#include "base/options_table.h"

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
	GRAFT_FOR_EACH_OPTION(option, command)
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
	GRAFT_FOR_EACH_OPTION(option, command)
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
	GRAFT_FOR_EACH_OPTION(option, root)
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
		GRAFT_FOR_EACH_OPTION(option, command)
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
	GRAFT_FOR_EACH_OPTION(option, root)
	add_fish_option(out, root, root, option);
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++) {
		const struct graft_command *command = root->subcommands[i];

		graft_buffer_printf(out, "complete -c %s -n __fish_use_subcommand -a %s -d '", root->name,
				    command->name);
		for (const char *c = command->summary; *c != '\0'; c++)
			graft_buffer_printf(out, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
		graft_buffer_string(out, "'\n");
		GRAFT_FOR_EACH_OPTION(option, command)
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
