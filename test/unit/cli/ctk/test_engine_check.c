/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of engines' programs: the words that they are called with, the files that they are shown, what their answers mean. The programs are scripts of
 * the test; nothing of what they were shown stays behind.
 */
#include "../../allocation.h"
#include "../../unit.h"
#include "cli/ctk/engine_check.h"
#include "ctk_case.h"

#define STANDARD_PATH ":/usr/bin:/bin"

/* An engine's request, and what is to become of its files. */
struct asked {
	struct graft_engine_request request;
	struct graft_engine_changes changes;
	struct graft_error err;
	char text[900];
};

static int open_host(void **state)
{
	int rc = case_open(state);
	struct ctk_case *test = *state;
	char path[64];

	(void)snprintf(path, sizeof(path), "%s" STANDARD_PATH, test->directory);
	assert_int_equal(setenv("PATH", path, 1), 0);
	return rc;
}

#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, open_host, case_close)

/* A program of the host; "@" is the test's directory. */
static void put_program(struct ctk_case *test, const char *name, const char *body)
{
	char script[2048];
	size_t used = (size_t)snprintf(script, sizeof(script), "#!/bin/sh\n");

	for (; *body; body++) {
		used += *body == '@' ? (size_t)snprintf(script + used, sizeof(script) - used, "%s", test->directory)
				     : (size_t)snprintf(script + used, sizeof(script) - used, "%c", *body);
		assert_true(used < sizeof(script));
	}
	case_write(test, name, script, 0755);
}

static struct graft_engine_text text_of(const char *text)
{
	return (struct graft_engine_text){ text, text ? strlen(text) : 0 };
}

/* The files before and after: NULL = missing, or removed. Paths are below the test's directory. */
static void set_files(struct ctk_case *test, struct asked *asked, const char *config, const char *drop_in,
		      const char *new_config, const char *new_drop_in)
{
	struct graft_arena *arena = test->ctk.arena;

	*asked = (struct asked){ .request = { .runtime_name = "nvidia", .runtime_path = "/usr/bin/nvidia" } };
	asked->request.config.path = graft_arena_strdup(arena, case_path(test, "etc/config.toml"));
	asked->request.drop_in.path = graft_arena_strdup(arena, case_path(test, "etc/conf.d/99-nvidia.toml"));
	asked->request.config.text = text_of(config);
	asked->request.drop_in.text = text_of(drop_in);
	asked->changes.edits[0] = (struct graft_engine_edit){ .file = &asked->request.drop_in,
							      .text = text_of(new_drop_in) };
	asked->changes.edits[1] = (struct graft_engine_edit){ .file = &asked->request.config,
							      .text = text_of(new_config) };
	asked->changes.n_edits = 2;
}

static int check(struct ctk_case *test, const struct graft_engine *engine, const char *executable, struct asked *asked)
{
	int rc;

	asked->err = (struct graft_error){ .status = GRAFT_OK };
	rc = ctk_engine_check(&test->ctk, engine, executable, &asked->request, &asked->changes, false, &asked->err);
	(void)graft_error_text(&asked->err, asked->text, sizeof(asked->text));
	return rc;
}

