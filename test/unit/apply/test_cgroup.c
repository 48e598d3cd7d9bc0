/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: which directory is found from the content of /proc, in simulated roots; devices.list and
 * the files of v1 as plain files. Needs no privileges; test_cgroup_kernel.c tests real cgroups.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "apply/cgroup/cgroup_versions.h"
#include "base/cleanup.h"

#define PID 4711

/* -------- allocation failures -------- */

static long allocations_left = -1; /* -1 = no limit */
static unsigned long n_allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static bool may_allocate(void)
{
	n_allocations++;
	return allocations_left < 0 || allocations_left-- > 0;
}

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return may_allocate() ? __real_calloc(n, size) : NULL;
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return may_allocate() ? __real_reallocarray(p, n, size) : NULL;
}

/* -------- the type of a file system -------- */

static bool is_cgroup_fs = true; /* what a simulated mount reports; false: its real type */

int __real_fstatfs64(int fd, struct statfs *buffer);
int __wrap_fstatfs64(int fd, struct statfs *buffer);

int __wrap_fstatfs64(int fd, struct statfs *buffer)
{
	int rc = __real_fstatfs64(fd, buffer);

	if (is_cgroup_fs)
		buffer->f_type = CGROUP2_SUPER_MAGIC;
	return rc;
}

/* -------- a simulated root -------- */

struct fixture {
	char top[64];
	int root_fd;
	char log[4096];
	struct graft_log sink;
};

static void keep_log(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct fixture *fixture = arg;
	size_t length = strlen(fixture->log);

	if (level <= GRAFT_LOG_WARN)
		(void)snprintf(fixture->log + length, sizeof(fixture->log) - length, "%s\n", message);
}

static void put(const struct fixture *fixture, const char *path, const char *text, size_t length)
{
	test_make_parents(fixture->root_fd, path);
	if (text)
		test_put_bytes(fixture->root_fd, path, text, length);
	else
		assert_true(mkdirat(fixture->root_fd, path, 0755) == 0 || errno == EEXIST);
}

static int setup(void **state)
{
	struct fixture *fixture = test_calloc(1, sizeof(*fixture));

	(void)snprintf(fixture->top, sizeof(fixture->top), "/tmp/graft-test-cgroup-XXXXXX");
	assert_non_null(mkdtemp(fixture->top));
	fixture->root_fd = open(fixture->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fixture->root_fd >= 0);
	assert_int_equal(mkdirat(fixture->root_fd, "proc", 0755), 0);
	assert_int_equal(symlinkat("77", fixture->root_fd, "proc/self"), 0);
	fixture->sink = (struct graft_log){ keep_log, fixture, GRAFT_LOG_DEBUG };
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	allocations_left = -1;
	is_cgroup_fs = true;
	assert_int_equal(close(fixture->root_fd), 0);
	assert_int_equal(test_remove_folder(fixture->top), 0);
	test_free(fixture);
	return 0;
}

/* %D in a mountinfo is replaced by the device number of the simulated root, %X by another one. */
static void put_mountinfo(const struct fixture *fixture, const char *text)
{
	char out[2048];
	size_t n = 0;
	struct stat st;

	assert_int_equal(fstat(fixture->root_fd, &st), 0);
	for (const char *p = text; *p; p++) {
		if (p[0] == '%' && (p[1] == 'D' || p[1] == 'X')) {
			n += (size_t)snprintf(out + n, sizeof(out) - n, "%u:%u", major(st.st_dev),
					      minor(st.st_dev) + (p[1] == 'X' ? 1u : 0u));
			p++;
			continue;
		}
		out[n++] = *p;
		assert_true(n < sizeof(out) - 64);
	}
	put(fixture, "proc/77/mountinfo", out, n);
}

static int open_cgroup(struct fixture *fixture, bool user_namespace, bool required, struct graft_cgroup *cgroup,
		       struct graft_error *err)
{
	return graft_cgroup_open(fixture->root_fd, PID, user_namespace, required, &fixture->sink, cgroup, err);
}

#define V1(root, point) "36 31 %D " root " " point " rw,relatime shared:5 - cgroup cgroup rw,devices\n"
#define V2(root, point) "41 31 %D " root " " point " rw - cgroup2 cgroup2 rw,nsdelegate\n"
#define HIDDEN_V1       "36 31 %X / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n"
#define OTHER                                                       \
	"31 23 %D / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"  \
	"32 31 %D / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" \
	"33 31 %D / /sys/fs/cgroup/devices_of_mine rw - cgroup cgroup rw,pids\n"

