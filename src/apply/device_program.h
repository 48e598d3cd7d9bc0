/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_program: instructions of a BPF_PROG_TYPE_CGROUP_DEVICE program with our rules in front. Bytes to bytes; no
 * system call is made here.
 *
 * The new program answers "allowed" when a rule matches and otherwise does what the old one did: the rules write only
 * r0 and r2 to r5, which no program may read before it has set them, and leave r1, the context.
 */
#ifndef GRAFT_APPLY_DEVICE_PROGRAM_H
#define GRAFT_APPLY_DEVICE_PROGRAM_H

#include <linux/bpf.h>
#include <stddef.h>

#include "apply/cgroup.h"
#include "base/arena.h"
#include "base/error.h"

#define GRAFT_DEVICE_RULES_MAX 4096u

/* Why these instructions, read back from the kernel, cannot be loaded again ("a map"), or NULL when they can. */
const char *graft_device_program_obstacle(const struct bpf_insn *insns, size_t n);

/*
 * The rules that `old` does not already begin with, each once, in order, in `arena` (n 0 = nothing to do). Only rules that
 * graft_device_program_prepend() put there are recognised. -1: GRAFT_NO_MEMORY, GRAFT_INVALID (a number that no device has).
 */
int graft_device_program_missing(const struct bpf_insn *old, size_t n_old, const struct graft_device_rule *rules,
				 size_t n_rules, struct graft_arena *arena, struct graft_device_rule **ret_missing,
				 size_t *ret_n, struct graft_error *err);

/* The instructions of `rules`, then `old`, in `arena`. -1: GRAFT_NO_MEMORY, GRAFT_TOO_BIG. */
int graft_device_program_prepend(const struct bpf_insn *old, size_t n_old, const struct graft_device_rule *rules,
				 size_t n_rules, struct graft_arena *arena, struct bpf_insn **ret_insns, size_t *ret_n,
				 struct graft_error *err);

#endif
