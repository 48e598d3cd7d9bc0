/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: the table of SPEC runtime-and-hook 11.3, row by row. Knows neither where the values come
 * from nor who uses them.
 */
#include "cli/hook/command.h"

#include <string.h>

#include "base/cleanup.h"

struct words {
	struct graft_arena *arena;
	const char **items;
	size_t n;
};

/* A failure to allocate is recorded in the arena. */
static void add_cli_argument(struct words *words, const char *word)
{
	if (word)
		(void)graft_arena_push_string(words->arena, &words->items, &words->n, word);
}

static void add_if(struct words *words, bool condition, const char *word)
{
	if (condition)
		add_cli_argument(words, word);
}

/* Adds "--name=value", unless the value is NULL or empty. */
static void add_value_argument(struct words *words, const char *name, const char *value)
{
	if (value && value[0] != '\0')
		add_cli_argument(words, graft_arena_printf(words->arena, "--%s=%s", name, value));
}

/* Joins strings with commas. */
static const char *join_strings(struct graft_arena *arena, const struct graft_strings *strings)
{
	size_t length = 1;
	char *text, *at;

	for (size_t i = 0; i < strings->n; i++)
		length += strlen(strings->items[i]) + 1;
	at = text = graft_arena_alloc(arena, length);
	for (size_t i = 0; at && i < strings->n; i++) {
		if (i > 0)
			*at++ = ',';
		at = stpcpy(at, strings->items[i]);
	}
	return text;
}

static void add_global(struct words *words, const struct hook_request *r)
{
	const struct graft_config *config = r->config;

	add_value_argument(words, "root", config->cli.root);
	add_if(words, config->cli.load_kmods, "--load-kmods");
	add_if(words, config->features.disable_imex_channel_creation, "--no-create-imex-channels");
	add_if(words, config->cli.no_pivot, "--no-pivot");
	add_value_argument(words, "debug", r->debug ? "/dev/stderr" : config->cli.debug);
	add_value_argument(words, "ldcache", config->cli.ldcache);
	add_value_argument(words, "user", config->cli.user);
}

/* SPEC runtime-and-hook 11.6 */
static const char *compat_mode(const struct graft_config *config)
{
	static const struct {
		const char *configured, *mode;
	} rows[] = {
		{ "ldconfig", "ldconfig" },
		{ "mount", "mount" },
		{ "disabled", "disabled" },
		{ "hook", "disabled" }, /* the runtime added a hook of its own for that */
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (strcmp(config->runtime.cuda_compat_mode, rows[i].configured) == 0)
			return rows[i].mode;
	}
	return config->features.allow_cuda_compat_libs_from_container ? NULL : "disabled";
}

static const char *device_list(const struct words *words, const struct graft_container *container)
{
	bool none = container->devices.n == 1 && strcmp(container->devices.items[0], "none") == 0;

	return none ? NULL : join_strings(words->arena, &container->devices);
}

/* In alphabetical order. */
static void add_capability_arguments(struct words *words, unsigned int capabilities)
{
	static const struct {
		unsigned int capability;
		const char *option;
	} rows[] = {
		{ GRAFT_CAP_COMPAT32, "--compat32" }, { GRAFT_CAP_COMPUTE, "--compute" },
		{ GRAFT_CAP_DISPLAY, "--display" },   { GRAFT_CAP_GRAPHICS, "--graphics" },
		{ GRAFT_CAP_NGX, "--ngx" },           { GRAFT_CAP_UTILITY, "--utility" },
		{ GRAFT_CAP_VIDEO, "--video" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		add_if(words, (capabilities & rows[i].capability) != 0, rows[i].option);
}

static void add_configure(struct words *words, const struct hook_request *r)
{
	const struct graft_container *container = r->container;

	add_cli_argument(words, "configure");
	add_value_argument(words, "cuda-compat-mode", compat_mode(r->config));
	add_value_argument(words, "ldconfig", r->ldconfig);
	add_if(words, r->config->cli.no_cgroups, "--no-cgroups");
	add_value_argument(words, "device", device_list(words, container));
	add_value_argument(words, "mig-config", container->mig_config);
	add_value_argument(words, "mig-monitor", container->mig_monitor);
	add_value_argument(words, "imex-channel", join_strings(words->arena, &container->imex_channels));
	add_capability_arguments(words, r->capabilities);
	for (size_t i = 0; i < container->requirements.n; i++)
		add_cli_argument(words,
				 graft_arena_printf(words->arena, "--require=%s", container->requirements.items[i]));
	add_cli_argument(words, graft_arena_printf(words->arena, "--pid=%lld", (long long)r->pid));
	add_cli_argument(words, r->rootfs);
}

/* The strings as a NULL-terminated vector for execve(2) or main(); NULL: out of memory. */
static char **as_vector(const struct words *words, struct graft_arena *arena)
{
	char **vector = graft_arena_list(arena, words->n + 1, sizeof(*vector));

	if (!vector || graft_arena_failed(arena))
		return NULL;
	if (words->n > 0)
		memcpy(vector, words->items, words->n * sizeof(*vector));
	return vector;
}

int hook_command_make(const struct hook_request *request, struct graft_arena *arena, char ***ret_argv, int *ret_argc,
		      struct graft_error *err)
{
	struct words words = { .arena = arena };

	add_cli_argument(&words, request->program);
	add_global(&words, request);
	add_configure(&words, request);
	*ret_argv = as_vector(&words, arena);
	*ret_argc = (int)words.n;
	return *ret_argv ? 0 : graft_fail_memory(err);
}

static bool is_same_variable(const char *a, const char *b)
{
	size_t length = strcspn(a, "=");

	return strncmp(a, b, length) == 0 && (b[length] == '=' || b[length] == '\0');
}

/* The last change of the variable in `entry`, searching from `first` on, or NULL. */
static const char *find_change(const struct graft_strings *changes, size_t first, const char *entry)
{
	for (size_t i = changes->n; i > first; i--) {
		if (is_same_variable(changes->items[i - 1], entry))
			return changes->items[i - 1];
	}
	return NULL;
}

char **hook_environment_make(char *const *environment, const struct graft_strings *changes, struct graft_arena *arena)
{
	struct words words = { .arena = arena };

	for (size_t i = 0; environment[i]; i++)
		add_if(&words, !find_change(changes, 0, environment[i]), environment[i]);
	for (size_t i = 0; i < changes->n; i++)
		add_if(&words, !find_change(changes, i + 1, changes->items[i]), changes->items[i]);
	return as_vector(&words, arena);
}
