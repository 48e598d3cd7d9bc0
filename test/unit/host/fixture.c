/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "../folder.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../unit.h"
#include "base/buffer.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"

static void collect(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct fixture *fixture = arg;
	size_t used = strlen(fixture->log);

	(void)snprintf(fixture->log + used, sizeof(fixture->log) - used, "%s\n", message);
}

void fixture_init(struct fixture *fixture)
{
	char top[] = "/tmp/graft-host-XXXXXX";

	memset(fixture, 0, sizeof(*fixture));
	if (!mkdtemp(top))
		fail_msg("mkdtemp failed");
	(void)snprintf(fixture->top, sizeof(fixture->top), "%s", top);
	(void)snprintf(fixture->root, sizeof(fixture->root), "%s/root", top);
	(void)snprintf(fixture->host, sizeof(fixture->host), "%s/host", top);
	/* The NVML child is nobody and must reach the tree. */
	assert_int_equal(chmod(fixture->top, 0755), 0);
	assert_int_equal(mkdir(fixture->root, 0755), 0);
	assert_int_equal(mkdir(fixture->host, 0755), 0);
	fixture->logger = (struct graft_log){ .write = collect, .arg = fixture, .max = GRAFT_LOG_DEBUG };
	fixture->options = (struct graft_host_options){ .root = fixture->root,
							.host_root = fixture->host,
							.nvml_uid = (uid_t)-1,
							.nvml_gid = (gid_t)-1,
							.path = "/usr/sbin:/usr/bin",
							.capabilities = GRAFT_CAP_ALL,
							.log = &fixture->logger };
}

void fixture_done(struct fixture *fixture)
{
	for (size_t i = 0; i < fixture->n_inventories; i++)
		(void)graft_inventory_free(fixture->inventories[i]);
	assert_int_equal(test_remove_folder(fixture->top), 0);
}

int fixture_set_up(void **state)
{
	static struct fixture fixture;

	fixture_init(&fixture);
	*state = &fixture;
	return 0;
}

int fixture_tear_down(void **state)
{
	fixture_done(*state);
	return 0;
}

static void full_path(const char *tree, const char *path, char *full)
{
	(void)snprintf(full, 512, "%s%s", tree, path);
	test_make_parents(AT_FDCWD, full);
}

void fixture_write_bytes(struct fixture *fixture, const char *path, const void *bytes, size_t length)
{
	char full[512];

	full_path(fixture->root, path, full);
	test_put_bytes(AT_FDCWD, full, bytes, length);
}

void fixture_write(struct fixture *fixture, const char *path, const char *text)
{
	fixture_write_bytes(fixture, path, text, strlen(text));
}

void fixture_write_host(struct fixture *fixture, const char *path, const char *text)
{
	char full[512];

	full_path(fixture->host, path, full);
	test_put(AT_FDCWD, full, text);
}

void fixture_directory(struct fixture *fixture, const char *path)
{
	char full[512];

	full_path(fixture->root, path, full);
	assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
}

void fixture_link(struct fixture *fixture, const char *target, const char *path)
{
	char full[512];

	full_path(fixture->root, path, full);
	(void)unlink(full);
	assert_int_equal(symlink(target, full), 0);
}

void fixture_remove(struct fixture *fixture, const char *path)
{
	char full[512];

	full_path(fixture->root, path, full);
	assert_int_equal(test_remove_folder(full), 0);
}

void fixture_mode(struct fixture *fixture, const char *path, mode_t mode)
{
	char full[512];

	full_path(fixture->root, path, full);
	assert_int_equal(chmod(full, mode), 0);
}

void fixture_owner(struct fixture *fixture, const char *path, uid_t uid)
{
	char full[512];

	full_path(fixture->root, path, full);
	assert_int_equal(lchown(full, uid, uid), 0);
}

bool fixture_has_nodes(void)
{
	char path[64];
	bool made;

	(void)snprintf(path, sizeof(path), "/tmp/graft-node-%d", (int)getpid());
	made = mknod(path, S_IFCHR | 0600, makedev(195, 255)) == 0;
	(void)unlink(path);
	return made;
}

