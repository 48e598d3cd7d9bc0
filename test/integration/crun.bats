# SPDX-License-Identifier: Apache-2.0
# files: disk
# The same tests with crun. Debian's crun refuses hybrid cgroups.

# bats file_tags=old-kernel
load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
setup() {
  test_setup
  make_root debian overlay
}
teardown() { test_teardown; }

@test "crun without cgroups: GPU 0 of 8, and nothing on the host changes" {
  make_bundle
  host_state >"$work/before"
  run_container v2 crun --cgroup-manager=disabled
  expect_one_gpu
  host_state >"$work/after"
  diff "$work/before" "$work/after"
}

@test "crun, cgroup v2: the device program lets one GPU through" {
  make_bundle
  run_container v2_raising crun
  expect_one_gpu
  expect made-nvidia0 "No such device or address"
  expect made-nvidia1 "Operation not permitted"
}

@test "crun, cgroup v1: the controller lets one GPU through" {
  make_bundle
  run_container v1_alone crun
  expect_one_gpu
  expect made-nvidia0 "No such device or address"
  expect made-nvidia1 "Operation not permitted"
}

@test "crun, createRuntime hook" {
  make_bundle '.hooks = {createRuntime: .hooks.prestart}'
  run_container v2 crun --cgroup-manager=disabled
  expect_one_gpu
}

@test "crun, a user namespace" {
  on_host umount "$root"
  make_root small copy
  chown -R --no-dereference 100000:100000 "$root"
  make_user_bundle
  run_container v2 crun --cgroup-manager=disabled
  expect uid 0
  expect_one_gpu /usr/lib64
}
