/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_files: the user-space half of a driver root: libraries, programs, firmware and
 * descriptions in the places of each layout, and the loader's cache of them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "catalog.h"
#include "create_parts.h"
#include "elf_writer.h"
#include "formats/loader/elf.h"
#include "loader_cache.h"

/* Flags in ld.so.cache for each ABI; SPEC ld-so-cache 5. */
static const struct {
	enum sim_elf_machine elf_64, elf_32;
	uint32_t cache_64, cache_32;
	const char *triplet, *triplet_32;
} abis[] = {
	[SIM_MACHINE_X86_64] = { SIM_ELF_X86_64, SIM_ELF_I386, GRAFT_ABI_FLAGS_X86_64, GRAFT_ABI_FLAGS_I386,
				 "x86_64-linux-gnu", "i386-linux-gnu" },
	[SIM_MACHINE_AARCH64] = { SIM_ELF_AARCH64, SIM_ELF_ARM, GRAFT_ABI_FLAGS_AARCH64, GRAFT_ABI_FLAGS_ARM_HARD,
				  "aarch64-linux-gnu", "arm-linux-gnueabihf" },
};

struct files {
	struct sim_tree *tree;
	const struct sim_places *places;
	const char *version;
	struct sim_cache_entry *cache;
	size_t n_cache;
	struct sim_data data;
};

/* --- places --- */

void sim_parts_buffer(struct sim_tree *tree, const char *path, mode_t mode, struct graft_buffer *take_buffer)
{
	struct graft_error err;

	if (graft_buffer_failed(take_buffer)) {
		(void)graft_fail_memory(&err);
		sim_tree_fail(tree, &err);
	} else {
		sim_tree_file(tree, path, mode, graft_buffer_text(take_buffer), take_buffer->length);
	}
	graft_buffer_done(take_buffer);
}

#define PLACE(field, ...) (void)snprintf(field, sizeof(field), __VA_ARGS__)

void sim_places(const struct sim_topology *topology, struct sim_places *ret_places)
{
	bool want_32 = (topology->files & SIM_FILES_32_BIT) != 0;

	*ret_places = (struct sim_places){ .prefix = "",
					   .binaries = "/usr/bin",
					   .share = "/usr/share",
					   .firmware = "/usr/lib/firmware/nvidia",
					   .has_cache = true };
	PLACE(ret_places->libraries, "/usr/lib/%s", abis[topology->machine].triplet);
	if (want_32)
		PLACE(ret_places->libraries_32, "/usr/lib/%s", abis[topology->machine].triplet_32);
	switch (topology->layout) {
	case SIM_LAYOUT_DEBIAN:
		break;
	case SIM_LAYOUT_RHEL:
		PLACE(ret_places->libraries, "/usr/lib64");
		if (want_32)
			PLACE(ret_places->libraries_32, "/usr/lib");
		break;
	case SIM_LAYOUT_DRIVER_CONTAINER:
		ret_places->prefix = "/run/nvidia/driver";
		break;
	case SIM_LAYOUT_NIXOS:
		PLACE(ret_places->libraries, "/run/opengl-driver/lib");
		PLACE(ret_places->libraries_32, "%s", want_32 ? "/run/opengl-driver-32/lib" : "");
		ret_places->binaries = "/run/current-system/sw/bin";
		ret_places->share = "/run/opengl-driver/share";
		ret_places->firmware = "/run/current-system/firmware/nvidia";
		ret_places->has_cache = false;
		break;
	case SIM_LAYOUT_WSL2:
		PLACE(ret_places->libraries, "/usr/lib/wsl/lib");
		ret_places->libraries_32[0] = '\0';
		ret_places->binaries = "/usr/lib/wsl/lib";
		break;
	case SIM_LAYOUT_TEGRA:
		PLACE(ret_places->libraries, "/usr/lib/%s/tegra", abis[topology->machine].triplet);
		ret_places->libraries_32[0] = '\0';
		break;
	}
}

/* --- embedded files --- */

