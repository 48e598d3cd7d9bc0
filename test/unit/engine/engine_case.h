/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_case: one configuration as a row of a table, with what has to be true of every row: configuring again changes nothing, and undoing gives the
 * bytes that were there. Include it behind cmocka.h.
 */
#ifndef GRAFT_TEST_ENGINE_CASE_H
#define GRAFT_TEST_ENGINE_CASE_H

#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "engine/engine.h"
#include "formats/json/json_document.h"
#include "formats/toml/toml.h"

struct engine_case {
	const char *what;
	const char *config, *drop_in, *source;            /* texts; NULL: no such file, the engine was not asked */
	const char *name, *path;                          /* of the runtime; NULL: nvidia, and the usual path */
	bool set_as_default, enable_cdi, deep, in_config; /* in_config: --drop-in-config= */
	const char *expected_config, *expected_drop_in;   /* what they must mean; NULL: no edit */
	const char *note;                                 /* a part of one; NULL: none is looked for */
	const char *missing;                              /* a part that none has */
	bool exactly;                                     /* the expected text, byte for byte */
	const char *config_path;                          /* NULL: the engine's */
	bool shared;                                      /* others need the import of the drop-in's directory */
};

static struct graft_engine_text text_of(const char *text)
{
	return (struct graft_engine_text){ text, text ? strlen(text) : 0 };
}

static struct graft_engine_request request_of(const struct graft_engine *engine, const struct engine_case *row)
{
	const char *drop_in = engine->drop_in_path && !row->in_config ? engine->drop_in_path : NULL;

	return (struct graft_engine_request){
		.runtime_name = row->name ? row->name : "nvidia",
		.runtime_path = row->path ? row->path : GRAFT_ENGINE_RUNTIME_PATH,
		.set_as_default = row->set_as_default,
		.enable_cdi = row->enable_cdi,
		.config = { .path = row->config_path ? row->config_path : engine->config_path,
			    .text = text_of(row->config) },
		.drop_in = { .path = drop_in, .text = text_of(row->drop_in) },
		.source_name = "the engine",
		.source = text_of(row->source),
		.merges_deeply = row->deep,
		.import_is_shared = row->shared,
	};
}

static const struct graft_engine_edit *edit_of(const struct graft_engine_changes *changes,
					       const struct graft_engine_file *file)
{
	for (size_t i = 0; i < changes->n_edits; i++) {
		if (changes->edits[i].file == file)
			return &changes->edits[i];
	}
	return NULL;
}

static struct graft_toml *parse_toml(const char *text, size_t length)
{
	struct graft_toml *toml = NULL;
	struct graft_error err = { 0 };

	if (graft_toml_parse("text", text, length, &toml, &err) < 0)
		fail_msg("%s\n%s", err.msg, text);
	return toml;
}

static void assert_meaning(const struct graft_engine_file *file, const char *text, size_t length, const char *expected)
{
	if (strstr(file->path, ".json")) {
		auto_json_document struct graft_json_document *a = NULL, *b = NULL;

		assert_int_equal(graft_json_document_parse("text", text, length, &a, NULL), 0);
		assert_int_equal(graft_json_document_parse("expected", expected, strlen(expected), &b, NULL), 0);
		if (!graft_json_node_is_same(graft_json_document_root(a), graft_json_document_root(b)))
			fail_msg("%s:\n%s\nexpected:\n%s", file->path, text, expected);
	} else {
		auto_toml struct graft_toml *a = parse_toml(text, length), *b = parse_toml(expected, strlen(expected));

		if (!graft_toml_is_same(a, b, NULL))
			fail_msg("%s:\n%s\nexpected:\n%s", file->path, text, expected);
	}
}

static void assert_edit(const struct graft_engine_changes *changes, const struct graft_engine_file *file,
			const char *expected, bool exactly)
{
	const struct graft_engine_edit *edit = file->path ? edit_of(changes, file) : NULL;

	if (!expected) {
		assert_null(edit);
		return;
	}
	assert_non_null(edit);
	assert_non_null(edit->text.bytes);
	assert_int_equal(strlen(edit->text.bytes), edit->text.length);
	if (exactly)
		assert_string_equal(edit->text.bytes, expected);
	else
		assert_meaning(file, edit->text.bytes, edit->text.length, expected);
}

