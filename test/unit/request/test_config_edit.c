/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of `config --set` (SPEC ctk-and-cdi 1.4, 6.2) and the document of defaults. */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "config_text.h"
#include "request/config.h"

#define ENVIRONMENT "nvidia-container-cli.environment"

struct row {
	const char *text;
	const char *setting;
	const char *separator; /* NULL = ":" */
	const char *result;    /* the document; NULL = an error */
	const char *error;     /* behind "invalid --set option SETTING: " */
};

static const struct row rows[] = {
	/* SPEC ctk-and-cdi 6.2, line by line */
	{ "", "undefined=new-value", NULL, NULL, "invalid config option: undefined field: \"undefined\"" },
	{ "", "nvidia-container-cli.undefined", NULL, NULL, "invalid config option: undefined field: \"undefined\"" },
	{ "", "disable-require", NULL, "disable-require = true\n", NULL },
	{ "", "disable-require=true", NULL, "disable-require = true\n", NULL },
	{ "", "disable-require=false", NULL, "disable-require = false\n", NULL },
	{ "", "disable-require=something", NULL, NULL,
	  "invalid format: expected true or false; got disable-require=something" },
	{ "", "swarm-resource", NULL, NULL, "invalid format: expected key=value; got swarm-resource" },
	{ "", "swarm-resource=string-value=more", NULL, "swarm-resource = \"string-value=more\"\n", NULL },
	{ "", "swarm-resource=true", NULL, "swarm-resource = \"true\"\n", NULL },
	{ "", "swarm-resource=5", NULL, "swarm-resource = \"5\"\n", NULL },
	{ "", ENVIRONMENT "=string-value", ",", "[nvidia-container-cli]\nenvironment = [\"string-value\"]\n", NULL },
	{ "", ENVIRONMENT "=first=1,second=2", ",",
	  "[nvidia-container-cli]\nenvironment = [\"first=1\", \"second=2\"]\n", NULL },
	{ "", ENVIRONMENT "=first;second", ";", "[nvidia-container-cli]\nenvironment = [\"first\", \"second\"]\n",
	  NULL },
	/* lists: the separator, else commas, else one */
	{ "", ENVIRONMENT "=a:b,c", NULL, "[nvidia-container-cli]\nenvironment = [\"a\", \"b,c\"]\n", NULL },
	{ "", ENVIRONMENT "=a,b", NULL, "[nvidia-container-cli]\nenvironment = [\"a\", \"b\"]\n", NULL },
	{ "", ENVIRONMENT "=a::b:", NULL, "[nvidia-container-cli]\nenvironment = [\"a\", \"\", \"b\", \"\"]\n", NULL },
	{ "", ENVIRONMENT "=a--b-c", "--", "[nvidia-container-cli]\nenvironment = [\"a\", \"b-c\"]\n", NULL },
	{ "", ENVIRONMENT "=", NULL, "[nvidia-container-cli]\nenvironment = []\n", NULL },
	{ "", ENVIRONMENT, NULL, NULL, "invalid format: expected key=value; got " ENVIRONMENT },
	/* bools in all their words */
	{ "", "disable-require=T", NULL, "disable-require = true\n", NULL },
	{ "", "disable-require=0", NULL, "disable-require = false\n", NULL },
	{ "", "disable-require=", NULL, NULL, "invalid format: expected true or false; got disable-require=" },
	{ "", "disable-require=nil", NULL, NULL, "invalid format: expected true or false; got disable-require=nil" },
	/* optional keys */
	{ "", "features.allow-ldconfig-from-container", NULL, "[features]\nallow-ldconfig-from-container = true\n",
	  NULL },
	{ "[features]\nallow-ldconfig-from-container = true # why\n# end\n",
	  "features.allow-ldconfig-from-container=nil", NULL, "[features]\n# end\n", NULL },
	{ "x = 1\n", "features.allow-ldconfig-from-container=nil", NULL, "x = 1\n", NULL },
	{ "", "features.allow-ldconfig-from-container=maybe", NULL, NULL,
	  "invalid format: expected true or false; got features.allow-ldconfig-from-container=maybe" },
	/* strings as they are, quoted as TOML wants it */
	{ "", "swarm-resource=", NULL, "swarm-resource = \"\"\n", NULL },
	{ "", "swarm-resource=nil", NULL, "swarm-resource = \"nil\"\n", NULL },
	{ "", "swarm-resource=a \"b\" \\c\td", NULL, "swarm-resource = \"a \\\"b\\\" \\\\c\\u0009d\"\n", NULL },
	/* names */
	{ "", "", NULL, NULL, "invalid config option: undefined field: \"\"" },
	{ "", "=x", NULL, NULL, "invalid config option: undefined field: \"\"" },
	{ "", "disable-requir=true", NULL, NULL,
	  "invalid config option: undefined field: \"disable-requir\" (did you mean 'disable-require'?)" },
	{ "", "no_cgroups=true", NULL, NULL,
	  "invalid config option: undefined field: \"no_cgroups\" (did you mean 'nvidia-container-cli.no-cgroups'?)" },
	{ "", "nvidia-container-runtime.log_level=x", NULL, NULL,
	  "invalid config option: undefined field: \"log_level\" (did you mean "
	  "'nvidia-container-runtime.log-level'?)" },
	{ "", "a.b.c=true", NULL, NULL, "invalid config option: undefined field: \"a\"" },
	{ "", "disable-require.x=true", NULL, NULL, "invalid config option: undefined field: \"x\"" },
	{ "", "nvidia-container-runtime.modes.x.y=1", NULL, NULL, "invalid config option: undefined field: \"x\"" },
	{ "", "nvidia-container-cli.=1", NULL, NULL, "invalid config option: undefined field: \"\"" },
	{ "", "nvidia-container-cli=1", NULL, NULL, "unsupported type for [nvidia-container-cli] (table)" },
	{ "", "nvidia-container-runtime.modes=1", NULL, NULL,
	  "unsupported type for [nvidia-container-runtime.modes] (table)" },
	{ "", "nvidia-container-cli", NULL, NULL, "invalid format: expected key=value; got nvidia-container-cli" },
	{ "", "features", NULL, NULL, "invalid format: expected key=value; got features" },
	/* what else is there stays */
	{ "# top\nb = 1 # own\n\ndisable-require   =   false # no\n[x]\n", "disable-require", NULL,
	  "# top\nb = 1 # own\n\ndisable-require   =   true # no\n[x]\n", NULL },
	{ "disable-require = true # as is\n", "disable-require", NULL, "disable-require = true # as is\n", NULL },
	{ "nvidia-container-cli = { root = \"/a\" }\n", "nvidia-container-cli.root=/b", NULL,
	  "nvidia-container-cli = { root = \"/b\" }\n", NULL },
	{ "DISABLE-REQUIRE = false\n", "disable-require", NULL, "DISABLE-REQUIRE = true\n", NULL },
	{ "features = 3\n", "features.allow-ldconfig-from-container", NULL, NULL,
	  "config.toml: 'features.allow-ldconfig-from-container' cannot be set: a part of it is not a table" },
	/* the place of the sample, in the same table only, and only of that very line */
	{ "#swarm-resource = \"DOCKER_RESOURCE_GPU\"\nx = 1\n", "swarm-resource=A", NULL,
	  "swarm-resource = \"A\"\nx = 1\n", NULL },
	{ "x = 1\n#swarm-resource = \"DOCKER_RESOURCE_GPU\"\ny = 2\n[t]\n", "swarm-resource=A", NULL,
	  "x = 1\nswarm-resource = \"A\"\ny = 2\n[t]\n", NULL },
	{ "#swarm-resource = \"mine\"\nx = 1\n", "swarm-resource=A", NULL,
	  "#swarm-resource = \"mine\"\nx = 1\nswarm-resource = \"A\"\n", NULL },
	{ "[nvidia-container-cli]\n#debug = \"/var/log/nvidia-container-toolkit.log\"\n[nvidia-container-runtime]\nx = "
	  "1\n",
	  "nvidia-container-runtime.debug=/l", NULL,
	  "[nvidia-container-cli]\n#debug = \"/var/log/nvidia-container-toolkit.log\"\n[nvidia-container-runtime]\nx = "
	  "1\ndebug = \"/l\"\n",
	  NULL },
	{ "[nvidia-container-cli]\r\n#user = \"root:video\"\r\nx = 1\r\n", "nvidia-container-cli.user=u", NULL,
	  "[nvidia-container-cli]\r\nuser = \"u\"\r\nx = 1\r\n", NULL },
	{ "x = '''\n#swarm-resource = \"DOCKER_RESOURCE_GPU\"\n'''\n", "swarm-resource=A", NULL,
	  "x = '''\n#swarm-resource = \"DOCKER_RESOURCE_GPU\"\n'''\nswarm-resource = \"A\"\n", NULL },
	{ "#swarm-resource = \"DOCKER_RESOURCE_GPU\"\nswarm-resource = \"A\"\n", "swarm-resource=B", NULL,
	  "#swarm-resource = \"DOCKER_RESOURCE_GPU\"\nswarm-resource = \"B\"\n", NULL },
	/* the key is added above its sample */
	{ "[nvidia-container-cli]\nx = 1\n# y\n#no-cgroups = false\n# z\n[t]\n", "nvidia-container-cli.no-cgroups",
	  NULL, "[nvidia-container-cli]\nx = 1\n# y\nno-cgroups = true\n# z\n[t]\n", NULL },
	{ "x = 1\n#swarm-resource = \"DOCKER_RESOURCE_GPU\"", "swarm-resource=A", NULL,
	  "x = 1\nswarm-resource = \"A\"\n", NULL },
};

