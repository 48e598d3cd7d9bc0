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
#include "kubernetes/nri_options.h"
#include "rpc/loop.h"

#define NRI_PLUGIN_NAME "graft"

/* All of it is borrowed for the plugin's life. */
struct nri_plugin_options {
	struct graft_loop *loop;
	const struct graft_log *log;
	const struct graft_nri_flags *flags;
	const char *name; /* that it registers under, usually NRI_PLUGIN_NAME */
	/*
	 * The connection that an engine passes to a plugin that it starts itself; it is closed in
	 * any case, and never replaced. Without it, `has_fd` is false.
	 */
	bool has_fd;
	int take_fd;
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
