/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache: merges the image's own cache and libraries with what is injected into the container
 * into a new cache. The file formats are implemented in formats/, the scan in ldcache_scan.c. All
 * of it runs in a reader. docs/ld-so-cache.md documents for users what happens to their image.
 */
#include "image/loader_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/loader/ldcache.h"
#include "formats/loader/ldsoconf.h"
#include "image/reader.h"

#define CONF_COMMENT "# Directories of the injected GPU driver libraries.\n"

/* SECURITY: limits the cost of an image. 65,536 records of ordinary length take 6 MiB. */
#define MAX_CACHE_BYTES ((size_t)8 << 20)
#define MAX_CONF_BYTES  ((size_t)1 << 20)
#define MAX_DIRECTORIES ((size_t)1024)

#define RECORDS_PER_CHECK 64 /* between two checks of the budget */

/* ---- the answer ---- */

static const struct graft_field link_fields[] = {
	GRAFT_F_STRING(struct graft_loader_link, directory, true, "directory of the link"),
	GRAFT_F_STRING(struct graft_loader_link, name, true, "its name"),
	GRAFT_F_STRING(struct graft_loader_link, text, false, "its new destination; absent: it must be removed"),
	GRAFT_F_STRING(struct graft_loader_link, old_text, false, "its present destination; absent: it does not exist"),
};
static const struct graft_record link_record = { "loader_link", sizeof(struct graft_loader_link), link_fields,
						 GRAFT_COUNT(link_fields) };

/* struct graft_loader_work without its bytes. */
struct answer {
	bool stale, own_conf;
	uint32_t conf_length, cache_length;
	struct graft_loader_link *links;
	size_t n_links;
};

static const struct graft_field answer_fields[] = {
	GRAFT_F_BOOL(struct answer, stale, "the cache is not up to date"),
	GRAFT_F_BOOL(struct answer, own_conf, "Graft's own configuration file must be written"),
	GRAFT_F_U32(struct answer, conf_length, false, "bytes of a new /etc/ld.so.conf"),
	GRAFT_F_U32(struct answer, cache_length, false, "bytes of a new /etc/ld.so.cache"),
	GRAFT_F_RECORDS(struct answer, links, &link_record, "links to create, correct or remove"),
};
static const struct graft_record answer_record = { "loader_cache", sizeof(struct answer), answer_fields,
						   GRAFT_COUNT(answer_fields) };

/* The request and the results. */
struct work {
	const struct graft_image_root *root;
	const struct graft_loader_additions *additions;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct answer *answer;
	enum graft_ldcache_state state;
	bool early;
	struct graft_ldcache old;           /* the image's cache */
	bool has_old;                       /* it is usable */
	struct graft_error conf_error;      /* why the loader's configuration cannot be read */
	const char *own_text;               /* new content of Graft's own configuration file; NULL: not needed */
	struct graft_directory_id *touched; /* directories of the entries */
	size_t n_touched;
	struct graft_ldcache_entry *by_soname, *by_file_name; /* the entries, sorted */
	uint64_t names[16]; /* a bit for the hash of each soname and file name of the entries */
};

/* ---- is the cache up to date? ---- */

