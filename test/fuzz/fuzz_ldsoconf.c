/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/ld.so.conf, in a directory of its own. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "formats/ldsoconf.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char directory[] = "/tmp/graft-fuzz-XXXXXX";
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	const char **dirs = NULL, **added = NULL;
	size_t n = 0, n_added = 0;

	if (size > ((size_t)64 << 10)) {
		(void)graft_arena_free(arena);
		return 0;
	}
	if (!arena || !mkdtemp(directory) || graft_root_open(&root, directory, NULL) < 0)
		abort();
	(void)mkdirat(root.fd, "etc", 0700);
	auto_close int fd = openat(root.fd, "etc/ld.so.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (write(fd, data, size) == (ssize_t)size)
		(void)graft_ldsoconf_read_apart(&root, arena, &dirs, &n, &added, &n_added, NULL);
	(void)unlinkat(root.fd, "etc/ld.so.conf", 0);
	(void)unlinkat(root.fd, "etc", AT_REMOVEDIR);
	(void)rmdir(directory);
	(void)graft_arena_free(arena);
	return 0;
}
