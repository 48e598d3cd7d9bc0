/* SPDX-License-Identifier: Apache-2.0 */
/* lease_past: lines of two logs. Does not know where they are. */
#include "lease/lease_past.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/xid.h"
#include "request/claim.h"

#define TEXT_MAX   1024u
#define FAULTS_MAX 256u

/* ---- the kernel's log ---- */

struct faults {
	struct graft_xid_line lines[FAULTS_MAX];
	size_t n;
};

/* "<6>[   12.3] text"; the facility of what processes write is not 0. NULL: not of the kernel. */
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
		/* Most lines are of others. */
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

/* The start of the last line before `end` that has the text; NULL: there is none. */
static const char *find_line(const char *log, const char *end, const char *text)
{
	const char *found = NULL;

	for (const char *at = log; (at = strstr(at, text)) && at < end; at++)
		found = at;
	while (found && found > log && found[-1] != '\n')
		found--;
	return found;
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

void graft_lease_past_freed(const char *log, struct graft_lendable *host)
{
	for (const char *freed = log; (freed = strstr(freed, " freed ")); freed++) {
		const char *line = freed, *taken;
		char text[32];

		while (line > log && line[-1] != '\n')
			line--;
		(void)snprintf(text, sizeof(text), " taken %.*s ", (int)GRAFT_LEASE_ID_SIZE, freed + strlen(" freed "));
		taken = find_line(log, line, text);
		for (size_t i = 0; taken && i < host->n_gpus; i++) {
			if (host->gpus[i].uuid && lists(find_devices(taken), host->gpus[i].uuid))
				host->gpus[i].freed = strtoll(line, NULL, 10);
		}
	}
}

int graft_lease_past_devices(const char *log, const char *container, struct graft_arena *arena,
			     struct graft_strings *ret_devices, struct graft_error *err)
{
	const char *text = graft_arena_printf(arena, " container %s\n", container), *line;
	size_t n;

	*ret_devices = (struct graft_strings){ .n = 0 };
	if (!text)
		return graft_fail_memory(err);
	line = find_line(log, log + strlen(log), text);
	for (line = line ? find_devices(line) : ""; (n = strcspn(line, ", \n")) > 0; line += n + 1) {
		const char *uuid = graft_arena_strndup(arena, line, n);

		if (!uuid || !graft_arena_push_string(arena, &ret_devices->items, &ret_devices->n, uuid))
			return graft_fail_memory(err);
		if (line[n] != ',')
			break;
	}
	return 0;
}
