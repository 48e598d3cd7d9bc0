/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_refresh: the image's loader cache with the injected libraries in it. The files' formats are formats/'s, scanning is ldcache_scan.c's;
 * which libraries the loader must find is the plan's business. docs/ld-so-cache.md tells users what happens to their image.
 */
#include "apply/ldcache_refresh.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/ldcache_scan.h"
#include "apply/temporary.h"
#include "base/cleanup.h"
#include "formats/ldcache.h"
#include "formats/ldsoconf.h"

#define CACHE_PATH   "/etc/ld.so.cache"
#define CONF_PATH    "/etc/ld.so.conf"
#define CONF_D_PATH  "/etc/ld.so.conf.d"
#define OUR_CONF     GRAFT_LDSOCONF_OWN
#define FILE_MODE    0644
#define CONF_COMMENT "# Directories of the injected GPU driver libraries.\n"

/* SECURITY: limits on what an image may cost. 65,536 records of usual length come to 6 MiB; together with copies it stays below 64 MiB. */
#define MAX_CACHE_BYTES   ((size_t)8 << 20)
#define MAX_CONF_BYTES    ((size_t)1 << 20)
#define ARENA_MAX         ((size_t)24 << 20)
#define MAX_LOOK_MS       300  /* to find out whether the cache is up to date */
#define MAX_REBUILD_MS    1000 /* to read all libraries */
#define MAX_MERGE_MS      200  /* to find out where records lead */
#define RECORDS_PER_CHECK 16   /* between two looks at the clock: 1,024 comparisons of 4 KiB each at worst */
#define MAX_DIRECTORIES   ((size_t)1024)

