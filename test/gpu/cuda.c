/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda: the smallest program that really uses a GPU. It loads libcuda.so.1 as an application does, adds two vectors on
 * each device by a kernel in PTX, and checks the sums. No header or library of CUDA is needed to build it.
 *
 *	cuda [--expect N]      exit 0 when N devices (default: at least one) worked, 1 otherwise
 *	cuda --allocate MIB    exit 0 if the first device gives that much memory, 2 if it has too little
 *	cuda --spin SECONDS    print how many short kernels, of one block, ran one after the other on the first device
 *
 * A simulated libcuda has devices but cannot run a kernel: it lacks cuModuleLoadData, and the program says so.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N             1024u
#define SPIN_CYCLES   2000000ull
#define OUT_OF_MEMORY 2

/* The driver API's functions that are used, with the symbol versions that headers of CUDA 12 choose. */
static struct {
	int (*init)(unsigned int flags);
	int (*driver_get_version)(int *version);
	int (*device_get_count)(int *count);
	int (*device_get)(int *device, int ordinal);
	int (*device_get_name)(char *name, int length, int device);
	int (*ctx_create)(void **context, unsigned int flags, int device);
	int (*ctx_destroy)(void *context);
	int (*mem_alloc)(uint64_t *address, size_t size);
	int (*mem_free)(uint64_t address);
	int (*copy_to)(uint64_t address, const void *host, size_t size);
	int (*copy_from)(void *host, uint64_t address, size_t size);
	int (*module_load)(void **module, const void *image);
	int (*module_get_function)(void **function, void *module, const char *name);
	int (*launch)(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		      unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
		      void *stream, void **arguments, void **extra);
	int (*synchronize)(void);
} cuda;

static const struct {
	const char *name;
	void *pointer;
	int needed;
} symbols[] = {
	{ "cuInit", &cuda.init, 1 },
	{ "cuDriverGetVersion", &cuda.driver_get_version, 1 },
	{ "cuDeviceGetCount", &cuda.device_get_count, 1 },
	{ "cuDeviceGet", &cuda.device_get, 1 },
	{ "cuDeviceGetName", &cuda.device_get_name, 1 },
	{ "cuCtxCreate_v2", &cuda.ctx_create, 0 },
	{ "cuCtxDestroy_v2", &cuda.ctx_destroy, 0 },
	{ "cuMemAlloc_v2", &cuda.mem_alloc, 0 },
	{ "cuMemFree_v2", &cuda.mem_free, 0 },
	{ "cuMemcpyHtoD_v2", &cuda.copy_to, 0 },
	{ "cuMemcpyDtoH_v2", &cuda.copy_from, 0 },
	{ "cuModuleLoadData", &cuda.module_load, 0 },
	{ "cuModuleGetFunction", &cuda.module_get_function, 0 },
	{ "cuLaunchKernel", &cuda.launch, 0 },
	{ "cuCtxSynchronize", &cuda.synchronize, 0 },
};

/* c[i] = a[i] + b[i]; PTX 6.0 for sm_50 is compiled by every driver since 2017 for every GPU since Maxwell. */
static const char kernel[] = ".version 6.0\n"
			     ".target sm_50\n"
			     ".address_size 64\n"
			     ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c)\n"
			     "{\n"
			     ".reg .u32 %r<8>; .reg .u64 %p<10>;\n"
			     "ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b]; ld.param.u64 %p3, [c];\n"
			     "cvta.to.global.u64 %p1, %p1; cvta.to.global.u64 %p2, %p2; cvta.to.global.u64 %p3, %p3;\n"
			     "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
			     "mad.lo.u32 %r4, %r1, %r2, %r3; mul.wide.u32 %p4, %r4, 4;\n"
			     "add.u64 %p5, %p1, %p4; add.u64 %p6, %p2, %p4; add.u64 %p7, %p3, %p4;\n"
			     "ld.global.u32 %r5, [%p5]; ld.global.u32 %r6, [%p6];\n"
			     "add.u32 %r7, %r5, %r6; st.global.u32 [%p7], %r7;\n"
			     "ret;\n"
			     "}\n";

/* One block that is busy for so many cycles, and leaves nearly all of a GPU to others. */
static const char spin_kernel[] = ".version 6.0\n"
				  ".target sm_50\n"
				  ".address_size 64\n"
				  ".visible .entry spin(.param .u64 cycles)\n"
				  "{\n"
				  ".reg .u64 %t<5>; .reg .pred %p1;\n"
				  "ld.param.u64 %t1, [cycles];\n"
				  "mov.u64 %t2, %clock64;\n"
				  "again:\n"
				  "mov.u64 %t3, %clock64;\n"
				  "sub.u64 %t4, %t3, %t2;\n"
				  "setp.lt.u64 %p1, %t4, %t1;\n"
				  "@%p1 bra again;\n"
				  "ret;\n"
				  "}\n";

