/* SPDX-License-Identifier: Apache-2.0 */
/* kube_node: what has to be asked, and the report of --once. */
#include "kubernetes/kube_node.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "host/discover.h"
#include "kubernetes/kube_allocate.h"
#include "kubernetes/kube_facts.h"
#include "kubernetes/kube_tables.h"

/* For the annotation in an example; all others are random. */
#define EXAMPLE_UUID    "00000000-0000-4000-8000-000000000000"
#define MAX_LOOK_MEMORY ((size_t)64 << 20)

/* --- facts --- */

/* Facts that only NVML has: UUIDs that procfs lacks, and MIG devices if they are offered. */
static bool has_unknown_facts(const struct graft_kube_config *config, const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (!inventory->gpus[i].excluded && !inventory->gpus[i].uuid.value)
			return true;
	}
	return config->flags.mig_strategy != GRAFT_KUBE_MIG_NONE && inventory->n_gpus > 0;
}

static int check_channel(const struct graft_kube_config *config, const struct graft_inventory *inventory,
			 struct graft_error *err)
{
	if (!config->imex.required || config->imex.channels == 0 || kube_has_channel_node(inventory))
		return 0;
	return graft_fail(err, GRAFT_NOT_FOUND, 0,
			  "IMEX channel 0 is required, but this host has no node for it in "
			  "/dev/nvidia-caps-imex-channels");
}

/* With switches, all GPUs are linked alike, and with two GPUs there is no choice. */
static bool wants_links(const struct graft_kube_node_facts *facts)
{
	return facts->inventory->platform == GRAFT_PLATFORM_NATIVE && facts->inventory->n_gpus > 2 &&
	       facts->tree.n_nvswitches == 0;
}

/* Links only improve a choice; GPUs are offered without them, too. */
static int take_kept(const struct graft_log *log, struct graft_arena *arena, struct graft_kube_node_facts *facts,
		     struct graft_kube_node_question *question, int rc, const struct graft_error *why,
		     struct graft_error *err)
{
	if (rc == 0) {
		facts->unsettled = question->kept.nvml.n_unsettled > 0;
		facts->wait_s = graft_kept_wait_s(&question->kept, graft_clock_ms() / 1000);
		return graft_pci_tree_add_links(&facts->tree, &question->kept.nvml, arena, err);
	}
	if (question->needed || why->status == GRAFT_NO_MEMORY) {
		*err = *why;
		return -1;
	}
	graft_warn(log, "cannot determine the NVLinks between GPUs: %s", GRAFT_ERROR_TEXT(why));
	return 0;
}

/* Returns 1 if another process asks, which happens only if `elsewhere` allows it. */
static int ask_what_is_unknown(const struct graft_kube_config *config, const struct graft_host_options *options,
			       enum graft_kube_ask ask, bool elsewhere, struct graft_arena *arena,
			       struct graft_kube_node_facts *facts, struct graft_kube_node_question *question,
			       struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	int rc;

	question->needed = has_unknown_facts(config, facts->inventory);
	if (!question->needed && !wants_links(facts))
		return 0;
	if (elsewhere)
		rc = graft_kube_facts_begin(options, NULL, ask, facts->inventory, arena, &question->kept,
					    &question->nvml, &why);
	else
		rc = graft_kube_facts(options, NULL, ask, facts->inventory, arena, &question->kept, &why);
	return rc > 0 ? 1 : take_kept(options->log, arena, facts, question, rc, &why, err);
}

/* --- MIG devices, as the kernel shows them --- */

static bool is_text_of_mig(const char *text)
{
	return strstr(text, " gi") != NULL;
}

static int list_kernel_migs(const struct graft_host_options *options, const struct graft_inventory *inventory,
			    struct graft_arena *arena, const char ***ret_migs, size_t *ret_n, struct graft_error *err)
{
	struct graft_kept_facts facts;

