/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pci_vgpu: walks the list of capabilities to the vendor's own one. It begins with "VF", followed
 * by records that start with an id and a length, one byte each; the length includes these two. The
 * last record, 0, has version and branch of the host's driver, 10 bytes each, padded with zeros.
 */
#include "formats/pci_vgpu.h"

#include <ctype.h>
#include <string.h>

#define SPACE_MAX       256u /* capabilities are in its first 256 bytes */
#define STATUS          0x06u
#define STATUS_HAS_LIST 0x10u
#define FIRST           0x34u
#define HEADER          0x40u /* capabilities come after it */
#define VENDOR_SPECIFIC 0x09
#define SIGNATURE       3u
#define RECORDS         5u
#define TEXT_LENGTH     ((size_t)10)

/*
 * Returns the vendor's capability and its length, or NULL. Each one is at a different offset, so
 * the walk ends.
 */
static const unsigned char *find_capability(const unsigned char *space, size_t length, size_t *ret_length)
{
	size_t at;

	if (length < HEADER || (space[STATUS] & STATUS_HAS_LIST) == 0)
		return NULL;
	at = space[FIRST] & ~3u;
	for (unsigned int i = 0; i < SPACE_MAX / 4 && at >= HEADER && at + RECORDS <= length; i++) {
		if (space[at] == VENDOR_SPECIFIC && space[at + 2] <= length - at &&
		    memcmp(space + at + SIGNATURE, "VF", 2) == 0) {
			*ret_length = space[at + 2];
			return space + at;
		}
		at = space[at + 1] & ~3u;
	}
	return NULL;
}

static const char *read_vgpu_text(const unsigned char *bytes, struct graft_arena *arena)
{
	size_t n = 0;

	while (n < TEXT_LENGTH && bytes[n] < 0x80 && (isalnum(bytes[n]) || strchr("._-", bytes[n])) && bytes[n] != 0)
		n++;
	return graft_arena_strndup(arena, (const char *)bytes, n);
}

bool graft_pci_vgpu_parse(const char *space, size_t length, struct graft_arena *arena, struct graft_pci_vgpu *ret_vgpu)
{
	size_t n, at = RECORDS;
	const unsigned char *capability = find_capability((const unsigned char *)space,
							  length < SPACE_MAX ? length : SPACE_MAX, &n);

	*ret_vgpu = (struct graft_pci_vgpu){ .host_driver_version = NULL };
	if (!capability)
		return false;
	while (at + 2 <= n && capability[at] != 0) {
		if (capability[at + 1] < 2)
			return false;
		at += capability[at + 1];
	}
	if (at + 2 + 2 * TEXT_LENGTH > n)
		return false;
	ret_vgpu->host_driver_version = read_vgpu_text(capability + at + 2, arena);
	ret_vgpu->host_driver_branch = read_vgpu_text(capability + at + 2 + TEXT_LENGTH, arena);
	return true;
}
