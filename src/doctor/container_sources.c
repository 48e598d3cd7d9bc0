/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_sources: reads the places where engines and low-level runtimes keep their containers.
 * Finds unusual state directories from the command lines of their processes.
 */
#include "doctor/container_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/path.h"
#include "base/strings.h"
#include "doctor/engine_processes.h"
#include "formats/json/json_document.h"
#include "formats/procfs.h"

#define NAMES_MAX      65536u
#define CONTAINERS_MAX 4096u
#define TEXT_MAX       ((size_t)16 << 20) /* containers.json of a host with many containers */
#define SMALL_MAX      ((size_t)64 << 10)
#define TEXTS_MAX      ((size_t)64 << 20) /* all of them together */

/* ---- reading ---- */

static int note_denied(struct graft_finder *finder, int rc)
{
	finder->denied |= rc == -EACCES || rc == -EPERM;
	return rc;
}

static const char *read_text(struct graft_finder *finder, const char *path, size_t max, size_t *ret_length)
{
	const char *text = NULL;
	size_t length = 0, left = TEXTS_MAX - finder->n_read;

	/* SECURITY: users may have any number of these files. */
	max = max < left ? max : left;
	if (!path || max == 0 ||
	    note_denied(finder, graft_root_read_foreign(finder->host, path, max, finder->arena, &text, &length)) < 0)
		return NULL;
	finder->n_read += length;
	if (ret_length)
		*ret_length = length;
	return text;
}

static struct graft_json_document *read_json(struct graft_finder *finder, const char *path)
{
	struct graft_json_document *document = NULL;
	size_t length;
	const char *text = read_text(finder, path, TEXT_MAX, &length);

	return text && graft_json_document_parse_first(path, text, length, &document, NULL) == 0 ? document : NULL;
}

/* Returns NULL for a missing document; functions that read documents accept that. */
static struct graft_json_node *root_of(const struct graft_json_document *document)
{
	return document ? graft_json_document_root(document) : NULL;
}

static const char *join(struct graft_finder *finder, const char *directory, const char *name)
{
	return directory ? graft_arena_join(finder->arena, directory, strlen(directory), name) : NULL;
}

/*
 * Calls `visit` with the path and the name of each entry of a directory; NULL: no memory for its
 * path.
 */
static void for_each(struct graft_finder *finder, const char *directory,
		     void (*visit)(struct graft_finder *finder, const char *path, const char *name))
{
	const char **names, *path;
	size_t n = 0;

	if (directory)
		(void)note_denied(finder,
				  graft_root_list(finder->host, directory, NAMES_MAX, finder->arena, &names, &n, NULL));
	for (size_t i = 0; i < n; i++) {
		path = join(finder, directory, names[i]);
		if (path)
			visit(finder, path, names[i]);
	}
}

static const char *copy_string(struct graft_finder *finder, const struct graft_json_node *node)
{
	const char *string = graft_json_node_string(node);

	return string && string[0] != '\0' ? graft_arena_strdup(finder->arena, string) : NULL;
}

/* ---- what is known of one container ---- */

/* Returns the container with that ID, which is added if necessary; NULL if that fails. */
static struct graft_found_container *know(struct graft_finder *finder, const char *id, enum graft_keeper keeper)
{
	struct graft_found_container *container;

	for (size_t i = 0; i < finder->n_containers; i++) {
		container = &finder->containers[i];
		if (strcmp(container->id, id) != 0)
			continue;
		if (keeper > container->keeper)
			container->keeper = keeper;
		return container;
	}
	if (finder->n_containers >= CONTAINERS_MAX || !graft_path_is_component(id))
		return NULL;
	container = graft_arena_push(finder->arena, &finder->containers, &finder->n_containers, sizeof(*container));
	if (!container)
		return NULL;
	container->id = graft_arena_strdup(finder->arena, id);
	container->keeper = keeper;
	if (!container->id) {
		finder->n_containers--;
		return NULL;
	}
	return container;
}

static void set_string(const char **ret_member, const char *value)
{
	if (!*ret_member && value)
		*ret_member = value;
}

/* A PID from a file may belong to a process that has ended. */
static void set_pid(struct graft_finder *finder, struct graft_found_container *container, int64_t pid)
{
	const char *directory = pid > 0 ? graft_arena_printf(finder->arena, "/proc/%lld", (long long)pid) : NULL;

	if (container->pid == 0 && directory && graft_root_has(finder->host, directory, O_DIRECTORY))
		container->pid = pid;
}

