/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldsoconf: the lines of /etc/ld.so.conf as ldconfig reads them, includes expanded in place. Reads below a root only;
 * the files are untrusted (an image's): number, size and depth are bounded.
 */
#include "formats/ldsoconf.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/path.h"

/*
 * SECURITY: limits of one reading, all files together: a line costs an image nothing to repeat, and may read a directory or a megabyte each
 * time. Distributions have a dozen files of one line.
 */
#define FILES_MAX       64
#define BYTES_MAX       ((size_t)1024 * 1024)
#define DEPTH_MAX       16
#define DIRS_MAX        4096
#define PATTERNS_MAX    64
#define DIR_ENTRIES_MAX 16384 /* of all directories that patterns were matched in */
#define BLANKS          " \t\r\v\f"

/* What ldconfig adds behind the configured directories (SPEC ld-so-cache 8); musl and others have none of it. */
static const char *const system_dirs[] = { "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/libx32", "/usr/libx32" };

struct reader {
	const struct graft_root *root;
	struct graft_arena *arena;
	const char **dirs;
	const char **added; /* those of Graft's own file, where they are wanted apart */
	size_t n_dirs, n_added, n_bytes, n_entries;
	unsigned int n_files, n_patterns, depth;
	bool apart;
	struct graft_error *err;
};

static int read_file(struct reader *reader, const char *path);

static int add_dir(struct reader *reader, const char *path, const char *line, size_t length)
{
	bool added = reader->apart && strcmp(graft_path_name(path), GRAFT_LDSOCONF_OWN_NAME) == 0;
	const char ***dirs = added ? &reader->added : &reader->dirs;
	size_t *n_dirs = added ? &reader->n_added : &reader->n_dirs;
	char *dir;

	/* "dir=TYPE" is libc5's; what stands behind the sign never was a part of the name. */
	for (size_t i = 0; i < length; i++) {
		if (line[i] == '=')
			length = i;
	}
	while (length > 1 && (line[length - 1] == '/' || strchr(BLANKS, line[length - 1])))
		length--;
	if (length == 0 || line[0] != '/')
		return 0; /* ldconfig ignores relative ones with a warning */
	if (reader->n_dirs + reader->n_added == DIRS_MAX)
		return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "more than %d directories in /etc/ld.so.conf",
				  DIRS_MAX);
	dir = graft_arena_strndup(reader->arena, line, length);
	if (!dir || !graft_arena_push_string(reader->arena, dirs, n_dirs, dir))
		return graft_fail_memory(reader->err);
	return 0;
}

/* Reads every file of `dir` whose name matches, in byte order (ldconfig sorts in the C collation). */
static int read_matching(struct reader *reader, const char *dir, const char *pattern)
{
	const char **names;
	size_t n_names;
	bool more;
	int rc;

	/* SECURITY: one line can hold thousands of patterns, each of which costs the reading of a directory. */
	if (++reader->n_patterns > PATTERNS_MAX)
		return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "too many included files: %s/%s", dir, pattern);
	rc = graft_root_list(reader->root, dir, DIR_ENTRIES_MAX - reader->n_entries, reader->arena, &names, &n_names,
			     &more);
	if (rc == -ENOMEM)
		return graft_fail_memory(reader->err);
	if (rc < 0)
		return 0;
	if (more)
		return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "too many files: %s", dir);
	reader->n_entries += n_names;
	for (size_t i = 0; i < n_names; i++) {
		const char *path;

		if (fnmatch(pattern, names[i], FNM_PERIOD) != 0)
			continue;
		path = graft_arena_join(reader->arena, dir, strlen(dir), names[i]);
		if (!path)
			return graft_fail_memory(reader->err);
		if (read_file(reader, path) < 0)
			return -1;
	}
	return 0;
}

/* One word behind "include": a path or a pattern; wildcards are honoured in the last component. */
static int include(struct reader *reader, const char *from, const char *word, size_t length)
{
	const char *slash = strrchr(from, '/');
	const char *path, *name;
	char *dir;

	if (length >= PATH_MAX)
		return 0;
	path = word[0] == '/'
		   ? graft_arena_strndup(reader->arena, word, length)
		   : graft_arena_printf(reader->arena, "%.*s/%.*s", (int)(slash - from), from, (int)length, word);
	if (!path)
		return graft_fail_memory(reader->err);
	name = strrchr(path, '/') + 1;
	if (!strpbrk(name, "*?["))
		return read_file(reader, path);
	dir = graft_arena_strndup(reader->arena, path, name - path > 1 ? (size_t)(name - path - 1) : 1);
	if (!dir)
		return graft_fail_memory(reader->err);
	return read_matching(reader, dir, name);
}

