/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache: converts the bytes of /etc/ld.so.cache to records and back. Does not know where the file
 * is, which records it should contain, or whether it is out of date. SPEC ld-so-cache 1 to 6.
 */
#include "formats/loader/ldcache.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

#define OLD_MAGIC         "ld.so-1.7.0"
#define OLD_HEADER_SIZE   ((size_t)16)
#define OLD_RECORD_SIZE   ((size_t)12)
#define NEW_MAGIC         "glibc-ld.so.cache1.1"
#define NEW_HEADER_SIZE   ((size_t)48)
#define NEW_RECORD_SIZE   ((size_t)24)
#define EXTENSION_MAGIC   0xeaa42174u
#define SECTION_GENERATOR 0u
#define SECTION_HWCAPS    1u
#define SECTION_SIZE      ((size_t)16)

/*
 * SECURITY: in a hostile image, a hundred thousand records could share a string of megabytes, on
 * which every comparison is slow. Sonames are file names, and the largest distributions have some
 * ten thousand records.
 */
#define MAX_RECORDS ((size_t)65536)
#define MAX_HWCAPS  ((size_t)256)
#define MAX_SONAME  ((size_t)255)
#define MAX_PATH    ((size_t)4096)

#define BYTE_ORDER_MASK 3u
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_BYTE_ORDER 2u
#else
#define OWN_BYTE_ORDER 3u
#endif

struct file {
	const char *bytes;
	size_t length;
	size_t last_nul; /* no string can begin after it; `length` if there is none */
	const char *name;
	struct graft_error *err;
};

static int fail_ldcache_format(const struct file *file)
{
	return graft_fail(file->err, GRAFT_FORMAT, 0, "unsupported file format: %s", file->name);
}

static uint32_t get_u32(const struct file *file, size_t at)
{
	uint32_t value;

	memcpy(&value, file->bytes + at, sizeof(value));
	return value;
}

/* Returns whether `n` items of `size` bytes fit between `at` and the end. */
static bool has_ldcache_items(const struct file *file, size_t at, uint64_t n, size_t size)
{
	return at <= file->length && n <= (file->length - at) / size;
}

/*
 * Returns the string at `base` + `offset`, or NULL if it is not terminated or longer than `max`
 * bytes.
 */
static const char *string_at(const struct file *file, size_t base, uint32_t offset, size_t max)
{
	size_t at = base + offset, limit;

	if (file->last_nul == file->length || at > file->last_nul)
		return NULL;
	limit = file->last_nul - at + 1;
	return memchr(file->bytes + at, '\0', limit < max ? limit : max + 1) ? file->bytes + at : NULL;
}

static int add_ldcache_record(const struct file *file, const struct graft_ldcache_record *record,
			      struct graft_ldcache *cache)
{
	if (!record->soname || !record->path)
		return fail_ldcache_format(file);
	cache->records[cache->n_records++] = *record;
	return 0;
}

static int allocate_records(const struct file *file, size_t n, struct graft_arena *arena, struct graft_ldcache *cache)
{
	if (n > MAX_RECORDS)
		return fail_ldcache_format(file);
	/* One more than needed, so that the list of an empty cache is not NULL. */
	cache->records = graft_arena_list(arena, n + 1, sizeof(*cache->records));
	return cache->records ? 0 : graft_fail_memory(file->err);
}

/* A file without the new table, written by glibc before 2.1.2 or by `ldconfig -c old`. */
static int read_old(const struct file *file, size_t n, struct graft_arena *arena, struct graft_ldcache *cache)
{
	size_t strings = OLD_HEADER_SIZE + n * OLD_RECORD_SIZE;

	if (allocate_records(file, n, arena, cache) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		size_t at = OLD_HEADER_SIZE + i * OLD_RECORD_SIZE;
		const struct graft_ldcache_record record = {
			.soname = string_at(file, strings, get_u32(file, at + 4), MAX_SONAME),
			.path = string_at(file, strings, get_u32(file, at + 8), MAX_PATH),
			.flags = get_u32(file, at),
		};

		if (add_ldcache_record(file, &record, cache) < 0)
			return -1;
	}
	return 0;
}

/*
 * Offsets of names are relative to the new header, as they are written (loaders of a compat file
 * use another base: section 6).
 */
static int read_hwcaps(const struct file *file, size_t base, size_t at, size_t size, struct graft_arena *arena,
		       struct graft_ldcache *cache)
{
	size_t n = size / 4;

