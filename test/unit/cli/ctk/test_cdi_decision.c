/* SPDX-License-Identifier: Apache-2.0 */
/* What command lines of cdi generate mean: each flag, several together, the order in which they are refused, each allocation failing once. */
#include "../../allocation.h"
#include "../../unit.h"
#include "cli/ctk/cdi_decision.h"
#include "ctk_case.h"
#include "plan/cdi_devices.h"
#include "plan/planner.h"

/* Programs and configurations of this test alone. */
static int open_host(void **state)
{
	int rc = case_open(state);
	struct ctk_case *test = *state;

	assert_int_equal(setenv("PATH", test->directory, 1), 0);
	assert_int_equal(setenv("NVIDIA_CTK_CONFIG_FILE_PATH", case_path(test, "config.toml"), 1), 0);
	assert_int_equal(mkdir(case_path(test, "root"), 0755), 0);
	return rc;
}

#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, open_host, case_close)

/* `words` as the command gets them, decided: 0 or -1 as ctk_cdi_decide(); 1 if they are wrong. The strings of the decision are good until the next call. */
static int decide(struct ctk_case *test, const char *words, struct ctk_cdi_decision *decision, struct graft_error *err)
{
	static char text[1024];
	static struct ctk_cdi_flags given;
	char line[512], *argv[CASE_WORDS];
	int argc, first, status = 0;

	(void)snprintf(line, sizeof(line), "generate %s", words);
	argc = case_words(test, line, text, sizeof(text), argv);
	given = (struct ctk_cdi_flags){ .output = NULL };
	*err = (struct graft_error){ .status = GRAFT_OK };
	if (ctk_parse(&test->ctk, &ctk_cdi_generate, &given, argc, argv, &first, &status) < 0)
		return 1;
	return ctk_cdi_decide(&test->ctk, &given, decision, err);
}

static struct ctk_cdi_decision decided(struct ctk_case *test, const char *words)
{
	struct ctk_cdi_decision decision;
	struct graft_error err;
	char text[900];

	case_renew(test, CASE_ARENA);
	if (decide(test, words, &decision, &err) != 0)
		fail_msg("%s: %s %s", words, graft_error_text(&err, text, sizeof(text)), test->said);
	return decision;
}

#define NVML "--mode=nvml --driver-root=@/root "

static void test_refused(void **state)
{
	static const struct {
		const char *words, *message; /* of the error, or of the log when it was told already */
		int rc;
	} rows[] = {
		{ "--format=xml", "invalid output format: xml", -1 },
		{ "--format=", "invalid output format: ", -1 },
		{ "--mode=fast", "invalid discovery mode: fast", -1 },
		{ "--mode=", "invalid discovery mode: ", -1 },
		{ "--device-name-strategy=name", "invalid device name strategy: name", -1 },
		{ "--device-name-strategy=uuid,Index", "invalid device name strategy: Index", -1 },
		{ "--vendor=_x", "invalid CDI vendor name: ", -1 },
		{ "--class=a/b", "invalid CDI class name: ", -1 },
		{ "--enable-hook=all", "enabling all hooks is not supported", -1 },
		{ "--provenance=some", "invalid --provenance value: some", -1 },
		{ "--driver-capabilities=flying", "flying", -1 },
		{ "--driver-root=here", "--driver-root \"here\" is not an absolute path", -1 },
		{ "--driver-root=@/root --dev-root=dev", "--dev-root \"dev\" is not an absolute path", -1 },
		{ NVML "--library-search-path=lib", "--library-search-path: 'lib' is not an absolute path", -1 },
		{ NVML "--library-search-path=/usr/lib",
		  "--library-search-path: /usr/lib is not below the driver root /", -1 },
		{ NVML "--config-search-path=@/rootfs", "/rootfs is not below the driver root /", -1 },
		{ "--driver-root=/nowhere/at/all", "/nowhere/at/all", -1 },
		/* The order that scripts see (SPEC ctk-and-cdi 1.5). */
		{ "--class=? --vendor=? --device-name-strategy=? --mode=? --format=?", "invalid output format: ?", -1 },
		{ "--class=? --vendor=? --device-name-strategy=? --mode=?", "invalid discovery mode: ?", -1 },
		{ "--class=? --vendor=? --device-name-strategy=?", "invalid device name strategy: ?", -1 },
		{ "--enable-hook=all --class=? --vendor=?", "invalid CDI vendor name", -1 },
		{ "--enable-hook=all --class=?", "invalid CDI class name", -1 },
		{ "--driver-root=here --enable-hook=all", "enabling all hooks", -1 },
	};
	struct ctk_case *test = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk_cdi_decision decision;
		struct graft_error err;
		char text[900];

		case_renew(test, CASE_ARENA);
		assert_int_equal(decide(test, rows[i].words, &decision, &err), rows[i].rc);
		if (!strstr(rows[i].rc < 0 ? graft_error_text(&err, text, sizeof(text)) : test->said, rows[i].message))
			fail_msg("%s: '%s'\n%s", rows[i].words, err.msg, test->said);
	}
}

