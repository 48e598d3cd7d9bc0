/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_simplify: handles one list at a time. There is a row for each kind of item: where its list
 * is, when two items are equal, and how they are sorted.
 */
#include "formats/cdi/cdi_simplify.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/tree/tree.h"

/* --- when two items are the same --- */

static bool same_texts(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	bool same = n_a == n_b;

	for (size_t i = 0; i < n_a && same; i++)
		same = strcmp(a[i], b[i]) == 0;
	return same;
}

static bool same_variable(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
}

static bool same_node(const void *a, const void *b)
{
	const struct graft_cdi_node *x = a, *y = b;

	return graft_is_same_text(x->path, y->path) && graft_is_same_text(x->host_path, y->host_path) &&
	       graft_is_same_text(x->type, y->type) && x->has_numbers == y->has_numbers && x->major == y->major &&
	       x->minor == y->minor && x->has_mode == y->has_mode && x->mode == y->mode &&
	       graft_is_same_text(x->permissions, y->permissions) && x->has_uid == y->has_uid && x->uid == y->uid &&
	       x->has_gid == y->has_gid && x->gid == y->gid;
}

static bool same_net_device(const void *a, const void *b)
{
	const struct graft_cdi_net_device *x = a, *y = b;

	return graft_is_same_text(x->host_name, y->host_name) && graft_is_same_text(x->name, y->name);
}

static bool same_mount(const void *a, const void *b)
{
	const struct graft_cdi_mount *x = a, *y = b;

	return graft_is_same_text(x->host_path, y->host_path) &&
	       graft_is_same_text(x->container_path, y->container_path) && graft_is_same_text(x->type, y->type) &&
	       same_texts(x->options, x->n_options, y->options, y->n_options);
}

static bool same_hook(const void *a, const void *b)
{
	const struct graft_cdi_hook *x = a, *y = b;

	return graft_is_same_text(x->stage, y->stage) && graft_is_same_text(x->path, y->path) &&
	       x->has_timeout == y->has_timeout && x->timeout == y->timeout &&
	       same_texts(x->args, x->n_args, y->args, y->n_args) && same_texts(x->env, x->n_env, y->env, y->n_env);
}

static bool same_group(const void *a, const void *b)
{
	return *(const uint32_t *)a == *(const uint32_t *)b;
}

/* --- order --- */

static int compare_cdi_nodes(const void *a, const void *b)
{
	return graft_path_compare(((const struct graft_cdi_node *)a)->path, ((const struct graft_cdi_node *)b)->path);
}

static int compare_mounts(const void *a, const void *b)
{
	return graft_path_compare(((const struct graft_cdi_mount *)a)->container_path,
				  ((const struct graft_cdi_mount *)b)->container_path);
}

