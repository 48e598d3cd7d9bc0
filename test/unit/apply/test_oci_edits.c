/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Container edits in an OCI configuration: each kind alone, what is replaced and what is kept,
 * order, errors, and memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../allocation.h"
#include "../unit.h"
#include "apply/oci/oci_edits.h"
#include "base/cleanup.h"
#include "plan/spec_hooks.h"

#define STRINGS(...) (const char *[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *)
#define ENV(...)     .env = (const char *[]){ __VA_ARGS__ }, .n_env = GRAFT_COUNT(((const char *[]){ __VA_ARGS__ }))
#define NODES(...)   LIST(struct graft_cdi_node, nodes, __VA_ARGS__)
#define MOUNTS(...)  LIST(struct graft_cdi_mount, mounts, __VA_ARGS__)
#define HOOKS(...)   LIST(struct graft_cdi_hook, hooks, __VA_ARGS__)
#define GIDS(...)    LIST(uint32_t, gids, __VA_ARGS__)
#define NETS(...)    LIST(struct graft_cdi_net_device, net_devices, __VA_ARGS__)
#define LIST(type, member, ...) \
	.member = (type[]){ __VA_ARGS__ }, .n_##member = sizeof((type[]){ __VA_ARGS__ }) / sizeof(type)

static const struct {
	const char *name, *before;
	struct graft_cdi_edits edits;
	const char *after;
} rows[] = {
	{ "nothing to do changes nothing", "{ \"process\" : {} }", { .env = NULL }, "{ \"process\" : {} }" },

	{ "env: made where there is no process", "{}", { ENV("A=1") }, "{\"process\":{\"env\":[\"A=1\"]}}" },
	{ "env: new ones last",
	  "{\"process\":{\"env\":[\"PATH=/\"]}}",
	  { ENV("A=1", "B=2") },
	  "{\"process\":{\"env\":[\"PATH=/\",\"A=1\",\"B=2\"]}}" },
	{ "env: replaced in its place, the others of that name go (Q10)",
	  "{\"process\":{\"env\":[\"X=0\",\"A=old\",\"Y=\",\"A=older\",\"AA=1\",\"A\",\"A=oldest\"]}}",
	  { ENV("A=new") },
	  "{\"process\":{\"env\":[\"X=0\",\"A=new\",\"Y=\",\"AA=1\",\"A\"]}}" },
	{ "env: within one set the last one wins", "{}", { ENV("A=1", "A=2") }, "{\"process\":{\"env\":[\"A=2\"]}}" },
	{ "env: the same value changes nothing",
	  "{\"process\":{\"env\":[ \"A=\\u0031\"]}}",
	  { ENV("A=1") },
	  "{\"process\":{\"env\":[ \"A=\\u0031\"]}}" },

	{ "node: whole",
	  "{}",
	  { NODES({ .path = "/dev/x",
		    .type = "c",
		    .has_numbers = true,
		    .major = 195,
		    .minor = 255,
		    .has_mode = true,
		    .mode = 0660,
		    .permissions = "rw",
		    .has_uid = true,
		    .uid = 0,
		    .has_gid = true,
		    .gid = 44 }) },
	  "{\"linux\":{\"devices\":[{\"path\":\"/dev/"
	  "x\",\"type\":\"c\",\"major\":195,\"minor\":255,\"fileMode\":432,\"uid\":0,"
	  "\"gid\":44}],\"resources\":{\"devices\":[{\"allow\":true,\"type\":\"c\",\"major\":195,\"minor\":255,"
	  "\"access\":\"rw\"}]}}}" },
	{ "node: all from the host",
	  "{}",
	  { NODES({ .path = "/dev/null" }) },
	  "{\"linux\":{\"devices\":[{\"path\":\"/dev/null\",\"type\":\"c\",\"major\":1,\"minor\":3,\"fileMode\":438}],"
	  "\"resources\":{\"devices\":[{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":3,\"access\":\"rwm\"}]}}"
	  "}" },
	{ "node: from another path of the host, for a container's user",
	  "{\"process\":{\"user\":{\"uid\":1000,\"gid\":100}}}",
	  { NODES({ .path = "/dev/x", .host_path = "/dev/zero", .has_mode = true, .mode = 0600 }) },
	  "{\"process\":{\"user\":{\"uid\":1000,\"gid\":100}},\"linux\":{\"devices\":[{\"path\":\"/dev/"
	  "x\",\"type\":\"c\","
	  "\"major\":1,\"minor\":5,\"fileMode\":384,\"uid\":1000,\"gid\":100}],\"resources\":{\"devices\":[{\"allow\":"
	  "true,"
	  "\"type\":\"c\",\"major\":1,\"minor\":5,\"access\":\"rwm\"}]}}}" },
	{ "node: known numbers are kept, the rest is from the host",
	  "{}",
	  { NODES({ .path = "/dev/null", .has_numbers = true, .major = 0, .minor = 0 }) },
	  "{\"linux\":{\"devices\":[{\"path\":\"/dev/null\",\"type\":\"c\",\"major\":0,\"minor\":0,\"fileMode\":438}],"
	  "\"resources\":{\"devices\":[{\"allow\":true,\"type\":\"c\",\"major\":0,\"minor\":0,\"access\":\"rwm\"}]}}"
	  "}" },
	{ "node: type and numbers are enough, the host need not have it",
	  "{}",
	  { NODES(
	      { .path = "/dev/none", .type = "b", .has_numbers = true, .major = 8, .minor = 1, .permissions = "r" }) },
	  "{\"linux\":{\"devices\":[{\"path\":\"/dev/none\",\"type\":\"b\",\"major\":8,\"minor\":1}],"
	  "\"resources\":{\"devices\":[{\"allow\":true,\"type\":\"b\",\"major\":8,\"minor\":1,\"access\":\"r\"}]}}}" },
	{ "node: a FIFO has no numbers and no rule",
	  "{}",
	  { NODES({ .path = "/none", .type = "p" }) },
	  "{\"linux\":{\"devices\":[{\"path\":\"/none\",\"type\":\"p\"}]}}" },
	{ "node: one of the same path is replaced, behind the others",
	  "{\"linux\":{\"devices\":[{\"path\":\"/dev/x\",\"a\":1},{\"path\":\"/dev/y\"},{\"path\":\"/dev/x\"}]}}",
	  { NODES({ .path = "/dev/x", .type = "u", .has_numbers = true, .major = 1, .minor = 2 }) },
	  "{\"linux\":{\"devices\":[{\"path\":\"/dev/y\"},{\"path\":\"/dev/"
	  "x\",\"type\":\"u\",\"major\":1,\"minor\":2}]}}" },
	{ "node: no access, no rule",
	  "{}",
	  { NODES({ .path = "/n", .type = "c", .has_numbers = true, .major = 1, .minor = 2, .permissions = "" }) },
	  "{\"linux\":{\"devices\":[{\"path\":\"/n\",\"type\":\"c\",\"major\":1,\"minor\":2}]}}" },

	{ "rules: each once (Q12), also those that are there",
	  "{\"linux\":{\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"},"
	  "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":2,\"access\":\"mwr\"}]}}}",
	  { NODES({ .path = "/a", .type = "c", .has_numbers = true, .major = 1, .minor = 2, .permissions = "rw" },
		  { .path = "/b", .type = "c", .has_numbers = true, .major = 1, .minor = 3 },
		  { .path = "/c", .type = "c", .has_numbers = true, .major = 1, .minor = 3 }) },
	  "{\"linux\":{\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"},"
	  "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":2,\"access\":\"mwr\"},"
	  "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":3,\"access\":\"rwm\"}]},"
	  "\"devices\":[{\"path\":\"/a\",\"type\":\"c\",\"major\":1,\"minor\":2},{\"path\":\"/"
	  "b\",\"type\":\"c\",\"major\":1,\"minor\":3},"
	  "{\"path\":\"/c\",\"type\":\"c\",\"major\":1,\"minor\":3}]}}" },
	{ "rules: one that is denied again behind it, of less access, or of another type does not count",
	  "{\"linux\":{\"devices\":[],\"resources\":{\"devices\":[{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":"
	  "2,\"access\":\"rwm\"},"
	  "{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":2,\"access\":"
	  "\"r\"},"
	  "{\"allow\":true,\"type\":\"b\",\"major\":1,\"minor\":2,\"access\":\"rwm\"}]}}}",
	  { NODES({ .path = "/a", .type = "c", .has_numbers = true, .major = 1, .minor = 2 }) },
	  "{\"linux\":{\"devices\":[{\"path\":\"/"
	  "a\",\"type\":\"c\",\"major\":1,\"minor\":2}],\"resources\":{\"devices\":["
	  "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":2,\"access\":\"rwm\"},"
	  "{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":2,\"access\":"
	  "\"r\"},"
	  "{\"allow\":true,\"type\":\"b\",\"major\":1,\"minor\":2,\"access\":\"rwm\"},"
	  "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":2,\"access\":\"rwm\"}]}}}" },

	{ "mounts: parents before children, otherwise as they stood",
	  "{\"mounts\":[{\"destination\":\"/a/b/c\"},{\"destination\":\"/"
	  "\"},{\"destination\":\"rel\"},{\"destination\":\"/a//b/./x/..\"}]}",
	  { MOUNTS({ "/h", "/a/d", NULL, STRINGS("ro", "rbind") }, { "/h", "/z", "bind", NULL, 0 }) },
	  "{\"mounts\":[{\"destination\":\"rel\"},{\"destination\":\"/\"},{\"destination\":\"/"
	  "z\",\"type\":\"bind\",\"source\":\"/h\"},"
	  "{\"destination\":\"/a//b/./x/..\"},{\"destination\":\"/a/d\",\"source\":\"/"
	  "h\",\"options\":[\"ro\",\"rbind\"]},"
	  "{\"destination\":\"/a/b/c\"}]}" },
	{ "mounts: the first of the same destination is replaced",
	  "{\"mounts\":[{\"destination\":\"/a\",\"x\":1},{\"destination\":\"/b\"},{\"destination\":\"/a\",\"x\":2}]}",
	  { MOUNTS({ "/h", "/a", NULL, NULL, 0 }) },
	  "{\"mounts\":[{\"destination\":\"/b\"},{\"destination\":\"/a\",\"x\":2},{\"destination\":\"/"
	  "a\",\"source\":\"/h\"}]}" },
	{ "mounts: no new one, no new order",
	  "{\"mounts\":[{\"destination\":\"/a/b\"},{\"destination\":\"/a\"}]}",
	  { GIDS(0) },
	  "{\"mounts\":[{\"destination\":\"/a/b\"},{\"destination\":\"/a\"}]}" },
	{ "mounts: strange elements stay, in front",
	  "{\"mounts\":[{\"destination\":\"/../..\"},7,{\"destination\":\"../../x\"},null,{\"destination\":\"a/../"
	  "..\"}]}",
	  { MOUNTS({ "/h", "/a", NULL, NULL, 0 }) },
	  "{\"mounts\":[7,null,{\"destination\":\"a/../..\"},{\"destination\":\"/../..\"},{\"destination\":\"/"
	  "a\",\"source\":\"/h\"},"
	  "{\"destination\":\"../../x\"}]}" },

	{ "hooks: every stage, with all members",
	  "{\"hooks\":{\"poststop\":[{\"path\":\"/p\"}]}}",
	  { HOOKS({ .stage = "createContainer",
		    .path = "/h",
		    .args = (const char *[]){ "h", "x" },
		    .n_args = 2,
		    .env = (const char *[]){ "A=1" },
		    .n_env = 1,
		    .has_timeout = true,
		    .timeout = 0 },
		  { .stage = "poststop", .path = "/q" }, { .stage = "prestart", .path = "/1" },
		  { .stage = "createRuntime", .path = "/2" }, { .stage = "startContainer", .path = "/3" },
		  { .stage = "poststart", .path = "/4" }) },
	  "{\"hooks\":{\"poststop\":[{\"path\":\"/p\"},{\"path\":\"/q\",\"env\":[\"" GRAFT_HOOK_PATH
	  "\"]}],\"createContainer\":[{\"path\":\"/"
	  "h\",\"args\":[\"h\",\"x\"],"
	  "\"env\":[\"A=1\"],\"timeout\":0}],\"prestart\":[{\"path\":\"/1\",\"env\":[\"" GRAFT_HOOK_PATH
	  "\"]}],\"createRuntime\":[{\"path\":\"/2\",\"env\":[\"" GRAFT_HOOK_PATH "\"]}],"
	  "\"startContainer\":[{\"path\":\"/3\"}],\"poststart\":[{\"path\":\"/4\",\"env\":[\"" GRAFT_HOOK_PATH
	  "\"]}]}}" },

	{ "gids: each once, never 0",
	  "{\"process\":{\"user\":{\"uid\":0,\"additionalGids\":[44]}}}",
	  { GIDS(0, 44, 7, 7, UINT32_MAX) },
	  "{\"process\":{\"user\":{\"uid\":0,\"additionalGids\":[44,7,4294967295]}}}" },

	{ "net devices: by the name on the host, exactly",
	  "{\"linux\":{\"netDevices\":{\"eth0\":{\"name\":\"x\"},\"ETH1\":{}}}}",
	  { NETS({ "eth0", "e0" }, { "eth1", "e1" }) },
	  "{\"linux\":{\"netDevices\":{\"eth0\":{\"name\":\"e0\"},\"ETH1\":{},\"eth1\":{\"name\":\"e1\"}}}}" },

	{ "intelRdt: replaced",
	  "{\"linux\":{\"intelRdt\":{\"closID\":\"old\",\"enableCMT\":true},\"x\":1}}",
	  { .rdt = &(struct graft_cdi_rdt){ .clos_id = "c",
					    .l3_cache_schema = "L3:0=f",
					    .mem_bw_schema = "MB:0=20",
					    .schemata = (const char *[]){ "MB:1=30" },
					    .n_schemata = 1,
					    .enable_monitoring = true } },
	  "{\"linux\":{\"intelRdt\":{\"closID\":\"c\",\"schemata\":[\"MB:1=30\"],\"l3CacheSchema\":\"L3:0=f\","
	  "\"memBwSchema\":\"MB:0=20\",\"enableMonitoring\":true},\"x\":1}}" },

	{ "another case of a name is the same member",
	  "{\"Process\":{\"ENV\":[\"A=1\"]},\"LINUX\":{}}",
	  { ENV("A=2"), NODES({ .path = "/p", .type = "p" }) },
	  "{\"Process\":{\"ENV\":[\"A=2\"]},\"LINUX\":{\"devices\":[{\"path\":\"/p\",\"type\":\"p\"}]}}" },
};

