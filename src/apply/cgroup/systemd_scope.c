/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_scope: maps a process to its scope and devices to DeviceAllow entries. Decides whether
 * systemd has to know at all; systemd_bus talks to it.
 *
 * Entries have the form "/dev/char/MAJOR:MINOR": since version 240 systemd takes the numbers from
 * the name, whether or not the link exists, now and after each reload. A class
 * ("char-nvidia-frontend") would let the container use every GPU.
 */
#include "apply/cgroup/systemd_scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "formats/procfs.h"

#define CGROUP_MAX ((size_t)1024 * 1024)
#define ARENA_MAX  ((size_t)16 * 1024 * 1024)
#define TIMEOUT_MS 2000
#define SCOPE      ".scope"

/* -------- the scope -------- */

static bool has_ending(const char *s, size_t length, const char *ending)
{
	size_t n = strlen(ending);

	return length > n && strncmp(s + length - n, ending, n) == 0;
}

/* "user@1000.service": below it, a user's own systemd manages the scopes. */
static bool is_user_manager(const char *component, size_t length)
{
	return strncmp(component, "user@", strlen("user@")) == 0 && has_ending(component, length, ".service");
}

/*
 * QUIRK: systemd prepends "_" to names that begin with "_" or "." or that could clash with the
 * kernel's own files.
 */
static bool set_scope(struct graft_scope *scope, const char *path, const char *component, size_t length)
{
	size_t skip = component[0] == '_' ? 1 : 0;
	size_t group = (size_t)(component - path) + length;

	if (length - skip >= sizeof(scope->name) || group >= sizeof(scope->group))
		return false;
	memcpy(scope->name, component + skip, length - skip);
	scope->name[length - skip] = '\0';
	memcpy(scope->group, path, group);
	scope->group[group] = '\0';
	return true;
}

bool graft_scope_find(const char *cgroup_path, const struct graft_log *log, struct graft_scope *ret_scope)
{
	bool found = false;
	size_t length;

	for (const char *at = cgroup_path; *at == '/'; at += length) {
		at++;
		length = strcspn(at, "/");
		if (length == 2 && strncmp(at, "..", 2) == 0) {
			graft_debug(log, "the cgroup '%s' is not visible", cgroup_path);
			return false;
		}
		if (is_user_manager(at, length)) {
			graft_info(log, "systemd was not informed of the devices: '%s' belongs to a user's systemd",
				   cgroup_path);
			return false;
		}
		if (has_ending(at, length, SCOPE))
			found = set_scope(ret_scope, cgroup_path, at, length);
	}
	return found;
}

/*
 * Prefers systemd's own hierarchy of cgroup v1, if there is one, over cgroup v2: the kernel may
 * list both on any host.
 */
static bool find_of_process(const char *text, size_t length, struct graft_arena *arena, const struct graft_log *log,
			    struct graft_scope *ret_scope, int *ret_rc, struct graft_error *err)
{
	struct graft_cgroup_entry *entries = NULL;
	size_t n = 0;

	*ret_rc = graft_procfs_cgroup(text, length, arena, &entries, &n, err);
	if (*ret_rc < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(entries[i].controllers, "name=systemd") == 0 &&
		    graft_scope_find(entries[i].path, log, ret_scope))
			return true;
	for (size_t i = 0; i < n; i++)
		if (entries[i].controllers[0] == '\0' && graft_scope_find(entries[i].path, log, ret_scope))
			return true;
	return false;
}

/* -------- the entries -------- */

/* Returns the union of both, in systemd's order. */
static const char *unite(const char *one, const char *other, struct graft_arena *arena)
{
	char both[4];
	size_t n = 0;

	for (const char *letter = "rwm"; *letter; letter++)
		if (strchr(one, *letter) || strchr(other, *letter))
			both[n++] = *letter;
	both[n] = '\0';
	return graft_arena_strdup(arena, both);
}

/* Returns what the unit already allows for a node, or "". Our entry would replace it. */
static const char *access_now(const struct graft_systemd_unit *unit, const char *node)
{
	for (size_t i = 0; i < unit->n_allows; i++)
		if (strcmp(unit->allows[i].node, node) == 0)
			return unit->allows[i].access;
	return "";
}

