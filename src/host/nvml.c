/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml: the parent's side. It starts the child, waits for as long as necessary or as the caller
 * allows, reads the answer within limits, and turns failures into the established error messages.
 * Loads no code of the driver.
 */
#include "host/nvml.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys.h"
#include "host/discover.h"

#define ANSWER_MAX      ((size_t)1 << 20)
#define PROGRESS_MS     1000
#define KILL_WAIT_MS    2000
#define NVML_PERMISSION 4
#define NVML_NO_DRIVER  9
#define NVML_NO_LIBRARY 12
#define NVML_MISMATCH   18

static const struct graft_field mig_fields[] = {
	GRAFT_F_U32(struct graft_nvml_mig, gi, true, "GPU instance"),
	GRAFT_F_U32(struct graft_nvml_mig, ci, true, "compute instance"),
	GRAFT_F_STRING(struct graft_nvml_mig, uuid, false, "UUID"),
	GRAFT_F_STRING(struct graft_nvml_mig, name, false, "name, with the profile"),
	GRAFT_F_BOOL(struct graft_nvml_mig, has_size, "what follows is known"),
	GRAFT_F_U32(struct graft_nvml_mig, memory_mib, false, "memory"),
	GRAFT_F_U32(struct graft_nvml_mig, multiprocessors, false, "multiprocessors"),
	GRAFT_F_U32(struct graft_nvml_mig, gi_slices, false, "slices of its GPU instance"),
	GRAFT_F_U32(struct graft_nvml_mig, ci_slices, false, "slices of its compute instance"),
	GRAFT_F_U32(struct graft_nvml_mig, copy_engines, false, "copy engines"),
	GRAFT_F_U32(struct graft_nvml_mig, decoders, false, "video decoders"),
	GRAFT_F_U32(struct graft_nvml_mig, encoders, false, "video encoders"),
	GRAFT_F_U32(struct graft_nvml_mig, jpeg_engines, false, "JPEG engines"),
	GRAFT_F_U32(struct graft_nvml_mig, ofa_engines, false, "optical flow engines"),
};
static const struct graft_record mig_record = { "nvml_mig", sizeof(struct graft_nvml_mig), mig_fields,
						GRAFT_COUNT(mig_fields) };

static const struct graft_field link_fields[] = {
	GRAFT_F_STRING(struct graft_nvml_link, bus_id, true, "PCI address of the other device"),
	GRAFT_F_U32(struct graft_nvml_link, count, false, "how many NVLinks lead to it"),
};
const struct graft_record graft_nvml_link_record = { "nvml_link", sizeof(struct graft_nvml_link), link_fields,
						     GRAFT_COUNT(link_fields) };

static const struct graft_field gpu_fields[] = {
	GRAFT_F_U32(struct graft_nvml_gpu, index, true, "NVML's index"),
	GRAFT_F_BOOL(struct graft_nvml_gpu, has_minor, "minor is known"),
	GRAFT_F_BOOL(struct graft_nvml_gpu, has_brand, "brand is known"),
	GRAFT_F_BOOL(struct graft_nvml_gpu, has_arch, "architecture is known"),
	GRAFT_F_U32(struct graft_nvml_gpu, minor, false, "minor of the device node"),
	GRAFT_F_U32(struct graft_nvml_gpu, brand, false, "NVML's number of the brand"),
	GRAFT_F_U32(struct graft_nvml_gpu, arch_major, false, "compute capability"),
	GRAFT_F_U32(struct graft_nvml_gpu, arch_minor, false, "compute capability"),
	GRAFT_F_BOOL(struct graft_nvml_gpu, has_addressing, "addressing is known"),
	GRAFT_F_U32(struct graft_nvml_gpu, addressing, false, "NVML's number of the addressing mode"),
	GRAFT_F_STRING(struct graft_nvml_gpu, bus_id, false, "PCI address"),
	GRAFT_F_STRING(struct graft_nvml_gpu, uuid, false, "UUID"),
	GRAFT_F_STRING(struct graft_nvml_gpu, model, false, "product name"),
	GRAFT_F_BOOL(struct graft_nvml_gpu, has_memory, "memory is known"),
	GRAFT_F_U32(struct graft_nvml_gpu, memory_mib, false, "memory"),
	GRAFT_F_STRING(struct graft_nvml_gpu, clique, false, "NVLink domain and clique"),
	GRAFT_F_BOOL(struct graft_nvml_gpu, mig_capable, "it has a MIG mode"),
	GRAFT_F_BOOL(struct graft_nvml_gpu, mig_enabled, "it is in MIG mode"),
	GRAFT_F_RECORDS(struct graft_nvml_gpu, migs, &mig_record, "MIG devices in NVML's order"),
	GRAFT_F_RECORDS(struct graft_nvml_gpu, links, &graft_nvml_link_record, "active NVLinks"),
};
static const struct graft_record gpu_record = { "nvml_gpu", sizeof(struct graft_nvml_gpu), gpu_fields,
						GRAFT_COUNT(gpu_fields) };

