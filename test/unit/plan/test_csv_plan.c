/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of Tegra boards: selection (SPEC runtime-and-hook 9.3, 14.18), edits and their order (SPEC
 * runtime-and-hook 9.4), and that "none" gives no device (SPEC runtime-and-hook Q13).
 */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "plan/plan_csv.h"

static struct graft_node orin_nodes[] = {
	{ .path = "/dev/nvidia0", .major = 195, .minor = 0, .present = true, .mode = 0666 },
	{ .path = "/dev/nvmap", .major = 10, .minor = 124, .present = true, .mode = 0400, .gid = 44 }
};
static struct graft_node thor_nodes[] = {
	{ .path = "/dev/nvidia0", .major = 195, .minor = 0, .present = true },
	{ .path = "/dev/nvidia1", .major = 195, .minor = 1, .present = true },
	{ .path = "/dev/nvidiactl", .major = 195, .minor = 255, .present = true },
	{ .path = "/dev/nvmap", .major = 10, .minor = 124, .present = true, .mode = 0400, .gid = 44 }
};
static struct graft_node driver_nodes[] = { { .path = "/dev/nvidiactl", .major = 195, .minor = 255, .present = true },
					    { .path = "/dev/nvidia2", .major = 195, .minor = 2, .present = true } };
static struct graft_csv_file files[] = {
	{ .source = "/usr/lib/nvidia/libcuda.so.1.1",
	  .target = "/usr/lib/nvidia/libcuda.so.1.1",
	  .soname = "libcuda.so.1",
	  .abi_flags = 0xa03 },
	{ .source = "/usr/lib/nvidia/libnvidia-ml.so.1",
	  .target = "/usr/lib/nvidia/libnvidia-ml.so.1",
	  .soname = "libnvidia-ml.so.1",
	  .abi_flags = 0xa03 },
	{ .source = "/etc/alsa", .target = "/etc/sound", .directory = true },
};
static struct graft_csv_link links[] = { { "/usr/lib/nvidia/libcuda.so", "libcuda.so.1", false },
					 { "/usr/lib/libx.so", "nvidia/libx.so.1", true } };
static const struct graft_csv_inventory orin = { .root = "/run/root",
						 .dev_root = "/",
						 .nodes = orin_nodes,
						 .n_nodes = 2,
						 .files = files,
						 .n_files = 3,
						 .links = links,
						 .n_links = 2,
						 .release_file = true };
static const struct graft_csv_inventory thor = { .root = "/",
						 .dev_root = "/",
						 .nodes = thor_nodes,
						 .n_nodes = 4,
						 .driver_nodes = driver_nodes,
						 .n_driver_nodes = 2 };
static struct graft_gpu pair[] = {
	{ .index = 0,
	  .bus_id = "00000000:01:00.0",
	  .model = { .value = "NVIDIA Thor" },
	  .uuid = { .value = "54f8e9a0-0000-0000-0000-000000000000" },
	  .node = { .path = "/dev/nvidia0", .major = 195, .minor = 0, .present = true } },
	{ .index = 1,
	  .bus_id = "00000005:01:00.0",
	  .model = { .value = "NVIDIA RTX A6000" },
	  .uuid = { .value = "GPU-1aaa0000-0000-0000-0000-000000000001" },
	  .node = { .path = "/dev/nvidia1", .major = 195, .minor = 1, .present = true } },
};
static const struct graft_inventory two = { .gpus = pair, .n_gpus = 2 };
static const struct graft_inventory one = { .gpus = pair, .n_gpus = 1 };
static const struct graft_inventory none = { .n_gpus = 0 };

/* The nodes that a plan gives. */
static const char *nodes_of(const struct graft_plan *plan)
{
	static char result[512];

	result[0] = '\0';
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_DEVICE)
			(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "%s%s",
				       result[0] ? " " : "", edit->target + strlen("/dev/"));
	}
	return result;
}

