/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache: header, records, strings, and the extension that names the generator (SPEC
 * ld-so-cache 3 to 6).
 */
#include "loader_cache.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_SIZE     48u
#define RECORD_SIZE     24u
#define LITTLE_ENDIAN_  2
#define EXTENSION_MAGIC 0xeaa42174u

static const char generator[] = "graft-sim " GRAFT_VERSION;

static void u32(struct graft_buffer *out, size_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		graft_buffer_char(out, (char)(value >> (8 * i) & 0xff));
}

/*
 * Compares two runs of digits as numbers of any length: without leading zeros the longer one is
 * greater.
 */
static int compare_numbers(const char **a, const char **b)
{
	size_t n_a, n_b;
	int order;

	*a += strspn(*a, "0");
	*b += strspn(*b, "0");
	n_a = strspn(*a, "0123456789");
	n_b = strspn(*b, "0123456789");
	order = n_a != n_b ? (n_a < n_b ? -1 : 1) : strncmp(*a, *b, n_a);
	*a += n_a;
	*b += n_b;
	return order;
}

/* The loader's order of sonames: libx.so.9 before libx.so.10. */
static int compare_names(const char *a, const char *b)
{
	while (*a != '\0') {
		bool digit_a = isdigit((unsigned char)*a) != 0, digit_b = isdigit((unsigned char)*b) != 0;

		if (digit_a && digit_b) {
			int order = compare_numbers(&a, &b);

			if (order != 0)
				return order;
		} else if (digit_a != digit_b) {
			return digit_a ? 1 : -1;
		} else if (*a != *b) {
			return (unsigned char)*a - (unsigned char)*b;
		} else {
			a++;
			b++;
		}
	}
	return *b == '\0' ? 0 : -1;
}

/* Sorts descending by name, then descending by flags. */
static int compare_entries(const void *x, const void *y)
{
	const struct sim_cache_entry *a = x, *b = y;
	int order = compare_names(b->soname, a->soname);

	if (order != 0)
		return order;
	if (a->flags != b->flags)
		return a->flags > b->flags ? -1 : 1;
	return strcmp(a->path, b->path);
}

static void write_cache_header(size_t n, size_t strings, size_t extension, struct graft_buffer *out)
{
	graft_buffer_add(out, "glibc-ld.so.cache1.1", 20);
	u32(out, n);
	u32(out, strings);
	u32(out, LITTLE_ENDIAN_);
	u32(out, extension);
	for (unsigned int i = 0; i < 3; i++)
		u32(out, 0);
}

static void write_extension(size_t at, struct graft_buffer *out)
{
	u32(out, EXTENSION_MAGIC);
	u32(out, 1);
	u32(out, 0); /* tag: generator */
	u32(out, 0);
	u32(out, at + 24);
	u32(out, sizeof(generator) - 1);
	graft_buffer_add(out, generator, sizeof(generator) - 1);
}

/* The soname is nearly always the end of its path; the two then share their bytes. */
static bool is_tail(const struct sim_cache_entry *entry)
{
	size_t n_path = strlen(entry->path), n_name = strlen(entry->soname);

	return n_name <= n_path && strcmp(entry->path + n_path - n_name, entry->soname) == 0;
}

static size_t string_size(const struct sim_cache_entry *entry)
{
	return strlen(entry->path) + 1 + (is_tail(entry) ? 0 : strlen(entry->soname) + 1);
}

void sim_cache_write(struct sim_cache_entry *entries, size_t n, struct graft_buffer *out)
{
	size_t strings = 0, extension, value = HEADER_SIZE + n * RECORD_SIZE, start = out->length;

	if (n > 1)
		qsort(entries, n, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < n; i++)
		strings += string_size(&entries[i]);
	extension = (value + strings + 3) & ~(size_t)3;
	write_cache_header(n, strings, extension, out);
	for (size_t i = 0; i < n; i++) {
		u32(out, entries[i].flags);
		u32(out, value + string_size(&entries[i]) - strlen(entries[i].soname) - 1);
		u32(out, value);
		u32(out, 0);
		u32(out, 0);
		u32(out, 0);
		value += string_size(&entries[i]);
	}
	for (size_t i = 0; i < n; i++) {
		graft_buffer_add(out, entries[i].path, strlen(entries[i].path) + 1);
		if (!is_tail(&entries[i]))
			graft_buffer_add(out, entries[i].soname, strlen(entries[i].soname) + 1);
	}
	while (!graft_buffer_failed(out) && out->length - start < extension)
		graft_buffer_char(out, '\0');
	write_extension(extension, out);
}

/* --- merging --- */

struct merged {
	struct graft_arena *arena;
	struct sim_cache_entry *entries;
	size_t n;
};

static uint32_t get_u32(const char *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static const char *string_at(const char *file, size_t length, uint32_t offset)
{
	return offset < length && memchr(file + offset, '\0', length - offset) ? file + offset : NULL;
}

static bool is_known(const struct merged *merged, size_t n, const struct sim_cache_entry *entry)
{
	for (size_t i = 0; i < n; i++) {
		if (merged->entries[i].flags == entry->flags && strcmp(merged->entries[i].soname, entry->soname) == 0)
			return true;
	}
	return false;
}

/* Adds the records of a file, except those that the first `n_driver` entries already contain. */
static int add_records(struct merged *merged, const char *file, size_t length, size_t n_driver)
{
	size_t n;

	if (length < HEADER_SIZE || memcmp(file, "glibc-ld.so.cache1.1", 20) != 0)
		return -1;
	n = get_u32(file + 20);
	if (n > (length - HEADER_SIZE) / RECORD_SIZE)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *record = file + HEADER_SIZE + i * RECORD_SIZE;
		struct sim_cache_entry entry = { .soname = string_at(file, length, get_u32(record + 4)),
						 .path = string_at(file, length, get_u32(record + 8)),
						 .flags = get_u32(record) };
		struct sim_cache_entry *added;

		if (!entry.soname || !entry.path)
			return -1;
		if (get_u32(record + 16) != 0 || get_u32(record + 20) != 0 || is_known(merged, n_driver, &entry))
			continue;
		added = graft_arena_push(merged->arena, &merged->entries, &merged->n, sizeof(*added));
		if (!added)
			return -1;
		*added = entry;
	}
	return 0;
}

int sim_cache_merge(const char *driver, size_t n_driver, const char *host, size_t n_host, struct graft_arena *arena,
		    struct graft_buffer *out)
{
	struct merged merged = { .arena = arena };

	if (add_records(&merged, driver, n_driver, 0) < 0 || add_records(&merged, host, n_host, merged.n) < 0)
		return -1;
	sim_cache_write(merged.entries, merged.n, out);
	return 0;
}
