/* SPDX-License-Identifier: Apache-2.0 */
/* Reading CDI specs: every field in both spellings, what is refused and where, versions, the public examples, and memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "formats/cdi/cdi.h"

#define ARENA_MAX ((size_t)64 << 20)

static int read_text(const char *file, const char *text, struct graft_cdi_spec *spec, struct graft_error *err)
{
	return graft_cdi_spec_read(file, text, strlen(text), arena, spec, err);
}

/* A file below the source tree, or NULL when it is not there. */
static const char *load(const char *path)
{
	const char *top = getenv("GRAFT_SOURCE_ROOT"), *bytes;
	char name[1024];
	size_t length;

	(void)snprintf(name, sizeof(name), "%s/%s", top ? top : ".", path);
	auto_close int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	assert_int_equal(graft_read_fd(fd, ARENA_MAX, arena, &bytes, &length), 0);
	assert_int_equal(strlen(bytes), length);
	return bytes;
}

static void read_file(const char *path, struct graft_cdi_spec *spec)
{
	struct graft_error err = { .status = GRAFT_OK };
	const char *text = load(path);

	assert_non_null(text);
	if (read_text(path, text, spec, &err) < 0)
		fail_msg("%s", err.msg);
}

static void assert_strings(const char *const *items, size_t n, const char *expected)
{
	char joined[512] = "";

	for (size_t i = 0; i < n; i++)
		(void)snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? " " : "",
			       items[i]);
	assert_string_equal(joined, expected);
}

static void check_nodes(const struct graft_cdi_edits *edits)
{
	const struct graft_cdi_node *node = edits->nodes;

	assert_int_equal(edits->n_nodes, 3);
	assert_string_equal(node->path, "/dev/card0");
	assert_string_equal(node->host_path, "/run/driver/dev/card0");
	assert_string_equal(node->type, "c");
	assert_int_equal(node->major, 195);
	assert_int_equal(node->minor, 3);
	assert_true(node->has_numbers);
	assert_true(node->has_mode && node->mode == 0660);
	assert_string_equal(node->permissions, "rw");
	assert_true(node->has_uid && node->uid == 0 && node->has_gid && node->gid == 44);
	node++;
	assert_string_equal(node->path, "/dev/card0-log");
	assert_null(node->host_path);
	assert_null(node->type);
	assert_string_equal(node->permissions, "");
	assert_false(node->has_mode || node->has_uid || node->has_gid);
	node++;
	assert_string_equal(node->type, "p");
	assert_int_equal(node->major, -1);
	assert_false(node->has_numbers);
	assert_null(node->permissions);
}

static void check_rest(const struct graft_cdi_edits *edits)
{
	assert_int_equal(edits->n_net_devices, 1);
	assert_string_equal(edits->net_devices[0].host_name, "rail0");
	assert_string_equal(edits->net_devices[0].name, "eth1");
	assert_int_equal(edits->n_mounts, 2);
	assert_string_equal(edits->mounts[0].host_path, "/usr/lib/libcard.so.2");
	assert_string_equal(edits->mounts[0].container_path, "/usr/lib/libcard.so.2");
	assert_null(edits->mounts[0].type);
	assert_strings(edits->mounts[0].options, edits->mounts[0].n_options, "ro nosuid nodev rbind rprivate");
	assert_string_equal(edits->mounts[1].type, "tmpfs");
	assert_int_equal(edits->n_hooks, 2);
	assert_string_equal(edits->hooks[0].stage, "createContainer");
	assert_string_equal(edits->hooks[0].path, "/usr/bin/card-hook");
	assert_strings(edits->hooks[0].args, edits->hooks[0].n_args, "card-hook links");
	assert_strings(edits->hooks[0].env, edits->hooks[0].n_env, "DEBUG=false");
	assert_true(edits->hooks[0].has_timeout && edits->hooks[0].timeout == 10);
	assert_true(edits->hooks[1].has_timeout && edits->hooks[1].timeout == 0);
	assert_int_equal(edits->hooks[1].n_args, 0);
}

