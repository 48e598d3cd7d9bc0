/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_arguments: what a shim in front of an OCI runtime reads from its command line (SPEC
 * runtime-and-hook 3.2, 3.3, 3.5, Q2, Q3). Pure.
 *
 * The command line is read as runc and crun read it: global options, some of which take the next
 * argument, then the subcommand, then its own options. A container named "create", a value
 * "create", or a --version for the program that `exec` runs therefore has no effect here.
 */
#ifndef GRAFT_REQUEST_OCI_ARGUMENTS_H
#define GRAFT_REQUEST_OCI_ARGUMENTS_H

#include <stdbool.h>

#include "base/error.h"

struct graft_oci_arguments {
	/* The first argument that is neither a global option nor the value of one; NULL = none */
	const char *subcommand;
	bool create;  /* the subcommand is "create" */
	bool version; /* --version, -v or -V before the subcommand */
	/* The last --bundle or -b, before or after the subcommand; NULL = the working directory */
	const char *bundle;
	const char *log, *log_format; /* the last of each before the subcommand; NULL = not given */
	bool debug;
	/*
	 * Of `create`: the last --pid-file, and the only argument that is not an option. NULL = not
	 * given, empty, or more than one argument.
	 */
	const char *pid_file, *container;
	int n_global; /* number of arguments before the subcommand, including argv[0] */
	/*
	 * All options, global ones and those of `create`, are known and spelled so that runc and
	 * crun read them alike, and none makes them do anything but `create` a container of
	 * config.json. Then the low-level runtime reads `container` and `pid_file` in the same way,
	 * or refuses the command line.
	 */
	bool plain;
};

/*
 * Reads a command line. argv[0] is ignored, and argv may have fewer than argc arguments (a NULL
 * ends it). The strings are argv's. Returns -1 with GRAFT_INVALID "bundle option requires an
 * argument", for `create` and without a subcommand; the low-level runtime judges everything else.
 */
int graft_oci_arguments_read(int argc, char *const *argv, struct graft_oci_arguments *ret_arguments,
			     struct graft_error *err);

#endif
