/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps_control: the simulated nvidia-cuda-mps-control. With -d or -f it is a daemon that knows which
 * processes use CUDA through its pipe directory; otherwise it takes commands from standard input,
 * from people and scripts. It schedules nothing: there is no GPU. Like the real one, it starts a
 * server for the user of its first client, and makes clients of other users wait until all of that
 * user's clients have ended.
 */
#include "mps_control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/mps.h"

#define MAX_CLIENTS 64
#define MAX_DEVICES 16

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
	uid_t uids[1 + MAX_CLIENTS];
	bool waits[1 + MAX_CLIENTS]; /* waits for the end of another user's server */
	nfds_t n;
	pid_t server; /* 0: none runs */
	uid_t server_uid;
	char percentage[32], memory_limit[MAX_DEVICES][32];
} served = { .n = 1, .percentage = "100.0" };
static FILE *control_log;

/* Returns the peer's process id in the pid namespace of the daemon, or 0. */
static pid_t peer_of(int fd, uid_t *ret_uid)
{
	struct ucred peer = { .pid = 0 };
	socklen_t length = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		peer.pid = 0;
	*ret_uid = peer.uid;
	return peer.pid;
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

static void log_event(const char *event, long number)
{
	if (control_log) {
		(void)fprintf(control_log, "[Graft] %s %ld\n", event, number);
		(void)fflush(control_log);
	}
}

/* --- the server --- */

/* Starts a process of the user that ends with the daemon. */
static void start_server(uid_t uid)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_NAME, "nvidia-cuda-mps");
		if (setuid(uid) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(1);
		(void)close(served.fds[0].fd);
		for (;;)
			(void)pause();
	}
	served.server = pid > 0 ? pid : 0;
	served.server_uid = uid;
	log_event("Starting new server for user", (long)uid);
}

static void end_server(void)
{
	if (served.server == 0)
		return;
	(void)kill(served.server, SIGKILL);
	(void)waitpid(served.server, NULL, 0);
	log_event("Server exited for user", (long)served.server_uid);
	served.server = 0;
}

/* The client waits unless the server belongs to its user. */
static void admit(nfds_t i)
{
	if (served.server == 0)
		start_server(served.uids[i]);
	served.waits[i] = served.server_uid != served.uids[i];
	if (served.waits[i])
		log_event("User has to wait", (long)served.uids[i]);
	else
		say(served.fds[i].fd, SIM_MPS_WELCOME);
}

static bool has_clients(void)
{
	for (nfds_t i = 1; i < served.n; i++) {
		if (served.pids[i] > 0 && !served.waits[i])
			return true;
	}
	return false;
}

/* The server of a user without clients makes room for waiting clients. */
static void admit_waiting(void)
{
	bool any = false;

	for (nfds_t i = 1; i < served.n; i++)
		any |= served.waits[i];
	if (!any || has_clients())
		return;
	end_server();
	for (nfds_t i = 1; i < served.n; i++) {
		if (served.waits[i])
			admit(i);
	}
}

/* --- settings --- */

static const char *argument_of(const char *command, const char *name)
{
	size_t length = strlen(name);

	return strncmp(command, name, length) == 0 && command[length] == ' ' ? command + length + 1 : NULL;
}

/* Returns false if the command is none of these. */
static bool answer_setting(int fd, const char *command)
{
	const char *value = argument_of(command, "set_default_active_thread_percentage");
	char *end;
	unsigned long device;

	if (value) {
		(void)snprintf(served.percentage, sizeof(served.percentage), "%.1f", strtod(value, NULL));
		say(fd, served.percentage);
		say(fd, "\n");
	} else if (strncmp(command, "get_default_active_thread_percentage", 36) == 0) {
		say(fd, served.percentage);
		say(fd, "\n");
	} else if ((value = argument_of(command, "set_default_device_pinned_mem_limit"))) {
		device = strtoul(value, &end, 10);
		if (end == value || *end != ' ' || device >= MAX_DEVICES)
			say(fd, "invalid device\n");
		else
			(void)snprintf(served.memory_limit[device], sizeof(served.memory_limit[device]), "%.*s",
				       (int)strcspn(end + 1, "\n"), end + 1);
	} else if ((value = argument_of(command, "get_default_device_pinned_mem_limit"))) {
		device = strtoul(value, NULL, 10);
		say(fd, device < MAX_DEVICES && served.memory_limit[device][0] ? served.memory_limit[device]
									       : "No memory limit set");
		say(fd, "\n");
	} else {
		return false;
	}
	return true;
}

