/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_tool: the loader cache code alone, for tests that compare it with glibc.
 *
 *	ldcache_tool rewrite IN OUT                             reads a cache and writes it again
 *	ldcache_tool state ROOT                                 prints "merge" or "rebuild"
 *	ldcache_tool refresh ROOT STATE [-m DIR] [NAME=PATH]... makes the loader of a root find libraries; STATE: merge, rebuild, auto;
 *	                                                        -m: a directory that the root's configuration does not search
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "apply/loader/ldcache_refresh.h"
#include "base/cleanup.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"

static int complain(const struct graft_error *err)
{
	char text[1024];

	(void)fprintf(stderr, "ldcache_tool: %s\n", graft_error_text(err, text, sizeof(text)));
	return 1;
}

static void print_log(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)arg;
	(void)level;
	(void)file;
	(void)line;
	(void)fprintf(stderr, "%s\n", message);
}

static int rewrite(const char *in, const char *out)
{
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	struct graft_buffer buffer = { 0 };
	struct graft_ldcache cache;
	struct graft_error err = { 0 };
	const char *bytes;
	size_t length;
	auto_close int in_fd = open(in, O_RDONLY | O_CLOEXEC);
	auto_close int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (!arena || graft_read_fd(in_fd, (size_t)16 << 20, arena, &bytes, &length) < 0)
		return 2;
	if (graft_ldcache_read(bytes, length, in, arena, &cache, &err) < 0 ||
	    graft_ldcache_write(&cache, &buffer, &err) < 0)
		return complain(&err);
	if (write(out_fd, buffer.bytes, buffer.length) != (ssize_t)buffer.length)
		return 2;
	graft_buffer_done(&buffer);
	graft_arena_free(arena);
	return 0;
}

/* The directory of a path, once. */
static void add_folder(struct graft_arena *arena, struct graft_edit *edit, const char *path)
{
	const char *folder = graft_arena_strndup(arena, path, (size_t)(strrchr(path, '/') - path));

	for (size_t i = 0; i < edit->n_folders; i++)
		if (strcmp(edit->folders[i], folder) == 0)
			return;
	(void)graft_arena_push_string(arena, &edit->folders, &edit->n_folders, folder);
}

static void read_arguments(struct graft_arena *arena, char **args, struct graft_edit *edit)
{
	for (; *args; args++) {
		const char *equals = strchr(*args, '=');
		struct graft_ldcache_entry *entry;

		if (strcmp(*args, "-m") == 0 && args[1]) {
			(void)graft_arena_push_string(arena, &edit->missing_folders, &edit->n_missing_folders, *++args);
			continue;
		}
		entry = equals ? graft_arena_push(arena, &edit->entries, &edit->n_entries, sizeof(*entry)) : NULL;
		if (!entry)
			continue;
		entry->soname = graft_arena_strndup(arena, *args, (size_t)(equals - *args));
		entry->path = graft_arena_strdup(arena, equals + 1);
		entry->abi_flags = graft_abi_flags_native();
		add_folder(arena, edit, entry->path);
	}
}

static double now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int refresh(const struct graft_image_root *root, const char *word, char **args)
{
	const struct graft_log log = { .write = print_log, .max = GRAFT_LOG_INFO };
	struct graft_arena *arena = graft_arena_new((size_t)48 << 20);
	struct graft_journal *journal = graft_journal_new(&log);
	struct graft_edit edit = { .kind = GRAFT_EDIT_LDCACHE };
	struct graft_error err = { 0 };
	enum graft_ldcache_state state = strcmp(word, "merge") == 0 ? GRAFT_LDCACHE_MERGE : GRAFT_LDCACHE_REBUILD;
	struct graft_loader_work work = { .cache = NULL };
	struct graft_loader_additions additions;
	double start = now_ms(), middle;
	struct rusage usage;

	read_arguments(arena, args, &edit);
	if (strcmp(word, "auto") == 0)
		state = graft_ldcache_state(root, &log);
	middle = now_ms();
	additions = graft_ldcache_additions(&edit);
	if ((!edit.musl_path_file &&
	     graft_loader_cache_read(root, &additions, state, false, &log, arena, &work, &err) < 0) ||
	    graft_ldcache_refresh(root, &edit, &work, journal, &log, &err) < 0) {
		graft_journal_undo(journal, NULL);
		return complain(&err);
	}
	(void)getrusage(RUSAGE_SELF, &usage);
	(void)printf("state %.3f ms, refresh %.3f ms, peak %ld KiB\n", middle - start, now_ms() - middle,
		     usage.ru_maxrss);
	graft_journal_free(journal);
	graft_arena_free(arena);
	return 0;
}

int main(int argc, char **argv)
{
	struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_budget *budget;
	struct graft_error err = { 0 };
	int rc;

	if (argc == 4 && strcmp(argv[1], "rewrite") == 0)
		return rewrite(argv[2], argv[3]);
	if (argc < 3)
		return 64;
	budget = graft_budget_new(GRAFT_BUDGET_CPU_MS);
	graft_image_root_take(&root, open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC), budget);
	if (root.fd < 0 || !budget) {
		(void)graft_fail_errno(&err, errno, "open failed: %s", argv[2]);
		return complain(&err);
	}
	if (strcmp(argv[1], "state") == 0) {
		rc = puts(graft_ldcache_state(&root, NULL) == GRAFT_LDCACHE_MERGE ? "merge" : "rebuild") < 0;
	} else
		rc = argc > 3 ? refresh(&root, argv[3], argv + 4) : 64;
	graft_image_root_close(&root);
	graft_budget_free(budget);
	return rc;
}
