/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_container: what the facts of one container mean, in the order of the chain from its request
 * to its loader. The first of the worst findings is the verdict. Looks at nothing.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "doctor/container_case.h"
#include "doctor/messages.h"
#include "plan/select.h"
#include "request/request.h"

#define TEXT_MAX  1024
#define NAMES_MAX 8u

struct judge {
	const struct graft_health *health;
	struct graft_arena *arena;
	struct graft_case *one;
};

__attribute__((format(printf, 5, 6))) static void add_case_finding(struct judge *judge, enum graft_case_check check,
								   enum graft_level level, const char *remedy,
								   const char *cause, ...)
{
	struct graft_case_finding *finding = graft_arena_push(judge->arena, &judge->one->findings,
							      &judge->one->n_findings, sizeof(*finding));
	char text[TEXT_MAX];
	va_list args;

	va_start(args, cause);
	(void)vsnprintf(text, sizeof(text), cause, args);
	va_end(args);
	if (!finding)
		return;
	finding->check = check;
	finding->level = level;
	finding->cause = graft_arena_strdup(judge->arena, text);
	finding->remedy = remedy;
}

/* Joins names for a sentence; the arena records a failure. */
static const char *join_names(struct judge *judge, const char *const *names, size_t n)
{
	const char *text = "";

	for (size_t i = 0; i < n && i < NAMES_MAX && text; i++)
		text = graft_arena_printf(judge->arena, "%s%s%s", text, i > 0 ? ", " : "", names[i]);
	if (n > NAMES_MAX && text)
		text = graft_arena_printf(judge->arena, "%s and %zu others", text, n - NAMES_MAX);
	return text ? text : "";
}

/* ---- the request ---- */

/* By engine, and of the others: how such a container asks for GPUs. */
static const char *const ways_to_ask[GRAFT_KEEPER_MAX] = {
	[GRAFT_KEEPER_UNKNOWN] =
	    "Put \"NVIDIA_VISIBLE_DEVICES=all\" into process.env of its config.json, and create it "
	    "with nvidia-container-runtime.",
	[GRAFT_KEEPER_DOCKER] =
	    "Create it again with 'docker run --gpus all ...'; in a compose file, reserve devices with "
	    "'capabilities: [gpu]'.",
	[GRAFT_KEEPER_PODMAN] = "Create it again with 'podman run --device nvidia.com/gpu=all ...'.",
	[GRAFT_KEEPER_CONTAINERD] = "Create it again with 'ctr run --gpus 0 ...' or 'nerdctl run --gpus all ...'.",
	[GRAFT_KEEPER_KUBERNETES] = "Give the pod 'runtimeClassName: nvidia', and the container a limit of "
				    "'nvidia.com/gpu: 1'.",
	[GRAFT_KEEPER_CRIO] =
	    "Give the pod 'runtimeClassName: nvidia', and the container a limit of 'nvidia.com/gpu: 1'.",
};

/* Likewise, what to change for a container that asks by its environment. */
static const char *const ways_to_be_heard[GRAFT_KEEPER_MAX] = {
	[GRAFT_KEEPER_UNKNOWN] =
	    "Create it with nvidia-container-runtime instead, which changes containers on 'create' and "
	    "passes 'run' on.",
	[GRAFT_KEEPER_DOCKER] =
	    "Create it again with 'docker run --gpus all ...' or 'docker run --runtime=nvidia ...'; "
	    "'nvidia-ctk runtime configure --runtime=docker --set-as-default' does that for every "
	    "container.",
	[GRAFT_KEEPER_PODMAN] = "Create it again with 'podman run --device nvidia.com/gpu=all ...'.",
	[GRAFT_KEEPER_CONTAINERD] = "Create it again with 'ctr run --gpus 0 ...' or with '--runc-binary "
				    "nvidia-container-runtime'.",
	[GRAFT_KEEPER_KUBERNETES] = "Give the pod 'runtimeClassName: nvidia'.",
	[GRAFT_KEEPER_CRIO] = "Give the pod 'runtimeClassName: nvidia'.",
};

static const char *way_of(const struct graft_case *one, const char *const ways[GRAFT_KEEPER_MAX])
{
	return ways[one->engine] ? ways[one->engine] : ways[GRAFT_KEEPER_UNKNOWN];
}

