/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_child: what runs between fork and exit. It first gives up everything that the driver's code
 * could misuse, then loads the library, asks it, and writes the answers. Each function of the
 * library is looked up separately, so a driver that lacks one still answers the rest (BASELINE NVML
 * of driver 340).
 */
#include "host/nvml.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/caps.h"
#include "base/cleanup.h"
#include "base/sys.h"
#include "host/discover.h"
#include "host/nvml_watch.h"

#define ANSWER_ARENA_MAX        ((size_t)4 << 20)
#define OPEN_FILES_MAX          1024
#define NVML_INVALID_ARGUMENT   2
#define NVML_NOT_SUPPORTED      3
#define NVML_NOT_FOUND          6
#define NVML_FUNCTION_NOT_FOUND 13
#define NVML_VERSION_SIZE       80
#define NVML_UUID_SIZE          96
#define NVML_NAME_SIZE          96
#define NVML_LINKS_MAX          64

#define NVML_ADDRESSING_VERSION 0x1000008u /* the first version of struct nvml_addressing */
#define NVML_FABRIC_VERSION     0x2000024u /* the second version of struct nvml_fabric */
#define NVML_FABRIC_NOT_STARTED 1
#define NVML_FABRIC_IN_PROGRESS 2
#define NVML_FABRIC_COMPLETED   3 /* the GPU has joined its domain */

typedef void *nvml_device;

struct nvml_addressing {
	unsigned int version, value;
};

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_attributes {
	unsigned int multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
	unsigned int gi_slices, ci_slices;
	unsigned long long memory_mib;
};

struct nvml_fabric {
	unsigned int version;
	unsigned char cluster[16];
	unsigned int status, clique;
	unsigned char state;
	unsigned int health;
};

/* Large enough for every version of the call; the first members are the same in all. */
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
 * Finds a function of the library by the first of its names that exists, newest first. The
 * prototypes below are those of NVML's public documentation; POSIX permits the conversion from void
 * *.
 */
static void find_nvml_function(struct child *child, const char *const *names, size_t n, void *ret_function)
{
	void *symbol = NULL;

	for (size_t i = 0; i < n && !symbol; i++)
		symbol = dlsym(child->library, names[i]);
	memcpy(ret_function, &symbol, sizeof(symbol));
}

#define FIND(child, function, ...)                                                     \
	do {                                                                           \
		const char *const names_[] = { __VA_ARGS__ };                          \
		find_nvml_function((child), names_, GRAFT_COUNT(names_), &(function)); \
	} while (0)

_Noreturn static void finish_nvml_child(struct child *child)
{
	struct graft_buffer out = { 0 };
	size_t done = 0;

	if (child->question->watched)
		graft_nvml_events_fail(child->out_fd, child->snapshot.failure);
	graft_record_write(&graft_nvml_snapshot_record, &child->snapshot, &out);
	while (!graft_buffer_failed(&out) && done < out.length) {
		ssize_t n = write(child->out_fd, out.bytes + done, out.length - done);

		if (n <= 0 && errno != EINTR)
			_exit(2);
		done += n > 0 ? (size_t)n : 0;
	}
	/* nvmlShutdown() is not called: the kernel closes what the library opened, and faster. */
	_exit(graft_buffer_failed(&out) ? 2 : 0);
}

_Noreturn static void fail_nvml_child(struct child *child, const char *what, int sys)
{
	child->snapshot.failure = what;
	child->snapshot.sys = (uint32_t)sys;
	finish_nvml_child(child);
}

__attribute__((format(printf, 4, 5))) static void note(struct child *child, const char ***list, size_t *n,
						       const char *format, ...)
{
	char text[GRAFT_NVML_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)graft_arena_push_string(child->arena, list, n, text);
}

#define note_nvml_trouble(child, ...) note(child, &(child)->snapshot.notes, &(child)->snapshot.n_notes, __VA_ARGS__)
/* Marks the answer as one that may change, and says why. */
#define note_unsettled(child, ...) \
	note(child, &(child)->snapshot.unsettled, &(child)->snapshot.n_unsettled, __VA_ARGS__)

/* Leaves only the pipe open. 0 to 2 become /dev/null, so that nothing else gets these numbers. */
static void close_descriptors(struct child *child)
{
	int null_fd;

	/* First move the pipe out of the range 0 to 2. */
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
	/*
	 * BASELINE 5.9: no close_range. Our descriptors are low, and a container engine does not
	 * have thousands.
	 */
	for (int fd = 3; fd < 4096; fd++) {
		if (fd != child->out_fd)
			(void)close(fd);
	}
}

