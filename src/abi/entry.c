/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry: what happens when somebody runs the library as a program: it tells its version (SPEC libnvidia-container 1.3). The loader is named by the section
 * .interp, the linker is told the name of the function.
 */
#include <unistd.h>

#include "abi/abi.h"
#include "cli/cli.h"

#if defined(__x86_64__)
#define LOADER "/lib64/ld-linux-x86-64.so.2"
/* The kernel aligns the stack as a caller would after its call instruction, not before. */
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
	cli_version_build(&out);
	if (!graft_buffer_failed(&out) &&
	    write(STDOUT_FILENO, graft_buffer_text(&out), out.length) == (ssize_t)out.length)
		status = 0;
	_exit(status);
}
#endif
