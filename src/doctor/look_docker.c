/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_docker: Docker, of root and of users (rootless): daemon.json and the options of a running
 * daemon. `--gpus` needs the hook in the daemon's PATH when the daemon starts; `--runtime` needs an
 * entry in daemon.json.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/look.h"
#include "formats/json/json_document.h"

#define CONFIG      "/etc/docker/daemon.json"
#define SNAP_CONFIG "/var/snap/docker/current/config/daemon.json"
#define SOCKET      "/run/docker.sock"
#define UNIX_SCHEME "unix://"

/* Where a daemon is reached and configured, according to its options or its file. */
struct docker_place {
	const char *config, *socket;
};

static void read_docker_runtimes(struct graft_health_look *look, struct graft_health_engine *engine,
				 const struct graft_health_file *file, const struct graft_json_node *runtimes)
{
	GRAFT_JSON_EACH(node, runtimes) {
		const char *path = graft_json_node_string(graft_json_node_member(node, "path"));

		/* With "runtimeType" for the shim, since Docker 23. */
		if (!path)
			path = graft_json_node_string(graft_json_node_at(node, "options.BinaryName"));
		graft_health_add_runtime(look, engine, graft_json_node_name(node), path, file->path, NULL);
	}
}

static void read_docker_strings(struct graft_health_look *look, const struct graft_json_node *array,
				const char ***items, size_t *n)
{
	GRAFT_JSON_EACH(node, array) {
		const char *string = graft_json_node_string(node);

		if (string)
			(void)graft_arena_push_string(look->arena, items, n, string);
	}
}

/* "unix:///run/docker.sock"; others ("tcp://", "fd://") are not asked, nor relative ones. */
static void note_docker_host(struct graft_health_look *look, const char *value, struct docker_place *place)
{
	if (value && graft_starts_with(value, UNIX_SCHEME "/"))
		place->socket = graft_arena_strdup(look->scratch, value + strlen(UNIX_SCHEME));
}

static void read_docker_document(struct graft_health_look *look, struct graft_health_engine *engine,
				 struct graft_health_file *file, const struct graft_json_node *root,
				 struct docker_place *place)
{
	const struct graft_json_node *runtimes = graft_json_node_member(root, "runtimes");
	const struct graft_json_node *cdi = graft_json_node_at(root, "features.cdi");

	if (graft_json_node_kind(root) != GRAFT_JSON_OBJECT ||
	    (runtimes && graft_json_node_kind(runtimes) != GRAFT_JSON_OBJECT)) {
		file->problem = "it must hold an object, and so must its member 'runtimes'";
		return;
	}
	GRAFT_JSON_EACH(host, graft_json_node_member(root, "hosts"))
		note_docker_host(look, graft_json_node_string(host), place);
	read_docker_runtimes(look, engine, file, runtimes);
	engine->default_runtime = graft_arena_strdup(
	    look->arena, graft_json_node_string(graft_json_node_member(root, "default-runtime")));
	engine->has_cdi = cdi != NULL;
	engine->cdi = graft_json_node_is_true(cdi);
	read_docker_strings(look, graft_json_node_member(root, "cdi-spec-dirs"), &engine->cdi_directories,
			    &engine->n_cdi_directories);
	read_docker_strings(look, graft_json_node_member(root, "node-generic-resources"), &engine->resources,
			    &engine->n_resources);
}

static void read_docker_config(struct graft_health_look *look, struct graft_health_engine *engine,
			       struct docker_place *place)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_health_file *file;
	const char *text;
	size_t length;

	if (graft_health_read_config(look, engine, place->config, &text, &length, &file) < 0)
		return;
	if (graft_json_document_parse(place->config, text, length, &document, &err) < 0)
		graft_health_refuse(look, file, &err);
	else
		read_docker_document(look, engine, file, graft_json_document_root(document), place);
}

/* --- the options of a running daemon, "--name VALUE" or "--name=VALUE" --- */

/*
 * Returns the value if the argument at `at` is this option; *ret_next is the argument after the
 * used ones.
 */
static const char *option_value(const char *at, const char *end, const char *name, const char **ret_next)
{
	size_t n = strlen(name), length = strlen(at);

	*ret_next = at + length + 1;
	if (strncmp(at, name, n) != 0)
		return NULL;
	if (at[n] == '=')
		return at + n + 1;
	if (at[n] != '\0' || *ret_next >= end)
		return NULL;
	at = *ret_next;
	*ret_next = at + strlen(at) + 1;
	return at;
}

/* "nvidia=/usr/bin/nvidia-container-runtime" */
static void add_option_runtime(struct graft_health_look *look, struct graft_health_engine *engine, const char *value)
{
	const char *equals = strchr(value, '=');

	if (equals)
		graft_health_add_runtime(look, engine,
					 graft_arena_strndup(look->scratch, value, (size_t)(equals - value)),
					 equals + 1, "--add-runtime", NULL);
}

