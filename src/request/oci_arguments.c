/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_arguments: reads the options of runc 1.1 and crun 1.8. The caller's argv is forwarded
 * unchanged.
 */
#include "request/oci_arguments.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

enum kind {
	UNKNOWN,
	FLAG,  /* never takes the next argument */
	VALUE, /* takes the next argument unless it contains '=' */
	BUNDLE,
};

struct option {
	const char *name;
	enum kind kind;
	bool diverts; /* the result is not a container of the bundle's config.json */
};

static const struct option global_options[] = {
	{ "log", VALUE },            /* runc, crun */
	{ "log-format", VALUE },     /* runc, crun */
	{ "log-level", VALUE },      /* crun since 1.9 */
	{ "root", VALUE },           /* runc, crun */
	{ "criu", VALUE },           /* runc */
	{ "rootless", VALUE },       /* runc, crun */
	{ "cgroup-manager", VALUE }, /* crun */
	{ "debug", FLAG },           /* runc, crun */
	{ "systemd-cgroup", FLAG },  /* runc, crun */
	{ "version", FLAG, true },
	{ "v", FLAG, true },
	{ "V", FLAG, true },
	{ "help", FLAG, true },
	{ "h", FLAG, true },
};

/* Options of `create` and `run`. */
static const struct option create_options[] = {
	{ "bundle", BUNDLE },        /* runc, crun */
	{ "b", BUNDLE },             /* runc, crun */
	{ "console-socket", VALUE }, /* runc, crun */
	{ "pidfd-socket", VALUE },   /* runc since 1.2 */
	{ "pid-file", VALUE },       /* runc, crun */
	{ "preserve-fds", VALUE },   /* runc, crun */
	{ "config", VALUE, true },   /* crun: use another file instead of config.json */
	{ "f", VALUE, true },        /* likewise */
	{ "no-pivot", FLAG },        /* runc, crun */
	{ "no-new-keyring", FLAG },  /* runc, crun */
	{ "no-subreaper", FLAG },    /* runc, crun */
};

/* The commands of the OCI runtime interface, and those that runc and crun add. */
static const char *const subcommands[] = {
	"create", "start",  "run",  "exec", "delete",     "kill",    "state",  "list",     "ps",
	"pause",  "resume", "spec", "init", "checkpoint", "restore", "update", "features", "events",
};

struct word {
	const char *name; /* after the dashes */
	size_t length;    /* of the name */
	size_t n_dashes;
	const char *value; /* after '=', or attached to -b; or NULL */
	enum kind kind;
	bool known; /* by its whole name, and does not divert */
};

static bool is_name(const struct word *word, const char *name)
{
	return word->length == strlen(name) && strncmp(word->name, name, word->length) == 0;
}

/* Like argp, crun accepts any abbreviation of --bundle, and a value attached to -b. */
static bool is_bundle(struct word *word, size_t n_dashes)
{
	if (is_name(word, "b") || is_name(word, "bundle"))
		return true;
	if (n_dashes == 2 && word->length > 0 && word->length < strlen("bundle"))
		return strncmp(word->name, "bundle", word->length) == 0;
	if (n_dashes != 1 || word->name[0] != 'b')
		return false;
	word->value = word->name + 1;
	return true;
}

/*
 * Splits an option. Returns false if the argument is not an option: it does not start with '-', or
 * is "-" or "--".
 */
static bool read_option(const char *text, struct word *ret_word)
{
	size_t n_dashes = strspn(text, "-");
	const char *equals = strchr(text, '=');

	if (n_dashes == 0 || text[n_dashes] == '\0')
		return false;
	*ret_word = (struct word){ .name = text + n_dashes, .n_dashes = n_dashes, .value = equals ? equals + 1 : NULL };
	ret_word->length = equals ? (size_t)(equals - ret_word->name) : strlen(ret_word->name);
	if (is_bundle(ret_word, n_dashes))
		ret_word->kind = BUNDLE;
	return true;
}

static void classify_oci_option(struct word *word, const struct option *options, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_name(word, options[i].name))
			continue;
		word->kind = options[i].kind;
		word->known = !options[i].diverts;
		return;
	}
}

/*
 * Returns whether all versions of runc and crun read the option alike: a long name after two dashes
 * or a letter after one, and a value that does not look like an option. Go's flag package and
 * getopt_long(3) differ in everything else: the latter reads "-bundle" as -b with the value
 * "undle", and "-b=VALUE" as -b with the value "=VALUE". runc also moves options before the other
 * arguments, and in doing so takes an argument that starts with '-' for an option even if it is a
 * value.
 */
