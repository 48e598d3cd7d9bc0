/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_command: nvidia-ctk lease run, acquire, release and reclaim: take GPUs without a container,
 * and end leases.
 */
#include "cli/ctk/lease_command.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apply/cgroup/cgroup_scope.h"
#include "apply/mps.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "lease/lease_end.h"
#include "lease/lease_holder.h"
#include "lease/lease_host.h"
#include "lease/lease_mps.h"
#include "lease/lease_take.h"
#include "start/config_file.h"
#include "start/lease_claim.h"

#define TOKEN_TIME   "12h"
#define GRACE        "10s"
#define EXIT_NO_EXEC 126
#define POLL_MS      50

/* ---- shared ---- */

int lease_load_config(struct ctk *ctk, struct graft_config *ret_config, struct graft_error *err)
{
	return graft_config_file_load(GRAFT_CONFIG_OF_RUNTIME, ctk->config, ctk->arena, ret_config, err);
}

uint32_t lease_owner(void)
{
	const char *text = getuid() == 0 ? secure_getenv("SUDO_UID") : NULL;
	char *end = NULL;
	unsigned long uid = text ? strtoul(text, &end, 10) : 0;

	return end && end != text && *end == '\0' && uid < UINT32_MAX ? (uint32_t)uid : (uint32_t)getuid();
}

static int read_span(const char *text, uint64_t *ret_ms, struct graft_error *err)
{
	if (graft_claim_read_span(text, ret_ms))
		return 0;
	(void)graft_fail(err, GRAFT_INVALID, 0, "'%.32s' is not a duration", text);
	return graft_with_hint(err, "Write a number and a unit: 90s, 30m, 8h or 2d.");
}

static int read_claim(struct ctk *ctk, const struct lease_options *given, struct graft_claim *claim,
		      struct graft_error *err)
{
	const char *other = given->count ? "count" : given->share ? "share" : given->model ? "model" : NULL;
	const char *text = given->claim;

	if (text && other)
		return graft_fail(err, GRAFT_INVALID, 0, "--%s and --claim cannot be used together", other);
	if (!text)
		text = graft_arena_printf(ctk->arena, "%s:%s%s%s", given->share ? "share" : "any",
					  given->count ? given->count : "1", given->model ? ";model=" : "",
					  given->model ? given->model : "");
	if (!text)
		return graft_fail_memory(err);
	return graft_claim_parse(text, ctk->arena, claim, err);
}

/* `user`: the user as whom the programs will run. */
static int take_lease(struct ctk *ctk, const struct lease_options *given, bool has_user, uint32_t user,
		      struct graft_lease_ask *ask, struct graft_lease *lease, struct graft_lease_mps *ret_mps,
		      struct graft_error *err)
{
	struct graft_config config;
	struct graft_claim claim;
	int rc;

	if (read_claim(ctk, given, &claim, err) < 0 || lease_load_config(ctk, &config, err) < 0 ||
	    graft_start_lease_require(&config, err) < 0 || graft_lease_set_wait(&config, given->wait, &claim, err) < 0)
		return -1;
	ask->claim = &claim;
	ask->uid = lease_owner();
	ask->owner = given->owner;
	ask->urgent = given->urgent;
	claim.has_user = has_user;
	claim.user = user;
	rc = graft_lease_take(&config, ask, &ctk->waiting, ctk->arena, lease, err);
	if (rc == 0)
		rc = graft_lease_check_named(lease, err);
	if (rc == 0 && ret_mps)
		rc = graft_lease_mps_find(&config, lease, ctk->arena, ret_mps, err);
	ask->claim = NULL;
	return rc;
}

/* ---- run ---- */

static int set_variables(const struct graft_lease *lease, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_strings devices;
	const char *list = "";

	if (graft_lease_devices(lease, arena, &devices, err) < 0)
		return -1;
	for (size_t i = 0; list && i < devices.n; i++)
		list = graft_arena_printf(arena, "%s%s%s", list, i > 0 ? "," : "", devices.items[i]);
	if (!list || setenv("CUDA_VISIBLE_DEVICES", list, 1) < 0 || setenv("NVIDIA_VISIBLE_DEVICES", list, 1) < 0 ||
	    setenv("NVIDIA_LEASE", lease->id, 1) < 0)
		return graft_fail_memory(err);
	return 0;
}

