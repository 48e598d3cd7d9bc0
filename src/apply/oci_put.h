/* SPDX-License-Identifier: Apache-2.0 */
/* oci_put: members of new objects of an OCI configuration, and the parts of oci_edits.c. For src/apply/oci_*.c alone. */
#ifndef GRAFT_APPLY_OCI_PUT_H
#define GRAFT_APPLY_OCI_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "formats/cdi.h"
#include "formats/json_document.h"

/* Each puts a member last into a new object, or replaces it. A NULL or empty value is left out. 0 or -1. */
int oci_put_string(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   const char *value, struct graft_error *err);
int oci_put_strings(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		    const char *const *values, size_t n, struct graft_error *err);
int oci_put_number(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   int64_t value, struct graft_error *err);
int oci_put_bool(struct graft_json_document *document, struct graft_json_node *object, const char *name, bool value,
		 struct graft_error *err);

/* linux.devices and linux.resources.devices: the nodes of one set. 0 or -1. */
int oci_put_nodes(struct graft_json_document *document, const struct graft_cdi_node *nodes, size_t n,
		  struct graft_error *err);
/* mounts: those of one set, then all in the order of their depth. 0 or -1. */
int oci_put_mounts(struct graft_json_document *document, const struct graft_cdi_mount *mounts, size_t n,
		   struct graft_error *err);
/* hooks: one hook behind those of its stage. 0 or -1. */
int oci_put_hook(struct graft_json_document *document, const struct graft_cdi_hook *hook, struct graft_error *err);

#endif
