/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign: what is removed, what stays, what the loader's cache gets instead, and that nothing else
 * changes.
 */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "plan/plan.h"

#define LIB "/usr/lib/x86_64-linux-gnu"

static struct graft_edit *add(struct graft_plan *plan, enum graft_edit_kind kind, const char *target,
			      const char *content)
{
	struct graft_edit *edit = graft_arena_push(plan->arena, &plan->edits, &plan->n_edits, sizeof(*edit));

	*edit = (struct graft_edit){ .kind = kind, .target = target, .content = content, .rule = "r", .why = "w" };
	return edit;
}

static void add_entry(struct graft_plan *plan, struct graft_edit *edit, const char *soname, const char *path)
{
	struct graft_ldcache_entry *entry = graft_arena_push(plan->arena, &edit->entries, &edit->n_entries,
							     sizeof(*entry));

	*entry = (struct graft_ldcache_entry){ soname, path, 0x303 };
}

static struct graft_plan *new_plan(void)
{
	struct graft_plan *plan = graft_plan_new();
	struct graft_edit *cache;

	(void)add(plan, GRAFT_EDIT_BIND, LIB "/libcuda.so.550", NULL);
	(void)add(plan, GRAFT_EDIT_SYMLINK, LIB "/libcuda.so.1", "libcuda.so.550");
	(void)add(plan, GRAFT_EDIT_SYMLINK, LIB "/libcuda.so", "libcuda.so.1");
	(void)add(plan, GRAFT_EDIT_SYMLINK, LIB "/vdpau/libvdpau_nvidia.so.1", "libvdpau_nvidia.so.550");
	(void)add(plan, GRAFT_EDIT_FILE, "/etc/nvidia/x", "{}");
	cache = add(plan, GRAFT_EDIT_LDCACHE, NULL, NULL);
	add_entry(plan, cache, "libcuda.so.1", LIB "/libcuda.so.1");
	add_entry(plan, cache, "libcuda.so", LIB "/libcuda.so");
	add_entry(plan, cache, "libml.so.1", LIB "/libml.so.1");
	return plan;
}

/* "kind target ..." of what stays, and of what is refused. */
static void expect(const struct graft_plan *plan, const char *edits, const char *refusals)
{
	char text[1024] = "";

	for (size_t i = 0; i < plan->n_edits; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s\n",
			       graft_edit_names[plan->edits[i].kind],
			       plan->edits[i].target ? plan->edits[i].target : "-");
	assert_string_equal(text, edits);
	text[0] = '\0';
	for (size_t i = 0; i < plan->n_refusals; i++) {
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\n", plan->refusals[i].what);
		assert_string_equal(plan->refusals[i].why, "it would lie on another mount than the container's root");
	}
	assert_string_equal(text, refusals);
}

static void test_nothing_foreign(void **state)
{
	static const char *const elsewhere[] = { "/data", "/usr/lib", LIB "/vdpa" };
	struct graft_plan *plan = new_plan();

	assert_ptr_equal(graft_plan_without(plan, NULL, 0, plan->arena), plan);
	assert_ptr_equal(graft_plan_without(plan, elsewhere, GRAFT_COUNT(elsewhere), plan->arena), plan);
	graft_plan_free(plan);
}

/* The library is mounted, no link is made, and the loader's cache names the file. */
static void test_libraries(void **state)
{
	static const char *const directories[] = { LIB };
	struct graft_plan *plan = new_plan();
	const struct graft_plan *rest = graft_plan_without(plan, directories, 1, plan->arena);

	expect(rest,
	       "bind " LIB "/libcuda.so.550\nsymlink " LIB
	       "/vdpau/libvdpau_nvidia.so.1\nfile /etc/nvidia/x\nldcache -\n",
	       "symlink " LIB "/libcuda.so.1\nsymlink " LIB "/libcuda.so\n");
	assert_string_equal(rest->edits[3].entries[0].path, LIB "/libcuda.so.550");
	assert_string_equal(rest->edits[3].entries[1].path, LIB "/libcuda.so.550");
	assert_string_equal(rest->edits[3].entries[2].path, LIB "/libml.so.1");
	/* The plan that was given says what it said. */
	assert_int_equal(plan->n_edits, 6);
	assert_int_equal(plan->n_refusals, 0);
	assert_string_equal(plan->edits[5].entries[0].path, LIB "/libcuda.so.1");
	graft_plan_free(plan);
}

static void test_etc(void **state)
{
	static const char *const directories[] = { "/etc", "/etc/nvidia" };
	struct graft_plan *plan = new_plan();

	expect(graft_plan_without(plan, directories, 2, plan->arena),
	       "bind " LIB "/libcuda.so.550\nsymlink " LIB "/libcuda.so.1\nsymlink " LIB "/libcuda.so\nsymlink " LIB
	       "/vdpau/libvdpau_nvidia.so.1\n",
	       "file /etc/nvidia/x\nldcache /etc/ld.so.cache\n");
	graft_plan_free(plan);
}

/* A specification may ask for anything. */
static void test_links_in_a_circle(void **state)
{
	static const char *const directories[] = { "/opt" };
	struct graft_plan *plan = graft_plan_new();
	struct graft_edit *cache;

	(void)add(plan, GRAFT_EDIT_SYMLINK, "/opt/a", "b");
	(void)add(plan, GRAFT_EDIT_SYMLINK, "/opt/b", "a");
	(void)add(plan, GRAFT_EDIT_SYMLINK, "/opt/c", "c");
	cache = add(plan, GRAFT_EDIT_LDCACHE, NULL, NULL);
	add_entry(plan, cache, "a", "/opt/a");
	add_entry(plan, cache, "c", "/opt/c");
	expect(graft_plan_without(plan, directories, 1, plan->arena), "ldcache -\n",
	       "symlink /opt/a\nsymlink /opt/b\nsymlink /opt/c\n");
	graft_plan_free(plan);
}

static void test_musl(void **state)
{
	static const char *const directories[] = { "/etc" };
	struct graft_plan *plan = graft_plan_new();
	struct graft_edit *cache = add(plan, GRAFT_EDIT_LDCACHE, NULL, NULL);

	cache->musl_path_file = "/opt/ld-musl-x86_64.path";
	assert_ptr_equal(graft_plan_without(plan, directories, 1, plan->arena), plan);
	cache->musl_path_file = "/etc/ld-musl-x86_64.path";
	expect(graft_plan_without(plan, directories, 1, plan->arena), "", "ldcache /etc/ld.so.cache\n");
	graft_plan_free(plan);
}

static void test_allocations_fail(void **state)
{
	static const char *const directories[] = { LIB };
	struct graft_plan *plan = new_plan();
	const struct graft_plan *rest = NULL;
	int n = 0;

	while (!rest) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 16);

		allocation_fail(++n);
		rest = arena ? graft_plan_without(plan, directories, 1, arena) : NULL;
		assert_int_equal(allocation_failed(), rest == NULL);
		graft_arena_free(arena);
	}
	graft_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_foreign),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_etc),
		cmocka_unit_test(test_links_in_a_circle),
		cmocka_unit_test(test_musl),
		cmocka_unit_test(test_allocations_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
