/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: questions about an image, answered by an unprivileged child process (confine.h). The
 * child reads and parses; its answer is a record in JSON and some bytes, and is checked like any
 * other untrusted input. Thus, if an image exploits a parser, the worst that it can do to this
 * program is to lie about that image.
 *
 * The child is a copy of this process and stays alive: it also answers the next question about the
 * same root. It sees the mounts that existed when it was started, so code that mounts something
 * there must dismiss it first (graft_budget_dismiss_child()).
 */
#ifndef GRAFT_IMAGE_READER_H
#define GRAFT_IMAGE_READER_H

#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/image_root.h"
#include "base/log.h"
#include "formats/record.h"

struct graft_reader_question {
	const struct graft_image_root *root;
	const struct graft_record *record; /* of the answer */
	/*
	 * Runs in the child. `root` is the child's own; `arg` is a copy of the question's bytes,
	 * aligned for any type; `answer` is zeroed, has the size of the record, and its parts may
	 * be allocated from `arena`; `bytes` may be filled with anything. Returns 0, or -1 with an
	 * error, which becomes the caller's.
	 */
	int (*read)(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		    struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err);
	const void *arg; /* must not contain pointers: the child may be older than the data they point to */
	size_t arg_length;
	/* Returns whether an answer of the right form is also plausible. NULL: it always is. */
	bool (*is_sound)(const void *answer, size_t n_bytes);
	const struct graft_log *log; /* receives the child's log */
	/* A zeroed answer and a warning, instead of an error, if the child has used up its time. */
	bool zero_if_late;
	/* What follows changes the root, so no other question will need this child: it can clean up. */
	bool is_last;
};

/* A pending question, while this process does other work. */
struct graft_reader {
	struct graft_reader_question question; /* its root must outlive it; `arg` is no longer used */
	int fd;                                /* of the child; borrowed from the budget; -1: no question is pending */
};
#define GRAFT_READER_INIT \
	{                 \
		.fd = -1  \
	}

/*
 * Asks a question. Only one can be pending at a time; the next can be asked when this one has been
 * answered or dropped. Fails like graft_reader_ask().
 */
int graft_reader_start(const struct graft_reader_question *question, struct graft_reader *ret_reader,
		       struct graft_error *err);
/* Waits for the answer. Arguments and errors are those of graft_reader_ask(). */
int graft_reader_finish(struct graft_reader *reader, struct graft_arena *arena, void *ret_answer,
			const char **ret_bytes, size_t *ret_n_bytes, struct graft_error *err);
/* Drops a pending question, if any, by killing the child. */
void graft_reader_drop(struct graft_reader *reader);
#define auto_reader __attribute__((cleanup(graft_reader_drop)))

/*
 * Asks and waits. Fills *ret_answer according to the record, from `arena`, and likewise the bytes,
 * if `ret_bytes` is not NULL. Returns 0, or -1 with the error of `read`; GRAFT_TOO_BIG if the
 * budget is spent (but see `zero_if_late`) or answers, all of this start together, take more than
 * 10 s; GRAFT_PERMISSION if a child cannot be confined; GRAFT_FORMAT if the answer is malformed;
 * GRAFT_INTERNAL if the child exited without an answer.
 */
int graft_reader_ask(const struct graft_reader_question *question, struct graft_arena *arena, void *ret_answer,
		     const char **ret_bytes, size_t *ret_n_bytes, struct graft_error *err);

#endif
