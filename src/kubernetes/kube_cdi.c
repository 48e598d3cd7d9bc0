/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_cdi: decides what the device plugin's specifications contain; they are made like those of
 * nvidia-ctk cdi generate.
 */
#include "kubernetes/kube_cdi.h"

#include <string.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "formats/cdi/cdi_transform.h"
#include "formats/cdi/cdi_write.h"
#include "kubernetes/kube_allocate.h"
#include "kubernetes/kube_facts.h"
#include "kubernetes/kube_tables.h"
#include "plan/cdi_devices.h"
#include "plan/planner.h"
#include "start/cdi_host.h"

#define SPEC_MODE 0644

struct written_file {
	const char *path;
	struct graft_buffer text;
};

struct writing {
	const struct graft_kube_config *config;
	const char *directory;
	const char *root; /* where the driver is read */
	struct graft_log *steps;
	struct graft_arena *arena;
	struct graft_error *err;
	struct written_file *files;
	size_t n_files;
};

static void set_cdi_demand(const struct writing *writing, enum graft_cdi_mode mode, const char *const *id,
			   struct graft_cdi_demand *ret_demand)
{
	const struct graft_kube_plugin_flags *flags = &writing->config->flags.plugin;

	*ret_demand = (struct graft_cdi_demand){
		.mode = mode,
		.vendor = GRAFT_KUBE_CDI_VENDOR,
		.class_ = graft_cdi_modes[mode].class_,
		.ids = id,
		.n_ids = 1,
		.namings = flags->device_id_strategy == GRAFT_KUBE_ID_INDEX ? (unsigned int)GRAFT_CDI_NAMING_INDEX
									    : (unsigned int)GRAFT_CDI_NAMING_UUID,
		.capabilities = (uint32_t)GRAFT_CAP_ALL & ~(uint32_t)GRAFT_CAP_COMPAT32,
		.hook_path = flags->cdi_hook_path,
		.late_mounts = flags->cdi_late_mounts,
		.provenance = GRAFT_CDI_PROVENANCE_NONE,
	};
	/*
	 * The plugin names devices one by one; only in a class with a single device is that called
	 * "all".
	 */
	ret_demand->no_all_device = true;
	for (size_t i = 0; i < flags->n_cdi_feature_flags; i++) {
		if (!graft_cdi_set_feature(ret_demand, flags->cdi_feature_flags[i]))
			graft_warn(writing->steps, "CDI feature flag '%s' has no effect here",
				   flags->cdi_feature_flags[i]);
	}
	for (size_t i = 0; i < flags->n_cdi_disabled_hooks; i++) {
		struct graft_error why = { .status = GRAFT_OK };

		if (graft_policy_disable_hook(&ret_demand->disabled_hooks, flags->cdi_disabled_hooks[i], &why) < 0)
			graft_warn(writing->steps, "there is no hook '%s'%s", flags->cdi_disabled_hooks[i],
				   graft_nearest_hint(graft_hook_names, GRAFT_HOOK_BITS, flags->cdi_disabled_hooks[i],
						      writing->arena));
	}
}

/* Replaces paths at which this process sees the driver by those of the host. */
static int move_roots(const struct writing *writing, struct graft_cdi_spec *spec)
{
	const struct graft_kube_flags *flags = &writing->config->flags;
	const struct graft_cdi_root_change driver = { .from = writing->root, .to = flags->driver_root };
	struct graft_cdi_root_change nodes = { .from = NULL };

	/* Without a container driver root, the paths are those of the host or of the driver's own image. */
	if (strcmp(writing->root, flags->plugin.container_driver_root) == 0 &&
	    graft_cdi_spec_change_root(spec, &driver, writing->arena, spec, writing->err) < 0)
		return -1;
	if (flags->dev_root[0] == '\0' || strcmp(flags->dev_root, flags->driver_root) == 0)
		return 0;
	nodes.from = graft_arena_printf(writing->arena, "%s/dev", flags->driver_root);
	nodes.to = graft_arena_printf(writing->arena, "%s/dev", flags->dev_root);
	if (!nodes.from || !nodes.to)
		return graft_fail_memory(writing->err);
	return graft_cdi_spec_change_root(spec, &nodes, writing->arena, spec, writing->err);
}

