/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: combines a container's request from its sources. container_words.c parses the device
 * names of a source, container_requirements.c what the image requires; this file knows precedence
 * and privilege (SPEC runtime-and-hook 4.4 to 4.8). It does not know which devices exist.
 */
#include "request/container.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/cdi/cdi.h"
#include "request/claim.h"
#include "request/container_words.h"

static const char *const gate_variables[GRAFT_GATE_MAX] = {
	[GRAFT_GATE_GDS] = "NVIDIA_GDS",
	[GRAFT_GATE_MOFED] = "NVIDIA_MOFED",
	[GRAFT_GATE_GDRCOPY] = "NVIDIA_GDRCOPY",
	[GRAFT_GATE_NVSWITCH] = "NVIDIA_NVSWITCH",
};

struct reading {
	const struct graft_oci_spec *spec;
	const struct graft_config *config;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_container *container;
};

/* The variables from which devices are read, and the device names in them. */
struct variables {
	const char *names; /* names of the variables, for logs */
	struct graft_strings words;
};

/*
 * An image's variables can request GPUs and other parts of the host without the engine's knowledge.
 * An administrator can disallow that in config.toml; then only privileged containers, which may do
 * anything anyway, may use them.
 */
static bool may_use_environment(const struct reading *r, const char *names, const char *what)
{
	if (r->container->privileged || r->config->accept_envvar_unprivileged)
		return true;
	graft_warn(r->log,
		   "ignoring %s requested by %s: the container is not privileged, and "
		   "accept-nvidia-visible-devices-envvar-when-unprivileged is false",
		   what, names);
	return false;
}

/*
 * Returns whether an allowed item matches the kind: "VENDOR/CLASS" matches exactly that kind,
 * "VENDOR/" with an asterisk all kinds of the vendor, and an asterisk alone every kind.
 */
static bool is_kind_allowed(const struct reading *r, const char *kind, size_t length)
{
	const struct graft_strings *allowed = &r->config->runtime.cdi_allowed_envvar_kinds;

	for (size_t i = 0; i < allowed->n; i++) {
		const char *item = allowed->items[i];
		size_t n = strlen(item);

		if (strcmp(item, "*") == 0 || (n == length && strncmp(item, kind, n) == 0))
			return true;
		if (n > 2 && strcmp(item + n - 2, "/*") == 0 && n - 1 < length && strncmp(item, kind, n - 1) == 0)
			return true;
	}
	return false;
}

/* Such a name requests a channel without NVIDIA_IMEX_CHANNELS, of whichever vendor it is. */
static bool is_ignored_channel(const struct reading *r, const char *kind, size_t length)
{
	static const char class[] = "/imex-channel";
	const size_t n = sizeof(class) - 1;

	return r->config->features.ignore_imex_channel_requests && length > n &&
	       strncmp(kind + length - n, class, n) == 0;
}

/*
 * SECURITY: a CDI specification can give access to anything on the host, including mounts and
 * hooks, and many are not meant for everyone. A refusal is an error: a container must not start
 * without what it requests.
 */
static int check_kinds(const struct reading *r, const struct variables *variables, bool annotations,
		       struct graft_error *err)
{
	const char *whose = annotations ? "annotations, which Podman and nerdctl also take from images,"
					: "variables of containers";
	const char *instead = annotations ? "" : "an annotation or ";
	const char *file = r->config->file ? r->config->file : "config.toml";

