/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_mounts: parses bytes into entries. As lax as the files are old: anything that is not an entry
 * is skipped, never an error.
 */
#include "formats/csv_mounts.h"

#include <stdbool.h>
#include <string.h>

#define ENTRIES_MAX ((size_t)65536)

static const char *const type_names[GRAFT_CSV_TYPE_MAX] = { "dev", "dir", "lib", "sym" };

struct span {
	const char *at;
	size_t length;
};

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct span trim_csv_field(const char *at, size_t length)
{
	while (length > 0 && is_space(at[0])) {
		at++;
		length--;
	}
	while (length > 0 && is_space(at[length - 1]))
		length--;
	return (struct span){ at, length };
}

static bool find_type(const struct span *word, enum graft_csv_type *ret_type)
{
	for (unsigned int i = 0; i < GRAFT_CSV_TYPE_MAX; i++) {
		if (strlen(type_names[i]) == word->length && memcmp(type_names[i], word->at, word->length) == 0) {
			*ret_type = (enum graft_csv_type)i;
			return true;
		}
	}
	return false;
}

/* Splits the line at its first comma, since paths may contain commas. */
static bool read_csv_line(const struct span *line, enum graft_csv_type *ret_type, struct span *ret_path)
{
	const char *comma = memchr(line->at, ',', line->length);
	struct span word;

	if (!comma)
		return false;
	word = trim_csv_field(line->at, (size_t)(comma - line->at));
	*ret_path = trim_csv_field(comma + 1, line->length - (size_t)(comma - line->at) - 1);
	return find_type(&word, ret_type) && ret_path->length > 0 && !memchr(ret_path->at, '\0', ret_path->length);
}

int graft_csv_read(const char *text, size_t length, struct graft_arena *arena, struct graft_csv_entry **entries,
		   size_t *n_entries, size_t *ret_skipped, struct graft_error *err)
{
	const char *end = text + length;

	*ret_skipped = 0;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t line_length = newline ? (size_t)(newline - text) : (size_t)(end - text);
		struct span line = trim_csv_field(text, line_length), path;
		struct graft_csv_entry *entry;
		enum graft_csv_type type;

		text += line_length + (newline != NULL);
		if (!read_csv_line(&line, &type, &path)) {
			*ret_skipped += line.length > 0;
			continue;
		}
		if (*n_entries >= ENTRIES_MAX)
			return graft_fail(err, GRAFT_TOO_BIG, 0, "more than %zu entries", ENTRIES_MAX);
		entry = graft_arena_push(arena, entries, n_entries, sizeof(*entry));
		if (!entry)
			return graft_fail_memory(err);
		entry->type = type;
		entry->path = graft_arena_strndup(arena, path.at, path.length);
		if (!entry->path)
			return graft_fail_memory(err);
	}
	return 0;
}
