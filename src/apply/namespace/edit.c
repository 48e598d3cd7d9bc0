/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit: carries out each kind of edit in an opened container and records the change in the journal.
 * Decides nothing: what is not in the plan is not done.
 */
#include "apply/namespace/edit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/namespace/file.h"
#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/path.h"

#define CONSOLE "/dev/console"

/*
 * Whether the error means that the place was not found, as opposed to a failure to create something
 * there (SPEC libnvidia-container 2.3, 9.1).
 */
static bool is_path_error(int sys)
{
	static const int path_errors[] = { ELOOP, ENOTDIR, EISDIR, ENAMETOOLONG, EINVAL };

	for (size_t i = 0; i < GRAFT_COUNT(path_errors); i++)
		if (path_errors[i] == sys)
			return true;
	return false;
}

static int fail_target(const struct graft_apply *apply, const struct graft_edit *edit, int rc, struct graft_error *err)
{
	const char *rootfs = apply->target->rootfs;

	if (rc == -ENOMEM)
		return graft_fail_memory(err);
	if (rc == -EXDEV)
		return graft_fail(err, GRAFT_UNSAFE, 0,
				  "path error: a link in the image leads %s%s outside the mount of the root", rootfs,
				  edit->target);
	if (is_path_error(-rc))
		return graft_fail(err, GRAFT_UNSAFE, -rc, "path error: %s%s", rootfs, edit->target);
	return graft_fail_errno(err, -rc, "file creation failed: %s%s", rootfs, edit->target);
}

static int fail_mount(const char *path, int rc, struct graft_error *err)
{
	return graft_fail(err, rc == -EPERM || rc == -EACCES ? GRAFT_PERMISSION : GRAFT_MOUNT, -rc,
			  "mount operation failed: %s", path);
}

/* Attaches a source at a spot, including its flags, and closes the source. */
static int mount_source(struct graft_apply *apply, const struct graft_edit *edit, struct graft_source *source,
			const struct graft_spot *spot, struct graft_error *err)
{
	int mount_fd = -1, rc;

	if (graft_journal_reserve(apply->journal) < 0)
		return graft_fail_memory(err);
	if (source->detached)
		rc = graft_mount_attach(&apply->mounter, source->fd, spot);
	else
		rc = graft_mount_bind(&apply->mounter, source->fd, spot, edit->flags, &mount_fd);
	if (rc < 0)
		return fail_mount(edit->source, rc, err);
	if (source->detached)
		mount_fd = TAKE_FD(source->fd);
	graft_journal_mounted(apply->journal, mount_fd);
	graft_source_close(source);
	rc = graft_mount_settle(&apply->mounter, mount_fd, edit->flags, true);
	return rc < 0 ? fail_mount(edit->source, rc, err) : 0;
}

/*
 * SECURITY: a link or volume may make the target a directory of the host. The container has its
 * GPUs without this edit.
 */
static int leave_edit_out(const struct graft_apply *apply, const struct graft_edit *edit)
{
	graft_warn(apply->log, "%s %s%s is left out: it would not be on the mount of the container's root",
		   graft_edit_names[edit->kind], apply->target->rootfs, edit->target);
	return 0;
}

/* A directory of the host keeps its name, so that nothing else that the container gets is in it. */
static bool is_last_part_link(const struct graft_apply *apply, const struct graft_edit *edit)
{
	auto_close int fd = graft_image_root_look(&apply->root, edit->target, O_NOFOLLOW);
	struct stat st;

	return fd < 0 || fstat(fd, &st) < 0 || S_ISLNK(st.st_mode);
}

/*
 * SECURITY: nothing may be created in a directory of the host that the container can write to.
 * Later edits create things where their paths lead, so a link of the image must not put such a
 * directory there. Links into it are refused when something is to be created
 * (graft_image_root_may_write()).
 */
static int check_host_directory(const struct graft_apply *apply, const struct graft_edit *edit, int spot_fd,
				struct graft_error *err)
{
	auto_close int fd = -1;
	const char *to;
	int rc = graft_image_root_resolve(&apply->root, edit->target, apply->arena, &to, &fd);
	bool over = rc == 0 && (graft_path_is_system(to) ||
				((edit->flags & GRAFT_MOUNT_RDONLY) == 0 && is_last_part_link(apply, edit)));