/*
 * Returns true if the daemon must exit. A client's connection stays open; every other one is closed
 * after the answer.
 */
static bool answer_client(nfds_t i, const char *command)
{
	int fd = served.fds[i].fd;

	if (strcmp(command, SIM_MPS_CLIENT) == 0) {
		served.pids[i] = peer_of(fd, &served.uids[i]);
		admit(i);
		return false;
	}
	if (strcmp(command, "get_server_list\n") == 0) {
		if (served.server > 0)
			say_number(fd, served.server);
	} else if (strncmp(command, "start_server -uid ", 18) == 0) {
		if (served.server == 0)
			start_server((uid_t)strtoul(command + 18, NULL, 10));
	} else if (strncmp(command, "get_client_list", 15) == 0) {
		for (nfds_t k = 1; k < served.n; k++) {
			if (served.pids[k] > 0 && !served.waits[k])
				say_number(fd, served.pids[k]);
		}
	} else if (strncmp(command, "quit", 4) != 0 && !answer_setting(fd, command)) {
		say(fd, "unknown command\n");
	}
	(void)shutdown(fd, SHUT_RDWR);
	return strncmp(command, "quit", 4) == 0;
}

static void forget(nfds_t i)
{
	(void)close(served.fds[i].fd);
	served.n--;
	served.fds[i] = served.fds[served.n];
	served.pids[i] = served.pids[served.n];
	served.uids[i] = served.uids[served.n];
	served.waits[i] = served.waits[served.n];
}

static void welcome(void)
{
	int fd = accept4(served.fds[0].fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && served.n == 1 + MAX_CLIENTS) {
		(void)close(fd);
	} else if (fd >= 0) {
		served.fds[served.n] = (struct pollfd){ .fd = fd, .events = POLLIN };
		served.waits[served.n] = false;
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
		admit_waiting();
	}
}

static char pid_file[sizeof(address.sun_path) + 64];

/* One daemon for each directory: held until it ends. */
static bool lock_directory(const char *directory)
{
	char path[sizeof(address.sun_path) + 64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/control_lock", directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	(void)printf("An instance of this daemon is already running\n");
	return false;
}

static void write_pid(const char *directory)
{
	FILE *file;

	(void)snprintf(pid_file, sizeof(pid_file), "%s/%s.pid", directory, program);
	file = fopen(pid_file, "we");
	if (file) {
		(void)fprintf(file, "%d\n", (int)getpid());
		(void)fclose(file);
	}
}

static void open_control_log(void)
{
	const char *directory = getenv("CUDA_MPS_LOG_DIRECTORY");
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/control.log", directory ? directory : "/var/log/nvidia-mps");
	control_log = fopen(path, "ae");
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
	if (!lock_directory(directory))
		return 1;
	(void)unlink(address.sun_path);
	/* Every user of the GPU may be a client. */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || chmod(address.sun_path, 0666) < 0 ||
	    listen(fd, MAX_CLIENTS) < 0)
		return fail_mps_control(address.sun_path);
	(void)printf("%s: simulated by Graft; clients through %s\n", program, directory);
	(void)fflush(stdout);
	if (background && daemon(0, 0) < 0)
		return fail_mps_control("daemon");
	served.fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	write_pid(directory);
	open_control_log();
	log_event("Start, process", (long)getpid());
	serve();
	end_server();
	log_event("Exit, process", (long)getpid());
	(void)unlink(address.sun_path);
	(void)unlink(pid_file);
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
