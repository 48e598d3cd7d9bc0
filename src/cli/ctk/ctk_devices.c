/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctk_devices: runs modprobe and makes nodes, one after the other, and logs each step (SPEC
 * ctk-and-cdi 1.7). plan/driver_nodes.h knows which nodes exist.
 */
#include "cli/ctk/ctk_devices.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "apply/device_node.h"
#include "apply/host_place.h"
#include "apply/modprobe.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/root.h"
#include "base/strings.h"
#include "plan/driver_nodes.h"

#define OUTPUT_SIZE 256

int ctk_clean_root(const struct ctk *ctk, const char *option, const char **path, struct graft_error *err)
{
	const char *clean = !*path || (*path)[0] == '\0' ? "/" : graft_path_clean(NULL, *path, ctk->arena);

	if (!clean && graft_arena_failed(ctk->arena))
		return graft_fail_memory(err);
	if (!clean)
		return graft_fail(err, GRAFT_INVALID, 0, "--%s \"%s\" is not an absolute path", option, *path);
	*path = clean;
	return 0;
}

/* ---- kernel modules ---- */

static int load_ctk_module(const struct ctk *ctk, const char *driver_root, const char *module, bool dry_run,
			   struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT, host = GRAFT_ROOT_INIT;
	bool changes_root = strcmp(driver_root, "/") != 0;
	char output[OUTPUT_SIZE];
	const char *program;

	if (graft_root_open(&root, driver_root, err) < 0 || graft_root_open(&host, "/", err) < 0)
		return -1;
	program = graft_modprobe_find(&root, &host, ctk->arena);
	graft_info(&ctk->log, "%s: %s%s%s%s %s", dry_run ? "Running" : "Loading kernel module",
		   changes_root ? "chroot " : "", changes_root ? driver_root : "", changes_root ? " " : "",
		   program ? program : GRAFT_MODPROBE_DEFAULT, module);
	if (dry_run)
		return 0;
	if (!program)
		return graft_fail(err, GRAFT_NOT_FOUND, 0, "there is no program " GRAFT_MODPROBE_DEFAULT " in %s",
				  driver_root);
	if (graft_modprobe_run(&root, program, module, output, sizeof(output), err) == 0)
		return 0;
	return graft_fail(err, err->status, 0, "failed to load module %s: %s; output=%s", module,
			  graft_arena_strdup(ctk->arena, err->msg), output);
}

int ctk_load_kernel_modules(const struct ctk *ctk, const char *driver_root, bool dry_run, struct graft_error *err)
{
	static const char *const modules[] = { "nvidia", "nvidia-uvm", "nvidia-modeset" };

	for (size_t i = 0; i < GRAFT_COUNT(modules); i++) {
		if (load_ctk_module(ctk, driver_root, modules[i], dry_run, err) < 0)
			return graft_wrap(err, "failed to load NVIDIA kernel modules");
	}
	return 0;
}

/* ---- nodes ---- */

/* The place of a node, and whether it was created, so that it can be removed again. */
struct made {
	struct graft_host_place place;
	bool made;
};

struct work {
	const struct ctk *ctk;
	struct graft_host_place root;
	const char *prefix; /* of paths in messages: "" for "/" */
	bool dry_run;
	struct graft_node_attributes attributes; /* for all nodes but those of nvidia-uvm */
	struct made made[8];
	size_t n_made;
};

/* The driver's parameters for owner and mode do not apply to the nodes of nvidia-uvm. */
static struct graft_node_attributes attributes_of(const struct work *work, const struct graft_node *node)
{
	static const struct graft_node_attributes usual = GRAFT_NODE_ATTRIBUTES_INIT;

	return graft_starts_with(node->path, "/dev/nvidia-uvm") ? usual : work->attributes;
}