	if (size % 4 != 0 || n == 0 || n > MAX_HWCAPS || cache->n_hwcaps != 0)
		return fail_ldcache_format(file);
	cache->hwcaps = graft_arena_list(arena, n, sizeof(*cache->hwcaps));
	if (!cache->hwcaps)
		return graft_fail_memory(file->err);
	for (size_t i = 0; i < n; i++) {
		cache->hwcaps[i] = string_at(file, base, get_u32(file, at + i * 4), MAX_SONAME);
		if (!cache->hwcaps[i])
			return fail_ldcache_format(file);
	}
	cache->n_hwcaps = n;
	return 0;
}

static int read_ldcache_extension(const struct file *file, size_t base, size_t entry, struct graft_arena *arena,
				  struct graft_ldcache *cache)
{
	uint32_t tag = get_u32(file, entry), at = get_u32(file, entry + 8), size = get_u32(file, entry + 12);

	if (!has_ldcache_items(file, at, size, 1))
		return fail_ldcache_format(file);
	if (tag == SECTION_HWCAPS)
		return read_hwcaps(file, base, at, size, arena, cache);
	if (tag == SECTION_GENERATOR) {
		/* SECURITY: each section of a hostile file could be the whole file, and is copied. */
		if (cache->generator)
			return fail_ldcache_format(file);
		cache->generator = graft_arena_strndup(arena, file->bytes + at, size);
		return cache->generator ? 0 : graft_fail_memory(file->err);
	}
	return 0;
}

static int read_extensions(const struct file *file, size_t base, struct graft_arena *arena, struct graft_ldcache *cache)
{
	size_t at = get_u32(file, base + 32);
	size_t n;

	if (at == 0)
		return 0;
	if (at % 4 != 0 || !has_ldcache_items(file, at, 2, 4) || get_u32(file, at) != EXTENSION_MAGIC)
		return fail_ldcache_format(file);
	n = get_u32(file, at + 4);
	at += 8;
	if (!has_ldcache_items(file, at, n, SECTION_SIZE) || n > MAX_HWCAPS)
		return fail_ldcache_format(file);
	for (size_t i = 0; i < n; i++) {
		if (read_ldcache_extension(file, base, at + i * SECTION_SIZE, arena, cache) < 0)
			return -1;
	}
	return 0;
}

/*
 * Only bit 62 is set above the ten bits of the ISA level: the low half is an index into the names.
 */
static bool is_hwcaps_record(uint64_t hwcap)
{
	return hwcap >> 42 == 1u << 20;
}

static int read_new(const struct file *file, size_t base, struct graft_arena *arena, struct graft_ldcache *cache)
{
	uint32_t n = get_u32(file, base + 20), byte_order = (unsigned char)file->bytes[base + 28] & BYTE_ORDER_MASK;

	if (byte_order != 0 && byte_order != OWN_BYTE_ORDER)
		return fail_ldcache_format(file);
	if (!has_ldcache_items(file, base + NEW_HEADER_SIZE, n, NEW_RECORD_SIZE) ||
	    !has_ldcache_items(file, base + NEW_HEADER_SIZE + n * NEW_RECORD_SIZE, get_u32(file, base + 24), 1))
		return fail_ldcache_format(file);
	if (allocate_records(file, n, arena, cache) < 0 || read_extensions(file, base, arena, cache) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		size_t at = base + NEW_HEADER_SIZE + i * NEW_RECORD_SIZE;
		struct graft_ldcache_record record = {
			.soname = string_at(file, base, get_u32(file, at + 4), MAX_SONAME),
			.path = string_at(file, base, get_u32(file, at + 8), MAX_PATH),
			.flags = get_u32(file, at),
			.os_version = get_u32(file, at + 12),
		};

		memcpy(&record.hwcap, file->bytes + at + 16, sizeof(record.hwcap));
		if (is_hwcaps_record(record.hwcap) && (uint32_t)record.hwcap >= cache->n_hwcaps)
			return fail_ldcache_format(file);
		if (add_ldcache_record(file, &record, cache) < 0)
			return -1;
	}
	return 0;
}

static bool has_new_header(const struct file *file, size_t base)
{
	return has_ldcache_items(file, base, 1, NEW_HEADER_SIZE) &&
	       memcmp(file->bytes + base, NEW_MAGIC, strlen(NEW_MAGIC)) == 0;
}

