/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One container of a host: found in the files of each engine, by each kind of word; what its files
 * say that it asked for; and what is made of that, and of what it has.
 */
#include <stdio.h>
#include <string.h>

#include "../arena.h"
#include "../host/fixture.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "doctor/container_case.h"

#define DOCKER "/var/lib/docker/containers/"
#define WEB    "1111aaaa11112222333344445555666677778888"
#define BATCH  "1111bbbb11112222333344445555666677778888"
#define TASKS  "/run/containerd/io.containerd.runtime.v2.task/"
#define PODMAN "/var/lib/containers/storage/overlay-containers"
#define IMAGE  "\"PATH=/bin\""

static struct fixture *fixture;
static struct graft_health health;
static struct graft_config config;
static struct graft_case one;

static int setup(void **state)
{
	const struct graft_config_host host = { .suse = false };

	if (arena_setup(state) < 0 || fixture_set_up(state) < 0)
		return -1;
	fixture = *state;
	health = (struct graft_health){ .inventory = { .platform = GRAFT_PLATFORM_NATIVE } };
	health.inventory.proc_driver_nvidia = true;
	health.inventory.driver_version.value = "550.54.14";
	fixture_directory(fixture, "/proc");
	return graft_config_defaults(&host, arena, &config, NULL);
}

static int teardown(void **state)
{
	(void)arena_teardown(state);
	return fixture_tear_down(state);
}

static int collect(const char *word, struct graft_error *err)
{
	const struct graft_case_options options = {
		.host_root = fixture->root, .word = word, .health = &health, .config = &config
	};

	if (graft_case_collect(&options, arena, &one, err) < 0)
		return -1;
	return graft_case_judge(&health, arena, &one, err);
}

static void look(const char *word)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (collect(word, &err) < 0)
		fail_msg("%s: %s", word, err.msg);
}

static void expect_error(const char *word, enum graft_status status, const char *text)
{
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(collect(word, &err), -1);
	assert_string_equal(err.msg, text);
	assert_int_equal(err.status, status);
}

static void write_file(const char *directory, const char *name, const char *text)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	fixture_write(fixture, path, text);
}

/* A container as Docker keeps it. */
static void docker(const char *id, const char *name, const char *pid, const char *env, const char *host)
{
	char directory[256], text[1024];

	(void)snprintf(directory, sizeof(directory), DOCKER "%s", id);
	(void)snprintf(text, sizeof(text),
		       "{\"ID\": \"%s\", \"Name\": \"/%s\", \"State\": {\"Pid\": %s}, \"Config\": {\"Env\": [%s]}}", id,
		       name, pid, env);
	write_file(directory, "config.v2.json", text);
	write_file(directory, "hostconfig.json", host);
	(void)snprintf(text, sizeof(text), "/proc/%s/comm", pid);
	fixture_write(fixture, text, "sleep\n");
}

/* Its bundle. */
static void bundle(const char *directory, const char *env, const char *rest)
{
	char text[2048];

	(void)snprintf(text, sizeof(text),
		       "{\"ociVersion\": \"1.0.2\", \"process\": {\"env\": [%s]}, \"root\": {\"path\": \"rootfs\"}%s}",
		       env, rest);
	write_file(directory, "config.json", text);
}

