/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime configure from its arguments to files: the order of refusals, messages, what is kept, dry
 * runs, hooks, failures half way. No engine is installed, but for the scripts of a test.
 */
#include "../../allocation.h"
#include "../../unit.h"
#include "ctk_case.h"

static int open_host(void **state)
{
	int rc = case_open(state);
	struct ctk_case *test = *state;

	assert_int_equal(setenv("PATH", case_path(test, "bin"), 1), 0);
	assert_int_equal(mkdir(case_path(test, "bin"), 0755), 0);
	assert_int_equal(mkdir(case_path(test, "etc"), 0755), 0);
	return rc;
}

#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, open_host, case_close)
#define DOCKER        "configure --config=@/etc/daemon.json "
#define CONTAINERD    "configure --runtime=containerd --config=@/etc/config.toml --drop-in-config=@/etc/conf.d/99.toml "
#define CRIO          "configure --runtime=crio --config=@/etc/config.toml --drop-in-config=@/etc/conf.d/99.toml "
#define PODMAN        "configure --runtime=podman --config=@/etc/config.toml --drop-in-config=@/etc/conf.d/99.toml "

static int configure(struct ctk_case *test, const char *engine, const char *words)
{
	char line[512];

	case_renew(test, CASE_ARENA);
	(void)snprintf(line, sizeof(line), "%s%s", engine, words);
	return case_run(test, &ctk_runtime_configure, line);
}

static void assert_said(const struct ctk_case *test, const char *part)
{
	if (!strstr(test->said, part))
		fail_msg("'%s' is not said:\n%s", part, test->said);
}

static void assert_has(struct ctk_case *test, const char *file, const char *part)
{
	const char *text = case_read(test, file);

	if (!text || !strstr(text, part))
		fail_msg("'%s' is not in %s:\n%s", part, file, text ? text : "(not there)");
}

static void assert_file(struct ctk_case *test, const char *file, const char *expected)
{
	const char *text = case_read(test, file);

	assert_int_equal(text == NULL, expected == NULL);
	if (expected)
		assert_string_equal(text, expected);
}

static void test_refused(void **state)
{
	static const struct {
		const char *words, *message;
	} rows[] = {
		{ "--runtime=other", "unrecognized runtime 'other'" },
		{ "--runtime=", "unrecognized runtime ''" },
		{ "--runtime=other --nvidia-runtime-path=x --config-source=y", "unrecognized runtime" },
		{ "--runtime=containerd --nvidia-runtime-path=x --config-source=y",
		  "the NVIDIA runtime path \"x\" is not an absolute path" },
		{ "--runtime=crio --runtime-path=", "the NVIDIA runtime path \"\" is not an absolute path" },
		{ "--runtime=containerd --config-source=y --drop-in-config=z", "unrecognized Config Source: y" },
		{ "--config-source=", "unrecognized Config Source: " },
		{ "--drop-in-config=/x", "runtime docker does not support drop-in configs" },
		{ "--runtime=crio --drop-in-config=x", "the drop-in-config path \"x\" is not an absolute path" },
		{ "--config-mode=hook --runtime=other --nvidia-runtime-hook-path=x",
		  "the NVIDIA runtime hook path \"x\" is not an absolute path" },
		{ "--config-mode=oci-hook --runtime=podman --oci-hook-path=x --config=@/c",
		  "the OCI hook path \"x\" is not an absolute path" },
		{ "--config-mode=oci-hook --runtime=podman --drop-in-config=x",
		  "the drop-in-config path \"x\" is not an absolute path" },
	};
	struct ctk_case *test = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_int_equal(configure(test, "configure ", rows[i].words), 1);
		assert_said(test, rows[i].message);
		assert_string_equal(test->out, "");
	}
	assert_int_equal(configure(test, DOCKER, "--frobnicate"), 1);
	assert_said(test, "error: flag provided but not defined: -frobnicate\n");
	assert_file(test, "etc/daemon.json", NULL);
}

static void test_passed_over(void **state)
{
	static const struct {
		const char *engine, *words, *message;
	} rows[] = {
		{ DOCKER, "--config-mode=other", "warning: Ignoring unsupported config mode for docker: \"other\"\n" },
		{ DOCKER, "--config-mode=config-fle", "warning: Did you mean --config-mode=config-file?\n" },
		{ DOCKER, "--executable-path=/x", "warning: Ignoring executable-path=\"/x\" flag for docker\n" },
		{ DOCKER, "--config-source=command",
		  "warning: A command Config Source is not supported for docker; using file\n" },
		{ PODMAN, "--config-source=command",
		  "warning: A command Config Source is not supported for podman; using file\n" },
		{ CRIO, "--enable-cdi", "warning: Ignoring cdi.enabled flag for crio\n" },
		{ PODMAN, "--cdi.enable", "warning: Ignoring cdi.enabled flag for podman\n" },
	};
	struct ctk_case *test = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_int_equal(configure(test, rows[i].engine, rows[i].words), 0);
		assert_said(test, rows[i].message);
	}
}

