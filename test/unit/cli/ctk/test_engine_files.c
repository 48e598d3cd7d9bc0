/* SPDX-License-Identifier: Apache-2.0 */
/* Several files of an engine: read with their backups, replaced all together or not at all. */
#include <stdio.h>
#include <stdlib.h>

#include "../../allocation.h"
#include "../../apply/replaced_files.h"
#include "../../unit.h"
#include "cli/ctk/engine_files.h"

struct place {
	char directory[32], config[64], drop_in[64], backup[64], drop_in_backup[64];
	struct graft_arena *arena;
	struct graft_engine_file files[2];
};

static int open_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	char path[64];

	assert_non_null(place);
	(void)snprintf(place->directory, sizeof(place->directory), "/tmp/graft-test-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	(void)snprintf(path, sizeof(path), "%s/conf.d", place->directory);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(place->config, sizeof(place->config), "%s/config.toml", place->directory);
	(void)snprintf(place->drop_in, sizeof(place->drop_in), "%s/conf.d/99.toml", place->directory);
	(void)snprintf(place->backup, sizeof(place->backup), "%s/config.toml.nvidia-ctk.bak", place->directory);
	(void)snprintf(place->drop_in_backup, sizeof(place->drop_in_backup), "%s/99.toml.nvidia-ctk.bak",
		       place->directory);
	place->arena = graft_arena_new((size_t)1 << 20);
	assert_non_null(place->arena);
	*state = place;
	return 0;
}

static int close_place(void **state)
{
	struct place *place = *state;

	(void)graft_arena_free(place->arena);
	assert_int_equal(test_remove_folder(place->directory), 0);
	free(place);
	return 0;
}

static void read_both(struct place *place)
{
	assert_int_equal(
	    ctk_engine_file_read(&place->files[0], place->drop_in, CTK_FILE_IN_DROP_INS, false, place->arena, NULL), 0);
	assert_int_equal(
	    ctk_engine_file_read(&place->files[1], place->config, CTK_FILE_ALONE, false, place->arena, NULL), 0);
}

