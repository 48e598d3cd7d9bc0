# SPDX-License-Identifier: Apache-2.0
# Specs of `nvidia-ctk cdi generate` in the hands of engines: Podman itself, as root and as an ordinary user; Docker and containerd through
# nvidia-container-runtime in mode cdi. Debian 12's dockerd (20.10), containerd (1.6) and Buildah (1.28) do not know CDI by themselves.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  mkdir -p "$machine/podman"
  storage
  import_podman
  start_dockerd
  import_image small
  start_containerd
}
teardown_file() { stop_machine; }
setup() {
  engine_setup
  storage
  on_host rm -rf /run/cdi
}
teardown() { engine_teardown; }

storage() {
  storage=(--root "$machine/podman/root" --runroot "$machine/podman/run" --storage-driver vfs)
}

podman() {
  on_host /usr/bin/podman "${storage[@]}" --tmpdir "$machine/podman/tmp" --cgroup-manager cgroupfs --events-backend none \
    --runtime /usr/sbin/runc "$@"
}

import_podman() {
  tar --create --directory "$(image small)" . --directory "$top/test/integration" ./probe | podman import - small
}

# podman_run OPTION...
podman_run() {
  run podman run --rm --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" \
    --cap-add MKNOD --env "PROBE_MINORS=$(host_minors)" "$@" small /probe
  read_answers
}

# generate [OPTION...]: the spec of the machine, where the refresh unit has it.
generate() {
  on_host nvidia-ctk --quiet cdi generate --output /var/run/cdi/nvidia.yaml "$@"
}

@test "podman: each GPU by its index" {
  local index
  generate
  for index in 0 3 7; do
    podman_run --device "nvidia.com/gpu=$index"
    expect_gpus "$index"
    expect_libraries /usr/lib64
  done
}

@test "podman: a GPU by its UUID, two, all, and none" {
  local uuids
  generate
  mapfile -t uuids < <(host_uuids)
  podman_run --device "nvidia.com/gpu=${uuids[5]}"
  expect_gpus 5
  podman_run --device nvidia.com/gpu=1 --device nvidia.com/gpu=6
  expect_gpus 1 6
  podman_run --device nvidia.com/gpu=all
  expect_gpus 0 1 2 3 4 5 6 7
  podman_run
  expect_no_gpu
  podman_run --device nvidia.com/gpu=8
  [ "$status" -ne 0 ]
}
