/* SPDX-License-Identifier: Apache-2.0 */
/* lease_host: derives what can be lent from an inventory, the PCI tree and NVML's answer. */
#include "lease/lease_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "host/discover.h"
#include "host/kept_facts.h"

#define KEPT_FILE_SIMULATED "/run/graft-sim/facts.json"
#define KEPT_MAX            ((size_t)4 << 20)

struct reading {
	const struct graft_config *config;
	const struct graft_claim *claim;
	struct graft_host_options options;
	struct graft_inventory *inventory;
	struct graft_pci_tree tree;
	struct graft_kept_facts facts; /* zeroed unless NVML had to be asked */
	struct graft_arena *arena;
};

/* ---- what NVML knows ---- */

/* With switches, all GPUs are linked alike, and with two GPUs there is no choice. */
static bool needs_links(const struct reading *r)
{
	bool choice = r->claim->kind == GRAFT_CLAIM_ANY ||
		      (r->claim->kind == GRAFT_CLAIM_SHARE && r->claim->same == GRAFT_SAME_NVLINK);

	return choice && r->claim->count > 1 && r->tree.n_nvswitches == 0 && r->inventory->n_gpus > 2;
}

/* The place of a GPU matters only if there is another one. */
static bool needs_tree(const struct reading *r)
{
	return r->claim && r->claim->count > 1 &&
	       (r->claim->kind == GRAFT_CLAIM_ANY ||
		(r->claim->kind == GRAFT_CLAIM_SHARE && r->claim->same != GRAFT_SAME_NOTHING));
}

static bool needs_nvml(const struct reading *r)
{
	/* A listing, and who names devices, need those of MIG. */
	const bool migs = !r->claim || r->claim->kind == GRAFT_CLAIM_NAMED;

	for (size_t i = 0; i < r->inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &r->inventory->gpus[i];

		if ((!gpu->excluded && !gpu->uuid.value) || (migs && gpu->mig_enabled))
			return true;
	}
	if (migs)
		return false;
	return r->claim->kind == GRAFT_CLAIM_MIG || r->claim->memory_mib > 0 ||
	       (r->claim->limit_mib > 0 && strcmp(r->config->leases.sharing, "mps") == 0) || needs_links(r);
}

/* Facts that another program has asked for and kept. */
static int read_kept_answer(struct reading *r, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *text, *file = r->inventory->simulated ? KEPT_FILE_SIMULATED : GRAFT_KEPT_FILE;
	size_t length;

	if (graft_kept_identify(&r->options, r->inventory, r->arena, &r->facts, err) < 0 ||
	    graft_root_open(&root, "/", err) < 0)
		return -1;
	if (graft_root_read(&root, file, KEPT_MAX, r->arena, &text, &length) < 0)
		return graft_arena_failed(r->arena) ? graft_fail_memory(err) : 0;
	return graft_kept_parse(text, length, r->options.log, r->arena, &r->facts, err);
}

static int ask_nvml(struct reading *r, struct graft_error *err)
{
	int kept = read_kept_answer(r, err);

	if (kept < 0 || (kept == 0 && graft_kept_ask(&r->options, r->inventory, r->arena, &r->facts, err) < 0) ||
	    graft_kept_complete(&r->facts, r->options.log, r->inventory, err) < 0)
		return -1;
	return needs_tree(r) ? graft_pci_tree_add_links(&r->tree, &r->facts.nvml, r->arena, err) : 0;
}

/* ---- GPUs ---- */

static const char *copy(const struct reading *r, const char *text)
{
	return graft_arena_strdup(r->arena, text);
}

static bool is_in_pool(const struct reading *r, const struct graft_lendable_gpu *gpu)
{
	const struct graft_strings *pool = &r->config->leases.pool;

	for (size_t i = 0; i < pool->n; i++) {
		if (strcmp(pool->items[i], "all") == 0 || graft_lendable_has_name(gpu, pool->items[i]))
			return true;
	}
	return false;
}

/*
 * Reads graft.leases.shared: in how many slots the GPU is lent. A row that names it beats "all".
 * Returns -1 with GRAFT_INVALID, naming a row that is not readable.
 */
static int read_replicas(const struct reading *r, struct graft_lendable_gpu *gpu, struct graft_error *err)
{
	const struct graft_strings *shared = &r->config->leases.shared;
	bool named = false;

	for (size_t i = 0; i < shared->n; i++) {
		const char *row = shared->items[i], *value = strchr(row, '=');
		size_t length = value ? (size_t)(value - row) : 0;
		const char *name = graft_arena_strndup(r->arena, row, length);
		char *end = NULL;
		unsigned long n = value && value[1] >= '1' && value[1] <= '9' ? strtoul(value + 1, &end, 10) : 0;

		if (!name)
			return graft_fail_memory(err);
		if (length == 0 || !end || *end != '\0' || n < 2 || n > GRAFT_LEASE_REPLICAS)
			return graft_fail(
			    err, GRAFT_INVALID, 0,
			    "graft.leases.shared: '%.64s' is neither GPU=N nor all=N, with N from 2 to %u", row,
			    GRAFT_LEASE_REPLICAS);
		if (!graft_lendable_has_name(gpu, name) && (named || strcmp(name, "all") != 0))
			continue;
		named = strcmp(name, "all") != 0;
		gpu->replicas = (uint32_t)n;
	}
	return 0;
}

