/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_mps_keeper: the process that keeps a daemon. It decides to end while it holds the lock
 * under which other processes search for it, after a last look at the table: a process that took a
 * lease before finds it running, and one that takes a lease later finds that it has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "apply/mps.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/root.h"
#include "base/strings.h"
#include "host/catalog.h"
#include "lease/lease_host.h"
#include "lease/lease_mps_parts.h"
#include "lease/lease_table.h"
#include "lease/lease_wait.h"

#define ROUND_MAX ((size_t)256 << 20)
#define SHM_SIZE  "1G"
#define MODE_MAX  64u
#define LOOKS_MAX 500u /* as one program */
/* Between two starts of a daemon that ends by itself, unless it has lived for some time. */
#define FIRST_PAUSE_MS 1000
#define LAST_PAUSE_MS  300000
#define CALM_MS        60000

struct keeping {
	const struct graft_config *config;
	const char *gpu;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_lease_mps places;
	struct graft_mps mps;
	const struct graft_lendable_gpu *lendable; /* without replicas if it is no longer shared */
	pid_t daemon;                              /* 0 = not known */
	int keeper_fd;
	int64_t pause_ms;   /* between two starts */
	int64_t not_before; /* the next start, on graft_clock_ms() */
};

static int write_mps_file(const struct keeping *keeping, const char *name, const char *text, struct graft_error *err)
{
	const char *path = graft_arena_printf(keeping->arena, "%s/%s", keeping->places.base, name);

	return path ? graft_host_file_write(path, text, strlen(text), 0644, err) : graft_fail_memory(err);
}

static void remove_file(const struct keeping *keeping, const char *name)
{
	const char *path = graft_arena_printf(keeping->arena, "%s/%s", keeping->places.base, name);

	if (path)
		(void)unlink(path);
}

/* ---- begin ---- */

static int find_lendable(struct keeping *keeping, struct graft_error *err)
{
	/* A question that needs the memory of GPUs. */
	const struct graft_claim claim = { .kind = GRAFT_CLAIM_ANY, .count = 1, .memory_mib = 1 };
	const struct graft_lendable_mig *mig;
	struct graft_lendable host;

	if (graft_lease_host_read(keeping->config, &claim, keeping->log, keeping->arena, &host, err) < 0)
		return -1;
	keeping->lendable = graft_lendable_find(&host, keeping->gpu, &mig);
	return keeping->lendable && !mig
		   ? 0
		   : graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "this host has no GPU '%.64s'", keeping->gpu);
}

/* Then no program can bypass the daemon. The previous mode is recorded first. */
static int set_exclusive(const struct keeping *keeping, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *mode;

	if (!keeping->config->leases.mps_exclusive)
		return 0;
	if (graft_root_open(&root, keeping->places.base, err) < 0 ||
	    graft_mps_read_mode(&keeping->mps, keeping->gpu, &mode, err) < 0)
		return -1;
	if (!graft_root_has(&root, GRAFT_LEASE_MPS_MODE, 0) &&
	    write_mps_file(keeping, GRAFT_LEASE_MPS_MODE, mode, err) < 0)
		return -1;
	return graft_mps_set_mode(&keeping->mps, keeping->gpu, GRAFT_MPS_EXCLUSIVE, err);
}

/* A holder can have at most its slot's share of the GPU. */
static int set_bounds(const struct keeping *keeping, struct graft_error *err)
{
	uint32_t replicas = keeping->lendable->replicas > 0 ? keeping->lendable->replicas : 1;
	const uint32_t mib = keeping->lendable->memory_mib / replicas;

	return graft_mps_limit(&keeping->mps, 100 / replicas, &mib, 1, err);
}

/* Take over a daemon that still runs because only its keeper was killed. */
static int start_daemon(struct keeping *keeping, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	const char *answer;

	if (graft_mps_make_directories(&keeping->mps, SHM_SIZE, err) < 0 || set_exclusive(keeping, err) < 0)
		return -1;
	if (graft_mps_ask(&keeping->mps, "get_server_list", &answer, &why) < 0 &&
	    graft_mps_start(&keeping->mps, err) < 0)
		return -1;
	if (set_bounds(keeping, err) < 0)
		return -1;
	keeping->daemon = graft_mps_pid(&keeping->mps);
	return 0;
}

/* ---- end ---- */

