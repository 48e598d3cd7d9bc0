/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../memory_file.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "elf_writer.h"
#include "formats/loader/elf.h"

static const char *const needed[] = { "libnvidia-glcore.so.550.54.14", "libc.so.6", NULL };
static const uint32_t tls_kernel[3] = { 2, 3, 99 };

/* The project's own reader agrees, for every machine. */
static void test_reader_agrees(void **state)
{
	static const struct {
		enum sim_elf_machine machine;
		uint32_t abi_flags;
	} cases[] = {
		{ SIM_ELF_X86_64, GRAFT_ABI_FLAGS_X86_64 },
		{ SIM_ELF_I386, GRAFT_ABI_FLAGS_I386 },
		{ SIM_ELF_AARCH64, GRAFT_ABI_FLAGS_AARCH64 },
		{ SIM_ELF_ARM, GRAFT_ABI_FLAGS_ARM_HARD },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		for (unsigned int variant = 0; variant < 4; variant++) {
			struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
			struct graft_buffer bytes = { .max = 0 };
			struct graft_error err = { .status = GRAFT_OK };
			struct graft_elf elf;
			int fd;

			sim_elf_write(&(struct sim_elf){ .machine = cases[i].machine,
							 .soname = "libGLX_nvidia.so.0",
							 .needed = variant & 1 ? needed : NULL,
							 .abi_kernel = variant & 2 ? tls_kernel : NULL },
				      &bytes);
			assert_false(graft_buffer_failed(&bytes));
			fd = memory_file(bytes.bytes, bytes.length);
			if (graft_elf_read_fd(fd, "x", arena, &elf, &err) < 0)
				fail_msg("%s", err.msg);
			(void)close(fd);
			assert_int_equal(elf.abi_flags, cases[i].abi_flags);
			assert_string_equal(elf.soname, "libGLX_nvidia.so.0");
			assert_int_equal(elf.n_needed, variant & 1 ? 2 : 0);
			for (size_t k = 0; k < elf.n_needed; k++)
				assert_string_equal(elf.needed[k], needed[k]);
			assert_int_equal(elf.has_abi_note, (variant & 2) != 0);
			if (elf.has_abi_note)
				assert_memory_equal(elf.abi_kernel, tls_kernel, sizeof(tls_kernel));
			graft_buffer_done(&bytes);
			(void)graft_arena_free(arena);
		}
	}
}

/* The loader of this machine takes it. */
static void test_loader_agrees(void **state)
{
	struct graft_buffer bytes = { .max = 0 };
	auto_close int fd = memfd_create("stub", MFD_CLOEXEC);
#if defined(__aarch64__)
	enum sim_elf_machine machine = SIM_ELF_AARCH64;
#else
	enum sim_elf_machine machine = SIM_ELF_X86_64;
#endif
	char path[64];
	void *library;

	sim_elf_write(&(struct sim_elf){ .machine = machine, .soname = "libstub.so.1", .abi_kernel = tls_kernel },
		      &bytes);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.bytes, bytes.length), bytes.length);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	library = dlopen(path, RTLD_NOW);
	if (!library)
		fail_msg("%s", dlerror());
	assert_null(dlsym(library, "anything"));
	(void)dlclose(library);
	graft_buffer_done(&bytes);
}

static void test_no_room(void **state)
{
	struct graft_buffer bytes = { .max = 128 };

	sim_elf_write(&(struct sim_elf){ .machine = SIM_ELF_X86_64, .soname = "libstub.so.1" }, &bytes);
	assert_true(graft_buffer_failed(&bytes));
	graft_buffer_done(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader_agrees),
		cmocka_unit_test(test_loader_agrees),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