/* Both files get these texts; NULL: the file is removed. */
static int save_both(struct place *place, const char *drop_in, const char *config, bool keep, struct graft_error *err)
{
	const struct graft_engine_edit edits[] = {
		{ .file = &place->files[0], .text = { drop_in, drop_in ? strlen(drop_in) : 0 } },
		{ .file = &place->files[1], .text = { config, config ? strlen(config) : 0 } },
	};
	const struct ctk_engine_save saves[] = {
		{ .edit = &edits[0], .place = CTK_FILE_IN_DROP_INS, .keep = keep, .drop = !keep },
		{ .edit = &edits[1], .place = CTK_FILE_ALONE, .keep = keep, .drop = !keep },
	};

	return ctk_engine_files_save(saves, 2, place->arena, err);
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void test_backup_paths(void **state)
{
	static const struct {
		const char *path;
		enum ctk_file_place place;
		const char *backup;
	} rows[] = {
		{ "/etc/docker/daemon.json", CTK_FILE_ALONE, "/etc/docker/daemon.json.nvidia-ctk.bak" },
		{ "x.toml", CTK_FILE_ALONE, "x.toml.nvidia-ctk.bak" },
		{ "/etc/crio/crio.conf.d/99.toml", CTK_FILE_IN_DROP_INS, "/etc/crio/99.toml.nvidia-ctk.bak" },
		{ "/etc/crio/crio.conf.d//99.toml", CTK_FILE_IN_DROP_INS, "/etc/crio/99.toml.nvidia-ctk.bak" },
		{ "/conf.d/99.toml", CTK_FILE_IN_DROP_INS, "/99.toml.nvidia-ctk.bak" },
		{ "/99.toml", CTK_FILE_IN_DROP_INS, "/99.toml.nvidia-ctk.bak" },
	};
	struct place *place = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		assert_string_equal(ctk_backup_path(rows[i].path, rows[i].place, place->arena), rows[i].backup);
}

static void test_kept_and_put_back(void **state)
{
	struct place *place = *state;

	test_put_bytes(AT_FDCWD, place->config, "old", 3);
	assert_int_equal(chmod(place->config, 0600), 0);
	read_both(place);
	assert_null(place->files[0].text.bytes);
	assert_string_equal(place->files[1].text.bytes, "old");
	assert_false(place->files[0].is_ours);
	assert_int_equal(save_both(place, "drop", "new", true, NULL), 0);
	assert_content(place->drop_in, "drop");
	assert_content(place->config, "new");
	assert_content(place->backup, "old");
	assert_int_equal(stat_of(place->backup).st_mode & 07777, 0600);
	assert_int_equal(stat_of(place->drop_in).st_mode & 07777, 0644);
	read_both(place);
	assert_null(place->files[0].backup.bytes);
	assert_true(place->files[0].is_ours);
	assert_string_equal(place->files[1].backup.bytes, "old");
	assert_false(place->files[1].is_ours);
	assert_int_equal(save_both(place, NULL, "old", false, NULL), 0);
	assert_content(place->config, "old");
	assert_false(exists(place->drop_in) || exists(place->backup) || exists(place->drop_in_backup));
}

/* The second one cannot be written: it is a directory by now. */
static void test_half_of_it_is_none(void **state)
{
	struct place *place = *state;
	struct graft_error err = { 0 };
	char text[800];

	for (int i = 0; i < 2; i++) {
		if (i == 1)
			test_put_bytes(AT_FDCWD, place->drop_in, "drop", 4);
		read_both(place);
		assert_int_equal(mkdir(place->config, 0755), 0);
		assert_int_equal(save_both(place, "new", "new", true, &err), -1);
		assert_string_printed(graft_error_text(&err, text, sizeof(text)), "cannot write %s: is a directory",
				      place->config);
		assert_int_equal(exists(place->drop_in), i == 1);
		if (i == 1)
			assert_content(place->drop_in, "drop");
		assert_false(exists(place->backup) || exists(place->drop_in_backup));
		assert_int_equal(rmdir(place->config), 0);
	}
}

static void test_what_is_the_same_is_not_written(void **state)
{
	struct place *place = *state;
	struct stat before;

	test_put_bytes(AT_FDCWD, place->config, "same", 4);
	before = stat_of(place->config);
	read_both(place);
	assert_int_equal(save_both(place, NULL, "same", true, NULL), 0);
	assert_int_equal(stat_of(place->config).st_ino, before.st_ino);
	assert_false(exists(place->drop_in) || exists(place->backup) || exists(place->drop_in_backup));
}

static void test_files_that_cannot_be_read(void **state)
{
	struct place *place = *state;
	struct graft_engine_file file;
	struct graft_error err = { 0 };
	char text[800];

	assert_int_equal(ctk_engine_file_read(&file, place->directory, CTK_FILE_ALONE, false, place->arena, &err), -1);
	assert_string_printed(graft_error_text(&err, text, sizeof(text)),
			      "unable to read config: cannot read %s: it is not a regular file", place->directory);
	assert_int_equal(mkdir(place->backup, 0755), 0);
	assert_int_equal(ctk_engine_file_read(&file, place->config, CTK_FILE_ALONE, false, place->arena, &err), -1);
	assert_int_equal(ctk_engine_file_read(&file, NULL, CTK_FILE_ALONE, false, place->arena, &err), 0);
	assert_null(file.path);
}

static void test_neighbours(void **state)
{
	struct place *place = *state;
	char path[64];

	assert_false(ctk_engine_has_neighbours(place->drop_in, ".toml"));
	test_put_bytes(AT_FDCWD, place->drop_in, "", 0);
	(void)snprintf(path, sizeof(path), "%s/conf.d/.x.toml", place->directory);
	test_put_bytes(AT_FDCWD, path, "", 0);
	(void)snprintf(path, sizeof(path), "%s/conf.d/x.tom", place->directory);
	test_put_bytes(AT_FDCWD, path, "", 0);
	assert_false(ctk_engine_has_neighbours(place->drop_in, ".toml"));
	(void)snprintf(path, sizeof(path), "%s/conf.d/x.toml", place->directory);
	test_put_bytes(AT_FDCWD, path, "", 0);
	assert_true(ctk_engine_has_neighbours(place->drop_in, ".toml"));
	assert_false(ctk_engine_has_neighbours("/nowhere/x.toml", ".toml"));
}

static void test_memory(void **state)
{
	struct place *place = *state;
	struct graft_arena *arena = place->arena;

	test_put_bytes(AT_FDCWD, place->config, "old", 3);
	read_both(place);
	for (int n = 1;; n++) {
		struct graft_error err = { 0 };
		int rc;

		place->arena = graft_arena_new((size_t)1 << 20);
		allocation_fail(n);
		rc = save_both(place, "drop", "new", true, &err);
		place->arena = (graft_arena_free(place->arena), arena);
		if (!allocation_reported(rc, &err)) {
			assert_true(n > 1);
			return;
		}
		assert_content(place->config, "old");
		assert_false(exists(place->drop_in) || exists(place->backup) || exists(place->drop_in_backup));
	}
}

#define AT_PLACE(test) cmocka_unit_test_setup_teardown(test, open_place, close_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AT_PLACE(test_backup_paths),
		AT_PLACE(test_kept_and_put_back),
		AT_PLACE(test_half_of_it_is_none),
		AT_PLACE(test_what_is_the_same_is_not_written),
		AT_PLACE(test_files_that_cannot_be_read),
		AT_PLACE(test_neighbours),
		AT_PLACE(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
