/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_config_file: reads the config file (SPEC kubernetes 6.2) by the tables of kube_config.c. A
 * wrong value is an error with its place, its key and what is allowed; an unknown key is a warning,
 * since files are shared with other versions of the programs that read them.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/strings.h"
#include "formats/tree/tree.h"
#include "kubernetes/kube_tables.h"

#define TEXT_MAX   ((size_t)1024 * 1024)
#define PATH_SIZE  256
#define QUOTED_MAX 96
#define FIELDS_MAX 32u /* of a table: bits of those that were seen */

struct file_reader {
	const char *file;
	struct graft_arena *arena;
	const struct graft_log *log;
	struct graft_error *err;
	size_t budget;
	char path[PATH_SIZE]; /* the key that is being read: "flags.plugin.passDeviceSpecs" */
};

/* Sets the error "FILE: line 1, column 2: KEY: ...". */
__attribute__((format(printf, 3, 4))) static int
refuse_key(const struct file_reader *reader, const struct graft_tree_value *value, const char *format, ...)
{
	char what[384];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return graft_tree_fail_at(reader->file, NULL, graft_tree_line(value), graft_tree_column(value), reader->err,
				  "%s%s%s", reader->path, reader->path[0] != '\0' ? ": " : "", what);
}

static int refuse_kind(const struct file_reader *reader, const struct graft_tree_value *value, const char *wanted)
{
	return refuse_key(reader, value, "%s, but must be %s", graft_tree_kind_names[value->kind], wanted);
}

static void warn_key(const struct file_reader *reader, const struct graft_tree_value *value, const char *what)
{
	graft_warn(reader->log, "%s: line %u: %s", reader->file, graft_tree_line(value), what);
}

/* Charges a value to the budget: aliases may use one many times. */
static int charge_value(struct file_reader *reader, const struct graft_tree_value *value)
{
	if (reader->budget == 0)
		return refuse_key(reader, value, "aliases expand to too many values");
	reader->budget--;
	return 0;
}

/* Goes into a member or item; returns where the path ended before. */
static size_t enter_key(struct file_reader *reader, const char *separator, const char *name)
{
	size_t before = strlen(reader->path);

	(void)snprintf(reader->path + before, sizeof(reader->path) - before, "%s%s", before > 0 ? separator : "", name);
	return before;
}

/* --- values --- */

static int read_key_text(struct file_reader *reader, const struct graft_tree_value *value, const char **ret_text)
{
	if (value->kind != GRAFT_TREE_STRING || !value->text)
		return refuse_kind(reader, value, "a string");
	*ret_text = value->text;
	return 0;
}

static int refuse_word(const struct file_reader *reader, const struct graft_tree_value *value,
		       const struct graft_field *field, const char *word)
{
	char quoted[QUOTED_MAX], allowed[128];

	(void)graft_tree_quote(word, quoted, sizeof(quoted));
	(void)kube_list_words(field->enum_names, field->n_enum_names, allowed, sizeof(allowed));
	return refuse_key(reader, value, "invalid value %s%s; allowed: %s", quoted,
			  graft_nearest_hint(field->enum_names, field->n_enum_names, word, reader->arena), allowed);
}

static int read_key_word(struct file_reader *reader, const struct graft_tree_value *value,
			 const struct graft_field *field, uint32_t *ret_word)
{
	const char *text = "";
	int found;

	if (read_key_text(reader, value, &text) < 0)
		return -1;
	found = kube_find_word(field->enum_names, field->n_enum_names, text);
	if (found < 0)
		return refuse_word(reader, value, field, text);
	*ret_word = (uint32_t)found;
	return 0;
}

static int read_number(struct file_reader *reader, const struct graft_tree_value *value, uint32_t *ret_number)
{
	if (value->kind != GRAFT_TREE_INTEGER || value->negative || value->magnitude > UINT32_MAX)
		return refuse_key(reader, value, "must be a whole number from 0 to %" PRIu32, UINT32_MAX);
	*ret_number = (uint32_t)value->magnitude;
	return 0;
}

