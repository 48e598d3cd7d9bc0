/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egl: the simulated libEGL_nvidia.so.0: a vendor library that glvnd's libEGL finds through
 * 10_nvidia.json. It has one EGL device for each GPU that the process can see, and displays on
 * them; it has no configurations and draws nothing. It implements version 0 of glvnd's interface.
 */
#include <stdbool.h>
#include <string.h>

#include <glvnd/libeglabi.h>

#include "kernel_log.h"
#include "visible.h"

#define API __attribute__((visibility("default")))

static EGLint last_error = EGL_SUCCESS;
static const __EGLapiExports *glvnd;
static int device_string_index = -1; /* the index that glvnd assigned to eglQueryDeviceStringEXT */

static EGLBoolean refuse(EGLint error)
{
	last_error = error;
	return EGL_FALSE;
}

/* Devices and displays are GPUs: their handles are addresses of elements of sim_data.gpus. */
static bool is_visible(uint32_t i)
{
	return i < sim_data.n_gpus && !sim_gpu_lost(i) && sim_gpu_visible(i);
}

static void *handle(uint32_t i)
{
	/* Without const and volatile: glvnd's handles are plain pointers, never dereferenced. */
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return (void *)(uintptr_t)&sim_data.gpus[i];
}

static EGLDisplay get_platform_display(EGLenum platform, void *native, const EGLAttrib *attributes)
{
	(void)attributes;
	if (sim_driver_access() != SIM_ACCESS_YES)
		return EGL_NO_DISPLAY;
	if (platform != EGL_NONE && platform != EGL_PLATFORM_DEVICE_EXT && platform != EGL_PLATFORM_SURFACELESS_MESA)
		return EGL_NO_DISPLAY;
	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		if (is_visible(i) && (platform != EGL_PLATFORM_DEVICE_EXT || native == handle(i)))
			return handle(i);
	}
	return EGL_NO_DISPLAY;
}

static EGLint get_error(void)
{
	EGLint error = last_error;

	last_error = EGL_SUCCESS;
	return error;
}

static EGLBoolean initialize(EGLDisplay display, EGLint *major, EGLint *minor)
{
	(void)display;
	if (major)
		*major = 1;
	if (minor)
		*minor = 5;
	return EGL_TRUE;
}

static EGLBoolean succeed(EGLDisplay display)
{
	(void)display;
	return EGL_TRUE;
}

static const char *query_string(EGLDisplay display, EGLint name)
{
	switch (name) {
	case EGL_VENDOR:
		return "NVIDIA (simulated by Graft)";
	case EGL_VERSION:
		return "1.5";
	case EGL_CLIENT_APIS:
		return "OpenGL_ES OpenGL";
	case EGL_EXTENSIONS:
		return display == EGL_NO_DISPLAY
			   ? "EGL_EXT_platform_base EGL_EXT_device_base EGL_EXT_device_enumeration "
			     "EGL_EXT_device_query EGL_EXT_platform_device EGL_MESA_platform_surfaceless"
			   : "";
	default:
		(void)refuse(EGL_BAD_PARAMETER);
		return NULL;
	}
}

static EGLBoolean no_configurations(EGLDisplay display, EGLConfig *configs, EGLint size, EGLint *n)
{
	(void)display;
	(void)configs;
	(void)size;
	*n = 0;
	return EGL_TRUE;
}

static EGLBoolean choose_none(EGLDisplay display, const EGLint *attributes, EGLConfig *configs, EGLint size, EGLint *n)
{
	(void)attributes;
	return no_configurations(display, configs, size, n);
}

/* Stands in for everything that would draw: there is nothing to draw on. */
static EGLBoolean not_here(void)
{
	return refuse(EGL_BAD_MATCH);
}

static EGLBoolean query_devices(EGLint room, EGLDeviceEXT *devices, EGLint *n)
{
	EGLint found = 0;

	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		if (!is_visible(i) || (devices && found >= room))
			continue;
		if (devices)
			devices[found] = handle(i);
		found++;
	}
	*n = found;
	return EGL_TRUE;
}

static const char *query_device_string(EGLDeviceEXT device, EGLint name)
{
	(void)device;
	if (name == EGL_EXTENSIONS)
		return "";
	(void)refuse(EGL_BAD_PARAMETER);
	return NULL;
}

