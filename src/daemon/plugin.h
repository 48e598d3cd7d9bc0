/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin: the device plugin: one server for each resource that the node offers, and their
 * registration with the kubelet (SPEC kubernetes 2 to 4, 6.4).
 *
 * All state except the counters can be rebuilt from the configuration, the host and the kernel log.
 */
#ifndef GRAFT_DAEMON_PLUGIN_H
#define GRAFT_DAEMON_PLUGIN_H

#include <time.h>

#include "daemon/clear_request.h"
#include "daemon/hardware.h"
#include "daemon/health.h"
#include "daemon/health_nvml.h"
#include "daemon/pod_leases.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_node.h"
#include "rpc/client.h"
#include "rpc/loop.h"
#include "rpc/server.h"

#define PLUGIN_WATCHERS 4 /* streams of one resource: the kubelet's, and one that has not ended yet */

struct plugin;

/* Methods that are counted, in the order of the table of methods. */
enum plugin_method {
	PLUGIN_OPTIONS,
	PLUGIN_WATCH,
	PLUGIN_PREFER,
	PLUGIN_ALLOCATE,
	PLUGIN_PRESTART,
	PLUGIN_INFO,
	PLUGIN_STATUS,
	PLUGIN_METHODS,
};
extern const struct graft_rpc_method plugin_methods[PLUGIN_METHODS];

struct plugin_calls {
	uint64_t answered, refused;
	int64_t took_us;
};

struct plugin_resource {
	struct plugin *plugin;
	const struct graft_kube_resource *offer; /* the name of the resource, and its devices */
	const char *socket;                      /* path */
	struct graft_rpc_server *server;
	struct graft_rpc_call *watchers[PLUGIN_WATCHERS];
	struct graft_rpc_client *client; /* the call of Register in progress */
	struct graft_loop_timer again;   /* registers, or checks that the registration had an effect */
	int64_t delay_ms; /* until the next attempt; shortened again when the kubelet has watched for a while */
	bool accepted;    /* by the kubelet */
	bool dropped;     /* a stream has ended since the call of Register */
	bool contested;   /* another plugin has the resource */
	bool no_mps;      /* its devices are shared by MPS, and the daemon does not run */
	struct timespec watched_since;   /* CLOCK_REALTIME, of the last stream */
	unsigned int n_contested;        /* how often in a row no kubelet watched while another plugin was there */
	struct timespec overruled_rival; /* its socket, despite which the resource was offered again */
	uint64_t n_registrations;
	struct plugin_calls calls[PLUGIN_METHODS];
};

/* What a configuration makes of the host, built and freed as a whole. */
struct plugin_node {
	struct graft_arena *arena;
	struct graft_kube_config config;
	struct graft_kube_node_facts facts;
	const char *kubelet_folder; /* of the kubelet's socket */
	const char *folder;         /* of the sockets */
	bool registry;              /* the kubelet finds them there; otherwise they are registered with it */
	struct plugin_resource *resources;
	size_t n_resources;
};

/* The result of a reading, owned by the callee; NULL: it failed, for this reason. */
typedef void plugin_read_done(struct plugin *plugin, struct plugin_node *take_node, const struct graft_error *err);

/* Configuration and host while they are being read, which takes a while if NVML is queried. */
struct plugin_reading {
	struct plugin_node *node; /* NULL: nothing is read */
	struct graft_kube_node_question question;
	struct graft_loop_watch watch; /* of the answer */
	struct graft_log log;
	plugin_read_done *done;
};

/* What to do after the reading; a later value includes the earlier ones. */
enum plugin_later { PLUGIN_LATER_NOTHING, PLUGIN_LATER_LOOK, PLUGIN_LATER_RELOAD };

