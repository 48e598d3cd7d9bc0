# SPDX-License-Identifier: Apache-2.0
# files: disk
# test/tools/emulated: what is skipped under qemu-user, and what is not.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  [ "$(uname -m)" != aarch64 ] || skip "nothing is emulated on arm64"
  # Stands for the emulator.
  printf '#!/bin/sh\nexec "$@"\n' >"$BATS_TEST_TMPDIR/qemu-aarch64"
  chmod +x "$BATS_TEST_TMPDIR/qemu-aarch64"
}

# program NAME STATUS LINE...: a test program that prints these lines.
program() {
  local file=$BATS_TEST_TMPDIR/$1 status=$2
  shift 2
  printf '#!/bin/sh\ncat <<END\n%s\nEND\nexit %s\n' "$(printf '%s\n' "$@")" "$status" >"$file"
  chmod +x "$file"
}

emulated() { "$top/test/tools/emulated" "$BATS_TEST_TMPDIR/qemu-aarch64" "$BATS_TEST_TMPDIR/$1"; }

@test "emulated: a test that is known to fail is skipped with its reason; another one fails" {
  program test_journal 2 1..3 "ok 1 - test_one" "not ok 2 - test_created" "not ok 3 - test_other"
  run -1 emulated test_journal
  [ "$output" = "1..3
ok 1 - test_one
ok 2 - test_created # SKIP qemu-user does not tell a mount's id
not ok 3 - test_other" ]
  program test_journal 1 1..2 "ok 1 - test_one" "not ok 2 - test_created"
  run -0 emulated test_journal
}

@test "emulated: what passes is no skip, and a program that dies is a failure" {
  program test_journal 0 1..1 "ok 1 - test_created"
  run -0 emulated test_journal
  [ "$output" = "1..1
ok 1 - test_created" ]
  printf '#!/bin/sh\nkill -SEGV $$\n' >"$BATS_TEST_TMPDIR/test_journal"
  run -1 emulated test_journal
}

@test "emulated: a program without tests that can run is not started; others run unchanged" {
  program test_to_oci 0 "never seen"
  run -0 emulated test_to_oci
  [ "$output" = "1..0 # SKIP qemu-user does not tell a mount's id" ]
  program test_arena 3 "not ok 1 - test_created"
  run -3 emulated test_arena
  [ "$output" = "not ok 1 - test_created" ]
}

@test "emulated: return addresses are signed in the golden tests alone, unless another processor was asked for" {
  printf '#!/bin/sh\necho "$QEMU_CPU"\n' >"$BATS_TEST_TMPDIR/test_x"
  chmod +x "$BATS_TEST_TMPDIR/test_x"
  run -0 env -u QEMU_CPU "$top/test/tools/emulated" "$BATS_TEST_TMPDIR/qemu-aarch64" "$BATS_TEST_TMPDIR/test_x"
  [ "$output" = max,pauth=off ]
  mv "$BATS_TEST_TMPDIR/test_x" "$BATS_TEST_TMPDIR/golden"
  run -0 env -u QEMU_CPU "$top/test/tools/emulated" "$BATS_TEST_TMPDIR/qemu-aarch64" "$BATS_TEST_TMPDIR/golden"
  [ "$output" = "max,pauth-impdef=on" ]
  run -0 env QEMU_CPU=cortex-a72 "$top/test/tools/emulated" "$BATS_TEST_TMPDIR/qemu-aarch64" "$BATS_TEST_TMPDIR/golden"
  [ "$output" = cortex-a72 ]
}
