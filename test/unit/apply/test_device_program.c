/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_program: the answers of the generated instructions to every kind of request, run by the
 * test's own interpreter.
 */
#include <stdlib.h>

#include "../unit.h"
#include "apply/cgroup/device_program.h"
#include "base/cleanup.h"
#include "device_machine.h"

enum { READ = BPF_DEVCG_ACC_READ, WRITE = BPF_DEVCG_ACC_WRITE, MKNOD = BPF_DEVCG_ACC_MKNOD };
enum { BLOCK = BPF_DEVCG_DEV_BLOCK, CHAR = BPF_DEVCG_DEV_CHAR };

/* An old program like runc's: allows only the null device. */
static const struct bpf_insn old_program[] = {
	{ .code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 4, .src_reg = 1, .off = 4 },
	{ .code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 5, .src_reg = 1, .off = 8 },
	{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 4, .off = 3, .imm = 1 },
	{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 5, .off = 2, .imm = 3 },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1 },
	{ .code = BPF_JMP | BPF_EXIT },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
};
#define N_OLD GRAFT_COUNT(old_program)

static const struct graft_device_rule rules[] = {
	{ 195, 0, true, true },
	{ 195, 255, true, true },
	{ 507, 1, true, false },
	{ 4095, 1048575, false, true },
};
#define N_RULES GRAFT_COUNT(rules)

struct made {
	struct graft_arena *arena;
	struct bpf_insn *insns;
	size_t n;
};

static void prepend(struct made *made, const struct bpf_insn *old, size_t n_old, const struct graft_device_rule *with,
		    size_t n_with)
{
	struct graft_error err = { 0 };

	assert_int_equal(
	    graft_device_program_prepend(old, n_old, with, n_with, made->arena, &made->insns, &made->n, &err), 0);
}

static int setup(void **state)
{
	struct made *made = test_calloc(1, sizeof(*made));

	made->arena = graft_arena_new((size_t)16 * 1024 * 1024);
	*state = made;
	return made->arena ? 0 : -1;
}

static int teardown(void **state)
{
	struct made *made = *state;

	graft_arena_free(made->arena);
	test_free(made);
	return 0;
}

static void test_answers(void **state)
{
	static const struct {
		const char *name;
		struct device_request request;
		bool allowed;
	} cases[] = {
		{ "read and write", { CHAR, READ | WRITE, 195, 0 }, true },
		{ "read alone", { CHAR, READ, 195, 0 }, true },
		{ "write alone", { CHAR, WRITE, 195, 0 }, true },
		{ "mknod", { CHAR, MKNOD, 195, 0 }, false },
		{ "mknod with the rest", { CHAR, MKNOD | READ | WRITE, 195, 0 }, false },
		{ "another minor", { CHAR, READ | WRITE, 195, 1 }, false },
		{ "another major", { CHAR, READ | WRITE, 194, 0 }, false },
		{ "major and minor of different rules", { CHAR, READ, 507, 255 }, false },
		{ "a block device of that number", { BLOCK, READ | WRITE, 195, 0 }, false },
		{ "second rule", { CHAR, READ | WRITE, 195, 255 }, true },
		{ "read-only rule, read", { CHAR, READ, 507, 1 }, true },
		{ "read-only rule, write", { CHAR, WRITE, 507, 1 }, false },
		{ "read-only rule, both", { CHAR, READ | WRITE, 507, 1 }, false },
		{ "write-only rule of the largest number", { CHAR, WRITE, 4095, 1048575 }, true },
		{ "write-only rule, read", { CHAR, READ, 4095, 1048575 }, false },
		{ "what the old one allows", { CHAR, READ | WRITE, 1, 3 }, true },
		{ "what the old one allows, mknod", { CHAR, MKNOD, 1, 3 }, true },
		{ "what the old one refuses", { CHAR, READ, 1, 5 }, false },
	};
	struct made *made = *state;

	prepend(made, old_program, N_OLD, rules, N_RULES);
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++)
		if (device_machine_run(made->insns, made->n, &cases[i].request) != cases[i].allowed)
			fail_msg("%s: expected %d", cases[i].name, cases[i].allowed);
}

/*
 * new(request) is true if a rule grants it or old(request) is true, for requests around every
 * boundary.
 */
static void test_is_the_union(void **state)
{
	static const uint32_t majors[] = { 0, 1, 194, 195, 196, 507, 4095 };
	static const uint32_t minors[] = { 0, 1, 2, 3, 254, 255, 256, 1048575 };
	struct made *made = *state;
	struct device_request r;
	size_t n_allowed = 0;

	prepend(made, old_program, N_OLD, rules, N_RULES);
	for (size_t i = 0; i < (size_t)16 * GRAFT_COUNT(majors) * GRAFT_COUNT(minors); i++) {
		bool expected;

		r.type = i % 2 ? BLOCK : CHAR;
		r.access = (uint32_t)(i / 2 % 8);
		r.major = majors[i / 16 % GRAFT_COUNT(majors)];
		r.minor = minors[i / 16 / GRAFT_COUNT(majors)];
		expected = device_machine_run(old_program, N_OLD, &r);
		for (size_t k = 0; k < N_RULES; k++)
			expected |= r.type == CHAR && r.major == rules[k].major && r.minor == rules[k].minor &&
				    !(r.access & MKNOD) && (rules[k].read || !(r.access & READ)) &&
				    (rules[k].write || !(r.access & WRITE));
		n_allowed += expected;
		if (device_machine_run(made->insns, made->n, &r) != expected)
			fail_msg("type %u access %u %u:%u: expected %d", r.type, r.access, r.major, r.minor, expected);
	}
	assert_true(n_allowed > 20);
}

