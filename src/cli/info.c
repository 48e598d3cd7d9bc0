/* SPDX-License-Identifier: Apache-2.0 */
/* info: what driver and GPUs this host has (SPEC libnvidia-container 3.3). The one command that always asks NVML. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/pipeline.h"

struct info_options {
	bool csv, json;
};

static const struct graft_option options[] = {
	{ .name = "csv",
	  .help = "Output in CSV format",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct info_options, csv) },
	{ .name = "json",
	  .help = "Output everything that is known about the host as JSON",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct info_options, json) },
};

/* Facts that the plain output shows, those that only --json shows. */
static const unsigned int shown_facts = GRAFT_NVML_UUID | GRAFT_NVML_MODEL | GRAFT_NVML_BRAND | GRAFT_NVML_ARCH |
					GRAFT_NVML_CUDA;

static const char *text_of(const struct graft_fact *fact)
{
	return fact->value ? fact->value : "Unknown";
}

static void add_index(struct graft_buffer *out, const struct graft_gpu *gpu)
{
	graft_buffer_printf(out, "%u", gpu->index);
}

/* SPEC 3.3: 0 where there is no node (WSL2). */
static void add_minor(struct graft_buffer *out, const struct graft_gpu *gpu)
{
	graft_buffer_printf(out, "%u", gpu->node.path ? gpu->node.minor : 0);
}

static void add_model(struct graft_buffer *out, const struct graft_gpu *gpu)
{
	graft_buffer_string(out, text_of(&gpu->model));
}

static void add_brand(struct graft_buffer *out, const struct graft_gpu *gpu)
{
	graft_buffer_string(out, text_of(&gpu->brand));
}

static void add_uuid(struct graft_buffer *out, const struct graft_gpu *gpu)
{
	graft_buffer_string(out, text_of(&gpu->uuid));
}

static void add_bus_id(struct graft_buffer *out, const struct graft_gpu *gpu)
{
	graft_buffer_string(out, gpu->bus_id);
}

static void add_arch(struct graft_buffer *out, const struct graft_gpu *gpu)
{
	graft_buffer_string(out, text_of(&gpu->arch));
}

/* The lines of a GPU, the columns of its row. Names are parsed by others (LXD, scripts): never change them. */
static const struct {
	const char *name;
	void (*add)(struct graft_buffer *out, const struct graft_gpu *gpu);
} columns[] = {
	{ "Device Index", add_index }, { "Device Minor", add_minor }, { "Model", add_model },
	{ "Brand", add_brand },        { "GPU UUID", add_uuid },      { "Bus Location", add_bus_id },
	{ "Architecture", add_arch },
};

/* "Label:" in 15 columns and a space. */
static void add_label(struct graft_buffer *out, const char *label)
{
	graft_buffer_printf(out, "%s:%*s", label, 15 - (int)strlen(label), "");
}

static void add_plain(struct graft_buffer *out, const struct graft_inventory *inventory)
{
	add_label(out, "NVRM version");
	graft_buffer_printf(out, "%s\n", text_of(&inventory->driver_version));
	add_label(out, "CUDA version");
	graft_buffer_printf(out, "%s\n", text_of(&inventory->cuda_version));
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].excluded)
			continue;
		graft_buffer_char(out, '\n');
		for (size_t c = 0; c < GRAFT_COUNT(columns); c++) {
			add_label(out, columns[c].name);
			columns[c].add(out, &inventory->gpus[i]);
			graft_buffer_char(out, '\n');
		}
	}
}

/* No quoting: SPEC 3.3. */
static void add_csv(struct graft_buffer *out, const struct graft_inventory *inventory)
{
	graft_buffer_printf(out, "NVRM version,CUDA version\n%s,%s\n\n", text_of(&inventory->driver_version),
			    text_of(&inventory->cuda_version));
	for (size_t c = 0; c < GRAFT_COUNT(columns); c++)
		graft_buffer_printf(out, "%s%s", c > 0 ? "," : "", columns[c].name);
	graft_buffer_char(out, '\n');
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].excluded)
			continue;
		for (size_t c = 0; c < GRAFT_COUNT(columns); c++) {
			if (c > 0)
				graft_buffer_char(out, ',');
			columns[c].add(out, &inventory->gpus[i]);
		}
		graft_buffer_char(out, '\n');
	}
}

/* What NVML contradicts: whoever uses an index should know that tools of the driver count differently. */
static void warn_of_contradictions(const struct graft_inventory *inventory, size_t first)
{
	for (size_t i = first; i < inventory->n_omissions; i++)
		(void)fprintf(stderr, CLI_PROGRAM ": warning: %s: %s\n", inventory->omissions[i].what,
			      inventory->omissions[i].why);
}

/* Discovery, then NVML. */
static int look(struct cli_pipeline *pipeline, bool everything, struct graft_error *err)
{
	unsigned int needs = everything ? (unsigned int)GRAFT_NEED_ALL : (unsigned int)GRAFT_NEED_GPUS;
	unsigned int facts = everything ? shown_facts | GRAFT_NVML_MIG : shown_facts;
	size_t n_omissions;

	pipeline->host.gates = everything ? GRAFT_GATE_ALL : 0;
	if (cli_pipeline_discover(pipeline, needs, err) < 0)
		return -1;
	n_omissions = pipeline->inventory->n_omissions;
	if (cli_pipeline_complete(pipeline, facts, err) < 0)
		return -1;
	warn_of_contradictions(pipeline->inventory, n_omissions);
	return 0;
}

static int report(struct cli *cli, const struct info_options *info, struct cli_pipeline *pipeline)
{
	struct graft_buffer out = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	if (look(pipeline, info->json, &err) < 0)
		return cli_fail(cli, pipeline->prefix, &err);
	cli_tell_simulated(pipeline->inventory);
	if (info->json)
		graft_inventory_write(pipeline->inventory, &out);
	else if (info->csv)
		add_csv(&out, pipeline->inventory);
	else
		add_plain(&out, pipeline->inventory);
	return cli_print(cli, &out);
}

static int run(void *context, int argc, char **argv)
{
	struct cli *cli = context;
	struct info_options info = { .csv = false };
	struct cli_pipeline pipeline = { .inventory = NULL };
	int first = 0, status = 0;

	if (cli_parse(cli, &cli_info, argc, argv, &info, &first, &status) < 0)
		return status;
	cli_open_log(cli, NULL);
	cli_phase(cli, "parse");
	status = cli_limit(cli, false);
	if (status == 0)
		status = cli_load_kmods(cli, NULL);
	if (status == 0) {
		cli_pipeline_start(cli, NULL, &pipeline);
		status = report(cli, &info, &pipeline);
	}
	cli_pipeline_done(&pipeline);
	cli_phase(cli, "report");
	return status;
}

const struct graft_command cli_info = {
	.name = "info",
	.arguments = "",
	.summary = "Report the driver and the GPUs of this host",
	.description = "Prints the versions of the driver and one block for each GPU. Exit status 0 means that the "
		       "driver works: NVML is asked, in a process of its own without privileges.",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.abbreviations = true,
	.run = run,
};
