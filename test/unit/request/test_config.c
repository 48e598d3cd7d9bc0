/* SPDX-License-Identifier: Apache-2.0 */
/* config.toml: defaults, each key, spellings, what is ignored and what is refused (SPEC runtime-and-hook 2, 14.19). */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "config_text.h"
#include "host/capability.h"
#include "request/config.h"

#define ALL_CAPABILITIES "compat32,compute,display,graphics,ngx,utility,video"
#define CAPABILITIES     "all, compat32, compute, display, graphics, ngx, utility or video"

/* The JSON form of what `text` configures, or the error's text; to be freed by the next call. */
static const char *read_config(const char *text, const struct graft_config_host *host, bool *ret_failed)
{
	static struct graft_buffer out;
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_toml struct graft_toml *toml = NULL;
	struct graft_config config;
	struct graft_error err = { 0 };
	char message[1024];
	int rc = graft_toml_parse("config.toml", text, strlen(text), &toml, &err);

	assert_non_null(arena);
	graft_buffer_done(&out);
	if (rc == 0)
		rc = graft_config_read(toml, host, arena, &config, &err);
	if (rc == 0)
		config_text(&config, &out);
	else
		graft_buffer_string(&out, graft_error_text(&err, message, sizeof(message)));
	*ret_failed = rc < 0;
	graft_arena_free(arena);
	return graft_buffer_text(&out);
}

/* Whether the JSON form has this line: `"name": value`. */
static void assert_member(const char *json, const char *name, const char *value)
{
	char line[256];

	(void)snprintf(line, sizeof(line), "\n  \"%s\": %s", name, value);
	if (!strstr(json, line) || !strchr(",\n", strstr(json, line)[strlen(line)]))
		fail_msg("no %s in %s", line, json);
}

