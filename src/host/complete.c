/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete: fills in facts that procfs lacks from one NVML snapshot. Facts from procfs are kept; a
 * disagreement between the two is recorded, because some program may rely on either.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "host/discover.h"
#include "host/nvml.h"
#include "host/survey.h"

#define SCRATCH_MAX           ((size_t)8 << 20)
#define OVERFLOW_ID           65534u
#define NVIDIA_CONTROL_MINORS 254u /* and 255: nvidia-modeset and nvidiactl */

/* SPEC libnvidia-container 7.1; indexed by NVML's number. */
static const char *const brands[] = {
	"Unknown", "Quadro", "Tesla",       "NVS",       "GRID",      "GeForce", "TITAN",      "VApps",    "VPC",
	"VCS",     "VWS",    "CloudGaming", "QuadroRTX", "NvidiaRTX", "Nvidia",  "GeForceRTX", "TitanRTX",
};

/* Indexed by NVML's number. Future values are treated as "none". */
static const char *const addressing_modes[] = { "none", "hmm", "ats" };

struct merge {
	struct graft_inventory *inventory;
	const struct graft_log *log;
	unsigned int facts;
	bool lists_gpus; /* NVML has the only list of GPUs */
};

__attribute__((format(printf, 3, 4))) static void disagree(struct merge *merge, const char *what, const char *format,
							   ...)
{
	struct graft_inventory *inventory = merge->inventory;
	struct graft_omission *omission;
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	graft_warn(merge->log, "%s: %s", what, text);
	omission = graft_arena_push(inventory->arena, &inventory->omissions, &inventory->n_omissions,
				    sizeof(*omission));
	if (!omission)
		return;
	omission->what = graft_arena_strdup(inventory->arena, what);
	omission->why = graft_arena_strdup(inventory->arena, text);
}

/* Keeps a known value, and reports a different one. */
static void merge_fact(struct merge *merge, const char *noun, const char *of, struct graft_fact *fact,
		       const char *value)
{
	if (!value)
		return;
	if (!fact->value) {
		fact->value = graft_arena_strdup(merge->inventory->arena, value);
		fact->source = GRAFT_SOURCE_NVML;
	} else if (strcasecmp(fact->value, value) != 0) {
		disagree(merge, of, "NVML gives another %s: %s instead of %s, which %s has", noun, value, fact->value,
			 fact->source ? fact->source : "procfs");
	}
}

static struct graft_gpu *find_merged_gpu(struct merge *merge, const struct graft_nvml_gpu *theirs)
{
	struct graft_inventory *inventory = merge->inventory;

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		struct graft_gpu *gpu = &inventory->gpus[i];

		if (theirs->bus_id && gpu->bus_id && strcasecmp(theirs->bus_id, gpu->bus_id) == 0)
			return gpu;
	}
	for (size_t i = 0; i < inventory->n_gpus && !theirs->bus_id; i++) {
		struct graft_gpu *gpu = &inventory->gpus[i];

		if (theirs->has_minor && gpu->node.path && gpu->node.minor == theirs->minor)
			return gpu;
	}
	return NULL;
}

static struct graft_mig_device *find_merged_mig(struct graft_gpu *gpu, const struct graft_nvml_mig *theirs)
{
	for (size_t i = 0; i < gpu->n_mig_devices; i++) {
		if (gpu->mig_devices[i].gi == theirs->gi && gpu->mig_devices[i].ci == theirs->ci)
			return &gpu->mig_devices[i];
	}
	return NULL;
}

/* Returns what follows " MIG " in the name of a MIG device, or NULL. */
static const char *profile_of(const char *name)
{
	static const char word[] = " MIG ";
	const char *at = name ? strstr(name, word) : NULL;

	return at && at[strlen(word)] != '\0' ? at + strlen(word) : NULL;
}

static void merge_migs(struct merge *merge, struct graft_gpu *gpu, const struct graft_nvml_gpu *theirs)
{
	struct graft_arena *arena = merge->inventory->arena;

	if (!(merge->facts & GRAFT_NVML_MIG))
		return;
	gpu->mig_capable = gpu->mig_capable || theirs->mig_capable;
	gpu->mig_enabled = gpu->mig_enabled || theirs->mig_enabled;
	for (size_t i = 0; i < theirs->n_migs; i++) {
		const struct graft_nvml_mig *their_mig = &theirs->migs[i];
		struct graft_mig_device *mig = find_merged_mig(gpu, their_mig);
		const char *name = graft_arena_printf(arena, "%s/mig/gi%u/ci%u", gpu->bus_id, their_mig->gi,
						      their_mig->ci);

		if (!name)
			return;
		if (!mig) {
			disagree(merge, name, "NVML lists this MIG device, the driver's procfs does not");
			continue;
		}
		if (mig->index != i)
			disagree(merge, name, "NVML lists it as number %zu, by instance ids it is number %u", i,
				 mig->index);
		merge_fact(merge, "UUID", name, &mig->uuid, their_mig->uuid);
		merge_fact(merge, "profile", name, &mig->profile, profile_of(their_mig->name));
	}
}

