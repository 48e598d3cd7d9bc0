# SPDX-License-Identifier: Apache-2.0
# Programs that drive Docker: Nomad, whose device plugin names GPUs in the environment and whose
# Docker driver knows one runtime, literally "nvidia"; and the command nvidia-docker. The daemon is
# configured for that runtime with nvidia-ctk, as an administrator would do it.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  start_dockerd
  import_image small
  # Like images with CUDA, it asks for everything.
  import_image debian 'ENV NVIDIA_VISIBLE_DEVICES=all' 'ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility'
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() { engine_teardown; }

# --- Nomad ---

has_runtime() { docker info --format '{{json .Runtimes}}' | jq -e --arg name "$1" 'has($name)' >/dev/null; }
has_no_runtime() { ! has_runtime "$1"; }

# nomad_task IMAGE [NAME=VALUE...]: a task as its driver makes it: with a GPU reserved for it (NVIDIA_VISIBLE_DEVICES) it needs the runtime "nvidia",
# and asks the daemon whether there is one; the container is created with the task's resources and variables, then started, then waited for.
nomad_task() {
  local image=$1 options=() variable
  shift
  for variable in "$@"; do
    options+=(--env "$variable")
    [[ $variable != NVIDIA_VISIBLE_DEVICES=* ]] || options+=(--runtime nvidia)
  done
  if [[ " ${options[*]} " == *" --runtime nvidia "* ]] && ! has_runtime nvidia; then
    die 'requested docker runtime "nvidia" was not found'
    return
  fi
  docker create --name "$name" --net=none --memory 256m --cpu-shares 500 --log-driver json-file --label com.hashicorp.nomad.alloc_id=a1 \
    --env NOMAD_TASK_NAME=probe --env "PROBE_MINORS=$(host_minors)" "${options[@]}" "$image" /probe >/dev/null
  run docker start "$name"
  if [ "$status" -eq 0 ]; then
    docker wait "$name" >/dev/null
    run docker logs "$name"
  fi
  docker rm "$name" >/dev/null
  read_answers
}

@test "Nomad: no task with a GPU before the daemon has a runtime of exactly that name; nvidia-ctk gives it that name" {
  local file=$machine/docker/daemon.json
  echo '{"runtimes": {"other": {"path": "runc"}}}' >"$file"
  on_host kill -HUP "$(cat "$machine/docker/pid")"
  within 5 has_no_runtime nvidia
  run ! nomad_task small "NVIDIA_VISIBLE_DEVICES=$(host_uuids | head -n 1)"
  [[ $output == *'runtime "nvidia" was not found'* ]]
  on_host nvidia-ctk runtime configure --runtime=docker --config="$file" --nvidia-runtime-path="$BATS_FILE_TMPDIR/bin/nvidia-container-runtime"
  on_host kill -HUP "$(cat "$machine/docker/pid")"
  within 5 has_runtime nvidia
  nomad_task small "NVIDIA_VISIBLE_DEVICES=$(host_uuids | head -n 1)"
  expect_gpus 0
}

@test "Nomad: a task gets the GPUs that were reserved for it, whatever the image asks for" {
  nomad_task debian "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n '4p;7p' | paste -sd ,)"
  expect_gpus 3 6
  expect_libraries
}

@test "Nomad: a task without a GPU gets none, whatever the image asks for" {
  nomad_task debian
  expect_no_gpu
}

@test "Nomad: a GPU that is gone is refused, with cause and remedy" {
  nomad_task small NVIDIA_VISIBLE_DEVICES=GPU-00000000-0000-0000-0000-000000000000
  [ "$status" -ne 0 ]
  [[ $output == *"GPU-00000000-0000-0000-0000-000000000000: unknown device"*"nvidia-container-cli info"* ]]
}

# --- nvidia-docker ---

# nvidia_docker WORD...: the wrapper, for the daemon of this machine; $gpus is NV_GPU, when it is set.
nvidia_docker() {
  env ${gpus+NV_GPU="$gpus"} DOCKER_HOST="unix://$machine/docker/sock" DOCKER_CONFIG="$machine/docker" "$top/packaging/nvidia-docker" "$@"
}

# wrapped_run OPTION... IMAGE: by "nvidia-docker run"; the probe's answers are read.
wrapped_run() {
  run nvidia_docker run --rm --net=none --env "PROBE_MINORS=$(host_minors)" "$@" /probe
  read_answers
}

@test "nvidia-docker run: what the image asks for; all of it for an image with CUDA, nothing for one that asks for nothing" {
  wrapped_run debian
  expect_gpus 0 1 2 3 4 5 6 7
  wrapped_run small
  expect_no_gpu
}

@test "nvidia-docker run, NV_GPU: indices with commas or spaces, a UUID; it takes precedence over the image" {
  gpus=0,3 wrapped_run debian
  expect_gpus 0 3
  gpus='1 2' wrapped_run small
  expect_gpus 1 2
  gpus=$(host_uuids | sed -n 6p) wrapped_run debian
  expect_gpus 5
  gpus='' wrapped_run small
  expect_no_gpu
}

@test "nvidia-docker create, container run, options of docker before the command" {
  gpus=4 nvidia_docker create --name "$name" --net=none --env "PROBE_MINORS=$(host_minors)" debian /probe
  run nvidia_docker start --attach "$name"
  read_answers
  expect_gpus 4
  gpus=6 run nvidia_docker --log-level error container run --rm --net=none --env "PROBE_MINORS=$(host_minors)" debian /probe
  read_answers
  expect_gpus 6
}

@test "nvidia-docker: a GPU that is not there is refused; every other command, and every status, is docker's own" {
  gpus=9 run nvidia_docker run --rm --net=none small true
  [ "$status" -ne 0 ]
  [[ $output == *9*"nvidia-container-cli info"* ]]
  gpus=0 run nvidia_docker run --rm --net=none small sh -c 'exit 7'
  [ "$status" -eq 7 ]
  gpus=0 run nvidia_docker inspect --format '{{.Id}}' small
  [ "$output" = "$(docker inspect --format '{{.Id}}' small)" ]
  run nvidia_docker no-such-command
  [ "$status" -ne 0 ]
  [[ $output == *"no-such-command"* ]]
  [ "$output" = "$(docker no-such-command 2>&1)" ]
}
