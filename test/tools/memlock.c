/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memlock: runs a command that raises RLIMIT_MEMLOCK where that is not permitted (no
 * CAP_SYS_RESOURCE). By a seccomp filter the call returns 0 and does nothing. That is enough for
 * programs that raise the limit to load BPF programs: kernels since 5.11 do not count them, and
 * before, a device program needs less than any limit.
 *
 *	memlock COMMAND [ARGUMENT...]
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(k, to) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), 0, (to))
#define IF(k, to)     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (to), 0)

/*
 * prlimit64(pid, RLIMIT_MEMLOCK, new limit, ...), which setrlimit(3) calls too. Either half of the
 * pointer distinguishes it from NULL.
 */
static struct sock_filter filter[] = {
	LOAD(nr),
	UNLESS(SYS_prlimit64, 7),
	LOAD(args[1]),
	UNLESS(RLIMIT_MEMLOCK, 5),
	LOAD(args[2]),
	UNLESS(0, 2),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]) + 4),
	IF(0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int main(int argc, char **argv)
{
	const struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (argc < 2) {
		(void)fprintf(stderr, "usage: memlock COMMAND [ARGUMENT...]\n");
		return 64;
	}
	/* Root needs no no_new_privs. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		(void)fprintf(stderr, "memlock: seccomp: %s\n", strerror(errno));
		return 1;
	}
	(void)execvp(argv[1], argv + 1);
	(void)fprintf(stderr, "memlock: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
