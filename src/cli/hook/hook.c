/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook: the steps of `prestart`, in the order of SPEC runtime-and-hook 11.2. Other modules do the
 * steps; this file knows their order and the hints.
 */
#include "cli/hook/hook.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apply/oci/oci_edits.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/root.h"
#include "cli/cli.h"
#include "cli/hook/command.h"
#include "cli/hook/state.h"
#include "host/platform.h"
#include "request/claim.h"
#include "start/config_file.h"
#include "start/share_mps.h"
#include "start/version.h"

/* state, config.json and config.toml at their maximum size, and what is parsed from them */
#define ARENA_MAX ((size_t)256 << 20)

struct hook {
	struct cli cli;
	struct hook_environment *environment;
	const struct hook_arguments *arguments;
	struct graft_arena *arena;
	struct graft_config config;
	struct graft_oci_state state;
	struct graft_json_document *document; /* owned; holds the strings of `spec` */
	struct graft_oci_spec spec;
	struct graft_container container;
	const char *bundle;
	unsigned int capabilities;
	char hint[256]; /* a hint made at run time */
};

/* Engines show a single line, so it has to hold both the error and the hint. */
static int fail_hook(const struct hook *h, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx) + 128];

	(void)graft_error_text(err, text, sizeof(text));
	graft_log_write(h->cli.log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s [%s]", text,
			graft_status_name(err->status));
	(void)fprintf(stderr, HOOK_PROGRAM ": %s; %s\n", text, graft_error_hint(err));
	return 1;
}

/* ---- steps ---- */

static int load_config(struct hook *h, struct graft_error *err)
{
	static const char correct_file[] = "Correct the file, or remove it to use the defaults.";
	const struct graft_container none = { .wants_devices = false };
	unsigned int capabilities;

	if (graft_config_file_load(GRAFT_CONFIG_OF_HOOK, h->arguments->config, h->arena, &h->config, err) < 0)
		return graft_with_hint(err, correct_file);
	if (graft_container_capabilities(&none, h->config.supported_driver_capabilities, &capabilities, err) < 0) {
		(void)graft_wrap(err, "%s", h->config.file ? h->config.file : "built-in configuration");
		return graft_with_hint(err, correct_file);
	}
	if (h->arguments->debug)
		cli_open_log_file(&h->cli, "/dev/stderr");
	else if (h->config.cli.debug[0] != '\0')
		cli_open_log_file(&h->cli, h->config.cli.debug);
	graft_config_file_warn(&h->config, h->cli.log);
	return 0;
}

/*
 * Runs before config.toml is read, since a variable may name that file, and state and bundle
 * determine which variables are trusted.
 */
static int read_bundle(struct hook *h, struct graft_error *err)
{
	if (hook_state_read(STDIN_FILENO, h->arena, &h->state, err) < 0)
		return graft_with_hint(
		    err, "An OCI runtime must run the hook, with the container's state on standard input.");
	h->bundle = hook_bundle(&h->state, h->arena, err);
	/* SECURITY: the working directory may be in the image. */
	if (h->bundle && chdir("/") < 0)
		return graft_fail_errno(err, errno, "chdir failed: /");
	if (!h->bundle || hook_spec_read(h->bundle, h->arena, &h->document, &h->spec, err) < 0 ||
	    hook_environment_believe(h->environment, h->document, h->arena, err) < 0)
		return graft_with_hint(err, "Check the bundle that the container runtime made.");
	return 0;
}

static int read_container(struct hook *h, struct graft_error *err)
{
	if (graft_container_read(&h->spec, &h->config, false, h->cli.log, h->arena, &h->container, err) < 0)
		return graft_with_hint(err, "Correct the NVIDIA_* variables of the container.");
	return 0;
}

/* What the hook of a CDI device asks for, instead of the container's variables. */
static int set_lease_claim(struct hook *h, struct graft_error *err)
{
	const struct hook_arguments *given = h->arguments;
	const char *claim = given->claim;

	if (graft_start_lease_require(&h->config, err) < 0)
		return -1;
	if (!claim)
		claim = graft_arena_printf(h->arena, "any:%s", given->count ? given->count : "1");
	h->container.devices = (struct graft_strings){ .n = 0 };
	h->container.wants_devices = true;
	h->container.origin_name = "a CDI device";
	if (!claim || !graft_arena_push_string(h->arena, &h->container.devices.items, &h->container.devices.n, claim))
		return graft_fail_memory(err);
	/* Anything else would be the name of a device, for which no lease is taken. */
	if (!graft_claim_is_in(&h->container.devices)) {
		(void)graft_fail(err, GRAFT_INVALID, 0, "'%.64s' is not a claim", claim);
		return graft_with_hint(err, "Write 'any:2' or 'mig:1g.10gb', and constraints after it.");
	}
	return 0;
}