static struct graft_json_document *parse(const char *text)
{
	struct graft_json_document *document = NULL;
	struct graft_error err = { 0 };

	if (graft_json_document_parse("config.json", text, strlen(text), &document, &err) < 0)
		fail_msg("%s", err.msg);
	return document;
}

static void assert_writes(const struct graft_json_document *document, const char *text)
{
	struct graft_buffer out = { 0 };

	assert_int_equal(graft_json_document_write(document, &out, NULL), 0);
	assert_string_equal(graft_buffer_text(&out), text);
	graft_buffer_done(&out);
}

static void test_edits(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_json_document struct graft_json_document *document = parse(rows[i].before);
		struct graft_error err = { 0 };

		print_message("# %s\n", rows[i].name);
		if (graft_oci_apply_edits(document, &rows[i].edits, &err) < 0)
			fail_msg("%s", err.msg);
		assert_writes(document, rows[i].after);
	}
}

static const struct {
	const char *before;
	struct graft_cdi_edits edits;
	enum graft_status status;
	const char *why;
} refusals[] = {
	{ "{}",
	  { NODES({ .path = "/dev/x", .host_path = "/dev/none" }) },
	  GRAFT_NOT_FOUND,
	  "failed to stat CDI host device \"/dev/none\": no such file or directory" },
	{ "{}",
	  { NODES({ .path = "/dev/none", .has_numbers = true, .major = 1 }) },
	  GRAFT_NOT_FOUND,
	  "failed to stat CDI host device \"/dev/none\": no such file or directory" },
	{ "{}",
	  { NODES({ .path = "/dev/none", .type = "c" }) },
	  GRAFT_NOT_FOUND,
	  "failed to stat CDI host device \"/dev/none\": no such file or directory" },
	{ "{}",
	  { NODES({ .path = "/proc/self/stat" }) },
	  GRAFT_INVALID,
	  "failed to stat CDI host device \"/proc/self/stat\": not a device node" },
	{ "{}",
	  { NODES({ .path = "/dev/x", .host_path = "/dev/null", .type = "b" }) },
	  GRAFT_INVALID,
	  "CDI device (\"/dev/x\", \"/dev/null\"), host type mismatch (b, c)" },
	{ "{}", { HOOKS({ .stage = "preStart", .path = "/h" }) }, GRAFT_INVALID, "unknown hook name \"preStart\"" },
	{ "{}", { ENV("novalue") }, GRAFT_INVALID, "invalid environment variable \"novalue\"" },
	{ "{}", { ENV("=x") }, GRAFT_INVALID, "invalid environment variable \"=x\"" },
	{ "{}", { ENV("A=\xff") }, GRAFT_FORMAT, "config.json: 'A=\xff' cannot be written as JSON: it is not UTF-8" },
	{ "{\"process\":{\"env\":{}}}",
	  { ENV("A=1") },
	  GRAFT_FORMAT,
	  "config.json: line 1, column 13: 'env' is an object, but must be an array" },
	{ "{\"process\":{},\"Process\":{}}",
	  { ENV("A=1") },
	  GRAFT_FORMAT,
	  "config.json: line 1, column 15: 'process' is given twice, and programs differ in which one they use" },
	{ "{\"linux\":[]}",
	  { NODES({ .path = "/p", .type = "p" }) },
	  GRAFT_FORMAT,
	  "config.json: line 1, column 2: 'linux' is an array, but must be an object" },
	{ "[]",
	  { GIDS(7) },
	  GRAFT_FORMAT,
	  "config.json: line 1, column 1: 'the value' is an array, but must be an object" },
};

