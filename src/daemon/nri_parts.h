/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_parts: shared by the files of the NRI plugin: nri_plugin.c (connections), nri_request.c
 * (containers that wait for an answer), nri_metrics.c (counters).
 */
#ifndef GRAFT_DAEMON_NRI_PARTS_H
#define GRAFT_DAEMON_NRI_PARTS_H

#include <stdint.h>

#include "base/arena.h"
#include "daemon/nri_host.h"
#include "daemon/nri_kubelet.h"
#include "daemon/nri_plugin.h"
#include "kubernetes/nri_container.h"
#include "request/config.h"
#include "rpc/ttrpc_link.h"

enum nri_result { NRI_NOTHING, NRI_GIVEN, NRI_REFUSED, NRI_LATE, NRI_RESULTS };
extern const char *const nri_result_names[NRI_RESULTS];

/* Upper bounds of the time of requests, in microseconds; longer ones count in the last. */
#define NRI_BOUNDS 8
extern const int64_t nri_bounds_us[NRI_BOUNDS];

struct nri_counts {
	uint64_t results[NRI_RESULTS];
	uint64_t took[NRI_BOUNDS + 1];
	int64_t took_us; /* of all requests together */
	uint64_t n_registrations, n_losses;
	uint64_t n_missed; /* containers created while no plugin answered */
};

/* A container that waits for an answer, or an existing one that may have been missed. */
struct nri_request {
	struct nri_plugin *plugin;
	const struct Nri__Pkg__Api__V1alpha1__Container *existing; /* in the arena; NULL: it waits */
	uint32_t stream;
	struct graft_arena *arena; /* owned; of everything here */
	struct graft_nri_container container;
	struct graft_nri_demand demand;
	struct nri_kubelet_question question;
	const char **ids; /* devices that the kubelet has allocated, if `is_answered` */
	size_t n_ids;
	bool is_answered;
	bool waits_for_kubelet, waits_for_host;
	bool due;         /* the host has been read, so continue */
	uint64_t reading; /* number of the reading that was begun for it; 0: none */
	struct graft_loop_timer limit;
	int64_t began_us;
	struct nri_request *next;
};

struct nri_plugin {
	struct nri_plugin_options options;
	const struct graft_log *log;
	struct graft_loop *loop;

	/* Of config.toml; both are replaced together by a reload. */
	struct graft_arena *arena;
	struct graft_config config;
	struct graft_nri_policy policy;

	struct nri_host host;
	struct nri_kubelet kubelet;

	struct graft_ttrpc_link link;
	struct graft_ttrpc_link_options link_options;
	bool connected, registered;
	int64_t registered_ms;           /* when; graft_clock_ms() */
	int64_t delay_ms;                /* until the next attempt */
	struct graft_loop_timer connect; /* connects, or ends a connection on which the engine does not answer */
	struct graft_loop_watch folder;  /* inotify of the socket's directory */
	int folder_watch;                /* -1: it is not watched */
	bool waiting;                    /* it was logged that there is no engine */
	int64_t limit_ms;                /* until a container without an answer is refused */

	struct nri_request *requests;
	/* The engine's list of existing containers so far; newest part first. */
	struct nri_part *parts;
	size_t size_of_parts;
	struct nri_counts counts;
};

/* CreateContainer and Synchronize, rows of the table of methods. */
void nri_request_create(void *service, struct graft_ttrpc_call *call);
void nri_request_synchronize(void *service, struct graft_ttrpc_call *call);
/* Forgets which containers exist. */
void nri_request_drop_parts(struct nri_plugin *plugin);
/* Continues with those that wait for the host. */
void nri_request_host_renewed(struct nri_plugin *plugin);
/* Refuses all for that reason; NULL: drops them, since their connection is closed. */
void nri_request_end_all(struct nri_plugin *plugin, const char *why);

#endif
