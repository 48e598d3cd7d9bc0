/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "host/catalog.h"
#include "host/inventory.h"

static void assert_read_fails(const char *json, enum graft_status status, const char *part)
{
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { 0 };

	assert_int_equal(graft_inventory_read(json, strlen(json), &inventory, &err), -1);
	assert_null(inventory);
	assert_int_equal(err.status, status);
	if (!strstr(err.msg, part))
		fail_msg("'%s' is not in '%s'", part, err.msg);
}

static void test_reading_is_strict(void **state)
{
	assert_read_fails("", GRAFT_FORMAT, "");
	assert_read_fails("[]", GRAFT_FORMAT, "");
	assert_read_fails("{\"platform\": \"none\"}", GRAFT_FORMAT, "version");
	assert_read_fails("{\"version\": 2, \"something\": [\"new\"]}", GRAFT_UNSUPPORTED, "2");
	assert_read_fails("{\"platform\": \"none\", \"version\": 2}", GRAFT_UNSUPPORTED, "2");
	assert_read_fails("{\"version\": 1, \"platform\": \"none\", \"gpus\": [{\"index\": 0, \"minr\": 1}]}",
			  GRAFT_FORMAT, "gpus[0].minr");
	assert_read_fails("{\"version\": 1, \"platform\": \"amiga\"}", GRAFT_FORMAT, "platform");
	assert_read_fails("{\"version\": 1, \"platform\": \"none\", \"nodes\": [{\"major\": -1}]}", GRAFT_FORMAT,
			  "nodes[0].major");
}

static void test_empty_inventory(void **state)
{
	struct graft_inventory *inventory = graft_inventory_new(), *copy;
	struct graft_buffer out = { 0 };
	struct graft_error err = { 0 };

	graft_inventory_write(inventory, &out);
	assert_string_equal(out.bytes, "{\n  \"version\": 1,\n  \"platform\": \"none\"\n}\n");
	assert_int_equal(graft_inventory_read(out.bytes, out.length, &copy, &err), 0);
	assert_true(graft_record_equal(&graft_inventory_record, inventory, copy, NULL, 0));
	graft_buffer_done(&out);
	assert_null(graft_inventory_free(inventory));
	assert_null(graft_inventory_free(copy));
	assert_null(graft_inventory_free(NULL));
}

/* A small generator: the same seed gives the same inventory. */
static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static const char *text(uint32_t *seed, struct graft_arena *arena)
{
	static const char *const texts[] = { "/dev/nvidia0",         "GPU-1",    "", "a \"quoted\" \\ text",
					     "\xc3\xa9\xe2\x82\xac", "tab\there" };
	uint32_t n = next(seed) % 8;

	return n < 6 ? graft_arena_strdup(arena, texts[n]) : NULL;
}

static void fill(const struct graft_record *record, void *object, uint32_t *seed, struct graft_arena *arena, int depth);

static void fill_field(const struct graft_field *field, char *object, uint32_t *seed, struct graft_arena *arena,
		       int depth)
{
	void *at = object + field->offset;
	size_t n = next(seed) % 3;

	switch (field->kind) {
	case GRAFT_FIELD_STRING:
		*(const char **)at = field->required ? "required" : text(seed, arena);
		break;
	case GRAFT_FIELD_BOOL:
		*(bool *)at = next(seed) % 2;
		break;
	case GRAFT_FIELD_U32:
		*(uint32_t *)at = next(seed) % 4 == 0 ? UINT32_MAX : next(seed) % 300;
		break;
	case GRAFT_FIELD_U64:
		*(uint64_t *)at = (uint64_t)next(seed) << 32;
		break;
	case GRAFT_FIELD_I64:
		*(int64_t *)at = -(int64_t)next(seed);
		break;
	case GRAFT_FIELD_ENUM:
		*(unsigned int *)at = next(seed) % (uint32_t)field->n_enum_names;
		break;
	case GRAFT_FIELD_FLAGS:
		*(uint32_t *)at = next(seed) & ((1u << field->n_enum_names) - 1);
		break;
	case GRAFT_FIELD_STRINGS:
		for (size_t i = 0; i < n; i++)
			assert_non_null(
			    graft_arena_push_string(arena, at, (size_t *)(void *)(object + field->count_offset), "s"));
		break;
	case GRAFT_FIELD_RECORD:
		fill(field->record, at, seed, arena, depth + 1);
		break;
	case GRAFT_FIELD_RECORDS:
		for (size_t i = 0; i < n && depth < 4; i++) {
			void *item = graft_arena_push(arena, at, (size_t *)(void *)(object + field->count_offset),
						      field->record->size);

			assert_non_null(item);
			fill(field->record, item, seed, arena, depth + 1);
		}
		break;
	}
}