static void check(const struct row *row)
{
	struct graft_toml *toml = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	size_t length;
	int rc;

	assert_int_equal(graft_toml_parse("config.toml", row->text, strlen(row->text), &toml, &err), 0);
	rc = graft_config_set(&toml, row->setting, row->separator ? row->separator : ":", &err);
	if (rc < 0 && row->result)
		fail_msg("'%s': %s", row->setting, err.msg);
	assert_string_equal(graft_toml_text(toml, &length), row->result ? row->result : row->text);
	if (!row->result) {
		assert_int_equal(rc, -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_string_printed(err.msg, "invalid --set option %s: %s", row->setting, row->error);
	}
	graft_toml_free(toml);
}

static void test_set(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		check(&rows[i]);
}

/* Each key can be set, and is read back. */
static void test_every_key(void **state)
{
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const struct graft_config_key *key = &graft_config_keys[i];
		static const char *const values[] = { "true", "@x", "a:b" };
		static const char *const shown[] = { "true", "\"@x\"", "[\"a\", \"b\"]" };
		struct graft_toml *toml = NULL;
		struct graft_error err = { .status = GRAFT_OK };
		char setting[256], line[256];
		const char *dot = strrchr(key->name, '.');
		size_t length;

		(void)snprintf(setting, sizeof(setting), "%s=%s", key->name, values[key->kind]);
		(void)snprintf(line, sizeof(line), "%s = %s\n", dot ? dot + 1 : key->name, shown[key->kind]);
		assert_int_equal(graft_toml_parse("x", "", 0, &toml, &err), 0);
		assert_int_equal(graft_config_set(&toml, setting, ":", &err), 0);
		assert_non_null(strstr(graft_toml_text(toml, &length), line));
		assert_true(graft_toml_has(toml, key->name));
		/* What is optional, and nothing else, can be deleted. */
		(void)snprintf(setting, sizeof(setting), "%s=nil", key->name);
		if (key->kind == GRAFT_CONFIG_BOOL)
			assert_int_equal(graft_config_set(&toml, setting, ":", &err), key->optional ? 0 : -1);
		assert_int_equal(graft_toml_has(toml, key->name), !key->optional);
		assert_int_equal(key->optional, strncmp(key->name, "features.", 9) == 0);
		graft_toml_free(toml);
	}
}

