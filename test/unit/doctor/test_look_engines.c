/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files and processes of container engines contain about GPUs: the usual files, those of
 * users, and those that cannot be understood.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../formats/go_program.h"
#include "../host/fixture.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "doctor/facts.h"
#include "doctor/judge.h"

#define HOOK "/usr/bin/nvidia-container-runtime-hook"
#define SHIM "/usr/bin/nvidia-container-runtime"

static struct fixture *fixture;
static struct graft_health_options options;
static struct graft_health *health;

static int setup(void **state)
{
	if (fixture_set_up(state) < 0)
		return -1;
	fixture = *state;
	fixture->options.host_root = fixture->root;
	options = (struct graft_health_options){ .host = fixture->options };
	fixture_write(fixture, "/proc/self/status", "Uid:\t0\t0\t0\t0\n");
	fixture_write(fixture, "/proc/stat", "cpu 1\nbtime 1000\n");
	fixture_write(fixture, "/proc/1/comm", "systemd\n");
	return 0;
}

static int teardown(void **state)
{
	health = graft_health_free(health);
	return fixture_tear_down(state);
}

static void program(const char *path)
{
	char full[256];

	fixture_write(fixture, path, "#!");
	(void)snprintf(full, sizeof(full), "%s%s", fixture->root, path);
	assert_int_equal(chmod(full, 0755), 0);
}

static void process(const char *pid, const char *name, unsigned int uid, long ticks)
{
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	(void)snprintf(text, sizeof(text), "%s\n", name);
	fixture_write(fixture, path, text);
	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	(void)snprintf(text, sizeof(text), "Name:\t%s\nUid:\t%u\t%u\t%u\t%u\nNSpid:\t%s\n", name, uid, uid, uid, uid,
		       pid);
	fixture_write(fixture, path, text);
	(void)snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	(void)snprintf(text, sizeof(text), "%s (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 %ld 10 11\n", pid,
		       ticks);
	fixture_write(fixture, path, text);
}

static const struct graft_health_engine *look(const char *name)
{
	struct graft_error err = { .status = GRAFT_OK };

	health = graft_health_free(health);
	if (graft_health_collect(&options, &health, &err) < 0)
		fail_msg("%s: %s", err.ctx, err.msg);
	for (size_t i = 0; i < health->n_engines; i++) {
		if (strcmp(health->engines[i].name, name) == 0)
			return &health->engines[i];
	}
	return NULL;
}

static const struct graft_health_file *find_file(const struct graft_health_engine *engine, const char *path)
{
	for (size_t i = 0; i < engine->n_files; i++) {
		if (strcmp(engine->files[i].path, path) == 0)
			return &engine->files[i];
	}
	fail_msg("%s was not read", path);
	return NULL;
}

/* --- Docker --- */

/* Who starts Docker's containers, and whether that has the caller's mounts. */
static void test_other_mounts(void **state)
{
	program("/usr/bin/containerd");
	process("77", "dockerd", 0, 500);
	assert_false(look("docker")->other_mounts);
	fixture_link(fixture, "mnt:[1]", "/proc/self/ns/mnt");
	fixture_link(fixture, "mnt:[1]", "/proc/77/ns/mnt");
	assert_false(look("docker")->other_mounts);
	process("78", "containerd", 0, 500);
	fixture_link(fixture, "mnt:[2]", "/proc/78/ns/mnt");
	assert_true(look("docker")->other_mounts);
	assert_true(look("containerd")->other_mounts);
	/* One of its own. */
	process("79", "containerd", 0, 600);
	fixture_link(fixture, "mnt:[1]", "/proc/79/ns/mnt");
	assert_false(look("docker")->other_mounts);
}

