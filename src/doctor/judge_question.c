/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_question: judges what the user asks about in addition: whether devices exist, a requirement
 * holds, an image suits the driver. Uses the selection and requirements code of a container start.
 */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "doctor/judge_state.h"
#include "formats/cdi/cdi.h"
#include "plan/compat_directory.h"
#include "plan/planner.h"
#include "plan/select.h"
#include "request/claim.h"
#include "request/request.h"

#define NAMES_MAX   8u
#define CUDA_PREFIX "libcuda.so."

/* --- devices --- */

/* Lists the devices of the host, so that the user can pick the right name. */
static const char *known_devices(struct graft_judge *judge)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	const char *list = "";
	size_t n = 0;

	for (size_t i = 0; i < inventory->n_gpus && n < NAMES_MAX; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (gpu->excluded)
			continue;
		list = graft_judge_text(judge, "%s%s%s", list, n++ > 0 ? ", " : "",
					gpu->uuid.value ? gpu->uuid.value
					: gpu->bus_id   ? gpu->bus_id
							: "?");
		for (size_t k = 0; k < gpu->n_mig_devices && n < NAMES_MAX; k++, n++)
			list = graft_judge_text(judge, "%s, %s", list,
						gpu->mig_devices[k].uuid.value
						    ? gpu->mig_devices[k].uuid.value
						    : graft_judge_text(judge, "%u:%zu", gpu->index, k));
	}
	return n > 0 ? list : "none";
}

/* Guesses from the form of a name why it is unknown here. */
static const char *why_unknown(const struct graft_judge *judge, const char *word)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	bool mig = strncasecmp(word, "MIG", 3) == 0 || strchr(word, ':');

	if (graft_judge_count_gpus(judge) == 0)
		return "there is no GPU at all";
	if (graft_claim_is_in(&(struct graft_strings){ .items = &word, .n = 1 }))
		return "it is a claim, which counts where leases are on (graft.leases.mode)";
	for (size_t i = 0; i < inventory->n_gpus && mig; i++) {
		if (inventory->gpus[i].n_mig_devices > 0)
			return "MIG was set up again, which gives new names, or it is a device of another GPU";
	}
	if (mig)
		return "no GPU has MIG instances";
	if (strncasecmp(word, "GPU-", 4) == 0)
		return "the GPU was replaced, or the name is from another host";
	return "the host has fewer GPUs";
}

/* Whether a spec has devices of the kind of `name`, "nvidia.com/gpu" of "nvidia.com/gpu=0". */
static bool has_kind(const struct graft_health_cdi *cdi, const char *name)
{
	size_t length = strcspn(name, "=") + 1;

	for (size_t i = 0; i < cdi->n_devices; i++) {
		if (strncmp(cdi->devices[i], name, length) == 0)
			return true;
	}
	return false;
}

static void judge_cdi_device(struct graft_judge *judge, const char *name)
{
	const struct graft_health_cdi *cdi = &judge->health->cdi;

	if (graft_is_in(cdi->devices, cdi->n_devices, name)) {
		graft_judge_add(judge, GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_LEVEL_OK, name, "is in a CDI spec");
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_LEVEL_BROKEN, name,
			"unresolvable CDI device: it is in no spec in %s%s%s",
			cdi->n_directories > 0 ? cdi->directories[0] : "/etc/cdi", cdi->n_directories > 1 ? ", " : "",
			cdi->n_directories > 1 ? cdi->directories[1] : "")
	    ->remedy = has_kind(cdi, name)
			   ? "Request one that 'nvidia-ctk cdi list' lists. If the GPU is new, run 'nvidia-ctk cdi "
			     "refresh' first."
			   : "Run 'nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml'; 'nvidia-ctk cdi list' lists "
			     "the devices.";
}

