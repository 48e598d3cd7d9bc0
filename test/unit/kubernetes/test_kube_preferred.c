/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preferred devices: the policies, case by case; the choice by links against a brute-force search that follows SPEC kubernetes 6.7 word for
 * word, for random machines of up to eight GPUs; and how long sixteen take.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "kubernetes/kube_preferred.h"

/* Sanitizers make everything slower. */
#ifdef __SANITIZE_ADDRESS__
#define TIME_LIMIT_MS 50
#else
#define TIME_LIMIT_MS 5
#endif
#define GPUS_MAX 16
#define IDS_MAX  40

/* Splits "a b c". */
static size_t split(const char *text, const char **words)
{
	size_t n = 0;

	while (*text != '\0') {
		size_t length = strcspn(text, " ");

		words[n++] = graft_arena_strndup(arena, text, length);
		text += length + (text[length] == ' ');
	}
	return n;
}

/* A resource of these ids; each device has as many replicas as there are ids of it. */
static struct graft_kube_resource make_resource(const char *ids)
{
	struct graft_kube_resource resource = { .name = "nvidia.com/gpu" };
	const char *words[IDS_MAX];
	size_t n = split(ids, words);

	resource.devices = graft_arena_list(arena, n, sizeof(*resource.devices));
	resource.n_devices = n;
	for (size_t i = 0; i < n; i++) {
		resource.devices[i].id = words[i];
		resource.devices[i].base_id = graft_arena_strndup(arena, words[i], strcspn(words[i], ":"));
	}
	return resource;
}

static const char *prefer(enum graft_kube_policy policy, const char *all, const char *available, const char *required,
			  uint32_t size)
{
	struct graft_kube_resource resource = make_resource(all);
	const char *available_ids[IDS_MAX], *required_ids[IDS_MAX], *const *ids, *text = "";
	const struct graft_kube_preference preference = { .available = available_ids,
							  .n_available = split(available, available_ids),
							  .required = required_ids,
							  .n_required = split(required, required_ids),
							  .size = size };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_config config;

	graft_kube_config_default(&config);
	config.flags.plugin.sharing_policy = policy;
	if (graft_kube_prefer(&config, &resource, NULL, &preference, arena, &ids, &err) < 0)
		return graft_arena_strdup(arena, err.msg);
	for (uint32_t i = 0; i < size; i++)
		text = graft_arena_printf(arena, "%s%s%s", text, i > 0 ? " " : "", ids[i]);
	return text;
}

#define TWO "a::0 a::1 a::2 a::3 b::0 b::1 b::2 b::3"

static const struct {
	enum graft_kube_policy policy;
	const char *all, *available, *required;
	uint32_t size;
	const char *answer;
} policies[] = {
	{ GRAFT_KUBE_DISTRIBUTED, TWO, TWO, "", 2, "a::0 b::0" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, "a::1 a::2 a::3 b::0 b::1 b::2 b::3", "", 1, "b::0" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, "a::1 a::2 a::3 b::0 b::1 b::2 b::3", "", 3, "b::0 a::1 b::1" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, "a::3 b::0 b::1 b::2 b::3", "", 4, "b::0 b::1 b::2 a::3" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, TWO, "a::2", 2, "a::2 b::0" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, TWO, "a::2 a::3", 4, "a::2 a::3 b::0 b::1" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, TWO, "", 0, "" },
	{ GRAFT_KUBE_PACKED, TWO, TWO, "", 3, "a::0 a::1 a::2" },
	{ GRAFT_KUBE_PACKED, TWO, "a::0 a::1 a::2 a::3 b::2 b::3", "", 1, "b::2" },
	{ GRAFT_KUBE_PACKED, TWO, "a::0 a::1 a::2 a::3 b::2 b::3", "", 3, "b::2 b::3 a::0" },
	{ GRAFT_KUBE_PACKED, TWO, TWO, "b::1", 2, "b::1 b::0" },
	{ GRAFT_KUBE_DISTINCT, TWO, TWO, "", 2, "a::0 b::0" },
	{ GRAFT_KUBE_DISTINCT, TWO, "a::0 a::1 b::3", "b::3", 2, "b::3 a::0" },
	{ GRAFT_KUBE_DISTINCT, TWO, TWO, "", 3, "not enough available devices to satisfy allocation" },
	{ GRAFT_KUBE_DISTINCT, TWO, TWO, "a::0 a::1", 2, "not enough available devices to satisfy allocation" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, "a::0", "", 2, "not enough available devices to satisfy allocation" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, "a::0 a::1", "a::0 a::1", 1,
	  "not enough available devices to satisfy allocation" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, "a::0 a::1", "b::0", 1, "not enough available devices to satisfy allocation" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, "a::0 q", "", 1, "unknown device: q" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, "a::0 b::0 a::0", "", 3, "device a::0 is named twice" },
	{ GRAFT_KUBE_DISTRIBUTED, TWO, TWO, "b::1 a::0 b::1", 4, "device b::1 is named twice" },
	/* MIG devices: each is a device of its own. */
	{ GRAFT_KUBE_PACKED, "m n o", "o n", "", 1, "o" },
	{ GRAFT_KUBE_DISTRIBUTED, "m n o", "m o", "o", 2, "o m" },
};