static void test_modes(void **state)
{
	static const struct {
		const char *words;
		enum graft_cdi_mode mode;
		const char *kind;
		bool told; /* that it is not nvidia.com/gpu */
	} rows[] = {
		{ "--mode=nvml", GRAFT_CDI_MODE_NVML, "nvidia.com/gpu", false },
		{ "--discovery-mode=NVML", GRAFT_CDI_MODE_NVML, "nvidia.com/gpu", false },
		{ "--mode=auto", GRAFT_CDI_MODE_NVML, "nvidia.com/gpu", false },
		{ "", GRAFT_CDI_MODE_NVML, "nvidia.com/gpu", false },
		{ "--mode=csv", GRAFT_CDI_MODE_CSV, "nvidia.com/gpu", false },
		{ "--mode=Wsl", GRAFT_CDI_MODE_WSL, "nvidia.com/gpu", false },
		{ "--mode=management", GRAFT_CDI_MODE_MANAGEMENT, "management.nvidia.com/gpu", true },
		{ "--mode=gds", GRAFT_CDI_MODE_GDS, "nvidia.com/gds", true },
		{ "--mode=gdrcopy", GRAFT_CDI_MODE_GDRCOPY, "nvidia.com/gdrcopy", true },
		{ "--mode=mofed", GRAFT_CDI_MODE_MOFED, "nvidia.com/mofed", true },
		{ "--mode=nvswitch", GRAFT_CDI_MODE_NVSWITCH, "nvidia.com/nvswitch", true },
		{ "--mode=imex", GRAFT_CDI_MODE_IMEX, "nvidia.com/imex-channel", true },
		{ "--mode=imex --class=x", GRAFT_CDI_MODE_IMEX, "nvidia.com/x", false },
		{ "--mode=management --cdi-vendor=nvidia.com", GRAFT_CDI_MODE_MANAGEMENT, "nvidia.com/gpu", false },
		{ "--mode=nvml --vendor=a.b --cdi-class=c", GRAFT_CDI_MODE_NVML, "a.b/c", false },
	};
	struct ctk_case *test = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk_cdi_decision decision;
		char words[256];

		(void)snprintf(words, sizeof(words), "--driver-root=@/root %s", rows[i].words);
		decision = decided(test, words);
		assert_int_equal(decision.demand.mode, rows[i].mode);
		assert_string_equal(
		    graft_arena_printf(test->ctk.arena, "%s/%s", decision.demand.vendor, decision.demand.class_),
		    rows[i].kind);
		assert_int_equal(strstr(test->said, "The devices are of kind") != NULL, rows[i].told);
	}
}

