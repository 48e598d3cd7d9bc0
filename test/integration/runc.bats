# SPDX-License-Identifier: Apache-2.0
# files: disk
# Containers of runc get exactly the GPUs they ask for, through a hook as engines run it.

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
setup() {
  test_setup
  make_root debian overlay
}
teardown() { test_teardown; }

# The rights of the device cgroup: the one GPU by any node, no other by any node.
expect_device_cgroup() {
  expect made-nvidia0 "No such device or address"
  expect made-nvidiactl "No such device or address"
  expect made-nvidia1 "Operation not permitted"
}

# bats test_tags=old-kernel,arm64
@test "runc, cgroup v1: GPU 0 of 8, and nothing on the host changes" {
  grep -q '^[^ ]* [^ ]* [^ ]* [^ ]* [^ ]* .* - cgroup .*devices' /proc/self/mountinfo ||
    skip "this machine has no cgroup v1 with the devices controller"
  make_bundle
  host_state >"$work/before"
  run_container v1
  expect_one_gpu
  expect_device_cgroup
  host_state >"$work/after"
  diff "$work/before" "$work/after"
}

# bats test_tags=old-kernel,arm64
@test "runc, cgroup v2: GPU 0 of 8, and nothing on the host changes" {
  make_bundle
  host_state >"$work/before"
  run_container v2
  expect_one_gpu
  expect_device_cgroup
  host_state >"$work/after"
  diff "$work/before" "$work/after"
}

# bats test_tags=old-kernel
@test "runc, createRuntime hook instead of prestart" {
  make_bundle '.hooks = {createRuntime: .hooks.prestart}'
  run_container v2
  expect_one_gpu
  expect_device_cgroup
}

# oci_hook_line OPTION...: what containerd's and nerdctl's --gpus write into config.json; containerd's own program puts in the process and the root.
oci_hook_line() {
  local line
  line=("$(type -P containerd)" oci-hook -- "$BATS_FILE_TMPDIR/bin/nvidia-container-cli" --load-kmods --ldcache=/etc/ld.so.cache configure
    "$@" '--pid={{pid}}' '{{rootfs}}')
  edit_bundle --argjson line "$(jq -nc '$ARGS.positional' --args "${line[@]}")" \
    '.hooks = {prestart: [{path: $line[0], args: $line, env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]}'
}

@test "runc, containerd's oci-hook line, with all that its options can say" {
  local uuid
  uuid=$(on_host nvidia-smi -L | sed -n 's/^GPU 5:.*UUID: \(.*\))/\1/p')
  make_bundle
  oci_hook_line "--device=0,$uuid" --compute --compat32 --graphics --utility --video --display --ldconfig=@/sbin/ldconfig "--require=cuda>=12.0"
  run_container v2
  expect nvidia-smi 2
  expect ls-nvidia "nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia0 nvidia5 nvidiactl"
  expect_libraries
  expect_device_cgroup
  make_root debian overlay
  oci_hook_line --device=all --compute --utility --no-cgroups
  run_container v2
  expect procfs 8
  expect_libraries
  expect made-nvidia0 "Operation not permitted"
}

@test "runc without our hook: the device cgroup refuses every GPU" {
  make_bundle 'del(.hooks)'
  run_container v2
  expect made-nvidia0 "Operation not permitted"
  expect nvidia-smi failed
  expect ldconfig ""
}

# bats test_tags=old-kernel
@test "runc, --no-cgroups: nodes are there, the cgroup is not touched" {
  make_bundle
  make_hook --no-cgroups --device=0 --compute --utility
  run_container v2
  expect open-nvidia0 "Operation not permitted"
  expect_libraries
}

@test "runc, two GPUs by UUID" {
  make_bundle
  local uuids
  uuids=$(on_host nvidia-container-cli list --json | jq -r '[.devices[]? | .uuid? // empty] | .[2:4] | join(",")')
  if [ -z "$uuids" ]; then
    uuids=$(on_host nvidia-smi -L | sed -n 's/^GPU [23]:.*UUID: \(.*\))/\1/p' | paste -sd,)
  fi
  make_hook "--device=$uuids" --compute --utility
  run_container v2
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidia2 nvidia3 nvidiactl"
  expect nvidia-smi 2
  expect procfs 2
  expect made-nvidia0 "Operation not permitted"
}

# bats test_tags=old-kernel
@test "runc, a user namespace, cgroup v1" {
  on_host umount "$root"
  make_root small copy
  chown -R --no-dereference 100000:100000 "$root"
  make_user_bundle
  run_container v1
  expect uid 0
  expect_one_gpu /usr/lib64
}

# bats test_tags=old-kernel
@test "runc, a user namespace, cgroup v2" {
  # The root belongs to the first id of the container.
  on_host umount "$root"
  make_root small copy
  chown -R --no-dereference 100000:100000 "$root"
  make_user_bundle
  run_container v2
  expect uid 0
  expect_one_gpu /usr/lib64
  expect made-nvidia1 "mknod refused"
}

# bats test_tags=old-kernel
@test "runc, read-only root" {
  make_bundle '.root.readonly = true'
  run_container v1
  expect_one_gpu
}

# bats test_tags=old-kernel
@test "runc, root on tmpfs" {
  on_host umount "$root"
  make_root debian tmpfs
  make_bundle
  run_container v1
  expect_one_gpu
}

# bats test_tags=old-kernel
@test "runc, a root that was set up before: the second container is like the first" {
  make_bundle
  run_container v1
  expect_one_gpu
  run_container v1
  expect_one_gpu
  expect_device_cgroup
}

# bats test_tags=old-kernel
@test "runc, the hook runs twice for one container" {
  make_bundle '.hooks.prestart += .hooks.prestart'
  run_container v2
  expect_one_gpu
  expect_device_cgroup
}

@test "runc, an unknown device: no container, nothing left" {
  make_bundle
  make_hook --device=8 --compute --utility
  host_state >"$work/before"
  mkdir -p "$work/runc"
  run ! on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  grep -q 'nvidia-container-cli: device error: 8: unknown device' "$hook_log"
  host_state >"$work/after"
  diff "$work/before" "$work/after"
}

@test "a cache that cannot be used is a warning, and the libraries are found all the same" {
  make_bundle
  make_hook --global=--ldcache=/nothing --device=0 --compute --utility
  run_container v2
  expect_one_gpu
  grep -qFx "nvidia-container-cli: warning: open failed: /nothing: no such file or directory; searching the usual directories for libraries" "$hook_log" ||
    die "$(cat "$hook_log")"
}