static const struct sim_embedded *find_embedded_file(const char *name)
{
	for (unsigned int i = 0; i < sim_n_embedded_files; i++) {
		if (strcmp(sim_embedded_files[i].name, name) == 0)
			return &sim_embedded_files[i];
	}
	return NULL;
}

static void embedded_missing(struct files *files, const char *name)
{
	struct graft_error err;

	(void)graft_fail(&err, GRAFT_INTERNAL, 0, "embedded file damaged: %s", name);
	sim_tree_fail(files->tree, &err);
}

/* In a driver for another machine, each program is a script that prints where it has to run. */
static void copy_program(struct files *files, const char *path, const char *name)
{
	const struct sim_embedded *program = find_embedded_file(name);
	enum sim_machine machine = files->tree->topology->machine;

	if (machine != sim_machine_native())
		sim_tree_text(files->tree, path, 0755,
			      "#!/bin/sh\n"
			      "echo \"$0: this simulated driver is for %s, but was made on %s: its programs and "
			      "libraries cannot run here\" >&2\n"
			      "exit 126\n",
			      sim_machine_name(machine), sim_machine_name(sim_machine_native()));
	else if (program)
		sim_tree_file(files->tree, path, 0755, program->bytes, (size_t)(program->end - program->bytes));
	else
		embedded_missing(files, name);
}

/* Copies a template and fills in its block. */
static void copy_template(struct files *files, const char *path, const char *name)
{
	const struct sim_embedded *template = find_embedded_file(name);
	struct graft_buffer bytes = { .max = 0 };
	char *block = NULL;

	if (template) {
		graft_buffer_add(&bytes, template->bytes, (size_t)(template->end - template->bytes));
		if (!graft_buffer_failed(&bytes))
			block = memmem(bytes.bytes, bytes.length, files->data.magic, sizeof(files->data.magic));
	}
	if (block && (size_t)(bytes.bytes + bytes.length - block) >= sizeof(files->data)) {
		memcpy(block, &files->data, sizeof(files->data));
		sim_tree_file(files->tree, path, 0755, bytes.bytes, bytes.length);
	} else {
		embedded_missing(files, name);
	}
	graft_buffer_done(&bytes);
}

/* --- libraries --- */

/* A library's names and its directory. */
struct placed {
	const char *directory;
	const char *file;
	const char *soname;
	const char *link; /* development link, or NULL */
	enum sim_elf_machine machine;
	uint32_t cache_flags;
	enum sim_template real;
	const struct sim_embedded *plain; /* a library that is the same on every host, or NULL */
	const char *needed;               /* file name, or NULL */
	bool tls;
};

static void add_to_cache(struct files *files, const struct placed *lib)
{
	struct graft_arena *arena = files->tree->topology->arena;
	struct sim_cache_entry *record = graft_arena_push(arena, &files->cache, &files->n_cache, sizeof(*record));

	if (!record)
		return; /* the arena records the failure */
	record->soname = graft_arena_strdup(arena, lib->soname);
	record->path = graft_arena_printf(arena, "%s/%s", lib->directory, lib->soname);
	record->flags = lib->cache_flags;
}

static void write_stub(struct files *files, const char *path, const struct placed *lib)
{
	static const uint32_t tls_kernel[3] = { 2, 3, 99 };
	/* Without libc.so.6, ldconfig takes a 32-bit library for one of another libc. */
	const char *const needed[] = { "libc.so.6", lib->needed, NULL };
	struct graft_buffer bytes = { .max = 0 };

	sim_elf_write(&(struct sim_elf){ .machine = lib->machine,
					 .soname = lib->soname,
					 .needed = needed,
					 .abi_kernel = lib->tls ? tls_kernel : NULL },
		      &bytes);
	sim_parts_buffer(files->tree, path, 0644, &bytes);
}

static const char *const templates[] = {
	[SIM_TEMPLATE_NVML] = "libnvidia-ml.so",
	[SIM_TEMPLATE_CUDA] = "libcuda.so",
	[SIM_TEMPLATE_GLX] = "libGLX_nvidia.so",
	[SIM_TEMPLATE_EGL] = "libEGL_nvidia.so",
};