struct plugin {
	struct graft_loop *loop;
	const struct graft_log *log;
	struct graft_kube_sources sources; /* of the configuration */
	const char *state_folder;          /* for state that survives a restart */
	/*
	 * A start or reload has ended. An error, which only a start can have, means that nothing is
	 * or will be served.
	 */
	void (*done)(void *arg, const struct graft_error *err);
	void *arg;
	bool begun;
	bool fail_on_init_error;  /* from the last readable configuration; at first the caller's */
	struct plugin_node *node; /* NULL before the first one */
	struct plugin_reading reading;
	enum plugin_later later;
	struct health health;
	struct health_nvml nvml; /* with --health=nvml */
	uint32_t health_sources; /* with which `health` was started */
	struct hardware hardware;
	struct pod_leases leases; /* with --respect-leases */
	struct clear_requests clear_requests;
	struct graft_loop_watch folder_watch; /* inotify */
	int folder_number;                    /* of the directory of the sockets there */
	int kubelet_number;                   /* of the kubelet's own directory, in a registry; -1: it is not watched */
	bool blind;                           /* inotify is not available */
	bool waits_for_folder;                /* the kubelet's directory is missing, which was logged */
	struct timespec kubelet_made;         /* the kubelet's socket, while `blind` */
	/* Separate timers, so that none can stop another: */
	struct graft_loop_timer look;    /* for a missing directory */
	struct graft_loop_timer kubelet; /* for the kubelet's directory, if it is a different one and missing */
	struct graft_loop_timer start;   /* for everything, if it could not be served */
	struct graft_loop_timer lost;    /* serves sockets that were lost */
	struct graft_loop_timer again;   /* examines the host */
	struct graft_loop_timer mps;     /* searches for MPS daemons */
	bool pending;                    /* a reload has failed and is pending */
	int64_t failed_ms;               /* the delay after which that is tried again; 0: it has not failed */
	int64_t settle_ms;               /* when to ask NVML again; -1: its answer is final */
};

/*
 * Reads configuration and host and starts to serve, or to wait if there is nothing to offer. The
 * caller has filled in the options; `done` is called at once, or when NVML has answered. If this
 * fails and `fail_on_init_error` is off, the plugin offers nothing, and tries again later.
 */
void plugin_begin(struct plugin *plugin);
/*
 * Repeats this after SIGHUP, and asks NVML again. If that fails, the plugin keeps its state, with a
 * warning, and tries again later.
 */
void plugin_reload(struct plugin *plugin);
/* Removes the sockets and frees everything. */
void plugin_done(struct plugin *plugin);

/* For the parts of the plugin (plugin_read.c, plugin_resource.c, plugin_register.c). */

/*
 * Reads configuration and host as they are now, and calls `done`: at once, or when NVML has
 * answered. Only one reading at a time. `quiet`: nothing but errors is logged.
 */
void plugin_read(struct plugin *plugin, enum graft_kube_ask ask, bool quiet, plugin_read_done *done);
/* Stops reading, without a call of `done`. */
void plugin_read_stop(struct plugin *plugin);
/* Frees a node; NULL is allowed. */
struct plugin_node *plugin_node_free(struct plugin_node *node);

/* Serves the resource at its socket. Returns 0, or -1 with the error set. */
int plugin_resource_serve(struct plugin_resource *resource, struct graft_error *err);
/* Ends all calls and removes the socket. */
void plugin_resource_end(struct plugin_resource *resource);
/* Sends the devices to all watchers. */
void plugin_resource_push(struct plugin_resource *resource);
/* Returns the fault of a device, or NULL. */
const struct health_fault *plugin_device_fault(const struct plugin *plugin, const struct graft_kube_device *device);
/* Returns whether a container may get the device. */
bool plugin_is_healthy(const struct plugin_resource *resource, const struct graft_kube_device *device);
/*
 * Finds the driver's device nodes that have appeared since the host was read (nvidia-uvm, when its
 * module is loaded), and names them in CDI specifications. Returns whether there were any.
 */
bool plugin_find_nodes(struct plugin *plugin);
/* Returns whether a kubelet watches the devices. */
bool plugin_resource_is_watched(const struct plugin_resource *resource);

/*
 * Registers the resource with the kubelet: at once, and again until that succeeds. In a registry
 * the kubelet does that: there the resource is offered again if no stream follows.
 */
void plugin_register(struct plugin_resource *resource);
/*
 * Called when the kubelet has found the resource in the registry, and has accepted or refused it.
 */
void plugin_register_found(struct plugin_resource *resource, bool accepted);
/* Stops registering. */
void plugin_register_end(struct plugin_resource *resource);
/*
 * The last stream of the resource has ended: registers it again or, in a registry, offers it again
 * unless the kubelet reconnects.
 */
void plugin_register_stream_ended(struct plugin_resource *resource);

#endif
