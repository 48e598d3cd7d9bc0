/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect: facts about a container's root (SPEC libnvidia-container 9.2, 9.8). The image controls
 * all of them, so everything is looked up below the root's descriptor, opened without blocking,
 * must be of the right kind, and is read within limits. What cannot be read is treated as absent.
 */
#include "image/inspect.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "formats/loader/cuda_compat.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"
#include "formats/loader/ldsoconf.h"
#include "image/reader.h"

#define MUSL_PATH_MAX   ((size_t)64 << 10)
#define COMPAT_MAX      64 /* names: the forward-compatibility package has ten or twelve; a hostile link takes 5 ms */
#define MOUNTS_MAX      64 /* directories checked for being on other mounts; the check is repeated before writing */
#define LIST_MAX        65536 /* musl's file has room for half as many */
#define DIR_ENTRIES_MAX 4096  /* of a directory that is read entirely */

static const char *const libc_names[] = { "unknown", "glibc", "musl" };

static const struct graft_field compat_fields[] = {
	GRAFT_F_STRING(struct graft_compat_library, path, true, "path below the container's root, links resolved"),
	GRAFT_F_STRING(struct graft_compat_library, soname, false, "the name that the loader looks for"),
	GRAFT_F_U32(struct graft_compat_library, abi_flags, false, "ABI as the flags in ld.so.cache"),
	GRAFT_F_U32(struct graft_compat_library, major, false, "driver branch in its file name"),
	GRAFT_F_BOOL(struct graft_compat_library, note, "it states which drivers it works with (libcuda)"),
	GRAFT_F_STRING(struct graft_compat_library, note_cuda, false, "CUDA version that it states"),
	GRAFT_F_STRINGS(struct graft_compat_library, note_drivers, "driver branches that it says it works with"),
	GRAFT_F_STRINGS(struct graft_compat_library, development_links,
			"names without a version that lead to it: `libcuda.so`"),
};
static const struct graft_record compat_record = { "compat_library", sizeof(struct graft_compat_library), compat_fields,
						   GRAFT_COUNT(compat_fields) };

static const struct graft_field image_fields[] = {
	GRAFT_F_BOOL(struct graft_image, debian, "/etc/debian_version exists"),
	GRAFT_F_BOOL(struct graft_image, usr_lib, "/usr/lib is a directory"),
	GRAFT_F_BOOL(struct graft_image, usr_lib32, "/usr/lib32 is a directory"),
	GRAFT_F_BOOL(struct graft_image, usr_lib_is_usr_lib64, "/usr/lib and /usr/lib64 are the same directory"),
	GRAFT_F_BOOL(struct graft_image, proc_driver, "/proc/driver exists"),
	GRAFT_F_BOOL(struct graft_image, proc_driver_nvidia, "/proc/driver/nvidia exists"),
	GRAFT_F_ENUM(struct graft_image, libc, libc_names, GRAFT_COUNT(libc_names), false, "which loader it has"),
	GRAFT_F_STRING(struct graft_image, musl_path_file, false, "search path file of musl's loader"),
	GRAFT_F_STRING(struct graft_image, musl_path, false, "content of that file; absent when there is none"),
	GRAFT_F_STRINGS(struct graft_image, loader_dirs, "directories that the loader already searches"),
	GRAFT_F_STRINGS(struct graft_image, added_dirs,
			"directories that Graft added to the loader's search path when the root was used before"),
	GRAFT_F_STRINGS(
	    struct graft_image, foreign_dirs,
	    "those of /etc and the loader's directories that are not on the root's mount: nothing is written there"),
	GRAFT_F_RECORDS(struct graft_image, compat, &compat_record, "CUDA forward-compatibility libraries"),
};
const struct graft_record graft_image_record = { "image", sizeof(struct graft_image), image_fields,
						 GRAFT_COUNT(image_fields) };

struct look {
	const struct graft_image_root *root;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_image *image;
	int shortage;
};

static bool is_directory(const struct look *look, const char *path)
{
	return graft_image_root_has(look->root, path, O_DIRECTORY);
}