/* Gives the command the pipes, the shared memory and the limits of its MPS daemon. */
static int enter_mps(const struct graft_lease *lease, const struct graft_lease_mps *mps, struct graft_arena *arena,
		     struct graft_error *err)
{
	const char **variables = NULL;
	size_t n = 0;

	if (graft_lease_mps_variables(lease, mps->pipe, arena, &variables, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *value = strchr(variables[i], '=') + 1;
		const char *name = graft_arena_strndup(arena, variables[i], (size_t)(value - variables[i] - 1));

		if (!name || setenv(name, value, 1) < 0)
			return graft_fail_memory(err);
	}
	return mps->shm ? graft_mps_enter(mps->shm, err) : 0;
}

static int find_lease_user(const char *name, struct passwd *ret_user, struct graft_error *err)
{
	const struct passwd *user = getpwnam(name);

	if (!user)
		return graft_fail(err, GRAFT_NOT_FOUND, 0, "there is no user '%.64s'", name);
	*ret_user = *user;
	return 0;
}

static int become_user(const struct passwd *user, const char *name, struct graft_error *err)
{
	if (initgroups(name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0)
		return graft_fail_errno(err, errno, "cannot become user '%.64s'", name);
	return 0;
}

static void allow_in_scope(struct graft_device_rule *rules, size_t *n, uint32_t major, uint32_t minor)
{
	rules[(*n)++] = (struct graft_device_rule){ major, minor, true, true };
}

/*
 * Adds to the rules. For a MIG device also sets the major of all instances, which forbids the
 * others.
 */
static int allow_slot(const struct graft_lendable *host, const struct graft_lease *lease,
		      const struct graft_lease_slot *slot, struct graft_device_rule *rules,
		      struct graft_cgroup_scope *scope, struct graft_error *err)
{
	const struct graft_lendable_mig *mig;
	const struct graft_lendable_gpu *gpu = graft_lendable_find(host, slot->mig ? slot->mig : slot->gpu, &mig);

	if (!gpu)
		return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "a GPU of lease %s is gone", lease->id);
	allow_in_scope(rules, &scope->n_rules, gpu->major, gpu->minor);
	if (!mig)
		return 0;
	if (mig->gi_major == 0 || mig->ci_major != mig->gi_major)
		return graft_fail(err, GRAFT_UNSUPPORTED, 0,
				  "--scope cannot be used with MIG devices here: their instances have no device nodes");
	scope->caps_major = mig->gi_major;
	allow_in_scope(rules, &scope->n_rules, mig->gi_major, mig->gi_minor);
	allow_in_scope(rules, &scope->n_rules, mig->ci_major, mig->ci_minor);
	return 0;
}

/* Forbids all GPUs except those of the lease and, if it has MIG devices, all other instances. */
static int enter_scope(struct ctk *ctk, const struct graft_lease *lease, const struct graft_cgroup_place *place,
		       struct graft_error *err)
{
	/* A claim for one GPU does not need NVML. */
	struct graft_claim plain = { .kind = GRAFT_CLAIM_ANY, .count = 1 };
	/* Of a MIG device: the GPU and its two instances. */
	struct graft_device_rule *rules = graft_arena_list(ctk->arena, 3 * lease->n_slots, sizeof(*rules));
	struct graft_cgroup_scope scope = { .rules = rules };
	struct graft_lendable host;
	struct graft_config config;

