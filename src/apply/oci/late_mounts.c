/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_mounts: decides for each file, from what will exist when the low-level runtime has created
 * the container. Opens nothing but the root.
 */
#include "apply/oci/late_mounts.h"

#include <string.h>

#include "apply/namespace/mount.h"
#include "apply/oci/oci_edits.h"
#include "apply/oci/plan_to_edits.h"
#include "base/cleanup.h"

#define REASONS_MAX 8u

/* What the low-level runtime mounts, and why. */
struct record {
	struct graft_arena *arena;
	size_t n_files, n_late;
	struct {
		const char *why, *paths;
	} reasons[REASONS_MAX];
	size_t n_reasons;
};

bool oci_can_mount_later(bool only_look)
{
	struct graft_mounter mounter;

	graft_mounter_probe(&mounter, -1);
	return graft_mounter_detaches(&mounter) || (only_look && mounter.refused);
}

/*
 * Returns why no file may wait, or NULL. By then, no mount point can be made in a read-only root,
 * and hooks of others may use the files.
 */
static const char *obstacle_of_mounts(const struct graft_oci_spec *spec, const struct graft_oci_options *options,
				      bool waits, const char *program, const struct graft_json_document *document)
{
	if (options->no_late_mounts)
		return "NVIDIA_LATE_MOUNTS of the container is false";
	if (!options->ret_waiting)
		return "nothing can be done between creation and start";
	if (!waits)
		return "something else needs a hook";
	if (!program)
		return "it is not known what will be started";
	if (spec->root_readonly)
		return "the root will be read-only";
	if (graft_oci_has_early_hooks(document))
		return "a hook may use them";
	return oci_can_mount_later(options->only_look) ? NULL : "this kernel cannot mount them later";
}

/* Whether the low-level runtime would make the edit's mount: both point to the plan's strings. */
static bool is_mount_of(const struct graft_cdi_mount *mount, const struct graft_edit *edit)
{
	return mount->host_path == edit->source && mount->container_path == edit->target;
}

static bool has_mount_of(const struct graft_cdi_edits *edits, const struct graft_edit *edit)
{
	for (size_t i = 0; i < edits->n_mounts; i++)
		if (is_mount_of(&edits->mounts[i], edit))
			return true;
	return false;
}

static void take_mount_out(const struct graft_edit *edit, struct graft_cdi_edits *edits)
{
	size_t n = 0;

	for (size_t i = 0; i < edits->n_mounts; i++)
		if (!is_mount_of(&edits->mounts[i], edit))
			edits->mounts[n++] = edits->mounts[i];
	edits->n_mounts = n;
}

/* If memory is exhausted, the arena records it. */
static void add_reason(struct record *record, const char *path, const char *why)
{
	size_t i = 0;

	while (i < record->n_reasons && strcmp(record->reasons[i].why, why) != 0)
		i++;
	if (i == REASONS_MAX)
		i--;
	if (i == record->n_reasons) {
		record->n_reasons++;
		record->reasons[i].why = why;
		record->reasons[i].paths = graft_arena_strdup(record->arena, path);
	} else {
		record->reasons[i].paths = graft_arena_printf(record->arena, "%s, %s", record->reasons[i].paths, path);
	}
}

/* "50 files; by the low-level runtime: /usr/bin/a, /usr/bin/b (REASON); /c (REASON)" */
static const char *record_text(const struct record *record)
{
	const char *text;

	if (record->n_late == record->n_files)
		return "all files";
	if (record->n_late == 0 && record->n_reasons == 1)
		return graft_arena_printf(record->arena, "no file: %s", record->reasons[0].why);
	text = graft_arena_printf(record->arena, "%zu files; by the low-level runtime:", record->n_late);
	for (size_t i = 0; text && i < record->n_reasons; i++)
		text = graft_arena_printf(record->arena, "%s%s %s (%s)", text, i > 0 ? ";" : "",
					  record->reasons[i].paths, record->reasons[i].why);
	return text;
}

static int record_in_annotation(const struct record *record, struct graft_json_document *document,
				struct graft_error *err)
{
	const char *text = graft_arena_failed(record->arena) ? NULL : record_text(record);
	struct graft_json_node *annotations, *value;

	if (!text)
		return graft_fail_memory(err);
	annotations = graft_json_make(document, "annotations", GRAFT_JSON_OBJECT, err);
	value = annotations ? graft_json_new_string(document, text, err) : NULL;
	return value ? graft_json_set_key(document, annotations, GRAFT_OCI_LATE_MOUNTS, value, err) : -1;
}

int oci_let_mounts_wait(const struct graft_plan *plan, const struct graft_oci_spec *spec,
			const struct graft_oci_options *options, struct graft_oci_root *root, bool waits,
			struct graft_json_document *document, struct graft_plan *later, struct graft_cdi_edits *edits,
			struct graft_error *err)
{
	const struct graft_json_node *args = graft_json_node_at(graft_json_document_root(document), "process.args");
	const char *program = graft_json_node_string(graft_json_node_first(args));
	const char *why_none = obstacle_of_mounts(spec, options, waits, program, document);
	bool has_program = !why_none && graft_oci_root_has_program(root, spec, program);
	struct record record = { .arena = root->arena };

	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		const char *why_not = why_none;

		if (edit->kind != GRAFT_EDIT_BIND || edit->type != GRAFT_SOURCE_FILE || !has_mount_of(edits, edit))
			continue;
		record.n_files++;
		if (!why_not)
			why_not = graft_oci_root_obstacle_later(root, spec, edit, program, has_program);
		if (why_not) {
			graft_debug(options->log, "mounted by the low-level runtime: %s: %s", edit->target, why_not);
			add_reason(&record, edit->target, why_not);
			continue;
		}
		graft_debug(options->log, "mounted when the container is created: %s", edit->target);
		record.n_late++;
		if (oci_add_rest(edit, root->arena, later) < 0)
			return graft_fail_memory(err);
		take_mount_out(edit, edits);
	}
	return record.n_files > 0 ? record_in_annotation(&record, document, err) : 0;
}
