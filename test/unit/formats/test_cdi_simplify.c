/* SPDX-License-Identifier: Apache-2.0 */
/* Simplifying specs: what is left of each list, in which order; the device for all of them; and memory. Specs go in and come out as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/cdi/cdi_simplify.h"
#include "formats/cdi/cdi_write.h"

#define ARENA_MAX ((size_t)16 << 20)
/* In YAML's flow style, without the head. `after` NULL: the same as before. */
/* clang-format off */
static const struct {
	const char *what, *merged, *before, *after;
} rows[] = {
	{ "duplicates go, variables and hooks keep their order", NULL,
	  "devices: [{name: 0, containerEdits: {env: [B=1, A=1, B=1], deviceNodes: [{path: /n1}, {path: /n0}, {path: /n1}],\n"
	  "  hooks: [{hookName: poststop, path: /h2}, {hookName: poststop, path: /h1}, {hookName: poststop, path: /h2}]}}]\n",
	  "devices: [{name: 0, containerEdits: {env: [B=1, A=1], deviceNodes: [{path: /n0}, {path: /n1}],\n"
	  "  hooks: [{hookName: poststop, path: /h2}, {hookName: poststop, path: /h1}]}}]\n" },
	{ "nodes and mounts by depth, then by name; groups by number; devices by name", NULL,
	  "devices:\n"
	  "- {name: b, containerEdits: {deviceNodes: [{path: /dev/dri/card0}, {path: /dev/z}]}}\n"
	  "- {name: a, containerEdits: {additionalGids: [44, 7, 44],\n"
	  "    mounts: [{hostPath: /h, containerPath: /b/c}, {hostPath: /h, containerPath: /z}]}}\n",
	  "devices:\n"
	  "- {name: a, containerEdits: {additionalGids: [7, 44],\n"
	  "    mounts: [{hostPath: /h, containerPath: /z}, {hostPath: /h, containerPath: /b/c}]}}\n"
	  "- {name: b, containerEdits: {deviceNodes: [{path: /dev/z}, {path: /dev/dri/card0}]}}\n" },
	{ "what all devices get goes from each, but groups stay", NULL,
	  "devices: [{name: 0, containerEdits: {env: [A=1, B=1], deviceNodes: [{path: /ctl}, {path: /n0}],\n"
	  "  hooks: [{hookName: poststop, path: /h}], mounts: [{hostPath: /h, containerPath: /m}], additionalGids: [44]}}]\n"
	  "containerEdits: {env: [A=1], deviceNodes: [{path: /ctl}], hooks: [{hookName: poststop, path: /h}],\n"
	  "  mounts: [{hostPath: /h, containerPath: /m}], additionalGids: [44]}\n",
	  "devices: [{name: 0, containerEdits: {env: [B=1], deviceNodes: [{path: /n0}], additionalGids: [44]}}]\n"
	  "containerEdits: {env: [A=1], deviceNodes: [{path: /ctl}], hooks: [{hookName: poststop, path: /h}],\n"
	  "  mounts: [{hostPath: /h, containerPath: /m}], additionalGids: [44]}\n" },
	{ "a device that would have nothing left keeps what it has, each once", NULL,
	  "{devices: [{name: 0, containerEdits: {env: [A=1, A=1], additionalGids: [44]}}], containerEdits: {env: [A=1]}}\n",
	  "{devices: [{name: 0, containerEdits: {env: [A=1], additionalGids: [44]}}], containerEdits: {env: [A=1]}}\n" },
	{ "nodes that differ in one member are two", NULL,
	  "devices: [{name: 0, containerEdits: {deviceNodes: [{path: /a}, {path: /a, hostPath: /b}, {path: /a, type: c},\n"
	  "  {path: /a, major: 1}, {path: /a, major: 1, minor: 1}, {path: /a, fileMode: 1}, {path: /a, permissions: r},\n"
	  "  {path: /a, uid: 0}, {path: /a, gid: 0}]}}]\n", NULL },
	{ "mounts and hooks likewise", NULL,
	  "devices: [{name: 0, containerEdits: {mounts: [{hostPath: /h, containerPath: /m}, {hostPath: /i, containerPath: /m},\n"
	  "  {hostPath: /h, containerPath: /m, type: bind}, {hostPath: /h, containerPath: /m, options: [ro]}],\n"
	  "  hooks: [{hookName: poststop, path: /h}, {hookName: prestart, path: /h}, {hookName: poststop, path: /i},\n"
	  "  {hookName: poststop, path: /h, args: [h]}, {hookName: poststop, path: /h, args: [i]},\n"
	  "  {hookName: poststop, path: /h, env: [A=1]}, {hookName: poststop, path: /h, timeout: 0}]}}]\n", NULL },
	{ "the device for all has each node once", "all",
	  "devices:\n"
	  "- {name: 0, containerEdits: {deviceNodes: [{path: /n0}]}}\n"
	  "- {name: GPU-a, containerEdits: {deviceNodes: [{path: /n0}]}}\n"
	  "- {name: 1, containerEdits: {deviceNodes: [{path: /n1}], additionalGids: [44]}}\n",
	  "devices:\n"
	  "- {name: 0, containerEdits: {deviceNodes: [{path: /n0}]}}\n"
	  "- {name: 1, containerEdits: {deviceNodes: [{path: /n1}], additionalGids: [44]}}\n"
	  "- {name: GPU-a, containerEdits: {deviceNodes: [{path: /n0}]}}\n"
	  "- {name: all, containerEdits: {deviceNodes: [{path: /n0}, {path: /n1}], additionalGids: [44]}}\n" },
	{ "network devices and the last intelRdt are merged as well", "all",
	  "devices:\n"
	  "- {name: 0, containerEdits: {netDevices: [{hostInterfaceName: a, name: b}], intelRdt: {closID: x}}}\n"
	  "- {name: 1, containerEdits: {netDevices: [{hostInterfaceName: c, name: d}], intelRdt: {closID: y}}}\n",
	  "devices:\n"
	  "- {name: 0, containerEdits: {netDevices: [{hostInterfaceName: a, name: b}], intelRdt: {closID: x}}}\n"
	  "- {name: 1, containerEdits: {netDevices: [{hostInterfaceName: c, name: d}], intelRdt: {closID: y}}}\n"
	  "- {name: all, containerEdits: {netDevices: [{hostInterfaceName: a, name: b}, {hostInterfaceName: c, name: d}],\n"
	  "    intelRdt: {closID: y}}}\n" },
	{ "a device of that name stays what it is", "all", "devices: [{name: all, containerEdits: {env: [A=1]}}]\n", NULL },
};
/* clang-format on */