static void check_everything(const struct graft_cdi_spec *spec)
{
	const struct graft_cdi_rdt *rdt = spec->edits.rdt;

	assert_string_equal(spec->version, "v1.1.0");
	assert_string_equal(spec->vendor, "vendor.example");
	assert_string_equal(spec->class_, "accelerator");
	assert_strings(spec->edits.env, spec->edits.n_env, "CARDS=few");
	assert_int_equal(spec->edits.n_gids, 3);
	assert_int_equal(spec->edits.gids[0], 44);
	assert_int_equal(spec->edits.gids[2], UINT32_MAX);
	assert_non_null(rdt);
	assert_string_equal(rdt->clos_id, "guaranteed");
	assert_string_equal(rdt->l3_cache_schema, "L3:0=f");
	assert_string_equal(rdt->mem_bw_schema, "MB:0=70");
	assert_strings(rdt->schemata, rdt->n_schemata, "L3:0=ff MB:0=50");
	assert_true(rdt->enable_monitoring);
	assert_int_equal(spec->n_annotations, 2);
	assert_string_equal(spec->annotations[0].key, "made.by/tool");
	assert_string_equal(spec->annotations[0].value, "1");
	assert_string_equal(spec->annotations[1].key, "0");
	assert_string_equal(spec->annotations[1].value, "7");
	assert_int_equal(spec->n_devices, 2);
	assert_string_equal(spec->devices[0].name, "0");
	assert_int_equal(spec->devices[0].n_annotations, 0);
	check_nodes(&spec->devices[0].edits);
	check_rest(&spec->devices[0].edits);
	assert_string_equal(spec->devices[1].name, "all");
	assert_strings(spec->devices[1].edits.env, spec->devices[1].edits.n_env, "A=1 B=");
}

static void test_everything(void **state)
{
	static const char *const files[] = { "test/unit/formats/cdi/everything.yaml",
					     "test/unit/formats/cdi/everything.json" };

	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		struct graft_cdi_spec spec;

		print_message("# %s\n", files[i]);
		read_file(files[i], &spec);
		assert_string_equal(spec.file, files[i]);
		check_everything(&spec);
	}
}

/* The shape that generators for one GPU write (SPEC ctk-and-cdi 4.11). */
static void test_one_gpu(void **state)
{
	struct graft_cdi_spec spec;

	read_file("test/unit/formats/cdi/one-gpu.yaml", &spec);
	assert_string_equal(spec.vendor, "nvidia.com");
	assert_int_equal(spec.n_devices, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct graft_cdi_node *node = spec.devices[i].edits.nodes;

		assert_string_equal(node->host_path, "/run/nvidia/driver/dev/nvidia0");
		assert_int_equal(node->major, 195);
		assert_int_equal(node->minor, 0);
		assert_int_equal(node->mode, 0666);
	}
	assert_int_equal(spec.edits.n_hooks, 1);
	assert_int_equal(spec.edits.n_mounts, 1);
	assert_string_equal(spec.edits.env[1], "NVIDIA_VISIBLE_DEVICES=void");
}

#define HEAD    "cdiVersion: 1.1.0\nkind: v.com/c\n"
#define DEVICE  HEAD "devices:\n- name: d\n  containerEdits:\n"
#define NODE    DEVICE "    deviceNodes:\n    - "
#define ENV_ALL "devices: [{name: d, containerEdits: {env: [A=1]}}]\n"
/* The same in JSON, with a member in its third line. */
#define JSON(member)                                           \
	"{\"cdiVersion\": \"1.1.0\", \"kind\": \"v.com/c\",\n" \
	"\"devices\": [{\"name\": \"d\", \"containerEdits\": {\"env\": [\"A=1\"]}}],\n" member "}"

