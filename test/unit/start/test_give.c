/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the modes share: the image's root, disabled hooks, a plan's lines in the log, links for its
 * nodes, and its edits. /dev/char and our user are stand-ins.
 */
#include "../allocation.h"
#include "../unit.h"
#include "base/caps.h"
#include "creation.h"
#include "start/give.h"

uid_t __wrap_geteuid(void);
bool __wrap_graft_in_user_namespace(void);
bool __wrap_graft_caps_hold(enum graft_caps_step step);

static struct {
	uid_t uid;
	bool user_namespace, may_not_mount;
	char links[256];
	bool links_fail;
} host;

uid_t __wrap_geteuid(void)
{
	return host.uid;
}

bool __wrap_graft_in_user_namespace(void)
{
	return host.user_namespace;
}

bool __wrap_graft_caps_hold(enum graft_caps_step step)
{
	return step == GRAFT_CAPS_MOUNT && !host.may_not_mount;
}

int graft_dev_char_make(const struct graft_dev_char *nodes, size_t n_nodes, const struct graft_log *log,
			struct graft_error *err)
{
	for (size_t i = 0; i < n_nodes; i++)
		(void)snprintf(host.links + strlen(host.links), sizeof(host.links) - strlen(host.links), "%u:%u %s\n",
			       nodes[i].major, nodes[i].minor, nodes[i].path);
	return host.links_fail ? graft_fail(err, GRAFT_IO, 0, "open failed: /dev/char") : 0;
}

static void begin(struct creation *creation, struct world *world)
{
	creation_init(creation, world->arena);
	host.uid = 0;
	host.user_namespace = host.may_not_mount = false;
	host.links[0] = '\0';
	host.links_fail = false;
}

/* --- before the plan --- */

static void test_image(void **state)
{
	static const struct {
		const char *root_path; /* "%s" is replaced by the test's directory */
		bool bundle;
		int rc;
	} rows[] = {
		{ NULL, true, 0 },          { "", true, 0 },     { "rootfs", true, 1 }, { "rootfs", false, 0 },
		{ "%s/b/rootfs", true, 1 }, { "none", true, 0 }, { "file", true, 0 },
	};
	struct world *world = *state;
	struct creation creation;

	world_put(world, "b/rootfs/etc/os-release", "", 0644);
	world_put(world, "b/file", "", 0644);
	begin(&creation, world);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
		const char *path = rows[i].root_path;

		if (path && strncmp(path, "%s", 2) == 0)
			path = graft_arena_printf(world->arena, "%s%s", world->directory, path + 2);
		creation.spec.root_path = path;
		creation.create.bundle = rows[i].bundle ? world_path(world, "b") : NULL;
		print_message("# %s\n", path ? path : "none");
		assert_int_equal(graft_start_open_image(&creation.create, &root, NULL), rows[i].rc);
	}
	assert_non_null(strstr(graft_buffer_text(&creation.lines), "/b/none\n"));
	creation_done(&creation);
}

static void test_disabled_hooks(void **state)
{
	const char *words[] = { "create-symlinks", "no-hook", "chmod", "update-ldcache" };
	struct creation creation;

	begin(&creation, *state);
	assert_int_equal(graft_start_disabled_hooks(&creation.create), 0);
	creation.config.runtime.jit_disable_hooks = (struct graft_strings){ words, GRAFT_COUNT(words) };
	assert_int_equal(graft_start_disabled_hooks(&creation.create), GRAFT_HOOK_SYMLINKS | GRAFT_HOOK_LDCACHE);
	assert_int_equal(
	    strncmp(graft_buffer_text(&creation.lines), "W unknown hook 'no-hook'", strlen("W unknown hook 'no-hook'")),
	    0);
	words[1] = "all";
	assert_int_equal(graft_start_disabled_hooks(&creation.create), GRAFT_HOOK_ALL);
	creation_done(&creation);
}

static void test_bound_nodes(void **state)
{
	static const struct {
		uid_t uid;
		bool ours, containers; /* user namespaces */
		bool bound;
	} rows[] = {
		{ 0, false, false, false },
		{ 0, true, false, true },
		{ 0, false, true, true },
		{ 1000, false, false, true },
	};
	struct creation creation;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		begin(&creation, *state);
		host.uid = rows[i].uid;
		host.user_namespace = rows[i].ours;
		creation.spec.new_user_namespace = rows[i].containers;
		assert_int_equal(graft_start_binds_nodes(&creation.create), rows[i].bound);
		creation_done(&creation);
	}
}

/* --- the plan --- */

#define NODE(node_source, node_target, number)                                                             \
	{                                                                                                  \
		.kind = GRAFT_EDIT_DEVICE, .source = (node_source), .target = (node_target), .major = 195, \
		.minor = (number), .mode = 0660, .gid = 44, .why = "is a node"                             \
	}

