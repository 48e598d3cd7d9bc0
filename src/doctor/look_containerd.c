/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_containerd: containerd, and the Kubernetes distributions that include one. Only what the
 * daemon reads has an effect: a drop-in that the main file does not import, or a table named for
 * another version, configures nothing, which is the usual cause of "no runtime for nvidia is
 * configured".
 */
#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/look.h"
#include "formats/toml/toml.h"

#define IMPORT_DEPTH_MAX 4
#define FILES_MAX        256u

/*
 * The existence of `config` reveals the engine if its program is not in a usual place, and that of
 * `server` that the node is not an agent, whose processes and units have other names.
 */
static const struct {
	const char *name, *process, *agent, *program, *config, *drop_ins, *server, *server_unit, *agent_unit;
} engines[] = {
	{ .name = "containerd",
	  .process = "containerd",
	  .program = "containerd",
	  .config = "/etc/containerd/config.toml",
	  .drop_ins = "/etc/containerd/conf.d" },
	{ .name = "k3s",
	  .process = "k3s-server",
	  .agent = "k3s-agent",
	  .config = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
	  .server = "/var/lib/rancher/k3s/server",
	  .agent_unit = "k3s-agent" },
	{ .name = "rke2",
	  .process = "rke2",
	  .config = "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
	  .server = "/var/lib/rancher/rke2/server",
	  .server_unit = "rke2-server",
	  .agent_unit = "rke2-agent" },
	{ .name = "microk8s", .process = "kubelite", .config = "/var/snap/microk8s/current/args/containerd.toml" },
};

/* The CRI plugin's table by the version of the file (SPEC ctk-and-cdi 1.1): 1, 2, 3 and later. */
static const char *const tables[] = { "cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime" };

struct reading {
	struct graft_health_look *look;
	struct graft_health_engine *engine;
};

static void read_plugin(struct reading *reading, size_t file, const struct graft_toml *toml, const char *table)
{
	struct graft_health_look *look = reading->look;
	struct graft_health_engine *engine = reading->engine;
	const char *containerd = graft_health_toml_join(look, "plugins", table, ".containerd");
	const char *cdi_path = graft_health_toml_join(look, "plugins", table, ".enable_cdi");
	const char *runtimes, *value, **names = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	bool cdi = false;
	size_t n = 0;

	if (!containerd || !cdi_path)
		return;
	if (graft_toml_has(toml, cdi_path)) {
		if (graft_toml_get_bool(toml, cdi_path, &cdi, &err) < 0)
			graft_health_refuse(look, &engine->files[file], &err);
		engine->has_cdi = true;
		engine->cdi = cdi;
	}
	value = graft_health_toml_string(look, &engine->files[file], toml,
					 graft_health_toml_join(look, containerd, "default_runtime_name", ""));
	if (value)
		engine->default_runtime = graft_arena_strdup(look->arena, value);
	runtimes = graft_health_toml_join(look, containerd, "runtimes", "");
	if (!runtimes || graft_toml_get_names(toml, runtimes, look->scratch, &names, &n, &err) < 0) {
		graft_health_refuse(look, &engine->files[file], &err);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		value = graft_health_toml_string(
		    look, &engine->files[file], toml,
		    graft_health_toml_join(look, runtimes, names[i], ".options.BinaryName"));
		graft_health_add_runtime(look, engine, names[i], value, engine->files[file].path, table);
	}
}

/* Whether the list of disabled plugins includes the CRI plugin, by its short or its full name. */
static bool switches_off_cri(const char *const *plugins, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (graft_is_in(tables, GRAFT_COUNT(tables), plugins[i]))
			return true;
	}
	return false;
}

static void read_containerd_document(struct reading *reading, size_t file, const struct graft_toml *toml)
{
	struct graft_health_engine *engine = reading->engine;
	struct graft_error err = { .status = GRAFT_OK };
	const char **plugins;
	int64_t version = 0;
	size_t n;

	if (graft_toml_get_integer(toml, "version", &version, &err) < 0)
		graft_health_refuse(reading->look, &engine->files[file], &err);
	engine->files[file].version = version > 0 && version < 100 ? (uint32_t)version : 0;
	graft_health_toml_strings(reading->look, &engine->files[file], toml, "disabled_plugins", &plugins, &n);
	engine->no_cri |= switches_off_cri(plugins, n);
	for (size_t i = 0; i < GRAFT_COUNT(tables); i++)
		read_plugin(reading, file, toml, tables[i]);
}