static bool is_older(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec < b->st_mtim.tv_sec
						      : a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

/* The image's cache. 0, or -1 when there is none that can be used. */
static int read_cache(const struct graft_root *root, struct graft_arena *arena, struct graft_ldcache *ret_cache,
		      struct graft_error *err)
{
	const char *bytes = NULL;
	size_t length = 0;
	int rc = graft_root_read(root, CACHE_PATH, MAX_CACHE_BYTES, arena, &bytes, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "file read error: " CACHE_PATH);
	return graft_ldcache_read(bytes, length, CACHE_PATH, arena, ret_cache, err);
}

/* What tells whether a cache is up to date. */
struct freshness {
	const struct graft_root *root;
	struct graft_arena *arena;
	const struct graft_log *log;
	struct stat cache_stat;
	const char **names; /* directories that the cache names */
	size_t n_names;
	struct graft_ldcache_scan scan; /* .seen: those that exist */
};

static bool is_late(const struct freshness *freshness)
{
	return graft_clock_ms() >= freshness->scan.deadline_ms;
}

/* Adds the directory of a record's path. False when there are too many or memory is exhausted. */
static bool add_directory_of(struct freshness *freshness, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (path[0] != '/' || length == 0)
		return true;
	/* Neighbours in the file are often of one directory; the newest is looked at first. */
	for (size_t i = freshness->n_names; i > 0; i--) {
		const char *name = freshness->names[i - 1];

		if (strncmp(name, path, length) == 0 && name[length] == '\0')
			return true;
	}
	if (freshness->n_names == MAX_DIRECTORIES)
		return false;
	return graft_arena_push_string(freshness->arena, &freshness->names, &freshness->n_names,
				       graft_arena_strndup(freshness->arena, path, length)) != NULL;
}

/* Whether a directory that the cache names has changed since. Its identity is remembered. */
static bool has_changed(struct freshness *freshness, const char *path)
{
	struct graft_ldcache_scan *scan = &freshness->scan;
	struct graft_directory_id *id;
	struct stat st;

	if (graft_root_stat(freshness->root, path, &st) < 0)
		return false;
	if (is_older(&freshness->cache_stat, &st)) {
		graft_info(freshness->log, "%s is older than %s", CACHE_PATH, path);
		return true;
	}
	id = graft_arena_push(freshness->arena, &scan->seen, &scan->n_seen, sizeof(*id));
	if (!id)
		return true;
	*id = (struct graft_directory_id){ st.st_dev, st.st_ino };
	return false;
}

/* A built-in directory that is not there, or did not change since. */
static bool is_settled(const struct freshness *freshness, const char *directory)
{
	struct stat st;
	int rc;

	if (!graft_ldsoconf_is_built_in(directory))
		return false;
	rc = graft_root_stat(freshness->root, directory, &st);
	return rc == -ENOENT || (rc == 0 && !is_older(&freshness->cache_stat, &st));
}

/*
 * Whether a directory of the configuration holds libraries but is not in the cache at all: images often add a file to ld.so.conf.d without
 * running ldconfig. Directories that the cache names count as scanned, and so do built-in ones that did not change since: the
 * image's own ldconfig had a reason to leave them out (Debian's does not search /lib64).
 */
static bool has_unlisted(struct freshness *freshness)
{
	const char **dirs = NULL;
	size_t n = 0;

	if (graft_ldsoconf_read(freshness->root, freshness->arena, &dirs, &n, NULL) < 0)
		return true;
	for (size_t i = 0; i < n; i++) {
		if (is_settled(freshness, dirs[i]))
			continue;
		if (graft_ldcache_scan_directory(&freshness->scan, dirs[i], NULL) < 0)
			return true;
		if (freshness->scan.found.n_records > 0) {
			graft_info(freshness->log, "%s does not know %s", CACHE_PATH, dirs[i]);
			return true;
		}
	}
	return false;
}

static bool is_fresh(struct freshness *freshness)
{
	struct graft_ldcache cache = { 0 };
	struct graft_error why = { 0 };

	int rc = graft_root_stat(freshness->root, CACHE_PATH, &freshness->cache_stat);

	if (rc < 0)
		(void)graft_fail_errno(&why, -rc, "it cannot be read");
	else
		rc = read_cache(freshness->root, freshness->arena, &cache, &why);
	if (rc < 0) {
		graft_info(freshness->log, "no usable %s: %s", CACHE_PATH, why.msg);
		return false;
	}
	for (size_t i = 0; i < cache.n_records; i++)
		if ((i % RECORDS_PER_CHECK == 0 && is_late(freshness)) ||
		    !add_directory_of(freshness, cache.records[i].path))
			return false;
	for (size_t i = 0; i < freshness->n_names; i++)
		if (is_late(freshness) || has_changed(freshness, freshness->names[i]))
			return false;
	return !has_unlisted(freshness);
}

enum graft_ldcache_state graft_ldcache_state(const struct graft_root *root, const struct graft_log *log)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct freshness freshness = { .root = root, .arena = arena, .log = log };
	bool fresh;

	freshness.scan = (struct graft_ldcache_scan){ .root = root, .arena = arena, .log = log };
	freshness.scan.deadline_ms = graft_clock_ms() + MAX_LOOK_MS;
	fresh = arena && is_fresh(&freshness);
	graft_arena_free(arena);
	return fresh ? GRAFT_LDCACHE_MERGE : GRAFT_LDCACHE_REBUILD;
}

/* One refresh. */
struct refresh {
	const struct graft_root *root;
	const struct graft_edit *edit;
	struct graft_journal *journal;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_directory_id *touched; /* directories of the entries */
	size_t n_touched;
	struct graft_ldcache_entry *by_soname, *by_file_name; /* the edit's entries, sorted */
	int64_t deadline_ms;                                  /* of the questions where records lead */
	uint64_t names[16]; /* a bit for the hash of each soname and file name of the entries */
};

/* What a regular file of that name, which is no link, says: nothing that is known, exactly these bytes, or something else. */
enum content { CONTENT_NONE, CONTENT_SAME, CONTENT_OTHER };

static enum content compare_content(struct refresh *refresh, int parent_fd, const char *name, const char *path,
				    const char *bytes, size_t length)
{
	struct graft_arena *arena;
	const char *old = NULL;
	size_t old_length = 0;
	struct stat st;
	bool same;

	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return CONTENT_NONE;
	if ((uintmax_t)st.st_size != length)
		return CONTENT_OTHER;
	arena = graft_arena_new(length + 64);
	same = arena && graft_root_read(refresh->root, path, length, arena, &old, &old_length) == 0 &&
	       old_length == length && memcmp(old, bytes, length) == 0;
	graft_arena_free(arena);
	return same ? CONTENT_SAME : CONTENT_OTHER;
}

