/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_names: reads a container's /etc/ld.so.cache in a reader and picks single names. Knows
 * nothing about where the libraries come from.
 */
#include "image/loader_names.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/loader/ldcache.h"
#include "image/loader_cache.h"
#include "image/reader.h"

#define CACHE_MAX ((size_t)32 << 20)
#define NAMES_MAX 256u

static const struct graft_field loader_names_fields[] = {
	GRAFT_F_BOOL(struct graft_loader_names, exists, "there is a cache"),
	GRAFT_F_BOOL(struct graft_loader_names, understood, "it is well formed"),
	GRAFT_F_STRINGS(struct graft_loader_names, sonames, "names in it that were asked for"),
};
static const struct graft_record loader_names_record = { "loader_names", sizeof(struct graft_loader_names),
							 loader_names_fields, GRAFT_COUNT(loader_names_fields) };

/* Whether one of the NUL-terminated names, which an empty one ends, is `soname`. */
static bool is_wanted_name(const char *names, const char *soname)
{
	for (; *names != '\0'; names += strlen(names) + 1) {
		if (strcmp(names, soname) == 0)
			return true;
	}
	return false;
}

static int read_loader_names(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
			     struct graft_arena *arena, void *answer, struct graft_buffer *bytes,
			     struct graft_error *err)
{
	struct graft_loader_names *found = answer;
	struct graft_ldcache cache = { .records = NULL };
	const char *text;
	size_t length;
	int rc = graft_image_root_read(root, GRAFT_LDCACHE_PATH, CACHE_MAX, arena, &text, &length);

	(void)log;
	(void)bytes;
	if (rc == -ENOMEM)
		return graft_fail_memory(err);
	found->exists = rc != -ENOENT && rc != -ENOTDIR;
	if (rc < 0 || graft_ldcache_read(text, length, GRAFT_LDCACHE_PATH, arena, &cache, NULL) < 0)
		return 0;
	found->understood = true;
	for (size_t i = 0; i < cache.n_records && found->n_sonames < NAMES_MAX; i++) {
		const char *soname = cache.records[i].soname;

		if (is_wanted_name(arg, soname) && !graft_is_in(found->sonames, found->n_sonames, soname))
			(void)graft_arena_push_string(arena, &found->sonames, &found->n_sonames, soname);
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

static bool are_few_names(const void *answer, size_t n_bytes)
{
	(void)n_bytes;
	return ((const struct graft_loader_names *)answer)->n_sonames <= NAMES_MAX;
}

int graft_loader_names_ask(const struct graft_image_root *root, const char *const *sonames, size_t n,
			   struct graft_arena *arena, struct graft_loader_names *ret_names, struct graft_error *err)
{
	auto_buffer struct graft_buffer asked = { .bytes = NULL };

	*ret_names = (struct graft_loader_names){ .exists = false };
	for (size_t i = 0; i < n && i < NAMES_MAX; i++) {
		if (sonames[i][0] != '\0')
			graft_buffer_add(&asked, sonames[i], strlen(sonames[i]) + 1);
	}
	graft_buffer_char(&asked, '\0');
	if (graft_buffer_failed(&asked))
		return graft_fail_memory(err);
	return graft_reader_ask(&(struct graft_reader_question){ .root = root,
								 .record = &loader_names_record,
								 .read = read_loader_names,
								 .arg = asked.bytes,
								 .arg_length = asked.length,
								 .is_sound = are_few_names },
				arena, ret_names, NULL, NULL, err);
}
