/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_v2: device rules as BPF programs, through bpf(2) directly. Reads the programs that are
 * attached to the cgroup, prepends our rules to each (apply/cgroup/device_program.c) and swaps each
 * for its successor.
 *
 *   first, changing nothing:   query ids > open each > read its instructions > prepend > load
 *   then, one after the other: swap; a failure swaps the earlier ones back
 *
 * SECURITY: an attached program is never detached before its successor is in force. If several
 * programs are attached, all of them must allow an access, so rights during the swap are never
 * wider than after it or narrower than before.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apply/cgroup/cgroup_scope.h"
#include "apply/cgroup/cgroup_versions.h"
#include "apply/cgroup/device_program.h"
#include "base/arena.h"
#include "base/cleanup.h"

#define PROGRAM_NAME  "graft_devices" /* at most 15 characters */
#define MAX_PROGRAMS  64u             /* the kernel's own limit for one cgroup */
#define MAX_INSNS     1000000u        /* the verifier's limit */
#define MAX_ATTEMPTS  10
#define ARENA_MAX     ((size_t)64 * 1024 * 1024)
#define VERIFIER_TEXT 4096u

/* An attached program and its successor. */
struct program {
	uint32_t id;
	char name[BPF_OBJ_NAME_LEN];
	int fd;     /* owned */
	int new_fd; /* owned; -1: the program stays */
	bool opened;
	const struct bpf_insn *insns;
	size_t n_insns;
};

struct work {
	int cgroup_fd;
	bool effective; /* also the programs of the cgroups above */
	uint32_t attach_flags;
	struct program *programs;
	uint32_t n_programs;
	struct graft_arena *arena;
	const struct graft_log *log;
};

enum outcome { FAILED = -1, DONE = 0, CHANGED_MEANWHILE = 1 };

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static __u64 address_of(const void *p)
{
	return (__u64)(uintptr_t)p;
}

/* -------- reading what is attached -------- */

static int query(struct work *work, uint32_t ids[MAX_PROGRAMS], struct graft_error *err)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.query.target_fd = (__u32)work->cgroup_fd;
	attr.query.attach_type = BPF_CGROUP_DEVICE;
	attr.query.prog_ids = address_of(ids);
	attr.query.prog_cnt = MAX_PROGRAMS;
	attr.query.query_flags = work->effective ? BPF_F_QUERY_EFFECTIVE : 0;
	if (bpf(BPF_PROG_QUERY, &attr) < 0)
		return graft_fail_errno(err, errno, "bpf_prog_query(BPF_CGROUP_DEVICE) failed");
	work->n_programs = attr.query.prog_cnt;
	work->attach_flags = attr.query.attach_flags & (BPF_F_ALLOW_MULTI | BPF_F_ALLOW_OVERRIDE);
	return 0;
}

static int open_program(uint32_t id)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_id = id;
	return bpf(BPF_PROG_GET_FD_BY_ID, &attr);
}

static int program_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (__u32)fd;
	attr.info.info_len = sizeof(*info);
	attr.info.info = address_of(info);
	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* Reads the name and the translated instructions of an open program. */
static int read_device_program(struct work *work, struct program *program, struct graft_error *err)
{
	struct bpf_prog_info info;
	struct bpf_insn *insns;
	uint32_t size;

	memset(&info, 0, sizeof(info));
	if (program_info(program->fd, &info) < 0)
		return graft_fail_errno(err, errno, "cannot read device program %u", program->id);
	memcpy(program->name, info.name, sizeof(program->name) - 1);
	size = info.xlated_prog_len;
	if (size == 0) /* the kernel reports this way that we may not see them */
		return graft_fail_errno(err, EPERM, "cannot read the instructions of device program %u", program->id);
	if (size > MAX_INSNS * sizeof(*insns))
		return graft_fail(err, GRAFT_TOO_BIG, 0, "device program %u is too long", program->id);
	insns = graft_arena_alloc(work->arena, size);
	if (!insns)
		return graft_fail_memory(err);
	memset(&info, 0, sizeof(info));
	info.xlated_prog_insns = address_of(insns);
	info.xlated_prog_len = size;
	if (program_info(program->fd, &info) < 0 || info.xlated_prog_len != size)
		return graft_fail_errno(err, errno, "cannot read the instructions of device program %u", program->id);
	program->insns = insns;
	program->n_insns = size / sizeof(*insns);
	return 0;
}

