/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unified_diff: sets aside the lines that both texts begin and end with. For the rest, a table of
 * longest common subsequences determines which lines stay. Does not know what the texts mean.
 */
#include "formats/unified_diff.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CONTEXT   ((size_t)3)
#define TABLE_MAX ((size_t)4 << 20) /* cells */

struct line {
	const char *bytes;
	size_t length; /* including its newline */
};

struct lines {
	struct line *items; /* owned */
	size_t n;
};

struct diff {
	struct lines old, new;
	size_t start;            /* number of common lines at the beginning */
	size_t old_end, new_end; /* start of the common lines at the end */
	uint32_t *table;         /* owned; (old_end - start + 1) rows; NULL: too large */
	bool *keeps;             /* owned; for each old line: it stays */
	struct graft_buffer *out;
};

static void lines_done(struct diff *diff)
{
	free(diff->old.items);
	free(diff->new.items);
	free(diff->table);
	free(diff->keeps);
}

static bool split(const struct graft_diff_text *text, struct lines *lines)
{
	size_t at = 0, n = 0;

	for (size_t i = 0; i < text->length; i++)
		n += text->bytes[i] == '\n';
	lines->items = calloc(n + 1, sizeof(*lines->items));
	if (!lines->items)
		return false;
	while (at < text->length) {
		const char *start = text->bytes + at, *newline = memchr(start, '\n', text->length - at);
		size_t length = newline ? (size_t)(newline - start) + 1 : text->length - at;

		lines->items[lines->n++] = (struct line){ start, length };
		at += length;
	}
	return true;
}

