# SPDX-License-Identifier: Apache-2.0
# nvidia-container-runtime in its usual mode, jit-cdi: containers of runc and crun get exactly the GPUs that their environment names, by an edited config.json, with
# one hook at most.

load lib.bash

setup_file() {
  start_host dgx-h100
  install_cli runtime/nvidia-container-runtime cdi_hook/nvidia-cdi-hook
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  printf '[nvidia-container-runtime]\nlog-level = "debug"\ndebug = "%s"\n' "$work/runtime.log" >"$config"
  make_root debian overlay
}
teardown() {
  local covered
  test_teardown
  for covered in /proc/driver/nvidia/params /dev/dri; do
    ! on_host awk -v at="$covered" '$5 == at { print $4 }' /proc/self/mountinfo | grep -qF "bats-run-${work##*/bats-run-}" || on_host umount "$covered"
  done
  on_host find /dev/char -type l -newer "$work/config.toml" -delete 2>/dev/null || true
}

# jit_bundle DEVICES [JQ-FILTER...]: a bundle that runs the probe and asks for devices. Its cgroup is no systemd's.
jit_bundle() {
  local devices=$1
  shift
  new_bundle
  edit_bundle --arg root "$root" --arg devices "$devices" --arg id "$container" "$(piped '
    .process.terminal = false | .process.args = ["/probe"] | del(.process.rlimits) | .root = {path: $root, readonly: false} |
    .linux.cgroupsPath = "/" + $id |
    (.process.capabilities[]) |= (. + ["CAP_MKNOD", "CAP_DAC_OVERRIDE"] | unique) |
    .process.env += ["NVIDIA_VISIBLE_DEVICES=" + $devices, "PROBE_MINORS=0 1 2"]' "$@")"
  cp "$bundle/config.json" "$work/config.json.before"
}

# create WORLD [OPTION...]: through the shim. What the container says comes into $work/out. Nothing else of ours stays open in it, or the test would wait for it.
create() {
  local world=$1
  shift
  mkdir -p "$work/runc"
  "$world" "${old_kernel[@]}" "$runtime" "$@" --root "$work/runc" create --bundle "$bundle" "${late_pid[@]}" "$container" \
    </dev/null >"$work/out" 2>&1 3>&- 4>&-
}

# jit WORLD RUNTIME [OPTION...]: creates the container through the shim, starts it, and reads what the probe says.
jit() {
  local world=$1 low_level=$2
  shift 2
  [ "$world" != v1 ] || world=on_host
  sed -i '/^runtimes/d' "$config"
  printf 'runtimes = ["%s"]\n' "$low_level" >>"$config"
  create "$world" "$@" || die "$(cat "$work/out" "$work/runtime.log")" || return
  "$world" "$low_level" "$@" --root "$work/runc" start "$container" >>"$work/out" 2>&1
  stops "$world" "$low_level" "$@" --root "$work/runc"
  "$world" "$low_level" "$@" --root "$work/runc" delete --force "$container"
  output=$(cat "$work/out")
  read_answers
}

# fails_to_create TEXT: no container, the old config.json, an untouched root, and a log line with this.
fails_to_create() {
  at=/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/root$root
  find "$at" -xdev -newer "$work/config.json.before" ! -type d >"$work/before"
  rm -f "$work/log.json"
  ! create on_host --log "$work/log.json" --log-format json || die "a container was created" || return
  cmp "$bundle/config.json" "$work/config.json.before"
  jq --slurp --raw-output 'map(select(.level == "error")) | last | .msg' "$work/log.json" >"$work/error"
  grep -qF -- "$1" "$work/error" || die "$(cat "$work/error")" || return
  [ "$(wc -l <"$work/error")" = 1 ]
  find "$at" -xdev -newer "$work/config.json.before" ! -type d | diff "$work/before" -
}

# The plan that is left to the hook, as "kind target" lines. Fails when there is more than one hook.
hook_plan() {
  [ "$(jq '.hooks.createContainer // [] | length' "$bundle/config.json")" -le 1 ]
  [ "$(jq -c '.hooks.createContainer[]?.env' "$bundle/config.json")" = '["NVIDIA_CTK_DEBUG=false"]' ] ||
    [ "$(jq '.hooks.createContainer // [] | length' "$bundle/config.json")" = 0 ]
  jq -r '.hooks.createContainer[]?.args | select(.[1] == "apply") | .[3] | fromjson | .edits[] | .kind + " " + (.target // "")' "$bundle/config.json"
}

expect_two_gpus() {
  expect open-nvidia0 "No such device or address"
  expect open-nvidia1 "No such device or address"
  expect open-nvidiactl "No such device or address"
  expect made-nvidia2 "${1:-Operation not permitted}"
  expect ls-nvidia "nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia0 nvidia1 nvidiactl"
  expect nvidia-smi 2
  expect nvidia-smi-first "GPU 0: NVIDIA H100 80GB HBM3"
  expect_libraries
}