static bool is_older(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec < b->st_mtim.tv_sec
						      : a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

/* Reads the image's cache. Returns 0, or -1 if it cannot be used. */
static int read_image_cache(const struct graft_image_root *root, struct graft_arena *arena,
			    struct graft_ldcache *ret_cache, struct graft_error *err)
{
	const char *bytes = NULL;
	size_t length = 0;
	int rc = graft_image_root_read(root, GRAFT_LDCACHE_PATH, MAX_CACHE_BYTES, arena, &bytes, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "file read error: " GRAFT_LDCACHE_PATH);
	return graft_ldcache_read(bytes, length, GRAFT_LDCACHE_PATH, arena, ret_cache, err);
}

/* What is needed to decide whether the image's cache is up to date. */
struct freshness {
	const struct work *work;
	const struct graft_ldsoconf *conf; /* what the loader searches, or is going to search */
	struct stat cache_stat;
	const char **names; /* directories that occur in the cache */
	size_t n_names;
	struct graft_ldcache_scan scan; /* .seen: those that exist */
};

/*
 * Adds the directory of a record's path. Returns false if there are too many, or if memory is
 * exhausted.
 */
static bool add_directory_of(struct freshness *freshness, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (path[0] != '/' || length == 0)
		return true;
	/*
	 * Neighbours in the file are often in the same directory, so the newest is checked first.
	 */
	for (size_t i = freshness->n_names; i > 0; i--) {
		const char *name = freshness->names[i - 1];

		if (strncmp(name, path, length) == 0 && name[length] == '\0')
			return true;
	}
	if (freshness->n_names == MAX_DIRECTORIES)
		return false;
	return graft_arena_push_string(freshness->work->arena, &freshness->names, &freshness->n_names,
				       graft_arena_strndup(freshness->work->arena, path, length)) != NULL;
}

/*
 * Returns whether a directory in the cache has changed since the cache was written. Remembers the
 * directory's identity.
 */
static bool has_changed(struct freshness *freshness, const char *path)
{
	struct graft_ldcache_scan *scan = &freshness->scan;
	struct graft_directory_id *id;
	struct stat st;

	int rc = graft_image_root_stat(freshness->work->root, path, &st);

	if (rc < 0)
		return rc == -ETIME;
	if (is_older(&freshness->cache_stat, &st)) {
		graft_info(freshness->work->log, "%s is older than %s", GRAFT_LDCACHE_PATH, path);
		return true;
	}
	id = graft_arena_push(freshness->work->arena, &scan->seen, &scan->n_seen, sizeof(*id));
	if (!id)
		return true;
	*id = (struct graft_directory_id){ st.st_dev, st.st_ino };
	return false;
}

/* Returns whether it is a built-in directory that does not exist or has not changed since. */
static bool is_settled(const struct freshness *freshness, const char *directory)
{
	struct stat st;
	int rc;

	if (!graft_ldsoconf_is_built_in(directory))
		return false;
	rc = graft_image_root_stat(freshness->work->root, directory, &st);
	return rc == -ENOENT || (rc == 0 && !is_older(&freshness->cache_stat, &st));
}

/*
 * Returns whether a directory of the configuration has libraries but does not occur in the cache at
 * all: images often add a file to ld.so.conf.d without running ldconfig. Directories that occur in
 * the cache have been scanned. Built-in ones that have not changed since are treated likewise: the
 * image's own ldconfig had a reason to omit them (Debian's does not search /lib64). Directories
 * that are only searched because of us are ignored.
 */
static bool has_unlisted(struct freshness *freshness)
{
	const char *const *dirs = freshness->conf->dirs;

	for (size_t i = 0; i < freshness->conf->n_dirs; i++) {
		if (graft_is_in(freshness->work->additions->missing_folders,
				freshness->work->additions->n_missing_folders, dirs[i]) ||
		    is_settled(freshness, dirs[i]))
			continue;
		if (graft_ldcache_scan_directory(&freshness->scan, dirs[i], NULL) < 0)
			return true;
		if (freshness->scan.found.n_records > 0) {
			graft_info(freshness->work->log, "%s does not list %s", GRAFT_LDCACHE_PATH, dirs[i]);
			return true;
		}
	}
	return false;
}

/* Returns whether the image's cache is usable and up to date. */
static bool is_old_fresh(const struct work *work, const struct graft_ldsoconf *conf)
{
	struct freshness freshness = { .work = work,
				       .conf = conf,
				       .scan = { .root = work->root, .arena = work->arena, .log = work->log } };

	if (!work->has_old || work->conf_error.status != GRAFT_OK ||
	    graft_image_root_stat(work->root, GRAFT_LDCACHE_PATH, &freshness.cache_stat) < 0)
		return false;
	for (size_t i = 0; i < work->old.n_records; i++)
		if ((i % RECORDS_PER_CHECK == 0 && graft_budget_is_spent(work->root->budget)) ||
		    !add_directory_of(&freshness, work->old.records[i].path))
			return false;
	for (size_t i = 0; i < freshness.n_names; i++)
		if (has_changed(&freshness, freshness.names[i]))
			return false;
	return !has_unlisted(&freshness);
}

/* ---- the new one ---- */

/* The content of a file: unknown, exactly these bytes, or something else. */
enum content { CONTENT_NONE, CONTENT_SAME, CONTENT_OTHER };

static enum content compare_content(const struct work *work, const char *path, const char *bytes, size_t length)
{
	auto_close int fd = graft_image_root_look(work->root, path, O_NOFOLLOW);
	const char *old = NULL;
	size_t old_length = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return CONTENT_NONE;
	return (uintmax_t)st.st_size == length &&
		       graft_image_root_read(work->root, path, length, work->arena, &old, &old_length) == 0 &&
		       old_length == length && memcmp(old, bytes, length) == 0
		   ? CONTENT_SAME
		   : CONTENT_OTHER;
}

const char *graft_loader_own_conf(const struct graft_loader_additions *additions, struct graft_arena *arena)
{
	const char *text = CONF_COMMENT;

	for (size_t i = 0; i < additions->n_missing_folders && text; i++)
		text = graft_arena_printf(arena, "%s%s\n", text, additions->missing_folders[i]);
	return text;
}

static bool has_own_conf(const struct work *work)
{
	struct stat st;

	return graft_image_root_stat(work->root, GRAFT_LDSOCONF_OWN, &st) == 0 && S_ISREG(st.st_mode);
}

/*
 * Adds an include of Graft's own file in front of the image's configuration, which does not include
 * it.
 */
static int include_own_conf(const struct work *work, struct graft_buffer *bytes, struct graft_error *err)
{
	const char *old = "";
	size_t length = 0;
	int rc = graft_image_root_read(work->root, GRAFT_LDSOCONF_PATH, MAX_CONF_BYTES, work->arena, &old, &length);

	/* If time is short, the next start adds the line. */
	if (rc == -ETIME)
		return 0;
	if (rc < 0 && rc != -ENOENT)
		return graft_fail_errno(err, -rc, "file read error: " GRAFT_LDSOCONF_PATH);
	graft_buffer_string(bytes, "include " GRAFT_LDSOCONF_OWN "\n");
	graft_buffer_add(bytes, old, length);
	if (graft_buffer_failed(bytes))
		return graft_fail_memory(err);
	work->answer->conf_length = (uint32_t)bytes->length;
	graft_info(work->log, "%s does not include %s: adding a line", GRAFT_LDSOCONF_PATH, GRAFT_LDSOCONF_OWN);
	return 0;
}

/*
 * Makes a later ldconfig in the container search the directories that it would miss, but none that
 * were only needed when the root was used before: Graft's own file lists what is missing now, which
 * may be nothing. *ret_was is the state of its content.
 */
static int configure_missing_folders(struct work *work, struct graft_ldsoconf *ret_conf, struct graft_buffer *bytes,
				     enum content *ret_was, struct graft_error *err)
{
	bool is_needed = work->additions->n_missing_folders > 0;

	*ret_was = CONTENT_NONE;
	if (is_needed || has_own_conf(work)) {
		work->own_text = graft_loader_own_conf(work->additions, work->arena);
		if (!work->own_text)
			return graft_fail_memory(err);
		*ret_was = compare_content(work, GRAFT_LDSOCONF_OWN, work->own_text, strlen(work->own_text));
		work->answer->own_conf = *ret_was != CONTENT_SAME;
	}
	/* A configuration that is too big prevents a new cache, but nothing else. */
	if (graft_ldsoconf_read_image(work->root, false, work->own_text, work->arena, ret_conf, &work->conf_error) <
		0 &&
	    work->conf_error.status != GRAFT_TOO_BIG) {
		*err = work->conf_error;
		return -1;
	}
	return is_needed && !ret_conf->reads_own ? include_own_conf(work, bytes, err) : 0;
}

/* Finds everything that ldconfig would find. */
static int rebuild(struct work *work, const struct graft_ldsoconf *conf, bool early, const struct graft_ldcache *old,
		   struct graft_ldcache *ret_cache, struct graft_error *err)
{
	struct graft_ldcache_scan scan = { .root = work->root,
					   .arena = work->arena,
					   .want_links = true,
					   .log = work->log,
					   .old = old,
					   .early = early };

	if (work->conf_error.status != GRAFT_OK) {
		*err = work->conf_error;
		return -1;
	}
	for (size_t i = 0; i < conf->n_dirs; i++)
		if (graft_ldcache_scan_directory(&scan, conf->dirs[i], err) < 0)
			return -1;
	/* Directories that /etc/ld.so.conf will include only after it has been written. */
	for (size_t i = 0; !conf->reads_own && i < work->additions->n_missing_folders; i++)
		if (graft_ldcache_scan_directory(&scan, work->additions->missing_folders[i], err) < 0)
			return -1;
	if (graft_ldcache_scan_finish(&scan, err) < 0)
		return -1;
	graft_info(work->log, "rebuilt %s: %zu libraries", GRAFT_LDCACHE_PATH, scan.found.n_records);
	*ret_cache = scan.found;
	work->answer->links = scan.links;
	work->answer->n_links = scan.n_links;
	return 0;
}

/*
 * Gets the image's own records. If a new cache cannot be made, one that is out of date is still
 * better than no container: slow storage is not the user's fault.
 */
static int own_records(struct work *work, const struct graft_ldsoconf *conf, struct graft_ldcache *ret_cache,
		       struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };

	*ret_cache = work->old;
	if (work->state == GRAFT_LDCACHE_MERGE && work->has_old)
		return 0;
	if (rebuild(work, conf, work->early, work->has_old ? &work->old : NULL, ret_cache, &why) == 0)
		return 0;
	if (why.status != GRAFT_TOO_BIG || !work->has_old) {
		*err = why;
		return -1;
	}
	*ret_cache = work->old;
	graft_warn(work->log, "%s; the container's loader cache stays out of date", why.msg);
	return 0;
}