	if (!rules)
		return graft_fail_memory(err);
	for (size_t i = 0; i < lease->n_slots; i++) {
		if (lease->slots[i].mig)
			plain.kind = GRAFT_CLAIM_MIG;
	}
	if (lease_load_config(ctk, &config, err) < 0 ||
	    graft_lease_host_read(&config, &plain, &ctk->waiting, ctk->arena, &host, err) < 0)
		return -1;
	for (size_t i = 0; i < lease->n_slots; i++) {
		if (allow_slot(&host, lease, &lease->slots[i], rules, &scope, err) < 0)
			return -1;
	}
	return graft_cgroup_scope_enter(place, &scope, &ctk->steps, err);
}

static int run_with_lease(struct ctk *ctk, const struct lease_options *given, char **argv, struct graft_error *err)
{
	struct graft_lease_ask ask = { .what = argv[0] };
	struct graft_cgroup_place place = { .path = NULL };
	struct graft_lease_mps mps = { .base = NULL };
	struct graft_lease lease;
	struct passwd user = { 0 };

	if (!argv[0])
		return graft_fail(err, GRAFT_INVALID, 0, "a command is needed, after '--'");
	if (given->span && read_span(given->span, &ask.for_ms, err) < 0)
		return -1;
	if ((given->user && find_lease_user(given->user, &user, err) < 0) ||
	    (given->scope ? graft_lease_holder_in_scope(ctk->arena, &ask.holder, &place, err)
			  : graft_lease_holder_of_process(0, ctk->arena, &ask.holder, err)) < 0)
		return -1;
	if (take_lease(ctk, given, true, given->user ? user.pw_uid : getuid(), &ask, &lease, &mps, err) < 0 ||
	    (given->scope && enter_scope(ctk, &lease, &place, err) < 0) || set_variables(&lease, ctk->arena, err) < 0 ||
	    (mps.base && enter_mps(&lease, &mps, ctk->arena, err) < 0) ||
	    (given->user && become_user(&user, given->user, err) < 0)) {
		if (given->scope)
			graft_cgroup_scope_remove(&place);
		return -1;
	}
	(void)execvp(argv[0], argv);
	return graft_fail_errno(err, errno, "exec failed: %s", argv[0]);
}

static int lease_run(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;

	if (run_with_lease(given->base.ctk, given, given->base.argv, err) < 0)
		(void)ctk_fail(given->base.ctk, err, "%s", "");
	return EXIT_NO_EXEC;
}

/* clang-format off */
/* Of run and acquire: what to take, and for whom. */
#define ASK_OPTIONS                                                                                                    \
	{ .name = "count", .letter = 'n', TEXT, AT(count), .value_name = "N", .help = "Number of GPUs (default 1)" },  \
	{ .name = "share", FLAG, AT(share), .help = "Take slots of shared GPUs instead of whole GPUs" },               \
	{ .name = "model", TEXT, AT(model), .value_name = "TEXT",                                                      \
	  .help = "Only GPUs whose name contains this, ignoring case" },                                               \
	{ .name = "claim", TEXT, AT(claim), .value_name = "CLAIM",                                                     \
	  .help = "What to take, such as 'any:2,model=H100'" },                                                        \
	{ .name = "wait", TEXT, AT(wait), .value_name = "TIME",                                                        \
	  .help = "How long to wait for them (default as config.toml says)" },                                         \
	{ .name = "urgent", FLAG, AT(urgent), .help = "Go to the head of the queue; no holder loses a GPU" },          \
	{ .name = "owner", TEXT, AT(owner), .value_name = "NAME",                                                      \
	  .help = "Owner of the lease (default the user who called sudo)" }

static const struct graft_option run_options[] = {
	ASK_OPTIONS,
	{ .name = "for", TEXT, AT(span), .value_name = "TIME",
	  .help = "How long the command needs them; 'lease list' shows it, and 'reclaim --overdue' may end it afterwards" },
	{ .name = "user", TEXT, AT(user), .value_name = "NAME", .help = "Run the command as this user" },
	{ .name = "scope", FLAG, AT(scope),
	  .help = "Run the command in its own cgroup, where it can open no other GPU or MIG device" },
};
/* clang-format on */
const struct graft_command ctk_lease_run = {
	LEASE_COMMAND("-- COMMAND [ARG...]"),
	.name = "run",
	.summary = "Take GPUs and run a command that holds them until it ends",
	GRAFT_OPTIONS(run_options),
	CTK_WORK(lease_run, struct lease_options),
};

/* ---- acquire ---- */

static int lease_acquire(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;
	struct graft_lease_ask ask = { .holder = { .kind = GRAFT_HOLDER_TOKEN } };
	struct graft_buffer out = { .max = 0 };
	struct ctk *ctk = given->base.ctk;
	struct graft_lease lease;

	if (read_span(given->span, &ask.for_ms, err) < 0)
		return -1;
	if (ask.for_ms == 0)
		return graft_fail(err, GRAFT_INVALID, 0, "--for must be longer than 0");
	if (take_lease(ctk, given, false, 0, &ask, &lease, NULL, err) < 0)
		return -1;
	if (given->json)
		graft_lease_write(&lease, &out);
	else
		graft_buffer_printf(&out, "%s\n", lease.id);
	return ctk_print(ctk, &out);
}

/* clang-format off */
static const struct graft_option acquire_options[] = {
	ASK_OPTIONS,
	{ .name = "for", TEXT, AT(span), .value_name = "TIME",
	  .help = "How long to hold them: 90s, 30m, 8h or 2d (default " TOKEN_TIME ")" },
	LEASE_JSON,
};
/* clang-format on */
const struct graft_command ctk_lease_acquire = {
	CTK_COMMAND,
	.name = "acquire",
	.summary = "Take GPUs by hand, and print the lease's id; containers use it as lease:ID",
	GRAFT_OPTIONS(acquire_options),
	CTK_WORK(lease_acquire, struct lease_options, .span = TOKEN_TIME),
};

/* ---- release and reclaim ---- */

/* Opens the table for a change, and finds the lease that the only argument names. */
static int open_lease(struct ctk *ctk, int n_arguments, char **arguments, struct graft_lease_table *table,
		      const struct graft_lease **ret_lease, struct graft_error *err)
{
	struct graft_config config;

	if (n_arguments != 1)
		return graft_fail(err, GRAFT_INVALID, 0, "the id of one lease is needed");
	if (lease_load_config(ctk, &config, err) < 0 ||
	    graft_lease_table_open(table, config.leases.directory, true, ctk->arena, err) < 0)
		return -1;
	*ret_lease = graft_lease_table_find(table, arguments[0]);
	if (*ret_lease)
		return 0;
	(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "lease %.32s does not exist, or has ended", arguments[0]);
	return graft_with_hint(err, "Run 'nvidia-ctk lease list' to see the leases of this host.");
}

static int lease_release(void *target, struct graft_error *err)
{
	auto_lease_table struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	auto_buffer struct graft_buffer holder = { .max = 512 };
	const struct lease_options *given = target;
	const struct graft_lease *lease;

	if (open_lease(given->base.ctk, given->base.argc, given->base.argv, &table, &lease, err) < 0)
		return -1;
	if (lease->holder.kind == GRAFT_HOLDER_TOKEN)
		return graft_lease_table_remove(&table, lease, "freed", "released", err);
	graft_lease_describe(lease, table.now.time, &holder);
	(void)graft_fail(err, GRAFT_INVALID, 0, "lease %s ends with its holder, %s", lease->id,
			 graft_buffer_text(&holder));
	return graft_with_hint(err, "End the holder, or let 'nvidia-ctk lease reclaim' do so.");
}

const struct graft_command ctk_lease_release = {
	LEASE_COMMAND("ID"),
	.name = "release",
	.summary = "End a lease that was taken by hand",
	CTK_WORK(lease_release, struct lease_options),
};

static bool is_confirmed(const struct graft_lease *lease, uint64_t now)
{
	auto_buffer struct graft_buffer holder = { .max = 512 };
	char answer[8] = "";

	graft_lease_describe(lease, now, &holder);
	(void)fprintf(stderr, "End lease %s of %s? [y/N] ", lease->id, graft_buffer_text(&holder));
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Returns -1 if the holder still exists after that time. */
static int wait_for_end(const struct graft_lease_now *now, const struct graft_lease *lease, uint64_t ms,
			struct graft_error *err)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	const int64_t until = graft_clock_ms() + (int64_t)ms;
	struct graft_arena *arena;
	size_t n = 1;
	int rc = 0;

	for (;;) {
		arena = graft_arena_new((size_t)16 << 20);
		rc = arena ? graft_lease_signal(now, lease, 0, arena, &n, err) : graft_fail_memory(err);
		(void)graft_arena_free(arena);
		if (rc < 0 || n == 0)
			return rc;
		if (graft_clock_ms() >= until)
			return graft_fail(err, GRAFT_TIMEOUT, 0, "%zu processes of lease %s did not end", n, lease->id);
		(void)nanosleep(&pause, NULL);
	}
}

/* The table is closed here, so no process has to wait for the lock meanwhile. */
static int end_holder(struct ctk *ctk, const struct graft_lease *lease, uint64_t grace_ms, struct graft_error *err)
{
	auto_lease_now struct graft_lease_now now = GRAFT_LEASE_NOW_INIT;
	size_t n;

	if (graft_lease_now_read(&now, ctk->arena, err) < 0 ||
	    graft_lease_signal(&now, lease, SIGTERM, ctk->arena, &n, err) < 0)
		return -1;
	if (wait_for_end(&now, lease, grace_ms, err) == 0)
		return 0;
	if (err->status != GRAFT_TIMEOUT)
		return -1;
	graft_error_clear(err);
	if (graft_lease_signal(&now, lease, SIGKILL, ctk->arena, &n, err) < 0)
		return -1;
	return wait_for_end(&now, lease, grace_ms, err);
}

/* Ends a lease of a table that has been closed. */
static int reclaim_lease(struct ctk *ctk, const struct lease_options *given, const struct graft_lease *lease,
			 uint64_t now, uint64_t grace_ms, struct graft_error *err)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	const struct graft_lease *left;
	char *words[] = { graft_arena_strdup(ctk->arena, lease->id) };
	int rc;

