/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_cdi: the CDI specs of the host: which can be read, which devices they have, and whether
 * everything in them still exists. Only the first reason for a stale spec is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/look.h"
#include "host/cdi_registry.h"

static void add_cdi_problem(struct graft_health_look *look, const char *path, const char *why)
{
	struct graft_health_cdi *cdi = &look->health->cdi;
	struct graft_health_file *file = graft_arena_push(look->arena, &cdi->problems, &cdi->n_problems, sizeof(*file));

	if (!file)
		return;
	file->path = graft_arena_strdup(look->arena, path);
	file->problem = graft_arena_strdup(look->arena, why);
}

/*
 * Returns why the first unusable device of the spec cannot be given to a container; NULL if all
 * can.
 */
static const char *find_stale(struct graft_health_look *look, const struct graft_cdi_spec *spec)
{
	struct graft_error err = { .status = GRAFT_OK };
	const char *why;

	for (size_t i = 0; i < spec->n_devices; i++) {
		const struct graft_cdi_choice choices[] = { { spec, NULL }, { spec, &spec->devices[i] } };
		struct graft_cdi_edits edits;

		if (graft_cdi_choices_realize(choices, GRAFT_COUNT(choices), NULL, look->scratch, &edits, &err) == 0)
			continue;
		graft_note_shortage(&look->survey.shortage, -err.sys);
		/* "CDI spec FILE is stale: WHY; REMEDY" */
		why = strstr(err.msg, " is stale: ");
		why = why ? why + strlen(" is stale: ") : err.msg;
		return graft_arena_printf(look->arena, "device %s: %.*s", spec->devices[i].name, (int)strcspn(why, ";"),
					  why);
	}
	return NULL;
}

static void add_cdi_spec_row(struct graft_health_look *look, const struct graft_cdi_spec *spec)
{
	struct graft_health_cdi *cdi = &look->health->cdi;
	struct graft_health_spec *row = graft_arena_push(look->arena, &cdi->specs, &cdi->n_specs, sizeof(*row));
	const struct graft_cdi_hook *open_hook = graft_cdi_spec_find_open_hook(spec);

	if (!row)
		return;
	row->file = graft_arena_strdup(look->arena, spec->file);
	row->kind = graft_arena_printf(look->arena, "%s/%s", spec->vendor, spec->class_);
	row->version = graft_arena_strdup(look->arena, spec->version);
	row->n_devices = (uint32_t)spec->n_devices;
	row->stale = find_stale(look, spec);
	row->open_hook = open_hook ? graft_arena_strdup(look->arena, open_hook->path) : NULL;
	for (size_t i = 0; row->kind && i < spec->n_devices; i++) {
		const char *name = graft_arena_printf(look->scratch, "%s=%s", row->kind, spec->devices[i].name);

		(void)graft_arena_push_string(look->arena, &row->names, &row->n_names, spec->devices[i].name);
		if (name)
			(void)graft_arena_push_string(look->arena, &cdi->devices, &cdi->n_devices, name);
	}
}

void graft_health_look_cdi(struct graft_health_look *look)
{
	const struct graft_health_options *options = look->options;
	struct graft_health_cdi *cdi = &look->health->cdi;
	struct graft_cdi_registry registry = { .n_specs = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < options->n_cdi_directories; i++) {
		const char *directory = options->cdi_directories[i];

		(void)graft_arena_push_string(look->arena, &cdi->directories, &cdi->n_directories, directory);
		/* Separately, so that an unreadable directory does not hide the others. */
		registry = (struct graft_cdi_registry){ .n_specs = 0 };
		if (graft_cdi_registry_read(&directory, 1, NULL, 0, NULL, NULL, look->scratch, &registry, &err) < 0) {
			graft_note_shortage(&look->survey.shortage, -err.sys);
			(void)graft_health_note(look, directory, err.status == GRAFT_PERMISSION ? -err.sys : 0);
			add_cdi_problem(look, directory, err.msg);
			continue;
		}
		for (size_t k = 0; k < registry.n_specs; k++)
			add_cdi_spec_row(look, &registry.specs[k]);
		for (size_t k = 0; k < registry.n_problems; k++)
			add_cdi_problem(look, registry.problems[k].file, registry.problems[k].why);
	}
	if (cdi->n_devices > 1)
		qsort(cdi->devices, cdi->n_devices, sizeof(*cdi->devices), graft_compare_strings);
}
