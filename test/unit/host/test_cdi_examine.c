/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and directories of specs: their faults, which definition counts, what is skipped, memory.
 */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "cdi_folders.h"
#include "host/cdi_registry.h"

static void write_spec(const char *path, const char *devices)
{
	char text[4096];
	int used = snprintf(text, sizeof(text), "cdiVersion: 0.5.0\nkind: v/c\ndevices:\n");

	for (const char *at = devices; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");

		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "- name: '%.*s'\n  containerEdits: {env: [A=1]}\n", (int)length, at);
		at += length;
	}
	fixture_write(fixture, path, text);
}

/* Everything that was found, one line each, without the fixture's root: "etc/cdi/a.yaml:3:1: what", "~" in front of what is harmless. */
static const char *examine(const char *const *paths, size_t n_paths)
{
	static char result[4096];
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_examined *files;
	size_t n, used = 0, root = strlen(fixture->root);

	result[0] = '\0';
	if (graft_cdi_examine(paths, n_paths, true, arena, &files, &n, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < n; i++) {
		bool sound = true;

		for (size_t j = 0; j < files[i].faults.n; j++) {
			const struct graft_cdi_fault *fault = &files[i].faults.items[j];
			const char *other = strstr(fault->what, fixture->root);

			used += (size_t)snprintf(result + used, sizeof(result) - used, "%s%s:%u:%u: %.*s%s\n",
						 fault->harmless ? "~" : "", files[i].path + root, fault->line,
						 fault->column, other ? (int)(other - fault->what) : 1000, fault->what,
						 other ? other + root : "");
			sound = sound && fault->harmless;
		}
		assert_int_equal(files[i].valid, sound);
	}
	return result;
}

static void test_files(void **state)
{
	const char *paths[4];

	write_spec("/etc/cdi/good.yaml", "0 1");
	write_spec("/etc/cdi/good.yml", "0 1");
	fixture_write(fixture, "/etc/cdi/bad.json", "cdiVersion: 0.5.0\nkind: v/c\ndevice: []\n");
	paths[0] = graft_arena_printf(arena, "%s/good.yaml", etc);
	paths[1] = graft_arena_printf(arena, "%s/good.yml", etc);
	paths[2] = graft_arena_printf(arena, "%s/bad.json", etc);
	assert_string_equal(examine(paths, 3),
			    "~/etc/cdi/good.yml:0:0: engines ignore files in a directory unless their names "
			    "end in .json or .yaml\n"
			    "/etc/cdi/bad.json:1:1: invalid spec, no devices\n"
			    "/etc/cdi/bad.json:3:1: unknown field \"device\"\n");
	/* A directory: the .yml is ignored. */
	assert_string_equal(examine(directories, 2), "/etc/cdi/bad.json:1:1: invalid spec, no devices\n"
						     "/etc/cdi/bad.json:3:1: unknown field \"device\"\n");
}

static void test_unreadable(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_examined *files;
	const char *path;
	size_t n;

	path = graft_arena_printf(arena, "%s/gone.yaml", etc);
	assert_int_equal(graft_cdi_examine(&path, 1, false, arena, &files, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_false(files[0].valid);
	assert_int_equal(files[0].faults.n, 1);
	assert_non_null(strstr(files[0].faults.items[0].what, "failed to open CDI spec: "));
	assert_non_null(strstr(files[0].faults.items[0].what, "no such file"));
	assert_int_equal(graft_cdi_examine(&path, 1, true, arena, &files, &n, &err), 0);
	assert_int_equal(n, 0);
}

static void test_between(void **state)
{
	write_spec("/etc/cdi/a.yaml", "0 1 2 3 4 5 x");
	write_spec("/run/cdi/a.yaml", "0 1 2 3 4 6 7");
	write_spec("/run/cdi/b.yaml", "5 6");
	write_spec("/run/cdi/c.yaml", "6");
	assert_string_equal(
	    examine(directories, 2),
	    "~/etc/cdi/a.yaml:0:0: v/c=0, v/c=1, v/c=2, v/c=3 and 1 more: overridden by /run/cdi/a.yaml\n"
	    "~/etc/cdi/a.yaml:0:0: v/c=5: overridden by /run/cdi/b.yaml\n"
	    "/run/cdi/a.yaml:0:0: conflicting device \"v/c=6\": /run/cdi/c.yaml defines it as well, so "
	    "no container can use it\n"
	    "/run/cdi/b.yaml:0:0: conflicting device \"v/c=6\": /run/cdi/c.yaml defines it as well, so "
	    "no container can use it\n"
	    "/run/cdi/c.yaml:0:0: conflicting device \"v/c=6\": /run/cdi/a.yaml defines it as well, so "
	    "no container can use it\n");
}

static void test_definitions(void **state)
{
	struct graft_cdi_registry registry;
	struct graft_cdi_definition *definitions;
	size_t n;

	write_spec("/etc/cdi/a.yaml", "b a");
	write_spec("/etc/cdi/b.yaml", "b c");
	write_spec("/run/cdi/a.yaml", "b");
	assert_int_equal(graft_cdi_registry_read(directories, 2, NULL, 0, NULL, NULL, arena, &registry, NULL), 0);
	assert_int_equal(graft_cdi_registry_definitions(&registry, arena, &definitions, &n, NULL), 0);
	assert_int_equal(n, 5);
	assert_string_equal(definitions[0].name, "v/c=a");
	assert_int_equal(definitions[0].standing, GRAFT_CDI_COUNTS);
	assert_null(definitions[0].other);
	for (size_t i = 1; i < 4; i++) {
		assert_string_equal(definitions[i].name, "v/c=b");
		assert_ptr_equal(definitions[i].spec, &registry.specs[i - 1]);
		assert_int_equal(definitions[i].standing, i < 3 ? GRAFT_CDI_OVERRIDDEN : GRAFT_CDI_COUNTS);
	}
	assert_ptr_equal(definitions[1].other, &registry.specs[2]);
	assert_string_equal(definitions[4].name, "v/c=c");
	registry.n_specs = 0;
	assert_int_equal(graft_cdi_registry_definitions(&registry, arena, &definitions, &n, NULL), 0);
	assert_int_equal(n, 0);
}

static void test_memory(void **state)
{
	struct graft_cdi_examined *files;
	size_t n;

	write_spec("/etc/cdi/a.yaml", "0 d");
	fixture_write(fixture, "/etc/cdi/b.yaml", "cdiVersion: 0.5.0\nkind: v/c\ndevice: []\n");
	write_spec("/run/cdi/a.yaml", "0 d");
	write_spec("/run/cdi/b.yaml", "d");
	assert_true(allocation_each(own, err, graft_cdi_examine(directories, 2, false, own, &files, &n, &err)) > 19);
	assert_int_equal(n, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_between, setup, teardown),
		cmocka_unit_test_setup_teardown(test_definitions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
