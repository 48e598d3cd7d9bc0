/* SPDX-License-Identifier: Apache-2.0 */
/* mps_daemons: compares the running daemons with the wanted ones. */
#include "daemon/mps_daemons.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/listing.h"
#include "base/root.h"

#define MAX_MEMORY   ((size_t)256 << 20)
#define MAX_PLACES   ((size_t)1 << 20)
#define MAX_NAMES    4096u
#define NODES_FOLDER "/dev"
#define SOON_MS      1000  /* a daemon that has ended */
#define CALM_MS      60000 /* one that has run this long starts again with the shortest delay */
#define FIRST_MS     5000
#define LAST_MS      300000

const char *mps_root(const struct graft_kube_config *config)
{
	struct stat st;

	if (stat(MPS_ROOT_IN_CONTAINER, &st) == 0 && S_ISDIR(st.st_mode))
		return MPS_ROOT_IN_CONTAINER;
	return config->flags.mps_root[0] != '\0' ? config->flags.mps_root : MPS_ROOT_DEFAULT;
}

/* ---- the list ---- */

static int add_item(struct mps_daemons *daemons, struct mps_daemon *take_item)
{
	struct mps_daemon **items = reallocarray(daemons->items, daemons->n_items + 1, sizeof(struct mps_daemon *));

	if (!items) {
		(void)mps_daemon_free(take_item);
		return -1;
	}
	daemons->items = items;
	items[daemons->n_items++] = take_item;
	return 0;
}

/* Ends a daemon that is no longer wanted. */
static void drop_item(struct mps_daemons *daemons, size_t i)
{
	mps_daemon_stop(daemons->items[i]);
	(void)mps_daemon_free(daemons->items[i]);
	daemons->items[i] = daemons->items[--daemons->n_items];
}

/* Returns its place, n_items if there is none. */
static size_t find_item(const struct mps_daemons *daemons, const char *text)
{
	size_t i = 0;

	while (i < daemons->n_items && strcmp(daemons->items[i]->text, text) != 0)
		i++;
	return i;
}

/* Finds the daemons that an earlier process has left. */
static void find_left(struct mps_daemons *daemons)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_arena *scratch = graft_arena_new(MAX_PLACES);
	const char **names = NULL;
	size_t n = 0;

	if (scratch && graft_root_open(&root, daemons->host.root, NULL) == 0)
		(void)graft_root_list(&root, "nvidia.com", MAX_NAMES, scratch, &names, &n, NULL);
	for (size_t i = 0; i < n; i++) {
		const char *resource = graft_arena_printf(scratch, GRAFT_KUBE_PREFIX "%s", names[i]);
		struct mps_daemon *left = resource ? mps_daemon_find(&daemons->host, resource) : NULL;

		if (left)
			(void)add_item(daemons, left);
	}
	(void)graft_arena_free(scratch);
}

/* ---- one pass ---- */

static int start_item(struct mps_daemons *daemons, struct mps_daemon *item, struct graft_error *err)
{
	int rc;

	if (item->running || mps_daemon_adopt(item))
		return 0;
	rc = mps_host_mount(&daemons->host, err);
	daemons->mounted |= rc > 0;
	daemons->started_ms = graft_clock_ms();
	return rc < 0 ? -1 : mps_daemon_start(item, err);
}

/* Starts the daemons that do not run. Returns -1 with the first error, but tries them all. */
static int start_all(struct mps_daemons *daemons, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	int rc = 0;

	for (size_t i = 0; i < daemons->n_items; i++) {
		graft_error_clear(&why);
		if (start_item(daemons, daemons->items[i], &why) == 0)
			continue;
		if (rc == 0)
			*err = why;
		else
			graft_warn(daemons->log, "%s", GRAFT_ERROR_TEXT(&why));
		rc = -1;
	}
	return rc;
}

/* Daemons whose GPUs are given to others end before those begin. */
static int follow_plan(struct mps_daemons *daemons, const struct graft_kube_mps *plan, struct graft_error *err)
{
	bool *wanted = calloc(daemons->n_items + 1, sizeof(*wanted));
	struct mps_daemon **fresh = calloc(plan->n_daemons + 1, sizeof(struct mps_daemon *));
	int rc = wanted && fresh ? 0 : graft_fail_memory(err);

	for (size_t i = 0; rc == 0 && i < plan->n_daemons; i++) {
		size_t known;

		fresh[i] = mps_daemon_new(&daemons->host, &plan->daemons[i]);
		if (!fresh[i]) {
			rc = graft_fail_memory(err);
			break;
		}
		known = find_item(daemons, fresh[i]->text);
		wanted[known] = true;
		if (known < daemons->n_items)
			fresh[i] = mps_daemon_free(fresh[i]);
	}
	for (size_t k = daemons->n_items; rc == 0 && k-- > 0;) {
		if (!wanted[k])
			drop_item(daemons, k);
	}
	for (size_t i = 0; fresh && i < plan->n_daemons; i++) {
		if (!fresh[i])
			continue;
		if (rc < 0)
			(void)mps_daemon_free(fresh[i]);
		else if (add_item(daemons, fresh[i]) < 0)
			rc = graft_fail_memory(err);
	}
	free(wanted);
	free(fresh);
	return rc < 0 ? -1 : start_all(daemons, err);
}

/* Returns whether a GPU is missing that the configuration shares. */
static bool waits_for_gpu(const struct graft_log *log, const struct graft_kube_config *config,
			  const struct graft_kube_mps *plan)
{
	enum graft_kube_sharing_strategy sharing;

	(void)graft_kube_replication(config, &sharing);
	if (sharing != GRAFT_KUBE_MPS)
		graft_info(log, "no resource is shared by MPS: waiting for another configuration");
	else if (plan->n_daemons == 0)
		graft_info(log, "there is no GPU to share by MPS: waiting for one");
	return sharing == GRAFT_KUBE_MPS && plan->n_daemons == 0;
}

