# SPDX-License-Identifier: Apache-2.0
# Simulated arm64 hosts on an arm64 machine (./check arm64-system): their drivers are native, so
# programs can use them and containers of runc get their GPUs. On other machines gb200 and orin have
# drivers of that machine, and nothing can run those of gh200.

load ../integration/lib.bash

setup_file() { [ "$(uname -m)" = aarch64 ] || die "this is not an arm64 machine, but $(uname -m)"; }
setup() {
  local name
  test_setup
  mkdir -p "$BATS_FILE_TMPDIR/programs"
  for name in runtime/nvidia-container-runtime runtime/graft-nvml cdi_hook/nvidia-cdi-hook; do
    install -m 0755 "$build/src/cli/$name" "$BATS_FILE_TMPDIR/programs"
  done
  export NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml
  unset XDG_CONFIG_HOME
  printf '[nvidia-container-runtime]\ndebug = "%s"\nlog-level = "debug"\n' "$work/runtime.log" >"$work/config.toml"
}
teardown() {
  test_teardown
  stop_host
}

libraries=/usr/lib/aarch64-linux-gnu

# machine_of FILE: the machine of an ELF file on the simulated host.
machine_of() { on_host readelf -hW "$1" | sed -n 's/^ *Machine: *//p'; }

# shim_container FILTER...: a container with Debian's root, created and started by
# nvidia-container-runtime and runc; puts the probe's output into `answer`.
shim_container() {
  local shim=(on_host "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime" --root "$work/runc")
  make_root debian overlay
  mkdir -p "$work/runc"
  make_bundle 'del(.hooks)' "$@"
  "${shim[@]}" create --bundle "$bundle" "$container" </dev/null >"$work/out" 2>&1 3>&- || die "$(cat "$work/out" "$work/runtime.log")" || return
  run_created "${shim[@]}"
}

# expect_driver VERSION [LIBRARY-FOLDER]: the container's loader and its cache find the driver's
# library.
expect_driver() {
  expect ldconfig "${2:-$libraries}/libcuda.so.1"
  expect loader "${2:-$libraries}/libcuda.so.$1"
}

@test "an arm64 kernel runs arm64 programs, without an emulator of its own" {
  local program
  grep -q '^Linux version .*Debian' /proc/version
  grep -q '^CPU implementer' /proc/cpuinfo
  for program in "$cli" "$hook" "$sim" /bin/sh "$(type -P runc)"; do
    readelf -hW "$program" | grep -qE '^ *Machine: *AArch64$' || die "$program"
  done
  [ ! -e /proc/sys/fs/binfmt_misc/register ]
  run -0 "$cli" --version
  [[ $output == *"cli-version: "* ]]
}

@test "drivers of gh200, gb200, dgx-h100 and orin are arm64: libraries, the loader's cache, nvidia-smi" {
  local topology
  for topology in gh200 gb200 dgx-h100; do
    start_host "$topology"
    [ "$(machine_of "$libraries/libcuda.so.1")" = AArch64 ]
    [ "$(machine_of "$libraries/libnvidia-ml.so.1")" = AArch64 ]
    [ "$(machine_of /usr/bin/nvidia-smi)" = AArch64 ]
    [ "$(on_host ldconfig -p | sed -n 's/^\tlibcuda\.so\.1 //p')" = "(libc6,AArch64) => $libraries/libcuda.so.1" ]
    run -0 on_host nvidia-smi -L
    [ "$(grep -c '^GPU ' <<<"$output")" -eq "$(case $topology in gh200) echo 1 ;; gb200) echo 4 ;; *) echo 8 ;; esac)" ]
    run -0 --separate-stderr on_host nvidia-container-cli list --libraries
    grep -qE "^$libraries/libcuda\.so\.[0-9.]+$" <<<"$output"
    [ "$(grep -vc "^$libraries/" <<<"$output")" -eq 0 ]
    stop_host
  done
  start_host orin
  [ "$(machine_of "$libraries/tegra/libcuda.so.1")" = AArch64 ]
  [ "$(on_host ldconfig -p | sed -n 's/^\tlibcuda\.so\.1 //p')" = "(libc6,AArch64) => $libraries/tegra/libcuda.so.1" ]
}

@test "runc through nvidia-container-runtime: the GPU of gh200" {
  start_host gh200
  shim_container '.process.env += ["NVIDIA_VISIBLE_DEVICES=all"]'
  expect nvidia-smi 1
  expect nvidia-smi-first "GPU 0: NVIDIA GH200 480GB"
  expect ls-nvidia "nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia0 nvidiactl"
  expect open-nvidia0 "No such device or address"
  expect made-nvidia1 "Operation not permitted"
  expect_driver 570.124.06
}

@test "runc through nvidia-container-runtime: two GPUs of gb200, by UUID, and an IMEX channel" {
  local uuids
  start_host gb200
  uuids=$(on_host nvidia-smi -L | sed -n 's/^GPU [12]:.*UUID: \(.*\))/\1/p' | paste -sd,)
  shim_container ".process.env += [\"NVIDIA_VISIBLE_DEVICES=$uuids\", \"NVIDIA_IMEX_CHANNELS=2\"]"
  expect nvidia-smi 2
  expect nvidia-smi-uuids "${uuids/,/ } "
  expect ls-nodes "/dev/nvidia-caps-imex-channels/channel2 /dev/nvidia-modeset /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia1 /dev/nvidia2 /dev/nvidiactl "
  expect made-nvidia0 "Operation not permitted"
  expect_driver 570.124.06
}

@test "runc through nvidia-container-runtime: the board of orin, by its lists" {
  start_host orin
  shim_container '.process.env += ["NVIDIA_VISIBLE_DEVICES=all"]'
  expect ls-nodes "/dev/nvgpu/igpu0/power /dev/nvhost-as-gpu /dev/nvhost-ctrl /dev/nvhost-gpu /dev/nvmap "
  expect ldconfig "$libraries/tegra/libcuda.so.1"
  grep -q "Auto-detected mode as 'csv'" "$work/runtime.log"
}

@test "runc through nvidia-container-runtime: no GPU where none is asked for, and one that is not there is refused" {
  start_host gh200
  shim_container
  expect nvidia-smi failed
  expect ls-nodes ""
  expect made-nvidia0 "Operation not permitted"
  edit_bundle '.process.env += ["NVIDIA_VISIBLE_DEVICES=7"]'
  run ! on_host "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime" --root "$work/runc" create --bundle "$bundle" "$container"
  [[ $output == *"7: unknown device"* ]] || die "$output"
}
