# SPDX-License-Identifier: Apache-2.0
# files: disk
# The loader's cache, compared with ldconfig and the dynamic loaders of three generations of glibc.
# Roots of other releases are downloaded by test/tools/release-root; without a network those tests
# are skipped, each by its name.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  tool=$build/test/tools/ldcache_tool
  multiarch=$("${CC:-cc}" -print-multiarch)
  root=$BATS_TEST_TMPDIR/root
  folder=/opt/driver/lib
}

# list CACHE: what ldconfig reads in it, without the lines about the file and its maker.
list() {
  ldconfig -p -C "$1" | grep '=>'
}

# use_root SUITE: a copy of the root of that release, with the program that asks the loader for libcuda.so.1.
use_root() {
  local status=0 origin
  origin=$("$top/test/tools/release-root" glibc "$1") || status=$?
  [ "$status" -ne 77 ] || skip "the C library of Debian $1 cannot be had here"
  [ "$status" -eq 0 ]
  cp -a "$origin" "$root"
  "${CC:-cc}" -O2 -fno-stack-protector -nostartfiles -o "$root/where" "$top/test/tools/where.c" \
    -Wl,--no-as-needed "/lib/$multiarch/libdl.so.2"
  mkdir -p "$root$folder"
  make_library injected "$root$folder/libcuda.so.550.54.14"
  ln -s libcuda.so.550.54.14 "$root$folder/libcuda.so.1"
}

# make_library WORD FILE: a libcuda.so.1 that says WORD.
make_library() {
  "${CC:-cc}" -shared -fPIC -nostdlib -Wl,-soname,libcuda.so.1 -o "$2" \
    -x c - <<<"const char *const graft_where = \"$1\";"
}

# where: which libcuda.so.1 the root's loader takes, or "none".
where() {
  chroot "$root" /where 2>"$BATS_TEST_TMPDIR/where.err" || echo none
}

refresh() {
  "$tool" refresh "$root" "$@" "libcuda.so.1=$folder/libcuda.so.1"
}

# The loader finds the library after a refresh, whatever was there before, and still after the root's own ldconfig ran.
try_loader() {
  local format status
  [ "$(where)" = none ]
  for format in new compat; do
    chroot "$root" /sbin/ldconfig -c "$format"
    [ "$(where)" = none ]
    refresh merge
    [ "$(where)" = injected ]
    list "$root/etc/ld.so.cache" | grep -q "libcuda.so.1 .*=> $folder/libcuda.so.1"
  done

  # Nothing to merge into.
  rm "$root/etc/ld.so.cache"
  [ "$(where)" = none ]
  refresh auto
  [ "$(where)" = injected ]
  chroot "$root" /sbin/ldconfig
  [ "$(where)" = none ]
  printf 'no cache' >"$root/etc/ld.so.cache"
  refresh auto
  [ "$(where)" = injected ]

  # The image has one of its own, in a directory of its own configuration.
  make_library "the image's" "$root/usr/lib/$multiarch/libcuda.so.1"
  chroot "$root" /sbin/ldconfig
  [ "$(where)" = "the image's" ]
  refresh merge
  [ "$(where)" = injected ]
  rm "$root/usr/lib/$multiarch/libcuda.so.1"

  # A later ldconfig agrees.
  refresh merge -m "$folder"
  chroot "$root" /sbin/ldconfig
  [ "$(where)" = injected ]

  # Also where the image's configuration includes nothing.
  rm -r "$root/etc/ld.so.conf.d"
  printf '/usr/local/lib\n' >"$root/etc/ld.so.conf"
  chroot "$root" /sbin/ldconfig
  [ "$(where)" = none ]
  refresh merge -m "$folder"
  chroot "$root" /sbin/ldconfig
  [ "$(where)" = injected ]
  grep -qx /usr/local/lib "$root/etc/ld.so.conf"
}

