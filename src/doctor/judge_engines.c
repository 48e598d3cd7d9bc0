/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_engines: judges containerd and its variants, CRI-O and Podman, and the files of all
 * engines.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "doctor/judge_state.h"

#define GPU_KIND  "nvidia.com/gpu"
#define NO_HANDLE "no runtime for \"nvidia\" is configured"

/* --- place --- */

bool graft_judge_is_outside(const struct graft_judge *judge, const struct graft_health_engine *engine)
{
	return judge->health->inventory.simulated && engine->other_mounts;
}

static void judge_place(struct graft_judge *judge)
{
	for (size_t i = 0; i < judge->health->n_engines; i++) {
		const struct graft_health_engine *engine = &judge->health->engines[i];

		if (!graft_judge_is_outside(judge, engine))
			continue;
		graft_judge_add(
		    judge, GRAFT_CHECK_ENGINES, GRAFT_LEVEL_BROKEN, engine->name,
		    "it starts containers outside this simulated host, where this driver does not exist (load "
		    "library failed: libnvidia-ml.so.1)")
		    ->remedy = "Stop it, and start it with 'graft-sim run' together with this command: "
			       "docs/simulated-driver.md, \"Engines\".";
	}
}

/* --- files --- */

static bool is_microk8s(const struct graft_health_engine *engine)
{
	return strcmp(engine->name, "microk8s") == 0;
}

const char *graft_judge_systemctl(struct graft_judge *judge, const struct graft_health_engine *engine, const char *verb)
{
	const char *unit = engine->unit;

	/* The name may be "docker (rootless, uid 1000)". */
	if (!unit)
		unit = engine->kind == GRAFT_ENGINE_CRIO ? "crio" : engine->rootless ? "docker" : engine->name;
	return graft_judge_text(judge, "systemctl %s%s %s", engine->rootless ? "--user " : "", verb, unit);
}

static const char *engine_restart_command(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	return is_microk8s(engine) ? "snap restart microk8s" : graft_judge_systemctl(judge, engine, "restart");
}

bool graft_judge_cannot_start(const struct graft_health_engine *engine)
{
	/* Podman does not run as a daemon; it reads its files each time. */
	bool reads = !engine->running || engine->kind == GRAFT_ENGINE_PODMAN;

	for (size_t i = 0; i < engine->n_files && reads; i++) {
		const struct graft_health_file *file = &engine->files[i];

		/* What this user cannot read may still be correct. */
		if (file->problem && file->imported && !strstr(file->problem, strerror(EACCES)))
			return true;
	}
	return false;
}

/* Returns a clause about the time until a file is corrected, and what to do then. */
static const char *after_correction(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const char *restart = engine_restart_command(judge, engine);

	if (engine->kind == GRAFT_ENGINE_PODMAN)
		return "until then podman does not work";
	if (engine->running)
		return "until then nothing in it has an effect";
	/* systemd gives a unit up that has failed a few times. */
	if (!is_microk8s(engine))
		restart = graft_judge_text(judge, "%s; %s", graft_judge_systemctl(judge, engine, "reset-failed"),
					   restart);
	return graft_judge_text(judge, "then run '%s'. Until then it does not start", restart);
}

static void judge_files(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const char *names = "";

	for (size_t i = 0; i < health->n_engines; i++) {
		const struct graft_health_engine *engine = &health->engines[i];

		for (size_t k = 0; k < engine->n_files; k++) {
			if (engine->files[k].problem && engine->files[k].imported)
				graft_judge_add(judge, GRAFT_CHECK_ENGINES, GRAFT_LEVEL_BROKEN, engine->files[k].path,
						"%s cannot read it: %s", engine->name, engine->files[k].problem)
				    ->remedy = graft_judge_file_remedy(judge, engine->files[k].problem,
								       after_correction(judge, engine));
		}
		names = graft_judge_text(judge, "%s%s%s", names, i > 0 ? ", " : "", engine->name);
	}
	if (health->n_engines == 0)
		graft_judge_add(judge, GRAFT_CHECK_ENGINES, GRAFT_LEVEL_WARNING, "container engines",
				"none was found: neither Docker nor containerd, CRI-O or Podman")
		    ->remedy = "Install one.";
	else
		graft_judge_add(judge, GRAFT_CHECK_ENGINES, GRAFT_LEVEL_OK, names, "found");
}

