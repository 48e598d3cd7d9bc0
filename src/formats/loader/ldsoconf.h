/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldsoconf: the directories that a root's loader configuration names: /etc/ld.so.conf with its
 * includes (SPEC ld-so-cache 8). Reads below a root; nothing outside of it is touched.
 */
#ifndef GRAFT_FORMATS_LOADER_LDSOCONF_H
#define GRAFT_FORMATS_LOADER_LDSOCONF_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/image_root.h"
#include "base/root.h"

/*
 * The file in which Graft lists the directories that an image's own configuration does not search.
 * No other file has its base name, by which it is recognised however an include spells the
 * directory.
 */
#define GRAFT_LDSOCONF_OWN_NAME "00-graft.conf"
#define GRAFT_LDSOCONF_OWN_DIR  "/etc/ld.so.conf.d"
#define GRAFT_LDSOCONF_OWN      GRAFT_LDSOCONF_OWN_DIR "/" GRAFT_LDSOCONF_OWN_NAME

/*
 * Directories in the order in which ldconfig scans them: the configured ones, as written, followed
 * by the built-in system directories of this build's glibc for 64 bit: /lib64 /usr/lib64 /lib
 * /usr/lib and the x32 ones. Not yet deduplicated by inode.
 */
struct graft_ldsoconf {
	const char **dirs;
	size_t n_dirs;
	const char **added; /* directories from Graft's own file, as written, if they were requested separately */
	size_t n_added;
	bool reads_own; /* the configuration includes Graft's own file */
};

/*
 * Reads the configuration of a host's root like graft_ldsoconf_read_image(), with all directories
 * in one list.
 */
int graft_ldsoconf_read(const struct graft_root *root, struct graft_arena *arena, const char ***ret_dirs, size_t *ret_n,
			struct graft_error *err);

/*
 * Reads the configuration of an image. A missing file gives an empty list. Limits: 64 files, 1 MiB
 * of text in total, include depth 16. If they are exceeded, or if the budget is spent, returns -1
 * with GRAFT_TOO_BIG; *ret_conf is what was read until then.
 *
 * `apart`: directories listed in Graft's own file go to `added` only. A directory that is also
 * configured elsewhere is in both lists.
 *
 * `own_text`: used as the content of Graft's own file, whether or not that exists. NULL: the file
 * is read.
 */
int graft_ldsoconf_read_image(const struct graft_image_root *root, bool apart, const char *own_text,
			      struct graft_arena *arena, struct graft_ldsoconf *ret_conf, struct graft_error *err);

/*
 * Returns whether the directory is one of the built-in ones. An image's own ldconfig may search
 * fewer of them: Debian's omits /lib64.
 */
bool graft_ldsoconf_is_built_in(const char *directory);

#endif
