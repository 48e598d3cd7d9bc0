/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvidia_smi: the simulated nvidia-smi. Like the real one it loads libnvidia-ml.so.1 at run time
 * and knows nothing else, so in a container it prints what the container got. Reports have the real
 * program's format; a note on standard error states that they are simulated.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/nvml_api.h"

#define MAX_GPUS 32u /* that the simulated library knows */

#define FUNCTION_LIST(X)                                                                            \
	X(nvmlInit_v2, (void))                                                                      \
	X(nvmlShutdown, (void))                                                                     \
	X(nvmlSystemGetDriverVersion, (char *, unsigned int))                                       \
	X(nvmlSystemGetNVMLVersion, (char *, unsigned int))                                         \
	X(nvmlSystemGetCudaDriverVersion, (int *))                                                  \
	X(nvmlDeviceGetCount_v2, (unsigned int *))                                                  \
	X(nvmlDeviceGetHandleByIndex_v2, (unsigned int, nvmlDevice_t *))                            \
	X(nvmlDeviceGetName, (nvmlDevice_t, char *, unsigned int))                                  \
	X(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int))                                  \
	X(nvmlDeviceGetSerial, (nvmlDevice_t, char *, unsigned int))                                \
	X(nvmlDeviceGetVbiosVersion, (nvmlDevice_t, char *, unsigned int))                          \
	X(nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned int *))                                 \
	X(nvmlDeviceGetBrand, (nvmlDevice_t, unsigned int *))                                       \
	X(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t *))                                 \
	X(nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t *))                                  \
	X(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t, int *, int *))                         \
	X(nvmlDeviceGetMigMode, (nvmlDevice_t, unsigned int *, unsigned int *))                     \
	X(nvmlDeviceSetMigMode, (nvmlDevice_t, unsigned int, nvmlReturn_t *))                       \
	X(nvmlDeviceGetComputeMode, (nvmlDevice_t, unsigned int *))                                 \
	X(nvmlDeviceSetComputeMode, (nvmlDevice_t, unsigned int))                                   \
	X(nvmlDeviceGetTopologyCommonAncestor, (nvmlDevice_t, nvmlDevice_t, unsigned int *))        \
	X(nvmlDeviceGetNvLinkState, (nvmlDevice_t, unsigned int, unsigned int *))                   \
	X(nvmlDeviceGetNvLinkRemoteDeviceType, (nvmlDevice_t, unsigned int, unsigned int *))        \
	X(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvmlDevice_t, unsigned int, nvmlPciInfo_t *))       \
	X(nvmlDeviceGetCpuAffinity, (nvmlDevice_t, unsigned int, unsigned long *))                  \
	X(nvmlDeviceGetMemoryAffinity, (nvmlDevice_t, unsigned int, unsigned long *, unsigned int)) \
	X(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t, unsigned int *))                           \
	X(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice_t, unsigned int, nvmlDevice_t *))        \
	X(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t, unsigned int *))                               \
	X(nvmlDeviceGetComputeInstanceId, (nvmlDevice_t, unsigned int *))                           \
	X(nvmlDeviceGetTemperature, (nvmlDevice_t, unsigned int, unsigned int *))                   \
	X(nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned int *))                                  \
	X(nvmlDeviceGetPowerManagementLimit, (nvmlDevice_t, unsigned int *))                        \
	X(nvmlDeviceGetEccMode, (nvmlDevice_t, unsigned int *, unsigned int *))

static struct {
#define X(name, args) nvmlReturn_t(*name) args;
	FUNCTION_LIST(X)
#undef X
	const char *(*nvmlErrorString)(nvmlReturn_t);
} nvml;

struct gpu {
	bool lost;
	unsigned int index, minor, brand, temperature, power_mw, limit_mw, mig_mode, mig_pending, ecc;
	unsigned int compute_mode; /* in compute_modes */
	bool has_mig, has_ecc;
	nvmlDevice_t handle;
	char name[96], uuid[96], serial[32], vbios[32];
	nvmlPciInfo_t pci;
	nvmlMemory_t memory;
	int cc_major, cc_minor;
};

/* By NVML's numbers: as an argument of -c, as a field, in the table. */
static const struct {
	const char *argument, *field, *cell;
} compute_modes[] = {
	{ "DEFAULT", "Default", "Default" },
	{ NULL, "Exclusive_Thread", "E. Thread" },
	{ "PROHIBITED", "Prohibited", "Prohibited" },
	{ "EXCLUSIVE_PROCESS", "Exclusive_Process", "E. Process" },
};
#define N_COMPUTE_MODES (sizeof(compute_modes) / sizeof(compute_modes[0]))

