/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dev_char: the links /dev/char/MAJOR:MINOR, by which systemd knows a device. runc hands systemd only device rules whose link exists; without it the
 * next daemon-reload takes the device away from the container (users' first complaint). BASELINE: drivers whose nodes udev does not make.
 */
#ifndef GRAFT_APPLY_DEV_CHAR_H
#define GRAFT_APPLY_DEV_CHAR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/log.h"

struct graft_dev_char {
	unsigned int major, minor;
	const char *path; /* of the node on the host, absolute */
};

/*
 * Makes the links that are missing, each "../nvidia0" for a node below /dev, the path itself for one elsewhere (a driver root). A link that leads to
 * a device with these numbers is left alone whatever it says; one that leads nowhere or to another device is of a driver that was
 * loaded before, and is replaced. A failure to make one is a warning: the container works without it until the next
 * reload. Returns the number made, or -1 when /dev/char cannot be opened or made.
 */
int graft_dev_char_make(const struct graft_dev_char *nodes, size_t n_nodes, const struct graft_log *log,
			struct graft_error *err);

struct graft_dev_char_options {
	const char *directory; /* opened or made; NULL = /dev/char */
	bool absolute; /* a link says the node's path; otherwise "../nvidia0", which is right in /dev/char only */
	bool dry_run;  /* nothing is made */
	/* Told of each link before it is made: its path, and what it will say. NULL: the log is told, as by graft_dev_char_make(). */
	void (*making)(void *arg, const char *link, const char *text);
	void *arg;
	const struct graft_log *log;
};
/* graft_dev_char_make() as the options say. In a dry run the result is the number that would be made. */
int graft_dev_char_make_with(const struct graft_dev_char_options *options, const struct graft_dev_char *nodes,
			     size_t n_nodes, struct graft_error *err);

#endif
