/* SPDX-License-Identifier: Apache-2.0 */
/* list: the paths of the driver that a container would get, one a line (SPEC libnvidia-container 3.4), or as a plan with --json. */
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/container_options.h"
#include "cli/pipeline.h"

struct list_options {
	struct cli_container_options container; /* first: the shared parsers write there */
	bool libraries, binaries, ipcs, firmwares, json;
};

/* SPEC 3.4: also takes back an earlier -f. */
static int no_firmware(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	((struct list_options *)target)->firmwares = false;
	return cli_option_request_flag(target, option, value, err);
}

static const struct graft_option options[] = {
	CLI_SELECTION_OPTIONS,
	CLI_COMPAT32_OPTION,
	CLI_CAPABILITY_OPTIONS(true),
	{ .name = "no-cntlibs", .hidden = true, .parse = cli_option_no_compat },
	{ .name = "libraries",
	  .letter = 'l',
	  .help = "List the libraries",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct list_options, libraries) },
	{ .name = "binaries",
	  .letter = 'b',
	  .help = "List the programs",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct list_options, binaries) },
	{ .name = "ipcs",
	  .letter = 'i',
	  .help = "List the sockets",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct list_options, ipcs) },
	{ .name = "firmwares",
	  .letter = 'f',
	  .help = "List the firmware files",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct list_options, firmwares) },
	{ .name = "no-persistenced",
	  .help = "Leave out the socket of nvidia-persistenced",
	  .parse = cli_option_request_flag,
	  .offset = offsetof(struct graft_request, no_persistenced) },
	{ .name = "no-fabricmanager",
	  .help = "Leave out the socket of nvidia-fabricmanager",
	  .parse = cli_option_request_flag,
	  .offset = offsetof(struct graft_request, no_fabricmanager) },
	{ .name = "no-gsp-firmware",
	  .help = "Leave out the GSP firmware files",
	  .parse = no_firmware,
	  .offset = offsetof(struct graft_request, no_gsp_firmware) },
	{ .name = "json",
	  .help = "Output the edits that would give a container the same as JSON: sources, targets, links, devices, "
		  "environment, loader folders",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct list_options, json) },
};

/* ---- plain output, in the order of SPEC 3.4 ---- */

static void add_line(struct graft_buffer *out, const char *path)
{
	if (path)
		graft_buffer_printf(out, "%s\n", path);
}

static void add_mig_devices(struct graft_buffer *out, const struct cli_pipeline *pipeline)
{
	for (size_t i = 0; i < pipeline->selection.n_migs; i++) {
		const struct graft_mig_device *mig = pipeline->selection.migs[i].mig;

		graft_buffer_printf(out, "%s/access\n%s/access\n", mig->gi_caps_path, mig->ci_caps_path);
		add_line(out, mig->gi_node.path);
		add_line(out, mig->ci_node.path);
	}
}

static void add_devices(struct graft_buffer *out, const struct cli_pipeline *pipeline,
			const struct graft_request *request)
{
	const struct graft_inventory *inventory = pipeline->inventory;

	for (size_t i = 0; i < inventory->n_nodes; i++)
		add_line(out, inventory->nodes[i].path);
	for (size_t i = 0; i < pipeline->selection.n_gpus; i++)
		add_line(out, pipeline->selection.gpus[i]->node.path);
	if (!request->mig_config && !request->mig_monitor)
		add_mig_devices(out, pipeline);
}

static void add_mig_caps(struct graft_buffer *out, const struct cli_pipeline *pipeline, const char *name,
			 const struct graft_node *node, const struct graft_gpu *const *gpus, size_t n_gpus)
{
	if (n_gpus == 0)
		return;
	graft_buffer_printf(out, "/proc/driver/nvidia/capabilities/mig/%s\n", name);
	add_line(out, node->path);
	for (size_t i = 0; i < n_gpus; i++) {
		add_line(out, gpus[i]->mig_caps_path);
		if (pipeline->inventory->caps_devices)
			add_line(out, "/dev/nvidia-caps");
		for (size_t n = 0; n < gpus[i]->n_caps_nodes; n++)
			add_line(out, gpus[i]->caps_nodes[n].path);
	}
}

static void add_libraries(struct graft_buffer *out, const struct graft_library *libraries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_line(out, libraries[i].path);
}

static void add_plain(struct graft_buffer *out, const struct cli_pipeline *pipeline, const struct list_options *list)
{
	const struct graft_inventory *inventory = pipeline->inventory;
	const struct graft_request *request = list->container.request;
	const struct graft_selection *selection = &pipeline->selection;

	if (list->container.device_given)
		add_devices(out, pipeline, request);
	for (size_t i = 0; i < request->n_imex_channels; i++)
		graft_buffer_printf(out, "/dev/nvidia-caps-imex-channels/channel%u\n", request->imex_channels[i].id);
	add_mig_caps(out, pipeline, "config", &inventory->mig_config_node, selection->mig_config_gpus,
		     selection->n_mig_config_gpus);
	add_mig_caps(out, pipeline, "monitor", &inventory->mig_monitor_node, selection->mig_monitor_gpus,
		     selection->n_mig_monitor_gpus);
	for (size_t i = 0; i < inventory->n_binaries; i++)
		add_line(out, inventory->binaries[i].path);
	add_libraries(out, inventory->libraries, inventory->n_libraries);
	add_libraries(out, inventory->libraries32, inventory->n_libraries32);
	for (size_t i = 0; i < inventory->n_ipcs; i++)
		add_line(out, inventory->ipcs[i].path);
	for (size_t i = 0; i < inventory->n_firmwares; i++)
		add_line(out, inventory->firmwares[i]);
}