static int compare_groups(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_cdi_devices(const void *a, const void *b)
{
	return strcmp(((const struct graft_cdi_device *)a)->name, ((const struct graft_cdi_device *)b)->name);
}

/* --- the lists --- */

#define LIST(m, count)                                                                \
	offsetof(struct graft_cdi_edits, m), offsetof(struct graft_cdi_edits, count), \
	    sizeof(*((struct graft_cdi_edits *)NULL)->m)

/* clang-format off */
static const struct list {
	size_t items, n, size;
	bool (*same)(const void *a, const void *b);
	int (*compare)(const void *a, const void *b); /* NULL: the order is significant */
	/*
	 * Items of this kind are removed from a device if all devices get them anyway, and a device
	 * is only valid if it has any.
	 */
	bool counts;
} lists[] = {
	{ LIST(env, n_env), same_variable, NULL, true },
	{ LIST(nodes, n_nodes), same_node, compare_cdi_nodes, true },
	{ LIST(net_devices, n_net_devices), same_net_device, NULL, false },
	{ LIST(mounts, n_mounts), same_mount, compare_mounts, true },
	{ LIST(hooks, n_hooks), same_hook, NULL, true },
	{ LIST(gids, n_gids), same_group, compare_groups, false },
};
/* clang-format on */

/* A list as bytes; its row defines their meaning. */
struct view {
	char *items;
	size_t n;
};

static struct view get_edit_list(const struct graft_cdi_edits *edits, const struct list *list)
{
	struct view view;

	memcpy(&view.items, (const char *)edits + list->items, sizeof(view.items));
	memcpy(&view.n, (const char *)edits + list->n, sizeof(view.n));
	return view;
}

static void set_edit_list(struct graft_cdi_edits *edits, const struct list *list, struct view view)
{
	memcpy((char *)edits + list->items, &view.items, sizeof(view.items));
	memcpy((char *)edits + list->n, &view.n, sizeof(view.n));
}

static bool has_edit_item(const struct list *list, struct view view, const void *item)
{
	for (size_t i = 0; i < view.n; i++) {
		if (list->same(view.items + i * list->size, item))
			return true;
	}
	return false;
}

union largest_item {
	struct graft_cdi_node node;
	struct graft_cdi_mount mount;
};

/* Returns the place of item `n` among the sorted items before it: after those equal to it. */
static size_t find_sorted_place(const struct list *list, struct view view, size_t n)
{
	const char *item = view.items + n * list->size;
	size_t low = 0, high = n;

	while (low < high) {
		/* Most items are in place already. */
		size_t at = high == n && low == 0 ? n - 1 : low + (high - low) / 2;

		if (list->compare(view.items + at * list->size, item) > 0)
			high = at;
		else
			low = at + 1;
	}
	return low;
}

/*
 * An insertion sort, because it is stable; qsort(3) is stable only in some C libraries. The lists
 * have some dozens of items.
 */
static void sort_edit_list(const struct list *list, struct view view)
{
	char moved[sizeof(union largest_item)];

	if (!list->compare)
		return;
	for (size_t i = 1; i < view.n; i++) {
		char *item = view.items + i * list->size,
		     *place = view.items + find_sorted_place(list, view, i) * list->size;

		memcpy(moved, item, list->size);
		memmove(place + list->size, place, (size_t)(item - place));
		memcpy(place, moved, list->size);
	}
}

void graft_cdi_edits_sort(struct graft_cdi_edits *edits)
{
	for (size_t i = 0; i < GRAFT_COUNT(lists); i++)
		sort_edit_list(&lists[i], get_edit_list(edits, &lists[i]));
}

/* Picks the items of `from` that are neither in `without` nor picked already. */
static int pick(const struct list *list, struct view from, struct view without, struct graft_arena *arena,
		struct view *ret_view)
{
	struct view picked = { .items = graft_arena_list(arena, from.n, list->size) };

	if (from.n > 0 && !picked.items)
		return -1;
	for (size_t i = 0; i < from.n; i++) {
		const char *item = from.items + i * list->size;

		if (!has_edit_item(list, without, item) && !has_edit_item(list, picked, item))
			memcpy(picked.items + picked.n++ * list->size, item, list->size);
	}
	*ret_view = picked;
	return 0;
}

static int simplify_edits(struct graft_cdi_edits *edits, const struct graft_cdi_edits *common,
			  struct graft_arena *arena)
{
	struct graft_cdi_edits simple = *edits;
	bool empty = true;

	for (size_t i = 0; i < GRAFT_COUNT(lists); i++) {
		struct view view, without = { .n = 0 };

		if (common && lists[i].counts)
			without = get_edit_list(common, &lists[i]);
		if (pick(&lists[i], get_edit_list(edits, &lists[i]), without, arena, &view) < 0)
			return -1;
		sort_edit_list(&lists[i], view);
		set_edit_list(&simple, &lists[i], view);
		empty = empty && (view.n == 0 || !lists[i].counts);
	}
	/* SPEC ctk-and-cdi 4.7: a device without edits is invalid. */
	if (empty && common)
		return simplify_edits(edits, NULL, arena);
	*edits = simple;
	return 0;
}

int graft_cdi_simplify(struct graft_cdi_spec *spec, struct graft_arena *arena, struct graft_error *err)
{
	if (simplify_edits(&spec->edits, NULL, arena) < 0)
		return graft_fail_memory(err);
	for (size_t i = 0; i < spec->n_devices; i++) {
		if (simplify_edits(&spec->devices[i].edits, &spec->edits, arena) < 0)
			return graft_fail_memory(err);
	}
	if (spec->n_devices > 1)
		qsort(spec->devices, spec->n_devices, sizeof(*spec->devices), compare_cdi_devices);
	return 0;
}

/* --- one for all --- */

static int append_edit_list(const struct list *list, const struct graft_cdi_edits *from, struct graft_arena *arena,
			    struct graft_cdi_edits *to)
{
	struct view items = get_edit_list(from, list), all = get_edit_list(to, list);

	for (size_t i = 0; i < items.n; i++) {
		char *slot = graft_arena_push(arena, &all.items, &all.n, list->size);

		if (!slot)
			return -1;
		memcpy(slot, items.items + i * list->size, list->size);
	}
	set_edit_list(to, list, all);
	return 0;
}

static int merge(const struct graft_cdi_spec *spec, struct graft_arena *arena, struct graft_cdi_edits *edits)
{
	for (size_t i = 0; i < spec->n_devices; i++) {
		const struct graft_cdi_edits *from = &spec->devices[i].edits;

		for (size_t j = 0; j < GRAFT_COUNT(lists); j++) {
			if (append_edit_list(&lists[j], from, arena, edits) < 0)
				return -1;
		}
		if (from->rdt)
			edits->rdt = from->rdt;
	}
	return 0;
}

int graft_cdi_add_merged(struct graft_cdi_spec *spec, const char *name, struct graft_arena *arena,
			 struct graft_error *err)
{
	struct graft_cdi_device all = { .name = name }, *slot;

	if (graft_cdi_check_device(name, err) < 0)
		return -1;
	for (size_t i = 0; i < spec->n_devices; i++) {
		if (strcmp(spec->devices[i].name, name) == 0)
			return 0;
	}
	if (merge(spec, arena, &all.edits) < 0)
		return graft_fail_memory(err);
	slot = graft_arena_push(arena, &spec->devices, &spec->n_devices, sizeof(*slot));
	if (!slot)
		return graft_fail_memory(err);
	*slot = all;
	return 0;
}