/* Flags that are not given have the values that scripts count on. */
static void test_defaults(void **state)
{
	struct ctk_case *test = *state;

	assert_int_equal(configure(test, DOCKER, ""), 0);
	assert_said(test, "info: Config file does not exist; using empty config\n");
	assert_file(test, "etc/daemon.json",
		    "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"args\": [],\n            \"path\": "
		    "\"nvidia-container-runtime\"\n        }\n    }\n}\n");
	assert_said(test, "info: It is recommended that docker daemon be restarted.\n");
	assert_said(test, "info: For --runtime, 'systemctl reload docker' is enough. For --gpus, docker has to be "
			  "restarted once after the hook is installed.\n");
	assert_int_equal(configure(test, CONTAINERD, ""), 0);
	assert_has(test, "etc/conf.d/99.toml", "BinaryName = \"/usr/bin/nvidia-container-runtime\"");
	assert_has(test, "etc/config.toml", "/etc/conf.d/*.toml\"]");
	assert_said(test, "info: It is recommended that containerd daemon be restarted.\n");
	assert_int_equal(configure(test, CRIO, ""), 0);
	assert_has(test, "etc/conf.d/99.toml", "runtime_path = \"/usr/bin/nvidia-container-runtime\"");
	assert_int_equal(configure(test, PODMAN, ""), 0);
	assert_said(test, "info: podman reads it at its next call: nothing has to be restarted.\n");
}

static void test_names(void **state)
{
	struct ctk_case *test = *state;

	assert_int_equal(
	    configure(test, DOCKER, "--nvidia-runtime-name=gpu --runtime-path=bin/run --set-as-default --cdi.enabled"),
	    0);
	assert_has(test, "etc/daemon.json", "\"default-runtime\": \"gpu\"");
	assert_has(test, "etc/daemon.json", "\"path\": \"bin/run\"");
	assert_has(test, "etc/daemon.json", "\"cdi\": true");
	assert_int_equal(configure(test, CONTAINERD, "--runtime-path=/opt/run --nvidia-set-as-default --enable-cdi"),
			 0);
	assert_has(test, "etc/conf.d/99.toml", "BinaryName = \"/opt/run\"");
	assert_has(test, "etc/conf.d/99.toml", "default_runtime_name = \"nvidia\"");
	assert_has(test, "etc/conf.d/99.toml", "enable_cdi = true");
	/* No drop-in: the file itself. */
	assert_int_equal(configure(test, "configure --runtime=crio --config=@/etc/crio.conf --drop-in-config= ", ""),
			 0);
	assert_has(test, "etc/crio.conf", "runtime_type = \"oci\"");
}

/* containerd's own words as the source; and a program that fails. */
static void test_source(void **state)
{
	struct ctk_case *test = *state;

	assert_int_equal(configure(test, CONTAINERD, "--config-source=command"), 1);
	assert_said(test, "error: unable to load config for runtime containerd: failed to load config: failed to run "
			  "command containerd [config dump]: ");
	assert_file(test, "etc/config.toml", NULL);
	case_write(test, "bin/other",
		   "#!/bin/sh\n[ \"$1\" = config ] || exit 1\n"
		   "echo 'version = 3'\necho '[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runc]'\n"
		   "echo 'runtime_type = \"x.y\"'\n"
		   "[ \"$2\" = dump ] && [ \"$#\" = 2 ] || exit 1\n",
		   0755);
	/* It is asked to read the result, too, and refuses: its last words are those of `config dump`. */
	assert_int_equal(configure(test, CONTAINERD, "--config-source=command --executable-path=@/bin/other"), 1);
	assert_said(test, "error: unable to update config: ");
	assert_said(test, "/bin/other rejects the new configuration; nothing was changed");
	assert_file(test, "etc/config.toml", NULL);
	case_write(test, "bin/other",
		   "#!/bin/sh\necho 'version = 3'\necho "
		   "'[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runc]'\n"
		   "echo 'runtime_type = \"x.y\"'\n[ \"$1\" = --config ] || exit 0\n"
		   "echo '[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.nvidia.options]'\n"
		   "echo 'BinaryName = \"/usr/bin/nvidia-container-runtime\"'\n",
		   0755);
	assert_int_equal(configure(test, CONTAINERD, "--config-source=command --executable-path=@/bin/other"), 0);
	assert_has(test, "etc/conf.d/99.toml", "runtime_type = \"x.y\"");
	assert_has(test, "etc/conf.d/99.toml", "version = 3");
}

