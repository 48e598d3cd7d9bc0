/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: the table of the keys of config.toml, and the settings made from it. Knows neither where
 * the file is nor what a value is used for.
 */
#include "request/config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define WORDS(...)                           \
	((const char *const[]){              \
	    __VA_ARGS__ __VA_OPT__(, ) NULL, \
	})
/* The rarer members follow `doc`, by name. */
#define BOOL(key, member, standard, doc, ...)                                                                    \
	{                                                                                                        \
		key, GRAFT_CONFIG_BOOL, offsetof(struct graft_config, member), WORDS(standard), doc, __VA_ARGS__ \
	}
#define STRING(key, member, standard, doc, ...)                                                                    \
	{                                                                                                          \
		key, GRAFT_CONFIG_STRING, offsetof(struct graft_config, member), WORDS(standard), doc, __VA_ARGS__ \
	}
#define UNSET(key, kind, member, doc)                                                      \
	{                                                                                  \
		key, GRAFT_CONFIG_##kind, offsetof(struct graft_config, member), NULL, doc \
	}
#define FEATURE(key, member, doc)                                                                                   \
	{                                                                                                           \
		"features." key, GRAFT_CONFIG_BOOL, offsetof(struct graft_config, features.member), WORDS("false"), \
		    doc, .omitted = true, .optional = true                                                          \
	}
#define OWN_STRINGS(key, member, doc, ...)                                                                 \
	{                                                                                                  \
		key, GRAFT_CONFIG_STRINGS, offsetof(struct graft_config, member), WORDS(__VA_ARGS__), doc, \
		    .omitted = true                                                                        \
	}
#define STRINGS(key, member, doc, ...)                                                                    \
	{                                                                                                 \
		key, GRAFT_CONFIG_STRINGS, offsetof(struct graft_config, member), WORDS(__VA_ARGS__), doc \
	}

#define CLI     "nvidia-container-cli."
#define RUNTIME "nvidia-container-runtime."
#define MODES   RUNTIME "modes."
#define OWN     "graft."
#define LEASES  "graft.leases."
#define NRI     "nri."

/* For test/tools/late-mounts, a runtime is built with another default. */
#ifndef GRAFT_LATE_MOUNTS
#define GRAFT_LATE_MOUNTS "false"
#endif

