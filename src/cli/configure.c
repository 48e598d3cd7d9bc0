/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configure: gives a container its GPUs (SPEC libnvidia-container 3.5). Everything is parsed, read and decided first; what follows the
 * line "privileged work" applies a finished plan, wholly or not at all.
 */
#include <string.h>
#include <unistd.h>

#include "apply/cgroup.h"
#include "apply/target.h"
#include "apply/to_namespace.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/container_options.h"
#include "cli/pipeline.h"
#include "cli/systemd.h"

static const struct graft_option options[] = { CLI_CONTAINER_OPTIONS };

struct configuration {
	struct cli *cli;
	struct cli_container_options *options;
	const char *rootfs;
	struct cli_pipeline pipeline;
	struct graft_target target;
	struct graft_cgroup cgroup;
	struct graft_plan *plan; /* owned */
};

/* SPEC 3.5: absolute and not the host's root, in whatever way that is spelled. */
static int check_rootfs(const char *rootfs, struct graft_error *err)
{
	const char *rest = rootfs;

	while (*rest == '/' || (*rest == '.' && (rest[1] == '/' || rest[1] == '\0')))
		rest++;
	if (rootfs[0] != '/' || *rest == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "invalid rootfs directory");
	return 0;
}

/* SPEC 3.8. */
static void log_configuration(const struct configuration *c)
{
	const struct graft_request *request = c->options->request;
	struct graft_buffer words = { .max = 4096 };

	if (!c->cli->log)
		return;
	graft_buffer_string(&words, c->options->pid > 0 ? "supervised" : "standalone");
	if (request->no_cgroups)
		graft_buffer_string(&words, " no-cgroups");
	if (request->no_devbind)
		graft_buffer_string(&words, " no-devbind");
	for (unsigned int bit = 0; bit < GRAFT_CAP_BITS; bit++) {
		if ((request->capabilities >> bit & 1u) != 0)
			graft_buffer_printf(&words, " %s", graft_capability_names[bit]);
	}
	graft_info(c->cli->log, "configuring container with '%s'", graft_buffer_text(&words));
	graft_buffer_done(&words);
}

/*
 * By our own /proc and mounts in both modes. Standalone, the container's cgroup is the one that we are in: SPEC 10 asks for our parent's below
 * the rootfs, where an image could say what it likes, and by a number that may be of another pid namespace.
 */
static int open_cgroup(struct configuration *c, struct graft_error *err)
{
	auto_root struct graft_root own = GRAFT_ROOT_INIT;

	if (c->options->request->no_cgroups)
		return 0;
	if (graft_root_open(&own, "/", err) < 0)
		return -1;
	return graft_cgroup_open(own.fd, c->target.supervised ? c->target.pid : 0, c->target.user_namespace,
				 c->options->force_cgroups, c->cli->log, &c->cgroup, err);
}

/* Opens the container and reads its image, as little of it as the plan depends on. */
static int open_container(struct configuration *c, struct graft_policy *policy, struct graft_error *err)
{
	const struct graft_request *request = c->options->request;
	bool supervised = c->options->pid > 0;
	bool compat = request->compat_mode != GRAFT_COMPAT_DISABLED && (request->capabilities & GRAFT_CAP_COMPUTE) != 0;

	c->pipeline.prefix = "container error";
	log_configuration(c);
	if (graft_caps_enter(&c->cli->caps, GRAFT_CAPS_CONTAINER, err) < 0 ||
	    graft_target_open(supervised ? c->options->pid : getppid(), supervised, c->rootfs, c->cli->log, &c->target,
			      err) < 0)
		return -1;
	if (open_cgroup(c, err) < 0)
		return -1;
	cli_phase(c->cli, "container");
	if (graft_image_inspect(&c->target.root, compat, c->cli->log, c->pipeline.inventory->arena, &policy->image,
				err) < 0)
		return -1;
	/* Root may change the rules of a container that has a user namespace; whoever may not has found no cgroup, or learns it then. */
	policy->user_namespace = c->target.user_namespace && c->cgroup.version == 0;
	cli_phase(c->cli, "image");
	return graft_caps_enter(&c->cli->caps, GRAFT_CAPS_INFO, err);
}

/* Everything up to the plan. Changes nothing anywhere. */
static int prepare(struct configuration *c, struct graft_error *err)
{
	struct graft_request *request = c->options->request;
	struct graft_policy policy = { .no_procfs_view = false };

	if (cli_pipeline_discover(&c->pipeline, cli_needs(request, GRAFT_STYLE_NAMESPACE), err) < 0 ||
	    cli_pipeline_select(&c->pipeline, request, err) < 0 ||
	    cli_pipeline_require(&c->pipeline, request, err) < 0 || open_container(c, &policy, err) < 0)
		return -1;
	return cli_pipeline_plan(&c->pipeline, request, &policy, &c->plan, err);
}