static int refuse_mig_variable(const char *what, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_PERMISSION, 0, "cannot set %s in non privileged container", what);
	return graft_with_hint(err, "Unset NVIDIA_MIG_CONFIG_DEVICES and NVIDIA_MIG_MONITOR_DEVICES, or give the "
				    "container CAP_SYS_ADMIN.");
}

/* SPEC runtime-and-hook 11.5 */
static int check_container(struct hook *h, struct graft_error *err)
{
	if (h->container.mig_config && !h->container.privileged)
		return refuse_mig_variable("MIG_CONFIG_DEVICES", err);
	if (h->container.mig_monitor && !h->container.privileged)
		return refuse_mig_variable("MIG_MONITOR_DEVICES", err);
	if (graft_container_capabilities(&h->container, h->config.supported_driver_capabilities, &h->capabilities,
					 err) < 0)
		return graft_with_hint(err, "Correct NVIDIA_DRIVER_CAPABILITIES of the container, or "
					    "supported-driver-capabilities in config.toml.");
	if (graft_container_legacy_requirement(&h->spec, h->arena, &h->container, err) < 0)
		return graft_with_hint(err, "Correct CUDA_VERSION of the image, or set NVIDIA_DISABLE_REQUIRE=true.");
	return 0;
}

static struct graft_platform_facts probe_platform(void *arg)
{
	(void)arg;
	return graft_platform_of_host();
}

/* SPEC runtime-and-hook 11.4 */
static int check_mode(struct hook *h, struct graft_error *err)
{
	const char *word = h->config.runtime.mode;
	enum graft_mode mode;

	/* Only the hook of a CDI device can do the work. */
	if (h->config.hook.skip_mode_detection || h->arguments->command == HOOK_LEASE)
		return 0;
	if (graft_mode_resolve(word, &h->container, GRAFT_MODE_LEGACY, probe_platform, NULL, &mode, err) < 0)
		return graft_with_hint(
		    err, "Set nvidia-container-runtime.mode in config.toml to one of the allowed values.");
	graft_info(h->cli.log, strcmp(word, "auto") == 0 ? "Auto-detected mode as '%s'" : "Using requested mode '%s'",
		   graft_mode_names[mode]);
	if (mode == GRAFT_MODE_LEGACY)
		return 0;
	(void)snprintf(h->hint, sizeof(h->hint),
		       "The mode is '%s'; where the hook must do the work, set nvidia-container-runtime-hook."
		       "skip-mode-detection to true.",
		       graft_mode_names[mode]);
	(void)graft_fail(err, GRAFT_UNSUPPORTED, 0,
			 "invoking the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus flag) "
			 "is not supported. Please use the NVIDIA Container Runtime (e.g. specify the --runtime=nvidia "
			 "flag) instead");
	return graft_with_hint(err, h->hint);
}

static int make_command(struct hook *h, char ***ret_argv, int *ret_argc, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct hook_request request = {
		.config = &h->config,
		.container = &h->container,
		.capabilities = h->capabilities,
		.program = h->config.cli.path[0] != '\0' ? h->config.cli.path : CLI_PROGRAM,
		.rootfs = graft_path_clean(h->bundle, h->spec.root_path, h->arena),
		.pid = h->state.pid,
		.debug = h->arguments->debug,
	};

	if (graft_root_open(&root, "/", err) < 0)
		return -1;
	request.ldconfig = graft_config_file_ldconfig(&root, h->config.cli.ldconfig, h->arena);
	if (!request.rootfs || !request.ldconfig)
		return graft_fail_memory(err);
	return hook_command_make(&request, h->arena, ret_argv, ret_argc, err);
}

/* ---- the work ---- */

/*
 * Does the work in this process. The messages are those of nvidia-container-cli, which people know
 * and search for.
 */
static int configure_in_process(struct hook *h, int argc, char **argv)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (h->state.pid <= 0 || h->state.pid > INT32_MAX) {
		/*
		 * nvidia-container-cli would take 0 for "my own namespaces", which are the host's
		 */
		(void)graft_fail(&err, GRAFT_FORMAT, 0, "could not decode container state: no pid");
		(void)graft_with_hint(&err, "The container runtime's hook state must name the container's process.");
		return fail_hook(h, &err);
	}
	if (hook_environment_apply(&h->config, h->arena, &err) < 0)
		return fail_hook(h, &err);
	h->cli.one_line = true;
	h->cli.config = &h->config;
	h->cli.lease = (struct graft_lease_for){ .wait = h->container.lease_wait,
						 .owner = h->container.lease_owner,
						 .what = h->container.lease_what,
						 .has_user = h->spec.has_process,
						 .user = graft_start_host_uid(&h->spec) };
	h->cli.sources = graft_oci_spec_sources(&h->spec, h->bundle, h->arena, &h->cli.n_sources);
	if (!h->cli.sources) {
		(void)graft_fail_memory(&err);
		return fail_hook(h, &err);
	}
	h->cli.cwd = h->spec.cwd ? h->spec.cwd : "";
	/* This hook is one of them. */
	h->cli.hooks_follow = graft_oci_count_hooks(h->document, "prestart") +
				  graft_oci_count_hooks(h->document, "createRuntime") +
				  graft_oci_count_hooks(h->document, "createContainer") >
			      1;
	h->cli.own_shm = !graft_start_has_default_shm(&h->spec);
	h->cli.planned = hook_announce_devices;
	return cli_main(&h->cli, argc, argv);
}