static void test_defaults(void **state)
{
	static const char *const rows[][2] = {
		{ "disable-require", "false" },
		{ "swarm-resource", "\"\"" },
		{ "accept-nvidia-visible-devices-envvar-when-unprivileged", "true" },
		{ "accept-nvidia-visible-devices-as-volume-mounts", "false" },
		{ "supported-driver-capabilities", "\"" ALL_CAPABILITIES "\"" },
		{ "nvidia-container-cli.root", "\"\"" },
		{ "nvidia-container-cli.path", "\"\"" },
		{ "nvidia-container-cli.environment", "[]" },
		{ "nvidia-container-cli.debug", "\"\"" },
		{ "nvidia-container-cli.ldcache", "\"\"" },
		{ "nvidia-container-cli.load-kmods", "true" },
		{ "nvidia-container-cli.no-pivot", "false" },
		{ "nvidia-container-cli.no-cgroups", "false" },
		{ "nvidia-container-cli.user", "\"\"" },
		{ "nvidia-container-cli.ldconfig", "\"@/sbin/ldconfig\"" },
		{ "nvidia-ctk.path", "\"nvidia-ctk\"" },
		{ "nvidia-container-runtime-hook.path", "\"nvidia-container-runtime-hook\"" },
		{ "nvidia-container-runtime-hook.skip-mode-detection", "false" },
		{ "nvidia-container-runtime.debug", "\"/dev/null\"" },
		{ "nvidia-container-runtime.log-level", "\"info\"" },
		{ "nvidia-container-runtime.runtimes", "[\"runc\", \"crun\"]" },
		{ "nvidia-container-runtime.mode", "\"auto\"" },
		{ "nvidia-container-runtime.modes.csv.mount-spec-path",
		  "\"/etc/nvidia-container-runtime/host-files-for-container.d\"" },
		{ "nvidia-container-runtime.modes.csv.compat-container-root", "null" },
		{ "nvidia-container-runtime.modes.cdi.spec-dirs", "[\"/etc/cdi\", \"/var/run/cdi\"]" },
		{ "nvidia-container-runtime.modes.cdi.default-kind", "\"nvidia.com/gpu\"" },
		{ "nvidia-container-runtime.modes.cdi.annotation-prefixes", "[\"cdi.k8s.io/\"]" },
		{ "nvidia-container-runtime.modes.cdi.allowed-envvar-kinds",
		  "[\"nvidia.com/*\", \"runtime.nvidia.com/*\"]" },
		{ "nvidia-container-runtime.modes.jit-cdi.nvcdi-feature-flags", "[]" },
		{ "nvidia-container-runtime.modes.jit-cdi.nvcdi-disable-hooks", "[]" },
		{ "nvidia-container-runtime.modes.legacy.cuda-compat-mode", "\"ldconfig\"" },
		{ "features.allow-cuda-compat-libs-from-container", "false" },
		{ "features.allow-ldconfig-from-container", "false" },
		{ "features.allow-unknown-oci-spec-fields", "false" },
		{ "features.disable-cuda-compat-lib-hook", "false" },
		{ "features.disable-imex-channel-creation", "false" },
		{ "features.ignore-imex-channel-requests", "false" },
		{ "features.no-additional-gids-for-device-nodes", "false" },
		{ "features.honor-driver-capabilities", "false" },
		{ "features.honor-requirements", "false" },
		{ "features.inject-compat32-libraries", "false" },
		{ "graft.late-mounts", "false" },
		{ "graft.leases.mode", "\"off\"" },
		{ "graft.leases.directory", "\"/run/graft/leases\"" },
		{ "graft.leases.pool", "[\"all\"]" },
		{ "graft.leases.wait", "\"0s\"" },
		{ "graft.leases.order", "\"fair\"" },
		{ "graft.leases.limits", "[]" },
		{ "graft.leases.shared", "[]" },
		{ "graft.leases.sharing", "\"time-slice\"" },
		{ "graft.leases.mps-exclusive", "true" },
		{ "graft.leases.busy", "\"leases\"" },
		{ "graft.leases.health", "true" },
		{ "graft.leases.max-time", "\"0s\"" },
		{ "nri.allowed", "[]" },
		{ "nri.environment", "\"allotted\"" },
		{ "nri.refused", "\"error\"" },
	};
	bool failed = true;
	const char *json = read_config("", NULL, &failed);

	assert_false(failed);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		assert_member(json, rows[i][0], rows[i][1]);
	assert_int_equal(graft_config_n_keys, GRAFT_COUNT(rows)); /* a new key gets a row here */
}

/* Each key set to something that is not its default, each by itself: exactly that member changes. */
static void test_each_key(void **state)
{
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const struct graft_config_key *key = &graft_config_keys[i];
		bool was_true = key->kind == GRAFT_CONFIG_BOOL && strcmp(key->standard[0], "true") == 0, failed = true;
		static const char *const texts[] = { "", "\"@other\"", "[\"x\", \"\", \"y z\"]" };
		const char *value = key->kind == GRAFT_CONFIG_BOOL ? (was_true ? "false" : "true") : texts[key->kind];
		char text[256], *before, *after, *difference;

		before = strdup(read_config("", NULL, &failed));
		assert_non_null(before);
		assert_false(failed);
		(void)snprintf(text, sizeof(text), "%s = %s\n", key->name, value);
		after = strdup(read_config(text, NULL, &failed));
		assert_non_null(after);
		if (failed)
			fail_msg("%s: %s", text, after);
		assert_member(after, key->name, value);
		/* The rest is as it was. */
		(void)snprintf(text, sizeof(text), "\"%s\": ", key->name);
		difference = strstr(after, text);
		assert_memory_equal(before, after, (size_t)(difference - after) + strlen(text));
		difference += strcspn(difference, "\n");
		assert_string_equal(difference, strchr(strstr(before, text), '\n'));
		free(before);
		free(after);
	}
}

