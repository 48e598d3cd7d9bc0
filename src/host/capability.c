/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capability: the names of capabilities, classes and gates, generated from the lists in the header.
 */
#include "host/capability.h"

#include <string.h>

const char *const graft_capability_names[GRAFT_CAP_BITS] = {
#define X(name, word, letter, help) [GRAFT_CAP_BIT_##name] = word,
	GRAFT_CAPABILITY_LIST(X)
#undef X
};

const char *const graft_class_names[GRAFT_CLASS_MAX] = {
#define X(name, word, capabilities) [GRAFT_CLASS_##name] = word,
	GRAFT_CLASS_LIST(X)
#undef X
};

const char *const graft_gate_names[GRAFT_GATE_MAX] = {
#define X(name, word, help) [GRAFT_GATE_##name] = word,
	GRAFT_GATE_LIST(X)
#undef X
};

unsigned int graft_capability_of(const char *name, size_t length)
{
	if (length == strlen("all") && strncmp(name, "all", length) == 0)
		return GRAFT_CAP_ALL;
	for (unsigned int bit = 0; bit < GRAFT_CAP_BITS; bit++) {
		if (strlen(graft_capability_names[bit]) == length &&
		    strncmp(graft_capability_names[bit], name, length) == 0)
			return 1u << bit;
	}
	return 0;
}

unsigned int graft_class_capabilities(enum graft_class class_)
{
	static const unsigned int capabilities_of[GRAFT_CLASS_MAX] = {
#define X(name, word, capabilities) [GRAFT_CLASS_##name] = (capabilities),
		GRAFT_CLASS_LIST(X)
#undef X
	};

	return (unsigned int)class_ < GRAFT_CLASS_MAX ? capabilities_of[class_] : 0;
}