static const struct {
	const char *text, *message; /* behind the file's name */
} bad[] = {
	{ "", "invalid CDI Spec: the file is empty" },
	{ "# only a comment\n", "invalid CDI Spec: the file is empty" },
	{ "- a\n", "line 1, column 1: invalid CDI Spec: the spec is a list, but must be an object" },
	{ "{}", "line 1, column 1: invalid CDI Spec: invalid version \"\"" },
	{ "cdiVersion: 2.0.0\nkind: v.com/c\n" ENV_ALL,
	  "line 1, column 1: invalid CDI Spec: invalid version \"2.0.0\"" },
	{ "cdiVersion: vv1.0.0\nkind: v.com/c\n" ENV_ALL,
	  "line 1, column 1: invalid CDI Spec: invalid version \"vv1.0.0\"" },
	{ "cdiVersion: 0.5\nkind: v.com/c\n" ENV_ALL,
	  "line 1, column 1: invalid CDI Spec: cdiVersion is a number with a fraction; put it in quotes" },
	{ "cdiVersion: 0.2.0\nkind: v.com/c\n" ENV_ALL,
	  "line 1, column 1: invalid CDI Spec: the spec version must be at least v0.3.0" },
	{ "cdiVersion: 0.5.0\n" ENV_ALL,
	  "line 1, column 1: invalid CDI Spec: invalid vendor. \"\", should start with letter" },
	{ "cdiVersion: 0.5.0\nkind: gpu\n" ENV_ALL,
	  "line 2, column 1: invalid CDI Spec: invalid vendor. \"\", should start with letter" },
	{ "cdiVersion: 0.5.0\nkind: 1.com/gpu\n" ENV_ALL,
	  "line 2, column 1: invalid CDI Spec: invalid vendor. \"1.com\", should start with letter" },
	{ "cdiVersion: 0.5.0\nkind: v.com/gpu-\n" ENV_ALL,
	  "line 2, column 1: invalid CDI Spec: invalid class. \"gpu-\", should end with a letter or digit" },
	{ "cdiVersion: 0.5.0\nkind: # none\n" ENV_ALL,
	  "line 2, column 1: invalid CDI Spec: invalid vendor. \"\", should start with letter" },
	{ "cdiVersion: ~\nkind: v/c\n" ENV_ALL, "line 1, column 1: invalid CDI Spec: invalid version \"\"" },
	{ HEAD, "line 1, column 1: invalid CDI Spec: invalid spec, no devices" },
	{ HEAD "devices: []\n", "line 3, column 1: invalid CDI Spec: invalid spec, no devices" },
	{ HEAD "devices: {}\n", "line 3, column 1: invalid CDI Spec: devices is an object, but must be a list" },
	{ HEAD "device: []\n" ENV_ALL, "line 3, column 1: invalid CDI Spec: unknown field \"device\"" },
	{ HEAD "Kind: v.com/c\n" ENV_ALL, "line 3, column 1: invalid CDI Spec: field \"kind\" is given twice" },
	{ HEAD "annotations: {a: 1, b: 2, a: 3}\n" ENV_ALL,
	  "line 3, column 27: invalid CDI Spec: \"a\" is given twice" },
	{ HEAD "annotations: {a: {}}\n" ENV_ALL,
	  "line 3, column 15: invalid CDI Spec: an annotation is an object, but must be a "
	  "string" },
	{ HEAD "devices:\n- name: d\n  containerEdits: {}\n",
	  "line 4, column 3: invalid CDI Spec: invalid device, empty device edits" },
	{ HEAD "devices:\n- name: d\n", "line 4, column 3: invalid CDI Spec: invalid device, empty device edits" },
	{ HEAD "devices:\n- containerEdits: {env: [A=1]}\n",
	  "line 4, column 3: invalid CDI Spec: invalid (empty) device name" },
	{ HEAD "devices:\n- name: d:\n  containerEdits: {env: [A=1]}\n", NULL },
	{ HEAD "devices:\n- name: -d\n  containerEdits: {env: [A=1]}\n",
	  "line 4, column 3: invalid CDI Spec: invalid class \"-d\", should start with a letter or digit" },
	{ HEAD "devices:\n- {name: a, containerEdits: {env: [A=1]}}\n- {name: b, containerEdits: {env: [A=1]}}\n"
	       "- {name: a, containerEdits: {env: [A=1]}}\n",
	  "line 6, column 3: invalid CDI Spec: invalid spec, multiple device \"a\"" },
	{ HEAD "containerEdits: {env: [=1]}\n" ENV_ALL,
	  "line 3, column 1: invalid CDI Spec: invalid environment variable \"=1\"" },
	{ HEAD "containerEdits: {env: [A]}\n" ENV_ALL,
	  "line 3, column 1: invalid CDI Spec: invalid environment variable \"A\"" },
	{ HEAD "containerEdits: {env: [~]}\n" ENV_ALL,
	  "line 3, column 1: invalid CDI Spec: invalid environment variable \"\"" },
	{ HEAD "containerEdits: {env: A=1}\n" ENV_ALL,
	  "line 3, column 18: invalid CDI Spec: env is a string, but must be a list" },
	{ NODE "{}\n", "line 7, column 7: invalid CDI Spec: invalid (empty) device path" },
	{ NODE "null\n", "line 7, column 7: invalid CDI Spec: invalid (empty) device path" },
	{ NODE "{path: \"\"}\n", "line 7, column 7: invalid CDI Spec: invalid (empty) device path" },
	{ NODE "{path: /dev/x, type: d}\n",
	  "line 7, column 7: invalid CDI Spec: device \"/dev/x\": invalid type \"d\"" },
	{ NODE "{path: /dev/x, permissions: rwx}\n",
	  "line 7, column 7: invalid CDI Spec: device \"/dev/x\": invalid permissions \"rwx\"" },
	{ NODE "{path: /dev/x, major: '195'}\n",
	  "line 7, column 22: invalid CDI Spec: major is a string, but must be a whole number of 64 bits" },
	{ NODE "{path: /dev/x, major: 9223372036854775808}\n",
	  "line 7, column 22: invalid CDI Spec: major is a number, but must be a whole number of 64 bits" },
	{ NODE "{path: /dev/x, uid: -1}\n",
	  "line 7, column 22: invalid CDI Spec: uid is a number, but must be a whole number from 0 "
	  "to 4294967295" },
	{ NODE "{path: /dev/x, gid: 4294967296}\n",
	  "line 7, column 22: invalid CDI Spec: gid is a number, but must be a whole number "
	  "from 0 to 4294967295" },
	{ NODE "{path: /dev/x, fileMode: 200000}\n", NULL },
	{ NODE "{path: /dev/x, node: 1}\n", "line 7, column 22: invalid CDI Spec: unknown field \"node\"" },
	{ DEVICE "    netDevices: [{hostInterfaceName: a}]\n",
	  "line 6, column 18: invalid CDI Spec: invalid network device, empty name" },
	{ DEVICE "    netDevices: [{name: a}]\n",
	  "line 6, column 18: invalid CDI Spec: invalid network device, empty hostInterfaceName" },
	{ DEVICE "    netDevices: [{hostInterfaceName: a, name: b}, {hostInterfaceName: c, name: b}]\n",
	  "line 5, column 3: invalid CDI Spec: invalid network device, \"b\" is given twice" },
	{ DEVICE "    mounts: [{hostPath: /a}]\n",
	  "line 6, column 14: invalid CDI Spec: invalid mount, empty container path" },
	{ DEVICE "    mounts: [{containerPath: /a}]\n",
	  "line 6, column 14: invalid CDI Spec: invalid mount, empty host path" },
	{ DEVICE "    hooks: [{hookName: precreate, path: /a}]\n",
	  "line 6, column 13: invalid CDI Spec: invalid hook name \"precreate\"" },
	{ DEVICE "    hooks: [{path: /a}]\n", "line 6, column 13: invalid CDI Spec: invalid hook name \"\"" },
	{ DEVICE "    hooks: [{hookName: prestart}]\n",
	  "line 6, column 13: invalid CDI Spec: invalid hook, empty path" },
	{ DEVICE "    hooks: [{hookName: prestart, path: /a, env: [X]}]\n",
	  "line 6, column 13: invalid CDI Spec: invalid environment variable \"X\"" },
	{ DEVICE "    intelRdt: {closID: ..}\n", "line 6, column 5: invalid CDI Spec: invalid ClosID" },
	{ DEVICE "    intelRdt: {closID: a/b}\n", "line 6, column 5: invalid CDI Spec: invalid ClosID" },
	{ DEVICE "    intelRdt: {closID: \"a\\nb\"}\n", "line 6, column 5: invalid CDI Spec: invalid ClosID" },
	{ DEVICE "    intelRdt: {enableCMT: true}\n",
	  "line 6, column 16: invalid CDI Spec: unknown field \"enableCMT\"" },
	{ DEVICE "    intelRdt: {enableMonitoring: 1}\n",
	  "line 6, column 16: invalid CDI Spec: enableMonitoring is a number, but must be true or false" },
	{ DEVICE "    additionalGids: [a]\n",
	  "line 6, column 22: invalid CDI Spec: additionalGids is a string, but must be a whole number "
	  "from 0 to 4294967295" },
	/* A NUL, in names and texts of every kind. */
	{ JSON("\"a\\u0000b\": 1"), "line 3, column 1: invalid CDI Spec: a name must not contain a NUL character" },
	{ JSON("\"kind\\u0000\": 1"), "line 3, column 1: invalid CDI Spec: a name must not contain a NUL character" },
	{ JSON("\"containerEdits\": {\"\\u0000\": []}"),
	  "line 3, column 20: invalid CDI Spec: a name must not contain a NUL character" },
	{ JSON("\"annotations\": {\"a\": \"1\", \"b\\u0000\": \"2\"}"),
	  "line 3, column 27: invalid CDI Spec: a name must not contain a NUL character" },
	{ JSON("\"annotations\": {\"a\": \"1\\u0000\"}"),
	  "line 3, column 17: invalid CDI Spec: a string must not contain a NUL character" },
	{ JSON("\"containerEdits\": {\"env\": [\"A=1\", \"B=\\u0000\"]}"),
	  "line 3, column 35: invalid CDI Spec: a string must not contain a NUL character" },
	{ JSON("\"containerEdits\": {\"mounts\": [{\"hostPath\": \"/a\", \"type\": \"\\u0000\"}]}"),
	  "line 3, column 50: invalid CDI Spec: a string must not contain a NUL character" },
	{ "{\"cdiVersion\": \"0.5.0\", \"kind\": \"v.com/c\\u0000\"}",
	  "line 1, column 25: invalid CDI Spec: a string must not contain a NUL character" },
	{ "{\"devices\": [{\"name\": \"d\\u0000\"}]}",
	  "line 1, column 15: invalid CDI Spec: a string must not contain a NUL character" },
	/* JSON whose own reader says what is wrong */
	{ "{\"cdiVersion\": \"0.5.0\", \"kind\": \"v.com/c\", \"devices\": 1}",
	  "line 1, column 44: invalid CDI Spec: devices is a number, but must be a list" },
};

