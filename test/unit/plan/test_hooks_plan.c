/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks as text (hook_rows.h), and the edits that they become, one a line. */
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "hook_rows.h"
#include "plan/hooks_plan.h"

#define LIBS   "/usr/lib/x86_64-linux-gnu"
#define COMPAT "/usr/local/cuda/compat"
#define PARAMS "ModifyDeviceFiles: 0\n"
#define COVER  "cover /proc/driver/nvidia/params 444 f " PARAMS "\n"

static void write_cache(const struct graft_edit *edit, struct graft_buffer *out)
{
	for (size_t i = 0; i < edit->n_folders; i++)
		graft_buffer_printf(out, "folder %s\n", edit->folders[i]);
	for (size_t i = 0; i < edit->n_missing_folders; i++)
		graft_buffer_printf(out, "missing %s\n", edit->missing_folders[i]);
	for (size_t i = 0; i < edit->n_entries; i++)
		graft_buffer_printf(out, "%s => %s %x\n", edit->entries[i].soname, edit->entries[i].path,
				    edit->entries[i].abi_flags);
	if (edit->musl_path)
		graft_buffer_printf(out, "musl %s: %s", edit->musl_path_file, edit->musl_path);
}

static void write_edit(const struct graft_edit *edit, struct graft_buffer *out)
{
	if (edit->kind == GRAFT_EDIT_SYMLINK)
		graft_buffer_printf(out, "%s -> %s %s\n", edit->target, edit->content,
				    graft_conflict_names[edit->conflict]);
	else if (edit->kind == GRAFT_EDIT_LDCACHE)
		write_cache(edit, out);
	else
		graft_buffer_printf(out, "%s %s %o %x %s\n", graft_edit_names[edit->kind], edit->target, edit->mode,
				    edit->flags, edit->content ? edit->content : "-");
}

static const char *text_of_plan(const struct graft_plan *plan)
{
	struct graft_buffer out = { .max = 0 };
	const char *text;

	for (size_t i = 0; i < plan->n_edits; i++) {
		assert_non_null(plan->edits[i].rule);
		assert_non_null(plan->edits[i].why);
		write_edit(&plan->edits[i], &out);
	}
	for (size_t i = 0; i < plan->n_refusals; i++)
		graft_buffer_printf(&out, "refused %s: %s\n", plan->refusals[i].what, plan->refusals[i].why);
	text = graft_arena_strdup(arena, graft_buffer_text(&out));
	graft_buffer_done(&out);
	return text;
}

static struct graft_image image_of_tests(void)
{
	static const char *searched[] = { LIBS, "/lib64" };

	return (struct graft_image){ .libc = GRAFT_LIBC_GLIBC, .loader_dirs = searched, .n_loader_dirs = 2 };
}

/* What hooks become in a container of `spec`; NULL: they must run. Without `facts`: no library, the image of tests, and parameters that have to be changed. */
static const char *convert(const struct graft_cdi_edits *edits, const struct graft_oci_spec *spec,
			   const struct graft_hook_facts *facts)
{
	const struct graft_oci_spec empty = { .n_mounts = 0 };
	const struct graft_image image = image_of_tests();
	const struct graft_hook_facts usual = { .image = &image, .params = PARAMS };
	struct graft_hook_work work;
	struct graft_plan *plan;
	const char *text;
	bool known;

	assert_int_equal(graft_hooks_read(HOOK_PROGRAM, edits, spec ? spec : &empty, arena, &work, &known, NULL), 0);
	if (!known)
		return NULL;
	plan = graft_hooks_plan(&work, facts ? facts : &usual, NULL);
	assert_non_null(plan);
	text = text_of_plan(plan);
	graft_plan_free(plan);
	return text;
}

/* `expected` NULL: they must run. */
static void assert_result(size_t row, const char *text, const char *expected)
{
	if (!text != !expected || (text && strcmp(text, expected) != 0))
		fail_msg("row %zu: %s instead of %s", row, text ? text : "must run", expected ? expected : "must run");
}

