/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look: the functions with which the files look*.c examine a host. Everything is below the host's
 * root and opened without blocking; denied access is recorded, so that an ordinary user learns what
 * was not seen.
 */
#include "doctor/look.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

#define FILE_MAX ((size_t)8 << 20) /* modules.dep of a distribution's kernel has 1 MiB */
#define LINK_MAX 4096

int graft_health_note(struct graft_health_look *look, const char *path, int rc)
{
	struct graft_health *health = look->health;
	struct graft_health_unseen *unseen;

	graft_note_shortage(&look->survey.shortage, rc);
	if (rc != -EACCES && rc != -EPERM)
		return rc;
	for (size_t i = 0; i < health->n_unseen; i++) {
		if (strcmp(health->unseen[i].path, path) == 0)
			return rc;
	}
	unseen = graft_arena_push(look->arena, &health->unseen, &health->n_unseen, sizeof(*unseen));
	if (!unseen)
		return rc;
	unseen->path = graft_arena_strdup(look->arena, path);
	unseen->why = graft_arena_strdup(look->arena, strerror(-rc));
	if (!unseen->path || !unseen->why)
		health->n_unseen--;
	return rc;
}

int graft_health_read_file(struct graft_health_look *look, const char *path, const char **ret_text, size_t *ret_length)
{
	return graft_health_note(
	    look, path, graft_root_read_foreign(look->host, path, FILE_MAX, look->scratch, ret_text, ret_length));
}

const char *graft_health_read_word(struct graft_health_look *look, const char *path)
{
	const char *text;
	size_t length;

	if (graft_health_read_file(look, path, &text, &length) < 0)
		return NULL;
	while (isspace((unsigned char)*text))
		text++;
	length = strcspn(text, "\n");
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	return length == 0 ? NULL : graft_arena_strndup(look->arena, text, length);
}

uint64_t graft_health_read_number(struct graft_health_look *look, const char *path, uint64_t otherwise)
{
	const char *word = graft_health_read_word(look, path);
	unsigned long long value;
	char *end;

	if (!word || !isdigit((unsigned char)word[0]))
		return otherwise;
	errno = 0;
	value = strtoull(word, &end, 10);
	return errno != 0 || (*end != '\0' && !isspace((unsigned char)*end)) ? otherwise : value;
}

const char *graft_health_read_link(struct graft_health_look *look, const char *path)
{
	auto_close int fd = graft_root_openat(look->host, path, O_PATH | O_NOFOLLOW);
	char text[LINK_MAX];
	ssize_t length;

	if (fd < 0) {
		(void)graft_health_note(look, path, fd);
		return NULL;
	}
	length = readlinkat(fd, "", text, sizeof(text));
	if (length < 0) {
		(void)graft_health_note(look, path, -errno);
		return NULL;
	}
	return graft_arena_strndup(look->arena, text, (size_t)length);
}

int graft_health_list(struct graft_health_look *look, const char *path, const char ***ret_names, size_t *ret_n)
{
	return graft_health_note(look, path, graft_survey_list(&look->survey, look->host, path, ret_names, ret_n));
}

bool graft_health_exists(struct graft_health_look *look, const char *path)
{
	struct stat st;

	return path && graft_health_note(look, path, graft_root_stat(look->host, path, &st)) == 0;
}

int64_t graft_health_changed(struct graft_health_look *look, const char *path)
{
	struct stat st;

	if (!path || graft_health_note(look, path, graft_root_stat(look->host, path, &st)) < 0)
		return 0;
	/*
	 * The change time of the inode, since files of a package keep the modification time of
	 * their build.
	 */
	return st.st_ctim.tv_sec;
}

static bool is_host_program(struct graft_health_look *look, const char *path)
{
	struct stat st;

	return path && graft_root_stat(look->host, path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0;
}

const char *graft_health_find_program(struct graft_health_look *look, const char *name, const char *path)
{
	if (!name || name[0] == '\0')
		return NULL;
	if (strchr(name, '/'))
		return name[0] == '/' && is_host_program(look, name) ? graft_arena_strdup(look->arena, name) : NULL;
	while (path && *path != '\0') {
		size_t length = strcspn(path, ":");

		if (length > 0 && path[0] == '/') {
			const char *candidate = graft_arena_printf(look->arena, "%.*s/%s", (int)length, path, name);

			if (is_host_program(look, candidate))
				return candidate;
		}
		path += length;
		path += *path == ':';
	}
	return NULL;
}

/* Splits a line of /etc/passwd, "name:password:uid:gid:comment:home:shell", and checks its uid. */
static bool is_line_of(const char *line, uint32_t uid, const char *fields[7])
{
	size_t n = 0;
	char *end;

	fields[n++] = line;
	for (const char *at = line; *at != '\0' && *at != '\n' && n < 7; at++) {
		if (*at == ':')
			fields[n++] = at + 1;
	}
	return n == 7 && isdigit((unsigned char)fields[2][0]) && strtoul(fields[2], &end, 10) == uid && *end == ':';
}

bool graft_health_find_user(struct graft_health_look *look, uint32_t uid, const char **ret_name, const char **ret_home)
{
	const char *text, *fields[7];
	size_t length;

	if (graft_health_read_file(look, "/etc/passwd", &text, &length) < 0)
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!is_line_of(line, uid, fields))
			continue;
		*ret_name = graft_arena_strndup(look->scratch, fields[0], strcspn(fields[0], ":"));
		*ret_home = graft_arena_strndup(look->scratch, fields[5], strcspn(fields[5], ":"));
		return *ret_name && *ret_home;
	}
	return false;
}

bool graft_health_is_ours(const char *name)
{
	return name && strncasecmp(graft_path_name(name), "nvidia", strlen("nvidia")) == 0;
}
