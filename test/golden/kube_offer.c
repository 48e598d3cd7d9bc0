/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_offer: what the device plugin would offer and answer on a host of which there is the inventory, as
 * nvidia-device-plugin --once prints it, after the warnings. An error is what is printed, too, and the exit status is 0.
 *
 *	kube_offer INVENTORY CONFIG
 *	kube_offer CONFIG              the effective configuration, as --print-config prints it
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/read.h"
#include "kubernetes/kube_node.h"

static void print_warning(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)arg;
	(void)level;
	(void)file;
	(void)line;
	printf("warning: %s\n", message);
}

static const struct graft_log warnings = { .write = print_warning, .max = GRAFT_LOG_WARN };

static int read_whole(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
		      struct graft_error *err)
{
	int rc = graft_read_input(path, (size_t)16 << 20, arena, ret_text, ret_length);

	return rc < 0 ? graft_fail_errno(err, -rc, "%s", path) : 0;
}

static int read_config(const char *path, struct graft_arena *arena, struct graft_kube_config *config,
		       struct graft_error *err)
{
	const char *text;
	size_t length;

	graft_kube_config_default(config);
	if (read_whole(path, arena, &text, &length, err) < 0 ||
	    graft_kube_config_parse("config", text, length, &warnings, arena, config, err) < 0)
		return -1;
	return graft_kube_config_check(config, err);
}

static int print_config(const char *path, struct graft_arena *arena, struct graft_buffer *out, struct graft_error *err)
{
	struct graft_kube_config config;

	if (read_config(path, arena, &config, err) < 0)
		return -1;
	graft_kube_config_write(&config, out);
	return 0;
}

static int offer(const char *const *paths, struct graft_arena *arena, struct graft_buffer *out, struct graft_error *err)
{
	struct graft_kube_node_facts facts = { .inventory = NULL };
	struct graft_kube_config config;
	const char *text;
	size_t length;
	int rc = 0;

	if (read_whole(paths[0], arena, &text, &length, err) < 0 ||
	    graft_inventory_read(text, length, &facts.inventory, err) < 0)
		return -1;
	if (read_config(paths[1], arena, &config, err) < 0 ||
	    graft_kube_offer(&config, facts.inventory, NULL, &warnings, arena, &facts.offer, err) < 0 ||
	    graft_kube_node_report(&config, &facts, out, err) < 0)
		rc = -1;
	graft_kube_node_done(&facts);
	return rc;
}

int main(int argc, char **argv)
{
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };
	int rc;

	if (argc < 2 || argc > 3 || !arena) {
		(void)fputs("usage: kube_offer [INVENTORY] CONFIG\n", stderr);
		return 64;
	}
	rc = argc == 2 ? print_config(argv[1], arena, &out, &err)
		       : offer((const char *const *)(argv + 1), arena, &out, &err);
	if (rc == 0)
		(void)fputs(graft_buffer_text(&out), stdout);
	else
		printf("error: %s\n", err.msg);
	graft_buffer_done(&out);
	(void)graft_arena_free(arena);
	return 0;
}
