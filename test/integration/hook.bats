# SPDX-License-Identifier: Apache-2.0
# files: disk
# nvidia-container-runtime-hook: containers of runc and crun with the hook as engines put it into their configuration.

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
setup() {
  test_setup
  config=$work/config.toml
  : >"$config"
}
teardown() { test_teardown; }

# hook_bundle ENTRY... : a bundle with the hook at prestart, whose container has these variables.
hook_bundle() {
  [ -d "$root" ] || make_root debian overlay
  make_bundle
  edit_bundle --arg path "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook" --arg config "$config" '
    .hooks = {prestart: [{
      path: $path,
      args: ["nvidia-container-runtime-hook", "-config", $config, "prestart"],
      env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}]} | .process.env += $ARGS.positional' --args "$@"
}

one_gpu=(NVIDIA_VISIBLE_DEVICES=0 "NVIDIA_DRIVER_CAPABILITIES=compute,utility")

# The rights of the device cgroup: the one GPU by any node, no other by any node.
expect_device_cgroup() {
  expect made-nvidia0 "No such device or address"
  expect made-nvidiactl "No such device or address"
  expect made-nvidia1 "Operation not permitted"
}

# call_hook [ARGUMENT...]: the hook as a runtime calls it, for a process that is there; what it says comes into $output and $stderr.
call_hook() {
  local pid
  on_host sleep 60 3>&- 4>&- &
  pid=$!
  run --separate-stderr on_host sh -c 'printf "{\"ociVersion\":\"1.0.2\",\"id\":\"x\",\"pid\":%s,\"bundle\":\"%s\"}" "$1" "$2" |
    { cd "$2" && shift 2 && exec nvidia-container-runtime-hook "$@"; }' sh "$pid" "$bundle" "${@:--config=$config}" prestart
  pkill -P "$pid" || kill "$pid"
  wait "$pid" || true
}

# expect_refusal TEXT REMEDY: exit status 1 and one line on standard error with both.
expect_refusal() {
  printf '%s\n' "$stderr"
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ $stderr == *"$1"* ]]
  [[ $stderr == *"; $2"* ]]
}

# --- containers ---

# bats test_tags=old-kernel
@test "runc, cgroup v1: GPU 0 of 8, and nothing on the host changes" {
  grep -q '^[^ ]* [^ ]* [^ ]* [^ ]* [^ ]* .* - cgroup .*devices' /proc/self/mountinfo ||
    skip "this machine has no cgroup v1 with the devices controller"
  hook_bundle "${one_gpu[@]}"
  run_container v1 # makes the links of /dev/char, which stay
  host_state >"$work/before"
  run_container v1
  expect_one_gpu
  expect_device_cgroup
  host_state >"$work/after"
  diff "$work/before" "$work/after"
}

# bats test_tags=old-kernel
@test "runc, cgroup v2: GPU 0 of 8" {
  hook_bundle "${one_gpu[@]}"
  run_container v2
  expect_one_gpu
  expect_device_cgroup
}

# bats test_tags=old-kernel
@test "runc, createRuntime instead of prestart" {
  hook_bundle "${one_gpu[@]}"
  edit_bundle '.hooks = {createRuntime: .hooks.prestart}'
  run_container v2
  expect_one_gpu
  expect_device_cgroup
}

@test "runc, two GPUs by index and UUID, one of them twice" {
  local uuid
  uuid=$(on_host nvidia-smi -L | sed -n 's/^GPU 3:.*UUID: \(.*\))/\1/p')
  hook_bundle "NVIDIA_VISIBLE_DEVICES=2,$uuid,2" NVIDIA_DRIVER_CAPABILITIES=utility
  run_container v2
  expect ls-nvidia "nvidia2 nvidia3 nvidiactl"
  expect nvidia-smi 2
  expect made-nvidia0 "Operation not permitted"
}

# bats test_tags=old-kernel
@test "runc, the hook twice for one container" {
  hook_bundle "${one_gpu[@]}"
  edit_bundle '.hooks.prestart += .hooks.prestart'
  run_container v2
  expect_one_gpu
  expect_device_cgroup
}

