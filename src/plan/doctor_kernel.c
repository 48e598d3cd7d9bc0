/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_kernel: judges the bottom of the chain: are there GPUs, does the driver's kernel module run, and why not. */
#include <string.h>

#include "plan/doctor_judge.h"

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

/* The inventory has eight digits of domain ("00000000:1b:00.0"), the bus four or more. */
static bool is_same_bus_id(const char *ours, const char *bus)
{
	size_t length = strlen(ours), n = strlen(bus);

	return length >= n && strcmp(ours + length - n, bus) == 0;
}

static bool is_driven(const struct graft_inventory *inventory, const char *bus_id)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].bus_id && is_same_bus_id(inventory->gpus[i].bus_id, bus_id))
			return true;
	}
	return false;
}

/* GPUs of the bus that a running driver does not list. */
static void judge_lost_gpus(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	for (size_t i = 0; i < health->kernel.n_pci; i++) {
		const struct graft_health_pci *pci = &health->kernel.pci[i];

		if (pci->bridge || is_driven(&health->inventory, pci->bus_id))
			continue;
		if (pci->driver && strcmp(pci->driver, "nvidia") != 0) {
			graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_WARNING, pci->bus_id,
					"the kernel driver '%s' has this GPU: containers cannot use it", pci->driver)
			    ->remedy = "If that is not meant: take the GPU from that driver (vfio-pci: remove it from "
				       "'options vfio-pci ids=...' in /etc/modprobe.d) and reboot.";
			continue;
		}
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, pci->bus_id,
				"this GPU is on the bus, and the driver does not have it: it has failed or fallen off "
				"the bus")
		    ->remedy = "See 'dmesg | grep -iE \"nvrm|xid\"' (Xid 79: fallen off the bus); then switch the host "
			       "off and on, or have the GPU replaced.";
	}
}

/* GPUs of which the driver says something that cannot be understood are left out of the inventory, with the reason. */
static void judge_omitted_gpus(struct graft_judge *judge)
{
	const struct graft_inventory *inventory = &judge->health->inventory;

	for (size_t i = 0; i < inventory->n_omissions; i++) {
		const struct graft_omission *omission = &inventory->omissions[i];

		if (strncmp(omission->what, "/proc/driver/nvidia/gpus/", strlen("/proc/driver/nvidia/gpus/")) == 0)
			graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, omission->what,
					"the driver has lost this GPU: %s", omission->why)
			    ->remedy = "See 'dmesg | grep -iE \"nvrm|xid\"'; then switch the host off and on.";
	}
}

static void judge_gpus(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const struct graft_inventory *inventory = &health->inventory;
	size_t n = graft_judge_count_gpus(judge), on_bus = count_on_bus(health, NULL);

	if (n > 0)
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "%zu GPU%s", n, n == 1 ? "" : "s"), "%s%s",
				inventory->gpus[0].model.value ? inventory->gpus[0].model.value : "of unknown model",
				inventory->simulated ? " (simulated)" : "");
	if (graft_judge_is_native(judge) && n > 0 && health->kernel.pci_listed && on_bus > 0)
		judge_lost_gpus(judge);
	judge_omitted_gpus(judge);
	if (n > 0 || !graft_judge_is_native(judge))
		return;
	if (health->kernel.pci_listed && on_bus == 0 && inventory->n_gpus == 0) {
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, "PCI bus", "there is no NVIDIA GPU on it")
		    ->remedy = "See 'lspci -d 10de:'. In a virtual machine: pass a GPU through to it. In a container: "
			       "look at its host.";
		return;
	}
	if (count_on_bus(health, "vfio-pci") == on_bus && on_bus > 0)
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, "PCI bus",
				"all GPUs are reserved for virtual machines (vfio-pci)")
		    ->remedy = "Remove their ids from 'options vfio-pci ids=...' in /etc/modprobe.d and reboot.";
	else if (graft_judge_has_kernel_driver(judge))
		graft_judge_add(judge, GRAFT_CHECK_GPU, GRAFT_LEVEL_BROKEN, "driver",
				"it runs and has no GPU, although the bus has %zu", on_bus)
		    ->remedy = "See 'dmesg | grep -iE \"nvrm|xid\"': the driver may be too old or too new for the GPU.";
}

/* --- the module --- */

static const char *module_file(const struct graft_judge *judge)
{
	const struct graft_health_module *module = graft_health_find_module(judge->health, "nvidia");

	return module ? module->file : NULL;
}

/* Why the module does not run, the surest sign first. */
static void judge_absent_module(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const char *library = health->inventory.library_version.value;
	const char *release = health->kernel.release ? health->kernel.release : "unknown";
	struct graft_finding *finding;

	if (graft_health_find_module(health, "nouveau")) {
		finding = graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_BROKEN, "nvidia",
					  "driver not loaded: the kernel's own driver nouveau has the GPUs");
		finding->remedy = "Write 'blacklist nouveau' and 'options nouveau modeset=0' into "
				  "/etc/modprobe.d/nouveau.conf, renew the initial RAM disk (update-initramfs -u, or "
				  "dracut --force), reboot.";
	} else if (health->kernel.modules_listed && !module_file(judge)) {
		finding = graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_BROKEN, "nvidia",
					  "driver not loaded: kernel %s has no such module%s%s", release,
					  library ? "; the libraries are of " : "", library ? library : "");
		finding->remedy = library ? "Install the headers of the running kernel and run 'dkms autoinstall', or "
					    "boot a kernel that the driver was built for; then 'modprobe nvidia'."
					  : "Install the NVIDIA driver; then 'modprobe nvidia'.";
	} else {
		finding = graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_BROKEN, "nvidia",
					  "driver not loaded%s%s%s", module_file(judge) ? ", though installed: " : "",
					  module_file(judge) ? module_file(judge) : "",
					  health->kernel.secure_boot ? "; Secure Boot is on" : "");
		finding->remedy =
		    health->kernel.secure_boot
			? "Run 'modprobe nvidia'. If the kernel refuses its key, enrol the one it is signed "
			  "with ('mokutil --import', then reboot), or switch Secure Boot off."
			: "Run 'modprobe nvidia', and see 'dmesg | grep -i nvidia' if that fails.";
	}
}

static void judge_uvm(struct graft_judge *judge)
{
	const struct graft_health_module *uvm = graft_health_find_module(judge->health, "nvidia_uvm");

	if (uvm && !uvm->loaded)
		graft_judge_add(judge, GRAFT_CHECK_KERNEL_MODULE, GRAFT_LEVEL_BROKEN, "nvidia_uvm",
				"not loaded: NVML works without it, CUDA does not")
		    ->remedy = "Run 'modprobe nvidia-uvm', and have it loaded at boot: 'echo nvidia-uvm "
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
				"loaded beside the NVIDIA driver: it may take GPUs from it")
		    ->remedy =
		    "Write 'blacklist nouveau' into /etc/modprobe.d/nouveau.conf, renew the initial RAM disk, "
		    "reboot.";
}

void graft_judge_kernel(struct graft_judge *judge)
{
	judge_gpus(judge);
	judge_module(judge);
}
