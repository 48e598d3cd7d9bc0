/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below another root: what changes on which side, what does not, whole components, versions, and memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "formats/cdi/cdi_transform.h"
#include "formats/cdi/cdi_write.h"

#define ARENA_MAX ((size_t)64 << 20)

/* One change of one device: edits before, the version that the file has and gets, edits after. */
static const struct {
	const char *from, *to;
	bool in_container;
	const char *version, *before, *new_version, *after;
} cases[] = {
	/* nodes, on the host */
	{ "/root", "/target", false, "0.5.0",
	  "deviceNodes: [{path: /root/dev/a, hostPath: /root/dev/a}, {path: /root/dev/b, hostPath: /target/dev/b}, "
	  "{path: /root/dev/c, hostPath: /other/dev/c}]",
	  "0.5.0",
	  "deviceNodes: [{path: /root/dev/a, hostPath: /target/dev/a}, {path: /root/dev/b, hostPath: /target/dev/b}, "
	  "{path: /root/dev/c, hostPath: /other/dev/c}]" },
	{ "/root", "/target", false, "0.3.0", "deviceNodes: [{path: /dev/a}]", "0.3.0",
	  "deviceNodes: [{path: /dev/a}]" },
	{ "/", "/target", false, "0.3.0", "deviceNodes: [{path: /dev/a}]", "0.5.0",
	  "deviceNodes: [{path: /dev/a, hostPath: /target/dev/a}]" },
	{ "", "/target", false, "0.7.0", "deviceNodes: [{path: /dev/a}]", "0.7.0",
	  "deviceNodes: [{path: /dev/a, hostPath: /target/dev/a}]" },
	/* in the container: the node on the host stays the one that it was */
	{ "/root", "/target", true, "0.5.0", "deviceNodes: [{path: /root/dev/a, hostPath: /root/dev/a}]", "0.5.0",
	  "deviceNodes: [{path: /target/dev/a, hostPath: /root/dev/a}]" },
	{ "/root", "", true, "0.4.0", "deviceNodes: [{path: /root/dev/a}]", "0.5.0",
	  "deviceNodes: [{path: /dev/a, hostPath: /root/dev/a}]" },
	/* mounts */
	{ "/root", "/target", false, "0.3.0",
	  "mounts: [{hostPath: /root/a, containerPath: /root/a}, {hostPath: /target/b, containerPath: /root/b}, "
	  "{hostPath: tmpfs, containerPath: /root/c}]",
	  "0.3.0",
	  "mounts: [{hostPath: /target/a, containerPath: /root/a}, {hostPath: /target/b, containerPath: /root/b}, "
	  "{hostPath: tmpfs, containerPath: /root/c}]" },
	{ "/root", "/target", true, "0.3.0", "mounts: [{hostPath: /root/a, containerPath: /root/a}]", "0.3.0",
	  "mounts: [{hostPath: /root/a, containerPath: /target/a}]" },
	/* whole components, and what is cleaned */
	{ "/root", "/target", false, "0.3.0",
	  "mounts: [{hostPath: /rootfs/a, containerPath: /a}, {hostPath: /root, containerPath: /b}, "
	  "{hostPath: /root//c/./d, containerPath: /c}, {hostPath: /roo, containerPath: /d}]",
	  "0.3.0",
	  "mounts: [{hostPath: /rootfs/a, containerPath: /a}, {hostPath: /target, containerPath: /b}, "
	  "{hostPath: /target/c/d, containerPath: /c}, {hostPath: /roo, containerPath: /d}]" },
	{ "/root/", "//target/.//x/", false, "0.3.0", "mounts: [{hostPath: /root/a, containerPath: /a}]", "0.3.0",
	  "mounts: [{hostPath: /target/x/a, containerPath: /a}]" },
	{ "/root", "/", false, "0.3.0",
	  "mounts: [{hostPath: /root/a, containerPath: /a}, {hostPath: /root, containerPath: /b}]", "0.3.0",
	  "mounts: [{hostPath: /a, containerPath: /a}, {hostPath: /, containerPath: /b}]" },
	{ "/root", "/root", false, "0.3.0", "mounts: [{hostPath: /root//a, containerPath: /a}]", "0.3.0",
	  "mounts: [{hostPath: /root//a, containerPath: /a}]" },
	/* hooks, on the host */
	{ "/root", "/target", false, "0.3.0",
	  "hooks: [{hookName: createRuntime, path: /root/hook, args: [hook, --link, '/root/a::/root/b', "
	  "'c::/root/d']}]",
	  "0.3.0",
	  "hooks: [{hookName: createRuntime, path: /target/hook, args: [hook, --link, '/target/a::/target/b', "
	  "'c::/target/d']}]" },
	{ "/root", "/target", false, "0.3.0",
	  "hooks: [{hookName: createContainer, path: /root/hook, args: [hook, '/root/a::/root/b']}]", "0.3.0",
	  "hooks: [{hookName: createContainer, path: /target/hook, args: [hook, '/root/a::/root/b']}]" },
	{ "/root", "/target", false, "0.3.0",
	  "hooks: [{hookName: startContainer, path: /root/hook, args: [hook, /root/a], env: [A=/root]}]", "0.3.0",
	  "hooks: [{hookName: startContainer, path: /root/hook, args: [hook, /root/a], env: [A=/root]}]" },
	/* and in the container */
	{ "/root", "/target", true, "0.3.0",
	  "hooks: [{hookName: createRuntime, path: /root/hook, args: [hook, '/root/a::/root/b']}]", "0.3.0",
	  "hooks: [{hookName: createRuntime, path: /root/hook, args: [hook, '/root/a::/root/b']}]" },
	{ "/root", "/target", true, "0.3.0",
	  "hooks: [{hookName: createContainer, path: /root/hook, args: [hook, '/root/a::/root/b::/root/c']}]", "0.3.0",
	  "hooks: [{hookName: createContainer, path: /root/hook, args: [hook, '/target/a::/target/b::/root/c']}]" },
	{ "/root", "/target", true, "0.3.0",
	  "hooks: [{hookName: startContainer, path: /root/hook, args: [/root/a]}, {hookName: poststop, path: /root/x}]",
	  "0.3.0",
	  "hooks: [{hookName: startContainer, path: /target/hook, args: [/target/a]}, {hookName: poststop, path: "
	  "/root/x}]" },
	/* a file of a hook is on both sides */
	{ "/root", "/target", false, "0.3.0",
	  "hooks: [{hookName: createContainer, path: /x, args: [x, --file, /root/a, --file, '/root/b::/root/c', "
	  "--file, "
	  "'/root/d::/target/d', --link, '/root/e::/root/f']}]",
	  "0.3.0",
	  "hooks: [{hookName: createContainer, path: /x, args: [x, --file, '/target/a::/root/a', --file, "
	  "'/target/b::/root/c', --file, /target/d, --link, '/root/e::/root/f']}]" },
	{ "/root", "/target", true, "0.3.0",
	  "hooks: [{hookName: createContainer, path: /x, args: [x, --file, /root/a, --file, '/root/b::/root/c']}]",
	  "0.3.0",
	  "hooks: [{hookName: createContainer, path: /x, args: [x, --file, '/root/a::/target/a', --file, "
	  "'/root/b::/target/c']}]" },
	/* words are no paths */
	{ "/", "/target", false, "0.3.0", "hooks: [{hookName: prestart, path: /x, args: [x, --dir=/a, /b, 'c::d']}]",
	  "0.3.0", "hooks: [{hookName: prestart, path: /target/x, args: [x, --dir=/a, /target/b, 'c::d']}]" },
};