static int find_touched(struct work *work, struct graft_error *err)
{
	for (size_t i = 0; i < work->additions->n_folders; i++) {
		struct graft_directory_id *id;
		struct stat st;

		if (graft_image_root_stat(work->root, work->additions->folders[i], &st) < 0)
			continue;
		id = graft_arena_push(work->arena, &work->touched, &work->n_touched, sizeof(*id));
		if (!id)
			return graft_fail_memory(err);
		*id = (struct graft_directory_id){ st.st_dev, st.st_ino };
	}
	return 0;
}

/*
 * Returns whether a record's path is in a directory that contains ours, by whatever name. Only
 * called for records with a file name of ours. A hostile cache may have 65,536 of them with paths
 * made of links: once the budget is spent, the answer is true.
 */
static bool is_touched(const struct work *work, const char *path)
{
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	struct stat st;
	int rc;

	if (!slash || (size_t)(slash - path) >= sizeof(directory))
		return false;
	memcpy(directory, path, (size_t)(slash - path));
	directory[slash - path] = '\0';
	rc = graft_image_root_stat(work->root, directory[0] != '\0' ? directory : "/", &st);
	if (rc < 0)
		return rc == -ETIME;
	for (size_t i = 0; i < work->n_touched; i++)
		if (work->touched[i].dev == st.st_dev && work->touched[i].ino == st.st_ino)
			return true;
	return false;
}

