/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image: facts of a container's root (SPEC libnvidia-container 9.2, 9.8). Everything here is the image's word: it is
 * looked up below the root's descriptor, opened without blocking, must be of the right kind, and is read within limits.
 * What cannot be read is as if it were not there.
 */
#include "host/image.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/path.h"
#include "formats/cuda_compat.h"
#include "formats/elf.h"
#include "formats/ldcache.h"
#include "formats/ldsoconf.h"

#define MUSL_PATH_MAX   ((size_t)64 << 10)
#define COMPAT_MAX      64   /* names: the forward-compatibility package has ten or twelve; a hostile link takes 5 ms */
#define DIR_ENTRIES_MAX 4096 /* of a directory that is read to its end */

static const char *const libc_names[] = { "unknown", "glibc", "musl" };

static const struct graft_field compat_fields[] = {
	GRAFT_F_STRING(struct graft_compat_library, path, true, "path below the container's root, links resolved"),
	GRAFT_F_STRING(struct graft_compat_library, soname, false, "the name that the loader looks for"),
	GRAFT_F_U32(struct graft_compat_library, abi_flags, false, "ABI as the flags word of ld.so.cache"),
	GRAFT_F_U32(struct graft_compat_library, major, false, "driver branch in its file name"),
	GRAFT_F_BOOL(struct graft_compat_library, note, "it says what it works with (libcuda)"),
	GRAFT_F_STRING(struct graft_compat_library, note_cuda, false, "CUDA version, by its own word"),
	GRAFT_F_STRINGS(struct graft_compat_library, note_drivers,
			"driver branches that it works with, by its own word"),
	GRAFT_F_STRINGS(struct graft_compat_library, development_links,
			"names without a version that lead to it: `libcuda.so`"),
};
static const struct graft_record compat_record = { "compat_library", sizeof(struct graft_compat_library), compat_fields,
						   GRAFT_COUNT(compat_fields) };

static const struct graft_field image_fields[] = {
	GRAFT_F_BOOL(struct graft_image, debian, "/etc/debian_version exists"),
	GRAFT_F_BOOL(struct graft_image, usr_lib, "/usr/lib is a directory"),
	GRAFT_F_BOOL(struct graft_image, usr_lib32, "/usr/lib32 is a directory"),
	GRAFT_F_BOOL(struct graft_image, usr_lib_is_usr_lib64, "/usr/lib and /usr/lib64 are one directory"),
	GRAFT_F_BOOL(struct graft_image, proc_driver, "/proc/driver exists"),
	GRAFT_F_BOOL(struct graft_image, proc_driver_nvidia, "/proc/driver/nvidia exists"),
	GRAFT_F_ENUM(struct graft_image, libc, libc_names, GRAFT_COUNT(libc_names), false, "which loader it has"),
	GRAFT_F_STRING(struct graft_image, musl_path_file, false, "search path file of musl's loader"),
	GRAFT_F_STRING(struct graft_image, musl_path, false, "content of that file; absent when there is none"),
	GRAFT_F_STRINGS(struct graft_image, loader_dirs, "directories that the loader already searches"),
	GRAFT_F_STRINGS(struct graft_image, added_dirs,
			"directories that Graft had the loader search when the root was used before"),
	GRAFT_F_RECORDS(struct graft_image, compat, &compat_record, "CUDA forward-compatibility libraries"),
};
const struct graft_record graft_image_record = { "image", sizeof(struct graft_image), image_fields,
						 GRAFT_COUNT(image_fields) };

struct look {
	const struct graft_root *root;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_image *image;
	int shortage;
};

static bool is_directory(const struct look *look, const char *path)
{
	return graft_root_has(look->root, path, O_DIRECTORY);
}