static bool is_equal(const struct line *a, const struct line *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static void trim_common_lines(struct diff *diff)
{
	const struct line *old = diff->old.items, *new = diff->new.items;
	size_t n_old = diff->old.n, n_new = diff->new.n, start = 0;

	while (start < n_old && start < n_new && is_equal(&old[start], &new[start]))
		start++;
	while (n_old > start && n_new > start && is_equal(&old[n_old - 1], &new[n_new - 1])) {
		n_old--;
		n_new--;
	}
	diff->start = start;
	diff->old_end = n_old;
	diff->new_end = n_new;
}

/* The number of lines that the parts from old line i and new line k on can have in common. */
static uint32_t *cell(const struct diff *diff, size_t i, size_t k)
{
	return &diff->table[(i - diff->start) * (diff->new_end - diff->start + 1) + (k - diff->start)];
}

static bool fill_table(struct diff *diff)
{
	size_t rows = diff->old_end - diff->start + 1, columns = diff->new_end - diff->start + 1;

	if (rows > TABLE_MAX / columns)
		return true;
	diff->table = calloc(rows * columns, sizeof(*diff->table));
	if (!diff->table)
		return false;
	for (size_t i = diff->old_end; i-- > diff->start;) {
		for (size_t k = diff->new_end; k-- > diff->start;) {
			uint32_t down = *cell(diff, i + 1, k), right = *cell(diff, i, k + 1);

			if (is_equal(&diff->old.items[i], &diff->new.items[k]))
				*cell(diff, i, k) = *cell(diff, i + 1, k + 1) + 1;
			else
				*cell(diff, i, k) = down > right ? down : right;
		}
	}
	return true;
}

/* Marks the old lines that stay. The n-th of them equals the n-th new line that is not added. */
static bool mark_kept(struct diff *diff)
{
	size_t i = diff->start, k = i;

	diff->keeps = calloc(diff->old.n + 1, sizeof(*diff->keeps));
	if (!diff->keeps)
		return false;
	for (size_t line = 0; line < diff->old.n; line++)
		diff->keeps[line] = line < diff->start || line >= diff->old_end;
	while (diff->table && i < diff->old_end && k < diff->new_end) {
		if (is_equal(&diff->old.items[i], &diff->new.items[k])) {
			diff->keeps[i++] = true;
			k++;
		} else if (*cell(diff, i + 1, k) >= *cell(diff, i, k + 1)) {
			i++;
		} else {
			k++;
		}
	}
	return true;
}

static void add_diff_line(const struct diff *diff, char sign, const struct line *line)
{
	graft_buffer_char(diff->out, sign);
	graft_buffer_add(diff->out, line->bytes, line->length);
	if (line->bytes[line->length - 1] != '\n')
		graft_buffer_string(diff->out, "\n\\ No newline at end of file\n");
}

/* A position in both texts. */
struct position {
	size_t old, new;
};

/*
 * Returns whether the new line at `at` was added: it differs from the next old line, which stays.
 */
static bool is_added(const struct diff *diff, struct position at)
{
	if (at.new >= diff->new.n)
		return false;
	if (at.old >= diff->old.n)
		return true;
	return diff->keeps[at.old] && !is_equal(&diff->old.items[at.old], &diff->new.items[at.new]);
}

/* Returns '-', '+', ' ', or 0 at the end. Removed lines come before added ones. */
static char step_at(const struct diff *diff, struct position at)
{
	if (at.old < diff->old.n && !diff->keeps[at.old])
		return '-';
	if (is_added(diff, at))
		return '+';
	return at.old < diff->old.n ? ' ' : 0;
}

static void step_diff_position(struct position *at, char sign)
{
	at->old += sign != '+';
	at->new += sign != '-';
}

/*
 * Returns the end of the hunk that begins with a change at `at`: changes at most twice the context
 * apart belong to the same hunk.
 */
static struct position hunk_end(const struct diff *diff, struct position at)
{
	struct position end = at;
	size_t kept = 0;

	for (char sign = step_at(diff, at); sign && kept <= 2 * CONTEXT; sign = step_at(diff, at)) {
		step_diff_position(&at, sign);
		kept = sign == ' ' ? kept + 1 : 0;
		if (sign != ' ')
			end = at;
	}
	for (size_t i = 0; i < CONTEXT && step_at(diff, end) == ' '; i++)
		step_diff_position(&end, ' ');
	return end;
}

/*
 * Appends a range of lines like diff: without the count for a single line, and with the line before
 * it for an empty range.
 */
static void add_range(struct graft_buffer *out, char sign, size_t start, size_t end)
{
	graft_buffer_printf(out, "%c%zu", sign, end > start ? start + 1 : start);
	if (end - start != 1)
		graft_buffer_printf(out, ",%zu", end - start);
}

static struct position add_hunk(const struct diff *diff, struct position at)
{
	struct position end = hunk_end(diff, at);
	size_t before = at.old < CONTEXT ? at.old : CONTEXT;

	at.old -= before;
	at.new -= before;
	graft_buffer_string(diff->out, "@@ ");
	add_range(diff->out, '-', at.old, end.old);
	graft_buffer_char(diff->out, ' ');
	add_range(diff->out, '+', at.new, end.new);
	graft_buffer_string(diff->out, " @@\n");
	while (at.old != end.old || at.new != end.new) {
		char sign = step_at(diff, at);

		add_diff_line(diff, sign, sign == '+' ? &diff->new.items[at.new] : &diff->old.items[at.old]);
		step_diff_position(&at, sign);
	}
	return end;
}

static void add_hunks(const struct diff *diff)
{
	struct position at = { 0, 0 };
	char sign;

	while ((sign = step_at(diff, at)) != 0) {
		if (sign == ' ')
			step_diff_position(&at, sign);
		else
			at = add_hunk(diff, at);
	}
}

int graft_unified_diff(const struct graft_diff_text *before, const struct graft_diff_text *after,
		       struct graft_buffer *out, struct graft_error *err)
{
	__attribute__((cleanup(lines_done))) struct diff diff = { .out = out };

	if (before->length == after->length &&
	    (before->length == 0 || memcmp(before->bytes, after->bytes, before->length) == 0))
		return 0;
	if (!split(before, &diff.old) || !split(after, &diff.new))
		return graft_fail_memory(err);
	trim_common_lines(&diff);
	if (!fill_table(&diff) || !mark_kept(&diff))
		return graft_fail_memory(err);
	graft_buffer_printf(out, "--- %s\n+++ %s\n", before->name, after->name);
	add_hunks(&diff);
	return graft_buffer_failed(out) ? graft_fail_memory(err) : 0;
}
