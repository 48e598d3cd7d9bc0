# SPDX-License-Identifier: Apache-2.0
# libnvidia-container.so.1: a program that calls it step by step gets what nvidia-container-cli makes at once; and the caller's
# identity does not change.

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
setup() {
  test_setup
  make_root debian overlay
  walk=$build/test/integration/nvc_walk
  library=$build/src/abi/libnvidia-container.so.1
}
teardown() {
  test_teardown
  stop_other_host
}

# make_walk_hook [OPTION...] -- CONTAINER-OPTIONS [GPU...]: a hook that gives the container its GPUs through the library.
make_walk_hook() {
  local options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  local words=$1
  shift
  cat >"$work/hook" <<HOOK
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec 2>>"$hook_log"
state=\$(cat)
pid=\$(jq -r .pid <<<"\$state")
root=\$(jq -r .root.path "\$(jq -r .bundle <<<"\$state")/config.json")
exec ${old_kernel[@]@Q} "$walk" ${options[@]@Q} "supervised $words" "\$pid" "\$root" ${@@Q}
HOOK
  chmod 0755 "$work/hook"
}

# mounts_of: the mounts of the container, as the probe's own process has them, without numbers.
run_and_list() {
  edit_bundle '.process.args = ["sh", "-c", "/probe; echo; cut -d \" \" -f 4- /proc/self/mountinfo | sort; find /dev /proc/driver/nvidia /etc/nvidia /usr/bin /usr/lib -xdev \\( -path \"*nvidia*\" -o -name \"libcuda*\" \\) -printf \"%p %#m %U:%G %s %l\\n\" 2>/dev/null | sort; cksum </etc/ld.so.cache"]'
  run_container v2
}

# What differs by its nature: the overlay's directories, device numbers of new mounts.
comparable() { grep -v -e 'overlay overlay' -e ' - cgroup' -e '/dev/console' <<<"$output" | sed 's/lowerdir.*//'; }

# bats test_tags=old-kernel
@test "a container by the library is a container by nvidia-container-cli: mounts, files, loader, rights" {
  make_bundle
  make_hook --device=0,3 --compute --utility
  run_and_list
  comparable >"$work/by-cli"
  make_root debian overlay
  make_walk_hook -- "compute utility" 0 3
  run_and_list
  expect nvidia-smi 2
  expect_libraries
  expect made-nvidia1 "Operation not permitted"
  comparable >"$work/by-library"
  [ "$(grep -c nvidia "$work/by-library")" -gt 30 ]
  diff "$work/by-cli" "$work/by-library"
}

# bats test_tags=old-kernel
@test "all capabilities: the same; the profile of EGL names every GPU that came" {
  make_bundle
  make_hook --device=0,2 --compute --utility --video --graphics --display --ngx --compat32
  run_and_list
  comparable >"$work/by-cli"
  profile=$(on_host nvidia-container-cli plan --json --device=0,2 --graphics "$root" | jq -r '.edits[] | select((.target // "") | endswith("10-container.conf")) | .content')
  [ -n "$profile" ]
  make_root debian overlay
  make_walk_hook -- "compute utility video graphics display ngx compat32" 0 2
  edit_bundle '.process.args = ["cat", "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"]'
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container-profile"
  [ "$output" = "$profile" ] || { say "$output" "instead of" "$profile" && cat "$hook_log" && return 1; }
  make_root debian overlay
  run_and_list
  comparable >"$work/by-library"
  diff "$work/by-cli" "$work/by-library"
}

# bats test_tags=old-kernel
@test "no-devbind, no-cgroups, and what the caller took out of the driver's lists" {
  make_bundle
  make_walk_hook -D /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14 -- "no-devbind no-cgroups compute utility" 0
  run_container v2
  expect ls-nvidia ""
  expect made-nvidia0 "Operation not permitted"
  expect loader ""
}

