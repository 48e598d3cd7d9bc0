/* SPDX-License-Identifier: Apache-2.0 */
/* discovery: one pass from the configuration to the file, and the events that repeat it. */
#include "daemon/discovery.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "formats/xid.h"
#include "kubernetes/kube_labels.h"

#define MAX_MEMORY    ((size_t)256 << 20)
#define MAX_LABELS    ((size_t)1 << 20)
#define LABELS_MODE   0644
#define SETTLE_MS     200 /* several events are usually one change */
#define NODES_FOLDER  "/dev"
#define CAPS_FOLDER   "/dev/nvidia-caps"
#define FOLDER_EVENTS (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM)
#define FILE_EVENTS   (IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF)

/* Why labels are made again, which decides how much is logged. */
enum pass_cause { PASS_REQUEST, PASS_EVENT, PASS_INTERVAL, PASS_CAUSES };

/* What one pass makes; it replaces the result of the previous pass. */
struct discovery_pass {
	struct graft_arena *arena;
	struct graft_kube_config config;
	struct graft_kube_labels labels;
	const char *text;
	bool look_again;
};

/* --- output --- */

/* Returns the file of the labels; NULL if they go elsewhere. */
static const char *file_of(const struct graft_kube_config *config)
{
	const char *path = config->flags.gfd.output_file;

	return config->flags.use_node_feature_api || path[0] == '\0' ? NULL : path;
}

static void labels_settled(void *arg, const struct graft_error *err)
{
	struct discovery *discovery = arg;

	if (err)
		discovery->err = *err;
	if (discovery->config.flags.gfd.oneshot)
		graft_loop_stop(discovery->loop);
}

/* Sends the labels to the API server, whose address does not change while the program runs. */
static int publish(struct discovery *discovery, const struct discovery_pass *pass, struct graft_error *err)
{
	if (!discovery->feature.cluster) {
		discovery->feature = (struct node_feature){ .loop = discovery->loop,
							    .log = discovery->log,
							    .flags = &discovery->config.api,
							    .variable = discovery->sources.variable,
							    .settled = labels_settled,
							    .arg = discovery,
							    .once = pass->config.flags.gfd.oneshot };
		if (node_feature_begin(&discovery->feature, err) < 0)
			return -1;
	}
	if (!discovery->text || strcmp(discovery->text, pass->text) != 0)
		discovery->changed_ms = graft_clock_ms();
	node_feature_set(&discovery->feature, &pass->labels);
	return 0;
}