static size_t count_missing(struct made *made, const struct graft_device_rule *with, size_t n_with)
{
	struct graft_device_rule *missing;
	struct graft_error err = { 0 };
	size_t n;

	assert_int_equal(
	    graft_device_program_missing(made->insns, made->n, with, n_with, made->arena, &missing, &n, &err), 0);
	return n;
}

static void test_recognises_its_own(void **state)
{
	static const struct graft_device_rule narrower[] = { { 195, 0, true, false }, { 195, 255, false, true } };
	static const struct graft_device_rule wider[] = { { 507, 1, true, true } };
	static const struct graft_device_rule twice[] = { { 9, 9, true, true },
							  { 9, 9, true, true },
							  { 9, 9, true, false } };
	struct made *made = *state;
	struct bpf_insn *block;

	prepend(made, NULL, 0, NULL, 0);
	prepend(made, old_program, N_OLD, rules, N_RULES);
	assert_int_equal(count_missing(made, rules, N_RULES), 0);
	assert_int_equal(count_missing(made, narrower, 2), 0);
	assert_int_equal(count_missing(made, wider, 1), 1);
	assert_int_equal(count_missing(made, twice, 3), 1);
	/* With a second block in front, both are recognised. */
	prepend(made, made->insns, made->n, wider, 1);
	assert_int_equal(count_missing(made, rules, N_RULES), 0);
	assert_int_equal(count_missing(made, wider, 1), 0);
	/* A block with any other instruction is not ours. */
	block = made->insns;
	for (size_t i = 0; i < 14; i++) {
		struct bpf_insn saved = block[i];

		block[i].off = (__s16)(block[i].off + 1);
		assert_int_equal(count_missing(made, wider, 1), 1);
		block[i] = saved;
		block[i].dst_reg = (block[i].dst_reg + 1) & 0xf;
		assert_int_equal(count_missing(made, wider, 1), 1);
		block[i] = saved;
	}
	assert_int_equal(count_missing(made, wider, 1), 0);
	made->n = 13; /* cut off inside the rule */
	assert_int_equal(count_missing(made, wider, 1), 1);
	made->n = 0;
	assert_int_equal(count_missing(made, wider, 1), 1);
}

static void test_numbers_no_device_has(void **state)
{
	static const struct graft_device_rule bad[] = { { 4096, 0, true, true },
							{ 0, 1u << 20, true, true },
							{ UINT32_MAX, UINT32_MAX, true, true } };
	struct made *made = *state;
	struct graft_device_rule *missing;
	struct graft_error err;
	size_t n;

	for (size_t i = 0; i < GRAFT_COUNT(bad); i++) {
		assert_int_equal(
		    graft_device_program_missing(old_program, N_OLD, &bad[i], 1, made->arena, &missing, &n, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
	}
}

static void test_many_rules(void **state)
{
	struct made *made = *state;
	struct graft_device_rule *many = graft_arena_list(made->arena, GRAFT_DEVICE_RULES_MAX + 1, sizeof(*many));
	struct device_request last = { CHAR, READ, 500, GRAFT_DEVICE_RULES_MAX - 1 }, beyond = last;
	struct graft_error err;

	for (uint32_t i = 0; i <= GRAFT_DEVICE_RULES_MAX; i++)
		many[i] = (struct graft_device_rule){ 500, i, true, true };
	beyond.minor++;
	prepend(made, old_program, N_OLD, many, GRAFT_DEVICE_RULES_MAX);
	assert_true(device_machine_run(made->insns, made->n, &last));
	assert_false(device_machine_run(made->insns, made->n, &beyond));
	assert_int_equal(count_missing(made, many, GRAFT_DEVICE_RULES_MAX), 0);
	assert_int_equal(graft_device_program_prepend(old_program, N_OLD, many, GRAFT_DEVICE_RULES_MAX + 1, made->arena,
						      &made->insns, &made->n, &err),
			 -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
}

static void test_obstacles(void **state)
{
	static const struct {
		struct bpf_insn insns[2];
		const char *obstacle;
	} cases[] = {
		{ { { .code = BPF_LD | BPF_IMM | BPF_DW, .src_reg = BPF_PSEUDO_MAP_FD } }, "a map or a kernel symbol" },
		{ { { .code = BPF_LD | BPF_IMM | BPF_DW, .src_reg = BPF_PSEUDO_MAP_VALUE } },
		  "a map or a kernel symbol" },
		{ { { .code = BPF_LD | BPF_ABS | BPF_H } }, "an instruction for packets" },
		{ { { .code = BPF_JMP | BPF_CALL, .imm = 123456 } }, "a helper function of the kernel" },
		{ { { .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL } }, "a function of its own" },
		{ { { .code = BPF_JMP | 0xf0 } }, "an instruction that only the kernel can write" },
		/* A 64-bit constant is allowed, whatever its upper half looks like. */
		{ { { .code = BPF_LD | BPF_IMM | BPF_DW, .imm = 7 }, { .code = 0, .imm = BPF_CALL } }, NULL },
		{ { { .code = BPF_JMP | BPF_EXIT }, { .code = BPF_JMP32 | BPF_JEQ | BPF_K } }, NULL },
	};

	assert_null(graft_device_program_obstacle(old_program, N_OLD));
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const char *obstacle = graft_device_program_obstacle(cases[i].insns, 2);

		if (!cases[i].obstacle)
			assert_null(obstacle);
		else
			assert_string_equal(obstacle, cases[i].obstacle);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_is_the_union, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recognises_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_no_device_has, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_rules, setup, teardown),
		cmocka_unit_test(test_obstacles),
	};

	return cmocka_run_group_tests_name("device_program", tests, NULL, NULL);
}