static const struct {
	const char *name;
	const struct graft_csv_inventory *csv;
	const struct graft_inventory *gpus;
	bool single;               /* the feature flag */
	const char *words, *nodes; /* NULL = refused */
} selections[] = {
	{ "one GPU: all", &orin, &none, false, "all", "nvidia0 nvmap" },
	{ "one GPU: 0", &orin, &none, false, "0", "nvidia0 nvmap" },
	{ "one GPU: as the device plugin calls it", &orin, &none, false, "tegra", "nvidia0 nvmap" },
	{ "one GPU: another word of that kind", &orin, &none, false, "Tegra", NULL },
	{ "one GPU: twice", &orin, &one, false, "0 all", "nvidia0 nvmap" },
	{ "one GPU: none", &orin, &none, false, "none", "" },
	{ "one GPU: nothing", &orin, &none, false, "", "" },
	{ "one GPU: 1", &orin, &none, false, "1", NULL },
	{ "one GPU: 0 and what is not there", &orin, &none, false, "0 GPU-x", NULL },
	{ "one GPU: its UUID", &orin, &one, false, "54f8e9a0-0000-0000-0000-000000000000", NULL },
	{ "Thor and a card: 0", &thor, &two, false, "0", "nvidia0 nvidiactl nvmap nvidia2" },
	{ "Thor and a card: as the device plugin calls the first", &thor, &two, false, "tegra",
	  "nvidia0 nvidiactl nvmap nvidia2" },
	{ "Thor and a card: 1", &thor, &two, false, "1", "nvidia1 nvidiactl nvmap" },
	{ "Thor and a card: all", &thor, &two, false, "all", "nvidia0 nvidiactl nvmap nvidia2 nvidia1" },
	{ "Thor and a card: both", &thor, &two, false, "1 0", "nvidia0 nvidiactl nvmap nvidia2 nvidia1" },
	{ "Thor and a card: none", &thor, &two, false, "none", "" },
	{ "Thor and a card: UUID", &thor, &two, false, "GPU-1AAA0000-0000-0000-0000-000000000001",
	  "nvidia1 nvidiactl nvmap" },
	{ "Thor and a card: bare UUIDs", &thor, &two, false, "1aaa0000-0000-0000-0000-000000000001",
	  "nvidia1 nvidiactl nvmap" },
	{ "Thor and a card: Orin's bare UUID", &thor, &two, false, "54f8e9a0-0000-0000-0000-000000000000",
	  "nvidia0 nvidiactl nvmap nvidia2" },
	{ "Thor and a card: 2", &thor, &two, false, "2", NULL },
	{ "Thor and a card: MIG", &thor, &two, false, "MIG-1aaa0000-0000-0000-0000-000000000001", NULL },
	{ "Thor and a card: 1:0", &thor, &two, false, "1:0", NULL },
	{ "the flag: all nodes are one GPU's", &thor, &two, true, "0", "nvidia0 nvidia1 nvidiactl nvmap" },
	{ "the flag: 1", &thor, &two, true, "1", NULL },
};

static int plan_for(size_t i, struct graft_plan **ret_plan, struct graft_error *err)
{
	const struct graft_csv_policy policy = { .n_compat = 0 };
	struct graft_csv_selection selection;
	const char *words[8], *fallback;
	char text[256], *at = text, *word;
	size_t n = 0;

	(void)snprintf(text, sizeof(text), "%s", selections[i].words);
	while ((word = strsep(&at, " ")) && n < GRAFT_COUNT(words)) {
		if (word[0] != '\0')
			words[n++] = word;
	}
	if (graft_csv_select(selections[i].gpus, selections[i].single, words, n, &selection, &fallback, err) < 0)
		return -1;
	return graft_csv_plan(selections[i].csv, &selection, &policy, ret_plan, err);
}

static void test_selection(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(selections); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_plan *plan = NULL;
		int rc = plan_for(i, &plan, &err);

		print_message("# %s\n", selections[i].name);
		assert_int_equal(rc, selections[i].nodes ? 0 : -1);
		if (rc < 0) {
			assert_int_equal(err.status, GRAFT_UNKNOWN_DEVICE);
			assert_true(strncmp(err.msg, "unsupported device id: ", 23) == 0);
		} else {
			assert_string_equal(nodes_of(plan), selections[i].nodes);
		}
		(void)graft_plan_free(plan);
	}
}