void fixture_node(struct fixture *fixture, const char *path, unsigned int major, unsigned int minor, unsigned int mode)
{
	char full[512];

	full_path(fixture->root, path, full);
	assert_int_equal(mknod(full, S_IFCHR | mode, makedev(major, minor)), 0);
	assert_int_equal(chmod(full, mode), 0);
}

/* Strings of the stub: "", soname, needed; offsets are returned. */
static size_t make_strings(const struct fixture_elf *elf, char *strings, size_t *soname, size_t *needed)
{
	size_t used = 1;

	strings[0] = '\0';
	*soname = used;
	used += (size_t)snprintf(strings + used, 128, "%s", elf->soname ? elf->soname : "") + 1;
	*needed = used;
	used += (size_t)snprintf(strings + used, 128, "%s", elf->needed ? elf->needed : "") + 1;
	return used;
}

/* Generates the two classes from one text: header, three program headers, note, dynamic section, strings. */
#define MAKE_STUB(NAME, BITS, CLASS, ELF, FLAGS)                                                     \
	struct NAME {                                                                                \
		Elf##BITS##_Ehdr header;                                                             \
		Elf##BITS##_Phdr load, dynamic, note;                                                \
		uint32_t note_words[8];                                                              \
		Elf##BITS##_Dyn entries[5];                                                          \
		char strings[300];                                                                   \
	};                                                                                           \
	static size_t NAME##_make(const struct fixture_elf *elf, struct NAME *stub)                  \
	{                                                                                            \
		size_t soname, needed, n = 0, length;                                                \
                                                                                                     \
		memset(stub, 0, sizeof(*stub));                                                      \
		length = make_strings(elf, stub->strings, &soname, &needed);                         \
		memcpy(stub->header.e_ident, ELFMAG, SELFMAG);                                       \
		stub->header.e_ident[EI_CLASS] = CLASS;                                              \
		stub->header.e_ident[EI_DATA] = ELFDATA2LSB;                                         \
		stub->header.e_ident[EI_VERSION] = EV_CURRENT;                                       \
		stub->header.e_type = ET_DYN;                                                        \
		stub->header.e_machine = ELF;                                                        \
		stub->header.e_version = EV_CURRENT;                                                 \
		stub->header.e_flags = FLAGS;                                                        \
		stub->header.e_ehsize = sizeof(stub->header);                                        \
		stub->header.e_phoff = offsetof(struct NAME, load);                                  \
		stub->header.e_phentsize = sizeof(stub->load);                                       \
		stub->header.e_phnum = elf->note ? 3 : 2;                                            \
		stub->load.p_type = PT_LOAD;                                                         \
		stub->load.p_filesz = stub->load.p_memsz = sizeof(*stub);                            \
		stub->dynamic.p_type = PT_DYNAMIC;                                                   \
		stub->dynamic.p_offset = stub->dynamic.p_vaddr = offsetof(struct NAME, entries);     \
		stub->note.p_type = PT_NOTE;                                                         \
		stub->note.p_offset = stub->note.p_vaddr = offsetof(struct NAME, note_words);        \
		stub->note.p_filesz = stub->note.p_memsz = sizeof(stub->note_words);                 \
		stub->note.p_align = 4;                                                              \
		stub->note_words[0] = 4;                                                             \
		stub->note_words[1] = 16;                                                            \
		stub->note_words[2] = NT_GNU_ABI_TAG;                                                \
		memcpy(&stub->note_words[3], "GNU", 4);                                              \
		memcpy(&stub->note_words[5], elf->kernel, sizeof(elf->kernel));                      \
		stub->entries[n].d_tag = DT_STRTAB;                                                  \
		stub->entries[n++].d_un.d_ptr = offsetof(struct NAME, strings);                      \
		stub->entries[n].d_tag = DT_STRSZ;                                                   \
		stub->entries[n++].d_un.d_val = length;                                              \
		if (elf->soname) {                                                                   \
			stub->entries[n].d_tag = DT_SONAME;                                          \
			stub->entries[n++].d_un.d_val = soname;                                      \
		}                                                                                    \
		if (elf->needed) {                                                                   \
			stub->entries[n].d_tag = DT_NEEDED;                                          \
			stub->entries[n++].d_un.d_val = needed;                                      \
		}                                                                                    \
		stub->dynamic.p_filesz = stub->dynamic.p_memsz = (n + 1) * sizeof(stub->entries[0]); \
		return sizeof(*stub);                                                                \
	}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
