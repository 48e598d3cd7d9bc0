# SPDX-License-Identifier: Apache-2.0
# What containers get besides GPUs in mode legacy: gated features (NVIDIA_GDS and similar variables) and the hook for CUDA compatibility libraries.

load lib.bash

setup_file() {
  start_host dgx-h100
  install_cli runtime/nvidia-container-runtime.legacy cdi_hook/nvidia-cdi-hook
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  cat >"$work/config.toml" <<TOML
[nvidia-container-runtime]
debug = "$work/runtime.log"
log-level = "debug"
[nvidia-container-runtime-hook]
path = "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook"
skip-mode-detection = true
TOML
}
teardown() { test_teardown; }

# make_gpu_bundle FILTER...
make_gpu_bundle() {
  make_root small overlay
  rm -rf "$bundle"
  make_bundle 'del(.hooks)' "$@"
}

env() {
  printf '.process.env += ["%s"]' "$1"
}

shim() {
  on_host "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime.legacy" --root "$state" --log "$work/log.json" --log-format json "$@"
}

start_container() {
  if ! shim create --bundle "$bundle" "$container" </dev/null >"$work/out" 2>&1; then
    cat "$work/out" "$work/runtime.log" "$work/log.json"
    return 1
  fi
  run_created shim
}

@test "a gate brings its nodes, and the container keeps the GPU that it asked for" {
  make_gpu_bundle "$(env NVIDIA_VISIBLE_DEVICES=0)" "$(env NVIDIA_NVSWITCH=enabled)" "$(env NVIDIA_GDS=enabled)"
  start_container
  expect nvidia-smi 1
  expect open-nvidia0 "No such device or address"
  expect made-nvidia1 "Operation not permitted"
  [[ ${answer[ls-nodes]} == *"/dev/nvidia-fs0 "*"/dev/nvidia-nvswitchctl "* ]]
  jq -e '.process.env | index("NVIDIA_VISIBLE_DEVICES=void") | not' "$bundle/config.json"
  jq -e '.linux.devices | map(.path) | index("/dev/nvidia-nvswitchctl")' "$bundle/config.json"
  jq -e '.mounts | map(.destination) | index("/etc/cufile.json")' "$bundle/config.json"
  jq -e '.hooks.prestart | length == 1' "$bundle/config.json"
}

@test "a gate that is not exactly enabled, or whose container asks for no GPU, is shut" {
  make_gpu_bundle "$(env NVIDIA_VISIBLE_DEVICES=0)" "$(env NVIDIA_NVSWITCH=Enabled)"
  start_container
  run ! grep -q nvswitch "$bundle/config.json"
  make_gpu_bundle "$(env NVIDIA_NVSWITCH=enabled)"
  start_container
  jq -e '.linux.devices | length == 0' "$bundle/config.json"
}

# With this in config.toml the environment of an image without privileges is ignored.
listen_to_mounts_alone() {
  sed -i '1i accept-nvidia-visible-devices-as-volume-mounts = true\naccept-nvidia-visible-devices-envvar-when-unprivileged = false' \
    "$work/config.toml"
}

@test "no gate of an image whose environment does not count, in every mode that has gates; one of a privileged container" {
  local mode all programs=$BATS_FILE_TMPDIR/programs
  local mount='.mounts += [{source: "/dev/null", destination: "/var/run/nvidia-container-devices/0", type: "bind", options: ["bind"]}]'
  all="$(env NVIDIA_NVSWITCH=enabled) | $(env NVIDIA_GDS=enabled) | $(env NVIDIA_MOFED=enabled) | $(env NVIDIA_GDRCOPY=enabled)"
  listen_to_mounts_alone
  for mode in legacy jit-cdi; do
    : >"$work/runtime.log"
    sed -i "/^mode =/d; s/^debug = /mode = \"$mode\"\n&/" "$work/config.toml"
    install -m 0755 "$build/src/cli/runtime/nvidia-container-runtime" "$programs"
    make_gpu_bundle "$mount" "$all"
    on_host "$programs/nvidia-container-runtime" --root "$state" create --bundle "$bundle" "$container" </dev/null >"$work/out" 2>&1 ||
      die "$(cat "$work/out" "$work/runtime.log")"
    run_created on_host runc --root "$state"
    expect nvidia-smi 1
    [[ ${answer[ls-nodes]} != *nvidia-fs* && ${answer[ls-nodes]} != *nvswitch* ]] || die "$mode: ${answer[ls-nodes]}"
    jq -e '.mounts | map(.destination) | index("/etc/cufile.json") | not' "$bundle/config.json"
    grep -q 'ignoring nvswitch requested by NVIDIA_NVSWITCH: the container is not privileged, and accept-nvidia-visible-devices-envvar-when-unprivileged is false' \
      "$work/runtime.log" || die "$(cat "$work/runtime.log")"
  done
  make_gpu_bundle "$mount" "$all" '.process.capabilities.bounding += ["CAP_SYS_ADMIN"]'
  start_container
  [[ ${answer[ls-nodes]} == *"/dev/nvidia-fs0 "*"/dev/nvidia-nvswitchctl "* ]]
}

@test "cuda-compat-mode = hook: the image's newer libcuda is what the loader takes, because the cache is rebuilt" {
  printf '[nvidia-container-runtime.modes.legacy]\ncuda-compat-mode = "hook"\n' >>"$work/config.toml"
  make_gpu_bundle "$(env NVIDIA_VISIBLE_DEVICES=0)" "$(env NVIDIA_DRIVER_CAPABILITIES=compute,utility)"
  on_host mkdir -p "$root/usr/local/cuda/compat"
  on_host cp /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14 "$root/usr/local/cuda/compat/libcuda.so.575.57.08"
  on_host ln -s libcuda.so.575.57.08 "$root/usr/local/cuda/compat/libcuda.so.1"
  start_container
  expect nvidia-smi 1
  expect ldconfig /usr/local/cuda/compat/libcuda.so.1
  jq -e --arg root "$(on_host stat -c %d:%i:%n "$root")" '.hooks.createContainer | map(.args[1:] | join(" ")) == ["sequence --rootfs \($root) enable-cuda-compat --host-driver-version=550.54.14 --then update-ldcache"]' "$bundle/config.json"
  jq -e '.hooks.createContainer | map(.env | length > 0) | all' "$bundle/config.json"
  # Switched off by its flag.
  printf '[features]\ndisable-cuda-compat-lib-hook = true\n' >>"$work/config.toml"
  make_gpu_bundle "$(env NVIDIA_VISIBLE_DEVICES=0)"
  start_container
  jq -e '.hooks | has("createContainer") | not' "$bundle/config.json"
}
