/* SPDX-License-Identifier: Apache-2.0 */
/* nri_plugin: configuration, connection and registration (SPEC installer-and-nri 14). */
#include "daemon/nri_plugin.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <nri.pb-c.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "daemon/nri_parts.h"
#include "rpc/unix_socket.h"
#include "start/config_file.h"
#include "start/locate.h"

#define SERVICE        "nri.pkg.api.v1alpha1.Plugin"
#define ENGINE         "nri.pkg.api.v1alpha1.Runtime"
#define EVENTS         (1 << 3) /* CreateContainer */
#define CONFIG_MEMORY  ((size_t)16 << 20)
#define REQUEST_LIMIT  2000  /* milliseconds that engines wait, unless they specify otherwise */
#define REGISTER_LIMIT 10000 /* limit for the registration */
#define EVENT_DELAY_MS 5     /* between the creation of a socket and its listener */
#define LONGEST_LIMIT  600000
#define SHORT_LIFE_MS  1000 /* of a connection */
#define FIRST_DELAY_MS 100  /* before connecting again */
#define LAST_DELAY_MS  2000

static void connect_now(void *arg);

/* --- configuration --- */

static const char *or_standard(const char *value, const char *standard)
{
	return value && value[0] != '\0' ? value : standard;
}

static int read_nri_configuration(const struct nri_plugin *plugin, struct graft_arena *arena,
				  struct graft_config *config, struct graft_nri_policy *policy, struct graft_error *err)
{
	const struct graft_nri_flags *flags = plugin->options.flags;

	if (graft_config_file_load(GRAFT_CONFIG_OF_RUNTIME, or_standard(flags->config, NULL), arena, config, err) < 0)
		return -1;
	graft_config_file_warn(config, plugin->log);
	*policy = (struct graft_nri_policy){ .management_kind = flags->management_kind,
					     .own_namespace = flags->own_namespace,
					     .management_namespaces = flags->management_namespaces,
					     .n_management_namespaces = flags->n_management_namespaces,
					     .driver_root = or_standard(flags->driver_root,
									or_standard(config->cli.root, "/")) };
	policy->driver_root_seen = or_standard(flags->driver_root_seen, policy->driver_root);
	policy->hook_path = flags->hook_path[0] != '\0' ? flags->hook_path
							: graft_locate_cdi_hook(config, plugin->log, arena);
	return policy->hook_path ? 0 : graft_fail_memory(err);
}

