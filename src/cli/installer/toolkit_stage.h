/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolkit_stage: a new toolkit next to the existing one, the exchange of the two, and the removal
 * of the old one.
 */
#ifndef GRAFT_CLI_INSTALLER_TOOLKIT_STAGE_H
#define GRAFT_CLI_INSTALLER_TOOLKIT_STAGE_H

#include "cli/installer/installer.h"

struct installer_stage {
	const struct installer_options *options;
	int parent_fd, fd; /* of DIR, and of the staged directory; owned */
	int lock_fd;       /* owned; no valid one on a file system without locks */
	char name[48];     /* of the staged directory; after the exchange, of the old toolkit */
};
#define INSTALLER_STAGE_INIT                                         \
	{                                                            \
		.parent_fd = -1, .fd = -1, .lock_fd = -1, .name = "" \
	}

/* Makes an empty directory under a name that no other program uses. */
int installer_stage_open(const struct installer_options *options, struct installer_stage *ret_stage,
			 struct graft_error *err);
/*
 * Gives the stage the toolkit's name in one step. Returns 1; 0 if the existing toolkit is
 * identical; or -1, with the existing one unchanged, if the file system cannot do it.
 */
int installer_stage_exchange(const struct installer_stage *stage, struct graft_error *err);
/* Removes the staged directory. */
void installer_stage_remove(const struct installer_stage *stage);
void installer_stage_close(struct installer_stage *stage);

#endif