static bool is_read(const struct graft_health_engine *engine, const char *path)
{
	for (size_t i = 0; i < engine->n_files; i++) {
		if (strcmp(engine->files[i].path, path) == 0)
			return true;
	}
	return false;
}

static void read_containerd_file(struct reading *reading, const char *path, unsigned int depth);

/*
 * Reads the files of an import, whose last component may be a pattern. Like containerd, takes it as
 * relative to the importing file.
 */
static void read_import(struct reading *reading, const char *importer, const char *pattern, unsigned int depth)
{
	const char *slash = strrchr(importer, '/'), *directory, *path, **names;
	size_t n;

	if (pattern[0] != '/')
		pattern = graft_arena_printf(reading->look->scratch, "%.*s/%s", (int)(slash - importer), importer,
					     pattern);
	slash = pattern ? strrchr(pattern, '/') : NULL;
	if (!slash)
		return;
	directory = graft_arena_strndup(reading->look->scratch, pattern, (size_t)(slash - pattern));
	if (!directory || graft_health_list(reading->look, directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		path = fnmatch(slash + 1, names[i], 0) == 0
			   ? graft_arena_printf(reading->look->scratch, "%s/%s", directory, names[i])
			   : NULL;
		if (path)
			read_containerd_file(reading, path, depth + 1);
	}
}

static void read_containerd_file(struct reading *reading, const char *path, unsigned int depth)
{
	struct graft_health_engine *engine = reading->engine;
	auto_toml struct graft_toml *toml = NULL;
	struct graft_health_file *row;
	const char **imports;
	size_t file = engine->n_files, n;

	if (depth > IMPORT_DEPTH_MAX || file >= FILES_MAX || is_read(engine, path))
		return;
	toml = graft_health_read_toml(reading->look, engine, path, &row);
	if (!toml)
		return;
	read_containerd_document(reading, file, toml);
	graft_health_toml_strings(reading->look, &engine->files[file], toml, "imports", &imports, &n);
	for (size_t i = 0; i < n; i++)
		read_import(reading, engine->files[file].path, imports[i], depth);
}

/* Finds drop-ins that no file imports, where users look for the runtime in vain. */
static void find_forgotten(struct reading *reading, const char *directory)
{
	struct graft_health_engine *engine = reading->engine;
	struct graft_health_file *file;
	const char **names, *path;
	size_t n;

	if (graft_health_list(reading->look, directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		path = graft_arena_printf(reading->look->scratch, "%s/%s", directory, names[i]);
		if (!path || fnmatch("*.toml", names[i], 0) != 0 || is_read(engine, path))
			continue;
		file = graft_health_add_file(reading->look, engine, path, NULL);
		if (file)
			file->imported = false;
	}
}

static void look_at(struct graft_health_look *look, size_t i)
{
	const struct graft_health_process *process = graft_health_find_process(look, engines[i].process);
	const char *program = graft_health_find_program(look, engines[i].program, GRAFT_USUAL_PATH);
	struct reading reading = { .look = look };

	if (!program && !graft_health_exists(look, engines[i].config))
		return;
	if (!process && engines[i].agent)
		process = graft_health_find_process(look, engines[i].agent);
	reading.engine = graft_health_add_engine(look, GRAFT_ENGINE_CONTAINERD, engines[i].name);
	if (!reading.engine)
		return;
	reading.engine->program = program;
	if (engines[i].server)
		reading.engine->unit = graft_health_exists(look, engines[i].server) ? engines[i].server_unit
										    : engines[i].agent_unit;
	graft_health_look_daemon(look, reading.engine, process);
	if (program)
		graft_health_look_version(look, reading.engine);
	if (!graft_health_wants_config(look, reading.engine))
		return;
	read_containerd_file(&reading, engines[i].config, 0);
	if (engines[i].drop_ins)
		find_forgotten(&reading, engines[i].drop_ins);
}

void graft_health_look_containerd(struct graft_health_look *look)
{
	for (size_t i = 0; i < GRAFT_COUNT(engines); i++)
		look_at(look, i);
}
