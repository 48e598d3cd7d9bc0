/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_facts: asks, compares, reads and writes. Callers decide where the file is, and when to ask
 * again.
 */
#include "host/kept_facts.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "base/strings.h"
#include "formats/pci_vgpu.h"
#include "formats/procfs.h"
#include "host/survey.h"

#define CUDA_SONAME "libcuda.so.1"
#define SPACE_MAX   ((size_t)4096)

static const struct graft_field vgpu_fields[] = {
	GRAFT_F_STRING(struct graft_kept_vgpu, bus_id, true, "PCI address"),
	GRAFT_F_STRING(struct graft_kept_vgpu, host_driver_version, false, "of the host's driver"),
	GRAFT_F_STRING(struct graft_kept_vgpu, host_driver_branch, false, "of the host's driver"),
};
static const struct graft_record vgpu_record = { "vgpu", sizeof(struct graft_kept_vgpu), vgpu_fields,
						 GRAFT_COUNT(vgpu_fields) };
static const struct graft_field kept_fields[] = {
	GRAFT_F_U32(struct graft_kept_facts, version, true, "of this format"),
	GRAFT_F_STRING(struct graft_kept_facts, boot_id, false, "the kernel's"),
	GRAFT_F_STRING(struct graft_kept_facts, driver_version, false, "of the kernel driver"),
	GRAFT_F_STRINGS(struct graft_kept_facts, devices, "GPUs and MIG devices that the kernel driver shows"),
	{ "nvml", GRAFT_FIELD_RECORD, offsetof(struct graft_kept_facts, nvml), 0, &graft_nvml_snapshot_record, NULL, 0,
	  true, "NVML's answer" },
	GRAFT_F_U32(struct graft_kept_facts, n_asked, false, "how often, without a final answer"),
	GRAFT_F_U32(struct graft_kept_facts, asked_s, false, "when, in seconds since boot"),
	GRAFT_F_RECORDS(struct graft_kept_facts, vgpus, &vgpu_record, "GPUs that a hypervisor has made"),
};
const struct graft_record graft_kept_facts_record = { "kept_facts", sizeof(struct graft_kept_facts), kept_fields,
						      GRAFT_COUNT(kept_fields) };

/* --- of what host --- */

/*
 * A new MIG instance has a new directory. QUIRK: inode numbers are reused, but ids, position and
 * inode of a new instance rarely all equal the old ones.
 */
static int identify_mig(const struct graft_root *proc, const struct graft_gpu *gpu, const struct graft_mig_device *mig,
			struct graft_arena *arena, struct graft_kept_facts *facts, struct graft_error *err)
{
	struct stat st = { .st_ino = 0 };
	const char *text;

	if (mig->gi_caps_path && graft_root_stat(proc, mig->gi_caps_path, &st) < 0)
		st.st_ino = 0;
	text = graft_arena_printf(arena, "%s gi%u ci%u %llu", gpu->bus_id, mig->gi, mig->ci,
				  (unsigned long long)st.st_ino);
	if (!text || !graft_arena_push_string(arena, &facts->devices, &facts->n_devices, text))
		return graft_fail_memory(err);
	return 0;
}

static int identify_gpu(const struct graft_root *proc, const struct graft_gpu *gpu, struct graft_arena *arena,
			struct graft_kept_facts *facts, struct graft_error *err)
{
	const char *text = graft_arena_printf(arena, "%s %s%s", gpu->bus_id, gpu->uuid.value ? gpu->uuid.value : "-",
					      gpu->excluded ? " excluded" : "");

	if (!text || !graft_arena_push_string(arena, &facts->devices, &facts->n_devices, text))
		return graft_fail_memory(err);
	for (size_t i = 0; i < gpu->n_mig_devices; i++) {
		if (identify_mig(proc, gpu, &gpu->mig_devices[i], arena, facts, err) < 0)
			return -1;
	}
	return 0;
}

int graft_kept_identify(const struct graft_host_options *options, const struct graft_inventory *inventory,
			struct graft_arena *arena, struct graft_kept_facts *ret_facts, struct graft_error *err)
{
	auto_root struct graft_root host = GRAFT_ROOT_INIT, proc = GRAFT_ROOT_INIT;
	const char *driver = inventory->driver_version.value;

