# SPDX-License-Identifier: Apache-2.0
# Hosts that few people have, and every way in which a container gets GPUs there.

load lib.bash
load ways.bash

setup() { test_setup; }
teardown() {
  test_teardown
  stop_host
}

# rare_host TOPOLOGY [GRAFT-SIM OPTION...]
rare_host() {
  start_host "$@"
  install_programs
  export NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml
  unset XDG_CONFIG_HOME
}

# new_root: a fresh one for each container, and a new bundle.
new_root() {
  make_root "$1" overlay
  rm -rf "$bundle"
}

# by_configure DEVICE, by_MODE DEVICE: a container with this GPU, by each way; its answers.
by_configure() {
  make_bundle "${filters[@]}"
  make_hook "--device=$1" --compute --utility ${capabilities:+--display --graphics --video}
  run_container v2
}

# As dockerd writes it for --gpus.
by_prestart_hook() {
  make_bundle "${filters[@]}"
  printf '[nvidia-container-cli]\ndebug = "%s"\n' "$work/cli.log" >"$work/config.toml"
  edit_bundle --arg device "$1" --arg capabilities "${capabilities:-compute,utility}" --arg path "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook" --arg config "$work/config.toml" '
    .process.env += ["NVIDIA_VISIBLE_DEVICES=" + $device, "NVIDIA_DRIVER_CAPABILITIES=" + $capabilities] |
    .hooks.prestart = [{path: $path, args: ["nvidia-container-runtime-hook", "-config", $config, "prestart"], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]'
  run_container v2
}

by_jit_cdi() {
  gpu_bundle "$1" "${filters[@]}"
  run_with jit-cdi runc
}

by_after_create() {
  gpu_bundle "$1" "${filters[@]}"
  run_with jit-cdi runc --pid-file "$work/pid"
}

by_legacy() {
  gpu_bundle "$1" "${filters[@]}"
  run_with legacy runc
}

by_cdi() {
  mkdir -p "$work/cdi"
  on_host "$BATS_FILE_TMPDIR/programs/nvidia-ctk" cdi generate --nvidia-cdi-hook-path "$BATS_FILE_TMPDIR/programs/nvidia-cdi-hook" \
    --output "$work/cdi/nvidia.yaml" 2>"$work/generate.log"
  gpu_bundle "nvidia.com/gpu=$1" "${filters[@]}"
  run_with cdi runc
}

# device_plugin: it offers all GPUs to a kubelet, which gives two of them to a container by their UUIDs.
device_plugin() {
  local plugin=$build/src/daemon/nvidia-device-plugin
  [ -x "$plugin" ] || return 0
  mkdir -p "$work/kubelet"
  on_host sh -c 'cd "$0" && exec timeout 120 /usr/bin/python3 "$@"' "$work/kubelet" \
    "$top/test/kubernetes/kubelet.py" container "$plugin" --device-list-strategy envvar
  on_host nvidia-smi -L 2>/dev/null | grep -cFf "$work/kubelet/devices" | grep -x 2
  rm -r "$work/kubelet"
}

ways="configure prestart_hook jit_cdi after_create legacy cdi"
filters=()

@test "a driver since 610: the firmware of all the GPU's processors is mounted, by every way" {
  local way folder=/lib/firmware/nvidia/615.71
  rare_host workstation
  filters=(".process.args = [\"sh\", \"-c\", \"cd $folder && md5sum *\"]")
  on_host sh -c "cd $folder && md5sum *" >"$work/firmware"
  [ "$(awk '{ print $2 }' "$work/firmware" | tr '\n' ' ')" = "gsp_ga10x.bin gsp_tu10x.bin ucodes_ga10x.bin ucodes_tu10x.bin " ]
  for way in $ways; do
    new_root small
    "by_$way" 0
    diff "$work/firmware" - <<<"$output" || die "$way"
  done
  # And all of it, or none of it.
  new_root small
  make_bundle "${filters[@]}"
  make_hook --device=0 --compute --utility --no-gsp-firmware
  run ! on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  [[ $output == *"$folder: No such file or directory"* || $output == *"can't cd to $folder"* ]] || die "$output"
}

@test "a server without nvidia-modeset: a container that asks for all capabilities starts, by every way" {
  local way
  rare_host dgx-h100 --fault missing=/dev/nvidia-modeset
  for way in $ways; do
    new_root debian
    capabilities=all
    "by_$way" 1
    expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidia1 nvidiactl" || die "$way" || return
    expect_libraries
  done
}

@test "GPUs that only NVML lists: the one that was asked for, and no other, by every way" {
  local way fault list=--fault=missing=/proc/driver/nvidia/gpus
  # The last ones have the driver's version in procfs, and no list of GPUs, or an empty one.
  for fault in --fault=missing=/proc/driver/nvidia "--fault=missing=/proc/driver/nvidia --fault=missing=/sys/module/nvidia" $list "$list "; do
    # shellcheck disable=SC2086 # words
    rare_host dgx-h100 $fault
    [ "$fault" != "$list " ] || on_host mkdir /proc/driver/nvidia/gpus
    for way in $ways; do
      new_root debian
      "by_$way" 1
      # With all capabilities there is nvidia-modeset as well.
      answer[ls-nvidia]=${answer[ls-nvidia]#nvidia-modeset }
      expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidia1 nvidiactl" || die "$way" || return
      expect open-nvidia1 "No such device or address"
      expect made-nvidia0 "Operation not permitted"
      expect_libraries
    done
    on_host "$cli" list --device=1 >"$work/listed" 2>/dev/null
    grep -x /dev/nvidia1 "$work/listed"
    run ! grep '/dev/nvidia[02-7]' "$work/listed"
    on_host "$cli" info --csv 2>/dev/null >"$work/listed"
    diff <(on_host nvidia-smi -L 2>/dev/null | grep -o 'GPU-[0-9a-f-]*') <(grep -o 'GPU-[0-9a-f-]*' "$work/listed")
    [ "$(grep -c 'GPU-' "$work/listed")" -eq 8 ]
    on_host "$BATS_FILE_TMPDIR/programs/nvidia-ctk" cdi list --spec-dir "$work/cdi" 2>/dev/null | sort >"$work/listed"
    { printf 'nvidia.com/gpu=%s\n' all 0 1 2 3 4 5 6 7 && on_host nvidia-smi -L 2>/dev/null | sed -n 's/.*UUID: \(.*\))/nvidia.com\/gpu=\1/p'; } |
      sort | diff - "$work/listed"
    device_plugin
    test_teardown
    stop_host
  done
}

@test "WSL2: the GPU that the device plugin answers with, by every way" {
  local way word plugin=$build/src/daemon/nvidia-device-plugin
  [ -x "$plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  rare_host wsl2
  word=$(on_host "$plugin" --once 2>/dev/null | jq -r '.resources[0].example.envs[] | select(.name == "NVIDIA_VISIBLE_DEVICES").value')
  [[ $word == GPU-* ]]
  for way in configure prestart_hook jit_cdi after_create legacy; do
    new_root debian
    "by_$way" "$word"
    expect_wsl "$word" || die "$way" || return
  done
  # By the specification that the plugin writes, which has one device for all GPUs.
  mkdir -p "$work/kubelet" "$work/cdi"
  KUBELET_GPUS=1 KUBELET_CONTAINER=nvidia.com/gpu=1 NVIDIA_CDI_HOOK_PATH=$BATS_FILE_TMPDIR/programs/nvidia-cdi-hook on_host \
    sh -c 'cd "$0" && exec timeout 120 /usr/bin/python3 "$@"' "$work/kubelet" "$top/test/kubernetes/kubelet.py" container "$plugin" --device-list-strategy cdi-cri
  [ "$(cat "$work/kubelet/arguments")" = $'--cdi-device\nk8s.device-plugin.nvidia.com/gpu=all' ]
  on_host cp /var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json "$work/cdi"
  new_root debian
  gpu_bundle void '.annotations["cdi.k8s.io/nvidia-device-plugin"] = "k8s.device-plugin.nvidia.com/gpu=all"'
  run_with cdi runc
  expect_wsl "$word"
}
# expect_wsl UUID: the container has the node that all GPUs share, and works.
expect_wsl() {
  expect ls-nodes "/dev/dxg "
  expect ls-nvidia ""
  expect nvidia-smi 1
  expect nvidia-smi-uuids "$1 "
  [[ ${answer[ldconfig]} == */libcuda.so.1 ]]
}
