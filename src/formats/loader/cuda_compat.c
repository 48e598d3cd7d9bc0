/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_compat: section -> note -> JSON, and the table of SPEC ctk-and-cdi 2.4. Does not choose the
 * file to read.
 */
#include "formats/loader/cuda_compat.h"

#include <elf.h>
#include <string.h>

#include "formats/json/json_document.h"
#include "formats/loader/elf.h"

#define SECTION     ".note.cuda.fwd_compatibility"
#define OWNER       "NVIDIA Corporation"
#define NOTE_MAX    ((size_t)64 << 10)
#define DRIVERS_MAX 1024
#define PARTS       3

/* ---- the note ---- */

static uint64_t align_note_size(uint64_t n, uint64_t alignment)
{
	return (n + alignment - 1) / alignment * alignment;
}

static int fail_compat_section(const char *name, const char *why, struct graft_error *err)
{
	return graft_fail(err, GRAFT_FORMAT, 0, "%s: bad section " SECTION ": %s", name, why);
}

/* Elements that are not numbers, or too large, are skipped: they cannot name an existing branch. */
static int read_drivers(const struct graft_json_node *list, struct graft_arena *arena, struct graft_cuda_compat *compat,
			struct graft_error *err)
{
	const struct graft_json_node *node = graft_json_node_first(list);

	for (; node && compat->n_drivers < DRIVERS_MAX; node = graft_json_node_next(node)) {
		uint64_t value = 0;
		uint32_t *slot;

		if (!graft_json_node_u64(node, &value) || value > UINT32_MAX)
			continue;
		slot = graft_arena_push(arena, &compat->drivers, &compat->n_drivers, sizeof(*slot));
		if (!slot)
			return graft_fail_memory(err);
		*slot = (uint32_t)value;
	}
	return 0;
}

static int read_description(const char *text, size_t length, const char *name, struct graft_arena *arena,
			    struct graft_cuda_compat *ret_compat, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_cuda_compat compat = { 0 };
	const struct graft_json_node *root;
	const char *version;

	/* The description may be a C string with its terminator. */
	while (length > 0 && text[length - 1] == '\0')
		length--;
	if (graft_json_document_parse(name, text, length, &document, err) < 0)
		return -1;
	root = graft_json_document_root(document);
	version = graft_json_node_string(graft_json_node_member(root, "CUDA Version"));
	compat.cuda_version = graft_arena_strdup(arena, version);
	if (version && !compat.cuda_version)
		return graft_fail_memory(err);
	if (read_drivers(graft_json_node_member(root, "Driver"), arena, &compat, err) < 0)
		return -1;
	*ret_compat = compat;
	return 1;
}

int graft_cuda_compat_parse_note(const void *bytes, size_t length, uint64_t alignment, const char *name,
				 struct graft_arena *arena, struct graft_cuda_compat *ret_compat,
				 struct graft_error *err)
{
	const unsigned char *at = bytes;
	Elf64_Nhdr note;
	uint64_t text_at;

	if (length < sizeof(note))
		return fail_compat_section(name, "shorter than its header", err);
	if (alignment == 0 || alignment > 64)
		return fail_compat_section(name, "its alignment", err);
	memcpy(&note, at, sizeof(note));
	if (note.n_namesz == 0 || note.n_descsz == 0)
		return 0;
	text_at = sizeof(note) + align_note_size(note.n_namesz, alignment);
	if (text_at > length || note.n_descsz > length - text_at)
		return fail_compat_section(name, "shorter than its header says", err);
	/* The name's size may or may not include the terminator. */
	if (note.n_namesz < strlen(OWNER) || note.n_namesz > sizeof(OWNER) ||
	    memcmp(at + sizeof(note), OWNER, note.n_namesz) != 0)
		return 0;
	return read_description((const char *)at + text_at, note.n_descsz, name, arena, ret_compat, err);
}

int graft_cuda_compat_read_fd(int fd, const char *name, struct graft_arena *arena, struct graft_cuda_compat *ret_compat,
			      struct graft_error *err)
{
	struct graft_elf_section section = { .bytes = NULL };
	int rc = graft_elf_section(fd, name, SECTION, SHT_NOTE, NOTE_MAX, arena, &section, err);

	if (rc <= 0)
		return rc;
	return graft_cuda_compat_parse_note(section.bytes, section.length, section.alignment, name, arena, ret_compat,
					    err);
}

/* ---- versions ---- */

struct version {
	uint64_t parts[PARTS];
};

static bool parse_version(const char *text, struct version *ret_version)
{
	struct version version = { { 0 } };

	if (!text)
		return false;
	for (int part = 0; part < PARTS; part++) {
		size_t digits = strspn(text, "0123456789");

		if (digits == 0 || digits > 15)
			return false;
		for (size_t i = 0; i < digits; i++)
			version.parts[part] = version.parts[part] * 10 + (uint64_t)(text[i] - '0');
		text += digits;
		if (*text == '\0') {
			*ret_version = version;
			return true;
		}
		if (*text++ != '.')
			return false;
	}
	return false;
}

bool graft_cuda_compat_is_version(const char *text)
{
	struct version version;

	return parse_version(text, &version);
}

static int compare_versions(const struct version *a, const struct version *b)
{
	for (int i = 0; i < PARTS; i++)
		if (a->parts[i] != b->parts[i])
			return a->parts[i] < b->parts[i] ? -1 : 1;
	return 0;
}

static bool works_with(const struct graft_cuda_compat *compat, uint64_t branch)
{
	for (size_t i = 0; i < compat->n_drivers; i++)
		if (compat->drivers[i] == branch)
			return true;
	return false;
}

bool graft_cuda_compat_suits(const struct graft_cuda_compat *compat, const char *version, const char *driver_version,
			     const char *cuda_version)
{
	struct version library, driver, cuda, said;
	bool both = parse_version(version, &library) && parse_version(driver_version, &driver);

	if (compat && both)
		return works_with(compat, driver.parts[0]) && compare_versions(&library, &driver) > 0;
	if (compat)
		return parse_version(cuda_version, &cuda) && parse_version(compat->cuda_version, &said) &&
		       compare_versions(&said, &cuda) > 0;
	if (cuda_version && cuda_version[0] != '\0')
		return false;
	return both && driver.parts[0] < library.parts[0];
}