static void test_bad(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(bad); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_spec spec;

		print_message("# %s\n", bad[i].text);
		assert_int_equal(read_text("spec.yaml", bad[i].text, &spec, &err), -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
		assert_true(strncmp(err.msg, "spec.yaml: ", 11) == 0);
		if (bad[i].message)
			assert_string_equal(err.msg + 11, bad[i].message);
	}
}

/* What each version brought (SPEC ctk-and-cdi 5.3): one feature, the lowest version that has it. */
static const struct {
	const char *needs, *kind, *common, *name, *edits;
} versions[] = {
	{ "0.3.0", "v.com/c", "", "d", "env: [A=1]" },
	{ "0.3.0", "v.com/c", "annotations: {}", "d", "mounts: [{hostPath: /a, containerPath: /a, type: ''}]" },
	{ "0.3.0", "v.com/c", "containerEdits: {additionalGids: [], netDevices: []}", "d", "env: [A=1]" },
	{ "0.4.0", "v.com/c", "", "d", "mounts: [{hostPath: /a, containerPath: /a, type: bind}]" },
	{ "0.5.0", "v.com/c", "", "0d", "env: [A=1]" },
	{ "0.5.0", "v.com/c", "", "0", "env: [A=1]" },
	{ "0.5.0", "v.com/c", "", "d", "deviceNodes: [{path: /a, hostPath: /b}]" },
	{ "0.5.0", "v.com/c", "containerEdits: {deviceNodes: [{path: /a, hostPath: /b}]}", "d", "env: [A=1]" },
	{ "0.6.0", "v.com/c.d", "", "d", "env: [A=1]" },
	{ "0.6.0", "v.com/c", "annotations: {a: b}", "d", "env: [A=1]" },
	{ "0.7.0", "v.com/c", "", "d", "additionalGids: [1]" },
	{ "0.7.0", "v.com/c", "containerEdits: {intelRdt: {}}", "d", "env: [A=1]" },
	{ "0.7.0", "v.com/c", "", "d", "intelRdt: {enableMonitoring: false}" },
	{ "1.1.0", "v.com/c", "", "d", "intelRdt: {schemata: []}" },
	{ "1.1.0", "v.com/c", "", "d", "intelRdt: {enableMonitoring: true}" },
	{ "1.1.0", "v.com/c", "", "d", "netDevices: [{hostInterfaceName: a, name: b}]" },
};