/*
 * Two GPUs of which none, or both, are integrated, or in the wrong order, count as one, and a
 * warning is logged.
 */
static void test_fallback(void **state)
{
	static const char *const all[] = { "all" };
	struct graft_csv_selection selection;
	struct graft_gpu swapped[2] = { pair[1], pair[0] };
	struct graft_inventory gpus = { .gpus = swapped, .n_gpus = 2 };
	const char *why;

	swapped[0].index = 0;
	swapped[1].index = 1;
	assert_int_equal(graft_csv_select(&gpus, false, all, 1, &selection, &why, NULL), 0);
	assert_true(selection.single);
	assert_non_null(why);
	assert_int_equal(graft_csv_select(&two, false, all, 1, &selection, &why, NULL), 0);
	assert_false(selection.single);
	assert_null(why);
}

static const char *text_of(const struct graft_plan *plan)
{
	static char result[4096];

	result[0] = '\0';
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "%s%s%s%s%s%s%s%s%s\n",
			       graft_edit_names[edit->kind], edit->source ? " " : "", edit->source ? edit->source : "",
			       edit->target ? " " : "", edit->target ? edit->target : "", edit->content ? " = " : "",
			       edit->content ? edit->content : "", edit->access ? " " : "",
			       edit->access ? edit->access : "");
		for (size_t j = 0; j < edit->n_entries; j++)
			(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "  %s %s\n",
				       edit->entries[j].soname, edit->entries[j].path);
		for (size_t j = 0; j < edit->n_folders; j++)
			(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "  folder %s\n",
				       edit->folders[j]);
	}
	return result;
}

static void test_edits(void **state)
{
	static const char *development_links[] = { "libcuda.so" };
	static const struct graft_compat_library compat[] = {
		{ .path = "/usr/local/cuda/compat_orin/libcuda.so.1.1",
		  .soname = "libcuda.so.1",
		  .abi_flags = 0xa03,
		  .development_links = development_links,
		  .n_development_links = 1 },
	};
	struct graft_csv_policy policy = { .compat = compat, .n_compat = 1 };
	struct graft_csv_selection selection = { .single = true, .integrated = true };
	struct graft_plan *plan = NULL;

	assert_int_equal(graft_csv_plan(&orin, &selection, &policy, &plan, NULL), 0);
	assert_string_equal(text_of(plan),
			    "device /dev/nvidia0 /dev/nvidia0\n"
			    "cgroup rwm\n"
			    "device /dev/nvmap /dev/nvmap\n"
			    "cgroup rwm\n"
			    "bind /run/root/usr/lib/nvidia/libcuda.so.1.1 /usr/lib/nvidia/libcuda.so.1.1\n"
			    "bind /run/root/usr/lib/nvidia/libnvidia-ml.so.1 /usr/lib/nvidia/libnvidia-ml.so.1\n"
			    "bind /run/root/etc/alsa /etc/sound\n"
			    "bind /etc/nv_tegra_release /etc/nv_tegra_release\n"
			    "symlink /usr/lib/nvidia/libcuda.so = libcuda.so.1\n"
			    "symlink /usr/lib/libx.so = nvidia/libx.so.1\n"
			    "ldcache\n"
			    "  libcuda.so.1 /usr/local/cuda/compat_orin/libcuda.so.1.1\n"
			    "  libcuda.so /usr/local/cuda/compat_orin/libcuda.so.1.1\n"
			    "  libnvidia-ml.so.1 /usr/lib/nvidia/libnvidia-ml.so.1\n"
			    "  folder /usr/local/cuda/compat_orin\n"
			    "  folder /usr/lib/nvidia\n"
			    "env NVIDIA_VISIBLE_DEVICES = void\n");
	assert_int_equal(plan->edits[2].gid, 44);
	assert_int_equal(plan->edits[2].mode, 0400);
	assert_int_equal(plan->edits[6].type, GRAFT_SOURCE_DIRECTORY);
	assert_int_equal(plan->n_grants, 1);
	(void)graft_plan_free(plan);
	policy.disabled_hooks = GRAFT_HOOK_ALL;
	assert_int_equal(graft_csv_plan(&orin, &selection, &policy, &plan, NULL), 0);
	assert_null(strstr(text_of(plan), "symlink"));
	assert_null(strstr(text_of(plan), "ldcache"));
	assert_int_equal(plan->n_refusals, 2);
	(void)graft_plan_free(plan);
	policy.disabled_hooks = GRAFT_HOOK_COMPAT;
	assert_int_equal(graft_csv_plan(&orin, &selection, &policy, &plan, NULL), 0);
	assert_null(strstr(text_of(plan), "compat_orin"));
	assert_non_null(strstr(text_of(plan), "ldcache"));
	(void)graft_plan_free(plan);
}

