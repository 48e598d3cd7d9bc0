/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_config: what the programs for Kubernetes are configured with (SPEC kubernetes 6.1, 6.2): the
 * command line beats the environment, which beats the config file, which beats the defaults. The
 * structs have the shape of the config file, so that the effective configuration, printed as JSON,
 * is a config file again.
 *
 * Strings are never NULL unless noted; empty means not set. All memory belongs to the caller's
 * arena.
 */
#ifndef GRAFT_KUBERNETES_KUBE_CONFIG_H
#define GRAFT_KUBERNETES_KUBE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "kubernetes/kube_choice.h"

#define GRAFT_KUBE_PREFIX "nvidia.com/" /* of every resource name */

enum graft_kube_mig_strategy { GRAFT_KUBE_MIG_NONE, GRAFT_KUBE_MIG_SINGLE, GRAFT_KUBE_MIG_MIXED };
/* How a container learns which devices it has; bits, since several may be used at once. */
enum graft_kube_list_strategy {
	GRAFT_KUBE_LIST_ENVVAR = 1u << 0,
	GRAFT_KUBE_LIST_VOLUME_MOUNTS = 1u << 1,
	GRAFT_KUBE_LIST_CDI_ANNOTATIONS = 1u << 2,
	GRAFT_KUBE_LIST_CDI_CRI = 1u << 3,
};
#define GRAFT_KUBE_LIST_CDI ((uint32_t)(GRAFT_KUBE_LIST_CDI_ANNOTATIONS | GRAFT_KUBE_LIST_CDI_CRI))
/*
 * How failed GPUs are detected; bits. If any is set, the presence of each GPU is checked as well.
 */
enum graft_kube_health_source {
	GRAFT_KUBE_HEALTH_KMSG = 1u << 0,
	GRAFT_KUBE_HEALTH_NVML = 1u << 1,
	GRAFT_KUBE_HEALTH_NONE = 1u << 2,
};
enum graft_kube_id_strategy { GRAFT_KUBE_ID_UUID, GRAFT_KUBE_ID_INDEX };
/* Which replicas of shared devices a container gets, where there is a choice. */
enum graft_kube_policy {
	GRAFT_KUBE_DISTRIBUTED, /* from the device that is used least */
	GRAFT_KUBE_PACKED,      /* from the device that is used most */
	GRAFT_KUBE_DISTINCT,    /* distributed, and never two of one device: that is an error */
};
enum graft_kube_discovery {
	GRAFT_KUBE_DISCOVERY_AUTO,
	GRAFT_KUBE_DISCOVERY_NVML,
	GRAFT_KUBE_DISCOVERY_TEGRA,
};
enum graft_kube_sharing_strategy { GRAFT_KUBE_NOT_SHARED, GRAFT_KUBE_TIME_SLICING, GRAFT_KUBE_MPS };

/* The words of these enums, indexed by value; of the list strategies, by bit number. */
extern const char *const graft_kube_mig_strategies[3];
extern const char *const graft_kube_list_strategies[4];
extern const char *const graft_kube_health_sources[3];
extern const char *const graft_kube_id_strategies[2];
extern const char *const graft_kube_policies[3];
extern const char *const graft_kube_discoveries[3];
extern const char *const graft_kube_sharing_strategies[3];

/* flags.plugin of the config file. */
struct graft_kube_plugin_flags {
	bool pass_device_specs;
	uint32_t device_list_strategy; /* bits GRAFT_KUBE_LIST_*; at least one */
	enum graft_kube_id_strategy device_id_strategy;
	const char *cdi_annotation_prefix;
	const char *cdi_hook_path;         /* as seen on the host */
	const char *container_driver_root; /* where this process sees the driver root, if it runs in a container */
	enum graft_kube_policy sharing_policy;
	/* What follows has no key in the config file of the existing plugin. */
	const char *kubelet_socket; /* empty: serve, but do not register */
	const char *registry;     /* directory where the kubelet looks for plugins by itself; empty: register with it */
	const char *listen;       /* address of metrics (daemon/http.h); empty: none */
	const char *state_folder; /* directory for state that is kept until the next boot */
	const char **cdi_feature_flags, **cdi_disabled_hooks;
	size_t n_cdi_feature_flags, n_cdi_disabled_hooks;
	bool cdi_late_mounts;    /* a hook mounts the files of a specification */
	bool respect_leases;     /* do not offer GPUs that others hold (docs/leases.md) */
	uint32_t health_sources; /* bits GRAFT_KUBE_HEALTH_*; at least one */
	const char *disable_health_checks,
	    *enable_health_checks; /* lists of Xids, "all", "xids" (SPEC kubernetes 6.8) */
};

/* flags.gfd of the config file. */
struct graft_kube_gfd_flags {
	bool oneshot, no_timestamp;
	const char *sleep_interval; /* a duration that graft_kube_parse_duration() reads */
	const char *output_file;    /* empty: standard output */
	const char *machine_type_file;
};

/* flags of the config file. */
struct graft_kube_flags {
	enum graft_kube_mig_strategy mig_strategy;
	bool fail_on_init_error;
	const char *driver_root, *dev_root; /* on the host; dev_root empty: the driver root */
	bool gdrcopy, gds, mofed;
	const char *mps_root; /* on the host */
	enum graft_kube_discovery discovery;
	bool use_node_feature_api;
	struct graft_kube_plugin_flags plugin;
	struct graft_kube_gfd_flags gfd;
};

