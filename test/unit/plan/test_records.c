/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of the JSON forms of inventory, request, policy and plan: read(write(x)) = x and write(read(t)) = t, with random values made
 * from the field tables; the same seed gives the same values.
 */
#include <string.h>

#include "../unit.h"
#include "fixture.h"

#define ROUNDS 300

/* xorshift: small, and the same everywhere */
static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static const char *const strings[] = { "",
				       "/dev/nvidia0",
				       "a b",
				       "\"quoted\\\"",
				       "line\nline\n",
				       "\t\x01\x1f",
				       "\xc3\xa9\xe2\x82\xac",
				       "0",
				       "</script>",
				       "\xf0\x9f\x98\x80",
				       "null",
				       "{}" };

static const char *random_string(uint64_t *seed)
{
	return strings[next(seed) % GRAFT_COUNT(strings)];
}

static void randomize(const struct graft_record *record, char *object, struct graft_arena *arena, uint64_t *seed);

static void *random_list(const struct graft_field *field, size_t n, struct graft_arena *arena, uint64_t *seed)
{
	const char **texts;
	char *items;

	if (field->kind == GRAFT_FIELD_STRINGS) {
		texts = graft_arena_list(arena, n, sizeof(*texts));
		for (size_t i = 0; i < n; i++)
			texts[i] = random_string(seed);
		return texts;
	}
	items = graft_arena_list(arena, n, field->record->size);
	for (size_t i = 0; i < n; i++)
		randomize(field->record, items + i * field->record->size, arena, seed);
	return items;
}

/* Interesting numbers are as likely as any others. */
static uint64_t random_number(uint64_t *seed)
{
	static const uint64_t edges[] = { 0, 1, 9, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, UINT64_MAX };

	return next(seed) % 2 == 0 ? edges[next(seed) % GRAFT_COUNT(edges)] : next(seed);
}

static void randomize(const struct graft_record *record, char *object, struct graft_arena *arena, uint64_t *seed)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct graft_field *field = &record->fields[i];
		char *at = object + field->offset;
		uint64_t number = random_number(seed);
		size_t n = (size_t)(next(seed) % 3);
		const char *text = field->required || number % 4 != 0 ? random_string(seed) : NULL;
		uint32_t small = (uint32_t)number, bits;
		int64_t sign = (int64_t)number;
		bool yes = number % 2 == 0;
		int choice;
		void *list;

		switch (field->kind) {
		case GRAFT_FIELD_STRING:
			memcpy(at, &text, sizeof(text));
			break;
		case GRAFT_FIELD_BOOL:
			memcpy(at, &yes, sizeof(yes));
			break;
		case GRAFT_FIELD_U32:
			memcpy(at, &small, sizeof(small));
			break;
		case GRAFT_FIELD_U64:
			memcpy(at, &number, sizeof(number));
			break;
		case GRAFT_FIELD_I64:
			memcpy(at, &sign, sizeof(sign));
			break;
		case GRAFT_FIELD_ENUM:
			choice = (int)(number % field->n_enum_names);
			memcpy(at, &choice, sizeof(choice));
			break;
		case GRAFT_FIELD_FLAGS:
			bits = small & ((1u << field->n_enum_names) - 1u);
			memcpy(at, &bits, sizeof(bits));
			break;
		case GRAFT_FIELD_STRINGS:
		case GRAFT_FIELD_RECORDS:
			list = random_list(field, n, arena, seed);
			memcpy(at, &list, sizeof(list));
			memcpy(object + field->count_offset, &n, sizeof(n));
			break;
		case GRAFT_FIELD_RECORD:
			if (yes)
				randomize(field->record, at, arena, seed);
			break;
		}
	}
}

static void check_round(const struct graft_record *record, uint64_t seed)
{
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	char *object = graft_arena_alloc(arena, record->size), *again = graft_arena_alloc(arena, record->size);
	struct graft_buffer text = { 0 }, text_again = { 0 };
	struct graft_error err = { 0 };
	uint64_t state = seed;
	char path[256] = "";

	randomize(record, object, arena, &state);
	assert_false(graft_arena_failed(arena));
	graft_record_write(record, object, &text);
	assert_false(graft_buffer_failed(&text));
	if (graft_record_read(record, graft_buffer_text(&text), text.length, arena, again, &err) < 0)
		fail_msg("%s, seed %llu: %s\n%s", record->name, (unsigned long long)seed, err.msg,
			 graft_buffer_text(&text));
	if (!graft_record_equal(record, object, again, path, sizeof(path)))
		fail_msg("%s, seed %llu: differs at %s", record->name, (unsigned long long)seed, path);
	graft_record_write(record, again, &text_again);
	assert_string_equal(graft_buffer_text(&text), graft_buffer_text(&text_again));
	graft_buffer_done(&text);
	graft_buffer_done(&text_again);
	(void)graft_arena_free(arena);
}

static void test_random_values_survive(void **state)
{
	static const struct graft_record *const records[] = { &graft_inventory_record, &graft_request_record,
							      &graft_policy_record, &graft_plan_record };

	for (size_t i = 0; i < GRAFT_COUNT(records); i++) {
		for (uint64_t seed = 1; seed <= ROUNDS; seed++)
			check_round(records[i], seed * 0x9e3779b97f4a7c15u);
	}
}

/* Every field of a table is documented, has its own name and lies inside the struct. */
static void check_table(const struct graft_record *record, unsigned int depth)
{
	assert_true(depth < 16);
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct graft_field *field = &record->fields[i];

		assert_non_null(field->doc);
		if (strlen(field->doc) < 3)
			fail_msg("%s.%s has no documentation", record->name, field->name);
		assert_true(field->offset < record->size);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(field->name, record->fields[j].name);
			assert_int_not_equal(field->offset, record->fields[j].offset);
		}
		if (field->record)
			check_table(field->record, depth + 1);
	}
}

static void test_tables(void **state)
{
	check_table(&graft_inventory_record, 0);
	check_table(&graft_request_record, 0);
	check_table(&graft_policy_record, 0);
	check_table(&graft_plan_record, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_values_survive),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
