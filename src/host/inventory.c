/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory: the field tables of the inventory's JSON form, and its allocation. Knows nothing of
 * where facts come from.
 */
#include "host/inventory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

/*
 * The text form is limited to 16 MiB (formats/record.h); a host with 64 GPUs, all in MIG mode,
 * needs less than 1 MiB.
 */
#define ARENA_MAX ((size_t)64 << 20)

const char *const graft_platform_names[4] = { "none", "native", "wsl2", "tegra" };

/* The member is called `class_` for C++; the JSON name has no underscore. */
#define F_CLASS(S, d)                                                                                              \
	{                                                                                                          \
		"class", GRAFT_FIELD_ENUM, offsetof(S, class_), 0, NULL, graft_class_names, GRAFT_CLASS_MAX, true, \
		    GRAFT_DOC(d)                                                                                   \
	}

static const struct graft_field fact_fields[] = {
	GRAFT_F_STRING(struct graft_fact, value, false, "the fact; absent when it is not known"),
	GRAFT_F_STRING(struct graft_fact, source, false, "where it was read"),
};
static const struct graft_record fact_record = { "fact", sizeof(struct graft_fact), fact_fields,
						 GRAFT_COUNT(fact_fields) };

static const struct graft_field node_fields[] = {
	GRAFT_F_STRING(struct graft_node, path, false, "path below the driver root"),
	GRAFT_F_U32(struct graft_node, major, false,
		    "major number; if the node does not exist, the one that it must have"),
	GRAFT_F_U32(struct graft_node, minor, false, "minor number, likewise"),
	GRAFT_F_BOOL(struct graft_node, present, "a character device with these numbers is at the path"),
	GRAFT_F_U32(struct graft_node, mode, false,
		    "permission bits as a decimal number; 0 if the node does not exist"),
	GRAFT_F_U32(struct graft_node, uid, false, "owner"),
	GRAFT_F_U32(struct graft_node, gid, false, "group"),
	GRAFT_F_STRING(struct graft_node, source, false, "where the numbers were read"),
};
static const struct graft_record node_record = { "node", sizeof(struct graft_node), node_fields,
						 GRAFT_COUNT(node_fields) };

static const struct graft_field library_fields[] = {
	GRAFT_F_STRING(struct graft_library, path, true, "the library file, links resolved"),
	GRAFT_F_STRING(struct graft_library, soname, true, "the name that the loader looks for"),
	GRAFT_F_U32(struct graft_library, abi_flags, true, "ABI as the flags word of ld.so.cache"),
	F_CLASS(struct graft_library, "capabilities that include it"),
	GRAFT_F_STRING(struct graft_library, source, true, "where its name was found"),
	GRAFT_F_BOOL(struct graft_library, development_link,
		     "a link with the name that programs are linked with (libcuda.so) is beside it"),
};
static const struct graft_record library_record = { "library", sizeof(struct graft_library), library_fields,
						    GRAFT_COUNT(library_fields) };

static const struct graft_field binary_fields[] = {
	GRAFT_F_STRING(struct graft_binary, path, true, "the program file, links resolved"),
	GRAFT_F_STRING(struct graft_binary, name, true, "the name it was looked up by"),
	F_CLASS(struct graft_binary, "capabilities that include it"),
	GRAFT_F_STRING(struct graft_binary, source, true, "where it was found"),
};
static const struct graft_record binary_record = { "binary", sizeof(struct graft_binary), binary_fields,
						   GRAFT_COUNT(binary_fields) };

static const struct graft_field ipc_fields[] = {
	GRAFT_F_STRING(struct graft_ipc, path, true, "the socket or directory, links resolved"),
	GRAFT_F_BOOL(struct graft_ipc, directory, "it is a directory"),
	F_CLASS(struct graft_ipc, "capabilities that include it"),
	GRAFT_F_STRING(struct graft_ipc, source, true, "where its name was found"),
};
static const struct graft_record ipc_record = { "ipc", sizeof(struct graft_ipc), ipc_fields, GRAFT_COUNT(ipc_fields) };

static const struct graft_field extra_file_fields[] = {
	GRAFT_F_STRING(struct graft_extra_file, path, true, "where the file is"),
	GRAFT_F_STRING(struct graft_extra_file, target, false,
		       "where it belongs in a container; absent: at the same path"),
	F_CLASS(struct graft_extra_file, "capabilities that include it"),
	GRAFT_F_STRING(struct graft_extra_file, source, true, "where its name was found"),
};
static const struct graft_record extra_file_record = { "extra_file", sizeof(struct graft_extra_file), extra_file_fields,
						       GRAFT_COUNT(extra_file_fields) };

