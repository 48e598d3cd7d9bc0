/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_dev_char_symlinks: makes the links /dev/char/MAJOR:MINOR, by which systemd knows devices
 * (SPEC ctk-and-cdi 1.8), either for the existing nodes or for all nodes that the driver could
 * have.
 */
#include <string.h>

#include "apply/dev_char.h"
#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/root.h"
#include "cli/ctk/ctk.h"
#include "cli/ctk/ctk_devices.h"
#include "plan/driver_nodes.h"

struct options {
	struct ctk_base base;
	const char *dev_char_path, *driver_root;
	bool create_all, load_kernel_modules, create_device_nodes, dry_run;
};

struct roots {
	struct graft_root host, driver;
	const char *driver_path; /* "" if it is the host's root */
};

/* ---- nodes ---- */

/*
 * Lists the nodes of the host or, if it has none, those of the driver root, with its path
 * prepended.
 */
static int find_nodes_to_link(const struct ctk *ctk, const struct roots *roots, struct graft_node **ret_nodes,
			      size_t *ret_n, struct graft_error *err)
{
	if (graft_host_list_driver_nodes(&roots->host, ctk->arena, ret_nodes, ret_n, err) < 0)
		return -1;
	if (*ret_n > 0 || roots->driver_path[0] == '\0')
		return 0;
	if (graft_host_list_driver_nodes(&roots->driver, ctk->arena, ret_nodes, ret_n, err) < 0)
		return -1;
	for (size_t i = 0; i < *ret_n; i++)
		(*ret_nodes)[i].path = graft_arena_printf(ctk->arena, "%s%s", roots->driver_path, (*ret_nodes)[i].path);
	return graft_arena_failed(ctk->arena) ? graft_fail_memory(err) : 0;
}

static bool has_node_to_link(const struct graft_root *root, const char *path)
{
	struct stat st;

	return graft_root_stat(root, path, &st) == 0 && S_ISCHR(st.st_mode);
}

/*
 * Lists all nodes that the driver could have. A node that exists only in the driver root is linked
 * to there.
 */
static int plan_nodes(const struct ctk *ctk, const struct roots *roots, struct graft_node **ret_nodes, size_t *ret_n,
		      struct graft_error *err)
{
	struct graft_driver_devices devices;

	if (graft_host_read_driver_devices(&roots->host, ctk->arena, &devices, err) < 0 ||
	    graft_plan_driver_nodes(&devices, ctk->arena, ret_nodes, ret_n, err) < 0)
		return -1;
	for (size_t i = 0; i < *ret_n && roots->driver_path[0] != '\0'; i++) {
		struct graft_node *node = &(*ret_nodes)[i];

		if (!has_node_to_link(&roots->host, node->path) && has_node_to_link(&roots->driver, node->path))
			node->path = graft_arena_printf(ctk->arena, "%s%s", roots->driver_path, node->path);
	}
	return graft_arena_failed(ctk->arena) ? graft_fail_memory(err) : 0;
}

/* ---- links ---- */

static void tell_link(void *arg, const char *link, const char *text)
{
	const struct ctk *ctk = arg;

	graft_info(&ctk->log, "Creating link %s => %s", link, text);
}

static int make_links_to_nodes(const struct options *options, const struct graft_node *nodes, size_t n,
			       struct graft_error *err)
{
	struct ctk *ctk = options->base.ctk;
	const struct graft_dev_char_options how = { .directory = options->dev_char_path,
						    .absolute = true,
						    .dry_run = options->dry_run,
						    .making = tell_link,
						    .arg = ctk,
						    .log = &ctk->log };
	struct graft_dev_char *links = graft_arena_list(ctk->arena, n, sizeof(*links));

	if (!links)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++)
		links[i] = (struct graft_dev_char){ nodes[i].major, nodes[i].minor, nodes[i].path };
	return graft_dev_char_make_with(&how, links, n, err) < 0 ? -1 : 0;
}

/* ---- the command ---- */

