/* SPDX-License-Identifier: Apache-2.0 */
/* host_mounts: which mounts of edits become edits of a plan, and what config.json keeps. */
#include "../unit.h"
#include "creation.h"
#include "start/host_mounts.h"

#include <sys/socket.h>
#include <sys/un.h>

#define OPTIONS_MAX 4
#define REFUSED                                                                                                  \
	"the mount at /t/x cannot be made in a directory of the host, %s: only files, sockets and directories, " \
	"without propagation, can"

static bool binds_nodes;

bool __wrap_graft_start_binds_nodes(const struct graft_start *create);
bool __wrap_graft_start_binds_nodes(const struct graft_start *create)
{
	(void)create;
	return binds_nodes;
}

struct mount_row {
	const char *source, *path; /* '@' = the directory of the test */
	const char *type;
	const char *options[OPTIONS_MAX];
};

/* What stays in the edits, and the edits of the plan: "SOURCE at PATH, TYPE, FLAGS, MODE". */
static const char *text_of(const struct world *world, const struct graft_cdi_edits *edits,
			   const struct graft_start *create)
{
	struct graft_buffer out = { .max = 0 };
	size_t length = strlen(world->directory);
	const char *text;

	for (size_t i = 0; i < edits->n_mounts; i++)
		graft_buffer_printf(&out, "stays %s\n", edits->mounts[i].container_path);
	for (size_t i = 0; i < create->n_edits; i++) {
		const struct graft_edit *edit = &create->edits[i];

		assert_int_equal(edit->kind, GRAFT_EDIT_BIND);
		assert_false(edit->optional);
		graft_buffer_printf(&out, "%s at %s, %s, %x, %o\n", edit->source + length, edit->target,
				    graft_source_type_names[edit->type], edit->flags, edit->mode);
	}
	text = graft_arena_strdup(world->arena, graft_buffer_text(&out));
	graft_buffer_done(&out);
	return text;
}

static void fill(const struct world *world, const struct mount_row *rows, size_t n, struct graft_cdi_edits *edits)
{
	edits->mounts = graft_arena_list(world->arena, n, sizeof(*edits->mounts));
	for (edits->n_mounts = 0; edits->n_mounts < n && rows[edits->n_mounts].path; edits->n_mounts++) {
		const struct mount_row *row = &rows[edits->n_mounts];
		struct graft_cdi_mount *mount = &edits->mounts[edits->n_mounts];

		mount->host_path = world_text(world, row->source);
		mount->container_path = row->path;
		mount->type = row->type;
		mount->options = graft_arena_memdup(world->arena, row->options, sizeof(row->options));
		while (mount->n_options < OPTIONS_MAX && row->options[mount->n_options])
			mount->n_options++;
	}
}

