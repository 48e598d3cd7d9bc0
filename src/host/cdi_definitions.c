/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_definitions: decides, for all devices of a registry at once, which of several definitions of
 * a device applies.
 */
#include <stdlib.h>
#include <string.h>

#include "host/cdi_registry.h"

static size_t priority_of(const struct graft_cdi_registry *registry, const struct graft_cdi_definition *definition)
{
	return registry->priorities[definition->spec - registry->specs];
}

/* Specs are stored in ascending order of priority, so comparing addresses compares priorities. */
static int compare_cdi_definitions(const void *a, const void *b)
{
	const struct graft_cdi_definition *x = a, *y = b;
	int names = strcmp(x->name, y->name);

	return names != 0 ? names : (x->spec > y->spec) - (x->spec < y->spec);
}

/* Judges all definitions of one name: the last one applies if no other has its priority. */
static void judge_cdi_definitions(const struct graft_cdi_registry *registry, struct graft_cdi_definition *group,
				  size_t n)
{
	struct graft_cdi_definition *last = &group[n - 1];
	size_t highest = priority_of(registry, last);

	for (size_t i = 0; i + 1 < n; i++) {
		bool equal = priority_of(registry, &group[i]) == highest;

		group[i].standing = equal ? GRAFT_CDI_CONFLICTING : GRAFT_CDI_OVERRIDDEN;
		group[i].other = last->spec;
		if (equal && last->standing == GRAFT_CDI_COUNTS) {
			last->standing = GRAFT_CDI_CONFLICTING;
			last->other = group[i].spec;
		}
	}
}

int graft_cdi_registry_definitions(const struct graft_cdi_registry *registry, struct graft_arena *arena,
				   struct graft_cdi_definition **ret_definitions, size_t *ret_n,
				   struct graft_error *err)
{
	struct graft_cdi_definition *items, *item;
	size_t n = 0;

	for (size_t i = 0; i < registry->n_specs; i++)
		n += registry->specs[i].n_devices;
	items = item = graft_arena_list(arena, n, sizeof(*items));
	for (size_t i = 0; items && i < registry->n_specs; i++) {
		const struct graft_cdi_spec *spec = &registry->specs[i];

		for (size_t j = 0; j < spec->n_devices; j++, item++) {
			item->spec = spec;
			item->name = graft_arena_printf(arena, "%s/%s=%s", spec->vendor, spec->class_,
							spec->devices[j].name);
		}
	}
	if ((n > 0 && !items) || graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (n > 0)
		qsort(items, n, sizeof(*items), compare_cdi_definitions);
	for (size_t begin = 0, end; begin < n; begin = end) {
		for (end = begin + 1; end < n && strcmp(items[begin].name, items[end].name) == 0;)
			end++;
		judge_cdi_definitions(registry, items + begin, end - begin);
	}
	*ret_definitions = items;
	*ret_n = n;
	return 0;
}