static void set_pid_of_file(struct graft_finder *finder, struct graft_found_container *container, const char *path)
{
	const char *text = read_text(finder, path, SMALL_MAX, NULL);

	if (text)
		set_pid(finder, container, strtoll(text, NULL, 10));
}

/* ---- runc and crun ---- */

static void read_runc_state(struct graft_finder *finder, const char *directory, const char *id)
{
	auto_json_document struct graft_json_document *document = read_json(finder,
									    join(finder, directory, "state.json"));
	const struct graft_json_node *root = root_of(document);
	struct graft_found_container *container = document ? know(finder, id, GRAFT_KEEPER_RUNC) : NULL;
	const char *label;
	int64_t pid = 0;

	if (!container)
		return;
	(void)graft_json_node_i64(graft_json_node_member(root, "init_process_pid"), &pid);
	set_pid(finder, container, pid);
	GRAFT_JSON_EACH(node, graft_json_node_at(root, "config.labels")) {
		label = graft_json_node_string(node);
		if (label && graft_starts_with(label, "bundle="))
			set_string(&container->bundle, graft_arena_strdup(finder->arena, label + strlen("bundle=")));
	}
}

static void read_crun_status(struct graft_finder *finder, const char *directory, const char *id)
{
	auto_json_document struct graft_json_document *document = read_json(finder, join(finder, directory, "status"));
	const struct graft_json_node *root = root_of(document);
	struct graft_found_container *container = document ? know(finder, id, GRAFT_KEEPER_CRUN) : NULL;
	int64_t pid = 0;

	if (!container)
		return;
	(void)graft_json_node_i64(graft_json_node_member(root, "pid"), &pid);
	set_pid(finder, container, pid);
	set_string(&container->bundle, copy_string(finder, graft_json_node_member(root, "bundle")));
}

static void read_state(struct graft_finder *finder, const char *directory, const char *id)
{
	read_runc_state(finder, directory, id);
	read_crun_status(finder, directory, id);
}

/* The state directory of a low-level runtime has one directory for each container. */
static void read_runtime_root(struct graft_finder *finder, const char *root, const char *name)
{
	(void)name;
	for_each(finder, root, read_state);
}

static void read_docker_runtime(struct graft_finder *finder, const char *directory, const char *name)
{
	if (graft_starts_with(name, "runtime-"))
		for_each(finder, directory, read_runtime_root);
}

static void read_user_runtimes(struct graft_finder *finder, const char *directory, const char *name)
{
	(void)name;
	for_each(finder, join(finder, directory, "runc"), read_state);
	for_each(finder, join(finder, directory, "crun"), read_state);
}

static void read_low_level(struct graft_finder *finder)
{
	for_each(finder, "/run/runc", read_state);
	for_each(finder, "/run/crun", read_state);
	/* These have a state directory for each namespace, or for each of Docker's. */
	for_each(finder, "/run/containerd/runc", read_runtime_root);
	for_each(finder, "/run/docker", read_docker_runtime);
	for_each(finder, "/run/user", read_user_runtimes);
}

/* ---- containerd ---- */

#define CRI "io.kubernetes.cri."

/* The names that containerd's CRI, and nerdctl, write into config.json. */
static void read_bundle_names(struct graft_finder *finder, struct graft_found_container *container)
{
	auto_json_document struct graft_json_document *document = NULL;
	const char *name, *type = NULL;

	document = read_json(finder, join(finder, container->bundle, "config.json"));
	GRAFT_JSON_EACH(node, graft_json_node_member(root_of(document), "annotations")) {
		name = graft_json_node_name(node);
		if (!name)
			continue;
		if (strcmp(name, CRI "container-name") == 0 || strcmp(name, "nerdctl/name") == 0)
			set_string(&container->name, copy_string(finder, node));
		if (strcmp(name, CRI "sandbox-name") == 0)
			set_string(&container->pod, copy_string(finder, node));
		if (strcmp(name, CRI "container-type") == 0) {
			type = graft_json_node_string(node);
			container->keeper = GRAFT_KEEPER_KUBERNETES;
		}
	}
	/* A pod's name means its containers, not the process that holds its namespaces. */
	if (type && strcmp(type, "sandbox") == 0)
		container->pod = NULL;
}

