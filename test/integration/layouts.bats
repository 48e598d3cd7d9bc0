# SPDX-License-Identifier: Apache-2.0
# files: disk
# The main tests on hosts of every kind: a container of runc gets what it asked for, whatever the
# host's distribution, layout or GPUs.

load lib.bash

setup() { test_setup; }
teardown() {
  test_teardown
  stop_host
}

# container TOPOLOGY HOOK-OPTION...: the answers of a container on that host.
container_on() {
  local topology=$1
  shift
  start_host "$topology"
  make_root debian overlay
  make_bundle
  make_hook "$@"
  run_container v2
}

# The UUIDs of the host, of GPUs and MIG devices, in the order of nvidia-smi.
uuids() {
  on_host nvidia-smi -L 2>/dev/null | sed -n 's/.*UUID: \(.*\))/\1/p'
}

driver_version() {
  on_host sed -n 's/^NVRM version:.*  \([0-9][0-9.]*\)  .*/\1/p' /proc/driver/nvidia/version
}

driver_nodes="/dev/nvidia-uvm /dev/nvidia-uvm-tools"

@test "an old driver: one T4" {
  container_on t4 --device=0 --compute --utility
  expect nvidia-smi 1
  expect nvidia-smi-uuids "$(uuids) "
  expect ls-nodes "$driver_nodes /dev/nvidia0 /dev/nvidiactl "
  expect loader "/usr/lib/x86_64-linux-gnu/libcuda.so.$(driver_version)"
}

@test "minors in another order than the bus ids: GPU 0 is /dev/nvidia3" {
  container_on quad --device=0 --compute --utility
  expect nvidia-smi 1
  expect nvidia-smi-uuids "$(uuids | head -n 1) "
  expect ls-nodes "$driver_nodes /dev/nvidia3 /dev/nvidiactl "
  expect made-nvidia1 "Operation not permitted"
}

@test "16 GPUs, all of them" {
  container_on dgx-h100-16 --device=all --compute --utility
  expect nvidia-smi 16
  expect procfs 16
  expect nvidia-smi-uuids "$(uuids | tr '\n' ' ')"
}

# bats test_tags=old-kernel
@test "MIG: one device of a split GPU" {
  container_on a100-mig --device=1:0 --compute --utility
  expect nvidia-smi-mig 1
  expect nvidia-smi-uuids "$(uuids | sed -n 2,3p | tr '\n' ' ')"
  [[ ${answer[ls-nodes]} == *"/dev/nvidia-caps/nvidia-cap"*" /dev/nvidia-uvm "* ]]
  [[ ${answer[ls-nodes]} == *" /dev/nvidia1 /dev/nvidiactl "* ]]
  expect made-nvidia0 "Operation not permitted"
}

@test "MIG: two devices by UUID, of different GPUs" {
  start_host a100-mig
  local wanted
  wanted=$(uuids | grep MIG | sed -n '2p;5p' | paste -sd,)
  stop_host
  container_on a100-mig "--device=$wanted" --compute --utility
  expect nvidia-smi 2
  expect nvidia-smi-mig 2
  [[ ${answer[nvidia-smi-uuids]} == *"${wanted%,*} "* && ${answer[nvidia-smi-uuids]} == *"${wanted#*,} "* ]]
}

@test "MIG: a whole GPU beside split ones" {
  container_on a100-mig --device=0 --compute --utility
  expect nvidia-smi 1
  expect nvidia-smi-mig 0
  expect ls-nodes "$driver_nodes /dev/nvidia0 /dev/nvidiactl "
}

# bats test_tags=old-kernel
@test "IMEX: two channels of four" {
  container_on gb200 --device=0 --compute --utility --imex-channel=0,2
  expect nvidia-smi 1
  expect ls-nodes "/dev/nvidia-caps-imex-channels/channel0 /dev/nvidia-caps-imex-channels/channel2 $driver_nodes /dev/nvidia0 /dev/nvidiactl "
}

# bats test_tags=old-kernel
@test "a driver container: another driver root" {
  container_on driver-container --global=--root=/run/nvidia/driver --device=1 --compute --utility
  expect nvidia-smi 1
  expect ls-nodes "$driver_nodes /dev/nvidia1 /dev/nvidiactl "
  expect loader "/usr/lib/x86_64-linux-gnu/libcuda.so.$(driver_version)"
}