static void test_words(void **state)
{
	static const struct {
		const char *hooks, *edits; /* NULL: they must run */
	} rows[] = {
		{ HOOK "create-symlinks --link a::/b\n" HOOK "update-ldcache --folder " LIBS "\n",
		  "/b -> a overwrite\nfolder " LIBS "\n" },
		{ HOOK "update-ldcache\n", "" },
		{ HOOK "update-ldcache --folder=/x/,/y --folder y --ldconfig-path /sbin/ldconfig\n",
		  "folder /x\nfolder /y\nmissing /x\nmissing /y\n" },
		{ HOOK "create-symlinks --link=../a::b/c,d::/e --link d::/e\n" HOOK "create-symlinks --link f::/g\n",
		  "/b/c -> ../a overwrite\n/e -> d overwrite\n/g -> f overwrite\n" },
		{ HOOK "create-symlinks\n", "" },
		{ HOOK "disable-device-node-modification\n", COVER },
		{ HOOK "disable-device-node-modification\n" HOOK "disable-device-node-modification\n", COVER },
		{ HOOK "update-application-profile\n", "" },
		/* All of today's generator, in its order and in another. */
		{ HOOK "create-symlinks --link a::/b\n" HOOK
		       "enable-cuda-compat --host-driver-version=550.54.14 --host-cuda-version=12.4\n" HOOK
		       "update-ldcache --folder " LIBS "\n" HOOK "disable-device-node-modification\n" HOOK
		       "create-symlinks --link ../card1::/dev/dri/by-path/x\n" HOOK "update-application-profile\n",
		  "/b -> a overwrite\n/dev/dri/by-path/x -> ../card1 overwrite\nfolder " LIBS "\n" COVER },
		{ HOOK "update-application-profile\n" HOOK "disable-device-node-modification\n" HOOK
		       "enable-cuda-compat --host-driver-version 550.54.14\n" HOOK "create-symlinks --link a::/b\n" HOOK
		       "update-ldcache --folder " LIBS "\n",
		  "/b -> a overwrite\nfolder " LIBS "\n" COVER },
		/* A link after the cache, which the next one knows, or which is none for a loader. */
		{ HOOK "update-ldcache\n" HOOK "create-symlinks --link a::/b\n", NULL },
		{ HOOK "create-symlinks --link a::/b\n" HOOK "update-ldcache\n" HOOK "create-symlinks --link a::/b\n",
		  NULL },
		{ HOOK "update-ldcache --folder " LIBS "\n" HOOK "create-symlinks --link a::/b\n" HOOK
		       "update-ldcache --folder /lib64 --folder " LIBS "\n",
		  "/b -> a overwrite\nfolder " LIBS "\nfolder /lib64\n" },
		{ HOOK "update-ldcache\n" HOOK "update-ldcache\n", "" },
		{ HOOK "update-ldcache\n" HOOK "create-symlinks --link a::/dev/b\n", "/dev/b -> a overwrite\n" },
		{ HOOK "update-ldcache\n" HOOK "create-symlinks --link a::/device\n", NULL },
		{ HOOK "update-ldcache\n" HOOK "create-symlinks --link a::/dev/../usr/lib/b\n", NULL },
		{ HOOK "create-symlinks --link a::/b\n", "/b -> a overwrite\n" },
		/* Another hook, program or stage. */
		{ "", NULL },
		{ HOOK "chmod --mode 755 --path /dev/dri\n" HOOK "update-ldcache\n", NULL },
		{ HOOK "apply\n", NULL },
		{ HOOK "update\n", NULL },
		{ HOOK "update-ldcache\ncreateContainer /bin/x|E=0|x\n", NULL },
		{ "createContainer /usr/local/bin/nvidia-cdi-hook|E=0|x update-ldcache\n", NULL },
		{ HOOK "update-ldcache\nprestart " HOOK_PROGRAM "|E=0|x update-ldcache\n", NULL },
		/* Limits of GPU memory, which this container does not ask for. */
		{ HOOK "update-ldcache\ncreateRuntime " HOOK_PROGRAM
		       "|E=0|nvidia-cdi-hook apply-cuda-memory-limits --driver-root / --gpu-id 0\n",
		  "" },
		{ HOOK "update-ldcache\ncreateRuntime /bin/x|E=0|nvidia-cdi-hook apply-cuda-memory-limits\n", NULL },
		{ HOOK "update-ldcache\ncreateRuntime " HOOK_PROGRAM "|E=0|nvidia-cdi-hook update-ldcache\n", NULL },
		/* One of the image's comes after all of these. */
		{ HOOK "update-ldcache\nstartContainer " HOOK_PROGRAM "||x chmod\n", "" },
		{ "startContainer " HOOK_PROGRAM "||x chmod\n", NULL },
		{ "createContainer " HOOK_PROGRAM "|E=0|nvidia-cdi-hook\n", NULL },
		{ "createContainer " HOOK_PROGRAM "|E=0|nvidia-ctk hook update-ldcache\n", NULL },
		/* Options that are the hook's to judge. */
		{ HOOK "create-symlinks --link a::/b --container-spec /x\n", NULL },
		{ HOOK "create-symlinks --folder /x\n", NULL },
		{ HOOK "create-symlinks --linked a::/b\n", NULL },
		{ HOOK "create-symlinks --link\n", NULL },
		{ HOOK "create-symlinks -link a::/b\n", NULL },
		{ HOOK "create-symlinks a::/b\n", NULL },
		{ HOOK "update-ldcache --ldconfig-path=\n", NULL },
		{ HOOK "update-ldcache --ldconfig-path\n", NULL },
		{ HOOK "update-ldcache --link a::/b\n", NULL },
		{ HOOK "disable-device-node-modification --container-spec /x\n", NULL },
		{ HOOK "disable-device-node-modification x\n", NULL },
		{ HOOK "update-application-profile --folder /x\n", NULL },
		{ HOOK "update-application-profile x\n", NULL },
		{ HOOK "update-ldcache\n" HOOK "disable-device-node-modification x\n", NULL },
		/* Links that say too little or too much, to themselves, or twice; and paths that depend on the image's links. */
		{ HOOK "create-symlinks --link a::/b/../c\n", NULL },
		{ HOOK "create-symlinks --link a:://b\n", NULL },
		{ HOOK "create-symlinks --link a::/b/\n", NULL },
		{ HOOK "create-symlinks --link ,,a::/b,\n", "/b -> a overwrite\n" },
		{ HOOK "create-symlinks --link a:/b\n", NULL },
		{ HOOK "create-symlinks --link ::/b\n", NULL },
		{ HOOK "create-symlinks --link a::\n", NULL },
		{ HOOK "create-symlinks --link a::/b::/c\n", NULL },
		{ HOOK "create-symlinks --link /b::/b\n", NULL },
		{ HOOK "create-symlinks --link a::/b --link c::/b\n", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_cdi_edits edits = hook_rows_parse(rows[i].hooks);

		assert_result(i, convert(&edits, NULL, NULL), rows[i].edits);
	}
}

static void assert_same(const char *value, const char *expected)
{
	assert_int_equal(value != NULL, expected != NULL);
	if (value)
		assert_string_equal(value, expected);
}

static void test_memory_limits(void **state)
{
	const char *env[] = { "A=1", "NVIDIA_GPU_MEMORY_REQUEST=1Gi" };
	struct graft_cdi_edits edits = hook_rows_parse(HOOK "update-ldcache\ncreateRuntime " HOOK_PROGRAM
							    "|E=0|nvidia-cdi-hook apply-cuda-memory-limits\n");
	struct graft_oci_spec spec = { .env = env, .n_env = 1 };

	assert_result(0, convert(&edits, &spec, NULL), "");
	spec.n_env = 2;
	assert_result(1, convert(&edits, &spec, NULL), NULL);
}

static void test_timeout(void **state)
{
	struct graft_cdi_edits edits = hook_rows_parse(HOOK "create-symlinks --link a::/b\n");

	assert_non_null(convert(&edits, NULL, NULL));
	edits.hooks[0].has_timeout = true;
	assert_null(convert(&edits, NULL, NULL));
}

/* ---- what else is in the container ---- */

#define COMPAT_HOOK  HOOK "enable-cuda-compat --host-driver-version 550.54.14\n"
#define CACHE_HOOK   HOOK "update-ldcache\n"
#define PROFILE_HOOK HOOK "update-application-profile\n"
#define PROFILE(mask)                                                                                             \
	"directory /etc/nvidia/nvidia-application-profiles-rc.d 555 0 -\n"                                        \
	"file /etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf 444 0 "                              \
	"{\"profiles\":[{\"name\":\"_container_\",\"settings\":[\"EGLVisibleDGPUDevices\"," mask "]}],\"rules\":" \
	"[{\"pattern\":[],\"profile\":\"_container_\"}]}\n"

struct container {
	struct graft_cdi_edits edits;
	struct graft_oci_spec spec;
};

/* The fields of an item, separated by colons; NULL where there is none. */
static void split_fields(const char *item, const char **ret_fields, size_t n)
{
	const char **words = NULL;
	size_t n_words = 0;

	hook_rows_split(item, ':', &words, &n_words);
	for (size_t i = 0; i < n; i++)
		ret_fields[i] = words && i < n_words ? words[i] : NULL;
}

/* "PATH[:TYPE[:MINOR]] ...": without a minor a node has no numbers. */
static void add_nodes(struct graft_cdi_edits *edits, const char *text)
{
	const char **items = NULL;
	size_t n = 0;

	hook_rows_split(text, ' ', &items, &n);
	for (size_t i = 0; i < n; i++) {
		struct graft_cdi_node *node = graft_arena_push(arena, &edits->nodes, &edits->n_nodes, sizeof(*node));
		const char *fields[3];

		split_fields(items[i], fields, GRAFT_COUNT(fields));
		assert_non_null(node);
		node->path = fields[0];
		node->type = fields[1];
		node->has_numbers = fields[2] != NULL;
		node->major = 195;
		node->minor = fields[2] ? strtol(fields[2], NULL, 10) : 0;
	}
}

/* "DESTINATION[:TYPE] ..."; "-" has no destination. */
static void add_config_mounts(struct graft_oci_spec *spec, const char *text)
{
	const char **items = NULL;
	size_t n = 0;

	hook_rows_split(text, ' ', &items, &n);
	for (size_t i = 0; i < n; i++) {
		struct graft_oci_mount *mount = graft_arena_push(arena, &spec->mounts, &spec->n_mounts, sizeof(*mount));
		const char *fields[2];

		split_fields(items[i], fields, GRAFT_COUNT(fields));
		assert_non_null(mount);
		mount->destination = fields[0] && strcmp(fields[0], "-") != 0 ? fields[0] : NULL;
		mount->type = fields[1];
	}
}

struct surroundings {
	const char *hooks;
	const char *mounts;        /* places of the specification's mounts */
	const char *config_mounts; /* those of config.json: add_config_mounts() */
	const char *nodes;         /* of the specification: add_nodes() */
	const char *devices;       /* paths of linux.devices */
	const char *edits;         /* NULL: they must run */
};

static struct container make_container(const struct surroundings *row)
{
	struct container container = { .edits = hook_rows_parse(row->hooks) };
	const char **places = NULL;
	size_t n = 0;

	hook_rows_split(row->mounts ? row->mounts : "", ' ', &places, &n);
	for (size_t i = 0; i < n; i++) {
		struct graft_cdi_mount *mount = graft_arena_push(arena, &container.edits.mounts,
								 &container.edits.n_mounts, sizeof(*mount));

		assert_non_null(mount);
		mount->container_path = places[i];
	}
	add_config_mounts(&container.spec, row->config_mounts ? row->config_mounts : "");
	add_nodes(&container.edits, row->nodes ? row->nodes : "");
	hook_rows_split(row->devices ? row->devices : "", ' ', &container.spec.devices, &container.spec.n_devices);
	return container;
}

static void check_surroundings(const struct surroundings *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct container container = make_container(&rows[i]);

		assert_result(i, convert(&container.edits, &container.spec, NULL), rows[i].edits);
	}
}