@test "what the caller puts into the driver's lists is not mounted" {
  make_bundle
  echo text >"$work/added"
  make_walk_hook -A "$work/added" -- "compute utility" 0
  edit_bundle --arg added "$work/added" '.process.args = ["sh", "-c", "exec 2>&1; ls \($added) || ls /usr/lib/*/libcuda.so.1"]'
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  [[ $output == *"$work/added"*"o such file or directory"*"/libcuda.so.1" ]] || die "$output"
}

@test "option strings of nvc_driver_info_new leave out what they name" {
  make_bundle
  make_walk_hook -d "no-uvm  no-persistenced" -- "compute utility" 0
  run_container v2
  expect ls-nvidia "nvidia0 nvidiactl"
}

@test "MIG devices, then the right to make and watch all of them, and the other way around" {
  local way
  other_host a100-mig
  for way in -mw -wm; do
    make_root debian overlay
    make_bundle
    make_walk_hook $way -- "compute utility" 1
    run_and_list
    [[ $output == *" /proc/driver/nvidia/capabilities "* && $output == *" /dev/nvidia-caps "* ]] || { say "$output" && cat "$hook_log" && return 1; }
    grep -q 'nvidia-smi' <<<"$output"
    on_host umount --lazy "$root"
  done
}

# bats test_tags=old-kernel
@test "MIG devices, and the right to make them" {
  other_host a100-mig
  make_root debian overlay
  make_bundle
  make_walk_hook -m -- "compute utility" 1
  run_and_list
  [[ $output == *"/proc/driver/nvidia/capabilities/gpu1/mig/gi"*"/access "* ]] || { say "$output" && cat "$hook_log" && return 1; }
  make_root debian overlay
  make_walk_hook -c -- "compute utility" 1
  run_and_list
  [[ $output == *"/proc/driver/nvidia/capabilities "*"/dev/nvidia-caps "* || $output == *"/dev/nvidia-caps "*"/proc/driver/nvidia/capabilities "* ]] || { say "$output" && cat "$hook_log" && return 1; }
}

# bats test_tags=old-kernel
@test "WSL2 and a driver below another root: by the library as by nvidia-container-cli" {
  local topology root_option
  for topology in wsl2 driver-container; do
    stop_other_host
    other_host "$topology"
    make_root debian overlay
    root_option=()
    [ "$topology" = wsl2 ] || root_option=(/run/nvidia/driver)
    make_bundle
    make_hook ${root_option:+--global=--root="${root_option[0]}"} --device=0 --compute --utility
    run_and_list
    comparable >"$work/by-cli"
    make_root debian overlay
    make_walk_hook ${root_option:+-r "${root_option[0]}"} -- "compute utility" 0
    run_and_list
    expect nvidia-smi 1
    comparable >"$work/by-library"
    [ "$(grep -c nvidia "$work/by-library")" -gt 5 ]
    diff "$work/by-cli" "$work/by-library"
    on_host umount --lazy "$root"
  done
}

@test "an unknown GPU, no driver before GPUs, a channel that is not there: told by nvc_error, and the container is as it was" {
  make_bundle
  make_walk_hook -- "compute utility" 0 9
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container"
  [ "$status" -ne 0 ]
  [[ $(cat "$hook_log") == *"nvc_device_mount("*"unknown device"* ]] || { cat "$hook_log" && return 1; }
  make_walk_hook -x 7 -- "compute utility" 0
  run on_host runc --root "$work/runc" run --bundle "$bundle" "$container-2"
  [ "$status" -ne 0 ]
  [[ $(cat "$hook_log") == *"nvc_imex_channel_mount("*"/dev/nvidia-caps-imex-channels/channel7: no such file or directory"* ]] || { cat "$hook_log" && return 1; }
}

