/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_examine: collects the faults of single files, then compares the valid specs of directories
 * with each other.
 */
#include "host/cdi_registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/read.h"

#define NAMES_IN_FAULT 4u /* overridden devices named in a fault; the rest is only counted */

struct examination {
	struct graft_arena *arena;
	struct graft_cdi_registry registry; /* the valid specs of the directories */
	struct graft_cdi_examined *files;
	size_t n_files;
	struct graft_error *err;
};

static int add_examined_fault(struct examination *examination, struct graft_cdi_examined *file, bool harmless,
			      const char *what)
{
	struct graft_cdi_fault *fault = file && what ? graft_arena_push(examination->arena, &file->faults.items,
									&file->faults.n, sizeof(*fault))
						     : NULL;

	if (!fault)
		return graft_fail_memory(examination->err);
	*fault = (struct graft_cdi_fault){ .harmless = harmless, .what = what };
	file->valid = file->valid && harmless;
	return 0;
}

/* --- one file --- */

static bool are_faults_harmless(const struct graft_cdi_faults *faults)
{
	for (size_t i = 0; i < faults->n; i++) {
		if (!faults->items[i].harmless)
			return false;
	}
	return true;
}

/*
 * Records as a fault of the file that it could not be read. Running out of memory is not the file's
 * fault.
 */
static int add_failure(struct examination *examination, struct graft_cdi_examined *file, const struct graft_error *why)
{
	char text[sizeof(why->msg) + sizeof(why->ctx)];

	if (why->status == GRAFT_NO_MEMORY)
		return graft_fail_memory(examination->err);
	return add_examined_fault(examination, file, false,
				  graft_arena_strdup(examination->arena, graft_error_text(why, text, sizeof(text))));
}

typedef int read_function(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
			  struct graft_error *err);

static int examine_file(struct examination *examination, const char *path, read_function *read,
			struct graft_cdi_spec *ret_spec, bool *ret_valid)
{
	struct graft_cdi_examined *file = graft_arena_push(examination->arena, &examination->files,
							   &examination->n_files, sizeof(*file));
	struct graft_arena *scratch = graft_arena_new(SIZE_MAX / 2);
	struct graft_error why = { .status = GRAFT_OK };
	const char *text;
	size_t length;
	int rc = 0;

	*ret_valid = false;
	if (!file || !scratch) {
		(void)graft_arena_free(scratch);
		return graft_fail_memory(examination->err);
	}
	file->path = graft_input_name(path);
	file->faults.arena = examination->arena;
	if (read(path, scratch, &text, &length, &why) == 0 &&
	    graft_cdi_spec_examine(file->path, text, length, &file->faults, ret_spec, &why) == 0)
		*ret_valid = file->valid = are_faults_harmless(&file->faults);
	else
		rc = add_failure(examination, file, &why);
	(void)graft_arena_free(scratch);
	return rc;
}

static int examine_named(struct examination *examination, const char *path)
{
	const char *dot = strrchr(path, '.');
	bool is_stream = graft_is_stream(path), valid;
	struct graft_cdi_spec spec;

	if (examine_file(examination, path, graft_cdi_input_read, &spec, &valid) < 0)
		return -1;
	if (!valid || is_stream || (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".yaml") == 0)))
		return 0;
	return add_examined_fault(examination, &examination->files[examination->n_files - 1], true,
				  "engines ignore files in a directory unless their names end in .json or .yaml");
}

