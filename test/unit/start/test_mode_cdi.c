/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mode cdi: names to edits, the default kind (SPEC runtime-and-hook 8, 14.7), generated names, and
 * errors. The generator is a stand-in.
 */
#include "../unit.h"
#include "base/buffer.h"
#include "start/start.h"
#include "world.h"

static char generated[256];

int graft_mode_jit_cdi(struct graft_start *create, struct graft_error *err)
{
	for (size_t i = 0; i < create->container->devices.n; i++)
		(void)snprintf(generated + strlen(generated), sizeof(generated) - strlen(generated), "%s%s",
			       i > 0 ? " " : "", create->container->devices.items[i]);
	return 0;
}

static const char nvidia[] =
    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits: {env: [COMMON=1]}\ndevices:\n"
    "- {name: 0, containerEdits: {env: [ZERO=1]}}\n- {name: none, containerEdits: {env: [NONE=1]}}\n"
    "- {name: device, containerEdits: {env: [DEVICE=1]}}\n";
static const char example[] =
    "cdiVersion: 0.5.0\nkind: example.com/device\ndevices:\n- {name: bar, containerEdits: {env: [BAR=1]}}\n";

static const char *driver_root, *hook_root;

/* Runs the mode for names separated by spaces; *ret_env is the resulting environment. */
static int run(struct world *world, const char *default_kind, const char *words, const char **ret_env,
	       struct graft_error *err)
{
	static const char text[] = "{\"process\":{\"env\":[\"PATH=/bin\",\"ZERO=0\"]}}";
	auto_json_document struct graft_json_document *document = NULL;
	const char *directories[] = { world_path(world, "static"), world_path(world, "generated") };
	struct graft_config config = { .file = NULL };
	struct graft_container container = { .wants_devices = true };
	const struct graft_oci_spec spec = { .root_path = NULL };
	struct graft_start create = { .config = &config,
				      .spec = &spec,
				      .container = &container,
				      .cdi_hook_path = world_path(world, "bin/nvidia-cdi-hook"),
				      .hook_root = hook_root,
				      .arena = world->arena };
	struct graft_buffer out = { .max = 0 };
	int rc;

	config.runtime.cdi_spec_dirs = (struct graft_strings){ directories, 2 };
	config.runtime.cdi_default_kind = default_kind;
	config.cli.root = driver_root;
	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		const char *word = graft_arena_strndup(world->arena, at, length);

		assert_non_null(
		    graft_arena_push_string(world->arena, &container.devices.items, &container.devices.n, word));
		at += length;
	}
	assert_int_equal(graft_json_document_parse("config.json", text, sizeof(text) - 1, &document, NULL), 0);
	create.document = document;
	generated[0] = '\0';
	rc = graft_mode_cdi(&create, err);
	assert_int_equal(graft_json_document_write(document, &out, NULL), 0);
	*ret_env = graft_arena_strdup(world->arena, graft_buffer_text(&out));
	graft_buffer_done(&out);
	return rc;
}

/* See world_text(). */
#define SEARCHED " (searched @static, @generated)"
#define OF_KIND  "; devices of that kind: 0, none, device; ask for one of them, or regenerate the spec"
#define NO_SPEC  "; no spec has such a device"

