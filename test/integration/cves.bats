# SPDX-License-Identifier: Apache-2.0
# One test for each published vulnerability of the existing stack (and for what its fix left open),
# in each way in which an engine's container gets GPUs: the prestart hook, the runtime's default
# mode, and a CDI specification with its hooks.
#
# Each image tries what the vulnerability did. What must hold: nothing of the host outside of the driver is read, written, made, mounted or run.

# bats file_tags=old-kernel
load lib.bash

setup_file() {
  start_host dgx-h100
  install_cli runtime/nvidia-container-runtime cdi_hook/nvidia-cdi-hook
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  libraries=/usr/lib/x86_64-linux-gnu
  # What belongs to the host, and what an image would like to have.
  victim=$work/victim
  mkdir -p "$victim/lib" "$victim/etc"
  echo 'the host keeps this to itself' >"$victim/secret-of-the-host"
  cp "$victim/secret-of-the-host" "$victim/lib/libcuda.so.999.1"
  cp "$victim/secret-of-the-host" "$victim/etc/ld.so.cache"
  out=../../../../../../../../../../../../../../../..$victim
  racer=
}
teardown() {
  [ -z "$racer" ] || kill "$racer" 2>/dev/null || true
  test_teardown
}

config_toml() {
  cat >"$work/config.toml" <<TOML
[nvidia-ctk]
path = "$programs/nvidia-cdi-hook"
[nvidia-container-runtime]
mode = "$1"
runtimes = ["/usr/sbin/runc"]
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$work/cdi"]
TOML
  cat >>"$work/config.toml"
}

# A specification as generators write it: libraries as mounts, everything else by hooks.
specification() {
  mkdir -p "$work/cdi"
  jq -n --arg lib "$libraries" --arg v 550.54.14 --arg hook "$programs/nvidia-cdi-hook" '
    def bind: {hostPath: ., containerPath: ., options: ["ro", "nosuid", "nodev", "rbind", "rprivate"]};
    def hook(words): {hookName: "createContainer", path: $hook, args: (["nvidia-cdi-hook"] + words), env: ["NVIDIA_CTK_DEBUG=false"]};
    {cdiVersion: "0.5.0", kind: "nvidia.com/gpu",
     devices: [{name: "0", containerEdits: {deviceNodes: [{path: "/dev/nvidia0"}]}}],
     containerEdits: {
       env: ["NVIDIA_VISIBLE_DEVICES=void"],
       deviceNodes: [{path: "/dev/nvidiactl"}, {path: "/dev/nvidia-uvm"}, {path: "/dev/nvidia-uvm-tools"}],
       mounts: (["/usr/bin/nvidia-smi" | bind] + [("libcuda", "libnvidia-ml") | "/opt/driver/\(.).so.\($v)" as $to |
         {hostPath: "\($lib)/\(.).so.\($v)", containerPath: $to, options: ["ro", "nosuid", "nodev", "rbind", "rprivate"]}]),
       hooks: [hook(["create-symlinks", "--link", "libcuda.so.1::\($lib)/libcuda.so", "--link", "libcuda.so.550.54.14::/opt/driver/libcuda.so.1"]),
         hook(["enable-cuda-compat", "--host-driver-version=550.54.14"]), hook(["update-ldcache", "--folder", "/opt/driver"]),
         hook(["disable-device-node-modification"]), hook(["update-application-profile"])]
     }}' >"$work/cdi/nvidia.json"
}

# A root of the test's own, small and not yet hostile.
fresh_root() {
  on_host umount --lazy "$root" 2>/dev/null || true
  rm -rf "$root" "$bundle"
  make_root small copy
  mkdir -p "$root/usr/lib64" "$root$libraries" "$root/usr/local/cuda/compat" "$root/etc/ld.so.conf.d"
}

