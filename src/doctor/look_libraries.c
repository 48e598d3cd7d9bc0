/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_libraries: the loader's cache, and the driver's libraries as the loader finds them: where a
 * program on this host would load libcuda from, which is not always where the driver was installed.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "doctor/look.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"
#include "host/nvml.h"

#define ABI_MASK         0xff00u
#define DRIVER_CONTAINER "/run/nvidia/driver" /* where the GPU operator mounts it */

static const char *const sonames[] = {
	"libnvidia-ml.so.1",  "libcuda.so.1",          "libnvidia-ptxjitcompiler.so.1",
	"libnvcuvid.so.1",    "libnvidia-encode.so.1", "libEGL_nvidia.so.0",
	"libGLX_nvidia.so.0",
};

/* --- the loader's cache --- */

static void read_loader_cache(struct graft_health_look *look, struct graft_ldcache *cache)
{
	struct graft_health_loader *loader = &look->health->loader;
	const char *bytes;
	struct graft_error err = { .status = GRAFT_OK };
	struct stat st;
	size_t length;
	int rc;

	loader->cache = graft_arena_strdup(look->arena, look->survey.inventory->ldcache);
	rc = graft_root_read(&look->survey.root, look->survey.inventory->ldcache, GRAFT_SOURCE_CACHE_MAX, look->scratch,
			     &bytes, &length);
	if (graft_health_note(look, look->survey.inventory->ldcache, rc) < 0) {
		loader->state = rc == -ENOENT ? GRAFT_CACHE_MISSING : GRAFT_CACHE_UNREADABLE;
		loader->problem = graft_arena_strdup(look->arena, strerror(-rc));
		return;
	}
	if (graft_root_stat(&look->survey.root, look->survey.inventory->ldcache, &st) == 0)
		loader->changed = st.st_mtim.tv_sec;
	if (graft_ldcache_read(bytes, length, look->survey.inventory->ldcache, look->scratch, cache, &err) < 0) {
		graft_note_shortage(&look->survey.shortage, -err.sys);
		loader->state = GRAFT_CACHE_DAMAGED;
		loader->problem = graft_arena_strdup(look->arena, err.msg);
	}
}

static const char *find_cached(const struct graft_ldcache *cache, const char *soname)
{
	for (size_t i = 0; i < cache->n_records; i++) {
		const struct graft_ldcache_record *record = &cache->records[i];

		if ((record->flags & ABI_MASK) == (graft_abi_flags_native() & ABI_MASK) &&
		    strcmp(record->soname, soname) == 0)
			return record->path;
	}
	return NULL;
}

/* --- the libraries --- */

/* Returns what follows ".so." in a file name if it is a version: "550.54.14". */
static const char *library_version_of(const char *path)
{
	const char *at = strstr(graft_path_name(path), ".so.");

	if (!at || !isdigit((unsigned char)at[4]) || !strchr(at + 4, '.'))
		return NULL;
	return at + 4;
}

static const char *find_installed(const struct graft_health_look *look, const char *soname)
{
	const struct graft_inventory *inventory = look->survey.inventory;

	for (size_t i = 0; i < inventory->n_libraries; i++) {
		if (strcmp(inventory->libraries[i].soname, soname) == 0)
			return inventory->libraries[i].path;
	}
	return strcmp(soname, sonames[0]) == 0 ? inventory->nvml_library : NULL;
}

static void add_library_row(struct graft_health_look *look, const struct graft_ldcache *cache, const char *soname)
{
	struct graft_health_loader *loader = &look->health->loader;
	struct graft_health_library *library = graft_arena_push(look->arena, &loader->libraries, &loader->n_libraries,
								sizeof(*library));
	const char *cached = find_cached(cache, soname), *resolved;
	struct stat st;

	if (!library)
		return;
	library->soname = soname;
	library->cached = graft_arena_strdup(look->arena, cached);
	if (cached && graft_lookup_path(&look->survey.lookup, cached, &resolved, &st) == 0 && S_ISREG(st.st_mode))
		library->file = graft_arena_strdup(look->arena, resolved);
	if (!library->file)
		library->file = graft_arena_strdup(look->arena, find_installed(look, soname));
	if (library->file)
		library->version = library_version_of(library->file);
}

void graft_health_look_libraries(struct graft_health_look *look)
{
	struct graft_ldcache cache = { .n_records = 0 };

	read_loader_cache(look, &cache);
	for (size_t i = 0; i < GRAFT_COUNT(sonames); i++)
		add_library_row(look, &cache, sonames[i]);
	if (strcmp(look->survey.inventory->root, DRIVER_CONTAINER) != 0 &&
	    graft_health_exists(look, DRIVER_CONTAINER "/usr"))
		look->health->loader.other_root = DRIVER_CONTAINER;
}

/* --- the management library --- */

#define NVML_FACTS \
	(GRAFT_NVML_UUID | GRAFT_NVML_MODEL | GRAFT_NVML_BRAND | GRAFT_NVML_ARCH | GRAFT_NVML_CUDA | GRAFT_NVML_MIG)

static void take_answer(struct graft_health_look *look, const struct graft_nvml_snapshot *snapshot)
{
	struct graft_health_nvml *nvml = &look->health->nvml;

	nvml->status = graft_status_name(GRAFT_OK);
	nvml->driver_version = graft_arena_strdup(look->arena, snapshot->driver_version);
	nvml->n_gpus = (uint32_t)snapshot->n_gpus;
	for (size_t i = 0; i < snapshot->n_gpus; i++) {
		const struct graft_nvml_gpu *gpu = &snapshot->gpus[i];

		nvml->n_migs += (uint32_t)gpu->n_migs;
		if (gpu->bus_id)
			(void)graft_arena_push_string(look->arena, &nvml->bus_ids, &nvml->n_bus_ids, gpu->bus_id);
	}
	/* For a driver that procfs does not show, as at a start (graft_survey_gpus_by_nvml()). */
	nvml->lists_gpus = look->survey.inventory->platform == GRAFT_PLATFORM_NATIVE && !look->survey.gpus_listed &&
			   nvml->n_gpus > 0;
	graft_nvml_take_over(snapshot, NVML_FACTS, nvml->lists_gpus, look->survey.log, look->survey.inventory);
	if (nvml->lists_gpus)
		graft_survey_nodes_by_nvml(&look->survey);
}

void graft_health_look_nvml(struct graft_health_look *look)
{
	struct graft_health_nvml *nvml = &look->health->nvml;
	struct graft_nvml_question question;
	struct graft_nvml_snapshot snapshot;
	struct graft_error err = { .status = GRAFT_OK };
	int64_t begin = graft_clock_ms();

	if (!look->options->ask_nvml || !look->survey.inventory->nvml_library)
		return;
	nvml->asked = true;
	graft_nvml_prepare(&look->options->host, look->survey.inventory, NVML_FACTS, &question);
	if (graft_nvml_ask(&question, look->scratch, &snapshot, &err) == 0) {
		take_answer(look, &snapshot);
	} else {
		graft_note_shortage(&look->survey.shortage, -err.sys);
		nvml->status = graft_status_name(err.status);
		nvml->problem = graft_arena_strdup(look->arena, err.msg);
	}
	nvml->took_ms = (uint64_t)(graft_clock_ms() - begin);
}
