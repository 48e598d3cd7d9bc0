/* SPDX-License-Identifier: Apache-2.0 */
/* The toolkit's directory, also where two names cannot be exchanged; what is removed and what is not; the lock; the host's root. */
#include <errno.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "../ctk/ctk_case.h"
#include "base/path.h"
#include "base/strings.h"
#include "base/sys.h"
#include "cli/installer/installer.h"

/* What the kernel answers instead; 0: what it does. */
static int exchange_errno, mkdir_errno;
static const char *removed_at_lock; /* by another installer, between open and flock */

int __real_graft_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags);
int __wrap_graft_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags);
int __real_mkdirat(int fd, const char *path, mode_t mode);
int __wrap_mkdirat(int fd, const char *path, mode_t mode);
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

static int fail_with(int why)
{
	errno = why;
	return -1;
}

int __wrap_graft_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
	return exchange_errno && flags == GRAFT_RENAME_EXCHANGE
		   ? fail_with(exchange_errno)
		   : __real_graft_renameat2(from_fd, from, to_fd, to, flags);
}

int __wrap_mkdirat(int fd, const char *path, mode_t mode)
{
	return mkdir_errno ? fail_with(mkdir_errno) : __real_mkdirat(fd, path, mode);
}

int __wrap_flock(int fd, int operation)
{
	if (removed_at_lock) {
		assert_int_equal(unlink(removed_at_lock), 0);
		removed_at_lock = NULL;
	}
	return __real_flock(fd, operation);
}

/* ---- an installation ---- */

static const char *const programs[] = { "nvidia-ctk",
					"nvidia-cdi-hook",
					"nvidia-container-runtime",
					"nvidia-container-runtime.cdi",
					"nvidia-container-runtime.legacy",
					"nvidia-container-cli",
					"nvidia-container-runtime-hook" };

static void make_directories(struct ctk_case *test, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(mkdir(case_path(test, names[i]), 0755), 0);
}

/* Packages whose programs say `text`. */
static void make_packages(struct ctk_case *test, const char *text)
{
	char name[128];

	for (size_t i = 0; i < GRAFT_COUNT(programs); i++) {
		(void)snprintf(name, sizeof(name), "source/usr/bin/%s", programs[i]);
		case_write(test, name, text, 0755);
	}
	case_write(test, "source/usr/lib64/libnvidia-container.so.1", text, 0644);
}

static int open_installer(void **state)
{
	static const char *const directories[] = { "source", "source/usr", "source/usr/bin", "source/usr/lib64",
						   "host" };
	struct ctk_case *test;

	exchange_errno = mkdir_errno = 0;
	removed_at_lock = NULL;
	(void)case_open(state);
	test = *state;
	test->ctk.log.max = GRAFT_LOG_INFO;
	make_directories(test, directories, GRAFT_COUNT(directories));
	make_packages(test, "one");
	return 0;
}

static struct installer_options options_of(struct ctk_case *test)
{
	struct graft_arena *arena = test->ctk.arena;
	struct installer_options o;
	struct graft_error err;

	installer_options_init(&o);
	o.base.ctk = &test->ctk;
	o.install_dir = graft_arena_printf(arena, "%s/nv", test->directory);
	o.source_root = graft_arena_printf(arena, "%s/source", test->directory);
	o.host_root = graft_arena_printf(arena, "%s/host", test->directory);
	o.driver_root_ctr = o.host_root;
	o.pid_file = graft_arena_printf(arena, "%s/run/nvidia/toolkit.pid", test->directory);
	assert_int_equal(installer_options_check(&o, &err), 0);
	return o;
}

static int install(struct ctk_case *test, struct graft_error *err)
{
	const struct ctk_list none = { .n = 0 };
	struct installer_options o = options_of(test);

	test->n_said = 0;
	return installer_toolkit_install(&o, &none, err);
}

static void assert_program(struct ctk_case *test, const char *text)
{
	assert_string_equal(case_read(test, "nv/toolkit/nvidia-ctk"), text);
	assert_string_equal(case_read(test, "nv/toolkit/nvidia-ctk.real"), text);
	assert_non_null(case_read(test, "nv/toolkit/.config/nvidia-container-runtime/config.toml"));
}

static bool has(struct ctk_case *test, const char *name)
{
	struct stat st;

	return lstat(case_path(test, name), &st) == 0;
}

static void assert_link(struct ctk_case *test, const char *name, const char *target)
{
	char text[64] = "";

	assert_true(readlink(case_path(test, name), text, sizeof(text) - 1) > 0);
	assert_string_equal(text, target);
}