/* A Tegra board, by its file; a host of no kind that is known. */
static void test_mode_of_the_host(void **state)
{
	struct ctk_case *test = *state;

	assert_int_equal(decided(test, "--driver-root=@/root").demand.mode, GRAFT_CDI_MODE_NVML);
	assert_non_null(strstr(test->said, "warning: Unsupported platform detected: unknown; assuming nvml\n"));
	assert_non_null(strstr(test->said, "info: Auto-detected mode as 'nvml'\n"));
	assert_int_equal(mkdir(case_path(test, "root/etc"), 0755), 0);
	case_write(test, "root/etc/nv_tegra_release", "# R36\n", 0644);
	assert_int_equal(decided(test, "--driver-root=@/root").demand.mode, GRAFT_CDI_MODE_CSV);
	assert_non_null(strstr(test->said, "info: Auto-detected mode as 'csv'\n"));
}

static void test_names_and_ids(void **state)
{
	static const struct {
		const char *words;
		unsigned int namings;
		const char *ids; /* each with ';' */
		bool no_all;
	} rows[] = {
		{ "", GRAFT_CDI_NAMING_INDEX | GRAFT_CDI_NAMING_UUID, "all;", false },
		{ "--device-name-strategy=uuid", GRAFT_CDI_NAMING_UUID, "all;", false },
		{ "--device-name-strategy=type-index,index", GRAFT_CDI_NAMING_TYPE_INDEX | GRAFT_CDI_NAMING_INDEX,
		  "all;", false },
		{ "--device-name-strategy=", 0, "all;", false },
		{ "--device-id=0,1:0 --device=GPU-x", GRAFT_CDI_NAMING_INDEX | GRAFT_CDI_NAMING_UUID, "0;1:0;GPU-x;",
		  false },
		{ "--device-id=none", GRAFT_CDI_NAMING_INDEX | GRAFT_CDI_NAMING_UUID, "none;", true },
		{ "--no-all-device", GRAFT_CDI_NAMING_INDEX | GRAFT_CDI_NAMING_UUID, "all;", true },
	};
	struct ctk_case *test = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk_cdi_decision decision;
		struct graft_buffer ids = { .max = 0 };
		char words[256];

		(void)snprintf(words, sizeof(words), NVML "%s", rows[i].words);
		decision = decided(test, words);
		assert_int_equal(decision.demand.namings, rows[i].namings);
		for (size_t j = 0; j < decision.demand.n_ids; j++)
			graft_buffer_printf(&ids, "%s;", decision.demand.ids[j]);
		assert_string_equal(graft_buffer_text(&ids), rows[i].ids);
		assert_int_equal(decision.demand.no_all_device, rows[i].no_all);
		assert_int_equal(strstr(test->said, "warning: Disabling generation of 'all' device") != NULL,
				 strstr(rows[i].words, "none") != NULL);
		graft_buffer_done(&ids);
	}
}

static void test_capabilities(void **state)
{
	const uint32_t all = (uint32_t)GRAFT_CAP_ALL & ~(uint32_t)GRAFT_CAP_COMPAT32;
	const struct {
		const char *words;
		uint32_t capabilities;
	} rows[] = {
		{ "", all },
		{ "--compat32", GRAFT_CAP_ALL },
		{ "--driver-capabilities=compute,utility", GRAFT_CAP_COMPUTE | GRAFT_CAP_UTILITY },
		{ "--driver-capabilities=utility --compat32", GRAFT_CAP_UTILITY | GRAFT_CAP_COMPAT32 },
	};
	struct ctk_case *test = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char words[256];

		(void)snprintf(words, sizeof(words), NVML "%s", rows[i].words);
		assert_int_equal(decided(test, words).demand.capabilities, rows[i].capabilities);
	}
}

static void test_feature_flags(void **state)
{
	struct ctk_case *test = *state;
	struct graft_cdi_demand demand = decided(test, NVML).demand;

	assert_false(demand.explicit_libraries || demand.coherent || demand.single_csv_device ||
		     demand.no_additional_gids || demand.no_daemons);
	assert_true(decided(test, NVML "--feature-flag=enable-explicit-driver-libraries").demand.explicit_libraries);
	assert_true(decided(test, NVML "--feature-flags=enable-coherent-annotations").demand.coherent);
	assert_true(decided(test, NVML "--feature-flag=disable-multiple-csv-devices").demand.single_csv_device);
	assert_true(decided(test, NVML "--feature-flag=no-additional-gids-for-device-nodes").demand.no_additional_gids);
	assert_true(decided(test, NVML "--feature-flag=disable-ipc-discoverer").demand.no_daemons);
	/* Names of other versions are ignored. */
	(void)decided(test, NVML "--debug --feature-flag=disable-nvsandboxutils,disable-nvsandbox-utils,new-one");
	assert_non_null(strstr(test->said, "debug: feature flag 'new-one' has no effect here\n"));
	assert_null(strstr(test->said, "nvsandbox"));
}