/* Tells the journal what has the name now: a link, another object, or nothing. 0 or -errno. */
static int announce(struct graft_journal *journal, int parent_fd, const char *name)
{
	auto_close int old_fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char text[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (old_fd < 0)
		return errno == ENOENT ? graft_journal_replaced(journal, parent_fd, name, -1) : -errno;
	if (fstat(old_fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISLNK(st.st_mode))
		return graft_journal_replaced(journal, parent_fd, name, old_fd);
	n = readlinkat(old_fd, "", text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return graft_journal_relinked(journal, parent_fd, name, text);
}

/* The finished file under its name, which is never seen half written. */
static int put_in_place(struct graft_journal *journal, int parent_fd, const char *temporary, const char *name)
{
	int rc = announce(journal, parent_fd, name);

	if (rc < 0)
		return rc;
	if (renameat(parent_fd, temporary, parent_fd, name) < 0) {
		rc = -errno;
		graft_journal_forget(journal);
	}
	return rc;
}

static int replace(struct refresh *refresh, int parent_fd, const char *name, const char *bytes, size_t length)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	auto_close int fd = graft_temporary_file(parent_fd, FILE_MODE, temporary);
	int rc;

	if (fd < 0)
		return fd;
	/* Whatever umask the caller has: every user of the container must be able to read it. */
	rc = fchmod(fd, FILE_MODE) < 0 ? -errno : graft_write_all(fd, bytes, length);
	if (rc == 0)
		rc = put_in_place(refresh->journal, parent_fd, temporary, name);
	if (rc < 0)
		(void)unlinkat(parent_fd, temporary, 0);
	return rc;
}

/* Writes a file of /etc, making its directory if it is missing. A file that is right already is left alone. `ret_was`: what it was before; NULL = no matter. */
static int write_file(struct refresh *refresh, const char *path, const char *bytes, size_t length,
		      enum content *ret_was, struct graft_error *err)
{
	struct graft_root_watch watch = graft_journal_watch(refresh->journal);
	char name[NAME_MAX + 1];
	const char *slash = strrchr(path, '/');
	auto_close int parent_fd = -1;
	const char *directory = graft_arena_strndup(refresh->arena, path, (size_t)(slash - path));
	enum content was = CONTENT_NONE;
	int rc = directory ? graft_root_parent(refresh->root, path, &parent_fd, name) : -ENOMEM;

	if (rc == -ENOENT) {
		rc = graft_root_mkdir(refresh->root, directory, 0755, &watch, &parent_fd);
		(void)snprintf(name, sizeof(name), "%s", slash + 1);
	}
	if (rc == 0)
		was = compare_content(refresh, parent_fd, name, path, bytes, length);
	if (ret_was)
		*ret_was = was;
	if (rc == 0 && was != CONTENT_SAME)
		rc = replace(refresh, parent_fd, name, bytes, length);
	return rc < 0 ? graft_fail_errno(err, -rc, "file write error: %s", path) : 0;
}

static bool is_listed(const char *const *dirs, size_t n, const char *directory)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(dirs[i], directory) == 0)
			return true;
	return false;
}

/* Puts an include of our file in front of the image's own configuration, which does not lead there. */
static int include_our_conf(struct refresh *refresh, struct graft_error *err)
{
	const char *old = "", *text;
	size_t length = 0;
	int rc = graft_root_read(refresh->root, CONF_PATH, MAX_CONF_BYTES, refresh->arena, &old, &length);

	if (rc < 0 && rc != -ENOENT)
		return graft_fail_errno(err, -rc, "file read error: " CONF_PATH);
	text = graft_arena_printf(refresh->arena, "include " OUR_CONF "\n%.*s", (int)length, old);
	if (!text)
		return graft_fail_memory(err);
	graft_info(refresh->log, "%s does not include %s: adding a line", CONF_PATH, OUR_CONF);
	return write_file(refresh, CONF_PATH, text, strlen(text), NULL, err);
}