static const char *how_to_ask(const struct graft_case *one)
{
	if (one->engine == GRAFT_KEEPER_DOCKER && one->way == GRAFT_CASE_WAY_RUNTIME)
		return "Create it again with '--env NVIDIA_VISIBLE_DEVICES=all', which its runtime reads, or with "
		       "'docker run --gpus all ...'.";
	return way_of(one, ways_to_ask);
}

static bool judge_case_request(struct judge *judge)
{
	const struct graft_case *one = judge->one;
	const struct graft_case_request *asked = &one->asked;

	if (asked->problem && !asked->wants)
		add_case_finding(judge, GRAFT_CASE_REQUEST, GRAFT_LEVEL_UNKNOWN,
				 "Run it as root; or give the ID by which its engine knows it.",
				 "what it asked for is not known: %s", asked->problem);
	else if (asked->problem)
		add_case_finding(
		    judge, GRAFT_CASE_REQUEST, GRAFT_LEVEL_BROKEN,
		    "Correct its options; 'nvidia-ctk cdi list' and 'nvidia-smi -L' show what can be asked "
		    "for.",
		    "what it asks for is refused: %s", asked->problem);
	else if (asked->wants && asked->n_devices == 1 && strcmp(asked->devices[0], "none") == 0)
		add_case_finding(judge, GRAFT_CASE_REQUEST, GRAFT_LEVEL_WARNING, way_of(one, ways_to_ask),
				 "it asks for the driver without a GPU (%s=none)",
				 asked->origin ? asked->origin : "NVIDIA_VISIBLE_DEVICES");
	else if (asked->wants && asked->n_devices > 0)
		add_case_finding(judge, GRAFT_CASE_REQUEST, GRAFT_LEVEL_OK, NULL, "it asked for %s (%s)",
				 join_names(judge, asked->devices, asked->n_devices),
				 asked->n_options > 0 ? asked->options[0]
				 : asked->origin      ? asked->origin
				 : asked->n_hooks > 0 ? asked->hooks[0]
						      : "its configuration");
	else if (asked->wants)
		add_case_finding(judge, GRAFT_CASE_REQUEST, GRAFT_LEVEL_OK, NULL, "it asked for GPUs (%s)",
				 asked->n_options > 0       ? asked->options[0]
				 : asked->n_annotations > 0 ? asked->annotations[0]
				 : asked->replaced          ? "the runtime has recorded this in its environment"
				 : asked->n_nodes > 0       ? asked->nodes[0]
							    : "its configuration");
	else if (asked->ignored)
		add_case_finding(judge, GRAFT_CASE_REQUEST, GRAFT_LEVEL_BROKEN,
				 "Ask with an option of the engine; or set "
				 "'accept-nvidia-visible-devices-envvar-when-unprivileged = true' in config.toml.",
				 "it asks through %s, which config.toml allows only for privileged containers",
				 asked->ignored);
	else if (graft_is_in(asked->variables, asked->n_variables, "NVIDIA_VISIBLE_DEVICES=void"))
		add_case_finding(judge, GRAFT_CASE_REQUEST, GRAFT_LEVEL_WARNING, how_to_ask(one),
				 "it asks for no GPU (NVIDIA_VISIBLE_DEVICES=void)");
	else
		add_case_finding(judge, GRAFT_CASE_REQUEST, GRAFT_LEVEL_WARNING, how_to_ask(one),
				 "it never asked for a GPU");
	return asked->wants;
}

/* ---- the way ---- */

static void judge_way(struct judge *judge)
{
	const struct graft_case *one = judge->one;
	const char *runtime = one->runtime ? one->runtime : "the low-level runtime";

	switch (one->way) {
	case GRAFT_CASE_WAY_UNKNOWN:
		break;
	case GRAFT_CASE_WAY_NONE:
		add_case_finding(judge, GRAFT_CASE_WAY, GRAFT_LEVEL_BROKEN, way_of(one, ways_to_be_heard),
				 "nothing read its request for GPUs: %s created it, without a hook or CDI device",
				 runtime);
		break;
	case GRAFT_CASE_WAY_RUNTIME:
		add_case_finding(judge, GRAFT_CASE_WAY, GRAFT_LEVEL_OK, NULL,
				 "nvidia-container-runtime changed its configuration, in mode %s",
				 one->mode ? one->mode : "auto");
		break;
	case GRAFT_CASE_WAY_HOOK:
		add_case_finding(judge, GRAFT_CASE_WAY, GRAFT_LEVEL_OK, NULL, "a hook gave it its GPUs: %s",
				 one->asked.n_hooks > 0 ? one->asked.hooks[0] : "nvidia-container-cli");
		break;
	case GRAFT_CASE_WAY_CDI:
		add_case_finding(judge, GRAFT_CASE_WAY, GRAFT_LEVEL_OK, NULL, "%s gave it what a CDI spec names",
				 graft_keeper_names[one->engine]);
		break;
	case GRAFT_CASE_WAY_DEVICES:
		add_case_finding(judge, GRAFT_CASE_WAY, GRAFT_LEVEL_WARNING, way_of(one, ways_to_ask),
				 "it has only device nodes, such as %s, and nothing else of the driver",
				 one->asked.n_nodes > 0 ? one->asked.nodes[0] : "/dev/nvidia0");
		break;
	case GRAFT_CASE_WAY_MAX:
		break;
	}
}