	if (rc < 0)
		return fail_target(apply, edit, rc, err);
	if (!graft_image_root_is_same(&apply->root, spot_fd, fd))
		return graft_fail(err, GRAFT_UNSAFE, 0, "path error: a process changes where %s%s leads",
				  apply->target->rootfs, edit->target);
	if (strcmp(to, edit->target) == 0)
		return 0;
	for (size_t i = 0; i < apply->plan->n_edits && !over; i++) {
		const struct graft_edit *other = &apply->plan->edits[i];

		over = other != edit && other->target && graft_path_is_within(other->target, to);
	}
	if (!over)
		return 0;
	return graft_fail(err, GRAFT_UNSAFE, 0,
			  "path error: a link in the image leads %s%s to a place that must not be covered",
			  apply->target->rootfs, edit->target);
}

/* Whether the plan has mounted a directory of the host around the edit's target. */
static bool is_target_in_directory(const struct graft_apply *apply, const struct graft_edit *edit)
{
	const struct graft_edit *edits = apply->plan->edits;

	for (size_t i = 0; i < apply->plan->n_edits && &edits[i] != edit; i++)
		if (graft_edit_mounts_directory(&edits[i]) && strcmp(edits[i].target, edit->target) != 0 &&
		    graft_path_is_within(edit->target, edits[i].target))
			return true;
	return false;
}

static int apply_bind(struct graft_apply *apply, const struct graft_edit *edit, struct graft_source *source,
		      struct graft_error *err)
{
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	bool directory = graft_edit_mounts_directory(edit), inside = is_target_in_directory(apply, edit);
	const struct graft_image_root *root = apply->namespace_root.fd >= 0 ? &apply->namespace_root : NULL;
	size_t length = graft_journal_length(apply->journal);
	int rc;

	if (source->fd < 0)
		return 0; /* optional, and no longer there */
	if (!source->detached && graft_source_bring(&apply->mounter, edit, root, source, err) < 0)
		return -1;
	graft_info(apply->log, "mounting %s at %s%s", edit->source, apply->target->rootfs, edit->target);
	/* SECURITY: in a directory of the host no mount point is made. */
	rc = inside ? graft_place_existing(&apply->place, edit->target, directory, &spot)
		    : graft_place_mountpoint(&apply->place, edit->target, directory, edit->mode, &spot);
	if (rc == -ENOENT && inside)
		return graft_fail(err, GRAFT_UNSAFE, 0,
				  "path error: nothing is at %s%s, in a directory of the host, to mount over",
				  apply->target->rootfs, edit->target);
	if (rc == -EXDEV && edit->kind == GRAFT_EDIT_BIND && (!directory || edit->optional))
		return leave_edit_out(apply, edit);
	if (rc < 0)
		return fail_target(apply, edit, rc, err);
	spot.kept = graft_journal_keep(apply->journal, length, spot.fd);
	if (directory)
		graft_place_forget(&apply->place);
	if (directory && check_host_directory(apply, edit, spot.fd, err) < 0)
		return -1;
	return mount_source(apply, edit, source, &spot, err);
}

static int attach_tmpfs(struct graft_apply *apply, const struct graft_edit *edit, const struct graft_spot *spot,
			int *ret_mount_fd)
{
	auto_close int fd = -1;
	int rc;

	if (!graft_mounter_makes_tmpfs(&apply->mounter))
		return graft_mount_tmpfs(&apply->mounter, spot, edit->mode, edit->flags, ret_mount_fd);
	fd = graft_mount_new_tmpfs(&apply->mounter, edit->mode, edit->flags);
	if (fd < 0)
		return fd;
	rc = graft_mount_attach(&apply->mounter, fd, spot);
	if (rc == 0)
		*ret_mount_fd = TAKE_FD(fd);
	return rc;
}

static int apply_tmpfs(struct graft_apply *apply, const struct graft_edit *edit, struct graft_error *err)
{
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	int mount_fd = -1, rc;

	graft_info(apply->log, "mounting tmpfs at %s%s", apply->target->rootfs, edit->target);
	rc = graft_place_mountpoint(&apply->place, edit->target, true, edit->mode, &spot);
	if (rc < 0)
		return fail_target(apply, edit, rc, err);
	if (graft_journal_reserve(apply->journal) < 0)
		return graft_fail_memory(err);
	graft_place_forget(&apply->place);
	rc = attach_tmpfs(apply, edit, &spot, &mount_fd);
	if (rc < 0)
		return fail_mount(edit->target, rc, err);
	graft_journal_mounted(apply->journal, mount_fd);
	graft_image_root_add_mount(&apply->root, mount_fd);
	rc = graft_mount_settle(&apply->mounter, mount_fd, edit->flags, true);
	return rc < 0 ? fail_mount(edit->target, rc, err) : 0;
}