# bats test_tags=old-kernel
@test "a host with lib64, a container with multiarch folders" {
  container_on rhel --device=0 --compute --utility
  expect nvidia-smi 1
  expect loader "/usr/lib/x86_64-linux-gnu/libcuda.so.$(driver_version)"
}

# bats test_tags=old-kernel
@test "a host in the manner of NixOS" {
  container_on nixos --device=0 --compute --utility
  expect nvidia-smi 1
  expect loader "/usr/lib/x86_64-linux-gnu/libcuda.so.$(driver_version)"
}

# bats test_tags=old-kernel
@test "a laptop: graphics, display and 32-bit libraries" {
  container_on geforce-laptop --device=0 --compute --utility --graphics --display --video --compat32
  expect nvidia-smi 1
  expect ls-nodes "/dev/nvidia-modeset $driver_nodes /dev/nvidia0 /dev/nvidiactl "
  expect loader "/usr/lib/x86_64-linux-gnu/libcuda.so.$(driver_version)"
}

# bats test_tags=old-kernel
@test "WSL2" {
  container_on wsl2 --device=all --compute --utility
  expect ls-nodes "/dev/dxg "
  [ -n "${answer[ldconfig]}" ]
}

# bats test_tags=old-kernel
@test "Jetson AGX Orin" {
  container_on orin --device=all --compute --utility
  [[ ${answer[ls-nodes]} == *"/dev/nvgpu"* ]]
}

# refused TEXT GRAFT-SIM-ARGUMENT...: no container on that host, and the text in the log of the hook.
refused() {
  local text=$1
  shift
  start_host "$@"
  make_root small overlay
  make_bundle
  mkdir -p "$work/runc"
  run ! on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  grep -q "^nvidia-container-cli: $text\$" "$hook_log" || die "$(cat "$hook_log")"
}
no_library='load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory'

@test "no driver: no container, and the text that people search for" {
  refused "initialization error: $no_library" no-driver
}

@test "half of a driver: no container" {
  refused "initialization error: $no_library" half-installed
}

@test "libraries without the kernel module: no container" {
  refused 'initialization error: nvml error: driver not loaded' single \
    --fault missing=/proc/driver/nvidia --fault missing=/sys/module/nvidia --fault nvml-init-fail=9
}

@test "a driver that only NVML knows: the GPU that was asked for, and no other" {
  local fault
  for fault in '' --fault=missing=/sys/module/nvidia; do
    start_host dgx-h100 --fault missing=/proc/driver/nvidia ${fault:+"$fault"}
    make_root small overlay
    make_bundle
    make_hook --device=1 --compute --utility
    run_container v2
    expect ls-nodes "/dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia1 /dev/nvidiactl "
    expect open-nvidia1 "No such device or address"
    expect made-nvidia0 "Operation not permitted"
    grep -q 'listing GPU 1 by NVML: GPU-' "$hook_log"
    make_hook --device=8 --compute
    run ! on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
    grep -q '^nvidia-container-cli: device error: 8: unknown device$' "$hook_log" || die "$(cat "$hook_log")"
    test_teardown
    stop_host
  done
}

@test "a driver without a GPU: none for the container, whatever NVML answers" {
  local fault
  printf 'driver: 550.54.14\ncuda: "12.4"\ngpus: []\n' >"$BATS_TEST_TMPDIR/none.yaml"
  for fault in '' --fault=nvml-init-fail=9 --fault=nvml-crash; do
    start_host "$BATS_TEST_TMPDIR/none.yaml" ${fault:+"$fault"}
    # All GPUs may be reserved for virtual machines: then the list is there, and empty.
    on_host mkdir -p /proc/driver/nvidia/gpus
    make_root small overlay
    make_bundle
    make_hook --device=all --compute --utility
    run_container v2
    expect ls-nodes "/dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidiactl "
    [ -z "$fault" ] || grep -q 'skipping GPUs: procfs does not list them, and NVML fails: nvml error: ' "$hook_log"
    test_teardown
    stop_host
  done
}

@test "libraries of another version than the kernel module: no container" {
  refused 'initialization error: nvml error: driver/library version mismatch' single --fault nvml-mismatch
}
