/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_question: asks a slow question in a separate process, so that the program can do other
 * things until the answer arrives: NVML may take half a minute. That process has the rights of its
 * parent; NVML itself runs in the unprivileged one that it starts in turn (host/nvml.h).
 */
#ifndef GRAFT_KUBERNETES_KUBE_QUESTION_H
#define GRAFT_KUBERNETES_KUBE_QUESTION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* Before and after a question: { .fd = -1 }. */
struct graft_kube_question {
	pid_t pid;
	int fd; /* the answer arrives here; -1: nothing is asked. Non-blocking */
	struct graft_buffer answer;
};

struct graft_kube_asking {
	const char *name;     /* of the process, for ps(1) */
	unsigned int limit_s; /* SIGALRM ends the process after that; 0: never */
	size_t max;           /* bytes of the answer */
	/* Appends the answer, in the other process. Returns 0, or -1 with the error set. */
	int (*ask)(const void *arg, struct graft_buffer *answer, struct graft_error *err);
	const void *arg;
};

/*
 * Calls `ask` in another process, which has only standard error and the answer open, and ends with
 * this one. Returns 0, or -1 if no process can be created. The caller reaps it.
 */
int graft_kube_question_begin(struct graft_kube_question *question, const struct graft_kube_asking *asking,
			      struct graft_error *err);
/* Reads the available part of the answer. Returns whether the answer is complete. */
bool graft_kube_question_read(struct graft_kube_question *question);
/*
 * Returns 0 with the answer, which belongs to the question; -1 with the error of `ask`; or 1 if the
 * process has ended without an answer. Call graft_kube_question_done() afterwards.
 */
int graft_kube_question_take(struct graft_kube_question *question, const char **ret_text, size_t *ret_n,
			     struct graft_error *err);
/* Ends the process, if it has not ended, and frees the answer. Does nothing if nothing is asked. */
void graft_kube_question_done(struct graft_kube_question *question);

#endif