static const char *brand_name(uint32_t brand)
{
	return brand < GRAFT_COUNT(brands) ? brands[brand] : brands[0];
}

static void merge_gpu(struct merge *merge, struct graft_gpu *gpu, const struct graft_nvml_gpu *theirs)
{
	struct graft_arena *arena = merge->inventory->arena;

	if (theirs->index != gpu->index || gpu->excluded)
		disagree(merge, gpu->bus_id, "NVML lists it as GPU %u, by bus id it is %s %u", theirs->index,
			 gpu->excluded ? "excluded, number" : "GPU", gpu->index);
	if (theirs->has_minor && gpu->node.path && theirs->minor != gpu->node.minor)
		disagree(merge, gpu->bus_id, "NVML gives another minor: %u instead of %u", theirs->minor,
			 gpu->node.minor);
	if (merge->facts & GRAFT_NVML_UUID)
		merge_fact(merge, "UUID", gpu->bus_id, &gpu->uuid, theirs->uuid);
	if (merge->facts & GRAFT_NVML_MODEL)
		merge_fact(merge, "model", gpu->bus_id, &gpu->model, theirs->model);
	if ((merge->facts & GRAFT_NVML_BRAND) && theirs->has_brand)
		merge_fact(merge, "brand", gpu->bus_id, &gpu->brand, brand_name(theirs->brand));
	if ((merge->facts & GRAFT_NVML_ARCH) && theirs->has_arch)
		merge_fact(merge, "architecture", gpu->bus_id, &gpu->arch,
			   graft_arena_printf(arena, "%u.%u", theirs->arch_major, theirs->arch_minor));
	if ((merge->facts & GRAFT_NVML_ADDRESSING) && theirs->has_addressing)
		merge_fact(
		    merge, "addressing mode", gpu->bus_id, &gpu->addressing,
		    addressing_modes[theirs->addressing < GRAFT_COUNT(addressing_modes) ? theirs->addressing : 0]);
	merge_migs(merge, gpu, theirs);
}

/* Whether a minor number is a GPU's and still free. Others are the control nodes. */
static bool is_free_minor(const struct graft_inventory *inventory, uint32_t minor)
{
	for (size_t i = 0; i < inventory->n_gpus; i++)
		if (inventory->gpus[i].node.path && inventory->gpus[i].node.minor == minor)
			return false;
	return minor < NVIDIA_CONTROL_MINORS;
}

/*
 * The node of a GPU that procfs does not list; WSL2 has none. SECURITY: the number comes from the
 * driver's library.
 */
static void add_nvml_node(struct merge *merge, const struct graft_nvml_gpu *theirs, struct graft_gpu *gpu)
{
	struct graft_arena *arena = merge->inventory->arena;

	if (merge->inventory->platform != GRAFT_PLATFORM_NATIVE || !theirs->has_minor ||
	    !is_free_minor(merge->inventory, theirs->minor))
		return;
	gpu->mig_caps_path = graft_arena_printf(arena, GRAFT_PROC_CAPS "/gpu%u", theirs->minor);
	gpu->node = (struct graft_node){ .path = graft_arena_printf(arena, "/dev/nvidia%u", theirs->minor),
					 .major = GRAFT_NVIDIA_MAJOR,
					 .minor = theirs->minor,
					 .source = GRAFT_SOURCE_NVML };
}

static struct graft_gpu *add_nvml_gpu(struct merge *merge, const struct graft_nvml_gpu *theirs)
{
	struct graft_inventory *inventory = merge->inventory;
	struct graft_gpu *gpu;

	gpu = graft_arena_push(inventory->arena, &inventory->gpus, &inventory->n_gpus, sizeof(*gpu));
	if (!gpu)
		return NULL;
	gpu->index = (uint32_t)inventory->n_gpus - 1;
	gpu->bus_id = graft_arena_strdup(inventory->arena, theirs->bus_id ? theirs->bus_id : "00000000:00:00.0");
	gpu->source = GRAFT_SOURCE_NVML;
	add_nvml_node(merge, theirs, gpu);
	return gpu->bus_id ? gpu : NULL;
}

static void merge_cuda(struct merge *merge, uint32_t version)
{
	struct graft_fact *fact = &merge->inventory->cuda_version;

	if (!(merge->facts & GRAFT_NVML_CUDA) || version == 0)
		return;
	/* The bound was an estimate; the exact value replaces it. */
	fact->value = graft_arena_printf(merge->inventory->arena, "%u.%u", version / 1000, version % 100 / 10);
	fact->source = GRAFT_SOURCE_NVML;
}