static void test_refusals(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(refusals); i++) {
		auto_json_document struct graft_json_document *document = parse(refusals[i].before);
		struct graft_error err = { 0 };
		char text[600];

		assert_int_equal(graft_oci_apply_edits(document, &refusals[i].edits, &err), -1);
		assert_string_equal(graft_error_text(&err, text, sizeof(text)), refusals[i].why);
		assert_int_equal(err.status, refusals[i].status);
	}
}

/* A FIFO of the host: its type is detected, and it gets no numbers and no rule. */
static void test_fifo(void **state)
{
	char directory[] = "/tmp/graft-test-XXXXXX", path[64], expected[256];
	auto_json_document struct graft_json_document *document = parse("{}");
	struct graft_cdi_edits edits = { NODES({ .path = "/p", .host_path = path }) };
	int rc;

	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	rc = graft_oci_apply_edits(document, &edits, NULL);
	(void)unlink(path);
	(void)rmdir(directory);
	assert_int_equal(rc, 0);
	(void)snprintf(expected, sizeof(expected),
		       "{\"linux\":{\"devices\":[{\"path\":\"/p\",\"type\":\"p\",\"fileMode\":384}]}}");
	assert_writes(document, expected);
}

/* SPEC runtime-and-hook 14.16. */
static const struct {
	const char *before, *after;
	int removed;
} removals[] = {
	{ "{}", "{}", 0 },
	{ "{ \"hooks\" : null }", "{ \"hooks\" : null }", 0 },
	{ "{\"hooks\":{\"prestart\":[ ]}}", "{\"hooks\":{\"prestart\":[ ]}}", 0 },
	{ "{\"hooks\":{\"prestart\":7}}", "{\"hooks\":{\"prestart\":7}}", 0 },
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/other\",\"args\":[\"nvidia-container-runtime-hook\"]}]}}",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/other\",\"args\":[\"nvidia-container-runtime-hook\"]}]}}",
	  0 },
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"/path/to/nvidia-container-runtime-hook\"}]}}", "{\"hooks\":{}}", 1 },
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"/path/to/nvidia-container-toolkit\"}],\"poststop\":[{\"path\":\"/"
	  "p\"}]}}",
	  "{\"hooks\":{\"poststop\":[{\"path\":\"/p\"}]}}", 1 },
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"/1\"},{\"path\":\"nvidia-container-toolkit\"},{\"path\":\"/2\"},"
	  "{\"path\":\"/x/nvidia-container-runtime-hook\",\"args\":[\"x\"]},{}]}}",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"/1\"},{\"path\":\"/2\"},{}]}}", 2 },
	{ "{\"hooks\":{\"createRuntime\":[{\"path\":\"/path/to/nvidia-container-runtime-hook\"}]}}",
	  "{\"hooks\":{\"createRuntime\":[{\"path\":\"/path/to/nvidia-container-runtime-hook\"}]}}", 0 },
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"/a/nvidia-container-runtime-hook.real\"}]}}",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"/a/nvidia-container-runtime-hook.real\"}]}}", 0 },
	{ "{\"hooks\":{},\"Hooks\":{\"prestart\":[]}}", "{\"hooks\":{},\"Hooks\":{\"prestart\":[]}}", -1 },
	{ "{\"hooks\":{\"prestart\":[],\"PreStart\":[]}}", "{\"hooks\":{\"prestart\":[],\"PreStart\":[]}}", -1 },
};