	*ret_facts = (struct graft_kept_facts){ .version = GRAFT_KEPT_VERSION };
	if (graft_root_open(&host, options->host_root ? options->host_root : "/", err) < 0 ||
	    graft_root_open(&proc, inventory->proc_root ? inventory->proc_root : "/", err) < 0 ||
	    graft_host_boot_id(&host, arena, &ret_facts->boot_id, err) < 0)
		return -1;
	ret_facts->driver_version = driver ? graft_arena_strdup(arena, driver) : NULL;
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (identify_gpu(&proc, &inventory->gpus[i], arena, ret_facts, err) < 0)
			return -1;
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* Returns what has changed, or NULL. Without a boot id nothing can be kept. */
static const char *find_kept_difference(const struct graft_kept_facts *a, const struct graft_kept_facts *b)
{
	if (a->version != b->version)
		return "another version of this file";
	if (!a->boot_id || !graft_is_same_text(a->boot_id, b->boot_id))
		return "another boot";
	if (!graft_is_same_text(a->driver_version, b->driver_version))
		return "another driver";
	if (a->n_devices != b->n_devices)
		return "other devices";
	for (size_t i = 0; i < a->n_devices; i++) {
		if (strcmp(a->devices[i], b->devices[i]) != 0)
			return "other devices";
	}
	return NULL;
}

/* --- kept --- */

int graft_kept_parse(const char *text, size_t length, const struct graft_log *log, struct graft_arena *arena,
		     struct graft_kept_facts *facts, struct graft_error *err)
{
	struct graft_kept_facts kept = { .version = 0 };
	struct graft_error why = { .status = GRAFT_OK };
	const char *difference;

	if (graft_record_read(&graft_kept_facts_record, text, length, arena, &kept, &why) < 0) {
		if (why.status == GRAFT_NO_MEMORY)
			return graft_fail_memory(err);
		graft_warn(log, "the kept facts are damaged, collecting them again: %s", why.msg);
		return 0;
	}
	difference = find_kept_difference(&kept, facts);
	if (difference) {
		graft_info(log, "the kept facts are of %s, collecting them again", difference);
		return 0;
	}
	facts->nvml = kept.nvml;
	facts->n_asked = kept.n_asked;
	facts->asked_s = kept.asked_s;
	facts->vgpus = kept.vgpus;
	facts->n_vgpus = kept.n_vgpus;
	return 1;
}

void graft_kept_write(const struct graft_kept_facts *facts, struct graft_buffer *out)
{
	graft_record_write(&graft_kept_facts_record, facts, out);
}

/* --- asked --- */

/* A board's libcuda, which is searched for only here: most programs need no list of libraries. */
static int find_kept_cuda(const struct graft_host_options *options, struct graft_arena *arena, const char **ret_path,
			  struct graft_error *err)
{
	struct graft_host_options wanted = *options;
	struct graft_inventory *inventory = NULL;

	*ret_path = NULL;
	wanted.capabilities = GRAFT_CAP_ALL;
	wanted.log = NULL;
	if (graft_host_discover(&wanted, GRAFT_NEED_LIBRARIES, &inventory, err) < 0)
		return -1;
	for (size_t i = 0; i < inventory->n_libraries && !*ret_path; i++) {
		if (strcmp(inventory->libraries[i].soname, CUDA_SONAME) == 0)
			*ret_path = graft_arena_strdup(arena, inventory->libraries[i].path);
	}
	(void)graft_inventory_free(inventory);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

static int read_vgpu(const struct graft_root *host, const char *bus_id, struct graft_arena *arena,
		     struct graft_kept_facts *facts, struct graft_error *err)
{
	const char *device = graft_pci_sysfs_name(bus_id, arena);
	const char *path = device ? graft_arena_printf(arena, "/sys/bus/pci/devices/%s/config", device) : NULL, *space;
	struct graft_kept_vgpu *slot;
	struct graft_pci_vgpu vgpu;
	size_t length;

	if (!path || graft_root_read(host, path, SPACE_MAX, arena, &space, &length) < 0 ||
	    !graft_pci_vgpu_parse(space, length, arena, &vgpu))
		return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
	slot = graft_arena_push(arena, &facts->vgpus, &facts->n_vgpus, sizeof(*slot));
	if (!slot)
		return graft_fail_memory(err);
	slot->bus_id = graft_arena_strdup(arena, bus_id);
	slot->host_driver_version = vgpu.host_driver_version;
	slot->host_driver_branch = vgpu.host_driver_branch;
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

static int read_vgpus(const struct graft_host_options *options, const struct graft_inventory *inventory,
		      struct graft_arena *arena, struct graft_kept_facts *facts, struct graft_error *err)
{
	auto_root struct graft_root host = GRAFT_ROOT_INIT;

