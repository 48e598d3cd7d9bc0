/* SPDX-License-Identifier: Apache-2.0 */
/* Places of GPUs in a sysfs of the test's own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "host/pci_tree.h"

static char root[64];
static struct graft_arena *arena;

/* Makes all directories of a path but its last component. */
static void make_parents(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*at = '/';
	}
}

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s%s", root, name);
	make_parents(path);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* A PCI device with its place in /sys/devices. */
static void put_device(const char *place, const char *vendor, const char *class_, const char *node)
{
	char path[256], link[256];

	(void)snprintf(path, sizeof(path), "/sys/devices/%s/vendor", place);
	put(path, vendor);
	(void)snprintf(path, sizeof(path), "/sys/devices/%s/class", place);
	put(path, class_);
	(void)snprintf(path, sizeof(path), "/sys/devices/%s/numa_node", place);
	put(path, node);
	(void)snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s", root, strrchr(place, '/') + 1);
	make_parents(link);
	(void)snprintf(path, sizeof(path), "../../../devices/%s", place);
	assert_int_equal(symlink(path, link), 0);
}

static int setup(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/pci-tree.XXXXXX");
	assert_non_null(mkdtemp(root));
	arena = graft_arena_new((size_t)4 << 20);
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena = graft_arena_free(arena);
	return test_remove_folder(root);
}

static void test_places(void **state)
{
	struct graft_gpu gpus[] = { { .bus_id = "00000000:1b:00.0" },
				    { .bus_id = "00010000:02:00.0" },
				    { .bus_id = "00000000:99:00.0" },
				    { .bus_id = NULL } };
	const struct graft_inventory inventory = { .gpus = gpus, .n_gpus = GRAFT_COUNT(gpus) };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_pci_tree tree;

	put_device("pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0/0000:1b:00.0", "0x10de\n", "0x030200\n", "1\n");
	put_device("pci10000:00/10000:00:00.0/10000:02:00.0", "0x10de\n", "0x030200\n", "-1\n");
	put_device("pci0000:00/0000:05:00.0", "0x10de\n", "0x068000\n", "0\n");
	put_device("pci0000:00/0000:06:00.0", "0x10de\n", "0x068000\n", "0\n");
	put_device("pci0000:00/0000:07:00.0", "0x8086\n", "0x068000\n", "0\n");
	assert_int_equal(graft_pci_tree_read(root, &inventory, arena, &tree, &err), 0);
	assert_int_equal(tree.n_gpus, 4);
	assert_string_equal(tree.gpus[0].bus_id, "00000000:1b:00.0");
	assert_true(tree.gpus[0].has_numa_node && tree.gpus[0].numa_node == 1);
	assert_int_equal(tree.gpus[0].n_bridges, 4);
	assert_string_equal(tree.gpus[0].bridges[0], "pci0000:16");
	assert_string_equal(tree.gpus[0].bridges[3], "0000:18:00.0");
	assert_false(tree.gpus[1].has_numa_node);
	assert_int_equal(tree.gpus[1].n_bridges, 2);
	/* One that sysfs does not have, and one without an address. */
	assert_false(tree.gpus[2].has_numa_node);
	assert_int_equal(tree.gpus[2].n_bridges + tree.gpus[3].n_bridges, 0);
	assert_int_equal(tree.n_nvswitches, 2);
}

/* Links between GPUs of the host count, those to switches and to GPUs that it does not have do not. */
static void test_links(void **state)
{
	struct graft_gpu gpus[] = { { .bus_id = "00000000:1b:00.0" },
				    { .bus_id = "00000000:2b:00.0" },
				    { .bus_id = NULL } };
	const struct graft_inventory inventory = { .gpus = gpus, .n_gpus = GRAFT_COUNT(gpus) };
	struct graft_nvml_link links[] = { { "00000000:2b:00.0", 4 },
					   { "00000000:c1:00.0", 2 },
					   { "00000000:1b:00.0", 9 } };
	struct graft_nvml_gpu said[] = { { .bus_id = "00000000:1b:00.0", .links = links, .n_links = 3 },
					 { .bus_id = "00000000:3b:00.0", .links = links, .n_links = 3 },
					 { .bus_id = NULL, .links = links, .n_links = 3 } };
	const struct graft_nvml_snapshot snapshot = { .gpus = said, .n_gpus = GRAFT_COUNT(said) };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_pci_tree tree;

	assert_int_equal(graft_pci_tree_read(root, &inventory, arena, &tree, &err), 0);
	assert_int_equal(graft_pci_tree_links(&tree.gpus[0], &tree.gpus[1]), 0);
	assert_int_equal(graft_pci_tree_add_links(&tree, &snapshot, arena, &err), 0);
	assert_int_equal(tree.gpus[0].n_links, 1);
	assert_int_equal(tree.gpus[1].n_links + tree.gpus[2].n_links, 0);
	assert_int_equal(graft_pci_tree_links(&tree.gpus[0], &tree.gpus[1]), 4);
	assert_int_equal(graft_pci_tree_links(&tree.gpus[1], &tree.gpus[0]), 4);
	assert_int_equal(graft_pci_tree_links(&tree.gpus[0], &tree.gpus[2]), 0);
}

static void test_nothing(void **state)
{
	struct graft_gpu gpu = { .bus_id = "00000000:1b:00.0" };
	const struct graft_inventory inventory = { .gpus = &gpu, .n_gpus = 1 }, none = { .n_gpus = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_pci_tree tree;

	assert_int_equal(graft_pci_tree_read(root, &inventory, arena, &tree, &err), 0);
	assert_false(tree.gpus[0].has_numa_node);
	assert_int_equal(tree.n_nvswitches, 0);
	assert_int_equal(graft_pci_tree_read(root, &none, arena, &tree, &err), 0);
	assert_int_equal(tree.n_gpus, 0);
	assert_int_equal(graft_pci_tree_read("/nowhere", &none, arena, &tree, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