/* Mounts of config.json over links are the sink's matter; those of the specification come after the hooks' words were written for them. */
static void test_links_and_mounts(void **state)
{
	static const char link[] = HOOK "create-symlinks --link a::/b\n", made[] = "/b -> a overwrite\n";
	static const struct surroundings rows[] = {
		{ .hooks = link, .mounts = "/bb /c", .edits = made },
		{ .hooks = link, .mounts = "/c /b" },
		{ .hooks = link, .mounts = "/x/..//b/" },
		{ .hooks = HOOK "create-symlinks --link a::/usr/lib/b\n", .mounts = "/lib/b" },
		{ .hooks = HOOK "create-symlinks --link a::/lib64/b\n", .mounts = "/usr/lib64/b" },
		{ .hooks = HOOK "create-symlinks --link a::/lib/b\n",
		  .mounts = "/lib64/b /usr/b /usr",
		  .edits = "/lib/b -> a overwrite\n" },
		{ .hooks = HOOK "update-ldcache\n", .mounts = "/opt//lib/libx.so" },
		{ .hooks = HOOK "update-ldcache\n", .mounts = "/usr/lib/glibc-hwcaps/x86-64-v3/libx.so" },
		{ .hooks = link, .mounts = "/usr/lib/glibc-hwcaps/x86-64-v3/libx.so", .edits = made },
		{ .hooks = link, .config_mounts = "/b:bind", .edits = made },
	};

	check_surroundings(rows, GRAFT_COUNT(rows));
}

