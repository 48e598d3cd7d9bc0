/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_gpus: the driver and the GPUs of this machine.
 *
 *	cc list_gpus.c $(pkg-config --cflags --libs libnvidia-container) -o list_gpus && ./list_gpus
 */
#include <nvc.h>
#include <stdio.h>

static const char *known(const char *text)
{
	return text ? text : "unknown";
}

int main(void)
{
	struct nvc_context *ctx = nvc_context_new();
	struct nvc_driver_info *driver = NULL;
	struct nvc_device_info *info = NULL;
	int status = 1;

	if (ctx && nvc_init(ctx, NULL, NULL) == 0 && (driver = nvc_driver_info_new(ctx, NULL)) &&
	    (info = nvc_device_info_new(ctx, NULL))) {
		printf("driver %s, CUDA %s\n", known(driver->nvrm_version), known(driver->cuda_version));
		for (size_t i = 0; i < info->ngpus; i++) {
			const struct nvc_device *gpu = &info->gpus[i];

			printf("GPU %zu: %s %s at %s, compute capability %s\n", i, known(gpu->uuid), known(gpu->model),
			       gpu->busid, known(gpu->arch));
			for (size_t m = 0; m < gpu->mig_devices.ndevices; m++)
				printf("  MIG %zu: %s\n", m, known(gpu->mig_devices.devices[m].uuid));
		}
		status = 0;
	} else {
		fprintf(stderr, "list_gpus: %s\n", ctx ? known(nvc_error(ctx)) : "out of memory");
	}
	nvc_device_info_free(info);
	nvc_driver_info_free(driver);
	nvc_context_free(ctx);
	return status;
}