/* The graphics templates exist only if they could be built. */
static bool has_template(enum sim_template real)
{
	return real != SIM_TEMPLATE_NONE &&
	       ((real != SIM_TEMPLATE_GLX && real != SIM_TEMPLATE_EGL) || find_embedded_file(templates[real]) != NULL);
}

static void place_library(struct files *files, const struct placed *lib)
{
	const char *const names[] = { lib->file, lib->soname, NULL };
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", lib->directory, lib->file);
	if (sim_topology_is_missing(files->tree->topology, path, names))
		return;
	if (has_template(lib->real))
		copy_template(files, path, templates[lib->real]);
	else if (lib->plain)
		copy_program(files, path, lib->plain->name);
	else
		write_stub(files, path, lib);
	if (strcmp(lib->file, lib->soname) != 0) {
		(void)snprintf(path, sizeof(path), "%s/%s", lib->directory, lib->soname);
		sim_tree_link(files->tree, path, lib->file);
	}
	if (lib->link) {
		(void)snprintf(path, sizeof(path), "%s/%s", lib->directory, lib->link);
		sim_tree_link(files->tree, path, lib->soname);
	}
	add_to_cache(files, lib);
}

static void place_catalog_library(struct files *files, const struct sim_library *library, bool is_32)
{
	const struct sim_topology *topology = files->tree->topology;
	const char *base = is_32 ? files->places->libraries_32 : files->places->libraries;
	char directory[200], file[128], soname[128], link[128], needed[128];
	bool native = !is_32 && topology->machine == sim_machine_native();
	struct placed lib = {
		.directory = directory,
		.file = file,
		.soname = soname,
		.link = library->has_link ? link : NULL,
		.machine = is_32 ? abis[topology->machine].elf_32 : abis[topology->machine].elf_64,
		.cache_flags = is_32 ? abis[topology->machine].cache_32 : abis[topology->machine].cache_64,
		.real = native ? library->real : SIM_TEMPLATE_NONE,
		.needed = library->needed ? needed : NULL,
		.tls = strcmp(library->stem, "libnvidia-tls") == 0,
	};

	(void)snprintf(directory, sizeof(directory), "%s%s%s", base, library->directory ? "/" : "",
		       library->directory ? library->directory : "");
	(void)snprintf(file, sizeof(file), "%s.so.%s", library->stem,
		       library->version ? library->version : files->version);
	(void)snprintf(soname, sizeof(soname), "%s.so.%s", library->stem,
		       library->soname ? library->soname : files->version);
	(void)snprintf(link, sizeof(link), "%s.so", library->stem);
	lib.plain = native ? find_embedded_file(link) : NULL;
	(void)snprintf(needed, sizeof(needed), "%s.so.%s", library->needed ? library->needed : "", files->version);
	place_library(files, &lib);
}

static void place_libraries(struct files *files)
{
	for (size_t i = 0; i < sim_n_libraries; i++) {
		if (!sim_library_wanted(&sim_libraries[i], files->tree->topology))
			continue;
		place_catalog_library(files, &sim_libraries[i], false);
		if (sim_libraries[i].has_32_bit && files->places->libraries_32[0] != '\0')
			place_catalog_library(files, &sim_libraries[i], true);
	}
}

/* Libraries whose names do not contain the driver's version: those of WSL2 and Tegra. */
struct fixed_library {
	const char *file, *soname, *link;
	enum sim_template real;
};

static void place_fixed(struct files *files, const char *directory, const struct fixed_library *rows, size_t n_rows)
{
	const struct sim_topology *topology = files->tree->topology;
	bool native = topology->machine == sim_machine_native();

	for (size_t i = 0; i < n_rows; i++) {
		place_library(files, &(struct placed){
					 .directory = directory,
					 .file = rows[i].file,
					 .soname = rows[i].soname,
					 .link = rows[i].link,
					 .machine = abis[topology->machine].elf_64,
					 .cache_flags = abis[topology->machine].cache_64,
					 .real = native ? rows[i].real : SIM_TEMPLATE_NONE,
				     });
	}
}

