/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_csv_select: resolves device words to the GPUs of a Tegra board. Fails closed: a word that is
 * not understood selects nothing.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "host/platform.h"
#include "plan/plan_csv.h"

#define INTEGRATED_PLACE "00000000:01:00.0"
/* SPEC kubernetes 6.3: the device plugin's name for the GPU of a board, which has no UUID. */
#define PLUGIN_WORD "tegra"

bool graft_csv_is_integrated(const struct graft_gpu *gpu)
{
	return (gpu->bus_id && strcasecmp(gpu->bus_id, INTEGRATED_PLACE) == 0) ||
	       graft_platform_is_integrated(gpu->model.value);
}

/*
 * Finds the two GPUs of a board that has two. If they are not a valid pair, *ret_why explains it.
 */
static bool find_pair(const struct graft_inventory *gpus, const struct graft_gpu **ret_integrated,
		      const struct graft_gpu **ret_discrete, const char **ret_why)
{
	size_t n = 0;

	for (size_t i = 0; i < gpus->n_gpus; i++) {
		const struct graft_gpu *gpu = &gpus->gpus[i];

		if (gpu->excluded)
			continue;
		n++;
		if (graft_csv_is_integrated(gpu) && gpu->index == 0)
			*ret_integrated = gpu;
		else if (!graft_csv_is_integrated(gpu) && gpu->index == 1)
			*ret_discrete = gpu;
	}
	if (n < 2)
		return false;
	if (n > 2 || !*ret_integrated || !*ret_discrete) {
		*ret_why = "the GPUs are not one integrated (0) and one discrete (1): they count as one";
		return false;
	}
	return true;
}

static int fail_word(const char *word, const char *allowed, struct graft_error *err)
{
	return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "unsupported device id: %s; on this board there are %s", word,
			  allowed);
}

static int select_only(const char *word, struct graft_csv_selection *selection, struct graft_error *err)
{
	if (strcmp(word, "all") != 0 && strcmp(word, "0") != 0 && strcmp(word, PLUGIN_WORD) != 0)
		return fail_word(word, "0 and all", err);
	selection->integrated = true;
	return 0;
}

static bool names_board_gpu(const char *word, const struct graft_gpu *gpu, const char *index)
{
	static const char prefix[] = "GPU-";
	const char *uuid = gpu->uuid.value;

	if (strcmp(word, index) == 0)
		return true;
	/* QUIRK: on Orin, NVML reports UUIDs without the prefix. */
	return uuid && (strcasecmp(word, uuid) == 0 || (strncasecmp(uuid, prefix, strlen(prefix)) == 0 &&
							strcasecmp(word, uuid + strlen(prefix)) == 0));
}

static int select_of_two(const char *word, const struct graft_gpu *integrated, const struct graft_gpu *discrete,
			 struct graft_csv_selection *selection, struct graft_error *err)
{
	bool all = strcmp(word, "all") == 0;
	bool first = strcmp(word, PLUGIN_WORD) == 0 || names_board_gpu(word, integrated, "0");

	if (!all && !first && !names_board_gpu(word, discrete, "1"))
		return fail_word(word, "0, 1, all and their UUIDs", err);
	if (all || first) {
		selection->integrated = true;
		selection->integrated_gpu = integrated;
	}
	if (all || names_board_gpu(word, discrete, "1"))
		selection->discrete_gpu = discrete;
	return 0;
}

int graft_csv_select(const struct graft_inventory *gpus, bool single, const char *const *words, size_t n_words,
		     struct graft_csv_selection *ret_selection, const char **ret_fallback, struct graft_error *err)
{
	const struct graft_gpu *integrated = NULL, *discrete = NULL;
	struct graft_csv_selection selection = { .single = true };

	*ret_fallback = NULL;
	if (gpus && !single)
		selection.single = !find_pair(gpus, &integrated, &discrete, ret_fallback);
	for (size_t i = 0; i < n_words; i++) {
		if (strcmp(words[i], "none") == 0)
			continue;
		if (selection.single ? select_only(words[i], &selection, err) < 0
				     : select_of_two(words[i], integrated, discrete, &selection, err) < 0)
			return -1;
	}
	*ret_selection = selection;
	return 0;
}
