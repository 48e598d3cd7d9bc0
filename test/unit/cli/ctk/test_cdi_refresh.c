/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which specifications are made anew, with which options, why, and what the exit status says of it. `cdi generate` is a stand-in that notes how it is called
 * and makes what a test says.
 */
#include "../../allocation.h"
#include "../../unit.h"
#include "ctk_case.h"

#define OLD_BOOT "0bd5b3a1-0d1c-4f2b-9a54-3f7c2b1e8a90"
#define NEW_BOOT "7c0ffee1-0d1c-4f2b-9a54-3f7c2b1e8a90"

/* What the stand-in does, and what it saw. */
static struct {
	const char *driver, *boot;     /* of the specifications that it makes */
	const char *content;           /* of their one device */
	const char *broken;            /* part of the name of a file that it cannot make; NULL = it makes all */
	bool coherent;                 /* it makes a second one beside the first */
	bool malformed;                /* what it makes is no specification */
	char calls[1024];              /* its words, a line each call */
	bool quiet, without_variables; /* as it was called */
	bool with_configuration;
} host;

static const char *flags_of(int argc, char **argv)
{
	static char flags[256];
	size_t used = 0;

	flags[0] = '\0';
	for (int i = 1; i + 1 < argc; i++)
		used += (size_t)snprintf(flags + used, sizeof(flags) - used, "%s%s", i > 1 ? " " : "", argv[i]);
	return flags;
}

static const char *spec_text(struct graft_arena *arena, const char *class_, const char *driver, const char *boot,
			     const char *flags, const char *content)
{
	return graft_arena_printf(
	    arena,
	    "cdiVersion: 0.6.0\nkind: nvidia.com/%s\nannotations:\n  graft.driver-version: \"%s\"\n"
	    "  graft.boot-id: %s\n%s%s%sdevices:\n- name: \"0\"\n  containerEdits:\n    env:\n"
	    "    - A=%s\n",
	    class_, driver, boot, flags ? "  graft.flags: \"" : "", flags ? flags : "", flags ? "\"\n" : "", content);
}

static int write_spec(const struct ctk *ctk, const char *path, const char *class_, const char *flags)
{
	const char *text = host.malformed ? "devices"
					  : spec_text(ctk->arena, class_, host.driver, host.boot, flags, host.content);
	struct graft_error err = { .status = GRAFT_OK };

	return text && ctk->sink->write(ctk->sink->arg, path, text, strlen(text), &err) == 0 ? 0 : 1;
}

static int generate(void *context, int argc, char **argv)
{
	const struct ctk *ctk = context;
	const char *output = argv[argc - 1] + strlen("--output="), *flags = flags_of(argc, argv);
	const char *second = host.coherent
				 ? graft_arena_printf(ctk->arena, "%.*s.coherent.yaml", (int)strlen(output) - 5, output)
				 : NULL;
	size_t used = strlen(host.calls);

	assert_string_equal(argv[0], "generate");
	assert_int_equal(strncmp(argv[argc - 1], "--output=", strlen("--output=")), 0);
	assert_null(argv[argc]);
	if (used + strlen(flags) + 2 < sizeof(host.calls))
		(void)snprintf(host.calls + used, sizeof(host.calls) - used, "%s\n", flags);
	host.quiet = ctk->quiet;
	host.without_variables = ctk->no_variables;
	host.with_configuration = ctk->config != NULL;
	if (host.broken && strstr(output, host.broken))
		return 1;
	if (write_spec(ctk, output, "gpu", flags) != 0)
		return 1;
	return host.coherent ? !second || write_spec(ctk, second, "gpu.coherent", flags) != 0 : 0;
}

static const struct graft_option generate_options[] = {
	{ .name = "mode",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .environment = (const char *const[]){ "GRAFT_TEST_MODE", NULL } },
	{ .name = "format",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .environment = (const char *const[]){ "GRAFT_TEST_FORMAT", NULL } },
};
/* By another name, which cdi_refresh.c knows in this program (meson.build). */
const struct graft_command ctk_cdi_generate = {
	.name = "generate", .options = generate_options, .n_options = GRAFT_COUNT(generate_options), .run = generate
};

/* The host as it is; two directories. */
static int open_host(void **state)
{
	int rc = case_open(state);
	struct ctk_case *test = *state;

	memset(&host, 0, sizeof(host));
	host.driver = "560.35.03";
	host.boot = OLD_BOOT;
	host.content = "1";
	assert_int_equal(unsetenv("GRAFT_TEST_MODE"), 0);
	assert_int_equal(unsetenv("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"), 0);
	assert_int_equal(mkdir(case_path(test, "etc"), 0755), 0);
	assert_int_equal(mkdir(case_path(test, "run"), 0755), 0);
	return rc;
}

