/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/ld.so.conf, in a directory of its own. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "formats/loader/ldsoconf.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char directory[] = "/tmp/graft-fuzz-XXXXXX";
	struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_budget *budget = graft_budget_new(GRAFT_BUDGET_CPU_MS);
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_ldsoconf conf;

	if (!arena || !budget || size > ((size_t)64 << 10) || !mkdtemp(directory)) {
		(void)graft_budget_free(budget);
		(void)graft_arena_free(arena);
		return 0;
	}
	graft_image_root_take(&root, open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), budget);
	(void)mkdirat(root.fd, "etc", 0700);
	auto_close int fd = openat(root.fd, "etc/ld.so.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (write(fd, data, size) == (ssize_t)size)
		(void)graft_ldsoconf_read_image(&root, true, NULL, arena, &conf, NULL);
	(void)unlinkat(root.fd, "etc/ld.so.conf", 0);
	(void)unlinkat(root.fd, "etc", AT_REMOVEDIR);
	(void)rmdir(directory);
	graft_image_root_close(&root);
	(void)graft_budget_free(budget);
	(void)graft_arena_free(arena);
	return 0;
}