	if (!words[0])
		return graft_fail_memory(err);
	if (!given->yes && isatty(STDIN_FILENO) && !is_confirmed(lease, now))
		return graft_fail(err, GRAFT_INVALID, 0, "nothing was done");
	if (lease->holder.kind != GRAFT_HOLDER_TOKEN && end_holder(ctk, lease, grace_ms, err) < 0)
		return -1;
	/* A token's lease still exists; others are removed by themselves. */
	rc = open_lease(ctk, 1, words, &table, &left, err);
	if (rc == 0 && left->holder.kind != GRAFT_HOLDER_TOKEN) {
		rc = graft_fail(err, GRAFT_TIMEOUT, 0, "the holder of lease %s cannot be examined from here", left->id);
	} else if (rc == 0) {
		rc = graft_lease_table_remove(&table, left, "freed", "reclaimed", err);
	} else if (err->status == GRAFT_NOT_FOUND) {
		graft_error_clear(err);
		rc = 0;
	}
	graft_lease_table_close(&table);
	return rc;
}

static int reclaim_one(struct ctk *ctk, const struct lease_options *given, uint64_t grace_ms, int n_arguments,
		       char **arguments, struct graft_error *err)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	const struct graft_lease *lease = NULL;
	int rc = open_lease(ctk, n_arguments, arguments, &table, &lease, err);
	uint64_t now = table.now.time;

	graft_lease_table_close(&table);
	return rc < 0 ? -1 : reclaim_lease(ctk, given, lease, now, grace_ms, err);
}

