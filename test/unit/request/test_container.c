/* SPDX-License-Identifier: Apache-2.0 */
/* SPEC runtime-and-hook 14.4 to 14.7, 14.10 to 14.15 as rows, and what an image may try. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "request/container.h"
#include "request/container_words.h"

#define MAX_ENTRIES 9
#define DIRECTORY   "/var/run/nvidia-container-devices"
#define SUPPORTED   "compat32,compute,display,graphics,ngx,utility,video"
#define DEFAULTS    (GRAFT_CAP_COMPUTE | GRAFT_CAP_UTILITY)

/* What a test says of a container and of config.toml. */
struct input {
	const char *env[MAX_ENTRIES];
	const char *mounts[MAX_ENTRIES]; /* destinations; the source is /dev/null */
	struct graft_oci_annotation annotations[MAX_ENTRIES];
	const char *prefixes[MAX_ENTRIES];
	const char *swarm;
	const char *kinds[MAX_ENTRIES]; /* allowed-envvar-kinds; empty = the default */
	const char *cgroup;
	bool privileged, refuse_unprivileged, accept_mounts, ignore_imex, disable_require;
};

struct read {
	struct graft_arena *arena;
	struct graft_oci_spec spec;
	struct graft_config config;
	struct graft_container container;
	struct graft_oci_mount mounts[MAX_ENTRIES];
};

static const char *nvidia_kinds[] = { "nvidia.com/*", "runtime.nvidia.com/*" };

static void prepare(struct input *input, struct read *r)
{
	*r = (struct read){ .arena = graft_arena_new((size_t)4 << 20) };
	assert_non_null(r->arena);
	r->spec.env = input->env;
	while (r->spec.n_env < MAX_ENTRIES && input->env[r->spec.n_env])
		r->spec.n_env++;
	for (; r->spec.n_mounts < MAX_ENTRIES && input->mounts[r->spec.n_mounts]; r->spec.n_mounts++)
		r->mounts[r->spec.n_mounts] =
		    (struct graft_oci_mount){ .source = "/dev/null", .destination = input->mounts[r->spec.n_mounts] };
	r->spec.mounts = r->mounts;
	r->spec.annotations = input->annotations;
	while (r->spec.n_annotations < MAX_ENTRIES && input->annotations[r->spec.n_annotations].key)
		r->spec.n_annotations++;
	r->spec.cgroups_path = input->cgroup;
	r->spec.privileged = input->privileged;
	r->config.swarm_resource = input->swarm ? input->swarm : "";
	r->config.accept_envvar_unprivileged = !input->refuse_unprivileged;
	r->config.accept_volume_mounts = input->accept_mounts;
	r->config.features.ignore_imex_channel_requests = input->ignore_imex;
	r->config.disable_require = input->disable_require;
	r->config.runtime.cdi_allowed_envvar_kinds = (struct graft_strings){ nvidia_kinds, GRAFT_COUNT(nvidia_kinds) };
	if (input->kinds[0])
		r->config.runtime.cdi_allowed_envvar_kinds = (struct graft_strings){ input->kinds, 0 };
	while (input->kinds[0] && input->kinds[r->config.runtime.cdi_allowed_envvar_kinds.n])
		r->config.runtime.cdi_allowed_envvar_kinds.n++;
	r->config.runtime.cdi_annotation_prefixes.items = input->prefixes;
	while (r->config.runtime.cdi_annotation_prefixes.n < MAX_ENTRIES &&
	       input->prefixes[r->config.runtime.cdi_annotation_prefixes.n])
		r->config.runtime.cdi_annotation_prefixes.n++;
}

static void read_container(struct input *input, struct read *r)
{
	struct graft_error err = { .status = GRAFT_OK };

	prepare(input, r);
	assert_int_equal(graft_container_read(&r->spec, &r->config, true, NULL, r->arena, &r->container, &err), 0);
}

/* The words with '|' between them; "-" for none. */
static void joined(const struct graft_strings *words, char *text, size_t size)
{
	(void)snprintf(text, size, "%s", words->n > 0 ? words->items[0] : "-");
	for (size_t i = 1; i < words->n; i++)
		(void)snprintf(text + strlen(text), size - strlen(text), "|%s", words->items[i]);
}

static void expect_words(const struct graft_strings *words, const char *expected, size_t row)
{
	char text[512];

	joined(words, text, sizeof(text));
	if (strcmp(text, expected) != 0)
		fail_msg("row %zu: '%s' instead of '%s'", row, text, expected);
}

#define NVD           "NVIDIA_VISIBLE_DEVICES="
#define LIST_TOO_LONG "the list of requested devices is longer than 64 KiB"
#define DRG           "DOCKER_RESOURCE_GPUS="
#define DRGA          "DOCKER_RESOURCE_GPUS_ADDITIONAL="
#define SWARM         "DOCKER_RESOURCE_GPUS"
#define SWARM2        "DOCKER_RESOURCE_GPUS_ADDITIONAL"
#define LEGACY        "CUDA_VERSION=9.0"
#define MODERN        "NVIDIA_REQUIRE_CUDA=cuda>=9.0"

