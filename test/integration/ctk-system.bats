# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk system: nodes and links on the simulated host, whose /dev belongs to the test.

load lib.bash

setup_file() { start_host a100-mig; }
teardown_file() { stop_host; }

ctk=$build/src/cli/ctk/nvidia-ctk

setup() {
  test_setup
  at=/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/root$work
}
teardown() { test_teardown; }

# system WORD...: the command on the host; what it tells is in $output without the times.
system() {
  run on_host "${old_kernel[@]}" "$ctk" system "$@"
  output=$(printf '%s\n' "$output" | sed 's/^time="[^"]*" //')
}
succeeds() { [ "$status" -eq 0 ] || die "$output"; }
fails() {
  [ "$status" -eq 1 ] || die "exit status $status: $output" || return
  [[ $output == *"level=error msg=\"$1"* ]] || die "$output"
}
tells() { grep -qxF -- "$1" <<<"$output" || die "no line '$1' in: $output"; }
major() { on_host awk -v name="$1" '$2 == name { print $1; exit }' /proc/devices; }
# node PATH: "MAJOR:MINOR MODE" in decimal
node() { printf '%d:%d %s' "0x$(stat -c %t "$at/$1")" "0x$(stat -c %T "$at/$1")" "$(stat -c %a "$at/$1")"; }

# count DIRECTORY: how many names are in it.
count() { find "$1" -mindepth 1 -maxdepth 1 | wc -l; }

# ---- create-device-nodes ----

@test "control nodes: dry, made, left alone, replaced" {
  local uvm
  uvm=$(major nvidia-uvm)
  mkdir -p "$work/root/dev"
  system create-device-nodes --dev-root "$work/root" --control-devices --dry-run
  succeeds
  tells "level=info msg=\"Running: mknod --mode=0666 $work/root/dev/nvidiactl c 195 255\""
  tells "level=info msg=\"Running: mknod --mode=0666 $work/root/dev/nvidia-modeset c 195 254\""
  tells "level=info msg=\"Running: mknod --mode=0666 $work/root/dev/nvidia-uvm c $uvm 0\""
  tells "level=info msg=\"Running: mknod --mode=0666 $work/root/dev/nvidia-uvm-tools c $uvm 1\""
  [ "$(grep -c Running <<<"$output")" -eq 4 ]
  [ -z "$(ls "$work/root/dev")" ]
  system create-device-nodes --dev-root "$work/root" --control-devices
  succeeds
  [ "$(node root/dev/nvidiactl)" = '195:255 666' ]
  [ "$(node root/dev/nvidia-modeset)" = '195:254 666' ]
  [ "$(node root/dev/nvidia-uvm)" = "$uvm:0 666" ]
  [ "$(node root/dev/nvidia-uvm-tools)" = "$uvm:1 666" ]
  [ "$(count "$work/root/dev")" -eq 4 ]
  # Again, with one that is of another driver, and one that is none.
  rm "$work/root/dev/nvidia-uvm" "$work/root/dev/nvidiactl"
  mknod "$work/root/dev/nvidia-uvm" c 1 3
  : >"$work/root/dev/nvidiactl"
  system create-device-nodes --dev-root "$work/root/" --control-devices
  succeeds
  tells "level=warning msg=\"Skipping: $work/root/dev/nvidiactl already exists, but is not a device\""
  tells "level=info msg=\"Skipping: $work/root/dev/nvidia-modeset already exists\""
  tells "level=warning msg=\"$work/root/dev/nvidia-uvm is not device $uvm:0; replacing it\""
  [ "$(node root/dev/nvidia-uvm)" = "$uvm:0 666" ]
}

