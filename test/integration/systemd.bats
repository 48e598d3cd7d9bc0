# SPDX-License-Identifier: Apache-2.0
# A container whose cgroup systemd manages keeps its GPU when systemd puts its own rules in force again: at `systemctl daemon-reload`, and when
# an engine updates the container. Each test runs on a host that systemd runs (test/tools/systemd-host), with cgroup v1 and with v2.
# lane: quiet

load lib.bash
load engines.bash

setup_file() {
  local version
  # PATH of the daemons: programs that engines look for.
  start_host dgx-h100
  install_programs
  for version in v1 v2; do
    host "$version"
    start_systemd_host "$version" || break
  done
}

teardown_file() {
  local version
  for version in v1 v2; do
    host "$version"
    "$top/test/tools/systemd-host" stop "$machine/host"
  done
  stop_host
}

setup() {
  work=$BATS_TEST_TMPDIR
  name=t$BATS_TEST_NUMBER
  chmod a+rx "$work" "$work/.."
  export CTR_NAMESPACE=default
}

teardown() {
  [ ! -d "$machine/docker" ] || docker rm --force "$name" >/dev/null 2>&1 || true
  [ ! -d "$work/hooks" ] || podman rm --force --time 0 "$name" >/dev/null 2>&1 || true
  [ ! -d "$work/oci" ] || oci delete --force "$name" 2>/dev/null || true
  [ ! -e "$work/ctr" ] || end_task
}

# host VERSION: what on_host and docker mean from now on.
host() {
  machine=$BATS_FILE_TMPDIR/$1
  version=$1
  export machine version
}

# On the simulated host without systemd, which the other two start from.
on_simulated_host() {
  nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" --wdns="$PWD" -- "$@"
}

on_host() {
  "$top/test/tools/systemd-host" run "$machine/host" env PATH="$BATS_FILE_TMPDIR/bin:$PATH" "$@"
}

# A reason to skip is kept for the tests of that version; anything else that goes wrong ends the file.
start_systemd_host() {
  local status=0
  mkdir -p "$machine/docker"
  on_simulated_host "$top/test/tools/systemd-host" start "$1" "$machine/host" "$BATS_RUN_TMPDIR" 2>"$machine/why" || status=$?
  case "$status" in
  0) rm "$machine/why" ;;
  77) return 0 ;;
  *)
    cat "$machine/why" >&2
    return 1
    ;;
  esac
  start_docker_service
  import_image small
}

# Docker as Debian's unit starts it, with systemd as the keeper of cgroups.
start_docker_service() {
  jq -n --arg bin "$BATS_FILE_TMPDIR/bin" '{"exec-opts": ["native.cgroupdriver=systemd"],
    runtimes: (["nvidia-container-runtime", "nvidia-container-runtime.cdi", "nvidia-container-runtime.legacy"] |
      map({key: ., value: {path: ($bin + "/" + .)}}) | from_entries)}' >"$machine/docker/daemon.json"
  on_host systemd-run --quiet --unit docker -p Type=notify -p Delegate=yes -p KillMode=process -p TimeoutStartSec=30 \
    -p "StandardOutput=append:$machine/docker/log" -p "StandardError=append:$machine/docker/log" \
    --setenv="PATH=$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    dockerd --config-file "$machine/docker/daemon.json" --host "unix://$machine/docker/sock" \
    --data-root "$machine/docker/data" --exec-root /run/docker-exec --pidfile "$machine/docker/pid" \
    --iptables=false --ip-forward=false --bridge=none && return
  tail -n 30 "$machine/docker/log" >&2
  die "dockerd did not come up"
}

# use VERSION: the test goes on there, or is skipped.
use() {
  host "$1"
  [ ! -e "$machine/why" ] || skip "$(tail -n 1 "$machine/why")"
  # As udev leaves it: NVIDIA's nodes have no class, and so no links.
  on_host sh -c 'rm -f /dev/char/195:*'
}

# --- containers ---

# docker_start OPTION...: a container that stays, by Docker.
docker_start() {
  run -0 docker run --detach --net=none --name "$name" "$@" small sleep 3600
  in_container() { docker exec "$name" "$@"; }
  update() {
    # Without the cpu controller in cgroup v2 Docker refuses; systemd is then sent what runc would send.
    docker update --cpus "$1" "$name" >/dev/null 2>&1 && return
    [ "$version" = v2 ] && on_host systemctl set-property --runtime "$(scope)" CPUWeight="${1#*.}"
  }
}

