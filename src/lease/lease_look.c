/* SPDX-License-Identifier: Apache-2.0 */
/* lease_look: logs and processes of this host, as far as claim and configuration need them. */
#include "lease/lease_look.h"

#include <string.h>
#include <sys/klog.h>

#include "base/cleanup.h"
#include "lease/lease_log.h"
#include "lease/lease_past.h"

#define SIMULATED_LOG  "/run/graft-sim/kmsg"
#define KERNEL_LOG_MAX ((size_t)256 * 1024)
#define READ_ALL       3 /* SYSLOG_ACTION_READ_ALL */
#define RECENT         ((size_t)4096)

/* A log that cannot be read is treated as empty. */
static int look_at_kernel_log(struct graft_arena *arena, struct graft_lendable *host, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *text = "";
	char *own;
	size_t length;
	int n;

	if (host->simulated) {
		if (graft_root_open(&root, "/", err) < 0)
			return -1;
		if (graft_root_read(&root, SIMULATED_LOG, KERNEL_LOG_MAX, arena, &text, &length) < 0)
			text = "";
	} else {
		own = graft_arena_alloc(arena, KERNEL_LOG_MAX + 1);
		if (!own)
			return graft_fail_memory(err);
		n = klogctl(READ_ALL, own, (int)KERNEL_LOG_MAX);
		own[n > 0 ? n : 0] = '\0';
		text = own;
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : graft_lease_past_faults(text, arena, host, err);
}

/* This matters if there is a choice: the GPU that has been free longest is taken. */
static bool needs_freed(const struct graft_claim *claim, const struct graft_lendable *host)
{
	return claim && claim->kind == GRAFT_CLAIM_ANY && claim->count < host->n_gpus;
}

static int look_at_log(const struct graft_config *config, const char *container, struct graft_claim *claim,
		       struct graft_arena *arena, struct graft_lendable *host, struct graft_error *err)
{
	bool sticky = claim && claim->sticky && container;
	const char *log;

	if (!sticky && !needs_freed(claim, host))
		return 0;
	log = graft_lease_log_read(config->leases.directory, sticky ? 0 : RECENT, arena);
	if (!log)
		return graft_fail_memory(err);
	graft_lease_past_freed(log, host);
	return sticky ? graft_lease_past_devices(log, container, arena, &claim->previous, err) : 0;
}

int graft_lease_look_first(const struct graft_config *config, const char *container, struct graft_claim *claim,
			   struct graft_arena *arena, struct graft_lendable *host, struct graft_lease_look *ret_look,
			   struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	*ret_look = (struct graft_lease_look){ .n_users = 0 };
	if ((config->leases.health && look_at_kernel_log(arena, host, err) < 0) ||
	    look_at_log(config, container, claim, arena, host, err) < 0)
		return -1;
	if (!config->leases.busy || strcmp(config->leases.busy, "open") != 0)
		return 0;
	return graft_root_open(&root, "/", err) < 0
		   ? -1
		   : graft_lease_users_read(&root, arena, &ret_look->users, &ret_look->n_users, err);
}

int graft_lease_look_at(const struct graft_lease_look *look, const struct graft_lease_table *table,
			struct graft_lendable *host, struct graft_error *err)
{
	return graft_lease_users_mark(look->users, look->n_users, &table->now, table->leases, table->n_leases,
				      table->arena, host, err);
}