/* ---- the devices that it asked for ---- */

static void judge_asked_device(struct judge *judge, const char *word)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_request *request = graft_request_new();
	struct graft_selection selection;
	bool is_void;

	/* Without the UUIDs of all GPUs, no UUID can be called unknown. */
	if (request && graft_request_visible_devices(request, word, &is_void, NULL) == 0 &&
	    graft_select_missing_facts(inventory, request) == 0 &&
	    graft_select(inventory, request, judge->arena, &selection, &err) < 0)
		add_case_finding(judge, GRAFT_CASE_DEVICES, GRAFT_LEVEL_BROKEN,
				 "Create it again with a device that 'nvidia-smi -L' lists.",
				 "this host has no device '%s'", word);
	(void)graft_request_free(request);
}

static void judge_asked_devices(struct judge *judge)
{
	const struct graft_case_request *asked = &judge->one->asked;

	for (size_t i = 0; i < asked->n_devices && i < NAMES_MAX; i++) {
		/* CDI names are those of specs, which the doctor checks for the whole host. */
		if (!strchr(asked->devices[i], '=') && judge->health->inventory.n_gpus > 0)
			judge_asked_device(judge, asked->devices[i]);
	}
}

/* ---- what it got ---- */

#define START_AGAIN "Start the container again."

static void judge_start_error(struct judge *judge)
{
	const struct graft_doctor_message *message = graft_doctor_find_message(judge->one->start_error);

	add_case_finding(
	    judge, GRAFT_CASE_RUNNING, GRAFT_LEVEL_BROKEN,
	    message ? graft_arena_printf(judge->arena, "%s 'nvidia-ctk doctor' checks the host.", message->remedy)
		    : "'nvidia-ctk doctor' checks the host.",
	    "it could not be started: %s", judge->one->start_error);
}

static bool judge_case_running(struct judge *judge)
{
	const struct graft_case *one = judge->one;

	if (one->pid == 0 && one->start_error)
		judge_start_error(judge);
	else if (one->pid == 0)
		add_case_finding(judge, GRAFT_CASE_RUNNING, GRAFT_LEVEL_UNKNOWN, NULL,
				 "it is not running, so what it got cannot be seen");
	else if (!one->got.known)
		add_case_finding(judge, GRAFT_CASE_RUNNING, GRAFT_LEVEL_UNKNOWN, "Run it as root.",
				 "its process %u cannot be examined: %s", one->pid,
				 one->got.problem ? one->got.problem : "it belongs to another system");
	return one->got.known;
}

static bool judge_case_driver(struct judge *judge)
{
	enum graft_platform platform = judge->health->inventory.platform;

	if (judge->one->driver_version || platform == GRAFT_PLATFORM_WSL2 || platform == GRAFT_PLATFORM_TEGRA)
		return true;
	add_case_finding(judge, GRAFT_CASE_DRIVER, GRAFT_LEVEL_BROKEN,
			 "Run 'modprobe nvidia' and 'nvidia-ctk doctor', then start the container again.",
			 "the host's driver is not loaded now");
	return false;
}

static const char *name_gpus(struct judge *judge, size_t *ret_n)
{
	const struct graft_case_got *got = &judge->one->got;
	const char **names = graft_arena_list(judge->arena, got->n_nodes, sizeof(*names));

	*ret_n = 0;
	for (size_t i = 0; i < got->n_nodes && names; i++) {
		if (got->nodes[i].present && got->nodes[i].gpu)
			names[(*ret_n)++] = got->nodes[i].gpu;
	}
	return join_names(judge, names, *ret_n);
}