/*
 * Mounts a tmpfs over the directory of `cover->target`, visible to us alone, for as long as it
 * takes to get one file out of it. Returns a descriptor of its root, or -1.
 */
static int mount_workshop(struct graft_apply *apply, const struct graft_edit *cover, struct graft_error *err)
{
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	const char *slash = strrchr(cover->target, '/');
	char directory[PATH_MAX];
	const struct graft_edit edit = { .target = directory,
					 .mode = 0700,
					 .flags = GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOEXEC };
	int mount_fd = -1, rc = -EINVAL;

	if (slash && slash != cover->target && (size_t)(slash - cover->target) < sizeof(directory)) {
		memcpy(directory, cover->target, (size_t)(slash - cover->target));
		directory[slash - cover->target] = '\0';
		rc = graft_place_mountpoint(&apply->place, directory, true, edit.mode, &spot);
	}
	if (rc < 0)
		return fail_target(apply, cover, rc, err);
	if (graft_journal_reserve(apply->journal) < 0)
		return graft_fail_memory(err);
	rc = attach_tmpfs(apply, &edit, &spot, &mount_fd);
	if (rc < 0)
		return fail_mount(cover->target, rc, err);
	graft_journal_mounted(apply->journal, mount_fd);
	rc = graft_mount_settle(&apply->mounter, mount_fd, edit.flags, true);
	return rc < 0 ? fail_mount(cover->target, rc, err) : mount_fd;
}

/* Creates the file in the workshop and opens it as a source of a mount. */
static int make_cover(struct graft_apply *apply, const struct graft_edit *cover, int workshop_fd,
		      struct graft_source *ret_source, struct graft_error *err)
{
	static const char name[] = "cover";
	const char *content = cover->content ? cover->content : "";
	auto_close int fd = openat(workshop_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, cover->mode);
	int rc = fd < 0 ? -errno : graft_write_all(fd, content, strlen(content));

	if (rc == 0) {
		ret_source->fd = openat(workshop_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		rc = ret_source->fd < 0 ? -errno : 0;
	}
	if (rc < 0)
		return fail_target(apply, cover, rc, err);
	if (!graft_mounter_detaches(&apply->mounter))
		return 0;
	rc = graft_mount_clone_fd(ret_source->fd, 0);
	if (rc < 0)
		return fail_mount(cover->target, rc, err);
	(void)close(ret_source->fd);
	ret_source->fd = rc;
	ret_source->detached = true;
	rc = graft_mount_settle(&apply->mounter, ret_source->fd, cover->flags, false);
	return rc < 0 ? fail_mount(cover->target, rc, err) : 0;
}

/*
 * A mount of a single file needs a file system that contains the file, and procfs, where the
 * covered files are, has no room for it. QUIRK: a detached tmpfs would do, but only Linux 6.15 and
 * newer can copy a file of one; so it is attached for a moment, over the directory of the file.
 */
static int apply_cover(struct graft_apply *apply, const struct graft_edit *edit, struct graft_error *err)
{
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	struct graft_source source = GRAFT_SOURCE_INIT;
	struct graft_edit cover = *edit;
	int workshop_fd, rc = graft_place_existing(&apply->place, edit->target, false, &spot);

	if (rc == -ENOENT || rc == -ENOTDIR) {
		graft_info(apply->log, "nothing to cover at %s%s", apply->target->rootfs, edit->target);
		return 0;
	}
	if (rc < 0)
		return fail_target(apply, edit, rc, err);
	graft_info(apply->log, "covering %s%s", apply->target->rootfs, edit->target);
	cover.source = edit->target;
	cover.flags |= GRAFT_MOUNT_RDONLY;
	workshop_fd = mount_workshop(apply, &cover, err);
	if (workshop_fd < 0)
		return -1;
	rc = make_cover(apply, &cover, workshop_fd, &source, err);
	if (rc == 0)
		rc = mount_source(apply, &cover, &source, &spot, err);
	graft_source_close(&source);
	if (rc < 0)
		return -1;
	rc = graft_journal_unmount(apply->journal, workshop_fd);
	return rc < 0 ? fail_mount(edit->target, rc, err) : 0;
}

static int apply_file(struct graft_apply *apply, const struct graft_edit *edit, struct graft_error *err)
{
	const char *name, *content = edit->content ? edit->content : "";
	int parent_fd, rc;

	rc = graft_place_parent(&apply->place, edit->target, GRAFT_IMAGE_CONTENT, &parent_fd, &name);
	if (rc == 0)
		rc = graft_file_write(apply->journal, parent_fd, name, content, strlen(content), edit->mode);
	if (rc == -EXDEV)
		return leave_edit_out(apply, edit);
	return rc < 0 ? fail_target(apply, edit, rc, err) : 0;
}

static int apply_directory(struct graft_apply *apply, const struct graft_edit *edit, struct graft_error *err)
{
	int rc = graft_place_directory(&apply->place, edit->target, edit->mode);

	if (rc == -EXDEV)
		return leave_edit_out(apply, edit);
	return rc < 0 ? fail_target(apply, edit, rc, err) : 0;
}

/*
 * Mounts the library over a file that exists in place of the link. This is rare, so its source is
 * opened only now, for which we return to our own namespace for a moment. (With late sources, it
 * was opened along with the others.)
 */
static int bind_over(struct graft_apply *apply, const struct graft_edit *link, struct graft_source *source,
		     struct graft_error *err)
{
	struct graft_edit edit = *link;
	bool was_inside = apply->join.inside;
	int rc = 0;