static const struct graft_field snapshot_fields[] = {
	GRAFT_F_STRING(struct graft_nvml_snapshot, failure, false, "what failed"),
	GRAFT_F_U32(struct graft_nvml_snapshot, code, false, "NVML's return value"),
	GRAFT_F_U32(struct graft_nvml_snapshot, sys, false, "errno"),
	GRAFT_F_BOOL(struct graft_nvml_snapshot, no_library, "the library could not be loaded"),
	GRAFT_F_STRING(struct graft_nvml_snapshot, driver_version, false, "driver version"),
	GRAFT_F_U32(struct graft_nvml_snapshot, cuda_version, false, "CUDA version as a number"),
	GRAFT_F_RECORDS(struct graft_nvml_snapshot, gpus, &gpu_record, "GPUs in NVML's order"),
	GRAFT_F_STRINGS(struct graft_nvml_snapshot, notes, "for the log"),
	GRAFT_F_STRINGS(struct graft_nvml_snapshot, unsettled, "what may be another answer later"),
};
const struct graft_record graft_nvml_snapshot_record = { "nvml_snapshot", sizeof(struct graft_nvml_snapshot),
							 snapshot_fields, GRAFT_COUNT(snapshot_fields) };

/* A running child; killed and reaped at the end of the scope. */
struct child {
	pid_t pid;
	int answer_fd;
};

/*
 * Waits for a child that has closed its end of the pipe. Returns its status, or -1 if there is
 * none: the program ignores SIGCHLD, or the driver's code closed the pipe and continues to run
 * (then end_child() kills it; BASELINE 5.3: without pidfds, wait for it).
 */
static int reap_nvml_child(struct child *child)
{
	pid_t pid = child->pid;
	auto_close int pid_fd = pid > 0 ? graft_pidfd_open(pid, 0) : -1;
	struct pollfd pollfd = { .fd = pid_fd, .events = POLLIN };
	int status;

	if (pid <= 0 || (pid_fd >= 0 && poll(&pollfd, 1, KILL_WAIT_MS) == 0))
		return -1;
	child->pid = 0;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return status;
}

static void end_child(struct child *child)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	int64_t deadline = graft_clock_ms() + KILL_WAIT_MS;

	if (child->answer_fd >= 0)
		(void)close(child->answer_fd);
	child->answer_fd = -1;
	if (child->pid <= 0)
		return;
	(void)kill(child->pid, SIGKILL);
	/* A child inside the driver dies only when the driver lets it: wait no longer than this. */
	while (graft_clock_ms() < deadline) {
		if (waitpid(child->pid, NULL, WNOHANG) != 0)
			break;
		(void)nanosleep(&pause, NULL);
	}
	child->pid = 0;
}
#define auto_child __attribute__((cleanup(end_child)))