/*
 * An image whose own /proc, while none is mounted there, claims that one of its directories is a
 * cgroup: nothing in it is opened.
 */
static void test_forged(void **state)
{
	struct fixture *fixture = *state;
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { 0 };

	put(fixture, "proc/4711/cgroup", "5:devices:/a\n", 13);
	put_mountinfo(fixture, V1("/", "/cg"));
	put(fixture, "cg/a/devices.list", "", 0);
	put(fixture, "cg/a/devices.allow", "", 0);
	assert_int_equal(open_cgroup(fixture, false, true, &cgroup, &err), 0);
	graft_cgroup_close(&cgroup);
	is_cgroup_fs = false;
	assert_int_equal(open_cgroup(fixture, false, true, &cgroup, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_int_equal(cgroup.dir_fd, -1);
}

/* Where the cgroup is found, or the error's text. */
static void test_find(void **state)
{
	static const struct {
		const char *name, *cgroup, *mountinfo;
		int version;        /* 0 = fails */
		const char *result; /* directory below the simulated root, or part of the error's text */
	} cases[] = {
		{ "v1", "5:devices:/runc/a\n0::/x\n", OTHER V1("/", "/sys/fs/cgroup/devices"), 1,
		  "sys/fs/cgroup/devices/runc/a" },
		{ "v1 with other controllers", "5:cpu,devices,pids:/a\n", V1("/", "/cg"), 1, "cg/a" },
		{ "a controller that only sounds like it", "5:devices2:/a\n0::/b\n", V1("/", "/cg") V2("/", "/u"), 2,
		  "u/b" },
		{ "v2", "0::/runc/a\n", OTHER V2("/", "/sys/fs/cgroup/unified"), 2, "sys/fs/cgroup/unified/runc/a" },
		{ "hybrid: v1 has precedence", "5:devices:/a\n0::/b\n", V2("/", "/u") V1("/", "/cg"), 1, "cg/a" },
		{ "hybrid kernel, only v2 mounted", "5:devices:/\n0::/b\n", OTHER V2("/", "/u"), 2, "u/b" },
		{ "hybrid kernel, v1 hidden under another mount", "5:devices:/\n0::/b\n", HIDDEN_V1 V2("/", "/u"), 2,
		  "u/b" },
		{ "first mount hidden, second visible", "5:devices:/a\n", HIDDEN_V1 V1("/", "/cg"), 1, "cg/a" },
		{ "the root cgroup", "0::/\n", V2("/", "/u"), 2, "u" },
		{ "prefix stripped", "5:devices:/docker/1f/sub\n", V1("/docker/1f", "/cg"), 1, "cg/sub" },
		{ "prefix is the whole path", "5:devices:/docker/1f\n", V1("/docker/1f", "/cg"), 1, "cg" },
		{ "prefix of a name is no prefix", "5:devices:/docker/1f2\n", V1("/docker/1f", "/cg"), 0,
		  "failed to get device cgroup mount path: the cgroup '/docker/1f2' is not below "
		  "'/docker/1f', mounted at /cg" },
		{ "second mount covers it", "5:devices:/b/c\n", V1("/a", "/cg1") V1("/b", "/cg2"), 1, "cg2/c" },
		{ "cgroup namespace, sibling below the mount", "0::/../sib\n", V2("/..", "/u"), 2, "u/sib" },
		{ "cgroup namespace, mount root unknown", "0::/x\n", V2("/..", "/u"), 0,
		  "failed to get device cgroup mount path: relative path in mount prefix: /.." },
		{ "cgroup namespace, outside of the mount", "0::/../sib\n", V2("/", "/u"), 0,
		  "failed to get device cgroup mount path: the cgroup '/../sib' is not below '/', "
		  "mounted at /u" },
		{ "dots that climb", "0::/a/../../../etc\n", V2("/", "/u"), 0,
		  "failed to get device cgroup mount path: the cgroup '/a/../../../etc' is not below "
		  "'/', mounted at /u" },
		{ "dots at the end", "0::/a/..\n", V2("/", "/u"), 0,
		  "failed to get device cgroup mount path: the cgroup '/a/..' is not below '/', "
		  "mounted "
		  "at /u" },
		{ "a blank in the mount point", "0::/a\n", V2("/", "/with\\040blank"), 2, "with blank/a" },
		{ "a blank and a newline in the prefix", "0::/p q/a\n", V2("/p\\040q", "/u"), 2, "u/a" },
		{ "a colon in the path", "5:devices:/a:b::c\n", V1("/", "/cg"), 1, "cg/a:b::c" },
		{ "no controller of ours", "5:cpu:/a\n", V1("/", "/cg"), 0,
		  "failed to get device cgroup version: no devices or unified cgroup entries found" },
		{ "empty", "", V1("/", "/cg"), 0,
		  "failed to get device cgroup version: no devices or unified cgroup entries found" },
		{ "malformed", "nonsense\n", V1("/", "/cg"), 0,
		  "failed to get device cgroup version: malformed cgroup entry: nonsense" },
		{ "mounted, but hidden", "5:devices:/a\n", HIDDEN_V1, 0,
		  "failed to get device cgroup mount path: the cgroup '/a' is not visible: another mount hides '/', "
		  "mounted at "
		  "/sys/fs/cgroup/devices" },
		{ "not mounted, v1", "5:devices:/a\n", OTHER, 0,
		  "failed to get device cgroup mount path: no cgroup filesystem mounted for the devices subsytem in "
		  "mountinfo file" },
		{ "not mounted, v2", "0::/a\n", OTHER, 0,
		  "failed to get device cgroup mount path: no cgroup2 filesystem in mountinfo file" },
		{ "hostile mountinfo", "0::/a\n", "\n\n - - -\n41 31\n41 31 %D / /u rw -\n\\040\\999 \\0\n", 0,
		  "failed to get device cgroup mount path: no cgroup2 filesystem in mountinfo file" },
		{ "the cgroup is gone", "0::/gone (deleted)\n", V2("/", "/u"), 0,
		  "failed to get device cgroup root path: open failed: /u/gone (deleted): no such file or directory" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct fixture *fixture;
		struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
		struct graft_error err = { 0 };
		struct stat expected, got;
		char text[1024];
		int r;

		(void)teardown(state);
		(void)setup(state);
		fixture = *state;
		put(fixture, "proc/4711/cgroup", cases[i].cgroup, strlen(cases[i].cgroup));
		put_mountinfo(fixture, cases[i].mountinfo);
		put(fixture, "u", NULL, 0);
		put(fixture, "sys/fs/cgroup/devices", NULL, 0);
		if (cases[i].version)
			put(fixture, cases[i].result, NULL, 0);
		r = open_cgroup(fixture, false, false, &cgroup, &err);
		if (r != (cases[i].version ? 0 : -1) || cgroup.version != cases[i].version)
			fail_msg("%s: %d, version %d: %s", cases[i].name, r, cgroup.version,
				 graft_error_text(&err, text, sizeof(text)));
		if (r < 0) {
			assert_string_equal(graft_error_text(&err, text, sizeof(text)), cases[i].result);
			continue;
		}
		assert_int_equal(fstatat(fixture->root_fd, cases[i].result, &expected, 0), 0);
		assert_int_equal(fstat(cgroup.dir_fd, &got), 0);
		if (expected.st_ino != got.st_ino)
			fail_msg("%s: found %s", cases[i].name, cgroup.path);
		graft_cgroup_close(&cgroup);
		assert_int_equal(cgroup.dir_fd, -1);
	}
}

/* Mount points are resolved below the given root, whatever links point to. */
static void test_stays_below_its_root(void **state)
{
	struct fixture *fixture = *state;
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { 0 };

	put(fixture, "proc/4711/cgroup", "0::/a\n", 6);
	put(fixture, "tmp", NULL, 0);
	put_mountinfo(fixture, V2("/", "/u/../../../../../../..") V2("/", "/link") V2("/", "/proc/self/root"));
	assert_int_equal(symlinkat("/../../../..", fixture->root_fd, "link"), 0);
	/* All of them resolve to the simulated root itself, which has no "a". */
	assert_int_equal(open_cgroup(fixture, false, false, &cgroup, &err), -1);
	put(fixture, "a", NULL, 0);
	put(fixture, "u", NULL, 0);
	assert_int_equal(open_cgroup(fixture, false, false, &cgroup, &err), 0);
	assert_true(faccessat(cgroup.dir_fd, "../proc/4711/cgroup", F_OK, 0) == 0);
	graft_cgroup_close(&cgroup);
}

/* Process 0 means the caller. */
static void test_own_cgroup(void **state)
{
	struct fixture *fixture = *state;
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { 0 };

	put(fixture, "proc/4711/cgroup", "0::/theirs\n", 11);
	put(fixture, "proc/77/cgroup", "0::/ours\n", 9);
	put_mountinfo(fixture, V2("/", "/u"));
	put(fixture, "u/ours/mark", "", 0);
	assert_int_equal(graft_cgroup_open(fixture->root_fd, 0, false, true, NULL, &cgroup, &err), 0);
	assert_int_equal(faccessat(cgroup.dir_fd, "mark", F_OK, 0), 0);
	graft_cgroup_close(&cgroup);
}

static void test_skips(void **state)
{
	struct fixture *fixture = *state;
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { 0 };

	/* No cgroup is found: skipped only in a user namespace, and never if it is required. */
	put(fixture, "proc/4711/cgroup", "0::/a\n", 6);
	put_mountinfo(fixture, OTHER);
	assert_int_equal(open_cgroup(fixture, false, false, &cgroup, &err), -1);
	assert_int_equal(open_cgroup(fixture, true, true, &cgroup, &err), -1);
	assert_string_equal(fixture->log, "");
	assert_int_equal(open_cgroup(fixture, true, false, &cgroup, &err), 0);
	assert_int_equal(cgroup.version, 0);
	assert_string_equal(fixture->log, "skipping device cgroup rules: failed to get device cgroup mount path: "
					  "no cgroup2 filesystem in mountinfo file\n");
	assert_int_equal(graft_cgroup_allow(&cgroup, &(struct graft_device_rule){ 1, 1, true, true }, 1, NULL, &err),
			 0);
	graft_cgroup_undo(&cgroup, NULL);
	graft_cgroup_close(&cgroup);
	/* Invalid content is never skipped. */
	put(fixture, "proc/4711/cgroup", "x\n", 2);
	assert_int_equal(open_cgroup(fixture, true, false, &cgroup, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
}

/* -------- v1 -------- */

static void test_list(void **state)
{
	static const struct {
		const char *name, *list;
		bool allowed;
		int exact; /* bits: 1 read, 2 write */
	} cases[] = {
		{ "nothing", "", false, 0 },
		{ "the device", "c 195:0 rwm\n", true, 3 },
		{ "last line without a newline", "c 1:3 rwm\nc 195:0 rw", true, 3 },
		{ "another minor", "c 195:1 rwm\n", false, 0 },
		{ "a longer number", "c 195:00 rw\nc 1950:0 rw\n", true, 3 },
		{ "block device", "b 195:0 rwm\n", false, 0 },
		{ "all minors", "c 195:* rwm\n", true, 0 },
		{ "all", "c *:* rwm\n", true, 0 },
		{ "mknod of all, as engines give", "c *:* m\nb *:* m\n", false, 0 },
		{ "read only", "c 195:0 r\n", false, 1 },
		/* QUIRK: the kernel requires a single line that grants the whole request. */
		{ "each half on another line", "c 195:* w\nc 195:0 r\n", false, 1 },
		{ "allow by default", "a *:* rwm\n", false, 3 },
		{ "hostile",
		  "c\nc \nc 195\nc 195:\nc 195:0\nc :0 rw\nc 99999999999999999999:0 rw\n\n\nz 195:0 rw\nc  195:0 rw\n",
		  false, 0 },
	};
	const struct graft_device_rule rule = { 195, 0, true, true };

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct graft_device_rule exact;
		bool allowed = graft_cgroup_v1_is_allowed(cases[i].list, &rule, &exact);
		int bits = (exact.read ? 1 : 0) | (exact.write ? 2 : 0);

		if (allowed != cases[i].allowed || bits != cases[i].exact)
			fail_msg("%s: allowed %d, exact %d", cases[i].name, allowed, bits);
	}
}

static void expect_file(const struct fixture *fixture, const char *path, const char *expected)
{
	char text[512] = "";
	auto_close int fd = openat(fixture->root_fd, path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, expected);
}

static void make_v1(struct fixture *fixture, struct graft_cgroup *cgroup, const char *list)
{
	struct graft_error err = { 0 };

	put(fixture, "proc/4711/cgroup", "5:devices:/a\n", 13);
	put_mountinfo(fixture, V1("/", "/cg"));
	put(fixture, "cg/a/devices.list", list, strlen(list));
	put(fixture, "cg/a/devices.allow", "", 0);
	put(fixture, "cg/a/devices.deny", "", 0);
	assert_int_equal(open_cgroup(fixture, false, false, cgroup, &err), 0);
}

static const struct graft_device_rule v1_rules[] = {
	{ 195, 0, true, true },  { 195, 255, true, true }, { 1, 3, true, true },
	{ 507, 2, true, false }, { 508, 9, true, true },
};

static void test_v1_writes(void **state)
{
	struct fixture *fixture = *state;
	auto_cgroup struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { 0 };

	make_v1(fixture, &cgroup, "c 1:3 rwm\nc *:* m\nc 508:9 w\n");
	assert_int_equal(graft_cgroup_allow(&cgroup, v1_rules, GRAFT_COUNT(v1_rules), &fixture->sink, &err), 0);
	expect_file(fixture, "cg/a/devices.allow", "c 195:0 rwc 195:255 rwc 507:2 rc 508:9 rw");
	expect_file(fixture, "cg/a/devices.deny", "");
	graft_cgroup_undo(&cgroup, &fixture->sink);
	expect_file(fixture, "cg/a/devices.deny", "c 508:9 rc 507:2 rc 195:255 rwc 195:0 rw");
	assert_string_equal(fixture->log, "");
}

static void test_v1_failures(void **state)
{
	struct fixture *fixture = *state;
	auto_cgroup struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { 0 };
	char text[1024];

	make_v1(fixture, &cgroup, "");
	assert_int_equal(unlinkat(fixture->root_fd, "cg/a/devices.allow", 0), 0);
	assert_int_equal(graft_cgroup_allow(&cgroup, v1_rules, 1, &fixture->sink, &err), -1);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "failed to add device rules: write error: /cg/a/devices.allow: no such file or directory");
	expect_file(fixture, "cg/a/devices.deny", "");
	assert_int_equal(unlinkat(fixture->root_fd, "cg/a/devices.list", 0), 0);
	assert_int_equal(graft_cgroup_allow(&cgroup, v1_rules, 1, &fixture->sink, &err), -1);
	/* Not a regular file: it must not be read without end. */
	assert_int_equal(mkfifoat(fixture->root_fd, "cg/a/devices.list", 0644), 0);
	assert_int_equal(graft_cgroup_allow(&cgroup, v1_rules, 1, &fixture->sink, &err), -1);
}

/* Fails the first, the second, ... allocation until everything succeeds. */
static void test_allocations(void **state)
{
	struct fixture *fixture = *state;
	long limit;

	put(fixture, "proc/4711/cgroup", "5:devices:/a\n0::/b\n", 19);
	put_mountinfo(fixture, OTHER V1("/", "/cg"));
	put(fixture, "cg/a/devices.list", "", 0);
	for (limit = 0; limit < 100; limit++) {
		auto_cgroup struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
		struct graft_error err = { 0 };
		int r;

		put(fixture, "cg/a/devices.allow", "", 0);
		put(fixture, "cg/a/devices.deny", "", 0);
		allocations_left = limit;
		r = open_cgroup(fixture, false, false, &cgroup, &err);
		if (r == 0)
			r = graft_cgroup_allow(&cgroup, v1_rules, GRAFT_COUNT(v1_rules), &fixture->sink, &err);
		allocations_left = -1;
		if (r == 0)
			break;
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
		if (limit > 20) {
			/*
			 * Everything that was allowed before memory ran out has been denied again.
			 */
			struct stat allow, deny;

			assert_int_equal(fstatat(fixture->root_fd, "cg/a/devices.allow", &allow, 0), 0);
			assert_int_equal(fstatat(fixture->root_fd, "cg/a/devices.deny", &deny, 0), 0);
			assert_int_equal(allow.st_size, deny.st_size);
		}
	}
	assert_true(limit > 5 && limit < 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stays_below_its_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_cgroup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skips, setup, teardown),
		cmocka_unit_test(test_list),
		cmocka_unit_test_setup_teardown(test_v1_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v1_failures, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allocations, setup, teardown),
	};

	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