static void test_dry_run(void **state)
{
	struct ctk_case *test = *state;

	case_write(test, "etc/config.toml", "# mine\nversion = 2\n", 0644);
	assert_int_equal(configure(test, CONTAINERD, "--dry-run"), 0);
	assert_non_null(strstr(test->out, "BinaryName = "));
	assert_non_null(strstr(test->out, "# mine\n"));
	assert_said(test, "info: Drop-in config:\n");
	assert_said(test, "info: Top-level config:\n");
	assert_null(strstr(test->said, "Wrote"));
	assert_file(test, "etc/config.toml", "# mine\nversion = 2\n");
	assert_file(test, "etc/conf.d/99.toml", NULL);
	assert_int_equal(configure(test, DOCKER, ""), 0);
	assert_int_equal(configure(test, DOCKER, "--undo --dry-run"), 0);
	assert_said(test, "/etc/daemon.json would be removed\n");
	assert_string_equal(test->out, "");
	assert_has(test, "etc/daemon.json", "nvidia");
}

/* What is kept is the file as it was before the first time, until it is undone. */
static void test_backup(void **state)
{
	static const char before[] = "{ \"mtu\": 1500 }";
	struct ctk_case *test = *state;

	case_write(test, "etc/daemon.json", before, 0640);
	assert_int_equal(configure(test, DOCKER, ""), 0);
	assert_file(test, "etc/daemon.json.nvidia-ctk.bak", before);
	assert_int_equal(configure(test, DOCKER, "--set-as-default"), 0);
	assert_file(test, "etc/daemon.json.nvidia-ctk.bak", before);
	assert_int_equal(configure(test, DOCKER, "--set-as-default"), 0);
	assert_said(test, "info: docker is configured already: nothing was changed, and it need not be restarted.\n");
	assert_int_equal(configure(test, DOCKER, "--undo"), 0);
	assert_file(test, "etc/daemon.json", before);
	assert_file(test, "etc/daemon.json.nvidia-ctk.bak", NULL);
	assert_int_equal(configure(test, DOCKER, "--undo"), 0);
	assert_said(test, "info: There is nothing to undo: nothing was changed, and docker need not be restarted.\n");
	/* Put back by hand: what is there then is what there is to keep. */
	assert_int_equal(configure(test, DOCKER, ""), 0);
	case_write(test, "etc/daemon.json", "{ \"mtu\": 9000 }", 0640);
	assert_int_equal(configure(test, DOCKER, ""), 0);
	assert_file(test, "etc/daemon.json.nvidia-ctk.bak", "{ \"mtu\": 9000 }");
}

static void test_nothing_by_halves(void **state)
{
	struct ctk_case *test = *state;

	case_write(test, "etc/config.toml", "version = 2\n", 0644);
	case_write(test, "etc/conf.d", "no directory", 0644);
	assert_int_equal(configure(test, CONTAINERD, ""), 1);
	assert_said(test, "error: unable to ");
	assert_file(test, "etc/config.toml", "version = 2\n");
	assert_int_equal(unlink(case_path(test, "etc/conf.d")), 0);
	case_write(test, "etc/config.toml", "version = \"two\"\n", 0644);
	assert_int_equal(configure(test, CONTAINERD, ""), 1);
	assert_said(test, "error: unable to load config for runtime containerd: ");
	assert_file(test, "etc/conf.d/99.toml", NULL);
	assert_int_equal(unlink(case_path(test, "etc/config.toml")), 0);
	case_write(test, "bin/crio", "#!/bin/sh\necho no >&2\nexit 1\n", 0755);
	assert_int_equal(configure(test, CRIO, "--executable-path=crio"), 1);
	assert_said(test,
		    "error: unable to update config: crio rejects the new configuration; nothing was changed: no");
	assert_file(test, "etc/conf.d/99.toml", NULL);
	assert_file(test, "etc/99.toml.nvidia-ctk.bak", NULL);
	/* Files elsewhere may be another engine's. */
	assert_int_equal(configure(test, CRIO, ""), 0);
	assert_said(test, "warning: The crio in PATH does not accept the new configuration: no\n");
	assert_has(test, "etc/conf.d/99.toml", "nvidia");
}

#define HOOK "configure --config-mode=oci-hook "