static void test_policies(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(policies); i++)
		assert_string_equal(prefer(policies[i].policy, policies[i].all, policies[i].available,
					   policies[i].required, policies[i].size),
				    policies[i].answer);
}

/* --- links --- */

/* GPUs of a machine, by the way down to each: "pci0/port/up/down". */
struct machine {
	struct graft_kube_resource resource;
	struct graft_pci_tree tree;
};

static struct machine make_machine(const char *const *ways, const uint32_t *nodes, size_t n)
{
	struct machine machine = { .resource = { .name = "nvidia.com/gpu", .whole_gpus = true, .n_devices = n },
				   .tree = { .n_gpus = n } };

	machine.resource.devices = graft_arena_list(arena, n, sizeof(*machine.resource.devices));
	machine.tree.gpus = graft_arena_list(arena, n, sizeof(*machine.tree.gpus));
	for (size_t i = 0; i < n; i++) {
		struct graft_kube_device *device = &machine.resource.devices[i];
		struct graft_pci_place *place = &machine.tree.gpus[i];

		device->id = device->base_id = graft_arena_printf(arena, "g%zu", i);
		device->gpu = (uint32_t)i;
		device->bus_id = place->bus_id = graft_arena_printf(arena, "bus%zu", i);
		place->has_numa_node = true;
		place->numa_node = nodes[i];
		for (const char *at = ways[i]; *at != '\0';) {
			size_t length = strcspn(at, "/");

			(void)graft_arena_push_string(arena, &place->bridges, &place->n_bridges,
						      graft_arena_strndup(arena, at, length));
			at += length + (at[length] == '/');
		}
	}
	return machine;
}

static int prefer_gpus(const struct machine *machine, uint32_t available, uint32_t required, uint32_t size,
		       uint32_t *ret_set)
{
	const char *available_ids[GPUS_MAX], *required_ids[GPUS_MAX], *const *ids;
	struct graft_kube_preference preference = { .available = available_ids,
						    .required = required_ids,
						    .size = size };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_config config;

	graft_kube_config_default(&config);
	/* The kubelet's order is random: here from the last one down. */
	for (size_t i = machine->resource.n_devices; i-- > 0;) {
		if (available >> i & 1u)
			available_ids[preference.n_available++] = machine->resource.devices[i].id;
		if (required >> i & 1u)
			required_ids[preference.n_required++] = machine->resource.devices[i].id;
	}
	if (graft_kube_prefer(&config, &machine->resource, &machine->tree, &preference, arena, &ids, &err) < 0) {
		assert_string_equal(err.msg, "not enough available devices to satisfy allocation");
		return -1;
	}
	*ret_set = 0;
	for (uint32_t i = 0; i < size; i++) {
		uint32_t bit = 1u << strtoul(ids[i] + 1, NULL, 10);

		assert_int_equal(*ret_set & bit, 0);
		*ret_set |= bit;
	}
	assert_int_equal(*ret_set & ~available, 0);
	assert_int_equal(*ret_set & required, required);
	return 0;
}

/* Links as one end says it; the other end may say nothing. */
static uint32_t links_between(const struct graft_pci_place *x, const struct graft_pci_place *y)
{
	for (size_t i = 0; i < x->n_links; i++) {
		if (strcmp(x->links[i].bus_id, y->bus_id) == 0)
			return x->links[i].count;
	}
	for (size_t i = 0; i < y->n_links; i++) {
		if (strcmp(y->links[i].bus_id, x->bus_id) == 0)
			return y->links[i].count;
	}
	return 0;
}

/* The score of a pair by SPEC kubernetes 6.7, written anew. */
static uint32_t pair_score(const struct machine *machine, size_t a, size_t b)
{
	const struct graft_pci_place *x = &machine->tree.gpus[a], *y = &machine->tree.gpus[b];
	uint32_t links = machine->tree.n_nvswitches > 0 ? 100 : 100 * links_between(x, y);
	size_t common = 0;

	while (common < x->n_bridges && common < y->n_bridges && strcmp(x->bridges[common], y->bridges[common]) == 0)
		common++;
	if (common >= 2 && x->n_bridges == common && y->n_bridges == common)
		return links + 60;
	if (common >= 3)
		return links + (x->n_bridges - common == 1 && y->n_bridges - common == 1 ? 50 : 40);
	if (common >= 1)
		return links + 30;
	return links + (x->numa_node == y->numa_node ? 20 : 10);
}