@test "nodes: the root is the dev root, from options and variables; nothing to do is no error" {
  mkdir -p "$work/root/dev"
  system create-device-nodes --root "$work/root"
  succeeds
  [ "$output" = "level=info msg=\"Using dev-root \\\"$work/root\\\"\"" ]
  for variable in ROOT NVIDIA_DRIVER_ROOT DRIVER_ROOT; do
    run on_host env "$variable=$work/root" DRY_RUN=true "$ctk" system create-device-nodes --control-devices
    succeeds
    [[ $output == *"Running: mknod --mode=0666 $work/root/dev/nvidiactl c 195 255"* ]]
  done
  for variable in NVIDIA_DEV_ROOT DEV_ROOT; do
    run on_host env "$variable=$work/root" "$ctk" system create-device-nodes --dry-run=true --control-devices
    succeeds
    [[ $output == *"Running: mknod --mode=0666 $work/root/dev/nvidiactl c 195 255"* ]]
  done
  # On the host itself they are there.
  system create-device-nodes --control-devices
  succeeds
  tells 'level=info msg="Skipping: /dev/nvidiactl already exists"'
  [[ $output != *mknod* ]]
  system create-device-nodes --root "" --control-devices
  tells 'level=info msg="Using dev-root \"/\""'
}

@test "nodes: a failure takes back what was made" {
  mkdir -p "$work/root/dev"
  mkdir "$work/root/dev/nvidia-uvm-tools"
  # A directory is skipped; a link is no device either. One that cannot be replaced ends it.
  system create-device-nodes --dev-root "$work/root" --control-devices
  succeeds
  rm -rf "$work/root/dev"
  system create-device-nodes --dev-root "$work/root" --control-devices
  fails "failed to create device node $work/root/dev/nvidiactl: no such file or directory"
  system create-device-nodes --dev-root "$work/nowhere" --control-devices
  fails "open failed: $work/nowhere: no such file or directory"
  system create-device-nodes --dev-root relative --control-devices
  fails '--dev-root \"relative\" is not an absolute path'
  # The third of the four nodes cannot be made where the file system is full of names.
  mkdir -p "$work/full"
  on_host mount -t tmpfs -o nr_inodes=4 tmpfs "$work/full"
  on_host mkdir "$work/full/dev"
  system create-device-nodes --dev-root "$work/full" --control-devices
  fails "failed to create device node $work/full/dev/nvidia-uvm: no space left on device"
  [ -z "$(ls "$at/full/dev")" ]
}

@test "nodes: owner and mode are the driver's, but those of nvidia-uvm" {
  mkdir -p "$work/root/dev"
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    sed -e "s/^DeviceFileMode:.*/DeviceFileMode: 432/" -e "s/^DeviceFileGID:.*/DeviceFileGID: 44/" /proc/driver/nvidia/params >"$1/params"
    mount --bind "$1/params" /proc/driver/nvidia/params
    "$2" system create-device-nodes --dev-root "$1/root" --control-devices' - "$work" "$ctk"
  [ "$status" -eq 0 ] || die "$output"
  [ "$(stat -c '%a %g' "$work/root/dev/nvidiactl")" = '660 44' ]
  [ "$(stat -c '%a %g' "$work/root/dev/nvidia-uvm")" = '666 0' ]
}

@test "nodes: a host without the driver" {
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    grep -v nvidia /proc/devices >"$1/devices"
    mount --bind "$1/devices" /proc/devices
    "$2" system create-device-nodes --control-devices --dry-run' - "$work" "$ctk"
  [ "$status" -eq 1 ]
  [[ $output == *'level=error msg="failed to create devices info: no NVIDIA devices found'* ]]
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    grep -v nvidia-uvm /proc/devices >"$1/devices"
    mount --bind "$1/devices" /proc/devices
    "$2" system create-device-nodes --control-devices --dry-run' - "$work" "$ctk"
  [ "$status" -eq 1 ]
  [[ $output == *'level=error msg="failed to determine major: invalid device node'* ]]
}

# make_modprobe TEXT: a driver root whose modprobe is a script; it has what a script needs.
make_modprobe() {
  local image
  image=$(image small) || return
  mkdir -p "$work/root"
  on_host mount -t tmpfs -o size=64m tmpfs "$work/root"
  on_host cp -a "$image/." "$work/root"
  on_host mkdir -p "$work/root"/{sbin,dev}
  printf '#!/bin/sh\n%s\n' "$1" >"$work/modprobe"
  on_host install -m 0755 "$work/modprobe" "$work/root/sbin/modprobe"
}

