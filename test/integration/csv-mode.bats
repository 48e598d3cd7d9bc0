# SPDX-License-Identifier: Apache-2.0
# nvidia-container-runtime on a Tegra board (mode csv, detected automatically): what the board's lists name is in the container, and works.

load lib.bash

setup_file() {
  start_host orin
  install_cli runtime/nvidia-container-runtime cdi_hook/nvidia-cdi-hook
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  printf '[nvidia-container-runtime]\ndebug = "%s"\nlog-level = "debug"\n' "$work/runtime.log" >"$work/config.toml"
}
teardown() { test_teardown; }

tegra=/usr/lib/x86_64-linux-gnu/tegra

# make_board_bundle FILTER...
make_board_bundle() {
  make_root small overlay
  rm -rf "$bundle"
  new_bundle
  edit_bundle --arg root "$root" "$(piped '.process.terminal = false | .process.args = ["/bin/sh", "/show"] | del(.process.rlimits) |
    .root = {path: $root, readonly: false} | (.process.capabilities[]) |= (. + ["CAP_MKNOD", "CAP_DAC_OVERRIDE"] | unique)' "$@")"
  on_host tee "$root/show" >/dev/null <<'SHOW'
/probe
echo "open-nvmap: $( (: <>/dev/nvmap) 2>&1 | sed 's/.*: //')"
echo "open-ctrl: $( (: <>/dev/nvhost-ctrl) 2>&1 | sed 's/.*: //')"
echo "release: $(head -c 5 /etc/nv_tegra_release)"
echo "share: $(cd /usr/share && echo nvidia-tegra*)"
echo "links: $(cd /usr/lib/x86_64-linux-gnu/tegra 2>/dev/null && for link in *; do [ ! -L "$link" ] || printf '%s=%s ' "$link" "$(readlink "$link")"; done)"
echo "void: $NVIDIA_VISIBLE_DEVICES"
SHOW
}

env() {
  printf '.process.env += ["%s"]' "$1"
}

world=on_host
shim() {
  "$world" "$runtime" --root "$state" --log "$work/log.json" --log-format json "$@"
}

start_container() {
  if ! shim create --bundle "$bundle" "${late_pid[@]}" "$container" </dev/null >"$work/out" 2>&1; then
    cat "$work/out" "$work/runtime.log"
    return 1
  fi
  run_created shim
}

refuse() {
  sha256sum "$bundle/config.json" >"$work/before"
  run shim create --bundle "$bundle" "${late_pid[@]}" "$container"
  [ "$status" -eq 1 ]
  message=$(jq --slurp --raw-output 'map(select(.level == "error")) | last | .msg' "$work/log.json")
  # shellcheck disable=SC2053
  [[ $message == $1 ]] || die "$message"
  sha256sum --check --quiet "$work/before"
}

all_nodes='/dev/nvgpu/igpu0/power /dev/nvhost-as-gpu /dev/nvhost-ctrl /dev/nvhost-gpu /dev/nvmap '

# bats test_tags=old-kernel
@test "all: nodes, files, links and the loader's cache of the board" {
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)" '.hooks = {prestart: [{path: "/usr/bin/nvidia-container-runtime-hook"}]}'
  start_container
  expect ls-nodes "$all_nodes"
  expect open-nvmap "No such device" # the simulated nodes: the cgroup let it through
  expect open-ctrl "No such device or address"
  expect release "# R35"
  expect share nvidia-tegra
  expect ldconfig "$tegra/libcuda.so.1"
  [[ ${answer[links]} == *"libcuda.so=libcuda.so.1 libcuda.so.1=libcuda.so.1.1 "* ]]
  expect void void
  grep -q "missing $tegra/libnvidia-not-installed.so.1: no such file" "$work/runtime.log"
  grep -q "Auto-detected mode as 'csv'" "$work/runtime.log"
  jq -e '.hooks | has("prestart") | not' "$bundle/config.json"
  jq -e '[.mounts[] | select(.destination | contains("/tegra/")) | .options | contains(["ro", "nosuid", "nodev"])] | all' "$bundle/config.json"
}

