/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_child: what runs between fork and exit. First everything that the driver's code could misuse is given up, then
 * the library is loaded, asked, and its answers are written down. Every function of the library is looked up by itself:
 * a driver that lacks one still answers the rest (BASELINE NVML of driver 340).
 */
#include "host/nvml.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/sys.h"
#include "host/discover.h"

#define ANSWER_ARENA_MAX        ((size_t)4 << 20)
#define OPEN_FILES_MAX          1024
#define NVML_NOT_SUPPORTED      3
#define NVML_NOT_FOUND          6
#define NVML_FUNCTION_NOT_FOUND 13
#define NVML_VERSION_SIZE       80
#define NVML_UUID_SIZE          96
#define NVML_NAME_SIZE          96

#define NVML_ADDRESSING_VERSION 0x1000008u /* the first version of struct nvml_addressing */

typedef void *nvml_device;

struct nvml_addressing {
	unsigned int version, value;
};

/* Long enough for every version of the call; the first members are the same in all. */
struct nvml_pci_info {
	char bus_id_legacy[16];
	unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
	char rest[128];
};

struct child {
	const struct graft_nvml_question *question;
	struct graft_nvml_snapshot snapshot;
	struct graft_arena *arena;
	int out_fd;
	void *library;
};

/*
 * A function of the library by its newest name that is there. The prototypes below are those of NVML's public
 * documentation; POSIX makes the conversion from void * work.
 */
static void find(struct child *child, const char *const *names, size_t n, void *ret_function)
{
	void *symbol = NULL;

	for (size_t i = 0; i < n && !symbol; i++)
		symbol = dlsym(child->library, names[i]);
	memcpy(ret_function, &symbol, sizeof(symbol));
}

#define FIND(child, function, ...)                                       \
	do {                                                             \
		const char *const names_[] = { __VA_ARGS__ };            \
		find((child), names_, GRAFT_COUNT(names_), &(function)); \
	} while (0)

_Noreturn static void finish(struct child *child)
{
	struct graft_buffer out = { 0 };
	size_t done = 0;

	graft_record_write(&graft_nvml_snapshot_record, &child->snapshot, &out);
	while (!graft_buffer_failed(&out) && done < out.length) {
		ssize_t n = write(child->out_fd, out.bytes + done, out.length - done);

		if (n <= 0 && errno != EINTR)
			_exit(2);
		done += n > 0 ? (size_t)n : 0;
	}
	/* nvmlShutdown() is not called: the kernel closes what the library opened, and sooner. */
	_exit(graft_buffer_failed(&out) ? 2 : 0);
}

_Noreturn static void fail(struct child *child, const char *what, int sys)
{
	child->snapshot.failure = what;
	child->snapshot.sys = (uint32_t)sys;
	finish(child);
}

__attribute__((format(printf, 2, 3))) static void note(struct child *child, const char *format, ...)
{
	char text[GRAFT_NVML_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)graft_arena_push_string(child->arena, &child->snapshot.notes, &child->snapshot.n_notes, text);
}

/* Nothing of the parent's stays open but the pipe; 0 to 2 become /dev/null so that nothing else lands there. */
static void close_descriptors(struct child *child)
{
	int null_fd;

	/* The pipe moves out of the way of 0 to 2 first. */
	child->out_fd = fcntl(child->out_fd, F_DUPFD_CLOEXEC, 3);
	if (child->out_fd < 0)
		_exit(2);
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++) {
		if (null_fd < 0)
			(void)close(fd);
		else if (null_fd != fd)
			(void)dup3(null_fd, fd, O_CLOEXEC);
	}
	if (child->out_fd > 3)
		(void)graft_close_range(3, (unsigned int)child->out_fd - 1, 0);
	if (graft_close_range((unsigned int)child->out_fd + 1, ~0u, 0) == 0)
		return;
	/* BASELINE 5.9: no close_range. All our descriptors are low, and a container engine's are not thousands. */
	for (int fd = 3; fd < 4096; fd++) {
		if (fd != child->out_fd)
			(void)close(fd);
	}
}

/*
 * SPEC 4.3: NVML must bind to the C runtime that is already here, not to that of the driver root. libdl and libgcc_s are what it
 * needs beyond that.
 */
static void enter_root(struct child *child)
{
	static const char *const runtime[] = { "libm.so.6", "librt.so.1", "libpthread.so.0", "libdl.so.2",
					       "libgcc_s.so.1" };

	if (strcmp(child->question->root, "/") == 0)
		return;
	for (size_t i = 0; i < GRAFT_COUNT(runtime); i++) {
		if (!dlopen(runtime[i], RTLD_NOW))
			note(child, "%s is not here", runtime[i]);
	}
	if (chdir(child->question->root) < 0 || chroot(".") < 0 || chdir("/") < 0)
		fail(child, "change root failed", errno);
}