@test "runc, none: the driver and no GPU" {
  hook_bundle NVIDIA_VISIBLE_DEVICES=none NVIDIA_DRIVER_CAPABILITIES=compute,utility
  run_container v2
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidiactl"
  expect made-nvidia0 "Operation not permitted"
  expect_libraries
}

@test "runc, volume mounts ask, the environment is not listened to" {
  printf 'accept-nvidia-visible-devices-as-volume-mounts = true\naccept-nvidia-visible-devices-envvar-when-unprivileged = false\n' >"$config"
  hook_bundle NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
  edit_bundle '.mounts += [{source: "/dev/null", destination: "/var/run/nvidia-container-devices/0", type: "bind", options: ["bind"]}]'
  run_container v2
  expect_one_gpu
  expect_device_cgroup
}

@test "runc, a CDI device of another vendor in the environment: an error with kind and key" {
  hook_bundle NVIDIA_VISIBLE_DEVICES=0,vendor.example/host=all
  run run_container v2
  [ "$status" -ne 0 ]
  [[ $output == *"NVIDIA_VISIBLE_DEVICES asks for the CDI device 'vendor.example/host=all': variables of containers may not name devices of the kind 'vendor.example/host'"*"allowed-envvar-kinds"* ]] ||
    die "$output"
}

# bats test_tags=old-kernel
@test "runc, a relative root, the state of a runtime before 1.0" {
  make_root debian overlay
  mkdir -p "$bundle"
  hook_bundle "${one_gpu[@]}"
  # What old runtimes called the bundle, and a privileged container in their form.
  cat >"$work/old-hook" <<HOOK
#!/bin/bash
jq -c '{pid, bundlePath: .bundle}' | "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook" -config "$config" prestart
HOOK
  chmod 0755 "$work/old-hook"
  edit_bundle --arg hook "$work/old-hook" '.root.path = "../root" | .hooks.prestart[0] |= {path: $hook, env}'
  run_container v2
  expect_one_gpu
}

# bats test_tags=old-kernel
@test "crun without cgroups: GPU 0 of 8" {
  hook_bundle "${one_gpu[@]}"
  run_container v2 crun --cgroup-manager=disabled
  expect_one_gpu
}

# bats test_tags=old-kernel
@test "crun, cgroup v1: GPU 0 of 8" {
  hook_bundle "${one_gpu[@]}"
  run_container v1_alone crun
  expect_one_gpu
}

# bats test_tags=old-kernel
@test "crun, createRuntime" {
  hook_bundle "${one_gpu[@]}"
  edit_bundle '.hooks = {createRuntime: .hooks.prestart}'
  run_container v2 crun --cgroup-manager=disabled
  expect_one_gpu
}

# bats test_tags=old-kernel
@test "runc, a user namespace" {
  make_root small copy
  chown -R --no-dereference 100000:100000 "$root"
  hook_bundle "${one_gpu[@]}"
  show_whole_proc
  edit_bundle '.linux.namespaces += [{type: "user"}] |
    .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
  chmod a+rx "$bundle"
  run_container v2
  expect uid 0
  expect_one_gpu /usr/lib64
}

# bats test_tags=old-kernel
@test "rootless runc: an ordinary user's hook" {
  local user=65534
  make_root small copy
  chown -R --no-dereference "$user:$user" "$root"
  hook_bundle "${one_gpu[@]}"
  show_whole_proc
  on_host runc spec --rootless --bundle "$work"
  edit_bundle --slurpfile rootless "$work/config.json" '
    .linux = $rootless[0].linux | .mounts = $rootless[0].mounts |
    .linux.uidMappings[0].hostID = '"$user"' | .linux.gidMappings[0].hostID = '"$user"
  mkdir -p "$work/state"
  chown -R "$user:$user" "$work/state" "$bundle"
  run on_host setpriv --reuid "$user" --regid "$user" --clear-groups env XDG_RUNTIME_DIR="$work/state" \
    runc --root "$work/state" run --bundle "$bundle" "$container"
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  read_answers
  expect uid 0
  expect_one_gpu /usr/lib64
}

# bats test_tags=old-kernel
@test "the links by which systemd knows the devices are made" {
  hook_bundle "${one_gpu[@]}"
  on_host sh -c 'rm -f /dev/char/195:0 /dev/char/195:255'
  run_container v2
  [ "$(on_host readlink /dev/char/195:0)" = ../nvidia0 ]
  [ "$(on_host readlink /dev/char/195:255)" = ../nvidiactl ]
  # and none for a GPU that the container does not get
  on_host test ! -e /dev/char/195:1
}

