# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Shared by the suites with real engines, in addition to lib.bash: a simulated host as a separate
# machine, with Docker's daemon and containerd.
#
#   setup_file()    { start_machine dgx-h100; start_dockerd; import_image small; }
#   teardown_file() { stop_machine; }
#   setup()         { engine_setup; }
#   teardown()      { engine_teardown; }
#
# The machine has mount, pid, network and IPC namespaces of its own and an empty /run, where the daemons have their sockets: a socket's path must be
# short, and TMPDIR may be anywhere. Its first process is the parent of all. Ending that one ends every daemon, shim and container and takes
# their mounts along, whatever state they are in. Nothing of it listens on a network of this computer.

# Debian's own programs, before anything that this computer has besides.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

# start_machine TOPOLOGY [GRAFT-SIM OPTION...]: MACHINE_CGROUP=v2 makes /sys/fs/cgroup a cgroup2 mount.
start_machine() {
  local topology=$1
  shift
  [ "$(id -u)" -eq 0 ] || die "the integration tests need root" || return
  machine=$BATS_FILE_TMPDIR/machine
  machine_cgroup=graft-$$-$RANDOM
  mkdir -p "$machine/config/nvidia-container-runtime"
  export machine machine_cgroup
  install_programs
  chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_FILE_TMPDIR/.."
  # shellcheck disable=SC2016
  unshare --mount --propagation private --pid --fork --kill-child --mount-proc --net --ipc -- sh -c '
    set -e
    up=$1 cgroup=$2
    shift 2
    mount -t tmpfs -o mode=755 run /run
    mkdir -m 1777 /run/lock
    for directory in /etc/docker /etc/containerd /etc/cni /var/lib/containers; do
      [ ! -d "$directory" ] || mount -t tmpfs -o mode=755 own "$directory"
    done
    if [ "$cgroup" = v2 ]; then
      umount -l /sys/fs/cgroup
      mount -t cgroup2 none /sys/fs/cgroup
    fi
    ip link set lo up
    exec "$@" -- sh -c "echo up >\"\$0.new\"; mv \"\$0.new\" \"\$0\"; sleep 86400 & wait" "$up"
  ' sh "$BATS_FILE_TMPDIR/up" "${MACHINE_CGROUP:-v1}" "$sim" run --topology "$topology" "$@" \
    >"$BATS_FILE_TMPDIR/host.log" 2>&1 3>&- 4>&- &
  disown
  echo $! >"$BATS_FILE_TMPDIR/machine.pid"
  # Where this suite is killed and cannot stop the machine itself.
  # shellcheck disable=SC2016
  sh -c 'while kill -0 "$1" 2>/dev/null; do sleep 1; done; kill -KILL "$2" 2>/dev/null' sh $$ $! >/dev/null 2>&1 3>&- 4>&- &
  if ! within 5 test -e "$BATS_FILE_TMPDIR/up"; then
    cat "$BATS_FILE_TMPDIR/host.log" >&2
    die "the simulated host did not come up" || return
  fi
  tr -d ' ' <"/proc/$(cat "$BATS_FILE_TMPDIR/machine.pid")/task/$(cat "$BATS_FILE_TMPDIR/machine.pid")/children" \
    >"$BATS_FILE_TMPDIR/host.pid"
}

# Every program of ours in one folder, which is the first of the machine's PATH. GRAFT_ENOSYS: each sees an old kernel.
install_programs() {
  local program
  mkdir -p "$BATS_FILE_TMPDIR/bin" "$BATS_FILE_TMPDIR/programs"
  # Where every machine of a test sees them; the checkout may lie in a folder that a machine has for itself.
  install -m 0755 "$build/test/tools/enosys" "$build/test/tools/memlock" "$top/test/tools/cri" "$top/test/tools/protobuf.py" "$BATS_FILE_TMPDIR/programs"
  find "$build/src/cli" '(' -name 'nvidia-*' -o -name graft-nvml -o -name graft-systemd ')' -type f -perm /100 | while read -r program; do
    install -m 0755 "$program" "$BATS_FILE_TMPDIR/programs"
    if [ "${GRAFT_ENOSYS:-0}" = 1 ]; then
      printf '#!/bin/sh\nexec %q %q "$@"\n' "$BATS_FILE_TMPDIR/programs/enosys" "$BATS_FILE_TMPDIR/programs/${program##*/}" \
        >"$BATS_FILE_TMPDIR/bin/${program##*/}"
      chmod 0755 "$BATS_FILE_TMPDIR/bin/${program##*/}"
    else
      ln -f "$BATS_FILE_TMPDIR/programs/${program##*/}" "$BATS_FILE_TMPDIR/bin/"
    fi
  done
}