/* Returns whether the node must be created; logs why not. */
static bool is_ctk_control_node_wanted(const struct work *work, const struct graft_node *node, int parent_fd,
				       const char *name)
{
	const struct graft_log *log = &work->ctk->log;

	switch (graft_device_node_look(parent_fd, name, makedev(node->major, node->minor))) {
	case GRAFT_NODE_ABSENT:
		return true;
	case GRAFT_NODE_SAME:
		graft_info(log, "Skipping: %s%s already exists", work->prefix, node->path);
		return false;
	case GRAFT_NODE_OTHER:
		graft_warn(log, "%s%s is not device %u:%u; replacing it", work->prefix, node->path, node->major,
			   node->minor);
		return true;
	case GRAFT_NODE_NONE:
		graft_warn(log, "Skipping: %s%s already exists, but is not a device", work->prefix, node->path);
		return false;
	}
	return false;
}

static int fail_node(const struct work *work, const struct graft_node *node, const struct graft_host_place *place,
		     int sys, struct graft_error *err)
{
	if (place->why[0] != '\0')
		return graft_fail(err, GRAFT_PERMISSION, 0, "failed to create device node %s%s: %s", work->prefix,
				  node->path, place->why);
	return graft_fail_errno(err, sys, "failed to create device node %s%s", work->prefix, node->path);
}

static int make_ctk_control_node(struct work *work, const struct graft_node *node, struct graft_error *err)
{
	const struct graft_node_attributes attributes = attributes_of(work, node);
	struct made *made = &work->made[work->n_made++];
	struct graft_host_place *place = &made->place;
	int rc = graft_host_place_find(work->root.dir_fd, work->root.dir_fd, node->path, GRAFT_HOST_NO_FOLLOW, place);

	made->made = false;
	if (rc < 0)
		return fail_node(work, node, place, -rc, err);
	if (!is_ctk_control_node_wanted(work, node, place->dir_fd, place->name))
		return 0;
	graft_info(&work->ctk->log, "%s: mknod --mode=%04o %s%s c %u %u",
		   work->dry_run ? "Running" : "Creating device node", (unsigned int)attributes.mode, work->prefix,
		   node->path, node->major, node->minor);
	if (work->dry_run)
		return 0;
	rc = graft_device_node_put(place->dir_fd, place->name, makedev(node->major, node->minor), &attributes);
	made->made = rc == 0;
	return rc < 0 ? fail_node(work, node, place, -rc, err) : 0;
}

static void finish_ctk_control_nodes(struct work *work, bool undo)
{
	while (work->n_made > 0) {
		struct made *made = &work->made[--work->n_made];

		if (undo && made->made)
			(void)unlinkat(made->place.dir_fd, made->place.name, 0);
		graft_host_place_close(&made->place);
	}
}

static int make_nodes(struct work *work, struct graft_error *err)
{
	auto_root struct graft_root host = GRAFT_ROOT_INIT;
	struct graft_driver_devices devices;
	struct graft_node *nodes;
	int rc = 0;
	size_t n;

	if (graft_root_open(&host, "/", err) < 0 ||
	    graft_host_read_driver_devices(&host, work->ctk->arena, &devices, err) < 0 ||
	    graft_plan_control_nodes(&devices, work->ctk->arena, &nodes, &n, err) < 0)
		return -1;
	work->attributes = graft_node_attributes_parse(devices.params, strlen(devices.params), work->ctk->arena);
	for (size_t i = 0; rc == 0 && i < n && i < GRAFT_COUNT(work->made); i++)
		rc = make_ctk_control_node(work, &nodes[i], err);
	finish_ctk_control_nodes(work, rc < 0);
	return rc;
}

int ctk_make_control_nodes(const struct ctk *ctk, const char *dev_root, bool dry_run, struct graft_error *err)
{
	struct work work = { .ctk = ctk,
			     .root = GRAFT_HOST_PLACE_INIT,
			     .prefix = strcmp(dev_root, "/") == 0 ? "" : dev_root,
			     .dry_run = dry_run };
	int rc = graft_host_place_find(AT_FDCWD, -1, dev_root, GRAFT_HOST_DIRECTORY, &work.root);

	if (rc < 0 && work.root.why[0] != '\0')
		rc = graft_fail(err, GRAFT_PERMISSION, 0, "open failed: %s: %s", dev_root, work.root.why);
	else if (rc < 0)
		rc = graft_fail_errno(err, -rc, "open failed: %s", dev_root);
	else
		rc = make_nodes(&work, err);
	graft_host_place_close(&work.root);
	return rc;
}
