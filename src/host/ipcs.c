/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipcs: sockets and directories for reaching the driver's daemons (SPEC libnvidia-container 6.8).
 * One that cannot be examined, even for lack of permission, is treated as missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

/*
 * SECURITY: in a directory such as /tmp, which all users share, anyone can make a directory or a
 * link of that name, and exchange it. The kernel's own rule for links there (protected_symlinks)
 * does not reach those that a lookup follows itself. In a user namespace, all unmapped owners look
 * alike; a mount made there gives no more than its user has.
 */
static bool is_of_stranger(const struct stat *directory, const struct stat *object)
{
	if ((directory->st_mode & S_IWOTH) == 0)
		return false;
	if ((directory->st_mode & S_ISVTX) == 0 || (S_ISLNK(object->st_mode) && object->st_nlink != 1))
		return true;
	if (object->st_uid == geteuid() || object->st_uid == 0)
		return false;
	return S_ISLNK(object->st_mode) || object->st_uid != directory->st_uid;
}

/* Returns 0, -EPERM for what belongs to a stranger, or another -errno. */
static int check_owners(struct graft_survey *survey, const char *path)
{
	for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		size_t length = strcspn(slash + 1, "/");
		const char *name = graft_arena_strndup(survey->scratch, slash + 1, length);
		const struct graft_lookup_directory *directory = graft_lookup_directory(
		    &survey->lookup, path, slash == path ? 1 : (size_t)(slash - path));
		struct stat directory_st, st;

		if (!name || !directory)
			return -ENOMEM;
		if (length == 0)
			continue;
		if (directory->fd < 0)
			return directory->fd;
		if (fstat(directory->fd, &directory_st) < 0 ||
		    fstatat(directory->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (is_of_stranger(&directory_st, &st))
			return -EPERM;
	}
	return 0;
}

static void look_for_ipc(struct graft_survey *survey, const struct graft_catalog_ipc *row)
{
	struct graft_inventory *inventory = survey->inventory;
	const char *mps = survey->options->mps_pipe_directory;
	const char *wanted = row->path ? row->path : mps ? mps : DEFAULT_MPS_PIPES;
	const char *path;
	struct graft_ipc *ipc;
	struct stat st;
	int rc = row->path ? 0 : wanted[0] != '/' ? -EINVAL : check_owners(survey, wanted);

	if (rc == 0)
		rc = graft_lookup_path(&survey->lookup, wanted, &path, &st);
	/* A link of root's may lead into such a directory. */
	if (rc == 0 && !row->path)
		rc = check_owners(survey, path);
	if (rc == -EPERM) {
		graft_survey_omit(survey, "missing ipc path", wanted,
				  "another user made it in a directory that all users share");
		return;
	}
	if (rc != 0) {
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
