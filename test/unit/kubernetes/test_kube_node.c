/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node without a driver, which is an error or not, depending on the configuration;
 * golden-kube-cdi reads nodes that have one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "kubernetes/kube_cdi.h"
#include "kubernetes/kube_node.h"

static char root[64];
static struct graft_arena *arena;
static char warned[512];

static void keep_warning(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)snprintf(warned, sizeof(warned), "%s", message);
}

static const struct graft_log log_ = { .write = keep_warning, .max = GRAFT_LOG_WARN };

static int setup(void **state)
{
	warned[0] = '\0';
	(void)snprintf(root, sizeof(root), "/tmp/kube-node.XXXXXX");
	arena = graft_arena_new((size_t)16 << 20);
	return mkdtemp(root) && arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena = graft_arena_free(arena);
	return rmdir(root);
}

static const char no_driver[] = "load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file "
				"or directory";

static void test_no_driver(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_node_facts facts;
	struct graft_kube_config config;
	char text[768];

	graft_kube_config_default(&config);
	config.flags.plugin.container_driver_root = root;
	assert_int_equal(graft_kube_node_read(&config, GRAFT_KUBE_ASK_UNSETTLED, &log_, arena, &facts, &err), -1);
	/* On a host without a driver, the text has more at its beginning. */
	assert_true(graft_ends_with(graft_error_text(&err, text, sizeof(text)), no_driver));
	graft_kube_node_done(&facts);

	/* The same directory as the driver root, and no error: nothing is offered, and nothing written. */
	config.flags.fail_on_init_error = false;
	config.flags.plugin.container_driver_root = "/nonexistent";
	config.flags.driver_root = root;
	config.flags.plugin.device_list_strategy = GRAFT_KUBE_LIST_CDI_CRI;
	assert_int_equal(graft_kube_node_read(&config, GRAFT_KUBE_ASK_UNSETTLED, &log_, arena, &facts, &err), 0);
	assert_true(graft_starts_with(warned, "no devices are offered: "));
	assert_true(graft_ends_with(warned, no_driver));
	assert_int_equal(facts.offer.n_resources, 0);
	assert_int_equal(graft_kube_cdi_write(&config, &facts, root, &log_, &err), 0);
	graft_kube_node_done(&facts);
}

/* What --once prints for a node without devices. */
static void test_report(void **state)
{
	struct graft_kube_node_facts facts = { .inventory = graft_inventory_new() };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };
	struct graft_kube_config config;

	graft_kube_config_default(&config);
	assert_int_equal(graft_kube_node_report(&config, &facts, &out, &err), 0);
	assert_string_equal(graft_buffer_text(&out), "{\n  \"resources\": []\n}\n");
	graft_buffer_done(&out);
	graft_kube_node_done(&facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_driver, setup, teardown),
		cmocka_unit_test_setup_teardown(test_report, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
