/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform_wsl: WSL2, where /dev/dxg gives access to the GPU and the driver's user-space part is in
 * directories of the Windows driver store (SPEC libnvidia-container 6.10). The directories are
 * recognised by their contents; DirectX core, which knows the adapters, is driver code and is not
 * loaded for this.
 */
#include <string.h>

#include "base/strings.h"
#include "host/catalog.h"
#include "host/survey.h"

#define STORE_ROOT "/usr/lib/wsl/drivers"
#define WSL_DXCORE "/usr/lib/wsl/lib/libdxcore.so"
#define STORE_CUDA "libcuda.so.1.1"
#define STORE_NVML "libnvidia-ml.so.1"
#define WSL_NVML   "/usr/lib/wsl/lib/libnvidia-ml.so.1"

static bool is_component(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_wsl_components; i++) {
		if (strcmp(graft_catalog_wsl_components[i].name, name) == 0)
			return true;
	}
	return false;
}

/*
 * Adds what newer drivers have beyond the table (SPEC runtime-and-hook 7.6): libraries, their data,
 * and the Windows files that they load.
 */
static void read_rest(struct graft_survey *survey, const char *store)
{
	const char **names;
	size_t n;

	if (graft_survey_list(survey, &survey->root, store, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		bool matches = strstr(names[i], ".so") || graft_ends_with(names[i], ".bin") ||
			       graft_ends_with(names[i], ".dll");
		const char *wanted = matches && !is_component(names[i])
					 ? graft_arena_printf(survey->arena, "%s/%s", store, names[i])
					 : NULL;
		const char *path;
		struct stat st;

		if (wanted && graft_lookup_path(&survey->lookup, wanted, &path, &st) == 0 && S_ISREG(st.st_mode))
			graft_survey_add_extra_file(survey, path, NULL, GRAFT_CLASS_WSL, store);
	}
}

/*
 * Adds the components in one directory of the store; a directory of another device has none.
 * Returns whether libcuda is among them.
 */
static bool read_store(struct graft_survey *survey, const char *store, size_t *n_components)
{
	bool has_cuda = false;

	for (size_t i = 0; i < graft_n_catalog_wsl_components; i++) {
		const char *name = graft_catalog_wsl_components[i].name;
		const char *wanted = graft_arena_printf(survey->arena, "%s/%s", store, name);
		const char *path;
		struct stat st;

		if (!wanted || graft_lookup_path(&survey->lookup, wanted, &path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		graft_survey_add_extra_file(survey, path, NULL, GRAFT_CLASS_WSL, store);
		(*n_components)++;
		has_cuda |= strcmp(name, STORE_CUDA) == 0;
		if (strcmp(name, STORE_NVML) == 0 && !survey->inventory->nvml_library)
			survey->inventory->nvml_library = path;
	}
	if (*n_components > 0 && (survey->needs & GRAFT_NEED_FURTHER))
		read_rest(survey, store);
	return has_cuda;
}

static size_t read_stores(struct graft_survey *survey)
{
	size_t n_names, n_stores = 0, n_total = 0;
	const char **names;

	if (graft_survey_list(survey, &survey->root, STORE_ROOT, &names, &n_names) < 0)
		return 0;
	for (size_t i = 0; i < n_names; i++) {
		const char *store = graft_arena_printf(survey->arena, STORE_ROOT "/%s", names[i]);
		size_t n = 0;

		if (store && read_store(survey, store, &n) && !survey->wsl_store)
			survey->wsl_store = store;
		n_total += n;
		n_stores += n > 0;
	}
	if (n_stores > 1)
		graft_warn(survey->log, "%zu driver store directories hold NVIDIA components; all are used", n_stores);
	return n_total;
}

void graft_survey_platform_wsl(struct graft_survey *survey)
{
	struct graft_node node = { .path = "/dev/dxg" };
	const char *path;
	struct stat st;

	if (graft_survey_node_as_is(survey, &node) < 0)
		return;
	if (read_stores(survey) == 0 && graft_lookup_path(&survey->lookup, WSL_DXCORE, &path, &st) < 0) {
		graft_survey_omit(survey, "skipping", "/dev/dxg", "there is no driver for it below /usr/lib/wsl");
		return;
	}
	/*
	 * Newer releases install a library there that locates the store directory of the running
	 * driver.
	 */
	if (graft_lookup_path(&survey->lookup, WSL_NVML, &path, &st) == 0 && S_ISREG(st.st_mode))
		survey->inventory->nvml_library = path;
	survey->inventory->platform = GRAFT_PLATFORM_WSL2;
}