static bool sweep(struct ctk_case *test)
{
	struct installer_options o = options_of(test);

	return installer_toolkit_sweep(&o);
}

static void assert_message(const struct ctk_case *test, const struct graft_error *err, const char *before,
			   const char *after)
{
	char text[1024];

	assert_string_printed(graft_error_text(err, text, sizeof(text)), "%s%s%s", before, test->directory, after);
}

static void test_exchange(void **state)
{
	struct ctk_case *test = *state;
	struct graft_error err;

	assert_int_equal(install(test, &err), 1);
	assert_program(test, "one");
	assert_int_equal(install(test, &err), 0);
	assert_non_null(strstr(test->said, "toolkit is up to date"));
	assert_false(has(test, "nv/.graft-toolkit-0"));
	make_packages(test, "two");
	assert_int_equal(install(test, &err), 1);
	assert_program(test, "two");
	assert_string_equal(case_read(test, "nv/.graft-toolkit-0/nvidia-ctk"), "one");
	assert_true(sweep(test));
	assert_false(has(test, "nv/.graft-toolkit-0"));
	/* A part that somebody has changed, removed or added is a reason to exchange. */
	case_write(test, "nv/toolkit/nvidia-cdi-hook", "won", 0755);
	assert_int_equal(install(test, &err), 1);
	assert_int_equal(unlink(case_path(test, "nv/toolkit/nvidia-cdi-hook")), 0);
	assert_int_equal(install(test, &err), 1);
	case_write(test, "nv/toolkit/more", "", 0644);
	assert_int_equal(install(test, &err), 1);
	assert_int_equal(chmod(case_path(test, "nv/toolkit/nvidia-ctk"), 0777), 0);
	assert_int_equal(install(test, &err), 1);
	assert_int_equal(install(test, &err), 0);
	/* A library that packages of others have. */
	case_write(test, "source/usr/lib64/libnvidia-container-go.so.1", "go", 0644);
	assert_int_equal(install(test, &err), 1);
	assert_string_equal(case_read(test, "nv/toolkit/libnvidia-container-go.so.1"), "go");
}

/* Where names cannot be exchanged, `toolkit` is a link, which leads to a whole toolkit at each moment. */
static void test_without_exchange(void **state)
{
	static const int errors[] = { EINVAL, ENOSYS, EXDEV };
	struct ctk_case *test = *state;
	struct graft_error err;

	exchange_errno = EINVAL;
	assert_int_equal(install(test, &err), 1);
	assert_link(test, "nv/toolkit", ".graft-toolkit-0");
	assert_int_equal(install(test, &err), 0);
	make_packages(test, "two");
	/* What a killed one has left. */
	assert_int_equal(symlink("nowhere", case_path(test, "nv/.graft-toolkit-1-link")), 0);
	assert_int_equal(install(test, &err), 1);
	assert_link(test, "nv/toolkit", ".graft-toolkit-1");
	assert_program(test, "two");
	assert_true(sweep(test));
	assert_false(has(test, "nv/.graft-toolkit-0"));
	assert_program(test, "two");
	/* It stays a link where exchanging works again. */
	exchange_errno = 0;
	make_packages(test, "three");
	assert_int_equal(install(test, &err), 1);
	assert_link(test, "nv/toolkit", ".graft-toolkit-0");
	assert_program(test, "three");
	/* A directory cannot become a link in one step. */
	assert_int_equal(unlink(case_path(test, "nv/toolkit")), 0);
	assert_true(sweep(test));
	assert_int_equal(install(test, &err), 1);
	make_packages(test, "four");
	for (size_t i = 0; i < GRAFT_COUNT(errors); i++) {
		exchange_errno = errors[i];
		assert_int_equal(install(test, &err), -1);
		assert_message(test, &err, "failed to exchange ",
			       "/nv/toolkit: its file system cannot do that in one step, and containers that start "
			       "meanwhile would fail");
		assert_string_equal(graft_error_hint(&err),
				    "Nothing was changed. Remove this directory while no container starts, or set "
				    "--toolkit-install-dir to a directory on another file system.");
		assert_program(test, "three");
		assert_false(has(test, "nv/.graft-toolkit-0"));
	}
}

