/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_kernel: the kernel's view of the driver: loaded and installed modules, the devices on the
 * PCI bus and their drivers, the driver's parameters. Reads only text files of /proc, /sys and the
 * module tree.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "doctor/look.h"
#include "formats/procfs.h"

#define PCI_DEVICES   "/sys/bus/pci/devices"
#define NVIDIA_VENDOR 0x10de
#define CLASS_DISPLAY 0x03
#define CLASS_BRIDGE  0x0680
#define SECURE_BOOT   "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* --- modules --- */

static const struct {
	const char *name, *part; /* name in the kernel; what follows "nvidia" in the file name */
} modules[] = {
	{ "nvidia", "" },
	{ "nvidia_uvm", "-uvm" },
	{ "nvidia_modeset", "-modeset" },
	{ "nvidia_drm", "-drm" },
};

/*
 * Matches "nvidia-uvm.ko.xz"; packages of Debian and Ubuntu insert a variant:
 * "nvidia-current-uvm.ko".
 */
static bool is_module_file(const char *name, size_t length, const char *part)
{
	static const char first[] = "nvidia", end[] = ".ko";
	static const char *const variants[] = { "-current", "-tesla", "-legacy" };
	const char *stop = name + length;

	if (length <= sizeof(first) - 1 || strncmp(name, first, sizeof(first) - 1) != 0)
		return false;
	name += sizeof(first) - 1;
	for (size_t i = 0; i < GRAFT_COUNT(variants); i++) {
		size_t n = strlen(variants[i]);

		if ((size_t)(stop - name) < n || strncmp(name, variants[i], n) != 0)
			continue;
		name += n;
		if (name + 1 < stop && name[0] == '-' && isdigit((unsigned char)name[1])) {
			for (name++; name < stop && isalnum((unsigned char)*name);)
				name++;
		}
	}
	if ((size_t)(stop - name) < strlen(part) + sizeof(end) - 1 || strncmp(name, part, strlen(part)) != 0)
		return false;
	name += strlen(part);
	return strncmp(name, end, sizeof(end) - 1) == 0;
}

/* Finds the file of a module in modules.dep, whose lines are "path: paths it needs". */
static const char *find_module_file(struct graft_health_look *look, const char *list, const char *part)
{
	for (const char *line = list; line && *line != '\0';) {
		size_t length = strcspn(line, ":\n"), name = length;
		const char *next = strchr(line, '\n');

		while (name > 0 && line[name - 1] != '/')
			name--;
		if (is_module_file(line + name, length - name, part))
			return graft_arena_printf(look->arena, "/lib/modules/%s/%.*s", look->health->kernel.release,
						  (int)length, line);
		line = next ? next + 1 : NULL;
	}
	return NULL;
}

/* Whether the module is in /proc/modules or, if built in, in /sys/module. */
static bool is_module_listed(struct graft_health_look *look, const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = list; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			return true;
	}
	return graft_health_exists(look, graft_arena_printf(look->scratch, "/sys/module/%s", name));
}

static struct graft_health_module *add_module(struct graft_health_look *look, const char *name, bool loaded)
{
	struct graft_health_kernel *kernel = &look->health->kernel;
	struct graft_health_module *module = graft_arena_push(look->arena, &kernel->modules, &kernel->n_modules,
							      sizeof(*module));
	const char *path = graft_arena_printf(look->scratch, "/sys/module/%s/version", name);

	if (!module || !path)
		return NULL;
	module->name = name;
	module->loaded = loaded;
	module->version = loaded ? graft_health_read_word(look, path) : NULL;
	return module;
}

