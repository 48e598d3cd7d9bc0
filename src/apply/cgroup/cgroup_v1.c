/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_v1: device rules through devices.allow and devices.deny in the open cgroup directory.
 * Reads devices.list first, so that undo revokes only what was really added.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apply/cgroup/cgroup_versions.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"

#define LIST_MAX ((size_t)4 * 1024 * 1024)

/* A line of devices.list, such as "c 195:* rwm"; a wildcard is -1. */
struct list_line {
	char type;
	long major, minor;
	struct graft_device_rule access;
};

static bool parse_list_number(const char **text, long *ret_number)
{
	long number = 0;
	const char *p = *text;

	if (*p == '*') {
		*ret_number = -1;
		*text = p + 1;
		return true;
	}
	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9' && number < (1L << 32); p++)
		number = number * 10 + (*p - '0');
	*ret_number = number;
	*text = p;
	return true;
}

static bool parse_line(const char *text, struct list_line *ret_line)
{
	struct list_line line = { .type = text[0] };

	if (!strchr("abc", text[0]) || text[0] == '\0' || text[1] != ' ')
		return false;
	text += 2;
	if (!parse_list_number(&text, &line.major) || *text++ != ':' || !parse_list_number(&text, &line.minor) ||
	    *text++ != ' ')
		return false;
	for (; *text && *text != '\n'; text++) {
		line.access.read |= *text == 'r';
		line.access.write |= *text == 'w';
	}
	*ret_line = line;
	return true;
}

static bool line_grants(const struct list_line *line, const struct graft_device_rule *rule)
{
	/*
	 * QUIRK: "a *:* rwm" means that the cgroup allows by default; its exceptions are not
	 * listed. The rule is written to such a cgroup anyway, and undo revokes nothing there.
	 */
	return line->type == 'c' && (line->major == -1 || line->major == (long)rule->major) &&
	       (line->minor == -1 || line->minor == (long)rule->minor) && (line->access.read || !rule->read) &&
	       (line->access.write || !rule->write);
}

bool graft_cgroup_v1_is_allowed(const char *list, const struct graft_device_rule *rule,
				struct graft_device_rule *ret_exact)
{
	struct graft_device_rule exact = { .major = rule->major, .minor = rule->minor };
	bool allowed = false;

	for (const char *text = list; text && *text; text = strchr(text, '\n'), text += text ? 1 : 0) {
		struct list_line line;

		if (!parse_line(text, &line))
			continue;
		allowed |= line_grants(&line, rule);
		if (line.type == 'a' ||
		    (line.type == 'c' && line.major == (long)rule->major && line.minor == (long)rule->minor)) {
			exact.read |= line.access.read;
			exact.write |= line.access.write;
		}
	}
	*ret_exact = exact;
	return allowed;
}

/* Writes a rule such as "c 195:0 rw" to a control file with one write(2). Returns 0 or -errno. */
static int write_v1_rule(const struct graft_cgroup *cgroup, const char *file, const struct graft_device_rule *rule)
{
	auto_close int fd = openat(cgroup->dir_fd, file, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
	char text[64];
	int length = snprintf(text, sizeof(text), "c %u:%u %s%s", rule->major, rule->minor, rule->read ? "r" : "",
			      rule->write ? "w" : "");

	if (fd < 0 || write(fd, text, (size_t)length) != length)
		return -errno;
	return 0;
}

int graft_cgroup_v1_undo(const struct graft_cgroup *cgroup, const struct graft_cgroup_change *change)
{
	if (!change->denied.read && !change->denied.write)
		return 0;
	return write_v1_rule(cgroup, "devices.deny", &change->denied);
}

static int read_devices_list(const struct graft_cgroup *cgroup, struct graft_arena *arena, const char **ret_list,
			     struct graft_error *err)
{
	auto_close int fd = openat(cgroup->dir_fd, "devices.list", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t length;
	int r;

	if (fd < 0)
		return graft_fail_errno(err, errno, "open failed: %s/devices.list", cgroup->path);
	r = graft_read_fd(fd, LIST_MAX, arena, ret_list, &length);
	if (r < 0)
		return graft_fail_errno(err, -r, "read error: %s/devices.list", cgroup->path);
	return 0;
}

static int allow_one(struct graft_cgroup *cgroup, const char *list, const struct graft_device_rule *rule,
		     const struct graft_log *log, struct graft_error *err)
{
	struct graft_device_rule exact;
	struct graft_cgroup_change *change;
	int r;

	if (graft_cgroup_v1_is_allowed(list, rule, &exact))
		return 0;
	change = graft_cgroup_changes_grow(cgroup, 1);
	if (!change)
		return graft_fail_memory(err);
	graft_debug(log, "allowing device node %u:%u", rule->major, rule->minor);
	r = write_v1_rule(cgroup, "devices.allow", rule);
	if (r < 0)
		return graft_fail_errno(err, -r, "write error: %s/devices.allow", cgroup->path);
	change->denied = *rule;
	change->denied.read = rule->read && !exact.read;
	change->denied.write = rule->write && !exact.write;
	return 0;
}

int graft_cgroup_v1_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
			  const struct graft_log *log, struct graft_error *err)
{
	auto_arena struct graft_arena *arena = graft_arena_new(2 * LIST_MAX);
	const char *list = NULL;
	size_t n_before = cgroup->n_changes;
	int r;

	if (!arena)
		return graft_fail_memory(err);
	r = read_devices_list(cgroup, arena, &list, err);
	for (size_t i = 0; i < n_rules && r == 0; i++)
		r = allow_one(cgroup, list, &rules[i], log, err);
	while (r < 0 && cgroup->n_changes > n_before)
		(void)graft_cgroup_v1_undo(cgroup, &cgroup->changes[--cgroup->n_changes]);
	return r;
}

int graft_cgroup_v1_look(struct graft_cgroup *cgroup, const struct graft_device_rule *accesses, size_t n,
			 enum graft_device_answer *ret_answers, struct graft_error *err)
{
	auto_arena struct graft_arena *arena = graft_arena_new(2 * LIST_MAX);
	struct graft_device_rule exact;
	const char *list = NULL;
	int r;

	if (!arena)
		return graft_fail_memory(err);
	r = read_devices_list(cgroup, arena, &list, err);
	for (size_t i = 0; i < n && r == 0; i++) {
		/* "a *:* rwm" counts as exact. */
		bool allowed = graft_cgroup_v1_is_allowed(list, &accesses[i], &exact) ||
			       ((exact.read || !accesses[i].read) && (exact.write || !accesses[i].write));

		ret_answers[i] = allowed ? GRAFT_ANSWER_ALLOWED : GRAFT_ANSWER_DENIED;
	}
	return r;
}
