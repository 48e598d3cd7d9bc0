/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of CDI specs: priorities, conflicts, what is skipped, what is not even parsed, order of edits, stale specs, memory. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "cdi_folders.h"
#include "host/cdi_registry.h"

static struct graft_cdi_registry registry;

/* A spec with the devices of a list, each of which says by its environment where it comes from. */
static void write_spec(const char *path, const char *kind, const char *devices)
{
	char text[4096], name[32];
	int used = snprintf(text, sizeof(text),
			    "cdiVersion: 0.5.0\nkind: %s\ncontainerEdits: {env: [\"COMMON=%s\"]}\ndevices:\n", kind,
			    path);

	for (const char *at = devices; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");

		(void)snprintf(name, sizeof(name), "%.*s", (int)length, at);
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "- name: '%s'\n  containerEdits: {env: [\"%s=%s\"]}\n", name, name, path);
		at += length;
	}
	fixture_write(fixture, path, text);
}

static void read_all(const char *const *kinds, size_t n_kinds)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_cdi_registry_read(directories, 2, kinds, n_kinds, NULL, &fixture->logger, arena, &registry, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Resolves words separated by blanks; gives the environment that comes of it, or the error's text. */
static const char *resolve(const char *words)
{
	static char result[1024];
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_choice *choices;
	struct graft_cdi_edits edits;
	const char *names[16];
	size_t n_names = 0, n;

	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");

		names[n_names++] = graft_arena_strndup(arena, at, length);
		at += length;
	}
	if (graft_cdi_registry_resolve(&registry, names, n_names, arena, &choices, &n, &err) < 0 ||
	    graft_cdi_choices_merge(choices, n, arena, &edits, &err) < 0) {
		(void)snprintf(result, sizeof(result), "%s", err.msg);
		return result;
	}
	result[0] = '\0';
	for (size_t i = 0; i < edits.n_env; i++)
		(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "%s%s", i ? " " : "",
			       edits.env[i]);
	return result;
}

static void test_order(void **state)
{
	write_spec("/etc/cdi/a.yaml", "v/a", "0 1 all");
	write_spec("/etc/cdi/b.json", "v/b", "0"); /* YAML in a file of that name is read as well */
	read_all(NULL, 0);
	assert_int_equal(registry.n_specs, 2);
	assert_int_equal(registry.n_problems, 0);
	assert_string_equal(resolve("v/a=1"), "COMMON=/etc/cdi/a.yaml 1=/etc/cdi/a.yaml");
	assert_string_equal(
	    resolve("v/a=1 v/b=0 v/a=0 v/a=1"),
	    "COMMON=/etc/cdi/a.yaml 1=/etc/cdi/a.yaml COMMON=/etc/cdi/b.json 0=/etc/cdi/b.json 0=/etc/cdi/a.yaml");
}

static void test_priority(void **state)
{
	write_spec("/etc/cdi/a.yaml", "v/c", "0 1");
	write_spec("/run/cdi/a.yaml", "v/c", "1 2");
	read_all(NULL, 0);
	assert_string_equal(resolve("v/c=0"), "COMMON=/etc/cdi/a.yaml 0=/etc/cdi/a.yaml");
	assert_string_equal(resolve("v/c=1"), "COMMON=/run/cdi/a.yaml 1=/run/cdi/a.yaml");
	assert_string_equal(resolve("v/c=2"), "COMMON=/run/cdi/a.yaml 2=/run/cdi/a.yaml");
	assert_string_equal(resolve("v/c=3 v/c=0 v/d=0 0"), "unresolvable CDI devices v/c=3, v/d=0, 0");
	assert_int_equal(registry.n_problems, 0);
}

static void test_conflict(void **state)
{
	char why[512];

	write_spec("/run/cdi/a.yaml", "v/c", "0 1");
	write_spec("/run/cdi/b.yaml", "v/c", "1 2");
	read_all(NULL, 0);
	assert_string_equal(resolve("v/c=0"), "COMMON=/run/cdi/a.yaml 0=/run/cdi/a.yaml");
	assert_string_equal(resolve("v/c=2"), "COMMON=/run/cdi/b.yaml 2=/run/cdi/b.yaml");
	assert_int_equal(registry.n_problems, 0);
	assert_string_equal(resolve("v/c=1"), "unresolvable CDI devices v/c=1");
	assert_int_equal(registry.n_problems, 2);
	(void)snprintf(why, sizeof(why), "conflicting device \"v/c=1\" (specs \"%s/a.yaml\", \"%s/b.yaml\")", run, run);
	assert_string_equal(registry.problems[0].why, why);
	assert_string_equal(registry.problems[1].why, why);
}

