/* SPDX-License-Identifier: Apache-2.0 */
/* The view of an OCI configuration and the state that hooks read: what is taken, what is left out, and what is refused. */
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/oci_spec.h"

struct view {
	struct graft_json_document *document;
	struct graft_arena *arena;
	struct graft_oci_spec spec;
};

static int read_view(const char *text, struct view *view, struct graft_error *err)
{
	*view = (struct view){ .arena = graft_arena_new((size_t)1 << 20) };
	if (!view->arena)
		return graft_fail_memory(err);
	if (graft_json_document_parse("config.json", text, strlen(text), &view->document, err) < 0)
		return -1;
	return graft_oci_spec_read(view->document, view->arena, &view->spec, err);
}

static void close_view(struct view *view)
{
	graft_json_document_free(view->document);
	graft_arena_free(view->arena);
}

static const char whole[] =
    "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":1000,\"gid\":100},"
    "\"env\":[\"PATH=/bin\",\"A=1\",\"broken\",7,\"A=2\",\"EMPTY=\",\"B==x\",\"=odd\"],"
    "\"capabilities\":{\"bounding\":[\"CAP_KILL\",\"CAP_SYS_ADMIN\"],\"effective\":[]},\"newField\":{}},"
    "\"root\":{\"path\":\"rootfs\",\"readonly\":true},"
    "\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},null,"
    "{\"destination\":\"/x\",\"source\":\"/y\",\"options\":[\"rbind\",1,\"ro\"]},{}],"
    "\"annotations\":{\"b\":\"1\",\"a\":\"2\",\"B\":\"3\",\"n\":4,\"b\":\"5\",\"\":\"6\",\"b\":\"7\"},"
    "\"hooks\":{\"prestart\":[{\"path\":\"/h\",\"args\":[\"h\"]},{\"args\":[]}],\"poststop\":[{\"path\":\"/p\"}]},"
    "\"linux\":{\"devices\":[{\"path\":\"/dev/nvidia0\",\"type\":\"c\",\"major\":195},7,{\"type\":\"c\"},"
    "{\"path\":[]},{\"path\":\"/dev/fuse\"}],"
    "\"cgroupsPath\":\"/c/g\",\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"user\"}],"
    "\"uidMappings\":[{\"containerID\":0,\"hostID\":100000,\"size\":65536},{\"containerID\":-1,\"hostID\":1,\"size\":1}"
    "],"
    "\"gidMappings\":[{\"containerID\":1,\"hostID\":2,\"size\":4294967295}]}}";

static void test_whole(void **state)
{
	struct view view;
	struct graft_oci_spec *spec = &view.spec;

	assert_int_equal(read_view(whole, &view, NULL), 0);
	assert_int_equal(graft_oci_spec_check(spec, NULL), 0);
	assert_string_equal(spec->oci_version, "1.0.2");
	assert_true(spec->has_process && spec->privileged && spec->root_readonly && spec->new_user_namespace);
	assert_int_equal(spec->uid, 1000);
	assert_int_equal(spec->gid, 100);
	assert_string_equal(spec->root_path, "rootfs");
	assert_string_equal(spec->cgroups_path, "/c/g");
	assert_int_equal(spec->n_env, 6);
	assert_string_equal(spec->env[0], "PATH=/bin");
	assert_string_equal(spec->env[5], "=odd");
	assert_int_equal(spec->n_malformed_env, 2);
	assert_int_equal(spec->n_mounts, 3);
	assert_string_equal(spec->mounts[0].type, "proc");
	assert_int_equal(spec->mounts[0].n_options, 0);
	assert_string_equal(spec->mounts[1].destination, "/x");
	assert_int_equal(spec->mounts[1].n_options, 2);
	assert_string_equal(spec->mounts[1].options[1], "ro");
	assert_null(spec->mounts[2].destination);
	assert_int_equal(graft_json_node_kind(spec->mounts[2].node), GRAFT_JSON_OBJECT);
	assert_int_equal(spec->n_prestart, 2);
	assert_string_equal(spec->prestart[0].path, "/h");
	assert_null(spec->prestart[1].path);
	assert_int_equal(spec->n_devices, 2);
	assert_string_equal(spec->devices[0], "/dev/nvidia0");
	assert_string_equal(spec->devices[1], "/dev/fuse");
	assert_int_equal(spec->n_uid_mappings, 1);
	assert_int_equal(spec->uid_mappings[0].host_id, 100000);
	assert_int_equal(spec->n_gid_mappings, 1);
	assert_int_equal(spec->gid_mappings[0].size, UINT32_MAX);
	close_view(&view);
}

