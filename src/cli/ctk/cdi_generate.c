/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_generate: nvidia-ctk cdi generate (SPEC ctk-and-cdi 1.5): flags, one look at the host, files. docs/cdi-generate.md. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/ctk/cdi_decision.h"
#include "cli/ctk/cdi_file.h"

/* ---- flags ---- */

/* clang-format off */
#define AT(member) .offset = offsetof(struct ctk_cdi_flags, member)
#define TEXT       .argument = GRAFT_OPTION_REQUIRED, .parse = graft_option_set_string
#define LIST       .argument = GRAFT_OPTION_REQUIRED, .parse = ctk_option_list
#define FLAG       .parse = graft_option_set_true
#define ENV(name)  .environment = (const char *const[]){ "NVIDIA_CTK_" name, NULL }
#define ALIAS(...) .aliases = (const char *const[]){ __VA_ARGS__, NULL }
#define WORDS(...) .values = (const char *const[]){ __VA_ARGS__, NULL }

static const struct graft_option options[] = {
	{ .name = "mode", TEXT, AT(mode), ALIAS("discovery-mode"), .value_name = "MODE", ENV("CDI_GENERATE_MODE"),
	  .help = "What is described: auto, csv, gdrcopy, gds, imex, management, mofed, nvml, nvswitch or wsl (default auto)",
	  WORDS("auto", "csv", "gdrcopy", "gds", "imex", "management", "mofed", "nvml", "nvswitch", "wsl") },
	{ .name = "output", TEXT, AT(output), .value_name = "FILE", ENV("CDI_OUTPUT_FILE_PATH"),
	  .help = "Where it is written, .json or .yaml (default standard output)" },
	{ .name = "format", TEXT, AT(format), .value_name = "FORMAT", ENV("CDI_GENERATE_OUTPUT_FORMAT"),
	  .help = "json or yaml (default by the name of the output, else yaml)", WORDS("json", "yaml") },
	{ .name = "driver-root", TEXT, AT(driver_root), .value_name = "DIR", ENV("DRIVER_ROOT"),
	  .help = "Root of the driver's files (default nvidia-container-cli.root of the configuration, else /)" },
	{ .name = "dev-root", TEXT, AT(dev_root), .value_name = "DIR", ENV("DEV_ROOT"),
	  .help = "Root of the device nodes (default the driver root if it has some, else /)" },
	{ .name = "device-id", LIST, AT(ids), ALIAS("device-ids", "device", "devices"), .value_name = "ID",
	  ENV("CDI_GENERATE_DEVICE_IDS"),
	  .help = "Devices that are described, as the mode understands them (default all)" },
	{ .name = "device-name-strategy", LIST, AT(namings), .value_name = "STRATEGY",
	  ENV("CDI_GENERATE_DEVICE_NAME_STRATEGIES"),
	  .help = "How devices are called: index, uuid, type-index; a device has a name by each (default index, uuid)",
	  WORDS("index", "uuid", "type-index") },
	{ .name = "no-all-device", FLAG, AT(no_all_device), ENV("CDI_GENERATE_NO_ALL_DEVICE"),
	  .help = "Leave the device out that stands for all others" },
	{ .name = "vendor", TEXT, AT(vendor), ALIAS("cdi-vendor"), .value_name = "VENDOR", ENV("CDI_GENERATE_VENDOR"),
	  .help = "Vendor of the devices (default nvidia.com, in mode management management.nvidia.com)" },
	{ .name = "class", TEXT, AT(class_), ALIAS("cdi-class"), .value_name = "CLASS", ENV("CDI_GENERATE_CLASS"),
	  .help = "Class of the devices (default gpu; imex-channel, or the mode's name, for what is no GPU)" },
	{ .name = "driver-capabilities", LIST, AT(capabilities), .value_name = "CAPABILITY",
	  ENV("CDI_GENERATE_DRIVER_CAPABILITIES"),
	  .help = "Parts of the driver that containers get, by the words of NVIDIA_DRIVER_CAPABILITIES (default all but compat32)",
	  WORDS("all", "compute", "compat32", "graphics", "utility", "video", "display", "ngx") },
	{ .name = "compat32", FLAG, AT(compat32), ENV("CDI_GENERATE_COMPAT32"),
	  .help = "The 32-bit libraries too" },
	{ .name = "no-hooks", FLAG, AT(no_hooks), ENV("CDI_GENERATE_NO_HOOKS"),
	  .help = "For readers that run no programs: links become mounts, and the image's loader is left alone" },
	{ .name = "disable-hook", LIST, AT(disabled_hooks), ALIAS("disable-hooks"), .value_name = "HOOK",
	  ENV("CDI_GENERATE_DISABLED_HOOKS"),
	  .help = "Hooks that are left out, or all; what they would have done is not done" },
	{ .name = "enable-hook", LIST, AT(enabled_hooks), ALIAS("enable-hooks"), .value_name = "HOOK",
	  ENV("CDI_GENERATE_ENABLED_HOOKS"), .help = "Hooks that are there in spite of --disable-hook; chmod" },
	{ .name = "nvidia-cdi-hook-path", TEXT, AT(hook_path), ALIAS("nvidia-ctk-path"), .value_name = "PATH",
	  ENV("CDI_HOOK_PATH"), .help = "The program that hooks run (default nvidia-cdi-hook, searched in PATH)" },
	{ .name = "ldconfig-path", TEXT, AT(ldconfig_path), .value_name = "PATH", ENV("CDI_GENERATE_LDCONFIG_PATH"),
	  .help = "Handed on to the hook update-ldcache, for programs of other toolkits" },
	{ .name = "library-search-path", LIST, AT(library_search_path), .value_name = "DIR",
	  ENV("CDI_GENERATE_LIBRARY_SEARCH_PATHS"),
	  .help = "Look for libraries there and not where the loader and the driver say; in mode csv first" },
	{ .name = "config-search-path", LIST, AT(config_search_path), .value_name = "DIR",
	  ENV("CDI_GENERATE_CONFIG_SEARCH_PATHS"),
	  .help = "Look for files of graphics drivers there and not in /etc, /usr/share and their like" },
	{ .name = "csv.file", LIST, AT(csv_files), .value_name = "FILE", ENV("CDI_GENERATE_CSV_FILES"),
	  .help = "Lists of a Tegra board (default devices.csv, drivers.csv, l4t.csv in " GRAFT_CSV_DIRECTORY ")" },
	{ .name = "csv.ignore-pattern", LIST, AT(csv_ignore_patterns), .value_name = "PATTERN",
	  ENV("CDI_GENERATE_CSV_IGNORE_PATTERNS"),
	  .help = "Links of these lists that are left out; behind **/ a pattern is for names, else for whole paths" },
	{ .name = "csv.compat-container-root", TEXT, AT(csv_compat_directory), .value_name = "DIR",
	  ENV("CDI_GENERATE_CSV_CONTAINER_COMPAT_ROOT"),
	  .help = "Where images have CUDA compatibility libraries for an Orin (default " CTK_CDI_ORIN_COMPAT ")" },
	{ .name = "feature-flag", LIST, AT(features), ALIAS("feature-flags"), .value_name = "FLAG",
	  ENV("CDI_GENERATE_FEATURE_FLAGS"),
	  .help = "enable-explicit-driver-libraries, enable-coherent-annotations, disable-multiple-csv-devices, "
		  "no-additional-gids-for-device-nodes, disable-ipc-discoverer" },
	{ .name = "provenance", TEXT, AT(provenance), .value_name = "HOW", ENV("CDI_GENERATE_PROVENANCE"),
	  .help = "Where the spec says what it was made from: auto, annotations (readers must know version 0.6.0) or none (default auto)",
	  WORDS("auto", "annotations", "none") },
};
/* clang-format on */