/* Unlike in the existing stack: a conflict below does no harm to what overrides it. A conflict above is one, whatever is below. */
static void test_conflict_below(void **state)
{
	write_spec("/etc/cdi/a.yaml", "v/c", "0 1");
	write_spec("/etc/cdi/b.yaml", "v/c", "0 1");
	write_spec("/run/cdi/c.yaml", "v/c", "0");
	read_all(NULL, 0);
	assert_string_equal(resolve("v/c=0"), "COMMON=/run/cdi/c.yaml 0=/run/cdi/c.yaml");
	assert_string_equal(resolve("v/c=1"), "unresolvable CDI devices v/c=1");
	write_spec("/run/cdi/d.yaml", "v/c", "0");
	read_all(NULL, 0);
	assert_string_equal(resolve("v/c=0"), "unresolvable CDI devices v/c=0");
}

static void test_skipped(void **state)
{
	write_spec("/etc/cdi/good.yaml", "v/c", "0");
	fixture_write(fixture, "/etc/cdi/bad.yaml", "cdiVersion: 0.5.0\nkind: v/c\ndevice: []\n");
	fixture_write(fixture, "/etc/cdi/other.yml", "what is this?");
	fixture_write(fixture, "/etc/cdi/other.YAML", "what is this?");
	fixture_write(fixture, "/etc/cdi/spec.123.tmp", "what is this?");
	fixture_directory(fixture, "/etc/cdi/directory.json");
	fixture_write(fixture, "/etc/cdi/sub/deep.json", "what is this?");
	fixture_link(fixture, "good.yaml", "/etc/cdi/link-to-nothing-else.txt");
	fixture_link(fixture, "nowhere", "/etc/cdi/dangling.json");
	read_all(NULL, 0);
	assert_int_equal(registry.n_specs, 1);
	assert_int_equal(registry.n_problems, 2);
	assert_non_null(strstr(registry.problems[0].file, "/etc/cdi/bad.yaml"));
	assert_non_null(
	    strstr(registry.problems[0].why, "line 3, column 1: invalid CDI Spec: unknown field \"device\""));
	assert_non_null(strstr(registry.problems[1].file, "/etc/cdi/dangling.json"));
	assert_string_equal(resolve("v/c=0"), "COMMON=/etc/cdi/good.yaml 0=/etc/cdi/good.yaml");
}

/* A FIFO among the specs must not hold anything up. */
static void test_fifo(void **state)
{
	char path[256];

	write_spec("/etc/cdi/good.yaml", "v/c", "0");
	(void)snprintf(path, sizeof(path), "%s/fifo.json", etc);
	assert_int_equal(mkfifo(path, 0600), 0);
	read_all(NULL, 0);
	assert_int_equal(registry.n_specs, 1);
	assert_int_equal(registry.n_problems, 1);
}

static void test_passed_over(void **state)
{
	static const char *const kinds[] = { "v/c" };

	write_spec("/etc/cdi/a.yaml", "v/c", "0");
	write_spec("/etc/cdi/b.yaml", "w/c", "0");
	fixture_write(fixture, "/etc/cdi/c.json", "not even a spec");
	/* The kind is written with an escape, which only parsing shows. */
	fixture_write(
	    fixture, "/etc/cdi/d.json",
	    "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v\\u002fc\",\"devices\":[{\"name\":\"1\",\"containerEdits\":{\"env\":"
	    "[\"1=d\"]}}]}");
	read_all(kinds, 1);
	assert_int_equal(registry.n_specs, 2);
	assert_int_equal(registry.n_passed_over, 2);
	assert_int_equal(registry.n_problems, 0);
	assert_string_equal(resolve("v/c=1 v/c=0"), "1=d COMMON=/etc/cdi/a.yaml 0=/etc/cdi/a.yaml");
}

static void test_missing_directories(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };

	read_all(NULL, 0);
	assert_int_equal(registry.n_specs, 0);
	assert_string_equal(resolve("v/c=1"), "unresolvable CDI devices v/c=1");
	/* Something other than a directory is reported: it may hide the real one. */
	fixture_write(fixture, "/run/cdi", "");
	assert_int_equal(graft_cdi_registry_read(directories, 2, NULL, 0, NULL, NULL, arena, &registry, &err), -1);
	assert_string_printed(err.msg, "failed to read CDI directory: %s/run/cdi", fixture->root);
}

