/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_client: an ordinary user of libcuda.so.1: finds it by soname, asks for its functions as the CUDA runtime does, lists the devices
 * and moves bytes through the first one. Prints one line a fact; exit status 1 and the error's name when something fails. With an argument it
 * stays until it is killed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int result;

static result (*get_error_name)(result error, const char **name);
static result (*get_proc)(const char *symbol, void **function, int version, unsigned long long flags);

static int check(result rc, const char *what)
{
	const char *name = "?";

	if (rc == 0)
		return 0;
	(void)get_error_name(rc, &name);
	(void)printf("%s: %s\n", what, name);
	return -1;
}

static void *find(const char *name)
{
	void *function = NULL;

	if (get_proc(name, &function, 12000, 0) != 0)
		(void)printf("%s: not found\n", name);
	return function;
}

/* Object and function pointers have one size on every system that has dlsym(). */
#define FIND(variable, name)                                    \
	do {                                                    \
		void *found_ = find(name);                      \
		if (!found_)                                    \
			return 1;                               \
		memcpy(&(variable), &found_, sizeof(variable)); \
	} while (0)

static int list(int count)
{
	result (*get)(int *device, int ordinal), (*name_of)(char *name, int length, int device),
	    (*memory_of)(size_t * bytes, int device), (*attribute)(int *value, int which, int device),
	    (*bus_of)(char *text, int length, int device);
	char name[160], bus[32];
	int device, major, minor, mps = 0;
	size_t bytes;

	FIND(get, "cuDeviceGet");
	FIND(name_of, "cuDeviceGetName");
	FIND(memory_of, "cuDeviceTotalMem");
	FIND(attribute, "cuDeviceGetAttribute");
	FIND(bus_of, "cuDeviceGetPCIBusId");
	for (int i = 0; i < count; i++) {
		if (check(get(&device, i), "cuDeviceGet") < 0 ||
		    check(name_of(name, sizeof(name), device), "name") < 0 ||
		    check(memory_of(&bytes, device), "memory") < 0 ||
		    check(bus_of(bus, sizeof(bus), device), "bus") < 0 ||
		    check(attribute(&major, 75, device), "major") < 0 ||
		    check(attribute(&minor, 76, device), "minor") < 0 || check(attribute(&mps, 133, device), "mps") < 0)
			return 1;
		(void)printf("device %d: %s, %zu MiB, %d.%d, %s%s\n", i, name, bytes >> 20, major, minor, bus,
			     mps ? ", through MPS" : "");
	}
	if (get(&device, count) == 0) {
		(void)printf("device %d should not exist\n", count);
		return 1;
	}
	return 0;
}

static int copy(void)
{
	result (*create)(void **context, unsigned int flags, int device), (*destroy)(void *context),
	    (*allocate)(unsigned long long *pointer, size_t bytes), (*release)(unsigned long long pointer),
	    (*to_device)(unsigned long long to, const void *from, size_t bytes),
	    (*to_host)(void *to, unsigned long long from, size_t bytes);
	unsigned long long pointer;
	void *context;
	char text[32] = "";

	FIND(create, "cuCtxCreate");
	FIND(destroy, "cuCtxDestroy");
	FIND(allocate, "cuMemAlloc");
	FIND(release, "cuMemFree");
	FIND(to_device, "cuMemcpyHtoD");
	FIND(to_host, "cuMemcpyDtoH");
	if (allocate(&pointer, 32) != 201) { /* no context yet */
		(void)puts("allocated without a context");
		return 1;
	}
	if (check(create(&context, 0, 0), "cuCtxCreate") < 0 || check(allocate(&pointer, 32), "cuMemAlloc") < 0 ||
	    check(to_device(pointer, "through the device", 19), "cuMemcpyHtoD") < 0 ||
	    check(to_host(text, pointer, 19), "cuMemcpyDtoH") < 0 || check(release(pointer), "cuMemFree") < 0)
		return 1;
	if (allocate(&pointer, (size_t)1 << 50) != 2) {
		(void)puts("allocated more than there is");
		return 1;
	}
	(void)printf("copied: %s\n", text);
	return check(destroy(context), "cuCtxDestroy") < 0;
}

int main(int argc, char **argv)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *symbol;
	result (*init)(unsigned int flags), (*count_of)(int *count), (*version_of)(int *version);
	int count, version;

	if (!library) {
		(void)printf("%s\n", dlerror());
		return 1;
	}
	symbol = dlsym(library, "cuGetErrorName");
	memcpy(&get_error_name, &symbol, sizeof(symbol));
	symbol = dlsym(library, "cuGetProcAddress");
	memcpy(&get_proc, &symbol, sizeof(symbol));
	FIND(init, "cuInit");
	FIND(count_of, "cuDeviceGetCount");
	FIND(version_of, "cuDriverGetVersion");
	if (check(version_of(&version), "cuDriverGetVersion") < 0)
		return 1;
	(void)printf("version: %d\n", version);
	if (check(init(0), "cuInit") < 0 || check(count_of(&count), "cuDeviceGetCount") < 0)
		return 1;
	(void)printf("count: %d\n", count);
	(void)argv;
	if (list(count) != 0 || copy() != 0)
		return 1;
	(void)fflush(stdout);
	return argc > 1 ? pause() : 0;
}
