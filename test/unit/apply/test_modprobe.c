/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modprobe: which program is found, its arguments, and what is done with its output and exit
 * status; and device nodes. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "apply/device_node.h"
#include "apply/modprobe.h"
#include "base/cleanup.h"

static char top[64];

static void put(const char *name, const char *text, mode_t mode)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s%s", top, name);
	test_put(AT_FDCWD, path, text);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	(void)snprintf(top, sizeof(top), "/tmp/graft-modprobe.XXXXXX");
	assert_non_null(mkdtemp(top));
	return 0;
}

static int teardown(void **state)
{
	return test_remove_folder(top);
}

static void test_find(void **state)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT, host = GRAFT_ROOT_INIT;
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	char path[128];

	put("/root/x", "", 0644);
	put("/host/proc/sys/kernel/modprobe", "/opt/modprobe\n", 0644);
	(void)snprintf(path, sizeof(path), "%s/root", top);
	assert_int_equal(graft_root_open(&root, path, NULL), 0);
	(void)snprintf(path, sizeof(path), "%s/host", top);
	assert_int_equal(graft_root_open(&host, path, NULL), 0);
	/* It is searched below the driver root, wherever the setting was read. */
	assert_null(graft_modprobe_find(&root, &host, arena));
	put("/root/sbin/modprobe", "", 0644);
	assert_null(graft_modprobe_find(&root, &host, arena)); /* not executable */
	put("/root/sbin/modprobe", "", 0755);
	assert_string_equal(graft_modprobe_find(&root, &host, arena), "/sbin/modprobe");
	put("/root/opt/modprobe", "", 0755);
	assert_string_equal(graft_modprobe_find(&root, &host, arena), "/opt/modprobe");
	put("/root/proc/sys/kernel/modprobe", "/sbin/modprobe\n", 0644);
	assert_string_equal(graft_modprobe_find(&root, &host, arena), "/sbin/modprobe");
	/* An empty setting disables the kernel's own calls, not those of users. */
	put("/root/proc/sys/kernel/modprobe", "\n", 0644);
	assert_string_equal(graft_modprobe_find(&root, &host, arena), "/sbin/modprobe");
	graft_arena_free(arena);
}

static void test_run(void **state)
{
	static const struct {
		const char *script, *output, *error; /* NULL = success */
	} rows[] = {
		{ "#!/bin/sh\necho \"$0 $* PATH=$PATH HOME=${HOME-}\" >&2\n", NULL, NULL },
		{ "#!/bin/sh\nexit 3\n", "", "exit status 3" },
		{ "#!/bin/sh\necho out; echo; echo err >&2; echo; exit 1\n", "out\n\nerr", "exit status 1" },
		{ "#!/bin/sh\nkill -9 $$\n", "", "killed by signal 9" },
		{ "#!/no/such/interpreter\n", "", "the program could not be started" },
		{ "#!/bin/sh\n! read -r line\n", "", NULL }, /* standard input is empty */
		/* more than the buffer can hold */
		{ "#!/bin/sh\ni=0; while [ $i -lt 20000 ]; do echo xxxxxxx; i=$((i+1)); done; exit 1\n", NULL,
		  "exit status 1" },
	};
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	char program[128];

	if (geteuid() != 0)
		skip();
	assert_int_equal(graft_root_open(&root, "/", NULL), 0);
	(void)snprintf(program, sizeof(program), "%s/modprobe", top);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		char output[256], expected[256];

		put("/modprobe", rows[i].script, 0755);
		assert_int_equal(graft_modprobe_run(&root, program, "nvidia", output, sizeof(output), &err),
				 rows[i].error ? -1 : 0);
		assert_string_equal(err.msg, rows[i].error ? rows[i].error : "");
		if (rows[i].output)
			assert_string_equal(output, rows[i].output);
		(void)snprintf(expected, sizeof(expected), "%s nvidia PATH=/sbin HOME=", program);
		if (i == 0)
			assert_string_equal(output, expected);
		if (i + 1 == GRAFT_COUNT(rows))
			assert_int_equal(strlen(output), sizeof(output) - 1);
		/* The same without buffers for output and error. */
		assert_int_equal(graft_modprobe_run(&root, program, "nvidia", NULL, 0, NULL), rows[i].error ? -1 : 0);
	}
}

/* ---- nodes ---- */

