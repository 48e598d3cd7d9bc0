/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri: what containers get through NRI on the hosts of this directory: each row of the table, as the edits that an engine gets or the message
 * that the pod's events show, compared with nri/NAME. The edits are written as a CDI device.
 *
 *	nri FOLDER [--update]
 */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/read.h"
#include "formats/cdi/cdi_write.h"
#include "kubernetes/nri_container.h"

#define TEN(x) x "," x "," x "," x "," x "," x "," x "," x "," x "," x
#define EIGHT(n)                                                                                                    \
	"nvidia.com/gpu=" n "0,nvidia.com/gpu=" n "1,nvidia.com/gpu=" n "2,nvidia.com/gpu=" n "3,nvidia.com/gpu=" n \
	"4,nvidia.com/gpu=" n "5,nvidia.com/gpu=" n "6,nvidia.com/gpu=" n "7"
#define MAX 6

struct row {
	const char *name, *host, *namespace_, *handler;
	const char *annotations[MAX], *env[MAX]; /* "KEY=VALUE" */
	const char *mounts[MAX];                 /* destinations of mounts of /dev/null */
	const char *nodes[MAX], *cdi[MAX];       /* devices that it has, names of CDI devices that the engine gives */
	const char *given[MAX];                  /* by the kubelet */
	const char *allowed[MAX];
	const char *environment, *refused; /* NULL: the defaults */
	const char *root;                  /* the driver root on the host, where it is not that of the inventory */
	bool hardened;                     /* accept-nvidia-visible-devices-envvar-when-unprivileged = false */
	bool mounts_on;                    /* accept-nvidia-visible-devices-as-volume-mounts = true */
};

#define GPU0 "GPU-00000000-0000-0000-0000-000000000000"
#define ALL  "management.nvidia.com/gpu=all"

