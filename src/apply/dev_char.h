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
 * Makes the links that are missing, each "../nvidia0" for a node below /dev. An existing link is left alone. A failure to make one is a warning: the
 * container works without it until the next reload. Returns the number made, or -1 when /dev/char cannot be opened or made.
 */
int graft_dev_char_make(const struct graft_dev_char *nodes, size_t n_nodes, const struct graft_log *log,
			struct graft_error *err);

#endif
