/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_text: prints a plan for a person: what the container gets, every edit with its reason, and
 * what it does not get. The format is stable: golden tests compare it byte by byte. What cannot be
 * seen in text from outside is shown as \xNN (graft_visible_length()).
 */
#include "apply/to_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

#define CONTENT_LINES_MAX 4 /* longer files are shown by size and checksum */

static void add_plain_bytes(struct graft_buffer *out, const char *text, size_t left)
{
	const unsigned char *at = (const unsigned char *)text;

	for (size_t n; left > 0; at += n, left -= n) {
		n = graft_visible_length(at, left);
		if (n > 0)
			graft_buffer_add(out, at, n);
		else
			graft_buffer_printf(out, "\\x%02x", *at);
		n = n > 0 ? n : 1;
	}
}

void graft_plan_add_plain_text(struct graft_buffer *out, const char *text)
{
	add_plain_bytes(out, text ? text : "?", strlen(text ? text : "?"));
}

void graft_plan_add_grant(const struct graft_grant *grant, struct graft_buffer *out)
{
	if (grant->mig)
		graft_buffer_printf(out, "MIG %u:%u  GPU instance %u, compute instance %u", grant->index,
				    grant->mig_index, grant->gi, grant->ci);
	else
		graft_buffer_printf(out, "GPU %u  minor %u", grant->index, grant->minor);
	if (grant->model && !grant->mig) {
		graft_buffer_string(out, ", ");
		graft_plan_add_plain_text(out, grant->model);
	}
	if (grant->uuid) {
		graft_buffer_string(out, ", ");
		graft_plan_add_plain_text(out, grant->uuid);
	}
	if (grant->bus_id && !grant->mig) {
		graft_buffer_string(out, ", at ");
		graft_plan_add_plain_text(out, grant->bus_id);
	}
	graft_buffer_char(out, '\n');
}

static void add_flags(uint32_t flags, struct graft_buffer *out)
{
	for (unsigned int i = 0; i < GRAFT_COUNT(graft_mount_flag_names); i++) {
		if ((flags & 1u << i) != 0)
			graft_buffer_printf(out, " %s", graft_mount_flag_names[i]);
	}
}

/* FNV-1a: only distinguishes changed content from unchanged content. */
static uint32_t checksum(const char *text)
{
	uint32_t sum = 2166136261u;

	for (; *text != '\0'; text++)
		sum = (sum ^ (unsigned char)*text) * 16777619u;
	return sum;
}

static void add_content(const char *content, struct graft_buffer *out)
{
	size_t lines = 0;

	for (const char *at = content; *at != '\0'; at++)
		lines += *at == '\n';
	if (lines > CONTENT_LINES_MAX) {
		graft_buffer_printf(out, "             | %zu lines, %zu bytes, checksum %08" PRIx32 "\n", lines,
				    strlen(content), checksum(content));
		return;
	}
	for (const char *at = content; *at != '\0'; at += *at == '\n') {
		size_t n = strcspn(at, "\n");

		graft_buffer_string(out, "             | ");
		add_plain_bytes(out, at, n);
		graft_buffer_char(out, '\n');
		at += n;
	}
}

/* Whether a link at `target` to `name` resolves to `path`, in the same directory. */
static bool is_sibling(const char *path, const char *target, const char *name)
{
	const char *slash = strrchr(target, '/');
	size_t length = slash ? (size_t)(slash - target) + 1 : 0;

	return strncmp(path, target, length) == 0 && strcmp(path + length, name) == 0;
}

/* Adds the source path if it differs from the target. */
static void add_source(const struct graft_edit *edit, struct graft_buffer *out)
{
	if (!edit->source || (edit->target && strcmp(edit->source, edit->target) == 0))
		return;
	if (edit->target && edit->content && is_sibling(edit->source, edit->target, edit->content))
		return;
	graft_buffer_string(out, "\n             from ");
	graft_plan_add_plain_text(out, edit->source);
}

