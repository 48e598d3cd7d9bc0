/* SPDX-License-Identifier: Apache-2.0 */
/* Capability limits, each tried in a child and read back from /proc/self/status, in a user namespace where everybody has them all. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/caps.h"
#include "base/cleanup.h"

#define BIT(name) (UINT64_C(1) << CAP_##name)
enum { NO_USER_NAMESPACE = 77 };

/* SPEC libnvidia-container 4.1, the 13. */
static const uint64_t thirteen = BIT(CHOWN) | BIT(DAC_OVERRIDE) | BIT(DAC_READ_SEARCH) | BIT(FOWNER) | BIT(KILL) |
				 BIT(MKNOD) | BIT(NET_ADMIN) | BIT(SETGID) | BIT(SETPCAP) | BIT(SETUID) |
				 BIT(SYS_ADMIN) | BIT(SYS_CHROOT) | BIT(SYS_PTRACE);

/* A field of /proc/self/status in hex. */
static uint64_t status_field(const char *name)
{
	char text[8192];
	auto_close int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	const char *line;

	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, name);
	return line ? strtoull(line + strlen(name), NULL, 16) : UINT64_MAX;
}

/* Exit status of `call` in a child; `with_caps`: in a new user namespace. */
static int in_child(int (*call)(void), bool with_caps)
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (with_caps && unshare(CLONE_NEWUSER) < 0)
			_exit(NO_USER_NAMESPACE);
		_exit(call());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void expect_zero(int (*call)(void), bool with_caps)
{
	int rc = in_child(call, with_caps);

	if (rc == NO_USER_NAMESPACE)
		skip();
	assert_int_equal(rc, 0);
}

#define CHECK(condition)                        \
	do {                                    \
		if (!(condition))               \
			return __COUNTER__ + 1; \
	} while (0)

static int limits(void)
{
	struct graft_caps caps = GRAFT_CAPS_INIT;
	uint64_t bounding = status_field("CapBnd:");

	CHECK(graft_caps_limit(&caps, GRAFT_CAPS_ALL_NEEDED, NULL) == 0);
	CHECK(caps.limited && caps.permitted == thirteen);
	CHECK(status_field("CapPrm:") == thirteen);
	CHECK((status_field("CapEff:") & ~thirteen) == 0);
	CHECK(status_field("CapInh:") == 0);
	CHECK(status_field("CapAmb:") == 0);
	CHECK(status_field("CapBnd:") == bounding);
	CHECK(status_field("NoNewPrivs:") == 1);
#ifndef __SANITIZE_ADDRESS__
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
#endif
	for (int step = 0; step < GRAFT_CAPS_STEP_MAX; step++) {
		CHECK(graft_caps_enter(&caps, (enum graft_caps_step)step, NULL) == 0);
		CHECK(status_field("CapEff:") == graft_caps_step_set((enum graft_caps_step)step));
		CHECK(status_field("CapPrm:") == thirteen);
		CHECK(status_field("CapInh:") == 0);
	}
	return 0;
}

static int limits_for_modprobe(void)
{
	struct graft_caps caps = GRAFT_CAPS_INIT;

	CHECK(graft_caps_limit(&caps, GRAFT_CAPS_ALL_NEEDED | GRAFT_CAPS_MAY_EXECUTE, NULL) == 0);
	CHECK(status_field("CapPrm:") == thirteen);
	CHECK(status_field("CapBnd:") ==
	      (BIT(DAC_OVERRIDE) | BIT(SYS_MODULE) | BIT(KILL) | BIT(SETUID) | BIT(SETGID) | BIT(SYS_CHROOT)));
	CHECK(status_field("NoNewPrivs:") == 0);
	CHECK(graft_caps_enter(&caps, GRAFT_CAPS_KMODS, NULL) == 0);
	CHECK(graft_caps_end_execution(NULL) == 0);
	CHECK(status_field("NoNewPrivs:") == 1);
	return 0;
}

static int drop_from_permitted(uint64_t dropped)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= ~(uint32_t)(dropped >> (32 * i));
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &header, data);
}

/* SPEC libnvidia-container 4.1: configure needs all of them, and says so in these words. */
static int one_missing(void)
{
	struct graft_caps caps = GRAFT_CAPS_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	char text[256];

	CHECK(drop_from_permitted(BIT(CHOWN)) == 0);
	CHECK(!graft_caps_is_unprivileged());
	CHECK(graft_caps_limit(&caps, GRAFT_CAPS_ALL_NEEDED, &err) == -1);
	CHECK(err.status == GRAFT_PERMISSION);
	CHECK(strcmp(graft_error_text(&err, text, sizeof(text)), "capability change failed: operation not permitted") ==
	      0);
	CHECK(!caps.limited);
	/* info and list take what there is */
	CHECK(graft_caps_limit(&caps, 0, &err) == 0);
	CHECK(caps.permitted == (thirteen & ~BIT(CHOWN)));
	CHECK(graft_caps_enter(&caps, GRAFT_CAPS_KMODS, &err) == 0);
	CHECK(status_field("CapEff:") == (graft_caps_step_set(GRAFT_CAPS_KMODS) & ~BIT(CHOWN)));
	return 0;
}

/* Apptainer hands on all but this one; SYS_ADMIN stands in for it. */
static int net_admin_missing(void)
{
	struct graft_caps caps = GRAFT_CAPS_INIT;

	CHECK(drop_from_permitted(BIT(NET_ADMIN)) == 0);
	CHECK(graft_caps_limit(&caps, GRAFT_CAPS_ALL_NEEDED, NULL) == 0);
	CHECK(caps.permitted == (thirteen & ~BIT(NET_ADMIN)));
	CHECK(graft_caps_enter(&caps, GRAFT_CAPS_MOUNT, NULL) == 0);
	CHECK(status_field("CapEff:") == (graft_caps_step_set(GRAFT_CAPS_MOUNT) & ~BIT(NET_ADMIN)));
	return 0;
}

