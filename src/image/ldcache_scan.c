/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_scan: reads the directories of an image as ldconfig does. Knows directories, names and
 * ELF headers; loader_cache.c uses the records.
 *
 * SECURITY: the image controls everything here. Files are examined through O_PATH before they are
 * opened; only regular ones are read, and only their headers, by pread; a soname must be a single
 * file name; entries, libraries and time are limited.
 */
#include "image/ldcache_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/loader/elf.h"
#include "image/ldcache_recall.h"

#define MAX_LIBRARIES     ((size_t)65536)
#define MAX_HWCAPS        ((size_t)64)
#define ELF_ARENA         ((size_t)1 << 20) /* more than the limits of elf.c add up to */
#define ENTRIES_PER_CHECK 64                /* directory entries between two checks of the budget */
#define HWCAPS_BIT        ((uint64_t)1 << 62)
#define HWCAPS_NAME       "glibc-hwcaps"

/* A file or link that is a library of a supported ABI. */
struct candidate {
	const char *name;
	const char *soname;
	uint32_t flags;
	bool is_link;
	bool recalled;                /* known from the old cache: not examined; if it needs a link, that exists */
	struct graft_directory_id id; /* of the file, links followed; unset if recalled */
	size_t place;                 /* its position in the directory */
};

/* A directory while it is scanned. */
struct directory {
	const char *path;                 /* as in the loader's configuration */
	int fd;                           /* O_RDONLY */
	bool writable;                    /* links may be made in it: it is on the root's own mount */
	bool hwcaps;                      /* below glibc-hwcaps, where no links are made */
	bool has_hwcaps;                  /* it contains glibc-hwcaps */
	struct graft_ldcache_name *names; /* those that may be libraries, sorted */
	size_t n_names;
	struct candidate *candidates;
	size_t n_candidates;
};

static int check_time(const struct graft_ldcache_scan *scan, const char *path, struct graft_error *err)
{
	if (!graft_budget_is_spent(scan->root->budget))
		return 0;
	return graft_fail(err, GRAFT_TOO_BIG, 0, "reading the container's library directories takes too long: %s",
			  path);
}

static const char *join_scanned_path(const struct graft_ldcache_scan *scan, const char *directory, const char *name)
{
	size_t length = strlen(directory);

	return graft_arena_join(scan->arena, directory,
				length > 0 && directory[length - 1] == '/' ? length - 1 : length, name);
}

/*
 * Returns an O_PATH descriptor of the object that a name in the directory resolves to, below the
 * root, or -errno.
 */
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
	return graft_image_root_look(scan->root, path, 0);
}

/*
 * Opens the regular file of an O_PATH descriptor for reading. Returns a negative value if that is
 * impossible.
 */
static int open_scanned_file(const struct graft_ldcache_scan *scan, const struct directory *directory, const char *name,
			     int path_fd, struct stat *ret_stat)
{
	char text[PATH_MAX];

	if ((size_t)snprintf(text, sizeof(text), "%s/%s", directory->path, name) >= sizeof(text))
		return -1;
	return graft_image_root_open(scan->root, path_fd, text, ret_stat);
}

/* The loader uses a single ABI; of the others, we only list its 32-bit companion. */
static bool is_our_abi(uint32_t flags)
{
	return flags != 0 && (flags == graft_abi_flags_native() || flags == graft_abi_flags_compat32());
}

/*
 * Reads soname and ABI of an open file into the candidate. Returns 1 if it is a library of a
 * supported ABI, 0 if not, -1 on failure.
 */
static int read_scanned_library(const struct graft_ldcache_scan *scan, int fd, struct candidate *candidate,
				struct graft_error *err)
{
	auto_arena struct graft_arena *scratch = graft_arena_new(ELF_ARENA);
	struct graft_error why = { 0 };
	struct graft_elf elf = { 0 };