/*
 * SPEC libnvidia-container 4.3: NVML must bind to the C runtime that is already loaded, not to the
 * one in the driver root. It also needs libdl and libgcc_s.
 */
static void enter_nvml_root(struct child *child)
{
	static const char *const runtime[] = { "libm.so.6", "librt.so.1", "libpthread.so.0", "libdl.so.2",
					       "libgcc_s.so.1" };

	if (strcmp(child->question->root, "/") == 0)
		return;
	for (size_t i = 0; i < GRAFT_COUNT(runtime); i++) {
		if (!dlopen(runtime[i], RTLD_NOW))
			note_nvml_trouble(child, "%s is missing in the driver root", runtime[i]);
	}
	if (chdir(child->question->root) < 0 || chroot(".") < 0 || chdir("/") < 0)
		fail_nvml_child(child, "change root failed", errno);
}

/*
 * Takes the step that exists for this child (base/caps.h), whatever the caller has: changing root
 * and ids needs no more. Afterwards everything is dropped for good.
 */
static void enter_nvml_step(void)
{
	struct graft_caps_sets sets;

	if (graft_caps_read(&sets) < 0)
		return;
	sets.effective = sets.permitted & graft_caps_step_set(GRAFT_CAPS_INIT_STEP);
	sets.inheritable = 0;
	(void)graft_caps_write(&sets);
}

static void drop_identity(struct child *child)
{
	uid_t uid = child->question->uid;
	gid_t gid = child->question->gid;

	/*
	 * SECURITY: drop supplementary groups whenever permitted, whatever the group: root's own
	 * (disk, shadow) can open files that this code has no business with. If it is not permitted
	 * (EPERM: no CAP_SETGID, or a user namespace that denies it), the caller is an ordinary
	 * user that keeps its group as well, and may need the other groups for the device nodes.
	 */
	if (setgroups(0, NULL) < 0 && (errno != EPERM || gid != getegid()))
		fail_nvml_child(child, "privilege change failed", errno);
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		fail_nvml_child(child, "privilege change failed", errno);
}

static void drop_capabilities(struct child *child)
{
	const struct graft_caps_sets none = { .effective = 0 };

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail_nvml_child(child, "privilege change failed", errno);
	if (graft_caps_write(&none) < 0)
		fail_nvml_child(child, "capability change failed", errno);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/*
 * The calling program may have handlers for signals that the driver's code dies of; they must not
 * run here. SIGHUP, by which a daemon reads its configuration again, may be sent to all processes
 * of one command line, which this one shares. When a terminal hangs up, the parent ends, and this
 * process with it.
 */
static void reset_signals(void)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL }, ignore = { .sa_handler = SIG_IGN };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, number == SIGHUP ? &ignore : &by_default, NULL);
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
		{ RLIMIT_FSIZE, 0 }, /* it has no file to write; a pipe is not limited */
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

/*
 * Formats the reason: the first line only, in lower case after the last colon, like all messages of
 * the stack (SPEC libnvidia-container 2.3).
 */
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
	/* For libraries without nvmlErrorString: its texts for the common codes. */
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
	fail_nvml_child(child, graft_arena_printf(child->arena, "nvml error: %s", nvml_text(child, code)), 0);
}

static void load_nvml(struct child *child)
{
	int (*init)(void) = NULL;
	int rc;

	child->library = dlopen(child->question->library, RTLD_NOW);
	if (!child->library) {
		child->snapshot.no_library = true;
		fail_nvml_child(child, load_failure(child, dlerror()), 0);
	}
	if (child->question->cuda)
		return;
	FIND(child, init, "nvmlInit_v2", "nvmlInit");
	rc = init ? init() : NVML_FUNCTION_NOT_FOUND;
	if (rc != 0)
		fail_nvml(child, rc);
}

/* MiB that fit: a number beyond that is not an amount of memory. */
static uint32_t to_mib(unsigned long long bytes)
{
	return bytes >> 20 <= UINT32_MAX ? (uint32_t)(bytes >> 20) : 0;
}