static void test_compat_words(void **state)
{
	static const struct {
		const char *hooks, *root, *driver, *cuda; /* root NULL: it does nothing */
		bool known;
	} rows[] = {
		{ COMPAT_HOOK CACHE_HOOK, COMPAT, "550.54.14", NULL, true },
		{ HOOK "enable-cuda-compat --host-cuda-version=12.4\n" CACHE_HOOK, COMPAT, NULL, "12.4", true },
		{ HOOK "enable-cuda-compat --host-driver-version= --host-cuda-version 12.4\n" CACHE_HOOK, COMPAT, "",
		  "12.4", true },
		{ HOOK "enable-cuda-compat --host-driver-version=1 --cuda-compat-container-root "
		       "/opt//x/../compat/\n" CACHE_HOOK,
		  "/opt/compat", "1", NULL, true },
		{ HOOK
		  "enable-cuda-compat --host-driver-version=1 --cuda-compat-container-root opt/compat\n" CACHE_HOOK,
		  "/opt/compat", "1", NULL, true },
		/* Without a version it does nothing, wherever it stands. */
		{ HOOK "enable-cuda-compat\n", NULL, NULL, NULL, true },
		{ CACHE_HOOK HOOK "enable-cuda-compat --cuda-compat-container-root /x\n", NULL, NULL, NULL, true },
		{ HOOK "enable-cuda-compat --host-driver-version= --host-cuda-version=\n" CACHE_HOOK, NULL, NULL, NULL,
		  true },
		{ HOOK "enable-cuda-compat --cuda-compat-container-root /x\n" COMPAT_HOOK CACHE_HOOK, COMPAT,
		  "550.54.14", NULL, true },
		{ COMPAT_HOOK HOOK "enable-cuda-compat --cuda-compat-container-root /x\n" CACHE_HOOK, COMPAT,
		  "550.54.14", NULL, true },
		/* Nobody would read what it writes. */
		{ COMPAT_HOOK, NULL, NULL, NULL, false },
		{ CACHE_HOOK COMPAT_HOOK, NULL, NULL, NULL, false },
		{ COMPAT_HOOK CACHE_HOOK COMPAT_HOOK, NULL, NULL, NULL, false },
		{ CACHE_HOOK COMPAT_HOOK CACHE_HOOK, COMPAT, "550.54.14", NULL, true },
		/* The same twice, and two that do not agree. */
		{ COMPAT_HOOK COMPAT_HOOK CACHE_HOOK, COMPAT, "550.54.14", NULL, true },
		{ COMPAT_HOOK HOOK "enable-cuda-compat --host-driver-version=550.54.14 --host-cuda-version= "
				   "--cuda-compat-container-root=" COMPAT "/\n" CACHE_HOOK,
		  COMPAT, "550.54.14", "", true },
		{ COMPAT_HOOK HOOK "enable-cuda-compat --host-driver-version 550.54.15\n" CACHE_HOOK, NULL, NULL, NULL,
		  false },
		{ COMPAT_HOOK HOOK "enable-cuda-compat --host-cuda-version 12.4\n" CACHE_HOOK, NULL, NULL, NULL,
		  false },
		{ COMPAT_HOOK HOOK "enable-cuda-compat --host-driver-version 550.54.14 "
				   "--cuda-compat-container-root /x\n" CACHE_HOOK,
		  NULL, NULL, NULL, false },
		{ HOOK
		  "enable-cuda-compat --host-driver-version 550.54.14 --cuda-compat-container-root /x\n" COMPAT_HOOK
		      CACHE_HOOK,
		  NULL, NULL, NULL, false },
		{ HOOK "enable-cuda-compat --host-driver-version 1 --host-driver-version 2\n" CACHE_HOOK, NULL, NULL,
		  NULL, false },
		{ HOOK "enable-cuda-compat --host-cuda-version 1 --host-cuda-version 2\n" CACHE_HOOK, NULL, NULL, NULL,
		  false },
		{ HOOK "enable-cuda-compat --host-driver-version\n" CACHE_HOOK, NULL, NULL, NULL, false },
		{ HOOK "enable-cuda-compat --container-spec /x\n" CACHE_HOOK, NULL, NULL, NULL, false },
		{ HOOK "enable-cuda-compat 550.54.14\n" CACHE_HOOK, NULL, NULL, NULL, false },
	};
	const struct graft_oci_spec spec = { .n_mounts = 0 };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_cdi_edits edits = hook_rows_parse(rows[i].hooks);
		struct graft_hook_work work;
		bool known;

		print_message("# row %zu\n", i);
		assert_int_equal(graft_hooks_read(HOOK_PROGRAM, &edits, &spec, arena, &work, &known, NULL), 0);
		assert_int_equal(known, rows[i].known);
		if (!known)
			continue;
		assert_same(work.compat_root, rows[i].root);
		assert_same(work.driver_version, rows[i].driver);
		assert_same(work.cuda_version, rows[i].cuda);
	}
}

