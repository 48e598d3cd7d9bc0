/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_libraries: judges the driver's side in user space: libraries, their versions, the loader's
 * cache, and the results of the management library.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "doctor/judge_state.h"

#define SLOW_MS 2000u
#define NVML_SO "libnvidia-ml.so.1"

/* --- presence --- */

static bool knows_nvml_library(const struct graft_judge *judge)
{
	return judge->health->inventory.nvml_library || graft_health_find_library_file(judge->health, NVML_SO);
}

/* No container needs nvidia-smi, so its absence only explains a message. */
static void judge_tools(struct graft_judge *judge)
{
	const struct graft_inventory *inventory = &judge->health->inventory;

	for (size_t i = 0; i < inventory->n_binaries; i++) {
		if (strcmp(inventory->binaries[i].name, "nvidia-smi") == 0)
			return;
	}
	graft_judge_add(judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_OK, "nvidia-smi",
			"is not installed on this host, so containers do not get it")
	    ->remedy = "Install it (Debian: nvidia-smi; Ubuntu: nvidia-utils; RHEL: nvidia-driver-cuda).";
}

static void judge_library_presence(struct graft_judge *judge)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	const char *module = graft_judge_module_version(judge);

	if (!knows_nvml_library(judge) && judge->health->loader.other_root) {
		graft_judge_add(
		    judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_BROKEN, NVML_SO,
		    "load library failed: the driver is in a container, whose root is %s, and %s does not name "
		    "that root",
		    judge->health->loader.other_root,
		    judge->health->config.file ? judge->health->config.file : "config.toml")
		    ->remedy = graft_judge_text(
		    judge, "Run 'nvidia-ctk config --in-place --set nvidia-container-cli.root=%s'.",
		    judge->health->loader.other_root);
		return;
	}
	/* Jetsons before JetPack 6 have no NVML. */
	if (!knows_nvml_library(judge) && inventory->platform != GRAFT_PLATFORM_TEGRA) {
		graft_judge_add(
		    judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_BROKEN, NVML_SO,
		    "load library failed: not found, neither in the loader's cache nor where drivers are installed")
		    ->remedy = module ? graft_judge_text(judge,
							 "Install the libraries of driver %s (Debian: libnvidia-ml1 "
							 "and libcuda1; Ubuntu: libnvidia-compute and nvidia-utils; "
							 "RHEL: nvidia-driver-cuda).",
							 module)
				      : "Install the NVIDIA driver; see kernel-module.";
		return;
	}
	if (!graft_health_find_library_file(judge->health, GRAFT_CUDA_SONAME)) {
		graft_judge_add(judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_BROKEN, GRAFT_CUDA_SONAME,
				"is not installed: nvidia-smi works in containers, CUDA does not")
		    ->remedy = GRAFT_REMEDY_CUDA;
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_LEVEL_OK,
			graft_health_find_library_file(judge->health, GRAFT_CUDA_SONAME), "is installed%s",
			knows_nvml_library(judge) ? ", and so is NVML" : "");
	judge_tools(judge);
}

/* --- versions --- */

/* Finds the first library whose version differs from NVML's. */
static const struct graft_health_library *find_stranger(const struct graft_judge *judge, const char *version)
{
	const struct graft_health_loader *loader = &judge->health->loader;

	for (size_t i = 0; i < loader->n_libraries; i++) {
		if (loader->libraries[i].version && strcmp(loader->libraries[i].version, version) != 0)
			return &loader->libraries[i];
	}
	return NULL;
}

static void judge_library_versions(struct graft_judge *judge)
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
		    "driver was upgraded while the old module stayed loaded",
		    module, library)
		    ->remedy =
		    "Reboot. Or end all programs that use GPUs, then run 'modprobe -r nvidia_drm nvidia_modeset "
		    "nvidia_uvm nvidia && modprobe nvidia'.";
	else if (stranger)
		graft_judge_add(judge, GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_LEVEL_BROKEN, stranger->soname,
				"has version %s, and NVML has %s: parts of two drivers are installed",
				stranger->version, library)
		    ->remedy = graft_judge_text(
		    judge,
		    "Remove the driver that %s belongs to ('dpkg -S' or 'rpm -qf' names its package; without one "
		    "it came from a .run file), then run 'ldconfig'.",
		    stranger->file ? stranger->file : stranger->soname);
	else
		graft_judge_add(judge, GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_LEVEL_OK, library,
				module ? "is the version of the libraries and the kernel module"
				       : "is the version of the libraries");
}

/* --- the loader's cache --- */

/*
 * NixOS has no directories that all programs search: each program that needs the driver looks there
 * itself.
 */
static bool is_without_cache(const char *path)
{
	return graft_starts_with(path, "/run/opengl-driver") || graft_starts_with(path, "/nix/store/");
}