static bool has_note(const struct graft_engine_changes *changes, const char *part)
{
	for (size_t i = 0; i < changes->n_notes; i++) {
		if (strstr(changes->notes[i].text, part))
			return true;
	}
	return false;
}

/* What the edits made is there now, and what was there is kept. */
static void take_over(const struct graft_engine_changes *changes, struct graft_engine_file *file)
{
	const struct graft_engine_edit *edit = edit_of(changes, file);

	if (!edit)
		return;
	file->backup = file->text;
	file->is_ours = !file->text.bytes;
	file->text = edit->text;
}

static void assert_undone(const struct graft_engine_changes *changes, const struct graft_engine_file *file)
{
	const struct graft_engine_edit *edit = edit_of(changes, file);

	if (!edit)
		return;
	if (!file->backup.bytes)
		assert_null(edit->text.bytes);
	else if (!edit->text.bytes || strcmp(edit->text.bytes, file->backup.bytes) != 0)
		fail_msg("%s: undone to:\n%s\nbut it was:\n%s", file->path, edit->text.bytes, file->backup.bytes);
}

static void assert_fine(int rc, const struct graft_error *err)
{
	char text[900];

	if (rc < 0)
		fail_msg("%s", graft_error_text(err, text, sizeof(text)));
}

static void check_case(const struct graft_engine *engine, const struct engine_case *row)
{
	struct graft_engine_request request = request_of(engine, row);
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_engine_changes changes, again, undone;
	struct graft_error err = { 0 };

	print_message("# %s: %s\n", engine->name, row->what);
	assert_fine(engine->configure(&request, arena, &changes, &err), &err);
	assert_edit(&changes, &request.config, row->expected_config, row->exactly);
	assert_edit(&changes, &request.drop_in, row->expected_drop_in, row->exactly);
	if (row->note && !has_note(&changes, row->note))
		fail_msg("no note says '%s'", row->note);
	if (row->missing && has_note(&changes, row->missing))
		fail_msg("a note says '%s'", row->missing);
	take_over(&changes, &request.config);
	take_over(&changes, &request.drop_in);
	assert_fine(engine->configure(&request, arena, &again, &err), &err);
	for (size_t i = 0; i < again.n_edits; i++)
		assert_false(graft_engine_edit_changes(&again.edits[i]));
	assert_fine(engine->undo(&request, arena, &undone, &err), &err);
	assert_undone(&undone, &request.config);
	assert_undone(&undone, &request.drop_in);
	for (size_t i = 0; i < changes.n_edits; i++)
		assert_true(edit_of(&undone, changes.edits[i].file) || !graft_engine_edit_changes(&changes.edits[i]));
	(void)graft_arena_free(arena);
}

/* A row that is refused, with a part of what is said. Nothing may come out. */
static void check_refusal(const struct graft_engine *engine, const struct engine_case *row, const char *message)
{
	struct graft_engine_request request = request_of(engine, row);
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_engine_changes changes;
	struct graft_error err = { 0 };
	char text[900];

	print_message("# %s: %s\n", engine->name, row->what);
	assert_int_equal(engine->configure(&request, arena, &changes, &err), -1);
	if (!strstr(graft_error_text(&err, text, sizeof(text)), message))
		fail_msg("'%s' does not say '%s'", text, message);
	(void)graft_arena_free(arena);
}

/* Configures and undoes with each allocation failing once. */
static void check_memory(const struct graft_engine *engine, const struct graft_engine_request *request)
{
	struct graft_engine_changes changes;

	assert_true(allocation_each(own, err, engine->configure(request, own, &changes, &err)) > 1);
	assert_true(allocation_each(own, err, engine->undo(request, own, &changes, &err)) > 1);
}

#endif