#define TOGETHER      "--feature-flag=enable-coherent-annotations"
#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, open_host, case_close)
#define DIRECTORIES   "refresh --spec-dir=@/etc,@/run "

static void put(struct ctk_case *test, const char *file, const char *driver, const char *boot, const char *flags)
{
	case_renew(test, CASE_ARENA);
	case_write(test, file, spec_text(test->ctk.arena, "gpu", driver, boot, flags, "1"), 0644);
}

static int refresh(struct ctk_case *test, const char *words)
{
	char line[256];

	case_renew(test, CASE_ARENA);
	host.calls[0] = '\0';
	(void)snprintf(line, sizeof(line), DIRECTORIES "%s", words);
	return case_run(test, &ctk_cdi_refresh, line);
}

static void assert_said(const struct ctk_case *test, const char *part)
{
	if (!strstr(test->said, part))
		fail_msg("'%s' is not said:\n%s", part, test->said);
}

static void assert_driver(struct ctk_case *test, const char *file, const char *driver)
{
	const char *text = case_read(test, file);

	assert_non_null(text);
	if (!strstr(text, driver))
		fail_msg("%s is not for %s:\n%s", file, driver, text);
}

static void test_fits(void **state)
{
	struct ctk_case *test = *state;
	struct stat before, after;

	put(test, "etc/a.yaml", "560.35.03", OLD_BOOT, "--mode=nvml");
	assert_int_equal(stat(case_path(test, "etc/a.yaml"), &before), 0);
	for (int i = 0; i < 4; i++) {
		/* Another boot of the same host is no other host. */
		host.boot = i < 2 ? OLD_BOOT : NEW_BOOT;
		assert_int_equal(refresh(test, i % 2 ? "--check" : "--exit-code"), 0);
		assert_string_equal(test->out, "");
		assert_string_equal(host.calls, "--mode=nvml\n");
		assert_said(test, "/etc/a.yaml is up to date\n");
		assert_int_equal(stat(case_path(test, "etc/a.yaml"), &after), 0);
		assert_int_equal(after.st_ino, before.st_ino);
	}
}

static void test_stale(void **state)
{
	static const struct {
		const char *driver, *flags, *content; /* of the file; the host's are 560.35.03, 1 */
		const char *why;
	} rows[] = {
		{ "550.54.14", "--mode=nvml", "1",
		  "stale: it was made for driver 550.54.14, and this host has 560.35.03" },
		{ "560.35.03", "--mode=nvml", "2", "stale: what containers get from it has changed" },
		{ "560.35.03", "--mode=nvml --a=b", "2", "stale: what containers get from it has changed" },
		/* As long as the new one. */
		{ "560.35.04", "--mode=nvml", "1", "it was made for driver 560.35.04" },
	};
	struct ctk_case *test = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char wanted[64];

		(void)snprintf(wanted, sizeof(wanted), "%s/run/a.yaml\n", test->directory);
		case_write(test, "run/a.yaml",
			   spec_text(test->ctk.arena, "gpu", rows[i].driver, OLD_BOOT, rows[i].flags, rows[i].content),
			   0644);
		assert_int_equal(refresh(test, "--check"), 2);
		assert_said(test, rows[i].why);
		assert_string_equal(test->out, wanted);
		assert_driver(test, "run/a.yaml", rows[i].driver);
		assert_int_equal(refresh(test, i % 2 ? "--exit-code" : ""), i % 2 ? 2 : 0);
		assert_said(test, "info: Wrote CDI spec ");
		assert_string_equal(test->out, wanted);
		assert_driver(test, "run/a.yaml", "560.35.03");
		assert_int_equal(refresh(test, "--check"), 0);
	}
}

/*
 * Made with exactly the arguments in it; its own arguments are not logged, and the environment does
 * not count.
 */
