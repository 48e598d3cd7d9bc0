/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement: evaluates one expression in three values: true, false, and unknown, which means that
 * the result depends on a missing fact. Facts are expensive (CUDA version, architecture and brand
 * may need NVML), so whatever is already certain is decided without them: FALSE and UNKNOWN is
 * FALSE, TRUE or UNKNOWN is TRUE. If a missing fact would decide whether evaluation reaches
 * something malformed, the result is UNKNOWN, so that the outcome always is that of plain
 * evaluation from left to right.
 */
#include "request/requirement.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "request/request.h"

#define OPERATOR_CHARACTERS "<>=!"
#define ALTERNATIVE_MAX     384 /* bytes of an expression in an error message */
#define SHOWN_MAX           200 /* likewise in mode csv */

/* The signs of (fact - value) that an operator accepts. */
struct relation {
	const char *text;
	bool less, equal, greater;
	bool for_words; /* allowed for brand */
};
static const struct relation relations[] = {
	{ "=", false, true, false, true },  { "!=", true, false, true, true },
	{ "!", true, false, true, true }, /* QUIRK: the existing stack treats a lone "!" as "!=" */
	{ "<", true, false, false, false }, { "<=", true, true, false, false },
	{ ">", false, false, true, false }, { ">=", false, true, true, false },
};

static const struct named_fact {
	const char *name;
	enum graft_requirement_fact fact;
	bool is_version;
	size_t offset; /* of the exact value in struct graft_requirement_facts */
} named_facts[] = {
	{ "cuda", GRAFT_REQUIREMENT_CUDA, true, offsetof(struct graft_requirement_facts, cuda) },
	{ "driver", GRAFT_REQUIREMENT_DRIVER, true, offsetof(struct graft_requirement_facts, driver) },
	{ "arch", GRAFT_REQUIREMENT_ARCH, true, offsetof(struct graft_requirement_facts, arch) },
	{ "brand", GRAFT_REQUIREMENT_BRAND, false, offsetof(struct graft_requirement_facts, brand) },
};

/* A part of the expression; not terminated. */
struct span {
	const char *at;
	size_t length;
};

static bool span_is(const struct span *span, const char *word)
{
	return strlen(word) == span->length && strncasecmp(span->at, word, span->length) == 0;
}

static bool span_is_version(const struct span *span)
{
	return strspn(span->at, "0123456789.") >= span->length;
}

/*
 * Removes the next component from a version and returns it: digits without leading zeros, empty for
 * 0 and at the end.
 */
static struct span take_component(struct span *version)
{
	struct span digits;
	size_t n;

	n = strspn(version->at, ".");
	n = n < version->length ? n : version->length;
	version->at += n;
	version->length -= n;

	n = strspn(version->at, "0");
	n = n < version->length ? n : version->length;
	version->at += n;
	version->length -= n;

	digits.at = version->at;
	n = strspn(version->at, "0123456789");
	digits.length = n < version->length ? n : version->length;
	version->at += digits.length;
	version->length -= digits.length;
	return digits;
}

/*
 * Both must be versions. Components are compared as digits of any length, so no number overflows.
 */
static int compare_spans(struct span a, struct span b)
{
	while (a.length > 0 || b.length > 0) {
		struct span x = take_component(&a), y = take_component(&b);
		int order;

		if (x.length != y.length)
			return x.length < y.length ? -1 : 1;
		order = memcmp(x.at, y.at, x.length);
		if (order != 0)
			return order < 0 ? -1 : 1;
	}
	return 0;
}

/* Returns the result if the sign of (fact - value) is known to be in the range lowest..highest. */
static enum graft_requirement_result judge_signs(const struct relation *relation, int lowest, int highest)
{
	const bool accepted[] = { relation->less, relation->equal, relation->greater };
	bool some = false, every = true;

	for (int sign = lowest; sign <= highest; sign++) {
		some = some || accepted[sign + 1];
		every = every && accepted[sign + 1];
	}
	if (every)
		return GRAFT_REQUIREMENT_TRUE;
	return some ? GRAFT_REQUIREMENT_UNKNOWN : GRAFT_REQUIREMENT_FALSE;
}

/*
 * Returns the sign of (fact - value); `otherwise` if the fact is missing, -2 if it is not a
 * version.
 */
static int sign_of(const char *fact, const struct span *value, int otherwise)
{
	struct span span = { fact, fact ? strlen(fact) : 0 };

	if (!fact)
		return otherwise;
	return span_is_version(&span) ? compare_spans(span, *value) : -2;
}