static void test_hooks(void **state)
{
	const uint32_t every = (1u << GRAFT_HOOK_BITS) - 1;
	const struct {
		const char *words;
		uint32_t disabled;
		bool chmod;
	} rows[] = {
		{ "", 0, false },
		{ "--disable-hook=all", every, false },
		{ "--disable-hook=all --enable-hook=update-ldcache", every & ~(uint32_t)GRAFT_HOOK_LDCACHE, false },
		{ "--disable-hooks=update-ldcache --enable-hooks=update-ldcache", 0, false },
		{ "--disable-hook=disable-device-node-modification", GRAFT_HOOK_PARAMS, false },
		{ "--enable-hook=chmod", 0, true },
		{ "--mode=management", GRAFT_HOOK_PARAMS, false },
		{ "--mode=management --enable-hook=disable-device-node-modification", 0, false },
	};
	struct ctk_case *test = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk_cdi_decision decision;
		char words[256];

		(void)snprintf(words, sizeof(words), NVML "%s", rows[i].words);
		decision = decided(test, words);
		assert_int_equal(decision.demand.disabled_hooks, rows[i].disabled);
		assert_int_equal(decision.demand.chmod, rows[i].chmod);
		assert_null(strstr(test->said, "there is no hook"));
	}
	(void)decided(test, NVML "--disable-hook=update-everything");
	assert_non_null(strstr(test->said, "warning: there is no hook 'update-everything'\n"));
}

static void test_hook_program(void **state)
{
	static const struct {
		const char *words, *path; /* "@" is the directory, which is PATH */
		bool missing;
	} rows[] = {
		{ "", "@/nvidia-cdi-hook", false },
		{ "--nvidia-cdi-hook-path=", "@/nvidia-cdi-hook", false },
		{ "--nvidia-cdi-hook-path=/opt/nothing", "/opt/nothing", false },
		{ "--nvidia-ctk-path=/usr/local/bin/nvidia-ctk", "/usr/local/bin/nvidia-ctk", false },
		{ "--nvidia-ctk-path=graft-no-such-hook", "/usr/bin/nvidia-cdi-hook", true },
		{ "--nvidia-ctk-path=./nowhere/nvidia-ctk", "/usr/bin/nvidia-ctk", true },
		{ "--nvidia-cdi-hook-path=graft-not-a-program", "/usr/bin/nvidia-cdi-hook", true },
		{ "--no-hooks --nvidia-cdi-hook-path=graft-no-such-hook", "/usr/bin/nvidia-cdi-hook", false },
	};
	struct ctk_case *test = *state;

	case_write(test, "nvidia-cdi-hook", "", 0755);
	case_write(test, "graft-not-a-program", "", 0644);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char words[256], wanted[128], *argv[CASE_WORDS];
		struct ctk_cdi_decision decision;

		(void)snprintf(words, sizeof(words), NVML "%s", rows[i].words);
		decision = decided(test, words);
		assert_int_equal(case_words(test, rows[i].path, wanted, sizeof(wanted), argv), 1);
		assert_string_equal(decision.demand.hook_path, argv[0]);
		assert_int_equal(strstr(test->said, " was not found; the spec says /usr/bin/") != NULL,
				 rows[i].missing);
	}
}