static int compare_sonames(const void *a, const void *b)
{
	const struct graft_ldcache_entry *left = a, *right = b;

	return graft_ldcache_compare(left->soname, right->soname);
}

static int compare_file_names(const void *a, const void *b)
{
	const struct graft_ldcache_entry *left = a, *right = b;

	return strcmp(graft_path_name(left->path), graft_path_name(right->path));
}

/*
 * Names that graft_ldcache_compare() considers equal have the same hash (numbers are hashed by
 * value, as compared there). It rules out nearly all of an image's thousands of names.
 */
static unsigned int hash_name(const char *name)
{
	unsigned int hash = 0, number = 0;

	for (; *name != '\0'; name++) {
		if (*name >= '0' && *name <= '9') {
			number = number * 10 + (unsigned int)(*name - '0');
			continue;
		}
		hash = (hash + number) * 31 + (unsigned char)*name;
		number = 0;
	}
	hash = (hash + number) * 0x9e3779b1u;
	return hash >> 22;
}

static void remember_name(struct work *work, const char *name)
{
	unsigned int hash = hash_name(name);

	work->names[hash / 64] |= (uint64_t)1 << hash % 64;
}

static bool may_be_ours(const struct work *work, const char *name)
{
	unsigned int hash = hash_name(name);

	return work->names[hash / 64] >> hash % 64 & 1;
}