/* The caller's effective set may be narrow (base/caps.h); what is permitted is needed for a moment, and then gone for good. */
static void raise_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &header, sets) < 0)
		return;
	for (size_t i = 0; i < GRAFT_COUNT(sets); i++)
		sets[i].effective = sets[i].permitted;
	(void)syscall(SYS_capset, &header, sets);
}

static void drop_identity(struct child *child)
{
	uid_t uid = child->question->uid;
	gid_t gid = child->question->gid;

	/* Supplementary groups stay when the group does: an unprivileged caller may need its own, and may not change them. */
	if (gid != getegid() && setgroups(1, &gid) < 0)
		fail(child, "privilege change failed", errno);
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		fail(child, "privilege change failed", errno);
}

static void drop_capabilities(struct child *child)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail(child, "privilege change failed", errno);
	if (syscall(SYS_capset, &header, none) < 0)
		fail(child, "capability change failed", errno);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* The program we are part of may catch what the driver's code dies of; its handlers are not for here. */
static void reset_signals(void)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &by_default, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void limit_resources(void)
{
	static const struct {
		__rlimit_resource_t resource;
		rlim_t limit;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_FSIZE, 0 }, /* it has no file to write; a pipe is none */
		{ RLIMIT_NOFILE, OPEN_FILES_MAX },
	};
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	(void)sigaction(SIGXFSZ, &ignore, NULL);
	for (size_t i = 0; i < GRAFT_COUNT(limits); i++) {
		struct rlimit limit;

		if (getrlimit(limits[i].resource, &limit) < 0 || limit.rlim_max < limits[i].limit)
			continue;
		limit.rlim_cur = limit.rlim_max = limits[i].limit;
		(void)setrlimit(limits[i].resource, &limit);
	}
}

static void lower(char *text)
{
	for (; *text != '\0'; text++)
		*text = (char)tolower((unsigned char)*text);
}

/* The reason behind the last colon in lower case, the first line alone: as all messages of the stack (SPEC 2.3). */
static const char *load_failure(struct child *child, const char *reason)
{
	char text[GRAFT_NVML_TEXT_MAX];
	char *colon;

	(void)snprintf(text, sizeof(text), "load library failed: %s", reason ? reason : "unknown error");
	text[strcspn(text, "\n")] = '\0';
	colon = strrchr(text, ':');
	if (colon)
		lower(colon);
	return graft_arena_strdup(child->arena, text);
}

static const char *nvml_text(struct child *child, int code)
{
	/* For libraries without nvmlErrorString: what it says for the codes that people meet. */
	static const struct {
		int code;
		const char *text;
	} known[] = {
		{ 4, "insufficient permissions" },
		{ 9, "driver not loaded" },
		{ 12, "nvml shared library not found" },
		{ 13, "function not found" },
		{ 15, "gpu is lost" },
		{ 18, "driver/library version mismatch" },
	};
	const char *(*error_string)(int) = NULL;
	char text[GRAFT_NVML_TEXT_MAX];

	FIND(child, error_string, "nvmlErrorString");
	(void)snprintf(text, sizeof(text), "error %d", code);
	for (size_t i = 0; i < GRAFT_COUNT(known); i++) {
		if (known[i].code == code)
			(void)snprintf(text, sizeof(text), "%s", known[i].text);
	}
	if (error_string && error_string(code))
		(void)snprintf(text, sizeof(text), "%s", error_string(code));
	lower(text);
	return graft_arena_strdup(child->arena, text);
}

_Noreturn static void fail_nvml(struct child *child, int code)
{
	child->snapshot.code = (uint32_t)code;
	fail(child, graft_arena_printf(child->arena, "nvml error: %s", nvml_text(child, code)), 0);
}

static void load(struct child *child)
{
	int (*init)(void) = NULL;
	int rc;

	child->library = dlopen(child->question->library, RTLD_NOW);
	if (!child->library) {
		child->snapshot.no_library = true;
		fail(child, load_failure(child, dlerror()), 0);
	}
	if (child->question->cuda)
		return;
	FIND(child, init, "nvmlInit_v2", "nvmlInit");
	rc = init ? init() : NVML_FUNCTION_NOT_FOUND;
	if (rc != 0)
		fail_nvml(child, rc);
}

