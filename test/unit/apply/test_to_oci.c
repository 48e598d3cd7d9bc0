/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan in an OCI configuration: what each edit becomes, what is done in the root at once, what is
 * left to a single hook, and that a failure leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../allocation.h"
#include "../folder.h"
#include "../unit.h"
#include "apply/oci/plan_to_edits.h"
#include "apply/temporary.h"
#include "base/budget.h"
#include "base/cleanup.h"

#define HOOK         "/usr/bin/nvidia-cdi-hook"
#define FILE_FLAGS   ((uint32_t)GRAFT_MOUNT_RDONLY | (uint32_t)GRAFT_MOUNT_NOSUID | (uint32_t)GRAFT_MOUNT_NODEV)
#define SOCKET_FLAGS ((uint32_t)GRAFT_MOUNT_NOSUID | (uint32_t)GRAFT_MOUNT_NODEV | (uint32_t)GRAFT_MOUNT_NOEXEC)

/* ---- edits ---- */

static void show(const struct graft_cdi_edits *edits, const struct graft_plan *rest, struct graft_buffer *out)
{
	for (size_t i = 0; i < edits->n_env; i++)
		graft_buffer_printf(out, "env %s\n", edits->env[i]);
	for (size_t i = 0; i < edits->n_nodes; i++) {
		const struct graft_cdi_node *node = &edits->nodes[i];

		graft_buffer_printf(out, "node %s%s%s %s %lld:%lld", node->path, node->host_path ? " from " : "",
				    node->host_path ? node->host_path : "", node->type, (long long)node->major,
				    (long long)node->minor);
		if (node->has_mode)
			graft_buffer_printf(out, " %o", node->mode);
		if (node->has_gid)
			graft_buffer_printf(out, " gid %u", node->gid);
		if (node->has_uid)
			graft_buffer_printf(out, " uid %u", node->uid);
		graft_buffer_printf(out, " [%s]\n", node->permissions ? node->permissions : "rwm");
	}
	for (size_t i = 0; i < edits->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &edits->mounts[i];

		graft_buffer_printf(out, "mount %s at %s", mount->host_path, mount->container_path);
		for (size_t j = 0; j < mount->n_options; j++)
			graft_buffer_printf(out, "%c%s", j == 0 ? ' ' : ',', mount->options[j]);
		graft_buffer_char(out, '\n');
	}
	for (size_t i = 0; i < edits->n_gids; i++)
		graft_buffer_printf(out, "gid %u\n", edits->gids[i]);
	for (size_t i = 0; rest && i < rest->n_edits; i++)
		graft_buffer_printf(out, "rest %s %s%s%s\n", graft_edit_names[rest->edits[i].kind],
				    rest->edits[i].target ? rest->edits[i].target : "",
				    rest->edits[i].conflict == GRAFT_CONFLICT_OVERWRITE ? " overwrites" : "",
				    rest->edits[i].kind == GRAFT_EDIT_BIND ? rest->edits[i].source : "");
}

static const struct {
	const char *name;
	struct graft_edit edits[6];
	struct graft_oci_options options;
	const char *want; /* NULL = refused */
} rows[] = {
	{ "nothing", { { .kind = GRAFT_EDIT_MAX } }, { .log = NULL }, "" },
	{ "a file",
	  { { .kind = GRAFT_EDIT_BIND, .source = "/r/lib.so", .target = "/lib.so", .flags = FILE_FLAGS } },
	  { .log = NULL },
	  "mount /r/lib.so at /lib.so ro,nosuid,nodev,rbind,rprivate\n" },
	{ "a socket, which is no file",
	  { { .kind = GRAFT_EDIT_BIND, .source = "/run/s", .target = "/run/s", .flags = SOCKET_FLAGS } },
	  { .log = NULL },
	  "mount /run/s at /run/s nosuid,nodev,rbind,rprivate,noexec\n" },
	{ "mounts by depth, then by name",
	  { { .kind = GRAFT_EDIT_BIND, .source = "/1", .target = "/b/c/a" },
	    { .kind = GRAFT_EDIT_BIND, .source = "/2", .target = "/b" },
	    { .kind = GRAFT_EDIT_BIND, .source = "/3", .target = "/a/x" },
	    { .kind = GRAFT_EDIT_BIND, .source = "/4", .target = "/a" } },
	  { .log = NULL },
	  "mount /4 at /a rbind,rprivate\nmount /2 at /b rbind,rprivate\nmount /3 at /a/x rbind,rprivate\n"
	  "mount /1 at /b/c/a rbind,rprivate\n" },
	{ "directories of the host, and what is mounted in them, last",
	  { { .kind = GRAFT_EDIT_BIND, .source = "/1", .target = "/b/c", .type = GRAFT_SOURCE_SOCKET },
	    { .kind = GRAFT_EDIT_BIND, .source = "/2", .target = "/b", .type = GRAFT_SOURCE_DIRECTORY },
	    { .kind = GRAFT_EDIT_BIND, .source = "/3", .target = "/bc" },
	    { .kind = GRAFT_EDIT_BIND, .source = "/4", .target = "/a", .type = GRAFT_SOURCE_DIRECTORY },
	    { .kind = GRAFT_EDIT_SYMLINK, .target = "/k", .content = "x" },
	    { .kind = GRAFT_EDIT_BIND, .source = "/5", .target = "/b", .type = GRAFT_SOURCE_DIRECTORY } },
	  { .log = NULL },
	  "mount /3 at /bc rbind,rprivate\nrest symlink /k\nrest bind /a/4\nrest bind /b/5\nrest bind /b/c/1\n" },
	{ "directories of the host for an engine",
	  { { .kind = GRAFT_EDIT_BIND, .source = "/2", .target = "/b", .type = GRAFT_SOURCE_DIRECTORY } },
	  { .mount_directories = true },
	  "mount /2 at /b rbind,rprivate\n" },
	{ "a node with its rule, wherever that stands",
	  { { .kind = GRAFT_EDIT_CGROUP, .major = 195, .minor = 1, .access = "rwm" },
	    { .kind = GRAFT_EDIT_DEVICE,
	      .source = "/dev/n",
	      .target = "/dev/n",
	      .major = 195,
	      .minor = 0,
	      .mode = 0666 },
	    { .kind = GRAFT_EDIT_CGROUP, .major = 195, .minor = 0, .access = "rw" },
	    { .kind = GRAFT_EDIT_DEVICE, .source = "/r/dev/m", .target = "/dev/m", .major = 195, .minor = 1 } },
	  { .log = NULL },
	  "node /dev/m from /r/dev/m c 195:1 [rwm]\nnode /dev/n c 195:0 666 [rw]\n" },
	{ "a node without a rule is there to be seen",
	  { { .kind = GRAFT_EDIT_DEVICE, .source = "/dev/n", .target = "/dev/n", .major = 195, .minor = 0 } },
	  { .log = NULL },
	  "node /dev/n c 195:0 []\n" },
	{ "a node twice",
	  { { .kind = GRAFT_EDIT_DEVICE,
	      .source = "/dev/n",
	      .target = "/dev/n",
	      .major = 195,
	      .minor = 0,
	      .gid = 44,
	      .mode = 0660 },
	    { .kind = GRAFT_EDIT_DEVICE,
	      .source = "/dev/n",
	      .target = "/dev/n",
	      .major = 195,
	      .minor = 0,
	      .gid = 44,
	      .mode = 0660 } },
	  { .log = NULL },
	  "node /dev/n c 195:0 660 gid 44 []\ngid 44\n" },
	{ "groups: only where others may not read and write (SPEC 14.17), each once, in order; never an owner",
	  { { .kind = GRAFT_EDIT_DEVICE,
	      .target = "/dev/a",
	      .major = 1,
	      .minor = 1,
	      .mode = 0664,
	      .gid = 106,
	      .uid = 11 },
	    { .kind = GRAFT_EDIT_DEVICE, .target = "/dev/b", .major = 1, .minor = 2, .mode = 0662, .gid = 44 },
	    { .kind = GRAFT_EDIT_DEVICE, .target = "/dev/c", .major = 1, .minor = 3, .mode = 0660, .gid = 44 },
	    { .kind = GRAFT_EDIT_DEVICE, .target = "/dev/d", .major = 1, .minor = 4, .mode = 0666, .gid = 45 },
	    { .kind = GRAFT_EDIT_DEVICE, .target = "/dev/e", .major = 1, .minor = 5, .mode = 0660, .gid = 0 },
	    { .kind = GRAFT_EDIT_DEVICE, .target = "/dev/f", .major = 1, .minor = 6, .mode = 0, .gid = 46 } },
	  { .log = NULL },
	  "node /dev/a c 1:1 664 gid 106 []\nnode /dev/b c 1:2 662 gid 44 []\nnode /dev/c c 1:3 660 gid 44 []\n"
	  "node /dev/d c 1:4 666 gid 45 []\nnode /dev/e c 1:5 660 []\nnode /dev/f c 1:6 gid 46 []\n"
	  "gid 44\ngid 106\n" },
	{ "groups: none by configuration",
	  { { .kind = GRAFT_EDIT_DEVICE, .target = "/dev/c", .major = 1, .minor = 3, .mode = 0660, .gid = 44 } },
	  { .no_additional_gids = true },
	  "node /dev/c c 1:3 660 gid 44 []\n" },
	{ "a rule without its node is refused",
	  { { .kind = GRAFT_EDIT_CGROUP, .major = 195, .minor = 0, .access = "rw" } },
	  { .log = NULL },
	  NULL },
	{ "variables, the empty one too",
	  { { .kind = GRAFT_EDIT_ENV, .target = "A", .content = "1" }, { .kind = GRAFT_EDIT_ENV, .target = "B" } },
	  { .log = NULL },
	  "env A=1\nenv B=\n" },
	{ "what neither they nor a runtime can do, in order",
	  { { .kind = GRAFT_EDIT_DIRECTORY, .target = "/d" },
	    { .kind = GRAFT_EDIT_FILE, .target = "/d/f" },
	    { .kind = GRAFT_EDIT_SYMLINK,
	      .target = "/l",
	      .content = "x",
	      .source = "/h",
	      .conflict = GRAFT_CONFLICT_REPLACE },
	    { .kind = GRAFT_EDIT_SYMLINK, .target = "/k", .content = "x" },
	    { .kind = GRAFT_EDIT_COVER, .target = "/proc/x" },
	    { .kind = GRAFT_EDIT_LDCACHE } },
	  { .log = NULL },
	  "rest directory /d\nrest file /d/f\nrest symlink /l overwrites\nrest symlink /k\nrest cover /proc/x\nrest "
	  "ldcache \n" },
};