static int include_all(struct reader *reader, const char *from, const char *line, size_t length)
{
	size_t at = 0;

	while (at < length) {
		size_t blanks = strspn(line + at, BLANKS);
		size_t word;

		at += blanks;
		if (at >= length)
			break;
		word = strcspn(line + at, BLANKS "\n#");
		if (word > length - at)
			word = length - at;
		if (word > 0 && include(reader, from, line + at, word) < 0)
			return -1;
		at += word > 0 ? word : 1;
	}
	return 0;
}

static bool begins_with_word(const char *line, size_t length, const char *word)
{
	size_t n = strlen(word);

	return length > n && strncmp(line, word, n) == 0 && strchr(BLANKS, line[n]);
}

static int read_line(struct reader *reader, const char *path, const char *line, size_t length)
{
	const char *comment = memchr(line, '#', length);

	if (comment)
		length = (size_t)(comment - line);
	while (length > 0 && strchr(BLANKS, line[0])) {
		line++;
		length--;
	}
	while (length > 0 && strchr(BLANKS, line[length - 1]))
		length--;
	if (length == 0 || begins_with_word(line, length, "hwcap"))
		return 0;
	if (begins_with_word(line, length, "include"))
		return include_all(reader, path, line + strlen("include"), length - strlen("include"));
	return add_dir(reader, path, line, length);
}

static int read_lines(struct reader *reader, const char *path, const char *text, size_t length)
{
	/* A NUL would end the strings that the lines become. */
	const char *end = memchr(text, '\0', length);

	if (end)
		length = (size_t)(end - text);
	while (length > 0) {
		const char *newline = memchr(text, '\n', length);
		size_t line = newline ? (size_t)(newline - text) : length;

		if (read_line(reader, path, text, line) < 0)
			return -1;
		line += newline ? 1 : 0;
		text += line;
		length -= line;
	}
	return 0;
}

/* A file that is not there, not regular or not readable counts as empty, as for ldconfig. */
static int read_file(struct reader *reader, const char *path)
{
	const char *text;
	size_t length;
	int rc;

	if (++reader->n_files > FILES_MAX || reader->depth == DEPTH_MAX)
		return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "too many included files: %s", path);
	rc = graft_root_read(reader->root, path, BYTES_MAX - reader->n_bytes, reader->arena, &text, &length);
	if (rc == -ENOMEM)
		return graft_fail_memory(reader->err);
	if (rc == -EFBIG)
		return graft_fail(reader->err, GRAFT_TOO_BIG, EFBIG, "file read error: %s", path);
	if (rc < 0)
		return 0;
	reader->n_bytes += length;
	reader->depth++;
	rc = read_lines(reader, path, text, length);
	reader->depth--;
	return rc;
}

static int read_all(struct reader *reader)
{
	if (read_file(reader, "/etc/ld.so.conf") < 0)
		return -1;
	for (size_t i = 0; i < GRAFT_COUNT(system_dirs); i++) {
		if (!graft_arena_push_string(reader->arena, &reader->dirs, &reader->n_dirs, system_dirs[i]))
			return graft_fail_memory(reader->err);
	}
	return 0;
}

int graft_ldsoconf_read(const struct graft_root *root, struct graft_arena *arena, const char ***ret_dirs, size_t *ret_n,
			struct graft_error *err)
{
	struct reader reader = { .root = root, .arena = arena, .err = err };

	if (read_all(&reader) < 0)
		return -1;
	*ret_dirs = reader.dirs;
	*ret_n = reader.n_dirs;
	return 0;
}

int graft_ldsoconf_read_apart(const struct graft_root *root, struct graft_arena *arena, const char ***ret_dirs,
			      size_t *ret_n, const char ***ret_added, size_t *ret_n_added, struct graft_error *err)
{
	struct reader reader = { .root = root, .arena = arena, .apart = true, .err = err };

	if (read_all(&reader) < 0)
		return -1;
	*ret_added = reader.added;
	*ret_n_added = reader.n_added;
	*ret_dirs = reader.dirs;
	*ret_n = reader.n_dirs;
	return 0;
}

bool graft_ldsoconf_is_built_in(const char *directory)
{
	for (size_t i = 0; i < GRAFT_COUNT(system_dirs); i++) {
		if (strcmp(system_dirs[i], directory) == 0)
			return true;
	}
	return false;
}
