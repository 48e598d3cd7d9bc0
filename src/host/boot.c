/* SPDX-License-Identifier: Apache-2.0 */
/* boot: reads the kernel's boot id from procfs. */
#include "host/discover.h"

#include <errno.h>
#include <string.h>

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_MAX  64
#define ID_LETTERS   "0123456789abcdefABCDEF-"

int graft_host_boot_id(const struct graft_root *root, struct graft_arena *arena, const char **ret_id,
		       struct graft_error *err)
{
	const char *text;
	size_t length, id;
	int rc = graft_root_read(root, BOOT_ID_FILE, BOOT_ID_MAX, arena, &text, &length);

	*ret_id = NULL;
	if (rc == -ENOMEM)
		return graft_fail_memory(err);
	if (rc < 0)
		return 0;
	id = strspn(text, ID_LETTERS);
	if (id == 0 || (text[id] != '\n' && text[id] != '\0'))
		return 0;
	*ret_id = graft_arena_strndup(arena, text, id);
	return *ret_id ? 0 : graft_fail_memory(err);
}
