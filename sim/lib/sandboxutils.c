/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandboxutils: the simulated libnvidia-sandboxutils.so.1. Programs load it if it is installed, and
 * continue without it if it cannot be initialised. So it has the real one's functions, and each
 * returns that it is not supported.
 */
#define API __attribute__((visibility("default")))

enum { NOT_SUPPORTED = 2 };

int sandboxutils_refuse(void);
int sandboxutils_refuse(void)
{
	return NOT_SUPPORTED;
}

/* The arguments of these functions are never used. */
#define REFUSE(name) API extern int name(void) __attribute__((alias("sandboxutils_refuse")))
REFUSE(nvSandboxUtilsInit);
REFUSE(nvSandboxUtilsShutdown);
REFUSE(nvSandboxUtilsGetDriverVersion);
REFUSE(nvSandboxUtilsGetGpuResource);
REFUSE(nvSandboxUtilsGetFileContent);

API const char *nvSandboxUtilsErrorString(int result);
API const char *nvSandboxUtilsErrorString(int result)
{
	return result == 0 ? "Success" : "Not supported by the simulated driver";
}