/* Finds a library that is installed and not in the cache. */
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
				"is stale: it names %s, which does not exist", vanished->cached)
		    ->remedy = "Run 'ldconfig'.";
	else if (uncached)
		graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_WARNING, loader->cache,
				"does not have %s, which is at %s: programs on this host do not find it",
				uncached->soname, uncached->file)
		    ->remedy = "Write that directory into a file below /etc/ld.so.conf.d, then run 'ldconfig'.";
	else
		graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_OK, loader->cache, "%s",
				knows_nvml_library(judge) ? "has the driver's libraries" : "is readable");
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
		if (knows_nvml_library(judge))
			graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_OK, loader->cache,
					"does not exist, and is not needed: the libraries were found without it");
		else
			graft_judge_add(judge, GRAFT_CHECK_LOADER_CACHE, GRAFT_LEVEL_WARNING, loader->cache,
					"does not exist: libraries outside the usual directories are not found")
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

/* --- NVML --- */

/*
 * Cause and remedy of each way in which NVML can fail. A failure that another check explains refers
 * to it.
 */
static const struct {
	const char *status, *cause, *remedy;
} failures[] = {
	{ "NO_DRIVER", "reports that the driver is not loaded",
	  "See kernel-module and device-nodes; if both are ok, run 'nvidia-smi' as root, which creates missing "
	  "nodes." },
	{ "MISMATCH", "reports that kernel module and library have different versions",
	  "Reboot; library-versions has both versions." },
	{ "PERMISSION", "cannot open the device nodes", "See device-modes and selinux." },
	{ "NO_LIBRARY", "cannot be loaded", "Install the driver's libraries again; 'nvidia-smi' says more." },
	{ "TIMEOUT", "does not answer in time",
	  "See 'dmesg | grep -iE \"nvrm|xid\"'. Run the doctor with a longer --timeout to learn whether the driver is "
	  "only slow." },
	{ "NO_MEMORY", "does not have enough memory", "Free some memory, or raise the limit of the calling service." },
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
	graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_BROKEN, "NVML", "fails: %s", problem)->remedy =
	    strcasestr(problem, strerror(ENOSPC))
		? "Free some space; see disk-space."
		: "Run 'nvidia-smi', and see 'dmesg | grep -iE \"nvrm|xid\"': the driver itself has a problem.";
}

/* Returns the bus id of the first GPU that the kernel lists and NVML does not. */
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

static bool lacks_node(const struct graft_judge *judge)
{
	for (size_t i = 0; i < judge->health->n_nodes; i++) {
		if (judge->health->nodes[i].required && !judge->health->nodes[i].device)
			return true;
	}
	return false;
}

static void judge_nvml(struct graft_judge *judge)
{
	const struct graft_health_nvml *nvml = &judge->health->nvml;
	size_t n = graft_judge_count_gpus(judge);

	if (!nvml->asked || !nvml->status) {
		if (knows_nvml_library(judge))
			graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_UNKNOWN, "NVML", "was not asked");
		return;
	}
	if (strcmp(nvml->status, "OK") != 0) {
		judge_failure(judge);
		return;
	}
	if (nvml->n_gpus < n && lacks_node(judge))
		graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_BROKEN, "NVML",
				"lists %u of %zu GPUs, because device nodes are missing", nvml->n_gpus, n)
		    ->remedy = "See device-nodes.";
	else if (nvml->n_gpus < n)
		graft_judge_add(judge, GRAFT_CHECK_NVML, GRAFT_LEVEL_BROKEN, "NVML",
				"lists %u of %zu GPUs: %s has failed", nvml->n_gpus, n, find_failed(judge))
		    ->remedy = GRAFT_REMEDY_FAILED_GPU;
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
		graft_judge_add(
		    judge, GRAFT_CHECK_START_TIME, timed_out ? GRAFT_LEVEL_BROKEN : GRAFT_LEVEL_WARNING, "driver",
		    "%s after %s: unless a program keeps the GPUs initialised, every start initialises them "
		    "again, and other toolkits give up after 10 s (driver rpc error: timed out)",
		    timed_out ? "had not answered" : "answered", time)
		    ->remedy = "Run 'systemctl enable --now nvidia-persistenced', or 'nvidia-smi -pm 1'.";
	else if (strcmp(nvml->status, "OK") == 0)
		graft_judge_add(judge, GRAFT_CHECK_START_TIME, GRAFT_LEVEL_OK, "driver", "answers in %s", time);
}

void graft_judge_libraries(struct graft_judge *judge)
{
	judge_library_presence(judge);
	judge_library_versions(judge);
	if (judge->health->loader.cache)
		judge_cache(judge);
	judge_nvml(judge);
	judge_start_time(judge);
}
