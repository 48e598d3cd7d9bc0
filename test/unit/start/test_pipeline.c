/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request needs of the host, and the stages on an inventory from a file, where the host must
 * not be examined.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "start/pipeline.h"

/* What every request needs. */
#define ALWAYS                                                                                      \
	(GRAFT_NEED_NODES | GRAFT_NEED_PROC_FILES | GRAFT_NEED_LIBRARIES | GRAFT_NEED_EXTRA_FILES | \
	 GRAFT_NEED_FIRMWARE | GRAFT_NEED_FURTHER)

static const struct {
	const char *json;
	unsigned int needs;
} needs_rows[] = {
	{ "{\"version\":1}", ALWAYS },
	{ "{\"version\":1,\"no_gsp_firmware\":true}", ALWAYS & ~(unsigned int)GRAFT_NEED_FIRMWARE },
	{ "{\"version\":1,\"capabilities\":[\"utility\"]}", ALWAYS | GRAFT_NEED_BINARIES | GRAFT_NEED_IPCS },
	{ "{\"version\":1,\"capabilities\":[\"compute\"]}", ALWAYS | GRAFT_NEED_BINARIES | GRAFT_NEED_IPCS },
	{ "{\"version\":1,\"capabilities\":[\"graphics\",\"display\",\"video\",\"ngx\"]}",
	  ALWAYS | GRAFT_NEED_BINARIES },
	{ "{\"version\":1,\"capabilities\":[\"video\",\"ngx\"]}", ALWAYS },
	{ "{\"version\":1,\"capabilities\":[\"compat32\"]}", ALWAYS | GRAFT_NEED_LIBRARIES32 },
	{ "{\"version\":1,\"devices\":[{\"kind\":\"index\",\"text\":\"0\"}]}", ALWAYS | GRAFT_NEED_GPUS },
	{ "{\"version\":1,\"devices\":[{\"kind\":\"uuid\",\"text\":\"GPU-x\"}]}", ALWAYS | GRAFT_NEED_GPUS },
	{ "{\"version\":1,\"devices\":[{\"kind\":\"all\",\"text\":\"all\"}]}",
	  ALWAYS | GRAFT_NEED_GPUS | GRAFT_NEED_MIG },
	{ "{\"version\":1,\"devices\":[{\"kind\":\"mig-uuid\",\"text\":\"MIG-x\"}]}",
	  ALWAYS | GRAFT_NEED_GPUS | GRAFT_NEED_MIG },
	{ "{\"version\":1,\"devices\":[{\"kind\":\"mig-index\",\"text\":\"0:0\"}]}",
	  ALWAYS | GRAFT_NEED_GPUS | GRAFT_NEED_MIG },
	{ "{\"version\":1,\"mig_config\":true}", ALWAYS | GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_MIG_CAPS },
	{ "{\"version\":1,\"mig_monitor\":true}", ALWAYS | GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_MIG_CAPS },
};

static struct graft_request *request_of(const char *json)
{
	struct graft_request *request = NULL;
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_request_read(json, strlen(json), &request, &err) < 0)
		fail_msg("%s: %s", json, err.msg);
	return request;
}

static void test_needs(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(needs_rows); i++) {
		struct graft_request *request = request_of(needs_rows[i].json);

		if (graft_pipeline_needs(request, GRAFT_STYLE_NAMESPACE) != needs_rows[i].needs)
			fail_msg("%s: 0x%x", needs_rows[i].json, graft_pipeline_needs(request, GRAFT_STYLE_NAMESPACE));
		graft_request_free(request);
	}
}

/* What a configuration that is still to be made needs in addition. */
static void test_needs_of_oci(void **state)
{
	static const struct {
		const char *json;
		unsigned int more, in_either;
	} rows[] = {
		{ "{\"version\":1}", GRAFT_NEED_EVERY_LIBRARY, 0 },
		{ "{\"version\":1,\"explicit_driver_libraries\":true}", GRAFT_NEED_EVERY_LIBRARY | GRAFT_NEED_EXPLICIT,
		  0 },
		{ "{\"version\":1,\"all_imex_channels\":true}", GRAFT_NEED_EVERY_LIBRARY, GRAFT_NEED_IMEX },
		/* DRM nodes are looked up later, for the selected GPUs */
		{ "{\"version\":1,\"devices\":[{\"kind\":\"all\",\"text\":\"all\"}],\"capabilities\":[\"graphics\"]}",
		  GRAFT_NEED_EVERY_LIBRARY, GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_BINARIES },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = request_of(rows[i].json);

		assert_int_equal(graft_pipeline_needs(request, GRAFT_STYLE_NAMESPACE), ALWAYS | rows[i].in_either);
		assert_int_equal(graft_pipeline_needs(request, GRAFT_STYLE_OCI),
				 ALWAYS | rows[i].in_either | rows[i].more);
		graft_request_free(request);
	}
}

static void test_host_options(void **state)
{
	struct graft_request *request = request_of(
	    "{\"version\":1,\"imex_channels\":[{\"id\":7}],\"gates\":[\"gdrcopy\"],\"no_gsp_firmware\":true}");
	struct graft_host_options options = { .root = "/kept", .capabilities = GRAFT_CAP_VIDEO };

	graft_pipeline_host_options(request, &options);
	assert_int_equal(options.gates, 1u << GRAFT_GATE_GDRCOPY);
	assert_int_equal(options.n_imex_channels, 1);
	assert_int_equal(options.imex_channels[0], 7);
	assert_true(options.no_gsp_firmware);
	assert_false(options.no_persistenced);
	assert_string_equal(options.root, "/kept");
	assert_int_equal(options.capabilities, GRAFT_CAP_VIDEO);
	graft_request_free(request);
}

