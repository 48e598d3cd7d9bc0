/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_crio: CRI-O: its file, its drop-ins in the order of their names, and the hook files that it
 * shares with Podman.
 */
#include <string.h>

#include "base/cleanup.h"
#include "doctor/look.h"
#include "formats/toml/toml.h"

#define CONFIG   "/etc/crio/crio.conf"
#define DROP_INS "/etc/crio/crio.conf.d"

static const struct graft_health_toml_keys crio_keys = {
	.runtimes = "crio.runtime.runtimes",
	.program = ".runtime_path",
	.default_runtime = "crio.runtime.default_runtime",
	.hooks = "crio.runtime.hooks_dir",
	.cdi = "crio.runtime.cdi_spec_dirs",
};

void graft_health_look_crio(struct graft_health_look *look)
{
	const char *program = graft_health_find_program(look, "crio", GRAFT_USUAL_PATH), *path, **names = NULL;
	struct graft_health_engine *engine;
	size_t n = 0;

	if (!program && !graft_health_exists(look, CONFIG) && !graft_health_find_process(look, "crio"))
		return;
	engine = graft_health_add_engine(look, GRAFT_ENGINE_CRIO, "cri-o");
	if (!engine)
		return;
	engine->program = program;
	graft_health_look_daemon(look, engine, graft_health_find_process(look, "crio"));
	graft_health_look_version(look, engine);
	if (!graft_health_wants_config(look, engine))
		return;
	graft_health_read_settings(look, engine, CONFIG, &crio_keys);
	(void)graft_health_list(look, DROP_INS, &names, &n);
	for (size_t i = 0; i < n; i++) {
		path = graft_arena_printf(look->scratch, DROP_INS "/%s", names[i]);
		if (path)
			graft_health_read_settings(look, engine, path, &crio_keys);
	}
	graft_health_look_hooks(look, engine, GRAFT_HOOKS_OF_PACKAGES);
	graft_health_look_hooks(look, engine, GRAFT_HOOKS_OF_ADMINISTRATOR);
}
