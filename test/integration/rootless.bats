# SPDX-License-Identifier: Apache-2.0
# files: disk
# Engines without root: the runtime, the hook and nvidia-container-cli all run as an ordinary user, with a user namespace of one id.

# bats file_tags=old-kernel
load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
user=65534
setup() {
  test_setup
  make_root small copy
  chown -R --no-dereference "$user:$user" "$root"
  show_whole_proc
  make_bundle
}
teardown() { test_teardown; }

# rootless on_host|v2 RUNTIME...: runs the bundle as the user.
rootless() {
  local world=$1
  shift
  on_host runc spec --rootless --bundle "$work" || return
  edit_bundle --slurpfile rootless "$work/config.json" '
    .linux = $rootless[0].linux | .mounts = $rootless[0].mounts |
    .linux.uidMappings[0].hostID = '"$user"' | .linux.gidMappings[0].hostID = '"$user"'
  '
  mkdir -p "$work/state"
  chown -R "$user:$user" "$work/state" "$bundle"
  run "$world" setpriv --reuid "$user" --regid "$user" --clear-groups env XDG_RUNTIME_DIR="$work/state" \
    "$@" --root "$work/state" run --bundle "$bundle" "$container"
  [ "$status" -eq 0 ] || { say "$output" && cat "$hook_log" && return 1; }
  read_answers
}

@test "rootless runc: GPU 0 of 8; device rules are skipped with one line in the log" {
  rootless on_host runc
  expect uid 0
  expect_one_gpu /usr/lib64
  expect made-nvidia1 "mknod refused"
  [ "$(grep -c "skipping device cgroup rules" "$hook_log")" -eq 1 ]
}

@test "rootless runc, --no-cgroups: no word about device rules" {
  make_hook --no-cgroups --device=0 --compute --utility
  rootless on_host runc
  expect_one_gpu /usr/lib64
  run ! grep -q 'skipping device cgroup rules' "$hook_log"
}

@test "rootless runc, createRuntime hook" {
  edit_bundle '.hooks = {createRuntime: .hooks.prestart}'
  rootless on_host runc
  expect_one_gpu /usr/lib64
}

# engine on_host|v2 RUNTIME...: as a rootless engine does it, the runtime is root of a user namespace that the engine made before.
engine() {
  local world=$1
  shift
  on_host runc spec --rootless --bundle "$work" || return
  edit_bundle --slurpfile rootless "$work/config.json" '
    .mounts = $rootless[0].mounts | .linux = $rootless[0].linux | del(.linux.uidMappings, .linux.gidMappings) |
    .linux.namespaces |= map(select(.type != "user"))'
  mkdir -p "$work/state"
  chown -R "$user:$user" "$work/state" "$bundle"
  run "$world" setpriv --reuid "$user" --regid "$user" --clear-groups env XDG_RUNTIME_DIR="$work/state" \
    unshare --user --map-root-user --mount "$@" --root "$work/state" run --bundle "$bundle" "$container"
  [ "$status" -eq 0 ] || { say "$output" && cat "$hook_log" && return 1; }
  read_answers
}

@test "an engine's own user namespace, runc" {
  engine on_host runc
  expect uid 0
  expect_one_gpu /usr/lib64
  [ "$(grep -c "skipping device cgroup rules" "$hook_log")" -eq 1 ]
}

@test "an engine's own user namespace, crun" {
  engine v2 crun --cgroup-manager=disabled
  expect uid 0
  expect_one_gpu /usr/lib64
}