# bats test_tags=old-kernel
@test "a read-only root: the call says so, and takes back what it did" {
  make_bundle
  on_host mount -o remount,bind,ro "$root"
  run -1 on_host unshare --mount --propagation private "$walk" "standalone no-cgroups utility" 1 "$root" 0
  [[ $output == *"nvc_driver_mount("*"read-only file system"* ]]
  run ! on_host grep -q " $root/.*nvidia" /proc/self/mountinfo
}

# bats test_tags=old-kernel
@test "a program that ignores the ends of its children" {
  run on_host unshare --mount --propagation private "$walk" -s "standalone no-cgroups compute utility" 1 "$root" 0
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
}

# bats test_tags=old-kernel
@test "an ordinary user and a container of his own; also where he ignores the ends of his children" {
  local option
  cp "$walk" "$library" "$BATS_FILE_TMPDIR"
  for option in '' -s; do
    root=$work/own$option
    make_root small copy
    chown -R --no-dereference 65534:65534 "$root"
    # shellcheck disable=SC2016
    run on_host setpriv --reuid 65534 --regid 65534 --clear-groups env LD_LIBRARY_PATH="$BATS_FILE_TMPDIR" sh -c '
      walk=$1 root=$2 option=$3
      unshare --user --map-root-user --mount sleep 60 &
      pid=$!
      until [ "$(cat "/proc/$pid/comm")" = sleep ]; do sleep 0.01; done
      "$walk" $option "supervised no-cgroups compute utility" "$pid" "$root" 0 4
      status=$?
      nsenter --target "$pid" --user --preserve-credentials --mount chroot "$root" nvidia-smi -L 2>/dev/null
      kill "$pid"
      exit $status' sh "$BATS_FILE_TMPDIR/nvc_walk" "$root" "$option"
    [ "$status" -eq 0 ] || { say "$output" && return 1; }
    [ "$(grep -c '^GPU [01]: ' <<<"$output")" -eq 2 ] || { say "$output" && return 1; }
  done
}

@test "NVC_DEBUG_FILE: the lines that tools look for, appended" {
  local line
  for line in first second; do
    run on_host unshare --mount --propagation private env NVC_DEBUG_FILE="$work/log" "$walk" -i load-kmods "standalone no-cgroups utility" 1 "$root" 3
    [ "$status" -eq 0 ] || { say "$output" && return 1; }
  done
  [ "$(grep -c '^-- WARNING, the following logs are for debugging purposes only --$' "$work/log")" -eq 2 ]
  while read -r line; do
    [ "$(grep -cE "^I[0-9]{4} [0-9:]{8}\.[0-9]{6} [0-9]+ [a-z_]+\.c:[0-9]+\] $line$" "$work/log")" -ge 2 ] || { say "no: $line" && cat "$work/log" && return 1; }
  done <<'LINES'
initializing library context \(version=1\.[0-9.]+, build=.*\)
using root /
using ldcache /etc/ld.so.cache
using unprivileged user [0-9]+:[0-9]+
configuring container with 'standalone no-cgroups utility'
requesting driver information with ''
requesting device information with ''
setting pid to 1
setting rootfs to .*/root
setting owner to 0:0
mounting /dev/nvidia3 at .*/root/dev/nvidia3
shutting down library context
LINES
}

# bats test_tags=old-kernel
@test "a container in a user namespace of its own" {
  make_root debian copy
  chown -R --no-dereference 100000:100000 "$root"
  make_user_bundle
  make_walk_hook -- "compute utility" 0 3
  run_container v2
  expect uid 0
  expect nvidia-smi 2
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidia0 nvidia3 nvidiactl"
  expect_libraries
}

