/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_rights: judges what the kernel lets containers and their runtimes do: control groups, user namespaces, SELinux, AppArmor. */
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "plan/doctor_judge.h"

static bool has_capability(const struct graft_health *health, unsigned int number)
{
	return (health->self.capabilities >> number & 1u) != 0;
}

/* --- control groups --- */

/* "libnvidia-container.so.1.7.0": 1.8 is the first that knows cgroup v2. */
static bool is_before_cgroup_v2(const char *library)
{
	const char *name = strrchr(library, '/'), *version = strstr(name ? name : library, ".so.");
	unsigned long major, minor;
	char *end;

	if (!version)
		return false;
	major = strtoul(version + strlen(".so."), &end, 10);
	if (*end != '.')
		return false;
	minor = strtoul(end + 1, NULL, 10);
	return major < 1 || (major == 1 && minor < 8);
}

static void judge_cgroup_v2(struct graft_judge *judge)
{
	const char *library = judge->health->cgroup.library;

	if (library && is_before_cgroup_v2(library))
		graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_WARNING, library,
				"knows cgroup v1 alone, and this host has v2: programs that use it fail (cgroup "
				"subsystem devices not found)")
		    ->remedy = "Upgrade the package that it belongs to ('dpkg -S' or 'rpm -qf' names it; "
			       "libnvidia-container1), or remove it; then restart the engine.";
	else
		graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_OK, "cgroup v2",
				"device rules are programs of the kernel (BPF)");
}

static void judge_cgroup(struct graft_judge *judge)
{
	const struct graft_health_cgroup *cgroup = &judge->health->cgroup;
	struct graft_finding *finding;

	switch (cgroup->version) {
	case GRAFT_CGROUP_NONE:
		finding = graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_BROKEN, "/sys/fs/cgroup",
					  "cgroup subsystem devices not found: no control groups are mounted here");
		finding->remedy =
		    "Mount them: 'mount -t cgroup2 none /sys/fs/cgroup'. In a container: give it its host's "
		    "(docker run --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup).";
		return;
	case GRAFT_CGROUP_V2:
		judge_cgroup_v2(judge);
		return;
	case GRAFT_CGROUP_V1:
	case GRAFT_CGROUP_HYBRID:
		break;
	}
	if (!cgroup->devices_enabled)
		graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_BROKEN, "cgroup v1",
				"cgroup subsystem devices not found: the kernel has no devices controller, or was told "
				"not to use it")
		    ->remedy = "Remove 'cgroup_disable=devices' from the kernel's command line, or boot with cgroup v2 "
			       "(systemd.unified_cgroup_hierarchy=1).";
	else if (!cgroup->devices_mounted)
		graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_BROKEN, "cgroup v1",
				"cgroup subsystem devices not found: the controller is not mounted here")
		    ->remedy = "Run 'mkdir -p /sys/fs/cgroup/devices && mount -t cgroup -o devices devices "
			       "/sys/fs/cgroup/devices'. In a container: give it its host's /sys/fs/cgroup.";
	else
		graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_OK,
				cgroup->version == GRAFT_CGROUP_V1 ? "cgroup v1" : "cgroup v1 and v2",
				"the devices controller is mounted");
}

static void judge_cgroup_rights(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	if (health->self.user_namespace)
		graft_judge_add(judge, GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_LEVEL_WARNING, "user namespace",
				"in here the kernel refuses changes to device rules (bpf_prog_query(BPF_CGROUP_DEVICE) "
				"failed: operation not permitted)")
		    ->remedy =
		    "Nothing for containers of this toolkit, which leaves the rules alone there. For others: "
		    "'nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups=true' in a "
		    "config.toml of that user, or CDI.";
	else if (health->self.uid == 0 && !has_capability(health, CAP_SYS_ADMIN))
		graft_judge_add(judge, GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_LEVEL_BROKEN, "CAP_SYS_ADMIN",
				"this root does not have it: device rules cannot be changed "
				"(bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted)")
		    ->remedy = "Run the engine with that capability (in a container: --privileged), or let it give the "
			       "devices by CDI.";
	else if (health->self.uid == 0)
		graft_judge_add(judge, GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_LEVEL_OK, "root", "may change device rules");
	else
		graft_judge_add(judge, GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "uid %u", health->self.uid),
				"rootless containers have no device rules: what the user may open, they may open");
}

/* --- user namespaces --- */

static void judge_user_namespaces(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const struct graft_health_userns *userns = &health->userns;
	struct graft_finding *finding = NULL;

	if (userns->has_max && userns->max == 0) {
		finding = graft_judge_add(judge, GRAFT_CHECK_USER_NAMESPACES, GRAFT_LEVEL_WARNING,
					  "user.max_user_namespaces", "is 0: rootless engines cannot start containers");
		finding->remedy = "Run 'sysctl -w user.max_user_namespaces=15000', and write it into /etc/sysctl.d.";
	} else if (userns->clone_forbidden) {
		finding = graft_judge_add(judge, GRAFT_CHECK_USER_NAMESPACES, GRAFT_LEVEL_WARNING,
					  "kernel.unprivileged_userns_clone",
					  "is 0: rootless engines cannot start containers");
		finding->remedy =
		    "Run 'sysctl -w kernel.unprivileged_userns_clone=1', and write it into /etc/sysctl.d.";
	} else if (health->self.uid != 0 && !health->self.user_namespace && !userns->has_subuids) {
		finding = graft_judge_add(judge, GRAFT_CHECK_USER_NAMESPACES, GRAFT_LEVEL_WARNING, "/etc/subuid",
					  "has no ids for this user: rootless engines have one id only");
		finding->remedy = graft_judge_text(
		    judge,
		    "Run 'usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
		    "$(id -nu %u)'.",
		    health->self.uid);
	}
	if (!finding)
		graft_judge_add(judge, GRAFT_CHECK_USER_NAMESPACES, GRAFT_LEVEL_OK, "user namespaces", "%s",
				userns->apparmor_restricts
				    ? "only for programs that AppArmor lets (podman, rootlesskit)"
				    : "everybody may make them");
}

/* --- security modules --- */

static void judge_selinux(struct graft_judge *judge)
{
	const struct graft_health_lsm *lsm = &judge->health->lsm;

	if (!lsm->selinux)
		return;
	if (lsm->selinux_enforcing && !lsm->container_devices)
		graft_judge_add(
		    judge, GRAFT_CHECK_SELINUX, GRAFT_LEVEL_WARNING, "SELinux",
		    "enforces, and containers may not use devices of the host: opening /dev/nvidia* is refused "
		    "(insufficient permissions)")
		    ->remedy = lsm->has_container_devices
				   ? "Run 'setsebool -P container_use_devices on', or start such containers with "
				     "'--security-opt label=disable'."
				   : "Install the policy for containers (container-selinux), then 'setsebool -P "
				     "container_use_devices on'; or start such containers with '--security-opt "
				     "label=disable'.";
	else
		graft_judge_add(judge, GRAFT_CHECK_SELINUX, GRAFT_LEVEL_OK, "SELinux", "%s",
				lsm->selinux_enforcing ? "enforces, and lets containers use devices"
						       : "does not enforce");
}

void graft_judge_rights(struct graft_judge *judge)
{
	judge_cgroup(judge);
	judge_cgroup_rights(judge);
	judge_user_namespaces(judge);
	judge_selinux(judge);
	if (judge->health->lsm.apparmor)
		graft_judge_add(judge, GRAFT_CHECK_APPARMOR, GRAFT_LEVEL_OK, "AppArmor",
				"is on; the profiles of the engines do not keep containers from GPUs");
}
