/* SPDX-License-Identifier: Apache-2.0 */
/* check_places: which documents are refused, and with which message. */
#include "../unit.h"
#include "apply/oci/oci_edits.h"
#include "creation.h"
#include "start/check_places.h"
#include "start/give.h"

struct document {
	const char *mounts; /* "DESTINATION TYPE SOURCE", separated by ';'; the source is in the world */
	const char *ours;   /* "DESTINATION rw|ro SOURCE", added by us; each a bind */
	const char *node, *our_node, *cwd;
	const char *refused; /* the message, with the world's directory for "@"; NULL: it is not refused */
};

/* An overlay has the source below, and with ",DIRECTORY" that above. */
static const char *mount_json(struct world *world, const char *text)
{
	char destination[96], type[16], source[64] = "none", above[64] = "empty-above";
	int n = sscanf(text, "%95s %15s %63[^,],%63s", destination, type, source, above);
	bool is_overlay = strcmp(type, "overlay") == 0 && n >= 3, copies = strcmp(type, "tmpcopyup") == 0;
	const char *options = strcmp(type, "bind") == 0 ? "rbind" : copies ? "tmpcopyup" : "nosuid";

	assert_true(n >= 2);
	if (is_overlay)
		options = graft_arena_printf(world->arena, "lowerdir=%s\", \"upperdir=%s", world_path(world, source),
					     world_path(world, above));
	return graft_arena_printf(
	    world->arena, "{\"destination\": \"%s\", \"type\": \"%s\", \"source\": \"%s\", \"options\": [\"%s\"]}",
	    destination, copies ? "tmpfs" : type, n >= 3 ? world_path(world, source) : source, options);
}

static const char *document_text(struct world *world, const struct document *row)
{
	const char *mounts = "", *rest = row->mounts;

	while (rest && *rest != '\0') {
		size_t length = strcspn(rest, ";");

		mounts = graft_arena_printf(world->arena, "%s%s%s", mounts, mounts[0] == '\0' ? "" : ", ",
					    mount_json(world, graft_arena_strndup(world->arena, rest, length)));
		rest += length + (rest[length] == ';');
	}
	return graft_arena_printf(world->arena,
				  "{\"root\": {\"path\": \"%s\"}, \"process\": {\"cwd\": \"%s\"}, \"mounts\": [%s], "
				  "\"linux\": {\"devices\": [%s%s%s]}}",
				  world_path(world, "root"), row->cwd ? row->cwd : "/", mounts,
				  row->node ? "{\"type\": \"c\", \"path\": \"" : "", row->node ? row->node : "",
				  row->node ? "\"}" : "");
}

static void add_ours(struct world *world, struct creation *creation, const struct document *row)
{
	struct graft_cdi_node node = { .path = row->our_node, .host_path = "/dev/null" };
	struct graft_cdi_edits edits = { .nodes = &node, .n_nodes = row->our_node ? 1 : 0 };
	const char *rest = row->ours;

	while (rest && *rest != '\0') {
		char destination[64], option[16], source[64];
		const char **options = graft_arena_list(world->arena, 2, sizeof(*options));
		struct graft_cdi_mount *mount = graft_arena_push(world->arena, &edits.mounts, &edits.n_mounts,
								 sizeof(*mount));

		assert_int_equal(sscanf(rest, "%63s %15s %63[^;]", destination, option, source), 3);
		options[0] = "rbind";
		options[1] = graft_arena_strdup(world->arena, option);
		*mount = (struct graft_cdi_mount){ .container_path = graft_arena_strdup(world->arena, destination),
						   .host_path = world_path(world, source),
						   .options = options,
						   .n_options = 2 };
		rest += strcspn(rest, ";");
		rest += *rest == ';';
	}
	assert_int_equal(graft_oci_apply_edits(creation->create.document, &edits, NULL), 0);
}

static void expect_documents(struct world *world, const struct document *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = document_text(world, &rows[i]);
		struct graft_error err = { .status = GRAFT_OK };
		struct creation creation;
		int rc;

		creation_init(&creation, world->arena);
		graft_json_document_free(creation.create.document);
		assert_int_equal(
		    graft_json_document_parse("config.json", text, strlen(text), &creation.create.document, NULL), 0);
		assert_int_equal(graft_oci_spec_read(creation.create.document, world->arena, &creation.spec, NULL), 0);
		add_ours(world, &creation, &rows[i]);
		creation.create.budget = graft_budget_new(10000);
		assert_int_equal(graft_start_look_at_mounts(&creation.create, NULL), 0);
		rc = graft_start_check_places(&creation.create, &err);
		print_message("# %zu: %s\n", i, rc == 0 ? "not refused" : err.msg);
		assert_int_equal(rc, rows[i].refused ? -1 : 0);
		if (rows[i].refused) {
			assert_int_equal(err.status, GRAFT_UNSAFE);
			assert_string_equal(err.msg, world_text(world, rows[i].refused));
		}
		creation.create.budget = graft_budget_free(creation.create.budget);
		creation_done(&creation);
	}
}