#define WSL_STORE "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0afec3f2050014a0"

static void create_wsl(struct files *files)
{
	static const struct fixed_library lib[] = {
		{ "libcuda.so.1.1", "libcuda.so.1", "libcuda.so", SIM_TEMPLATE_CUDA },
		{ "libdxcore.so", "libdxcore.so", NULL, SIM_TEMPLATE_NONE },
		{ "libd3d12.so", "libd3d12.so", NULL, SIM_TEMPLATE_NONE },
		{ "libd3d12core.so", "libd3d12core.so", NULL, SIM_TEMPLATE_NONE },
		{ "libnvcuvid.so.1", "libnvcuvid.so.1", "libnvcuvid.so", SIM_TEMPLATE_NONE },
		{ "libnvdxdlkernels.so", "libnvdxdlkernels.so", NULL, SIM_TEMPLATE_NONE },
		{ "libnvidia-encode.so.1", "libnvidia-encode.so.1", "libnvidia-encode.so", SIM_TEMPLATE_NONE },
		{ "libnvidia-ml.so.1", "libnvidia-ml.so.1", NULL, SIM_TEMPLATE_NVML },
		{ "libnvidia-opticalflow.so.1", "libnvidia-opticalflow.so.1", "libnvidia-opticalflow.so",
		  SIM_TEMPLATE_NONE },
		{ "libnvwgf2umx.so", "libnvwgf2umx.so", NULL, SIM_TEMPLATE_NONE },
	};
	static const struct fixed_library store[] = {
		{ "libcuda.so.1.1", "libcuda.so.1.1", NULL, SIM_TEMPLATE_CUDA },
		{ "libcuda_loader.so", "libcuda_loader.so", NULL, SIM_TEMPLATE_NONE },
		{ "libnvidia-ptxjitcompiler.so.1", "libnvidia-ptxjitcompiler.so.1", NULL, SIM_TEMPLATE_NONE },
		{ "libnvidia-ml.so.1", "libnvidia-ml.so.1", NULL, SIM_TEMPLATE_NVML },
		{ "libnvidia-ml_loader.so", "libnvidia-ml_loader.so", NULL, SIM_TEMPLATE_NONE },
		{ "libnvdxgdmal.so.1", "libnvdxgdmal.so.1", NULL, SIM_TEMPLATE_NONE },
	};
	size_t n_listed;

	place_fixed(files, "/usr/lib/wsl/lib", lib, GRAFT_COUNT(lib));
	n_listed = files->n_cache; /* no cache lists the driver store */
	place_fixed(files, WSL_STORE, store, GRAFT_COUNT(store));
	files->n_cache = n_listed;
	sim_tree_text(files->tree, WSL_STORE "/nvcubins.bin", 0444, "simulated by Graft\n");
	/* Next to them the Windows part of the driver, some of which newer drivers load. */
	sim_tree_text(files->tree, WSL_STORE "/nvcudart.dll", 0444, "simulated by Graft\n");
	sim_tree_text(files->tree, WSL_STORE "/nv_dispi.inf", 0444, "simulated by Graft\n");
	copy_program(files, WSL_STORE "/nvidia-smi", "nvidia-smi");
	copy_program(files, "/usr/lib/wsl/lib/nvidia-smi", "nvidia-smi");
	sim_tree_text(files->tree, "/etc/ld.so.conf.d/ld.wsl.conf", 0644, "/usr/lib/wsl/lib\n");
}

#define TEGRA_LISTS "/etc/nvidia-container-runtime/host-files-for-container.d"

