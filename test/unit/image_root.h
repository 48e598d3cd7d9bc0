/* SPDX-License-Identifier: Apache-2.0 */
/* image_root: a directory as a container's root, for tests, with a budget of its own that lasts for any test. */
#ifndef TEST_UNIT_IMAGE_ROOT_H
#define TEST_UNIT_IMAGE_ROOT_H

#include <fcntl.h>
#include <unistd.h>

#include "base/image_root.h"

#define TEST_BUDGET_MS 60000

static inline int test_image_root_open(struct graft_image_root *ret_root, const char *directory)
{
	int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

	graft_image_root_take(ret_root, fd, graft_budget_new(TEST_BUDGET_MS));
	return fd >= 0 && ret_root->budget ? 0 : -1;
}

static inline void test_image_root_close(struct graft_image_root *root)
{
	struct graft_budget *budget = root->budget;

	graft_image_root_close(root);
	graft_budget_free(budget);
}
#define auto_test_image_root __attribute__((cleanup(test_image_root_close)))

#endif