/* A resource whose devices are shared. */
struct graft_kube_shared_resource {
	const char *name;   /* with its prefix: "nvidia.com/gpu" */
	const char *rename; /* the name of the shared devices' resource; empty: by `rename_by_default` */
	uint32_t replicas;  /* of each device, at least 2 */
	/*
	 * The devices that are shared: indexes "0", MIG indexes "0:1", UUIDs. Without any, the
	 * first `n_first` ones, or if that is 0 all of them.
	 */
	const char **devices;
	size_t n_devices;
	uint32_t n_first;
};

/* sharing.timeSlicing or sharing.mps of the config file. */
struct graft_kube_replication {
	bool rename_by_default; /* shared devices become resource NAME.shared */
	bool fail_requests_greater_than_one;
	struct graft_kube_shared_resource *resources;
	size_t n_resources;
};

struct graft_kube_sharing {
	struct graft_kube_replication time_slicing, mps;
};

struct graft_kube_imex {
	uint32_t channels; /* bits 1 << N: none, or channel 0 */
	bool required;
};

/* Where the API server is, and the identity that this program uses there. */
struct graft_kube_api_flags {
	const char *kubeconfig; /* empty: as a pod of the cluster */
	const char *namespace_, *node_name, *pod_name;
	double qps; /* requests to the API server per second, in the long run; negative: unlimited */
	int burst;  /* requests at once */
};

/* What config-manager does with a choice (SPEC kubernetes 7). */
struct graft_kube_manager_flags {
	bool oneshot, send_signal;
	const char *destination; /* the link to the file */
	const char *process;     /* that gets the signal, by the first argument it was started with */
	int signal;
};

struct graft_kube_config {
	const char *version; /* "v1" */
	struct graft_kube_flags flags;
	struct graft_kube_sharing sharing;
	struct graft_kube_imex imex;
	/* Not part of the JSON form. */
	struct graft_kube_api_flags api;
	struct graft_kube_choice choice; /* with a label: the file that it chooses is read, and config_file is empty */
	struct graft_kube_manager_flags manager;
	const char *config_file; /* empty: none */
	bool print_config, once; /* the program prints and ends */
	const char
	    *clear_health; /* GPU that the administrator declares healthy, after which the program ends; empty: none */
};

/* The command line of nvidia-device-plugin: every option, with its variables. */
extern const struct graft_command graft_kube_plugin_command;
/* The command line of gpu-feature-discovery. */
extern const struct graft_command graft_kube_gfd_command;
/* The command line of config-manager. */
extern const struct graft_command graft_kube_manager_command;
/* The command line of mps-control-daemon. */
extern const struct graft_command graft_kube_mps_command;

/* Returns whether the program has that option, of which `option` is the name without dashes. */
bool graft_kube_has_option(const struct graft_command *command, const char *option);

/* The caller's arguments and environment. */
struct graft_kube_sources {
	const struct graft_command *command; /* graft_kube_plugin_command, or another with such options */
	int argc;
	char **argv;
	const char *(*variable)(const char *name); /* as in base/options.h */
	const struct graft_log *log;               /* for warnings: unknown keys, keys that are ignored */
	/* The file to read instead of the one that the options name; "": none; NULL: the one of the options. */
	const char *config_file;
};

/*
 * Makes the configuration of `sources`, reading the config file if one is named. May be called
 * again with the same arguments, after the file has changed. *ret_result as in
 * graft_options_parse(): with HELP, USAGE and VERSION *ret_config is not set. Returns 0, or -1:
 * GRAFT_INVALID with the messages of base/options.h or, for a value, those of SPEC kubernetes 6.2;
 * GRAFT_FORMAT for a file, "FILE: line 1, column 2: ..."; the error of reading it; GRAFT_NO_MEMORY.
 */
int graft_kube_configure(const struct graft_kube_sources *sources, struct graft_arena *arena,
			 struct graft_kube_config *ret_config, enum graft_parse_result *ret_result,
			 struct graft_error *err);

/* Sets every member to its default. */
void graft_kube_config_default(struct graft_kube_config *config);
/*
 * Puts the settings of a config file, YAML or JSON, over those in `config`. `file` is its name in
 * messages. Returns 0, or -1 with GRAFT_FORMAT, GRAFT_TOO_BIG (more than 1 MiB) or
 * GRAFT_NO_MEMORY.
 */
int graft_kube_config_parse(const char *file, const char *text, size_t length, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_kube_config *config, struct graft_error *err);
/*
 * Checks settings in combination: for the devices and their labels; for everything that the plugin
 * gives. Returns 0, or -1 with GRAFT_INVALID and the messages of SPEC kubernetes 6.2.
 */
int graft_kube_sharing_check(const struct graft_kube_config *config, struct graft_error *err);
int graft_kube_config_check(const struct graft_kube_config *config, struct graft_error *err);
/* Appends the configuration as JSON, which is a config file with every key. */
void graft_kube_config_write(const struct graft_kube_config *config, struct graft_buffer *out);

/*
 * The sharing in effect (SPEC kubernetes 6.2): MPS if it has resources, else time slicing; NULL and
 * GRAFT_KUBE_NOT_SHARED if neither has any.
 */
const struct graft_kube_replication *graft_kube_replication(const struct graft_kube_config *config,
							    enum graft_kube_sharing_strategy *ret_strategy);

/*
 * Parses a duration as Go does ("60s", "1h30m", "1.5ms"), a number of nanoseconds, or "infinite",
 * which is -1. Returns false if the text is none of them, is negative or does not fit.
 */
bool graft_kube_parse_duration(const char *text, int64_t *ret_ns);

/*
 * Checks a resource name with its prefix: at most 63 characters, and what follows the prefix is a
 * DNS subdomain. Returns 0, or -1 with GRAFT_INVALID.
 */
int graft_kube_check_resource(const char *name, struct graft_error *err);

#endif
