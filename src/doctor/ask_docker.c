/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask_docker: asks a running Docker daemon which runtimes and CDI directories it has, through its
 * socket. One read-only request, within a time limit and a size limit; the answer is parsed as
 * untrusted (engine/docker_info.h). A daemon that does not run is not asked, since connecting to
 * a socket of systemd would start it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dial.h"
#include "doctor/look.h"
#include "engine/docker_info.h"

#define ANSWER_MAX ((size_t)4 << 20)
#define ANSWER_MS  3000
#define CHUNK      16384u

/* Connects to the socket below the host's root. Returns the descriptor or -errno. */
static int connect_daemon(struct graft_health_look *look, const char *path)
{
	auto_close int place = graft_root_openat(look->host, path, O_PATH);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = place < 0 ? place : fd < 0 ? -errno : graft_dial_inode(fd, place);

	if (rc < 0)
		return rc;
	if (send(fd, GRAFT_DOCKER_INFO_REQUEST, strlen(GRAFT_DOCKER_INFO_REQUEST), MSG_NOSIGNAL) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Reads until the daemon closes the connection. Returns 0 or -errno. */
static int receive_docker_info(int fd, int timeout_ms, struct graft_buffer *answer)
{
	int64_t until = graft_clock_ms() + timeout_ms;

	for (;;) {
		struct pollfd pollfd = { .fd = fd, .events = POLLIN };
		int64_t now = graft_clock_ms();
		char bytes[CHUNK];
		ssize_t n;

		if (now >= until || poll(&pollfd, 1, (int)(until - now)) == 0)
			return -ETIMEDOUT;
		n = recv(fd, bytes, sizeof(bytes), 0);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0 && (size_t)n > ANSWER_MAX - answer->length)
			return -EFBIG;
		if (n > 0)
			graft_buffer_add(answer, bytes, (size_t)n);
		if (graft_buffer_failed(answer))
			return -ENOMEM;
	}
}

static void take_docker_info(struct graft_health_look *look, struct graft_health_engine *engine,
			     const struct graft_docker_info *info)
{
	struct graft_health_answer *answer = &engine->answer;

	engine->version = info->version ? info->version : engine->version;
	answer->default_runtime = info->default_runtime;
	answer->cdi_directories = info->cdi_directories;
	answer->n_cdi_directories = info->n_cdi_directories;
	for (size_t i = 0; i < info->n_runtimes; i++)
		graft_health_push_runtime(look, engine, &answer->runtimes, &answer->n_runtimes,
					  &(struct graft_health_runtime){ .name = info->runtimes[i].name,
									  .path = info->runtimes[i].path,
									  .file = answer->socket });
}

void graft_health_ask_docker(struct graft_health_look *look, struct graft_health_engine *engine, const char *socket)
{
	struct graft_health_answer *answer = &engine->answer;
	struct graft_buffer text = { .max = ANSWER_MAX };
	struct graft_docker_info info = { .version = NULL };
	struct graft_error err = { .status = GRAFT_OK };
	int timeout_ms = look->options->daemon_timeout_ms > 0 ? look->options->daemon_timeout_ms : ANSWER_MS;
	auto_close int fd = -1;
	int rc;

	if (!look->options->ask_daemons || !engine->running || !socket)
		return;
	answer->asked = true;
	answer->socket = graft_arena_strdup(look->arena, socket);
	fd = connect_daemon(look, socket);
	rc = fd < 0 ? fd : receive_docker_info(fd, timeout_ms, &text);
	graft_note_shortage(&look->survey.shortage, rc);
	if (rc < 0) {
		answer->problem = rc == -ETIMEDOUT
				      ? graft_arena_printf(look->arena, "no answer within %d s", timeout_ms / 1000)
				      : graft_arena_strdup(look->arena, strerror(-rc));
	} else if (graft_docker_info_parse(graft_buffer_text(&text), text.length, look->arena, &info, &err) < 0) {
		graft_note_shortage(&look->survey.shortage, -err.sys);
		answer->problem = graft_arena_strdup(look->arena, err.msg);
	} else {
		take_docker_info(look, engine, &info);
	}
	graft_buffer_done(&text);
}
