/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipcs: sockets and directories for reaching the driver's daemons (SPEC libnvidia-container 6.8).
 * One that cannot be examined, even for lack of permission, is treated as missing.
 */
#include <string.h>

#include "host/catalog.h"
#include "host/survey.h"

#define DEFAULT_MPS_PIPES "/tmp/nvidia-mps"

/*
 * A directory of the default name that was left behind, or made as a mount point, does not prove
 * that the daemon is running.
 */
static bool is_left_behind(struct graft_survey *survey, const char *path)
{
	const char **names;
	size_t n;

	return graft_survey_list(survey, &survey->root, path, &names, &n) == 0 && n == 0;
}

static void look_for_ipc(struct graft_survey *survey, const struct graft_catalog_ipc *row)
{
	struct graft_inventory *inventory = survey->inventory;
	const char *mps = survey->options->mps_pipe_directory;
	const char *wanted = row->path ? row->path : mps ? mps : DEFAULT_MPS_PIPES;
	const char *path;
	struct graft_ipc *ipc;
	struct stat st;
	int rc = graft_lookup_path(&survey->lookup, wanted, &path, &st);

	if (rc < 0) {
		graft_survey_omit(survey, "missing ipc path", wanted, "%s", strerror(-rc));
		return;
	}
	if (!row->path && !mps && S_ISDIR(st.st_mode) && is_left_behind(survey, path)) {
		graft_survey_omit(survey, "missing ipc path", wanted, "the directory is empty: MPS is not running");
		return;
	}
	ipc = graft_arena_push(survey->arena, &inventory->ipcs, &inventory->n_ipcs, sizeof(*ipc));
	if (!ipc)
		return;
	ipc->path = path;
	ipc->directory = S_ISDIR(st.st_mode);
	ipc->class_ = row->class_;
	ipc->source = row->path ? row->path : mps ? "CUDA_MPS_PIPE_DIRECTORY" : DEFAULT_MPS_PIPES;
	graft_info(survey->log, "listing ipc path %s", path);
}

void graft_survey_ipcs(struct graft_survey *survey)
{
	for (size_t i = 0; i < graft_n_catalog_ipcs; i++) {
		const struct graft_catalog_ipc *row = &graft_catalog_ipcs[i];

		if (!graft_survey_disabled(survey, row->disabled_by) && graft_survey_wants(survey, row->class_))
			look_for_ipc(survey, row);
	}
}
