/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_generate: nvidia-ctk cdi generate (SPEC ctk-and-cdi 1.5): reads flags and host, writes the
 * files. See docs/cdi-generate.md.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/option_rows.h"
#include "cli/ctk/cdi_decision.h"
#include "cli/ctk/cdi_file.h"
#include "doctor/facts.h"
#include "doctor/judge.h"

/* ---- flags ---- */

/* clang-format off */
#define AT(member)    .offset = offsetof(struct ctk_cdi_flags, member)
#define LIST          .argument = GRAFT_OPTION_REQUIRED, .parse = ctk_option_list
#define CTK_ENV(name) ENV("NVIDIA_CTK_" name)

static const struct graft_option options[] = {
	{ .name = "mode", TEXT, AT(mode), ALIAS("discovery-mode"), .value_name = "MODE", CTK_ENV("CDI_GENERATE_MODE"),
	  .help = "What to describe: auto, csv, gdrcopy, gds, imex, management, mofed, nvml, nvswitch or wsl (default auto)",
	  WORDS("auto", "csv", "gdrcopy", "gds", "imex", "management", "mofed", "nvml", "nvswitch", "wsl") },
	{ .name = "output", TEXT, AT(output), .value_name = "FILE", CTK_ENV("CDI_OUTPUT_FILE_PATH"),
	  .help = "Output file, .json or .yaml (default standard output)" },
	{ .name = "format", TEXT, AT(format), .value_name = "FORMAT", CTK_ENV("CDI_GENERATE_OUTPUT_FORMAT"),
	  .help = "json or yaml (default by the name of the output file, else yaml)", WORDS("json", "yaml") },
	{ .name = "driver-root", TEXT, AT(driver_root), .value_name = "DIR", CTK_ENV("DRIVER_ROOT"),
	  .help = "Root of the driver's files (default nvidia-container-cli.root of the configuration, else /)" },
	{ .name = "dev-root", TEXT, AT(dev_root), .value_name = "DIR", CTK_ENV("DEV_ROOT"),
	  .help = "Root of the device nodes (default the driver root if it has any, else /)" },
	{ .name = "device-id", LIST, AT(ids), ALIAS("device-ids", "device", "devices"), .value_name = "ID",
	  CTK_ENV("CDI_GENERATE_DEVICE_IDS"),
	  .help = "Devices to describe; the mode determines the form (default all)" },
	{ .name = "device-name-strategy", LIST, AT(namings), .value_name = "STRATEGY",
	  CTK_ENV("CDI_GENERATE_DEVICE_NAME_STRATEGIES"),
	  .help = "How to name devices: index, uuid, type-index; each strategy given adds a name (default index, uuid)",
	  WORDS("index", "uuid", "type-index") },
	{ .name = "no-all-device", FLAG, AT(no_all_device), CTK_ENV("CDI_GENERATE_NO_ALL_DEVICE"),
	  .help = "Leave out the device 'all'" },
	{ .name = "leases", FLAG, AT(leases), CTK_ENV("CDI_GENERATE_LEASES"),
	  .help = "Also describe leases of N GPUs (nvidia.com/lease=N), in a separate spec next to the output: *.lease.yaml" },
	{ .name = "vendor", TEXT, AT(vendor), ALIAS("cdi-vendor"), .value_name = "VENDOR", CTK_ENV("CDI_GENERATE_VENDOR"),
	  .help = "Vendor of the devices (default nvidia.com, in mode management management.nvidia.com)" },
	{ .name = "class", TEXT, AT(class_), ALIAS("cdi-class"), .value_name = "CLASS", CTK_ENV("CDI_GENERATE_CLASS"),
	  .help = "Class of the devices (default gpu; imex-channel, or the name of the mode, for other devices)" },
	{ .name = "driver-capabilities", LIST, AT(capabilities), .value_name = "CAPABILITY",
	  CTK_ENV("CDI_GENERATE_DRIVER_CAPABILITIES"),
	  .help = "Parts of the driver to include, as in NVIDIA_DRIVER_CAPABILITIES (default all but compat32)",
	  WORDS("all", "compute", "compat32", "graphics", "utility", "video", "display", "ngx") },
	{ .name = "compat32", FLAG, AT(compat32), CTK_ENV("CDI_GENERATE_COMPAT32"),
	  .help = "Include the 32-bit libraries" },
	{ .name = "no-hooks", FLAG, AT(no_hooks), CTK_ENV("CDI_GENERATE_NO_HOOKS"),
	  .help = "Write no hooks, for engines that run none: links become mounts, and the loader's cache is not updated" },
	{ .name = "late-mounts", FLAG, AT(late_mounts), CTK_ENV("CDI_GENERATE_LATE_MOUNTS"),
	  .help = "Let one hook mount the files, which is faster than mounts by runc or crun; needs Graft's nvidia-cdi-hook" },
	{ .name = "disable-hook", LIST, AT(disabled_hooks), ALIAS("disable-hooks"), .value_name = "HOOK",
	  CTK_ENV("CDI_GENERATE_DISABLED_HOOKS"),
	  .help = "Hooks to leave out, or all; their work is not done" },
	{ .name = "enable-hook", LIST, AT(enabled_hooks), ALIAS("enable-hooks"), .value_name = "HOOK",
	  CTK_ENV("CDI_GENERATE_ENABLED_HOOKS"), .help = "Hooks to include despite --disable-hook; chmod is included only if it is named here" },
	{ .name = "nvidia-cdi-hook-path", TEXT, AT(hook_path), ALIAS("nvidia-ctk-path"), .value_name = "PATH",
	  CTK_ENV("CDI_HOOK_PATH"), .help = "Program for the hooks (default nvidia-cdi-hook, searched in PATH)" },
	{ .name = "ldconfig-path", TEXT, AT(ldconfig_path), .value_name = "PATH", CTK_ENV("CDI_GENERATE_LDCONFIG_PATH"),
	  .help = "Passed to the hook update-ldcache, for other toolkits" },
	{ .name = "library-search-path", LIST, AT(library_search_path), .value_name = "DIR",
	  CTK_ENV("CDI_GENERATE_LIBRARY_SEARCH_PATHS"),
	  .help = "Directory to search for libraries, instead of the loader's and the driver's; in mode csv, before them" },
	{ .name = "config-search-path", LIST, AT(config_search_path), .value_name = "DIR",
	  CTK_ENV("CDI_GENERATE_CONFIG_SEARCH_PATHS"),
	  .help = "Directory to search for files of graphics drivers, instead of /etc, /usr/share and similar ones" },
	{ .name = "csv.file", LIST, AT(csv_files), .value_name = "FILE", CTK_ENV("CDI_GENERATE_CSV_FILES"),
	  .help = "CSV files of a Tegra system (default devices.csv, drivers.csv, l4t.csv in " GRAFT_CSV_DIRECTORY ")" },
	{ .name = "csv.ignore-pattern", LIST, AT(csv_ignore_patterns), .value_name = "PATTERN",
	  CTK_ENV("CDI_GENERATE_CSV_IGNORE_PATTERNS"),
	  .help = "Links of these files to leave out; a pattern after **/ matches names, others match whole paths" },
	{ .name = "csv.compat-container-root", TEXT, AT(csv_compat_directory), .value_name = "DIR",
	  CTK_ENV("CDI_GENERATE_CSV_CONTAINER_COMPAT_ROOT"),
	  .help = "Directory of images with CUDA compatibility libraries for Orin (default " CTK_CDI_ORIN_COMPAT ")" },
	{ .name = "feature-flag", LIST, AT(features), ALIAS("feature-flags"), .value_name = "FLAG",
	  CTK_ENV("CDI_GENERATE_FEATURE_FLAGS"),
	  .help = "enable-explicit-driver-libraries, enable-coherent-annotations, disable-multiple-csv-devices, "
		  "no-additional-gids-for-device-nodes, disable-ipc-discoverer" },
	{ .name = "provenance", TEXT, AT(provenance), .value_name = "HOW", CTK_ENV("CDI_GENERATE_PROVENANCE"),
	  .help = "Where to record what the spec was made from: auto, annotations (needs CDI 0.6.0) or none (default auto)",
	  WORDS("auto", "annotations", "none") },
	{ .name = "cdi-version", TEXT, AT(cdi_version), .value_name = "VERSION", CTK_ENV("CDI_GENERATE_CDI_VERSION"),
	  .help = "Highest CDI version that the spec may need: 0.5.0, 0.6.0, 0.7.0, or auto, what the engines of this host read (default auto)",
	  WORDS("auto", "0.5.0", "0.6.0", "0.7.0") },
};
/* clang-format on */

