/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: one table of options per command, from which the parser, --help, --usage, the man page
 * and the shell completions are derived.
 *
 * Behaves like GNU argp, which users of nvidia-container-cli rely on (SPEC libnvidia-container
 * 3.1): long options may be abbreviated if unambiguous (if the command allows it), --opt=VALUE and
 * --opt VALUE, clustered short options, optional values only if attached, "--" ends the options, -?
 * --help --usage -V --version.
 *
 * A command may also ask for Go's style (long options with a single dash, no abbreviations,
 * --bool=false, aliases, values from the environment; -h --help and, for a program, -v --version)
 * with Go's error messages (SPEC ctk-and-cdi 1.0).
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
	/*
	 * Called for each occurrence, in order. `value` is NULL for flags and for optional values
	 * that are absent. Returning -1 with the error set stops parsing.
	 */
	int (*parse)(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
	size_t offset;             /* of the member of `target`, for the ready-made parsers below */
	const void *extra;         /* for use by `parse` */
	const char *const *values; /* values that completion offers, NULL-terminated; or NULL */
	/* For Go's style only. Both lists are NULL-terminated, or NULL. */
	const char *const *aliases; /* additional long names or letters */
	/* Variables. The first one that is defined applies if the option is not given. */
	const char *const *environment;
};

/*
 * Ready-made parsers: set a bool (honouring a value, as in Go's --flag=false); store the pointer to
 * the value (const char *).
 */
