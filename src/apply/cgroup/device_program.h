/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_program: puts our rules at the start of a BPF_PROG_TYPE_CGROUP_DEVICE program. Converts
 * bytes to bytes and makes no system call.
 *
 * The new program answers "allowed" if a rule matches and otherwise does what the old one did: the
 * rules write only r0 and r2 to r5, which no program may read before setting them, and preserve r1,
 * the context.
 */
#ifndef GRAFT_APPLY_CGROUP_DEVICE_PROGRAM_H
#define GRAFT_APPLY_CGROUP_DEVICE_PROGRAM_H

#include <linux/bpf.h>
#include <stddef.h>

#include "apply/cgroup/cgroup.h"
#include "base/arena.h"
#include "base/error.h"

#define GRAFT_DEVICE_RULES_MAX 4096u

/*
 * Returns why these instructions, read back from the kernel, cannot be loaded again ("a map"), or
 * NULL if they can.
 */
const char *graft_device_program_obstacle(const struct bpf_insn *insns, size_t n);

/*
 * Lists the rules that `old` does not already begin with, each once, in order, in `arena` (n = 0:
 * nothing to do). Recognizes only rules that graft_device_program_prepend() put there. Fails with
 * GRAFT_NO_MEMORY or GRAFT_INVALID (a number that no device has).
 */
int graft_device_program_missing(const struct bpf_insn *old, size_t n_old, const struct graft_device_rule *rules,
				 size_t n_rules, struct graft_arena *arena, struct graft_device_rule **ret_missing,
				 size_t *ret_n, struct graft_error *err);

/*
 * Builds the instructions of `rules` followed by `old`, in `arena`. Fails with GRAFT_NO_MEMORY or
 * GRAFT_TOO_BIG.
 */
int graft_device_program_prepend(const struct bpf_insn *old, size_t n_old, const struct graft_device_rule *rules,
				 size_t n_rules, struct graft_arena *arena, struct bpf_insn **ret_insns, size_t *ret_n,
				 struct graft_error *err);

/*
 * Computes what the program answers to this access of a character device, by executing its
 * instructions here. UNKNOWN: it uses more than registers, its context and jumps, or does not end.
 */
enum graft_device_answer graft_device_program_answer(const struct bpf_insn *insns, size_t n,
						     const struct graft_device_rule *access);

#endif