static const char *const known[] = { "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0",
				     "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0" };

static void test_versions(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(versions); i++) {
		bool enough = false;

		for (size_t j = 0; j < GRAFT_COUNT(known); j++) {
			struct graft_error err = { .status = GRAFT_OK };
			struct graft_cdi_spec spec;
			char text[512];

			(void)snprintf(text, sizeof(text),
				       "cdiVersion: %s\nkind: %s\n%s\ndevices: [{name: %s, containerEdits: {%s}}]\n",
				       known[j], versions[i].kind, versions[i].common, versions[i].name,
				       versions[i].edits);
			enough = enough || strcmp(known[j], versions[i].needs) == 0;
			print_message("# %s\n", text);
			assert_int_equal(read_text("s.yaml", text, &spec, &err), enough ? 0 : -1);
			if (!enough)
				assert_string_printed(err.msg,
						      "s.yaml: line 1, column 1: invalid CDI Spec: the spec version "
						      "must be at least v%s",
						      versions[i].needs);
		}
		assert_true(enough);
	}
}

/* Files with more than one fault: all of them, each with its place. */
static const struct {
	const char *text;
	struct {
		unsigned int line, column;
		bool harmless;
		const char *what;
	} faults[10];
} faulty[] = {
	{ "cdiVersion: 0.3.0\nkind: v.com/c\n" ENV_ALL, { { 0 } } },
	{ "cdiVersion: 9.9.9\n"
	  "kind: v.com\n"
	  "colour: red\n"
	  "annotations: {a b: c}\n"
	  "containerEdits:\n"
	  "    env: [X, 1.5, Z]\n"
	  "    hooks:\n"
	  "        - {hookName: poststop, path: /a, timeout: 0}\n"
	  "devices:\n"
	  "    - name: d\n"
	  "      containerEdits: {}\n",
	  { { 1, 1, false, "invalid version \"9.9.9\"" },
	    { 2, 1, false, "invalid vendor. \"\", should start with letter" },
	    { 3, 1, false, "unknown field \"colour\"" },
	    { 4, 1, true,
	      "invalid annotation \"a b\": the key must be a name of up to 63 letters, digits, '-', '_' and '.', "
	      "after an optional 'domain/'" },
	    { 5, 1, false, "invalid environment variable \"X\"" },
	    { 5, 1, false, "invalid environment variable \"Z\"" },
	    { 6, 14, false, "env is a number with a fraction; put it in quotes" },
	    { 8, 11, true, "the hook's timeout is 0 seconds, but must be at least 1" },
	    { 10, 7, false, "invalid device, empty device edits" } } },
	{ "cdiVersion: 0.4.0\n"
	  "kind: v.com/c\n"
	  "devices:\n"
	  "    - name: d\n"
	  "      containerEdits:\n"
	  "        deviceNodes:\n"
	  "            - {path: /a, type: x, permissions: q, fileMode: 200000}\n"
	  "            - {hostPath: 1, path: [1]}\n"
	  "            - 7\n"
	  "            - {path: /b, hostPath: /c}\n"
	  "    - name: d\n"
	  "      containerEdits: {env: [A=1]}\n",
	  { { 1, 1, false, "the spec version must be at least v0.5.0" },
	    { 7, 15, false, "device \"/a\": invalid type \"x\"" },
	    { 7, 15, false, "device \"/a\": invalid permissions \"q\"" },
	    { 7, 15, false, "device \"/a\": fileMode 200000 is not a file mode (a decimal number in JSON)" },
	    { 8, 29, false, "path is a list, but must be a string" },
	    { 9, 15, false, "deviceNodes is a number, but must be an object" },
	    { 11, 7, false, "invalid spec, multiple device \"d\"" } } },
	{ "cdiVersion: 0.5\nkind: 1.5\ndevices: [{name: 1.5, containerEdits: {env: [A=1]}}]\n",
	  { { 1, 1, false, "cdiVersion is a number with a fraction; put it in quotes" },
	    { 2, 1, false, "kind is a number with a fraction; put it in quotes" },
	    { 3, 12, false, "name is a number with a fraction; put it in quotes" } } },
	{ HEAD "containerEdits: {netDevices: [{name: a}, {name: [], hostInterfaceName: b}, {name: a}]}\n" ENV_ALL,
	  { { 3, 1, false, "invalid network device, \"a\" is given twice" },
	    { 3, 31, false, "invalid network device, empty hostInterfaceName" },
	    { 3, 43, false, "name is a list, but must be a string" },
	    { 3, 76, false, "invalid network device, empty hostInterfaceName" } } },
	{ HEAD "annotations: {a: [], b c: []}\n" ENV_ALL,
	  { { 3, 1, true,
	      "invalid annotation \"b c\": the key must be a name of up to 63 letters, digits, '-', '_' and '.', "
	      "after an optional 'domain/'" },
	    { 3, 15, false, "an annotation is a list, but must be a string" },
	    { 3, 22, false, "an annotation is a list, but must be a string" } } },
	{ JSON("\"a\\u0000b\": 1, \"annotations\": {\"c\": \"\\u0000\", \"\\u0000\": \"d\", \"e\": [], \"e\": \"f\"},\n"
	       "\"containerEdits\": {\"env\": [\"\\u0000\", \"B=1\"]}"),
	  { { 3, 1, false, "a name must not contain a NUL character" },
	    { 3, 32, false, "a string must not contain a NUL character" },
	    { 3, 47, false, "a name must not contain a NUL character" },
	    { 3, 62, false, "an annotation is a list, but must be a string" },
	    { 3, 71, false, "\"e\" is given twice" },
	    { 4, 28, false, "a string must not contain a NUL character" } } },
	{ "{\"cdiVersion\": \"\\u0000\", \"kind\": \"\\u0000\",\n"
	  "\"devices\": [{\"name\": \"\\u0000\", \"containerEdits\": {\"env\": [\"A=1\"]}}]}",
	  { { 1, 2, false, "a string must not contain a NUL character" },
	    { 1, 26, false, "a string must not contain a NUL character" },
	    { 2, 14, false, "a string must not contain a NUL character" } } },
	{ "", { { 0, 0, false, "the file is empty" } } },
	{ "a: [\n", { { 2, 1, false, "did not find expected node content" } } },
	{ "{\"cdiVersion\": \"0.3.0\" \"kind\": 1}", { { 1, 24, false, "expected ',' or a closing bracket" } } },
};

