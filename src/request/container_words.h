/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_words: the device names that a container's environment, mounts and annotations hold, as lists of words. Used by container.c alone.
 *
 * Each word is in a list once, at the place of its first occurrence (Q6). Lists are bounded: what is longer is refused, never cut.
 */
#ifndef GRAFT_REQUEST_CONTAINER_WORDS_H
#define GRAFT_REQUEST_CONTAINER_WORDS_H

#include "request/container.h"

/* More words than any host has devices; comparing each with each must stay cheap. */
#define GRAFT_CONTAINER_WORDS_MAX 4096

/* Adds one word unless it is there. -1: GRAFT_TOO_BIG, GRAFT_NO_MEMORY. */
int graft_words_add(struct graft_strings *words, const char *word, struct graft_arena *arena, struct graft_error *err);
/* Adds the items of a comma list; with `trim` without the blanks around them and without empty ones. */
int graft_words_split(const char *list, bool trim, struct graft_arena *arena, struct graft_strings *words,
		      struct graft_error *err);
/* What the list of an environment means (SPEC 4.4, rules 2 and 3): nothing with "void", "all" or "none" alone, or the list. */
void graft_words_reduce(struct graft_strings *words);

/* SPEC 4.6. Annotations whose key begins with a prefix, by key; an empty item is "none". */
int graft_words_of_annotations(const struct graft_oci_spec *spec, const struct graft_strings *prefixes,
			       struct graft_arena *arena, struct graft_strings *words, struct graft_error *err);
/* SPEC 4.5. Mounts of /dev/null below /var/run/nvidia-container-devices: names of devices, and of IMEX channels. */
int graft_words_of_mounts(const struct graft_oci_spec *spec, const struct graft_log *log, struct graft_arena *arena,
			  struct graft_strings *devices, struct graft_strings *channels, struct graft_error *err);

/* Requirements of the environment (SPEC 4.10), in its order. At most one more than a request takes. */
int graft_container_read_requirements(const struct graft_oci_spec *spec, const struct graft_config *config,
				      struct graft_arena *arena, struct graft_container *container,
				      struct graft_error *err);

#endif
