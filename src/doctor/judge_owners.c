/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_owners: who owns the files through which pods of this node get GPUs: a package, an
 * installer, or neither; and whether two owners conflict (SPEC installer-and-nri 10).
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "doctor/distributions.h"
#include "doctor/judge_state.h"

enum owner { OWNER_PACKAGE, OWNER_INSTALLER, OWNER_OTHER };

static const char *name_installer(struct graft_judge *judge, const struct graft_health_installer *installer)
{
	return graft_judge_text(judge, "process %u%s, which installs to %s/toolkit", installer->pid,
				installer->container ? " of a pod" : "", installer->directory);
}

/* The owner of a program, and its description. */
static enum owner owner_of(struct graft_judge *judge, const char *program, const char **ret_words)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;

	for (size_t i = 0; i < cluster->n_installers; i++) {
		const char *directory = graft_judge_text(judge, "%s/toolkit", cluster->installers[i].directory);

		if (graft_path_is_within(program, directory)) {
			*ret_words = graft_judge_text(judge, "of an installer: %s",
						      name_installer(judge, &cluster->installers[i]));
			return OWNER_INSTALLER;
		}
	}
	for (size_t i = 0; i < cluster->n_toolkits; i++) {
		if (graft_path_is_within(program, cluster->toolkits[i].directory)) {
			*ret_words = "of an installer that is not running";
			return OWNER_INSTALLER;
		}
	}
	if (program[0] != '/' || graft_path_is_within(program, "/usr/bin") || graft_path_is_within(program, "/bin")) {
		*ret_words = "of a package of this host";
		return OWNER_PACKAGE;
	}
	*ret_words = "neither of a package nor of an installer";
	return OWNER_OTHER;
}

static void judge_installers(struct graft_judge *judge)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;

	if (cluster->n_installers < 2)
		return;
	graft_judge_add(judge, GRAFT_CHECK_TOOLKIT_OWNER, GRAFT_LEVEL_BROKEN, "two installers",
			"%s, and %s, change the same files of the engine",
			name_installer(judge, &cluster->installers[0]), name_installer(judge, &cluster->installers[1]))
	    ->remedy =
	    "Keep one: 'kubectl get daemonsets --all-namespaces' lists those of pods, 'systemctl status PID' "
	    "shows what started one of this host.";
}

static void judge_toolkit_directories(struct graft_judge *judge)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;

	for (size_t i = 0; i < cluster->n_toolkits; i++) {
		const struct graft_health_toolkit *toolkit = &cluster->toolkits[i];

		if (toolkit->n_missing > 0)
			graft_judge_add(judge, GRAFT_CHECK_TOOLKIT_OWNER, GRAFT_LEVEL_BROKEN, toolkit->directory,
					"is incomplete: %s is missing", toolkit->missing[0])
			    ->remedy = "Start its installer again: 'kubectl delete pod --namespace gpu-operator "
				       "--selector app=nvidia-container-toolkit-daemonset'.";
	}
}

/* Two owners in one engine: which one a pod gets depends on its RuntimeClass. */
static bool judge_two_owners(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const struct graft_health_runtime *of[2] = { NULL, NULL };
	const char *words;

	for (size_t i = 0; i < engine->n_runtimes; i++) {
		const struct graft_health_runtime *runtime = &engine->runtimes[i];
		enum owner owner = runtime->path ? owner_of(judge, runtime->path, &words) : OWNER_OTHER;

		if (owner != OWNER_OTHER)
			of[owner] = runtime;
	}
	if (!of[OWNER_PACKAGE] || !of[OWNER_INSTALLER])
		return false;
	graft_judge_add(judge, GRAFT_CHECK_TOOLKIT_OWNER, GRAFT_LEVEL_WARNING, engine->name,
			"has the runtime '%s' of a package (%s, in %s) and '%s' of an installer (%s, in %s)",
			of[OWNER_PACKAGE]->name, of[OWNER_PACKAGE]->path, of[OWNER_PACKAGE]->file,
			of[OWNER_INSTALLER]->name, of[OWNER_INSTALLER]->path, of[OWNER_INSTALLER]->file)
	    ->remedy = "Keep one. 'nvidia-ctk runtime configure --undo' with --runtime of that engine removes the "
		       "package's; toolkit.enabled=false of the GPU Operator the installer's.";
	return true;
}

/* Reports the owner of every file that registers a runtime or a hook. */
static void judge_files_of_engine(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const char *words;

	for (size_t i = 0; i < engine->n_runtimes; i++) {
		const struct graft_health_runtime *runtime = &engine->runtimes[i];

		if (!runtime->path || !runtime->file)
			continue;
		(void)owner_of(judge, runtime->path, &words);
		graft_judge_add(judge, GRAFT_CHECK_TOOLKIT_OWNER, GRAFT_LEVEL_OK, runtime->file,
				"gives %s the runtime '%s': %s, %s", engine->name, runtime->name, runtime->path, words);
	}
	for (size_t i = 0; i < engine->n_hooks; i++) {
		const struct graft_health_hook *hook = &engine->hooks[i];

		if (!hook->path)
			continue;
		(void)owner_of(judge, hook->path, &words);
		graft_judge_add(judge, GRAFT_CHECK_TOOLKIT_OWNER, GRAFT_LEVEL_OK, hook->file,
				"gives %s the hook %s, %s", engine->name, hook->path, words);
	}
}

/* This distribution keeps its engine's files elsewhere, and no installer finds them by itself. */
static void judge_distribution(struct graft_judge *judge)
{
	const struct graft_distribution *own = graft_distribution_find(judge->health->cluster.distribution);

	if (own)
		graft_judge_add(judge, GRAFT_CHECK_TOOLKIT_OWNER, GRAFT_LEVEL_OK, own->name,
				"keeps the engine's files in its own places (found by %s): set %s for an installer%s%s",
				own->file, own->settings, own->remark ? ", " : "", own->remark ? own->remark : "");
}

void graft_judge_owners(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	judge_distribution(judge);
	judge_installers(judge);
	judge_toolkit_directories(judge);
	for (size_t i = 0; i < health->n_engines; i++) {
		if (!judge_two_owners(judge, &health->engines[i]))
			judge_files_of_engine(judge, &health->engines[i]);
	}
	for (size_t i = 0; i < health->cdi.n_specs; i++) {
		const struct graft_health_spec *spec = &health->cdi.specs[i];

		if (spec->kind && graft_starts_with(spec->kind, "management."))
			graft_judge_add(judge, GRAFT_CHECK_TOOLKIT_OWNER, GRAFT_LEVEL_OK, spec->file,
					"has the devices of %s, for pods of an operator", spec->kind);
	}
}
