/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages: error messages that users see, with their usual cause and remedy, and the checks that
 * find the cause on a host. docs/troubleshooting.md is made from the table.
 */
#ifndef GRAFT_DOCTOR_MESSAGES_H
#define GRAFT_DOCTOR_MESSAGES_H

#include <stddef.h>

#include "doctor/judge.h"

/*
 * Each row: texts of which the message contains one, ignoring case and the kind of quotes,
 * separated by '|'; the usual cause; what usually helps; the checks that find the cause, the
 * likeliest first. The first row that matches counts, so special messages precede general ones.
 */
/* clang-format off */
#define GRAFT_MESSAGE_LIST(X) \
	X("device driver \"cdi\"", \
	  "'docker run --device nvidia.com/gpu=...' needs Docker 25 or later; before version 28, CDI must also be switched on.", \
	  "Run 'nvidia-ctk runtime configure --runtime=docker --cdi.enabled && systemctl restart docker'; with an older Docker, use '--gpus'.", \
	  GRAFT_CHECK_ENGINES) \
	X("discover gpu vendor from cdi|no known gpu vendor found", \
	  "A recent Docker found neither nvidia-container-runtime-hook nor a CDI spec of a GPU: the toolkit is not installed, or was installed after the daemon started.", \
	  "Install the package nvidia-container-toolkit, then run 'nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml && systemctl restart docker'.", \
	  GRAFT_CHECK_DOCKER_GPUS, GRAFT_CHECK_PROGRAMS, GRAFT_CHECK_CDI_SPECS) \
	X("could not select device driver", \
	  "Docker looks for nvidia-container-runtime-hook only when its daemon starts, and did not find it in its PATH: the toolkit was installed later or not at all, or Docker was installed by snap.", \
	  "Install the package nvidia-container-toolkit, then run 'systemctl restart docker'.", \
	  GRAFT_CHECK_DOCKER_GPUS, GRAFT_CHECK_PROGRAMS) \
	X("unknown or invalid runtime name|unknown runtime specified", \
	  "The runtime is not registered in Docker's daemon.json, or the daemon has not read the file since it was changed.", \
	  "Run 'nvidia-ctk runtime configure --runtime=docker && systemctl reload docker'.", \
	  GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_CHECK_ENGINES, GRAFT_CHECK_DOCKER_GPUS) \
	X("oci runtime \"nvidia\" not found", \
	  "Podman has no runtime of that name in its configuration.", \
	  "Run 'nvidia-ctk runtime configure --runtime=podman', or use '--device nvidia.com/gpu=all' instead, which needs no runtime.", \
	  GRAFT_CHECK_PODMAN) \
	X("no runtime for \"nvidia\"|failed to find runtime handler nvidia", \
	  "containerd or CRI-O has no runtime nvidia in the configuration that it has read.", \
	  "Run 'nvidia-ctk runtime configure --runtime=containerd && systemctl restart containerd' (CRI-O: '--runtime=crio', 'systemctl restart crio'; K3s and RKE2: restart them).", \
	  GRAFT_CHECK_CONTAINERD_RUNTIME, GRAFT_CHECK_CRIO_RUNTIME, GRAFT_CHECK_ENGINES) \
	X("runtimeclass.node.k8s.io \"nvidia\" not found|runtimeclass \"nvidia\" not found", \
	  "The pod names a RuntimeClass that the cluster does not have.", \
	  "Create it: 'kubectl apply' an object with 'apiVersion: node.k8s.io/v1', 'kind: RuntimeClass', 'metadata: {name: nvidia}' and 'handler: nvidia'; or set runtimeClass.create=true in the Helm chart.", \
	  GRAFT_CHECK_RUNTIME_HANDLER, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_CHECK_CONTAINERD_RUNTIME) \
	X("maximum request size for shared resources", \
	  "The device plugin's config file sets failRequestsGreaterThanOne, or shares GPUs by MPS: a container may ask for only one share.", \
	  "Ask for one. Two shares give no more of a GPU than one; if you need several GPUs, set sharedDevicesAllocationPolicy: distinct and failRequestsGreaterThanOne: false.", \
	  GRAFT_CHECK_DEVICE_PLUGIN) \
	X("cannot allocate unhealthy devices|no healthy devices present", \
	  "All devices of the resource are unhealthy: the device plugin is not running or has lost the kubelet, or the driver has reported a failure of the GPUs.", \
	  "Run 'sudo nvidia-ctk doctor kubernetes' on the node, and look for Xids in 'dmesg | grep -i xid'.", \
	  GRAFT_CHECK_NODE_CAPACITY, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_CHECK_GPU) \
	X("insufficient nvidia.com/|nodes are available", \
	  "No node has as many free devices as a container of the pod asks for: none are offered (no device plugin runs there, or the kubelet does not know it), all are in use, or the plugin offers them under another name, such as nvidia.com/gpu.shared or nvidia.com/mig-1g.5gb.", \
	  "See what nodes offer with 'kubectl get nodes --output custom-columns=NODE:.metadata.name,GPUS:.status.allocatable.nvidia\\.com/gpu'; on a node that should have more, run 'sudo nvidia-ctk doctor kubernetes'.", \
	  GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_CHECK_NODE_CAPACITY, GRAFT_CHECK_KUBELET, GRAFT_CHECK_GPU, GRAFT_CHECK_GPU_OPERATOR) \
	X("nvidia-container-runtime\": executable file not found|nvidia-container-runtime: no such file|nvidia-container-runtime-hook\": executable file not found|nvidia-container-runtime-hook: no such file|nvidia-container-toolkit: no such file|nvidia-cdi-hook: no such file|nvidia-ctk: no such file", \
	  "The engine's configuration, a file in hooks.d or a CDI spec names a program of the toolkit that is not installed, or not in the PATH of the engine.", \
	  "Install the package nvidia-container-toolkit; or take the runtime out of the engine's configuration with 'nvidia-ctk runtime configure --undo'.", \
	  GRAFT_CHECK_PROGRAMS, GRAFT_CHECK_CDI_STALE, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_CHECK_CONTAINERD_RUNTIME, GRAFT_CHECK_CRIO_RUNTIME, GRAFT_CHECK_PODMAN) \
	X("libnvidia-container.so.1: cannot open|libnvidia-container-go.so.1: cannot open", \
	  "A program needs the toolkit's library, whose package is missing or only partly removed.", \
	  "Install the package libnvidia-container1, of the same version as nvidia-container-toolkit.", \
	  GRAFT_CHECK_PROGRAMS) \
	X("invoking the nvidia container runtime hook directly", \
	  "'--gpus' does not work on a Jetson, or on a host whose config.toml sets mode cdi or csv: these need the runtime.", \
	  "Run 'nvidia-ctk runtime configure --runtime=docker && systemctl reload docker', then 'docker run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=all'.", \
	  GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_CHECK_CONFIG) \
	X("error getting hook config|failed to load config|invalid mode \"", \
	  "config.toml cannot be read, or has a value that the toolkit does not understand.", \
	  "Correct the line that the message names; 'nvidia-ctk config default' prints a correct file.", \
	  GRAFT_CHECK_CONFIG) \
	X("unsupported capabilities found in|supported-driver-capabilities", \
	  "NVIDIA_DRIVER_CAPABILITIES of the container, or of its image, names something that is not a capability, or that supported-driver-capabilities in config.toml leaves out.", \
	  "Start it with '--env NVIDIA_DRIVER_CAPABILITIES=compute,utility', or 'all'.", \
	  GRAFT_CHECK_CONFIG) \
	X("in non privileged container", \
	  "The container asks for the right to change or watch MIG devices (NVIDIA_MIG_CONFIG_DEVICES, NVIDIA_MIG_MONITOR_DEVICES), which needs CAP_SYS_ADMIN.", \
	  "Unset the variable, or start the container with '--cap-add SYS_ADMIN'.", \
	  GRAFT_CHECK_MIG) \
	X("unable to configure the docker daemon with file|invalid character '/' looking for|invalid character '#' looking for", \
	  "daemon.json is not valid JSON: usually a comment, or a comma before a closing bracket.", \
	  "Remove it; JSON has neither. Then run 'systemctl reset-failed docker; systemctl restart docker'.", \
	  GRAFT_CHECK_ENGINES) \
	X("\"nvidia-smi\": executable file not found|executable file \"nvidia-smi\" not found|failed to exec \"nvidia-smi\"|nvidia-smi: command not found|nvidia-smi: not found|nvidia-smi: no such file", \
	  "The container got no GPU, or not the driver's tools: it was started without '--gpus' or its equivalent, or NVIDIA_DRIVER_CAPABILITIES does not include 'utility', or the host has no nvidia-smi.", \
	  "Start it with a GPU ('docker run --gpus all', 'podman run --device nvidia.com/gpu=all') and, if the image sets capabilities, with '--env NVIDIA_DRIVER_CAPABILITIES=compute,utility'.", \
	  GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_CHECK_DOCKER_GPUS, GRAFT_CHECK_PODMAN) \
	X("nvidia driver was not detected", \
	  "The image's start script found no GPU in the container: it was started without one.", \
	  "Start it with a GPU ('docker run --gpus all', 'podman run --device nvidia.com/gpu=all').", \
	  GRAFT_CHECK_DOCKER_GPUS, GRAFT_CHECK_PODMAN, GRAFT_CHECK_KERNEL_MODULE) \
	X("libcuda.so.1: cannot open shared object file|libcuda.so: cannot open shared object file|could not load dynamic library 'libcuda.so|could not find cuda drivers on your machine|failed call to cuinit: unknown error (303)", \
	  "The container has no CUDA library: it was started without a GPU, or NVIDIA_DRIVER_CAPABILITIES does not include 'compute', or the host lacks the driver's compute libraries. In an image without glibc (Alpine) the library cannot be loaded.", \
	  "Start it with a GPU ('docker run --gpus all') and, if the image sets capabilities, with '--env NVIDIA_DRIVER_CAPABILITIES=compute,utility'.", \
	  GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_CHECK_LOADER_CACHE, GRAFT_CHECK_DOCKER_GPUS, GRAFT_CHECK_CONFIG) \
	X("ldconfig.real|ldcache error|process /sbin/ldconfig|could not start /sbin/ldconfig|ldconfig failed with error code|ldconfig terminated with signal", \
	  "Another container toolkit prints this: it runs ldconfig, and the program that its config.toml names does not exist (only Ubuntu has ldconfig.real) or fails in the image. This toolkit runs no ldconfig.", \
	  "Find it with 'type -a nvidia-container-cli nvidia-container-runtime-hook', remove it, and restart the engine. To keep it: 'nvidia-ctk config --in-place --set nvidia-container-cli.ldconfig=@/sbin/ldconfig' (Ubuntu: @/sbin/ldconfig.real).", \
	  GRAFT_CHECK_PROGRAMS, GRAFT_CHECK_CONFIG) \
	X("gpu access blocked by the operating system", \
	  "On WSL2, the Windows driver cannot be used: a Linux driver is installed in the distribution or in the image, the Windows driver or WSL is too old, or the GPU is in TCC mode.", \
	  "Remove the Linux driver ('apt-get purge \"libnvidia-*\"'), update the Windows driver, and run 'wsl --update' and 'wsl --shutdown' in Windows.", \
	  GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_CHECK_IMAGE, GRAFT_CHECK_NVML) \
	X("libnvidia-ml.so.1: cannot open shared object file|load library failed|nvml shared library not found", \
	  "The driver is not installed where the containers run, or not where the loader looks; or the container was started without a GPU.", \
	  "Install the NVIDIA driver on the host. If 'nvidia-smi' works there, start the container with a GPU ('docker run --gpus all').", \
	  GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_CHECK_LOADER_CACHE, GRAFT_CHECK_CONFIG, GRAFT_CHECK_KERNEL_MODULE, GRAFT_CHECK_DOCKER_GPUS) \
	X("unsupported display driver / cuda driver combination|error 803|cuda_error_system_driver_mismatch|cudaerrorsystemdrivermismatch", \
	  "The CUDA library that was loaded and the kernel module belong to different drivers: the image's compatibility libraries do not suit this driver, the image ships its own driver, or the driver was upgraded without a reboot.", \
	  "Reboot after an upgrade of the driver. Otherwise take the image's 'compat' directory out of LD_LIBRARY_PATH, or use an image for this driver's CUDA.", \
	  GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_CHECK_CUDA_COMPAT, GRAFT_CHECK_IMAGE, GRAFT_CHECK_REQUIREMENT) \
	X("forward compatibility was attempted|error 804|cuda_error_compat_not_supported_on_device|cudaerrorcompatnotsupportedondevice", \
	  "The image's CUDA compatibility libraries were loaded, and they support data centre GPUs only.", \
	  "Install a driver for the image's CUDA, or use an image for an older CUDA.", \
	  GRAFT_CHECK_CUDA_COMPAT, GRAFT_CHECK_REQUIREMENT, GRAFT_CHECK_LIBRARY_VERSIONS) \
	X("system not yet initialized|error 802|cuda_error_system_not_ready|cudaerrorsystemnotready", \
	  "The fabric manager, which hosts with NVSwitches need, is not running.", \
	  "Run 'systemctl enable --now nvidia-fabricmanager'; its version must be the driver's.", \
	  GRAFT_CHECK_FABRIC_MANAGER, GRAFT_CHECK_NVML) \
	X("insufficient for cuda runtime version|cudaerrorinsufficientdriver", \
	  "The image needs a newer CUDA than the driver supports; or the container was started without a GPU, so that it has no driver.", \
	  "Run 'nvidia-smi' in the container. If it is not found, start the container with a GPU ('docker run --gpus all'); otherwise install a newer driver, or use an image for the CUDA version that it prints.", \
	  GRAFT_CHECK_REQUIREMENT, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_CHECK_DOCKER_GPUS) \
	X("no kernel image is available|cudaerrornokernelimagefordevice|cuda_error_no_binary_for_gpu", \
	  "The image's programs were not built for this GPU: it is newer or older than any that they support.", \
	  "Use a newer version of the image or of its framework; for an old GPU, an older one.", \
	  GRAFT_CHECK_GPU) \
	X("torch not compiled with cuda|was not compiled with cuda support", \
	  "The framework in the image was built without CUDA, so it cannot use a GPU.", \
	  "Install the framework's CUDA package in the image, or use an image that has it.", \
	  GRAFT_CHECK_GPU) \
	X("driver/library version mismatch", \
	  "The driver was upgraded while the old kernel module stayed loaded.", \
	  "Reboot.", \
	  GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_CHECK_NVML) \
	X("failed to initialize nvml: unknown error", \
	  "The container has device nodes that it cannot open. A running container loses them at 'systemctl daemon-reload' or 'docker update' if systemd does not know the devices; if they fail from the start, the cause is no-cgroups in config.toml.", \
	  "Restart the container to give it back its GPUs. If it loses them again, 'nvidia-ctk doctor --container NAME' says why.", \
	  GRAFT_CHECK_DEV_CHAR_LINKS, GRAFT_CHECK_CONFIG, GRAFT_CHECK_CGROUP, GRAFT_CHECK_CGROUP_RIGHTS) \
	X("gpu is lost|fallen off the bus|unable to determine the device handle", \
	  "A GPU has stopped responding.", \
	  "See 'dmesg | grep -iE \"nvrm|xid\"', then power the host off and on; if it happens again, have the GPU replaced.", \
	  GRAFT_CHECK_GPU, GRAFT_CHECK_NVML) \
	X("insufficient permissions", \
	  "Only some users and groups can open the device nodes, or SELinux forbids it.", \
	  "Run 'ls -l /dev/nvidia*'. If the mode is not 0666, run 'chmod 0666 /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm*', or give the container's user the group of the nodes.", \
	  GRAFT_CHECK_DEVICE_MODES, GRAFT_CHECK_SELINUX, GRAFT_CHECK_NVML) \
	X("module nvidia not found in directory|key was rejected by service", \
	  "The driver's kernel module was not built for the running kernel, or Secure Boot refuses it.", \
	  "Install the headers of the running kernel (Debian, Ubuntu: 'apt install linux-headers-$(uname -r)') and the driver again; with Secure Boot, enrol the key with which it was signed ('mokutil --import').", \
	  GRAFT_CHECK_KERNEL_MODULE) \
	X("driver not loaded|couldn't communicate with the nvidia driver|found no nvidia driver on your system", \
	  "The host has no driver, its kernel module is not loaded, or its device nodes are missing; or the container was started without a GPU.", \
	  "Run 'nvidia-smi' on the host. If it fails, install the driver or load it with 'modprobe nvidia'; if it works, start the container with a GPU ('docker run --gpus all').", \
	  GRAFT_CHECK_KERNEL_MODULE, GRAFT_CHECK_DEVICE_NODES, GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_CHECK_GPU) \
	X("no cuda gpus are available|no cuda-capable device is detected|cuda_error_no_device|cudaerrornodevice|cuda.is_available", \
	  "The program can use none of the GPUs: the container was started without one, CUDA_VISIBLE_DEVICES hides them, all are in MIG mode without instances, or the container lost its devices.", \
	  "Run 'nvidia-smi -L' in the container. If it lists no GPU, start it with one ('docker run --gpus all'); if it does, unset CUDA_VISIBLE_DEVICES.", \
	  GRAFT_CHECK_GPU, GRAFT_CHECK_KERNEL_MODULE, GRAFT_CHECK_DEVICE_NODES, GRAFT_CHECK_MIG, GRAFT_CHECK_NVML, GRAFT_CHECK_DOCKER_GPUS) \
	X("cuda driver initialization failed|cuda unknown error|cuda_error_unknown|cudaerrorunknown|error 999|cuda_error_not_initialized|cudaerrorinitializationerror", \
	  "CUDA cannot use the driver although the GPU is there: nvidia-uvm is not loaded, its node is missing or left from an earlier boot, the host was suspended, or a GPU has failed.", \
	  "Run 'modprobe nvidia-uvm' on the host; after a suspend, end all CUDA programs and run 'modprobe -r nvidia-uvm && modprobe nvidia-uvm'.", \
	  GRAFT_CHECK_KERNEL_MODULE, GRAFT_CHECK_DEVICE_NODES, GRAFT_CHECK_NVML, GRAFT_CHECK_FABRIC_MANAGER, GRAFT_CHECK_GPU, GRAFT_CHECK_MIG) \
	X("libxext.so.6: cannot open|libx11.so.6: cannot open|associated with icd json libglx_nvidia|vkcreateinstance: found no drivers|vkcreateinstance failed with error_incompatible_driver", \
	  "The driver's Vulkan library needs libXext.so.6 and libX11.so.6, even without a display, and the image does not have them; or the container was started without the capability graphics.", \
	  "Install them in the image (Debian, Ubuntu: 'apt-get install libxext6'), and start it with NVIDIA_DRIVER_CAPABILITIES=all, or with graphics in the list.", \
	  GRAFT_CHECK_IMAGE, GRAFT_CHECK_DRIVER_LIBRARY) \
	X("file creation failed|: file exists", \
	  "The image contains a driver's libraries, usually installed as a dependency. Another toolkit refuses to replace them; this one mounts over them.", \
	  "Remove them from the image (Debian, Ubuntu: 'apt-get purge \"libnvidia-compute-*\"').", \
	  GRAFT_CHECK_IMAGE, GRAFT_CHECK_PROGRAMS) \
	X("cgroup subsystem devices not found", \
	  "The devices controller of cgroup v1 is missing: the program runs in a container, or on cgroup v2 with an old library of another toolkit.", \
	  "Give the container the host's /sys/fs/cgroup ('--cgroupns=host'), or upgrade libnvidia-container1.", \
	  GRAFT_CHECK_CGROUP, GRAFT_CHECK_PROGRAMS) \
	X("bpf_prog_query|bpf_prog_attach", \
	  "Only root of the initial user namespace can change the device rules of cgroup v2; a rootless engine cannot.", \
	  "Use CDI ('--device nvidia.com/gpu=all') or '--runtime=nvidia', neither of which changes the rules later.", \
	  GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_CHECK_USER_NAMESPACES) \
	X("unknown field \"additionalgids\"|unknown field \"hostpath\"|failed to unmarshal cdi spec|failed to parse cdi spec", \
	  "The spec uses a newer CDI version than the engine knows.", \
	  "Run 'nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml': it writes what every engine of this host reads.", \
	  GRAFT_CHECK_PODMAN, GRAFT_CHECK_CDI_SPECS) \
	X("adding custom device \"nvidia.com/|stat nvidia.com/", \
	  "The engine, or Compose, takes the CDI name for a device node, as versions that do not know CDI do: Docker before 25, Compose 1, Podman before 4.1.", \
	  "With Docker, use '--gpus all'; with Podman, use '--runtime /usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=all'; or install a newer version.", \
	  GRAFT_CHECK_ENGINES, GRAFT_CHECK_PODMAN, GRAFT_CHECK_DOCKER_GPUS) \
	X("unresolvable cdi devices|failed to inject cdi devices|unresolvable cdi device", \
	  "The engine found no such device in its CDI specs: no spec exists or has the device, the spec is in another directory, or its CDI version is too new for the engine.", \
	  "Run 'nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml', then 'nvidia-ctk cdi list' for the names.", \
	  GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_CHECK_CDI_SPECS, GRAFT_CHECK_CDI_STALE, GRAFT_CHECK_PODMAN, GRAFT_CHECK_GPU, GRAFT_CHECK_MIG) \
	X("unknown device", \
	  "This host does not have the device, or no longer has it: the GPU was replaced, MIG was set up again, or the name is from another host.", \
	  "Run 'nvidia-smi -L' for the names, and correct the compose file, pod or template.", \
	  GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_CHECK_GPU, GRAFT_CHECK_MIG) \
	X("unexpectedadmissionerror|allocate failed due to|requested number of devices unavailable", \
	  "The kubelet could not give the pod its devices: the device plugin was not running yet, as just after a boot or a restart of the kubelet, or it refused them.", \
	  "Delete the pod: the kubelet does not try again, but the pod's controller creates a new one. If it happens after each boot, run the device plugin as a service of the node, which starts before the kubelet admits pods.", \
	  GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_CHECK_NODE_CAPACITY, GRAFT_CHECK_KUBELET, GRAFT_CHECK_GPU) \
	X("rpc error: timed out", \
	  "The driver needs more than 10 s to initialise the GPUs, which it does at each start unless a program keeps them initialised.", \
	  "Run 'systemctl enable --now nvidia-persistenced'. Another toolkit prints this; this one has no such limit.", \
	  GRAFT_CHECK_START_TIME, GRAFT_CHECK_PERSISTENCE, GRAFT_CHECK_NVML, GRAFT_CHECK_GPU) \
	X("unsatisfied condition", \
	  "The image needs a newer CUDA than the driver supports.", \
	  "Install a newer driver, or use an image for an older CUDA.", \
	  GRAFT_CHECK_REQUIREMENT, GRAFT_CHECK_CUDA_COMPAT) \
	X("is stale|cannot stat", \
	  "A CDI spec names files or devices that no longer exist, usually since an upgrade of the driver.", \
	  "Run 'nvidia-ctk cdi refresh'.", \
	  GRAFT_CHECK_CDI_STALE) \
	X("no space left on device|disk quota exceeded", \
	  "A file system is full, or out of inodes.", \
	  "Find it with 'df -h' and 'df -i'; 'docker system prune' removes unused containers and images.", \
	  GRAFT_CHECK_DISK_SPACE)
/* clang-format on */

struct graft_doctor_message {
	const char *texts, *cause, *remedy;
	enum graft_check checks[8];
	size_t n_checks;
};
extern const struct graft_doctor_message graft_doctor_messages[];
extern const size_t graft_n_doctor_messages;

/* Finds the row of a message; NULL if no row knows it. */
const struct graft_doctor_message *graft_doctor_find_message(const char *message);

#endif
