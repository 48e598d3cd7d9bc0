/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_answer: what a device program answers, by executing it: registers, loads from the context,
 * arithmetic and jumps, which is all that runc, crun, systemd and Graft use. Any other instruction
 * ends it without an answer. Makes no system call.
 */
#include <string.h>

#include "apply/cgroup/device_program.h"

#define STEPS_MAX 1000000u               /* the kernel's verifier allows no more */
#define CONTEXT   UINT64_C(0x1000000000) /* value of a register that points to the context; not a number of any device */

struct machine {
	uint64_t registers[MAX_BPF_REG];
	struct bpf_cgroup_dev_ctx context;
};

static size_t size_of_load(__u8 code)
{
	switch (BPF_SIZE(code)) {
	case BPF_W:
		return 4;
	case BPF_H:
		return 2;
	case BPF_B:
		return 1;
	default:
		return 8;
	}
}

static bool load_context(struct machine *machine, const struct bpf_insn *insn)
{
	uint64_t offset = machine->registers[insn->src_reg] - CONTEXT + (uint64_t)(int64_t)insn->off, value = 0;
	size_t size = size_of_load(insn->code);

	if (BPF_MODE(insn->code) != BPF_MEM || size > 4 || offset > sizeof(machine->context) - size)
		return false;
	/* Little-endian, as is every architecture with this driver. */
	memcpy(&value, (const char *)&machine->context + offset, size);
	machine->registers[insn->dst_reg] = value;
	return true;
}

static bool compute(struct machine *machine, const struct bpf_insn *insn)
{
	bool wide = BPF_CLASS(insn->code) == BPF_ALU64;
	uint64_t a = machine->registers[insn->dst_reg];
	uint64_t b = BPF_SRC(insn->code) == BPF_X ? machine->registers[insn->src_reg] : (uint64_t)(int64_t)insn->imm;

	if (insn->off != 0) /* moves with sign extension, signed division: nothing that device rules need */
		return false;
	if (!wide) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (BPF_OP(insn->code)) {
	case BPF_MOV:
		a = b;
		break;
	case BPF_ADD:
		a += b;
		break;
	case BPF_SUB:
		a -= b;
		break;
	case BPF_AND:
		a &= b;
		break;
	case BPF_OR:
		a |= b;
		break;
	case BPF_XOR:
		a ^= b;
		break;
	case BPF_LSH:
		a <<= b & (wide ? 63 : 31);
		break;
	case BPF_RSH:
		a >>= b & (wide ? 63 : 31);
		break;
	default:
		return false;
	}
	machine->registers[insn->dst_reg] = wide ? a : (uint32_t)a;
	return true;
}

/* Returns 1 to jump, 0 not to jump, -1 for an unknown condition. */
static int is_jump(const struct machine *machine, const struct bpf_insn *insn)
{
	bool wide = BPF_CLASS(insn->code) == BPF_JMP;
	uint64_t a = machine->registers[insn->dst_reg];
	uint64_t b = BPF_SRC(insn->code) == BPF_X ? machine->registers[insn->src_reg] : (uint64_t)(int64_t)insn->imm;

	if (!wide) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (BPF_OP(insn->code)) {
	case BPF_JA:
		return wide ? 1 : -1;
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JSET:
		return (a & b) != 0;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	default:
		return -1;
	}
}

/* Executes one instruction; returns the distance to the next one, or 0 if it cannot. */
static int64_t execute(struct machine *machine, const struct bpf_insn *insn)
{
	int jump;

	if (insn->dst_reg >= MAX_BPF_REG || insn->src_reg >= MAX_BPF_REG)
		return 0;
	switch (BPF_CLASS(insn->code)) {
	case BPF_LDX:
		return load_context(machine, insn) ? 1 : 0;
	case BPF_ALU:
	case BPF_ALU64:
		return compute(machine, insn) ? 1 : 0;
	case BPF_JMP:
	case BPF_JMP32:
		jump = is_jump(machine, insn);
		return jump < 0 ? 0 : jump == 0 ? 1 : (int64_t)insn->off + 1;
	default:
		return 0;
	}
}

enum graft_device_answer graft_device_program_answer(const struct bpf_insn *insns, size_t n,
						     const struct graft_device_rule *access)
{
	struct machine machine = {
		.registers = { [BPF_REG_1] = CONTEXT },
		.context = { .access_type =
				 ((access->read ? BPF_DEVCG_ACC_READ : 0u) | (access->write ? BPF_DEVCG_ACC_WRITE : 0u))
				     << 16 |
				 BPF_DEVCG_DEV_CHAR,
			     .major = access->major,
			     .minor = access->minor },
	};
	size_t at = 0;

	for (uint32_t step = 0; step < STEPS_MAX && at < n; step++) {
		int64_t distance;

		if (insns[at].code == (BPF_JMP | BPF_EXIT))
			return (machine.registers[BPF_REG_0] & 1) != 0 ? GRAFT_ANSWER_ALLOWED : GRAFT_ANSWER_DENIED;
		distance = execute(&machine, &insns[at]);
		if (distance == 0 || (distance < 0 && (uint64_t)-distance > at))
			return GRAFT_ANSWER_UNKNOWN;
		at += (size_t)distance;
	}
	return GRAFT_ANSWER_UNKNOWN;
}