	if (!scratch)
		return graft_fail_memory(err);
	if (graft_elf_read_fd(fd, candidate->name, scratch, &elf, &why) < 0)
		return why.status == GRAFT_NO_MEMORY ? graft_fail_memory(err) : 0;
	if (!is_our_abi(elf.abi_flags) || (elf.soname && !graft_ldcache_is_soname(elf.soname)))
		return 0;
	candidate->flags = elf.abi_flags;
	candidate->soname = graft_arena_strdup(scan->arena, elf.soname ? elf.soname : candidate->name);
	return candidate->soname ? 1 : graft_fail_memory(err);
}

/*
 * A link is recorded under its own name if that is the soname, or if it is the development link
 * ("libx.so" to "libx.so.1"). Any other link is treated as a file: "libx.so.1 -> libximpl.so.9".
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

/* Lists a link to be made or corrected; if `text` is NULL, to be removed. */
static int list_link(struct graft_ldcache_scan *scan, const struct directory *directory, const char *name,
		     const char *text, struct graft_error *err)
{
	struct graft_loader_link *link;
	char old[PATH_MAX];
	ssize_t n = readlinkat(directory->fd, name, old, sizeof(old) - 1);

	/* Anything but a link stays; so does a link that could not be restored. */
	if ((n < 0 && (errno != ENOENT || !text)) || scan->n_links == GRAFT_LOADER_LINKS_MAX)
		return 0;
	link = graft_arena_push(scan->arena, &scan->links, &scan->n_links, sizeof(*link));
	if (!link)
		return graft_fail_memory(err);
	link->directory = directory->path;
	link->name = name;
	link->text = text;
	link->old_text = n < 0 ? NULL : graft_arena_strndup(scan->arena, old, (size_t)n);
	return n >= 0 && !link->old_text ? graft_fail_memory(err) : 0;
}

