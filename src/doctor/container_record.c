/* SPDX-License-Identifier: Apache-2.0 */
/* container_record: the field tables for the JSON form of a container's case. */
#include "base/cleanup.h"
#include "doctor/container_case.h"

const char *const graft_case_way_names[GRAFT_CASE_WAY_MAX] = {
#define X(name, word) word,
	GRAFT_CASE_WAY_LIST(X)
#undef X
};

const char *const graft_device_answer_names[3] = { "unknown", "allowed", "denied" };

const char *const graft_case_check_ids[GRAFT_CASE_CHECK_MAX] = {
	[GRAFT_CASE_REQUEST] = "request",   [GRAFT_CASE_WAY] = "way",
	[GRAFT_CASE_RUNNING] = "running",   [GRAFT_CASE_DRIVER] = "driver",
	[GRAFT_CASE_DEVICES] = "devices",   [GRAFT_CASE_NODES] = "nodes",
	[GRAFT_CASE_RULES] = "rules",       [GRAFT_CASE_LIBRARIES] = "libraries",
	[GRAFT_CASE_VERSIONS] = "versions", [GRAFT_CASE_LOADER_CACHE] = "loader-cache",
	[GRAFT_CASE_LINKS] = "links",
};

#define RECORD(name, S)                                                                                  \
	static const struct graft_record name##_record = { "container_" #name, sizeof(S), name##_fields, \
							   GRAFT_COUNT(name##_fields) }

static const struct graft_field request_fields[] = {
	GRAFT_F_BOOL(struct graft_case_request, known, "what it asked for is known"),
	GRAFT_F_BOOL(struct graft_case_request, configured, "its config.json was read"),
	GRAFT_F_STRING(struct graft_case_request, problem, false, "why it could not be read or understood"),
	GRAFT_F_BOOL(struct graft_case_request, wants, "it asks for GPUs in a way that counts"),
	GRAFT_F_BOOL(struct graft_case_request, replaced, "the runtime has set NVIDIA_VISIBLE_DEVICES to void"),
	GRAFT_F_STRING(struct graft_case_request, origin, false, "variable, annotations or volume mounts that ask"),
	GRAFT_F_STRINGS(struct graft_case_request, devices, "devices asked for"),
	GRAFT_F_STRING(struct graft_case_request, ignored, false, "variable that asks and does not count"),
	GRAFT_F_BOOL(struct graft_case_request, privileged, "it is privileged"),
	GRAFT_F_STRINGS(struct graft_case_request, variables, "its variables NVIDIA_*"),
	GRAFT_F_STRINGS(struct graft_case_request, annotations, "its annotations of CDI and NVIDIA"),
	GRAFT_F_STRINGS(struct graft_case_request, mounts, "mounts that name devices"),
	GRAFT_F_STRINGS(struct graft_case_request, options, "options of its engine that ask"),
	GRAFT_F_STRINGS(struct graft_case_request, nodes, "GPU nodes in its config.json"),
	GRAFT_F_STRINGS(struct graft_case_request, hooks, "stage and path of its hooks for GPUs"),
	GRAFT_F_U32(struct graft_case_request, n_driver_mounts, false, "mounts of the driver's libraries in it"),
};
RECORD(request, struct graft_case_request);

static const struct graft_field node_fields[] = {
	GRAFT_F_STRING(struct graft_case_node, path, true, "in the container"),
	GRAFT_F_BOOL(struct graft_case_node, present, "the container has it"),
	GRAFT_F_U32(struct graft_case_node, major, false, "its numbers there"),
	GRAFT_F_U32(struct graft_case_node, minor, false, ""),
	GRAFT_F_BOOL(struct graft_case_node, on_host, "the host has a node at that path"),
	GRAFT_F_U32(struct graft_case_node, host_major, false, "its numbers on the host"),
	GRAFT_F_U32(struct graft_case_node, host_minor, false, ""),
	GRAFT_F_BOOL(struct graft_case_node, has_link, "the host has its link in /dev/char"),
	GRAFT_F_ENUM(struct graft_case_node, answer, graft_device_answer_names, GRAFT_COUNT(graft_device_answer_names),
		     false, "what the device cgroup answers to reading and writing"),
	GRAFT_F_STRING(struct graft_case_node, gpu, false, "UUID or PCI address of the host's GPU"),
	GRAFT_F_BOOL(struct graft_case_node, gpu_lost, "that GPU no longer answers on the PCI bus"),
};
RECORD(node, struct graft_case_node);

static const struct graft_field library_fields[] = {
	GRAFT_F_STRING(struct graft_case_library, path, true, "in the container"),
	GRAFT_F_STRING(struct graft_case_library, version, true, "at the end of its name"),
	GRAFT_F_BOOL(struct graft_case_library, deleted, "its file is gone from the host"),
	GRAFT_F_STRING(struct graft_case_library, soname, false, "name that programs ask for"),
	GRAFT_F_BOOL(struct graft_case_library, linked, "a link of that name is beside it"),
	GRAFT_F_BOOL(struct graft_case_library, cached, "the loader cache has that name"),
};
RECORD(library, struct graft_case_library);

static const struct graft_field got_fields[] = {
	GRAFT_F_BOOL(struct graft_case_got, known, "it is running and was examined"),
	GRAFT_F_STRING(struct graft_case_got, problem, false, "why it was not examined"),
	GRAFT_F_RECORDS(struct graft_case_got, nodes, &node_record, "device nodes of the driver"),
	GRAFT_F_RECORDS(struct graft_case_got, libraries, &library_record, "libraries of the driver"),
	GRAFT_F_BOOL(struct graft_case_got, has_cache, "it has /etc/ld.so.cache"),
	GRAFT_F_STRING(struct graft_case_got, cache_problem, false, "why that cannot be used"),
	GRAFT_F_U32(struct graft_case_got, cgroup_version, false, "of its device cgroup"),
	GRAFT_F_STRING(struct graft_case_got, cgroup, false, "directory of that"),
	GRAFT_F_STRING(struct graft_case_got, cgroup_problem, false, "why its rules could not be read"),
	GRAFT_F_BOOL(struct graft_case_got, scope, "systemd manages it"),
};
RECORD(got, struct graft_case_got);

static const struct graft_field case_finding_fields[] = {
	GRAFT_F_ENUM(struct graft_case_finding, check, graft_case_check_ids, GRAFT_CASE_CHECK_MAX, true, "id"),
	GRAFT_F_ENUM(struct graft_case_finding, level, graft_level_names, GRAFT_LEVEL_MAX, true, "how bad it is"),
	GRAFT_F_STRING(struct graft_case_finding, cause, true, "what was found"),
	GRAFT_F_STRING(struct graft_case_finding, remedy, false, "what to do"),
};
static const struct graft_record case_finding_record = { "container_finding", sizeof(struct graft_case_finding),
							 case_finding_fields, GRAFT_COUNT(case_finding_fields) };

static const struct graft_field case_fields[] = {
	GRAFT_F_U32(struct graft_case, version, true, "version of this format"),
	GRAFT_F_ENUM(struct graft_case, verdict, graft_level_names, GRAFT_LEVEL_MAX, true, "the worst level"),
	GRAFT_F_STRING(struct graft_case, summary, true, "the verdict in one sentence"),
	GRAFT_F_STRING(struct graft_case, remedy, false, "what to do about it"),
	GRAFT_F_ENUM(struct graft_case, engine, graft_keeper_names, GRAFT_KEEPER_MAX, true, "engine that keeps it"),
	GRAFT_F_STRING(struct graft_case, id, true, "its ID"),
	GRAFT_F_STRING(struct graft_case, name, false, "its name"),
	GRAFT_F_STRING(struct graft_case, pod, false, "Kubernetes: its pod"),
	GRAFT_F_STRING(struct graft_case, bundle, false, "directory of its config.json"),
	GRAFT_F_STRING(struct graft_case, runtime, false, "runtime that its engine called"),
	GRAFT_F_U32(struct graft_case, pid, false, "its first process; absent if it is not running"),
	GRAFT_F_STRING(struct graft_case, start_error, false, "Docker: why it could not be started"),
	GRAFT_F_ENUM(struct graft_case, way, graft_case_way_names, GRAFT_CASE_WAY_MAX, true, "how GPUs come to it"),
	GRAFT_F_STRING(struct graft_case, mode, false, "mode of the runtime or hook"),
	GRAFT_F_STRING(struct graft_case, late_mounts, false,
		       "files that the low-level runtime did not mount, and why others"),
	GRAFT_F_RECORD(struct graft_case, asked, &request_record, "what it asked for"),
	GRAFT_F_RECORD(struct graft_case, got, &got_record, "what it has now"),
	GRAFT_F_STRING(struct graft_case, driver_version, false, "of the driver that is loaded now"),
	GRAFT_F_RECORDS(struct graft_case, findings, &case_finding_record, "in the order of the chain"),
};
const struct graft_record graft_case_record = { "container_case", sizeof(struct graft_case), case_fields,
						GRAFT_COUNT(case_fields) };
