/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_kernel: judges the bottom of the chain: whether there are GPUs, whether the driver's kernel
 * module runs, and why not.
 */
#include <string.h>

#include "base/strings.h"
#include "doctor/judge_state.h"
#include "formats/procfs.h"

/* --- GPUs --- */

static size_t count_on_bus(const struct graft_health *health, const char *driver)
{
	size_t n = 0;

	for (size_t i = 0; i < health->kernel.n_pci; i++) {
		const struct graft_health_pci *pci = &health->kernel.pci[i];

		n += !pci->bridge && (!driver || (pci->driver && strcmp(pci->driver, driver) == 0));
	}
	return n;
}

/*
 * Whether the driver lists this GPU. The inventory has eight digits of PCI domain
 * ("00000000:1b:00.0"), the bus four or more.
 */
static bool is_driven(const struct graft_inventory *inventory, const char *bus_id)
{
	struct graft_pci_address on_bus, listed;

	for (size_t i = 0; graft_pci_parse(bus_id, &on_bus) && i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].bus_id && graft_pci_parse(inventory->gpus[i].bus_id, &listed) &&
		    graft_pci_compare(&on_bus, &listed) == 0)
			return true;
	}
	return false;
}

/* Reports GPUs on the bus that a running driver does not list. */
static void judge_lost_gpus(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	for (size_t i = 0; i < health->kernel.n_pci; i++) {
		const struct graft_health_pci *pci = &health->kernel.pci[i];

		if (pci->bridge || is_driven(&health->inventory, pci->bus_id))
			continue;
		if (pci->driver && strcmp(pci->driver, "nvidia") != 0) {
			graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_WARNING, pci->bus_id,
					"is used by the kernel driver %s, so containers cannot use it", pci->driver)
			    ->remedy =
			    "Unless that is intended, release the GPU from that driver (vfio-pci: remove it from "
			    "'options vfio-pci ids=...' in /etc/modprobe.d) and reboot.";
			continue;
		}
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, pci->bus_id,
				"this GPU is on the PCI bus, but the driver does not list it: it has failed, or the "
				"driver does not support it")
		    ->remedy =
		    "See 'dmesg | grep -iE \"nvrm|xid\"' (Xid 79: fallen off the bus). Power the host off and "
		    "on; if the GPU is still missing, have it replaced.";
	}
}

/*
 * Reports GPUs that were left out of the inventory, with the reason, because the driver's files
 * about them could not be understood.
 */
static void judge_omitted_gpus(struct graft_judge *judge)
{
	const struct graft_inventory *inventory = &judge->health->inventory;

	for (size_t i = 0; i < inventory->n_omissions; i++) {
		const struct graft_omission *omission = &inventory->omissions[i];

		if (graft_starts_with(omission->what, "/proc/driver/nvidia/gpus/"))
			graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, omission->what,
					"the driver has lost this GPU: %s", omission->why)
			    ->remedy = "See 'dmesg | grep -iE \"nvrm|xid\"', then power the host off and on.";
	}
}

static void judge_kernel_gpus(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const struct graft_inventory *inventory = &health->inventory;
	size_t n = graft_judge_count_gpus(judge), on_bus = count_on_bus(health, NULL);

	if (n > 0)
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "%zu GPU%s", n, n == 1 ? "" : "s"), "%s%s%s",
				inventory->gpus[0].model.value ? inventory->gpus[0].model.value : "of unknown model",
				inventory->simulated ? " (simulated)" : "",
				health->nvml.lists_gpus ? "; only NVML lists them, procfs does not" : "");
	if (graft_judge_is_native(judge) && n > 0 && health->kernel.pci_listed && on_bus > 0)
		judge_lost_gpus(judge);
	judge_omitted_gpus(judge);
	if (n > 0 || !graft_judge_is_native(judge))
		return;
	if (health->kernel.pci_listed && on_bus == 0 && inventory->n_gpus == 0) {
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, "PCI bus", "no NVIDIA GPU was found")
		    ->remedy =
		    "Compare 'lspci -d 10de:'. A virtual machine needs a GPU that is passed through to it; in "
		    "a container, run the doctor on its host.";
		return;
	}
	if (count_on_bus(health, "vfio-pci") == on_bus && on_bus > 0)
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, "PCI bus",
				"all GPUs are reserved for virtual machines (vfio-pci)")
		    ->remedy = "Remove their ids from 'options vfio-pci ids=...' in /etc/modprobe.d and reboot.";
	else if (graft_judge_has_kernel_driver(judge))
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, "driver",
				"is loaded, but uses none of the %zu GPU%s on the PCI bus", on_bus,
				on_bus == 1 ? "" : "s")
		    ->remedy = "See 'dmesg | grep -iE \"nvrm|xid\"': the driver may be too old or too new for the GPU.";
}

