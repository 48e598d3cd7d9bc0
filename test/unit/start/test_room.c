/* SPDX-License-Identifier: Apache-2.0 */
/* room: places in roots and volumes, and what is left out of plans and of CDI edits. */
#include "../unit.h"
#include "creation.h"
#include "start/room.h"

#define ICD       "/etc/OpenCL/vendors/nvidia.icd"
#define DIRECTORY "a directory has that name"
#define NO_WAY    "a component of the path is not a directory"
#define READ_ONLY "cannot create a file there: read-only file system"

static const char *ro[] = { "rbind", "ro" }, *rro[] = { "bind", "rro" }, *rw[] = { "rbind" }, *only_ro[] = { "ro" };

/* A bundle with a root, and a volume beside it. */
static void begin(struct creation *creation, struct world *world)
{
	creation_init(creation, world->arena);
	world_put(world, "b/rootfs/etc/os-release", "", 0644);
	world_put(world, "b/empty/.keep", "", 0644);
	world_put(world, "b/full/nvidia.icd", "", 0644);
	world_put(world, "b/wrong/nvidia.icd/x", "", 0644);
	creation->spec.root_path = "rootfs";
	creation->create.bundle = world_path(world, "b");
	creation->create.budget = graft_budget_new(10000);
	assert_non_null(creation->create.budget);
}

static void end(struct creation *creation)
{
	creation->create.budget = graft_budget_free(creation->create.budget);
	creation_done(creation);
}

/* What is said of OpenCL's description, of three mounts; NULL: it stays. */
static const char *ask(struct creation *creation)
{
	struct graft_cdi_mount mounts[] = { { .container_path = "/usr/bin/nvidia-smi" },
					    { .container_path = ICD },
					    { .container_path = "/etc/cufile.json" } };
	struct graft_cdi_edits edits = { .mounts = mounts, .n_mounts = 3 };
	static const char prefix[] = "W " ICD " is left out: ";
	const char *text;

	graft_buffer_done(&creation->lines);
	creation->lines = (struct graft_buffer){ .max = 0 };
	assert_int_equal(graft_start_leave_out_mounts(&creation->create, &edits, NULL), 0);
	text = graft_buffer_text(&creation->lines);
	if (edits.n_mounts == 3) {
		assert_null(strstr(text, "is left out"));
		return NULL;
	}
	assert_int_equal(edits.n_mounts, 2);
	assert_string_equal(mounts[1].container_path, "/etc/cufile.json");
	assert_int_equal(strncmp(text, prefix, strlen(prefix)), 0);
	text = graft_arena_strndup(creation->create.arena, text + strlen(prefix), strcspn(text, "\n") - strlen(prefix));
	return text;
}

static void expect(struct creation *creation, const char *why)
{
	const char *found = ask(creation);

	print_message("# %s\n", found ? found : "stays");
	if (why)
		assert_string_equal(found ? found : "stays", why);
	else
		assert_null(found);
}

static void test_root(void **state)
{
	struct world *world = *state;
	struct creation creation;

	begin(&creation, world);
	expect(&creation, NULL);
	world_put(world, "b/rootfs/etc/OpenCL/vendors/other.icd", "", 0644);
	expect(&creation, NULL);
	assert_int_equal(symlink("/opt/vendors/own.icd", world_path(world, "b/rootfs" ICD)), 0);
	expect(&creation, NULL); /* the runtime makes it where the link points to */
	world_put(world, "b/rootfs/opt/vendors/own.icd/x", "", 0644);
	expect(&creation, DIRECTORY);
	assert_int_equal(unlink(world_path(world, "b/rootfs" ICD)), 0);
	assert_int_equal(symlink("nvidia.icd", world_path(world, "b/rootfs" ICD)), 0);
	expect(&creation, "a link in the path leads nowhere");
	assert_int_equal(unlink(world_path(world, "b/rootfs" ICD)), 0);
	world_put(world, "b/rootfs" ICD, "", 0644);
	expect(&creation, NULL);
	creation.spec.root_path = "not-mounted-yet";
	expect(&creation, NULL);
	end(&creation);
}

static void test_file_on_the_way(void **state)
{
	struct world *world = *state;
	struct creation creation;

	begin(&creation, world);
	world_put(world, "b/rootfs/etc/OpenCL", "", 0644);
	expect(&creation, NO_WAY);
	end(&creation);
}

