/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_program: writes and recognizes the block of rules at the start of a device program. Knows
 * BPF instructions and the context of device programs; knows nothing of cgroups, descriptors or
 * callers.
 */
#include "apply/cgroup/device_program.h"

#include <string.h>

#define MAX_MAJOR ((1u << 12) - 1)
#define MAX_MINOR ((1u << 20) - 1)

/* A block consists of HEAD_SIZE instructions, followed by RULE_SIZE for each rule. */
#define HEAD_SIZE 7u
#define RULE_SIZE 7u
/* The jump over all rules is a signed 16-bit instruction count. */
_Static_assert(GRAFT_DEVICE_RULES_MAX *RULE_SIZE <= INT16_MAX, "the jump over the rules does not fit");

#define OFFSET_ACCESS_TYPE ((__s16)offsetof(struct bpf_cgroup_dev_ctx, access_type))
#define OFFSET_MAJOR       ((__s16)offsetof(struct bpf_cgroup_dev_ctx, major))
#define OFFSET_MINOR       ((__s16)offsetof(struct bpf_cgroup_dev_ctx, minor))

/*
 * These are macros because registers are bit fields, which only constants fill without a warning.
 */
#define LOAD_WORD(to, from_offset) \
	((struct bpf_insn){        \
	    .code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = (to), .src_reg = BPF_REG_1, .off = (from_offset) })
#define COPY(to, from) ((struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from) })
#define COMPUTE(operation, to, value) \
	((struct bpf_insn){ .code = BPF_ALU64 | (operation) | BPF_K, .dst_reg = (to), .imm = (value) })
#define SKIP_UNLESS_EQUAL(a, value, skip) \
	((struct bpf_insn){ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = (a), .off = (skip), .imm = (value) })
#define SKIP_UNLESS_SAME(a, b, skip) \
	((struct bpf_insn){ .code = BPF_JMP | BPF_JNE | BPF_X, .dst_reg = (a), .src_reg = (b), .off = (skip) })
#define EXIT() ((struct bpf_insn){ .code = BPF_JMP | BPF_EXIT })

/*
 * r2 = device type, r3 = access, r4 = major, r5 = minor; anything but a character device skips all
 * rules.
 */
static void write_head(struct bpf_insn head[HEAD_SIZE], size_t n_rules)
{
	head[0] = LOAD_WORD(BPF_REG_2, OFFSET_ACCESS_TYPE);
	head[1] = COPY(BPF_REG_3, BPF_REG_2);
	head[2] = COMPUTE(BPF_RSH, BPF_REG_3, 16);
	head[3] = COMPUTE(BPF_AND, BPF_REG_2, 0xffff);
	head[4] = LOAD_WORD(BPF_REG_4, OFFSET_MAJOR);
	head[5] = LOAD_WORD(BPF_REG_5, OFFSET_MINOR);
	head[6] = SKIP_UNLESS_EQUAL(BPF_REG_2, BPF_DEVCG_DEV_CHAR, (__s16)(n_rules * RULE_SIZE));
}

static __s32 bpf_access_bits(const struct graft_device_rule *rule)
{
	return (rule->read ? (__s32)BPF_DEVCG_ACC_READ : 0) | (rule->write ? (__s32)BPF_DEVCG_ACC_WRITE : 0);
}

/*
 * SECURITY: a rule matches when the requested access is a subset of what it grants, so a request
 * that includes mknod falls through to the old program.
 */
static void write_rule_insns(struct bpf_insn to[RULE_SIZE], const struct graft_device_rule *rule)
{
	to[0] = COPY(BPF_REG_0, BPF_REG_3);
	to[1] = COMPUTE(BPF_AND, BPF_REG_0, bpf_access_bits(rule));
	to[2] = SKIP_UNLESS_SAME(BPF_REG_0, BPF_REG_3, 4);
	to[3] = SKIP_UNLESS_EQUAL(BPF_REG_4, (__s32)rule->major, 3);
	to[4] = SKIP_UNLESS_EQUAL(BPF_REG_5, (__s32)rule->minor, 2);
	to[5] = COMPUTE(BPF_MOV, BPF_REG_0, 1);
	to[6] = EXIT();
}

/* Decodes a rule; false if these instructions are not what write_rule_insns() makes. */
static bool read_rule(const struct bpf_insn from[RULE_SIZE], struct graft_device_rule *ret_rule)
{
	struct bpf_insn made[RULE_SIZE];
	struct graft_device_rule rule = {
		.major = (uint32_t)from[3].imm,
		.minor = (uint32_t)from[4].imm,
		.read = (from[1].imm & (__s32)BPF_DEVCG_ACC_READ) != 0,
		.write = (from[1].imm & (__s32)BPF_DEVCG_ACC_WRITE) != 0,
	};

	write_rule_insns(made, &rule);
	*ret_rule = rule;
	return memcmp(made, from, sizeof(made)) == 0;
}

