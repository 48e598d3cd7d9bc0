/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upkeep: what the installer does while it waits: nothing, until a signal comes or another program
 * changes what it has installed. Then it repairs that and logs it; but after the third time in ten
 * minutes it stops until the ten minutes are over: two programs that correct each other would
 * otherwise restart the engine endlessly.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "cli/installer/installer.h"
#include "start/installed.h"

#define MAX_REPAIRS 3
#define REPAIRS_MS  ((int64_t)10 * 60 * 1000)
#define SETTLE_MS   200
#define RETRY_MS    ((int64_t)60 * 1000)
#define SWEEP_MS    ((int64_t)60 * 1000)
#define TRIES       6
#define MAX_WATCHES 8
#define PATHS_MAX   ((size_t)64 << 10)

enum { HAS_REPAIRED = 1, HAS_FAILED = 2 }; /* exit status of a check */

struct watch {
	int number;
	const char *name; /* the file in the directory to watch; NULL: all */
};

struct upkeep {
	const struct installer_options *options;
	const struct ctk_list *runtimes;
	pid_t *nri, looker; /* 0: no check is running */
	int signal_fd, notify_fd;
	struct watch watches[MAX_WATCHES];
	size_t n_watches;
	int64_t repairs[MAX_REPAIRS]; /* the last repairs, the oldest first; 0: none */
	int64_t sweep_ms, repair_ms;  /* when to sweep, when to check again; 0: never */
	bool is_due;                  /* something may have changed */
	bool by_others;               /* because of an event */
	bool refusal_logged;
	bool has_failed; /* the last repair failed and is tried again */
};

static void close_upkeep(struct upkeep *upkeep)
{
	if (upkeep->signal_fd >= 0)
		(void)close(upkeep->signal_fd);
	if (upkeep->notify_fd >= 0)
		(void)close(upkeep->notify_fd);
}

/* ---- what is watched ---- */

/* Watches a directory, or a file. */
static void add_watch(struct upkeep *upkeep, const char *path, const char *name)
{
	const uint32_t mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_DELETE_SELF |
			      IN_MOVE_SELF;
	int number = path ? inotify_add_watch(upkeep->notify_fd, path, mask) : -1;

	if (number >= 0 && upkeep->n_watches < MAX_WATCHES)
		upkeep->watches[upkeep->n_watches++] = (struct watch){ number, name };
}

/*
 * `path` lives as long as the process. The file itself is watched as well: if `path` is a link, it
 * is in another directory.
 */
static void watch_file(struct upkeep *upkeep, const char *path, struct graft_arena *arena)
{
	if (!path)
		return;
	add_watch(upkeep, graft_path_directory(path, arena), graft_path_name(path));
	add_watch(upkeep, path, NULL);
}

static void watch_installed_places(struct upkeep *upkeep, struct graft_arena *arena)
{
	const struct installer_options *o = upkeep->options;
	const char *config = graft_arena_printf(arena, "%s/" GRAFT_OWN_CONFIG, o->toolkit);

	add_watch(upkeep, o->install_dir, GRAFT_TOOLKIT_DIRECTORY);
	add_watch(upkeep, o->toolkit, NULL);
	add_watch(upkeep, config ? graft_path_directory(config, arena) : NULL, graft_path_name(GRAFT_OWN_CONFIG));
	if (o->no_runtime_config || o->nri)
		return;
	if (o->by_hook) {
		add_watch(upkeep, o->hooks_dir, o->hook_filename);
	} else {
		watch_file(upkeep, o->config, arena);
		watch_file(upkeep, o->drop_in_path, arena);
	}
}

/* After an exchange the directories are different ones, so watch everything again. */
static int watch_installation(struct upkeep *upkeep, struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new(PATHS_MAX);

	if (upkeep->notify_fd >= 0)
		(void)close(upkeep->notify_fd);
	upkeep->n_watches = 0;
	upkeep->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (upkeep->notify_fd < 0 || !arena) {
		(void)graft_arena_free(arena);
		return upkeep->notify_fd < 0 ? graft_fail_errno(err, errno, "cannot watch files")
					     : graft_fail_memory(err);
	}
	watch_installed_places(upkeep, arena);
	(void)graft_arena_free(arena);
	return 0;
}

static bool concerns_us(const struct upkeep *upkeep, const struct inotify_event *event)
{
	if ((event->mask & IN_IGNORED) != 0)
		return false;
	if ((event->mask & IN_Q_OVERFLOW) != 0)
		return true;
	for (size_t i = 0; i < upkeep->n_watches; i++) {
		const struct watch *watch = &upkeep->watches[i];

		if (watch->number == event->wd &&
		    (!watch->name || event->len == 0 || strcmp(watch->name, event->name) == 0))
			return true;
	}
	return false;
}

static void read_events(struct upkeep *upkeep)
{
	char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(upkeep->notify_fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const void *)(bytes + at);

			if (concerns_us(upkeep, event))
				upkeep->is_due = upkeep->by_others = true;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
}

