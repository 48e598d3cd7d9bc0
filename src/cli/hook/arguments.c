/* SPDX-License-Identifier: Apache-2.0 */
/* arguments: words of a command line to flags and a command, by a table. Prints nothing. */
#include "cli/hook/arguments.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

const char hook_usage[] = "Usage: nvidia-container-runtime-hook [FLAG...] COMMAND\n"
			  "\n"
			  "Called by a container runtime with the container's state on standard input.\n"
			  "\n"
			  "Commands:\n"
			  "  prestart     give the container the GPUs that it asks for\n"
			  "  poststart    nothing\n"
			  "  poststop     nothing\n"
			  "\n"
			  "Flags (with one dash or two):\n"
			  "  -config FILE  use FILE instead of /etc/nvidia-container-runtime/config.toml\n"
			  "  -debug        tell on standard error what is done\n"
			  "  -version      print the version and exit\n"
			  "  -help         print this text and exit\n";

static const struct {
	const char *name;
	size_t offset;
	bool takes_text;
} flags[] = {
	{ "config", offsetof(struct hook_arguments, config), true },
	{ "debug", offsetof(struct hook_arguments, debug), false },
	{ "version", offsetof(struct hook_arguments, version), false },
	{ "help", offsetof(struct hook_arguments, help), false },
	{ "h", offsetof(struct hook_arguments, help), false },
};

static int read_bool(const char *name, const char *value, bool *ret_bool, struct graft_error *err)
{
	static const char *const words[] = { "0",     "1",    "f",     "t",    "F",     "T",
					     "false", "true", "FALSE", "TRUE", "False", "True" };

	for (size_t i = 0; i < GRAFT_COUNT(words); i++) {
		if (strcmp(value, words[i]) == 0) {
			*ret_bool = i % 2 == 1;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "invalid boolean value \"%s\" for -%s", value, name);
}

/* One flag, `text` without its dashes. `next` is the word behind it, or NULL. Returns how many words it took. */
static int read_flag(const char *text, const char *next, struct hook_arguments *arguments, struct graft_error *err)
{
	size_t length = strcspn(text, "=");
	const char *value = text[length] == '=' ? text + length + 1 : NULL;

	for (size_t i = 0; i < GRAFT_COUNT(flags); i++) {
		void *target = (char *)arguments + flags[i].offset;

		if (strlen(flags[i].name) != length || strncmp(flags[i].name, text, length) != 0)
			continue;
		if (!flags[i].takes_text)
			return read_bool(flags[i].name, value ? value : "true", target, err) < 0 ? -1 : 1;
		if (!value && !next)
			return graft_fail(err, GRAFT_INVALID, 0, "flag needs an argument: -%s", flags[i].name);
		*(const char **)target = value ? value : next;
		return value ? 1 : 2;
	}
	return graft_fail(err, GRAFT_INVALID, 0, "flag provided but not defined: -%.*s", (int)length, text);
}

static enum hook_command read_command(const char *word)
{
	static const char *const words[] = { "prestart", "poststart", "poststop" };

	for (size_t i = 0; i < GRAFT_COUNT(words); i++) {
		if (strcmp(word, words[i]) == 0)
			return (enum hook_command)(HOOK_PRESTART + i);
	}
	return HOOK_NONE;
}

int hook_arguments_read(int argc, char *const *argv, struct hook_arguments *ret_arguments, struct graft_error *err)
{
	int i = 1;

	*ret_arguments = (struct hook_arguments){ .command = HOOK_NONE };
	while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
		const char *text = argv[i] + (argv[i][1] == '-' ? 2 : 1);
		int taken;

		if (*text == '\0') {
			i++;
			break;
		}
		if (*text == '-' || *text == '=')
			return graft_fail(err, GRAFT_INVALID, 0, "bad flag syntax: %s", argv[i]);
		taken = read_flag(text, i + 1 < argc ? argv[i + 1] : NULL, ret_arguments, err);
		if (taken < 0)
			return -1;
		i += taken;
	}
	if (i < argc)
		ret_arguments->command = read_command(argv[i]);
	return 0;
}
