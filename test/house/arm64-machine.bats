# SPDX-License-Identifier: Apache-2.0
# files: disk
# test/tools/arm64-machine: how it ends, and what its caller sees. A script stands in for the
# machine; ./check arm64-system uses a real one.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  [ "$(uname -m)" != aarch64 ] || skip "an arm64 machine needs no other"
  copy=$BATS_TEST_TMPDIR/copy
  bin=$BATS_TEST_TMPDIR/bin
  mkdir -p "$copy/test/tools" "$copy/build-arm64-system" "$bin"
  cp "$top"/test/tools/{arm64-machine,release-root,roots} "$copy/test/tools"
  machine=$copy/test/tools/arm64-machine
}

# made_machine SCRIPT: a finished machine, with SCRIPT instead of QEMU; $1 is the folder of the
# results.
made_machine() {
  cat >"$bin/qemu-system-aarch64" <<QEMU
#!/bin/bash
for word; do
  case \$word in *mount_tag=results,*) word=\${word#local,path=}; results=\${word%%,*} ;; esac
done
set -- "\$results"
echo "a line of the kernel" >"\$1/console"
$1
QEMU
  printf '#!/bin/sh\nexit 0\n' >"$bin/qemu-aarch64"
  chmod +x "$bin"/*
  PATH=$bin:$PATH
  "$machine" --origin >"$copy/build-arm64-system/made"
}

@test "arm64-machine: --help, and what is no command" {
  run -0 "$machine" --help
  [[ $output == *"arm64-machine RESULTS COMMAND..."* ]]
  run -64 "$machine"
  run -64 "$machine" results
  run -64 "$machine" --nonsense
  run -64 "$machine" --make more
  [ ! -e results ]
}

@test "arm64-machine: without QEMU, and on an arm64 machine, it does not run, and says why" {
  local program
  for program in bash dirname; do
    ln -s "$(type -P "$program")" "$bin/$program"
  done
  printf '#!/bin/sh\necho "$MACHINE"\n' >"$bin/uname"
  chmod +x "$bin/uname"
  MACHINE=x86_64 PATH=$bin run -77 "$machine" --make
  [ "$output" = "arm64-machine: qemu-system-aarch64 is not installed: sudo tools/deps arm64-system" ]
  MACHINE=aarch64 PATH=$bin run -77 "$machine" --make
  [ "$output" = "arm64-machine: this is an arm64 machine; it needs no other" ]
}

@test "arm64-machine: arguments, output and status of the command are passed on" {
  made_machine 'cd / && bash "$1/command" >"$1/output" 2>"$1/errors"; echo $? >"$1/status"'
  run -3 --separate-stderr "$machine" "$BATS_TEST_TMPDIR/results" sh -c 'printf "%s|" "$@"; echo wrong >&2; exit 3' - "a b" $'c\nd' '*'
  [ "$output" = $'a b|c\nd|*|' ]
  # shellcheck disable=SC2154 # of run
  [ "$stderr" = wrong ]
  [ "$(cat "$BATS_TEST_TMPDIR/results/top")" = "$copy" ]
  [ -z "$(find "$copy/build-arm64-system" -name 'tmp.*')" ]
}

@test "arm64-machine: a machine that dies, or does not end, is a failure that shows the last lines of its kernel" {
  made_machine 'echo "Kernel panic" >>"$1/console"'
  run -125 "$machine" "$BATS_TEST_TMPDIR/results" true
  [ "$output" = "a line of the kernel
Kernel panic
arm64-machine: the machine did not end by itself; see $BATS_TEST_TMPDIR/results/console" ]
  made_machine 'echo "ok 1 - early" >"$1/output"; exec sleep 60'
  GRAFT_MACHINE_LIMIT=1 run -125 "$machine" "$BATS_TEST_TMPDIR/results" true
  [ "$output" = "ok 1 - early
arm64-machine: the machine was stopped after 1 s" ]
}

@test "arm64-machine: the status of an earlier run is not used" {
  made_machine ':'
  mkdir "$BATS_TEST_TMPDIR/results"
  echo 0 >"$BATS_TEST_TMPDIR/results/status"
  echo "ok 1 - of yesterday" >"$BATS_TEST_TMPDIR/results/output"
  run -125 "$machine" "$BATS_TEST_TMPDIR/results" true
  [[ $output != *yesterday* ]]
}
