# SPDX-License-Identifier: Apache-2.0
# files: disk
# Hostile images with volumes, made from numbers, for each program (test/tools/trees). Three checks:
# no unsafe open, nothing changed outside the root's own mount, CPU within the budget.
#
#   GRAFT_SEEDS=1000-9999 bats test/integration/trees.bats     others than the usual ones, as many as one likes; those that fail are added to trees.seeds
#   test/tools/trees --describe 4711                           what one is

load lib.bash

setup_file() {
  start_host dgx-h100
  install_programs
}
teardown_file() { stop_host; }
setup() { work=$BATS_TEST_TMPDIR; }

install_programs() {
  find "$build/src/cli" -name '*nvidia-*' -type f -perm /100 -exec install -m 0755 {} "$BATS_FILE_TMPDIR/programs" \;
  printf 'int graft_trees;\n' | "${CC:-cc}" -shared -fPIC -nostdlib -Wl,-soname,libtemplate0000.so.1 -o "$BATS_FILE_TMPDIR/library.so" -x c -
}

# Empty places for mounts are made in a volume that the caller has put there, by low-level runtimes and by configure; distrust.bats holds that no link leads to them.
# trees NAME WORD...: on the simulated host; what fails is in $work/NAME.
trees() {
  local name=$1 budget=2
  shift
  # The sanitizers take their time.
  ! grep -q __asan_init "$cli" || budget=12
  mkdir "$work/$name.tree"
  on_host "$top/test/tools/trees" --programs "$BATS_FILE_TMPDIR/programs" --witness "$build/test/tools/witness" --library "$BATS_FILE_TMPDIR/library.so" \
    --work "$work/$name.tree" --budget "$budget" --places "$@" >"$work/$name" 2>&1 3>&-
}

# in_halves WORD...: two at a time, the numbers behind the words. With late mounts, each image is given to the runtime, with runc and a pid file.
in_halves() {
  local numbers=("${@: -1}") first last middle other modes=()
  [ -z "${GRAFT_LATE_MOUNTS:-}" ] || modes=(--program "runc jit-cdi, pid file" --program "runc cdi, pid file")
  IFS=- read -r first last <<<"${numbers[0]}"
  last=${last:-$first}
  middle=$(((first + last) / 2))
  set -- "${@:1:$#-1}"
  trees second "${modes[@]:2}" "$@" "$((middle + 1))-$last" &
  other=$!
  trees first "${modes[@]:0:2}" "$@" "$first-$middle" || :
  wait "$other" || :
  well first && well second
}

# well NAME: nothing is told of it.
well() {
  [ -s "$work/$1" ] || return 0
  cat "$work/$1"
  return 1
}

@test "images that an earlier version did wrong" {
  local seeds
  mapfile -t seeds < <(grep -o '^[0-9]*' "$top/test/integration/trees.seeds")
  [ "${#seeds[@]}" -gt 0 ]
  trees kept "${seeds[@]}" || :
  well kept
}

@test "five hundred images" {
  local keep=()
  [ -z "${GRAFT_SEEDS:-}" ] || keep=(--keep "$top/test/integration/trees.seeds")
  in_halves "${keep[@]}" "${GRAFT_SEEDS:-1-500}"
}

@test "a hundred images, as on an old kernel" {
  in_halves --old-kernel "$build/test/tools/enosys" 501-600
}

@test "the oracles see what they are for" {
  local name
  mkdir "$work/programs" "$work/image"
  # A shell that is ours opens nodes by name.
  cp "$(type -P busybox)" "$work/programs/busybox"
  mknod "$work/image/node" c 10 130
  mkfifo "$work/image/fifo"
  ln -s node "$work/image/link"
  echo text >"$work/image/file"
  for name in node fifo link file; do
    run "$build/test/tools/witness" --programs "$work/programs" --report "$work/report.$name" "$work/programs/busybox" cat "$work/image/$name"
  done
  [[ $(cat "$work/report.node") == "unsafe busybox: openat \"$work/image/node\": character device 10:130"$'\n'"cpu "* ]] ||
    [[ $(cat "$work/report.node") == "unsafe busybox: open \"$work/image/node\": character device 10:130"$'\n'"cpu "* ]]
  grep -q 'fifo": FIFO$' "$work/report.fifo"
  grep -q 'link": character device 10:130$' "$work/report.link"
  [[ $(cat "$work/report.file") == "cpu "* ]]
  # Those of the host are everybody's; a program that is not ours may do as it likes.
  run -0 "$build/test/tools/witness" --programs "$work/programs" --report "$work/report" "$work/programs/busybox" head -c 1 /dev/zero
  [[ $(cat "$work/report") == "cpu "* ]]
  "$build/test/tools/witness" --programs "$work/programs" --report "$work/report" timeout 1 cat "$work/image/fifo" || :
  [[ $(cat "$work/report") == "cpu "* ]]
  # A device on a mount with nodev is the kernel's to refuse; a FIFO is not.
  mkdir "$work/nodev"
  on_host unshare --mount --propagation private -- sh -c '
    mount --bind "$1/image" "$1/nodev" && mount -o remount,bind,nodev "$1/nodev"
    "$2" --programs "$1/programs" --report "$1/report.nodev" "$1/programs/busybox" cat "$1/nodev/node" || "$2" --programs "$1/programs" --report "$1/report.fifo" \
      "$1/programs/busybox" cat "$1/nodev/fifo"' - "$work" "$build/test/tools/witness" || :
  [[ $(cat "$work/report.nodev") == "cpu "* ]]
  grep -q 'fifo": FIFO$' "$work/report.fifo"
  # CPU, of children too.
  run -137 "$build/test/tools/witness" --programs "$work/programs" --report "$work/report" --cpu 0.5 "$work/programs/busybox" sh -c 'while :; do :; done & wait'
  [ "$(head -n 1 "$work/report")" = "over cpu" ]
}
