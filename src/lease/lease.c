/* SPDX-License-Identifier: Apache-2.0 */
/* lease: the table of a lease's fields, and the checks that a lease must pass. */
#include "lease/lease.h"

#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "request/claim.h"

#define LABEL_MAX 64u
#define TEXT_MAX  4096u
#define OWNER_MAX 32u
#define LETTERS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const char *const holder_names[] = { "cgroup", "process", "pid-file", "token" };

static const struct graft_field slot_fields[] = {
	GRAFT_F_STRING(struct graft_lease_slot, gpu, true, "UUID of the GPU"),
	GRAFT_F_STRING(struct graft_lease_slot, mig, false, "UUID of the MIG device; absent: the whole GPU"),
	GRAFT_F_U32(struct graft_lease_slot, replica, false, "number of the slot of a shared GPU; absent: not shared"),
};
static const struct graft_record slot_record = { "lease_slot", sizeof(struct graft_lease_slot), slot_fields,
						 GRAFT_COUNT(slot_fields) };

static const struct graft_field holder_fields[] = {
	GRAFT_F_ENUM(struct graft_lease_holder, kind, holder_names, GRAFT_COUNT(holder_names), true,
		     "what keeps the lease alive besides its process"),
	GRAFT_F_U32(struct graft_lease_holder, pid, false, "the process; of a container, the one that makes it"),
	GRAFT_F_U64(struct graft_lease_holder, start_time, false, "when it started: field 22 of /proc/PID/stat"),
	GRAFT_F_U64(struct graft_lease_holder, pid_namespace, false, "inode of the namespace that `pid` belongs to"),
	GRAFT_F_U64(struct graft_lease_holder, clock, false,
		    "inode of the time namespace whose clocks count; absent: the first one"),
	GRAFT_F_U32(struct graft_lease_holder, cgroup_version, false, "1 or 2"),
	GRAFT_F_STRING(struct graft_lease_holder, cgroup_mount, false, "where the hierarchy is mounted"),
	GRAFT_F_U64(struct graft_lease_holder, cgroup_root, false, "inode of that directory"),
	GRAFT_F_STRING(struct graft_lease_holder, cgroup, false, "the cgroup below it"),
	GRAFT_F_U64(struct graft_lease_holder, cgroup_id, false, "its inode; absent: it did not exist yet"),
	GRAFT_F_STRING(struct graft_lease_holder, pid_file, false, "the file that names the container's process"),
	GRAFT_F_STRING(struct graft_lease_holder, container, false, "id of the container"),
};
static const struct graft_record holder_record = { "lease_holder", sizeof(struct graft_lease_holder), holder_fields,
						   GRAFT_COUNT(holder_fields) };

static const struct graft_field lease_fields[] = {
	GRAFT_F_STRING(struct graft_lease, id, true, "12 letters; the name of the file"),
	GRAFT_F_STRING(struct graft_lease, boot, true, "boot id of the host"),
	GRAFT_F_RECORDS(struct graft_lease, slots, &slot_record, "what is lent"),
	GRAFT_F_STRING(struct graft_lease, claim, true, "what was asked for"),
	GRAFT_F_STRING(struct graft_lease, of, false, "id of the lease with which it shares these slots"),
	GRAFT_F_RECORD(struct graft_lease, holder, &holder_record, "what keeps it alive"),
	GRAFT_F_U32(struct graft_lease, uid, true, "user id of the owner"),
	GRAFT_F_STRING(struct graft_lease, owner, false, "name of the owner, which counts instead of `uid`"),
	GRAFT_F_BOOL(struct graft_lease, urgent, "it goes to the head of the queue"),
	GRAFT_F_BOOL(struct graft_lease, has_user, "`user` is known"),
	GRAFT_F_U32(struct graft_lease, user, false, "user id of the programs that use it"),
	GRAFT_F_U32(struct graft_lease, limit_mib, false, "memory of a shared GPU that a program may use, in MiB"),
	GRAFT_F_U32(struct graft_lease, limit_percent, false,
		    "share of a GPU's processors that a program may use, in percent"),
	GRAFT_F_STRING(struct graft_lease, what, false, "an image, a container's program or a command"),
	GRAFT_F_U64(struct graft_lease, since, true, "when it was taken, in milliseconds since the host started"),
	GRAFT_F_U64(struct graft_lease, until, false, "when it ends, likewise"),
	GRAFT_F_I64(struct graft_lease, date, true, "when it was taken, in seconds since 1970"),
};
const struct graft_record graft_lease_record = { "lease", sizeof(struct graft_lease), lease_fields,
						 GRAFT_COUNT(lease_fields) };

