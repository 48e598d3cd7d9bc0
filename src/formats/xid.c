/* SPDX-License-Identifier: Apache-2.0 */
/* xid: lines of the kernel log. Does not know where they come from, or what follows from them. */
#include "formats/xid.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/procfs.h"

/* Faults of applications (SPEC kubernetes 6.8). */
static const uint32_t of_applications[] = { 13, 31, 43, 45, 68, 109 };

/*
 * "level,sequence,time,flags;text": the level of the kernel's own messages is below 8, since their
 * facility is 0, which no process can use. NULL if a process wrote the line.
 */
static const char *kernel_text(const char *line)
{
	const char *semicolon = strchr(line, ';');
	char *end;

	if (!isdigit((unsigned char)line[0]) || !semicolon)
		return line;
	if (strtoul(line, &end, 10) >= 8 || *end != ',')
		return NULL;
	return semicolon + 1;
}

static bool skip_xid_text(const char **at, const char *text)
{
	if (!graft_starts_with(*at, text))
		return false;
	*at += strlen(text);
	return true;
}

static bool take_xid_number(const char **at, int base, uint32_t *ret_number)
{
	char *end;
	unsigned long number;

	if (!isxdigit((unsigned char)**at))
		return false;
	number = strtoul(*at, &end, base);
	if (end == *at || number > UINT32_MAX)
		return false;
	*at = end;
	*ret_number = (uint32_t)number;
	return true;
}

/* "0000:3b:00", as the driver and procfs write it. */
static bool take_xid_address(const char **at, struct graft_xid_line *line)
{
	return take_xid_number(at, 16, &line->domain) && skip_xid_text(at, ":") &&
	       take_xid_number(at, 16, &line->bus) && skip_xid_text(at, ":") && take_xid_number(at, 16, &line->device);
}

/* " GPU-I:02 GPU-CI:00", between the address and the bracket; hexadecimal. */
static void read_instance(const char *text, struct graft_xid_line *line)
{
	uint32_t gi, ci;

	if (skip_xid_text(&text, " GPU-I:") && take_xid_number(&text, 16, &gi) && skip_xid_text(&text, " GPU-CI:") &&
	    take_xid_number(&text, 16, &ci)) {
		line->has_instance = true;
		line->gi = gi;
		line->ci = ci;
	}
}

static struct graft_xid_line read_fault(const char *text)
{
	struct graft_xid_line line = { .kind = GRAFT_XID_NOTHING }, nothing = { .kind = GRAFT_XID_NOTHING };
	const char *close = strchr(text, ')');

	(void)skip_xid_text(&text, "PCI:");
	if (!close || !take_xid_address(&text, &line) || text > close)
		return nothing;
	read_instance(text, &line);
	if (!skip_xid_text(&close, "): ") || !take_xid_number(&close, 10, &line.number) || *close != ',')
		return nothing;
	/* At the end: before it there may be the name of a process, which its user has chosen. */
	line.kind = line.number == GRAFT_XID_RECOVERY && graft_ends_with(close, " to 0x0 (None)") ? GRAFT_XID_RECOVERED
												  : GRAFT_XID_FAULT;
	return line;
}

/* "0000:3b:00.0: GPU reset": older drivers report no more about a completed reset. */
static struct graft_xid_line read_reset(const char *text)
{
	struct graft_xid_line line = { .kind = GRAFT_XID_RECOVERED };

	if (!take_xid_address(&text, &line) || strcmp(text, ".0: GPU reset") != 0)
		return (struct graft_xid_line){ .kind = GRAFT_XID_NOTHING };
	return line;
}

/* "0000:3b:00.0: [10de:2330] type 00 class 0x030200" */
static struct graft_xid_line read_found(const char *text)
{
	struct graft_xid_line line = { .kind = GRAFT_XID_FOUND };

	if (!take_xid_address(&text, &line) || !graft_starts_with(text, ".0: [10de:"))
		return (struct graft_xid_line){ .kind = GRAFT_XID_NOTHING };
	return line;
}

static struct graft_xid_line read_kernel_text(const char *text)
{
	if (text && graft_starts_with(text, "NVRM: Xid ("))
		return read_fault(text + strlen("NVRM: Xid ("));
	if (text && graft_starts_with(text, "NVRM: GPU "))
		return read_reset(text + strlen("NVRM: GPU "));
	if (text && graft_starts_with(text, "NVRM: loading NVIDIA UNIX "))
		return (struct graft_xid_line){ .kind = GRAFT_XID_LOADED };
	if (text && graft_starts_with(text, "pci "))
		return read_found(text + strlen("pci "));
	return (struct graft_xid_line){ .kind = GRAFT_XID_NOTHING };
}

struct graft_xid_line graft_xid_parse(const char *line)
{
	const char *text = kernel_text(line);
	struct graft_xid_line read = read_kernel_text(text);

	if (text && text != line)
		read.sequence = strtoull(line + strcspn(line, ",") + 1, NULL, 10);
	return read;
}

bool graft_xid_is_same_gpu(const struct graft_xid_line *a, const struct graft_xid_line *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

bool graft_xid_is_same_device(const struct graft_xid_line *a, const struct graft_xid_line *b)
{
	return graft_xid_is_same_gpu(a, b) && a->has_instance == b->has_instance && a->gi == b->gi && a->ci == b->ci;
}

static void set_bit(uint64_t *bits, unsigned long number)
{
	if (number < GRAFT_XID_MAX)
		bits[number / 64] |= (uint64_t)1 << (number % 64);
}

static bool has_bit(const uint64_t *bits, uint32_t number)
{
	return number < GRAFT_XID_MAX && (bits[number / 64] >> (number % 64) & 1) != 0;
}

/* Sets the bits of a list, all of them for "all"; returns whether it has one of the words. */
static bool read_numbers(const char *list, uint64_t *bits)
{
	bool all = false;

	while (*list != '\0') {
		size_t length;
		char *end;
		unsigned long number;

		list += strspn(list, ", ");
		length = strcspn(list, ", ");
		number = strtoul(list, &end, 10);
		if (isdigit((unsigned char)list[0]) && end == list + length)
			set_bit(bits, number);
		all |= length == 3 && strncasecmp(list, "all", 3) == 0;
		all |= length == 4 && strncasecmp(list, "xids", 4) == 0;
		list += length;
	}
	return all;
}

struct graft_xid_rules graft_xid_rules_make(const char *disable, const char *enable)
{
	struct graft_xid_rules rules = { .none = false };

	rules.none = read_numbers(disable, rules.ignored);
	for (size_t i = 0; i < GRAFT_COUNT(of_applications); i++)
		set_bit(rules.ignored, of_applications[i]);
	if (read_numbers(enable, rules.enabled)) {
		rules.none = false;
		memset(rules.ignored, 0, sizeof(rules.ignored));
	}
	return rules;
}

bool graft_xid_matters(const struct graft_xid_rules *rules, uint32_t number)
{
	return has_bit(rules->enabled, number) || (!rules->none && !has_bit(rules->ignored, number));
}

bool graft_xid_any_matters(const struct graft_xid_rules *rules)
{
	for (uint32_t number = 0; number < GRAFT_XID_MAX; number++) {
		if (graft_xid_matters(rules, number))
			return true;
	}
	return false;
}

bool graft_xid_is_of(const struct graft_xid_line *line, const char *bus_id)
{
	struct graft_pci_address own;

	return bus_id && graft_pci_parse(bus_id, &own) && own.domain == line->domain && own.bus == line->bus &&
	       own.device == line->device;
}