# bats test_tags=arm64
@test "this machine's own cache survives reading and writing, by ldconfig -p" {
  "$tool" rewrite /etc/ld.so.cache "$BATS_TEST_TMPDIR/cache"
  diff <(list /etc/ld.so.cache) <(list "$BATS_TEST_TMPDIR/cache")
  [ "$(list /etc/ld.so.cache | wc -l)" -gt 20 ]
}

# bats test_tags=arm64
@test "the loader of an older glibc (2.31) takes the injected library" {
  use_root bullseye
  try_loader
}

# bats test_tags=arm64
@test "the loader of Debian 12's glibc (2.36) takes the injected library" {
  use_root bookworm
  try_loader
}

# bats test_tags=arm64
@test "the loader of a newer glibc (2.41) takes the injected library" {
  use_root trixie
  try_loader
}

# bats test_tags=old-kernel
@test "a library below glibc-hwcaps stays the loader's choice after merge and rebuild" {
  local level=x86-64-v2 state
  [ "$(uname -m)" = x86_64 ] || skip "levels of other machines have other names"
  use_root trixie
  # The one to be chosen is not ours; it answers to the same program.
  mkdir -p "$root/usr/lib/$multiarch/glibc-hwcaps/$level"
  make_library plain "$root/usr/lib/$multiarch/libcuda.so.1"
  make_library "$level" "$root/usr/lib/$multiarch/glibc-hwcaps/$level/libcuda.so.1"
  chroot "$root" /sbin/ldconfig
  [ "$(where)" = "$level" ]
  for state in merge rebuild; do
    "$tool" refresh "$root" "$state" "libother.so.1=/usr/lib/$multiarch/libother.so.1"
    [ "$(where)" = "$level" ]
    ldconfig -p -C "$root/etc/ld.so.cache" | grep -q "libcuda.so.1 .*$level"
  done
}

# bats test_tags=arm64
@test "an old cache without the new table is read, and the loader obeys what is written" {
  use_root bullseye
  chroot "$root" /sbin/ldconfig -c old
  refresh merge
  [ "$(where)" = injected ]
  list "$root/etc/ld.so.cache" | grep -q libc.so.6
}

# bats test_tags=old-kernel,arm64
@test "a full rebuild of a Debian root finds what its ldconfig finds, and makes the same links" {
  local debian ours=$BATS_TEST_TMPDIR/ours
  debian=$("$top/test/tools/roots" debian)
  for directory in "$root" "$ours"; do
    mkdir -p "$directory"
    tar -C "$debian" -c etc usr/lib usr/lib64 usr/sbin lib lib64 sbin | tar -C "$directory" -x
    rm -f "$directory/etc/ld.so.cache"
    # Something for each to do: links that are missing, wrong, dangling.
    rm "$directory/usr/lib/$multiarch"/libz.so.1
    ln -sfn libcrypt.so.9 "$directory/usr/lib/$multiarch/libcrypt.so.1"
    ln -s libgone.so.1.0 "$directory/usr/lib/$multiarch/libgone.so.1"
  done
  mkdir -p "$root/var/cache/ldconfig"
  chroot "$root" /sbin/ldconfig
  "$tool" refresh "$ours" rebuild
  # The loader itself, which Debian's ldconfig does not list where it lies in /lib64.
  diff <(list "$root/etc/ld.so.cache" | grep -v ld-linux) <(list "$ours/etc/ld.so.cache" | grep -v ld-linux)
  diff <(cd "$root" && find usr/lib -type l -printf '%p -> %l\n' | sort) <(cd "$ours" && find usr/lib -type l -printf '%p -> %l\n' | sort)
  [ "$(readlink "$ours/usr/lib/$multiarch/libz.so.1")" != "" ]
}