# ---- the classic ----

# bats test_tags=old-kernel
@test "runc, cgroup v1: GPUs 0 and 1 of 8, and nothing on the host changes" {
  jit_bundle 0,1
  host_state >"$work/before"
  jit v1 runc
  expect_two_gpus
  host_state | diff "$work/before" -
}

# bats test_tags=old-kernel,late-mounts
@test "runc, cgroup v2: GPUs 0 and 1 of 8, and nothing on the host changes" {
  jit_bundle 0,1
  host_state >"$work/before"
  jit v2 runc
  expect_two_gpus
  host_state | diff "$work/before" -
}

# bats test_tags=old-kernel
@test "crun: GPUs 0 and 1 of 8" {
  type crun >/dev/null || skip "this machine has no crun"
  jit_bundle 0,1
  jit v2_raising crun
  expect_two_gpus
  jit_bundle 0,1
  jit v1_alone crun
  expect_two_gpus
  jit_bundle 0,1
  jit v2 crun --cgroup-manager=disabled
  expect_two_gpus "No such device or address" # no cgroup, no rules
}

@test "GPUs by UUID, the same one twice, by PCI address, all of them" {
  local uuid pci
  uuid=$(on_host nvidia-smi -L | sed -n 's/^GPU 3:.*UUID: \(.*\))/\1/p')
  jit_bundle "$uuid,3,runtime.nvidia.com/gpu=3"
  jit v2 runc
  expect nvidia-smi 1
  expect ls-nvidia "nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia3 nvidiactl"
  [ "$(jq '[.linux.resources.devices[] | select(.major == 195 and .minor == 3)] | length' "$bundle/config.json")" = 1 ]
  pci=$(on_host nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader | sed -n 3p)
  [ -n "$pci" ]
  jit_bundle "$pci"
  jit v2 runc
  expect nvidia-smi 1
  expect ls-nvidia "nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia2 nvidiactl"
  jit_bundle all
  jit v2 runc
  expect nvidia-smi 8
}

@test "at level info the log has a line for a container with GPUs and one for each GPU, and none for another" {
  sed -i 's/^log-level = .*/log-level = "info"/' "$config"
  rm -f "$work/runtime.log"
  jit_bundle void
  jit v1 runc
  [ ! -s "$work/runtime.log" ] || die "$(cat "$work/runtime.log")"
  jit_bundle 0,1
  jit v1 runc
  # The simulated driver is a warning.
  [ "$(grep -o 'level=info msg="[A-Za-z]*' "$work/runtime.log")" = $'level=info msg="Auto\nlevel=info msg="granting\nlevel=info msg="granting' ] || die "$(cat "$work/runtime.log")"
  [ "$(grep -vc 'level=info' "$work/runtime.log")" -eq 1 ] || die "$(cat "$work/runtime.log")"
}

@test "none is the driver without a GPU; void, empty and unset are nothing" {
  jit_bundle none
  jit v2 runc
  expect ls-nvidia "nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidiactl"
  expect made-nvidia0 "Operation not permitted"
  expect_libraries
  on_host umount "$root"
  make_root debian overlay
  for devices in void ""; do
    jit_bundle "$devices"
    jit v2 runc
    expect ls-nvidia ""
    expect ldconfig ""
    cmp "$bundle/config.json" "$work/config.json.before"
  done
}

@test "what a later runtime or hook sees says that the work is done" {
  jit_bundle 0 '.hooks = {prestart: [{path: "/usr/bin/nvidia-container-runtime-hook", args: ["x", "prestart"]}, {path: "/bin/true"}]}'
  jit v2 runc
  expect nvidia-smi 1
  [ "$(jq -c '[.hooks.prestart[].path]' "$bundle/config.json")" = '["/bin/true"]' ]
  [ "$(jq -c '[.process.env[] | select(startswith("NVIDIA_VISIBLE_DEVICES"))]' "$bundle/config.json")" = '["NVIDIA_VISIBLE_DEVICES=void"]' ]
}

# ---- who does what ----

# A host whose driver says already that libraries make no nodes, and whose GPUs drive no displays.
quiet_host() {
  on_host sed 's/ModifyDeviceFiles: 1/ModifyDeviceFiles: 0/' /proc/driver/nvidia/params >"$work/params"
  printf 'ModifyDeviceFiles: 0\n' >>"$work/params"
  on_host mount --bind "$work/params" /proc/driver/nvidia/params
  mkdir -p "$work/dri"
  on_host mount --bind "$work/dri" /dev/dri
}

# bats test_tags=old-kernel
@test "no hook where the root can take everything" {
  quiet_host
  jit_bundle 0,1
  jit v2 runc
  expect_two_gpus
  [ -z "$(hook_plan)" ]
  [ "$(jq .hooks "$bundle/config.json")" = null ]
}

@test "a startContainer hook of an engine's is the image's, and stays as it is written" {
  local hook='{path: "opt/bin/nvidia-ctk", args: ["nvidia-ctk", "hook", "chmod"], timeout: 5}'
  jit_bundle 0,1
  edit_bundle ".hooks = {startContainer: [$hook]}"
  create on_host
  jq -e ".hooks.startContainer == [$hook]" "$bundle/config.json"
}

# bats test_tags=old-kernel
@test "one hook for what lies on a mount of its own, and nothing else in it" {
  late_pid=()
  jit_bundle 0,1
  jit v2 runc
  expect_two_gpus
  hook_plan >"$work/plan"
  grep -qx 'cover /proc/driver/nvidia/params' "$work/plan"
  grep -q '^symlink /dev/dri/by-path/pci-' "$work/plan"
  run ! grep -v -e ' /dev/dri/by-path/' -e ' /proc/driver/nvidia/params$' "$work/plan"
}

# The root that the hook gets, without the numbers of what was there; nothing when it reads the state.
told_root() { jq -r '.hooks.createContainer[].args | if .[-2] == "--rootfs" then .[-1] | sub("^[0-9]+:[0-9]+:"; "") else empty end' "$bundle/config.json"; }

# shellcheck disable=SC2016
at_work() { v2 sh -c 'cd "$0" && exec "$@"' "$work" "$@"; }

# bats test_tags=old-kernel
@test "runc's hook is told the root, by an absolute path of it" {
  late_pid=()
  jit_bundle 0,1
  jit v2 runc
  expect_two_gpus
  [ "$(told_root)" = "$root" ]
  jit_bundle 0,1 '.root.path = "../root"'
  jit v2 runc
  expect_two_gpus
  [ "$(told_root)" = "$bundle/../root" ]
  # By a bundle that is named from the working directory nobody in a container finds a root.
  jit_bundle 0,1 '.root.path = "../root"'
  bundle=bundle jit at_work runc
  expect_two_gpus
  [ -z "$(told_root)" ]
}

@test "a script that is called runc: its hook reads the state" {
  mkdir "$work/script"
  printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v runc)" >"$work/script/runc"
  chmod 0755 "$work/script/runc"
  jit_bundle 0,1
  jit v2 "$work/script/runc"
  expect_two_gpus
  [ -n "$(hook_plan)" ]
  [ -z "$(told_root)" ]
}

