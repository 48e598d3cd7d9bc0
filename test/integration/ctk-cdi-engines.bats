# SPDX-License-Identifier: Apache-2.0
# Specs of `nvidia-ctk cdi generate` used by engines: Podman itself, as root and as an ordinary user; Docker and containerd through
# nvidia-container-runtime in mode cdi. Debian 12's dockerd (20.10), containerd (1.6) and Buildah (1.28) do not support CDI themselves; those
# of Debian 13 are in cdi-engines.bats.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  import_podman
  start_dockerd
  import_image small
  start_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
}
teardown_file() { stop_machine; }
setup() {
  engine_setup
  on_host rm -rf /run/cdi
}
teardown() { engine_teardown; }

# podman_run OPTION...
podman_run() {
  run podman run --rm --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" \
    --cap-add MKNOD --env "PROBE_MINORS=$(host_minors)" "$@" small /probe
  read_answers
}

# generate [OPTION...]: the spec of the machine, where the refresh unit has it. Debian 12's Podman reads versions up to 0.5.0 of the CDI, groups came
# with 0.7.0; the command knows.
generate() {
  on_host nvidia-ctk --quiet cdi generate --output /var/run/cdi/nvidia.yaml "$@"
}

# doctor [WORD...]: what it says of the machine; its engines' sockets are the suite's.
doctor() {
  run on_host nvidia-ctk doctor "$@"
}

@test "a spec that Podman cannot read: the doctor says so, its remedy mends it, and it then says that it works" {
  local remedy
  generate --cdi-version=0.7.0
  podman_run --device nvidia.com/gpu=all
  [ "$status" -ne 0 ]
  [[ $output == *"unresolvable CDI devices nvidia.com/gpu=all"* ]]
  doctor --json --spec-dir=/var/run/cdi "$output"
  [ "$status" -eq 5 ]
  jq -e '.ways[] | select(.engine == "podman" and .command == "podman run --device nvidia.com/gpu=all" and .level == "broken" and
    .why == "the CDI spec is too new for version 4.3.1")' <<<"$output"
  jq -e '.findings[] | select(.check == "podman" and .level == "broken" and .explains and
    .cause == "version 4.3.1 reads CDI specs up to 0.5.0, and /var/run/cdi/nvidia.yaml is 0.7.0: it is ignored (unresolvable CDI devices nvidia.com/gpu=all)")' <<<"$output"
  remedy=$(jq -r '.findings[] | select(.check == "podman") | .remedy' <<<"$output" | sed -n "s/^Run '\([^']*\)'.*/\1/p")
  [ "$remedy" = "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml" ]
  # shellcheck disable=SC2086
  on_host $remedy
  doctor --json --spec-dir=/var/run/cdi
  jq -e '.ways[] | select(.engine == "podman" and .command == "podman run --device nvidia.com/gpu=all" and .level == "ok")' <<<"$output"
  podman_run --device nvidia.com/gpu=all
  expect_gpus 0 1 2 3 4 5 6 7
}

# knows_runtime NAME: dockerd says so itself.
knows_runtime() { docker info --format '{{json .Runtimes}}' | jq -e --arg name "$1" 'has($name)' >/dev/null; }
knows_no_runtime() { ! knows_runtime "$1"; }

@test "a host on which all is well is called healthy, with each way that works; and each works" {
  generate
  doctor --spec-dir=/var/run/cdi
  [ "$status" -eq 0 ] || { say "$output"; return 1; }
  [ "${lines[0]}" = "The driver is simulated (graft-sim): there is no real GPU on this host." ]
  [[ $output == *$'\ndocker run --gpus all: works\ndocker run --runtime=nvidia: works\n'* ]]
  [[ $output == *$'\nctr run --gpus 0 (containerd): works\n'* ]]
  [[ $output == *$'\npodman run --device nvidia.com/gpu=all: works\n'* ]]
  [[ ${lines[-1]} =~ ^Healthy:\ [0-9]+\ ok,\ 0\ warnings,\ 0\ broken ]]
  run ! grep -E '^(warning|broken)|does not work|crashed' <<<"$output"
  docker_run --gpus all
  expect_gpus 0 1 2 3 4 5 6 7
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=all
  expect_gpus 0 1 2 3 4 5 6 7
}

@test "dockerd is asked what it has: before it has read its file again, and after it, when nothing is left to say" {
  local config=$machine/docker/daemon.json pid
  pid=$(cat "$machine/docker/pid")
  generate
  cp "$config" "$work/daemon.json"
  # A file without the key leaves the runtimes as they are.
  echo '{"runtimes": {}}' >"$config"
  on_host kill -HUP "$pid"
  within 10 knows_no_runtime nvidia
  doctor --json --spec-dir=/var/run/cdi
  [ "$status" -eq 0 ]
  jq -e --arg config "$config" '.findings[] | select(.check == "docker-runtime" and .level == "ok" and
    .cause == "the runtime nvidia is not registered in " + $config + " (unknown or invalid runtime name: nvidia); '"'--gpus'"' works without it")' <<<"$output"
  on_host nvidia-ctk --quiet runtime configure --runtime=docker --config="$config"
  doctor --json --spec-dir=/var/run/cdi
  [ "$status" -eq 4 ]
  jq -e --arg config "$config" '.findings[] | select(.check == "docker-runtime" and .level == "warning" and .remedy == "Run '"'systemctl reload docker'"'." and
    .cause == "the running daemon does not know the runtime nvidia of " + $config + ": it has not read the file since it was changed (unknown or invalid runtime name: nvidia)")' <<<"$output"
  on_host kill -HUP "$pid"
  within 10 knows_runtime nvidia
  doctor --json --spec-dir=/var/run/cdi
  [ "$status" -eq 0 ]
  jq -e '.findings[] | select(.check == "docker-runtime" and .level == "ok" and .cause == "has the runtime nvidia: nvidia-container-runtime")' <<<"$output"
  jq -e '.ways[] | select(.command == "docker run --runtime=nvidia" and .level == "ok")' <<<"$output"
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=2
  expect_gpus 2
  cp "$work/daemon.json" "$config"
  on_host kill -HUP "$pid"
  within 10 knows_runtime nvidia-legacy
}