/*
 * Sorts copies of the entries, so that thousands of records need not be compared with each of them.
 */
static int sort_entries(struct work *work, struct graft_error *err)
{
	const struct graft_loader_additions *additions = work->additions;
	size_t size = additions->n_entries * sizeof(*additions->entries);

	work->by_soname = graft_arena_memdup(work->arena, additions->entries, size);
	work->by_file_name = graft_arena_memdup(work->arena, additions->entries, size);
	if (!work->by_soname || !work->by_file_name)
		return graft_fail_memory(err);
	for (size_t i = 0; i < additions->n_entries; i++) {
		remember_name(work, additions->entries[i].soname);
		remember_name(work, graft_path_name(additions->entries[i].path));
	}
	if (additions->n_entries > 1) {
		qsort(work->by_soname, additions->n_entries, sizeof(*additions->entries), compare_sonames);
		qsort(work->by_file_name, additions->n_entries, sizeof(*additions->entries), compare_file_names);
	}
	return 0;
}

/* Returns whether there is an entry for this name and ABI. */
static bool has_entry(const struct work *work, const char *soname, uint32_t flags)
{
	const struct graft_ldcache_entry key = { .soname = soname };
	const struct graft_ldcache_entry *first = work->by_soname, *end = first + work->additions->n_entries;
	const struct graft_ldcache_entry *found = bsearch(&key, first, work->additions->n_entries, sizeof(key),
							  compare_sonames);

	while (found && found > first && compare_sonames(found - 1, &key) == 0)
		found--;
	for (; found && found < end && compare_sonames(found, &key) == 0; found++)
		if (found->abi_flags == flags)
			return true;
	return false;
}

/*
 * Returns whether a record of the image must be dropped: it has the name and ABI of one of ours
 * (also in hwcaps directories, which the loader would prefer), or refers to a file that ours
 * replaces.
 */
static bool is_shadowed(struct work *work, const struct graft_ldcache_record *record)
{
	const struct graft_ldcache_entry key = { .path = record->path };

	if (work->additions->n_entries == 0)
		return false;
	return (may_be_ours(work, record->soname) && has_entry(work, record->soname, record->flags)) ||
	       (may_be_ours(work, graft_path_name(record->path)) &&
		bsearch(&key, work->by_file_name, work->additions->n_entries, sizeof(key), compare_file_names) &&
		is_touched(work, record->path));
}

/* Puts our records first: the order of equal ones is kept. */
static int put_ours_first(struct work *work, struct graft_ldcache *cache, struct graft_error *err)
{
	const struct graft_loader_additions *additions = work->additions;
	size_t n = 0, n_dropped = 0;
	struct graft_ldcache_record *records = graft_arena_list(
	    work->arena, additions->n_entries + cache->n_records + 1, sizeof(*records));

	if (!records)
		return graft_fail_memory(err);
	for (size_t i = 0; i < additions->n_entries; i++)
		records[n++] = (struct graft_ldcache_record){ .soname = additions->entries[i].soname,
							      .path = additions->entries[i].path,
							      .flags = additions->entries[i].abi_flags };
	for (size_t i = 0; i < cache->n_records; i++) {
		if (is_shadowed(work, &cache->records[i]))
			n_dropped++;
		else
			records[n++] = cache->records[i];
	}
	graft_info(work->log, "%s: %zu libraries added, %zu of the container's kept, %zu dropped", GRAFT_LDCACHE_PATH,
		   additions->n_entries, n - additions->n_entries, n_dropped);
	cache->records = records;
	cache->n_records = n;
	cache->generator = "graft " GRAFT_VERSION;
	return 0;
}

/* Adds the bytes of the new cache, unless it is identical to the old one. */
static int put_cache(struct work *work, struct graft_ldcache *cache, struct graft_buffer *bytes,
		     struct graft_error *err)
{
	auto_buffer struct graft_buffer out = { .max = MAX_CACHE_BYTES };

	if (graft_ldcache_write(cache, &out, err) < 0)
		return -1;
	if (compare_content(work, GRAFT_LDCACHE_PATH, out.bytes, out.length) == CONTENT_SAME)
		return 0;
	graft_buffer_add(bytes, out.bytes, out.length);
	work->answer->cache_length = (uint32_t)out.length;
	return graft_buffer_failed(bytes) ? graft_fail_memory(err) : 0;
}