	*ret_n = 0;
	if (graft_kept_identify(options, inventory, arena, &facts, err) < 0)
		return -1;
	*ret_migs = facts.devices;
	for (size_t i = 0; i < facts.n_devices; i++) {
		if (is_text_of_mig(facts.devices[i]))
			(*ret_migs)[(*ret_n)++] = facts.devices[i];
	}
	return 0;
}

/* With `none`, MIG devices are not offered. */
static bool migs_matter(const struct graft_kube_config *config, const struct graft_inventory *inventory)
{
	return config->flags.mig_strategy != GRAFT_KUBE_MIG_NONE && inventory->platform == GRAFT_PLATFORM_NATIVE &&
	       inventory->n_gpus > 0;
}

static bool has_all_gpus(const struct graft_inventory *now, const struct graft_inventory *before)
{
	for (size_t i = 0; i < before->n_gpus; i++) {
		size_t k = 0;

		while (k < now->n_gpus && strcmp(now->gpus[k].bus_id, before->gpus[i].bus_id) != 0)
			k++;
		if (k == now->n_gpus)
			return false;
	}
	return true;
}

static bool is_same_text_list(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	for (size_t i = 0; n_a == n_b && i < n_a; i++) {
		if (strcmp(a[i], b[i]) != 0)
			return false;
	}
	return n_a == n_b;
}

bool graft_kube_node_has_other_migs(const struct graft_kube_config *config, const struct graft_kube_node_facts *facts)
{
	const struct graft_host_options options = kube_host_options(&config->flags, NULL);
	struct graft_arena *arena = graft_arena_new(MAX_LOOK_MEMORY);
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	const char **migs = NULL;
	bool other = false;
	size_t n;

	if (arena && graft_host_discover(&options, GRAFT_NEED_GPUS | GRAFT_NEED_MIG, &inventory, &err) == 0 &&
	    has_all_gpus(inventory, facts->inventory) &&
	    list_kernel_migs(&options, inventory, arena, &migs, &n, &err) == 0)
		other = !is_same_text_list(migs, n, facts->migs, facts->n_migs);
	(void)graft_inventory_free(inventory);
	(void)graft_arena_free(arena);
	return other;
}

bool graft_kube_node_has_more_gpus(const struct graft_kube_config *config, const struct graft_kube_node_facts *facts)
{
	const struct graft_host_options options = kube_host_options(&config->flags, NULL);
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	bool more = facts->inventory->platform == GRAFT_PLATFORM_NATIVE &&
		    graft_host_discover(&options, GRAFT_NEED_GPUS, &inventory, &err) == 0 &&
		    !has_all_gpus(facts->inventory, inventory);

	(void)graft_inventory_free(inventory);
	return more;
}

/* --- device nodes that come later --- */

static bool has_every_node(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < graft_n_kube_common_nodes; i++) {
		if (!kube_has_node(inventory, graft_kube_common_nodes[i]))
			return false;
	}
	return true;
}

static bool add_found_nodes(const struct graft_inventory *now, struct graft_inventory *inventory)
{
	bool any = false;

	for (size_t i = 0; i < now->n_nodes; i++) {
		struct graft_node *node = NULL;

		if (!now->nodes[i].present || kube_has_node(inventory, now->nodes[i].path))
			continue;
		for (size_t k = 0; k < inventory->n_nodes && !node; k++) {
			if (strcmp(inventory->nodes[k].path, now->nodes[i].path) == 0)
				node = &inventory->nodes[k];
		}
		if (!node)
			node = graft_arena_push(inventory->arena, &inventory->nodes, &inventory->n_nodes,
						sizeof(*node));
		if (!node)
			return any;
		*node = now->nodes[i];
		node->path = graft_arena_strdup(inventory->arena, now->nodes[i].path);
		node->source = graft_arena_strdup(inventory->arena, now->nodes[i].source);
		if (!node->path || !node->source)
			*node = (struct graft_node){ .path = "", .source = "" };
		any |= node->present;
	}
	return any;
}

