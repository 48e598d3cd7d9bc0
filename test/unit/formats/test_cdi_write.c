/* SPDX-License-Identifier: Apache-2.0 */
/* Writing CDI specs: the layout to the byte, what must be quoted, versions, annotations, what is never written, and memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "formats/cdi/cdi_write.h"

#define ARENA_MAX ((size_t)64 << 20)

/* A spec as text; the arena's. */
static const char *write_spec(const struct graft_cdi_spec *spec, enum graft_cdi_format format)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { 0 };
	const char *text;

	if (graft_cdi_spec_write(spec, format, &out, &err) < 0)
		fail_msg("%s", err.msg);
	text = graft_arena_strndup(arena, out.bytes, out.length);
	assert_int_equal(strlen(text), out.length);
	graft_buffer_done(&out);
	return text;
}

static void read_spec(const char *text, struct graft_cdi_spec *spec)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_cdi_spec_read("spec", text, strlen(text), arena, spec, &err) < 0)
		fail_msg("%s\n%s", err.msg, text);
}

/* A GPU as its generators describe it; the numbers of the only node leave its minor out, since 0 is not written. */
static struct graft_cdi_spec one_gpu(void)
{
	static struct graft_cdi_node gpu = { .path = "/dev/nvidia0",
					     .host_path = "/root/dev/nvidia0",
					     .major = 195,
					     .has_numbers = true,
					     .mode = 0666,
					     .has_mode = true,
					     .permissions = "rwm" };
	static const char *options[] = { "ro", "nosuid", "nodev", "rbind", "rprivate" };
	static struct graft_cdi_mount mount = { "/root/lib/libcuda.so.999.88.77", "/lib/libcuda.so.999.88.77", NULL,
						options, GRAFT_COUNT(options) };
	static const char *args[] = { "nvidia-cdi-hook", "create-symlinks", "--link", "libcuda.so.1::/lib/libcuda.so" };
	static const char *hook_env[] = { "NVIDIA_CTK_DEBUG=false" };
	static struct graft_cdi_hook hook = { .stage = "createContainer",
					      .path = "/usr/bin/nvidia-cdi-hook",
					      .args = args,
					      .n_args = GRAFT_COUNT(args),
					      .env = hook_env,
					      .n_env = 1 };
	static const char *env[] = { "NVIDIA_VISIBLE_DEVICES=void" };
	static struct graft_cdi_device devices[] = {
		{ .name = "0", .edits = { .nodes = &gpu, .n_nodes = 1 } },
		{ .name = "all", .edits = { .nodes = &gpu, .n_nodes = 1 } },
	};

	return (struct graft_cdi_spec){
		.vendor = "nvidia.com",
		.class_ = "gpu",
		.devices = devices,
		.n_devices = GRAFT_COUNT(devices),
		.edits = { .env = env, .n_env = 1, .mounts = &mount, .n_mounts = 1, .hooks = &hook, .n_hooks = 1 },
	};
}

static const char one_gpu_yaml[] = "---\n"
				   "cdiVersion: 0.5.0\n"
				   "kind: nvidia.com/gpu\n"
				   "devices:\n"
				   "    - name: \"0\"\n"
				   "      containerEdits:\n"
				   "        deviceNodes:\n"
				   "            - path: /dev/nvidia0\n"
				   "              hostPath: /root/dev/nvidia0\n"
				   "              major: 195\n"
				   "              fileMode: 438\n"
				   "              permissions: rwm\n"
				   "    - name: all\n"
				   "      containerEdits:\n"
				   "        deviceNodes:\n"
				   "            - path: /dev/nvidia0\n"
				   "              hostPath: /root/dev/nvidia0\n"
				   "              major: 195\n"
				   "              fileMode: 438\n"
				   "              permissions: rwm\n"
				   "containerEdits:\n"
				   "    env:\n"
				   "        - NVIDIA_VISIBLE_DEVICES=void\n"
				   "    hooks:\n"
				   "        - hookName: createContainer\n"
				   "          path: /usr/bin/nvidia-cdi-hook\n"
				   "          args:\n"
				   "            - nvidia-cdi-hook\n"
				   "            - create-symlinks\n"
				   "            - --link\n"
				   "            - libcuda.so.1::/lib/libcuda.so\n"
				   "          env:\n"
				   "            - NVIDIA_CTK_DEBUG=false\n"
				   "    mounts:\n"
				   "        - hostPath: /root/lib/libcuda.so.999.88.77\n"
				   "          containerPath: /lib/libcuda.so.999.88.77\n"
				   "          options:\n"
				   "            - ro\n"
				   "            - nosuid\n"
				   "            - nodev\n"
				   "            - rbind\n"
				   "            - rprivate\n";