static void test_sweep(void **state)
{
	static const char *const others[] = { "nv/.graft-toolkit-old", "nv/.graft-toolkit-", "nv/.graft-toolkit-1x",
					      "nv/.toolkit-1",         "nv/toolkit-1",       "outside" };
	struct ctk_case *test = *state;
	auto_close int lock = -1;
	struct graft_error err;
	struct stat st;

	assert_int_equal(install(test, &err), 1);
	make_directories(test, others, GRAFT_COUNT(others));
	case_write(test, "outside/file", "x", 0644);
	assert_int_equal(mkdir(case_path(test, "nv/.graft-toolkit-7"), 0755), 0);
	{
		char outside[128];

		(void)snprintf(outside, sizeof(outside), "%s/outside", test->directory);
		assert_int_equal(symlink(outside, case_path(test, "nv/.graft-toolkit-7/outside")), 0);
		assert_int_equal(symlink(outside, case_path(test, "nv/.graft-toolkit-8")), 0);
	}
	/* Any user can lock a directory that he can read. */
	lock = open(case_path(test, "nv/.graft-toolkit-7"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
	assert_true(sweep(test));
	assert_false(has(test, "nv/.graft-toolkit-7"));
	assert_false(has(test, "nv/.graft-toolkit-8"));
	for (size_t i = 0; i < GRAFT_COUNT(others); i++)
		assert_true(has(test, others[i]));
	assert_true(has(test, "outside/file"));
	/* The lock of an installer counts, which no other user can open. */
	assert_int_equal(mkdir(case_path(test, "nv/.graft-toolkit-6"), 0755), 0);
	case_write(test, "nv/.graft-toolkit-6/.lock", "", 0600);
	assert_int_equal(close(lock), 0);
	lock = open(case_path(test, "nv/.graft-toolkit-6/.lock"), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
	assert_false(sweep(test));
	assert_true(has(test, "nv/.graft-toolkit-6"));
	assert_int_equal(close(lock), 0);
	lock = -1;
	assert_true(sweep(test));
	assert_false(has(test, "nv/.graft-toolkit-6"));
	assert_int_equal(stat(case_path(test, "nv/toolkit/.lock"), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	if (geteuid() == 0) {
		assert_int_equal(mkdir(case_path(test, "nv/.graft-toolkit-9"), 0755), 0);
		assert_int_equal(chown(case_path(test, "nv/.graft-toolkit-9"), 1, 1), 0);
		assert_true(sweep(test));
		assert_true(has(test, "nv/.graft-toolkit-9"));
	}
}

/* A process that runs a program of an old toolkit keeps it. */
static void test_toolkit_in_use(void **state)
{
	struct ctk_case *test = *state;
	char path[128], time[] = "60", *const words[] = { path, time, NULL };
	auto_close int from = open("/bin/sleep", O_RDONLY | O_CLOEXEC), to = -1;
	char bytes[65536];
	ssize_t n;
	pid_t pid;
	int go[2];

	assert_true(from >= 0);
	assert_int_equal(mkdir(case_path(test, "nv"), 0755), 0);
	assert_int_equal(mkdir(case_path(test, "nv/.graft-toolkit-3"), 0755), 0);
	(void)snprintf(path, sizeof(path), "%s", case_path(test, "nv/.graft-toolkit-3/sleep"));
	to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)n), n);
	assert_int_equal(close(to), 0);
	to = -1;
	/* Its end is closed by execve. */
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)execv(path, words);
		_exit(127);
	}
	assert_int_equal(close(go[1]), 0);
	assert_int_equal(read(go[0], bytes, 1), 0);
	assert_int_equal(close(go[0]), 0);
	assert_false(sweep(test));
	assert_true(has(test, "nv/.graft-toolkit-3/sleep"));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(sweep(test));
	assert_false(has(test, "nv/.graft-toolkit-3"));
}

static void test_no_stage(void **state)
{
	struct ctk_case *test = *state;
	struct graft_error err;
	char name[64];

	assert_int_equal(mkdir(case_path(test, "nv"), 0755), 0);
	mkdir_errno = ENOSPC;
	assert_int_equal(install(test, &err), -1);
	assert_message(test, &err, "failed to create ", "/nv/.graft-toolkit-0: no space left on device");
	mkdir_errno = EROFS;
	assert_int_equal(install(test, &err), -1);
	assert_message(test, &err, "failed to create ", "/nv/.graft-toolkit-0: read-only file system");
	mkdir_errno = 0;
	/* A thousand that processes still run: none of them is written to. */
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "nv/.graft-toolkit-%d", i);
		assert_int_equal(mkdir(case_path(test, name), 0755), 0);
	}
	assert_int_equal(install(test, &err), -1);
	assert_message(test, &err, "failed to create ", "/nv/.graft-toolkit-999: file exists");
	assert_int_equal(rmdir(case_path(test, "nv/.graft-toolkit-500")), 0);
	assert_int_equal(install(test, &err), 1);
	assert_program(test, "one");
}