/* The directories stay those of the start: a running daemon cannot move. */
static int find_mps_places(struct mps_daemons *daemons, const struct graft_kube_config *config, struct graft_error *err)
{
	if (daemons->lock_fd > 0)
		return 0;
	daemons->host.root = graft_arena_strdup(daemons->arena, mps_root(config));
	daemons->host.driver_root = graft_arena_strdup(daemons->arena, graft_kube_driver_root(&config->flags));
	if (!daemons->host.root || !daemons->host.driver_root)
		return graft_fail_memory(err);
	if (mps_host_lock(&daemons->host, &daemons->lock_fd, err) < 0)
		return -1;
	find_left(daemons);
	return 0;
}

static int make_mps_pass(struct mps_daemons *daemons, const struct graft_log *log, bool *ret_fail_on_init_error,
			 struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new(MAX_MEMORY);
	struct graft_kube_sources sources = daemons->sources;
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_kube_config config;
	struct graft_kube_mps plan;
	int rc = arena ? 0 : graft_fail_memory(err);

	sources.log = log;
	if (rc == 0)
		rc = graft_kube_configure(&sources, arena, &config, &result, err);
	if (rc == 0) {
		*ret_fail_on_init_error = config.flags.fail_on_init_error;
		rc = find_mps_places(daemons, &config, err);
	}
	if (rc == 0)
		rc = graft_kube_mps_read(&config, GRAFT_KUBE_ASK_UNSETTLED, log, arena, &plan, err);
	if (rc == 0) {
		daemons->complete = !waits_for_gpu(log, &config, &plan);
		rc = follow_plan(daemons, &plan, err);
	}
	daemons->complete &= rc == 0;
	(void)graft_arena_free(arena);
	return rc;
}

/* ---- again ---- */

static void try_mps_later(struct mps_daemons *daemons, const struct graft_error *why)
{
	daemons->delay_ms = graft_loop_next_delay(daemons->delay_ms, FIRST_MS, LAST_MS);
	graft_warn(daemons->log, "%s; trying again in %lld s", GRAFT_ERROR_TEXT(why),
		   (long long)daemons->delay_ms / 1000);
	graft_loop_set_timer(daemons->loop, &daemons->again, daemons->delay_ms);
}

/* Warnings are not repeated each time. */
static void pass_again(struct mps_daemons *daemons, enum graft_log_level level)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_log log = *daemons->log;
	bool fails;

	log.max = level < log.max ? level : log.max;
	graft_loop_clear_timer(&daemons->again);
	if (make_mps_pass(daemons, &log, &fails, &err) < 0)
		try_mps_later(daemons, &err);
	else
		daemons->delay_ms = 0;
}

static void mps_again_due(void *arg)
{
	pass_again(arg, GRAFT_LOG_ERROR);
}

/* Its programs have ended anyway, so start it again; but it may end each time. */
static void one_has_ended(void *arg)
{
	struct mps_daemons *daemons = arg;

	daemons->complete = false;
	if (graft_clock_ms() > daemons->started_ms + CALM_MS)
		daemons->pause_ms = 0;
	daemons->pause_ms = graft_loop_next_delay(daemons->pause_ms, SOON_MS, LAST_MS);
	graft_warn(daemons->log, "starting it again in %lld s", (long long)daemons->pause_ms / 1000);
	graft_loop_set_timer(daemons->loop, &daemons->again, daemons->pause_ms);
}

/*
 * For a driver or a GPU that has appeared; if one disappears, the programs of the others continue.
 */
static void mps_hardware_changed(void *arg)
{
	struct mps_daemons *daemons = arg;

	if (!daemons->complete && daemons->lock_fd > 0)
		pass_again(daemons, GRAFT_LOG_ERROR);
}

/* ---- begin and end ---- */

int mps_daemons_begin(struct mps_daemons *daemons, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	bool fails = true;

	daemons->arena = graft_arena_new(MAX_PLACES);
	if (!daemons->arena)
		return graft_fail_memory(err);
	daemons->host = (struct mps_host){ .loop = daemons->loop,
					   .log = daemons->log,
					   .output_fd = daemons->output_fd,
					   .ended = one_has_ended,
					   .arg = daemons };
	daemons->again = (struct graft_loop_timer){ .due = mps_again_due, .arg = daemons };
	hardware_begin(&daemons->hardware, daemons->loop, NODES_FOLDER, daemons->log, mps_hardware_changed, daemons);
	if (make_mps_pass(daemons, daemons->log, &fails, &why) == 0)
		return 0;
	if (fails && !daemons->waits) {
		*err = why;
		return -1;
	}
	try_mps_later(daemons, &why);
	return 0;
}

void mps_daemons_reload(struct mps_daemons *daemons)
{
	pass_again(daemons, GRAFT_LOG_INFO);
}

void mps_daemons_done(struct mps_daemons *daemons)
{
	graft_loop_clear_timer(&daemons->again);
	hardware_done(&daemons->hardware);
	while (daemons->n_items > 0)
		drop_item(daemons, daemons->n_items - 1);
	free(daemons->items);
	daemons->items = NULL;
	if (daemons->mounted)
		mps_host_unmount(&daemons->host);
	if (daemons->lock_fd > 0)
		mps_host_unlock(&daemons->host, daemons->lock_fd);
	daemons->arena = graft_arena_free(daemons->arena);
}