static struct graft_grant grants[] = {
	{ .index = 0, .uuid = "GPU-0", .model = "T4" },
	{ .index = 1, .model = "T4" },
	{ .index = 2 },
};
static struct graft_edit edits[] = {
	NODE("/drv/dev/nvidia0", "/dev/nvidia0", 0),
	{ .kind = GRAFT_EDIT_CGROUP, .major = 195, .minor = 0, .access = "rwm", .why = "is its rule" },
	NODE(NULL, "/dev/nvidiactl", 255),
	{ .kind = GRAFT_EDIT_DEVICE,
	  .target = "/dev/nvidia-caps/nvidia-cap9",
	  .major = 507,
	  .minor = 9,
	  .optional = true,
	  .why = "will be a node" },
	{ .kind = GRAFT_EDIT_SYMLINK, .target = "/usr/lib/x.so", .content = "x.so.1", .why = "is a link" },
	{ .kind = GRAFT_EDIT_ENV, .target = "NAME", .content = "value", .why = "is a variable" },
};
static struct graft_refusal refusals[] = { { "GPU 7", "is in another room" } };
static const struct graft_plan plan = { .simulated = true,
					.grants = grants,
					.n_grants = GRAFT_COUNT(grants),
					.edits = edits,
					.n_edits = GRAFT_COUNT(edits),
					.refusals = refusals,
					.n_refusals = GRAFT_COUNT(refusals) };

static void test_lines(void **state)
{
	struct creation creation;

	begin(&creation, *state);
	assert_int_equal(graft_start_give(&creation.create, &plan, NULL, NULL, NULL), 0);
	assert_string_equal(graft_buffer_text(&creation.lines),
			    "W the driver is simulated: there is no real GPU\n"
			    "I granting GPU 0: GPU-0\n"
			    "I granting GPU 1: T4\n"
			    "I granting GPU 2\n"
			    "D device /dev/nvidia0: is a node\n"
			    "D cgroup : is its rule\n"
			    "D device /dev/nvidiactl: is a node\n"
			    "D device /dev/nvidia-caps/nvidia-cap9: will be a node\n"
			    "D symlink /usr/lib/x.so: is a link\n"
			    "D env NAME: is a variable\n"
			    "D not given: GPU 7: is in another room\n");
	creation_done(&creation);
}

/*
 * Each edit reaches config.json, the link by means of our hook; progress is logged if there is a
 * log for it.
 */
static void test_edits(void **state)
{
	struct graft_buffer lines = { .max = 0 };
	const struct graft_log detail = { .write = creation_write_line, .arg = &lines, .max = GRAFT_LOG_DEBUG };
	struct creation creation;
	const char *text;

	begin(&creation, *state);
	assert_int_equal(graft_start_give(&creation.create, &plan, NULL, &detail, NULL), 0);
	text = creation_text(&creation);
	assert_non_null(strstr(text, "\"/dev/nvidia0\""));
	assert_non_null(strstr(text, "NAME=value"));
	assert_non_null(strstr(text, "\"/opt/nvidia-cdi-hook\""));
	assert_non_null(strstr(text, "\"additionalGids\""));
	assert_non_null(strstr(graft_buffer_text(&lines), "left for later: symlink /usr/lib/x.so"));
	assert_null(strstr(text, "--rootfs"));
	graft_buffer_done(&lines);
	creation_done(&creation);
	begin(&creation, *state);
	creation.create.hook_root = "/run/x/rootfs";
	assert_int_equal(graft_start_give(&creation.create, &plan, NULL, NULL, NULL), 0);
	assert_non_null(strstr(creation_text(&creation), ",\"--rootfs\",\"/run/x/rootfs\"]"));
	creation_done(&creation);
	begin(&creation, *state);
	creation.config.features.no_additional_gids_for_device_nodes = true;
	assert_int_equal(graft_start_give(&creation.create, &plan, NULL, NULL, NULL), 0);
	assert_null(strstr(creation_text(&creation), "additionalGids"));
	creation_done(&creation);
}

/* A node that does not exist yet gets no link. */
static void test_links(void **state)
{
	static const char both[] = "195:0 /drv/dev/nvidia0\n195:255 /dev/nvidiactl\n";
	static const struct {
		const char *cgroups_path;
		uid_t uid;
		const char *links;
	} rows[] = {
		{ NULL, 0, both },  { "system.slice:docker:0123", 0, both }, { "/docker/0123", 0, "" },
		{ NULL, 1000, "" }, { "user.slice:libpod:0123", 1000, "" },
	};
	struct creation creation;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		begin(&creation, *state);
		creation.spec.cgroups_path = rows[i].cgroups_path;
		host.uid = rows[i].uid;
		assert_int_equal(graft_start_give(&creation.create, &plan, NULL, NULL, NULL), 0);
		assert_string_equal(host.links, rows[i].links);
		creation_done(&creation);
	}
}

/* The container starts nevertheless, with a warning of the consequences. */
static void test_links_that_fail(void **state)
{
	struct creation creation;

	begin(&creation, *state);
	host.links_fail = true;
	assert_int_equal(graft_start_give(&creation.create, &plan, NULL, NULL, NULL), 0);
	assert_non_null(strstr(
	    graft_buffer_text(&creation.lines),
	    "W open failed: /dev/char; the container may lose its GPUs at the next 'systemctl daemon-reload'\n"));
	assert_non_null(strstr(creation_text(&creation), "\"/dev/nvidia0\""));
	creation_done(&creation);
}

