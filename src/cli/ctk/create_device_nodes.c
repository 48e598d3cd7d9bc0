/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_device_nodes: loads the kernel modules and makes the control nodes, each on request (SPEC
 * ctk-and-cdi 1.7).
 */
#include "base/cleanup.h"
#include "base/option_rows.h"
#include "cli/ctk/ctk.h"
#include "cli/ctk/ctk_devices.h"

struct options {
	struct ctk_base base;
	const char *root, *dev_root; /* dev_root NULL or "": same as root */
	bool control_devices, load_kernel_modules, dry_run;
};

static int create_device_nodes(void *target, struct graft_error *err)
{
	struct options *options = target;
	const struct ctk *ctk = options->base.ctk;

	if (ctk_clean_root(ctk, "root", &options->root, err) < 0)
		return -1;
	if (!options->dev_root || options->dev_root[0] == '\0') {
		options->dev_root = options->root;
		graft_info(&ctk->log, "Using dev-root \"%s\"", options->dev_root);
	}
	if (ctk_clean_root(ctk, "dev-root", &options->dev_root, err) < 0 ||
	    (options->load_kernel_modules && ctk_load_kernel_modules(ctk, options->root, options->dry_run, err) < 0))
		return -1;
	return options->control_devices ? ctk_make_control_nodes(ctk, options->dev_root, options->dry_run, err) : 0;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct options, member)
static const struct graft_option table[] = {
	{ .name = "root", TEXT, AT(root), ALIAS("driver-root"), .value_name = "DIR",
	  ENV("ROOT", "NVIDIA_DRIVER_ROOT", "DRIVER_ROOT"),
	  .help = "Directory in which the driver is installed; its modprobe is run" },
	{ .name = "dev-root", TEXT, AT(dev_root), .value_name = "DIR", ENV("NVIDIA_DEV_ROOT", "DEV_ROOT"),
	  .help = "Directory whose dev gets the nodes (default that of --root)" },
	{ .name = "control-devices", FLAG, AT(control_devices),
	  .help = "Create nvidiactl, nvidia-modeset, nvidia-uvm and nvidia-uvm-tools" },
	{ .name = "load-kernel-modules", FLAG, AT(load_kernel_modules),
	  .help = "Load the modules nvidia, nvidia-uvm and nvidia-modeset first" },
	{ .name = "dry-run", FLAG, AT(dry_run), ENV("DRY_RUN"),
	  .help = "Print what would be run, and change nothing" },
};
/* clang-format on */

const struct graft_command ctk_system_create_device_nodes = {
	CTK_COMMAND,
	.name = "create-device-nodes",
	.summary = "Create the driver's control device nodes",
	.description = "Loads the driver's kernel modules and creates its control nodes, according to the options. The "
		       "nodes of GPUs are created by nvidia-modprobe or udev.",
	GRAFT_OPTIONS(table),
	CTK_WORK(create_device_nodes, struct options),
};
