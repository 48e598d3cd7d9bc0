/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the low-level runtime and the hooks, and never this program itself (SPEC runtime-and-hook
 * 3.4, 3.6, Q4, Q19).
 */
#include "../unit.h"
#include "start/locate.h"
#include "world.h"

#define N_MAX 4

static struct graft_config config_of(const char *const *names, const struct world *world)
{
	struct graft_config config = { .file = "/c.toml" };

	for (; names[config.runtime.runtimes.n]; config.runtime.runtimes.n++)
		;
	config.runtime.runtimes.items = graft_arena_list(world->arena, config.runtime.runtimes.n,
							 sizeof(*config.runtime.runtimes.items));
	for (size_t i = 0; i < config.runtime.runtimes.n; i++)
		config.runtime.runtimes.items[i] = world_text(world, names[i]);
	return config;
}

/* Makes the directories a, b and c with their files; a and b are in PATH. */
static void make_world(const struct world *world)
{
	char self[4096] = "";

	world_put(world, "a/runc", "", 0644); /* not executable */
	world_put(world, "b/runc",
		  "\x7f"
		  "ELF",
		  0755);                                 /* found */
	world_put(world, "b/crun", "#!/bin/sh\n", 0700); /* a script */
	world_put(world, "b/one-bit", "#", 0001);
	world_put(world, "b/ru*", "x", 0755);
	world_put(world, "c/other", "", 0755);
	world_put(world, "b/nvidia-container-runtime.real", "", 0755);
	world_put(world, "a/directory/x", "", 0755);
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_int_equal(symlink(self, world_path(world, "a/self")), 0);
	assert_int_equal(symlink("self", world_path(world, "a/youki")), 0);
	world_put(world, "b/youki", "", 0755);
	assert_int_equal(symlink("../b/runc", world_path(world, "a/link")), 0);
	assert_int_equal(symlink("nowhere", world_path(world, "a/dangling")), 0);
	assert_int_equal(
	    setenv("PATH",
		   graft_arena_printf(world->arena, "%s/a::relative:.:%s/b", world->directory, world->directory), 1),
	    0);
	unsetenv(GRAFT_WRAPPER_VARIABLE);
}

static void test_low_level(void **state)
{
	static const struct {
		const char *names[N_MAX]; /* '@' = the directory */
		const char *wanted;       /* relative to the directory; NULL = none */
		bool script;
	} rows[] = {
		{ { "runc", "crun" }, "b/runc", false },
		{ { "crun", "runc" }, "b/crun", true },
		{ { "no-such", "runc" }, "b/runc", false },
		{ { "one-bit" }, "b/one-bit", false },
		{ { "link" }, "a/link", false },
		{ { "dangling", "directory", "runc" }, "b/runc", false },
		/* not patterns */
		{ { "ru*" }, "b/ru*", false },
		{ { "run?" }, NULL, false },
		/* paths are used as they are, or not at all */
		{ { "@c/other" }, "c/other", false },
		{ { "@a/runc", "@b/runc" }, "b/runc", false },
		{ { "other" }, NULL, false },
		{ { "@a/directory" }, NULL, false },
		{ { "" }, NULL, false },
		{ { "directory/x" }, NULL, false },
		/* never this program itself: the next directory, the next candidate, or nothing */
		{ { "youki" }, "b/youki", false },
		{ { "self", "runc" }, "b/runc", false },
		{ { "@a/self" }, NULL, false },
		{ { "nvidia-container-runtime.real", "runc" }, "b/runc", false },
		{ { "@b/nvidia-container-runtime.real" }, NULL, false },
		{ { "/proc/self/exe" }, NULL, false },
	};
	const struct world *world = *state;

	make_world(world);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_config config = config_of(rows[i].names, world);
		struct graft_error err = { 0 };
		const char *path = NULL;
		bool script = !rows[i].script;
		int rc = graft_locate_low_level(&config, NULL, world->arena, &path, &script, &err);

		if (rc != (rows[i].wanted ? 0 : -1))
			fail_msg("row %zu: %s", i, rc < 0 ? err.msg : path);
		if (rc == 0) {
			assert_string_equal(path, world_path(world, rows[i].wanted));
			assert_int_equal(script, rows[i].script);
		} else {
			assert_int_equal(err.status, GRAFT_NOT_FOUND);
		}
	}
}

