/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin: the life of the device plugin (SPEC kubernetes 6.4): starts, and starts again when the
 * kubelet does or the administrator requests it.
 */
#include "daemon/plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "formats/procfs.h"
#include "kubernetes/kube_cdi.h"

#define START_AGAIN_MS  30000
#define FOLDER_AGAIN_MS 1000
#define LOST_AGAIN_MS   5000
#define BLIND_MS        2000
#define LOOK_AT_MIGS_MS 10000
#define LOOK_SLACK_MS   100
#define FAILED_FIRST_MS 10000
#define FAILED_LAST_MS  300000
#define FOLDER_EVENTS   (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

static void plugin_warn(const struct plugin *plugin, const char *before, const struct graft_error *err,
			const char *after)
{
	graft_warn(plugin->log, "%s: %s%s", before, GRAFT_ERROR_TEXT(err), after);
}

static void stop_serving(struct plugin *plugin)
{
	for (size_t i = 0; plugin->node && i < plugin->node->n_resources; i++)
		plugin_resource_end(&plugin->node->resources[i]);
}

/*
 * SPEC kubernetes 9: a file next to its pipes shows that a daemon serves programs. In a pod the
 * directory may be invisible; then this is unknown.
 */
static bool has_mps(const struct plugin_node *node, const char *resource)
{
	const char *root = "/mps";
	char path[PATH_MAX];
	struct stat st;

	if (stat(root, &st) < 0)
		root = node->config.flags.mps_root;
	if (stat(root, &st) < 0)
		return true;
	(void)snprintf(path, sizeof(path), "%s/%s/.started", root, resource);
	return stat(path, &st) == 0;
}

static void look_for_mps(void *arg)
{
	struct plugin *plugin = arg;

	for (size_t i = 0; i < plugin->node->n_resources; i++) {
		struct plugin_resource *resource = &plugin->node->resources[i];
		bool missing;

		if (resource->offer->sharing != GRAFT_KUBE_MPS)
			continue;
		missing = !has_mps(plugin->node, resource->offer->name);
		graft_loop_set_timer(plugin->loop, &plugin->mps, BLIND_MS);
		if (missing == resource->no_mps)
			continue;
		resource->no_mps = missing;
		graft_warn(plugin->log, "%s: the MPS daemon %s", resource->offer->name,
			   missing ? "does not run: shared devices are unhealthy" : "runs");
		plugin_resource_push(resource);
	}
}

static void start_serving(void *arg)
{
	struct plugin *plugin = arg;
	struct graft_error err = { .status = GRAFT_OK };
	size_t i;

	graft_loop_clear_timer(&plugin->start);
	look_for_mps(plugin);
	for (i = 0; i < plugin->node->n_resources; i++) {
		if (plugin_resource_serve(&plugin->node->resources[i], &err) < 0)
			break;
		graft_info(plugin->log, "%s: serving %zu devices at %s", plugin->node->resources[i].offer->name,
			   plugin->node->resources[i].offer->n_devices, plugin->node->resources[i].socket);
		plugin_register(&plugin->node->resources[i]);
	}
	if (i == plugin->node->n_resources)
		return;
	/* All or nothing: serving only some of a node's resources would not help. */
	plugin_warn(plugin, plugin->node->resources[i].offer->name, &err, "; trying again in 30 s");
	stop_serving(plugin);
	graft_loop_set_timer(plugin->loop, &plugin->start, START_AGAIN_MS);
}

static void look_at_host(struct plugin *plugin, enum graft_kube_ask ask);

/* --- the kubelet's directory --- */

static void watch_folder(void *arg);

static void stop_watching(struct plugin *plugin)
{
	graft_loop_close(plugin->loop, &plugin->folder_watch);
	plugin->kubelet_number = -1;
	graft_loop_clear_timer(&plugin->kubelet);
}

