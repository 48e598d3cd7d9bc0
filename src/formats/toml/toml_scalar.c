/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_scalar: numbers, booleans and dates of TOML. Floats and dates are checked and kept as text,
 * because we never compute with them.
 */
#include <string.h>

#include "formats/toml/toml_tree.h"

static bool is_based_digit(char c, unsigned int base)
{
	unsigned int value = 99;

	if (c >= '0' && c <= '9')
		value = (unsigned int)(c - '0');
	else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		value = (unsigned int)((c | 0x20) - 'a') + 10;
	return value < base;
}

/*
 * Parses digits with single underscores between them, and copies them without. Returns their
 * number, 0 if malformed.
 */
static size_t take_toml_digits(const char **s, unsigned int base, char *out)
{
	size_t n = 0;

	if (!is_based_digit(**s, base))
		return 0;
	while (is_based_digit(**s, base) || (**s == '_' && is_based_digit((*s)[1], base))) {
		if (**s != '_')
			out[n++] = **s;
		(*s)++;
	}
	return n;
}

static bool to_integer(const char *digits, size_t n, unsigned int base, bool negative, int64_t *ret)
{
	uint64_t value = 0, limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);

	for (size_t i = 0; i < n; i++) {
		char c = digits[i];
		unsigned int digit = c <= '9' ? (unsigned int)(c - '0') : (unsigned int)((c | 0x20) - 'a') + 10;

		if (value > (limit - digit) / base)
			return false;
		value = value * base + digit;
	}
	*ret = negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

static const char *parse_based(const char *s, struct toml_node *node, char *out)
{
	unsigned int base = s[1] == 'x' ? 16 : s[1] == 'o' ? 8 : 2;
	size_t n;

	s += 2;
	n = take_toml_digits(&s, base, out);
	if (n == 0 || *s)
		return "malformed number";
	node->type = TOML_INTEGER;
	return to_integer(out, n, base, false, &node->integer) ? NULL : "the integer is beyond 64 bits";
}

/* Parses fraction and exponent after the integer part, and appends them to `out`. */
static bool parse_float_rest(const char *s, char *out)
{
	size_t n;

	if (*s == '.') {
		*out++ = *s++;
		n = take_toml_digits(&s, 10, out);
		if (n == 0)
			return false;
		out += n;
	}
	if (*s == 'e' || *s == 'E') {
		*out++ = 'e';
		s++;
		if (*s == '+' || *s == '-')
			*out++ = *s++;
		n = take_toml_digits(&s, 10, out);
		if (n == 0)
			return false;
		out += n;
	}
	*out = '\0';
	return !*s;
}

/*
 * Returns NULL, or why it is not a number. `out` has room for the token and receives the text of a
 * float.
 */
static const char *parse_toml_number(const char *s, struct toml_node *node, char *out)
{
	bool negative = *s == '-';
	char *digits;
	size_t n;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'o' || s[1] == 'b'))
		return parse_based(s, node, out);
	if (negative)
		*out++ = '-';
	if (*s == '-' || *s == '+')
		s++;
	node->type = TOML_FLOAT;
	if (strcmp(s, "inf") == 0 || strcmp(s, "nan") == 0) {
		memcpy(*s == 'n' && negative ? out - 1 : out, s, 4);
		return NULL;
	}
	digits = out;
	n = take_toml_digits(&s, 10, digits);
	if (n == 0)
		return "expected a value";
	if (digits[0] == '0' && n > 1)
		return "a number has a leading zero";
	if (*s)
		return parse_float_rest(s, digits + n) ? NULL : "malformed number";
	node->type = TOML_INTEGER;
	return to_integer(digits, n, 10, negative, &node->integer) ? NULL : "the integer is beyond 64 bits";
}

/* Parses exactly n digits, with a value within the limits. */
static bool take_field(const char **s, int n, int least, int most, int *ret)
{
	int value = 0;

	for (int i = 0; i < n; i++, (*s)++) {
		if (!is_based_digit(**s, 10))
			return false;
		value = value * 10 + (**s - '0');
	}
	*ret = value;
	return value >= least && value <= most;
}