/* SPEC runtime-and-hook 14.4, 4.4 */
static void test_environment(void **state)
{
	static const struct {
		struct input input;
		const char *devices;
	} rows[] = {
		{ { .env = { NULL } }, "-" },
		{ { .env = { NVD } }, "-" },
		{ { .env = { NVD " , " } }, "-" },
		{ { .env = { NVD "void" } }, "-" },
		{ { .env = { NVD "void", DRG "GPU-1" } }, "-" },
		{ { .env = { NVD "0,void" } }, "-" },
		{ { .env = { NVD "none" } }, "none" },
		{ { .env = { NVD "0,none" } }, "none" },
		{ { .env = { NVD "none", DRG "0" } }, "none" },
		{ { .env = { NVD "all" } }, "all" },
		{ { .env = { NVD "0,all,none" } }, "all" },
		{ { .env = { NVD "0,none,all" } }, "none" },
		{ { .env = { NVD "ALL" } }, "ALL" },
		{ { .env = { NVD "GPU-12345" } }, "GPU-12345" },
		{ { .env = { NVD "GPU-12345", DRG "x", LEGACY } }, "GPU-12345" },
		{ { .env = { NVD "0, 1 ,,\t2" } }, "0|1|2" },
		{ { .env = { NVD "0:1,nvidia.com/gpu=0,MIG-GPU-a/1/2" } }, "0:1|nvidia.com/gpu=0|MIG-GPU-a/1/2" },
		{ { .env = { NVD "0,0" } }, "0" },     /* SPEC runtime-and-hook Q6 */
		{ { .env = { NVD "0,1,0" } }, "0|1" }, /* SPEC runtime-and-hook Q6 */
		{ { .env = { NVD "0", NVD "1" } }, "1" } /* the last one counts */,
		{ { .env = { LEGACY } }, "all" },
		{ { .env = { LEGACY, DRG "0" } }, "all" },
		{ { .env = { LEGACY, MODERN } }, "-" },
		{ { .env = { LEGACY, "NVIDIA_REQUIRE_CUDA=" } }, "all" },
		{ { .env = { "CUDA_VERSION=" } }, "-" },
		{ { .env = { LEGACY, NVD } }, "-" },
		{ { .env = { LEGACY, NVD "void" } }, "-" },
		{ { .env = { LEGACY, NVD "none" } }, "none" },
		{ { .swarm = SWARM, .env = { NULL } }, "-" },
		{ { .swarm = SWARM, .env = { DRG } }, "-" },
		{ { .swarm = SWARM, .env = { DRG, NVD "all" } }, "-" },
		{ { .swarm = SWARM, .env = { DRG "void" } }, "-" },
		{ { .swarm = SWARM, .env = { DRG "none" } }, "none" },
		{ { .swarm = SWARM, .env = { DRG "GPU-12345" } }, "GPU-12345" },
		{ { .swarm = SWARM, .env = { DRG "GPU-12345", LEGACY } }, "GPU-12345" },
		{ { .swarm = SWARM, .env = { LEGACY } }, "all" },
		{ { .swarm = SWARM, .env = { NVD "GPU-12345", DRG "GPU-67890" } }, "GPU-67890" },
		{ { .swarm = SWARM2, .env = { NVD "GPU-12345", DRGA "GPU-67890" } }, "GPU-67890" },
		{ { .swarm = SWARM "," SWARM2, .env = { NVD "0", DRGA "GPU-67890", DRG "MIG-12345" } },
		  "MIG-12345|GPU-67890" },
		{ { .swarm = SWARM "," SWARM2, .env = { NVD "0", DRGA "GPU-67890" } }, "GPU-67890" },
		{ { .swarm = " NOT_X , X ,", .env = { NVD "all", "X=GPU1,GPU2" } }, "GPU1|GPU2" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct read r;

		read_container(&input, &r);
		expect_words(&r.container.devices, rows[i].devices, i);
		assert_int_equal(r.container.wants_devices, r.container.devices.n > 0);
		assert_int_equal(r.container.origin,
				 r.container.wants_devices ? GRAFT_ORIGIN_ENVIRONMENT : GRAFT_ORIGIN_NONE);
		(void)graft_arena_free(r.arena);
	}
}

/* SPEC runtime-and-hook 14.5 */
static void test_mounts(void **state)
{
	static const struct {
		struct input input;
		const char *source; /* of the first mount; NULL = /dev/null */
		const char *devices, *channels;
	} rows[] = {
		{ { .mounts = { NULL } }, NULL, "-", "-" },
		{ { .mounts = { DIRECTORY "/GPU0" } }, "/not/dev/null", "-", "-" },
		{ { .mounts = { DIRECTORY "/GPU0" } }, "dev/null", "-", "-" },
		{ { .mounts = { DIRECTORY "/GPU0" } }, "/dev//./x/../null", "GPU0", "-" },
		{ { .mounts = { "/other/prefix/GPU0" } }, NULL, "-", "-" },
		{ { .mounts = { DIRECTORY } }, NULL, "-", "-" },
		{ { .mounts = { DIRECTORY "/" } }, NULL, "-", "-" },
		{ { .mounts = { DIRECTORY "-other/GPU0" } }, NULL, "-", "-" }, /* SPEC runtime-and-hook Q7 */
		{ { .mounts = { DIRECTORY "/../x/GPU0" } }, NULL, "-", "-" },
		{ { .mounts = { "/../var//run/./nvidia-container-devices/GPU0/" } }, NULL, "GPU0", "-" },
		{ { .mounts = { DIRECTORY "/GPU0", DIRECTORY "/GPU1", DIRECTORY "/GPU0" } }, NULL, "GPU0|GPU1", "-" },
		{ { .mounts = { DIRECTORY "/GPU0-MIG0/0/1", DIRECTORY "/GPU1-MIG0/0/1" } },
		  NULL,
		  "GPU0-MIG0/0/1|GPU1-MIG0/0/1",
		  "-" },
		{ { .mounts = { DIRECTORY "/GPU0", DIRECTORY "/nvidia.com/gpu=all", DIRECTORY "/GPU1" } },
		  NULL,
		  "GPU0|nvidia.com/gpu=all|GPU1",
		  "-" },
		{ { .mounts = { DIRECTORY "/GPU0", DIRECTORY "/imex/0", DIRECTORY "/GPU1" } }, NULL, "GPU0|GPU1", "0" },
		{ { .mounts = { DIRECTORY "/imex/all", DIRECTORY "/imex/3" } }, NULL, "-", "all|3" },
		{ { .mounts = { DIRECTORY "/imex" } }, NULL, "imex", "-" },
		{ { .mounts = { DIRECTORY "/cdi/nvidia.com/gpu/0", DIRECTORY "/cdi/nvidia.com/gpu/1" } },
		  NULL,
		  "nvidia.com/gpu=0|nvidia.com/gpu=1",
		  "-" },
		{ { .mounts = { DIRECTORY "/cdi/nvidia.com/gpu=0" } }, NULL, "nvidia.com/gpu=0", "-" },
		{ { .mounts = { DIRECTORY "/cdi/v/c/x" } }, NULL, "v/c=x", "-" }, /* SPEC runtime-and-hook Q23 */
		{ { .mounts = { DIRECTORY "/cdi/nvidia.com" } }, NULL, "-", "-" },
		{ { .mounts = { DIRECTORY "/cdi/nvidia.com/gpu" } }, NULL, "-", "-" },
		{ { .mounts = { DIRECTORY "/cdi/nvidia.com/gpu/0/1" } }, NULL, "-", "-" },
		{ { .mounts = { DIRECTORY "/cdi/nvidia.com/gpu=0/1" } }, NULL, "-", "-" },
		{ { .mounts = { DIRECTORY "/void" } }, NULL, "void", "-" },
		{ { .mounts = { "relative" } }, NULL, "-", "-" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct graft_error err = { .status = GRAFT_OK };
		struct read r;

		input.accept_mounts = true;
		prepare(&input, &r);
		if (rows[i].source)
			r.mounts[0].source = rows[i].source;
		assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), 0);
		expect_words(&r.container.devices, rows[i].devices, i);
		expect_words(&r.container.imex_channels, rows[i].channels, i);
		assert_int_equal(r.container.origin,
				 r.container.wants_devices ? GRAFT_ORIGIN_MOUNTS : GRAFT_ORIGIN_NONE);
		(void)graft_arena_free(r.arena);
	}
}