static struct {
	char driver[80];
	int cuda;
	void *library;
	unsigned int n_gpus;
	struct gpu gpus[MAX_GPUS];
} host;

/*
 * Also tries the places of NixOS and WSL2, where the loader's cache does not list the library;
 * programs there find it through a run path.
 */
static void *load_library(void)
{
	static const char *const names[] = { "libnvidia-ml.so.1", "/run/opengl-driver/lib/libnvidia-ml.so.1",
					     "/usr/lib/wsl/lib/libnvidia-ml.so.1" };
	void *library = NULL;

	for (unsigned int i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

static bool load_functions(void *library)
{
	struct {
		const char *name;
		void *field;
		size_t size;
	} rows[] = {
#define X(name, args) { #name, &nvml.name, sizeof(nvml.name) },
		FUNCTION_LIST(X)
#undef X
		    { "nvmlErrorString", &nvml.nvmlErrorString, sizeof(nvml.nvmlErrorString) }
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *symbol = dlsym(library, rows[i].name);

		if (!symbol)
			return false;
		memcpy(rows[i].field, &symbol, rows[i].size);
	}
	return true;
}

static void read_gpu(unsigned int index)
{
	struct gpu *gpu = &host.gpus[index];
	unsigned int pending;

	gpu->index = index;
	if (nvml.nvmlDeviceGetHandleByIndex_v2(index, &gpu->handle) != NVML_SUCCESS) {
		gpu->lost = true;
		return;
	}
	(void)nvml.nvmlDeviceGetName(gpu->handle, gpu->name, sizeof(gpu->name));
	(void)nvml.nvmlDeviceGetUUID(gpu->handle, gpu->uuid, sizeof(gpu->uuid));
	(void)nvml.nvmlDeviceGetSerial(gpu->handle, gpu->serial, sizeof(gpu->serial));
	(void)nvml.nvmlDeviceGetVbiosVersion(gpu->handle, gpu->vbios, sizeof(gpu->vbios));
	(void)nvml.nvmlDeviceGetMinorNumber(gpu->handle, &gpu->minor);
	(void)nvml.nvmlDeviceGetBrand(gpu->handle, &gpu->brand);
	(void)nvml.nvmlDeviceGetPciInfo_v3(gpu->handle, &gpu->pci);
	(void)nvml.nvmlDeviceGetMemoryInfo(gpu->handle, &gpu->memory);
	(void)nvml.nvmlDeviceGetCudaComputeCapability(gpu->handle, &gpu->cc_major, &gpu->cc_minor);
	(void)nvml.nvmlDeviceGetTemperature(gpu->handle, 0, &gpu->temperature);
	(void)nvml.nvmlDeviceGetPowerUsage(gpu->handle, &gpu->power_mw);
	(void)nvml.nvmlDeviceGetPowerManagementLimit(gpu->handle, &gpu->limit_mw);
	(void)nvml.nvmlDeviceGetComputeMode(gpu->handle, &gpu->compute_mode);
	if (gpu->compute_mode >= N_COMPUTE_MODES)
		gpu->compute_mode = 0;
	gpu->has_mig = nvml.nvmlDeviceGetMigMode(gpu->handle, &gpu->mig_mode, &gpu->mig_pending) == NVML_SUCCESS;
	gpu->has_ecc = nvml.nvmlDeviceGetEccMode(gpu->handle, &gpu->ecc, &pending) == NVML_SUCCESS;
}

/*
 * Returns the exit status of the real program: 12 if there is no library, 18 for a mismatch,
 * otherwise NVML's result.
 */
static int start_nvml(void)
{
	void *library = load_library();
	char version[80] = "";
	nvmlReturn_t rc;

	if (!library || !load_functions(library)) {
		(void)fputs(
		    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA "
		    "Display Driver is properly installed and present in your system.\nPlease also try adding "
		    "directory "
		    "that contains libnvidia-ml.so to your system PATH.\n",
		    stderr);
		return NVML_LIBRARY_NOT_FOUND;
	}
	rc = nvml.nvmlInit_v2();
	if (rc == NVML_DRIVER_NOT_LOADED) {
		(void)puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
			   "that the latest "
			   "NVIDIA driver is installed and running.\n");
		return (int)rc;
	}
	if (rc != NVML_SUCCESS) {
		(void)printf("Failed to initialize NVML: %s\n", nvml.nvmlErrorString(rc));
		if (rc == NVML_LIB_RM_VERSION_MISMATCH &&
		    nvml.nvmlSystemGetNVMLVersion(version, sizeof(version)) == NVML_SUCCESS)
			(void)printf("NVML library version: %s\n",
				     strchr(version, '.') ? strchr(version, '.') + 1 : version);
		return (int)rc;
	}
	(void)nvml.nvmlSystemGetDriverVersion(host.driver, sizeof(host.driver));
	(void)nvml.nvmlSystemGetCudaDriverVersion(&host.cuda);
	host.library = library;
	(void)nvml.nvmlDeviceGetCount_v2(&host.n_gpus);
	if (host.n_gpus > MAX_GPUS)
		host.n_gpus = MAX_GPUS;
	for (unsigned int i = 0; i < host.n_gpus; i++)
		read_gpu(i);
	return 0;
}

static const char *mode_name(unsigned int mode)
{
	return mode == 1 ? "Enabled" : "Disabled";
}

static int no_devices(void)
{
	(void)puts("No devices were found");
	return NVML_NOT_FOUND;
}

/* --- nvidia-smi -L --- */

static void list_mig(const struct gpu *gpu)
{
	unsigned int count = 0;
	char uuid[96], name[160];
	const char *profile;
	nvmlDevice_t mig;

	if (nvml.nvmlDeviceGetMaxMigDeviceCount(gpu->handle, &count) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count; i++) {
		if (nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu->handle, i, &mig) != NVML_SUCCESS)
			continue;
		(void)nvml.nvmlDeviceGetUUID(mig, uuid, sizeof(uuid));
		(void)nvml.nvmlDeviceGetName(mig, name, sizeof(name));
		profile = strstr(name, " MIG ");
		(void)printf("  MIG %-11s Device %2u: (UUID: %s)\n", profile ? profile + 5 : name, i, uuid);
	}
}