/* Reads the options of the daemon, which may set these places. */
static void read_options(struct graft_health_look *look, struct graft_health_engine *engine,
			 const struct graft_health_process *process, struct docker_place *place)
{
	const char *path = process ? graft_arena_printf(look->scratch, "%s/cmdline", process->directory) : NULL;
	const char *words, *next, *value;
	size_t length;

	if (!path || graft_health_read_file(look, path, &words, &length) < 0)
		return;
	for (const char *at = words; at < words + length; at = next) {
		if ((value = option_value(at, words + length, "--config-file", &next)))
			place->config = value;
		else if ((value = option_value(at, words + length, "--host", &next)) ||
			 (value = option_value(at, words + length, "-H", &next)))
			note_docker_host(look, value, place);
		else if ((value = option_value(at, words + length, "--add-runtime", &next)))
			add_option_runtime(look, engine, value);
		else if ((value = option_value(at, words + length, "--default-runtime", &next)))
			engine->default_runtime = graft_arena_strdup(look->arena, value);
	}
}

/* --- daemons --- */

/*
 * Docker's containers are children of a containerd: its own, which has its mounts, or the system's.
 * We do not determine which one it uses, so one in our mount namespace is enough.
 */
static bool is_containerd_elsewhere(struct graft_health_look *look)
{
	bool elsewhere = false;

	for (size_t i = 0; i < look->n_processes; i++) {
		if (look->processes[i].uid != 0 || strcmp(look->processes[i].name, "containerd") != 0)
			continue;
		if (!graft_health_has_other_mounts(look, &look->processes[i]))
			return false;
		elsewhere = true;
	}
	return elsewhere;
}

static void look_at_root_daemon(struct graft_health_look *look)
{
	const struct graft_health_process *process = graft_health_find_process(look, "dockerd");
	const char *program = graft_health_find_program(look, "dockerd", GRAFT_USUAL_PATH);
	struct docker_place place = { .config = CONFIG, .socket = SOCKET };
	bool desktop = graft_health_exists(look, "/opt/docker-desktop");
	struct graft_health_engine *engine;

	if (!program)
		program = graft_health_find_program(look, "/snap/docker/current/bin/dockerd", NULL);
	if (!program && !process && !desktop && !graft_health_exists(look, CONFIG))
		return;
	engine = graft_health_add_engine(look, GRAFT_ENGINE_DOCKER, "docker");
	if (!engine)
		return;
	engine->desktop = desktop;
	engine->program = program;
	graft_health_look_daemon(look, engine, process);
	if (process && !look->versions_only)
		engine->other_mounts |= is_containerd_elsewhere(look);
	if (engine->snap)
		place.config = SNAP_CONFIG;
	else
		graft_health_look_version(look, engine);
	if (!graft_health_wants_config(look, engine))
		return;
	read_options(look, engine, process, &place);
	read_docker_config(look, engine, &place);
	graft_health_ask_docker(look, engine, place.socket);
}

static void look_at_user_daemon(struct graft_health_look *look, const struct graft_health_process *process,
				uint32_t uid, const char *config)
{
	struct docker_place place = { .config = config,
				      .socket = graft_arena_printf(look->scratch, "/run/user/%u/docker.sock", uid) };
	const char *name = graft_arena_printf(look->scratch, "docker (rootless, uid %u)", uid);
	struct graft_health_engine *engine = graft_health_add_engine(look, GRAFT_ENGINE_DOCKER, name);

	if (!engine)
		return;
	engine->rootless = true;
	graft_health_look_daemon(look, engine, process);
	graft_health_look_version(look, engine);
	read_options(look, engine, process, &place);
	if (place.config)
		read_docker_config(look, engine, &place);
	graft_health_ask_docker(look, engine, place.socket);
}

/*
 * Returns the path of a user's configuration file: below $XDG_CONFIG_HOME or ~/.config, where
 * variables are known only for the caller.
 */
static const char *find_user_config(struct graft_health_look *look, uint32_t uid)
{
	const struct graft_health_options *options = look->options;
	const char *name, *home = NULL;

	if (uid == look->health->self.uid && options->config_home)
		return graft_arena_printf(look->scratch, "%s/docker/daemon.json", options->config_home);
	if (uid == look->health->self.uid && options->home)
		home = options->home;
	else
		(void)graft_health_find_user(look, uid, &name, &home);
	return home ? graft_arena_printf(look->scratch, "%s/.config/docker/daemon.json", home) : NULL;
}

void graft_health_look_docker(struct graft_health_look *look)
{
	uint32_t self = look->health->self.uid;
	bool own_daemon = false;
	const char *config;

	look_at_root_daemon(look);
	if (look->versions_only)
		return;
	for (size_t i = 0; i < look->n_processes; i++) {
		const struct graft_health_process *process = &look->processes[i];

		if (process->uid == 0 || strcmp(process->name, "dockerd") != 0)
			continue;
		own_daemon |= process->uid == self;
		look_at_user_daemon(look, process, process->uid, find_user_config(look, process->uid));
	}
	if (own_daemon || self == 0)
		return;
	config = find_user_config(look, self);
	if (config && graft_health_exists(look, config))
		look_at_user_daemon(look, NULL, self, config);
}
