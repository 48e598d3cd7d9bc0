/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where config.toml is searched for, what happens if it is missing or invalid, and what a host adds
 * (SPEC runtime-and-hook 2.1, 2.5, 2.6).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "start/config_file.h"

enum { RUNTIME = GRAFT_CONFIG_OF_RUNTIME, HOOK = GRAFT_CONFIG_OF_HOOK };

/* Each test has its own directory; the paths in the rows are relative to it. */
struct world {
	char directory[64];
	struct graft_arena *arena;
};

static const char *in(const struct world *world, const char *path)
{
	return path && path[0] != '\0' ? graft_arena_printf(world->arena, "%s/%s", world->directory, path) : path;
}

static int begin(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		return -1;
	(void)snprintf(world->directory, sizeof(world->directory), "/tmp/graft-config-XXXXXX");
	world->arena = graft_arena_new((size_t)16 << 20);
	*state = world;
	return world->arena && mkdtemp(world->directory) ? 0 : -1;
}

static int end(void **state)
{
	struct world *world = *state;
	int rc = test_remove_folder(world->directory);

	graft_arena_free(world->arena);
	free(world);
	unsetenv("NVIDIA_CTK_CONFIG_FILE_PATH");
	unsetenv("XDG_CONFIG_HOME");
	return rc;
}

static void set_variable(const char *name, const char *value)
{
	assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void test_path(void **state)
{
	static const struct {
		int program;
		const char *flag, *named, *home, *path;
		bool required;
	} rows[] = {
		{ RUNTIME, NULL, NULL, NULL, GRAFT_CONFIG_DEFAULT_FILE, false },
		{ RUNTIME, NULL, "", "", GRAFT_CONFIG_DEFAULT_FILE, false },
		{ RUNTIME, NULL, NULL, "/home", "/home/nvidia-container-runtime/config.toml", false },
		{ RUNTIME, NULL, "named.toml", "/home", "named.toml", false },
		{ RUNTIME, "/flag", "named.toml", "/home", "/flag", false },
		{ RUNTIME, "", "named.toml", "/home", "named.toml", false },
		{ HOOK, NULL, NULL, NULL, GRAFT_CONFIG_DEFAULT_FILE, false },
		{ HOOK, NULL, NULL, "/home", "/home/nvidia-container-runtime/config.toml", false },
		{ HOOK, NULL, "/named", "/home", "/named", true },
		{ HOOK, "/flag", "/named", "/home", "/flag", true },
		{ HOOK, "", "", "", GRAFT_CONFIG_DEFAULT_FILE, false },
	};
	const struct world *world = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool required = !rows[i].required;

		set_variable("NVIDIA_CTK_CONFIG_FILE_PATH", rows[i].named);
		set_variable("XDG_CONFIG_HOME", rows[i].home);
		assert_string_equal(graft_config_file_path((enum graft_config_program)rows[i].program, rows[i].flag,
							   world->arena, &required),
				    rows[i].path);
		assert_int_equal(required, rows[i].required);
	}
}

static void test_load(void **state)
{
#define FROM_RUNTIME "error loading config: failed to load specified config file: "
#define FROM_HOOK    "error getting hook config: "
	static const struct {
		int program;
		const char *flag, *named, *home; /* below the directory */
		const char *mode;                /* the mode that is read; NULL = an error */
		const char *error;               /* the error's text; DIR is replaced by the directory */
	} rows[] = {
		{ RUNTIME, NULL, "good.toml", NULL, "cdi", NULL },
		{ RUNTIME, NULL, NULL, "home", "csv", NULL },
		{ RUNTIME, NULL, "missing", NULL, "auto", NULL },
		{ RUNTIME, "good.toml", "bad.toml", "home", "cdi", NULL },
		{ RUNTIME, "missing", "good.toml", NULL, "auto", NULL },
		{ RUNTIME, NULL, NULL, "missing", "auto", NULL },
		{ HOOK, "good.toml", "bad.toml", "home", "cdi", NULL },
		{ HOOK, NULL, "good.toml", "home", "cdi", NULL },
		{ HOOK, NULL, NULL, "home", "csv", NULL },
		{ HOOK, NULL, NULL, "missing", "auto", NULL },
		{ HOOK, "missing", "good.toml", NULL, NULL,
		  FROM_HOOK "couldn't open required configuration file: open failed: DIR/missing: no such file or "
			    "directory" },
		{ HOOK, NULL, "missing", "home", NULL,
		  FROM_HOOK "couldn't open required configuration file: open failed: DIR/missing: no such file or "
			    "directory" },
		{ RUNTIME, NULL, "bad.toml", NULL, NULL,
		  FROM_RUNTIME "DIR/bad.toml: line 2, column 21: disable-require is 7; allowed: true or false" },
		{ HOOK, "bad.toml", NULL, NULL, NULL,
		  FROM_HOOK "failed to load config: DIR/bad.toml: line 2, column 21: disable-require is 7; allowed: "
			    "true or false" },
		{ RUNTIME, NULL, "home", NULL, NULL, FROM_RUNTIME "open failed: DIR/home: not a regular file" },
		{ RUNTIME, NULL, "fifo", NULL, NULL, FROM_RUNTIME "open failed: DIR/fifo: not a regular file" },
		{ RUNTIME, NULL, "good.toml/x", NULL, NULL,
		  FROM_RUNTIME "open failed: DIR/good.toml/x: not a directory" },
		{ HOOK, NULL, "loop", NULL, NULL,
		  FROM_HOOK "failed to load config: open failed: DIR/loop: too many levels of symbolic links" },
		{ RUNTIME, NULL, "huge", NULL, NULL, FROM_RUNTIME "read failed: DIR/huge: over 1048576 bytes" },
	};
	const struct world *world = *state;

	test_put(AT_FDCWD, in(world, "good.toml"), "[nvidia-container-runtime]\nmode = \"cdi\"\n");
	test_put(AT_FDCWD, in(world, "bad.toml"), "# \n\"disable-require\" = 7");
	test_put(AT_FDCWD, in(world, "home/nvidia-container-runtime/config.toml"),
		 "nvidia-container-runtime.mode = \"csv\"");
	test_put(AT_FDCWD, in(world, "huge"), "# long\n");
	assert_int_equal(truncate(in(world, "huge"), (off_t)GRAFT_CONFIG_MAX_BYTES + 1), 0);
	assert_int_equal(symlink("loop", in(world, "loop")), 0);
	assert_int_equal(mkfifo(in(world, "fifo"), 0600), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_config config = { 0 };
		struct graft_error err = { 0 };
		char text[1024];
		const char *place, *wanted;
		int rc;

		set_variable("NVIDIA_CTK_CONFIG_FILE_PATH", in(world, rows[i].named));
		set_variable("XDG_CONFIG_HOME", in(world, rows[i].home));
		rc = graft_config_file_load((enum graft_config_program)rows[i].program, in(world, rows[i].flag),
					    world->arena, &config, &err);
		(void)graft_error_text(&err, text, sizeof(text));
		if (rows[i].mode) {
			if (rc < 0)
				fail_msg("row %zu: %s", i, text);
			assert_string_equal(config.runtime.mode, rows[i].mode);
			assert_int_equal(config.file == NULL, strcmp(rows[i].mode, "auto") == 0);
			assert_int_equal(err.status, GRAFT_OK);
			continue;
		}
		assert_int_equal(rc, -1);
		place = strstr(rows[i].error, "DIR");
		wanted = graft_arena_printf(world->arena, "%.*s%s%s", (int)(place - rows[i].error), rows[i].error,
					    world->directory, place + 3);
		assert_string_equal(text, wanted);
	}
}

