/* SPDX-License-Identifier: Apache-2.0 */
/* faults: the words of --fault and of `faults:`. A fault changes the topology; it is data, never environment of the libraries. */
#include "topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const char sim_fault_help[] =
    "  nvml-init-delay=SECONDS  NVML takes that long to initialise (fractions allowed)\n"
    "  nvml-init-fail=CODE      NVML's initialisation answers with that nvmlReturn_t\n"
    "  nvml-mismatch            kernel module and libraries have different versions\n"
    "  nvml-crash               NVML's initialisation ends in SIGSEGV\n"
    "  gpu-lost=INDEX           that GPU has fallen off the bus\n"
    "  missing=NAME             no library (file name or soname), binary, node or file of that name, or\n"
    "                           nothing at and below that absolute path; may be given several times\n";

static int bad(const char *fault, const char *why, struct graft_error *err)
{
	return graft_fail(err, GRAFT_INVALID, 0, "fault '%s': %s", fault, why);
}

static int add_delay(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err)
{
	double seconds;
	char *end;

	seconds = strtod(value, &end);
	if (end == value || *end != '\0' || !(seconds >= 0 && seconds <= 3600))
		return bad(fault, "not a number of seconds from 0 to 3600", err);
	topology->faults.init_delay_ms = (uint32_t)(seconds * 1000);
	return 0;
}

static int parse_number(const char *text, unsigned long max, uint32_t *ret_number)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > max)
		return -1;
	*ret_number = (uint32_t)value;
	return 0;
}

static int add_failure(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err)
{
	if (parse_number(value, 999, &topology->faults.init_fail) < 0)
		return bad(fault, "not an nvmlReturn_t from 0 to 999", err);
	return 0;
}

static int add_mismatch(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err)
{
	unsigned int major = topology->driver_major;

	(void)value;
	if (!topology->module)
		return bad(fault, "no kernel module is loaded in this topology", err);
	/* What a machine looks like after an upgrade without a reboot: the module is the older one. */
	topology->module = graft_arena_printf(topology->arena, "%u.%s", major, major == 550 ? "40.07" : "10.02");
	return topology->module ? 0 : graft_fail_memory(err);
}

static int add_crash(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err)
{
	(void)fault;
	(void)value;
	(void)err;
	topology->faults.crash = true;
	return 0;
}

static int add_lost(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err)
{
	uint32_t index;

	if (parse_number(value, SIM_MAX_GPUS, &index) < 0 || index >= topology->n_gpus)
		return bad(fault, "the topology has no GPU of that index", err);
	topology->gpus[index].lost = true;
	return 0;
}

static int add_missing(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err)
{
	if (value[0] == '\0')
		return bad(fault, "a name is expected", err);
	if (!graft_arena_push_string(topology->arena, &topology->faults.missing, &topology->faults.n_missing, value))
		return graft_fail_memory(err);
	return 0;
}

static const struct {
	const char *word;
	bool has_value;
	int (*add)(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err);
} faults[] = {
	{ "nvml-init-delay", true, add_delay },   { "nvml-init-fail", true, add_failure },
	{ "nvml-mismatch", false, add_mismatch }, { "nvml-crash", false, add_crash },
	{ "gpu-lost", true, add_lost },           { "missing", true, add_missing },
};

int sim_topology_add_fault(struct sim_topology *topology, const char *fault, struct graft_error *err)
{
	size_t length = strcspn(fault, "=");
	bool has_value = fault[length] == '=';

	for (size_t i = 0; i < GRAFT_COUNT(faults); i++) {
		if (strlen(faults[i].word) != length || strncmp(faults[i].word, fault, length) != 0)
			continue;
		if (faults[i].has_value != has_value)
			return bad(fault, has_value ? "it takes no value" : "a value is missing", err);
		return faults[i].add(topology, fault, fault + length + (has_value ? 1 : 0), err);
	}
	return bad(fault, "unknown; 'graft-sim --help' lists the faults", err);
}

static bool is_at_or_below(const char *path, const char *place)
{
	size_t length = strlen(place);

	return strncmp(path, place, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool sim_topology_is_missing(const struct sim_topology *topology, const char *path, const char *const *names)
{
	for (size_t i = 0; i < topology->faults.n_missing; i++) {
		const char *missing = topology->faults.missing[i];

		if (missing[0] == '/' && is_at_or_below(path, missing))
			return true;
		for (const char *const *name = names; *name; name++) {
			if (strcmp(*name, missing) == 0)
				return true;
		}
	}
	return false;
}