# podman_start OPTION...: the same by Podman, with the hook in a hooks directory. The limits that it sets by itself go beyond what every machine has.
podman_start() {
  local bin=$BATS_FILE_TMPDIR/bin
  mkdir -p "$work/hooks"
  jq -n --arg bin "$bin" '{version: "1.0.0", when: {always: true, commands: [".*"]}, stages: ["prestart"],
    hook: {path: ($bin + "/nvidia-container-runtime-hook"), args: ["nvidia-container-runtime-hook", "prestart"], env: ["PATH=/usr/bin:/bin"]}}' \
    >"$work/hooks/oci-nvidia-hook.json"
  podman() {
    on_host env PODMAN_IGNORE_CGROUPSV1_WARNING=1 /usr/bin/podman --root "$machine/podman/root" --runroot /run/podman --tmpdir /run/podman-tmp --storage-driver vfs \
      --cgroup-manager systemd --events-backend none --hooks-dir "$work/hooks" --runtime /usr/sbin/runc "$@"
  }
  tar --create --directory "$(image small)" . | podman import - small >/dev/null 2>&1
  run -0 podman run --detach --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --pids-limit 0 --cap-add MKNOD \
    --name "$name" "$@" small sleep 3600
  in_container() { podman exec "$name" "$@"; }
  update() { on_host systemctl set-property --runtime "$(scope)" CPUWeight="${1#*.}"; } # this Podman has no update
}

