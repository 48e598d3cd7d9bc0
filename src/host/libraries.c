/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libraries: finds the driver's libraries by the rules of SPEC libnvidia-container 6.3 to 6.5. The
 * loader's cache names the candidates; if it is unusable or does not know the driver, the driver's
 * own file list and the loader's directories do. A candidate that cannot be used is omitted with a
 * reason and never stops the search.
 *
 * Reads no more than necessary: a library's own bytes are read for the TLS note, for GL libraries
 * without vendor dispatch, and for the SONAME of libraries that no cache names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/loader/ldsoconf.h"
#include "host/library_search.h"
#include "host/survey.h"

#define SUFFIX              ".so"
#define ABI_MASK            0xff00u
#define WSL_LIBRARIES       "/wsl/lib/"
#define DIRECTORIES_MAX     256
#define FILE_NAME_MAX       256
#define TEGRA_LIBRARIES_MAX 256
#define SONAME_VERSION_MAX  4 /* libnvidia-nvvm70.so.4 */

static bool row_applies(const struct graft_survey *survey, const struct graft_catalog_library *row)
{
	switch (row->class_) {
	case GRAFT_CLASS_GLVND:
		return !survey->options->no_glvnd;
	case GRAFT_CLASS_NO_GLVND:
		return survey->options->no_glvnd;
	case GRAFT_CLASS_WSL:
		return survey->inventory->platform == GRAFT_PLATFORM_WSL2;
	case GRAFT_CLASS_UTILITY:
	case GRAFT_CLASS_COMPUTE:
	case GRAFT_CLASS_NGX:
	case GRAFT_CLASS_VIDEO:
	case GRAFT_CLASS_GRAPHICS:
	case GRAFT_CLASS_OTHER:
	case GRAFT_CLASS_MAX:
		break;
	}
	return true;
}

static void slot_init(struct search *search, struct slot *slot, const struct graft_catalog_library *row, bool applies)
{
	struct graft_survey *survey = search->survey;
	bool needed = survey->needs & (search->bits == 64 ? GRAFT_NEED_LIBRARIES : GRAFT_NEED_LIBRARIES32);

	slot->row = row;
	slot->prefix_length = strlen(row->prefix);
	slot->wanted = needed && applies && row_applies(survey, row) && graft_survey_wants(survey, row->class_);
	slot->looked_up = slot->wanted || (search->bits == 64 && slot == search->nvml);
	search->first_letters[(unsigned char)row->prefix[3]] |= slot->looked_up;
}

/* The rows keep their order: of two with the same prefix, the first applies. */
static void index_slots(struct search *search)
{
	for (size_t i = search->n_slots; i-- > 0;) {
		struct slot **bucket = &search->buckets[search->slots[i].prefix_length % GRAFT_LIBRARY_BUCKETS];

		search->slots[i].next = *bucket;
		*bucket = &search->slots[i];
	}
}

static int search_init(struct search *search, struct graft_survey *survey, unsigned int bits)
{
	size_t n = graft_n_catalog_libraries, n_further = graft_n_catalog_further_libraries;

	*search = (struct search){ .survey = survey, .n_slots = n + n_further, .bits = bits };
	search->abi_flags = bits == 64 ? graft_abi_flags_native() : graft_abi_flags_compat32();
	search->wants_others = graft_library_wants_others(survey);
	search->slots = graft_arena_list(survey->scratch, search->n_slots, sizeof(*search->slots));
	if (!search->slots)
		return -1;
	search->nvml = &search->slots[0];
	for (size_t i = 0; i < n; i++)
		slot_init(search, &search->slots[i], &graft_catalog_libraries[i], true);
	for (size_t i = 0; i < n_further; i++) {
		const struct graft_catalog_further_library *further = &graft_catalog_further_libraries[i];

		slot_init(search, &search->slots[n + i], &further->row, (survey->needs & further->needs) != 0);
		search->slots[n + i].any_version = further->any_version;
	}
	index_slots(search);
	for (size_t i = 0; bits == 64 && (survey->needs & GRAFT_NEED_LIBRARIES) && i < graft_n_catalog_refusals; i++)
		search->refused_letters[(unsigned char)graft_catalog_refusals[i].name[3]] = true;
	return 0;
}

size_t graft_library_prefix_length(const char *name)
{
	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
		if (strncmp(dot, SUFFIX, strlen(SUFFIX)) == 0)
			return (size_t)(dot - name) + strlen(SUFFIX);
	}
	return 0;
}