static void add_entries_text(const struct graft_edit *edit, struct graft_buffer *out)
{
	for (size_t i = 0; i < edit->n_folders; i++) {
		bool missing = false;

		for (size_t j = 0; j < edit->n_missing_folders; j++)
			missing = missing || strcmp(edit->missing_folders[j], edit->folders[i]) == 0;
		graft_buffer_string(out, "             directory ");
		graft_plan_add_plain_text(out, edit->folders[i]);
		graft_buffer_string(out, missing ? " (not in the image's configuration)\n" : "\n");
	}
	for (size_t i = 0; i < edit->n_entries; i++) {
		graft_buffer_string(out, "             ");
		graft_plan_add_plain_text(out, edit->entries[i].path);
		graft_buffer_printf(out, " (%#06x)", edit->entries[i].abi_flags);
		if (!is_sibling(edit->entries[i].path, edit->entries[i].path, edit->entries[i].soname)) {
			graft_buffer_string(out, " for ");
			graft_plan_add_plain_text(out, edit->entries[i].soname);
		}
		graft_buffer_char(out, '\n');
	}
}

/* The text that follows a link's target on the line of an edit. */
static const char *const conflict_words[] = {
	[GRAFT_CONFLICT_KEEP] = "  unless it exists",
	[GRAFT_CONFLICT_REPLACE] = "  replaces",
	[GRAFT_CONFLICT_OVERWRITE] = "  overwrites",
};

static void add_details(const struct graft_edit *edit, struct graft_buffer *out)
{
	static const char *const type_suffixes[] = {
		[GRAFT_SOURCE_FILE] = "", [GRAFT_SOURCE_DIRECTORY] = "/", [GRAFT_SOURCE_SOCKET] = "="
	};

	switch (edit->kind) {
	case GRAFT_EDIT_DIRECTORY:
	case GRAFT_EDIT_TMPFS:
		graft_plan_add_plain_text(out, edit->target);
		graft_buffer_printf(out, "  mode %04o", edit->mode);
		add_flags(edit->flags, out);
		graft_buffer_char(out, '\n');
		break;
	case GRAFT_EDIT_FILE:
		graft_plan_add_plain_text(out, edit->target);
		graft_buffer_printf(out, "  mode %04o\n", edit->mode);
		add_content(edit->content ? edit->content : "", out);
		break;
	case GRAFT_EDIT_COVER:
		graft_plan_add_plain_text(out, edit->target);
		graft_buffer_printf(out, "  mode %04o", edit->mode);
		add_flags(edit->flags, out);
		graft_buffer_string(out, " if it is there\n");
		add_content(edit->content ? edit->content : "", out);
		break;
	case GRAFT_EDIT_BIND:
		graft_plan_add_plain_text(out, edit->target);
		graft_buffer_printf(out, "%s ", type_suffixes[edit->type]);
		add_flags(edit->flags, out);
		graft_buffer_printf(out, " (%04o)%s", edit->mode, edit->optional ? " if it is still there" : "");
		add_source(edit, out);
		graft_buffer_char(out, '\n');
		break;
	case GRAFT_EDIT_DEVICE:
		graft_plan_add_plain_text(out, edit->target);
		graft_buffer_printf(out, "  %u:%u", edit->major, edit->minor);
		add_flags(edit->flags, out);
		graft_buffer_printf(out, " (%04o", edit->mode);
		if (edit->uid != 0 || edit->gid != 0)
			graft_buffer_printf(out, " %u:%u", edit->uid, edit->gid);
		graft_buffer_string(out, edit->optional ? ") not there yet" : ")");
		add_source(edit, out);
		graft_buffer_char(out, '\n');
		break;
	case GRAFT_EDIT_SYMLINK:
		graft_plan_add_plain_text(out, edit->target);
		graft_buffer_string(out, " -> ");
		graft_plan_add_plain_text(out, edit->content);
		graft_buffer_string(out, conflict_words[edit->conflict]);
		add_source(edit, out);
		graft_buffer_char(out, '\n');
		break;
	case GRAFT_EDIT_CGROUP:
		graft_buffer_printf(out, "c %u:%u ", edit->major, edit->minor);
		graft_plan_add_plain_text(out, edit->access);
		graft_buffer_char(out, '\n');
		break;
	case GRAFT_EDIT_LDCACHE:
		graft_plan_add_plain_text(out, edit->musl_path_file ? edit->musl_path_file : "/etc/ld.so.cache");
		graft_buffer_char(out, '\n');
		add_entries_text(edit, out);
		if (edit->musl_path)
			add_content(edit->musl_path, out);
		break;
	case GRAFT_EDIT_ENV:
		graft_plan_add_plain_text(out, edit->target);
		graft_buffer_char(out, '=');
		graft_plan_add_plain_text(out, edit->content);
		graft_buffer_char(out, '\n');
		break;
	case GRAFT_EDIT_MAX:
		break;
	}
}