static void test_messages(void **state)
{
	static const char *const none[] = { NULL }, *const two[] = { "no-such", "neither", NULL },
				 *const self[] = { "no-such", "@a/self", NULL };
	const struct world *world = *state;
	struct graft_config config = config_of(none, world);
	struct graft_error err = { 0 };
	const char *path = NULL;
	bool script;

	make_world(world);
	assert_int_equal(graft_locate_low_level(&config, NULL, world->arena, &path, &script, &err), -1);
	assert_string_equal(err.msg, "error locating runtime: at least one runtime candidate must be specified "
				     "(nvidia-container-runtime.runtimes in /c.toml)");
	config = config_of(two, world);
	assert_int_equal(graft_locate_low_level(&config, NULL, world->arena, &path, &script, &err), -1);
	assert_string_equal(err.msg,
			    "error locating runtime: no runtime binary found from candidate list: [no-such neither]; "
			    "install runc or crun, or set nvidia-container-runtime.runtimes in /c.toml");
	config = config_of(self, world);
	assert_int_equal(graft_locate_low_level(&config, NULL, world->arena, &path, &script, &err), -1);
	assert_string_printed(
	    err.msg,
	    "error locating runtime: no runtime binary found from candidate list: [no-such %s] (%s is "
	    "this program itself); install runc or crun, or set nvidia-container-runtime.runtimes in "
	    "/c.toml",
	    world_path(world, "a/self"), world_path(world, "a/self"));
}

/* The standard directories follow those in PATH; sh is in one of them. */
static void test_standard_directories(void **state)
{
	static const char *const names[] = { "sh", NULL };
	static const char *const lists[] = { "", "/nowhere", ":", "/usr/bin:/nowhere", NULL };
	const struct world *world = *state;
	const struct graft_config config = config_of(names, world);
	const char *path = NULL;
	bool script;

	for (size_t i = 0; i < GRAFT_COUNT(lists); i++) {
		assert_int_equal(lists[i] ? setenv("PATH", lists[i], 1) : unsetenv("PATH"), 0);
		assert_int_equal(graft_locate_low_level(&config, NULL, world->arena, &path, &script, NULL), 0);
		assert_string_equal(path, "/usr/bin/sh");
	}
}

/*
 * A name is not searched for in the working directory: that is the bundle, which an image may fill.
 */
static void test_not_in_working_directory(void **state)
{
	static const char *const names[] = { "graft-test-runtime", NULL };
	static const char *const lists[] = { "", ".", "bin", "/nowhere::/nowhere2", ":" };
	const struct world *world = *state;
	const struct graft_config config = config_of(names, world);
	int saved = open(".", O_PATH | O_CLOEXEC);
	const char *path = NULL;
	bool script;

	world_put(world, "graft-test-runtime", "", 0755);
	world_put(world, "bin/graft-test-runtime", "", 0755);
	assert_int_equal(chdir(world->directory), 0);
	for (size_t i = 0; i < GRAFT_COUNT(lists); i++) {
		assert_int_equal(setenv("PATH", lists[i], 1), 0);
		assert_int_equal(graft_locate_low_level(&config, NULL, world->arena, &path, &script, NULL), -1);
	}
	assert_int_equal(fchdir(saved), 0);
	(void)close(saved);
}

static void test_loop(void **state)
{
	const struct graft_config config = { .file = "/c.toml" };
	struct graft_error err = { 0 };

	assert_int_equal(unsetenv(GRAFT_WRAPPER_VARIABLE), 0);
	assert_int_equal(graft_locate_refuse_loop(&config, &err), 0);
	assert_int_equal(setenv(GRAFT_WRAPPER_VARIABLE, "/usr/local/bin/runc", 1), 0);
	assert_int_equal(graft_locate_refuse_loop(&config, &err), -1);
	assert_string_equal(err.msg,
			    "error locating runtime: '/usr/local/bin/runc' is a script that calls this program again, "
			    "which would never end; name a low-level runtime by its path in "
			    "nvidia-container-runtime.runtimes of /c.toml");
	assert_int_equal(unsetenv(GRAFT_WRAPPER_VARIABLE), 0);
}

