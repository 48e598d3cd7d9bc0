/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolkit_cdi: the control nodes and the specification of all GPUs for management (SPEC
 * installer-and-nri 4). The driver is read where this process sees it; the specification has
 * the paths of the node.
 */
#include "base/cleanup.h"
#include "cli/ctk/cdi_decision.h"
#include "cli/ctk/cdi_file.h"
#include "cli/ctk/ctk_devices.h"
#include "cli/installer/installer.h"
#include "formats/cdi/cdi_transform.h"

int installer_nodes_make(const struct installer_options *o, struct graft_error *err)
{
	if (!o->makes_nodes)
		return 0;
	if (ctk_make_control_nodes(o->base.ctk, o->dev_root_ctr, false, err) < 0)
		return graft_wrap(err, "failed to create device nodes");
	return 0;
}

/* SPEC installer-and-nri 2.2: nodes are below one root, all other files below the other. */
static int move_paths(const struct installer_options *o, const struct graft_cdi_spec *spec,
		      struct graft_cdi_spec *ret_spec, struct graft_error *err)
{
	const struct graft_cdi_root_change nodes = { .from = o->dev_root_ctr,
						     .to = o->dev_root,
						     .scope = GRAFT_CDI_ONLY_NODES };
	const struct graft_cdi_root_change files = { .from = o->driver_root_ctr,
						     .to = o->driver_root,
						     .scope = GRAFT_CDI_ALL_BUT_NODES };
	struct graft_arena *arena = o->base.ctk->arena;
	struct graft_cdi_spec moved;

	if (graft_cdi_spec_change_root(spec, &nodes, arena, &moved, err) < 0)
		return -1;
	return graft_cdi_spec_change_root(&moved, &files, arena, ret_spec, err);
}

static int make_and_save(const struct installer_options *o, const struct ctk_cdi_decision *decision,
			 struct graft_cdi_host *host, struct graft_cdi_specs *specs, struct graft_error *err)
{
	struct ctk *ctk = o->base.ctk;
	struct graft_cdi_spec moved;
	const char *path = graft_arena_printf(ctk->arena, "%s/%s-%s.yaml", o->cdi_output_dir, o->vendor, o->class_);

	if (!path)
		return graft_fail_memory(err);
	if (graft_cdi_read_host(&decision->demand, &decision->places, &ctk->steps, ctk->arena, host, err) < 0 ||
	    graft_cdi_make(&decision->demand, host, ctk->arena, specs, err) < 0 ||
	    move_paths(o, &specs->items[0].spec, &moved, err) < 0)
		return -1;
	for (size_t i = 0; i < specs->n_warnings; i++)
		graft_warn(&ctk->log, "%s", specs->warnings[i]);
	if (ctk_cdi_save(ctk, &moved, path, err) < 0)
		return -1;
	graft_info(&ctk->log, "Generated CDI spec for management containers: %s", path);
	return 0;
}

int installer_cdi_write(const struct installer_options *o, struct graft_error *err)
{
	const struct ctk_cdi_flags flags = { .base = o->base,
					     .mode = "management",
					     .driver_root = o->driver_root_ctr,
					     .dev_root = o->dev_root_ctr,
					     .vendor = o->vendor,
					     .class_ = o->class_,
					     .provenance = "none",
					     .hook_path = graft_arena_printf(o->base.ctk->arena, "%s/nvidia-cdi-hook",
									     o->toolkit) };
	struct graft_cdi_host host = { .inventory = NULL };
	struct graft_cdi_specs specs = { .n = 0 };
	struct ctk_cdi_decision decision;
	int rc;

	if (!o->cdi)
		return 0;
	if (!flags.hook_path)
		return graft_fail_memory(err);
	rc = ctk_cdi_decide(o->base.ctk, &flags, &decision, err);
	if (rc == 0)
		rc = make_and_save(o, &decision, &host, &specs, err);
	graft_cdi_specs_done(&specs);
	graft_cdi_host_done(&host);
	return rc < 0 ? graft_wrap(err, "failed to generate the CDI spec for management containers") : 0;
}