/* A word or several, as a list or separated by commas; without words, a list of numbers. */
static int add_bits(struct file_reader *reader, const struct graft_tree_value *value, const struct graft_field *field,
		    uint32_t *bits)
{
	const char *text = "", *unknown;
	uint32_t number = 0;

	if (charge_value(reader, value) < 0)
		return -1;
	if (field->n_enum_names > 0) {
		if (read_key_text(reader, value, &text) < 0)
			return -1;
		unknown = kube_read_bits(text, field->enum_names, field->n_enum_names, reader->arena, bits);
		return unknown ? refuse_word(reader, value, field, unknown) : 0;
	}
	if (read_number(reader, value, &number) < 0)
		return -1;
	if (number > 0) /* SPEC kubernetes 6.2: the only set of numbers is that of IMEX channels */
		return refuse_key(reader, value,
				  "invalid IMEX channel IDs: [%" PRIu32 "]: channelIDs must be [] or [0]", number);
	*bits |= 1u << number;
	return 0;
}

static int read_bits(struct file_reader *reader, const struct graft_tree_value *value, const struct graft_field *field,
		     uint32_t *ret_bits)
{
	struct graft_tree_value view;
	uint32_t bits = 0;

	if (value->kind != GRAFT_TREE_LIST) {
		if (field->n_enum_names == 0)
			return refuse_kind(reader, value, "a list");
		if (add_bits(reader, value, field, &bits) < 0)
			return -1;
	}
	for (const struct graft_tree_value *item = graft_tree_first(value, &view);
	     item && value->kind == GRAFT_TREE_LIST; item = graft_tree_next(item, &view)) {
		if (add_bits(reader, item, field, &bits) < 0)
			return -1;
	}
	if (bits == 0 && field->n_enum_names > 0)
		return refuse_word(reader, value, field, "");
	*ret_bits = bits;
	return 0;
}

static int read_key_texts(struct file_reader *reader, const struct graft_tree_value *value, const char ***ret_items,
			  size_t *ret_n)
{
	struct graft_tree_value view;

	if (value->kind != GRAFT_TREE_LIST)
		return refuse_kind(reader, value, "a list");
	*ret_items = NULL;
	*ret_n = 0;
	GRAFT_TREE_EACH(item, value, view) {
		const char *text = "";

		if (charge_value(reader, item) < 0 || read_key_text(reader, item, &text) < 0)
			return -1;
		if (!graft_arena_push_string(reader->arena, ret_items, ret_n, text))
			return graft_fail_memory(reader->err);
	}
	return 0;
}

/* --- shared resources --- */

/* An item of the list `devices`: an index, which may be a number, a MIG index or a UUID. */
static int add_shared_device(struct file_reader *reader, const struct graft_tree_value *item,
			     struct graft_kube_shared_resource *resource)
{
	const char *word = item->kind == GRAFT_TREE_STRING ? item->text : NULL;

	if (charge_value(reader, item) < 0)
		return -1;
	if (item->kind == GRAFT_TREE_INTEGER && !item->negative)
		word = graft_arena_printf(reader->arena, "%" PRIu64, item->magnitude);
	if (!word || !kube_is_device_word(word))
		return refuse_key(reader, item, "must be a GPU index, a MIG index such as \"0:1\", or a UUID");
	return graft_arena_push_string(reader->arena, &resource->devices, &resource->n_devices, word)
		   ? 0
		   : graft_fail_memory(reader->err);
}

static int read_shared_devices(struct file_reader *reader, const struct graft_tree_value *value,
			       struct graft_kube_shared_resource *resource)
{
	struct graft_tree_value view;