int graft_nvml_start(const struct graft_nvml_question *question, pid_t *ret_pid, int *ret_fd, struct graft_error *err)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return graft_fail_errno(err, errno, "pipe creation failed");
	pid = fork();
	if (pid == 0)
		graft_nvml_child(question, parent, fds[1]);
	(void)close(fds[1]);
	if (pid < 0) {
		int sys = errno;

		(void)close(fds[0]);
		return graft_fail_errno(err, sys, "process creation failed");
	}
	*ret_pid = pid;
	*ret_fd = fds[0];
	return 0;
}

/*
 * Reads what is available. Returns 1 at the end of the answer, 0 if there may be more, -1 if it is
 * too long or cannot be read.
 */
static int read_some(int fd, struct graft_buffer *answer, struct graft_error *err)
{
	char bytes[4096];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n == 0)
		return 1;
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0 || (size_t)n > answer->max - answer->length)
		return graft_fail(err, GRAFT_NVML, 0, "nvml error: the answer cannot be read");
	graft_buffer_add(answer, bytes, (size_t)n);
	return graft_buffer_failed(answer) ? graft_fail_memory(err) : 0;
}

static int wait_for_answer(const struct graft_nvml_question *question, struct child *child, struct graft_buffer *answer,
			   struct graft_error *err)
{
	int64_t begin = graft_clock_ms(), next_line = begin + PROGRESS_MS;

	for (;;) {
		struct pollfd pollfd = { .fd = child->answer_fd, .events = POLLIN };
		int64_t now = graft_clock_ms(), until = next_line;
		int rc;

		if (question->timeout_ms > 0 && now - begin >= question->timeout_ms) {
			(void)graft_fail(err, GRAFT_TIMEOUT, 0, "driver rpc error: timed out");
			return graft_wrap(err, "NVML gave no answer within %d ms", question->timeout_ms);
		}
		if (question->timeout_ms > 0 && begin + question->timeout_ms < until)
			until = begin + question->timeout_ms;
		rc = poll(&pollfd, 1, until > now ? (int)(until - now) : 0);
		if (rc > 0) {
			rc = read_some(child->answer_fd, answer, err);
			if (rc != 0)
				return rc < 0 ? -1 : 0;
		}
		if (graft_clock_ms() >= next_line) {
			graft_info(question->log, GRAFT_NVML_WAITING ": %lld s",
				   (long long)((graft_clock_ms() - begin) / 1000));
			next_line += PROGRESS_MS;
		}
	}
}

static const char *signal_name(int number)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ SIGSEGV, "SIGSEGV" }, { SIGABRT, "SIGABRT" }, { SIGBUS, "SIGBUS" },   { SIGFPE, "SIGFPE" },
		{ SIGILL, "SIGILL" },   { SIGKILL, "SIGKILL" }, { SIGTERM, "SIGTERM" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		if (names[i].number == number)
			return names[i].name;
	}
	return "signal";
}

static int check_end(int status, const struct graft_buffer *answer, struct graft_error *err)
{
	if (status >= 0 && WIFSIGNALED(status))
		return graft_fail(err, GRAFT_NVML, 0, "nvml error: the process that asked was ended by %s (signal %d)",
				  signal_name(WTERMSIG(status)), WTERMSIG(status));
	if ((status >= 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) || answer->length == 0)
		return graft_fail(err, GRAFT_NVML, 0, "nvml error: the process that asked ended without an answer");
	return 0;
}

bool graft_nvml_text_is_valid(const char *text)
{
	size_t length = 0;

	while (text[length] >= ' ' && text[length] <= '~')
		length++;
	return text[length] == '\0' && length > 0 && length < GRAFT_NVML_TEXT_MAX;
}

static void sanitize(const char **text)
{
	if (*text && !graft_nvml_text_is_valid(*text))
		*text = NULL;
}