static const struct graft_field gate_node_fields[] = {
	GRAFT_F_ENUM(struct graft_gate_node, gate, graft_gate_names, GRAFT_GATE_MAX, true, "what it belongs to"),
	GRAFT_F_RECORD(struct graft_gate_node, node, &node_record, "the device node"),
};
static const struct graft_record gate_node_record = { "gate_node", sizeof(struct graft_gate_node), gate_node_fields,
						      GRAFT_COUNT(gate_node_fields) };

static const struct graft_field gate_file_fields[] = {
	GRAFT_F_ENUM(struct graft_gate_file, gate, graft_gate_names, GRAFT_GATE_MAX, true, "what it belongs to"),
	GRAFT_F_STRING(struct graft_gate_file, path, true, "the file or directory, links resolved"),
	GRAFT_F_STRING(struct graft_gate_file, target, false, "where programs look for it; absent: at the same path"),
	GRAFT_F_BOOL(struct graft_gate_file, directory, "it is a directory"),
};
static const struct graft_record gate_file_record = { "gate_file", sizeof(struct graft_gate_file), gate_file_fields,
						      GRAFT_COUNT(gate_file_fields) };

static const struct graft_field drm_node_fields[] = {
	GRAFT_F_RECORD(struct graft_drm_node, node, &node_record, "the device node"),
	GRAFT_F_STRING(struct graft_drm_node, by_path, false,
		       "link that names the node by the GPU's PCI address; absent when there is none"),
	GRAFT_F_STRING(struct graft_drm_node, by_path_content, false, "destination of that link"),
};
static const struct graft_record drm_node_record = { "drm_node", sizeof(struct graft_drm_node), drm_node_fields,
						     GRAFT_COUNT(drm_node_fields) };

static const struct graft_field proc_file_fields[] = {
	GRAFT_F_STRING(struct graft_proc_file, path, true, "path of the file in procfs"),
	GRAFT_F_U32(struct graft_proc_file, mode, false, "permission bits as a decimal number"),
	GRAFT_F_STRING(struct graft_proc_file, content, false, "its text"),
	GRAFT_F_STRING(struct graft_proc_file, source, false, "where it was read"),
};
static const struct graft_record proc_file_record = { "proc_file", sizeof(struct graft_proc_file), proc_file_fields,
						      GRAFT_COUNT(proc_file_fields) };

static const struct graft_field mig_device_fields[] = {
	GRAFT_F_U32(struct graft_mig_device, index, true, "position in the list of its GPU"),
	GRAFT_F_U32(struct graft_mig_device, gi, true, "GPU instance"),
	GRAFT_F_U32(struct graft_mig_device, ci, true, "compute instance"),
	GRAFT_F_RECORD(struct graft_mig_device, uuid, &fact_record, "UUID, which only NVML knows"),
	GRAFT_F_RECORD(struct graft_mig_device, profile, &fact_record,
		       "profile (1g.5gb), which only NVML knows; '+gfx' means that it does graphics"),
	GRAFT_F_STRING(struct graft_mig_device, gi_caps_path, false, "directory of the GPU instance's access file"),
	GRAFT_F_STRING(struct graft_mig_device, ci_caps_path, false, "directory of the compute instance's access file"),
	GRAFT_F_RECORD(struct graft_mig_device, gi_node, &node_record, "capability node of the GPU instance"),
	GRAFT_F_RECORD(struct graft_mig_device, ci_node, &node_record, "capability node of the compute instance"),
	GRAFT_F_STRING(struct graft_mig_device, source, false, "where it was read"),
};
static const struct graft_record mig_device_record = { "mig_device", sizeof(struct graft_mig_device), mig_device_fields,
						       GRAFT_COUNT(mig_device_fields) };