static void read_one_bundle(struct graft_finder *finder, const char *bundle, const char *id)
{
	const char *namespace = graft_path_directory(bundle, finder->arena), *text;
	bool docker = namespace && strcmp(graft_path_name(namespace), "moby") == 0;
	struct graft_found_container *container = NULL;

	if (graft_root_has(finder->host, join(finder, bundle, "config.json"), 0))
		container = know(finder, id, docker ? GRAFT_KEEPER_DOCKER : GRAFT_KEEPER_CONTAINERD);
	if (!container)
		return;
	set_string(&container->bundle, bundle);
	text = read_text(finder, join(finder, bundle, "runtime"), SMALL_MAX, NULL);
	if (text && text[0] == '/')
		set_string(&container->runtime, graft_arena_strndup(finder->arena, text, strcspn(text, "\n")));
	set_pid_of_file(finder, container, join(finder, bundle, "init.pid"));
	if (!docker)
		read_bundle_names(finder, container);
}

/* The directory in which a namespace of containerd, or Docker, has its bundles. */
static void read_bundles(struct graft_finder *finder, const char *directory, const char *name)
{
	(void)name;
	for_each(finder, directory, read_one_bundle);
}

static void read_containerd(struct graft_finder *finder)
{
	static const char *const states[] = { "/run/containerd", "/run/k3s/containerd",
					      "/var/snap/microk8s/common/run/containerd",
					      "/run/docker/containerd/daemon" };

	for (size_t i = 0; i < GRAFT_COUNT(states); i++)
		for_each(finder, join(finder, states[i], "io.containerd.runtime.v2.task"), read_bundles);
}

/* ---- Docker ---- */

static void read_docker_container(struct graft_finder *finder, const char *directory, const char *id)
{
	auto_json_document struct graft_json_document *document = NULL, *host = NULL;
	const struct graft_json_node *root;
	struct graft_found_container *container;
	int64_t pid = 0;
	const char *name;

	document = read_json(finder, join(finder, directory, "config.v2.json"));
	container = document ? know(finder, id, GRAFT_KEEPER_DOCKER) : NULL;
	if (!container)
		return;
	host = read_json(finder, join(finder, directory, "hostconfig.json"));
	root = root_of(document);
	name = copy_string(finder, graft_json_node_member(root, "Name"));
	container->settings = directory;
	set_string(&container->name, name && name[0] == '/' ? name + 1 : name);
	/* Docker's own name for the runtime is more informative than the path of a program. */
	name = copy_string(finder, graft_json_node_member(root_of(host), "Runtime"));
	if (name)
		container->runtime = name;
	(void)graft_json_node_i64(graft_json_node_at(root, "State.Pid"), &pid);
	set_pid(finder, container, pid);
}

static void read_docker(struct graft_finder *finder, const char *data_root)
{
	for_each(finder, join(finder, data_root, "containers"), read_docker_container);
}

/* ---- Podman and CRI-O ---- */

static void read_storage_list(struct graft_finder *finder, const char *directory)
{
	auto_json_document struct graft_json_document *document = NULL;

	document = read_json(finder, join(finder, directory, "containers.json"));
	GRAFT_JSON_EACH(node, root_of(document)) {
		const char *id = graft_json_node_string(graft_json_node_member(node, "id")), *path;
		const char *metadata = graft_json_node_string(graft_json_node_member(node, "metadata"));
		struct graft_found_container *container;

		if (!id)
			continue;
		container = know(
		    finder, id, metadata && strstr(metadata, "\"pod-name\"") ? GRAFT_KEEPER_CRIO : GRAFT_KEEPER_PODMAN);
		if (!container)
			continue;
		set_string(&container->name,
			   copy_string(finder, graft_json_node_first(graft_json_node_member(node, "names"))));
		path = graft_arena_printf(finder->arena, "%s/%s/userdata", directory, id);
		if (path && graft_root_has(finder->host, join(finder, path, "config.json"), 0))
			set_string(&container->bundle, path);
		set_pid_of_file(finder, container, path ? join(finder, path, "pidfile") : NULL);
	}
}

/* A directory of containers/storage has one of each driver: overlay-containers, vfs-containers. */
static void read_storage_driver(struct graft_finder *finder, const char *directory, const char *name)
{
	if (graft_ends_with(name, "-containers"))
		read_storage_list(finder, directory);
}