/* ---- repairs ---- */

static void warn_of_failure(const struct upkeep *upkeep, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx)];

	graft_warn(&upkeep->options->base.ctk->log, "Could not repair the installation: %s",
		   graft_error_text(err, text, sizeof(text)));
}

/*
 * Whether another repair is allowed now. If not, and an event asked for it, logs when it will be.
 */
static bool may_repair(struct upkeep *upkeep)
{
	int64_t now = graft_clock_ms();

	if (upkeep->repairs[0] == 0 || now - upkeep->repairs[0] >= REPAIRS_MS)
		return true;
	upkeep->repair_ms = upkeep->repairs[0] + REPAIRS_MS;
	if (upkeep->by_others && !upkeep->refusal_logged) {
		upkeep->refusal_logged = true;
		graft_log_write(
		    &upkeep->options->base.ctk->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__,
		    "Files of this installation were changed again after %d repairs: not repairing for %lld "
		    "seconds. 'nvidia-ctk doctor node' names other installers on this node",
		    MAX_REPAIRS, (long long)(upkeep->repair_ms - now + 999) / 1000);
	}
	return false;
}

static void note_repair(struct upkeep *upkeep)
{
	memmove(upkeep->repairs, upkeep->repairs + 1, sizeof(upkeep->repairs) - sizeof(upkeep->repairs[0]));
	upkeep->repairs[MAX_REPAIRS - 1] = graft_clock_ms();
}

/* Returns 1 after a repair, 0 without one, -1 after a failure, which is logged. */
static int repair_toolkit(struct upkeep *upkeep)
{
	const struct installer_options *o = upkeep->options;
	struct graft_error err = { .status = GRAFT_OK };
	int rc = installer_toolkit_install(o, upkeep->runtimes, &err);

	if (rc < 0)
		warn_of_failure(upkeep, &err);
	else if (rc > 0)
		graft_warn(&o->base.ctk->log, "Another program has changed %s: reinstalled it", o->toolkit);
	return rc < 0 ? -1 : rc > 0;
}

static int repair_engine(struct upkeep *upkeep)
{
	const struct installer_options *o = upkeep->options;
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	if (o->no_runtime_config || o->nri)
		return 0;
	rc = installer_engine_configure(o, &err);
	if (rc > 0)
		graft_warn(&o->base.ctk->log, "Another program has changed the configuration of %s: it was repaired",
			   o->engine->name);
	/* A reload that failed before is done now. */
	if (rc < 0 || ((rc > 0 || upkeep->has_failed) && installer_engine_reload(o, rc > 0, TRIES, &err) < 0)) {
		warn_of_failure(upkeep, &err);
		return -1;
	}
	return rc > 0;
}

/* ---- checks ---- */