/* Invalid values would be taken for something else. */
static int check_configuration(const struct graft_config *config, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_config_mistake *mistakes;
	size_t n;

	if (graft_config_find_mistakes(config, arena, &mistakes, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (strncmp(mistakes[i].key, "nri.", 4) == 0)
			return graft_fail(err, GRAFT_INVALID, 0, "%s: %s = '%.100s'; it can be %.200s",
					  config->file ? config->file : "config.toml", mistakes[i].key,
					  mistakes[i].value, mistakes[i].allowed);
	}
	return 0;
}

static int load_configuration(struct nri_plugin *plugin, struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new(CONFIG_MEMORY);
	struct graft_nri_policy policy;
	struct graft_config config;

	if (!arena)
		return graft_fail_memory(err);
	if (read_nri_configuration(plugin, arena, &config, &policy, err) < 0 ||
	    check_configuration(&config, arena, err) < 0) {
		(void)graft_arena_free(arena);
		return -1;
	}
	/* Waiting requests were read under the old configuration. */
	nri_request_end_all(plugin, "the plugin's configuration has changed");
	(void)graft_arena_free(plugin->arena);
	plugin->arena = arena;
	plugin->config = config;
	plugin->policy = policy;
	plugin->policy.config = &plugin->config;
	return 0;
}

/* --- what the engine calls --- */

static void serve_configure(void *service, struct graft_ttrpc_call *call)
{
	const Nri__Pkg__Api__V1alpha1__ConfigureRequest *message = (const void *)call->message;
	Nri__Pkg__Api__V1alpha1__ConfigureResponse answer = NRI__PKG__API__V1ALPHA1__CONFIGURE_RESPONSE__INIT;
	struct nri_plugin *plugin = service;
	int64_t timeout_ms = message->request_timeout > 0 ? message->request_timeout : REQUEST_LIMIT;

	timeout_ms = timeout_ms < LONGEST_LIMIT ? timeout_ms : LONGEST_LIMIT;
	/* The rest is for sending the answer. */
	plugin->limit_ms = timeout_ms * 3 / 4;
	plugin->kubelet.limit_ms = plugin->limit_ms * 9 / 10;
	graft_info(plugin->log, "the engine is %.100s %.100s; it waits %lld ms for an answer", message->runtime_name,
		   message->runtime_version, (long long)timeout_ms);
	answer.events = EVENTS;
	graft_ttrpc_link_reply(&plugin->link, call->stream, &answer.base);
}

static const struct graft_ttrpc_method methods[] = {
	{ "CreateContainer", &nri__pkg__api__v1alpha1__create_container_request__descriptor, nri_request_create },
	{ "Configure", &nri__pkg__api__v1alpha1__configure_request__descriptor, serve_configure },
	{ "Synchronize", &nri__pkg__api__v1alpha1__synchronize_request__descriptor, nri_request_synchronize },
};
static const Nri__Pkg__Api__V1alpha1__Empty empty_answer = NRI__PKG__API__V1ALPHA1__EMPTY__INIT;

/* --- the connection --- */

static void connect_later(struct nri_plugin *plugin, int64_t delay_ms)
{
	graft_loop_set_timer(plugin->loop, &plugin->connect, delay_ms);
}

static void connect_after_failure(struct nri_plugin *plugin)
{
	plugin->delay_ms = graft_loop_next_delay(plugin->delay_ms, FIRST_DELAY_MS, LAST_DELAY_MS);
	connect_later(plugin, plugin->delay_ms);
}

static void close_link(struct nri_plugin *plugin)
{
	nri_request_end_all(plugin, NULL);
	nri_request_drop_parts(plugin);
	graft_ttrpc_link_done(&plugin->link);
	plugin->connected = plugin->registered = false;
	graft_loop_clear_timer(&plugin->connect);
}

/*
 * An engine that was connected will come back. If it closes the connection before it has registered
 * the plugin, or soon after, wait before connecting again.
 */
static void lose_link(struct nri_plugin *plugin, const struct graft_error *why)
{
	bool lived = plugin->registered && graft_clock_ms() - plugin->registered_ms > SHORT_LIFE_MS;

	graft_warn(plugin->log, "%s: until the plugin is connected again, containers start without its devices",
		   GRAFT_ERROR_TEXT(why));
	close_link(plugin);
	plugin->counts.n_losses++;
	if (plugin->options.has_fd) {
		if (plugin->options.ended)
			plugin->options.ended(plugin->options.arg);
		return;
	}
	if (lived) {
		plugin->delay_ms = 0;
		connect_later(plugin, 0);
	} else {
		connect_after_failure(plugin);
	}
}

static void link_ended(void *arg, const struct graft_error *why)
{
	lose_link(arg, why);
}

static void registration_answered(void *arg, enum graft_rpc_status status, const char *text)
{
	struct nri_plugin *plugin = arg;

	graft_loop_clear_timer(&plugin->connect);
	if (status != GRAFT_RPC_OK) {
		graft_warn(plugin->log, "the engine refuses the plugin: %.300s", text);
		/* The connection ends by itself; until then it is not used. */
		connect_later(plugin, 0);
		return;
	}
	plugin->registered = true;
	plugin->registered_ms = graft_clock_ms();
	plugin->counts.n_registrations++;
	graft_info(plugin->log, "registered as %s-%s", plugin->options.flags->index, plugin->options.name);
	if (plugin->options.registered)
		plugin->options.registered(plugin->options.arg);
}

static int register_plugin(struct nri_plugin *plugin, struct graft_error *err)
{
	Nri__Pkg__Api__V1alpha1__RegisterPluginRequest message;

	nri__pkg__api__v1alpha1__register_plugin_request__init(&message);
	message.plugin_name = graft_rpc_read_only(plugin->options.name);
	message.plugin_idx = graft_rpc_read_only(plugin->options.flags->index);
	connect_later(plugin, REGISTER_LIMIT);
	return graft_ttrpc_link_call(&plugin->link, ENGINE, "RegisterPlugin", &message.base, registration_answered,
				     err);
}

static int begin_link(struct nri_plugin *plugin, int take_fd, struct graft_error *err)
{
	plugin->limit_ms = REQUEST_LIMIT * 3 / 4;
	if (graft_ttrpc_link_begin(&plugin->link, plugin->loop, take_fd, &plugin->link_options, err) < 0)
		return -1;
	plugin->connected = true;
	plugin->waiting = false;
	return register_plugin(plugin, err);
}

/* --- the socket's directory --- */

/* Repeat this at each attempt: the engine makes the directory. */
static void watch_socket_folder(struct nri_plugin *plugin)
{
	const char *socket = plugin->options.flags->socket, *slash = strrchr(socket, '/');
	char *folder = slash ? strndup(socket, slash == socket ? 1 : (size_t)(slash - socket)) : NULL;

	if (folder && plugin->folder.fd >= 0 && plugin->folder_watch < 0)
		plugin->folder_watch = inotify_add_watch(plugin->folder.fd, folder,
							 IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR);
	free(folder);
}

static void socket_folder_changed(void *arg, short events)
{
	struct nri_plugin *plugin = arg;
	_Alignas(struct inotify_event) char bytes[4096];
	ssize_t n;

	(void)events;
	while ((n = read(plugin->folder.fd, bytes, sizeof(bytes))) > 0) {
		for (char *at = bytes; at < bytes + n;) {
			const struct inotify_event *event = (const struct inotify_event *)(const void *)at;

			if (event->mask & IN_IGNORED)
				plugin->folder_watch = -1;
			at += sizeof(*event) + event->len;
		}
	}
	if (plugin->connected)
		return;
	/* The name exists a moment before the engine listens. */
	plugin->delay_ms = EVENT_DELAY_MS;
	connect_later(plugin, 0);
}

static void begin_socket_watch(struct nri_plugin *plugin)
{
	plugin->folder_watch = -1;
	plugin->folder = (struct graft_loop_watch){ .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
						    .events = POLLIN,
						    .ready = socket_folder_changed,
						    .arg = plugin };
	if (plugin->folder.fd >= 0)
		(void)graft_loop_watch(plugin->loop, &plugin->folder, NULL);
}

static void connect_now(void *arg)
{
	struct nri_plugin *plugin = arg;
	const char *socket = plugin->options.flags->socket;
	struct graft_error err = { .status = GRAFT_OK };
	int fd;

	if (plugin->connected) {
		(void)graft_fail(&err, GRAFT_TIMEOUT, 0, "the engine did not register the plugin in time");
		lose_link(plugin, &err);
		return;
	}
	watch_socket_folder(plugin);
	fd = graft_unix_connect(socket);
	if (fd < 0) {
		if (!plugin->waiting)
			graft_info(plugin->log, "waiting for an engine with NRI at %s: %s", socket, strerror(-fd));
		plugin->waiting = true;
		connect_after_failure(plugin);
	} else if (begin_link(plugin, fd, &err) < 0) {
		lose_link(plugin, &err);
	}
}

/* --- from outside --- */

static void host_renewed(void *arg)
{
	nri_request_host_renewed(arg);
}

static int check_index(const char *index, struct graft_error *err)
{
	if (strlen(index) != 2 || !isdigit((unsigned char)index[0]) || !isdigit((unsigned char)index[1]))
		return graft_fail(err, GRAFT_INVALID, 0, "invalid plugin index '%.20s'; allowed: 00 to 99", index);
	return 0;
}

static int begin_plugin_parts(struct nri_plugin *plugin, struct graft_error *err)
{
	const struct nri_plugin_options *options = &plugin->options;

	if (check_index(options->flags->index, err) < 0 || load_configuration(plugin, err) < 0)
		return -1;
	plugin->host = (struct nri_host){ .loop = plugin->loop,
					  .log = plugin->log,
					  .policy = &plugin->policy,
					  .renewed = host_renewed,
					  .arg = plugin };
	plugin->kubelet = (struct nri_kubelet){ .loop = plugin->loop,
						.log = plugin->log,
						.socket = options->flags->pods_socket,
						.checkpoint = options->flags->pods_checkpoint,
						.limit_ms = REQUEST_LIMIT / 2 };
	nri_kubelet_begin(&plugin->kubelet);
	nri_host_begin(&plugin->host);
	if (options->has_fd)
		return begin_link(plugin, TAKE_FD(plugin->options.take_fd), err);
	begin_socket_watch(plugin);
	connect_now(plugin);
	return 0;
}

struct nri_plugin *nri_plugin_begin(const struct nri_plugin_options *options, struct graft_error *err)
{
	struct nri_plugin *plugin = calloc(1, sizeof(*plugin));

	if (!plugin) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	plugin->options = *options;
	if (!options->has_fd)
		plugin->options.take_fd = -1;
	plugin->log = options->log;
	plugin->loop = options->loop;
	plugin->folder.fd = -1;
	plugin->connect = (struct graft_loop_timer){ .due = connect_now, .arg = plugin };
	plugin->link_options = (struct graft_ttrpc_link_options){ .service = SERVICE,
								  .methods = methods,
								  .n_methods = GRAFT_COUNT(methods),
								  .empty = &empty_answer.base,
								  .arg = plugin,
								  .ended = link_ended };
	if (begin_plugin_parts(plugin, err) == 0)
		return plugin;
	nri_plugin_end(plugin);
	return NULL;
}

void nri_plugin_reload(struct nri_plugin *plugin)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (load_configuration(plugin, &err) < 0)
		graft_warn(plugin->log, "the configuration is unchanged: %s", GRAFT_ERROR_TEXT(&err));
	nri_host_reload(&plugin->host);
}

void nri_plugin_end(struct nri_plugin *plugin)
{
	if (!plugin)
		return;
	nri_request_end_all(plugin, plugin->connected ? "the plugin ends" : NULL);
	close_link(plugin);
	nri_kubelet_done(&plugin->kubelet);
	nri_host_done(&plugin->host);
	graft_loop_close(plugin->loop, &plugin->folder);
	if (plugin->options.take_fd >= 0)
		(void)close(plugin->options.take_fd);
	(void)graft_arena_free(plugin->arena);
	free(plugin);
}

bool nri_plugin_is_registered(const struct nri_plugin *plugin)
{
	return plugin->registered;
}
