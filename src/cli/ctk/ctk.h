/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctk: nvidia-ctk, the program that sets a host up for GPU containers (SPEC ctk-and-cdi 1): what
 * its commands share. See docs/nvidia-ctk.md.
 *
 * A command is a `struct graft_command` with CTK_WORK(): its work() receives the options, which
 * start with a struct ctk_base. Results go to stdout, everything else to stderr. A group is a
 * command without work(); without a sub-command it prints its help.
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
	const char *words; /* the program and its commands: "nvidia-ctk cdi generate" */
	bool debug, quiet;
	const char *config;       /* --config; NULL: search the usual places (start/config_file.h) */
	struct graft_log log;     /* to stderr: INFO and above; everything with --debug, only ERROR with --quiet */
	struct graft_log steps;   /* the same for the library, which logs each step as INFO: shown with --debug only */
	struct graft_log waiting; /* long waits of the library, for a person at a terminal; `steps` has them, too */
	long long started_us;     /* time on the monotonic clock */
	bool no_variables;        /* ignore the environment variables of options */
	/*
	 * The options that the last command got from the command line or from variables, each as
	 * "--name=value".
	 */
	const char **given;
	size_t n_given;
	const struct graft_command *command; /* that command; NULL = none was parsed */
	const struct ctk_sink *sink;         /* NULL: write files to disk */
	const char *engine_root;             /* the root in which programs of engines are run; NULL: ours */
	struct graft_arena *arena;           /* everything that lives as long as the process */
};

/* Receives a command's files instead of the disk, to find out what the command would write. */
struct ctk_sink {
	int (*write)(void *arg, const char *path, const void *bytes, size_t length, struct graft_error *err);
	void *arg;
};

/*
 * Must be the first member of every command's options, so that work() and shared option parsers
 * find the program.
 */
struct ctk_base {
	struct ctk *ctk;
	int argc; /* the positional arguments */
	char **argv;
};

/*
 * A list option: may be given several times; each value is split at commas. The strings belong to
 * the arena.
 */
struct ctk_list {
	const char **items;
	size_t n;
	bool given; /* by an option or a variable, which has replaced the default */
};

/* What all commands of this program have in common, for use in their tables. */
#define CTK_COMMAND .arguments = "", .max_arguments = -1, .go_style = true, .interspersed = true

/* A command's function, and the type of its options followed by the defaults that are not zero. */
#define CTK_WORK(function, type, ...) \
	.work = (function), .defaults = &(const type){ __VA_ARGS__ }, .defaults_size = sizeof(type)

/* Runs the program. Returns its exit status. */
int ctk_main(int argc, char **argv);
/*
 * The same for another program that shares its messages: sets up standard descriptors, logs and
 * memory, and calls `run`, whose result is the exit status.
 */
int ctk_run_program(const char *name, int argc, char **argv, int (*run)(struct ctk *ctk, int argc, char **argv));
/* Sets what the logs show by the members `debug` and `quiet`. */
void ctk_set_log_level(struct ctk *ctk);

/*
 * Parses a command's arguments into `options`, which must start with a struct ctk_base; it is
 * filled in. Accepts options before and after positional arguments, the program's own options
 * anywhere, aliases, and environment variables for options that are not given. Returns 0 to
 * continue, with argv[*ret_first] the first positional argument; or -1 if nothing is left to do
 * (help was printed, a mistake reported, a sub-command run), with *ret_status the exit status.
 */
int ctk_parse(struct ctk *ctk, const struct graft_command *command, void *options, int argc, char **argv,
	      int *ret_first, int *ret_status);
/*
 * Parses the arguments of a command, argv[0] being its name, runs it, and reports its error if it
 * fails. Returns the exit status.
 */
int ctk_run_command(struct ctk *ctk, const struct graft_command *command, int argc, char **argv);
/* The same for the arguments that follow the name; those that are NULL or "" are left out. */
int ctk_run_words(struct ctk *ctk, const struct graft_command *command, const char *const *words, size_t n);
/*
 * Option parser for a struct ctk_list at the option's offset. Each value is split at commas; an
 * empty one adds nothing. The first use replaces the default. Returns 0, or -1 if out of memory.
 */
int ctk_option_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err);

/*
 * Lists the options that a command would get from the environment alone, formatted like `given`. If
 * out of memory, the arena's failed flag is set.
 */
void ctk_read_variables(struct ctk *ctk, const struct graft_command *command, const char ***ret_words, size_t *ret_n);

/*
 * Logs one error line, "<what>: <error>. <what to do>"; an empty `format` omits the first part.
 * Returns 1.
 */
__attribute__((format(printf, 3, 4))) int ctk_fail(const struct ctk *ctk, const struct graft_error *err,
						   const char *format, ...);
/*
 * Writes the buffer to stdout and releases it. Returns 0, or 1 after reporting that it could not be
 * written.
 */
int ctk_print(const struct ctk *ctk, struct graft_buffer *out);
/* The same for bytes that are borrowed. */
int ctk_print_bytes(const struct ctk *ctk, const char *bytes, size_t length);

/*
 * Warns of values of config.toml that no program understands; another version may, so they stay.
 * Returns 0, or -1 if out of memory.
 */
struct graft_config;
int ctk_warn_of_mistakes(const struct ctk *ctk, const struct graft_config *config, struct graft_error *err);

/* Returns whether the last argument asks for completion candidates instead of a normal run. */
bool ctk_is_completion_request(int argc, char *const *argv);

/* ---- the commands ---- */

extern const struct graft_command ctk_program; /* the program itself, for texts made from its tables */
extern const struct graft_command ctk_completion;
extern const struct graft_command ctk_config;
extern const struct graft_command ctk_doctor;
extern const struct graft_command ctk_hook;
extern const struct graft_command ctk_system_create_dev_char_symlinks;
extern const struct graft_command ctk_system_create_device_nodes;
extern const struct graft_command ctk_lease_acquire, ctk_lease_doctor, ctk_lease_explain, ctk_lease_history,
    ctk_lease_list, ctk_lease_metrics, ctk_lease_reclaim, ctk_lease_release, ctk_lease_run, ctk_lease_mps;
extern const struct graft_command ctk_runtime_configure, ctk_runtime_remove;
extern const struct graft_command ctk_cdi_generate, ctk_cdi_list, ctk_cdi_refresh, ctk_cdi_transform_root,
    ctk_cdi_validate;

#endif