static void assert_text(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

/* The private directory of the last check, which a script has noted, is gone. */
static void assert_cleared(struct ctk_case *test)
{
	const char *path = case_read(test, "seen-path");
	struct stat st;

	assert_non_null(path);
	assert_int_equal(strncmp(path, "/tmp/nvidia-ctk-", strlen("/tmp/nvidia-ctk-")), 0);
	assert_int_equal(lstat(graft_arena_strndup(test->ctk.arena, path, strlen("/tmp/nvidia-ctk-XXXXXX")), &st), -1);
}

/* ---- where the configuration comes from ---- */

static void test_source(void **state)
{
	struct ctk_case *test = *state;
	struct graft_engine_request request = { .runtime_name = "nvidia" };
	struct graft_error err = { .status = GRAFT_OK };
	const char *program;

	put_program(test, "containerd", "[ \"$*\" = 'config dump' ] && echo 'version = 2'");
	assert_int_equal(ctk_engine_read_source(&test->ctk, &graft_engine_containerd, NULL, &request, &err), 0);
	assert_string_equal(request.source.bytes, "version = 2\n");
	assert_int_equal(request.source.length, 12);
	assert_string_equal(request.source_name, "the output of containerd");
	put_program(test, "crio", "[ \"$*\" = 'status config' ] && echo '[crio]'");
	assert_int_equal(ctk_engine_read_source(&test->ctk, &graft_engine_crio, NULL, &request, &err), 0);
	assert_string_equal(request.source.bytes, "[crio]\n");
	/* The older program, where the new one has no such command. */
	put_program(test, "crio", "echo unknown >&2; exit 1");
	put_program(test, "crio-status", "[ \"$*\" = config ] && echo '[old]'");
	assert_int_equal(ctk_engine_read_source(&test->ctk, &graft_engine_crio, NULL, &request, &err), 0);
	assert_string_equal(request.source.bytes, "[old]\n");
	assert_string_equal(request.source_name, "the output of crio-status");
	/* One that was named is taken at its word. */
	put_program(test, "other", "echo 'version = 3'");
	program = graft_arena_strdup(test->ctk.arena, case_path(test, "other"));
	assert_int_equal(ctk_engine_read_source(&test->ctk, &graft_engine_containerd, program, &request, &err), 0);
	assert_string_equal(request.source.bytes, "version = 3\n");
}

static void test_source_that_fails(void **state)
{
	struct ctk_case *test = *state;
	struct graft_engine_request request = { .runtime_name = "nvidia" };
	struct graft_error err = { .status = GRAFT_OK };
	char text[1800];

	put_program(test, "containerd", "echo 'no socket' >&2; exit 3");
	assert_int_equal(ctk_engine_read_source(&test->ctk, &graft_engine_containerd, NULL, &request, &err), -1);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "failed to load config: failed to run command containerd [config dump]: exit status 3: no "
			    "socket");
	err = (struct graft_error){ .status = GRAFT_OK };
	assert_int_equal(ctk_engine_read_source(&test->ctk, &graft_engine_containerd, "/nowhere/c", &request, &err),
			 -1);
	assert_text(graft_error_text(&err, text, sizeof(text)),
		    "failed to run command /nowhere/c [config dump]: /nowhere/c cannot be run: ");
	/* Both of CRI-O's files are reported. */
	err = (struct graft_error){ .status = GRAFT_OK };
	put_program(test, "crio", "exit 4");
	put_program(test, "crio-status", "exit 5");
	assert_int_equal(ctk_engine_read_source(&test->ctk, &graft_engine_crio, NULL, &request, &err), -1);
	assert_text(graft_error_text(&err, text, sizeof(text)), "failed to run command crio [status config]");
	assert_text(text, "failed to run command crio-status [config]");
	assert_null(request.source.bytes);
}

static void test_release(void **state)
{
	static const struct {
		const char *script;
		bool deep;
	} rows[] = {
		{ "echo containerd github.com/containerd/containerd 1.7.24 88bf19b", false },
		{ "echo containerd github.com/containerd/containerd/v2 v2.1.0 061792f", true },
		{ "echo containerd github.com/containerd/containerd/v2 v2.1.0 061792f; exit 1", false },
		{ "echo nothing of the kind", false },
	};
	struct ctk_case *test = *state;
	struct graft_error err = { .status = GRAFT_OK };
	bool deep;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		put_program(test, "containerd", rows[i].script);
		assert_int_equal(ctk_engine_merges_deeply(&test->ctk, NULL, &deep, &err), 0);
		assert_int_equal(deep, rows[i].deep);
	}
	test->ctk.log.max = GRAFT_LOG_DEBUG;
	assert_int_equal(ctk_engine_merges_deeply(&test->ctk, "/nowhere/containerd", &deep, &err), 0);
	assert_false(deep);
	assert_text(test->said, "debug: containerd's release is not known: /nowhere/containerd cannot be run");
}

/* ---- what engines are shown ---- */

