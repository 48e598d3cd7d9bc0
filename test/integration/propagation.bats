# SPDX-License-Identifier: Apache-2.0
# files: disk
# Containers that share mounts with their host (mount_namespaces(7)): what is mounted in them is in them alone, and what they mount later reaches the
# host as before.

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
setup() {
  test_setup
  before_5_15=0
  [ "${GRAFT_ENOSYS:-0}" != 1 ] || before_5_15=1
  export work root cli before_5_15
  export -f configure mounts_of group_of same_mounts
}
teardown() { test_teardown; }

# in_world SCRIPT: in a mount namespace that plays the host: all is shared, the root as a mount of its own, the driver's procfs in the root's /proc.
in_world() {
  make_root "${kind:-small}" tmpfs
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- env CONFIGURE="${old_kernel[*]} $cli" ASAN_OPTIONS=detect_leaks=0 bash -euc '
    mount --bind "$root" "$root"
    mount --make-rshared /
    mount --rbind /proc "$root/proc"
    mkdir -p "$root/volume" "$root/dev"
    mount -t tmpfs volume "$root/volume"
    driver=$(awk -v at="$root/proc/driver" "index(\$5, at) == 1 { print \$5; exit }" /proc/self/mountinfo)
    '"$1"
  echo "$output"
  [ "$status" -eq 0 ]
}

# The container: a namespace whose mounts are all peers of the host'"'"'s.
start_container='
    unshare --mount --propagation unchanged sh -c "echo \$\$ >$work/pid; exec sleep 60" </dev/null >/dev/null 2>&1 3>&- 4>&- &
    until [ -s "$work/pid" ] && [ "$(cat "/proc/$(cat "$work/pid")/comm")" = sleep ]; do sleep 0.01; done
    pid=$(cat "$work/pid")
    trap "kill $pid" EXIT'

configure() { $CONFIGURE configure --no-cgroups --compute --utility --device=0 "$@"; }
mounts_of() { cut -d ' ' -f 3-5,7- "/proc/$1/mountinfo"; }
# group_of PID MOUNT-POINT: of the topmost mount there that is none of ours.
group_of() { awk -v at="$2" '$5 == at && !/ - tmpfs tmpfs rw,mode=555/ { group = $7 } END { print group }' "/proc/$1/mountinfo"; }
same_mounts() { mounts_of self | diff "$work/host" -; }

# Linux before 5.15 knows no way back into a peer group, and receives only.
expect_groups='
    for at in "$root" "$driver"; do
      case $before_5_15 in
      0) [ "$(group_of "$pid" "$at")" = "$(group_of self "$at")" ] ;;
      1) [[ $(group_of "$pid" "$at") == master:* ]] ;;
      esac
    done'

@test "a container that shares all its mounts with the host: the host gets none of ours" {
  in_world "$start_container"'
    mounts_of self >"$work/host"
    params=$(md5sum </proc/driver/nvidia/params)
    configure --pid="$pid" "$root"
    same_mounts
    [ "$(md5sum </proc/driver/nvidia/params)" = "$params" ]
    [ ! -c "$root/dev/nvidia0" ]
    grep -q " $root/dev/nvidia0 " "/proc/$pid/mountinfo"
    grep -qx "ModifyDeviceFiles: 0" "/proc/$pid/root$root/proc/driver/nvidia/params"
    [ "$(group_of "$pid" "$root/dev/nvidia0")" = - ]
    '"$expect_groups"'
    # What the container mounts later still reaches the host, as the operator asked.
    mkdir "$root/volume/later"
    nsenter --mount="/proc/$pid/ns/mnt" mount -t tmpfs later "$root/volume/later"
    grep -q " $root/volume/later " /proc/self/mountinfo'
}

@test "what fails is taken back in the container alone" {
  in_world "$start_container"'
    mounts_of self >"$work/host"
    mounts_of "$pid" >"$work/container"
    CONFIGURE="strace -f -o $work/trace -e inject=renameat:error=EIO $CONFIGURE"
    ! configure --pid="$pid" "$root"
    grep -q "EIO.*INJECTED" "$work/trace"
    same_mounts
    mounts_of "$pid" | sed "s/ master:[0-9]* / shared /; s/ shared:[0-9]* / shared /" |
      diff <(sed "s/ shared:[0-9]* / shared /" "$work/container") -
    '"$expect_groups"
}

# Whoever works in his own namespace may mean the host itself by the root. What is mounted below it, /proc of the host among them, is not his to change.
@test "without a container the root's own mount stays as it is, and the host's /proc, too" {
  in_world '
    params=$(md5sum </proc/driver/nvidia/params)
    groups="$(group_of self "$root") $(group_of self "$driver")"
    unshare --mount --propagation unchanged sh -c "echo \$\$ >$work/pid; exec sleep 60" </dev/null >/dev/null 2>&1 3>&- 4>&- &
    trap "kill $!" EXIT
    configure "$root"
    [ "$(md5sum </proc/driver/nvidia/params)" = "$params" ]
    grep -qx "ModifyDeviceFiles: 0" "$root/proc/driver/nvidia/params"
    [ "$(group_of self "$root")" = "${groups% *}" ]
    [ "$before_5_15" -eq 1 ] || [ "$(group_of self "$root") $(group_of self "$driver")" = "$groups" ]'
}
