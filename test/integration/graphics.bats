# SPDX-License-Identifier: Apache-2.0
# OpenGL, EGL and Vulkan: with `graphics` the loaders of the image (Khronos' for Vulkan, glvnd for EGL) find the driver's vendor libraries by
# the description files where they look for them; with `compute,utility` there is nothing to find. Debian's vulkaninfo and eglinfo ask.
# By nvidia-container-cli, and in the stage late-mounts by the runtime.

load lib.bash
load ways.bash

setup_file() {
  start_host dgx-h100
  install_programs
}
teardown_file() { stop_host; }
setup() {
  test_setup
  make_root graphics overlay
}
teardown() {
  test_teardown
  stop_other_host
}

# ask OPTION...: what vulkaninfo and eglinfo say in a container that was given these options.
ask() {
  make_bundle '.process.args = ["/bin/sh", "-c",
    "vulkaninfo --summary 2>&1 | sed s/^/vulkan:/; eglinfo -B 2>&1 | sed s/^/egl:/; find / -xdev -name *nvidia*.json"]'
  mkdir -p "$work/runc"
  if [[ -n ${GRAFT_LATE_MOUNTS:-} && " $* " == *" --graphics "* ]]; then
    edit_bundle --arg devices "${1#--device=}" 'del(.hooks) | .process.env += ["NVIDIA_VISIBLE_DEVICES=" + $devices]'
    NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml run_with jit-cdi runc || return
    [ "$(jq -r '.annotations["graft.late-mounts"]' "$bundle/config.json")" = "all files" ] || die "$(jq .annotations "$bundle/config.json")"
    return
  fi
  make_hook "$@"
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  [ "$status" -eq 0 ] || { say "$output" && cat "$hook_log" && return 1; }
}

# expect_devices GPU...: both interfaces show exactly these of the host's.
expect_devices() {
  local gpu uuids want=()
  mapfile -t uuids < <(on_host nvidia-smi -L 2>/dev/null | sed -n 's/^GPU .*UUID: GPU-\(.*\))/\1/p')
  for gpu in "$@"; do want+=("${uuids[gpu]}"); done
  [ "$(sed -n 's/^vulkan:.*deviceUUID *= //p' <<<"$output")" = "$(printf '%s\n' "${want[@]}")" ] || { say "$output" && return 1; }
  [ "$(grep -c '^egl:Device #' <<<"$output")" -eq $# ] || { say "$output" && return 1; }
  grep -q '^vulkan:.*driverInfo *= 550.54.14$' <<<"$output"
  grep -q '^egl:EGL vendor string: NVIDIA' <<<"$output"
}

# bats test_tags=late-mounts
@test "graphics, GPU 0 and 5 of 8: Vulkan and EGL show these two" {
  ask --device=0,5 --graphics --utility
  expect_devices 0 5
}

# bats test_tags=late-mounts
@test "all capabilities, all GPUs" {
  ask --device=all --compute --compat32 --graphics --utility --video --display
  expect_devices 0 1 2 3 4 5 6 7
}

@test "compute and utility: no description file, no vendor library; both loaders find nothing" {
  ask --device=0 --compute --utility
  grep -q '^vulkan:.*Found no drivers' <<<"$output"
  run ! grep -q 'NVIDIA' <<<"$output"
  run ! grep -q 'nvidia_icd.json\|10_nvidia.json' <<<"$output"
}

@test "a driver since 560: EGL's platforms for X and nvidia-xconfig come with graphics alone" {
  local asks='for name in xcb xlib; do
    cat /usr/share/egl/egl_external_platform.d/20_nvidia_$name.json
    ldconfig -p | grep -o "libnvidia-egl-$name.so.1 "
    test -s /usr/lib/x86_64-linux-gnu/libnvidia-egl-$name.so.1 && echo there
  done
  test -x /usr/bin/nvidia-xconfig && echo configures'
  other_host geforce-laptop
  make_root debian overlay
  make_bundle
  edit_bundle --arg asks "$asks" '.process.args = ["/bin/sh", "-c", $asks]'
  make_hook --device=0 --graphics
  mkdir -p "$work/runc"
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  [ "$(grep -o 'libnvidia-egl-[a-z]*.so.1\|there\|configures' <<<"$output" | tr '\n' ' ')" = \
    "libnvidia-egl-xcb.so.1 libnvidia-egl-xcb.so.1 there libnvidia-egl-xlib.so.1 libnvidia-egl-xlib.so.1 there configures " ] || die "$output"
  make_root debian overlay
  make_hook --device=0 --compute --utility
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  run ! grep 'libnvidia-egl\|there\|configures' <<<"$output"
}