	edit.kind = GRAFT_EDIT_BIND;
	edit.type = GRAFT_SOURCE_FILE;
	if (!apply->late) {
		if (was_inside && graft_join_leave(&apply->join, err) < 0)
			return -1;
		rc = graft_source_open(&apply->mounter, &edit, &apply->late, apply->log, source, err);
		if (was_inside && graft_join_enter(&apply->join, err) < 0)
			return -1;
	}
	return rc < 0 ? -1 : apply_bind(apply, &edit, source, err);
}

static int apply_symlink(struct graft_apply *apply, const struct graft_edit *edit, struct graft_source *source,
			 struct graft_error *err)
{
	const char *name;
	int parent_fd, rc;

	graft_info(apply->log, "creating symlink %s%s -> %s", apply->target->rootfs, edit->target, edit->content);
	rc = graft_place_parent(&apply->place, edit->target, GRAFT_IMAGE_CONTENT, &parent_fd, &name);
	if (rc == 0)
		rc = graft_file_link(apply->journal, parent_fd, name, edit->content, edit->conflict);
	if (rc == -EXDEV)
		return leave_edit_out(apply, edit);
	if (rc < 0)
		return fail_target(apply, edit, rc, err);
	if (rc == GRAFT_LINK_IS_FILE && edit->source)
		return bind_over(apply, edit, source, err);
	if (rc != GRAFT_LINK_DONE)
		graft_info(apply->log, "keeping the existing %s%s", apply->target->rootfs, edit->target);
	return 0;
}

int graft_apply_edit(struct graft_apply *apply, size_t index, struct graft_error *err)
{
	const struct graft_edit *edit = &apply->plan->edits[index];
	struct graft_source *source = &apply->sources[index];

	switch (edit->kind) {
	case GRAFT_EDIT_DIRECTORY:
		return apply_directory(apply, edit, err);
	case GRAFT_EDIT_TMPFS:
		return apply_tmpfs(apply, edit, err);
	case GRAFT_EDIT_FILE:
		return apply_file(apply, edit, err);
	case GRAFT_EDIT_BIND:
	case GRAFT_EDIT_DEVICE:
		return apply_bind(apply, edit, source, err);
	case GRAFT_EDIT_SYMLINK:
		return apply_symlink(apply, edit, source, err);
	case GRAFT_EDIT_COVER:
		return apply_cover(apply, edit, err);
	case GRAFT_EDIT_CGROUP:  /* all at once, later */
	case GRAFT_EDIT_LDCACHE: /* last */
	case GRAFT_EDIT_ENV:     /* for sinks that own the environment */
	case GRAFT_EDIT_MAX:
		return 0;
	}
	return 0;
}

/*
 * Whether the existing path is in a directory of the host that the plan has mounted, or this cannot
 * be determined. An edit that was left out has no place.
 */
static bool is_in_host_directory(const struct graft_apply *apply, const char *path)
{
	const char *found, *directory;

	if (graft_image_root_resolve(&apply->root, path, apply->arena, &found, NULL) < 0)
		return true;
	for (size_t i = 0; i < apply->plan->n_edits; i++) {
		const struct graft_edit *edit = &apply->plan->edits[i];
		int rc = graft_edit_mounts_directory(edit)
			     ? graft_image_root_resolve(&apply->root, edit->target, apply->arena, &directory, NULL)
			     : -ENOENT;

		if (rc == 0 ? graft_path_is_within(found, directory) : rc != -ENOENT && rc != -ENOTDIR)
			return true;
	}
	return false;
}

/*
 * Finds the last part of the path that exists, links followed: *ret_existing, without what is
 * missing. Returns 0 if nothing is missing or it is not in a directory of the host, -EXDEV if it
 * is, -ELOOP if a link leads to what is missing.
 */
static int look_for_later_place(const struct graft_apply *apply, const char *given, const char **ret_existing)
{
	const char *path = graft_path_clean("/", given, apply->arena);
	auto_close int fd = graft_image_root_look(&apply->root, given, 0);

	while (path && fd == -ENOENT) {
		auto_close int link_fd = graft_image_root_look(&apply->root, path, O_NOFOLLOW);

		if (link_fd >= 0 || graft_path_has_parents(given))
			return -ELOOP;
		path = strcmp(path, "/") == 0 ? NULL : graft_path_directory(path, apply->arena);
		if (!path)
			break;
		fd = graft_image_root_look(&apply->root, path, 0);
		if (fd >= 0 && is_in_host_directory(apply, path))
			return -EXDEV;
	}
	*ret_existing = path;
	if (!path)
		return -ENOMEM;
	return fd < 0 ? fd : 0;
}

static int fail_later(const char *what, const char *path, int rc, struct graft_error *err)
{
	if (rc == -EXDEV || rc == -ELOOP)
		return graft_fail(err, GRAFT_UNSAFE, 0, "the %s %s would be made %s", what, path,
				  rc == -EXDEV ? "in a directory of the host" : "where a link leads");
	if (rc == -ENOMEM)
		return graft_fail_memory(err);
	return graft_fail_errno(err, -rc, "path error: %s", path);
}

/* QUIRK: runc opens it to write, whatever it is, and makes it if it is missing. */
static int look_for_console(const struct graft_apply *apply)
{
	const char *existing;
	auto_close int fd = graft_image_root_look(&apply->root, CONSOLE, O_NOFOLLOW);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
		return -ELOOP;
	return fd >= 0 ? 0 : look_for_later_place(apply, CONSOLE, &existing);
}

/*
 * SECURITY: a hook that follows may make a link, at a place and to a place that links of the image
 * determine. So the path must have no link, and what is missing is made now.
 */
static int keep_working_directory(struct graft_apply *apply, const char *cwd, const char *existing,
				  struct graft_error *err)
{
	const char *clean = graft_path_clean("/", cwd, apply->arena), *found;
	struct graft_root_watch watch = graft_journal_watch(apply->journal);
	auto_close int fd = -1;
	int rc = graft_image_root_resolve(&apply->root, existing, apply->arena, &found, NULL);