static void test_take(void **state)
{
	static const struct {
		struct mount_row mounts[3];
		const char *want;
	} rows[] = {
		{ { { "@d", "/t", NULL, { "rw", "rbind" } } }, "/d at /t, directory, 10, 755\n" },
		{ { { "@d", "/t/../u/", "bind", { NULL } } }, "/d at /u, directory, 0, 755\n" },
		{ { { "@d", "/t", NULL, { "ro", "nosuid", "noexec", "bind" } } }, "/d at /t, directory, b, 755\n" },
		/* the last of two options that contradict each other */
		{ { { "@d", "/t", NULL, { "ro", "nodev", "rw", "bind" } } }, "/d at /t, directory, 4, 755\n" },
		{ { { "@link", "/t", NULL, { "bind", "private" } } }, "/link at /t, directory, 0, 755\n" },
		/* a file alone stays; in a directory it does not, wherever it stands */
		{ { { "@d/file", "/f", NULL, { "bind" } } }, "stays /f\n" },
		{ { { "@d/file", "/t/f", NULL, { "ro", "bind" } },
		    { "@d", "/t", NULL, { "bind" } },
		    { "@d/file", "/tf", NULL, { "bind" } } },
		  "stays /tf\n/d/file at /t/f, file, 1, 644\n/d at /t, directory, 0, 755\n" },
		{ { { "@d/socket", "/t/s", NULL, { "bind" } }, { "@d", "/t", NULL, { "bind" } } },
		  "/d/socket at /t/s, socket, 0, 644\n/d at /t, directory, 0, 755\n" },
		/* what an edit cannot say */
		{ { { "@d", "/t", NULL, { "bind", "rslave" } } }, "stays /t\n" },
		{ { { "@d", "/t", NULL, { "bind", "rro" } } }, "stays /t\n" },
		{ { { "@d", "/t", "tmpfs", { "rw" } } }, "stays /t\n" },
		{ { { "@missing", "/t", NULL, { "bind" } } }, "stays /t\n" },
		{ { { "@d", "/t", NULL, { "bind", "noatime" } } }, "/d at /t, directory, 0, 755\n" },
		/* what cannot be in a directory, by the device's choice */
		{ { { "@d", "/t", NULL, { "bind" } }, { "@d", "/t/x", "tmpfs", { "rw" } } }, NULL },
		{ { { "@d/file", "/t/x", NULL, { "bind", "slave" } }, { "@d", "/t", NULL, { "bind" } } }, NULL },
		/* a masked one stays hidden */
		{ { { "@d", "/masked", NULL, { "bind" } } }, "stays /masked\n" },
		{ { { "@d", "/t", NULL, { "bind" } },
		    { "@d", "/t/x", NULL, { "bind" } },
		    { "@d", "/u", "tmpfs", { NULL } } },
		  "stays /u\n/d at /t, directory, 0, 755\n/d at /t/x, directory, 0, 755\n" },
	};
	struct world *world = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	world_put(world, "d/file", "", 0644);
	assert_int_equal(symlink("d", world_path(world, "link")), 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", world_path(world, "d/socket"));
	assert_int_equal(bind(socket_fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	(void)close(socket_fd);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_cdi_edits edits = { .n_mounts = 0 };
		struct graft_error err = { .status = GRAFT_OK };
		const char *masked = "/masked/x";
		struct creation creation;
		int rc;

		creation_init(&creation, world->arena);
		fill(world, rows[i].mounts, GRAFT_COUNT(rows[i].mounts), &edits);
		creation.spec.masked_paths = &masked;
		creation.spec.n_masked_paths = 1;
		rc = graft_start_take_host_directories(&creation.create, &edits, &err);
		assert_int_equal(rc, rows[i].want ? 0 : -1);
		if (rows[i].want)
			assert_string_equal(text_of(world, &edits, &creation.create), rows[i].want);
		else
			assert_string_equal(err.msg, graft_arena_printf(world->arena, REFUSED, world_path(world, "d")));
		creation_done(&creation);
	}
}

/* There the low-level runtime mounts it, wherever config.json mounts something. */
static void test_user_namespace(void **state)
{
	static const struct mount_row mounts[] = { { "@d", "/t", NULL, { "rw", "rbind" } } };
	struct graft_oci_mount inside = { .destination = "/t/x" };
	struct graft_edit edit = {
		.kind = GRAFT_EDIT_BIND, .source = "/host", .target = "/t", .type = GRAFT_SOURCE_DIRECTORY
	};
	const struct graft_plan plan = { .edits = &edit, .n_edits = 1 };
	struct graft_cdi_edits edits = { .n_mounts = 0 };
	struct world *world = *state;
	struct creation creation;

	creation_init(&creation, world->arena);
	world_put(world, "d/file", "", 0644);
	fill(world, mounts, 1, &edits);
	creation.spec.mounts = &inside;
	creation.spec.n_mounts = 1;
	binds_nodes = true;
	assert_int_equal(graft_start_take_host_directories(&creation.create, &edits, NULL), 0);
	assert_string_equal(text_of(world, &edits, &creation.create), "stays /t\n");
	assert_ptr_equal(graft_start_join_edits(&creation.create, &plan, NULL), &plan);
	binds_nodes = false;
	creation_done(&creation);
}

/* config.json with these mounts; `spec` is its view. */
static void put_mounts(struct creation *creation, const char *mounts)
{
	const char *text = graft_arena_printf(creation->create.arena, "{\"mounts\":[%s]}", mounts);

	graft_json_document_free(creation->create.document);
	assert_int_equal(graft_json_document_parse("config.json", text, strlen(text), &creation->create.document, NULL),
			 0);
	assert_int_equal(graft_oci_spec_read(creation->create.document, creation->create.arena, &creation->spec, NULL),
			 0);
}

static void test_add(void **state)
{
	static const struct {
		const char *mounts, *left, *refused;
	} rows[] = {
		{ "", "", NULL },
		{ "{\"destination\":\"/t\",\"type\":\"bind\"}", "", NULL },
		{ "{\"destination\":\"/u/../t/\",\"options\":[\"ro\",\"rbind\"]}", "", NULL },
		{ "{\"destination\":\"/t\",\"type\":\"tmpfs\"}", "{\"destination\":\"/t\",\"type\":\"tmpfs\"}", NULL },
		{ "{\"destination\":\"/tt/x\",\"type\":\"bind\"},{\"destination\":\"/\"},{}",
		  "{\"destination\":\"/tt/x\",\"type\":\"bind\"},{\"destination\":\"/\"},{}", NULL },
		{ "{\"destination\":\"/t/x/y\",\"type\":\"tmpfs\"}", NULL, "/t/x/y" },
		{ "{\"destination\":\"t//x\"}", NULL, "t//x" },
	};
	struct graft_edit link = { .kind = GRAFT_EDIT_SYMLINK, .target = "/l" };
	const struct graft_plan plan = { .edits = &link, .n_edits = 1 };
	struct world *world = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_edit edit = {
			.kind = GRAFT_EDIT_BIND, .source = "/host", .target = "/t", .type = GRAFT_SOURCE_DIRECTORY
		};
		struct graft_error err = { .status = GRAFT_OK };
		const struct graft_plan *whole;
		struct creation creation;

		creation_init(&creation, world->arena);
		put_mounts(&creation, rows[i].mounts);
		creation.create.edits = &edit;
		creation.create.n_edits = 1;
		whole = graft_start_join_edits(&creation.create, &plan, &err);
		if (rows[i].refused) {
			assert_null(whole);
			assert_int_equal(err.status, GRAFT_INVALID);
			assert_string_equal(err.msg, graft_arena_printf(world->arena,
									"the mount at %s would be made in a directory "
									"of the host, /host",
									rows[i].refused));
			assert_string_equal(err.hint, "Mount it elsewhere.");
		} else {
			assert_non_null(whole);
			assert_int_equal(whole->n_edits, 2);
			assert_string_equal(whole->edits[1].target, "/t");
			assert_string_equal(creation_text(&creation),
					    graft_arena_printf(world->arena, "{\"mounts\":[%s]}", rows[i].left));
			/* They are given once. */
			assert_ptr_equal(graft_start_join_edits(&creation.create, &plan, &err), &plan);
		}
		creation_done(&creation);
	}
}

static void add_bind(struct creation *creation, const char *target, bool directory, uint32_t flags)
{
	struct graft_edit *edit = graft_arena_push(creation->create.arena, &creation->create.edits,
						   &creation->create.n_edits, sizeof(*edit));

	assert_non_null(edit);
	*edit = (struct graft_edit){ .kind = GRAFT_EDIT_BIND,
				     .source = "/host",
				     .target = target,
				     .type = directory ? GRAFT_SOURCE_DIRECTORY : GRAFT_SOURCE_FILE,
				     .flags = flags };
}

/* Where directories, the first two, and a file are, as links of the image lead. */
static void test_places(void **state)
{
	static const struct {
		const char *first, *second, *file;
		bool writable;
		const char *places;
	} rows[] = {
		{ "/opt/x", "/t", "/opt/x/f", false, "/opt/y /t /opt/y/f" },
		{ "/opt/x", "/opt/x/in", "/opt/x/in/f", false, "/opt/y /opt/y/in /opt/y/in/f" },
		{ "/opt/x/in", "/opt/x", "/opt/x/f", false, "/opt/y/in /opt/y /opt/y/f" },
		/* The image's link in the directory does not count, nor one elsewhere. */
		{ "/opt/y", "/t", "/opt/y/away", false, "/opt/y /t /opt/y/away" },
		{ "/t", "/u", "/opt/x/f", false, "/t /u /opt/x/f" },
		/* A directory that can be written to keeps its name, and a link may lead none over another. */
		{ "/opt/x", "/t", "/opt/y/f", true, "/opt/x /t /opt/y/f" },
		{ "/opt/x", "/opt/y", "/t/f", false, "/opt/x /opt/y /t/f" },
		{ "/opt/x", "/t", "/opt/y/f", false, "/opt/x /t /opt/y/f" },
		/* The same name by another path is the same directory. */
		{ "/lib/v", "/usr/lib/v", "/usr/lib/v/f", true, "/usr/lib/v /usr/lib/v /usr/lib/v/f" },
	};
	static const struct {
		const char *at, *to;
	} links[] = { { "image/opt/x", "y" }, { "image/opt/y/away", "/etc/foo" }, { "image/lib", "usr/lib" } };
	struct world *world = *state;

	world_put(world, "image/opt/y/f", "", 0644);
	world_put(world, "image/usr/lib/f", "", 0644);
	for (size_t i = 0; i < GRAFT_COUNT(links); i++)
		assert_int_equal(symlink(links[i].to, world_path(world, links[i].at)), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const uint32_t flags = rows[i].writable ? 0u : (uint32_t)GRAFT_MOUNT_RDONLY;
		const struct graft_plan plan = { .n_edits = 0 };
		const struct graft_plan *whole;
		struct creation creation;

		creation_init(&creation, world->arena);
		creation.spec.root_path = world_path(world, "image");
		creation.create.budget = graft_budget_new(10000);
		assert_non_null(creation.create.budget);
		add_bind(&creation, rows[i].first, true, flags);
		add_bind(&creation, rows[i].second, true, flags);
		add_bind(&creation, rows[i].file, false, GRAFT_MOUNT_RDONLY);
		whole = graft_start_join_edits(&creation.create, &plan, NULL);
		assert_non_null(whole);
		assert_int_equal(whole->n_edits, 3);
		assert_string_equal(graft_arena_printf(world->arena, "%s %s %s", whole->edits[0].target,
						       whole->edits[1].target, whole->edits[2].target),
				    rows[i].places);
		creation.create.budget = graft_budget_free(creation.create.budget);
		creation_done(&creation);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_take, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_user_namespace, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_add, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_places, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
