/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_podman: Podman, which has no daemon: each command reads containers.conf of the distribution,
 * of the administrator and, for an ordinary user, of that user, each with its drop-ins.
 */
#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/look.h"
#include "formats/toml/toml.h"

static const struct graft_health_toml_keys podman_keys = {
	.runtimes = "engine.runtimes",
	.program = "",
	.default_runtime = "engine.runtime",
	.hooks = "engine.hooks_dir",
	.cdi = "engine.cdi_spec_dirs",
};

/* FILE and FILE.d/NAME.conf */
static void look_at_configs(struct graft_health_look *look, struct graft_health_engine *engine, const char *path)
{
	const char *directory = path ? graft_arena_printf(look->scratch, "%s.d", path) : NULL, **names = NULL;
	size_t n = 0;

	if (!directory)
		return;
	graft_health_read_settings(look, engine, path, &podman_keys);
	(void)graft_health_list(look, directory, &names, &n);
	for (size_t i = 0; i < n; i++) {
		path = graft_ends_with(names[i], ".conf")
			   ? graft_arena_printf(look->scratch, "%s/%s", directory, names[i])
			   : NULL;
		if (path)
			graft_health_read_settings(look, engine, path, &podman_keys);
	}
}

void graft_health_look_podman(struct graft_health_look *look)
{
	const struct graft_health_options *options = look->options;
	const char *program = graft_health_find_program(look, "podman", GRAFT_USUAL_PATH), *path = NULL;
	struct graft_health_engine *engine;

	if (!program)
		return;
	engine = graft_health_add_engine(look, GRAFT_ENGINE_PODMAN, "podman");
	if (!engine)
		return;
	engine->program = program;
	engine->running = true;
	engine->rootless = look->health->self.uid != 0;
	graft_health_look_daemon(look, engine, NULL);
	graft_health_look_version(look, engine);
	if (!graft_health_wants_config(look, engine))
		return;
	look_at_configs(look, engine, "/usr/share/containers/containers.conf");
	look_at_configs(look, engine, "/etc/containers/containers.conf");
	if (options->config_home)
		path = graft_arena_printf(look->scratch, "%s/containers/containers.conf", options->config_home);
	else if (options->home)
		path = graft_arena_printf(look->scratch, "%s/.config/containers/containers.conf", options->home);
	if (engine->rootless)
		look_at_configs(look, engine, path);
	graft_health_look_hooks(look, engine, GRAFT_HOOKS_OF_PACKAGES);
	graft_health_look_hooks(look, engine, GRAFT_HOOKS_OF_ADMINISTRATOR);
}