@test "crun, by its name and called runc: its hook reads the state" {
  late_pid=()
  type crun >/dev/null || skip "this machine has no crun"
  local name
  mkdir "$work/other"
  ln -s "$(command -v crun)" "$work/other/runc"
  for name in crun "$work/other/runc"; do
    jit_bundle 0,1
    jit v2 "$name" --cgroup-manager=disabled
    expect_two_gpus "No such device or address" # no cgroup, no rules
    [ -n "$(hook_plan)" ]
    [ -z "$(told_root)" ]
  done
}

# bats test_tags=old-kernel,late-mounts
@test "a volume over the loader's directory: the hook does the cache, and makes no link in the volume" {
  quiet_host
  local libs=/usr/lib/x86_64-linux-gnu
  cp -a "/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/root$root$libs" "$work/volume"
  jit_bundle 0,1 '.mounts += [{destination: "'"$libs"'", source: "'"$work/volume"'", options: ["rbind", "rw"]}]'
  find "$work/volume" -type l -printf '%f %l\n' | sort >"$work/links"
  jit v2 runc
  expect nvidia-smi 2
  expect ldconfig "$libs/libcuda.so.550.54.14"
  expect loader "$libs/libcuda.so.550.54.14"
  hook_plan >"$work/plan"
  grep -q "^symlink $libs/libcuda.so.1$" "$work/plan"
  grep -q '^ldcache' "$work/plan"
  find "$work/volume" -type l -printf '%f %l\n' | sort | diff "$work/links" -
}

@test "a volume elsewhere needs no hook; one with a library for the loader does" {
  quiet_host
  mkdir -p "$work/volume"
  jit_bundle 0,1 '.mounts += [{destination: "/data", source: "'"$work/volume"'", options: ["rbind"]}]'
  jit v2 runc
  expect_two_gpus
  [ -z "$(hook_plan)" ]
  cp "/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/root$root/lib/x86_64-linux-gnu/libz.so.1" "$work/libextra.so.1"
  jit_bundle 0,1 '.mounts += [{destination: "/usr/local/lib/libextra.so.1", source: "'"$work/libextra.so.1"'", options: ["rbind"]}]'
  jit v2 runc
  expect_two_gpus
  [ "$(hook_plan)" = "ldcache " ]
}

# bats test_tags=old-kernel
@test "a read-only root" {
  quiet_host
  jit_bundle 0,1 '.root.readonly = true'
  jit v2 runc
  expect nvidia-smi 2
  expect_libraries
  [ -z "$(hook_plan)" ]
}

