/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container gets besides its GPUs in the modes legacy and csv (SPEC runtime-and-hook 10.2):
 * the gates that it requests, and hooks for its compatibility libraries. The host is a stand-in.
 */
#include "../allocation.h"
#include "../unit.h"
#include "creation.h"
#include "host/discover.h"
#include "start/gated_devices.h"

static struct graft_gate_node nodes[] = {
	{ GRAFT_GATE_GDS, { .path = "/dev/nvidia-fs0", .source = "/dev/nvidia-fs0", .present = true, .major = 500 } },
	{ GRAFT_GATE_GDRCOPY, { .path = "/dev/gdrdrv", .source = "/dev/gdrdrv", .present = true, .major = 499 } },
};
static struct graft_gate_file files[] = {
	{ .gate = GRAFT_GATE_GDS, .path = "/usr/local/cuda/cufile.json", .target = "/etc/cufile.json" },
};

static struct {
	int n_looks;
	struct graft_host_options options; /* of the last discovery */
	unsigned int needs;
	bool fails, empty;
	const char *version;
} host;

/* Like discovery: finds what the options request, and always the driver's version. */
int graft_host_discover(const struct graft_host_options *options, unsigned int needs,
			struct graft_inventory **ret_inventory, struct graft_error *err)
{
	struct graft_inventory *inventory;

	host.n_looks++;
	host.options = *options;
	host.needs = needs;
	if (host.fails)
		return graft_fail(err, GRAFT_NO_DRIVER, 0, "nvml error: driver not loaded");
	inventory = graft_inventory_new();
	if (!inventory)
		return graft_fail_memory(err);
	inventory->root = "/";
	inventory->platform = GRAFT_PLATFORM_NATIVE;
	inventory->driver_version.value = host.version;
	for (size_t i = 0; !host.empty && i < GRAFT_COUNT(nodes); i++) {
		struct graft_gate_node *slot;

		if ((options->gates & 1u << nodes[i].gate) == 0)
			continue;
		slot = graft_arena_push(inventory->arena, &inventory->gate_nodes, &inventory->n_gate_nodes,
					sizeof(*slot));
		if (slot)
			*slot = nodes[i];
	}
	if (!host.empty && (options->gates & 1u << GRAFT_GATE_GDS) != 0) {
		inventory->gate_files = files;
		inventory->n_gate_files = GRAFT_COUNT(files);
	}
	if (graft_arena_failed(inventory->arena)) {
		(void)graft_inventory_free(inventory);
		return graft_fail_memory(err);
	}
	*ret_inventory = inventory;
	return 0;
}

static void begin(struct creation *creation, struct graft_arena *arena)
{
	memset(&host, 0, sizeof(host));
	host.version = "550.54.14";
	creation_init(creation, arena);
	creation->spec.cgroups_path = "/not-by-systemd";
	creation->container.wants_devices = true;
}

static struct graft_arena *arena_of(void **state)
{
	const struct world *world = *state;

	return world->arena;
}

/* --- gates --- */

static void test_no_gate(void **state)
{
	struct creation creation;

	begin(&creation, arena_of(state));
	assert_int_equal(graft_start_give_gates(&creation.create, NULL), 0);
	assert_int_equal(host.n_looks, 0);
	assert_string_equal(creation_text(&creation), "{}");
	creation_done(&creation);
}

/*
 * Adds the gates' nodes and files and nothing else of a plan, in particular not
 * NVIDIA_VISIBLE_DEVICES, which the hook of mode legacy reads later.
 */
static void test_gates(void **state)
{
	static const struct {
		unsigned int gates;
		bool fs, cufile, gdrdrv;
	} rows[] = {
		{ 1u << GRAFT_GATE_GDS, true, true, false },
		{ 1u << GRAFT_GATE_GDRCOPY, false, false, true },
		{ 1u << GRAFT_GATE_GDS | 1u << GRAFT_GATE_GDRCOPY | 1u << GRAFT_GATE_MOFED, true, true, true },
		{ 1u << GRAFT_GATE_NVSWITCH, false, false, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct creation creation;
		const char *text;

		begin(&creation, arena_of(state));
		for (unsigned int gate = 0; gate < GRAFT_GATE_MAX; gate++)
			creation.container.gates[gate] = (rows[i].gates & 1u << gate) != 0;
		assert_int_equal(graft_start_give_gates(&creation.create, NULL), 0);
		assert_int_equal(host.n_looks, 1);
		assert_int_equal(host.options.gates, rows[i].gates);
		assert_int_equal(host.needs, 0);
		text = creation_text(&creation);
		assert_int_equal(strstr(text, "\"/dev/nvidia-fs0\"") != NULL, rows[i].fs);
		assert_int_equal(strstr(text, "\"/etc/cufile.json\"") != NULL, rows[i].cufile);
		assert_int_equal(strstr(text, "\"/dev/gdrdrv\"") != NULL, rows[i].gdrdrv);
		assert_int_equal(strcmp(text, "{}") == 0, !rows[i].fs && !rows[i].gdrdrv);
		assert_null(strstr(text, "NVIDIA_VISIBLE_DEVICES"));
		assert_null(strstr(text, "hooks"));
		creation_done(&creation);
	}
}

static void test_root(void **state)
{
	static const struct {
		const char *configured, *asked;
	} rows[] = { { NULL, NULL }, { "", NULL }, { "/run/nvidia/driver", "/run/nvidia/driver" } };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct creation creation;

		begin(&creation, arena_of(state));
		creation.config.cli.root = rows[i].configured;
		creation.container.gates[GRAFT_GATE_GDS] = true;
		assert_int_equal(graft_start_give_gates(&creation.create, NULL), 0);
		assert_int_equal(host.options.root != NULL, rows[i].asked != NULL);
		if (rows[i].asked)
			assert_string_equal(host.options.root, rows[i].asked);
		creation_done(&creation);
	}
}