enum outcome { OUTCOME_FALSE, OUTCOME_TRUE, OUTCOME_UNKNOWN, OUTCOME_MALFORMED };

static enum outcome judge_version(const struct relation *relation, const char *exact, const char *low, const char *high,
				  const struct span *value)
{
	int lowest, highest;

	if (!span_is_version(value))
		return OUTCOME_MALFORMED;
	lowest = sign_of(exact ? exact : low, value, -1);
	highest = sign_of(exact ? exact : high, value, 1);
	if (lowest == -2 || highest == -2)
		return OUTCOME_MALFORMED;
	return (enum outcome)judge_signs(relation, lowest, highest);
}

static enum outcome judge_brand(const struct relation *relation, const char *exact, const struct span *value)
{
	int sign;

	if (!relation->for_words)
		return OUTCOME_MALFORMED;
	if (!exact)
		return OUTCOME_UNKNOWN;
	sign = span_is(value, exact) ? 0 : 1;
	return (enum outcome)judge_signs(relation, sign, sign);
}

static const struct relation *find_relation(const struct span *text)
{
	for (size_t i = 0; i < GRAFT_COUNT(relations); i++) {
		if (span_is(text, relations[i].text))
			return &relations[i];
	}
	return NULL;
}

/*
 * Returns what is before a comparison's operator: all of it if there is none. It does not look past
 * the comparison, since an image may have many.
 */
static struct span name_of_fact(const struct span *comparison)
{
	size_t length = 0;

	while (length < comparison->length && !strchr(OPERATOR_CHARACTERS, comparison->at[length]))
		length++;
	return (struct span){ comparison->at, length };
}

/* Returns the row of the fact that a comparison is about, or NULL. */
static const struct named_fact *find_fact(const struct span *comparison)
{
	const struct span name = name_of_fact(comparison);

	for (size_t i = 0; i < GRAFT_COUNT(named_facts); i++) {
		if (span_is(&name, named_facts[i].name))
			return &named_facts[i];
	}
	return NULL;
}

static const char *value_of_fact(const struct graft_requirement_facts *facts, const struct named_fact *fact)
{
	const char *value;

	memcpy(&value, (const char *)facts + fact->offset, sizeof(value));
	return value;
}

/*
 * Evaluates one comparison. If the outcome is UNKNOWN, *ret_missing is the bit of the missing fact.
 */
static enum outcome evaluate_comparison(const struct span *text, const struct graft_requirement_facts *facts,
					unsigned int *ret_missing)
{
	struct span name = name_of_fact(text), symbol, value;
	const struct named_fact *fact = find_fact(text);
	const struct relation *relation;
	const char *exact;
	bool cuda;

	if (name.length == 0 || name.length >= text->length)
		return OUTCOME_MALFORMED;
	symbol = (struct span){ text->at + name.length, strspn(text->at + name.length, OPERATOR_CHARACTERS) };
	if (name.length + symbol.length >= text->length)
		return OUTCOME_MALFORMED;
	value = (struct span){ symbol.at + symbol.length, text->length - name.length - symbol.length };
	relation = find_relation(&symbol);
	if (!relation || !fact)
		return OUTCOME_MALFORMED;
	exact = value_of_fact(facts, fact);
	/* SPEC libnvidia-container 8: a requirement on data that does not exist is satisfied */
	if (!exact && (facts->absent & fact->fact) != 0)
		return OUTCOME_TRUE;
	*ret_missing = fact->fact;
	cuda = fact->fact == GRAFT_REQUIREMENT_CUDA;
	return fact->is_version ? judge_version(relation, exact, cuda ? facts->cuda_min : NULL,
						cuda ? facts->cuda_max : NULL, &value)
				: judge_brand(relation, exact, &value);
}

/* Extracts the next non-empty part from *cursor, up to the separator or `end`. */
static bool next_part(const char **cursor, const char *end, char separator, struct span *ret_part)
{
	const char *at = *cursor;

	while (at < end && *at == separator)
		at++;
	ret_part->at = at;
	while (at < end && *at != separator)
		at++;
	ret_part->length = (size_t)(at - ret_part->at);
	*cursor = at;
	return ret_part->length > 0;
}

/*
 * Evaluates all comparisons of one alternative. *ret_needs: the facts that an UNKNOWN or MALFORMED
 * outcome depends on.
 */