static void ask_cuda_size(struct child *child, struct graft_nvml_gpu *gpu)
{
	int (*get_name)(char *, int, int) = NULL, (*total)(size_t *, int) = NULL;
	char name[NVML_NAME_SIZE + 1] = "";
	size_t bytes = 0;

	FIND(child, get_name, "cuDeviceGetName");
	if (get_name && get_name(name, NVML_NAME_SIZE, 0) == 0 && name[0] != '\0')
		gpu->model = graft_arena_strdup(child->arena, name);
	FIND(child, total, "cuDeviceTotalMem_v2");
	gpu->memory_mib = total && total(&bytes, 0) == 0 ? to_mib(bytes) : 0;
	gpu->has_memory = gpu->memory_mib > 0;
}

/*
 * Asks libcuda for the same facts. cuDriverGetVersion() wakes no GPU; the architecture needs the
 * first GPU.
 */
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
	if (!(child->question->facts & (GRAFT_NVML_ARCH | GRAFT_NVML_SIZE)) || !init || !capability || init(0) != 0 ||
	    capability(&major, &minor, 0) != 0 || major < 0 || minor < 0)
		return;
	gpu = graft_arena_push(child->arena, &child->snapshot.gpus, &child->snapshot.n_gpus, sizeof(*gpu));
	if (!gpu)
		return;
	gpu->has_arch = true;
	gpu->arch_major = (uint32_t)major;
	gpu->arch_minor = (uint32_t)minor;
	if (child->question->facts & GRAFT_NVML_SIZE)
		ask_cuda_size(child, gpu);
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

/* Returns a text from one of NVML's functions, or NULL if the function is missing or fails. */
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

static void ask_mig_size(struct child *child, nvml_device device, struct graft_nvml_mig *mig)
{
	int (*get_attributes)(nvml_device, struct nvml_attributes *) = NULL;
	struct nvml_attributes attributes = { .multiprocessors = 0 };

	FIND(child, get_attributes, "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes");
	if (!get_attributes || get_attributes(device, &attributes) != 0 || attributes.memory_mib > UINT32_MAX)
		return;
	mig->has_size = true;
	mig->memory_mib = (uint32_t)attributes.memory_mib;
	mig->multiprocessors = attributes.multiprocessors;
	mig->gi_slices = attributes.gi_slices;
	mig->ci_slices = attributes.ci_slices;
	mig->copy_engines = attributes.copy_engines;
	mig->decoders = attributes.decoders;
	mig->encoders = attributes.encoders;
	mig->jpeg_engines = attributes.jpeg_engines;
	mig->ofa_engines = attributes.ofa_engines;
}

static void ask_memory(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*get_memory)(nvml_device, struct nvml_memory *) = NULL;
	struct nvml_memory memory = { .total = 0 };

	FIND(child, get_memory, "nvmlDeviceGetMemoryInfo");
	gpu->memory_mib = get_memory && get_memory(device, &memory) == 0 ? to_mib(memory.total) : 0;
	gpu->has_memory = gpu->memory_mib > 0;
}

/* Only a GPU that has joined an NVLink domain has a clique; its cluster is not all zeros then. */
static void ask_fabric(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*get_fabric)(nvml_device, struct nvml_fabric *) = NULL;
	struct nvml_fabric fabric = { .version = NVML_FABRIC_VERSION };
	const unsigned char *id = fabric.cluster;
	char text[2 * sizeof(fabric.cluster) + 1];
	unsigned char any = 0;

	FIND(child, get_fabric, "nvmlDeviceGetGpuFabricInfoV");
	if (!get_fabric || get_fabric(device, &fabric) != 0)
		return;
	if (fabric.state == NVML_FABRIC_NOT_STARTED || fabric.state == NVML_FABRIC_IN_PROGRESS)
		note_unsettled(child, "GPU %u has not joined its NVLink fabric", gpu->index);
	if (fabric.state != NVML_FABRIC_COMPLETED || fabric.status != 0)
		return;
	for (size_t i = 0; i < sizeof(fabric.cluster); i++) {
		(void)snprintf(text + 2 * i, 3, "%02x", id[i]);
		any |= id[i];
	}
	if (any != 0)
		gpu->clique = graft_arena_printf(child->arena, "%.8s-%.4s-%.4s-%.4s-%.12s.%u", text, text + 8,
						 text + 12, text + 16, text + 20, fabric.clique);
}

