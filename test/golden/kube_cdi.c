/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_cdi: writes the CDI specifications of the device plugin for a driver root, as if it were the container driver root.
 *
 *	kube_cdi CONFIG ROOT DIRECTORY
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/read.h"
#include "kubernetes/kube_cdi.h"

static void print_message_of_log(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)arg;
	(void)level;
	(void)file;
	(void)line;
	(void)fprintf(stderr, "warning: %s\n", message);
}

static int write_specs(char **argv, struct graft_arena *arena, struct graft_error *err)
{
	const struct graft_log log = { .write = print_message_of_log, .max = GRAFT_LOG_WARN };
	struct graft_kube_node_facts facts = { .inventory = NULL };
	struct graft_kube_config config;
	const char *text;
	size_t length;
	int rc = graft_read_input(argv[1], (size_t)1 << 20, arena, &text, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "%s", argv[1]);
	graft_kube_config_default(&config);
	rc = graft_kube_config_parse("config", text, length, &log, arena, &config, err);
	config.flags.plugin.container_driver_root = argv[2];
	rc = rc < 0 ? rc : graft_kube_node_read(&config, GRAFT_KUBE_ASK_UNSETTLED, &log, arena, &facts, err);
	rc = rc < 0 ? rc : graft_kube_cdi_write(&config, &facts, argv[3], &log, err);
	graft_kube_node_done(&facts);
	return rc;
}

int main(int argc, char **argv)
{
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	struct graft_error err = { .status = GRAFT_OK };
	char text[768];
	int rc;

	if (argc != 4 || !arena) {
		(void)fputs("usage: kube_cdi CONFIG ROOT DIRECTORY\n", stderr);
		return 64;
	}
	rc = write_specs(argv, arena, &err);
	if (rc < 0)
		(void)fprintf(stderr, "error: %s\n", graft_error_text(&err, text, sizeof(text)));
	(void)graft_arena_free(arena);
	return rc < 0 ? 1 : 0;
}
