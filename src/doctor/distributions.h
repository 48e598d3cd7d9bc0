/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distributions: Kubernetes distributions that include an engine and keep its files in places of
 * their own, and the settings that an installer needs there (docs/gpu-operator.md, "Engines"). The
 * only list of them.
 */
#ifndef GRAFT_DOCTOR_DISTRIBUTIONS_H
#define GRAFT_DOCTOR_DISTRIBUTIONS_H

#include <stddef.h>

struct graft_distribution {
	const char *name;
	const char *file;     /* a path that exists on such a node */
	const char *line;     /* and contains this line; NULL = any content */
	const char *settings; /* what to set in the installer's environment */
	const char *remark;   /* note that follows the settings */
};

/* Ends with a name of NULL. */
extern const struct graft_distribution graft_distributions[];

/* Returns NULL if there is none with that name. */
const struct graft_distribution *graft_distribution_find(const char *name);

#endif
