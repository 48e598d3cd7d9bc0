/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_plugin: the NRI plugin as part of a daemon, nvidia-nri-plugin.
 *
 *	struct nri_plugin *plugin = nri_plugin_begin(&options, err);
 *	...graft_loop_run()...
 *	nri_plugin_end(plugin);
 *
 * It registers with the engine as "graft", answers the engine's request for each new container, and
 * reconnects when the connection is lost: at once, then after 100 ms, doubling to two seconds, and
 * as soon as the socket appears. Nothing else wakes it (docs/nri.md).
 */
#ifndef GRAFT_DAEMON_NRI_PLUGIN_H
#define GRAFT_DAEMON_NRI_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "rpc/loop.h"

#define NRI_PLUGIN_NAME     "graft"
#define NRI_PLUGIN_INDEX    "10"
#define NRI_SOCKET          "/var/run/nri/nri.sock"
#define NRI_PODS_SOCKET     "/var/lib/kubelet/pod-resources/kubelet.sock"
#define NRI_PODS_CHECKPOINT "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
#define NRI_FIRST_DELAY_MS  100
#define NRI_LAST_DELAY_MS   2000

/*
 * Options; all strings are borrowed for the plugin's life. NULL, "" and 0 select the defaults
 * below.
 */
struct nri_plugin_options {
	struct graft_loop *loop;
	const struct graft_log *log;
	const char *name;   /* NULL = NRI_PLUGIN_NAME */
	const char *index;  /* two digits; NULL = NRI_PLUGIN_INDEX */
	const char *socket; /* of the engine; NULL = NRI_SOCKET. It need not exist yet */
	/*
	 * The connection that an engine passes to a plugin that it starts itself; it is closed in
	 * any case, and never replaced. Without it, `has_fd` is false.
	 */
	bool has_fd;
	int take_fd;
	const char *own_namespace;                /* namespace whose pods may use management devices; NULL = none */
	const char *const *management_namespaces; /* further namespaces */
	size_t n_management_namespaces;
	const char *management_kind;  /* NULL = management.nvidia.com/gpu */
	const char *config_file;      /* config.toml; NULL = the usual one */
	const char *driver_root;      /* on the host; NULL = that of config.toml, or "/" */
	const char *driver_root_seen; /* the same, as this process sees it; NULL = driver_root */
	const char *hook_path;        /* nvidia-cdi-hook on the host; NULL = found as the runtime finds it */
	const char *pods_socket;      /* of the kubelet's PodResources; NULL = NRI_PODS_SOCKET */
	const char *pods_checkpoint;  /* NULL = NRI_PODS_CHECKPOINT */
	/* The engine has exited; only with `has_fd`. May be NULL. */
	void (*ended)(void *arg);
	/* Called at each registration with an engine. May be NULL. */
	void (*registered)(void *arg);
	void *arg;
};

struct nri_plugin;

/*
 * Reads the configuration, begins to read the host, and connects. Returns NULL with the error set
 * if the configuration cannot be read or an option is wrong. A missing engine is not an error.
 */
struct nri_plugin *nri_plugin_begin(const struct nri_plugin_options *options, struct graft_error *err);
/*
 * Reads configuration and host again, as after SIGHUP. A configuration with errors changes nothing.
 */
void nri_plugin_reload(struct nri_plugin *plugin);
/* Ends the connection, refuses requests without an answer, and frees everything. NULL is
 * allowed. */
void nri_plugin_end(struct nri_plugin *plugin);

/* Returns whether the plugin is registered with an engine. */
bool nri_plugin_is_registered(const struct nri_plugin *plugin);
/* Appends its metrics (docs/nri.md), in the text format of Prometheus. */
void nri_plugin_metrics(const struct nri_plugin *plugin, struct graft_buffer *out);

#endif
