/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checked_copies: what glibc's headers make of memcpy(3) and its kin when _FORTIFY_SOURCE is set, for the programs that are linked with musl, which has
 * none of them: the archive of libyaml is made for glibc, and some distributions' calls these (Ubuntu 24.04's; docs/decisions/0020-musl.md). Interfaces of the
 * Linux Standard Base, Core 5.0, "__memcpy_chk" and so on: `size` is what the destination has room for, and a program that would write more is killed.
 *
 * A part of the programs and not of a library, as static_heap.c. Tests compile it under other names.
 */
#include <string.h>

void *__memcpy_chk(void *to, const void *from, size_t n, size_t size);
void *__memmove_chk(void *to, const void *from, size_t n, size_t size);
void *__memset_chk(void *to, int byte, size_t n, size_t size);

void *__memcpy_chk(void *to, const void *from, size_t n, size_t size)
{
	if (n > size)
		__builtin_trap();
	return memcpy(to, from, n);
}

void *__memmove_chk(void *to, const void *from, size_t n, size_t size)
{
	if (n > size)
		__builtin_trap();
	return memmove(to, from, n);
}

void *__memset_chk(void *to, int byte, size_t n, size_t size)
{
	if (n > size)
		__builtin_trap();
	return memset(to, byte, n);
}
