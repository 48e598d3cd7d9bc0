# SPDX-License-Identifier: Apache-2.0
# Docker with --runtime=nvidia, as default runtime, under Swarm and with CDI, on a host of eight GPUs, by Debian's own daemon.

load lib.bash
load engines.bash

setup_file() {
  local uuid resources=()
  start_machine dgx-h100
  # What Swarm may give away.
  for uuid in $(host_uuids); do resources+=(--node-generic-resource "gpu=$uuid"); done
  start_dockerd "${resources[@]}"
  import_image small
  import_image debian
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() {
  if [ -e "$work/swarm" ]; then docker swarm leave --force || true; fi
  if [ -e "$work/default" ]; then default_runtime runc; fi
  engine_teardown
}

# folder RUNTIME: where the small image's libraries of the driver are: in its own folder by the hook, at their place by the runtime.
folder() { if [ "$1" = nvidia ]; then echo /usr/lib/x86_64-linux-gnu; else echo /usr/lib64; fi; }

# --- each by the hook and by the runtime itself ---

# requests RUNTIME: what NVIDIA_VISIBLE_DEVICES can say.
requests() {
  docker_run --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=0,1
  expect_gpus 0 1 || return
  expect_libraries "$(folder "$1")" || return
  docker_run --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=all
  expect_gpus 0 1 2 3 4 5 6 7 || return
  docker_run --runtime="$1" --env "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n 8p),3,3"
  expect_gpus 3 7 || return
  # The driver without a GPU.
  docker_run --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=none
  expect made-nvidia0 "Operation not permitted" || return
  expect made-nvidia7 "Operation not permitted" || return
  expect ldconfig "$(folder "$1")/libcuda.so.1" || return
  docker_run --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=void
  expect_no_gpu || return
  docker_run --runtime="$1"
  expect_no_gpu || return
  # --gpus says it louder than the image, and it is done once.
  docker_run --runtime="$1" --gpus '"device=4"' --env NVIDIA_VISIBLE_DEVICES=all
  expect_gpus 4
}

# circumstances RUNTIME
circumstances() {
  IMAGE=debian docker_run --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=2,7
  expect_gpus 2 7 || return
  expect_libraries || return
  docker_run --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=1 --read-only --tmpfs /tmp:dev --init
  expect_gpus 1 || return
  expect_libraries "$(folder "$1")" || return
  docker_run --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=1 --user 1000:1000 -- nvidia-smi -L
  [ "$status" -eq 0 ] || return
  [ "$(grep -c '^GPU ' <<<"$output")" -eq 1 ] || return
  # A volume of the container's where the driver's libraries are to be.
  mkdir "$work/volume"
  docker_run --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=1 --volume "$work/volume:/usr/lib/x86_64-linux-gnu"
  expect_gpus 1
}

# life RUNTIME: of one container.
life() {
  docker_start --runtime="$1" --env NVIDIA_VISIBLE_DEVICES=1,2
  docker_probe
  expect_gpus 1 2 || return
  docker update --cpus 0.5 --memory 100m --memory-swap 100m "$name"
  docker_probe
  expect_gpus 1 2 || return
  docker restart --time 0 "$name"
  docker_probe
  expect_gpus 1 2 || return
  docker pause "$name"
  docker unpause "$name"
  run -0 docker exec --user 1000 "$name" nvidia-smi -L
}

@test "docker run --runtime=nvidia: what NVIDIA_VISIBLE_DEVICES says" { requests nvidia; }
@test "docker run --runtime=nvidia-legacy: what NVIDIA_VISIBLE_DEVICES says" { requests nvidia-legacy; }
# bats test_tags=old-kernel
@test "docker run --runtime=nvidia: images and options of many kinds" { circumstances nvidia; }
# bats test_tags=old-kernel
@test "docker run --runtime=nvidia-legacy: images and options of many kinds" { circumstances nvidia-legacy; }
@test "docker exec, restart, update, pause: --runtime=nvidia" { life nvidia; }
@test "docker exec, restart, update, pause: --runtime=nvidia-legacy" { life nvidia-legacy; }

@test "docker run --runtime=nvidia-legacy: capabilities" {
  docker_run --runtime=nvidia-legacy --env NVIDIA_VISIBLE_DEVICES=3 --env NVIDIA_DRIVER_CAPABILITIES=utility
  expect_gpus 3
  expect ldconfig ""
}

# by_default RUNTIME
by_default() {
  : >"$work/default"
  default_runtime "$1"
  docker_run --env NVIDIA_VISIBLE_DEVICES=5
  expect_gpus 5 || return
  docker_run --gpus 1
  expect_gpus 0 || return
  docker_run
  expect_no_gpu
}

@test "nvidia as default runtime" { by_default nvidia; }
@test "nvidia-legacy as default runtime" { by_default nvidia-legacy; }

# --- Swarm ---

# task SERVICE: its container.
task() { docker ps --quiet --filter "label=com.docker.swarm.service.name=$1"; }
has_task() { [ -n "$(task "$1")" ]; }

service() {
  docker service create --detach --no-resolve-image --network host --restart-condition none \
    --env "PROBE_MINORS=$(host_minors)" --name "$1" --generic-resource "gpu=$2" small sleep 600
}

# expect_task SERVICE N: its GPUs are those that Swarm gave to it, N of them; they are added to $given.
expect_task() {
  local uuid index gpus=()
  # shellcheck disable=SC2016
  docker exec "$(task "$1")" sh -c 'echo "$DOCKER_RESOURCE_GPU"' >"$work/resource"
  for uuid in $(tr ',' '\n' <"$work/resource"); do
    index=$(host_uuids | grep -nxF "$uuid" | cut -d : -f 1)
    gpus+=($((index - 1)))
  done
  [ "${#gpus[@]}" -eq "$2" ]
  given+=("${gpus[@]}")
  mapfile -t gpus < <(printf '%s\n' "${gpus[@]}" | sort -n)
  docker_probe "$(task "$1")"
  expect_gpus "${gpus[@]}"
}

# swarm RUNTIME: services get the GPUs that the manager gave them, and wait when there are no more.
swarm() {
  local given=()
  touch "$work/default" "$work/swarm"
  config_toml <<<'swarm-resource = "DOCKER_RESOURCE_GPU"'
  default_runtime "$1"
  docker swarm init --advertise-addr 127.0.0.1 --listen-addr 127.0.0.1:2377
  service first 2
  service second 3
  within 20 has_task first
  within 20 has_task second
  expect_task first 2 || return
  expect_task second 3 || return
  [ "$(printf '%s\n' "${given[@]}" | sort -u | wc -l)" -eq 5 ] || return
  service third 4
  within 10 sh -c 'DOCKER_CONFIG="$2" /usr/bin/docker --host "$1" service ps --no-trunc third | grep -q "insufficient resources"' \
    sh "unix://$machine/docker/sock" "$machine/docker"
  ! has_task third
}

@test "Swarm: services with GPUs, nvidia" { swarm nvidia; }
@test "Swarm: services with GPUs, nvidia-legacy" { swarm nvidia-legacy; }

# --- CDI ---

@test "CDI mode: names of devices become those of the description" {
  cdi_config cdi
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0,6
  expect_gpus 0 6
  expect_libraries /usr/lib/x86_64-linux-gnu
}

# bats test_tags=old-kernel
@test "CDI: qualified names, mode auto; and nvidia-container-runtime.cdi" {
  cdi_config auto
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=1,nvidia.com/gpu=2
  expect_gpus 1 2
  docker_run --runtime=nvidia-cdi --env NVIDIA_VISIBLE_DEVICES=all
  expect_gpus 0 1 2 3 4 5 6 7
}

@test "CDI mode: what is in no description is refused in one line" {
  cdi_config cdi
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=8
  expect_refusal 'unresolvable CDI devices nvidia.com/gpu=8'
}

# bats test_tags=old-kernel
@test "no hook: what needs the container's mounts is done between create and start" {
  log_decisions
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0 -- ls /dev/dri/by-path
  expect_no_hook
}
