/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: what the commands of nvidia-container-cli share: the global options, the log, capabilities,
 * messages, phases.
 *
 * A command is a `struct graft_command` whose run() gets the `struct cli` and the command's own
 * arguments (argv[0] is its name) and returns the exit status. Results go to stdout, everything
 * else to stderr.
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
#include "plan/plan.h"
#include "request/request.h"
#include "start/lease_claim.h"

#define CLI_PROGRAM "nvidia-container-cli"

struct cli_global_options {
	const char *debug;   /* NULL = no log */
	const char *root;    /* NULL = "/" */
	const char *ldcache; /* NULL = /etc/ld.so.cache */
	bool load_kmods, no_pivot, no_create_imex_channels, timing;
	bool user_given; /* by --user: uid and gid are set */
	uid_t uid;
	gid_t gid;
	int nvml_timeout_ms; /* 0 = no limit */
};

struct graft_config;
struct graft_plan;

struct cli {
	struct cli_global_options global;
	/* Print error and hint on one line, for callers that show only one (container engines). */
	bool one_line;
	/*
	 * Called by configure once everything is decided, before the container is changed; may be
	 * NULL.
	 */
	void (*planned)(struct cli *cli, const struct graft_plan *plan);
	struct graft_lease_for lease; /* what is known of the container that configure is called for */
	const char **sources;         /* what the container's config.json mounts, if that was read */
	size_t n_sources;
	const char *cwd;                   /* in which its process will start, if that was read */
	bool hooks_follow;                 /* its config.json has hooks that run later */
	bool own_shm;                      /* it was given a /dev/shm */
	const struct graft_config *config; /* the caller has read it; NULL: read it if there is a claim */
	struct graft_log_file log_file;    /* valid while a debug log is open */
	int log_fd;
	bool log_tried;              /* the debug log was opened, or could not be */
	const struct graft_log *log; /* NULL = none */
	struct graft_caps caps;
	uint64_t started_us, phase_us; /* monotonic clock: start of the program, end of the last phase */
};

extern const struct graft_command cli_root, cli_configure, cli_info, cli_list, cli_plan;

/* cli_init: sets the defaults. cli_done: closes what is open. */
void cli_init(struct cli *cli);
void cli_done(struct cli *cli);
/* Runs the program; returns its exit status. */
int cli_main(struct cli *cli, int argc, char **argv);

/*
 * Parses a command's arguments. 0: continue. -1: everything has been printed, and *ret_status is
 * the exit status (0 for --help and similar, 1 for errors).
 */
int cli_parse(const struct cli *cli, const struct graft_command *command, int argc, char **argv, void *options,
	      int *ret_first, int *ret_status);

/* Opens `path` as the debug log. If that fails, a warning on stderr says why; there is no log. */
void cli_open_log_file(struct cli *cli, const char *path);
/*
 * Limits capabilities. `needed`: fail unless all of them are permitted (configure); otherwise only
 * root gives up what it has (info, list). Prints errors. Returns the exit status, 0 = continue.
 */
int cli_limit(struct cli *cli, bool needed);

/*
 * Prints "nvidia-container-cli: <step>: <error>" and the hint, on a line of its own or, if
 * cli->one_line, on the same one. Logs the error, and returns 1.
 */
int cli_fail(const struct cli *cli, const struct graft_error *err);
/* The same for an error without a step: sets the step first. */
int cli_fail_in(const struct cli *cli, enum graft_step step, struct graft_error *err);
/* Prints a note on stderr if the driver is Graft's simulated one. NULL is allowed. */
void cli_tell_simulated(const struct graft_inventory *inventory);
/* Prints a warning on stderr if the cache that --ldcache names could not be used. */
void cli_warn_of_ldcache(const struct cli *cli, const struct graft_inventory *inventory);
/* Writes the buffer to stdout and releases it. Prints errors. Returns the exit status. */
int cli_print(const struct cli *cli, struct graft_buffer *out);
/* Ends a phase. With --timing, prints its name and duration on stderr. */
void cli_phase(struct cli *cli, const char *name);

/*
 * Initialises a pipeline with the program's global options, capabilities and phases. Opens the
 * debug log, unless that was tried before, and writes its first lines. `request` may be NULL.
 */
struct graft_pipeline;
void cli_pipeline_start(struct cli *cli, const struct graft_request *request, struct graft_pipeline *ret_pipeline);
/*
 * The common start of info, list and configure: pipeline, capabilities (needs_capabilities: as
 * `needed` of cli_limit()), --load-kmods. Prints errors. Returns the exit status, 0 = continue.
 */
int cli_begin(struct cli *cli, const struct graft_request *request, bool needs_capabilities,
	      struct graft_pipeline *ret_pipeline);
/*
 * The options of discovery that follow from the global options and, unless NULL, from the request.
 */
void cli_host_options(const struct cli *cli, const struct graft_request *request,
		      struct graft_host_options *ret_options);

/*
 * Takes a lease if the request's devices are a claim, or if the caller's configuration enforces
 * leases, and replaces the claim by the devices of the lease. Otherwise config.toml is not even
 * searched for, since the options contain everything, and the lease's id is NULL.
 */
int cli_claim(const struct cli *cli, const struct graft_lease_for *whom, struct graft_request *request,
	      struct graft_lease *ret_lease, struct graft_error *err);

/*
 * Parse the values of --user and --pid (SPEC libnvidia-container 3.6). cli_parse_user: `text` NULL
 * = the caller's own IDs. -1: GRAFT_INVALID, "input error: parse user/group failed" and "input
 * error: parse pid failed".
 */
int cli_parse_user(const char *text, uid_t *ret_uid, gid_t *ret_gid, struct graft_error *err);
int cli_parse_pid(const char *text, pid_t *ret_pid, struct graft_error *err);

#endif