/* --- containerd --- */

/* Returns the name of the CRI plugin's table in a file of this version (SPEC ctk-and-cdi 1.1). */
static const char *table_of(uint32_t version)
{
	if (version <= 1)
		return "cri";
	return version == 2 ? "io.containerd.grpc.v1.cri" : "io.containerd.cri.v1.runtime";
}

static const struct graft_health_file *find_engine_file(const struct graft_health_engine *engine, const char *path)
{
	for (size_t i = 0; i < engine->n_files; i++) {
		if (path && strcmp(engine->files[i].path, path) == 0)
			return &engine->files[i];
	}
	return NULL;
}

const char *graft_judge_configure_command(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const char *runtime = engine->kind == GRAFT_ENGINE_CRIO ? "crio" : "containerd";

	/* K3s and RKE2 rewrite the file at each start, according to what is installed. */
	if (strcmp(engine->name, "k3s") == 0 || strcmp(engine->name, "rke2") == 0)
		return graft_judge_text(judge, "%s", engine_restart_command(judge, engine));
	return graft_judge_text(judge, "nvidia-ctk runtime configure --runtime=%s%s && %s", runtime,
				strcmp(engine->name, "microk8s") == 0
				    ? " --config=/var/snap/microk8s/current/args/containerd-template.toml"
				    : "",
				engine_restart_command(judge, engine));
}

/* Reports a drop-in that is not read. Returns true if all are. */
static bool judge_forgotten(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const char *main_file = engine->n_files > 0 && engine->files[0].imported ? engine->files[0].path
										 : "/etc/containerd/config.toml";

	for (size_t i = 0; i < engine->n_files; i++) {
		if (engine->files[i].imported || !strstr(engine->files[i].path, "nvidia"))
			continue;
		graft_judge_add(judge, GRAFT_CHECK_CONTAINERD_RUNTIME, GRAFT_LEVEL_BROKEN, engine->name,
				"%s is not read: %s does not import it (" NO_HANDLE ")", engine->files[i].path,
				main_file)
		    ->remedy = graft_judge_text(judge, "Run '%s'.", graft_judge_configure_command(judge, engine));
		return false;
	}
	return true;
}

/*
 * The daemon exits if a drop-in has a newer version than the main file; SPEC ctk-and-cdi 1.1: it
 * has to follow the main file.
 */
static bool judge_config_versions(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	for (size_t i = 1; i < engine->n_files; i++) {
		const struct graft_health_file *root = &engine->files[0], *file = &engine->files[i];

		if (!root->imported || !file->imported || file->version == 0 || file->version == root->version)
			continue;
		graft_judge_add(judge, GRAFT_CHECK_CONTAINERD_RUNTIME,
				file->version > root->version ? GRAFT_LEVEL_BROKEN : GRAFT_LEVEL_WARNING, engine->name,
				"%s has version %u, and %s has version %u: %s", file->path, file->version, root->path,
				root->version > 0 ? root->version : 1,
				file->version > root->version ? "the daemon does not start with both"
							      : "its tables have other names")
		    ->remedy = graft_judge_text(judge, "Run 'rm %s', then '%s'.", file->path,
						graft_judge_configure_command(judge, engine));
		return false;
	}
	return true;
}

static bool judge_runtimes(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	for (size_t i = 0; i < engine->n_runtimes; i++) {
		const struct graft_health_runtime *runtime = &engine->runtimes[i];
		const struct graft_health_file *file = find_engine_file(engine, runtime->file);

		if (file && runtime->table && strcmp(table_of(file->version), runtime->table) != 0) {
			graft_judge_add(
			    judge, GRAFT_CHECK_CONTAINERD_RUNTIME, GRAFT_LEVEL_BROKEN, engine->name,
			    "in %s the runtime %s is below plugins.\"%s\", which a file of version %u does not "
			    "have (" NO_HANDLE ")",
			    file->path, runtime->name, runtime->table, file->version > 0 ? file->version : 1)
			    ->remedy = graft_judge_text(judge, "Move it below plugins.\"%s\", or run '%s'.",
							table_of(file->version),
							graft_judge_configure_command(judge, engine));
			return false;
		}
		if (!runtime->found) {
			graft_judge_add(judge, GRAFT_CHECK_CONTAINERD_RUNTIME, GRAFT_LEVEL_BROKEN, engine->name,
					"the program of the runtime %s does not exist: %s", runtime->name,
					runtime->path ? runtime->path : "BinaryName is not set")
			    ->remedy = graft_judge_text(judge,
							"Install the package nvidia-container-toolkit, or run '%s'.",
							graft_judge_configure_command(judge, engine));
			return false;
		}
	}
	return true;
}