/* ---- writing ---- */

/* "dir/nvidia.coherent.yaml" */
static const char *name_cdi_spec_file(const struct ctk *ctk, const char *output, const char *infix)
{
	const char *ending = strrchr(output, '.');

	return graft_arena_printf(ctk->arena, "%.*s%s%s", (int)(ending - output), output, infix, ending);
}

static int write_item(struct ctk *ctk, const struct ctk_cdi_decision *decision, const struct graft_cdi_item *item,
		      struct graft_buffer *out, struct graft_error *err)
{
	auto_buffer struct graft_buffer text = { .max = 0 };
	const char *file = decision->output ? name_cdi_spec_file(ctk, decision->output, item->infix) : NULL;
	int rc = 0;

	if (decision->output && !file)
		return graft_fail_memory(err);
	if (!file && out->length > 0 && decision->format == GRAFT_CDI_JSON)
		graft_buffer_char(out, '\n');
	rc = graft_cdi_spec_write(&item->spec, decision->format, file ? &text : out, err);
	if (rc == 0 && file)
		rc = ctk_cdi_write_file(ctk, file, &text, err);
	if (rc < 0)
		return graft_wrap(err, "failed to write spec");
	graft_info(&ctk->log, "Generated CDI spec with version %s", graft_cdi_spec_minimum_version(&item->spec));
	return 0;
}

