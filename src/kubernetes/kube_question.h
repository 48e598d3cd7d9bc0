/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_question: asks for kept facts (kubernetes/kube_facts.h) in a process of its own, so that the
 * one that needs them can do other things until the answer is there: NVML may take half a minute.
 * That process has the rights of its parent; NVML itself runs in the unprivileged one that it
 * starts in turn (host/nvml.h).
 */
#ifndef GRAFT_KUBERNETES_KUBE_QUESTION_H
#define GRAFT_KUBERNETES_KUBE_QUESTION_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "host/kept_facts.h"

/* As it is before a question and after it: { .fd = -1 }. */
struct graft_kube_question {
	pid_t pid;
	int fd; /* the answer comes here, and its end; -1: nothing is asked. Non-blocking */
	struct graft_buffer answer;
};

/* Fills in the facts of a host that are identified. Returns 0, or -1 with the error set. */
typedef int graft_kube_asker(const void *arg, struct graft_arena *arena, struct graft_kept_facts *facts,
			     struct graft_error *err);

/*
 * Has `ask` called with these facts in another process, which has only standard error open beside
 * the answer, and ends with this one. Returns 0, or -1 if no process can be made. The caller reaps
 * it.
 */
int graft_kube_question_begin(struct graft_kube_question *question, graft_kube_asker *ask, const void *arg,
			      struct graft_arena *arena, struct graft_kept_facts *facts, struct graft_error *err);
/* Reads what there is of the answer. Returns whether that is all of it. */
bool graft_kube_question_read(struct graft_kube_question *question);
/*
 * Takes the answer: the facts that `ask` has filled in. Returns 0, or -1 with the error of `ask`,
 * or GRAFT_NVML if the process has not answered.
 */
int graft_kube_question_take(struct graft_kube_question *question, struct graft_arena *arena,
			     struct graft_kept_facts *facts, struct graft_error *err);
/*
 * In the process that answers: leaves standard error open, and `fd` as descriptor 3. Otherwise a
 * socket of the program would stay open here after the program has closed it. Ends the process on
 * failure.
 */
void graft_kube_question_leave_open(int fd);
/* Ends the process, if it has not ended, and frees the answer. Does nothing if nothing is asked. */
void graft_kube_question_done(struct graft_kube_question *question);

#endif