/* ---- writing ---- */

/* "dir/nvidia.coherent.yaml" */
static const char *file_of(const struct ctk *ctk, const char *output, const char *infix)
{
	const char *ending = strrchr(output, '.');

	return graft_arena_printf(ctk->arena, "%.*s%s%s", (int)(ending - output), output, infix, ending);
}

static int write_item(struct ctk *ctk, const struct ctk_cdi_decision *decision, const struct ctk_cdi_item *item,
		      struct graft_buffer *out, struct graft_error *err)
{
	struct graft_buffer text = { .max = 0 };
	const char *file = decision->output ? file_of(ctk, decision->output, item->infix) : NULL;
	int rc = 0;

	if (decision->output && !file)
		return graft_fail_memory(err);
	if (!file && out->length > 0 && decision->format == GRAFT_CDI_JSON)
		graft_buffer_char(out, '\n');
	rc = graft_cdi_spec_write(&item->spec, decision->format, file ? &text : out, err);
	if (rc == 0 && file)
		rc = ctk_cdi_write_file(ctk, file, &text, err);
	graft_buffer_done(&text);
	if (rc < 0)
		return graft_wrap(err, "failed to write spec");
	graft_info(&ctk->log, "Generated CDI spec with version %s", graft_cdi_spec_minimum_version(&item->spec));
	return 0;
}