/* SPEC libnvidia-container 10: a program that a security module hides from us is left in place. */
static enum outcome open_one(struct work *work, struct program *program, struct graft_error *err)
{
	program->fd = open_program(program->id);
	if (program->fd < 0 && errno == ENOENT)
		return CHANGED_MEANWHILE;
	if (program->fd < 0 && (errno == EPERM || errno == EACCES)) {
		graft_warn(work->log, "device program %u cannot be opened, so it stays unchanged", program->id);
		return DONE;
	}
	if (program->fd < 0)
		return graft_fail_errno(err, errno, "cannot open device program %u", program->id);
	program->opened = true;
	return read_device_program(work, program, err) < 0 ? FAILED : DONE;
}

static enum outcome open_programs(struct work *work, struct graft_error *err)
{
	uint32_t ids[MAX_PROGRAMS];
	uint32_t n_opened = 0;

	if (query(work, ids, err) < 0)
		return FAILED;
	work->programs = graft_arena_list(work->arena, work->n_programs, sizeof(*work->programs));
	if (!work->programs && work->n_programs > 0) {
		work->n_programs = 0;
		return graft_fail_memory(err);
	}
	for (uint32_t i = 0; i < work->n_programs; i++)
		work->programs[i] = (struct program){ .id = ids[i], .fd = -1, .new_fd = -1 };
	for (uint32_t i = 0; i < work->n_programs; i++) {
		enum outcome outcome = open_one(work, &work->programs[i], err);

		if (outcome != DONE)
			return outcome;
		n_opened += work->programs[i].opened;
	}
	if (n_opened == 0 && work->n_programs > 0)
		return graft_fail(err, GRAFT_PERMISSION, EPERM, "cannot open the device programs of the cgroup");
	return DONE;
}

/* -------- making the successors -------- */

