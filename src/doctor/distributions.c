/* SPDX-License-Identifier: Apache-2.0 */
/* distributions: the list, which docs/gpu-operator.md repeats as a table. */
#include "doctor/distributions.h"

#include <string.h>

const struct graft_distribution graft_distributions[] = {
	{ "K3s", "/var/lib/rancher/k3s/agent", NULL,
	  "CONTAINERD_CONFIG=/var/lib/rancher/k3s/agent/etc/containerd/config.toml "
	  "CONTAINERD_SOCKET=/run/k3s/containerd/containerd.sock",
	  "which writes a drop-in file that K3s imports; before March 2026 it imports none: set "
	  "NO_RUNTIME_CONFIG=true, and restart K3s, which finds /usr/local/nvidia/toolkit when it starts" },
	{ "RKE2", "/var/lib/rancher/rke2/agent", NULL,
	  "CONTAINERD_CONFIG=/var/lib/rancher/rke2/agent/etc/containerd/config.toml "
	  "CONTAINERD_SOCKET=/run/k3s/containerd/containerd.sock",
	  "which writes a drop-in file that RKE2 imports; before March 2026 it imports none: set "
	  "NO_RUNTIME_CONFIG=true, and restart RKE2, which finds /usr/local/nvidia/toolkit when it starts" },
	{ "MicroK8s", "/var/snap/microk8s/current/args", NULL,
	  "CONTAINERD_CONFIG=/var/snap/microk8s/current/args/containerd-template.toml "
	  "CONTAINERD_SOCKET=/var/snap/microk8s/common/run/containerd.sock",
	  NULL },
	{ "Talos", "/etc/os-release", "ID=talos", "TOOLKIT_INSTALL_DIR RUNTIME_CONFIG RUNTIME_DROP_IN_CONFIG",
	  "with paths in /var, since nothing can be written below /etc and /usr, and import the file of "
	  "RUNTIME_CONFIG in the machine configuration; or use CDI" },
	{ .name = NULL },
};

const struct graft_distribution *graft_distribution_find(const char *name)
{
	for (const struct graft_distribution *at = graft_distributions; name && at->name; at++) {
		if (strcmp(at->name, name) == 0)
			return at;
	}
	return NULL;
}
