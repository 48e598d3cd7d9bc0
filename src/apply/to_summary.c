/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_summary: counts the edits of a plan by what they are for a person, and the refusals by their
 * reason. Does not explain single edits (to_text.c).
 */
#include "apply/to_summary.h"

#include <string.h>

#include "apply/to_text.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"

#define NAMES_MAX 4 /* names in a line; the rest is counted */

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN  "\033[0m"

/* In the order of the summary. The first row that matches an edit counts it. */
static const struct {
	enum graft_edit_kind kind;
	const char *rule;       /* NULL: any */
	const char *one, *many; /* `many` NULL: not counted */
	bool is_path;           /* names are whole paths */
} rows[] = {
	{ GRAFT_EDIT_DEVICE, NULL, "device node", "device nodes", true },
	{ GRAFT_EDIT_BIND, "library", "library", "libraries", false },
	{ GRAFT_EDIT_BIND, "library32", "32-bit library", "32-bit libraries", false },
	{ GRAFT_EDIT_BIND, "binary", "program", "programs", false },
	{ GRAFT_EDIT_BIND, "ipc", "socket of a daemon", "sockets of daemons", true },
	{ GRAFT_EDIT_BIND, "firmware", "firmware file", "firmware files", false },
	{ GRAFT_EDIT_BIND, "gpu-procfs", "directory of procfs", "directories of procfs", true },
	{ GRAFT_EDIT_BIND, NULL, "other file", "other files", true },
	{ GRAFT_EDIT_SYMLINK, NULL, "link", "links", false },
	{ GRAFT_EDIT_FILE, NULL, "new file", "new files", true },
	{ GRAFT_EDIT_COVER, NULL, "replaced file", "replaced files", true },
	{ GRAFT_EDIT_ENV, NULL, "variable", "variables", true },
	{ GRAFT_EDIT_LDCACHE, NULL, "new loader cache", NULL, false },
};

struct summary {
	const struct graft_summary_style *style;
	struct graft_buffer *out;
};

static void add_colour(const struct summary *summary, const char *colour)
{
	if (summary->style->colours)
		graft_buffer_string(summary->out, colour);
}

static void add_heading(const struct summary *summary, const char *colour, const char *heading)
{
	graft_buffer_char(summary->out, '\n');
	add_colour(summary, colour);
	graft_buffer_string(summary->out, heading);
	add_colour(summary, PLAIN);
	graft_buffer_char(summary->out, '\n');
}

static void add_branch(const struct summary *summary, bool last)
{
	graft_buffer_string(summary->out, !summary->style->lines ? "  " : last ? "└─ " : "├─ ");
}

static bool is_in_row(const struct graft_edit *edit, size_t row)
{
	return edit->kind == rows[row].kind && (!rows[row].rule || strcmp(edit->rule, rows[row].rule) == 0);
}

static size_t find_row(const struct graft_edit *edit)
{
	size_t row = 0;

	while (row < GRAFT_COUNT(rows) && !is_in_row(edit, row))
		row++;
	return row;
}

/*
 * Appends one of `n` names; only the first NAMES_MAX are printed, the rest is counted at the end.
 */
static void add_some_name(const struct summary *summary, size_t position, size_t n, const char *name)
{
	if (position < NAMES_MAX) {
		graft_buffer_string(summary->out, position > 0 ? ", " : "");
		graft_plan_add_plain_text(summary->out, name);
	}
	if (position == n - 1 && n > NAMES_MAX)
		graft_buffer_printf(summary->out, " and %zu more", n - NAMES_MAX);
}

static void add_row(const struct summary *summary, const struct graft_plan *plan, size_t row, size_t n, bool last)
{
	size_t position = 0;

	add_branch(summary, last);
	if (!rows[row].many) {
		graft_buffer_printf(summary->out, "%s\n", rows[row].one);
		return;
	}
	graft_buffer_printf(summary->out, "%zu %s: ", n, n == 1 ? rows[row].one : rows[row].many);
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (find_row(edit) == row)
			add_some_name(summary, position++, n,
				      rows[row].is_path ? edit->target : graft_path_name(edit->target));
	}
	graft_buffer_char(summary->out, '\n');
}

static void summarize_edits(const struct summary *summary, const struct graft_plan *plan)
{
	size_t n[GRAFT_COUNT(rows) + 1] = { 0 }, last = 0;

	for (size_t i = 0; i < plan->n_edits; i++)
		n[find_row(&plan->edits[i])]++;
	for (size_t row = 0; row < GRAFT_COUNT(rows); row++)
		last = n[row] > 0 ? row : last;
	for (size_t row = 0; row < GRAFT_COUNT(rows); row++)
		if (n[row] > 0)
			add_row(summary, plan, row, n[row], row == last);
}

static void summarize_missing(const struct summary *summary, const struct graft_plan *plan)
{
	if (plan->n_missing == 0)
		return;
	add_heading(summary, RED, "Missing:");
	for (size_t i = 0; i < plan->n_missing; i++) {
		add_branch(summary, i + 1 == plan->n_missing);
		graft_plan_add_plain_text(summary->out, plan->missing[i].what);
		graft_buffer_string(summary->out, ": ");
		graft_plan_add_plain_text(summary->out, plan->missing[i].why);
		graft_buffer_char(summary->out, '\n');
	}
}

static bool is_first_of_reason(const struct graft_plan *plan, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (strcmp(plan->refusals[j].why, plan->refusals[i].why) == 0)
			return false;
	return true;
}

static void summarize_refusals(const struct summary *summary, const struct graft_plan *plan)
{
	size_t last = 0;

	if (plan->n_refusals == 0)
		return;
	add_heading(summary, YELLOW, "Left out:");
	for (size_t i = 0; i < plan->n_refusals; i++)
		last = is_first_of_reason(plan, i) ? i : last;
	for (size_t i = 0; i < plan->n_refusals; i++) {
		size_t n = 0, position = 0;

		if (!is_first_of_reason(plan, i))
			continue;
		add_branch(summary, i == last);
		graft_plan_add_plain_text(summary->out, plan->refusals[i].why);
		graft_buffer_string(summary->out, ": ");
		for (size_t j = i; j < plan->n_refusals; j++)
			n += strcmp(plan->refusals[j].why, plan->refusals[i].why) == 0;
		for (size_t j = i; j < plan->n_refusals; j++)
			if (strcmp(plan->refusals[j].why, plan->refusals[i].why) == 0)
				add_some_name(summary, position++, n, plan->refusals[j].what);
		graft_buffer_char(summary->out, '\n');
	}
}

void graft_plan_to_summary(const struct graft_plan *plan, const struct graft_summary_style *style,
			   struct graft_buffer *out)
{
	const struct summary summary = { style, out };

	graft_plan_add_driver(plan, out);
	summarize_missing(&summary, plan);
	add_heading(&summary, GREEN, "The container gets:");
	for (size_t i = 0; i < plan->n_grants; i++) {
		add_branch(&summary, i + 1 == plan->n_grants && plan->n_edits == 0);
		graft_plan_add_grant(&plan->grants[i], out);
	}
	summarize_edits(&summary, plan);
	if (plan->n_grants == 0 && plan->n_edits == 0)
		graft_buffer_string(out, "  nothing\n");
	graft_plan_add_late_mounts(plan, out);
	summarize_refusals(&summary, plan);
}