/* ---- processes ---- */

/* Its working directory is the bundle of its first container; the others are next to it. */
static void read_shim(struct graft_finder *finder, const struct graft_engine_process *process)
{
	const char *bundle = graft_engine_process_directory(finder->host, process, finder->arena, &finder->denied);
	const char *directory = bundle ? graft_path_directory(bundle, finder->arena) : NULL;

	if (directory && directory[1] != '\0')
		for_each(finder, directory, read_one_bundle);
}

static void read_conmon(struct graft_finder *finder, const struct graft_engine_process *process)
{
	const struct graft_command_line *line = &process->line;
	const char *id = graft_procfs_option(line, "-c"), *bundle = graft_procfs_option(line, "-b"),
		   *name = graft_procfs_option(line, "-n"), *pid_file = graft_procfs_option(line, "-p"),
		   *runtime = graft_procfs_option(line, "-r"), *end = line->text + line->length;
	struct graft_found_container *container;
	bool podman = false;

	for (const char *at = line->text; at < end; at += strlen(at) + 1)
		podman |= graft_ends_with(at, "podman");
	container = id ? know(finder, id, podman ? GRAFT_KEEPER_PODMAN : GRAFT_KEEPER_CRIO) : NULL;
	if (!container)
		return;
	set_string(&container->name, name ? graft_arena_strdup(finder->arena, name) : NULL);
	set_string(&container->bundle, bundle ? graft_arena_strdup(finder->arena, bundle) : NULL);
	set_string(&container->runtime, runtime ? graft_arena_strdup(finder->arena, runtime) : NULL);
	set_pid_of_file(finder, container, pid_file);
}

static void read_dockerd(struct graft_finder *finder, const struct graft_engine_process *process)
{
	auto_json_document struct graft_json_document *document = NULL;
	const char *file = graft_procfs_option(&process->line, "--config-file");
	const char *root = graft_procfs_option(&process->line, "--data-root");

	if (!root) {
		document = read_json(finder, file ? file : "/etc/docker/daemon.json");
		root = copy_string(finder, graft_json_node_member(root_of(document), "data-root"));
	}
	if (root && root[0] == '/')
		read_docker(finder, graft_arena_strdup(finder->arena, root));
}

static void read_engine_processes(struct graft_finder *finder)
{
	struct graft_engine_process *processes;
	size_t n;

	graft_engine_processes(finder->host, finder->arena, &processes, &n, &finder->denied);
	for (size_t i = 0; i < n; i++) {
		switch (processes[i].program) {
		case GRAFT_ENGINE_SHIM:
			read_shim(finder, &processes[i]);
			break;
		case GRAFT_ENGINE_CONMON:
			read_conmon(finder, &processes[i]);
			break;
		case GRAFT_ENGINE_DOCKERD:
			read_dockerd(finder, &processes[i]);
			break;
		}
	}
}

/* ---- users ---- */

/* Engines without root keep their containers in their user's home directory. */
static void read_homes(struct graft_finder *finder)
{
	const char *text = read_text(finder, "/etc/passwd", TEXT_MAX, NULL), *field;

	for (const char *line = text; line && *line != '\0'; line = strchr(line, '\n'), line += line ? 1 : 0) {
		const char *home, *end = line + strcspn(line, "\n");
		int n = 0;

		field = line;
		while (n < 5 && (field = memchr(field, ':', (size_t)(end - field))) != NULL) {
			field++;
			n++;
		}
		if (n < 5 || field[0] != '/' || field[1] == ':')
			continue;
		home = graft_arena_strndup(finder->arena, field, strcspn(field, ":\n"));
		if (!home || strcmp(home, "/nonexistent") == 0)
			continue;
		read_docker(finder, join(finder, home, ".local/share/docker"));
		for_each(finder, join(finder, home, ".local/share/containers/storage"), read_storage_driver);
	}
}

void graft_finder_collect(struct graft_finder *finder)
{
	read_engine_processes(finder);
	read_docker(finder, "/var/lib/docker");
	/* The state of a running daemon is newer than its files. */
	for_each(finder, "/run/containers/storage", read_storage_driver);
	for_each(finder, "/var/lib/containers/storage", read_storage_driver);
	read_containerd(finder);
	read_low_level(finder);
	read_homes(finder);
}
