/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_put: members of new objects of an OCI configuration, and the parts of oci_edits.c. For
 * src/apply/oci/oci_*.c only.
 */
#ifndef GRAFT_APPLY_OCI_OCI_PUT_H
#define GRAFT_APPLY_OCI_OCI_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "formats/cdi/cdi.h"
#include "formats/json/json_document.h"

/*
 * Each function appends a member to a new object or replaces it, and omits a string that is NULL or
 * empty and an empty list. They return 0 or -1.
 */
int oci_put_string(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   const char *value, struct graft_error *err);
int oci_put_strings(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		    const char *const *values, size_t n, struct graft_error *err);
int oci_put_number(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   int64_t value, struct graft_error *err);
int oci_put_bool(struct graft_json_document *document, struct graft_json_node *object, const char *name, bool value,
		 struct graft_error *err);

/* Puts the nodes of one set into linux.devices and linux.resources.devices. Returns 0 or -1. */
int oci_put_nodes(struct graft_json_document *document, const struct graft_cdi_node *nodes, size_t n,
		  struct graft_error *err);
/* Puts the mounts of one set into mounts, then sorts all mounts by depth. Returns 0 or -1. */
int oci_put_mounts(struct graft_json_document *document, const struct graft_cdi_mount *mounts, size_t n,
		   struct graft_error *err);
/* Appends a hook to those of its stage; a hook without an environment gets one. Returns 0 or -1. */
int oci_put_hook(struct graft_json_document *document, const struct graft_cdi_hook *hook, struct graft_error *err);

#endif
