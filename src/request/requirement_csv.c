/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement_csv: removes the parts that have no meaning in mode csv, has the rest evaluated, and
 * formats the error.
 */
#include "request/requirement.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/cleanup.h"

#define OPERATORS "<>=!"
#define SHOWN_MAX 200 /* bytes of a condition in a message */

struct piece {
	const char *at;
	size_t length;
};

static const struct {
	const char *name;
	size_t offset; /* of the fact */
} properties[] = {
	{ "cuda", offsetof(struct graft_requirement_facts, cuda) },
	{ "arch", offsetof(struct graft_requirement_facts, arch) },
	{ "driver", offsetof(struct graft_requirement_facts, driver) },
	{ "brand", offsetof(struct graft_requirement_facts, brand) },
};

/* Returns the index of the property that a piece refers to, or -1. */
static int property_of(const struct piece *piece)
{
	size_t length = 0;

	while (length < piece->length && !strchr(OPERATORS, piece->at[length]))
		length++;
	for (size_t i = 0; i < GRAFT_COUNT(properties); i++) {
		if (strlen(properties[i].name) == length && strncasecmp(properties[i].name, piece->at, length) == 0)
			return (int)i;
	}
	return -1;
}

/* A piece without an operator is kept: it is malformed, and the evaluator reports it. */
static bool says_something(const struct piece *piece)
{
	for (size_t i = 0; i < piece->length; i++) {
		if (strchr(OPERATORS, piece->at[i]))
			return property_of(piece) >= 0;
	}
	return true;
}

/*
 * Finds the next part of a text that ends at `end`, between separators. Returns false at the end.
 */
static bool next_piece(const char **at, const char *end, char separator, struct piece *ret_piece)
{
	while (*at < end && **at == separator)
		(*at)++;
	ret_piece->at = *at;
	while (*at < end && **at != separator)
		(*at)++;
	ret_piece->length = (size_t)(*at - ret_piece->at);
	return ret_piece->length > 0;
}

/*
 * Removes the pieces that refer to unknown properties, and alternatives that consist only of such
 * pieces.
 */
static void reduce(const char *expression, struct graft_buffer *out)
{
	const char *at = expression, *end = expression + strlen(expression);
	struct piece alternative, piece;

	while (next_piece(&at, end, ' ', &alternative)) {
		const char *inner = alternative.at;
		bool first = true;

		while (next_piece(&inner, alternative.at + alternative.length, ',', &piece)) {
			if (!says_something(&piece))
				continue;
			graft_buffer_string(out, first ? (out->length > 0 ? " " : "") : ",");
			graft_buffer_add(out, piece.at, piece.length);
			first = false;
		}
	}
}

/* Formats "cuda>=12.4 (cuda=12.2)": the first condition, and the known value of its property. */
static int refuse_csv_requirement(const char *expression, const struct graft_requirement_facts *facts,
				  struct graft_error *err)
{
	struct piece piece = { expression, strcspn(expression, " ,") };
	int property = property_of(&piece);
	const char *fact = NULL;

	if (property >= 0)
		memcpy(&fact, (const char *)facts + properties[property].offset, sizeof(fact));
	return graft_fail(err, GRAFT_REQUIREMENT, 0, "requirements not met: unsatisfied condition: %.*s (%s=%s)",
			  piece.length < SHOWN_MAX ? (int)piece.length : SHOWN_MAX, piece.at,
			  property >= 0 ? properties[property].name : "fact", fact ? fact : "");
}

static int check_csv_requirement(const char *expression, const struct graft_requirement_facts *facts,
				 unsigned int *ret_missing, struct graft_error *err)
{
	enum graft_requirement_result result;
	unsigned int missing;

	if (graft_requirement_evaluate(expression, facts, &result, &missing, err) < 0)
		return graft_wrap(err, "requirements not met: '%.*s'", SHOWN_MAX, expression);
	if (result == GRAFT_REQUIREMENT_FALSE)
		return refuse_csv_requirement(expression, facts, err);
	if (result == GRAFT_REQUIREMENT_TRUE)
		return 0;
	*ret_missing = missing;
	return 1;
}

int graft_csv_requirements(const char *const *expressions, size_t n, const struct graft_requirement_facts *facts,
			   struct graft_arena *arena, unsigned int *ret_missing, struct graft_error *err)
{
	int rc = 0;

	*ret_missing = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct graft_buffer text = { .max = 0 };
		const char *expression;

		reduce(expressions[i], &text);
		expression = graft_buffer_failed(&text) ? NULL : graft_arena_strdup(arena, graft_buffer_text(&text));
		graft_buffer_done(&text);
		if (!expression)
			return graft_fail_memory(err);
		rc = check_csv_requirement(expression, facts, ret_missing, err);
	}
	return rc;
}
