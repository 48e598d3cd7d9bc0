# SPDX-License-Identifier: Apache-2.0
# files: disk
# Two hundred containers of runc, sixteen at a time, each with one GPU of eight: all are right, and
# afterwards nothing remains of them: no mount, no cgroup, no program of the device cgroup, no file,
# no process; and none had a descriptor that it should not have.

load lib.bash
load engines.bash

at_a_time=16

teardown() { if [ -n "${machine_cgroup-}" ]; then stop_machine; fi; }

# start_many v1|v2
start_many() {
  MACHINE_CGROUP=$1 start_machine dgx-h100
  work=$BATS_TEST_TMPDIR
  cdi_config auto
  mkdir "$work/bundles" "$work/runc" "$work/said"
  image small >/dev/null
  on_host runc spec --bundle "$work"
  jq --arg cgroup "/$machine_cgroup" '.process.terminal = false | .root = {path: "root", readonly: false} | del(.process.rlimits) |
    (.process.capabilities[]) |= (. + ["CAP_MKNOD"]) | .linux.cgroupsPath = $cgroup + "/CONTAINER" |
    .process.args = ["/bin/sh", "-c", "nvidia-smi -L 2>/dev/null; cd /proc/self/fd; echo descriptors *; mknod /other c 195 OTHER; : <>/other"] |
    .process.env += ["NVIDIA_VISIBLE_DEVICES=GPU", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]' "$work/config.json" >"$work/template"
  cat >"$work/one" <<SCRIPT
#!/bin/bash
set -e
i=\$1 gpu=\$((\$1 % 8)) bundle=$work/bundles/\$1
mkdir "\$bundle" "\$bundle/root" "\$bundle/upper" "\$bundle/scratch"
mount -t overlay -o "lowerdir=$(image small),upperdir=\$bundle/upper,workdir=\$bundle/scratch" overlay "\$bundle/root"
sed "s/CONTAINER/many-\$i/; s/OTHER/\$(((gpu + 1) % 8))/; s/DEVICES=GPU/DEVICES=\$gpu/" $work/template >"\$bundle/config.json"
runtime=(nvidia-container-runtime nvidia-container-runtime.cdi nvidia-container-runtime.legacy)
exec 3>&1 >"$work/said/\$i" 2>&1
# The container's standard output ends with the container.
{ "\${runtime[i / 8 % 3]}" --root $work/runc create --bundle "\$bundle" ${GRAFT_LATE_MOUNTS:+--pid-file "\$bundle/pid"} "many-\$i" && runc --root $work/runc start "many-\$i"; } 2>&1 | cat
# It has ended, but runc may not have seen it yet.
for _ in \$(seq 500); do
  ! runc --root $work/runc delete "many-\$i" 2>/dev/null || break
  sleep 0.02
done
umount "\$bundle/root"
rm -r "\$bundle"
SCRIPT
  chmod +x "$work/one"
}

# Everything of the machine that a container could leave something in.
machine_state() {
  # shellcheck disable=SC2016
  on_host bash -c '
    cut -d " " -f 4- /proc/self/mountinfo
    find /run /dev /etc/ld.so.cache /etc/ld.so.conf.d "$1/bundles" "$1/runc" -xdev -printf "%p %y %l\n" | sort
    find /sys/fs/cgroup -type d -path "*/$2*" | sort
    cat /proc/[0-9]*/comm | grep -xE "runc.*|nvidia.*|sh|sleep|mount" | sort
    find /proc/[0-9]*/fd -lname "*bpf-prog*" 2>/dev/null' - "$work" "$machine_cgroup"
}

# How many programs the kernel has, those of other tests of this computer included.
programs() {
  /usr/bin/python3 - <<'PYTHON'
import ctypes
import os
import struct

SYSCALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
NEXT_ID = 11
libc, number, count = ctypes.CDLL(None), 0, 0
while True:
    attributes = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0), 64)
    if libc.syscall(SYSCALL, NEXT_ID, attributes, 64) != 0:
        break
    number, count = struct.unpack_from("=II", attributes)[1], count + 1
print(count)
PYTHON
}
has_few_programs() { [ "$(programs)" -lt "$1" ]; }

some() {
  seq "$1" | on_host xargs --max-procs="$at_a_time" --max-args=1 "$work/one"
}

# A GPU's link is made by whichever container of it comes first, and there is one for each GPU.
device_link='^/dev/char/195:[0-7] l [.][.]/nvidia[0-7]$'

# What the last container has started may end a moment after it.
is_as_before() {
  machine_state >"$work/after"
  diff <(grep -v "$device_link" "$work/before") <(grep -v "$device_link" "$work/after") >"$work/left"
}

# run_many N
run_many() {
  local before i
  on_host nvidia-smi -L 2>/dev/null | sed 's/^GPU [0-9]:/GPU:/' >"$work/listing"
  # What the first ones make stays, once for all: the links in /dev/char by which systemd knows a device, the parent cgroup.
  some "$at_a_time"
  machine_state >"$work/before"
  before=$(programs)
  some "$1"
  for i in $(seq "$1"); do
    sed -n "$((i % 8 + 1))p" "$work/listing" >"$work/want"
    printf '%s\n' 'descriptors 0 1 2 3' "/bin/sh: can't create /other: Operation not permitted" >>"$work/want"
    diff "$work/want" <(sed -e 's/^GPU 0:/GPU:/' -e 's/: line 0:/:/' "$work/said/$i") || { say "container $i"; return 1; }
  done
  within 5 is_as_before || { cat "$work/left" && return 1; }
  # A program goes a moment after its cgroup; a leak of one per container would be seen among what others do here.
  within 20 has_few_programs $((before + $1 / 2))
}

@test "64 containers, cgroup v1" {
  grep -q '^[^ ]* [^ ]* [^ ]* [^ ]* [^ ]* .* - cgroup .*devices' /proc/self/mountinfo ||
    skip "this machine has no cgroup v1 with the devices controller"
  start_many v1
  run_many 64
}

@test "200 containers, cgroup v2" {
  start_many v2
  # The second run of all tests, on what looks like an old kernel, need not find every race again.
  if [ "${GRAFT_ENOSYS:-0}" = 1 ]; then run_many 64; else run_many 200; fi
}