/*
 * Whether /etc/ld.so.conf has the line that nearly all images have, by which our file is read as well. Of others all files have to be read to tell.
 */
static bool includes_all(struct refresh *refresh)
{
	static const char line[] = "include " CONF_D_PATH "/*.conf";
	const char *text = NULL;
	size_t length = 0;

	if (graft_root_read(refresh->root, CONF_PATH, MAX_CONF_BYTES, refresh->arena, &text, &length) < 0)
		return false;
	for (const char *at = text; (at = strstr(at, line)); at++) {
		char end = at[strlen(line)];

		if ((at == text || at[-1] == '\n') && (end == '\n' || end == '\0'))
			return true;
	}
	return false;
}

static bool has_our_conf(const struct refresh *refresh)
{
	struct stat st;

	return graft_root_stat(refresh->root, OUR_CONF, &st) == 0 && S_ISREG(st.st_mode);
}

/*
 * So that a later ldconfig in the container searches the folders that it would not know, and no folder that was wanted when the root was used
 * before: our file says what is missing today, and nothing when nothing is. `ret_was`: what it was.
 */
static int configure_missing_folders(struct refresh *refresh, enum content *ret_was, struct graft_error *err)
{
	const struct graft_edit *edit = refresh->edit;
	const char *text = CONF_COMMENT;
	const char **dirs = NULL;
	size_t n = 0;

	if (edit->n_missing_folders == 0 && !has_our_conf(refresh))
		return 0;
	for (size_t i = 0; i < edit->n_missing_folders && text; i++)
		text = graft_arena_printf(refresh->arena, "%s%s\n", text, edit->missing_folders[i]);
	if (!text)
		return graft_fail_memory(err);
	if (write_file(refresh, OUR_CONF, text, strlen(text), ret_was, err) < 0)
		return -1;
	if (edit->n_missing_folders == 0 || includes_all(refresh))
		return 0;
	if (graft_ldsoconf_read(refresh->root, refresh->arena, &dirs, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < edit->n_missing_folders; i++)
		if (!is_listed(dirs, n, edit->missing_folders[i]))
			return include_our_conf(refresh, err);
	return 0;
}

/* Everything that ldconfig would find. */
static int rebuild(struct refresh *refresh, bool early, struct graft_ldcache *ret_cache, struct graft_error *err)
{
	struct graft_ldcache old = { 0 };
	bool is_usable = read_cache(refresh->root, refresh->arena, &old, NULL) == 0;
	struct graft_ldcache_scan scan = { .root = refresh->root,
					   .arena = refresh->arena,
					   .journal = refresh->journal,
					   .log = refresh->log,
					   .old = is_usable ? &old : NULL,
					   .early = early,
					   .deadline_ms = graft_clock_ms() + MAX_REBUILD_MS };
	const char **dirs = NULL;
	size_t n = 0;

	if (graft_ldsoconf_read(refresh->root, refresh->arena, &dirs, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (graft_ldcache_scan_directory(&scan, dirs[i], err) < 0)
			return -1;
	if (graft_ldcache_scan_finish(&scan, err) < 0)
		return -1;
	graft_info(refresh->log, "rebuilt %s: %zu libraries", CACHE_PATH, scan.found.n_records);
	*ret_cache = scan.found;
	return 0;
}

/*
 * The image's own records. A cache that is out of date is still better than no container, when a new one cannot be had: slow storage is not
 * the user's fault.
 */
static int own_records(struct refresh *refresh, enum graft_ldcache_state state, struct graft_ldcache *ret_cache,
		       struct graft_error *err)
{
	struct graft_error why = { 0 };

	if (state == GRAFT_LDCACHE_MERGE && read_cache(refresh->root, refresh->arena, ret_cache, NULL) == 0)
		return 0;
	if (rebuild(refresh, state == GRAFT_LDCACHE_REBUILD_EARLY, ret_cache, err) == 0)
		return 0;
	if (err && err->status != GRAFT_TOO_BIG)
		return -1;
	if (read_cache(refresh->root, refresh->arena, ret_cache, &why) < 0)
		return -1;
	graft_warn(refresh->log, "%s; the container's loader cache stays out of date", err ? err->msg : "time limit");
	graft_error_clear(err);
	return 0;
}

static int find_touched(struct refresh *refresh, struct graft_error *err)
{
	for (size_t i = 0; i < refresh->edit->n_folders; i++) {
		struct graft_directory_id *id;
		struct stat st;

		if (graft_root_stat(refresh->root, refresh->edit->folders[i], &st) < 0)
			continue;
		id = graft_arena_push(refresh->arena, &refresh->touched, &refresh->n_touched, sizeof(*id));
		if (!id)
			return graft_fail_memory(err);
		*id = (struct graft_directory_id){ st.st_dev, st.st_ino };
	}
	return 0;
}

/*
 * Whether the path of a record leads into a folder that ours lie in, by whatever name. Only records with a file name of ours are asked about; a
 * hostile cache may have 65,536 of them whose paths are made of links: late, they count as leading there.
 */
static bool is_touched(const struct refresh *refresh, const char *path)
{
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	struct stat st;

	if (graft_clock_ms() >= refresh->deadline_ms)
		return true;
	if (!slash || (size_t)(slash - path) >= sizeof(directory))
		return false;
	memcpy(directory, path, (size_t)(slash - path));
	directory[slash - path] = '\0';
	if (graft_root_stat(refresh->root, directory[0] != '\0' ? directory : "/", &st) < 0)
		return false;
	for (size_t i = 0; i < refresh->n_touched; i++)
		if (refresh->touched[i].dev == st.st_dev && refresh->touched[i].ino == st.st_ino)
			return true;
	return false;
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int compare_sonames(const void *a, const void *b)
{
	const struct graft_ldcache_entry *left = a, *right = b;

	return graft_ldcache_compare(left->soname, right->soname);
}

static int compare_file_names(const void *a, const void *b)
{
	const struct graft_ldcache_entry *left = a, *right = b;

	return strcmp(file_name(left->path), file_name(right->path));
}

/*
 * Names that graft_ldcache_compare() calls equal have the same hash (numbers count by their value, as there). Of the thousands of names of an
 * image nearly all are told from ours by it.
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

static void remember_name(struct refresh *refresh, const char *name)
{
	unsigned int hash = hash_name(name);

	refresh->names[hash / 64] |= (uint64_t)1 << hash % 64;
}

static bool may_be_ours(const struct refresh *refresh, const char *name)
{
	unsigned int hash = hash_name(name);

	return refresh->names[hash / 64] >> hash % 64 & 1;
}

/* Copies of the edit's entries, so that a thousand records are not compared with each of them. */
static int sort_entries(struct refresh *refresh, struct graft_error *err)
{
	const struct graft_edit *edit = refresh->edit;
	size_t size = edit->n_entries * sizeof(*edit->entries);

	refresh->by_soname = graft_arena_memdup(refresh->arena, edit->entries, size);
	refresh->by_file_name = graft_arena_memdup(refresh->arena, edit->entries, size);
	if (!refresh->by_soname || !refresh->by_file_name)
		return graft_fail_memory(err);
	for (size_t i = 0; i < edit->n_entries; i++) {
		remember_name(refresh, edit->entries[i].soname);
		remember_name(refresh, file_name(edit->entries[i].path));
	}
	if (edit->n_entries > 1) {
		qsort(refresh->by_soname, edit->n_entries, sizeof(*edit->entries), compare_sonames);
		qsort(refresh->by_file_name, edit->n_entries, sizeof(*edit->entries), compare_file_names);
	}
	return 0;
}

/* Whether an entry answers to this name and ABI. */
static bool has_entry(const struct refresh *refresh, const char *soname, uint32_t flags)
{
	const struct graft_ldcache_entry key = { .soname = soname };
	const struct graft_ldcache_entry *first = refresh->by_soname, *end = first + refresh->edit->n_entries;
	const struct graft_ldcache_entry *found = bsearch(&key, first, refresh->edit->n_entries, sizeof(key),
							  compare_sonames);

	while (found && found > first && compare_sonames(found - 1, &key) == 0)
		found--;
	for (; found && found < end && compare_sonames(found, &key) == 0; found++)
		if (found->abi_flags == flags)
			return true;
	return false;
}

/*
 * Whether a record of the image must go: it answers the same question as one of ours (same name and ABI, in hwcaps directories too, which the
 * loader would prefer), or names a file that ours has taken the place of.
 */
static bool is_shadowed(struct refresh *refresh, const struct graft_ldcache_record *record)
{
	const struct graft_ldcache_entry key = { .path = record->path };

	if (refresh->edit->n_entries == 0)
		return false;
	return (may_be_ours(refresh, record->soname) && has_entry(refresh, record->soname, record->flags)) ||
	       (may_be_ours(refresh, file_name(record->path)) &&
		bsearch(&key, refresh->by_file_name, refresh->edit->n_entries, sizeof(key), compare_file_names) &&
		is_touched(refresh, record->path));
}

/* Ours first: among equals the order stays. */
static int put_ours_first(struct refresh *refresh, struct graft_ldcache *cache, struct graft_error *err)
{
	const struct graft_edit *edit = refresh->edit;
	size_t n = 0, n_dropped = 0;
	struct graft_ldcache_record *records = graft_arena_list(refresh->arena, edit->n_entries + cache->n_records + 1,
								sizeof(*records));

	if (!records)
		return graft_fail_memory(err);
	refresh->deadline_ms = graft_clock_ms() + MAX_MERGE_MS;
	for (size_t i = 0; i < edit->n_entries; i++)
		records[n++] = (struct graft_ldcache_record){ .soname = edit->entries[i].soname,
							      .path = edit->entries[i].path,
							      .flags = edit->entries[i].abi_flags };
	for (size_t i = 0; i < cache->n_records; i++) {
		if (is_shadowed(refresh, &cache->records[i]))
			n_dropped++;
		else
			records[n++] = cache->records[i];
	}
	graft_info(refresh->log, "%s: %zu libraries added, %zu of the container's kept, %zu dropped", CACHE_PATH,
		   edit->n_entries, n - edit->n_entries, n_dropped);
	cache->records = records;
	cache->n_records = n;
	cache->generator = "graft " GRAFT_VERSION;
	return 0;
}

static int write_cache(struct refresh *refresh, struct graft_ldcache *cache, struct graft_error *err)
{
	struct graft_buffer out = { .max = MAX_CACHE_BYTES };
	int rc = graft_ldcache_write(cache, &out, err);

	if (rc == 0)
		rc = write_file(refresh, CACHE_PATH, out.bytes, out.length, NULL, err);
	graft_buffer_done(&out);
	return rc;
}

static int refresh_glibc(struct refresh *refresh, enum graft_ldcache_state state, struct graft_error *err)
{
	struct graft_ldcache cache = { 0 };
	enum content was = CONTENT_NONE;

	if (configure_missing_folders(refresh, &was, err) < 0)
		return -1;
	/* The cache may have what lies in folders that are not searched any more; links are as right as they were. */
	if (state == GRAFT_LDCACHE_MERGE && was == CONTENT_OTHER)
		state = GRAFT_LDCACHE_REBUILD_EARLY;
	if (own_records(refresh, state, &cache, err) < 0 || find_touched(refresh, err) < 0 ||
	    sort_entries(refresh, err) < 0 || put_ours_first(refresh, &cache, err) < 0)
		return -1;
	return write_cache(refresh, &cache, err);
}

int graft_ldcache_refresh(const struct graft_root *root, const struct graft_edit *edit, enum graft_ldcache_state state,
			  struct graft_journal *journal, const struct graft_log *log, struct graft_error *err)
{
	struct refresh refresh = { .root = root, .edit = edit, .journal = journal, .log = log };
	int rc;

	refresh.arena = graft_arena_new(ARENA_MAX);
	if (!refresh.arena)
		return graft_fail_memory(err);
	if (edit->musl_path_file && edit->musl_path)
		rc = write_file(&refresh, edit->musl_path_file, edit->musl_path, strlen(edit->musl_path), NULL, err);
	else
		rc = refresh_glibc(&refresh, state, err);
	graft_arena_free(refresh.arena);
	return rc;
}