static const char minimal_json[] =
    "{\"cdiVersion\":\"0.6.0\",\"kind\":\"v.com/c.d\",\"annotations\":{\"a\":\"1\","
    "\"b.com/x\":\"\"},\"devices\":[{\"name\":\"d\",\"containerEdits\":{\"env\":[\"A=<b>\"]}}],"
    "\"containerEdits\":{}}";

static void test_layout(void **state)
{
	struct graft_cdi_spec spec = one_gpu(), small;

	assert_string_equal(write_spec(&spec, GRAFT_CDI_YAML), one_gpu_yaml);
	read_spec("{cdiVersion: 0.6.0, kind: v.com/c.d, annotations: {b.com/x: '', a: 1},"
		  " devices: [{name: d, containerEdits: {env: [A=<b>]}}]}",
		  &small);
	assert_string_equal(write_spec(&small, GRAFT_CDI_JSON), minimal_json);
	assert_string_equal(write_spec(&small, GRAFT_CDI_YAML), "---\n"
								"cdiVersion: 0.6.0\n"
								"kind: v.com/c.d\n"
								"annotations:\n"
								"    a: \"1\"\n"
								"    b.com/x: \"\"\n"
								"devices:\n"
								"    - name: d\n"
								"      containerEdits:\n"
								"        env:\n"
								"            - A=<b>\n");
}

/* A file below the source tree. */
static const char *load(const char *path)
{
	const char *top = getenv("GRAFT_SOURCE_ROOT"), *bytes;
	char name[1024];
	size_t length;

	(void)snprintf(name, sizeof(name), "%s/%s", top ? top : ".", path);
	auto_close int fd = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(graft_read_fd(fd, ARENA_MAX, arena, &bytes, &length), 0);
	return bytes;
}

/* Every member that there is, from either format into either. */
static void test_round_trips(void **state)
{
	static const char *const files[] = { "test/unit/formats/cdi/everything.yaml",
					     "test/unit/formats/cdi/everything.json",
					     "test/unit/formats/cdi/one-gpu.yaml" };

	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		struct graft_cdi_spec spec, from_yaml, from_json;
		const char *yaml, *json;

		read_spec(load(files[i]), &spec);
		yaml = write_spec(&spec, GRAFT_CDI_YAML);
		json = write_spec(&spec, GRAFT_CDI_JSON);
		read_spec(yaml, &from_yaml);
		read_spec(json, &from_json);
		assert_string_equal(write_spec(&from_yaml, GRAFT_CDI_JSON), json);
		assert_string_equal(write_spec(&from_json, GRAFT_CDI_YAML), yaml);
		assert_true(strlen(yaml) > 200);
	}
}

/* One value as YAML has it. */
static const struct {
	const char *text, *yaml;
} scalars[] = {
	{ "plain", "plain" },
	{ "/dev/nvidia0", "/dev/nvidia0" },
	{ "--link", "--link" },
	{ "-f", "-f" },
	{ "a b", "a b" },
	{ "a:b::c", "a:b::c" },
	{ "a#b", "a#b" },
	{ "A=[1, 2]", "A=[1, 2]" },
	{ "570.133.20", "570.133.20" },
	{ "GPU-0:1", "GPU-0:1" },
	{ "k\xc3\xb6nig", "k\xc3\xb6nig" },
	{ "\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7" },
	{ "", "\"\"" },
	{ "0", "\"0\"" },
	{ "755", "\"755\"" },
	{ "0755", "\"0755\"" },
	{ "0x1f", "\"0x1f\"" },
	{ "1_000", "\"1_000\"" },
	{ "1.5", "\"1.5\"" },
	{ "1e3", "\"1e3\"" },
	{ ".inf", "\".inf\"" },
	{ "0:1", "\"0:1\"" },
	{ "0000:01:00.0", "\"0000:01:00.0\"" },
	{ "2001-01-31", "\"2001-01-31\"" },
	{ "true", "\"true\"" },
	{ "No", "\"No\"" },
	{ "y", "\"y\"" },
	{ "off", "\"off\"" },
	{ "null", "\"null\"" },
	{ "~", "\"~\"" },
	{ "=", "\"=\"" },
	{ "<<", "\"<<\"" },
	{ "-", "\"-\"" },
	{ "- a", "\"- a\"" },
	{ "---", "\"---\"" },
	{ "...", "\"...\"" },
	{ "? a", "\"? a\"" },
	{ ":a", "\":a\"" },
	{ "*a", "\"*a\"" },
	{ "&a", "\"&a\"" },
	{ "!a", "\"!a\"" },
	{ "|", "\"|\"" },
	{ ">", "\">\"" },
	{ "%a", "\"%a\"" },
	{ "@a", "\"@a\"" },
	{ "`a", "\"`a\"" },
	{ "'a'", "\"'a'\"" },
	{ "\"a\\b\"", "\"\\\"a\\\\b\\\"\"" },
	{ "{a}", "\"{a}\"" },
	{ "[a]", "\"[a]\"" },
	{ ",a", "\",a\"" },
	{ "#a", "\"#a\"" },
	{ " a", "\" a\"" },
	{ "a ", "\"a \"" },
	{ "a: b", "\"a: b\"" },
	{ "a:", "\"a:\"" },
	{ "a #b", "\"a #b\"" },
	{ "a\nb\tc\x01", "\"a\\nb\\tc\\x01\"" },
	{ "a\xc2\x85\x7f", "\"a\\x85\\x7F\"" },
	{ "a\xe2\x80\xa8", "\"a\\u2028\"" },
	{ "\xef\xbb\xbf"
	  "a",
	  "\"\\uFEFFa\"" },
};