static int list(void)
{
	if (host.n_gpus == 0)
		return no_devices();
	for (unsigned int i = 0; i < host.n_gpus; i++) {
		const struct gpu *gpu = &host.gpus[i];

		if (gpu->lost) {
			(void)printf("Unable to determine the device handle for gpu %u: GPU is lost.  Reboot the "
				     "system to recover "
				     "this GPU\n",
				     i);
			continue;
		}
		(void)printf("GPU %u: %s (UUID: %s)\n", i, gpu->name, gpu->uuid);
		if (gpu->has_mig && gpu->mig_mode == 1)
			list_mig(gpu);
	}
	return 0;
}

/* --- the table --- */

#define BAR       "+-----------------------------------------------------------------------------------------+\n"
#define SPLIT_BAR "+-----------------------------------------+------------------------+----------------------+\n"

static void table_row(const struct gpu *gpu)
{
	char memory[64], power[32];

	if (gpu->lost) {
		(void)printf(
		    "| %3u  ERR! (GPU is lost)                 |                        |                  ERR! |\n",
		    gpu->index);
		(void)printf(SPLIT_BAR);
		return;
	}
	(void)snprintf(power, sizeof(power), "%uW / %4uW", gpu->power_mw / 1000, gpu->limit_mw / 1000);
	(void)snprintf(memory, sizeof(memory), "%lluMiB / %6lluMiB", gpu->memory.used >> 20, gpu->memory.total >> 20);
	(void)printf("| %3u  %-29.29s On   |   %-16s Off |       %-14s |\n", gpu->index, gpu->name, gpu->pci.busId,
		     gpu->has_ecc ? "             0" : "           N/A");
	(void)printf("| N/A  %3uC    P0   %21s | %22s |      0%% %12s |\n", gpu->temperature, power, memory,
		     compute_modes[gpu->compute_mode].cell);
	(void)printf("|                                         |                        | %20s |\n",
		     gpu->has_mig ? mode_name(gpu->mig_mode) : "N/A");
	(void)printf(SPLIT_BAR);
}

static void mig_rows(const struct gpu *gpu)
{
	unsigned int gi, ci, count = 0;
	nvmlMemory_t memory;
	nvmlDevice_t mig;

	if (!gpu->has_mig || gpu->mig_mode != 1 ||
	    nvml.nvmlDeviceGetMaxMigDeviceCount(gpu->handle, &count) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count; i++) {
		if (nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu->handle, i, &mig) != NVML_SUCCESS)
			continue;
		(void)nvml.nvmlDeviceGetGpuInstanceId(mig, &gi);
		(void)nvml.nvmlDeviceGetComputeInstanceId(mig, &ci);
		(void)nvml.nvmlDeviceGetMemoryInfo(mig, &memory);
		(void)printf("| %3u  %3u  %3u  %3u  |  %12lluMiB / %6lluMiB                                      |\n",
			     gpu->index, gi, ci, i, memory.used >> 20, memory.total >> 20);
	}
}

