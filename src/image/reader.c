/* SPDX-License-Identifier: Apache-2.0 */
/* reader: fork, a socket, requests and answers. Knows nothing about their content. */
#include "image/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "image/confine.h"

#define ANSWER_WAIT_MS 10000 /* for all answers of a start, on slow storage; the budget limits processor time */
#define ARENA_MAX      ((size_t)64 << 20)
#define TEXT_MAX       ((size_t)4 << 20) /* each byte may cost the parent forty bytes of memory */
#define BYTES_MAX      ((size_t)12 << 20)
#define NOTES_MAX      256u
#define ERRNO_MAX      4095u /* the kernel's limit */

/* ---- messages ---- */

/*
 * To the child, which is a copy of this process, so functions and records have the same addresses.
 * Followed by the argument.
 */
struct request {
	int (*read)(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		    struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err);
	const struct graft_record *record;
	size_t arg_length;
	bool has_log, is_last;
	enum graft_log_level log_max;
};

/* Precedes the answer; only read by this program. */
struct header {
	uint32_t text_length, n_bytes;
	uint32_t no_memory; /* if set, nothing follows */
	uint32_t is_last;   /* the child has no time left for another answer */
};

struct note {
	uint32_t level, line;
	const char *file, *text;
};

/* The common part of every answer; followed in memory by the answer to the request. */
struct envelope {
	uint32_t status, sys;
	const char *message, *context;
	struct note *notes;
	size_t n_notes;
};

static const struct graft_field note_fields[] = {
	GRAFT_F_U32(struct note, level, false, "level of a line for the log"),
	GRAFT_F_U32(struct note, line, false, "line of the source"),
	GRAFT_F_STRING(struct note, file, true, "file of the source"),
	GRAFT_F_STRING(struct note, text, true, "what it says"),
};
static const struct graft_record note_record = { "reader_note", sizeof(struct note), note_fields,
						 GRAFT_COUNT(note_fields) };

/* The members of an envelope, and of the answer that follows it. */
struct layout {
	struct graft_field fields[6];
	struct graft_record record;
};

static void make_layout(const struct graft_record *answer, struct layout *layout)
{
	*layout = (struct layout){
		.fields = {
			GRAFT_F_U32(struct envelope, status, false, "status of the error"),
			GRAFT_F_U32(struct envelope, sys, false, "errno"),
			GRAFT_F_STRING(struct envelope, message, false, "message of the error"),
			GRAFT_F_STRING(struct envelope, context, false, "context of the error"),
			GRAFT_F_RECORDS(struct envelope, notes, &note_record, "lines for the log"),
			{ "answer", GRAFT_FIELD_RECORD, sizeof(struct envelope), 0, answer, NULL, 0, false, "the answer" },
		},
	};
	layout->record = (struct graft_record){ "reader_answer", sizeof(struct envelope) + answer->size, layout->fields,
						GRAFT_COUNT(layout->fields) };
}

/* ---- the child ---- */

struct child {
	struct graft_image_root root;
	int fd;
	/* For one request. */
	struct graft_arena *arena;
	struct envelope *envelope;
};

static void take_note(void *arg, enum graft_log_level level, const char *file, int line, const char *text)
{
	const struct child *child = arg;
	struct note *note = child->envelope->n_notes < NOTES_MAX
				? graft_arena_push(child->arena, &child->envelope->notes, &child->envelope->n_notes,
						   sizeof(*note))
				: NULL;

	if (note)
		*note = (struct note){ .level = (uint32_t)level,
				       .line = (uint32_t)line,
				       .file = file,
				       .text = graft_arena_strdup(child->arena, text) };
}

static void put_error(struct child *child, const struct graft_error *err)
{
	child->envelope->status = (uint32_t)err->status;
	child->envelope->sys = (uint32_t)err->sys;
	child->envelope->message = err->msg;
	child->envelope->context = err->ctx[0] != '\0' ? err->ctx : NULL;
}

/* Exits if the peer is gone; the kernel releases everything. */
static void child_write(const struct child *child, const void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = write(child->fd, (const char *)bytes + done, length - done);

		if (n < 0 && errno != EINTR)
			_exit(1);
		done += n > 0 ? (size_t)n : 0;
	}
}

static void child_read(const struct child *child, void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = read(child->fd, (char *)bytes + done, length - done);

		if (n == 0 || (n < 0 && errno != EINTR))
			_exit(0);
		done += n > 0 ? (size_t)n : 0;
	}
}

/* Reports that memory is exhausted, and exits: the child is of no further use. */
static _Noreturn void end_without_memory(const struct child *child)
{
	const struct header header = { .no_memory = 1 };

	child_write(child, &header, sizeof(header));
	_exit(0);
}

