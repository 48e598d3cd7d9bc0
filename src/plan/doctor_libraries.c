/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_libraries: judges the driver's side in user space: libraries, their versions, the loader's cache, and what the management library itself says. */
#include <string.h>
#include <strings.h>

#include "plan/doctor_judge.h"

#define SLOW_MS 2000u
#define NVML_SO "libnvidia-ml.so.1"
#define CUDA_SO "libcuda.so.1"

static const struct graft_health_library *find_library(const struct graft_judge *judge, const char *soname)
{
	const struct graft_health_loader *loader = &judge->health->loader;

	for (size_t i = 0; i < loader->n_libraries; i++) {
		if (strcmp(loader->libraries[i].soname, soname) == 0)
			return &loader->libraries[i];
	}
	return NULL;
}

static const char *find_file(const struct graft_judge *judge, const char *soname)
{
	const struct graft_health_library *library = find_library(judge, soname);

	return library ? library->file : NULL;
}

/* --- there --- */

static bool has_nvml(const struct graft_judge *judge)
{
	return judge->health->inventory.nvml_library || find_file(judge, NVML_SO);
}

static void judge_presence(struct graft_judge *judge)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	const char *module = graft_judge_module_version(judge);

	if (!has_nvml(judge) && judge->health->loader.other_root) {
		graft_judge_add(
		    judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_BROKEN, NVML_SO,
		    "load library failed: the driver is in a container, whose root is at %s, and %s does not "
		    "say so",
		    judge->health->loader.other_root,
		    judge->health->config.file ? judge->health->config.file : "config.toml")
		    ->remedy = graft_judge_text(
		    judge, "Run 'nvidia-ctk config --in-place --set nvidia-container-cli.root=%s'.",
		    judge->health->loader.other_root);
		return;
	}
	/* Jetsons before JetPack 6 have no NVML. */
	if (!has_nvml(judge) && inventory->platform != GRAFT_PLATFORM_TEGRA) {
		graft_judge_add(
		    judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_BROKEN, NVML_SO,
		    "load library failed: %s is neither in the loader's cache nor where drivers are installed", NVML_SO)
		    ->remedy = module ? graft_judge_text(judge,
							 "Install the libraries of driver %s (Debian, Ubuntu: "
							 "nvidia-utils and libnvidia-compute; RHEL, SUSE: "
							 "nvidia-driver-cuda-libs or nvidia-compute).",
							 module)
				      : "Install the NVIDIA driver.";
		return;
	}
	if (!find_file(judge, CUDA_SO)) {
		graft_judge_add(judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_BROKEN, CUDA_SO,
				"is not installed: nvidia-smi works in containers, CUDA does not")
		    ->remedy = "Install the compute libraries of the driver (Debian, Ubuntu: libnvidia-compute; RHEL: "
			       "nvidia-driver-cuda-libs).";
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_OK, find_file(judge, CUDA_SO), "is there%s",
			has_nvml(judge) ? ", as is NVML" : "");
}

/* --- versions --- */

/* The first library that is not of NVML's version. */
static const struct graft_health_library *find_stranger(const struct graft_judge *judge, const char *version)
{
	const struct graft_health_loader *loader = &judge->health->loader;

	for (size_t i = 0; i < loader->n_libraries; i++) {
		if (loader->libraries[i].version && strcmp(loader->libraries[i].version, version) != 0)
			return &loader->libraries[i];
	}
	return NULL;
}

static void judge_versions(struct graft_judge *judge)
{
	const char *module = graft_judge_module_version(judge);
	const char *library = judge->health->inventory.library_version.value;
	const struct graft_health_library *stranger = library ? find_stranger(judge, library) : NULL;

	if (!graft_judge_is_native(judge) || !library)
		return;
	if (module && graft_judge_has_kernel_driver(judge) && strcmp(module, library) != 0)
		graft_judge_add(
		    judge, GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_LEVEL_BROKEN, NVML_SO,
		    "driver/library version mismatch: the loaded kernel module is %s, the libraries are %s: the "
		    "driver was upgraded while the old module was loaded",
		    module, library)
		    ->remedy = "Reboot. Or end all programs that use GPUs, then 'modprobe -r nvidia_drm nvidia_modeset "
			       "nvidia_uvm nvidia && modprobe nvidia'.";
	else if (stranger)
		graft_judge_add(judge, GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_LEVEL_BROKEN, stranger->soname,
				"is %s, NVML is %s: parts of two drivers are installed", stranger->version, library)
		    ->remedy = graft_judge_text(
		    judge,
		    "Remove the driver that %s belongs to ('dpkg -S' or 'rpm -qf' names the "
		    "package; none: it came with a .run file), then 'ldconfig'.",
		    stranger->file ? stranger->file : stranger->soname);
	else
		graft_judge_add(judge, GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_LEVEL_OK, library,
				module ? "libraries and kernel module" : "libraries");
}