static void create_tegra(struct files *files)
{
	static const struct fixed_library lib[] = {
		{ "libcuda.so.1.1", "libcuda.so.1", "libcuda.so", SIM_TEMPLATE_CUDA },
		{ "libnvidia-ptxjitcompiler.so.35.4.1", "libnvidia-ptxjitcompiler.so.1", NULL, SIM_TEMPLATE_NONE },
		{ "libnvidia-eglcore.so.35.4.1", "libnvidia-eglcore.so.35.4.1", NULL, SIM_TEMPLATE_NONE },
		{ "libnvrm_gpu.so", "libnvrm_gpu.so", NULL, SIM_TEMPLATE_NONE },
		{ "libnvrm_mem.so", "libnvrm_mem.so", NULL, SIM_TEMPLATE_NONE },
		{ "libnvos.so", "libnvos.so", NULL, SIM_TEMPLATE_NONE },
		{ "libnvscibuf.so.1", "libnvscibuf.so.1", NULL, SIM_TEMPLATE_NONE },
	};
	struct graft_buffer drivers = { .max = 0 };

	place_fixed(files, files->places->libraries, lib, GRAFT_COUNT(lib));
	for (size_t i = 0; i < GRAFT_COUNT(lib); i++)
		graft_buffer_printf(&drivers, "lib, %s/%s\n", files->places->libraries, lib[i].file);
	graft_buffer_printf(&drivers, "sym, %s/libcuda.so.1\n", files->places->libraries);
	sim_parts_buffer(files->tree, TEGRA_LISTS "/drivers.csv", 0644, &drivers);
	sim_tree_text(files->tree, TEGRA_LISTS "/devices.csv", 0644,
		      "dev, /dev/nvmap\ndev, /dev/nvhost-ctrl\ndev, /dev/nvhost-gpu\ndev, /dev/nvhost-as-gpu\n"
		      "dev, /dev/nvgpu/igpu0/power\n");
	sim_tree_text(
	    files->tree, TEGRA_LISTS "/l4t.csv", 0644,
	    "# what the board has besides\ndir, /usr/share/nvidia-tegra\nlib, %s/libnvrm_*.so\nsym, %s/libcuda.so\n"
	    "dev, nvgpu/*/power\nlib, %s/libnvidia-not-installed.so.1\n",
	    files->places->libraries, files->places->libraries, files->places->libraries);
	sim_tree_text(files->tree, "/usr/share/nvidia-tegra/board.conf", 0644, "simulated by Graft\n");
	/* Only containers that request all lists get the files of this list. */
	sim_tree_text(files->tree, TEGRA_LISTS "/samples.csv", 0644, "dir, /usr/share/nvidia-tegra-samples\n");
	sim_tree_text(files->tree, "/usr/share/nvidia-tegra-samples/sample", 0644, "simulated by Graft\n");
	sim_tree_text(files->tree, "/etc/ld.so.conf.d/nvidia-tegra.conf", 0644, "%s\n", files->places->libraries);
}

/* --- programs, firmware, descriptions --- */

static void create_programs(struct files *files)
{
	char path[160];

	for (size_t i = 0; i < sim_n_binaries; i++) {
		const struct sim_binary *binary = &sim_binaries[i];

		if (!sim_binary_wanted(binary, files->tree->topology))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", files->places->binaries, binary->name);
		copy_program(files, path, binary->program == SIM_PROGRAM_SMI ? "nvidia-smi" : "graft-sim-daemon");
	}
}

static void create_firmware(struct files *files)
{
	char path[256];

	for (size_t i = 0; i < sim_n_firmwares; i++) {
		if (!sim_firmware_wanted(&sim_firmwares[i], files->tree->topology))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s/%s", files->places->firmware, files->version,
			       sim_firmwares[i].name);
		sim_tree_text(files->tree, path, 0644, "simulated by Graft: %s\n", sim_firmwares[i].name);
	}
}

/* --- the driver's own list of its files (since 570) --- */

static void list_file(struct graft_buffer *json, const char *name, const char *type, const char *category)
{
	graft_buffer_printf(json, "%s  { \"name\": \"%s\", \"type\": \"%s\", \"category\": [ \"%s\" ] }",
			    json->length > 2 ? ",\n" : "", name, type, category);
}

/* Returns the driver's name for the library's class. */
static const char *category_of(const struct sim_library *library)
{
	if (library->real == SIM_TEMPLATE_NVML)
		return "nvml";
	if (library->files & SIM_FILES_GRAPHICS)
		return "glx";
	if (library->files & SIM_FILES_VIDEO)
		return "video";
	return library->files & SIM_FILES_NGX ? "ngx" : "cuda";
}