static void test_output(void **state)
{
	static const struct {
		const char *words, *output;
		enum graft_cdi_format format;
		const char *told; /* NULL = nothing is */
	} rows[] = {
		{ "", NULL, GRAFT_CDI_YAML, NULL },
		{ "--output=", NULL, GRAFT_CDI_YAML, NULL },
		{ "--format=JSON", NULL, GRAFT_CDI_JSON, NULL },
		{ "--output=x.json", "x.json", GRAFT_CDI_JSON, NULL },
		{ "--output=/x.y/a.yaml", "/x.y/a.yaml", GRAFT_CDI_YAML, NULL },
		{ "--output=x", "x.yaml", GRAFT_CDI_YAML,
		  "specs are read from *.json and *.yaml only: writing x.yaml" },
		{ "--output=x --format=json", "x.json", GRAFT_CDI_JSON, "writing x.json" },
		{ "--output=x.yml", "x.yaml", GRAFT_CDI_YAML, "writing x.yaml" },
		{ "--output=x.JSON", "x.json", GRAFT_CDI_JSON, "writing x.json" },
		{ "--output=x.json --format=yaml", "x.json", GRAFT_CDI_JSON,
		  "--format=yaml contradicts the name x.json, by which engines read the file: writing json" },
		{ "--output=x.yaml --format=yaml", "x.yaml", GRAFT_CDI_YAML, NULL },
		{ "--output=.json", ".json.yaml", GRAFT_CDI_YAML, "writing .json.yaml" },
	};
	struct ctk_case *test = *state;

	case_write(test, "nvidia-cdi-hook", "", 0755);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk_cdi_decision decision;
		char words[256];

		(void)snprintf(words, sizeof(words), NVML "%s", rows[i].words);
		decision = decided(test, words);
		assert_int_equal(decision.format, rows[i].format);
		assert_int_equal(decision.output == NULL, rows[i].output == NULL);
		if (rows[i].output)
			assert_string_equal(decision.output, rows[i].output);
		if (rows[i].told && !strstr(test->said, rows[i].told))
			fail_msg("%s: %s", rows[i].words, test->said);
		assert_int_equal(strstr(test->said, "warning: ") != NULL, rows[i].told != NULL);
	}
}

/* The flag, or the variable, or the configuration: of --config, else of the usual places. */
static void test_driver_root(void **state)
{
	struct ctk_case *test = *state;

	case_write(test, "config.toml", "[nvidia-container-cli]\nroot = \"/from//usual/\"\n", 0644);
	case_write(test, "other.toml", "[nvidia-container-cli]\nroot = \"/from/other\"\n", 0644);
	assert_string_equal(decided(test, "--mode=nvml").places.driver_root, "/from/usual");
	assert_string_equal(decided(test, "--mode=nvml --config=@/other.toml").places.driver_root, "/from/other");
	assert_string_equal(decided(test, "--mode=nvml --driver-root=/flag/").places.driver_root, "/flag");
	assert_string_equal(decided(test, "--mode=nvml --driver-root=").places.driver_root, "/");
	assert_int_equal(setenv("NVIDIA_CTK_DRIVER_ROOT", "", 1), 0);
	assert_string_equal(decided(test, "--mode=nvml").places.driver_root, "/");
	assert_int_equal(unsetenv("NVIDIA_CTK_DRIVER_ROOT"), 0);
	case_write(test, "config.toml", "[nvidia-container-cli]\nroot = 7\n", 0644);
	assert_string_equal(decided(test, "--mode=nvml --driver-root=/flag").places.driver_root, "/flag");
}

static void test_configuration_that_cannot_be_read(void **state)
{
	struct ctk_case *test = *state;
	struct ctk_cdi_decision decision;
	struct graft_error err;

	case_write(test, "config.toml", "[nvidia-container-cli]\nroot = 7\n", 0644);
	assert_int_equal(decide(test, "--mode=nvml", &decision, &err), -1);
	assert_string_printed(err.msg, "%s: line 2, column 8: nvidia-container-cli.root is 7; allowed: a string",
			      case_path(test, "config.toml"));
	/* One that was named, and is not there, does not go unsaid. */
	assert_string_equal(decided(test, "--mode=nvml --config=@/nowhere.toml").places.driver_root, "/");
	assert_non_null(strstr(test->said, "/nowhere.toml does not exist: using the default driver root"));
}

