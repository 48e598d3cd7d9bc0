/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health_file: what is known of the health of GPUs and cannot be read from the kernel log again: how
 * faults ended that the log does not see end. A file of one boot, STATE/health.json. Without it, such
 * a fault counts again.
 */
#ifndef GRAFT_DAEMON_HEALTH_FILE_H
#define GRAFT_DAEMON_HEALTH_FILE_H

#include "daemon/health.h"

/* Fills marks and known faults; without a file of this boot, with nothing. A damaged file is a warning. */
void health_file_read(const char *folder, struct health *health, const struct graft_log *log);
/* Writes marks and faults, atomically; makes the folder. A failure is a warning. */
void health_file_write(const char *folder, const struct health *health, const struct graft_log *log);

#endif
