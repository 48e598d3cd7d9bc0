# SPDX-License-Identifier: Apache-2.0
# files: disk
# The walk-through of libnvidia-container's README: a container made by hand with unshare, mount and pivot_root, and
# nvidia-container-cli without --pid, inside the new namespaces.
# bats file_tags=arm64

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
setup() { test_setup; }
teardown() {
  test_teardown
  [ -z "${cgroup:-}" ] || rmdir "$cgroup"
}

# walk COMMAND...: the steps of the README, then COMMAND in the container as an ordinary user. What configure says goes to $work/configure.log.
cgroups=--no-cgroups
walk() {
  cat >"$work/steps" <<'STEPS'
set -eu
mount --bind rootfs rootfs
mount --make-private rootfs
cd rootfs
mount -t proc none proc
mount -t sysfs none sys
mount -t tmpfs none tmp
mount -t tmpfs none run
nvidia-container-cli --load-kmods configure --ldconfig=@/sbin/ldconfig $cgroups --utility --compute --device 0 "$(pwd)" \
  2>../configure.log
grep ' /' /proc/self/mountinfo >../mounts.log
pivot_root . mnt
umount -l mnt
# busybox has no --userspec
if chroot --help 2>&1 | grep -q userspec; then
  exec chroot --userspec 1000:1000 . env -i "$@"
fi
exec chroot . env -i "$@"
STEPS
  ln -sfn root "$work/rootfs"
  cd "$work" || return
  run on_host env cgroups="$cgroups" unshare --mount --pid --fork sh "$work/steps" "$@"
  [ "$status" -eq 0 ] && return
  printf '%s\n' "$output"
  cat "$work/configure.log"
  return 1
}

# bats test_tags=old-kernel
@test "the walk-through on a Debian root: one GPU, as an ordinary user" {
  make_root debian overlay
  # Where the kernel has modules, --load-kmods makes the links of /dev/char, once.
  on_host nvidia-container-cli --load-kmods info >/dev/null
  host_state >"$work/before"
  walk nvidia-smi -L
  host_state >"$work/after"
  [[ $output == *"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-"* ]]
  [ "$(grep -c '^GPU ' <<<"$output")" -eq 1 ]
  [ ! -s "$work/configure.log" ]
  diff "$work/before" "$work/after"
}

@test "the walk-through: what else is in that container" {
  make_root debian overlay
  walk /probe
  read_answers
  expect uid 1000
  expect_one_gpu
  expect procfs 1
  expect made-nvidia1 "mknod refused"
}

# bats test_tags=old-kernel
@test "the walk-through on a busybox root, on tmpfs" {
  make_root small tmpfs
  on_host mkdir -p "$root/mnt"
  walk /probe
  read_answers
  expect_one_gpu /usr/lib64
}

# bats test_tags=old-kernel
@test "the walk-through twice over the same root" {
  make_root debian overlay
  walk /probe
  first=$output
  walk /probe
  [ "$output" = "$first" ]
  read_answers
  expect_one_gpu
}

# bats test_tags=old-kernel
@test "every mount of the walk-through is nosuid, nodev where no node is, and read-only where no node or socket is" {
  make_root debian overlay
  walk true
  local point options
  while read -r point options; do
    case "$point" in
    */dev/nvidia*) [[ $options == *nosuid* && $options == *noexec* && $options != *nodev* ]] ;;
    *fabricmanager* | *persistenced* | *nvidia-mps) [[ $options == *nosuid* && $options == *nodev* ]] ;;
    */proc/driver/nvidia*) [[ $options == *nosuid* && $options == *nodev* && $options == *noexec* ]] ;;
    *) [[ $options == *ro,* && $options == *nosuid* && $options == *nodev* ]] ;;
    esac || die "$point: $options"
  done < <(awk -v at="$work/root/" 'index($5, at) == 1 && $5 ~ /nvidia|libcuda|firmware/ { print $5, $6 }' "$work/mounts.log")
  grep -q "$work/root/dev/nvidia0 " "$work/mounts.log"
  grep -q "$work/root/usr/lib/$multiarch/libcuda.so.550.54.14 " "$work/mounts.log"
}

# bats test_tags=old-kernel
@test "the walk-through in a cgroup that refuses GPUs, without --no-cgroups" {
  grep -q ' - cgroup .*devices' /proc/self/mountinfo || skip "this machine has no cgroup v1 with the devices controller"
  make_root debian overlay
  cgroup=$(awk '/ - cgroup .*devices/ { print $5; exit }' /proc/self/mountinfo)/$container
  mkdir "$cgroup"
  echo a >"$cgroup/devices.deny"
  echo 'c 1:* rwm' >"$cgroup/devices.allow"
  # A shell of its own is in that cgroup.
  (
    echo "$BASHPID" >"$cgroup/cgroup.procs"
    cgroups='' walk /probe
    read_answers
    expect_one_gpu
  )
}