static void test_options_are_those_of_the_specification(void **state)
{
	struct ctk_case *test = *state;

	put(test, "etc/a.yaml", "550.54.14", OLD_BOOT, "--mode=nvml --csv.file=/a%20b%3B%25");
	assert_int_equal(setenv("GRAFT_TEST_MODE", "imex", 1), 0);
	assert_int_equal(refresh(test, ""), 0);
	assert_string_equal(host.calls, "--mode=nvml --csv.file=/a b;%\n");
	assert_true(host.quiet && host.without_variables);
	assert_int_equal(refresh(test, "--debug"), 0);
	assert_false(host.quiet);
	/* Nor has a configuration that is named now; it has for the one that there has to be. */
	assert_int_equal(refresh(test, "--config=/now.toml"), 0);
	assert_string_equal(host.calls, "--mode=nvml --csv.file=/a b;%\n");
	assert_false(host.with_configuration);
	assert_int_equal(refresh(test, "--config=/now.toml --output=@/run/b.yaml"), 0);
	assert_string_equal(host.calls, "--mode=imex --config=/now.toml\n--mode=nvml --csv.file=/a b;%\n");
}

/* Those of others, those that do not say how they were made, and what cannot be used. */
static void test_left_alone(void **state)
{
	struct ctk_case *test = *state;
	const char *text;

	put(test, "etc/a.yaml", "550.54.14", OLD_BOOT, NULL);
	case_write(test, "etc/b.yaml",
		   "cdiVersion: 0.5.0\nkind: other/x\ndevices:\n- name: y\n  containerEdits:\n    env: [A=1]\n", 0644);
	case_write(test, "etc/c.yaml", "cdiVersion: [", 0644);
	assert_int_equal(refresh(test, "--debug"), 0);
	assert_string_equal(host.calls, "");
	assert_string_equal(test->out, "");
	assert_said(test, "/etc/a.yaml does not record how it was made, and is left alone\n");
	assert_said(test, "/etc/c.yaml");
	assert_said(test, "No CDI spec records how it was made; there is nothing to refresh\n");
	text = case_read(test, "etc/a.yaml");
	assert_non_null(strstr(text, "550.54.14"));
}

/* The one that there has to be, by what the variables say now. */
static void test_output(void **state)
{
	struct ctk_case *test = *state;
	char wanted[64];

	(void)snprintf(wanted, sizeof(wanted), "%s/run/new.yaml\n", test->directory);
	assert_int_equal(setenv("GRAFT_TEST_MODE", "nvml", 1), 0);
	assert_int_equal(setenv("GRAFT_TEST_FORMAT", "json", 1),
			 0); /* where it goes is no option of the specification */
	assert_int_equal(refresh(test, "--output=@/run/new.yaml --check"), 2);
	assert_said(test, "/run/new.yaml is stale: there is none\n");
	assert_null(case_read(test, "run/new.yaml"));
	assert_int_equal(refresh(test, "--output=@/run/new.yaml"), 0);
	assert_string_equal(host.calls, "--mode=nvml\n");
	assert_string_equal(test->out, wanted);
	assert_driver(test, "run/new.yaml", "--mode=nvml");
	/* It is in one of the directories, and made once; by another name of the same file too. */
	assert_int_equal(symlink("run", case_path(test, "link")), 0);
	assert_int_equal(refresh(test, "--output=@/link/new.yaml"), 0);
	assert_string_equal(host.calls, "--mode=nvml\n");
	assert_int_equal(setenv("GRAFT_TEST_MODE", "imex", 1), 0);
	assert_int_equal(refresh(test, "--output=@/run/new.yaml"), 0);
	assert_said(test, "is stale: it was made with different options\n");
	assert_driver(test, "run/new.yaml", "--mode=imex");
	/* By its variable, and none at all. */
	assert_int_equal(setenv("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH", case_path(test, "etc/x.yaml"), 1), 0);
	assert_int_equal(refresh(test, ""), 0);
	assert_driver(test, "etc/x.yaml", "560.35.03");
	assert_int_equal(setenv("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH", "", 1), 0);
	assert_int_equal(refresh(test, ""), 0);
	assert_string_equal(test->out, "");
	assert_int_equal(unsetenv("GRAFT_TEST_FORMAT"), 0);
}

/* What is there is no specification any more. */
static void test_damaged(void **state)
{
	struct ctk_case *test = *state;

	case_write(test, "run/a.yaml", "cdiVersion: 0.5.0\nkind: x\n", 0644);
	assert_int_equal(refresh(test, "--output=@/run/a.yaml"), 0);
	assert_said(test, "/run/a.yaml is stale: ");
	assert_driver(test, "run/a.yaml", "560.35.03");
}

