# SPDX-License-Identifier: Apache-2.0
# enroot, which is not packaged: what it does is written out here. An ordinary user makes a user and a mount namespace, and no pid namespace, so that
# no procfs can be mounted; a hook calls nvidia-container-cli, word for word, for a root that is mounted upon itself; then that root becomes
# the process's own. Apptainer without set-uid programs does the same to an overlay; the program itself is in apptainer.bats.

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
user=65534
# Without a pid namespace all that can be done is to bind the host's procfs, with what lies in it.
# shellcheck disable=SC2016
bind_proc='mount --rbind /proc "$ENROOT_ROOTFS/proc"'
# shellcheck disable=SC2016
make_readonly='mount -o remount,bind,ro "$ENROOT_ROOTFS"'

setup() {
  test_setup
  make_root small copy
  chown -R --no-dereference "$user:$user" "$root"
  : >"$hook_log"
  chmod a+rw "$hook_log"
  image_environ NVIDIA_VISIBLE_DEVICES=0 NVIDIA_DRIVER_CAPABILITIES=compute,utility
  identity=(--map-root-user)
  before_hook=$bind_proc
  after_hook=:
  write_hook
}
teardown() { test_teardown; }

# image_environ NAME=VALUE...: the image's environment, which enroot keeps in a file for its hooks.
image_environ() {
  printf '%s\n' "$@" >"$work/environ"
}

# The hook of the GPUs. It passes none of the image's variables on; they become options.
write_hook() {
  install -m 0755 "$top/test/integration/enroot-hook" "$work/hook"
}

# What runs in the new namespaces, with the commands that a test puts before and behind the hook.
write_start() {
  cat >"$work/start" <<START
#!/bin/bash
set -euo pipefail
mount --rbind "\$ENROOT_ROOTFS" "\$ENROOT_ROOTFS"
mount -t tmpfs -o mode=755 tmpfs "\$ENROOT_ROOTFS/dev"
for node in null zero full random urandom; do
  : >"\$ENROOT_ROOTFS/dev/\$node"
  mount --bind "/dev/\$node" "\$ENROOT_ROOTFS/dev/\$node"
done
$before_hook
"$work/hook" 2>>"$hook_log" || exit 70
$after_hook
cd "\$ENROOT_ROOTFS"
pivot_root . .
umount -l .
exec env -i PROBE_MINORS="\${PROBE_MINORS-}" /probe
START
  chmod 0755 "$work/start"
}

# start [on_host|v2|hidden_processes]: starts the container as the user; the answers of the probe come into the array `answer`.
start() {
  write_start
  run "${1:-on_host}" setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all \
    env ENROOT_ROOTFS="$root" ENROOT_ENVIRON="$work/environ" \
    unshare --user "${identity[@]}" --mount --propagation private "$work/start"
  read_answers
}

# hidden_processes COMMAND...: where procfs shows a user only processes that are his, as far as he may trace them.
hidden_processes() {
  mkdir -p "$work/driver"
  # shellcheck disable=SC2016
  on_host unshare --mount --propagation private -- sh -c '
    mount --rbind /proc/driver "$0" && mount -t proc -o hidepid=2 proc /proc && mount --rbind "$0" /proc/driver && exec "$@"' \
    "$work/driver" "$@"
}

# expect_gpus GPU...: the container started, with exactly these GPUs of 8.
expect_gpus() {
  local gpu names=
  [ "$status" -eq 0 ] || { say "$output" && cat "$hook_log" && return 1; }
  for gpu in "$@"; do
    names+=" nvidia$gpu"
    expect "open-nvidia$gpu" "No such device or address" # the simulated node: the open was allowed
  done
  expect nvidia-smi "$#"
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools$names nvidiactl"
  expect_libraries /usr/lib64
  # Whoever has no root but his own namespace's makes no node.
  expect made-nvidia1 "mknod refused"
}

# refuse PATTERN: the hook fails with this line, and the container does not start; the root is as it was.
refuse() {
  local before
  before=$(contents)
  start
  [ "$status" -eq 70 ] || { say "status $status: $output" && cat "$hook_log" && return 1; }
  # shellcheck disable=SC2254
  case $(grep '^nvidia-container-cli: [^h]' "$hook_log") in
  $1) ;;
  *) cat "$hook_log" && return 1 ;;
  esac
  [ "$(contents)" = "$before" ]
}

contents() {
  find "$root" -printf '%P %y %m %U %s %l\n' | sort
}

# bats test_tags=old-kernel
@test "enroot's calls, made by a script: GPU 0 of 8, with the driver's procfs cut down to it" {
  start
  expect uid 0
  expect_gpus 0
  expect nvidia-smi-first "GPU 0: NVIDIA H100 80GB HBM3"
  expect procfs 1
}

# bats test_tags=old-kernel
@test "a user who stays who he is, with ambient capabilities" {
  identity=(--map-current-user --keep-caps)
  start
  expect uid "$user"
  expect_gpus 0
  expect procfs 1
}

# bats test_tags=old-kernel
@test "a machine with cgroup v2" {
  start v2
  expect_gpus 0
}

