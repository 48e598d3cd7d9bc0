/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml_reader: the one place that knows libyaml. A document as nodes with places, and readers for the few shapes that a
 * topology needs. Every message carries "file:line:column".
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

/* A key of a mapping and who reads its value into `target` + `offset`. */
struct sim_yaml_key {
	const char *name;
	int (*read)(const struct sim_yaml *yaml, const yaml_node_t *value, void *field);
	size_t offset;
};

/* Reads `length` bytes as one YAML document. The document must be deleted with yaml_document_delete() on success. */
int sim_yaml_load(const void *bytes, size_t length, const char *file, yaml_document_t *ret_document,
		  struct graft_error *err);

/* Sets the error at a node's place and returns -1. `node` NULL: the file as a whole. */
__attribute__((format(printf, 3, 4))) int sim_yaml_fail(const struct sim_yaml *yaml, const yaml_node_t *node,
							const char *format, ...);

/* Reads a mapping by a table. Unknown and repeated keys are errors. */
int sim_yaml_mapping(const struct sim_yaml *yaml, const yaml_node_t *node, const struct sim_yaml_key *keys,
		     size_t n_keys, void *target);

/* Calls `each` for every item of a sequence. */
int sim_yaml_sequence(const struct sim_yaml *yaml, const yaml_node_t *node, size_t max,
		      int (*each)(const struct sim_yaml *yaml, const yaml_node_t *item, void *arg), void *arg);

/* The text of a scalar of 1 to 255 printable ASCII characters, or NULL with the error set. */
const char *sim_yaml_scalar(const struct sim_yaml *yaml, const yaml_node_t *node);

/* Readers for tables: const char * (copied), bool (true/false), uint32_t (decimal). */
int sim_yaml_string(const struct sim_yaml *yaml, const yaml_node_t *node, void *field);
int sim_yaml_bool(const struct sim_yaml *yaml, const yaml_node_t *node, void *field);
int sim_yaml_u32(const struct sim_yaml *yaml, const yaml_node_t *node, void *field);

#endif