static void sanitize_snapshot(struct graft_nvml_snapshot *snapshot)
{
	if (snapshot->n_gpus > GRAFT_NVML_GPUS_MAX)
		snapshot->n_gpus = GRAFT_NVML_GPUS_MAX;
	sanitize(&snapshot->driver_version);
	for (size_t i = 0; i < snapshot->n_unsettled; i++) {
		sanitize(&snapshot->unsettled[i]);
		if (!snapshot->unsettled[i])
			snapshot->unsettled[i] = "NVML gives no reason";
	}
	for (size_t i = 0; i < snapshot->n_gpus; i++) {
		struct graft_nvml_gpu *gpu = &snapshot->gpus[i];

		sanitize(&gpu->bus_id);
		sanitize(&gpu->uuid);
		sanitize(&gpu->model);
		sanitize(&gpu->clique);
		if (gpu->n_migs > GRAFT_NVML_MIGS_MAX)
			gpu->n_migs = GRAFT_NVML_MIGS_MAX;
		for (size_t j = 0; j < gpu->n_migs; j++) {
			sanitize(&gpu->migs[j].uuid);
			sanitize(&gpu->migs[j].name);
		}
	}
}

static enum graft_status status_of(const struct graft_nvml_snapshot *snapshot)
{
	static const struct {
		uint32_t code;
		enum graft_status status;
	} codes[] = {
		{ NVML_PERMISSION, GRAFT_PERMISSION },
		{ NVML_NO_DRIVER, GRAFT_NO_DRIVER },
		{ NVML_NO_LIBRARY, GRAFT_NO_LIBRARY },
		{ NVML_MISMATCH, GRAFT_MISMATCH },
	};

	for (size_t i = 0; i < GRAFT_COUNT(codes); i++) {
		if (codes[i].code == snapshot->code)
			return codes[i].status;
	}
	return snapshot->no_library ? GRAFT_NO_LIBRARY : GRAFT_NVML;
}

static int check_answer(const struct graft_nvml_question *question, struct graft_nvml_snapshot *snapshot,
			struct graft_error *err)
{
	for (size_t i = 0; i < snapshot->n_notes && i < GRAFT_NVML_GPUS_MAX; i++) {
		sanitize(&snapshot->notes[i]);
		if (snapshot->notes[i])
			graft_warn(question->log, "NVML: %s", snapshot->notes[i]);
	}
	if (!snapshot->failure)
		return 0;
	sanitize(&snapshot->failure);
	return graft_fail(err, status_of(snapshot), snapshot->sys < 4096 ? (int)snapshot->sys : 0, "%s",
			  snapshot->failure ? snapshot->failure : "nvml error: unknown");
}

int graft_nvml_ask(const struct graft_nvml_question *question, struct graft_arena *arena,
		   struct graft_nvml_snapshot *ret_snapshot, struct graft_error *err)
{
	auto_child struct child child = { .answer_fd = -1 };
	auto_buffer struct graft_buffer answer = { .max = ANSWER_MAX };
	struct graft_error parse_error;

	*ret_snapshot = (struct graft_nvml_snapshot){ 0 };
	graft_info(question->log, "asking NVML (%s) as %u:%u", question->library, question->uid, question->gid);
	if (graft_nvml_start(question, &child.pid, &child.answer_fd, err) < 0 ||
	    wait_for_answer(question, &child, &answer, err) < 0)
		return -1;
	if (check_end(reap_nvml_child(&child), &answer, err) < 0)
		return -1;
	if (graft_record_read(&graft_nvml_snapshot_record, answer.bytes, answer.length, arena, ret_snapshot,
			      &parse_error) < 0) {
		if (parse_error.status == GRAFT_NO_MEMORY)
			return graft_fail_memory(err);
		return graft_fail(err, GRAFT_NVML, 0, "nvml error: the answer is malformed: %s", parse_error.msg);
	}
	sanitize_snapshot(ret_snapshot);
	return check_answer(question, ret_snapshot, err);
}
