/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_values: finds the settings whose value no program understands. Most programs continue
 * without the setting, as always (SPEC runtime-and-hook 2.2); this file reports it.
 */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/strings.h"
#include "formats/cdi/cdi.h"
#include "request/config.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* clang-format off */
static const struct rule {
	const char *key;
	const char *const *words; /* NULL: a kind of CDI device */
	bool separated;           /* a string of words separated by commas; may be empty */
	bool any_case;
} rules[] = {
	{ .key = "supported-driver-capabilities", .separated = true,
	  .words = WORDS("all", "compat32", "compute", "display", "graphics", "ngx", "utility", "video") },
	{ .key = "nvidia-container-runtime.log-level", .any_case = true,
	  .words = WORDS("error", "warning", "warn", "info", "debug", "panic", "fatal", "trace") },
	{ .key = "nvidia-container-runtime.mode", .words = WORDS("auto", "legacy", "cdi", "jit-cdi", "csv") },
	{ .key = "nvidia-container-runtime.modes.cdi.default-kind" },
	{ .key = "nvidia-container-runtime.modes.jit-cdi.nvcdi-disable-hooks",
	  .words = WORDS("all", "create-symlinks", "update-ldcache", "enable-cuda-compat",
			 "disable-device-node-modification", "update-application-profile", "chmod") },
	{ .key = "nvidia-container-runtime.modes.legacy.cuda-compat-mode",
	  .words = WORDS("ldconfig", "mount", "hook", "disabled") },
	{ .key = "graft.leases.mode", .words = WORDS("off", "on", "enforce") },
	{ .key = "graft.leases.sharing", .words = WORDS("time-slice", "mps") },
	{ .key = "nri.environment", .words = WORDS("allotted", "accept", "ignore") },
	{ .key = "nri.refused", .words = WORDS("error", "skip") },
	{ .key = "graft.leases.busy", .words = WORDS("leases", "open") },
	{ .key = "graft.leases.order", .words = WORDS("fair", "fifo") },
};
/* clang-format on */

struct search {
	const struct graft_config *config;
	struct graft_arena *arena;
	struct graft_config_mistake *mistakes;
	size_t n;
};

static const struct rule *find_rule(const char *key)
{
	for (size_t i = 0; i < GRAFT_COUNT(rules); i++) {
		if (strcmp(rules[i].key, key) == 0)
			return &rules[i];
	}
	return NULL;
}

static bool is_understood(const struct rule *rule, const char *value, struct graft_arena *arena)
{
	const char *name;

	if (!rule->words) {
		name = graft_arena_printf(arena, "%s=x", value);
		return !name || graft_cdi_is_qualified(name);
	}
	for (size_t i = 0; rule->words[i]; i++) {
		if ((rule->any_case ? strcasecmp : strcmp)(rule->words[i], value) == 0)
			return true;
	}
	return false;
}

/* "a, b or c (did you mean 'b'?)" */
static const char *describe_allowed(const struct rule *rule, const char *value, struct graft_arena *arena)
{
	const char *text = "";
	size_t n = 0;

	if (!rule->words)
		return "VENDOR/CLASS";
	for (; text && rule->words[n]; n++)
		text = graft_arena_printf(arena, "%s%s%s", text,
					  n == 0               ? ""
					  : rule->words[n + 1] ? ", "
							       : " or ",
					  rule->words[n]);
	return text ? graft_arena_printf(arena, "%s%s", text, graft_nearest_hint(rule->words, n, value, arena)) : NULL;
}

static void check_value(struct search *search, const struct rule *rule, const struct graft_config_key *key,
			const char *value)
{
	struct graft_config_mistake *mistake;

	if (is_understood(rule, value, search->arena))
		return;
	mistake = graft_arena_push(search->arena, &search->mistakes, &search->n, sizeof(*mistake));
	if (mistake)
		*mistake = (struct graft_config_mistake){ .key = key->name,
							  .value = value,
							  .allowed = describe_allowed(rule, value, search->arena),
							  .standard = key->standard ? key->standard[0] : "" };
}

static void check_separated(struct search *search, const struct rule *rule, const struct graft_config_key *key,
			    const char *list)
{
	while (*list != '\0') {
		size_t length = strcspn(list, ",");
		const char *word = graft_arena_strndup(search->arena, list, length);

		if (word && length > 0)
			check_value(search, rule, key, word);
		list += length + (list[length] == ',');
	}
}

static void check_setting(struct search *search, const struct graft_config_key *key)
{
	const struct rule *rule = find_rule(key->name);
	const char *slot = (const char *)search->config + key->offset;
	const struct graft_strings *list = (const void *)slot;
	const char *value;

	if (!rule)
		return;
	if (key->kind == GRAFT_CONFIG_STRINGS) {
		for (size_t i = 0; i < list->n; i++)
			check_value(search, rule, key, list->items[i]);
		return;
	}
	value = *(const char *const *)slot;
	if (!value)
		return;
	if (rule->separated)
		check_separated(search, rule, key, value);
	else
		check_value(search, rule, key, value);
}

int graft_config_find_mistakes(const struct graft_config *config, struct graft_arena *arena,
			       struct graft_config_mistake **ret_mistakes, size_t *ret_n, struct graft_error *err)
{
	struct search search = { .config = config, .arena = arena };

	for (size_t i = 0; i < graft_config_n_keys; i++)
		check_setting(&search, &graft_config_keys[i]);
	*ret_mistakes = search.mistakes;
	*ret_n = search.n;
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
