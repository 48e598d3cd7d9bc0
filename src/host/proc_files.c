/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_files: the files of the driver's procfs that are copied into a container's own view (SPEC
 * libnvidia-container 9.4).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/survey.h"

static int read_proc_file(struct graft_survey *survey, const char *path, struct graft_proc_file *file)
{
	auto_close int fd = graft_root_openat(survey->proc, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t length;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	file->path = path;
	file->source = path;
	file->mode = st.st_mode & 07777;
	return graft_read_fd(fd, GRAFT_SOURCE_FILE_MAX, survey->arena, &file->content, &length);
}

void graft_survey_proc_files(struct graft_survey *survey)
{
	static const char *const paths[] = { GRAFT_PROC_DRIVER "/params", GRAFT_PROC_VERSION,
					     GRAFT_PROC_DRIVER "/registry" };
	struct graft_inventory *inventory = survey->inventory;

	for (size_t i = 0; i < GRAFT_COUNT(paths); i++) {
		struct graft_proc_file file = { 0 }, *slot;
		int rc = read_proc_file(survey, paths[i], &file);

		graft_note_shortage(&survey->shortage, rc);
		if (rc < 0) {
			graft_survey_omit(survey, "missing file", paths[i], "%s", strerror(-rc));
			continue;
		}
		slot = graft_arena_push(survey->arena, &inventory->proc_files, &inventory->n_proc_files, sizeof(*slot));
		if (slot)
			*slot = file;
	}
}