# oci_start ENVIRONMENT HOOK [JQ-FILTER]: the same by a low-level runtime itself, the command in `oci`, with a prestart hook.
oci_start() {
  mkdir -p "$work/bundle"
  cp -a "$(image small)" "$work/root"
  on_host runc spec --bundle "$work/bundle"
  bundle=$work/bundle
  edit_bundle --arg root "$work/root" --arg path "$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    --arg environment "$1" --arg name "$name" --arg hook "$2" '
    .process.terminal = false | .process.args = ["sleep", "3600"] | del(.process.rlimits) | .process.env += [$environment] |
    .root = {path: $root, readonly: false} | .linux.cgroupsPath = "system.slice:runc:" + $name |
    (.process.capabilities[]) |= (. + ["CAP_MKNOD"] | unique) |
    .hooks = {prestart: [{path: $hook, args: [$hook, "prestart"], env: ["PATH=" + $path]}]}'
  [ $# -lt 3 ] || edit_bundle "$3"
  # Into a file: the container keeps its output open.
  {
    oci create --bundle "$bundle" "$name" && oci start "$name"
  } </dev/null >"$work/oci.log" 2>&1 3>&- || { cat "$work/oci.log"; return 1; }
  in_container() { oci exec "$name" "$@"; }
  update() {
    # As above: it tells systemd, and then misses the controller's file. crun does not get so far.
    oci update --cpu-share "$((100 * ${1#*.}))" "$name" 2>/dev/null && return
    [ "$version" = v2 ] && on_host systemctl set-property --runtime "$(scope)" CPUWeight="${1#*.}"
  }
}

oci() { on_host "${oci[@]}" --systemd-cgroup --root "$work/oci" "$@"; }

runc_start() {
  oci=(runc)
  oci_start "$@"
}

# crun_program: the command, in the array `crun`.
crun_program() {
  crun=(crun)
  may_raise_limits || crun=("$BATS_FILE_TMPDIR/programs/memlock" crun)
}

crun_start() {
  crun_program
  oci=("${crun[@]}")
  oci_start "$@"
}

# crun_runtime_start MODE: by nvidia-container-runtime in front of crun.
crun_runtime_start() {
  crun_program
  printf '#!/bin/sh\nexec %s "$@"\n' "${crun[*]@Q}" >"$work/crun"
  chmod 0755 "$work/crun"
  printf '[nvidia-container-runtime]\nmode = "%s"\nruntimes = ["%s"]\n' "$1" "$work/crun" >"$work/config.toml"
  oci=(env NVIDIA_CTK_CONFIG_FILE_PATH="$work/config.toml" nvidia-container-runtime)
  # QUIRK: crun fails where a hook ends before it has read the state.
  printf '#!/bin/sh\nexec cat >/dev/null\n' >"$work/hook"
  chmod 0755 "$work/hook"
  oci_start NVIDIA_VISIBLE_DEVICES=0 "$work/hook"
}

# containerd, with systemd as the keeper of cgroups, from the first test on that needs it.
start_containerd_service() {
  [ ! -d "$machine/containerd" ] || return 0
  configure_containerd "SystemdCgroup = true"
  make_runc
  on_host systemd-run --quiet --unit containerd -p Delegate=yes -p KillMode=process \
    -p "StandardOutput=append:$machine/containerd/log" -p "StandardError=append:$machine/containerd/log" \
    --setenv="PATH=$machine/bin:$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin:/sbin:/bin" containerd --config "$machine/containerd/config.toml"
  await_containerd
  import_archive default small small /probe
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
}

# containerd asks for a share of the CPU each time. Where cgroup v2 has no cpu controller runc fails at its file: there it is not asked.
make_runc() {
  mkdir -p "$machine/bin"
  on_host sh -c 'cd /sys/fs/cgroup && [ -e cgroup.controllers ] && ! grep -qw cpu cgroup.controllers' || return 0
  cat >"$machine/bin/runc" <<RUNC
#!/bin/bash
bundle=
for ((n = 1; n < \$#; n++)); do
  [ "\${!n}" != --bundle ] || bundle=\${*:n+1:1}
done
if [ -n "\$bundle" ]; then
  jq "del(.linux.resources.cpu)" "\$bundle/config.json" >"\$bundle/config.json.less" && mv "\$bundle/config.json.less" "\$bundle/config.json"
fi
exec $(type -P runc) "\$@"
RUNC
  chmod 0755 "$machine/bin/runc"
}

# ctr_start OPTION...: a container that stays, by containerd's own client.
ctr_start() {
  start_containerd_service
  : >"$work/ctr"
  run -0 ctr run --detach --runc-systemd-cgroup --cgroup "system.slice:ctr:$name" --cap-add CAP_MKNOD "$@" \
    docker.io/library/small:latest "$name" sleep 3600
  in_container() { ctr task exec --exec-id "exec-$RANDOM" "$name" "$@"; }
  update() { on_host systemctl set-property --runtime "$(scope)" CPUWeight="${1#*.}"; }
}
end_task() {
  ctr task kill --signal KILL "$name" 2>/dev/null || true
  within 5 ctr container delete "$name" 2>/dev/null || say "container $name cannot be deleted"
}

# expect_pod_keeps_gpu HANDLER: GPU 0 of a pod's container, as a kubelet makes it, at the start and after each of the changes.
expect_pod_keeps_gpu() {
  local want options=()
  local reload="systemctl daemon-reload"
  local change="systemctl list-units --type=scope --plain --no-legend 'cri-containerd*' | cut -d ' ' -f 1 |
    xargs -I '{}' systemctl set-property --runtime '{}' CPUWeight=50"
  start_containerd_service
  # Without the cpu controller runc misses its file after it has told systemd.
  [ "$version" = v2 ] || options=(--update)
  cri_run --cgroup kubepods.slice --handler "$1" --env NVIDIA_VISIBLE_DEVICES=0 "${options[@]}" \
    --between "$reload" --between "$change" --between "$reload" -- sh -c "$open_devices"
  printf -v want 'nvidia0: No such device or address\nother: Operation not permitted\nnull: opened\n%.0s' 1 2 3 4
  [ "$output"$'\n' = "$want" ] && return
  say "$output"
  tail -n 20 "$machine/host/log"
  return 1
}

# The container's scope.
scope() {
  on_host systemctl list-units --type=scope --plain --no-legend | awk '$1 != "init.scope" && !/conmon/ { print $1 }'
}

# The errors of opening GPU 0, GPU 1 (by a node that the container makes) and a device that every container has.
# shellcheck disable=SC2016
open_devices='
  [ -c /dev/other ] || mknod /dev/other c 195 1
  for node in nvidia0 other null; do
    error=$( (: <>/dev/$node) 2>&1) && error=": opened"
    echo "$node: ${error##*: }"
  done'
gpus() {
  local seen
  # QUIRK: on a busy machine 'ctr task exec' may lose what a short program has said.
  for _ in 1 2 3; do
    seen=$(in_container sh -c "$open_devices") || return
    [ -z "$seen" ] || break
  done
  echo "$seen"
}

# expect_gpus MOMENT ERROR: of GPU 0. The simulated node has no driver behind it: who may open it is told that there is no such device.
expect_gpu() {
  local want
  printf -v want 'nvidia0: %s\nother: Operation not permitted\nnull: opened' "$2"
  run -0 gpus
  [ "$output" = "$want" ] && return
  printf '%s: %s\n' "$1" "$output"
  on_host systemctl show -p DevicePolicy -p DeviceAllow "$(scope)"
  tail -n 20 "$machine/host/log"
  return 1
}

expect_gpu_survives() {
  local open="No such device or address"
  expect_gpu "at the start" "$open"
  update 0.5
  expect_gpu "after an update" "$open"
  on_host systemctl daemon-reload
  expect_gpu "after daemon-reload" "$open"
  update 0.7
  expect_gpu "after an update that follows a reload" "$open"
  on_host systemctl daemon-reload
  expect_gpu "after a second daemon-reload" "$open"
}

# cli_hook [COMMAND...]: a prestart hook that runs nvidia-container-cli, by COMMAND.
cli_hook() {
  hook=$work/hook
  printf '#!/bin/sh\nexec %s nvidia-container-cli configure --device=0 --utility "--pid=$(jq .pid)" %q\n' "${*@Q}" "$work/root" >"$hook"
  chmod 0755 "$hook"
}

# What a hook loses that only changes the cgroup: here, one that does not see systemd. If this fails one day, runc or systemd got better, and the
# others prove nothing any more.
expect_gpu_is_lost() {
  cli_hook unshare --mount sh -c 'mount -t tmpfs none /run/systemd && mount -t tmpfs none /run/dbus && exec "$@"' sh
  runc_start A=B "$hook"
  expect_gpu "at the start" "No such device or address"
  "$@"
  expect_gpu "after '$*'" "Operation not permitted"
}

# That of Debian 12 puts the rules of all units in force again when it is reloaded; that of Debian 13 (257) leaves those alone that did not change.
systemd_number() { systemctl --version | sed -n '1s/[^0-9]*\([0-9]*\).*/\1/p'; }
reload_takes_rules_back() { [ "$(systemd_number)" -le 252 ]; }

all_devices_with_hook() {
  runc_start NVIDIA_VISIBLE_DEVICES=0 "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook" '.linux.resources.devices = [{allow: true, access: "rwm"}]'
}

# A device that config.json has: runc itself tells systemd, if the link of /dev/char is there; runc 1.1.15 (Debian 13) and later do in any case.
device_in_config() {
  runc_start A=B "$(type -P true)" '.linux.devices = [{path: "/dev/nvidia0", type: "c", major: 195, minor: 0}] |
    .linux.resources.devices += [{allow: true, type: "c", major: 195, minor: 0, access: "rw"}]'
}

expect_link_matters() {
  local open="No such device or address"
  device_in_config
  expect_gpu "at the start" "$open"
  if ! on_host systemctl show -p DeviceAllow "$(scope)" | grep -q 195:0; then
    on_host systemctl daemon-reload
    ! reload_takes_rules_back || expect_gpu "after daemon-reload" "Operation not permitted"
    update 0.5
    expect_gpu "after daemon-reload and an update" "Operation not permitted"
  fi
  oci delete --force "$name"
  rm -r "$work/root" "$work/bundle"
  on_host ln -s ../nvidia0 /dev/char/195:0
  device_in_config
  expect_gpu_survives
}

expect_every_device() {
  local want
  printf -v want 'nvidia0: No such device or address\nother: No such device or address\nnull: opened'
  run -0 gpus
  [ "$output" = "$want" ]
  update 0.5
  on_host systemctl daemon-reload
  run -0 gpus
  [ "$output" = "$want" ]
}

# --- without telling systemd ---

@test "cgroup v1: a hook that systemd knows nothing of loses the GPU at daemon-reload" {
  reload_takes_rules_back || skip "systemd $(systemd_number) may leave rules alone that did not change"
  use v1
  expect_gpu_is_lost on_host systemctl daemon-reload
}
@test "cgroup v1: a hook that systemd knows nothing of loses the GPU at an update" {
  use v1
  expect_gpu_is_lost update 0.5
}
@test "cgroup v2: a hook that systemd knows nothing of loses the GPU at daemon-reload" {
  reload_takes_rules_back || skip "systemd $(systemd_number) may leave rules alone that did not change"
  use v2
  expect_gpu_is_lost on_host systemctl daemon-reload
}
@test "cgroup v2: a hook that systemd knows nothing of loses the GPU at an update" {
  use v2
  expect_gpu_is_lost update 0.5
}

# --- the hook ---

@test "cgroup v1: docker run --gpus" {
  use v1
  docker_start --gpus '"device=0"'
  expect_gpu_survives
}
@test "cgroup v2: docker run --gpus" {
  use v2
  docker_start --gpus '"device=0"'
  expect_gpu_survives
}
@test "cgroup v1: runc with the hook" {
  use v1
  runc_start NVIDIA_VISIBLE_DEVICES=0 "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook"
  expect_gpu_survives
}
@test "cgroup v2: runc with the hook" {
  use v2
  runc_start NVIDIA_VISIBLE_DEVICES=0 "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook"
  expect_gpu_survives
}
# Debian's crun refuses hybrid cgroups. What it does not tell systemd, systemd does not take away.
@test "cgroup v2: crun with the hook" {
  use v2
  crun_start NVIDIA_VISIBLE_DEVICES=0 "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook"
  expect_gpu_survives
}

@test "cgroup v1: podman with the hook" {
  use v1
  podman_start --env NVIDIA_VISIBLE_DEVICES=0
  expect_gpu_survives
}
@test "cgroup v2: podman with the hook" {
  use v2
  podman_start --env NVIDIA_VISIBLE_DEVICES=0
  expect_gpu_survives
}
@test "cgroup v1: runc with nvidia-container-cli in a hook, as containerd has it" {
  use v1
  cli_hook
  runc_start A=B "$hook"
  expect_gpu_survives
}
@test "cgroup v2: runc with nvidia-container-cli in a hook, as containerd has it" {
  use v2
  cli_hook
  runc_start A=B "$hook"
  expect_gpu_survives
}

# As docker run --privileged has it: systemd restricts nothing, and the first thing it were told would be all that is allowed.
@test "cgroup v1: a container that may use every device keeps every device" {
  use v1
  all_devices_with_hook
  expect_every_device
}
@test "cgroup v2: a container that may use every device keeps every device" {
  use v2
  all_devices_with_hook
  expect_every_device
}

# --- config.json ---

@test "cgroup v1: a device of config.json stays with its link in /dev/char, without which older releases of runc lose it" {
  use v1
  expect_link_matters
}
@test "cgroup v2: a device of config.json stays with its link in /dev/char, without which older releases of runc lose it" {
  use v2
  expect_link_matters
}

# --- nvidia-container-runtime ---

make_cdi_spec() {
  jq -n '{cdiVersion: "0.5.0", kind: "nvidia.com/gpu", containerEdits: {deviceNodes: [{path: "/dev/nvidiactl"}]},
    devices: [{name: "0", containerEdits: {deviceNodes: [{path: "/dev/nvidia0"}]}}]}' |
    on_host sh -c 'mkdir -p /var/run/cdi && cat >/var/run/cdi/nvidia.json'
}

@test "cgroup v1: docker run --runtime, legacy mode" {
  use v1
  docker_start --runtime nvidia-container-runtime.legacy --env NVIDIA_VISIBLE_DEVICES=0
  expect_gpu_survives
}
@test "cgroup v2: docker run --runtime, legacy mode" {
  use v2
  docker_start --runtime nvidia-container-runtime.legacy --env NVIDIA_VISIBLE_DEVICES=0
  expect_gpu_survives
}
@test "cgroup v1: docker run --runtime, CDI mode" {
  use v1
  make_cdi_spec
  docker_start --runtime nvidia-container-runtime.cdi --env NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0
  expect_gpu_survives
}
@test "cgroup v2: docker run --runtime, CDI mode" {
  use v2
  make_cdi_spec
  docker_start --runtime nvidia-container-runtime.cdi --env NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0
  expect_gpu_survives
}
@test "cgroup v1: docker run --runtime, default mode" {
  use v1
  docker_start --runtime nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=0
  expect_gpu_survives
}
@test "cgroup v2: docker run --runtime, default mode" {
  use v2
  docker_start --runtime nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=0
  expect_gpu_survives
}
@test "cgroup v2: doctor --container: a link in /dev/char that is gone, and what that means" {
  use v2
  docker_start --runtime nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=0
  run -0 --separate-stderr on_host nvidia-ctk doctor --container "$name"
  [[ $output != *" no /dev/char/"* ]] || die "$output"
  on_host rm /dev/char/195:0
  run -4 --separate-stderr on_host nvidia-ctk doctor --container "$name" --json
  jq -e '.findings | map(select(.check == "links" and .level == "warning") | .cause) ==
    ["systemd keeps its device rules and does not know /dev/nvidia0 (no /dev/char/195:0 on the host): the next " +
     "\u0027systemctl daemon-reload\u0027 may take it away"]' >/dev/null <<<"$output" || die "$output"
}
@test "cgroup v2: nvidia-container-runtime in front of crun, legacy mode" {
  use v2
  crun_runtime_start legacy
  expect_gpu_survives
}
@test "cgroup v2: nvidia-container-runtime in front of crun, default mode" {
  use v2
  crun_runtime_start auto
  expect_gpu_survives
}

# --- containerd ---

@test "cgroup v1: ctr run --gpus" {
  use v1
  ctr_start --gpus 0
  expect_gpu_survives
}
@test "cgroup v2: ctr run --gpus" {
  use v2
  ctr_start --gpus 0
  expect_gpu_survives
}
@test "cgroup v1: a pod of RuntimeClass nvidia" {
  use v1
  expect_pod_keeps_gpu nvidia
}
@test "cgroup v2: a pod of RuntimeClass nvidia" {
  use v2
  expect_pod_keeps_gpu nvidia
}
@test "cgroup v1: a pod of RuntimeClass nvidia-legacy" {
  use v1
  expect_pod_keeps_gpu nvidia-legacy
}
@test "cgroup v2: a pod of RuntimeClass nvidia-legacy" {
  use v2
  expect_pod_keeps_gpu nvidia-legacy
}

# --- the installer ---

# An engine as far as the installer looks at it: a name, and somebody who listens on the socket.
crio_service() {
  cat >"$work/crio" <<'PY'
#!/usr/bin/python3
import os, socket, sys, time
listener = socket.socket(socket.AF_UNIX)
if os.path.exists(sys.argv[1]):
    os.unlink(sys.argv[1])
listener.bind(sys.argv[1])
listener.listen(8)
time.sleep(600)
PY
  chmod 0755 "$work/crio"
  on_host systemd-run --quiet --unit crio "$work/crio" /run/crio.sock
  within 10 on_host test -S /run/crio.sock
}
crio_pid() { on_host systemctl show --value --property=MainPID crio; }

@test "the installer has systemd restart CRI-O, by its private socket, once for a change" {
  local pid conf=$work/99-nvidia.toml words
  use v2
  make_source "$work/source"
  crio_service
  pid=$(crio_pid)
  # Without systemctl in PATH, as in the installer's image.
  words=(env PATH="$BATS_FILE_TMPDIR/bin" nvidia-ctk-installer --runtime=crio --no-daemon --pid-file="$work/toolkit.pid" --toolkit-install-dir="$work/nv"
    --toolkit-source-root="$work/source" --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --config-source=file --config="$work/none" --drop-in-config="$conf"
    --socket=/run/crio.sock)
  run -0 on_host "${words[@]}"
  [[ $output == *'msg="Restarting crio using systemd"'* ]]
  [ "$(on_host systemctl is-active crio)" = active ]
  [ "$(crio_pid)" != "$pid" ]
  within 10 on_host test -S /run/crio.sock
  pid=$(crio_pid)
  run -0 on_host "${words[@]}"
  [[ $output == *'msg="crio has already read its configuration: not restarting it"'* ]]
  [ "$(crio_pid)" = "$pid" ]
  # Somebody has changed the file since CRI-O started.
  echo >>"$conf"
  run -0 on_host "${words[@]}"
  [ "$(crio_pid)" != "$pid" ]
  on_host systemctl stop crio
  echo '# more' >>"$conf"
  touch "$work/nv/.engine-has-to-read"
  run -1 on_host "${words[@]}"
  [[ ${lines[-1]} == *'error restarting crio using systemd: systemd does not restart crio.service: org.freedesktop.systemd1.NoSuchUnit'* ]] || die "$output"
  # Not done: the next run tries again.
  [ -e "$work/nv/.engine-has-to-read" ]
}