@test "several GPUs, by index and by UUID, and all" {
  local uuid
  uuid=$(on_host nvidia-smi -L | sed -n 's/^GPU 5:.*UUID: \(.*\))/\1/p')
  image_environ "NVIDIA_VISIBLE_DEVICES=3,$uuid" NVIDIA_DRIVER_CAPABILITIES=compute,utility
  PROBE_MINORS="1 3 5" start
  expect_gpus 3 5
  image_environ NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=all
  PROBE_MINORS="0 1 2 3 4 5 6 7" start
  expect nvidia-smi 8
  expect procfs 8
  expect_libraries /usr/lib64
}

@test "none is the driver without a GPU; void is nothing" {
  image_environ NVIDIA_VISIBLE_DEVICES=none NVIDIA_DRIVER_CAPABILITIES=compute,utility
  start
  [ "$status" -eq 0 ]
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidiactl"
  expect_libraries /usr/lib64
  image_environ NVIDIA_VISIBLE_DEVICES=void
  rm -rf "$root"
  make_root small copy
  chown -R --no-dereference "$user:$user" "$root"
  start
  [ "$status" -eq 0 ]
  expect ls-nvidia ""
  expect nvidia-smi failed
}

@test "requirements: met, not met, and not asked for" {
  image_environ NVIDIA_VISIBLE_DEVICES=0 NVIDIA_DRIVER_CAPABILITIES=compute,utility "NVIDIA_REQUIRE_CUDA=cuda>=12.0 driver>=418"
  start
  expect_gpus 0
  image_environ NVIDIA_VISIBLE_DEVICES=0 "NVIDIA_REQUIRE_CUDA=cuda>=99.0"
  refuse "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=99.0*"
  image_environ NVIDIA_VISIBLE_DEVICES=0 NVIDIA_DRIVER_CAPABILITIES=compute,utility "NVIDIA_REQUIRE_CUDA=cuda>=99.0" NVIDIA_DISABLE_REQUIRE=1
  start
  expect_gpus 0
}

@test "a GPU that is not there is refused, and the root stays as it was" {
  image_environ NVIDIA_VISIBLE_DEVICES=0,8 NVIDIA_DRIVER_CAPABILITIES=compute,utility
  refuse "nvidia-container-cli: device error: 8: unknown device*"
}

# --- procfs ---

# bats test_tags=old-kernel
@test "a procfs that comes after the hook, or never" {
  before_hook=:
  start
  expect_gpus 0
  after_hook=$bind_proc
  start
  expect_gpus 0
}

# bats test_tags=old-kernel
@test "a procfs that is read-only" {
  # shellcheck disable=SC2016
  before_hook+='; mount -o remount,bind,ro "$ENROOT_ROOTFS/proc"'
  start
  expect_gpus 0
}

# bats test_tags=old-kernel
@test "a procfs whose driver is hidden" {
  local options
  for options in rw ro; do
    # shellcheck disable=SC2016
    before_hook="$bind_proc; mount -t tmpfs -o $options tmpfs "'"$ENROOT_ROOTFS/proc/driver"'
    start
    expect_gpus 0
  done
}

# bats test_tags=old-kernel
@test "a procfs that hides processes" {
  start hidden_processes
  expect_gpus 0
  identity=(--map-current-user --keep-caps)
  start hidden_processes
  expect_gpus 0
}

# --- a root that is read-only ---

# bats test_tags=old-kernel
@test "a root that becomes read-only behind the hook" {
  after_hook=$make_readonly
  start
  expect_gpus 0
}

@test "a root that is read-only before the hook: refused, with what to do" {
  before_hook+="; $make_readonly"
  refuse "nvidia-container-cli: mount error: file creation failed: $root/*: read-only file system"
  grep -q "^nvidia-container-cli: hint: Make the container's root writable while it is being set up" "$hook_log"
}

# bats test_tags=old-kernel
@test "a root that is read-only before the hook, but has been started before" {
  start
  expect_gpus 0
  before_hook+="; $make_readonly"
  start
  expect_gpus 0
}

# --- Apptainer ---

# bats test_tags=old-kernel
@test "Apptainer's calls, made by a script: an overlay of the user's own" {
  cat >"$work/hook" <<'HOOK'
#!/bin/bash
exec env -i PATH="$PATH" nvidia-container-cli --user configure --no-cgroups --device=0 --compute --utility \
  "--require=cuda>=12.0" "--ldconfig=@$(command -v ldconfig.real || command -v ldconfig)" "$ENROOT_ROOTFS"
HOOK
  # The session's directory is a tmpfs that nobody else sees.
  mkdir -p "$work/session"
  cat >"$work/overlay" <<OVERLAY
#!/bin/bash
set -e
mount -t tmpfs tmpfs "$work/session"
mkdir "$work"/session/{upper,scratch,final}
mount -t overlay -o "lowerdir=$root,upperdir=$work/session/upper,workdir=$work/session/scratch,userxattr" overlay "$work/session/final"
ENROOT_ROOTFS=$work/session/final exec "$work/start"
OVERLAY
  chmod 0755 "$work/overlay"
  local before
  before=$(contents)
  write_start
  run on_host setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all \
    unshare --user --map-root-user --mount --propagation private "$work/overlay"
  read_answers
  expect_gpus 0
  [ "$(contents)" = "$before" ]
}
