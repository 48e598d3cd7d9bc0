/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_versions: which versions of CDI specs the container engines read. An engine ignores a spec
 * whose version it does not know, and only reports that the device is unresolvable.
 */
#ifndef GRAFT_ENGINE_CDI_VERSIONS_H
#define GRAFT_ENGINE_CDI_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

/* The engines as in the table: "docker", "containerd", "cri-o", "podman". */
struct graft_cdi_reader {
	const char *engine, *since; /* first version of the engine to which the row applies */
	const char *reads;          /* highest version of specs; "" = it does not read specs itself */
	bool enabled;               /* unless its configuration says otherwise */
	bool newest;                /* the last row of its engine: later versions may read more */
};

/*
 * Finds the row of an engine of this version ("4.3.1+ds1-8"; what follows the numbers is ignored).
 * Without a version (NULL), finds the last row that reads no more than this version of the CDI
 * library does ("0.6.2"). NULL: the engine is unknown, or both versions are.
 */
const struct graft_cdi_reader *graft_cdi_reader_find(const char *engine, const char *version, const char *library);

/* Compares versions by their numbers: <0, 0, >0. A missing number counts as 0. */
int graft_cdi_version_compare(const char *a, const char *b);

/* Returns the length of the numbers at the start: 5 of "4.3.1+ds1-8". */
size_t graft_cdi_version_length(const char *version);

/* Whether the engine reads specs of this version. */
bool graft_cdi_reader_reads(const struct graft_cdi_reader *reader, const char *spec_version);

#endif
