/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry: prints the version if the library is run as a program (SPEC libnvidia-container 1.3). The
 * section .interp names the loader, and the linker option -e the entry function.
 */
#include <unistd.h>

#include "abi/abi.h"
#include "start/version.h"

#if defined(__x86_64__)
#define LOADER "/lib64/ld-linux-x86-64.so.2"
/* The kernel aligns the stack as it would be before a call instruction, not after it. */
#define ENTRY __attribute__((force_align_arg_pointer, used))
#elif defined(__aarch64__)
#define LOADER "/lib/ld-linux-aarch64.so.1"
#define ENTRY  __attribute__((used))
#endif

#ifdef LOADER
__attribute__((section(".interp"), used)) static const char loader[] = LOADER;

ENTRY _Noreturn void abi_library_main(void);

ENTRY _Noreturn void abi_library_main(void)
{
	struct graft_buffer out = { .max = 0 };
	int status = 1;

	graft_buffer_printf(&out, "version: %s\n", NVC_VERSION);
	graft_version_build(&out);
	if (!graft_buffer_failed(&out) &&
	    write(STDOUT_FILENO, graft_buffer_text(&out), out.length) == (ssize_t)out.length)
		status = 0;
	_exit(status);
}
#endif
