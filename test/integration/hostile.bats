# SPDX-License-Identifier: Apache-2.0
# Hostile images, and a process that renames what we walk through. Whether `configure` succeeds or
# not: nothing outside the root is created, changed or mounted, and it takes neither long nor much
# memory.

# bats file_tags=old-kernel
load lib.bash
load ways.bash

setup_file() {
  start_host dgx-h100
  install_programs
}
teardown_file() { stop_host; }

setup() {
  test_setup
  # What an attacker would like to reach: next to the root, so that "../outside" leads there.
  mkdir -p "$work/outside/lib" "$work/outside/etc"
  printf 'secret of the host\n' >"$work/outside/secret"
  chmod 0600 "$work/outside/secret"
  outside_state >"$work/outside.before"
}

teardown() { test_teardown; }

# Names, contents and times of what lies beside the root.
outside_state() {
  find "$work/outside" -printf '%P %y %#m %U:%G %s %T@ %i %l\n'
  cat "$work/outside/secret"
}

# The root on a file system of its own, made anew each time.
fresh_root() {
  if on_host mountpoint -q "$root"; then
    on_host umount -R -l "$root"
  fi
  make_root small tmpfs
}

# configure: in a mount namespace of its own, at most 2 s of processor time and 64 MiB; whether it succeeds is not the question.
# The mounts that it leaves come into $work/mounts.
configure() {
  if [ -n "${GRAFT_LATE_MOUNTS:-}" ]; then
    start_late
    return
  fi
  local limits='ulimit -t 2 -v 98304'
  # The sanitizers need address space of their own.
  ! grep -q __asan_init "$build/src/cli/nvidia-container-cli" || limits='ulimit -t 10'
  run on_host unshare --mount --propagation private -- bash -c '
    eval "$1"
    timeout 30 nvidia-container-cli --debug="$2" configure --no-cgroups --device=0 --compute --utility "$3"
    status=$?
    cat /proc/self/mountinfo >"$4"
    exit $status' - "$limits" "$work/log" "$root" "$work/mounts"
  # Neither ended by a limit nor by a signal.
  [ "$status" -lt 124 ] || die "exit status $status: $output" || return
  [ "$status" -eq 0 ] || [[ $output == "nvidia-container-cli: "* ]] || die "$status: $output" || return
  nothing_outside
}

# start_late: the same by the runtime with runc, which is killed with its container. What is mounted in the host's table comes into $work/mounts.
start_late() {
  rm -rf "$bundle" "$work/log"
  new_bundle
  edit_bundle --arg root "$root" --arg id "$container" '.process.terminal = false | del(.process.rlimits) | .root = {path: $root, readonly: false} |
    .linux.cgroupsPath = "/" + $id | .process.args = ["/bin/true"] | .process.env += ["NVIDIA_VISIBLE_DEVICES=0"] |
    .mounts |= map(if .destination == "/proc" then {destination: "/proc", source: "/proc", type: "bind", options: ["rbind"]} else . end)'
  printf '[nvidia-container-runtime]\nmode = "jit-cdi"\nlog-level = "debug"\ndebug = "%s"\nruntimes = ["runc"]\n' "$work/log" >"$work/config.toml"
  run on_host env NVIDIA_CTK_CONFIG_FILE_PATH="$work/config.toml" unshare --mount --propagation private -- bash -c '
    timeout 30 "$4/nvidia-container-runtime" --root "$1/runc" create --bundle "$2" --pid-file "$1/pid" "$3" </dev/null 3>&- 4>&-
    status=$?
    cat /proc/self/mountinfo >"$1/mounts"
    runc --root "$1/runc" delete --force "$3" 2>/dev/null
    exit $status' - "$work" "$bundle" "$container" "$BATS_FILE_TMPDIR/programs"
  [ "$status" -lt 124 ] || die "exit status $status: $output" || return
  nothing_outside
}