static const struct row rows[] = {
	{ .name = "two-gpus", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=0,3" }, .given = { "@0", "@3" } },
	{ .name = "share", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=@1" }, .given = { "@1::2" } },
	{ .name = "mount",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices" },
	  .mounts = { "/var/run/nvidia-container-devices/2" },
	  .given = { "@2" } },
	{ .name = "images-own", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=all" } },
	{ .name = "other-vendor", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=all" }, .given = { "FPGA-1" } },
	{ .name = "more-than-given", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=0,1" }, .given = { "@0" } },
	{ .name = "all-of-two",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=all" },
	  .given = { "@2", "@5::1" } },
	{ .name = "all-of-old-image", .host = "dgx-h100", .env = { "CUDA_VERSION=12.6" }, .given = { "@0" } },
	{ .name = "all-by-mount",
	  .host = "dgx-h100",
	  .mounts = { "/var/run/nvidia-container-devices/all" },
	  .given = { "@0" } },
	/* A device plugin with cdi-cri: containerd has applied the specification before it asks. */
	{ .name = "injected",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=all" },
	  .nodes = { "/dev/nvidiactl", "/dev/nvidia0" },
	  .mounts = { "/lib/libcuda.so.550.1", "/lib/libnvidia-ml.so.550.1" },
	  .given = { "@0" } },
	{ .name = "injected-another",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=9" },
	  .nodes = { "/dev/nvidia0" },
	  .mounts = { "/lib/libcuda.so.550.1", "/lib/libnvidia-ml.so.550.1" },
	  .given = { "@0" } },
	{ .name = "injected-by-name",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=all" },
	  .cdi = { "k8s.device-plugin.nvidia.com/gpu=@0" },
	  .given = { "@0" } },
	/* The device plugin's pass-device-specs: nodes alone; and a channel by CDI, the GPU by variable. */
	{ .name = "passed-nodes",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=@0" },
	  .nodes = { "/dev/nvidiactl", "/dev/nvidia0" },
	  .mounts = { "/mine/libcuda.so.1" },
	  .cdi = { "k8s.device-plugin.nvidia.com/imex-channel=0" },
	  .given = { "@0" } },
	/* Ordinary images without a GPU start, whatever they say. */
	{ .name = "foreign-kind-of-image", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=example.com/a=b" } },
	{ .name = "thousands-of-image",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=" TEN(TEN(TEN(TEN("0")))) } },
	{ .name = "foreign-kind-with-gpu",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=example.com/a=b" },
	  .given = { "@0" } },
	{ .name = "another-than-given", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=@1" }, .given = { "@0" } },
	{ .name = "unknown-device", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=9" }, .given = { "@0" } },
	{ .name = "all-by-kind",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=runtime.nvidia.com/gpu=all" },
	  .given = { "@0" } },
	{ .name = "one-by-kind",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=runtime.nvidia.com/gpu=@0" },
	  .given = { "@0" } },
	{ .name = "given-unknown", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=all" }, .given = { "GPU-x" } },
	{ .name = "void", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=void" }, .given = { "@0" } },
	{ .name = "nothing", .host = "dgx-h100", .env = { "PATH=/bin" }, .given = { "@0" } },
	{ .name = "runtime-class",
	  .host = "dgx-h100",
	  .handler = "nvidia",
	  .env = { "NVIDIA_VISIBLE_DEVICES=@0" },
	  .given = { "@0" } },
	{ .name = "accept", .host = "dgx-h100", .env = { "NVIDIA_VISIBLE_DEVICES=1" }, .environment = "accept" },
	{ .name = "ignore",
	  .host = "dgx-h100",
	  .env = { "NVIDIA_VISIBLE_DEVICES=@0" },
	  .given = { "@0" },
	  .environment = "ignore" },
	{ .name = "mig", .host = "a100-mig-nvml", .env = { "NVIDIA_VISIBLE_DEVICES=1:0" }, .given = { "@1:0" } },
	{ .name = "mig-of-another",
	  .host = "a100-mig-nvml",
	  .env = { "NVIDIA_VISIBLE_DEVICES=1:1" },
	  .given = { "@1:0" } },
	{ .name = "gpu-of-a-mig", .host = "a100-mig-nvml", .env = { "NVIDIA_VISIBLE_DEVICES=1" }, .given = { "@1:0" } },
	{ .name = "mig-and-its-gpu",
	  .host = "a100-mig-nvml",
	  .env = { "NVIDIA_VISIBLE_DEVICES=1:0,1" },
	  .given = { "@1:0" } },
	{ .name = "mig-of-a-gpu", .host = "a100-mig-nvml", .env = { "NVIDIA_VISIBLE_DEVICES=1:2" }, .given = { "@1" } },
	{ .name = "migs-of-two",
	  .host = "a100-mig-nvml",
	  .env = { "NVIDIA_VISIBLE_DEVICES=1:0,2:1" },
	  .given = { "@1:0", "@2:1" } },
	{ .name = "all-of-a-mig",
	  .host = "a100-mig-nvml",
	  .env = { "NVIDIA_VISIBLE_DEVICES=all" },
	  .given = { "@1:0" } },
	{ .name = "channels",
	  .host = "gb200",
	  .env = { "NVIDIA_VISIBLE_DEVICES=@0", "NVIDIA_IMEX_CHANNELS=0", "NVIDIA_GDRCOPY=enabled" },
	  .given = { "@0" } },
	{ .name = "channels-hardened",
	  .host = "gb200",
	  .env = { "NVIDIA_VISIBLE_DEVICES=@0", "NVIDIA_IMEX_CHANNELS=0", "NVIDIA_GDRCOPY=enabled" },
	  .given = { "@0" },
	  .hardened = true },
	{ .name = "channels-by-mount",
	  .host = "gb200",
	  .env = { "NVIDIA_VISIBLE_DEVICES=@0" },
	  .mounts = { "/var/run/nvidia-container-devices/imex/0" },
	  .given = { "@0" },
	  .mounts_on = true },
	{ .name = "channels-by-mount-off",
	  .host = "gb200",
	  .env = { "NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices" },
	  .mounts = { "/var/run/nvidia-container-devices/@0", "/var/run/nvidia-container-devices/imex/0" },
	  .given = { "@0" } },
	{ .name = "channels-by-both-off",
	  .host = "gb200",
	  .env = { "NVIDIA_VISIBLE_DEVICES=@0", "NVIDIA_IMEX_CHANNELS=0" },
	  .mounts = { "/var/run/nvidia-container-devices//imex/1" },
	  .given = { "@0" } },
	{ .name = "driver-root",
	  .host = "driver-container",
	  .env = { "NVIDIA_VISIBLE_DEVICES=@0" },
	  .given = { "@0" },
	  .root = "/somewhere/else" },
	{ .name = "tegra", .host = "orin", .env = { "NVIDIA_VISIBLE_DEVICES=all" }, .environment = "accept" },
	{ .name = "no-driver", .host = NULL, .env = { "NVIDIA_VISIBLE_DEVICES=all" }, .given = { GPU0 } },
	{ .name = "management",
	  .host = "dgx-h100",
	  .namespace_ = "graft-system",
	  .annotations = { "nvidia.cdi.k8s.io/pod=" ALL } },
	{ .name = "management-of-container",
	  .host = "t4",
	  .namespace_ = "monitoring",
	  .annotations = { "nvidia.cdi.k8s.io/container.main=" ALL, "nvidia.cdi.k8s.io/pod=a b" } },
	{ .name = "management-foreign", .host = "dgx-h100", .annotations = { "nvidia.cdi.k8s.io=" ALL } },
	{ .name = "management-skipped",
	  .host = "dgx-h100",
	  .annotations = { "nvidia.cdi.k8s.io=" ALL },
	  .refused = "skip" },
	{ .name = "management-allowed",
	  .host = "t4",
	  .annotations = { "nvidia.cdi.k8s.io=" ALL },
	  .allowed = { "management.nvidia.com/gpu:default" } },
	{ .name = "management-one",
	  .host = "t4",
	  .namespace_ = "graft-system",
	  .annotations = { "nvidia.cdi.k8s.io=management.nvidia.com/gpu=0" } },
	{ .name = "too-many-names",
	  .host = "dgx-h100",
	  .annotations = { "nvidia.cdi.k8s.io/pod=" EIGHT("1") "," EIGHT("2") "," EIGHT("3") "," EIGHT("4") "," EIGHT(
	      "5") "," EIGHT("6") "," EIGHT("7") "," EIGHT("8") "," EIGHT("9") } },
	{ .name = "foreign-kind", .host = "dgx-h100", .annotations = { "nvidia.cdi.k8s.io/pod=nvidia.com/gpu=all" } },
	{ .name = "mixed-kinds",
	  .host = "dgx-h100",
	  .namespace_ = "graft-system",
	  .annotations = { "nvidia.cdi.k8s.io/pod=" ALL ",nvidia.com/gpu=0" } },
	{ .name = "kind-that-begins-alike",
	  .host = "dgx-h100",
	  .namespace_ = "graft-system",
	  .annotations = { "nvidia.cdi.k8s.io/pod=management.nvidia.com/gpus=all" } },
	{ .name = "no-namespace",
	  .host = "dgx-h100",
	  .namespace_ = "",
	  .annotations = { "nvidia.cdi.k8s.io/pod=" ALL } },
	{ .name = "blanks",
	  .host = "dgx-h100",
	  .namespace_ = "graft-system",
	  .annotations = { "nvidia.cdi.k8s.io/pod=" ALL ", " ALL } },
	{ .name = "allowed-without-spec",
	  .host = "dgx-h100",
	  .annotations = { "nvidia.cdi.k8s.io/pod=nvidia.com/gpu=0" },
	  .allowed = { "nvidia.com/gpu:*" } },
};

static int read_host(const char *folder, const char *host, struct graft_arena *arena, struct graft_inventory **ret,
		     struct graft_error *err)
{
	const char *path, *text;
	size_t length;

	if (!host) {
		*ret = graft_inventory_new();
		return *ret ? 0 : -1;
	}
	path = graft_arena_printf(arena, "%s/hosts/%s/inventory.json", folder, host);
	return graft_read_input(path, (size_t)16 << 20, arena, &text, &length) < 0
		   ? graft_fail(err, GRAFT_NOT_FOUND, 0, "%s", path)
		   : graft_inventory_read(text, length, ret, err);
}

/* "@3" is the UUID of GPU 3, "@0:1" of a MIG device; the rest of a text stays. */
static const char *expand(const char *text, const struct graft_inventory *inventory, struct graft_arena *arena)
{
	const char *at = strchr(text, '@'), *uuid;
	unsigned int gpu = 0, mig = 0;
	int n = 0, n_gpu = 0;

	if (!at)
		return text;
	if (sscanf(at, "@%u:%u%n", &gpu, &mig, &n) == 2 && n > 0) {
		uuid = inventory->gpus[gpu].mig_devices[mig].uuid.value;
	} else {
		(void)sscanf(at, "@%u%n", &gpu, &n_gpu);
		n = n_gpu;
		uuid = inventory->gpus[gpu].uuid.value;
	}
	return graft_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, uuid, at + n);
}

static void list(const char *const from[MAX], const struct graft_inventory *inventory, struct graft_arena *arena,
		 struct graft_strings *to)
{
	for (size_t i = 0; i < MAX && from[i]; i++)
		(void)graft_arena_push_string(arena, &to->items, &to->n, expand(from[i], inventory, arena));
}

static void make_container(const struct row *row, const struct graft_inventory *inventory, struct graft_arena *arena,
			   struct graft_nri_container *container)
{
	struct graft_strings env = { .n = 0 };

	*container = (struct graft_nri_container){ .namespace_ = row->namespace_ ? row->namespace_ : "default",
						   .pod = "pod",
						   .uid = "uid",
						   .name = "main",
						   .handler = row->handler ? row->handler : "" };
	list(row->env, inventory, arena, &env);
	container->env = env.items;
	container->n_env = env.n;
	for (size_t i = 0; i < MAX && row->annotations[i]; i++) {
		struct graft_oci_annotation *item = graft_arena_push(arena, &container->pod_annotations,
								     &container->n_pod_annotations, sizeof(*item));
		size_t length = strcspn(row->annotations[i], "=");

		item->key = graft_arena_strndup(arena, row->annotations[i], length);
		item->value = row->annotations[i] + length + 1;
	}
	list(row->nodes, inventory, arena, &container->nodes);
	list(row->cdi, inventory, arena, &container->cdi_names);
	for (size_t i = 0; i < MAX && row->mounts[i]; i++) {
		struct graft_oci_mount *mount = graft_arena_push(arena, &container->mounts, &container->n_mounts,
								 sizeof(*mount));

		*mount = (struct graft_oci_mount){ .destination = expand(row->mounts[i], inventory, arena),
						   .source = "/dev/null",
						   .type = "bind" };
	}
}

static int decide(const struct row *row, const struct graft_nri_policy *policy, const struct graft_nri_host *host,
		  struct graft_arena *arena, struct graft_buffer *out, struct graft_error *err)
{
	struct graft_nri_answer answer = { .plan = NULL };
	struct graft_cdi_device device = { .name = "main" };
	const struct graft_cdi_spec spec = {
		.version = "0.8.0", .vendor = "example.com", .class_ = "nri", .devices = &device, .n_devices = 1
	};
	struct graft_nri_container container;
	struct graft_strings given = { .n = 0 };
	struct graft_nri_demand demand;
	int rc;

	make_container(row, host->inventory, arena, &container);
	list(row->given, host->inventory, arena, &given);
	rc = graft_nri_read(policy, &container, NULL, arena, &demand, err);
	if (rc == 0)
		rc = graft_nri_decide(policy, host, &given, &demand, NULL, arena, &answer, err);
	/* The host is read again for a device that it lacks, and the same is asked for once more. */
	if (rc < 0 && err->status == GRAFT_UNKNOWN_DEVICE) {
		graft_nri_answer_done(&answer);
		graft_error_clear(err);
		rc = graft_nri_decide(policy, host, &given, &demand, NULL, arena, &answer, err);
	}
	device.edits = answer.edits;
	if (rc == 0 && demand.kind == GRAFT_NRI_NOTHING)
		graft_buffer_string(out, "nothing\n");
	else if (rc == 0)
		rc = graft_cdi_spec_write(&spec, GRAFT_CDI_JSON, out, err);
	graft_nri_answer_done(&answer);
	return rc;
}

static int run_row(const char *folder, const struct row *row, struct graft_arena *arena, struct graft_buffer *out)
{
	static const char *const others[] = { "monitoring" };
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_strings allowed = { .n = 0 };
	struct graft_config config;
	char text[sizeof(err.msg) + sizeof(err.ctx)];
	struct graft_nri_policy policy = { .config = &config,
					   .management_kind = "management.nvidia.com/gpu",
					   .own_namespace = "graft-system",
					   .management_namespaces = others,
					   .n_management_namespaces = 1,
					   .hook_path = "/usr/bin/nvidia-cdi-hook" };
	struct graft_nri_host host = { .inventory = NULL };
	int rc = graft_config_defaults(NULL, arena, &config, &err);

	if (rc == 0)
		rc = read_host(folder, row->host, arena, &inventory, &err);
	if (rc == 0) {
		list(row->allowed, inventory, arena, &allowed);
		config.nri.allowed = allowed;
		config.nri.environment = row->environment ? row->environment : config.nri.environment;
		config.nri.refused = row->refused ? row->refused : config.nri.refused;
		config.accept_envvar_unprivileged = !row->hardened;
		config.accept_volume_mounts = row->mounts_on;
		policy.driver_root = row->root;
		policy.driver_root_seen = row->root ? inventory->root : NULL;
		host.inventory = inventory;
		rc = decide(row, &policy, &host, arena, out, &err);
	}
	if (rc < 0)
		graft_buffer_printf(out, "refused: %s. %s\n", graft_error_text(&err, text, sizeof(text)),
				    graft_error_hint(&err));
	(void)graft_inventory_free(inventory);
	return graft_buffer_failed(out) ? -1 : 0;
}

static bool is_kept(const char *path, const struct graft_buffer *out, bool update, struct graft_arena *arena)
{
	const char *text;
	size_t length;
	FILE *file;

	if (update && (file = fopen(path, "we"))) {
		(void)fwrite(graft_buffer_text(out), 1, out->length, file);
		return fclose(file) == 0;
	}
	return graft_read_input(path, (size_t)16 << 20, arena, &text, &length) == 0 && length == out->length &&
	       memcmp(text, graft_buffer_text(out), length) == 0;
}

int main(int argc, char **argv)
{
	bool update = argc == 3 && strcmp(argv[2], "--update") == 0;
	int failures = 0;

	printf("1..%zu\n", GRAFT_COUNT(rows));
	for (size_t i = 0; argc >= 2 && i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
		struct graft_buffer out = { .max = 0 };
		char path[4096];
		bool well;

		(void)snprintf(path, sizeof(path), "%s/nri/%s", argv[1], rows[i].name);
		well = arena && run_row(argv[1], &rows[i], arena, &out) == 0 && is_kept(path, &out, update, arena);
		printf("%sok %zu - %s\n", well ? "" : "not ", i + 1, rows[i].name);
		if (!well)
			printf("# %s\n", graft_buffer_text(&out));
		failures += !well;
		graft_buffer_done(&out);
		(void)graft_arena_free(arena);
	}
	return failures > 0;
}
