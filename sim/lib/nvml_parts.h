/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_parts: what the files of the simulated libnvidia-ml.so.1 share: handles, the checks at the
 * start of every function, and the macros that define functions.
 */
#ifndef GRAFT_SIM_NVML_PARTS_H
#define GRAFT_SIM_NVML_PARTS_H

#include <stdbool.h>

#include "nvml_api.h"
#include "visible.h"

#define API __attribute__((visibility("default")))
/*
 * Another name for the same function, for callers built against a different version of the header.
 */
#define ALIAS(name, of, ...) API extern nvmlReturn_t name(__VA_ARGS__) __attribute__((alias(#of)))
/* Declares and begins a function of the library. */
#define ENTRY(name, ...)                    \
	API nvmlReturn_t name(__VA_ARGS__); \
	API nvmlReturn_t name(__VA_ARGS__)

/* A GPU instance of MIG that the process may open. */
struct nvml_gpu_instance {
	struct nvml_handle *gpu;
	const volatile struct sim_data_mig *mig; /* the first of its compute instances */
};

struct nvml_handle {
	const volatile struct sim_data_gpu *gpu;
	const volatile struct sim_data_mig *mig; /* NULL for a GPU */
	struct nvml_handle *parent;
	unsigned int index;
	unsigned int n_mig;
	struct nvml_handle *migs[SIM_MAX_MIG];
	unsigned int n_instances;
	struct nvml_gpu_instance instances[SIM_MAX_MIG];
};

/* What nvmlInit() found; 0 references: not initialised. */
struct nvml_state {
	char busy;
	unsigned int references;
	unsigned int n_gpus;
	unsigned int n_migs;
	struct nvml_handle gpus[SIM_MAX_GPUS];
	struct nvml_handle migs[SIM_MAX_GPUS * SIM_MAX_MIG];
};
extern struct nvml_state nvml_state;

/*
 * The checks for a function that writes its answer to `out`: the library is initialised, the handle
 * is one of its own, and the GPU is not lost. Return NVML_SUCCESS or what the function returns.
 * nvml_check_gpu() also refuses MIG devices, nvml_check_mig() whole GPUs, as NOT_SUPPORTED.
 */
nvmlReturn_t nvml_check_device(const struct nvml_handle *device, const void *out);
nvmlReturn_t nvml_check_gpu(const struct nvml_handle *device, const void *out);
nvmlReturn_t nvml_check_mig(const struct nvml_handle *device, const void *out);

/* Returns whether the GPU of a handle has fallen off the bus. */
bool nvml_is_lost(const struct nvml_handle *device);

/* Copies a text of sim_data into the caller's buffer. */
nvmlReturn_t nvml_give_text(char *out, unsigned int size, const volatile char *text);

/* Fills in PCI ids. `gpu` is any GPU of the host, not only a visible one. */
void nvml_pci_info(const volatile struct sim_data_gpu *gpu, nvmlPciInfo_t *ret_pci);

/* Unless `rc` is a failure, which it returns, gives the PCI ids to a caller that was built with an older header. */
nvmlReturn_t nvml_give_pci_v2(nvmlReturn_t rc, const nvmlPciInfo_t *full, nvmlPciInfo_v2_t *pci);

/* Defines a function that returns a number. */
#define GIVE_NUMBER(name, checker, type, expression)    \
	ENTRY(name, nvmlDevice_t device, type *out)     \
	{                                               \
		nvmlReturn_t rc = checker(device, out); \
                                                        \
		if (rc == NVML_SUCCESS)                 \
			*out = (type)(expression);      \
		return rc;                              \
	}

/* Defines a function that returns a text. */
#define GIVE_TEXT(name, checker, expression)                                            \
	ENTRY(name, nvmlDevice_t device, char *out, unsigned int size)                  \
	{                                                                               \
		nvmlReturn_t rc = checker(device, out);                                 \
                                                                                        \
		return rc == NVML_SUCCESS ? nvml_give_text(out, size, expression) : rc; \
	}

#endif