nothing_outside() {
  outside_state | diff "$work/outside.before" - || die "something outside of the root changed" || return
  # Every mount of ours is below the root.
  ! awk '{ print $5 }' "$work/mounts" | grep -F "$work/" | grep -v "^$root\(/\|$\)"
}

# The runtime refuses an image that takes too long, whoever mounts.
succeeds() {
  [ "$status" -eq 0 ] || [[ -n ${GRAFT_LATE_MOUNTS:-} && $output == *"reading the container's image takes too long."* ]] || die "$output"
}

# Thirty-nine links, each of hundreds of components and the next link: one look at l0 costs the kernel milliseconds.
make_link_bomb() {
  mkdir -p "$root/d/b"
  perl -e 'my $far = "../b/" x 815; for my $i (0 .. 38) {
    symlink($far . ($i < 38 ? "l" . ($i + 1) : ""), "$ARGV[0]/d/b/l$i") or die $! }' "$1"
}

# make_cache SONAME PATH-FORMAT N: 65,536 records of N paths; %d and %s (a long directory name) are replaced.
make_cache() {
  on_host perl -e '
    my ($file, $soname, $format, $n) = @ARGV;
    my $records = 65536; my $start = 48 + 24 * $records; my $strings = "$soname\0"; my @at;
    my $long = ("/" . "a" x 200) x 19;
    for my $i (1 .. $n) {
      (my $path = $format) =~ s/%d/sprintf("%04d", $i)/e; $path =~ s/%s/$long/;
      push @at, $start + length $strings; $strings .= "$path\0"
    }
    open my $out, ">", $file or die $!; binmode $out;
    print $out "glibc-ld.so.cache1.1", pack("VVCx15", $records, length $strings, 2);
    print $out pack("VVVVQ<", 0x303, $start, $at[$n - 1 - $_ % $n], 0, 0) for 0 .. $records - 1;
    print $out $strings' "$root/etc/ld.so.cache" "$@"
}

@test "an ld.so.conf that includes the same large directory 60,000 times" {
  fresh_root
  on_host perl -e 'mkdir "$ARGV[0]/d"; for (1 .. 4000) { open F, ">", "$ARGV[0]/d/$_" or die }
    open F, ">", "$ARGV[0]/etc/ld.so.conf"; print F "include /d/*zz\n" x 60000' "$root"
  configure
  succeeds # the cache that is there stays out of date
  grep -qE "too many (included )?files" "$work/log"
}

@test "an ld.so.conf of 4,000 directories behind chains of links" {
  fresh_root
  on_host bash -c "$(declare -f make_link_bomb); root=\$1 make_link_bomb \$1" - "$root"
  on_host perl -e 'open F, ">", "$ARGV[0]/etc/ld.so.conf"; print F "/d/b/l0/$_\n" for 1 .. 4000' "$root"
  configure
  succeeds # the cache that is there stays out of date
  grep -q "takes too long" "$work/log"
}

@test "an ld.so.conf that includes 60 files of a megabyte" {
  fresh_root
  on_host perl -e 'for (1 .. 60) { open F, ">", "$ARGV[0]/etc/ld.so.conf.d/$_.conf" or die; print F "# ", "x" x 1000000, "\n" }
    open F, ">", "$ARGV[0]/etc/ld.so.conf"; print F "include /etc/ld.so.conf.d/*.conf\n"' "$root"
  configure
  succeeds # likewise: what it has costs it its cache, and nothing else
  grep -q "file read error: /etc/ld.so.conf.d/.*stays out of date" "$work/log"
}

@test "forward-compatibility libraries behind chains of links" {
  fresh_root
  on_host bash -c "$(declare -f make_link_bomb); root=\$1 make_link_bomb \$1" - "$root"
  on_host perl -e 'system "mkdir", "-p", "$ARGV[0]/usr/local/cuda/compat";
    symlink "/d/b/l0/../../lib/x", "$ARGV[0]/usr/local/cuda/compat/libx$_.so.1" for 1 .. 5000' "$root"
  configure
  succeeds
}