static void test_hook(void **state)
{
	struct ctk_case *test = *state;
	char text[sizeof(test->out)];

	assert_int_equal(configure(test, HOOK, "--runtime=whatever"), 0);
	assert_said(test, "warning: The \"oci-hook\" config-mode is deprecated\n");
	assert_non_null(strstr(test->out, "\"path\": \"/usr/bin/nvidia-container-runtime-hook\""));
	(void)snprintf(text, sizeof(text), "%s", test->out);
	assert_int_equal(configure(test, HOOK, "--oci-hook-path=@/etc/hook.json --dry-run"), 0);
	assert_string_equal(test->out, text);
	assert_file(test, "etc/hook.json", NULL);
	case_write(test, "etc/hook.json", "{}", 0644);
	assert_int_equal(configure(test, HOOK, "--oci-hook-path=@/etc/hook.json"), 0);
	assert_said(test, "/etc/hook.json\n");
	assert_file(test, "etc/hook.json", text);
	assert_int_equal(configure(test, HOOK, "--oci-hook-path=@/etc/hook.json"), 0);
	assert_said(test, "/etc/hook.json already exists: nothing was changed.\n");
	assert_int_equal(configure(test, HOOK, "--oci-hook-path=@/etc/hook.json --undo"), 0);
	assert_file(test, "etc/hook.json", "{}");
	assert_int_equal(configure(test, HOOK, "--oci-hook-path=@/etc/hook.json --undo"), 0);
	assert_said(test, "warning: ");
	assert_said(test, "/etc/hook.json has been changed since, so it is kept\n");
	assert_file(test, "etc/hook.json", "{}");
	assert_int_equal(configure(test, HOOK, "--oci-hook-path=@/etc/none.json --undo"), 0);
	assert_said(test, "There is nothing to undo: ");
	assert_said(test, "/etc/none.json does not exist.\n");
}

/* Podman reads the directory only if it is configured. */
static void test_podman_hook(void **state)
{
	struct ctk_case *test = *state;

	assert_int_equal(configure(test, PODMAN, "--config-mode=oci-hook --oci-hook-path=@/etc/hooks/nvidia.json"), 0);
	assert_null(strstr(test->said, "deprecated"));
	assert_has(test, "etc/hooks/nvidia.json", "prestart");
	assert_has(test, "etc/conf.d/99.toml", "/etc/hooks\"");
	assert_int_equal(configure(test, PODMAN, "--config-mode=hook --oci-hook-path=@/etc/hooks/nvidia.json --undo"),
			 0);
	assert_file(test, "etc/hooks/nvidia.json", NULL);
	assert_file(test, "etc/conf.d/99.toml", NULL);
}

/* Whatever fails: status 1, and the files are as they were; a dry run prints all or says that it failed. */
static void test_memory(void **state)
{
	struct ctk_case *test = *state;
	int status = 1;

	for (size_t max = 0; status != 0; max += 64) {
		assert_true(max < (size_t)1 << 20);
		case_write(test, "etc/config.toml", "version = 2\n", 0644);
		case_renew(test, max);
		status = case_run(test, &ctk_runtime_configure, CONTAINERD);
		assert_true(status == 0 || status == 1);
		if (status == 0)
			break;
		case_renew(test, CASE_ARENA);
		assert_file(test, "etc/config.toml", "version = 2\n");
		assert_file(test, "etc/conf.d/99.toml", NULL);
		assert_file(test, "etc/config.toml.nvidia-ctk.bak", NULL);
		assert_file(test, "etc/99.toml.nvidia-ctk.bak", NULL);
	}
	case_renew(test, CASE_ARENA);
	assert_has(test, "etc/conf.d/99.toml", "BinaryName");
	for (int n = 1;; n++) {
		bool failed;

		case_renew(test, CASE_ARENA);
		allocation_fail(n);
		status = case_run(test, &ctk_runtime_configure, DOCKER);
		failed = allocation_failed();
		assert_int_equal(status, failed ? 1 : 0);
		if (!failed)
			break;
		assert_file(test, "etc/daemon.json", NULL);
		assert_file(test, "etc/daemon.json.nvidia-ctk.bak", NULL);
	}
	for (int n = 1;; n++) {
		bool failed;

		case_renew(test, CASE_ARENA);
		allocation_fail(n);
		status = case_run(test, &ctk_runtime_configure, CONTAINERD "--dry-run --set-as-default");
		failed = allocation_failed();
		assert_int_equal(status, failed ? 1 : 0);
		if (!failed)
			break;
	}
	assert_non_null(strstr(test->out, "default_runtime_name"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_HOST(test_refused),  ON_HOST(test_passed_over),
		ON_HOST(test_defaults), ON_HOST(test_names),
		ON_HOST(test_source),   ON_HOST(test_dry_run),
		ON_HOST(test_backup),   ON_HOST(test_nothing_by_halves),
		ON_HOST(test_hook),     ON_HOST(test_podman_hook),
		ON_HOST(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
