/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_list: nvidia-ctk cdi list (SPEC ctk-and-cdi 1.2): the names of the devices that containers can ask for. Specs that cannot be used are warnings; the
 * exit status does not tell them, `cdi validate` does.
 */
#include "base/cleanup.h"
#include "cli/ctk/cdi_file.h"
#include "host/cdi_registry.h"

struct list_options {
	struct ctk_base base;
	struct ctk_list directories;
};

static const struct graft_option options[] = {
	CTK_CDI_DIRECTORIES_OPTION(struct list_options, directories),
};

/* One line for each definition that nobody can use. */
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

static int list(struct ctk *ctk, const struct ctk_list *directories)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };
	struct graft_cdi_registry registry;
	struct graft_cdi_definition *definitions;
	size_t n, n_devices = 0;

	if (directories->n == 0)
		(void)graft_fail(&err, GRAFT_INVALID, 0, "at least one CDI specification directory must be specified");
	if (err.status != GRAFT_OK ||
	    graft_cdi_registry_read(directories->items, directories->n, NULL, 0, NULL, ctk->arena, &registry, &err) <
		0 ||
	    graft_cdi_registry_definitions(&registry, ctk->arena, &definitions, &n, &err) < 0 ||
	    add_conflicts(ctk, &registry, definitions, n, &err) < 0)
		return ctk_fail(ctk, &err, "%s", "");
	warn_of_problems(ctk, &registry);
	for (size_t i = 0; i < n; i++) {
		if (definitions[i].standing != GRAFT_CDI_COUNTS)
			continue;
		graft_buffer_printf(&out, "%s\n", definitions[i].name);
		n_devices++;
	}
	graft_info(&ctk->log, "Found %zu CDI devices", n_devices);
	return ctk_print(ctk, &out);
}

static int run(void *context, int argc, char **argv)
{
	struct list_options given = { .directories = CTK_CDI_DIRECTORIES };
	int first, status = 0;

	if (ctk_parse(context, &ctk_cdi_list, &given, argc, argv, &first, &status) < 0)
		return status;
	return list(context, &given.directories);
}

const struct graft_command ctk_cdi_list = {
	CTK_COMMAND,
	.name = "list",
	.summary = "List the devices that CDI specs define",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.run = run,
};