/* ---- whether its hooks may leave the state unread ---- */

static void test_unread_state(void **state)
{
	static const struct {
		const char *path; /* relative to the directory */
		bool ignores;
	} rows[] = {
		{ "go/runc", true },
		/* the name is that of the path, while the kind depends on the file */
		{ "link/runc", true },
		{ "go/crun", false },
		{ "go/runc-1.2", false },
		{ "go/docker-runc", false },
		{ "go/runc/", false },
		{ "c/runc", false },
		{ "link-to-c/runc", false },
		{ "script/runc", false },
		{ "empty/runc", false },
		{ "garbage/runc", false },
		{ "cut/runc", false },
		{ "directory/runc", false },
		{ "fifo/runc", false },
		{ "dangling/runc", false },
		{ "nowhere/runc", false },
	};
	const struct world *world = *state;
	const char *text;

	world_put_program(world, "go/runc", true);
	world_put_program(world, "go/crun", true);
	world_put_program(world, "go/runc-1.2", true);
	world_put_program(world, "go/docker-runc", true);
	world_put_program(world, "c/runc", false);
	world_put_program(world, "c/crun", false);
	text = world_put_program(world, "cut/runc", true);
	assert_int_equal(truncate(text, ELF_NOTES_ROOM + 50), 0);
	world_put(world, "script/runc", "#!/bin/sh\nexec /usr/sbin/runc \"$@\"\n", 0755);
	world_put(world, "empty/runc", "", 0755);
	world_put(world, "garbage/runc",
		  "\x7f"
		  "ELF\x02\x01\x01 and nothing else that would make sense to anybody",
		  0755);
	world_put(world, "directory/runc/x", "", 0755);
	world_put(world, "fifo/x", "", 0644);
	world_put(world, "link/x", "", 0644);
	world_put(world, "link-to-c/x", "", 0644);
	world_put(world, "dangling/x", "", 0644);
	assert_int_equal(mkfifo(world_path(world, "fifo/runc"), 0755), 0);
	assert_int_equal(symlink("../go/runc-1.2", world_path(world, "link/runc")), 0);
	assert_int_equal(symlink("../c/crun", world_path(world, "link-to-c/runc")), 0);
	assert_int_equal(symlink("nowhere", world_path(world, "dangling/runc")), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		print_message("# %s\n", rows[i].path);
		assert_int_equal(graft_low_level_ignores_unread_state(world_path(world, rows[i].path), world->arena),
				 rows[i].ignores);
	}
	assert_false(graft_arena_failed(world->arena));
}

/* Nothing is known about a program that can be run but not read. */
static void test_unreadable_runtime(void **state)
{
	const struct world *world = *state;
	const char *path = world_put_program(world, "go/runc", true);
	bool is_root = geteuid() == 0;

	assert_int_equal(chmod(world->directory, 0755), 0);
	if (is_root)
		assert_int_equal(seteuid(65534), 0);
	assert_true(graft_low_level_ignores_unread_state(path, world->arena));
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(path, 0111), 0);
	if (is_root)
		assert_int_equal(seteuid(65534), 0);
	assert_false(graft_low_level_ignores_unread_state(path, world->arena));
	if (is_root)
		assert_int_equal(seteuid(0), 0);
}

/* The distribution's own: runc is a Go program, crun is not, under whatever name. */
static void test_real_runtimes(void **state)
{
	static const char runc[] = "/usr/sbin/runc", crun[] = "/usr/bin/crun";
	const struct world *world = *state;

	world_put(world, "link/x", "", 0644);
	if (access(runc, X_OK) == 0) {
		assert_true(graft_low_level_ignores_unread_state(runc, world->arena));
		assert_int_equal(symlink(runc, world_path(world, "link/crun")), 0);
		assert_false(graft_low_level_ignores_unread_state(world_path(world, "link/crun"), world->arena));
	}
	if (access(crun, X_OK) == 0) {
		assert_false(graft_low_level_ignores_unread_state(crun, world->arena));
		assert_int_equal(symlink(crun, world_path(world, "link/runc")), 0);
		assert_false(graft_low_level_ignores_unread_state(world_path(world, "link/runc"), world->arena));
	}
}

