/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps_control: the simulated nvidia-cuda-mps-control. With -d or -f it is a daemon that knows which
 * processes use CUDA through its pipe directory; otherwise it takes commands from standard input,
 * from people and scripts. It schedules nothing: there is no GPU.
 */
#include "mps_control.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/mps.h"

#define MAX_CLIENTS 64

static const char program[] = "nvidia-cuda-mps-control";

static int fail_mps_control(const char *what)
{
	(void)fprintf(stderr, "%s: %s: %s\n", program, what, strerror(errno));
	return 1;
}

static struct sockaddr_un address;

/* --- the daemon --- */

static struct {
	struct pollfd fds[1 + MAX_CLIENTS]; /* [0]: the listening socket */
	pid_t pids[1 + MAX_CLIENTS];        /* 0: connected, but not using CUDA */
	nfds_t n;
} served = { .n = 1 };

/* Returns the peer's process id in the pid namespace of the daemon, or 0. */
static pid_t peer_of(int fd)
{
	struct ucred peer = { .pid = 0 };
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
}

static void say(int fd, const char *text)
{
	(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void say_number(int fd, pid_t pid)
{
	char line[32];

	(void)snprintf(line, sizeof(line), "%d\n", (int)pid);
	say(fd, line);
}

/*
 * Returns true if the daemon must exit. A client's connection stays open; every other one is closed
 * after the answer.
 */
static bool answer_client(nfds_t i, const char *command)
{
	int fd = served.fds[i].fd;

	if (strcmp(command, SIM_MPS_CLIENT) == 0) {
		served.pids[i] = peer_of(fd);
		say(fd, SIM_MPS_WELCOME);
		return false;
	}
	if (strcmp(command, "get_server_list\n") == 0) {
		say_number(fd, getpid());
	} else if (strncmp(command, "get_client_list", 15) == 0) {
		for (nfds_t k = 1; k < served.n; k++) {
			if (served.pids[k] > 0)
				say_number(fd, served.pids[k]);
		}
	} else if (strcmp(command, "quit\n") != 0) {
		say(fd, "unknown command\n");
	}
	(void)shutdown(fd, SHUT_RDWR);
	return strcmp(command, "quit\n") == 0;
}

static void forget(nfds_t i)
{
	(void)close(served.fds[i].fd);
	served.n--;
	served.fds[i] = served.fds[served.n];
	served.pids[i] = served.pids[served.n];
}

static void welcome(void)
{
	int fd = accept4(served.fds[0].fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && served.n == 1 + MAX_CLIENTS) {
		(void)close(fd);
	} else if (fd >= 0) {
		served.fds[served.n] = (struct pollfd){ .fd = fd, .events = POLLIN };
		served.pids[served.n++] = 0;
	}
}

static void serve(void)
{
	char command[128];

	while (poll(served.fds, served.n, -1) >= 0 || errno == EINTR) {
		/* Backwards, because forget() moves the last entry into the gap. */
		for (nfds_t i = served.n - 1; i > 0; i--) {
			ssize_t n = served.fds[i].revents ? recv(served.fds[i].fd, command, sizeof(command) - 1, 0)
							  : -1;

			if (served.fds[i].revents && n <= 0) {
				forget(i);
			} else if (n > 0) {
				command[n] = '\0';
				if (answer_client(i, command))
					return;
			}
		}
		if (served.fds[0].revents)
			welcome();
	}
}

static int start_mps_daemon(bool background)
{
	char directory[sizeof(address.sun_path)];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return fail_mps_control("socket");
	(void)snprintf(directory, sizeof(directory), "%s", address.sun_path);
	*strrchr(directory, '/') = '\0';
	(void)mkdir(directory, 0755);
	(void)unlink(address.sun_path);
	/* Anyone who may use the GPU may be a client. */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || chmod(address.sun_path, 0666) < 0 ||
	    listen(fd, MAX_CLIENTS) < 0)
		return fail_mps_control(address.sun_path);
	(void)printf("%s: simulated by Graft; clients through %s\n", program, directory);
	(void)fflush(stdout);
	if (background && daemon(0, 0) < 0)
		return fail_mps_control("daemon");
	served.fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	serve();
	(void)unlink(address.sun_path);
	return 0;
}

/* --- commands --- */

static int ask(const char *command)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[256];
	ssize_t n;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		(void)fail_mps_control("Cannot find MPS control daemon process");
		if (fd >= 0)
			(void)close(fd);
		return 1;
	}
	say(fd, command);
	while ((n = recv(fd, text, sizeof(text), 0)) > 0)
		(void)fwrite(text, 1, (size_t)n, stdout);
	(void)close(fd);
	return 0;
}

int sim_mps_control(int argc, char **argv)
{
	char command[128];

	if (!sim_mps_address(&address)) {
		errno = ENAMETOOLONG;
		return fail_mps_control(SIM_MPS_DIRECTORY_VARIABLE);
	}
	if (argc == 2 && (strcmp(argv[1], "-d") == 0 || strcmp(argv[1], "-f") == 0))
		return start_mps_daemon(argv[1][1] == 'd');
	while (fgets(command, sizeof(command), stdin)) {
		if (ask(command) != 0)
			return 1;
	}
	return 0;
}