static void look_at_old(struct work *work)
{
	struct graft_error why = { .status = GRAFT_OK };

	work->has_old = read_image_cache(work->root, work->arena, &work->old, &why) == 0;
	if (!work->has_old)
		graft_info(work->log, "no usable %s: %s", GRAFT_LDCACHE_PATH, why.msg);
}

static int make_cache(struct work *work, struct graft_buffer *bytes, struct graft_error *err)
{
	struct graft_ldcache cache = { 0 };
	struct graft_ldsoconf conf;
	enum content was;

	/* Before anything else: there may be no time for more than the image's cache. */
	look_at_old(work);
	if (configure_missing_folders(work, &conf, bytes, &was, err) < 0)
		return -1;
	if (work->state == GRAFT_LDCACHE_LOOK)
		work->state = is_old_fresh(work, &conf) ? GRAFT_LDCACHE_MERGE : GRAFT_LDCACHE_REBUILD;
	/*
	 * The cache may contain files from directories that are no longer searched. Links are as
	 * correct as they were.
	 */
	if (work->state == GRAFT_LDCACHE_MERGE && was == CONTENT_OTHER) {
		work->state = GRAFT_LDCACHE_REBUILD;
		work->early = true;
	}
	if (own_records(work, &conf, &cache, err) < 0 || find_touched(work, err) < 0 || sort_entries(work, err) < 0 ||
	    put_ours_first(work, &cache, err) < 0)
		return -1;
	return put_cache(work, &cache, bytes, err);
}

/* ---- the questions ---- */

/*
 * The question without pointers: entries and directories in the order of struct
 * graft_loader_additions, each text with its NUL, preceded by the ABI for an entry. Only written
 * and read by this program.
 */
struct question {
	enum graft_ldcache_state state;
	bool early;
	size_t n_entries, n_folders, n_missing_folders;
	char texts[];
};

static void pack_text(struct graft_buffer *out, const char *text)
{
	graft_buffer_add(out, text, strlen(text) + 1);
}

static const char *next_text(const char **at)
{
	const char *text = *at;

	*at += strlen(text) + 1;
	return text;
}

static void pack_question(const struct graft_loader_additions *additions, enum graft_ldcache_state state, bool early,
			  struct graft_buffer *out)
{
	const struct question question = { state, early, additions->n_entries, additions->n_folders,
					   additions->n_missing_folders };

	graft_buffer_add(out, &question, offsetof(struct question, texts));
	for (size_t i = 0; i < additions->n_entries; i++) {
		graft_buffer_add(out, &additions->entries[i].abi_flags, sizeof(additions->entries[i].abi_flags));
		pack_text(out, additions->entries[i].soname);
		pack_text(out, additions->entries[i].path);
	}
	for (size_t i = 0; i < additions->n_folders; i++)
		pack_text(out, additions->folders[i]);
	for (size_t i = 0; i < additions->n_missing_folders; i++)
		pack_text(out, additions->missing_folders[i]);
}

/* Returns false if out of memory. */
static bool unpack_additions(const struct question *question, struct graft_arena *arena,
			     struct graft_loader_additions *ret_additions)
{
	struct graft_ldcache_entry *entries = graft_arena_list(arena, question->n_entries + 1, sizeof(*entries));
	const char **folders = graft_arena_list(arena, question->n_folders + question->n_missing_folders + 1,
						sizeof(*folders));
	const char *at = question->texts;

	if (!entries || !folders)
		return false;
	for (size_t i = 0; i < question->n_entries; i++) {
		memcpy(&entries[i].abi_flags, at, sizeof(entries[i].abi_flags));
		at += sizeof(entries[i].abi_flags);
		entries[i].soname = next_text(&at);
		entries[i].path = next_text(&at);
	}
	for (size_t i = 0; i < question->n_folders + question->n_missing_folders; i++)
		folders[i] = next_text(&at);
	*ret_additions = (struct graft_loader_additions){ .entries = entries,
							  .n_entries = question->n_entries,
							  .folders = folders,
							  .n_folders = question->n_folders,
							  .missing_folders = folders + question->n_folders,
							  .n_missing_folders = question->n_missing_folders };
	return true;
}