static void test_annotations(void **state)
{
	static const char *const rows[][2] = { { "", "6" }, { "B", "3" }, { "a", "2" }, { "b", "7" } };
	struct view view;

	assert_int_equal(read_view(whole, &view, NULL), 0);
	assert_int_equal(view.spec.n_annotations, GRAFT_COUNT(rows));
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_string_equal(view.spec.annotations[i].key, rows[i][0]);
		assert_string_equal(view.spec.annotations[i].value, rows[i][1]);
	}
	close_view(&view);
}

static void test_env(void **state)
{
	static const struct {
		const char *name, *value; /* NULL: not there */
	} rows[] = {
		{ "A", "2" },       { "PATH", "/bin" }, { "EMPTY", "" },       { "B", "=x" }, { "", "odd" },
		{ "broken", NULL }, { "PAT", NULL },    { "PATH=/bin", NULL }, { "a", NULL },
	};
	struct view view;

	assert_int_equal(read_view(whole, &view, NULL), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *value = graft_oci_spec_env(&view.spec, rows[i].name);

		print_message("# %s\n", rows[i].name);
		assert_int_equal(value != NULL, rows[i].value != NULL);
		if (value)
			assert_string_equal(value, rows[i].value);
	}
	close_view(&view);
}

/* SPEC runtime-and-hook 14.12, 4.2. */
static const struct {
	const char *version, *capabilities;
	bool privileged;
} privileges[] = {
	{ "1.0.0", "{\"bounding\":[\"CAP_SYS_ADMIN\"]}", true },
	{ "1.0.0", "{\"bounding\":[\"CAP_SYS_OTHER\"]}", false },
	{ "1.0.0", "null", false },
	{ "1.0.0", "{\"effective\":[\"CAP_SYS_ADMIN\"]}", false },
	{ "1.0.0", "[\"CAP_SYS_ADMIN\"]", false },
	{ "1.0.0-rc2-dev", "[\"CAP_SYS_ADMIN\"]", true },
	{ "1.0.0-rc2-dev", "[\"CAP_SYS_OTHER\"]", false },
	{ "1.0.0-rc2-dev", "null", false },
	{ "1.0.0-rc2-dev", "{\"bounding\":[\"CAP_SYS_ADMIN\"]}", false },
	{ "1.0.0-rc1", "[\"CAP_SYS_ADMIN\"]", true },
	{ "1.0.0-rc4.7", "[\"CAP_SYS_ADMIN\"]", true },
	{ "1.0.0-rc10", "[\"CAP_SYS_ADMIN\"]", true },
	{ "1.0.0-rc5", "{\"bounding\":[\"CAP_SYS_ADMIN\"]}", true },
	{ "1.0.0-rc5", "[\"CAP_SYS_ADMIN\"]", false },
	{ "1.0.0-rc", "[\"CAP_SYS_ADMIN\"]", false },
	{ "1.0.0-rc2_x", "[\"CAP_SYS_ADMIN\"]", false },
	{ "0.9.0", "{\"bounding\":[\"CAP_SYS_ADMIN\"]}", true },
	{ "not a version", "{\"bounding\":[\"CAP_SYS_ADMIN\"]}", true },
	{ "1.0.0", "{\"bounding\":\"CAP_SYS_ADMIN\"}", false },
	{ "1.0.0", "{\"bounding\":[\"cap_sys_admin\",\"CAP_SYS_ADMIN2\"]}", false },
};

static void test_privileged(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(privileges); i++) {
		struct graft_buffer text = { 0 };
		struct view view;

		print_message("# %s %s\n", privileges[i].version, privileges[i].capabilities);
		graft_buffer_printf(&text, "{\"ociVersion\":\"%s\",\"process\":{\"capabilities\":%s}}",
				    privileges[i].version, privileges[i].capabilities);
		assert_int_equal(read_view(text.bytes, &view, NULL), 0);
		assert_int_equal(view.spec.privileged, privileges[i].privileged);
		close_view(&view);
		graft_buffer_done(&text);
	}
}