static void test_scalars(void **state)
{
	struct graft_cdi_spec spec = one_gpu(), again;

	for (size_t i = 0; i < GRAFT_COUNT(scalars); i++) {
		const char *args[] = { scalars[i].text }, *yaml;
		struct graft_cdi_hook hook = { .stage = "poststop", .path = "/x", .args = args, .n_args = 1 };
		char line[128];

		(void)snprintf(line, sizeof(line), "\n            - %s\n", scalars[i].yaml);
		spec.edits = (struct graft_cdi_edits){ .hooks = &hook, .n_hooks = 1 };
		yaml = write_spec(&spec, GRAFT_CDI_YAML);
		if (!strstr(yaml, line))
			fail_msg("%s is not in\n%s", line, yaml);
		read_spec(yaml, &again);
		assert_string_equal(again.edits.hooks[0].args[0], scalars[i].text);
	}
}

/* The lowest version for one feature (SPEC ctk-and-cdi 5.3). */
static const struct {
	const char *version, *kind, *common, *name, *edits;
} versions[] = {
	{ "0.3.0", "v.com/c", "", "d", "env: [A=1]" },
	{ "0.3.0", "v.com/c", "annotations: {}", "d", "mounts: [{hostPath: /a, containerPath: /a}]" },
	{ "0.4.0", "v.com/c", "", "d", "mounts: [{hostPath: /a, containerPath: /a, type: bind}]" },
	{ "0.5.0", "v.com/c", "", "0d", "env: [A=1]" },
	{ "0.5.0", "v.com/c", "", "d", "deviceNodes: [{path: /a}, {path: /a, hostPath: /b}]" },
	{ "0.5.0", "v.com/c", "containerEdits: {deviceNodes: [{path: /a, hostPath: /b}]}", "d", "env: [A=1]" },
	{ "0.6.0", "v.com/c.d", "", "d", "env: [A=1]" },
	{ "0.6.0", "v.com/c", "annotations: {a: b}", "0", "env: [A=1]" },
	{ "0.7.0", "v.com/c", "", "d", "additionalGids: [1]" },
	{ "0.7.0", "v.com/c", "containerEdits: {intelRdt: {}}", "d", "env: [A=1]" },
	{ "1.1.0", "v.com/c", "", "d", "intelRdt: {schemata: [a]}" },
	{ "1.1.0", "v.com/c", "", "d", "intelRdt: {enableMonitoring: true}" },
	{ "1.1.0", "v.com/c", "", "d", "netDevices: [{hostInterfaceName: a, name: b}]" },
};

static void test_versions(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(versions); i++) {
		struct graft_cdi_spec spec;
		char text[512];

		(void)snprintf(text, sizeof(text),
			       "cdiVersion: 1.1.0\nkind: %s\n%s\ndevices: [{name: %s, containerEdits: {%s}}]\n",
			       versions[i].kind, versions[i].common, versions[i].name, versions[i].edits);
		read_spec(text, &spec);
		assert_string_equal(graft_cdi_spec_minimum_version(&spec), versions[i].version);
		assert_non_null(strstr(write_spec(&spec, GRAFT_CDI_YAML), "cdiVersion: 1.1.0\n"));
		spec.version = NULL;
		(void)snprintf(text, sizeof(text), "{\"cdiVersion\":\"%s\",", versions[i].version);
		assert_memory_equal(write_spec(&spec, GRAFT_CDI_JSON), text, strlen(text));
	}
}

