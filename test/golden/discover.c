/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover: the inventory of a driver root as it would be if the root were the host's own: what
 * golden tests keep. Prints JSON, or on failure the error's text, and exits with 0 in both cases:
 * both are valid results.
 *
 *	discover DIRECTORY ROOT [WORD...]
 *		ROOT is below DIRECTORY, as --root would name it on that host. nvml: ask for what only NVML knows, too;
 *		mig-caps: with the nodes of all MIG instances that there could be.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/discover.h"

/* Takes the directory that the simulated host lies in off a path. */
static void rebase(const char **path, const char *directory)
{
	size_t length = strlen(directory);

	if (*path && strncmp(*path, directory, length) == 0 && ((*path)[length] == '/' || (*path)[length] == '\0'))
		*path = (*path)[length] == '\0' ? "/" : *path + length;
}

int main(int argc, char **argv)
{
	const unsigned int facts = GRAFT_NVML_UUID | GRAFT_NVML_MODEL | GRAFT_NVML_BRAND | GRAFT_NVML_ARCH |
				   GRAFT_NVML_CUDA | GRAFT_NVML_MIG;
	unsigned int needs = (GRAFT_NEED_ALL & ~(unsigned int)GRAFT_NEED_MIG_CAPS) | GRAFT_NEED_MANAGEMENT;
	struct graft_inventory *inventory = NULL;
	bool nvml = false;
	struct graft_buffer out = { 0 };
	struct graft_error err = { 0 };
	char root[1024], text[1024];
	struct graft_host_options options = { .root = root,
					      .nvml_uid = (uid_t)-1,
					      .nvml_gid = (gid_t)-1,
					      .path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
					      .capabilities = GRAFT_CAP_ALL,
					      .gates = GRAFT_GATE_ALL };

	for (int i = 3; i < argc; i++) {
		nvml = nvml || strcmp(argv[i], "nvml") == 0;
		if (strcmp(argv[i], "mig-caps") == 0)
			needs |= GRAFT_NEED_MIG_CAPS;
	}
	if (argc < 3) {
		(void)fputs("usage: discover DIRECTORY ROOT [nvml] [mig-caps]\n", stderr);
		return 64;
	}
	(void)snprintf(root, sizeof(root), "%s%s", argv[1], strcmp(argv[2], "/") != 0 ? argv[2] : "");
	if (graft_host_discover(&options, needs, &inventory, &err) < 0 ||
	    (nvml && graft_host_complete(&options, inventory, facts, &err) < 0)) {
		printf("%s\n", graft_error_text(&err, text, sizeof(text)));
		return 0;
	}
	rebase(&inventory->root, argv[1]);
	rebase(&inventory->dev_root, argv[1]);
	rebase(&inventory->proc_root, argv[1]);
	graft_inventory_write(inventory, &out);
	(void)fputs(graft_buffer_text(&out), stdout);
	graft_buffer_done(&out);
	inventory = graft_inventory_free(inventory);
	return 0;
}