bool graft_kube_node_find_nodes(const struct graft_kube_config *config, struct graft_kube_node_facts *facts)
{
	const struct graft_host_options options = kube_host_options(&config->flags, NULL);
	struct graft_inventory *now = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	bool any = false;

	if (facts->inventory->platform != GRAFT_PLATFORM_NATIVE || has_every_node(facts->inventory))
		return false;
	if (graft_host_discover(&options, GRAFT_NEED_NODES, &now, &err) == 0)
		any = add_found_nodes(now, facts->inventory);
	(void)graft_inventory_free(now);
	return any;
}

/* --- the whole --- */

/* The input of the offer, without the time at which NVML was asked. */
static int describe_state(const struct graft_kept_facts *kept, struct graft_arena *arena,
			  struct graft_kube_node_facts *facts, struct graft_error *err)
{
	struct graft_buffer text = { .max = 0 };

	graft_record_write(&graft_kube_offer_record, &facts->offer, &text);
	graft_record_write(&graft_nvml_snapshot_record, &kept->nvml, &text);
	facts->state = graft_buffer_failed(&text) ? NULL : graft_arena_strdup(arena, graft_buffer_text(&text));
	graft_buffer_done(&text);
	return facts->state ? 0 : graft_fail_memory(err);
}

/* Everything before NVML's answer. Returns 1 if that has not arrived yet. */
static int begin_node_facts(const struct graft_kube_config *config, enum graft_kube_ask ask, bool elsewhere,
			    const struct graft_log *log, struct graft_arena *arena, struct graft_kube_node_facts *facts,
			    struct graft_kube_node_question *question, struct graft_error *err)
{
	const struct graft_host_options options = kube_host_options(&config->flags, log);

	if (graft_host_discover(&options, GRAFT_NEED_NODES | GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_IMEX,
				&facts->inventory, err) < 0)
		return -1;
	if (check_channel(config, facts->inventory, err) < 0 ||
	    graft_pci_tree_read("/", facts->inventory, arena, &facts->tree, err) < 0)
		return -1;
	facts->watch_migs = migs_matter(config, facts->inventory);
	if (facts->watch_migs &&
	    list_kernel_migs(&options, facts->inventory, arena, &facts->migs, &facts->n_migs, err) < 0)
		return -1;
	return ask_what_is_unknown(config, &options, ask, elsewhere, arena, facts, question, err);
}

static int make_offer(const struct graft_kube_config *config, const struct graft_log *log, struct graft_arena *arena,
		      struct graft_kube_node_facts *facts, const struct graft_kube_node_question *question,
		      struct graft_error *err)
{
	if (graft_kube_offer(config, facts->inventory, &facts->tree, log, arena, &facts->offer, err) < 0)
		return -1;
	return describe_state(&question->kept, arena, facts, err);
}

/* The consequence of a host that could not be read. */
static int offer_nothing(const struct graft_kube_config *config, const struct graft_log *log,
			 const struct graft_error *why, struct graft_kube_node_facts *facts, struct graft_error *err)
{
	if (config->flags.fail_on_init_error || why->status == GRAFT_NO_MEMORY) {
		*err = *why;
		return -1;
	}
	graft_warn(log, "no devices are offered: %s", GRAFT_ERROR_TEXT(why));
	graft_kube_node_done(facts);
	*facts = (struct graft_kube_node_facts){ .inventory = graft_inventory_new(), .wait_s = -1, .state = "" };
	facts->failed = true;
	return facts->inventory ? 0 : graft_fail_memory(err);
}

static int begin_node(const struct graft_kube_config *config, enum graft_kube_ask ask, bool elsewhere,
		      const struct graft_log *log, struct graft_arena *arena, struct graft_kube_node_facts *ret_facts,
		      struct graft_kube_node_question *ret_question, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	int rc;

	*ret_facts = (struct graft_kube_node_facts){ .wait_s = -1 };
	*ret_question = (struct graft_kube_node_question){ .nvml = { .fd = -1 } };
	rc = begin_node_facts(config, ask, elsewhere, log, arena, ret_facts, ret_question, &why);
	if (rc > 0)
		return 1;
	if (rc == 0)
		rc = make_offer(config, log, arena, ret_facts, ret_question, &why);
	return rc < 0 ? offer_nothing(config, log, &why, ret_facts, err) : 0;
}