/* The same from libcuda. Of it cuDriverGetVersion() wakes no GPU; the architecture needs the first one. */
static void ask_cuda(struct child *child)
{
	int (*driver_version)(int *) = NULL, (*init)(unsigned int) = NULL;
	int (*capability)(int *, int *, int) = NULL;
	struct graft_nvml_gpu *gpu;
	int version = 0, major = 0, minor = 0;

	FIND(child, driver_version, "cuDriverGetVersion");
	if (driver_version && driver_version(&version) == 0 && version > 0)
		child->snapshot.cuda_version = (uint32_t)version;
	FIND(child, init, "cuInit");
	FIND(child, capability, "cuDeviceComputeCapability");
	if (!(child->question->facts & GRAFT_NVML_ARCH) || !init || !capability || init(0) != 0 ||
	    capability(&major, &minor, 0) != 0 || major < 0 || minor < 0)
		return;
	gpu = graft_arena_push(child->arena, &child->snapshot.gpus, &child->snapshot.n_gpus, sizeof(*gpu));
	if (!gpu)
		return;
	gpu->has_arch = true;
	gpu->arch_major = (uint32_t)major;
	gpu->arch_minor = (uint32_t)minor;
}

static void ask_system(struct child *child)
{
	int (*driver_version)(char *, unsigned int) = NULL;
	int (*cuda_version)(int *) = NULL;
	char text[NVML_VERSION_SIZE] = "";
	int version = 0;

	FIND(child, driver_version, "nvmlSystemGetDriverVersion");
	if (driver_version && driver_version(text, sizeof(text) - 1) == 0)
		child->snapshot.driver_version = graft_arena_strdup(child->arena, text);
	FIND(child, cuda_version, "nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2");
	if ((child->question->facts & GRAFT_NVML_CUDA) && cuda_version && cuda_version(&version) == 0 && version > 0)
		child->snapshot.cuda_version = (uint32_t)version;
}

/* A text that one of NVML's functions gives; NULL when it does not. */
static const char *ask_text(struct child *child, const char *symbol, nvml_device device, size_t size)
{
	int (*function)(nvml_device, char *, unsigned int) = NULL;
	char text[GRAFT_NVML_TEXT_MAX] = "";

	FIND(child, function, symbol);
	if (!function || function(device, text, (unsigned int)size) != 0)
		return NULL;
	text[size] = '\0';
	return text[0] == '\0' ? NULL : graft_arena_strdup(child->arena, text);
}

static void ask_place(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*pci_info)(nvml_device, struct nvml_pci_info *) = NULL;
	int (*minor_number)(nvml_device, unsigned int *) = NULL;
	struct nvml_pci_info pci = { .domain = 0 };

	FIND(child, pci_info, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo");
	if (pci_info && pci_info(device, &pci) == 0)
		gpu->bus_id = graft_arena_printf(child->arena, "%08x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	FIND(child, minor_number, "nvmlDeviceGetMinorNumber");
	gpu->has_minor = minor_number && minor_number(device, &gpu->minor) == 0;
}

static void ask_kind(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*get_brand)(nvml_device, unsigned int *) = NULL;
	int (*capability)(nvml_device, int *, int *) = NULL;
	int major = 0, minor = 0;

	if (child->question->facts & GRAFT_NVML_BRAND) {
		FIND(child, get_brand, "nvmlDeviceGetBrand");
		gpu->has_brand = get_brand && get_brand(device, &gpu->brand) == 0;
	}
	if (child->question->facts & GRAFT_NVML_ARCH) {
		FIND(child, capability, "nvmlDeviceGetCudaComputeCapability");
		gpu->has_arch = capability && capability(device, &major, &minor) == 0 && major >= 0 && minor >= 0;
		gpu->arch_major = gpu->has_arch ? (uint32_t)major : 0;
		gpu->arch_minor = gpu->has_arch ? (uint32_t)minor : 0;
	}
}

static void ask_instance(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*instance_id)(nvml_device, unsigned int *) = NULL;
	struct graft_nvml_mig *mig;
	unsigned int gi, ci;

	FIND(child, instance_id, "nvmlDeviceGetGpuInstanceId");
	if (!instance_id || instance_id(device, &gi) != 0)
		return;
	FIND(child, instance_id, "nvmlDeviceGetComputeInstanceId");
	if (!instance_id || instance_id(device, &ci) != 0)
		return;
	mig = graft_arena_push(child->arena, &gpu->migs, &gpu->n_migs, sizeof(*mig));
	if (!mig)
		return;
	mig->gi = gi;
	mig->ci = ci;
	mig->uuid = ask_text(child, "nvmlDeviceGetUUID", device, NVML_UUID_SIZE);
	mig->name = ask_text(child, "nvmlDeviceGetName", device, NVML_NAME_SIZE);
}

