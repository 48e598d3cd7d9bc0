/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_node: makes device nodes of the driver on the host, each through the descriptor of its
 * directory, with the owner and mode that the driver requests. The caller decides which nodes to
 * make.
 */
#ifndef GRAFT_APPLY_DEVICE_NODE_H
#define GRAFT_APPLY_DEVICE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"

struct graft_node_attributes {
	uid_t uid;
	gid_t gid;
	mode_t mode;
	bool modify; /* the driver allows nodes to be made */
};
#define GRAFT_NODE_ATTRIBUTES_INIT                                \
	{                                                         \
		.uid = 0, .gid = 0, .mode = 0666, .modify = true, \
	}

/*
 * Parses the settings for nodes in /proc/driver/nvidia/params or in the file of a capability;
 * missing settings have the values above.
 */
struct graft_node_attributes graft_node_attributes_parse(const char *text, size_t length, struct graft_arena *arena);

/* What has a name. Links are not followed. */
enum graft_node_found {
	GRAFT_NODE_ABSENT,
	GRAFT_NODE_SAME,  /* this device */
	GRAFT_NODE_OTHER, /* another device */
	GRAFT_NODE_NONE,  /* not a device */
};
enum graft_node_found graft_device_node_look(int parent_fd, const char *name, dev_t number);

/*
 * Makes `name` this character device with these attributes; a different device or file of that name
 * is replaced. Removes what it made on failure. Returns 0 or -errno: -ESTALE if another process has
 * replaced it meanwhile.
 */
int graft_device_node_put(int parent_fd, const char *name, dev_t number,
			  const struct graft_node_attributes *attributes);

#endif