static void test_removal(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(removals); i++) {
		auto_json_document struct graft_json_document *document = parse(removals[i].before);

		assert_int_equal(graft_oci_remove_runtime_hook(document, NULL), removals[i].removed);
		assert_writes(document, removals[i].after);
		assert_int_equal(graft_json_document_changed(document), removals[i].removed > 0);
	}
}

static const struct {
	const char *before, *path, *after;
} insertions[] = {
	{ "{}", "/usr/bin/nvidia-container-runtime-hook",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/nvidia-container-runtime-hook\","
	  "\"args\":[\"nvidia-container-runtime-hook\",\"prestart\"],\"env\":[\"" GRAFT_HOOK_PATH "\"]}]}}" },
	{ "{\"hooks\":null}", "/h",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"/h\",\"args\":[\"h\",\"prestart\"],\"env\":[\"" GRAFT_HOOK_PATH
	  "\"]}]}}" },
	{ "{\"hooks\":{}}", "h",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"h\",\"args\":[\"h\",\"prestart\"],\"env\":[\"" GRAFT_HOOK_PATH
	  "\"]}]}}" },
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"nvidia-container-runtime-hook\"}]}}", "/h",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"nvidia-container-runtime-hook\"}]}}" },
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"/x/nvidia-container-toolkit\"}]}}", "/h",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"/x/nvidia-container-toolkit\"}]}}" },
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/some-hook\"}]}}", "/h",
	  "{\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/some-hook\"},{\"path\":\"/"
	  "h\",\"args\":[\"h\",\"prestart\"],\"env\":[\"" GRAFT_HOOK_PATH "\"]}]}}" },
};