	resource->devices = NULL;
	resource->n_devices = 0;
	resource->n_first = 0;
	if (value->kind == GRAFT_TREE_STRING && value->text && strcmp(value->text, "all") == 0)
		return 0;
	if (value->kind == GRAFT_TREE_INTEGER && !value->negative && value->magnitude > 0 &&
	    value->magnitude <= UINT32_MAX) {
		resource->n_first = (uint32_t)value->magnitude;
		return 0;
	}
	if (value->kind != GRAFT_TREE_LIST || graft_tree_count(value) == 0)
		return refuse_key(reader, value, "must be \"all\", a number above 0, or a list of devices");
	GRAFT_TREE_EACH(item, value, view) {
		if (add_shared_device(reader, item, resource) < 0)
			return -1;
	}
	return 0;
}

/* Gives the name its prefix, if there is one, and checks it. */
static int complete_name(struct file_reader *reader, const struct graft_tree_value *value, const char **name)
{
	struct graft_error why = { .status = GRAFT_OK };

	if ((*name)[0] == '\0')
		return 0;
	*name = kube_full_name(*name, reader->arena);
	if (!*name)
		return graft_fail_memory(reader->err);
	return graft_kube_check_resource(*name, &why) < 0 ? refuse_key(reader, value, "%s", why.msg) : 0;
}

/*
 * Warns of a rule for a resource that no node has. A node without MIG devices of some profile is
 * normal.
 */
static void warn_no_resource(const struct file_reader *reader, const struct graft_tree_value *value, const char *name)
{
	static const char *const gpu[] = { GRAFT_KUBE_PREFIX "gpu" };

	if (strcmp(name, gpu[0]) == 0 || graft_starts_with(name, GRAFT_KUBE_PREFIX "mig-"))
		return;
	graft_warn(reader->log,
		   "%s: line %u: %s: no node has a resource '%s'%s; there are %s, and " GRAFT_KUBE_PREFIX
		   "mig-PROFILE for MIG devices",
		   reader->file, graft_tree_line(value), reader->path, name,
		   graft_nearest_hint(gpu, 1, name, reader->arena), gpu[0]);
}

static int check_shared_resource(struct file_reader *reader, const struct graft_tree_value *value,
				 struct graft_kube_shared_resource *resource)
{
	if (resource->name[0] == '\0')
		return refuse_key(reader, value, "a resource needs a name");
	if (complete_name(reader, value, &resource->name) < 0 || complete_name(reader, value, &resource->rename) < 0)
		return -1;
	if (resource->replicas < 2)
		return refuse_key(reader, value, "number of replicas must be >= 2");
	warn_no_resource(reader, value, resource->name);
	return 0;
}

/* --- objects --- */

static int read_kube_object(struct file_reader *reader, const struct graft_tree_value *value,
			    const struct graft_record *record, void *target);

static int read_resource_list(struct file_reader *reader, const struct graft_tree_value *value,
			      struct graft_kube_replication *replication)
{
	struct graft_tree_value view;
	size_t i = 0;

	if (value->kind != GRAFT_TREE_LIST)
		return refuse_kind(reader, value, "a list");
	replication->resources = NULL;
	replication->n_resources = 0;
	for (const struct graft_tree_value *item = graft_tree_first(value, &view); item;
	     item = graft_tree_next(item, &view), i++) {
		struct graft_kube_shared_resource *resource = graft_arena_push(
		    reader->arena, &replication->resources, &replication->n_resources, sizeof(*resource));
		char index[24];
		size_t before;

		if (!resource)
			return graft_fail_memory(reader->err);
		resource->name = resource->rename = "";
		(void)snprintf(index, sizeof(index), "[%zu]", i);
		before = enter_key(reader, "", index);
		if (charge_value(reader, item) < 0 ||
		    read_kube_object(reader, item, &kube_shared_resource_record, resource) < 0 ||
		    check_shared_resource(reader, item, resource) < 0)
			return -1;
		reader->path[before] = '\0';
	}
	return 0;
}