/* Returns whether a text that may be absent is short and of printable ASCII. */
static bool is_plain(const char *text, size_t max)
{
	size_t length = text ? strlen(text) : 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return length <= max;
}

bool graft_lease_path_is_valid(const char *path)
{
	return path && path[0] == '/' && is_plain(path, TEXT_MAX) && !graft_path_has_dots(path);
}

/* "GPU-...", "MIG-...", "MIG-GPU-.../1/0" */
static bool is_lease_uuid(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/") == strlen(text) &&
	       text[0] != '\0' && strlen(text) <= 96;
}

static const char *check_holder(const struct graft_lease_holder *holder, const struct graft_lease *lease)
{
	if (!is_plain(holder->container, TEXT_MAX))
		return "holder.container";
	if (holder->pid_file && !graft_lease_path_is_valid(holder->pid_file))
		return "holder.pid_file";
	switch (holder->kind) {
	case GRAFT_HOLDER_CGROUP:
		if (holder->cgroup_version < 1 || holder->cgroup_version > 2 ||
		    !graft_lease_path_is_valid(holder->cgroup_mount) || !graft_lease_path_is_valid(holder->cgroup) ||
		    holder->cgroup[1] == '\0')
			return "holder.cgroup";
		break;
	case GRAFT_HOLDER_PID_FILE:
		if (!holder->pid_file)
			return "holder.pid_file";
		break;
	case GRAFT_HOLDER_TOKEN:
		return lease->until > 0 ? NULL : "until";
	case GRAFT_HOLDER_PROCESS:
		break;
	}
	return holder->pid > 0 && holder->pid <= INT32_MAX ? NULL : "holder.pid";
}

const char *graft_lease_check(const struct graft_lease *lease)
{
	if (!graft_lease_id_is_valid(lease->id) || (lease->of && !graft_lease_id_is_valid(lease->of)))
		return "id";
	if (!is_plain(lease->boot, LABEL_MAX) || !is_plain(lease->what, LABEL_MAX) ||
	    !is_plain(lease->claim, TEXT_MAX) || !is_plain(lease->owner, OWNER_MAX))
		return "text";
	/* Without slots it is a ticket, which no token can hold. */
	if (lease->n_slots > GRAFT_LEASE_SLOTS_MAX ||
	    (lease->n_slots == 0 && lease->holder.kind != GRAFT_HOLDER_PROCESS))
		return "slots";
	for (size_t i = 0; i < lease->n_slots; i++) {
		if (lease->slots[i].replica > GRAFT_LEASE_REPLICAS || !is_lease_uuid(lease->slots[i].gpu) ||
		    (lease->slots[i].mig && !is_lease_uuid(lease->slots[i].mig)))
			return "slots";
	}
	return check_holder(&lease->holder, lease);
}

int graft_lease_parse(const char *text, size_t length, struct graft_arena *arena, struct graft_lease *ret_lease,
		      struct graft_error *err)
{
	const char *wrong;