# --- containers that want nothing ---

@test "a container without a GPU: silent, and nothing of the driver is looked at" {
  local entry
  for entry in A=B NVIDIA_VISIBLE_DEVICES=void NVIDIA_VISIBLE_DEVICES= NO_EQUALS_SIGN; do
    rm -rf "$bundle"
    hook_bundle "$entry"
    call_hook
    [ "$status" -eq 0 ]
    [ -z "$output$stderr" ]
  done
  pid=$BASHPID
  on_host env ASAN_OPTIONS=detect_leaks=0 strace -f -o "$work/trace" -e trace=%file,%process "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook" \
    -config "$config" prestart <<<"{\"pid\":$pid,\"bundle\":\"$bundle\"}"
  # It starts nothing, and until its end it opens its configuration and the bundle's.
  [ "$(grep -c -e execve -e clone -e fork "$work/trace")" -eq 1 ]
  # One that is linked dynamically (sanitizers) looks for its libraries first.
  if grep -q 'libc\.so\.6' "$work/trace"; then sed '1,/libc\.so\.6/d' "$work/trace"; else sed 1d "$work/trace"; fi >"$work/own"
  grep -q "$config" "$work/own"
  run ! grep -E '/dev/|/proc/driver|nvidia-uvm|libnvidia|libcuda|nvidia-smi' "$work/own"
}

# --- refusals ---

# refuse TEXT REMEDY ENTRY...: a container with these variables.
refuse() {
  local text=$1 remedy=$2
  shift 2
  rm -rf "$bundle"
  hook_bundle "$@"
  call_hook
  expect_refusal "$text" "$remedy"
}

@test "refusals name the cause and the remedy in one line" {
  refuse "nvidia-container-cli: device error: 8: unknown device" "Run 'nvidia-container-cli info'" NVIDIA_VISIBLE_DEVICES=8
  refuse "nvidia-container-cli: device error: GPU-x: unknown device" "Run" NVIDIA_VISIBLE_DEVICES=GPU-x
  refuse "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=99.0" "Update the driver" \
    NVIDIA_VISIBLE_DEVICES=0 'NVIDIA_REQUIRE_CUDA=cuda>=99.0'
  refuse "nvidia-container-cli: requirement error: " "" NVIDIA_VISIBLE_DEVICES=0 NVIDIA_REQUIRE_X=notvalid
  refuse "unsupported capabilities found in 'bogus,compute' (allowed 'compute')" "Correct NVIDIA_DRIVER_CAPABILITIES" \
    NVIDIA_VISIBLE_DEVICES=0 NVIDIA_DRIVER_CAPABILITIES=compute,bogus
  refuse "cannot set MIG_CONFIG_DEVICES in non privileged container" "Unset" \
    NVIDIA_VISIBLE_DEVICES=0 NVIDIA_MIG_CONFIG_DEVICES=all
  refuse "cannot set MIG_MONITOR_DEVICES in non privileged container" "Unset" \
    NVIDIA_VISIBLE_DEVICES=0 NVIDIA_MIG_MONITOR_DEVICES=all
  refuse "failed to get requirements" "Correct CUDA_VERSION" CUDA_VERSION=twelve
  refuse "unsupported IMEX channel value: x" "Correct the NVIDIA_* variables" NVIDIA_VISIBLE_DEVICES=0 NVIDIA_IMEX_CHANNELS=x
  # what an image says stays within its line
  refuse "unsupported capabilities found in 'x?[31mred" "Correct NVIDIA_DRIVER_CAPABILITIES" \
    NVIDIA_VISIBLE_DEVICES=0 $'NVIDIA_DRIVER_CAPABILITIES=x\e[31mred'
  refuse "is not supported. Please use the NVIDIA Container Runtime" "The mode is 'cdi'" \
    NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0
}

