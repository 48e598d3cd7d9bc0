# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk runtime configure with real engines: after configuring and the reload that each engine needs, a container gets its GPUs; after undoing it, none does.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  start_dockerd
  import_image small
  start_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  # Podman's own configuration is read from here.
  mkdir "$machine/containers"
  [ ! -d /etc/containers ] || cp -a /etc/containers/. "$machine/containers"
  on_host mount --bind "$machine/containers" /etc/containers
  import_podman
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() { engine_teardown; }

# configure WORD...: what it tells is in $output.
configure() {
  run on_host nvidia-ctk runtime configure --nvidia-runtime-path="$BATS_FILE_TMPDIR/bin/nvidia-container-runtime" "$@"
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
}

# ---- Docker: SIGHUP is enough ----

reload_dockerd() { on_host kill -HUP "$(cat "$machine/docker/pid")"; }
has_runtime() { docker info --format '{{range $name, $_ := .Runtimes}}{{$name}} {{end}}' | grep -qw "$1"; }
has_no_runtime() { ! has_runtime "$1"; }

# What the file does not name at all dockerd keeps when it is reloaded.
@test "docker: configured, reloaded, GPU 0 and 1; again: no change; undone, reloaded: unknown" {
  local file=$machine/docker/daemon.json
  printf '{\n  "labels": ["a=b"],\n  "default-runtime": "runc",\n  "runtimes": {"plain": {"path": "runc"}}\n}\n' >"$file"
  cp "$file" "$work/before"
  reload_dockerd
  within 5 has_no_runtime nvidia
  configure --config="$file"
  reload_dockerd
  within 5 has_runtime nvidia
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0,1
  expect_gpus 0 1
  [ "$(docker info --format '{{.DefaultRuntime}} {{.Labels}}')" = "runc [a=b]" ]
  configure --config="$file"
  [[ $output == *"docker is configured already: nothing was changed, and it need not be restarted."* ]]
  configure --config="$file" --set-as-default
  reload_dockerd
  within 5 has_default_runtime nvidia
  docker_run --env NVIDIA_VISIBLE_DEVICES=5
  expect_gpus 5
  configure --config="$file" --undo
  cmp "$file" "$work/before"
  reload_dockerd
  within 5 has_no_runtime nvidia
  has_default_runtime runc
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0
  [ "$status" -ne 0 ]
}

@test "docker: what would be left without its runtime is not taken from it; then nothing of ours is left" {
  local file=$machine/docker/daemon.json container
  printf '{\n  "labels": ["a=b"],\n  "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}\n}\n' >"$file"
  reload_dockerd
  within 5 has_runtime nvidia
  default_runtime nvidia
  run -1 on_host nvidia-ctk runtime remove
  [[ $output == *"msg=\"docker starts containers with the runtime 'nvidia' by default, and could not start any without it. Run "* ]]
  default_runtime runc
  container=$(docker_start --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0)
  run -1 on_host nvidia-ctk runtime remove
  [[ $output == *"msg=\"1 container runs with nvidia-container-runtime and cannot be stopped without it: ${container:0:12}. Stop and remove them first.\""* ]]
  grep -q nvidia "$file"
  docker rm --force "$name" >/dev/null
  docker_start >/dev/null
  run -0 on_host nvidia-ctk runtime remove
  [ "$(jq -c . "$file")" = '{"labels":["a=b"],"default-runtime":"runc"}' ]
  docker rm --force "$name" >/dev/null
}

# ---- containerd: a restart ----

# The file of the machine without any runtime of ours, and with a comment.
plain_containerd() {
  local file=$machine/containerd/config.toml
  sed -i '/runtimes.nvidia/,$d' "$file"
  printf '# the end\n' >>"$file"
  cp "$file" "$work/before"
}