static void test_suse(void **state)
{
	static const struct {
		const char *os_release;
		bool suse;
	} rows[] = {
		{ "", false },
		{ "ID=opensuse-leap\nID_LIKE=\"suse opensuse\"\nVERSION_ID=15\n", true },
		{ "ID_LIKE=suse", true },
		{ "ID_LIKE=opensuse\n", true },
		{ "ID_LIKE=\"rhel fedora\"\n", false },
		{ "ID_LIKE=\"debian suse\"", true },
		{ "ID_LIKE=\"sle suse-like\"", false },
		{ "ID_LIKE=SUSE", false },
		{ "ID=suse\n", false },
		{ "X_ID_LIKE=suse\n", false },
		{ "ID_LIKE=debian\nID_LIKE=suse\n", false }, /* the first line applies */
		{ "ID_LIKE=", false },
		{ "ID_LIKE=\"", false },
		{ "ID_LIKE=\"\"", false },
		{ "ID_LIKE=  suse  ", true },
	};
	const struct world *world = *state;
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	assert_int_equal(graft_root_open(&root, world->directory, NULL), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_config_host host;

		test_put(AT_FDCWD, in(world, "etc/os-release"), rows[i].os_release);
		graft_config_file_host(&root, world->arena, &host);
		if (host.suse != rows[i].suse)
			fail_msg("'%s'", rows[i].os_release);
		assert_string_equal(host.ldconfig, "@/sbin/ldconfig");
	}
}

static void test_ldconfig(void **state)
{
	static const struct {
		const char *value, *wanted;
	} rows[] = {
		{ "@/sbin/ldconfig", "@/sbin/ldconfig.real" },
		{ "@/sbin/ldconfig.real", "@/sbin/ldconfig.real" },
		{ "@/usr/sbin/ldconfig", "@/usr/sbin/ldconfig" },
		{ "@/usr/sbin/ldconfig.real", "@/usr/sbin/ldconfig" },
		{ "@/sbin/ldconfig.real.real", "@/sbin/ldconfig.real" },
		{ "@/link", "@/link.real" }, /* a link to an existing file */
		{ "@", "@" },
		{ "@.real", "@" },
		{ "", "" },
		{ "/sbin/ldconfig", "/sbin/ldconfig" },
		{ "/sbin/ldconfig.real", "/sbin/ldconfig.real" },
	};
	const struct world *world = *state;
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_config_host host;

	test_put(AT_FDCWD, in(world, "sbin/ldconfig.real"), "x");
	test_put(AT_FDCWD, in(world, "sbin/ldconfig.real.real.real"), "x");
	assert_int_equal(symlink("/sbin/ldconfig.real", in(world, "link.real")), 0);
	assert_int_equal(graft_root_open(&root, world->directory, NULL), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		assert_string_equal(graft_config_file_ldconfig(&root, rows[i].value, world->arena), rows[i].wanted);
	graft_config_file_host(&root, world->arena, &host);
	assert_string_equal(host.ldconfig, "@/sbin/ldconfig.real");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_path, begin, end),
		cmocka_unit_test_setup_teardown(test_load, begin, end),
		cmocka_unit_test_setup_teardown(test_suse, begin, end),
		cmocka_unit_test_setup_teardown(test_ldconfig, begin, end),
	};

	return cmocka_run_group_tests_name("cli_config", tests, NULL, NULL);
}