/* clang-format off */
const struct graft_config_key graft_config_keys[] = {
	BOOL("disable-require", disable_require, "false",
	     "Ignore the requirements (`NVIDIA_REQUIRE_*`) of all containers, as if each had `NVIDIA_DISABLE_REQUIRE=true`."),
	STRING("swarm-resource", swarm_resource, "",
	       "Names of variables, separated by commas, that replace `NVIDIA_VISIBLE_DEVICES` in containers that have them (`DOCKER_RESOURCE_GPU`).",
		     .sample = "\"DOCKER_RESOURCE_GPU\""),
	BOOL("accept-nvidia-visible-devices-envvar-when-unprivileged", accept_envvar_unprivileged, "true",
	     "If `false`, the variables of an unprivileged container give it nothing: no device, no IMEX channel, nothing for `NVIDIA_GDS` and similar variables.",
		     .sample = "true"),
	BOOL("accept-nvidia-visible-devices-as-volume-mounts", accept_volume_mounts, "false",
	     "Treat mounts of `/dev/null` below `/var/run/nvidia-container-devices` as device requests.",
		     .sample = "false"),
	STRING("supported-driver-capabilities", supported_driver_capabilities,
	       "compat32,compute,display,graphics,ngx,utility,video",
	       "Capabilities that `NVIDIA_DRIVER_CAPABILITIES` may request from the hook; `all` = every known one, empty = none."),

	STRING(CLI "root", cli.root, "",
	       "Driver root: the directory in which the driver is installed. Empty = `/`. Its device nodes are looked up there, too.",
		     .sample = "\"/run/nvidia/driver\""),
	STRING(CLI "path", cli.path, "",
	       "Another `nvidia-container-cli` for the hook to run, instead of doing the work itself. A name without a directory is looked up in the `PATH` of `environment`, then in the standard directories.",
		     .sample = "\"/usr/bin/nvidia-container-cli\""),
	STRINGS(CLI "environment", cli.environment, "Variables, `NAME=VALUE`, for that program."),
	STRING(CLI "debug", cli.debug, "", "File to which the hook appends a debug log.",
		     .sample = "\"/var/log/nvidia-container-toolkit.log\""),
	STRING(CLI "ldcache", cli.ldcache, "", "Loader cache inside the driver root; empty = `/etc/ld.so.cache`.",
		     .sample = "\"/etc/ld.so.cache\""),
	BOOL(CLI "load-kmods", cli.load_kmods, "true", "Make the hook load the kernel modules and create their device nodes."),
	BOOL(CLI "no-pivot", cli.no_pivot, "false", "Accepted for compatibility; has no effect.",
		     .omitted = true),
	BOOL(CLI "no-cgroups", cli.no_cgroups, "false", "Make the hook leave the device cgroup alone.",
		     .sample = "false"),
	STRING(CLI "user", cli.user, "",
	       "User and group, `USER:GROUP`, of the process that loads NVML. The default is `root:video` on SUSE.",
		     .sample = "\"root:video\""),
	STRING(CLI "ldconfig", cli.ldconfig, "@/sbin/ldconfig",
	       "Must begin with `@`; no program is run. The default is `@/sbin/ldconfig.real` if that file exists."),

	STRING("nvidia-ctk.path", ctk_path, "nvidia-ctk",
	       "Program for the hooks in OCI configurations: `nvidia-cdi-hook` or `nvidia-ctk`; looked up in `PATH` unless absolute."),

	STRING("nvidia-container-runtime-hook.path", hook.path, "nvidia-container-runtime-hook",
	       "Prestart hook of mode `legacy`; looked up in `PATH` unless absolute."),
	BOOL("nvidia-container-runtime-hook.skip-mode-detection", hook.skip_mode_detection, "false",
	     "Run the hook in every mode."),

	STRING(RUNTIME "debug", runtime.debug, "/dev/null",
	       "Log file of the runtime. Empty and `/dev/null` = none.",
		     .sample = "\"/var/log/nvidia-container-runtime.log\""),
	STRING(RUNTIME "log-level", runtime.log_level, "info",
	       "`error`, `warning`, `info`, `debug`; also `panic` and `fatal` (as `error`) and `trace` (as `debug`)."),
	STRINGS(RUNTIME "runtimes", runtime.runtimes,
		"Low-level runtimes; the first that exists is used. A name is looked up in `PATH`; a path is used as it is.", "runc",
		"crun"),
	STRING(RUNTIME "mode", runtime.mode, "auto", "`auto`, `jit-cdi`, `cdi`, `csv` or `legacy`."),
	STRING(MODES "csv.mount-spec-path", runtime.csv_mount_spec_path,
	       "/etc/nvidia-container-runtime/host-files-for-container.d", "Directory of the CSV files of a Tegra system."),
	UNSET(MODES "csv.compat-container-root", STRING, runtime.csv_compat_container_root,
	      "Directory of the CUDA compatibility libraries inside containers on Orin; unset = `/usr/local/cuda/compat_orin`."),
	STRINGS(MODES "cdi.spec-dirs", runtime.cdi_spec_dirs, "Directories of CDI specs; later ones override earlier ones.", "/etc/cdi",
		"/var/run/cdi"),
	STRING(MODES "cdi.default-kind", runtime.cdi_default_kind, "nvidia.com/gpu",
	       "Kind of the devices that a request names without one."),
	STRINGS(MODES "cdi.annotation-prefixes", runtime.cdi_annotation_prefixes,
		"Prefixes of the names of annotations that ask for CDI devices.", "cdi.k8s.io/"),
	OWN_STRINGS(MODES "cdi.allowed-envvar-kinds", runtime.cdi_allowed_envvar_kinds,
		    "Kinds of CDI devices that a container's variables may name: `VENDOR/CLASS`, `VENDOR/*`, or `*` for all.",
		    "nvidia.com/*", "runtime.nvidia.com/*"),
	UNSET(MODES "jit-cdi.nvcdi-feature-flags", STRINGS, runtime.jit_feature_flags,
	      "Feature flags of modes `jit-cdi` and `csv`; unknown ones are ignored."),
	UNSET(MODES "jit-cdi.nvcdi-disable-hooks", STRINGS, runtime.jit_disable_hooks,
	      "Hooks whose work to leave out; `all` = every hook."),
	STRING(MODES "legacy.cuda-compat-mode", runtime.cuda_compat_mode, "ldconfig",
	       "How to make a newer CUDA in the image work with this driver: `ldconfig`, `mount`, `hook` or `disabled`."),

	FEATURE("allow-cuda-compat-libs-from-container", allow_cuda_compat_libs_from_container,
		"Superseded by `cuda-compat-mode`; used only if that is unset or unknown."),
	FEATURE("allow-ldconfig-from-container", allow_ldconfig_from_container,
		"Accept a value of `ldconfig` that does not begin with `@`. No program is run in this case, either."),
	FEATURE("allow-unknown-oci-spec-fields", allow_unknown_oci_spec_fields,
		"Accepted for compatibility: unknown members of `config.json` are always allowed and always kept."),
	FEATURE("disable-cuda-compat-lib-hook", disable_cuda_compat_lib_hook,
		"Mode `legacy`: never inject the hook of `cuda-compat-mode = \"hook\"`."),
	FEATURE("disable-imex-channel-creation", disable_imex_channel_creation,
		"Keep the hook from creating nodes of IMEX channels."),
	FEATURE("ignore-imex-channel-requests", ignore_imex_channel_requests,
		"Ignore all requests for IMEX channels."),
	FEATURE("no-additional-gids-for-device-nodes", no_additional_gids_for_device_nodes,
		"Do not add the groups of device nodes to the container's process."),
	FEATURE("honor-driver-capabilities", honor_driver_capabilities,
		"Mode `jit-cdi`: let `NVIDIA_DRIVER_CAPABILITIES` select what a container gets; otherwise it gets everything."),
	FEATURE("honor-requirements", honor_requirements,
		"Mode `jit-cdi`: check `NVIDIA_REQUIRE_*`."),
	FEATURE("inject-compat32-libraries", compat32,
		"Mode `jit-cdi`: include the 32-bit libraries."),

	BOOL(OWN "late-mounts", late_mounts, GRAFT_LATE_MOUNTS,
	     "Modes `jit-cdi`, `cdi` and `csv`: mount the driver's files once the low-level runtime has created the container, which is faster than letting it mount them ([runtime.md](runtime.md#late-mounts)).",
		     .omitted = true),

	STRING(LEASES "mode", leases.mode, "off",
	       "`on`: a request may be a claim, such as `any:2`, for GPUs that are not lent ([leases.md](leases.md)). `enforce`: in addition, a container that names GPUs holds them, and is refused if others do. `off`: claims are refused.",
		     .omitted = true),
	STRING(LEASES "directory", leases.directory, "/run/graft/leases",
	       "Directory of the table that says who holds which GPU. Only root may write to it; every program on the host uses the same one.",
		     .omitted = true),
	STRING(LEASES "wait", leases.wait, "0s",
	       "How long a claim waits for GPUs if it sets no time itself (`any:2;wait=30m`, or `NVIDIA_LEASE_WAIT` of the container). `0s`: it is refused at once.",
		     .omitted = true),
	STRING(LEASES "order", leases.order, "fair",
	       "The order of waiting claims. `fifo`: the oldest first; `fair`: the user who has had the least first, and of one user's claims the oldest.",
		     .omitted = true),
	OWN_STRINGS(LEASES "limits", leases.limits,
		    "How many GPUs and MIG devices a user may hold at once: `UID=N`, `NAME=N` for an owner with a name, or `default=N` for all others. Empty = no limit."),
	OWN_STRINGS(LEASES "shared", leases.shared,
		    "GPUs that are lent in slots, to several holders at once: `GPU=N`, by index or UUID, or `all=N`. N is 2 to 48. Claims for whole GPUs do not get them."),
	STRING(LEASES "sharing", leases.sharing, "time-slice",
	       "How holders share a GPU. `time-slice`: they take turns, without limits. `mps`: through NVIDIA's Multi-Process Service, which can set limits.",
		     .omitted = true),
	BOOL(LEASES "mps-exclusive", leases.mps_exclusive, "true",
	     "Set the compute mode of a GPU to `EXCLUSIVE_PROCESS` while it is shared by MPS, so that no program bypasses MPS. It is restored afterwards.",
		     .omitted = true),
	STRING(LEASES "busy", leases.busy, "leases",
	       "What makes a GPU busy. `leases`: a lease. `open`: also a process that computes on it without a lease.",
		     .omitted = true),
	BOOL(LEASES "health", leases.health, "true",
	     "Do not lend a GPU for which the kernel log reports a fault (an Xid that no application caused) until it has recovered.",
		     .omitted = true),
	STRING(LEASES "max-time", leases.max_time, "0s",
	       "The age at which a lease is overdue: `nvidia-ctk lease reclaim --overdue` then ends it, and nothing else does. `0s`: never.",
		     .omitted = true),
	OWN_STRINGS(LEASES "pool", leases.pool, "GPUs that may be lent: indexes and UUIDs; `all` = every one.", "all"),

	OWN_STRINGS(NRI "allowed", nri.allowed,
		    "Which kinds of CDI devices the pods of a namespace may ask for by annotation: `VENDOR/CLASS:NAMESPACE`; `*` for the namespace = every one ([nri.md](nri.md)). Empty = only management devices, for the namespaces that the plugin's options name."),
	STRING(NRI "environment", nri.environment, "allotted",
	       "What `NVIDIA_VISIBLE_DEVICES` and its mounts give to a container through NRI. `allotted`: what the kubelet has given to this container, and nothing else. `accept`: what the two `accept-nvidia-visible-devices` keys accept. `ignore`: nothing.",
		     .omitted = true),
	STRING(NRI "refused", nri.refused, "error",
	       "What happens to a container whose pod asks by annotation for devices that it may not have. `error`: it is not created, and the pod's events say why. `skip`: it starts without them, as with NVIDIA's plugin.",
		     .omitted = true),
};
/* clang-format on */
const size_t graft_config_n_keys = GRAFT_COUNT(graft_config_keys);

