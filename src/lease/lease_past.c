/* SPDX-License-Identifier: Apache-2.0 */
/* lease_past: lines of two logs. Does not know where they are. */
#include "lease/lease_past.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/xid.h"
#include "lease/lease_log.h"
#include "request/claim.h"

#define TEXT_MAX   1024u
#define FAULTS_MAX 256u

/* ---- the kernel's log ---- */

struct faults {
	struct graft_xid_line lines[FAULTS_MAX];
	size_t n;
};

/*
 * "<6>[   12.3] text"; lines of processes have a facility other than 0. NULL: not from the kernel.
 */
static const char *skip_marks(const char *line)
{
	char *end;

	if (line[0] == '<') {
		if (strtoul(line + 1, &end, 10) >= 8 || *end != '>')
			return NULL;
		line = end + 1;
	}
	while (line[0] == '[' && strchr(line, ']')) {
		line = strchr(line, ']') + 1;
		line += line[0] == ' ';
	}
	return line;
}

static void forget_faults(struct faults *faults, const struct graft_xid_line *of)
{
	size_t kept = 0;

	for (size_t i = 0; i < faults->n; i++) {
		if (of && !graft_xid_is_same_gpu(&faults->lines[i], of))
			faults->lines[kept++] = faults->lines[i];
	}
	faults->n = kept;
}

/* A GPU that repeats a fault must not hide those of others. */
static bool has_fault_line(const struct faults *faults, const struct graft_xid_line *line)
{
	for (size_t i = 0; i < faults->n; i++) {
		if (faults->lines[i].number == line->number && graft_xid_is_same_device(&faults->lines[i], line))
			return true;
	}
	return false;
}

static void take_fault_line(struct faults *faults, const struct graft_xid_rules *rules, const char *text)
{
	struct graft_xid_line line = graft_xid_parse(text);

	switch (line.kind) {
	case GRAFT_XID_NOTHING:
		break;
	case GRAFT_XID_FAULT:
		if (graft_xid_matters(rules, line.number) && faults->n < FAULTS_MAX && !has_fault_line(faults, &line))
			faults->lines[faults->n++] = line;
		break;
	case GRAFT_XID_RECOVERED:
	case GRAFT_XID_FOUND:
		forget_faults(faults, &line);
		break;
	case GRAFT_XID_LOADED:
		forget_faults(faults, NULL);
		break;
	}
}

static void read_faults(const char *text, struct faults *faults)
{
	const struct graft_xid_rules rules = graft_xid_rules_make("", "");
	char line[TEXT_MAX];

	faults->n = 0;
	for (const char *next; *text != '\0'; text = next) {
		const char *end = strchrnul(text, '\n'), *start;

		next = *end == '\n' ? end + 1 : end;
		/* Most lines come from other subsystems. */
		if (end - text >= (ptrdiff_t)sizeof(line) || (!memmem(text, (size_t)(end - text), "NVRM: ", 6) &&
							      !memmem(text, (size_t)(end - text), "pci ", 4)))
			continue;
		memcpy(line, text, (size_t)(end - text));
		line[end - text] = '\0';
		start = skip_marks(line);
		if (start)
			take_fault_line(faults, &rules, start);
	}
}

int graft_lease_past_faults(const char *text, struct graft_arena *arena, struct graft_lendable *host,
			    struct graft_error *err)
{
	struct faults *faults = graft_arena_alloc(arena, sizeof(*faults));