static void judge_case_nodes(struct judge *judge)
{
	const struct graft_case_got *got = &judge->one->got;
	const char *gpus;
	size_t n_present = 0, n_gpus;

	for (size_t i = 0; i < got->n_nodes; i++) {
		const struct graft_case_node *node = &got->nodes[i];

		n_present += node->present;
		if (!node->present)
			add_case_finding(judge, GRAFT_CASE_NODES, GRAFT_LEVEL_BROKEN, START_AGAIN,
					 "%s is in its configuration, but not in the container", node->path);
		else if (!node->on_host)
			add_case_finding(judge, GRAFT_CASE_NODES, GRAFT_LEVEL_BROKEN,
					 "Look for the GPU with 'nvidia-ctk doctor', then start the container again.",
					 "%s is no longer on the host: the GPU, or the MIG instance, is gone",
					 node->path);
		else if (node->gpu_lost)
			add_case_finding(judge, GRAFT_CASE_NODES, GRAFT_LEVEL_BROKEN, GRAFT_REMEDY_FAILED_GPU,
					 "the GPU %s of %s no longer answers: it has fallen off the PCI bus", node->gpu,
					 node->path);
		else if (node->major != node->host_major || node->minor != node->host_minor)
			add_case_finding(judge, GRAFT_CASE_NODES, GRAFT_LEVEL_BROKEN, START_AGAIN,
					 "%s is device %u:%u in the container and %u:%u on the host: the driver was "
					 "loaded again since it was started",
					 node->path, node->major, node->minor, node->host_major, node->host_minor);
	}
	gpus = name_gpus(judge, &n_gpus);
	if (n_present == 0)
		add_case_finding(judge, GRAFT_CASE_NODES, GRAFT_LEVEL_BROKEN,
				 "Start it again with 'nvidia-container-cli.debug' and "
				 "'nvidia-container-runtime.debug' set in config.toml, and read these logs.",
				 "it asked for GPUs and has no device node of the driver");
	else
		add_case_finding(judge, GRAFT_CASE_NODES, GRAFT_LEVEL_OK, NULL,
				 "it has %zu device nodes, %zu GPU%s%s%s%s", n_present, n_gpus, n_gpus == 1 ? "" : "s",
				 n_gpus > 0 ? " (" : "", gpus, n_gpus > 0 ? ")" : "");
}

static void judge_rules(struct judge *judge)
{
	const struct graft_case_got *got = &judge->one->got;
	const char **denied = graft_arena_list(judge->arena, got->n_nodes, sizeof(*denied));
	size_t n_denied = 0, n_unknown = 0, n_present = 0;

	if (!denied)
		return;
	for (size_t i = 0; i < got->n_nodes; i++) {
		if (!got->nodes[i].present)
			continue;
		n_present++;
		if (got->nodes[i].answer == GRAFT_ANSWER_DENIED)
			denied[n_denied++] = got->nodes[i].path;
		n_unknown += got->nodes[i].answer == GRAFT_ANSWER_UNKNOWN;
	}
	if (n_denied > 0 && judge->one->way == GRAFT_CASE_WAY_HOOK && judge->health->config.no_cgroups)
		add_case_finding(
		    judge, GRAFT_CASE_RULES, GRAFT_LEVEL_BROKEN,
		    "Run 'nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups=false', then start the "
		    "container again.",
		    "its device cgroup (v%u) does not let it open %s: no-cgroups in config.toml keeps the hook from "
		    "allowing them",
		    got->cgroup_version, join_names(judge, denied, n_denied));
	else if (n_denied > 0)
		add_case_finding(
		    judge, GRAFT_CASE_RULES, GRAFT_LEVEL_BROKEN,
		    "Start the container again. 'nvidia-ctk doctor' reports whether systemd can remove them again.",
		    "its device cgroup (v%u) no longer lets it open %s: its rules were rewritten, as by 'systemctl "
		    "daemon-reload' where systemd does not know the devices, or they were never set",
		    got->cgroup_version, join_names(judge, denied, n_denied));
	else if (n_present > 0 && n_unknown > 0)
		add_case_finding(judge, GRAFT_CASE_RULES, GRAFT_LEVEL_UNKNOWN,
				 got->cgroup_problem ? "Run it as root." : NULL,
				 "whether it may open its devices is not known: %s",
				 got->cgroup_problem ? got->cgroup_problem : "its device program cannot be read");
	else if (n_present > 0)
		add_case_finding(judge, GRAFT_CASE_RULES, GRAFT_LEVEL_OK, NULL,
				 "its device cgroup (v%u) lets it open them", got->cgroup_version);
}