static void look_at_layout(struct look *look)
{
	struct graft_image *image = look->image;
	struct stat lib, lib64;

	image->debian = graft_root_has(look->root, "/etc/debian_version", 0);
	image->usr_lib = graft_root_stat(look->root, "/usr/lib", &lib) == 0 && S_ISDIR(lib.st_mode);
	image->usr_lib32 = is_directory(look, "/usr/lib32");
	image->usr_lib_is_usr_lib64 = image->usr_lib && graft_root_stat(look->root, "/usr/lib64", &lib64) == 0 &&
				      lib.st_dev == lib64.st_dev && lib.st_ino == lib64.st_ino;
	image->proc_driver = is_directory(look, "/proc/driver");
	image->proc_driver_nvidia = image->proc_driver && is_directory(look, "/proc/driver/nvidia");
}

/* The loader tells the C library; each has its own name per architecture. */
static void look_at_libc(struct look *look)
{
	static const struct {
		enum graft_libc libc;
		const char *loader;
		const char *musl_path_file;
	} loaders[] = {
#if defined(__x86_64__)
		{ GRAFT_LIBC_GLIBC, "/lib64/ld-linux-x86-64.so.2", NULL },
		{ GRAFT_LIBC_MUSL, "/lib/ld-musl-x86_64.so.1", "/etc/ld-musl-x86_64.path" },
#elif defined(__aarch64__)
		{ GRAFT_LIBC_GLIBC, "/lib/ld-linux-aarch64.so.1", NULL },
		{ GRAFT_LIBC_MUSL, "/lib/ld-musl-aarch64.so.1", "/etc/ld-musl-aarch64.path" },
#elif defined(__powerpc64__)
		{ GRAFT_LIBC_GLIBC, "/lib64/ld64.so.2", NULL },
		{ GRAFT_LIBC_MUSL, "/lib/ld-musl-powerpc64le.so.1", "/etc/ld-musl-powerpc64le.path" },
#endif
	};

	for (size_t i = 0; i < GRAFT_COUNT(loaders); i++) {
		if (!graft_root_has(look->root, loaders[i].loader, 0))
			continue;
		look->image->libc = loaders[i].libc;
		look->image->musl_path_file = loaders[i].musl_path_file;
		return;
	}
}

static void add_loader_dir(struct look *look, const char *path, size_t length)
{
	struct graft_image *image = look->image;
	const char *copy = graft_arena_strndup(look->arena, path, length);

	if (length > 0 && copy && copy[0] == '/')
		(void)graft_arena_push_string(look->arena, &image->loader_dirs, &image->n_loader_dirs, copy);
}

/* musl separates by colons or newlines. Without the file it has a list of its own. */
static void look_at_musl(struct look *look)
{
	struct graft_image *image = look->image;
	const char *text = "/lib:/usr/local/lib:/usr/lib";
	size_t length;
	int rc;

	rc = graft_root_read(look->root, image->musl_path_file, MUSL_PATH_MAX, look->arena, &image->musl_path, &length);
	graft_note_shortage(&look->shortage, rc);
	if (rc == 0)
		text = image->musl_path;
	else if (rc != -ENOENT)
		graft_warn(look->log, "skipping %s of the image: %s", image->musl_path_file, strerror(-rc));
	while (*text != '\0') {
		length = strcspn(text, ":\n");
		add_loader_dir(look, text, length);
		text += length + (text[length] != '\0' ? 1 : 0);
	}
}

static void look_at_loader(struct look *look)
{
	struct graft_image *image = look->image;
	struct graft_error err;

	if (image->libc == GRAFT_LIBC_MUSL) {
		look_at_musl(look);
		return;
	}
	if (graft_ldsoconf_read_apart(look->root, look->arena, &image->loader_dirs, &image->n_loader_dirs,
				      &image->added_dirs, &image->n_added_dirs, &err) == 0)
		return;
	graft_note_shortage(&look->shortage, -err.sys);
	graft_warn(look->log, "skipping /etc/ld.so.conf of the image: %s", err.msg);
}

