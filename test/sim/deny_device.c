/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deny_device: attaches a device program to a version 2 cgroup that refuses one character device and allows the rest. By hand through
 * bpf(2), so that the simulator's tests depend on nothing of what they help to test. The program lives as long as the cgroup.
 *
 *	deny-device CGROUP MAJOR MINOR
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* return !(context->major == major && context->minor == minor) */
static int load(int major, int minor)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 2, .src_reg = 1, .off = 4 },
		{ .code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 3, .src_reg = 1, .off = 8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 2, .off = 2, .imm = major },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 3, .off = 1, .imm = minor },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.license = (uintptr_t) "Apache-2.0";
	return (int)bpf(BPF_PROG_LOAD, &attr);
}

int main(int argc, char **argv)
{
	union bpf_attr attr;
	int cgroup = argc == 4 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int program = cgroup >= 0 ? load((int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10)) : -1;

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)cgroup;
	attr.attach_bpf_fd = (uint32_t)program;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI;
	if (program < 0 || bpf(BPF_PROG_ATTACH, &attr) < 0) {
		(void)fprintf(stderr, "deny-device: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}
