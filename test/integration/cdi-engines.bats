# SPDX-License-Identifier: Apache-2.0
# Engines that read CDI specs themselves, and run only the hooks that a spec names: Docker 26 and
# containerd 1.7 of Debian 13, set up by `nvidia-ctk runtime configure`. They come from Debian's
# archive (test/tools/release-root); without a network each test is skipped.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  use_engines trixie dockerd containerd || return
  [ ! -e "$machine/why" ] || return 0
  on_host nvidia-ctk --quiet cdi generate --output /var/run/cdi/nvidia.yaml
  mkdir -p "$machine/docker"
  echo '{}' >"$machine/docker/daemon.json"
  on_host nvidia-ctk --quiet runtime configure --runtime=docker --config="$machine/docker/daemon.json" --cdi.enabled
  run_dockerd
  import_image small
  configure_containerd ""
  enable_cdi
  restart_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
}
teardown_file() { stop_machine; }
setup() {
  need_engines
  engine_setup
}
teardown() { [ -e "$machine/why" ] || engine_teardown; }

docker() { DOCKER_CONFIG=$machine/docker "$BATS_FILE_TMPDIR/bin/docker" --host "unix://$machine/docker/sock" "$@"; }

@test "docker run --device: a GPU by its index, by its UUID, two, and all" {
  docker_run --device nvidia.com/gpu=3
  expect_gpus 3
  expect_libraries /usr/lib/x86_64-linux-gnu
  docker_run --device "nvidia.com/gpu=$(host_uuids | sed -n 6p)"
  expect_gpus 5
  docker_run --device nvidia.com/gpu=0 --device nvidia.com/gpu=7
  expect_gpus 0 7
  docker_run --device nvidia.com/gpu=all
  expect_gpus 0 1 2 3 4 5 6 7
}

@test "docker run without a device of the spec: no GPU; with one that is in no spec: refused" {
  docker_run
  expect_no_gpu
  docker_run --device nvidia.com/gpu=8
  [ "$status" -ne 0 ]
  [[ $output == *"nvidia.com/gpu=8"* ]]
}

@test "docker exec, restart, update: the GPU stays" {
  docker_start --device nvidia.com/gpu=2
  docker_probe
  expect_gpus 2
  docker update --cpus 1 "$name"
  docker_probe
  expect_gpus 2
  docker restart --time 0 "$name"
  docker_probe
  expect_gpus 2
}

@test "docker run --gpus and --runtime=nvidia beside it: as with older ones" {
  docker_run --gpus '"device=1"'
  expect_gpus 1
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=6
  expect_gpus 6
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=4
  expect_gpus 4
}

@test "CRI: annotations of a device plugin, no RuntimeClass" {
  cri_run --annotation cdi.k8s.io/nvidia-device-plugin_1=nvidia.com/gpu=2,nvidia.com/gpu=5
  expect_gpus 2 5
  cri_run
  expect_no_gpu
}

@test "CRI: devices as the kubelet's device manager names them" {
  cri_run --cdi-device nvidia.com/gpu=4 --update
  expect_gpus 4
  cri_run --cdi-device nvidia.com/gpu=0 --cdi-device nvidia.com/gpu=7
  expect_gpus 0 7
  cri_run --cdi-device nvidia.com/gpu=8
  [ "$status" -ne 0 ]
  [[ $output == *"nvidia.com/gpu=8"* ]]
}

@test "docker run --device and CRI: nvidia.com/lease=2, which are free" {
  config_toml <<<$'[graft.leases]\nmode = "on"'
  on_host nvidia-ctk --quiet --config "$machine/config/nvidia-container-runtime/config.toml" cdi generate --leases --output /var/run/cdi/nvidia.yaml
  docker_start --device nvidia.com/lease=5
  docker_run --device nvidia.com/lease=2
  expect_gpus 5 6
  docker_run --device nvidia.com/lease=4
  [ "$status" -ne 0 ]
  [[ $output == *"lease: 4 GPUs were asked for, 3 of 8 are free; Held: GPU 0, 1, 2, 3, 4 by uid 0 (container "* ]] || die "$output"
  cri_run --cdi-device nvidia.com/lease=3 --update
  expect_gpus 5 6 7
  docker restart --time 0 "$name"
  docker rm --force "$name"
  docker_run --device nvidia.com/lease=8
  expect_gpus 0 1 2 3 4 5 6 7
  config_toml </dev/null
  on_host rm /var/run/cdi/nvidia.lease.yaml
}

@test "a spec of another driver: refresh makes the engine's next container right" {
  docker_run --device nvidia.com/gpu=0
  expect_gpus 0
  on_host sed -i 's/550\.54\.14/535.183.06/g' /var/run/cdi/nvidia.yaml
  docker_run --device nvidia.com/gpu=0
  [ "$status" -ne 0 ]
  on_host nvidia-ctk --quiet cdi refresh --output /var/run/cdi/nvidia.yaml
  docker_run --device nvidia.com/gpu=0
  expect_gpus 0
}