static void fill(const struct graft_record *record, void *object, uint32_t *seed, struct graft_arena *arena, int depth)
{
	for (size_t i = 0; i < record->n_fields; i++)
		fill_field(&record->fields[i], object, seed, arena, depth);
}

/* read(write(x)) = x and write(read(t)) = t for inventories of all shapes. */
static void test_property_round_trip(void **state)
{
	for (uint32_t round = 1; round <= 200; round++) {
		struct graft_inventory *inventory = graft_inventory_new(), *copy = NULL;
		struct graft_buffer first = { 0 }, second = { 0 };
		struct graft_error err = { 0 };
		uint32_t seed = round;
		char path[256];

		fill(&graft_inventory_record, inventory, &seed, inventory->arena, 0);
		inventory->version = GRAFT_INVENTORY_VERSION;
		graft_inventory_write(inventory, &first);
		if (graft_inventory_read(first.bytes, first.length, &copy, &err) < 0)
			fail_msg("round %u: %s", round, err.msg);
		if (!graft_record_equal(&graft_inventory_record, inventory, copy, path, sizeof(path)))
			fail_msg("round %u: differs at %s", round, path);
		graft_inventory_write(copy, &second);
		assert_string_equal(first.bytes, second.bytes);
		graft_buffer_done(&first);
		graft_buffer_done(&second);
		(void)graft_inventory_free(inventory);
		(void)graft_inventory_free(copy);
	}
}

static void assert_reason(const char *name, const char *why)
{
	if (!why || strlen(why) < 4)
		fail_msg("%s has no reason", name);
}

/* Tables are tested as tables. */
static void test_catalog(void **state)
{
	for (size_t i = 0; i < graft_n_catalog_libraries; i++) {
		const struct graft_catalog_library *row = &graft_catalog_libraries[i];

		assert_reason(row->prefix, row->why);
		/* The search relies on prefixes that end with their first ".so", and begin with "lib". */
		assert_int_equal(strncmp(row->prefix, "lib", 3), 0);
		assert_string_equal(strstr(row->prefix, ".so"), ".so");
		/* Classes come in their order; no library twice, none also refused. */
		if (i > 0)
			assert_true(row->class_ >= graft_catalog_libraries[i - 1].class_);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(row->prefix, graft_catalog_libraries[j].prefix);
		for (size_t j = 0; j < graft_n_catalog_refusals; j++)
			assert_string_not_equal(row->prefix, graft_catalog_refusals[j].name);
	}
	for (size_t i = 0; i < graft_n_catalog_binaries; i++) {
		assert_reason(graft_catalog_binaries[i].name, graft_catalog_binaries[i].why);
		for (size_t j = 0; j < graft_n_catalog_refusals; j++)
			assert_string_not_equal(graft_catalog_binaries[i].name, graft_catalog_refusals[j].name);
	}
	for (size_t i = 0; i < graft_n_catalog_refusals; i++)
		assert_reason(graft_catalog_refusals[i].name, graft_catalog_refusals[i].why);
	for (size_t i = 0; i < graft_n_catalog_nodes; i++)
		assert_reason(graft_catalog_nodes[i].path, graft_catalog_nodes[i].why);
	for (size_t i = 0; i < graft_n_catalog_ipcs; i++)
		assert_reason("ipc", graft_catalog_ipcs[i].why);
	for (size_t i = 0; i < graft_n_catalog_extras; i++)
		assert_reason(graft_catalog_extras[i].name, graft_catalog_extras[i].why);
	for (size_t i = 0; i < graft_n_catalog_library_directories; i++)
		assert_reason(graft_catalog_library_directories[i].path, graft_catalog_library_directories[i].why);
	for (size_t i = 1; i < graft_n_catalog_branches; i++) {
		assert_true(graft_catalog_branches[i].branch > graft_catalog_branches[i - 1].branch);
		assert_true(strtod(graft_catalog_branches[i].cuda, NULL) >=
			    strtod(graft_catalog_branches[i - 1].cuda, NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reading_is_strict),
		cmocka_unit_test(test_empty_inventory),
		cmocka_unit_test(test_property_round_trip),
		cmocka_unit_test(test_catalog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