/* The display node of the card, with its link. */
static void test_drm(void **state)
{
	static struct graft_drm_node drm[] = {
		{ .node = { .path = "/dev/dri/card1", .major = 226, .minor = 1, .present = true },
		  .by_path = "/dev/dri/by-path/pci-0005:01:00.0-card",
		  .by_path_content = "../card1" },
		{ .node = { .path = "/dev/dri/renderD129", .major = 226, .minor = 129, .present = false } },
	};
	struct graft_gpu card = pair[1];
	struct graft_csv_policy policy = { .n_compat = 0 };
	struct graft_csv_selection selection = { .discrete_gpu = &card };
	struct graft_plan *plan = NULL;

	card.drm_nodes = drm;
	card.n_drm_nodes = 2;
	assert_int_equal(graft_csv_plan(&thor, &selection, &policy, &plan, NULL), 0);
	assert_string_equal(nodes_of(plan), "nvidia1 dri/card1 nvidiactl nvmap");
	assert_non_null(strstr(text_of(plan), "symlink /dev/dri/by-path/pci-0005:01:00.0-card = ../card1\n"));
	(void)graft_plan_free(plan);
	policy.disabled_hooks = GRAFT_HOOK_SYMLINKS;
	assert_int_equal(graft_csv_plan(&thor, &selection, &policy, &plan, NULL), 0);
	assert_null(strstr(text_of(plan), "symlink"));
	(void)graft_plan_free(plan);
}

static void test_no_nodes(void **state)
{
	struct graft_csv_inventory empty = { .root = "/", .dev_root = "/" };
	struct graft_csv_policy policy = { .n_compat = 0 };
	struct graft_csv_selection selection = { .single = true, .integrated = true };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_plan *plan = NULL;

	assert_int_equal(graft_csv_plan(&empty, &selection, &policy, &plan, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_string_equal(
	    err.msg, "no device node that the CSV files of this board list exists: install its container packages, or "
		     "state where the files are (--csv.file, nvidia-container-runtime.modes.csv.mount-spec-path)");
	selection.integrated = false;
	assert_int_equal(graft_csv_plan(&empty, &selection, &policy, &plan, &err), 0);
	assert_string_equal(text_of(plan), "env NVIDIA_VISIBLE_DEVICES = void\n");
	(void)graft_plan_free(plan);
	/* The card's node is gone since the driver listed it. */
	pair[1].node.present = false;
	selection = (struct graft_csv_selection){ .discrete_gpu = &pair[1] };
	assert_int_equal(graft_csv_plan(&thor, &selection, &policy, &plan, &err), -1);
	assert_string_equal(err.msg, "GPU 1: its device node /dev/nvidia1 is not on this host");
	pair[1].node.present = true;
}

static void test_memory(void **state)
{
	struct graft_csv_policy policy = { .n_compat = 0 };
	struct graft_csv_selection selection = { .single = true, .integrated = true };

	for (int n = 1;; n++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_plan *plan = NULL;
		int rc;

		allocation_fail(n);
		rc = graft_csv_plan(&orin, &selection, &policy, &plan, &err);
		if (!allocation_reported(rc, &err)) {
			(void)graft_plan_free(plan);
			assert_true(n > 1);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_selection), cmocka_unit_test(test_fallback), cmocka_unit_test(test_edits),
		cmocka_unit_test(test_drm),       cmocka_unit_test(test_no_nodes), cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
