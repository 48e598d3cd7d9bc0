/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_scan: the directories of an image, as ldconfig reads them. Knows directories, names and ELF headers; what becomes of the records is
 * ldcache_refresh.c's.
 *
 * SECURITY: everything here is the image's. Files are looked at through O_PATH before they are opened, only regular ones are read, only by
 * pread of headers; sonames are single file names or nothing; entries, libraries and time are limited.
 */
#include "apply/ldcache_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apply/file.h"
#include "apply/ldcache_recall.h"
#include "base/cleanup.h"
#include "formats/elf.h"

#define MAX_LIBRARIES     ((size_t)65536)
#define MAX_HWCAPS        ((size_t)64)
#define ELF_ARENA         ((size_t)1 << 20) /* more than elf.c's own limits come to */
#define ENTRIES_PER_CHECK 64                /* entries of a directory between two looks at the clock */
#define HWCAPS_BIT        ((uint64_t)1 << 62)
#define HWCAPS_NAME       "glibc-hwcaps"

/* A file or link that is a library of ours. */
struct candidate {
	const char *name;
	const char *soname;
	uint32_t flags;
	bool is_link;
	bool recalled; /* by the word of the old cache: it was not looked at, and a link that it needs is there */
	struct graft_directory_id id; /* of the file, links followed; not of what was recalled */
	size_t place;                 /* in the directory */
};

/* One directory while it is scanned. */
struct directory {
	const char *path;                 /* as the configuration has it */
	int fd;                           /* O_RDONLY */
	int held_fd;                      /* for the journal, borrowed from it; -1 until something is changed */
	bool hwcaps;                      /* below glibc-hwcaps: no links are made */
	bool has_hwcaps;                  /* there is a glibc-hwcaps in it */
	struct graft_ldcache_name *names; /* those that could be libraries', sorted */
	size_t n_names;
	struct candidate *candidates;
	size_t n_candidates;
};

static int check_time(const struct graft_ldcache_scan *scan, const char *path, struct graft_error *err)
{
	if (graft_clock_ms() < scan->deadline_ms)
		return 0;
	return graft_fail(err, GRAFT_TOO_BIG, 0, "reading the container's library directories takes too long: %s",
			  path);
}

static const char *join(const struct graft_ldcache_scan *scan, const char *directory, const char *name)
{
	size_t length = strlen(directory);

	return graft_arena_join(scan->arena, directory,
				length > 0 && directory[length - 1] == '/' ? length - 1 : length, name);
}

