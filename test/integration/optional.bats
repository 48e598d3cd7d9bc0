# SPDX-License-Identifier: Apache-2.0
# What the existing command line does not give - OpenCL's and Vulkan's descriptions, our loader configuration - never fails a start: where an image or a volume has no
# place for it, the container starts without it, with one warning. What it does give has to be there.
# bats file_tags=late-mounts

load lib.bash
load ways.bash

setup_file() {
  start_host dgx-h100
  install_programs
}
teardown_file() { stop_host; }
setup() {
  test_setup
  volume=$work/vendors
  export NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml
  unset XDG_CONFIG_HOME
  make_root debian overlay
  mkdir -p "$volume"
}
teardown() { test_teardown; }

icd=/etc/OpenCL/vendors/nvidia.icd
vulkan=/etc/vulkan/icd.d/nvidia_icd.json
layers=/etc/vulkan/implicit_layer.d/nvidia_layers.json

# mount_filter OPTIONS [PLACE]: a jq filter that adds the volume as engines do.
mount_filter() {
  printf '.mounts += [{destination: "%s", type: "bind", source: "%s", options: %s}]' "${2:-/etc/OpenCL/vendors}" "$volume" "$1"
}

# occupy: an image with a directory in place of a file, a file in place of a directory, and a directory in place of our configuration of the loader.
occupy() {
  on_host mkdir -p "$root$icd" "$root/etc/vulkan/icd.d" "$root/etc/ld.so.conf.d/00-graft.conf/full"
  on_host touch "$root/etc/vulkan/implicit_layer.d"
}

# left_out LOG WARNING...: the log has exactly these.
left_out() {
  local log=$1
  shift
  printf '%s\n' "$@" | sort >"$work/expected"
  grep -o '/[^ ]* is left out: .*' "$log" | sed -e "s| $root| ROOT|" -e 's/"$//' -e 's/" *}$//' | sort >"$work/found"
  diff "$work/expected" "$work/found" || { cat "$log" && return 1; }
}

# nothing_of PATH...: in the root, and in the volume.
nothing_of() {
  local path
  for path in "$@"; do
    on_host test ! -e "$root$path" || die "$path is there" || return
  done
  [ -z "$(ls -A "$volume")" ]
}

# ---- a container that is there ----

# bats test_tags=old-kernel
@test "configure: a read-only volume at the place of OpenCL's description" {
  make_bundle "$(mount_filter '["rbind", "ro"]')"
  run_container v2
  expect_one_gpu
  left_out "$hook_log" "$icd is left out: file creation failed: ROOT$icd: read-only file system"
  nothing_of
}

# bats test_tags=old-kernel
@test "configure: a volume at the same place that has the file, or can be written, gets the description" {
  echo old >"$volume/nvidia.icd"
  make_bundle "$(mount_filter '["rbind", "ro"]')" '.process.args = ["cat", "'$icd'"]'
  mkdir -p "$work/runc"
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  [ "$output" = libnvidia-opencl.so.1 ] || die "$output"
  run ! grep 'left out' "$hook_log"
  [ "$(cat "$volume/nvidia.icd")" = old ]
}

# bats test_tags=old-kernel
@test "configure: an image that has something else at two places; nothing of these edits stays" {
  occupy
  make_bundle
  make_hook --device=0 --compute --utility --graphics
  run_container v2
  expect_one_gpu
  left_out "$hook_log" "$icd is left out: path error: ROOT$icd: is a directory" \
    "$layers is left out: path error: ROOT$layers: not a directory"
  on_host test -e "$root$vulkan"
  nothing_of /etc/vulkan/implicit_layer.d/nvidia_layers.json
  [ -z "$(on_host find "$root/etc" -xdev -name '.graft*')" ]
}

@test "configure: what the existing command line gives has to be there; all of it is undone, and the files of before stay" {
  occupy
  on_host rm "$root/usr/bin/nvidia-smi" 2>/dev/null || true
  on_host mkdir -p "$root/usr/bin/nvidia-smi"
  make_bundle
  mkdir -p "$work/runc"
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  [ "$status" -ne 0 ]
  grep -q "mount error: path error: $root/usr/bin/nvidia-smi: is a directory" "$hook_log" || die "$(cat "$hook_log")"
  nothing_of /usr/lib/x86_64-linux-gnu/libcuda.so.1
}

@test "the C library: a read-only volume, and an image with something else" {
  occupy
  make_bundle "$(mount_filter '["rbind", "ro"]' /etc/vulkan/icd.d)"
  cat >"$work/hook" <<HOOK
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
export NVC_DEBUG_FILE=$work/library.log
exec 2>>"$hook_log"
state=\$(cat)
exec "$build/test/integration/nvc_walk" "supervised compute utility graphics" "\$(jq -r .pid <<<"\$state")" "$root" 0
HOOK
  run_container v2
  expect_one_gpu
  left_out "$work/library.log" "$icd is left out: path error: ROOT$icd: is a directory" \
    "$layers is left out: path error: ROOT$layers: not a directory" \
    "$vulkan is left out: file creation failed: ROOT$vulkan: read-only file system"
}