static void count_link(struct child *child, struct graft_nvml_gpu *gpu, const struct nvml_pci_info *other)
{
	const char *bus_id = graft_arena_printf(child->arena, "%08x:%02x:%02x.0", other->domain, other->bus,
						other->device);
	struct graft_nvml_link *found;

	for (size_t i = 0; bus_id && i < gpu->n_links; i++) {
		if (strcmp(gpu->links[i].bus_id, bus_id) == 0) {
			gpu->links[i].count++;
			return;
		}
	}
	found = bus_id ? graft_arena_push(child->arena, &gpu->links, &gpu->n_links, sizeof(*found)) : NULL;
	if (found)
		*found = (struct graft_nvml_link){ .bus_id = bus_id, .count = 1 };
}

/* A link beyond the last one is an invalid argument; a GPU without links supports none of this. */
static void ask_links(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*get_state)(nvml_device, unsigned int, unsigned int *) = NULL;
	int (*get_remote)(nvml_device, unsigned int, struct nvml_pci_info *) = NULL;
	unsigned int n_down = 0;

	FIND(child, get_state, "nvmlDeviceGetNvLinkState");
	FIND(child, get_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo");
	for (unsigned int i = 0; get_state && get_remote && i < NVML_LINKS_MAX; i++) {
		struct nvml_pci_info other = { .domain = 0 };
		unsigned int active = 0;
		int rc = get_state(device, i, &active);

		if (rc == NVML_INVALID_ARGUMENT || rc == NVML_NOT_SUPPORTED)
			break;
		if (rc == 0 && active == 1 && get_remote(device, i, &other) == 0)
			count_link(child, gpu, &other);
		else
			n_down++;
	}
	if (n_down > 0)
		note_unsettled(child, "GPU %u has %u NVLinks that are not up", gpu->index, n_down);
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
	if (child->question->facts & GRAFT_NVML_SIZE)
		ask_mig_size(child, device, mig);
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
	if (rc != 0 && rc != NVML_FUNCTION_NOT_FOUND && rc != NVML_NOT_SUPPORTED) {
		note_nvml_trouble(child, "the MIG mode of GPU %u is unknown: %s", gpu->index, nvml_text(child, rc));
		note_unsettled(child, "the MIG mode of GPU %u is unknown", gpu->index);
	}
	if (rc == 0 && current != pending)
		note_unsettled(child, "GPU %u is about to switch its MIG mode", gpu->index);
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

/*
 * A GPU without this mode, and a driver that does not know it, return an error; that is an answer,
 * too.
 */
static void ask_addressing(struct child *child, nvml_device device, struct graft_nvml_gpu *gpu)
{
	int (*get_mode)(nvml_device, struct nvml_addressing *) = NULL;
	struct nvml_addressing mode = { .version = NVML_ADDRESSING_VERSION };
	int rc;

	FIND(child, get_mode, "nvmlDeviceGetAddressingMode");
	rc = get_mode ? get_mode(device, &mode) : NVML_FUNCTION_NOT_FOUND;
	gpu->has_addressing = rc == 0 || rc == NVML_FUNCTION_NOT_FOUND || rc == NVML_NOT_SUPPORTED;
	gpu->addressing = rc == 0 ? mode.value : 0;
	if (gpu->has_addressing)
		return;
	note_nvml_trouble(child, "the addressing mode of GPU %u is unknown: %s", gpu->index, nvml_text(child, rc));
	note_unsettled(child, "the addressing mode of GPU %u is unknown", gpu->index);
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
	if (child->question->facts & GRAFT_NVML_SIZE)
		ask_memory(child, device, gpu);
	if (child->question->facts & GRAFT_NVML_FABRIC)
		ask_fabric(child, device, gpu);
	if (child->question->facts & GRAFT_NVML_LINKS)
		ask_links(child, device, gpu);
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
			note_nvml_trouble(child, "GPU %u does not answer: %s", i, nvml_text(child, rc));
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
	enter_nvml_step();
	enter_nvml_root(&child);
	drop_identity(&child);
	/*
	 * QUIRK: changing identity clears the death signal, so set it afterwards and check the
	 * parent again.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(2);
	drop_capabilities(&child);
	load_nvml(&child);
	if (child.question->watched)
		graft_nvml_events(child.question, child.library, child.out_fd);
	if (child.question->cuda) {
		ask_cuda(&child);
	} else {
		ask_system(&child);
		ask_gpus(&child);
	}
	finish_nvml_child(&child);
}