static struct graft_plan plan_of(struct graft_edit *edits, size_t n_max)
{
	struct graft_plan plan = { .version = GRAFT_PLAN_VERSION, .edits = edits };

	while (plan.n_edits < n_max && edits[plan.n_edits].kind < GRAFT_EDIT_MAX &&
	       (edits[plan.n_edits].target || edits[plan.n_edits].major != 0 ||
		edits[plan.n_edits].kind == GRAFT_EDIT_LDCACHE))
		plan.n_edits++;
	for (size_t i = 0; i < plan.n_edits; i++) {
		edits[i].rule = "test";
		edits[i].why = "test";
	}
	return plan;
}

static void check_row(size_t row)
{
	struct graft_edit edits[GRAFT_COUNT(rows[0].edits)];
	struct graft_plan plan, *rest = NULL;
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_cdi_edits result;
	struct graft_buffer text = { 0 };
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	print_message("# %s\n", rows[row].name);
	memcpy(edits, rows[row].edits, sizeof(edits));
	plan = plan_of(edits, GRAFT_COUNT(edits));
	rc = graft_plan_to_edits(&plan, &rows[row].options, arena, &result, &rest, &err);
	assert_int_equal(rc, rows[row].want ? 0 : -1);
	if (rows[row].want) {
		show(&result, rest, &text);
		assert_string_equal(graft_buffer_text(&text), rows[row].want);
	} else {
		assert_int_equal(err.status, GRAFT_UNSUPPORTED);
	}
	graft_buffer_done(&text);
	graft_arena_free(arena);
}

static void test_edits(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		check_row(i);
}

/* ---- bundles ---- */

struct bundle {
	char top[64];
	char config[1024];
	struct graft_arena *arena;
};

static void put(const struct bundle *b, const char *path, const char *content)
{
	char full[PATH_MAX];

	(void)snprintf(full, sizeof(full), "%s/%s", b->top, path);
	if (content)
		test_put(AT_FDCWD, full, content);
	else
		test_make_parents(AT_FDCWD, full); /* "path/": a directory */
}

static void put_link(const struct bundle *b, const char *path, const char *text)
{
	char full[PATH_MAX];

	put(b, path, NULL);
	(void)snprintf(full, sizeof(full), "%s/%s", b->top, path);
	assert_int_equal(symlink(text, full), 0);
}

static int setup(void **state)
{
	struct bundle *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	(void)snprintf(b->top, sizeof(b->top), "/tmp/graft-to-oci.XXXXXX");
	assert_non_null(mkdtemp(b->top));
	b->arena = graft_arena_new((size_t)4 << 20);
	put(b, "rootfs/etc/", NULL);
	put(b, "rootfs/usr/lib/", NULL);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bundle *b = *state;

	assert_int_equal(test_remove_folder(b->top), 0);
	graft_arena_free(b->arena);
	free(b);
	return 0;
}

static struct graft_edit usual_edits[] = {
	{ .kind = GRAFT_EDIT_SYMLINK,
	  .target = "/usr/lib/libcuda.so.1",
	  .content = "libcuda.so.550",
	  .conflict = GRAFT_CONFLICT_OVERWRITE },
	{ .kind = GRAFT_EDIT_DIRECTORY, .target = "/etc/nvidia", .mode = 0555 },
	{ .kind = GRAFT_EDIT_FILE, .target = "/etc/nvidia/profile", .content = "profile", .mode = 0444 },
	{ .kind = GRAFT_EDIT_BIND, .source = "/dev/null", .target = "/usr/lib/libcuda.so.550", .flags = FILE_FLAGS },
	{ .kind = GRAFT_EDIT_LDCACHE, .musl_path_file = "/etc/ld-musl-x86_64.path", .musl_path = "/usr/lib\n" },
};

static struct graft_plan usual_plan(void)
{
	return plan_of(usual_edits, GRAFT_COUNT(usual_edits));
}

/* Applies the plan to the bundle's configuration; *ret_text is what would be written. */
static int apply(const struct bundle *b, const struct graft_plan *plan, const char *config,
		 struct graft_oci_options options, const char **ret_text, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_buffer text = { 0 };
	struct graft_oci_spec spec;
	int rc;

	assert_int_equal(graft_json_document_parse("config.json", config, strlen(config), &document, NULL), 0);
	assert_int_equal(graft_oci_spec_read(document, b->arena, &spec, NULL), 0);
	if (!options.hook_path)
		options.hook_path = HOOK;
	rc = graft_apply_to_oci(plan, b->top, &spec, &options, document, err);
	if (rc == 0) {
		assert_int_equal(graft_json_document_write(document, &text, NULL), 0);
		*ret_text = graft_arena_strdup(b->arena, graft_buffer_text(&text));
	}
	graft_buffer_done(&text);
	return rc;
}

/*
 * The plan that the hook gets, as "kind target" lines; "" = there is no hook. Fails if there is
 * more than one, or if its form is wrong.
 */
static const char *hook_of(const struct bundle *b, const char *config)
{
	auto_json_document struct graft_json_document *document = NULL;
	const struct graft_json_node *list, *hook, *word;
	const char *args[8] = { NULL }, *json;
	struct graft_plan *plan = NULL;
	struct graft_buffer lines = { 0 };
	const char *result;
	size_t n = 0;

	assert_int_equal(graft_json_document_parse("result", config, strlen(config), &document, NULL), 0);
	list = graft_json_node_at(graft_json_document_root(document), "hooks.createContainer");
	if (!list)
		return "";
	assert_int_equal(graft_json_node_count(list), 1);
	hook = graft_json_node_first(list);
	assert_string_equal(graft_json_node_string(graft_json_node_first(graft_json_node_member(hook, "env"))),
			    "NVIDIA_CTK_DEBUG=false");
	for (word = graft_json_node_first(graft_json_node_member(hook, "args")); word && n < 7;
	     word = graft_json_node_next(word))
		args[n++] = graft_json_node_string(word);
	assert_string_equal(args[n - 3], "apply");
	assert_string_equal(args[n - 2], "--plan");
	json = args[n - 1];
	assert_null(strchr(json, '\n'));
	assert_int_equal(graft_plan_read(json, strlen(json), &plan, NULL), 0);
	for (size_t i = 0; i < plan->n_edits; i++)
		graft_buffer_printf(&lines, "%s%s %s", i > 0 ? ", " : "", graft_edit_names[plan->edits[i].kind],
				    plan->edits[i].target ? plan->edits[i].target : "");
	result = graft_arena_strdup(b->arena, graft_buffer_text(&lines));
	graft_plan_free(plan);
	graft_buffer_done(&lines);
	return result;
}

static bool has(const struct bundle *b, const char *path)
{
	char full[PATH_MAX];
	struct stat st;

	(void)snprintf(full, sizeof(full), "%s/%s", b->top, path);
	return lstat(full, &st) == 0;
}

