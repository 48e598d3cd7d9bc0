/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_node: makes device nodes of the driver on the host, each in the descriptor of its directory, with the owner and the mode that the driver
 * wants. Which nodes there are to be is the caller's affair.
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
	bool modify; /* the driver lets nodes be made */
};
#define GRAFT_NODE_ATTRIBUTES_INIT                                \
	{                                                         \
		.uid = 0, .gid = 0, .mode = 0666, .modify = true, \
	}

/* What /proc/driver/nvidia/params, or the file of a capability, says of nodes; the values above where it says nothing. */
struct graft_node_attributes graft_node_attributes_parse(const char *text, size_t length, struct graft_arena *arena);

/* What is at a name. A link is not followed. */
enum graft_node_found {
	GRAFT_NODE_ABSENT,
	GRAFT_NODE_SAME,  /* this device */
	GRAFT_NODE_OTHER, /* another device */
	GRAFT_NODE_NONE,  /* no device */
};
enum graft_node_found graft_device_node_look(int parent_fd, const char *name, dev_t number);

/* Makes what is at `name` this character device with these attributes, whatever it was. Undoes what it made when it fails. 0 or -errno. */
int graft_device_node_put(int parent_fd, const char *name, dev_t number,
			  const struct graft_node_attributes *attributes);

#endif