static void test_spellings(void **state)
{
	static const char mode[] = "nvidia-container-runtime.mode";
	static const struct {
		const char *text, *name, *value;
	} rows[] = {
		/* dotted keys, sections and inline tables are the same */
		{ "nvidia-container-runtime.mode = \"cdi\"", mode, "\"cdi\"" },
		{ "[nvidia-container-runtime]\nmode = \"cdi\"", mode, "\"cdi\"" },
		{ "nvidia-container-runtime = { mode = \"cdi\" }", mode, "\"cdi\"" },
		{ "[\"nvidia-container-runtime\"]\n\"mode\" = 'cdi' # x", mode, "\"cdi\"" },
		{ "[nvidia-container-runtime.modes]\n[nvidia-container-runtime.modes.cdi]\nspec-dirs = [\"/a\"]",
		  "nvidia-container-runtime.modes.cdi.spec-dirs", "[\"/a\"]" },
		/* upper case; but no other mixture */
		{ "DISABLE-REQUIRE = true", "disable-require", "true" },
		{ "Disable-Require = true", "disable-require", "false" },
		{ "DISABLE-REQUIRE = true\ndisable-require = false", "disable-require", "false" },
		{ "[NVIDIA-CONTAINER-RUNTIME]\nMODE = \"cdi\"", mode, "\"cdi\"" },
		{ "[NVIDIA-CONTAINER-RUNTIME]\nmode = \"cdi\"", mode, "\"cdi\"" },
		{ "[nvidia-container-runtime]\nMODE = \"cdi\"", mode, "\"cdi\"" },
		/* a list replaces the default, also an empty one */
		{ "nvidia-container-runtime.runtimes = []", "nvidia-container-runtime.runtimes", "[]" },
		{ "nvidia-container-runtime.runtimes = [\"a\"]", "nvidia-container-runtime.runtimes", "[\"a\"]" },
		/* values are not judged here */
		{ "nvidia-container-runtime.mode = \"\"", mode, "\"\"" },
		{ "nvidia-container-runtime.log-level = \"loud\"", "nvidia-container-runtime.log-level", "\"loud\"" },
		/* unknown keys and tables, and those of older releases */
		{ "unknown = 3\n[unknown-table]\nx = [1, 2]\n[features]\ngds = true\nmofed = 7", mode, "\"auto\"" },
		{ "nvidia-container-runtime.discover-mode = 1\nnvidia-container-runtime.experimental = true", mode,
		  "\"auto\"" },
		{ "nvidia-container-cli.cuda-compat-mode = \"mount\"",
		  "nvidia-container-runtime.modes.legacy.cuda-compat-mode", "\"ldconfig\"" },
		{ "features.include-persistenced-socket = \"x\"", mode, "\"auto\"" },
		/* ldconfig */
		{ "nvidia-container-cli.ldconfig = \"@/foo.real\"", "nvidia-container-cli.ldconfig", "\"@/foo.real\"" },
		{ "nvidia-container-cli.ldconfig = \"/foo\"\nfeatures.allow-ldconfig-from-container = true",
		  "nvidia-container-cli.ldconfig", "\"/foo\"" },
		{ "nvidia-container-cli.ldconfig = \"\"\nfeatures.allow-ldconfig-from-container = true",
		  "nvidia-container-cli.ldconfig", "\"\"" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool failed = true;
		const char *json = read_config(rows[i].text, NULL, &failed);

		if (failed)
			fail_msg("'%s': %s", rows[i].text, json);
		assert_member(json, rows[i].name, rows[i].value);
	}
}

#define NOT_HOST_RELATIVE(line, value)                                                                               \
	"config.toml: line " #line ", column 33: invalid config value: nvidia-container-cli.ldconfig value \"" value \
	"\" is not host-relative (does not start with a '@'); allowed: \"@/sbin/ldconfig\", or any path with "       \
	"features."                                                                                                  \
	"allow-ldconfig-from-container = true"

static void test_refused(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "disable-require = \"true\"",
		  "config.toml: line 1, column 19: disable-require is \"true\"; allowed: true or false" },
		{ "\n disable-require = 1",
		  "config.toml: line 2, column 20: disable-require is 1; allowed: true or false" },
		{ "swarm-resource = 1", "config.toml: line 1, column 18: swarm-resource is 1; allowed: a string" },
		{ "[nvidia-container-runtime]\nruntimes = \"runc\"",
		  "config.toml: line 2, column 12: nvidia-container-runtime.runtimes is \"runc\"; allowed: a list of "
		  "strings, [\"a\", \"b\"]" },
		{ "[nvidia-container-runtime]\nruntimes = [\"runc\", 1]",
		  "config.toml: line 2, column 12: nvidia-container-runtime.runtimes is [\"runc\", 1]; allowed: a list "
		  "of strings, [\"a\", \"b\"]" },
		{ "features = 3", "config.toml: line 1, column 12: features is 3; allowed: a table" },
		{ "FEATURES = 3", "config.toml: line 1, column 12: FEATURES is 3; allowed: a table" },
		{ "nvidia-container-runtime.modes.jit-cdi = \"x\"",
		  "config.toml: line 1, column 42: nvidia-container-runtime.modes.jit-cdi is \"x\"; allowed: a table" },
		{ "[[nvidia-ctk]]\npath = \"x\"",
		  "config.toml: line 1, column 3: nvidia-ctk is an array of tables; allowed: a table" },
		{ "[features]\nignore-imex-channel-requests = \"yes\"",
		  "config.toml: line 2, column 32: features.ignore-imex-channel-requests is \"yes\"; allowed: true or "
		  "false" },
		{ "nvidia-container-cli.ldconfig = \"/foo\"", NOT_HOST_RELATIVE(1, "/foo") },
		{ "\nnvidia-container-cli.ldconfig = \"\"", NOT_HOST_RELATIVE(2, "") },
		{ "NVIDIA-CONTAINER-CLI.LDCONFIG = \"x\"\nfeatures.allow-ldconfig-from-container = false",
		  NOT_HOST_RELATIVE(1, "x") },
		/* malformed */
		{ "disable-require = yes", NULL },
		{ "[features", NULL },
		{ "[features]\n[features]", NULL },
		{ "disable-require = true\ndisable-require = true", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool failed = false;
		const char *text = read_config(rows[i].text, NULL, &failed);

		if (!failed)
			fail_msg("'%s' was accepted", rows[i].text);
		assert_true(strncmp(text, "config.toml: line ", 18) == 0);
		if (rows[i].error)
			assert_string_equal(text, rows[i].error);
	}
}

