/* SPDX-License-Identifier: Apache-2.0 */
/* lease_log: writes events. The caller has the lock of the table. */
#include "lease/lease_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/read.h"

#define LOG_MODE  0644
#define CLAIM_MAX 128u

void graft_lease_log_word(const char *text, size_t max, struct graft_buffer *out)
{
	for (; *text != '\0' && max > 0; text++, max--)
		graft_buffer_add(out, *text == ' ' || *text == '\n' ? "_" : text, 1);
}

void graft_lease_log_add(const struct graft_lease *lease, const char *event, const char *why,
			 struct graft_buffer *lines)
{
	graft_buffer_printf(lines, lease->owner ? "%lld %s %s owner %s " : "%lld %s %s ", (long long)time(NULL), event,
			    lease->id, lease->owner);
	if (!lease->owner)
		graft_buffer_printf(lines, "uid %u ", lease->uid);
	if (why) {
		graft_buffer_printf(lines, "%s\n", why);
		return;
	}
	graft_lease_log_word(lease->claim, CLAIM_MAX, lines);
	graft_buffer_char(lines, ' ');
	for (size_t i = 0; i < lease->n_slots; i++)
		graft_buffer_printf(lines, "%s%s", i > 0 ? "," : "",
				    lease->slots[i].mig ? lease->slots[i].mig : lease->slots[i].gpu);
	if (lease->holder.container) {
		graft_buffer_string(lines, GRAFT_LEASE_LOG_CONTAINER);
		graft_lease_log_word(lease->holder.container, SIZE_MAX, lines);
	} else if (lease->holder.pid > 0) {
		graft_buffer_printf(lines, " process %u", lease->holder.pid);
	}
	graft_buffer_char(lines, '\n');
}

/* Replaces a full file by its newer half. */
static void halve_log(int directory_fd, int fd, size_t size)
{
	struct graft_arena *arena = graft_arena_new(4 * GRAFT_LEASE_LOG_MAX);
	char name[GRAFT_TEMPORARY_SIZE];
	char *text = arena ? graft_arena_alloc(arena, GRAFT_LEASE_LOG_MAX) : NULL, *start;
	long length = text ? graft_read_at(fd, text, GRAFT_LEASE_LOG_MAX / 2, size - GRAFT_LEASE_LOG_MAX / 2) : -1;
	auto_close int new_fd = length > 0 ? graft_temporary_file(directory_fd, LOG_MODE, name) : -1;

	start = new_fd >= 0 ? memchr(text, '\n', (size_t)length) : NULL;
	if (new_fd >= 0 && (!start || graft_write_all(new_fd, start + 1, (size_t)(text + length - start - 1)) < 0 ||
			    renameat(directory_fd, name, directory_fd, GRAFT_LEASE_LOG) < 0))
		(void)unlinkat(directory_fd, name, 0);
	(void)graft_arena_free(arena);
}

static int open_lease_log(int directory_fd, size_t *ret_size)
{
	int fd = openat(directory_fd, GRAFT_LEASE_LOG,
			O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, LOG_MODE);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		(void)close(fd);
		return -1;
	}
	*ret_size = fd >= 0 ? (size_t)st.st_size : 0;
	return fd;
}

void graft_lease_log_write(int directory_fd, const struct graft_buffer *lines)
{
	size_t size;
	auto_close int fd = lines->length > 0 ? open_lease_log(directory_fd, &size) : -1;

	if (fd >= 0 && size > GRAFT_LEASE_LOG_MAX) {
		halve_log(directory_fd, fd, size);
		(void)close(TAKE_FD(fd));
		fd = open_lease_log(directory_fd, &size);
	}
	if (fd >= 0)
		(void)graft_write_all(fd, lines->bytes, lines->length);
}

const char *graft_lease_log_read(const char *directory, size_t max, struct graft_arena *arena)
{
	const char *path = graft_arena_printf(arena, "%s/" GRAFT_LEASE_LOG, directory), *start;
	auto_close int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	struct stat st;
	size_t size;
	char *text;
	long n;

	max = max > 0 ? max : 2 * GRAFT_LEASE_LOG_MAX;
	if (!path)
		return NULL;
	if (fd < 0 || fstat(fd, &st) < 0)
		return "";
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return "";
	}
	size = (size_t)st.st_size < max ? (size_t)st.st_size : max;
	text = graft_arena_alloc(arena, size + 1);
	if (!text)
		return NULL;
	n = graft_read_at(fd, text, size, (uint64_t)st.st_size - size);
	text[n > 0 ? n : 0] = '\0';
	/* The first line may have lost its beginning. */
	start = (size_t)st.st_size > size ? strchr(text, '\n') : NULL;
	return start ? start + 1 : text;
}