/* Removes a dangling link such as libx.so.1, as ldconfig does. */
static int remove_dangling(struct graft_ldcache_scan *scan, const struct directory *directory, const char *name,
			   struct graft_error *err)
{
	if (!scan->want_links || scan->early || directory->hwcaps || !directory->writable || !strstr(name, ".so."))
		return 0;
	return list_link(scan, directory, name, NULL, err);
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

/* Examines a name that may be a library. */
static int examine(struct graft_ldcache_scan *scan, struct directory *directory, const char *name, bool is_link,
		   size_t place, struct graft_error *err)
{
	struct candidate candidate = { .name = name, .is_link = is_link, .place = place };
	auto_close int path_fd = find_object(scan, directory, name, is_link);
	auto_close int fd = -1;
	struct stat st;
	int rc;

	if (path_fd == -ENOENT && is_link)
		return remove_dangling(scan, directory, name, err);
	if (path_fd < 0)
		return path_fd == -ETIME ? check_time(scan, directory->path, err) : 0;
	fd = open_scanned_file(scan, directory, name, path_fd, &st);
	if (fd < 0 || !S_ISREG(st.st_mode))
		return 0;
	rc = read_scanned_library(scan, fd, &candidate, err);
	if (rc <= 0)
		return rc;
	candidate.id = (struct graft_directory_id){ st.st_dev, st.st_ino };
	if (is_link && !directory->hwcaps)
		settle_link(&candidate);
	return add_candidate(scan, directory, &candidate, err);
}

/* Returns DT_REG, DT_LNK, DT_DIR or something else. */
static int type_of_entry(int directory_fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(directory_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISREG(st.st_mode) ? DT_REG : S_ISLNK(st.st_mode) ? DT_LNK : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

/* Sorts by soname; candidates with the same soname stay in the order of the directory. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;
	int order = strcmp(left->soname, right->soname);

	if (order != 0)
		return order;
	return left->place < right->place ? -1 : left->place > right->place;
}

/* A regular file beats a link; otherwise the greater name wins. */
static bool beats(const struct candidate *challenger, const struct candidate *winner)
{
	if (challenger->is_link != winner->is_link)
		return winner->is_link;
	return graft_ldcache_compare(challenger->name, winner->name) > 0;
}

/* Returns whether the winner's soname exists as a name that resolves to the winner. */
static bool is_linked(const struct graft_ldcache_scan *scan, const struct directory *directory,
		      const struct candidate *winner)
{
	auto_close int fd = -1;
	struct stat st;

	/* `names` contains all names of libraries. */
	if (graft_ldcache_is_library_name(winner->soname) &&
	    !graft_ldcache_find_name(directory->names, directory->n_names, winner->soname))
		return false;
	fd = find_object(scan, directory, winner->soname, true);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == winner->id.dev && st.st_ino == winner->id.ino;
}

/*
 * Lists the link <soname> -> winner if it must be made or corrected. Returns 1 if the soname will
 * resolve to the winner, 0 if not, because nothing may be created there, or -1 if out of memory.
 */
static int link_soname(struct graft_ldcache_scan *scan, const struct directory *directory,
		       const struct candidate *winner, struct graft_error *err)
{
	struct stat st;

	if (directory->hwcaps)
		return 0;
	if (!scan->want_links || winner->is_link || winner->recalled || strcmp(winner->soname, winner->name) == 0 ||
	    is_linked(scan, directory, winner))
		return 1;
	/*
	 * A dangling link, or a link to an empty mount point, may be meant for a library that is
	 * still to be mounted.
	 */
	if (scan->early && fstatat(directory->fd, winner->soname, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	if (!directory->writable) {
		graft_warn(scan->log, "not creating link %s/%s: it would not be on the mount of the container's root",
			   directory->path, winner->soname);
		return 0;
	}
	return list_link(scan, directory, winner->soname, winner->name, err) < 0 ? -1 : 1;
}

static int add_scanned_record(struct graft_ldcache_scan *scan, const struct directory *directory,
			      const struct candidate *winner, bool by_soname, uint64_t hwcap, struct graft_error *err)
{
	struct graft_ldcache_record *record = graft_arena_push(scan->arena, &scan->found.records,
							       &scan->found.n_records, sizeof(*record));

	if (!record)
		return graft_fail_memory(err);
	record->soname = winner->soname;
	record->path = join_scanned_path(scan, directory->path, by_soname ? winner->soname : winner->name);
	record->flags = winner->flags;
	record->hwcap = hwcap;
	return record->path ? 0 : graft_fail_memory(err);
}

/* Returns the end of the run of candidates with the same soname as the first. */
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
 * Does not trust recalled candidates if another one has the same soname by now: it may be an empty
 * mount point that a library of an older driver has left in the image. *ret_n is the number of
 * candidates that were examined after all; if it is not 0, the list is no longer sorted.
 */
static int settle_disputes(struct graft_ldcache_scan *scan, struct directory *directory, size_t *ret_n,
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

/* Sorts into runs of the same soname, without disputes. */
static int sort_candidates(struct graft_ldcache_scan *scan, struct directory *directory, struct graft_error *err)
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

/* Adds records for the winners. */
static int settle_directory(struct graft_ldcache_scan *scan, struct directory *directory, uint64_t hwcap,
			    struct graft_error *err)
{
	if (sort_candidates(scan, directory, err) < 0)
		return -1;
	for (size_t i = 0, end; i < directory->n_candidates; i = end) {
		const struct candidate *winner = &directory->candidates[i];
		int linked;

		end = end_of_run(directory, i);
		for (size_t j = i + 1; j < end; j++)
			if (beats(&directory->candidates[j], winner))
				winner = &directory->candidates[j];
		if (check_time(scan, directory->path, err) < 0)
			return -1;
		linked = link_soname(scan, directory, winner, err);
		if (linked < 0 || add_scanned_record(scan, directory, winner, linked > 0, hwcap, err) < 0)
			return -1;
	}
	return 0;
}

/*
 * Reads all names before examining any: a recalled link also answers for the file that it resolves
 * to.
 */
static int read_scanned_names(const struct graft_ldcache_scan *scan, struct directory *directory, DIR *stream,
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
			type = type_of_entry(directory->fd, entry);
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

/* Below glibc-hwcaps, records are about files, not links, and do not show sonames. */
static int find_candidates(struct graft_ldcache_scan *scan, struct directory *directory, struct graft_error *err)
{
	if (scan->old && !directory->hwcaps &&
	    graft_ldcache_recall(scan->old, directory->fd, directory->path, directory->names, directory->n_names,
				 scan->root->budget, scan->arena) < 0)
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

/*
 * Returns 1 if the directory is seen for the first time, and remembers it; 0 if not; -1 if out of
 * memory.
 */
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

/*
 * Opens a directory for reading. *ret_stream is NULL if it does not exist or was scanned already.
 */
static int open_scanned_directory(struct graft_ldcache_scan *scan, const char *path, DIR **ret_stream,
				  struct graft_error *err)
{
	auto_close int path_fd = graft_image_root_look(scan->root, path, O_DIRECTORY);
	auto_close int fd = path_fd < 0 ? path_fd : graft_image_root_open(scan->root, path_fd, path, NULL);
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

/* Returns 1 if the directory contains glibc-hwcaps. */
static int scan_one(struct graft_ldcache_scan *scan, const char *path, bool hwcaps, uint64_t hwcap,
		    struct graft_error *err)
{
	struct directory directory = { .path = path, .hwcaps = hwcaps };
	auto_dir DIR *stream = NULL;

	if (open_scanned_directory(scan, path, &stream, err) < 0)
		return -1;
	if (!stream)
		return 0;
	directory.fd = dirfd(stream);
	directory.writable = scan->want_links &&
			     graft_image_root_may_write_at(scan->root, directory.fd, true, GRAFT_IMAGE_CONTENT) == 0;
	if (read_scanned_names(scan, &directory, stream, err) < 0 || find_candidates(scan, &directory, err) < 0 ||
	    settle_directory(scan, &directory, hwcap, err) < 0)
		return -1;
	return directory.has_hwcaps;
}

/*
 * Returns the index of a hwcaps name, adding it to the list if necessary; -1 if there is no room.
 */
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
 * The ISA level of these records stays 0, "any", so the loader only considers the name of the
 * directory. That is correct for every library installed in the right directory.
 */
static int scan_hwcaps(struct graft_ldcache_scan *scan, const char *path, struct graft_error *err)
{
	const char *parent = join_scanned_path(scan, path, HWCAPS_NAME);
	const struct dirent *entry;
	auto_dir DIR *stream = NULL;
	size_t n = 0;

	if (!parent)
		return graft_fail_memory(err);
	if (open_scanned_directory(scan, parent, &stream, err) < 0)
		return -1;
	while (stream && (entry = readdir(stream)) != NULL) {
		const char *below;
		int index;

		if (n++ % ENTRIES_PER_CHECK == 0 && check_time(scan, parent, err) < 0)
			return -1;
		if (entry->d_name[0] == '.' || type_of_entry(dirfd(stream), entry) != DT_DIR)
			continue;
		below = join_scanned_path(scan, parent, entry->d_name);
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
	/*
	 * SECURITY: just finding that a directory does not exist takes milliseconds if its path
	 * consists of links.
	 */
	int rc = check_time(scan, path, err);

	if (rc == 0)
		rc = scan_one(scan, path, false, 0, err);
	return rc > 0 ? scan_hwcaps(scan, path, err) : rc;
}

int graft_ldcache_scan_finish(struct graft_ldcache_scan *scan, struct graft_error *err)
{
	struct graft_ldcache *found = &scan->found;
	const char **sorted = graft_arena_memdup(scan->arena, found->hwcaps, found->n_hwcaps * sizeof(*sorted));

	if (!sorted)
		return graft_fail_memory(err);
	if (found->n_hwcaps > 1)
		qsort(sorted, found->n_hwcaps, sizeof(*sorted), graft_compare_strings);
	for (size_t i = 0; i < found->n_records; i++) {
		struct graft_ldcache_record *record = &found->records[i];
		const char *const *place;

		if (record->hwcap == 0)
			continue;
		place = bsearch(&found->hwcaps[(uint32_t)record->hwcap], sorted, found->n_hwcaps, sizeof(*sorted),
				graft_compare_strings);
		record->hwcap = HWCAPS_BIT | (uint64_t)(place - sorted);
	}
	found->hwcaps = sorted;
	return 0;
}