/* Edits follow: what another question asks about may be different then. */
static void forget_kept(const struct graft_image_root *root)
{
	if (root->kept)
		root->kept->n_files = 0;
}

static int read_with_additions(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
			       struct graft_arena *arena, void *answer, struct graft_buffer *bytes,
			       struct graft_error *err)
{
	const struct question *question = arg;
	struct graft_loader_additions additions;
	struct work work = { .root = root,
			     .additions = &additions,
			     .log = log,
			     .arena = arena,
			     .answer = answer,
			     .state = question->state,
			     .early = question->early };

	int rc = unpack_additions(question, arena, &additions) ? make_cache(&work, bytes, err) : graft_fail_memory(err);

	forget_kept(root);
	return rc;
}

/*
 * SECURITY: the parent will use these names below the root: they must be single components, and
 * links must point to a neighbour.
 */
static bool is_sound(const void *said, size_t n_bytes)
{
	const struct answer *answer = said;

	for (size_t i = 0; i < answer->n_links; i++) {
		const struct graft_loader_link *link = &answer->links[i];

		if (link->directory[0] != '/' || !graft_path_is_component(link->name) ||
		    (link->text ? !graft_path_is_component(link->text) : !link->old_text))
			return false;
	}
	return answer->n_links <= GRAFT_LOADER_LINKS_MAX && answer->conf_length <= MAX_CONF_BYTES + PATH_MAX &&
	       answer->cache_length <= MAX_CACHE_BYTES && (size_t)answer->conf_length + answer->cache_length == n_bytes;
}

int graft_loader_cache_read(const struct graft_image_root *root, const struct graft_loader_additions *additions,
			    enum graft_ldcache_state state, bool early, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_loader_work *ret_work, struct graft_error *err)
{
	auto_buffer struct graft_buffer asked = { .bytes = NULL };
	struct answer answer = { .stale = false };
	const char *bytes = NULL;
	size_t n_bytes = 0;

	pack_question(additions, state, early, &asked);
	if (graft_buffer_failed(&asked))
		return graft_fail_memory(err);
	if (graft_reader_ask(&(struct graft_reader_question){ .root = root,
							      .record = &answer_record,
							      .read = read_with_additions,
							      .arg = asked.bytes,
							      .arg_length = asked.length,
							      .is_sound = is_sound,
							      .log = log,
							      .is_last = true },
			     arena, &answer, &bytes, &n_bytes, err) < 0)
		return -1;
	*ret_work = (struct graft_loader_work){ .own_conf = answer.own_conf,
						.conf = answer.conf_length > 0 ? bytes : NULL,
						.conf_length = answer.conf_length,
						.cache = answer.cache_length > 0 ? bytes + answer.conf_length : NULL,
						.cache_length = answer.cache_length,
						.links = answer.links,
						.n_links = answer.n_links };
	return 0;
}

static int read_cache_state(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
			    struct graft_arena *arena, void *answer, struct graft_buffer *bytes,
			    struct graft_error *err)
{
	const struct graft_loader_additions nothing = { .n_entries = 0 };
	struct work work = { .root = root, .additions = &nothing, .log = log, .arena = arena };
	struct graft_ldsoconf conf;

	(void)arg;
	(void)bytes;
	(void)err;
	look_at_old(&work);
	(void)graft_ldsoconf_read_image(root, false, NULL, arena, &conf, &work.conf_error);
	((struct answer *)answer)->stale = !is_old_fresh(&work, &conf);
	forget_kept(root);
	return 0;
}

enum graft_ldcache_state graft_ldcache_state(const struct graft_image_root *root, const struct graft_log *log)
{
	const struct graft_reader_question asked = {
		.root = root, .record = &answer_record, .read = read_cache_state, .log = log
	};
	auto_arena struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct answer answer = { .stale = true };
	bool fresh = arena && graft_reader_ask(&asked, arena, &answer, NULL, NULL, NULL) == 0 && !answer.stale;

	return fresh ? GRAFT_LDCACHE_MERGE : GRAFT_LDCACHE_REBUILD;
}