static void test_not_installed(void **state)
{
	static const struct graft_engine *const engines[] = { &graft_engine_docker, &graft_engine_containerd,
							      &graft_engine_crio, &graft_engine_podman };
	struct ctk_case *test = *state;
	struct asked asked;

	assert_int_equal(setenv("PATH", test->directory, 1), 0);
	test->ctk.log.max = GRAFT_LOG_DEBUG;
	for (size_t i = 0; i < GRAFT_COUNT(engines); i++) {
		set_files(test, &asked, "", NULL, "", "");
		if (!engines[i]->drop_in_path)
			asked.request.drop_in.path = NULL;
		test->n_said = 0;
		assert_int_equal(check(test, engines[i], NULL, &asked), 0);
		assert_text(test->said, "debug: The new configuration was not checked: ");
		assert_int_equal(asked.err.status, GRAFT_OK);
	}
	/* A file that is no program is no engine either, but not for want of one. */
	case_write(test, "podman", "", 0644);
	set_files(test, &asked, "", NULL, "", "");
	assert_int_equal(check(test, &graft_engine_podman, NULL, &asked), -1);
	assert_int_equal(asked.err.status, GRAFT_PERMISSION);
}

static void test_docker(void **state)
{
	struct ctk_case *test = *state;
	struct asked asked;

	put_program(
	    test, "dockerd",
	    "[ \"$1 $2\" = '--validate --config-file' ] || exit 9; echo \"$3\" >@/seen-path; cat \"$3\" >@/seen");
	set_files(test, &asked, "{}", NULL, "{\"a\": 1}", NULL);
	assert_int_equal(check(test, &graft_engine_docker, NULL, &asked), 0);
	assert_string_equal(case_read(test, "seen"), "{\"a\": 1}");
	assert_cleared(test);
	put_program(test, "dockerd", "echo \"$3\" >@/seen-path; echo \"unable to read $3: bad\" >&2; exit 1");
	assert_int_equal(check(test, &graft_engine_docker, NULL, &asked), -1);
	assert_text(asked.text, "dockerd rejects the new configuration; nothing was changed: unable to read /tmp/");
	assert_text(asked.text, "/etc/config.toml: bad");
	assert_cleared(test);
	/* Before release 23. */
	put_program(test, "dockerd", "echo 'unknown flag: --validate' >&2; exit 125");
	test->ctk.log.max = GRAFT_LOG_DEBUG;
	assert_int_equal(check(test, &graft_engine_docker, NULL, &asked), 0);
	assert_text(test->said, "debug: The new configuration was not checked: this dockerd has no --validate\n");
	assert_int_equal(asked.err.status, GRAFT_OK);
	/* A file that goes is nothing to read. */
	put_program(test, "dockerd", "exit 9");
	set_files(test, &asked, "{}", NULL, NULL, NULL);
	assert_int_equal(check(test, &graft_engine_docker, NULL, &asked), 0);
}

#define RUNTIME(plugin) \
	"[plugins.\"" plugin "\".containerd.runtimes.nvidia.options]\nBinaryName = \"/usr/bin/nvidia\"\n"