bool graft_config_lends(const struct graft_config *config)
{
	return config->leases.mode && (strcmp(config->leases.mode, "on") == 0 || graft_config_enforces(config));
}

bool graft_config_enforces(const struct graft_config *config)
{
	return config->leases.mode && strcmp(config->leases.mode, "enforce") == 0;
}

static void *config_slot(struct graft_config *config, const struct graft_config_key *key)
{
	return (char *)config + key->offset;
}

/* ---- defaults ---- */

static int set_default(const struct graft_config_key *key, struct graft_arena *arena, struct graft_config *config)
{
	struct graft_strings *strings = config_slot(config, key);

	if (!key->standard)
		return 0;
	switch (key->kind) {
	case GRAFT_CONFIG_BOOL:
		*(bool *)config_slot(config, key) = strcmp(key->standard[0], "true") == 0;
		break;
	case GRAFT_CONFIG_STRING:
		*(const char **)config_slot(config, key) = key->standard[0];
		break;
	case GRAFT_CONFIG_STRINGS:
		for (size_t i = 0; key->standard[i]; i++) {
			const char **item = graft_arena_push(arena, &strings->items, &strings->n, sizeof(*item));

			if (!item)
				return -1;
			*item = key->standard[i];
		}
		break;
	}
	return 0;
}