/*
 * Serves resources again that have lost their sockets, and registers these, or with `all` every
 * resource, again. A socket that another plugin has taken, such as the next one of a rolling
 * update, belongs to that plugin while it runs: two plugins that keep taking it from each other
 * would not serve any kubelet.
 */
static void serve_lost(struct plugin *plugin, bool all)
{
	struct plugin_node *node = plugin->node;
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < node->n_resources; i++) {
		struct plugin_resource *resource = &node->resources[i];
		bool lost = resource->server && !graft_rpc_server_is_there(resource->server);

		if (!resource->server || (!lost && !all))
			continue;
		if (lost && graft_rpc_server_is_replaced(resource->server)) {
			plugin_register_end(resource);
			graft_loop_set_timer(plugin->loop, &plugin->lost, LOST_AGAIN_MS);
			continue;
		}
		if (lost && plugin_resource_serve(resource, &err) < 0) {
			plugin_warn(plugin, resource->offer->name, &err, "; trying again in 5 s");
			plugin_register_end(resource);
			graft_loop_set_timer(plugin->loop, &plugin->lost, LOST_AGAIN_MS);
			continue;
		}
		plugin_register(resource);
	}
}

static void serve_lost_again(void *arg)
{
	serve_lost(arg, false);
}

/*
 * For a new kubelet, which may have come with a new driver, or have removed the obstacle to
 * serving: ends all waits.
 */
static void greet_kubelet(struct plugin *plugin)
{
	if (plugin->node->n_resources == 0)
		look_at_host(plugin, GRAFT_KUBE_ASK_EVENT);
	else if (plugin->start.link)
		start_serving(plugin);
	else
		serve_lost(plugin, true);
}