/* Out of memory is reported by the arena. */
static void test_unread_state_without_memory(void **state)
{
	const struct world *world = *state;
	struct graft_arena *none = graft_arena_new(1);

	assert_false(graft_low_level_ignores_unread_state(world_put_program(world, "go/runc", true), none));
	assert_true(graft_arena_failed(none));
	graft_arena_free(none);
}

/* ---- whether its `create` stops before the start ---- */

/* Depends on the name only: the file need not exist. */
static void test_stops_before_start(void **state)
{
	static const struct {
		const char *path;
		bool stops;
	} rows[] = {
		{ "/usr/sbin/runc", true },     { "/usr/bin/crun", true },
		{ "/nowhere/runc", true },      { "runc", true },
		{ "/usr/bin/runc/", false },    { "/runc/youki", false },
		{ "/bin/runc-1.2", false },     { "", false },
		{ "/bin/docker-runc", false },  { "/bin/crun.real", false },
		{ "/bin/kata-runtime", false }, { "/bin/runsc", false },
		{ "/bin/RUNC", false },         { "/bin/run", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		if (graft_low_level_stops_before_start(rows[i].path) != rows[i].stops)
			fail_msg("'%s'", rows[i].path);
}

/* ---- hooks ---- */

static void test_hook(void **state)
{
	static const struct {
		const char *configured, *wanted; /* '@' = the directory */
	} rows[] = {
		{ "nvidia-container-runtime-hook", "@b/nvidia-container-runtime-hook" },
		{ "", "@b/nvidia-container-runtime-hook" },
		{ "other-hook", "@b/other-hook" },
		{ "/not/there", "/not/there" },
		{ "not-there", "/usr/bin/nvidia-container-runtime-hook" },
	};
	const struct world *world = *state;

	make_world(world);
	world_put(world, "b/nvidia-container-runtime-hook", "", 0755);
	world_put(world, "b/other-hook", "", 0755);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_config config = { .hook = { .path = rows[i].configured } };

		assert_string_equal(graft_locate_hook(&config, NULL, world->arena), world_text(world, rows[i].wanted));
	}
}

static void test_cdi_hook(void **state)
{
	static const struct {
		const char *configured, *wanted;
	} rows[] = {
		{ "/opt/nvidia-cdi-hook", "/opt/nvidia-cdi-hook" },
		{ "/opt/wrapper", "/opt/wrapper" },
		/* nvidia-ctk may belong to another toolkit */
		{ "nvidia-ctk", "@b/nvidia-cdi-hook" },
		{ "/usr/bin/nvidia-ctk", "@b/nvidia-cdi-hook" },
		{ "", "@b/nvidia-cdi-hook" },
		{ "nvidia-cdi-hook", "@b/nvidia-cdi-hook" },
	};
	const struct world *world = *state;

	make_world(world);
	world_put(world, "b/nvidia-cdi-hook", "", 0755);
	world_put(world, "b/nvidia-ctk", "", 0755);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_config config = { .ctk_path = rows[i].configured };

		assert_string_equal(graft_locate_cdi_hook(&config, NULL, world->arena),
				    world_text(world, rows[i].wanted));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_low_level, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_messages, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_standard_directories, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_not_in_working_directory, world_begin, world_end),
		cmocka_unit_test(test_loop),
		cmocka_unit_test_setup_teardown(test_unread_state, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_unreadable_runtime, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_real_runtimes, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_unread_state_without_memory, world_begin, world_end),
		cmocka_unit_test(test_stops_before_start),
		cmocka_unit_test_setup_teardown(test_hook, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_cdi_hook, world_begin, world_end),
	};

	return cmocka_run_group_tests_name("runtime_locate", tests, NULL, NULL);
}