void installer_become_child(pid_t parent, int death_signal)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, death_signal);
	if (getppid() != parent)
		_exit(0);
	for (size_t i = 0; installer_signals[i] != 0; i++)
		(void)sigaction(installer_signals[i], &usual, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Checks everything and repairs it, in a separate process: an engine that does not answer can take
 * half a minute, and this process has to clean up as soon as a signal arrives. Memory that the
 * check allocates is freed with its process.
 */
_Noreturn static void look_and_repair(struct upkeep *upkeep, pid_t parent)
{
	int toolkit, engine;

	installer_become_child(parent, SIGKILL);
	toolkit = repair_toolkit(upkeep);
	engine = repair_engine(upkeep);
	_exit((toolkit > 0 || engine > 0 ? HAS_REPAIRED : 0) | (toolkit < 0 || engine < 0 ? HAS_FAILED : 0));
}

static int start_to_look(struct upkeep *upkeep, struct graft_error *err)
{
	pid_t parent = getpid();
	bool allowed = may_repair(upkeep);

	upkeep->is_due = upkeep->by_others = false;
	if (!allowed)
		return 0;
	upkeep->repair_ms = 0;
	upkeep->refusal_logged = false;
	if (watch_installation(upkeep, err) < 0)
		return -1;
	upkeep->looker = fork();
	if (upkeep->looker < 0)
		return graft_fail_errno(err, errno, "cannot look after the installation");
	if (upkeep->looker == 0)
		look_and_repair(upkeep, parent);
	return 0;
}

/* Handles the result of a check. */
static int take_look(struct upkeep *upkeep, int status, struct graft_error *err)
{
	int found = WIFEXITED(status) ? WEXITSTATUS(status) : HAS_FAILED;

	upkeep->looker = 0;
	upkeep->has_failed = (found & HAS_FAILED) != 0;
	if (upkeep->has_failed)
		upkeep->repair_ms = graft_clock_ms() + RETRY_MS;
	if ((found & HAS_REPAIRED) == 0)
		return 0;
	note_repair(upkeep);
	if (!installer_toolkit_sweep(upkeep->options))
		upkeep->sweep_ms = graft_clock_ms() + SWEEP_MS;
	/* Finds changes from before it was watched again; not those of the check itself. */
	upkeep->is_due = true;
	upkeep->by_others = false;
	return watch_installation(upkeep, err);
}

/* Everything that it has written is complete, and the cleanup undoes it anyway. */
static void stop_to_look(struct upkeep *upkeep)
{
	if (upkeep->looker <= 0)
		return;
	(void)kill(upkeep->looker, SIGKILL);
	(void)waitpid(upkeep->looker, NULL, 0);
	upkeep->looker = 0;
}

/* ---- waiting ---- */

/* Milliseconds until the next scheduled action; -1: never. */
static int next_wait(const struct upkeep *upkeep)
{
	int64_t at = upkeep->looker == 0 ? upkeep->sweep_ms : 0, now = graft_clock_ms();

	if (upkeep->is_due && upkeep->looker == 0)
		return SETTLE_MS;
	if (upkeep->repair_ms != 0 && upkeep->looker == 0 && (at == 0 || upkeep->repair_ms < at))
		at = upkeep->repair_ms;
	if (at == 0)
		return -1;
	return at <= now ? 0 : (int)(at - now);
}

/*
 * Returns -1 if the process that serves NRI has ended; its PID may then belong to another process.
 */
static int check_nri_process(const struct upkeep *upkeep, struct graft_error *err)
{
	int status;

	if (*upkeep->nri <= 0 || waitpid(*upkeep->nri, &status, WNOHANG) != *upkeep->nri)
		return 0;
	*upkeep->nri = -1;
	return graft_fail(err, GRAFT_PROGRAM, 0, "the NRI plugin has ended with status %d",
			  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/*
 * Returns 1 if the signal ends the program, 0 if not, -1 on an error: the process that serves NRI
 * has ended.
 */
static int read_signal(struct upkeep *upkeep, struct graft_error *err)
{
	struct signalfd_siginfo info;
	int status;

	if (read(upkeep->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	if (info.ssi_signo != SIGCHLD)
		return 1;
	if (upkeep->looker > 0 && waitpid(upkeep->looker, &status, WNOHANG) == upkeep->looker &&
	    take_look(upkeep, status, err) < 0)
		return -1;
	return check_nri_process(upkeep, err);
}

static int wait_for_signal(struct upkeep *upkeep, struct graft_error *err)
{
	for (;;) {
		struct pollfd polled[] = { { .fd = upkeep->signal_fd, .events = POLLIN },
					   { .fd = upkeep->notify_fd, .events = POLLIN } };
		int rc = poll(polled, GRAFT_COUNT(polled), next_wait(upkeep));
		int64_t now = graft_clock_ms();

		if (rc < 0 && errno != EINTR)
			return graft_fail_errno(err, errno, "cannot wait");
		if (rc > 0 && polled[0].revents != 0) {
			int ended = read_signal(upkeep, err);

			if (ended != 0)
				return ended < 0 ? -1 : 0;
		}
		if (rc > 0 && polled[1].revents != 0)
			read_events(upkeep);
		/* Not while a check fills a stage: the sweep would be in vain. */
		if (upkeep->looker == 0 && upkeep->sweep_ms != 0 && now >= upkeep->sweep_ms)
			upkeep->sweep_ms = installer_toolkit_sweep(upkeep->options) ? 0 : now + SWEEP_MS;
		if (upkeep->looker == 0 &&
		    ((rc == 0 && upkeep->is_due) || (upkeep->repair_ms != 0 && now >= upkeep->repair_ms)) &&
		    start_to_look(upkeep, err) < 0)
			return -1;
	}
}

int installer_wait(const struct installer_options *o, const struct ctk_list *runtimes, pid_t *nri,
		   struct graft_error *err)
{
	struct upkeep upkeep = { .options = o, .runtimes = runtimes, .nri = nri, .signal_fd = -1, .notify_fd = -1 };
	sigset_t signals;
	int rc;

	(void)sigemptyset(&signals);
	for (size_t i = 0; installer_signals[i] != 0; i++)
		(void)sigaddset(&signals, installer_signals[i]);
	(void)sigaddset(&signals, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	upkeep.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (upkeep.signal_fd < 0)
		return graft_fail_errno(err, errno, "cannot wait for signals");
	/* Not earlier: a signal would still end the program, without cleaning up. */
	graft_info(&o->base.ctk->log, "Waiting for signal");
	if (!installer_toolkit_sweep(o))
		upkeep.sweep_ms = graft_clock_ms() + SWEEP_MS;
	/* It may have ended before we waited for its signal. */
	rc = check_nri_process(&upkeep, err);
	if (rc == 0)
		rc = watch_installation(&upkeep, err);
	if (rc == 0) {
		/* Finds changes from before it was watched. */
		upkeep.is_due = true;
		rc = wait_for_signal(&upkeep, err);
	}
	stop_to_look(&upkeep);
	close_upkeep(&upkeep);
	return rc;
}