static void test_host(void **state)
{
	static const struct graft_config_host suse = { true, "@/sbin/ldconfig.real" };
	bool failed = true;
	const char *json = read_config("", &suse, &failed);

	assert_false(failed);
	assert_member(json, "nvidia-container-cli.user", "\"root:video\"");
	assert_member(json, "nvidia-container-cli.ldconfig", "\"@/sbin/ldconfig.real\"");
	json = read_config("[nvidia-container-cli]\nuser = \"\"\nldconfig = \"@/l\"", &suse, &failed);
	assert_member(json, "nvidia-container-cli.user", "\"\"");
	assert_member(json, "nvidia-container-cli.ldconfig", "\"@/l\"");
}

static void test_allocations(void **state)
{
	static const char text[] =
	    "swarm-resource = \"X\"\n[nvidia-container-runtime]\nruntimes = [\"a\"]\nmode = \"cdi\"\n"
	    "modes.cdi.spec-dirs = [\"/a\", \"/b\", \"/c\"]\n[NVIDIA-CTK]\nPATH = \"x\"";
	auto_toml struct graft_toml *toml = NULL;
	struct graft_config config;
	bool failed = true;

	assert_int_equal(graft_toml_parse("config.toml", text, strlen(text), &toml, NULL), 0);
	assert_true(allocation_each(own, err, graft_config_read(toml, NULL, own, &config, &err)) > 0);
	/* One block holds it all; so let each piece of it be the one too much. */
	for (size_t max = 0; failed; max += 16) {
		struct graft_arena *arena = graft_arena_new(max);
		struct graft_error err = { 0 };

		failed = graft_config_read(toml, NULL, arena, &config, &err) < 0;
		assert_int_equal(err.status, failed ? GRAFT_NO_MEMORY : GRAFT_OK);
		graft_arena_free(arena);
	}
}