/* What is in the directory when the hook looks is not what is there now. */
static void test_compat_and_mounts(void **state)
{
	static const char both[] = COMPAT_HOOK CACHE_HOOK;
	static const char idle[] = HOOK "enable-cuda-compat\n" CACHE_HOOK;
	static const struct surroundings rows[] = {
		{ .hooks = both, .mounts = "/usr/bin/nvidia-smi /usr/local/cuda/lib64 " COMPAT "2", .edits = "" },
		{ .hooks = both, .mounts = "/usr/bin/nvidia-smi " COMPAT },
		{ .hooks = both, .mounts = COMPAT "/libcuda.so.1" },
		{ .hooks = both, .mounts = "/usr/local//" },
		{ .hooks = both, .config_mounts = "/proc:proc /dev:tmpfs /usr/local/share:bind", .edits = "" },
		{ .hooks = both, .config_mounts = "/:bind -", .edits = "" },
		{ .hooks = both, .config_mounts = "/usr/local/cuda:bind" },
		{ .hooks = both, .config_mounts = "/usr:tmpfs" },
		{ .hooks = both, .config_mounts = COMPAT "/x" },
		{ .hooks = idle, .config_mounts = COMPAT ":bind", .edits = "" },
		{ .hooks = HOOK "enable-cuda-compat --host-driver-version 1 --cuda-compat-container-root "
				"/opt/compat\n" CACHE_HOOK,
		  .mounts = COMPAT,
		  .edits = "" },
		{ .hooks = HOOK "enable-cuda-compat --host-driver-version 1 --cuda-compat-container-root "
				"/opt/compat\n" CACHE_HOOK,
		  .config_mounts = "/opt:bind" },
		{ .hooks = HOOK "create-symlinks --link a::/usr/local/cuda2\n" COMPAT_HOOK CACHE_HOOK,
		  .edits = "/usr/local/cuda2 -> a overwrite\n" },
		{ .hooks = HOOK "create-symlinks --link a::/usr/local/cuda\n" COMPAT_HOOK CACHE_HOOK },
		{ .hooks = HOOK "create-symlinks --link a::" COMPAT "\n" COMPAT_HOOK CACHE_HOOK },
		{ .hooks = HOOK "create-symlinks --link a::" COMPAT "/libcuda.so.1\n" COMPAT_HOOK CACHE_HOOK },
		{ .hooks = HOOK "create-symlinks --link a::/usr//local/cuda/compat/x\n" COMPAT_HOOK CACHE_HOOK },
	};

	check_surroundings(rows, GRAFT_COUNT(rows));
}

static void test_profile(void **state)
{
	static const struct surroundings rows[] = {
		{ .hooks = PROFILE_HOOK, .nodes = "/dev/nvidia0:c:0", .edits = PROFILE("0x1") },
		{ .hooks = PROFILE_HOOK PROFILE_HOOK,
		  .nodes = "/dev/nvidiactl:c:255 /dev/nvidia3:c:3 /dev/nvidia-uvm:c:0 /dev/nvidia1:c:1 "
			   "/dev/nvidia-caps/nvidia-cap1:c:1 /dev/dri/card0:c:2",
		  .edits = PROFILE("0xa") },
		/* The name is not the minor. */
		{ .hooks = PROFILE_HOOK, .nodes = "/dev/nvidia0:c:5", .edits = PROFILE("0x20") },
		{ .hooks = PROFILE_HOOK,
		  .nodes = "/dev/nvidia63:c:63 /dev/nvidia0:c:0",
		  .edits = PROFILE("0x8000000000000001") },
		{ .hooks = PROFILE_HOOK, .nodes = "/dev/nvidia64:c:64" },
		{ .hooks = PROFILE_HOOK, .nodes = "/dev/nvidia0:c:-1" },
		{ .hooks = PROFILE_HOOK, .nodes = "/dev/nvidia0:c" },
		{ .hooks = PROFILE_HOOK, .nodes = "/dev/nvidia0" },
		{ .hooks = PROFILE_HOOK, .nodes = "/dev/nvidia0:c:0 /dev/nvidia1:b:1" },
		/* Nodes that are no GPU's may say what they like; and without a GPU there is nothing to show. */
		{ .hooks = PROFILE_HOOK, .nodes = "/dev/nvidiactl /dev/nvidia-uvm:b:200", .edits = "" },
		{ .hooks = PROFILE_HOOK, .edits = "" },
		/* Nobody asks for it. */
		{ .hooks = CACHE_HOOK, .nodes = "/dev/nvidia0", .devices = "/dev/nvidia1", .edits = "" },
	};

	check_surroundings(rows, GRAFT_COUNT(rows));
}

/* GPUs that the container has without the specification. */
static void test_other_gpus(void **state)
{
	static const char one[] = "/dev/nvidiactl:c:255 /dev/nvidia0:c:0";
	static const struct surroundings rows[] = {
		{ .hooks = PROFILE_HOOK, .nodes = one, .devices = "/dev/nvidia0", .edits = PROFILE("0x1") },
		{ .hooks = PROFILE_HOOK,
		  .nodes = one,
		  .devices = "/dev/fuse /dev/nvidia-uvm /dev/nvidia-modeset /nvidia3 /dev/dri/nvidia3",
		  .edits = PROFILE("0x1") },
		{ .hooks = PROFILE_HOOK, .nodes = one, .devices = "/dev/nvidia0 /dev/nvidia1" },
		{ .hooks = PROFILE_HOOK, .devices = "/dev/nvidia0" },
		{ .hooks = PROFILE_HOOK,
		  .nodes = one,
		  .config_mounts = "/proc:proc /dev:tmpfs /dev/pts:devpts /dev/shm:bind",
		  .edits = PROFILE("0x1") },
		{ .hooks = PROFILE_HOOK, .nodes = one, .config_mounts = "/dev:bind" },
		{ .hooks = PROFILE_HOOK, .nodes = one, .config_mounts = "/dev/" },
		{ .hooks = PROFILE_HOOK, .nodes = one, .config_mounts = "/dev:devtmpfs" },
		{ .hooks = PROFILE_HOOK, .nodes = one, .config_mounts = "/dev:tmpfs /dev/nvidia3:bind" },
		{ .hooks = PROFILE_HOOK, .nodes = one, .config_mounts = "/dev//nvidia3:bind" },
		{ .hooks = PROFILE_HOOK, .nodes = one, .mounts = "/dev/nvidia3" },
		{ .hooks = PROFILE_HOOK, .nodes = one, .mounts = "/dev" },
		{ .hooks = PROFILE_HOOK, .nodes = one, .mounts = "/dev/nvidia-caps", .edits = PROFILE("0x1") },
		{ .hooks = CACHE_HOOK, .nodes = one, .devices = "/dev/nvidia1", .config_mounts = "/dev", .edits = "" },
	};

	check_surroundings(rows, GRAFT_COUNT(rows));
}

