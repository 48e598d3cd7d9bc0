/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_prefer: which devices the device plugin prefers on this host, which is a simulated one: for each resource that a
 * configuration offers, every number of devices, of all and of some, with and without some that the answer must include.
 *
 *	kube_prefer CONFIG
 *
 * Prints "RESOURCE N of AVAILABLE with REQUIRED: ANSWER". Devices are numbers in the order in which they are offered; a
 * replica has its own after "::".
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/read.h"
#include "kubernetes/kube_node.h"
#include "kubernetes/kube_preferred.h"

#define DEVICES_MAX 128u

struct prefer {
	const struct graft_kube_config *config;
	const struct graft_pci_tree *tree;
	const struct graft_kube_resource *resource;
	struct graft_arena *arena;
};

/* "3", or "3::1" of a device that is shared. */
static void print_device(const struct prefer *prefer, const char *id)
{
	const struct graft_kube_resource *resource = prefer->resource;
	const char *replica = strstr(id, "::"), *last = "";
	size_t number = 0;

	for (size_t i = 0; i < resource->n_devices; i++) {
		number += i > 0 && strcmp(resource->devices[i].base_id, last) != 0;
		last = resource->devices[i].base_id;
		if (strcmp(resource->devices[i].id, id) == 0)
			printf(" %zu%s", number, replica ? replica : "");
	}
}

static void print_answer(const struct prefer *prefer, const struct graft_kube_preference *preference)
{
	struct graft_error err = { .status = GRAFT_OK };
	const char *const *ids = NULL;
	int rc = graft_kube_prefer(prefer->config, prefer->resource, prefer->tree, preference, prefer->arena, &ids,
				   &err);

	printf("%s %u of", prefer->resource->name, preference->size);
	for (size_t i = 0; i < preference->n_available; i++)
		print_device(prefer, preference->available[i]);
	printf(" with");
	for (size_t i = 0; i < preference->n_required; i++)
		print_device(prefer, preference->required[i]);
	putchar(':');
	for (uint32_t i = 0; rc == 0 && i < preference->size; i++)
		print_device(prefer, ids[i]);
	printf(rc < 0 ? " %s\n" : "\n", err.msg);
}

/* Every number of the devices that are available: of all or, with `gap`, without each gap-th. */
static void print_numbers(const struct prefer *prefer, size_t gap, const size_t *required, size_t n_required)
{
	const struct graft_kube_resource *resource = prefer->resource;
	const char *available[DEVICES_MAX], *with[2];
	struct graft_kube_preference preference = { .available = available, .required = with };

	for (size_t i = 0; i < resource->n_devices; i++) {
		if (gap == 0 || i % gap != 0)
			available[preference.n_available++] = resource->devices[i].id;
	}
	for (; preference.n_required < n_required; preference.n_required++)
		with[preference.n_required] = resource->devices[required[preference.n_required]].id;
	for (preference.size = n_required > 0 ? (uint32_t)n_required : 1; preference.size <= preference.n_available;
	     preference.size++)
		print_answer(prefer, &preference);
}

static void print_resource(const struct prefer *prefer)
{
	size_t n = prefer->resource->n_devices;

	if (n > DEVICES_MAX) {
		printf("error: %s has more than %u devices\n", prefer->resource->name, DEVICES_MAX);
		return;
	}
	print_numbers(prefer, 0, NULL, 0);
	print_numbers(prefer, 0, &(size_t){ n - 1 }, 1);
	if (n >= 4)
		print_numbers(prefer, 0, (const size_t[]){ n - 2, 1 }, 2);
	if (n >= 3) {
		print_numbers(prefer, 3, NULL, 0);
		print_numbers(prefer, 3, &(size_t){ 2 }, 1);
	}
}

static int print_preferences(const char *path, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_kube_node_facts facts;
	struct graft_kube_config config;
	const char *text;
	size_t length;
	int rc = graft_read_input(path, (size_t)1 << 20, arena, &text, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "%s", path);
	graft_kube_config_default(&config);
	if (graft_kube_config_parse("config", text, length, NULL, arena, &config, err) < 0 ||
	    graft_kube_config_check(&config, err) < 0)
		return -1;
	rc = graft_kube_node_read(&config, GRAFT_KUBE_ASK_UNSETTLED, NULL, arena, &facts, err);
	for (size_t i = 0; rc == 0 && i < facts.offer.n_resources; i++)
		print_resource(&(struct prefer){ &config, &facts.tree, &facts.offer.resources[i], arena });
	graft_kube_node_done(&facts);
	return rc;
}

int main(int argc, char **argv)
{
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	struct graft_error err = { .status = GRAFT_OK };

	if (argc != 2 || !arena) {
		(void)fputs("usage: kube_prefer CONFIG\n", stderr);
		return 64;
	}
	if (print_preferences(argv[1], arena, &err) < 0)
		printf("error: %s\n", err.msg);
	(void)graft_arena_free(arena);
	return 0;
}
