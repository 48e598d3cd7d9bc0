/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_question: asks in a process of its own for what may take long, so that the one that needs
 * the answer can do other things until it is there: NVML may take half a minute. That process has
 * the rights of its parent; NVML itself runs in the unprivileged one that it starts in turn
 * (host/nvml.h).
 */
#ifndef GRAFT_KUBERNETES_KUBE_QUESTION_H
#define GRAFT_KUBERNETES_KUBE_QUESTION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* As it is before a question and after it: { .fd = -1 }. */
struct graft_kube_question {
	pid_t pid;
	int fd; /* the answer comes here, and its end; -1: nothing is asked. Non-blocking */
	struct graft_buffer answer;
};

struct graft_kube_asking {
	const char *name;     /* of the process, for ps(1) */
	unsigned int limit_s; /* the process is ended by SIGALRM after that; 0: never */
	size_t max;           /* bytes of the answer */
	/* Appends the answer, in the other process. Returns 0, or -1 with the error set. */
	int (*ask)(const void *arg, struct graft_buffer *answer, struct graft_error *err);
	const void *arg;
};

/*
 * Has `ask` called in another process, which has only standard error open beside the answer, and
 * ends with this one. Returns 0, or -1 if no process can be made. The caller reaps it.
 */
int graft_kube_question_begin(struct graft_kube_question *question, const struct graft_kube_asking *asking,
			      struct graft_error *err);
/* Reads what there is of the answer. Returns whether that is all of it. */
bool graft_kube_question_read(struct graft_kube_question *question);
/*
 * Returns 0 with the answer, which is the question's; -1 with the error of `ask`; or 1 if the
 * process has ended without an answer. graft_kube_question_done() follows.
 */
int graft_kube_question_take(struct graft_kube_question *question, const char **ret_text, size_t *ret_n,
			     struct graft_error *err);
/* Ends the process, if it has not ended, and frees the answer. Does nothing if nothing is asked. */
void graft_kube_question_done(struct graft_kube_question *question);

#endif
