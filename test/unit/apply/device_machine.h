/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_machine: interprets a device program like the kernel, for tests that have no privileges.
 * An unknown instruction, or a jump out of the program, fails the test.
 */
#ifndef GRAFT_TEST_DEVICE_MACHINE_H
#define GRAFT_TEST_DEVICE_MACHINE_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../unit.h"

struct device_request {
	uint32_t type, access, major, minor;
};

static inline uint64_t device_machine_alu(uint8_t operation, uint64_t a, uint64_t b)
{
	switch (operation) {
	case BPF_MOV:
		return b;
	case BPF_AND:
		return a & b;
	case BPF_RSH:
		return a >> b;
	default:
		fail_msg("unknown operation %#x", operation);
		return 0;
	}
}

static inline bool device_machine_jumps(uint8_t operation, uint64_t a, uint64_t b)
{
	switch (operation) {
	case BPF_JA:
		return true;
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	default:
		fail_msg("unknown jump %#x", operation);
		return false;
	}
}

/* The program's answer: r0 when it exits. Registers start with poison values. */
static inline bool device_machine_run(const struct bpf_insn *insns, size_t n, const struct device_request *request)
{
	const uint32_t context[3] = { request->access << 16 | request->type, request->major, request->minor };
	uint64_t registers[16];

	memset(registers, 0xa5, sizeof(registers));
	for (size_t pc = 0, steps = 0; steps < 100000; steps++, pc++) {
		const struct bpf_insn *insn = &insns[pc];
		uint64_t operand;

		assert_true(pc < n);
		operand = BPF_SRC(insn->code) == BPF_X ? registers[insn->src_reg] : (uint64_t)(int64_t)insn->imm;
		switch (BPF_CLASS(insn->code)) {
		case BPF_LDX:
			assert_int_equal(insn->src_reg, BPF_REG_1);
			assert_true(insn->off >= 0 && insn->off <= 8 && insn->off % 4 == 0);
			registers[insn->dst_reg] = context[insn->off / 4];
			break;
		case BPF_ALU64:
			assert_int_not_equal(insn->dst_reg, BPF_REG_1);
			registers[insn->dst_reg] = device_machine_alu(BPF_OP(insn->code), registers[insn->dst_reg],
								      operand);
			break;
		case BPF_JMP:
			if (BPF_OP(insn->code) == BPF_EXIT)
				return registers[BPF_REG_0] != 0;
			if (device_machine_jumps(BPF_OP(insn->code), registers[insn->dst_reg], operand))
				pc = (size_t)((long)pc + insn->off);
			break;
		default:
			fail_msg("unknown instruction %#x at %zu", insn->code, pc);
		}
	}
	fail_msg("the program does not end");
	return false;
}

#endif