static void test_docker(void **state)
{
	static const char words[] =
	    "/usr/bin/dockerd\0-H\0fd://\0--add-runtime\0nvidia-cdi=nvidia-container-runtime.cdi\0"
	    "--default-runtime=nvidia-cdi\0";
	static const char environment[] = "HOME=/root\0PATH=/opt/bin:/usr/bin\0LANG=C\0";
	const struct graft_health_engine *docker;

	assert_null(look("docker"));
	program("/usr/bin/dockerd");
	program(HOOK);
	program(SHIM);
	process("77", "dockerd", 0, 500);
	fixture_write_bytes(fixture, "/proc/77/cmdline", words, sizeof(words) - 1);
	fixture_write_bytes(fixture, "/proc/77/environ", environment, sizeof(environment) - 1);
	fixture_link(fixture, "/usr/bin/dockerd", "/proc/77/exe");
	fixture_write(
	    fixture, "/etc/docker/daemon.json",
	    "{\"runtimes\": {\"nvidia\": {\"path\": \"nvidia-container-runtime\", \"args\": []},"
	    " \"kata\": {\"path\": \"/usr/bin/kata\"}, \"gpu\": {\"path\": \"/opt/nvidia-container-runtime\"},"
	    " \"nvidia-shim\": {\"runtimeType\": \"io.containerd.runc.v2\", \"options\": {\"BinaryName\": "
	    "\"" SHIM "\"}}},"
	    " \"features\": {\"cdi\": true}, \"cdi-spec-dirs\": [\"/opt/cdi\", 5],"
	    " \"node-generic-resources\": [\"gpu=GPU-0\"], \"default-runtime\": \"runc\"}");
	docker = look("docker");
	assert_int_equal(docker->kind, GRAFT_ENGINE_DOCKER);
	assert_true(docker->running);
	assert_false(docker->rootless || docker->snap || docker->desktop);
	assert_string_equal(docker->program, "/usr/bin/dockerd");
	assert_string_equal(docker->path, "/opt/bin:/usr/bin");
	assert_int_equal(docker->started, 1000 + 500 / sysconf(_SC_CLK_TCK) + 1);
	assert_string_equal(docker->hook, HOOK);
	assert_true(docker->hook_changed > 1000);
	assert_int_equal(docker->n_runtimes, 4);
	assert_string_equal(docker->runtimes[0].name, "nvidia-cdi");
	assert_string_equal(docker->runtimes[0].file, "--add-runtime");
	assert_false(docker->runtimes[0].found);
	assert_string_equal(docker->runtimes[1].path, "nvidia-container-runtime");
	assert_true(docker->runtimes[1].found);
	assert_string_equal(docker->runtimes[2].name, "gpu");
	assert_false(docker->runtimes[2].found);
	assert_string_equal(docker->runtimes[3].name, "nvidia-shim");
	assert_true(docker->runtimes[3].found);
	assert_true(docker->has_cdi && docker->cdi);
	assert_int_equal(docker->n_cdi_directories, 1);
	assert_string_equal(docker->resources[0], "gpu=GPU-0");
	assert_string_equal(docker->default_runtime, "runc");
	assert_null(find_file(docker, "/etc/docker/daemon.json")->problem);
}

static void test_docker_elsewhere(void **state)
{
	static const char one[] = "dockerd\0--config-file=/srv/d.json\0",
			  two[] = "dockerd\0--config-file\0/srv/d.json\0";
	const struct graft_health_engine *docker;

	process("77", "dockerd", 0, 500);
	fixture_write(fixture, "/srv/d.json", "{\"runtimes\": {\"nvidia\": {\"path\": \"/x\"}}}");
	fixture_write_bytes(fixture, "/proc/77/cmdline", one, sizeof(one) - 1);
	docker = look("docker");
	assert_int_equal(docker->n_runtimes, 1);
	assert_null(docker->path);
	fixture_write_bytes(fixture, "/proc/77/cmdline", two, sizeof(two) - 1);
	docker = look("docker");
	assert_string_equal(find_file(docker, "/srv/d.json")->path, docker->runtimes[0].file);
	/* An option without its value. */
	fixture_write_bytes(fixture, "/proc/77/cmdline", two, strlen(two) + 1 + strlen("--config-file") + 1);
	docker = look("docker");
	assert_int_equal(docker->n_runtimes, 0);
}

