/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dev_char: the links /dev/char/MAJOR:MINOR, by which systemd knows a device. runc passes systemd
 * only device rules whose link exists; without it the next daemon-reload takes the device away from
 * the container. udev makes the links of nodes that the driver announces.
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
 * Makes missing links: "../nvidia0" for a node below /dev, the full path for a node elsewhere (a
 * driver root). A link to a device with these numbers is kept whatever its text; a link that
 * dangles or points to another device stems from a previously loaded driver and is replaced.
 * Failure to make a link only causes a warning: the container works without it until the next
 * reload. Returns the number of links made, or -1 if /dev/char cannot be opened or made.
 */
int graft_dev_char_make(const struct graft_dev_char *nodes, size_t n_nodes, const struct graft_log *log,
			struct graft_error *err);

struct graft_dev_char_options {
	const char *directory; /* opened or made; NULL = /dev/char */
	bool absolute; /* links contain the node's path; otherwise "../nvidia0", which is right in /dev/char only */
	bool dry_run;  /* make nothing */
	/*
	 * Called for each link before it is made, with its path and text. NULL: links are logged,
	 * as by graft_dev_char_make().
	 */
	void (*making)(void *arg, const char *link, const char *text);
	void *arg;
	const struct graft_log *log;
};
/*
 * Like graft_dev_char_make(), with options. In a dry run, returns the number of links that would be
 * made.
 */
int graft_dev_char_make_with(const struct graft_dev_char_options *options, const struct graft_dev_char *nodes,
			     size_t n_nodes, struct graft_error *err);

#endif
