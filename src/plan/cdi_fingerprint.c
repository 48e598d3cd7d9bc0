/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_fingerprint: one table of the facts serves naming, storing, finding and comparing. */
#include "plan/cdi_fingerprint.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "formats/cdi/cdi_write.h"
#include "plan/driver_nodes.h"

#define KEY_PREFIX "graft."
#define VARIABLE   "GRAFT_MADE_FROM=" /* of a hook: "driver-version=550.54.14;gpus=..." */
/* The first version with annotations (SPEC ctk-and-cdi 5.3). */
#define ANNOTATED "0.6.0"

const char *const graft_cdi_provenance_names[GRAFT_CDI_PROVENANCE_MAX] = { "auto", "annotations", "none" };

static const struct {
	const char *key; /* name of the annotation; in a variable, without the prefix */
	size_t offset;
} facts[] = {
	{ KEY_PREFIX "boot-id", offsetof(struct graft_cdi_fingerprint, boot_id) },
	{ KEY_PREFIX "driver-version", offsetof(struct graft_cdi_fingerprint, driver_version) },
	{ KEY_PREFIX "flags", offsetof(struct graft_cdi_fingerprint, flags) },
	{ KEY_PREFIX "gpus", offsetof(struct graft_cdi_fingerprint, gpus) },
	{ KEY_PREFIX "mig", offsetof(struct graft_cdi_fingerprint, mig) },
};

static const char *get_fingerprint_fact(const struct graft_cdi_fingerprint *fingerprint, size_t fact)
{
	const char *value;

	memcpy(&value, (const char *)fingerprint + facts[fact].offset, sizeof(value));
	return value;
}

static void set_fingerprint_fact(struct graft_cdi_fingerprint *fingerprint, size_t fact, const char *value)
{
	memcpy((char *)fingerprint + facts[fact].offset, &value, sizeof(value));
}

/* --- making --- */

static const char *add_fingerprint_gpu(const char *list, const struct graft_gpu *gpu, struct graft_arena *arena)
{
	return graft_arena_printf(arena, "%s%s%s=%s", list, list[0] != '\0' ? "," : "", gpu->bus_id ? gpu->bus_id : "",
				  gpu->uuid.value ? gpu->uuid.value : "");
}

static const char *add_fingerprint_migs(const char *list, const struct graft_gpu *gpu, struct graft_arena *arena)
{
	for (size_t i = 0; list && i < gpu->n_mig_devices; i++) {
		const struct graft_mig_device *mig = &gpu->mig_devices[i];

		if (i == 0)
			list = graft_arena_printf(arena, "%s%s%s=%u/%u", list, list[0] != '\0' ? "," : "",
						  gpu->bus_id ? gpu->bus_id : "", mig->gi, mig->ci);
		else
			list = graft_arena_printf(arena, "%s+%u/%u", list, mig->gi, mig->ci);
	}
	return list;
}

/*
 * GPUs that procfs does not show: a user of the specification does not ask NVML, which is slow,
 * and would miss them.
 */
static bool knows_only_nvml(const struct graft_inventory *inventory)
{
	return inventory->platform == GRAFT_PLATFORM_NATIVE && inventory->n_gpus > 0 && inventory->gpus[0].source &&
	       strcmp(inventory->gpus[0].source, GRAFT_SOURCE_NVML) == 0;
}

int graft_cdi_fingerprint_make(const struct graft_inventory *inventory, bool gpus, const char *boot_id,
			       struct graft_arena *arena, struct graft_cdi_fingerprint *ret_fingerprint,
			       struct graft_error *err)
{
	gpus = gpus && !knows_only_nvml(inventory);
	struct graft_cdi_fingerprint made = { .driver_version = inventory->driver_version.value, .boot_id = boot_id };

	if (gpus) {
		made.gpus = "";
		made.mig = "";
	}
	for (size_t i = 0; gpus && i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (gpu->excluded)
			continue;
		made.gpus = add_fingerprint_gpu(made.gpus, gpu, arena);
		made.mig = made.gpus ? add_fingerprint_migs(made.mig, gpu, arena) : NULL;
		if (!made.mig)
			return graft_fail_memory(err);
	}
	*ret_fingerprint = made;
	return 0;
}