static void test_docker_that_nobody_understands(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "{\"runtimes\": 5}", "null", "\xff\xfe" };
	const struct graft_health_engine *docker;

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		fixture_write(fixture, "/etc/docker/daemon.json", texts[i]);
		docker = look("docker");
		if (!docker || !find_file(docker, "/etc/docker/daemon.json")->problem)
			fail_msg("'%s' is understood", texts[i]);
	}
	/* Odd but harmless. */
	fixture_write(fixture, "/etc/docker/daemon.json",
		      "{\"runtimes\": {\"nvidia\": 5, \"nvidia2\": {}}, \"features\": []}");
	docker = look("docker");
	assert_int_equal(docker->n_runtimes, 2);
	assert_null(docker->runtimes[0].path);
	assert_false(docker->runtimes[0].found);
	fixture_remove(fixture, "/etc/docker/daemon.json");
	fixture_directory(fixture, "/etc/docker/daemon.json");
	docker = look("docker");
	assert_non_null(find_file(docker, "/etc/docker/daemon.json")->problem);
}

static void test_docker_of_others(void **state)
{
	const struct graft_health_engine *docker;

	fixture_directory(fixture, "/opt/docker-desktop");
	docker = look("docker");
	assert_true(docker->desktop);
	assert_false(docker->running);
	program("/snap/docker/current/bin/dockerd");
	fixture_write(fixture, "/var/snap/docker/current/config/daemon.json", "{}");
	docker = look("docker");
	assert_true(docker->snap);
	assert_non_null(find_file(docker, "/var/snap/docker/current/config/daemon.json"));
}