/* containerd is shown copies, by names of the files that it would read, in their order. */
static void test_containerd_imports(void **state)
{
	static const struct {
		const char *imports, *seen; /* "@" is the directory, "!" the drop-in's copy */
	} rows[] = {
		{ "", "" },
		{ "imports = []\n", "" },
		{ "imports = [\"@/etc/conf.d/*.toml\"]\n",
		  "@/etc/conf.d/10.toml ! @/etc/conf.d/99-old.toml @/etc/conf.d/a.toml " },
		{ "imports = [\"conf.d/*.toml\"]\n",
		  "@/etc/conf.d/10.toml ! @/etc/conf.d/99-old.toml @/etc/conf.d/a.toml " },
		{ "imports = [\"@/etc/conf.d/1*.toml\", \"@/nowhere/*.toml\"]\n", "@/etc/conf.d/10.toml " },
		{ "imports = [\"@/etc/conf.d/99-nvidia.toml\"]\n", "! " },
	};
	struct ctk_case *test = *state;

	assert_int_equal(mkdir(case_path(test, "etc"), 0755), 0);
	assert_int_equal(mkdir(case_path(test, "etc/conf.d"), 0755), 0);
	case_write(test, "etc/conf.d/10.toml", "", 0644);
	case_write(test, "etc/conf.d/99-old.toml", "", 0644);
	case_write(test, "etc/conf.d/a.toml", "", 0644);
	put_program(test, "containerd",
		    "[ \"$1 $3 $4\" = '--config config dump' ] || exit 9\n"
		    "echo \"$2\" >@/seen-path; cat \"${2%/*}/drop-in.toml\" >@/seen-drop-in\n"
		    "sed -n 's/^imports = //p' \"$2\" | tr -d '[],' | xargs printf '%s ' | sed 's|/tmp/nvidia-ctk-[^ "
		    "]*|!|g' >@/seen");
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char config[256], wanted[256], *argv[CASE_WORDS];
		const char *seen;
		struct asked asked;
		int argc;

		(void)case_words(test, rows[i].imports, config, sizeof(config), argv);
		for (int j = 1; argv[0] && argv[j]; j++)
			argv[j][-1] = ' ';
		set_files(test, &asked, "", "old = 1\n", rows[i].imports[0] ? config : "", "new = 1\n");
		assert_int_equal(check(test, &graft_engine_containerd, NULL, &asked), 0);
		assert_cleared(test);
		assert_string_equal(case_read(test, "seen-drop-in"), "new = 1\n");
		seen = case_read(test, "seen");
		argc = case_words(test, rows[i].seen, wanted, sizeof(wanted), argv);
		for (int j = 0; j < argc; j++) {
			size_t length = strlen(argv[j]);

			assert_int_equal(strncmp(seen, argv[j], length), 0);
			seen += length + 1;
		}
		if (argc > 0)
			assert_string_equal(seen, "");
	}
}

/* That it reads the files is not enough: the runtime has to be in what it makes of them. */
static void test_containerd_dump(void **state)
{
	static const struct {
		const char *dump;
		const char *message; /* NULL = fine */
	} rows[] = {
		{ RUNTIME("io.containerd.grpc.v1.cri"), NULL },
		{ RUNTIME("io.containerd.cri.v1.runtime"), NULL },
		{ RUNTIME("cri"), NULL },
		{ "version = 3\n", NULL }, /* it does not show plugins that it has not loaded */
		{ "[plugins.cri.containerd.runtimes.runc]\nx = 1\n",
		  "it reads the files, but finds no such runtime in them" },
		{ "[plugins.cri.containerd.runtimes.nvidia.options]\nBinaryName = \"/other\"\n",
		  "finds no such runtime" },
		{ "what = is this", "containerd config dump" },
		{ "[plugins.cri.containerd]\nruntimes = 1\n",
		  "plugins.cri.containerd.runtimes is 1; allowed: a table" },
	};
	struct ctk_case *test = *state;
	struct asked asked;

	put_program(test, "containerd", "cat @/dump");
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		case_write(test, "dump", rows[i].dump, 0644);
		set_files(test, &asked, "", NULL, "", "");
		assert_int_equal(check(test, &graft_engine_containerd, NULL, &asked), rows[i].message ? -1 : 0);
		if (rows[i].message)
			assert_text(asked.text, rows[i].message);
		/* What is taken back need not be there. */
		assert_int_equal(ctk_engine_check(&test->ctk, &graft_engine_containerd, NULL, &asked.request,
						  &asked.changes, true, &asked.err),
				 0);
	}
	put_program(test, "containerd", "echo \"$2: line 1: bad; ${2%/*}/drop-in.toml: bad\" >&2; exit 1");
	assert_int_equal(check(test, &graft_engine_containerd, NULL, &asked), -1);
	assert_text(asked.text, "/etc/config.toml: line 1: bad");
	put_program(test, "containerd", "echo \"${2%/*}/drop-in.toml: bad\" >&2; exit 1");
	assert_int_equal(check(test, &graft_engine_containerd, NULL, &asked), -1);
	assert_text(asked.text, "/etc/conf.d/99-nvidia.toml: bad");
	/* Files that we cannot read are not shown to it. */
	set_files(test, &asked, "", NULL, "imports = 7\n", "");
	assert_int_equal(check(test, &graft_engine_containerd, NULL, &asked), -1);
	assert_text(asked.text, "imports");
}

