/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the programs for Kubernetes: each source, their order, every message, the JSON form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "kubernetes/kube_config.h"

static struct graft_arena *arena;
static struct graft_buffer warnings;

static void collect(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	assert_int_equal(level, GRAFT_LOG_WARN);
	graft_buffer_printf(&warnings, "%s\n", message);
}

static const struct graft_log log_ = { .write = collect, .max = GRAFT_LOG_WARN };

static int setup(void **state)
{
	arena = graft_arena_new((size_t)16 << 20);
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	graft_buffer_done(&warnings);
	arena = graft_arena_free(arena);
	return 0;
}

/* The variables of a test: "NAME=VALUE", ended by NULL. */
static const char *const *variables;

static const char *variable(const char *name)
{
	size_t length = strlen(name);

	for (const char *const *at = variables; at && *at; at++) {
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at + length + 1;
	}
	return NULL;
}

static int configure(const char *const *words, const char *const *environment, struct graft_kube_config *config,
		     enum graft_parse_result *result, struct graft_error *err)
{
	char *argv[24] = { (char *)(uintptr_t) "nvidia-device-plugin" };
	struct graft_kube_sources sources = {
		.command = &graft_kube_plugin_command, .argc = 1, .argv = argv, .variable = variable, .log = &log_
	};

	for (; words && words[sources.argc - 1]; sources.argc++) {
		assert_true((size_t)sources.argc < GRAFT_COUNT(argv) - 1);
		argv[sources.argc] = (char *)(uintptr_t)words[sources.argc - 1];
	}
	variables = environment;
	return graft_kube_configure(&sources, arena, config, result, err);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct graft_kube_config configured(const char *const *words, const char *const *environment)
{
	struct graft_kube_config config;
	enum graft_parse_result result = GRAFT_PARSE_HELP;
	struct graft_error err = { .status = GRAFT_OK };

	if (configure(words, environment, &config, &result, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(result, GRAFT_PARSE_OK);
	return config;
}

static void test_defaults(void **state)
{
	struct graft_kube_config config = configured(NULL, NULL);

	assert_string_equal(config.version, "v1");
	assert_int_equal(config.flags.mig_strategy, GRAFT_KUBE_MIG_NONE);
	assert_true(config.flags.fail_on_init_error);
	assert_string_equal(config.flags.driver_root, "/");
	assert_string_equal(config.flags.dev_root, "");
	assert_int_equal(config.flags.plugin.device_list_strategy, GRAFT_KUBE_LIST_ENVVAR);
	assert_int_equal(config.flags.plugin.device_id_strategy, GRAFT_KUBE_ID_UUID);
	assert_string_equal(config.flags.plugin.kubelet_socket, "/var/lib/kubelet/device-plugins/kubelet.sock");
	assert_int_equal(config.imex.channels, 0);
	assert_string_equal(config.config_file, "");
}

static void test_arguments(void **state)
{
	struct graft_kube_config config = configured(
	    LIST("--mig-strategy=mixed", "--fail-on-init-error", "false", "--gds-enabled"), NULL);

	assert_int_equal(config.flags.mig_strategy, GRAFT_KUBE_MIG_MIXED);
	assert_true(config.flags.fail_on_init_error);
	assert_false(config.flags.gds);
	assert_string_equal(graft_buffer_text(&warnings),
			    "ignoring 'false' and all that follows: write options as --option=VALUE\n");
}

/* Every flag and variable, each seen by its effect. */
static void test_flags(void **state)
{
	struct graft_kube_config config = configured(
	    LIST("--mig-strategy=mixed", "--nvidia-driver-root=/d", "-dev-root", "/e", "--pass-device-specs",
		 "--device-list-strategy=envvar,cdi-cri", "--device-list-strategy", "volume-mounts",
		 "--device-id-strategy=index", "--fail-on-init-error=false", "--imex-channel-ids=0", "--imex-required",
		 "--cdi-disable-hooks=a,b", "--cdi-late-mounts", "--shared-devices-allocation-policy=distinct",
		 "--kubelet-socket="),
	    NULL);

	assert_int_equal(config.flags.mig_strategy, GRAFT_KUBE_MIG_MIXED);
	assert_string_equal(config.flags.driver_root, "/d");
	assert_string_equal(config.flags.dev_root, "/e");
	assert_true(config.flags.plugin.pass_device_specs);
	assert_int_equal(config.flags.plugin.device_list_strategy,
			 GRAFT_KUBE_LIST_ENVVAR | GRAFT_KUBE_LIST_CDI_CRI | GRAFT_KUBE_LIST_VOLUME_MOUNTS);
	assert_int_equal(config.flags.plugin.device_id_strategy, GRAFT_KUBE_ID_INDEX);
	assert_false(config.flags.fail_on_init_error);
	assert_int_equal(config.imex.channels, 1);
	assert_true(config.imex.required);
	assert_int_equal(config.flags.plugin.n_cdi_disabled_hooks, 2);
	assert_string_equal(config.flags.plugin.cdi_disabled_hooks[1], "b");
	assert_true(config.flags.plugin.cdi_late_mounts);
	assert_int_equal(config.flags.plugin.sharing_policy, GRAFT_KUBE_DISTINCT);
	assert_string_equal(config.flags.plugin.kubelet_socket, "");

	config = configured(
	    NULL,
	    LIST("MIG_STRATEGY=single", "FAIL_ON_INIT_ERROR=F", "NVIDIA_DRIVER_ROOT=/r", "NVIDIA_DEV_ROOT=/v",
		 "PASS_DEVICE_SPECS=TRUE", "DEVICE_LIST_STRATEGY=cdi-annotations,cdi-cri", "DEVICE_ID_STRATEGY=index",
		 "GDRCOPY_ENABLED=1", "GDS_ENABLED=t", "MOFED_ENABLED=T", "CDI_ANNOTATION_PREFIX=p/",
		 "NVIDIA_CTK_PATH=/ctk", "CONTAINER_DRIVER_ROOT=/c", "MPS_ROOT=/m",
		 "SHARED_DEVICES_ALLOCATION_POLICY=packed", "DEVICE_DISCOVERY_STRATEGY=nvml", "IMEX_CHANNEL_IDS=0",
		 "IMEX_REQUIRED=true", "KUBELET_SOCKET=/k", "CDI_FEATURE_FLAGS=x,y", "CDI_DISABLE_HOOKS=all",
		 "CDI_LATE_MOUNTS=1", "DP_DISABLE_HEALTHCHECKS=79,48", "DP_ENABLE_HEALTHCHECKS=13"));
	assert_int_equal(config.flags.mig_strategy, GRAFT_KUBE_MIG_SINGLE);
	assert_false(config.flags.fail_on_init_error);
	assert_string_equal(config.flags.driver_root, "/r");
	assert_string_equal(config.flags.dev_root, "/v");
	assert_true(config.flags.plugin.pass_device_specs);
	assert_int_equal(config.flags.plugin.device_list_strategy, GRAFT_KUBE_LIST_CDI);
	assert_true(config.flags.gdrcopy && config.flags.gds && config.flags.mofed);
	assert_string_equal(config.flags.plugin.cdi_annotation_prefix, "p/");
	assert_string_equal(config.flags.plugin.cdi_hook_path, "/ctk");
	assert_string_equal(config.flags.plugin.container_driver_root, "/c");
	assert_string_equal(config.flags.mps_root, "/m");
	assert_int_equal(config.flags.plugin.sharing_policy, GRAFT_KUBE_PACKED);
	assert_int_equal(config.flags.discovery, GRAFT_KUBE_DISCOVERY_NVML);
	assert_string_equal(config.flags.plugin.kubelet_socket, "/k");
	assert_int_equal(config.flags.plugin.n_cdi_feature_flags, 2);
	assert_true(config.flags.plugin.cdi_late_mounts);
	assert_string_equal(config.flags.plugin.disable_health_checks, "79,48");
	assert_string_equal(config.flags.plugin.enable_health_checks, "13");

	/* The newer name of a variable comes first. */
	config = configured(NULL, LIST("NVIDIA_CTK_PATH=/ctk", "NVIDIA_CDI_HOOK_PATH=/hook", "CONTAINER_DRIVER_ROOT=/c",
				       "DRIVER_ROOT_CTR_PATH=/d"));
	assert_string_equal(config.flags.plugin.cdi_hook_path, "/hook");
	assert_string_equal(config.flags.plugin.container_driver_root, "/d");

	/* What manifests set to nothing is not set. */
	config = configured(NULL, LIST("MIG_STRATEGY=", "DEVICE_LIST_STRATEGY=", "PASS_DEVICE_SPECS=", "CONFIG_FILE=",
				       "NVIDIA_DRIVER_ROOT=", "IMEX_CHANNEL_IDS="));
	assert_int_equal(config.flags.plugin.device_list_strategy, GRAFT_KUBE_LIST_ENVVAR);
	assert_string_equal(config.flags.driver_root, "/");

	/* Blanks around the items of a list do not count. */
	config = configured(LIST("--device-list-strategy=envvar, cdi-cri ", "--cdi-disable-hooks= a ,b c"),
			    LIST("IMEX_CHANNEL_IDS= 0 ", "FALLBACK_STRATEGIES=named, single"));
	assert_int_equal(config.flags.plugin.device_list_strategy, GRAFT_KUBE_LIST_ENVVAR | GRAFT_KUBE_LIST_CDI_CRI);
	assert_int_equal(config.flags.plugin.n_cdi_disabled_hooks, 2);
	assert_string_equal(config.flags.plugin.cdi_disabled_hooks[0], "a");
	assert_string_equal(config.flags.plugin.cdi_disabled_hooks[1], "b c");
	assert_int_equal(config.imex.channels, 1);
}

/* What is no Xid has no effect, and is said to have none. */
static void test_xid_lists(void **state)
{
	(void)configured(NULL, LIST("DP_DISABLE_HEALTHCHECKS=48, 79,,ALL,Xids", "DP_ENABLE_HEALTHCHECKS=all"));
	assert_int_equal(warnings.length, 0);
	(void)configured(LIST("--disable-health-checks=48;74, Xid 79,xid"), LIST("DP_ENABLE_HEALTHCHECKS=-1"));
	assert_string_equal(graft_buffer_text(&warnings),
			    "--disable-health-checks: ignoring '48;74': expected Xid numbers, all or xids\n"
			    "--disable-health-checks: ignoring 'Xid': expected Xid numbers, all or xids\n"
			    "--disable-health-checks: ignoring 'xid': expected Xid numbers, all or xids\n"
			    "--enable-health-checks: ignoring '-1': expected Xid numbers, all or xids\n");
}

static void write_config(const char *text, char path[32])
{
	int fd;

	(void)snprintf(path, 32, "/tmp/kube-config.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

/* The command line beats the environment, which beats the file, which beats the default. */
static void test_precedence(void **state)
{
	struct graft_kube_config config;
	char path[32], option[64];

	write_config(
	    "flags:\n  migStrategy: single\n  failOnInitError: false\n  gdsEnabled: true\n"
	    "  plugin:\n    deviceIDStrategy: index\n    deviceListStrategy: [volume-mounts, envvar]\n"
	    "    cdiFeatureFlags: [a, b]\n    cdiDisableHooks: [c]\n    cdiLateMounts: true\nimex: {channelIDs: [0]}\n",
	    path);
	(void)snprintf(option, sizeof(option), "--config-file=%s", path);
	config = configured(LIST(option, "--mig-strategy=none", "--device-list-strategy=cdi-cri"),
			    LIST("MIG_STRATEGY=mixed", "GDS_ENABLED=false", "DEVICE_LIST_STRATEGY=envvar"));
	assert_int_equal(config.flags.mig_strategy, GRAFT_KUBE_MIG_NONE);
	assert_false(config.flags.fail_on_init_error);
	assert_false(config.flags.gds);
	assert_int_equal(config.flags.plugin.device_id_strategy, GRAFT_KUBE_ID_INDEX);
	assert_int_equal(config.flags.plugin.device_list_strategy, GRAFT_KUBE_LIST_CDI_CRI);
	assert_true(config.flags.plugin.cdi_late_mounts);
	assert_int_equal(config.imex.channels, 1);

	/* What is set to nothing is not set, and beats no file. */
	config = configured(LIST(option), LIST("IMEX_CHANNEL_IDS=", "CDI_FEATURE_FLAGS=", "CDI_DISABLE_HOOKS="));
	assert_int_equal(config.imex.channels, 1);
	assert_int_equal(config.flags.plugin.n_cdi_feature_flags, 2);
	assert_int_equal(config.flags.plugin.n_cdi_disabled_hooks, 1);
	(void)unlink(path);
	assert_int_equal(warnings.length, 0);
}

static const struct {
	const char *word, *variable, *message;
} wrong_options[] = {
	{ "--device-list-strategy=envar", NULL,
	  "invalid --device-list-strategy option: envar (did you mean 'envvar'?); allowed: envvar, volume-mounts, "
	  "cdi-annotations, cdi-cri" },
	{ "--device-list-strategy=,", NULL,
	  "invalid --device-list-strategy option: ,; allowed: envvar, volume-mounts, cdi-annotations, cdi-cri" },
	{ "--mig-strategy=all", NULL, "invalid --mig-strategy option: all; allowed: none, single, mixed" },
	{ "--device-id-strategy=x", NULL, "invalid --device-id-strategy option: x; allowed: uuid, index" },
	{ "--imex-channel-ids=0,1", NULL, "invalid IMEX channel IDs: [0,1]: channelIDs must be [] or [0]" },
	{ NULL, "DEVICE_LIST_STRATEGY=x",
	  "could not parse \"x\" as string value from environment variable \"DEVICE_LIST_STRATEGY\" for flag "
	  "device-list-strategy: invalid --device-list-strategy option: x; allowed: envvar, volume-mounts, "
	  "cdi-annotations, cdi-cri" },
	{ NULL, "PASS_DEVICE_SPECS=yes",
	  "could not parse \"yes\" as bool value from environment variable \"PASS_DEVICE_SPECS\" for flag "
	  "pass-device-specs: invalid boolean value 'yes' for --pass-device-specs" },
	{ "--config-file=/nowhere/config.yaml", NULL, "unable to read config file /nowhere/config.yaml" },
	{ "--migstrategy=none", NULL, "flag provided but not defined: -migstrategy" },
	{ "-device-discovery-strategy=tegra", "DEVICE_LIST_STRATEGY=cdi-cri",
	  "CDI --device-list-strategy options are only supported on NVML-based systems" },
};

static void test_wrong_options(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(wrong_options); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_kube_config config;
		enum graft_parse_result result;

		assert_int_equal(configure(wrong_options[i].word ? LIST(wrong_options[i].word) : NULL,
					   wrong_options[i].variable ? LIST(wrong_options[i].variable) : NULL, &config,
					   &result, &err),
				 -1);
		assert_string_equal(err.msg, wrong_options[i].message);
	}
}

static const struct {
	const char *text, *message; /* NULL: it is read */
	const char *warned;
} files[] = {
	{ "", NULL, "" },
	{ "# nothing\n\n", NULL, "" },
	{ "version: v1\nflags: null\n", NULL, "" },
	{ "version: v2\n", "f.yaml: line 1, column 1: unknown version: v2", "" },
	{ "{\"version\": \"\"}", NULL, "" },
	{ "flags:\n  migStrategie: none\n", NULL,
	  "f.yaml: line 2: ignoring unknown key 'flags.migStrategie' (did you mean 'migStrategy'?)\n" },
	/* The last one of the longest table. */
	{ "flags:\n  plugin:\n    enableHealthCheks: all\n", NULL,
	  "f.yaml: line 3: ignoring unknown key 'flags.plugin.enableHealthCheks' (did you mean "
	  "'enableHealthChecks'?)\n" },
	{ "FLAGS:\n  MIGstrategy: none\n", NULL, "" },
	{ "\xef\xbb\xbf"
	  "flags:\r\n  migStrategy: single\r\n",
	  NULL, "" },
	{ "flags:\n  migStrategy: nne\n",
	  "f.yaml: line 2, column 3: flags.migStrategy: invalid value \"nne\" (did you mean 'none'?); allowed: none, "
	  "single, mixed",
	  "" },
	{ "flags:\n  migStrategy: 3\n", "f.yaml: line 2, column 3: flags.migStrategy: a number, but must be a string",
	  "" },
	{ "flags: [a]\n", "f.yaml: line 1, column 1: flags: a list, but must be an object", "" },
	{ "flags:\n  failOnInitError: 1\n",
	  "f.yaml: line 2, column 3: flags.failOnInitError: a number, but must be true or false", "" },
	{ "flags:\n  plugin:\n    deviceListStrategy: [envvar, 1]\n",
	  "f.yaml: line 3, column 34: flags.plugin.deviceListStrategy: a number, but must be a string", "" },
	{ "flags:\n  plugin:\n    deviceListStrategy: []\n",
	  "f.yaml: line 3, column 5: flags.plugin.deviceListStrategy: invalid value \"\"; allowed: envvar, "
	  "volume-mounts, cdi-annotations, cdi-cri",
	  "" },
	{ "flags:\n  gfd:\n    sleepInterval: 60x\n",
	  "f.yaml: line 3, column 5: flags.gfd.sleepInterval: invalid duration \"60x\"; allowed: \"90s\", \"1h30m\", "
	  "\"infinite\", or a number of nanoseconds",
	  "" },
	{ "flags:\n  gfd: {sleepInterval: 60000000000}\n", NULL, "" },
	{ "flags:\n  gdsEnabled: true\n  gdsEnabled: false\n", NULL,
	  "f.yaml: line 3: key 'flags.gdsEnabled' is given twice; the last one applies\n" },
	{ "resources:\n  gpus:\n  - {pattern: \"*\", name: gpu}\n", NULL,
	  "f.yaml: line 1: 'resources' is ignored: resources cannot be renamed by patterns; "
	  "sharing.*.resources[].rename names shared devices\n" },
	{ "sharing:\n  timeSlicing:\n", "f.yaml: line 2, column 3: sharing.timeSlicing: no resources specified", "" },
	{ "sharing:\n  timeSlicing: {renameByDefault: true}\n",
	  "f.yaml: line 2, column 3: sharing.timeSlicing: no resources specified", "" },
	{ "sharing:\n  mps:\n    resources:\n    - name: gpu\n      replicas: 1\n",
	  "f.yaml: line 4, column 7: sharing.mps.resources[0]: number of replicas must be >= 2", "" },
	{ "sharing:\n  timeSlicing:\n    resources:\n    - {name: gpuu, replicas: 2}\n    - {name: mig-1g.5gb, "
	  "replicas: 2}\n",
	  NULL,
	  "f.yaml: line 4: sharing.timeSlicing.resources[0]: no node has a resource 'nvidia.com/gpuu' (did you mean "
	  "'nvidia.com/gpu'?); there are nvidia.com/gpu, and nvidia.com/mig-PROFILE for MIG devices\n" },
	{ "sharing:\n  mps:\n    resources:\n    - replicas: 3\n",
	  "f.yaml: line 4, column 7: sharing.mps.resources[0]: a resource needs a name", "" },
	{ "sharing:\n  timeSlicing:\n    resources:\n    - {name: GPU, replicas: 3}\n",
	  "f.yaml: line 4, column 7: sharing.timeSlicing.resources[0]: incorrect format for resource name "
	  "'nvidia.com/GPU': after 'nvidia.com/' it consists of lower-case letters, digits, '-' and '.', and begins "
	  "and ends with a letter or digit",
	  "" },
	{ "sharing:\n  timeSlicing:\n    resources:\n    - {name: "
	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, replicas: 3}\n",
	  "f.yaml: line 4, column 7: sharing.timeSlicing.resources[0]: fully-qualified resource name must be 63 "
	  "characters or less: nvidia.com/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	  "" },
	{ "sharing:\n  timeSlicing:\n    resources:\n    - {name: gpu, replicas: 3, devices: [0, x]}\n",
	  "f.yaml: line 4, column 45: sharing.timeSlicing.resources[0].devices: must be a GPU index, a MIG index "
	  "such as \"0:1\", or a UUID",
	  "" },
	{ "sharing:\n  timeSlicing:\n    resources:\n    - {name: gpu, replicas: 3, devices: 0}\n",
	  "f.yaml: line 4, column 32: sharing.timeSlicing.resources[0].devices: must be \"all\", a number above 0, or "
	  "a list of devices",
	  "" },
	{ "imex:\n  channelIDs: [1]\n",
	  "f.yaml: line 2, column 16: imex.channelIDs: invalid IMEX channel IDs: [1]: channelIDs must be [] or [0]",
	  "" },
	{ "imex:\n  channelIDs: [0]\n", NULL, "" },
	{ "flags: {", "f.yaml: line 2, column 1: did not find expected node content", "" },
	{ "{\"flags\": {\"migStrategy\": \"x\"}}",
	  "f.yaml: line 1, column 12: flags.migStrategy: invalid value \"x\"; allowed: none, single, mixed", "" },
};

static void test_files(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_kube_config config;
		int rc;

		graft_kube_config_default(&config);
		graft_buffer_done(&warnings);
		rc = graft_kube_config_parse("f.yaml", files[i].text, strlen(files[i].text), &log_, arena, &config,
					     &err);
		assert_string_equal(rc < 0 ? err.msg : "", files[i].message ? files[i].message : "");
		assert_string_equal(graft_buffer_text(&warnings), files[i].warned);
	}
}

static struct graft_kube_config parsed(const char *text)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_config config;

	graft_kube_config_default(&config);
	if (graft_kube_config_parse("f", text, strlen(text), &log_, arena, &config, &err) < 0)
		fail_msg("%s", err.msg);
	return config;
}

static const char sharing_text[] = "sharing:\n"
				   "  timeSlicing:\n"
				   "    renameByDefault: true\n"
				   "    failRequestsGreaterThanOne: true\n"
				   "    resources:\n"
				   "    - name: gpu\n"
				   "      replicas: 4\n"
				   "      devices: [0, \"1:2\", GPU-11111111-2222-3333-4444-555555555555]\n"
				   "      rename: gpu.quarter\n"
				   "    - {name: nvidia.com/mig-1g.5gb, replicas: 2, devices: 3}\n";

static void test_sharing(void **state)
{
	struct graft_kube_config config = parsed(sharing_text);
	enum graft_kube_sharing_strategy strategy;
	const struct graft_kube_replication *sharing = graft_kube_replication(&config, &strategy);

	assert_int_equal(strategy, GRAFT_KUBE_TIME_SLICING);
	assert_true(sharing->rename_by_default && sharing->fail_requests_greater_than_one);
	assert_int_equal(sharing->n_resources, 2);
	assert_string_equal(sharing->resources[0].name, "nvidia.com/gpu");
	assert_string_equal(sharing->resources[0].rename, "nvidia.com/gpu.quarter");
	assert_int_equal(sharing->resources[0].n_devices, 3);
	assert_string_equal(sharing->resources[0].devices[0], "0");
	assert_string_equal(sharing->resources[0].devices[1], "1:2");
	assert_int_equal(sharing->resources[1].n_first, 3);
	assert_string_equal(sharing->resources[1].rename, "");

	/* MPS wins, and hands out single replicas. */
	config = parsed("sharing: {mps: {resources: [{name: gpu, replicas: 2}]}, "
			"timeSlicing: {resources: [{name: gpu, replicas: 9}]}}");
	sharing = graft_kube_replication(&config, &strategy);
	assert_int_equal(strategy, GRAFT_KUBE_MPS);
	assert_true(sharing->fail_requests_greater_than_one);
	assert_int_equal(sharing->resources[0].replicas, 2);
	config = parsed("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 9}]}}");
	assert_false(config.sharing.time_slicing.fail_requests_greater_than_one);
	config = parsed("");
	assert_null(graft_kube_replication(&config, &strategy));
	assert_int_equal(strategy, GRAFT_KUBE_NOT_SHARED);
}

static void test_rules(void **state)
{
	static const char mps[] = "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}";
	struct graft_kube_config config = parsed(mps);
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_kube_config_check(&config, &err), -1);
	assert_string_equal(err.msg, "using MPS requires --mps-root to be specified");
	config.flags.mps_root = "/run/nvidia/mps";
	assert_int_equal(graft_kube_config_check(&config, &err), 0);
	config.flags.mig_strategy = GRAFT_KUBE_MIG_MIXED;
	assert_int_equal(graft_kube_config_check(&config, &err), -1);
	assert_string_equal(err.msg, "using --mig-strategy=mixed is not supported with MPS");
}

/* Feature discovery reads the same file, and has no --mps-root. */
static void test_rules_of_the_plugin(void **state)
{
	char name[] = "program", option[64], path[32], *argv[] = { name, option };
	struct graft_kube_sources sources = {
		.command = &graft_kube_plugin_command, .argc = 2, .argv = argv, .variable = variable, .log = &log_
	};
	struct graft_error err = { .status = GRAFT_OK };
	enum graft_kube_sharing_strategy strategy;
	struct graft_kube_config config;
	enum graft_parse_result result;

	write_config(
	    "flags: {migStrategy: single, deviceDiscoveryStrategy: tegra, plugin: {deviceListStrategy: cdi-cri}}\n"
	    "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n",
	    path);
	(void)snprintf(option, sizeof(option), "--config-file=%s", path);
	variables = NULL;
	assert_int_equal(graft_kube_configure(&sources, arena, &config, &result, &err), -1);
	sources.command = &graft_kube_gfd_command;
	assert_int_equal(graft_kube_configure(&sources, arena, &config, &result, &err), 0);
	assert_non_null(graft_kube_replication(&config, &strategy));
	assert_int_equal(strategy, GRAFT_KUBE_MPS);
	(void)unlink(path);
}

/* What is printed is a config file that gives the same again. */
static void test_json(void **state)
{
	static const char *const texts[] = {
		"",
		sharing_text,
		"sharing: {mps: {failRequestsGreaterThanOne: false, resources: [{name: gpu, replicas: 2}]}}",
		"imex: {channelIDs: [0], required: true}\nflags: {plugin: {deviceListStrategy: \"cdi-cri\", "
		"cdiFeatureFlags: [a], kubeletSocket: \"\"}, gfd: {sleepInterval: infinite}}\n",
	};

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		struct graft_kube_config config = parsed(texts[i]), again;
		struct graft_buffer first = { .max = 0 }, second = { .max = 0 };

		graft_kube_config_write(&config, &first);
		again = parsed(graft_buffer_text(&first));
		graft_kube_config_write(&again, &second);
		assert_string_equal(graft_buffer_text(&first), graft_buffer_text(&second));
		assert_int_equal(warnings.length, 0);
		if (i == 2)
			assert_non_null(strstr(first.bytes, "\"failRequestsGreaterThanOne\": false"));
		if (i == 3)
			assert_non_null(strstr(first.bytes, "\"channelIDs\": [0]"));
		graft_buffer_done(&first);
		graft_buffer_done(&second);
	}
}

