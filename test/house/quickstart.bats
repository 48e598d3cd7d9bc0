# SPDX-License-Identifier: Apache-2.0
# files: disk
# The first command of the README does what it says, twice, and leaves nothing behind.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  cd "$top"
}

teardown() { [ -z "${holder:-}" ] || kill "$holder"; }

# alone COMMAND...: in mounts of this test's own, which others on this machine do not change.
alone() { nsenter --mount="/proc/$holder/ns/mnt" --wdns="$PWD" -- "$@"; }
have_mounts() {
  unshare --mount --propagation private sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 1000' "$BATS_TEST_TMPDIR/holder" 3>&- 4>&- &
  until [ -e "$BATS_TEST_TMPDIR/holder" ]; do
    kill -0 $! || return
    sleep 0.02
  done
  holder=$(cat "$BATS_TEST_TMPDIR/holder")
}

# Those lines with a process of quickstart that has ended: what others run on this machine does not count.
of_ended() {
  local line pid
  while read -r line; do
    pid=${line##*graft-quickstart-}
    [ -e "/proc/${pid%%[!0-9]*}" ] || echo "$line"
  done
}
# What a start could leave behind.
state() {
  alone findmnt -rno TARGET | grep -E 'quickstart|nvidia' | sort
  { find /run /tmp -maxdepth 1; runc list -q; find /sys/fs/cgroup -maxdepth 2; } | grep graft-quickstart- | of_ended | sort
  find /dev -maxdepth 1 -name "*nvidia*"
  ldconfig -p | grep -E 'libcuda|nvidia' || :
}

@test "quickstart: a container shows its one GPU and the plan; twice, and leaves nothing" {
  local before command root
  # Others use that root meanwhile: it is not made again, within the simulated host.
  root=$(stat -c %i "$(test/tools/roots small)")
  have_mounts
  # What it builds and keeps stays for the second time.
  before=$(state)
  run -0 alone ./quickstart </dev/null
  # One screen, whatever was built.
  [ "${#lines[@]}" -le 40 ]
  [[ ${lines[0]} == "quickstart: "*" minute"* ]]
  [ "$(grep -c '^GPU 0: ' <<<"$output")" -eq 1 ]
  [ "$(grep -c '^GPU [1-9]' <<<"$output")" -eq 0 ]
  # Inside, the loader finds the driver, and the other GPUs' nodes are absent.
  [[ $output == *"== inside a container"*"nvidia-smi -L"*"GPU 0: "*" /dev/nvidia0"*libcuda.so.1*"== the plan"*"== what next"* ]]
  [ "$(grep -c ' /dev/nvidia[1-9]' <<<"$output")" -eq 0 ]
  if [ ! -e /proc/driver/nvidia/version ]; then
    [[ $output == *"no NVIDIA driver is loaded: using the simulated host"*"With a real GPU: "* ]]
  fi
  [[ $output == *"  cat $top/build-release/quickstart-plan"* ]]
  [[ $output == *"== what next"*"docker run --rm --gpus all ubuntu nvidia-smi"$'\n'"To remove what this left here:"* ]]
  command=$(sed -n 's/^  sudo \(.* plan .*\)/\1/p' <<<"$output")
  # The number of changes in the plan is right, including the procfs view that only a running
  # container can get.
  [ "$(grep -oE '^[0-9]+ changes' <<<"$output")" = "$(sed -n 's/^edits: \([0-9]*\)$/\1/p' build-release/quickstart-plan) changes" ]
  grep -q ' /proc/driver/nvidia' build-release/quickstart-plan
  grep -q 'gpu-node:' build-release/quickstart-plan
  run ! grep -q 'refused: .*procfs view' build-release/quickstart-plan
  # The commands that are shown work, in whatever directory.
  cd /
  # shellcheck disable=SC2086 # words
  run -0 --separate-stderr alone $command
  cd "$top"
  [[ $output == *"The container gets:"*" links: libcuda.so.1, "* ]]
  [ "$(state)" = "$before" ]
  run -0 alone ./quickstart </dev/null
  [[ $output == *"deps: nothing to install"*"GPU 0: "* ]]
  [[ $output == *"To remove what this left here:"*"rm -rf $top/build-release $top/build-roots"* ]]
  [ "$(state)" = "$before" ]
  [ "$(stat -c %i "$(test/tools/roots small)")" = "$root" ]
}

@test "quickstart: without root it says so, and does nothing" {
  run -1 setpriv --reuid=65534 --regid=65534 --clear-groups ./quickstart
  [ "$output" = "quickstart: run this as root (sudo ./quickstart): it installs packages and starts a container" ]
}

@test "quickstart: --help is its text alone; an unknown option is one error" {
  run -0 setpriv --reuid=65534 --regid=65534 --clear-groups ./quickstart --help
  [[ ${lines[0]} == "Shows what Graft does: "* && ${lines[-1]} == *"how to remove them." ]]
  run -64 ./quickstart --gpu
  [ "$output" = "quickstart: no option '--gpu'; see ./quickstart --help" ]
}

@test "quickstart: only what it runs is built" {
  run -0 ninja -C build-release -n src/cli/nvidia-container-cli sim/graft-sim
  [ "$(ninja -C build-release -t commands src/cli/nvidia-container-cli sim/graft-sim | wc -l)" -lt "$(($(ninja -C build-release -t commands | wc -l) / 2))" ]
  grep -qF 'tools/build release "${cli#*/}" "${sim#*/}"' quickstart
}

@test "quickstart: on a bare machine it first says what it installs and its size, and at the end how to remove it" {
  local bin=$BATS_TEST_TMPDIR/bin
  mkdir "$bin"
  # A machine without runc, whose apt can be asked, but installs nothing.
  printf '#!/bin/sh\n/usr/bin/dpkg-query "$@" | grep -v "^runc "\n' >"$bin/dpkg-query"
  printf '#!/bin/sh\ncase " $* " in\n*" --assume-no "*) printf "Need to get 3 MB of archives.\\nAfter this operation, 9 MB of additional disk space will be used.\\nAbort.\\n" ;;\n*" install "*) echo no network >&2; exit 100 ;;\nesac\n' >"$bin/apt-get"
  chmod +x "$bin"/*
  run -1 env "PATH=$bin:$PATH" ./quickstart
  [ "${lines[0]}" = "quickstart: installs these packages, with what they depend on (3 MB to fetch, 9 MB of disk):" ]
  [ "${lines[1]}" = "  runc" ]
  [[ ${lines[2]} == "quickstart: "*"about "*" minutes"* ]]
  [[ ${lines[-1]} == "deps: apt-get could not install them; see above" ]]
  # What an earlier run installed.
  [ ! -e build-release/quickstart-packages ] || cp build-release/quickstart-packages "$BATS_TEST_TMPDIR/kept"
  printf 'runc\nmeson\nrunc\n' >build-release/quickstart-packages
  run -0 ./quickstart
  if [ -e "$BATS_TEST_TMPDIR/kept" ]; then mv "$BATS_TEST_TMPDIR/kept" build-release/quickstart-packages; else rm build-release/quickstart-packages; fi
  [ "${lines[-1]}" = "  sudo apt-get purge --auto-remove meson runc" ]
}
