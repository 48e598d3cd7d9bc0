# SPDX-License-Identifier: Apache-2.0
# files: disk
# K3s and RKE2, which are not packaged: at each start they look for the runtime at fixed places, in a fixed order, and write containerd's
# configuration from what they find. This test does the same, for Debian's containerd and a machine with our programs in /usr/bin.
# bats file_tags=late-mounts

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  # /usr/local/nvidia/toolkit is where a GPU operator puts a toolkit of its own.
  mkdir -p "$machine/local/nvidia/toolkit"
  on_host mount --bind "$machine/local" /usr/local
  on_host mount -t overlay -o "lowerdir=$BATS_FILE_TMPDIR/bin:/usr/bin" overlay /usr/bin
  k3s_start
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
}
teardown_file() { stop_machine; }
setup() {
  engine_setup
  rm -rf "$machine"/local/nvidia/toolkit/*
}
teardown() { engine_teardown; }

# k3s_runtimes: "NAME PATH" of each runtime that is there: the first place wins.
k3s_runtimes() {
  local name at
  for name in nvidia nvidia-experimental; do
    for at in /usr/local/nvidia/toolkit /usr/bin; do
      if on_host stat "$at/${name/nvidia/nvidia-container-runtime}" >/dev/null 2>&1; then
        echo "$name $at/${name/nvidia/nvidia-container-runtime}"
        break
      fi
    done
  done
}

# k3s_start [DEFAULT-RUNTIME]: writes the configuration anew and starts containerd with it.
k3s_start() {
  local name path cri='plugins."io.containerd.grpc.v1.cri"'
  mkdir -p "$machine/containerd"
  {
    cat <<TOML
version = 2
root = "$machine/containerd/root"
state = "$machine/containerd/state"
[grpc]
  address = "/run/containerd-suite/sock"
[$cri]
  stream_server_address = "127.0.0.1"
  stream_server_port = "10010"
  sandbox_image = "docker.io/library/pause:latest"
  restrict_oom_score_adj = true
[$cri.containerd]
  snapshotter = "overlayfs"
  disable_snapshot_annotations = true
  ${1:+default_runtime_name = \"$1\"}
[$cri.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[$cri.containerd.runtimes.runc.options]
  SystemdCgroup = false
TOML
    k3s_runtimes | while read -r name path; do
      cat <<TOML
[$cri.containerd.runtimes."$name"]
  runtime_type = "io.containerd.runc.v2"
[$cri.containerd.runtimes."$name".options]
  BinaryName = "$path"
  SystemdCgroup = false
TOML
    done
  } >"$machine/containerd/config.toml"
  restart_containerd
}

# operator_toolkit: a toolkit as a GPU operator lays it out: programs under another name, each behind a script that leads it to its own configuration.
operator_toolkit() {
  local toolkit=$machine/local/nvidia/toolkit program
  mkdir -p "$toolkit/.config/nvidia-container-runtime"
  for program in nvidia-container-runtime nvidia-cdi-hook; do
    cp -L "$BATS_FILE_TMPDIR/bin/$program" "$toolkit/$program.real"
    printf '#!/bin/sh\nPATH=%s:$PATH XDG_CONFIG_HOME=%s/.config exec %s "$@"\n' \
      /usr/local/nvidia/toolkit /usr/local/nvidia/toolkit "/usr/local/nvidia/toolkit/$program.real" >"$toolkit/$program"
    chmod 0755 "$toolkit/$program"
  done
  cat >"$toolkit/.config/nvidia-container-runtime/config.toml" <<TOML
[nvidia-container-runtime]
log-level = "info"
debug = "$machine/local/log"
[nvidia-ctk]
path = "/usr/local/nvidia/toolkit/nvidia-cdi-hook"
TOML
}

@test "the runtime in /usr/bin is found, under the name nvidia; a pod of that RuntimeClass gets its GPU" {
  [ "$(k3s_runtimes)" = "nvidia /usr/bin/nvidia-container-runtime" ]
  k3s_start
  cri_run --handler nvidia --env "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n 4p)" --update
  expect_gpus 3
  expect_libraries /usr/lib/x86_64-linux-gnu
}

@test "no RuntimeClass: no GPU" {
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
}

@test "nvidia as the default runtime: pods get what they ask for, and nothing when they do not" {
  k3s_start nvidia
  cri_run --env "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n 2p)"
  expect_gpus 1
  cri_run
  expect_no_gpu
}

@test "a GPU that is not there: no pod; cause and remedy are said" {
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=8
  [ "$status" -ne 0 ]
  [[ $output == *"8: unknown device"*"nvidia-container-cli info"* ]]
}

@test "a toolkit in /usr/local/nvidia/toolkit comes first, with its own configuration" {
  operator_toolkit
  [ "$(k3s_runtimes)" = "nvidia /usr/local/nvidia/toolkit/nvidia-container-runtime" ]
  k3s_start
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=0,5
  expect_gpus 0 5
  expect_libraries /usr/lib/x86_64-linux-gnu
  [ -s "$machine/local/log" ]
}