	*ret_lease = (struct graft_lease){ .id = NULL };
	if (length > GRAFT_LEASE_BYTES_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "the lease is larger than %zu bytes", GRAFT_LEASE_BYTES_MAX);
	if (graft_record_read(&graft_lease_record, text, length, arena, ret_lease, err) < 0)
		return -1;
	wrong = graft_lease_check(ret_lease);
	return wrong ? graft_fail(err, GRAFT_FORMAT, 0, "%s: not valid in a lease", wrong) : 0;
}

void graft_lease_write(const struct graft_lease *lease, struct graft_buffer *out)
{
	graft_record_write(&graft_lease_record, lease, out);
}

bool graft_lease_is_of_pod(const struct graft_lease *lease)
{
	return lease->claim && strcmp(lease->claim, GRAFT_LEASE_OF_POD) == 0;
}

bool graft_lease_owner_is_valid(const char *text)
{
	size_t length = strlen(text);

	return length <= OWNER_MAX && strspn(text, LETTERS) > 0 && strspn(text, LETTERS "0123456789.-_@") == length &&
	       strcmp(text, "default") != 0;
}

bool graft_lease_has_same_owner(const struct graft_lease *a, const struct graft_lease *b)
{
	if (a->owner || b->owner)
		return a->owner && b->owner && strcmp(a->owner, b->owner) == 0;
	return a->uid == b->uid;
}

void graft_lease_add_owner(const struct graft_lease *lease, struct graft_buffer *out)
{
	if (lease->owner)
		graft_buffer_string(out, lease->owner);
	else
		graft_buffer_printf(out, "uid %u", lease->uid);
}

const char *graft_lease_new_id(struct graft_arena *arena)
{
	unsigned char bytes[GRAFT_LEASE_ID_SIZE];
	char id[GRAFT_LEASE_ID_SIZE + 1] = "";

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return NULL;
	for (size_t i = 0; i < GRAFT_LEASE_ID_SIZE; i++)
		id[i] = "abcdefghijklmnopqrstuvwxyz234567"[bytes[i] % 32];
	return graft_arena_strdup(arena, id);
}

const char *graft_lease_label(const char *text, struct graft_arena *arena)
{
	char *label = text ? graft_arena_strndup(arena, text, LABEL_MAX) : NULL;

	for (char *at = label; at && *at != '\0'; at++) {
		if (*at < ' ' || *at > '~')
			*at = '?';
	}
	return label;
}

void graft_lease_add_span(uint64_t ms, struct graft_buffer *out)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} rows[] = { { "d", 86400000 }, { "h", 3600000 }, { "min", 60000 }, { "s", 1000 } };
	size_t i = 0;

	while (i + 1 < GRAFT_COUNT(rows) && ms < rows[i].ms)
		i++;
	graft_buffer_printf(out, "%llu %s", (unsigned long long)(ms / rows[i].ms), rows[i].unit);
}

void graft_lease_describe(const struct graft_lease *lease, uint64_t now, struct graft_buffer *out)
{
	const struct graft_lease_holder *holder = &lease->holder;

	if (graft_lease_is_of_pod(lease))
		graft_buffer_string(out, "Kubernetes");
	else
		graft_lease_add_owner(lease, out);
	graft_buffer_string(out, " (");
	if (graft_lease_is_of_pod(lease))
		graft_buffer_printf(out, "%s%.13s", holder->container ? "pod " : "a new pod",
				    holder->container ? holder->container : "");
	else if (holder->container)
		graft_buffer_printf(out, "container %.12s", holder->container);
	else if (holder->kind == GRAFT_HOLDER_TOKEN)
		graft_buffer_printf(out, "lease %s", lease->id);
	else
		graft_buffer_printf(out, "process %u", holder->pid);
	graft_buffer_string(out, ", ");
	graft_lease_add_span(now > lease->since ? now - lease->since : 0, out);
	if (lease->until > 0) {
		graft_buffer_string(out, ", ");
		graft_lease_add_span(lease->until > now ? lease->until - now : now - lease->until, out);
		graft_buffer_string(out, lease->until > now ? " left" : " overdue");
	}
	graft_buffer_string(out, ")");
}
