/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_cdi: the CDI specifications that the names in an answer stand for (SPEC kubernetes 6.4): one
 * file for each class that the configuration uses.
 */
#ifndef GRAFT_KUBERNETES_KUBE_CDI_H
#define GRAFT_KUBERNETES_KUBE_CDI_H

#include "base/error.h"
#include "base/log.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_node.h"

#define GRAFT_KUBE_CDI_DIRECTORY "/var/run/cdi"

/*
 * Writes the specifications into `directory`, if the configuration uses CDI; otherwise does
 * nothing. Each file is written completely or not at all, and none if one cannot be made. Paths in
 * them are those of the host: where the driver is read at the container driver root, they are moved
 * to the driver root, and nodes to the dev root. Reads the host again, with the libraries of the
 * driver. `log` is not NULL. Returns 0, or -1 with the errors of graft_cdi_read_host(),
 * graft_cdi_make() and graft_host_file_write(); GRAFT_NOT_FOUND if GDRCopy, GPUDirect Storage or
 * InfiniBand is enabled, but the host does not have it.
 */
int graft_kube_cdi_write(const struct graft_kube_config *config, const struct graft_kube_node_facts *facts,
			 const char *directory, const struct graft_log *log, struct graft_error *err);

#endif
