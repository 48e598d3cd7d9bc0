/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main: the sequence of steps in nvidia-container-runtime (SPEC runtime-and-hook 3.1). Every call
 * of an engine goes through here, including `state`, `kill` and `delete`, so nothing is done that
 * is not needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/descriptors.h"
#include "cli/runtime/runtime.h"
#include "cli/runtime/runtime_log.h"
#include "start/after_create.h"
#include "start/config_file.h"
#include "start/installed.h"
#include "start/locate.h"
#include "start/low_level.h"
#include "start/start.h"
#include "start/version.h"

#define MEMORY_MAX ((size_t)256 << 20)

struct runtime {
	const char *mode; /* overrides the configured one; NULL = none */
	char **argv;
	struct graft_oci_arguments arguments;
	struct graft_config config;
	struct runtime_log log;
	struct graft_arena *arena;
};

/* SPEC runtime-and-hook 3.3: the low-level runtime prints its own version after this. */
static void print_runtime_version(void)
{
	(void)printf("NVIDIA Container Runtime version %s\ncommit: %s\nspec: 1.3.0\n", GRAFT_COMPATIBLE,
		     graft_version_revision());
	(void)fflush(stdout);
}

/*
 * Becomes the low-level runtime; returns only on failure. The environment and all descriptors that
 * we did not open are passed on.
 */
static int become_low_level(const struct runtime *runtime, const char *path, bool script, struct graft_error *err)
{
	if (script && setenv(GRAFT_WRAPPER_VARIABLE, path, 1) < 0)
		return graft_fail_memory(err);
	graft_debug(&runtime->log.log, "becoming '%s'", path);
	return graft_low_level_become(path, runtime->argv, runtime->arena, err);
}

/*
 * Edits the bundle. If work has to wait until the container is created, does all of it and exits;
 * returns 0 if there is no such work.
 */
static int create(struct runtime *runtime, const char *path, bool script, struct graft_error *err)
{
	const struct graft_oci_arguments *arguments = &runtime->arguments;
	const char *word = runtime->mode ? runtime->mode : runtime->config.runtime.mode;
	bool can_finish = graft_after_create_is_possible(arguments, path, script);
	struct graft_oci_waiting waiting = { .plan = NULL };
	int status = 0, rc;

	if (graft_start_edit_bundle(&runtime->config, word, path, arguments, &runtime->log.log, runtime->arena,
				    can_finish ? &waiting : NULL, err) < 0)
		return -1;
	if (!waiting.plan)
		return 0;
	rc = graft_after_create(arguments, path, runtime->argv, &waiting, &runtime->log.log, runtime->arena, &status,
				err);
	graft_oci_waiting_done(&waiting);
	if (rc == 0)
		graft_low_level_end_alike(status);
	return -1;
}

/*
 * SPEC installer-and-nri 4: on a node where an installer has put the runtime, other containers,
 * including the driver's own, start before the driver is loaded.
 */
static bool waits_for_driver(const struct runtime *runtime, const char *path)
{
	const char *own = graft_own_config(runtime->arena);

	if (!own || !runtime->config.file || strcmp(own, runtime->config.file) != 0 || graft_driver_is_loaded("/proc"))
		return false;
	(void)fprintf(stderr, "nvidia driver modules are not yet loaded, invoking %s directly\n", path);
	return true;
}

static int run_runtime(struct runtime *runtime, struct graft_error *err)
{
	const struct graft_oci_arguments *arguments = &runtime->arguments;
	const struct graft_log *log = &runtime->log.log;
	const char *path = NULL;
	bool script = false;

	if (arguments->version)
		print_runtime_version();
	if (graft_config_file_load(GRAFT_CONFIG_OF_RUNTIME, NULL, runtime->arena, &runtime->config, err) < 0)
		return -1;
	runtime_log_start(&runtime->log, &runtime->config, arguments);
	graft_debug(log, "nvidia-container-runtime %s, configuration: %s", GRAFT_COMPATIBLE,
		    runtime->config.file ? runtime->config.file : "defaults");
	/* Once for each container: the other commands would only repeat it. */
	if (arguments->create)
		graft_config_file_warn(&runtime->config, log);
	if (graft_locate_refuse_loop(&runtime->config, err) < 0 ||
	    graft_locate_low_level(&runtime->config, log, runtime->arena, &path, &script, err) < 0)
		return -1;
	if (arguments->version) {
		(void)putchar('\n');
		(void)fflush(stdout);
	}
	if (!arguments->create)
		graft_debug(log, "forwarding '%s' unchanged", arguments->subcommand ? arguments->subcommand : "");
	else if (!waits_for_driver(runtime, path) && create(runtime, path, script, err) < 0)
		return -1;
	return become_low_level(runtime, path, script, err);
}

int runtime_main(const char *mode, int argc, char **argv)
{
	struct runtime runtime = { .mode = mode, .argv = argv };
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	cli_open_standard_descriptors();
	runtime.arena = graft_arena_new(MEMORY_MAX);
	rc = graft_oci_arguments_read(argc, argv, &runtime.arguments, &err);
	runtime_log_start(&runtime.log, NULL, &runtime.arguments);
	if (!runtime.arena)
		(void)graft_fail_memory(&err);
	else if (rc == 0)
		(void)run_runtime(&runtime, &err);
	runtime_log_fatal(&runtime.log, &err);
	(void)graft_arena_free(runtime.arena);
	return 1;
}