static void test_mount_without_paths(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct input input = { .accept_mounts = true, .mounts = { DIRECTORY "/GPU0", DIRECTORY "/GPU1" } };
	struct read r;

	prepare(&input, &r);
	r.mounts[0].source = NULL;
	r.mounts[1].destination = NULL;
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), 0);
	assert_false(r.container.wants_devices);
	(void)graft_arena_free(r.arena);
}

/* SPEC runtime-and-hook 14.6 */
static void test_precedence(void **state)
{
#define MOUNTED DIRECTORY "/GPU0", DIRECTORY "/GPU1"
	static const struct {
		struct input input;
		const char *devices;
	} rows[] = {
		{ { .mounts = { MOUNTED },
		    .env = { NVD "GPU2,GPU3" },
		    .refuse_unprivileged = true,
		    .accept_mounts = true },
		  "GPU0|GPU1" },
		{ { .env = { NVD "GPU0,GPU1" }, .refuse_unprivileged = true, .accept_mounts = true }, "-" },
		{ { .env = { NVD "GPU0,GPU1" },
		    .privileged = true,
		    .refuse_unprivileged = true,
		    .accept_mounts = true },
		  "GPU0|GPU1" },
		{ { .env = { NVD "GPU0,GPU1" }, .accept_mounts = true }, "GPU0|GPU1" },
		{ { .mounts = { MOUNTED }, .env = { NVD "GPU2,GPU3" } }, "GPU2|GPU3" },
		{ { .mounts = { MOUNTED }, .env = { NVD "GPU2,GPU3" }, .refuse_unprivileged = true }, "-" },
		{ { .swarm = SWARM, .env = { DRG "GPU-12345" }, .refuse_unprivileged = true, .accept_mounts = true },
		  "-" },
		{ { .swarm = SWARM, .env = { DRG "GPU-12345" }, .accept_mounts = true }, "GPU-12345" },
		{ { .swarm = SWARM "," SWARM2,
		    .env = { DRG "GPU-1", DRGA "GPU-2" },
		    .privileged = true,
		    .refuse_unprivileged = true,
		    .accept_mounts = true },
		  "GPU-1|GPU-2" },
		{ { .env = { LEGACY }, .refuse_unprivileged = true }, "-" },
		/* annotations come first, and are not mixed with the others */
		{ { .mounts = { MOUNTED },
		    .env = { NVD "GPU2" },
		    .accept_mounts = true,
		    .prefixes = { "p/" },
		    .annotations = { { "p/a", "GPU9" } } },
		  "GPU9" },
		{ { .env = { NVD "GPU2" }, .prefixes = { "p/" }, .annotations = { { "q/a", "GPU9" } } }, "GPU2" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct read r;

		read_container(&input, &r);
		expect_words(&r.container.devices, rows[i].devices, i);
		(void)graft_arena_free(r.arena);
	}
}

/* SPEC runtime-and-hook 14.7; mapping to a kind is the modes' matter */
static void test_annotations(void **state)
{
	static const struct {
		struct input input;
		const char *devices;
	} rows[] = {
		{ { .prefixes = { "not-prefix/" }, .annotations = { { "prefix/foo", "example.com/device=bar" } } },
		  "-" },
		{ { .prefixes = { "prefix/" }, .annotations = { { "prefix/foo", "example.com/device=bar" } } },
		  "example.com/device=bar" },
		{ { .prefixes = { "prefix/", "another-prefix/" },
		    .annotations = { { "another-prefix/bar", "example.com/device=baz" },
				     { "prefix/foo", "example.com/device=bar" } } },
		  "example.com/device=baz|example.com/device=bar" },
		{ { .prefixes = { "prefix/", "another-prefix/" },
		    .annotations = { { "another-prefix/bar", "example.com/device=bar" },
				     { "prefix/foo", "example.com/device=bar" } } },
		  "example.com/device=bar" },
		{ { .prefixes = { "prefix/" }, .annotations = { { "prefix/foo", "device, all" } } }, "device| all" },
		{ { .prefixes = { "prefix/" }, .annotations = { { "prefix/foo", "" } } }, "none" },
		{ { .prefixes = { NULL }, .annotations = { { "prefix/foo", "0" } } }, "-" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct graft_error err = { .status = GRAFT_OK };
		struct read r;

		read_container(&input, &r);
		expect_words(&r.container.devices, rows[i].devices, i);
		/* a hook does not look at them */
		assert_int_equal(graft_container_read(&r.spec, &r.config, false, NULL, r.arena, &r.container, &err), 0);
		assert_false(r.container.wants_devices);
		(void)graft_arena_free(r.arena);
	}
}

/* SPEC runtime-and-hook 4.8, 14.15 */
static void test_channels(void **state)
{
#define IMEX "NVIDIA_IMEX_CHANNELS="
	static const struct {
		struct input input;
		const char *channels;
	} rows[] = {
		{ { .env = { NULL } }, "-" },
		{ { .env = { LEGACY } }, "-" },
		{ { .env = { IMEX "3,4" } }, "3|4" },
		{ { .env = { IMEX "3,4", LEGACY } }, "3|4" },
		{ { .env = { IMEX "all" } }, "-" },
		{ { .env = { IMEX "3,all" } }, "-" },
		{ { .env = { IMEX "none" } }, "-" }, /* SPEC runtime-and-hook Q8 */
		{ { .env = { IMEX "void" } }, "-" },
		{ { .env = { IMEX "3" }, .ignore_imex = true }, "-" },
		{ { .env = { IMEX "3" }, .refuse_unprivileged = true }, "-" },
		{ { .env = { IMEX "3" }, .refuse_unprivileged = true, .privileged = true }, "3" },
		{ { .mounts = { DIRECTORY "/imex/7" }, .env = { IMEX "3" }, .accept_mounts = true }, "7" },
		{ { .mounts = { DIRECTORY "/imex/all" }, .env = { IMEX "3" }, .accept_mounts = true }, "all" },
		{ { .mounts = { DIRECTORY "/imex/7" }, .env = { IMEX "3" } }, "3" },
		{ { .mounts = { DIRECTORY "/imex/7" }, .accept_mounts = true, .ignore_imex = true }, "-" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct read r;

		read_container(&input, &r);
		expect_words(&r.container.imex_channels, rows[i].channels, i);
		(void)graft_arena_free(r.arena);
	}
}

#define GATES                                                                                              \
	"NVIDIA_GDS=enabled", "NVIDIA_MOFED=enabled", "NVIDIA_GDRCOPY=enabled", "NVIDIA_NVSWITCH=enabled", \
	    "NVIDIA_REQUIRE_JETPACK=csv-mounts=all"

static void test_other_variables(void **state)
{
	static struct input on = { .env = { GATES, NVD "0", "NVIDIA_MIG_CONFIG_DEVICES=all",
					    "NVIDIA_MIG_MONITOR_DEVICES=0", "NVIDIA_LATE_MOUNTS=false" } },
			    off = { .env = { "NVIDIA_GDS=Enabled", "NVIDIA_MOFED=1", "NVIDIA_GDRCOPY=", NVD "0",
					     "NVIDIA_REQUIRE_JETPACK=all",
					     "NVIDIA_MIG_CONFIG_DEVICES=", "NVIDIA_LATE_MOUNTS=true" } };
	struct read r;

	read_container(&on, &r);
	assert_true(r.container.no_late_mounts);
	for (size_t i = 0; i < GRAFT_GATE_MAX; i++)
		assert_true(r.container.gates[i]);
	assert_true(r.container.jetpack_csv_mounts_all);
	assert_string_equal(r.container.mig_config, "all");
	assert_string_equal(r.container.mig_monitor, "0");
	assert_int_equal(r.container.requirements.n, 0);
	(void)graft_arena_free(r.arena);
	read_container(&off, &r);
	for (size_t i = 0; i < GRAFT_GATE_MAX; i++)
		assert_false(r.container.gates[i]);
	assert_false(r.container.no_late_mounts);
	assert_false(r.container.jetpack_csv_mounts_all);
	assert_null(r.container.mig_config);
	assert_null(r.container.mig_monitor);
	assert_null(r.container.driver_capabilities);
	(void)graft_arena_free(r.arena);
}

/*
 * Whatever an image's environment adds to its GPUs counts as config.toml says, however the GPUs
 * were requested.
 */
static void test_additions(void **state)
{
	static const struct {
		struct input input;
		bool added;
	} rows[] = {
		{ { .env = { GATES, NVD "0" } }, true },
		{ { .env = { GATES } }, false }, /* no GPU, nothing to add to */
		{ { .env = { GATES, NVD "0" }, .refuse_unprivileged = true }, false },
		{ { .env = { GATES, NVD "0" }, .refuse_unprivileged = true, .privileged = true }, true },
		{ { .env = { GATES }, .mounts = { DIRECTORY "/0" }, .accept_mounts = true }, true },
		{ { .env = { GATES },
		    .mounts = { DIRECTORY "/0" },
		    .accept_mounts = true,
		    .refuse_unprivileged = true },
		  false },
		{ { .env = { GATES },
		    .mounts = { DIRECTORY "/0" },
		    .accept_mounts = true,
		    .refuse_unprivileged = true,
		    .privileged = true },
		  true },
		{ { .env = { GATES },
		    .annotations = { { "cdi.k8s.io/a", "nvidia.com/gpu=0" } },
		    .prefixes = { "cdi.k8s.io/" },
		    .refuse_unprivileged = true },
		  false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct read r;

		read_container(&input, &r);
		for (size_t gate = 0; gate < GRAFT_GATE_MAX; gate++) {
			if (r.container.gates[gate] != rows[i].added)
				fail_msg("row %zu: gate %zu", i, gate);
		}
		if (r.container.jetpack_csv_mounts_all != rows[i].added)
			fail_msg("row %zu: csv-mounts=all", i);
		(void)graft_arena_free(r.arena);
	}
}

/* The last device of a variable is refused. */
static void expect_refused_kind(const char *message, const char *entry, const char *file)
{
	const char *name_end = strchr(entry, '='), *comma = strrchr(entry, ',');
	const char *device = comma ? comma + 1 : name_end + 1;

	assert_string_printed(message,
			      "%.*s asks for the CDI device '%s': variables of containers may not name devices of the "
			      "kind '%.*s'; request it with an annotation or a volume mount, or add the kind to "
			      "nvidia-container-runtime.modes.cdi.allowed-envvar-kinds in %s",
			      (int)(name_end - entry), entry, device, (int)strcspn(device, "="), device, file);
}

/* CDI devices that a variable names; NULL: it is refused. Annotations and mounts are another's word. */
static void test_kinds(void **state)
{
#define NIC     "vendor.example/nic"
#define PODMAN  "io.podman.annotations."
#define MANAGER "io.container.manager"
	static const struct {
		struct input input;
		const char *devices;
	} rows[] = {
		{ { .env = { NVD "nvidia.com/gpu=0,nvidia.com/pva=all" } }, "nvidia.com/gpu=0|nvidia.com/pva=all" },
		{ { .env = { NVD "runtime.nvidia.com/gpu=all" } }, "runtime.nvidia.com/gpu=all" },
		{ { .env = { NVD NIC "=0" } }, NULL },
		{ { .env = { NVD "nvidia.com/gpu=0," NIC "=0" } }, NULL },
		{ { .env = { NVD "0," NIC "=0" } }, NULL },
		{ { .env = { NVD "management.nvidia.com/gpu=all" } }, NULL },
		{ { .env = { NVD "nvidia.com.example/gpu=0" } }, NULL },
		{ { .env = { NVD "evilnvidia.com/gpu=0" } }, NULL },
		{ { .env = { NVD "Nvidia.com/gpu=0" } }, NULL },
		{ { .env = { NVD NIC "=0" }, .privileged = true }, NULL },
		{ { .env = { DRG NIC "=0" }, .swarm = SWARM }, NULL },
		/* nothing of it counts, so there is nothing to refuse */
		{ { .env = { NVD NIC "=0" }, .refuse_unprivileged = true }, "-" },
		{ { .env = { NVD NIC "=0,void" } }, "-" },
		{ { .env = { NVD NIC "=0" }, .annotations = { { "p/a", NIC "=1" } }, .prefixes = { "p/" } }, NIC "=1" },
		{ { .env = { NVD NIC "=0" }, .mounts = { DIRECTORY "/cdi/" NIC "/1" }, .accept_mounts = true },
		  NIC "=1" },
		/* Podman's annotations may be the image's */
		{ { .annotations = { { MANAGER, "cri-o" }, { "p/a", NIC "=1" } },
		    .prefixes = { "p/" },
		    .cgroup = "kubepods.slice:crio:0123" },
		  NIC "=1" },
		{ { .annotations = { { MANAGER, "cri-o" }, { "p/a", NIC "=1" } },
		    .prefixes = { "p/" },
		    .cgroup = "/libpod_parent/libpod-1/kubepods/crio-0123" },
		  NIC "=1" },
		{ { .annotations = { { "p/a", "nvidia.com/gpu=1" }, { PODMAN "init", "FALSE" } },
		    .prefixes = { "p/" } },
		  "nvidia.com/gpu=1" },
		{ { .annotations = { { "p/a", NIC "=1" }, { PODMAN "init", "FALSE" } },
		    .prefixes = { "p/" },
		    .kinds = { NIC } },
		  NIC "=1" },
		{ { .annotations = { { "p/a", "nvidia.com/gpu=1" }, { PODMAN "init", "FALSE" } },
		    .prefixes = { "p/" },
		    .refuse_unprivileged = true },
		  "-" },
		/* no CDI names */
		{ { .env = { NVD "vendor.example/nic" } }, "vendor.example/nic" },
		{ { .env = { NVD "MIG-GPU-a/1/2" } }, "MIG-GPU-a/1/2" },
		/* the key replaces the default */
		{ { .env = { NVD NIC "=0" }, .kinds = { NIC } }, NIC "=0" },
		{ { .env = { NVD NIC "=0" }, .kinds = { "a.example/b", "vendor.example/*" } }, NIC "=0" },
		{ { .env = { NVD NIC "=0" }, .kinds = { "*" } }, NIC "=0" },
		{ { .env = { NVD NIC "=0" }, .kinds = { NIC "=0" } }, NULL },
		{ { .env = { NVD NIC "=0" }, .kinds = { "vendor.example" } }, NULL },
		{ { .env = { NVD NIC "=0" }, .kinds = { "vendor.example/" } }, NULL },
		{ { .env = { NVD NIC "=0" }, .kinds = { "vendor.example/ni*" } }, NULL },
		{ { .env = { NVD NIC "=0" }, .kinds = { "*/nic" } }, NULL },
		{ { .env = { NVD NIC "=0" }, .kinds = { "/*" } }, NULL },
		{ { .env = { NVD NIC "=0" }, .kinds = { "" } }, NULL },
		{ { .env = { NVD "nvidia.com/gpu=0" }, .kinds = { NIC } }, NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct graft_error err = { .status = GRAFT_OK };
		struct read r;
		int rc;

		prepare(&input, &r);
		rc = graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err);
		if ((rc == 0) != (rows[i].devices != NULL))
			fail_msg("row %zu: %s", i, rc == 0 ? "accepted" : err.msg);
		if (rc == 0) {
			expect_words(&r.container.devices, rows[i].devices, i);
		} else {
			assert_int_equal(err.status, GRAFT_INVALID);
			expect_refused_kind(err.msg, rows[i].input.env[0], "config.toml");
		}
		(void)graft_arena_free(r.arena);
	}
}

/* Variable, device, kind, key and file are in the one line that a person sees, also where the image's words are long. */
static void test_the_refusal_of_a_kind(void **state)
{
	static char entry[400];
	struct input input = { .env = { entry } };
	struct graft_error err = { .status = GRAFT_OK };
	struct read r;

	(void)snprintf(entry, sizeof(entry), NVD NIC "=0");
	prepare(&input, &r);
	r.config.file = "/etc/x.toml";
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), -1);
	expect_refused_kind(err.msg, entry, "/etc/x.toml");
	(void)graft_arena_free(r.arena);
	(void)snprintf(entry, sizeof(entry), NVD "vendor.example/c%0200d=%0100d", 0, 0);
	prepare(&input, &r);
	r.config.file = "/etc/x.toml";
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), -1);
	(void)snprintf(entry, sizeof(entry), NVD "vendor.example/c%084d", 0);
	expect_refused_kind(err.msg, entry, "/etc/x.toml");
	(void)graft_arena_free(r.arena);
}