/* Sends everything in one piece: separate parts would each wake the parent. */
static void say(const struct child *child, struct graft_buffer *said, const struct graft_buffer *bytes)
{
	const struct header header = { .text_length = (uint32_t)(said->length - sizeof(header)),
				       .n_bytes = (uint32_t)bytes->length,
				       .is_last = graft_budget_left_ms(child->root.budget) == 0 };

	graft_buffer_add(said, bytes->bytes, bytes->length);
	if (graft_buffer_failed(said) || graft_buffer_failed(bytes) || graft_arena_failed(child->arena))
		end_without_memory(child);
	memcpy(said->bytes, &header, sizeof(header));
	child_write(child, said->bytes, said->length);
}

static void answer(struct child *child, const struct request *request, const struct graft_error *unconfined)
{
	const struct graft_log log = { .write = take_note, .arg = child, .max = request->log_max };
	auto_buffer struct graft_buffer said = { .max = sizeof(struct header) + TEXT_MAX + BYTES_MAX },
					bytes = { .max = BYTES_MAX };
	struct graft_error err = { .status = GRAFT_OK };
	struct layout layout;
	void *arg;

	make_layout(request->record, &layout);
	child->arena = graft_arena_new(ARENA_MAX);
	child->envelope = child->arena ? graft_arena_alloc(child->arena, layout.record.size) : NULL;
	arg = child->envelope ? graft_arena_alloc(child->arena, request->arg_length + 1) : NULL;
	if (!arg)
		end_without_memory(child);
	child_read(child, arg, request->arg_length);
	if (unconfined->status != GRAFT_OK)
		put_error(child, unconfined);
	else if (request->read(&child->root, arg, request->has_log ? &log : NULL, child->arena, child->envelope + 1,
			       &bytes, &err) < 0)
		put_error(child, &err);
	(void)graft_buffer_extend(&said, sizeof(struct header));
	graft_record_write(&layout.record, child->envelope, &said);
	say(child, &said, &bytes);
	child->arena = graft_arena_free(child->arena);
}

static _Noreturn void run_reader_child(const struct graft_image_root *root, int64_t left_ms, int fd)
{
	struct graft_image_kept kept = { .arena = graft_arena_new(ARENA_MAX) };
	struct child child = { .root = *root, .fd = fd };
	struct graft_error unconfined = { .status = GRAFT_OK };
	struct request request;

	child.root.kept = kept.arena ? &kept : NULL;
	graft_budget_become_child(child.root.budget, left_ms);
	(void)graft_confine(&child.root, fd, &unconfined);
	for (;;) {
		child_read(&child, &request, sizeof(request));
		answer(&child, &request, &unconfined);
		/*
		 * The kernel removes the copy of the mounts now, not when this process ends: that
		 * waits for all processors, and the parent waits for the end of this process.
		 */
		if (request.is_last)
			graft_image_root_close(&child.root);
	}
}

/* ---- the parent ---- */

static int fail_reader_time(struct graft_error *err)
{
	return graft_fail(err, GRAFT_TOO_BIG, 0, "reading the container's image takes too long");
}

/*
 * Returns the connection to the child that already answers for this root, or -1. Without mount ids,
 * roots cannot be distinguished.
 */
static int find_child(const struct graft_image_root *root, const struct stat *st)
{
	const struct graft_budget_child *child = graft_budget_child(root->budget);

	return child && root->mount_id != 0 && child->mount_id == root->mount_id && child->dev == st->st_dev &&
		       child->inode == st->st_ino
		   ? child->fd
		   : -1;
}

/* Returns our end of the connection to a new child, or -1. */
static int start_child(const struct graft_image_root *root, const struct stat *st, struct graft_error *err)
{
	struct graft_budget_child child = { .dev = st->st_dev, .inode = st->st_ino, .mount_id = root->mount_id };
	int fds[2];

	(void)graft_budget_end_child(root->budget);
	/*
	 * The steps that follow must still be possible if an image uses up everything that a reader
	 * may use.
	 */
	child.allowed_ms = graft_budget_left_ms(root->budget) / 2;
	if (child.allowed_ms == 0)
		return fail_reader_time(err);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return graft_fail_errno(err, errno, "socket creation failed");
	child.fd = fds[0];
	child.pid = fork();
	if (child.pid == 0)
		run_reader_child(root, child.allowed_ms, fds[1]);
	(void)close(fds[1]);
	if (child.pid < 0) {
		int sys = errno;

		(void)close(fds[0]);
		return graft_fail_errno(err, sys, "process creation failed");
	}
	graft_budget_add_child(root->budget, &child);
	return child.fd;
}

/*
 * Waits until the socket is ready for `events` (POLLIN, POLLOUT). Returns 1; 0 if it takes too
 * long; or -1 with errno.
 */