static int load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int complete = 1;

	if (!library) {
		(void)printf("cuda: %s\n", dlerror());
		return -1;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *found = dlsym(library, symbols[i].name);

		if (!found && symbols[i].needed) {
			(void)printf("cuda: libcuda.so.1 has no %s\n", symbols[i].name);
			return -1;
		}
		complete &= found != NULL;
		memcpy(symbols[i].pointer, &found, sizeof(found));
	}
	return complete;
}

/* Says which step failed. */
static int failed(const char *step, int result)
{
	if (result != 0)
		(void)printf("cuda: %s: error %d\n", step, result);
	return result != 0;
}

static int add_on(int device)
{
	uint32_t a[N], b[N], c[N];
	uint64_t on_device[3] = { 0, 0, 0 };
	void *context, *module, *function;
	void *arguments[] = { &on_device[0], &on_device[1], &on_device[2] };

	for (uint32_t i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 7 * i + 3;
		c[i] = 0;
	}
	if (failed("cuCtxCreate", cuda.ctx_create(&context, 0, device)))
		return -1;
	for (int i = 0; i < 3; i++) {
		if (failed("cuMemAlloc", cuda.mem_alloc(&on_device[i], sizeof(a))))
			return -1;
	}
	if (failed("cuMemcpyHtoD", cuda.copy_to(on_device[0], a, sizeof(a))) ||
	    failed("cuMemcpyHtoD", cuda.copy_to(on_device[1], b, sizeof(b))) ||
	    failed("cuModuleLoadData", cuda.module_load(&module, kernel)) ||
	    failed("cuModuleGetFunction", cuda.module_get_function(&function, module, "add")) ||
	    failed("cuLaunchKernel", cuda.launch(function, N / 128, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL)) ||
	    failed("cuCtxSynchronize", cuda.synchronize()) ||
	    failed("cuMemcpyDtoH", cuda.copy_from(c, on_device[2], sizeof(c))))
		return -1;
	for (uint32_t i = 0; i < N; i++) {
		if (c[i] != a[i] + b[i]) {
			(void)printf("cuda: sum %u is %u and not %u\n", i, c[i], a[i] + b[i]);
			return -1;
		}
	}
	for (int i = 0; i < 3; i++)
		(void)cuda.mem_free(on_device[i]);
	return failed("cuCtxDestroy", cuda.ctx_destroy(context)) ? -1 : 0;
}

static int use_first(void **context)
{
	int device;

	return failed("cuDeviceGet", cuda.device_get(&device, 0)) ||
	       failed("cuCtxCreate", cuda.ctx_create(context, 0, device));
}

static int allocate(unsigned long mib)
{
	uint64_t address;
	void *context;
	int result;

	if (use_first(&context))
		return 1;
	result = cuda.mem_alloc(&address, (size_t)mib << 20);
	if (result == OUT_OF_MEMORY)
		(void)printf("cuda: %lu MiB are too much\n", mib);
	else if (!failed("cuMemAlloc", result))
		(void)printf("cuda: %lu MiB\n", mib);
	return result == 0 ? 0 : result == OUT_OF_MEMORY ? 2 : 1;
}

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int spin(double seconds)
{
	uint64_t cycles = SPIN_CYCLES;
	void *context, *module, *function, *arguments[] = { &cycles };
	unsigned long n = 0;
	double until;

	if (use_first(&context) || failed("cuModuleLoadData", cuda.module_load(&module, spin_kernel)) ||
	    failed("cuModuleGetFunction", cuda.module_get_function(&function, module, "spin")))
		return 1;
	for (until = now() + seconds; now() < until; n++) {
		if (failed("cuLaunchKernel", cuda.launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL)) ||
		    failed("cuCtxSynchronize", cuda.synchronize()))
			return 1;
	}
	(void)printf("%lu\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	long expect = argc == 3 && strcmp(argv[1], "--expect") == 0 ? strtol(argv[2], NULL, 10) : -1;
	int complete = load(), version = 0, count = 0;

	if (complete < 0 || failed("cuInit", cuda.init(0)) || failed("cuDeviceGetCount", cuda.device_get_count(&count)))
		return 1;
	if (argc == 3 && strcmp(argv[1], "--allocate") == 0)
		return allocate(strtoul(argv[2], NULL, 10));
	if (argc == 3 && strcmp(argv[1], "--spin") == 0 && complete)
		return spin(strtod(argv[2], NULL));
	(void)cuda.driver_get_version(&version);
	(void)printf("cuda: driver API %d.%d, %d devices\n", version / 1000, version % 1000 / 10, count);
	for (int i = 0; i < count; i++) {
		char name[128] = "?";
		int device;

		if (failed("cuDeviceGet", cuda.device_get(&device, i)))
			return 1;
		(void)cuda.device_get_name(name, sizeof(name), device);
		if (!complete)
			(void)printf("cuda: device %d: %s: this libcuda cannot run a kernel (simulated)\n", i, name);
		else if (add_on(device) < 0)
			return 1;
		else
			(void)printf("cuda: device %d: %s: %u sums are right\n", i, name, N);
	}
	return expect >= 0 ? count != expect : count < 1;
}