static void judge_requested_name(struct graft_judge *judge, const struct graft_request *request, const char *word,
				 struct graft_selection *ret_selection)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_judge_count_gpus(judge) > 0 && graft_select_missing_facts(inventory, request) != 0) {
		graft_judge_add(judge, GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_LEVEL_UNKNOWN, word,
				"the UUIDs are not known: NVML was not asked, or failed");
		return;
	}
	if (graft_judge_count_gpus(judge) > 0 &&
	    graft_select(inventory, request, judge->arena, ret_selection, &err) == 0) {
		graft_judge_add(judge, GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_LEVEL_OK, word, "exists on this host");
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_LEVEL_BROKEN, word,
			"unknown device: %s. This host has: %s", why_unknown(judge, word), known_devices(judge))
	    ->remedy = "Request one of those ('nvidia-smi -L' lists them): correct the container's options, compose "
		       "file, pod or template.";
}

/*
 * Judges the value of one option: a CDI name or a list of devices. Requirements are checked against
 * the selection of the last list.
 */
static int judge_device(struct graft_judge *judge, const char *value, struct graft_selection *ret_selection,
			struct graft_error *err)
{
	struct graft_request *request;
	struct graft_error why = { .status = GRAFT_OK };
	bool is_void = false;
	int rc = 0;

	if (graft_cdi_is_qualified(value)) {
		judge_cdi_device(judge, value);
		return 0;
	}
	request = graft_request_new();
	if (!request)
		return graft_fail_memory(err);
	if (graft_request_visible_devices(request, value, &is_void, &why) == 0)
		judge_requested_name(judge, request, value, ret_selection);
	else if (why.status == GRAFT_NO_MEMORY)
		rc = graft_fail_memory(err);
	else
		graft_judge_add(judge, GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_LEVEL_BROKEN, value, "%s", why.msg)
		    ->remedy = "Request 'all', an index, a UUID, or a list of them.";
	(void)graft_request_free(request);
	return rc;
}

/* --- requirements --- */

static void judge_requirement(struct graft_judge *judge, const struct graft_request *request, const char *expression,
			      const struct graft_selection *selection)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	const char *driver = graft_judge_module_version(judge), *cuda = inventory->cuda_version.value;
	struct graft_error err = { .status = GRAFT_OK };
	unsigned int missing = 0;
	int rc = graft_plan_check_requirements(inventory, request, selection, &missing, &err);

	if (rc > 0)
		graft_judge_add(judge, GRAFT_CHECK_REQUIREMENT, GRAFT_LEVEL_UNKNOWN, expression,
				"depends on facts that only NVML knows, which was not asked or failed");
	else if (rc == 0)
		graft_judge_add(judge, GRAFT_CHECK_REQUIREMENT, GRAFT_LEVEL_OK, expression,
				"is met: driver %s, CUDA %s", driver ? driver : "unknown", cuda ? cuda : "unknown");
	else if (err.status == GRAFT_EXPRESSION)
		graft_judge_add(judge, GRAFT_CHECK_REQUIREMENT, GRAFT_LEVEL_BROKEN, expression, "%s", err.msg)->remedy =
		    graft_status_hint(GRAFT_EXPRESSION);
	else
		graft_judge_add(judge, GRAFT_CHECK_REQUIREMENT, GRAFT_LEVEL_BROKEN, expression,
				"unsatisfied condition: this host has driver %s, which supports CUDA up to %s",
				driver ? driver : "unknown", cuda ? cuda : "an unknown version")
		    ->remedy =
		    "Install a newer driver, or use an image for an older CUDA. If the image has compatibility "
		    "libraries, '--env NVIDIA_DISABLE_REQUIRE=true' skips the check.";
}

static int judge_requirements(struct graft_judge *judge, const struct graft_selection *selection,
			      struct graft_error *err)
{
	for (size_t i = 0; i < judge->question->n_requirements; i++) {
		const char *expression = judge->question->requirements[i];
		struct graft_request *request = graft_request_new();

		if (!request)
			return graft_fail_memory(err);
		if (graft_request_requirement(request, expression, err) < 0) {
			(void)graft_request_free(request);
			return -1;
		}
		judge_requirement(judge, request, expression, selection);
		(void)graft_request_free(request);
	}
	return 0;
}

/* --- an image --- */

