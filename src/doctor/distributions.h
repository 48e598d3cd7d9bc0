/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distributions: Kubernetes in one piece, which keeps its engine's files in places of its own, and
 * what an installer must be given there (docs/gpu-operator.md, "Engines"). The only list of them.
 */
#ifndef GRAFT_DOCTOR_DISTRIBUTIONS_H
#define GRAFT_DOCTOR_DISTRIBUTIONS_H

#include <stddef.h>

struct graft_distribution {
	const char *name;
	const char *file;     /* it is there on such a node */
	const char *line;     /* and has this line; NULL = whatever is in it */
	const char *settings; /* what to set in the installer's environment */
	const char *remark;   /* after the settings */
};

/* Ends with a name of NULL. */
extern const struct graft_distribution graft_distributions[];

/* Returns NULL if there is none of that name. */
const struct graft_distribution *graft_distribution_find(const char *name);

#endif
