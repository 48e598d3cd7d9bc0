# SPDX-License-Identifier: Apache-2.0
# files: disk
# docker run --gpus and Compose, on a host of eight GPUs, by Debian's own daemon: it adds the hook that it found when it was started.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  start_dockerd
  import_image small
  import_image debian
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() { engine_teardown; }

@test "docker run --gpus all" {
  docker_run --gpus all
  expect_gpus 0 1 2 3 4 5 6 7
}

@test "docker run --gpus 2" {
  docker_run --gpus 2
  expect_gpus 0 1
}

@test "docker run --gpus device=0,1" {
  docker_run --gpus '"device=0,1"'
  expect_gpus 0 1
  expect_libraries /usr/lib64
}

@test "docker run --gpus, a UUID" {
  docker_run --gpus "device=$(host_uuids | sed -n 6p)"
  expect_gpus 5
}

@test "docker run --gpus all,capabilities=utility: nvidia-smi, and no CUDA" {
  docker_run --gpus all,capabilities=utility
  expect_gpus 0 1 2 3 4 5 6 7
  expect ldconfig ""
  docker_run --gpus all,capabilities=utility -- sh -c 'find / -xdev -name "libcuda*"'
  [ "$output" = "" ]
}

@test "docker run --gpus, a Debian image: its loader finds the driver" {
  IMAGE=debian docker_run --gpus '"device=2,7"'
  expect_gpus 2 7
  expect_libraries
}

@test "docker run without a GPU: an image's request alone gives none" {
  docker_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
}

# --- a container that lives on ---

@test "docker exec, restart, update: --gpus" {
  docker_start --gpus '"device=1,2"'
  docker_probe
  expect_gpus 1 2
  docker update --cpus 0.5 "$name"
  docker_probe
  expect_gpus 1 2
  docker restart --time 0 "$name"
  docker_probe
  expect_gpus 1 2
}

# --- Compose ---

compose() { DOCKER_CONFIG=$machine/docker docker-compose --host "unix://$machine/docker/sock" --file "$work/compose.yaml" --project-name graft "$@"; }

# service NAME: its container.
service() { docker ps --quiet --filter "label=com.docker.compose.service=$1"; }

@test "Compose: three services with reservations" {
  cat >"$work/compose.yaml" <<YAML
version: "3.8"
x-common: &common
  image: small
  command: sleep 600
  network_mode: none
  environment:
    PROBE_MINORS: "$(host_minors)"
services:
  counted:
    <<: *common
    deploy: {resources: {reservations: {devices: [{count: 1, capabilities: [gpu]}]}}}
  chosen:
    <<: *common
    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ["3", "5"], capabilities: [gpu, utility, compute]}]}}}
  every:
    <<: *common
    deploy: {resources: {reservations: {devices: [{count: all, capabilities: [gpu]}]}}}
YAML
  compose up --detach
  docker_probe "$(service counted)"
  expect_gpus 0
  docker_probe "$(service chosen)"
  expect_gpus 3 5
  docker_probe "$(service every)"
  expect_gpus 0 1 2 3 4 5 6 7
}