/* A golden host's inventory. */
static struct graft_inventory *inventory_of(const char *host)
{
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	struct graft_root root = GRAFT_ROOT_INIT;
	const char *text = NULL;
	char path[256];
	size_t length = 0;

	(void)snprintf(path, sizeof(path), "/test/golden/hosts/%s/inventory.json", host);
	assert_non_null(arena);
	assert_int_equal(graft_root_open(&root, getenv("GRAFT_SOURCE_ROOT"), &err), 0);
	assert_int_equal(graft_root_read(&root, path, (size_t)1 << 20, arena, &text, &length), 0);
	assert_int_equal(graft_inventory_read(text, length, &inventory, &err), 0);
	graft_root_close(&root);
	graft_arena_free(arena);
	return inventory;
}

static int n_phases;

static void count_phase(void *arg, const char *name)
{
	assert_null(arg);
	assert_true(strlen(name) > 0);
	n_phases++;
}

/* Host and request; the step and the prefix of the error's text, or NULL. */
static const struct {
	const char *host, *json;
	const char *step, *text;
} replay_rows[] = {
	{ "dgx-h100",
	  "{\"version\":1,\"devices\":[{\"kind\":\"index\",\"text\":\"0\"}],\"capabilities\":[\"utility\"]}", NULL,
	  NULL },
	{ "dgx-h100", "{\"version\":1,\"devices\":[{\"kind\":\"index\",\"text\":\"8\",\"index\":8}]}", "device error",
	  "8: unknown device" },
	{ "dgx-h100", "{\"version\":1,\"requirements\":[\"cuda>=99\"]}", "requirement error",
	  "unsatisfied condition: cuda>=99" },
	{ "dgx-h100",
	  "{\"version\":1,\"devices\":[{\"kind\":\"index\",\"text\":\"0\"}],\"requirements\":[\"brand=tesla\"]}",
	  "initialization error", "the inventory lacks the brands" },
	{ "dgx-h100",
	  "{\"version\":1,\"devices\":[{\"kind\":\"index\",\"text\":\"0\"}],\"requirements\":[\"arch>=8\"]}",
	  "initialization error", "the inventory lacks the architectures" },
	{ "a100-mig", "{\"version\":1,\"devices\":[{\"kind\":\"mig-uuid\",\"text\":\"MIG-0\"}]}",
	  "initialization error", "the inventory lacks the MIG devices" },
};

static void test_replay(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(replay_rows); i++) {
		struct graft_request *request = request_of(replay_rows[i].json);
		struct graft_pipeline pipeline = {
			.replay = true,
			.inventory = inventory_of(replay_rows[i].host),
			.phase = count_phase,
		};
		const struct graft_policy policy = { .no_procfs_view = false };
		struct graft_plan *plan = NULL;
		struct graft_error err = { .status = GRAFT_OK };
		int rc;

		n_phases = 0;
		rc = graft_pipeline_discover(&pipeline, graft_pipeline_needs(request, GRAFT_STYLE_NAMESPACE), &err);
		assert_int_equal(rc, 0);
		rc = graft_pipeline_select(&pipeline, request, &err);
		if (rc == 0)
			rc = graft_pipeline_require(&pipeline, request, &err);
		if (rc == 0)
			rc = graft_pipeline_plan(&pipeline, request, &policy, &plan, &err);
		if (!replay_rows[i].text) {
			assert_int_equal(rc, 0);
			assert_int_equal(plan->n_grants, 1);
			assert_int_equal(n_phases, 2);
		} else {
			assert_int_equal(rc, -1);
			assert_string_equal(graft_error_step(&err), replay_rows[i].step);
			assert_memory_equal(err.msg, replay_rows[i].text, strlen(replay_rows[i].text));
			assert_null(plan);
		}
		graft_plan_free(plan);
		graft_pipeline_done(&pipeline);
		assert_null(pipeline.inventory);
		graft_request_free(request);
	}
}

/* Discovery fails below a root without files, in the step of the missing library. */
static void test_discovery_step(void **state)
{
	struct graft_pipeline pipeline = { .host = { .root = "/proc/self/fdinfo", .host_root = "/proc/self/fdinfo" } };
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_pipeline_discover(&pipeline, GRAFT_NEED_GPUS, &err), -1);
	assert_string_equal(graft_error_step(&err), "initialization error");
	assert_int_equal(err.status, GRAFT_NO_LIBRARY);
	graft_error_clear(&err);
	pipeline.host.root = "/no/such/root";
	assert_int_equal(graft_pipeline_discover(&pipeline, GRAFT_NEED_GPUS, &err), -1);
	assert_string_equal(graft_error_step(&err), "detection error");
	assert_null(pipeline.inventory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_needs),          cmocka_unit_test(test_needs_of_oci),
		cmocka_unit_test(test_host_options),   cmocka_unit_test(test_replay),
		cmocka_unit_test(test_discovery_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