static void folder_changed(void *arg, short events)
{
	struct plugin *plugin = arg;
	const char *kubelet = strrchr(plugin->node->config.flags.plugin.kubelet_socket, '/');
	_Alignas(struct inotify_event) char bytes[4096];
	bool gone = false, new_kubelet = false;
	ssize_t n;

	(void)events;
	while ((n = read(plugin->folder_watch.fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; at < n;) {
			struct inotify_event event;
			const char *name = bytes + at + sizeof(event);

			memcpy(&event, bytes + at, sizeof(event));
			/* An event lost from a full queue may be the kubelet's start. */
			new_kubelet |= (event.mask & IN_Q_OVERFLOW) != 0;
			/* The directory may come back; the timer will find it. */
			if ((event.mask & IN_IGNORED) != 0 && event.wd == plugin->kubelet_number)
				graft_loop_set_timer(plugin->loop, &plugin->kubelet, BLIND_MS);
			gone |= (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0 &&
				event.wd == plugin->folder_number;
			new_kubelet |= (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0 && event.len > 0 && kubelet &&
				       strcmp(name, kubelet + 1) == 0;
			at += (ssize_t)(sizeof(event) + event.len);
		}
	}
	if (new_kubelet && !plugin->node->registry)
		graft_info(plugin->log, "the kubelet has started");
	if (!new_kubelet)
		serve_lost(plugin, false);
	if (gone) {
		stop_watching(plugin);
		watch_folder(plugin);
	} else if (new_kubelet) {
		greet_kubelet(plugin);
	}
}

/*
 * With a registry, the kubelet's own socket is in another directory, which is watched only for the
 * kubelet's start. It does not exist before the first start of a node's first kubelet. Returns
 * whether it exists.
 */
static bool watch_kubelet(struct plugin *plugin)
{
	if (!plugin->node->registry)
		return false;
	plugin->kubelet_number = inotify_add_watch(plugin->folder_watch.fd, plugin->node->kubelet_folder,
						   IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
	if (plugin->kubelet_number < 0)
		graft_loop_set_timer(plugin->loop, &plugin->kubelet, BLIND_MS);
	return plugin->kubelet_number >= 0;
}

static void watch_kubelet_again(void *arg)
{
	struct plugin *plugin = arg;
	struct stat st;

	if (watch_kubelet(plugin) && stat(plugin->node->config.flags.plugin.kubelet_socket, &st) == 0)
		greet_kubelet(plugin);
}

/*
 * Another socket means another kubelet. Returns whether a socket exists that differs from the one
 * at the last call.
 */
static bool is_new_kubelet(struct plugin *plugin)
{
	const struct timespec before = plugin->kubelet_made;
	struct stat st;

	if (stat(plugin->node->config.flags.plugin.kubelet_socket, &st) < 0)
		return false;
	plugin->kubelet_made = st.st_ctim;
	return before.tv_sec != st.st_ctim.tv_sec || before.tv_nsec != st.st_ctim.tv_nsec;
}

/*
 * Checks for changes that no event reports: a kubelet that has started, a socket that was removed.
 */
static void look_without_events(struct plugin *plugin)
{
	if (is_new_kubelet(plugin))
		greet_kubelet(plugin);
	else
		serve_lost(plugin, false);
}

/*
 * Without inotify, whose instances other processes may have used up, checks the directory every two
 * seconds.
 */
static void serve_blind(struct plugin *plugin, int sys)
{
	bool first = !plugin->blind;

	plugin->blind = true;
	graft_loop_set_timer(plugin->loop, &plugin->look, BLIND_MS);
	if (first) {
		graft_warn(plugin->log, "cannot watch %s: %s; checking it every two seconds", plugin->node->folder,
			   strerror(sys));
		(void)is_new_kubelet(plugin);
		start_serving(plugin);
	} else {
		look_without_events(plugin);
	}
}

static void wait_for_folder(struct plugin *plugin)
{
	if (!plugin->waits_for_folder)
		graft_info(plugin->log, "waiting for the kubelet: there is no directory %s yet", plugin->node->folder);
	plugin->waits_for_folder = true;
	graft_loop_set_timer(plugin->loop, &plugin->look, FOLDER_AGAIN_MS);
}

/* Waits for a directory that does not exist yet; until then there is nothing else to do. */
static void watch_folder(void *arg)
{
	struct plugin *plugin = arg;
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), sys;
	bool blind = plugin->blind;
	struct stat st;

	plugin->folder_watch =
	    (struct graft_loop_watch){ .fd = fd, .events = POLLIN, .ready = folder_changed, .arg = plugin };
	plugin->folder_number = fd >= 0 ? inotify_add_watch(fd, plugin->node->folder, FOLDER_EVENTS) : -1;
	sys = errno;
	if (plugin->folder_number < 0 || graft_loop_watch(plugin->loop, &plugin->folder_watch, NULL) < 0) {
		stop_watching(plugin);
		if (stat(plugin->node->folder, &st) == 0 && S_ISDIR(st.st_mode))
			serve_blind(plugin, sys);
		else
			wait_for_folder(plugin);
		return;
	}
	plugin->blind = plugin->waits_for_folder = false;
	(void)watch_kubelet(plugin);
	if (blind)
		look_without_events(plugin);
	else
		start_serving(plugin);
}

/* --- begin and end --- */

static void health_changed(void *arg)
{
	struct plugin *plugin = arg;

	for (size_t i = 0; plugin->node && i < plugin->node->n_resources; i++)
		plugin_resource_push(&plugin->node->resources[i]);
}

static void clear_health(void *arg, const char *name)
{
	struct plugin *plugin = arg;
	bool all = strcmp(name, CLEAR_ALL) == 0;
	struct graft_pci_address address;

	if (!all && !graft_pci_parse(name, &address))
		graft_warn(plugin->log, "--clear-health: '%s' is not a PCI address", name);
	else if (!health_clear(&plugin->health, all ? NULL : name))
		graft_info(plugin->log, "--clear-health: found no failure of %s", all ? "any GPU" : name);
}

bool plugin_find_nodes(struct plugin *plugin)
{
	struct plugin_node *node = plugin->node;
	struct graft_error err = { .status = GRAFT_OK };

	if (!graft_kube_node_find_nodes(&node->config, &node->facts))
		return false;
	if (graft_kube_cdi_write(&node->config, &node->facts, GRAFT_KUBE_CDI_DIRECTORY, plugin->log, &err) < 0)
		plugin_warn(plugin, "new device nodes were not added to the CDI specifications", &err, "");
	return true;
}

/*
 * A host that had nothing to offer may have a driver now, or another GPU; NVML's answer may be
 * final now.
 */
static void hardware_changed(void *arg)
{
	struct plugin *plugin = arg;
	const struct plugin_node *node = plugin->node;
	struct stat st;

	if (plugin->health.options.loop)
		health_look(&plugin->health);
	(void)plugin_find_nodes(plugin);
	if (node->facts.unsettled || (node->n_resources == 0 && stat("/proc/driver/nvidia/version", &st) == 0) ||
	    graft_kube_node_has_more_gpus(&node->config, &node->facts))
		look_at_host(plugin, GRAFT_KUBE_ASK_EVENT);
}

static void begin_health(struct plugin *plugin)
{
	const char *simulated = plugin->sources.variable("SIMULATED_KMSG");
	bool reads_log = (plugin->node->config.flags.plugin.health_sources & GRAFT_KUBE_HEALTH_KMSG) != 0;
	const struct health_options options = {
		.loop = plugin->loop,
		.log = plugin->log,
		.kernel_log = !reads_log                                              ? NULL
			      : simulated && plugin->node->facts.inventory->simulated ? simulated
										      : "/dev/kmsg",
		.state_folder = plugin->state_folder,
		.sys_root = "",
		.changed = health_changed,
		.arg = plugin,
	};

	health_begin(&plugin->health, &options);
}

static void end_health(struct plugin *plugin)
{
	health_nvml_done(&plugin->nvml);
	if (!plugin->health.options.loop)
		return;
	health_done(&plugin->health);
	plugin->health.options.loop = NULL;
	plugin->health.n_faults = 0;
	plugin->health.flooded = false;
}

static void configure_health(struct plugin *plugin)
{
	const struct graft_kube_plugin_flags *flags = &plugin->node->config.flags.plugin;
	const struct graft_xid_rules rules = graft_xid_rules_make(flags->disable_health_checks,
								  flags->enable_health_checks);
	const struct graft_inventory *inventory = plugin->node->facts.inventory;
	char dev_folder[PATH_MAX];

	/* A new choice of sources starts from scratch. */
	if (plugin->health.options.loop && flags->health_sources != plugin->health_sources)
		end_health(plugin);
	if (!plugin->health.options.loop && inventory->n_gpus > 0 && graft_xid_any_matters(&rules) &&
	    flags->health_sources != GRAFT_KUBE_HEALTH_NONE)
		begin_health(plugin);
	plugin->health_sources = flags->health_sources;
	if (plugin->health.options.loop)
		health_configure(&plugin->health, &rules, inventory);
	if (plugin->health.options.loop && (flags->health_sources & GRAFT_KUBE_HEALTH_NVML) != 0)
		health_nvml_begin(&plugin->nvml, &plugin->health, &plugin->node->config.flags, inventory);
	/* This comes after the log has been read: waiting requests refer to its faults. */
	if (plugin->health.options.loop && !plugin->clear_requests.loop)
		clear_requests_begin(&plugin->clear_requests, plugin->loop, plugin->state_folder, plugin->log,
				     clear_health, plugin);
	(void)snprintf(dev_folder, sizeof(dev_folder), "%s/dev",
		       inventory->dev_root && strcmp(inventory->dev_root, "/") != 0 ? inventory->dev_root : "");
	hardware_done(&plugin->hardware);
	hardware_begin(&plugin->hardware, plugin->loop, dev_folder, plugin->log, hardware_changed, plugin);
	/*
	 * Handles what has happened since the host was read, which may be long ago because of NVML.
	 */
	hardware_look_soon(&plugin->hardware);
}

static void begin_leases(struct plugin *plugin)
{
	const struct pod_offer offer = { .inventory = plugin->node->facts.inventory,
					 .offer = &plugin->node->facts.offer,
					 .kubelet_folder = plugin->node->kubelet_folder };

	plugin->leases.loop = plugin->loop;
	plugin->leases.log = plugin->log;
	plugin->leases.changed = health_changed;
	plugin->leases.arg = plugin;
	if (plugin->node->config.flags.plugin.respect_leases)
		pod_leases_begin(&plugin->leases, plugin->state_folder, &offer);
	else
		pod_leases_end(&plugin->leases);
}

static void stop_waiting(struct plugin *plugin)
{
	graft_loop_clear_timer(&plugin->look);
	graft_loop_clear_timer(&plugin->start);
	graft_loop_clear_timer(&plugin->lost);
	graft_loop_clear_timer(&plugin->again);
	graft_loop_clear_timer(&plugin->mps);
}

/*
 * When the host is read again although no event was reported: after a failure, at growing
 * intervals; when NVML is to be asked again; and for MIG devices, of which the kernel reports
 * nothing.
 */
static void plan_next_look(struct plugin *plugin, int64_t wait_s, bool failed)
{
	int64_t delay_ms = wait_s >= 0 ? wait_s * 1000 + LOOK_SLACK_MS : -1;

	plugin->failed_ms = failed ? graft_loop_next_delay(plugin->failed_ms, FAILED_FIRST_MS, FAILED_LAST_MS) : 0;
	if (failed)
		delay_ms = plugin->failed_ms;
	plugin->settle_ms = delay_ms >= 0 && !failed ? graft_clock_ms() + delay_ms : -1;
	if (plugin->node && plugin->node->facts.watch_migs && (delay_ms < 0 || delay_ms > LOOK_AT_MIGS_MS))
		delay_ms = LOOK_AT_MIGS_MS;
	if (delay_ms >= 0)
		graft_loop_set_timer(plugin->loop, &plugin->again, delay_ms);
}

static void look_is_due(void *arg)
{
	struct plugin *plugin = arg;
	const struct plugin_node *node = plugin->node;

	if (!node || plugin->failed_ms > 0 || (plugin->settle_ms >= 0 && graft_clock_ms() >= plugin->settle_ms) ||
	    graft_kube_node_has_other_migs(&node->config, &node->facts))
		look_at_host(plugin, GRAFT_KUBE_ASK_UNSETTLED);
	else
		graft_loop_set_timer(plugin->loop, &plugin->again, LOOK_AT_MIGS_MS);
}

/* Serves the offer of a node instead of the previous one's. */
static void serve_node(struct plugin *plugin, struct plugin_node *take_node)
{
	struct plugin_node *before = plugin->node;

	stop_waiting(plugin);
	stop_watching(plugin);
	stop_serving(plugin);
	health_nvml_pause(&plugin->nvml);
	plugin->node = take_node;
	plugin->pending = plugin->blind = false;
	configure_health(plugin);
	begin_leases(plugin);
	(void)plugin_node_free(before);
	if (plugin->node->n_resources == 0)
		graft_info(plugin->log, "No devices found. Waiting indefinitely.");
	watch_folder(plugin);
	plan_next_look(plugin, plugin->node->facts.wait_s, plugin->node->facts.failed);
}

/* --- reading --- */

/* Do not restart an unchanged offer: the kubelet would consider every device failed meanwhile. */
static bool offers_the_same(const struct plugin *plugin, const struct plugin_node *node)
{
	return !plugin->pending && strcmp(node->facts.state, plugin->node->facts.state) == 0;
}

/* Handles requests that came during a reading. */
static void do_later(struct plugin *plugin)
{
	enum plugin_later later = plugin->later;

	plugin->later = PLUGIN_LATER_NOTHING;
	if (later == PLUGIN_LATER_RELOAD)
		plugin_reload(plugin);
	else if (later == PLUGIN_LATER_LOOK && plugin->node)
		hardware_changed(plugin);
}

/* The offer is the same, or cannot be made. A failure that persists is logged once. */
static void change_nothing(struct plugin *plugin, const struct plugin_node *node, const struct graft_error *err)
{
	if (!node && plugin->failed_ms == 0)
		plugin_warn(plugin, "nothing was changed", err, "");
	if (node) {
		plugin->node->facts.unsettled = node->facts.unsettled;
		plugin->node->facts.wait_s = node->facts.wait_s;
	}
	plan_next_look(plugin, node ? node->facts.wait_s : -1, !node || node->facts.failed);
}

static void look_is_read(struct plugin *plugin, struct plugin_node *take_node, const struct graft_error *err)
{
	if (take_node && !offers_the_same(plugin, take_node)) {
		serve_node(plugin, take_node);
		graft_info(plugin->log, "reread configuration and host, which have changed");
	} else {
		change_nothing(plugin, take_node, err);
		(void)plugin_node_free(take_node);
	}
	do_later(plugin);
}

/* A reload that failed is still pending. */
static void look_at_host(struct plugin *plugin, enum graft_kube_ask ask)
{
	if (!plugin->reading.node)
		plugin_read(plugin, plugin->pending && plugin->node ? GRAFT_KUBE_ASK_ANEW : ask, plugin->failed_ms > 0,
			    look_is_read);
	else if (plugin->later < PLUGIN_LATER_LOOK)
		plugin->later = PLUGIN_LATER_LOOK;
}

/* A start or a reload. */
static void all_is_read(struct plugin *plugin, struct plugin_node *take_node, const struct graft_error *err)
{
	bool first = !plugin->node;

	if (!take_node && first && plugin->fail_on_init_error) {
		plugin->done(plugin->arg, err);
		return;
	}
	if (take_node) {
		serve_node(plugin, take_node);
		if (!first)
			graft_info(plugin->log, "reread configuration and host");
	} else {
		plugin_warn(plugin, first ? "nothing is offered" : "nothing was changed", err, "; trying again later");
		plugin->pending = true;
		plugin->failed_ms = 0;
		plan_next_look(plugin, -1, true);
	}
	plugin->done(plugin->arg, NULL);
	do_later(plugin);
}

void plugin_begin(struct plugin *plugin)
{
	plugin->begun = true;
	plugin->folder_watch.fd = -1;
	plugin->look = (struct graft_loop_timer){ .due = watch_folder, .arg = plugin };
	plugin->kubelet = (struct graft_loop_timer){ .due = watch_kubelet_again, .arg = plugin };
	plugin->start = (struct graft_loop_timer){ .due = start_serving, .arg = plugin };
	plugin->lost = (struct graft_loop_timer){ .due = serve_lost_again, .arg = plugin };
	plugin->again = (struct graft_loop_timer){ .due = look_is_due, .arg = plugin };
	plugin->mps = (struct graft_loop_timer){ .due = look_for_mps, .arg = plugin };
	plugin_read(plugin, GRAFT_KUBE_ASK_UNSETTLED, false, all_is_read);
}

void plugin_reload(struct plugin *plugin)
{
	if (plugin->reading.node)
		plugin->later = PLUGIN_LATER_RELOAD;
	else
		plugin_read(plugin, GRAFT_KUBE_ASK_ANEW, false, all_is_read);
}

void plugin_done(struct plugin *plugin)
{
	plugin_read_stop(plugin);
	stop_waiting(plugin);
	if (!plugin->node)
		return;
	stop_watching(plugin);
	stop_serving(plugin);
	hardware_done(&plugin->hardware);
	clear_requests_done(&plugin->clear_requests);
	end_health(plugin);
	pod_leases_end(&plugin->leases);
	plugin->node = plugin_node_free(plugin->node);
}