# lives LOW-LEVEL-RUNTIME: create, start, exec, kill, delete; what exec sees is the board.
lives() {
  printf 'runtimes = ["%s"]\n' "$1" >>"$work/config.toml"
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)" '.process.args = ["/bin/sleep", "600"]'
  shim create --bundle "$bundle" "${late_pid[@]}" "$container" </dev/null >"$work/out" 2>&1 || die "$(cat "$work/out" "$work/runtime.log")" || return
  shim start "$container"
  run shim exec "$container" /bin/sh /show
  read_answers
  expect ls-nodes "$all_nodes"
  expect open-nvmap "No such device"
  expect release "# R35"
  expect ldconfig "$tegra/libcuda.so.1"
  shim delete --force "$container"
  run -1 shim state "$container"
}

# bats test_tags=old-kernel
@test "runc, cgroup v1: create, start, exec, delete" { lives runc; }
# bats test_tags=old-kernel
@test "runc, cgroup v2: create, start, exec, delete" { world=v2 lives runc; }
# bats test_tags=old-kernel
@test "crun, cgroup v2: create, start, exec, delete" { world=v2_raising lives crun; }
# bats test_tags=old-kernel
@test "crun, cgroup v1: create, start, exec, delete" { world=v1_alone lives crun; }

@test "0 is the only GPU; another is refused; none is no node" {
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=0)"
  start_container
  expect ls-nodes "$all_nodes"
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=1)"
  refuse "*unsupported device id: 1; on this board there are 0 and all*"
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=none)"
  start_container
  expect ls-nodes ""
  expect ldconfig "$tegra/libcuda.so.1"
}