/* --- what waits --- */

static struct graft_edit cover[] = { { .kind = GRAFT_EDIT_COVER,
				       .target = "/proc/driver/nvidia/params",
				       .content = "x",
				       .mode = 0444,
				       .why = "is a file" } };
static const struct graft_plan cover_plan = { .edits = cover, .n_edits = 1 };

/* A container whose only edit can wait. */
static void begin_waiting(struct creation *creation, struct world *world)
{
	static struct graft_oci_id_mapping mapping = { .container_id = 0, .host_id = 0, .size = 1 };

	begin(creation, world);
	world_put(world, "rootfs/etc/os-release", "", 0644);
	creation->spec.root_path = world_path(world, "rootfs");
	creation->spec.new_mount_namespace = true;
	creation->spec.uid_mappings = creation->spec.gid_mappings = &mapping;
	creation->spec.n_uid_mappings = creation->spec.n_gid_mappings = 1;
	creation->create.comes_back = true;
}

/* Each single reason against waiting results in a hook. */
static void test_waiting(void **state)
{
	static const struct {
		const char *name;
		bool gone, already, ours, containers, may_not_mount; /* the middle two: user namespaces */
		uid_t uid;
		bool waits;
	} rows[] = {
		{ .name = "none", .waits = true },
		{ .name = "nobody comes back", .gone = true },
		{ .name = "something waits already", .already = true },
		{ .name = "we are in a user namespace", .ours = true },
		{ .name = "the container has one", .containers = true },
		{ .name = "we are not root", .uid = 1000 },
		{ .name = "we may not mount", .may_not_mount = true },
	};
	struct creation creation;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_plan *before = rows[i].already ? graft_plan_new() : NULL;
		const struct graft_oci_waiting *waiting = &creation.create.waiting;

		print_message("# %s\n", rows[i].name);
		begin_waiting(&creation, *state);
		creation.create.comes_back = !rows[i].gone;
		creation.create.waiting.plan = before;
		creation.spec.new_user_namespace = rows[i].containers;
		host.user_namespace = rows[i].ours;
		host.uid = rows[i].uid;
		host.may_not_mount = rows[i].may_not_mount;
		assert_int_equal(graft_start_give(&creation.create, &cover_plan, NULL, NULL, NULL), 0);
		assert_int_equal(strstr(creation_text(&creation), "\"apply\"") == NULL, rows[i].waits);
		if (rows[i].waits) {
			assert_int_equal(waiting->plan->n_edits, 1);
			assert_string_equal(waiting->plan->edits[0].target, cover[0].target);
			assert_true(waiting->inode != 0);
		} else {
			assert_ptr_equal(waiting->plan, before);
			assert_int_equal(waiting->inode, 0);
		}
		graft_oci_waiting_done(&creation.create.waiting);
		creation_done(&creation);
	}
}

/* A second plan without anything to wait for keeps what is waiting. */
static void test_waiting_stays(void **state)
{
	struct creation creation;
	struct graft_plan *waits;

	begin_waiting(&creation, *state);
	assert_int_equal(graft_start_give(&creation.create, &cover_plan, NULL, NULL, NULL), 0);
	waits = creation.create.waiting.plan;
	assert_non_null(waits);
	assert_int_equal(
	    graft_start_give(&creation.create, &(struct graft_plan){ .edits = edits, .n_edits = 1 }, NULL, NULL, NULL),
	    0);
	assert_ptr_equal(creation.create.waiting.plan, waits);
	graft_oci_waiting_done(&creation.create.waiting);
	creation_done(&creation);
}

static void test_waiting_memory(void **state)
{
	int n = 1;

	for (bool failed = true; failed; n++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct creation creation;
		int rc;

		begin_waiting(&creation, *state);
		creation.create.log = NULL;
		allocation_fail(n);
		rc = graft_start_give(&creation.create, &cover_plan, NULL, NULL, &err);
		failed = allocation_failed();
		assert_int_equal(creation.create.waiting.plan != NULL, rc == 0);
		assert_int_equal(err.status, rc == 0 ? GRAFT_OK : GRAFT_NO_MEMORY);
		assert_true(rc == 0 || failed);
		assert_string_equal(creation_text(&creation), "{}");
		graft_oci_waiting_done(&creation.create.waiting);
		creation_done(&creation);
	}
	assert_true(n > 3);
}

static void test_memory(void **state)
{
	for (int n = 1;; n++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
		struct creation creation;
		int rc;

		assert_non_null(arena);
		creation_init(&creation, arena);
		creation.create.log = NULL;
		allocation_fail(n);
		rc = graft_start_give(&creation.create, &plan, NULL, NULL, &err);
		if (!allocation_reported(rc, &err)) {
			creation_done(&creation);
			graft_arena_free(arena);
			assert_true(n > 3);
			return;
		}
		assert_string_equal(creation_text(&creation), "{}");
		creation_done(&creation);
		graft_arena_free(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_image, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_disabled_hooks, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_bound_nodes, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_lines, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_edits, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_links, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_links_that_fail, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_waiting, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_waiting_stays, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_waiting_memory, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_memory, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