# bats test_tags=old-kernel
@test "a root that is not mounted yet is left to the hook" {
  quiet_host
  local image
  image=$(image debian)
  on_host umount "$root"
  # As an engine may: by a hook of its own, after the shim was there.
  cat >"$work/mount-root" <<HOOK
#!/bin/sh
mount -t overlay -o lowerdir=$image,upperdir=$work/layers-late/upper,workdir=$work/layers-late/scratch overlay $root
HOOK
  chmod +x "$work/mount-root"
  mkdir -p "$work/layers-late/upper" "$work/layers-late/scratch"
  rm -rf "${root:?}"
  mkdir "$root"
  jit_bundle 0
  sed -i '/^runtimes/d' "$config"
  printf 'runtimes = ["/bin/true"]\n' >>"$config"
  on_host "$runtime" create --bundle "$bundle" "$container"
  hook_plan >"$work/plan"
  grep -q '^ldcache' "$work/plan"
  grep -q '^symlink /usr/lib/x86_64-linux-gnu/libcuda.so.1$' "$work/plan"
  # The rest of the engine's work, and the low-level runtime's.
  on_host "$work/mount-root"
  on_host install -m 0755 "$top/test/integration/probe" "$root/probe"
  run v2 runc --root "$work/runc" run --bundle "$bundle" "$container"
  read_answers
  expect nvidia-smi 1
  expect_libraries
}

# bats test_tags=old-kernel
@test "an image whose loader cache is older than its libraries, or not there: the driver's links stay" {
  quiet_host
  local lib=$root/usr/lib/x86_64-linux-gnu
  # An old driver of the image's own, and something new that its cache does not know.
  on_host cp "$root/lib/x86_64-linux-gnu/libz.so.1" "$lib/libbeside.so.1"
  on_host ln -s libcuda.so.470.1 "$lib/libcuda.so.1"
  jit_bundle 0,1
  jit v2 runc
  expect_two_gpus
  [ -z "$(hook_plan)" ]
  grep -q 'rebuilt /etc/ld.so.cache' "$work/runtime.log"
  on_host umount "$root"
  make_root debian overlay
  on_host rm "$root/etc/ld.so.cache"
  jit_bundle 0,1
  jit v2 runc
  expect_two_gpus
}

# bats test_tags=old-kernel
@test "an image's newer CUDA library is found first, by its link for development as by its soname" {
  quiet_host
  local libs=/usr/lib/x86_64-linux-gnu compat=/usr/local/cuda-12.6/compat
  local found=$compat/libcuda.so.560.35.05
  on_host mkdir -p "$root$compat"
  on_host ln -s cuda-12.6 "$root/usr/local/cuda"
  on_host cp "$libs/libcuda.so.550.54.14" "$root$found"
  on_host ln -s "${found##*/}" "$root$compat/libcuda.so.1"
  on_host ln -s libcuda.so.1 "$root$compat/libcuda.so"
  jit_bundle 0,1
  jit v2 runc
  expect nvidia-smi 2
  expect loader "$found"
  on_host /sbin/ldconfig -p -C "$root/etc/ld.so.cache" >"$work/cache"
  [ "$(sed -n 's/^\tlibcuda\.so\.1 .* => //p' "$work/cache" | head -n 1)" = "$found" ]
  [ "$(sed -n 's/^\tlibcuda\.so .* => //p' "$work/cache" | head -n 1)" = "$found" ]
}

# bats test_tags=old-kernel,late-mounts
@test "the second container of a root is like the first, and a changed choice leaves nothing of the old" {
  jit_bundle 0,1
  jit v2 runc
  expect_two_gpus
  jit_bundle 0,1
  jit v2 runc
  expect_two_gpus
  jit_bundle 4
  jit v2 runc
  expect nvidia-smi 1
  expect ls-nvidia "nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia4 nvidiactl"
  expect made-nvidia0 "Operation not permitted"
  expect_libraries
}

# first_of SONAME: what the cache of the root has for it.
first_of() { on_host /sbin/ldconfig -p -C "$root/etc/ld.so.cache" | sed -n "s/^\t${1//./\\.} .* => //p" | head -n 1; }

