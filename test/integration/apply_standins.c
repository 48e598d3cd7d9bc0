/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins for what is tested elsewhere: the device cgroup and the loader's cache. Linked instead
 * of the real functions.
 */
#include "apply_standins.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/unit.h"
#include "apply/loader/ldcache_refresh.h"
#include "apply/temporary.h"
#include "apply_world.h"
#include "base/cleanup.h"

struct standin_calls standin_calls;
struct graft_cgroup standin_cgroup = { .version = 2, .dir_fd = -1 };

static void called(const char *what)
{
	size_t used = strlen(standin_calls.order);

	(void)snprintf(standin_calls.order + used, sizeof(standin_calls.order) - used, "%s ", what);
}

int graft_cgroup_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
		       const struct graft_log *log, struct graft_error *err)
{
	called("allow");
	standin_calls.cgroup_allow++;
	assert_int_equal(n_rules, 2);
	assert_int_equal(rules[1].minor, 255);
	assert_true(rules[0].read && rules[0].write);
	return standin_calls.cgroup_fails ? graft_fail(err, GRAFT_CGROUP, EIO, "failed to add device rules") : 0;
}

void graft_cgroup_undo(struct graft_cgroup *cgroup, const struct graft_log *log)
{
	called("disallow");
	standin_calls.cgroup_undo++;
}

int graft_loader_cache_read(const struct graft_image_root *root, const struct graft_loader_additions *additions,
			    enum graft_ldcache_state state, bool early, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_loader_work *ret_work, struct graft_error *err)
{
	struct stat st;

	called("state");
	standin_calls.ldcache_state++;
	assert_int_equal(state, GRAFT_LDCACHE_LOOK);
	/* This is called before the first change. */
	assert_int_not_equal(graft_image_root_stat(root, "/usr/lib/" MACHINE_TRIPLET "/libcuda.so.550", &st), 0);
	*ret_work = (struct graft_loader_work){ .cache = "new cache", .cache_length = 9 };
	return 0;
}

struct graft_loader_additions graft_ldcache_additions(const struct graft_edit *edit)
{
	return (struct graft_loader_additions){ .n_entries = 0 };
}

/* Uses the journal as the real function does. */
int graft_ldcache_refresh(const struct graft_image_root *root, const struct graft_edit *edit,
			  const struct graft_loader_work *work, struct graft_journal *journal,
			  const struct graft_log *log, struct graft_error *err)
{
	char temporary[GRAFT_TEMPORARY_SIZE], name[NAME_MAX + 1];
	auto_close int parent_fd = -1, old_fd = -1, fd = -1;

	called("refresh");
	standin_calls.ldcache_refresh++;
	if (standin_calls.ldcache_fails)
		return graft_fail(err, GRAFT_FORMAT, 0, "no cache today");
	if (graft_image_root_parent(root, "/etc/ld.so.cache", &parent_fd, name) < 0)
		return graft_fail(err, GRAFT_IO, 0, "no /etc");
	old_fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	fd = graft_temporary_file(parent_fd, 0644, temporary);
	if (fd < 0)
		return graft_fail(err, GRAFT_IO, -fd, "no temporary");
	if (graft_write_all(fd, work->cache, work->cache_length) < 0 ||
	    graft_journal_replaced(journal, parent_fd, name, old_fd) < 0) {
		(void)unlinkat(parent_fd, temporary, 0);
		return graft_fail(err, GRAFT_IO, 0, "no write");
	}
	if (renameat(parent_fd, temporary, parent_fd, name) < 0) {
		graft_journal_forget(journal);
		(void)unlinkat(parent_fd, temporary, 0);
		return graft_fail(err, GRAFT_IO, 0, "no rename");
	}
	graft_journal_settle(journal);
	return 0;
}

int standin_step(void *arg, const char *step, struct graft_error *err)
{
	called(step);
	return 0;
}
