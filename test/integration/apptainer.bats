# SPDX-License-Identifier: Apache-2.0
# Apptainer as an ordinary user runs it, without set-uid programs: `--nvccli` calls our
# nvidia-container-cli. It comes from Debian's archive (test/tools/release-root), with its own C
# library; without a network each test is skipped.

load lib.bash

setup_file() {
  local apptainer status=0
  apptainer=$("$top/test/tools/release-root" apptainer sid 2>"$BATS_FILE_TMPDIR/why") || status=$?
  case "$status" in
  0) rm "$BATS_FILE_TMPDIR/why" ;;
  77) return 0 ;;
  *) cat "$BATS_FILE_TMPDIR/why" >&2 && return 1 ;;
  esac
  # A host on which it is installed: this one, with its files on top.
  cat >"$BATS_FILE_TMPDIR/graft-sim" <<SIM
#!/bin/sh -e
[ -n "\${GRAFT_APPTAINER-}" ] || GRAFT_APPTAINER=1 exec unshare --mount --propagation private "\$0" "\$@"
for folder in usr etc var/lib; do
  mount -t overlay -o "lowerdir=$apptainer/\$folder:/\$folder" overlay "/\$folder"
done
exec "$sim" "\$@"
SIM
  chmod 0755 "$BATS_FILE_TMPDIR/graft-sim"
  sim=$BATS_FILE_TMPDIR/graft-sim
  start_host dgx-h100
}
teardown_file() { stop_host; }
user=65534
setup() {
  [ ! -e "$BATS_FILE_TMPDIR/why" ] || skip "$(tail -n 1 "$BATS_FILE_TMPDIR/why")"
  test_setup
  make_root small copy
  mkdir -p "$root"/{tmp,var/tmp} "$work/home"
  install -m 0755 "$top/test/integration/probe" "$root/probe"
  chown -R --no-dereference "$user:$user" "$root" "$work/home"
}
teardown() { [ -e "$BATS_FILE_TMPDIR/why" ] || test_teardown; }

# apptainer [NAME=VALUE...] OPTION...: runs the probe in the root. An ordinary user; the program is found by PATH, as the package installs it.
apptainer() {
  local variables=()
  while [[ ${1-} == *=* && $1 != -* ]]; do
    variables+=("$1")
    shift
  done
  run on_host setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all \
    env -i PATH="$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin" HOME="$work/home" "${variables[@]}" \
    sh -c 'cd "$HOME" && exec apptainer --quiet exec "$@"' - "$@" "$root" /probe
  read_answers
}

# expect_gpus GPU...: the container ran, with exactly these GPUs of 8.
expect_gpus() {
  local gpu names=
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  for gpu in "$@"; do names+=" nvidia$gpu"; done
  expect nvidia-smi "$#"
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools$names nvidiactl"
}

# refuse MESSAGE: no container, and our message is in Apptainer's error.
refuse() {
  [ "$status" -eq 255 ]
  [ "$output" = "FATAL:   container creation failed: nvidia-container-cli failed with exit status 1: $1" ] || { say "$output" && return 1; }
}

@test "--nvccli with --contain: the GPUs that NVIDIA_VISIBLE_DEVICES names, and the image is as it was" {
  local before
  before=$(find "$root" -printf '%P %y %m %s %T@ %l\n')
  apptainer NVIDIA_VISIBLE_DEVICES=1,2 --contain --nvccli --writable-tmpfs
  expect_gpus 1 2
  expect ldconfig /usr/lib64/libcuda.so.1
  [ "$(find "$root" -printf '%P %y %m %s %T@ %l\n')" = "$before" ]
}

@test "--fakeroot: the same" {
  apptainer NVIDIA_VISIBLE_DEVICES=3 --fakeroot --contain --nvccli --writable-tmpfs
  expect uid 0
  expect_gpus 3
}

@test "--contain and no NVIDIA_VISIBLE_DEVICES: the driver and no GPU" {
  apptainer --contain --nvccli --writable-tmpfs
  [ "$status" -eq 0 ]
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidiactl"
  expect nvidia-smi failed
}

@test "without --contain, the host's nodes: only a device cgroup protects the other GPUs" {
  apptainer NVIDIA_VISIBLE_DEVICES=1 --nvccli --writable-tmpfs
  [ "$status" -eq 0 ]
  expect nvidia-smi 8
}

@test "the capabilities that are asked for" {
  apptainer NVIDIA_VISIBLE_DEVICES=1 NVIDIA_DRIVER_CAPABILITIES=utility --contain --nvccli --writable-tmpfs
  [ "$status" -eq 0 ]
  expect nvidia-smi 1
  expect ldconfig ""
}

@test "a GPU that is not there, a requirement that does not hold: no container, and why" {
  apptainer NVIDIA_VISIBLE_DEVICES=GPU-0 --contain --nvccli --writable-tmpfs
  refuse "nvidia-container-cli: device error: GPU-0: unknown device
nvidia-container-cli: hint: Run 'nvidia-container-cli info' to list the devices of this host."
  apptainer NVIDIA_VISIBLE_DEVICES=1 'NVIDIA_REQUIRE_CUDA=cuda>=99' --contain --nvccli --writable-tmpfs
  refuse "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=99, please update your driver to a newer version, or use an earlier cuda container
nvidia-container-cli: hint: Update the driver, or use an image made for this driver."
}