stop_machine() {
  local pid group
  [ -e "$BATS_FILE_TMPDIR/machine.pid" ] || return 0
  pid=$(cat "$BATS_FILE_TMPDIR/machine.pid")
  kill -KILL "$pid" 2>/dev/null || true
  within 10 test ! -d "/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")" || true
  rm -f "$BATS_FILE_TMPDIR/host.pid" "$BATS_FILE_TMPDIR/machine.pid" "$BATS_FILE_TMPDIR/up"
  rm -rf "$machine"
  # The groups are empty now; a killed task leaves its group a moment after its last sign of life.
  for group in /sys/fs/cgroup/*/"$machine_cgroup" /sys/fs/cgroup/"$machine_cgroup"; do
    [ ! -d "$group" ] || within 5 remove_group "$group" || die "cgroup $group is still in use"
  done
}

remove_group() {
  find "$1" -depth -type d -exec rmdir {} + 2>/dev/null
}

# on_host COMMAND...: on the machine. The environment has what a daemon's has.
on_host() {
  nsenter --target "$(cat "$BATS_FILE_TMPDIR/host.pid")" --mount --pid --net --ipc --wdns="$PWD" -- \
    env PATH="$BATS_FILE_TMPDIR/bin:$PATH" XDG_CONFIG_HOME="$machine/config" "$@"
}

# end_programs SIGNAL NAME: those of the machine that have it; they have ended.
end_programs() {
  on_host pkill "-$1" --exact "${2:0:15}" || return 0
  within 20 no_program "$2"
}
no_program() { ! on_host pgrep --exact "${1:0:15}" >/dev/null; }

# config_toml: what stands on stdin becomes config.toml of the machine; nothing there: none.
config_toml() {
  local file=$machine/config/nvidia-container-runtime/config.toml
  cat >"$file"
  [ -s "$file" ] || rm "$file"
}

engine_setup() {
  work=$BATS_TEST_TMPDIR
  # shellcheck disable=SC2034 # lib.bash shows it when an answer is wrong
  hook_log=$work/hook.log
  name=t$BATS_TEST_NUMBER
  config_toml </dev/null
}

# log_decisions: nvidia-container-runtime tells of each in $work/decisions.
log_decisions() {
  config_toml <<TOML
[nvidia-container-runtime]
debug = "$work/decisions"
log-level = "debug"
TOML
}

# expect_no_hook: the container, which has listed /dev/dri/by-path, had no hook for these links: the engine has the process ID written, and they were made
# between create and start.
expect_no_hook() {
  grep -q "left for later: .*/dev/dri/by-path/" "$work/decisions" || die "nothing was left: $(cat "$work/decisions")" || return
  grep -q "calling '.*/runc'" "$work/decisions" || die "a hook did it: $(cat "$work/decisions")" || return
  [ "$status" -eq 0 ] || die "$output" || return
  [ "$(grep -c '^pci-0000:1b:00.0-[cr]' <<<"$output")" -eq 2 ] || die "$output"
}

engine_teardown() {
  local left
  if [ -e "$machine/docker" ]; then
    left=$(docker ps --all --quiet)
    # shellcheck disable=SC2086
    [ -z "$left" ] || docker rm --force $left >/dev/null
  fi
  [ -e "$machine/containerd" ] || return 0
  for left in $(ctr container list --quiet); do
    ctr task kill --signal KILL "$left" 2>/dev/null || true
    within 5 ctr container delete "$left" 2>/dev/null || say "container $left cannot be deleted"
  done
}

# --- engines of another release ---