int graft_option_set_true(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int graft_option_set_string(void *target, const struct graft_option *option, const char *value,
			    struct graft_error *err);

/* A section of the man page that follows the options; `text` is scdoc source. */
struct graft_manual_section {
	const char *title;
	const char *text;
};

/* In a command: its table of options. */
#define GRAFT_OPTIONS(rows) .options = (rows), .n_options = GRAFT_COUNT(rows)

/* The sections of a man page, in a command. Programs that are built to be small leave them out. */
#ifdef GRAFT_WITHOUT_DOCS
#define GRAFT_MANUAL(list) .sections = NULL, .n_sections = 0 * GRAFT_COUNT(list)
#else
#define GRAFT_MANUAL(list) .sections = (list), .n_sections = GRAFT_COUNT(list)
#endif

struct graft_command {
	const char *name;          /* "configure"; messages put the program's name in front */
	const char *arguments;     /* "ROOTFS", "COMMAND [ARG...]", or "" */
	const char *const *values; /* what completion offers for the arguments, NULL-terminated; NULL: files */
	const char *summary;       /* one line */
	const char *description;   /* plain text for the man page, paragraphs separated by empty lines; or NULL */
	const struct graft_option *options;
	size_t n_options;
	int min_arguments, max_arguments; /* positional; max -1: any number */
	bool stop_at_first_argument;      /* global options: the rest belongs to a sub-command */
	bool abbreviations;
	/*
	 * Go's style. stop_at_first_argument marks the program itself, which alone has --version.
	 * The name of a sub-command ends the options.
	 */
	bool go_style;
	bool interspersed;                              /* go_style: options may follow positional arguments */
	bool bundled;                                   /* go_style: "-io FILE" is "-i -o FILE" */
	bool hidden;                                    /* a sub-command that is accepted but not shown */
	const char *const *aliases;                     /* other names of a sub-command, NULL-terminated; or NULL */
	const struct graft_command *const *subcommands; /* NULL-terminated, or NULL */
	const struct graft_manual_section *sections;    /* of the man page; only used for the root command */
	size_t n_sections;
	int (*run)(void *context, int argc, char **argv); /* for use by the program */
	/*
	 * Instead of run(), for programs that parse first: receives a copy of `defaults` with the
	 * options in it. Returns the exit status, or -1 with the error set.
	 */
	int (*work)(void *target, struct graft_error *err);
	const void *defaults;
	size_t defaults_size;
};

/*
 * OK, HELP, USAGE and VERSION come with a return value of 0. With -1: WRONG, the arguments do not
 * match the table; MISSING, too few arguments; OK, an option's parser refused its value, and its
 * message is complete.
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
 * Parses argv[1..argc-1]; argv[0] is ignored. Moves positional arguments after the options;
 * *ret_first is the index of the first of them. *ret_result reports --help, --usage or --version,
 * where parsing stops. Returns 0, or -1 with GRAFT_INVALID and a specific message ("unrecognized
 * option '--x'", "option requires an argument -- 'd'", "Too many arguments").
 */
int graft_options_parse(const struct graft_command *command, int argc, char **argv, void *target, int *ret_first,
			enum graft_parse_result *ret_result, struct graft_error *err);

/* What a parse in Go's style needs in addition to its command. */
struct graft_options_scope {
	/* Its options are accepted unless the command has one of the same name. May be NULL. */
	const struct graft_command *inherited;
	void *inherited_target; /* target of those options */
	/* Returns the value of an environment variable, or NULL if it is not defined. */
	const char *(*variable)(const char *name);
	/*
	 * Called for each use of the command's own options, from arguments and variables alike,
	 * before the option is parsed. May be NULL.
	 */
	void (*used)(void *arg, const struct graft_option *option, const char *value);
	void *arg;
};

/*
 * graft_options_parse() with a scope, for a command in Go's style. After the last argument, each of
 * the command's own options that was not given takes the value of its first variable that is
 * defined; for a flag, an empty value means false. A variable whose value is refused is an error
 * that names the variable. Commands have at most 64 options.
 */
int graft_options_parse_in(const struct graft_options_scope *scope, const struct graft_command *command, int argc,
			   char **argv, void *target, int *ret_first, enum graft_parse_result *ret_result,
			   struct graft_error *err);

/* Returns the sub-command with that name or alias, or NULL. */
const struct graft_command *graft_options_find_command(const struct graft_command *command, const char *name);

/*
 * Generate the text of --help and --usage. `program` is the full name ("nvidia-container-cli
 * configure").
 */
void graft_options_help(const struct graft_command *command, const char *program, struct graft_buffer *out);
void graft_options_usage(const struct graft_command *command, const char *program, struct graft_buffer *out);
/*
 * Writes what the user should see after a failed parse: the message (for a missing argument, the
 * synopsis) and where to find help. `result` is WRONG or MISSING, from graft_options_parse().
 */
void graft_options_complain(const struct graft_command *command, const char *program, enum graft_parse_result result,
			    const struct graft_error *err, struct graft_buffer *out);
/*
 * Returns the option that was probably meant, judging by the message of a parse that failed on an
 * unknown one; NULL if the message is another one, or if no option is near. `inherited` may be
 * NULL.
 */
const char *graft_options_meant_option(const struct graft_command *command, const struct graft_command *inherited,
				       const struct graft_error *err);
/* Appends it to the message: " (did you mean '--NAME'?)". */
void graft_options_suggest_option(const struct graft_command *command, struct graft_error *err);
/* Returns the sub-command that was probably meant by `name`; NULL if none is near. */
const char *graft_options_meant_command(const struct graft_command *command, const char *name);
/*
 * Returns the value that was probably meant, from those that completion offers for the option; NULL
 * if the given one is among them, if none is near, or if completion offers none.
 */
const char *graft_options_meant_value(const struct graft_option *option, const char *value);
/* Appends text for scdoc, escaping everything that scdoc would take for markup. */
void graft_manual_escape(struct graft_buffer *out, const char *text);
/*
 * Generate the man page in scdoc's input format, with all commands that can be run; and completions
 * for "bash", "zsh" or "fish", for programs without nested commands. `root` is the program's
 * top-level command.
 */
void graft_options_man(const struct graft_command *root, int section, struct graft_buffer *out);
int graft_options_completion(const struct graft_command *root, const char *shell, struct graft_buffer *out,
			     struct graft_error *err);

/*
 * Lists what could follow argv[1..argc-1], one candidate a line, for shells that ask the program:
 * the sub-commands of the last command; after an argument that begins with a dash, the options that
 * begin with it; after an option that takes a value, also its values. Unknown arguments are
 * ignored.
 */
void graft_options_candidates(const struct graft_command *root, int argc, char *const *argv, struct graft_buffer *out);

#endif