static void look_at_kernel_modules(struct graft_health_look *look)
{
	struct graft_health_kernel *kernel = &look->health->kernel;
	const char *loaded = "", *installed = NULL, *path;
	size_t length;

	(void)graft_health_read_file(look, "/proc/modules", &loaded, &length);
	path = graft_arena_printf(look->scratch, "/lib/modules/%s/modules.dep", kernel->release);
	kernel->modules_listed = path && graft_health_read_file(look, path, &installed, &length) == 0;
	for (size_t i = 0; i < GRAFT_COUNT(modules); i++) {
		struct graft_health_module *module = add_module(look, modules[i].name,
								is_module_listed(look, loaded, modules[i].name));

		if (module && kernel->modules_listed)
			module->file = find_module_file(look, installed, modules[i].part);
	}
	if (is_module_listed(look, loaded, "nouveau"))
		(void)add_module(look, "nouveau", true);
}

/* --- the bus --- */

static unsigned long read_hexadecimal(struct graft_health_look *look, const char *directory, const char *name)
{
	const char *path = graft_arena_printf(look->scratch, "%s/%s", directory, name), *text;
	size_t length;

	if (!path || graft_health_read_file(look, path, &text, &length) < 0)
		return 0;
	return strtoul(text, NULL, 16);
}

static void look_at_function(struct graft_health_look *look, const char *bus_id)
{
	struct graft_health_kernel *kernel = &look->health->kernel;
	const char *directory = graft_arena_printf(look->scratch, PCI_DEVICES "/%s", bus_id), *driver;
	struct graft_health_pci *pci;
	unsigned long class_;

	if (!directory || read_hexadecimal(look, directory, "vendor") != NVIDIA_VENDOR)
		return;
	class_ = read_hexadecimal(look, directory, "class");
	if (class_ >> 16 != CLASS_DISPLAY && class_ >> 8 != CLASS_BRIDGE)
		return;
	pci = graft_arena_push(look->arena, &kernel->pci, &kernel->n_pci, sizeof(*pci));
	if (!pci)
		return;
	pci->bus_id = graft_arena_strdup(look->arena, bus_id);
	pci->bridge = class_ >> 8 == CLASS_BRIDGE;
	driver = graft_arena_printf(look->scratch, "%s/driver", directory);
	driver = driver ? graft_health_read_link(look, driver) : NULL;
	pci->driver = driver ? graft_path_name(driver) : NULL;
}

static void look_at_bus(struct graft_health_look *look)
{
	const char **names;
	size_t n;

	if (graft_health_list(look, PCI_DEVICES, &names, &n) < 0)
		return;
	look->health->kernel.pci_listed = true;
	for (size_t i = 0; i < n; i++)
		look_at_function(look, names[i]);
}

/* --- parameters --- */

static void look_at_parameters(struct graft_health_look *look)
{
	struct graft_health_kernel *kernel = &look->health->kernel;
	struct graft_key_value *items;
	const char *text, *value;
	size_t length, n;

	if (graft_survey_read_proc(&look->survey, GRAFT_PROC_DRIVER "/params", &text, &length) < 0 ||
	    graft_procfs_key_values(text, length, look->scratch, &items, &n) < 0)
		return;
	value = graft_key_value_find(items, n, "DeviceFileMode");
	if (value) {
		kernel->has_file_mode = true;
		kernel->file_mode = (uint32_t)strtoul(value, NULL, 10) & 07777u;
	}
	value = graft_key_value_find(items, n, "ModifyDeviceFiles");
	kernel->modifies_nodes = value && strcmp(value, "1") == 0;
}

/* The variable has four bytes of attributes, followed by one of data. */
static bool has_secure_boot(struct graft_health_look *look)
{
	const char *bytes;
	size_t length;

	return graft_health_read_file(look, SECURE_BOOT, &bytes, &length) == 0 && length == 5 && bytes[4] == 1;
}

void graft_health_look_kernel(struct graft_health_look *look)
{
	struct graft_health_kernel *kernel = &look->health->kernel;
	struct utsname names;

	kernel->release = graft_arena_strdup(look->arena, uname(&names) == 0 ? names.release : "unknown");
	kernel->systemd = graft_health_exists(look, "/run/systemd/system");
	kernel->secure_boot = has_secure_boot(look);
	look_at_kernel_modules(look);
	look_at_bus(look);
	look_at_parameters(look);
}