/* What is left to the hook because of the mounts in config.json and the root itself. */
static const struct {
	const char *name;
	const char *config;
	const char *link, *says; /* made in the root beforehand */
	const char *hook;
} cases[] = {
	{ "no mounts: nothing is left", "{\"root\":{\"path\":\"rootfs\"}}", NULL, NULL, "" },
	{ "the usual mounts cover nothing of ours",
	  "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/proc\"},{\"destination\":\"/"
	  "dev\"},{\"destination\":\"/dev/pts\"},"
	  "{\"destination\":\"/sys\"},{\"destination\":\"/etc/hosts\"},{\"destination\":\"/etc/resolv.conf\"}]}",
	  NULL, NULL, "" },
	{ "a read-only root is written before it becomes one", "{\"root\":{\"path\":\"rootfs\",\"readonly\":true}}",
	  NULL, NULL, "" },
	{ "a volume over one directory", "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/usr/lib\"}]}",
	  NULL, NULL, "symlink /usr/lib/libcuda.so.1" },
	{ "a volume above it", "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/usr\"}]}", NULL, NULL,
	  "symlink /usr/lib/libcuda.so.1" },
	{ "a volume with a similar name",
	  "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/usr/li\"},{\"destination\":\"/usr/lib/"
	  "libcuda.so\"}]}",
	  NULL, NULL, "" },
	{ "a volume with a slash at its end, where the image has nothing",
	  "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/etc//nvidia/\"}]}", NULL, NULL,
	  "directory /etc/nvidia, file /etc/nvidia/profile" },
	{ "a volume whose place a link of the image moves",
	  "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/data/lib\"}]}", "rootfs/data", "usr",
	  "symlink /usr/lib/libcuda.so.1" },
	{ "a volume where ours go by a link of the image",
	  "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/elsewhere\"}]}", "rootfs/etc/nvidia",
	  "/elsewhere/x", "directory /etc/nvidia, file /etc/nvidia/profile" },
	{ "an absolute link in the image stays in it", "{\"root\":{\"path\":\"rootfs\"}}", "rootfs/etc/nvidia", "/usr",
	  "" },
	{ "everything is covered", "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/\"}]}", NULL, NULL,
	  "symlink /usr/lib/libcuda.so.1, directory /etc/nvidia, file /etc/nvidia/profile, ldcache " },
	{ "a mount whose place nobody knows",
	  "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/loop/x\"}]}", "rootfs/loop", "loop",
	  "symlink /usr/lib/libcuda.so.1, directory /etc/nvidia, file /etc/nvidia/profile, ldcache " },
	{ "a mount behind a link that leads nowhere",
	  "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/dangling/x\"}]}", "rootfs/dangling",
	  "usr/lib/later", "symlink /usr/lib/libcuda.so.1, directory /etc/nvidia, file /etc/nvidia/profile, ldcache " },
	{ "a root that is not there", "{\"root\":{\"path\":\"missing\"}}", NULL, NULL,
	  "symlink /usr/lib/libcuda.so.1, directory /etc/nvidia, file /etc/nvidia/profile, ldcache " },
	{ "a root that is empty", "{\"root\":{\"path\":\"empty\"}}", NULL, NULL,
	  "symlink /usr/lib/libcuda.so.1, directory /etc/nvidia, file /etc/nvidia/profile, ldcache " },
	{ "no root in the configuration", "{}", NULL, NULL,
	  "symlink /usr/lib/libcuda.so.1, directory /etc/nvidia, file /etc/nvidia/profile, ldcache " },
	{ "a user namespace that nobody describes",
	  "{\"root\":{\"path\":\"rootfs\"},\"linux\":{\"namespaces\":[{\"type\":\"user\"}]}}", NULL, NULL,
	  "symlink /usr/lib/libcuda.so.1, directory /etc/nvidia, file /etc/nvidia/profile, ldcache " },
	{ "a user namespace that is described",
	  "{\"root\":{\"path\":\"rootfs\"},\"linux\":{\"namespaces\":[{\"type\":\"user\"}],\"uidMappings\":[{"
	  "\"containerID\":0,\"hostID\":100000,\"size\":9}],"
	  "\"gidMappings\":[{\"containerID\":0,\"hostID\":100001,\"size\":9}]}}",
	  NULL, NULL, "" },
};

static void check_case(size_t i)
{
	struct graft_plan plan = usual_plan();
	struct graft_error err = { .status = GRAFT_OK };
	const char *text = NULL;
	struct bundle *b;
	void *state;
	bool all;

	print_message("# %s\n", cases[i].name);
	(void)setup(&state);
	b = state;
	put(b, "empty/", NULL);
	if (cases[i].link)
		put_link(b, cases[i].link, cases[i].says);
	assert_int_equal(apply(b, &plan, cases[i].config, (struct graft_oci_options){ .log = NULL }, &text, &err), 0);
	assert_non_null(strstr(text, "libcuda.so.550")); /* the mount */
	assert_string_equal(hook_of(b, text), cases[i].hook);
	all = cases[i].hook[0] == '\0';
	assert_int_equal(has(b, "rootfs/usr/lib/libcuda.so.1"), !strstr(cases[i].hook, "symlink"));
	assert_int_equal(has(b, "rootfs/etc/ld-musl-x86_64.path"), !strstr(cases[i].hook, "ldcache"));
	if (all && !cases[i].link)
		assert_true(has(b, "rootfs/etc/nvidia/profile"));
	(void)teardown(&state);
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void test_places(void **state)
{
	need_root();
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++)
		check_case(i);
}

/* What is made belongs to the container's root user. */
static void test_owner(void **state)
{
	static const char config[] = "{\"root\":{\"path\":\"rootfs\"},\"linux\":{\"namespaces\":[{\"type\":\"user\"}],"
				     "\"uidMappings\":[{\"containerID\":1,\"hostID\":5,\"size\":1},{\"containerID\":0,"
				     "\"hostID\":100000,\"size\":9}],"
				     "\"gidMappings\":[{\"containerID\":0,\"hostID\":100001,\"size\":9}]}}";
	static const char *const made[] = { "usr/lib/libcuda.so.1", "etc/nvidia", "etc/nvidia/profile",
					    "etc/ld-musl-x86_64.path" };
	struct bundle *b = *state;
	struct graft_plan plan = usual_plan();
	const char *text = NULL;
	struct stat st;

	need_root();
	assert_int_equal(apply(b, &plan, config, (struct graft_oci_options){ .log = NULL }, &text, NULL), 0);
	for (size_t i = 0; i < GRAFT_COUNT(made); i++) {
		const char *path = graft_arena_printf(b->arena, "%s/rootfs/%s", b->top, made[i]);

		assert_int_equal(lstat(path, &st), 0);
		assert_int_equal(st.st_uid, 100000);
		assert_int_equal(st.st_gid, 100001);
	}
}

/* Groups of the host's nodes are added by their numbers in the container, if they have any. */
static void test_groups(void **state)
{
	static struct graft_edit edits[] = {
		{ .kind = GRAFT_EDIT_DEVICE,
		  .target = "/dev/dri/card0",
		  .major = 226,
		  .minor = 0,
		  .mode = 0660,
		  .gid = 44 },
		{ .kind = GRAFT_EDIT_DEVICE,
		  .target = "/dev/dri/renderD128",
		  .major = 226,
		  .minor = 128,
		  .mode = 0660,
		  .gid = 106 },
	};
	static const struct {
		const char *linux_, *want;
	} rows_of_groups[] = {
		{ "{}", "\"additionalGids\":[44,106]" },
		{ "{\"namespaces\":[{\"type\":\"user\"}],\"gidMappings\":[{\"containerID\":0,\"hostID\":100000,"
		  "\"size\":65536}]}",
		  NULL },
		{ "{\"namespaces\":[{\"type\":\"user\"}],\"gidMappings\":[{\"containerID\":0,\"hostID\":100000,"
		  "\"size\":10},"
		  "{\"containerID\":39,\"hostID\":44,\"size\":1}]}",
		  "\"additionalGids\":[39]" },
		{ "{\"namespaces\":[{\"type\":\"user\"}]}", NULL },
	};
	struct graft_plan plan = plan_of(edits, GRAFT_COUNT(edits));
	struct bundle *b = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows_of_groups); i++) {
		const char *config = graft_arena_printf(b->arena, "{\"linux\":%s}", rows_of_groups[i].linux_),
			   *text = NULL;

		assert_int_equal(apply(b, &plan, config, (struct graft_oci_options){ .log = NULL }, &text, NULL), 0);
		if (rows_of_groups[i].want)
			assert_non_null(strstr(text, rows_of_groups[i].want));
		else
			assert_null(strstr(text, "additionalGids"));
	}
}

/* The hook's name does not matter; and what is always left to the hook. */
static void test_hook(void **state)
{
	static struct graft_edit edits[] = {
		{ .kind = GRAFT_EDIT_COVER,
		  .target = "/proc/driver/nvidia/params",
		  .content = "a \"b\"\\\n c",
		  .mode = 0444 },
		{ .kind = GRAFT_EDIT_SYMLINK, .target = "/usr/lib/a", .content = "b" },
	};
	struct graft_plan plan = plan_of(edits, 2);
	struct bundle *b = *state;
	const char *text = NULL;

	need_root();
	assert_int_equal(apply(b, &plan, "{\"root\":{\"path\":\"rootfs\"}}",
			       (struct graft_oci_options){ .hook_path = "/opt/nvidia-ctk" }, &text, NULL),
			 0);
	assert_non_null(
	    strstr(text, "{\"path\":\"/opt/nvidia-ctk\",\"args\":[\"nvidia-ctk\",\"hook\",\"apply\",\"--plan\","));
	assert_string_equal(hook_of(b, text), "cover /proc/driver/nvidia/params");
	assert_true(has(b, "rootfs/usr/lib/a"));
	assert_int_equal(apply(b, &plan, "{\"root\":{\"path\":\"rootfs\"}}",
			       (struct graft_oci_options){ .no_root_work = true }, &text, NULL),
			 0);
	assert_non_null(strstr(text, "{\"path\":\"" HOOK "\",\"args\":[\"nvidia-cdi-hook\",\"apply\",\"--plan\","));
	assert_string_equal(hook_of(b, text), "cover /proc/driver/nvidia/params, symlink /usr/lib/a");
}

