/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_link: the link through which a program finds its config file, and the signal that
 * announces a new one.
 */
#ifndef GRAFT_DAEMON_CONFIG_LINK_H
#define GRAFT_DAEMON_CONFIG_LINK_H

#include <stddef.h>
#include <time.h>

#include "base/error.h"

#define CONFIG_LINK_NOTHING "/dev/null" /* where it leads if no file applies */

/*
 * Points the link at `path` to `target`, or to CONFIG_LINK_NOTHING if that is empty. An existing
 * file is replaced atomically. Returns 1; 0 if the link already leads there; or -1 "cannot link
 * PATH to TARGET".
 */
int config_link_set(const char *path, const char *target, struct graft_error *err);

/*
 * Sends a signal to every process that was started as `name`: its argv[0] is that, or a path that
 * ends in it. Excludes this process and, with `changed`, those that were started after that time
 * (CLOCK_REALTIME). `proc` is procfs. *ret_n is their number. Returns 0, or -1 with GRAFT_IO, or
 * GRAFT_PERMISSION if one may not be signalled.
 */
int config_link_signal(const char *proc, const char *name, int signal, const struct timespec *changed, size_t *ret_n,
		       struct graft_error *err);

#endif