static void assert_not_written(const struct graft_cdi_spec *spec, enum graft_status status, const char *message)
{
	for (unsigned int format = GRAFT_CDI_JSON; format <= GRAFT_CDI_YAML; format++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_buffer out = { 0 };

		graft_buffer_string(&out, "before");
		assert_int_equal(graft_cdi_spec_write(spec, (enum graft_cdi_format)format, &out, &err), -1);
		assert_int_equal(err.status, status);
		if (!strstr(err.msg, message))
			fail_msg("%s", err.msg);
		assert_string_equal(out.bytes, "before");
		graft_buffer_done(&out);
	}
}

static void test_refused(void **state)
{
	struct graft_cdi_spec spec = one_gpu();
	struct graft_cdi_device empty = { .name = "all" };
	const char *bad[] = { "A=\xff" };

	spec.n_devices = 0;
	assert_not_written(&spec, GRAFT_FORMAT, "invalid CDI Spec: invalid spec, no devices");
	spec.devices = &empty;
	spec.n_devices = 1;
	assert_not_written(&spec, GRAFT_FORMAT, "invalid CDI Spec: invalid device, empty device edits");
	spec = one_gpu();
	spec.vendor = "-";
	assert_not_written(&spec, GRAFT_FORMAT, "invalid CDI Spec: invalid vendor. \"-\", should start with letter");
	spec = one_gpu();
	spec.version = "0.4.0";
	assert_not_written(&spec, GRAFT_FORMAT, "the spec version must be at least v0.5.0");
	spec = one_gpu();
	spec.edits.env = bad;
	assert_not_written(&spec, GRAFT_INVALID, "\"A=\\xff\" is not UTF-8, so it cannot be in a CDI spec");
}

#define SIXTY  "a23456789a123456789a123456789a123456789a123456789a123456789a"
#define DOMAIN "a234567890.b234567890.c234567890.d234567890.e234567890"

static void test_annotations(void **state)
{
	static const struct {
		const char *key;
		bool good;
	} keys[] = {
		{ "a", true },
		{ "A_b-c.d9", true },
		{ "vendor.example/A", true },
		{ "Vendor.Example/a", true },
		{ DOMAIN "/" SIXTY "123", true },
		{ SIXTY "1234", false },
		{ "", false },
		{ "/a", false },
		{ "a/", false },
		{ "a/b/c", false },
		{ "-a", false },
		{ "a_", false },
		{ "a+b", false },
		{ "a b", false },
		{ "a..b/c", false },
		{ "a_b/c", false },
		{ "k\xc3\xb6nig", false },
	};
	struct graft_cdi_spec spec = one_gpu();
	struct graft_cdi_annotation annotation = { .value = "x" };
	auto_free char *large = malloc((size_t)256 * 1024 + 1);

	spec.annotations = &annotation;
	spec.n_annotations = 1;
	for (size_t i = 0; i < GRAFT_COUNT(keys); i++) {
		annotation.key = keys[i].key;
		assert_int_equal(graft_cdi_check_annotations(&annotation, 1, NULL), keys[i].good ? 0 : -1);
		if (keys[i].good)
			(void)write_spec(&spec, GRAFT_CDI_YAML);
		else
			assert_not_written(&spec, GRAFT_INVALID, "invalid annotation ");
	}
	assert_non_null(large);
	memset(large, 'x', (size_t)256 * 1024);
	large[(size_t)256 * 1024] = '\0';
	annotation = (struct graft_cdi_annotation){ "a", large };
	assert_not_written(&spec, GRAFT_INVALID, "annotations of 262145 bytes, the limit is 262144");
	annotation.value = large + 1;
	(void)write_spec(&spec, GRAFT_CDI_JSON);
}

static void test_memory(void **state)
{
	struct graft_cdi_spec spec;

	read_spec(load("test/unit/formats/cdi/everything.yaml"), &spec);
	for (int n = 1;; n++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_buffer out = { 0 };
		int rc;

		allocation_fail(n);
		rc = graft_cdi_spec_write(&spec, n % 2 ? GRAFT_CDI_YAML : GRAFT_CDI_JSON, &out, &err);
		graft_buffer_done(&out);
		if (!allocation_failed()) {
			assert_int_equal(rc, 0);
			assert_true(n > 10);
			break;
		}
		if (rc < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_layout, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_round_trips, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_scalars, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_versions, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_refused, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_annotations, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_memory, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
