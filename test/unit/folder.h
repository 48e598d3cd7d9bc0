/* SPDX-License-Identifier: Apache-2.0 */
/* folder: removes the folder of a test with all that is in it, without a shell. */
#ifndef TEST_UNIT_FOLDER_H
#define TEST_UNIT_FOLDER_H

#include <ftw.h>
#include <stdio.h>

static inline int test_remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

/* Removes path and everything below it that is on the same mount; returns 0, else another number. */
static inline int test_remove_folder(const char *path)
{
	return nftw(path, test_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

#endif