/* Only Kubernetes ends pods. */
static bool is_overdue(const struct graft_lease *lease, uint64_t now, uint64_t max_ms)
{
	if (graft_lease_is_of_pod(lease))
		return false;
	return (lease->until > 0 && now > lease->until) || (max_ms > 0 && now > lease->since + max_ms);
}

/* Ends overdue leases, and prints each. Reports one that cannot be ended, and continues. */
static int reclaim_overdue(struct ctk *ctk, const struct lease_options *given, uint64_t grace_ms,
			   struct graft_error *err)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_config config;
	uint64_t max_ms, now;
	int rc, status = 0;

	if (lease_load_config(ctk, &config, err) < 0)
		return -1;
	if (!graft_claim_read_span(config.leases.max_time, &max_ms))
		return graft_fail(err, GRAFT_INVALID, 0, "graft.leases.max-time is not a duration: '%.32s'",
				  config.leases.max_time);
	rc = graft_lease_table_open(&table, config.leases.directory, true, ctk->arena, err);
	now = table.now.time;
	graft_lease_table_close(&table);
	for (size_t i = 0; rc == 0 && i < table.n_leases; i++) {
		struct graft_buffer line = { .max = 0 };

		if (!is_overdue(&table.leases[i], now, max_ms))
			continue;
		if (reclaim_lease(ctk, given, &table.leases[i], now, grace_ms, err) < 0) {
			status = ctk_fail(ctk, err, "%s", "");
			continue;
		}
		graft_buffer_printf(&line, "%s  ", table.leases[i].id);
		graft_lease_describe(&table.leases[i], now, &line);
		graft_buffer_char(&line, '\n');
		(void)ctk_print(ctk, &line);
	}
	return rc < 0 ? -1 : status;
}

