/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement: the language of --require and NVIDIA_REQUIRE_* (SPEC libnvidia-container 8): OR by space, AND by
 * comma, left to right, stopping as soon as the result is certain. Pure and lazy: when the result depends on facts
 * that are not there yet it is UNKNOWN, with the names of those facts; the caller gets them and asks again.
 */
#ifndef GRAFT_REQUEST_REQUIREMENT_H
#define GRAFT_REQUEST_REQUIREMENT_H

#include <stdbool.h>

#include "base/error.h"

enum graft_requirement_result { GRAFT_REQUIREMENT_FALSE, GRAFT_REQUIREMENT_TRUE, GRAFT_REQUIREMENT_UNKNOWN };
enum graft_requirement_fact {
	GRAFT_REQUIREMENT_CUDA = 1u << 0,
	GRAFT_REQUIREMENT_DRIVER = 1u << 1,
	GRAFT_REQUIREMENT_ARCH = 1u << 2,
	GRAFT_REQUIREMENT_BRAND = 1u << 3,
};

/* What is known. A NULL value whose bit is in `absent` does not exist (counts as satisfied); otherwise it is not known yet. */
struct graft_requirement_facts {
	const char *cuda, *driver, *arch, *brand;
	/*
	 * Instead of an exact `cuda`: the range that the driver version implies, used when it already decides the comparison: at least
	 * cuda_min, at most cuda_max; NULL = open end.
	 */
	const char *cuda_min, *cuda_max;
	unsigned int absent; /* bits of enum graft_requirement_fact */
};

/*
 * Evaluates one expression. Returns -1 with GRAFT_EXPRESSION "invalid expression" when evaluation reaches something malformed, else 0
 * with *ret_result; *ret_missing holds the bits of the facts that an UNKNOWN result depends on, else 0.
 */
int graft_requirement_evaluate(const char *expression, const struct graft_requirement_facts *facts,
			       enum graft_requirement_result *ret_result, unsigned int *ret_missing,
			       struct graft_error *err);

/* Sets the error for an expression that is false: "unsatisfied condition: <first alternative>" plus the cuda>= sentence. Returns -1. */
int graft_requirement_fail(const char *expression, struct graft_error *err);

/* Compares dotted versions (SPEC 8); false in *ret_valid when one has other characters than digits and dots. */
int graft_version_compare(const char *a, const char *b, bool *ret_valid);

#endif
