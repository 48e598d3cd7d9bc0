/* SPDX-License-Identifier: Apache-2.0 */
/* driver_info: the driver's files as lists (SPEC libnvidia-container 2.4, 2.5). */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "abi/abi.h"
#include "base/cleanup.h"

#define ARENA_MAX ((size_t)16 << 20)
#define NEEDS                                                                                     \
	(GRAFT_NEED_NODES | GRAFT_NEED_LIBRARIES | GRAFT_NEED_LIBRARIES32 | GRAFT_NEED_BINARIES | \
	 GRAFT_NEED_FIRMWARE | GRAFT_NEED_IPCS | GRAFT_NEED_FURTHER)

/* The caller gets a pointer to the first member. */
struct driver {
	struct nvc_driver_info info;
	struct graft_arena *arena;
};

#define OPTION(word_, member)                                                          \
	{                                                                              \
		.word = (word_), .offset = offsetof(struct graft_host_options, member) \
	}
static const struct abi_option words[] = {
	OPTION("no-glvnd", no_glvnd),
	OPTION("no-uvm", no_uvm),
	OPTION("no-modeset", no_modeset),
	OPTION("no-mps", no_mps),
	OPTION("no-persistenced", no_persistenced),
	OPTION("no-fabricmanager", no_fabricmanager),
	OPTION("no-gsp-firmware", no_gsp_firmware),
};

/* Copies the path at `offset` in each of `n` elements of `size` bytes. */
static char **copy_paths(struct graft_arena *arena, const void *elements, size_t n, size_t size, size_t offset,
			 size_t *ret_n)
{
	char **list = graft_arena_list(arena, n, sizeof(*list));

	for (size_t i = 0; list && i < n; i++) {
		const char *path;

		memcpy(&path, (const char *)elements + i * size + offset, sizeof(path));
		list[i] = graft_arena_strdup(arena, path);
	}
	*ret_n = list ? n : 0;
	return list;
}
#define COPY_PATHS(list, n, type, ret_n) copy_paths(arena, list, n, sizeof(type), offsetof(type, path), ret_n)

static void copy_nodes(struct graft_arena *arena, const struct graft_inventory *inventory, struct nvc_driver_info *info)
{
	info->devs = graft_arena_list(arena, inventory->n_nodes, sizeof(*info->devs));
	for (size_t i = 0; info->devs && i < inventory->n_nodes; i++) {
		const struct graft_node *node = &inventory->nodes[i];

		info->devs[i].path = graft_arena_strdup(arena, node->path);
		info->devs[i].id = makedev(node->major, node->minor);
		info->ndevs = i + 1;
	}
}

/* The driver store of WSL2 is listed with the libraries, which load files from it. */
static void add_driver_store(struct graft_arena *arena, const struct graft_inventory *inventory,
			     struct nvc_driver_info *info)
{
	char **list = graft_arena_list(arena, info->nlibs + inventory->n_extra_files, sizeof(*list));

	if (!list)
		return;
	if (info->nlibs > 0)
		memcpy(list, info->libs, info->nlibs * sizeof(*list));
	for (size_t i = 0; i < inventory->n_extra_files; i++)
		if (inventory->extra_files[i].class_ == GRAFT_CLASS_WSL)
			list[info->nlibs++] = graft_arena_strdup(arena, inventory->extra_files[i].path);
	info->libs = list;
}

static void fill_driver_info(struct driver *driver, const struct graft_inventory *inventory)
{
	struct nvc_driver_info *info = &driver->info;
	struct graft_arena *arena = driver->arena;

	info->nvrm_version = graft_arena_strdup(arena, inventory->driver_version.value);
	info->cuda_version = graft_arena_strdup(arena, inventory->cuda_version.value);
	info->bins = COPY_PATHS(inventory->binaries, inventory->n_binaries, struct graft_binary, &info->nbins);
	info->libs = COPY_PATHS(inventory->libraries, inventory->n_libraries, struct graft_library, &info->nlibs);
	add_driver_store(arena, inventory, info);
	info->libs32 = COPY_PATHS(inventory->libraries32, inventory->n_libraries32, struct graft_library,
				  &info->nlibs32);
	info->ipcs = COPY_PATHS(inventory->ipcs, inventory->n_ipcs, struct graft_ipc, &info->nipcs);
	info->firmwares = copy_paths(arena, inventory->firmwares, inventory->n_firmwares, sizeof(const char *), 0,
				     &info->nfirmwares);
	copy_nodes(arena, inventory, info);
}

/*
 * The newest supported CUDA version follows from the driver's version if that is known; otherwise
 * NVML is asked.
 */
static int discover_driver(struct graft_pipeline *pipeline, struct graft_error *err)
{
	if (graft_pipeline_discover(pipeline, NEEDS, err) < 0)
		return -1;
	return pipeline->inventory->cuda_version.value ? 0 : graft_pipeline_complete(pipeline, GRAFT_NVML_CUDA, err);
}

ABI_PUBLIC struct nvc_driver_info *nvc_driver_info_new(struct nvc_context *ctx, const char *opts)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_pipeline pipeline = { .inventory = NULL };
	struct driver *driver;
	int rc;

	if (abi_check(ctx) < 0)
		return NULL;
	pipeline.host = ctx->host;
	driver = calloc(1, sizeof(*driver));
	if (driver)
		driver->arena = graft_arena_new(ARENA_MAX);
	rc = driver && driver->arena ? 0 : graft_fail_memory(&err);
	if (rc == 0)
		rc = abi_options(words, GRAFT_COUNT(words), opts ? opts : "", &pipeline.host, &err);
	if (rc == 0)
		rc = discover_driver(&pipeline, &err);
	if (rc == 0) {
		fill_driver_info(driver, pipeline.inventory);
		rc = graft_arena_failed(driver->arena) ? graft_fail_memory(&err) : 0;
	}
	graft_pipeline_done(&pipeline);
	if (rc == 0)
		return &driver->info;
	(void)abi_fail(ctx, &err);
	nvc_driver_info_free(driver ? &driver->info : NULL);
	return NULL;
}

ABI_PUBLIC void nvc_driver_info_free(struct nvc_driver_info *info)
{
	struct driver *driver = (struct driver *)(void *)info;

	if (!driver)
		return;
	graft_arena_free(driver->arena);
	free(driver);
}
