/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine: the privileges that a reader gives up before it reads the first byte of an image.
 * Private to reader.c.
 */
#ifndef GRAFT_IMAGE_CONFINE_H
#define GRAFT_IMAGE_CONFINE_H

#include "base/error.h"
#include "base/image_root.h"

/* The name that ps(1) and strace(1) show. */
#define GRAFT_READER_NAME "graft-reader"

/*
 * Confines a process that was forked for this purpose. The steps, in this order, each as far as the
 * kernel supports it:
 *
 *   privileges    at most CAP_SYS_ADMIN, CAP_SYS_CHROOT and CAP_DAC_READ_SEARCH stay
 *   mounts        those of the root become detached copies, read-only, without device nodes,
 *                 set-user-ID and execution (5.12); `root` refers to the copies then
 *   descriptors   all are closed except out_fd and the root's own
 *   root          the image becomes the root directory of the process
 *   limits        processor time, memory, descriptors, no core files, no file may grow
 *   Landlock      files can only be opened below the image, and only for reading (5.13)
 *   capabilities  at most CAP_DAC_READ_SEARCH; none can be regained
 *   seccomp       only the calls needed for reading
 *
 * Returns 0, or -1 with GRAFT_PERMISSION; the process must not be used then.
 */
int graft_confine(struct graft_image_root *root, int out_fd, struct graft_error *err);

#endif
