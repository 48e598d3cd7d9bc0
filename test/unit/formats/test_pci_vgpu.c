/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration spaces with and without the vendor's capability, and broken ones. */
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "formats/pci_vgpu.h"

static struct graft_arena *arena;
static unsigned char space[256];

static int setup(void **state)
{
	arena = graft_arena_new((size_t)1 << 20);
	memset(space, 0, sizeof(space));
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena = graft_arena_free(arena);
	return 0;
}

/* Power management at 0x40, then the vendor's at 0x68: a record of 4 bytes and the last one, "470.63", "r470_00". */
static void make_space(void)
{
	static const unsigned char vendor[] = { 0x09, 0x00, 0x1f, 'V', 'F', 0x01, 0x04, 0xaa, 0xbb, 0x00, 0x16,
						'4',  '7',  '0',  '.', '6', '3',  0,    0,    0,    0,    'r',
						'4',  '7',  '0',  '_', '0', '0',  0,    0,    0 };

	space[0x06] = 0x10;
	space[0x34] = 0x40;
	space[0x40] = 0x01;
	space[0x41] = 0x68;
	memcpy(space + 0x68, vendor, sizeof(vendor));
}

static bool parse(size_t length, struct graft_pci_vgpu *vgpu)
{
	return graft_pci_vgpu_parse((const char *)space, length, arena, vgpu);
}

static void test_virtual(void **state)
{
	struct graft_pci_vgpu vgpu;

	make_space();
	assert_true(parse(sizeof(space), &vgpu));
	assert_string_equal(vgpu.host_driver_version, "470.63");
	assert_string_equal(vgpu.host_driver_branch, "r470_00");
	/* What is no version stays out of it. */
	space[0x68 + 14] = 0x1b;
	assert_true(parse(sizeof(space), &vgpu));
	assert_string_equal(vgpu.host_driver_version, "470");
}

static void test_others(void **state)
{
	struct graft_pci_vgpu vgpu;

	assert_false(parse(sizeof(space), &vgpu));
	assert_false(parse(0, &vgpu));
	for (size_t i = 0; i < 0x68 + 31; i++) {
		make_space();
		assert_false(parse(i, &vgpu)); /* cut short: 64 bytes are what a user without rights sees */
	}
	space[0x06] = 0;
	assert_false(parse(sizeof(space), &vgpu));
	make_space();
	space[0x68 + 4] = 'X';
	assert_false(parse(sizeof(space), &vgpu));
	make_space();
	space[0x68 + 6] = 0; /* a record without a length */
	assert_false(parse(sizeof(space), &vgpu));
	make_space();
	space[0x41] = 0x40; /* a circle */
	assert_false(parse(sizeof(space), &vgpu));
	assert_null(vgpu.host_driver_version);
}

static void test_no_memory(void **state)
{
	struct graft_pci_vgpu vgpu;

	make_space();
	for (int n = 1; n < 10; n++) {
		struct graft_arena *small = graft_arena_new((size_t)1 << 20);

		allocation_fail(n);
		(void)graft_pci_vgpu_parse((const char *)space, sizeof(space), small, &vgpu);
		if (!allocation_failed()) {
			assert_string_equal(vgpu.host_driver_branch, "r470_00");
			(void)graft_arena_free(small);
			break;
		}
		assert_true(graft_arena_failed(small));
		(void)graft_arena_free(small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_virtual, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
