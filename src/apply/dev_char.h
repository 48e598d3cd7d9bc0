/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dev_char: the links /dev/char/MAJOR:MINOR, by which systemd knows a device. runc hands systemd only device rules whose link exists; without it the
 * next daemon-reload takes the device away from the container (users' first complaint). BASELINE: drivers whose nodes udev does not make.
 */
#ifndef GRAFT_APPLY_DEV_CHAR_H
#define GRAFT_APPLY_DEV_CHAR_H

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
/* The same in another directory, which is opened or made; it stands directly below what "../" leads to. */
int graft_dev_char_make_in(const char *directory, const struct graft_dev_char *nodes, size_t n_nodes,
			   const struct graft_log *log, struct graft_error *err);

#endif
