/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctk: nvidia-ctk, the program that sets a host up for GPU containers (SPEC ctk-and-cdi 1): what its commands share. docs/nvidia-ctk.md.
 *
 * A command is a `struct graft_command` whose run() gets the `struct ctk` and its own words (argv[0] is the command's word) and returns the exit status.
 * Results go to stdout, all else to stderr. A group is a command without run(): without a sub-command it prints its help.
 */
#ifndef GRAFT_CLI_CTK_CTK_H
#define GRAFT_CLI_CTK_CTK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"

#define CTK_PROGRAM "nvidia-ctk"

struct ctk {
	const char *program; /* CTK_PROGRAM */
	const char *words;   /* the program and the commands so far: "nvidia-ctk cdi generate" */
	bool debug, quiet;
	const char *config;     /* --config; NULL = the usual places (cli/config.h) */
	struct graft_log log;   /* lines on stderr: INFO and up; with --debug all, with --quiet ERROR only */
	struct graft_log steps; /* the same for the library, whose INFO is each step it takes: shown with --debug */
	long long started_us;   /* monotonic clock */
	bool no_variables;      /* options of commands do not look at environment variables */
	/* The options that the last command was given, by words or variables, each as one word: "--name=value". */
	const char **given;
	size_t n_given;
	const struct ctk_sink *sink; /* NULL = files are written */
	struct graft_arena *arena;   /* everything of one run */
};

/* Where a command's files go instead of the disk: for a command that is run to see what it would write. */
struct ctk_sink {
	int (*write)(void *arg, const char *path, const void *bytes, size_t length, struct graft_error *err);
	void *arg;
};

/* First member of every command's options, so that ready-made parsers find the arena. */
struct ctk_base {
	struct ctk *ctk;
};

/* A list option: given several times, each split at commas. The strings are in the arena. */
struct ctk_list {
	const char **items;
	size_t n;
	bool given; /* by an option or a variable: what stood there as the default is gone */
};

/* What all commands of this program have in common, for their tables. */
#define CTK_COMMAND .arguments = "", .max_arguments = -1, .go_style = true, .interspersed = true

/* Runs the program; returns its exit status. */
int ctk_main(int argc, char **argv);

/*
 * Parses a command's words into `options`, whose first member is a struct ctk_base, which is filled in: flags before or after positional words, the
 * program's own flags anywhere, aliases, variables of flags that were not given. 0: go on, argv[*ret_first] is the first positional word. -1: all is done
 * (help was printed, a complaint made, a sub-command run), and *ret_status is the exit status.
 */
int ctk_parse(struct ctk *ctk, const struct graft_command *command, void *options, int argc, char **argv,
	      int *ret_first, int *ret_status);
/*
 * Parser of a struct ctk_list at the option's offset: each value is split at commas, an empty one adds nothing. The first use takes the place of the default.
 */
int ctk_option_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err);

/* What a command's options would be given by variables alone, in the form of `given`. Memory failures are the arena's. */
void ctk_read_variables(struct ctk *ctk, const struct graft_command *command, const char ***ret_words, size_t *ret_n);

/* Prints one error line, "<what>: <error>. <what to do>", and returns 1. An empty `format` leaves the first part out. */
__attribute__((format(printf, 3, 4))) int ctk_fail(const struct ctk *ctk, const struct graft_error *err,
						   const char *format, ...);
/* Writes to stdout and releases the buffer; 0, or 1 when it could not be written, which is told. */
int ctk_print(const struct ctk *ctk, struct graft_buffer *out);

/* Whether the last word asks for what could come next on the command line, instead of running it. */
bool ctk_is_completion_request(int argc, char *const *argv);

/* ---- the commands ---- */

extern const struct graft_command ctk_program; /* the program itself, for texts from its tables */
extern const struct graft_command ctk_completion;
extern const struct graft_command ctk_config;
extern const struct graft_command ctk_doctor;
extern const struct graft_command ctk_hook;
extern const struct graft_command ctk_system_create_dev_char_symlinks;
extern const struct graft_command ctk_system_create_device_nodes;
extern const struct graft_command ctk_runtime_configure;
extern const struct graft_command ctk_cdi_generate, ctk_cdi_list, ctk_cdi_refresh, ctk_cdi_transform_root,
    ctk_cdi_validate;

#endif
