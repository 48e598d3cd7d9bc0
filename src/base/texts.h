/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts: small files that were read a moment ago. One start of a container reads the image's loader configuration when it looks at the image, when it asks whether the
 * loader's cache is up to date, and when it makes a new one; and each file of an untrusted root costs seven system calls. A text counts as long as the file
 * behind it is the same inode with the same size and times.
 */
#ifndef GRAFT_BASE_TEXTS_H
#define GRAFT_BASE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct graft_texts;

/* A new empty one, or NULL. */
struct graft_texts *graft_texts_new(void);
/* NULL is fine. Returns NULL. */
struct graft_texts *graft_texts_free(struct graft_texts *texts);
/* What the file of `st` said: true with its bytes, which end with a NUL that is not counted and live as long as the texts. */
bool graft_texts_find(const struct graft_texts *texts, const struct stat *st, const char **ret_bytes,
		      size_t *ret_length);
/* Remembers it, unless it is large or one too many. 0 or -ENOMEM. */
int graft_texts_remember(struct graft_texts *texts, const struct stat *st, const char *bytes, size_t length);

#endif
