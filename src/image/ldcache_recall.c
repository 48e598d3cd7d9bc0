/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_recall: compares the records of a cache with the names in a directory. Both may be
 * hostile: trusting them only affects what the image's own loader finds, and costs a readlink(2)
 * per link.
 */
#include "image/ldcache_recall.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/loader/elf.h"

#define MAX_LINKS         8    /* in a row; libx.so -> libx.so.1 -> libx.so.1.2 is common */
#define RECORDS_PER_CHECK 1024 /* between two checks of the budget */
#define LINKS_PER_CHECK   64

/*
 * A record of the directory whose file name is its soname, which is true of all records except
 * those below glibc-hwcaps.
 */
struct recorded {
	const char *name;
	uint32_t flags;
};

/* What is known about a name in addition to its answers. */
struct detail {
	bool listed;
	uint32_t flags;
	size_t target;           /* of a link: index of the name that it points to, or NOWHERE */
	size_t n_links, by_link; /* of a file: recorded links to it whose name is the soname, and one of them */
};

#define NOWHERE SIZE_MAX

struct recall {
	const struct graft_ldcache *cache;
	const char *path;
	struct graft_ldcache_name *names;
	struct detail *details; /* one per name */
	size_t n;
	struct graft_budget *budget;
	struct graft_arena *arena;
	struct recorded *recorded; /* sorted by name */
	size_t n_recorded;
};

static int compare_names(const void *a, const void *b)
{
	const struct graft_ldcache_name *left = a, *right = b;

	return strcmp(left->name, right->name);
}

void graft_ldcache_sort_names(struct graft_ldcache_name *names, size_t n)
{
	if (n > 1)
		qsort(names, n, sizeof(*names), compare_names);
}

const struct graft_ldcache_name *graft_ldcache_find_name(const struct graft_ldcache_name *names, size_t n,
							 const char *name)
{
	const struct graft_ldcache_name key = { .name = name };

	return n > 0 ? bsearch(&key, names, n, sizeof(key), compare_names) : NULL;
}

static int compare_recorded(const void *a, const void *b)
{
	const struct recorded *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/*
 * Records of other ABIs are ignored: no new ones are made from them, so they need not be trusted.
 */
static bool is_of_directory(const struct graft_ldcache_record *record, const char *path, size_t length)
{
	return record->hwcap == 0 && strncmp(record->path, path, length) == 0 && record->path[length] == '/' &&
	       strcmp(record->path + length + 1, record->soname) == 0 &&
	       (record->flags == graft_abi_flags_native() || record->flags == graft_abi_flags_compat32());
}

static int list_recorded(struct recall *recall)
{
	size_t length = strlen(recall->path);

	while (length > 0 && recall->path[length - 1] == '/')
		length--;
	for (size_t i = 0; i < recall->cache->n_records; i++) {
		const struct graft_ldcache_record *record = &recall->cache->records[i];
		struct recorded *slot;

		if (i % RECORDS_PER_CHECK == 0 && graft_budget_is_spent(recall->budget))
			break;
		if (!is_of_directory(record, recall->path, length))
			continue;
		slot = graft_arena_push(recall->arena, &recall->recorded, &recall->n_recorded, sizeof(*slot));
		if (!slot)
			return -1;
		*slot = (struct recorded){ record->soname, record->flags };
	}
	if (recall->n_recorded > 1)
		qsort(recall->recorded, recall->n_recorded, sizeof(*recall->recorded), compare_recorded);
	return 0;
}

/* Looks up the record of a name. A name that is recorded for two ABIs is not used. */
static void find_recorded(const struct recall *recall, const char *name, struct detail *detail)
{
	const struct recorded key = { .name = name };
	const struct recorded *first = recall->recorded, *found;

	found = recall->n_recorded > 0 ? bsearch(&key, first, recall->n_recorded, sizeof(key), compare_recorded) : NULL;
	if (!found || (found > first && compare_recorded(found - 1, &key) == 0) ||
	    (found + 1 < first + recall->n_recorded && compare_recorded(found + 1, &key) == 0))
		return;
	detail->listed = true;
	detail->flags = found->flags;
}

/*
 * Returns the index of the name that a link points to, or NOWHERE if it is anything but a name in
 * this directory.
 */
static size_t read_target(const struct recall *recall, int fd, const char *name)
{
	char text[NAME_MAX + 2];
	const struct graft_ldcache_name *found;
	ssize_t n = readlinkat(fd, name, text, sizeof(text) - 1);

	if (n <= 0 || n > NAME_MAX)
		return NOWHERE;
	text[n] = '\0';
	found = graft_ldcache_find_name(recall->names, recall->n, text);
	return found ? (size_t)(found - recall->names) : NOWHERE;
}

static void look_up_names(struct recall *recall, int fd)
{
	size_t n_links = 0;

	for (size_t i = 0; i < recall->n; i++)
		recall->details[i].target = NOWHERE;
	for (size_t i = 0; i < recall->n; i++) {
		struct detail *detail = &recall->details[i];

		find_recorded(recall, recall->names[i].name, detail);
		if (!detail->listed || !recall->names[i].is_link)
			continue;
		if (n_links++ % LINKS_PER_CHECK == 0 && graft_budget_is_spent(recall->budget))
			return;
		detail->target = read_target(recall, fd, recall->names[i].name);
	}
}

/* Returns the file that a link resolves to, or NOWHERE. */
static size_t follow_recalled_link(const struct recall *recall, size_t link)
{
	size_t at = link;

	for (int i = 0; i < MAX_LINKS && at != NOWHERE && recall->names[at].is_link; i++)
		at = recall->details[at].target;
	return at != NOWHERE && !recall->names[at].is_link ? at : NOWHERE;
}

static void answer_links(struct recall *recall)
{
	for (size_t i = 0; i < recall->n; i++) {
		struct graft_ldcache_name *name = &recall->names[i];
		size_t file = name->is_link && recall->details[i].listed ? follow_recalled_link(recall, i) : NOWHERE;

		if (file == NOWHERE)
			continue;
		name->soname = name->name;
		name->flags = recall->details[i].flags;
		if (graft_ldcache_is_development_name(name->name))
			continue;
		recall->details[file].n_links++;
		recall->details[file].by_link = i;
	}
}

static void answer_files(struct recall *recall)
{
	for (size_t i = 0; i < recall->n; i++) {
		struct graft_ldcache_name *name = &recall->names[i];
		const struct detail *detail = &recall->details[i];

		if (name->is_link)
			continue;
		if (detail->listed) {
			name->soname = name->name;
			name->flags = detail->flags;
		} else if (detail->n_links == 1) {
			name->soname = recall->names[detail->by_link].name;
			name->flags = recall->names[detail->by_link].flags;
		}
	}
}

int graft_ldcache_recall(const struct graft_ldcache *cache, int fd, const char *path, struct graft_ldcache_name *names,
			 size_t n, struct graft_budget *budget, struct graft_arena *arena)
{
	struct recall recall = {
		.cache = cache, .path = path, .names = names, .n = n, .budget = budget, .arena = arena
	};

	if (n == 0)
		return 0;
	recall.details = graft_arena_list(arena, n, sizeof(*recall.details));
	if (!recall.details || list_recorded(&recall) < 0)
		return -1;
	if (recall.n_recorded == 0)
		return 0;
	look_up_names(&recall, fd);
	answer_links(&recall);
	answer_files(&recall);
	return 0;
}
