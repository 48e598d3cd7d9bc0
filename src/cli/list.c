/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list: the paths of the driver that a container would get, one per line (SPEC libnvidia-container
 * 3.4), or a plan with --json.
 */
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/container_options.h"
#include "plan/planner.h"
#include "start/pipeline.h"

struct list_options {
	struct cli_container_options container; /* must be first: the shared parsers write to it */
	bool libraries, binaries, ipcs, firmwares, json;
};

/* SPEC libnvidia-container 3.4: also cancels an earlier -f. */
static int no_firmware(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	((struct list_options *)target)->firmwares = false;
	return cli_option_request_flag(target, option, value, err);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct list_options, member)
static const struct graft_option options[] = {
	CLI_SELECTION_OPTIONS,
	CLI_COMPAT32_OPTION,
	CLI_CAPABILITY_OPTIONS(true),
	{ .name = "no-cntlibs", .parse = cli_option_no_compat, .hidden = true },
	{ .name = "libraries", .letter = 'l', FLAG, AT(libraries), .help = "List the libraries" },
	{ .name = "binaries", .letter = 'b', FLAG, AT(binaries), .help = "List the programs" },
	{ .name = "ipcs", .letter = 'i', FLAG, AT(ipcs), .help = "List the sockets" },
	{ .name = "firmwares", .letter = 'f', FLAG, AT(firmwares), .help = "List the firmware files" },
	CLI_DRIVER_OPTIONS(no_firmware),
	{ .name = "json", FLAG, AT(json),
	  .help = "Print, as JSON, the edits that would give a container the same: sources, targets, links, devices, "
		  "environment, loader directories" },
};
/* clang-format on */

/* The capabilities that restrict the list. The 32-bit libraries belong to all of them. */
static unsigned int named_capabilities(const struct graft_request *request)
{
	return request->capabilities & ~(unsigned int)GRAFT_CAP_COMPAT32;
}

/* Whether configure would give this file with the same capabilities. */
static bool is_wanted(const struct graft_request *request, unsigned int needed)
{
	unsigned int named = named_capabilities(request);

	return named == 0 || needed == 0 || (named & needed) != 0;
}

/* ---- plain output, in the order of SPEC libnvidia-container 3.4 ---- */

static void add_list_line(struct graft_buffer *out, const char *path)
{
	if (path)
		graft_buffer_printf(out, "%s\n", path);
}

static void add_mig_lines(struct graft_buffer *out, const struct graft_pipeline *pipeline)
{
	for (size_t i = 0; i < pipeline->selection.n_migs; i++) {
		const struct graft_mig_device *mig = pipeline->selection.migs[i].mig;

		graft_buffer_printf(out, "%s/access\n%s/access\n", mig->gi_caps_path, mig->ci_caps_path);
		add_list_line(out, mig->gi_node.path);
		add_list_line(out, mig->ci_node.path);
	}
}

static void add_device_lines(struct graft_buffer *out, const struct graft_pipeline *pipeline,
			     const struct graft_request *request)
{
	const struct graft_inventory *inventory = pipeline->inventory;

	for (size_t i = 0; i < inventory->n_nodes; i++)
		if (is_wanted(request, graft_plan_node_capabilities(inventory->nodes[i].path)))
			add_list_line(out, inventory->nodes[i].path);
	for (size_t i = 0; i < pipeline->selection.n_gpus; i++)
		add_list_line(out, pipeline->selection.gpus[i]->node.path);
	if (!request->mig_config && !request->mig_monitor)
		add_mig_lines(out, pipeline);
}

static void add_mig_caps(struct graft_buffer *out, const struct graft_pipeline *pipeline, const char *name,
			 const struct graft_node *node, const struct graft_gpu *const *gpus, size_t n_gpus)
{
	if (n_gpus == 0)
		return;
	graft_buffer_printf(out, "/proc/driver/nvidia/capabilities/mig/%s\n", name);
	add_list_line(out, node->path);
	for (size_t i = 0; i < n_gpus; i++) {
		add_list_line(out, gpus[i]->mig_caps_path);
		if (pipeline->inventory->caps_devices)
			add_list_line(out, "/dev/nvidia-caps");
		for (size_t n = 0; n < gpus[i]->n_caps_nodes; n++)
			add_list_line(out, gpus[i]->caps_nodes[n].path);
	}
}

static void add_library_lines(struct graft_buffer *out, const struct graft_library *libraries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_list_line(out, libraries[i].path);
}

static void add_plain_list(struct graft_buffer *out, const struct graft_pipeline *pipeline,
			   const struct list_options *list)
{
	const struct graft_inventory *inventory = pipeline->inventory;
	const struct graft_request *request = list->container.request;
	const struct graft_selection *selection = &pipeline->selection;

	if (list->container.device_given)
		add_device_lines(out, pipeline, request);
	for (size_t i = 0; i < request->n_imex_channels; i++)
		graft_buffer_printf(out, "/dev/nvidia-caps-imex-channels/channel%u\n", request->imex_channels[i].id);
	add_mig_caps(out, pipeline, "config", &inventory->mig_config_node, selection->mig_config_gpus,
		     selection->n_mig_config_gpus);
	add_mig_caps(out, pipeline, "monitor", &inventory->mig_monitor_node, selection->mig_monitor_gpus,
		     selection->n_mig_monitor_gpus);
	for (size_t i = 0; i < inventory->n_binaries; i++)
		if (is_wanted(request, graft_plan_binary_capabilities(inventory->binaries[i].class_)))
			add_list_line(out, inventory->binaries[i].path);
	add_library_lines(out, inventory->libraries, inventory->n_libraries);
	for (size_t i = 0; list->libraries && i < inventory->n_extra_files; i++)
		if (inventory->extra_files[i].class_ == GRAFT_CLASS_WSL)
			add_list_line(out, inventory->extra_files[i].path);
	add_library_lines(out, inventory->libraries32, inventory->n_libraries32);
	for (size_t i = 0; i < inventory->n_ipcs; i++)
		if (is_wanted(request, graft_plan_binary_capabilities(inventory->ipcs[i].class_)))
			add_list_line(out, inventory->ipcs[i].path);
	for (size_t i = 0; i < inventory->n_firmwares; i++)
		add_list_line(out, inventory->firmwares[i]);
}