/* ---- libraries ---- */

static const struct graft_mounted_library libraries[] = {
	{ LIBS "/libcuda.so.550.54.14", "libcuda.so.1", 0x303 },
	{ LIBS "/libnvidia-glcore.so.550.54.14", "libnvidia-glcore.so.550.54.14", 0x303 },
	/* Of two the greater; of another ABI or directory it is another. */
	{ LIBS "/libx.so.9", "libx.so.1", 0x303 },
	{ LIBS "/libx.so.10", "libx.so.1", 0x303 },
	{ LIBS "/libx.so.11", "libx.so.1", 0x3 },
	{ "/opt/libx.so.12", "libx.so.1", 0x303 },
	{ LIBS "/libx.so.10", "libx.so.1", 0x303 },
	/* A link that the specification makes or mounts itself. */
	{ LIBS "/libasked.so.5", "libasked.so.1", 0x303 },
	{ LIBS "/libthere.so.5", "libthere.so.1", 0x303 },
	{ LIBS "/libthere.so.1", "libother.so", 0x303 },
};

static void test_libraries(void **state)
{
	const struct graft_image image = image_of_tests();
	const struct graft_hook_facts facts = { .libraries = libraries,
						.n_libraries = GRAFT_COUNT(libraries),
						.image = &image };
	const struct graft_cdi_edits edits = hook_rows_parse(HOOK "create-symlinks --link libasked.so.5::" LIBS
								  "/libasked.so.1\n" HOOK
								  "update-ldcache --folder " LIBS " --folder /opt\n");

	assert_string_equal(convert(&edits, NULL, &facts),
			    LIBS "/libasked.so.1 -> libasked.so.5 overwrite\n" LIBS
				 "/libcuda.so.1 -> libcuda.so.550.54.14 replace\n" LIBS
				 "/libx.so.1 -> libx.so.10 replace\n" LIBS "/libx.so.1 -> libx.so.11 replace\n"
				 "/opt/libx.so.1 -> libx.so.12 replace\n" LIBS "/libother.so -> libthere.so.1 replace\n"
				 "folder " LIBS "\nfolder /opt\nmissing /opt\n"
				 "libcuda.so.1 => " LIBS "/libcuda.so.1 303\n"
				 "libnvidia-glcore.so.550.54.14 => " LIBS "/libnvidia-glcore.so.550.54.14 303\n"
				 "libx.so.1 => " LIBS "/libx.so.1 303\n"
				 "libx.so.1 => " LIBS "/libx.so.1 3\n"
				 "libx.so.1 => /opt/libx.so.1 303\n"
				 "libasked.so.1 => " LIBS "/libasked.so.1 303\n"
				 "libthere.so.1 => " LIBS "/libthere.so.1 303\n"
				 "libother.so => " LIBS "/libother.so 303\n");
}

/* Links for development are known to the loader by their own name, if they lead to the library beside them. */
static void test_development_links(void **state)
{
	static const struct graft_mounted_library one[] = { { LIBS "/libcuda.so.550.54.14", "libcuda.so.1", 0x303 } };
	static const struct {
		const char *link;
		bool listed;
	} rows[] = {
		{ "libcuda.so.1::" LIBS "/libcuda.so", true },
		{ "libcuda.so.550.54.14::" LIBS "/libcuda.so", true },
		{ LIBS "/libcuda.so.1::" LIBS "/libcuda.so", true },
		{ "/opt/libcuda.so.1::" LIBS "/libcuda.so", false },
		{ "libcuda.so.2::" LIBS "/libcuda.so", false },
		{ "libcuda.so.1::/opt/libcuda.so", false },
		{ "libcuda.so.1::" LIBS "/libcud.so", false },
		{ "libcuda.so.1::" LIBS "/libcuda.so.0", false },
		{ "libcuda.so.550.54.14::" LIBS "/libcuda.so.1", false },
	};
	const struct graft_image image = image_of_tests();
	const struct graft_hook_facts facts = { .libraries = one, .n_libraries = 1, .image = &image };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *hooks = graft_arena_printf(arena, HOOK "create-symlinks --link %s\n" CACHE_HOOK,
						       rows[i].link);
		const struct graft_cdi_edits edits = hook_rows_parse(hooks);
		const char *text = convert(&edits, NULL, &facts);

		assert_non_null(text);
		if ((strstr(text, "libcuda.so => " LIBS "/libcuda.so 303\n") != NULL) != rows[i].listed ||
		    !strstr(text, "libcuda.so.1 => " LIBS "/libcuda.so.1 303\n"))
			fail_msg("%s: %s", rows[i].link, text);
	}
}

/* Without update-ldcache no links for sonames are requested. */
static void test_links_only(void **state)
{
	const struct graft_image image = image_of_tests();
	const struct graft_hook_facts facts = { .libraries = libraries,
						.n_libraries = GRAFT_COUNT(libraries),
						.image = &image };
	const struct graft_cdi_edits edits = hook_rows_parse(HOOK "create-symlinks --link a::/b\n");

	assert_string_equal(convert(&edits, NULL, &facts), "/b -> a overwrite\n");
}

