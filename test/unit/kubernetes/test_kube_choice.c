/* SPDX-License-Identifier: Apache-2.0 */
/* Which config file a node gets: label, default, fallbacks, and every message. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "kubernetes/kube_choice.h"

static struct graft_arena *arena;
static char folder[64], empty[96];

static void touch(const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	(void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* As a mounted ConfigMap: files are links through "..data", and there is a folder. */
static int setup(void **state)
{
	arena = graft_arena_new((size_t)16 << 20);
	(void)snprintf(folder, sizeof(folder), "/tmp/graft-choice-XXXXXX");
	if (!arena || !mkdtemp(folder) || chdir(folder) < 0 || mkdir("..2026", 0700) < 0 || mkdir("folder", 0700) < 0 ||
	    mkdir("empty", 0700) < 0)
		return -1;
	(void)snprintf(empty, sizeof(empty), "%s/empty", folder);
	touch("..2026/shared");
	touch("..2026/default");
	touch("plain.yaml");
	return symlink("..2026", "..data") | symlink("..data/shared", "shared") | symlink("..data/default", "default") |
	       symlink("..data/none", "dangling");
}

static int teardown(void **state)
{
	char command[128];

	arena = graft_arena_free(arena);
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

/* The message, with FOLDER for the folder. */
static const char *without_folder(const char *message)
{
	static char text[512];
	const char *at = strstr(message, folder);

	if (!at)
		return message;
	(void)snprintf(text, sizeof(text), "%.*sFOLDER%s", (int)(at - message), message, at + strlen(folder));
	return text;
}

static void test_choices(void **state)
{
	static const struct {
		const char *value, *default_config, *fallbacks;
		const char *name; /* NULL: `message` */
		const char *message;
	} rows[] = {
		{ "shared", "", "", "shared", NULL },
		{ "shared", "plain.yaml", "named,empty", "shared", NULL },
		{ NULL, "plain.yaml", "named", "plain.yaml", NULL },
		{ "", "plain.yaml", "", "plain.yaml", NULL },
		{ NULL, "", "named", "default", NULL },
		{ NULL, "", "single,named", "default", NULL },
		{ NULL, "", " single, named ", "default", NULL },
		{ NULL, "", "single,,empty", "", NULL },
		{ NULL, "", "empty,named", "", NULL },
		{ "share", "plain.yaml", "empty", NULL,
		  "the node's label l names the config 'share', but FOLDER has no such file (did you mean 'shared'?); "
		  "it has: default, plain.yaml, shared" },
		{ "folder", "", "empty", NULL,
		  "the node's label l names the config 'folder', but FOLDER has no such file; it has: default, "
		  "plain.yaml, shared" },
		{ "dangling", "", "empty", NULL,
		  "the node's label l names the config 'dangling', but FOLDER has no such file; it has: default, "
		  "plain.yaml, shared" },
		{ "..data", "", "empty", NULL,
		  "the node's label l names the config '..data', but FOLDER has no such file; it has: default, "
		  "plain.yaml, shared" },
		{ "../x", "", "empty", NULL,
		  "the node's label l names the config '../x', but FOLDER has no such file; it has: default, "
		  "plain.yaml, shared" },
		{ NULL, "gone", "empty", NULL,
		  "the default names the config 'gone', but FOLDER has no such file; it has: default, plain.yaml, "
		  "shared" },
		{ NULL, "", "", NULL, "no config was set, no default was provided, and all fallbacks failed" },
		{ NULL, "", "single", NULL, "no config was set, no default was provided, and all fallbacks failed" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_kube_choice choice = { .label = "l",
							  .folder = folder,
							  .default_config = rows[i].default_config,
							  .fallbacks = rows[i].fallbacks };
		struct graft_error err = { .status = GRAFT_OK };
		char expected[256];
		const char *path;
		int rc = graft_kube_choose(&choice, rows[i].value, arena, &path, &err);

		if (!rows[i].name) {
			assert_int_equal(rc, -1);
			assert_string_equal(without_folder(err.msg), rows[i].message);
			continue;
		}
		assert_int_equal(rc, 0);
		(void)snprintf(expected, sizeof(expected), "%s/%s", folder, rows[i].name);
		assert_string_equal(path, rows[i].name[0] != '\0' ? expected : "");
	}
}

/* The only file, and none at all. */
static void test_few_files(void **state)
{
	struct graft_kube_choice choice = {
		.label = "l", .folder = empty, .default_config = "", .fallbacks = "single"
	};
	struct graft_error err;
	const char *path;

	assert_int_equal(graft_kube_choose(&choice, NULL, arena, &path, &err), -1);
	assert_int_equal(graft_kube_choose(&choice, "x", arena, &path, &err), -1);
	assert_string_printed(err.msg, "the node's label l names the config 'x', but %s has no such file; it has: none",
			      empty);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	touch("empty/only");
	assert_int_equal(graft_kube_choose(&choice, NULL, arena, &path, &err), 0);
	assert_string_printed(path, "%s/only", empty);

	choice.folder = "/nowhere/at/all";
	assert_int_equal(graft_kube_choose(&choice, "x", arena, &path, &err), -1);
	assert_string_equal(err.msg, "cannot list the config files in /nowhere/at/all");
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_few_files),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