# ---- a container that is still to be made ----

@test "jit-cdi: volumes and tmpfs without a place, and an image with something else; runc and crun" {
  local low_level
  for low_level in runc crun; do
    type "$low_level" >/dev/null || continue
    make_root debian overlay
    occupy
    gpu_bundle 0 "$(mount_filter '["rbind", "ro"]' /usr/share/glvnd/egl_vendor.d)" \
      '.mounts += [{destination: "/usr/share/nvidia", type: "tmpfs", source: "tmpfs", options: ["ro"]}]'
    run_with jit-cdi "$low_level"
    expect nvidia-smi 1
    expect_libraries
    left_out "$work/runtime.log" "$icd is left out: a directory has that name" \
      "$layers is left out: a component of the path is not a directory" \
      "/usr/share/glvnd/egl_vendor.d/10_nvidia.json is left out: cannot create a file there: read-only file system" \
      "/usr/share/nvidia/nvoptix.bin is left out: cannot create a file there: read-only file system" \
      "/etc/ld.so.conf.d/00-graft.conf is left out: file write error: /etc/ld.so.conf.d/00-graft.conf: is a directory"
    jq -e --arg vulkan "$vulkan" '[.mounts[].destination] | index($vulkan)' "$bundle/config.json"
    nothing_of
  done
}

@test "jit-cdi: the same volumes where they have the file, or can be written; a link of the image leads to one" {
  on_host mkdir -p "$root/opt/vendors" "$root/etc/OpenCL"
  on_host ln -s /opt/vendors "$root/etc/OpenCL/vendors"
  touch "$volume/nvidia.icd"
  gpu_bundle 0 "$(mount_filter '["rbind", "ro"]' /opt/vendors)" '.process.args = ["cat", "'$icd'"]'
  run_with jit-cdi runc
  [ "$output" = libnvidia-opencl.so.1 ] || die "$output"
  run ! grep 'is left out' "$work/runtime.log"
  rm "$volume/nvidia.icd"
  gpu_bundle 0 "$(mount_filter '["rbind", "ro"]' /opt/vendors)"
  run_with jit-cdi runc
  expect nvidia-smi 1
  left_out "$work/runtime.log" "$icd is left out: cannot create a file there: read-only file system"
  gpu_bundle 0 "$(mount_filter '["rbind"]' /opt/vendors)" '.process.args = ["cat", "'$icd'"]'
  run_with jit-cdi runc
  [ "$output" = libnvidia-opencl.so.1 ]
  run ! grep 'is left out' "$work/runtime.log"
}

@test "after create: an engine that has the process's ID written" {
  occupy
  gpu_bundle 0
  run_with jit-cdi runc --pid-file "$work/pid"
  expect nvidia-smi 1
  left_out "$work/runtime.log" "$icd is left out: a directory has that name" \
    "$layers is left out: a component of the path is not a directory" \
    "/etc/ld.so.conf.d/00-graft.conf is left out: file write error: /etc/ld.so.conf.d/00-graft.conf: is a directory"
}

@test "cdi: a specification of nvidia-ctk's" {
  occupy
  mkdir "$work/cdi"
  on_host "$BATS_FILE_TMPDIR/programs/nvidia-ctk" cdi generate --nvidia-cdi-hook-path "$BATS_FILE_TMPDIR/programs/nvidia-cdi-hook" \
    --output "$work/cdi/nvidia.yaml"
  grep -q "containerPath: $icd" "$work/cdi/nvidia.yaml"
  gpu_bundle nvidia.com/gpu=0 "$(mount_filter '["rbind", "ro"]' /usr/share/nvidia)"
  run_with cdi runc
  expect nvidia-smi 1
  expect_libraries
  left_out "$work/runtime.log" "$icd is left out: a directory has that name" \
    "$layers is left out: a component of the path is not a directory" \
    "/usr/share/nvidia/nvoptix.bin is left out: cannot create a file there: read-only file system"
}

@test "legacy: the hook leaves out what nvidia-container-cli leaves out" {
  occupy
  gpu_bundle 0 "$(mount_filter '["rbind", "ro"]' /etc/vulkan/icd.d)"
  run_with legacy runc
  expect nvidia-smi 1
  left_out "$work/cli.log" "$icd is left out: path error: ROOT$icd: is a directory" \
    "$layers is left out: path error: ROOT$layers: not a directory" \
    "$vulkan is left out: file creation failed: ROOT$vulkan: read-only file system"
}