static void test_insertion(void **state)
{
	auto_json_document struct graft_json_document *wrong = parse("{\"hooks\":{\"prestart\":{}}}");

	for (size_t i = 0; i < GRAFT_COUNT(insertions); i++) {
		auto_json_document struct graft_json_document *document = parse(insertions[i].before);

		assert_int_equal(graft_oci_insert_runtime_hook(document, insertions[i].path, NULL, 0, NULL), 0);
		assert_writes(document, insertions[i].after);
	}
	assert_int_equal(graft_oci_insert_runtime_hook(wrong, "/h", NULL, 0, NULL), -1);
	assert_false(graft_json_document_changed(wrong));
}

static void test_insertion_environment(void **state)
{
	const char *env[] = { "PATH=/opt", "A=" };
	auto_json_document struct graft_json_document *document = parse("{}");

	assert_int_equal(graft_oci_insert_runtime_hook(document, "/h", env, 2, NULL), 0);
	assert_writes(document, "{\"hooks\":{\"prestart\":[{\"path\":\"/h\",\"args\":[\"h\",\"prestart\"],"
				"\"env\":[\"PATH=/opt\",\"A=\"]}]}}");
}

/* Hooks of others in config.json. after NULL = unchanged; n -1 = refused. */
static const struct {
	const char *before, *after;
	int n;
} closings[] = {
	{ "{}", NULL, 0 },
	{ "{\"hooks\":{\"createContainer\":[]}}", NULL, 0 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\"}]}}",
	  "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":[\"" GRAFT_HOOK_PATH "\"]}]}}", 1 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":[]},{\"path\":\"/y\",\"env\":null}]}}",
	  "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":[\"" GRAFT_HOOK_PATH "\"]},"
	  "{\"path\":\"/y\",\"env\":[\"" GRAFT_HOOK_PATH "\"]}]}}",
	  2 },
	{ "{\"hooks\":{\"CreateContainer\":[{\"Path\":\"/usr/bin/nvidia-ctk\",\"Env\":[]}]}}",
	  "{\"hooks\":{\"CreateContainer\":[{\"Path\":\"/usr/bin/nvidia-ctk\",\"Env\":[\"" GRAFT_HOOK_VARIABLE
	  "\"]}]}}",
	  1 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":[\"\"]}]}}", NULL, 0 },
	/* These run with the engine's environment, or in the container. */
	{ "{\"hooks\":{\"prestart\":[{\"path\":\"/x\"}],\"createRuntime\":[{\"path\":\"/x\"}],"
	  "\"startContainer\":[{\"path\":\"/x\"}]}}",
	  NULL, 0 },
	{ "{\"hooks\":{\"createContainer\":[1]}}", NULL, 0 },
	/* It is undefined which of them is read. */
	{ "{\"hooks\":{\"createContainer\":[],\"createContainer\":[{\"path\":\"/x\"}]}}", NULL, -1 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":[\"A=\"],\"env\":[]}]}}", NULL, -1 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":[],\"env\":[\"A=\"]}]}}", NULL, -1 },
	/* For some readers its name is "env". */
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\\u0000\":[\"A=\"]}]}}", NULL, -1 },
	/* Neither are these environments. */
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":{\"A\":\"1\"}}]}}", NULL, -1 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":{}}]}}", NULL, -1 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":\"A=1\"}]}}", NULL, -1 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":[1]}]}}", NULL, -1 },
	{ "{\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"env\":[\"A=\",null]}]}}", NULL, -1 },
};