static bool is_same_group(const struct graft_edit *a, const struct graft_edit *b)
{
	return strcmp(a->rule, b->rule) == 0 && strcmp(a->why, b->why) == 0;
}

static void add_edits_text(const struct graft_plan *plan, struct graft_buffer *out)
{
	graft_buffer_printf(out, "\nedits: %zu\n", plan->n_edits);
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (i == 0 || !is_same_group(&plan->edits[i - 1], edit)) {
			graft_buffer_string(out, "  ");
			graft_plan_add_plain_text(out, edit->rule);
			graft_buffer_string(out, ": ");
			graft_plan_add_plain_text(out, edit->why);
			graft_buffer_char(out, '\n');
		}
		graft_buffer_printf(out, "  %3zu %-10s", i + 1,
				    (unsigned int)edit->kind < GRAFT_EDIT_MAX ? graft_edit_names[edit->kind] : "?");
		add_details(edit, out);
	}
}

static void add_refusals_text(const char *heading, const struct graft_refusal *refusals, size_t n,
			      struct graft_buffer *out)
{
	graft_buffer_printf(out, "\n%s: %zu\n", heading, n);
	for (size_t i = 0; i < n; i++) {
		graft_buffer_string(out, "  ");
		graft_plan_add_plain_text(out, refusals[i].what);
		graft_buffer_string(out, ": ");
		graft_plan_add_plain_text(out, refusals[i].why);
		graft_buffer_char(out, '\n');
	}
}

void graft_plan_add_driver(const struct graft_plan *plan, struct graft_buffer *out)
{
	graft_buffer_string(out, "driver ");
	graft_plan_add_plain_text(out, plan->driver_version ? plan->driver_version : "of unknown version");
	graft_buffer_string(out, plan->simulated ? " (SIMULATED)\n" : "\n");
}

void graft_plan_add_late_mounts(const struct graft_plan *plan, struct graft_buffer *out)
{
	if (!plan->late_mounts)
		return;
	graft_buffer_string(out, "\nlate mounts: ");
	graft_plan_add_plain_text(out, plan->late_mounts);
	graft_buffer_char(out, '\n');
}

void graft_plan_to_text(const struct graft_plan *plan, struct graft_buffer *out)
{
	graft_plan_add_driver(plan, out);
	if (plan->n_missing > 0)
		add_refusals_text("missing", plan->missing, plan->n_missing, out);
	graft_buffer_printf(out, "\ngets: %zu\n", plan->n_grants);
	for (size_t i = 0; i < plan->n_grants; i++) {
		graft_buffer_string(out, "  ");
		graft_plan_add_grant(&plan->grants[i], out);
	}
	add_edits_text(plan, out);
	graft_plan_add_late_mounts(plan, out);
	add_refusals_text("refused", plan->refusals, plan->n_refusals, out);
}