static void test_document(void **state)
{
	struct graft_buffer out = { 0 };

	graft_config_document(&out);
	assert_false(graft_buffer_failed(&out));
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const char *dot = strrchr(graft_config_keys[i].name, '.');
		char row[128];

		(void)snprintf(row, sizeof(row), "\n| `%s` | ", dot ? dot + 1 : graft_config_keys[i].name);
		assert_non_null(strstr(out.bytes, row));
	}
	assert_non_null(strstr(out.bytes, "### Top level\n"));
	assert_non_null(strstr(out.bytes, "### `[nvidia-container-runtime.modes.cdi]`\n"));
	graft_buffer_done(&out);
}

static void test_manual(void **state)
{
	struct graft_buffer out = { 0 };

	graft_config_manual(&out);
	assert_false(graft_buffer_failed(&out));
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		char row[128];

		(void)snprintf(row, sizeof(row), "\n*%s* (", graft_config_keys[i].name);
		assert_non_null(strstr(out.bytes, row));
	}
	/* scdoc refuses a page whose marks are not in pairs. */
	assert_null(strchr(out.bytes, '`'));
	assert_null(strstr(out.bytes, ".md"));
	assert_non_null(strstr(out.bytes, "letting it mount them.\n"));
	graft_buffer_done(&out);
}

/* docs/config.toml: as it stands it changes nothing, and with all lines put into force it has every key. */
static void test_example(void **state)
{
	const char *source_root = getenv("GRAFT_SOURCE_ROOT");
	char path[4096], text[16384], *defaults;
	bool failed = true;
	FILE *file;
	size_t n;

	if (!source_root)
		skip();
	(void)snprintf(path, sizeof(path), "%s/docs/config.toml", source_root);
	file = fopen(path, "re");
	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	(void)fclose(file);
	defaults = strdup(read_config("", NULL, &failed));
	assert_non_null(defaults);
	assert_string_equal(read_config(text, NULL, &failed), defaults);
	free(defaults);
	for (char *hash = strstr(text, "\n#"); hash; hash = strstr(hash + 1, "\n#")) {
		if (hash[2] != ' ')
			hash[1] = ' ';
	}
	(void)read_config(text, NULL, &failed);
	assert_false(failed);
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		auto_toml struct graft_toml *toml = NULL;

		assert_int_equal(graft_toml_parse("docs/config.toml", text, n, &toml, NULL), 0);
		if (!graft_toml_has(toml, graft_config_keys[i].name))
			fail_msg("docs/config.toml lacks %s", graft_config_keys[i].name);
	}
}

