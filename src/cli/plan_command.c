/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_command: prints what configure would do with the same options, as a tree or as JSON, and
 * does nothing. Needs no privileges. Host, request and image can come from files, so that a start
 * on one machine can be examined on another.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apply/namespace/target.h"
#include "apply/oci/oci_file.h"
#include "apply/to_summary.h"
#include "apply/to_text.h"
#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/read.h"
#include "cli/cli.h"
#include "cli/container_options.h"
#include "cli/terminal.h"
#include "lease/lease_state.h"
#include "request/claim.h"
#include "start/config_file.h"
#include "start/give.h"
#include "start/open_container.h"
#include "start/pipeline.h"

#define VALUE_FILE_MAX ((size_t)16 * 1024 * 1024)

/* What can be printed; each value needs the ones before it. */
enum shown { SHOW_REQUEST, SHOW_LEASES, SHOW_IMAGE, SHOW_INVENTORY, SHOW_PLAN };
static const char *const shown_names[] = { "request", "leases", "image", "inventory", "plan", NULL };

struct plan_options {
	struct cli_container_options container; /* must be first: the shared parsers write to it */
	const char *inventory, *request, *image, *leases, *bundle;
	enum shown show;
	enum graft_style style;
	bool json, all;
};

static const char *const style_names[] = { "namespace", "oci", NULL };