int graft_kube_node_read(const struct graft_kube_config *config, enum graft_kube_ask ask, const struct graft_log *log,
			 struct graft_arena *arena, struct graft_kube_node_facts *ret_facts, struct graft_error *err)
{
	struct graft_kube_node_question question;

	return begin_node(config, ask, false, log, arena, ret_facts, &question, err);
}

int graft_kube_node_begin(const struct graft_kube_config *config, enum graft_kube_ask ask, const struct graft_log *log,
			  struct graft_arena *arena, struct graft_kube_node_facts *ret_facts,
			  struct graft_kube_node_question *ret_question, struct graft_error *err)
{
	return begin_node(config, ask, true, log, arena, ret_facts, ret_question, err);
}

int graft_kube_node_end(const struct graft_kube_config *config, const struct graft_log *log, struct graft_arena *arena,
			struct graft_kube_node_facts *facts, struct graft_kube_node_question *question,
			struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK }, no_answer = { .status = GRAFT_OK };
	int rc = graft_kube_facts_end(&question->nvml, log, facts->inventory, arena, &question->kept, &no_answer);

	rc = take_kept(log, arena, facts, question, rc, &no_answer, &why);
	if (rc == 0)
		rc = make_offer(config, log, arena, facts, question, &why);
	return rc < 0 ? offer_nothing(config, log, &why, facts, err) : 0;
}

void graft_kube_node_done(struct graft_kube_node_facts *facts)
{
	facts->inventory = graft_inventory_free(facts->inventory);
}

/* --- report --- */

struct report_item {
	struct graft_kube_resource resource;
	struct graft_kube_answer example;
};
struct report {
	struct report_item *resources;
	size_t n_resources;
};

static const struct graft_field item_fields[] = {
	GRAFT_F_RECORD(struct report_item, resource, &graft_kube_resource_record, "as it is offered"),
	GRAFT_F_RECORD(struct report_item, example, &graft_kube_answer_record, "the answer for its first device"),
};
static const struct graft_record item_record = { "item", sizeof(struct report_item), item_fields,
						 GRAFT_COUNT(item_fields) };
static const struct graft_field report_fields[] = {
	{ "resources", GRAFT_FIELD_RECORDS, offsetof(struct report, resources), offsetof(struct report, n_resources),
	  &item_record, NULL, 0, true, "what is offered to the kubelet" },
};
static const struct graft_record report_record = { "report", sizeof(struct report), report_fields,
						   GRAFT_COUNT(report_fields) };

int graft_kube_node_report(const struct graft_kube_config *config, const struct graft_kube_node_facts *facts,
			   struct graft_buffer *out, struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new(SIZE_MAX / 2);
	struct report report = { .n_resources = facts->offer.n_resources };
	int rc = arena ? 0 : graft_fail_memory(err);

	if (rc == 0)
		report.resources = graft_arena_list(arena, report.n_resources, sizeof(*report.resources));
	if (rc == 0 && report.n_resources > 0 && !report.resources)
		rc = graft_fail_memory(err);
	for (size_t i = 0; rc == 0 && i < report.n_resources; i++) {
		const struct graft_kube_resource *resource = &facts->offer.resources[i];
		const char *const id = resource->devices[0].id;

		report.resources[i].resource = *resource;
		rc = graft_kube_allocate(config, facts->inventory, resource, &id, 1, EXAMPLE_UUID, arena,
					 &report.resources[i].example, err);
	}
	if (rc == 0)
		graft_record_write(&report_record, &report, out);
	if (rc == 0 && graft_buffer_failed(out))
		rc = graft_fail_memory(err);
	(void)graft_arena_free(arena);
	return rc;
}