static void merge_all(struct merge *merge, const struct graft_nvml_snapshot *snapshot)
{
	struct graft_inventory *inventory = merge->inventory;
	bool from_nvml = inventory->n_gpus == 0 && (merge->lists_gpus || inventory->platform == GRAFT_PLATFORM_WSL2);

	merge_fact(merge, "driver version", "driver", &inventory->driver_version, snapshot->driver_version);
	if (!inventory->cuda_version.value)
		graft_survey_bound_cuda(inventory);
	merge_cuda(merge, snapshot->cuda_version);
	for (size_t i = 0; i < snapshot->n_gpus; i++) {
		const struct graft_nvml_gpu *theirs = &snapshot->gpus[i];
		struct graft_gpu *gpu = from_nvml ? add_nvml_gpu(merge, theirs) : find_merged_gpu(merge, theirs);

		if (gpu)
			merge_gpu(merge, gpu, theirs);
		else
			disagree(merge, theirs->bus_id ? theirs->bus_id : "GPU",
				 "NVML lists this GPU, procfs does not");
	}
}

uint32_t graft_host_overflow_id(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[16] = "";
	unsigned long id = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtoul(text, NULL, 10) : 0;

	return id > 0 && id < UINT32_MAX ? (uint32_t)id : OVERFLOW_ID;
}

static void choose_identity(const struct graft_host_options *options, struct graft_nvml_question *question)
{
	question->uid = options->nvml_uid;
	question->gid = options->nvml_gid;
	/* Without privileges there is no other identity to assume. */
	if (question->uid == (uid_t)-1)
		question->uid = geteuid() == 0 ? graft_host_overflow_id(GRAFT_OVERFLOW_UID) : geteuid();
	if (question->gid == (gid_t)-1)
		question->gid = geteuid() == 0 ? graft_host_overflow_id(GRAFT_OVERFLOW_GID) : getegid();
}

int graft_nvml_fail_missing(const char *library, struct graft_error *err)
{
	return graft_fail(err, GRAFT_NO_LIBRARY, 0,
			  "load library failed: %s: cannot open shared object file: no such file or directory",
			  library);
}

void graft_nvml_prepare(const struct graft_host_options *options, const struct graft_inventory *inventory,
			unsigned int facts, struct graft_nvml_question *ret_question)
{
	*ret_question = (struct graft_nvml_question){ .root = inventory->root ? inventory->root : "/",
						      .library = inventory->nvml_library,
						      .facts = facts,
						      .timeout_ms = options->nvml_timeout_ms,
						      .log = options->log };
	choose_identity(options, ret_question);
}

void graft_nvml_take_over(const struct graft_nvml_snapshot *snapshot, unsigned int facts, bool lists_gpus,
			  const struct graft_log *log, struct graft_inventory *inventory)
{
	struct merge merge = { .inventory = inventory, .log = log, .facts = facts, .lists_gpus = lists_gpus };

	merge_all(&merge, snapshot);
}

static int complete_inventory(const struct graft_host_options *options, struct graft_inventory *inventory,
			      unsigned int facts, bool lists_gpus, struct graft_error *err)
{
	struct graft_nvml_question question;
	struct graft_nvml_snapshot snapshot;
	struct graft_arena *scratch;
	int rc;

	if (facts == 0)
		return 0;
	if (!inventory->nvml_library && inventory->platform == GRAFT_PLATFORM_TEGRA) {
		graft_info(options->log, "this Tegra release has no NVML");
		return 0;
	}
	if (!inventory->nvml_library)
		return graft_nvml_fail_missing(GRAFT_NVML_SONAME, err);
	graft_nvml_prepare(options, inventory, facts, &question);
	scratch = graft_arena_new(SCRATCH_MAX);
	if (!scratch)
		return graft_fail_memory(err);
	rc = graft_nvml_ask(&question, scratch, &snapshot, err);
	if (rc == 0)
		graft_nvml_take_over(&snapshot, facts, lists_gpus, options->log, inventory);
	(void)graft_arena_free(scratch);
	if (rc == 0 && graft_arena_failed(inventory->arena))
		return graft_fail_memory(err);
	return rc;
}

int graft_host_complete(const struct graft_host_options *options, struct graft_inventory *inventory, unsigned int facts,
			struct graft_error *err)
{
	return complete_inventory(options, inventory, facts, false, err);
}

void graft_survey_nodes_by_nvml(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		struct graft_gpu *gpu = &inventory->gpus[i];

		graft_info(survey->log, "listing GPU %u by NVML: %s", gpu->index,
			   gpu->uuid.value ? gpu->uuid.value : gpu->bus_id);
		if (gpu->node.path && graft_survey_node(survey, &gpu->node) < 0)
			graft_survey_omit(survey, "missing device", gpu->node.path,
					  "NVML lists its GPU, but there is no such node");
	}
}

int graft_survey_gpus_by_nvml(struct graft_survey *survey, struct graft_error *err)
{
	const unsigned int facts = GRAFT_NVML_UUID | GRAFT_NVML_MODEL | GRAFT_NVML_MIG;

	if (complete_inventory(survey->options, survey->inventory, facts, true, err) < 0)
		return -1;
	graft_survey_nodes_by_nvml(survey);
	return 0;
}