@test "loader caches: records in a thousand directories behind links, all named like ours, or with long paths in common" {
  local row
  for row in "x.so /d/b/l0/%d/libcuda.so.1 1000" "x.so /d/b/l0/libcuda.so.1 1" "x.so %s/%d/x.so 1021"; do
    fresh_root
    on_host bash -c "$(declare -f make_link_bomb); root=\$1 make_link_bomb \$1" - "$root"
    # shellcheck disable=SC2086
    make_cache $row
    configure
    succeeds
  done
}

@test "a library directory of 200,000 names" {
  fresh_root
  on_host perl -e 'chdir "$ARGV[0]/usr/lib" or die; open F, ">", "libx0.so"; link "libx0.so", "libx$_.so" for 1 .. 200000;
    unlink "$ARGV[0]/etc/ld.so.cache"' "$root"
  configure
}

@test "sparse files of 1 TB wherever a file is read" {
  local name
  fresh_root
  for name in etc/ld.so.cache etc/ld.so.conf etc/ld.so.conf.d/x.conf etc/debian_version usr/local/cuda/compat/libcuda.so.999 \
    lib64/libx.so.1 etc/ld-musl-x86_64.path; do
    on_host sh -c 'mkdir -p "$(dirname "$1")" && rm -f "$1" && truncate -s 1T "$1"' - "$root/$name"
  done
  configure
}

# Every name that configure reads or writes, and a few that it might.
names="etc/ld.so.cache etc/ld.so.cache~ etc/ld.so.conf etc/ld.so.conf.d/00-graft.conf etc/ld-musl-x86_64.path
  usr/lib64/libcuda.so usr/lib64/libcuda.so.1 usr/lib64/libcuda.so.550.54.14 usr/bin/nvidia-smi dev/nvidia0 dev/nvidiactl
  dev/nvidia-uvm usr/lib/x86_64-linux-gnu/libcuda.so usr/lib/x86_64-linux-gnu/libcuda.so.1
  usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14 usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
  usr/local/cuda/compat/libcuda.so.999 run/nvidia-persistenced/socket lib/firmware/nvidia/550.54.14/gsp_tu10x.bin"

# at_each_name KIND: puts something there.
at_each_name() {
  local name
  for name in $names; do
    sh -c '
      set -e
      mkdir -p "$(dirname "$2")"
      rm -rf "$2"
      case "$1" in
      hard) ln "$3/secret" "$2" ;;
      link) ln -s "$3/secret" "$2" ;;
      dangling) ln -s "$3/new" "$2" ;;
      relative) ln -s ../../../../../../../../../../../../../../../../../../../..$3/new "$2" ;;
      magic) ln -s "/proc/self/root$3/new" "$2" ;;
      fifo) mkfifo "$2" ;;
      socket) perl -MSocket -e "socket(S, PF_UNIX, SOCK_STREAM, 0); chdir shift; bind(S, sockaddr_un(shift)) or die" \
        "$(dirname "$2")" "$(basename "$2")" ;;
      directory) mkdir "$2" ;;
      zero) mknod "$2" c 1 5 ;;
      esac' - "$1" "$root/$name" "$work/outside"
  done
}

@test "hard links to a file of the host at every name" {
  local image
  # On one file system with it.
  image=$(image small)
  mkdir -p "$root"
  cp -a "$image/." "$root"
  at_each_name hard
  rm -f "$work/outside.before"
  outside_state >"$work/outside.before"
  configure
  succeeds
  [ "$(cat "$work/outside/secret")" = "secret of the host" ]
}

@test "links, FIFOs, sockets, devices and directories at every name" {
  local kind
  for kind in link dangling relative magic fifo socket directory zero; do
    rm -rf "$root"
    cp -a "$(image small)" "$root"
    at_each_name "$kind"
    configure
  done
}