	for (size_t i = 0; i < variables->words.n; i++) {
		const char *device = variables->words.items[i];
		size_t length = strcspn(device, "=");

		if (!graft_cdi_is_qualified(device))
			continue;
		if (is_ignored_channel(r, device, length))
			return graft_fail(err, GRAFT_INVALID, 0,
					  "%s asks for the CDI device '%.100s': %s may not name IMEX channels; request "
					  "it with %sa volume mount, or set features.ignore-imex-channel-requests to "
					  "false in %s",
					  variables->names, device, whose, instead, file);
		if (is_kind_allowed(r, device, length))
			continue;
		return graft_fail(err, GRAFT_INVALID, 0,
				  "%s asks for the CDI device '%.100s': %s may not name devices of the kind "
				  "'%.*s'; request it with %sa volume mount, or add the kind "
				  "to nvidia-container-runtime.modes.cdi.allowed-envvar-kinds in %s",
				  variables->names, device, whose, (int)(length < 100 ? length : 100), device, instead,
				  file);
	}
	return 0;
}

/* Reads the variables that swarm-resource names and the container has; concatenates their lists. */
static int read_swarm_variables(const struct reading *r, struct variables *variables, bool *ret_present,
				struct graft_error *err)
{
	struct graft_strings names = { .n = 0 };

	if (graft_words_split(r->config->swarm_resource, true, r->arena, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < names.n; i++) {
		const char *value = graft_oci_spec_env(r->spec, names.items[i]);

		if (!value)
			continue;
		variables->names = *ret_present
				       ? graft_arena_printf(r->arena, "%s,%s", variables->names, names.items[i])
				       : names.items[i];
		*ret_present = true;
		if (!variables->names)
			return graft_fail_memory(err);
		if (graft_words_split(value, true, r->arena, &variables->words, err) < 0)
			return graft_wrap(err, "%s", names.items[i]);
	}
	return 0;
}

/*
 * SPEC runtime-and-hook 4.4, rule 1: before NVIDIA_VISIBLE_DEVICES existed, an image requested GPUs
 * by setting CUDA_VERSION.
 */
static int default_of_image(const struct reading *r, struct variables *variables, struct graft_error *err)
{
	if (!r->container->legacy_image)
		return 0;
	variables->names = "CUDA_VERSION";
	return graft_words_add(&variables->words, "all", r->arena, err);
}

static int read_container_variable(const struct reading *r, const char *name, struct variables *variables,
				   struct graft_error *err)
{
	const char *value = graft_oci_spec_env(r->spec, name);

