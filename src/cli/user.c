/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user: parses the values of --user and --pid. Uses the system's user database only for names, and
 * for the group of a user that is given without one.
 */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"

#define DATABASE_ENTRY_MAX ((size_t)1 << 20)

/* Parses a whole decimal number below `limit`. -EINVAL, -ERANGE. */
static int parse_user_id(const char *text, unsigned long limit, unsigned long *ret_number)
{
	char *end = NULL;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*ret_number = strtoul(text, &end, 10);
	if (*end != '\0')
		return -EINVAL;
	return errno == ERANGE || *ret_number >= limit ? -ERANGE : 0;
}

/* Repeats the lookup with a larger buffer until the entry fits. */
static int find_user(const char *name, uid_t uid, struct passwd *entry, char **buffer)
{
	struct passwd *found = NULL;
	int rc = ERANGE;

	for (size_t size = 1024; rc == ERANGE && size <= DATABASE_ENTRY_MAX; size *= 2) {
		char *larger = realloc(*buffer, size);

		if (!larger)
			return -ENOMEM;
		*buffer = larger;
		rc = name ? getpwnam_r(name, entry, larger, size, &found)
			  : getpwuid_r(uid, entry, larger, size, &found);
	}
	return found ? 0 : -ENOENT;
}

static int find_group(const char *name, gid_t *ret_gid)
{
	auto_free char *buffer = NULL;
	struct group entry, *found = NULL;
	int rc = ERANGE;

	for (size_t size = 1024; rc == ERANGE && size <= DATABASE_ENTRY_MAX; size *= 2) {
		char *larger = realloc(buffer, size);

		if (!larger)
			return -ENOMEM;
		buffer = larger;
		rc = getgrnam_r(name, &entry, larger, size, &found);
	}
	if (!found)
		return -ENOENT;
	*ret_gid = entry.gr_gid;
	return 0;
}

/* (uid_t)-1 means "no change" to the kernel and is not a valid user ID. */
static int resolve_user(const char *text, bool want_group, uid_t *ret_uid, gid_t *ret_gid)
{
	auto_free char *buffer = NULL;
	bool numeric = isdigit((unsigned char)*text);
	struct passwd entry;
	unsigned long number = 0;
	int rc = numeric ? parse_user_id(text, (uid_t)-1, &number) : 0;

	if (rc < 0)
		return rc;
	*ret_uid = (uid_t)number;
	if (numeric && !want_group)
		return 0;
	rc = find_user(numeric ? NULL : text, (uid_t)number, &entry, &buffer);
	if (rc < 0)
		return rc;
	*ret_uid = entry.pw_uid;
	if (want_group)
		*ret_gid = entry.pw_gid;
	return 0;
}

static int resolve_group(const char *text, gid_t *ret_gid)
{
	unsigned long number = 0;
	int rc;

	*ret_gid = (gid_t)-1;
	if (*text == '\0')
		return 0;
	if (!isdigit((unsigned char)*text))
		return find_group(text, ret_gid);
	rc = parse_user_id(text, (gid_t)-1, &number);
	if (rc == 0)
		*ret_gid = (gid_t)number;
	return rc;
}

int cli_parse_user(const char *text, uid_t *ret_uid, gid_t *ret_gid, struct graft_error *err)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	auto_free char *user = NULL;
	int rc = -ENOMEM;

	if (!text) {
		*ret_uid = geteuid();
		*ret_gid = getegid();
		return 0;
	}
	user = colon ? strndup(text, (size_t)(colon - text)) : strdup(text);
	if (user)
		rc = resolve_user(user, !colon, ret_uid, ret_gid);
	if (rc == 0 && colon)
		rc = resolve_group(colon + 1, ret_gid);
	return rc < 0 ? graft_fail(err, GRAFT_INVALID, -rc, "input error: parse user/group failed") : 0;
}

int cli_parse_pid(const char *text, pid_t *ret_pid, struct graft_error *err)
{
	unsigned long number = 0;
	int rc = parse_user_id(text, (unsigned long)INT_MAX + 1, &number);

	if (rc < 0)
		return graft_fail(err, GRAFT_INVALID, -rc, "input error: parse pid failed");
	*ret_pid = (pid_t)number;
	return 0;
}
