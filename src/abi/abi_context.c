/* SPDX-License-Identifier: Apache-2.0 */
/* abi_context: configurations, initialisation, and errors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/abi.h"
#include "apply/host_file.h"
#include "apply/load_kmods.h"
#include "base/cleanup.h"
#include "host/platform.h"

#define ARENA_MAX ((size_t)1 << 20)

/* ---- errors ---- */

int abi_fail(struct nvc_context *ctx, const struct graft_error *err)
{
	(void)graft_error_text(err, ctx->message, sizeof(ctx->message));
	ctx->failed = true;
	graft_log_write(ctx->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s", ctx->message);
	return -1;
}

static int fail_plain(struct nvc_context *ctx, const char *message)
{
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail(&err, GRAFT_INVALID, 0, "%s", message);
	return abi_fail(ctx, &err);
}

int abi_check(struct nvc_context *ctx)
{
	if (!ctx)
		return -1;
	return ctx->initialized ? 0 : fail_plain(ctx, "context uninitialized");
}

int abi_invalid(struct nvc_context *ctx)
{
	return fail_plain(ctx, "invalid argument");
}

ABI_PUBLIC const char *nvc_error(struct nvc_context *ctx)
{
	return ctx && ctx->failed ? ctx->message : NULL;
}

/* ---- structs ---- */

ABI_PUBLIC const struct nvc_version *nvc_version(void)
{
	static const struct nvc_version version = { NVC_MAJOR, NVC_MINOR, NVC_PATCH, NVC_VERSION };

	return &version;
}

ABI_PUBLIC struct nvc_context *nvc_context_new(void)
{
	struct nvc_context *ctx = calloc(1, sizeof(*ctx));

	if (ctx)
		ctx->log_fd = -1;
	return ctx;
}

ABI_PUBLIC void nvc_context_free(struct nvc_context *ctx)
{
	if (!ctx)
		return;
	(void)nvc_shutdown(ctx);
	free(ctx);
}

ABI_PUBLIC struct nvc_config *nvc_config_new(void)
{
	struct nvc_config *cfg = calloc(1, sizeof(*cfg));

	if (cfg) {
		cfg->uid = (uid_t)-1;
		cfg->gid = (gid_t)-1;
	}
	return cfg;
}

ABI_PUBLIC void nvc_config_free(struct nvc_config *cfg)
{
	free(cfg);
}

/* ---- initialisation ---- */

struct init_options {
	bool load_kmods, no_create_imex_channels;
};

static const struct abi_option init_words[] = {
	{ .word = "load-kmods", .offset = offsetof(struct init_options, load_kmods) },
	{ .word = "no-create-imex-channels", .offset = offsetof(struct init_options, no_create_imex_channels) },
};

static int copy_channels(struct nvc_context *ctx, const struct nvc_imex_info *imex, struct graft_error *err)
{
	uint32_t *channels = graft_arena_list(ctx->arena, imex->nchans, sizeof(*channels));

	for (size_t i = 0; channels && i < imex->nchans; i++)
		channels[i] = (uint32_t)imex->chans[i].id;
	ctx->host.imex_channels = channels;
	ctx->host.n_imex_channels = channels ? imex->nchans : 0;
	return graft_arena_failed(ctx->arena) ? graft_fail_memory(err) : 0;
}

static void open_context_log(struct nvc_context *ctx)
{
	const char *path = secure_getenv("NVC_DEBUG_FILE");

	if (!path || path[0] == '\0')
		return;
	ctx->log_fd = graft_log_file_begin(graft_host_log_open(path, 0, false, NULL));
	if (ctx->log_fd < 0)
		return;
	graft_log_file_init(&ctx->log_file, ctx->log_fd, GRAFT_LOG_DEBUG);
	ctx->log = &ctx->log_file.log;
}

static int configure_context(struct nvc_context *ctx, const struct nvc_config *cfg, struct graft_error *err)
{
	const struct nvc_config none = { .uid = (uid_t)-1, .gid = (gid_t)-1 };

	cfg = cfg ? cfg : &none;
	ctx->arena = graft_arena_new(ARENA_MAX);
	if (!ctx->arena)
		return graft_fail_memory(err);
	ctx->host = (struct graft_host_options){
		.root = graft_arena_strdup(ctx->arena, cfg->root),
		.ldcache = graft_arena_strdup(ctx->arena, cfg->ldcache),
		.nvml_uid = cfg->uid,
		.nvml_gid = cfg->gid,
		.path = graft_arena_strdup(ctx->arena, secure_getenv("PATH")),
		.mps_pipe_directory = graft_arena_strdup(ctx->arena, secure_getenv("CUDA_MPS_PIPE_DIRECTORY")),
		.capabilities = GRAFT_CAP_ALL,
		.log = ctx->log,
	};
	if (copy_channels(ctx, &cfg->imex, err) < 0)
		return -1;
	graft_pipeline_log_start(&ctx->host);
	return 0;
}

static void load_kmods(const struct nvc_context *ctx, const struct init_options *options)
{
	const struct graft_kmods_options kmods = {
		.root = ctx->host.root,
		.imex_channels = ctx->host.imex_channels,
		.n_imex_channels = ctx->host.n_imex_channels,
		.no_create_imex_channels = options->no_create_imex_channels,
		.wsl = graft_platform_is_wsl(),
		.log = ctx->log,
	};

	if (options->load_kmods)
		graft_load_kmods(&kmods);
}

/* Fails early if there is no driver, before the caller sets up a container. */
static int check_driver(const struct nvc_context *ctx, struct graft_error *err)
{
	struct graft_pipeline pipeline = { .host = ctx->host };
	int rc = graft_pipeline_discover(&pipeline, GRAFT_NEED_GPUS, err);

	graft_pipeline_done(&pipeline);
	return rc;
}

static void release(struct nvc_context *ctx)
{
	ctx->inventory = graft_inventory_free(ctx->inventory);
	ctx->arena = graft_arena_free(ctx->arena);
	ctx->host = (struct graft_host_options){ .root = NULL };
	ctx->log = NULL;
	if (ctx->log_fd >= 0)
		(void)close(ctx->log_fd);
	ctx->log_fd = -1;
	ctx->initialized = false;
}

ABI_PUBLIC int nvc_init(struct nvc_context *ctx, const struct nvc_config *cfg, const char *opts)
{
	struct init_options options = { .load_kmods = false };
	struct graft_error err = { .status = GRAFT_OK };

	if (!ctx)
		return -1;
	if (ctx->initialized)
		return 0;
	if (cfg &&
	    (abi_is_empty(cfg->root) || abi_is_empty(cfg->ldcache) || (cfg->imex.nchans > 0 && !cfg->imex.chans)))
		return abi_invalid(ctx);
	if (abi_options(init_words, GRAFT_COUNT(init_words), opts ? opts : "", &options, &err) < 0)
		return abi_fail(ctx, &err);
	open_context_log(ctx);
	if (configure_context(ctx, cfg, &err) == 0) {
		load_kmods(ctx, &options);
		ctx->initialized = check_driver(ctx, &err) == 0;
	}
	if (ctx->initialized)
		return 0;
	(void)abi_fail(ctx, &err);
	release(ctx);
	return -1;
}

ABI_PUBLIC int nvc_shutdown(struct nvc_context *ctx)
{
	if (!ctx)
		return -1;
	graft_info(ctx->log, "shutting down library context");
	release(ctx);
	return 0;
}

struct graft_inventory *abi_inventory(struct nvc_context *ctx, struct graft_error *err)
{
	struct graft_pipeline pipeline = { .host = ctx->host };

	if (!ctx->inventory &&
	    graft_pipeline_discover(&pipeline, GRAFT_NEED_ALL & ~(unsigned int)GRAFT_NEED_EVERY_LIBRARY, err) == 0)
		ctx->inventory = TAKE_PTR(pipeline.inventory);
	graft_pipeline_done(&pipeline);
	return ctx->inventory;
}
