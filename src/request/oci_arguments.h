/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_arguments: what a shim in front of an OCI runtime reads of its command line (SPEC runtime-and-hook 3.2, 3.3, 3.5; Q2, Q3). Pure.
 *
 * The line is read as runc and crun read it: global options, of which some take the next word, then the subcommand, then its own options. So a
 * container that is called "create", a value "create", or a --version of the program that `exec` runs, is nothing to us.
 */
#ifndef GRAFT_REQUEST_OCI_ARGUMENTS_H
#define GRAFT_REQUEST_OCI_ARGUMENTS_H

#include <stdbool.h>

#include "base/error.h"

struct graft_oci_arguments {
	const char *subcommand; /* the first word that is neither a global option nor the value of one; NULL = none */
	bool create;            /* it is "create" */
	bool version;           /* --version, -v or -V before it */
	const char *bundle;     /* the last --bundle or -b, before or behind it; NULL = the working directory */
	const char *log, *log_format; /* the last of each, before it; NULL = not given */
	bool debug;
	/* Of `create`: the last --pid-file, and the only word that is no option; NULL = not given or empty; several words. */
	const char *pid_file, *container;
	int n_global; /* words of argv before the subcommand, argv[0] among them */
	/*
	 * All options, global ones and those of `create`, are known to us and spelled so that runc and crun read them alike, and none makes them do something else than
	 * `create` a container of config.json. So `container` and `pid_file` are what the low-level runtime takes for them, or it refuses the line.
	 */
	bool plain;
};

/*
 * argv[0] is not looked at, and argv may hold fewer than argc words (a NULL ends it). -1: GRAFT_INVALID "bundle option requires an
 * argument", for `create` and where there is no subcommand; any other is the low-level runtime's to judge. The strings are argv's.
 */
int graft_oci_arguments_read(int argc, char *const *argv, struct graft_oci_arguments *ret_arguments,
			     struct graft_error *err);

#endif
