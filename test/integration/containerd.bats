# SPDX-License-Identifier: Apache-2.0
# containerd: its own client, and Kubernetes' interface with a RuntimeClass, on a host of eight GPUs.
# bats file_tags=late-mounts

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  start_containerd
  import_archive "$machine_cgroup" small small /probe
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() { engine_teardown; }

@test "ctr run --gpus 0: containerd calls nvidia-container-cli itself" {
  ctr_run --gpus 0
  expect_gpus 0
}

@test "ctr run --gpus, several" {
  ctr_run --gpus 1 --gpus 6
  expect_gpus 1 6
}

@test "ctr run without a GPU" {
  ctr_run
  expect_no_gpu
}

@test "ctr run --gpus 8 of 8: no container; the cause and the remedy are said" {
  ctr_run --gpus 8
  [ "$status" -ne 0 ]
  [[ $output == *"device error: 8: unknown device"*"nvidia-container-cli info"* ]]
}

@test "ctr run --runc-binary nvidia-container-runtime" {
  ctr_run --runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=2,3
  expect_gpus 2 3
  ctr_run --runc-binary nvidia-container-runtime
  expect_no_gpu
}

@test "ctr run --runc-binary nvidia-container-runtime.legacy" {
  ctr_run --runc-binary nvidia-container-runtime.legacy --env NVIDIA_VISIBLE_DEVICES=2,3
  expect_gpus 2 3
  ctr_run --runc-binary nvidia-container-runtime.legacy
  expect_no_gpu
}

# --- CRI: what a kubelet asks for ---

@test "CRI, no RuntimeClass: no GPU" {
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
}

@test "CRI, RuntimeClass nvidia, no GPU asked for" {
  cri_run --handler nvidia
  expect_no_gpu
}

@test "CRI, RuntimeClass nvidia: as a device plugin asks, and the kubelet's CPU manager takes nothing away" {
  cri_run --handler nvidia --env "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n 4p)" --update
  expect_gpus 3
}

@test "CRI, RuntimeClass nvidia-legacy: as a device plugin asks, and the kubelet's CPU manager takes nothing away" {
  cri_run --handler nvidia-legacy --env "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n 4p)" --update
  expect_gpus 3
}

@test "CRI, RuntimeClass nvidia-legacy: what cannot be given is refused, with cause and remedy" {
  cri_run --handler nvidia-legacy --env NVIDIA_VISIBLE_DEVICES=8
  [ "$status" -ne 0 ]
  [[ $output == *"device error: 8: unknown device"*"nvidia-container-cli info"* ]]
}

@test "CRI, hardened as for Kubernetes: the image's own request is ignored, the plugin's mounts are honoured" {
  config_toml <<TOML
accept-nvidia-visible-devices-envvar-when-unprivileged = false
accept-nvidia-visible-devices-as-volume-mounts = true
TOML
  local handler
  for handler in nvidia nvidia-legacy; do
    cri_run --handler $handler --env NVIDIA_VISIBLE_DEVICES=all
    expect_no_gpu
    cri_run --handler $handler --env NVIDIA_VISIBLE_DEVICES=all --mount /dev/null:/var/run/nvidia-container-devices/6
    expect_gpus 6
  done
}

@test "CRI, RuntimeClass nvidia: annotations of a device plugin choose devices of CDI" {
  cdi_config auto
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=all --annotation cdi.k8s.io/nvidia-device-plugin_1=nvidia.com/gpu=2,nvidia.com/gpu=5
  expect_gpus 2 5
  expect_libraries /usr/lib/x86_64-linux-gnu
}

@test "no hook: what needs the container's mounts is done between create and start" {
  log_decisions
  ctr_run --runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=0 -- ls /dev/dri/by-path
  expect_no_hook
}
