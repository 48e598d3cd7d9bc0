/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health_file: the parts of the GPUs' health that the kernel log does not record: how certain
 * faults ended. A file of one boot, STATE/health.json. Without it such a fault is active again.
 */
#ifndef GRAFT_DAEMON_HEALTH_FILE_H
#define GRAFT_DAEMON_HEALTH_FILE_H

#include "daemon/health.h"

/*
 * Fills in marks and known faults; none without a file of this boot. A damaged file causes a
 * warning.
 */
void health_file_read(const char *folder, struct health *health, const struct graft_log *log);
/* Writes marks and faults atomically, and creates the folder. A failure causes a warning. */
void health_file_write(const char *folder, const struct health *health, const struct graft_log *log);

#endif
