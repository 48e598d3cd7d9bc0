/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enosys: runs a command as on an older kernel. System calls that the oldest kernel that Graft
 * supports (4.18) does not have return ENOSYS to the command and its children, by a seccomp filter.
 *
 *	enosys [--only NAME[,NAME...]] COMMAND [ARGUMENT...]
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers from 424 on are the same on every architecture. */
static const struct {
	const char *name;
	unsigned int number;
	int if_named; /* every kernel has it, but not every file system: only with --only */
} calls[] = {
	{ "open_tree", 428 },  { "move_mount", 429 },     { "fsopen", 430 },
	{ "fsconfig", 431 },   { "fsmount", 432 },        { "fspick", 433 },
	{ "pidfd_open", 434 }, { "close_range", 436 },    { "openat2", 437 },
	{ "faccessat2", 439 }, { "mount_setattr", 442 },  { "statmount", 457 },
	{ "listmount", 458 },  { "open_tree_attr", 467 }, { "renameat2", SYS_renameat2, 1 },
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

/* Whether `name` is in a comma-separated list; a NULL list contains everything. */
static int wanted(const char *list, const char *name)
{
	size_t length = strlen(name);

	if (!list)
		return 1;
	for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
		if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return 1;
	}
	return 0;
}

static int install(const char *only)
{
	struct sock_filter filter[2 * N_CALLS + 2];
	unsigned short n = 0;
	struct sock_fprog program = { .filter = filter };

	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N_CALLS; i++) {
		if (!wanted(only, calls[i].name) || (calls[i].if_named && !only))
			continue;
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	/* Root needs no no_new_privs, and must not set it: tests run programs as other users. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		return 0;
	if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	int command = 1;

	if (argc > 3 && strcmp(argv[1], "--only") == 0) {
		only = argv[2];
		command = 3;
	}
	if (command >= argc) {
		(void)fprintf(stderr, "usage: enosys [--only NAME[,NAME...]] COMMAND [ARGUMENT...]\n");
		return 64;
	}
	if (install(only) < 0) {
		(void)fprintf(stderr, "enosys: seccomp: %s\n", strerror(errno));
		return 1;
	}
	(void)execvp(argv[command], argv + command);
	(void)fprintf(stderr, "enosys: %s: %s\n", argv[command], strerror(errno));
	return 127;
}