# start_by hook|runtime|cdi: runs a container of $root that asks for GPU 0; what its probe says comes into $output. Success or failure: the
# host is as it was, and the container has nothing of it.
start_by() {
  local entry=$1
  mkdir -p "$state"
  make_bundle '.process.env += ["NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"] |
    .process.args = ["/bin/sh", "-c", "/probe; cat /proc/driver/nvidia/params 2>/dev/null; sed s/^/mountinfo:/ /proc/self/mountinfo"] |
    del(.hooks)' "${edits[@]}"
  case "$entry" in
  hook)
    config_toml legacy <"${toml:-/dev/null}"
    edit_bundle --arg hook "$programs/nvidia-container-runtime-hook" --arg config "$work/config.toml" \
      '.hooks = {prestart: [{path: $hook, args: ["nvidia-container-runtime-hook", "-config", $config, "prestart"], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]}'
    ;;
  runtime) config_toml jit-cdi <"${toml:-/dev/null}" ;;
  cdi)
    config_toml cdi <"${toml:-/dev/null}"
    specification
    ;;
  esac
  find "$victim" -printf '%p %y %#m %U:%G %s %T@ %n\n' | sort >"$work/victim.before"
  status=0
  if [ "${#tracer[@]}" -eq 0 ]; then
    create "$work/output" || status=$?
  else
    # strace stays as long as the container does.
    create "$work/output" "${tracer[@]}" 3>&- &
    for _ in $(seq 500); do
      [ "$(on_host runc --root "$state" state "$container" 2>/dev/null | jq -r .status)" != created ] || break
      sleep 0.02
    done
  fi
  if [ "$status" -eq 0 ]; then
    on_host runc --root "$state" start "$container"
    stops on_host runc --root "$state"
  fi
  on_host runc --root "$state" delete --force "$container" 2>/dev/null || true
  output=$(cat "$work/output")
  read_answers
  find "$victim" -printf '%p %y %#m %U:%G %s %T@ %n\n' | sort >"$work/victim.after"
  diff "$work/victim.before" "$work/victim.after"
  grep -qx 'the host keeps this to itself' "$victim/secret-of-the-host" "$victim/lib/libcuda.so.999.1"
  # The fourth field is what is mounted; where it is mounted is a path in the container.
  if awk -v victim="$victim" '/^mountinfo:/ && index($4, victim) { print; found = 1 } END { exit !found }' "$work/output"; then return 1; fi
}
edits=()
tracer=()

# create OUTPUT [TRACER...]
create() {
  local to=$1
  shift
  on_host "$@" "$programs/nvidia-container-runtime" --root "$state" create --bundle "$bundle" "${late_pid[@]}" "$container" </dev/null >"$to" 2>&1
}

# The same at each entry, each time with a fresh root that the named function makes hostile.
at_each_entry() {
  local entry
  for entry in hook runtime cdi; do
    fresh_root
    "$1"
    start_by "$entry" || { say "entry: $entry" && cat "$work/output" && return 1; }
    "${2:-true}" "$entry" || { say "entry: $entry" && cat "$work/output" && return 1; }
  done
}

has_one_gpu() {
  [ "$status" -eq 0 ] && expect nvidia-smi 1 && expect open-nvidia0 "No such device or address"
}

@test "what the other tests rely on: with a friendly image each entry gives the container its GPU" {
  at_each_entry true has_one_gpu
}

only_its_own() {
  has_one_gpu && expect made-nvidia1 "Operation not permitted" && expect made-nvidia0 "No such device or address" || return
  if grep 'ModifyDeviceFiles: 1' "$work/output"; then return 1; fi
}

@test "CVE-2021-1056: a node that the container makes itself opens no other GPU" {
  at_each_entry true only_its_own
}

hostile_compat() {
  local name
  for name in libcuda.so.999.1 libnvidia-ptxjitcompiler.so.999.1 libnvidia-nvvm.so.999.1; do
    ln -s "$out/lib/libcuda.so.999.1" "$root/usr/local/cuda/compat/$name"
  done
  mkdir "$root/usr/local/cuda/compat/libcudadebugger.so.999.1"
}

@test "CVE-2024-0132: forward-compatibility libraries that are links out of the image" {
  at_each_entry hostile_compat
}

compat_is_a_link() {
  rmdir "$root/usr/local/cuda/compat"
  ln -s "$out/lib" "$root/usr/local/cuda/compat"
}

@test "CVE-2024-0132: their directory is a link out of the image" {
  at_each_entry compat_is_a_link
}

