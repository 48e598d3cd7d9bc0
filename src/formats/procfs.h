/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs: parsers for the kernel's and the driver's text files. Bytes in, values out; nothing is opened here.
 * Values point into an arena. Input is untrusted (a driver root is somebody's directory): lines that are not
 * understood are skipped unless said otherwise.
 */
#ifndef GRAFT_FORMATS_PROCFS_H
#define GRAFT_FORMATS_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* One "Key:   value" line of /proc/driver/nvidia/{params,gpus/N/information,capabilities/...}; blanks trimmed. */
struct graft_key_value {
	const char *key;
	const char *value;
};
int graft_procfs_key_values(const char *text, size_t length, struct graft_arena *arena,
			    struct graft_key_value **ret_items, size_t *ret_n);
/* The value of a key (exact), or NULL. */
const char *graft_key_value_find(const struct graft_key_value *items, size_t n, const char *key);

/*
 * A copy of /proc/driver/nvidia/params in which the driver is told to make no device nodes: each line that is "ModifyDeviceFiles: 1" ends in 0.
 * *ret_changed: there was such a line, and none that says 0 already. NULL: out of memory.
 */
#define GRAFT_PARAMS_NO_DEVICE_FILES "ModifyDeviceFiles: 0"
const char *graft_procfs_without_device_files(const char *text, struct graft_arena *arena, bool *ret_changed);

/*
 * The driver version in /proc/driver/nvidia/version: the first dotted number of the "NVRM version:" line ("550.54.14"; proprietary and
 * open modules word the line differently). NULL when there is none.
 */
const char *graft_procfs_driver_version(const char *text, size_t length, struct graft_arena *arena);

/* The major of a character device in /proc/devices; the name must be the whole rest of the line. False if absent. */
bool graft_procfs_devices_major(const char *text, size_t length, const char *name, uint32_t *ret_major);

/* One line of /proc/driver/nvidia-caps/mig-minors. gpu/gi/ci are -1 where the line has none. */
enum graft_mig_minor_kind { GRAFT_MIG_MINOR_CONFIG, GRAFT_MIG_MINOR_MONITOR, GRAFT_MIG_MINOR_GI, GRAFT_MIG_MINOR_CI };
struct graft_mig_minor {
	enum graft_mig_minor_kind kind;
	int gpu, gi, ci;
	uint32_t minor;
};
/* Unknown lines are skipped (newer drivers add kinds). */
int graft_procfs_mig_minors(const char *text, size_t length, struct graft_arena *arena,
			    struct graft_mig_minor **ret_items, size_t *ret_n);

/* One line of /proc/PID/mountinfo (proc(5)); octal escapes decoded. */
struct graft_mountinfo {
	int mount_id, parent_id;
	uint32_t major, minor;
	const char *root, *mount_point, *options, *fs_type, *source, *super_options;
};
int graft_procfs_mountinfo(const char *text, size_t length, struct graft_arena *arena,
			   struct graft_mountinfo **ret_items, size_t *ret_n);

/* One line of /proc/PID/cgroup: "id:controllers:path", split at the first two colons. */
struct graft_cgroup_entry {
	const char *controllers; /* "" for cgroup v2 */
	const char *path;
};
/* A line with fewer parts is an error: GRAFT_FORMAT, "malformed cgroup entry: <line>". */
int graft_procfs_cgroup(const char *text, size_t length, struct graft_arena *arena,
			struct graft_cgroup_entry **ret_items, size_t *ret_n, struct graft_error *err);

/* PCI bus id "DDDD:BB:DD.F" (4 to 8 digits of domain: the kernel prints as many as it has), any case, to its numbers. False if it is not one. */
struct graft_pci_address {
	uint32_t domain, bus, device, function;
};
bool graft_pci_parse(const char *text, struct graft_pci_address *ret_address);
/* Order of two addresses: < 0, 0, > 0. */
int graft_pci_compare(const struct graft_pci_address *a, const struct graft_pci_address *b);

#endif