static void make_root(struct world *world)
{
	static const char *const directories[] = {
		"root/etc", "root/deep", "root/usr/lib", "root/tmp", "root/elsewhere/deep/x", "root/t", "volume",
		"host/old", "linked",    "devices",      "empty"
	};
	static const char *const links[][2] = {
		{ "root/var", "tmp" },
		{ "root/data", "/dev/dri" },
		{ "root/all", "/" },
		{ "root/loop", "loop" },
		{ "root/into", "/tmp/shared" },
		{ "root/deep/into", "/tmp/shared" },
		{ "root/kernel", "/proc/sys" },
		{ "root/net", "/sys/devices/virtual/net/lo/subsystem/../../../tmp/shared" },
		{ "root/covered", "/t/l/../../y" },
		{ "root/t/l", "/elsewhere/deep/x" },
		{ "root/y", "/dev" },
		{ "root/a", "/elsewhere/deep/x" },
		{ "devices/random", "/tmp/shared/x" },
		{ "linked/to", "/tmp/shared" },
		{ "linked/card", "/tmp/shared/chosen" },
		{ "linked/null", "/dev/null" },
		{ "linked/shm", "/dev/shm/x" },
		{ "linked/out", "/elsewhere/x" },
	};

	assert_int_equal(mkdir(world_path(world, "empty-above"), 0755), 0);
	for (size_t i = 0; i < GRAFT_COUNT(directories); i++)
		world_put(world, graft_arena_printf(world->arena, "%s/.keep", directories[i]), "", 0644);
	for (size_t i = 0; i < GRAFT_COUNT(links); i++)
		assert_int_equal(symlink(links[i][1], world_path(world, links[i][0])), 0);
}

#define LINK               "a link in the image or a volume leads the "
#define BELOW(what, where) "the " what " would be below " where ", whose links cannot be examined"
#define SHARED             "/tmp/shared rw host"

/* What the engine mounts, whatever we add. */
static void test_volumes(void **state)
{
	static const struct document rows[] = {
		{ "/dev tmpfs;/proc proc;/data/x tmpfs;/etc/x bind volume" },
		{ "/var/x bind volume" },
		{ "/all bind volume", .refused = LINK "mount at /all over the whole root" },
		{ "/ bind volume" },
		{ "/dev tmpfs;/data bind volume", .refused = LINK "mount at /data over /dev, /proc or /sys" },
		{ "/dev tmpfs;/data/new overlay", .refused = LINK "mount at /data/new over /dev, /proc or /sys" },
		{ "/proc proc;/kernel bind volume", .refused = BELOW("mount at /kernel", "/proc") },
		/* Links of the kernel's enter what is mounted in /sys. */
		{ "/sys sysfs;/sys/fs/cgroup cgroup2;/sys/kernel bind volume" },
		{ "/sys sysfs;/sys/class/net/lo/x bind volume",
		  .refused = BELOW("mount at /sys/class/net/lo/x", "/sys") },
		{ "/sys sysfs;/sys/class/net/other/x bind volume",
		  .refused = BELOW("mount at /sys/class/net/other/x", "/sys") },
		{ "/proc proc;/proc/mounts/x bind volume", .refused = BELOW("mount at /proc/mounts/x", "/proc") },
		/* crun makes nodes in a volume at /dev that it does not recognise. */
		{ "/dev tmpfs;/dev/ bind devices" },
		{ "/dev tmpfs;/./dev bind volume", .refused = LINK "mount at /./dev over /dev, /proc or /sys" },
		{ "/dev tmpfs;/dev/. bind volume", .refused = LINK "mount at /dev/. over /dev, /proc or /sys" },
		{ "/kernel bind volume", .refused = LINK "mount at /kernel over /dev, /proc or /sys" },
		{ "/all tmpfs", .refused = LINK "mount at /all over the whole root" },
		{ "/loop bind volume", .refused = LINK "mount at /loop to a place that cannot be determined" },
		{ "/loop/x tmpfs", .refused = LINK "mount at /loop/x to a place that cannot be determined" },
		{ "/a/.. bind volume", .refused = LINK "mount at /a/.. to a place that cannot be determined" },
		{ "/etc/../usr/x bind volume" },
		{ "/x overlay;/x/y tmpfs", .refused = BELOW("mount at /x/y", "/x") },
		{ "/dev/v bind linked;/dev/v/out bind volume" },
		{ "/dev devtmpfs;/dev/shm bind volume" },
		/* What processes have leads anywhere. */
		{ "/proc proc;/proc/cpuinfo bind volume;/proc/driver/nvidia tmpfs;/proc/sys/x bind volume" },
		{ "/proc proc;/proc/self/root/dev bind volume",
		  .refused = BELOW("mount at /proc/self/root/dev", "/proc") },
		{ "/proc proc;/proc/1/root tmpfs", .refused = BELOW("mount at /proc/1/root", "/proc") },
		{ "/proc proc;/proc/thread-self/x tmpfs", .refused = BELOW("mount at /proc/thread-self/x", "/proc") },
		{ "/proc proc;/proc/net/x tmpfs", .refused = BELOW("mount at /proc/net/x", "/proc") },
		{ "/x/p proc;/x/p/self/cwd tmpfs", .refused = BELOW("mount at /x/p/self/cwd", "/x/p") },
		{ "/dev tmpfs;/dev/fd/3 tmpfs", .refused = BELOW("mount at /dev/fd/3", "/dev") },
	};

	make_root(*state);
	expect_documents(*state, rows, GRAFT_COUNT(rows));
}