static int lease_reclaim(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;
	struct ctk *ctk = given->base.ctk;
	uint64_t grace_ms;

	if (given->overdue && given->base.argc > 0)
		return graft_fail(err, GRAFT_INVALID, 0, "--overdue cannot be used with the id of a lease");
	if (read_span(given->grace, &grace_ms, err) < 0)
		return -1;
	return given->overdue ? reclaim_overdue(ctk, given, grace_ms, err)
			      : reclaim_one(ctk, given, grace_ms, given->base.argc, given->base.argv, err);
}

/* clang-format off */
static const struct graft_option reclaim_options[] = {
	{ .name = "grace", TEXT, AT(grace), .value_name = "TIME",
	  .help = "How long to wait after SIGTERM before SIGKILL (default " GRACE ")" },
	{ .name = "yes", .letter = 'y', FLAG, AT(yes), .help = "Do not ask" },
	{ .name = "overdue", FLAG, AT(overdue),
	  .help = "End all leases older than their --for time or graft.leases.max-time" },
};
/* clang-format on */
const struct graft_command ctk_lease_reclaim = {
	LEASE_COMMAND("[ID]"),
	.name = "reclaim",
	.summary = "End a lease by ending the processes that hold it",
	GRAFT_OPTIONS(reclaim_options),
	CTK_WORK(lease_reclaim, struct lease_options, .grace = GRACE),
};

/* ---- mps ---- */

static int lease_mps(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;
	struct ctk *ctk = given->base.ctk;
	struct graft_config config;
	int lock_fd = -1;
	char *end = NULL;

	if (given->lock)
		lock_fd = (int)strtol(given->lock, &end, 10);
	if (given->base.argc != 1 || (given->lock && (end == given->lock || *end != '\0' || lock_fd <= STDERR_FILENO)))
		return graft_fail(err, GRAFT_INVALID, 0, "the UUID of one GPU is needed");
	if (lease_load_config(ctk, &config, err) < 0)
		return -1;
	return graft_lease_mps_keep(&config, given->base.argv[0], lock_fd, &ctk->log, ctk->arena, err);
}

/* clang-format off */
static const struct graft_option mps_options[] = {
	{ .name = "lock", TEXT, AT(lock), .value_name = "FD",
	  .help = "The descriptor of its lock, when it starts itself again" },
};
/* clang-format on */
const struct graft_command ctk_lease_mps = {
	LEASE_COMMAND("GPU"),
	GRAFT_OPTIONS(mps_options),
	.name = GRAFT_LEASE_MPS_COMMAND,
	.summary = "Run the MPS daemon of a GPU for as long as a lease shares it; started when a lease is taken",
	CTK_WORK(lease_mps, struct lease_options),
};