static bool take_char(const char **s, char c)
{
	if (**s != c)
		return false;
	(*s)++;
	return true;
}

static bool take_date(const char **s)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year, month, day;
	bool leap;

	if (!take_field(s, 4, 0, 9999, &year) || !take_char(s, '-') || !take_field(s, 2, 1, 12, &month) ||
	    !take_char(s, '-') || !take_field(s, 2, 1, 31, &day))
		return false;
	leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* RFC 3339: second 60 is a leap second. */
static bool take_time(const char **s)
{
	int field;

	if (!take_field(s, 2, 0, 23, &field) || !take_char(s, ':') || !take_field(s, 2, 0, 59, &field) ||
	    !take_char(s, ':') || !take_field(s, 2, 0, 60, &field))
		return false;
	if (!take_char(s, '.'))
		return true;
	if (!is_based_digit(**s, 10))
		return false;
	while (is_based_digit(**s, 10))
		(*s)++;
	return true;
}

static bool take_offset(const char **s)
{
	int field;

	if (take_char(s, 'Z') || take_char(s, 'z'))
		return true;
	if (!take_char(s, '+') && !take_char(s, '-'))
		return false;
	return take_field(s, 2, 0, 23, &field) && take_char(s, ':') && take_field(s, 2, 0, 59, &field);
}

/* Normalises `token`: T in the middle, upper case. */
static bool parse_date_time(char *token, struct toml_node *node)
{
	const char *s = token;

	if (token[2] == ':') {
		node->type = TOML_TIME_LOCAL;
		return take_time(&s) && !*s;
	}
	node->type = TOML_DATE_LOCAL;
	if (!take_date(&s))
		return false;
	if (!*s)
		return true;
	if (*s != 'T' && *s != 't' && *s != ' ')
		return false;
	token[s - token] = 'T';
	s++;
	node->type = TOML_DATETIME_LOCAL;
	if (!take_time(&s))
		return false;
	if (!*s)
		return true;
	node->type = TOML_DATETIME;
	if (!take_offset(&s) || *s)
		return false;
	if (s[-1] == 'z')
		token[s - token - 1] = 'Z';
	return true;
}

static bool is_token_char(char c)
{
	return is_based_digit(c, 10) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c && strchr("_+-.:", c));
}

static size_t token_end(const struct toml_scan *scan, size_t at)
{
	while (at < scan->length && is_token_char(scan->text[at]))
		at++;
	return at;
}

/* A date may be followed by a blank and a time. */
static size_t date_end(const struct toml_scan *scan, size_t end)
{
	const char *s = scan->text + scan->at;

	if (end - scan->at != 10 || s[4] != '-' || s[7] != '-' || scan->length - end < 2 || s[10] != ' ' ||
	    !is_based_digit(s[11], 10))
		return end;
	return token_end(scan, end + 1);
}

bool toml_scan_scalar(struct toml_scan *scan, struct toml_node *node)
{
	size_t start = scan->at, end = date_end(scan, token_end(scan, start)), n = end - start;
	char *token = scan->scratch;
	const char *why;
	char *number;

	if (n == 0)
		return toml_wrong(scan, start, "expected a value");
	memcpy(token, scan->text + start, n);
	token[n] = '\0';
	scan->at = end;
	if (strcmp(token, "true") == 0 || strcmp(token, "false") == 0) {
		node->type = TOML_BOOL;
		node->integer = *token == 't';
		return true;
	}
	if ((n > 4 && token[4] == '-' && is_based_digit(token[0], 10) && is_based_digit(token[3], 10)) ||
	    (n > 2 && token[2] == ':')) {
		if (!parse_date_time(token, node))
			return toml_wrong(scan, start, "malformed date or time");
		return toml_copy(scan, token, n, &node->text);
	}
	number = graft_arena_alloc(scan->arena, n + 2);
	if (!number)
		return toml_no_memory(scan);
	why = parse_toml_number(token, node, number);
	if (why)
		return toml_wrong(scan, start, why);
	node->text = (struct toml_text){ number, strlen(number) };
	return true;
}
