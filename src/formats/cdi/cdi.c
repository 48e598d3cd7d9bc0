/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi: reads a spec file as plain data (SPEC ctk-and-cdi 5.1, 5.3, 5.4): chooses the parser for its
 * text, and checks the spec as a whole. The tables of cdi_schema.c define the members of the
 * objects; cdi_check.c defines what values are valid.
 */
#include "formats/cdi/cdi.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/cdi/cdi_object.h"

/* --- the spec as a whole --- */

static int compare_device_pointers(const void *a, const void *b)
{
	return strcmp((*(const struct graft_cdi_device *const *)a)->name,
		      (*(const struct graft_cdi_device *const *)b)->name);
}

/*
 * Returns the member of the spec with that name, for its position; the spec itself if there is
 * none.
 */
static const struct graft_tree_value *place_of(const struct graft_tree_value *root, const char *name,
					       struct graft_tree_value *view)
{
	for (const struct graft_tree_value *item = graft_tree_first(root, view); item;
	     item = graft_tree_next(item, view)) {
		if (item->key && strcasecmp(item->key, name) == 0)
			return item;
	}
	return root;
}

static const struct graft_tree_value *place_of_device(const struct graft_tree_value *root, size_t index,
						      struct graft_tree_value *view)
{
	const struct graft_tree_value *item = graft_tree_first(place_of(root, "devices", view), view);

	while (item && index-- > 0)
		item = graft_tree_next(item, view);
	return item ? item : root;
}

static int check_devices(struct cdi_reader *reader, const struct graft_tree_value *root,
			 const struct graft_cdi_spec *spec)
{
	auto_free const struct graft_cdi_device **sorted = calloc(spec->n_devices + 1,
								  sizeof(struct graft_cdi_device *));
	struct graft_tree_value view;
	size_t n = 0;

	if (!sorted)
		return graft_fail_memory(reader->err);
	for (size_t i = 0; i < spec->n_devices; i++) {
		if (!spec->devices[i].name)
			continue;
		sorted[n++] = &spec->devices[i];
		/*
		 * A version that is too low is reported once, after everything that may require a
		 * higher one.
		 */
		if (cdi_version_of_device(spec->devices[i].name) > reader->needed)
			reader->needed = cdi_version_of_device(spec->devices[i].name);
	}
	qsort(sorted, n, sizeof(*sorted), compare_device_pointers);
	for (size_t i = 1; i < n; i++) {
		const struct graft_cdi_device *second = sorted[i] > sorted[i - 1] ? sorted[i] : sorted[i - 1];

		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 &&
		    cdi_complain(reader, place_of_device(root, (size_t)(second - spec->devices), &view),
				 "invalid spec, multiple device %s", cdi_quote(second->name)) < 0)
			return -1;
	}
	return spec->n_devices > 0 ? 0
				   : cdi_complain(reader, place_of(root, "devices", &view), "invalid spec, no devices");
}

/* A value that cannot be a text was reported already. */
static bool was_refused(const struct graft_tree_value *root, const char *name)
{
	struct graft_tree_value view;
	const struct graft_tree_value *value = place_of(root, name, &view);

	return value != root && (value->kind == GRAFT_TREE_FRACTION || value->kind == GRAFT_TREE_LIST ||
				 value->kind == GRAFT_TREE_MAP || (value->kind == GRAFT_TREE_STRING && !value->text));
}

static int check_version(struct cdi_reader *reader, const struct graft_tree_value *root,
			 const struct cdi_file_spec *head, enum cdi_version *ret_version)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_tree_value view;

	*ret_version = CDI_VERSION_MAX;
	if (was_refused(root, "cdiVersion") || cdi_check_version(head->version, ret_version, &why) == 0)
		return 0;
	return cdi_complain(reader, place_of(root, "cdiVersion", &view), "%s", why.msg);
}

static int check_spec_kind(struct cdi_reader *reader, const struct graft_tree_value *root, struct cdi_file_spec *head)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_tree_value view;

	if (was_refused(root, "kind"))
		return 0;
	if (cdi_check_kind(head->kind ? head->kind : "", reader->arena, &head->spec.vendor, &head->spec.class_, &why) <
	    0)
		return why.status == GRAFT_NO_MEMORY
			   ? graft_fail_memory(reader->err)
			   : cdi_complain(reader, place_of(root, "kind", &view), "%s", why.msg);
	if (cdi_version_of_class(head->spec.class_) > reader->needed)
		reader->needed = cdi_version_of_class(head->spec.class_);
	return 0;
}

static int read_cdi_spec(struct cdi_reader *reader, const struct graft_tree_value *root,
			 struct graft_cdi_spec *ret_spec)
{
	struct cdi_file_spec head = { .version = NULL };
	enum cdi_version version = CDI_UNKNOWN;
	struct graft_tree_value view;

