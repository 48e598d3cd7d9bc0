/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where: loads libcuda.so.1 with the dynamic loader of the root that it runs in, and prints where
 * that library says it is. Uses only symbols of every glibc since 2014, so that one binary runs
 * with older and newer ones: no start files, old symbol versions.
 */
#include <string.h>
#include <unistd.h>

#if defined(__aarch64__)
#define OLD "GLIBC_2.17"
#else
#define OLD "GLIBC_2.2.5"
#endif

#define LAZY 1 /* RTLD_LAZY */

void *old_dlopen(const char *name, int flags);
void *old_dlsym(void *handle, const char *name);
char *old_dlerror(void);
void _start(void);

__asm__(".symver old_dlopen,dlopen@" OLD);
__asm__(".symver old_dlsym,dlsym@" OLD);
__asm__(".symver old_dlerror,dlerror@" OLD);

static void say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0 || write(fd, "\n", 1) < 0)
		_exit(3);
}

#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
void _start(void)
{
	void *library = old_dlopen("libcuda.so.1", LAZY);
	const char *const *word = library ? old_dlsym(library, "graft_where") : NULL;

	if (!word) {
		say(2, old_dlerror());
		_exit(1);
	}
	say(1, *word);
	_exit(0);
}