/* ---- the whole plan ---- */

#define ALL_HOOKS                                                                          \
	HOOK "create-symlinks --link libcuda.so.1::" LIBS "/libcuda.so\n" COMPAT_HOOK HOOK \
	     "update-ldcache --folder " LIBS "\n" HOOK "disable-device-node-modification\n" PROFILE_HOOK

/* GPU 1, all hooks. */
static const struct surroundings all = { .hooks = ALL_HOOKS, .nodes = "/dev/nvidia1:c:1" };

static const char *cuda_link[] = { "libcuda.so" };
static struct graft_compat_library newer[] = {
	{ COMPAT "/libcuda.so.560.35.05", "libcuda.so.1", 0x303, 560, .development_links = cuda_link,
	  .n_development_links = 1 },
	{ COMPAT "/libcudadebugger.so.560.35.05", "libcudadebugger.so.1", 0x303, 560 },
	{ COMPAT "/libnameless.so.560.35.05", NULL, 0x303, 560 },
	{ "/usr/local/cuda/libelsewhere.so.1", "libelsewhere.so.1", 0x303, 1 },
};

static struct graft_image image_with_compat(struct graft_compat_library *compat, size_t n)
{
	struct graft_image image = image_of_tests();

	image.compat = compat;
	image.n_compat = n;
	return image;
}

static const char *convert_all(const struct graft_image *image, const char *params)
{
	const struct graft_hook_facts facts = {
		.libraries = libraries, .n_libraries = 1, .image = image, .params = params
	};
	const struct container container = make_container(&all);

	return convert(&container.edits, &container.spec, &facts);
}

#define DRIVER_CACHE "libcuda.so.1 => " LIBS "/libcuda.so.1 303\nlibcuda.so => " LIBS "/libcuda.so 303\n"
#define LINKS        LIBS "/libcuda.so -> libcuda.so.1 overwrite\n" LIBS "/libcuda.so.1 -> libcuda.so.550.54.14 replace\n"

/* In front of the driver's, with their folder. */
static void test_compat_is_found_first(void **state)
{
	const struct graft_image image = image_with_compat(newer, GRAFT_COUNT(newer));

	assert_string_equal(
	    convert_all(&image, PARAMS),
	    LINKS "folder " COMPAT "\nfolder " LIBS "\nmissing " COMPAT "\n"
		  "libcuda.so.1 => " COMPAT "/libcuda.so.560.35.05 303\n"
		  "libcuda.so => " COMPAT "/libcuda.so.560.35.05 303\n"
		  "libcudadebugger.so.1 => " COMPAT "/libcudadebugger.so.560.35.05 303\n" DRIVER_CACHE COVER PROFILE(
		      "0x2") "refused " COMPAT
			     "/libnameless.so.560.35.05: it has no soname by which the loader could find it\n"
			     "refused /usr/local/cuda/libelsewhere.so.1: in another directory than libcuda\n");
}

#define DRIVER_ONLY LINKS "folder " LIBS "\n" DRIVER_CACHE COVER PROFILE("0x2")

static void test_compat_is_refused(void **state)
{
	static const char *branch[] = { "535" };
	static struct graft_compat_library same[] = { { COMPAT "/libcuda.so.550.90.07", "libcuda.so.1", 0x303, 550,
							.development_links = cuda_link, .n_development_links = 1 } };
	static struct graft_compat_library noted[] = {
		{ COMPAT "/libcuda.so.560.35.05", "libcuda.so.1", 0x303, 560, true, "12.6", branch, 1 },
	};
	static struct graft_compat_library two[] = {
		{ COMPAT "/libcuda.so.560.35.05", "libcuda.so.1", 0x303, 560 },
		{ COMPAT "/libcuda.so.570.1", "libcuda.so.1", 0x303, 570 },
	};
	static struct graft_compat_library none[] = { { COMPAT "/libcuda.so.1", "libcuda.so.1", 0x303, 1 } };
	static const char several[] =
	    "its directory does not have exactly one libcuda, so the drivers that it works with are not known";
	static const struct {
		struct graft_compat_library *compat;
		size_t n;
		const char *why;
	} rows[] = {
		{ NULL, 0, NULL },
		{ same, 1, "the libcuda beside it has no newer major version than the driver: not needed" },
		{ noted, 1, "the libcuda beside it states that it does not work with this driver, or is not newer" },
		{ two, 2, several },
		{ none, 1, several },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_image image = image_with_compat(rows[i].compat, rows[i].n);
		struct graft_buffer expected = { .max = 0 };

		graft_buffer_string(&expected, DRIVER_ONLY);
		for (size_t j = 0; j < rows[i].n; j++)
			graft_buffer_printf(&expected, "refused %s: %s\n", rows[i].compat[j].path, rows[i].why);
		assert_result(i, convert_all(&image, PARAMS), graft_buffer_text(&expected));
		graft_buffer_done(&expected);
	}
}

/* By a branch that it names itself it suits a driver, and the host's CUDA is older. */
static void test_compat_by_its_own_word(void **state)
{
	static const char *branch[] = { "535", "550" };
	static struct graft_compat_library noted[] = {
		{ "/opt/compat/libcuda.so.560.35.05", "libcuda.so.1", 0x303, 560, true, "12.6", branch, 2 },
	};
	const struct graft_image image = image_with_compat(noted, 1);
	const struct graft_hook_facts facts = { .image = &image };
	const struct graft_cdi_edits edits = hook_rows_parse(
	    HOOK "enable-cuda-compat --host-driver-version 550.54.14 --host-cuda-version 12.4 "
		 "--cuda-compat-container-root /opt/compat\n" CACHE_HOOK);

	assert_string_equal(convert(&edits, NULL, &facts), "folder /opt/compat\nmissing /opt/compat\nlibcuda.so.1 => "
							   "/opt/compat/libcuda.so.560.35.05 303\n");
}