static const struct graft_field gpu_fields[] = {
	GRAFT_F_U32(struct graft_gpu, index, true, "position by bus id among the GPUs that are not excluded"),
	GRAFT_F_BOOL(struct graft_gpu, excluded,
		     "the driver is configured not to use this GPU; its index has no meaning"),
	GRAFT_F_STRING(struct graft_gpu, bus_id, false, "PCI address with a 32-bit domain, function always 0"),
	GRAFT_F_STRING(struct graft_gpu, procfs_path, false, "its directory in procfs; absent when there is none"),
	GRAFT_F_RECORD(struct graft_gpu, uuid, &fact_record, "GPU-..."),
	GRAFT_F_RECORD(struct graft_gpu, model, &fact_record, "product name"),
	GRAFT_F_RECORD(struct graft_gpu, brand, &fact_record, "product line, which only NVML knows"),
	GRAFT_F_RECORD(struct graft_gpu, arch, &fact_record, "compute capability, which only NVML knows"),
	GRAFT_F_RECORD(struct graft_gpu, addressing, &fact_record,
		       "how it addresses the CPU's memory: ats (coherent), hmm or none, which only NVML knows"),
	GRAFT_F_RECORD(struct graft_gpu, node, &node_record, "its device node; absent on WSL2"),
	GRAFT_F_BOOL(struct graft_gpu, mig_capable, "it supports MIG"),
	GRAFT_F_BOOL(struct graft_gpu, mig_enabled, "it is in MIG mode"),
	GRAFT_F_STRING(struct graft_gpu, mig_caps_path, false, "directory of its capability files"),
	GRAFT_F_RECORDS(struct graft_gpu, mig_devices, &mig_device_record, "compute instances, by (gi, ci)"),
	GRAFT_F_RECORDS(struct graft_gpu, caps_nodes, &node_record,
			"all capability nodes that the driver names for this GPU"),
	GRAFT_F_RECORDS(struct graft_gpu, drm_nodes, &drm_node_record, "its display and render nodes"),
	GRAFT_F_STRING(struct graft_gpu, source, false, "where index, bus id and minor were read"),
};
static const struct graft_record gpu_record = { "gpu", sizeof(struct graft_gpu), gpu_fields, GRAFT_COUNT(gpu_fields) };

static const struct graft_field imex_node_fields[] = {
	GRAFT_F_U32(struct graft_imex_node, channel, true, "channel number"),
	GRAFT_F_RECORD(struct graft_imex_node, node, &node_record, "its device node"),
};
static const struct graft_record imex_node_record = { "imex_node", sizeof(struct graft_imex_node), imex_node_fields,
						      GRAFT_COUNT(imex_node_fields) };

static const struct graft_field omission_fields[] = {
	GRAFT_F_STRING(struct graft_omission, what, true, "what was searched for"),
	GRAFT_F_STRING(struct graft_omission, why, true, "why it is not here"),
};
static const struct graft_record omission_record = { "omission", sizeof(struct graft_omission), omission_fields,
						     GRAFT_COUNT(omission_fields) };

static const struct graft_field inventory_fields[] = {
	GRAFT_F_U32(struct graft_inventory, version, true, "version of this format"),
	GRAFT_F_ENUM(struct graft_inventory, platform, graft_platform_names, GRAFT_COUNT(graft_platform_names), true,
		     "kind of host"),
	GRAFT_F_BOOL(struct graft_inventory, simulated, "the driver states that it is simulated"),
	GRAFT_F_STRING(struct graft_inventory, root, false, "driver root on the host"),
	GRAFT_F_STRING(struct graft_inventory, dev_root, false, "prefix of device node paths"),
	GRAFT_F_STRING(struct graft_inventory, proc_root, false, "prefix of procfs paths"),
	GRAFT_F_STRING(struct graft_inventory, ldcache, false, "the loader's cache below the driver root"),
	GRAFT_F_STRING(struct graft_inventory, machine, false, "machine name of the kernel"),
	GRAFT_F_RECORD(struct graft_inventory, driver_version, &fact_record, "version of the kernel driver"),
	GRAFT_F_RECORD(
	    struct graft_inventory, cuda_version, &fact_record,
	    "CUDA version; exact from NVML, or the highest that the driver supports (the source says which)"),
	GRAFT_F_RECORD(struct graft_inventory, library_version, &fact_record,
		       "version in the name of the NVML library"),
	GRAFT_F_STRING(struct graft_inventory, nvml_library, false, "the NVML library, links resolved"),
	GRAFT_F_BOOL(struct graft_inventory, caps_devices, "the kernel has capability device nodes"),
	GRAFT_F_BOOL(struct graft_inventory, proc_driver_nvidia, "the running kernel has /proc/driver/nvidia"),
	GRAFT_F_RECORDS(struct graft_inventory, nodes, &node_record, "device nodes that belong to no single GPU"),
	GRAFT_F_RECORDS(struct graft_inventory, gpus, &gpu_record, "GPUs by bus id, excluded ones last"),
	GRAFT_F_RECORDS(struct graft_inventory, libraries, &library_record, "libraries of the host's own ABI"),
	GRAFT_F_RECORDS(struct graft_inventory, libraries32, &library_record, "libraries of its 32-bit companion"),
	GRAFT_F_RECORDS(struct graft_inventory, binaries, &binary_record, "programs of the driver"),
	GRAFT_F_STRINGS(struct graft_inventory, firmwares, "firmware files of the driver's version"),
	GRAFT_F_RECORDS(struct graft_inventory, ipcs, &ipc_record, "sockets and directories of the driver's daemons"),
	GRAFT_F_RECORDS(struct graft_inventory, extra_files, &extra_file_record,
			"other files that programs expect at fixed places"),
	GRAFT_F_RECORDS(struct graft_inventory, proc_files, &proc_file_record,
			"procfs files for the container's own view"),
	GRAFT_F_RECORD(struct graft_inventory, mig_config_node, &node_record, "capability node of mig/config"),
	GRAFT_F_RECORD(struct graft_inventory, mig_monitor_node, &node_record, "capability node of mig/monitor"),
	GRAFT_F_RECORDS(struct graft_inventory, imex, &imex_node_record, "IMEX channels"),
	GRAFT_F_RECORDS(struct graft_inventory, gate_nodes, &gate_node_record,
			"device nodes of gates that were asked for"),
	GRAFT_F_RECORDS(struct graft_inventory, gate_files, &gate_file_record,
			"files and directories of gates that were asked for"),
	GRAFT_F_RECORDS(struct graft_inventory, management_nodes, &node_record,
			"every device node of the driver, to manage all GPUs"),
	GRAFT_F_RECORDS(struct graft_inventory, omissions, &omission_record,
			"what was searched for and is missing, or was found and refused, and why"),
};