/* A namespace with a path belongs to another container. */
static const struct {
	const char *namespaces;
	bool mount, user;
} namespaces[] = {
	{ "[]", false, false },
	{ "null", false, false },
	{ "[{\"type\":\"mount\"}]", true, false },
	{ "[{\"type\":\"mount\",\"path\":\"\"}]", true, false },
	{ "[{\"type\":\"mount\",\"path\":null}]", true, false },
	{ "[{\"type\":\"mount\",\"path\":\"/proc/1/ns/mnt\"}]", false, false },
	{ "[{\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"network\",\"path\":\"/run/n\"}]", true, false },
	{ "[{\"type\":\"pid\"},{\"type\":\"Mount\"},{\"type\":\"mounts\"},{},{\"type\":1},\"mount\"]", false, false },
	{ "[{\"type\":\"mount\"},{\"type\":\"user\"}]", true, true },
	{ "[{\"type\":\"user\",\"path\":\"/proc/1/ns/user\"},{\"type\":\"mount\",\"path\":\"/m\"}]", false, true },
	/* low-level runtimes refuse two of a kind; one that does not takes the last */
	{ "[{\"type\":\"mount\"},{\"type\":\"mount\",\"path\":\"/m\"}]", false, false },
	{ "[{\"type\":\"mount\",\"path\":\"/m\"},{\"type\":\"mount\"}]", true, false },
};

static void test_namespaces(void **state)
{
	struct view view;

	assert_int_equal(read_view("{}", &view, NULL), 0);
	assert_false(view.spec.new_mount_namespace || view.spec.new_user_namespace);
	close_view(&view);
	for (size_t i = 0; i < GRAFT_COUNT(namespaces); i++) {
		struct graft_buffer text = { 0 };

		print_message("# %s\n", namespaces[i].namespaces);
		graft_buffer_printf(&text, "{\"linux\":{\"namespaces\":%s}}", namespaces[i].namespaces);
		assert_int_equal(read_view(text.bytes, &view, NULL), 0);
		assert_int_equal(view.spec.new_mount_namespace, namespaces[i].mount);
		assert_int_equal(view.spec.new_user_namespace, namespaces[i].user);
		close_view(&view);
		graft_buffer_done(&text);
	}
}

static const struct {
	const char *text, *why; /* NULL: enough for a hook */
} checks[] = {
	{ "{\"ociVersion\":\"1\",\"process\":{},\"root\":{\"path\":\"/r\"}}", NULL },
	{ "{\"OCIVersion\":\"1\",\"PROCESS\":{},\"Root\":{\"Path\":\"/r\"}}", NULL },
	{ "{}", "Version is empty in OCI spec" },
	{ "{\"ociVersion\":\"\",\"process\":{},\"root\":{\"path\":\"/r\"}}", "Version is empty in OCI spec" },
	{ "{\"ociVersion\":1,\"process\":{},\"root\":{\"path\":\"/r\"}}", "Version is empty in OCI spec" },
	{ "{\"ociVersion\":\"1\",\"root\":{\"path\":\"/r\"}}", "Process is empty in OCI spec" },
	{ "{\"ociVersion\":\"1\",\"process\":null,\"root\":{\"path\":\"/r\"}}", "Process is empty in OCI spec" },
	{ "{\"ociVersion\":\"1\",\"process\":{}}", "Root is empty in OCI spec" },
	{ "{\"ociVersion\":\"1\",\"process\":{},\"root\":{\"path\":\"\"}}", "Root is empty in OCI spec" },
};

static void test_check(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(checks); i++) {
		struct graft_error err = { 0 };
		struct view view;

		assert_int_equal(read_view(checks[i].text, &view, NULL), 0);
		assert_int_equal(graft_oci_spec_check(&view.spec, &err), checks[i].why ? -1 : 0);
		if (checks[i].why)
			assert_string_equal(err.msg, checks[i].why);
		close_view(&view);
	}
}

static void test_wrong_types_are_as_good_as_nothing(void **state)
{
	static const char *const texts[] = {
		"{\"process\":[],\"mounts\":{},\"annotations\":[],\"hooks\":[],\"linux\":7,\"root\":\"/\"}",
		"{\"process\":{\"env\":\"A=1\",\"user\":{\"uid\":-1,\"gid\":4294967296},\"capabilities\":[1]},"
		"\"mounts\":[[],1],\"annotations\":{\"a\":{}},\"hooks\":{\"prestart\":{\"path\":\"/h\"}},"
		"\"linux\":{\"namespaces\":{\"type\":\"user\"},\"uidMappings\":[[]],\"cgroupsPath\":1,"
		"\"devices\":{\"path\":\"/dev/nvidia0\"}}}",
		"{\"process\":{\"env\":[\"A\\u0000=1\"]},\"linux\":{\"namespaces\":[\"user\",{\"type\":1}]}}",
		"{\"linux\":{\"devices\":[\"/dev/nvidia0\",[],{\"path\":\"/dev\\u0000\"}]}}",
	};

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		struct view view;
		struct graft_oci_spec *spec = &view.spec;

		assert_int_equal(read_view(texts[i], &view, NULL), 0);
		assert_int_equal(spec->n_env + spec->n_mounts + spec->n_annotations + spec->n_prestart +
				     spec->n_uid_mappings + spec->n_devices,
				 0);
		assert_int_equal(spec->uid + spec->gid, 0);
		assert_false(spec->new_user_namespace || spec->privileged);
		assert_null(spec->cgroups_path);
		close_view(&view);
	}
}