static int write_all(struct ctk *ctk, const struct ctk_cdi_decision *decision, const struct graft_cdi_specs *specs)
{
	auto_buffer struct graft_buffer out = { .max = 0 };
	int status = 0;

	for (size_t i = 0; i < specs->n; i++) {
		struct graft_error err = { .status = GRAFT_OK };

		if (write_item(ctk, decision, &specs->items[i], &out, &err) < 0)
			status = ctk_fail(ctk, &err, "failed to save CDI spec");
	}
	if (out.length > 0)
		return ctk_print(ctk, &out) != 0 ? 1 : status;
	return status;
}

/* ---- notes for the user ---- */

static bool has_cuda(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_libraries; i++) {
		if (strcmp(inventory->libraries[i].soname, "libcuda.so.1") == 0)
			return true;
	}
	return false;
}

static void report_cdi_specs(const struct ctk *ctk, const struct graft_cdi_demand *demand,
			     const struct graft_cdi_host *host, const struct graft_cdi_specs *specs)
{
	for (size_t i = 0; i < specs->n_warnings; i++)
		graft_warn(&ctk->log, "%s", specs->warnings[i]);
	if (demand->mode == GRAFT_CDI_MODE_NVML && (demand->capabilities & GRAFT_CAP_COMPUTE) != 0 &&
	    !has_cuda(host->inventory))
		graft_warn(&ctk->log, "libcuda of this driver was not found: containers will have no CUDA; is the "
				      "driver installed completely?");
	if (demand->mode == GRAFT_CDI_MODE_NVML && demand->provenance == GRAFT_CDI_PROVENANCE_AUTO && specs->n > 0 &&
	    !specs->items[0].has_provenance)
		graft_info(&ctk->log, "The spec does not record which driver it was made for, because it has no hook; "
				      "--provenance=annotations records it, for engines that read CDI 0.6.0");
}

/* ---- versions ---- */

/* The oldest reader of the spec: an engine of this host, or the version of --cdi-version. */
struct reader {
	const char *reads; /* highest CDI version; NULL: no limit */
	const char *name;  /* "podman 4.3.1", "podman with CDI library 0.6.2"; NULL: from --cdi-version */
};

/* A host whose engines are unknown limits nothing: the spec may be for another host. */
static struct reader find_reader(const struct ctk *ctk, const struct ctk_cdi_decision *decision)
{
	const struct graft_health_options look = { .host = { .root = "/" } };
	const struct graft_health_engine *engine = NULL;
	const struct graft_cdi_reader *oldest;
	struct graft_health *health = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	struct reader reader = { .reads = decision->cdi_version };

	if (reader.reads)
		return reader;
	if (graft_health_collect_readers(&look, &health, &err) < 0) {
		graft_debug(&ctk->log, "cannot examine the engines of this host: %s", err.msg);
		return reader;
	}
	oldest = graft_doctor_oldest_reader(health, &engine);
	if (oldest) {
		reader.reads = oldest->reads;
		reader.name = engine->version
				  ? graft_arena_printf(ctk->arena, "%s %.*s", engine->name,
						       (int)graft_cdi_version_length(engine->version), engine->version)
				  : graft_arena_printf(ctk->arena, "%s with CDI library %s", engine->name,
						       engine->cdi_library);
	}
	health = graft_health_free(health);
	return reader;
}

static const char *version_of(const struct graft_cdi_specs *specs)
{
	const char *highest = "0.0.0";

	for (size_t i = 0; i < specs->n; i++) {
		const char *version = graft_cdi_spec_minimum_version(&specs->items[i].spec);

		if (graft_cdi_version_compare(version, highest) > 0)
			highest = version;
	}
	return highest;
}