# bats test_tags=old-kernel
@test "a folder of the image that only an earlier start wanted is not searched any more, by a later ldconfig neither" {
  quiet_host
  local libs=/usr/lib/x86_64-linux-gnu compat=/usr/local/cuda/compat ours=$root/etc/ld.so.conf.d/00-graft.conf
  on_host mkdir -p "$root$compat"
  on_host cp "$libs/libcuda.so.550.54.14" "$root$compat/libcuda.so.560.35.05"
  on_host ln -s libcuda.so.560.35.05 "$root$compat/libcuda.so.1"
  on_host ln -s libcuda.so.1 "$root$compat/libcuda.so"
  jit_bundle 0,1
  jit v2 runc
  expect loader "$compat/libcuda.so.560.35.05"
  on_host grep -qx "$compat" "$ours"
  # Wanted again, it stays, and the file is not written.
  on_host stat -c '%i %z' "$ours" >"$work/first"
  jit_bundle 0,1
  jit v2 runc
  expect loader "$compat/libcuda.so.560.35.05"
  on_host stat -c '%i %z' "$ours" | diff "$work/first" -
  [ -z "$(hook_plan)" ]
  # A volume there is a volume over a directory of the loader.
  mkdir -p "$work/volume"
  jit_bundle 0,1 ".mounts += [{destination: \"$libs/vdpau\", source: \"$work/volume\", type: \"bind\", options: [\"rbind\"]}]"
  jit v2 runc
  hook_plan | grep -q '^ldcache '
  printf '[nvidia-container-runtime.modes.jit-cdi]\nnvcdi-disable-hooks = ["enable-cuda-compat"]\n' >>"$config"
  jit_bundle 0,1
  jit v2 runc
  expect_two_gpus
  expect loader "$libs/libcuda.so.550.54.14"
  [ "$(first_of libcuda.so.1)" = "$libs/libcuda.so.1" ]
  [ -z "$(first_of libcuda.so)" ]
  on_host grep -qx "$libs/vdpau" "$ours"
  [ "$(on_host grep -c "$compat" "$ours")" = 0 ]
  # A cache made anew, with the driver's library there as in a container.
  on_host mount --bind "$libs/libcuda.so.550.54.14" "$root$libs/libcuda.so.550.54.14"
  on_host rm "$root/etc/ld.so.cache"
  on_host chroot "$root" /sbin/ldconfig 2>/dev/null
  on_host umount "$root$libs/libcuda.so.550.54.14"
  # By the name that the release's ldconfig has for the directory.
  [ "$(first_of libcuda.so.1)" = "$(dirname "$(first_of libc.so.6)")/libcuda.so.1" ]
}

@test "hooks that are switched off leave their part out" {
  printf '[nvidia-container-runtime.modes.jit-cdi]\nnvcdi-disable-hooks = ["all", "hook-of-the-future"]\n' >>"$config"
  sed -i 's/^\[nvidia-container-runtime\]$/&\nruntimes = ["runc"]/' "$config"
  jit_bundle 0
  create on_host
  [ "$(jq .hooks "$bundle/config.json")" = null ]
  on_host runc --root "$work/runc" delete --force "$container"
  on_host test ! -e "$root/usr/lib/x86_64-linux-gnu/libcuda.so.1"
  grep -q "unknown hook 'hook-of-the-future'" "$work/runtime.log"
}

@test "disable-ipc-discoverer leaves out the sockets of daemons, and MPS's programs stay" {
  late_pid=()
  local flags='' programs='/usr/bin/nvidia-cuda-mps-control /usr/bin/nvidia-cuda-mps-server '
  for flags in '' '\n[nvidia-container-runtime.modes.jit-cdi]\nnvcdi-feature-flags = ["disable-ipc-discoverer"]\n'; do
    # shellcheck disable=SC2059
    printf "[nvidia-container-runtime]\nruntimes = [\"runc\"]\n$flags" >"$config"
    jit_bundle 0
    create on_host
    on_host runc --root "$work/runc" delete --force "$container"
    [ "$(jq -r '.mounts[].destination' "$bundle/config.json" | grep mps | sort | tr '\n' ' ')" = "$programs" ]
    [ "$(jq -r '.mounts[].destination' "$bundle/config.json" | grep -c '/socket$')" = "$([ -n "$flags" ] && echo 0 || echo 2)" ]
  done
}

# ---- whose ----

# bats test_tags=old-kernel
@test "a user namespace, cgroup v1 and v2: what is made belongs to the container" {
  for world in v1 v2; do
    ! on_host mountpoint -q "$root" || on_host umount "$root"
    rm -rf "${root:?}"
    make_root debian copy
    chown -R --no-dereference 100000:100000 "$root"
    show_whole_proc
    jit_bundle 0,1 '.linux.namespaces += [{type: "user"}] |
      .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
    chmod a+rx "$bundle"
    jit "$world" runc
    expect uid 0
    expect_two_gpus "mknod refused"
    [ "$(stat -c %u:%g "$root/etc/ld.so.cache" "$root/usr/lib/x86_64-linux-gnu/libcuda.so.1" | sort -u)" = 100000:100000 ]
    # No group of the host's has a number there.
    [ "$(jq .process.user.additionalGids "$bundle/config.json")" = null ]
    on_host umount "$work/proc" "$work/sys"
  done
}

user=65534
# as_user COMMAND...
as_user() { on_host setpriv --reuid "$user" --regid "$user" --clear-groups env XDG_RUNTIME_DIR="$work/runc" "$@"; }
rootless_bundle() {
  on_host umount "$root"
  make_root debian copy
  chown -R --no-dereference "$user:$user" "$root"
  show_whole_proc
  jit_bundle 0,1
  on_host runc spec --rootless --bundle "$work"
  edit_bundle --slurpfile rootless "$work/config.json" '.linux = $rootless[0].linux | .mounts = $rootless[0].mounts |
    .linux.uidMappings[0].hostID = '"$user"' | .linux.gidMappings[0].hostID = '"$user"
  mkdir -p "$work/runc"
  touch "$work/runtime.log"
  chown -R "$user:$user" "$work/runc" "$bundle" "$work/runtime.log"
}