/* QUIRK: BPF_PROG_LOAD fails with EAGAIN while a signal is pending. */
static int load_once(union bpf_attr *attr)
{
	int fd;

	for (int i = 0; i < 5; i++) {
		fd = bpf(BPF_PROG_LOAD, attr);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd;
}

/*
 * BASELINE 5.11: older kernels charge programs to RLIMIT_MEMLOCK and fail with EPERM or ENOMEM when
 * it is exhausted. Raises the limit as far as permitted for this one call.
 */
static int load_with_more_memory(union bpf_attr *attr)
{
	int saved = errno, fd;
	struct rlimit before, more = { RLIM_INFINITY, RLIM_INFINITY };

	if (getrlimit(RLIMIT_MEMLOCK, &before) < 0)
		return -1;
	if (setrlimit(RLIMIT_MEMLOCK, &more) < 0) {
		more = (struct rlimit){ before.rlim_max, before.rlim_max };
		if (before.rlim_cur == before.rlim_max || setrlimit(RLIMIT_MEMLOCK, &more) < 0) {
			errno = saved;
			return -1;
		}
	}
	fd = load_once(attr);
	saved = errno;
	(void)setrlimit(RLIMIT_MEMLOCK, &before);
	errno = saved;
	return fd;
}

static void log_verifier(const struct work *work, union bpf_attr *attr)
{
	char text[VERIFIER_TEXT];
	int fd;

	if (!work->log || work->log->max < GRAFT_LOG_DEBUG)
		return;
	text[0] = '\0';
	attr->log_buf = address_of(text);
	attr->log_size = sizeof(text);
	attr->log_level = 1;
	fd = bpf(BPF_PROG_LOAD, attr);
	graft_cleanup_close(&fd);
	text[sizeof(text) - 1] = '\0';
	graft_debug(work->log, "the kernel's verifier says: %s", text);
}

static int load_device_program(const struct work *work, const struct program *program, const struct bpf_insn *insns,
			       size_t n, struct graft_error *err)
{
	union bpf_attr attr;
	int fd, failure;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = address_of(insns);
	attr.insn_cnt = (__u32)n;
	attr.license = address_of("Apache");
	memcpy(attr.prog_name, PROGRAM_NAME, sizeof(PROGRAM_NAME));
	fd = load_once(&attr);
	if (fd < 0 && (errno == EPERM || errno == ENOMEM))
		fd = load_with_more_memory(&attr);
	if (fd >= 0)
		return fd;
	failure = errno;
	if (failure != EPERM && failure != EACCES)
		log_verifier(work, &attr);
	return graft_fail_errno(err, failure, "cannot load device program %u '%s' with more rules", program->id,
				program->name);
}

static int make_successor(struct work *work, struct program *program, const struct graft_device_rule *rules,
			  size_t n_rules, struct graft_error *err)
{
	const char *obstacle = graft_device_program_obstacle(program->insns, program->n_insns);
	struct graft_device_rule *missing;
	struct bpf_insn *insns;
	size_t n_missing, n;

	if (graft_device_program_missing(program->insns, program->n_insns, rules, n_rules, work->arena, &missing,
					 &n_missing, err) < 0)
		return -1;
	if (n_missing == 0) {
		graft_debug(work->log, "device program %u already has the rules", program->id);
		return 0;
	}
	if (obstacle)
		return graft_fail(err, GRAFT_UNSUPPORTED, 0,
				  "device program %u '%s' uses %s, so it cannot be loaded again with more rules",
				  program->id, program->name, obstacle);
	if (graft_device_program_prepend(program->insns, program->n_insns, missing, n_missing, work->arena, &insns, &n,
					 err) < 0)
		return -1;
	program->new_fd = load_device_program(work, program, insns, n, err);
	return program->new_fd < 0 ? -1 : 0;
}

/* -------- swapping -------- */

/* Attaches new_fd, replacing old_fd unless that is -1. Returns 0 or -errno. */
static int attach(int cgroup_fd, int new_fd, int old_fd, uint32_t flags)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (__u32)cgroup_fd;
	attr.attach_bpf_fd = (__u32)new_fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = flags;
	if (old_fd >= 0) {
		attr.attach_flags |= BPF_F_REPLACE;
		attr.replace_bpf_fd = (__u32)old_fd;
	}
	return bpf(BPF_PROG_ATTACH, &attr) < 0 ? -errno : 0;
}

static int detach(int cgroup_fd, int fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (__u32)cgroup_fd;
	attr.attach_bpf_fd = (__u32)fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	return bpf(BPF_PROG_DETACH, &attr) < 0 ? -errno : 0;
}

/*
 * Replaces old_fd with new_fd. Returns 0, or -errno with nothing changed; -ENOENT means that old_fd
 * is not attached, or no longer.
 */
static int swap(int cgroup_fd, int old_fd, int new_fd, uint32_t flags)
{
	int r;

	if (!(flags & BPF_F_ALLOW_MULTI)) /* only one program can be attached, and attaching replaces it atomically */
		return attach(cgroup_fd, new_fd, -1, flags);
	r = attach(cgroup_fd, new_fd, old_fd, flags);
	if (r != -EINVAL)
		return r;
	/*
	 * BASELINE 5.6: no BPF_F_REPLACE. While both are attached, both must allow, which amounts
	 * to the rights before.
	 */
	r = attach(cgroup_fd, new_fd, -1, flags);
	if (r < 0)
		return r;
	r = detach(cgroup_fd, old_fd);
	if (r < 0)
		(void)detach(cgroup_fd, new_fd);
	return r;
}

int graft_cgroup_v2_undo(const struct graft_cgroup *cgroup, const struct graft_cgroup_change *change)
{
	return swap(cgroup->dir_fd, change->new_fd, change->old_fd, change->attach_flags);
}

