/* SPDX-License-Identifier: Apache-2.0 */
/* strings: predicates on strings that the C library lacks. */
#ifndef GRAFT_BASE_STRINGS_H
#define GRAFT_BASE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Return whether `text` begins with `prefix` or ends with `suffix`. A text equal to it does both.
 */
bool graft_starts_with(const char *text, const char *prefix);
bool graft_ends_with(const char *text, const char *suffix);
/* Returns whether two texts are equal, or both are NULL. */
bool graft_is_same_text(const char *a, const char *b);
/* Returns whether one of the words in `list`, which commas separate, equals `word`. */
bool graft_list_has(const char *list, const char *word);
/* The same for another separator and the first `length` bytes of `word`. */
bool graft_list_has_bytes(const char *list, char separator, const char *word, size_t length);
/* Returns whether one of the n items equals `item`. */
bool graft_is_in(const char *const *items, size_t n, const char *item);
/* For qsort(3) and bsearch(3): compares elements of type `const char *` like strcmp(3). */
int graft_compare_strings(const void *a, const void *b);

/*
 * Returns the length of the sequence of two or more bytes at `s`, reading at most `left` bytes (at
 * least 1). Returns 0 if it is malformed: it starts with an ASCII or continuation byte, is cut off
 * or overlong, or encodes a surrogate or a value beyond U+10FFFF.
 */
size_t graft_utf8_length(const unsigned char *s, size_t left);
/* Writes a code point, at most four bytes. Returns the end of them. */
char *graft_utf8_put(char *out, uint32_t code);
/*
 * Returns the length of the character at `s`, of at most `left` bytes (at least 1), if it may be
 * shown to people; 0 for a control character, one that changes the direction of text, a separator
 * of lines or paragraphs, and what is not UTF-8. SECURITY: such a character could start a line, or
 * reach a terminal as an escape sequence.
 */
size_t graft_visible_length(const unsigned char *s, size_t left);
/* Returns whether a text is UTF-8. */
bool graft_is_utf8(const char *text);
/* Makes a text UTF-8, in place: replaces each byte that is not part of a character by '?'. */
void graft_utf8_mend(char *text);
/* Returns line and column (in characters) of byte `at` of a UTF-8 text, counted from 1. */
void graft_utf8_place(const char *text, size_t at, unsigned int *ret_line, unsigned int *ret_column);

#endif