/* Returns the first row for a name; with `looked_up`, only among rows that are looked up. */
static struct slot *find_library_row(const struct search *search, const char *name, bool looked_up)
{
	size_t length = graft_library_prefix_length(name);
	struct slot *slot = search->buckets[length % GRAFT_LIBRARY_BUCKETS];

	while (slot && ((looked_up && !slot->looked_up) || slot->prefix_length != length ||
			memcmp(slot->row->prefix, name, length) != 0))
		slot = slot->next;
	return slot;
}

bool graft_library_is_known(const struct search *search, const char *name)
{
	return find_library_row(search, name, false) != NULL;
}

bool graft_library_has_version(const char *name, const char *version)
{
	size_t length = strlen(name), version_length = strlen(version);

	return length > version_length && name[length - version_length - 1] == '.' &&
	       strcmp(name + length - version_length, version) == 0;
}

int graft_library_read(struct search *search, const char *path, struct graft_elf *ret_elf, struct graft_error *err)
{
	struct graft_survey *survey = search->survey;
	auto_close int fd = graft_root_openat(&survey->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	graft_note_shortage(&survey->shortage, fd);
	if (fd < 0)
		return graft_fail_errno(err, -fd, "open failed: %s", path);
	return graft_elf_read_fd(fd, path, survey->scratch, ret_elf, err);
}

/* SPEC libnvidia-container 6.5 rule 2: exactly this kernel version in the ABI note. */
static bool is_tls_build(const struct graft_elf *elf)
{
	return elf->has_abi_note && elf->abi_kernel[0] == 2 && elf->abi_kernel[1] == 3 && elf->abi_kernel[2] == 99;
}

/*
 * SPEC libnvidia-container 6.5 rule 4: the GL libraries of other vendors and of Mesa have the same
 * names.
 */
static bool needs_nvidia_gl(const struct graft_elf *elf)
{
	static const char *const cores[] = { "libnvidia-glcore.so", "libnvidia-eglcore.so" };

	for (size_t i = 0; i < elf->n_needed; i++) {
		for (size_t j = 0; j < GRAFT_COUNT(cores); j++) {
			if (strncmp(elf->needed[i], cores[j], strlen(cores[j])) == 0)
				return true;
		}
	}
	return false;
}

/*
 * Applies the rules that need the library's own bytes. Returns NULL if it may be taken, else the
 * reason why not.
 */
static const char *judge_bytes(struct search *search, const struct slot *slot, const char *path)
{
	bool is_gl = slot->row->class_ == GRAFT_CLASS_NO_GLVND;
	struct graft_error err;
	struct graft_elf elf;

	if (!slot->row->tls_note && !is_gl)
		return NULL;
	if (graft_library_read(search, path, &elf, &err) < 0)
		return "it cannot be read as a library";
	if (slot->row->tls_note && !is_tls_build(&elf))
		return "its ABI note is not that of the build with thread-local storage";
	if (is_gl && !needs_nvidia_gl(&elf))
		return "it is not NVIDIA's: it needs neither libnvidia-glcore nor libnvidia-eglcore";
	return NULL;
}

/* Returns NULL if the candidate may be taken, else the reason why not. */
static const char *judge_library(struct search *search, const struct slot *slot, const char *path)
{
	const struct graft_inventory *inventory = search->survey->inventory;

	if (inventory->platform == GRAFT_PLATFORM_WSL2)
		return slot->path && strstr(slot->path, WSL_LIBRARIES) ? "one from the WSL directory was found before"
								       : NULL;
	if (inventory->platform == GRAFT_PLATFORM_TEGRA)
		return judge_bytes(search, slot, path);
	if (slot->any_version)
		return NULL;
	if (!inventory->driver_version.value)
		return "the version of the loaded driver is not known";
	if (!graft_library_has_version(graft_path_name(path), inventory->driver_version.value))
		return "its name does not end with the driver's version";
	return judge_bytes(search, slot, path);
}

static void take_library(struct search *search, struct slot *slot, const char *path, const char *soname,
			 const char *source)
{
	const struct graft_log *log = search->survey->log;

	if (slot->path)
		graft_info(log, "selecting %s over %s", path, slot->path);
	else
		graft_info(log, "selecting %s", path);
	slot->path = path;
	slot->soname = soname;
	slot->source = source;
}

static void consider_record(struct search *search, struct slot *slot, const struct graft_ldcache_record *record)
{
	struct graft_survey *survey = search->survey;
	const char *path, *reason;
	struct stat st;
	int rc = graft_lookup_path(&survey->lookup, record->path, &path, &st);

	if (rc < 0) {
		graft_survey_omit(survey, "skipping", record->path, "the loader's cache names it, but: %s",
				  strerror(-rc));
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		graft_survey_omit(survey, "skipping", path, "it is not a regular file");
		return;
	}
	if (slot->path && strcmp(slot->path, path) == 0) {
		/*
		 * Prefer libcuda.so.1, which programs are linked against, to the development link
		 * libcuda.so.
		 */
		if (strlen(record->soname) > strlen(slot->soname))
			slot->soname = record->soname;
		return;
	}
	reason = judge_library(search, slot, path);
	if (!reason) {
		take_library(search, slot, path, record->soname, survey->inventory->ldcache);
		return;
	}
	if (slot == search->nvml && !search->nvml_other)
		search->nvml_other = path;
	graft_survey_omit(survey, "skipping", path, "%s", reason);
}

/* Reports, once, a library that is known and deliberately left out. */
static void note_refusal(struct search *search, const struct graft_ldcache_record *record)
{
	size_t length = graft_library_prefix_length(record->soname);

	if (!search->refused_letters[(unsigned char)record->soname[3]])
		return;
	for (size_t i = 0; length > 0 && i < graft_n_catalog_refusals; i++) {
		const struct graft_catalog_refusal *refusal = &graft_catalog_refusals[i];

		if (strlen(refusal->name) == length && memcmp(refusal->name, record->soname, length) == 0) {
			if (refusal->why)
				graft_survey_omit(search->survey, "leaving out", refusal->name, "%s", refusal->why);
			return;
		}
	}
}

/* Searches the cache in file order: the last distinct path of a row that is acceptable wins. */
static void search_cache(struct search *search, const struct graft_ldcache *cache)
{
	for (size_t i = 0; i < cache->n_records; i++) {
		const struct graft_ldcache_record *record = &cache->records[i];
		struct slot *slot;

		if (!(record->flags & 1u) || (record->flags & ABI_MASK) != (search->abi_flags & ABI_MASK) ||
		    !graft_starts_with(record->soname, "lib") ||
		    (!search->first_letters[(unsigned char)record->soname[3]] && !search->wants_others))
			continue;
		slot = search->first_letters[(unsigned char)record->soname[3]]
			   ? find_library_row(search, record->soname, true)
			   : NULL;
		if (slot)
			consider_record(search, slot, record);
		else if (!graft_library_consider_other(search, record))
			note_refusal(search, record);
	}
}

static bool read_library_cache(struct graft_survey *survey, struct graft_ldcache *ret_cache)
{
	const char *name = survey->inventory->ldcache;
	struct graft_error err;
	char text[512];
	const char *bytes;
	size_t length;
	int rc = graft_root_read(&survey->root, name, GRAFT_SOURCE_CACHE_MAX, survey->scratch, &bytes, &length);

	graft_note_shortage(&survey->shortage, rc);
	if (rc < 0) {
		graft_survey_omit(survey, "skipping", name, "%s", strerror(-rc));
		return false;
	}
	if (graft_ldcache_read(bytes, length, name, survey->scratch, ret_cache, &err) < 0) {
		graft_survey_omit(survey, "skipping", name, "%s", graft_error_text(&err, text, sizeof(text)));
		return false;
	}
	return true;
}

/* Tries one file of a directory for a row that has no library yet. Returns true if it was taken. */
static bool try_file(struct search *search, struct slot *slot, const struct graft_lookup_directory *directory,
		     const char *name, const char *source)
{
	struct graft_survey *survey = search->survey;
	const char *path, *reason;
	struct graft_error err;
	struct graft_elf elf;
	struct stat st;

	if (graft_lookup_file(&survey->lookup, directory, name, &path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (graft_library_read(search, path, &elf, &err) < 0) {
		graft_survey_omit(survey, "skipping", path, "it cannot be read as a library");
		return false;
	}
	/* /usr/lib has the 32-bit libraries of some distributions and the 64-bit ones of others */
	if (elf.abi_flags != search->abi_flags)
		return false;
	reason = judge_library(search, slot, path);
	if (reason) {
		if (slot == search->nvml && !search->nvml_other)
			search->nvml_other = path;
		graft_survey_omit(survey, "skipping", path, "%s", reason);
		return false;
	}
	take_library(search, slot, path,
		     elf.soname ? elf.soname : graft_arena_strdup(survey->scratch, graft_path_name(path)), source);
	return slot->soname != NULL;
}

/* Tries the names that a row's library can have, best first. */
static void try_names(struct search *search, struct slot *slot, const struct graft_lookup_directory *directory,
		      const char *source)
{
	const char *version = search->survey->inventory->driver_version.value;
	char name[FILE_NAME_MAX];

	if (slot->listed && try_file(search, slot, directory, slot->listed, source))
		return;
	if (version) {
		(void)snprintf(name, sizeof(name), "%s.%s", slot->row->prefix, version);
		if (try_file(search, slot, directory, name, GRAFT_LIBRARY_SCAN))
			return;
	}
	for (unsigned int i = 0; slot->any_version && i <= SONAME_VERSION_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%s.%u", slot->row->prefix, i);
		if (try_file(search, slot, directory, name, GRAFT_LIBRARY_SCAN))
			return;
	}
	/*
	 * Libraries without the driver's version in their names: all of WSL2's and Tegra's, and an
	 * NVML of another version.
	 */
	if (search->survey->inventory->platform == GRAFT_PLATFORM_NATIVE && slot != search->nvml)
		return;
	(void)snprintf(name, sizeof(name), "%s.1", slot->row->prefix);
	if (!try_file(search, slot, directory, name, GRAFT_LIBRARY_SCAN))
		(void)try_file(search, slot, directory, slot->row->prefix, GRAFT_LIBRARY_SCAN);
}

static void search_directory(struct search *search, const char *path, const char *source)
{
	struct graft_lookup *lookup = &search->survey->lookup;
	const struct graft_lookup_directory *directory = graft_lookup_directory(lookup, path, strlen(path));

	if (!directory || directory->fd < 0)
		return;
	for (size_t i = 0; i < search->n_slots; i++) {
		struct slot *slot = &search->slots[i];

		if (!slot->looked_up || slot->path || (search->beside && slot->any_version))
			continue;
		try_names(search, slot, directory, source);
		if (!slot->path && slot->row->subdirectory) {
			const char *sub = graft_arena_printf(search->survey->scratch, "%s/%s", path,
							     slot->row->subdirectory);
			const struct graft_lookup_directory *below = sub ? graft_lookup_directory(lookup, sub,
												  strlen(sub))
									 : NULL;

			if (below && below->fd >= 0)
				try_names(search, slot, below, source);
		}
	}
}

/* Notes the names in the driver's own list. Returns the list's path, or NULL if there is none. */
static const char *read_filelist(struct search *search)
{
	struct graft_survey *survey = search->survey;
	const char *version = survey->inventory->driver_version.value;

	for (size_t i = 0; i < graft_n_catalog_data_directories; i++) {
		const char *path = graft_arena_printf(survey->scratch, "%s/%s", graft_catalog_data_directories[i].path,
						      GRAFT_FILELIST_NAME);
		const char *bytes, **names;
		struct graft_error err;
		size_t length, n;
		int rc = path ? graft_root_read(&survey->root, path, GRAFT_SOURCE_FILE_MAX, survey->scratch, &bytes,
						&length)
			      : -ENOMEM;

		graft_note_shortage(&survey->shortage, rc);
		if (rc < 0)
			continue;
		if (graft_filelist_read(bytes, length, survey->arena, &names, &n, &err) < 0) {
			graft_note_shortage(&survey->shortage, -err.sys);
			graft_survey_omit(survey, "skipping", path, "%s", err.msg);
			continue;
		}
		for (size_t j = 0; j < n; j++) {
			struct slot *slot = find_library_row(search, names[j], true);

			if (slot && version && graft_library_has_version(names[j], version))
				slot->listed = names[j];
		}
		return graft_arena_strdup(survey->arena, path);
	}
	return NULL;
}

/* Searches the directories that the caller named. */
static void search_given(struct search *search)
{
	const struct graft_host_options *options = search->survey->options;

	for (size_t i = 0; i < options->n_library_directories; i++) {
		search_directory(search, options->library_directories[i], NULL);
		graft_library_scan_others(search, options->library_directories[i]);
	}
}

/* Searches the directories of the loader's configuration, then the usual ones, each once. */
static void search_directories(struct search *search)
{
	struct graft_survey *survey = search->survey;
	const char *list = read_filelist(search);
	const char **configured = NULL;
	struct graft_error err;
	size_t n = 0;

	if (graft_ldsoconf_read(&survey->root, survey->scratch, &configured, &n, &err) < 0) {
		graft_survey_omit(survey, "skipping", "/etc/ld.so.conf", "%s", err.msg);
		n = 0;
	}
	for (size_t i = 0; i < n && i < DIRECTORIES_MAX; i++) {
		search_directory(search, configured[i], list);
		graft_library_scan_others(search, configured[i]);
	}
	for (size_t i = 0; i < graft_n_catalog_library_directories; i++) {
		const struct graft_catalog_directory *directory = &graft_catalog_library_directories[i];

		if (directory->bits == 0 || directory->bits == search->bits) {
			search_directory(search, directory->path, list);
			graft_library_scan_others(search, directory->path);
		}
	}
}

/*
 * Searches the directories of the libraries that the cache knows, for those that it does not know
 * yet.
 */
static void search_siblings(struct search *search)
{
	const char *done = "";
	size_t done_length = 0;

	search->beside = true;
	for (size_t i = 0; i < search->n_slots; i++) {
		const char *path = search->slots[i].path;
		size_t length = path ? (size_t)(graft_path_name(path) - path) : 0;
		const char *directory;

		if (length <= 1 || (length == done_length && memcmp(path, done, length) == 0))
			continue;
		done = path;
		done_length = length;
		directory = graft_arena_strndup(search->survey->scratch, path, length - 1);
		if (directory)
			search_directory(search, directory, NULL);
	}
}

static void publish_one(struct search *search, struct graft_library **list, size_t *n,
			const struct graft_library *library)
{
	struct graft_survey *survey = search->survey;
	struct graft_library *slot = graft_arena_push(survey->arena, list, n, sizeof(*slot));

	if (!slot)
		return;
	*slot = *library;
	slot->soname = graft_arena_strdup(survey->arena, library->soname);
	slot->abi_flags = search->abi_flags;
	slot->development_link = (survey->needs & GRAFT_NEED_EVERY_LIBRARY) &&
				 graft_library_has_development_link(search, library);
}

static void publish_libraries(struct search *search, struct graft_library **list, size_t *n)
{
	struct graft_survey *survey = search->survey;

	for (size_t i = 0; i < search->n_slots; i++) {
		const struct slot *slot = &search->slots[i];
		const struct graft_library library = {
			.path = slot->path, .soname = slot->soname, .class_ = slot->row->class_, .source = slot->source
		};

		if (!slot->wanted)
			continue;
		if (slot->path)
			publish_one(search, list, n, &library);
		else
			graft_survey_omit(survey, search->bits == 64 ? "missing library" : "missing compat32 library",
					  slot->row->prefix, "no %u-bit library of the driver's version was found",
					  search->bits);
	}
	for (size_t i = 0; i < search->n_others; i++) {
		const struct other *other = &search->others[i];
		const struct graft_library library = { .path = other->path,
						       .soname = other->soname,
						       .class_ = GRAFT_CLASS_OTHER,
						       .source = other->source };

		publish_one(search, list, n, &library);
	}
}

/*
 * Returns "550.54.14" for ".../libnvidia-ml.so.550.54.14", or NULL if the name has no dotted
 * version.
 */
static const char *version_in_name(const char *path)
{
	const char *name = graft_path_name(path);
	size_t length = graft_library_prefix_length(name);
	const char *version = length > 0 && name[length] == '.' ? name + length + 1 : NULL;

	return version && strchr(version, '.') && version[strspn(version, "0123456789.")] == '\0' ? version : NULL;
}

/* Publishes the path and the version of the NVML library. */
static void publish_nvml(struct search *search)
{
	struct graft_survey *survey = search->survey;
	struct graft_inventory *inventory = survey->inventory;
	const char *path = search->nvml->path ? search->nvml->path : search->nvml_other;

	if (!path)
		return;
	inventory->nvml_library = path;
	inventory->library_version.value = graft_arena_strdup(survey->arena, version_in_name(path));
	inventory->library_version.source = inventory->library_version.value ? path : NULL;
}

/*
 * If the module does not report its version, or procfs does not show it, the version of the
 * libraries is the best available.
 */
static void version_from_library(struct search *search, const struct graft_ldcache *cache)
{
	struct graft_survey *survey = search->survey;
	struct graft_inventory *inventory = survey->inventory;

	for (size_t i = 0; i < cache->n_records; i++) {
		const struct graft_ldcache_record *record = &cache->records[i];
		const char *path, *version;
		struct stat st;

		if (record->flags != search->abi_flags || strcmp(record->soname, GRAFT_CATALOG_NVML ".1") != 0 ||
		    graft_lookup_path(&survey->lookup, record->path, &path, &st) < 0)
			continue;
		version = version_in_name(path);
		if (!version)
			continue;
		inventory->driver_version = (struct graft_fact){ version, path };
		graft_survey_bound_cuda(inventory);
		return;
	}
}

/* Finds the record for a soname in the directory of `beside`. Returns its path, or NULL. */
static const char *find_library_beside(struct search *search, const struct graft_ldcache *cache, const char *soname,
				       const char *beside)
{
	struct graft_survey *survey = search->survey;
	size_t directory_length = (size_t)(graft_path_name(beside) - beside);

	for (size_t i = 0; i < cache->n_records; i++) {
		const struct graft_ldcache_record *record = &cache->records[i];
		const char *path;
		struct stat st;

		if (record->flags != search->abi_flags || strcmp(record->soname, soname) != 0 ||
		    graft_lookup_path(&survey->lookup, record->path, &path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if ((size_t)(graft_path_name(path) - path) == directory_length &&
		    memcmp(path, beside, directory_length) == 0)
			return path;
	}
	return NULL;
}

static bool is_published(const struct graft_inventory *inventory, const char *path)
{
	for (size_t i = 0; i < inventory->n_libraries; i++) {
		if (strcmp(inventory->libraries[i].path, path) == 0)
			return true;
	}
	return false;
}

/*
 * Tegra's libraries consist of many small ones whose names change with each release
 * (libnvrm_gpu.so, libnvos.so, ...). A library that a listed one needs, and that is in the same
 * directory, is part of the driver. The list grows while it is traversed.
 */
static void add_tegra_needs(struct search *search, const struct graft_ldcache *cache)
{
	struct graft_inventory *inventory = search->survey->inventory;

	for (size_t i = 0; i < inventory->n_libraries && i < TEGRA_LIBRARIES_MAX; i++) {
		struct graft_library needing = inventory->libraries[i];
		struct graft_error err;
		struct graft_elf elf;

		if (graft_library_read(search, needing.path, &elf, &err) < 0)
			continue;
		for (size_t j = 0; j < elf.n_needed; j++) {
			const char *path = find_library_beside(search, cache, elf.needed[j], needing.path);
			const struct graft_library library = { .path = path,
							       .soname = elf.needed[j],
							       .class_ = needing.class_,
							       .source = inventory->ldcache };

			if (!path || is_published(inventory, path))
				continue;
			publish_one(search, &inventory->libraries, &inventory->n_libraries, &library);
			graft_info(search->survey->log, "selecting %s, which %s needs", path, needing.path);
		}
	}
}

/*
 * `trusted`: the cache knows the driver, so what it lacks is not installed, or was installed very
 * recently.
 */
static void search_further(struct search *search, bool trusted)
{
	if (search->survey->options->n_library_directories > 0)
		search_given(search);
	else if (trusted)
		search_siblings(search);
	else
		search_directories(search);
}

void graft_survey_libraries(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_ldcache cache = { 0 };
	bool usable = survey->options->n_library_directories == 0 && read_library_cache(survey, &cache), trusted;
	struct search search;

	if (search_init(&search, survey, 64) < 0)
		return;
	if (usable && !inventory->driver_version.value)
		version_from_library(&search, &cache);
	search_cache(&search, &cache);
	trusted = search.nvml->path != NULL;
	search_further(&search, trusted);
	publish_nvml(&search);
	publish_libraries(&search, &inventory->libraries, &inventory->n_libraries);
	if (inventory->platform == GRAFT_PLATFORM_TEGRA)
		add_tegra_needs(&search, &cache);

	if (!(survey->needs & GRAFT_NEED_LIBRARIES32) || graft_abi_flags_compat32() == 0)
		return;
	if (search_init(&search, survey, 32) < 0)
		return;
	search_cache(&search, &cache);
	search_further(&search, trusted);
	publish_libraries(&search, &inventory->libraries32, &inventory->n_libraries32);
}