@test "kernel modules are loaded in the driver root, in order, up to the first failure" {
  # shellcheck disable=SC2016
  make_modprobe 'echo "$*" >>/loaded; [ "$1" != nvidia-uvm ] || { echo "no such module"; exit 3; }'
  system create-device-nodes --root "$work/root" --load-kernel-modules --dry-run
  succeeds
  tells "level=info msg=\"Running: chroot $work/root /sbin/modprobe nvidia\""
  tells "level=info msg=\"Running: chroot $work/root /sbin/modprobe nvidia-uvm\""
  tells "level=info msg=\"Running: chroot $work/root /sbin/modprobe nvidia-modeset\""
  [ ! -e "$at/root/loaded" ]
  system create-device-nodes --root "$work/root" --load-kernel-modules --control-devices
  fails 'failed to load NVIDIA kernel modules: failed to load module nvidia-uvm: exit status 3; output=no such module'
  [ "$(cat "$at/root/loaded")" = $'nvidia\nnvidia-uvm' ]
  [ ! -e "$at/root/dev/nvidiactl" ]
  make_modprobe 'echo "$*" >>/loaded'
  system create-device-nodes --root "$work/root" --load-kernel-modules --control-devices
  succeeds
  [ "$(cat "$at/root/loaded")" = $'nvidia\nnvidia-uvm\nnvidia-modeset' ]
  [ -c "$at/root/dev/nvidiactl" ]
  on_host rm "$work/root/sbin/modprobe"
  system create-device-nodes --root "$work/root" --load-kernel-modules
  fails "failed to load NVIDIA kernel modules: there is no program /sbin/modprobe in $work/root"
  system create-device-nodes --dry-run --load-kernel-modules
  tells 'level=info msg="Running: /sbin/modprobe nvidia"'
}

# ---- create-dev-char-symlinks ----

@test "links of the nodes that there are" {
  local path numbers
  system create-dev-char-symlinks --dev-char-path "$work/char" --dry-run
  succeeds
  tells "level=info msg=\"Creating link $work/char/195:0 => /dev/nvidia0\""
  [ ! -e "$work/char" ]
  system create-dev-char-symlinks --dev-char-path "$work/char"
  succeeds
  for path in $(on_host find /dev -maxdepth 1 -type c -name 'nvidia*' ! -name 'nvidia-fs*' ! -name 'nvidia-nvswitch*') \
    $(on_host find /dev/nvidia-caps -type c); do
    numbers=$(printf '%d:%d' "0x$(on_host stat -c %t "$path")" "0x$(on_host stat -c %T "$path")")
    [ "$(readlink "$work/char/$numbers")" = "$path" ] || die "$numbers: $(ls -l "$work/char")"
    tells "level=info msg=\"Creating link $work/char/$numbers => $path\""
  done
  [ "$(count "$work/char")" -eq "$(grep -c Creating <<<"$output")" ]
  [ "$(stat -c %a "$work/char")" = 755 ]
  [ -L "$work/char/195:255" ]
  # A second time there is nothing to do.
  system create-dev-char-symlinks --dev-char-path "$work/char"
  succeeds
  [ -z "$output" ]
}

@test "links that are wrong are corrected, what is no link is left alone" {
  mkdir "$work/char" "$work/char/195:1"
  ln -s /dev/null "$work/char/195:255"
  ln -s ../nowhere "$work/char/195:254"
  on_host ln -s "$(on_host readlink -f /dev/nvidia0)" "$work/char/195:0"
  system create-dev-char-symlinks --dev-char-path "$work/char"
  succeeds
  tells "level=info msg=\"Creating link $work/char/195:255 => /dev/nvidiactl\""
  [ "$(readlink "$work/char/195:255")" = /dev/nvidiactl ]
  [ "$(readlink "$work/char/195:254")" = /dev/nvidia-modeset ]
  [[ $output != *"$work/char/195:0 "* ]]
  [ -d "$work/char/195:1" ]
  [[ $output == *"level=warning msg=\"could not create $work/char/195:1: it exists and is not a link"* ]]
}