/* --- flags --- */

static bool is_plain_flag_character(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != ';' && c != '%';
}

const char *graft_cdi_flags_write(const char *const *words, size_t n, struct graft_arena *arena)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t length = 1;
	char *text, *at;

	for (size_t i = 0; i < n; i++)
		length += 3 * strlen(words[i]) + 1;
	text = at = graft_arena_alloc(arena, length);
	for (size_t i = 0; text && i < n; i++) {
		if (i > 0)
			*at++ = ' ';
		for (const char *c = words[i]; *c != '\0'; c++) {
			if (is_plain_flag_character((unsigned char)*c)) {
				*at++ = *c;
				continue;
			}
			*at++ = '%';
			*at++ = digits[(unsigned char)*c >> 4];
			*at++ = digits[(unsigned char)*c & 15];
		}
	}
	return text;
}

static int flag_digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/*
 * Decodes in place. An encoded NUL, which no argument contains, and invalid escapes stay as they
 * are.
 */
static void decode_flag(char *word)
{
	char *to = word;

	for (const char *at = word; *at != '\0';) {
		int high = at[0] == '%' ? flag_digit_of(at[1]) : -1, low = high >= 0 ? flag_digit_of(at[2]) : -1;

		if (low >= 0 && high + low > 0) {
			*to++ = (char)(high << 4 | low);
			at += 3;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
}

int graft_cdi_flags_read(const char *text, struct graft_arena *arena, const char ***ret_words, size_t *ret_n,
			 struct graft_error *err)
{
	*ret_words = NULL;
	*ret_n = 0;
	for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
		size_t length = strcspn(text, " ");
		char *word = graft_arena_strndup(arena, text, length);
		const char **slot = word ? graft_arena_push(arena, ret_words, ret_n, sizeof(*slot)) : NULL;

		if (!slot)
			return graft_fail_memory(err);
		decode_flag(word);
		*slot = word;
		text += length;
	}
	return 0;
}

/* --- storing --- */

static int annotate(const struct graft_cdi_fingerprint *fingerprint, struct graft_arena *arena,
		    struct graft_cdi_spec *spec)
{
	for (size_t i = 0; i < GRAFT_COUNT(facts); i++) {
		const char *value = get_fingerprint_fact(fingerprint, i);
		struct graft_cdi_annotation *slot;

		if (!value)
			continue;
		slot = graft_arena_push(arena, &spec->annotations, &spec->n_annotations, sizeof(*slot));
		if (!slot)
			return -1;
		*slot = (struct graft_cdi_annotation){ facts[i].key, value };
	}
	return 0;
}

static int add_fingerprint_variable(const struct graft_cdi_fingerprint *fingerprint, struct graft_arena *arena,
				    struct graft_cdi_hook *hook)
{
	const char *text = VARIABLE;

	for (size_t i = 0; text && i < GRAFT_COUNT(facts); i++) {
		const char *value = get_fingerprint_fact(fingerprint, i);

		if (value)
			text = graft_arena_printf(arena, "%s%s%s=%s", text, strcmp(text, VARIABLE) != 0 ? ";" : "",
						  facts[i].key + strlen(KEY_PREFIX), value);
	}
	return text && graft_arena_push_string(arena, &hook->env, &hook->n_env, text) ? 0 : -1;
}

/* A specification of leases has no hook that all devices share. */
static struct graft_cdi_hook *find_first_hook(const struct graft_cdi_spec *spec)
{
	if (spec->edits.n_hooks > 0)
		return &spec->edits.hooks[0];
	return spec->n_devices > 0 && spec->devices[0].edits.n_hooks > 0 ? &spec->devices[0].edits.hooks[0] : NULL;
}

int graft_cdi_fingerprint_store(const struct graft_cdi_fingerprint *fingerprint, enum graft_cdi_provenance where,
				struct graft_arena *arena, struct graft_cdi_spec *spec, struct graft_error *err)
{
	bool annotated = where == GRAFT_CDI_PROVENANCE_ANNOTATIONS ||
			 strcmp(graft_cdi_spec_minimum_version(spec), ANNOTATED) >= 0;
	struct graft_cdi_hook *hook = find_first_hook(spec);
	int rc;

	if (where == GRAFT_CDI_PROVENANCE_NONE || (!annotated && !hook))
		return 0;
	rc = annotated ? annotate(fingerprint, arena, spec) : add_fingerprint_variable(fingerprint, arena, hook);
	return rc < 0 ? graft_fail_memory(err) : 1;
}

/* --- finding --- */

static bool find_annotations(const struct graft_cdi_spec *spec, struct graft_cdi_fingerprint *fingerprint)
{
	bool found = false;

	for (size_t i = 0; i < spec->n_annotations; i++) {
		for (size_t j = 0; j < GRAFT_COUNT(facts); j++) {
			if (strcmp(spec->annotations[i].key, facts[j].key) != 0)
				continue;
			set_fingerprint_fact(fingerprint, j, spec->annotations[i].value);
			found = true;
		}
	}
	return found;
}

/* Facts of other releases are ignored. */
static int split_variable(const char *text, struct graft_arena *arena, struct graft_cdi_fingerprint *fingerprint)
{
	while (*text != '\0') {
		size_t length = strcspn(text, ";");

		for (size_t i = 0; i < GRAFT_COUNT(facts); i++) {
			const char *key = facts[i].key + strlen(KEY_PREFIX);
			size_t key_length = strlen(key);
			const char *value;

			if (length <= key_length || strncmp(text, key, key_length) != 0 || text[key_length] != '=')
				continue;
			value = graft_arena_strndup(arena, text + key_length + 1, length - key_length - 1);
			if (!value)
				return -1;
			set_fingerprint_fact(fingerprint, i, value);
		}
		text += length;
		text += *text == ';';
	}
	return 0;
}

static bool is_fingerprint_variable(const char *variable)
{
	return strncmp(variable, VARIABLE, strlen(VARIABLE)) == 0;
}

static const char *find_fingerprint_variable(const struct graft_cdi_edits *edits)
{
	for (size_t i = 0; i < edits->n_hooks; i++) {
		for (size_t j = 0; j < edits->hooks[i].n_env; j++) {
			if (is_fingerprint_variable(edits->hooks[i].env[j]))
				return edits->hooks[i].env[j] + strlen(VARIABLE);
		}
	}
	return NULL;
}

int graft_cdi_fingerprint_find(const struct graft_cdi_spec *spec, struct graft_arena *arena,
			       struct graft_cdi_fingerprint *ret_fingerprint, struct graft_error *err)
{
	const char *variable;

	*ret_fingerprint = (struct graft_cdi_fingerprint){ .gpus = NULL };
	if (find_annotations(spec, ret_fingerprint))
		return 1;
	variable = find_fingerprint_variable(&spec->edits);
	if (!variable && spec->n_devices > 0)
		variable = find_fingerprint_variable(&spec->devices[0].edits);
	if (!variable)
		return 0;
	return split_variable(variable, arena, ret_fingerprint) < 0 ? graft_fail_memory(err) : 1;
}

static void drop_variable(struct graft_cdi_hook *hook, struct graft_arena *arena)
{
	const struct graft_cdi_hook whole = *hook;

	hook->env = NULL;
	hook->n_env = 0;
	for (size_t i = 0; i < whole.n_env; i++) {
		if (!is_fingerprint_variable(whole.env[i]))
			(void)graft_arena_push_string(arena, &hook->env, &hook->n_env, whole.env[i]);
	}
}

int graft_cdi_fingerprint_drop(struct graft_cdi_edits *edits, struct graft_arena *arena, struct graft_error *err)
{
	if (!find_fingerprint_variable(edits))
		return 0;
	edits->hooks = graft_arena_memdup(arena, edits->hooks, edits->n_hooks * sizeof(*edits->hooks));
	for (size_t i = 0; edits->hooks && i < edits->n_hooks; i++)
		drop_variable(&edits->hooks[i], arena);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* --- comparing --- */

/* One item "PLACE=VALUE" of a comma-separated list. */
struct item {
	const char *text;
	size_t length, place; /* of the whole item; of the part before the '=' */
};

/* Finds the next item starting at `at`. Returns false at the end. */
static bool next_place_item(const char **at, struct item *ret_item)
{
	const char *text = *at, *equals;
	size_t length = strcspn(text, ",");

	if (length == 0)
		return false;
	equals = memchr(text, '=', length);
	*ret_item = (struct item){ text, length, equals ? (size_t)(equals - text) : length };
	*at = text + length + (text[length] == ',');
	return true;
}

static bool find_gpu_place(const char *list, const struct item *wanted, struct item *ret_item)
{
	while (next_place_item(&list, ret_item)) {
		if (ret_item->place == wanted->place && strncasecmp(ret_item->text, wanted->text, wanted->place) == 0)
			return true;
	}
	return false;
}

static size_t value_length(const struct item *item)
{
	return item->length - item->place - (item->length > item->place);
}

static const char *value_of(const struct item *item)
{
	return item->text + item->length - value_length(item);
}

static bool same_value(const struct item *a, const struct item *b)
{
	return value_length(a) == value_length(b) && strncasecmp(value_of(a), value_of(b), value_length(a)) == 0;
}

/*
 * Compares the GPUs at each place in both directions. Returns a sentence about the first
 * difference, or NULL.
 */
static const char *compare_gpus(const char *made, const char *now, struct graft_arena *arena)
{
	struct item item, other;

	for (const char *at = made; next_place_item(&at, &item);) {
		if (!find_gpu_place(now, &item, &other))
			return graft_arena_printf(arena, "the GPU at %.*s is no longer there", (int)item.place,
						  item.text);
		if (value_length(&item) > 0 && value_length(&other) > 0 && !same_value(&item, &other))
			return graft_arena_printf(arena, "at %.*s there is another GPU: %.*s instead of %.*s",
						  (int)item.place, item.text, (int)value_length(&other),
						  value_of(&other), (int)value_length(&item), value_of(&item));
	}
	for (const char *at = now; next_place_item(&at, &item);) {
		if (!find_gpu_place(made, &item, &other))
			return graft_arena_printf(arena, "the GPU at %.*s is new", (int)item.place, item.text);
	}
	return NULL;
}

static const char *compare_mig(const char *made, const char *now, struct graft_arena *arena)
{
	const char *const lists[] = { made, now };

	for (size_t i = 0; i < GRAFT_COUNT(lists); i++) {
		const char *at = lists[i], *others = lists[1 - i];
		struct item item, other;

		while (next_place_item(&at, &item)) {
			if (!find_gpu_place(others, &item, &other) || !same_value(&item, &other))
				return graft_arena_printf(arena, "the MIG devices of the GPU at %.*s have changed",
							  (int)item.place, item.text);
		}
	}
	return NULL;
}

/* --- narrowing --- */

/* Returns whether a device name refers to the GPU of an item, which is at that index. */
static bool names_gpu(const char *device, const struct item *item, unsigned long index)
{
	char *end;

	if (device[0] >= '0' && device[0] <= '9')
		return strtoul(device, &end, 10) == index && *end == '\0';
	return value_length(item) == strlen(device) && strncasecmp(device, value_of(item), value_length(item)) == 0;
}

static bool is_some_gpu(const char *list, const char *device)
{
	struct item item;

	for (unsigned long index = 0; next_place_item(&list, &item); index++)
		if (names_gpu(device, &item, index))
			return true;
	return false;
}

static bool is_gpu_among(const struct item *item, unsigned long index, const char *const *devices, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (names_gpu(devices[i], item, index))
			return true;
	return false;
}

/* Returns a list without the items at the given places. */
static const char *without(const char *list, const char *const *places, size_t n, struct graft_arena *arena)
{
	const char *text = "";
	struct item item;

	while (text && next_place_item(&list, &item)) {
		bool found = false;

		for (size_t i = 0; i < n && !found; i++)
			found = strlen(places[i]) == item.place && strncasecmp(places[i], item.text, item.place) == 0;
		if (!found)
			text = graft_arena_printf(arena, "%s%s%.*s", text, text[0] != '\0' ? "," : "", (int)item.length,
						  item.text);
	}
	return text;
}

int graft_cdi_fingerprint_narrow(struct graft_cdi_fingerprint *made, const char *const *devices, size_t n_devices,
				 struct graft_arena *arena, const char ***ret_places, size_t *ret_n,
				 struct graft_error *err)
{
	unsigned long index = 0;
	struct item item;

	*ret_places = NULL;
	*ret_n = 0;
	if (!made->gpus || n_devices == 0)
		return 0;
	for (size_t i = 0; i < n_devices; i++)
		if (!is_some_gpu(made->gpus, devices[i]))
			return 0;
	for (const char *at = made->gpus; next_place_item(&at, &item); index++)
		if (!is_gpu_among(&item, index, devices, n_devices))
			(void)graft_arena_push_string(arena, ret_places, ret_n,
						      graft_arena_strndup(arena, item.text, item.place));
	if (made->mig)
		made->mig = without(made->mig, *ret_places, *ret_n, arena);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* --- nodes --- */

static const struct graft_cdi_device *find_compared_device(const struct graft_cdi_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->n_devices; i++)
		if (strcmp(spec->devices[i].name, name) == 0)
			return &spec->devices[i];
	return NULL;
}

/*
 * Returns the name of another GPU's node that a device has instead of `name`; NULL if it has
 * `name`, or no GPU's node.
 */
static const char *find_other_node(const struct graft_cdi_device *device, const char *name)
{
	const char *other = NULL;

	for (size_t i = 0; i < device->edits.n_nodes; i++) {
		const struct graft_cdi_node *node = &device->edits.nodes[i];
		const char *have = graft_path_name(node->host_path ? node->host_path : node->path);

		if (strcmp(have, name) == 0)
			return NULL;
		if (graft_is_gpu_node_name(have))
			other = have;
	}
	return other;
}

static const struct graft_gpu *find_gpu_at_place(const struct graft_inventory *inventory, const struct item *item)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const char *place = inventory->gpus[i].bus_id;

		if (place && strlen(place) == item->place && strncasecmp(place, item->text, item->place) == 0)
			return &inventory->gpus[i];
	}
	return NULL;
}