static void look_at_layout(struct look *look)
{
	struct graft_image *image = look->image;
	struct stat lib, lib64;

	image->debian = graft_image_root_has(look->root, "/etc/debian_version", 0);
	image->usr_lib = graft_image_root_stat(look->root, "/usr/lib", &lib) == 0 && S_ISDIR(lib.st_mode);
	image->usr_lib32 = is_directory(look, "/usr/lib32");
	image->usr_lib_is_usr_lib64 = image->usr_lib && graft_image_root_stat(look->root, "/usr/lib64", &lib64) == 0 &&
				      lib.st_dev == lib64.st_dev && lib.st_ino == lib64.st_ino;
	image->proc_driver = is_directory(look, "/proc/driver");
	image->proc_driver_nvidia = image->proc_driver && is_directory(look, "/proc/driver/nvidia");
}

/* The loader identifies the C library; each has its own name per architecture. */
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

static void look_at_libc(struct look *look)
{
	for (size_t i = 0; i < GRAFT_COUNT(loaders); i++) {
		if (!graft_image_root_has(look->root, loaders[i].loader, 0))
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

/* musl separates directories by colons or newlines. Without the file it uses a built-in list. */
static void look_at_musl(struct look *look)
{
	struct graft_image *image = look->image;
	const char *text = "/lib:/usr/local/lib:/usr/lib";
	size_t length;
	int rc;

	rc = graft_image_root_read(look->root, image->musl_path_file, MUSL_PATH_MAX, look->arena, &image->musl_path,
				   &length);
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
	struct graft_ldsoconf conf;
	struct graft_error err;

	if (image->libc == GRAFT_LIBC_MUSL) {
		look_at_musl(look);
		return;
	}
	if (graft_ldsoconf_read_image(look->root, true, NULL, look->arena, &conf, &err) == 0) {
		image->loader_dirs = conf.dirs;
		image->n_loader_dirs = conf.n_dirs;
		image->added_dirs = conf.added;
		image->n_added_dirs = conf.n_added;
		return;
	}
	graft_note_shortage(&look->shortage, -err.sys);
	graft_warn(look->log, "skipping /etc/ld.so.conf of the image: %s", err.msg);
}

/* lib*.so.* */
static bool is_versioned_library(const char *name)
{
	return strncmp(name, "lib", 3) == 0 && strstr(name + 3, ".so.") != NULL;
}

/* SPEC libnvidia-container 9.8: the digits after ".so." in the file name. */
static uint32_t branch_in_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *suffix = strstr(slash ? slash : path, ".so.");
	unsigned long branch = 0;

	for (suffix = suffix ? suffix + 4 : ""; isdigit((unsigned char)*suffix) && branch < 1000000; suffix++)
		branch = branch * 10 + (unsigned long)(*suffix - '0');
	return (uint32_t)branch;
}

/* Returns whether it is libcuda.so.<version>, the only library with a note. */
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
		graft_warn(look->log, "skipping the content of %s of the image: %s", library->path, err.msg);
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

/*
 * SECURITY: such paths become names in the image and lines of the loader's configuration, and the
 * image may have taken over the reader.
 */
static bool is_place(const char *path)
{
	return path[0] == '/' && !strchr(path, '\n');
}

static void add_compat_library(struct look *look, const char *directory, const char *name)
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
	int rc = given ? graft_image_root_resolve(look->root, given, look->arena, &path, &path_fd) : -ENOMEM;

	graft_note_shortage(&look->shortage, rc);
	if (rc < 0 || !is_place(path) || find_listed(image, path))
		return;
	fd = graft_image_root_open(look->root, path_fd, path, &st);
	if (fd < 0 || !S_ISREG(st.st_mode))
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

/*
 * Returns whether the name may be the development link of some library, judging by the name alone.
 */
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
	int rc = given ? graft_image_root_resolve(look->root, given, look->arena, &path, NULL) : -ENOMEM;

	graft_note_shortage(&look->shortage, rc);
	if (rc < 0)
		return;
	/*
	 * The file is not opened: the link is only used if it resolves to one that was inspected.
	 */
	library = find_listed(look->image, path);
	if (!library || !library->soname || !graft_ldcache_is_development_link(name, library->soname))
		return;
	/* A file of this name is the library itself, not a link. */
	if (strcmp(graft_path_name(path), name) == 0)
		return;
	(void)graft_arena_push_string(look->arena, &library->development_links, &library->n_development_links, name);
}