@test "podman: each GPU by its index" {
  local index
  generate
  for index in 0 3 7; do
    podman_run --device "nvidia.com/gpu=$index"
    expect_gpus "$index"
    expect_libraries /usr/lib/x86_64-linux-gnu
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

@test "podman: a spec with late mounts: the same files, by the hook" {
  local way
  for way in '' --late-mounts; do
    # shellcheck disable=SC2086
    generate $way
    run podman run --rm --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" \
      --device nvidia.com/gpu=3 small /bin/sh -c 'while read -r _ _ _ _ at options _; do echo "$at $options"; done </proc/self/mountinfo'
    [ "$status" -eq 0 ] || die "$output" || return
    sort <<<"$output" >"$work/mounts.$way"
  done
  [ "$(grep -c '^/usr/.*nvidia' "$work/mounts.")" -gt 30 ] || die "$(cat "$work/mounts.")" || return
  diff "$work/mounts." "$work/mounts.--late-mounts"
  # A node that is made on the mounts of --read-only cannot be opened, whatever its number.
  podman_run --device nvidia.com/gpu=1 --device nvidia.com/gpu=6 --read-only
  [ "$status" -eq 0 ] || die "$output" || return
  expect nvidia-smi 2
  expect_libraries /usr/lib/x86_64-linux-gnu
  podman_run --device nvidia.com/gpu=1 --device nvidia.com/gpu=6
  expect_gpus 1 6
  expect_libraries /usr/lib/x86_64-linux-gnu
}

rootless_run() {
  run rootless_podman run --rm --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 "$@" \
    --env PROBE_MINORS="$(host_minors)" small /probe
  read_answers
}

@test "rootless podman: GPU 2; all" {
  generate
  import_podman rootless_podman
  rootless_run --device nvidia.com/gpu=2
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  expect nvidia-smi 1
  expect nvidia-smi-uuids "$(host_uuids | sed -n 3p) "
  [[ ${answer[ls-nodes]} == *"/dev/nvidia2 "* && ${answer[ls-nodes]} != *"/dev/nvidia3 "* ]]
  rootless_run --device nvidia.com/gpu=all
  expect nvidia-smi 8
  generate --late-mounts
  rootless_run --device nvidia.com/gpu=2
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  expect nvidia-smi 1
  expect_libraries /usr/lib/x86_64-linux-gnu
}

@test "podman: only what is described: utility without compute, no hooks" {
  generate --driver-capabilities=utility --device-name-strategy=type-index
  podman_run --device nvidia.com/gpu=gpu4
  expect nvidia-smi 1
  expect ldconfig ""
  generate --no-hooks
  podman_run --device nvidia.com/gpu=4
  expect_gpus 4
}

# A step of a build gets its device by the runtime: the Buildah in Podman 4.3 takes /dev/... alone for --device.
@test "podman build and buildah: RUN with a device of the spec, by nvidia-container-runtime" {
  local options
  generate
  mkdir -p "$work/context"
  printf 'FROM small\nENV NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=2,nvidia.com/gpu=5 PROBE_MINORS="%s"\nRUN /probe\n' "$(host_minors)" \
    >"$work/context/Containerfile"
  options=(--isolation oci --network none --no-cache --cgroup-parent "/$machine_cgroup/build-$BATS_TEST_NUMBER"
    --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cap-add MKNOD --pull-never)
  RUNTIME=$BATS_FILE_TMPDIR/bin/nvidia-container-runtime run podman build "${options[@]}" "$work/context"
  read_answers
  expect_gpus 2 5
  run buildah bud --runtime "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime" "${options[@]}" "$work/context"
  read_answers
  expect_gpus 2 5
}

@test "docker, nvidia-container-runtime: names of the spec, by the environment" {
  generate
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0
  expect_gpus 0
  expect_libraries /usr/lib/x86_64-linux-gnu
  docker_run --runtime=nvidia-cdi --env NVIDIA_VISIBLE_DEVICES=all
  expect_gpus 0 1 2 3 4 5 6 7
  docker_run --runtime=nvidia-cdi --env "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n 8p),1"
  expect_gpus 1 7
}

@test "containerd, CRI: annotations of a device plugin" {
  generate
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=all --annotation cdi.k8s.io/nvidia-device-plugin_1=nvidia.com/gpu=2,nvidia.com/gpu=5
  expect_gpus 2 5
}

@test "each mode's spec beside the others: names do not conflict" {
  generate
  on_host nvidia-ctk --quiet cdi generate --mode management --output /var/run/cdi/management.yaml
  on_host nvidia-ctk --quiet cdi generate --mode gds --output /var/run/cdi/gds.yaml
  run on_host nvidia-ctk cdi validate
  [ "$status" -eq 0 ]
  podman_run --device nvidia.com/gds=all --device nvidia.com/gpu=3
  expect_gpus 3
  [[ ${answer[ls-nodes]} == *nvidia-fs* ]]
  podman_run --device management.nvidia.com/gpu=all
  expect nvidia-smi 8
}