/* Sets an enum: to the place of the word in the option's list. */
static int set_word(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	for (unsigned int i = 0; option->values[i]; i++) {
		if (strcmp(value, option->values[i]) == 0) {
			*(unsigned int *)(void *)((char *)target + option->offset) = i;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "input error: unsupported value of --%s: %s", option->name, value);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct plan_options, member)
static const struct graft_option options[] = {
	CLI_CONTAINER_OPTIONS,
	{ .name = "style", .argument = GRAFT_OPTION_REQUIRED, .parse = set_word, AT(style), .value_name = "STYLE",
	  .values = style_names,
	  .help = "Plan for an existing container (namespace), or for a container's configuration (oci)" },
	{ .name = "json", FLAG, AT(json), .help = "Print JSON instead of text" },
	{ .name = "all", FLAG, AT(all), .help = "Print every edit with its reason instead of a summary" },
	{ .name = "inventory", TEXT, AT(inventory), .value_name = "FILE",
	  .help = "Take the host from FILE (output of 'info --json') instead of looking at this one" },
	{ .name = "request", TEXT, AT(request), .value_name = "FILE",
	  .help = "Take the request from FILE (output of '--show=request') instead of the options" },
	{ .name = "image", TEXT, AT(image), .value_name = "FILE",
	  .help = "Take what depends on the image from FILE (output of '--show=image') instead of ROOTFS" },
	{ .name = "leases", TEXT, AT(leases), .value_name = "FILE",
	  .help = "Take what a claim depends on from FILE (output of '--show=leases') instead of looking at this host" },
	{ .name = "bundle", TEXT, AT(bundle), .value_name = "DIRECTORY",
	  .help = "With --style=oci, as root: also say which files would be mounted late in the container of this bundle" },
	{ .name = "show", .argument = GRAFT_OPTION_REQUIRED, .parse = set_word, AT(show), .value_name = "WHAT",
	  .values = shown_names,
	  .help = "Print what goes into the plan instead: inventory, request, image or leases, as JSON" },
};
/* clang-format on */

struct planning {
	struct cli *cli;
	struct plan_options options;
	struct graft_request *request;        /* from the options or from a file; borrowed */
	const char *rootfs;                   /* NULL = not given */
	struct graft_json_document *document; /* config.json of the bundle; owned; NULL = no bundle */
	struct graft_oci_spec spec;           /* of the document */
	struct graft_lease_state leases;      /* from a file, or to be shown */
	struct graft_policy policy;
	struct graft_pipeline pipeline;
	struct graft_budget *budget; /* owned */
	struct graft_plan *plan;     /* owned */
};

/*
 * Fails with the exit status for the kind of error: this command has no older callers that expect
 * 1.
 */
static int fail_plan(const struct planning *p, enum graft_step step, struct graft_error *err)
{
	(void)cli_fail_in(p->cli, step, err);
	return graft_status_exit(err->status);
}

static int read_value_file(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
			   struct graft_error *err)
{
	int rc = graft_read_input(path, VALUE_FILE_MAX, arena, ret_text, ret_length);

	return rc < 0 ? graft_fail_errno(err, -rc, "cannot read '%s'", graft_input_name(path)) : 0;
}

/* Reads the values that are given as files. Their text is kept in `files`. */
static int read_values(struct planning *p, struct graft_arena *files, struct graft_request **ret_request,
		       struct graft_error *err)
{
	const struct plan_options *o = &p->options;
	const char *text = NULL;
	size_t length = 0;

	if (o->request && (read_value_file(o->request, files, &text, &length, err) < 0 ||
			   graft_request_read(text, length, ret_request, err) < 0))
		return graft_wrap(err, "--request");
	if (o->inventory && (read_value_file(o->inventory, files, &text, &length, err) < 0 ||
			     graft_inventory_read(text, length, &p->pipeline.inventory, err) < 0))
		return graft_wrap(err, "--inventory");
	if (o->image && (read_value_file(o->image, files, &text, &length, err) < 0 ||
			 graft_record_read(&graft_image_record, text, length, files, &p->policy.image, err) < 0))
		return graft_wrap(err, "--image");
	if (o->leases && (read_value_file(o->leases, files, &text, &length, err) < 0 ||
			  graft_lease_state_parse(text, length, files, &p->leases, err) < 0))
		return graft_wrap(err, "--leases");
	return 0;
}

/* The root of the container is the image, unless another one is given. */
static int read_plan_bundle(struct planning *p, struct graft_arena *arena, struct graft_error *err)
{
	const char *bundle = p->options.bundle, *root;

	if (!bundle)
		return 0;
	if (p->options.style != GRAFT_STYLE_OCI)
		return graft_fail(err, GRAFT_INVALID, 0, "--bundle is for --style=oci");
	if (geteuid() != 0)
		return graft_fail(err, GRAFT_PERMISSION, 0, "--bundle is for root, whose runtime makes the mounts");
	if (graft_oci_file_read(bundle, &p->document, err) < 0 ||
	    graft_oci_spec_read(p->document, arena, &p->spec, err) < 0)
		return graft_wrap(err, "--bundle");
	root = p->spec.root_path;
	if (!p->rootfs && root)
		p->rootfs = root[0] == '/' ? root : graft_arena_printf(arena, "%s/%s", bundle, root);
	return !p->rootfs && root ? graft_fail_memory(err) : 0;
}

static int open_image(const struct planning *p, struct graft_image_root *ret_root, struct graft_error *err)
{
	int fd = open(p->rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return graft_fail_errno(err, errno, "open failed: %s", p->rootfs);
	graft_image_root_take(ret_root, fd, p->budget);
	return 0;
}

/*
 * With --pid the root is what the container's process sees, including its mounts, as in configure.
 */
static int inspect(struct planning *p, struct graft_arena *arena, struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	pid_t pid = p->options.container.pid;

	if (!p->rootfs || p->options.image)
		return 0;
	if (graft_caps_enter(&p->cli->caps, GRAFT_CAPS_CONTAINER, err) < 0)
		return -1;
	if (pid == 0 && open_image(p, &root, err) < 0)
		return -1;
	if (pid > 0 && graft_target_open(pid, true, p->rootfs, p->budget, p->cli->log, &target, err) < 0)
		return -1;
	p->policy.user_namespace = target.user_namespace;
	if (graft_inspect_container(p->request, pid > 0 ? &target.root : &root, p->cli->log, arena, &p->policy.image,
				    err) < 0)
		return -1;
	return graft_caps_enter(&p->cli->caps, GRAFT_CAPS_INFO, err);
}

static bool has_claim(const struct graft_request *request)
{
	bool found = false;

	for (size_t i = 0; i < request->n_devices && !found; i++) {
		const char *text = request->devices[i].text;

		found = graft_claim_is_in(&(struct graft_strings){ .items = &text, .n = 1 });
	}
	return found;
}

/* Reads the claim and, unless a file has them, the facts that it depends on. */
static int read_lease_state(struct planning *p, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_strings words = { .n = 0 };
	struct graft_config config;
	struct graft_claim claim;

	for (size_t i = 0; i < p->request->n_devices; i++)
		if (!graft_arena_push_string(arena, &words.items, &words.n, p->request->devices[i].text))
			return graft_fail_memory(err);
	if (p->options.leases)
		return 0;
	if (!has_claim(p->request))
		return graft_fail(err, GRAFT_INVALID, 0, "--show=leases needs a claim, such as --device=any:2");
	if (graft_claim_read(&words, arena, &claim, err) < 0 ||
	    graft_config_file_load(GRAFT_CONFIG_OF_HOOK, NULL, arena, &config, err) < 0 ||
	    graft_start_lease_require(&config, err) < 0)
		return -1;
	return graft_lease_state_look(&config, &claim, p->cli->log, arena, &p->leases, err);
}

static void print_choice(const struct graft_request *request, const struct graft_lease *lease)
{
	(void)fprintf(stderr, CLI_PROGRAM ": note: %s would get ", lease->claim);
	for (size_t i = 0; i < request->n_devices; i++)
		(void)fprintf(stderr, "%s%s", i > 0 ? ", " : "", request->devices[i].text);
	(void)fputs(" now; nothing is taken\n", stderr);
}

/* Replaces the claim by what it would get now. */
static int foresee_claim(struct planning *p, struct graft_error *err)
{
	/* A container that does not exist yet can be given variables. */
	const struct graft_lease_container none = { .id = NULL };
	const struct graft_lease_for whom = { .container = p->options.style == GRAFT_STYLE_OCI ? &none : NULL,
					      .only_look = true,
					      .state = p->options.leases ? &p->leases : NULL };
	struct graft_lease lease;

	if (!has_claim(p->request))
		return 0;
	if (p->options.inventory && !p->options.leases)
		return graft_fail(
		    err, GRAFT_INVALID, 0,
		    "--inventory needs --leases if a claim is made, which depends on the leases of the host");
	if (cli_claim(p->cli, &whom, p->request, &lease, err) < 0)
		return -1;
	if (lease.id)
		print_choice(p->request, &lease);
	return 0;
}

/* What nvidia-container-runtime would do with the files of the plan, if it is given --pid-file. */
static int foresee_mounts(struct planning *p, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_json_node *annotations, *earlier;
	struct graft_container container;
	struct graft_config config;
	struct graft_start create = { .config = &config,
				      .bundle = p->options.bundle,
				      .document = p->document,
				      .spec = &p->spec,
				      .container = &container,
				      .only_look = true,
				      .log = p->cli->log,
				      .budget = p->budget,
				      .arena = arena };

	if (graft_config_file_load(GRAFT_CONFIG_OF_RUNTIME, NULL, arena, &config, err) < 0)
		return -1;
	if (!config.late_mounts || strcmp(config.runtime.mode, graft_mode_names[GRAFT_MODE_LEGACY]) == 0) {
		p->plan->late_mounts = config.late_mounts ? "no file: the hook mounts them in mode legacy"
							  : "no file: graft.late-mounts in config.toml is false";
		return 0;
	}
	/* One of an earlier start says nothing about the next. */
	annotations = graft_json_node_member(graft_json_document_root(p->document), "annotations");
	earlier = graft_json_node_member(annotations, GRAFT_OCI_LATE_MOUNTS);
	if (earlier)
		graft_json_remove(p->document, earlier);
	if (graft_caps_enter(&p->cli->caps, GRAFT_CAPS_CONTAINER, err) < 0 ||
	    graft_container_read(&p->spec, &config, false, p->cli->log, arena, &container, err) < 0 ||
	    graft_start_look_at_mounts(&create, err) < 0 ||
	    graft_start_give(&create, p->plan, p->options.image || p->rootfs ? &p->policy.image : NULL, NULL, err) < 0)
		return graft_wrap(err, "--bundle");
	annotations = graft_json_node_member(graft_json_document_root(p->document), "annotations");
	p->plan->late_mounts = graft_json_node_string(graft_json_node_member(annotations, GRAFT_OCI_LATE_MOUNTS));
	return graft_caps_enter(&p->cli->caps, GRAFT_CAPS_INFO, err);
}

static int make_shown_values(struct planning *p, struct graft_arena *arena, struct graft_error *err)
{
	enum shown show = p->options.show;
	unsigned int needs;

	if (show == SHOW_LEASES)
		return read_lease_state(p, arena, err) < 0 ? graft_in_step(err, GRAFT_STEP_DEVICE) : 0;
	if (show == SHOW_PLAN && foresee_claim(p, err) < 0)
		return graft_in_step(err, GRAFT_STEP_DEVICE);
	needs = show == SHOW_INVENTORY ? (unsigned int)GRAFT_NEED_ALL
				       : graft_pipeline_needs(p->request, p->options.style);
	if (show >= SHOW_IMAGE && inspect(p, arena, err) < 0)
		return graft_in_step(err, GRAFT_STEP_CONTAINER);
	if (show >= SHOW_INVENTORY && graft_pipeline_discover(&p->pipeline, needs, err) < 0)
		return -1;
	if (show < SHOW_PLAN)
		return 0;
	if (!p->rootfs && !p->options.image)
		p->policy = graft_pipeline_default_policy(p->pipeline.inventory);
	p->policy.style = p->options.style;
	if (graft_pipeline_select(&p->pipeline, p->request, err) < 0 ||
	    graft_pipeline_require(&p->pipeline, p->request, err) < 0)
		return -1;
	if (graft_pipeline_plan(&p->pipeline, p->request, &p->policy, &p->plan, err) < 0)
		return -1;
	if (p->document && foresee_mounts(p, arena, err) < 0)
		return graft_in_step(err, GRAFT_STEP_CONTAINER);
	return 0;
}

static void print_summary(const struct planning *p, struct graft_buffer *out)
{
	const bool colours = cli_has_colours(STDOUT_FILENO);
	const struct graft_summary_style style = { .colours = colours, .lines = colours && cli_has_utf8() };

	graft_plan_to_summary(p->plan, &style, out);
	if (p->plan->n_missing > 0 && p->plan->n_grants == 0 && p->request->n_devices == 0)
		graft_buffer_string(out, "\nTo ask for a GPU: --device=all, or --device=0.\n");
	graft_buffer_string(out, "\nEvery edit, with its reason: --all\n");
}

static int print_shown_value(struct planning *p)
{
	struct graft_buffer out = { .max = 0 };

	switch (p->options.show) {
	case SHOW_REQUEST:
		graft_request_write(p->request, &out);
		break;
	case SHOW_LEASES:
		graft_record_write(&graft_lease_state_record, &p->leases, &out);
		break;
	case SHOW_IMAGE:
		graft_record_write(&graft_image_record, &p->policy.image, &out);
		break;
	case SHOW_INVENTORY:
		graft_inventory_write(p->pipeline.inventory, &out);
		break;
	case SHOW_PLAN:
		if (p->options.json)
			graft_plan_write(p->plan, &out);
		else if (p->options.all)
			graft_plan_to_text(p->plan, &out);
		else
			print_summary(p, &out);
		break;
	}
	cli_tell_simulated(p->pipeline.inventory);
	cli_warn_of_ldcache(p->cli, p->pipeline.inventory);
	return cli_print(p->cli, &out);
}

static int plan_and_print(struct planning *p, struct graft_arena *arena)
{
	struct graft_request *from_file = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	int status;

	p->request = p->options.container.request;
	if (read_values(p, arena, &from_file, &err) < 0 || read_plan_bundle(p, arena, &err) < 0) {
		graft_request_free(from_file);
		return fail_plan(p, GRAFT_STEP_INPUT, &err);
	}
	if (from_file)
		p->request = from_file;
	p->request->all_usable |= p->options.style == GRAFT_STYLE_OCI;
	cli_host_options(p->cli, p->request, &p->pipeline.host);
	p->pipeline.host.capabilities = p->request->capabilities;
	if (p->options.show == SHOW_INVENTORY) {
		p->pipeline.host.capabilities = GRAFT_CAP_ALL;
		p->pipeline.host.gates = GRAFT_GATE_ALL;
	}
	p->pipeline.replay = p->pipeline.inventory != NULL;
	if (make_shown_values(p, arena, &err) < 0)
		status = fail_plan(p, GRAFT_STEP_NONE, &err);
	else
		status = print_shown_value(p);
	graft_request_free(from_file);
	return status;
}

static int plan_with_options(struct planning *p, struct graft_arena *arena)
{
	struct graft_error err = { .status = GRAFT_OK };
	int status;

	cli_pipeline_start(p->cli, p->options.container.request, &p->pipeline);
	cli_phase(p->cli, "parse");
	status = cli_limit(p->cli, false);
	if (status != 0)
		return status;
	p->budget = graft_budget_new(GRAFT_BUDGET_CPU_MS);
	if (arena && p->budget)
		return plan_and_print(p, arena);
	(void)graft_fail_memory(&err);
	return fail_plan(p, GRAFT_STEP_INPUT, &err);
}

static int run_plan(void *context, int argc, char **argv)
{
	struct planning p = { .cli = context,
			      .options = { .container = { .request = graft_request_new() }, .show = SHOW_PLAN } };
	struct graft_arena *arena = graft_arena_new(4 * VALUE_FILE_MAX);
	struct graft_error err;
	int first = 0, status = 0;

	if (!p.options.container.request) {
		(void)graft_fail_memory(&err);
		status = cli_fail_in(p.cli, GRAFT_STEP_INPUT, &err);
	} else if (cli_parse(p.cli, &cli_plan, argc, argv, &p.options, &first, &status) == 0) {
		p.rootfs = first < argc ? argv[first] : NULL;
		status = plan_with_options(&p, arena);
	}
	graft_plan_free(p.plan);
	graft_json_document_free(p.document);
	graft_pipeline_done(&p.pipeline);
	graft_budget_free(p.budget);
	graft_arena_free(arena);
	graft_request_free(p.options.container.request);
	return status;
}

const struct graft_command cli_plan = {
	.name = "plan",
	.arguments = "[ROOTFS]",
	.summary = "Print what configure would do, and do nothing",
	.description =
	    "Takes the options of configure. Prints what the container asked for and will not get because the "
	    "host lacks it, what it gets, and what is left out. With --all every edit is printed with its "
	    "reason. With ROOTFS the image below it is inspected, as configure does; without it and without "
	    "--image an ordinary glibc image is assumed. A claim such as --device=any:2 is replaced by what it would "
	    "get now; nothing is taken. Needs no privileges.\n\n"
	    "The exit status distinguishes kinds of failure.",
	GRAFT_OPTIONS(options),
	.max_arguments = 1,
	.abbreviations = true,
	.run = run_plan,
};
