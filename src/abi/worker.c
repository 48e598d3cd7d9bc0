/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: a thread that can join a container. setns(2) refuses a mount namespace to a thread that
 * shares its root and working directory with others, and joining must not move the rest of the
 * process; umask and file system IDs are shared or per thread in the same way.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "abi/abi.h"

struct work {
	int (*run)(void *arg, struct graft_error *err);
	void *arg;
	struct graft_error *err;
	int result;
};

static void *work_apart(void *arg)
{
	struct work *work = arg;

	if (unshare(CLONE_FS) < 0)
		work->result = graft_fail_errno(work->err, errno, "process confinement failed");
	else
		work->result = work->run(work->arg, work->err);
	return NULL;
}

/* Enough descriptors for several large containers at once; the usual soft limit is lower. */
#define DESCRIPTORS 16384

/*
 * State that exists once per process and that workers change: saved by the first of the workers
 * that run at a time, and restored by the last. QUIRK: the kernel makes a process undumpable, so
 * that it cannot be traced, as soon as one of its threads changes its file system IDs. The apply
 * stage raises limits and restores them; two threads doing so at once would each restore what the
 * other had set.
 */
static struct {
	pthread_mutex_t lock;
	unsigned int n_workers;
	int dumpable;
	struct rlimit descriptors, locked_memory;
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void keep_process(void)
{
	struct rlimit more;

	process.dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	(void)getrlimit(RLIMIT_MEMLOCK, &process.locked_memory);
	(void)getrlimit(RLIMIT_NOFILE, &process.descriptors);
	more = process.descriptors;
	if (more.rlim_cur >= DESCRIPTORS)
		return;
	more.rlim_cur = more.rlim_max < DESCRIPTORS ? more.rlim_max : DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &more);
}

static void restore_process(void)
{
	if (process.dumpable == 1)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)setrlimit(RLIMIT_MEMLOCK, &process.locked_memory);
	(void)setrlimit(RLIMIT_NOFILE, &process.descriptors);
}

static void begin_work(void)
{
	(void)pthread_mutex_lock(&process.lock);
	if (process.n_workers++ == 0)
		keep_process();
	(void)pthread_mutex_unlock(&process.lock);
}

static void end_work(void)
{
	(void)pthread_mutex_lock(&process.lock);
	if (--process.n_workers == 0)
		restore_process();
	(void)pthread_mutex_unlock(&process.lock);
}

int abi_run_apart(int (*run)(void *arg, struct graft_error *err), void *arg, struct graft_error *err)
{
	struct work work = { .run = run, .arg = arg, .err = err, .result = -1 };
	sigset_t all, old;
	pthread_t thread;
	int status;

	/* The worker blocks all signals: they are for the program's own threads. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	begin_work();
	status = pthread_create(&thread, NULL, work_apart, &work);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (status == 0)
		(void)pthread_join(thread, NULL);
	end_work();
	return status == 0 ? work.result : graft_fail_errno(err, status, "process creation failed");
}
