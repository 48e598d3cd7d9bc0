/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults: parses --fault and `faults:`. A fault changes the topology; it reaches the libraries as
 * data, never through the environment.
 */
#include "topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"

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
	/* As after an upgrade without a reboot: the module is the older one. */
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

static int push_xid(struct sim_topology *topology, uint32_t gpu, uint32_t number)
{
	struct sim_fault_xid *xid = graft_arena_push(topology->arena, &topology->faults.xids, &topology->faults.n_xids,
						     sizeof(*xid));

	if (!xid)
		return -1;
	*xid = (struct sim_fault_xid){ gpu, number };
	return 0;
}

static int add_lost(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err)
{
	uint32_t index;

	if (parse_number(value, SIM_MAX_GPUS, &index) < 0 || index >= topology->n_gpus)
		return bad(fault, "the topology has no GPU of that index", err);
	topology->gpus[index].lost = true;
	return push_xid(topology, index, 79) < 0 ? graft_fail_memory(err) : 0;
}

static int add_xid(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err)
{
	size_t length = strcspn(value, ":");
	char *index = graft_arena_strndup(topology->arena, value, length);
	uint32_t gpu, number;

	if (!index)
		return graft_fail_memory(err);
	if (parse_number(index, SIM_MAX_GPUS, &gpu) < 0 || gpu >= topology->n_gpus)
		return bad(fault, "the topology has no GPU of that index", err);
	if (value[length] != ':' || parse_number(value + length + 1, 999, &number) < 0 || number == 0)
		return bad(fault, "an index and a number from 1 to 999 are expected, such as 0:79", err);
	topology->faults.needs_log = true;
	return push_xid(topology, gpu, number) < 0 ? graft_fail_memory(err) : 0;
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
	const char *word, *equals;
	int (*add)(struct sim_topology *topology, const char *fault, const char *value, struct graft_error *err);
} faults[] = {
#define X(word, equals, value, add, text) { word, equals, add },
	SIM_FAULT_LIST(X)
#undef X
};

static int bad_name(const char *fault, struct graft_error *err)
{
	char name[GRAFT_NEAREST_MAX + 1];
	struct graft_nearest_search search = { .word = name };

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(fault, "="), fault);
	for (size_t i = 0; i < GRAFT_COUNT(faults); i++)
		graft_nearest_consider(&search, faults[i].word);
	return graft_fail(err, GRAFT_INVALID, 0, "fault '%s': unknown%s%s%s; 'graft-sim run --help' lists the faults",
			  fault, search.best ? " (did you mean '" : "", search.best ? search.best : "",
			  search.best ? "'?)" : "");
}

int sim_topology_add_fault(struct sim_topology *topology, const char *fault, struct graft_error *err)
{
	size_t length = strcspn(fault, "=");
	bool has_value = fault[length] == '=';

	for (size_t i = 0; i < GRAFT_COUNT(faults); i++) {
		if (strlen(faults[i].word) != length || strncmp(faults[i].word, fault, length) != 0)
			continue;
		if ((faults[i].equals[0] != '\0') != has_value)
			return bad(fault, has_value ? "it takes no value" : "a value is missing", err);
		return faults[i].add(topology, fault, fault + length + (has_value ? 1 : 0), err);
	}
	return bad_name(fault, err);
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

/* Source of the texts: published kernel logs. */
static const char *xid_text(uint32_t number)
{
	switch (number) {
	case 13:
		return "Graphics Exception";
	case 31:
		return "MMU Fault";
	case 43:
		return "Ch 00000010";
	case 48:
		return "An uncorrectable double bit error (DBE) has been detected";
	case 63:
		return "Row Remapper: New row marked for remapping";
	case 64:
		return "Row Remapper: Failed to mark row for remapping";
	case 74:
		return "NVLink: fatal error detected";
	case 79:
		return "GPU has fallen off the bus.";
	case 94:
		return "Contained memory error";
	case 95:
		return "Uncontained memory error";
	case 119:
		return "Timeout waiting for RPC from GSP!";
	default:
		return "simulated by Graft";
	}
}

void sim_fault_log(const struct sim_topology *topology, struct graft_buffer *out)
{
	for (size_t i = 0; i < topology->faults.n_xids; i++) {
		const struct sim_fault_xid *xid = &topology->faults.xids[i];
		const struct sim_gpu *gpu = &topology->gpus[xid->gpu];

		graft_buffer_printf(out, "NVRM: Xid (PCI:%04x:%02x:%02x): %u, pid='<unknown>', name=<unknown>, %s\n",
				    gpu->domain, gpu->bus, gpu->device, xid->number, xid_text(xid->number));
	}
}
