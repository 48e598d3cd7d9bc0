/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_folders: a host with two directories of CDI specifications, and an arena, for each test. */
#ifndef GRAFT_TEST_CDI_FOLDERS_H
#define GRAFT_TEST_CDI_FOLDERS_H

#include "../arena.h"
#include "fixture.h"

static struct fixture *fixture;
static char etc[128], run[128];
static const char *directories[] = { etc, run };

static int setup(void **state)
{
	if (arena_setup(state) < 0 || fixture_set_up(state) < 0)
		return -1;
	fixture = *state;
	(void)snprintf(etc, sizeof(etc), "%s/etc/cdi", fixture->root);
	(void)snprintf(run, sizeof(run), "%s/run/cdi", fixture->root);
	return 0;
}

static int teardown(void **state)
{
	(void)arena_teardown(state);
	return fixture_tear_down(state);
}

#endif