int graft_config_defaults(const struct graft_config_host *host, struct graft_arena *arena,
			  struct graft_config *ret_config, struct graft_error *err)
{
	*ret_config = (struct graft_config){ .arena = arena };
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		if (set_default(&graft_config_keys[i], arena, ret_config) < 0)
			return graft_fail_memory(err);
	}
	if (host && host->suse)
		ret_config->cli.user = "root:video";
	if (host && host->ldconfig)
		ret_config->cli.ldconfig = host->ldconfig;
	return 0;
}

/* ---- reading ---- */

void graft_config_spelling(const struct graft_toml *toml, const char *name, char path[GRAFT_CONFIG_NAME_SIZE])
{
	size_t begin = 0, end, length = strnlen(name, GRAFT_CONFIG_NAME_SIZE - 1);

	memcpy(path, name, length);
	path[length] = '\0';
	if (graft_toml_has(toml, path))
		return;
	for (;; begin = end + 1) {
		end = begin + strcspn(name + begin, ".");
		path[end] = '\0';
		if (!graft_toml_has(toml, path)) {
			for (size_t i = begin; i < end; i++)
				path[i] = (char)toupper((unsigned char)path[i]);
			if (!graft_toml_has(toml, path))
				break;
		}
		if (name[end] == '\0')
			return;
		path[end] = '.';
	}
	/*
	 * Parts that exist keep the document's spelling, so that a parent that is not a table is
	 * still found.
	 */
	memcpy(path + begin, name + begin, length - begin);
	path[length] = '\0';
}