static const struct {
	const char *kind, *words, *env; /* env NULL = refused */
	const char *generated, *message;
} rows[] = {
	{ "nvidia.com/gpu", "example.com/device=bar", "\"ZERO=0\",\"BAR=1\"", "", NULL },
	{ "nvidia.com/gpu", "0", "\"ZERO=1\",\"COMMON=1\"", "", NULL }, /* an existing variable keeps its place */
	{ "nvidia.com/gpu", "nvidia.com/gpu=0 0", "\"ZERO=1\",\"COMMON=1\"", "", NULL },
	{ "nvidia.com/gpu", "device", "\"ZERO=0\",\"COMMON=1\",\"DEVICE=1\"", "", NULL },
	/* an ordinary name in this spec */
	{ "nvidia.com/gpu", "none", "\"ZERO=0\",\"COMMON=1\",\"NONE=1\"", "", NULL },
	{ "nvidia.com/gpu", "all", NULL, "", "unresolvable CDI devices nvidia.com/gpu=all" SEARCHED OF_KIND },
	{ "nvidia.com/gpu", "example.com/device", NULL, "",
	  "unresolvable CDI devices nvidia.com/gpu=example.com/device" SEARCHED OF_KIND },
	{ "nvidia.com/gpu", "0 example.com/device=foo example.com/device=bar", NULL, "",
	  "unresolvable CDI devices example.com/device=foo" SEARCHED OF_KIND },
	{ "example.com/device", "bar nvidia.com/gpu=0", "\"ZERO=1\",\"BAR=1\",\"COMMON=1\"", "", NULL },
	{ "nvidia.com/gpu", "runtime.nvidia.com/gpu=0 runtime.nvidia.com/gpu=GPU-1", "\"ZERO=0\"", "0 GPU-1", NULL },
	{ "runtime.nvidia.com/gpu", "all", "\"ZERO=0\"", "all", NULL },
	{ "runtime.nvidia.com/gpu", "none 0 0", "\"ZERO=0\"", "none 0", NULL },
	{ "nvidia.com/gpu", "0 runtime.nvidia.com/gpu=0", NULL, "",
	  "requesting a CDI device with vendor 'runtime.nvidia.com' is not supported when requesting other CDI "
	  "devices" },
	{ "not a kind", "0", NULL, "", "unresolvable CDI devices not a kind=0" SEARCHED NO_SPEC },
	{ "nvidia.com/gpu", "", "\"ZERO=0\"", "", NULL },
};

static void test_names(void **state)
{
	struct world *world = *state;

	world_put(world, "static/nvidia.yaml", nvidia, 0644);
	world_put(world, "generated/example.yaml", example, 0644);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		const char *text, *want;
		int rc = run(world, rows[i].kind, rows[i].words, &text, &err);

		print_message("# %s\n", rows[i].words);
		assert_int_equal(rc, rows[i].env ? 0 : -1);
		want = graft_arena_printf(world->arena, "{\"process\":{\"env\":[\"PATH=/bin\",%s]}}",
					  rows[i].env ? rows[i].env : "\"ZERO=0\"");
		assert_string_equal(text, want);
		assert_string_equal(generated, rows[i].generated);
		if (rows[i].message)
			assert_string_equal(err.msg, world_text(world, rows[i].message));
	}
}

#define MADE "driver-version=550.54.14;gpus=00000000:1b:00.0=GPU-a;mig="
#define GPU  "root/proc/driver/nvidia/gpus/0000:1b:00.0/information"