MAKE_STUB(stub64, 64, ELFCLASS64, MACHINE_ELF, 0)
MAKE_STUB(stub32, 32, ELFCLASS32, MACHINE_ELF_32, MACHINE_FLAGS_32)
#pragma GCC diagnostic pop

void fixture_elf(struct fixture *fixture, const char *path, const struct fixture_elf *elf)
{
	struct stub64 wide;
	struct stub32 narrow;

	if (elf->bits32)
		fixture_write_bytes(fixture, path, &narrow, stub32_make(elf, &narrow));
	else
		fixture_write_bytes(fixture, path, &wide, stub64_make(elf, &wide));
}

void fixture_record(struct fixture *fixture, const char *soname, const char *path, uint32_t flags)
{
	struct fixture_record *record = &fixture->records[fixture->n_records++];

	assert_true(fixture->n_records <= sizeof(fixture->records) / sizeof(fixture->records[0]));
	(void)snprintf(record->soname, sizeof(record->soname), "%s", soname);
	(void)snprintf(record->path, sizeof(record->path), "%s", path);
	record->flags = flags;
}

void fixture_library(struct fixture *fixture, const char *dir, const char *prefix, const char *version,
		     const char *soname, uint32_t flags)
{
	struct fixture_elf elf = { .soname = soname, .bits32 = flags == graft_abi_flags_compat32() };
	char path[256], name[128];

	/* As in real drivers. */
	if (strcmp(prefix, "libnvidia-tls.so") == 0) {
		elf.note = true;
		elf.kernel[0] = 2;
		elf.kernel[1] = 3;
		elf.kernel[2] = 99;
	}
	(void)snprintf(name, sizeof(name), "%s.%s", prefix, version);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fixture_elf(fixture, path, &elf);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, soname);
	if (strcmp(name, soname) != 0)
		fixture_link(fixture, name, path);
	fixture_record(fixture, soname, path, flags);
}

void fixture_cache(struct fixture *fixture)
{
	struct graft_ldcache_record records[256];
	struct graft_ldcache cache = { .records = records, .n_records = fixture->n_records };
	struct graft_buffer out = { 0 };
	struct graft_error err;

	memset(records, 0, sizeof(records));
	for (size_t i = 0; i < fixture->n_records; i++) {
		records[i].soname = fixture->records[i].soname;
		records[i].path = fixture->records[i].path;
		records[i].flags = fixture->records[i].flags;
	}
	assert_int_equal(graft_ldcache_write(&cache, &out, &err), 0);
	fixture_write_bytes(fixture, "/etc/ld.so.cache", out.bytes, out.length);
	graft_buffer_done(&out);
}

