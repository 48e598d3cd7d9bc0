/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_versions: the table, and the comparison of versions. */
#include "engine/cdi_versions.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/*
 * By engine, ascending. An engine reads what the CDI library in its module file reads. For versions
 * between two rows, which were not looked up, the older row applies, which reads less. Podman 4.2
 * has library 0.4.0 (nvidia-container-toolkit issue 38), 4.3.1 was tested (SPEC ctk-and-cdi 5.3),
 * 4.9.3 refuses additionalGids of 0.7.0 (issue 1860 there), 0.7.0 came to Podman 5.1, Docker 26.1
 * and CRI-O 1.31 in April 2024 (container-device-interface issue 199; moby PR 47706).
 */
/* clang-format off */
static const struct graft_cdi_reader readers[] = {
	{ "podman",     "0",      "",      false, false },
	{ "podman",     "4.1",    "0.4.0", true,  false },
	{ "podman",     "4.3",    "0.5.0", true,  false },
	{ "podman",     "4.8",    "0.6.0", true,  false },
	{ "podman",     "5.1",    "0.7.0", true,  false },
	{ "podman",     "5.3",    "0.8.0", true,  true },
	{ "docker",     "0",      "",      false, false },
	{ "docker",     "25",     "0.6.0", false, false }, /* features.cdi */
	{ "docker",     "26.1",   "0.7.0", false, false },
	{ "docker",     "28.2",   "0.8.0", true,  true },  /* moby PR 49963: on by default */
	{ "containerd", "0",      "",      false, false },
	{ "containerd", "1.7",    "0.5.0", false, false }, /* enable_cdi */
	{ "containerd", "1.7.18", "0.7.0", false, false },
	{ "containerd", "2",      "0.8.0", true,  true },
	{ "cri-o",      "0",      "",      false, false },
	{ "cri-o",      "1.23",   "0.5.0", true,  false },
	{ "cri-o",      "1.31",   "0.7.0", true,  true },
};
/* clang-format on */

/* Reads a number and the dot after it. */
static unsigned long next_number(const char **at)
{
	char *end;
	unsigned long number;

	if (!isdigit((unsigned char)**at))
		return 0;
	number = strtoul(*at, &end, 10);
	*at = *end == '.' ? end + 1 : "";
	return number;
}

int graft_cdi_version_compare(const char *a, const char *b)
{
	for (int i = 0; i < 3; i++) {
		unsigned long one = next_number(&a), other = next_number(&b);

		if (one != other)
			return one < other ? -1 : 1;
	}
	return 0;
}

/*
 * The library's version is that of the newest CDI version that it reads, except for the third part.
 */
static bool reads_no_more_than(const struct graft_cdi_reader *reader, const char *library)
{
	return reader->reads[0] != '\0' && graft_cdi_version_compare(reader->reads, library) <= 0;
}

const struct graft_cdi_reader *graft_cdi_reader_find(const char *engine, const char *version, const char *library)
{
	const struct graft_cdi_reader *found = NULL;
	const char *known = version ? version : library;

	if (!known || !isdigit((unsigned char)known[0]))
		return NULL;
	for (size_t i = 0; i < GRAFT_COUNT(readers); i++) {
		if (strcmp(readers[i].engine, engine) == 0 &&
		    (version ? graft_cdi_version_compare(readers[i].since, version) <= 0
			     : reads_no_more_than(&readers[i], library)))
			found = &readers[i];
	}
	return found;
}

size_t graft_cdi_version_length(const char *version)
{
	size_t n = strspn(version, "0123456789.");

	while (n > 0 && version[n - 1] == '.')
		n--;
	return n;
}

bool graft_cdi_reader_reads(const struct graft_cdi_reader *reader, const char *spec_version)
{
	if (reader->reads[0] == '\0')
		return false;
	return reader->newest || graft_cdi_version_compare(spec_version, reader->reads) <= 0;
}