static void list_library(struct files *files, const struct sim_library *library, struct graft_buffer *json)
{
	char name[128];

	(void)snprintf(name, sizeof(name), "%s.so.%s", library->stem,
		       library->version ? library->version : files->version);
	list_file(json, name, "LIB", category_of(library));
	if (!library->soname || (library->version && strcmp(library->version, library->soname) == 0))
		return;
	(void)snprintf(name, sizeof(name), "%s.so.%s", library->stem, library->soname);
	list_file(json, name, "SYMLINK", category_of(library));
}

static void create_file_list(struct files *files)
{
	const struct sim_topology *topology = files->tree->topology;
	struct graft_buffer json = { .max = 0 };
	char path[256];

	if (!topology->filelist)
		return;
	graft_buffer_string(&json, "[\n");
	for (size_t i = 0; i < sim_n_libraries; i++) {
		if (sim_library_wanted(&sim_libraries[i], topology))
			list_library(files, &sim_libraries[i], &json);
	}
	for (size_t i = 0; i < sim_n_binaries; i++) {
		if (sim_binary_wanted(&sim_binaries[i], topology))
			list_file(&json, sim_binaries[i].name, "BINARY", "utils");
	}
	for (size_t i = 0; i < sim_n_firmwares; i++) {
		if (!sim_firmware_wanted(&sim_firmwares[i], topology))
			continue;
		(void)snprintf(path, sizeof(path), "firmware/%s", sim_firmwares[i].name);
		list_file(&json, path, "FIRMWARE", "firmware");
	}
	graft_buffer_string(&json, "\n]\n");
	(void)snprintf(path, sizeof(path), "%s/nvidia/files.d/sandboxutils-filelist.json", files->places->share);
	sim_parts_buffer(files->tree, path, 0644, &json);
}

static void create_links(struct sim_tree *tree)
{
	static const struct {
		const char *path, *target;
	} links[] = { { "/bin", "usr/bin" },
		      { "/sbin", "usr/sbin" },
		      { "/lib", "usr/lib" },
		      { "/lib64", "usr/lib64" },
		      { "/var/run", "../run" } };

	for (size_t i = 0; i < GRAFT_COUNT(links); i++)
		sim_tree_link(tree, links[i].path, links[i].target);
	sim_tree_directory(tree, "/usr/lib64", 0755);
	sim_tree_directory(tree, "/usr/sbin", 0755);
	sim_tree_directory(tree, "/run", 0755);
	sim_tree_directory(tree, "/tmp", 01777);
}

static void create_cache(struct files *files)
{
	struct graft_buffer bytes = { .max = 0 };

	if (!files->places->has_cache)
		return;
	sim_tree_text(files->tree, "/etc/ld.so.conf", 0644, "%s\n%s\n", files->places->libraries,
		      files->places->libraries_32);
	/* The arena has failed if an entry could not be added. */
	bytes.failed = graft_arena_failed(files->tree->topology->arena);
	if (!bytes.failed)
		sim_cache_write(files->cache, files->n_cache, &bytes);
	sim_parts_buffer(files->tree, "/etc/ld.so.cache", 0644, &bytes);
}

void sim_create_files(struct sim_tree *tree, const struct sim_places *places)
{
	struct files *files = graft_arena_alloc(tree->topology->arena, sizeof(*files));
	struct graft_error err;

	if (!files) {
		(void)graft_fail_memory(&err);
		sim_tree_fail(tree, &err);
		return;
	}
	*files = (struct files){ .tree = tree, .places = places, .version = tree->topology->driver };
	sim_topology_data(tree->topology, &files->data);
	create_links(tree);
	if (tree->topology->layout == SIM_LAYOUT_WSL2) {
		create_wsl(files);
	} else if (tree->topology->layout == SIM_LAYOUT_TEGRA) {
		create_tegra(files);
	} else {
		place_libraries(files);
		create_programs(files);
		create_firmware(files);
		sim_create_graphics(tree, places);
		create_file_list(files);
	}
	create_cache(files);
}
