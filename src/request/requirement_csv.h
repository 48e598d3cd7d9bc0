/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement_csv: requirements as mode csv takes them (SPEC runtime-and-hook 9.5): the language of request/requirement.h, except that a property
 * that is not known says nothing, and that a fact that nobody can find out is older than any version. Pure.
 */
#ifndef GRAFT_REQUEST_REQUIREMENT_CSV_H
#define GRAFT_REQUEST_REQUIREMENT_CSV_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "request/requirement.h"

/*
 * Evaluates all of them. Of `facts`, "" is a fact that cannot be found out; NULL for cuda and arch: not asked for yet. 0: all hold. 1: they depend on the
 * facts whose bits are in *ret_missing. -1: GRAFT_REQUIREMENT "requirements not met: unsatisfied condition: cuda>=12.4 (cuda=12.2)" or "invalid expression";
 * GRAFT_NO_MEMORY.
 */
int graft_csv_requirements(const char *const *expressions, size_t n, const struct graft_requirement_facts *facts,
			   struct graft_arena *arena, unsigned int *ret_missing, struct graft_error *err);

#endif
