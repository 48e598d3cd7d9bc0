/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: what configure would do with the same options, as a tree or as JSON, doing nothing. Needs no privileges. Host, wish and image
 * may come from files, so that what happened on one machine can be looked at on another.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "apply/target.h"
#include "apply/to_text.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/container_options.h"
#include "cli/pipeline.h"

#define VALUE_FILE_MAX ((size_t)16 * 1024 * 1024)

/* What can be printed; each needs what stands before it. */
enum shown { SHOW_REQUEST, SHOW_IMAGE, SHOW_INVENTORY, SHOW_PLAN };
static const char *const shown_names[] = { "request", "image", "inventory", "plan", NULL };

struct plan_options {
	struct cli_container_options container; /* first: the shared parsers write there */
	const char *inventory, *request, *image;
	enum shown show;
	enum graft_style style;
	bool json;
};

static int set_show(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct plan_options *o = target;

	(void)option;
	for (size_t i = 0; shown_names[i]; i++) {
		if (strcmp(value, shown_names[i]) == 0) {
			o->show = (enum shown)i;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "input error: unsupported value of --show: %s", value);
}

static const char *const style_names[] = { "namespace", "oci", NULL };

static int set_style(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)option;
	for (size_t i = 0; style_names[i]; i++) {
		if (strcmp(value, style_names[i]) == 0) {
			((struct plan_options *)target)->style = (enum graft_style)i;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "input error: unsupported value of --style: %s", value);
}

static const struct graft_option options[] = {
	CLI_CONTAINER_OPTIONS,
	{ .name = "style",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "STYLE",
	  .help = "Plan for a container that is there (namespace), or for the configuration of one (oci)",
	  .parse = set_style,
	  .values = style_names },
	{ .name = "json",
	  .help = "Print JSON instead of a tree",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct plan_options, json) },
	{ .name = "inventory",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Take the host from FILE (output of 'info --json') instead of looking at this one",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct plan_options, inventory) },
	{ .name = "request",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Take the wish from FILE (output of '--show=request') instead of the options",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct plan_options, request) },
	{ .name = "image",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Take what depends on the image from FILE (output of '--show=image') instead of ROOTFS",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct plan_options, image) },
	{ .name = "show",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "WHAT",
	  .help = "Print what goes into the plan instead: inventory, request or image, as JSON",
	  .parse = set_show,
	  .values = shown_names },
};

struct planning {
	struct cli *cli;
	struct plan_options *options;
	struct graft_request *request; /* the options' own or the file's; borrowed */
	const char *rootfs;            /* NULL = none was given */
	struct graft_policy policy;
	struct cli_pipeline pipeline;
	struct graft_plan *plan; /* owned */
};

/* Fails with the exit status that belongs to the kind of error: this command has no older callers to please with 1. */
static int fail(const struct planning *p, const char *prefix, const struct graft_error *err)
{
	(void)cli_fail(p->cli, prefix, err);
	return graft_status_exit(err->status);
}

static int read_file(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
		     struct graft_error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int rc = fd < 0 ? -errno : graft_read_fd(fd, VALUE_FILE_MAX, arena, ret_text, ret_length);

	return rc < 0 ? graft_fail_errno(err, -rc, "cannot read '%s'", path) : 0;
}

/* The values that are given as files. `files` keeps the texts. */
static int read_values(struct planning *p, struct graft_arena *files, struct graft_request **ret_request,
		       struct graft_error *err)
{
	const struct plan_options *o = p->options;
	const char *text = NULL;
	size_t length = 0;

	if (o->request && (read_file(o->request, files, &text, &length, err) < 0 ||
			   graft_request_read(text, length, ret_request, err) < 0))
		return graft_wrap(err, "--request");
	if (o->inventory && (read_file(o->inventory, files, &text, &length, err) < 0 ||
			     graft_inventory_read(text, length, &p->pipeline.inventory, err) < 0))
		return graft_wrap(err, "--inventory");
	if (o->image && (read_file(o->image, files, &text, &length, err) < 0 ||
			 graft_record_read(&graft_image_record, text, length, files, &p->policy.image, err) < 0))
		return graft_wrap(err, "--image");
	return 0;
}

/* With --pid the root is the one that the container's process sees, with its mounts, as configure takes it. */
static int inspect(struct planning *p, struct graft_arena *arena, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	pid_t pid = p->options->container.pid;
	bool compat = p->request->compat_mode != GRAFT_COMPAT_DISABLED &&
		      (p->request->capabilities & GRAFT_CAP_COMPUTE) != 0;

	if (!p->rootfs || p->options->image)
		return 0;
	p->pipeline.prefix = "container error";
	if (graft_caps_enter(&p->cli->caps, GRAFT_CAPS_CONTAINER, err) < 0 ||
	    (pid == 0 && graft_root_open(&root, p->rootfs, err) < 0))
		return -1;
	if (pid > 0 && graft_target_open(pid, true, p->rootfs, p->cli->log, &target, err) < 0)
		return -1;
	p->policy.user_namespace = target.user_namespace;
	if (graft_image_inspect(pid > 0 ? &target.root : &root, compat, p->cli->log, arena, &p->policy.image, err) < 0)
		return -1;
	return graft_caps_enter(&p->cli->caps, GRAFT_CAPS_INFO, err);
}

static int make(struct planning *p, struct graft_arena *arena, struct graft_error *err)
{
	enum shown show = p->options->show;
	unsigned int needs = show == SHOW_INVENTORY ? (unsigned int)GRAFT_NEED_ALL
						    : cli_needs(p->request, p->options->style);

	if (show >= SHOW_IMAGE && inspect(p, arena, err) < 0)
		return -1;
	if (show >= SHOW_INVENTORY && cli_pipeline_discover(&p->pipeline, needs, err) < 0)
		return -1;
	if (show < SHOW_PLAN)
		return 0;
	if (!p->rootfs && !p->options->image)
		p->policy = cli_default_policy(p->pipeline.inventory);
	p->policy.style = p->options->style;
	if (cli_pipeline_select(&p->pipeline, p->request, err) < 0 ||
	    cli_pipeline_require(&p->pipeline, p->request, err) < 0)
		return -1;
	return cli_pipeline_plan(&p->pipeline, p->request, &p->policy, &p->plan, err);
}

static int print(struct planning *p)
{
	struct graft_buffer out = { .max = 0 };

	switch (p->options->show) {
	case SHOW_REQUEST:
		graft_request_write(p->request, &out);
		break;
	case SHOW_IMAGE:
		graft_record_write(&graft_image_record, &p->policy.image, &out);
		break;
	case SHOW_INVENTORY:
		graft_inventory_write(p->pipeline.inventory, &out);
		break;
	case SHOW_PLAN:
		if (p->options->json)
			graft_plan_write(p->plan, &out);
		else
			graft_plan_to_text(p->plan, &out);
		break;
	}
	cli_tell_simulated(p->pipeline.inventory);
	return cli_print(p->cli, &out);
}

static int plan(struct planning *p, struct graft_arena *arena)
{
	struct graft_request *from_file = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	int status;

	cli_pipeline_start(p->cli, p->options->container.request, &p->pipeline);
	p->request = p->options->container.request;
	if (read_values(p, arena, &from_file, &err) < 0) {
		graft_request_free(from_file);
		return fail(p, "input error", &err);
	}
	if (from_file)
		p->request = from_file;
	p->request->all_usable |= p->options->style == GRAFT_STYLE_OCI;
	cli_host_options(p->cli, p->request, &p->pipeline.host);
	p->pipeline.host.capabilities = p->request->capabilities;
	if (p->options->show == SHOW_INVENTORY) {
		p->pipeline.host.capabilities = GRAFT_CAP_ALL;
		p->pipeline.host.gates = GRAFT_GATE_ALL;
	}
	p->pipeline.replay = p->pipeline.inventory != NULL;
	if (make(p, arena, &err) < 0)
		status = fail(p, p->pipeline.prefix, &err);
	else
		status = print(p);
	graft_request_free(from_file);
	return status;
}

static int run_with(struct cli *cli, struct plan_options *o, int argc, char **argv)
{
	struct planning p = { .cli = cli, .options = o };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_arena *arena;
	int first = 0, status = 0;

	if (cli_parse(cli, &cli_plan, argc, argv, o, &first, &status) < 0)
		return status;
	p.rootfs = first < argc ? argv[first] : NULL;
	cli_open_log(cli, o->container.request);
	cli_phase(cli, "parse");
	status = cli_limit(cli, false);
	if (status != 0)
		return status;
	arena = graft_arena_new(4 * VALUE_FILE_MAX);
	if (arena) {
		status = plan(&p, arena);
	} else {
		(void)graft_fail_memory(&err);
		status = fail(&p, "input error", &err);
	}
	graft_plan_free(p.plan);
	cli_pipeline_done(&p.pipeline);
	graft_arena_free(arena);
	return status;
}

static int run(void *context, int argc, char **argv)
{
	struct plan_options o = { .container = { .request = graft_request_new() }, .show = SHOW_PLAN };
	struct graft_error err;
	int status;

	if (!o.container.request) {
		(void)graft_fail_memory(&err);
		return cli_fail(context, "input error", &err);
	}
	status = run_with(context, &o, argc, argv);
	graft_request_free(o.container.request);
	return status;
}

const struct graft_command cli_plan = {
	.name = "plan",
	.arguments = "[ROOTFS]",
	.summary = "Print what configure would do, and do nothing",
	.description =
	    "Takes the options of configure. Every edit is printed with its reason, and everything that was "
	    "left out with the reason for that. With ROOTFS the image below it is looked at, as configure "
	    "does; without it and without --image an ordinary glibc image is assumed. Needs no privileges.\n\n"
	    "The exit status tells kinds of failure apart.",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = 1,
	.abbreviations = true,
	.run = run,
};