static int make_cdi_specs(struct ctk *ctk, const struct ctk_cdi_decision *decision, const struct graft_cdi_host *host,
			  struct graft_cdi_specs *specs, struct graft_error *err)
{
	if (graft_cdi_make(&decision->demand, host, ctk->arena, specs, err) < 0)
		return -1;
	return decision->leases ? graft_cdi_add_leases(&decision->demand, host, ctk->arena, specs, err) : 0;
}

static int make_cdi_specs_again(struct ctk *ctk, struct ctk_cdi_decision *decision, const struct graft_cdi_host *host,
				bool no_additional_gids, struct graft_cdi_specs *specs, struct graft_error *err)
{
	graft_cdi_specs_done(specs);
	*specs = (struct graft_cdi_specs){ .n = 0 };
	decision->demand.no_additional_gids = no_additional_gids;
	return make_cdi_specs(ctk, decision, host, specs, err);
}

/* Makes the specs. If they are too new for the reader, omits the groups of nodes if that helps. */
static int make_for_reader(struct ctk *ctk, struct ctk_cdi_decision *decision, const struct graft_cdi_host *host,
			   struct graft_cdi_specs *specs, struct graft_error *err)
{
	bool no_gids = decision->demand.no_additional_gids;
	struct reader reader = find_reader(ctk, decision);

	if (make_cdi_specs(ctk, decision, host, specs, err) < 0)
		return -1;
	if (!reader.reads || graft_cdi_version_compare(version_of(specs), reader.reads) <= 0)
		return 0;
	if (!no_gids && make_cdi_specs_again(ctk, decision, host, true, specs, err) < 0)
		return -1;
	if (graft_cdi_version_compare(version_of(specs), reader.reads) <= 0) {
		if (reader.name)
			graft_warn(
			    &ctk->log,
			    "%s reads CDI specs up to version %s: the spec has no additionalGids, so users other "
			    "than root need '--group-add' for nodes of groups (/dev/dri); --cdi-version=0.7.0 "
			    "keeps them",
			    reader.name, reader.reads);
		return 0;
	}
	if (!reader.name)
		return graft_fail(err, GRAFT_INVALID, 0, "the spec needs CDI version %s, and --cdi-version is %s",
				  version_of(specs), reader.reads);
	if (!no_gids && make_cdi_specs_again(ctk, decision, host, false, specs, err) < 0)
		return -1;
	graft_warn(&ctk->log, "the spec needs CDI version %s: %s, which reads up to %s, will ignore it",
		   version_of(specs), reader.name, reader.reads);
	return 0;
}

static int make_and_write_cdi_specs(struct ctk *ctk, struct ctk_cdi_decision *decision, struct graft_cdi_host *host,
				    struct graft_cdi_specs *specs)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_cdi_read_host(&decision->demand, &decision->places, &ctk->steps, ctk->arena, host, &err) < 0) {
		(void)graft_wrap(&err, "failed to create CDI library");
		return ctk_fail(ctk, &err, "failed to generate CDI spec");
	}
	if (make_for_reader(ctk, decision, host, specs, &err) < 0)
		return ctk_fail(ctk, &err, "failed to generate CDI spec");
	report_cdi_specs(ctk, &decision->demand, host, specs);
	return write_all(ctk, decision, specs);
}

static int generate_cdi_specs(void *target, struct graft_error *err)
{
	const struct ctk_cdi_flags *given = target;
	struct ctk *ctk = given->base.ctk;
	struct graft_cdi_host host = { .inventory = NULL };
	struct graft_cdi_specs specs = { .n = 0 };
	struct ctk_cdi_decision decision;
	int rc;

	if (ctk_cdi_decide(ctk, given, &decision, err) < 0)
		return -1;
	decision.demand.flags = ctk_cdi_flags_text(ctk, ctk->given, ctk->n_given);
	if (!decision.demand.flags)
		return graft_fail_memory(err);
	rc = make_and_write_cdi_specs(ctk, &decision, &host, &specs);
	graft_cdi_specs_done(&specs);
	graft_cdi_host_done(&host);
	return rc;
}

const struct graft_command ctk_cdi_generate = {
	CTK_COMMAND,
	.name = "generate",
	.summary = "Describe the GPUs of this host in a CDI spec",
	.description =
	    "Container engines that support CDI then give containers the devices of the spec: docker run "
	    "--device nvidia.com/gpu=0, podman run --device nvidia.com/gpu=all.\n\nReads procfs, sysfs and the "
	    "driver's files. NVML, which wakes the GPUs, is asked only for facts that these lack, such as the UUIDs "
	    "of MIG devices.",
	GRAFT_OPTIONS(options),
	.bundled = true,
	CTK_WORK(generate_cdi_specs, struct ctk_cdi_flags),
};
