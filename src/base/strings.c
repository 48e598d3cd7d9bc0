/* SPDX-License-Identifier: Apache-2.0 */
/* strings: prefixes, suffixes, lists of strings. */
#include "base/strings.h"

#include <string.h>

/* Most texts differ in their first bytes; strlen(prefix) would cost more than the comparison. */
bool graft_starts_with(const char *text, const char *prefix)
{
	while (*prefix != '\0')
		if (*text++ != *prefix++)
			return false;
	return true;
}

bool graft_ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text), suffix_length = strlen(suffix);

	return length >= suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

bool graft_is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool graft_list_has_bytes(const char *list, char separator, const char *word, size_t length)
{
	for (const char *at = list; at; at = strchr(at, separator)) {
		at += *at == separator;
		if (strncmp(at, word, length) == 0 && (at[length] == separator || at[length] == '\0'))
			return true;
	}
	return false;
}

bool graft_list_has(const char *list, const char *word)
{
	return graft_list_has_bytes(list, ',', word, strlen(word));
}

bool graft_is_in(const char *const *items, size_t n, const char *item)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(items[i], item) == 0)
			return true;
	return false;
}

int graft_compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}
