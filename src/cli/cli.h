/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: what the commands of nvidia-container-cli share: the global options, the log, capabilities, messages, phases.
 *
 * A command is a `struct graft_command` whose run() gets the `struct cli` and its own words (argv[0] is the command's name) and returns
 * the exit status. Results go to stdout, everything else to stderr.
 */
#ifndef GRAFT_CLI_CLI_H
#define GRAFT_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/caps.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "host/discover.h"
#include "request/request.h"

#define CLI_PROGRAM "nvidia-container-cli"

struct cli_global_options {
	const char *debug;   /* NULL = no log */
	const char *root;    /* NULL = "/" */
	const char *ldcache; /* NULL = /etc/ld.so.cache */
	bool load_kmods, no_pivot, no_create_imex_channels, timing;
	bool user_given; /* --user: uid and gid are set */
	uid_t uid;
	gid_t gid;
	int nvml_timeout_ms; /* 0 = wait as long as it takes */
};

struct graft_plan;

struct cli {
	struct cli_global_options global;
	/* Messages are one line, cause and remedy, for callers that show no more of them (container engines). */
	bool one_line;
	/* Called by configure when all is decided and the container is not touched yet, with the pid of its process; may be NULL. */
	void (*planned)(struct cli *cli, const struct graft_plan *plan, pid_t pid);
	struct graft_log_file log_file; /* when a debug log is open */
	int log_fd;
	const struct graft_log *log; /* NULL = none */
	struct graft_caps caps;
	uint64_t started_us, phase_us; /* monotonic clock: start of the program, end of the last phase */
};

extern const struct graft_command cli_root, cli_configure, cli_info, cli_list, cli_plan;

/* Fills the defaults. Closes what is open. */
void cli_init(struct cli *cli);
void cli_done(struct cli *cli);
/* Runs the program; returns its exit status. */
int cli_main(struct cli *cli, int argc, char **argv);

/*
 * Parses a command's words. Returns 0 to go on; otherwise everything was printed, and *ret_status is the exit status
 * (0 for --help and its kin, 1 for errors).
 */
int cli_parse(const struct cli *cli, const struct graft_command *command, int argc, char **argv, void *options,
	      int *ret_first, int *ret_status);

/*
 * Opens the debug log, unless one is open, and tells it who we are and what for. Without one, or if it cannot be opened, nothing happens.
 * cli_open_log_file: the part that opens `path`.
 */
void cli_open_log_file(struct cli *cli, const char *path);
void cli_open_log(struct cli *cli, const struct graft_request *request);
/*
 * Limits capabilities: `needed` = all of them or failure (configure); otherwise only root gives up what it has (info, list).
 * Failure is printed; returns the exit status, 0 = go on.
 */
int cli_limit(struct cli *cli, bool needed);
/* Changes to the capabilities of a step; failure is printed. */
int cli_enter(struct cli *cli, enum graft_caps_step step);

/*
 * Prints "nvidia-container-cli: <prefix>: <error>" and the hint on a line of its own (or, see above, on the same one), tells the log, and returns
 * 1.
 */
int cli_fail(const struct cli *cli, const char *prefix, const struct graft_error *err);
/* A line on stderr when the driver is Graft's simulated one. NULL is fine. */
void cli_tell_simulated(const struct graft_inventory *inventory);
/* Writes to stdout; a failure to write is printed. Returns the exit status. Releases the buffer. */
int cli_print(const struct cli *cli, struct graft_buffer *out);
/* Ends a phase: with --timing its name and duration go to stderr. */
void cli_phase(struct cli *cli, const char *name);

/* --load-kmods, if it was given. Returns the exit status. `request` may be NULL. */
int cli_load_kmods(struct cli *cli, const struct graft_request *request);
/* Makes a pipeline with the global options, capabilities and phases of this program. */
struct cli_pipeline;
void cli_pipeline_start(struct cli *cli, const struct graft_request *request, struct cli_pipeline *ret_pipeline);
/* The options of discovery that follow from the global ones. */
void cli_host_options(const struct cli *cli, const struct graft_request *request,
		      struct graft_host_options *ret_options);

/* --user and --pid (SPEC libnvidia-container 3.6). Errors: "input error: parse user/group failed: ...". */
int cli_parse_user(const char *text, uid_t *ret_uid, gid_t *ret_gid, struct graft_error *err);
int cli_parse_pid(const char *text, pid_t *ret_pid, struct graft_error *err);

/* The text of --version. */
void cli_version(struct graft_buffer *out);
/* Its lines about the build, which the library's have too. */
void cli_version_build(struct graft_buffer *out);
/* The revision of the source, "unknown" when it was not built from a checkout. */
const char *cli_revision(void);

#endif