	if (!faults)
		return graft_fail_memory(err);
	read_faults(text, faults);
	for (size_t i = 0; i < host->n_gpus; i++) {
		struct graft_lendable_gpu *gpu = &host->gpus[i];

		gpu->ill = NULL;
		for (size_t k = 0; k < gpu->n_migs; k++)
			gpu->migs[k].ill = false;
		for (size_t f = 0; f < faults->n; f++) {
			const struct graft_xid_line *fault = &faults->lines[f];

			if (!graft_xid_is_of(fault, gpu->bus_id))
				continue;
			if (!fault->has_instance)
				gpu->ill = graft_arena_printf(arena, "it has failed: Xid %u", fault->number);
			for (size_t k = 0; fault->has_instance && k < gpu->n_migs; k++)
				gpu->migs[k].ill |= gpu->migs[k].gi == fault->gi && gpu->migs[k].ci == fault->ci;
		}
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* ---- the table's log ---- */

/* The start of the line before; NULL: it is the first. */
static const char *find_line_before(const char *log, const char *line)
{
	const char *end = line > log ? line - 1 : log;

	while (end > log && end[-1] != '\n')
		end--;
	return line > log ? end : NULL;
}

/* Whether the words after a line's date are these. */
static bool is_event(const char *line, const char *words)
{
	return graft_starts_with(line + strcspn(line, " \n"), words);
}

/* What a line "DATE taken ID uid UID CLAIM DEVICES ..." lists. */
static const char *find_devices(const char *line)
{
	for (int i = 0; i < 6; i++) {
		line += strcspn(line, " \n");
		if (*line != ' ')
			return "";
		line++;
	}
	return line;
}

/* Whether a list of UUIDs, which ends with a space, has this one. */
static bool lists(const char *devices, const char *uuid)
{
	size_t length = strlen(uuid);

	for (;;) {
		size_t n = strcspn(devices, ", \n");

		if (n == length && strncmp(devices, uuid, n) == 0)
			return true;
		if (devices[n] != ',')
			return false;
		devices += n + 1;
	}
}

/*
 * The line before that one in which the lease of the same id was taken: from the end, for most
 * leases do not last long.
 */
static const char *find_taken(const char *log, const char *freed)
{
	const char *line = freed;
	char words[32];

	(void)snprintf(words, sizeof(words), " taken %.*s ", (int)GRAFT_LEASE_ID_SIZE,
		       freed + strcspn(freed, " \n") + strlen(" freed "));
	do {
		line = find_line_before(log, line);
	} while (line && !is_event(line, words));
	return line;
}

void graft_lease_past_freed(const char *log, struct graft_lendable *host)
{
	for (const char *line = log, *next; *line != '\0'; line = next) {
		const char *end = strchrnul(line, '\n'), *taken;

		next = *end == '\n' ? end + 1 : end;
		taken = is_event(line, " freed ") ? find_taken(log, line) : NULL;
		for (size_t i = 0; taken && i < host->n_gpus; i++) {
			if (host->gpus[i].uuid && lists(find_devices(taken), host->gpus[i].uuid))
				host->gpus[i].freed = strtoll(line, NULL, 10);
		}
	}
}

int graft_lease_past_devices(const char *log, const char *container, struct graft_arena *arena,
			     struct graft_strings *ret_devices, struct graft_error *err)
{
	struct graft_buffer words = { .max = 1024 };
	const char *line = "", *text;
	size_t n;

	*ret_devices = (struct graft_strings){ .n = 0 };
	graft_buffer_string(&words, GRAFT_LEASE_LOG_CONTAINER);
	graft_lease_log_word(container, SIZE_MAX, &words);
	graft_buffer_char(&words, '\n');
	if (graft_buffer_failed(&words)) {
		graft_buffer_done(&words);
		return graft_fail_memory(err);
	}
	for (text = log; (text = strstr(text, graft_buffer_text(&words))); text++)
		line = text;
	graft_buffer_done(&words);
	while (*line != '\0' && line > log && line[-1] != '\n')
		line--;
	for (line = find_devices(line); (n = strcspn(line, ", \n")) > 0; line += n + 1) {
		const char *uuid = graft_arena_strndup(arena, line, n);

		if (!uuid || !graft_arena_push_string(arena, &ret_devices->items, &ret_devices->n, uuid))
			return graft_fail_memory(err);
		if (line[n] != ',')
			break;
	}
	return 0;
}