/* lib*.so.* */
static bool is_library_name(const char *name)
{
	return strncmp(name, "lib", 3) == 0 && strstr(name + 3, ".so.") != NULL;
}

/* SPEC 9.8: the digits after ".so." of the base name. */
static uint32_t branch_in_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *suffix = strstr(slash ? slash : path, ".so.");
	unsigned long branch = 0;

	for (suffix = suffix ? suffix + 4 : ""; isdigit((unsigned char)*suffix) && branch < 1000000; suffix++)
		branch = branch * 10 + (unsigned long)(*suffix - '0');
	return (uint32_t)branch;
}

/* The one library that tells: libcuda.so.<version>. */
static bool is_cuda(const char *path)
{
	static const char prefix[] = "/libcuda.so.";
	const char *slash = strrchr(path, '/');

	return slash && strncmp(slash, prefix, strlen(prefix)) == 0 && strchr(slash + strlen(prefix), '.');
}

static void read_note(struct look *look, int fd, struct graft_compat_library *library)
{
	struct graft_cuda_compat compat;
	struct graft_error err;
	int rc = is_cuda(library->path) ? graft_cuda_compat_read_fd(fd, library->path, look->arena, &compat, &err) : 0;

	if (rc < 0) {
		graft_note_shortage(&look->shortage, -err.sys);
		graft_warn(look->log, "skipping what %s of the image says: %s", library->path, err.msg);
	}
	if (rc <= 0)
		return;
	library->note = true;
	library->note_cuda = compat.cuda_version;
	for (size_t i = 0; i < compat.n_drivers; i++) {
		const char *text = graft_arena_printf(look->arena, "%u", compat.drivers[i]);

		if (text)
			(void)graft_arena_push_string(look->arena, &library->note_drivers, &library->n_note_drivers,
						      text);
	}
}

static struct graft_compat_library *find_listed(const struct graft_image *image, const char *path)
{
	for (size_t i = 0; i < image->n_compat; i++) {
		if (strcmp(image->compat[i].path, path) == 0)
			return &image->compat[i];
	}
	return NULL;
}

static void add_compat(struct look *look, const char *directory, const char *name)
{
	struct graft_image *image = look->image;
	const char *given = graft_arena_printf(look->arena, "%s/%s", directory, name);
	auto_close int path_fd = -1;
	auto_close int fd = -1;
	struct graft_compat_library *library;
	struct graft_error err;
	struct graft_elf elf;
	const char *path;
	struct stat st;
	int rc = given ? graft_root_resolve(look->root, given, look->arena, &path, &path_fd) : -ENOMEM;

	graft_note_shortage(&look->shortage, rc);
	/* SECURITY: only a regular file is opened; a device or FIFO of the image is not. */
	if (rc < 0 || fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode) || find_listed(image, path))
		return;
	fd = graft_root_reopen(look->root, path_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	if (graft_elf_read_fd(fd, path, look->arena, &elf, &err) < 0) {
		graft_note_shortage(&look->shortage, -err.sys);
		graft_warn(look->log, "skipping %s of the image: %s", path, err.msg);
		return;
	}
	library = graft_arena_push(look->arena, &image->compat, &image->n_compat, sizeof(*library));
	if (!library)
		return;
	*library = (struct graft_compat_library){ path, elf.soname, elf.abi_flags, branch_in_name(path) };
	read_note(look, fd, library);
	graft_info(look->log, "selecting %s of the image", path);
}

/* Whether some library could have a development link of this name; all that is known without a look at it. */
static bool may_be_development_link(const struct graft_image *image, const char *name)
{
	if (strncmp(name, "lib", 3) != 0)
		return false;
	for (size_t i = 0; i < image->n_compat; i++) {
		const char *soname = image->compat[i].soname;

		if (soname && graft_ldcache_is_development_link(name, soname))
			return true;
	}
	return false;
}