static uint32_t set_score(const struct machine *machine, uint32_t set)
{
	uint32_t score = 0;

	for (size_t i = 0; i < GPUS_MAX; i++) {
		for (size_t j = 0; j < i; j++) {
			if ((set >> i & 1u) && (set >> j & 1u))
				score += pair_score(machine, i, j);
		}
	}
	return score;
}

struct brute {
	const struct machine *machine;
	uint32_t required, size;
	uint32_t best_total,
	    best_score; /* of the winning cuts: the total, and the best score of a set to take from one */
	bool found;
};

/* Tries all cuts of `left` into `n_sets` sets of at most `size`, padding being what is missing. */
static void search(struct brute *brute, uint32_t left, uint32_t n_sets, uint32_t total, uint32_t taken_score,
		   bool taken)
{
	uint32_t lowest = left & (0u - left);

	if (left == 0) {
		if (n_sets > 0 || !taken || (brute->found && total < brute->best_total))
			return;
		if (!brute->found || total > brute->best_total || taken_score > brute->best_score)
			brute->best_score = taken_score;
		brute->best_total = total;
		brute->found = true;
		return;
	}
	if (n_sets == 0)
		return;
	for (uint32_t set = left; set != 0; set = (set - 1) & left) {
		uint32_t n = (uint32_t)__builtin_popcount(set), score = set_score(brute->machine, set);
		bool holds = n == brute->size && (set & brute->required) == brute->required;

		if (!(set & lowest) || n > brute->size)
			continue;
		search(brute, left & ~set, n_sets - 1, total + score,
		       holds && score > taken_score ? score : taken_score, taken || holds);
	}
}

static uint32_t random_state = 20261123;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % n;
}

static struct machine random_machine(size_t n)
{
	const char *ways[GPUS_MAX];
	uint32_t nodes[GPUS_MAX];

	for (size_t i = 0; i < n; i++) {
		uint32_t host = random_below(3), port = random_below(2), up = random_below(2), down = random_below(4);

		nodes[i] = host % 2;
		if (random_below(4) == 0)
			ways[i] = graft_arena_printf(arena, "h%u/p%u", host, port);
		else if (random_below(4) == 0)
			ways[i] = graft_arena_printf(arena, "h%u/p%u/u%u/d%u/uu%u/dd%u", host, port, up, down, down,
						     random_below(3));
		else
			ways[i] = graft_arena_printf(arena, "h%u/p%u/u%u/d%u", host, port, up, down);
	}
	return make_machine(ways, nodes, n);
}

/* Every choice of up to eight GPUs is one of the best that there are. */
static void add_link(struct machine *machine, uint32_t from, uint32_t to, uint32_t count)
{
	struct graft_pci_place *place = &machine->tree.gpus[from];
	struct graft_nvml_link *link;

	if (from == to || links_between(place, &machine->tree.gpus[to]) > 0)
		return;
	link = graft_arena_push(arena, &place->links, &place->n_links, sizeof(*link));
	assert_non_null(link);
	*link = (struct graft_nvml_link){ machine->tree.gpus[to].bus_id, count };
}

static void add_random_link(struct machine *machine, uint32_t n)
{
	uint32_t from = random_below(n), to = random_below(n);

	add_link(machine, from, to, 1 + random_below(4));
}

/* Four GPUs, bridged in pairs across the sockets, on which PCI alone would say otherwise. */
static void test_bridged_pairs(void **state)
{
	static const char *const ways[] = { "p0/a", "p0/b", "p1/a", "p1/b" };
	static const uint32_t nodes[] = { 0, 0, 1, 1 };
	struct machine machine = make_machine(ways, nodes, 4);
	uint32_t set = 0;

	assert_int_equal(prefer_gpus(&machine, 0xf, 0, 2, &set), 0);
	assert_int_equal(set, 0x3);
	add_link(&machine, 0, 2, 4);
	add_link(&machine, 3, 1, 4);
	assert_int_equal(prefer_gpus(&machine, 0xf, 0, 2, &set), 0);
	assert_int_equal(set, 0x5);
	assert_int_equal(prefer_gpus(&machine, 0xf, 0x8, 2, &set), 0);
	assert_int_equal(set, 0xa);
}