static void test_places(void **state)
{
	struct ctk_case *test = *state;
	struct graft_cdi_places places = decided(test, NVML "--library-search-path=@/root/a//b/,@/root "
							    "--config-search-path=@/root/etc --dev-root=@/ "
							    "--csv.file=/a.csv,/b.csv --csv.ignore-pattern=*.so")
					     .places;

	assert_int_equal(places.n_library_directories, 2);
	assert_string_equal(places.library_directories[0], "/a/b");
	assert_string_equal(places.library_directories[1], "/");
	assert_int_equal(places.n_data_directories, 1);
	assert_string_equal(places.data_directories[0], "/etc");
	assert_string_equal(places.dev_root, test->directory);
	assert_int_equal(places.n_csv_files, 2);
	assert_string_equal(places.csv_files[1], "/b.csv");
	assert_string_equal(places.csv_ignore_patterns[0], "*.so");
	assert_string_equal(places.path, test->directory);
	places = decided(test, "--mode=nvml --driver-root= --library-search-path=/usr/lib --dev-root=").places;
	assert_string_equal(places.library_directories[0], "/usr/lib");
	assert_null(places.dev_root);
}

static void test_the_rest(void **state)
{
	struct ctk_case *test = *state;
	struct graft_cdi_demand demand = decided(test, NVML).demand;

	assert_int_equal(demand.provenance, GRAFT_CDI_PROVENANCE_AUTO);
	assert_null(demand.ldconfig_path);
	assert_string_equal(demand.csv_compat_directory, CTK_CDI_ORIN_COMPAT);
	assert_false(demand.no_hooks);
	demand = decided(test, NVML "--provenance=annotations --ldconfig-path=/sbin/ldconfig --no-hooks "
				    "--csv.compat-container-root=/compat")
		     .demand;
	assert_int_equal(demand.provenance, GRAFT_CDI_PROVENANCE_ANNOTATIONS);
	assert_string_equal(demand.ldconfig_path, "/sbin/ldconfig");
	assert_string_equal(demand.csv_compat_directory, "/compat");
	assert_true(demand.no_hooks);
	assert_false(demand.late_mounts);
	assert_true(decided(test, NVML "--late-mounts").demand.late_mounts);
}

/* Whatever is missing of memory: a failure, and nothing half decided is taken for a decision. */
static void test_memory(void **state)
{
	static const char words[] = NVML
	    "--dev-root=@/root --library-search-path=@/root/lib --config-search-path=@/root/etc "
	    "--output=x.yml --device-id=0,none --driver-capabilities=compute,video --disable-hook=all";
	struct ctk_case *test = *state;
	struct ctk_cdi_decision decision;
	struct graft_error err;
	int rc = -1;

	for (size_t max = 0; rc != 0; max += 16) {
		case_renew(test, max);
		rc = decide(test, words, &decision, &err);
		assert_true(max < CASE_ARENA);
		if (rc < 0)
			assert_true(err.status == GRAFT_NO_MEMORY);
		else if (rc > 0)
			assert_true(strncmp(test->said, "error: ", 7) == 0 || strstr(test->said, "\nerror: "));
		else
			assert_string_equal(decision.output, "x.yaml");
	}
	for (int n = 1;; n++) {
		bool failed;

		case_renew(test, CASE_ARENA);
		allocation_fail(n);
		rc = decide(test, words, &decision, &err);
		failed = allocation_failed();
		assert_int_equal(rc != 0, failed);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_HOST(test_refused),
		ON_HOST(test_modes),
		ON_HOST(test_mode_of_the_host),
		ON_HOST(test_names_and_ids),
		ON_HOST(test_capabilities),
		ON_HOST(test_feature_flags),
		ON_HOST(test_hooks),
		ON_HOST(test_hook_program),
		ON_HOST(test_output),
		ON_HOST(test_driver_root),
		ON_HOST(test_configuration_that_cannot_be_read),
		ON_HOST(test_places),
		ON_HOST(test_the_rest),
		ON_HOST(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