static void judge_case_links(struct judge *judge)
{
	const struct graft_case_got *got = &judge->one->got;

	if (!got->scope)
		return;
	for (size_t i = 0; i < got->n_nodes; i++) {
		if (!got->nodes[i].present || got->nodes[i].has_link || got->nodes[i].answer == GRAFT_ANSWER_DENIED)
			continue;
		add_case_finding(
		    judge, GRAFT_CASE_LINKS, GRAFT_LEVEL_WARNING,
		    "Run 'nvidia-ctk system create-dev-char-symlinks --create-all'.",
		    "systemd keeps its device rules and does not know %s (no /dev/char/%u:%u on the host): the "
		    "next 'systemctl daemon-reload' may take it away",
		    got->nodes[i].path, got->nodes[i].major, got->nodes[i].minor);
		return;
	}
}

/*
 * Returns its variable for capabilities if that does not ask for `word`; NULL if it does or is not
 * set.
 */
static const char *leaves_out(const struct graft_case_request *asked, const char *word)
{
	for (size_t i = 0; i < asked->n_variables; i++) {
		const char *variable = asked->variables[i];

		if (graft_starts_with(variable, "NVIDIA_DRIVER_CAPABILITIES="))
			return strstr(variable, word) || strstr(variable, "all") ? NULL : variable;
	}
	return NULL;
}

static bool has_case_library(const struct graft_case_got *got, const char *soname)
{
	for (size_t i = 0; i < got->n_libraries; i++) {
		if (strcmp(got->libraries[i].soname, soname) == 0)
			return true;
	}
	return false;
}

/* Not asking for a capability is fine, but explains why nvidia-smi or CUDA is missing. */
static void judge_case_capabilities(struct judge *judge)
{
	const struct graft_case *one = judge->one;
	const char *variable = leaves_out(&one->asked, "utility");

	if (variable && !has_case_library(&one->got, "libnvidia-ml.so.1"))
		add_case_finding(judge, GRAFT_CASE_LIBRARIES, GRAFT_LEVEL_OK, NULL,
				 "it has no nvidia-smi: its %s does not ask for utility", variable);
	variable = leaves_out(&one->asked, "compute");
	if (variable && !has_case_library(&one->got, GRAFT_CUDA_SONAME))
		add_case_finding(judge, GRAFT_CASE_LIBRARIES, GRAFT_LEVEL_OK, NULL,
				 "it has no CUDA: its %s does not ask for compute", variable);
}

/* A library that the host lacks cannot be given to the container. */
static void judge_case_cuda(struct judge *judge)
{
	if (has_case_library(&judge->one->got, GRAFT_CUDA_SONAME))
		return;
	if (!leaves_out(&judge->one->asked, "compute") &&
	    !graft_health_find_library_file(judge->health, GRAFT_CUDA_SONAME))
		add_case_finding(judge, GRAFT_CASE_LIBRARIES, GRAFT_LEVEL_WARNING, GRAFT_REMEDY_CUDA,
				 "it has no " GRAFT_CUDA_SONAME ", because the host has none: nvidia-smi works in it, "
				 "CUDA does not");
}

