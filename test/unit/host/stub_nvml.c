/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_nvml: an NVML for tests, loaded by the real child through the real dlopen. What it does is in the file /nvml-mode
 * of its root directory (one word), which the child has entered by then; what the child may still do is written into
 * the answers, where the test can see it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The prototypes of NVML's documentation, as far as the child uses them. */
EXPORT int nvmlInit_v2(void);
EXPORT const char *nvmlErrorString(int code);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned int size);
EXPORT int nvmlSystemGetCudaDriverVersion(int *version);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
#ifndef STUB_OLD
EXPORT int nvmlDeviceGetPciInfo_v3(void *device, void *pci);
EXPORT int nvmlDeviceGetMinorNumber(void *device, unsigned int *minor);
EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned int size);
EXPORT int nvmlDeviceGetBrand(void *device, unsigned int *brand);
EXPORT int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
EXPORT int nvmlDeviceGetAddressingMode(void *device, void *addressing);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, void *memory);
EXPORT int nvmlDeviceGetAttributes_v2(void *device, void *attributes);
EXPORT int nvmlDeviceGetGpuFabricInfoV(void *device, void *fabric);
EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *active);
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, void *pci);
EXPORT int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *count);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int index, void **instance);
EXPORT int nvmlDeviceGetGpuInstanceId(void *instance, unsigned int *id);
EXPORT int nvmlDeviceGetComputeInstanceId(void *instance, unsigned int *id);
#else
EXPORT int nvmlDeviceGetPciInfo(void *device, void *pci);
#endif
EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned int size);

struct pci {
	char legacy[16];
	unsigned int domain, bus, device;
};

static char gpus[2], instances[2]; /* handles are addresses of these */
static char mode[32];

static int is_mode(const char *word)
{
	return strcmp(mode, word) == 0;
}

int nvmlInit_v2(void)
{
	int fd = open("/nvml-mode", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, mode, sizeof(mode) - 1);

	mode[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		(void)close(fd);
	if (is_mode("mismatch"))
		return 18;
	if (is_mode("not-loaded"))
		return 9;
	if (is_mode("odd-error"))
		return 77;
	if (is_mode("crash"))
		(void)raise(SIGSEGV);
	if (is_mode("exit"))
		_exit(0);
	if (is_mode("slow"))
		(void)usleep(1300 * 1000);
	if (is_mode("hang"))
		(void)sleep(3);
	/* Nothing more to be read from it, and no end. */
	for (int i = 3; is_mode("linger") && i < 1024; i++)
		(void)close(i);
	if (is_mode("linger"))
		(void)sleep(60);
	/* An answer of the driver's own making on every descriptor there is. */
	for (int i = 0; is_mode("forge") && i < 64; i++) {
		if (write(i, "{\"gpus\": 3}", 11) == 11)
			_exit(0);
	}
	return 0;
}

const char *nvmlErrorString(int code)
{
	return code == 18 ? "Driver/library version mismatch" : code == 9 ? "Driver Not Loaded" : "Odd Error";
}

/* Tells what this process still is: the test reads it as the driver's version. */
int nvmlSystemGetDriverVersion(char *text, unsigned int size)
{
	struct rlimit core = { 1, 1 };
	char status[4096] = "";
	int fd, open_fds = 0;
	const char *caps;

	if (!is_mode("confess")) {
		(void)snprintf(text, size, "550.54.14");
		return 0;
	}
	for (int i = 3; i < 1024; i++)
		open_fds += fcntl(i, F_GETFD) >= 0;
	fd = open("/self-status", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!read(fd, status, sizeof(status) - 1);
		(void)close(fd);
	}
	caps = strstr(status, "CapPrm:");
	(void)getrlimit(RLIMIT_CORE, &core);
	(void)snprintf(text, size, "u%u g%u s%d n%d d%d c%d f%d p%d %.3s", geteuid(), getegid(), getgroups(0, NULL),
		       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), (int)core.rlim_cur,
		       open_fds, setuid(0) == 0 && geteuid() == 0, caps ? caps : "");
	return 0;
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
	*version = 12040;
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = 2;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
	if (is_mode("lost") && index == 1)
		return 15;
	*device = &gpus[is_mode("swapped") ? 1 - index : index];
	return 0;
}

