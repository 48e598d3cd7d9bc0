/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_processes: the daemons of the driver and of the container engines, as seen in procfs.
 * Processes of containers are ignored: the caller does not ask about an engine inside a container.
 * An ordinary user sees names and owners of others' processes, and little else.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doctor/look.h"
#include "formats/procfs.h"

/* Names as in the kernel, truncated to 15 bytes. */
static const char *const interesting[] = { "dockerd",  "containerd",      "crio",           "kubelet",
					   "kubelite", "k3s-server",      "k3s-agent",      "k3s",
					   "rke2",     "nvidia-persiste", "nv-fabricmanage" };

static const struct {
	const char *name, *process, *socket;
} daemons[] = {
	{ "nvidia-persistenced", "nvidia-persiste", "/run/nvidia-persistenced/socket" },
	{ "nv-fabricmanager", "nv-fabricmanage", "/run/nvidia-fabricmanager/socket" },
};

static const char *find_interesting(const char *name)
{
	for (size_t i = 0; i < GRAFT_COUNT(interesting); i++) {
		if (strcmp(name, interesting[i]) == 0)
			return interesting[i];
	}
	return NULL;
}

/* Returns the boot time in seconds since 1970. */
static int64_t read_boot_time(struct graft_health_look *look)
{
	const char *text, *line;
	size_t length;

	if (graft_health_read_file(look, "/proc/stat", &text, &length) < 0)
		return 0;
	line = strstr(text, "\nbtime ");
	return line ? strtoll(line + strlen("\nbtime "), NULL, 10) : 0;
}

/*
 * Returns the latest second in which the process can have started, since /proc/stat and the
 * division each lose up to a second. With an earlier time, a file that existed before the daemon
 * could seem newer.
 */
static int64_t read_start(struct graft_health_look *look, const char *directory, int64_t boot_time)
{
	const char *path = graft_arena_printf(look->scratch, "%s/stat", directory), *text;
	long ticks = sysconf(_SC_CLK_TCK);
	uint64_t start;
	size_t length;
	char state;

	if (!path || boot_time == 0 || ticks <= 0 || graft_health_read_file(look, path, &text, &length) < 0)
		return 0;
	return graft_procfs_stat(text, &state, &start) ? boot_time + (int64_t)start / ticks + 1 : 0;
}

static void look_at_process(struct graft_health_look *look, const char *pid, int64_t boot_time)
{
	const char *directory = graft_arena_printf(look->scratch, "/proc/%s", pid), *path, *name, *text, *owner;
	struct graft_health_process *process;
	struct graft_key_value *items;
	size_t length, n;

	path = directory ? graft_arena_printf(look->scratch, "%s/status", directory) : NULL;
	/* A process may exit at any time; hidden ones are reported elsewhere. */
	if (!path || graft_root_read(look->host, path, GRAFT_SOURCE_FILE_MAX, look->scratch, &text, &length) < 0 ||
	    graft_procfs_key_values(text, length, look->scratch, &items, &n) < 0)
		return;
	name = graft_key_value_find(items, n, "Name");
	name = name ? find_interesting(name) : NULL;
	if (!name || graft_procfs_is_in_container(graft_key_value_find(items, n, "NSpid")))
		return;
	process = graft_arena_push(look->scratch, &look->processes, &look->n_processes, sizeof(*process));
	if (!process)
		return;
	owner = graft_key_value_find(items, n, "Uid");
	process->name = name;
	process->directory = directory;
	process->uid = owner ? (uint32_t)strtoul(owner, NULL, 10) : 0;
	process->started = read_start(look, directory, boot_time);
}

/* /proc/PID/comm is short, and for most processes nothing else is read. */
static bool is_interesting(struct graft_health_look *look, const char *pid)
{
	const char *path = graft_arena_printf(look->scratch, "/proc/%s/comm", pid), *text, *name;
	size_t length;

	if (!path || graft_root_read(look->host, path, GRAFT_SOURCE_FILE_MAX, look->scratch, &text, &length) < 0)
		return false;
	name = graft_arena_strndup(look->scratch, text, strcspn(text, "\n"));
	return name && find_interesting(name);
}

static void look_at_daemons(struct graft_health_look *look)
{
	struct graft_health *health = look->health;
	const char *resolved;
	struct stat st;

	for (size_t i = 0; i < GRAFT_COUNT(daemons); i++) {
		struct graft_health_daemon *daemon = graft_arena_push(look->arena, &health->daemons, &health->n_daemons,
								      sizeof(*daemon));

		if (!daemon)
			return;
		daemon->name = daemons[i].name;
		daemon->socket = daemons[i].socket;
		daemon->has_socket = graft_lookup_path(&look->survey.lookup, daemons[i].socket, &resolved, &st) == 0;
		for (size_t k = 0; k < look->n_processes; k++)
			daemon->running |= strcmp(look->processes[k].name, daemons[i].process) == 0;
	}
}

void graft_health_look_processes(struct graft_health_look *look)
{
	int64_t boot_time = read_boot_time(look);
	const char **names, *text;
	size_t n, length;

	if (graft_health_list(look, "/proc", &names, &n) == 0) {
		for (size_t i = 0; i < n; i++) {
			if (isdigit((unsigned char)names[i][0]) && is_interesting(look, names[i]))
				look_at_process(look, names[i], boot_time);
		}
	}
	look->health->processes_hidden = graft_root_read(look->host, "/proc/1/comm", GRAFT_SOURCE_FILE_MAX,
							 look->scratch, &text, &length) < 0;
	look->health->kubernetes = graft_health_find_kubelet(look) ||
				   graft_health_exists(look, "/var/lib/kubelet/config.yaml");
	look_at_daemons(look);
}

const struct graft_health_process *graft_health_find_process(const struct graft_health_look *look, const char *name)
{
	for (size_t i = 0; i < look->n_processes; i++) {
		if (look->processes[i].uid == 0 && strcmp(look->processes[i].name, name) == 0)
			return &look->processes[i];
	}
	return NULL;
}

const struct graft_health_process *graft_health_find_kubelet(const struct graft_health_look *look)
{
	/* Some distributions include it in a larger program. */
	static const char *const names[] = { "kubelet", "kubelite", "k3s-server", "k3s-agent", "k3s", "rke2" };
	const struct graft_health_process *process = NULL;

	for (size_t i = 0; i < GRAFT_COUNT(names) && !process; i++)
		process = graft_health_find_process(look, names[i]);
	return process;
}

bool graft_health_has_other_mounts(struct graft_health_look *look, const struct graft_health_process *process)
{
	const char *path = graft_arena_printf(look->scratch, "%s/ns/mnt", process->directory), *ours, *theirs;

	ours = graft_health_read_link(look, "/proc/self/ns/mnt");
	theirs = path ? graft_health_read_link(look, path) : NULL;
	return ours && theirs && strcmp(ours, theirs) != 0;
}
