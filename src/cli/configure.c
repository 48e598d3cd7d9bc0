/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configure: gives a container its GPUs (SPEC libnvidia-container 3.5). First everything is parsed,
 * read and decided; what follows the line "privileged work" applies a finished plan, entirely or
 * not at all.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apply/cgroup/cgroup.h"
#include "apply/cgroup/systemd_scope.h"
#include "apply/namespace/target.h"
#include "apply/namespace/to_namespace.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/container_options.h"
#include "start/open_container.h"
#include "start/pipeline.h"

static const struct graft_option options[] = { CLI_CONTAINER_OPTIONS };

struct configuration {
	struct cli *cli;
	struct cli_container_options options;
	const char *rootfs;
	struct graft_pipeline pipeline;
	struct graft_target target;
	struct graft_cgroup cgroup;
	struct graft_plan *plan; /* owned */
};

/* SPEC libnvidia-container 3.5: must be absolute, and not a spelling of the host's root. */
static int check_configure_rootfs(const char *rootfs, struct graft_error *err)
{
	const char *rest = rootfs;

	while (*rest == '/' || (*rest == '.' && (rest[1] == '/' || rest[1] == '\0')))
		rest++;
	if (rootfs[0] != '/' || *rest == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "invalid rootfs directory");
	return 0;
}

/* SPEC libnvidia-container 3.8. */
static void log_configuration(const struct configuration *c)
{
	const struct graft_request *request = c->options.request;
	auto_buffer struct graft_buffer words = { .max = 4096 };

	if (!c->cli->log)
		return;
	graft_buffer_string(&words, c->options.pid > 0 ? "supervised" : "standalone");
	if (request->no_cgroups)
		graft_buffer_string(&words, " no-cgroups");
	if (request->no_devbind)
		graft_buffer_string(&words, " no-devbind");
	for (unsigned int bit = 0; bit < GRAFT_CAP_BITS; bit++) {
		if ((request->capabilities >> bit & 1u) != 0)
			graft_buffer_printf(&words, " %s", graft_capability_names[bit]);
	}
	graft_info(c->cli->log, "configuring container with '%s'", graft_buffer_text(&words));
}

static int open_container(struct configuration *c, struct graft_policy *policy, struct graft_error *err)
{
	const struct graft_request *request = c->options.request;
	bool supervised = c->options.pid > 0;

	log_configuration(c);
	if (graft_caps_enter(&c->cli->caps, GRAFT_CAPS_CONTAINER, err) < 0 ||
	    graft_open_container(request, supervised ? c->options.pid : getppid(), supervised, c->rootfs,
				 c->options.force_cgroups, c->cli->log, &c->target, &c->cgroup, policy, err) < 0 ||
	    graft_target_refuse_volume(&c->target, c->cli->sources, c->cli->n_sources, err) < 0)
		return -1;
	cli_phase(c->cli, "container");
	if (graft_inspect_container(request, &c->target.root, c->cli->log, c->pipeline.inventory->arena, &policy->image,
				    err) < 0)
		return -1;
	cli_phase(c->cli, "image");
	return graft_caps_enter(&c->cli->caps, GRAFT_CAPS_INFO, err);
}

/* Makes the plan. Changes nothing. */
static int make_configuration(struct configuration *c, struct graft_error *err)
{
	struct graft_request *request = c->options.request;
	struct graft_policy policy = { .no_procfs_view = false };

	if (graft_pipeline_discover(&c->pipeline, graft_pipeline_needs(request, GRAFT_STYLE_NAMESPACE), err) < 0)
		return -1;
	cli_warn_of_ldcache(c->cli, c->pipeline.inventory);
	if (graft_pipeline_select(&c->pipeline, request, err) < 0 ||
	    graft_pipeline_require(&c->pipeline, request, err) < 0)
		return -1;
	if (open_container(c, &policy, err) < 0)
		return graft_in_step(err, GRAFT_STEP_CONTAINER);
	return graft_pipeline_plan(&c->pipeline, request, &policy, &c->plan, err);
}

static int enter_configure_step(void *arg, const char *step, struct graft_error *err)
{
	struct cli *cli = arg;
	bool ldcache = strcmp(step, "ldcache") == 0;

	if (!ldcache)
		return graft_caps_enter(&cli->caps, GRAFT_CAPS_MOUNT, err);
	cli_phase(cli, "mount");
	return graft_caps_enter(&cli->caps, geteuid() == 0 ? GRAFT_CAPS_LDCACHE : GRAFT_CAPS_USER_LDCACHE, err);
}

/*
 * Whether the caller is an ordinary user whose runtime made the container (rootless). There are no
 * capabilities to limit, and joining the container's user namespace gives those needed there. In
 * the caller's own namespaces nothing could be done without capabilities (SPEC libnvidia-container
 * 4.1).
 */
static bool is_rootless(const struct cli_container_options *container)
{
	return container->pid > 0 && graft_caps_is_unprivileged();
}