static void test_faults(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(faulty); i++) {
		struct graft_cdi_faults faults = { .arena = arena };
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_spec spec;
		size_t n = 0;

		assert_int_equal(
		    graft_cdi_spec_examine("f.json", faulty[i].text, strlen(faulty[i].text), &faults, &spec, &err), 0);
		assert_int_equal(err.status, GRAFT_OK);
		for (size_t j = 0; j < faults.n; j++)
			print_message("# %zu: %u, %u: %s\n", i, faults.items[j].line, faults.items[j].column,
				      faults.items[j].what);
		while (n < GRAFT_COUNT(faulty[i].faults) && faulty[i].faults[n].what)
			n++;
		for (size_t j = 0; j < n && j < faults.n; j++) {
			assert_string_equal(faults.items[j].what, faulty[i].faults[j].what);
			assert_int_equal(faults.items[j].line, faulty[i].faults[j].line);
			assert_int_equal(faults.items[j].column, faulty[i].faults[j].column);
			assert_int_equal(faults.items[j].harmless, faulty[i].faults[j].harmless);
		}
		assert_int_equal(faults.n, n);
	}
}

/* A file has one hundred faults at most, however long it is. */
static void test_many_faults(void **state)
{
	struct graft_cdi_faults faults = { .arena = arena };
	struct graft_buffer text = { 0 };
	struct graft_cdi_spec spec;

	for (unsigned int i = 0; i < 1000; i++)
		graft_buffer_printf(&text, "field%u: 1\n", i);
	assert_int_equal(graft_cdi_spec_examine("f", text.bytes, text.length, &faults, &spec, NULL), 0);
	assert_int_equal(faults.n, 100);
	graft_buffer_done(&text);
}

