/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_meant: what was probably meant by a command, an option or a value that no table has. Does
 * not print: messages that callers of the existing stack read keep their text, and these come after
 * it.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/options_table.h"
#include "base/strings.h"

/* Copies the name of the option in "unrecognized option '--x=1'" or "... not defined: -x". */
static bool read_wrong_name(const char *message, char name[GRAFT_NEAREST_MAX + 1])
{
	size_t length;

	if (!graft_starts_with(message, "unrecognized option '") &&
	    !graft_starts_with(message, "flag provided but not defined: "))
		return false;
	message += strcspn(message, "-");
	message += strspn(message, "-");
	length = strcspn(message, "='");
	/* A letter is near to every other letter. */
	if (length < 2 || length > GRAFT_NEAREST_MAX)
		return false;
	memcpy(name, message, length);
	name[length] = '\0';
	return true;
}

/* A name and its aliases (NULL-terminated, or NULL). An alias may be a letter: see above. */
static void consider(const char *name, const char *const *aliases, struct graft_nearest_search *search)
{
	graft_nearest_consider(search, name);
	for (size_t i = 0; aliases && aliases[i]; i++) {
		if (aliases[i][1] != '\0')
			graft_nearest_consider(search, aliases[i]);
	}
}

static void consider_options(const struct graft_command *command, struct graft_nearest_search *search)
{
	GRAFT_FOR_EACH_OPTION(option, command)
	consider(option->name, option->aliases, search);
}

const char *graft_options_meant_option(const struct graft_command *command, const struct graft_command *inherited,
				       const struct graft_error *err)
{
	char name[GRAFT_NEAREST_MAX + 1];
	struct graft_nearest_search search = { .word = name };

	if (!read_wrong_name(err->msg, name))
		return NULL;
	consider_options(command, &search);
	/* Skips the options that every command has: only the program itself has --version. */
	for (size_t i = 0; inherited && i < inherited->n_options; i++) {
		if (!inherited->options[i].hidden)
			consider(inherited->options[i].name, inherited->options[i].aliases, &search);
	}
	return search.best;
}

void graft_options_suggest_option(const struct graft_command *command, struct graft_error *err)
{
	const char *meant = graft_options_meant_option(command, NULL, err);
	size_t length = strlen(err->msg);

	if (meant)
		(void)snprintf(err->msg + length, sizeof(err->msg) - length, " (did you mean '--%s'?)", meant);
}

const char *graft_options_meant_command(const struct graft_command *command, const char *name)
{
	struct graft_nearest_search search = { .word = name };

	for (size_t i = 0; command->subcommands && command->subcommands[i]; i++) {
		if (!command->subcommands[i]->hidden)
			consider(command->subcommands[i]->name, command->subcommands[i]->aliases, &search);
	}
	return search.best;
}

const char *graft_options_meant_value(const struct graft_option *option, const char *value)
{
	struct graft_nearest_search search = { .word = value };

	for (size_t i = 0; option->values && option->values[i]; i++) {
		if (strcmp(option->values[i], value) == 0)
			return NULL;
		graft_nearest_consider(&search, option->values[i]);
	}
	return search.best;
}
