/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_completion: completions for bash, zsh and fish from a table of options. Knows what those
 * shells expect, not what the options mean.
 */
#include <ctype.h>
#include <string.h>

#include "base/options_table.h"

/* Whether a value is a path, or may be one ("FILE|NAME"), judging by its name in the table. */
static bool is_path(const char *value_name)
{
	static const char *const names[] = { "FILE", "PATH", "DIR", "ROOTFS" };

	for (size_t i = 0; value_name && i < GRAFT_COUNT(names); i++) {
		if (strcspn(value_name, "|") == strlen(names[i]) &&
		    strncmp(value_name, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

/*
 * Appends text for use inside of a shell's single quotes; `also` lists further characters to escape
 * by a backslash (zsh's ':', '[', ']').
 */
static void add_shell_quoted(struct graft_buffer *out, const char *text, const char *also)
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

/* A value that itself ends in '=' is not finished. */
static bool has_unfinished(const char *const *values)
{
	for (size_t i = 0; values[i]; i++) {
		if (values[i][strlen(values[i]) - 1] == '=')
			return true;
	}
	return false;
}

/* `name` is that of the sub-command, or "" for the program's own options. */
static void add_bash_values(struct graft_buffer *out, const struct graft_command *command, const char *name)
{
	GRAFT_FOR_EACH_OPTION(option, command)
	{
		if (option->argument != GRAFT_OPTION_REQUIRED)
			continue;
		graft_buffer_printf(out, "\t%s:--%s", name, option->name);
		if (option->letter != 0)
			graft_buffer_printf(out, "|%s:-%c", name, option->letter);
		graft_buffer_string(out, ") ");
		if (option->values) {
			graft_buffer_string(out, "COMPREPLY=($(compgen -W '");
			add_joined(out, option->values);
			graft_buffer_printf(out, "' -- \"$cur\")%s)",
					    is_path(option->value_name) ? " $(compgen -f -- \"$cur\")" : "");
			if (has_unfinished(option->values))
				graft_buffer_string(out, "; [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace");
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

/* A sub-command that stops at its first argument runs another program. */
static void add_bash_arguments(struct graft_buffer *out, const struct graft_command *command)
{
	if (!command->values && !command->stop_at_first_argument)
		return;
	graft_buffer_printf(out, "\t[[ $cmd == %s && $cur != -* ]] && COMPREPLY=($(compgen -", command->name);
	if (command->values) {
		graft_buffer_string(out, "W '");
		add_joined(out, command->values);
		graft_buffer_char(out, '\'');
	} else {
		graft_buffer_string(out, "c");
	}
	graft_buffer_string(out, " -- \"$cur\"))\n");
}

/* Not every shell allows dashes in the name of a function. */
static void add_identifier(struct graft_buffer *out, const char *name)
{
	for (; *name != '\0'; name++) {
		char c = '_';

		if (isalnum((unsigned char)*name))
			c = *name;
		graft_buffer_char(out, c);
	}
}

/* Finds the sub-command, of a program that has some. */
static void add_bash_command(struct graft_buffer *out, const struct graft_command *root)
{
	if (!root->subcommands)
		return;
	graft_buffer_string(out, "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tcase ${COMP_WORDS[i]} in\n\t\t");
	for (size_t i = 0; root->subcommands[i]; i++)
		graft_buffer_printf(out, "%s%s", i > 0 ? "|" : "", root->subcommands[i]->name);
	graft_buffer_string(out, ") cmd=${COMP_WORDS[i]}; break ;;\n\t\tesac\n\tdone\n");
}

/*
 * bash splits "--opt=value" at the '=' of COMP_WORDBREAKS: the previous word is '=' then, and the
 * option is the one before it.
 */
static void add_bash(const struct graft_command *root, struct graft_buffer *out)
{
	graft_buffer_printf(out, "# bash completion for %s\n_", root->name);
	add_identifier(out, root->name);
	graft_buffer_string(out, "()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
				 "cmd='' words='' i\n"
				 "\tif [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then "
				 "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n");
	add_bash_command(out, root);
	graft_buffer_string(out, "\tcase $cmd:$prev in\n");
	add_bash_values(out, root, "");
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++)
		add_bash_values(out, root->subcommands[i], root->subcommands[i]->name);
	graft_buffer_string(out, "\tesac\n\tcase $cmd in\n");
	add_bash_words(out, root, root);
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++)
		add_bash_words(out, root, root->subcommands[i]);
	graft_buffer_string(out, "\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
				 "\t[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
				 "\t[[ $cmd && $cur != -* ]] && COMPREPLY=($(compgen -d -- \"$cur\"))\n");
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++)
		add_bash_arguments(out, root->subcommands[i]);
	graft_buffer_string(out, "\treturn 0\n}\ncomplete -o filenames -F _");
	add_identifier(out, root->name);
	graft_buffer_printf(out, " %s\n", root->name);
}

static void add_zsh_value(struct graft_buffer *out, const struct graft_option *option)
{
	graft_buffer_char(out, ':');
	add_shell_quoted(out, option->value_name, ":[]\\");
	graft_buffer_char(out, ':');
	if (option->values && is_path(option->value_name)) {
		graft_buffer_string(out, "{compadd ");
		add_joined(out, option->values);
		graft_buffer_string(out, "; _files}");
	} else if (option->values) {
		graft_buffer_char(out, '(');
		add_joined(out, option->values);
		graft_buffer_char(out, ')');
	} else if (is_path(option->value_name)) {
		graft_buffer_string(out, "_files");
	}
}

/* One line per spelling: '*--device=[help]:ID:' */
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
		add_shell_quoted(out, option->help, ":[]\\");
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
	if (!root->subcommands) {
		graft_buffer_string(out, "\t\t&& return 0\n");
		return;
	}
	graft_buffer_string(out, "\t\t'1:command:((");
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++) {
		graft_buffer_printf(out, "%s%s\\:\"", i > 0 ? " " : "", root->subcommands[i]->name);
		add_shell_quoted(out, root->subcommands[i]->summary, ":\"\\");
		graft_buffer_char(out, '"');
	}
	graft_buffer_string(out, "))' \\\n\t\t'*::argument:->arguments'\n[[ $state == arguments ]] || return\n"
				 "case $line[1] in\n");
	for (size_t i = 0; root->subcommands && root->subcommands[i]; i++) {
		const struct graft_command *command = root->subcommands[i];

		graft_buffer_printf(out, "%s)\n\t_arguments \\\n", command->name);
		GRAFT_FOR_EACH_OPTION(option, command)
		add_zsh_option(out, option);
		if (command->values) {
			graft_buffer_printf(out, "\t\t'*:%s:(", command->arguments);
			add_joined(out, command->values);
			graft_buffer_string(out, ")'\n");
		} else if (command->max_arguments != 0)
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
		if (!command->values)
			continue;
		graft_buffer_printf(out, "complete -c %s -n '__fish_seen_subcommand_from %s' -f -a '", root->name,
				    command->name);
		add_joined(out, command->values);
		graft_buffer_string(out, "'\n");
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