static void read_lendable_mig(const struct reading *r, const struct graft_mig_device *from,
			      struct graft_lendable_mig *mig)
{
	*mig = (struct graft_lendable_mig){ .uuid = copy(r, from->uuid.value),
					    .profile = copy(r, from->profile.value),
					    .gi = from->gi,
					    .ci = from->ci,
					    .gi_major = from->gi_node.major,
					    .gi_minor = from->gi_node.minor,
					    .ci_major = from->ci_node.major,
					    .ci_minor = from->ci_node.minor };
}

static int read_lendable(const struct reading *r, size_t place, struct graft_lendable_gpu *gpu, struct graft_error *err)
{
	const struct graft_gpu *from = &r->inventory->gpus[place];

	*gpu = (struct graft_lendable_gpu){ .uuid = copy(r, from->uuid.value),
					    .model = copy(r, from->model.value),
					    .bus_id = copy(r, from->bus_id),
					    .index = from->index,
					    .major = from->node.major,
					    .minor = from->node.minor,
					    .place = place < r->tree.n_gpus ? &r->tree.gpus[place] : NULL,
					    .mig = from->mig_enabled };
	if (!is_in_pool(r, gpu))
		gpu->why_not = "not in graft.leases.pool";
	else if (!from->node.present)
		gpu->why_not = "its device node does not exist";
	for (size_t i = 0; i < r->facts.nvml.n_gpus; i++) {
		if (r->facts.nvml.gpus[i].bus_id && strcmp(r->facts.nvml.gpus[i].bus_id, from->bus_id) == 0)
			gpu->memory_mib = r->facts.nvml.gpus[i].memory_mib;
	}
	gpu->n_migs = from->n_mig_devices;
	gpu->migs = graft_arena_list(r->arena, gpu->n_migs, sizeof(*gpu->migs));
	for (size_t i = 0; gpu->migs && i < gpu->n_migs; i++)
		read_lendable_mig(r, &from->mig_devices[i], &gpu->migs[i]);
	return read_replicas(r, gpu, err);
}

static int read_lendables(const struct reading *r, struct graft_lendable *host, struct graft_error *err)
{
	host->switches = r->tree.n_nvswitches > 0;
	host->gpus = graft_arena_list(r->arena, r->inventory->n_gpus, sizeof(*host->gpus));
	host->simulated = r->inventory->simulated;
	host->mps = strcmp(r->config->leases.sharing, "mps") == 0;
	for (size_t i = 0; host->gpus && i < r->inventory->n_gpus; i++) {
		if (!r->inventory->gpus[i].excluded && read_lendable(r, i, &host->gpus[host->n_gpus++], err) < 0)
			return -1;
	}
	if (graft_arena_failed(r->arena))
		return graft_fail_memory(err);
	return host->n_gpus > 0
		   ? 0
		   : graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "no GPU can be lent: the kernel driver lists none");
}

static int read_tree(struct reading *r, struct graft_error *err)
{
	return needs_tree(r) ? graft_pci_tree_read("/", r->inventory, r->arena, &r->tree, err) : 0;
}

static int read_host(struct reading *r, struct graft_lendable *host, struct graft_error *err)
{
	if (graft_host_identify(&r->options, NULL, 0, &r->inventory, err) < 0 || !r->inventory || read_tree(r, err) < 0)
		return -1;
	if (needs_nvml(r)) {
		/* Only the full search finds NVML's library. */
		r->inventory = graft_inventory_free(r->inventory);
		if (graft_host_discover(&r->options, GRAFT_NEED_GPUS | GRAFT_NEED_MIG, &r->inventory, err) < 0 ||
		    !r->inventory || read_tree(r, err) < 0 || ask_nvml(r, err) < 0)
			return -1;
	}
	return read_lendables(r, host, err);
}

int graft_lease_host_read(const struct graft_config *config, const struct graft_claim *claim,
			  const struct graft_log *log, struct graft_arena *arena, struct graft_lendable *ret_host,
			  struct graft_error *err)
{
	const char *root = config->cli.root;
	struct reading r = { .config = config, .claim = claim, .arena = arena };
	int rc;

	r.options = (struct graft_host_options){
		.root = root && root[0] != '\0' ? root : NULL, .nvml_uid = (uid_t)-1, .nvml_gid = (gid_t)-1, .log = log
	};
	*ret_host = (struct graft_lendable){ .n_gpus = 0 };
	rc = read_host(&r, ret_host, err);
	(void)graft_inventory_free(r.inventory);
	return rc;
}
