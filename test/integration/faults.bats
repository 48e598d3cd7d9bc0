# SPDX-License-Identifier: Apache-2.0
# files: disk
# nvidia-container-cli configure when something is wrong: unknown options, a damaged driver root,
# failing system calls. In each case a container is set up completely or left exactly as it was, and
# there is one error message.

load lib.bash

setup_file() {
  start_host dgx-h100
  export driver=$BATS_FILE_TMPDIR/driver
  "$sim" create --topology dgx-h100 "$driver" >/dev/null
}
teardown_file() { stop_host; }
setup() {
  test_setup
  make_root small overlay
}
teardown() { test_teardown; }

# configure WORD...: a container by hand, as in the walk-through, in namespaces of its own; its mounts and its files before and after
# lie in $work/before and $work/after, what was said in $work/said. $status is the program's, under `tracer` if that is set.
tracer=()
configure() {
  cat >"$work/steps" <<'STEPS'
mount --bind "$1" "$1" && mount -t proc none "$1/proc" && mount -t tmpfs none "$1/dev" || exit 200
root=$1 work=$2
shift 2
state() {
  cut -d ' ' -f 4- /proc/self/mountinfo
  find "$root" -path "$root/proc/[0-9s]*" -prune -o ! -type d -printf '%p %y %m %U:%G %s %T@ %l %n\n' \
    -o -type d -printf '%p %y %m %U:%G\n' 2>/dev/null | grep -v "$root/proc/[^d]" | sort
}
state >"$work/before"
"$@" 2>"$work/said" >"$work/stdout" </dev/null
status=$?
state >"$work/after"
exit $status
STEPS
  status=0
  on_host unshare --mount --propagation private timeout 20 sh "$work/steps" "$root" "$work" "${old_kernel[@]}" \
    "${tracer[@]}" "$cli" "$@" || status=$?
  [ "$status" -ne 200 ]
}

# After a configure: it did not crash or hang, and a failure changed nothing and said why in one line.
expect_all_or_nothing() {
  if [ "$status" -eq 0 ]; then
    return
  fi
  diff "$work/before" "$work/after" >"$work/diff" || die "$*: changed the container: $(cat "$work/diff")" || return
  if [ "$status" -eq 127 ] && grep -q 'shared librar' "$work/said"; then
    return # it did not even start
  fi
  # 124: it hung; from 126: it could not be run, or was killed
  [ "$status" -lt 124 ] || die "$*: status $status: $(cat "$work/said")" || return
  # Where the reader of the image cannot write, the message cannot be written either: each process has its own first write(2).
  [[ $* != "write, number 1 "* || -s $work/said ]] || return 0
  [ "$(grep -c '^nvidia-container-cli: [a-z]* *error' "$work/said")" -eq 1 ] || die "$*: said $(cat "$work/said")"
}

expect_nothing() {
  [ "$status" -ne 0 ] || die "$*: accepted" || return
  [ "$status" -lt 124 ] || die "$*: status $status" || return
  diff "$work/before" "$work/after" || die "$*: changed the container" || return
  grep -q 'nvidia-container-cli' "$work/said" || die "$*: said $(cat "$work/said")"
}

# bats test_tags=old-kernel
@test "what the other tests compare changes on success" {
  configure configure --no-cgroups --utility --compute --device 0 "$root"
  [ "$status" -eq 0 ]
  diff "$work/before" "$work/after" >"$work/diff" || true
  grep -q '^> .*/dev/nvidia0 ' "$work/diff"
  grep -q '^> .*/libcuda.so.1 l ' "$work/diff"
  grep -q '^[<>] .*/etc/ld.so.cache f ' "$work/diff"
}

