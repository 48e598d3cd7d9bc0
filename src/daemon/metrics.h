/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: the device plugin's state for monitoring, as pages for daemon/http.h. */
#ifndef GRAFT_DAEMON_METRICS_H
#define GRAFT_DAEMON_METRICS_H

#include "base/buffer.h"

/*
 * Appends a page of the struct plugin `arg`: /metrics in Prometheus' text format; /healthz, which
 * is 200 while every resource is served, registered or not, since a missing kubelet is no reason to
 * restart the plugin. Returns the HTTP status.
 */
int metrics_page(void *arg, const char *path, struct graft_buffer *body);

#endif