/* Restores the compute mode. If that fails, what it was stays known for another attempt. */
static void set_shared(const struct keeping *keeping)
{
	struct graft_error err = { .status = GRAFT_OK };
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *mode;
	size_t length;

	if (graft_root_open(&root, keeping->places.base, NULL) < 0 ||
	    graft_root_read(&root, GRAFT_LEASE_MPS_MODE, MODE_MAX, keeping->arena, &mode, &length) < 0)
		return;
	if (strcmp(mode, GRAFT_MPS_EXCLUSIVE) != 0 && graft_mps_set_mode(&keeping->mps, keeping->gpu, mode, &err) < 0)
		graft_warn(keeping->log, "cannot set the compute mode of %s: %s", keeping->gpu, err.msg);
	else
		remove_file(keeping, GRAFT_LEASE_MPS_MODE);
}

static void end_daemon(const struct keeping *keeping)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_mps_quit(&keeping->mps, &err) < 0)
		graft_warn(keeping->log, "MPS of %s: %s", keeping->gpu, err.msg);
	graft_mps_unmount(&keeping->mps);
	set_shared(keeping);
	remove_file(keeping, GRAFT_LEASE_MPS_STATE);
}

/* ---- in between ---- */

static bool has_mps_lease(const struct graft_lease_table *table, const char *gpu)
{
	for (size_t i = 0; i < table->n_leases; i++) {
		for (size_t k = 0; k < table->leases[i].n_slots; k++) {
			if (table->leases[i].slots[k].replica > 0 && strcmp(table->leases[i].slots[k].gpu, gpu) == 0)
				return true;
		}
	}
	return false;
}

/*
 * Returns 1 if a lease has a slot, 0 if none has, -1 for an error. `wait`: watches what may change.
 */
static int look_at_table(const struct keeping *keeping, struct graft_lease_wait *wait, struct graft_error *err)
{
	struct graft_arena *scratch = graft_arena_new(ROUND_MAX);
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	int rc = -1;

	if (!scratch)
		return graft_fail_memory(err);
	if (graft_lease_table_open(&table, keeping->config->leases.directory, true, scratch, err) == 0) {
		rc = has_mps_lease(&table, keeping->gpu) ? 1 : 0;
		/* A file that cannot be read may be a lease. */
		if (table.n_damages > 0)
			rc = 1;
		if (rc == 1 && wait && graft_lease_wait_watch(wait, &table, err) < 0)
			rc = -1;
	}
	graft_lease_table_close(&table);
	(void)graft_arena_free(scratch);
	return rc;
}

/* Restarts a daemon that has ended too early, along with its programs. */
static void revive_daemon(struct keeping *keeping)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (keeping->daemon == 0)
		return;
	if (graft_mps_has_pid(&keeping->mps, keeping->daemon)) {
		if (graft_clock_ms() > keeping->not_before + CALM_MS)
			keeping->pause_ms = 0;
		return;
	}
	if (graft_clock_ms() < keeping->not_before)
		return;
	/* If the GPU makes its daemon end each time, do not waste processor time on it. */
	keeping->pause_ms = keeping->pause_ms == 0                  ? FIRST_PAUSE_MS
			    : keeping->pause_ms < LAST_PAUSE_MS / 2 ? 2 * keeping->pause_ms
								    : LAST_PAUSE_MS;
	keeping->not_before = graft_clock_ms() + keeping->pause_ms;
	graft_warn(
	    keeping->log,
	    "the MPS daemon of %s, process %d, has ended; starting it again; the next restart is at least %lld s "
	    "away",
	    keeping->gpu, (int)keeping->daemon, (long long)keeping->pause_ms / 1000);
	if (start_daemon(keeping, &err) < 0)
		graft_warn(keeping->log, "MPS of %s: %s", keeping->gpu, err.msg);
}

/*
 * Becomes the same program again, with the lock: what the heap of a static program has freed does
 * not come back (docs/decisions/0020-musl.md). Returns if that is not possible.
 */
static void become_again(const struct keeping *keeping)
{
	char program[] = "/proc/self/exe", group[] = "lease", command[] = GRAFT_LEASE_MPS_COMMAND, lock[32];
	char *gpu = graft_arena_strdup(keeping->arena, keeping->gpu);
	char *const arguments[] = { program, group, command, lock, gpu, NULL };

	(void)snprintf(lock, sizeof(lock), "--lock=%d", keeping->keeper_fd);
	if (!gpu || fcntl(keeping->keeper_fd, F_SETFD, 0) < 0)
		return;
	(void)execv(program, arguments);
	(void)fcntl(keeping->keeper_fd, F_SETFD, FD_CLOEXEC);
}