static int open_link_roots(const struct options *options, struct roots *roots, struct graft_error *err)
{
	bool own = strcmp(options->driver_root, "/") != 0;

	roots->driver_path = own ? options->driver_root : "";
	if (graft_root_open(&roots->host, "/", err) < 0)
		return -1;
	return own ? graft_root_open(&roots->driver, options->driver_root, err) : 0;
}

static int link_nodes_in_dev_char(const struct options *options, struct graft_error *err)
{
	const struct ctk *ctk = options->base.ctk;
	struct roots roots = { .host = GRAFT_ROOT_INIT, .driver = GRAFT_ROOT_INIT };
	struct graft_node *nodes = NULL;
	size_t n = 0;
	int rc = open_link_roots(options, &roots, err);

	if (rc == 0)
		rc = options->create_all ? plan_nodes(ctk, &roots, &nodes, &n, err)
					 : find_nodes_to_link(ctk, &roots, &nodes, &n, err);
	if (rc == 0 && n == 0)
		graft_info(&ctk->log, "No NVIDIA devices found in %s", options->driver_root);
	else if (rc == 0)
		rc = make_links_to_nodes(options, nodes, n, err);
	graft_root_close(&roots.host);
	graft_root_close(&roots.driver);
	return rc;
}

/* Runs the steps that require --create-all. */
static int prepare_nodes_to_link(struct options *options, struct graft_error *err)
{
	const struct ctk *ctk = options->base.ctk;

	if (options->load_kernel_modules && !options->create_all)
		graft_warn(&ctk->log, "--load-kernel-modules is ignored without --create-all");
	else if (options->load_kernel_modules &&
		 ctk_load_kernel_modules(ctk, options->driver_root, options->dry_run, err) < 0)
		return -1;
	if (options->create_device_nodes && !options->create_all)
		graft_warn(&ctk->log, "--create-device-nodes is ignored without --create-all");
	else if (options->create_device_nodes)
		return ctk_make_control_nodes(ctk, "/", options->dry_run, err);
	return 0;
}

static int create_dev_char_symlinks(void *target, struct graft_error *err)
{
	struct options *options = target;

	if (options->dev_char_path[0] == '\0')
		options->dev_char_path = "/dev/char";
	if (ctk_clean_root(options->base.ctk, "driver-root", &options->driver_root, err) < 0 ||
	    prepare_nodes_to_link(options, err) < 0)
		return -1;
	return link_nodes_in_dev_char(options, err);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct options, member)
static const struct graft_option table[] = {
	{ .name = "dev-char-path", TEXT, AT(dev_char_path), .value_name = "DIR", ENV("DEV_CHAR_PATH"),
	  .help = "Directory of the links (default /dev/char)" },
	{ .name = "driver-root", TEXT, AT(driver_root), .value_name = "DIR",
	  ENV("NVIDIA_DRIVER_ROOT", "DRIVER_ROOT"),
	  .help = "Directory in which the driver is installed: its modprobe is run, and it is searched for nodes that "
		  "the host lacks" },
	{ .name = "create-all", FLAG, AT(create_all), ENV("CREATE_ALL"),
	  .help = "Create links for all nodes that the driver could have, not only for existing ones" },
	{ .name = "load-kernel-modules", FLAG, AT(load_kernel_modules), ENV("LOAD_KERNEL_MODULES"),
	  .help = "Load the driver's modules first (with --create-all)" },
	{ .name = "create-device-nodes", FLAG, AT(create_device_nodes), ENV("CREATE_DEVICE_NODES"),
	  .help = "Create the control nodes first (with --create-all)" },
	{ .name = "dry-run", FLAG, AT(dry_run), ENV("DRY_RUN"),
	  .help = "Print what would be created, and change nothing" },
};
/* clang-format on */

const struct graft_command ctk_system_create_dev_char_symlinks = {
	CTK_COMMAND,
	.name = "create-dev-char-symlinks",
	.summary = "Create the links in /dev/char by which systemd recognises the devices",
	.description = "Without these links, systemd takes GPUs away from running containers when it reloads its "
		       "units. Correct links are left alone, wrong ones are replaced.",
	GRAFT_OPTIONS(table),
	CTK_WORK(create_dev_char_symlinks, struct options, .dev_char_path = "/dev/char", .driver_root = "/"),
};
