/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: the field tables of the plan's JSON form, and its allocation. Knows neither how a plan is
 * made nor how it is applied.
 */
#include "plan/plan.h"

#include "base/cleanup.h"

/*
 * A plan for 64 GPUs is some thousand edits of a few hundred bytes; the text form is limited to 16
 * MiB.
 */
#define ARENA_MAX ((size_t)64 << 20)

const char *const graft_edit_names[GRAFT_EDIT_MAX] = {
#define X(name, word, meaning) [GRAFT_EDIT_##name] = word,
	GRAFT_EDIT_LIST(X)
#undef X
};
const char *const graft_mount_flag_names[5] = { "ro", "nosuid", "nodev", "noexec", "recursive" };
const char *const graft_source_type_names[3] = { "file", "directory", "socket" };
const char *const graft_conflict_names[3] = { "keep", "replace", "overwrite" };

static const struct graft_field entry_fields[] = {
	GRAFT_F_STRING(struct graft_ldcache_entry, soname, true, "name that the loader looks for"),
	GRAFT_F_STRING(struct graft_ldcache_entry, path, true, "path in the container"),
	GRAFT_F_U32(struct graft_ldcache_entry, abi_flags, true, "ABI as the flags in ld.so.cache"),
};
static const struct graft_record entry_record = { "ldcache_entry", sizeof(struct graft_ldcache_entry), entry_fields,
						  GRAFT_COUNT(entry_fields) };

static const struct graft_field edit_fields[] = {
	GRAFT_F_ENUM(struct graft_edit, kind, graft_edit_names, GRAFT_EDIT_MAX, true, "kind of the edit"),
	GRAFT_F_STRING(struct graft_edit, source, false,
		       "host path with the driver root's prefix (bind, device, symlink that replaces)"),
	GRAFT_F_STRING(struct graft_edit, target, false, "path in the container; env: name of the variable"),
	GRAFT_F_STRING(struct graft_edit, content, false,
		       "file, cover: its text; symlink: its destination; env: value of the variable"),
	GRAFT_F_ENUM(struct graft_edit, type, graft_source_type_names, GRAFT_COUNT(graft_source_type_names), false,
		     "what the source is (bind); absent: a file"),
	GRAFT_F_ENUM(struct graft_edit, conflict, graft_conflict_names, GRAFT_COUNT(graft_conflict_names), false,
		     "what a symlink does with an existing file at its target; absent: keep it"),
	GRAFT_F_U32(struct graft_edit, mode, false,
		    "permission bits as a decimal number; device: those of the node; bind: of a mount point that must "
		    "be created"),
	GRAFT_F_FLAGS(
	    struct graft_edit, flags, graft_mount_flag_names, GRAFT_COUNT(graft_mount_flag_names),
	    "what a mount gets (tmpfs, bind, cover, device; symlink that replaces: the bind over an existing file)"),
	GRAFT_F_U32(struct graft_edit, major, false, "device number (device, cgroup)"),
	GRAFT_F_U32(struct graft_edit, minor, false, "device number (device, cgroup)"),
	GRAFT_F_U32(struct graft_edit, uid, false, "owner of the host's node (device)"),
	GRAFT_F_U32(struct graft_edit, gid, false, "group of the host's node (device)"),
	GRAFT_F_STRING(struct graft_edit, access, false, "letters of the device rule (cgroup)"),
	GRAFT_F_STRINGS(struct graft_edit, folders, "directories of the entries, in search order (ldcache)"),
	GRAFT_F_STRINGS(struct graft_edit, missing_folders,
			"those that the image's own configuration does not search (ldcache)"),
	GRAFT_F_RECORDS(struct graft_edit, entries, &entry_record,
			"libraries for the loader, first found first (ldcache)"),
	GRAFT_F_STRING(struct graft_edit, musl_path_file, false,
		       "search path file of a musl image (ldcache); entries are then not used"),
	GRAFT_F_STRING(struct graft_edit, musl_path, false, "the whole new text of this file"),
	GRAFT_F_BOOL(struct graft_edit, optional,
		     "a source that vanished is skipped with a warning; of a device: the host does not have it yet"),
	GRAFT_F_BOOL(struct graft_edit, dispensable,
		     "an edit that cannot be made is left out with a warning; the container does without it"),
	GRAFT_F_STRING(struct graft_edit, rule, true, "stable name of the rule that made the edit"),
	GRAFT_F_STRING(struct graft_edit, why, true, "the reason, for a person"),
};
const struct graft_record graft_edit_record = { "edit", sizeof(struct graft_edit), edit_fields,
						GRAFT_COUNT(edit_fields) };