static void test_split(void **state)
{
	static const struct {
		const char *value;
		const char *settings[4];
	} cases[] = {
		{ "disable-require", { "disable-require" } },
		{ "disable-require=true,swarm-resource=x", { "disable-require=true", "swarm-resource=x" } },
		{ "disable-require,nvidia-container-cli.no-cgroups,swarm-resource=y",
		  { "disable-require", "nvidia-container-cli.no-cgroups", "swarm-resource=y" } },
		/* commas of a value */
		{ ENVIRONMENT "=a=1,b=2", { ENVIRONMENT "=a=1,b=2" } },
		{ "supported-driver-capabilities=compute,utility,disable-require",
		  { "supported-driver-capabilities=compute,utility", "disable-require" } },
		{ "swarm-resource=a,,b,", { "swarm-resource=a,,b," } },
		{ "swarm-resource=a,disable-requires", { "swarm-resource=a,disable-requires" } },
		{ "swarm-resource=a,features", { "swarm-resource=a,features" } },
		{ "", { "" } },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 16);
		struct graft_strings settings = { 0 };
		struct graft_error err;
		size_t n = 0;

		assert_non_null(arena);
		assert_int_equal(graft_config_split_settings(cases[i].value, arena, &settings, &err), 0);
		for (; n < GRAFT_COUNT(cases[i].settings) && cases[i].settings[n]; n++) {
			assert_true(n < settings.n);
			assert_string_equal(settings.items[n], cases[i].settings[n]);
		}
		assert_int_equal(settings.n, n);
		graft_arena_free(arena);
	}
}

/* ---- defaults ---- */