static void test_crio(void **state)
{
	struct ctk_case *test = *state;
	struct asked asked;

	assert_int_equal(mkdir(case_path(test, "etc"), 0755), 0);
	assert_int_equal(mkdir(case_path(test, "etc/conf.d"), 0755), 0);
	case_write(test, "etc/conf.d/10-others", "others", 0644);
	case_write(test, "etc/conf.d/99-nvidia.toml", "old", 0644);
	case_write(test, "etc/conf.d/.hidden", "", 0644);
	put_program(test, "crio",
		    "[ \"$1 $3 $5\" = '--config --config-dir config' ] || exit 9\n"
		    "echo \"$2\" >@/seen-path; cat \"$2\" \"$4\"/* >@/seen; ls -A \"$4\" >@/seen-names");
	set_files(test, &asked, "config\n", "old", "config\n", "new");
	assert_int_equal(check(test, &graft_engine_crio, NULL, &asked), 0);
	assert_string_equal(case_read(test, "seen"), "config\nothersnew");
	assert_string_equal(case_read(test, "seen-names"), "10-others\n99-nvidia.toml\n");
	assert_cleared(test);
	assert_string_equal(case_read(test, "etc/conf.d/10-others"), "others"); /* the link went, not the file */
	/* The drop-in is removed; its directory is missing; there is no drop-in. */
	set_files(test, &asked, "config\n", "old", "config\n", NULL);
	assert_int_equal(check(test, &graft_engine_crio, NULL, &asked), 0);
	assert_string_equal(case_read(test, "seen-names"), "10-others\n");
	put_program(test, "crio", "echo \"$4|\" >@/seen; ls -A \"$4\" >@/seen-names; exit 0");
	asked.request.drop_in.path = "/nowhere/at/all/x.toml";
	assert_int_equal(check(test, &graft_engine_crio, NULL, &asked), 0);
	assert_string_equal(case_read(test, "seen-names"), "");
	asked.request.drop_in.path = NULL;
	assert_int_equal(check(test, &graft_engine_crio, NULL, &asked), 0);
	assert_string_equal(case_read(test, "seen"), "|\n");
	put_program(test, "crio", "echo 'validating: no such runtime' >&2; exit 1");
	assert_int_equal(check(test, &graft_engine_crio, case_path(test, "crio"), &asked), -1);
	assert_text(asked.text,
		    "/crio rejects the new configuration; nothing was changed: validating: no such runtime");
	/* Log lines that come first say the same, or nothing of it; alone they are better than nothing. */
	put_program(test, "crio", "echo 'time=\"now\" level=error msg=\"a\"\ntime=\"now\"\nb: c' >&2; exit 1");
	assert_int_equal(check(test, &graft_engine_crio, NULL, &asked), -1);
	assert_text(asked.text, "nothing was changed: b: c");
	put_program(test, "crio", "echo 'time=\"now\" level=error msg=\"a\"' >&2; exit 1");
	assert_int_equal(check(test, &graft_engine_crio, NULL, &asked), -1);
	assert_text(asked.text, "nothing was changed: time=\"now\" level=error msg=\"a\"");
}

static void test_podman(void **state)
{
	struct ctk_case *test = *state;
	struct asked asked;

	put_program(test, "podman",
		    "[ \"$*\" = --version ] || exit 9; echo \"$CONTAINERS_CONF\" >@/seen-path; cat "
		    "\"$CONTAINERS_CONF\" >@/seen");
	set_files(test, &asked, "[engine]\n", NULL, "new config", "new drop-in");
	assert_int_equal(check(test, &graft_engine_podman, NULL, &asked), 0);
	assert_string_equal(case_read(test, "seen"), "new drop-in");
	assert_cleared(test);
	asked.request.drop_in.path = NULL;
	assert_int_equal(check(test, &graft_engine_podman, NULL, &asked), 0);
	assert_string_equal(case_read(test, "seen"), "new config");
	put_program(test, "podman", "echo \"toml: line 1 of $CONTAINERS_CONF\" >&2; exit 125");
	assert_int_equal(check(test, &graft_engine_podman, NULL, &asked), -1);
	assert_text(asked.text,
		    "podman rejects the new configuration; nothing was changed: toml: line 1 of /tmp/graft-");
}

