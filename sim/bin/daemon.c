/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon: the other programs of the simulated driver, one binary under all their names. Those with
 * a socket keep it open until they receive a signal, and answer nothing (except MPS:
 * mps_control.c); the others print what they are.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mps_control.h"

static const struct {
	const char *name, *directory, *socket;
} daemons[] = {
	{ "nvidia-persistenced", "/run/nvidia-persistenced", "/run/nvidia-persistenced/socket" },
	{ "nv-fabricmanager", "/run/nvidia-fabricmanager", "/run/nvidia-fabricmanager/socket" },
};

static int fail_daemon(const char *name, const char *what)
{
	(void)fprintf(stderr, "%s: %s: %s\n", name, what, strerror(errno));
	return 1;
}

static int hold(const char *name, const char *directory, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), signal_number;
	sigset_t end;

	if (fd < 0)
		return fail_daemon(name, "socket");
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	(void)mkdir(directory, 0755);
	(void)unlink(path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 8) < 0)
		return fail_daemon(name, path);
	(void)sigemptyset(&end);
	(void)sigaddset(&end, SIGTERM);
	(void)sigaddset(&end, SIGINT);
	(void)sigaddset(&end, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &end, NULL);
	(void)printf("%s: simulated by Graft; holding %s\n", name, path);
	(void)fflush(stdout);
	(void)sigwait(&end, &signal_number);
	(void)unlink(path);
	return 0;
}

int main(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : (argc > 0 ? argv[0] : "graft-sim-daemon");

	if (strcmp(name, "nvidia-cuda-mps-control") == 0)
		return sim_mps_control(argc, argv);
	if (argc == 1) {
		for (size_t i = 0; i < sizeof(daemons) / sizeof(daemons[0]); i++) {
			if (strcmp(name, daemons[i].name) == 0)
				return hold(name, daemons[i].directory, daemons[i].socket);
		}
	}
	(void)printf("%s: simulated by Graft; it does nothing\n", name);
	return 0;
}