static const char defaults[] =
    "#accept-nvidia-visible-devices-as-volume-mounts = false\n"
    "#accept-nvidia-visible-devices-envvar-when-unprivileged = true\n"
    "disable-require = false\n"
    "supported-driver-capabilities = \"compat32,compute,display,graphics,ngx,utility,video\"\n"
    "#swarm-resource = \"DOCKER_RESOURCE_GPU\"\n"
    "\n[nvidia-container-cli]\n"
    "#debug = \"/var/log/nvidia-container-toolkit.log\"\n"
    "environment = []\n"
    "#ldcache = \"/etc/ld.so.cache\"\n"
    "ldconfig = \"@/sbin/ldconfig\"\n"
    "load-kmods = true\n"
    "#no-cgroups = false\n"
    "#path = \"/usr/bin/nvidia-container-cli\"\n"
    "#root = \"/run/nvidia/driver\"\n"
    "#user = \"root:video\"\n"
    "\n[nvidia-container-runtime]\n"
    "#debug = \"/var/log/nvidia-container-runtime.log\"\n"
    "log-level = \"info\"\n"
    "mode = \"auto\"\n"
    "runtimes = [\"runc\", \"crun\"]\n"
    "\n[nvidia-container-runtime.modes]\n"
    "\n[nvidia-container-runtime.modes.cdi]\n"
    "annotation-prefixes = [\"cdi.k8s.io/\"]\n"
    "default-kind = \"nvidia.com/gpu\"\n"
    "spec-dirs = [\"/etc/cdi\", \"/var/run/cdi\"]\n"
    "\n[nvidia-container-runtime.modes.csv]\n"
    "mount-spec-path = \"/etc/nvidia-container-runtime/host-files-for-container.d\"\n"
    "\n[nvidia-container-runtime.modes.legacy]\n"
    "cuda-compat-mode = \"ldconfig\"\n"
    "\n[nvidia-container-runtime-hook]\n"
    "path = \"nvidia-container-runtime-hook\"\n"
    "skip-mode-detection = false\n"
    "\n[nvidia-ctk]\n"
    "path = \"nvidia-ctk\"\n";

static void test_defaults(void **state)
{
	static const struct graft_config_host suse = { true, "@/sbin/ldconfig.real" };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_buffer text = { .max = 0 }, with = { .max = 0 }, without = { .max = 0 };
	struct graft_config config;
	struct graft_toml *toml = NULL;
	struct graft_error err = { .status = GRAFT_OK };

	assert_non_null(arena);
	assert_int_equal(graft_config_default_document(NULL, arena, &text, &err), 0);
	assert_string_equal(graft_buffer_text(&text), defaults);
	/* It says what the defaults are. */
	assert_int_equal(graft_toml_parse("x", graft_buffer_text(&text), text.length, &toml, &err), 0);
	assert_int_equal(graft_config_read(toml, NULL, arena, &config, &err), 0);
	config_text(&config, &with);
	assert_int_equal(graft_config_defaults(NULL, arena, &config, &err), 0);
	config_text(&config, &without);
	assert_string_equal(graft_buffer_text(&with), graft_buffer_text(&without));
	graft_toml_free(toml);
	graft_buffer_done(&text);
	/* On SUSE the user is no sample. */
	assert_int_equal(graft_config_default_document(&suse, arena, &text, &err), 0);
	assert_non_null(strstr(graft_buffer_text(&text), "\nuser = \"root:video\"\n"));
	assert_non_null(strstr(graft_buffer_text(&text), "\nldconfig = \"@/sbin/ldconfig.real\"\n"));
	graft_buffer_done(&text);
	graft_buffer_done(&with);
	graft_buffer_done(&without);
	graft_arena_free(arena);
}

/* ---- memory ---- */

static int write_and_split(struct graft_arena *own, struct graft_error *err)
{
	auto_buffer struct graft_buffer out = { .max = 0 };
	struct graft_strings strings;

	if (graft_config_default_document(NULL, own, &out, err) < 0)
		return -1;
	return graft_config_split_settings("disable-require,swarm-resource=a", own, &strings, err);
}

/* Each allocation of one run fails once; where none did, the result is right. */
static void test_allocations(void **state)
{
	static const char text[] = "#swarm-resource = \"DOCKER_RESOURCE_GPU\"\n[features]\nx = 1\n";
	static const char *const settings[] = { "swarm-resource=A", ENVIRONMENT "=a:b", "features.honor-requirements",
						"features.honor-requirements=nil", "disable-require" };
	bool failed = true;

	for (int n = 1; failed; n++) {
		struct graft_toml *toml = NULL;
		struct graft_error err = { .status = GRAFT_OK };
		int rc = 0;

		assert_int_equal(graft_toml_parse("x", text, strlen(text), &toml, &err), 0);
		allocation_fail(n);
		for (size_t i = 0; rc == 0 && i < GRAFT_COUNT(settings); i++)
			rc = graft_config_set(&toml, settings[i], ":", &err);
		failed = allocation_reported(rc, &err);
		graft_toml_free(toml);
	}
	assert_true(allocation_each(own, err, write_and_split(own, &err)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),      cmocka_unit_test(test_every_key),   cmocka_unit_test(test_split),
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests_name("config_edit", tests, NULL, NULL);
}
