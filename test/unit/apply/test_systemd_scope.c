/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_scope: which scope a process is in, and what is requested of systemd for it: no more than
 * necessary, and nothing that removes a right.
 */
#include "../allocation.h"
#include "../unit.h"
#include "apply/cgroup/systemd_scope.h"
#include "base/cleanup.h"
#include "fake_systemd.h"

static char log_text[2048];

static void note(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	size_t used = strlen(log_text);

	(void)snprintf(log_text + used, sizeof(log_text) - used, "%s\n", message);
}

static const struct graft_log logger = { .write = note, .max = GRAFT_LOG_DEBUG };

static int setup(void **state)
{
	log_text[0] = '\0';
	return 0;
}

/* -------- the scope of a path -------- */

static void test_find(void **state)
{
	static const struct {
		const char *path, *name, *group; /* name NULL: none */
	} rows[] = {
		{ "/system.slice/docker-12.scope", "docker-12.scope", "/system.slice/docker-12.scope" },
		{ "/machine.slice/libpod-1.scope/container", "libpod-1.scope", "/machine.slice/libpod-1.scope" },
		{ "/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope", "cri-containerd-2.scope",
		  "/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope" },
		{ "/a.scope", "a.scope", "/a.scope" },
		/* The innermost: a systemd in a container has scopes below the container's own. */
		{ "/system.slice/docker-1.scope/system.slice/docker-2.scope", "docker-2.scope",
		  "/system.slice/docker-1.scope/system.slice/docker-2.scope" },
		/* systemd escapes names that begin like files of the kernel. */
		{ "/system.slice/_cgroup.procs.scope", "cgroup.procs.scope", "/system.slice/_cgroup.procs.scope" },
		{ "/", NULL, NULL },
		{ "", NULL, NULL },
		{ "/docker/1234", NULL, NULL },
		{ "/system.slice/docker.service", NULL, NULL },
		{ "/system.slice/.scope", NULL, NULL },
		{ "/system.slice/a.scopes", NULL, NULL },
		{ "/system.slice/a.scope.d/x", NULL, NULL },
		{ "a.scope", NULL, NULL },
		/* A user's own systemd. */
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-1.scope", NULL, NULL },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope/container", NULL, NULL },
		/* Outside of our cgroup namespace. */
		{ "/../system.slice/docker-1.scope", NULL, NULL },
		{ "/..", NULL, NULL },
		{ "/..a/b.scope", "b.scope", "/..a/b.scope" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct graft_scope scope = { "", "" };
		bool found = graft_scope_find(rows[i].path, &logger, &scope);

		if (found != (rows[i].name != NULL))
			fail_msg("'%s'", rows[i].path);
		if (found) {
			assert_string_equal(scope.name, rows[i].name);
			assert_string_equal(scope.group, rows[i].group);
		}
	}
}

/* Names and paths that no unit can have. */
static void test_find_too_long(void **state)
{
	struct graft_scope scope;
	static char path[GRAFT_SCOPE_GROUP_MAX + 64];

	(void)snprintf(path, sizeof(path), "/system.slice/%0250d.scope", 1);
	assert_false(graft_scope_find(path, &logger, &scope));
	(void)snprintf(path, sizeof(path), "/system.slice/%0249d.scope", 1);
	assert_true(graft_scope_find(path, &logger, &scope));
	(void)snprintf(path, sizeof(path), "/%0*d/a.scope", GRAFT_SCOPE_GROUP_MAX - 8, 1);
	assert_false(graft_scope_find(path, &logger, &scope));
}

/* -------- what is requested -------- */

#define GPU0 "/dev/char/195:0"
#define CTL  "/dev/char/195:255"
#define HERE "0::/system.slice/docker-1.scope\n"

static const struct graft_scope_device devices[] = { { 195, 0, "rw" }, { 195, 255, "rw" } };

static int tell_at(struct fake_systemd *fake, const char *text, struct graft_error *err)
{
	const struct graft_systemd_address addresses[] = { { fake->address, false }, { NULL, false } };
	const struct graft_systemd systemd = { "libsystemd.so.0", addresses, 5000 };

	return graft_systemd_scope_allow_at(&systemd, "/proc/7/cgroup", text, strlen(text), devices, 2, &logger, err);
}