/* What an image may set requests no channel by the name of a CDI device, either. */
static void test_channels_as_cdi_devices(void **state)
{
#define CHANNEL "nvidia.com/imex-channel=3"
#define REFUSAL(WHOSE, INSTEAD)                                                                                  \
	" asks for the CDI device '" CHANNEL "': " WHOSE " may not name IMEX channels; request it with " INSTEAD \
	"a volume mount, or set features.ignore-imex-channel-requests to false in /etc/x.toml"
#define OF_VARIABLES REFUSAL("variables of containers", "an annotation or ")
	static const struct {
		struct input input;
		const char *devices, *refusal;
	} rows[] = {
		{ { .env = { NVD CHANNEL } }, CHANNEL, NULL },
		{ { .env = { NVD CHANNEL }, .ignore_imex = true }, NULL, "NVIDIA_VISIBLE_DEVICES" OF_VARIABLES },
		{ { .env = { NVD "nvidia.com/gpu=0," CHANNEL }, .ignore_imex = true, .privileged = true },
		  NULL,
		  "NVIDIA_VISIBLE_DEVICES" OF_VARIABLES },
		{ { .env = { NVD CHANNEL }, .ignore_imex = true, .kinds = { "nvidia.com/imex-channel", "*" } },
		  NULL,
		  "NVIDIA_VISIBLE_DEVICES" OF_VARIABLES },
		{ { .env = { NVD "runtime." CHANNEL }, .ignore_imex = true },
		  NULL,
		  "NVIDIA_VISIBLE_DEVICES asks for the CDI device 'runtime." CHANNEL "': variables of containers may "
		  "not name IMEX channels; request it with an annotation or a volume mount, or set "
		  "features.ignore-imex-channel-requests to false in /etc/x.toml" },
		{ { .annotations = { { "p/a", CHANNEL }, { PODMAN "init", "FALSE" } },
		    .prefixes = { "p/" },
		    .ignore_imex = true },
		  NULL,
		  "an annotation" REFUSAL("annotations, which Podman and nerdctl also take from images,", "") },
		/* not an image's */
		{ { .annotations = { { "p/a", CHANNEL } }, .prefixes = { "p/" }, .ignore_imex = true }, CHANNEL, NULL },
		/* other kinds */
		{ { .env = { NVD "nvidia.com/gpu=imex-channel" }, .ignore_imex = true },
		  "nvidia.com/gpu=imex-channel",
		  NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct graft_error err = { .status = GRAFT_OK };
		struct read r;
		int rc;

		prepare(&input, &r);
		r.config.file = "/etc/x.toml";
		rc = graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err);
		assert_int_equal(rc, rows[i].devices ? 0 : -1);
		if (rows[i].devices)
			expect_words(&r.container.devices, rows[i].devices, i);
		else
			assert_string_equal(err.msg, rows[i].refusal);
		(void)graft_arena_free(r.arena);
	}
}