int graft_ldcache_read(const void *bytes, size_t length, const char *name, struct graft_arena *arena,
		       struct graft_ldcache *ret_cache, struct graft_error *err)
{
	const char *last = length > 0 ? memrchr(bytes, '\0', length) : NULL;
	const struct file file = { .bytes = bytes,
				   .length = length,
				   .last_nul = last ? (size_t)(last - (const char *)bytes) : length,
				   .name = name,
				   .err = err };
	struct graft_ldcache cache = { 0 };
	size_t base = 0, n = 0;
	bool old = has_ldcache_items(&file, 0, 1, OLD_HEADER_SIZE) && memcmp(bytes, OLD_MAGIC, strlen(OLD_MAGIC)) == 0;
	int rc;

	if (old) {
		n = get_u32(&file, 12);
		if (!has_ldcache_items(&file, OLD_HEADER_SIZE, n, OLD_RECORD_SIZE))
			return fail_ldcache_format(&file);
		base = (OLD_HEADER_SIZE + n * OLD_RECORD_SIZE + 7) / 8 * 8;
	}
	if (has_new_header(&file, base))
		rc = read_new(&file, base, arena, &cache);
	else
		rc = old ? read_old(&file, n, arena, &cache) : fail_ldcache_format(&file);
	if (rc == 0)
		*ret_cache = cache;
	return rc;
}

bool graft_ldcache_is_library_name(const char *name)
{
	size_t n = strlen(name);

	/* Files that package managers and prelink are about to rename. */
	if (strstr(name, ".#prelink#") || (n > 7 && name[n - 7] == ';') || graft_ends_with(name, ".dpkg-new") ||
	    graft_ends_with(name, ".dpkg-tmp"))
		return false;
	if (graft_starts_with(name, "ld.so.") || graft_starts_with(name, "ld64.so."))
		return true;
	return (graft_starts_with(name, "lib") || graft_starts_with(name, "ld-")) && strstr(name, ".so");
}

bool graft_ldcache_is_development_name(const char *name)
{
	return graft_ends_with(name, ".so");
}

bool graft_ldcache_is_development_link(const char *name, const char *soname)
{
	return graft_ldcache_is_development_name(name) && graft_starts_with(soname, name) &&
	       soname[strlen(name)] != '\0';
}

bool graft_ldcache_is_soname(const char *soname)
{
	return soname[0] != '\0' && strlen(soname) <= MAX_SONAME && !strchr(soname, '/') && strcmp(soname, ".") != 0 &&
	       strcmp(soname, "..") != 0;
}

static bool is_soname_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * QUIRK: the loader uses an int that wraps around. Only the same overflow gives the order that its
 * search expects.
 */
static uint32_t take_soname_digits(const char **s)
{
	uint32_t value = 0;

	for (; is_soname_digit(**s); (*s)++)
		value = value * 10 + (uint32_t)(**s - '0');
	return value;
}

int graft_ldcache_compare(const char *a, const char *b)
{
	while (*a != '\0') {
		if (is_soname_digit(*a) != is_soname_digit(*b))
			return is_soname_digit(*a) ? 1 : -1;
		if (is_soname_digit(*a)) {
			uint32_t difference = take_soname_digits(&a) - take_soname_digits(&b);

			if (difference != 0)
				return (int32_t)difference;
		} else {
			/*
			 * QUIRK: the sign of `char` differs between machines, and so does the
			 * loader's order.
			 */
			if (*a != *b)
				return *a - *b;
			a++;
			b++;
		}
	}
	return *a - *b;
}

/* glibc-hwcaps records come before plain ones, and are sorted by name. */
static int compare_hwcap(const struct graft_ldcache *cache, uint64_t a, uint64_t b)
{
	int bits_a = __builtin_popcountll(a), bits_b = __builtin_popcountll(b);

	if (is_hwcaps_record(a) != is_hwcaps_record(b))
		return is_hwcaps_record(a) ? -1 : 1;
	if (is_hwcaps_record(a) && (uint32_t)a < cache->n_hwcaps && (uint32_t)b < cache->n_hwcaps)
		return strcmp(cache->hwcaps[(uint32_t)a], cache->hwcaps[(uint32_t)b]);
	if (bits_a != bits_b)
		return bits_b - bits_a;
	return a == b ? 0 : a > b ? -1 : 1;
}