@test "refusals reach the person through runc and crun" {
  hook_bundle NVIDIA_VISIBLE_DEVICES=8
  mkdir -p "$work/runc"
  run ! on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  [[ $output == *"nvidia-container-cli: device error: 8: unknown device; Run 'nvidia-container-cli info'"* ]]
  # crun throws away what hooks say, unless it is told otherwise
  edit_bundle --arg file "$work/stderr" '.annotations["run.oci.hooks.stderr"] = $file'
  run ! v2 crun --cgroup-manager=disabled --root "$work/crun" run --bundle "$bundle" "$container"
  [[ $(cat "$work/stderr") == *"nvidia-container-cli: device error: 8: unknown device; Run 'nvidia-container-cli info'"* ]]
}

@test "what the runtime and the bundle say wrong" {
  hook_bundle "${one_gpu[@]}"
  local filter text
  while IFS='|' read -r filter text; do
    cp "$bundle/config.json" "$work/saved.json"
    edit_bundle "$filter"
    call_hook
    expect_refusal "$text" "Check the bundle"
    mv "$work/saved.json" "$bundle/config.json"
  done <<'ROWS'
del(.ociVersion)|Version is empty in OCI spec
del(.process)|Process is empty in OCI spec
del(.root)|Root is empty in OCI spec
[]|could not decode OCI spec
ROWS
  rm "$bundle/config.json"
  call_hook
  expect_refusal "could not open OCI spec" "Check the bundle"
  run --separate-stderr on_host nvidia-container-runtime-hook prestart </dev/null
  expect_refusal "could not decode container state" "An OCI runtime must run the hook"
}

@test "a state without a process is refused before anything is touched" {
  hook_bundle "${one_gpu[@]}"
  host_state >"$work/before"
  run --separate-stderr on_host nvidia-container-runtime-hook -config "$config" prestart <<<"{\"bundle\":\"$bundle\"}"
  expect_refusal "could not decode container state: no pid" ""
  host_state >"$work/after"
  diff "$work/before" "$work/after"
}

# --- configuration ---

@test "config.toml: missing, wrong, and what it says" {
  hook_bundle "${one_gpu[@]}"
  call_hook -config=/nowhere.toml
  expect_refusal "couldn't open required configuration file" "Correct the file"
  printf 'disable-require = "yes"\n' >"$config"
  call_hook
  expect_refusal "config.toml" "Correct the file"
  printf 'supported-driver-capabilities = "compute,what"\n' >"$config"
  call_hook
  expect_refusal "unknown capability 'what'" "Correct the file"
  printf '[nvidia-container-runtime]\nmode = "jit-cdi"\n' >"$config"
  call_hook
  expect_refusal "Please use the NVIDIA Container Runtime" "The mode is 'jit-cdi'"
  printf '[nvidia-container-runtime]\nmode = "nonsense"\n' >"$config"
  call_hook
  expect_refusal 'invalid mode "nonsense"' "Set nvidia-container-runtime.mode"
  # wrong configuration is told to containers without GPUs too, as every one would fail otherwise only later
  printf 'x' >"$config"
  hook_bundle A=B
  call_hook
  expect_refusal "config.toml" "Correct the file"
}

@test "config.toml: requirements off, no cgroups, a log, another mode without the check" {
  cat >"$config" <<TOML
disable-require = true
[nvidia-container-cli]
no-cgroups = true
debug = "$work/debug.log"
[nvidia-container-runtime]
mode = "cdi"
[nvidia-container-runtime-hook]
skip-mode-detection = true
TOML
  hook_bundle "${one_gpu[@]}" 'NVIDIA_REQUIRE_CUDA=cuda>=99.0'
  run_container v2
  expect open-nvidia0 "Operation not permitted"
  expect_libraries
  grep -q "configuring container with 'supervised no-cgroups compute utility'" "$work/debug.log"
}

# --- another nvidia-container-cli ---

