/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of hosts that no topology has; golden-kube-labels has the rest. */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "kubernetes/kube_labels.h"

static struct graft_arena *arena;
static char warned[512];

/* One host, which each test changes as it likes. */
static struct graft_gpu gpus[3];
static struct graft_mig_device migs[3];
static struct graft_nvml_gpu nvml_gpus[3];
static struct graft_nvml_mig nvml_migs[3];
static struct graft_pci_place places[3];
static struct graft_kept_vgpu vgpus[1];
static struct graft_inventory inventory;
static struct graft_kept_facts kept;
static struct graft_pci_tree tree;
static struct graft_kube_label_facts facts;

static void keep_warning(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)snprintf(warned, sizeof(warned), "%s", message);
}

static const struct graft_log log_ = { .write = keep_warning, .max = GRAFT_LOG_WARN };

static int setup(void **state)
{
	static const char *const ids[] = { "00000000:10:00.0", "00000000:11:00.0", "00000000:12:00.0" };
	static const char *const uuids[] = { "GPU-0", "GPU-1", "GPU-2" };

	arena = graft_arena_new((size_t)16 << 20);
	warned[0] = '\0';
	for (size_t i = 0; i < 3; i++) {
		gpus[i] = (struct graft_gpu){ .index = (uint32_t)i,
					      .bus_id = ids[i],
					      .uuid = { uuids[i], "procfs" },
					      .model = { "NVIDIA A100-SXM4-40GB", "procfs" } };
		migs[i] = (struct graft_mig_device){ .index = (uint32_t)i,
						     .gi = (uint32_t)i + 7,
						     .uuid = { "MIG-0", "nvml" },
						     .profile = { "1g.5gb", "nvml" } };
		nvml_migs[i] = (struct graft_nvml_mig){ .gi = (uint32_t)i + 7,
							.has_size = true,
							.memory_mib = 4864,
							.multiprocessors = 14,
							.gi_slices = 1,
							.ci_slices = 1 };
		nvml_gpus[i] = (struct graft_nvml_gpu){ .index = (uint32_t)i,
							.bus_id = ids[i],
							.has_memory = true,
							.memory_mib = 40960,
							.has_arch = true,
							.arch_major = 8,
							.migs = nvml_migs,
							.n_migs = 3 };
		places[i] = (struct graft_pci_place){ .bus_id = ids[i], .class_ = 0x030200 };
	}
	inventory = (struct graft_inventory){ .platform = GRAFT_PLATFORM_NATIVE,
					      .driver_version = { "535.161.08", "procfs" },
					      .gpus = gpus,
					      .n_gpus = 3 };
	kept = (struct graft_kept_facts){ .nvml = { .cuda_version = 12020, .gpus = nvml_gpus, .n_gpus = 3 },
					  .vgpus = vgpus };
	tree = (struct graft_pci_tree){ .gpus = places, .n_gpus = 3 };
	facts = (struct graft_kube_label_facts){ &inventory, &kept, &tree, "Box\n", 0 };
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena = graft_arena_free(arena);
	return 0;
}

static int make(const char *config_text, struct graft_kube_labels *labels, struct graft_error *err)
{
	struct graft_kube_config config;

	graft_kube_config_default(&config);
	if (graft_kube_config_parse("config", config_text, strlen(config_text), NULL, arena, &config, err) < 0)
		fail_msg("%s", err->msg);
	return graft_kube_labels(&config, &facts, &log_, arena, labels, err);
}

/* Returns the values of labels, "-" for one that is not there, with blanks between; or the error. */
static const char *labels_of(const char *config_text, const char *const *names)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_labels labels;
	const char *text = "";

	if (make(config_text, &labels, &err) < 0)
		return graft_arena_strdup(arena, err.msg);
	for (; *names; names++) {
		const char *value = "-";

		for (size_t i = 0; i < labels.n_items; i++) {
			if (strcmp(labels.items[i].name + strlen(GRAFT_KUBE_PREFIX), *names) == 0)
				value = labels.items[i].value;
		}
		text = graft_arena_printf(arena, "%s%s%s", text, text[0] != '\0' ? " " : "", value);
	}
	return text;
}

#define LABELS(config, ...) labels_of(config, (const char *const[]){ __VA_ARGS__, NULL })
#define GPU_LABELS          "gpu.product", "gpu.count", "gpu.replicas", "gpu.sharing-strategy"