/* A file after the one that took all the time is not read. */
static void test_registry_late(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_budget *budget = graft_budget_new(0);

	write_spec("/etc/cdi/a.yaml", "v/c", "0");
	while (!graft_budget_is_spent(budget))
		continue;
	assert_int_equal(graft_cdi_registry_read(directories, 2, NULL, 0, budget, NULL, arena, &registry, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(
	    err.msg, graft_arena_printf(arena, "reading the CDI specs takes too long: %s/a.yaml", directories[0]));
	graft_budget_free(budget);
}

/* --- stale specs --- */

static int realize(const char *edits_text, struct graft_cdi_edits *edits, struct graft_error *err)
{
	struct graft_cdi_choice *choices;
	static const char *const names[] = { "v/c=d" };
	char text[2048];
	size_t n;

	(void)snprintf(text, sizeof(text),
		       "cdiVersion: 0.5.0\nkind: v/c\ndevices:\n- name: d\n  containerEdits:\n    %s\n", edits_text);
	fixture_write(fixture, "/etc/cdi/s.yaml", text);
	read_all(NULL, 0);
	assert_int_equal(registry.n_problems, 0);
	assert_int_equal(graft_cdi_registry_resolve(&registry, names, 1, arena, &choices, &n, err), 0);
	return graft_cdi_choices_realize(choices, n, &fixture->logger, arena, edits, err);
}

static const char *spec_path(void)
{
	return graft_arena_printf(arena, "%s/etc/cdi/s.yaml", fixture->root);
}

static void expect_stale(const char *missing, const struct graft_error *err)
{
	assert_string_printed(err->msg,
			      "CDI spec %s is stale: %s is not on this host; regenerate the spec (NVIDIA's: nvidia-ctk "
			      "cdi generate --output=%s)",
			      spec_path(), missing, spec_path());
}

static const struct {
	const char *edits, *message; /* GRAFT_NOT_FOUND: what is missing; NULL: nothing is wrong */
	enum graft_status status;
} stale[] = {
	{ "deviceNodes: [{path: /dev/gone}]", "device node /dev/gone", GRAFT_NOT_FOUND },
	{ "deviceNodes: [{path: /dev/null, hostPath: /dev/null/gone}]", "device node /dev/null/gone", GRAFT_NOT_FOUND },
	{ "deviceNodes: [{path: /dev/gone, major: 1, minor: 3}]", "device node /dev/gone", GRAFT_NOT_FOUND },
	{ "deviceNodes: [{path: /dev/gone, type: c}]", "device node /dev/gone", GRAFT_NOT_FOUND },
	{ "deviceNodes: [{path: /dev/gone, type: c, major: 1, minor: 3}]", NULL, GRAFT_OK },
	{ "deviceNodes: [{path: /dev/gone, type: p}]", NULL, GRAFT_OK },
	{ "deviceNodes: [{path: /dev/null}]", NULL, GRAFT_OK },
	{ "deviceNodes: [{path: /x, hostPath: /dev/null, type: u}]", NULL, GRAFT_OK },
	{ "deviceNodes: [{path: /x, hostPath: /dev/null, type: b}]",
	  "CDI device (\"/x\", \"/dev/null\"), host type mismatch (b, c)", GRAFT_INVALID },
	{ "deviceNodes: [{path: /etc}]", "failed to stat CDI host device \"/etc\": not a device node", GRAFT_INVALID },
	{ "mounts: [{hostPath: /usr/lib/gone.so.1, containerPath: /x}]", "mount source /usr/lib/gone.so.1",
	  GRAFT_NOT_FOUND },
	{ "mounts: [{hostPath: /usr/lib/gone.so.1, containerPath: /x, type: bind}]", "mount source /usr/lib/gone.so.1",
	  GRAFT_NOT_FOUND },
	{ "mounts: [{hostPath: /usr, containerPath: /x, options: [rbind]}]", NULL, GRAFT_OK },
	{ "mounts: [{hostPath: tmpfs, containerPath: /x, type: tmpfs}]", NULL, GRAFT_OK },
	{ "mounts: [{hostPath: /gone, containerPath: /x, type: overlay}]", NULL, GRAFT_OK },
	{ "hooks: [{hookName: createContainer, path: /usr/bin/gone}]", "hook program /usr/bin/gone", GRAFT_NOT_FOUND },
	{ "hooks: [{hookName: createContainer, path: /bin/sh}]", NULL, GRAFT_OK },
};

static void test_stale(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(stale); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_edits edits;
		int rc = realize(stale[i].edits, &edits, &err);

		print_message("# %s\n", stale[i].edits);
		assert_int_equal(rc, stale[i].message ? -1 : 0);
		assert_int_equal(err.status, stale[i].status);
		if (!stale[i].message)
			continue;
		if (stale[i].status == GRAFT_NOT_FOUND)
			expect_stale(stale[i].message, &err);
		else
			assert_string_printed(err.msg, "CDI spec %s: %s", spec_path(), stale[i].message);
	}
}

/* Facts that another source found are not looked for again; missing ones are. */
static void test_seen(void **state)
{
	static const char *const seen[] = { "/gone/1", "/gone/2" };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_choice *choices;
	static const char *const names[] = { "v/c=d" };
	size_t n;

	fixture_write(fixture, "/etc/cdi/s.yaml",
		      "{cdiVersion: 0.5.0, kind: v/c, devices: [{name: d, containerEdits: {mounts: ["
		      "{hostPath: /gone/1, containerPath: /1}, {hostPath: /usr, containerPath: /usr}]}}], "
		      "containerEdits: {mounts: ["
		      "{hostPath: /gone/2, containerPath: /2}]}}");
	read_all(NULL, 0);
	assert_int_equal(graft_cdi_registry_resolve(&registry, names, 1, arena, &choices, &n, &err), 0);
	/* In the order of the choices: the spec's own edits come first. */
	assert_int_equal(graft_cdi_choices_check_paths(choices, n, (const char *const[]){ seen[1], seen[0] }, 2, &err),
			 0);
	assert_int_equal(graft_cdi_choices_check_paths(choices, n, seen, 1, &err), -1);
	expect_stale("mount source /gone/2", &err);
	assert_int_equal(graft_cdi_choices_check_paths(choices, n, &seen[1], 1, &err), -1);
	expect_stale("mount source /gone/1", &err);
}

/* The numbers of /dev/null are the same on every Linux: 1:3. */
static void test_numbers(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_edits edits;

	assert_int_equal(
	    realize("deviceNodes: [{path: /dev/null}, {path: /dev/null, major: 1, minor: 3, fileMode: 0600}]", &edits,
		    &err),
	    0);
	assert_int_equal(edits.n_nodes, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_true(edits.nodes[i].has_numbers && edits.nodes[i].has_mode);
		assert_int_equal(edits.nodes[i].major, 1);
		assert_int_equal(edits.nodes[i].minor, 3);
		assert_string_equal(edits.nodes[i].type, "c");
	}
	assert_int_equal(edits.nodes[1].mode, 0600);
	assert_null(strstr(fixture->log, "stale"));
	/* A major that changed with a reboot: what is at the path counts, and the log says so. */
	assert_int_equal(realize("deviceNodes: [{path: /dev/null, major: 511, minor: 3}]", &edits, &err), 0);
	assert_int_equal(edits.nodes[0].major, 1);
	assert_non_null(
	    strstr(fixture->log, "it has device node /dev/null as 511:3, this host as 1:3; using the latter"));
	/* What says all of it is taken by its word. */
	assert_int_equal(realize("deviceNodes: [{path: /dev/null, type: c, major: 511, minor: 3}]", &edits, &err), 0);
	assert_int_equal(edits.nodes[0].major, 511);
}

static int read_and_realize(struct graft_arena *own, struct graft_error *err)
{
	static const char *const names[] = { "v/c=0", "v/c=d" };
	struct graft_cdi_registry found;
	struct graft_cdi_choice *choices;
	struct graft_cdi_edits edits;
	size_t n;

	if (graft_cdi_registry_read(directories, 2, NULL, 0, NULL, NULL, own, &found, err) < 0 ||
	    graft_cdi_registry_resolve(&found, names, 2, own, &choices, &n, err) < 0)
		return -1;
	return graft_cdi_choices_realize(choices, n, NULL, own, &edits, err);
}

static void test_memory(void **state)
{
	write_spec("/etc/cdi/a.yaml", "v/c", "0");
	fixture_write(fixture, "/etc/cdi/b.yaml", "cdiVersion: 0.5.0\nkind: v/c\ndevice: []\n");
	write_spec("/run/cdi/a.yaml", "v/c", "0 d");
	assert_true(allocation_each(own, err, read_and_realize(own, &err)) > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_registry_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_priority, setup, teardown),
		cmocka_unit_test_setup_teardown(test_conflict, setup, teardown),
		cmocka_unit_test_setup_teardown(test_conflict_below, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skipped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fifo, setup, teardown),
		cmocka_unit_test_setup_teardown(test_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