static void test_closing(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(closings); i++) {
		auto_json_document struct graft_json_document *document = parse(closings[i].before);

		assert_int_equal(graft_oci_close_hooks(document, NULL), closings[i].n);
		if (closings[i].n < 0)
			continue;
		assert_writes(document, closings[i].after ? closings[i].after : closings[i].before);
		assert_int_equal(graft_json_document_changed(document), closings[i].n > 0);
		assert_int_equal(graft_oci_close_hooks(document, NULL), 0);
	}
}

/* ---- many elements that go ---- */

#define MANY 100000

/* A document in which `path`, of two names, has MANY times the first element, then MANY times the second. */
static struct graft_json_document *parse_many(const char *path, const char *first, const char *second)
{
	const char *dot = strchr(path, '.');
	struct graft_buffer text = { 0 };
	struct graft_json_document *document;

	graft_buffer_printf(&text, "{\"%.*s\":{\"%s\":[", (int)(dot - path), path, dot + 1);
	for (size_t i = 0; i < (size_t)2 * MANY; i++) {
		graft_buffer_string(&text, i > 0 ? "," : "");
		graft_buffer_string(&text, i < MANY ? first : second);
	}
	graft_buffer_string(&text, "]}}");
	document = parse(graft_buffer_text(&text));
	graft_buffer_done(&text);
	return document;
}