/* Swaps the programs that have a successor; `changes` has room for all of them. */
static enum outcome swap_all(struct graft_cgroup *cgroup, struct work *work, struct graft_cgroup_change *changes,
			     struct graft_error *err)
{
	size_t n = 0;
	int r = 0;

	for (uint32_t i = 0; i < work->n_programs && r == 0; i++) {
		struct program *program = &work->programs[i];

		if (program->new_fd < 0)
			continue;
		r = swap(cgroup->dir_fd, program->fd, program->new_fd, work->attach_flags);
		if (r < 0)
			(void)graft_fail_errno(err, -r, "cannot replace device program %u '%s'", program->id,
					       program->name);
		else
			changes[n++] = (struct graft_cgroup_change){ .attach_flags = work->attach_flags,
								     .old_fd = TAKE_FD(program->fd),
								     .new_fd = TAKE_FD(program->new_fd) };
	}
	while (r < 0 && n > 0) {
		struct graft_cgroup_change *change = &changes[--n];

		(void)graft_cgroup_v2_undo(cgroup, change);
		graft_cleanup_close(&change->old_fd);
		graft_cleanup_close(&change->new_fd);
		*change = (struct graft_cgroup_change){ .old_fd = -1, .new_fd = -1 };
	}
	return r == -ENOENT ? CHANGED_MEANWHILE : r < 0 ? FAILED : DONE;
}

static enum outcome allow_once(struct graft_cgroup *cgroup, struct work *work, const struct graft_device_rule *rules,
			       size_t n_rules, struct graft_error *err)
{
	enum outcome outcome = open_programs(work, err);
	struct graft_cgroup_change *changes;
	size_t n_successors = 0;

	if (outcome != DONE)
		return outcome;
	if (work->n_programs == 0) {
		graft_info(work->log, "%s has no device program, so every device is already allowed", cgroup->path);
		return DONE;
	}
	for (uint32_t i = 0; i < work->n_programs; i++) {
		if (work->programs[i].opened && make_successor(work, &work->programs[i], rules, n_rules, err) < 0)
			return FAILED;
		n_successors += work->programs[i].new_fd >= 0;
	}
	if (n_successors == 0)
		return DONE;
	changes = graft_cgroup_changes_grow(cgroup, n_successors);
	if (!changes)
		return graft_fail_memory(err);
	outcome = swap_all(cgroup, work, changes, err);
	if (outcome != DONE)
		cgroup->n_changes -= n_successors;
	else
		graft_debug(work->log, "%zu device program(s) of %s replaced", n_successors, cgroup->path);
	return outcome;
}

static void v2_work_done(struct work *work)
{
	for (uint32_t i = 0; i < work->n_programs && work->programs; i++) {
		graft_cleanup_close(&work->programs[i].fd);
		graft_cleanup_close(&work->programs[i].new_fd);
	}
	work->arena = graft_arena_free(work->arena);
}

int graft_cgroup_v2_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
			  const struct graft_log *log, struct graft_error *err)
{
	for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		__attribute__((cleanup(v2_work_done))) struct work work = { .cgroup_fd = cgroup->dir_fd,
									    .arena = graft_arena_new(ARENA_MAX),
									    .log = log };
		enum outcome outcome;

		if (!work.arena)
			return graft_fail_memory(err);
		outcome = allow_once(cgroup, &work, rules, n_rules, err);
		if (outcome != CHANGED_MEANWHILE)
			return outcome == DONE ? 0 : -1;
		graft_debug(log, "the device programs of %s changed meanwhile; reading them again", cgroup->path);
	}
	return graft_fail(err, GRAFT_CGROUP, 0,
			  "the device programs of %s keep changing, or are attached by a BPF link", cgroup->path);
}

/* -------- what is allowed now -------- */

/* Every program must allow an access; one that cannot be read may deny it. */
static enum graft_device_answer answer_of_programs(const struct work *work, const struct graft_device_rule *access)
{
	enum graft_device_answer answer = GRAFT_ANSWER_ALLOWED;

