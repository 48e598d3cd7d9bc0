/* SPDX-License-Identifier: Apache-2.0 */
/* The scope in a cgroup path. */
#include <stdlib.h>
#include <string.h>

#include "apply/cgroup/systemd_scope.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *path = calloc(1, size + 1);
	struct graft_scope scope;

	if (path && size > 0)
		memcpy(path, data, size);
	/* What is found is a part of the path. */
	if (path && graft_scope_find(path, NULL, &scope) &&
	    (!strstr(path, scope.name) || strncmp(path, scope.group, strlen(scope.group)) != 0))
		abort();
	free(path);
	return 0;
}