static bool any_mig(void)
{
	for (unsigned int i = 0; i < host.n_gpus; i++) {
		if (host.gpus[i].has_mig && host.gpus[i].mig_mode == 1)
			return true;
	}
	return false;
}

static int table(void)
{
	time_t now = time(NULL);
	char date[64] = "", cuda[16];
	struct tm parts;

	if (host.n_gpus == 0)
		return no_devices();
	if (localtime_r(&now, &parts))
		(void)strftime(date, sizeof(date), "%a %b %e %H:%M:%S %Y", &parts);
	(void)snprintf(cuda, sizeof(cuda), "%d.%d", host.cuda / 1000, host.cuda % 1000 / 10);
	(void)printf("%s\n" BAR, date);
	(void)printf("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", host.driver, host.driver, cuda);
	(void)fputs("|-----------------------------------------+------------------------+----------------------+\n"
		    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
		    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
		    "|                                         |                        |               MIG M. |\n"
		    "|=========================================+========================+======================|\n",
		    stdout);
	for (unsigned int i = 0; i < host.n_gpus; i++)
		table_row(&host.gpus[i]);
	if (any_mig()) {
		(void)fputs(
		    "\n" BAR
		    "| MIG devices:                                                                            |\n"
		    "| GPU   GI   CI  MIG  |         Memory-Usage                                              |\n"
		    "|=====================+===================================================================|\n",
		    stdout);
		for (unsigned int i = 0; i < host.n_gpus; i++)
			mig_rows(&host.gpus[i]);
		(void)fputs(BAR, stdout);
	}
	(void)fputs("\n" BAR
		    "| Processes:                                                                              |\n"
		    "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n"
		    "|        ID   ID                                                               Usage      |\n"
		    "|=========================================================================================|\n"
		    "|  No running processes found (simulated by Graft, there is no real GPU)                  |\n" BAR,
		    stdout);
	return 0;
}

/* --- nvidia-smi -q --- */

static const char *brand_name(unsigned int brand)
{
	static const char *const names[] = { "Unknown",
					     "Quadro",
					     "Tesla",
					     "NVS",
					     "GRID",
					     "GeForce",
					     "Titan",
					     "NVIDIA Virtual Applications",
					     "NVIDIA Virtual PC",
					     "NVIDIA Virtual Compute Server",
					     "NVIDIA RTX Virtual Workstation",
					     "NVIDIA Cloud Gaming",
					     "Quadro RTX",
					     "NVIDIA RTX",
					     "NVIDIA",
					     "GeForce RTX",
					     "Titan RTX" };

	return brand < sizeof(names) / sizeof(names[0]) ? names[brand] : names[0];
}

static int query_all(void)
{
	(void)printf(
	    "\n==============NVSMI LOG==============\n\n"
	    "Simulated                                 : by Graft, there is no real GPU\n"
	    "Driver Version                            : %s\n"
	    "CUDA Version                              : %d.%d\n\nAttached GPUs                             : %u\n",
	    host.driver, host.cuda / 1000, host.cuda % 1000 / 10, host.n_gpus);
	for (unsigned int i = 0; i < host.n_gpus; i++) {
		const struct gpu *gpu = &host.gpus[i];

		if (gpu->lost)
			continue;
		(void)printf("GPU %s\n"
			     "    Product Name                          : %s\n"
			     "    Product Brand                         : %s\n"
			     "    MIG Mode\n        Current                           : %s\n"
			     "        Pending                           : %s\n"
			     "    Serial Number                         : %s\n"
			     "    GPU UUID                              : %s\n"
			     "    Minor Number                          : %u\n"
			     "    VBIOS Version                         : %s\n"
			     "    PCI\n        Bus                               : 0x%02X\n"
			     "        Device                            : 0x%02X\n"
			     "        Domain                            : 0x%04X\n"
			     "        Device Id                         : 0x%08X\n"
			     "        Bus Id                            : %s\n"
			     "    FB Memory Usage\n        Total                             : %llu MiB\n"
			     "        Used                              : %llu MiB\n"
			     "        Free                              : %llu MiB\n\n",
			     gpu->pci.busId, gpu->name, brand_name(gpu->brand),
			     gpu->has_mig ? mode_name(gpu->mig_mode) : "N/A",
			     gpu->has_mig ? mode_name(gpu->mig_pending) : "N/A", gpu->serial, gpu->uuid, gpu->minor,
			     gpu->vbios, gpu->pci.bus, gpu->pci.device, gpu->pci.domain, gpu->pci.pciDeviceId,
			     gpu->pci.busId, gpu->memory.total >> 20, gpu->memory.used >> 20, gpu->memory.free >> 20);
	}
	return 0;
}

