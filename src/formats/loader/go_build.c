/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_build: section -> text -> one line of it. The text has a line
 * "dep<TAB>MODULE<TAB>VERSION<TAB>SUM" for each module, and if that is replaced, the next line has
 * "=>" instead of "dep".
 */
#include "formats/loader/go_build.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/loader/elf.h"

#define SECTION      ".go.buildinfo"
#define SECTION_MAX  ((size_t)1 << 20)
#define MAGIC        "\xff Go buildinf:"
#define FLAGS_AT     15u
#define INLINE_TEXTS 2u /* the texts follow the header; before Go 1.18 it had their addresses */
#define HEADER_SIZE  32u

struct bytes {
	const unsigned char *at, *end;
};

/* Takes a text, whose length precedes it as a varint: 7 bits a byte, the lowest first. */
static bool take_go_text(struct bytes *bytes, struct bytes *ret_text)
{
	size_t length = 0;

	for (unsigned int shift = 0; shift < 32; shift += 7) {
		if (bytes->at == bytes->end)
			return false;
		length |= (size_t)(*bytes->at & 0x7fu) << shift;
		if ((*bytes->at++ & 0x80u) == 0)
			break;
	}
	if (length > (size_t)(bytes->end - bytes->at))
		return false;
	*ret_text = (struct bytes){ bytes->at, bytes->at + length };
	bytes->at += length;
	return true;
}

/* Takes what precedes the next `separator`, or the rest. */
static struct bytes take_until(struct bytes *bytes, char separator)
{
	size_t left = (size_t)(bytes->end - bytes->at);
	const unsigned char *stop = left > 0 ? memchr(bytes->at, separator, left) : NULL;
	struct bytes part = { bytes->at, stop ? stop : bytes->end };

	bytes->at = stop ? stop + 1 : bytes->end;
	return part;
}

static bool is_text(struct bytes bytes, const char *text)
{
	size_t length = strlen(text);

	return (size_t)(bytes.end - bytes.at) == length && memcmp(bytes.at, text, length) == 0;
}

static const char *find_module(struct bytes text, const char *module, struct graft_arena *arena)
{
	struct bytes found = { NULL, NULL };
	bool is_previous = false;

	while (text.at < text.end) {
		struct bytes line = take_until(&text, '\n');
		struct bytes kind = take_until(&line, '\t'), name = take_until(&line, '\t');
		bool is_module = is_text(kind, "dep") ? is_text(name, module) : is_previous && is_text(kind, "=>");

		if (is_module)
			found = take_until(&line, '\t');
		is_previous = is_module;
	}
	/* A module that is replaced by a directory has no version. */
	if (!found.at || found.at == found.end || *found.at != 'v')
		return NULL;
	return graft_arena_strndup(arena, (const char *)found.at + 1, (size_t)(found.end - found.at) - 1);
}

const char *graft_go_build_parse(const void *section, size_t length, const char *module, struct graft_arena *arena)
{
	const unsigned char *start = section;
	struct bytes bytes = { start, start + length }, go_version, modules;

	if (length < HEADER_SIZE || memcmp(start, MAGIC, strlen(MAGIC)) != 0 || (start[FLAGS_AT] & INLINE_TEXTS) == 0)
		return NULL;
	bytes.at += HEADER_SIZE;
	if (!take_go_text(&bytes, &go_version) || !take_go_text(&bytes, &modules))
		return NULL;
	return find_module(modules, module, arena);
}

const char *graft_go_build_read(int fd, const char *module, struct graft_arena *arena)
{
	struct graft_elf_section section = { .bytes = NULL };
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_elf_section(fd, "program", SECTION, SHT_PROGBITS, SECTION_MAX, arena, &section, &err) <= 0)
		return NULL;
	return graft_go_build_parse(section.bytes, section.length, module, arena);
}