# bats test_tags=old-kernel
@test "rootless: an ordinary user" {
  late_pid=()
  rootless_bundle
  jit as_user runc
  expect uid 0
  expect_two_gpus "mknod refused"
}

# bats test_tags=old-kernel
@test "rootless: root of an engine's user namespace" {
  rootless_bundle
  edit_bundle 'del(.linux.uidMappings, .linux.gidMappings) | .linux.namespaces |= map(select(.type != "user"))'
  chown "$user:$user" "$bundle/config.json"
  # One namespace for all calls, as an engine has it.
  printf 'runtimes = ["runc"]\n' >>"$config"
  # shellcheck disable=SC2016
  run as_user unshare --user --map-root-user --mount sh -c '
    "$1" --root "$2" create --bundle "$3" "$4" </dev/null >"$2/out" 2>&1 3>&- 4>&- || { cat "$2/out"; exit 1; }
    runc --root "$2" start "$4"
    for i in $(seq 400); do runc --root "$2" state "$4" | grep -q stopped && break; sleep 0.02; done
    runc --root "$2" delete --force "$4"
    cat "$2/out"' - "$runtime" "$work/runc" "$bundle" "$container"
  [ "$status" -eq 0 ] || die "$output $(cat "$work/runtime.log")"
  read_answers
  expect_two_gpus "mknod refused"
  [ "$(jq .process.user.additionalGids "$bundle/config.json")" = null ]
}

# ---- requests that cannot be met ----

@test "what is not there is one line that names it" {
  jit_bundle 8
  fails_to_create '8: unknown device'
  jit_bundle GPU-00000000-0000-0000-0000-000000000000
  fails_to_create 'GPU-00000000-0000-0000-0000-000000000000: unknown device'
  jit_bundle 0,bogus
  fails_to_create 'bogus: unknown device'
  jit_bundle 0,nvidia.com/gpu=1
  sed -i 's/^log-level/mode = "jit-cdi"\n&/' "$config"
  fails_to_create 'is not supported when requesting other CDI devices'
  jit_bundle 0,runtime.nvidia.com/gpu=1
  jit v2 runc
  expect_two_gpus
}

# bats test_tags=old-kernel
@test "IMEX channels: those that are there, within the range" {
  for channel in 5 1048576 bogus; do
    jit_bundle 0 '.process.env += ["NVIDIA_IMEX_CHANNELS='"$channel"'"]'
    fails_to_create "$channel"
  done
  jit_bundle 0 '.process.env += ["NVIDIA_IMEX_CHANNELS=none"]'
  jit v2 runc
  expect nvidia-smi 1
}

@test "requirements and capabilities count where the configuration says so" {
  late_pid=()
  jit_bundle 0 '.process.env += ["NVIDIA_REQUIRE_CUDA=cuda>=99.0", "NVIDIA_DRIVER_CAPABILITIES=utility"]'
  jit v2 runc
  expect_libraries
  on_host umount "$root"
  make_root debian overlay
  printf '[features]\nhonor-driver-capabilities = true\n' >"$config.features"
  cat "$config.features" >>"$config"
  sed -i '/^runtimes/d; s/^\[nvidia-container-runtime\]$/&\nruntimes = ["runc"]/' "$config"
  jit_bundle 0 '.process.env += ["NVIDIA_DRIVER_CAPABILITIES=utility"]'
  create on_host
  on_host runc --root "$work/runc" delete --force "$container"
  jq -r '.mounts[].destination' "$bundle/config.json" >"$work/mounts"
  grep -q /libnvidia-ml.so "$work/mounts"
  run ! grep -q /libcuda.so "$work/mounts"
  printf 'honor-requirements = true\n' >>"$config"
  jit_bundle 0 '.process.env += ["NVIDIA_REQUIRE_CUDA=cuda>=99.0"]'
  fails_to_create 'requirement error'
  jit_bundle 0 '.process.env += ["NVIDIA_REQUIRE_CUDA=cuda>=99.0", "NVIDIA_DISABLE_REQUIRE=true"]'
  create on_host
  on_host runc --root "$work/runc" delete --force "$container"
}