	variables->names = name;
	if (!value)
		return default_of_image(r, variables, err);
	return graft_words_split(value, true, r->arena, &variables->words, err) < 0 ? graft_wrap(err, "%s", name) : 0;
}

static int read_environment(const struct reading *r, struct graft_error *err)
{
	struct graft_container *container = r->container;
	struct variables variables = { .names = NULL };
	bool present = false;

	if (read_swarm_variables(r, &variables, &present, err) < 0)
		return -1;
	if (!present && read_container_variable(r, "NVIDIA_VISIBLE_DEVICES", &variables, err) < 0)
		return -1;
	/*
	 * "all" together with a claim does not mean all: the list is refused where the claim is
	 * read.
	 */
	if (!graft_config_lends(r->config) || !graft_claim_is_in(&variables.words))
		graft_words_reduce(&variables.words);
	if (variables.words.n == 0 || !may_use_environment(r, variables.names, "devices"))
		return 0;
	if (check_kinds(r, &variables, false, err) < 0)
		return -1;
	container->devices = variables.words;
	container->origin = GRAFT_ORIGIN_ENVIRONMENT;
	container->origin_name = variables.names;
	return 0;
}

/* SPEC runtime-and-hook 4.8, Q8: "none" selects no channel, nor does "all" from an environment. */
static int read_channels(const struct reading *r, const struct graft_strings *of_mounts, struct graft_error *err)
{
	struct variables variables = { .names = NULL };

	if (r->config->features.ignore_imex_channel_requests)
		return 0;
	if (of_mounts->n > 0) {
		r->container->imex_channels = *of_mounts;
		return 0;
	}
	if (!graft_oci_spec_env(r->spec, "NVIDIA_IMEX_CHANNELS"))
		return 0;
	if (read_container_variable(r, "NVIDIA_IMEX_CHANNELS", &variables, err) < 0)
		return -1;
	graft_words_reduce(&variables.words);
	if (variables.words.n == 1 &&
	    (strcmp(variables.words.items[0], "none") == 0 || strcmp(variables.words.items[0], "all") == 0)) {
		graft_info(r->log, "NVIDIA_IMEX_CHANNELS=%s selects no channel", variables.words.items[0]);
		return 0;
	}
	if (variables.words.n > 0 && may_use_environment(r, variables.names, "IMEX channels"))
		r->container->imex_channels = variables.words;
	return 0;
}

/*
 * QUIRK: Podman gives a container the annotations of its image, and names itself in one only if the
 * image has no such key. So an image can claim to be another manager's, but the key is always
 * there. CRI-O has it too; its cgroup, perhaps below one of Podman's, is never named like those.
 * nerdctl makes annotations of those labels of the image that contain "nerdctl/", and adds its own.
 */
static bool has_annotations_of_image(const struct graft_oci_spec *spec)
{
	const char *cgroup = spec->cgroups_path ? graft_path_name(spec->cgroups_path) : "";
	bool is_crio = cgroup[0] != '\0' && !strstr(cgroup, ":libpod:") && !graft_starts_with(cgroup, "libpod-");

	for (size_t i = 0; i < spec->n_annotations; i++) {
		const struct graft_oci_annotation *annotation = &spec->annotations[i];

		if (graft_starts_with(annotation->key, "io.podman.annotations.") ||
		    graft_starts_with(annotation->key, "nerdctl/") ||
		    (strcmp(annotation->key, "io.container.manager") == 0 &&
		     !(is_crio && strcmp(annotation->value, "cri-o") == 0)))
			return true;
	}
	return false;
}

/* SECURITY: what an image may set counts no more than its variables do. */
static int check_annotations(const struct reading *r, struct graft_strings *words, struct graft_error *err)
{
	const struct variables annotations = { "an annotation", *words };

	if (words->n == 0 || !has_annotations_of_image(r->spec))
		return 0;
	if (may_use_environment(r, annotations.names, "devices"))
		return check_kinds(r, &annotations, true, err);
	words->n = 0;
	return 0;
}

/*
 * SPEC runtime-and-hook 4.7: annotations, else volume mounts, else the environment; never a
 * mixture.
 */
static int read_container_devices(const struct reading *r, bool annotations, struct graft_error *err)
{
	struct graft_container *container = r->container;
	struct graft_strings of_annotations = { .n = 0 }, of_mounts = { .n = 0 }, channels = { .n = 0 };

	if (annotations && (graft_words_of_annotations(r->spec, &r->config->runtime.cdi_annotation_prefixes, r->arena,
						       &of_annotations, err) < 0 ||
			    check_annotations(r, &of_annotations, err) < 0))
		return -1;
	if (r->config->accept_volume_mounts &&
	    graft_words_of_mounts(r->spec, r->log, r->arena, &of_mounts, &channels, err) < 0)
		return -1;
	if (of_annotations.n > 0) {
		container->devices = of_annotations;
		container->origin = GRAFT_ORIGIN_ANNOTATIONS;
		container->origin_name = "annotations";
	} else if (of_mounts.n > 0) {
		container->devices = of_mounts;
		container->origin = GRAFT_ORIGIN_MOUNTS;
		container->origin_name = "volume mounts";
	} else if (read_environment(r, err) < 0) {
		return -1;
	}
	container->wants_devices = container->devices.n > 0;
	return read_channels(r, &channels, err);
}

static const char *non_empty(const char *value)
{
	return value && value[0] != '\0' ? value : NULL;
}

/*
 * Reads what an image requests in addition to GPUs, whatever the source of the request for GPUs; a
 * container without GPUs gets none of it.
 */
static void read_additions(const struct reading *r)
{
	struct graft_container *container = r->container;
	const char *jetpack = graft_oci_spec_env(r->spec, "NVIDIA_REQUIRE_JETPACK");

	for (size_t i = 0; i < GRAFT_GATE_MAX; i++) {
		const char *value = graft_oci_spec_env(r->spec, gate_variables[i]);

		container->gates[i] = container->wants_devices && value && strcmp(value, "enabled") == 0 &&
				      may_use_environment(r, gate_variables[i], graft_gate_names[i]);
	}
	container->jetpack_csv_mounts_all = container->wants_devices && jetpack &&
					    strcmp(jetpack, "csv-mounts=all") == 0 &&
					    may_use_environment(r, "NVIDIA_REQUIRE_JETPACK",
								"the files of all CSV lists");
}

/* The annotation counts first. An image can set the variable; with Podman, the annotation too. */
static const char *read_lease_owner(const struct graft_oci_spec *spec)
{
	for (size_t i = 0; i < spec->n_annotations; i++) {
		if (strcmp(spec->annotations[i].key, "graft.owner") == 0)
			return non_empty(spec->annotations[i].value);
	}
	return non_empty(graft_oci_spec_env(spec, "NVIDIA_LEASE_OWNER"));
}

/* Kubernetes' engines name the image. */
static const char *read_lease_purpose(const struct graft_oci_spec *spec)
{
	for (size_t i = 0; i < spec->n_annotations; i++) {
		const char *key = spec->annotations[i].key;

		if (strcmp(key, "io.kubernetes.cri.image-name") == 0 ||
		    strcmp(key, "io.kubernetes.cri-o.ImageName") == 0)
			return non_empty(spec->annotations[i].value);
	}
	return non_empty(spec->program);
}

static void read_container_words(const struct reading *r)
{
	const char *late_mounts = graft_oci_spec_env(r->spec, "NVIDIA_LATE_MOUNTS");
	struct graft_container *container = r->container;

	container->driver_capabilities = graft_oci_spec_env(r->spec, "NVIDIA_DRIVER_CAPABILITIES");
	container->no_late_mounts = late_mounts && strcmp(late_mounts, "false") == 0;
	container->lease_wait = non_empty(graft_oci_spec_env(r->spec, "NVIDIA_LEASE_WAIT"));
	container->lease_owner = read_lease_owner(r->spec);
	container->lease_what = read_lease_purpose(r->spec);
	container->mig_config = non_empty(graft_oci_spec_env(r->spec, "NVIDIA_MIG_CONFIG_DEVICES"));
	container->mig_monitor = non_empty(graft_oci_spec_env(r->spec, "NVIDIA_MIG_MONITOR_DEVICES"));
}

static void log_devices(const struct reading *r)
{
	const struct graft_strings *devices = &r->container->devices;

	if (r->spec->n_malformed_env > 0)
		graft_info(r->log, "ignoring %zu environment entries without '='", r->spec->n_malformed_env);
	if (!r->container->wants_devices)
		graft_debug(r->log, "the container asks for no GPU");
	for (size_t i = 0; i < devices->n; i++)
		graft_debug(r->log, "device '%s' is requested by %s", devices->items[i], r->container->origin_name);
}

int graft_container_read(const struct graft_oci_spec *spec, const struct graft_config *config, bool annotations,
			 const struct graft_log *log, struct graft_arena *arena, struct graft_container *ret_container,
			 struct graft_error *err)
{
	const struct reading r = { spec, config, log, arena, ret_container };
	const char *cuda_version = graft_oci_spec_env(spec, "CUDA_VERSION");

	*ret_container = (struct graft_container){
		.origin_name = "nothing",
		.privileged = spec->privileged,
		.legacy_image = non_empty(cuda_version) && !non_empty(graft_oci_spec_env(spec, "NVIDIA_REQUIRE_CUDA")),
	};
	if (read_container_devices(&r, annotations, err) < 0)
		return -1;
	read_container_words(&r);
	read_additions(&r);
	log_devices(&r);
	return graft_container_read_requirements(spec, config, arena, ret_container, err);
}
