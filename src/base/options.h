/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: one table of options per command; parsing, --help, --usage, man page and shell completion come from it.
 *
 * GNU argp's behaviour, which users of nvidia-container-cli rely on (SPEC libnvidia-container 3.1): long options may be
 * abbreviated when unambiguous (flag of the command), --opt=VALUE and --opt VALUE, clustered short options, optional
 * values only attached, "--" ends options, -? --help --usage -V --version. A command may also ask for Go's style
 * (single dash long options, no abbreviations, --bool=false, further names, values from the environment; -h --help and, for a
 * program, -v --version) and Go's words for what is wrong (SPEC ctk-and-cdi 1.0).
 */
#ifndef GRAFT_BASE_OPTIONS_H
#define GRAFT_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"

enum graft_option_argument { GRAFT_OPTION_FLAG, GRAFT_OPTION_REQUIRED, GRAFT_OPTION_OPTIONAL };

struct graft_option {
	const char *name; /* long name without dashes */
	int letter;       /* short name, or 0 */
	enum graft_option_argument argument;
	const char *value_name; /* "FILE"; NULL for flags */
	bool hidden;            /* accepted, not shown */
	const char *help;
	/* Called for each use, in order; `value` is NULL for flags and absent optional values. -1 with the error set stops the parsing. */
	int (*parse)(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
	size_t offset;             /* for the ready-made parsers below: the member of `target` */
	const void *extra;         /* free use of `parse` */
	const char *const *values; /* words that completion offers for the value, NULL-terminated; or NULL */
	/* Go's style only; lists end with NULL, or are NULL. */
	const char *const *aliases;     /* further long names or letters */
	const char *const *environment; /* variables: the first that is defined counts when the option was not given */
};

/* Ready-made parsers: set a bool (a value, Go's --flag=false, is obeyed); store the value's pointer (const char *). */
int graft_option_set_true(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int graft_option_set_string(void *target, const struct graft_option *option, const char *value,
			    struct graft_error *err);

/* A section of the man page after the options; `text` is scdoc source. */
struct graft_manual_section {
	const char *title;
	const char *text;
};

struct graft_command {
	const char *name;        /* "configure"; for messages the program's name is put in front */
	const char *arguments;   /* "ROOTFS", "COMMAND [ARG...]", or "" */
	const char *summary;     /* one line */
	const char *description; /* plain text for the man page, paragraphs separated by an empty line; or NULL */
	const struct graft_option *options;
	size_t n_options;
	int min_arguments, max_arguments; /* positional; max -1 = any */
	bool stop_at_first_argument;      /* global options: the rest belongs to a subcommand */
	bool abbreviations;
	/* Go's style. stop_at_first_argument marks the program itself, which alone has --version. A sub-command's name ends the options. */
	bool go_style;
	bool interspersed;                              /* go_style: options may stand behind positional arguments */
	bool bundled;                                   /* go_style: "-io FILE" is "-i -o FILE" */
	bool hidden;                                    /* a sub-command that is accepted, not shown */
	const char *const *aliases;                     /* further names of a sub-command, NULL-terminated; or NULL */
	const struct graft_command *const *subcommands; /* NULL-terminated, or NULL */
	const struct graft_manual_section *sections;    /* of the man page; the root command's only */
	size_t n_sections;
	int (*run)(void *context, int argc, char **argv); /* free use of the program */
};

/*
 * OK, HELP, USAGE, VERSION go with a return value of 0. With -1: WRONG = the words do not fit the table; MISSING = too few arguments;
 * OK = an option's parser refused the value, and the message stands for itself.
 */
enum graft_parse_result {
	GRAFT_PARSE_OK,
	GRAFT_PARSE_HELP,
	GRAFT_PARSE_USAGE,
	GRAFT_PARSE_VERSION,
	GRAFT_PARSE_WRONG,
	GRAFT_PARSE_MISSING,
};

/*
 * Parses argv[1..argc-1]; argv[0] is ignored. Positional arguments are moved behind the options; *ret_first is the index of the first
 * of them. *ret_result says when --help, --usage or --version was met (parsing stops there). -1: GRAFT_INVALID with the
 * specific message ("unrecognized option '--x'", "option requires an argument -- 'd'", "Too many arguments").
 */
int graft_options_parse(const struct graft_command *command, int argc, char **argv, void *target, int *ret_first,
			enum graft_parse_result *ret_result, struct graft_error *err);

/* What a parse in Go's style knows besides its command. */
struct graft_options_scope {
	const struct graft_command
	    *inherited;         /* its options are accepted where the command has none of that name; NULL = none */
	void *inherited_target; /* of those options' parsers */
	const char *(*variable)(
	    const char *name); /* the value of an environment variable, NULL when it is not defined */
	/* Told of each use of the command's own options, words and variables alike, before its parser is; NULL = nobody. */
	void (*used)(void *arg, const struct graft_option *option, const char *value);
	void *arg;
};

/*
 * graft_options_parse() with a scope. When all words are read, an option of the command itself that was not given takes the value of its first variable
 * that is defined; for a flag an empty one means false. A refused value of a variable is an error that names the variable. Commands have at most 64 options.
 */
int graft_options_parse_in(const struct graft_options_scope *scope, const struct graft_command *command, int argc,
			   char **argv, void *target, int *ret_first, enum graft_parse_result *ret_result,
			   struct graft_error *err);

/* The sub-command of that name or alias, or NULL. */
const struct graft_command *graft_options_find_command(const struct graft_command *command, const char *name);

/* Texts from the table. `program` is the full name ("nvidia-container-cli configure"). */
void graft_options_help(const struct graft_command *command, const char *program, struct graft_buffer *out);
void graft_options_usage(const struct graft_command *command, const char *program, struct graft_buffer *out);
/*
 * What a person reads after a failed parse: the message, or for a missing argument the synopsis, then where help is. `result` is what
 * graft_options_parse() gave: WRONG or MISSING.
 */
void graft_options_complain(const struct graft_command *command, const char *program, enum graft_parse_result result,
			    const struct graft_error *err, struct graft_buffer *out);
/* Appends text for scdoc, with what it would read as markup escaped. */
void graft_manual_escape(struct graft_buffer *out, const char *text);
/* Man page in scdoc's input format, with all commands that can be run; completions of programs without nested commands for "bash", "zsh" or "fish". `root` is the program's top command. */
void graft_options_man(const struct graft_command *root, int section, struct graft_buffer *out);
int graft_options_completion(const struct graft_command *root, const char *shell, struct graft_buffer *out,
			     struct graft_error *err);

/*
 * What could come next behind argv[1..argc-1], a word a line, for shells that ask the program: the sub-commands of the last command; behind a word with dashes the
 * options that begin so, behind an option with a value its values, too. Words that nobody knows are passed over.
 */
void graft_options_candidates(const struct graft_command *root, int argc, char *const *argv, struct graft_buffer *out);

#endif