static enum outcome evaluate_alternative(const struct span *alternative, const struct graft_requirement_facts *facts,
					 unsigned int *ret_needs)
{
	const char *cursor = alternative->at;
	struct span part;

	*ret_needs = 0;
	while (next_part(&cursor, alternative->at + alternative->length, ',', &part)) {
		unsigned int fact = 0;
		enum outcome outcome = evaluate_comparison(&part, facts, &fact);

		if (outcome == OUTCOME_MALFORMED || outcome == OUTCOME_FALSE)
			return outcome;
		if (outcome == OUTCOME_UNKNOWN)
			*ret_needs |= fact;
	}
	return *ret_needs != 0 ? OUTCOME_UNKNOWN : OUTCOME_TRUE;
}

int graft_requirement_evaluate(const char *expression, const struct graft_requirement_facts *facts,
			       enum graft_requirement_result *ret_result, unsigned int *ret_missing,
			       struct graft_error *err)
{
	const char *cursor = expression, *end = expression + strlen(expression);
	enum outcome outcome = OUTCOME_TRUE; /* for an empty expression */
	unsigned int missing = 0;
	struct span alternative;

	while (outcome != OUTCOME_MALFORMED && next_part(&cursor, end, ' ', &alternative)) {
		unsigned int needs;

		outcome = evaluate_alternative(&alternative, facts, &needs);
		if (outcome == OUTCOME_TRUE) {
			missing = 0;
			break;
		}
		if (outcome != OUTCOME_FALSE)
			missing |= needs;
	}
	/*
	 * While a fact is missing, it is not known whether evaluation reaches the malformed part.
	 */
	if (outcome == OUTCOME_MALFORMED && missing == 0)
		return graft_fail(err, GRAFT_EXPRESSION, 0, "invalid expression");
	*ret_missing = missing;
	if (missing != 0)
		*ret_result = GRAFT_REQUIREMENT_UNKNOWN;
	else
		*ret_result = outcome == OUTCOME_TRUE ? GRAFT_REQUIREMENT_TRUE : GRAFT_REQUIREMENT_FALSE;
	return 0;
}

int graft_requirement_fail(const char *expression, struct graft_error *err)
{
	static const char update_driver[] =
	    ", please update your driver to a newer version, or use an earlier cuda container";
	static const char cuda_at_least[] = "cuda>=";
	bool cuda = strncmp(expression, cuda_at_least, strlen(cuda_at_least)) == 0;
	size_t length = strcspn(expression, " ");

	/* If anything is truncated, it is the alternative: the sentence after it is what helps. */
	if (length > ALTERNATIVE_MAX)
		length = ALTERNATIVE_MAX;
	return graft_fail(err, GRAFT_REQUIREMENT, 0, "unsatisfied condition: %.*s%s", (int)length, expression,
			  cuda ? update_driver : "");
}

/* ---- mode csv ---- */

/*
 * Whether a comparison counts. One of an unknown fact does not; one without an operator does,
 * because it is malformed, which the evaluation reports.
 */
static bool says_something(const struct span *comparison)
{
	return find_fact(comparison) || name_of_fact(comparison).length == comparison->length;
}

/* Removes the comparisons of unknown facts, and alternatives that consist only of such. */
static void reduce(const char *expression, struct graft_buffer *out)
{
	const char *cursor = expression, *end = expression + strlen(expression);
	struct span alternative, part;

	while (next_part(&cursor, end, ' ', &alternative)) {
		const char *inner = alternative.at;
		bool first = true;

		while (next_part(&inner, alternative.at + alternative.length, ',', &part)) {
			if (!says_something(&part))
				continue;
			graft_buffer_string(out, first ? (out->length > 0 ? " " : "") : ",");
			graft_buffer_add(out, part.at, part.length);
			first = false;
		}
	}
}

/* Formats "cuda>=12.4 (cuda=12.2)": the first comparison, and the known value of its fact. */
static int refuse_csv_requirement(const char *expression, const struct graft_requirement_facts *facts,
				  struct graft_error *err)
{
	const struct span comparison = { expression, strcspn(expression, " ,") };
	const struct named_fact *fact = find_fact(&comparison);
	const char *value = fact ? value_of_fact(facts, fact) : NULL;

	return graft_fail(err, GRAFT_REQUIREMENT, 0, "requirements not met: unsatisfied condition: %.*s (%s=%s)",
			  comparison.length < SHOWN_MAX ? (int)comparison.length : SHOWN_MAX, comparison.at,
			  fact ? fact->name : "fact", value ? value : "");
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
	if (n > GRAFT_REQUIREMENTS_MAX)
		return graft_fail(err, GRAFT_INVALID, 0, "too many requirements");
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