static const struct graft_field refusal_fields[] = {
	GRAFT_F_STRING(struct graft_refusal, what, true, "what was asked for or is present"),
	GRAFT_F_STRING(struct graft_refusal, why, true, "why the container does not get it"),
};
static const struct graft_record refusal_record = { "refusal", sizeof(struct graft_refusal), refusal_fields,
						    GRAFT_COUNT(refusal_fields) };

static const struct graft_field grant_fields[] = {
	GRAFT_F_STRING(struct graft_grant, uuid, false, "UUID of the GPU or MIG device, where it is known"),
	GRAFT_F_STRING(struct graft_grant, bus_id, false, "PCI address of the GPU"),
	GRAFT_F_U32(struct graft_grant, index, true, "index of the GPU"),
	GRAFT_F_U32(struct graft_grant, minor, false, "minor number of the GPU's device node"),
	GRAFT_F_BOOL(struct graft_grant, mig, "a MIG device of that GPU"),
	GRAFT_F_U32(struct graft_grant, mig_index, false, "index of the MIG device in its GPU"),
	GRAFT_F_U32(struct graft_grant, gi, false, "GPU instance"),
	GRAFT_F_U32(struct graft_grant, ci, false, "compute instance"),
	GRAFT_F_STRING(struct graft_grant, model, false, "product name"),
};
static const struct graft_record grant_record = { "grant", sizeof(struct graft_grant), grant_fields,
						  GRAFT_COUNT(grant_fields) };

static const struct graft_field plan_fields[] = {
	GRAFT_F_U32(struct graft_plan, version, true, "version of this format"),
	GRAFT_F_STRING(struct graft_plan, driver_version, false, "version of the kernel driver"),
	GRAFT_F_BOOL(struct graft_plan, simulated, "made for Graft's simulated driver"),
	GRAFT_F_RECORDS(struct graft_plan, grants, &grant_record, "the GPUs and MIG devices that the container gets"),
	GRAFT_F_RECORDS(struct graft_plan, edits, &graft_edit_record, "the edits, in this order"),
	GRAFT_F_RECORDS(struct graft_plan, refusals, &refusal_record, "what the container does not get, and why"),
	GRAFT_F_RECORDS(struct graft_plan, missing, &refusal_record, "what it asked for but the host lacks, and why"),
	GRAFT_F_STRING(struct graft_plan, late_mounts, false,
		       "which files would be mounted after create, and why others would not"),
};
const struct graft_record graft_plan_record = { "plan", sizeof(struct graft_plan), plan_fields,
						GRAFT_COUNT(plan_fields) };

struct graft_plan *graft_plan_new(void)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_plan *plan = arena ? graft_arena_alloc(arena, sizeof(*plan)) : NULL;

	if (!plan) {
		(void)graft_arena_free(arena);
		return NULL;
	}
	plan->version = GRAFT_PLAN_VERSION;
	plan->arena = arena;
	return plan;
}

struct graft_plan *graft_plan_free(struct graft_plan *plan)
{
	if (plan)
		(void)graft_arena_free(plan->arena);
	return NULL;
}

bool graft_edit_mounts_directory(const struct graft_edit *edit)
{
	return edit->kind == GRAFT_EDIT_BIND && edit->type == GRAFT_SOURCE_DIRECTORY;
}

bool graft_edit_mounts_libraries(const struct graft_edit *edit)
{
	return graft_edit_mounts_directory(edit) &&
	       (edit->flags & (GRAFT_MOUNT_RECURSIVE | GRAFT_MOUNT_NOEXEC)) == GRAFT_MOUNT_RECURSIVE;
}

bool graft_plan_mounts_directory(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++)
		if (graft_edit_mounts_directory(&plan->edits[i]))
			return true;
	return false;
}

const struct graft_edit *graft_plan_find(const struct graft_plan *plan, enum graft_edit_kind kind)
{
	for (size_t i = 0; i < plan->n_edits; i++)
		if (plan->edits[i].kind == kind)
			return &plan->edits[i];
	return NULL;
}

void graft_plan_write(const struct graft_plan *plan, struct graft_buffer *out)
{
	graft_record_write(&graft_plan_record, plan, out);
}

int graft_plan_read(const char *json, size_t length, struct graft_plan **ret_plan, struct graft_error *err)
{
	struct graft_plan *plan = graft_plan_new();
	uint32_t version;

	if (!plan)
		return graft_fail_memory(err);
	plan->version = 0;
	if (graft_record_read(&graft_plan_record, json, length, plan->arena, plan, err) < 0) {
		(void)graft_plan_free(plan);
		return graft_wrap(err, "plan");
	}
	version = plan->version;
	if (version != GRAFT_PLAN_VERSION) {
		(void)graft_plan_free(plan);
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "unsupported plan version: %u", version);
	}
	*ret_plan = plan;
	return 0;
}
