/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldsoconf: the lines of /etc/ld.so.conf as ldconfig reads them, with includes expanded in place.
 * Reads below a root only. The files are untrusted (an image's): their number, size and depth are
 * limited.
 */
#include "formats/loader/ldsoconf.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/path.h"
#include "base/strings.h"

/*
 * SECURITY: limits of a read, for all files together. Repeating a line costs an image nothing, but
 * each one may make us read a directory or a megabyte. Distributions have a dozen files of one
 * line.
 */
#define FILES_MAX       64
#define BYTES_MAX       ((size_t)1024 * 1024)
#define DEPTH_MAX       16
#define DIRS_MAX        4096
#define PATTERNS_MAX    64
#define DIR_ENTRIES_MAX 16384 /* in all directories that patterns were matched in */
#define BLANKS          " \t\r\v\f"

/*
 * What ldconfig searches after the configured directories (SPEC ld-so-cache 8). musl and others
 * have no such list.
 */
static const char *const system_dirs[] = { "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/libx32", "/usr/libx32" };

/*
 * How the files of a root are read. SECURITY: an image's are not read like the host's, so the kind
 * of a root comes with its functions, and not from a pointer that may be missing. Programs that
 * read the host alone are thus not linked to what reads an image.
 */
struct source {
	const void *root;
	int (*read)(const void *root, const char *path, size_t max, struct graft_arena *arena, const char **ret_text,
		    size_t *ret_length);
	int (*list)(const void *root, const char *dir, size_t max, struct graft_arena *arena, const char ***ret_names,
		    size_t *ret_n, bool *ret_more);
};

static int read_conf_of_host(const void *root, const char *path, size_t max, struct graft_arena *arena,
			     const char **ret_text, size_t *ret_length)
{
	return graft_root_read(root, path, max, arena, ret_text, ret_length);
}

static int list_confs_of_host(const void *root, const char *dir, size_t max, struct graft_arena *arena,
			      const char ***ret_names, size_t *ret_n, bool *ret_more)
{
	return graft_root_list(root, dir, max, arena, ret_names, ret_n, ret_more);
}

static int read_conf_of_image(const void *image, const char *path, size_t max, struct graft_arena *arena,
			      const char **ret_text, size_t *ret_length)
{
	const struct graft_image_root *root = image;
	struct graft_image_kept *kept = root->kept;
	struct graft_image_file *file;
	int rc;

	for (size_t i = 0; kept && i < kept->n_files; i++) {
		file = &kept->files[i];
		if (file->length > max || strcmp(file->path, path) != 0)
			continue;
		*ret_text = file->text;
		*ret_length = file->length;
		return 0;
	}
	rc = graft_image_root_read(root, path, max, kept ? kept->arena : arena, ret_text, ret_length);
	path = rc == 0 && kept ? graft_arena_strdup(kept->arena, path) : NULL;
	file = path ? graft_arena_push(kept->arena, &kept->files, &kept->n_files, sizeof(*file)) : NULL;
	if (file)
		*file = (struct graft_image_file){ path, *ret_text, *ret_length };
	return rc;
}

static int list_confs_of_image(const void *root, const char *dir, size_t max, struct graft_arena *arena,
			       const char ***ret_names, size_t *ret_n, bool *ret_more)
{
	return graft_image_root_list(root, dir, max, arena, ret_names, ret_n, ret_more);
}

struct reader {
	struct source source;
	struct graft_arena *arena;
	struct graft_ldsoconf conf;
	const char *own_text;
	size_t n_bytes, n_entries;
	unsigned int n_files, n_patterns, depth;
	bool apart;
	struct graft_error *err;
};

static int read_bytes(const struct reader *reader, const char *path, size_t max, const char **ret_text,
		      size_t *ret_length)
{
	return reader->source.read(reader->source.root, path, max, reader->arena, ret_text, ret_length);
}

static int list_conf_names(const struct reader *reader, const char *dir, size_t max, const char ***ret_names,
			   size_t *ret_n, bool *ret_more)
{
	return reader->source.list(reader->source.root, dir, max, reader->arena, ret_names, ret_n, ret_more);
}

static int fail_conf_time(const struct reader *reader, const char *path)
{
	return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "reading the loader's configuration takes too long: %s", path);
}

static int read_conf_file(struct reader *reader, const char *path);

static int add_dir(struct reader *reader, const char *path, const char *line, size_t length)
{
	bool added = reader->apart && strcmp(graft_path_name(path), GRAFT_LDSOCONF_OWN_NAME) == 0;
	struct graft_ldsoconf *conf = &reader->conf;
	const char ***dirs = added ? &conf->added : &conf->dirs;
	size_t *n_dirs = added ? &conf->n_added : &conf->n_dirs;
	char *dir;

	/* "dir=TYPE" is from libc5; the part after the sign was never part of the name. */
	for (size_t i = 0; i < length; i++) {
		if (line[i] == '=')
			length = i;
	}
	while (length > 1 && (line[length - 1] == '/' || strchr(BLANKS, line[length - 1])))
		length--;
	if (length == 0 || line[0] != '/')
		return 0; /* ldconfig ignores relative ones, with a warning */
	if (conf->n_dirs + conf->n_added == DIRS_MAX)
		return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "more than %d directories in /etc/ld.so.conf",
				  DIRS_MAX);
	dir = graft_arena_strndup(reader->arena, line, length);
	if (!dir || !graft_arena_push_string(reader->arena, dirs, n_dirs, dir))
		return graft_fail_memory(reader->err);
	return 0;
}