static void read_spec(const char *body, struct graft_arena *arena, struct graft_cdi_spec *spec)
{
	const char *text = graft_arena_printf(arena,
					      body[0] == '{' ? "{cdiVersion: 1.1.0, kind: nvidia.com/gpu, %s"
							     : "cdiVersion: 1.1.0\nkind: nvidia.com/gpu\n%s",
					      body + (body[0] == '{'));
	struct graft_error err = { .status = GRAFT_OK };

	assert_non_null(text);
	if (graft_cdi_spec_read("spec", text, strlen(text), arena, spec, &err) < 0)
		fail_msg("%s\n%s", err.msg, text);
}

static void write_spec(const struct graft_cdi_spec *spec, struct graft_buffer *out)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_cdi_spec_write(spec, GRAFT_CDI_YAML, out, &err) < 0)
		fail_msg("%s", err.msg);
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new(ARENA_MAX);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_buffer wanted = { 0 };
		struct graft_cdi_spec spec, after;

		read_spec(rows[i].after ? rows[i].after : rows[i].before, arena, &after);
		write_spec(&after, &wanted);
		read_spec(rows[i].before, arena, &spec);
		if (rows[i].merged)
			assert_int_equal(graft_cdi_add_merged(&spec, rows[i].merged, arena, &err), 0);
		/* The second time nothing changes. */
		for (int turn = 0; turn < 2; turn++) {
			struct graft_buffer got = { 0 };

			assert_int_equal(graft_cdi_simplify(&spec, arena, &err), 0);
			write_spec(&spec, &got);
			if (strcmp(graft_buffer_text(&got), graft_buffer_text(&wanted)) != 0)
				fail_msg("%s:\n%s\n%s", rows[i].what, graft_buffer_text(&got),
					 graft_buffer_text(&wanted));
			graft_buffer_done(&got);
		}
		graft_buffer_done(&wanted);
		(void)graft_arena_free(arena);
	}
}

/* One host's device by two names: both have the same lists in memory. */
static void test_shared_lists(void **state)
{
	static struct graft_cdi_node nodes[] = { { .path = "/dev/b" }, { .path = "/dev/a" }, { .path = "/dev/c" } };
	static struct graft_cdi_node common[] = { { .path = "/dev/c" } };
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_cdi_device devices[] = { { .name = "1", .edits = { .nodes = nodes, .n_nodes = 3 } },
					      { .name = "0", .edits = { .nodes = nodes, .n_nodes = 3 } } };
	struct graft_cdi_spec spec = { .devices = devices, .n_devices = 2, .edits = { .nodes = common, .n_nodes = 1 } };
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_cdi_simplify(&spec, arena, &err), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(spec.devices[i].name, i == 0 ? "0" : "1");
		assert_int_equal(spec.devices[i].edits.n_nodes, 2);
		assert_string_equal(spec.devices[i].edits.nodes[0].path, "/dev/a");
		assert_string_equal(spec.devices[i].edits.nodes[1].path, "/dev/b");
	}
	assert_string_equal(nodes[0].path, "/dev/b");
	(void)graft_arena_free(arena);
}

static void test_merged_names(void **state)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_cdi_spec spec = { .n_devices = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_cdi_add_merged(&spec, ".-not-valid", arena, &err), -1);
	assert_int_equal(err.status, GRAFT_INVALID);
	assert_int_equal(spec.n_devices, 0);
	/* Of nothing: there is a device, and it is empty. The reader refuses it. */
	assert_int_equal(graft_cdi_add_merged(&spec, "all", arena, &err), 0);
	assert_int_equal(spec.n_devices, 1);
	assert_int_equal(spec.devices[0].edits.n_nodes, 0);
	(void)graft_arena_free(arena);
}

static void test_memory(void **state)
{
	for (int n = 1;; n++) {
		struct graft_arena *arena = graft_arena_new(ARENA_MAX);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_spec spec;
		bool failed;
		int rc;

		read_spec(rows[6].before, arena, &spec);
		for (int i = 0; i < 100; i++) /* the arena's first block is used up */
			(void)graft_arena_alloc(arena, 4096);
		allocation_fail(n);
		rc = graft_cdi_add_merged(&spec, "all", arena, &err);
		for (int i = 0; i < 200 && rc == 0; i++)
			rc = graft_cdi_simplify(&spec, arena, &err);
		failed = allocation_reported(rc, &err);
		(void)graft_arena_free(arena);
		if (!failed)
			return;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_shared_lists),
		cmocka_unit_test(test_merged_names),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
