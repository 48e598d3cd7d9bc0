/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_file: finds and reads config.toml for the programs that use it (SPEC runtime-and-hook 2.1,
 * 2.5, 2.6). The first of these is used:
 *
 *	1. the file named by an option: -config of the hook, --config of nvidia-ctk
 *	2. the file below the program's own directory, if it was installed with one (start/installed.h)
 *	3. the variable NVIDIA_CTK_CONFIG_FILE_PATH, unless empty
 *	4. $XDG_CONFIG_HOME/nvidia-container-runtime/config.toml, unless the variable is empty
 *	5. /etc/nvidia-container-runtime/config.toml
 *
 * If that file does not exist, the defaults apply; for the hook it is an error if 1 or 3 named the
 * file. Any other failure to read it is an error.
 */
#ifndef GRAFT_START_CONFIG_FILE_H
#define GRAFT_START_CONFIG_FILE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "request/config.h"

#define GRAFT_CONFIG_DEFAULT_FILE "/etc/nvidia-container-runtime/config.toml"
#define GRAFT_CONFIG_MAX_BYTES    ((size_t)1 << 20)

enum graft_config_program { GRAFT_CONFIG_OF_RUNTIME, GRAFT_CONFIG_OF_HOOK };

/*
 * Loads the configuration into the arena. `flag_path` is the value of the program's option; NULL =
 * not given. -1: the message has the program's prefix ("error loading config: failed to load
 * specified config file", "error getting hook config: ..."); GRAFT_FORMAT and GRAFT_INVALID for the
 * content of the file, any other status for a failure to read it.
 *
 * For the runtime, `cli.user` and `cli.ldconfig` have host-independent defaults: only the hook uses
 * them, so this host is not examined.
 */
int graft_config_file_load(enum graft_config_program program, const char *flag_path, struct graft_arena *arena,
			   struct graft_config *ret_config, struct graft_error *err);

/* Logs a warning for each key and table of the file that is not known. */
void graft_config_file_warn(const struct graft_config *config, const struct graft_log *log);

/* ---- the parts, for tests and other programs ---- */

/* The path of the file to load; *ret_required = it must exist. NULL: out of memory. */
const char *graft_config_file_path(enum graft_config_program program, const char *flag_path, struct graft_arena *arena,
				   bool *ret_required);
/*
 * Reads and parses the file at `path`; with `by_user`, a file that a user names, which may also be
 * a pipe, or "-" for standard input. The caller frees *ret_toml with graft_toml_free(). -1:
 * err->sys is ENOENT if the file does not exist.
 */
int graft_config_file_read(const char *path, bool by_user, struct graft_arena *arena, struct graft_toml **ret_toml,
			   struct graft_error *err);
/* Detects what this host adds to the defaults; `root` is the host's "/". */
void graft_config_file_host(const struct graft_root *root, struct graft_arena *arena,
			    struct graft_config_host *ret_host);
/*
 * SPEC runtime-and-hook 2.5: for a path that begins with '@', the variant ending in ".real" if that
 * file exists, otherwise the path without ".real". Other values are returned unchanged. NULL: out
 * of memory. The hook applies it to the configured value.
 */
const char *graft_config_file_ldconfig(const struct graft_root *root, const char *value, struct graft_arena *arena);

#endif