/* --- the loader's cache --- */

/* NixOS has no directories that all programs search: each that wants the driver looks there by itself. */
static bool is_without_cache(const char *path)
{
	return strncmp(path, "/run/opengl-driver", strlen("/run/opengl-driver")) == 0 ||
	       strncmp(path, "/nix/store/", strlen("/nix/store/")) == 0;
}

/* A library that is installed, and that the cache does not have. */
static const struct graft_health_library *find_uncached(const struct graft_health_loader *loader)
{
	for (size_t i = 0; i < loader->n_libraries; i++) {
		const struct graft_health_library *library = &loader->libraries[i];

		if (library->file && !library->cached && !is_without_cache(library->file))
			return &loader->libraries[i];
	}
	return NULL;
}

static const struct graft_health_library *find_vanished(const struct graft_health_loader *loader)
{
	for (size_t i = 0; i < loader->n_libraries; i++) {
		if (loader->libraries[i].cached && !loader->libraries[i].file)
			return &loader->libraries[i];
	}
	return NULL;
}

static void judge_good_cache(struct graft_judge *judge)
{
	const struct graft_health_loader *loader = &judge->health->loader;
	const struct graft_health_library *uncached = find_uncached(loader), *vanished = find_vanished(loader);

	if (vanished)
		graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_WARNING, loader->cache,
				"is stale: it names %s, which is not there", vanished->cached)
		    ->remedy = "Run 'ldconfig'.";
	else if (uncached)
		graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_WARNING, loader->cache,
				"does not know %s, which is at %s: programs of this host do not find it",
				uncached->soname, uncached->file)
		    ->remedy = "Name that directory in a file below /etc/ld.so.conf.d, then run 'ldconfig'.";
	else
		graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_OK, loader->cache, "%s",
				has_nvml(judge) ? "knows the driver's libraries" : "can be read");
}

static void judge_cache(struct graft_judge *judge)
{
	const struct graft_health_loader *loader = &judge->health->loader;
	const char *problem = loader->problem ? loader->problem : "";

	switch (loader->state) {
	case GRAFT_CACHE_GOOD:
		judge_good_cache(judge);
		break;
	case GRAFT_CACHE_MISSING:
		if (has_nvml(judge))
			graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_OK, loader->cache,
					"is not there, and is not needed: the libraries were found without it");
		else
			graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_WARNING, loader->cache,
					"is not there: libraries outside of the usual directories are not found")
			    ->remedy = "Run 'ldconfig'.";
		break;
	case GRAFT_CACHE_UNREADABLE:
		graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_WARNING, loader->cache,
				"cannot be read: %s", problem)
		    ->remedy = graft_judge_text(judge, "Run 'ldconfig && chmod 0644 %s'.", loader->cache);
		break;
	case GRAFT_CACHE_DAMAGED:
		graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_BROKEN, loader->cache, "is damaged: %s",
				problem)
		    ->remedy = "Run 'ldconfig'.";
		break;
	}
}

/* --- NVML's own word --- */

/* What follows from each way in which it can fail. A failure that another check explains refers to it. */
static const struct {
	const char *status, *cause, *remedy;
} failures[] = {
	{ "NO_DRIVER", "it says that the driver is not loaded",
	  "Load it with 'modprobe nvidia'; if it is loaded, see device-nodes: /dev/nvidiactl may be missing." },
	{ "MISMATCH", "it says that module and library are of different versions", "Reboot, see library-versions." },
	{ "PERMISSION", "it may not open the device nodes", "See device-modes, and selinux." },
	{ "NO_LIBRARY", "it cannot be loaded",
	  "Install the driver's libraries anew; see the message of 'nvidia-smi'." },
	{ "TIMEOUT", "it does not answer in time",
	  "See persistence and 'dmesg | grep -iE \"nvrm|xid\"'; raise the limit with --timeout to see whether it is "
	  "only "
	  "slow." },
};