static const struct {
	const char *what;
	const char *cgroup;
	struct fake_systemd unit;
	int result;
	const char *told; /* "" = nothing */
	const char *log;  /* a part of it */
} cases[] = {
	{ "a container of an engine",
	  HERE,
	  { .control_group = "/system.slice/docker-1.scope",
	    .policy = "strict",
	    .allows = { { "/dev/char/1:3", "rwm" }, { "char-pts", "rwm" } },
	    .n_allows = 2 },
	  1,
	  "docker-1.scope 1 " GPU0 "=rw " CTL "=rw",
	  "informed systemd that 'docker-1.scope' may use " GPU0 " (rw)\n" },
	{ "a strict policy without entries",
	  HERE,
	  { .control_group = "/system.slice/docker-1.scope", .policy = "strict" },
	  1,
	  "docker-1.scope 1 " GPU0 "=rw " CTL "=rw",
	  "informed systemd" },
	{ "entries under 'auto' confine as well",
	  HERE,
	  { .control_group = "/system.slice/docker-1.scope",
	    .policy = "auto",
	    .allows = { { "/dev/null", "rw" } },
	    .n_allows = 1 },
	  1,
	  "docker-1.scope 1 " GPU0 "=rw " CTL "=rw",
	  "informed systemd" },
	{ "what the engine gave already stays as it is",
	  HERE,
	  { .control_group = "/system.slice/docker-1.scope",
	    .policy = "strict",
	    .allows = { { GPU0, "rwm" }, { CTL, "rw" } },
	    .n_allows = 2 },
	  0,
	  "",
	  "systemd already knows the devices of 'docker-1.scope'\n" },
	{ "a right that was there is kept",
	  HERE,
	  { .control_group = "/system.slice/docker-1.scope",
	    .policy = "strict",
	    .allows = { { GPU0, "rm" }, { CTL, "rwm" } },
	    .n_allows = 2 },
	  1,
	  "docker-1.scope 1 " GPU0 "=rwm",
	  "informed systemd" },
	{ "a privileged container: the first entry would confine it",
	  HERE,
	  { .control_group = "/system.slice/docker-1.scope", .policy = "auto" },
	  0,
	  "",
	  "systemd was not informed of the devices of 'docker-1.scope': it may use every device\n" },
	{ "somebody else's name",
	  HERE,
	  { .control_group = "/machine.slice/docker-1.scope", .policy = "strict" },
	  0,
	  "",
	  "systemd has another cgroup for it\n" },
	{ "a name that systemd does not know",
	  HERE,
	  { .control_group = "", .policy = "auto" },
	  0,
	  "",
	  "systemd does not know it; something else made the cgroup\n" },
	{ "cgroup v1: systemd's own hierarchy counts",
	  "5:devices:/other.scope\n1:name=systemd:/system.slice/docker-1.scope\n0::/\n",
	  { .control_group = "/system.slice/docker-1.scope", .policy = "strict" },
	  1,
	  "docker-1.scope 1 " GPU0 "=rw " CTL "=rw",
	  "informed systemd" },
	{ "cgroup v2 where the kernel names v1 as well",
	  "5:devices:/\n1:name=systemd:/\n" HERE,
	  { .control_group = "/system.slice/docker-1.scope", .policy = "strict" },
	  1,
	  "docker-1.scope 1 " GPU0 "=rw " CTL "=rw",
	  "informed systemd" },
};

static void test_tell(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct fake_systemd fake = cases[i].unit;
		struct graft_error err = { 0 };

		print_message("%s\n", cases[i].what);
		log_text[0] = '\0';
		fake_start(&fake);
		assert_int_equal(tell_at(&fake, cases[i].cgroup, &err), cases[i].result);
		assert_string_equal(fake.shared->told, cases[i].told);
		if (!strstr(log_text, cases[i].log))
			fail_msg("'%s' is not in '%s'", cases[i].log, log_text);
		fake_stop(&fake);
	}
}

/* Without a scope nothing is requested, and no library is opened. */
static void test_no_scope(void **state)
{
	static const char *const texts[] = {
		"",
		"0::/\n",
		"12:devices:/docker/1\n1:name=systemd:/docker/1\n0::/docker/1\n",
		"0::/system.slice/docker.service\n",
		"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-1.scope\n",
		"5:devices:/system.slice/docker-1.scope\n0::/\n",
	};
	const struct graft_systemd systemd = { "libgraft-none.so.0", NULL, 1000 };

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		struct graft_error err = { 0 };

		log_text[0] = '\0';
		assert_int_equal(graft_systemd_scope_allow_at(&systemd, "/proc/7/cgroup", texts[i], strlen(texts[i]),
							      devices, 2, &logger, &err),
				 0);
		assert_non_null(
		    strstr(log_text, "systemd was not informed of the devices: /proc/7/cgroup names no scope\n"));
	}
}

static void test_failures(void **state)
{
	struct fake_systemd fake = { .mode = FAKE_REFUSES,
				     .control_group = "/system.slice/docker-1.scope",
				     .policy = "strict" };
	struct graft_error err = { 0 };
	char text[1024];

	fake_start(&fake);
	assert_int_equal(tell_at(&fake, HERE, &err), -1);
	assert_int_equal(err.status, GRAFT_PERMISSION);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "scope 'docker-1.scope': systemd refused to add the devices to the container's scope: "
			    "nobody may do that: permission denied");
	fake_stop(&fake);
	assert_int_equal(tell_at(&fake, "malformed\n", &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "/proc/7/cgroup: malformed cgroup entry: malformed");
}

/* A process that has ended; and without devices nothing is looked up. */
static void test_process(void **state)
{
	struct graft_error err = { 0 };
	pid_t gone = fork();

	assert_true(gone >= 0);
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	assert_int_equal(graft_systemd_scope_allow(gone, devices, 2, &logger, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_int_equal(graft_systemd_scope_allow(gone, devices, 0, &logger, &err), 0);
}

static void test_no_memory(void **state)
{
	struct fake_systemd fake = { .control_group = "/system.slice/docker-1.scope",
				     .policy = "strict",
				     .allows = { { GPU0, "rm" } },
				     .n_allows = 1 };

	fake_start(&fake);
	for (int n = 1;; n++) {
		struct graft_error err = { 0 };
		int r;

		allocation_fail(n);
		r = tell_at(&fake, HERE, &err);
		if (!allocation_failed()) {
			assert_int_equal(r, 1);
			assert_string_equal(fake.shared->told, "docker-1.scope 1 " GPU0 "=rwm " CTL "=rw");
			assert_true(n > 3);
			break;
		}
		assert_int_equal(r, -1);
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
	fake_stop(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_find, setup),      cmocka_unit_test_setup(test_find_too_long, setup),
		cmocka_unit_test_setup(test_tell, setup),      cmocka_unit_test_setup(test_no_scope, setup),
		cmocka_unit_test_setup(test_failures, setup),  cmocka_unit_test_setup(test_process, setup),
		cmocka_unit_test_setup(test_no_memory, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