/* A spec with the edits twice: for one device, and for all. */
static void make(const char *version, const char *edits, struct graft_cdi_spec *spec)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[2048];

	(void)snprintf(text, sizeof(text),
		       "cdiVersion: %s\nkind: v/c\ndevices: [{name: d, containerEdits: {%s}}]\ncontainerEdits: {%s}\n",
		       version, edits, edits);
	if (graft_cdi_spec_read("spec", text, strlen(text), arena, spec, &err) < 0)
		fail_msg("%s", err.msg);
}

static const char *as_text(const struct graft_cdi_spec *spec)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { 0 };
	const char *text;

	if (graft_cdi_spec_write(spec, GRAFT_CDI_YAML, &out, &err) < 0)
		fail_msg("%s", err.msg);
	text = graft_arena_strdup(arena, out.bytes);
	graft_buffer_done(&out);
	return text;
}

static void test_cases(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const struct graft_cdi_root_change change = { .from = cases[i].from,
							      .to = cases[i].to,
							      .in_container = cases[i].in_container };
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_spec before, after, expected;
		const char *untouched;

		make(cases[i].version, cases[i].before, &before);
		make(cases[i].new_version, cases[i].after, &expected);
		untouched = as_text(&before);
		assert_int_equal(graft_cdi_spec_change_root(&before, &change, arena, &after, &err), 0);
		assert_string_equal(as_text(&after), as_text(&expected));
		assert_string_equal(as_text(&before), untouched);
	}
}