/* These daemons read their files only at their start. */
static bool judge_age(struct graft_judge *judge, const struct graft_health_engine *engine, enum graft_check check)
{
	for (size_t i = 0; i < engine->n_files; i++) {
		const struct graft_health_file *file = &engine->files[i];

		if (!engine->running || engine->started == 0 || !file->imported || file->changed <= engine->started)
			continue;
		graft_judge_add(judge, check, GRAFT_LEVEL_WARNING, engine->name,
				"%s was changed after the daemon started, which has not read it since (" NO_HANDLE ")",
				file->path)
		    ->remedy = graft_judge_text(judge, "Run '%s'.", engine_restart_command(judge, engine));
		return false;
	}
	return true;
}

static void judge_absent_engine_runtime(struct graft_judge *judge, const struct graft_health_engine *engine,
					enum graft_check check)
{
	if (!judge->health->kubernetes && strcmp(engine->name, "containerd") == 0)
		graft_judge_add(judge, check, GRAFT_LEVEL_OK, engine->name,
				"has no runtime nvidia, which only Kubernetes needs");
	else if (graft_judge_cdi_of(judge, engine).state >= GRAFT_CDI_PERHAPS)
		graft_judge_add(judge, check, GRAFT_LEVEL_OK, engine->name,
				"has no runtime nvidia; containers get GPUs through CDI");
	else
		graft_judge_add(judge, check, GRAFT_LEVEL_BROKEN, engine->name, NO_HANDLE)->remedy = graft_judge_text(
		    judge, "Run '%s'.", graft_judge_configure_command(judge, engine));
}

static void judge_containerd(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	enum graft_check check = GRAFT_CHECK_CONTAINERD_RUNTIME;

	if (engine->no_cri && judge->health->kubernetes) {
		graft_judge_add(judge, check, GRAFT_LEVEL_BROKEN, engine->name,
				"disabled_plugins disables the CRI plugin, which Kubernetes needs")
		    ->remedy = graft_judge_text(judge, "Remove \"cri\" from disabled_plugins in %s, then '%s'.",
						engine->n_files > 0 ? engine->files[0].path : "config.toml",
						engine_restart_command(judge, engine));
		return;
	}
	if (!judge_forgotten(judge, engine) || !judge_config_versions(judge, engine) || !judge_runtimes(judge, engine))
		return;
	if (engine->n_runtimes == 0) {
		judge_absent_engine_runtime(judge, engine, check);
		return;
	}
	if (judge_age(judge, engine, check))
		graft_judge_add(judge, check, GRAFT_LEVEL_OK, engine->name, "the runtime %s is %s",
				engine->runtimes[0].name, engine->runtimes[0].path);
}

/* --- hooks and CDI: CRI-O and Podman --- */

/*
 * Returns true unless the program of a hook is missing, in which case no container that the hook
 * applies to can start.
 */
static bool judge_engine_hooks(struct graft_judge *judge, const struct graft_health_engine *engine,
			       enum graft_check check)
{
	for (size_t i = 0; i < engine->n_hooks; i++) {
		const struct graft_health_hook *hook = &engine->hooks[i];

		if (hook->found)
			continue;
		graft_judge_add(judge, check, GRAFT_LEVEL_BROKEN, engine->name,
				"the program of the hook %s does not exist: %s; containers that need the hook do not "
				"start",
				hook->file, hook->path)
		    ->remedy = graft_judge_text(judge,
						"Run 'rm %s', and use CDI: 'nvidia-ctk cdi generate "
						"--output=/etc/cdi/nvidia.yaml'.",
						hook->file);
		return false;
	}
	return true;
}