/*
 * Podman passes the annotations of an image on, and nerdctl its labels, so other kinds are refused there. An
 * image cannot hide Podman with a manager's name of its own.
 */
static void test_annotations_of_podman(void **state)
{
	static const struct {
		struct graft_oci_annotation mark;
		const char *cgroup;
	} rows[] = {
		{ { PODMAN "init", "FALSE" }, "kubepods.slice:crio:0123" },
		{ { MANAGER, "libpod" }, "machine.slice:libpod:0123" },
		{ { MANAGER, "libpod" }, "/kubepods/crio-0123" },
		{ { MANAGER, "" }, "/libpod_parent/libpod-0123" },
		{ { MANAGER, "docker" }, "/docker/0123" },
		{ { MANAGER, "cri-o" }, "machine.slice:libpod:0123" },
		{ { MANAGER, "cri-o" }, "/user.slice/libpod-payload-0123" },
		{ { MANAGER, "cri-o" }, "" },
		{ { MANAGER, "cri-o" }, NULL },
		{ { "nerdctl/namespace", "default" }, "/default/0123" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = { .annotations = { { "p/a", NIC "=1" }, rows[i].mark },
				       .prefixes = { "p/" },
				       .cgroup = rows[i].cgroup };
		struct graft_error err = { .status = GRAFT_OK };
		struct read r;

		prepare(&input, &r);
		r.config.file = "/etc/x.toml";
		assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_string_equal(
		    err.msg,
		    "an annotation asks for the CDI device '" NIC
		    "=1': annotations, which Podman and nerdctl also take "
		    "from images, may not name devices of the kind '" NIC "'; request it with a volume mount, or add "
		    "the kind to nvidia-container-runtime.modes.cdi.allowed-envvar-kinds in /etc/x.toml");
		(void)graft_arena_free(r.arena);
	}
}

/* SPEC runtime-and-hook 4.10, 14.10, 14.14 */
static void test_requirements(void **state)
{
	static const struct {
		struct input input;
		const char *requirements;
	} rows[] = {
		{ { .env = { NULL } }, "-" },
		{ { .env = { "NVIDIA_REQUIRE_JETPACK=x", "NVIDIA_REQUIRE_JETPACK_HOST_MOUNTS=y" } }, "-" },
		{ { .env = { "NVIDIA_REQUIRE_CUDA=cuda>=11.6", "NVIDIA_REQUIRE_BRAND=brand=tesla" } },
		  "cuda>=11.6|brand=tesla" },
		{ { .env = { "NVIDIA_REQUIRE_B=1", "NVIDIA_REQUIRE_A=2", "NVIDIA_REQUIRE_B=3" } }, "2|3" },
		{ { .env = { "NVIDIA_REQUIRE_A=1", "NVIDIA_REQUIRE_AB=2" } }, "1|2" },
		{ { .env = { "CUDA_VERSION=11.6", "NVIDIA_REQUIRE_BRAND=brand=tesla" } }, "brand=tesla|cuda>=11.6" },
		{ { .env = { "CUDA_VERSION=11.6", MODERN } }, "cuda>=9.0" },
		{ { .env = { "NVIDIA_REQUIRE_CUDA=" } }, "" },
		{ { .env = { MODERN, "NVIDIA_DISABLE_REQUIRE=true" } }, "-" },
		{ { .env = { MODERN, "NVIDIA_DISABLE_REQUIRE=1" } }, "-" },
		{ { .env = { "CUDA_VERSION=foo", "NVIDIA_DISABLE_REQUIRE=T" } }, "-" },
		{ { .env = { MODERN, "NVIDIA_DISABLE_REQUIRE=yes" } }, "cuda>=9.0" },
		{ { .env = { MODERN, "NVIDIA_DISABLE_REQUIRE=" } }, "cuda>=9.0" },
		{ { .env = { MODERN }, .disable_require = true }, "-" },
	};
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct input input = rows[i].input;
		struct read r;

		read_container(&input, &r);
		assert_int_equal(graft_container_legacy_requirement(&r.spec, r.arena, &r.container, &err), 0);
		expect_words(&r.container.requirements, rows[i].requirements, i);
		(void)graft_arena_free(r.arena);
	}
}