const struct graft_record graft_inventory_record = { "inventory", sizeof(struct graft_inventory), inventory_fields,
						     GRAFT_COUNT(inventory_fields) };

void graft_node_describe(struct graft_node *node, const struct stat *st)
{
	node->major = major(st->st_rdev);
	node->minor = minor(st->st_rdev);
	node->present = true;
	node->mode = st->st_mode & 07777;
	node->uid = st->st_uid;
	node->gid = st->st_gid;
}

size_t graft_inventory_count_gpus(const struct graft_inventory *inventory)
{
	size_t n = 0;

	for (size_t i = 0; i < inventory->n_gpus; i++)
		n += !inventory->gpus[i].excluded;
	return n;
}

struct graft_inventory *graft_inventory_free(struct graft_inventory *inventory)
{
	if (inventory)
		(void)graft_arena_free(inventory->arena);
	return NULL;
}

struct graft_inventory *graft_inventory_new(void)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_inventory *inventory = arena ? graft_arena_alloc(arena, sizeof(*inventory)) : NULL;

	if (!inventory) {
		(void)graft_arena_free(arena);
		return NULL;
	}
	inventory->version = GRAFT_INVENTORY_VERSION;
	inventory->arena = arena;
	return inventory;
}

void graft_inventory_write(const struct graft_inventory *inventory, struct graft_buffer *out)
{
	graft_record_write(&graft_inventory_record, inventory, out);
}

/* Skips blanks and then `text`. Returns NULL if something else follows. */
static const char *skip(const char *at, const char *end, const char *text)
{
	size_t length = strlen(text);

	while (at && at < end && isspace((unsigned char)*at))
		at++;
	return at && (size_t)(end - at) >= length && memcmp(at, text, length) == 0 ? at + length : NULL;
}

/*
 * Returns the version if it is the first member, where the writer puts it, and 0 otherwise. It is
 * read ahead of the strict reader, which would complain about the first unknown member instead of
 * reporting a version mismatch.
 */
static unsigned long peek_version(const char *json, size_t length)
{
	const char *end = json + length;
	const char *at = skip(skip(skip(skip(json, end, "{"), end, "\"version\""), end, ":"), end, "");
	unsigned long version = 0;

	for (; at && at < end && isdigit((unsigned char)*at) && version < 1000000; at++)
		version = version * 10 + (unsigned long)(*at - '0');
	return version;
}

int graft_inventory_read(const char *json, size_t length, struct graft_inventory **ret_inventory,
			 struct graft_error *err)
{
	unsigned long version = peek_version(json, length);
	struct graft_inventory *inventory;

	if (version != 0 && version != GRAFT_INVENTORY_VERSION)
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "unsupported inventory version: %lu", version);
	inventory = graft_inventory_new();
	if (!inventory)
		return graft_fail_memory(err);
	inventory->version = 0;
	if (graft_record_read(&graft_inventory_record, json, length, inventory->arena, inventory, err) < 0) {
		(void)graft_inventory_free(inventory);
		return graft_wrap(err, "inventory");
	}
	if (inventory->version != GRAFT_INVENTORY_VERSION) {
		version = inventory->version;
		(void)graft_inventory_free(inventory);
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "unsupported inventory version: %lu", version);
	}
	*ret_inventory = inventory;
	return 0;
}