static void test_values(void **state)
{
	static const struct {
		const char *text, *value;
	} rows[] = {
		{ "Standard PC (Q35 + ICH9, 2009)\n", "Standard-PC-Q35-ICH9-2009" },
		{ "  two\t blanks  ", "two-blanks" },
		{ "ends with a dot.", "ends-with-a-dot" },
		{ "-_.x_1.-", "x_1" },
		{ "M\xc3\xbcller", "Mller" },
		{ "", "" },
		{ "()", "" },
		{ "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789",
		  "0123456789-0123456789-0123456789-0123456789-0123456789-01234567" },
		{ "0123456789 0123456789 0123456789 0123456789 0123456789 0123456 89",
		  "0123456789-0123456789-0123456789-0123456789-0123456789-0123456" },
		{ NULL, "unknown" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		facts.machine_type = rows[i].text;
		assert_string_equal(LABELS("", "gpu.machine"), rows[i].value);
	}
}

static void test_families(void **state)
{
	static const struct {
		uint32_t major, minor;
		const char *family;
	} rows[] = {
		{ 1, 3, "tesla" },
		{ 2, 0, "fermi" },
		{ 3, 7, "kepler" },
		{ 4, 0, "undefined" },
		{ 5, 2, "maxwell" },
		{ 6, 1, "pascal" },
		{ 7, 0, "volta" },
		{ 7, 2, "volta" },
		{ 7, 5, "turing" },
		{ 8, 0, "ampere" },
		{ 8, 7, "ampere" },
		{ 8, 9, "ada-lovelace" },
		{ 9, 0, "hopper" },
		{ 10, 3, "blackwell" },
		{ 11, 0, "undefined" },
		{ 12, 1, "blackwell" },
		{ 13, 0, "rubin" },
		{ 14, 0, "undefined" },
		{ 4000000000u, 1, "undefined" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		nvml_gpus[0].arch_major = rows[i].major;
		nvml_gpus[0].arch_minor = rows[i].minor;
		assert_string_equal(LABELS("", "gpu.family"), rows[i].family);
	}
}

static void test_versions(void **state)
{
	static const char *const names[] = { "cuda.driver.major",
					     "cuda.driver.minor",
					     "cuda.driver.rev",
					     "cuda.driver-version.full",
					     "cuda.runtime.major",
					     "cuda.runtime-version.full",
					     NULL };

	assert_string_equal(labels_of("", names), "535 161 08 535.161.08 12 12.2");
	/* Two parts, as drivers of Windows have; NVML has not answered. */
	inventory.driver_version.value = "551.61";
	facts.kept = NULL;
	assert_string_equal(labels_of("", names), "551 61  551.61 - -");
	inventory.driver_version.value = NULL;
	assert_string_equal(labels_of("", names), "- - - - - -");
	assert_string_equal(LABELS("", "gfd.timestamp"), "-");
	facts.timestamp = 1795479068;
	assert_string_equal(LABELS("", "gfd.timestamp"), "1795479068");
}

static void test_modes(void **state)
{
	assert_string_equal(LABELS("", "gpu.mode"), "compute");
	places[0].class_ = places[1].class_ = places[2].class_ = 0x030000;
	assert_string_equal(LABELS("", "gpu.mode"), "graphics");
	places[2].class_ = 0x030200;
	assert_string_equal(LABELS("", "gpu.mode"), "unknown");
	facts.tree = NULL;
	assert_string_equal(LABELS("", "gpu.mode"), "unknown");
}

static void test_several_models(void **state)
{
	gpus[1].model.value = "Tesla T4";
	nvml_gpus[1].memory_mib = 15360;
	assert_string_equal(LABELS("", GPU_LABELS, "gpu.memory"), "Tesla-T4 1 1 none 15360");
	assert_string_equal(warned, "GPUs of several models: the labels describe Tesla T4, not NVIDIA A100-SXM4-40GB");
	gpus[1].excluded = true;
	assert_string_equal(LABELS("", GPU_LABELS), "NVIDIA-A100-SXM4-40GB 2 1 none");
	inventory.n_gpus = 0;
	assert_string_equal(LABELS("", GPU_LABELS, "gpu.mode", "mig.capable"), "- - - - - false");
}

static void test_cliques(void **state)
{
	assert_string_equal(LABELS("", "gpu.clique"), "-");
	nvml_gpus[1].clique = "999a544d-e212-26e9-a48b-9a8c0149312e.1";
	assert_string_equal(LABELS("", "gpu.clique"), "999a544d-e212-26e9-a48b-9a8c0149312e.1");
	nvml_gpus[2].clique = "999a544d-e212-26e9-a48b-9a8c0149312e.2";
	assert_string_equal(LABELS("", "gpu.clique"), "-");
	assert_string_equal(
	    warned,
	    "omitting the clique label: the GPUs are in several cliques, 999a544d-e212-26e9-a48b-9a8c0149312e.1 and "
	    "999a544d-e212-26e9-a48b-9a8c0149312e.2");
}

static void test_vgpus(void **state)
{
	static const char *const names[] = { "vgpu.present", "vgpu.host-driver-version", "vgpu.host-driver-branch",
					     NULL };

	assert_string_equal(labels_of("", names), "false - -");
	vgpus[0] = (struct graft_kept_vgpu){ "00000000:10:00.0", "470.63", "r470_00" };
	kept.n_vgpus = 1;
	assert_string_equal(labels_of("", names), "true 470.63 r470_00");
	facts.kept = NULL;
	assert_string_equal(labels_of("", names), "false - -");
}

static void test_sharing(void **state)
{
	assert_string_equal(LABELS("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}", GPU_LABELS),
			    "NVIDIA-A100-SXM4-40GB-SHARED 3 2 time-slicing");
	assert_string_equal(
	    LABELS("sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 2}]}}", GPU_LABELS,
		   "gpu.shared.count"),
	    "NVIDIA-A100-SXM4-40GB 3 2 time-slicing -");
	assert_string_equal(LABELS("sharing: {mps: {resources: [{name: gpu, replicas: 4, rename: gpu.part}]}}",
				   GPU_LABELS, "mps.capable"),
			    "NVIDIA-A100-SXM4-40GB 3 4 mps true");
	/* Another resource is none of the GPUs' business. */
	assert_string_equal(
	    LABELS("sharing: {timeSlicing: {resources: [{name: mig-1g.5gb, replicas: 2}]}}", GPU_LABELS),
	    "NVIDIA-A100-SXM4-40GB 3 1 none");
	/* Some devices are shared: under the same name that says it, under another name as a resource of its own. */
	assert_string_equal(
	    LABELS("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: [GPU-1]}]}}", GPU_LABELS),
	    "NVIDIA-A100-SXM4-40GB-SHARED 3 2 time-slicing");
	assert_string_equal(
	    LABELS("sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 2, devices: 2}]}}",
		   GPU_LABELS, "gpu.shared.product", "gpu.shared.count", "gpu.shared.replicas",
		   "gpu.shared.sharing-strategy"),
	    "NVIDIA-A100-SXM4-40GB 3 1 none NVIDIA-A100-SXM4-40GB 2 2 time-slicing");
	assert_string_equal(
	    LABELS("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3, devices: [0], rename: gpu.a}, "
		   "{name: gpu, replicas: 5, devices: [2], rename: gpu.b}]}}",
		   "gpu.replicas", "gpu.a.count", "gpu.a.replicas", "gpu.b.replicas"),
	    "1 1 3 5");
}

#define SINGLE "flags: {migStrategy: single}\n"
#define MIXED  "flags: {migStrategy: mixed}\n"

static void split(size_t gpu, size_t n)
{
	gpus[gpu].mig_capable = gpus[gpu].mig_enabled = true;
	gpus[gpu].mig_devices = migs;
	gpus[gpu].n_mig_devices = n;
}

static void test_single(void **state)
{
	static const char *const names[] = { GPU_LABELS,     "gpu.memory", "gpu.slices.gi", "gpu.multiprocessors",
					     "mig.strategy", NULL };
	const char *invalid = "NVIDIA-A100-SXM4-40GB-MIG-INVALID 0 0  0 - - single";

	assert_string_equal(labels_of(SINGLE, names), "NVIDIA-A100-SXM4-40GB 3 1 none 40960 - - single");
	split(0, 1);
	assert_string_equal(labels_of(SINGLE, names), invalid);
	assert_non_null(strstr(warned, "some GPUs are in MIG mode, others are not"));
	split(1, 0);
	split(2, 2);
	assert_string_equal(labels_of(SINGLE, names), invalid);
	assert_non_null(strstr(warned, "a GPU in MIG mode has no MIG devices"));
	split(1, 1);
	assert_string_equal(labels_of(SINGLE, names), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb 4 1 none 4864 1 14 single");
	assert_string_equal(labels_of(SINGLE "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}", names),
			    "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED 4 2 time-slicing 4864 1 14 single");
	migs[1].profile.value = "1g.5gb+me";
	assert_string_equal(labels_of(SINGLE, names), invalid);
	assert_non_null(strstr(warned, "MIG devices are of several kinds"));
	migs[1].profile.value = NULL;
	assert_string_equal(labels_of(SINGLE, names), invalid);
	assert_non_null(strstr(warned, "NVML does not report the profile of a MIG device"));
}

static void test_mixed(void **state)
{
	split(0, 3);
	migs[1].profile.value = "1g.10gb+me";
	migs[2].profile.value = "1c.3g.20gb";
	assert_string_equal(LABELS(MIXED, GPU_LABELS, "gpu.slices.gi", "mig-1g.5gb.count", "mig-1g.5gb.memory",
				   "mig-1g.10gb.me.product", "mig-1c.3g.20gb.count"),
			    "NVIDIA-A100-SXM4-40GB 3 1 none - 1 4864 NVIDIA-A100-SXM4-40GB-MIG-1g.10gb.me 1");
	split(1, 0);
	split(2, 0);
	/* What is shared are MIG devices, never a GPU in MIG mode. */
	assert_string_equal(
	    LABELS(MIXED
		   "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}, {name: mig-1g.5gb, replicas: 3}]}}",
		   GPU_LABELS, "mig-1g.5gb.product", "mig-1g.5gb.replicas"),
	    "NVIDIA-A100-SXM4-40GB 3 0 none NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED 3");
	assert_string_equal(
	    LABELS("flags: {migStrategy: none}", GPU_LABELS, "mig-1g.5gb.count", "mig.strategy", "mig.capable"),
	    "NVIDIA-A100-SXM4-40GB 3 0 none - - true");
	/* NVML has said no more than the profile. */
	nvml_migs[0].has_size = false;
	assert_string_equal(LABELS(MIXED, "mig-1g.5gb.count", "mig-1g.5gb.memory"), "1 -");
	assert_string_equal(warned, "omitting the labels for the size of MIG devices of NVIDIA "
				    "A100-SXM4-40GB-MIG-1g.5gb: NVML does not report it");
}

static void test_mps(void **state)
{
	const char *config = "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}";

	assert_string_equal(LABELS("", "mps.capable"), "false");
	assert_string_equal(LABELS(config, "mps.capable", GPU_LABELS), "true NVIDIA-A100-SXM4-40GB-SHARED 3 2 mps");
	split(1, 1);
	assert_string_equal(LABELS(config, "mps.capable"),
			    "MPS is configured, but GPU 1 is in MIG mode: MPS shares whole GPUs");
	gpus[1].excluded = true;
	assert_string_equal(LABELS(config, "mps.capable"), "true");
}

static void test_lines(void **state)
{
	struct graft_kube_label items[] = { { "nvidia.com/a", "1" }, { "nvidia.com/b", "" } };
	const struct graft_kube_labels labels = { items, 2 };
	struct graft_buffer out = { .max = 0 };

	graft_kube_labels_write(&labels, &out);
	assert_string_equal(graft_buffer_text(&out), "nvidia.com/a=1\nnvidia.com/b=\n");
	graft_buffer_done(&out);
}

static void test_no_memory(void **state)
{
	struct graft_kube_labels labels;
	struct graft_kube_config config;

	split(0, 3);
	graft_kube_config_default(&config);
	config.flags.mig_strategy = GRAFT_KUBE_MIG_MIXED;
	assert_true(allocation_each(own, err, graft_kube_labels(&config, &facts, NULL, own, &labels, &err)) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_values),         TEST(test_families), TEST(test_versions), TEST(test_modes),
		TEST(test_several_models), TEST(test_cliques),  TEST(test_vgpus),    TEST(test_sharing),
		TEST(test_single),         TEST(test_mixed),    TEST(test_mps),      TEST(test_lines),
		TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