@test "a program that config.toml names gets exactly the words, and its environment" {
  cat >"$work/recorder" <<'RECORDER'
#!/bin/bash
printf '%s\n' "$0" "$@" >"${0%/*}/words"
env | sort >"${0%/*}/environment"
pwd >"${0%/*}/directory"
exit 7
RECORDER
  chmod 0755 "$work/recorder"
  cat >"$config" <<TOML
[nvidia-container-cli]
path = "$work/recorder"
root = "/"
debug = "/var/log/x"
ldcache = "/etc/ld.so.cache"
user = "root:video"
no-cgroups = true
environment = ["NEW=1", "HOME=/elsewhere"]
TOML
  hook_bundle NVIDIA_VISIBLE_DEVICES=0,1 NVIDIA_DRIVER_CAPABILITIES=video,compute 'NVIDIA_REQUIRE_B=cuda>=11.0' \
    'NVIDIA_REQUIRE_A=brand=x,driver>=1' NVIDIA_IMEX_CHANNELS=3
  export HOME=/before
  call_hook
  [ "$status" -eq 7 ]
  [ -z "$output$stderr" ]
  sed -e 's/^--pid=[0-9]*$/--pid=PID/' -e 's,^--ldconfig=@/sbin/ldconfig.*,--ldconfig=@,' "$work/words" >"$work/words.seen"
  diff - "$work/words.seen" <<WORDS
$work/recorder
--root=/
--load-kmods
--debug=/var/log/x
--ldcache=/etc/ld.so.cache
--user=root:video
configure
--cuda-compat-mode=ldconfig
--ldconfig=@
--no-cgroups
--device=0,1
--imex-channel=3
--compute
--video
--require=cuda>=11.0
--require=brand=x,driver>=1
--pid=PID
$root
WORDS
  grep -qx NEW=1 "$work/environment"
  grep -qx HOME=/elsewhere "$work/environment"
  [ "$(grep -c '^HOME=' "$work/environment")" -eq 1 ]
}

@test "nvidia-container-cli.path: our own is not called, a missing or relative one is refused" {
  printf '[nvidia-container-cli]\npath = "%s"\n' "$BATS_FILE_TMPDIR/programs/nvidia-container-cli" >"$config"
  hook_bundle "${one_gpu[@]}"
  run_container v2
  expect_one_gpu
  printf '[nvidia-container-cli]\npath = "/nowhere/nvidia-container-cli"\n' >"$config"
  call_hook
  expect_refusal "exec failed: /nowhere/nvidia-container-cli: no such file or directory" "Set nvidia-container-cli.path"
  printf '[nvidia-container-cli]\npath = "./nvidia-container-cli"\n' >"$config"
  printf '#!/bin/sh\ntouch "%s"\n' "$work/ran" >"$bundle/nvidia-container-cli"
  chmod 0755 "$bundle/nvidia-container-cli"
  call_hook
  expect_refusal "must be an absolute path" "Set nvidia-container-cli.path"
  [ ! -e "$work/ran" ]
}

@test "nvidia-container-cli.path: a name is looked for in the PATH of its environment, in no other" {
  mkdir "$work/programs"
  printf '#!/bin/sh\n/usr/bin/touch "%s"\nexec %s "$@"\n' "$work/ran" "$BATS_FILE_TMPDIR/programs/nvidia-container-cli" >"$work/programs/cli-of-ours"
  chmod 0755 "$work/programs/cli-of-ours"
  printf '[nvidia-container-cli]\npath = "cli-of-ours"\nenvironment = ["PATH=programs:/nowhere:%s"]\n' "$work/programs" >"$config"
  hook_bundle "${one_gpu[@]}"
  run_container v2
  expect_one_gpu
  [ -e "$work/ran" ]
  rm "$work/ran"
  # The engine's PATH, and the working directory, are no places for it.
  cp "$work/programs/cli-of-ours" "$bundle"
  printf '[nvidia-container-cli]\npath = "cli-of-ours"\n' >"$config"
  PATH="$work/programs:$PATH" call_hook
  expect_refusal "exec failed: cli-of-ours: no such program in /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    "Set nvidia-container-cli.path"
  [ ! -e "$work/ran" ]
}

# --- what does not reach us ---