/* Without the hook, the contents of the image do not matter. */
static void test_compat_without_hook(void **state)
{
	const struct graft_image image = image_with_compat(newer, GRAFT_COUNT(newer));
	const struct graft_hook_facts facts = { .image = &image };
	const struct graft_cdi_edits edits = hook_rows_parse(CACHE_HOOK);

	assert_string_equal(convert(&edits, NULL, &facts), "");
}

static void test_musl(void **state)
{
	struct graft_image image = image_with_compat(newer, 1);

	image.libc = GRAFT_LIBC_MUSL;
	image.musl_path_file = "/etc/ld-musl-x86_64.path";
	assert_string_equal(
	    convert_all(&image, PARAMS),
	    LINKS "folder " LIBS "\nmusl /etc/ld-musl-x86_64.path: /lib\n/usr/local/lib\n/usr/lib\n" LIBS
		  "\n" COVER PROFILE("0x2") "refused " COMPAT
					    "/libcuda.so.560.35.05: the image's loader (musl) cannot use it\n");
}

/* The host has no such parameters, or they say so already. */
static void test_no_params(void **state)
{
	const struct graft_image image = image_of_tests();

	assert_string_equal(convert_all(&image, NULL), LINKS "folder " LIBS "\n" DRIVER_CACHE PROFILE("0x2"));
}

static void test_rules(void **state)
{
	static const struct {
		const char *rule, *why;
	} rows[] = {
		{ "spec-link", "the specification asks for it" },
		{ "soname-link", "programs ask for the library by its soname" },
		{ "spec-ldcache", "the specification asks for it" },
		{ "driver-params", "keeps the driver's libraries from creating device nodes" },
		{ "application-profile", "keeps EGL from showing GPUs that were not selected" },
		{ "application-profile", "keeps EGL from showing GPUs that were not selected" },
	};
	const struct graft_image image = image_of_tests();
	const struct graft_hook_facts facts = { libraries, 1, &image, PARAMS };
	const struct container container = make_container(&all);
	struct graft_hook_work work;
	struct graft_plan *plan;
	bool known;

	assert_int_equal(graft_hooks_read(HOOK_PROGRAM, &container.edits, &container.spec, arena, &work, &known, NULL),
			 0);
	assert_true(known);
	plan = graft_hooks_plan(&work, &facts, NULL);
	assert_non_null(plan);
	assert_int_equal(plan->n_edits, GRAFT_COUNT(rows));
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_string_equal(plan->edits[i].rule, rows[i].rule);
		assert_string_equal(plan->edits[i].why, rows[i].why);
	}
	graft_plan_free(plan);
}

/* ---- without memory ---- */

struct attempt {
	struct graft_hook_work work;
	struct graft_plan *plan;
	bool known;
};

static struct container container_of_all_hooks(void)
{
	return make_container(
	    &(struct surroundings){ .hooks = ALL_HOOKS HOOK "create-symlinks --link a::/dev/b,c::/dev/d\n",
				    .nodes = all.nodes,
				    .mounts = "/m",
				    .config_mounts = "/n" });
}

static int try_all(const struct container *container, struct graft_arena *own, struct attempt *ret,
		   struct graft_error *err)
{
	const struct graft_image image = image_with_compat(newer, GRAFT_COUNT(newer));
	const struct graft_hook_facts facts = { libraries, GRAFT_COUNT(libraries), &image, PARAMS };

	*ret = (struct attempt){ .plan = NULL };
	if (graft_hooks_read(HOOK_PROGRAM, &container->edits, &container->spec, own, &ret->work, &ret->known, err) < 0)
		return -1;
	assert_true(ret->known);
	ret->plan = graft_hooks_plan(&ret->work, &facts, err);
	return ret->plan ? 0 : -1;
}

static void test_allocations_fail(void **state)
{
	const struct container container = container_of_all_hooks();
	int rc = -1, n = 0;

	while (rc != 0) {
		struct graft_arena *own = graft_arena_new((size_t)1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		struct attempt attempt;

		allocation_fail(++n);
		rc = try_all(&container, own, &attempt, &err);
		assert_int_equal(allocation_failed(), rc != 0);
		assert_int_equal(err.status, rc != 0 ? GRAFT_NO_MEMORY : GRAFT_OK);
		graft_plan_free(attempt.plan);
		graft_arena_free(own);
	}
	assert_true(n > 3);
}

/* An arena's maximum stands for memory that ends in the middle of a word. */
static void test_arena_is_full(void **state)
{
	const struct container container = container_of_all_hooks();
	bool read = false;
	size_t max;

	for (max = 0; !read; max += 16) {
		struct graft_arena *own = graft_arena_new(max);
		struct graft_error err = { .status = GRAFT_OK };
		struct attempt attempt;

		read = try_all(&container, own, &attempt, &err) == 0;
		assert_int_equal(err.status, read ? GRAFT_OK : GRAFT_NO_MEMORY);
		graft_plan_free(attempt.plan);
		graft_arena_free(own);
	}
	assert_true(max > 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_and_mounts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compat_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compat_and_mounts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_profile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_gpus, setup, teardown),
		cmocka_unit_test_setup_teardown(test_libraries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_development_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compat_is_found_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compat_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compat_by_its_own_word, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compat_without_hook, setup, teardown),
		cmocka_unit_test_setup_teardown(test_musl, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_params, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allocations_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arena_is_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
