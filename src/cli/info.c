/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info: the driver and the GPUs of this host (SPEC libnvidia-container 3.3). The only command that
 * always asks NVML.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/terminal.h"
#include "start/pipeline.h"

struct info_options {
	bool csv, json;
};

static const struct graft_option options[] = {
	{ .name = "csv",
	  .help = "Print CSV",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct info_options, csv) },
	{ .name = "json",
	  .help = "Print everything known about the host as JSON",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct info_options, json) },
};

/* Facts that the plain output shows; --json adds the MIG devices. */
static const unsigned int shown_facts = GRAFT_NVML_UUID | GRAFT_NVML_MODEL | GRAFT_NVML_BRAND | GRAFT_NVML_ARCH |
					GRAFT_NVML_CUDA;

static const char *text_of(const struct graft_fact *fact)
{
	return fact->value ? fact->value : "Unknown";
}

/*
 * The lines of a GPU in plain output, and the columns of its row in CSV. Others parse these names
 * (LXD, scripts): never change them.
 */
enum column { INDEX, MINOR, MODEL, BRAND, UUID, BUS_ID, ARCH, N_COLUMNS };
static const char *const columns[N_COLUMNS] = { "Device Index", "Device Minor", "Model",       "Brand",
						"GPU UUID",     "Bus Location", "Architecture" };

static void add_column(struct graft_buffer *out, const struct graft_gpu *gpu, size_t column)
{
	/* SPEC libnvidia-container 3.3: 0 if there is no node (WSL2). */
	const unsigned int minor = gpu->node.path ? gpu->node.minor : 0;
	const char *const texts[N_COLUMNS] = { [MODEL] = text_of(&gpu->model),
					       [BRAND] = text_of(&gpu->brand),
					       [UUID] = text_of(&gpu->uuid),
					       [BUS_ID] = gpu->bus_id,
					       [ARCH] = text_of(&gpu->arch) };

	if (texts[column])
		graft_buffer_string(out, texts[column]);
	else
		graft_buffer_printf(out, "%u", column == INDEX ? gpu->index : minor);
}

/* "Label:", padded to 16 columns, and bright on a terminal. */
static void add_label(struct graft_buffer *out, const char *label)
{
	const bool colours = cli_has_colours(STDOUT_FILENO);

	graft_buffer_printf(out, "%s%s:%s%*s", colours ? "\033[36m" : "", label, colours ? "\033[0m" : "",
			    15 - (int)strlen(label), "");
}

static void add_plain_info(struct graft_buffer *out, const struct graft_inventory *inventory)
{
	add_label(out, "NVRM version");
	graft_buffer_printf(out, "%s\n", text_of(&inventory->driver_version));
	add_label(out, "CUDA version");
	graft_buffer_printf(out, "%s\n", text_of(&inventory->cuda_version));
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].excluded)
			continue;
		graft_buffer_char(out, '\n');
		for (size_t c = 0; c < N_COLUMNS; c++) {
			add_label(out, columns[c]);
			add_column(out, &inventory->gpus[i], c);
			graft_buffer_char(out, '\n');
		}
	}
}

/* No quoting: SPEC libnvidia-container 3.3. */
static void add_csv(struct graft_buffer *out, const struct graft_inventory *inventory)
{
	graft_buffer_printf(out, "NVRM version,CUDA version\n%s,%s\n\n", text_of(&inventory->driver_version),
			    text_of(&inventory->cuda_version));
	for (size_t c = 0; c < N_COLUMNS; c++)
		graft_buffer_printf(out, "%s%s", c > 0 ? "," : "", columns[c]);
	graft_buffer_char(out, '\n');
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].excluded)
			continue;
		for (size_t c = 0; c < N_COLUMNS; c++) {
			graft_buffer_string(out, c > 0 ? "," : "");
			add_column(out, &inventory->gpus[i], c);
		}
		graft_buffer_char(out, '\n');
	}
}

/*
 * NVML contradicts the kernel driver here: users of an index need to know that the driver's tools
 * count differently.
 */
static void warn_of_contradictions(const struct graft_inventory *inventory, size_t first)
{
	for (size_t i = first; i < inventory->n_omissions; i++)
		(void)fprintf(stderr, CLI_PROGRAM ": warning: %s: %s\n", inventory->omissions[i].what,
			      inventory->omissions[i].why);
}

/* Discovers the host, then asks NVML. */
static int look_at_devices(struct graft_pipeline *pipeline, bool everything, struct graft_error *err)
{
	unsigned int needs = everything ? (unsigned int)GRAFT_NEED_ALL : (unsigned int)GRAFT_NEED_GPUS;
	unsigned int facts = everything ? shown_facts | GRAFT_NVML_MIG : shown_facts;
	size_t n_omissions;

	pipeline->host.gates = everything ? GRAFT_GATE_ALL : 0;
	if (graft_pipeline_discover(pipeline, needs, err) < 0)
		return -1;
	n_omissions = pipeline->inventory->n_omissions;
	if (graft_pipeline_complete(pipeline, facts, err) < 0)
		return -1;
	warn_of_contradictions(pipeline->inventory, n_omissions);
	return 0;
}

static int report_info(struct cli *cli, const struct info_options *info, struct graft_pipeline *pipeline)
{
	struct graft_buffer out = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	if (look_at_devices(pipeline, info->json, &err) < 0)
		return cli_fail(cli, &err);
	cli_tell_simulated(pipeline->inventory);
	cli_warn_of_ldcache(cli, pipeline->inventory);
	if (info->json)
		graft_inventory_write(pipeline->inventory, &out);
	else if (info->csv)
		add_csv(&out, pipeline->inventory);
	else
		add_plain_info(&out, pipeline->inventory);
	return cli_print(cli, &out);
}

static int run_info(void *context, int argc, char **argv)
{
	struct cli *cli = context;
	struct info_options info = { .csv = false };
	struct graft_pipeline pipeline = { .inventory = NULL };
	int first = 0, status = 0;

	if (cli_parse(cli, &cli_info, argc, argv, &info, &first, &status) < 0)
		return status;
	status = cli_begin(cli, NULL, false, &pipeline);
	if (status == 0)
		status = report_info(cli, &info, &pipeline);
	graft_pipeline_done(&pipeline);
	cli_phase(cli, "report");
	return status;
}

const struct graft_command cli_info = {
	.name = "info",
	.arguments = "",
	.summary = "Show the driver and the GPUs of this host",
	.description = "Prints the driver's versions and one block for each GPU. Exit status 0 means that the driver "
		       "works: NVML is initialised, in an unprivileged process of its own.",
	GRAFT_OPTIONS(options),
	.abbreviations = true,
	.run = run_info,
};