/* The root is the hook's last argument; without it, the hook reads the state. */
static void test_hook_root(void **state)
{
	static struct graft_edit edits[] = { { .kind = GRAFT_EDIT_SYMLINK, .target = "/usr/lib/a", .content = "b" } };
	static const struct {
		const char *program, *root, *want, *last;
	} rows_of_roots[] = {
		{ HOOK, "/run/x/rootfs", "[\"nvidia-cdi-hook\",\"apply\",\"--plan\",\"{",
		  "}\",\"--rootfs\",\"/run/x/rootfs\"]," },
		{ "/opt/nvidia-ctk", "/run/x/rootfs", "[\"nvidia-ctk\",\"hook\",\"apply\",\"--plan\",\"{",
		  "}\",\"--rootfs\",\"/run/x/rootfs\"]," },
		{ HOOK, "/a \"b\"\\", "[\"nvidia-cdi-hook\",\"apply\",\"--plan\",\"{",
		  "}\",\"--rootfs\",\"/a \\\"b\\\"\\\\\"]," },
		{ HOOK, NULL, "[\"nvidia-cdi-hook\",\"apply\",\"--plan\",\"{", "}\"]," },
	};
	struct graft_plan plan = plan_of(edits, 1);
	struct bundle *b = *state;
	const char *text = NULL;

	for (size_t i = 0; i < GRAFT_COUNT(rows_of_roots); i++) {
		const struct graft_oci_options options = { .hook_path = rows_of_roots[i].program,
							   .hook_root = rows_of_roots[i].root,
							   .no_root_work = true };

		assert_int_equal(apply(b, &plan, "{\"root\":{\"path\":\"rootfs\"}}", options, &text, NULL), 0);
		assert_non_null(strstr(text, rows_of_roots[i].want));
		assert_non_null(strstr(text, rows_of_roots[i].last));
		assert_int_equal(strstr(text, "--rootfs") != NULL, rows_of_roots[i].root != NULL);
	}
	/* No hook is added just for that. */
	need_root();
	assert_int_equal(apply(b, &plan, "{\"root\":{\"path\":\"rootfs\"}}",
			       (struct graft_oci_options){ .hook_root = "/run/x/rootfs" }, &text, NULL),
			 0);
	assert_null(strstr(text, "hooks"));
}