/* runc mounts its socket at one place, crun at another. */
static void test_notify_socket(void **state)
{
	static const struct document rows[] = {
		{ "/into/d tmpfs", SHARED, .refused = LINK "mount at /into/notify into a directory of the host" },
	};
	static const struct document linked[] = {
		{ "/run bind linked", "/v/w rw empty" },
		{ "/run bind linked", SHARED, .refused = LINK "mount at /run/notify into a directory of the host" },
	};
	struct world *world = *state;

	make_root(world);
	assert_int_equal(setenv("NOTIFY_SOCKET", "/into/notify", 1), 0);
	expect_documents(world, rows, GRAFT_COUNT(rows));
	assert_int_equal(symlink("/tmp/shared/y", world_path(world, "linked/notify")), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", "/run/other", 1), 0);
	expect_documents(world, linked, GRAFT_COUNT(linked));
	assert_int_equal(setenv("NOTIFY_SOCKET", "", 1), 0);
	expect_documents(world, &linked[0], 1);
	assert_int_equal(unlink(world_path(world, "linked/notify")), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", "/run/notify/notify.sock", 1), 0);
	expect_documents(world, &linked[0], 1);
	assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
}

static void test_nodes(void **state)
{
	static const struct document rows[] = {
		{ "/dev tmpfs", .node = "/dev/x", .our_node = "/dev/y" },
		{ "/dev tmpfs;/dev/dri bind linked", .our_node = "/dev/dri/card",
		  .refused = LINK "node /dev/dri/card out of /dev" },
		{ "/dev tmpfs;/dev/dri bind linked", .node = "/dev/dri/card",
		  .refused = LINK "node /dev/dri/card out of /dev" },
		{ "/dev tmpfs;/dev/dri bind linked", .our_node = "/dev/dri/null" },
		{ "/dev tmpfs;/dev/dri bind linked", .our_node = "/dev/dri/other" },
		{ "/dev tmpfs;/dev/shm bind volume;/dev/dri bind linked", .our_node = "/dev/dri/shm",
		  .refused = LINK "node /dev/dri/shm into a volume" },
		{ "/dev tmpfs;/dev/shm bind volume;/dev/dri bind linked", .our_node = "/dev/shm/x" },
		{ "/dev tmpfs", .node = "/var/x" },
		{ "/sys sysfs", SHARED, .node = "/net/x", .refused = BELOW("node /net/x", "/sys") },
		{ "/dev tmpfs", .node = "/loop/x",
		  .refused = LINK "node /loop/x to a place that cannot be determined" },
		{ "/dev tmpfs", SHARED, .node = "/into/x",
		  .refused = LINK "node /into/x into a directory of the host" },
		{ "/dev tmpfs", SHARED, .our_node = "/into/x",
		  .refused = LINK "node /into/x into a directory of the host" },
		/* Nodes that runtimes make unasked. */
		{ "/dev bind devices", .our_node = "/dev/x" },
		{ "/dev bind devices", SHARED, .our_node = "/dev/x",
		  .refused = LINK "node /dev/random into a directory of the host" },
		{ "/dev tmpfs", SHARED, .node = "/tmp/shared/x",
		  .refused = "the node /tmp/shared/x would be made in a directory of the host, @host" },
		{ "/dev tmpfs", SHARED, .our_node = "/tmp/shared/x" },
	};

	make_root(*state);
	expect_documents(*state, rows, GRAFT_COUNT(rows));
}

/* A directory of the host that we give. What the engine gives itself is the engine's. */
static void test_directories(void **state)
{
	static const struct document rows[] = {
		{ "/dev tmpfs", SHARED },
		{ "/tmp/shared bind host;/into/d/x bind volume" },
		{ "/into/d/x bind volume", SHARED, .refused = LINK "mount at /into/d/x into a directory of the host" },
		{ "/into/d/x tmpfs", SHARED, .refused = LINK "mount at /into/d/x into a directory of the host" },
		{ "/into bind volume", SHARED },
		{ "/tmp/shared/new bind volume", SHARED,
		  .refused = "the mount at /tmp/shared/new would be made in a directory of the host, @host" },
		{ "/tmp/shared/old bind volume;/tmp/shared/old/new tmpfs", SHARED },
		{ "/linked bind linked;/linked/to/x bind volume", SHARED,
		  .refused = LINK "mount at /linked/to/x into a directory of the host" },
		{ "/v bind linked", "/v/to/y rw host" },
		{ "/dev tmpfs", "/data rw host", .refused = LINK "mount at /data over /dev, /proc or /sys" },
		{ "/dev tmpfs", "/all rw host", .refused = LINK "mount at /all over the whole root" },
		/* What is made before the directory is there is not made in it. */
		{ "/into/x bind volume", SHARED },
		/* What the host has is mounted over; by links only if the directory is read-only. */
		{ "/deep/into/old bind volume", "/tmp/shared ro host" },
		{ "/deep/into/old bind volume", SHARED,
		  .refused = LINK "mount at /deep/into/old into a directory of the host" },
		/* Ours, in ours; unless a volume in it leads it elsewhere. */
		{ "/dev tmpfs", SHARED ";/tmp/shared/new rw empty" },
		{ "/tmp/shared/old bind linked", SHARED ";/tmp/shared/old/other rw empty" },
		{ "/tmp/shared/old bind linked", SHARED ";/tmp/shared/old/card rw empty",
		  .refused = "the mount at /tmp/shared/old/card would be made in a directory of the host, @host" },
		{ "/tmp/shared/old bind linked", SHARED, .our_node = "/tmp/shared/old/card",
		  .refused = "the node /tmp/shared/old/card would be made in a directory of the host, @host" },
		/* A tmpfs that gets what it covers has the image's links. */
		{ "/ tmpfs", SHARED, .cwd = "/into/new" },
		{ "/ tmpcopyup", SHARED, .cwd = "/into/new",
		  .refused = LINK "working directory /into/new into a directory of the host" },
		/* An overlay of one directory has what that has. */
		{ "/v overlay linked;/v/x/y tmpfs" },
		{ "/v overlay linked;/v/to/x/y tmpfs", SHARED,
		  .refused = LINK "mount at /v/to/x/y into a directory of the host" },
		{ "/v overlay linked,volume;/v/x/y tmpfs", .refused = BELOW("mount at /v/x/y", "/v") },
		{ "/v overlay linked,host;/v/x/y tmpfs", .refused = BELOW("mount at /v/x/y", "/v") },
		{ "/ ext4;/into/d/x tmpfs" },
		/* A file is nothing to make something in. */
		{ "/into/x bind volume", "/tmp/shared rw host/old/.keep" },
		{ "/dev tmpfs", SHARED, .cwd = "/tmp/shared" },
		{ "/dev tmpfs", SHARED, .cwd = "/into/old" },
		{ "/dev tmpfs", SHARED, .cwd = "/into/new",
		  .refused = LINK "working directory /into/new into a directory of the host" },
		{ "/dev tmpfs", SHARED, .cwd = "/tmp/shared/new",
		  .refused = "the working directory /tmp/shared/new would be made in a directory of the host, @host" },
		{ "/proc proc", SHARED, .cwd = "/proc/self/root/tmp/shared/new",
		  .refused = BELOW("working directory /proc/self/root/tmp/shared/new", "/proc") },
		{ "/dev tmpfs", SHARED, .cwd = "/dev/fd/../root/tmp/shared/new",
		  .refused = LINK
		  "working directory /dev/fd/../root/tmp/shared/new to a place that cannot be determined" },
		/* "subsystem" is a link to a place of less depth. */
		{ "/sys sysfs", SHARED, .cwd = "/net/x", .refused = BELOW("working directory /net/x", "/sys") },
		{ "/sys sysfs;/net/x tmpfs", SHARED, .refused = BELOW("mount at /net/x", "/sys") },
		{ "/proc proc", SHARED, .cwd = "/kernel/x", .refused = BELOW("working directory /kernel/x", "/proc") },
		{ "/sys sysfs;/sys/devices/virtual/net/lo/subsystem/../../../tmp/shared/new tmpfs", SHARED,
		  .refused = LINK
		  "mount at /sys/devices/virtual/net/lo/subsystem/../../../tmp/shared/new to a place that "
		  "cannot be determined" },
		{ "/dev tmpfs", SHARED, .cwd = "/loop",
		  .refused = LINK "working directory /loop to a place that cannot be determined" },
		{ "/dev tmpfs", .cwd = "/loop" },
	};

	make_root(*state);
	expect_documents(*state, rows, GRAFT_COUNT(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_volumes, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_notify_socket, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_nodes, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_directories, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