static int wait_for_socket(int fd, short events, int64_t deadline_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = events };
	int64_t wait_ms = deadline_ms - graft_clock_ms();

	return wait_ms > 0 ? poll(&pollfd, 1, (int)wait_ms) : 0;
}

/*
 * Returns 0; 1 if the child is gone; or -1. SECURITY: a child that an image has taken over may not
 * read.
 */
static int send_request(int fd, const void *bytes, size_t length, int64_t deadline_ms, struct graft_error *err)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = send(fd, (const char *)bytes + done, length - done, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 1;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return graft_fail_errno(err, errno,
						"cannot send a request to the process that reads the image");
		if (n < 0 && errno == EAGAIN && wait_for_socket(fd, POLLOUT, deadline_ms) == 0)
			return fail_reader_time(err);
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int ask_child(const struct graft_reader_question *question, int fd, struct graft_error *err)
{
	const struct request request = {
		.read = question->read,
		.record = question->record,
		.arg_length = question->arg_length,
		.has_log = question->log != NULL,
		.is_last = question->is_last,
		.log_max = question->log ? question->log->max : GRAFT_LOG_ERROR,
	};
	auto_buffer struct graft_buffer asked = { .bytes = NULL };

	graft_buffer_add(&asked, &request, sizeof(request));
	graft_buffer_add(&asked, question->arg, question->arg_length);
	if (graft_buffer_failed(&asked))
		return graft_fail_memory(err);
	return send_request(fd, asked.bytes, asked.length, graft_clock_ms() + ANSWER_WAIT_MS, err);
}

/*
 * Receives exactly `length` bytes. Returns 0; 1 if the child is gone; or -1 if it takes too long or
 * reading fails.
 */
static int receive(int fd, void *bytes, size_t length, int64_t deadline_ms, struct graft_error *err)
{
	for (size_t done = 0; done < length;) {
		int rc = wait_for_socket(fd, POLLIN, deadline_ms);
		ssize_t n;

		if (rc == 0)
			return fail_reader_time(err);
		n = rc < 0 ? -1 : read(fd, (char *)bytes + done, length - done);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return 1;
		if (n < 0 && errno != EINTR)
			return graft_fail_errno(err, errno,
						"cannot read the answer of the process that reads the image");
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The kernel kills a child that has used up its time, without any message. */
static int fail_end(bool late, struct graft_error *err)
{
	if (late)
		return fail_reader_time(err);
	return graft_fail(err, GRAFT_INTERNAL, 0, "the process that reads the image ended without an answer");
}

/* An answer as it was received. */
struct received {
	struct header header;
	struct graft_buffer text;
	char *bytes; /* NULL: none */
};

/* Returns like receive(). */
static int receive_answer(int fd, struct graft_budget *budget, struct graft_arena *arena, struct received *received,
			  struct graft_error *err)
{
	int64_t began_ms = graft_clock_ms();
	int64_t deadline_ms = began_ms + graft_budget_wait_ms(budget, 0, ANSWER_WAIT_MS);
	struct header *header = &received->header;
	char *text;
	int rc = receive(fd, header, sizeof(*header), deadline_ms, err);

	if (rc == 0 && header->no_memory)
		return graft_fail_memory(err);
	if (rc == 0 && (header->text_length > TEXT_MAX || header->n_bytes > BYTES_MAX))
		return graft_fail(err, GRAFT_FORMAT, 0, "the answer of the process that reads the image is too long");
	if (rc == 0) {
		text = graft_buffer_extend(&received->text, header->text_length);
		rc = text ? receive(fd, text, header->text_length, deadline_ms, err) : graft_fail_memory(err);
	}
	if (rc == 0 && header->n_bytes > 0) {
		received->bytes = graft_arena_alloc(arena, header->n_bytes);
		rc = received->bytes ? receive(fd, received->bytes, header->n_bytes, deadline_ms, err)
				     : graft_fail_memory(err);
	}
	(void)graft_budget_wait_ms(budget, graft_clock_ms() - began_ms, ANSWER_WAIT_MS);
	return rc;
}

/* Accepts only names of source files, since a log writes them unchanged. */
static bool is_file_name(const char *file)
{
	return strlen(file) < 64 && strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789_.") == strlen(file);
}

/*
 * SECURITY: an image may have taken over the child. Its log lines are only passed on if they are
 * well formed and below the level of errors, and its error must be one of ours.
 */
static int open_envelope(const struct graft_reader_question *question, const struct envelope *envelope,
			 struct graft_error *err)
{
	for (size_t i = 0; i < envelope->n_notes && i < NOTES_MAX; i++) {
		const struct note *note = &envelope->notes[i];

		if (note->level <= GRAFT_LOG_DEBUG && note->level > GRAFT_LOG_ERROR && is_file_name(note->file))
			graft_log_write(question->log, (enum graft_log_level)note->level, note->file, (int)note->line,
					"%s", note->text);
	}
	if (envelope->status == GRAFT_OK)
		return 0;
	if (envelope->status >= GRAFT_STATUS_MAX || envelope->sys > ERRNO_MAX)
		return graft_fail(err, GRAFT_FORMAT, 0, "the answer of the process that reads the image is malformed");
	(void)graft_fail(err, (enum graft_status)envelope->status, (int)envelope->sys, "%s",
			 envelope->message ? envelope->message : "");
	return envelope->context ? graft_wrap(err, "%s", envelope->context) : -1;
}

static int read_answer(const struct graft_reader_question *question, const struct received *received,
		       struct graft_arena *arena, void *ret_answer, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct envelope *envelope;
	struct layout layout;

	make_layout(question->record, &layout);
	envelope = graft_arena_alloc(arena, layout.record.size);
	if (!envelope)
		return graft_fail_memory(err);
	if (graft_record_read(&layout.record, received->text.bytes, received->text.length, arena, envelope, &why) < 0) {
		if (why.status == GRAFT_NO_MEMORY)
			return graft_fail_memory(err);
		return graft_fail(err, GRAFT_FORMAT, 0,
				  "the answer of the process that reads the image is malformed: %s", why.msg);
	}
	if (open_envelope(question, envelope, err) < 0)
		return -1;
	if (question->is_sound && !question->is_sound(envelope + 1, received->header.n_bytes))
		return graft_fail(err, GRAFT_FORMAT, 0,
				  "the answer of the process that reads the image is malformed: %s",
				  question->record->name);
	memcpy(ret_answer, envelope + 1, question->record->size);
	return 0;
}

int graft_reader_start(const struct graft_reader_question *question, struct graft_reader *ret_reader,
		       struct graft_error *err)
{
	const struct graft_image_root *root = question->root;
	struct stat st;
	int fd, rc = 1;

	*ret_reader = (struct graft_reader)GRAFT_READER_INIT;
	if (fstat(root->fd, &st) < 0)
		return graft_fail_errno(err, errno, "cannot examine the container's root");
	fd = find_child(root, &st);
	if (fd >= 0)
		rc = ask_child(question, fd, err);
	/* There is no child for this root, or it has exited since its last answer. */
	if (rc > 0) {
		fd = start_child(root, &st, err);
		rc = fd < 0 ? -1 : ask_child(question, fd, err);
	}
	if (rc > 0)
		return fail_end(graft_budget_end_child(root->budget), err);
	*ret_reader = (struct graft_reader){ .question = *question, .fd = fd };
	if (rc < 0)
		graft_reader_drop(ret_reader);
	return rc;
}

/* The child has exited instead of answering. */
static int answer_end(const struct graft_reader_question *question, struct received *received, void *ret_answer,
		      struct graft_error *err)
{
	bool late = graft_budget_end_child(question->root->budget);

	if (!late || !question->zero_if_late)
		return fail_end(late, err);
	graft_warn(question->log, "reading the container's image takes too long: skipping all of it");
	memset(ret_answer, 0, question->record->size);
	received->header.n_bytes = 0;
	received->bytes = NULL;
	return 0;
}

int graft_reader_finish(struct graft_reader *reader, struct graft_arena *arena, void *ret_answer,
			const char **ret_bytes, size_t *ret_n_bytes, struct graft_error *err)
{
	struct received received = { .text = { .max = TEXT_MAX } };
	const struct graft_reader_question *question = &reader->question;
	int rc = receive_answer(reader->fd, question->root->budget, arena, &received, err);

	if (rc < 0 || (rc == 0 && received.header.is_last))
		graft_reader_drop(reader);
	else if (question->is_last)
		graft_budget_dismiss_child(question->root->budget);
	reader->fd = -1;
	if (rc == 0)
		rc = read_answer(question, &received, arena, ret_answer, err);
	else if (rc > 0)
		rc = answer_end(question, &received, ret_answer, err);
	graft_buffer_done(&received.text);
	if (rc == 0 && ret_bytes) {
		*ret_bytes = received.bytes;
		*ret_n_bytes = received.header.n_bytes;
	}
	return rc;
}

void graft_reader_drop(struct graft_reader *reader)
{
	if (reader->fd >= 0)
		(void)graft_budget_end_child(reader->question.root->budget);
	reader->fd = -1;
}

int graft_reader_ask(const struct graft_reader_question *question, struct graft_arena *arena, void *ret_answer,
		     const char **ret_bytes, size_t *ret_n_bytes, struct graft_error *err)
{
	auto_reader struct graft_reader reader = GRAFT_READER_INIT;

	if (graft_reader_start(question, &reader, err) < 0)
		return -1;
	return graft_reader_finish(&reader, arena, ret_answer, ret_bytes, ret_n_bytes, err);
}