static void put_version(struct world *world, const char *version)
{
	world_put(world, "root/proc/driver/nvidia/version",
		  graft_arena_printf(
		      world->arena,
		      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  Thu Feb 22 01:44:30 UTC 2024\n", version),
		  0644);
}

/* A spec with a fingerprint is compared with the host, which is a directory of files here. */
static void test_stale(void **state)
{
	static const struct {
		const char *made, *message; /* NULL = not stale */
	} specs[] = {
		{ MADE, NULL },
		{ "driver-version=535.1;gpus=;mig=", "it was made for driver 535.1, and this host has 550.54.14" },
		{ "driver-version=550.54.14;gpus=", "the GPU at 00000000:1b:00.0 is new" },
		{ "gpus=00000000:1b:00.0=GPU-b", "at 00000000:1b:00.0 there is another GPU: GPU-a instead of GPU-b" },
		{ "mig=00000000:1b:00.0=1/0", "the MIG devices of the GPU at 00000000:1b:00.0 have changed" },
		{ "flags=--mode=nvml", NULL },
	};
	struct world *world = *state;
	const char *text;

	driver_root = world_path(world, "root");
	put_version(world, "550.54.14");
	world_put(world, GPU, "Model: A100\nGPU UUID: GPU-a\nBus Location: 0000:1b:00.0\nDevice Minor: 0\n", 0644);
	for (size_t i = 0; i < GRAFT_COUNT(specs); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		char spec[1024];
		int rc;

		(void)snprintf(
		    spec, sizeof(spec),
		    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits: {hooks: [{hookName: poststop, path: "
		    "/bin/sh, env: ['GRAFT_MADE_FROM=%s']}]}\ndevices: [{name: 0, containerEdits: {env: [ZERO=1]}}]\n",
		    specs[i].made);
		world_put(world, "static/nvidia.yaml", spec, 0644);
		rc = run(world, "nvidia.com/gpu", "0", &text, &err);
		print_message("# %s: %s\n", specs[i].made, err.msg);
		assert_int_equal(rc, specs[i].message ? -1 : 0);
		if (!specs[i].message)
			continue;
		assert_string_printed(err.msg, "CDI spec %s is stale: %s", world_path(world, "static/nvidia.yaml"),
				      specs[i].message);
		assert_int_equal(err.status, GRAFT_STALE);
		assert_string_equal(text, "{\"process\":{\"env\":[\"PATH=/bin\",\"ZERO=0\"]}}");
		/* A device that is not in the spec may have been added since. */
		assert_int_equal(run(world, "nvidia.com/gpu", "7", &text, &err), -1);
		assert_string_printed(err.msg, "%s; CDI spec %s is stale: %s; run 'nvidia-ctk cdi refresh' as root",
				      world_text(world, "unresolvable CDI devices nvidia.com/gpu=7" SEARCHED),
				      world_path(world, "static/nvidia.yaml"), specs[i].message);
		assert_int_equal(err.status, GRAFT_UNKNOWN_DEVICE);
	}
	/* A missing driver root proves nothing about the spec. */
	driver_root = world_path(world, "nowhere");
	assert_int_equal(run(world, "nvidia.com/gpu", "0", &text, NULL), 0);
	driver_root = NULL;
}

/*
 * Our own hooks in a spec get the root as an argument where that is allowed; those of others do
 * not.
 */
static void test_hooks(void **state)
{
	static const char spec[] =
	    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: [{name: 0, containerEdits: {env: [ZERO=1]}}]\n"
	    "containerEdits: {hooks: [{hookName: createContainer, path: %s, args: [nvidia-cdi-hook, update-ldcache]}, "
	    "{hookName: createContainer, path: %s, args: [x, chmod]}]}\n";
	static const struct {
		const char *root, *want;
	} told[] = {
		{ NULL, "\"args\":[\"nvidia-cdi-hook\",\"update-ldcache\"]" },
		{ "/r", "\"args\":[\"nvidia-cdi-hook\",\"sequence\",\"--rootfs\",\"/r\",\"update-ldcache\"]" },
	};
	struct world *world = *state;

	world_put(world, "static/nvidia.yaml",
		  graft_arena_printf(world->arena, spec, world_put(world, "bin/nvidia-cdi-hook", "", 0755),
				     world_put(world, "bin/x", "", 0755)),
		  0644);
	for (size_t i = 0; i < GRAFT_COUNT(told); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		const char *text;

		hook_root = told[i].root;
		if (run(world, "nvidia.com/gpu", "0", &text, &err) < 0)
			fail_msg("%s", err.msg);
		assert_non_null(strstr(text, told[i].want));
		assert_non_null(strstr(text, "\"args\":[\"x\",\"chmod\"]"));
	}
	hook_root = NULL;
}

/*
 * One line: devices, directories, what exists, what to do, what was skipped; long errors do not cut
 * off the remedy.
 */
static void test_explanation(void **state)
{
	struct world *world = *state;
	struct graft_error err = { .status = GRAFT_OK };
	char buffer[1024];
	const char *text;

	world_put(world, "static/nvidia.yaml", nvidia, 0644);
	world_put(world, "static/bad.json", "{\"cdiVersion\": \"0.5.0\", \"kind\": \"nvidia.com/gpu\"}", 0644);
	assert_int_equal(run(world, "nvidia.com/gpu", "7", &text, &err), -1);
	assert_int_equal(err.status, GRAFT_UNKNOWN_DEVICE);
	assert_string_printed(
	    graft_error_text(&err, buffer, sizeof(buffer)),
	    "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=7 (searched %s/static, "
	    "%s/generated); "
	    "devices of that kind: 0, none, device; ask for one of them, or regenerate the spec; skipped "
	    "%s/static/bad.json: "
	    "line 1, column 1: invalid CDI Spec: invalid spec, no devices",
	    world->directory, world->directory, world->directory);
	assert_int_equal(run(world, "nvidia.com/gpu", "other.com/gpu=7", &text, &err), -1);
	assert_string_equal(err.msg, world_text(world, "unresolvable CDI devices other.com/gpu=7" SEARCHED NO_SPEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_hooks, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_explanation, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_stale, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
