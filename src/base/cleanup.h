/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleanup: releases things at the end of their block: `auto_close int fd = -1;`, `auto_free char *s
 * = NULL;`. Always initialise such a variable at its declaration. TAKE_FD and TAKE_PTR pass a value
 * on and leave the destructor nothing to release.
 */
#ifndef GRAFT_BASE_CLEANUP_H
#define GRAFT_BASE_CLEANUP_H

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static inline void graft_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void graft_cleanup_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void graft_cleanup_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

#define auto_free  __attribute__((cleanup(graft_cleanup_free)))
#define auto_close __attribute__((cleanup(graft_cleanup_close)))
#define auto_dir   __attribute__((cleanup(graft_cleanup_dir)))

static inline int graft_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}
#define TAKE_FD(fd) graft_take_fd(&(fd))
#define TAKE_PTR(p)                         \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

/*
 * A sentence in a row of a table, for documents and readers of the table. Programs built for size
 * leave it out.
 */
#ifdef GRAFT_WITHOUT_DOCS
#define GRAFT_DOC(text) NULL
#else
#define GRAFT_DOC(text) text
#endif

#define GRAFT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