	if (!clean)
		return graft_fail_memory(err);
	if (rc < 0)
		return fail_later("working directory", cwd, rc, err);
	if (strcmp(found, existing) != 0 || graft_path_has_parents(cwd)) {
		(void)graft_fail(err, GRAFT_UNSAFE, 0,
				 "the path of the working directory %s has a link or \"..\", and a later hook could "
				 "change where it leads",
				 cwd);
		return graft_with_hint(err, "Give it as a path without these.");
	}
	/* As the low-level runtime would, also in a volume: no link leads there. */
	rc = graft_image_root_mkdir(&apply->root, clean, 0755, GRAFT_IMAGE_MOUNTPOINT, &watch, &fd);
	return rc < 0 ? fail_later("working directory", cwd, rc, err) : 0;
}

int graft_apply_check_later(struct graft_apply *apply, const char *cwd, bool hooks_follow, struct graft_error *err)
{
	const char *existing = "/";
	int rc;

	if (!graft_plan_mounts_directory(apply->plan))
		return 0;
	rc = cwd[0] == '\0' ? 0 : look_for_later_place(apply, cwd, &existing);
	if (rc < 0)
		return fail_later("working directory", cwd, rc, err);
	if (hooks_follow && cwd[0] != '\0' && keep_working_directory(apply, cwd, existing, err) < 0)
		return -1;
	rc = look_for_console(apply);
	return rc < 0 ? fail_later("console", CONSOLE, rc, err) : 0;
}

bool graft_apply_does_without(struct graft_apply *apply, const struct graft_edit *edit, size_t length,
			      struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx)];
	bool undone;

	if (!edit->dispensable || err->status == GRAFT_NO_MEMORY)
		return false;
	undone = graft_journal_undo_to(apply->journal, length, NULL);
	graft_place_forget(&apply->place); /* undoing closed the directories that this edit opened */
	if (!undone) {
		(void)graft_wrap(err, "%s was created only in part, and could not be undone", edit->target);
		return false;
	}
	graft_warn(apply->log, "%s is left out: %s", edit->target, graft_error_text(err, text, sizeof(text)));
	graft_error_clear(err);
	return true;
}