static void test_mounts(void **state)
{
	static const struct {
		const char *destination, *source, *type;
		const char **options;
		const char *why;
	} rows[] = {
		{ "/etc/OpenCL/vendors", "empty", "bind", ro, READ_ONLY },
		{ "/etc/OpenCL/vendors/", "empty", NULL, rro, READ_ONLY },
		{ "/etc/../etc/OpenCL", "empty", "bind", ro, READ_ONLY },
		{ "/etc/OpenCL/vendors", "full", "bind", ro, NULL },
		{ "/etc/OpenCL/vendors", "empty", "none", rw, NULL },
		{ "/etc/OpenCL/vendors", "wrong", "bind", rw, DIRECTORY },
		{ "/etc/OpenCL/vendors", "empty/.keep", "bind", rw, NO_WAY },
		{ "/etc/OpenCL/vendors", "nothing", "bind", ro, NULL }, /* the runtime says so */
		{ "/etc/OpenCL/vendors", NULL, "bind", ro, NULL },
		{ "/etc/OpenCL/vendor", "empty", "bind", ro, NULL },
		{ "/", "empty", "bind", ro, NULL },
		{ "/etc/OpenCL", "tmpfs", "tmpfs", only_ro, READ_ONLY },
		{ "/etc/OpenCL", "tmpfs", "tmpfs", NULL, NULL },
		{ NULL, "empty", "bind", ro, NULL },
		{ ICD, "wrong", "bind", ro, NULL }, /* ours takes its place */
		{ ICD "/", "empty/.keep", "bind", ro, NULL },
		{ ICD "/", "wrong", "bind", ro, DIRECTORY },
		{ "/opt/vendors", "empty", "bind", ro, NULL },
	};
	struct graft_oci_mount mounts[2];
	struct world *world = *state;
	struct creation creation;

	begin(&creation, world);
	creation.spec.mounts = mounts;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		size_t n_options = !rows[i].options ? 0 : rows[i].options == only_ro || rows[i].options == rw ? 1 : 2;

		mounts[0] = (struct graft_oci_mount){ rows[i].destination, rows[i].source, rows[i].type,
						      rows[i].options,     n_options,      NULL };
		creation.spec.n_mounts = 1;
		print_message("# %s %s\n", rows[i].destination ? rows[i].destination : "none",
			      rows[i].source ? rows[i].source : "none");
		expect(&creation, rows[i].why);
	}
	/* The deeper one is seen, wherever it stands. */
	mounts[0] = (struct graft_oci_mount){ "/etc/OpenCL/vendors", "full", "bind", ro, 2, NULL };
	mounts[1] = (struct graft_oci_mount){ "/etc", "empty", "bind", ro, 2, NULL };
	creation.spec.n_mounts = 2;
	expect(&creation, NULL);
	mounts[0].source = "empty";
	mounts[1].source = "full";
	expect(&creation, READ_ONLY);
	/* A link of the image leads to the one, or the other leads through a link. */
	mounts[0].destination = "/opt/vendors";
	creation.spec.n_mounts = 1;
	world_put(world, "b/rootfs/opt/vendors/x", "", 0644);
	world_put(world, "b/rootfs/etc/OpenCL/x", "", 0644);
	assert_int_equal(symlink("../../opt/vendors", world_path(world, "b/rootfs/etc/OpenCL/vendors")), 0);
	expect(&creation, READ_ONLY);
	mounts[0].destination = "/etc/OpenCL/vendors";
	expect(&creation, READ_ONLY);
	mounts[0].source = "full";
	expect(&creation, NULL);
	end(&creation);
}

/* Only files that the container does without are left out of a plan, and the plan stays as it was. */
static void test_plan(void **state)
{
	struct graft_edit edits[] = {
		{ .kind = GRAFT_EDIT_BIND, .target = ICD },
		{ .kind = GRAFT_EDIT_BIND, .target = ICD, .dispensable = true },
		{ .kind = GRAFT_EDIT_SYMLINK, .target = ICD, .dispensable = true },
		{ .kind = GRAFT_EDIT_BIND, .target = ICD, .type = GRAFT_SOURCE_DIRECTORY, .dispensable = true },
	};
	const struct graft_plan plan = { .edits = edits, .n_edits = GRAFT_COUNT(edits), .driver_version = "550" };
	const struct graft_plan *rest;
	struct world *world = *state;
	struct creation creation;

	begin(&creation, world);
	world_put(world, "b/rootfs" ICD "/x", "", 0644);
	rest = graft_start_leave_out_edits(&creation.create, &plan, NULL);
	assert_int_equal(rest->n_edits, 3);
	assert_int_equal(rest->edits[1].kind, GRAFT_EDIT_SYMLINK);
	assert_string_equal(rest->driver_version, "550");
	assert_int_equal(plan.n_edits, 4);
	assert_string_equal(graft_buffer_text(&creation.lines), "W " ICD " is left out: " DIRECTORY "\n");
	edits[1].dispensable = false;
	assert_ptr_equal(graft_start_leave_out_edits(&creation.create, &plan, NULL), &plan);
	end(&creation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_root, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_file_on_the_way, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_mounts, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_plan, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