/* Adds a file; none is written before all are made. */
static int add_kube_spec(struct writing *writing, struct graft_cdi_spec *spec)
{
	struct written_file *file = graft_arena_push(writing->arena, &writing->files, &writing->n_files, sizeof(*file));

	if (!file)
		return graft_fail_memory(writing->err);
	file->path = graft_arena_printf(writing->arena, "%s/" GRAFT_KUBE_CDI_VENDOR "-%s.json", writing->directory,
					spec->class_);
	if (!file->path)
		return graft_fail_memory(writing->err);
	if (move_roots(writing, spec) < 0)
		return -1;
	return graft_cdi_spec_write(spec, GRAFT_CDI_JSON, &file->text, writing->err);
}

static int make_mode(struct writing *writing, enum graft_cdi_mode mode, const char *const id)
{
	const struct graft_cdi_places places = { .driver_root = writing->root };
	struct graft_cdi_specs specs = { .n = 0 };
	struct graft_cdi_demand demand;
	struct graft_cdi_host host;
	int rc;

	set_cdi_demand(writing, mode, &id, &demand);
	rc = graft_cdi_read_host(&demand, &places, writing->steps, writing->arena, &host, writing->err);
	if (rc == 0)
		rc = graft_cdi_make(&demand, &host, writing->arena, &specs, writing->err);
	for (size_t i = 0; rc == 0 && i < specs.n; i++)
		rc = add_kube_spec(writing, &specs.items[i].spec);
	for (size_t i = 0; i < specs.n_warnings; i++)
		graft_warn(writing->steps, "%s", specs.warnings[i]);
	graft_cdi_specs_done(&specs);
	graft_cdi_host_done(&host);
	return rc < 0 ? graft_wrap(writing->err, "CDI specification of class %s", graft_cdi_modes[mode].class_) : 0;
}

static int make_modes(struct writing *writing, const struct graft_inventory *inventory)
{
	const struct graft_kube_config *config = writing->config;
	const struct {
		enum graft_cdi_mode mode;
		bool wanted;
		const char *id;
	} modes[] = {
		{ inventory->platform == GRAFT_PLATFORM_WSL2 ? GRAFT_CDI_MODE_WSL : GRAFT_CDI_MODE_NVML, true, "all" },
		{ GRAFT_CDI_MODE_IMEX, kube_has_channel(config, inventory), "0" },
		{ GRAFT_CDI_MODE_GDRCOPY, config->flags.gdrcopy, "all" },
		{ GRAFT_CDI_MODE_GDS, config->flags.gds, "all" },
		{ GRAFT_CDI_MODE_MOFED, config->flags.mofed, "all" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(modes); i++) {
		if (modes[i].wanted && make_mode(writing, modes[i].mode, modes[i].id) < 0)
			return -1;
	}
	return 0;
}

int graft_kube_cdi_write(const struct graft_kube_config *config, const struct graft_kube_node_facts *facts,
			 const char *directory, const struct graft_log *log, struct graft_error *err)
{
	struct graft_log steps = *log;
	struct writing writing = { .config = config,
				   .directory = directory,
				   .root = graft_kube_driver_root(&config->flags),
				   .steps = &steps,
				   .err = err };
	int rc;

	if ((config->flags.plugin.device_list_strategy & GRAFT_KUBE_LIST_CDI) == 0 || facts->offer.n_resources == 0)
		return 0;
	writing.arena = graft_arena_new(SIZE_MAX / 2);
	if (!writing.arena)
		return graft_fail_memory(err);
	rc = make_modes(&writing, facts->inventory);
	for (size_t i = 0; i < writing.n_files; i++) {
		struct written_file *file = &writing.files[i];

		if (rc == 0)
			rc = graft_host_file_write(file->path, file->text.bytes, file->text.length, SPEC_MODE, err);
		graft_buffer_done(&file->text);
	}
	(void)graft_arena_free(writing.arena);
	return rc;
}