# use_engines RELEASE PROGRAM...: Docker and containerd are those of another release of Debian, from its archive. Where they cannot be had, or one of these
# programs does not run with this machine's C library, $machine/why says so, and need_engines skips each test.
use_engines() {
  local engines status=0 program
  engines=$("$top/test/tools/release-root" engines "$1" 2>"$machine/why") || status=$?
  [ "$status" -ne 77 ] || return 0
  [ "$status" -eq 0 ] || { cat "$machine/why" >&2 && return 1; }
  rm "$machine/why"
  # Ahead of this machine's own.
  for program in "$engines"/usr/sbin/docker* "$engines"/usr/bin/{docker,ctr,containerd*}; do
    ln -s "$program" "$BATS_FILE_TMPDIR/bin/"
  done
  shift
  for program; do
    "$BATS_FILE_TMPDIR/bin/$program" --version >/dev/null 2>"$machine/why.new" || mv "$machine/why.new" "$machine/why"
  done
}
need_engines() { [ ! -e "$machine/why" ] || skip "$(tail -n 1 "$machine/why")"; }

# not_here REASON: for need_engines, before there is a machine: bats fails in a setup_file() that skips.
not_here() {
  export machine=$BATS_FILE_TMPDIR/machine
  mkdir -p "$machine"
  echo "$1" >"$machine/why"
}

# shield_sysctls: a kubelet finds the values that it wants. It would set them for the whole computer.
shield_sysctls() {
  # shellcheck disable=SC2016
  on_host sh -ec 'mkdir /run/sysctls
    while read -r name value; do
      echo "$value" >"/run/sysctls/${name##*/}"
      mount --bind "/run/sysctls/${name##*/}" "/proc/sys/$name"
    done' <<'LIST'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
LIST
}

# --- Docker ---

# start_dockerd [OPTION...]
start_dockerd() {
  mkdir -p "$machine/docker"
  jq -n '{runtimes: {nvidia: {path: "nvidia-container-runtime"}, "nvidia-cdi": {path: "nvidia-container-runtime.cdi"},
    "nvidia-legacy": {path: "nvidia-container-runtime.legacy"}}}' >"$machine/docker/daemon.json"
  run_dockerd "$@"
}

# run_dockerd [OPTION...]: with the settings that stand there now. A daemon that ends is not waited for.
run_dockerd() {
  local daemon
  on_host dockerd --config-file "$machine/docker/daemon.json" --host "unix://$machine/docker/sock" \
    --data-root "$machine/docker/data" --exec-root /run/docker-exec --pidfile "$machine/docker/pid" \
    --cgroup-parent "/$machine_cgroup" --iptables=false --ip-forward=false --bridge=none "$@" \
    >"$machine/docker/log" 2>&1 3>&- 4>&- &
  daemon=$!
  if ! within 30 is_up_or_ended "$daemon" || ! kill -0 "$daemon" 2>/dev/null; then
    tail -n 30 "$machine/docker/log" >&2
    die "dockerd did not come up"
  fi
}

is_up_or_ended() { docker version >/dev/null 2>&1 || ! kill -0 "$1" 2>/dev/null; }

# default_runtime NAME: of the running daemon.
default_runtime() {
  jq --arg name "$1" '."default-runtime" = $name' "$machine/docker/daemon.json" >"$machine/docker/daemon.json.new"
  mv "$machine/docker/daemon.json.new" "$machine/docker/daemon.json"
  on_host kill -HUP "$(cat "$machine/docker/pid")"
  within 5 has_default_runtime "$1"
}
has_default_runtime() { [ "$(docker info --format '{{.DefaultRuntime}}')" = "$1" ]; }

# docker ARGUMENT...: with $patience, it is killed after so many seconds.
docker() {
  DOCKER_CONFIG=$machine/docker ${patience:+timeout --signal KILL "$patience"} /usr/bin/docker --host "unix://$machine/docker/sock" "$@"
}

# import_image KIND [DOCKERFILE-LINE...]: the root of test/tools/roots with the probe in it, as image KIND.
import_image() {
  local kind=$1 root line changes=()
  shift
  root=$(image "$kind") || return
  for line in "$@"; do changes+=(--change "$line"); done
  tar --create --directory "$root" . --directory "$top/test/integration" ./probe |
    docker import "${changes[@]}" - "$kind" >/dev/null
}