/* --- nvidia-smi --query-gpu=... --format=csv --- */

/* Defines how a field is written. */
#define PUT(name, ...)                                                        \
	static void put_##name(const struct gpu *gpu, char *out, size_t size) \
	{                                                                     \
		(void)gpu;                                                    \
		(void)snprintf(out, size, __VA_ARGS__);                       \
	}
PUT(index, "%u", gpu->index)
PUT(name, "%s", gpu->name)
PUT(uuid, "%s", gpu->uuid)
PUT(serial, "%s", gpu->serial)
PUT(count, "%u", host.n_gpus)
PUT(bus_id, "%s", gpu->pci.busId)
PUT(device_id, "0x%08X", gpu->pci.pciDeviceId)
PUT(driver, "%s", host.driver)
PUT(vbios, "%s", gpu->vbios)
PUT(compute, "%d.%d", gpu->cc_major, gpu->cc_minor)
PUT(memory_total, "%llu", gpu->memory.total >> 20)
PUT(memory_used, "%llu", gpu->memory.used >> 20)
PUT(memory_free, "%llu", gpu->memory.free >> 20)
PUT(zero, "0")
PUT(temperature, "%u", gpu->temperature)
PUT(power, "%u.%02u", gpu->power_mw / 1000, gpu->power_mw % 1000 / 10)
PUT(limit, "%u.00", gpu->limit_mw / 1000)
PUT(mig, "%s", gpu->has_mig ? mode_name(gpu->mig_mode) : "[N/A]")
PUT(pending_mig, "%s", gpu->has_mig ? mode_name(gpu->mig_pending) : "[N/A]")
PUT(enabled, "Enabled")
PUT(compute_mode, "%s", compute_modes[gpu->compute_mode].field)
PUT(p0, "P0")

static const struct field {
	const char *name, *alias, *unit;
	void (*put)(const struct gpu *gpu, char *out, size_t size);
} fields[] = {
	{ "index", NULL, NULL, put_index },
	{ "name", "gpu_name", NULL, put_name },
	{ "uuid", "gpu_uuid", NULL, put_uuid },
	{ "serial", "gpu_serial", NULL, put_serial },
	{ "count", "gpu_count", NULL, put_count },
	{ "pci.bus_id", "gpu_bus_id", NULL, put_bus_id },
	{ "pci.device_id", NULL, NULL, put_device_id },
	{ "driver_version", NULL, NULL, put_driver },
	{ "vbios_version", NULL, NULL, put_vbios },
	{ "compute_cap", NULL, NULL, put_compute },
	{ "memory.total", NULL, "MiB", put_memory_total },
	{ "memory.used", NULL, "MiB", put_memory_used },
	{ "memory.free", NULL, "MiB", put_memory_free },
	{ "utilization.gpu", NULL, "%", put_zero },
	{ "utilization.memory", NULL, "%", put_zero },
	{ "temperature.gpu", NULL, NULL, put_temperature },
	{ "power.draw", NULL, "W", put_power },
	{ "power.limit", NULL, "W", put_limit },
	{ "mig.mode.current", NULL, NULL, put_mig },
	{ "mig.mode.pending", NULL, NULL, put_pending_mig },
	{ "persistence_mode", NULL, NULL, put_enabled },
	{ "compute_mode", NULL, NULL, put_compute_mode },
	{ "pstate", NULL, NULL, put_p0 },
};

static const struct field *find_field(const char *name, size_t length)
{
	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (strlen(fields[i].name) == length && strncmp(fields[i].name, name, length) == 0)
			return &fields[i];
		if (fields[i].alias && strlen(fields[i].alias) == length && strncmp(fields[i].alias, name, length) == 0)
			return &fields[i];
	}
	return NULL;
}

/* The requested fields in order, with their names as written. */
struct query {
	unsigned int n;
	struct {
		const struct field *field;
		const char *name;
		int length;
	} columns[64];
};

static bool parse_query(const char *list_, struct query *query)
{
	while (*list_ != '\0' && query->n < 64) {
		size_t length = strcspn(list_, ","), skip = strspn(list_, " ");
		const struct field *field = find_field(list_ + skip, length - skip);

		if (!field) {
			(void)printf("Field \"%.*s\" is not a valid field to query.\n\n", (int)length, list_);
			return false;
		}
		query->columns[query->n].field = field;
		query->columns[query->n].name = list_ + skip;
		query->columns[query->n++].length = (int)(length - skip);
		list_ += length + (list_[length] == ',');
	}
	return query->n > 0;
}

