# SPDX-License-Identifier: Apache-2.0
# files: disk
# LXC: Debian's own hooks/nvidia, unchanged, at `lxc.hook.mount` of an unprivileged container, started by root and by an ordinary user.
# The container runs the probe as its init and leaves the answers in its root.

load lib.bash
load engines.bash

setup_file() { start_machine dgx-h100; }
teardown_file() { stop_machine; }
setup() {
  engine_setup
  user=65534
  name=t$BATS_TEST_NUMBER
  chmod a+rx "$work" "$work/.."
  root=$work/root
  make_root small copy
  printf '#!/bin/sh\n/probe >/answers 2>&1\n' >"$root/init"
  chmod 0755 "$root/init"
  # A user namespace may mount a procfs only where a whole one is in view.
  show_whole_proc
  printf '%s:100000:65536\n' root "$(id -un "$user")" >"$work/subid"
  on_host mount --bind "$work/subid" /etc/subuid
  on_host mount --bind "$work/subid" /etc/subgid
}
teardown() {
  on_host umount /etc/subuid /etc/subgid
  test_teardown
}

# configure_container LINE...: the configuration of an unprivileged container whose root belongs to its ids.
configure_container() {
  chown --recursive --no-dereference 100000:100000 "$root"
  mkdir -p "$work/lxc"
  cat >"$work/config" <<CONFIG
lxc.rootfs.path = dir:$root
lxc.idmap = u 0 100000 65536
lxc.idmap = g 0 100000 65536
lxc.uts.name = $name
lxc.autodev = 1
lxc.mount.auto = proc:mixed
lxc.net.0.type = empty
lxc.apparmor.profile = unconfined
lxc.init.cmd = /init
lxc.hook.mount = /usr/share/lxc/hooks/nvidia
lxc.environment = PATH=$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin:/sbin:/bin
$(printf '%s\n' "$@")
CONFIG
}

# lxc_run [COMMAND...]: starts it, by a command of its own if need be, and waits for its end; the answers come into the array `answer`.
lxc_run() {
  run on_host timeout 60 "$@" lxc-start --foreground --lxcpath "$work/lxc" --name "$name" --rcfile "$work/config" \
    --logpriority DEBUG --logfile "$work/log" </dev/null
  [ -e "$root/answers" ] || return 0
  output=$(cat "$root/answers")
  read_answers
}

# What the hook's child, nvidia-container-cli, wrote where LXC shows it: LXC logs what one read gave, which may be several lines.
hook_output() {
  sed -n 's/.*produced output: //p; /^nvidia-container-cli: /p' "$work/log"
}

# expect_lxc_gpus GPU...
expect_lxc_gpus() {
  local gpu names=
  for gpu in "$@"; do names+=" nvidia$gpu"; done
  [ "${answer[uid]-}" = 0 ] || { hook_output && tail -n 20 "$work/log" && return 1; }
  expect nvidia-smi "$#"
  [ "$(grep -c '^open-nvidia[0-9]*: No such device or address' <<<"$output")" -eq "$#" ] || { say "$output" && return 1; }
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools${names} nvidiactl"
  # The ids of the container may make no node at all.
  expect made-nvidia0 "mknod refused"
}

# bats test_tags=old-kernel
@test "unprivileged container of root: GPU 0 and 1 of 8" {
  configure_container "lxc.environment = NVIDIA_VISIBLE_DEVICES=0,1" "lxc.environment = NVIDIA_DRIVER_CAPABILITIES=compute,utility" \
    "lxc.cgroup.dir = $machine_cgroup"
  lxc_run
  expect_lxc_gpus 0 1
  expect_libraries /usr/lib64
}

@test "unprivileged container of root: utility alone, which the hook takes when no capability is named" {
  configure_container "lxc.environment = NVIDIA_VISIBLE_DEVICES=5" "lxc.cgroup.dir = $machine_cgroup"
  export PROBE_MINORS="5"
  lxc_run
  expect nvidia-smi 1
  expect ls-nvidia "nvidia5 nvidiactl"
  expect loader ""
}