static void ask_mig(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*mode)(nvml_device, unsigned int *, unsigned int *) = NULL;
	int (*max_count)(nvml_device, unsigned int *) = NULL;
	int (*by_index)(nvml_device, unsigned int, nvml_device *) = NULL;
	unsigned int current = 0, pending = 0, max = 0;
	int rc;

	FIND(child, mode, "nvmlDeviceGetMigMode");
	rc = mode ? mode(device, &current, &pending) : NVML_FUNCTION_NOT_FOUND;
	if (rc != 0 && rc != NVML_FUNCTION_NOT_FOUND && rc != NVML_NOT_SUPPORTED)
		note(child, "the MIG mode of GPU %u is not told: %s", gpu->index, nvml_text(child, rc));
	gpu->mig_capable = rc == 0;
	gpu->mig_enabled = rc == 0 && current == 1;
	FIND(child, max_count, "nvmlDeviceGetMaxMigDeviceCount");
	FIND(child, by_index, "nvmlDeviceGetMigDeviceHandleByIndex");
	if (!gpu->mig_enabled || !max_count || !by_index || max_count(device, &max) != 0)
		return;
	for (unsigned int i = 0; i < max && i < GRAFT_NVML_MIGS_MAX; i++) {
		nvml_device instance = NULL;

		rc = by_index(device, i, &instance);
		if (rc == 0)
			ask_instance(child, instance, gpu);
		else if (rc == NVML_NOT_FOUND)
			return;
	}
}

/* A GPU that has no such mode, and a driver that knows of none, say so by an error: that is an answer, too. */
static void ask_addressing(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*get_mode)(nvml_device, struct nvml_addressing *) = NULL;
	struct nvml_addressing mode = { .version = NVML_ADDRESSING_VERSION };
	int rc;

	FIND(child, get_mode, "nvmlDeviceGetAddressingMode");
	rc = get_mode ? get_mode(device, &mode) : NVML_FUNCTION_NOT_FOUND;
	gpu->has_addressing = rc == 0 || rc == NVML_FUNCTION_NOT_FOUND || rc == NVML_NOT_SUPPORTED;
	gpu->addressing = rc == 0 ? mode.value : 0;
	if (!gpu->has_addressing)
		note(child, "the addressing mode of GPU %u is not told: %s", gpu->index, nvml_text(child, rc));
}

static void ask_gpu(struct child *child, unsigned int index, nvml_device device)
{
	struct graft_nvml_gpu *gpu;

	gpu = graft_arena_push(child->arena, &child->snapshot.gpus, &child->snapshot.n_gpus, sizeof(*gpu));
	if (!gpu)
		return;
	gpu->index = index;
	ask_place(child, device, gpu);
	if (child->question->facts & GRAFT_NVML_UUID)
		gpu->uuid = ask_text(child, "nvmlDeviceGetUUID", device, NVML_UUID_SIZE);
	if (child->question->facts & GRAFT_NVML_MODEL)
		gpu->model = ask_text(child, "nvmlDeviceGetName", device, NVML_NAME_SIZE);
	ask_kind(child, device, gpu);
	if (child->question->facts & GRAFT_NVML_ADDRESSING)
		ask_addressing(child, device, gpu);
	if (child->question->facts & GRAFT_NVML_MIG)
		ask_mig(child, device, gpu);
}

static void ask_gpus(struct child *child)
{
	const unsigned int per_gpu = ~(unsigned int)GRAFT_NVML_CUDA;
	int (*get_count)(unsigned int *) = NULL;
	int (*by_index)(unsigned int, nvml_device *) = NULL;
	unsigned int count = 0;
	int rc;

	if (!(child->question->facts & per_gpu))
		return;
	FIND(child, get_count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
	FIND(child, by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
	rc = get_count && by_index ? get_count(&count) : NVML_FUNCTION_NOT_FOUND;
	if (rc != 0)
		fail_nvml(child, rc);
	for (unsigned int i = 0; i < count && i < GRAFT_NVML_GPUS_MAX; i++) {
		nvml_device device = NULL;

		rc = by_index(i, &device);
		if (rc == 0)
			ask_gpu(child, i, device);
		else
			note(child, "GPU %u does not answer: %s", i, nvml_text(child, rc));
	}
}

_Noreturn void graft_nvml_child(const struct graft_nvml_question *question, pid_t parent, int out_fd)
{
	struct child child = { .question = question, .out_fd = out_fd };

	(void)prctl(PR_SET_NAME, "graft:[nvml]", 0, 0, 0);
	child.arena = graft_arena_new(ANSWER_ARENA_MAX);
	if (!child.arena)
		_exit(2);
	close_descriptors(&child);
	reset_signals();
	limit_resources();
	raise_capabilities();
	enter_root(&child);
	drop_identity(&child);
	/* QUIRK: a change of identity clears the death signal, so it is set behind it, and the parent looked at again. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(2);
	drop_capabilities(&child);
	load(&child);
	if (child.question->cuda) {
		ask_cuda(&child);
	} else {
		ask_system(&child);
		ask_gpus(&child);
	}
	finish(&child);
}
