/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: a container with GPU 0, on a root directory that has a mount point mnt/. As root:
 *
 *	cc container.c $(pkg-config --cflags --libs libnvidia-container) -o container && ./container /srv/debian nvidia-smi -L
 */
#define _GNU_SOURCE
#include <nvc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

/* In the container's own namespaces, with the host still in view: the driver and one GPU below `root`. */
static void give_gpu(const char *root)
{
	struct nvc_context *ctx = nvc_context_new();
	struct nvc_container_config *config = nvc_container_config_new(getpid(), root);
	struct nvc_container *container = NULL;
	struct nvc_driver_info *driver = NULL;
	struct nvc_device_info *gpus = NULL;
	int ok = ctx && config && nvc_init(ctx, NULL, NULL) == 0 &&
		 (container = nvc_container_new(ctx, config, "standalone no-cgroups compute utility")) &&
		 (driver = nvc_driver_info_new(ctx, NULL)) && (gpus = nvc_device_info_new(ctx, "no-nvml")) &&
		 gpus->ngpus > 0 && nvc_driver_mount(ctx, container, driver) == 0 &&
		 nvc_device_mount(ctx, container, &gpus->gpus[0]) == 0 && nvc_ldcache_update(ctx, container) == 0;

	if (!ok) {
		fprintf(stderr, "container: %s\n", ctx && nvc_error(ctx) ? nvc_error(ctx) : "no GPU");
		exit(1);
	}
	nvc_device_info_free(gpus);
	nvc_driver_info_free(driver);
	nvc_container_free(container);
	nvc_container_config_free(config);
	nvc_context_free(ctx);
}

int main(int argc, char **argv)
{
	int status = 0;
	pid_t pid;

	if (argc < 3)
		return fprintf(stderr, "usage: container ROOT COMMAND [ARGUMENT...]\n"), 64;
	check(unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) == 0, "unshare");
	pid = fork();
	check(pid >= 0, "fork");
	if (pid > 0) {
		check(waitpid(pid, &status, 0) == pid, "waitpid");
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount /");
	check(mount(argv[1], argv[1], NULL, MS_BIND, NULL) == 0 && chdir(argv[1]) == 0, argv[1]);
	check(mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "mount proc");
	give_gpu(argv[1]);
	check(syscall(SYS_pivot_root, ".", "mnt") == 0 && chdir("/") == 0 && umount2("/mnt", MNT_DETACH) == 0,
	      "pivot_root");
	clearenv();
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