/* Lists the entries that the unit lacks. */
static int missing_entries(const struct graft_systemd_unit *unit, const struct graft_scope_device *devices,
			   size_t n_devices, struct graft_arena *arena, struct graft_systemd_allow **ret_entries,
			   size_t *ret_n, struct graft_error *err)
{
	struct graft_systemd_allow *entries = graft_arena_list(arena, n_devices, sizeof(*entries));
	size_t n = 0;

	for (size_t i = 0; entries && i < n_devices; i++) {
		struct graft_systemd_allow *entry = &entries[n];
		const char *now;

		entry->node = graft_arena_printf(arena, "/dev/char/%u:%u", devices[i].major, devices[i].minor);
		now = entry->node ? access_now(unit, entry->node) : "";
		entry->access = unite(now, devices[i].access, arena);
		if (entry->access && strspn(entry->access, now) < strlen(entry->access))
			n++;
	}
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	*ret_entries = entries;
	*ret_n = n;
	return 0;
}

/* -------- deciding -------- */

/* Returns why systemd does not have to know, or NULL. */
static const char *reason_to_be_silent(const struct graft_systemd_unit *unit, const struct graft_scope *scope)
{
	/* SECURITY: anyone who may create cgroups can name one like another unit. */
	if (strcmp(unit->control_group, scope->group) != 0)
		return unit->control_group[0] ? "systemd has another cgroup for it"
					      : "systemd does not know it; something else made the cgroup";
	/* The first entry would revoke everything else. */
	if (strcmp(unit->device_policy, "auto") == 0 && unit->n_allows == 0)
		return "it may use every device";
	return NULL;
}

static int tell_systemd(struct graft_systemd_bus *bus, const struct graft_scope *scope,
			const struct graft_scope_device *devices, size_t n_devices, struct graft_arena *arena,
			const struct graft_log *log, struct graft_error *err)
{
	struct graft_systemd_unit unit;
	struct graft_systemd_allow *entries;
	const char *reason;
	size_t n;

	if (graft_systemd_bus_read(bus, scope->name, arena, &unit, err) < 0)
		return -1;
	reason = reason_to_be_silent(&unit, scope);
	if (reason) {
		graft_info(log, "systemd was not informed of the devices of '%s': %s", scope->name, reason);
		return 0;
	}
	if (missing_entries(&unit, devices, n_devices, arena, &entries, &n, err) < 0)
		return -1;
	if (n == 0) {
		graft_info(log, "systemd already knows the devices of '%s'", scope->name);
		return 0;
	}
	if (graft_systemd_bus_allow(bus, scope->name, entries, n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		graft_info(log, "informed systemd that '%s' may use %s (%s)", scope->name, entries[i].node,
			   entries[i].access);
	return 1;
}

int graft_systemd_scope_allow_at(const struct graft_systemd *systemd, const char *path, const char *text, size_t length,
				 const struct graft_scope_device *devices, size_t n_devices,
				 const struct graft_log *log, struct graft_error *err)
{
	auto_arena struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_systemd_bus *bus = NULL;
	struct graft_scope scope;
	int rc;

	if (!arena)
		return graft_fail_memory(err);
	if (!find_of_process(text, length, arena, log, &scope, &rc, err)) {
		if (rc < 0)
			return graft_wrap(err, "%s", path);
		graft_debug(log, "systemd was not informed of the devices: %s names no scope", path);
		return 0;
	}
	rc = graft_systemd_bus_open(systemd, log, &bus, err);
	if (rc > 0)
		rc = tell_systemd(bus, &scope, devices, n_devices, arena, log, err);
	graft_systemd_bus_close(bus);
	return rc < 0 ? graft_wrap(err, "scope '%s'", scope.name) : rc;
}

int graft_systemd_scope_allow(pid_t pid, const struct graft_scope_device *devices, size_t n_devices,
			      const struct graft_log *log, struct graft_error *err)
{
	/*
	 * systemd's private socket, open to root, needs no bus; the bus serves where that socket is
	 * not visible.
	 */
	static const struct graft_systemd_address addresses[] = { { "unix:path=/run/systemd/private", false },
								  { "unix:path=/run/dbus/system_bus_socket", true },
								  { NULL, false } };
	static const struct graft_systemd systemd = { "libsystemd.so.0", addresses, TIMEOUT_MS };
	auto_arena struct graft_arena *arena = graft_arena_new(CGROUP_MAX * 2);
	auto_close int fd = -1;
	char path[64];
	const char *text;
	size_t length;
	int rc;

	if (n_devices == 0)
		return 0;
	if (!arena)
		return graft_fail_memory(err);
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return graft_fail_errno(err, errno, "open failed: %s", path);
	rc = graft_read_fd(fd, CGROUP_MAX, arena, &text, &length);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "file read error: %s", path);
	return graft_systemd_scope_allow_at(&systemd, path, text, length, devices, n_devices, log, err);
}
