/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fails every system call and every allocation of the apply stage once, in turn. Afterwards mounts,
 * trees and the calling process are as before; a failure that does not fail the whole (rare) leaves
 * everything applied.
 *
 * The calls are counted in the C library's functions (ld --wrap), between arm() and disarm(). The
 * counter is shared with children.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../unit/unit.h"
#include "apply_standins.h"
#include "apply_world.h"

enum fault_class { SYSTEM_CALL, ALLOCATION };

static struct counter {
	bool armed;
	enum fault_class class;
	int left; /* calls until the failing one */
	char name[32];
} * counter;

static void arm(enum fault_class class, int n)
{
	*counter = (struct counter){ .armed = true, .class = class, .left = n };
}

/* Returns whether the failure happened. */
static bool disarm(void)
{
	counter->armed = false;
	return counter->left == 0;
}

static bool fails(enum fault_class class, const char *name)
{
	if (!counter || !counter->armed || counter->class != class || counter->left == 0 || --counter->left > 0)
		return false;
	(void)snprintf(counter->name, sizeof(counter->name), "%s", name);
	errno = class == ALLOCATION ? ENOMEM : EIO;
	return true;
}

/* Functions with a fixed number of arguments: X(result, name, parameters, arguments). */
#define WRAPPED_LIST(X)                                                                                          \
	X(int, __open64_2, (const char *path, int flags), (path, flags))                                         \
	X(int, __openat64_2, (int fd, const char *path, int flags), (fd, path, flags))                           \
	X(int, fstat64, (int fd, struct stat64 *st), (fd, st))                                                   \
	X(int, stat64, (const char *path, struct stat64 *st), (path, st))                                        \
	X(int, fstatfs64, (int fd, struct statfs64 *st), (fd, st))                                               \
	X(int, fchdir, (int fd), (fd))                                                                           \
	X(int, setns, (int fd, int type), (fd, type))                                                            \
	X(int, mount,                                                                                            \
	  (const char *source, const char *target, const char *type, unsigned long flags, const void *data),     \
	  (source, target, type, flags, data))                                                                   \
	X(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))                               \
	X(int, symlinkat, (const char *text, int fd, const char *path), (text, fd, path))                        \
	X(int, renameat, (int from_fd, const char *from, int to_fd, const char *to), (from_fd, from, to_fd, to)) \
	X(ssize_t, readlinkat, (int fd, const char *path, char *text, size_t size), (fd, path, text, size))      \
	X(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))                                 \
	X(ssize_t, getrandom, (void *bytes, size_t n, unsigned int flags), (bytes, n, flags))

#define X(result, name, parameters, arguments)                                           \
	result __real_##name parameters;                                                 \
	result __wrap_##name parameters;                                                 \
	result __wrap_##name parameters                                                  \
	{                                                                                \
		return fails(SYSTEM_CALL, #name) ? (result)-1 : __real_##name arguments; \
	}
WRAPPED_LIST(X)
#undef X

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __real_openat64(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, mode_t mode);
int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, long argument);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
int __real_setfsuid(uid_t id);
int __wrap_setfsuid(uid_t id);
int __real_setfsgid(gid_t id);
int __wrap_setfsgid(gid_t id);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *bytes, size_t size);
void *__wrap_realloc(void *bytes, size_t size);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);

int __wrap_open64(const char *path, int flags, mode_t mode)
{
	return fails(SYSTEM_CALL, "open") ? -1 : __real_open64(path, flags, mode);
}

int __wrap_openat64(int fd, const char *path, int flags, mode_t mode)
{
	return fails(SYSTEM_CALL, "openat") ? -1 : __real_openat64(fd, path, flags, mode);
}

int __wrap_fcntl64(int fd, int command, long argument)
{
	return fails(SYSTEM_CALL, "fcntl") ? -1 : __real_fcntl64(fd, command, argument);
}

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "syscall %ld", number);
	return fails(SYSTEM_CALL, name) ? -1 : __real_syscall(number, a, b, c, d, e, f);
}

/* These fail by doing nothing, but never when the process returns to its own ID. */
int __wrap_setfsuid(uid_t id)
{
	return __real_setfsuid(id != getuid() && fails(SYSTEM_CALL, "setfsuid") ? (uid_t)-1 : id);
}

