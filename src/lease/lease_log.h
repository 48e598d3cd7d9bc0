/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_log: what has happened to the table, a line for each event, for people and for `lease
 * history`. The last thousand or so are kept. The order of waiting processes depends on it, but not
 * which GPUs are held, so a failure to write it is ignored.
 *
 *	1732627861 taken k3vab2cdefgh uid 1000 any:2 GPU-a,GPU-b container 3f2a91c0d1e2
 *	1732627999 freed k3vab2cdefgh uid 1000 no process is left in its cgroup
 *	1732628003 taken n4wbc3defghi owner anna any:1 GPU-a process 4711
 */
#ifndef GRAFT_LEASE_LEASE_LOG_H
#define GRAFT_LEASE_LEASE_LOG_H

#include "base/buffer.h"
#include "lease/lease.h"

#define GRAFT_LEASE_LOG           "log"
#define GRAFT_LEASE_LOG_MAX       ((size_t)256 * 1024)
#define GRAFT_LEASE_LOG_CONTAINER " container " /* before the last word of a line, a container's name */

/*
 * Adds a word of a line: at most `max` letters, without blanks, which separate words. SECURITY: an
 * image may choose them.
 */
void graft_lease_log_word(const char *text, size_t max, struct graft_buffer *out);
/* Adds a line to `lines`. `why` may be NULL, for leases that were taken. */
void graft_lease_log_add(const struct graft_lease *lease, const char *event, const char *why,
			 struct graft_buffer *lines);
/*
 * Appends the lines to the file in the table's directory; a full file first loses its older half.
 */
void graft_lease_log_write(int directory_fd, const struct graft_buffer *lines);

/*
 * Reads the end of the log of the table in `directory`, at most `max` bytes of whole lines; 0: all
 * that is kept. "" if there is none, or if it cannot be read, with errno. NULL:
 * out of memory.
 */
const char *graft_lease_log_read(const char *directory, size_t max, struct graft_arena *arena);

#endif