/*
 * SPEC kubernetes 6.2: the list is required, and MPS hands out one replica unless configured
 * otherwise.
 */
static int read_replication(struct file_reader *reader, const struct graft_tree_value *value, bool mps,
			    struct graft_kube_replication *replication)
{
	*replication = (struct graft_kube_replication){ .fail_requests_greater_than_one = mps };
	if (value->kind != GRAFT_TREE_NULL &&
	    read_kube_object(reader, value, &kube_replication_record, replication) < 0)
		return -1;
	return replication->n_resources > 0 ? 0 : refuse_key(reader, value, "no resources specified");
}

static int read_duration(struct file_reader *reader, const struct graft_tree_value *value, const char **ret_text)
{
	char quoted[QUOTED_MAX];
	const char *text = value->kind == GRAFT_TREE_STRING ? value->text : NULL;
	int64_t ns;

	if (value->kind == GRAFT_TREE_INTEGER && !value->negative)
		text = graft_arena_printf(reader->arena, "%" PRIu64, value->magnitude);
	if (!text)
		return refuse_kind(reader, value, "a duration");
	if (!graft_kube_parse_duration(text, &ns))
		return refuse_key(reader, value,
				  "invalid duration %s; allowed: \"90s\", \"1h30m\", \"infinite\", or a "
				  "number of nanoseconds",
				  graft_tree_quote(text, quoted, sizeof(quoted)));
	*ret_text = text;
	return 0;
}

static int read_kube_version(struct file_reader *reader, const struct graft_tree_value *value, const char **ret_text)
{
	const char *text = "";

	if (read_key_text(reader, value, &text) < 0)
		return -1;
	if (text[0] != '\0' && strcmp(text, "v1") != 0) {
		reader->path[0] = '\0';
		return refuse_key(reader, value, "unknown version: %s", text);
	}
	*ret_text = "v1";
	return 0;
}

/* Members whose form the tables do not describe. Returns 1 if it is not one of them. */
static int read_special(struct file_reader *reader, const struct graft_tree_value *value,
			const struct graft_field *field, void *target)
{
	void *slot = (char *)target + field->offset;

	if (strcmp(field->name, "version") == 0)
		return read_kube_version(reader, value, slot);
	if (strcmp(field->name, "sleepInterval") == 0)
		return read_duration(reader, value, slot);
	if (strcmp(field->name, "devices") == 0)
		return read_shared_devices(reader, value, target);
	if (strcmp(field->name, "resources") == 0)
		return read_resource_list(reader, value, target);
	return 1;
}

static int read_kube_member(struct file_reader *reader, const struct graft_tree_value *value,
			    const struct graft_field *field, void *target)
{
	void *slot = (char *)target + field->offset;
	int rc;

	if (field->record == &kube_replication_record)
		return read_replication(reader, value, strcmp(field->name, "mps") == 0, slot);
	if (value->kind == GRAFT_TREE_NULL)
		return 0;
	rc = read_special(reader, value, field, target);
	if (rc <= 0)
		return rc;
	switch (field->kind) {
	case GRAFT_FIELD_BOOL:
		if (value->kind != GRAFT_TREE_BOOL)
			return refuse_kind(reader, value, "true or false");
		*(bool *)slot = value->magnitude != 0;
		return 0;
	case GRAFT_FIELD_STRING:
		return read_key_text(reader, value, slot);
	case GRAFT_FIELD_ENUM:
		return read_key_word(reader, value, field, slot);
	case GRAFT_FIELD_FLAGS:
		return read_bits(reader, value, field, slot);
	case GRAFT_FIELD_U32:
		return read_number(reader, value, slot);
	case GRAFT_FIELD_STRINGS:
		return read_key_texts(reader, value, slot, (size_t *)((char *)target + field->count_offset));
	case GRAFT_FIELD_RECORD:
		return read_kube_object(reader, value, field->record, slot);
	case GRAFT_FIELD_U64:
	case GRAFT_FIELD_I64:
	case GRAFT_FIELD_RECORDS:
		break; /* no table has one */
	}
	return -1;
}

