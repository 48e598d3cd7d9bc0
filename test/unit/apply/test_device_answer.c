/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_answer: what programs as runc, systemd and Graft make them answer to reading and writing;
 * and those that are not understood, which give no answer.
 */
#include "../unit.h"
#include "apply/cgroup/cgroup_versions.h"
#include "apply/cgroup/device_program.h"
#include "base/cleanup.h"

#define LOAD(size, to, offset)                                                                     \
	{                                                                                          \
		.code = BPF_LDX | (size) | BPF_MEM, .dst_reg = (to), .src_reg = 1, .off = (offset) \
	}
#define MOVE(to, value)                                                              \
	{                                                                            \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value) \
	}
#define EXIT                               \
	{                                  \
		.code = BPF_JMP | BPF_EXIT \
	}

/* 32-bit arithmetic, as systemd does it: allows reading and writing 195:*, and reading 1:3. */
static const struct bpf_insn systemd_program[] = {
	LOAD(BPF_W, 2, 0),
	{ .code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = 2, .imm = 0xffff },
	LOAD(BPF_W, 3, 0),
	{ .code = BPF_ALU | BPF_RSH | BPF_K, .dst_reg = 3, .imm = 16 },
	LOAD(BPF_W, 4, 4),
	LOAD(BPF_W, 5, 8),
	{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 2, .off = 2, .imm = BPF_DEVCG_DEV_CHAR },
	{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 4, .off = 1, .imm = 195 },
	{ .code = BPF_JMP | BPF_JA, .off = 6 },
	{ .code = BPF_ALU | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 3 },
	{ .code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = 1, .imm = BPF_DEVCG_ACC_READ },
	{ .code = BPF_JMP | BPF_JNE | BPF_X, .dst_reg = 1, .off = 5, .src_reg = 3 },
	{ .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = 4, .off = 4, .imm = 1 },
	{ .code = BPF_JMP32 | BPF_JGT | BPF_K, .dst_reg = 5, .off = 3, .imm = 3 },
	{ .code = BPF_JMP32 | BPF_JLT | BPF_K, .dst_reg = 5, .off = 2, .imm = 3 },
	MOVE(0, 1),
	EXIT,
	MOVE(0, 0),
	EXIT,
};

static void test_answers(void **state)
{
	static const struct {
		struct graft_device_rule access;
		enum graft_device_answer answer;
	} rows[] = {
		{ { 195, 0, true, true }, GRAFT_ANSWER_ALLOWED },
		{ { 195, 255, true, false }, GRAFT_ANSWER_ALLOWED },
		{ { 1, 3, true, false }, GRAFT_ANSWER_ALLOWED },
		{ { 1, 3, true, true }, GRAFT_ANSWER_DENIED },
		{ { 1, 3, false, true }, GRAFT_ANSWER_DENIED },
		{ { 1, 2, true, false }, GRAFT_ANSWER_DENIED },
		{ { 1, 4, true, false }, GRAFT_ANSWER_DENIED },
		{ { 194, 0, true, true }, GRAFT_ANSWER_DENIED },
		{ { 1, 0xfffff, true, false }, GRAFT_ANSWER_DENIED },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (graft_device_program_answer(systemd_program, GRAFT_COUNT(systemd_program), &rows[i].access) !=
		    rows[i].answer)
			fail_msg("row %zu", i);
	}
}

/* What Graft puts in front of a program answers first. */
static void test_own_rules(void **state)
{
	static const struct graft_device_rule rules[] = { { 507, 1, true, true }, { 508, 0, true, false } };
	static const struct graft_device_rule other = { 507, 2, true, true }, half = { 508, 0, true, true };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_error err = { 0 };
	struct bpf_insn *insns;
	size_t n;

	assert_non_null(arena);
	assert_int_equal(graft_device_program_prepend(systemd_program, GRAFT_COUNT(systemd_program), rules,
						      GRAFT_COUNT(rules), arena, &insns, &n, &err),
			 0);
	assert_int_equal(graft_device_program_answer(insns, n, &rules[0]), GRAFT_ANSWER_ALLOWED);
	assert_int_equal(graft_device_program_answer(insns, n, &rules[1]), GRAFT_ANSWER_ALLOWED);
	assert_int_equal(graft_device_program_answer(insns, n, &other), GRAFT_ANSWER_DENIED);
	assert_int_equal(graft_device_program_answer(insns, n, &half), GRAFT_ANSWER_DENIED);
	graft_arena_free(arena);
}