static void test_rootless_docker(void **state)
{
	const struct graft_health_engine *docker;

	fixture_write(fixture, "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nu:x:1000:1000::/home/u:/bin/sh\n");
	fixture_write(fixture, "/home/u/.config/docker/daemon.json",
		      "{\"runtimes\": {\"nvidia\": {\"path\": \"/x\"}}}");
	process("90", "dockerd", 1000, 900);
	docker = look("docker (rootless, uid 1000)");
	assert_true(docker->rootless && docker->running);
	assert_int_equal(docker->n_runtimes, 1);
	assert_null(look("docker"));
	/*
	 * The caller's own engine, which is not running; his environment variables point to its
	 * files.
	 */
	fixture_write(fixture, "/proc/90/comm", "gone\n");
	fixture_write(fixture, "/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
	assert_non_null(look("docker (rootless, uid 1000)"));
	options.home = "/home/v";
	assert_null(look("docker (rootless, uid 1000)"));
	options.config_home = "/home/u/.config";
	docker = look("docker (rootless, uid 1000)");
	assert_false(docker->running);
	assert_int_equal(docker->n_runtimes, 1);
}

/* --- containerd --- */

static void test_containerd(void **state)
{
	const struct graft_health_engine *containerd;

	program(SHIM);
	process("5", "containerd", 0, 100);
	fixture_write(fixture, "/etc/containerd/config.toml",
		      "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\", \"more.toml\", "
		      "\"/etc/containerd/config.toml\"]\n"
		      "[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n"
		      "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\nruntime_type = \"x\"\n");
	fixture_write(
	    fixture, "/etc/containerd/conf.d/99-nvidia.toml",
	    "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndefault_runtime_name = \"nvidia\"\n"
	    "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\nBinaryName = \"" SHIM "\"\n"
	    "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.\"my gpu\".options]\nBinaryName = "
	    "\"/opt/nvidia-container-runtime\"\n");
	fixture_write(fixture, "/etc/containerd/more.toml", "version = 3\ndisabled_plugins = [\"x\"]\n");
	fixture_write(fixture, "/etc/containerd/conf.d/not.conf", "x");
	containerd = look("containerd");
	assert_true(containerd->running);
	assert_int_equal(containerd->n_files, 3);
	assert_int_equal(find_file(containerd, "/etc/containerd/config.toml")->version, 2);
	assert_int_equal(find_file(containerd, "/etc/containerd/more.toml")->version, 3);
	assert_true(find_file(containerd, "/etc/containerd/conf.d/99-nvidia.toml")->imported);
	assert_int_equal(containerd->n_runtimes, 2);
	assert_string_equal(containerd->runtimes[0].name, "nvidia");
	assert_string_equal(containerd->runtimes[0].path, SHIM);
	assert_string_equal(containerd->runtimes[0].table, "io.containerd.grpc.v1.cri");
	assert_true(containerd->runtimes[0].found);
	assert_string_equal(containerd->runtimes[1].name, "my gpu");
	assert_false(containerd->runtimes[1].found);
	assert_string_equal(containerd->default_runtime, "nvidia");
	assert_true(containerd->has_cdi && containerd->cdi);
	assert_false(containerd->no_cri);
}

static void test_containerd_forgets(void **state)
{
	const struct graft_health_engine *containerd;

	fixture_write(fixture, "/etc/containerd/config.toml", "disabled_plugins = [\"cri\"]\n");
	fixture_write(fixture, "/etc/containerd/conf.d/99-nvidia.toml", "version = 2\n");
	containerd = look("containerd");
	assert_true(containerd->no_cri);
	assert_false(find_file(containerd, "/etc/containerd/conf.d/99-nvidia.toml")->imported);
	assert_int_equal(containerd->n_runtimes, 0);
}

static void test_containerd_that_nobody_understands(void **state)
{
	static const struct {
		const char *text;
		bool known; /* its runtime is read in any case */
	} cases[] = {
		{ "version = ", false },
		{ "version = \"two\"\n[plugins.cri.containerd.runtimes.nvidia.options]\nBinaryName = \"/x\"\n", true },
		{ "imports = 5\n[plugins.cri.containerd.runtimes.nvidia.options]\nBinaryName = \"/x\"\n", true },
		{ "[plugins.cri.containerd.runtimes.nvidia.options]\nBinaryName = 5\n", true },
		{ "[plugins]\ncri = 5\n", false },
		{ "[plugins.cri.containerd]\nruntimes = [1]\n", false },
		{ "disabled_plugins = \"cri\"\n", false },
		{ "[plugins.cri]\nenable_cdi = \"yes\"\n", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const struct graft_health_engine *containerd;

		fixture_write(fixture, "/etc/containerd/config.toml", cases[i].text);
		containerd = look("containerd");
		assert_non_null(containerd);
		if (!find_file(containerd, "/etc/containerd/config.toml")->problem)
			fail_msg("'%s' is understood", cases[i].text);
		assert_int_equal(containerd->n_runtimes, cases[i].known);
	}
}

/* Files that import each other, and an unusually large number of files. */
static void test_containerd_in_circles(void **state)
{
	const struct graft_health_engine *containerd;
	char path[64];

	fixture_write(fixture, "/etc/containerd/config.toml", "imports = [\"/d/*\", \"/nowhere/*\"]\n");
	for (int i = 0; i < 300; i++) {
		(void)snprintf(path, sizeof(path), "/d/%03d.toml", i);
		fixture_write(fixture, path, "imports = [\"/etc/containerd/config.toml\", \"/d/*\"]\n");
	}
	containerd = look("containerd");
	assert_int_equal(containerd->n_files, 256);
}

static void test_kubernetes(void **state)
{
	const struct graft_health_engine *engine;

	fixture_write(fixture, "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
		      "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.\"nvidia\".options]\n"
		      "BinaryName = \"/usr/bin/x\"\n");
	fixture_write(fixture, "/var/snap/microk8s/current/args/containerd.toml", "version = 2\n");
	process("6", "k3s-server", 0, 100);
	engine = look("k3s");
	assert_true(engine->running);
	assert_int_equal(engine->n_runtimes, 1);
	assert_true(health->kubernetes);
	assert_non_null(look("microk8s"));
	assert_null(look("rke2"));
}

/* Nodes without the control plane have another process, and another unit. */
static void test_kubernetes_agents(void **state)
{
	const struct graft_health_engine *engine;

	(void)state;
	fixture_write(fixture, "/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "version = 2\n");
	fixture_write(fixture, "/var/lib/rancher/rke2/agent/etc/containerd/config.toml", "version = 2\n");
	process("6", "k3s-agent", 0, 100);
	options.look_at_cluster = true;
	engine = look("k3s");
	options.look_at_cluster = false;
	assert_true(engine->running);
	assert_string_equal(engine->unit, "k3s-agent");
	assert_true(health->kubernetes);
	assert_true(health->cluster.running);
	assert_string_equal(look("rke2")->unit, "rke2-agent");
	fixture_write(fixture, "/var/lib/rancher/k3s/server/token", "");
	fixture_write(fixture, "/var/lib/rancher/rke2/server/token", "");
	assert_null(look("k3s")->unit);
	assert_string_equal(look("rke2")->unit, "rke2-server");
}

/* --- CRI-O and Podman --- */

static void test_crio(void **state)
{
	const struct graft_health_engine *crio;

	program(SHIM);
	program(HOOK);
	fixture_write(fixture, "/etc/crio/crio.conf",
		      "[crio.runtime]\ndefault_runtime = \"runc\"\nhooks_dir = [\"/opt/hooks\", "
		      "\"/etc/containers/oci/hooks.d\"]\ncdi_spec_dirs = [\"/opt/cdi\"]\n");
	fixture_write(
	    fixture, "/etc/crio/crio.conf.d/99-nvidia.toml",
	    "[crio.runtime]\ndefault_runtime = \"nvidia\"\n[crio.runtime.runtimes.nvidia]\nruntime_path = \"" SHIM
	    "\"\n[crio.runtime.runtimes.kata]\nruntime_path = \"/x\"\n");
	fixture_write(fixture, "/opt/hooks/a.json", "{\"hook\": {\"path\": \"" HOOK "\"}}");
	fixture_write(fixture, "/etc/containers/oci/hooks.d/b.json", "{\"hook\": {\"path\": \"/opt/nvidia-hook\"}}");
	fixture_write(fixture, "/etc/containers/oci/hooks.d/c.json", "{\"hook\": {\"path\": \"/usr/bin/other\"}}");
	fixture_write(fixture, "/etc/containers/oci/hooks.d/d.json", "{");
	fixture_write(fixture, "/etc/containers/oci/hooks.d/e.txt", "{");
	crio = look("cri-o");
	assert_int_equal(crio->n_runtimes, 1);
	assert_true(crio->runtimes[0].found);
	assert_string_equal(crio->default_runtime, "nvidia");
	assert_string_equal(crio->cdi_directories[0], "/opt/cdi");
	assert_int_equal(crio->n_hooks, 2);
	assert_string_equal(crio->hooks[0].path, HOOK);
	assert_true(crio->hooks[0].found);
	assert_false(crio->hooks[1].found);
	assert_non_null(find_file(crio, "/etc/containers/oci/hooks.d/d.json")->problem);
	fixture_write(fixture, "/etc/crio/crio.conf.d/x", "nonsense");
	crio = look("cri-o");
	assert_non_null(find_file(crio, "/etc/crio/crio.conf.d/x")->problem);
}

static void test_podman(void **state)
{
	const struct graft_health_engine *podman;

	fixture_write(fixture, "/etc/containers/containers.conf",
		      "[engine.runtimes]\nnvidia = [\"/opt/a\", \"" SHIM "\"]\n");
	assert_null(look("podman"));
	program("/usr/bin/podman");
	program(SHIM);
	fixture_write(fixture, "/etc/containers/containers.conf.d/a.conf", "[engine]\nruntime = \"nvidia\"\n");
	fixture_write(fixture, "/etc/containers/containers.conf.d/b.txt", "nonsense");
	fixture_write(fixture, "/home/u/.config/containers/containers.conf", "[engine.runtimes]\nnvidia2 = []\n");
	podman = look("podman");
	assert_false(podman->rootless);
	assert_int_equal(podman->n_runtimes, 1);
	assert_string_equal(podman->runtimes[0].path, SHIM);
	assert_true(podman->runtimes[0].found);
	assert_string_equal(podman->default_runtime, "nvidia");
	fixture_write(fixture, "/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
	options.home = "/home/u";
	podman = look("podman");
	assert_true(podman->rootless);
	assert_int_equal(podman->n_runtimes, 2);
	assert_null(podman->runtimes[1].path);
}

/* --- what a daemon says --- */

#define SOCKET "/run/docker.sock"
#define HEAD   "HTTP/1.0 200 OK\r\n\r\n"

/* Listens below the root, as dockerd would. Returns the descriptor. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fixture_write(fixture, path, "");
	fixture_remove(fixture, path);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s%s", fixture->root, path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* Answers one request with `answer`; NULL: never. The exit status is 0 if the request was the one expected. */
static pid_t serve(int listener, const char *answer)
{
	char request[256] = "";
	pid_t pid = fork();
	int fd;

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (read(fd, request, sizeof(request) - 1) < 0)
		_exit(2);
	if (!answer)
		(void)pause();
	else if (write(fd, answer, strlen(answer)) != (ssize_t)strlen(answer))
		_exit(3);
	_exit(strcmp(request, "GET /info HTTP/1.0\r\nHost: docker\r\n\r\n") == 0 ? 0 : 1);
}

static const struct graft_health_engine *ask(const char *answer)
{
	int listener = listen_at(SOCKET), status = -1;
	const struct graft_health_engine *docker;
	pid_t pid = serve(listener, answer);

	/* On a loaded machine only the daemon that never answers may run into the limit. */
	options.daemon_timeout_ms = answer ? 60000 : 0;

	docker = look("docker");
	if (!answer)
		(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (answer)
		assert_int_equal(status, 0);
	(void)close(listener);
	fixture_remove(fixture, SOCKET);
	return docker;
}

static void test_docker_answers(void **state)
{
	const struct graft_health_engine *docker;

	options.ask_daemons = true;
	program("/usr/bin/dockerd");
	program(SHIM);
	process("77", "dockerd", 0, 500);
	docker = ask(HEAD
		     "{\"ServerVersion\": \"28.3.0\", \"DefaultRuntime\": \"nvidia\", \"CDISpecDirs\": [\"/etc/cdi\"],"
		     " \"Runtimes\": {\"runc\": {\"path\": \"runc\"},"
		     " \"nvidia\": {\"path\": \"nvidia-container-runtime\"}}}");
	assert_true(docker->answer.asked);
	assert_null(docker->answer.problem);
	assert_string_equal(docker->answer.socket, SOCKET);
	assert_string_equal(docker->version, "28.3.0");
	assert_string_equal(docker->answer.default_runtime, "nvidia");
	assert_int_equal(docker->answer.n_runtimes, 1);
	assert_string_equal(docker->answer.runtimes[0].name, "nvidia");
	assert_string_equal(docker->answer.runtimes[0].file, SOCKET);
	assert_true(docker->answer.runtimes[0].found);
	assert_int_equal(docker->answer.n_cdi_directories, 1);
	/* Its files are read all the same. */
	assert_int_equal(docker->n_runtimes, 0);
}

static void test_docker_refuses(void **state)
{
	static const struct {
		const char *answer, *problem;
	} cases[] = {
		{ "HTTP/1.0 403 Forbidden\r\n\r\n", "it answers 'HTTP/1.0 403 Forbidden'" },
		{ "", "its answer is not HTTP" },
		{ HEAD "{\"ServerVersion\": ", "its answer: line 1, column 19: unexpected end" },
		{ NULL, "no answer within 3 s" },
	};
	const struct graft_health_engine *docker;

	options.ask_daemons = true;
	process("77", "dockerd", 0, 500);
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		docker = ask(cases[i].answer);
		assert_true(docker->answer.asked);
		assert_string_equal(docker->answer.problem, cases[i].problem);
		assert_int_equal(docker->answer.n_runtimes, 0);
	}
	/* The socket is missing; it is another file; no daemon listens. */
	assert_string_equal(look("docker")->answer.problem, "No such file or directory");
	fixture_write(fixture, SOCKET, "file");
	assert_string_equal(look("docker")->answer.problem, "Socket operation on non-socket");
	fixture_remove(fixture, SOCKET);
	(void)close(listen_at(SOCKET));
	assert_string_equal(look("docker")->answer.problem, "Connection refused");
}

/* An answer without an end is given up at the limit of its size. */
static void test_docker_never_stops(void **state)
{
	static char answer[(5 << 20) + 1];
	const struct graft_health_engine *docker;
	int listener, status;
	pid_t pid;

	options.ask_daemons = true;
	process("77", "dockerd", 0, 500);
	memset(answer, ' ', sizeof(answer) - 1);
	memcpy(answer, HEAD, strlen(HEAD));
	options.daemon_timeout_ms = 60000;
	listener = listen_at(SOCKET);
	pid = serve(listener, answer);
	docker = look("docker");
	(void)waitpid(pid, &status, 0);
	(void)close(listener);
	assert_string_equal(docker->answer.problem, "File too large");
}

static void test_docker_is_not_asked(void **state)
{
	static const char hosts[] = "dockerd\0-H\0fd://\0--host=unix:///srv/d.sock\0-H\0tcp://0.0.0.0:2375\0";
	int listener = listen_at(SOCKET);

	program("/usr/bin/dockerd");
	/* Without being allowed to; and a daemon that does not run would be started by its socket. */
	process("77", "dockerd", 0, 500);
	assert_false(look("docker")->answer.asked);
	options.ask_daemons = true;
	fixture_remove(fixture, "/proc/77/comm");
	assert_false(look("docker")->answer.asked);
	(void)close(listener);
	/* Its options say where. */
	process("77", "dockerd", 0, 500);
	fixture_write_bytes(fixture, "/proc/77/cmdline", hosts, sizeof(hosts) - 1);
	assert_string_equal(look("docker")->answer.socket, "/srv/d.sock");
	fixture_remove(fixture, "/proc/77/cmdline");
	fixture_write(fixture, "/etc/docker/daemon.json", "{\"hosts\": [\"fd://\", \"unix:///srv/e.sock\", 5]}");
	assert_string_equal(look("docker")->answer.socket, "/srv/e.sock");
	process("78", "dockerd", 1000, 500);
	assert_string_equal(look("docker (rootless, uid 1000)")->answer.socket, "/run/user/1000/docker.sock");
}

/* --- versions --- */

static void test_versions(void **state)
{
	program("/usr/bin/podman");
	program("/usr/bin/dockerd");
	program("/usr/bin/containerd");
	program("/usr/bin/crio");
	assert_null(look("podman")->version);
	fixture_write(
	    fixture, "/var/lib/dpkg/status",
	    "Package: podman-docker\nStatus: install ok installed\nVersion: 1\n\n"
	    "Package: docker-ce\nStatus: deinstall ok config-files\nVersion: 5:19.3\n\n"
	    "Package: docker.io\nStatus: install ok installed\nDescription: x\n Version: 7\nVersion: 20.10.24+dfsg1\n\n"
	    "Package: containerd.io\nStatus: install ok installed\n\n"
	    "Package: cri-o\nStatus: install ok installed\nVersion: 5:1.31.0-1\n\n"
	    "Package: podman\nStatus: install ok installed\nVersion: 4.3.1+ds1-8");
	assert_string_equal(look("podman")->version, "4.3.1+ds1-8");
	assert_string_equal(look("docker")->version, "20.10.24+dfsg1");
	assert_string_equal(look("cri-o")->version, "1.31.0-1");
	assert_null(look("containerd")->version);
	fixture_remove(fixture, "/var/lib/dpkg/status");
	fixture_write(fixture, "/lib/apk/db/installed", "C:Q1\nP:podman\nV:5.2.0-r1\n\nP:docker\nV:27.3.1-r0\n\n");
	assert_string_equal(look("podman")->version, "5.2.0-r1");
	assert_string_equal(look("docker")->version, "27.3.1-r0");
	fixture_remove(fixture, "/lib/apk/db/installed");
	fixture_write(fixture, "/var/lib/dpkg/status", "");
	assert_null(look("podman")->version);
}

/* Without a package's version, the program says which CDI library it has. */
static void test_libraries_of_programs(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "dep\ttags.cncf.io/container-device-interface\tv0.8.0\th1:b=\n", "0.8.0" },
		{ "dep\tgithub.com/container-orchestrated-devices/container-device-interface\tv0.6.2\th1:b=\n",
		  "0.6.2" },
		{ "path\tgithub.com/containers/podman/cmd/podman\n", NULL },
	};
	const struct graft_health_engine *engine;

	program("/usr/bin/podman");
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct go_program go = make_go_program(cases[i].text);

		fixture_write_bytes(fixture, "/usr/bin/podman", (const char *)&go, sizeof(go));
		engine = look("podman");
		assert_null(engine->version);
		if (cases[i].want)
			assert_string_equal(engine->cdi_library, cases[i].want);
		else
			assert_null(engine->cdi_library);
	}
	fixture_write(fixture, "/var/lib/dpkg/status",
		      "Package: podman\nStatus: install ok installed\nVersion: 4.3.1\n");
	assert_null(look("podman")->cdi_library);
}

/* Who is the oldest reader does not depend on how much of the host was examined. */
static void test_readers_alone(void **state)
{
	static const struct {
		const char *docker, *containerd, *podman;
		const char *name; /* of the oldest reader; NULL = no limit on the version */
		size_t n_files;   /* configuration that was read for it */
	} cases[] = {
		{ "20.10.24", "1.6.20", "4.3.1+ds1-8", "podman", 0 }, { "20.10.24", "1.6.20", "5.4.2", NULL, 0 },
		{ "5:25.0.1-1", "1.6.20", "5.4.2", "docker", 1 },     { "5:28.2.0-1", "1.7.2", "5.4.2", NULL, 1 },
		{ "5:28.2.0-1", "2.0.1", "4.9.3", "podman", 0 },
	};

	program("/usr/bin/podman");
	program("/usr/bin/dockerd");
	program("/usr/bin/containerd");
	process("77", "dockerd", 1000, 500);
	fixture_write(fixture, "/etc/docker/daemon.json", "{\"features\": {\"cdi\": true}}");
	fixture_write(fixture, "/etc/containerd/config.toml", "version = 2\n");
	fixture_write(fixture, "/etc/containers/containers.conf", "[engine]\n");
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const struct graft_health_engine *of_all = NULL, *of_readers = NULL;
		const struct graft_cdi_reader *reader, *again;
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_health *alone = NULL;
		size_t n_files = 0;
		char text[512];

		(void)snprintf(text, sizeof(text),
			       "Package: docker.io\nStatus: install ok installed\nVersion: %s\n\n"
			       "Package: containerd\nStatus: install ok installed\nVersion: %s\n\n"
			       "Package: podman\nStatus: install ok installed\nVersion: %s\n",
			       cases[i].docker, cases[i].containerd, cases[i].podman);
		fixture_write(fixture, "/var/lib/dpkg/status", text);
		(void)look("podman");
		assert_int_equal(graft_health_collect_readers(&options, &alone, &err), 0);
		reader = graft_doctor_oldest_reader(health, &of_all);
		again = graft_doctor_oldest_reader(alone, &of_readers);
		assert_ptr_equal(reader, again);
		assert_int_equal(reader != NULL, cases[i].name != NULL);
		if (cases[i].name) {
			assert_string_equal(of_all->name, cases[i].name);
			assert_string_equal(of_readers->name, cases[i].name);
		}
		for (size_t k = 0; k < alone->n_engines; k++)
			n_files += alone->engines[k].n_files;
		assert_int_equal(n_files, cases[i].n_files);
		assert_int_equal(alone->n_engines, 3);
		assert_int_equal(alone->n_programs, 0);
		(void)graft_health_free(alone);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(docker),
		TEST(other_mounts),
		TEST(docker_elsewhere),
		TEST(docker_that_nobody_understands),
		TEST(docker_of_others),
		TEST(rootless_docker),
		TEST(containerd),
		TEST(containerd_forgets),
		TEST(containerd_that_nobody_understands),
		TEST(containerd_in_circles),
		TEST(kubernetes),
		TEST(kubernetes_agents),
		TEST(crio),
		TEST(podman),
		TEST(docker_answers),
		TEST(docker_refuses),
		TEST(docker_never_stops),
		TEST(docker_is_not_asked),
		TEST(versions),
		TEST(libraries_of_programs),
		TEST(readers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