static int enter_step(void *arg, const char *step, struct graft_error *err)
{
	struct cli *cli = arg;
	bool ldcache = strcmp(step, "ldcache") == 0;

	if (!ldcache)
		return graft_caps_enter(&cli->caps, GRAFT_CAPS_MOUNT, err);
	cli_phase(cli, "mount");
	return graft_caps_enter(&cli->caps, geteuid() == 0 ? GRAFT_CAPS_LDCACHE : GRAFT_CAPS_USER_LDCACHE, err);
}

static int apply(struct configuration *c, struct graft_error *err)
{
	const struct graft_namespace_options namespace_options = {
		.log = c->cli->log,
		.cgroup = &c->cgroup,
		.step = enter_step,
		.arg = c->cli,
	};

	c->pipeline.prefix = "mount error";
	if (graft_apply_to_namespace(c->plan, &c->target, &namespace_options, &c->pipeline.prefix, err) < 0)
		return -1;
	cli_phase(c->cli, "ldcache");
	/* The container is set up and stays so: an error now would tell the runtime that it is not. */
	if (graft_caps_enter(&c->cli->caps, GRAFT_CAPS_SHUTDOWN, NULL) < 0)
		graft_warn(c->cli->log, "could not give up capabilities before the end");
	return 0;
}

static int configure(struct configuration *c)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (prepare(c, &err) < 0)
		return cli_fail(c->cli, c->pipeline.prefix, &err);
	/* ---- privileged work starts here: all input is parsed, all decisions are in the plan ---- */
	if (c->cli->planned)
		c->cli->planned(c->cli, c->plan, c->target.pid);
	if (c->cgroup.version != 0)
		cli_tell_systemd(c->cli, c->plan, c->target.supervised ? c->target.pid : getpid());
	if (apply(c, &err) < 0)
		return cli_fail(c->cli, c->pipeline.prefix, &err);
	return 0;
}

/*
 * An ordinary user whose runtime made the container (rootless): there is nothing to limit, and joining the container's user namespace
 * gives what is needed there. In the caller's own namespaces nothing could be done without capabilities (SPEC 4.1).
 */
static bool is_rootless(const struct cli_container_options *container)
{
	return container->pid > 0 && graft_caps_is_unprivileged();
}

static int run_with(struct cli *cli, struct cli_container_options *container, int argc, char **argv)
{
	struct configuration c = {
		.cli = cli,
		.options = container,
		.pipeline = { .inventory = NULL },
		.target = GRAFT_TARGET_INIT,
		.cgroup = GRAFT_CGROUP_INIT,
	};
	struct graft_error err = { .status = GRAFT_OK };
	int first = 0, status = 0;

	if (cli_parse(cli, &cli_configure, argc, argv, container, &first, &status) < 0)
		return status;
	c.rootfs = argv[first];
	if (check_rootfs(c.rootfs, &err) < 0)
		return cli_fail(cli, "input error", &err);
	cli_open_log(cli, container->request);
	cli_phase(cli, "parse");
	status = cli_limit(cli, !is_rootless(container));
	if (status == 0)
		status = cli_load_kmods(cli, container->request);
	if (status == 0) {
		cli_pipeline_start(cli, container->request, &c.pipeline);
		c.pipeline.host.capabilities = container->request->capabilities;
		status = configure(&c);
	}
	graft_plan_free(c.plan);
	graft_cgroup_close(&c.cgroup);
	graft_target_close(&c.target);
	cli_pipeline_done(&c.pipeline);
	return status;
}

static int run(void *context, int argc, char **argv)
{
	struct cli_container_options container = { .request = graft_request_new() };
	struct graft_error err;
	int status;

	if (!container.request) {
		(void)graft_fail_memory(&err);
		return cli_fail(context, "memory allocation failed", &err);
	}
	status = run_with(context, &container, argc, argv);
	graft_request_free(container.request);
	return status;
}

const struct graft_command cli_configure = {
	.name = "configure",
	.arguments = "ROOTFS",
	.summary = "Give a container its GPUs",
	.description =
	    "Makes devices, libraries, programs and sockets of the driver visible below ROOTFS, in the mount "
	    "namespace of the process PID or in the caller's own, allows the devices in its cgroup and "
	    "updates its loader's cache. Either everything is done or nothing: a failure takes back what was "
	    "done before it.\n\n"
	    "No program is run, and nothing of the image is executed.",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.min_arguments = 1,
	.max_arguments = 1,
	.abbreviations = true,
	.run = run,
};