@test "unprivileged container of root: all devices, all capabilities" {
  configure_container "lxc.environment = NVIDIA_VISIBLE_DEVICES=all" "lxc.environment = NVIDIA_DRIVER_CAPABILITIES=all" \
    "lxc.cgroup.dir = $machine_cgroup"
  lxc_run
  expect nvidia-smi 8
  expect_libraries /usr/lib64
  [ -e "$root/etc/vulkan/icd.d/nvidia_icd.json" ]
}

@test "a container whose variables ask for nothing, or for void, starts without a GPU" {
  local variable
  for variable in "UNRELATED=1" "NVIDIA_VISIBLE_DEVICES=void" "NVIDIA_VISIBLE_DEVICES="; do
    rm -f "$root/answers"
    configure_container "lxc.environment = $variable" "lxc.cgroup.dir = $machine_cgroup"
    lxc_run
    expect nvidia-smi failed
    expect ls-nvidia ""
  done
}

@test "none: the driver without a GPU" {
  configure_container "lxc.environment = NVIDIA_VISIBLE_DEVICES=none" "lxc.cgroup.dir = $machine_cgroup"
  lxc_run
  expect ls-nvidia "nvidiactl"
}

@test "an unknown GPU, and a requirement that does not hold: no container; the cause and the remedy stand in LXC's log" {
  configure_container "lxc.environment = NVIDIA_VISIBLE_DEVICES=8" "lxc.cgroup.dir = $machine_cgroup"
  lxc_run
  [ "$status" -ne 0 ]
  [ ! -e "$root/answers" ]
  [[ $(hook_output) == *"device error: 8: unknown device"* ]] || { cat "$work/log" && return 1; }
  configure_container "lxc.environment = NVIDIA_VISIBLE_DEVICES=0" "lxc.environment = NVIDIA_REQUIRE_CUDA=cuda>=99.0" \
    "lxc.cgroup.dir = $machine_cgroup"
  lxc_run
  [ "$status" -ne 0 ]
  [[ $(hook_output) == *"requirement error: unsatisfied condition: cuda>=99.0"* ]] || { cat "$work/log" && return 1; }
}

# as_user COMMAND...: an ordinary user whose session has cgroups of its own, as a login manager gives them.
as_user() {
  sh -c '
    group=$1 user=$2
    shift 2
    for hierarchy in /sys/fs/cgroup/*/; do
      [ ! -L "${hierarchy%/}" ] && [ -e "$hierarchy/cgroup.procs" ] || continue
      mkdir -p "$hierarchy$group/user"
      for file in cpus mems; do
        [ ! -e "$hierarchy$group/cpuset.$file" ] || for at in "$group" "$group/user"; do
          cat "$hierarchy/cpuset.$file" >"$hierarchy$at/cpuset.$file"
        done
      done
      chown -R "$user" "$hierarchy$group/user"
      echo $$ >"$hierarchy$group/user/cgroup.procs"
    done
    exec setpriv --reuid "$user" --regid "$user" --clear-groups env HOME="$0" "$@"' "$work/home" "$machine_cgroup" "$user" "$@"
}
export -f as_user

# bats test_tags=old-kernel
@test "unprivileged container of an ordinary user: GPU 0 and 1 of 8" {
  configure_container "lxc.environment = NVIDIA_VISIBLE_DEVICES=0,1" "lxc.environment = NVIDIA_DRIVER_CAPABILITIES=compute,utility"
  mkdir -p "$work/home" "$work/run"
  touch "$work/log"
  chown -R "$user:$user" "$work/home" "$work/run" "$work/lxc" "$work/log"
  export machine_cgroup user work
  lxc_run env XDG_RUNTIME_DIR="$work/run" bash -c 'as_user "$@"' bash
  expect_lxc_gpus 0 1
  expect_libraries /usr/lib64
}
