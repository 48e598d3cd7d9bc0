/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv: resolves the entries of lists to files and nodes that exist. Everything is looked up below
 * the driver root, including links, so that the root of a driver container is not mixed with the
 * host's own files. Nodes are examined without being opened.
 */
#include "host/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/root.h"
#include "base/strings.h"
#include "formats/loader/elf.h"
#include "host/lookup.h"

#define LIST_MAX     ((size_t)4 << 20)
#define RELEASE_FILE "/etc/nv_tegra_release"
#define CHAIN_MAX    40

struct look {
	const struct graft_csv_options *options;
	struct graft_csv_inventory *inventory;
	struct graft_arena *arena;
	struct graft_root root, host;
	const struct graft_root *dev; /* `root`, `host`, or the one from the options */
};

static void omit(struct look *look, const char *what, const char *why)
{
	struct graft_csv_inventory *inventory = look->inventory;
	struct graft_omission *omission = graft_arena_push(look->arena, &inventory->omissions, &inventory->n_omissions,
							   sizeof(*omission));

	graft_warn(look->options->log, "missing %s: %s", what, why);
	if (!omission)
		return;
	omission->what = graft_arena_strdup(look->arena, what);
	omission->why = why;
}

/* --- nodes --- */

static bool look_at_csv_node(const struct look *look, const char *path, struct graft_node *ret_node)
{
	auto_close int fd = graft_root_openat(look->dev, path, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
		return false;
	*ret_node = (struct graft_node){ .path = path, .source = path };
	graft_node_describe(ret_node, &st);
	return true;
}

/* Returns whether a character device exists, and adds it to the list unless it is already there. */
static bool take_node(struct look *look, const char *path, struct graft_node **nodes, size_t *n_nodes)
{
	struct graft_node node, *slot;

	if (!look_at_csv_node(look, path, &node))
		return false;
	for (size_t i = 0; i < *n_nodes; i++) {
		if (strcmp((*nodes)[i].path, path) == 0)
			return true;
	}
	slot = graft_arena_push(look->arena, nodes, n_nodes, sizeof(*slot));
	if (slot)
		*slot = node;
	graft_info(look->options->log, "listing device %s", path);
	return true;
}

/* Nodes that boards with two GPUs have in addition. */
static void find_driver_nodes(struct look *look)
{
	static const char *const names[] = { "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
					     "/dev/nvidiactl", "/dev/nvidia2" };

	for (size_t i = 0; i < GRAFT_COUNT(names); i++)
		(void)take_node(look, names[i], &look->inventory->driver_nodes, &look->inventory->n_driver_nodes);
}

/* SPEC runtime-and-hook 9.2: first below "/", then below /dev, so that bare names work. */
static int find_csv_nodes(struct look *look, const char *pattern)
{
	const char *const prefixes[] = { "", "/dev/" };
	bool found = false;

	for (size_t i = 0; i < GRAFT_COUNT(prefixes) && !found; i++) {
		const char *full = graft_arena_printf(look->arena, "%s%s", prefixes[i], pattern);
		const char **paths = NULL;
		size_t n = 0;
		int rc = full ? graft_pattern_expand(look->dev, full, look->arena, &paths, &n) : -ENOMEM;

		if (rc == -ENOMEM)
			return rc;
		for (size_t j = 0; j < n; j++)
			found = take_node(look, paths[j], &look->inventory->nodes, &look->inventory->n_nodes) || found;
	}
	if (!found)
		omit(look, pattern, "no such device node");
	return 0;
}

/* --- files --- */

static bool has_csv_file(const struct graft_csv_inventory *inventory, const char *target)
{
	for (size_t i = 0; i < inventory->n_files; i++) {
		if (strcmp(inventory->files[i].target, target) == 0)
			return true;
	}
	return false;
}

static void add_csv_link(struct look *look, const char *path, const char *says, bool listed)
{
	struct graft_csv_inventory *inventory = look->inventory;
	struct graft_csv_link *slot;

	for (size_t i = 0; i < inventory->n_links; i++) {
		if (strcmp(inventory->links[i].path, path) == 0)
			return;
	}
	slot = graft_arena_push(look->arena, &inventory->links, &inventory->n_links, sizeof(*slot));
	if (slot)
		*slot = (struct graft_csv_link){ path, graft_arena_strdup(look->arena, says), listed };
}

/*
 * Returns whether ldconfig would consider the name a library: lib?*.so*, with nothing or a dot
 * after ".so".
 */
static bool is_csv_library_name(const char *name)
{
	const char *so = NULL;

	if (!graft_starts_with(name, "lib"))
		return false;
	for (const char *at = name + 4; strlen(name) > 4 && (at = strstr(at, ".so")); at++)
		so = at;
	return so && (so[3] == '\0' || so[3] == '.');
}

/* Reads the SONAME of a library. The caller has checked that it is a regular file. */
static void read_csv_library(struct look *look, struct graft_csv_file *file)
{
	auto_close int fd = graft_root_openat(&look->root, file->source, O_RDONLY | O_NONBLOCK);
	struct graft_elf elf;

	if (fd < 0 || graft_elf_read_fd(fd, file->source, look->arena, &elf, NULL) < 0)
		return;
	file->abi_flags = elf.abi_flags;
	file->soname = elf.soname ? elf.soname : graft_path_name(file->source);
}

/*
 * Binds what `path` resolves to. Directories keep their own path; files are bound at the path where
 * the links end (SPEC runtime-and-hook 9.4).
 */
static bool take_file(struct look *look, const char *path, bool directory)
{
	struct graft_csv_file file = { .directory = directory }, *slot;
	auto_close int fd = -1;
	struct stat st;

	if (graft_root_resolve(&look->root, path, look->arena, &file.source, &fd) < 0 || fstat(fd, &st) < 0 ||
	    (directory ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode)))
		return false;
	file.target = directory ? path : file.source;
	if (has_csv_file(look->inventory, file.target))
		return true;
	if (!directory && is_csv_library_name(graft_path_name(file.source)))
		read_csv_library(look, &file);
	slot = graft_arena_push(look->arena, &look->inventory->files, &look->inventory->n_files, sizeof(*slot));
	if (slot)
		*slot = file;
	graft_info(look->options->log, "listing %s %s", directory ? "directory" : "file", path);
	return true;
}