@test "variables, descriptors and the working directory of a caller change nothing" {
  hook_bundle "${one_gpu[@]}"
  mkdir -p "$bundle/bin"
  printf '#!/bin/sh\ntouch "%s"\n' "$work/ran" >"$bundle/bin/nvidia-container-cli"
  cp "$bundle/bin/nvidia-container-cli" "$bundle/bin/modprobe"
  cp "$bundle/bin/nvidia-container-cli" "$bundle/bin/ldconfig"
  chmod 0755 "$bundle"/bin/*
  edit_bundle --arg bin "$bundle/bin" '.hooks.prestart[0].env = [
    "PATH=" + $bin, "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere", "MODPROBE_OPTIONS=--bogus", "NVC_INSECURE_MODE=1", "LC_ALL=xx",
    "CUDA_VISIBLE_DEVICES=7", "GLIBC_TUNABLES=glibc.malloc.check=3", "TMPDIR=" + $bin]'
  run_container v2
  expect_one_gpu
  expect_device_cgroup
  [ ! -e "$work/ran" ]
}

# --- the program ---

@test "the other commands, and the old name" {
  run --separate-stderr "$hook" poststart </dev/null
  [ "$status" -eq 0 ] && [ -z "$output$stderr" ]
  run --separate-stderr "$hook" poststop </dev/null
  [ "$status" -eq 0 ] && [ -z "$output$stderr" ]
  run --separate-stderr "$hook" -version
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == "NVIDIA Container Runtime Hook version "* ]]
  [[ ${lines[1]} == "commit: "* ]]
  run --separate-stderr "$hook"
  [ "$status" -eq 2 ] && [ -z "$output" ] && [[ $stderr == Usage:* ]]
  run --separate-stderr "$hook" nothing
  [ "$status" -eq 2 ]
  run --separate-stderr "$hook" -bogus prestart
  [ "$status" -eq 2 ] && [[ $stderr == $'flag provided but not defined: -bogus\nUsage:'* ]]
  run --separate-stderr "$hook" -confg /etc/x.toml prestart
  [ "$status" -eq 2 ] && [[ $stderr == $'flag provided but not defined: -confg\nDid you mean \'--config\'?\nUsage:'* ]]
  run --separate-stderr "$hook" --debg=1 prestart
  [ "$status" -eq 2 ] && [[ $stderr == $'flag provided but not defined: -debg\nDid you mean \'--debug\'?\nUsage:'* ]]
  run --separate-stderr "$hook" --help
  [ "$status" -eq 0 ] && [ -z "$output" ] && [[ $stderr == Usage:* ]]
  link=$work/nvidia-container-toolkit
  ln -s "$hook" "$link"
  run --separate-stderr "$link" -version
  [ "$status" -eq 0 ]
}


@test "a key of config.toml that nobody reads: a warning in the log, and the container starts" {
  printf '[nvidia-container-cli]\ndebug = "%s"\nno_cgroups = true\n' "$work/debug.log" >"$config"
  hook_bundle "${one_gpu[@]}"
  run_container v1
  expect_one_gpu
  [ "$(grep -c "$config: line 3: ignoring unknown key 'nvidia-container-cli.no_cgroups' (did you mean 'no-cgroups'?)" "$work/debug.log")" -eq 1 ]
}

@test "a log that cannot be opened: one warning says why" {
  printf '[nvidia-container-cli]\ndebug = "/no/such/directory/log"\n' >"$config"
  hook_bundle NVIDIA_VISIBLE_DEVICES=99
  call_hook
  [ "$status" -eq 1 ]
  [ "${stderr_lines[0]}" = "nvidia-container-cli: warning: cannot log to /no/such/directory/log: no such file or directory" ] || die "$stderr"
  [[ ${stderr_lines[1]} == "nvidia-container-cli: device error: 99: unknown device; "* ]] || die "$stderr"
  [ ${#stderr_lines[@]} -eq 2 ] || die "$stderr"
}

# --- other hosts; last, since they replace the one of the file ---

@test "a container without a GPU on a host without a driver" {
  stop_host
  start_host no-driver
  hook_bundle A=B
  call_hook
  [ "$status" -eq 0 ]
  [ -z "$output$stderr" ]
  hook_bundle "${one_gpu[@]}"
  call_hook
  expect_refusal "nvidia-container-cli: initialization error: " "no kernel driver is loaded. Install the driver"
  stop_host
  start_host half-installed
  hook_bundle "${one_gpu[@]}"
  call_hook
  expect_refusal "libnvidia-ml.so.1: cannot open shared object file" "Install the driver"
  stop_host
  start_host orin
  call_hook
  expect_refusal "Please use the NVIDIA Container Runtime" "The mode is 'csv'"
}