@test "links of all nodes that the driver could have, also behind gaps of the instance ids" {
  local caps gpus minor
  caps=$(major nvidia-caps)
  gpus=$(on_host bash -c 'ls -d /dev/nvidia[0-9]* | wc -l')
  system create-dev-char-symlinks --create-all --dev-char-path "$work/char"
  succeeds
  [ "$(readlink "$work/char/195:$((gpus - 1))")" = "/dev/nvidia$((gpus - 1))" ]
  [ ! -L "$work/char/195:$gpus" ]
  [ "$(readlink "$work/char/$caps:1")" = /dev/nvidia-caps/nvidia-cap1 ]
  for minor in $(on_host awk -v n="$gpus" '/^gpu/ { gpu = $1; sub("gpu", "", gpu); sub("/.*", "", gpu); if (gpu + 0 < n) print $2 }' /proc/driver/nvidia-caps/mig-minors); do
    [ "$(readlink "$work/char/$caps:$minor")" = "/dev/nvidia-caps/nvidia-cap$minor" ] || die "$minor"
  done
  # As many, where the first instances are gone.
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    grep -v "gi[0-6]/" /proc/driver/nvidia-caps/mig-minors >"$1/minors"
    mount --bind "$1/minors" /proc/driver/nvidia-caps/mig-minors
    "$2" system create-dev-char-symlinks --create-all --dev-char-path "$1/gaps"' - "$work" "$ctk"
  succeeds
  minor=$(on_host awk '$1 == "gpu0/gi7/access" { print $2 }' /proc/driver/nvidia-caps/mig-minors)
  [ "$(readlink "$work/gaps/$caps:$minor")" = "/dev/nvidia-caps/nvidia-cap$minor" ]
}

@test "links: what a missing driver means" {
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    mount -t tmpfs tmpfs /dev
    "$2" system create-dev-char-symlinks --dev-char-path "$1/char"' - "$work" "$ctk"
  succeeds
  [[ $output == *'level=info msg="No NVIDIA devices found in /"'* ]]
  [ ! -e "$work/char" ]
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    grep -v nvidia-uvm /proc/devices >"$1/devices"
    mount --bind "$1/devices" /proc/devices
    "$2" system create-dev-char-symlinks --create-all --dev-char-path "$1/char"' - "$work" "$ctk"
  [ "$status" -eq 1 ]
  [[ $output == *'level=error msg="missing required device major nvidia-uvm'* ]]
  system create-dev-char-symlinks --dev-char-path "$work/no/such"
  fails "directory creation failed: $work/no/such: no such file or directory"
}

@test "links to nodes that are in the driver root alone" {
  mkdir -p "$work/driver/dev"
  mknod "$work/driver/dev/nvidia0" c 195 0
  mknod "$work/driver/dev/nvidiactl" c 195 255
  # The host's own come first.
  system create-dev-char-symlinks --driver-root "$work/driver" --dev-char-path "$work/char"
  succeeds
  [ "$(readlink "$work/char/195:0")" = /dev/nvidia0 ]
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    mount -t tmpfs tmpfs /dev
    "$2" system create-dev-char-symlinks --driver-root "$1/driver" --dev-char-path "$1/char2"
    "$2" system create-dev-char-symlinks --driver-root "$1/driver" --dev-char-path "$1/char3" --create-all' - "$work" "$ctk"
  succeeds
  [ "$(readlink "$work/char2/195:0")" = "$work/driver/dev/nvidia0" ]
  [ "$(readlink "$work/char2/195:255")" = "$work/driver/dev/nvidiactl" ]
  [ "$(count "$work/char2")" -eq 2 ]
  [ "$(readlink "$work/char3/195:0")" = "$work/driver/dev/nvidia0" ]
  [ "$(readlink "$work/char3/195:254")" = /dev/nvidia-modeset ]
}

@test "links: modules and nodes first, with --create-all only" {
  system create-dev-char-symlinks --dev-char-path "$work/char" --load-kernel-modules --create-device-nodes --dry-run
  succeeds
  tells 'level=warning msg="--load-kernel-modules is ignored without --create-all"'
  tells 'level=warning msg="--create-device-nodes is ignored without --create-all"'
  [[ $output != *Running* ]]
  run on_host env CREATE_ALL=1 LOAD_KERNEL_MODULES=1 CREATE_DEVICE_NODES=1 DRY_RUN=1 DEV_CHAR_PATH="$work/char" \
    "$ctk" system create-dev-char-symlinks
  succeeds
  [[ $output == *'Running: /sbin/modprobe nvidia-modeset'*'Skipping: /dev/nvidiactl already exists'*"Creating link $work/char/195:254 => /dev/nvidia-modeset"* ]]
  [ ! -e "$work/char" ]
}
