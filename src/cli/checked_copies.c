/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checked_copies: the functions that glibc's headers substitute for memcpy(3) and its kin when
 * _FORTIFY_SOURCE is set, for the programs that are linked with musl, which lacks them. The archive
 * of libyaml is built for glibc, and in some distributions (Ubuntu 24.04) it calls these functions
 * (docs/decisions/0020-musl.md). They are specified in the Linux Standard Base, Core 5.0, as
 * "__memcpy_chk" and so on: `size` is the size of the destination, and a program that would write
 * more is killed.
 *
 * Like static_heap.c, this is part of the programs and not of a library. Tests compile it under
 * other names.
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