@test "containerd: a drop-in, restarted, GPU 3; again: no change; undone: the handler is unknown" {
  local file=$machine/containerd/config.toml drop_in=$machine/containerd/conf.d/99-nvidia.toml
  plain_containerd
  on_host ln -s "$file" /etc/containerd/config.toml
  configure --runtime=containerd --config="$file" --drop-in-config="$drop_in"
  grep -q '^# the end$' "$file"
  grep -q "^# Below 0 a score" "$file"
  restart_containerd
  cri_run --handler nvidia --env "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n 4p)"
  expect_gpus 3
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
  configure --runtime=containerd --config="$file" --drop-in-config="$drop_in" --config-source=command
  configure --runtime=containerd --config="$file" --drop-in-config="$drop_in" --config-source=command
  [[ $output == *"containerd is configured already"* ]]
  configure --runtime=containerd --config="$file" --drop-in-config="$drop_in" --undo
  cmp "$file" "$work/before"
  [ ! -e "$drop_in" ]
  restart_containerd
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=0
  [ "$status" -ne 0 ]
  [[ $output == *'no runtime for "nvidia" is configured'* ]]
}

@test "containerd: the top-level file alone, as the default runtime" {
  local file=$machine/containerd/config.toml
  plain_containerd
  configure --runtime=containerd --config="$file" --drop-in-config= --set-as-default
  [ "$(head -n "$(wc -l <"$work/before")" "$file" | grep -c '^#')" -eq "$(grep -c '^#' "$work/before")" ]
  restart_containerd
  cri_run --env "NVIDIA_VISIBLE_DEVICES=$(host_uuids | sed -n 2p)"
  expect_gpus 1
  configure --runtime=containerd --config="$file" --drop-in-config= --undo
  cmp "$file" "$work/before"
}

# ---- Podman: nothing ----

export RUNTIME=
# podman_run GLOBAL-OPTION... -- OPTION...
podman_run() {
  local options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  run podman "${options[@]}" run --rm --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" \
    --cap-add MKNOD --env "PROBE_MINORS=$(host_minors)" "$@" small /probe
  read_answers
}

@test "podman: the runtime by name, as the default one, and undone" {
  podman_run --runtime nvidia -- --env NVIDIA_VISIBLE_DEVICES=0,1
  [ "$status" -ne 0 ]
  configure --runtime=podman
  podman_run --runtime nvidia -- --env NVIDIA_VISIBLE_DEVICES=0,1
  expect_gpus 0 1
  configure --runtime=podman --set-as-default
  podman_run -- --env NVIDIA_VISIBLE_DEVICES=6
  expect_gpus 6
  configure --runtime=podman
  podman_run --runtime /usr/sbin/runc -- --env NVIDIA_VISIBLE_DEVICES=6
  expect_no_gpu
  configure --runtime=podman --undo
  [ ! -e "$machine/containers/containers.conf.d/99-nvidia.conf" ]
  podman_run --runtime nvidia -- --env NVIDIA_VISIBLE_DEVICES=0,1
  [ "$status" -ne 0 ]
}

@test "podman: the hook, from a directory that Podman has to be told of" {
  configure --runtime=podman --config-mode=oci-hook --oci-hook-path="$machine/hooks.d/nvidia.json" \
    --nvidia-runtime-hook-path="$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook"
  podman_run --runtime /usr/sbin/runc -- --env NVIDIA_VISIBLE_DEVICES=2,7
  expect_gpus 2 7
  configure --runtime=podman --config-mode=oci-hook --oci-hook-path="$machine/hooks.d/nvidia.json" \
    --nvidia-runtime-hook-path="$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook" --undo
  [ ! -e "$machine/hooks.d/nvidia.json" ]
  podman_run --runtime /usr/sbin/runc -- --env NVIDIA_VISIBLE_DEVICES=2,7
  expect_no_gpu
}

@test "podman: a result that it refuses is not written" {
  mkdir -p "$machine/containers/containers.conf.d"
  # A key that a whole word of Podman's own reader refuses, in the file that is edited.
  printf '[containers]\npids_limit = "many"\n' >"$machine/containers/containers.conf.d/99-nvidia.conf"
  run on_host nvidia-ctk runtime configure --runtime=podman
  [ "$status" -eq 1 ]
  [[ $output == *"podman rejects the new configuration; nothing was changed: "* ]]
  [ "$(wc -l <"$machine/containers/containers.conf.d/99-nvidia.conf")" -eq 2 ]
  rm "$machine/containers/containers.conf.d/99-nvidia.conf"
}