/* --- the module --- */

static const char *module_file(const struct graft_judge *judge)
{
	const struct graft_health_module *module = graft_health_find_module(judge->health, "nvidia");

	return module ? module->file : NULL;
}

#define INSTALL_DRIVER                                                                                             \
	"Install the NVIDIA driver (Debian: add 'contrib non-free non-free-firmware' to apt's sources, then 'apt " \
	"update && apt install nvidia-driver'; Ubuntu: 'ubuntu-drivers install'; others: "                         \
	"https://www.nvidia.com/drivers), then reboot."

/* Reports why the module is not loaded; the most certain sign comes first. */
static void judge_absent_module(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const char *library = health->inventory.library_version.value;
	const char *release = health->kernel.release ? health->kernel.release : "unknown";
	struct graft_finding *finding;

	if (!library && !module_file(judge)) {
		graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_BROKEN, "nvidia",
				"driver not loaded: no NVIDIA driver is installed%s",
				graft_health_find_module(health, "nouveau")
				    ? "; the kernel's own driver nouveau uses the GPUs"
				    : "")
		    ->remedy = judge->health->loader.other_root
				   ? "Start the container that provides the driver, or see its log if it is running."
				   : INSTALL_DRIVER;
		return;
	}
	if (graft_health_find_module(health, "nouveau")) {
		finding = graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_BROKEN, "nvidia",
					  "driver not loaded: the kernel's own driver nouveau uses the GPUs");
		finding->remedy =
		    "Write 'blacklist nouveau' and 'options nouveau modeset=0' into "
		    "/etc/modprobe.d/nouveau.conf, rebuild the initial RAM disk ('update-initramfs -u' or "
		    "'dracut --force'), and reboot.";
	} else if (health->kernel.modules_listed && !module_file(judge)) {
		finding = graft_judge_add(
		    judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_BROKEN, "nvidia",
		    "driver not loaded: there is no module nvidia for kernel %s; the libraries have "
		    "version %s",
		    release, library);
		finding->remedy =
		    "Install the headers of the running kernel and run 'dkms autoinstall', or boot a kernel "
		    "that the driver was built for; then run 'modprobe nvidia'.";
	} else {
		finding = graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_BROKEN, "nvidia",
					  "driver not loaded%s%s%s", module_file(judge) ? ", although installed: " : "",
					  module_file(judge) ? module_file(judge) : "",
					  health->kernel.secure_boot ? "; Secure Boot is on" : "");
		finding->remedy =
		    health->kernel.secure_boot
			? "Run 'modprobe nvidia'. If the kernel rejects its key, enrol the key that signed it "
			  "('mokutil --import', then reboot), or disable Secure Boot."
			: "Run 'modprobe nvidia'; if that fails, see 'dmesg | grep -i nvidia'.";
	}
}

static void judge_uvm(struct graft_judge *judge)
{
	const struct graft_health_module *uvm = graft_health_find_module(judge->health, "nvidia_uvm");

	if (uvm && !uvm->loaded)
		graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_WARNING, "nvidia_uvm",
				"is not loaded, and CUDA needs it: 'docker run --gpus' loads it, other ways do not")
		    ->remedy = "Run 'modprobe nvidia-uvm', and to load it at every boot 'echo nvidia-uvm "
			       ">/etc/modules-load.d/nvidia-uvm.conf'.";
}

static void judge_module(struct graft_judge *judge)
{
	const struct graft_health_module *nouveau = graft_health_find_module(judge->health, "nouveau");
	const char *version = graft_judge_module_version(judge);

	if (!graft_judge_is_native(judge)) {
		graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_OK,
				graft_platform_names[judge->health->inventory.platform],
				"the driver is part of the platform");
		return;
	}
	if (!graft_judge_has_kernel_driver(judge)) {
		judge_absent_module(judge);
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_OK, "nvidia", "version %s",
			version ? version : "unknown");
	judge_uvm(judge);
	if (nouveau && nouveau->loaded)
		graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_WARNING, "nouveau",
				"is loaded as well as the NVIDIA driver, and may take GPUs from it")
		    ->remedy =
		    "Write 'blacklist nouveau' into /etc/modprobe.d/nouveau.conf, rebuild the initial RAM disk, and "
		    "reboot.";
}

void graft_judge_kernel(struct graft_judge *judge)
{
	judge_kernel_gpus(judge);
	judge_module(judge);
}
