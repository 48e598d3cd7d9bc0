# SPDX-License-Identifier: Apache-2.0
# CRI-O: the installer's drop-in file and its hook, CDI, annotations, and NRI. CRI-O is in no release of Debian: GRAFT_CRIO names the program, which has its
# pinns next to it or in PATH. Everything else is Debian's: conmon, runc, and Podman, which puts the images into CRI-O's store.

load lib.bash
load engines.bash
load nri.bash

setup_file() {
  # Each test says that it is skipped.
  if [ -z "${GRAFT_CRIO:-}" ] || [ ! -x "$build/src/daemon/nvidia-nri-plugin" ]; then return; fi
  start_machine dgx-h100
  install_nri_plugin
  install_crio
  make_source "$machine/source"
  make_cdi
  import_crio small /probe
  import_crio pause /bin/sleep 86400
  configure_crio
  restart_crio
  start_pod_resources
}
teardown_file() { stop_machine; }
need_crio() {
  [ -n "${GRAFT_CRIO:-}" ] || skip "GRAFT_CRIO names no crio, which is in no release of Debian"
  need_nri_plugin
}
setup() {
  need_crio
  nri_setup
}
teardown() {
  [ -d "$machine/crio/conf.d" ] || return 0
  nri_teardown
  # As before: what the next test finds is what its own installer writes.
  if [ -n "$(ls -A "$machine/crio/conf.d")" ]; then
    rm "$machine"/crio/conf.d/*
    restart_crio
  fi
  rm -rf "$machine/nv" "$machine"/hooks.d/*
}

# --- the engine ---

export CRI_SOCKET=/run/crio-suite/sock

install_crio() {
  local pinns
  pinns=$(PATH=$(dirname "$GRAFT_CRIO"):$PATH command -v pinns) || die "there is no pinns beside $GRAFT_CRIO" || return
  ln -s "$(realpath "$GRAFT_CRIO")" "$BATS_FILE_TMPDIR/bin/crio"
  ln -s "$(realpath "$pinns")" "$BATS_FILE_TMPDIR/bin/pinns"
}

# import_crio NAME COMMAND...: as import_archive, into CRI-O's store.
import_crio() {
  local image=$1 words
  shift
  words=$(jq -cn '$ARGS.positional' --args "$@")
  tar --create --directory "$(image small)" . --directory "$top/test/integration" ./probe | on_host /usr/bin/podman \
    --root "$machine/crio/root" --runroot /run/crio-store --storage-driver vfs --tmpdir /run/podman-tmp --cgroup-manager cgroupfs --events-backend none \
    import --change "ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin" --change "CMD $words" - "docker.io/library/$image:latest" >/dev/null
}

configure_crio() {
  mkdir -p "$machine"/crio/{conf.d,cni,log} "$machine"/{hooks.d,nri-plugins,nri-config}
  cat >"$machine/crio/crio.conf" <<TOML
[crio]
root = "$machine/crio/root"
runroot = "/run/crio-store"
storage_driver = "vfs"
log_dir = "$machine/crio/log"
# Nothing of the machine's own in /var/lib, and no image is removed at a start.
version_file = "/run/crio-suite/version"
version_file_persist = ""
clean_shutdown_file = ""
internal_wipe = false
[crio.api]
listen = "$CRI_SOCKET"
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
default_runtime = "runc"
cgroup_manager = "cgroupfs"
pinns_path = "$BATS_FILE_TMPDIR/bin/pinns"
apparmor_profile = "unconfined"
hooks_dir = ["$machine/hooks.d"]
cdi_spec_dirs = ["$machine/cdi"]
# As containerd has them: the probe makes nodes, which must be of no use to it.
default_capabilities = ["CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"]
[crio.runtime.runtimes.runc]
runtime_path = "/usr/sbin/runc"
runtime_type = "oci"
runtime_root = "/run/crio-runc"
monitor_path = "/usr/bin/conmon"
monitor_cgroup = "pod"
[crio.image]
pause_image = "docker.io/library/pause:latest"
pause_command = ""
[crio.network]
network_dir = "$machine/crio/cni"
plugin_dirs = ["$machine/crio/cni"]
[crio.nri]
enable_nri = true
nri_listen = "/run/nri/nri.sock"
nri_plugin_dir = "$machine/nri-plugins"
nri_plugin_config_dir = "$machine/nri-config"
TOML
}

our_crio() { on_host pgrep --full --oldest "crio --config $machine/crio/crio.conf"; }
engine_pid() { our_crio; }
restart_engine() { restart_crio; }

# restart_crio: with the files that are there now; containers live on.
restart_crio() {
  local pid
  if pid=$(our_crio); then
    on_host kill "$pid"
    within 20 has_ended "$pid"
  fi
  on_host sh -c 'mkdir -p "${1%/*}" && rm -f "$1"' sh "$CRI_SOCKET"
  on_host crio --config "$machine/crio/crio.conf" --config-dir "$machine/crio/conf.d" >>"$machine/crio/log/crio" 2>&1 3>&- 4>&- &
  within 30 on_host test -S "$CRI_SOCKET" && return
  tail -n 30 "$machine/crio/log/crio" >&2
  die "CRI-O did not come up"
}

# install_toolkit OPTION...
install_toolkit() {
  run on_host nvidia-ctk-installer --runtime=crio --no-daemon --pid-file="$machine/run/toolkit.pid" --toolkit-install-dir="$machine/nv" \
    --toolkit-source-root="$machine/source" --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --hooks-dir="$machine/hooks.d" --restart-mode=none \
    --config-source=file --config="$machine/crio/crio.conf" --drop-in-config="$machine/crio/conf.d/99-nvidia.toml" --socket="$CRI_SOCKET" "$@"
  [ "$status" -eq 0 ] || die "$output"
}

# --- tests ---

@test "it is CRI-O, and a pod that asks for nothing has no GPU" {
  run -0 on_host crio --version
  [[ ${lines[0]} == "crio version "* ]]
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
}

@test "the installer's drop-in file: each runtime gives the GPUs that the pod asks for" {
  install_toolkit --set-as-default=false
  restart_crio
  # What runc's table has is inherited: the monitor is Debian's.
  [ "$(grep -cxF 'monitor_path = "/usr/bin/conmon"' "$machine/crio/conf.d/99-nvidia.toml")" -eq 3 ]
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=2,3
  expect_gpus 2 3
  expect_libraries
  cri_run --handler nvidia-legacy --env NVIDIA_VISIBLE_DEVICES=1
  expect_gpus 1
  # The pod's own runtime is runc as before.
  cri_run --env NVIDIA_VISIBLE_DEVICES=0
  expect_no_gpu
  # The kubelet's change of a container's resources takes nothing away.
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=5 --update
  expect_gpus 5
}

@test "the installer's drop-in file, as the default; an unknown GPU is refused" {
  install_toolkit
  restart_crio
  cri_run --env NVIDIA_VISIBLE_DEVICES=4
  expect_gpus 4
  cri_run
  expect_no_gpu
  cri_run --env NVIDIA_VISIBLE_DEVICES=99
  [ "$status" -ne 0 ]
  [[ $output == *99* ]]
}

@test "a device plugin's mounts, and what an image sets itself gives nothing" {
  install_toolkit --accept-nvidia-visible-devices-as-volume-mounts --accept-nvidia-visible-devices-envvar-when-unprivileged=false --set-as-default=false
  restart_crio
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=all --mount /dev/null:/var/run/nvidia-container-devices/6
  expect_gpus 6
}

@test "the installer's hook: CRI-O reads it without a restart" {
  local pid
  pid=$(our_crio)
  install_toolkit --config-mode=hook
  [ -z "$(ls -A "$machine/crio/conf.d")" ]
  within 20 pod_has 0 1
  expect_libraries /usr/lib64
  cri_run
  expect_no_gpu
  [ "$(our_crio)" = "$pid" ]
}
# pod_has INDEX...
pod_has() {
  local indices=$*
  cri_run --env "NVIDIA_VISIBLE_DEVICES=${indices// /,}"
  expect_gpus "$@"
}

@test "CDI by annotations: CRI-O adds the devices itself" {
  cri_run --annotation cdi.k8s.io/test=nvidia.com/gpu=3
  expect_gpus 3
  expect_libraries
  cri_run --annotation cdi.k8s.io/test=nvidia.com/gpu=9
  [ "$status" -ne 0 ]
  [[ $output == *"nvidia.com/gpu=9"* ]]
}

@test "CDI by names, as a device plugin with cdi-cri gives them" {
  cri_run --cdi-device nvidia.com/gpu=1 --cdi-device nvidia.com/gpu=6
  expect_gpus 1 6
  cri_run --cdi-device nvidia.com/gpu=9
  [ "$status" -ne 0 ]
  [[ $output == *"nvidia.com/gpu=9"* ]]
}

@test "CDI by annotations and names with the runtime class, as the GPU Operator has it: the devices once" {
  install_toolkit --set-as-default=false
  restart_crio
  cri_run --handler nvidia --annotation cdi.k8s.io/test=nvidia.com/gpu=2 --cdi-device nvidia.com/gpu=2 --env NVIDIA_VISIBLE_DEVICES=void
  expect_gpus 2
}

@test "NRI: GPUs that the kubelet has given, by variables" { nri_by_variable; }
@test "NRI: GPUs that the kubelet has given, by mounts" { nri_by_mounts; }
@test "NRI: what an image or a pod asks for itself gives nothing" { nri_own_request; }
@test "NRI: an annotation of a foreign namespace is refused, and the answer says why" { nri_foreign_annotation; }
@test "NRI: the same, skipped in silence where the administrator wants that" { nri_skipped_annotation; }
@test "NRI: other kinds of CDI devices, where they are allowed" { nri_allowed_kind; }
@test "NRI: 20 kB of edits" { nri_large_adjustment; }
@test "NRI: a plugin that is stopped for three seconds" { nri_stopped_plugin; }
@test "NRI: a kubelet that does not answer in time" { nri_slow_kubelet; }
@test "NRI: an init container" { nri_init_container; }
@test "NRI: pods during a restart of the engine: none without its devices" { nri_storm; }
@test "NRI: the engine starts the plugin itself" { nri_started_by_engine; }
