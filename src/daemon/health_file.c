/* SPDX-License-Identifier: Apache-2.0 */
/* health_file: a record with a JSON form. Does not know when it is read or written. */
#include "daemon/health_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "apply/replace.h"
#include "base/cleanup.h"
#include "base/read.h"
#include "base/root.h"
#include "formats/record.h"
#include "host/discover.h"

#define FILE_NAME "health.json"
#define FILE_MAX  ((size_t)1 << 20)

struct saved_health {
	const char *boot_id;
	struct health_fault *faults;
	size_t n_faults;
	struct health_mark *marks;
	size_t n_marks;
};

#define FAULT(member) struct health_fault, line.member
#define MARK(member)  struct health_mark, gpu.member
#define NUMBER(name_, kind_, where, doc_)                                                                       \
	{                                                                                                       \
		.name = (name_), .kind = GRAFT_FIELD_##kind_, .offset = offsetof(where), .doc = GRAFT_DOC(doc_) \
	}

/* clang-format off */
static const struct graft_field fault_fields[] = {
	NUMBER("domain", U32, FAULT(domain), "of the GPU's PCI address"),
	NUMBER("bus", U32, FAULT(bus), "the same"),
	NUMBER("device", U32, FAULT(device), "the same"),
	NUMBER("has_instance", BOOL, FAULT(has_instance), "it is of one MIG device"),
	NUMBER("gi", U32, FAULT(gi), "its GPU instance"),
	NUMBER("ci", U32, FAULT(ci), "its compute instance"),
	NUMBER("number", U32, FAULT(number), "the Xid"),
	NUMBER("sequence", U64, FAULT(sequence), "number of the record in the kernel log"),
	GRAFT_F_U64(struct health_fault, place.bound, false, "inode of the driver's link in sysfs when it failed"),
	GRAFT_F_U64(struct health_fault, place.procfs, false, "inode of its directory in procfs when it failed"),
};
static const struct graft_field mark_fields[] = {
	NUMBER("domain", U32, MARK(domain), "of the GPU's PCI address"),
	NUMBER("bus", U32, MARK(bus), "the same"),
	NUMBER("device", U32, MARK(device), "the same"),
	GRAFT_F_U64(struct health_mark, sequence, false, "what the log says up to this record is over"),
};
static const struct graft_record fault_record = { "fault", sizeof(struct health_fault), fault_fields, GRAFT_COUNT(fault_fields) };
static const struct graft_record mark_record = { "mark", sizeof(struct health_mark), mark_fields, GRAFT_COUNT(mark_fields) };
static const struct graft_field saved_fields[] = {
	GRAFT_F_STRING(struct saved_health, boot_id, true, "of the boot that it is valid for"),
	GRAFT_F_RECORDS(struct saved_health, faults, &fault_record, "GPUs that have failed"),
	GRAFT_F_RECORDS(struct saved_health, marks, &mark_record, "GPUs that have recovered"),
};
static const struct graft_record saved_record = { "health", sizeof(struct saved_health), saved_fields, GRAFT_COUNT(saved_fields) };
/* clang-format on */

/* NULL: not known. */
static const char *read_own_boot_id(struct graft_arena *arena)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *id = NULL;

	if (graft_root_open(&root, "/", NULL) == 0)
		(void)graft_host_boot_id(&root, arena, &id, NULL);
	return id;
}

static int open_state_file(const char *folder)
{
	auto_close int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return folder_fd < 0 ? -1 : openat(folder_fd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static int read_saved(int fd, struct graft_arena *arena, struct saved_health *saved, struct graft_error *err)
{
	const char *text;
	size_t length;
	int rc = graft_read_fd(fd, FILE_MAX, arena, &text, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "cannot read it");
	return graft_record_read(&saved_record, text, length, arena, saved, err);
}

void health_file_read(const char *folder, struct health *health, const struct graft_log *log)
{
	struct graft_arena *arena = graft_arena_new(FILE_MAX * 16);
	const char *boot_id = arena ? read_own_boot_id(arena) : NULL;
	struct saved_health saved = { .n_faults = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	auto_close int fd = open_state_file(folder);

	if (fd >= 0 && arena && read_saved(fd, arena, &saved, &err) < 0) {
		graft_warn(log, "%s/" FILE_NAME " is ignored: %s", folder, err.msg);
	} else if (fd >= 0 && boot_id && strcmp(saved.boot_id, boot_id) == 0) {
		health->n_known = saved.n_faults < HEALTH_MAX_FAULTS ? saved.n_faults : HEALTH_MAX_FAULTS;
		health->n_marks = saved.n_marks < HEALTH_MAX_FAULTS ? saved.n_marks : HEALTH_MAX_FAULTS;
		if (health->n_known > 0)
			memcpy(health->known, saved.faults, health->n_known * sizeof(*saved.faults));
		if (health->n_marks > 0)
			memcpy(health->marks, saved.marks, health->n_marks * sizeof(*saved.marks));
	}
	(void)graft_arena_free(arena);
}

/* Only what the log has reported: the rest is detected again. */
static size_t copy_logged(const struct health *health, struct health_fault *to)
{
	size_t n = 0;

	for (size_t i = 0; i < health->n_faults; i++) {
		if (health->faults[i].cause == HEALTH_XID)
			to[n++] = health->faults[i];
	}
	return n;
}

static int write_health_text(const char *folder, const struct graft_buffer *text)
{
	static const struct graft_replacement how = { .suffix = ".new", .make = true, .mode = 0644 };
	auto_close int folder_fd = -1;

	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return -errno;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0)
		return -errno;
	return graft_replace(folder_fd, FILE_NAME, &how, text->bytes, text->length);
}

void health_file_write(const char *folder, const struct health *health, const struct graft_log *log)
{
	struct graft_arena *arena = graft_arena_new(FILE_MAX);
	struct health_mark marks[HEALTH_MAX_FAULTS];
	struct health_fault faults[HEALTH_MAX_FAULTS];
	struct saved_health saved = { .faults = faults, .marks = marks, .n_marks = health->n_marks };
	struct graft_buffer text = { .max = FILE_MAX };
	int rc = -ENOENT;

	saved.boot_id = arena ? read_own_boot_id(arena) : NULL;
	saved.n_faults = copy_logged(health, faults);
	memcpy(marks, health->marks, sizeof(marks));
	if (saved.boot_id) {
		graft_record_write(&saved_record, &saved, &text);
		rc = graft_buffer_failed(&text) ? -ENOMEM : write_health_text(folder, &text);
	}
	if (rc < 0)
		graft_warn(log, "cannot save the health of GPUs in %s/" FILE_NAME ": %s", folder, strerror(-rc));
	graft_buffer_done(&text);
	(void)graft_arena_free(arena);
}