/* SPEC runtime-and-hook 14.13 */
static void test_cuda_versions(void **state)
{
	static const struct {
		const char *version, *requirement; /* NULL = refused */
	} rows[] = {
		{ "0", "cuda>=0.0" },
		{ "8", "cuda>=8.0" },
		{ "7.5", "cuda>=7.5" },
		{ "9.0.116", "cuda>=9.0" },
		{ "4294967295.4294967295.4294967295", "cuda>=4294967295.4294967295" },
		{ "1.2.99999999999999999999", "cuda>=1.2" },
		{ "v11.6", "cuda>=11.6" },
		{ "12.4.1-rc.1+build.007", "cuda>=12.4" },
		{ "12.4.1+x", "cuda>=12.4" },
		{ "foo", NULL },
		{ "foo.5.10", NULL },
		{ "9.0.116.50", NULL },
		{ "9.0.116foo", NULL },
		{ "7.foo", NULL },
		{ "9.0.bar", NULL },
		{ "9.4294967296", NULL },
		{ "99999999999999999999.0", NULL },
		{ "9.0.116.", NULL },
		{ "9..0", NULL },
		{ "9.", NULL },
		{ ".5.10", NULL },
		{ "-9", NULL },
		{ "+9", NULL },
		{ "-9.1.116", NULL },
		{ "-9.-1.-116", NULL },
		{ "09.1", NULL },
		{ "9.0.1-", NULL },
		{ "9.0.1-01", NULL },
		{ "9.0.1-a..b", NULL },
		{ "9.0-rc1", NULL },
		{ " 9.0", NULL },
		{ "v", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct input input = { .env = { NULL } };
		char entry[128];
		struct read r;
		int rc;

		(void)snprintf(entry, sizeof(entry), "CUDA_VERSION=%s", rows[i].version);
		input.env[0] = entry;
		read_container(&input, &r);
		rc = graft_container_legacy_requirement(&r.spec, r.arena, &r.container, &err);
		if ((rc == 0) != (rows[i].requirement != NULL))
			fail_msg("'%s' is %s", rows[i].version, rc == 0 ? "accepted" : "refused");
		if (rc == 0)
			expect_words(&r.container.requirements, rows[i].requirement, i);
		else
			assert_memory_equal(err.msg, "failed to get requirements",
					    strlen("failed to get requirements"));
		(void)graft_arena_free(r.arena);
	}
}

/* SPEC runtime-and-hook 14.10, 14.11 */
static void test_capabilities(void **state)
{
	static const struct {
		const char *list, *supported;
		bool legacy;
		unsigned int capabilities;
		const char *error;
	} rows[] = {
		{ NULL, SUPPORTED, true, GRAFT_CAP_ALL, NULL },
		{ NULL, SUPPORTED, false, DEFAULTS, NULL },
		{ "", SUPPORTED, true, DEFAULTS, NULL },
		{ "", SUPPORTED, false, DEFAULTS, NULL },
		{ " , ", SUPPORTED, false, DEFAULTS, NULL },
		{ "all", SUPPORTED, false, GRAFT_CAP_ALL, NULL },
		{ "video, all ,bogus", SUPPORTED, false, GRAFT_CAP_ALL, NULL },
		{ "video,display", SUPPORTED, false, GRAFT_CAP_VIDEO | GRAFT_CAP_DISPLAY, NULL },
		{ ",video", SUPPORTED, false, GRAFT_CAP_VIDEO, NULL },
		{ "video,", SUPPORTED, false, GRAFT_CAP_VIDEO, NULL },
		{ "display,,video", SUPPORTED, false, GRAFT_CAP_VIDEO | GRAFT_CAP_DISPLAY, NULL },
		{ "all", "video,display", false, GRAFT_CAP_VIDEO | GRAFT_CAP_DISPLAY, NULL },
		{ "video,display", "video,display,compute,utility", true, GRAFT_CAP_VIDEO | GRAFT_CAP_DISPLAY, NULL },
		{ "all", "video,display,compute,utility", true, GRAFT_CAP_VIDEO | GRAFT_CAP_DISPLAY | DEFAULTS, NULL },
		{ "", "video,display,compute,utility", true, DEFAULTS, NULL },
		{ NULL, "video,display,compute,utility", true, GRAFT_CAP_VIDEO | GRAFT_CAP_DISPLAY | DEFAULTS, NULL },
		{ NULL, "video,display,compute,utility", false, DEFAULTS, NULL },
		{ NULL, "compute", false, GRAFT_CAP_COMPUTE, NULL },
		{ NULL, "all", true, GRAFT_CAP_ALL, NULL },
		{ NULL, "", true, 0, NULL },
		{ "all", "", true, 0, NULL },
		{ "video,compute,video", "compute,utility", false, 0,
		  "unsupported capabilities found in 'compute,video' (allowed 'compute')" },
		{ "compute , bogus", SUPPORTED, false, 0,
		  "unsupported capabilities found in 'bogus,compute' (allowed 'compute')" },
		{ "Compute", SUPPORTED, false, 0, "unsupported capabilities found in 'Compute' (allowed '')" },
		{ "none", SUPPORTED, false, 0, "unsupported capabilities found in 'none' (allowed '')" },
		/* all seven by their names are not "all" */
		{ SUPPORTED, "compute", false, 0,
		  "unsupported capabilities found in 'compat32,compute,display,graphics,ngx,utility,video' (allowed "
		  "'compute')" },
		{ "compute,utility", "not-compute,not-utility", false, 0,
		  "invalid value of supported-driver-capabilities in the configuration: unknown capability "
		  "'not-compute' (known are 'compat32,compute,display,graphics,ngx,utility,video' and 'all')" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_container container = { .driver_capabilities = rows[i].list,
							   .legacy_image = rows[i].legacy };
		struct graft_error err = { .status = GRAFT_OK };
		unsigned int capabilities = 0;
		int rc = graft_container_capabilities(&container, rows[i].supported, &capabilities, &err);

		if (rc == 0 && (rows[i].error || capabilities != rows[i].capabilities))
			fail_msg("row %zu: capabilities %#x", i, capabilities);
		if (rc < 0) {
			assert_non_null(rows[i].error);
			assert_int_equal(err.status, GRAFT_INVALID);
			assert_string_equal(err.msg, rows[i].error);
		}
	}
}

/* What an image can only do to take time or memory is refused, or costs little. */
static void test_hostile_lists(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	const size_t n = 200000;
	char *list = malloc(n + 64);
	const char **env = calloc(n, sizeof(*env));
	struct input input = { .env = { list } };
	struct read r;

	assert_non_null(list);
	assert_non_null(env);
	(void)snprintf(list, 64, NVD);
	for (size_t i = 0; i < n; i++)
		list[strlen(NVD) + i] = i % 2 == 0 ? '0' : ',';
	list[strlen(NVD) + n] = '\0';
	prepare(&input, &r);
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.ctx, "NVIDIA_VISIBLE_DEVICES");
	assert_string_equal(err.msg, LIST_TOO_LONG);
	list[strlen(NVD) + 60000] = '\0';
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), -1);
	assert_string_equal(err.msg, "more than 4096 devices are requested");

	for (size_t i = 0; i < n; i++)
		env[i] = i % 2 == 0 ? "NVIDIA_REQUIRE_A=1" : "NVIDIA_REQUIRE_B=2";
	r.spec.env = env;
	r.spec.n_env = n;
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), 0);
	/* Names of 3,000 entries fit into 64 KiB; of more than that, each counts. */
	assert_int_equal(r.container.requirements.n, GRAFT_REQUIREMENTS_MAX + 1);
	r.spec.n_env = 3000;
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), 0);
	assert_int_equal(r.container.requirements.n, 2);
	(void)graft_arena_free(r.arena);
	free(env);
	free(list);
}