/* glvnd dispatches by handle, so only our displays arrive here. */
static EGLBoolean query_display_attrib(EGLDisplay display, EGLint name, EGLAttrib *value)
{
	if (name != EGL_DEVICE_EXT)
		return refuse(EGL_BAD_ATTRIBUTE);
	*value = (EGLAttrib)(uintptr_t)display;
	return EGL_TRUE;
}

#define ROW(name, function)                            \
	{                                              \
		"egl" name, (void (*)(void))(function) \
	}
/* clang-format off */
static const struct {
	const char *name;
	void (*function)(void);
} functions[] = {
	ROW("Initialize", initialize),
	ROW("Terminate", succeed),
	ROW("QueryString", query_string),
	ROW("GetError", get_error),
	ROW("GetConfigs", no_configurations),
	ROW("ChooseConfig", choose_none),
	ROW("QueryDevicesEXT", query_devices),
	ROW("QueryDeviceStringEXT", query_device_string),
	ROW("QueryDisplayAttribEXT", query_display_attrib),
	ROW("QueryDisplayAttribKHR", query_display_attrib),
	/* glvnd rejects a vendor without these. */
	ROW("CopyBuffers", not_here),
	ROW("CreateContext", not_here),
	ROW("CreatePbufferSurface", not_here),
	ROW("CreatePixmapSurface", not_here),
	ROW("CreateWindowSurface", not_here),
	ROW("DestroyContext", not_here),
	ROW("DestroySurface", not_here),
	ROW("GetConfigAttrib", not_here),
	ROW("MakeCurrent", not_here),
	ROW("QueryContext", not_here),
	ROW("QuerySurface", not_here),
	ROW("SwapBuffers", not_here),
	ROW("WaitGL", not_here),
	ROW("WaitNative", not_here),
	ROW("BindTexImage", not_here),
	ROW("ReleaseTexImage", not_here),
	ROW("SurfaceAttrib", not_here),
	ROW("SwapInterval", not_here),
	ROW("CreatePbufferFromClientBuffer", not_here),
	ROW("ReleaseThread", not_here),
	ROW("WaitClient", not_here),
};
/* clang-format on */

static void *get_function(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) != 0)
			continue;
		return (void *)(uintptr_t)functions[i].function; /* NOLINT(performance-no-int-to-ptr) */
	}
	return NULL;
}

static EGLBoolean supports(EGLenum api)
{
	return api == EGL_OPENGL_ES_API || api == EGL_OPENGL_API;
}

static const char *vendor_string(int name)
{
	return name == __EGL_VENDOR_STRING_PLATFORM_EXTENSIONS ? "EGL_EXT_platform_device EGL_MESA_platform_surfaceless"
							       : NULL;
}

/* Called by applications: finds the vendor to which a device belongs, which need not be us. */
static const char *dispatch_device_string(EGLDeviceEXT device, EGLint name)
{
	__EGLvendorInfo *vendor;
	const char *(*function)(EGLDeviceEXT device, EGLint name);

	glvnd->threadInit();
	vendor = glvnd->getVendorFromDevice(device);
	if (!vendor) {
		glvnd->setEGLError(EGL_BAD_DEVICE_EXT);
		return NULL;
	}
	(void)glvnd->setLastVendor(vendor);
	function = (const char *(*)(EGLDeviceEXT, EGLint))glvnd->fetchDispatchEntry(vendor, device_string_index);
	return function ? function(device, name) : NULL;
}

static void *get_dispatch(const char *name)
{
	if (strcmp(name, "eglQueryDeviceStringEXT") != 0)
		return NULL;
	return (void *)(uintptr_t)dispatch_device_string; /* NOLINT(performance-no-int-to-ptr): glvnd's interface */
}

static void set_index(const char *name, int index)
{
	if (strcmp(name, "eglQueryDeviceStringEXT") == 0)
		device_string_index = index;
}

API EGLBoolean __egl_Main(uint32_t version, const __EGLapiExports *exports, __EGLvendorInfo *vendor,
			  __EGLapiImports *imports)
{
	glvnd = exports;
	(void)vendor;
	if (EGL_VENDOR_ABI_GET_MAJOR_VERSION(version) != EGL_VENDOR_ABI_MAJOR_VERSION)
		return EGL_FALSE;
	imports->getPlatformDisplay = get_platform_display;
	imports->getSupportsAPI = supports;
	imports->getVendorString = vendor_string;
	imports->getProcAddress = get_function;
	imports->getDispatchAddress = get_dispatch;
	imports->setDispatchIndex = set_index;
	return EGL_TRUE;
}