static int work(struct hook *h)
{
	static const char path_hint[] =
	    "Set nvidia-container-cli.path in config.toml to the program's absolute path, or leave it out.";
	struct graft_error err = { .status = GRAFT_OK };
	char **argv = NULL;
	int argc = 0;

	if (check_container(h, &err) < 0 || check_mode(h, &err) < 0)
		return fail_hook(h, &err);
	/* Other programs do not know leases. */
	if (h->arguments->command == HOOK_LEASE)
		h->config.cli.path = "";
	if (hook_program_find(&h->config, h->arena, &err) < 0) {
		(void)graft_with_hint(&err, path_hint);
		return fail_hook(h, &err);
	}
	if (make_command(h, &argv, &argc, &err) < 0)
		return fail_hook(h, &err);
	if (hook_program_is_own(h->config.cli.path))
		return configure_in_process(h, argc, argv);
	(void)hook_program_exec(h->environment, &h->config, argv, h->arena, &err);
	(void)graft_with_hint(&err, path_hint);
	return fail_hook(h, &err);
}

static int prestart(struct hook *h)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (read_bundle(h, &err) < 0 || load_config(h, &err) < 0 || read_container(h, &err) < 0 ||
	    (h->arguments->command == HOOK_LEASE && set_lease_claim(h, &err) < 0))
		return fail_hook(h, &err);
	return h->container.wants_devices ? work(h) : 0;
}

static int run_prestart(struct hook_environment *environment, const struct hook_arguments *arguments)
{
	struct hook h = { .environment = environment, .arguments = arguments, .arena = graft_arena_new(ARENA_MAX) };
	struct graft_error err = { .status = GRAFT_OK };
	int status;

	cli_init(&h.cli);
	if (h.arena) {
		status = prestart(&h);
	} else {
		(void)graft_fail_memory(&err);
		status = fail_hook(&h, &err);
	}
	graft_json_document_free(h.document);
	cli_done(&h.cli);
	hook_environment_forget(environment);
	(void)graft_arena_free(h.arena);
	return status;
}

/* Prints and releases the text. Returns `status`, or 1 if it cannot be printed. */
static int print_hook_text(FILE *stream, struct graft_buffer *text, int status)
{
	bool failed = graft_buffer_failed(text) || fputs(graft_buffer_text(text), stream) < 0 || fflush(stream) != 0;

	graft_buffer_done(text);
	return failed ? 1 : status;
}

static int run_hook_command(struct hook_environment *environment, const struct hook_arguments *arguments)
{
	struct graft_buffer text = { .max = 0 };

	switch (arguments->command) {
	case HOOK_PRESTART:
	case HOOK_LEASE:
		return run_prestart(environment, arguments);
	case HOOK_POSTSTART:
	case HOOK_POSTSTOP:
		return 0;
	case HOOK_NONE:
		break;
	}
	graft_options_help(&hook_program, HOOK_PROGRAM, &text);
	return print_hook_text(stderr, &text, 2);
}

/* The program's name, and the command's for help about one. */
static const char *hook_name(const struct graft_command *asked)
{
	return asked == &hook_program ? HOOK_PROGRAM : HOOK_PROGRAM " lease";
}

int hook_main(struct hook_environment *environment, int argc, char **argv)
{
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer text = { .max = 0 };
	struct hook_arguments arguments;
	const char *program, *meant;

	if (hook_arguments_read(argc, argv, &arguments, &result, &err) < 0) {
		program = hook_name(arguments.asked);
		meant = graft_options_meant_option(arguments.asked, NULL, &err);
		graft_buffer_printf(&text, "%s\n", err.msg);
		if (meant)
			graft_buffer_printf(&text, "Did you mean '--%s'?\n", meant);
		graft_options_help(arguments.asked, program, &text);
		return print_hook_text(stderr, &text, 2);
	}
	if (result == GRAFT_PARSE_OK)
		return run_hook_command(environment, &arguments);
	if (result == GRAFT_PARSE_VERSION) {
		graft_buffer_printf(&text, "NVIDIA Container Runtime Hook version %s\ncommit: %s\n", GRAFT_COMPATIBLE,
				    graft_version_revision());
		return print_hook_text(stdout, &text, 0);
	}
	graft_options_help(arguments.asked, hook_name(arguments.asked), &text);
	return print_hook_text(stderr, &text, 0);
}
