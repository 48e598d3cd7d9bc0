/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_list: nvidia-ctk cdi list (SPEC ctk-and-cdi 1.2): prints the names of the devices that
 * containers can request. Unusable specs cause warnings but do not change the exit status; `cdi
 * validate` checks them.
 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/ctk/cdi_file.h"
#include "cli/terminal.h"
#include "host/cdi_registry.h"

struct list_options {
	struct ctk_base base;
	struct ctk_list directories;
};

static const struct graft_option options[] = {
	CTK_CDI_DIRECTORIES_OPTION(struct list_options, directories),
};

/* Adds one line for each definition that conflicts with another and is therefore unusable. */
static int add_conflicts(struct ctk *ctk, struct graft_cdi_registry *registry,
			 const struct graft_cdi_definition *definitions, size_t n, struct graft_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct graft_cdi_definition *definition = &definitions[i];
		struct graft_cdi_problem *problem;

		if (definition->standing != GRAFT_CDI_CONFLICTING)
			continue;
		problem = graft_arena_push(ctk->arena, &registry->problems, &registry->n_problems, sizeof(*problem));
		if (!problem)
			return graft_fail_memory(err);
		problem->file = definition->spec->file;
		problem->why = graft_arena_printf(ctk->arena, "conflicting device \"%s\" (specs \"%s\", \"%s\")",
						  definition->name, definition->spec->file, definition->other->file);
	}
	return graft_arena_failed(ctk->arena) ? graft_fail_memory(err) : 0;
}

static void warn_of_problems(const struct ctk *ctk, const struct graft_cdi_registry *registry)
{
	if (registry->n_problems > 0)
		graft_warn(&ctk->log, "The following registry errors were reported:");
	for (size_t i = 0; i < registry->n_problems; i++)
		graft_warn(&ctk->log, "%s: [%s]", registry->problems[i].file, registry->problems[i].why);
}

/*
 * SECURITY: an engine that reads such a spec itself passes an image's variables to a program of the
 * host. The packages look for these lines during installation.
 */
static void warn_of_hooks(const struct ctk *ctk, const struct graft_cdi_registry *registry)
{
	for (size_t i = 0; i < registry->n_specs; i++) {
		const struct graft_cdi_hook *hook = graft_cdi_spec_find_open_hook(&registry->specs[i]);

		if (hook)
			graft_warn(&ctk->log,
				   "CDI spec %s has hooks without an environment (%s): an image's variables reach them "
				   "(CVE-2025-23266). Run 'nvidia-ctk cdi refresh' as root",
				   registry->specs[i].file, hook->path);
	}
}

/* Returns the next definition that counts, or `n`. */
static size_t find_counting(const struct graft_cdi_definition *definitions, size_t n, size_t i)
{
	while (i < n && definitions[i].standing != GRAFT_CDI_COUNTS)
		i++;
	return i;
}

static bool is_same_kind(const char *name, const char *other)
{
	size_t length = strcspn(name, "=");

	return length == strcspn(other, "=") && strncmp(name, other, length) == 0;
}

/* For programs: a name on each line. */
static size_t add_names(struct graft_buffer *out, const struct graft_cdi_definition *definitions, size_t n)
{
	size_t count = 0;

	for (size_t i = find_counting(definitions, n, 0); i < n; i = find_counting(definitions, n, i + 1), count++)
		graft_buffer_printf(out, "%s\n", definitions[i].name);
	return count;
}

/* For a person at a terminal: the names below their kinds, with the files that define them. */
static size_t add_tree(struct graft_buffer *out, const struct graft_cdi_definition *definitions, size_t n)
{
	const bool lines = cli_has_utf8();
	const char *kind = "";
	size_t count = 0, next;

	for (size_t i = find_counting(definitions, n, 0); i < n; i = next, count++) {
		const char *name = definitions[i].name;

		next = find_counting(definitions, n, i + 1);
		if (!is_same_kind(kind, name))
			graft_buffer_printf(out, "\033[1m%.*s\033[0m\n", (int)strcspn(name, "="), name);
		kind = name;
		graft_buffer_string(out, !lines                                                   ? "  "
					 : next < n && is_same_kind(name, definitions[next].name) ? "├─ "
												  : "└─ ");
		graft_buffer_printf(out, "%s  \033[2m%s\033[0m\n", name, definitions[i].spec->file);
	}
	return count;
}

static int list_cdi_devices(void *target, struct graft_error *err)
{
	const struct list_options *given = target;
	const struct ctk_list *directories = &given->directories;
	struct ctk *ctk = given->base.ctk;
	struct graft_buffer out = { .max = 0 };
	struct graft_cdi_registry registry;
	struct graft_cdi_definition *definitions;
	size_t n, n_devices;

	if (directories->n == 0)
		return graft_fail(err, GRAFT_INVALID, 0, "at least one CDI specification directory must be specified");
	if (graft_cdi_registry_read(directories->items, directories->n, NULL, 0, NULL, NULL, ctk->arena, &registry,
				    err) < 0 ||
	    graft_cdi_registry_definitions(&registry, ctk->arena, &definitions, &n, err) < 0 ||
	    add_conflicts(ctk, &registry, definitions, n, err) < 0)
		return -1;
	warn_of_problems(ctk, &registry);
	warn_of_hooks(ctk, &registry);
	n_devices = cli_has_colours(STDOUT_FILENO) ? add_tree(&out, definitions, n) : add_names(&out, definitions, n);
	graft_info(&ctk->log, "Found %zu CDI devices", n_devices);
	return ctk_print(ctk, &out);
}

const struct graft_command ctk_cdi_list = {
	CTK_COMMAND,
	.name = "list",
	.summary = "List the devices that CDI specs define",
	GRAFT_OPTIONS(options),
	CTK_WORK(list_cdi_devices, struct list_options, .directories = CTK_CDI_DIRECTORIES),
};
