/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: what a well-formed UTF-8 sequence is (RFC 3629), for every reader of text. */
#ifndef GRAFT_BASE_UTF8_H
#define GRAFT_BASE_UTF8_H

#include <stddef.h>

/*
 * The length of the sequence of two or more bytes at `s`, of which `left` (at least 1) may be looked at; 0 when it is malformed: an ASCII
 * or continuation byte at the start, cut off, overlong, a surrogate, beyond U+10FFFF.
 */
size_t graft_utf8_length(const unsigned char *s, size_t left);

#endif