static size_t find_key(const struct graft_record *record, const char *key)
{
	size_t i = 0;

	while (i < record->n_fields && strcasecmp(record->fields[i].name, key) != 0)
		i++;
	return i;
}

static int warn_unknown(struct file_reader *reader, const struct graft_tree_value *value,
			const struct graft_record *record, const char *key)
{
	const char *names[FIELDS_MAX], *text;
	char quoted[QUOTED_MAX];
	size_t n = 0;

	if (record == &kube_config_record && strcmp(key, "resources") == 0) {
		warn_key(reader, value,
			 "'resources' is ignored: resources cannot be renamed by patterns; "
			 "sharing.*.resources[].rename names shared devices");
		return 0;
	}
	while (n < record->n_fields && n < FIELDS_MAX) {
		names[n] = record->fields[n].name;
		n++;
	}
	text = graft_arena_printf(reader->arena, "ignoring unknown key '%s%s%s'%s", reader->path,
				  reader->path[0] != '\0' ? "." : "",
				  graft_tree_quote(key, quoted, sizeof(quoted)) && strpbrk(quoted, "\\") ? quoted : key,
				  graft_nearest_hint(names, n, key, reader->arena));
	if (!text)
		return graft_fail_memory(reader->err);
	warn_key(reader, value, text);
	return 0;
}

static int read_kube_object(struct file_reader *reader, const struct graft_tree_value *value,
			    const struct graft_record *record, void *target)
{
	struct graft_tree_value view;
	uint32_t seen = 0;

	if (value->kind == GRAFT_TREE_NULL)
		return 0;
	if (value->kind != GRAFT_TREE_MAP)
		return refuse_kind(reader, value, "an object");
	GRAFT_TREE_EACH(member, value, view) {
		size_t i = member->key ? find_key(record, member->key) : record->n_fields, before;

		if (charge_value(reader, member) < 0)
			return -1;
		if (i == record->n_fields) {
			if (warn_unknown(reader, member, record, member->key ? member->key : "") < 0)
				return -1;
			continue;
		}
		before = enter_key(reader, ".", record->fields[i].name);
		if (seen >> i & 1u)
			graft_warn(reader->log, "%s: line %u: key '%s' is given twice; the last one applies",
				   reader->file, graft_tree_line(member), reader->path);
		seen |= 1u << i;
		if (read_kube_member(reader, member, &record->fields[i], target) < 0)
			return -1;
		reader->path[before] = '\0';
	}
	return 0;
}

/* Returns whether there are only blanks and comments: such a file sets nothing. */
static bool is_empty_text(const char *text, size_t length)
{
	bool comment = false;

	for (size_t i = 0; i < length; i++) {
		comment = text[i] == '#' || (comment && text[i] != '\n');
		if (!comment && text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != '\n')
			return false;
	}
	return true;
}

int graft_kube_config_parse(const char *file, const char *text, size_t length, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_kube_config *config, struct graft_error *err)
{
	struct graft_error local = { .status = GRAFT_OK }, *why = err ? err : &local;
	struct graft_tree_builder builder = { .file = file, .texts = arena, .err = why, .max = TEXT_MAX };
	struct file_reader reader = { .file = file, .arena = arena, .log = log, .err = why };
	const struct graft_tree_value *root;
	int rc;

	if (is_empty_text(text, length))
		return 0;
	rc = graft_tree_parse(&builder, text, length, &root);
	if (rc == 0) {
		reader.budget = builder.budget;
		rc = read_kube_object(&reader, root, &kube_config_record, config);
	}
	graft_tree_builder_done(&builder);
	return rc == 0 && graft_arena_failed(arena) ? graft_fail_memory(err) : rc;
}