	/* Check version and kind first, so that a file of another format is reported as such. */
	if (cdi_read_object(reader, root, &cdi_spec_object, "the spec", &head) < 0 ||
	    check_version(reader, root, &head, &version) < 0 || check_spec_kind(reader, root, &head) < 0 ||
	    cdi_check_annotations(reader, place_of(root, "annotations", &view), head.spec.annotations,
				  head.spec.n_annotations) < 0 ||
	    check_devices(reader, root, &head.spec) < 0)
		return -1;
	if (version < reader->needed &&
	    cdi_complain(reader, place_of(root, "cdiVersion", &view), "the spec version must be at least v%s",
			 cdi_version_names[reader->needed]) < 0)
		return -1;
	head.spec.version = head.version;
	head.spec.file = graft_arena_strdup(reader->arena, reader->file);
	if (!head.spec.file)
		return graft_fail_memory(reader->err);
	*ret_spec = head.spec;
	return 0;
}

static int read_cdi_text(const char *text, size_t length, struct cdi_reader *reader, struct graft_cdi_spec *ret_spec)
{
	struct graft_tree_builder builder = { .file = reader->file,
					      .what = CDI_INVALID,
					      .texts = reader->arena,
					      .err = reader->err,
					      .max = CDI_TEXT_MAX };
	const struct graft_tree_value *root;
	int rc = graft_tree_parse(&builder, text, length, &root);

	if (rc == 0) {
		reader->budget = builder.budget;
		rc = read_cdi_spec(reader, root, ret_spec);
	}
	graft_tree_builder_done(&builder);
	return rc;
}

int graft_cdi_spec_read(const char *file, const char *text, size_t length, struct graft_arena *arena,
			struct graft_cdi_spec *ret_spec, struct graft_error *err)
{
	struct graft_error local = { .status = GRAFT_OK };
	struct cdi_reader reader = { .file = file, .arena = arena, .needed = CDI_0_3_0, .err = err ? err : &local };

	return read_cdi_text(text, length, &reader, ret_spec);
}

/*
 * Parses `word` followed by a number, and advances *text. Returns false, with nothing changed, if
 * they are not there.
 */
static bool take_number(const char **text, const char *word, unsigned int *ret_number)
{
	size_t length = strlen(word);
	char *end;
	unsigned long number;

	if (strncmp(*text, word, length) != 0 || (*text)[length] < '0' || (*text)[length] > '9')
		return false;
	errno = 0;
	number = strtoul(*text + length, &end, 10);
	if (errno != 0 || number > UINT_MAX)
		return false;
	*text = end;
	*ret_number = (unsigned int)number;
	return true;
}

/* Adds the error of the JSON or YAML parser, which stops at the first problem. */
static int add_syntax_error(struct graft_cdi_faults *faults, const char *file, struct graft_error *err)
{
	struct graft_cdi_fault *fault = graft_arena_push(faults->arena, &faults->items, &faults->n, sizeof(*fault));
	const char *what = err->msg, *place;

	if (!fault)
		return graft_fail_memory(err);
	if (strncmp(what, file, strlen(file)) == 0 && graft_starts_with(what + strlen(file), ": "))
		what += strlen(file) + 2;
	place = what;
	if (take_number(&place, "line ", &fault->line) && take_number(&place, ", column ", &fault->column) &&
	    graft_starts_with(place, ": "))
		what = place + 2;
	if (strncmp(what, CDI_INVALID, strlen(CDI_INVALID)) == 0)
		what += strlen(CDI_INVALID);
	fault->what = graft_arena_strdup(faults->arena, what);
	return fault->what ? 0 : graft_fail_memory(err);
}

static bool is_earlier_fault(const struct graft_cdi_fault *a, const struct graft_cdi_fault *b)
{
	return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* Sorts by position. Faults at the same position keep their order. There are only a few. */
static void sort_faults(struct graft_cdi_fault *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct graft_cdi_fault fault = items[i];
		size_t at = i;

		for (; at > 0 && is_earlier_fault(&fault, &items[at - 1]); at--)
			items[at] = items[at - 1];
		items[at] = fault;
	}
}

int graft_cdi_spec_examine(const char *file, const char *text, size_t length, struct graft_cdi_faults *faults,
			   struct graft_cdi_spec *ret_spec, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct cdi_reader reader = {
		.file = file, .arena = faults->arena, .needed = CDI_0_3_0, .faults = faults, .err = &why
	};
	size_t n_before = faults->n;

	if (read_cdi_text(text, length, &reader, ret_spec) < 0 &&
	    (why.status != GRAFT_FORMAT || (faults->n == n_before && add_syntax_error(faults, file, &why) < 0))) {
		if (err)
			*err = why;
		return -1;
	}
	if (faults->n > n_before)
		sort_faults(faults->items + n_before, faults->n - n_before);
	return 0;
}
