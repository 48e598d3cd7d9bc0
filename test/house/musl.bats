# SPDX-License-Identifier: Apache-2.0
# files: disk
# The static programs can be built on older and newer releases: with their musl, and the compiler of
# this one.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() { top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd); }

# with_musl SUITE TARGET...: builds them with that release's musl instead of this machine's, and
# runs them.
with_musl() {
  local suite=$1 root status=0 program
  shift
  root=$("$top/test/tools/release-root" musl "$suite" 2>"$BATS_TEST_TMPDIR/why") || status=$?
  [ $status -ne 77 ] || skip "$(tail -n 1 "$BATS_TEST_TMPDIR/why")"
  [ $status -eq 0 ] || { cat "$BATS_TEST_TMPDIR/why" && return 1; }
  git -C "$top" ls-files --cached --others --exclude-standard -z | (cd "$top" && xargs -0 cp --parents -t "$BATS_TEST_TMPDIR" 2>/dev/null) || true
  cd "$BATS_TEST_TMPDIR"
  # shellcheck disable=SC2016
  run unshare --mount --propagation private -- sh -ec '
    root=$1 suite=$2
    shift 2
    machine=$(uname -m)-linux-musl
    mount --bind "$root/usr/include/$machine" "/usr/include/$machine"
    mount --bind "$root/usr/lib/$machine" "/usr/lib/$machine"
    meson setup "B-$suite" -Dtests=disabled -Dmusl=enabled -Doptimization=0 -Ddebug=false
    exec ninja -C "B-$suite" "$@"' sh "$root" "$suite" "$@"
  [ "$status" -eq 0 ] || { printf '%s\n' "$output" | grep -E -A 6 ' error: |undefined reference|FAILED'; return 1; }
  for program; do
    run -0 "$BATS_TEST_TMPDIR/B-$suite/$program" --version
    run ! grep -q INTERP <(readelf -lW "$BATS_TEST_TMPDIR/B-$suite/$program")
  done
}
programs=(src/cli/runtime/nvidia-container-runtime src/cli/cdi_hook/nvidia-cdi-hook src/cli/ctk/nvidia-ctk src/cli/hook/nvidia-container-runtime-hook)
@test "the static programs can be built with musl of Ubuntu 22.04 and Debian 11 (1.2.2)" {
  with_musl bullseye "${programs[@]}"
}
@test "the static programs can be built with musl of Debian 13 (1.2.5)" {
  with_musl trixie "${programs[@]}"
}