# A static program cannot load NVML; the one of a build with sanitizers is dynamic, and asks by itself.
@test "what only NVML knows is asked by a program of its own, and its lack is told" {
  local static=1
  readelf -lW "$runtime" | grep -q INTERP && static=0
  printf '[features]\nhonor-requirements = true\n' >>"$config"
  sed -i 's/^\[nvidia-container-runtime\]$/&\nruntimes = ["runc"]/' "$config"
  jit_bundle 0 '.process.env += ["NVIDIA_REQUIRE_ARCH=arch>=9.0"]'
  create on_host
  on_host runc --root "$work/runc" delete --force "$container"
  jit_bundle 0 '.process.env += ["NVIDIA_REQUIRE_ARCH=arch>=10.0"]'
  fails_to_create 'unsatisfied condition: arch>=10.0'
  # Nothing of it was needed for a container that asks for a GPU alone.
  mkdir "$work/alone"
  cp "$runtime" "${runtime%/*}/nvidia-cdi-hook" "$work/alone"
  runtime=$work/alone/nvidia-container-runtime
  jit_bundle 0
  create on_host
  on_host runc --root "$work/runc" delete --force "$container"
  [ $static = 0 ] && return
  jit_bundle 0 '.process.env += ["NVIDIA_REQUIRE_ARCH=arch>=9.0"]'
  fails_to_create 'cannot start the program that asks NVML: '
}

# bats test_tags=old-kernel
@test "MIG: configuration and monitoring nodes for privileged containers only" {
  # A host of its own, with a low-level runtime that does nothing.
  printf 'runtimes = ["/bin/true"]\n' >>"$config"
  jit_bundle all '.process.env += ["NVIDIA_MIG_CONFIG_DEVICES=all", "NVIDIA_MIG_MONITOR_DEVICES=all"]'
  "$sim" run --topology a100-mig -- env NVIDIA_CTK_CONFIG_FILE_PATH="$config" "$runtime" create --bundle "$bundle" x 3>&- 2>"$work/log"
  run ! grep -q nvidia-cap1\" <(jq -c '.linux.devices[].path' "$bundle/config.json")
  grep -q 'ignoring NVIDIA_MIG_CONFIG_DEVICES: the container is not privileged' "$work/runtime.log"
  jit_bundle all '.process.env += ["NVIDIA_MIG_CONFIG_DEVICES=all"] | .process.capabilities.bounding += ["CAP_SYS_ADMIN"]'
  "$sim" run --topology a100-mig -- env NVIDIA_CTK_CONFIG_FILE_PATH="$config" "$runtime" create --bundle "$bundle" x 3>&- 2>"$work/log"
  grep -q 'nvidia-caps/nvidia-cap1"' <(jq -c '.linux.devices[].path' "$bundle/config.json")
}

# ---- hostile images ----

# What an attacker would like to reach: next to the root, so that "../outside" leads there.
outside() {
  mkdir -p "$work/outside/lib" "$work/outside/etc"
  printf 'secret of the host\n' >"$work/outside/secret"
  chmod 0600 "$work/outside/secret"
  outside_state >"$work/outside.before"
}
outside_state() {
  find "$work/outside" -printf '%P %y %#m %U:%G %s %T@ %i %l\n'
  cat "$work/outside/secret"
}

# bats test_tags=old-kernel,late-mounts
@test "hostile images: whatever leads out leads nowhere" {
  local trap libs=usr/lib/x86_64-linux-gnu
  outside
  host_state >"$work/host.before"
  for trap in "ln -s $work/outside/secret etc/ld.so.cache" "ln -s ../../../../../../../../../..$work/outside/secret etc/ld.so.cache" \
    "ln -s $work/outside etc/ld.so.conf.d" "ln -s $work/outside etc/nvidia" "ln -s /proc/self/root$work/outside etc/nvidia" \
    "ln -s $work/outside $libs/gbm" "ln -s ../../../../outside $libs/gbm" "mkfifo etc/ld.so.cache" "mknod etc/ld.so.cache c 1 5" \
    "mkdir etc/ld.so.cache" "ln -s loop etc/loop" "ln $work/hard etc/ld.so.cache" "ln $work/hard $libs/libcuda.so.1" "truncate -s 1T etc/ld.so.cache" \
    "ln -s $work/outside $libs/libcuda.so.550.54.14" "ln -s / $libs/libcuda.so.1" "mkdir $libs/libcuda.so.1"; do
    ! on_host mountpoint -q "$root" || on_host umount "$root"
    rm -rf "${root:?}"
    # On the file system of what must not be reached, so that hard links can be made.
    cp -a --reflink=auto "$(image small)" "$root"
    mkdir -p "$root/$libs"
    install -m 0755 "$top/test/integration/probe" "$root/probe"
    printf 'hard\n' >"$work/hard"
    # shellcheck disable=SC2086
    (cd "$root" && rm -rf etc/ld.so.cache etc/ld.so.conf.d etc/nvidia && $trap)
    jit_bundle 0
    (jit v2 runc) >"$work/said" 2>&1 || true
    outside_state | diff "$work/outside.before" - || die "$trap: something outside of the root changed" || return
    [ "$(cat "$work/hard")" = hard ] || die "$trap: a file was written through a hard link" || return
    host_state | diff "$work/host.before" - || die "$trap: the host changed" || return
    on_host runc --root "$work/runc" delete --force "$container" 2>/dev/null || true
  done
}