/* A plan that is too long for an argument is written to a file in the bundle. */
static void test_long_plan(void **state)
{
	enum { N = 3000 };
	struct graft_edit *edits = calloc(N, sizeof(*edits));
	struct bundle *b = *state;
	struct graft_plan plan, *read = NULL;
	const char *text = NULL, *path, *json = NULL;
	size_t length = 0;
	auto_close int fd = -1;
	struct stat st;

	assert_non_null(edits);
	for (size_t i = 0; i < N; i++)
		edits[i] = (struct graft_edit){ .kind = GRAFT_EDIT_SYMLINK,
						.content = "somewhere",
						.target = graft_arena_printf(b->arena, "/usr/lib/link-number-%zu", i) };
	plan = plan_of(edits, N);
	for (int turn = 0; turn < 2; turn++) /* the second time the file exists */
		assert_int_equal(apply(b, &plan, "{\"root\":{\"path\":\"rootfs\"}}",
				       (struct graft_oci_options){ .no_root_work = true }, &text, NULL),
				 0);
	assert_non_null(strstr(text, "\"--plan-file\""));
	path = graft_arena_printf(b->arena, "%s/.graft-plan.json", b->top);
	assert_non_null(strstr(text, path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(graft_read_fd(fd, (size_t)1 << 20, b->arena, &json, &length), 0);
	assert_int_equal(graft_plan_read(json, length, &read, NULL), 0);
	assert_int_equal(read->n_edits, N);
	graft_plan_free(read);
	assert_null(strstr(text, "--rootfs"));
	assert_int_equal(apply(b, &plan, "{\"root\":{\"path\":\"rootfs\"}}",
			       (struct graft_oci_options){ .no_root_work = true, .hook_root = "/r" }, &text, NULL),
			 0);
	assert_non_null(
	    strstr(text, graft_arena_printf(b->arena, "\"--plan-file\",\"%s\",\"--rootfs\",\"/r\"]", path)));
	free(edits);
}

/* SECURITY: the host's own root is never a container's. */
static void test_host_root(void **state)
{
	static struct graft_edit edits[] = {
		{ .kind = GRAFT_EDIT_SYMLINK, .target = "/graft-must-not-be-here", .content = "x" }
	};
	static const char *const roots[] = { "/", "../../../../../..", "up" };
	struct graft_plan plan = plan_of(edits, 1);
	struct bundle *b = *state;

	need_root();
	put_link(b, "up", "/");
	for (size_t i = 0; i < GRAFT_COUNT(roots); i++) {
		const char *config = graft_arena_printf(b->arena, "{\"root\":{\"path\":\"%s\"}}", roots[i]),
			   *text = NULL;
		struct graft_error err = { .status = GRAFT_OK };
		struct stat st;

		assert_int_equal(apply(b, &plan, config, (struct graft_oci_options){ .log = NULL }, &text, &err), -1);
		assert_int_equal(err.status, GRAFT_UNSAFE);
		assert_int_equal(lstat("/graft-must-not-be-here", &st), -1);
	}
}

/* The last edit fails: nothing remains of the others. */
static void test_undo(void **state)
{
	static struct graft_edit edits[] = {
		{ .kind = GRAFT_EDIT_DIRECTORY, .target = "/new/directory", .mode = 0755 },
		{ .kind = GRAFT_EDIT_FILE, .target = "/etc/kept", .content = "ours", .mode = 0644 },
		{ .kind = GRAFT_EDIT_SYMLINK,
		  .target = "/usr/lib",
		  .content = "x",
		  .conflict = GRAFT_CONFLICT_OVERWRITE },
	};
	struct graft_plan plan = plan_of(edits, GRAFT_COUNT(edits));
	struct graft_error err = { .status = GRAFT_OK };
	struct bundle *b = *state;
	const char *text = NULL, *content = NULL;
	size_t length = 0;
	auto_close int fd = -1;

	need_root();
	put(b, "rootfs/etc/kept", "the image's");
	assert_int_equal(
	    apply(b, &plan, "{\"root\":{\"path\":\"rootfs\"}}", (struct graft_oci_options){ .log = NULL }, &text, &err),
	    -1);
	assert_string_printed(err.msg, "path error: %s/rootfs/usr/lib", b->top);
	assert_false(has(b, "rootfs/new"));
	fd = open(graft_arena_printf(b->arena, "%s/rootfs/etc/kept", b->top), O_RDONLY | O_CLOEXEC);
	assert_int_equal(graft_read_fd(fd, 100, b->arena, &content, &length), 0);
	assert_string_equal(content, "the image's");
}

/* ---- what waits ---- */

#define PARAMS      "/proc/driver/nvidia/params"
#define BY_PATH     "/dev/dri/by-path"
#define ROOT        "\"root\":{\"path\":\"rootfs\"}"
#define DEV         "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"options\":[\"nosuid\",\"mode=755\"]}"
#define MOUNTS(...) ",\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\"}," __VA_ARGS__ "]"
#define NAMESPACE   ",\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"mount\"}]}"
#define LISTS(masked, readonly)                                                                                       \
	",\"linux\":{\"namespaces\":[{\"type\":\"mount\"}],\"maskedPaths\":[" masked "],\"readonlyPaths\":[" readonly \
	"]}}"
#define WAITS "{" ROOT MOUNTS(DEV) NAMESPACE "}"

/* The usual three, and an edit that the root gets at once. */
static struct graft_edit waiting_edits[] = {
	{ .kind = GRAFT_EDIT_COVER,
	  .target = PARAMS,
	  .content = "ModifyDeviceFiles: 0\n",
	  .mode = 0444,
	  .flags = FILE_FLAGS },
	{ .kind = GRAFT_EDIT_SYMLINK, .target = "/usr/lib/now", .content = "x" },
	{ .kind = GRAFT_EDIT_DIRECTORY, .target = BY_PATH, .mode = 0755 },
	{ .kind = GRAFT_EDIT_SYMLINK,
	  .target = BY_PATH "/pci-0",
	  .content = "../card0",
	  .conflict = GRAFT_CONFLICT_OVERWRITE },
};

static struct graft_plan waiting_plan(void)
{
	return plan_of(waiting_edits, GRAFT_COUNT(waiting_edits));
}

static void assert_same_edit(const struct graft_edit *got, const struct graft_edit *wanted)
{
	assert_int_equal(got->kind, wanted->kind);
	assert_string_equal(got->target, wanted->target);
	assert_ptr_not_equal(got->target, wanted->target);
	assert_int_equal(got->content != NULL, wanted->content != NULL);
	if (wanted->content) {
		assert_string_equal(got->content, wanted->content);
		assert_ptr_not_equal(got->content, wanted->content);
	}
	assert_int_equal(got->conflict, wanted->conflict);
	assert_int_equal(got->mode, wanted->mode);
	assert_int_equal(got->flags, wanted->flags);
	assert_null(got->source);
}

/*
 * There is no hook, but a plan of everything that is left, with the number of the directory that
 * will be the root.
 */
static void test_waiting(void **state)
{
	static const size_t left[] = { 0, 2, 3 };
	struct graft_plan plan = waiting_plan();
	/* The previous content is not a plan and must not be freed. */
	struct graft_oci_waiting waiting = { .plan = (struct graft_plan *)waiting_edits, .dev = 1, .inode = 1 };
	struct bundle *b = *state;
	const char *text = "";
	struct stat st;

	need_root();
	assert_int_equal(apply(b, &plan, WAITS, (struct graft_oci_options){ .ret_waiting = &waiting }, &text, NULL), 0);
	assert_string_equal(hook_of(b, text), "");
	assert_string_equal(text, WAITS);
	assert_non_null(waiting.plan);
	assert_int_equal(waiting.plan->n_edits, GRAFT_COUNT(left));
	for (size_t i = 0; i < GRAFT_COUNT(left); i++)
		assert_same_edit(&waiting.plan->edits[i], &waiting_edits[left[i]]);
	assert_int_equal(stat(graft_arena_printf(b->arena, "%s/rootfs", b->top), &st), 0);
	assert_true(waiting.dev == st.st_dev && waiting.inode == st.st_ino);
	assert_true(has(b, "rootfs/usr/lib/now"));
	assert_false(has(b, "rootfs/dev"));
	graft_oci_waiting_done(&waiting);
	assert_null(waiting.plan);
	assert_int_equal(waiting.dev + waiting.inode, 0);
	graft_oci_waiting_done(&waiting);
}

/* If nothing is left, nothing waits. */
static void test_nothing_waits(void **state)
{
	struct graft_oci_waiting waiting = { .plan = NULL, .dev = 1 };
	struct graft_plan plan = plan_of(&waiting_edits[1], 1);
	struct bundle *b = *state;
	const char *text = "";

	need_root();
	assert_int_equal(apply(b, &plan, WAITS, (struct graft_oci_options){ .ret_waiting = &waiting }, &text, NULL), 0);
	assert_string_equal(text, WAITS);
	assert_null(waiting.plan);
	assert_int_equal(waiting.dev, 0);
	assert_true(has(b, "rootfs/usr/lib/now"));
}

#define COVER(path)                                                                      \
	{                                                                                \
		.kind = GRAFT_EDIT_COVER, .target = (path), .content = "x", .mode = 0444 \
	}
#define LINK(path)                                                           \
	{                                                                    \
		.kind = GRAFT_EDIT_SYMLINK, .target = (path), .content = "x" \
	}

#define PROCESS(cwd, program) \
	"\"process\":{\"cwd\":\"" cwd "\",\"env\":[\"PATH=/none:/usr/tools\"],\"args\":[\"" program "\"]}"
#define STARTS(cwd, program, more)                     \
	"{" PROCESS(cwd, program) "," ROOT MOUNTS(DEV) \
	NAMESPACE more "}"
#define GIVEN(path)                                                                                          \
	{                                                                                                    \
		.kind = GRAFT_EDIT_BIND, .source = "/tmp", .target = (path), .type = GRAFT_SOURCE_DIRECTORY, \
		.mode = 0755                                                                                 \
	}

/* A single reason results in a hook for everything that is left. */
#define PROGRAM "the low-level runtime may look for this program"
#define HOOKED  "something else needs a hook"

static const struct {
	const char *name;
	const char *config; /* NULL = the one for which everything waits */
	struct graft_edit edits[3];
	const char *hook; /* "" = it waits */
} waiting_cases[] = {
	{ "a file of /proc asks nothing of /dev", "{" ROOT NAMESPACE "}", { COVER(PARAMS) }, "" },
	{ "a link below /dev alone", NULL, { LINK("/dev/a/b") }, "" },
	{ "names with dots in them", NULL, { COVER("/proc/.a/..b"), LINK("/dev/...") }, "" },
	{ "/dev/, as somebody may write it",
	  "{" ROOT MOUNTS("{\"destination\":\"/dev/\",\"type\":\"tmpfs\"}") NAMESPACE "}",
	  { LINK("/dev/a") },
	  "" },
	{ "other mounts are none of /dev",
	  "{" ROOT MOUNTS(DEV ",{\"destination\":\"/dev/shm\",\"type\":\"bind\",\"options\":[\"ro\"]},{}") NAMESPACE
	  "}",
	  { LINK("/dev/a") },
	  "" },
	{ "a root that becomes read-only",
	  "{\"root\":{\"path\":\"rootfs\",\"readonly\":true}" MOUNTS(DEV) NAMESPACE "}",
	  { COVER(PARAMS), LINK("/dev/a") },
	  "" },
	/* the mounts are not the container's own */
	{ "no namespace at all", "{" ROOT MOUNTS(DEV) "}", { COVER(PARAMS) }, "cover " PARAMS },
	{ "another one's mount namespace",
	  "{" ROOT MOUNTS(DEV) ",\"linux\":{\"namespaces\":[{\"type\":\"mount\",\"path\":\"/proc/1/ns/mnt\"}]}}",
	  { COVER(PARAMS) },
	  "cover " PARAMS },
	/* /dev */
	{ "/dev is the image's", "{" ROOT NAMESPACE "}", { LINK("/usr/lib/now"), COVER(PARAMS) }, "" },
	{ "/dev is the host's",
	  "{" ROOT MOUNTS("{\"destination\":\"/dev\",\"type\":\"bind\",\"source\":\"/dev\"}") NAMESPACE "}",
	  { LINK("/dev/a") },
	  "symlink /dev/a" },
	{ "nobody says what /dev is",
	  "{" ROOT MOUNTS("{\"destination\":\"/dev\"}") NAMESPACE "}",
	  { LINK("/dev/a") },
	  "symlink /dev/a" },
	{ "/dev is read-only",
	  "{" ROOT MOUNTS("{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"options\":[\"nosuid\",\"ro\",\"nodev\"]}")
	      NAMESPACE "}",
	  { COVER(PARAMS), LINK("/dev/a") },
	  "cover " PARAMS ", symlink /dev/a" },
	{ "the last mount at /dev counts",
	  "{" ROOT MOUNTS(DEV ",{\"destination\":\"//dev/.\",\"type\":\"bind\",\"source\":\"/dev\"}") NAMESPACE "}",
	  { LINK("/dev/a") },
	  "symlink /dev/a" },
	{ "a directory of /dev, where it is read-only",
	  "{" ROOT MOUNTS("{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"options\":[\"ro\"]}") NAMESPACE "}",
	  { { .kind = GRAFT_EDIT_DIRECTORY, .target = "/dev/a", .mode = 0755 } },
	  "directory /dev/a" },
	/* what the low-level runtime does after the hooks */
	{ "masks and lists of other places",
	  "{" ROOT MOUNTS(DEV) LISTS("\"/proc/kcore\",\"/sys/firmware\"", "\"/proc/bus\",\"/proc/driver\""),
	  { COVER(PARAMS), LINK("/dev/a") },
	  "" },
	{ "a mask above it", "{" ROOT MOUNTS(DEV) LISTS("\"//proc/driver/\"", ""), { COVER(PARAMS) }, "cover " PARAMS },
	{ "a mask below it", "{" ROOT MOUNTS(DEV) LISTS("\"/dev/a/b\"", ""), { LINK("/dev/a") }, "symlink /dev/a" },
	{ "a link in what becomes read-only",
	  "{" ROOT MOUNTS(DEV) LISTS("", "\"/dev/dri\""),
	  { LINK("/dev/dri/a") },
	  "symlink /dev/dri/a" },
	{ "a volume at the place of a link",
	  "{" ROOT MOUNTS(DEV ",{\"destination\":\"dev/./dri/\",\"type\":\"tmpfs\"}") NAMESPACE "}",
	  { LINK("/dev/dri/a") },
	  "symlink /dev/dri/a" },
	/* the edit */
	{ "a way out of /proc", NULL, { COVER("/proc/../etc/passwd") }, "cover /proc/../etc/passwd" },
	{ "a way out of /dev", NULL, { LINK("/dev/../proc/a") }, "symlink /dev/../proc/a" },
	{ "a file to cover elsewhere", NULL, { COVER("/etc/passwd") }, "cover /etc/passwd" },
	{ "a file to cover in /dev", NULL, { COVER("/dev/params") }, "cover /dev/params" },
	{ "a similar name", NULL, { COVER("/process/a") }, "cover /process/a" },
	{ "a link below /proc", NULL, { LINK("/proc/a") }, "symlink /proc/a" },
	{ "a file below /dev",
	  NULL,
	  { { .kind = GRAFT_EDIT_FILE, .target = "/dev/a", .content = "x" } },
	  "file /dev/a" },
	{ "a mount below /dev",
	  NULL,
	  { COVER(PARAMS), { .kind = GRAFT_EDIT_TMPFS, .target = "/dev/a", .mode = 0755 } },
	  "cover " PARAMS ", tmpfs /dev/a" },
	{ "one that cannot takes the others along",
	  "{" ROOT MOUNTS(DEV ",{\"destination\":\"/usr/lib\"}") NAMESPACE "}",
	  { COVER(PARAMS), LINK("/usr/lib/now"), LINK("/dev/a") },
	  "cover " PARAMS ", symlink /usr/lib/now, symlink /dev/a" },
	{ "the cache",
	  "{" ROOT MOUNTS(DEV ",{\"destination\":\"/etc\"}") NAMESPACE "}",
	  { COVER(PARAMS), { .kind = GRAFT_EDIT_LDCACHE } },
	  "cover " PARAMS ", ldcache " },
	/* a directory of the host */
	{ "a directory", STARTS("/", "sh", ""), { GIVEN("/tmp/x"), COVER(PARAMS) }, "" },
	{ "a directory, elsewhere than the process",
	  STARTS("/usr/tools", "/usr/tools/sh", ""),
	  { GIVEN("/usr/x") },
	  "" },
	{ "a directory in which the process starts", STARTS("/tmp/x/y", "sh", ""), { GIVEN("/tmp/x") }, "bind /tmp/x" },
	{ "a link to where the process starts", STARTS("/link", "sh", ""), { GIVEN("/usr/x") }, "bind /usr/x" },
	{ "nothing where the process starts", STARTS("/none", "sh", ""), { GIVEN("/tmp/x") }, "bind /tmp/x" },
	{ "a program that the root lacks", STARTS("/", "shell", ""), { GIVEN("/tmp/x") }, "bind /tmp/x" },
	{ "nobody says what starts", NULL, { COVER(PARAMS), GIVEN("/tmp/x") }, "cover " PARAMS ", bind /tmp/x" },
	{ "a hook that may need the directory",
	  STARTS("/", "sh", ",\"hooks\":{\"createContainer\":[{\"path\":\"/x\",\"args\":[\"x\"]}]}"),
	  { GIVEN("/tmp/x") },
	  "?" },
	{ "a directory, and a root that becomes read-only",
	  "{" PROCESS("/", "sh") ",\"root\":{\"path\":\"rootfs\",\"readonly\":true}" MOUNTS(DEV) NAMESPACE "}",
	  { GIVEN("/tmp/x") },
	  "bind /tmp/x" },
	{ "a directory in a tmpfs that becomes read-only",
	  "{" PROCESS("/", "sh") "," ROOT MOUNTS(
	      DEV ",{\"destination\":\"/tmp/\",\"type\":\"tmpfs\",\"options\":[\"ro\"]}") NAMESPACE "}",
	  { GIVEN("/tmp/x") },
	  "bind /tmp/x" },
	{ "a directory, and a list of what becomes read-only",
	  "{" PROCESS("/", "sh") "," ROOT MOUNTS(DEV) LISTS("", "\"/tmp\""),
	  { GIVEN("/tmp/x") },
	  "bind /tmp/x" },
	/* the root could not be recognised */
	{ "a root that is not there yet",
	  "{\"root\":{\"path\":\"missing\"}" MOUNTS(DEV) NAMESPACE "}",
	  { COVER(PARAMS) },
	  "cover " PARAMS },
	{ "a root that may not be mounted yet",
	  "{\"root\":{\"path\":\"empty\"}" MOUNTS(DEV) NAMESPACE "}",
	  { COVER(PARAMS) },
	  "cover " PARAMS },
	{ "a root over which something is mounted",
	  "{" ROOT MOUNTS(DEV ",{\"destination\":\"/\",\"type\":\"bind\",\"source\":\"/x\"}") NAMESPACE "}",
	  { COVER(PARAMS) },
	  "cover " PARAMS },
	{ "no root in the configuration", "{\"x\":0" MOUNTS(DEV) NAMESPACE "}", { COVER(PARAMS) }, "cover " PARAMS },
};

static void check_waiting_case(size_t i)
{
	struct graft_edit edits[GRAFT_COUNT(waiting_cases[0].edits)];
	const char *config = waiting_cases[i].config ? waiting_cases[i].config : WAITS;
	const char *hook = waiting_cases[i].hook, *text = "";
	struct graft_oci_waiting waiting = { .plan = NULL };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_plan plan;
	struct bundle *b;
	void *state;

	print_message("# %s\n", waiting_cases[i].name);
	(void)setup(&state);
	b = state;
	put(b, "empty/", NULL);
	put(b, "rootfs/usr/tools/sh", "x");
	assert_int_equal(chmod(graft_arena_printf(b->arena, "%s/rootfs/usr/tools/sh", b->top), 0755), 0);
	put_link(b, "rootfs/link", "usr");
	memcpy(edits, waiting_cases[i].edits, sizeof(edits));
	plan = plan_of(edits, GRAFT_COUNT(edits));
	if (apply(b, &plan, config, (struct graft_oci_options){ .ret_waiting = &waiting }, &text, &err) < 0)
		fail_msg("%s", err.msg);
	if (hook[0] != '?') /* another hook is the first */
		assert_string_equal(hook_of(b, text), hook);
	assert_int_equal(waiting.plan != NULL, hook[0] == '\0');
	graft_oci_waiting_done(&waiting);
	(void)teardown(&state);
}

static void test_what_waits(void **state)
{
	need_root();
	for (size_t i = 0; i < GRAFT_COUNT(waiting_cases); i++)
		check_waiting_case(i);
}

/* ---- mounts that wait ---- */

#define LIBRARY "/usr/lib/libcuda.so.5"
#define HOOKS(stage, args) \
	"{" ROOT MOUNTS(DEV) NAMESPACE ",\"hooks\":{\"" stage "\":[{\"path\":\"/x\",\"args\":[" args "]}]}}"
#define VOLUME(destination) "{" ROOT MOUNTS(DEV ",{\"destination\":\"" destination "\"}") NAMESPACE "}"

static const struct {
	const char *name;
	const char *config; /* NULL = the one for which everything waits */
	const char *target; /* NULL = a library */
	const char *link;   /* what the image has at its place leads there; NULL = nothing */
	enum graft_source_type type;
	const char *program; /* process.args; NULL = one that the root has */
	const char *stays;   /* why the low-level runtime mounts it; NULL = it does not */
} late_cases[] = {
	{ .name = "a library" },
	{ .name = "a file where the image has no directory", .target = "/opt/a/b.json" },
	{ .name = "a name like those of programs", .target = "/usr/lib/bin" },
	{ .name = "dockerd's hook for the network", .config = HOOKS("prestart", "\"libnetwork-setkey\",\"x\"") },
	{ .name = "a hook that runs after the start", .config = HOOKS("poststart", "") },
	{ .name = "a volume elsewhere", .config = VOLUME("/data") },
	{ .name = "a link within the root", .link = "/usr/tools/plain" },
	{ .name = "a list of other places", .config = "{" ROOT MOUNTS(DEV) LISTS("\"/proc/kcore\"", "\"/proc/bus\"") },
	{ .name = "a program", .target = "/usr/bin/nvidia-smi" },
	{ .name = "a program, where another one is started by its path",
	  .program = "\"/usr/tools/sh\",\"-c\"",
	  .target = "/usr/bin/nvidia-smi" },
	{ .name = "a library, where the root lacks what is started", .program = "\"x\"" },
	{ .name = "the program that is started",
	  .program = "\"nvidia-smi\"",
	  .target = "/usr/bin/nvidia-smi",
	  .stays = PROGRAM },
	{ .name = "the same by a path",
	  .program = "\"/a/nvidia-smi\"",
	  .target = "/usr/bin/nvidia-smi",
	  .stays = PROGRAM },
	{ .name = "one of the same name, in another directory", .target = "/usr/bin/sh", .stays = PROGRAM },
	{ .name = "a program, where the root lacks what is started",
	  .program = "\"x\"",
	  .target = "/sbin/y",
	  .stays = PROGRAM },
	{ .name = "the same, where that is not executable",
	  .program = "\"plain\"",
	  .target = "/bin/y",
	  .stays = PROGRAM },
	{ .name = "the same, where that is in another directory",
	  .program = "\"/sh\"",
	  .target = "/bin/y",
	  .stays = PROGRAM },
	{ .name = "the same, where that is a directory", .program = "\"/usr\"", .target = "/bin/y", .stays = PROGRAM },
	{ .name = "the same, below the working directory",
	  .program = "\"usr/tools/sh\"",
	  .target = "/bin/y",
	  .stays = PROGRAM },
	{ .name = "nobody says what is started", .program = "", .stays = "it is not known what will be started" },
	{ .name = "a socket", .type = GRAFT_SOURCE_SOCKET, .stays = "" },
	{ .name = "a directory", .type = GRAFT_SOURCE_DIRECTORY, .stays = "" },
	{ .name = "a way out", .target = "/usr/lib/../../etc/passwd", .stays = "its location is not known" },
	{ .name = "another file system", .target = "/proc/a", .stays = "a mount covers it" },
	{ .name = "a root that becomes read-only",
	  .config = "{\"root\":{\"path\":\"rootfs\",\"readonly\":true}" MOUNTS(DEV) NAMESPACE "}",
	  .stays = "the root will be read-only" },
	{ .name = "a hook before the root is changed",
	  .config = HOOKS("createContainer", ""),
	  .stays = "a hook may use them" },
	{ .name = "a hook before the start",
	  .config = HOOKS("prestart", "\"x\",\"libnetwork-setkey\""),
	  .stays = "a hook may use them" },
	{ .name = "a hook when it is created",
	  .config = HOOKS("createRuntime", "\"x\""),
	  .stays = "a hook may use them" },
	{ .name = "a volume over its directory", .config = VOLUME("/usr/lib"), .stays = "a mount covers it" },
	{ .name = "a volume at its place", .config = VOLUME("/usr/./lib/libcuda.so.5"), .stays = "a mount covers it" },
	{ .name = "a link into a volume",
	  .config = VOLUME("/data"),
	  .link = "../../data/x",
	  .stays = "a link leads to another mount" },
	{ .name = "a link into another file system", .link = "/dev/shm/x", .stays = "its location is not known" },
	{ .name = "a link to nothing", .link = "/missing/x", .stays = "its location is not known" },
	{ .name = "a mask",
	  .config = "{" ROOT MOUNTS(DEV) LISTS("\"/usr/lib\"", ""),
	  .stays = "it will be masked or read-only" },
	{ .name = "what becomes read-only",
	  .config = "{" ROOT MOUNTS(DEV) LISTS("", "\"/usr\""),
	  .stays = "it will be masked or read-only" },
	{ .name = "another one's mount namespace", .config = "{" ROOT MOUNTS(DEV) "}", .stays = HOOKED },
	{ .name = "a root that is not there yet",
	  .config = "{\"root\":{\"path\":\"missing\"}" MOUNTS(DEV) NAMESPACE "}",
	  .stays = HOOKED },
};

static void check_late_case(size_t i, bool wanted)
{
	const char *target = late_cases[i].target ? late_cases[i].target : LIBRARY;
	const char *program = late_cases[i].program ? late_cases[i].program : "\"sh\"", *text = "", *config;
	struct graft_edit edit = { .kind = GRAFT_EDIT_BIND,
				   .source = "/host" LIBRARY,
				   .target = target,
				   .type = late_cases[i].type,
				   .flags = FILE_FLAGS,
				   .mode = 0755,
				   .optional = true };
	bool stays = late_cases[i].stays || !wanted;
	const char *note = "";
	struct graft_oci_waiting waiting = { .plan = NULL };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_plan plan = plan_of(&edit, 1);
	struct bundle *b;
	void *state;

	print_message("# %s\n", late_cases[i].name);
	(void)setup(&state);
	b = state;
	put(b, "rootfs/usr/tools/plain", "x");
	put(b, "rootfs/usr/tools/sh", "x");
	assert_int_equal(chmod(graft_arena_printf(b->arena, "%s/rootfs/usr/tools/sh", b->top), 0755), 0);
	put(b, "rootfs/data/x", "x");
	if (late_cases[i].link)
		put_link(b, "rootfs" LIBRARY, late_cases[i].link);
	config = graft_arena_printf(b->arena, "{\"process\":{\"env\":[\"PATH=/none:/usr/tools\"],\"args\":[%s]},%s",
				    program, (late_cases[i].config ? late_cases[i].config : WAITS) + 1);
	if (apply(b, &plan, config, (struct graft_oci_options){ .ret_waiting = &waiting, .late_mounts = wanted }, &text,
		  &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(strstr(text, "/host" LIBRARY) != NULL, stays);
	assert_int_equal(waiting.plan == NULL, stays);
	/* A directory and a socket are not files. */
	if (wanted && (!late_cases[i].stays || late_cases[i].stays[0] != '\0'))
		note = graft_arena_printf(b->arena, ",\"annotations\":{\"graft.late-mounts\":\"%s%s\"}}",
					  stays ? "no file: " : "all files", stays ? late_cases[i].stays : "");
	assert_int_equal(strstr(text, "graft.late-mounts") != NULL, note[0] != '\0');
	if (!strstr(text, note))
		fail_msg("%s: not %s", text, note);
	if (waiting.plan) {
		const struct graft_edit *got = &waiting.plan->edits[0];

		assert_int_equal(waiting.plan->n_edits, 1);
		assert_int_equal(got->kind, GRAFT_EDIT_BIND);
		assert_string_equal(got->source, edit.source);
		assert_string_equal(got->target, target);
		assert_true(got->source != edit.source && got->target != target);
		assert_int_equal(got->type, GRAFT_SOURCE_FILE);
		assert_int_equal(got->flags, FILE_FLAGS);
		assert_int_equal(got->mode, 0755);
		assert_true(got->optional);
	}
	assert_int_equal(has(b, "rootfs" LIBRARY), late_cases[i].link != NULL);
	graft_oci_waiting_done(&waiting);
	(void)teardown(&state);
}

static void test_late_mounts(void **state)
{
	need_root();
	for (size_t i = 0; i < GRAFT_COUNT(late_cases); i++) {
		check_late_case(i, true);
		check_late_case(i, false);
	}
}

/* Where something needs a hook, the low-level runtime mounts what the hook may use. */
static void test_no_late_mounts_with_hook(void **state)
{
	struct graft_edit edits[] = {
		{ .kind = GRAFT_EDIT_BIND, .source = "/host" LIBRARY, .target = LIBRARY, .flags = FILE_FLAGS },
		COVER("/etc/passwd"),
	};
	struct graft_oci_waiting waiting = { .plan = NULL };
	struct graft_plan plan = plan_of(edits, GRAFT_COUNT(edits));
	struct bundle *b = *state;
	const char *text = "";

	need_root();
	assert_int_equal(apply(b, &plan, WAITS,
			       (struct graft_oci_options){ .ret_waiting = &waiting, .late_mounts = true }, &text, NULL),
			 0);
	assert_string_equal(hook_of(b, text), "cover /etc/passwd");
	assert_non_null(strstr(text, "/host" LIBRARY));
	assert_null(waiting.plan);
	/* The caller does not come back. */
	assert_int_equal(apply(b, &plan, WAITS, (struct graft_oci_options){ .late_mounts = true }, &text, NULL), 0);
	assert_non_null(strstr(text, "/host" LIBRARY));
}

/* The container declines; and somebody only asks. */
static void test_late_mounts_declined(void **state)
{
	struct graft_edit edits[] = {
		{ .kind = GRAFT_EDIT_BIND, .source = "/host" LIBRARY, .target = LIBRARY, .flags = FILE_FLAGS },
		{ .kind = GRAFT_EDIT_SYMLINK, .target = LIBRARY ".link", .content = "x" },
	};
	struct graft_oci_waiting waiting = { .plan = NULL };
	struct graft_oci_options options = { .ret_waiting = &waiting, .late_mounts = true, .only_look = true };
	struct graft_plan plan = plan_of(edits, GRAFT_COUNT(edits));
	struct bundle *b = *state;
	const char *text = "", *config;

	need_root();
	config = graft_arena_printf(b->arena, "{\"process\":{\"args\":[\"sh\"]},%s", &WAITS[1]);
	assert_int_equal(apply(b, &plan, config, options, &text, NULL), 0);
	assert_non_null(strstr(text, "\"graft.late-mounts\":\"all files\""));
	assert_null(strstr(text, "/host" LIBRARY));
	assert_null(waiting.plan);
	assert_false(has(b, "rootfs" LIBRARY ".link"));
	options.only_look = false;
	options.no_late_mounts = true;
	assert_int_equal(apply(b, &plan, config, options, &text, NULL), 0);
	assert_non_null(
	    strstr(text, "\"graft.late-mounts\":\"no file: NVIDIA_LATE_MOUNTS of the container is false\""));
	assert_non_null(strstr(text, "/host" LIBRARY));
	assert_null(waiting.plan);
	assert_true(has(b, "rootfs" LIBRARY ".link"));
}

/* The caller does not come back, or the work in the root is to be left to the hook. */
static void test_hook_instead(void **state)
{
	static const char all[] = "cover " PARAMS ", symlink /usr/lib/now, directory " BY_PATH ", symlink " BY_PATH
				  "/pci-0";
	struct graft_oci_waiting waiting = { .plan = NULL };
	struct graft_plan plan = waiting_plan();
	struct bundle *b = *state;
	const char *text = "";

	need_root();
	assert_int_equal(apply(b, &plan, WAITS, (struct graft_oci_options){ .log = NULL }, &text, NULL), 0);
	assert_string_equal(hook_of(b, text), "cover " PARAMS ", directory " BY_PATH ", symlink " BY_PATH "/pci-0");
	assert_int_equal(apply(b, &plan, WAITS,
			       (struct graft_oci_options){ .no_root_work = true, .ret_waiting = &waiting }, &text,
			       NULL),
			 0);
	assert_string_equal(hook_of(b, text), all);
	assert_null(waiting.plan);
}

/* The work in the root comes last; if it fails, nothing waits. */
static void test_failure_leaves_nothing_waiting(void **state)
{
	static struct graft_edit edits[] = {
		COVER(PARAMS),
		{ .kind = GRAFT_EDIT_SYMLINK,
		  .target = "/usr/lib",
		  .content = "x",
		  .conflict = GRAFT_CONFLICT_OVERWRITE },
	};
	struct graft_oci_waiting waiting = { .plan = NULL };
	struct graft_plan plan = plan_of(edits, GRAFT_COUNT(edits));
	struct graft_error err = { .status = GRAFT_OK };
	struct bundle *b = *state;
	const char *text = "";

	need_root();
	assert_int_equal(apply(b, &plan, WAITS, (struct graft_oci_options){ .ret_waiting = &waiting }, &text, &err),
			 -1);
	assert_string_printed(err.msg, "path error: %s/rootfs/usr/lib", b->top);
	assert_null(waiting.plan);
	assert_int_equal(waiting.dev + waiting.inode, 0);
}

static void test_waiting_allocations(void **state)
{
	struct graft_plan plan = waiting_plan();
	struct bundle *b = *state;
	int n = 1, n_tolerated = 0;

	need_root();
	for (bool failed = true; failed; n++) {
		auto_json_document struct graft_json_document *document = NULL;
		struct graft_oci_waiting waiting = { .plan = NULL };
		const struct graft_oci_options options = { .hook_path = HOOK, .ret_waiting = &waiting };
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_oci_spec spec;
		int rc;

		(void)unlink(graft_arena_printf(b->arena, "%s/rootfs/usr/lib/now", b->top));
		assert_int_equal(graft_json_document_parse("x", WAITS, strlen(WAITS), &document, NULL), 0);
		assert_int_equal(graft_oci_spec_read(document, b->arena, &spec, NULL), 0);
		allocation_fail(n);
		rc = graft_apply_to_oci(&plan, b->top, &spec, &options, document, &err);
		failed = allocation_failed();
		if (rc == 0) {
			n_tolerated += failed ? 1 : 0;
			assert_int_equal(waiting.plan->n_edits, 3);
			assert_string_equal(waiting.plan->edits[2].content, "../card0");
			assert_false(graft_json_document_changed(document));
		} else {
			assert_true(failed);
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
			assert_null(waiting.plan);
		}
		assert_int_equal(has(b, "rootfs/usr/lib/now"), rc == 0);
		graft_oci_waiting_done(&waiting);
	}
	assert_true(n_tolerated <= 2);
	assert_true(n > 10);
}

/* ---- the created container ---- */

static struct graft_oci_waiting waiting_for(const char *root)
{
	struct graft_oci_waiting waiting = { .plan = graft_plan_new() };
	struct stat st;

	assert_non_null(waiting.plan);
	assert_int_equal(stat(root, &st), 0);
	waiting.dev = st.st_dev;
	waiting.inode = st.st_ino;
	return waiting;
}

/*
 * SECURITY: a process in our own mount namespace is not a container's, whatever its root; nor is a
 * process that has ended.
 */
static void test_no_container(void **state)
{
	struct graft_oci_waiting waiting = waiting_for("/");
	struct graft_error err = { .status = GRAFT_OK };
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(graft_apply_to_created(&waiting, pid, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_int_equal(graft_apply_to_created(&waiting, getpid(), NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_PROGRAM);
	assert_int_equal(graft_apply_to_created(&waiting, 0, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_INVALID);
	assert_int_equal(graft_apply_to_created(&waiting, -1, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_INVALID);
	graft_oci_waiting_done(&waiting);
}

/*
 * Starts a process in its own mount namespace or ours, with this root unless NULL. It waits to be
 * killed.
 */
static pid_t start_process(bool own_mounts, const char *root)
{
	int ends[2];
	pid_t pid;
	char c = 0;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if ((!own_mounts || unshare(CLONE_NEWNS) == 0) && (!root || chroot(root) == 0) &&
		    write(ends[1], "1", 1) == 1)
			(void)pause();
		_exit(1);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &c, 1), 1);
	(void)close(ends[0]);
	return pid;
}

static void end_process(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/*
 * SECURITY: its own mount namespace but the machine's root or another one; or the right root in our
 * mount namespace.
 */
static void test_another_root(void **state)
{
	struct bundle *b = *state;
	const char *root = graft_arena_printf(b->arena, "%s/rootfs", b->top);
	struct graft_oci_waiting whole = waiting_for("/"), ours = waiting_for(root);
	struct graft_error err = { .status = GRAFT_OK };
	pid_t pid;

	need_root();
	pid = start_process(true, NULL);
	assert_int_equal(graft_apply_to_created(&ours, pid, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_PROGRAM);
	assert_string_equal(
	    err.msg,
	    graft_arena_printf(
		b->arena,
		"the low-level runtime gave the ID of process %ld, which is not in the container: it has another root",
		(long)pid));
	end_process(pid);
	pid = start_process(true, graft_arena_printf(b->arena, "%s/rootfs/etc", b->top));
	assert_int_equal(graft_apply_to_created(&ours, pid, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_PROGRAM);
	assert_int_equal(graft_apply_to_created(&whole, pid, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_PROGRAM);
	end_process(pid);
	pid = start_process(false, root);
	assert_int_equal(graft_apply_to_created(&ours, pid, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_PROGRAM);
	end_process(pid);
	graft_oci_waiting_done(&whole);
	graft_oci_waiting_done(&ours);
}

/* Its own mount namespace and the expected root: what waits is done there. */
static void test_created(void **state)
{
	static struct graft_edit edits[] = { { .kind = GRAFT_EDIT_DIRECTORY, .target = "/dev/a", .mode = 0755 } };
	struct bundle *b = *state;
	const char *root = graft_arena_printf(b->arena, "%s/rootfs", b->top);
	struct graft_oci_waiting waiting = waiting_for(root);
	struct graft_error err = { .status = GRAFT_OK };
	int status = 1;
	pid_t pid, child;

	need_root();
	waiting.plan->edits = edits;
	waiting.plan->n_edits = 1;
	pid = start_process(true, root);
	/* In a child, since joining another's mounts cannot be undone. */
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (graft_apply_to_created(&waiting, pid, NULL, &err) < 0)
			print_error("%s\n", err.msg);
		_exit(err.status == GRAFT_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(has(b, "rootfs/dev/a"));
	end_process(pid);
	graft_oci_waiting_done(&waiting);
}

/* What waits has what the rest of the start left of the budget. */
static void test_created_late(void **state)
{
	static struct graft_edit edits[] = { { .kind = GRAFT_EDIT_DIRECTORY, .target = "/dev/a", .mode = 0755 } };
	struct bundle *b = *state;
	const char *root = graft_arena_printf(b->arena, "%s/rootfs", b->top);
	struct graft_oci_waiting waiting = waiting_for(root);
	struct graft_error err = { .status = GRAFT_OK };
	int status = 1;
	pid_t pid, child;

	need_root();
	waiting.plan->edits = edits;
	waiting.plan->n_edits = 1;
	waiting.budget = graft_budget_new(0);
	while (!graft_budget_is_spent(waiting.budget))
		continue;
	pid = start_process(true, root);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)graft_apply_to_created(&waiting, pid, NULL, &err);
		print_error("%s\n", err.msg);
		_exit(err.sys == ETIME && strcmp(err.msg, "file creation failed: /dev/a") == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(has(b, "rootfs/dev/a"));
	end_process(pid);
	graft_oci_waiting_done(&waiting);
	assert_null(waiting.budget);
}

static void take(const struct bundle *b, const char *path)
{
	assert_int_equal(unlink(graft_arena_printf(b->arena, "%s/%s", b->top, path)), 0);
}

static void test_allocations(void **state)
{
	struct graft_plan plan = usual_plan();
	struct bundle *b = *state;
	int n = 1, n_tolerated = 0;

	need_root();
	for (;; n++) {
		auto_json_document struct graft_json_document *document = NULL;
		static const char config[] =
		    "{\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/etc/nvidia\"}]}";
		const struct graft_oci_options options = { .hook_path = HOOK, .hook_root = "/r" };
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_oci_spec spec;
		bool failed;
		int rc;

		assert_int_equal(graft_json_document_parse("x", config, strlen(config), &document, NULL), 0);
		assert_int_equal(graft_oci_spec_read(document, b->arena, &spec, NULL), 0);
		allocation_fail(n);
		rc = graft_apply_to_oci(&plan, b->top, &spec, &options, document, &err);
		failed = allocation_failed();
		if (!failed) {
			assert_int_equal(rc, 0);
			break;
		}
		/*
		 * Files that only speed up lookups may be missing; everything else must be there.
		 */
		assert_int_equal(has(b, "rootfs/usr/lib/libcuda.so.1"), rc == 0);
		assert_int_equal(has(b, "rootfs/etc/ld-musl-x86_64.path"), rc == 0);
		if (rc < 0) {
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
			continue;
		}
		n_tolerated++;
		take(b, "rootfs/usr/lib/libcuda.so.1");
		take(b, "rootfs/etc/ld-musl-x86_64.path");
	}
	assert_true(n_tolerated <= 2);
	assert_true(n > 10); /* otherwise nothing was wrapped */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_places),
		cmocka_unit_test_setup_teardown(test_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hook, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hook_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_plan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_host_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_undo, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allocations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_waits, setup, teardown),
		cmocka_unit_test(test_what_waits),
		cmocka_unit_test(test_late_mounts),
		cmocka_unit_test_setup_teardown(test_no_late_mounts_with_hook, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_mounts_declined, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hook_instead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failure_leaves_nothing_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting_allocations, setup, teardown),
		cmocka_unit_test(test_no_container),
		cmocka_unit_test_setup_teardown(test_another_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_created, setup, teardown),
		cmocka_unit_test_setup_teardown(test_created_late, setup, teardown),
	};

	(void)umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
