/* SPDX-License-Identifier: Apache-2.0 */
/* rootless: what a child may send. test/integration/test_apply_edits.c runs a rootless caller. */
#include <string.h>

#include "apply/namespace/rootless.h"
#include "unit.h"

/* A child that the container's processes have taken over sends texts without an end. */
static int send_endless_texts(void *arg, struct graft_rootless_child *child, struct graft_error *err)
{
	(void)arg;
	(void)child;
	err->status = GRAFT_MOUNT;
	memset(err->msg, 'm', sizeof(err->msg));
	memset(err->ctx, 'c', sizeof(err->ctx));
	return -1;
}

static void test_texts_end(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };

	(void)state;
	assert_int_equal(graft_rootless_run(send_endless_texts, NULL, NULL, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_MOUNT);
	assert_int_equal(strnlen(err.msg, sizeof(err.msg)), sizeof(err.msg) - 1);
	assert_int_equal(strnlen(err.ctx, sizeof(err.ctx)), sizeof(err.ctx) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts_end),
	};

	return cmocka_run_group_tests_name("rootless", tests, NULL, NULL);
}
