/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_kubelet: which devices the kubelet has allocated to a container (SPEC kubernetes 5), from
 * PodResources or, for containers that it omits, such as init containers, from the kubelet's
 * checkpoint. The kubelet answers few calls a second, so questions that arrive during a call share
 * the next one.
 */
#ifndef GRAFT_DAEMON_NRI_KUBELET_H
#define GRAFT_DAEMON_NRI_KUBELET_H

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "rpc/client.h"
#include "rpc/loop.h"

struct nri_kubelet_question {
	const char *namespace_, *pod, *uid, *container; /* borrowed until it is answered */
	/*
	 * Called once, from the loop, unless the question is withdrawn: with the ids of devices of
	 * any kind, which are valid until it returns, or with the error.
	 */
	void (*answered)(void *arg, const char *const *ids, size_t n_ids, const struct graft_error *err);
	void *arg;
	struct nri_kubelet_question *next; /* the kubelet's own */
	bool asked;                        /* the running call began after the question */
};

struct nri_kubelet {
	struct graft_loop *loop;
	const struct graft_log *log;
	const char *socket;     /* of PodResources */
	const char *checkpoint; /* path */
	int64_t limit_ms;       /* of one call */
	struct nri_kubelet_question *questions;
	struct graft_rpc_client *client; /* of the running call */
	struct graft_loop_timer next;    /* begins one */
	uint64_t n_calls, n_failures;
};

/* The caller has set `loop`, `log`, `socket`, `checkpoint` and `limit_ms`. */
void nri_kubelet_begin(struct nri_kubelet *kubelet);
/* Asks. The question must not move until it is answered or withdrawn. */
void nri_kubelet_ask(struct nri_kubelet *kubelet, struct nri_kubelet_question *question);
/* Withdraws a question. Does nothing if it was not asked. */
void nri_kubelet_forget(struct nri_kubelet *kubelet, struct nri_kubelet_question *question);
/* Forgets all questions. */
void nri_kubelet_done(struct nri_kubelet *kubelet);

/*
 * Reads the ids of a container's devices from a checkpoint of the kubelet. Returns 1 with the list
 * in the arena, 0 if it does not have this container, or -1 with the error of reading. *ret_exists:
 * there is one.
 */
int nri_kubelet_checkpoint(const char *path, const char *uid, const char *container, struct graft_arena *arena,
			   const char ***ret_ids, size_t *ret_n, bool *ret_exists, struct graft_error *err);

#endif