@test "bad input of each flag changes nothing" {
  local words n=0
  while read -r words; do
    [ -n "$words" ] || continue
    # shellcheck disable=SC2086
    configure ${words//ROOT/$root}
    expect_nothing "$words"
    n=$((n + 1))
  done <<'TABLE'
--nonsense configure --no-cgroups ROOT
--root=/no/such/root configure --no-cgroups --device=0 ROOT
--user=nosuchuser configure --no-cgroups --device=0 ROOT
--user=1: configure --no-cgroups --device=0 --nonsense ROOT
--user=99999999999999 configure --no-cgroups --device=0 ROOT
--user=-1 configure --no-cgroups --device=0 ROOT
configure
configure --no-cgroups
configure --no-cgroups --device=0 /
configure --no-cgroups --device=0 relative
configure --no-cgroups --device=0 ROOT ROOT
configure --no-cgroups --device=0 /no/such/rootfs
configure --no-cgroups --device=0 ROOT/bin/busybox
configure --no-cgroups --device=8 --utility ROOT
configure --no-cgroups --device=-1 --utility ROOT
configure --no-cgroups --device=0x0 --utility ROOT
configure --no-cgroups --device=18446744073709551616 --utility ROOT
configure --no-cgroups --device=0,GPU-none --utility ROOT
configure --no-cgroups --device=GPU-00000000-0000-0000-0000-000000000000 --utility ROOT
configure --no-cgroups --device=0:0 --utility ROOT
configure --no-cgroups --device=MIG-1 --utility ROOT
configure --no-cgroups --device=0 --device=nonsense --utility ROOT
configure --no-cgroups --device=0 --require=cuda>=99.0 --utility ROOT
configure --no-cgroups --device=0 --require=cuda>= --utility ROOT
configure --no-cgroups --device=0 --require=nonsense --utility ROOT
configure --no-cgroups --device=0 --require=driver<1 --utility ROOT
configure --no-cgroups --device=0 --mig-config=0 --utility ROOT
configure --no-cgroups --device=0 --mig-monitor=0 --utility ROOT
configure --no-cgroups --device=0 --imex-channel=x --utility ROOT
configure --no-cgroups --device=0 --imex-channel=4096 --utility ROOT
configure --no-cgroups --device=0 --imex-channel=-1 --utility ROOT
configure --no-cgroups --device=0 --cuda-compat-mode=nonsense --utility ROOT
configure --no-cgroups --device=0 --pid=x --utility ROOT
configure --no-cgroups --device=0 --pid=-1 --utility ROOT
configure --no-cgroups --device=0 --pid=99999999999 --utility ROOT
configure --no-cgroups --device=0 --pid=4194304 --utility ROOT
configure --no-cgroups --device=0 --utility=1 ROOT
configure --no-cgroups --device=0 --ldconfig
TABLE
  [ $n -gt 35 ]
}

# damage NAME COMMAND...: configure from a copy of the driver root in which something was damaged.
damage() {
  local name=$1
  shift
  layer "$driver" "$work/driver"
  "$@"
  configure --root="$work/driver" configure --no-cgroups --utility --compute --device 0 "$root"
  expect_all_or_nothing "$name"
  if [ "$status" -eq 0 ]; then
    # a new root for the next one
    make_root small overlay
  fi
}

cut_at() { on_host truncate --size="$1" "$work/driver/$2"; }
noise() { on_host dd if=/dev/urandom of="$work/driver/$2" bs="$1" count=1 status=none; }
missing() { on_host rm "$work/driver/$1"; }
as_fifo() { missing "$1" && on_host mkfifo "$work/driver/$1"; }
as_directory() { missing "$1" && on_host mkdir "$work/driver/$1"; }
as_huge() { on_host truncate --size=1T "$work/driver/$1"; }
as_link_to() { on_host ln -sfn "$1" "$work/driver/$2"; }

@test "a damaged loader cache in the driver root" {
  local size cache=etc/ld.so.cache
  for size in 0 1 20 47 48 100 2000; do
    damage "cut at $size" cut_at $size $cache
  done
  damage "noise" noise 4096 $cache
  damage "a FIFO" as_fifo $cache
  damage "a directory" as_directory $cache
  damage "1 TB of zeros" as_huge $cache
  damage "an endless device" as_link_to /dev/zero $cache
  damage "a link out of the driver root" as_link_to ../../../../../../../../etc/ld.so.cache $cache
  damage "a loop" as_link_to ld.so.cache $cache
  damage "missing" missing $cache
}

@test "damaged libraries in the driver root" {
  local size library=usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14
  for size in 0 1 16 63 64 120 400 1000; do
    damage "cut at $size" cut_at $size $library
  done
  damage "noise" noise 4096 $library
  damage "a FIFO" as_fifo $library
  damage "a directory" as_directory $library
  damage "1 TB" as_huge $library
  damage "missing" missing $library
  damage "no NVML" missing usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.14
}

@test "damaged procfs files of the driver" {
  local file size
  for file in proc/driver/nvidia/version proc/driver/nvidia/params proc/driver/nvidia/gpus/0000:1b:00.0/information; do
    for size in 0 1 30; do
      damage "$file cut at $size" cut_at $size $file
    done
    damage "$file noise" noise 4096 $file
    damage "$file a FIFO" as_fifo $file
    damage "$file a directory" as_directory $file
    damage "$file 1 TB" as_huge $file
    damage "$file missing" missing $file
  done
}

# The calls of the apply stage, and those that every program makes.
calls=(openat openat2 open_tree move_mount mount_setattr mount fsopen fsconfig fsmount mkdirat symlinkat linkat renameat
  renameat2 write pwrite64 fchmod fchown fchownat ftruncate fstat newfstatat statx read pread64 readlinkat getdents64
  capset prctl setfsuid setfsgid umask fchdir chroot setns unshare utimensat fsync close)

# fail_each WORD...: configure with the first, a middle and the last call of each kind failing.
fail_each() {
  local call n at errors=(EIO ENOMEM EPERM ENOSPC) n_errors=0 failed=0
  tracer=(strace -f -qq -o "$work/trace" -e "trace=$(IFS=, && echo "${calls[*]}")")
  configure "$@"
  [ "$status" -eq 0 ]
  make_root small overlay
  for call in "${calls[@]}"; do
    n=$(grep -c "^[0-9]* *$call(" "$work/trace") || continue
    for at in $(printf '%d\n' 1 $(((n + 1) / 2)) "$n" | sort -nu); do
      tracer=(strace -f -qq -o /dev/null -e "trace=$call" -e "inject=$call:error=${errors[n_errors++ % 4]}:when=$at")
      configure "$@"
      expect_all_or_nothing "$call, number $at of $n"
      if [ "$status" -eq 0 ]; then
        make_root small overlay
      else
        failed=$((failed + 1))
      fi
    done
  done
  [ $failed -gt 15 ] || die "only $failed of the injected failures were one"
}

# bats test_tags=old-kernel
@test "every kind of system call fails: all or nothing" {
  fail_each configure --no-cgroups --utility --compute --device 0 "$root"
}