# docker_run OPTION... [-- COMMAND...]: a container of the small image; it runs the probe. The probe's answers are read.
docker_run() {
  local options=() image=small
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  [ $# -eq 0 ] || shift
  # Not bats' run: it takes 127, which docker says for every "no such file" of a runtime, for a mistake of the test. The client's own line
  # about a container that it no longer finds comes or does not come.
  status=0
  docker run --rm --net=none --env "PROBE_MINORS=$(host_minors)" "${options[@]}" "${IMAGE:-$image}" "${@:-/probe}" \
    >"$work/output" 2>&1 || status=$?
  output=$(sed '/level=error msg="error waiting for container: context canceled"/d' "$work/output")
  read_answers
}

# docker_start OPTION...: a container $name of the small image that sleeps.
docker_start() {
  docker run --detach --net=none --name "$name" --env "PROBE_MINORS=$(host_minors)" "$@" small sleep 600
}

# docker_probe [CONTAINER [OPTION...]]: the probe by docker exec. Its answers are read.
docker_probe() {
  run docker exec "${@:2}" "${1:-$name}" /probe
  read_answers
}

# --- an ordinary user ---

# rootless COMMAND...: by an ordinary user with ids of a range of its own, in a session where a whole procfs is in view.
rootless() {
  local user=65534 directory
  if [ ! -d "$machine/home" ]; then
    mkdir -p "$machine/home" "$machine/rootless"
    on_host install --directory --owner "$user" --group "$user" /run/session /run/rootless
    printf '%s:200000:65536\n' "$(id -un "$user")" >"$machine/subid"
    for directory in subuid subgid; do on_host mount --bind "$machine/subid" "/etc/$directory"; done
    chown -R "$user:$user" "$machine/home" "$machine/rootless"
    chmod a+rx "$machine"
    show_whole_proc
  fi
  on_host setpriv --reuid "$user" --regid "$user" --clear-groups env HOME="$machine/home" TMPDIR="$machine/home" XDG_RUNTIME_DIR=/run/session \
    XDG_CONFIG_HOME="$machine/home/.config" /bin/sh -c 'cd / && exec "$@"' sh "$@"
}

# --- Podman ---

# Podman and Buildah have a store of the suite's own. What belongs to running containers is in the machine's own /run, for Podman takes no path of more
# than 50 characters there. HOOKS names a hooks directory, RUNTIME another runtime than runc; if it is empty, Podman's configuration counts.
podman() {
  local runtime=${RUNTIME-/usr/sbin/runc}
  on_host /usr/bin/podman --root "$machine/podman/root" --runroot /run/podman --storage-driver vfs --tmpdir /run/podman-tmp \
    --cgroup-manager cgroupfs --events-backend none ${HOOKS:+--hooks-dir "$HOOKS"} ${runtime:+--runtime "$runtime"} "$@"
}
rootless_podman() {
  rootless /usr/bin/podman --root "$machine/rootless/root" --runroot /run/rootless --storage-driver vfs --tmpdir /run/session/tmp \
    --cgroup-manager cgroupfs --events-backend none ${HOOKS:+--hooks-dir "$HOOKS"} --runtime "${RUNTIME-/usr/sbin/runc}" "$@"
}
buildah() { on_host buildah --root "$machine/podman/root" --runroot /run/podman --storage-driver vfs "$@"; }

# import_podman [PODMAN]: the small image with the probe.
import_podman() {
  tar --create --directory "$(image small)" . --directory "$top/test/integration" ./probe | "${1:-podman}" import - small
}

# --- CDI ---

# make_cdi: a description as nvidia-ctk writes it, by index; GPUs 0 to 7 and all.
make_cdi() {
  mkdir -p "$machine/cdi"
  on_host nvidia-container-cli list --libraries --binaries --compute --utility 2>/dev/null | jq --raw-input --slurp \
    --arg hook "$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook" '
    def node($n): {path: "/dev/nvidia\($n)"};
    def hook($words): {hookName: "createContainer", path: $hook, args: (["nvidia-cdi-hook"] + $words), env: ["NVIDIA_CTK_DEBUG=false"]};
    split("\n") | map(select(. != "")) as $files |
    ($files | map(select(test("/libcuda\\.so"))) | .[0] | sub("/[^/]*$"; "")) as $folder |
    {cdiVersion: "0.5.0", kind: "nvidia.com/gpu",
     devices: ([range(8) | {name: "\(.)", containerEdits: {deviceNodes: [node(.)]}}] +
       [{name: "all", containerEdits: {deviceNodes: [range(8) | node(.)]}}]),
     containerEdits: {
       env: ["NVIDIA_VISIBLE_DEVICES=void"],
       deviceNodes: [{path: "/dev/nvidiactl"}, {path: "/dev/nvidia-uvm"}],
       mounts: [$files[] | {hostPath: ., containerPath: ., options: ["ro", "nosuid", "nodev", "rbind", "rprivate"]}],
       hooks: [hook(["create-symlinks", "--link", "libcuda.so.1::\($folder)/libcuda.so"]),
         hook(["update-ldcache", "--folder", $folder])]}}' >"$machine/cdi/nvidia.json"
}

# cdi_config MODE
cdi_config() {
  make_cdi
  config_toml <<TOML
[nvidia-container-runtime]
mode = "$1"
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$machine/cdi"]
[nvidia-ctk]
path = "$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook"
TOML
}

# --- what a container must see ---

# The host's GPUs by index, which is by bus id: UUIDs, a line each; minors, a word each.
information() {
  on_host sh -c 'cat /proc/driver/nvidia/gpus/*/information 2>/dev/null' | sed -n "s/^$1: *\t *//p"
}
host_uuids() { information 'GPU UUID'; }
host_minors() { information 'Device Minor' | tr '\n' ' '; }

# expect_gpus INDEX...: exactly these are seen, may be opened, and no other may be by any node.
expect_gpus() {
  local uuids minors minor index want=
  [ "$status" -eq 0 ] || { say "status $status: $output"; return 1; }
  mapfile -t uuids < <(host_uuids)
  read -ra minors <<<"$(host_minors)"
  for index in "$@"; do want+="${uuids[index]} "; done
  expect nvidia-smi $# || return
  expect nvidia-smi-uuids "$want" || return
  for index in "${!minors[@]}"; do
    minor=${minors[index]}
    if [[ " $* " == *" $index "* ]]; then
      expect "open-nvidia$minor" "No such device or address" || return # the simulated node: the open was allowed
      expect "made-nvidia$minor" "No such device or address" || return
    else
      expect "open-nvidia$minor" "" || return # no such node
      expect "made-nvidia$minor" "Operation not permitted" || return
    fi
  done
  expect open-nvidiactl "No such device or address"
}

# expect_no_gpu: no node, and none may be opened that is made by hand.
expect_no_gpu() {
  [ "$status" -eq 0 ] || { say "status $status: $output"; return 1; }
  expect ls-nodes "" || return
  expect nvidia-smi failed || return
  expect made-nvidia0 "Operation not permitted"
}

# --- the installer ---

# make_source FOLDER: the programs of this build, as an unpacked package has them.
make_source() {
  mkdir -p "$1/usr/bin" "$1/usr/libexec/graft" "$1/usr/lib/x86_64-linux-gnu"
  cp "$BATS_FILE_TMPDIR"/programs/nvidia-{ctk,cdi-hook,container-runtime,container-runtime.cdi,container-runtime.legacy,container-cli,container-runtime-hook} "$1/usr/bin"
  cp "$BATS_FILE_TMPDIR/programs/graft-nvml" "$1/usr/libexec/graft"
  cp -a "$build"/src/abi/libnvidia-container.so.1* "$1/usr/lib/x86_64-linux-gnu" 2>/dev/null || true
  rm -rf "$1"/usr/lib/x86_64-linux-gnu/*.p
}

# --- containerd ---

# configure_containerd LINES: with its CRI service; the handlers nvidia and nvidia-legacy are what a RuntimeClass names. The lines
# of TOML are options of each handler and of runc.
configure_containerd() {
  local handler binary lines=$1
  mkdir -p "$machine/containerd"
  {
    cat <<TOML
version = 2
root = "$machine/containerd/root"
state = "$machine/containerd/state"
[grpc]
address = "/run/containerd-suite/sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/library/pause:latest"
stream_server_address = "127.0.0.1"
# Below 0 a score may only go with a right that not every machine gives its root.
restrict_oom_score_adj = true
# That of containerd 2 would look for the devices itself; the runtime is to do it.
enable_cdi = false
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
$lines
TOML
    for handler in nvidia nvidia-legacy; do
      binary=nvidia-container-runtime${handler#nvidia}
      cat <<TOML
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.$handler]
runtime_type = "io.containerd.runc.v2"
# What a device plugin writes there reaches the runtime.
container_annotations = ["cdi.k8s.io/*"]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.$handler.options]
BinaryName = "$BATS_FILE_TMPDIR/bin/${binary/-legacy/.legacy}"
$lines
TOML
    done
  } >"$machine/containerd/config.toml"
}

# enable_cdi: containerd reads specifications itself, as an administrator tells it to.
enable_cdi() {
  on_host nvidia-ctk --quiet runtime configure --runtime=containerd --config="$machine/containerd/config.toml" --config-source=file --cdi.enabled \
    --nvidia-runtime-path="$BATS_FILE_TMPDIR/bin/nvidia-container-runtime"
}

start_containerd() {
  configure_containerd ""
  restart_containerd
}

# Not the one that dockerd has started for itself.
our_containerd() { on_host pgrep --full --oldest "containerd --config $machine/containerd/config.toml"; }

# restart_containerd: with the configuration that stands there now; containers live on.
restart_containerd() {
  local pid
  if pid=$(our_containerd); then
    on_host kill "$pid"
    within 10 has_ended "$pid"
  fi
  on_host containerd --config "$machine/containerd/config.toml" >>"$machine/containerd/log" 2>&1 3>&- 4>&- &
  await_containerd
}

await_containerd() {
  within 30 ctr version >/dev/null 2>&1 && return
  tail -n 30 "$machine/containerd/log" >&2
  die "containerd did not come up"
}

# The namespace's name is that of the containers' cgroup.
ctr() {
  on_host ctr --address /run/containerd-suite/sock --namespace "${CTR_NAMESPACE:-$machine_cgroup}" --connect-timeout 2s "$@"
}

# import_archive NAMESPACE NAME KIND COMMAND...: the root of test/tools/roots with the probe, as image docker.io/library/NAME:latest.
import_archive() {
  local namespace=$1 name=$2 root archive=$machine/archive digest
  root=$(image "$3") || return
  shift 3
  mkdir -p "$archive"
  tar --create --file "$archive/layer.tar" --directory "$root" . --directory "$top/test/integration" ./probe
  digest=$(sha256sum <"$archive/layer.tar")
  jq -n --arg digest "sha256:${digest%% *}" --arg machine "$(dpkg --print-architecture)" \
    '{architecture: $machine, os: "linux", rootfs: {type: "layers", diff_ids: [$digest]},
      config: {Env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], Cmd: $ARGS.positional}}' --args "$@" >"$archive/config.json"
  jq -n --arg name "docker.io/library/$name:latest" '[{Config: "config.json", RepoTags: [$name], Layers: ["layer.tar"]}]' \
    >"$archive/manifest.json"
  tar --create --directory "$archive" manifest.json config.json layer.tar | CTR_NAMESPACE=$namespace ctr image import - >/dev/null
  rm -r "$archive"
}

# ctr_run OPTION... [-- COMMAND...]: a container of the small image; it runs the probe. The probe's answers are read.
ctr_run() {
  local options=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  [ $# -eq 0 ] || shift
  run ctr run --rm --env "PROBE_MINORS=$(host_minors)" "${options[@]}" docker.io/library/small:latest "$name" "${@:-/probe}"
  read_answers
}

# cri_run OPTION... [-- COMMAND...]: a pod of one container by CRI (test/tools/cri); the probe is run in it. CRI_SOCKET: another engine than containerd.
cri_run() {
  local options=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  [ $# -eq 0 ] || shift
  mkdir -p "$work/pod"
  run on_host "$BATS_FILE_TMPDIR/programs/cri" "${CRI_SOCKET:-/run/containerd-suite/sock}" "$work/pod" --cgroup "/$machine_cgroup" \
    --env "PROBE_MINORS=$(host_minors)" "${options[@]}" -- "${@:-/probe}"
  read_answers
}

# expect_refusal CAUSE REMEDY: docker run failed, and what a person reads is one line with both (extended regular expressions).
expect_refusal() {
  [ "$status" -ne 0 ] || { say "it was not refused: $output"; return 1; }
  # Docker 28 adds where its own options are told.
  [ "$(grep -v "^Run 'docker run --help' for more information$" <<<"$output" | grep -c .)" -eq 1 ] || { say "not one line: $output"; return 1; }
  [[ $output =~ $1 ]] || { say "no '$1' in: $output"; return 1; }
  [[ $output =~ $2 ]] || { say "no '$2' in: $output"; return 1; }
}