static int write_all(struct ctk *ctk, const struct ctk_cdi_decision *decision, const struct ctk_cdi_specs *specs)
{
	struct graft_buffer out = { .max = 0 };
	int status = 0;

	for (size_t i = 0; i < specs->n; i++) {
		struct graft_error err = { .status = GRAFT_OK };

		if (write_item(ctk, decision, &specs->items[i], &out, &err) < 0)
			status = ctk_fail(ctk, &err, "failed to save CDI spec");
	}
	if (out.length > 0)
		return ctk_print(ctk, &out) != 0 ? 1 : status;
	graft_buffer_done(&out);
	return status;
}

/* ---- what a person should know ---- */

static bool has_cuda(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_libraries; i++) {
		if (strcmp(inventory->libraries[i].soname, "libcuda.so.1") == 0)
			return true;
	}
	return false;
}

static void tell(const struct ctk *ctk, const struct ctk_cdi_wish *wish, const struct ctk_cdi_host *host,
		 const struct ctk_cdi_specs *specs)
{
	for (size_t i = 0; i < specs->n_warnings; i++)
		graft_warn(&ctk->log, "%s", specs->warnings[i]);
	if (wish->mode == CTK_CDI_NVML && (wish->capabilities & GRAFT_CAP_COMPUTE) != 0 && !has_cuda(host->inventory))
		graft_warn(&ctk->log, "libcuda of this driver was not found: containers will have no CUDA; is the "
				      "driver installed completely?");
	if (wish->mode == CTK_CDI_NVML && wish->provenance == GRAFT_CDI_PROVENANCE_AUTO && specs->n > 0 &&
	    !specs->items[0].has_provenance)
		graft_info(&ctk->log, "The spec does not say which driver it was made for: it has no hook to say it "
				      "with; --provenance=annotations says it, to readers of version 0.6.0");
}

static int make(struct ctk *ctk, const struct ctk_cdi_decision *decision, struct ctk_cdi_host *host,
		struct ctk_cdi_specs *specs)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (ctk_cdi_read_host(ctk, &decision->wish, &decision->places, host, &err) < 0) {
		(void)graft_wrap(&err, "failed to create CDI library");
		return ctk_fail(ctk, &err, "failed to generate CDI spec");
	}
	if (ctk_cdi_make(&decision->wish, host, ctk->arena, specs, &err) < 0)
		return ctk_fail(ctk, &err, "failed to generate CDI spec");
	tell(ctk, &decision->wish, host, specs);
	return write_all(ctk, decision, specs);
}

static int generate(struct ctk *ctk, const struct ctk_cdi_flags *given)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct ctk_cdi_host host = { .inventory = NULL };
	struct ctk_cdi_specs specs = { .n = 0 };
	struct ctk_cdi_decision decision;
	int rc = ctk_cdi_decide(ctk, given, &decision, &err);

	if (rc != 0)
		return rc < 0 ? ctk_fail(ctk, &err, "%s", "") : 1;
	decision.wish.flags = ctk_cdi_flags_text(ctk, ctk->given, ctk->n_given);
	if (!decision.wish.flags) {
		(void)graft_fail_memory(&err);
		return ctk_fail(ctk, &err, "%s", "");
	}
	rc = make(ctk, &decision, &host, &specs);
	ctk_cdi_specs_done(&specs);
	ctk_cdi_host_done(&host);
	return rc;
}

static int run(void *context, int argc, char **argv)
{
	struct ctk_cdi_flags given = { .output = NULL };
	int first, status = 0;

	if (ctk_parse(context, &ctk_cdi_generate, &given, argc, argv, &first, &status) < 0)
		return status;
	return generate(context, &given);
}

const struct graft_command ctk_cdi_generate = {
	CTK_COMMAND,
	.name = "generate",
	.summary = "Describe the GPUs of this host in a CDI spec",
	.description = "Engines that know the Container Device Interface give containers the devices of the spec: "
		       "docker run --device nvidia.com/gpu=0, podman run --device nvidia.com/gpu=all.\n\n"
		       "What is read is procfs, sysfs and the driver's files. NVML, which wakes the GPUs, is asked for "
		       "names of MIG devices alone.",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.bundled = true,
	.run = run,
};