/* ---- memory ---- */

/* An engine that refuses what it is shown, if that is all that there is to be shown. */
static void refuse(struct ctk_case *test, const struct graft_engine *engine, const char *const *paths,
		   struct asked *asked)
{
	*asked = (struct asked){ .request = { .runtime_name = "nvidia", .runtime_path = "/x" } };
	asked->request.config = (struct graft_engine_file){ .path = paths[0],
							    .text = text_of("imports = [\"d/*\"]\n") };
	asked->request.drop_in = (struct graft_engine_file){ .path = paths[1], .text = text_of("b = 1\n") };
	assert_int_equal(check(test, engine, NULL, asked), -1);
}

/* A failure is never taken for an engine's consent. */
static void test_memory(void **state)
{
	static const struct {
		const struct graft_engine *engine;
		const char *name, *script;
	} rows[] = {
		{ &graft_engine_docker, "dockerd", "exit 1" },
		{ &graft_engine_containerd, "containerd",
		  "[ \"$(grep -c d/10 \"$2\")\" = 1 ] && [ -e \"${2%/*}/drop-in.toml\" ] || exit 0; echo x >&2; exit "
		  "1" },
		{ &graft_engine_crio, "crio", "[ \"$(ls \"$4\" | tr '\\n' ' ')\" = '10 99.toml ' ] || exit 0; exit 1" },
		{ &graft_engine_podman, "podman", "exit 1" },
	};
	struct ctk_case *test = *state;
	char config[64], drop_in[64];
	const char *const paths[] = { config, drop_in };
	struct asked asked;

	(void)snprintf(config, sizeof(config), "%s/config", test->directory);
	(void)snprintf(drop_in, sizeof(drop_in), "%s/d/99.toml", test->directory);
	assert_int_equal(mkdir(case_path(test, "d"), 0755), 0);
	case_write(test, "d/10", "", 0644);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool failed = true;

		put_program(test, rows[i].name, rows[i].script);
		for (int n = 1; failed; n++) {
			case_renew(test, CASE_ARENA);
			allocation_fail(n);
			refuse(test, rows[i].engine, paths, &asked);
			failed = allocation_failed();
			if (!failed)
				assert_int_equal(asked.err.status, GRAFT_PROGRAM);
		}
		failed = true;
		for (size_t max = 0; failed; max += 64) {
			assert_true(max < (size_t)1 << 20);
			case_renew(test, max);
			refuse(test, rows[i].engine, paths, &asked);
			failed = asked.err.status != GRAFT_PROGRAM;
			if (failed)
				assert_int_equal(asked.err.status, GRAFT_NO_MEMORY);
		}
	}
}

/* An engine that does not support this file is not mistaken for another one. */
static void test_unknown_engine(void **state)
{
	static const struct graft_engine other = { .name = "lxd" };
	struct ctk_case *test = *state;
	struct graft_engine_request request = { .runtime_name = "nvidia" };
	struct graft_error err = { .status = GRAFT_OK };
	struct asked asked;
	char text[800];

	put_program(test, "crio", "touch @/called; echo '[crio]'");
	put_program(test, "podman", "touch @/called");
	assert_int_equal(ctk_engine_read_source(&test->ctk, &other, NULL, &request, &err), -1);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "failed to load config: no command of lxd prints its configuration");
	set_files(test, &asked, "", NULL, "", NULL);
	assert_int_equal(check(test, &other, NULL, &asked), -1);
	assert_string_equal(asked.text, "the configuration of lxd cannot be checked");
	assert_null(request.source.bytes);
	assert_null(case_read(test, "called"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_HOST(test_source),          ON_HOST(test_source_that_fails),
		ON_HOST(test_release),         ON_HOST(test_not_installed),
		ON_HOST(test_docker),          ON_HOST(test_containerd_imports),
		ON_HOST(test_containerd_dump), ON_HOST(test_crio),
		ON_HOST(test_podman),          ON_HOST(test_memory),
		ON_HOST(test_unknown_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