/* Parts of a word, and every operation. */
static void test_instructions(void **state)
{
	static const struct bpf_insn program[] = {
		LOAD(BPF_H, 2, 0), /* the type: 2 */
		LOAD(BPF_H, 3, 2), /* the access: 6 */
		LOAD(BPF_B, 4, 4), /* the low byte of the major: 195 */
		{ .code = BPF_ALU64 | BPF_LSH | BPF_K, .dst_reg = 2, .imm = 33 },
		{ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 2, .imm = 32 },    /* 4 */
		{ .code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = 2, .src_reg = 3 }, /* 10 */
		{ .code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = 4, .imm = 185 },   /* 10 */
		{ .code = BPF_ALU64 | BPF_XOR | BPF_X, .dst_reg = 2, .src_reg = 4 }, /* 0 */
		{ .code = BPF_ALU64 | BPF_OR | BPF_K, .dst_reg = 2, .imm = 8 },      /* 8 */
		{ .code = BPF_JMP | BPF_JSET | BPF_K, .dst_reg = 2, .off = 2, .imm = 8 },
		MOVE(0, 0),
		EXIT,
		{ .code = BPF_JMP | BPF_JGE | BPF_K, .dst_reg = 2, .off = 2, .imm = 9 },
		{ .code = BPF_JMP | BPF_JLE | BPF_K, .dst_reg = 2, .off = 1, .imm = 7 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 2, .off = 2, .imm = 8 },
		MOVE(0, 0),
		EXIT,
		MOVE(0, 1),
		EXIT,
	};
	static const struct graft_device_rule access = { 195, 0, true, true };

	assert_int_equal(graft_device_program_answer(program, GRAFT_COUNT(program), &access), GRAFT_ANSWER_ALLOWED);
}

static void test_no_answer(void **state)
{
	static const struct bpf_insn call[] = { { .code = BPF_JMP | BPF_CALL, .imm = 1 }, MOVE(0, 1), EXIT };
	static const struct bpf_insn endless[] = { { .code = BPF_JMP | BPF_JA, .off = -1 } };
	static const struct bpf_insn before[] = { { .code = BPF_JMP | BPF_JA, .off = -9 }, EXIT };
	static const struct bpf_insn past[] = { { .code = BPF_JMP | BPF_JA, .off = 9 }, EXIT };
	static const struct bpf_insn beyond[] = { LOAD(BPF_W, 2, 12), MOVE(0, 1), EXIT };
	static const struct bpf_insn across[] = { LOAD(BPF_W, 2, 10), MOVE(0, 1), EXIT };
	static const struct bpf_insn below[] = { LOAD(BPF_W, 2, -4), MOVE(0, 1), EXIT };
	static const struct bpf_insn elsewhere[] = { { .code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 2, .src_reg = 10 },
						     MOVE(0, 1),
						     EXIT };
	static const struct bpf_insn store[] = { { .code = BPF_STX | BPF_W | BPF_MEM, .dst_reg = 10 }, EXIT };
	static const struct bpf_insn registers[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 15 }, EXIT };
	static const struct bpf_insn endless_end[] = { MOVE(0, 1) };
	static const struct {
		const struct bpf_insn *insns;
		size_t n;
	} rows[] = {
		{ call, GRAFT_COUNT(call) },
		{ endless, GRAFT_COUNT(endless) },
		{ before, GRAFT_COUNT(before) },
		{ past, GRAFT_COUNT(past) },
		{ beyond, GRAFT_COUNT(beyond) },
		{ across, GRAFT_COUNT(across) },
		{ below, GRAFT_COUNT(below) },
		{ elsewhere, GRAFT_COUNT(elsewhere) },
		{ store, GRAFT_COUNT(store) },
		{ registers, GRAFT_COUNT(registers) },
		{ endless_end, GRAFT_COUNT(endless_end) },
		{ call, 0 },
	};
	static const struct graft_device_rule access = { 195, 0, true, true };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (graft_device_program_answer(rows[i].insns, rows[i].n, &access) != GRAFT_ANSWER_UNKNOWN)
			fail_msg("row %zu has an answer", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_own_rules),
		cmocka_unit_test(test_instructions),
		cmocka_unit_test(test_no_answer),
	};

	return cmocka_run_group_tests_name("device_answer", tests, NULL, NULL);
}