static void judge_crio(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	enum graft_check check = GRAFT_CHECK_CRIO_RUNTIME;

	if (!judge_engine_hooks(judge, engine, check))
		return;
	for (size_t i = 0; i < engine->n_runtimes; i++) {
		if (engine->runtimes[i].found)
			continue;
		graft_judge_add(judge, check, GRAFT_LEVEL_BROKEN, engine->name,
				"the program of the runtime %s does not exist: %s", engine->runtimes[i].name,
				engine->runtimes[i].path ? engine->runtimes[i].path : "runtime_path is not set")
		    ->remedy = graft_judge_text(judge, "Run '%s'.", graft_judge_configure_command(judge, engine));
		return;
	}
	if (engine->n_runtimes > 0) {
		if (judge_age(judge, engine, check))
			graft_judge_add(judge, check, GRAFT_LEVEL_OK, engine->name, "the runtime %s is %s",
					engine->runtimes[0].name, engine->runtimes[0].path);
	} else if (engine->n_hooks > 0) {
		graft_judge_add(judge, check, GRAFT_LEVEL_OK, engine->name, "runs the hook %s", engine->hooks[0].path);
	} else {
		judge_absent_engine_runtime(judge, engine, check);
	}
}

static void judge_podman(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	enum graft_check check = GRAFT_CHECK_PODMAN;
	struct graft_judge_cdi cdi = graft_judge_cdi_of(judge, engine);

	if (!judge_engine_hooks(judge, engine, check))
		return;
	if (cdi.state >= GRAFT_CDI_PERHAPS)
		graft_judge_add(judge, check, cdi.state == GRAFT_CDI_PERHAPS ? GRAFT_LEVEL_UNKNOWN : GRAFT_LEVEL_OK,
				engine->name, "'podman run --device " GPU_KIND "=all' has its spec%s",
				cdi.state == GRAFT_CDI_PERHAPS
				    ? graft_judge_text(judge,
						       ", if this version of Podman, which is not known, reads CDI %s",
						       cdi.spec->version)
				    : "");
	else if (engine->n_hooks > 0)
		graft_judge_add(judge, check, GRAFT_LEVEL_OK, engine->name, "runs the hook %s", engine->hooks[0].path);
	else if (engine->n_runtimes > 0)
		graft_judge_add(judge, check, GRAFT_LEVEL_OK, engine->name, "has the runtime %s: %s",
				engine->runtimes[0].name, engine->runtimes[0].path);
	else if (cdi.state == GRAFT_CDI_OFF)
		graft_judge_add(judge, check, GRAFT_LEVEL_WARNING, engine->name,
				"%s does not read CDI specs, which needs 4.1, and has no hook for GPUs",
				graft_judge_version(judge, engine))
		    ->remedy = "Run 'nvidia-ctk runtime configure --runtime=podman', then 'podman run "
			       "--runtime=nvidia'.";
	else if (cdi.state == GRAFT_CDI_NO_SPEC)
		graft_judge_add(judge, check, GRAFT_LEVEL_WARNING, engine->name,
				"there is neither a CDI spec nor a hook for GPUs (unresolvable CDI devices " GPU_KIND
				"=all)")
		    ->remedy = graft_judge_text(
		    judge, "%s 'nvidia-ctk cdi generate --output=%s/nvidia.yaml'.",
		    graft_judge_has_kernel_driver(judge) ? "Run" : "When the driver is loaded (see kernel-module), run",
		    cdi.directory ? cdi.directory : "/etc/cdi");
}

void graft_judge_engines(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	judge_files(judge);
	judge_place(judge);
	for (size_t i = 0; i < health->n_engines; i++) {
		const struct graft_health_engine *engine = &health->engines[i];

		switch (engine->kind) {
		case GRAFT_ENGINE_DOCKER:
			break;
		case GRAFT_ENGINE_CONTAINERD:
			judge_containerd(judge, engine);
			break;
		case GRAFT_ENGINE_CRIO:
			judge_crio(judge, engine);
			break;
		case GRAFT_ENGINE_PODMAN:
			judge_podman(judge, engine);
			break;
		}
	}
}
