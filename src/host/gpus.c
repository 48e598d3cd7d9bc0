/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus: the GPUs as the kernel driver describes them in /proc/driver/nvidia/gpus, which has one
 * directory per PCI function with a file `information` in it. Reading that file does not wake the
 * GPU. What the driver has not determined yet (a UUID of question marks) remains unknown.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "formats/procfs.h"
#include "host/survey.h"

#define GPUS_PATH GRAFT_PROC_DRIVER "/gpus"

struct found_gpu {
	struct graft_pci_address address;
	bool excluded;
	struct graft_gpu gpu;
};

static bool parse_u32(const char *text, uint32_t *ret_value)
{
	char *end;
	unsigned long value;

	if (!text || !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || value > UINT32_MAX)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

static bool is_yes(const char *value)
{
	return value && strcasecmp(value, "yes") == 0;
}

static bool is_gpu_excluded(const struct graft_key_value *items, size_t n)
{
	/* Drivers before 455 use the second name. */
	return is_yes(graft_key_value_find(items, n, "GPU Excluded")) ||
	       is_yes(graft_key_value_find(items, n, "Blacklisted"));
}

/*
 * A value that the driver knows. It writes "Unknown" or question marks until the GPU has been used.
 */
static struct graft_fact known_gpu_fact(struct graft_survey *survey, const char *value, const char *source)
{
	if (!value || value[0] == '\0' || strchr(value, '?') || strcasecmp(value, "unknown") == 0)
		return (struct graft_fact){ 0 };
	return (struct graft_fact){ graft_arena_strdup(survey->arena, value), source };
}

static void place_gpu(const struct graft_survey *survey, struct found_gpu *found)
{
	found->gpu.bus_id = graft_arena_printf(survey->arena, "%08x:%02x:%02x.0", found->address.domain,
					       found->address.bus, found->address.device);
}

static void describe(struct graft_survey *survey, struct found_gpu *found, const char *information,
		     const struct graft_key_value *items, size_t n, uint32_t minor)
{
	struct graft_gpu *gpu = &found->gpu;
	struct graft_arena *arena = survey->arena;

	place_gpu(survey, found);
	gpu->procfs_path = graft_arena_strndup(arena, information, strlen(information) - strlen("/information"));
	gpu->source = graft_arena_strdup(arena, information);
	gpu->uuid = known_gpu_fact(survey, graft_key_value_find(items, n, "GPU UUID"), gpu->source);
	gpu->model = known_gpu_fact(survey, graft_key_value_find(items, n, "Model"), gpu->source);
	gpu->mig_caps_path = graft_arena_printf(arena, GRAFT_PROC_CAPS "/gpu%u", minor);
	gpu->node = (struct graft_node){ .path = graft_arena_printf(arena, "/dev/nvidia%u", minor),
					 .major = GRAFT_NVIDIA_MAJOR,
					 .minor = minor,
					 .source = gpu->source };
	found->excluded = is_gpu_excluded(items, n);
	gpu->excluded = found->excluded;
}

static bool is_assumed(const struct graft_survey *survey, const struct graft_pci_address *address)
{
	for (size_t i = 0; i < survey->n_assumed; i++)
		if (graft_pci_compare(&survey->assumed[i], address) == 0)
			return true;
	return false;
}

/*
 * Reads one directory. Returns false if it is not a usable GPU, with an omission that gives the
 * reason.
 */
static bool read_gpu(struct graft_survey *survey, const char *directory, struct found_gpu *ret_found)
{
	const char *path = graft_arena_printf(survey->scratch, GPUS_PATH "/%s/information", directory);
	struct graft_key_value *items;
	const char *text, *location;
	size_t length, n;
	uint32_t minor;
	int rc;

	*ret_found = (struct found_gpu){ 0 };
	if (!path)
		return false;
	if (!graft_pci_parse(directory, &ret_found->address)) {
		graft_survey_omit(survey, "skipping", directory, "its name in " GPUS_PATH " is not a PCI address");
		return false;
	}
	if (is_assumed(survey, &ret_found->address)) {
		place_gpu(survey, ret_found);
		return true;
	}
	rc = graft_survey_read_proc(survey, path, &text, &length);
	if (rc < 0) {
		graft_survey_omit(survey, "skipping", path, "%s", strerror(-rc));
		return false;
	}
	if (graft_procfs_key_values(text, length, survey->scratch, &items, &n) < 0)
		return false;
	/* The directory name has a 16-bit domain; the file may be more precise. */
	location = graft_key_value_find(items, n, "Bus Location");
	if (location)
		(void)graft_pci_parse(location, &ret_found->address);
	if (!parse_u32(graft_key_value_find(items, n, "Device Minor"), &minor)) {
		graft_survey_omit(survey, "skipping", path, "%s",
				  is_gpu_excluded(items, n)
				      ? "the driver is configured to ignore this GPU"
				      : "it names no device minor: the GPU may have fallen off the bus");
		return false;
	}
	describe(survey, ret_found, path, items, n, minor);
	return true;
}

static int compare_found(const void *a, const void *b)
{
	const struct found_gpu *fa = a, *fb = b;

	if (fa->excluded != fb->excluded)
		return fa->excluded ? 1 : -1;
	return graft_pci_compare(&fa->address, &fb->address);
}

static void publish_gpus(struct graft_survey *survey, struct found_gpu *found, size_t n)
{
	struct graft_inventory *inventory = survey->inventory;
	uint32_t next = 0;

	for (size_t i = 0; i < n; i++) {
		struct graft_gpu *gpu = graft_arena_push(survey->arena, &inventory->gpus, &inventory->n_gpus,
							 sizeof(*gpu));
		int rc;

		if (!gpu)
			return;
		*gpu = found[i].gpu;
		gpu->index = gpu->excluded ? 0 : next++;
		/* An assumed GPU: only its address is known. */
		if (!gpu->node.path)
			continue;
		rc = graft_survey_node(survey, &gpu->node);
		if (rc < 0 && !gpu->excluded)
			graft_survey_omit_node(survey, gpu->node.path, rc);
		graft_info(survey->log, "listing device %s (%s at %s)", gpu->node.path,
			   gpu->uuid.value ? gpu->uuid.value : "UUID not known", gpu->bus_id ? gpu->bus_id : "?");
	}
}

void graft_survey_gpus(struct graft_survey *survey)
{
	struct found_gpu *found = NULL;
	const char **names;
	size_t n_names, n = 0;

	if (graft_survey_list(survey, survey->proc, GPUS_PATH, &names, &n_names) < 0)
		return;
	survey->gpus_listed = n_names > 0;
	for (size_t i = 0; i < n_names; i++) {
		struct found_gpu *next, gpu;

		if (!read_gpu(survey, names[i], &gpu))
			continue;
		next = graft_arena_push(survey->scratch, &found, &n, sizeof(*next));
		if (!next)
			return;
		*next = gpu;
	}
	if (n > 1)
		qsort(found, n, sizeof(*found), compare_found);
	publish_gpus(survey, found, n);
}
