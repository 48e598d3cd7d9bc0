/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml_reader: the only module of the simulator that uses libyaml. Provides a document as nodes
 * that know their place, and readers for the few shapes that a topology needs. Every message
 * contains "file:line:column".
 */
#ifndef GRAFT_SIM_YAML_READER_H
#define GRAFT_SIM_YAML_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/error.h"

struct sim_yaml {
	yaml_document_t *document;
	const char *file;
	struct graft_arena *arena; /* for copies of scalars */
	struct graft_error *err;
};

/* A key of a mapping, and the function that reads its value into `target` + `offset`. */
struct sim_yaml_key {
	const char *name;
	int (*read)(const struct sim_yaml *yaml, const yaml_node_t *value, void *field);
	size_t offset;
};

/*
 * Parses `length` bytes as one YAML document. On success the caller releases it with
 * yaml_document_delete(). Returns 0, or -1 with GRAFT_FORMAT, GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int sim_yaml_load(const void *bytes, size_t length, const char *file, yaml_document_t *ret_document,
		  struct graft_error *err);

/* Sets the error, with the node's place in front. `node` NULL: the file as a whole. Returns -1. */
__attribute__((format(printf, 3, 4))) int sim_yaml_fail(const struct sim_yaml *yaml, const yaml_node_t *node,
							const char *format, ...);

/*
 * Reads a mapping by a table of at most 64 keys. Unknown and repeated keys are errors. Returns 0,
 * or -1 with the error set.
 */
int sim_yaml_mapping(const struct sim_yaml *yaml, const yaml_node_t *node, const struct sim_yaml_key *keys,
		     size_t n_keys, void *target);

/*
 * Calls `each` for every item of a sequence of at most `max` items, until it returns -1. Returns 0,
 * or -1 with the error set.
 */
int sim_yaml_sequence(const struct sim_yaml *yaml, const yaml_node_t *node, size_t max,
		      int (*each)(const struct sim_yaml *yaml, const yaml_node_t *item, void *arg), void *arg);

/*
 * Returns the text of a scalar of 1 to 255 printable ASCII characters, copied into the arena, or
 * NULL with the error set.
 */
const char *sim_yaml_scalar(const struct sim_yaml *yaml, const yaml_node_t *node);

/*
 * Readers for tables: const char * (copied into the arena), bool (true/false), uint32_t (decimal).
 * They return 0, or -1 with the error set.
 */
int sim_yaml_string(const struct sim_yaml *yaml, const yaml_node_t *node, void *field);
int sim_yaml_bool(const struct sim_yaml *yaml, const yaml_node_t *node, void *field);
int sim_yaml_u32(const struct sim_yaml *yaml, const yaml_node_t *node, void *field);

#endif