/* All parts are tried, and the first error is the one that counts; what was there stays. */
static void test_missing_parts(void **state)
{
	struct ctk_case *test = *state;
	struct graft_error err;

	assert_int_equal(install(test, &err), 1);
	make_packages(test, "two");
	assert_int_equal(unlink(case_path(test, "source/usr/bin/nvidia-ctk")), 0);
	assert_int_equal(unlink(case_path(test, "source/usr/bin/nvidia-cdi-hook")), 0);
	assert_int_equal(install(test, &err), -1);
	assert_message(test, &err, "failed to install nvidia-ctk: there is none in ", "/source");
	assert_non_null(strstr(test->said, "error: failed to install nvidia-cdi-hook: there is none in "));
	assert_non_null(strstr(test->said, "info: Installing 'nvidia-container-runtime-hook'\n"));
	assert_program(test, "one");
	assert_false(has(test, "nv/.graft-toolkit-0"));
}

/* ---- the lock ---- */

static void test_lock(void **state)
{
	struct ctk_case *test = *state;
	struct installer_options o = options_of(test);
	auto_close int first = -1, second = -1;
	char pid[32];
	struct graft_error err;
	struct stat st, named;

	first = installer_pid_file_take(&o, &err);
	assert_true(first >= 0);
	(void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	assert_string_equal(case_read(test, "run/nvidia/toolkit.pid"), pid);
	/* Any user can lock a file that he can read. */
	assert_int_equal(stat(o.pid_file, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(installer_pid_file_take(&o, &err), -1);
	assert_message(test, &err,
		       "unable to get flock on pidfile: ", "/run/nvidia/toolkit.pid: resource temporarily unavailable");
	assert_non_null(strstr(test->said, "warning: Unable to get exclusive lock on '"));
	assert_non_null(strstr(test->said, "aborting\n"));
	assert_string_equal(case_read(test, "run/nvidia/toolkit.pid"), pid);
	/* The first one ends after the second has opened its file: the second takes a new one, which the third finds. */
	assert_int_equal(close(first), 0);
	first = -1;
	assert_int_equal(chmod(o.pid_file, 0644), 0);
	first = installer_pid_file_take(&o, &err);
	assert_int_equal(stat(o.pid_file, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(close(first), 0);
	first = -1;
	removed_at_lock = o.pid_file;
	second = installer_pid_file_take(&o, &err);
	assert_true(second >= 0);
	assert_int_equal(fstat(second, &st), 0);
	assert_int_equal(stat(o.pid_file, &named), 0);
	assert_int_equal(st.st_ino, named.st_ino);
	assert_string_equal(case_read(test, "run/nvidia/toolkit.pid"), pid);
	assert_int_equal(installer_pid_file_take(&o, &err), -1);
}

static void test_lock_refused(void **state)
{
	struct ctk_case *test = *state;
	struct installer_options o = options_of(test);
	struct graft_error err;
	struct stat st;

	assert_int_equal(mkdir(case_path(test, "run"), 0755), 0);
	assert_int_equal(mkdir(case_path(test, "run/nvidia"), 0755), 0);
	case_write(test, "precious", "x", 0644);
	assert_int_equal(symlink("../../precious", o.pid_file), 0);
	assert_int_equal(installer_pid_file_take(&o, &err), -1);
	assert_string_equal(case_read(test, "precious"), "x");
	assert_int_equal(unlink(o.pid_file), 0);
	assert_int_equal(mkfifo(o.pid_file, 0600), 0);
	assert_int_equal(installer_pid_file_take(&o, &err), -1);
	assert_message(test, &err, "unable to create pidfile: ", "/run/nvidia/toolkit.pid is not a regular file");
	assert_int_equal(unlink(o.pid_file), 0);
	/* What another user may have put into a sticky directory. */
	assert_int_equal(chmod(case_path(test, "run/nvidia"), 01777), 0);
	assert_int_equal(link(case_path(test, "precious"), o.pid_file), 0);
	assert_int_equal(installer_pid_file_take(&o, &err), -1);
	assert_message(test, &err, "unable to create pidfile: ",
		       "/run/nvidia/toolkit.pid belongs to another user or has another name");
	assert_string_equal(graft_error_hint(&err), "Remove it.");
	assert_string_equal(case_read(test, "precious"), "x");
	assert_int_equal(stat(case_path(test, "precious"), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	if (geteuid() == 0) {
		assert_int_equal(unlink(o.pid_file), 0);
		case_write(test, "run/nvidia/toolkit.pid", "theirs", 0644);
		assert_int_equal(chown(o.pid_file, 1, 1), 0);
		assert_int_equal(installer_pid_file_take(&o, &err), -1);
		assert_message(test, &err, "unable to create pidfile: ",
			       "/run/nvidia/toolkit.pid belongs to another user or has another name");
		assert_string_equal(case_read(test, "run/nvidia/toolkit.pid"), "theirs");
	}
	o.pid_file = "/proc/none/toolkit.pid";
	assert_int_equal(installer_pid_file_take(&o, &err), -1);
}

/* ---- the host's root ---- */

static void test_below_root(void **state)
{
	static const char *const directories[] = { "host/usr", "host/usr/bin", "host/opt" };
	struct ctk_case *test = *state;
	char host[128];
	struct stat st;

	make_directories(test, directories, GRAFT_COUNT(directories));
	(void)snprintf(host, sizeof(host), "%s/host", test->directory);
	case_write(test, "host/opt/tool", "", 0755);
	assert_int_equal(symlink("/opt/tool", case_path(test, "host/usr/bin/inside")), 0);
	assert_int_equal(symlink("/bin/sh", case_path(test, "host/usr/bin/outside")), 0);
	assert_int_equal(symlink("../../../../../../../bin/sh", case_path(test, "host/usr/bin/up")), 0);
	assert_true(installer_stat_below(host, "/usr/bin/inside", &st));
	assert_false(installer_stat_below(host, "/usr/bin/outside", &st));
	assert_false(installer_stat_below(host, "/usr/bin/up", &st));
	assert_true(installer_stat_below("", "/bin/sh", &st));
	assert_true(installer_stat_below("/", "/bin/sh", &st));
}

/* A link that leads nowhere below the host's root is no package's program; it did lead to one of this system. */
static void test_runtime_of_package(void **state)
{
	static const char *const directories[] = { "host/usr", "host/usr/bin" };
	struct ctk_case *test = *state;
	struct installer_options o;
	struct graft_error err;

	make_directories(test, directories, GRAFT_COUNT(directories));
	o = options_of(test);
	o.config = graft_arena_strdup(test->ctk.arena, case_path(test, "daemon.json"));
	for (int is_package = 0; is_package < 2; is_package++) {
		case_write(test, "daemon.json", "{\"runtimes\": {\"nvidia\": {\"path\": \"/usr/bin/tool\"}}}\n", 0644);
		(void)unlink(case_path(test, "host/usr/bin/tool"));
		if (is_package)
			case_write(test, "host/usr/bin/tool", "", 0755);
		else
			assert_int_equal(symlink("/bin/sh", case_path(test, "host/usr/bin/tool")), 0);
		test->n_said = 0;
		assert_int_equal(installer_engine_configure(&o, &err), 1);
		assert_int_equal(strstr(case_read(test, "daemon.json"), "\"/usr/bin/tool\"") != NULL, is_package);
		assert_int_equal(strstr(test->said, "which a package of this node has registered: leaving it.") != NULL,
				 is_package);
		assert_int_equal(installer_engine_configure(&o, &err), 0);
	}
}

/* ---- the engine's files ---- */

static void test_restored(void **state)
{
	static const char text[] = "{\n   \"labels\": [\"a=b\"],\n\t\"runtimes\": {\"plain\": {\"path\": \"runc\"}}}\n";
	struct ctk_case *test = *state;
	struct installer_options o = options_of(test);
	struct graft_error err;

	assert_int_equal(mkdir(case_path(test, "nv"), 0755), 0);
	o.config = graft_arena_strdup(test->ctk.arena, case_path(test, "daemon.json"));
	case_write(test, "daemon.json", text, 0640);
	assert_int_equal(installer_engine_configure(&o, &err), 1);
	assert_non_null(strstr(case_read(test, "daemon.json"), "/nv/toolkit/nvidia-container-runtime.cdi\""));
	assert_true(has(test, "nv/.engine-has-to-read"));
	assert_int_equal(installer_engine_configure(&o, &err), 0);
	assert_int_equal(installer_engine_restore(&o, &err), 1);
	assert_string_equal(case_read(test, "daemon.json"), text);
	assert_int_equal(installer_engine_restore(&o, &err), 0);
	/* There was none. */
	assert_int_equal(unlink(case_path(test, "daemon.json")), 0);
	assert_int_equal(installer_engine_configure(&o, &err), 1);
	assert_int_equal(installer_engine_restore(&o, &err), 1);
	assert_false(has(test, "daemon.json"));
}

/* A plain template of K3s is changed, but not made: it would be the whole configuration. */
static void test_template(void **state)
{
	struct ctk_case *test = *state;
	struct installer_options o;
	struct ctk_list runtimes;
	struct graft_error err;

	o = options_of(test);
	o.runtime = "containerd";
	o.config = graft_arena_strdup(test->ctk.arena, case_path(test, "config-v3.toml.tmpl"));
	o.drop_in = "";
	assert_int_equal(installer_options_check(&o, &err), 0);
	assert_int_equal(installer_engine_find_files(&o, &err), 0);
	assert_int_equal(installer_engine_configure(&o, &err), -1);
	assert_message(test, &err, "unable to load config for runtime containerd: there is no ",
		       "/config-v3.toml.tmpl, and a template is the engine's whole configuration");
	assert_string_equal(graft_error_hint(&err), "Copy config.toml there first, or set NO_RUNTIME_CONFIG=true: K3s "
						    "and RKE2 find the toolkit when they start.");
	assert_false(has(test, "config-v3.toml.tmpl"));
	/* Nothing to take back. */
	assert_int_equal(installer_engine_restore(&o, &err), 0);
	o.config_sources = (struct ctk_list){ .n = 0 };
	case_write(test, "config-v3.toml.tmpl", "version = 3\n", 0644);
	case_write(test, "config.toml", "version = 3\n", 0600);
	assert_int_equal(installer_engine_find_files(&o, &err), 0);
	assert_int_equal(installer_engine_list_runtimes(&o, &runtimes, &err), 0);
	assert_int_equal(installer_engine_configure(&o, &err), 1);
	assert_non_null(strstr(case_read(test, "config-v3.toml.tmpl"),
			       "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.nvidia-cdi"));
	assert_int_equal(installer_engine_restore(&o, &err), 1);
	assert_string_equal(case_read(test, "config-v3.toml.tmpl"), "version = 3\n");
}

#define K3S_HEAD "# File generated by k3s. DO NOT EDIT. Use config-v3.toml.tmpl instead.\nversion = 3\n"
#define K3S_RUNC                                                                      \
	"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]\n"         \
	"runtime_type = \"io.containerd.runc.v2\"\n"                                  \
	"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\n" \
	"SystemdCgroup = true\n"
#define K3S_BASE "{{ template \"base\" . }}\n[debug]\nlevel = \"info\"\n"
#define K3S_HINT                                                                                                  \
	"Set NO_RUNTIME_CONFIG=true and restart K3s or RKE2: it registers the runtimes that it finds in "         \
	"/usr/local/nvidia/toolkit. Its releases since March 2026 import drop-in files, which this program then " \
	"writes."

/* With the default drop-in, as the operator names it; and with CONTAINERD_CONFIG=name. */
static struct installer_options k3s_options(struct ctk_case *test, const char *name)
{
	struct installer_options o = options_of(test);
	struct graft_error err;

	o.runtime = "containerd";
	o.config = graft_arena_strdup(test->ctk.arena, case_path(test, name));
	o.drop_in = "/runtime/config-dir.d/99-nvidia.toml";
	o.drop_in_host = "/etc/containerd/conf.d/99-nvidia.toml";
	assert_int_equal(installer_options_check(&o, &err), 0);
	return o;
}

/* A template of Go, or what K3s makes of one at each start, is never changed: an error where nothing else is read. */
static void test_generated(void **state)
{
	static const struct {
		const char *config, *template, *named, *tail; /* tail NULL: it may be used */
	} cases[] = {
		{ K3S_HEAD, K3S_BASE, "config-v3.toml.tmpl", "/config-v3.toml.tmpl is a template, not TOML, and" },
		{ K3S_HEAD, K3S_BASE, "config.toml", "/config.toml is written by K3s or RKE2 at each start, and" },
		{ K3S_HEAD "imports = [\"/etc/containerd/conf.d/*.toml\"]\n", K3S_BASE, "config.toml",
		  "/config.toml is written by K3s or RKE2 at each start, and" },
		{ NULL, K3S_BASE, "config.toml.tmpl", "/config.toml.tmpl is a template, not TOML, and" },
		{ "version = 3\n# DO NOT EDIT.\n", NULL, "config.toml", NULL },
		{ "version = 3\nimports = [\"/etc/containerd/config.toml.d/*.toml\"]\n", NULL, "config.toml", NULL },
	};
	struct ctk_case *test = *state;
	struct graft_error err;
	char text[600];

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct installer_options o = k3s_options(test, cases[i].named);
		bool is_template = graft_ends_with(cases[i].named, ".tmpl");

		(void)unlink(case_path(test, "config.toml"));
		if (cases[i].config)
			case_write(test, "config.toml", cases[i].config, 0600);
		if (is_template)
			case_write(test, cases[i].named, cases[i].template, 0644);
		err = (struct graft_error){ .status = GRAFT_OK };
		assert_int_equal(installer_engine_find_files(&o, &err), cases[i].tail ? -1 : 0);
		assert_false(o.is_generated);
		if (!cases[i].tail)
			continue;
		(void)snprintf(text, sizeof(text), "%s no directory of drop-in files is imported", cases[i].tail);
		assert_message(test, &err, "", text);
		assert_string_equal(graft_error_hint(&err), K3S_HINT);
		assert_string_equal(graft_path_name(o.config), "config.toml");
		/* It is no matter without a configuration: the runtimes of the engine are read from what there is. */
		o.no_runtime_config = true;
		assert_int_equal(installer_engine_find_files(&o, &err), 0);
		assert_string_equal(graft_path_name(o.config), "config.toml");
		assert_false(o.is_generated);
		assert_true(!is_template || strcmp(case_read(test, cases[i].named), cases[i].template) == 0);
	}
}

/* Where K3s imports drop-ins, the runtimes go there, whatever it finds at its next start; its own files stay. */
static void test_k3s_drop_ins(void **state)
{
	static const char *const named[] = { "config.toml", "config-v3.toml.tmpl" };
	static const char found[] = "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.'nvidia']\n"
				    "runtime_type = \"io.containerd.runc.v2\"\n"
				    "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.'nvidia'.options]\n"
				    "BinaryName = \"/usr/bin/nvidia-container-runtime\"\n";
	struct ctk_case *test = *state;
	struct graft_arena *arena = test->ctk.arena;
	const char *path = graft_arena_strdup(arena, case_path(test, "config-v3.toml.d/99-nvidia.toml"));
	const char *imports = "imports = [\"/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/*.toml\"]\n";
	const char *config = graft_arena_printf(arena, "%s%s%s", K3S_HEAD, imports, K3S_RUNC), *drop_in;
	const char *again = graft_arena_printf(arena, "%s%s", config, found);
	static const char *const host[] = { "host/usr", "host/usr/bin" };
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(mkdir(case_path(test, "nv"), 0755), 0);
	/* That of a package, which K3s does not prefer. */
	make_directories(test, host, GRAFT_COUNT(host));
	case_write(test, "host/usr/bin/nvidia-container-runtime", "", 0755);
	for (size_t i = 0; i < GRAFT_COUNT(named); i++) {
		struct installer_options o = k3s_options(test, named[i]);

		case_write(test, "config.toml", config, 0600);
		case_write(test, "config-v3.toml.tmpl", K3S_BASE, 0644);
		assert_int_equal(installer_engine_find_files(&o, &err), 0);
		assert_true(o.is_generated);
		assert_string_equal(o.config, case_path(test, "config.toml"));
		assert_string_equal(o.drop_in_path, path);
		assert_string_equal(o.drop_in_host, "/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/"
						    "99-nvidia.toml");
		assert_int_equal(installer_engine_configure(&o, &err), 1);
		drop_in = graft_arena_strdup(arena, case_read(test, "config-v3.toml.d/99-nvidia.toml"));
		assert_non_null(strstr(drop_in, "version = 3\n"));
		assert_non_null(strstr(drop_in, "/nv/toolkit/nvidia-container-runtime.cdi\""));
		assert_non_null(strstr(drop_in, "/nv/toolkit/nvidia-container-runtime\""));
		assert_string_equal(case_read(test, "config.toml"), config);
		/* K3s has started again, and found a toolkit. */
		case_write(test, "config.toml", again, 0600);
		(void)installer_engine_configure(&o, &err);
		assert_int_equal(installer_engine_configure(&o, &err), 0);
		assert_null(strstr(test->said, "which a package of this node has registered"));
		assert_string_equal(case_read(test, "config.toml"), again);
		assert_int_equal(installer_engine_restore(&o, &err), 1);
		assert_false(has(test, "config-v3.toml.d/99-nvidia.toml"));
		assert_string_equal(case_read(test, "config.toml"), again);
		assert_string_equal(case_read(test, "config-v3.toml.tmpl"), K3S_BASE);
	}
}

/* Its own containerd says how files are merged; a drop-in that is imported is used under the name that it was given. */
static void test_k3s_release(void **state)
{
	static const char *const directories[] = { "nv", "host/k3s", "host/k3s/data", "host/k3s/data/current",
						   "host/k3s/data/current/bin" };
	struct ctk_case *test = *state;
	struct installer_options o = k3s_options(test, "config.toml");
	struct graft_error err = { .status = GRAFT_OK };
	const char *text;

	make_directories(test, directories, GRAFT_COUNT(directories));
	o.host_root = graft_arena_printf(test->ctk.arena, "%s/host", test->directory);
	o.drop_in_path = graft_arena_strdup(test->ctk.arena, case_path(test, "given/50-gpu.toml"));
	o.drop_in_host = "/k3s/agent/etc/containerd/config-v3.toml.d/50-gpu.toml";
	case_write(test, "config.toml",
		   K3S_HEAD "imports = [\"/k3s/agent/etc/containerd/config-v3.toml.d/*.toml\"]\n" K3S_RUNC, 0600);
	case_write(test, "host/k3s/data/current/bin/containerd", "", 0755);
	assert_int_equal(installer_engine_find_files(&o, &err), 0);
	assert_string_equal(o.executable, "/k3s/data/current/bin/containerd");
	assert_string_equal(o.drop_in_path, case_path(test, "given/50-gpu.toml"));
	assert_string_equal(o.drop_in_host, "/k3s/agent/etc/containerd/config-v3.toml.d/50-gpu.toml");
	/* It runs in the root of the host, where nothing else is: its release is unknown, and the section is copied. */
	assert_int_equal(installer_engine_configure(&o, &err), 1);
	text = case_read(test, "given/50-gpu.toml");
	assert_non_null(strstr(text, "runtimes.runc"));
}

/* ---- options ---- */

static void test_option_rules(void **state)
{
	struct ctk_case *test = *state;
	struct installer_options o = options_of(test);
	struct installer_runtime runtimes[INSTALLER_RUNTIMES];
	struct graft_error err;
	char text[512];

#define REFUSED(member, value, message)                                                   \
	do {                                                                              \
		struct installer_options bad = o;                                         \
                                                                                          \
		bad.member = (value);                                                     \
		assert_int_equal(installer_options_check(&bad, &err), -1);                \
		assert_string_equal(graft_error_text(&err, text, sizeof(text)), message); \
	} while (0)
	REFUSED(package_type, "tar", "invalid package type: tar");
	REFUSED(install_dir, "", "the install root must be specified");
	REFUSED(install_dir, "nv", "the install root nv is not an absolute path");
	REFUSED(pid_file, "/run/x.pid", "invalid toolkit.pid path /run/x.pid");
	REFUSED(nri_index, "100", "invalid NRI plugin index: 100; allowed: 0 to 99");
	REFUSED(nri, true, "the NRI namespace must be specified when the NRI plugin is enabled");
	REFUSED(runtime, "podman", "invalid runtime \"podman\"; expected one of [containerd | crio | docker]");
	REFUSED(restart_mode, "kill", "invalid restart mode specified: kill");
#undef REFUSED
	make_directories(test, (const char *const[]){ "host/usr", "host/usr/bin" }, 2);
	case_write(test, "host/usr/bin/rpm", "", 0755);
	o.package_type = "auto";
	o.source_root = NULL;
	o.nri_index = "+007";
	assert_int_equal(installer_options_check(&o, &err), 0);
	assert_string_equal(o.source_root, "/artifacts/rpm");
	assert_string_equal(o.nri_index, "07");
	o.runtime_name = "nvidia-legacy";
	assert_int_equal(installer_list_runtimes(&o, runtimes, &err), 0);
	assert_string_equal(runtimes[INSTALLER_RUNTIMES - 1].name, "nvidia-legacy");
	assert_true(runtimes[INSTALLER_RUNTIMES - 1].is_default);
	assert_string_equal(runtimes[1].name, "nvidia");
	assert_false(runtimes[1].is_default);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_installer, case_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_exchange),   TEST(test_without_exchange),   TEST(test_sweep),       TEST(test_toolkit_in_use),
		TEST(test_no_stage),   TEST(test_missing_parts),      TEST(test_lock),        TEST(test_lock_refused),
		TEST(test_below_root), TEST(test_runtime_of_package), TEST(test_restored),    TEST(test_template),
		TEST(test_generated),  TEST(test_k3s_drop_ins),       TEST(test_k3s_release), TEST(test_option_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