@test "the directories are links out of the root" {
  local name to dev=dev
  # Where /dev leads out, runc 1.1 makes its own links there.
  [ -z "${GRAFT_LATE_MOUNTS:-}" ] || dev=
  for name in usr usr/lib usr/lib64 usr/bin etc $dev proc run lib/firmware proc/driver usr/lib/x86_64-linux-gnu; do
    for to in / ../../.. "$work/outside" /proc/self/root /proc/self/cwd /proc/1/root "/proc/self/root$work/outside" \
      "../../../../../../../../../../../../../..$work/outside" /dev/stdin loop; do
      rm -rf "$root"
      cp -a "$(image small)" "$root"
      mkdir -p "$root/$(dirname "$name")"
      rm -rf "${root:?}/$name"
      [ "$to" != loop ] || to=$(basename "$name")
      ln -s "$to" "$root/$name"
      configure
    done
  done
}

@test "a read-only root, and one without a single directory" {
  fresh_root
  on_host mount -o remount,bind,ro "$root"
  configure
  [ "$status" -ne 0 ]
  on_host umount -l "$root"
  rm -rf "$root"
  mkdir "$root"
  configure
}

@test "directories and links out of the root change places while configure works: 10,000 rounds" {
  local racer runs=0 dev=("$root/dev" "$root/evil-dev")
  [ -z "${GRAFT_LATE_MOUNTS:-}" ] || dev=()
  cp -a "$(image small)" "$root"
  mkdir -p "$root/usr/lib/x86_64-linux-gnu" "$root/usr/lib64" "$root/dev" "$root/lib/firmware/nvidia" "$root/run"
  ln -s "$work/outside/lib" "$root/usr/lib/evil"
  ln -s ../../../../../../../../../../../outside/lib "$root/usr/evil64"
  ln -s "/proc/self/root$work/outside" "$root/evil-dev"
  ln -s ../outside/etc "$root/evil-etc"
  ln -s "$work/outside" "$root/lib/evil"
  "$build/test/tools/exchange" "$work/rounds" "$root/usr/lib/x86_64-linux-gnu" "$root/usr/lib/evil" "$root/usr/lib64" \
    "$root/usr/evil64" "${dev[@]}" "$root/etc" "$root/evil-etc" "$root/lib/firmware" "$root/lib/evil" 3>&- &
  racer=$!
  while [ "$runs" -lt 40 ] || [ "$(stat -c %s "$work/rounds")" -lt 10000 ]; do
    runs=$((runs + 1))
    configure || {
      kill "$racer"
      return 1
    }
  done
  kill "$racer"
}

@test "ROOTFS is a link, and a link to the host's own root" {
  fresh_root
  ln -s root "$work/link"
  on_host unshare --mount --propagation private -- nvidia-container-cli configure --no-cgroups --device=0 --utility "$work/link"
  ln -s / "$work/slash"
  host_state >"$work/before"
  local path up
  # shellcheck disable=SC2001 # the shell's own replacement has no [^/]*
  up=$(sed 's#/[^/]*#/..#g' <<<"$root")
  for path in "$work/slash" "$root$up"; do
    for pid in 0 "$(cat "$BATS_FILE_TMPDIR/host.pid")"; do
      run on_host unshare --mount --propagation private -- nvidia-container-cli configure --no-cgroups --device=0 --utility \
        --pid="$pid" "$path"
      [ "$status" -eq 1 ]
      [[ $output == *"path error: "* ]]
    done
  done
  # The same directory in another mount is a root like any other.
  mkdir "$work/bound"
  on_host unshare --mount --propagation private -- sh -c '
    mount --bind "$1" "$1" && cd "$1" && chroot . true && mount --bind "$1" "$2" &&
    nvidia-container-cli configure --no-cgroups --device=0 --utility "$2"' - "$root" "$work/bound"
  host_state >"$work/after"
  diff "$work/before" "$work/after"
}
