# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the suites share that give the device plugin's answers to containerd by Kubernetes' interface, as a kubelet does; on top of engines.bash.

# start_plugin_machine [RELEASE]: with this machine's containerd, or the one of that release of Debian, which reads CDI specifications itself. The host is an
# HGX H100 with IMEX channels, or $topology.
start_plugin_machine() {
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  sed '$a imex-channels: 2' "$top/sim/topologies/dgx-h100.yaml" >"$BATS_FILE_TMPDIR/host.yaml"
  start_machine "${topology:-$BATS_FILE_TMPDIR/host.yaml}"
  [ $# -eq 0 ] || use_engines "$1" containerd ctr || return
  [ ! -e "$machine/why" ] || return 0
  configure_containerd ""
  [ $# -eq 0 ] || enable_cdi
  restart_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
}

# plugin_answers RESOURCE=DEVICES OPTION...: a container of that many; $arguments are what a kubelet asks of containerd for it, $devices the devices.
plugin_answers() {
  rm -rf "$work/answer"
  mkdir -p "$work/answer"
  KUBELET_CONTAINER=$1 NVIDIA_CDI_HOOK_PATH=$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook on_host sh -c 'cd "$0" && exec timeout 120 /usr/bin/python3 "$@"' \
    "$work/answer" "$top/test/kubernetes/kubelet.py" container "$build/src/daemon/nvidia-device-plugin" "${@:2}"
  mapfile -t arguments <"$work/answer/arguments"
  mapfile -t devices <"$work/answer/devices"
}

# plugin_gives STRATEGY...: a container of two GPUs; $expected are their indexes.
plugin_gives() {
  local word options=()
  for word; do options+=(--device-list-strategy "$word"); done
  plugin_answers nvidia.com/gpu=2 "${options[@]}"
  mapfile -t expected < <(host_uuids | grep -nFf "$work/answer/devices" | while IFS=: read -r line _; do echo $((line - 1)); done)
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

# A hook mounts the files, and no mount of the specification is one.
by_late_mounts() {
  CDI_LATE_MOUNTS=true plugin_gives cdi-cri
  on_host jq -e '.containerEdits | ([.hooks[].args | index("mount-files", "sequence")] | any) and ([.mounts[].hostPath | select(test("[.]so"))] == [])' \
    /var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json
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

# Device nodes beside the variables, as the CPU manager needs them: the container has those of its GPUs and of the driver without any runtime class, and
# its GPUs with it.
by_nodes() {
  local index nodes=(/dev/nvidia-modeset /dev/nvidia-uvm /dev/nvidia-uvm-tools)
  PASS_DEVICE_SPECS=true plugin_gives envvar
  [[ " ${arguments[*]} " == *" --device /dev/nvidiactl:/dev/nvidiactl:rw "* ]]
  cri_run "${arguments[@]}"
  [ "$status" -eq 0 ]
  for index in "${expected[@]}"; do
    nodes+=("/dev/nvidia$index")
    expect "open-nvidia$index" "No such device or address" # the simulated node: the open was allowed
  done
  expect ls-nodes "${nodes[*]} /dev/nvidiactl "
  expect_container --handler nvidia
}

# by_imex STRATEGY [CRI-OPTION...]: the channel that was chosen, and no other.
by_imex() {
  local strategy=$1
  shift
  IMEX_CHANNEL_IDS=0 plugin_gives "$strategy"
  cri_run "$@" "${arguments[@]}" -- /bin/sh -c 'ls /dev/nvidia-caps-imex-channels'
  [ "$status" -eq 0 ] && [ "$output" = channel0 ]
  expect_container "$@"
  plugin_gives "$strategy"
  cri_run "$@" "${arguments[@]}" -- /bin/sh -c 'ls -d /dev/nvidia-caps-imex-channels 2>/dev/null; true'
  [ "$output" = "" ]
}

# by_replicas STRATEGY [CRI-OPTION...]: a container with a share of a GPU has that GPU, named by its UUID or its index.
by_replicas() {
  local strategy=$1 option base
  shift
  cat >"$work/shared.yaml" <<YAML
version: v1
sharing: {timeSlicing: {resources: [{name: gpu, rename: gpu.quarter, replicas: 4, devices: [5]}]}}
YAML
  for option in --device-id-strategy=uuid --device-id-strategy=index; do
    plugin_answers nvidia.com/gpu.quarter=1 --config-file "$work/shared.yaml" --device-list-strategy "$strategy" "$option"
    base=${devices[0]%%::*}
    [ "${devices[0]}" != "$base" ]
    [ "$base" = "$(host_uuids | sed -n 6p)" ]
    cri_run "$@" "${arguments[@]}"
    expect_gpus 5
  done
}

# by_two_kinds STRATEGY N [CRI-OPTION...]: a container that asks for two resources, whose answers the kubelet joins, sees N of its two devices.
by_two_kinds() {
  local strategy=$1 n=$2
  shift 2
  MIG_STRATEGY=mixed plugin_answers nvidia.com/mig-2g.10gb=1,nvidia.com/mig-1g.5gb=1 --device-list-strategy "$strategy"
  [ ${#devices[@]} -eq 2 ]
  cri_run "$@" "${arguments[@]}"
  [ "$status" -eq 0 ]
  expect nvidia-smi-mig "$n"
  [[ ${answer[nvidia-smi-uuids]} == *"${devices[0]} "* ]]
  [ "$n" -eq 1 ] || [[ ${answer[nvidia-smi-uuids]} == *"${devices[1]} "* ]]
}

# by_mig STRATEGY [CRI-OPTION...]: a MIG device, of its own resource, and nothing of the rest of its GPU.
by_mig() {
  local strategy=$1
  shift
  MIG_STRATEGY=mixed plugin_answers nvidia.com/mig-2g.10gb=1 --device-list-strategy "$strategy"
  [[ ${devices[0]} == MIG-* ]]
  cri_run "$@" "${arguments[@]}"
  [ "$status" -eq 0 ]
  expect nvidia-smi 1
  expect nvidia-smi-mig 1
  [[ ${answer[nvidia-smi-uuids]} == *"${devices[0]} "* ]]
}