# bats test_tags=old-kernel,arm64
@test "with an out-of-date cache in a Debian root, ours and ldconfig's are the same" {
  local debian ours=$BATS_TEST_TMPDIR/ours directory library
  debian=$("$top/test/tools/roots" debian)
  for directory in "$root" "$ours"; do
    mkdir -p "$directory"
    tar -C "$debian" -c etc usr/lib usr/lib64 usr/sbin lib lib64 sbin | tar -C "$directory" -x
    chroot "$directory" /sbin/ldconfig
    # What layers of an image do: a newer version beside the old, one in its place, libraries that come and go, a development link.
    library=$directory/usr/lib/$multiarch
    cp "$library"/libz.so.1.* "$library/libz.so.1.99"
    mv "$library"/liblz4.so.1.* "$library/liblz4.so.1.0.1"
    rm "$library"/libaudit.so.1*
    make_library "the image's" "$library/libcuda.so.550.54.14"
    : >"$library/libcuda.so.1"
    ln -s libbz2.so.1.0 "$library/libbz2.so"
    mkdir -p "$library/glibc-hwcaps/x86-64-v2"
    cp "$library/libm.so.6" "$library/glibc-hwcaps/x86-64-v2/libm.so.6"
  done
  mkdir -p "$root/var/cache/ldconfig"
  chroot "$root" /sbin/ldconfig
  "$tool" refresh "$ours" rebuild
  diff <(list "$root/etc/ld.so.cache" | grep -v ld-linux) <(list "$ours/etc/ld.so.cache" | grep -v ld-linux)
  diff <(cd "$root" && find usr/lib -type l -printf '%p -> %l\n' | sort) <(cd "$ours" && find usr/lib -type l -printf '%p -> %l\n' | sort)
  [ "$(readlink "$ours/usr/lib/$multiarch/libz.so.1")" = libz.so.1.99 ]
  [ "$(readlink "$ours/usr/lib/$multiarch/liblz4.so.1")" = liblz4.so.1.0.1 ]
}

# bats test_tags=old-kernel
@test "the refresh of a Debian root reads what is new in it, and nothing else" {
  local debian library
  debian=$("$top/test/tools/roots" debian)
  mkdir -p "$root"
  tar -C "$debian" -c etc usr/lib usr/lib64 lib lib64 | tar -C "$root" -x
  "$tool" refresh "$root" rebuild
  make_library anew "$root/usr/lib/$multiarch/libcuda.so.550.54.14"
  run -0 strace -f -e trace=pread64 -y -o "$BATS_TEST_TMPDIR/trace" "$tool" refresh "$root" rebuild
  # The reader's copy of the mount has no place on the host: paths begin at the root.
  library=$(awk 'NR == 1 { own = $1 } $1 != own' "$BATS_TEST_TMPDIR/trace" | sed -n 's|.*<\(/[^>]*\)>, .*|\1|p' | sed "s|^$root||" | sort -u)
  echo "$library"
  # Besides it what is not listed where it lies: the loader, by its name in /lib64, and a library that nobody's link names.
  [ "$(grep -c . <<<"$library")" -le 3 ]
  grep -q libcuda.so.550 <<<"$library"
}

# bats test_tags=old-kernel
@test "the refresh of a Debian root starts no program, one reader, and needs little time and memory" {
  local debian
  debian=$("$top/test/tools/roots" debian)
  mkdir -p "$root"
  tar -C "$debian" -c etc usr/lib usr/lib64 lib lib64 | tar -C "$root" -x
  "$tool" refresh "$root" rebuild
  run -0 strace -f -c -e trace=execve,clone,clone3,fork,vfork "$tool" refresh "$root" auto "libcuda.so.1=/usr/lib/$multiarch/libcuda.so.1"
  # strace counts the tool's own execve.
  [[ $output == *" 1 "*execve* ]]
  [ "$(awk '$NF ~ /^(clone3?|fork|vfork)$/ { n += $4 } END { print n + 0 }' <<<"$output")" -eq 1 ]
  run -0 --separate-stderr "$tool" refresh "$root" auto "libcuda.so.1=/usr/lib/$multiarch/libcuda.so.1"
  echo "# $output" >&3
  [[ $output =~ "peak "([0-9]+) ]]
  # A sanitizer's own memory is not the tool's.
  grep -q __asan_init "$tool" || [ "${BASH_REMATCH[1]}" -lt 4096 ]
}
