/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: the content of a driver root. The functions that add something return nothing: the first
 * failure is recorded, the rest do nothing, and sim_tree_finish() reports it. What a fault declares
 * missing is omitted here.
 *
 * A list of everything created (DIR/.graft-sim) allows the next `create` to remove exactly that. A
 * directory that is not empty and has no such list is refused.
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
	const char *prefix;       /* put in front of each path; may be "" */
	struct graft_buffer made; /* paths relative to the root, one per line */
	struct graft_error *err;  /* first failure */
	bool failed;
	bool nodes_refused; /* mknod(2) is not permitted: the tree has no device nodes */
};

/*
 * Opens or creates `directory` and removes what an earlier run created there. Returns 0, or -1 with
 * the error set. Call sim_tree_finish() in both cases.
 */
int sim_tree_open(struct sim_tree *tree, const struct sim_topology *topology, const char *directory,
		  struct graft_error *err);
/*
 * Writes the list and closes the tree. Returns 0, or -1 if anything has failed since
 * sim_tree_open().
 */
int sim_tree_finish(struct sim_tree *tree);

/*
 * Adds a directory, which may already exist. For all functions that add something: paths start with
 * "/", missing parents are created (0755), and the umask does not apply to modes.
 */
void sim_tree_directory(struct sim_tree *tree, const char *path, mode_t mode);
/* Adds a regular file of `n` bytes. It must not exist. */
void sim_tree_file(struct sim_tree *tree, const char *path, mode_t mode, const void *bytes, size_t n);
/* Adds a regular file with a formatted text of at most 2047 bytes. */
__attribute__((format(printf, 4, 5))) void sim_tree_text(struct sim_tree *tree, const char *path, mode_t mode,
							 const char *format, ...);
/* Adds a symbolic link that contains `target`. */
void sim_tree_link(struct sim_tree *tree, const char *path, const char *target);
/* Adds a character device. If that is not permitted, omits it and sets `nodes_refused`. */
void sim_tree_node(struct sim_tree *tree, const char *path, mode_t mode, uint32_t major, uint32_t minor);
/* Adds a character device that belongs to a group. */
void sim_tree_group_node(struct sim_tree *tree, const char *path, mode_t mode, gid_t gid, uint32_t major,
			 uint32_t minor);
/* Adds the socket of a daemon that is not running: connecting to it is refused. */
void sim_tree_socket(struct sim_tree *tree, const char *path);
/* Records a failure of the caller (graft_fail_memory() etc.) as if adding had failed. */
void sim_tree_fail(struct sim_tree *tree, const struct graft_error *err);

#endif