/* An O_PATH descriptor of what a name of the directory leads to, below the root; -errno. */
static int find_object(const struct graft_ldcache_scan *scan, const struct directory *directory, const char *name,
		       bool is_link)
{
	char path[PATH_MAX];
	int n;

	if (!is_link) {
		int fd = openat(directory->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		return fd < 0 ? -errno : fd;
	}
	n = snprintf(path, sizeof(path), "%s/%s", directory->path, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return graft_root_openat(scan->root, path, O_PATH);
}

/* Opens the regular file of an O_PATH descriptor for reading; -1 if that cannot be done. */
static int open_found(const struct graft_ldcache_scan *scan, const struct directory *directory, const char *name,
		      int path_fd)
{
	char text[PATH_MAX];

	if ((size_t)snprintf(text, sizeof(text), "%s/%s", directory->path, name) >= sizeof(text))
		return -1;
	return graft_root_reopen(scan->root, path_fd, text, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

/* The loader takes one ABI; of others only the 32-bit companion is ours to list. */
static bool is_our_abi(uint32_t flags)
{
	return flags != 0 && (flags == graft_abi_flags_native() || flags == graft_abi_flags_compat32());
}

/*
 * Reads soname and ABI of an open file into the candidate. 1 when it is a library of ours, 0 when not, -1 on failure.
 */
static int read_library(const struct graft_ldcache_scan *scan, int fd, struct candidate *candidate,
			struct graft_error *err)
{
	struct graft_arena *scratch = graft_arena_new(ELF_ARENA);
	struct graft_error why = { 0 };
	struct graft_elf elf = { 0 };
	int rc = 0;

	if (!scratch)
		return graft_fail_memory(err);
	if (graft_elf_read_fd(fd, candidate->name, scratch, &elf, &why) < 0)
		rc = why.status == GRAFT_NO_MEMORY ? graft_fail_memory(err) : 0;
	else if (is_our_abi(elf.abi_flags) && (!elf.soname || graft_ldcache_is_soname(elf.soname))) {
		candidate->flags = elf.abi_flags;
		candidate->soname = graft_arena_strdup(scan->arena, elf.soname ? elf.soname : candidate->name);
		rc = candidate->soname ? 1 : graft_fail_memory(err);
	}
	graft_arena_free(scratch);
	return rc;
}

/*
 * A link is recorded under its own name if that is the soname, or the development link ("libx.so" to "libx.so.1"). Any other link counts as a
 * file of its own: "libx.so.1 -> libximpl.so.9".
 */
static void settle_link(struct candidate *candidate)
{
	if (strcmp(candidate->name, candidate->soname) == 0)
		return;
	if (graft_ldcache_is_development_link(candidate->name, candidate->soname))
		candidate->soname = candidate->name;
	else
		candidate->is_link = false;
}

/* The directory as the journal wants it: held once, however many links are made in it. -1 when memory is exhausted. */
static int hold(const struct graft_ldcache_scan *scan, struct directory *directory)
{
	int fd;

	if (directory->held_fd >= 0)
		return 0;
	fd = fcntl(directory->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || graft_journal_hold(scan->journal, fd) < 0) {
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	directory->held_fd = fd;
	return 0;
}

/* A link like libx.so.1 that leads nowhere: ldconfig removes it. */
static int remove_dangling(const struct graft_ldcache_scan *scan, struct directory *directory, const char *name,
			   struct graft_error *err)
{
	char text[PATH_MAX];
	ssize_t n;

	if (!scan->journal || scan->early || directory->hwcaps || !strstr(name, ".so."))
		return 0;
	n = readlinkat(directory->fd, name, text, sizeof(text) - 1);
	if (n < 0)
		return 0;
	text[n] = '\0';
	if (hold(scan, directory) < 0 || graft_journal_relinked(scan->journal, directory->held_fd, name, text) < 0)
		return graft_fail_memory(err);
	if (unlinkat(directory->held_fd, name, 0) < 0) {
		graft_journal_forget(scan->journal);
		graft_info(scan->log, "cannot remove dangling link %s/%s: %s", directory->path, name, strerror(errno));
	} else
		graft_info(scan->log, "removed dangling link %s/%s", directory->path, name);
	return 0;
}

static int fail_number(const struct directory *directory, struct graft_error *err)
{
	return graft_fail(err, GRAFT_TOO_BIG, 0, "more than %zu libraries in the container: %s", MAX_LIBRARIES,
			  directory->path);
}

static int add_candidate(const struct graft_ldcache_scan *scan, struct directory *directory,
			 const struct candidate *candidate, struct graft_error *err)
{
	struct candidate *slot;

	if (directory->n_candidates + scan->found.n_records >= MAX_LIBRARIES)
		return fail_number(directory, err);
	slot = graft_arena_push(scan->arena, &directory->candidates, &directory->n_candidates, sizeof(*slot));
	if (!slot)
		return graft_fail_memory(err);
	*slot = *candidate;
	return 0;
}

/* Looks at one name that could be a library's. */
static int examine(const struct graft_ldcache_scan *scan, struct directory *directory, const char *name, bool is_link,
		   size_t place, struct graft_error *err)
{
	struct candidate candidate = { .name = name, .is_link = is_link, .place = place };
	auto_close int path_fd = find_object(scan, directory, name, is_link);
	auto_close int fd = -1;
	struct stat st;
	int rc;

	if (path_fd == -ENOENT && is_link)
		return remove_dangling(scan, directory, name, err);
	if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	fd = open_found(scan, directory, name, path_fd);
	if (fd < 0)
		return 0;
	rc = read_library(scan, fd, &candidate, err);
	if (rc <= 0 || !candidate.soname)
		return rc;
	candidate.id = (struct graft_directory_id){ st.st_dev, st.st_ino };
	if (is_link && !directory->hwcaps)
		settle_link(&candidate);
	return add_candidate(scan, directory, &candidate, err);
}

/* Type of an entry: DT_REG, DT_LNK, DT_DIR or something else. */
static int type_of(int directory_fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(directory_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISREG(st.st_mode) ? DT_REG : S_ISLNK(st.st_mode) ? DT_LNK : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

/* By soname; names of one soname in the order of the directory. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;
	int order = strcmp(left->soname, right->soname);

	if (order != 0)
		return order;
	return left->place < right->place ? -1 : left->place > right->place;
}

/* A real file beats a link; among equals the greater name. */
static bool beats(const struct candidate *challenger, const struct candidate *winner)
{
	if (challenger->is_link != winner->is_link)
		return winner->is_link;
	return graft_ldcache_compare(challenger->name, winner->name) > 0;
}

/* Whether what has the winner's soname for its name, if anything, leads to the winner. */
static bool is_linked(const struct graft_ldcache_scan *scan, const struct directory *directory,
		      const struct candidate *winner)
{
	auto_close int fd = -1;
	struct stat st;

	/* All names of libraries are known. */
	if (graft_ldcache_is_library_name(winner->soname) &&
	    !graft_ldcache_find_name(directory->names, directory->n_names, winner->soname))
		return false;
	fd = find_object(scan, directory, winner->soname, true);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == winner->id.dev && st.st_ino == winner->id.ino;
}

/* Makes or corrects <soname> -> winner. Only lack of memory is a failure: a directory that cannot be written to stays as it is. */
static int link_soname(const struct graft_ldcache_scan *scan, struct directory *directory,
		       const struct candidate *winner, struct graft_error *err)
{
	struct stat st;
	int rc;

	if (!scan->journal || directory->hwcaps || winner->is_link || winner->recalled ||
	    strcmp(winner->soname, winner->name) == 0 || is_linked(scan, directory, winner))
		return 0;
	/* A link that leads nowhere, or to an empty mount point, is one that will lead to a library of ours. */
	if (scan->early && fstatat(directory->fd, winner->soname, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (hold(scan, directory) < 0)
		return graft_fail_memory(err);
	rc = graft_file_link(scan->journal, directory->held_fd, winner->soname, winner->name, GRAFT_CONFLICT_REPLACE);
	if (rc == -ENOMEM)
		return graft_fail_memory(err);
	if (rc < 0)
		graft_info(scan->log, "cannot link %s/%s: %s", directory->path, winner->soname, strerror(-rc));
	return 0;
}

static int add_record(struct graft_ldcache_scan *scan, const struct directory *directory,
		      const struct candidate *winner, uint64_t hwcap, struct graft_error *err)
{
	struct graft_ldcache_record *record = graft_arena_push(scan->arena, &scan->found.records,
							       &scan->found.n_records, sizeof(*record));

	if (!record)
		return graft_fail_memory(err);
	record->soname = winner->soname;
	record->path = join(scan, directory->path, directory->hwcaps ? winner->name : winner->soname);
	record->flags = winner->flags;
	record->hwcap = hwcap;
	return record->path ? 0 : graft_fail_memory(err);
}

/* The end of the run of candidates that have the soname of the first. */
static size_t end_of_run(const struct directory *directory, size_t first)
{
	const struct candidate *candidates = directory->candidates;
	size_t end = first + 1;

	while (end < directory->n_candidates && strcmp(candidates[end].soname, candidates[first].soname) == 0)
		end++;
	return end;
}

static bool is_disputed(const struct candidate *candidates, size_t n)
{
	size_t n_recalled = 0;

	for (size_t i = 0; i < n; i++)
		n_recalled += candidates[i].recalled;
	return n_recalled > 0 && n_recalled < n;
}

/*
 * What was recalled is not believed where something else has come to have the same soname: it may be an empty mount point that a library of an older
 * driver has left in the image. *ret_n is how many were looked at after all; the list, sorted before, is not sorted then.
 */
static int settle_disputes(const struct graft_ldcache_scan *scan, struct directory *directory, size_t *ret_n,
			   struct graft_error *err)
{
	struct candidate *candidates = directory->candidates, *disputed = NULL;
	size_t n_disputed = 0, n_kept = 0;

	for (size_t first = 0, end; first < directory->n_candidates; first = end) {
		bool dispute;

		end = end_of_run(directory, first);
		dispute = is_disputed(&candidates[first], end - first);
		for (size_t i = first; i < end; i++) {
			struct candidate *slot = &candidates[n_kept];

			if (dispute && candidates[i].recalled)
				slot = graft_arena_push(scan->arena, &disputed, &n_disputed, sizeof(*slot));
			else
				n_kept++;
			if (!slot)
				return graft_fail_memory(err);
			*slot = candidates[i];
		}
	}
	directory->n_candidates = n_kept;
	for (size_t i = 0; i < n_disputed; i++)
		if (check_time(scan, directory->path, err) < 0 ||
		    examine(scan, directory, disputed[i].name, disputed[i].is_link, disputed[i].place, err) < 0)
			return -1;
	*ret_n = n_disputed;
	return 0;
}

/* In runs of one soname, without disputes. */
static int sort_candidates(const struct graft_ldcache_scan *scan, struct directory *directory, struct graft_error *err)
{
	size_t n_disputed;

	do {
		if (directory->n_candidates > 1)
			qsort(directory->candidates, directory->n_candidates, sizeof(*directory->candidates),
			      compare_candidates);
		if (settle_disputes(scan, directory, &n_disputed, err) < 0)
			return -1;
	} while (n_disputed > 0);
	return 0;
}

/* Records for the winners. */
static int settle_directory(struct graft_ldcache_scan *scan, struct directory *directory, uint64_t hwcap,
			    struct graft_error *err)
{
	if (sort_candidates(scan, directory, err) < 0)
		return -1;
	for (size_t i = 0, end; i < directory->n_candidates; i = end) {
		const struct candidate *winner = &directory->candidates[i];

		end = end_of_run(directory, i);
		for (size_t j = i + 1; j < end; j++)
			if (beats(&directory->candidates[j], winner))
				winner = &directory->candidates[j];
		if (check_time(scan, directory->path, err) < 0 || link_soname(scan, directory, winner, err) < 0 ||
		    add_record(scan, directory, winner, hwcap, err) < 0)
			return -1;
	}
	return 0;
}

/* All of them before any is looked at: a link that is recalled answers for the file that it leads to. */
static int read_names(const struct graft_ldcache_scan *scan, struct directory *directory, DIR *stream,
		      struct graft_error *err)
{
	const struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(stream)) != NULL) {
		struct graft_ldcache_name *slot;
		int type = DT_UNKNOWN;

		if (n++ % ENTRIES_PER_CHECK == 0 && check_time(scan, directory->path, err) < 0)
			return -1;
		if (strcmp(entry->d_name, HWCAPS_NAME) == 0)
			directory->has_hwcaps = true;
		if (graft_ldcache_is_library_name(entry->d_name))
			type = type_of(directory->fd, entry);
		if (type != DT_REG && type != DT_LNK)
			continue;
		if (directory->n_names == MAX_LIBRARIES)
			return fail_number(directory, err);
		slot = graft_arena_push(scan->arena, &directory->names, &directory->n_names, sizeof(*slot));
		if (!slot)
			return graft_fail_memory(err);
		slot->name = graft_arena_strdup(scan->arena, entry->d_name);
		if (!slot->name)
			return graft_fail_memory(err);
		slot->is_link = type == DT_LNK;
		slot->place = directory->n_names - 1;
	}
	graft_ldcache_sort_names(directory->names, directory->n_names);
	return 0;
}

static int add_recalled(const struct graft_ldcache_scan *scan, struct directory *directory,
			const struct graft_ldcache_name *name, struct graft_error *err)
{
	const struct candidate candidate = {
		.name = name->name,
		.soname = name->soname,
		.flags = name->flags,
		.is_link = name->is_link,
		.recalled = true,
		.place = name->place,
	};

	return add_candidate(scan, directory, &candidate, err);
}

/* Below glibc-hwcaps records are of files, not of links, and say nothing of sonames. */
static int find_candidates(const struct graft_ldcache_scan *scan, struct directory *directory, struct graft_error *err)
{
	if (scan->old && !directory->hwcaps &&
	    graft_ldcache_recall(scan->old, directory->fd, directory->path, directory->names, directory->n_names,
				 scan->deadline_ms, scan->arena) < 0)
		return graft_fail_memory(err);
	for (size_t i = 0; i < directory->n_names; i++) {
		const struct graft_ldcache_name *name = &directory->names[i];
		int rc;

		if (i % ENTRIES_PER_CHECK == 0 && check_time(scan, directory->path, err) < 0)
			return -1;
		rc = name->soname ? add_recalled(scan, directory, name, err)
				  : examine(scan, directory, name->name, name->is_link, name->place, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* Whether the directory is met for the first time; it is remembered. -1: memory. */
static int is_new(struct graft_ldcache_scan *scan, int fd, struct graft_error *err)
{
	struct graft_directory_id *id;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0;
	for (size_t i = 0; i < scan->n_seen; i++)
		if (scan->seen[i].dev == st.st_dev && scan->seen[i].ino == st.st_ino)
			return 0;
	id = graft_arena_push(scan->arena, &scan->seen, &scan->n_seen, sizeof(*id));
	if (!id)
		return graft_fail_memory(err);
	*id = (struct graft_directory_id){ st.st_dev, st.st_ino };
	return 1;
}

/* A directory for reading, or NULL when it is not there or was scanned already. */
static int open_directory(struct graft_ldcache_scan *scan, const char *path, DIR **ret_stream, struct graft_error *err)
{
	auto_close int fd = graft_root_openat(scan->root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	int rc = fd < 0 ? 0 : is_new(scan, fd, err);

	*ret_stream = NULL;
	if (rc <= 0)
		return rc;
	*ret_stream = fdopendir(fd);
	if (!*ret_stream)
		return errno == ENOMEM ? graft_fail_memory(err) : 0;
	(void)TAKE_FD(fd);
	return 0;
}

/* 1 when there is a glibc-hwcaps in the directory. */
static int scan_one(struct graft_ldcache_scan *scan, const char *path, bool hwcaps, uint64_t hwcap,
		    struct graft_error *err)
{
	struct directory directory = { .path = path, .held_fd = -1, .hwcaps = hwcaps };
	auto_dir DIR *stream = NULL;

	if (open_directory(scan, path, &stream, err) < 0)
		return -1;
	if (!stream)
		return 0;
	directory.fd = dirfd(stream);
	if (read_names(scan, &directory, stream, err) < 0 || find_candidates(scan, &directory, err) < 0 ||
	    settle_directory(scan, &directory, hwcap, err) < 0)
		return -1;
	return directory.has_hwcaps;
}

/* The place of a hwcaps name in the list, which grows; -1 when there is no room. */
static int hwcaps_index(struct graft_ldcache_scan *scan, const char *name)
{
	for (size_t i = 0; i < scan->found.n_hwcaps; i++)
		if (strcmp(scan->found.hwcaps[i], name) == 0)
			return (int)i;
	if (scan->found.n_hwcaps == MAX_HWCAPS ||
	    !graft_arena_push_string(scan->arena, &scan->found.hwcaps, &scan->found.n_hwcaps, name))
		return -1;
	return (int)scan->found.n_hwcaps - 1;
}

/*
 * The ISA level of such a record stays 0, "any": the loader then goes by the name of the directory alone, which is what decides for every
 * library that was put into the right one.
 */
static int scan_hwcaps(struct graft_ldcache_scan *scan, const char *path, struct graft_error *err)
{
	const char *parent = join(scan, path, HWCAPS_NAME);
	const struct dirent *entry;
	auto_dir DIR *stream = NULL;
	size_t n = 0;

	if (!parent)
		return graft_fail_memory(err);
	if (open_directory(scan, parent, &stream, err) < 0)
		return -1;
	while (stream && (entry = readdir(stream)) != NULL) {
		const char *below;
		int index;

		if (n++ % ENTRIES_PER_CHECK == 0 && check_time(scan, parent, err) < 0)
			return -1;
		if (entry->d_name[0] == '.' || type_of(dirfd(stream), entry) != DT_DIR)
			continue;
		below = join(scan, parent, entry->d_name);
		index = hwcaps_index(scan, entry->d_name);
		if (!below || (index < 0 && graft_arena_failed(scan->arena)))
			return graft_fail_memory(err);
		if (index >= 0 && scan_one(scan, below, true, HWCAPS_BIT | (uint64_t)index, err) < 0)
			return -1;
	}
	return 0;
}

int graft_ldcache_scan_directory(struct graft_ldcache_scan *scan, const char *path, struct graft_error *err)
{
	/* SECURITY: finding out that a directory is not there takes milliseconds when its path is made of links. */
	int rc = check_time(scan, path, err);

	if (rc == 0)
		rc = scan_one(scan, path, false, 0, err);
	return rc > 0 ? scan_hwcaps(scan, path, err) : rc;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int graft_ldcache_scan_finish(struct graft_ldcache_scan *scan, struct graft_error *err)
{
	struct graft_ldcache *found = &scan->found;
	const char **sorted = graft_arena_memdup(scan->arena, found->hwcaps, found->n_hwcaps * sizeof(*sorted));

	if (!sorted)
		return graft_fail_memory(err);
	if (found->n_hwcaps > 1)
		qsort(sorted, found->n_hwcaps, sizeof(*sorted), compare_names);
	for (size_t i = 0; i < found->n_records; i++) {
		struct graft_ldcache_record *record = &found->records[i];
		const char *const *place;

		if (record->hwcap == 0)
			continue;
		place = bsearch(&found->hwcaps[(uint32_t)record->hwcap], sorted, found->n_hwcaps, sizeof(*sorted),
				compare_names);
		record->hwcap = HWCAPS_BIT | (uint64_t)(place - sorted);
	}
	found->hwcaps = sorted;
	return 0;
}
