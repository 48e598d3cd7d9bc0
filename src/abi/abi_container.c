/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_container: opens a container and reads its image (SPEC libnvidia-container 2.4, 2.5, 9.2).
 * Changes nothing in it.
 */
#include <stdlib.h>
#include <string.h>

#include "abi/abi.h"
#include "apply/cgroup/cgroup.h"
#include "base/cleanup.h"
#include "start/open_container.h"

#define ARENA_MAX ((size_t)32 << 20)

static const char default_options[] = "standalone no-cgroups no-devbind utility";

struct container_options {
	bool supervised, standalone, no_cgroups, no_devbind;
	uint32_t capabilities;
	struct graft_request *request;
};

static int parse_compat(void *target, const char *value, struct graft_error *err)
{
	return graft_request_compat_mode(((struct container_options *)target)->request, value, err);
}

/* An option without a value: nothing may follow it. */
static int parse_no_compat(void *target, const char *value, struct graft_error *err)
{
	if (value[0] != '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "invalid option: no-cntlibs%s", value);
	return parse_compat(target, "disabled", err);
}

#define CAPABILITY(word_, bit_)                                                                            \
	{                                                                                                  \
		.word = (word_), .offset = offsetof(struct container_options, capabilities), .bit = (bit_) \
	}
static const struct abi_option words[] = {
	{ .word = "supervised", .offset = offsetof(struct container_options, supervised) },
	{ .word = "standalone", .offset = offsetof(struct container_options, standalone) },
	{ .word = "no-cgroups", .offset = offsetof(struct container_options, no_cgroups) },
	{ .word = "no-devbind", .offset = offsetof(struct container_options, no_devbind) },
	CAPABILITY("utility", GRAFT_CAP_UTILITY),
	CAPABILITY("compute", GRAFT_CAP_COMPUTE),
	CAPABILITY("video", GRAFT_CAP_VIDEO),
	CAPABILITY("graphics", GRAFT_CAP_GRAPHICS),
	CAPABILITY("display", GRAFT_CAP_DISPLAY),
	CAPABILITY("ngx", GRAFT_CAP_NGX),
	CAPABILITY("compat32", GRAFT_CAP_COMPAT32),
	{ .word = "no-cntlibs", .parse = parse_no_compat },
	{ .word = "cuda-compat-mode=", .parse = parse_compat },
};

static bool is_valid_container_config(const struct nvc_container_config *cfg)
{
	return cfg && cfg->pid > 0 && cfg->rootfs && cfg->rootfs[0] == '/' && !abi_is_empty(cfg->bins_dir) &&
	       !abi_is_empty(cfg->libs_dir) && !abi_is_empty(cfg->libs32_dir) && !abi_is_empty(cfg->cudart_dir) &&
	       !abi_is_empty(cfg->ldconfig);
}

static int parse_container_options(struct nvc_container *cnt, const char *opts, const struct graft_log *log,
				   struct graft_error *err)
{
	struct container_options options = { .request = cnt->request };

	opts = opts ? opts : default_options;
	graft_info(log, "configuring container with '%s'", opts);
	if (abi_options(words, GRAFT_COUNT(words), opts, &options, err) < 0)
		return -1;
	if (options.supervised == options.standalone)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid mode of operation");
	cnt->supervised = options.supervised;
	cnt->request->capabilities = options.capabilities;
	cnt->request->no_cgroups = options.no_cgroups;
	cnt->request->no_devbind = options.no_devbind;
	return 0;
}

static int open_with_image(struct nvc_context *ctx, const struct nvc_container_config *cfg, struct nvc_container *cnt,
			   struct graft_error *err)
{
	auto_cgroup struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	const char *rootfs = graft_arena_strdup(cnt->arena, cfg->rootfs);

	cnt->policy.bins_dir = graft_arena_strdup(cnt->arena, cfg->bins_dir);
	cnt->policy.libs_dir = graft_arena_strdup(cnt->arena, cfg->libs_dir);
	cnt->policy.libs32_dir = graft_arena_strdup(cnt->arena, cfg->libs32_dir);
	cnt->policy.cudart_dir = graft_arena_strdup(cnt->arena, cfg->cudart_dir);
	if (graft_arena_failed(cnt->arena))
		return graft_fail_memory(err);
	if (graft_open_container(cnt->request, cfg->pid, cnt->supervised, rootfs, false, ctx->log, &cnt->target,
				 &cgroup, &cnt->policy, err) < 0 ||
	    graft_inspect_container(cnt->request, &cnt->target.root, ctx->log, cnt->arena, &cnt->policy.image, err) < 0)
		return -1;
	cnt->ldcache_state = graft_ldcache_state(&cnt->target.root, ctx->log);
	/* Leave nothing running in the caller's process between calls. */
	(void)graft_budget_end_child(cnt->target.root.budget);
	return 0;
}

ABI_PUBLIC struct nvc_container_config *nvc_container_config_new(pid_t pid, const char *rootfs)
{
	struct nvc_container_config *cfg = calloc(1, sizeof(*cfg));

	if (cfg) {
		cfg->pid = pid;
		/* drops the const: never written to, but the caller may fill the struct */
		memcpy(&cfg->rootfs, &rootfs, sizeof(rootfs));
	}
	return cfg;
}

ABI_PUBLIC void nvc_container_config_free(struct nvc_container_config *cfg)
{
	free(cfg);
}

ABI_PUBLIC struct nvc_container *nvc_container_new(struct nvc_context *ctx, const struct nvc_container_config *cfg,
						   const char *opts)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct nvc_container *cnt;
	int rc;

	if (abi_check(ctx) < 0)
		return NULL;
	if (!is_valid_container_config(cfg)) {
		(void)abi_invalid(ctx);
		return NULL;
	}
	cnt = calloc(1, sizeof(*cnt));
	if (cnt) {
		cnt->target = (struct graft_target)GRAFT_TARGET_INIT;
		cnt->arena = graft_arena_new(ARENA_MAX);
		cnt->request = graft_request_new();
		cnt->has_driver = cnt->arena ? graft_arena_list(cnt->arena, 1, sizeof(*cnt->has_driver)) : NULL;
	}
	rc = cnt && cnt->has_driver && cnt->request ? 0 : graft_fail_memory(&err);
	if (rc == 0)
		rc = parse_container_options(cnt, opts, ctx->log, &err);
	if (rc == 0)
		rc = open_with_image(ctx, cfg, cnt, &err);
	if (rc == 0)
		return cnt;
	(void)abi_fail(ctx, &err);
	nvc_container_free(cnt);
	return NULL;
}

ABI_PUBLIC void nvc_container_free(struct nvc_container *cnt)
{
	if (!cnt)
		return;
	graft_target_close(&cnt->target);
	graft_request_free(cnt->request);
	graft_arena_free(cnt->arena);
	free(cnt);
}
