/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform: determines what kind of host this is. A library exists if the loader would find it: in
 * a usual directory, or through the loader's cache. Knows nothing of modes.
 */
#include "host/platform.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"
#include "formats/procfs.h"
#include "host/catalog.h"
#include "host/lookup.h"

#define CACHE_FILE    "/etc/ld.so.cache"
#define CACHE_MAX     ((size_t)32 << 20)
#define RELEASE_FILE  "/etc/nv_tegra_release"
#define FAMILY_FILE   "/sys/devices/soc0/family"
#define FAMILY        "tegra"
#define GPUS          "/proc/driver/nvidia/gpus"
#define FACT_FILE_MAX ((size_t)64 << 10)
#define GPUS_MAX      256
#define WSL_DIRECTORY "/usr/lib/wsl/lib"
#define ABI_MASK      0xff00u
#define ARENA_MAX     ((size_t)96 << 20) /* the largest cache, and its records */

struct detection {
	const struct graft_root *root;
	struct graft_arena *arena;
	struct graft_lookup lookup;
};

static bool is_file(struct detection *d, const char *path)
{
	const char *resolved;
	struct stat st;

	return path && graft_lookup_path(&d->lookup, path, &resolved, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_in_directories(struct detection *d, const char *soname)
{
	if (is_file(d, graft_arena_printf(d->arena, WSL_DIRECTORY "/%s", soname)))
		return true;
	for (size_t i = 0; i < graft_n_catalog_library_directories; i++) {
		const struct graft_catalog_directory *directory = &graft_catalog_library_directories[i];

		if ((directory->bits == 0 || directory->bits == 64) &&
		    is_file(d, graft_arena_printf(d->arena, "%s/%s", directory->path, soname)))
			return true;
	}
	return false;
}

static bool is_in_cache(struct detection *d, const char *soname)
{
	struct graft_ldcache cache = { .n_records = 0 };
	const char *bytes;
	size_t length;

	if (graft_root_read(d->root, CACHE_FILE, CACHE_MAX, d->arena, &bytes, &length) < 0 ||
	    graft_ldcache_read(bytes, length, CACHE_FILE, d->arena, &cache, NULL) < 0)
		return false;
	for (size_t i = 0; i < cache.n_records; i++) {
		const struct graft_ldcache_record *record = &cache.records[i];

		if ((record->flags & ABI_MASK) == (graft_abi_flags_native() & ABI_MASK) &&
		    strcmp(record->soname, soname) == 0 && is_file(d, record->path))
			return true;
	}
	return false;
}

/*
 * DirectX core is useless without the node of its kernel side; where the node exists, the cache is
 * worth reading.
 */
static bool has_dxcore(struct detection *d)
{
	struct stat st;

	if (is_in_directories(d, "libdxcore.so"))
		return true;
	return graft_root_stat(d->root, "/dev/dxg", &st) == 0 && is_in_cache(d, "libdxcore.so");
}

static bool has_platform_nvml(struct detection *d)
{
	return is_in_directories(d, "libnvidia-ml.so.1") || is_in_cache(d, "libnvidia-ml.so.1");
}

bool graft_platform_has_tegra_files(const struct graft_root *root, const struct graft_root *host,
				    struct graft_arena *arena)
{
	const char *family;
	struct stat st;
	size_t length;

	if (graft_root_stat(root, RELEASE_FILE, &st) == 0 && !S_ISDIR(st.st_mode))
		return true;
	if (graft_root_read(root, FAMILY_FILE, FACT_FILE_MAX, arena, &family, &length) < 0 &&
	    (!host || graft_root_read(host, FAMILY_FILE, FACT_FILE_MAX, arena, &family, &length) < 0))
		return false;
	return strncasecmp(family, FAMILY, strlen(FAMILY)) == 0;
}

bool graft_platform_is_integrated(const char *model)
{
	return model && (strstr(model, "(nvgpu)") || strstr(model, "NVIDIA Thor"));
}

static bool is_integrated(const struct detection *d, const char *name)
{
	const char *path = graft_arena_printf(d->arena, GPUS "/%s/information", name);
	struct graft_key_value *items;
	const char *text;
	size_t length, n;

	return path && graft_root_read(d->root, path, FACT_FILE_MAX, d->arena, &text, &length) == 0 &&
	       graft_procfs_key_values(text, length, d->arena, &items, &n) == 0 &&
	       graft_platform_is_integrated(graft_key_value_find(items, n, "Model"));
}

/*
 * Counts the GPUs that the kernel driver lists, and determines whether one of them is integrated.
 */
static size_t read_gpus(const struct detection *d, bool *ret_integrated)
{
	const char **names;
	size_t n;

	*ret_integrated = false;
	if (graft_root_list(d->root, GPUS, GPUS_MAX, d->arena, &names, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n && !*ret_integrated; i++)
		*ret_integrated = is_integrated(d, names[i]);
	return n;
}

/*
 * QUIRK: the driver of older systems on chip (nvgpu) lists nothing in procfs; only NVML would know
 * the name there. A board whose procfs lists a GPU has a card, and is an ordinary host unless one
 * of the models indicates otherwise.
 */
static bool has_integrated_gpu(const struct detection *d, bool tegra_files)
{
	bool integrated;
	size_t n = read_gpus(d, &integrated);

	return integrated || (tegra_files && n == 0);
}

struct graft_platform_facts graft_platform_detect(const struct graft_root *root, const char *machine)
{
	struct graft_platform_facts facts = { .nvml = false };
	struct detection d = { .root = root, .arena = graft_arena_new(ARENA_MAX) };
	bool all = !machine, may_be_board;

	if (!d.arena)
		return facts;
	graft_lookup_init(&d.lookup, root, d.arena);
	facts.tegra_files = graft_platform_has_tegra_files(d.root, NULL, d.arena);
	may_be_board = facts.tegra_files || all || strcmp(machine, "x86_64") != 0;
	facts.integrated_gpu = may_be_board && has_integrated_gpu(&d, facts.tegra_files);
	facts.nvml = (all || facts.tegra_files) && has_platform_nvml(&d);
	facts.dxcore = (all || facts.tegra_files || facts.integrated_gpu) && has_dxcore(&d);
	graft_lookup_done(&d.lookup);
	(void)graft_arena_free(d.arena);
	return facts;
}

struct graft_platform_facts graft_platform_of_host(void)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct utsname names;

	if (graft_root_open(&root, "/", NULL) < 0)
		return (struct graft_platform_facts){ .nvml = false };
	return graft_platform_detect(&root, uname(&names) == 0 ? names.machine : "unknown");
}

bool graft_platform_is_wsl(void)
{
	struct stat st;

	return stat("/dev/dxg", &st) == 0;
}