static int read_config_string(const struct graft_toml *toml, const char *path, struct graft_arena *arena,
			      const char **ret_string, struct graft_error *err)
{
	const char *string = NULL;

	if (graft_toml_get_string(toml, path, &string, err) < 0)
		return -1;
	if (!string)
		return 0;
	*ret_string = graft_arena_strdup(arena, string);
	return *ret_string ? 0 : graft_fail_memory(err);
}

/* A list that is present replaces the default, even if it is empty. */
static int read_config_strings(const struct graft_toml *toml, const char *path, struct graft_arena *arena,
			       struct graft_strings *ret_strings, struct graft_error *err)
{
	struct graft_strings strings = { 0 };

	if (graft_toml_get_strings(toml, path, arena, &strings.items, &strings.n, err) < 0)
		return -1;
	if (graft_toml_has(toml, path))
		*ret_strings = strings;
	return 0;
}

static int read_config_key(const struct graft_toml *toml, const struct graft_config_key *key,
			   struct graft_config *config, struct graft_error *err)
{
	void *target = config_slot(config, key);
	char path[GRAFT_CONFIG_NAME_SIZE];

	graft_config_spelling(toml, key->name, path);
	switch (key->kind) {
	case GRAFT_CONFIG_BOOL:
		return graft_toml_get_bool(toml, path, target, err);
	case GRAFT_CONFIG_STRING:
		return read_config_string(toml, path, config->arena, target, err);
	case GRAFT_CONFIG_STRINGS:
		return read_config_strings(toml, path, config->arena, target, err);
	}
	return 0;
}

/* SPEC runtime-and-hook 2.2: the one value that every program validates while reading. */
static int check_ldconfig(const struct graft_toml *toml, const struct graft_config *config, struct graft_error *err)
{
	char path[GRAFT_CONFIG_NAME_SIZE];
	unsigned int line, column;

	if (config->cli.ldconfig[0] == '@' || config->features.allow_ldconfig_from_container)
		return 0;
	graft_config_spelling(toml, CLI "ldconfig", path);
	graft_toml_position(toml, path, &line, &column);
	return graft_fail(err, GRAFT_INVALID, 0,
			  "%s: line %u, column %u: invalid config value: " CLI "ldconfig value \"%s\" is not "
			  "host-relative (does not start with a '@'); allowed: \"@/sbin/ldconfig\", or any path with "
			  "features.allow-ldconfig-from-container = true",
			  graft_toml_name(toml), line, column, config->cli.ldconfig);
}

int graft_config_read(const struct graft_toml *toml, const struct graft_config_host *host, struct graft_arena *arena,
		      struct graft_config *ret_config, struct graft_error *err)
{
	if (graft_config_defaults(host, arena, ret_config, err) < 0)
		return -1;
	ret_config->file = graft_arena_strdup(arena, graft_toml_name(toml));
	if (!ret_config->file)
		return graft_fail_memory(err);
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		if (read_config_key(toml, &graft_config_keys[i], ret_config, err) < 0)
			return -1;
	}
	if (graft_config_find_unknown(toml, arena, &ret_config->unknown, err) < 0)
		return -1;
	return check_ldconfig(toml, ret_config, err);
}