/* What is not effective now counts as little as what is not permitted; NET_ADMIN does not count. */
static int holds(void)
{
	struct graft_caps caps = GRAFT_CAPS_INIT;
	const uint64_t mount = graft_caps_step_set(GRAFT_CAPS_MOUNT);

	for (int step = 0; step < GRAFT_CAPS_STEP_MAX; step++)
		CHECK(graft_caps_hold((enum graft_caps_step)step));
	CHECK(drop_from_permitted(BIT(NET_ADMIN)) == 0);
	CHECK(graft_caps_hold(GRAFT_CAPS_MOUNT));
	CHECK(graft_caps_limit(&caps, 0, NULL) == 0);
	CHECK(graft_caps_enter(&caps, GRAFT_CAPS_MOUNT, NULL) == 0);
	CHECK(graft_caps_hold(GRAFT_CAPS_MOUNT));
	for (int step = 0; step < GRAFT_CAPS_STEP_MAX; step++) {
		const uint64_t more = graft_caps_step_set((enum graft_caps_step)step) & ~mount & ~BIT(NET_ADMIN);

		CHECK(graft_caps_hold((enum graft_caps_step)step) == (more == 0));
	}
	CHECK(status_field("CapPrm:") == (thirteen & ~BIT(NET_ADMIN)));
	return 0;
}

static int holds_without(uint64_t dropped)
{
	CHECK(graft_caps_hold(GRAFT_CAPS_MOUNT));
	CHECK(drop_from_permitted(dropped) == 0);
	CHECK(!graft_caps_hold(GRAFT_CAPS_MOUNT));
	return 0;
}

static int holds_without_sys_admin(void)
{
	return holds_without(BIT(SYS_ADMIN));
}

static int holds_without_sys_chroot(void)
{
	return holds_without(BIT(SYS_CHROOT));
}

static int holds_without_any(void)
{
	return holds_without(UINT64_MAX);
}

static int none_at_all(void)
{
	struct graft_caps caps = GRAFT_CAPS_INIT;
	struct graft_error err = { .status = GRAFT_OK };

	CHECK(!graft_caps_is_unprivileged());
	CHECK(drop_from_permitted(UINT64_MAX) == 0);
	CHECK(graft_caps_is_unprivileged());
	CHECK(graft_caps_limit(&caps, GRAFT_CAPS_ALL_NEEDED, &err) == -1);
	CHECK(graft_caps_limit(&caps, GRAFT_CAPS_MAY_EXECUTE, &err) == 0);
	CHECK(graft_caps_enter(&caps, GRAFT_CAPS_MOUNT, &err) == 0);
	CHECK(status_field("CapEff:") == 0);
	return 0;
}

static int untouched(void)
{
	struct graft_caps caps = GRAFT_CAPS_INIT;
	uint64_t effective = status_field("CapEff:");

	CHECK(graft_caps_enter(&caps, GRAFT_CAPS_MOUNT, NULL) == 0);
	CHECK(status_field("CapEff:") == effective);
	return 0;
}

/* Nothing executed afterwards, as root, gets more than we have. */
static int execution_gains_nothing(void)
{
	struct graft_caps caps = GRAFT_CAPS_INIT;
	char script[256];
	char sh[] = "sh", c[] = "-c";
	char *argv[] = { sh, c, script, NULL };

	CHECK(graft_caps_limit(&caps, 0, NULL) == 0);
	(void)snprintf(script, sizeof(script),
		       "while read -r key value; do [ $key = CapPrm: ] && exec test $((0x$value & ~0x%llx)) = 0; done "
		       "</proc/self/status; exit 2",
		       (unsigned long long)thirteen);
	(void)execv("/bin/sh", argv);
	return 126;
}

static void test_limits(void **state)
{
	expect_zero(limits, true);
}

static void test_limits_for_modprobe(void **state)
{
	expect_zero(limits_for_modprobe, true);
}

static void test_one_missing(void **state)
{
	expect_zero(one_missing, true);
}

static void test_net_admin_missing(void **state)
{
	expect_zero(net_admin_missing, true);
}

static void test_holds(void **state)
{
	expect_zero(holds, true);
	expect_zero(holds_without_sys_admin, true);
	expect_zero(holds_without_sys_chroot, true);
	expect_zero(holds_without_any, true);
}

static void test_none_at_all(void **state)
{
	expect_zero(none_at_all, true);
}

static void test_not_limited_is_untouched(void **state)
{
	expect_zero(untouched, false);
}

static void test_execution_gains_nothing(void **state)
{
	if (geteuid() != 0)
		skip(); /* others gain nothing anyway */
	expect_zero(execution_gains_nothing, false);
}

static void test_table(void **state)
{
	assert_true(graft_caps_all() == thirteen);
	for (int step = 0; step < GRAFT_CAPS_STEP_MAX; step++) {
		assert_true(strlen(graft_caps_step_name((enum graft_caps_step)step)) > 0);
		assert_true(strlen(graft_caps_step_why((enum graft_caps_step)step)) > 10);
		for (int other = 0; other < step; other++)
			assert_string_not_equal(graft_caps_step_name((enum graft_caps_step)step),
						graft_caps_step_name((enum graft_caps_step)other));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_limits_for_modprobe),
		cmocka_unit_test(test_one_missing),
		cmocka_unit_test(test_net_admin_missing),
		cmocka_unit_test(test_holds),
		cmocka_unit_test(test_none_at_all),
		cmocka_unit_test(test_not_limited_is_untouched),
		cmocka_unit_test(test_execution_gains_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