static void test_attributes(void **state)
{
	static const struct {
		const char *text;
		struct graft_node_attributes attributes;
	} rows[] = {
		{ "", { 0, 0, 0666, true } },
		{ "ModifyDeviceFiles: 1\nDeviceFileUID: 7\nDeviceFileGID: 44\nDeviceFileMode: 432\n",
		  { 7, 44, 0660, true } },
		{ "DeviceFileMinor: 12\nDeviceFileMode: 292\nDeviceFileModify: 0\n", { 0, 0, 0444, false } },
		{ "ModifyDeviceFiles: 0\nDeviceFileMode: x\n", { 0, 0, 0666, false } },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 16);
		struct graft_node_attributes attributes = graft_node_attributes_parse(rows[i].text,
										      strlen(rows[i].text), arena);

		assert_int_equal(attributes.uid, rows[i].attributes.uid);
		assert_int_equal(attributes.gid, rows[i].attributes.gid);
		assert_int_equal(attributes.mode, rows[i].attributes.mode);
		assert_int_equal(attributes.modify, rows[i].attributes.modify);
		graft_arena_free(arena);
	}
}

static void test_nodes(void **state)
{
	static const struct graft_node_attributes attributes = { 7, 44, 0660, true };
	auto_close int fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	dev_t null = makedev(1, 3), zero = makedev(1, 5);
	mode_t old = umask(077); /* must not matter */
	struct stat st;

	if (geteuid() != 0) {
		(void)umask(old);
		skip();
	}
	assert_int_equal(graft_device_node_look(fd, "n", null), GRAFT_NODE_ABSENT);
	assert_int_equal(graft_device_node_put(fd, "n", null, &attributes), 0);
	(void)umask(old);
	assert_int_equal(fstatat(fd, "n", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISCHR(st.st_mode) && st.st_rdev == null);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_uid, 7);
	assert_int_equal(st.st_gid, 44);
	assert_int_equal(graft_device_node_look(fd, "n", null), GRAFT_NODE_SAME);
	assert_int_equal(graft_device_node_look(fd, "n", zero), GRAFT_NODE_OTHER);
	assert_int_equal(graft_device_node_put(fd, "n", zero, &attributes), 0);
	assert_int_equal(graft_device_node_look(fd, "n", zero), GRAFT_NODE_SAME);
	assert_int_equal(mknodat(fd, "block", S_IFBLK | 0600, null), 0);
	assert_int_equal(graft_device_node_look(fd, "block", null), GRAFT_NODE_OTHER);
	assert_int_equal(symlinkat("n", fd, "link"), 0);
	assert_int_equal(graft_device_node_look(fd, "link", zero), GRAFT_NODE_NONE);
	assert_int_equal(graft_device_node_put(fd, "link", zero, &attributes), 0);
	assert_int_equal(graft_device_node_look(fd, "link", zero), GRAFT_NODE_SAME);
	assert_int_equal(mkdirat(fd, "directory", 0755), 0);
	assert_int_equal(graft_device_node_put(fd, "directory", zero, &attributes), -EISDIR);
	assert_int_equal(graft_device_node_put(fd, "no/such", zero, &attributes), -ENOENT);
}

/* What another user puts there as soon as the node is made: a link to "secret", or another device. */
static enum { NOTHING, LINK, DEVICE } exchange;

int __real_mknodat(int parent_fd, const char *name, mode_t mode, dev_t number);
int __wrap_mknodat(int parent_fd, const char *name, mode_t mode, dev_t number);

int __wrap_mknodat(int parent_fd, const char *name, mode_t mode, dev_t number)
{
	int rc = __real_mknodat(parent_fd, name, mode, number);

	if (rc == 0 && exchange != NOTHING)
		assert_int_equal(renameat(parent_fd, name, parent_fd, "theirs"), 0);
	if (rc == 0 && exchange == LINK)
		assert_int_equal(symlinkat("secret", parent_fd, name), 0);
	if (rc == 0 && exchange == DEVICE)
		assert_int_equal(__real_mknodat(parent_fd, name, S_IFCHR | 0600, makedev(1, 5)), 0);
	return rc;
}

static void test_exchanged_node(void **state)
{
	static const struct graft_node_attributes attributes = { 7, 44, 0666, true };
	auto_close int fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (geteuid() != 0)
		skip();
	put("/secret", "", 0600);
	for (exchange = LINK; exchange <= DEVICE; exchange++) {
		assert_int_equal(graft_device_node_put(fd, "n", makedev(1, 3), &attributes), -ESTALE);
		assert_int_equal(fstatat(fd, "secret", &st, 0), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(st.st_uid, 0);
		/* It is theirs, and stays as it is. */
		assert_int_equal(fstatat(fd, "n", &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_true(exchange == LINK ? S_ISLNK(st.st_mode) : (st.st_mode & 07777) == 0600);
		assert_int_equal(unlinkat(fd, "n", 0), 0);
	}
	exchange = NOTHING;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_run, setup, teardown),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test_setup_teardown(test_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exchanged_node, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
