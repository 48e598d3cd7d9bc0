/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_security: restrictions other than the driver's: who the caller is, control groups and the
 * right to change device rules, user namespaces, SELinux, AppArmor, full file systems.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "doctor/look.h"
#include "formats/procfs.h"
#include "host/catalog.h"

#define SELINUX     "/sys/fs/selinux"
#define NVC_SO      "libnvidia-container.so.1"
#define NVC_TOOLKIT "/usr/local/nvidia/toolkit" /* where the GPU operator installs it */

/* --- the caller --- */

/* The initial user namespace maps every id to itself. */
static bool has_mapped_ids(struct graft_health_look *look)
{
	unsigned long inside, outside, count;
	const char *text;
	char *end;
	size_t length;

	if (graft_health_read_file(look, "/proc/self/uid_map", &text, &length) < 0)
		return false;
	inside = strtoul(text, &end, 10);
	outside = strtoul(end, &end, 10);
	count = strtoul(end, &end, 10);
	return inside != 0 || outside != 0 || count != UINT32_MAX;
}

static void look_at_self(struct graft_health_look *look)
{
	struct graft_health_self *self = &look->health->self;
	struct graft_key_value *items;
	const char *text, *value;
	size_t length, n;

	self->user_namespace = has_mapped_ids(look);
	self->container = graft_health_exists(look, "/.dockerenv") || graft_health_exists(look, "/run/.containerenv") ||
			  graft_health_exists(look, "/run/systemd/container");
	if (graft_health_read_file(look, "/proc/self/status", &text, &length) < 0 ||
	    graft_procfs_key_values(text, length, look->scratch, &items, &n) < 0)
		return;
	value = graft_key_value_find(items, n, "CapEff");
	self->capabilities = value ? strtoull(value, NULL, 16) : 0;
	value = graft_key_value_find(items, n, "Uid"); /* real, effective, saved, file system */
	value = value ? strchr(value, '\t') : NULL;
	self->uid = value ? (uint32_t)strtoul(value, NULL, 10) : 0;
}

/* --- control groups --- */

/*
 * Parses a line of /proc/cgroups: "devices  5  8  1". The controller is enabled unless the last
 * number is 0.
 */
static bool has_devices_controller(struct graft_health_look *look)
{
	static const char name[] = "devices\t";
	const char *text;
	size_t length;

	if (graft_health_read_file(look, "/proc/cgroups", &text, &length) < 0)
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, sizeof(name) - 1) == 0)
			return line[strcspn(line, "\n") - 1] != '0';
	}
	return false;
}

/* Reads the link of that name, whose target has the version in its name. */
static bool find_library_in(struct graft_health_look *look, const char *directory)
{
	const char *path = graft_arena_printf(look->scratch, "%s/" NVC_SO, directory);
	const char *target = path ? graft_health_read_link(look, path) : NULL;

	if (target)
		look->health->cgroup.library = graft_arena_printf(look->arena, "%s/%s", directory,
								  graft_path_name(target));
	return target != NULL;
}

static void look_at_library(struct graft_health_look *look)
{
	bool found = find_library_in(look, NVC_TOOLKIT);

	for (size_t i = 0; i < graft_n_catalog_library_directories && !found; i++) {
		if (graft_catalog_library_directories[i].bits != 32)
			found = find_library_in(look, graft_catalog_library_directories[i].path);
	}
}

/*
 * cgroups(7): cgroup2 without controllers of v1 is v2; with them it is a hybrid, whose device rules
 * are those of v1.
 */
