# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The ways in which a container that is still to be made gets its GPUs, for suites that compare them; on top of lib.bash.

# install_programs: beside those of start_host.
install_programs() {
  install_cli runtime/nvidia-container-runtime cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk
}

# gpu_bundle DEVICES [JQ-FILTER...]
gpu_bundle() {
  local devices=$1
  shift
  new_bundle
  edit_bundle --arg root "$root" --arg devices "$devices" --arg id "$container" "$(piped '
    .process.terminal = false | .process.args = ["/probe"] | del(.process.rlimits) | .root = {path: $root, readonly: true} |
    .linux.cgroupsPath = "/" + $id |
    (.process.capabilities[]) |= (. + ["CAP_MKNOD", "CAP_DAC_OVERRIDE"] | unique) |
    .mounts += [{destination: "/tmp", type: "tmpfs", source: "tmpfs"}] |
    .process.env += ["NVIDIA_VISIBLE_DEVICES=" + $devices, "NVIDIA_DRIVER_CAPABILITIES=all"]' "$@")"
}

# run_with MODE RUNTIME [CREATE-OPTION...]: the container of this mode starts; its answers, and $work/runtime.log.
run_with() {
  local mode=$1 low_level=$2 world
  shift 2
  rm -f "$work/runtime.log"
  cat >"$work/config.toml" <<TOML
[nvidia-container-runtime]
mode = "$mode"
log-level = "debug"
debug = "$work/runtime.log"
runtimes = ["$low_level"]
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$work/cdi"]
[nvidia-container-runtime-hook]
path = "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook"
[nvidia-container-cli]
debug = "$work/cli.log"
TOML
  mkdir -p "$work/runc"
  # A hybrid host's other hierarchies are nothing for crun.
  [ "$low_level" = crun ] && world=v2_raising || world=on_host
  "$world" "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime" --root "$work/runc" create --bundle "$bundle" "${late_pid[@]}" "$@" "$container" </dev/null >"$work/out" 2>&1 3>&- 4>&- ||
    die "$(cat "$work/out" "$work/runtime.log")" || return
  run_created "$world" "$low_level" --root "$work/runc"
}
