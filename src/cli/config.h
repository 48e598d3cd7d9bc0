/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: finds and reads config.toml for the programs that use it (SPEC runtime-and-hook 2.1, 2.5, 2.6).
 *
 *	1. the file that an option names: -config of the hook, --config of nvidia-ctk
 *	2. the variable NVIDIA_CTK_CONFIG_FILE_PATH, when not empty
 *	3. $XDG_CONFIG_HOME/nvidia-container-runtime/config.toml, when the variable is not empty
 *	4. /etc/nvidia-container-runtime/config.toml
 *
 * A file that is not there means the defaults, except for the hook when 1 or 2 named it. Anything else that keeps it from being read is an error.
 */
#ifndef GRAFT_CLI_CONFIG_H
#define GRAFT_CLI_CONFIG_H

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"
#include "request/config.h"

#define CLI_CONFIG_DEFAULT_FILE "/etc/nvidia-container-runtime/config.toml"
#define CLI_CONFIG_MAX_BYTES    ((size_t)1 << 20)

enum cli_config_program { CLI_CONFIG_RUNTIME, CLI_CONFIG_HOOK };

/*
 * Loads the configuration; all of it is in the arena. `flag_path` is what an option names; NULL = not given. -1: the error has the program's
 * prefix ("error loading config: failed to load specified config file", "error getting hook config: ..."): GRAFT_FORMAT and
 * GRAFT_INVALID for what stands in the file, otherwise why it cannot be read.
 *
 * The runtime does not look at what only the hook uses: its `cli.user` and `cli.ldconfig` are those of any host.
 */
int cli_config_load(enum cli_config_program program, const char *flag_path, struct graft_arena *arena,
		    struct graft_config *ret_config, struct graft_error *err);

/* ---- the parts, for tests and other programs ---- */

/* Where it is looked for; *ret_required = it must be there. NULL: memory. */
const char *cli_config_path(enum cli_config_program program, const char *flag_path, struct graft_arena *arena,
			    bool *ret_required);
/* Reads the document at `path`; to be released with graft_toml_free(). -1: err->sys is ENOENT when there is none. */
int cli_config_read(const char *path, struct graft_arena *arena, struct graft_toml **ret_toml, struct graft_error *err);
/* What this host adds to the defaults; `root` is the host's "/". */
void cli_config_host(const struct graft_root *root, struct graft_arena *arena, struct graft_config_host *ret_host);
/*
 * SPEC 2.5: a path that begins with '@' without ".real", or with it where that is there. Others are returned as they are. NULL: memory. The
 * hook uses it on the configured value.
 */
const char *cli_config_ldconfig(const struct graft_root *root, const char *value, struct graft_arena *arena);

#endif