static unsigned int number(const void *device)
{
	return device == &gpus[1];
}

#ifdef STUB_OLD
int nvmlDeviceGetPciInfo(void *device, void *pci)
#else
int nvmlDeviceGetPciInfo_v3(void *device, void *pci)
#endif
{
	struct pci *info = pci;

	info->bus = number(device) == 0 ? 0x1b : 0x2c;
	return 0;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned int size)
{
	if (device == &instances[0] || device == &instances[1])
		(void)snprintf(text, size, "MIG-%d", (int)((char *)device - instances));
	else
		(void)snprintf(text, size, is_mode("evil") ? "GPU-\033[31m%u" : "GPU-from-nvml-%u", number(device));
	return 0;
}

#ifndef STUB_OLD
int nvmlDeviceGetMinorNumber(void *device, unsigned int *minor)
{
	*minor = number(device);
	return 0;
}

int nvmlDeviceGetName(void *device, char *text, unsigned int size)
{
	(void)snprintf(text, size, "NVIDIA H100 80GB HBM3%s",
		       device == &instances[0]   ? " MIG 1g.10gb+me"
		       : device == &instances[1] ? " MIG "
						 : "");
	return 0;
}

int nvmlDeviceGetBrand(void *device, unsigned int *brand)
{
	(void)device;
	*brand = is_mode("evil") ? 4000000000u : 14;
	return 0;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
	(void)device;
	*major = 9;
	*minor = 0;
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, void *memory)
{
	unsigned long long *words = memory;

	(void)device;
	words[0] = is_mode("evil") ? ~0ull : 81559ull << 20;
	return 0;
}

int nvmlDeviceGetAttributes_v2(void *device, void *attributes)
{
	unsigned int *words = attributes;

	if (device == &instances[1])
		return 3;
	for (unsigned int i = 0; i < 8; i++)
		words[i] = i + 10;
	words[8] = 9856;
	words[9] = is_mode("evil") ? 1u : 0u; /* the upper half of the memory */
	return 0;
}

/* The first has joined a domain, the second has not. */
/* The first GPU has links 0, 2 and 3 to bus 0x5e and 4 to bus 0xff; 1 is down. The second one has none. */
int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *active)
{
	if (number(device) == 1)
		return 3;
	*active = link != 1;
	return link < 5 ? 0 : 2;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, void *pci)
{
	struct pci *out = pci;

	(void)device;
	out->domain = 0;
	out->bus = link == 4 ? 0xff : 0x5e;
	out->device = 0;
	return 0;
}

int nvmlDeviceGetGpuFabricInfoV(void *device, void *fabric)
{
	unsigned char *bytes = fabric;
	unsigned int clique = 7;

	if (*(unsigned int *)fabric != 0x2000024u)
		return 25;
	for (unsigned char i = 0; i < 16; i++)
		bytes[4 + i] = i;
	memcpy(bytes + 24, &clique, sizeof(clique));
	bytes[28] = number(device) == 0 ? 3 : 2;
	return 0;
}

/* The first is coherent, the second has no such mode. */
int nvmlDeviceGetAddressingMode(void *device, void *addressing)
{
	unsigned int *words = addressing;

	if (words[0] != 0x1000008u)
		return 25;
	if (number(device) == 1)
		return 3;
	words[1] = is_mode("evil") ? 4000000000u : 2;
	return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending)
{
	*current = *pending = number(device);
	return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *count)
{
	(void)device;
	*count = 7;
	return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int index, void **instance)
{
	(void)device;
	if (index > 1)
		return 6;
	*instance = &instances[index];
	return 0;
}

int nvmlDeviceGetGpuInstanceId(void *instance, unsigned int *id)
{
	*id = instance == &instances[0] ? 1 : 2;
	return 0;
}

int nvmlDeviceGetComputeInstanceId(void *instance, unsigned int *id)
{
	(void)instance;
	*id = 0;
	return 0;
}
#endif