static void test_unknown(void **state)
{
	static const struct {
		const char *text, *warnings[3];
	} rows[] = {
		{ "disable-require = true\n[nvidia-container-cli]\nno-cgroups = true", { NULL } },
		{ "[nvidia-container-cli]\n\nno_cgroups = true",
		  { "config.toml: line 3: ignoring unknown key 'nvidia-container-cli.no_cgroups' (did you mean "
		    "'no-cgroups'?)" } },
		{ "Disable-Require = true",
		  { "config.toml: line 1: ignoring unknown key 'Disable-Require' (did you mean "
		    "'disable-require'?)" } },
		/* In the wrong table. */
		{ "no-cgroups = true",
		  { "config.toml: line 1: ignoring unknown key 'no-cgroups' (did you mean "
		    "'nvidia-container-cli.no-cgroups'?)" } },
		{ "nvidia-container-cli.cuda-compat-mode = 'mount'",
		  { "config.toml: line 1: ignoring unknown key 'nvidia-container-cli.cuda-compat-mode' (did "
		    "you mean "
		    "'nvidia-container-runtime.modes.legacy.cuda-compat-mode'?)" } },
		/* Our own keys count among those that are meant. */
		{ "[nvidia-container-runtime.modes.cdi]\nallowed-envvar-kind = ['x']",
		  { "config.toml: line 2: ignoring unknown key "
		    "'nvidia-container-runtime.modes.cdi.allowed-envvar-kind' "
		    ""
		    "(did you mean 'allowed-envvar-kinds'?)" } },
		/* Tables, whose keys are not told one by one. */
		{ "\n[nvidia-container-runtimes]\nmode = 'cdi'\ndebug = '/x'",
		  { "config.toml: line 2: ignoring unknown table 'nvidia-container-runtimes' (did you mean "
		    "'nvidia-container-runtime'?)" } },
		{ "[x]\ny = 1\n[features]\nelephant = true\n\"a b\" = 1",
		  { "config.toml: line 1: ignoring unknown table 'x'",
		    "config.toml: line 4: ignoring unknown key 'features.elephant'",
		    "config.toml: line 5: ignoring unknown key 'features.\"a b\"'" } },
		/* Upper case is read; keys of older releases may stay. */
		{ "[NVIDIA-CONTAINER-RUNTIME]\nMODE = 'cdi'\ndebug = ''", { NULL } },
		{ "[nvidia-container-runtime]\nexperimental = true\ndiscover-mode = 'legacy'\n[features]\ngds = "
		  "true\nmofed = "
		  "true\nnvswitch = true\ngdrcopy = true\ninclude-persistenced-socket = true",
		  { NULL } },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		auto_toml struct graft_toml *toml = NULL;
		struct graft_config config;
		struct graft_error err = { 0 };
		size_t n = 0;

		assert_int_equal(graft_toml_parse("config.toml", rows[i].text, strlen(rows[i].text), &toml, &err), 0);
		assert_int_equal(graft_config_read(toml, NULL, arena, &config, &err), 0);
		while (n < GRAFT_COUNT(rows[i].warnings) && rows[i].warnings[n]) {
			if (n >= config.unknown.n)
				fail_msg("row %zu: no '%s'", i, rows[i].warnings[n]);
			assert_string_equal(config.unknown.items[n], rows[i].warnings[n]);
			n++;
		}
		if (config.unknown.n != n)
			fail_msg("row %zu: also '%s'", i, config.unknown.items[n]);
		graft_arena_free(arena);
	}
}

static void test_many_unknown(void **state)
{
	struct graft_buffer text = { .max = 0 };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_toml struct graft_toml *toml = NULL;
	struct graft_strings unknown;

	for (int i = 0; i < 100; i++)
		graft_buffer_printf(&text, "key%d = 1\n", i);
	assert_int_equal(graft_toml_parse("x", graft_buffer_text(&text), text.length, &toml, NULL), 0);
	assert_int_equal(graft_config_find_unknown(toml, arena, &unknown, NULL), 0);
	assert_int_equal(unknown.n, GRAFT_CONFIG_UNKNOWN_MAX);
	graft_arena_free(arena);
	graft_buffer_done(&text);
}