/* The order in the file (section 4). 0 keeps the order of the list. */
static int compare_records(const struct graft_ldcache *cache, const struct graft_ldcache_record *a,
			   const struct graft_ldcache_record *b)
{
	int order = a->soname == b->soname ? 0 : graft_ldcache_compare(b->soname, a->soname);

	if (order != 0)
		return order;
	if (a->flags != b->flags)
		return (int32_t)a->flags > (int32_t)b->flags ? -1 : 1;
	return compare_hwcap(cache, a->hwcap, b->hwcap);
}

/* Merges two adjacent sorted runs of `from` into `to`. */
static void merge_runs(const struct graft_ldcache *cache, const struct graft_ldcache_record *from, size_t middle,
		       size_t n, struct graft_ldcache_record *to)
{
	size_t left = 0, right = middle;

	while (left < middle && right < n)
		*to++ = compare_records(cache, &from[left], &from[right]) <= 0 ? from[left++] : from[right++];
	memcpy(to, from + left, (middle - left) * sizeof(*to));
	memcpy(to + middle - left, from + right, (n - right) * sizeof(*to));
}

/* Returns the index at which the sorted tail begins. */
static size_t find_sorted_end(const struct graft_ldcache *cache)
{
	size_t at = cache->n_records;

	while (at > 1 && compare_records(cache, &cache->records[at - 2], &cache->records[at - 1]) <= 0)
		at--;
	return at > 0 ? at - 1 : 0;
}

/*
 * A merge sort of our own. qsort(3) is not stable. Moreover, with a comparison that wraps around
 * (above), strings of a hostile image may have no consistent order, which must do no harm. A tail
 * that is already sorted, the image's thousands of records after our dozen, is compared only once.
 */
static int sort_records(struct graft_ldcache *cache, struct graft_error *err)
{
	size_t n = find_sorted_end(cache);
	auto_free struct graft_ldcache_record *spare = malloc((cache->n_records + 1) * sizeof(*spare));
	struct graft_ldcache_record *from = cache->records, *to = spare;

	if (!spare)
		return graft_fail_memory(err);
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t at = 0; at < n; at += 2 * width) {
			size_t left = n - at;
			size_t size = left < 2 * width ? left : 2 * width;

			merge_runs(cache, from + at, size < width ? size : width, size, to + at);
		}
		to = from;
		from = to == spare ? cache->records : spare;
	}
	if (from == spare)
		memcpy(cache->records, spare, n * sizeof(*spare));
	if (n > 0) {
		merge_runs(cache, cache->records, n, cache->n_records, spare);
		memcpy(cache->records, spare, cache->n_records * sizeof(*spare));
	}
	return 0;
}

static void add_u32(struct graft_buffer *out, uint32_t value)
{
	graft_buffer_add(out, &value, sizeof(value));
}

/* Appends to the string area. Returns the offset of the string from the start of the file. */
static uint32_t add_ldcache_string(struct graft_buffer *strings, size_t area, const char *s)
{
	uint32_t offset = (uint32_t)(area + strings->length);

	graft_buffer_add(strings, s, strlen(s) + 1);
	return offset;
}

/* A record in the file. */
struct new_record {
	uint32_t flags, key, value, os_version;
	uint64_t hwcap;
};
_Static_assert(sizeof(struct new_record) == NEW_RECORD_SIZE, "no padding");

/*
 * Writes the records, and their strings to `strings`. A soname is usually the end of its path and
 * takes no extra bytes.
 */
static void write_ldcache_records(const struct graft_ldcache *cache, size_t area, struct graft_buffer *strings,
				  struct graft_buffer *out)
{
	for (size_t i = 0; i < cache->n_records; i++) {
		const struct graft_ldcache_record *record = &cache->records[i];
		size_t soname = strlen(record->soname), path = strlen(record->path);
		uint32_t value = add_ldcache_string(strings, area, record->path), key;
		struct new_record written;

		if (path >= soname && strcmp(record->path + path - soname, record->soname) == 0)
			key = value + (uint32_t)(path - soname);
		else
			key = add_ldcache_string(strings, area, record->soname);
		written = (struct new_record){ record->flags, key, value, record->os_version, record->hwcap };
		graft_buffer_add(out, &written, sizeof(written));
	}
}