int __wrap_setfsgid(gid_t id)
{
	return __real_setfsgid(id != getgid() && fails(SYSTEM_CALL, "setfsgid") ? (gid_t)-1 : id);
}

void *__wrap_malloc(size_t size)
{
	return fails(ALLOCATION, "malloc") ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails(ALLOCATION, "calloc") ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *bytes, size_t size)
{
	return fails(ALLOCATION, "realloc") ? NULL : __real_realloc(bytes, size);
}

char *__wrap_strdup(const char *s)
{
	return fails(ALLOCATION, "strdup") ? NULL : __real_strdup(s);
}

/* A container before anything is applied, and its state, which is taken once: each failure leaves it the same. */
struct fresh {
	struct world *world;
	struct graft_buffer all, process;
};

static struct fresh fresh_new(enum world_kind kind)
{
	struct fresh fresh = { .world = world_new(kind) };

	fresh.world->cgroup = &standin_cgroup;
	fresh.world->step = standin_step;
	standin_calls = (struct standin_calls){ .cgroup_allow = 0 };
	world_usual_image(fresh.world);
	world_plan_all(fresh.world);
	world_start(fresh.world);
	world_snapshot(fresh.world, &fresh.all);
	world_process(&fresh.process);
	return fresh;
}

static void fresh_free(struct fresh *fresh)
{
	world_free(fresh->world);
	graft_buffer_done(&fresh->all);
	graft_buffer_done(&fresh->process);
}

/* Runs once with the n-th call failing. False: there were fewer calls. */
static bool fail_nth(const struct fresh *fresh, enum fault_class class, int n, bool *ret_applied)
{
	struct world *world = fresh->world;
	struct graft_buffer after = { 0 };
	char when[160];
	bool happened;
	int rc;

	arm(class, n);
	rc = world_apply(world);
	happened = disarm();
	*ret_applied = rc == 0;
	(void)snprintf(when, sizeof(when), "%s, call %d (%s)", world_kind_names[world->kind], n, counter->name);
	if (rc == 0) {
		world_check_all(world);
		world_process(&after);
		world_assert_same(&fresh->process, &after, when);
	} else {
		world_snapshot(world, &after);
		world_assert_same(&fresh->all, &after, when);
		if (world->error.status == GRAFT_OK || world->error.msg[0] == '\0')
			fail_msg("%s: no error was told", when);
		if (strstr(world->log, "could not undo"))
			fail_msg("%s: %s", when, world->log);
	}
	graft_buffer_done(&after);
	return happened;
}

static void fail_each(enum world_kind kind, enum fault_class class)
{
	struct fresh fresh = fresh_new(kind);
	bool happened = true, applied = false;
	int n = 1, tolerated = 0;

	for (; happened; n++) {
		happened = fail_nth(&fresh, class, n, &applied);
		if (happened && applied) {
			tolerated++;
			(void)fprintf(stderr, "# tolerated: %s\n", counter->name);
			fresh_free(&fresh);
			fresh = fresh_new(kind);
		}
	}
	assert_true(applied);
	(void)fprintf(stderr, "# %s: %d %s failed in turn, %d of them without harm\n", world_kind_names[kind], n - 2,
		      class == ALLOCATION ? "allocations" : "calls", tolerated);
	/* Otherwise nothing was wrapped. */
	assert_true(n > (class == ALLOCATION ? 10 : 100));
	assert_true(tolerated < n / 3);
	fresh_free(&fresh);
}

static void test_system_calls(void **state)
{
	for (int kind = 0; kind < WORLD_KIND_MAX; kind++)
		fail_each((enum world_kind)kind, SYSTEM_CALL);
}

static void test_allocations(void **state)
{
	for (int kind = 0; kind < WORLD_KIND_MAX; kind++)
		fail_each((enum world_kind)kind, ALLOCATION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_system_calls),
		cmocka_unit_test(test_allocations),
	};

	counter = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counter == MAP_FAILED)
		return 1;
	counter->armed = false;
	world_enter("apply_faults");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
