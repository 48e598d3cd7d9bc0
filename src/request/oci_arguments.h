/* SPDX-License-Identifier: Apache-2.0 */
/* oci_arguments: what a shim in front of an OCI runtime reads of its command line (SPEC runtime-and-hook 3.2, 3.3, 3.5; Q2, Q3). Pure. */
#ifndef GRAFT_REQUEST_OCI_ARGUMENTS_H
#define GRAFT_REQUEST_OCI_ARGUMENTS_H

#include <stdbool.h>

#include "base/error.h"

struct graft_oci_arguments {
	const char *subcommand;       /* the first word that is no option of the runtime's own; NULL = none */
	bool create;                  /* it is "create" */
	bool version;                 /* --version (or -v, as runc and crun have it) before the subcommand */
	const char *bundle;           /* NULL = the working directory */
	const char *log, *log_format; /* NULL = not given */
	bool debug;
};

/* -1: GRAFT_INVALID "bundle option requires an argument". The strings are argv's. */
int graft_oci_arguments_read(int argc, char *const *argv, struct graft_oci_arguments *ret_arguments,
			     struct graft_error *err);

#endif