/* A list of capabilities is sorted for a message: many passes. */
static void test_long_capabilities(void **state)
{
	char list[4096 + 2];
	const struct graft_container container = { .driver_capabilities = list };
	struct graft_error err = { .status = GRAFT_OK };
	unsigned int capabilities;

	for (size_t i = 0; i < sizeof(list) - 1; i++)
		list[i] = i % 2 == 0 ? 'x' : ',';
	list[4097] = '\0';
	assert_int_equal(graft_container_capabilities(&container, "all", &capabilities, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "the list of driver capabilities is longer than 4 KiB");
	list[4096] = '\0';
	assert_int_equal(graft_container_capabilities(&container, "all", &capabilities, &err), -1);
	assert_int_equal(err.status, GRAFT_INVALID);
	assert_string_equal(err.msg, "unsupported capabilities found in 'x' (allowed '')");
}

/* Names that differ only at their end take the longest to compare; sources of many parts are bounded as a whole. */
static void test_long_names(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	const size_t length = 20000;
	char *names[4];
	struct input input = { .prefixes = { "cdi.k8s.io/" }, .accept_mounts = true };
	struct read r;

	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		names[i] = malloc(length + 64);
		assert_non_null(names[i]);
		(void)snprintf(names[i], 64, DIRECTORY "/");
		memset(names[i] + strlen(DIRECTORY "/"), 'a', length);
		(void)snprintf(names[i] + strlen(DIRECTORY "/") + length, 16, "%zu", i);
		input.mounts[i] = names[i];
		input.annotations[i] = (struct graft_oci_annotation){ "cdi.k8s.io/x", names[i] };
	}
	input.mounts[3] = NULL;
	prepare(&input, &r);
	assert_int_equal(graft_container_read(&r.spec, &r.config, false, NULL, r.arena, &r.container, &err), 0);
	assert_int_equal(r.container.devices.n, 3);
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.ctx, "annotation 'cdi.k8s.io/x'");
	assert_string_equal(err.msg, LIST_TOO_LONG);
	(void)graft_arena_free(r.arena);
	input.mounts[3] = names[3];
	prepare(&input, &r);
	assert_int_equal(graft_container_read(&r.spec, &r.config, false, NULL, r.arena, &r.container, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, LIST_TOO_LONG);
	(void)graft_arena_free(r.arena);
	for (size_t i = 0; i < GRAFT_COUNT(names); i++)
		free(names[i]);
}

