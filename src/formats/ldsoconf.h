/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldsoconf: the directories that a root's loader configuration names: /etc/ld.so.conf with its includes
 * (ld-so-cache.md 8) and /etc/ld-musl-ARCH.path. Read below a root; nothing outside it is touched.
 */
#ifndef GRAFT_FORMATS_LDSOCONF_H
#define GRAFT_FORMATS_LDSOCONF_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"

/*
 * Directories in the order ldconfig scans them (configured ones first, as written; then the built-in system directories of this build's
 * glibc for 64 bit: /lib64 /usr/lib64 /lib /usr/lib, with their sisters). Not yet deduplicated by inode. A missing file is an empty list. At
 * most 64 files, 1 MiB each, include depth 16: beyond that -1 with GRAFT_TOO_BIG.
 */
int graft_ldsoconf_read(const struct graft_root *root, struct graft_arena *arena, const char ***ret_dirs, size_t *ret_n,
			struct graft_error *err);

/*
 * The file in which Graft names the folders that an image's own configuration does not search, and its base name, which is nobody else's: by that it is known however
 * an include spells its directory.
 */
#define GRAFT_LDSOCONF_OWN_NAME "00-graft.conf"
#define GRAFT_LDSOCONF_OWN      "/etc/ld.so.conf.d/" GRAFT_LDSOCONF_OWN_NAME

/*
 * The same read, with the same limits, where only the image's own word counts: what Graft's own file names is in no other list than ret_added, as written. A directory
 * that both name is in both.
 */
int graft_ldsoconf_read_apart(const struct graft_root *root, struct graft_arena *arena, const char ***ret_dirs,
			      size_t *ret_n, const char ***ret_added, size_t *ret_n_added, struct graft_error *err);

/* Whether the directory is one of the built-in ones. Which of them an image's own ldconfig searches differs: Debian's leaves out /lib64. */
bool graft_ldsoconf_is_built_in(const char *directory);

#endif