/* ---- the command ---- */

/*
 * Whether apply_default() counts this argument. It does not count those unknown to the existing
 * program, which must not change the meaning of the others: --json, and letters of capabilities
 * (older callers use "list -cguv").
 */
static bool is_counted(const char *word)
{
	if (graft_starts_with(word, "--j"))
		return false;
	return word[0] != '-' || word[1] == '\0' || word[1 + strspn(word + 1, "cguvnD")] != '\0';
}

/*
 * SPEC libnvidia-container 3.4: without arguments, or with --imex-channel as the only argument,
 * everything is listed.
 */
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

static unsigned int needs_of_list(const struct list_options *list)
{
	const struct graft_request *request = list->container.request;
	bool mig = request->mig_config || request->mig_monitor;
	const struct {
		bool condition;
		unsigned int needs;
	} rows[] = {
		{ list->container.device_given, GRAFT_NEED_NODES | GRAFT_NEED_GPUS | GRAFT_NEED_MIG },
		{ mig, GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_MIG_CAPS },
		{ list->libraries, GRAFT_NEED_LIBRARIES | GRAFT_NEED_FURTHER },
		{ list->libraries && (request->capabilities & GRAFT_CAP_COMPAT32) != 0, GRAFT_NEED_LIBRARIES32 },
		{ list->binaries, GRAFT_NEED_BINARIES | GRAFT_NEED_FURTHER },
		{ list->ipcs, GRAFT_NEED_IPCS },
		{ list->firmwares, GRAFT_NEED_FIRMWARE | GRAFT_NEED_FURTHER },
		{ list->json, GRAFT_NEED_PROC_FILES | GRAFT_NEED_EXTRA_FILES },
	};
	unsigned int needs = 0;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		needs |= rows[i].condition ? rows[i].needs : 0u;
	return needs;
}

static int add_json(struct graft_pipeline *pipeline, struct list_options *list, struct graft_buffer *out,
		    struct graft_error *err)
{
	struct graft_policy policy = graft_pipeline_default_policy(pipeline->inventory);
	struct graft_plan *plan = NULL;

	list->container.request->capabilities |= pipeline->host.capabilities & ~(unsigned int)GRAFT_CAP_COMPAT32;
	if (graft_pipeline_plan(pipeline, list->container.request, &policy, &plan, err) < 0)
		return -1;
	graft_plan_write(plan, out);
	graft_plan_free(plan);
	return 0;
}

static int report_list(struct cli *cli, struct list_options *list, struct graft_pipeline *pipeline)
{
	struct graft_buffer out = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_pipeline_discover(pipeline, needs_of_list(list), &err) < 0 ||
	    graft_pipeline_select(pipeline, list->container.request, &err) < 0)
		return cli_fail(cli, &err);
	cli_tell_simulated(pipeline->inventory);
	cli_warn_of_ldcache(cli, pipeline->inventory);
	if (!list->json)
		add_plain_list(&out, pipeline, list);
	else if (add_json(pipeline, list, &out, &err) < 0)
		return cli_fail(cli, &err);
	return cli_print(cli, &out);
}

static void limit_classes(const struct graft_request *request, struct graft_host_options *host)
{
	unsigned int named = named_capabilities(request);

	host->capabilities = named != 0 ? named | GRAFT_CAP_COMPAT32 : (unsigned int)GRAFT_CAP_ALL;
}

static int list_parts(struct cli *cli, struct list_options *list, int argc, char **argv,
		      struct graft_pipeline *pipeline)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (apply_default(list, argc, argv, &err) < 0)
		return cli_fail_in(cli, GRAFT_STEP_DEVICE, &err);
	if (cli_begin(cli, list->container.request, false, pipeline) != 0)
		return 1;
	limit_classes(list->container.request, &pipeline->host);
	return report_list(cli, list, pipeline);
}

static int run_list(void *context, int argc, char **argv)
{
	struct list_options given = { .container = { .request = graft_request_new() } };
	struct graft_pipeline pipeline = { .inventory = NULL };
	struct cli *cli = context;
	struct graft_error err;
	int first = 0, status = 0;

	if (!given.container.request) {
		(void)graft_fail_memory(&err);
		return cli_fail(cli, &err);
	}
	if (cli_parse(cli, &cli_list, argc, argv, &given, &first, &status) == 0) {
		status = list_parts(cli, &given, argc, argv, &pipeline);
		cli_phase(cli, "report");
	}
	graft_pipeline_done(&pipeline);
	graft_request_free(given.container.request);
	return status;
}

const struct graft_command cli_list = {
	.name = "list",
	.arguments = "",
	.summary = "List the parts of the driver that containers get",
	.description = "Prints one path per line, relative to the driver root. Without options, everything is listed. "
		       "The capability options of configure restrict the list.",
	GRAFT_OPTIONS(options),
	.abbreviations = true,
	.run = run_list,
};
