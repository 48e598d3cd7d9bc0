/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_world: a host for the tests of the NRI plugin: its process reads the inventory of a golden host, as slowly or badly as the test says. The tests
 * are linked with --wrap=graft_host_discover,--wrap=graft_dev_char_make.
 */
#ifndef GRAFT_TEST_NRI_WORLD_H
#define GRAFT_TEST_NRI_WORLD_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apply/dev_char.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/read.h"
#include "host/discover.h"

#define WORLD_LIMIT_MS 10000 /* no test waits longer */

/* What the process that reads shares with the test. */
struct hidden_host {
	volatile int n_begun;
	volatile bool waits;   /* it begins, and goes on when this is false */
	volatile bool dies;    /* without an answer */
	volatile int n_gpus;   /* that are found, of a DGX H100 */
	volatile int minor_of; /* added to the minor of each: as if the driver had been loaded anew */
};
static struct hidden_host *hidden;

static void hide_host(void)
{
	hidden = mmap(NULL, sizeof(*hidden), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(hidden != MAP_FAILED);
	hidden->n_gpus = 8;
}
static void show_host(void)
{
	(void)munmap(hidden, sizeof(*hidden));
}

int __wrap_graft_host_discover(const struct graft_host_options *options, unsigned int needs,
			       struct graft_inventory **ret_inventory, struct graft_error *err);
int __wrap_graft_host_discover(const struct graft_host_options *options, unsigned int needs,
			       struct graft_inventory **ret_inventory, struct graft_error *err)
{
	static char text[4 << 20];
	char path[512];
	FILE *file;
	size_t n;

	(void)options;
	(void)needs;
	/* As it is when the reading begins, however long it takes. */
	int minor_of = hidden->minor_of, n_gpus = hidden->n_gpus;

	hidden->n_begun++;
	while (hidden->waits)
		(void)usleep(1000);
	if (hidden->dies)
		_exit(1);
	if (n_gpus == 0)
		return graft_fail(err, GRAFT_NO_DRIVER, 0, "the driver has been taken out");
	(void)snprintf(path, sizeof(path), "%s/test/golden/hosts/dgx-h100/inventory.json", getenv("GRAFT_SOURCE_ROOT"));
	file = fopen(path, "re");
	n = file ? fread(text, 1, sizeof(text), file) : 0;
	if (file)
		(void)fclose(file);
	if (graft_inventory_read(text, n, ret_inventory, err) < 0)
		return -1;
	(*ret_inventory)->n_gpus = (size_t)n_gpus;
	for (int i = 0; i < n_gpus; i++)
		(*ret_inventory)->gpus[i].node.minor += (uint32_t)minor_of;
	return 0;
}

/* The machine's /dev/char stays as it is. */
int __wrap_graft_dev_char_make(const struct graft_dev_char *nodes, size_t n, const struct graft_log *log,
			       struct graft_error *err);
int __wrap_graft_dev_char_make(const struct graft_dev_char *nodes, size_t n, const struct graft_log *log,
			       struct graft_error *err)
{
	(void)nodes;
	(void)n;
	(void)log;
	(void)err;
	return 0;
}

static inline void reap_readers(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

#endif
