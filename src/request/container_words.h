/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_words: the device names in a container's environment, mounts and annotations, as lists.
 * Used only by container.c. Each name is in a list once, where it occurs first (SPEC
 * runtime-and-hook Q6). Lists are bounded: a longer one is refused, never truncated.
 */
#ifndef GRAFT_REQUEST_CONTAINER_WORDS_H
#define GRAFT_REQUEST_CONTAINER_WORDS_H

#include "request/container.h"

/* More names than any host has devices; few enough to compare each with each. */
#define GRAFT_CONTAINER_WORDS_MAX   4096
#define GRAFT_CONTAINER_WORDS_BYTES 65536 /* of the lists of one source, separators included */

/*
 * Adds a name unless it is already in the list. Returns -1 with GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_words_add(struct graft_strings *words, const char *word, struct graft_arena *arena, struct graft_error *err);
/*
 * Adds the items of a comma-separated list; with `trim`, without surrounding blanks and empty
 * items. Returns -1 as above.
 */
int graft_words_split(const char *list, bool trim, struct graft_arena *arena, struct graft_strings *words,
		      struct graft_error *err);
/*
 * Reduces the list of an environment to its meaning (SPEC runtime-and-hook 4.4, rules 2 and 3):
 * nothing if it contains "void", "all" or "none" alone if it contains that, else the list.
 */
void graft_words_reduce(struct graft_strings *words);

/*
 * SPEC runtime-and-hook 4.6. Adds the items of annotations whose key starts with a prefix, in the
 * order of the keys; an empty item becomes "none".
 */
int graft_words_of_annotations(const struct graft_oci_spec *spec, const struct graft_strings *prefixes,
			       struct graft_arena *arena, struct graft_strings *words, struct graft_error *err);
/*
 * SPEC runtime-and-hook 4.5. Adds the devices and IMEX channels that mounts of /dev/null below
 * /var/run/nvidia-container-devices name.
 */
int graft_words_of_mounts(const struct graft_oci_spec *spec, const struct graft_log *log, struct graft_arena *arena,
			  struct graft_strings *devices, struct graft_strings *channels, struct graft_error *err);

/*
 * Reads the requirements in the environment (SPEC runtime-and-hook 4.10), in its order; at most one
 * more than a request accepts. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_container_read_requirements(const struct graft_oci_spec *spec, const struct graft_config *config,
				      struct graft_arena *arena, struct graft_container *container,
				      struct graft_error *err);

#endif