static void look_at_compat(struct look *look, const char *directory)
{
	const char **names;
	size_t n, n_followed = 0;
	int rc = graft_image_root_list(look->root, directory, DIR_ENTRIES_MAX, look->arena, &names, &n, NULL);

	graft_note_shortage(&look->shortage, rc);
	if (rc < 0 && rc != -ENOENT)
		graft_warn(look->log, "skipping %s of the image: %s", directory, strerror(-rc));
	for (size_t i = 0; rc == 0 && i < n && n_followed < COMPAT_MAX; i++) {
		if (is_versioned_library(names[i])) {
			add_compat_library(look, directory, names[i]);
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

/* ---- other mounts ---- */

static void look_at_mount(struct look *look, const char *directory)
{
	struct graft_image *image = look->image;
	auto_close int fd = graft_image_root_look(look->root, directory, O_DIRECTORY);

	if (fd >= 0 && graft_image_root_may_write_at(look->root, fd, true, GRAFT_IMAGE_CONTENT) < 0)
		(void)graft_arena_push_string(look->arena, &image->foreign_dirs, &image->n_foreign_dirs, directory);
}

static void look_at_mounts(struct look *look)
{
	const struct graft_image *image = look->image;

	look_at_mount(look, "/etc");
	for (size_t i = 0; i < image->n_loader_dirs && i < MOUNTS_MAX; i++)
		look_at_mount(look, image->loader_dirs[i]);
}

/* ---- all of it ---- */

/* What to look at. */
struct question {
	bool layout, loader;
	char compat_directory[]; /* "": none */
};

/* Runs in the reader. */
static int read_image(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		      struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	const struct question *question = arg;
	struct look look = { .root = root, .log = log, .arena = arena, .image = answer };

	(void)bytes;
	if (question->layout)
		look_at_layout(&look);
	if (question->loader) {
		look_at_libc(&look);
		look_at_loader(&look);
		look_at_mounts(&look);
	}
	if (question->compat_directory[0] != '\0')
		look_at_compat(&look, question->compat_directory);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (graft_budget_left_ms(root->budget) == 0)
		graft_warn(log, "reading the container's image takes too long: skipping the rest of it");
	return look.shortage != 0 ? graft_fail_shortage(err, look.shortage, "the container's image") : 0;
}

static bool are_places(const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_place(paths[i]))
			return false;
	return true;
}

static bool is_sound_library(const struct graft_compat_library *library)
{
	for (size_t i = 0; i < library->n_development_links; i++)
		if (!graft_path_is_component(library->development_links[i]))
			return false;
	return library->n_development_links <= COMPAT_MAX && library->n_note_drivers <= DIR_ENTRIES_MAX &&
	       is_place(library->path) && strlen(library->path) < PATH_MAX && !graft_path_has_dots(library->path);
}

static bool is_musl_path_file(const char *path)
{
	for (size_t i = 0; i < GRAFT_COUNT(loaders); i++)
		if (loaders[i].musl_path_file && strcmp(loaders[i].musl_path_file, path) == 0)
			return true;
	return false;
}

static bool is_sound_image(const void *answer, size_t n_bytes)
{
	const struct graft_image *image = answer;

	(void)n_bytes;
	for (size_t i = 0; i < image->n_compat; i++)
		if (!is_sound_library(&image->compat[i]))
			return false;
	return (image->musl_path_file ? is_musl_path_file(image->musl_path_file) : image->libc != GRAFT_LIBC_MUSL) &&
	       image->n_compat <= COMPAT_MAX && image->n_loader_dirs <= LIST_MAX && image->n_added_dirs <= LIST_MAX &&
	       image->n_foreign_dirs <= MOUNTS_MAX + 1 &&
	       (!image->musl_path || strlen(image->musl_path) <= MUSL_PATH_MAX) &&
	       are_places(image->loader_dirs, image->n_loader_dirs) &&
	       are_places(image->added_dirs, image->n_added_dirs) &&
	       are_places(image->foreign_dirs, image->n_foreign_dirs);
}

/* `compat_directory` may be NULL. */
static int start_image_inspection(const struct graft_image_root *root, bool layout, bool loader,
				  const char *compat_directory, const struct graft_log *log,
				  struct graft_reader *ret_reader, struct graft_error *err)
{
	auto_buffer struct graft_buffer asked = { .bytes = NULL };
	const struct question question = { layout, loader };

	graft_buffer_add(&asked, &question, offsetof(struct question, compat_directory));
	graft_buffer_string(&asked, compat_directory ? compat_directory : "");
	graft_buffer_char(&asked, '\0');
	*ret_reader = (struct graft_reader)GRAFT_READER_INIT;
	if (graft_buffer_failed(&asked))
		return graft_fail_memory(err);
	return graft_reader_start(&(struct graft_reader_question){ .root = root,
								   .record = &graft_image_record,
								   .read = read_image,
								   .arg = asked.bytes,
								   .arg_length = asked.length,
								   .is_sound = is_sound_image,
								   .log = log,
								   .zero_if_late = true },
				  ret_reader, err);
}

static int run_image_inspection(const struct graft_image_root *root, bool layout, bool loader,
				const char *compat_directory, const struct graft_log *log, struct graft_arena *arena,
				struct graft_image *ret_image, struct graft_error *err)
{
	auto_reader struct graft_reader reader = GRAFT_READER_INIT;

	if (start_image_inspection(root, layout, loader, compat_directory, log, &reader, err) < 0)
		return -1;
	return graft_reader_finish(&reader, arena, ret_image, NULL, NULL, err);
}

int graft_image_inspect(const struct graft_image_root *root, bool want_compat, const struct graft_log *log,
			struct graft_arena *arena, struct graft_image *ret_image, struct graft_error *err)
{
	return run_image_inspection(root, true, true, want_compat ? GRAFT_COMPAT_DIRECTORY : NULL, log, arena,
				    ret_image, err);
}

int graft_image_inspect_loader(const struct graft_image_root *root, const char *compat_directory,
			       const struct graft_log *log, struct graft_arena *arena, struct graft_image *ret_image,
			       struct graft_error *err)
{
	return run_image_inspection(root, false, true, compat_directory, log, arena, ret_image, err);
}

int graft_image_start_loader(const struct graft_image_root *root, const char *compat_directory,
			     const struct graft_log *log, struct graft_reader *ret_reader, struct graft_error *err)
{
	return start_image_inspection(root, false, true, compat_directory, log, ret_reader, err);
}

int graft_image_find_compat(const struct graft_image_root *root, const char *directory, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_compat_library **ret_libraries, size_t *ret_n,
			    struct graft_error *err)
{
	struct graft_image image = { 0 };

	if (run_image_inspection(root, false, false, directory, log, arena, &image, err) < 0)
		return -1;
	*ret_libraries = image.compat;
	*ret_n = image.n_compat;
	return 0;
}

/* ---- names ---- */

struct names {
	const char **items;
	size_t n_items;
};

static const struct graft_field names_fields[] = {
	GRAFT_F_STRINGS(struct names, items, "names in a directory"),
};
static const struct graft_record names_record = { "names", sizeof(struct names), names_fields,
						  GRAFT_COUNT(names_fields) };

struct directory {
	size_t max;
	char path[];
};

static int read_directory_names(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
				struct graft_arena *arena, void *answer, struct graft_buffer *bytes,
				struct graft_error *err)
{
	const struct directory *directory = arg;
	struct names *names = answer;
	int rc = graft_image_root_list(root, directory->path, directory->max, arena, &names->items, &names->n_items,
				       NULL);

	(void)log;
	(void)bytes;
	if (rc == -ENOENT || rc == -ENOTDIR)
		return 0;
	return rc < 0 ? graft_fail_errno(err, -rc, "directory read error: %s of the container", directory->path) : 0;
}

int graft_image_list_names(const struct graft_image_root *root, const char *directory, size_t max,
			   struct graft_arena *arena, const char ***ret_names, size_t *ret_n, struct graft_error *err)
{
	auto_buffer struct graft_buffer asked = { .bytes = NULL };
	const struct directory asked_for = { max };
	struct names names = { .items = NULL };

	graft_buffer_add(&asked, &asked_for, offsetof(struct directory, path));
	graft_buffer_add(&asked, directory, strlen(directory) + 1);
	if (graft_buffer_failed(&asked))
		return graft_fail_memory(err);
	if (graft_reader_ask(&(struct graft_reader_question){ .root = root,
							      .record = &names_record,
							      .read = read_directory_names,
							      .arg = asked.bytes,
							      .arg_length = asked.length },
			     arena, &names, NULL, NULL, err) < 0)
		return -1;
	*ret_names = names.items;
	*ret_n = 0;
	/* SECURITY: the image may have taken over the reader. */
	for (size_t i = 0; i < names.n_items && *ret_n < max; i++)
		if (graft_path_is_component(names.items[i]))
			names.items[(*ret_n)++] = names.items[i];
	return 0;
}