/* Whether -i means the GPU, by its index or UUID; without -i, all are meant. */
static bool is_meant(const struct gpu *gpu, const char *only)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", gpu->index);
	return !only || strcmp(only, number) == 0 || strcmp(only, gpu->uuid) == 0;
}

static int query_gpus(const char *list_, const char *format, const char *only)
{
	bool header = !strstr(format, "noheader"), units = !strstr(format, "nounits");
	struct query query = { .n = 0 };
	char value[160];

	if (!parse_query(list_, &query))
		return 2;
	if (host.n_gpus == 0)
		return no_devices();
	for (unsigned int c = 0; header && c < query.n; c++)
		(void)printf("%s%.*s%s%s%s", c > 0 ? ", " : "", query.columns[c].length, query.columns[c].name,
			     units && query.columns[c].field->unit ? " [" : "",
			     units && query.columns[c].field->unit ? query.columns[c].field->unit : "",
			     units && query.columns[c].field->unit ? "]" : "");
	if (header)
		(void)putchar('\n');
	for (unsigned int i = 0; i < host.n_gpus; i++) {
		const struct gpu *gpu = &host.gpus[i];
		if (gpu->lost || !is_meant(gpu, only))
			continue;
		for (unsigned int c = 0; c < query.n; c++) {
			query.columns[c].field->put(gpu, value, sizeof(value));
			(void)printf("%s%s%s%s", c > 0 ? ", " : "", value,
				     units && query.columns[c].field->unit ? " " : "",
				     units && query.columns[c].field->unit ? query.columns[c].field->unit : "");
		}
		(void)putchar('\n');
	}
	return 0;
}

/* --- the command line --- */

static const char usage[] =
    "nvidia-smi of the simulated driver (Graft): there is no real GPU.\n\n"
    "    nvidia-smi                 a table of the GPUs\n"
    "    nvidia-smi -L              one line for each GPU and MIG device\n"
    "    nvidia-smi -q              details\n"
    "    nvidia-smi topo -m         how GPUs are connected\n"
    "    nvidia-smi -r [-i INDEX,...]      reset GPUs\n"
    "    nvidia-smi -mig 0|1 [-i INDEX,...] MIG mode off or on\n"
    "    nvidia-smi -c MODE [-i INDEX|UUID]  compute mode: DEFAULT, EXCLUSIVE_PROCESS, PROHIBITED\n"
    "    nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits] [-i INDEX|UUID]\n";

/* Returns the GPUs that a list such as "0,2" means, as bits; all without a list; 0 after a message. */
static unsigned int read_indices(const char *list)
{
	unsigned int bits = 0;

	if (!list)
		return host.n_gpus >= MAX_GPUS ? ~0u : (1u << host.n_gpus) - 1;
	while (*list != '\0') {
		char *end;
		unsigned long index = strtoul(list, &end, 10);

		if (end == list || (*end != ',' && *end != '\0') || index >= host.n_gpus) {
			(void)printf("Unable to determine the device handle for GPU %s: Not Found\n", list);
			return 0;
		}
		bits |= 1u << index;
		list = *end == ',' ? end + 1 : end;
	}
	return bits;
}

/* Lost GPUs have no handle, so NVML has no function for this. */
static int reset_gpus(const char *only)
{
	nvmlReturn_t (*reset)(unsigned int index, unsigned int together, nvmlPciInfo_t *pci,
			      nvmlPciInfo_t *peer) = NULL;
	void *symbol = dlsym(host.library, "graftSimResetGpu");
	unsigned int bits = read_indices(only);

	if (bits == 0)
		return NVML_NOT_FOUND;
	memcpy(&reset, &symbol, sizeof(reset));
	for (unsigned int i = 0; i < host.n_gpus; i++) {
		nvmlPciInfo_t pci = { .busId = "?" }, peer = { .busId = "?" };
		nvmlReturn_t rc;

		if (!(bits >> i & 1u))
			continue;
		rc = reset ? reset(i, bits, &pci, &peer) : NVML_FUNCTION_NOT_FOUND;
		if (rc != NVML_SUCCESS) {
			(void)printf("GPU %s could not be reset: %s%s%s\n", pci.busId,
				     rc == NVML_RESET_REQUIRED ? "NVLinks connect it to GPU "
							       : nvml.nvmlErrorString(rc),
				     rc == NVML_RESET_REQUIRED ? peer.busId : "",
				     rc == NVML_RESET_REQUIRED ? ", which has to be reset with it" : "");
			return (int)rc;
		}
		(void)printf("GPU %s was successfully reset.\n", pci.busId);
	}
	(void)puts("All done.");
	return 0;
}