/* Counts the rules of the block at the start of `insns`; 0 if there is no block of ours. */
static size_t count_rules(const struct bpf_insn *insns, size_t n)
{
	struct bpf_insn head[HEAD_SIZE];
	struct graft_device_rule rule;
	size_t n_rules;

	if (n < HEAD_SIZE || insns[6].off <= 0)
		return 0;
	n_rules = (size_t)insns[6].off / RULE_SIZE;
	write_head(head, n_rules);
	if (memcmp(head, insns, sizeof(head)) != 0 || (n - HEAD_SIZE) / RULE_SIZE < n_rules)
		return 0;
	for (size_t i = 0; i < n_rules; i++)
		if (!read_rule(insns + HEAD_SIZE + i * RULE_SIZE, &rule))
			return 0;
	return n_rules;
}

static bool grants(const struct graft_device_rule *have, const struct graft_device_rule *want)
{
	return have->major == want->major && have->minor == want->minor && (have->read || !want->read) &&
	       (have->write || !want->write);
}

/* Whether one of the blocks at the start of `insns` contains the rule. */
static bool begins_with(const struct bpf_insn *insns, size_t n, const struct graft_device_rule *want)
{
	struct graft_device_rule rule;
	size_t n_rules;

	while ((n_rules = count_rules(insns, n)) > 0) {
		for (size_t i = 0; i < n_rules; i++)
			if (read_rule(insns + HEAD_SIZE + i * RULE_SIZE, &rule) && grants(&rule, want))
				return true;
		insns += HEAD_SIZE + n_rules * RULE_SIZE;
		n -= HEAD_SIZE + n_rules * RULE_SIZE;
	}
	return false;
}

static bool is_granted_by_any(const struct graft_device_rule *rules, size_t n, const struct graft_device_rule *want)
{
	for (size_t i = 0; i < n; i++)
		if (grants(&rules[i], want))
			return true;
	return false;
}

int graft_device_program_missing(const struct bpf_insn *old, size_t n_old, const struct graft_device_rule *rules,
				 size_t n_rules, struct graft_arena *arena, struct graft_device_rule **ret_missing,
				 size_t *ret_n, struct graft_error *err)
{
	struct graft_device_rule *missing = NULL;
	size_t n = 0;

	for (size_t i = 0; i < n_rules; i++) {
		struct graft_device_rule *room;

		if (rules[i].major > MAX_MAJOR || rules[i].minor > MAX_MINOR)
			return graft_fail(err, GRAFT_INVALID, 0, "invalid device number %u:%u", rules[i].major,
					  rules[i].minor);
		if (is_granted_by_any(missing, n, &rules[i]) || begins_with(old, n_old, &rules[i]))
			continue;
		room = graft_arena_push(arena, &missing, &n, sizeof(*missing));
		if (!room)
			return graft_fail_memory(err);
		*room = rules[i];
	}
	*ret_missing = missing;
	*ret_n = n;
	return 0;
}

int graft_device_program_prepend(const struct bpf_insn *old, size_t n_old, const struct graft_device_rule *rules,
				 size_t n_rules, struct graft_arena *arena, struct bpf_insn **ret_insns, size_t *ret_n,
				 struct graft_error *err)
{
	size_t n = HEAD_SIZE + n_rules * RULE_SIZE;
	struct bpf_insn *insns;

	if (n_rules > GRAFT_DEVICE_RULES_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "too many device rules: %zu", n_rules);
	insns = graft_arena_alloc(arena, (n + n_old) * sizeof(*insns));
	if (!insns)
		return graft_fail_memory(err);
	write_head(insns, n_rules);
	for (size_t i = 0; i < n_rules; i++)
		write_rule_insns(insns + HEAD_SIZE + i * RULE_SIZE, &rules[i]);
	if (n_old > 0)
		memcpy(insns + n, old, n_old * sizeof(*old));
	*ret_insns = insns;
	*ret_n = n + n_old;
	return 0;
}

/*
 * QUIRK: names what the kernel substitutes when it translates a program and does not accept back.
 */
static const char *obstacle_of(const struct bpf_insn *insn)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
		if (insn->code != (BPF_LD | BPF_IMM | BPF_DW))
			return "an instruction for packets";
		return insn->src_reg == 0 ? NULL : "a map or a kernel symbol";
	case BPF_JMP:
		if (BPF_OP(insn->code) == BPF_CALL)
			return insn->src_reg == BPF_PSEUDO_CALL ? "a function of its own"
								: "a helper function of the kernel";
		return BPF_OP(insn->code) > BPF_JSLE ? "an instruction that only the kernel can write" : NULL;
	default:
		return NULL;
	}
}

const char *graft_device_program_obstacle(const struct bpf_insn *insns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *obstacle = obstacle_of(&insns[i]);

		if (obstacle)
			return obstacle;
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++; /* the second half holds the upper 32 bits */
	}
	return NULL;
}