static const struct {
	const char *text;
	bool ok;
	int64_t ns;
} durations[] = {
	{ "60s", true, 60000000000 },
	{ "1h30m", true, 5400000000000 },
	{ "1.5ms", true, 1500000 },
	{ ".5s", true, 500000000 },
	{ "1.s", true, 1000000000 },
	{ "+2us", true, 2000 },
	{ "3\xc2\xb5s", true, 3000 },
	{ "7ns", true, 7 },
	{ "infinite", true, -1 },
	{ "0", true, 0 },
	{ "60000000000", true, 60000000000 },
	{ "", false, 0 },
	{ "-1s", false, 0 },
	{ "1", true, 1 },
	{ "s", false, 0 },
	{ "1d", false, 0 },
	{ ".s", false, 0 },
	{ "9223372036854775808", false, 0 },
	{ "2562048h", false, 0 },
	{ "2562047h47m16s", true, 9223372036000000000 },
};

static void test_durations(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(durations); i++) {
		int64_t ns = 0;

		if (graft_kube_parse_duration(durations[i].text, &ns) != durations[i].ok)
			fail_msg("%s", durations[i].text);
		if (durations[i].ok)
			assert_int_equal(ns, durations[i].ns);
	}
}

/* Aliases cannot make a small file into endless work. */
static void test_aliases(void **state)
{
	struct graft_buffer text = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_config config;

	graft_buffer_string(&text, "x: &a [q, q, q, q, q, q, q, q, q, q]\nflags:\n");
	graft_buffer_string(&text, "  plugin: &p {passDeviceSpecs: true}\n  gfd: *p\n");
	graft_kube_config_default(&config);
	assert_int_equal(graft_kube_config_parse("f", text.bytes, text.length, &log_, arena, &config, &err), 0);
	assert_true(config.flags.plugin.pass_device_specs);
	graft_buffer_done(&text);
}

static int parse_sharing(struct graft_arena *own, struct graft_error *err)
{
	struct graft_kube_config config;

	graft_kube_config_default(&config);
	return graft_kube_config_parse("f", sharing_text, strlen(sharing_text), NULL, own, &config, err);
}

static void test_memory(void **state)
{
	assert_true(allocation_each(own, err, parse_sharing(own, &err)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_xid_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(test_precedence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_options, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sharing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rules_of_the_plugin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
		cmocka_unit_test_setup_teardown(test_durations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_aliases, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