static void judge_image(struct graft_judge *judge)
{
	const struct graft_health_image *image = &judge->health->image;

	if (!image->path)
		return;
	if (image->n_driver_files == 0) {
		graft_judge_add(judge, GRAFT_CHECK_IMAGE, GRAFT_LEVEL_OK, image->path,
				"contains no libraries of a driver");
		return;
	}
	graft_judge_add(
	    judge, GRAFT_CHECK_IMAGE, GRAFT_LEVEL_WARNING, image->path,
	    "contains %zu librar%s of a driver, such as %s: other toolkits fail on them (file creation failed: file "
	    "exists). This one mounts over those that the host has; programs may load the rest",
	    image->n_driver_files, image->n_driver_files == 1 ? "y" : "ies", image->driver_files[0])
	    ->remedy =
	    "Remove the package, which was installed as a dependency, from the image (Debian, Ubuntu: 'apt-get "
	    "purge \"libnvidia-compute-*\"').";
}

static const struct graft_compat_library *find_image_compat(const struct graft_image *image)
{
	for (size_t i = 0; i < image->n_compat; i++) {
		const char *name = graft_path_name(image->compat[i].path);

		if (graft_starts_with(name, CUDA_PREFIX) && strchr(name + strlen(CUDA_PREFIX), '.'))
			return &image->compat[i];
	}
	return NULL;
}

/*
 * Forward compatibility is supported on data center GPUs only (CUDA Compatibility guide; error
 * 804).
 */
static bool has_consumer_gpu(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const char *model = inventory->gpus[i].model.value;

		if (model && (strcasestr(model, "geforce") || strcasestr(model, "titan")))
			return true;
	}
	return false;
}

static void judge_compat(struct graft_judge *judge)
{
	const struct graft_health_image *image = &judge->health->image;
	const struct graft_compat_library *library = image->path ? find_image_compat(&image->image) : NULL;
	const char *driver = graft_judge_module_version(judge);

	if (!library)
		return;
	if (!driver)
		graft_judge_add(judge, GRAFT_CHECK_CUDA_COMPAT, GRAFT_LEVEL_UNKNOWN, library->path,
				"there is no driver to compare it with");
	else if (!graft_compat_suits(library, driver, NULL, judge->arena))
		graft_judge_add(
		    judge, GRAFT_CHECK_CUDA_COMPAT, GRAFT_LEVEL_WARNING, library->path,
		    "does not suit driver %s, so this toolkit does not use it; if LD_LIBRARY_PATH in the image "
		    "contains "
		    "its directory, CUDA fails with error 803 (unsupported display driver / cuda driver combination)",
		    driver)
		    ->remedy = "Take the directory 'compat' out of LD_LIBRARY_PATH, or use an image for another CUDA.";
	else if (has_consumer_gpu(&judge->health->inventory))
		graft_judge_add(
		    judge, GRAFT_CHECK_CUDA_COMPAT, GRAFT_LEVEL_WARNING, library->path,
		    "is newer than driver %s, and works with data centre GPUs only: with this GPU, CUDA fails with "
		    "error 804 (forward compatibility was attempted on non supported HW)",
		    driver)
		    ->remedy = "Install a driver for the image's CUDA; or disable the library: 'nvidia-ctk config "
			       "--in-place --set nvidia-container-runtime.modes.legacy.cuda-compat-mode=disabled'.";
	else
		graft_judge_add(judge, GRAFT_CHECK_CUDA_COMPAT, GRAFT_LEVEL_OK, library->path,
				"suits driver %s, and is used", driver);
}

int graft_judge_question(struct graft_judge *judge, struct graft_error *err)
{
	struct graft_selection selection = { .n_gpus = 0 };

	for (size_t i = 0; i < judge->question->n_devices; i++) {
		if (judge_device(judge, judge->question->devices[i], &selection, err) < 0)
			return -1;
	}
	if (judge_requirements(judge, &selection, err) < 0)
		return -1;
	judge_image(judge);
	judge_compat(judge);
	return 0;
}
