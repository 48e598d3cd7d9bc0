/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main: the order of things in nvidia-container-runtime (SPEC runtime-and-hook 3.1). Every call of an engine goes through here, `state`, `kill`
 * and `delete` as well, so what is not needed is not done.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/config.h"
#include "cli/runtime/create.h"
#include "cli/runtime/finish.h"
#include "cli/runtime/locate.h"
#include "cli/runtime/log.h"
#include "cli/runtime/low_level.h"
#include "cli/runtime/runtime.h"
#include "cli_version.h"

#define MEMORY_MAX ((size_t)256 << 20)

struct runtime {
	const char *mode; /* overrides the configured one; NULL = none */
	char **argv;
	struct graft_oci_arguments arguments;
	struct graft_config config;
	struct runtime_log log;
	struct graft_arena *arena;
};

/*
 * SECURITY: a caller that closed one of the standard descriptors must not make the next file that we open take its place and receive our
 * messages.
 */
static void open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
			return;
	}
}

/* SPEC 3.3: the low-level runtime prints its own version behind this. */
static void print_version(void)
{
	static const char *const build[] = { CLI_BUILD_DATE_AND_REVISION };

	(void)printf("NVIDIA Container Runtime version %s\ncommit: %s\nspec: 1.3.0\n", GRAFT_VERSION, build[1]);
	(void)fflush(stdout);
}

/* Becomes the low-level runtime; returns only when that fails. The environment and all descriptors that we did not open stay. */
static int become(const struct runtime *runtime, const char *path, bool script, struct graft_error *err)
{
	if (script && setenv(RUNTIME_WRAPPER_VARIABLE, path, 1) < 0)
		return graft_fail_memory(err);
	graft_debug(&runtime->log.log, "becoming '%s'", path);
	return low_level_become(path, runtime->argv, runtime->arena, err);
}

/* Edits the bundle, and stays for what has to wait. Returns 0 when there is nothing of that. */
static int create(struct runtime *runtime, const char *path, bool script, struct graft_error *err)
{
	const struct graft_oci_arguments *arguments = &runtime->arguments;
	const char *word = runtime->mode ? runtime->mode : runtime->config.runtime.mode;
	bool can_finish = runtime_can_finish(arguments, path, script);
	struct graft_oci_waiting waiting = { .plan = NULL };
	int status = 0, rc;

	if (runtime_edit_bundle(&runtime->config, word, path, arguments->bundle, &runtime->log.log, runtime->arena,
				can_finish ? &waiting : NULL, err) < 0)
		return -1;
	if (!waiting.plan)
		return 0;
	rc = runtime_finish(arguments, path, runtime->argv, &waiting, &runtime->log.log, runtime->arena, &status, err);
	graft_oci_waiting_done(&waiting);
	if (rc == 0)
		low_level_end_alike(status);
	return -1;
}

static int run(struct runtime *runtime, struct graft_error *err)
{
	const struct graft_oci_arguments *arguments = &runtime->arguments;
	const struct graft_log *log = &runtime->log.log;
	const char *path = NULL;
	bool script = false;

	if (arguments->version)
		print_version();
	if (cli_config_load(CLI_CONFIG_RUNTIME, NULL, runtime->arena, &runtime->config, err) < 0)
		return -1;
	runtime_log_start(&runtime->log, &runtime->config, arguments);
	graft_debug(log, "nvidia-container-runtime %s, configuration: %s", GRAFT_VERSION,
		    runtime->config.file ? runtime->config.file : "defaults");
	if (runtime_refuse_loop(&runtime->config, err) < 0 ||
	    runtime_find_low_level(&runtime->config, log, runtime->arena, &path, &script, err) < 0)
		return -1;
	if (arguments->version) {
		(void)putchar('\n');
		(void)fflush(stdout);
	}
	if (!arguments->create)
		graft_debug(log, "'%s' is forwarded as it is", arguments->subcommand ? arguments->subcommand : "");
	else if (create(runtime, path, script, err) < 0)
		return -1;
	return become(runtime, path, script, err);
}

int runtime_main(const char *mode, int argc, char **argv)
{
	struct runtime runtime = { .mode = mode, .argv = argv };
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	open_standard_descriptors();
	runtime.arena = graft_arena_new(MEMORY_MAX);
	rc = graft_oci_arguments_read(argc, argv, &runtime.arguments, &err);
	runtime_log_start(&runtime.log, NULL, &runtime.arguments);
	if (!runtime.arena)
		(void)graft_fail_memory(&err);
	else if (rc == 0)
		(void)run(&runtime, &err);
	runtime_log_fatal(&runtime.log, &err);
	(void)graft_arena_free(runtime.arena);
	return 1;
}