static void judge_case_libraries(struct judge *judge)
{
	const struct graft_case *one = judge->one;
	const struct graft_case_got *got = &one->got;
	const struct graft_case_library *first = got->n_libraries > 0 ? &got->libraries[0] : NULL;

	if (!first) {
		if (one->way != GRAFT_CASE_WAY_DEVICES && judge->health->inventory.platform == GRAFT_PLATFORM_NATIVE)
			add_case_finding(judge, GRAFT_CASE_LIBRARIES, GRAFT_LEVEL_WARNING,
					 "Set NVIDIA_DRIVER_CAPABILITIES=compute,utility in the container.",
					 "it has neither libcuda nor libnvidia-ml of the driver: its "
					 "NVIDIA_DRIVER_CAPABILITIES does not ask for them");
		return;
	}
	judge_case_cuda(judge);
	judge_case_capabilities(judge);
	for (size_t i = 0; i < got->n_libraries; i++) {
		if (!got->libraries[i].deleted)
			continue;
		add_case_finding(
		    judge, GRAFT_CASE_LIBRARIES, GRAFT_LEVEL_BROKEN, START_AGAIN,
		    "%s is a file that the host no longer has: the driver was replaced since it was started",
		    got->libraries[i].path);
		break;
	}
	if (!one->driver_version)
		return;
	if (strcmp(first->version, one->driver_version) != 0)
		add_case_finding(
		    judge, GRAFT_CASE_VERSIONS, GRAFT_LEVEL_BROKEN,
		    "Start the container again, after a reboot where 'nvidia-ctk doctor' says that the host's "
		    "own libraries do not match.",
		    "its libraries belong to driver %s and the loaded kernel module is %s: they do not work "
		    "together (driver/library version mismatch)",
		    first->version, one->driver_version);
	else
		add_case_finding(judge, GRAFT_CASE_VERSIONS, GRAFT_LEVEL_OK, NULL,
				 "its libraries match the loaded driver, %s", one->driver_version);
}

/*
 * Without a cache (musl, or a cache that was removed), the loader searches its directories. It is
 * not known whether the library's directory is one of them, but the name must exist in it.
 */
static void judge_case_loader(struct judge *judge)
{
	const struct graft_case_got *got = &judge->one->got;

	for (size_t i = 0; i < got->n_libraries; i++) {
		const struct graft_case_library *library = &got->libraries[i];
		bool is_found = library->linked && (library->cached || !got->has_cache);

		if (library->deleted || (is_found && !got->cache_problem))
			continue;
		if (got->cache_problem)
			add_case_finding(judge, GRAFT_CASE_LOADER_CACHE, GRAFT_LEVEL_WARNING,
					 "Run 'ldconfig' in the container.", "its /etc/ld.so.cache cannot be used: %s",
					 got->cache_problem);
		else
			add_case_finding(
			    judge, GRAFT_CASE_LOADER_CACHE, GRAFT_LEVEL_WARNING,
			    library->linked ? "Run 'ldconfig' in the container, or set LD_LIBRARY_PATH there."
					    : "Start the container again, or run 'ldconfig' in it.",
			    "its loader does not find %s, which is mounted at %s: %s", library->soname, library->path,
			    library->linked ? "/etc/ld.so.cache does not have that name"
					    : "there is no link of that name beside it");
		return;
	}
	if (got->n_libraries > 0 && got->has_cache)
		add_case_finding(judge, GRAFT_CASE_LOADER_CACHE, GRAFT_LEVEL_OK, NULL,
				 "its loader finds the driver's libraries");
}

/* ---- the verdict ---- */

static void conclude(struct judge *judge)
{
	struct graft_case *one = judge->one;
	const struct graft_case_finding *worst = NULL;
	const char *gpus;
	size_t n;

	for (size_t i = 0; i < one->n_findings; i++) {
		if (!worst || one->findings[i].level > worst->level)
			worst = &one->findings[i];
	}
	if (!worst)
		return;
	one->verdict = worst->level;
	if (worst->level != GRAFT_LEVEL_OK) {
		one->summary = worst->cause;
		one->remedy = worst->remedy;
		return;
	}
	gpus = name_gpus(judge, &n);
	one->summary = n > 0 ? graft_arena_printf(judge->arena, "it has %zu GPU%s and may use %s: %s", n,
						  n == 1 ? "" : "s", n == 1 ? "it" : "them", gpus)
			     : "it has the driver's devices, and may use them";
}

int graft_case_judge(const struct graft_health *health, struct graft_arena *arena, struct graft_case *one,
		     struct graft_error *err)
{
	struct judge judge = { .health = health, .arena = arena, .one = one };

	one->findings = NULL;
	one->n_findings = 0;
	one->summary = "";
	if (judge_case_request(&judge)) {
		judge_way(&judge);
		if (judge_case_driver(&judge))
			judge_asked_devices(&judge);
		/* If nothing provided GPUs, all else follows from that. */
		if (one->way != GRAFT_CASE_WAY_NONE && judge_case_running(&judge)) {
			judge_case_nodes(&judge);
			judge_rules(&judge);
			judge_case_links(&judge);
			judge_case_libraries(&judge);
			judge_case_loader(&judge);
		}
	} else if (one->pid == 0) {
		(void)judge_case_running(&judge);
	}
	conclude(&judge);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
