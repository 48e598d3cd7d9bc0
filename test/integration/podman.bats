# SPDX-License-Identifier: Apache-2.0
# files: disk
# Podman and Buildah: the OCI hook in a hooks directory, as root and as an ordinary user, and nvidia-container-runtime as the runtime.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  mkdir -p "$machine/hooks"
  jq -n --arg hook "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook" --arg path "$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin:/sbin:/bin" '
    {version: "1.0.0", hook: {path: $hook, args: ["nvidia-container-runtime-hook", "prestart"], env: ["PATH=" + $path]},
     when: {always: true, commands: [".*"]}, stages: ["prestart"]}' >"$machine/hooks/oci-nvidia-hook.json"
  import_podman
}
teardown_file() { stop_machine; }
setup() {
  engine_setup
  export HOOKS=$machine/hooks
}

# podman_run OPTION... [-- COMMAND...]: the limits that Podman raises by itself go beyond what this machine gives its root.
podman_run() {
  local options=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  [ $# -eq 0 ] || shift
  run podman run --rm --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" \
    --cap-add MKNOD --env "PROBE_MINORS=$(host_minors)" "${options[@]}" "${image:-small}" "${@:-/probe}"
  read_answers
}

@test "podman, hooks directory: GPU 0 and 1 of 8" {
  podman_run --env NVIDIA_VISIBLE_DEVICES=0,1
  expect_gpus 0 1
  expect_libraries /usr/lib64
}

@test "podman, hooks directory: a container that asks for nothing" {
  podman_run
  expect_no_gpu
}

@test "podman, hooks directory: an unknown GPU; one line names the cause and the remedy" {
  podman_run --env NVIDIA_VISIBLE_DEVICES=8
  [ "$status" -ne 0 ]
  [[ $output == *"device error: 8: unknown device"*"nvidia-container-cli info"* ]] || { say "$output" && return 1; }
}

@test "podman, hooks directory: exec, stop and start again" {
  podman run --detach --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" --cap-add MKNOD \
    --name "$name" --env NVIDIA_VISIBLE_DEVICES=3 --env "PROBE_MINORS=$(host_minors)" small sleep 600
  run podman exec "$name" /probe
  read_answers
  expect_gpus 3
  podman restart --time 0 "$name"
  run podman exec "$name" /probe
  read_answers
  expect_gpus 3
  podman rm --force --time 0 "$name"
}

rootless_run() {
  import_podman rootless_podman
  run rootless_podman run --rm --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 "$@" \
    --env PROBE_MINORS="$(host_minors)" small /probe
  read_answers
}

@test "rootless podman, hooks directory: GPU 0 and 1 of 8" {
  rootless_run --env NVIDIA_VISIBLE_DEVICES=0,1
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  expect nvidia-smi 2
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidia0 nvidia1 nvidiactl"
  expect made-nvidia3 "mknod refused"
}

# --- nvidia-container-runtime as the runtime: without a hooks directory, nothing but it gives a GPU ---

# with_runtime PROGRAM COMMAND...
with_runtime() {
  local program=$1 hooks=$machine/no-hooks
  shift
  mkdir -p "$hooks"
  RUNTIME=$BATS_FILE_TMPDIR/bin/$program HOOKS=$hooks "$@"
}

@test "podman run --device nvidia.com/lease=2: two that are free" {
  printf '[graft.leases]\nmode = "on"\n' >"$machine/leases.toml"
  on_host nvidia-ctk --quiet --config "$machine/leases.toml" cdi generate --leases --cdi-version=auto --output=/run/cdi/nvidia.yaml
  mkdir -p "$machine/no-hooks"
  HOOKS=$machine/no-hooks podman run --detach --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" --cap-add MKNOD \
    --name "$name" --device nvidia.com/lease=3 small sleep 600
  HOOKS=$machine/no-hooks podman_run --device nvidia.com/lease=2
  expect_gpus 4 5
  HOOKS=$machine/no-hooks podman_run --device nvidia.com/lease=6
  [ "$status" -ne 0 ]
  [[ $output == *"lease: 6 GPUs were asked for, 5 of 8 are free; Held: GPU 0, 1, 2 by uid 0 (container "* ]] || die "$output"
  podman rm --force --time 0 "$name"
  rm -f "$machine/leases.toml"
  on_host rm /run/cdi/nvidia.yaml /run/cdi/nvidia.lease.yaml
}

@test "podman --runtime nvidia-container-runtime: GPU 0 and 1 of 8" {
  with_runtime nvidia-container-runtime podman_run --env NVIDIA_VISIBLE_DEVICES=0,1
  expect_gpus 0 1
  expect_libraries
}

@test "podman --runtime nvidia-container-runtime.legacy: GPU 2" {
  with_runtime nvidia-container-runtime.legacy podman_run --env NVIDIA_VISIBLE_DEVICES=2 --env NVIDIA_DRIVER_CAPABILITIES=compute,utility
  expect_gpus 2
  expect_libraries /usr/lib64
}

@test "podman --runtime nvidia-container-runtime: annotations of an image count no more than its variables" {
  printf 'FROM small\n' >"$work/Containerfile"
  local manager
  for manager in a=b io.container.manager=cri-o; do
    podman build --quiet --isolation chroot --annotation cdi.k8s.io/x=vendor.example/host=all --annotation "$manager" --tag annotated "$work"
    image=annotated with_runtime nvidia-container-runtime podman_run
    [ "$status" -ne 0 ]
    [[ $output == *"an annotation asks for the CDI device 'vendor.example/host=all': annotations, which Podman and nerdctl also take from images, may not name devices of the kind 'vendor.example/host'"* ]] ||
      die "$output"
  done
}

@test "podman --runtime nvidia-container-runtime: a container that asks for nothing" {
  with_runtime nvidia-container-runtime podman_run
  expect_no_gpu
}

@test "podman --runtime nvidia-container-runtime: an unknown GPU; one line names the cause and the remedy" {
  with_runtime nvidia-container-runtime podman_run --env NVIDIA_VISIBLE_DEVICES=8
  [ "$status" -ne 0 ]
  [[ $output == *"8: unknown device"*"nvidia-container-cli info"* ]] || { say "$output" && return 1; }
}

@test "podman --runtime nvidia-container-runtime: exec, stop and start again" {
  with_runtime nvidia-container-runtime podman run --detach --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 \
    --cgroup-parent "/$machine_cgroup" --cap-add MKNOD --name "$name" --env NVIDIA_VISIBLE_DEVICES=3 --env "PROBE_MINORS=$(host_minors)" small sleep 600
  run podman exec "$name" /probe
  read_answers
  expect_gpus 3
  # The runtime of the container is that of its first start.
  with_runtime nvidia-container-runtime podman restart --time 0 "$name"
  run podman exec "$name" /probe
  read_answers
  expect_gpus 3
  podman rm --force --time 0 "$name"
}

@test "rootless podman --runtime nvidia-container-runtime: GPU 0 and 1 of 8" {
  with_runtime nvidia-container-runtime rootless_run --env NVIDIA_VISIBLE_DEVICES=0,1
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  expect nvidia-smi 2
  expect made-nvidia3 "mknod refused"
}

# A step of a build. The variables are the image's: that is how a build asks for a GPU.
containerfile() {
  mkdir -p "$work/context"
  cat >"$work/context/Containerfile" <<FILE
FROM small
ENV NVIDIA_VISIBLE_DEVICES=$1 PROBE_MINORS="$(host_minors)"
RUN /probe
FILE
}

@test "buildah bud: RUN with GPU 0 and 1, through the hooks directory" {
  containerfile 0,1
  run buildah bud --runtime /usr/sbin/runc --hooks-dir "$machine/hooks" --isolation oci --network none --no-cache \
    --cgroup-parent "/$machine_cgroup/build-$BATS_TEST_NUMBER" --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cap-add MKNOD --pull-never "$work/context"
  read_answers
  expect_gpus 0 1
}

@test "podman build: RUN with GPU 6, through the hooks directory" {
  containerfile 6
  run podman build --hooks-dir "$machine/hooks" --isolation oci --network none --no-cache --cgroup-parent "/$machine_cgroup/build-$BATS_TEST_NUMBER" \
    --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cap-add MKNOD --pull-never "$work/context"
  read_answers
  expect_gpus 6
}

@test "buildah bud: an unknown GPU ends the step; the cause and the remedy are said" {
  containerfile 8
  run buildah bud --runtime /usr/sbin/runc --hooks-dir "$machine/hooks" --isolation oci --network none --no-cache \
    --cgroup-parent "/$machine_cgroup/build-$BATS_TEST_NUMBER" --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --pull-never "$work/context"
  [ "$status" -ne 0 ]
  [[ $output == *"device error: 8: unknown device"*"nvidia-container-cli info"* ]] || { say "$output" && return 1; }
}

# --- CDI ---

@test "podman --device: GPU 1 and all by a generated specification, which Debian 12's Podman takes" {
  on_host "$BATS_FILE_TMPDIR/bin/nvidia-ctk" cdi generate --output=/run/cdi/nvidia.yaml --nvidia-cdi-hook-path="$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook" \
    --cdi-version=auto
  on_host grep -q '^cdiVersion: 0.5.0$' /run/cdi/nvidia.yaml
  podman_run --device nvidia.com/gpu=1
  expect_gpus 1
  expect_libraries
  podman_run --device nvidia.com/gpu=all
  expect_gpus 0 1 2 3 4 5 6 7
  on_host rm /run/cdi/nvidia.yaml
}

@test "podman --runtime nvidia-container-runtime: no hook; what needs the container's mounts is done between create and start" {
  local hooks
  with_runtime nvidia-container-runtime podman run --detach --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 \
    --cgroup-parent "/$machine_cgroup" --name "$name" --env NVIDIA_VISIBLE_DEVICES=0 small sleep 600
  hooks=$(on_host jq -c .hooks "$(podman inspect --format '{{.OCIConfigPath}}' "$name")")
  run podman exec "$name" ls /dev/dri/by-path
  podman rm --force --time 0 "$name" >/dev/null
  [ "$hooks" = null ] || die "$hooks"
  [ "$(grep -c '^pci-0000:1b:00.0-[cr]' <<<"$output")" -eq 2 ] || die "$output"
}