/* Acts as if Graft's own file already were in its directory. */
static int add_own_name(const struct reader *reader, const char *dir, const char ***names, size_t *n)
{
	if (!reader->own_text || strcmp(dir, GRAFT_LDSOCONF_OWN_DIR) != 0)
		return 0;
	for (size_t i = 0; i < *n; i++)
		if (strcmp((*names)[i], GRAFT_LDSOCONF_OWN_NAME) == 0)
			return 0;
	if (!graft_arena_push_string(reader->arena, names, n, GRAFT_LDSOCONF_OWN_NAME))
		return graft_fail_memory(reader->err);
	qsort(*names, *n, sizeof(**names), graft_compare_strings);
	return 0;
}

/*
 * Reads every file of `dir` whose name matches, in byte order (ldconfig sorts in the C collation).
 */
static int read_matching(struct reader *reader, const char *dir, const char *pattern)
{
	const char **names;
	size_t n_names;
	bool more;
	int rc;

	/*
	 * SECURITY: one line can contain thousands of patterns, each of which costs reading a
	 * directory.
	 */
	if (++reader->n_patterns > PATTERNS_MAX)
		return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "too many included files: %s/%s", dir, pattern);
	rc = list_conf_names(reader, dir, DIR_ENTRIES_MAX - reader->n_entries, &names, &n_names, &more);
	if (rc == -ENOMEM)
		return graft_fail_memory(reader->err);
	if (rc == -ETIME)
		return fail_conf_time(reader, dir);
	if (rc < 0) {
		n_names = 0;
		more = false;
	}
	if (more)
		return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "too many files: %s", dir);
	reader->n_entries += n_names;
	if (add_own_name(reader, dir, &names, &n_names) < 0)
		return -1;
	for (size_t i = 0; i < n_names; i++) {
		const char *path;

		if (fnmatch(pattern, names[i], FNM_PERIOD) != 0)
			continue;
		path = graft_arena_join(reader->arena, dir, strlen(dir), names[i]);
		if (!path)
			return graft_fail_memory(reader->err);
		if (read_conf_file(reader, path) < 0)
			return -1;
	}
	return 0;
}

/*
 * Handles one argument of "include": a path or a pattern. Wildcards are only honoured in the last
 * component.
 */
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
		return read_conf_file(reader, path);
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

static int read_conf_line(struct reader *reader, const char *path, const char *line, size_t length)
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
	/* A NUL would truncate the strings made from the lines. */
	const char *end = memchr(text, '\0', length);

	if (end)
		length = (size_t)(end - text);
	while (length > 0) {
		const char *newline = memchr(text, '\n', length);
		size_t line = newline ? (size_t)(newline - text) : length;

		if (read_conf_line(reader, path, text, line) < 0)
			return -1;
		line += newline ? 1 : 0;
		text += line;
		length -= line;
	}
	return 0;
}

/* A file that is missing, not regular or not readable is treated as empty, as by ldconfig. */
static int read_conf_file(struct reader *reader, const char *path)
{
	const char *text;
	size_t length;
	int rc;

	if (++reader->n_files > FILES_MAX || reader->depth == DEPTH_MAX)
		return graft_fail(reader->err, GRAFT_TOO_BIG, 0, "too many included files: %s", path);
	if (strcmp(path, GRAFT_LDSOCONF_OWN) == 0) {
		reader->conf.reads_own = true;
		if (reader->own_text)
			return read_lines(reader, path, reader->own_text, strlen(reader->own_text));
	}
	rc = read_bytes(reader, path, BYTES_MAX - reader->n_bytes, &text, &length);
	if (rc == -ENOMEM)
		return graft_fail_memory(reader->err);
	if (rc == -ETIME)
		return fail_conf_time(reader, path);
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

static int read_conf_tree(struct reader *reader)
{
	if (read_conf_file(reader, "/etc/ld.so.conf") < 0)
		return -1;
	for (size_t i = 0; i < GRAFT_COUNT(system_dirs); i++) {
		if (!graft_arena_push_string(reader->arena, &reader->conf.dirs, &reader->conf.n_dirs, system_dirs[i]))
			return graft_fail_memory(reader->err);
	}
	return 0;
}

int graft_ldsoconf_read(const struct graft_root *root, struct graft_arena *arena, const char ***ret_dirs, size_t *ret_n,
			struct graft_error *err)
{
	struct reader reader = { .source = { root, read_conf_of_host, list_confs_of_host },
				 .arena = arena,
				 .err = err };

	if (read_conf_tree(&reader) < 0)
		return -1;
	*ret_dirs = reader.conf.dirs;
	*ret_n = reader.conf.n_dirs;
	return 0;
}

int graft_ldsoconf_read_image(const struct graft_image_root *root, bool apart, const char *own_text,
			      struct graft_arena *arena, struct graft_ldsoconf *ret_conf, struct graft_error *err)
{
	struct reader reader = { .source = { root, read_conf_of_image, list_confs_of_image },
				 .arena = arena,
				 .apart = apart,
				 .own_text = own_text,
				 .err = err };

	int rc = read_conf_tree(&reader);

	*ret_conf = reader.conf;
	return rc;
}

bool graft_ldsoconf_is_built_in(const char *directory)
{
	return graft_is_in(system_dirs, GRAFT_COUNT(system_dirs), directory);
}