/* A host without such devices is not an error; a failed discovery is. */
static void test_hosts(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct creation creation;

	begin(&creation, arena_of(state));
	creation.container.gates[GRAFT_GATE_GDS] = true;
	host.empty = true;
	assert_int_equal(graft_start_give_gates(&creation.create, &err), 0);
	assert_string_equal(creation_text(&creation), "{}");
	host.fails = true;
	assert_int_equal(graft_start_give_gates(&creation.create, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_DRIVER);
	assert_string_equal(creation_text(&creation), "{}");
	creation_done(&creation);
}

/* --- compatibility libraries --- */

static void test_compat(void **state)
{
	static const char both[] = "{\"hooks\":{\"createContainer\":[{\"path\":\"/opt/nvidia-cdi-hook\",\"args\":["
				   "\"nvidia-cdi-hook\",\"sequence\",\"enable-cuda-compat\","
				   "\"--host-driver-version=550.54.14\",\"--then\",\"update-ldcache\"],"
				   "\"env\":[\"NVIDIA_CTK_DEBUG=false\"]}]}}";
	static const char told[] = "{\"hooks\":{\"createContainer\":[{\"path\":\"/opt/nvidia-cdi-hook\",\"args\":["
				   "\"nvidia-cdi-hook\",\"sequence\",\"--rootfs\",\"/r\",\"enable-cuda-compat\","
				   "\"--host-driver-version=550.54.14\",\"--then\",\"update-ldcache\"],"
				   "\"env\":[\"NVIDIA_CTK_DEBUG=false\"]}]}}";
	static const struct {
		const char *mode;
		bool disabled;
		const char *hook_root, *want;
	} rows[] = {
		{ "hook", false, NULL, both },  { "hook", true, NULL, "{}" },      { "ldconfig", false, NULL, "{}" },
		{ "mount", false, NULL, "{}" }, { "disabled", false, NULL, "{}" }, { NULL, false, NULL, "{}" },
		{ "hook", false, "/r", told },  { "hook", true, "/r", "{}" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct creation creation;

		begin(&creation, arena_of(state));
		creation.config.runtime.cuda_compat_mode = rows[i].mode;
		creation.config.features.disable_cuda_compat_lib_hook = rows[i].disabled;
		creation.create.hook_root = rows[i].hook_root;
		print_message("# %s\n", rows[i].mode ? rows[i].mode : "none");
		assert_int_equal(graft_start_give_compat(&creation.create, NULL), 0);
		assert_string_equal(creation_text(&creation), rows[i].want);
		assert_int_equal(host.n_looks, strcmp(rows[i].want, "{}") == 0 ? 0 : 1);
		creation_done(&creation);
	}
}

static void test_compat_without_driver(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct creation creation;

	begin(&creation, arena_of(state));
	creation.config.runtime.cuda_compat_mode = "hook";
	host.version = NULL;
	assert_int_equal(graft_start_give_compat(&creation.create, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_DRIVER);
	assert_string_equal(err.msg, "failed to determine driver version, which cuda-compat-mode = \"hook\" needs");
	assert_string_equal(creation_text(&creation), "{}");
	creation_done(&creation);
}

/* --- memory --- */

static int give(struct graft_start *create, struct graft_error *err)
{
	return graft_start_give_compat(create, err) < 0 || graft_start_give_gates(create, err) < 0 ? -1 : 0;
}

static void test_memory(void **state)
{
	for (int n = 1;; n++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
		struct creation creation;
		int rc;

		assert_non_null(arena);
		begin(&creation, arena);
		creation.create.log = NULL;
		creation.container.gates[GRAFT_GATE_GDS] = true;
		creation.config.runtime.cuda_compat_mode = "hook";
		allocation_fail(n);
		rc = give(&creation.create, &err);
		if (!allocation_reported(rc, &err)) {
			creation_done(&creation);
			graft_arena_free(arena);
			assert_true(n > 5);
			return;
		}
		creation_done(&creation);
		graft_arena_free(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_gate, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_gates, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_root, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_hosts, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_compat, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_compat_without_driver, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_memory, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