# As many containers as threads, each of its own context.
# bats test_tags=old-kernel
@test "eight threads, each with a context of its own: eight containers, and the caller's threads are who they were" {
  local i
  for i in 0 1 2 3 4 5 6 7; do
    layer "$(image debian)" "$work/root$i"
  done
  # What is made in a container belongs to who owns its process: here not to us, so that each thread takes other ids for a while;
  # and the soft limit of descriptors is one that is raised for a while.
  run on_host unshare --mount --propagation private -- sh -c '
    setpriv --reuid 65534 --regid 65534 --clear-groups sleep 60 &
    pid=$!
    while [ "$(stat --format %u "/proc/$pid")" = 0 ]; do sleep 0.01; done
    ulimit -S -n 320
    "$1" -t 8 "supervised no-cgroups compute utility" "$pid" "$2" 0 4 || exit
    kill "$pid"
    for i in 0 1 2 3 4 5 6 7; do
      grep -c " $2$i/.*/nvidia[04] " /proc/self/mountinfo
      chroot "$2$i" nvidia-smi -L 2>/dev/null | grep -c "^GPU"
    done' sh "$walk" "$work/root"
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  [ "$(sort -u <<<"$output" | tr '\n' ' ')" = "2 " ] || { say "$output" && return 1; }
}

