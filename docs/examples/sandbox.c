/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: GPU 0 in a sandbox that bubblewrap makes. The root directory gets the GPU in a mount namespace of its own; bubblewrap then takes it with all
 * that is mounted on it. As root:
 *
 *	cc sandbox.c $(pkg-config --cflags --libs libnvidia-container) -o sandbox && ./sandbox /srv/debian nvidia-smi -L
 */
#define _GNU_SOURCE
#include <nvc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

static int give_gpu(struct nvc_context *ctx, const char *root)
{
	struct nvc_container_config *config = nvc_container_config_new(getpid(), root);
	struct nvc_container *container = NULL;
	struct nvc_driver_info *driver = NULL;
	struct nvc_device_info *gpus = NULL;
	int ok = config && nvc_init(ctx, NULL, NULL) == 0 &&
		 (container = nvc_container_new(ctx, config, "standalone no-cgroups compute utility")) &&
		 (driver = nvc_driver_info_new(ctx, NULL)) && (gpus = nvc_device_info_new(ctx, "no-nvml")) &&
		 gpus->ngpus > 0 && nvc_driver_mount(ctx, container, driver) == 0 &&
		 nvc_device_mount(ctx, container, &gpus->gpus[0]) == 0 && nvc_ldcache_update(ctx, container) == 0;

	nvc_device_info_free(gpus);
	nvc_driver_info_free(driver);
	nvc_container_free(container);
	nvc_container_config_free(config);
	return ok;
}

int main(int argc, char **argv)
{
	const char *const before[] = {
		"bwrap", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--dev-bind", argv[1], "/"
	};
	const size_t n_before = sizeof(before) / sizeof(before[0]);
	struct nvc_context *ctx = nvc_context_new();
	const char **command;
	size_t n = 0;

	if (argc < 3 || !ctx)
		return fprintf(stderr, "usage: sandbox ROOT COMMAND [ARGUMENT...]\n"), 64;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(argv[1], argv[1], NULL, MS_BIND, NULL) < 0 || chdir(argv[1]) < 0 ||
	    mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return perror(argv[1]), 1;
	if (!give_gpu(ctx, argv[1]))
		return fprintf(stderr, "sandbox: %s\n", nvc_error(ctx) ? nvc_error(ctx) : "no GPU"), 1;
	nvc_context_free(ctx);
	command = calloc(n_before + (size_t)argc, sizeof(*command));
	if (!command)
		return perror("calloc"), 1;
	for (size_t i = 0; i < n_before; i++)
		command[n++] = before[i];
	for (int i = 2; i < argc; i++)
		command[n++] = argv[i];
	execvp(command[0], (char **)(void *)command);
	perror(command[0]);
	return 127;
}