static void write_section(struct graft_buffer *out, uint32_t tag, size_t offset, size_t size)
{
	add_u32(out, tag);
	add_u32(out, 0);
	add_u32(out, (uint32_t)offset);
	add_u32(out, (uint32_t)size);
}

/*
 * Writes the directory at file offset `at`, the generator's text and the offsets of the hwcaps
 * names.
 */
static void write_extensions(const struct graft_ldcache *cache, const uint32_t *hwcaps, size_t at,
			     struct graft_buffer *out)
{
	bool generator = cache->generator && cache->generator[0] != '\0';
	size_t n = (generator ? 1u : 0u) + (cache->n_hwcaps > 0 ? 1u : 0u);
	size_t names = at + 8 + n * SECTION_SIZE, text = names + cache->n_hwcaps * 4;

	if (n == 0)
		return;
	add_u32(out, EXTENSION_MAGIC);
	add_u32(out, (uint32_t)n);
	if (generator)
		write_section(out, SECTION_GENERATOR, text, strlen(cache->generator));
	if (cache->n_hwcaps > 0)
		write_section(out, SECTION_HWCAPS, names, cache->n_hwcaps * 4);
	graft_buffer_add(out, hwcaps, cache->n_hwcaps * sizeof(*hwcaps));
	if (generator)
		graft_buffer_string(out, cache->generator);
}

/* An upper bound of the size to be written: as if no strings were shared. */
static size_t size_bound(const struct graft_ldcache *cache)
{
	size_t size = NEW_HEADER_SIZE + 64 + (cache->generator ? strlen(cache->generator) : 0);

	for (size_t i = 0; i < cache->n_hwcaps; i++)
		size += strlen(cache->hwcaps[i]) + 5;
	for (size_t i = 0; i < cache->n_records; i++)
		size += NEW_RECORD_SIZE + strlen(cache->records[i].soname) + strlen(cache->records[i].path) + 2;
	return size;
}

static void write_header(const struct graft_ldcache *cache, size_t strings_length, size_t extensions,
			 struct graft_buffer *out)
{
	static const char zeros[12];
	const char order[4] = { OWN_BYTE_ORDER, 0, 0, 0 };

	graft_buffer_string(out, NEW_MAGIC);
	add_u32(out, (uint32_t)cache->n_records);
	add_u32(out, (uint32_t)strings_length);
	graft_buffer_add(out, order, sizeof(order));
	add_u32(out, (uint32_t)extensions);
	graft_buffer_add(out, zeros, sizeof(zeros));
}

/* Writes the file's bytes; `records` and `strings` are scratch buffers. */
static void write_ldcache_file(const struct graft_ldcache *cache, struct graft_buffer *records,
			       struct graft_buffer *strings, struct graft_buffer *out)
{
	size_t area = NEW_HEADER_SIZE + cache->n_records * NEW_RECORD_SIZE, end, extensions;
	uint32_t hwcaps[MAX_HWCAPS];

	write_ldcache_records(cache, area, strings, records);
	for (size_t i = 0; i < cache->n_hwcaps; i++)
		hwcaps[i] = add_ldcache_string(strings, area, cache->hwcaps[i]);
	end = area + strings->length;
	extensions = cache->n_hwcaps > 0 || (cache->generator && cache->generator[0] != '\0') ? (end + 3) / 4 * 4 : 0;
	write_header(cache, strings->length, extensions, out);
	graft_buffer_add(out, records->bytes, records->length);
	graft_buffer_add(out, strings->bytes, strings->length);
	for (; end % 4 != 0; end++)
		graft_buffer_char(out, '\0');
	write_extensions(cache, hwcaps, end, out);
}

int graft_ldcache_write(struct graft_ldcache *cache, struct graft_buffer *out, struct graft_error *err)
{
	size_t max = out->max != 0 ? out->max : SIZE_MAX, bound = size_bound(cache);
	auto_buffer struct graft_buffer records = { .max = bound }, strings = { .max = bound };

	if (cache->n_hwcaps > MAX_HWCAPS || bound > INT32_MAX || bound > max - out->length)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "loader cache too large: %zu records", cache->n_records);
	if (sort_records(cache, err) < 0)
		return -1;
	write_ldcache_file(cache, &records, &strings, out);
	if (graft_buffer_failed(&records) || graft_buffer_failed(&strings) || graft_buffer_failed(out))
		return graft_fail_memory(err);
	return 0;
}