static int write_standard_output(const char *text, struct graft_error *err)
{
	size_t length = strlen(text), done = 0;

	while (done < length) {
		ssize_t n = write(STDOUT_FILENO, text + done, length - done);

		if (n < 0 && errno != EINTR)
			return graft_fail_errno(err, errno, "cannot write to standard output");
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Returns whether the file has this text already. */
static bool has_text(const char *path, const char *text)
{
	struct graft_arena *arena = graft_arena_new(MAX_LABELS * 2);
	struct graft_error why = { .status = GRAFT_OK };
	const char *bytes;
	size_t length;
	bool same = arena && graft_host_file_read(path, MAX_LABELS, arena, &bytes, &length, &why) > 0 &&
		    length == strlen(text) && memcmp(bytes, text, length) == 0;

	(void)graft_arena_free(arena);
	return same;
}

static int write_file(struct discovery *discovery, const char *path, const struct discovery_pass *pass,
		      struct graft_error *err)
{
	if (has_text(path, pass->text))
		return 0;
	if (graft_host_file_write(path, pass->text, strlen(pass->text), LABELS_MODE, err) < 0)
		return -1;
	graft_info(discovery->log, "labels written to %s", path);
	discovery->changed_ms = graft_clock_ms();
	return 0;
}

/* Writes the labels to their destination, unless they are there already. */
static int write_labels(struct discovery *discovery, const struct discovery_pass *pass, struct graft_error *err)
{
	const char *path = file_of(&pass->config);

	if (pass->config.flags.use_node_feature_api)
		return publish(discovery, pass, err);
	node_feature_end(&discovery->feature);
	if (path)
		return write_file(discovery, path, pass, err);
	if (discovery->text && strcmp(discovery->text, pass->text) == 0)
		return 0;
	discovery->changed_ms = graft_clock_ms();
	return write_standard_output(pass->text, err);
}

static void remove_output(const struct discovery *discovery)
{
	struct graft_error why = { .status = GRAFT_OK };
	const char *path = discovery->text ? file_of(&discovery->config) : NULL;

	if (path && graft_host_file_remove(path, &why) < 0)
		graft_warn(discovery->log, "%s", why.msg);
}

/* --- one pass --- */

static int make_labels(struct discovery *discovery, struct discovery_pass *pass, enum graft_kube_ask ask,
		       const struct graft_log *log, struct graft_error *err)
{
	struct graft_buffer text = { .max = MAX_LABELS };

	if (graft_kube_label_node(&pass->config, discovery->timestamp, ask, log, pass->arena, &pass->labels,
				  &pass->look_again, err) < 0)
		return -1;
	graft_kube_labels_write(&pass->labels, &text);
	pass->text = graft_buffer_failed(&text) ? NULL : graft_arena_strdup(pass->arena, graft_buffer_text(&text));
	graft_buffer_done(&text);
	return pass->text ? write_labels(discovery, pass, err) : graft_fail_memory(err);
}

/* `log`, for warnings, can be NULL. */
static int read_pass_configuration(struct discovery *discovery, const struct graft_log *log,
				   struct discovery_pass *pass, struct graft_error *err)
{
	struct graft_kube_sources sources = discovery->sources;
	enum graft_parse_result result = GRAFT_PARSE_OK;

	*pass = (struct discovery_pass){ .arena = graft_arena_new(MAX_MEMORY) };
	if (!pass->arena)
		return graft_fail_memory(err);
	sources.log = log;
	return graft_kube_configure(&sources, pass->arena, &pass->config, &result, err);
}

static int64_t find_interval(const struct graft_kube_config *config)
{
	int64_t ns = 0;

	(void)graft_kube_parse_duration(config->flags.gfd.sleep_interval, &ns);
	return ns < 0 ? -1 : ns / 1000000;
}

/* Removes the labels of an earlier configuration from another destination. */
static void adopt(struct discovery *discovery, struct discovery_pass *take_pass)
{
	struct graft_arena *before = discovery->arena;
	const char *old_file = before ? file_of(&discovery->config) : NULL, *file = file_of(&take_pass->config);

	if (old_file && (!file || strcmp(old_file, file) != 0))
		remove_output(discovery);
	discovery->arena = take_pass->arena;
	discovery->config = take_pass->config;
	discovery->text = take_pass->text;
	discovery->interval_ms = find_interval(&take_pass->config);
	(void)graft_arena_free(before);
}

/*
 * Logs all findings only if the user asked for this pass. Only SIGHUP asks NVML again, not the
 * start.
 */
static int make_pass(struct discovery *discovery, enum pass_cause cause, struct graft_error *err)
{
	static const enum graft_log_level levels[PASS_CAUSES] = { GRAFT_LOG_INFO, GRAFT_LOG_WARN, GRAFT_LOG_ERROR };
	enum graft_kube_ask ask = cause == PASS_EVENT ? GRAFT_KUBE_ASK_EVENT : GRAFT_KUBE_ASK_UNSETTLED;
	struct graft_log log = *discovery->log;
	struct discovery_pass pass;

	if (cause == PASS_REQUEST && discovery->text)
		ask = GRAFT_KUBE_ASK_ANEW;
	log.max = levels[cause];
	discovery->look_again = false;
	if (read_pass_configuration(discovery, &log, &pass, err) < 0 ||
	    make_labels(discovery, &pass, ask, &log, err) < 0) {
		(void)graft_arena_free(pass.arena);
		return -1;
	}
	discovery->look_again = pass.look_again;
	adopt(discovery, &pass);
	return 0;
}

/* --- events --- */

static void watch_places(struct discovery *discovery);

/*
 * Checks once per interval what no event reports: MIG devices, and a driver that does not answer
 * yet.
 */
static void set_interval(struct discovery *discovery, bool needed)
{
	discovery->event = false;
	if ((needed || discovery->events.fd < 0) && discovery->interval_ms > 0)
		graft_loop_set_timer(discovery->loop, &discovery->again, discovery->interval_ms);
}

static void label_again(struct discovery *discovery, enum pass_cause cause)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[sizeof(err.msg) + sizeof(err.ctx)];
	int rc;

	graft_loop_clear_timer(&discovery->again);
	rc = make_pass(discovery, cause, &err);
	if (rc < 0 && cause != PASS_INTERVAL)
		graft_warn(discovery->log, "%s: %s", discovery->text ? "the labels stay as they are" : "no labels",
			   graft_error_text(&err, text, sizeof(text)));
	watch_places(discovery);
	set_interval(discovery, rc < 0 || discovery->look_again);
}

static void again_due(void *arg)
{
	struct discovery *discovery = arg;

	label_again(discovery, discovery->event ? PASS_EVENT : PASS_INTERVAL);
}

/* After an event: start a pass soon, but not too soon after the last change. */
static void schedule(struct discovery *discovery)
{
	int64_t now = graft_clock_ms(), at = discovery->changed_ms + discovery->interval_ms;

	if (discovery->text && discovery->interval_ms < 0)
		return;
	if (!discovery->text || at < now + SETTLE_MS)
		at = now + SETTLE_MS;
	discovery->event = true;
	if (!discovery->again.link || discovery->again.at_ms > at)
		graft_loop_set_timer(discovery->loop, &discovery->again, at - now);
}

static void driver_changed(void *arg)
{
	schedule(arg);
}

static bool is_of_interest(const struct discovery *discovery, const struct inotify_event *event, const char *name)
{
	const char *file = file_of(&discovery->config), *slash = file ? strrchr(file, '/') : NULL;

	/* Our own writing is an event, too. */
	if (event->wd == discovery->output_watch)
		return event->len > 0 && slash && strcmp(name, slash + 1) == 0 && discovery->text &&
		       !has_text(file, discovery->text);
	return (event->mask & IN_IGNORED) == 0;
}

static void places_changed(void *arg, short events)
{
	struct discovery *discovery = arg;
	_Alignas(struct inotify_event) char bytes[4096];
	bool interesting = false;
	ssize_t n;

	(void)events;
	while ((n = read(discovery->events.fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; at < n;) {
			struct inotify_event event;

			memcpy(&event, bytes + at, sizeof(event));
			interesting |= (event.mask & IN_Q_OVERFLOW) != 0 ||
				       is_of_interest(discovery, &event, bytes + at + sizeof(event));
			at += (ssize_t)(sizeof(event) + event.len);
		}
	}
	if (interesting)
		schedule(discovery);
}

/* Watches the directory of a file, if there is one. Returns the watch, or -1. */
static int watch_folder_of(const struct discovery *discovery, const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	char folder[PATH_MAX];

	if (!slash || (size_t)snprintf(folder, sizeof(folder), "%.*s", slash == file ? 1 : (int)(slash - file), file) >=
			  sizeof(folder))
		return -1;
	return inotify_add_watch(discovery->events.fd, folder, FOLDER_EVENTS | IN_CLOSE_WRITE | IN_ONLYDIR);
}

/* Watches the places that exist now; those that are watched already stay so. */
static void watch_places(struct discovery *discovery)
{
	const char *config = discovery->config.config_file;
	int fd = discovery->events.fd;

	if (fd < 0)
		return;
	(void)inotify_add_watch(fd, CAPS_FOLDER, FOLDER_EVENTS | IN_ONLYDIR);
	discovery->output_watch = watch_folder_of(discovery, file_of(&discovery->config));
	/*
	 * A mounted ConfigMap gets a new link in its directory; the target of any other link can
	 * change in its own directory.
	 */
	if (config[0] != '\0') {
		(void)watch_folder_of(discovery, config);
		(void)inotify_add_watch(fd, config, FILE_EVENTS);
	}
}

static int watch_all(struct discovery *discovery, struct graft_error *err)
{
	const struct graft_xid_rules nothing = graft_xid_rules_make("all", "");
	const char *simulated = discovery->sources.variable("SIMULATED_KMSG");

	if (simulated && !graft_kube_is_simulated(&discovery->config.flags))
		simulated = NULL;
	discovery->events = (struct graft_loop_watch){ .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
						       .events = POLLIN,
						       .ready = places_changed,
						       .arg = discovery };
	if (discovery->events.fd < 0)
		graft_warn(discovery->log, "cannot watch files, checking once per --sleep-interval: %s",
			   strerror(errno));
	else if (graft_loop_watch(discovery->loop, &discovery->events, err) < 0)
		return -1;
	watch_places(discovery);
	hardware_begin(&discovery->hardware, discovery->loop, NODES_FOLDER, discovery->log, driver_changed, discovery);
	health_begin(&discovery->health, &(struct health_options){ .loop = discovery->loop,
								   .log = discovery->log,
								   .kernel_log = simulated ? simulated : "/dev/kmsg",
								   .sys_root = "",
								   .changed = driver_changed,
								   .arg = discovery });
	health_configure(&discovery->health, &nothing, NULL);
	/* Lines of the log from before the labels were made are irrelevant. */
	discovery->health.options.loaded = driver_changed;
	return 0;
}

/* --- begin and end --- */

/*
 * The config file is invalid: until it changes, the rest of the configuration determines where it
 * is and how often to check it.
 */
static int wait_for_configuration(struct discovery *discovery, struct graft_error *err)
{
	const char *file = discovery->sources.config_file;
	const struct graft_error why = *err;
	struct discovery_pass pass;
	int rc;

	discovery->sources.config_file = "";
	rc = read_pass_configuration(discovery, NULL, &pass, err);
	discovery->sources.config_file = file;
	if (rc < 0 || pass.config.flags.gfd.oneshot) {
		(void)graft_arena_free(pass.arena);
		*err = why;
		return -1;
	}
	adopt(discovery, &pass);
	graft_warn(discovery->log, "no labels: %s; trying again later", GRAFT_ERROR_TEXT(&why));
	if (watch_all(discovery, err) < 0)
		return -1;
	set_interval(discovery, true);
	graft_error_clear(err);
	return 0;
}

int discovery_begin(struct discovery *discovery, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct discovery_pass pass;
	bool watched;
	int rc;

	discovery->events.fd = -1;
	discovery->output_watch = -1;
	discovery->again = (struct graft_loop_timer){ .due = again_due, .arg = discovery };
	if (read_pass_configuration(discovery, NULL, &pass, err) < 0) {
		(void)graft_arena_free(pass.arena);
		return discovery->waits ? wait_for_configuration(discovery, err) : -1;
	}
	adopt(discovery, &pass);
	/* This comes before anything is read, so that no event is missed while NVML is asked. */
	watched = !discovery->config.flags.gfd.oneshot && discovery->interval_ms >= 0;
	if (watched && watch_all(discovery, err) < 0)
		return -1;
	rc = make_pass(discovery, PASS_REQUEST, &why);
	if (rc < 0 && (discovery->config.flags.gfd.oneshot || discovery->config.flags.fail_on_init_error)) {
		*err = why;
		return -1;
	}
	if (rc < 0)
		graft_warn(discovery->log, "no labels: %s; waiting for the driver", GRAFT_ERROR_TEXT(&why));
	/* Labels that are made once need no events, but wait for the API server's answer. */
	if (discovery->config.flags.gfd.oneshot)
		return discovery->config.flags.use_node_feature_api ? 0 : 1;
	if (rc == 0 && discovery->interval_ms < 0)
		return 0;
	if (!watched && watch_all(discovery, err) < 0)
		return -1;
	watch_places(discovery);
	set_interval(discovery, rc < 0 || discovery->look_again);
	return 0;
}

void discovery_reload(struct discovery *discovery)
{
	label_again(discovery, PASS_REQUEST);
}

void discovery_done(struct discovery *discovery)
{
	if (discovery->arena && !discovery->config.flags.gfd.oneshot && discovery->interval_ms >= 0)
		remove_output(discovery);
	node_feature_end(&discovery->feature);
	graft_loop_clear_timer(&discovery->again);
	hardware_done(&discovery->hardware);
	if (discovery->health.options.loop)
		health_done(&discovery->health);
	graft_loop_close(discovery->loop, &discovery->events);
	discovery->arena = graft_arena_free(discovery->arena);
}