/* Each mistake as "KEY VALUE: ALLOWED". */
static void test_mistakes(void **state)
{
	static const struct {
		const char *text;
		const char *mistakes[3];
	} rows[] = {
		{ "", { NULL } },
		{ "supported-driver-capabilities = ''", { NULL } },
		{ "supported-driver-capabilities = 'all'", { NULL } },
		{ "supported-driver-capabilities = 'compute,foo,,videos'",
		  { "supported-driver-capabilities foo: " CAPABILITIES,
		    "supported-driver-capabilities videos: " CAPABILITIES " (did you mean 'video'?)" } },
		{ "[nvidia-container-runtime]\nlog-level = 'WARN'\nmode = 'jit-cdi'", { NULL } },
		{ "[nvidia-container-runtime]\nlog-level = 'loud'\nmode = 'CDI'",
		  { "nvidia-container-runtime.log-level loud: error, warning, warn, info, debug, panic, fatal or trace",
		    "nvidia-container-runtime.mode CDI: auto, legacy, cdi, jit-cdi or csv (did you mean 'cdi'?)" } },
		{ "[nvidia-container-runtime]\nmode = ''",
		  { "nvidia-container-runtime.mode : auto, legacy, cdi, jit-cdi or csv" } },
		{ "[nvidia-container-runtime.modes]\ncdi.default-kind = 'vendor.com/class_1'", { NULL } },
		{ "[nvidia-container-runtime.modes]\ncdi.default-kind = 'nvidia/gpu='\nlegacy.cuda-compat-mode = "
		  "'mnt'\n"
		  "jit-cdi.nvcdi-disable-hooks = ['update-ldcache', 'chmod', 'create_symlinks']",
		  { "nvidia-container-runtime.modes.cdi.default-kind nvidia/gpu=: VENDOR/CLASS",
		    "nvidia-container-runtime.modes.jit-cdi.nvcdi-disable-hooks create_symlinks: all, create-symlinks, "
		    "update-ldcache, enable-cuda-compat, disable-device-node-modification, update-application-profile "
		    "or "
		    "chmod (did you mean 'create-symlinks'?)",
		    "nvidia-container-runtime.modes.legacy.cuda-compat-mode mnt: ldconfig, mount, hook or disabled" } },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		auto_toml struct graft_toml *toml = NULL;
		struct graft_config_mistake *mistakes;
		struct graft_config config;
		struct graft_error err = { 0 };
		size_t n, known = 0;
		char text[512];

		assert_int_equal(graft_toml_parse("config.toml", rows[i].text, strlen(rows[i].text), &toml, &err), 0);
		assert_int_equal(graft_config_read(toml, NULL, arena, &config, &err), 0);
		assert_int_equal(graft_config_find_mistakes(&config, arena, &mistakes, &n, &err), 0);
		for (size_t k = 0; k < n; k++) {
			(void)snprintf(text, sizeof(text), "%s %s: %s", mistakes[k].key, mistakes[k].value,
				       mistakes[k].allowed);
			if (k >= GRAFT_COUNT(rows[i].mistakes) || !rows[i].mistakes[k])
				fail_msg("row %zu: also '%s'", i, text);
			assert_string_equal(text, rows[i].mistakes[k]);
		}
		while (known < GRAFT_COUNT(rows[i].mistakes) && rows[i].mistakes[known])
			known++;
		assert_int_equal(n, known);
		graft_arena_free(arena);
	}
}

/* The words of the table are those that the programs take: capabilities from their own list. */
static void test_allowed(void **state)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_config_mistake *mistakes;
	struct graft_config config;
	size_t n;

	assert_int_equal(graft_config_defaults(NULL, arena, &config, NULL), 0);
	config.supported_driver_capabilities = "x";
	config.runtime.cdi_default_kind = "";
	assert_int_equal(graft_config_find_mistakes(&config, arena, &mistakes, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_string_equal(mistakes[0].allowed, CAPABILITIES);
	assert_string_equal(mistakes[1].allowed, "VENDOR/CLASS");
	for (unsigned int i = 0; i < GRAFT_CAP_BITS; i++) {
		config.supported_driver_capabilities = graft_capability_names[i];
		assert_int_equal(graft_config_find_mistakes(&config, arena, &mistakes, &n, NULL), 0);
		assert_int_equal(n, 1);
	}
	graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mistakes),     cmocka_unit_test(test_allowed),
		cmocka_unit_test(test_defaults),     cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_many_unknown), cmocka_unit_test(test_each_key),
		cmocka_unit_test(test_spellings),    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_host),         cmocka_unit_test(test_allocations),
		cmocka_unit_test(test_document),     cmocka_unit_test(test_manual),
		cmocka_unit_test(test_example),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