static void look_at_cgroup(struct graft_health_look *look)
{
	struct graft_health_cgroup *cgroup = &look->health->cgroup;
	struct graft_mountinfo *mounts;
	bool v1 = false, v2 = false;
	const char *text;
	size_t length, n;

	cgroup->devices_enabled = has_devices_controller(look);
	cgroup->unprivileged_bpf_disabled = (uint32_t)graft_health_read_number(
	    look, "/proc/sys/kernel/unprivileged_bpf_disabled", 0);
	if (graft_health_read_file(look, "/proc/self/mountinfo", &text, &length) < 0 ||
	    graft_procfs_mountinfo(text, length, look->scratch, &mounts, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		v2 |= strcmp(mounts[i].fs_type, "cgroup2") == 0;
		if (strcmp(mounts[i].fs_type, "cgroup") != 0)
			continue;
		v1 = true;
		cgroup->devices_mounted |= graft_list_has(mounts[i].super_options, "devices");
	}
	cgroup->version = v1 && v2 ? GRAFT_CGROUP_HYBRID
			  : v2     ? GRAFT_CGROUP_V2
			  : v1     ? GRAFT_CGROUP_V1
				   : GRAFT_CGROUP_NONE;
}

/* --- user namespaces --- */

static bool is_subid_owner(const char *word, const char *bytes, size_t length)
{
	return word && strlen(word) == length && strncmp(word, bytes, length) == 0;
}

/* A line of /etc/subuid begins with the user's name or number. */
static bool has_subuids(struct graft_health_look *look, uint32_t uid)
{
	const char *number = graft_arena_printf(look->scratch, "%u", uid), *name = NULL, *home = NULL, *text;
	size_t length, n;

	(void)graft_health_find_user(look, uid, &name, &home);
	if (graft_health_read_file(look, "/etc/subuid", &text, &length) < 0)
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		n = strcspn(line, ":\n");
		if (line[n] == ':' && (is_subid_owner(name, line, n) || is_subid_owner(number, line, n)))
			return true;
	}
	return false;
}

static void look_at_user_namespaces(struct graft_health_look *look)
{
	struct graft_health_userns *userns = &look->health->userns;

	userns->max = graft_health_read_number(look, "/proc/sys/user/max_user_namespaces", UINT64_MAX);
	userns->has_max = userns->max != UINT64_MAX;
	userns->max = userns->has_max ? userns->max : 0;
	userns->clone_forbidden = graft_health_read_number(look, "/proc/sys/kernel/unprivileged_userns_clone", 1) == 0;
	userns->apparmor_restricts = graft_health_read_number(
					 look, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1;
	userns->has_subuids = has_subuids(look, look->health->self.uid);
}

/* --- security modules --- */

static void look_at_security_modules(struct graft_health_look *look)
{
	struct graft_health_lsm *lsm = &look->health->lsm;
	const char *word;

	lsm->selinux = graft_health_exists(look, SELINUX "/enforce");
	lsm->selinux_enforcing = graft_health_read_number(look, SELINUX "/enforce", 0) == 1;
	/* Two numbers, the current and the pending value: "0 0". */
	word = lsm->selinux ? graft_health_read_word(look, SELINUX "/booleans/container_use_devices") : NULL;
	lsm->has_container_devices = word != NULL;
	lsm->container_devices = word && word[0] == '1';
	word = graft_health_read_word(look, "/sys/module/apparmor/parameters/enabled");
	lsm->apparmor = word && word[0] == 'Y';
}

/* --- space --- */

#define FREE_MIN ((uint64_t)1 << 20)

/* A full file system is listed once, under the first directory. Read-only ones are always full. */
static void look_at_disks(struct graft_health_look *look)
{
	static const char *const directories[] = {
		"/", "/etc", "/run", "/tmp", "/var/lib", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers"
	};
	dev_t seen[GRAFT_COUNT(directories)] = { 0 };
	size_t n_seen = 0;

	for (size_t i = 0; i < GRAFT_COUNT(directories); i++) {
		auto_close int fd = graft_root_openat(look->host, directories[i], O_PATH | O_DIRECTORY);
		struct graft_health_disk *disk;
		struct statvfs space;
		struct stat st;
		bool no_inodes, known = false;

		if (fd < 0 || fstat(fd, &st) < 0 || fstatvfs(fd, &space) < 0 || (space.f_flag & ST_RDONLY) != 0 ||
		    space.f_blocks == 0)
			continue;
		for (size_t k = 0; k < n_seen; k++)
			known |= seen[k] == st.st_dev;
		seen[n_seen++] = st.st_dev;
		no_inodes = space.f_files > 0 && space.f_favail == 0;
		if (known || (!no_inodes && (uint64_t)space.f_bavail * space.f_frsize >= FREE_MIN))
			continue;
		disk = graft_arena_push(look->arena, &look->health->full_disks, &look->health->n_full_disks,
					sizeof(*disk));
		if (!disk)
			return;
		disk->path = directories[i];
		disk->no_inodes = no_inodes;
	}
}

void graft_health_look_security(struct graft_health_look *look)
{
	look_at_self(look);
	look_at_cgroup(look);
	look_at_library(look);
	look_at_user_namespaces(look);
	look_at_security_modules(look);
	look_at_disks(look);
}
