/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_check: the rules for the objects of a spec (SPEC ctk-and-cdi 5.3, 5.4). Pure. Only for
 * src/formats/cdi.
 */
#ifndef GRAFT_FORMATS_CDI_CDI_CHECK_H
#define GRAFT_FORMATS_CDI_CDI_CHECK_H

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/tree/tree.h"

/* version, name; in ascending order */
#define CDI_VERSION_LIST(X) \
	X(0_1_0, "0.1.0")   \
	X(0_2_0, "0.2.0")   \
	X(0_3_0, "0.3.0")   \
	X(0_4_0, "0.4.0")   \
	X(0_5_0, "0.5.0")   \
	X(0_6_0, "0.6.0")   \
	X(0_7_0, "0.7.0")   \
	X(0_8_0, "0.8.0")   \
	X(1_0_0, "1.0.0")   \
	X(1_1_0, "1.1.0")

enum cdi_version {
	CDI_UNKNOWN,
#define X(name, text) CDI_##name,
	CDI_VERSION_LIST(X)
#undef X
	    CDI_VERSION_MAX
};
extern const char *const cdi_version_names[CDI_VERSION_MAX];

/*
 * Checks for a known version, with or without a leading "v". Returns 0, or -1 with GRAFT_FORMAT
 * `invalid version "X"`.
 */
int cdi_check_version(const char *version, enum cdi_version *ret_version, struct graft_error *err);

/*
 * Splits and checks "vendor/class"; the strings are copies in `arena`. Returns 0, or -1 with
 * GRAFT_INVALID or GRAFT_NO_MEMORY.
 */
int cdi_check_kind(const char *kind, struct graft_arena *arena, const char **ret_vendor, const char **ret_class,
		   struct graft_error *err);

/* A text in double quotes, for messages; it lives until the end of the block. */
#define CDI_QUOTED_MAX               160
#define cdi_quote(text)              cdi_quote_part(text, strlen(text))
#define cdi_quote_part(text, length) graft_tree_quote_part(text, length, (char[CDI_QUOTED_MAX]){ 0 }, CDI_QUOTED_MAX)

struct cdi_reader;
struct graft_cdi_annotation;

/*
 * Each checks the struct that its name mentions, which was read from `value`, and reports what is
 * wrong with it. Returns 0, or -1 if reading must stop. They also normalise values: permissions of
 * "none" become "", file modes lose the bits of the file type, and a major number of 0 is treated
 * as absent. Empty texts are NULL already.
 */
int cdi_check_node(struct cdi_reader *reader, const struct graft_tree_value *value, void *node);
int cdi_check_net_device(struct cdi_reader *reader, const struct graft_tree_value *value, void *net_device);
int cdi_check_mount(struct cdi_reader *reader, const struct graft_tree_value *value, void *mount);
int cdi_check_hook(struct cdi_reader *reader, const struct graft_tree_value *value, void *hook);
int cdi_check_rdt(struct cdi_reader *reader, const struct graft_tree_value *value, void *rdt);
int cdi_check_edits(struct cdi_reader *reader, const struct graft_tree_value *value, void *edits);
int cdi_check_device_object(struct cdi_reader *reader, const struct graft_tree_value *value, void *device);
int cdi_check_annotations(struct cdi_reader *reader, const struct graft_tree_value *value,
			  const struct graft_cdi_annotation *annotations, size_t n);

#endif