# install_library: what a distribution's packages hold; the answers of pkg-config are about it, and about nothing else.
install_library() {
  local pc
  DESTDIR=$work/installed meson install -C "$build" --no-rebuild --quiet >/dev/null 2>&1 || meson install -C "$build" --no-rebuild --destdir "$work/installed" >/dev/null
  pc=$(find "$work/installed" -name libnvidia-container.pc)
  export PKG_CONFIG_LIBDIR=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$work/installed LD_LIBRARY_PATH=${pc%/*}/..
}

# flags [OPTION...]: words for the compiler.
flags() { pkg-config --cflags --libs "$@" libnvidia-container; }

@test "the examples: compiled as their first lines say, they do what they say" {
  local name
  install_library
  for name in list_gpus container sandbox; do
    # shellcheck disable=SC2046
    cc -Wall -Wextra -Werror "$top/docs/examples/$name.c" $(flags) -o "$work/$name"
  done
  expect_list
  mkdir -p "$root/mnt"
  for name in container sandbox; do
    run on_host env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$work/$name" "$root" nvidia-smi -L
    [ "$status" -eq 0 ] || { say "$name: $output" && return 1; }
    [ "$(grep -c '^GPU ' <<<"$output")" -eq 1 ] || { say "$name: $output" && return 1; }
  done
}

# expect_list: the example list_gpus tells what there is.
expect_list() {
  run on_host env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$work/list_gpus"
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  [[ ${lines[0]} == "driver 550.54.14, CUDA 12.4" ]] || { say "$output" && return 1; }
  [ "$(grep -c '^GPU [0-7]: GPU-.* NVIDIA H100 80GB HBM3 at 0000.*, compute capability 9.0$' <<<"$output")" -eq 8 ] || { say "$output" && return 1; }
}

@test "the file of pkg-config: who links the shared library needs nothing else; the archive's needs are private" {
  install_library
  [ "$(pkg-config --modversion libnvidia-container)" = "$(sed -n 's/^#define NVC_VERSION "\(.*\)"/\1/p' "$top/src/abi/nvc.h")" ]
  [ "$(pkg-config --libs-only-l libnvidia-container | tr -d ' ')" = -lnvidia-container ]
  [ "$(pkg-config --variable=exec_prefix libnvidia-container)" = "$(pkg-config --variable=prefix libnvidia-container)" ]
  [[ $(pkg-config --static --libs libnvidia-container) == *-lnvidia-container*-lyaml*-pthread* ]]
  [ "$(sed -n 's/^Description: //p' "$PKG_CONFIG_LIBDIR/libnvidia-container.pc")" = "NVIDIA container library" ]
}

@test "the archive: a program of it needs the C library alone" {
  ! readelf -sW "$library" | grep -q __asan_init || skip "a sanitizer has a library of its own"
  install_library
  # shellcheck disable=SC2046
  cc -Wall -Wextra -Werror "$top/docs/examples/list_gpus.c" -Wl,-Bstatic $(flags --static) -Wl,-Bdynamic -o "$work/list_gpus"
  [ "$(readelf -dW "$work/list_gpus" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')" = libc.so.6 ]
  unset LD_LIBRARY_PATH
  expect_list
  # Whoever runs a set-user-id program does not choose a file that it opens.
  on_host env NVC_DEBUG_FILE="$work/log" "$work/list_gpus"
  [ -s "$work/log" ]
  chmod 4755 "$work/list_gpus"
  run on_host setpriv --reuid 65534 --regid 65534 --clear-groups env NVC_DEBUG_FILE="$work/stolen" "$work/list_gpus"
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  [ ! -e "$work/stolen" ]
}

@test "C++: a program compiles, links and gets what the C program gets" {
  install_library
  sed -e 's/^#include <nvc.h>/#include <nvc.h>\n#include <type_traits>\nstatic_assert(std::is_standard_layout<nvc_driver_info>::value, "layout");/' \
    "$top/docs/examples/list_gpus.c" >"$work/list_gpus.cc"
  # shellcheck disable=SC2046
  clang++ -std=c++17 -Wall -Wextra -Werror "$work/list_gpus.cc" $(flags) -o "$work/list_gpus"
  expect_list
}

@test "the library: SONAME, symbol version, exactly the symbols of the list; run as a program it tells its version" {
  [ "$(readelf -dW "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" = libnvidia-container.so.1 ]
  nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^NVC_1.0$' | sort >"$work/has"
  sed -n 's/^\t\t\(nvc_.*\);$/\1@@NVC_1.0/p' "$top/src/abi/libnvidia-container.map" | sort >"$work/listed"
  [ "$(wc -l <"$work/listed")" -eq 26 ]
  diff "$work/has" "$work/listed"
  # Every function of the header, and nothing else.
  grep -oE '\bnvc_[a-z0-9_]+\(' "$top/src/abi/nvc.h" | tr -d '(' | sort -u | sed 's/$/@@NVC_1.0/' | diff - "$work/listed"
  [ "$(readelf -dW "$library" | grep -c NEEDED)" -le 2 ]
  readelf -dW "$library" | grep -q BIND_NOW
  if ! readelf -lW "$library" | grep -q INTERP; then skip "no program on this platform, or under a sanitizer"; fi
  run "$library"
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "version: $(sed -n 's/^#define NVC_VERSION "\(.*\)"/\1/p' "$top/src/abi/nvc.h")" ]
  [ "${#lines[@]}" -eq 6 ]
  [[ ${lines[4]} == "build platform: $(uname -m)" ]]
}

@test "a program that knows the published layouts and no header of ours: it gives a container its GPUs, and is told what nvidia-container-cli tells" {
  ! readelf -sW "$library" | grep -q __asan_init || skip "a sanitizer cannot be loaded late"
  run on_host unshare --mount --propagation private -- sh -c '
    "$1" "$2" "$3" 1 4 && chroot "$3" nvidia-smi -L 2>/dev/null && chroot "$3" ldconfig -p' sh "$top/test/integration/nvc_published.py" "$library" "$root"
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  [ "$(grep -c '^GPU [01]: ' <<<"$output")" -eq 2 ]
  [[ $output == *"libcuda.so.1 "* ]]
  sed '/^GPU 0: /,$d' <<<"$output" | diff - <(on_host nvidia-container-cli info --csv 2>/dev/null)
}

@test "nvc.h is a header of C++ as well, and of C without another one before it" {
  printf '#include <nvc.h>\nint main(void) { return nvc_version()->major == 1 ? 0 : 1; }\n' >"$work/a.c"
  cc -std=c99 -pedantic -Wall -Wextra -Werror -I "$top/src/abi" -fsyntax-only "$work/a.c"
  clang -xc++ -fsyntax-only -nostdinc++ -I "$top/src/abi" "$work/a.c"
}
