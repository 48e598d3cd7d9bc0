/* SPDX-License-Identifier: Apache-2.0 */
/* arena: one arena for each test of a group, made and freed by the group's setup and teardown. */
#ifndef GRAFT_TEST_ARENA_H
#define GRAFT_TEST_ARENA_H

#include "base/arena.h"
#include "unit.h"

static struct graft_arena *arena;

static inline int arena_setup(void **state)
{
	arena = graft_arena_new((size_t)512 << 20);
	return arena ? 0 : -1;
}

static inline int arena_teardown(void **state)
{
	arena = graft_arena_free(arena);
	return 0;
}

#endif