/* "a.coherent.yaml" is made with "a.yaml", once. */
static void test_made_together(void **state)
{
	struct ctk_case *test = *state;

	char wanted[64];

	(void)snprintf(wanted, sizeof(wanted), "%s/run/a.coherent.yaml\n", test->directory);
	put(test, "run/a.yaml", "550.54.14", OLD_BOOT, TOGETHER);
	case_write(test, "run/a.coherent.yaml",
		   spec_text(test->ctk.arena, "gpu.coherent", "550.54.14", OLD_BOOT, TOGETHER, "1"), 0644);
	host.coherent = true;
	assert_int_equal(refresh(test, ""), 0);
	assert_string_equal(host.calls, TOGETHER "\n");
	assert_driver(test, "run/a.yaml", "560.35.03");
	assert_driver(test, "run/a.coherent.yaml", "560.35.03");
	/* One is no longer made, and must not be used. */
	host.coherent = false;
	assert_int_equal(refresh(test, "--check"), 2);
	assert_said(test, "/run/a.coherent.yaml is stale: this host no longer has such GPUs\n");
	assert_string_equal(test->out, wanted);
	assert_driver(test, "run/a.coherent.yaml", "560.35.03");
	assert_int_equal(refresh(test, "--exit-code"), 2);
	assert_said(test, "/run/a.coherent.yaml\n");
	assert_string_equal(test->out, wanted);
	assert_null(case_read(test, "run/a.coherent.yaml"));
	assert_int_equal(refresh(test, "--check"), 0);
	/* A name like that, of a specification of its own, is a name. */
	case_write(test, "etc/b.coherent.yaml",
		   spec_text(test->ctk.arena, "gpu.coherent", "550.54.14", OLD_BOOT, "--class=gpu.coherent", "1"),
		   0644);
	assert_int_equal(refresh(test, ""), 0);
	assert_driver(test, "etc/b.coherent.yaml", "560.35.03");
	assert_null(case_read(test, "etc/b.yaml"));
}

/* One that cannot be made stays, and does not keep the others from it. */
static void test_one_that_cannot_be_made(void **state)
{
	struct ctk_case *test = *state;

	put(test, "etc/a.yaml", "550.54.14", OLD_BOOT, "--mode=nvml");
	put(test, "etc/b.yaml", "550.54.14", OLD_BOOT, "--mode=nvml");
	host.broken = "a.yaml";
	assert_int_equal(refresh(test, "--exit-code"), 1);
	assert_said(test, "/etc/a.yaml is left unchanged\n");
	assert_driver(test, "etc/a.yaml", "550.54.14");
	assert_driver(test, "etc/b.yaml", "560.35.03");
	host.broken = NULL;
	host.malformed = true;
	assert_int_equal(refresh(test, ""), 1);
	assert_said(test, "error: failed to refresh CDI spec ");
	assert_driver(test, "etc/a.yaml", "550.54.14");
	host.malformed = false;
	/* A place that cannot be written. */
	assert_int_equal(refresh(test, "--output=@/etc/a.yaml/x.yaml"), 1);
	assert_said(test, "error: failed to refresh CDI spec ");
}

static void test_wrong_words(void **state)
{
	struct ctk_case *test = *state;

	assert_int_equal(refresh(test, "--strong"), 1);
	assert_said(test, "flag provided but not defined: -strong");
	assert_string_equal(host.calls, "");
}

/* Out of memory: status 1, and what is there is the old or the new specification; never is one called stale that is not. */
static void test_memory(void **state)
{
	struct ctk_case *test = *state;
	int status = -1;

	host.boot = NEW_BOOT; /* compared to the last byte */
	for (size_t max = 0; status != 0; max += 64) {
		put(test, "run/a.yaml", "560.35.03", OLD_BOOT, "--mode=nvml");
		case_renew(test, max);
		status = case_run(test, &ctk_cdi_refresh, DIRECTORIES "--check");
		assert_true(status == 0 || status == 1);
		assert_true(max < CASE_ARENA);
	}
	for (int n = 1;; n++) {
		bool failed;

		put(test, "run/a.yaml", "550.54.14", OLD_BOOT, "--mode=nvml");
		case_renew(test, CASE_ARENA);
		allocation_fail(n);
		status = case_run(test, &ctk_cdi_refresh, DIRECTORIES);
		failed = allocation_failed();
		assert_int_equal(status, failed ? 1 : 0);
		if (!failed)
			break;
		assert_string_equal(test->out, "");
	}
	assert_driver(test, "run/a.yaml", "560.35.03");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_HOST(test_fits),
		ON_HOST(test_stale),
		ON_HOST(test_options_are_those_of_the_specification),
		ON_HOST(test_left_alone),
		ON_HOST(test_output),
		ON_HOST(test_damaged),
		ON_HOST(test_made_together),
		ON_HOST(test_one_that_cannot_be_made),
		ON_HOST(test_wrong_words),
		ON_HOST(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
