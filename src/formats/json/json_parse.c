/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_parse: parses text into a tree, in one pass: RFC 8259 and nothing else. Strings are decoded
 * on the way and stored one after the other, so that reading the tree allocates nothing and cannot
 * fail. Knows nothing about edits.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "formats/json/json_tree.h"

#define ARENA_MAX     ((size_t)1 << 30)
#define NODES_AT_ONCE 256
#define ONES          UINT64_C(0x0101010101010101)
#define HIGHS         UINT64_C(0x8080808080808080)

struct scan {
	struct graft_json_document *document;
	const struct json_rules *rules;
	const char *at, *end;
	struct graft_arena *arena; /* for the decoded strings */
	char *first_string;        /* the first one that the arena does not keep yet */
	char *strings;             /* where the next one goes */
	bool roomy;                /* there is room for three bytes for each remaining byte */
	unsigned int depth;
	const char *why; /* what is wrong at `at`, once something is */
	enum graft_status status;
	bool after_comma;
};

static bool wrong(struct scan *scan, const char *why)
{
	scan->why = why;
	scan->status = GRAFT_FORMAT;
	return false;
}

/*
 * The same where something else was expected. Names the usual mistakes in configuration files:
 * comments and trailing commas.
 */
static bool unexpected(struct scan *scan, const char *expected)
{
	if (*scan->at == '#' || (*scan->at == '/' && (scan->at[1] == '/' || scan->at[1] == '*')))
		return wrong(scan, "a comment, and JSON has none");
	if ((*scan->at == '}' || *scan->at == ']') && scan->after_comma)
		return wrong(scan, "a comma before a closing bracket");
	return wrong(scan, scan->at < scan->end ? expected : "unexpected end");
}

static bool no_memory(struct scan *scan)
{
	scan->why = "";
	scan->status = GRAFT_NO_MEMORY;
	return false;
}

struct graft_json_node *json_new_node(struct graft_json_document *document)
{
	size_t size = NODES_AT_ONCE * sizeof(*document->spare);

	/* Nodes are zeroed when needed, so that the pages of unused ones stay untouched. */
	if (document->n_spare == 0) {
		document->spare = graft_arena_room(document->arena, size);
		if (!document->spare)
			return NULL;
		graft_arena_keep(document->arena, size);
		document->n_spare = NODES_AT_ONCE;
	}
	document->n_spare--;
	*document->spare = (struct graft_json_node){ .parent = NULL };
	return document->spare++;
}