static void add_development_link(struct look *look, const char *directory, const char *name)
{
	const char *given = graft_arena_printf(look->arena, "%s/%s", directory, name);
	struct graft_compat_library *library;
	const char *path;
	int rc = given ? graft_root_resolve(look->root, given, look->arena, &path, NULL) : -ENOMEM;

	graft_note_shortage(&look->shortage, rc);
	if (rc < 0)
		return;
	/* SECURITY: followed below the root and not opened: it counts only where it leads to a file that was looked at. */
	library = find_listed(look->image, path);
	if (!library || !library->soname || !graft_ldcache_is_development_link(name, library->soname))
		return;
	/* A file of this name is the library itself, and no link. */
	if (strcmp(graft_path_name(path), name) == 0)
		return;
	(void)graft_arena_push_string(look->arena, &library->development_links, &library->n_development_links, name);
}

static void look_at_compat(struct look *look, const char *directory)
{
	const char **names;
	size_t n, n_followed = 0;
	int rc = graft_root_list(look->root, directory, DIR_ENTRIES_MAX, look->arena, &names, &n, NULL);

	graft_note_shortage(&look->shortage, rc);
	if (rc < 0 && rc != -ENOENT)
		graft_warn(look->log, "skipping %s of the image: %s", directory, strerror(-rc));
	for (size_t i = 0; rc == 0 && i < n && n_followed < COMPAT_MAX; i++) {
		if (is_library_name(names[i])) {
			add_compat(look, directory, names[i]);
			n_followed++;
		}
	}
	for (size_t i = 0; look->image->n_compat > 0 && i < n && n_followed < COMPAT_MAX; i++) {
		if (may_be_development_link(look->image, names[i])) {
			add_development_link(look, directory, names[i]);
			n_followed++;
		}
	}
}

/* What is looked at, and in which directory for compatibility libraries; NULL = in none. */
enum part { PART_LAYOUT = 1u << 0, PART_LOADER = 1u << 1 };

static int inspect(const struct graft_root *root, unsigned int parts, const char *compat_dir,
		   const struct graft_log *log, struct graft_arena *arena, struct graft_image *ret_image,
		   struct graft_error *err)
{
	/* No file of the image is opened by its name: what was looked at could be a device by then. */
	auto_close int proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct graft_root readable = *root;
	struct graft_image image = { 0 };
	struct look look = { .root = &readable, .log = log, .arena = arena, .image = &image };

	readable.proc_fd = proc_fd;
	if ((parts & PART_LAYOUT) != 0)
		look_at_layout(&look);
	if ((parts & PART_LOADER) != 0) {
		look_at_libc(&look);
		look_at_loader(&look);
	}
	if (compat_dir)
		look_at_compat(&look, compat_dir);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (look.shortage != 0)
		return graft_fail_shortage(err, look.shortage, "the container's image");
	*ret_image = image;
	return 0;
}

int graft_image_inspect(const struct graft_root *root, bool want_compat, const struct graft_log *log,
			struct graft_arena *arena, struct graft_image *ret_image, struct graft_error *err)
{
	return inspect(root, PART_LAYOUT | PART_LOADER, want_compat ? GRAFT_COMPAT_DIRECTORY : NULL, log, arena,
		       ret_image, err);
}

int graft_image_inspect_loader(const struct graft_root *root, bool want_compat, const struct graft_log *log,
			       struct graft_arena *arena, struct graft_image *ret_image, struct graft_error *err)
{
	return inspect(root, PART_LOADER, want_compat ? GRAFT_COMPAT_DIRECTORY : NULL, log, arena, ret_image, err);
}

int graft_image_find_compat(const struct graft_root *root, const char *directory, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_compat_library **ret_libraries, size_t *ret_n,
			    struct graft_error *err)
{
	struct graft_image image = { 0 };

	if (inspect(root, 0, directory, log, arena, &image, err) < 0)
		return -1;
	*ret_libraries = image.compat;
	*ret_n = image.n_compat;
	return 0;
}
