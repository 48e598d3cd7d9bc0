/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_modprobe: replaces modprobe in a root directory made of files. It "loads" a module by adding
 * its name to that root's /proc/modules, and records its arguments in /modprobe-log. Linked
 * statically, since the root has no libraries.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	FILE *log = fopen("/modprobe-log", "ae");
	FILE *modules;

	if (argc != 2 || !log)
		return 1;
	(void)fprintf(log, "%s %s", argv[0], argv[1]);
	for (char **variable = environ; *variable; variable++)
		(void)fprintf(log, " %s", *variable);
	(void)fprintf(log, "\n");
	(void)fclose(log);
	/* Each module that can be loaded has a file. */
	if (access(argv[1][0] == '/' ? argv[1] : "/loadable", R_OK) < 0)
		return 1;
	for (char *c = argv[1]; *c != '\0'; c++)
		*c = *c == '-' ? '_' : *c;
	modules = fopen("/proc/modules", "ae");
	if (!modules)
		return 1;
	(void)fprintf(modules, "%s 1234 0 - Live 0x0000000000000000\n", argv[1]);
	return fclose(modules) == 0 ? 0 : 1;
}