static void process(const char *pid, const char *name, const char *words, size_t length)
{
	char path[64], text[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	(void)snprintf(text, sizeof(text), "%s\n", name);
	fixture_write(fixture, path, text);
	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	(void)snprintf(text, sizeof(text), "Name:\t%s\nNSpid:\t%s\n", name, pid);
	fixture_write(fixture, path, text);
	(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	fixture_write_bytes(fixture, path, words, length);
}

/* ---- found ---- */

static void test_docker(void **state)
{
	static const char *const words[] = { WEB, "web", "1111aa", "4242", TASKS "moby/" WEB, TASKS "moby/" WEB "/" };

	docker(WEB, "web", "4242", IMAGE, "{\"Runtime\": \"runc\"}");
	docker(BATCH, "batch", "0", IMAGE, "{}");
	bundle(TASKS "moby/" WEB, IMAGE, "");
	for (size_t i = 0; i < GRAFT_COUNT(words); i++) {
		look(words[i]);
		assert_string_equal(one.id, WEB);
		assert_string_equal(one.name, "web");
		assert_int_equal(one.engine, GRAFT_KEEPER_DOCKER);
		assert_int_equal(one.pid, 4242);
		assert_string_equal(one.bundle, TASKS "moby/" WEB);
		assert_string_equal(one.runtime, "runc");
	}
	look("batch");
	assert_int_equal(one.pid, 0);
	assert_null(one.bundle);
	expect_error("1111", GRAFT_INVALID,
		     "'1111' may be any of 2 containers: 1111aaaa1111 'web' (docker), 1111bbbb1111 'batch' (docker)");
	expect_error("wbe", GRAFT_NOT_FOUND, "no container 'wbe' (did you mean 'web'?)");
	expect_error("elephant", GRAFT_NOT_FOUND, "no container 'elephant' among the 2 that can be seen");
	expect_error("", GRAFT_NOT_FOUND, "no container '' among the 2 that can be seen");
	expect_error("77", GRAFT_NOT_FOUND, "no container and no process 77");
	expect_error("/nowhere", GRAFT_NOT_FOUND, "no bundle at /nowhere");
	expect_error("/proc", GRAFT_NOT_FOUND, "/proc is not a bundle: it has no config.json");
}

static void test_docker_elsewhere(void **state)
{
	static const char daemon[] = "/usr/bin/dockerd\0--data-root=/srv/docker";

	process("7", "dockerd", daemon, sizeof(daemon));
	fixture_write(fixture, "/srv/docker/containers/abc/config.v2.json", "{\"Name\": \"/far\"}");
	look("far");
	assert_string_equal(one.id, "abc");
	/* A process of a container with the name of a daemon is not a daemon. */
	fixture_write(fixture, "/proc/7/status", "Name:\tdockerd\nNSpid:\t7\t1\n");
	expect_error("far", GRAFT_NOT_FOUND, "no container 'far' among the 0 that can be seen");
}

static void test_podman(void **state)
{
	static const char conmon[] = "/usr/bin/conmon\0-c\0cccc\0-u\0cccc\0-r\0/usr/bin/crun\0-b\0/far/userdata\0-p\0"
				     "/far/pidfile\0-n\0job\0--exit-command\0/usr/bin/podman";

	fixture_write(
	    fixture, PODMAN "/containers.json",
	    "[{\"id\": \"dddd\", \"names\": [\"db\"], \"metadata\": \"{}\"},"
	    " {\"id\": \"eeee\", \"names\": [\"k8s_a_b\"], \"metadata\": \"{\\\"pod-name\\\": \\\"b\\\"}\"}, {}, 7]");
	bundle(PODMAN "/dddd/userdata", IMAGE, "");
	fixture_write(fixture, PODMAN "/dddd/userdata/pidfile", "88\n");
	fixture_write(fixture, "/proc/88/comm", "x\n");
	process("9", "conmon", conmon, sizeof(conmon));
	bundle("/far/userdata", IMAGE, "");
	look("db");
	assert_int_equal(one.engine, GRAFT_KEEPER_PODMAN);
	assert_int_equal(one.pid, 88);
	assert_string_equal(one.bundle, PODMAN "/dddd/userdata");
	look("k8s_a_b");
	assert_int_equal(one.engine, GRAFT_KEEPER_CRIO);
	look("job");
	assert_int_equal(one.engine, GRAFT_KEEPER_PODMAN);
	assert_string_equal(one.id, "cccc");
	assert_string_equal(one.runtime, "/usr/bin/crun");
	assert_string_equal(one.bundle, "/far/userdata");
}

static void test_low_level(void **state)
{
	fixture_write(
	    fixture, "/run/runc/one/state.json",
	    "{\"id\": \"one\", \"init_process_pid\": 5, \"config\": {\"labels\": [\"x=y\", \"bundle=/srv/one\"]}}");
	fixture_write(fixture, "/run/crun/two/status", "{\"pid\": 6, \"bundle\": \"/srv/two\"}");
	fixture_write(fixture, "/run/user/1000/crun/three/status", "{\"pid\": 6}");
	fixture_write(fixture, "/run/runc/damaged/state.json", "{");
	fixture_write(fixture, "/proc/5/comm", "x\n");
	bundle("/srv/one", IMAGE, "");
	bundle("/srv/other", IMAGE, "");
	look("one");
	assert_int_equal(one.engine, GRAFT_KEEPER_RUNC);
	assert_int_equal(one.pid, 5);
	assert_string_equal(one.bundle, "/srv/one");
	look("two");
	assert_int_equal(one.engine, GRAFT_KEEPER_CRUN);
	/* There is no such process now. */
	assert_int_equal(one.pid, 0);
	look("three");
	look("/srv/other");
	assert_int_equal(one.engine, GRAFT_KEEPER_UNKNOWN);
	expect_error("damaged", GRAFT_NOT_FOUND, "no container 'damaged' among the 3 that can be seen");
}

static void test_kubernetes(void **state)
{
	bundle("/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/ffff", IMAGE,
	       ", \"annotations\": {\"io.kubernetes.cri.container-type\": \"container\", "
	       "\"io.kubernetes.cri.container-name\": \"app\", \"io.kubernetes.cri.sandbox-name\": \"shop-1\"}");
	bundle("/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/eeee", IMAGE,
	       ", \"annotations\": {\"io.kubernetes.cri.container-type\": \"sandbox\", "
	       "\"io.kubernetes.cri.sandbox-name\": \"shop-1\"}");
	look("shop-1/app");
	assert_int_equal(one.engine, GRAFT_KEEPER_KUBERNETES);
	assert_string_equal(one.pod, "shop-1");
	look("app");
	/* Its sandbox has no name. */
	look("shop-1");
	assert_string_equal(one.id, "ffff");
	expect_error("shop-2/app", GRAFT_NOT_FOUND, "no container 'shop-2/app' among the 2 that can be seen");
}

/* ---- asked, and the verdict about that ---- */

#define VISIBLE(value) IMAGE ", \"NVIDIA_VISIBLE_DEVICES=" value "\""
#define HOOK                                                                                                     \
	", \"hooks\": {\"prestart\": [{\"path\": \"/usr/bin/nvidia-container-runtime-hook\", \"args\": [\"x\", " \
	"\"prestart\"]}]}"
#define CLI                                                                                                 \
	", \"hooks\": {\"createRuntime\": [{\"path\": \"/usr/bin/containerd\", \"args\": [\"containerd\", " \
	"\"oci-hook\", "                                                                                    \
	"\"--\", \"/usr/bin/nvidia-container-cli\", \"configure\", \"--device=0\", \"--device=3\"]}]}"
#define NODES  ", \"linux\": {\"devices\": [{\"path\": \"/dev/null\"}, {\"path\": \"/dev/nvidia0\"}]}"
#define DRIVER NODES ", \"mounts\": [{\"destination\": \"/usr/lib64/libcuda.so.550.54.14\"}]"

static void test_requests(void **state)
{
	static const struct {
		const char *env, *rest, *docker_env, *host;
		enum graft_case_way way;
		enum graft_level verdict;
		const char *summary, *mode;
	} rows[] = {
		{ IMAGE, "", IMAGE, "{\"Runtime\": \"runc\"}", GRAFT_CASE_WAY_NONE, GRAFT_LEVEL_WARNING,
		  "it never asked for a GPU", NULL },
		{ VISIBLE("void"), "", IMAGE, "{\"Runtime\": \"runc\"}", GRAFT_CASE_WAY_NONE, GRAFT_LEVEL_WARNING,
		  "it asks for no GPU (NVIDIA_VISIBLE_DEVICES=void)", NULL },
		{ VISIBLE("all"), "", VISIBLE("all"), "{\"Runtime\": \"runc\"}", GRAFT_CASE_WAY_NONE,
		  GRAFT_LEVEL_BROKEN,
		  "nothing read its request for GPUs: runc created it, without a hook or CDI device", NULL },
		{ VISIBLE("none"), HOOK, IMAGE, "{}", GRAFT_CASE_WAY_HOOK, GRAFT_LEVEL_WARNING,
		  "it asks for the driver without a GPU (NVIDIA_VISIBLE_DEVICES=none)", "legacy" },
		{ VISIBLE("all"), HOOK, IMAGE,
		  "{\"DeviceRequests\": [{\"Driver\": \"\", \"Count\": -1, \"Capabilities\": [[\"gpu\"]]}]}",
		  GRAFT_CASE_WAY_HOOK, GRAFT_LEVEL_UNKNOWN,
		  "its process 4242 cannot be examined: it belongs to another system", "legacy" },
		{ IMAGE, CLI, IMAGE, "{}", GRAFT_CASE_WAY_HOOK, GRAFT_LEVEL_UNKNOWN,
		  "its process 4242 cannot be examined: it belongs to another system", "legacy" },
		{ VISIBLE("void"), DRIVER, VISIBLE("1"), "{\"Runtime\": \"nvidia\"}", GRAFT_CASE_WAY_RUNTIME,
		  GRAFT_LEVEL_UNKNOWN, "its process 4242 cannot be examined: it belongs to another system", "jit-cdi" },
		{ VISIBLE("void"), DRIVER, VISIBLE("nvidia.com/gpu=0"), "{\"Runtime\": \"nvidia\"}",
		  GRAFT_CASE_WAY_RUNTIME, GRAFT_LEVEL_UNKNOWN,
		  "its process 4242 cannot be examined: it belongs to another system", "cdi" },
		{ VISIBLE("void"), DRIVER, IMAGE,
		  "{\"Runtime\": \"runc\", \"DeviceRequests\": [{\"Driver\": \"cdi\", \"DeviceIDs\": "
		  "[\"nvidia.com/gpu=0\"]}]}",
		  GRAFT_CASE_WAY_CDI, GRAFT_LEVEL_UNKNOWN,
		  "its process 4242 cannot be examined: it belongs to another system", NULL },
		{ IMAGE, NODES, IMAGE, "{\"Runtime\": \"runc\", \"Devices\": [{\"PathOnHost\": \"/dev/nvidia0\"}]}",
		  GRAFT_CASE_WAY_DEVICES, GRAFT_LEVEL_WARNING,
		  "it has only device nodes, such as /dev/nvidia0, and nothing else of the driver", NULL },
		{ VISIBLE("other.com/gpu=0"), "", IMAGE, "{\"Runtime\": \"nvidia\"}", GRAFT_CASE_WAY_RUNTIME,
		  GRAFT_LEVEL_BROKEN, NULL, "jit-cdi" },
	};

	(void)teardown(state);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		(void)setup(state);
		docker(WEB, "web", "4242", rows[i].docker_env, rows[i].host);
		bundle(TASKS "moby/" WEB, rows[i].env, rows[i].rest);
		look("web");
		if (one.way != rows[i].way || one.verdict != rows[i].verdict)
			fail_msg("row %zu: way %s, verdict %s: %s", i, graft_case_way_names[one.way],
				 graft_level_names[one.verdict], one.summary);
		if (rows[i].summary)
			assert_string_equal(one.summary, rows[i].summary);
		if (rows[i].mode)
			assert_string_equal(one.mode, rows[i].mode);
		else
			assert_null(one.mode);
		(void)teardown(state);
	}
	(void)setup(state);
}

static void test_details(void **state)
{
	docker(WEB, "web", "4242", IMAGE,
	       "{\"DeviceRequests\": [{\"DeviceIDs\": [\"0\", \"GPU-1\"]}, {\"Count\": 0}]}");
	bundle(TASKS "moby/" WEB, VISIBLE("0,GPU-1") ", \"NVIDIA_X=1\"",
	       CLI ", \"annotations\": {\"cdi.k8s.io/a\": \"nvidia.com/gpu=0\", \"b\": \"c\"},"
		   "\"mounts\": [{\"destination\": \"/var/run/nvidia-container-devices/0\"}, {}]");
	look("web");
	assert_int_equal(one.asked.n_options, 1);
	assert_string_equal(one.asked.options[0], "--gpus device=0,GPU-1");
	assert_int_equal(one.asked.n_variables, 2);
	assert_string_equal(one.asked.variables[1], "NVIDIA_X=1");
	assert_int_equal(one.asked.n_annotations, 1);
	assert_string_equal(one.asked.annotations[0], "cdi.k8s.io/a=nvidia.com/gpu=0");
	assert_int_equal(one.asked.n_mounts, 1);
	assert_int_equal(one.asked.n_hooks, 1);
	assert_string_equal(one.asked.hooks[0], "createRuntime /usr/bin/containerd");
	assert_string_equal(one.asked.devices[0], "0");
	assert_string_equal(one.asked.devices[1], "3");

	/* An environment that does not count. */
	config.accept_envvar_unprivileged = false;
	bundle(TASKS "moby/" WEB, VISIBLE("all"), "");
	docker(WEB, "web", "4242", IMAGE, "{}");
	look("web");
	assert_int_equal(one.verdict, GRAFT_LEVEL_BROKEN);
	assert_string_equal(
	    one.summary,
	    "it asks through NVIDIA_VISIBLE_DEVICES=all, which config.toml allows only for privileged containers");

	/* Its configuration cannot be understood. */
	write_file(TASKS "moby/" WEB, "config.json", "{");
	docker(WEB, "web", "0", "", "{}");
	look("web");
	assert_int_equal(one.verdict, GRAFT_LEVEL_UNKNOWN);
	assert_non_null(strstr(one.asked.problem, "config.json"));
}

/* ---- what it has ---- */

static bool has_cause(const char *cause)
{
	for (size_t i = 0; i < one.n_findings; i++) {
		if (strcmp(one.findings[i].cause, cause) == 0)
			return true;
	}
	return false;
}

static struct graft_case_node node(const char *path, uint32_t minor)
{
	return (struct graft_case_node){ .path = path,
					 .present = true,
					 .major = 195,
					 .minor = minor,
					 .on_host = true,
					 .host_major = 195,
					 .host_minor = minor,
					 .has_link = true,
					 .answer = GRAFT_ANSWER_ALLOWED,
					 .gpu = minor < 8 ? "GPU-1" : NULL };
}

static void test_verdicts(void **state)
{
	static const struct {
		const char *what;
		enum graft_level verdict;
		const char *summary;
	} rows[] = {
		{ "well", GRAFT_LEVEL_OK, "it has 1 GPU and may use it: GPU-1" },
		{ "denied", GRAFT_LEVEL_BROKEN,
		  "its device cgroup (v2) no longer lets it open /dev/nvidia0: its rules were rewritten, as by "
		  "'systemctl daemon-reload' where systemd does not know the devices, or they were never set" },
		{ "no-cgroups", GRAFT_LEVEL_BROKEN,
		  "its device cgroup (v2) does not let it open /dev/nvidia0: no-cgroups in config.toml keeps the hook "
		  "from allowing them" },
		{ "no-cgroups, but no hook", GRAFT_LEVEL_BROKEN,
		  "its device cgroup (v2) no longer lets it open /dev/nvidia0: its rules were rewritten, as by "
		  "'systemctl daemon-reload' where systemd does not know the devices, or they were never set" },
		{ "unknown", GRAFT_LEVEL_UNKNOWN,
		  "whether it may open its devices is not known: its device program cannot be read" },
		{ "hidden", GRAFT_LEVEL_UNKNOWN, "whether it may open its devices is not known: permission denied" },
		{ "no node", GRAFT_LEVEL_BROKEN, "it asked for GPUs and has no device node of the driver" },
		{ "missing", GRAFT_LEVEL_BROKEN, "/dev/nvidia0 is in its configuration, but not in the container" },
		{ "gone", GRAFT_LEVEL_BROKEN,
		  "/dev/nvidia0 is no longer on the host: the GPU, or the MIG instance, is gone" },
		{ "other number", GRAFT_LEVEL_BROKEN,
		  "/dev/nvidia0 is device 195:0 in the container and 235:0 on the host: the driver was loaded again "
		  "since it "
		  "was started" },
		{ "driver", GRAFT_LEVEL_BROKEN, "the host's driver is not loaded now" },
		{ "version", GRAFT_LEVEL_BROKEN,
		  "its libraries belong to driver 535.1.2 and the loaded kernel module is 550.54.14: they do not work "
		  "together "
		  "(driver/library version mismatch)" },
		{ "deleted", GRAFT_LEVEL_BROKEN,
		  "/usr/lib64/libcuda.so.550.54.14 is a file that the host no longer has: the driver was replaced "
		  "since it was "
		  "started" },
		{ "no library", GRAFT_LEVEL_WARNING,
		  "it has neither libcuda nor libnvidia-ml of the driver: its NVIDIA_DRIVER_CAPABILITIES does not ask "
		  "for them" },
		{ "not cached", GRAFT_LEVEL_WARNING,
		  "its loader does not find libcuda.so.1, which is mounted at /usr/lib64/libcuda.so.550.54.14: "
		  "/etc/ld.so.cache "
		  "does not have that name" },
		{ "not linked", GRAFT_LEVEL_WARNING,
		  "its loader does not find libcuda.so.1, which is mounted at /usr/lib64/libcuda.so.550.54.14: there "
		  "is no link "
		  "of that name beside it" },
		{ "damaged cache", GRAFT_LEVEL_WARNING, "its /etc/ld.so.cache cannot be used: it is damaged" },
		{ "unreadable cache", GRAFT_LEVEL_WARNING, "its /etc/ld.so.cache cannot be used: permission denied" },
		{ "not linked, no cache", GRAFT_LEVEL_WARNING,
		  "its loader does not find libcuda.so.1, which is mounted at /usr/lib64/libcuda.so.550.54.14: there "
		  "is no link "
		  "of that name beside it" },
		{ "no cache", GRAFT_LEVEL_OK, "it has 1 GPU and may use it: GPU-1" },
		{ "no link", GRAFT_LEVEL_WARNING,
		  "systemd keeps its device rules and does not know /dev/nvidia0 (no /dev/char/195:0 on the host): the "
		  "next "
		  "'systemctl daemon-reload' may take it away" },
		{ "unknown device", GRAFT_LEVEL_BROKEN, "this host has no device 'GPU-9'" },
		{ "lost", GRAFT_LEVEL_BROKEN,
		  "the GPU GPU-1 of /dev/nvidia0 no longer answers: it has fallen off the PCI bus" },
		{ "no CUDA", GRAFT_LEVEL_WARNING,
		  "it has no libcuda.so.1, because the host has none: nvidia-smi works in it, CUDA does not" },
		{ "no CUDA wanted", GRAFT_LEVEL_OK, "it has 1 GPU and may use it: GPU-1" },
		{ "no utility wanted", GRAFT_LEVEL_OK, "it has 1 GPU and may use it: GPU-1" },
		{ "no CUDA, but the host's", GRAFT_LEVEL_OK, "it has 1 GPU and may use it: GPU-1" },
		{ "not started", GRAFT_LEVEL_BROKEN, "it could not be started: nvml error: driver not loaded" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *what = rows[i].what, *devices[] = { "GPU-9" }, *hooks[] = { "prestart /x" };
		struct graft_case_node nodes[] = { node("/dev/nvidia0", 0), node("/dev/nvidiactl", 255) };
		struct graft_case_library library = { .path = "/usr/lib64/libcuda.so.550.54.14",
						      .version = "550.54.14",
						      .soname = "libcuda.so.1",
						      .linked = true,
						      .cached = true };
		struct graft_health_library cuda = { .soname = "libcuda.so.1", .file = "/usr/lib64/libcuda.so.550" };
		const char *utility = "NVIDIA_DRIVER_CAPABILITIES=utility";
		const char *compute = "NVIDIA_DRIVER_CAPABILITIES=compute";
		struct graft_gpu gpu = { .uuid = { "GPU-1", "x" }, .node = { .path = "/dev/nvidia0" } };

		one = (struct graft_case){ .version = GRAFT_CASE_VERSION,
					   .pid = 1,
					   .way = GRAFT_CASE_WAY_HOOK,
					   .mode = "legacy",
					   .driver_version = "550.54.14" };
		health.inventory.gpus = &gpu;
		health.inventory.n_gpus = 1;
		one.asked = (struct graft_case_request){ .known = true, .wants = true, .hooks = hooks, .n_hooks = 1 };
		one.got = (struct graft_case_got){ .known = true,
						   .nodes = nodes,
						   .n_nodes = 2,
						   .libraries = &library,
						   .n_libraries = 1,
						   .has_cache = true,
						   .cgroup_version = 2 };
		health.config.no_cgroups = strncmp(what, "no-cgroups", 10) == 0;
		if (strcmp(what, "no-cgroups, but no hook") == 0)
			one.way = GRAFT_CASE_WAY_RUNTIME;
		if (strcmp(what, "denied") == 0 || health.config.no_cgroups)
			nodes[0].answer = GRAFT_ANSWER_DENIED;
		else if (strcmp(what, "unknown") == 0)
			nodes[0].answer = GRAFT_ANSWER_UNKNOWN;
		else if (strcmp(what, "hidden") == 0)
			nodes[0].answer = GRAFT_ANSWER_UNKNOWN, one.got.cgroup_problem = "permission denied";
		else if (strcmp(what, "no node") == 0)
			one.got.n_nodes = 0;
		else if (strcmp(what, "missing") == 0)
			nodes[0].present = false;
		else if (strcmp(what, "gone") == 0)
			nodes[0].on_host = false;
		else if (strcmp(what, "other number") == 0)
			nodes[0].host_major = 235;
		else if (strcmp(what, "driver") == 0)
			one.driver_version = NULL;
		else if (strcmp(what, "version") == 0)
			library.version = "535.1.2";
		else if (strcmp(what, "deleted") == 0)
			library.deleted = true;
		else if (strcmp(what, "no library") == 0)
			one.got.n_libraries = 0;
		else if (strcmp(what, "not cached") == 0)
			library.cached = false;
		else if (strcmp(what, "not linked") == 0)
			library.linked = false;
		else if (strcmp(what, "damaged cache") == 0)
			library.cached = false, one.got.cache_problem = "it is damaged";
		else if (strcmp(what, "unreadable cache") == 0)
			library.cached = false, one.got.has_cache = false, one.got.cache_problem = "permission denied";
		else if (strcmp(what, "not linked, no cache") == 0)
			library.linked = library.cached = one.got.has_cache = false;
		else if (strcmp(what, "no cache") == 0)
			library.cached = one.got.has_cache = false;
		else if (strcmp(what, "no link") == 0)
			nodes[0].has_link = false, one.got.scope = true;
		else if (strcmp(what, "unknown device") == 0)
			one.asked.devices = devices, one.asked.n_devices = 1;
		else if (strcmp(what, "lost") == 0)
			nodes[0].gpu_lost = true;
		else if (strcmp(what, "not started") == 0)
			one.pid = 0, one.start_error = "nvml error: driver not loaded";
		if (strncmp(what, "no CUDA", 7) == 0)
			library.soname = "libnvidia-ml.so.1";
		if (strcmp(what, "no CUDA wanted") == 0)
			one.asked.variables = &utility, one.asked.n_variables = 1;
		health.loader.libraries = &cuda;
		health.loader.n_libraries = strcmp(what, "no CUDA, but the host's") == 0;
		if (strcmp(what, "no utility wanted") == 0)
			one.asked.variables = &compute, one.asked.n_variables = 1;
		assert_int_equal(graft_case_judge(&health, arena, &one, NULL), 0);
		assert_int_equal(has_cause("it has no CUDA: its NVIDIA_DRIVER_CAPABILITIES=utility does not ask for "
					   "compute"),
				 strcmp(what, "no CUDA wanted") == 0);
		assert_int_equal(has_cause("it has no nvidia-smi: its NVIDIA_DRIVER_CAPABILITIES=compute does not ask "
					   "for utility"),
				 strcmp(what, "no utility wanted") == 0);
		if (one.verdict != rows[i].verdict || strcmp(one.summary, rows[i].summary) != 0)
			fail_msg("%s: %s: %s", what, graft_level_names[one.verdict], one.summary);
		assert_true(one.verdict <= GRAFT_LEVEL_UNKNOWN || one.remedy);
	}
	health = (struct graft_health){ .inventory = { .platform = GRAFT_PLATFORM_NATIVE } };
}

/* A container that Docker could not start: its words, and the remedy for them. */
static void test_start_error(void **state)
{
	static const struct {
		const char *error, *remedy;
	} rows[] = {
		{ "hook: nvml error: driver/library version mismatch", "Reboot. 'nvidia-ctk doctor' checks the host." },
		{ "port is already allocated", "'nvidia-ctk doctor' checks the host." },
	};
	char text[512];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		(void)snprintf(text, sizeof(text),
			       "{\"ID\": \"" WEB "\", \"Name\": \"/web\", \"State\": {\"Pid\": 0, \"Error\": \"%s\"}, "
			       "\"Config\": {\"Env\": [" VISIBLE("all") "]}}",
			       rows[i].error);
		write_file(DOCKER WEB, "config.v2.json", text);
		write_file(DOCKER WEB, "hostconfig.json", "{\"Runtime\": \"nvidia\"}");
		look("web");
		assert_int_equal(one.verdict, GRAFT_LEVEL_BROKEN);
		assert_string_equal(one.start_error, rows[i].error);
		assert_string_equal(one.remedy, rows[i].remedy);
	}
	/* What was wrong before it was started again does not count. */
	docker(WEB, "web", "4242", VISIBLE("all"), "{\"Runtime\": \"nvidia\"}");
	look("web");
	assert_null(one.start_error);
}

/* The JSON form is read back as it was written. */
static void test_json(void **state)
{
	struct graft_buffer first = { .max = 0 }, second = { .max = 0 };
	struct graft_case again;

	docker(WEB, "web", "4242", VISIBLE("all"), "{\"Runtime\": \"runc\"}");
	bundle(TASKS "moby/" WEB, VISIBLE("all"), HOOK);
	look("web");
	graft_record_write(&graft_case_record, &one, &first);
	memset(&again, 0, sizeof(again));
	assert_int_equal(
	    graft_record_read(&graft_case_record, graft_buffer_text(&first), first.length, arena, &again, NULL), 0);
	graft_record_write(&graft_case_record, &again, &second);
	assert_string_equal(graft_buffer_text(&first), graft_buffer_text(&second));
	graft_buffer_done(&first);
	graft_buffer_done(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_docker, setup, teardown),
		cmocka_unit_test_setup_teardown(test_docker_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_podman, setup, teardown),
		cmocka_unit_test_setup_teardown(test_low_level, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kubernetes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_details, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verdicts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_start_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
	};

	return cmocka_run_group_tests_name("doctor_container", tests, NULL, NULL);
}