# bats test_tags=old-kernel
@test "a root that is the host's own is refused before anything is done" {
  jit_bundle 0 '.root.path = "/"'
  fails_to_create 'leads to /'
  jit_bundle 0 '.root.path = "../../../../../../../../../.."'
  fails_to_create 'leads to /'
}

# bats test_tags=old-kernel
@test "a musl image gets a search path" {
  on_host umount "$root"
  make_root small copy
  mkdir -p "$root/lib"
  rm -f "$root"/lib64/ld-linux-x86-64.so.2 "$root/etc/ld.so.cache"
  printf 'loader\n' >"$root/lib/ld-musl-x86_64.so.1"
  printf 'runtimes = ["/bin/true"]\n' >>"$config"
  jit_bundle 0
  on_host "$runtime" create --bundle "$bundle" "$container"
  grep -qx /usr/lib/x86_64-linux-gnu "$root/etc/ld-musl-x86_64.path"
  [ ! -e "$root/etc/ld.so.cache" ]
}

# ---- systemd ----

# bats test_tags=old-kernel
@test "the links by which systemd knows the devices: made where it may manage the container" {
  printf 'runtimes = ["/bin/true"]\n' >>"$config"
  jit_bundle 0,1 '.linux.cgroupsPath = "/no-systemd"'
  on_host "$runtime" create --bundle "$bundle" "$container"
  on_host test ! -e /dev/char/195:0
  jit_bundle 0,1 '.linux.cgroupsPath = "system.slice:runc:x"'
  on_host "$runtime" create --bundle "$bundle" "$container"
  [ "$(on_host readlink /dev/char/195:0 /dev/char/195:1 /dev/char/195:255 | tr '\n' ' ')" = "../nvidia0 ../nvidia1 ../nvidiactl " ]
  on_host test ! -e /dev/char/195:2
  # A link of a driver that was loaded before is corrected.
  on_host ln -sfn ../nvidia7 /dev/char/195:0
  jit_bundle 0,1 '.linux.cgroupsPath = "system.slice:runc:x"'
  on_host "$runtime" create --bundle "$bundle" "$container"
  [ "$(on_host readlink /dev/char/195:0)" = ../nvidia0 ]
}

# ---- interruptions ----

@test "kill -9 at random moments: config.json is the old or the new one, and the next create works" {
  printf 'runtimes = ["/bin/true"]\n' >>"$config"
  jit_bundle 0,1
  on_host "$runtime" create --bundle "$bundle" "$container"
  cp "$bundle/config.json" "$work/new"
  for n in $(seq "${GRAFT_KILLS:-40}"); do
    # Its reader has the root open until the kernel has ended it, too.
    # shellcheck disable=SC2016
    on_host timeout 10 sh -c 'until umount "$1" 2>/dev/null; do sleep 0.01; done' - "$root"
    make_root debian overlay
    cp "$work/config.json.before" "$bundle/config.json"
    # shellcheck disable=SC2016
    on_host sh -c '"$1" create --bundle "$2" x & pid=$!; sleep "$3"; kill -9 $pid; wait $pid' - "$runtime" "$bundle" "0.00$((n % 10))$((RANDOM % 10))" \
      >/dev/null 2>&1 || true
    cmp -s "$bundle/config.json" "$work/config.json.before" || cmp "$bundle/config.json" "$work/new"
  done
  # In the very root of the last one.
  cp "$work/config.json.before" "$bundle/config.json"
  jit v2 runc
  expect_two_gpus
}

# Names, types and links of what an overlay's upper layer holds; not what a killed process leaves beside its place.
made() { on_host find "$work/layers-root/upper" -mindepth 1 ! -name '.graft-*' -printf '%P %y %l\n' | sort; }

# bats test_tags=old-kernel
@test "killed at each change of the root: the next create makes what a first one does" {
  quiet_host
  printf 'runtimes = ["/bin/true"]\n' >>"$config"
  jit_bundle 0,1
  on_host "$runtime" create --bundle "$bundle" "$container"
  made >"$work/clean"
  local call n total=0
  for call in symlinkat renameat mkdirat write linkat fchmod; do
    for n in 1 2 3 4 7 15 30; do
      on_host umount "$root"
      make_root debian overlay
      cp "$work/config.json.before" "$bundle/config.json"
      on_host strace -o "$work/trace" -e "inject=$call:signal=KILL:when=$n" "$runtime" create --bundle "$bundle" "$container" >/dev/null 2>&1 || true
      grep -q 'killed by SIGKILL' "$work/trace" || break
      total=$((total + 1))
      cp "$work/config.json.before" "$bundle/config.json"
      on_host "$runtime" create --bundle "$bundle" "$container"
      made | diff "$work/clean" - || die "$call $n" || return
      on_host grep -q /usr/lib/x86_64-linux-gnu/libcuda.so.1 "$root/etc/ld.so.cache"
    done
  done
  [ "$total" -ge 15 ]
}
