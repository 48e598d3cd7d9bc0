# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the suites share that give the device plugin's answers to containerd by Kubernetes' interface, as a kubelet does; on top of engines.bash.

# start_plugin_machine [RELEASE]: with this machine's containerd, or the one of that release of Debian, which reads CDI specifications itself.
start_plugin_machine() {
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  start_machine dgx-h100
  [ $# -eq 0 ] || use_engines "$1" containerd ctr || return
  [ ! -e "$machine/why" ] || return 0
  configure_containerd ""
  [ $# -eq 0 ] || enable_cdi
  restart_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
}

# plugin_gives STRATEGY...: a container of two GPUs; $expected are their indexes, $arguments what a kubelet asks of containerd for it.
plugin_gives() {
  local word options=()
  for word; do options+=(--device-list-strategy "$word"); done
  mkdir -p "$work/$1"
  NVIDIA_CDI_HOOK_PATH=$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook on_host sh -c 'cd "$0" && exec timeout 120 /usr/bin/python3 "$@"' "$work/$1" \
    "$top/test/kubernetes/kubelet.py" container "$build/src/daemon/nvidia-device-plugin" "${options[@]}"
  mapfile -t arguments <"$work/$1/arguments"
  mapfile -t expected < <(host_uuids | grep -nFf "$work/$1/devices" | while IFS=: read -r line _; do echo $((line - 1)); done)
  [ ${#expected[@]} -eq 2 ]
}

# expect_container [CRI-OPTION...]: a container that the plugin has answered for has its two GPUs, and the driver's libraries.
expect_container() {
  cri_run "$@" "${arguments[@]}"
  expect_gpus "${expected[@]}"
  expect_libraries
}

# by_STRATEGY: a container of each strategy; with RuntimeClass or without, as docs/kubernetes.md says.
by_variables() {
  plugin_gives envvar
  expect_container --handler nvidia
}

by_mounts() {
  config_toml <<TOML
accept-nvidia-visible-devices-as-volume-mounts = true
TOML
  plugin_gives volume-mounts
  expect_container --handler nvidia
}

by_annotations() {
  plugin_gives cdi-annotations
  [[ ${arguments[*]} == *"--annotation cdi.k8s.io/nvidia-device-plugin_"*"=k8s.device-plugin.nvidia.com/gpu=GPU-"* ]]
  on_host test -s /var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json
  expect_container "$@"
}

by_names() {
  plugin_gives cdi-cri
  [[ ${arguments[*]} == "--cdi-device k8s.device-plugin.nvidia.com/gpu=GPU-"*" --cdi-device k8s.device-plugin.nvidia.com/gpu=GPU-"* ]]
  expect_container "$@"
}

# As the GPU Operator has it: both ways name the devices, and the container has the runtime class.
by_annotations_and_names() {
  plugin_gives cdi-annotations cdi-cri
  [[ ${arguments[*]} == *"--annotation "*" --cdi-device "* ]]
  expect_container --handler nvidia
}

# What the plugin does not name is refused by the engine: the answers above are not met by chance.
by_wrong_names() {
  plugin_gives cdi-cri
  cri_run --cdi-device k8s.device-plugin.nvidia.com/gpu=GPU-1
  [ "$status" -ne 0 ]
  [[ $output == *"k8s.device-plugin.nvidia.com/gpu=GPU-1"* ]]
  cri_run
  expect_no_gpu
}

# by_gates STRATEGY [CRI-OPTION...]: what GPUs use beside themselves, where the plugin is told so, and nothing of it where it is not.
by_gates() {
  local strategy=$1 nodes='ls -d /dev/gdrdrv /dev/nvidia-fs0 /dev/nvidia-fs15 /dev/infiniband/uverbs7 /dev/infiniband/rdma_cm 2>/dev/null; true'
  shift
  GDRCOPY_ENABLED=true GDS_ENABLED=true MOFED_ENABLED=true plugin_gives "$strategy"
  [[ " ${arguments[*]} " == *" --env NVIDIA_GDRCOPY=enabled "* && " ${arguments[*]} " == *" --env NVIDIA_GDS=enabled "* &&
    " ${arguments[*]} " == *" --env NVIDIA_MOFED=enabled "* ]]
  cri_run "$@" "${arguments[@]}" -- /bin/sh -c "$nodes"
  [ "$output" = $'/dev/gdrdrv\n/dev/infiniband/rdma_cm\n/dev/infiniband/uverbs7\n/dev/nvidia-fs0\n/dev/nvidia-fs15' ]
  expect_container "$@"
  plugin_gives "$strategy"
  cri_run "$@" "${arguments[@]}" -- /bin/sh -c "$nodes"
  [ "$output" = "" ]
}