void fixture_gpu(struct fixture *fixture, const char *bus_id, unsigned int minor, const char *uuid, const char *model)
{
	char path[256], text[512];

	(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", bus_id);
	(void)snprintf(text, sizeof(text),
		       "Model: \t\t %s\nIRQ:   \t\t 16\nGPU UUID: \t %s\nVideo BIOS: \t 92.00.45.00.03\n"
		       "Bus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n"
		       "Bus Location: \t %s\nDevice Minor: \t %u\nGPU Firmware: \t N/A\nGPU Excluded:\t No\n",
		       model, uuid, bus_id, minor);
	fixture_write(fixture, path, text);
	(void)snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
	if (fixture_has_nodes())
		fixture_node(fixture, path, 195, minor, 0666);
}

void fixture_kernel(struct fixture *fixture, const char *version)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "NVRM version: NVIDIA UNIX " MACHINE " Kernel Module  %s  Thu Feb 22 01:44:30 UTC 2024\n"
		       "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
		       version);
	fixture_write(fixture, "/proc/driver/nvidia/version", text);
	fixture_write(fixture, "/proc/driver/nvidia/params",
		      "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\n"
		      "DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n");
	fixture_write(fixture, "/proc/driver/nvidia/registry", "Binary: \"\"\n");
	fixture_write(fixture, "/proc/devices",
		      "Character devices:\n  1 mem\n195 nvidia-frontend\n195 nvidia\n195 nvidiactl\n234 nvidia-caps\n"
		      "235 nvidia-caps-imex-channels\n510 nvidia-uvm\n\nBlock devices:\n259 blkext\n");
	if (!fixture_has_nodes())
		return;
	fixture_node(fixture, "/dev/nvidiactl", 195, 255, 0666);
	fixture_node(fixture, "/dev/nvidia-modeset", 195, 254, 0666);
	fixture_node(fixture, "/dev/nvidia-uvm", 510, 0, 0666);
	fixture_node(fixture, "/dev/nvidia-uvm-tools", 510, 1, 0666);
}

void fixture_libraries(struct fixture *fixture, const char *dir, const char *version)
{
	static const struct {
		const char *prefix, *soname; /* soname NULL: the file's own name */
	} libraries[] = {
		{ "libnvidia-ml.so", "libnvidia-ml.so.1" },
		{ "libnvidia-cfg.so", "libnvidia-cfg.so.1" },
		{ "libcuda.so", "libcuda.so.1" },
		{ "libcudadebugger.so", "libcudadebugger.so.1" },
		{ "libnvidia-opencl.so", "libnvidia-opencl.so.1" },
		{ "libnvidia-ptxjitcompiler.so", "libnvidia-ptxjitcompiler.so.1" },
		{ "libnvidia-nvvm.so", "libnvidia-nvvm.so.4" },
		{ "libnvidia-gpucomp.so", NULL },
		{ "libnvidia-encode.so", "libnvidia-encode.so.1" },
		{ "libnvcuvid.so", "libnvcuvid.so.1" },
		{ "libnvidia-glcore.so", NULL },
		{ "libnvidia-tls.so", NULL },
		{ "libGLX_nvidia.so", "libGLX_nvidia.so.0" },
		{ "libEGL_nvidia.so", "libEGL_nvidia.so.0" },
	};
	char name[128];

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		(void)snprintf(name, sizeof(name), "%s.%s", libraries[i].prefix, version);
		fixture_library(fixture, dir, libraries[i].prefix, version,
				libraries[i].soname ? libraries[i].soname : name, graft_abi_flags_native());
	}
	fixture_record(fixture, "libc.so.6", "/lib/" MACHINE_TRIPLET "/libc.so.6", graft_abi_flags_native());
	fixture_record(fixture, "libGLX.so.0", "/lib/" MACHINE_TRIPLET "/libGLX.so.0", graft_abi_flags_native());
	fixture_cache(fixture);
}

const struct graft_library *fixture_find_library(const struct graft_library *list, size_t n, const char *soname)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(list[i].soname, soname) == 0)
			return &list[i];
	}
	return NULL;
}

const char *fixture_find_omission(const struct graft_inventory *inventory, const char *what)
{
	for (size_t i = 0; i < inventory->n_omissions; i++) {
		if (strcmp(inventory->omissions[i].what, what) == 0)
			return inventory->omissions[i].why;
	}
	return NULL;
}

struct graft_inventory *fixture_discover(struct fixture *fixture, unsigned int needs)
{
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { 0 };
	int fds = test_count_fds();

	if (graft_host_discover(&fixture->options, needs, &inventory, &err) < 0)
		fail_msg("discover: %s: %s", err.ctx, err.msg);
	assert_int_equal(test_count_fds(), fds);
	assert_non_null(inventory);
	assert_true(fixture->n_inventories < GRAFT_COUNT(fixture->inventories));
	fixture->inventories[fixture->n_inventories++] = inventory;
	return inventory;
}