/* Reads the target of a symlink. Returns false if the path is not one. */
static bool read_csv_link(const struct look *look, const char *path, char *text, size_t size)
{
	auto_close int fd = graft_root_openat(&look->root, path, O_PATH | O_NOFOLLOW);
	ssize_t n = fd >= 0 ? readlinkat(fd, "", text, size - 1) : -1;

	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* Adds every link between the listed path and the file (SPEC runtime-and-hook 9.4). */
static void take_chain(struct look *look, const char *path)
{
	char text[PATH_MAX];

	for (int i = 0; i < CHAIN_MAX && read_csv_link(look, path, text, sizeof(text)); i++) {
		size_t directory = (size_t)(graft_path_name(path) - path);

		add_csv_link(look, path, text, true);
		path = text[0] == '/' ? graft_arena_strdup(look->arena, text)
				      : graft_arena_printf(look->arena, "%.*s%s", (int)directory, path, text);
		if (!path)
			return;
	}
}

/* SPEC ctk-and-cdi 4.10, 6.10. */
static bool is_ignored(const struct look *look, const char *path)
{
	static const char any_directory[] = "**/";
	const struct graft_csv_options *options = look->options;

	for (size_t i = 0; i < options->n_ignored; i++) {
		const char *pattern = options->ignored[i];
		bool by_name = strncmp(pattern, any_directory, strlen(any_directory)) == 0;

		if (by_name ? fnmatch(pattern + strlen(any_directory), graft_path_name(path), 0) == 0
			    : fnmatch(pattern, path, FNM_PATHNAME) == 0)
			return true;
	}
	return false;
}

/* Returns 1 if the pattern matched anything, 0 if not, or -ENOMEM. */
static int find_by_pattern(struct look *look, enum graft_csv_type type, const char *pattern)
{
	const char **paths = NULL;
	bool found = false;
	size_t n = 0;
	int rc = pattern ? graft_pattern_expand(&look->root, pattern, look->arena, &paths, &n) : -ENOMEM;

	if (rc == -ENOMEM)
		return rc;
	for (size_t i = 0; i < n; i++) {
		if (!take_file(look, paths[i], type == GRAFT_CSV_DIR))
			continue;
		found = true;
		if (type == GRAFT_CSV_SYM)
			take_chain(look, paths[i]);
	}
	return found;
}

static int find_files(struct look *look, const struct graft_csv_entry *entry)
{
	const struct graft_csv_options *options = look->options;
	bool found = false;
	int rc = 0;

	if (entry->type == GRAFT_CSV_SYM && is_ignored(look, entry->path)) {
		graft_debug(options->log, "leaving out %s: it was asked for", entry->path);
		return 0;
	}
	for (size_t i = 0; entry->type == GRAFT_CSV_LIB && i < options->n_library_directories && rc >= 0; i++) {
		rc = find_by_pattern(
		    look, entry->type,
		    graft_arena_printf(look->arena, "%s/%s", options->library_directories[i], entry->path));
		found = found || rc > 0;
	}
	if (rc >= 0)
		rc = find_by_pattern(look, entry->type, entry->path);
	if (rc < 0)
		return rc;
	found = found || rc > 0;
	if (!found)
		omit(look, entry->path, entry->type == GRAFT_CSV_DIR ? "no such directory" : "no such file");
	return 0;
}

/* --- links of libraries --- */

static bool is_host_link(const struct look *look, const char *path)
{
	char text[PATH_MAX];

	return path && read_csv_link(look, path, text, sizeof(text));
}

/* Links that programs need in order to find their libraries, whether or not the lists have them. */
static const struct {
	const char *pattern, *name, *says; /* says: target of the link; NULL = the file's name */
} known_links[] = {
	{ "libcuda.so.*.*", "libcuda.so", "libcuda.so.1" },
	{ "libGLX_nvidia.so.*.*", "libGLX_indirect.so.0", NULL },
	{ "libnvidia-opticalflow.so.*.*", "libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1" },
};

/*
 * Adds the SONAME link always, because the loader's cache refers to it; the development link if the
 * host has it; and the known links. SPEC runtime-and-hook 7.5 (3), 9.4.
 */
static void link_library(struct look *look, const struct graft_csv_file *file)
{
	const char *name = graft_path_name(file->target);
	int directory = (int)(name - file->target);
	const char *so = strstr(file->soname, ".so");
	const char *plain, *path;

	for (size_t i = 0; i < GRAFT_COUNT(known_links); i++) {
		path = fnmatch(known_links[i].pattern, name, 0) == 0
			   ? graft_arena_printf(look->arena, "%.*s%s", directory, file->target, known_links[i].name)
			   : NULL;
		if (path)
			add_csv_link(look, path, known_links[i].says ? known_links[i].says : name, false);
	}
	if (strcmp(file->soname, name) != 0 && !strchr(file->soname, '/')) {
		path = graft_arena_printf(look->arena, "%.*s%s", directory, file->target, file->soname);
		if (path)
			add_csv_link(look, path, name, false);
	}
	plain = so ? graft_arena_printf(look->arena, "%.*s%.*s", directory, file->target, (int)(so - file->soname) + 3,
					file->soname)
		   : NULL;
	if (plain && so[3] != '\0' && !strchr(file->soname, '/') && is_host_link(look, plain))
		add_csv_link(look, plain, file->soname, false);
}

static void link_libraries(struct look *look)
{
	struct graft_csv_inventory *inventory = look->inventory;
	struct graft_csv_link *listed = inventory->links;
	size_t n_listed = inventory->n_links;

	/*
	 * Links made from libraries come first (SPEC runtime-and-hook 9.4), but a link of a list
	 * overrides one of them with the same path, which is removed. The list's links are added at
	 * the end.
	 */
	inventory->links = NULL;
	inventory->n_links = 0;
	for (size_t i = 0; i < inventory->n_files; i++) {
		if (inventory->files[i].soname)
			link_library(look, &inventory->files[i]);
	}
	for (size_t i = 0; i < n_listed; i++) {
		size_t n = 0;

		for (size_t j = 0; j < inventory->n_links; j++) {
			if (strcmp(inventory->links[j].path, listed[i].path) != 0)
				inventory->links[n++] = inventory->links[j];
		}
		inventory->n_links = n;
	}
	for (size_t i = 0; i < n_listed; i++)
		add_csv_link(look, listed[i].path, listed[i].says, true);
}

/* --- lists --- */

static int read_csv_list(struct look *look, const char *path, struct graft_csv_entry **entries, size_t *n_entries,
			 struct graft_error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct graft_error why = { .status = GRAFT_OK };
	size_t before = *n_entries, skipped, length = 0;
	const char *text = "";
	int rc = fd < 0 ? -errno : graft_read_fd(fd, LIST_MAX, look->arena, &text, &length);

	if (rc == -ENOMEM)
		return graft_fail_memory(err);
	if (rc < 0) {
		graft_warn(look->options->log, "Skipping CSV file %s: %s", path, strerror(-rc));
		return 0;
	}
	if (graft_csv_read(text, length, look->arena, entries, n_entries, &skipped, &why) < 0) {
		if (why.status == GRAFT_NO_MEMORY)
			return graft_fail_memory(err);
		graft_warn(look->options->log, "CSV file %s is truncated: %s", path, why.msg);
	}
	if (*n_entries == before)
		graft_warn(look->options->log, "Skipping CSV file %s: it has no entries", path);
	graft_debug(look->options->log, "CSV file %s: %zu entries, %zu other lines", path, *n_entries - before,
		    skipped);
	return 0;
}

static int look_up_csv_entries(struct look *look, const struct graft_csv_entry *entries, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = entries[i].type == GRAFT_CSV_DEV ? find_csv_nodes(look, entries[i].path)
						      : find_files(look, &entries[i]);
	if (rc == 0) {
		link_libraries(look);
		find_driver_nodes(look);
	}
	return rc;
}

static int discover_csv(struct look *look, struct graft_error *err)
{
	const struct graft_csv_options *options = look->options;
	const char *directory = options->directory ? options->directory : GRAFT_CSV_DIRECTORY;
	struct graft_csv_entry *entries = NULL;
	const char **found_lists;
	const char *const *lists = options->files;
	size_t n_entries = 0, n_lists = options->n_files;
	struct stat st;

	if (n_lists == 0) {
		if (graft_csv_lists(directory, options->all_files, options->log, look->arena, &found_lists, &n_lists,
				    err) < 0)
			return -1;
		lists = found_lists;
	}
	for (size_t i = 0; i < n_lists; i++) {
		if (read_csv_list(look, lists[i], &entries, &n_entries, err) < 0)
			return -1;
	}
	if (look_up_csv_entries(look, entries, n_entries) < 0 || graft_arena_failed(look->arena))
		return graft_fail_memory(err);
	look->inventory->release_file = graft_root_stat(&look->host, RELEASE_FILE, &st) == 0 && S_ISREG(st.st_mode);
	return 0;
}

static bool has_nodes(const struct graft_root *root)
{
	static const char *const nodes[] = { "/dev/nvmap", "/dev/nvhost-ctrl", "/dev/nvidiactl", "/dev/nvgpu" };
	struct stat st;

	for (size_t i = 0; i < GRAFT_COUNT(nodes); i++) {
		if (graft_root_stat(root, nodes[i], &st) == 0)
			return true;
	}
	return false;
}

int graft_csv_discover(const struct graft_csv_options *options, struct graft_arena *arena,
		       struct graft_csv_inventory *ret_inventory, struct graft_error *err)
{
	const char *root = options->root && options->root[0] != '\0' ? options->root : "/";
	const char *host = options->host_root ? options->host_root : "/";
	auto_root struct graft_root root_fd = GRAFT_ROOT_INIT, host_fd = GRAFT_ROOT_INIT, dev_fd = GRAFT_ROOT_INIT;
	struct look look = { .options = options, .inventory = ret_inventory, .arena = arena };

	*ret_inventory = (struct graft_csv_inventory){ .root = root };
	if (graft_root_open(&root_fd, root, err) < 0 || graft_root_open(&host_fd, host, err) < 0)
		return -1;
	look.root = root_fd;
	look.host = host_fd;
	look.dev = has_nodes(&root_fd) ? &look.root : &look.host;
	ret_inventory->dev_root = look.dev == &look.root ? root : host;
	if (options->dev_root) {
		if (graft_root_open(&dev_fd, options->dev_root, err) < 0)
			return -1;
		look.dev = &dev_fd;
		ret_inventory->dev_root = options->dev_root;
	}
	return discover_csv(&look, err);
}
