/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_unknown: finds the keys and tables of a document that no program reads, most of them
 * misspelled. Programs ignore them, as always (SPEC runtime-and-hook 2.2); this file reports them.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/strings.h"
#include "request/config.h"

#define DEPTH_MAX 8

struct search {
	const struct graft_toml *toml;
	struct graft_arena *arena;
	struct graft_strings *unknown;
	bool shortage; /* memory was exhausted outside of the arena */
};

/* SPEC runtime-and-hook 2.4: keys of older releases, which may stay where they are. */
static const char *const old_keys[] = {
	"nvidia-container-runtime.discover-mode",
	"nvidia-container-runtime.experimental",
	"features.gds",
	"features.mofed",
	"features.nvswitch",
	"features.gdrcopy",
	"features.include-persistenced-socket",
};

/* Returns whether a part of a path is that of a key, or the same in upper case. */
static bool is_part(const char *part, const char *of_key, size_t length)
{
	size_t n = strlen(part);
	bool same, upper = true;

	if (n != length)
		return false;
	same = memcmp(part, of_key, n) == 0;
	for (size_t i = 0; i < n && upper; i++)
		upper = part[i] == (char)toupper((unsigned char)of_key[i]);
	return same || upper;
}

/* Returns the rest of a key's name after these parts, or NULL if it does not begin with them. */
static const char *after_parts(const char *key, const char *const *parts, size_t n_parts)
{
	for (size_t i = 0; i < n_parts; i++) {
		size_t length = strcspn(key, ".");

		if (!is_part(parts[i], key, length))
			return NULL;
		key += length;
		if (*key == '.')
			key++;
		else if (i + 1 < n_parts)
			return NULL;
	}
	return key;
}

static bool is_known(const char *const *parts, size_t n_parts, bool *ret_table)
{
	const char *rest;

	*ret_table = false;
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		rest = after_parts(graft_config_keys[i].name, parts, n_parts);
		if (rest && *rest == '\0')
			return true;
		*ret_table |= rest != NULL;
	}
	for (size_t i = 0; i < GRAFT_COUNT(old_keys); i++) {
		rest = after_parts(old_keys[i], parts, n_parts);
		if (rest && *rest == '\0')
			return true;
	}
	return *ret_table;
}

/*
 * What was probably meant: a name in the same table that differs in a few letters; otherwise a key
 * of the same name in another table.
 */
static const char *find_meant(struct search *search, const char *const *parts, size_t n_parts)
{
	struct graft_nearest_search beside = { .word = parts[n_parts - 1] };
	const char *elsewhere = NULL;

	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const char *name = graft_config_keys[i].name, *last = strrchr(name, '.');
		const char *rest = after_parts(name, parts, n_parts - 1);

		if (rest)
			graft_nearest_consider(&beside, graft_arena_strndup(search->arena, rest, strcspn(rest, ".")));
		if (!elsewhere && graft_nearest_distance(parts[n_parts - 1], last ? last + 1 : name) == 0)
			elsewhere = name;
	}
	return beside.best ? beside.best : elsewhere;
}

static void add_unknown(struct search *search, const char *path, bool table, const char *const *parts, size_t n_parts)
{
	const char *meant = find_meant(search, parts, n_parts), *text;
	unsigned int line = 0, column = 0;

	if (search->unknown->n >= GRAFT_CONFIG_UNKNOWN_MAX)
		return;
	graft_toml_position(search->toml, path, &line, &column);
	text = graft_arena_printf(search->arena, "%s: line %u: ignoring unknown %s '%s'%s%s%s",
				  graft_toml_name(search->toml), line, table ? "table" : "key", path,
				  meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "");
	if (text)
		(void)graft_arena_push_string(search->arena, &search->unknown->items, &search->unknown->n, text);
}

static void search_table(struct search *search, const char *path, const char **parts, size_t n_parts)
{
	struct graft_error err = { .status = GRAFT_OK };
	const char **names = NULL;
	size_t n = 0;

	if (n_parts >= DEPTH_MAX ||
	    graft_toml_get_names(search->toml, path[0] != '\0' ? path : NULL, search->arena, &names, &n, &err) < 0) {
		search->shortage |= err.status == GRAFT_NO_MEMORY;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		auto_buffer struct graft_buffer member = { .max = 0 };
		enum graft_toml_kind kind = GRAFT_TOML_ABSENT;
		bool table = false;

		graft_buffer_string(&member, path);
		graft_toml_add_name(&member, names[i]);
		parts[n_parts] = names[i];
		if (graft_buffer_failed(&member) ||
		    graft_toml_get_kind(search->toml, graft_buffer_text(&member), &kind, &err) < 0) {
			search->shortage |= graft_buffer_failed(&member) || err.status == GRAFT_NO_MEMORY;
			continue;
		}
		if (!is_known(parts, n_parts + 1, &table))
			add_unknown(search, graft_buffer_text(&member), kind == GRAFT_TOML_TABLE, parts, n_parts + 1);
		else if (table && kind == GRAFT_TOML_TABLE)
			search_table(search, graft_buffer_text(&member), parts, n_parts + 1);
	}
}

int graft_config_find_unknown(const struct graft_toml *toml, struct graft_arena *arena,
			      struct graft_strings *ret_unknown, struct graft_error *err)
{
	struct search search = { .toml = toml, .arena = arena, .unknown = ret_unknown };
	const char *parts[DEPTH_MAX];

	*ret_unknown = (struct graft_strings){ .n = 0 };
	search_table(&search, "", parts, 0);
	return search.shortage || graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