static void test_no_object(void **state)
{
	static const char *const texts[] = { "[]", "null", "\"x\"" };

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		struct graft_error err = { 0 };
		struct view view;

		assert_int_equal(read_view(texts[i], &view, &err), -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
		close_view(&view);
	}
}

static const struct {
	const char *text, *error; /* NULL: decoded */
	int64_t pid;
	const char *bundle;
} states[] = {
	{ "{\"ociVersion\":\"1.0.2\",\"id\":\"c\",\"status\":\"creating\",\"pid\":17,\"bundle\":\"/b\",\"x\":[{}]}",
	  NULL, 17, "/b" },
	{ "{\"pid\":17,\"bundle\":\"\",\"bundlePath\":\"/old\"}", NULL, 17, "/old" },
	{ "{\"pid\":17,\"bundle\":\"/new\",\"bundlePath\":\"/old\"} trailing", NULL, 17, "/new" },
	{ " {\"Pid\":17,\"bundle\":null}{", NULL, 17, NULL },
	{ "{}", NULL, 0, NULL },
	{ "", "could not decode container state: invalid JSON at line 1, column 1: unexpected end", 0, NULL },
	{ "{\"pid\":", "could not decode container state: invalid JSON at line 1, column 8: unexpected end", 0, NULL },
	{ "[]", "could not decode container state: it is not a JSON object", 0, NULL },
	{ "{\"pid\":\"17\"}", "could not decode container state: 'pid' must be a whole number", 0, NULL },
	{ "{\"pid\":1.5}", "could not decode container state: 'pid' must be a whole number", 0, NULL },
	{ "{\"bundle\":7}", "could not decode container state: 'bundle' must be a string", 0, NULL },
	{ "{\"bundle\":\"/a\\u0000b\"}", "could not decode container state: 'bundle' must be a string", 0, NULL },
};

static void test_state(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(states); i++) {
		struct graft_arena *arena = graft_arena_new(1 << 16);
		struct graft_oci_state decoded = { .pid = -7 };
		struct graft_error err = { 0 };
		char text[512];
		int rc = graft_oci_state_read(states[i].text, strlen(states[i].text), arena, &decoded, &err);

		print_message("# %s\n", states[i].text);
		assert_int_equal(rc, states[i].error ? -1 : 0);
		if (rc < 0) {
			assert_string_equal(graft_error_text(&err, text, sizeof(text)), states[i].error);
			assert_int_equal(err.status, GRAFT_FORMAT);
		} else {
			assert_int_equal(decoded.pid, states[i].pid);
			assert_int_equal(decoded.bundle != NULL, states[i].bundle != NULL);
			if (decoded.bundle)
				assert_string_equal(decoded.bundle, states[i].bundle);
		}
		graft_arena_free(arena);
	}
}

static void test_memory(void **state)
{
	for (int n = 1;; n++) {
		struct graft_error err = { 0 };
		struct graft_oci_state decoded;
		struct view view;
		bool failed;
		int rc;

		allocation_fail(n);
		rc = read_view(whole, &view, &err);
		if (rc == 0)
			rc = graft_oci_state_read(states[0].text, strlen(states[0].text), view.arena, &decoded, &err);
		failed = allocation_failed();
		close_view(&view);
		assert_int_equal(rc, failed ? -1 : 0);
		if (!failed) {
			assert_true(n > 8);
			return;
		}
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
}

/* A maximum of the arena stands for memory that ends in the middle of the view. */
static void test_memory_of_the_arena(void **state)
{
	for (size_t max = 0;; max += 16) {
		struct graft_json_document *document = NULL;
		struct graft_arena *arena = graft_arena_new(max);
		struct graft_error err = { 0 };
		struct graft_oci_spec spec;
		int rc;

		assert_int_equal(graft_json_document_parse("x", whole, strlen(whole), &document, &err), 0);
		rc = graft_oci_spec_read(document, arena, &spec, &err);
		graft_json_document_free(document);
		graft_arena_free(arena);
		if (rc == 0) {
			assert_true(max > 256);
			return;
		}
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_privileged),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_wrong_types_are_as_good_as_nothing),
		cmocka_unit_test(test_no_object),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_of_the_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