/* ---- */

/*
 * Words that the existing program does not know and that must not change what its words mean: --json, and letters of capabilities
 * ("list -cguv" of old callers).
 */
static bool is_counted(const char *word)
{
	if (strncmp(word, "--j", 3) == 0)
		return false;
	return word[0] != '-' || word[1] == '\0' || word[1 + strspn(word + 1, "cguvnD")] != '\0';
}

/* SPEC 3.4: without any word, or with the one word that gives an IMEX channel, everything is listed. */
static int apply_default(struct list_options *list, int argc, char **argv, struct graft_error *err)
{
	int n_words = 0;

	for (int i = 1; i < argc; i++)
		n_words += is_counted(argv[i]) ? 1 : 0;
	if (n_words > 1 || (n_words == 1 && !list->container.imex_given))
		return 0;
	list->container.device_given = true;
	list->container.request->capabilities |= GRAFT_CAP_COMPAT32;
	list->libraries = list->binaries = list->ipcs = list->firmwares = true;
	return graft_request_devices(list->container.request, "all", err);
}

static unsigned int needs_of(const struct list_options *list)
{
	const struct graft_request *request = list->container.request;
	bool mig = request->mig_config || request->mig_monitor;
	const struct {
		bool condition;
		unsigned int needs;
	} rows[] = {
		{ list->container.device_given, GRAFT_NEED_NODES | GRAFT_NEED_GPUS | GRAFT_NEED_MIG },
		{ mig, GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_MIG_CAPS },
		{ list->libraries, GRAFT_NEED_LIBRARIES },
		{ list->libraries && (request->capabilities & GRAFT_CAP_COMPAT32) != 0, GRAFT_NEED_LIBRARIES32 },
		{ list->binaries, GRAFT_NEED_BINARIES },
		{ list->ipcs, GRAFT_NEED_IPCS },
		{ list->firmwares, GRAFT_NEED_FIRMWARE },
		{ list->json, GRAFT_NEED_PROC_FILES | GRAFT_NEED_EXTRA_FILES },
	};
	unsigned int needs = 0;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		needs |= rows[i].condition ? rows[i].needs : 0u;
	return needs;
}

static int add_json(struct cli_pipeline *pipeline, struct list_options *list, struct graft_buffer *out,
		    struct graft_error *err)
{
	struct graft_policy policy = cli_default_policy(pipeline->inventory);
	struct graft_plan *plan = NULL;

	list->container.request->capabilities |= pipeline->host.capabilities & ~(unsigned int)GRAFT_CAP_COMPAT32;
	if (cli_pipeline_plan(pipeline, list->container.request, &policy, &plan, err) < 0)
		return -1;
	graft_plan_write(plan, out);
	graft_plan_free(plan);
	return 0;
}

static int report(struct cli *cli, struct list_options *list, struct cli_pipeline *pipeline)
{
	struct graft_buffer out = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	if (cli_pipeline_discover(pipeline, needs_of(list), &err) < 0 ||
	    cli_pipeline_select(pipeline, list->container.request, &err) < 0)
		return cli_fail(cli, pipeline->prefix, &err);
	cli_tell_simulated(pipeline->inventory);
	if (!list->json)
		add_plain(&out, pipeline, list);
	else if (add_json(pipeline, list, &out, &err) < 0)
		return cli_fail(cli, pipeline->prefix, &err);
	return cli_print(cli, &out);
}

/* Capabilities that were named restrict the list; the 32-bit libraries are of all classes. */
static void limit_classes(const struct graft_request *request, struct graft_host_options *host)
{
	unsigned int named = request->capabilities & ~(unsigned int)GRAFT_CAP_COMPAT32;

	host->capabilities = named != 0 ? named | GRAFT_CAP_COMPAT32 : (unsigned int)GRAFT_CAP_ALL;
}

static int run_with(struct cli *cli, struct list_options *list, int argc, char **argv)
{
	struct cli_pipeline pipeline = { .inventory = NULL };
	struct graft_error err = { .status = GRAFT_OK };
	int first = 0, status = 0;

	if (cli_parse(cli, &cli_list, argc, argv, list, &first, &status) < 0)
		return status;
	if (apply_default(list, argc, argv, &err) < 0)
		return cli_fail(cli, "device error", &err);
	cli_open_log(cli, list->container.request);
	cli_phase(cli, "parse");
	status = cli_limit(cli, false);
	if (status == 0)
		status = cli_load_kmods(cli, list->container.request);
	if (status == 0) {
		cli_pipeline_start(cli, list->container.request, &pipeline);
		limit_classes(list->container.request, &pipeline.host);
		status = report(cli, list, &pipeline);
	}
	cli_pipeline_done(&pipeline);
	cli_phase(cli, "report");
	return status;
}

static int run(void *context, int argc, char **argv)
{
	struct list_options list = { .container = { .request = graft_request_new() } };
	struct graft_error err;
	int status;

	if (!list.container.request) {
		(void)graft_fail_memory(&err);
		return cli_fail(context, "", &err);
	}
	status = run_with(context, &list, argc, argv);
	graft_request_free(list.container.request);
	return status;
}

const struct graft_command cli_list = {
	.name = "list",
	.arguments = "",
	.summary = "List the parts of the driver that containers get",
	.description =
	    "Prints one path a line, below the driver root. Without options everything is listed. The letters "
	    "of capabilities that configure takes are accepted and restrict the list.",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.abbreviations = true,
	.run = run,
};