int graft_cdi_fingerprint_compare_nodes(const struct graft_cdi_fingerprint *made, const struct graft_inventory *now,
					const struct graft_cdi_spec *spec, const char *const *devices, size_t n_devices,
					struct graft_arena *arena, const char **ret_why, struct graft_error *err)
{
	unsigned long index = 0;
	struct item item;

	*ret_why = NULL;
	for (const char *at = made->gpus ? made->gpus : ""; !*ret_why && next_place_item(&at, &item); index++) {
		const struct graft_gpu *gpu = find_gpu_at_place(now, &item);

		for (size_t i = 0; gpu && gpu->node.path && i < n_devices && !*ret_why; i++) {
			const struct graft_cdi_device *device = names_gpu(devices[i], &item, index)
								    ? find_compared_device(spec, devices[i])
								    : NULL;
			const char *name = graft_path_name(gpu->node.path);
			const char *other = device ? find_other_node(device, name) : NULL;

			if (other)
				*ret_why = graft_arena_printf(arena, "the GPU at %.*s is /dev/%s now, not /dev/%s",
							      (int)item.place, item.text, name, other);
		}
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

int graft_cdi_fingerprint_compare(const struct graft_cdi_fingerprint *made, const struct graft_cdi_fingerprint *now,
				  struct graft_arena *arena, const char **ret_why, struct graft_error *err)
{
	const char *why = NULL;

	if (made->driver_version && now->driver_version && strcmp(made->driver_version, now->driver_version) != 0)
		why = graft_arena_printf(arena, "it was made for driver %s, and this host has %s", made->driver_version,
					 now->driver_version);
	else if (made->gpus && now->gpus)
		why = compare_gpus(made->gpus, now->gpus, arena);
	if (!why && made->mig && now->mig)
		why = compare_mig(made->mig, now->mig, arena);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	*ret_why = why;
	return 0;
}