/*
 * Returns, with the lock held, when no lease has a slot. If that cannot be determined, it
 * continues.
 */
static int keep_while_used(struct keeping *keeping, int *ret_lock_fd)
{
	auto_lease_wait struct graft_lease_wait wait = GRAFT_LEASE_WAIT_INIT;
	struct graft_error err = { .status = GRAFT_OK };

	wait.until = UINT64_MAX;
	for (unsigned int looks = 1;; looks++) {
		int rc = look_at_table(keeping, &wait, &err);

		if (rc == 0 && graft_lease_mps_lock(&keeping->places, keeping->arena, ret_lock_fd, &err) == 0) {
			rc = look_at_table(keeping, NULL, &err);
			if (rc == 0)
				return 0;
			(void)close(TAKE_FD(*ret_lock_fd));
		}
		if (rc < 0) {
			graft_warn(keeping->log, "MPS of %s: %s", keeping->gpu, err.msg);
			graft_error_clear(&err);
		}
		revive_daemon(keeping);
		if (rc == 1 && looks % LOOKS_MAX == 0)
			become_again(keeping);
		if (wait.n_fds == 0)
			(void)sleep(1);
		else if (graft_lease_wait_next(&wait, &err) < 0)
			return -1;
	}
}

/* Other processes hold the lock for a moment to see whether it is held. */
static bool become_only_keeper(int fd)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (unsigned int i = 0; i < 100; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

static int say_failure(const struct keeping *keeping, struct graft_error *err)
{
	char text[1024];

	/* The compute mode of a GPU that is gone went with it. */
	if (err->status == GRAFT_UNKNOWN_DEVICE)
		remove_file(keeping, GRAFT_LEASE_MPS_MODE);
	end_daemon(keeping);
	(void)write_mps_file(keeping, GRAFT_LEASE_MPS_STATE, graft_error_text(err, text, sizeof(text)), NULL);
	return -1;
}

int graft_lease_mps_keep(const struct graft_config *config, const char *gpu, int old_fd, const struct graft_log *log,
			 struct graft_arena *arena, struct graft_error *err)
{
	struct keeping keeping = { .config = config, .gpu = gpu, .log = log, .arena = arena };
	/* Release the lock last. */
	auto_close int lock_fd = -1, keeper_fd = -1;

	if (strchr(gpu, '/') || graft_lease_mps_place(config, gpu, arena, &keeping.places, err) < 0)
		return graft_fail(err, GRAFT_INVALID, 0, "'%.64s' is not the UUID of a GPU", gpu);
	keeping.mps = (struct graft_mps){ .root = config->cli.root,
					  .path = graft_catalog_binary_path(arena),
					  .devices = gpu,
					  .pipe = keeping.places.pipe,
					  .log = keeping.places.log,
					  .shm = keeping.places.shm,
					  .arena = arena };
	if (!keeping.mps.path)
		return graft_fail_memory(err);
	keeper_fd = old_fd >= 0 ? fcntl(old_fd, F_DUPFD_CLOEXEC, 0)
				: graft_lease_mps_open(&keeping.places, GRAFT_LEASE_MPS_KEEPER, arena);
	if (old_fd >= 0)
		(void)close(old_fd);
	if (keeper_fd < 0)
		return graft_fail_errno(err, errno, "%s/" GRAFT_LEASE_MPS_KEEPER, keeping.places.base);
	keeping.keeper_fd = keeper_fd;
	if (!become_only_keeper(keeper_fd))
		return graft_fail(err, GRAFT_BUSY, 0, "another process already supervises MPS of %s", gpu);
	if (find_lendable(&keeping, err) < 0 || start_daemon(&keeping, err) < 0 ||
	    write_mps_file(&keeping, GRAFT_LEASE_MPS_STATE, GRAFT_LEASE_MPS_READY, err) < 0)
		return say_failure(&keeping, err);
	if (keep_while_used(&keeping, &lock_fd) < 0)
		return graft_fail(err, GRAFT_IO, 0, "this process no longer supervises MPS of %s", gpu);
	end_daemon(&keeping);
	return 0;
}