static int examine_directory(struct examination *examination, const char *directory, size_t priority)
{
	const char **names = NULL;
	size_t n = 0;

	if (graft_cdi_directory_list(directory, examination->arena, &names, &n, examination->err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *path = graft_arena_printf(examination->arena, "%s/%s", directory, names[i]);
		struct graft_cdi_spec spec;
		bool valid;

		if (!path)
			return graft_fail_memory(examination->err);
		if (examine_file(examination, path, graft_cdi_file_read, &spec, &valid) < 0 ||
		    (valid && graft_cdi_registry_add(&examination->registry, &spec, priority, examination->arena,
						     examination->err) < 0))
			return -1;
	}
	return 0;
}

/* --- between files --- */

/* The file of a spec of the registry; the last one if its directory was given twice. */
static struct graft_cdi_examined *examined_file_of(const struct examination *examination,
						   const struct graft_cdi_spec *spec)
{
	for (size_t i = examination->n_files; i-- > 0;) {
		if (strcmp(examination->files[i].path, spec->file) == 0)
			return &examination->files[i];
	}
	return NULL;
}

/* Orders by overridden spec, then by overriding spec, then by name. */
static int compare_overridden(const void *a, const void *b)
{
	const struct graft_cdi_definition *x = a, *y = b;

	if (x->spec != y->spec)
		return x->spec < y->spec ? -1 : 1;
	if (x->other != y->other)
		return x->other < y->other ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Reports, as one fault, all devices of one spec that one other spec overrides. */
static int add_overridden(struct examination *examination, const struct graft_cdi_definition *group, size_t n)
{
	struct graft_cdi_examined *file = examined_file_of(examination, group->spec);
	struct graft_buffer text = { .max = 0 };
	int rc;

	for (size_t i = 0; i < n && i < NAMES_IN_FAULT; i++)
		graft_buffer_printf(&text, "%s%s", i > 0 ? ", " : "", group[i].name);
	if (n > NAMES_IN_FAULT)
		graft_buffer_printf(&text, " and %zu more", n - NAMES_IN_FAULT);
	graft_buffer_printf(&text, ": overridden by %s", group->other->file);
	if (graft_buffer_failed(&text))
		rc = graft_fail_memory(examination->err);
	else
		rc = add_examined_fault(examination, file, true, graft_arena_strdup(examination->arena, text.bytes));
	graft_buffer_done(&text);
	return rc;
}

static int add_conflict(struct examination *examination, const struct graft_cdi_definition *definition)
{
	return add_examined_fault(
	    examination, examined_file_of(examination, definition->spec), false,
	    graft_arena_printf(examination->arena,
			       "conflicting device \"%s\": %s defines it as well, so no container can use it",
			       definition->name, definition->other->file));
}

static int compare_specs(struct examination *examination)
{
	struct graft_cdi_definition *definitions;
	size_t n, n_overridden = 0;

	if (graft_cdi_registry_definitions(&examination->registry, examination->arena, &definitions, &n,
					   examination->err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (definitions[i].standing == GRAFT_CDI_CONFLICTING && add_conflict(examination, &definitions[i]) < 0)
			return -1;
		if (definitions[i].standing == GRAFT_CDI_OVERRIDDEN)
			definitions[n_overridden++] = definitions[i];
	}
	if (n_overridden > 0)
		qsort(definitions, n_overridden, sizeof(*definitions), compare_overridden);
	for (size_t begin = 0, end; begin < n_overridden; begin = end) {
		for (end = begin + 1; end < n_overridden && definitions[end].spec == definitions[begin].spec &&
				      definitions[end].other == definitions[begin].other;)
			end++;
		if (add_overridden(examination, &definitions[begin], end - begin) < 0)
			return -1;
	}
	return 0;
}

int graft_cdi_examine(const char *const *paths, size_t n_paths, bool may_be_missing, struct graft_arena *arena,
		      struct graft_cdi_examined **ret_files, size_t *ret_n, struct graft_error *err)
{
	struct examination examination = { .arena = arena, .err = err };

	for (size_t i = 0; i < n_paths; i++) {
		struct stat status;
		bool missing = stat(paths[i], &status) < 0 && errno == ENOENT;
		int rc = 0;

		if (missing && may_be_missing)
			continue;
		if (!missing && S_ISDIR(status.st_mode))
			rc = examine_directory(&examination, paths[i], i);
		else
			rc = examine_named(&examination, paths[i]);
		if (rc < 0)
			return -1;
	}
	if (compare_specs(&examination) < 0)
		return -1;
	*ret_files = examination.files;
	*ret_n = examination.n_files;
	return 0;
}