static int set_mig_mode(const char *mode, const char *only)
{
	unsigned int bits = read_indices(only), wanted = strcmp(mode, "1") == 0;
	int status = 0;

	if (bits == 0)
		return NVML_NOT_FOUND;
	if (!wanted && strcmp(mode, "0") != 0) {
		(void)fprintf(stderr, "Option -mig takes 0 or 1, not '%s'.\n", mode);
		return NVML_INVALID_ARGUMENT;
	}
	for (unsigned int i = 0; i < host.n_gpus; i++) {
		nvmlReturn_t activation = NVML_SUCCESS, rc;
		const char *bus_id = host.gpus[i].pci.busId;

		if (!(bits >> i & 1u) || host.gpus[i].lost)
			continue;
		rc = nvml.nvmlDeviceSetMigMode(host.gpus[i].handle, wanted, &activation);
		if (rc != NVML_SUCCESS) {
			(void)printf("Unable to %s MIG Mode for GPU %s: %s\n", wanted ? "enable" : "disable", bus_id,
				     nvml.nvmlErrorString(rc));
			status = (int)rc;
			continue;
		}
		if (activation != NVML_SUCCESS)
			(void)printf("Warning: MIG mode is in pending %s state for GPU %s: %s\n"
				     "Reset the GPU (nvidia-smi -r -i %u) to make it effective.\n",
				     wanted ? "enable" : "disable", bus_id, nvml.nvmlErrorString(activation), i);
		(void)printf("%s MIG Mode for GPU %s\n", mode_name(wanted), bus_id);
	}
	(void)puts("All done.");
	return status;
}

static int set_compute_mode(const char *name, const char *only)
{
	unsigned int mode = 0, n = 0;

	while (mode < N_COMPUTE_MODES &&
	       (!compute_modes[mode].argument || strcmp(compute_modes[mode].argument, name) != 0))
		mode++;
	if (mode == N_COMPUTE_MODES) {
		(void)fprintf(stderr, "Invalid compute mode '%s' specified.\n", name);
		return NVML_INVALID_ARGUMENT;
	}
	for (unsigned int i = 0; i < host.n_gpus; i++) {
		nvmlReturn_t rc;

		if (host.gpus[i].lost || !is_meant(&host.gpus[i], only))
			continue;
		rc = nvml.nvmlDeviceSetComputeMode(host.gpus[i].handle, mode);
		if (rc != NVML_SUCCESS) {
			(void)printf("Unable to set the compute mode for GPU %s: %s\n", host.gpus[i].pci.busId,
				     nvml.nvmlErrorString(rc));
			return (int)rc;
		}
		(void)printf("Set compute mode to %s for GPU %s.\n", name, host.gpus[i].pci.busId);
		n++;
	}
	if (n == 0)
		return NVML_NOT_FOUND;
	(void)puts("All done.");
	return 0;
}

/* --- nvidia-smi topo -m --- */

/* The NVLinks from one GPU to another; those to a switch lead to every GPU. */
static unsigned int count_links(const struct gpu *from, const struct gpu *to)
{
	unsigned int n = 0, active;

	for (unsigned int link = 0; nvml.nvmlDeviceGetNvLinkState(from->handle, link, &active) == NVML_SUCCESS;
	     link++) {
		unsigned int kind = 0;
		nvmlPciInfo_t remote;

		if (!active || nvml.nvmlDeviceGetNvLinkRemoteDeviceType(from->handle, link, &kind) != NVML_SUCCESS ||
		    nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(from->handle, link, &remote) != NVML_SUCCESS)
			continue;
		n += kind != 0 || strcmp(remote.busId, to->pci.busId) == 0;
	}
	return n;
}

static void put_connection(const struct gpu *a, const struct gpu *b)
{
	static const char *const names[] = { "PIX", "PIX", "PXB", "PHB", "NODE", "SYS" };
	unsigned int level = 50, links = a == b ? 0 : count_links(a, b);

	(void)nvml.nvmlDeviceGetTopologyCommonAncestor(a->handle, b->handle, &level);
	if (a == b)
		(void)printf("\t X ");
	else if (links > 0)
		(void)printf("\tNV%u", links);
	else
		(void)printf("\t%s", names[level <= 50 ? level / 10 : 5]);
}

/* "0-3,8" */
static void put_bits(const unsigned long *words, unsigned int n_words)
{
	const unsigned int bits = 8 * sizeof(*words), n = n_words * bits;
	const char *between = "";

	for (unsigned int first = 0, end; first < n; first = end + 1) {
		for (end = first; end < n && (words[end / bits] >> end % bits & 1u);)
			end++;
		if (end == first)
			continue;
		(void)printf(end > first + 1 ? "%s%u-%u" : "%s%u", between, first, end - 1);
		between = ",";
	}
}

