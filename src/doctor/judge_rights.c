/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_rights: judges what the kernel permits containers and their runtimes: control groups, user
 * namespaces, SELinux, AppArmor.
 */
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/judge_state.h"

static bool has_capability(const struct graft_health *health, unsigned int number)
{
	return (health->self.capabilities >> number & 1u) != 0;
}

/* --- control groups --- */

/* "libnvidia-container.so.1.7.0": 1.8 is the first version that supports cgroup v2. */
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
				"supports cgroup v1 only, and this host has v2: programs that use it fail (cgroup "
				"subsystem devices not found)")
		    ->remedy =
		    "Upgrade its package ('dpkg -S' or 'rpm -qf' names it; usually libnvidia-container1), or "
		    "remove it; then restart the engine.";
	else
		graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_OK, "cgroup v2", "is mounted");
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
		    "Run 'mount -t cgroup2 none /sys/fs/cgroup'. A container needs its host's: 'docker run "
		    "--cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup'.";
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
				"cgroup subsystem devices not found: the kernel has no devices controller, or it is "
				"disabled")
		    ->remedy = "Remove 'cgroup_disable=devices' from the kernel's command line, or boot with cgroup v2 "
			       "(systemd.unified_cgroup_hierarchy=1).";
	else if (!cgroup->devices_mounted)
		graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_BROKEN, "cgroup v1",
				"cgroup subsystem devices not found: the controller is not mounted here")
		    ->remedy = "Run 'mkdir -p /sys/fs/cgroup/devices && mount -t cgroup -o devices devices "
			       "/sys/fs/cgroup/devices'. A container needs its host's /sys/fs/cgroup.";
	else
		graft_judge_add(judge, GRAFT_CHECK_CGROUP, GRAFT_LEVEL_OK,
				cgroup->version == GRAFT_CGROUP_V1 ? "cgroup v1" : "cgroup v1 and v2",
				"the devices controller is mounted");
}

static void judge_cgroup_rights(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	if (health->self.user_namespace)
		/* This toolkit does not touch the rules there, so they are not needed. */
		graft_judge_add(judge, GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_LEVEL_OK, "user namespace",
				"the kernel refuses changes to device rules here (bpf_prog_query(BPF_CGROUP_DEVICE) "
				"failed: operation not permitted), and this toolkit needs none")
		    ->remedy =
		    "Another toolkit printed the message. Use CDI, or run 'nvidia-ctk config --in-place --set "
		    "nvidia-container-cli.no-cgroups=true' with a config.toml of this user.";
	else if (health->self.uid == 0 && !has_capability(health, CAP_SYS_ADMIN))
		graft_judge_add(judge, GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_LEVEL_BROKEN, "CAP_SYS_ADMIN",
				"is missing, although the caller is root: device rules cannot be changed "
				"(bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted)")
		    ->remedy = "Run the engine with that capability (in a container: --privileged), or use CDI.";
	else if (health->self.uid == 0)
		graft_judge_add(judge, GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_LEVEL_OK, "root", "can change device rules");
	else
		graft_judge_add(judge, GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "uid %u", health->self.uid),
				"rootless containers have no device rules: they can open what the user can open");
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
		finding->remedy =
		    "Run 'sysctl -w user.max_user_namespaces=15000', and write that into a file below /etc/sysctl.d.";
	} else if (userns->clone_forbidden) {
		finding = graft_judge_add(judge, GRAFT_CHECK_USER_NAMESPACES, GRAFT_LEVEL_WARNING,
					  "kernel.unprivileged_userns_clone",
					  "is 0: rootless engines cannot start containers");
		finding->remedy = "Run 'sysctl -w kernel.unprivileged_userns_clone=1', and write that into a file "
				  "below /etc/sysctl.d.";
	} else if (health->self.uid != 0 && !health->self.user_namespace && !userns->has_subuids) {
		finding = graft_judge_add(judge, GRAFT_CHECK_USER_NAMESPACES, GRAFT_LEVEL_WARNING, "/etc/subuid",
					  "has no entry for this user: rootless engines have a single user id");
		finding->remedy = graft_judge_text(
		    judge,
		    "Run 'usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
		    "$(id -nu %u)'.",
		    health->self.uid);
	}
	if (!finding)
		graft_judge_add(judge, GRAFT_CHECK_USER_NAMESPACES, GRAFT_LEVEL_OK, "user namespaces", "%s",
				userns->apparmor_restricts
				    ? "only programs that AppArmor allows (podman, rootlesskit) can create them"
				    : "every user can create them");
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
		    "is enforcing, and does not let containers open devices of the host such as /dev/nvidia0 "
		    "(insufficient permissions)")
		    ->remedy = lsm->has_container_devices
				   ? "Run 'setsebool -P container_use_devices on', or start containers with "
				     "'--security-opt label=disable'."
				   : "Install container-selinux, then run 'setsebool -P container_use_devices on'; or "
				     "start containers with '--security-opt label=disable'.";
	else
		graft_judge_add(judge, GRAFT_CHECK_SELINUX, GRAFT_LEVEL_OK, "SELinux", "%s",
				lsm->selinux_enforcing ? "is enforcing, and lets containers use devices"
						       : "is not enforcing");
}

/* --- space --- */

static void judge_disks(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	for (size_t i = 0; i < health->n_full_disks; i++)
		graft_judge_add(judge, GRAFT_CHECK_DISK_SPACE, GRAFT_LEVEL_BROKEN, health->full_disks[i].path,
				"no space left on device: the file system has no free %s, so engines cannot start "
				"containers",
				health->full_disks[i].no_inodes ? "inodes" : "space")
		    ->remedy = graft_judge_text(judge,
						"Free some: '%s %s' shows the use; 'docker system prune' removes "
						"unused containers and images.",
						health->full_disks[i].no_inodes ? "df -i" : "df -h",
						health->full_disks[i].path);
	if (health->n_full_disks == 0)
		graft_judge_add(judge, GRAFT_CHECK_DISK_SPACE, GRAFT_LEVEL_OK, "file systems", "have free space");
}

void graft_judge_rights(struct graft_judge *judge)
{
	judge_cgroup(judge);
	judge_cgroup_rights(judge);
	judge_user_namespaces(judge);
	judge_selinux(judge);
	if (judge->health->lsm.apparmor)
		graft_judge_add(judge, GRAFT_CHECK_APPARMOR, GRAFT_LEVEL_OK, "AppArmor",
				"is enabled; the engines' profiles do not restrict GPUs");
	judge_disks(judge);
}