# race A B: they change places until the test ends.
race() {
  [ -z "$racer" ] || kill "$racer"
  "$build/test/tools/exchange" "$work/rounds" "$@" 3>&- &
  racer=$!
  within 5 test -s "$work/rounds"
}

racing_compat() {
  install -m 0644 "$root/lib/x86_64-linux-gnu/libm.so.6" "$root/usr/local/cuda/compat/libcuda.so.999.1" 2>/dev/null ||
    install -m 0644 "$(readlink -f "$root/bin/busybox")" "$root/usr/local/cuda/compat/libcuda.so.999.1"
  ln -s "$out/lib" "$root/usr/local/cuda/evil"
  ln -s "$out/lib/libcuda.so.999.1" "$root/usr/local/cuda/evil-file"
  race "$root/usr/local/cuda/compat" "$root/usr/local/cuda/evil"
}

@test "CVE-2025-23359: the same, changed between check and use" {
  local turn
  for turn in 1 2 3; do at_each_entry racing_compat || { say "turn $turn" && return 1; }; done
  [ "$(stat -c %s "$work/rounds")" -gt 100 ]
}

dangling_targets() {
  local name directory
  for directory in "$libraries" /usr/lib64 /opt/driver; do
    mkdir -p "$root$directory"
    for name in libcuda.so.550.54.14 libnvidia-ml.so.550.54.14 libcuda.so.1 libcuda.so libnvidia-ml.so.1; do
      ln -sf "$out/new-$name" "$root$directory/$name"
    done
  done
  mkdir -p "$root/usr/bin"
  ln -sf "$out/new-nvidia-smi" "$root/usr/bin/nvidia-smi"
  ln -sf "$out/new-node" "$root/dev/nvidia0"
}

@test "CVE-2024-0133: mount points that dangling links of the image lead out of it" {
  at_each_entry dangling_targets
}

linked_parents() {
  rm -rf "${root:?}$libraries" "${root:?}/usr/lib64" "${root:?}/usr/bin" "${root:?}/opt"
  mkdir -p "$root/usr/lib"
  ln -s "$out/lib" "$root$libraries"
  ln -s "/proc/self/root$victim" "$root/usr/lib64"
  ln -s "$out" "$root/opt"
}

@test "CVE-2024-0134: the directories of links and libraries are links out of the image" {
  at_each_entry linked_parents
}

no_ldconfig_ran() {
  # Whatever was started before the container's own program.
  sed -n 's/.*execve("\([^"]*\)".*/\1/p; s/.*execveat(\([^)]*\)).*/\1/p' "$work/trace" | sort -u >"$work/started"
  if grep -i ldconfig "$work/started"; then return 1; fi
  [ -s "$work/started" ]
}

own_ldconfig() {
  rm -f "$root/bin/ldconfig"
  printf '#!/bin/sh\n: >/ran-ldconfig\n' | tee "$root/bin/ldconfig" >"$root/bin/ldconfig.real"
  chmod 0755 "$root/bin/ldconfig" "$root/bin/ldconfig.real"
}

@test "CVE-2024-0135, -0136, -0137: neither the host's ldconfig nor the image's is run" {
  # The container's own probe would run it; it is not what is asked here.
  tracer=(strace -f -qq -e "trace=execve,execveat" -o "$work/trace")
  edits=('.process.args = ["/bin/true"]')
  sha256sum "$(readlink -f /sbin/ldconfig)" >"$work/ldconfig"
  at_each_entry own_ldconfig no_ldconfig_ran
  [ ! -e "$root/ran-ldconfig" ]
  sha256sum --check --quiet "$work/ldconfig"
}

@test "CVE-2024-0136: config.toml names an ldconfig of the image: refused, and with the feature that allows it not run either" {
  printf '[nvidia-container-cli]\nldconfig = "/sbin/ldconfig"\n' >"$work/toml"
  toml=$work/toml
  local entry
  for entry in hook runtime; do
    fresh_root
    start_by "$entry"
    [ "$status" -ne 0 ]
    grep -q 'nvidia-container-cli.ldconfig value .*/sbin/ldconfig.* is not host-relative' "$work/output"
  done
  printf '[features]\nallow-ldconfig-from-container = true\n' >>"$work/toml"
  edits=('.process.args = ["/bin/true"]')
  at_each_entry own_ldconfig
  [ ! -e "$root/ran-ldconfig" ]
}

