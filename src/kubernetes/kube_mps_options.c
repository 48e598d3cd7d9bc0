/* SPDX-License-Identifier: Apache-2.0 */
/* kube_mps_options: the command line of mps-control-daemon (SPEC kubernetes 9). */
#include "base/cleanup.h"
#include "kubernetes/kube_mps.h"
#include "kubernetes/kube_options.h"

/* clang-format off */
static const struct graft_option mps_daemon_options[] = {
	{ .name = "config-file", TEXT, AT(config_file), .value_name = "FILE", ENV("CONFIG_FILE"),
	  .help = "File with the settings of nvidia-device-plugin, in YAML or JSON" },
	{ .name = "mig-strategy", WORD, AT(flags.mig_strategy), ENV("MIG_STRATEGY"), WORDS("none", "single", "mixed"),
	  .help = "How to offer MIG devices: none, or single and mixed, which MPS does not allow (default none)" },
	{ .name = "fail-on-init-error", FLAG, AT(flags.fail_on_init_error), ENV("FAIL_ON_INIT_ERROR"),
	  .help = "Exit with an error if driver or config file cannot be read, or a daemon cannot be started; if false, try again (default true)" },
	{ .name = "mps-root", TEXT, AT(flags.mps_root), .value_name = "DIR", ENV("MPS_ROOT"),
	  .help = "Directory of the daemons, which containers see at /mps (default /run/nvidia/mps)" },
	{ .name = "driver-root", DIRECTORY, AT(flags.driver_root), ALIAS("nvidia-driver-root"), ENV("NVIDIA_DRIVER_ROOT"),
	  .help = "Root of the driver's files on the host (default /)" },
	{ .name = "driver-root-ctr-path", DIRECTORY, AT(flags.plugin.container_driver_root), ALIAS("container-driver-root"),
	  ENV("DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"),
	  .help = "Path of the driver root as seen by this process (default /driver-root)" },
	{ .name = "device-discovery-strategy", WORD, AT(flags.discovery), ENV("DEVICE_DISCOVERY_STRATEGY"),
	  WORDS("auto", "nvml", "tegra"), .help = "What kind of system this is: auto, nvml or tegra (default auto)" },
	KUBE_CHOICE_OPTIONS("none: --config-file applies"),
	KUBE_NODE_OPTIONS,
	{ .name = "print-config", FLAG, AT(print_config), .help = "Print the effective configuration as JSON and exit" },
};
/* clang-format on */

static const struct graft_manual_section mps_daemon_sections[] = {
	{ "COMMANDS", "*mount-shm*\n\tMount a tmpfs at _shm_ in the directory of the daemons, for the shared memory of "
		      "daemons and programs, unless there is one, and exit. For an init container whose mounts reach "
		      "the host. Without it, the program mounts the tmpfs when it starts the first daemon." },
	{ "DAEMONS",
	  "Each resource that _sharing.mps_ of the config file shares has one daemon, which serves the resource's "
	  "GPUs. With N replicas, each program gets at most 1/N of a GPU's memory and of its processors; more than 48 "
	  "replicas (16 on GPUs before Volta), GPUs in MIG mode and MIG "
	  "devices are errors. While a daemon runs, its GPUs are in compute mode EXCLUSIVE_PROCESS, so that no program "
	  "bypasses it; afterwards they are in DEFAULT. The daemon's log is copied to standard output.\n\n"
	  "A daemon that ends early is restarted. After *SIGHUP*, and when the node's label chooses another "
	  "file, only daemons whose GPUs or limits have changed are restarted, which ends their programs. Daemons that "
	  "this program finds when it starts, with the same GPUs and limits, keep running; others are ended.\n\n"
	  "A daemon serves one user id at a time: programs of other users wait." },
	{ "SIGNALS", "*SIGHUP*\n\tReread configuration and host. If that fails, nothing changes, and the program "
		     "tries again later.\n\n*SIGTERM*, *SIGINT*, *SIGQUIT*\n\tEnd the daemons and exit." },
	{ "FILES",
	  "_/run/nvidia/mps/nvidia.com/gpu/pipe_\n\tWhere programs find the daemon of a resource. "
	  "*nvidia-device-plugin*(8) mounts it in containers at _/mps/nvidia.com/gpu/pipe_, and names it in "
	  "CUDA_MPS_PIPE_DIRECTORY.\n\n_/run/nvidia/mps/nvidia.com/gpu/log_\n\tIts logs, removed when it ends.\n\n"
	  "_/run/nvidia/mps/nvidia.com/gpu/.started_\n\tExists while the daemon serves programs.\n\n"
	  "_/run/nvidia/mps/nvidia.com/gpu/.daemon_\n\tIts GPUs and limits.\n\n"
	  "_/run/nvidia/mps/shm_\n\tA tmpfs of half the memory of the host, _/dev/shm_ of daemons and containers.\n\n"
	  "_/mps_\n\tThe same directory in a container; if it exists, *--mps-root* is not used." },
	{ "PRIVILEGES", "Root, with CAP_SYS_ADMIN for the mounts; in a pod, _privileged: true_." },
	{ "EXIT STATUS", "*0* after a signal, and for *mount-shm* and options that only print. *1* on failure; the "
			 "message names cause and remedy." },
	{ "EXAMPLES",
	  "Share each GPU among four containers:\n\n```\ncat >mps.yaml <<EOF\nversion: v1\nsharing:\n  mps:\n    "
	  "resources:\n    - name: nvidia.com/gpu\n      replicas: 4\nEOF\nmps-control-daemon --config-file=mps.yaml\n"
	  "```" },
	{ "SEE ALSO", "*nvidia-device-plugin*(8), *config-manager*(8)" },
};

const struct graft_command graft_kube_mps_command = {
	.name = "mps-control-daemon",
	.arguments = "[mount-shm]",
	.values = (const char *const[]){ "mount-shm", NULL },
	.summary = "Run the MPS daemons of GPUs that pods share",
	.description = GRAFT_DOC(
	    "Runs NVIDIA's MPS control daemon, nvidia-cuda-mps-control, for each resource that the configuration of "
	    "nvidia-device-plugin shares by MPS, and limits the memory and processors of each program.\n\n"
	    "Each option can also be set by its environment variable, and by its key in the config file. The command "
	    "line takes precedence, then the variable."),
	GRAFT_MANUAL(mps_daemon_sections),
	.options = mps_daemon_options,
	.n_options = GRAFT_COUNT(mps_daemon_options),
	.max_arguments = -1,
	.go_style = true,
	.stop_at_first_argument = true,
};