/* More requirements than a request takes stay too many, so that it refuses them. */
static void test_too_many_requirements(void **state)
{
	static char entries[100][32];
	const char *env[100];
	struct graft_error err = { .status = GRAFT_OK };
	struct input input = { .env = { NULL } };
	struct read r;

	for (size_t i = 0; i < GRAFT_COUNT(env); i++) {
		(void)snprintf(entries[i], sizeof(entries[i]), "NVIDIA_REQUIRE_%zu=x", i);
		env[i] = entries[i];
	}
	prepare(&input, &r);
	r.spec.env = env;
	r.spec.n_env = GRAFT_COUNT(env);
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, NULL, r.arena, &r.container, &err), 0);
	assert_int_equal(r.container.requirements.n, GRAFT_REQUIREMENTS_MAX + 1);
	(void)graft_arena_free(r.arena);
}

static void keep_warning(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	if (level == GRAFT_LOG_WARN)
		(void)snprintf(arg, 512, "%s", message);
}

/* Who wonders where the GPU is finds the reason. */
static void test_what_is_dropped_is_logged(void **state)
{
	static struct input variable = { .env = { NVD "0" }, .refuse_unprivileged = true },
			    gate = { .env = { "NVIDIA_MOFED=enabled" },
				     .mounts = { DIRECTORY "/0" },
				     .accept_mounts = true,
				     .refuse_unprivileged = true },
			    mount = { .mounts = { DIRECTORY "/cdi/x" }, .accept_mounts = true };
	struct graft_error err = { .status = GRAFT_OK };
	char warning[512] = "";
	const struct graft_log log = { .write = keep_warning, .arg = warning, .max = GRAFT_LOG_DEBUG };
	struct read r;

	prepare(&variable, &r);
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, &log, r.arena, &r.container, &err), 0);
	assert_string_equal(
	    warning, "ignoring devices requested by NVIDIA_VISIBLE_DEVICES: the container is not privileged, and "
		     "accept-nvidia-visible-devices-envvar-when-unprivileged is false");
	(void)graft_arena_free(r.arena);
	prepare(&gate, &r);
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, &log, r.arena, &r.container, &err), 0);
	assert_string_equal(warning, "ignoring mofed requested by NVIDIA_MOFED: the container is not privileged, and "
				     "accept-nvidia-visible-devices-envvar-when-unprivileged is false");
	(void)graft_arena_free(r.arena);
	prepare(&mount, &r);
	assert_int_equal(graft_container_read(&r.spec, &r.config, true, &log, r.arena, &r.container, &err), 0);
	assert_string_equal(warning, "ignoring the mount '" DIRECTORY "/cdi/x': it names no CDI device");
	(void)graft_arena_free(r.arena);
}

/* An arena that is full at every point in turn: each allocation fails once. */
static void test_every_allocation_fails(void **state)
{
	static struct input input = {
		.env = { "X=0,1", "Y=2", "CUDA_VERSION=9.0", "NVIDIA_REQUIRE_A=b", "NVIDIA_IMEX_CHANNELS=3" },
		.swarm = "X,Y",
		.mounts = { DIRECTORY "/cdi/x", DIRECTORY "/imex/1" },
		.annotations = { { "p/a", "" } },
		.prefixes = { "p/" },
		.accept_mounts = true,
	};

	for (size_t max = 0, failures = 0;; max += 16) {
		struct graft_error err = { .status = GRAFT_OK };
		struct read r;
		int rc;

		prepare(&input, &r);
		(void)graft_arena_free(r.arena);
		r.arena = graft_arena_new(max);
		assert_non_null(r.arena);
		rc = graft_container_read(&r.spec, &r.config, max % 32 == 0, NULL, r.arena, &r.container, &err);
		if (rc == 0)
			rc = graft_container_legacy_requirement(&r.spec, r.arena, &r.container, &err);
		(void)graft_arena_free(r.arena);
		if (rc == 0 && max % 32 != 0) {
			assert_true(failures > 20);
			break;
		}
		if (rc < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		failures++;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_mount_without_paths),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_channels),
		cmocka_unit_test(test_other_variables),
		cmocka_unit_test(test_additions),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_channels_as_cdi_devices),
		cmocka_unit_test(test_the_refusal_of_a_kind),
		cmocka_unit_test(test_annotations_of_podman),
		cmocka_unit_test(test_requirements),
		cmocka_unit_test(test_cuda_versions),
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_hostile_lists),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_too_many_requirements),
		cmocka_unit_test(test_long_capabilities),
		cmocka_unit_test(test_what_is_dropped_is_logged),
		cmocka_unit_test(test_every_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
