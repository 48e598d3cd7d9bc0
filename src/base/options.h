/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: one table of options per command; parsing, --help, --usage, man page and shell completion come from it.
 *
 * GNU argp's behaviour, which users of nvidia-container-cli rely on (SPEC libnvidia-container 3.1): long options may be
 * abbreviated when unambiguous (flag of the command), --opt=VALUE and --opt VALUE, clustered short options, optional
 * values only attached, "--" ends options, -? --help --usage -V --version. A command may also ask for Go's style
 * (single dash long options, no abbreviations, --bool=false) and Go's words for what is wrong.
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
	bool go_style;
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

/* Texts from the table. `program` is the full name ("nvidia-container-cli configure"). */
void graft_options_help(const struct graft_command *command, const char *program, struct graft_buffer *out);
void graft_options_usage(const struct graft_command *command, const char *program, struct graft_buffer *out);
/*
 * What a person reads after a failed parse: the message, or for a missing argument the synopsis, then where help is. `result` is what
 * graft_options_parse() gave: WRONG or MISSING.
 */
void graft_options_complain(const struct graft_command *command, const char *program, enum graft_parse_result result,
			    const struct graft_error *err, struct graft_buffer *out);
/* Man page in scdoc's input format; completions for "bash", "zsh" or "fish". `root` is the program's top command. */
void graft_options_man(const struct graft_command *root, int section, struct graft_buffer *out);
int graft_options_completion(const struct graft_command *root, const char *shell, struct graft_buffer *out,
			     struct graft_error *err);

#endif