/* As many remarks as there may be faults do not hide one that is not harmless. */
static void test_many_remarks(void **state)
{
	struct graft_cdi_faults faults = { .arena = arena };
	struct graft_buffer text = { 0 };
	struct graft_cdi_spec spec;

	graft_buffer_string(&text, HEAD ENV_ALL "containerEdits:\n    hooks:\n");
	for (unsigned int i = 0; i < 200; i++)
		graft_buffer_string(&text, "    - {hookName: poststop, path: /a, timeout: 0}\n");
	graft_buffer_string(&text, "    - {hookName: poststop}\n");
	assert_int_equal(graft_cdi_spec_examine("f", text.bytes, text.length, &faults, &spec, NULL), 0);
	assert_int_equal(faults.n, 100);
	assert_true(faults.items[98].harmless);
	assert_false(faults.items[99].harmless);
	assert_string_equal(faults.items[99].what, "invalid hook, empty path");
	graft_buffer_done(&text);
}

#define SUITE "../shared/conformance/cdi-schema/testdata"

static void test_suite(void **state)
{
	static const struct {
		const char *file;
		bool good;
	} files[] = {
		{ SUITE "/good/minimal.json", true },
		{ SUITE "/good/spec-example.json", true },
		{ SUITE "/bad/empty.json", false },
		{ SUITE "/bad/explicit-empty.json", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		const char *text = load(files[i].file);
		struct graft_cdi_spec spec;

		if (!text) {
			print_message("# skipped: %s is not here\n", files[i].file);
			skip();
		}
		assert_int_equal(read_text(files[i].file, text, &spec, NULL), files[i].good ? 0 : -1);
	}
}

/* What begins with a brace is JSON, or YAML that looks like it; the file's name decides which reader explains a fault. */
static void test_braces(void **state)
{
	static const char yaml[] =
	    "{cdiVersion: 0.3.0, kind: v/c, devices: [{name: d, containerEdits: {env: [A=1]}},]}";
	static const char neither[] = "{\"cdiVersion\": \"0.3.0\" \"kind\": 1}";
	struct graft_error err = { .status = GRAFT_OK }, other = { .status = GRAFT_OK };
	struct graft_cdi_spec spec;

	assert_int_equal(read_text("a.json", yaml, &spec, &err), 0);
	assert_int_equal(err.status, GRAFT_OK);
	assert_int_equal(read_text("a.json", neither, &spec, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_true(strncmp(err.msg, "a.json: line 1, column 24: ", 27) == 0);
	assert_int_equal(read_text("a.yaml", neither, &spec, &other), -1);
	assert_string_equal(other.msg, "a.yaml: line 1, column 24: invalid CDI Spec: did not find expected ',' or '}'");
	assert_null(strstr(err.msg, "did not find expected ',' or '}'"));
}

static void test_limits(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_spec spec;
	size_t length = (size_t)16 * 1024 * 1024 + 1;
	auto_free char *text = malloc(length);

	assert_non_null(text);
	memset(text, ' ', length);
	assert_int_equal(graft_cdi_spec_read("big", text, length, arena, &spec, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_int_equal(graft_cdi_spec_read("big", text, length - 1, arena, &spec, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
}

static void test_memory(void **state)
{
	static const char *const files[] = { "test/unit/formats/cdi/everything.yaml",
					     "test/unit/formats/cdi/everything.json",
					     "test/unit/formats/cdi/one-gpu.yaml", NULL };

	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		const char *text = files[i] ? load(files[i]) : faulty[1].text;

		for (int n = 1;; n++) {
			struct graft_arena *own = graft_arena_new(ARENA_MAX);
			struct graft_error err = { .status = GRAFT_OK };
			struct graft_cdi_faults faults;
			struct graft_cdi_spec spec;
			int rc;

			assert_non_null(own);
			faults = (struct graft_cdi_faults){ .arena = own };
			allocation_fail(n);
			rc = i < GRAFT_COUNT(files) - 1
				 ? graft_cdi_spec_read("s.json", text, strlen(text), own, &spec, &err)
				 : graft_cdi_spec_examine("s.json", text, strlen(text), &faults, &spec, &err);
			if (!allocation_failed()) {
				assert_int_equal(rc, 0);
				graft_arena_free(own);
				assert_true(n > 5);
				break;
			}
			graft_arena_free(own);
			if (rc < 0)
				assert_int_equal(err.status, GRAFT_NO_MEMORY);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_everything, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_one_gpu, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_bad, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_versions, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_faults, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_many_faults, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_many_remarks, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_suite, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_braces, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_limits, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_memory, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
