# SPDX-License-Identifier: Apache-2.0
# files: disk
# test/gpu/run needs a machine with a GPU. What can be tested without one runs here on the simulated driver.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  cd "$top"
  build=${GRAFT_BUILD:-$top/build-debug}
  # Its times on the simulated driver say nothing.
  export CFLAGS=-O0
}

@test "without a driver it is one skipped test with its reason, and no failure" {
  [ ! -e /proc/driver/nvidia/version ] || skip "a driver is loaded: the test itself runs"
  run -0 test/gpu/run --tap
  [ "$output" = $'1..1\nok 1 - real-gpu # SKIP no NVIDIA driver is loaded on this machine' ]
}

@test "on the simulated driver every one of its tests passes, and its report says that it is simulated" {
  run -0 "$build/sim/graft-sim" run --topology dgx-h100 -- test/gpu/run --report "$BATS_TEST_TMPDIR/report.md"
  [[ $output == *"this is the simulated driver"* ]]
  [ "$(grep -c '^not ok' <<<"$output")" -eq 0 ]
  # Which tests a machine may skip is fixed: a device cgroup of version 1 is not everywhere.
  [ "$(grep '# SKIP' <<<"$output" | grep -vc 'no devices cgroup')" -eq 0 ]
  [ "$(grep -c '^ok' <<<"$output")" -ge 15 ]
  grep -q 'This is the simulated driver' "$BATS_TEST_TMPDIR/report.md"
  grep -q '^## Times' "$BATS_TEST_TMPDIR/report.md"
}

@test "it builds from carried packages alone: libyaml of the system is not looked at" {
  mkdir "$BATS_TEST_TMPDIR/carry"
  cd "$BATS_TEST_TMPDIR/carry"
  apt-get -q download libyaml-dev >/dev/null 2>&1 || {
    # Without the archive, the files that are installed make the same package.
    mkdir -p tree/DEBIAN
    dpkg -L libyaml-dev | while read -r file; do [ -d "$file" ] || cp -a --parents "$file" tree; done
    printf 'Package: libyaml-dev\nVersion: 1\nArchitecture: all\nMaintainer: test\nDescription: test\n' >tree/DEBIAN/control
    dpkg-deb -b tree libyaml-dev.deb >/dev/null
    rm -r tree
  }
  cd "$top"
  run -0 env "GRAFT_CARRY=$BATS_TEST_TMPDIR/carry" "$build/sim/graft-sim" run --topology single -- test/gpu/run
  [[ $output == *"ok 1 - it builds with a compiler and libyaml alone"* ]]
  [[ $output == *"ok"*"this machine has one GPU"* ]]
}