# What a container's variables could load into a program of the host: a library that leaves a mark where it runs.
preload() {
  cat >"$work/evil.c" <<C
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void run(void)
{
	if (access("$victim", F_OK) == 0)
		open("$victim/ran-on-the-host", O_CREAT | O_WRONLY, 0600);
}
C
  [ -e "$work/evil.so" ] || cc -shared -fPIC -o "$work/evil.so" "$work/evil.c"
  cp "$work/evil.so" "$root/evil.so"
}

@test "CVE-2025-23266: LD_PRELOAD and its like, of the image, at a hook of the host" {
  edits=('.process.env += ["LD_PRELOAD=/proc/self/cwd/evil.so", "LD_LIBRARY_PATH=/proc/self/cwd", "LD_AUDIT=/proc/self/cwd/evil.so",
    "GLIBC_TUNABLES=glibc.malloc.mxfast=x", "NVIDIA_CTK_CONFIG_FILE_PATH=/proc/self/cwd/evil.toml", "PATH=/proc/self/cwd:/usr/sbin:/usr/bin:/sbin:/bin"]
    | .process.args = ["/bin/true"]')
  at_each_entry preload
  # With a root that nobody may write to, the runtime's default mode needs a hook, too.
  fresh_root
  preload
  on_host mount --bind "$root" "$root"
  on_host mount -o remount,bind,ro "$root"
  start_by runtime || { cat "$work/output" && return 1; }
  # Every hook has variables of its own; none at all would mean the container's.
  jq -e '[.hooks[]?[]? | (.env | length) > 0] | all' "$bundle/config.json"
  # The mark would be seen: a dynamic program of the host as such a hook, without variables of its own, makes it.
  fresh_root
  preload
  make_bundle '.process.env += ["LD_PRELOAD=/proc/self/cwd/evil.so"] | .process.args = ["/bin/true"] | .hooks = {createContainer: [{path: "/bin/true"}]}'
  on_host runc --root "$state" run --bundle "$bundle" "$container" </dev/null >"$work/output" 2>&1 || true
  [ -e "$victim/ran-on-the-host" ] || say "this runc does not hand a container's variables to hooks any more" >&3
  rm -f "$victim/ran-on-the-host"
}

linked_cache() {
  rm -rf "$root/etc/ld.so.cache" "$root/etc/ld.so.conf.d" "$root/etc/ld.so.conf"
  ln -s "$out/etc/ld.so.cache" "$root/etc/ld.so.cache"
  ln -s "$out/etc" "$root/etc/ld.so.conf.d"
  ln -s "$out/secret-of-the-host" "$root/etc/ld.so.conf"
  ln -s "$out/etc" "$root/etc/nvidia"
}

@test "CVE-2025-23267: the loader's cache, its configuration and their directories are links out of the image" {
  at_each_entry linked_cache
}

linked_etc() {
  rm -rf "${root:?}/etc"
  ln -s "$out/etc" "$root/etc"
}

@test "CVE-2025-23267: /etc is one" {
  at_each_entry linked_etc
}

racing_parents() {
  ln -s "$out/lib" "$root/usr/lib/evil"
  ln -s "$out/etc" "$root/evil-etc"
  ln -s "$out/lib" "$root/usr/local/cuda/evil"
  cp "$root/bin/busybox" "$root/usr/local/cuda/compat/libcuda.so.999.1"
  race "$root$libraries" "$root/usr/lib/evil" "$root/etc" "$root/evil-etc" "$root/usr/local/cuda/compat" "$root/usr/local/cuda/evil"
}

@test "CVE-2026-24260: links, compatibility and cache while their directories change places" {
  local turn
  for turn in 1 2 3; do at_each_entry racing_parents || { say "turn $turn" && return 1; }; done
  [ "$(stat -c %s "$work/rounds")" -gt 100 ]
}