static void test_brute_force(void **state)
{
	for (unsigned int turn = 0; turn < 600; turn++) {
		size_t n = 1 + random_below(8);
		struct machine machine = random_machine(n);
		uint32_t available = (1u << n) - 1, required = 0, set = 0, size;
		struct brute brute = { .machine = &machine };

		machine.tree.n_nvswitches = turn % 5 == 0;
		for (unsigned int i = 0; turn % 3 == 0 && i < 4 && n > 1; i++)
			add_random_link(&machine, (uint32_t)n);
		size = 1 + random_below((uint32_t)n);
		for (uint32_t i = 0; i < size && random_below(3) == 0; i++)
			required |= 1u << random_below((uint32_t)n);
		brute.size = size;
		brute.required = required;
		search(&brute, available, ((uint32_t)n + size - 1) / size, 0, 0, false);
		assert_true(brute.found);
		assert_int_equal(prefer_gpus(&machine, available, required, size, &set), 0);
		assert_int_equal(set_score(&machine, set), brute.best_score);
	}
}

/* Two sockets, two switches at each, four GPUs at each switch. */
static struct machine sixteen(void)
{
	const char *ways[GPUS_MAX];
	uint32_t nodes[GPUS_MAX];

	for (uint32_t i = 0; i < GPUS_MAX; i++) {
		ways[i] = graft_arena_printf(arena, "h%u/p/u/d%u", i / 4, i % 4);
		nodes[i] = i / 8;
	}
	return make_machine(ways, nodes, GPUS_MAX);
}

static void test_sixteen(void **state)
{
	struct machine machine = sixteen();
	uint32_t set = 0;

	assert_int_equal(prefer_gpus(&machine, 0xffff, 0, 4, &set), 0);
	assert_true(set == 0xf || set == 0xf0 || set == 0xf00 || set == 0xf000);
	assert_int_equal(prefer_gpus(&machine, 0xffff, 0, 8, &set), 0);
	assert_true(set == 0xff || set == 0xff00);
	assert_int_equal(prefer_gpus(&machine, 0xffff, 1u << 9, 2, &set), 0);
	assert_true((set & 0xf00) == set);
	/* With one that is required the others come from its socket, although sets of the first ones are tried first. */
	for (uint32_t size = 5; size <= 8; size++) {
		assert_int_equal(prefer_gpus(&machine, 0xffff, 1u << 15, size, &set), 0);
		assert_int_equal(set & 0xff00, set);
	}
	/* Three are left at one switch, four at another. */
	assert_int_equal(prefer_gpus(&machine, 0x0f07, 0, 4, &set), 0);
	assert_int_equal(set, 0xf00);
	/* With NVSwitches all links are alike, and only the place counts. */
	machine.tree.n_nvswitches = 6;
	assert_int_equal(prefer_gpus(&machine, 0xffff, 0, 8, &set), 0);
	assert_true(set == 0xff || set == 0xff00);
}

/* Any number of sixteen GPUs, whichever are required: five milliseconds. */
static void test_time(void **state)
{
	struct machine machine = sixteen();

	for (uint32_t size = 1; size <= GPUS_MAX; size++) {
		struct timespec begin, end;
		uint32_t set = 0;
		double best = 1e9, spent;

		for (int turn = 0; turn < 5; turn++) {
			assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin), 0);
			assert_int_equal(prefer_gpus(&machine, 0xffff, size > 4 ? 0x8001 : 0, size, &set), 0);
			assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end), 0);
			spent = (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
			best = spent < best ? spent : best;
		}
		print_message("# %u of 16: %.3f ms\n", size, best);
		assert_true(best < TIME_LIMIT_MS);
	}
}

/* More GPUs than cuts are made of: a set that is grown. */
static void test_many(void **state)
{
	const char *ways[24], *ids[24], *const *chosen;
	uint32_t nodes[24];
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_config config;
	struct graft_kube_preference preference = { .available = ids, .n_available = 24, .size = 6 };
	struct machine machine;

	for (uint32_t i = 0; i < 24; i++) {
		ways[i] = graft_arena_printf(arena, "h%u/p/u/d%u", i % 3, i / 3);
		nodes[i] = i % 3;
	}
	machine = make_machine(ways, nodes, 24);
	for (size_t i = 0; i < 24; i++)
		ids[i] = machine.resource.devices[i].id;
	graft_kube_config_default(&config);
	preference.required = &ids[4];
	preference.n_required = 1;
	assert_int_equal(
	    graft_kube_prefer(&config, &machine.resource, &machine.tree, &preference, arena, &chosen, &err), 0);
	assert_string_equal(chosen[0], "g4");
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(strtoul(chosen[i] + 1, NULL, 10) % 3, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_policies, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_bridged_pairs, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_brute_force, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_sixteen, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_time, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_many, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