	for (uint32_t i = 0; i < work->n_programs; i++) {
		const struct program *program = &work->programs[i];
		enum graft_device_answer one = program->opened ? graft_device_program_answer(program->insns,
											     program->n_insns, access)
							       : GRAFT_ANSWER_UNKNOWN;

		if (one == GRAFT_ANSWER_DENIED)
			return one;
		if (one == GRAFT_ANSWER_UNKNOWN)
			answer = one;
	}
	return answer;
}

int graft_cgroup_v2_look(struct graft_cgroup *cgroup, const struct graft_device_rule *accesses, size_t n,
			 const struct graft_log *log, enum graft_device_answer *ret_answers, struct graft_error *err)
{
	for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		__attribute__((cleanup(v2_work_done))) struct work work = {
			.cgroup_fd = cgroup->dir_fd, .effective = true, .arena = graft_arena_new(ARENA_MAX), .log = log
		};
		enum outcome outcome;

		if (!work.arena)
			return graft_fail_memory(err);
		outcome = open_programs(&work, err);
		if (outcome == FAILED)
			return -1;
		if (outcome != DONE)
			continue;
		for (size_t i = 0; i < n; i++)
			ret_answers[i] = answer_of_programs(&work, &accesses[i]);
		return 0;
	}
	return graft_fail(err, GRAFT_CGROUP, 0, "the device programs of %s keep changing", cgroup->path);
}

/* -------- a cgroup of our own -------- */

#define NO_MAJOR (-1)

/*
 * Forbids the nodes of GPUs, and all of one major. The jumps end at the last two instructions,
 * which allow.
 */
static const struct bpf_insn no_gpu[] = {
	{ .code = BPF_LDX | BPF_MEM | BPF_W,
	  .dst_reg = BPF_REG_2,
	  .src_reg = BPF_REG_1,
	  .off = 0 }, /* type and access */
	{ .code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = 0xffff },
	{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_2, .off = 7, .imm = BPF_DEVCG_DEV_CHAR },
	{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1, .off = 4 }, /* major */
	{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_2, .off = 3, .imm = NO_MAJOR },
	{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_2, .off = 4, .imm = GRAFT_SCOPE_GPU_MAJOR },
	{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1, .off = 8 }, /* minor */
	{ .code = BPF_JMP | BPF_JGT | BPF_K, .dst_reg = BPF_REG_2, .off = 2, .imm = GRAFT_SCOPE_GPU_MAX },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
	{ .code = BPF_JMP | BPF_EXIT },
};
#define NO_GPU_CAPS 4u /* the instruction that compares with NO_MAJOR */

int graft_cgroup_v2_confine(int dir_fd, const struct graft_cgroup_scope *scope, const struct graft_log *log,
			    struct graft_error *err)
{
	const struct program program = { .name = PROGRAM_NAME };
	__attribute__((cleanup(v2_work_done))) struct work work = { .cgroup_fd = dir_fd,
								    .arena = graft_arena_new(ARENA_MAX),
								    .log = log };
	struct bpf_insn forbid[GRAFT_COUNT(no_gpu)], *insns;
	auto_close int fd = -1;
	size_t n;
	int rc;

	if (!work.arena)
		return graft_fail_memory(err);
	memcpy(forbid, no_gpu, sizeof(forbid));
	if (scope->caps_major > 0)
		forbid[NO_GPU_CAPS].imm = (int32_t)scope->caps_major;
	if (graft_device_program_prepend(forbid, GRAFT_COUNT(forbid), scope->rules, scope->n_rules, work.arena, &insns,
					 &n, err) < 0)
		return -1;
	fd = load_device_program(&work, &program, insns, n, err);
	if (fd < 0)
		return -1;
	rc = attach(dir_fd, fd, -1, BPF_F_ALLOW_MULTI);
	/* A cgroup above has a program that must be the only one, or be replaced. */
	if (rc == -EPERM)
		rc = attach(dir_fd, fd, -1, 0);
	return rc < 0 ? graft_fail(err, GRAFT_CGROUP, -rc, "cannot attach a device program") : 0;
}