static int take_claim(struct configuration *c, struct graft_error *err)
{
	struct graft_lease_for whom = c->cli->lease;
	struct graft_lease lease;

	whom.pid = c->options.pid;
	return cli_claim(c->cli, &whom, c->options.request, &lease, err);
}

/*
 * Adds the plan's devices to those that systemd allows to the scope of process `pid`: before the
 * rules are added to its cgroup, since systemd would remove them there again. Failures are only
 * logged.
 */
static void allow_in_systemd(struct cli *cli, const struct graft_plan *plan, pid_t pid)
{
	auto_free struct graft_scope_device *devices = calloc(plan->n_edits + 1, sizeof(*devices));
	struct graft_error err = { .status = GRAFT_OK };
	char text[sizeof(err.msg) + sizeof(err.ctx) + 128];
	size_t n = 0;

	for (size_t i = 0; devices && i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_CGROUP)
			devices[n++] = (struct graft_scope_device){ .major = edit->major,
								    .minor = edit->minor,
								    .access = edit->access ? edit->access : "rw" };
	}
	/*
	 * The system's systemd accepts no requests from an ordinary user, and a user's own one
	 * restricts no devices.
	 */
	if (n == 0 || graft_caps_is_unprivileged())
		return;
	if (graft_systemd_scope_allow(pid, devices, n, cli->log, &err) < 0)
		graft_warn(cli->log, "the container may lose its devices at the next 'systemctl daemon-reload': %s",
			   graft_error_text(&err, text, sizeof(text)));
}

static int configure_container(struct configuration *c)
{
	struct graft_namespace_options namespace_options = {
		.cgroup = &c->cgroup,
		.cwd = c->cli->cwd,
		.hooks_follow = c->cli->hooks_follow,
		.step = enter_configure_step,
		.arg = c->cli,
	};
	struct graft_error err = { .status = GRAFT_OK };

	if (check_configure_rootfs(c->rootfs, &err) < 0)
		return cli_fail_in(c->cli, GRAFT_STEP_INPUT, &err);
	if (take_claim(c, &err) < 0)
		return cli_fail_in(c->cli, GRAFT_STEP_DEVICE, &err);
	if (cli_begin(c->cli, c->options.request, !is_rootless(&c->options), &c->pipeline) != 0)
		return 1;
	c->pipeline.host.capabilities = c->options.request->capabilities;
	if (make_configuration(c, &err) < 0)
		return cli_fail(c->cli, &err);
	/* ---- privileged work starts here: input is parsed, all decisions are in the plan ---- */
	if (c->cli->planned)
		c->cli->planned(c->cli, c->plan);
	if (c->cgroup.version != 0)
		allow_in_systemd(c->cli, c->plan, c->target.supervised ? c->target.pid : getpid());
	namespace_options.log = c->cli->log;
	if (graft_apply_to_namespace(c->plan, &c->target, &namespace_options, &err) < 0)
		return cli_fail(c->cli, &err);
	cli_phase(c->cli, "ldcache");
	/*
	 * The container is set up and stays that way: an error would make the runtime believe
	 * otherwise.
	 */
	if (graft_caps_enter(&c->cli->caps, GRAFT_CAPS_SHUTDOWN, NULL) < 0)
		graft_warn(c->cli->log, "could not give up capabilities before the end");
	return 0;
}

static int run_configure(void *context, int argc, char **argv)
{
	struct configuration c = {
		.cli = context,
		.options = { .request = graft_request_new() },
		.target = GRAFT_TARGET_INIT,
		.cgroup = GRAFT_CGROUP_INIT,
	};
	struct graft_error err;
	int first = 0, status = 0;

	if (!c.options.request) {
		(void)graft_fail_memory(&err);
		return cli_fail_in(c.cli, GRAFT_STEP_MEMORY, &err);
	}
	if (cli_parse(c.cli, &cli_configure, argc, argv, &c.options, &first, &status) == 0) {
		c.rootfs = argv[first];
		status = configure_container(&c);
	}
	graft_plan_free(c.plan);
	graft_cgroup_close(&c.cgroup);
	graft_target_close(&c.target);
	graft_pipeline_done(&c.pipeline);
	graft_request_free(c.options.request);
	return status;
}

const struct graft_command cli_configure = {
	.name = "configure",
	.arguments = "ROOTFS",
	.summary = "Give a container its GPUs",
	.description = "Makes devices, libraries, programs and sockets of the driver visible below ROOTFS, in the "
		       "mount namespace of process PID or in the caller's own, allows the devices in its cgroup, and "
		       "updates its loader cache. After a failure, everything done so far is undone.\n\nRuns no "
		       "program, and executes nothing from the image.",
	GRAFT_OPTIONS(options),
	.min_arguments = 1,
	.max_arguments = 1,
	.abbreviations = true,
	.run = run_configure,
};