/* The text ends with zeros, so looking at the next byte needs no check for the end. */
static void skip_blanks(struct scan *scan)
{
	while (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r')
		scan->at++;
}

static bool is_json_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Scans four hex digits. Returns -1 if they are missing. */
static int32_t scan_hex4(struct scan *scan)
{
	int32_t value = 0;

	for (int i = 0; i < 4; i++, scan->at++) {
		char c = *scan->at, letter = (char)(c | 0x20);

		if (is_json_digit(c))
			value = value * 16 + (c - '0');
		else if (letter >= 'a' && letter <= 'f')
			value = value * 16 + (letter - 'a' + 10);
		else
			return -1;
	}
	return value;
}

/*
 * Scans what follows "\u". Returns the code point of an escape or of a pair; U+FFFD for a lone
 * surrogate, as Go does; -1 if malformed.
 */
static int32_t scan_code_point(struct scan *scan)
{
	int32_t high = scan_hex4(scan), low = -1;
	const char *behind = scan->at;

	if (high < 0) {
		(void)wrong(scan, "bad \\u escape");
		return -1;
	}
	if (high < 0xd800 || high > 0xdfff)
		return high;
	if (high <= 0xdbff && behind[0] == '\\' && behind[1] == 'u') {
		scan->at += 2;
		low = scan_hex4(scan);
	}
	if (low >= 0xdc00 && low <= 0xdfff)
		return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	if (scan->rules->strict) {
		(void)wrong(scan, "lone surrogate");
		return -1;
	}
	scan->at = behind;
	return 0xfffd;
}

/* Scans an escape at its backslash. Returns the end of the output, or NULL if it is malformed. */
static char *scan_json_escape(struct scan *scan, char *out, bool *holds_nul)
{
	static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *letter;
	int32_t code;

	scan->at++;
	if (*scan->at == 'u') {
		scan->at++;
		code = scan_code_point(scan);
		*holds_nul = *holds_nul || code == 0;
		return code < 0 ? NULL : graft_utf8_put(out, (uint32_t)code);
	}
	letter = *scan->at != '\0' ? strchr(letters, *scan->at) : NULL;
	if (!letter) {
		(void)wrong(scan, scan->at < scan->end ? "unknown escape" : "unterminated string");
		return NULL;
	}
	scan->at++;
	*out++ = values[letter - letters];
	return out;
}

/*
 * Returns the high bit of each byte that ends a plain run: '"', '\\', a control character or a byte
 * of a multi-byte character. Correct up to and including the first such byte.
 */
static uint64_t find_special_byte(uint64_t word)
{
	uint64_t quote = word ^ ONES * '"', slash = word ^ ONES * '\\';

	return (((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((word - ONES * 0x20) & ~word) | word) & HIGHS;
}

/*
 * Copies plain characters, eight at a time, up to the first special one. Returns the end of the
 * copy.
 */
static char *copy_plain(struct scan *scan, char *out)
{
	for (;;) {
		uint64_t word, special;
		unsigned int n = 8;

		memcpy(&word, scan->at, sizeof(word));
		memcpy(out, &word, sizeof(word));
		special = find_special_byte(le64toh(word));
		if (special != 0)
			n = (unsigned int)__builtin_ctzll(special) / 8;
		scan->at += n;
		out += n;
		if (special != 0)
			return out;
	}
}

/* Makes the arena keep the strings decoded so far. */
static void keep_strings(const struct scan *scan)
{
	graft_arena_keep(scan->arena, (size_t)(scan->strings - scan->first_string));
}

/* Makes room for everything that the rest of the text may decode to. */
static bool open_strings(struct scan *scan, bool roomy)
{
	size_t left = (size_t)(scan->end - scan->at);

	scan->roomy = roomy;
	scan->first_string = scan->strings = graft_arena_room(scan->arena, (roomy ? 3 * left : left) + JSON_SLACK);
	return scan->strings || no_memory(scan);
}

/*
 * Scans a string into `out`. A malformed byte becomes U+FFFD, as in Go, which takes three bytes: if
 * there is no room for that, *ret_end is NULL.
 */
static bool scan_string_into(struct scan *scan, char *out, char **ret_end, bool *holds_nul)
{
	scan->at++;
	for (;;) {
		unsigned char c;
		size_t n;

		out = copy_plain(scan, out);
		c = (unsigned char)*scan->at;
		if (c == '"')
			break;
		if (c == '\\') {
			out = scan_json_escape(scan, out, holds_nul);
			if (!out)
				return false;
			continue;
		}
		if (c < 0x20)
			return wrong(scan,
				     scan->at < scan->end ? "control character in a string" : "unterminated string");
		n = graft_utf8_length((const unsigned char *)scan->at, (size_t)(scan->end - scan->at));
		if (n == 0 && scan->rules->strict)
			return wrong(scan, "invalid UTF-8");
		if (n == 0 && !scan->roomy) {
			*ret_end = NULL;
			return true;
		}
		memcpy(out, n > 0 ? scan->at : "\xef\xbf\xbd", n > 0 ? n : 3);
		out += n > 0 ? n : 3;
		scan->at += n > 0 ? n : 1;
	}
	scan->at++;
	*out = '\0';
	*ret_end = out + 1;
	return true;
}

/* Scans a string at its opening quote. *ret_text is NULL if the string contains a NUL. */
static bool scan_string(struct scan *scan, const char **ret_text, bool *holds_nul)
{
	const char *start = scan->at;
	char *end;

	*holds_nul = false;
	if (!scan_string_into(scan, scan->strings, &end, holds_nul))
		return false;
	if (!end) {
		scan->at = start;
		keep_strings(scan);
		if (!open_strings(scan, true) || !scan_string_into(scan, scan->strings, &end, holds_nul))
			return false;
	}
	*ret_text = *holds_nul ? NULL : scan->strings;
	scan->strings = end;
	return true;
}

static bool scan_digits(struct scan *scan)
{
	if (!is_json_digit(*scan->at))
		return wrong(scan, "malformed number");
	while (is_json_digit(*scan->at))
		scan->at++;
	return true;
}

/*
 * Returns whether the decimal digits fit into 64 bits: at most 2^64 - 1, or 2^63 after a minus
 * sign.
 */
static bool fits_64_bits(const char *digits, size_t n, bool negative)
{
	static const char largest[] = "18446744073709551615", smallest[] = "9223372036854775808";
	const char *limit = negative ? smallest : largest;

	return n < strlen(limit) || (n == strlen(limit) && memcmp(digits, limit, n) <= 0);
}

static bool scan_exponent(struct scan *scan)
{
	scan->at++;
	if (*scan->at == '+' || *scan->at == '-')
		scan->at++;
	return scan_digits(scan);
}

static bool scan_number(struct scan *scan)
{
	bool negative = *scan->at == '-';
	const char *digits = negative ? scan->at + 1 : scan->at;

	if (!negative && !is_json_digit(*digits))
		return unexpected(scan, "expected a value");
	scan->at = digits;
	if (*scan->at == '0') {
		scan->at++;
		if (is_json_digit(*scan->at))
			return wrong(scan, "number with a leading zero");
	} else if (!scan_digits(scan)) {
		return false;
	}
	if (*scan->at != '.' && *scan->at != 'e' && *scan->at != 'E') {
		if (scan->rules->strict && !fits_64_bits(digits, (size_t)(scan->at - digits), negative))
			return wrong(scan, "integer beyond 64 bits");
		return true;
	}
	if (*scan->at == '.') {
		scan->at++;
		if (!scan_digits(scan))
			return false;
	}
	return (*scan->at != 'e' && *scan->at != 'E') || scan_exponent(scan);
}

static bool scan_word(struct scan *scan, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(scan->at, word, n) != 0)
		return wrong(scan, "expected a value");
	scan->at += n;
	return true;
}

static uint32_t offset(const struct scan *scan)
{
	return (uint32_t)(scan->at - scan->document->text);
}

/* Scans a member's name and everything up to its value. */
static bool scan_name(struct scan *scan, struct graft_json_node *member)
{
	bool holds_nul;

	if (*scan->at != '"')
		return unexpected(scan, "a member name must be a string in double quotes");
	member->name_start = offset(scan);
	if (!scan_string(scan, &member->name, &holds_nul))
		return false;
	if (holds_nul && scan->rules->strict)
		return wrong(scan, "NUL in a member name");
	scan->after_comma = false;
	skip_blanks(scan);
	if (*scan->at != ':')
		return wrong(scan, "expected ':'");
	scan->at++;
	skip_blanks(scan);
	return true;
}

static bool scan_value(struct scan *scan, struct graft_json_node *node);

/* max_depth bounds the recursion. */
static bool scan_children(struct scan *scan, struct graft_json_node *container)
{
	struct graft_json_node **link = &container->first;
	char close = container->kind == GRAFT_JSON_OBJECT ? '}' : ']';

	if (++scan->depth > scan->rules->max_depth) {
		(void)wrong(scan, "nested too deeply");
		/*
		 * In our own JSON this is a defect. That of others may be correct and merely too
		 * deep for us.
		 */
		scan->status = scan->rules->strict ? GRAFT_FORMAT : GRAFT_TOO_BIG;
		return false;
	}
	scan->at++;
	skip_blanks(scan);
	scan->after_comma = false;
	while (*scan->at != close || container->first) {
		struct graft_json_node *child = json_new_node(scan->document);

		if (!child)
			return no_memory(scan);
		child->parent = container;
		*link = child;
		link = &child->next;
		if ((close == '}' && !scan_name(scan, child)) || !scan_value(scan, child))
			return false;
		scan->after_comma = false;
		skip_blanks(scan);
		if (*scan->at == close)
			break;
		if (*scan->at != ',')
			return unexpected(scan, "expected ',' or a closing bracket");
		scan->at++;
		skip_blanks(scan);
		scan->after_comma = true;
	}
	scan->at++;
	scan->depth--;
	return true;
}

static enum graft_json_kind kind_at(const struct scan *scan)
{
	switch (*scan->at) {
	case '{':
		return GRAFT_JSON_OBJECT;
	case '[':
		return GRAFT_JSON_ARRAY;
	case '"':
		return GRAFT_JSON_STRING;
	case 't':
	case 'f':
		return GRAFT_JSON_BOOL;
	case 'n':
		return GRAFT_JSON_NULL;
	default:
		return GRAFT_JSON_NUMBER;
	}
}

static bool scan_json_value(struct scan *scan, struct graft_json_node *node, enum graft_json_kind kind)
{
	bool holds_nul;

	switch (kind) {
	case GRAFT_JSON_OBJECT:
	case GRAFT_JSON_ARRAY:
		return scan_children(scan, node);
	case GRAFT_JSON_STRING:
		return scan_string(scan, &node->text, &holds_nul);
	case GRAFT_JSON_BOOL:
		return scan_word(scan, *scan->at == 't' ? "true" : "false");
	case GRAFT_JSON_NULL:
		return scan_word(scan, "null");
	case GRAFT_JSON_NUMBER:
		return scan_number(scan);
	case GRAFT_JSON_ABSENT:
		break;
	}
	return unexpected(scan, "expected a value");
}

static bool scan_value(struct scan *scan, struct graft_json_node *node)
{
	enum graft_json_kind kind = kind_at(scan);

	node->kind = (uint8_t)kind;
	node->placed = true;
	node->start = offset(scan);
	node->text = scan->at;
	if (!scan_json_value(scan, node, kind))
		return false;
	node->end = offset(scan);
	return true;
}

static bool scan_text(struct scan *scan)
{
	struct graft_json_document *document = scan->document;

	document->top.first = json_new_node(document);
	if (!document->top.first)
		return no_memory(scan);
	document->top.first->parent = &document->top;
	skip_blanks(scan);
	if (!scan_value(scan, document->top.first))
		return false;
	skip_blanks(scan);
	return scan->at == scan->end || scan->rules->may_go_on || wrong(scan, "unexpected text after the value");
}

static int fail_at(const struct scan *scan, struct graft_error *err)
{
	unsigned int line, column;

	if (scan->status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	graft_utf8_place(scan->document->text, offset(scan), &line, &column);
	if (scan->rules->name)
		return graft_fail(err, scan->status, 0, "%s: line %u, column %u: %s", scan->rules->name, line, column,
				  scan->why);
	return graft_fail(err, scan->status, 0, "invalid JSON at line %u, column %u: %s", line, column, scan->why);
}

/* Returns a copy of the text, followed by JSON_SLACK zeros. */
static char *copy_json_text(const char *text, size_t length, struct graft_arena *arena)
{
	char *copy = graft_arena_room(arena, length + JSON_SLACK);

	if (!copy)
		return NULL;
	graft_arena_keep(arena, length + JSON_SLACK);
	if (length > 0)
		memcpy(copy, text, length);
	memset(copy + length, 0, JSON_SLACK);
	return copy;
}

static struct graft_json_document *new_document(const struct json_rules *rules, const char *text, size_t length)
{
	struct graft_json_document *document = calloc(1, sizeof(*document));

	if (!document)
		return NULL;
	document->length = length;
	document->arena = graft_arena_new(ARENA_MAX);
	if (!rules->strings)
		document->strings = graft_arena_new(ARENA_MAX);
	if (document->arena && (document->strings || rules->strings)) {
		document->text = copy_json_text(text, length, document->arena);
		document->name = graft_arena_strdup(document->arena, rules->name ? rules->name : "");
	}
	if (!document->text || !document->name) {
		graft_json_document_free(document);
		return NULL;
	}
	return document;
}

int json_parse(const struct json_rules *rules, const char *text, size_t length,
	       struct graft_json_document **ret_document, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct scan scan = { .rules = rules };

	if (length > JSON_TEXT_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "%s of %zu bytes is over the limit of %zu",
				  rules->name ? rules->name : "JSON text", length, JSON_TEXT_MAX);
	document = new_document(rules, text, length);
	if (!document)
		return graft_fail_memory(err);
	scan.document = document;
	scan.arena = rules->strings ? rules->strings : document->strings;
	scan.at = document->text;
	scan.end = document->text + length;
	if (!open_strings(&scan, false) || !scan_text(&scan))
		return fail_at(&scan, err);
	keep_strings(&scan);
	*ret_document = document;
	document = NULL;
	return 0;
}

int graft_json_document_parse(const char *name, const char *text, size_t length,
			      struct graft_json_document **ret_document, struct graft_error *err)
{
	struct json_rules rules = { .name = name, .max_depth = JSON_DEPTH_MAX };

	return json_parse(&rules, text, length, ret_document, err);
}

int graft_json_document_parse_first(const char *name, const char *text, size_t length,
				    struct graft_json_document **ret_document, struct graft_error *err)
{
	struct json_rules rules = { .name = name, .max_depth = JSON_DEPTH_MAX, .may_go_on = true };

	return json_parse(&rules, text, length, ret_document, err);
}

int graft_json_document_parse_into(const char *name, const char *text, size_t length, struct graft_arena *strings,
				   struct graft_json_document **ret_document, struct graft_error *err)
{
	struct json_rules rules = { .name = name, .max_depth = JSON_DEPTH_MAX, .strings = strings };

	return json_parse(&rules, text, length, ret_document, err);
}

void graft_json_document_free(struct graft_json_document *document)
{
	if (!document)
		return;
	(void)graft_arena_free(document->arena);
	(void)graft_arena_free(document->strings);
	free(document);
}

void graft_json_document_cleanup(struct graft_json_document **document)
{
	graft_json_document_free(*document);
}