	if (inventory->platform != GRAFT_PLATFORM_NATIVE)
		return 0;
	if (graft_root_open(&host, options->host_root ? options->host_root : "/", err) < 0)
		return -1;
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].bus_id && read_vgpu(&host, inventory->gpus[i].bus_id, arena, facts, err) < 0)
			return -1;
	}
	return 0;
}

static bool lists_mig(const struct graft_nvml_gpu *theirs, const struct graft_mig_device *mig)
{
	for (size_t i = 0; i < theirs->n_migs; i++) {
		if (theirs->migs[i].gi == mig->gi && theirs->migs[i].ci == mig->ci)
			return theirs->migs[i].uuid != NULL;
	}
	return false;
}

static void check_kept_gpu(const struct graft_gpu *gpu, struct graft_arena *arena, struct graft_nvml_snapshot *nvml)
{
	const struct graft_nvml_gpu *theirs = NULL;

	for (size_t i = 0; i < nvml->n_gpus && !theirs; i++) {
		if (nvml->gpus[i].bus_id && strcasecmp(nvml->gpus[i].bus_id, gpu->bus_id) == 0)
			theirs = &nvml->gpus[i];
	}
	if (!theirs)
		(void)graft_arena_push_string(arena, &nvml->unsettled, &nvml->n_unsettled,
					      graft_arena_printf(arena, "NVML does not list GPU %s", gpu->bus_id));
	for (size_t i = 0; theirs && i < gpu->n_mig_devices; i++) {
		const struct graft_mig_device *mig = &gpu->mig_devices[i];

		if (!lists_mig(theirs, mig))
			(void)graft_arena_push_string(
			    arena, &nvml->unsettled, &nvml->n_unsettled,
			    graft_arena_printf(arena, "NVML does not list MIG device %u:%u of GPU %s", mig->gi, mig->ci,
					       gpu->bus_id));
	}
}

/* A device that the kernel shows and NVML does not is still coming up, or has failed. */
static void check_kept_list(const struct graft_inventory *inventory, struct graft_arena *arena,
			    struct graft_nvml_snapshot *nvml)
{
	for (size_t i = 0; inventory->platform == GRAFT_PLATFORM_NATIVE && i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (gpu->bus_id && !gpu->excluded)
			check_kept_gpu(gpu, arena, nvml);
	}
}

int64_t graft_kept_wait_s(const struct graft_kept_facts *facts, int64_t now_s)
{
	int64_t delay_s = GRAFT_KEPT_FIRST_S, due_s;

	if (facts->nvml.n_unsettled == 0 || facts->n_asked >= GRAFT_KEPT_ASKS)
		return -1;
	for (uint32_t i = 1; i < facts->n_asked && delay_s < GRAFT_KEPT_LAST_S; i++)
		delay_s *= 2;
	due_s = facts->asked_s + (delay_s < GRAFT_KEPT_LAST_S ? delay_s : GRAFT_KEPT_LAST_S);
	/* A clock that is behind is another one, as of a time namespace: ask now. */
	return facts->asked_s > now_s || due_s < now_s ? 0 : due_s - now_s;
}

int graft_kept_ask(const struct graft_host_options *options, const struct graft_inventory *inventory,
		   struct graft_arena *arena, struct graft_kept_facts *facts, struct graft_error *err)
{
	struct graft_nvml_question question;

	graft_nvml_prepare(options, inventory, GRAFT_NVML_EVERYTHING, &question);
	if (!question.library && inventory->platform == GRAFT_PLATFORM_TEGRA) {
		question.cuda = true;
		if (find_kept_cuda(options, arena, &question.library, err) < 0)
			return -1;
	}
	if (!question.library)
		return graft_nvml_fail_missing(question.cuda ? CUDA_SONAME : GRAFT_NVML_SONAME, err);
	facts->vgpus = NULL;
	facts->n_vgpus = 0;
	if (graft_nvml_ask(&question, arena, &facts->nvml, err) < 0)
		return -1;
	check_kept_list(inventory, arena, &facts->nvml);
	return read_vgpus(options, inventory, arena, facts, err);
}

int graft_kept_complete(const struct graft_kept_facts *facts, const struct graft_log *log,
			struct graft_inventory *inventory, struct graft_error *err)
{
	if (inventory->platform != GRAFT_PLATFORM_TEGRA || inventory->nvml_library)
		graft_nvml_take_over(&facts->nvml, GRAFT_NVML_EVERYTHING, false, log, inventory);
	return graft_arena_failed(inventory->arena) ? graft_fail_memory(err) : 0;
}