@test "a container gets the board's GPU by the answer of the device plugin, in its variable and in its volume mounts" {
  local reply plugin=$build/src/daemon/nvidia-device-plugin
  [ -x "$plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  # plugin_answers STRATEGY: what the plugin answers for the board's GPU.
  plugin_answers() {
    run -0 --separate-stderr on_host "$plugin" --once --kubelet-socket="$work/none" --device-list-strategy="$1"
    reply=$(jq -c '.resources[0].example' <<<"$output")
  }
  plugin_answers envvar
  make_board_bundle "$(jq -r '.envs | map(".process.env += [\"\(.name)=\(.value)\"]") | join(" | ")' <<<"$reply")"
  jq -e '.process.env | any(startswith("NVIDIA_VISIBLE_DEVICES="))' "$bundle/config.json"
  start_container
  expect ls-nodes "$all_nodes"
  expect ldconfig "$tegra/libcuda.so.1"
  sed -i '1i accept-nvidia-visible-devices-as-volume-mounts = true' "$work/config.toml"
  plugin_answers volume-mounts
  make_board_bundle "$(jq -r '.mounts | map(".mounts += [{destination: \"\(.container_path)\", source: \"\(.host_path)\", type: \"bind\", options: [\"bind\", \"ro\"]}]") | join(" | ")' <<<"$reply")"
  jq -e '.mounts | any(.destination | startswith("/var/run/nvidia-container-devices/"))' "$bundle/config.json"
  start_container
  expect ls-nodes "$all_nodes"
  expect ldconfig "$tegra/libcuda.so.1"
}

@test "mode jit-cdi and its names: the lists say what is in the container; what is unknown is refused" {
  late_pid=()
  local mode devices
  for mode in jit-cdi cdi auto; do
    printf '[nvidia-container-runtime]\nmode = "%s"\ndebug = "%s"\nlog-level = "debug"\n' "$mode" "$work/runtime.log" >"$work/config.toml"
    for devices in 0 runtime.nvidia.com/gpu=all; do
      # In mode cdi, a name without a kind is one of a specification.
      [ "$mode $devices" != "cdi 0" ] || continue
      make_board_bundle "$(env "NVIDIA_VISIBLE_DEVICES=$devices")"
      start_container
      expect ls-nodes "$all_nodes"
      expect ldconfig "$tegra/libcuda.so.1"
      [[ ${answer[links]} == *"libcuda.so=libcuda.so.1 libcuda.so.1=libcuda.so.1.1 "* ]]
      jq -e '[.mounts[].destination] | any(endswith("/tegra/libnvrm_gpu.so"))' "$bundle/config.json"
    done
    for devices in GPU-x 99; do
      make_board_bundle "$(env "NVIDIA_VISIBLE_DEVICES=runtime.nvidia.com/gpu=$devices")"
      refuse "*unsupported device id: $devices; on this board there are 0 and all*"
    done
    make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=runtime.nvidia.com/gpu=all)" "$(env 'NVIDIA_REQUIRE_CUDA=cuda>=12.4')"
    refuse "*requirements not met: unsatisfied condition: cuda>=12.4 (cuda=11.4)*"
  done
}

@test "nvidia-container-cli refuses what the board does not have" {
  local word
  for word in 99 GPU-x 0,1; do
    run -65 on_host nvidia-container-cli plan --device="$word" --compute /
    [[ $output == *"nvidia-container-cli: device error: ${word#0,}: unknown device"* ]] || die "$output"
  done
  run -0 on_host nvidia-container-cli plan --device=0 --compute /
}

@test "the board's libnvidia-container.so.0 is not used" {
  local program
  [ "$(find "$BATS_FILE_TMPDIR/programs" -name 'nvidia-*' | wc -l)" -gt 3 ]
  for program in "$BATS_FILE_TMPDIR"/programs/*; do
    run ! grep -qF 'libnvidia-container.so.0' "$program"
  done
}

@test "a container that asks for nothing is left alone" {
  make_board_bundle
  sha256sum "$bundle/config.json" >"$work/before"
  shim create --bundle "$bundle" "${late_pid[@]}" "$container" </dev/null >"$work/out" 2>&1
  shim delete --force "$container"
  sha256sum --check --quiet "$work/before"
}

@test "all lists for images that ask for them; the lists of another directory" {
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)" "$(env NVIDIA_REQUIRE_JETPACK=csv-mounts=all)"
  start_container
  expect share "nvidia-tegra nvidia-tegra-samples"
  mkdir "$work/lists"
  printf 'dev, nvmap\n' >"$work/lists/devices.csv"
  printf '[nvidia-container-runtime.modes.csv]\nmount-spec-path = "%s"\n' "$work/lists" >>"$work/config.toml"
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)"
  start_container
  expect ls-nodes "/dev/nvmap "
  printf 'dev, nothing\n' >"$work/lists/devices.csv"
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)"
  refuse "*no device node that the CSV files of this board list exists*"
}

# libcuda of the board says 11.4: it is asked, without NVML, in a child.
@test "requirements are checked here; the image or the administrator may switch that off" {
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)" "$(env 'NVIDIA_REQUIRE_CUDA=cuda>=11.4')"
  start_container
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)" "$(env 'NVIDIA_REQUIRE_CUDA=cuda>=12.4')"
  refuse "*requirements not met: unsatisfied condition: cuda>=12.4 (cuda=11.4)*"
  # Without the program that asks, the reason is told, and no empty version.
  mv "$BATS_FILE_TMPDIR/programs/graft-nvml" "$work"
  refuse "*requirements not met: the driver does not state its CUDA version: nvml error: cannot start the program that asks NVML: */graft-nvml: no such file or directory*"
  # Nothing else asks.
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)"
  start_container
  mv "$work/graft-nvml" "$BATS_FILE_TMPDIR/programs"
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)" "$(env 'NVIDIA_REQUIRE_CUDA=cuda>=12.4')" "$(env NVIDIA_DISABLE_REQUIRE=1)"
  start_container
  printf 'disable-require = true\n' | cat - "$work/config.toml" >"$work/new"
  mv "$work/new" "$work/config.toml"
  make_board_bundle "$(env NVIDIA_VISIBLE_DEVICES=all)" "$(env 'NVIDIA_REQUIRE_CUDA=cuda>=12.4')"
  start_container
  expect ls-nodes "$all_nodes"
}
