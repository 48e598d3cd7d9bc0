/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement: the language of --require and NVIDIA_REQUIRE_* (SPEC libnvidia-container 8): OR by
 * space, AND by comma, evaluated from left to right until the result is certain. Pure and lazy: if
 * the result depends on facts that are missing, it is UNKNOWN, with the names of those facts; the
 * caller obtains them and evaluates again.
 */
#ifndef GRAFT_REQUEST_REQUIREMENT_H
#define GRAFT_REQUEST_REQUIREMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum graft_requirement_result { GRAFT_REQUIREMENT_FALSE, GRAFT_REQUIREMENT_TRUE, GRAFT_REQUIREMENT_UNKNOWN };
enum graft_requirement_fact {
	GRAFT_REQUIREMENT_CUDA = 1u << 0,
	GRAFT_REQUIREMENT_DRIVER = 1u << 1,
	GRAFT_REQUIREMENT_ARCH = 1u << 2,
	GRAFT_REQUIREMENT_BRAND = 1u << 3,
};

/*
 * The known facts. NULL means not known yet, unless its bit is in `absent`: then this host has no
 * such fact, and requirements on it are met.
 */
struct graft_requirement_facts {
	const char *cuda, *driver, *arch, *brand;
	/*
	 * Instead of an exact `cuda`: the range that the driver version implies, used if it already
	 * decides the comparison: at least cuda_min, at most cuda_max; NULL = no limit.
	 */
	const char *cuda_min, *cuda_max;
	unsigned int absent; /* bits of enum graft_requirement_fact */
};

/*
 * Evaluates one expression. *ret_missing has the bits of the facts that an UNKNOWN result depends
 * on, else 0. Returns -1 with GRAFT_EXPRESSION "invalid expression" if evaluation reaches something
 * malformed.
 */
int graft_requirement_evaluate(const char *expression, const struct graft_requirement_facts *facts,
			       enum graft_requirement_result *ret_result, unsigned int *ret_missing,
			       struct graft_error *err);

/*
 * Sets the error for an expression that is false: "unsatisfied condition: <first alternative>",
 * with advice to update the driver if it starts with cuda>=. Returns -1.
 */
int graft_requirement_fail(const char *expression, struct graft_error *err);

/*
 * Mode csv: evaluates all expressions, ignoring comparisons of unknown facts. In `facts`, "" is a
 * fact that cannot be determined; NULL for cuda and arch means that it was not requested yet.
 * Returns 0 if all hold, 1 if they depend on the facts whose bits are in *ret_missing, or -1 with
 * GRAFT_REQUIREMENT "requirements not met: unsatisfied condition: cuda>=12.4 (cuda=12.2)", "invalid
 * expression", GRAFT_INVALID "too many requirements" (GRAFT_REQUIREMENTS_MAX), or GRAFT_NO_MEMORY.
 */
int graft_csv_requirements(const char *const *expressions, size_t n, const struct graft_requirement_facts *facts,
			   struct graft_arena *arena, unsigned int *ret_missing, struct graft_error *err);

#endif