static int show_topology(void)
{
	for (unsigned int i = 0; i < host.n_gpus; i++)
		(void)printf("\tGPU%u", i);
	(void)puts("\tCPU Affinity\tNUMA Affinity");
	for (unsigned int i = 0; i < host.n_gpus; i++) {
		unsigned long cpus[16] = { 0 }, nodes[1] = { 0 };

		if (host.gpus[i].lost)
			continue;
		(void)printf("GPU%u", i);
		for (unsigned int k = 0; k < host.n_gpus; k++)
			put_connection(&host.gpus[i], &host.gpus[k]);
		(void)nvml.nvmlDeviceGetCpuAffinity(host.gpus[i].handle, 16, cpus);
		(void)nvml.nvmlDeviceGetMemoryAffinity(host.gpus[i].handle, 1, nodes, 0);
		(void)putchar('\t');
		put_bits(cpus, 16);
		(void)printf("\t\t");
		put_bits(nodes, 1);
		(void)putchar('\n');
	}
	(void)puts("\nLegend:\n\n"
		   "  NV#  = that many NVLinks\n"
		   "  PIX  = one PCI switch between them\n"
		   "  PXB  = several PCI switches\n"
		   "  PHB  = the host bridge of a CPU\n"
		   "  NODE = host bridges of one NUMA node\n"
		   "  SYS  = the connection between NUMA nodes");
	return 0;
}

struct command {
	bool list, all, help, reset, topology;
	const char *query, *format, *only, *mig, *compute_mode;
};

static const char *value_of(const char *argument, const char *option)
{
	size_t length = strlen(option);

	return strncmp(argument, option, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

static bool parse_smi_options(int argc, char **argv, struct command *command)
{
	for (int i = 1; i < argc; i++) {
		const char *value;

		if (strcmp(argv[i], "-L") == 0 || strcmp(argv[i], "--list-gpus") == 0)
			command->list = true;
		else if (strcmp(argv[i], "-q") == 0 || strcmp(argv[i], "--query") == 0)
			command->all = true;
		else if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			command->help = true;
		else if (strcmp(argv[i], "-r") == 0 || strcmp(argv[i], "--gpu-reset") == 0)
			command->reset = true;
		else if (strcmp(argv[i], "topo") == 0 && i + 1 < argc && strcmp(argv[i + 1], "-m") == 0)
			command->topology = ++i > 0;
		else if ((strcmp(argv[i], "-mig") == 0 || strcmp(argv[i], "--multi-instance-gpu") == 0) && i + 1 < argc)
			command->mig = argv[++i];
		else if ((strcmp(argv[i], "-c") == 0 || strcmp(argv[i], "--compute-mode") == 0) && i + 1 < argc)
			command->compute_mode = argv[++i];
		else if (strcmp(argv[i], "-i") == 0 && i + 1 < argc)
			command->only = argv[++i];
		else if ((value = value_of(argv[i], "--id")))
			command->only = value;
		else if ((value = value_of(argv[i], "--query-gpu")))
			command->query = value;
		else if ((value = value_of(argv[i], "--format")))
			command->format = value;
		else {
			(void)fprintf(
			    stderr,
			    "Invalid combination of input arguments. '%s' is not known to the simulated nvidia-smi.\n",
			    argv[i]);
			return false;
		}
	}
	if (command->query && (!command->format || strncmp(command->format, "csv", 3) != 0)) {
		(void)fputs("\"--format=\" switch is missing. Run 'nvidia-smi -h' for help\n", stderr);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct command command = { .list = false };
	int rc;

	if (!parse_smi_options(argc, argv, &command))
		return 2;
	if (command.help)
		return fputs(usage, stdout) < 0;
	rc = start_nvml();
	if (rc != 0)
		return (int)rc;
	if (command.reset)
		rc = reset_gpus(command.only);
	else if (command.mig)
		rc = set_mig_mode(command.mig, command.only);
	else if (command.compute_mode)
		rc = set_compute_mode(command.compute_mode, command.only);
	else if (command.topology)
		rc = show_topology();
	else if (command.query)
		rc = query_gpus(command.query, command.format, command.only);
	else if (command.list)
		rc = list();
	else
		rc = command.all ? query_all() : table();
	(void)fflush(stdout);
	if (command.list || command.query)
		(void)fputs("nvidia-smi: simulated by Graft, there is no real GPU\n", stderr);
	(void)nvml.nvmlShutdown();
	return rc;
}