static double cpu_seconds(void)
{
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void expect_few(struct graft_json_document *document, const char *path, const struct graft_cdi_edits *edits)
{
	double begin = cpu_seconds();

	assert_int_equal(graft_oci_apply_edits(document, edits, NULL), 0);
	assert_true(cpu_seconds() - begin < 1);
	assert_int_equal(graft_json_node_count(graft_json_node_at(graft_json_document_root(document), path)), MANY + 1);
}

/* An image chooses its environment: the work grows with it, not with its square. */
static void test_many_variables(void **state)
{
	const struct graft_cdi_edits edits = { ENV("V=1") };
	auto_json_document struct graft_json_document *document = parse_many("process.env", "\"A=\"", "\"V=0\"");

	expect_few(document, "process.env", &edits);
}

static void test_many_nodes(void **state)
{
	const struct graft_cdi_edits edits = { NODES({ .path = "/v", .type = "p" }) };
	auto_json_document struct graft_json_document *document = parse_many("linux.devices", "{\"path\":\"/a\"}",
									     "{\"path\":\"/v\"}");

	expect_few(document, "linux.devices", &edits);
}

static void test_many_hooks(void **state)
{
	auto_json_document struct graft_json_document *document = parse_many(
	    "hooks.prestart", "{\"path\":\"/a\"}", "{\"path\":\"/nvidia-container-runtime-hook\"}");
	double begin = cpu_seconds();

	assert_int_equal(graft_oci_remove_runtime_hook(document, NULL), MANY);
	assert_true(cpu_seconds() - begin < 1);
}

/* All kinds at once, with each allocation failing once. */
static void test_memory(void **state)
{
	struct graft_cdi_edits many = { .n_env = 0 };
	const char *env[400];
	char text[400][16];

	for (size_t i = 0; i < GRAFT_COUNT(env); i++) {
		(void)snprintf(text[i], sizeof(text[i]), "V%zu=1", i);
		env[i] = text[i];
	}
	many = rows[19].edits;
	many.env = env;
	many.n_env = GRAFT_COUNT(env);
	many.nodes = rows[6].edits.nodes;
	many.n_nodes = rows[6].edits.n_nodes;
	many.mounts = (struct graft_cdi_mount[]){ { "/h", "/a", NULL, env, 300 }, { "/h", "/b", "t", NULL, 0 } };
	many.n_mounts = 2;
	for (int n = 1;; n++) {
		struct graft_json_document *document = parse("{}");
		struct graft_error err = { 0 };
		bool failed;
		int rc;

		allocation_fail(n);
		rc = graft_oci_apply_edits(document, &many, &err);
		failed = allocation_reported(rc, &err);
		graft_json_document_free(document);
		if (!failed) {
			assert_true(n > 5);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edits),      cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_fifo),       cmocka_unit_test(test_removal),
		cmocka_unit_test(test_insertion),  cmocka_unit_test(test_insertion_environment),
		cmocka_unit_test(test_closing),    cmocka_unit_test(test_many_variables),
		cmocka_unit_test(test_many_nodes), cmocka_unit_test(test_many_hooks),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