/* Nodes and other files that are visible below the same directory, but are below two on the host. */
static void test_scopes(void **state)
{
	static const struct {
		enum graft_cdi_change_scope scope;
		const char *after;
	} rows[] = {
		{ GRAFT_CDI_ONLY_NODES,
		  "deviceNodes: [{path: /dev/a, hostPath: /target/dev/a}], mounts: [{hostPath: "
		  "/root/b, containerPath: /b}], hooks: [{hookName: createRuntime, path: /root/c}]" },
		{ GRAFT_CDI_ALL_BUT_NODES,
		  "deviceNodes: [{path: /dev/a, hostPath: /root/dev/a}], mounts: [{hostPath: /target/b, "
		  "containerPath: /b}], hooks: [{hookName: createRuntime, path: /target/c}]" },
	};
	struct graft_cdi_spec before, after, expected;

	make("0.5.0",
	     "deviceNodes: [{path: /dev/a, hostPath: /root/dev/a}], mounts: [{hostPath: /root/b, containerPath: /b}], "
	     "hooks: [{hookName: createRuntime, path: /root/c}]",
	     &before);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_cdi_root_change change = { .from = "/root",
							      .to = "/target",
							      .scope = rows[i].scope };

		make("0.5.0", rows[i].after, &expected);
		assert_int_equal(graft_cdi_spec_change_root(&before, &change, arena, &after, NULL), 0);
		assert_string_equal(as_text(&after), as_text(&expected));
	}
}

/* Edits that devices share are changed once, not once for each device. */
static void test_shared(void **state)
{
	const struct graft_cdi_root_change change = { .from = "/a", .to = "/a/a" };
	struct graft_cdi_mount mount = { .host_path = "/a/x", .container_path = "/x" };
	struct graft_cdi_edits edits = { .mounts = &mount, .n_mounts = 1 };
	struct graft_cdi_device devices[] = { { .name = "d", .edits = edits }, { .name = "e", .edits = edits } };
	struct graft_cdi_spec spec = {
		.vendor = "v", .class_ = "c", .devices = devices, .n_devices = 2, .edits = edits
	};
	struct graft_cdi_spec after;

	assert_int_equal(graft_cdi_spec_change_root(&spec, &change, arena, &after, NULL), 0);
	assert_string_equal(after.devices[0].edits.mounts[0].host_path, "/a/a/x");
	assert_string_equal(after.devices[1].edits.mounts[0].host_path, "/a/a/x");
	assert_string_equal(after.edits.mounts[0].host_path, "/a/a/x");
	assert_null(after.version);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *from, *to, *message;
	} rows[] = {
		{ "a", "/b", "the root 'a' to change from is not an absolute path" },
		{ "/a", "./b", "the root './b' to change to is not an absolute path" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_cdi_root_change change = { .from = rows[i].from, .to = rows[i].to };
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_spec spec, after;

		make("0.3.0", "env: [A=1]", &spec);
		assert_int_equal(graft_cdi_spec_change_root(&spec, &change, arena, &after, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_string_equal(err.msg, rows[i].message);
	}
}

static void test_memory(void **state)
{
	const struct graft_cdi_root_change change = { .from = "/", .to = "/target" };
	struct graft_cdi_spec spec;

	make("0.4.0",
	     "deviceNodes: [{path: /a}], mounts: [{hostPath: /a, containerPath: /a}], "
	     "hooks: [{hookName: prestart, path: /x, args: [x, '/b::/c']}]",
	     &spec);
	for (int n = 1;; n++) {
		struct graft_arena *own = graft_arena_new(ARENA_MAX);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_spec after;
		int rc;

		assert_non_null(own);
		allocation_fail(n);
		rc = graft_cdi_spec_change_root(&spec, &change, own, &after, &err);
		graft_arena_free(own);
		if (!allocation_reported(rc, &err))
			break;
	}
	/* An arena that is full stands for every other allocation. */
	for (size_t max = 0; max < 4096; max += 16) {
		struct graft_arena *own = graft_arena_new(max);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_spec after;

		assert_non_null(own);
		if (graft_cdi_spec_change_root(&spec, &change, own, &after, &err) < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		else
			assert_string_equal(after.edits.hooks[0].args[1], "/target/b::/target/c");
		graft_arena_free(own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cases, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_scopes, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_shared, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_wrong, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_memory, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
