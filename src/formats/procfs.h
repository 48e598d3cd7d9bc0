/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs: parsers for the kernel's and the driver's text files. Bytes in, values out; no file is
 * opened. Values are allocated from an arena. The input is untrusted (a driver root may be
 * anybody's directory): malformed lines are skipped unless stated otherwise. Functions that return
 * an int return 0, or -1 if out of memory.
 */
#ifndef GRAFT_FORMATS_PROCFS_H
#define GRAFT_FORMATS_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * A "Key:   value" line of /proc/driver/nvidia/{params,gpus/N/information,capabilities/...},
 * without surrounding blanks.
 */
struct graft_key_value {
	const char *key;
	const char *value;
};
/* Parses all lines with a key; others are skipped. */
int graft_procfs_key_values(const char *text, size_t length, struct graft_arena *arena,
			    struct graft_key_value **ret_items, size_t *ret_n);
/* Returns the value of a key (exact match), or NULL. */
const char *graft_key_value_find(const struct graft_key_value *items, size_t n, const char *key);

/*
 * Returns a copy of /proc/driver/nvidia/params that forbids the driver's programs to create device
 * nodes: every line "ModifyDeviceFiles: 1" ends in 0 instead. *ret_changed: there was such a line,
 * and none that already ends in 0. NULL: out of memory.
 */
#define GRAFT_PARAMS_NO_DEVICE_FILES "ModifyDeviceFiles: 0"
const char *graft_procfs_without_device_files(const char *text, struct graft_arena *arena, bool *ret_changed);

/*
 * Returns the driver version in /proc/driver/nvidia/version: the first dotted number of the "NVRM
 * version:" line ("550.54.14"; the rest of that line differs between proprietary and open modules).
 * NULL if there is none, or if out of memory.
 */
const char *graft_procfs_driver_version(const char *text, size_t length, struct graft_arena *arena);

/*
 * Finds the major number of a character device in /proc/devices. The name must be the entire rest
 * of the line. Returns false if absent.
 */
bool graft_procfs_devices_major(const char *text, size_t length, const char *name, uint32_t *ret_major);

/* A line of /proc/driver/nvidia-caps/mig-minors. gpu, gi and ci are -1 if the line lacks them. */
enum graft_mig_minor_kind { GRAFT_MIG_MINOR_CONFIG, GRAFT_MIG_MINOR_MONITOR, GRAFT_MIG_MINOR_GI, GRAFT_MIG_MINOR_CI };
struct graft_mig_minor {
	enum graft_mig_minor_kind kind;
	int gpu, gi, ci;
	uint32_t minor;
};
/* Unknown lines are skipped (newer drivers add kinds). */
int graft_procfs_mig_minors(const char *text, size_t length, struct graft_arena *arena,
			    struct graft_mig_minor **ret_items, size_t *ret_n);

/* A line of /proc/PID/mountinfo (proc(5)) with octal escapes decoded. */
struct graft_mountinfo {
	int mount_id, parent_id;
	uint32_t major, minor;
	bool shared; /* in a peer group: mounts made on it propagate to its peers */
	const char *root, *mount_point, *options, *fs_type, *source, *super_options;
};
/* Parses all well-formed lines; others are skipped. */
int graft_procfs_mountinfo(const char *text, size_t length, struct graft_arena *arena,
			   struct graft_mountinfo **ret_items, size_t *ret_n);

/* A line of /proc/PID/cgroup: "id:controllers:path", split at the first two colons. */
struct graft_cgroup_entry {
	const char *controllers; /* "" for cgroup v2 */
	const char *path;
};
/* Fails with GRAFT_FORMAT, "malformed cgroup entry: <line>", if a line has fewer parts. */
int graft_procfs_cgroup(const char *text, size_t length, struct graft_arena *arena,
			struct graft_cgroup_entry **ret_items, size_t *ret_n, struct graft_error *err);

/*
 * Reads /proc/PID/stat: the state ('Z' is a zombie) and when the process started, in clock ticks
 * since the host did. The name in field 2 may contain anything and ends with the last bracket.
 * Returns false if the text has another form.
 */
bool graft_procfs_stat(const char *text, char *ret_state, uint64_t *ret_start);

/*
 * The same file: the process's name, which any user may choose, its parent, and the processor time
 * of its descendants that have been waited for, in clock ticks.
 */
struct graft_process_family {
	char name[64];
	int parent;
	uint64_t children_ticks;
};
/* Returns false if the text has another form, or the name is too long. */
bool graft_procfs_family(const char *text, struct graft_process_family *ret_family);

/*
 * Parses a PCI address "DDDD:BB:DD.F" in upper or lower case. The domain has 4 to 8 digits (the
 * kernel prints as many as needed). Returns false if it is malformed.
 */
struct graft_pci_address {
	uint32_t domain, bus, device, function;
};
bool graft_pci_parse(const char *text, struct graft_pci_address *ret_address);
/*
 * Returns the name that sysfs and udev have for the device at `address` ("00000000:1b:00.0"): the
 * domain has four digits, or more if necessary. NULL if it is malformed, or if out of memory.
 */
const char *graft_pci_sysfs_name(const char *address, struct graft_arena *arena);
/* Compares two addresses. Returns < 0, 0 or > 0. */
int graft_pci_compare(const struct graft_pci_address *a, const struct graft_pci_address *b);

/* The bytes of /proc/PID/cmdline: arguments, each followed by a NUL. */
struct graft_command_line {
	const char *text;
	size_t length;
};
/*
 * Returns the value of the first option of that name, "NAME VALUE" or "NAME=VALUE"; NULL if it is
 * not given. The last argument must be followed by a NUL, within the length or after it.
 */
const char *graft_procfs_option(const struct graft_command_line *line, const char *name);

/*
 * Whether the value of NSpid in /proc/PID/status is that of a process in a container: it has one
 * number for each PID namespace from ours down to the process's own. NULL, of old kernels, is not.
 */
bool graft_procfs_is_in_container(const char *ids);

#endif