static void judge_failure(struct graft_judge *judge)
{
	const struct graft_health_nvml *nvml = &judge->health->nvml;
	const char *problem = nvml->problem ? nvml->problem : "unknown failure";

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (strcmp(nvml->status, failures[i].status) == 0) {
			graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_BROKEN, "NVML", "%s: %s",
					failures[i].cause, problem)
			    ->remedy = failures[i].remedy;
			return;
		}
	}
	graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_BROKEN, "NVML", "it fails: %s", problem)->remedy =
	    "Run 'nvidia-smi', and see 'dmesg | grep -iE \"nvrm|xid\"': the driver itself reports a problem.";
}

/* The bus id of the first GPU that the kernel's side has and NVML does not. */
static const char *find_failed(const struct graft_judge *judge)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	const struct graft_health_nvml *nvml = &judge->health->nvml;

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const char *bus_id = inventory->gpus[i].excluded ? NULL : inventory->gpus[i].bus_id;
		bool listed = !bus_id;

		for (size_t k = 0; k < nvml->n_bus_ids && !listed; k++)
			listed = strcasecmp(nvml->bus_ids[k], bus_id) == 0;
		if (!listed)
			return bus_id;
	}
	return "another";
}

static void judge_nvml(struct graft_judge *judge)
{
	const struct graft_health_nvml *nvml = &judge->health->nvml;
	size_t n = graft_judge_count_gpus(judge);

	if (!nvml->asked || !nvml->status) {
		if (has_nvml(judge))
			graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_UNKNOWN, "NVML", "it was not asked");
		return;
	}
	if (strcmp(nvml->status, "OK") != 0) {
		judge_failure(judge);
		return;
	}
	if (nvml->n_gpus < n)
		graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_BROKEN, "NVML",
				"it lists %u of %zu GPUs: %s has failed", nvml->n_gpus, n, find_failed(judge))
		    ->remedy = "See 'dmesg | grep -iE \"nvrm|xid\"'; then switch the host off and on.";
	else
		graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_OK, "NVML", "lists %u GPU%s%s", nvml->n_gpus,
				nvml->n_gpus == 1 ? "" : "s",
				nvml->n_migs > 0 ? graft_judge_text(judge, " and %u MIG devices", nvml->n_migs) : "");
}

static void judge_start_time(struct graft_judge *judge)
{
	const struct graft_health_nvml *nvml = &judge->health->nvml;
	bool timed_out = nvml->status && strcmp(nvml->status, "TIMEOUT") == 0;
	unsigned long long ms = nvml->took_ms;
	const char *time = ms < 1000 ? graft_judge_text(judge, "%llu ms", ms)
				     : graft_judge_text(judge, "%llu.%llu s", ms / 1000, ms % 1000 / 100);

	if (!nvml->asked || !nvml->status)
		return;
	if (timed_out || nvml->took_ms >= SLOW_MS)
		graft_judge_add(judge, GRAFT_CHECK_START_TIME, timed_out ? GRAFT_LEVEL_BROKEN : GRAFT_LEVEL_WARNING,
				"driver",
				"it %s after %s: without persistence every start initialises all GPUs anew, and other "
				"stacks give up after 10 s (driver rpc error: timed out)",
				timed_out ? "had not answered" : "answered", time)
		    ->remedy = "Run 'systemctl enable --now nvidia-persistenced', or 'nvidia-smi -pm 1'.";
	else if (strcmp(nvml->status, "OK") == 0)
		graft_judge_add(judge, GRAFT_CHECK_START_TIME, GRAFT_LEVEL_OK, "driver", "answers in %s", time);
}

void graft_judge_libraries(struct graft_judge *judge)
{
	judge_presence(judge);
	judge_versions(judge);
	if (judge->health->loader.cache)
		judge_cache(judge);
	judge_nvml(judge);
	judge_start_time(judge);
}