static bool is_plain_oci_option(const struct word *word, const char *value)
{
	bool is_letter = word->length == 1;

	if (!word->known || word->n_dashes != (is_letter ? 1 : 2) || (is_letter && word->value))
		return false;
	return word->kind == FLAG || word->value || (value && value[0] != '-');
}

/* Go's flag package accepts these as false: --debug=false. */
static bool is_false(const char *value)
{
	static const char *const words[] = { "0", "f", "F", "false", "FALSE", "False" };

	return value && graft_is_in(words, GRAFT_COUNT(words), value);
}

/* Returns whether the next argument is the value of this option. */
static bool takes_next(const struct word *word, const char *next)
{
	if (word->value || !next)
		return false;
	switch (word->kind) {
	case FLAG:
		return false;
	case VALUE:
	case BUNDLE:
		return true;
	case UNKNOWN:
		break;
	}
	/* An option of an unknown runtime: do not overlook a `create` after it. */
	return next[0] != '-' && !graft_is_in(subcommands, GRAFT_COUNT(subcommands), next);
}

static void remember_global(const struct word *word, const char *value, struct graft_oci_arguments *arguments)
{
	if (is_name(word, "log") && value)
		arguments->log = value;
	else if (is_name(word, "log-format") && value)
		arguments->log_format = value;
	else if (is_name(word, "debug"))
		arguments->debug = !is_false(value);
	else if (is_name(word, "version") || is_name(word, "v") || is_name(word, "V"))
		arguments->version = true;
}

struct line {
	int argc, at;
	char *const *argv;
	bool bundle_without_value;
};

static const char *word_at(const struct line *line, int at)
{
	return at < line->argc ? line->argv[at] : NULL;
}

/* Returns the value of an option, and moves past it. */
static const char *take_value(struct line *line, const struct word *word, struct graft_oci_arguments *arguments)
{
	const char *next = word_at(line, line->at + 1), *value = word->value;

	if (takes_next(word, next)) {
		value = next;
		line->at++;
	}
	if (word->kind == BUNDLE && value)
		arguments->bundle = value;
	line->bundle_without_value |= word->kind == BUNDLE && !value;
	return value;
}

/* Reads up to and including the subcommand. */
static void read_global(struct line *line, struct graft_oci_arguments *arguments)
{
	bool options = true;

	for (; word_at(line, line->at); line->at++) {
		const char *text = word_at(line, line->at), *value;
		struct word word;

		if (options && strcmp(text, "--") == 0) {
			arguments->plain = options = false;
			continue;
		}
		if (!options || !read_option(text, &word)) {
			arguments->subcommand = text;
			arguments->n_global = line->at++;
			return;
		}
		classify_oci_option(&word, global_options, GRAFT_COUNT(global_options));
		value = take_value(line, &word, arguments);
		arguments->plain &= is_plain_oci_option(&word, value);
		remember_global(&word, value, arguments);
	}
}

static void read_create(struct line *line, struct graft_oci_arguments *arguments)
{
	size_t n_words = 0;

	for (; word_at(line, line->at) && strcmp(word_at(line, line->at), "--") != 0; line->at++) {
		const char *text = word_at(line, line->at), *value;
		struct word word;

		if (!read_option(text, &word)) {
			arguments->container = n_words++ == 0 ? text : NULL;
			arguments->plain &= text[0] != '-';
			continue;
		}
		classify_oci_option(&word, create_options, GRAFT_COUNT(create_options));
		value = word.kind != UNKNOWN ? take_value(line, &word, arguments) : NULL;
		arguments->plain &= is_plain_oci_option(&word, value);
		if (is_name(&word, "pid-file") && value)
			arguments->pid_file = value[0] != '\0' ? value : NULL;
	}
	arguments->plain &= !word_at(line, line->at);
}

int graft_oci_arguments_read(int argc, char *const *argv, struct graft_oci_arguments *ret_arguments,
			     struct graft_error *err)
{
	struct line line = { .argc = argc, .at = 1, .argv = argv };

	*ret_arguments = (struct graft_oci_arguments){ .plain = true };
	read_global(&line, ret_arguments);
	ret_arguments->create = ret_arguments->subcommand && strcmp(ret_arguments->subcommand, "create") == 0;
	if (ret_arguments->create)
		read_create(&line, ret_arguments);
	if (line.bundle_without_value && (ret_arguments->create || !ret_arguments->subcommand))
		return graft_fail(err, GRAFT_INVALID, 0, "bundle option requires an argument");
	return 0;
}
