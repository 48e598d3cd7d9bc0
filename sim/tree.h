/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: what is put into a driver root. Adding returns nothing: the first failure is kept, the rest are no-ops, and
 * sim_tree_finish() reports it. What a fault calls missing is left out here, in one place.
 *
 * A list of everything made (DIR/.graft-sim) lets the next `create` take it away again and nothing else. A directory that holds
 * something and has no such list is refused.
 */
#ifndef GRAFT_SIM_TREE_H
#define GRAFT_SIM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "topology.h"

struct sim_tree {
	const struct sim_topology *topology;
	int fd;                   /* owned */
	const char *prefix;       /* put in front of each path; "" */
	struct graft_buffer made; /* paths relative to the root, one a line */
	struct graft_error *err;  /* first failure */
	bool failed;
	bool nodes_refused; /* mknod(2) is not permitted here: the tree has no device nodes */
};

/* Opens or makes DIR; takes away what an earlier run made. Returns 0 or -1. Call sim_tree_finish() in both cases. */
int sim_tree_open(struct sim_tree *tree, const struct sim_topology *topology, const char *directory,
		  struct graft_error *err);
/* Writes the list and closes. -1 if anything failed since sim_tree_open(). */
int sim_tree_finish(struct sim_tree *tree);

/* What is added: paths from "/", missing parents are made (0755). Modes are not masked. A directory may exist already. */
void sim_tree_directory(struct sim_tree *tree, const char *path, mode_t mode);
/* A new regular file of `n` bytes. */
void sim_tree_file(struct sim_tree *tree, const char *path, mode_t mode, const void *bytes, size_t n);
/* The same with a text of at most 2047 bytes. */
__attribute__((format(printf, 4, 5))) void sim_tree_text(struct sim_tree *tree, const char *path, mode_t mode,
							 const char *format, ...);
/* A symbolic link. */
void sim_tree_link(struct sim_tree *tree, const char *path, const char *target);
/* A character device; without the right to make one it is left out and `nodes_refused` is set. */
void sim_tree_node(struct sim_tree *tree, const char *path, mode_t mode, uint32_t major, uint32_t minor);
/* The same for a group that may use it. */
void sim_tree_group_node(struct sim_tree *tree, const char *path, mode_t mode, gid_t gid, uint32_t major,
			 uint32_t minor);
/* The socket of a daemon that does not run: connecting is refused. */
void sim_tree_socket(struct sim_tree *tree, const char *path);
/* Keeps a failure of the caller's own (graft_fail_memory...). */
void sim_tree_fail(struct sim_tree *tree, const struct graft_error *err);

#endif
