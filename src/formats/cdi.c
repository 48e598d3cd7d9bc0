/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi: a spec file as plain data (SPEC ctk-and-cdi 5.1, 5.3, 5.4): which reader its text needs, and what is true of a spec as a whole. The
 * tables of cdi_schema.c say which members the objects have; cdi_check.c says what a value must be like.
 */
#include "formats/cdi.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/cdi_object.h"

#define QUOTED_MAX 160

/* --- the spec as a whole --- */

static int compare_devices(const void *a, const void *b)
{
	return strcmp((*(const struct graft_cdi_device *const *)a)->name,
		      (*(const struct graft_cdi_device *const *)b)->name);
}

static int check_devices(struct cdi_reader *reader, const struct cdi_value *root, const struct graft_cdi_spec *spec)
{
	auto_free const struct graft_cdi_device **sorted = calloc(spec->n_devices + 1,
								  sizeof(struct graft_cdi_device *));
	char quoted[QUOTED_MAX];

	if (!sorted)
		return graft_fail_memory(reader->err);
	for (size_t i = 0; i < spec->n_devices; i++) {
		sorted[i] = &spec->devices[i];
		/* A version that is too low is looked at once, with all else that asks for one. */
		if (cdi_version_of_device(sorted[i]->name) > reader->needed)
			reader->needed = cdi_version_of_device(sorted[i]->name);
	}
	qsort(sorted, spec->n_devices, sizeof(*sorted), compare_devices);
	for (size_t i = 1; i < spec->n_devices; i++) {
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
			return cdi_refuse(reader, root, "invalid spec, multiple device %s",
					  cdi_quote(sorted[i]->name, quoted, sizeof(quoted)));
	}
	return spec->n_devices > 0 ? 0 : cdi_refuse(reader, root, "invalid spec, no devices");
}

/* Version and kind come first, so that a file of another format is told by them. */
static int check_head(struct cdi_reader *reader, const struct cdi_value *root, struct cdi_file_spec *head,
		      enum cdi_version *ret_version)
{
	struct graft_error why = { .status = GRAFT_OK };

	if (cdi_check_version(head->version, ret_version, &why) < 0 ||
	    cdi_check_kind(head->kind ? head->kind : "", reader->arena, &head->spec.vendor, &head->spec.class_, &why) <
		0)
		return why.status == GRAFT_NO_MEMORY ? graft_fail_memory(reader->err)
						     : cdi_refuse(reader, root, "%s", why.msg);
	head->spec.version = head->version;
	if (cdi_version_of_class(head->spec.class_) > reader->needed)
		reader->needed = cdi_version_of_class(head->spec.class_);
	return 0;
}

static int read_spec(struct cdi_reader *reader, const struct cdi_value *root, struct graft_cdi_spec *ret_spec)
{
	struct cdi_file_spec head = { .version = NULL };
	enum cdi_version version = CDI_UNKNOWN;

	if (cdi_read_object(reader, root, &cdi_spec_object, "the spec", &head) < 0 ||
	    check_head(reader, root, &head, &version) < 0 || check_devices(reader, root, &head.spec) < 0)
		return -1;
	if (version < reader->needed)
		return cdi_refuse(reader, root, "the spec version must be at least v%s",
				  cdi_version_names[reader->needed]);
	head.spec.file = graft_arena_strdup(reader->arena, reader->file);
	if (!head.spec.file)
		return graft_fail_memory(reader->err);
	*ret_spec = head.spec;
	return 0;
}

static bool begins_like_json(const char *text, size_t length)
{
	size_t i = 0;

	while (i < length && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r'))
		i++;
	return i < length && text[i] == '{';
}

/* JSON is YAML, but its own reader is many times faster; what that one refuses may still be YAML that begins with a brace. */
static int read_tree(struct cdi_builder *builder, const char *text, size_t length, const struct cdi_value **ret_root,
		     struct graft_error *err)
{
	struct graft_error json = { .status = GRAFT_OK }, yaml = { .status = GRAFT_OK };
	size_t n = strlen(builder->file);
	bool named_json = n > 5 && strcmp(builder->file + n - 5, ".json") == 0;
	int rc;

	if (begins_like_json(text, length)) {
		builder->err = &json;
		rc = cdi_tree_from_json(builder, text, length, ret_root);
		builder->err = err;
		if (rc == 0)
			return 0;
		if (json.status != GRAFT_FORMAT) {
			*err = json;
			return -1;
		}
		builder->n_values = 0;
	}
	builder->err = &yaml;
	rc = cdi_tree_from_yaml(builder, text, length, ret_root);
	builder->err = err;
	if (rc == 0)
		return 0;
	*err = named_json && json.status != GRAFT_OK && yaml.status == GRAFT_FORMAT ? json : yaml;
	return -1;
}

int graft_cdi_spec_read(const char *file, const char *text, size_t length, struct graft_arena *arena,
			struct graft_cdi_spec *ret_spec, struct graft_error *err)
{
	struct graft_error local = { .status = GRAFT_OK };
	struct cdi_builder builder = { .file = file };
	struct cdi_reader reader = { .file = file, .arena = arena, .needed = CDI_0_3_0, .err = err ? err : &local };
	const struct cdi_value *root;
	int rc = -1;

	if (length > CDI_TEXT_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "%s: larger than %zu bytes", file, CDI_TEXT_MAX);
	builder.arena = graft_arena_new(SIZE_MAX / 2);
	if (!builder.arena)
		return graft_fail_memory(err);
	if (read_tree(&builder, text, length, &root, reader.err) == 0) {
		reader.budget = builder.n_values + CDI_ALIASED_MAX;
		rc = read_spec(&reader, root, ret_spec);
	}
	cdi_builder_done(&builder);
	(void)graft_arena_free(builder.arena);
	return rc;
}
