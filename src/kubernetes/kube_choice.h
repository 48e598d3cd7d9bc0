/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_choice: which of several config files applies to a node: the one that its label names, else
 * the default, else what a fallback strategy finds (SPEC kubernetes 7).
 */
#ifndef GRAFT_KUBERNETES_KUBE_CHOICE_H
#define GRAFT_KUBERNETES_KUBE_CHOICE_H

#include "base/arena.h"
#include "base/error.h"

/* Strings are never NULL; empty means not set. */
struct graft_kube_choice {
	const char *label;          /* of the node, "nvidia.com/device-plugin.config" */
	const char *folder;         /* that has the files */
	const char *default_config; /* name of one of them */
	/*
	 * Tried in this order, separated by commas: named (the file "default"), single (the only
	 * file), empty (no file).
	 */
	const char *fallbacks;
};

/*
 * Chooses for a node whose label has this value (NULL or empty: it has none). *ret_path is the
 * file, "DIRECTORY/NAME", in the arena; "" for no file. Directories, and names that begin with ".."
 * as in mounted ConfigMaps, do not count. Returns 0, or -1: GRAFT_NOT_FOUND, listing the files, if
 * none has that name; the error of listing the directory; GRAFT_INVALID "no config was set, no
 * default was provided, and all fallbacks failed"; GRAFT_NO_MEMORY.
 */
int graft_kube_choose(const struct graft_kube_choice *choice, const char *value, struct graft_arena *arena,
		      const char **ret_path, struct graft_error *err);

#endif
