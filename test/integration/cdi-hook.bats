# SPDX-License-Identifier: Apache-2.0
# nvidia-cdi-hook: each hook that container specifications name, called as a runtime calls it; hostile images, callers and faults.

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }

hook_program=$build/src/cli/cdi_hook/nvidia-cdi-hook

setup() {
  test_setup
  mkdir -p "$root" "$bundle" "$work/outside"
  on_host mount -t tmpfs -o mode=755 tmpfs "$root"
  # The same root as this process can reach it.
  at=/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/root$root
  mkdir -p "$at"/{etc,usr/lib,usr/bin,dev,proc,run,tmp}
  jq -n --arg root "$root" '{ociVersion: "1.0.2", root: {path: $root}}' >"$bundle/config.json"
  state=$(jq -cn --arg bundle "$bundle" '{ociVersion: "1.0.2", id: "x", pid: 1, status: "creating", bundle: $bundle}')
  printf 'secret of the host\n' >"$work/outside/secret"
}
teardown() { test_teardown; }

# hook ARGUMENT...: in a mount namespace of its own, with the working directory in the image; what is mounted there is listed in $work/mounts.
hook() {
  printf '%s' "$state" >"$work/state"
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    cd "$1" && state=$2 mounts=$3 && shift 3
    "$@" <"$state"
    status=$?
    cat /proc/self/mountinfo >"$mounts"
    exit $status' - "$root" "$work/state" "$work/mounts" "${old_kernel[@]}" "$hook_program" "$@"
}

# What is in the root: names, types, modes, owners, contents.
tree() {
  (cd "$at" && find . -mindepth 1 -printf '%p %y %#m %U:%G %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 -r sha256sum)
}

succeeds() { [ "$status" -eq 0 ] || die "$output"; }
# fails TEXT: with exit status 1 and this in one line of the log.
fails() {
  [ "$status" -eq 1 ] || die "exit status $status: $output" || return
  grep -qF -- "level=error" <<<"$output" || die "$output" || return
  grep -F "level=error" <<<"$output" | grep -qF -- "$1" || die "$output"
}
says() { [[ $output == *"$1"* ]] || die "$output"; }
link() { readlink "$at/$1"; }

# Nothing is mounted below the root.
no_mounts() {
  ! awk '{ print $5 }' "$work/mounts" | grep -qF "$root/" || die "mounts are left: $(cat "$work/mounts")"
}
is_static() { ! readelf -lW "$hook_program" | grep -q INTERP; }

# ---- arguments ----

@test "a tmpfs of the host at /dev stays as it is; the container's own gets its links" {
  local source
  on_host mount -t tmpfs tmpfs "$work/outside"
  on_host mkdir -m 700 "$work/outside/part"
  for source in "$work/outside" "$work/outside/part"; do
    on_host mount --bind "$source" "$root/dev"
    hook create-symlinks --link a::/dev/a --link a::/dev/char/a
    succeeds
    says 'not done: symlink /dev/a: it would lie on another mount than the container'"'"'s root'
    hook chmod --mode 755 --path /dev
    succeeds
    says 'not changing the mode of /dev: it is not on the mount of the root'
    [ "$(on_host find "$work/outside" -mindepth 1 -printf '%P %m\n')" = 'part 700' ] || die "$(on_host find "$work/outside" -ls)" || return
    on_host umount "$root/dev"
  done
  on_host umount "$work/outside"
  on_host mount -t tmpfs -o mode=700 tmpfs "$root/dev"
  # As engines cover files below /proc.
  on_host touch "$root/dev/null" "$root/proc/covered"
  on_host mount --bind "$root/dev/null" "$root/proc/covered"
  hook create-symlinks --link a::/dev/a --link a::/dev/char/a
  succeeds
  hook chmod --mode 755 --path /dev
  succeeds
  [ "$(link dev/a)$(link dev/char/a)$(stat -c %a "$at/dev")" = aa755 ]
}

# Each step of the sequence needs readers of its own, and each may use half of what is left. If what one used were unknown, the next would have half as much.
@test "a caller that ignores SIGCHLD: what the reader used is known" {
  local trace=(strace -f -o "$work/trace" -e "trace=timer_settime" env --ignore-signal=CHLD) old_kernel=() program=$hook_program hook_program
  for hook_program in "$program" hook; do
    old_kernel=("${trace[@]}")
    [ "$hook_program" = "$program" ] || old_kernel+=("$build/src/cli/ctk/nvidia-ctk")
    hook sequence update-ldcache --folder /usr/lib --then update-ldcache --folder /usr/lib
    succeeds
    sed -n 's/.*it_value={tv_sec=\([0-9]*\), tv_nsec=\([0-9]*\)}.*/\1 \2/p' "$work/trace" | awk '{ left = $1 + $2 / 1e9 } NR == 1 { first = left } END { exit NR < 2 || left < first * 0.8 }' ||
      die "$(cat "$work/trace")"
  done
}

# makes_links YES: the hook makes the directory at the container's /dev, or (YES empty) leaves /dev as it is.
makes_links() {
  hook create-symlinks --link a::/dev/char/a
  succeeds
  [ "$(link dev/char/a)" = "${1:+a}" ] || die "$output" || return
  rm -rf "$at/dev/char"
}

@test "config.json says what is at /dev, and the host's table of mounts is not read" {
  local old_kernel=(strace -o "$work/trace" -e "trace=open,openat,openat2") mount
  on_host mount -t tmpfs tmpfs "$work/outside"
  on_host mount -t tmpfs tmpfs "$root/dev"
  jq '.mounts = [{destination: "/proc", type: "proc", source: "proc"}, {destination: "/dev/", type: "tmpfs", source: "tmpfs", options: ["nosuid"]},
    {destination: "/data", type: "bind", source: "/srv", options: ["rbind"]}]' "$bundle/config.json" >"$work/plain"
  cp "$work/plain" "$bundle/config.json"
  makes_links yes
  ! grep mountinfo "$work/trace" || die "it was read"
  # What it does not say, the table says.
  for mount in '{destination: "/dev", type: "tmpfs", source: "/srv", options: ["bind"]}' '{destination: "/x", type: "devtmpfs", source: "devtmpfs"}' \
    '{destination: "/x", source: "/proc/self/fd/4", options: ["rbind"]}' '{destination: "/x", source: "srv", options: ["rbind"]}'; do
    jq ".mounts += [$mount]" "$work/plain" >"$bundle/config.json"
    makes_links yes
    grep -q mountinfo "$work/trace" || die "$mount" || return
  done
  # Nor does it on an old kernel where a source cannot be found, or may be over the root.
  old_kernel=("$build/test/tools/enosys" --only statmount "${old_kernel[@]}")
  cp "$work/plain" "$bundle/config.json"
  makes_links yes
  ! grep mountinfo "$work/trace" || die "it was read"
  for mount in /nonexistent "$root"; do
    jq --arg source "$mount" '.mounts += [{destination: "/x", source: $source, options: ["rbind"]}]' "$work/plain" >"$bundle/config.json"
    makes_links yes
    grep -q mountinfo "$work/trace" || die "$mount" || return
  done
  # A link of the image has led the volume over the tmpfs.
  jq --arg source "$work/outside" '.mounts += [{destination: "/data", source: $source, type: "bind", options: ["rbind"]}]' "$work/plain" >"$bundle/config.json"
  on_host mount --bind "$work/outside" "$root/dev"
  makes_links ''
  says "symlink $root/dev/char/a is left out: it would not be on the mount of the container's root"
  old_kernel=()
  makes_links ''
  [ -z "$(on_host ls "$work/outside")" ]
}

@test "links without end: the hook stops" {
  local words=() i
  # 100,000 links, which differ.
  for i in $(seq 0 9); do
    words+=(--link "$(seq -f "a::/%.0f" -s , "$((100000 + i * 10000))" "$((109999 + i * 10000))")")
  done
  hook create-symlinks "${words[@]}"
  fails 'msg="failed to create links: checking 100000 links takes too long. The named object exceeds what Graft reads or creates."'
  [ ! -e "$at/100000" ]
}

@test "what is not known is a warning and no failure" {
  hook
  succeeds
  says 'level=warning msg="No CDI hook specified"'
  hook make-coffee --strong x
  succeeds
  says 'level=warning msg="Unsupported CDI hook: make-coffee"'
  # Options of newer releases before the name of a hook, with a value or without one: the hook runs.
  hook --strong --debug --sugar=2 -x y create-symlinks --link a::/usr/lib/a
  succeeds
  says 'level=warning msg="Ignoring unknown option: --strong"'
  says 'level=warning msg="Ignoring unknown option: --sugar=2"'
  says 'level=warning msg="Ignoring unknown option: -x"'
  says level=debug
  [ "$(readlink "$at/usr/lib/a")" = a ]
  hook --quiet --strong create-symlinks --link b::/usr/lib/a
  succeeds
  [ -z "$output" ]
  [ "$(readlink "$at/usr/lib/a")" = b ]
  hook --strong make-coffee
  succeeds
  says 'level=warning msg="No CDI hook specified"'
  hook noop
  succeeds
  [ -z "$output" ]
}

@test "a known hook with a wrong option is a failure" {
  hook create-symlinks --strong
  fails 'flag provided but not defined: -strong'
  says 'Incorrect Usage: flag provided but not defined: -strong'
  hook create-symlinks --lnk a
  fails 'flag provided but not defined: -lnk'
  says $'Incorrect Usage: flag provided but not defined: -lnk\nDid you mean \'--link\'?\n'
  hook update-ldcache --folder
  fails 'flag needs an argument: --folder'
}

@test "version, help, quiet, debug" {
  hook --version
  succeeds
  [[ $output == "NVIDIA CDI Hook version "* ]]
  hook --help
  succeeds
  for name in create-symlinks update-ldcache enable-cuda-compat disable-device-node-modification update-application-profile chmod apply; do
    says "$name"
  done
  hook update-ldcache --help
  succeeds
  says --container-spec
  hook --quiet make-coffee
  succeeds
  [ -z "$output" ]
  NVIDIA_CTK_QUIET=true hook make-coffee
  [ -z "$output" ]
  NVIDIA_CTK_QUIET=true NVIDIA_CTK_DEBUG=true hook --debug create-symlinks --link a::/usr/lib/a
  [ -z "$output" ]
  NVIDIA_CTK_DEBUG=true hook create-symlinks --link b::/usr/lib/a
  says level=debug
  NVIDIA_CTK_DEBUG=false hook create-symlinks --link c::/usr/lib/a
  [ -z "$output" ]
}

# ---- the container's state ----

@test "the state comes from standard input or from a file" {
  printf '%s' "$state" >"$work/state.json"
  state=
  hook create-symlinks --container-spec "$work/state.json" --link a::/usr/lib/a
  succeeds
  [ "$(link usr/lib/a)" = a ]
  hook create-symlinks --container-spec - --link a::/usr/lib/b
  fails 'failed to load container state'
  # A relative name would be one of the image.
  cp "$work/state.json" "$at/state.json"
  hook create-symlinks --container-spec state.json --link a::/usr/lib/b
  fails 'must be absolute'
}

@test "a state or a bundle that is wrong says what is wrong with it" {
  state='{"bundle": "'
  hook create-symlinks --link a::/b
  fails 'failed to load container state: could not decode container state'
  state='{"bundle": "relative"}'
  hook create-symlinks --link a::/b
  fails 'failed to determined container root'
  state='{"bundle": "/nonexistent"}'
  hook create-symlinks --link a::/b
  fails 'failed to open OCI spec file: /nonexistent/config.json: no such file or directory'
  state=$(jq -cn --arg bundle "$bundle" '{bundle: $bundle}')
  printf '{' >"$bundle/config.json"
  hook create-symlinks --link a::/b
  fails 'failed to load minimal OCI spec'
  printf '{}' >"$bundle/config.json"
  hook create-symlinks --link a::/b
  fails 'empty container root detected'
  printf '{"root": {"path": "/nonexistent"}}' >"$bundle/config.json"
  hook create-symlinks --link a::/b
  fails 'path error: /nonexistent: no such file or directory'
  # A root that is relative to the bundle, unknown members, a member of another type.
  ln -s "$at" "$bundle/rootfs"
  printf '{"root": {"path": "rootfs", "future": [1]}, "process": 7, "x": 18446744073709551615}' >"$bundle/config.json"
  hook create-symlinks --link a::/usr/lib/a
  succeeds
  [ "$(link usr/lib/a)" = a ]
}

@test "the host's own root is refused, by whatever name" {
  for path in / /. /tmp/.. /proc/self/root; do
    jq -n --arg root "$path" '{root: {path: $root}}' >"$bundle/config.json"
    for words in "update-ldcache --folder /opt" "create-symlinks --link a::/graft-must-not-be-here"; do
      # shellcheck disable=SC2086
      hook $words
      fails 'leads to /'
      # shellcheck disable=SC2086
      hook sequence --rootfs "$path" $words
      fails 'leads to /'
    done
    hook apply --rootfs "$path" --plan "$(plan '{kind: "symlink", target: "/graft-must-not-be-here", content: "a"}')"
    fails 'leads to /'
  done
  on_host test ! -e /graft-must-not-be-here
}

# ---- the root as an option ----

# told INPUT HOOK...: as hook() calls it, with a standard input that is closed, empty, nonsense, or
# open for writing by a process that never writes.
told() {
  [ -p "$work/never" ] || mkfifo "$work/never"
  echo nonsense >"$work/nonsense"
  # shellcheck disable=SC2016
  run on_host bash -c '
    cd "$1" && input=$2 work=$3 && shift 3
    case $input in
    closed) exec <&- ;;
    empty) exec </dev/null ;;
    nonsense) exec <"$work/nonsense" ;;
    never) exec 9<>"$work/never" <"$work/never" ;;
    esac
    timeout "$@"' - "$root" "$1" "$work" "${patience:-20}" "${old_kernel[@]}" "$hook_program" "${@:2}"
}

@test "with --rootfs, neither standard input nor a bundle is read" {
  local input
  rm -r "$bundle"
  for input in closed empty nonsense never; do
    told "$input" sequence --rootfs "$root" create-symlinks --link "a::/usr/lib/$input" --then update-ldcache --folder "/opt/$input"
    succeeds
    [ "$(link "usr/lib/$input")" = a ]
    grep -qx "/opt/$input" "$at/etc/ld.so.conf.d/00-graft.conf"
    told "$input" apply --plan "$(plan '{kind: "symlink", target: "/usr/lib/planned-'"$input"'", content: "b"}')" --rootfs "$root"
    succeeds
    [ "$(link "usr/lib/planned-$input")" = b ]
    plan '{kind: "directory", target: "/'"$input"'", mode: 493}' >"$work/plan.json"
    told "$input" apply --plan-file "$work/plan.json" "--rootfs=$root"
    succeeds
    [ -d "$at/$input" ]
  done
  # Without it, they wait for standard input.
  patience=1 told never create-symlinks --link a::/usr/lib/untold
  [ "$status" -eq 124 ]
  told empty create-symlinks --link a::/usr/lib/untold
  fails 'failed to load container state'
  [ ! -L "$at/usr/lib/untold" ]
}

@test "--rootfs must be the absolute path of a directory" {
  local path
  mkdir "$at/relative"
  echo >"$work/file"
  tree >"$work/before"
  for path in relative . ./ .. "${root#/}" ''; do
    told never sequence --rootfs "$path" create-symlinks --link a::/usr/lib/a
    fails "failed to create links: the container's root must be an absolute path: '$path'"
    told never apply --rootfs "$path" --plan "$(plan '{kind: "symlink", target: "/usr/lib/a", content: "b"}')"
    fails "the container's root must be an absolute path: '$path'"
  done
  told never sequence --rootfs /nonexistent update-ldcache
  fails 'failed to determined container root: path error: /nonexistent: no such file or directory'
  told never apply --rootfs "$work/file" --plan "$(plan '{kind: "symlink", target: "/usr/lib/a", content: "b"}')"
  fails "path error: $work/file: not a directory"
  told never sequence --rootfs
  fails 'flag needs an argument: --rootfs'
  # Hooks of specifications have no such option, in a sequence neither.
  told never create-symlinks --rootfs "$root" --link a::/usr/lib/a
  fails 'flag provided but not defined: -rootfs'
  told never sequence --rootfs "$root" create-symlinks --rootfs "$root" --link a::/usr/lib/a
  fails 'flag provided but not defined: -rootfs'
  tree | diff "$work/before" -
}

@test "with --rootfs, a state in a file counts, for its own hook" {
  printf '%s' "$state" >"$work/state.json"
  told never sequence --rootfs /nonexistent create-symlinks --container-spec "$work/state.json" --link a::/usr/lib/first --then \
    create-symlinks --link b::/usr/lib/second
  fails 'path error: /nonexistent'
  [ "$(link usr/lib/first)" = a ]
  [ ! -L "$at/usr/lib/second" ]
}

# ---- create-symlinks ----

# bats test_tags=old-kernel
@test "create-symlinks: made, corrected, kept" {
  mkdir -p "$at/lib" "$at/lib/different-target"
  ln -s / "$at/lib/foo"
  ln -s ../../ "$at/lib/up"
  ln -s libsame.so.1 "$at/lib/libsame.so"
  inode=$(stat -c %i "$at/lib/libsame.so")
  ln -s different-target "$at/lib/libother.so"
  echo image >"$at/lib/libfile.so"
  hook create-symlinks --link libfoo.so.1::/lib/foo/libfoo.so --link ../libfoo.so.1::/lib/up/libup.so \
    --link libsame.so.1::/lib/libsame.so,libother.so.1::/lib/libother.so --link /abs/olute::/lib/libfile.so \
    --link x::/new/parents/x --link x::no/slash --link libself::/lib/libself --link /lib/libkept::/lib/libkept
  succeeds
  [ "$(link libfoo.so)" = libfoo.so.1 ]
  [ "$(link libup.so)" = ../libfoo.so.1 ]
  [ "$(link lib/libsame.so)" = libsame.so.1 ]
  [ "$(stat -c %i "$at/lib/libsame.so")" = "$inode" ]
  [ "$(link lib/libother.so)" = libother.so.1 ]
  [ -d "$at/lib/different-target" ]
  [ "$(link lib/libfile.so)" = /abs/olute ]
  [ "$(link new/parents/x)" = x ]
  [ "$(stat -c %a "$at/new/parents")" = 755 ]
  [ "$(link no/slash)" = x ]
  # Again: nothing changes.
  tree >"$work/before"
  hook create-symlinks --link libfoo.so.1::/lib/foo/libfoo.so --link libother.so.1::/lib/libother.so
  succeeds
  tree | diff "$work/before" -
  # A file that would become a link to itself stays a file.
  echo image >"$at/lib/libreal"
  hook create-symlinks --link /lib/libreal::/lib/libreal
  succeeds
  [ -f "$at/lib/libreal" ] && [ ! -L "$at/lib/libreal" ]
  hook create-symlinks
  succeeds
}

# bats test_tags=old-kernel
@test "create-symlinks: what cannot be done undoes the rest" {
  mkdir -p "$at/lib/directory"
  tree >"$work/before"
  hook create-symlinks --link a::/new/a --link b::/lib/b --link c::/lib/directory --link d::/lib/d
  fails 'failed to create link [c /lib/directory]'
  tree | diff "$work/before" -
  for specification in a 'a:/b' 'a::/b::/c' ''; do
    hook create-symlinks --link x::/lib/x --link "$specification"
    fails "invalid symlink specification $specification"
    tree | diff "$work/before" -
  done
}

# bats test_tags=old-kernel
@test "create-symlinks: nothing outside of the root, wherever the image's links lead" {
  mkdir -p "$at/lib"
  ln -s "$work/outside" "$at/lib/absolute"
  ln -s ../../../../../../../../../../"$work/outside" "$at/lib/relative"
  ln -s /proc/self/root"$work/outside" "$at/lib/magic"
  ln -s /proc/1/cwd "$at/lib/cwd"
  find "$work/outside" -printf '%P %y %T@\n' >"$work/before"
  for name in absolute relative magic cwd; do
    hook create-symlinks --link "x::/lib/$name/x"
    [ "$status" -le 1 ]
  done
  find "$work/outside" -printf '%P %y %T@\n' | diff "$work/before" -
  [ "$(link lib/absolute)" = "$work/outside" ]
}

# ---- mount-files ----

# mounted: what is mounted below the root: source, place, flags.
mounted() { awk -v root="$root/" 'index($5, root) == 1 { print $4, substr($5, length(root)), $6 }' "$work/mounts" | sort; }

# bats test_tags=old-kernel
@test "mount-files: files of the host at their places, read-only" {
  local file=$work/outside/secret
  ln -s lib "$at/usr/link"
  ln -s /usr/lib/real "$at/usr/lib/alias"
  echo image >"$at/usr/lib/real"
  hook mount-files --file "$file::/usr/lib/a.so" --file "$file::/new/parents/b,$file::/usr/link/c" --file "$file::/usr/lib/alias" --file "$file"
  succeeds
  [ "$(mounted | cut -d ' ' -f 2 | xargs)" = "$(printf '%s\n' /new/parents/b /usr/lib/a.so /usr/lib/c /usr/lib/real "$file" | sort | xargs)" ] ||
    die "$(mounted)" || return
  [ "$(mounted | cut -d ' ' -f 3 | sort -u)" = ro,nosuid,nodev,relatime ] || die "$(mounted)" || return
  [ "$(mounted | cut -d ' ' -f 1 | sed 's|.*/outside/|outside/|' | sort -u)" = outside/secret ] || die "$(mounted)" || return
  # What a container of this root finds where nothing is mounted.
  [ ! -s "$at/usr/lib/a.so" ]
  [ "$(cat "$at/usr/lib/real")" = image ]
  hook mount-files
  succeeds
}

# bats test_tags=old-kernel
@test "mount-files: what cannot be mounted is a failure, and nothing stays" {
  local file=$work/outside/secret way said
  tree >"$work/before"
  ln -s "$file" "$work/link"
  mkdir "$work/directory"
  while IFS='|' read -r way said; do
    hook mount-files --file "$file::/new/a" --file "$way"
    fails "failed to mount files: $said"
    no_mounts
    tree | diff "$work/before" -
  done <<WAYS
$work/missing::/a|
$work/link::/a|
$work/directory::/a|unexpected source file mode
/dev/null::/a|unexpected source file mode
$file::/etc|
relative::/a|invalid file specification relative::/a
$file::a|invalid file specification $file::a
$file::/a::/b|invalid file specification $file::/a::/b
WAYS
}

# bats test_tags=old-kernel
@test "mount-files: nothing outside of the root or in a volume, wherever the image's links lead" {
  local name file=$work/outside/secret
  mkdir -p "$at/lib" "$work/volume"
  ln -s "$work/outside" "$at/lib/absolute"
  ln -s ../../../../../../../../../../"$work/outside" "$at/lib/relative"
  ln -s /proc/self/root"$work/outside" "$at/lib/magic"
  ln -s /proc/1/cwd "$at/lib/cwd"
  ln -s "$work/outside/new" "$at/lib/dangling"
  find "$work/outside" -printf '%P %y %T@\n' >"$work/before"
  for name in absolute/x relative/x magic/x cwd/x dangling relative/secret; do
    hook mount-files --file "$file::/lib/$name"
    [ "$status" -le 1 ]
    ! awk -v root="$root/" '$4 ~ "/outside/secret" && index($5, root) != 1' "$work/mounts" | grep . || return
  done
  find "$work/outside" -printf '%P %y %T@\n' | diff "$work/before" -
  mkdir "$at/volume"
  echo theirs >"$work/volume/there"
  ln -s /volume/new "$at/lib/into"
  ln -s /volume "$at/lib/volume"
  find "$work/volume" -printf '%P %y %T@\n' >"$work/before"
  on_host mount --bind "$work/volume" "$root/volume"
  hook mount-files --file "$file::/lib/into" --file "$file::/lib/volume/x" --file "$file::/volume/there" --file "$file::/usr/lib/a.so"
  on_host umount "$root/volume"
  succeeds
  says "/lib/volume/x is left out: it would not be on the mount of the container's root"
  says "/lib/into is left out: it would not be on the mount of the container's root"
  [ "$(mounted | cut -d ' ' -f 2 | grep -v '^/volume$' | xargs)" = "/usr/lib/a.so /volume/there" ] || die "$(mounted)" || return
  find "$work/volume" -printf '%P %y %T@\n' | diff "$work/before" -
}

# ---- update-ldcache ----

# bats test_tags=old-kernel
@test "update-ldcache: a library in a folder of its own is found, before the image's own" {
  on_host umount "$root"
  make_root debian overlay
  mkdir -p "$at/opt/driver"
  cp "$at"/lib/x86_64-linux-gnu/libz.so.1 "$at/opt/driver/libz.so.1.99"
  hook update-ldcache --ldconfig-path /sbin/ldconfig --folder /opt/driver --folder /opt/driver/ --folder /usr/lib/x86_64-linux-gnu
  succeeds
  [ "$(on_host chroot "$root" ldconfig -p | sed -n 's/.*libz.so.1 (.*=> //p' | head -1)" = /opt/driver/libz.so.1 ]
  [ "$(link opt/driver/libz.so.1)" = libz.so.1.99 ]
  # By the loader too, and after an ldconfig in the container.
  on_host chroot "$root" /sbin/ldconfig
  [ "$(on_host chroot "$root" ldconfig -p | sed -n 's/.*libz.so.1 (.*=> //p' | head -1)" = /opt/driver/libz.so.1 ]
  [ "$(grep -c '^/' "$at/etc/ld.so.conf.d/00-graft.conf")" = 1 ]
  # Twice: no second file.
  hook update-ldcache --folder /opt/driver
  tree >"$work/before"
  hook update-ldcache --folder /opt/driver
  succeeds
  tree | diff "$work/before" -
}

# bats test_tags=old-kernel
@test "update-ldcache: what the image has anew is found, and nothing of it is run" {
  on_host umount "$root"
  make_root debian overlay
  cp "$at"/lib/x86_64-linux-gnu/libz.so.1 "$at/usr/local/lib/libnew.so.5"
  printf '#!/bin/sh\necho run >/ran\n' >"$at/sbin/ldconfig"
  hook update-ldcache
  succeeds
  grep -q /usr/local/lib/libz.so.1 "$at/etc/ld.so.cache"
  [ ! -e "$at/ran" ]
}

# bats test_tags=old-kernel
@test "update-ldcache: an image without configuration, without ldconfig, without proc" {
  rm -rf "$at/proc"
  mkdir -p "$at/lib64" "$at/opt/driver"
  cp /lib/x86_64-linux-gnu/libz.so.1 "$at/opt/driver/libz.so.1"
  hook update-ldcache --folder /opt/driver
  succeeds
  grep -q /opt/driver/libz.so.1 "$at/etc/ld.so.cache"
  [ "$(cat "$at/etc/ld.so.conf")" = "include /etc/ld.so.conf.d/*.conf" ]
  [ "$(stat -c %a "$at/etc/ld.so.cache" "$at/etc/ld.so.conf" | sort -u)" = 644 ]
  [ ! -e "$at/proc" ]
  no_mounts
}

# bats test_tags=old-kernel
@test "update-ldcache: a musl image gets a search path" {
  mkdir -p "$at/lib"
  echo loader >"$at/lib/ld-musl-x86_64.so.1"
  hook update-ldcache --folder /opt/driver,/usr/lib
  succeeds
  [ "$(cat "$at/etc/ld-musl-x86_64.path")" = "/lib
/usr/local/lib
/usr/lib
/opt/driver" ]
  [ ! -e "$at/etc/ld.so.cache" ]
  tree >"$work/before"
  hook update-ldcache --folder /opt/driver
  succeeds
  tree | diff "$work/before" -
}

# bats test_tags=old-kernel
@test "update-ldcache: a musl image gets the links of sonames, in these folders only" {
  mkdir -p "$at/lib" "$at/opt/driver" "$at/usr/lib"
  echo loader >"$at/lib/ld-musl-x86_64.so.1"
  cp /lib/x86_64-linux-gnu/libz.so.1 "$at/opt/driver/libz.so.1.99"
  cp /lib/x86_64-linux-gnu/libz.so.1 "$at/usr/lib/libz.so.1.98"
  hook update-ldcache --folder /opt/driver
  succeeds
  [ "$(readlink "$at/opt/driver/libz.so.1")" = libz.so.1.99 ]
  [ ! -e "$at/usr/lib/libz.so.1" ]
  [ ! -e "$at/etc/ld.so.cache" ]
  [ ! -e "$at/etc/ld.so.conf.d" ]
  grep -qx /opt/driver "$at/etc/ld-musl-x86_64.path"
}

# bats test_tags=old-kernel
@test "update-ldcache: absolute links of the image are links of the image" {
  mkdir -p "$at/opt/driver" "$at/var/conf" "$at/usr/etc"
  rmdir "$at/etc"
  ln -s /usr/etc "$at/etc"
  ln -s /var/conf "$at/usr/etc/ld.so.conf.d"
  ln -s /var/cache-of-the-loader "$at/usr/etc/ld.so.cache"
  cp /lib/x86_64-linux-gnu/libz.so.1 "$at/opt/driver/libz.so.1"
  hook update-ldcache --folder /opt/driver
  succeeds
  grep -q /opt/driver/libz.so.1 "$at/usr/etc/ld.so.cache"
  grep -qx /opt/driver "$at/var/conf/00-graft.conf"
}

# bats test_tags=old-kernel
@test "update-ldcache: files of the host by hard links, FIFOs and devices stay what they are" {
  mkdir -p "$at/opt/driver" "$at/etc/ld.so.conf.d"
  on_host mount --bind "$work/outside" "$root/tmp"
  echo include '/etc/ld.so.conf.d/*' >"$at/etc/ld.so.conf"
  mkfifo "$at/etc/ld.so.cache" "$at/etc/ld.so.conf.d/fifo.conf"
  mknod "$at/opt/driver/libnode.so.1" c 1 5
  mkfifo "$at/opt/driver/libfifo.so.1"
  truncate -s 1T "$at/opt/driver/libhuge.so.1"
  hook update-ldcache --folder /opt/driver
  succeeds
  [ -f "$at/etc/ld.so.cache" ]
  [ -p "$at/etc/ld.so.conf.d/fifo.conf" ]
  [ "$(cat "$work/outside/secret")" = "secret of the host" ]
  # A replaced file is a new one: other names of the old file keep it.
  echo old >"$at/etc/kept"
  ln -f "$at/etc/kept" "$at/etc/ld.so.cache"
  hook update-ldcache
  succeeds
  [ "$(cat "$at/etc/kept")" = old ]
}

# bats test_tags=old-kernel
@test "a root that cannot be written says so, and that it does" {
  tree >"$work/before"
  on_host mount -o remount,ro "$root"
  hook update-ldcache --folder /opt/driver
  fails 'read-only file system'
  says "Make the container's root writable"
  hook create-symlinks --link a::/usr/lib/a
  fails 'failed to create link [a /usr/lib/a]'
  says 'read-only file system'
  hook update-application-profile
  succeeds # no GPU, nothing to write
  on_host mount -o remount,rw "$root"
  # What is there already needs no writing.
  hook create-symlinks --link a::/usr/lib/a
  on_host mount -o remount,ro "$root"
  hook create-symlinks --link a::/usr/lib/a
  succeeds
  on_host mount -o remount,rw "$root"
  rm "$at/usr/lib/a"
  tree | diff "$work/before" -
}

@test "update-ldcache: an empty path of ldconfig is refused, a strange one is not asked about" {
  hook update-ldcache --ldconfig-path=
  fails 'ldconfig-path must be specified'
  hook update-ldcache --ldconfig-path /nonexistent/ldconfig
  succeeds
}

# ---- enable-cuda-compat ----

compat_library() {
  rm -rf "$at/usr/local/cuda"
  mkdir -p "$at/usr/local/cuda/compat"
  cp "$build/test/tools/plain.so" "$at/usr/local/cuda/compat/libcuda.so.$1" 2>/dev/null ||
    cp /lib/x86_64-linux-gnu/libz.so.1 "$at/usr/local/cuda/compat/libcuda.so.$1"
}
compat_conf=etc/ld.so.conf.d/00-compat-graft.conf

# bats test_tags=old-kernel
@test "enable-cuda-compat: newer than the driver is used, older is not" {
  compat_library 333.88.99
  hook enable-cuda-compat
  succeeds
  [ ! -e "$at/$compat_conf" ]
  hook enable-cuda-compat --host-driver-version=222.55.66
  succeeds
  [ "$(cat "$at/$compat_conf")" = /usr/local/cuda/compat ]
  [ "$(stat -c %a "$at/$compat_conf")" = 644 ]
  # The host's driver became newer: what was said before is taken back.
  hook enable-cuda-compat --host-driver-version=444.55.66
  succeeds
  [ "$(grep -c '^[^#]' "$at/$compat_conf")" = 0 ]
  rm "$at/$compat_conf"
  compat_library 222.88.99
  hook enable-cuda-compat --host-driver-version=222.55.66
  [ ! -e "$at/$compat_conf" ]
  hook enable-cuda-compat --host-driver-version=99.55.66
  [ -e "$at/$compat_conf" ]
}

# bats test_tags=old-kernel
@test "enable-cuda-compat: links of the image, other places, more than one library" {
  compat_library 333.88.99
  mkdir -p "$at/etc/alternatives"
  mv "$at/usr/local/cuda" "$at/etc/alternatives/cuda"
  ln -s /etc/alternatives/cuda "$at/usr/local/cuda"
  hook enable-cuda-compat --host-driver-version=222.55.66
  succeeds
  [ "$(cat "$at/$compat_conf")" = /etc/alternatives/cuda/compat ]
  rm "$at/$compat_conf"
  mv "$at/etc/alternatives/cuda/compat" "$at/compat"
  rm "$at/usr/local/cuda"
  ln -s ../../../../../../ "$at/usr/local/cuda"
  hook enable-cuda-compat --host-driver-version=222.55.66
  [ "$(cat "$at/$compat_conf")" = /compat ]
  rm "$at/$compat_conf"
  mkdir -p "$at/usr/local/cuda-orin"
  mv "$at/compat" "$at/usr/local/cuda-orin/compat_orin"
  hook enable-cuda-compat --host-driver-version=222.55.66
  [ ! -e "$at/$compat_conf" ]
  hook enable-cuda-compat --host-driver-version=222.55.66 --cuda-compat-container-root /usr/local/cuda-orin/compat_orin
  [ "$(cat "$at/$compat_conf")" = /usr/local/cuda-orin/compat_orin ]
  rm "$at/$compat_conf"
  cp "$at"/usr/local/cuda-orin/compat_orin/libcuda.so.{333.88.99,334.1.1}
  hook enable-cuda-compat --host-driver-version=222.55.66 --cuda-compat-container-root /usr/local/cuda-orin/compat_orin
  succeeds
  says 'Unexpected number of CUDA compat libraries in container'
  [ ! -e "$at/$compat_conf" ]
}

# bats test_tags=old-kernel
@test "enable-cuda-compat, then update-ldcache: the loader prefers it" {
  on_host umount "$root"
  make_root debian overlay
  compat_library 560.1.2
  rm -f "$at"/usr/local/cuda/compat/*
  cp "$at/lib/x86_64-linux-gnu/libz.so.1" "$at/usr/local/cuda/compat/libcuda.so.560.1.2"
  hook enable-cuda-compat --host-driver-version=550.54.14
  hook update-ldcache --folder /usr/lib/x86_64-linux-gnu
  succeeds
  [ "$(on_host chroot "$root" ldconfig -p | sed -n 's/.*libz.so.1 (.*=> //p' | head -1)" = /usr/local/cuda/compat/libz.so.1 ]
}

# ---- sequence ----

# bats test_tags=old-kernel
@test "sequence: hooks one after the other, by the state that is there once" {
  on_host umount "$root"
  make_root debian overlay
  compat_library 560.1.2
  rm -f "$at"/usr/local/cuda/compat/*
  cp "$at/lib/x86_64-linux-gnu/libz.so.1" "$at/usr/local/cuda/compat/libcuda.so.560.1.2"
  hook sequence create-symlinks --link a::/new/link --then enable-cuda-compat --host-driver-version=550.54.14 --then \
    update-ldcache --folder /usr/lib/x86_64-linux-gnu --then create-symlinks --link b::/new/other
  succeeds
  [ "$(link new/link)" = a ]
  # Options are those of one hook: the second list of links has one.
  [ "$(link new/other)" = b ]
  [ "$(on_host chroot "$root" ldconfig -p | sed -n 's/.*libz.so.1 (.*=> //p' | head -1)" = /usr/local/cuda/compat/libz.so.1 ]
}

# bats test_tags=old-kernel
@test "sequence: folders of all update-ldcache hooks are searched in the end" {
  hook sequence update-ldcache --folder /opt/first,/usr/lib --then create-symlinks --link a::/lib/first --then update-ldcache --folder /usr/lib \
    --then update-ldcache --folder /opt/third
  succeeds
  [ "$(grep '^/' "$at/etc/ld.so.conf.d/00-graft.conf" | grep -v '^/usr/lib$')" = $'/opt/first\n/opt/third' ]
}

# bats test_tags=old-kernel
@test "sequence: a failure is the end of it, and undoes its own hook only" {
  mkdir "$at/lib"
  mkdir -p "$at/lib/is-a-directory"
  hook sequence create-symlinks --link a::/lib/first --then create-symlinks --link b::/lib/second --link c::/lib/is-a-directory --then \
    create-symlinks --link d::/lib/third
  fails "failed to create link [c /lib/is-a-directory]"
  [ "$(link lib/first)" = a ]
  [ ! -L "$at/lib/second" ]
  [ ! -L "$at/lib/third" ]
  hook sequence create-symlinks --link e::/lib/fourth --then create-symlinks --lnk f::/lib/fifth
  fails "flag provided but not defined: -lnk"
  [ "$(link lib/fourth)" = e ]
}

@test "sequence: what is not known is a warning and no failure" {
  hook sequence of-the-future --flag --then create-symlinks --link a::/lib/first --then --then sequence create-symlinks --link b::/lib/second
  succeeds
  says "Unsupported CDI hook: of-the-future"
  says "No CDI hook specified"
  says "Unsupported CDI hook: sequence"
  [ "$(link lib/first)" = a ]
  [ ! -L "$at/lib/second" ]
  hook sequence
  succeeds
  hook sequence --help
  succeeds
  says "--then HOOK"
  state=nonsense
  hook sequence create-symlinks --link a::/lib/third --then create-symlinks --link b::/lib/fourth
  fails "failed to load container state"
  [ ! -L "$at/lib/fourth" ]
}

@test "sequence: a state in a file is for one hook, standard input for the others" {
  printf '%s' "$state" >"$work/state.json"
  hook sequence update-ldcache --container-spec "$work/state.json" --folder /opt/a --then create-symlinks --link a::/lib/first --then \
    create-symlinks --link b::/lib/second
  succeeds
  [ "$(link lib/first)" = a ]
  [ "$(link lib/second)" = b ]
  grep -qx /opt/a "$at/etc/ld.so.conf.d/00-graft.conf"
}

# ---- disable-device-node-modification ----

params=proc/driver/nvidia/params

# bats test_tags=old-kernel
@test "disable-device-node-modification: the container's file says 0, on a mount of its own" {
  mkdir -p "$at/proc/driver/nvidia"
  on_host cat /proc/driver/nvidia/params >"$at/$params"
  grep -qx 'ModifyDeviceFiles: 1' "$at/$params"
  printf '%s' "$state" >"$work/state"
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    "$1" disable-device-node-modification <"$2" || exit
    cat "$3"
    echo "$3 $(stat -c %a "$3") $(awk -v at="$3" "\$5 == at { print \$6 }" /proc/self/mountinfo)"
    ! echo x 2>/dev/null >"$3" || echo writable
    ls "$(dirname "$3")"' - "$hook_program" "$work/state" "$root/$params"
  succeeds
  says 'ModifyDeviceFiles: 0'
  [[ $output != *'ModifyDeviceFiles: 1'* ]]
  says "$root/$params 444 ro,nosuid,nodev,noexec"
  [[ $output != *writable* ]]
  [ "$(tail -n 1 <<<"$output")" = params ]
  # All other lines are the host's.
  diff <(sed '/^ModifyDeviceFiles/d' "$at/$params") <(sed '/^\/.* 444 /,$d;/^ModifyDeviceFiles/d' <<<"$output")
}

# bats test_tags=old-kernel
@test "disable-device-node-modification: nothing to do" {
  # A container whose procfs has no such file.
  hook disable-device-node-modification
  succeeds
  [ -z "$output" ]
  no_mounts
  # A host that says it already.
  mkdir -p "$at/proc/driver/nvidia"
  echo 'ModifyDeviceFiles: 1' >"$at/$params"
  on_host sed 's/ModifyDeviceFiles: 1/ModifyDeviceFiles: 0/' /proc/driver/nvidia/params >"$work/params"
  printf '%s' "$state" >"$work/state"
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    mount --bind "$3" /proc/driver/nvidia/params
    "$1" disable-device-node-modification <"$2" && cat "$4"' - "$hook_program" "$work/state" "$work/params" "$root/$params"
  succeeds
  [ "$output" = 'ModifyDeviceFiles: 1' ]
}

# ---- update-application-profile ----

profile=etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf

# bats test_tags=old-kernel
@test "update-application-profile: by the minors of the container's nodes" {
  hook update-application-profile
  succeeds
  [ ! -e "$at/$profile" ]
  mknod "$at/dev/nvidia0" c 195 0
  mknod "$at/dev/nvidia7" c 195 15 # by its number, not by its name
  mknod "$at/dev/nvidiactl" c 195 255
  mknod "$at/dev/nvidia9" c 195 99
  echo >"$at/dev/nvidia3"
  ln -s nvidia0 "$at/dev/nvidia4"
  hook update-application-profile
  succeeds
  says 'no bit for minor 99'
  [ "$(cat "$at/$profile")" = '{"profiles":[{"name":"_container_","settings":["EGLVisibleDGPUDevices",0x8001]}],"rules":[{"pattern":[],"profile":"_container_"}]}' ]
  [ "$(stat -c %a "$at/$profile" "${at}/${profile%/*}" | tr '\n' ' ')" = "444 555 " ]
  rm "$at/dev/nvidia7"
  hook update-application-profile
  grep -q 0x1] "$at/$profile"
}

# ---- chmod ----

# bats test_tags=old-kernel
@test "apply-cuda-memory-limits: a warning, where the container asks for limits" {
  hook apply-cuda-memory-limits --driver-root / --gpu-id GPU-1
  succeeds
  [ -z "$output" ]
  jq '.process.env += ["NVIDIA_GPU_MEMORY_LIMIT=8Gi", "NVIDIA_GPU_MEMORY_REQUEST=4Gi"]' "$bundle/config.json" >"$work/changed"
  mv "$work/changed" "$bundle/config.json"
  hook apply-cuda-memory-limits --driver-root=/run/nvidia/driver --gpu-id=GPU-1
  succeeds
  says 'level=warning msg="NVIDIA_GPU_MEMORY_LIMIT=8Gi has no effect on GPU GPU-1: limits of GPU memory are not supported, and the container may use all of it"'
  says 'level=warning msg="NVIDIA_GPU_MEMORY_REQUEST=4Gi has no effect on GPU GPU-1: '
  hook apply-cuda-memory-limits --strong
  fails 'flag provided but not defined: -strong'
}

@test "chmod: on what the image has, and on nothing else" {
  mkdir -m 700 "$at/dev/nvidia-caps"
  mkdir -m 700 "$work/outside/directory"
  ln -s "$work/outside/directory" "$at/dev/absolute"
  ln -s "../../../../../../../../../..$work/outside/directory" "$at/dev/relative"
  hook chmod --mode 755 --path /dev/nvidia-caps,/dev/missing --path /dev/absolute --path dev/relative
  succeeds
  [ "$(stat -c %a "$at/dev/nvidia-caps")" = 755 ]
  [ "$(stat -c %a "$work/outside/directory")" = 700 ]
  hook chmod --path /dev
  fails 'a non-empty mode must be specified'
  hook chmod --mode 789 --path /dev
  fails 'failed to parse mode as octal'
  hook chmod --mode 755 --path /dev, --path ' '
  fails 'paths must not be empty'
}

# ---- apply ----

plan() { jq -cn "{version: 1, edits: [$1 | (.rule, .why) = \"test\"]}"; }

# bats test_tags=old-kernel
@test "apply: a plan as an argument or in a file; a failure undoes all of it" {
  hook apply --plan "$(plan '{kind: "directory", target: "/new/directory", mode: 448}, {kind: "file", target: "/new/file", content: "text", mode: 292},
    {kind: "symlink", target: "/usr/lib/x", content: "y"}, {kind: "ldcache", folders: ["/opt/driver"], missing_folders: ["/opt/driver"],
    entries: [{soname: "libcuda.so.1", path: "/opt/driver/libcuda.so.1", abi_flags: 771}]}')"
  succeeds
  [ "$(stat -c %a "$at/new/directory")" = 700 ]
  [ "$(cat "$at/new/file")" = text ]
  [ "$(link usr/lib/x)" = y ]
  grep -q /opt/driver/libcuda.so.1 "$at/etc/ld.so.cache"
  mkdir "$at/usr/lib/in-the-way"
  tree >"$work/before"
  plan '{kind: "directory", target: "/second/directory", mode: 448}, {kind: "symlink", target: "/usr/lib/in-the-way", content: "y", conflict: "overwrite"}' \
    >"$work/plan.json"
  hook apply --plan-file "$work/plan.json"
  fails /usr/lib/in-the-way
  tree | diff "$work/before" -
  rmdir "$at/usr/lib/in-the-way"
  hook apply --plan-file "$work/plan.json"
  succeeds
  [ "$(link usr/lib/in-the-way)" = y ]
}

@test "apply: no plan, half a plan, a plan with what is not a hook's" {
  tree >"$work/before"
  hook apply
  fails 'a plan must be given'
  hook apply --plan '{"version": 1, "edits": ['
  fails 'failed to set up the container'
  hook apply --plan '{"version": 1, "edits": [{"kind": "explode", "rule": "x", "why": "y"}]}'
  fails 'edits[0].kind'
  hook apply --plan-file plan.json
  fails 'must be absolute'
  hook apply --plan "$(plan '{kind: "file", target: "/x", content: "x", mode: 292}, {kind: "cgroup", major: 195, access: "rw"}')"
  fails "kind 'cgroup'"
  tree | diff "$work/before" -
}

# bats test_tags=old-kernel
@test "apply: a musl image whose loader could not be examined before" {
  mkdir -p "$at/lib"
  echo loader >"$at/lib/ld-musl-x86_64.so.1"
  hook apply --plan "$(plan '{kind: "ldcache", folders: ["/usr/lib64"], missing_folders: ["/usr/lib64"],
    entries: [{soname: "libcuda.so.1", path: "/usr/lib64/libcuda.so.1", abi_flags: 771}]}')"
  succeeds
  grep -qx /usr/lib64 "$at/etc/ld-musl-x86_64.path"
  [ ! -e "$at/etc/ld.so.cache" ]
}

# ---- hostile callers ----

# bats test_tags=old-kernel
@test "nothing of the caller's environment, directory or descriptors counts" {
  is_static || skip "this build is linked dynamically"
  mkdir -p "$work/evil"
  cat >"$work/evil/evil.c" <<'C'
#include <fcntl.h>
__attribute__((constructor)) static void run(void) { open("/ran-evil-code", O_CREAT | O_WRONLY, 0600); }
C
  gcc -shared -fPIC -o "$work/evil/libevil.so" "$work/evil/evil.c"
  cp "$work/evil/libevil.so" "$at/libevil.so"
  mkdir -p "$at/usr/local/share" "$at/bin"
  printf '#!/bin/sh\n: >/ran-evil-code\n' >"$at/bin/ldconfig"
  chmod +x "$at/bin/ldconfig"
  printf '%s' "$state" >"$work/state"
  # shellcheck disable=SC2016
  run on_host bash -c '
    cd "$1" || exit
    exec 9<"$1" 10>"$3/written-by-nobody" 11</etc/shadow
    strace -f -o "$3/trace" -E LD_PRELOAD="$1/libevil.so ./libevil.so" -E LD_LIBRARY_PATH="$1:." -E LD_AUDIT=./libevil.so \
      -E GLIBC_TUNABLES=glibc.malloc.check=3 -E PATH="$1/bin:." -E TMPDIR="$1" -E HOME="$1" -E LOCPATH=. -E NLSPATH=./%N \
      -E MALLOC_TRACE=./trace -E GCONV_PATH=. -E TZ=../../etc/passwd "$4" update-ldcache --folder /opt <"$2"' - "$root" "$work/state" "$work" "$hook_program"
  succeeds
  on_host test ! -e /ran-evil-code
  [ ! -e "$at/ran-evil-code" ]
  # One program, ours; and the kernel is asked for no name that begins in the working directory.
  [ "$(grep -c 'execve(' "$work/trace")" = 1 ]
  [ "$(grep -cE '(fork|clone3?)\(' "$work/trace")" = "$(grep -c 'PR_SET_NAME, "graft-reader"' "$work/trace")" ]
  # (the trace holds a name only where a path goes through one: "." is our own "/")
  run ! grep -E '(open|openat|stat|access|readlink)\(AT_FDCWD, "(\.[^"]|[^/.])' "$work/trace"
  grep -q 'close_range(3, ' "$work/trace"
  grep -q 'chdir("/")' "$work/trace"
  grep -q 'PR_SET_NO_NEW_PRIVS, 1' "$work/trace"
  grep -q 'PR_SET_DUMPABLE, SUID_DUMP_DISABLE' "$work/trace"
}

# A host in an initial RAM disk, a sandbox's kernel: no other root, no other namespace, no procfs in the container.
# But for the reader, which does without a root of its own where it must.
# bats test_tags=old-kernel
@test "no hook needs another root, another namespace, or procfs in the container" {
  local words refused='pivot_root,chroot,unshare,setns,?vfork,execveat'
  is_static || skip "this build is linked dynamically"
  rm -rf "$at/proc"
  mkdir -p "$at/opt/driver" "$at/usr/local/cuda/compat" "$at/dev"
  cp /lib/x86_64-linux-gnu/libz.so.1 "$at/opt/driver/libz.so.1"
  cp "$hook_program" "$at/usr/local/cuda/compat/libcuda.so.999.1.1"
  on_host mknod "$root/dev/nvidia3" c 195 3
  printf '%s' "$state" >"$work/state"
  while read -r -a words; do
    # shellcheck disable=SC2016
    run on_host bash -c 'strace -f -o "$1/trace" -e trace="$2" -e inject="$2":error=EINVAL "${@:4}" <"$3"' - \
      "$work" "$refused" "$work/state" "$hook_program" "${words[@]}"
    succeeds
    # Only calls count: a process that is killed may leave a line without a name, and a call that is interrupted one more.
    ! grep -E '^[0-9]+ +[a-z]+\(' "$work/trace" | grep -v 'chroot("\."' || die "${words[0]}: $(cat "$work/trace")"
  done <<'TABLE'
create-symlinks --link libz.so.1::/opt/driver/libz.so
enable-cuda-compat --host-driver-version 550.54.14
update-ldcache --folder /opt/driver
disable-device-node-modification
update-application-profile
chmod --mode 755 --path /dev
TABLE
  grep -q /opt/driver/libz.so.1 "$at/etc/ld.so.cache"
  grep -q /usr/local/cuda/compat "$at/etc/ld.so.conf.d/00-compat-graft.conf"
  grep -q 0x8 "$at/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"
}

# bats test_tags=old-kernel
@test "where there is no procfs, all but mounts can be done" {
  mkdir -p "$work/bare"/{bundle,rootfs/etc,rootfs/usr/lib,rootfs/opt/driver}
  cp "$hook_program" "$work/bare/hook"
  is_static || skip "this build is linked dynamically"
  cp /lib/x86_64-linux-gnu/libz.so.1 "$work/bare/rootfs/opt/driver/libz.so.1"
  echo below >"$work/bare/rootfs/etc/covered"
  echo '{"root": {"path": "/rootfs"}}' >"$work/bare/bundle/config.json"
  run chroot "$work/bare" /hook create-symlinks --link a::/usr/lib/a <<<'{"bundle": "/bundle"}'
  succeeds
  run chroot "$work/bare" /hook update-ldcache --folder /opt/driver <<<'{"bundle": "/bundle"}'
  # What an image has is opened by its name only where the kernel can copy the mounts so that no node opens through them.
  if [ "${GRAFT_ENOSYS:-0}" = 1 ]; then
    fails '/etc/ld.so.conf: permission denied'
  else
    succeeds
    grep -q /opt/driver/libz.so.1 "$work/bare/rootfs/etc/ld.so.cache"
  fi
  [ "$(readlink "$work/bare/rootfs/usr/lib/a")" = a ]
  run chroot "$work/bare" /hook apply --plan "$(plan '{kind: "cover", target: "/etc/covered", content: "above"}')" <<<'{"bundle": "/bundle"}'
  fails '/proc/self/fd'
}

# A root as it was before, in which one run may fail anywhere.
fault_root() {
  rm -rf "${at:?}"/{new,etc,usr/lib}
  mkdir -p "$at"/{etc,usr/lib,opt/driver}
  echo below >"$at/etc/covered"
  echo old >"$at/etc/file"
  ln -s old "$at/usr/lib/link"
}

# fail_call NAME N: one run in which the N-th call of that name fails. 1: there are fewer. With few descriptors, each of which an old kernel closes by a call of its own.
fail_call() {
  local injected
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private -- bash -c '
    ulimit -n 64
    strace -o "$1/trace" -e "inject=$2:error=EIO:when=$3" "$4" apply --plan "$5" <"$1/state"
    status=$?
    echo
    grep -c " $6/" /proc/self/mountinfo
    exit $status' - "$work" "$1" "$2" "$hook_program" "$a_plan" "$root"
  if ! injected=$(grep INJECTED "$work/trace"); then
    fault_root
    return 1
  fi
  if [ "$status" -eq 0 ]; then
    tolerated=$((tolerated + 1))
    [ "$(cat "$at/etc/file")" = new ] && [ "$(link usr/lib/link)" = y ] && grep -q /opt/driver/libcuda.so.1 "$at/etc/ld.so.cache" &&
      [ "$(tail -n 1 <<<"$output")" = 1 ] || wrong="$injected: half done: $output"
    fault_root
    return 0
  fi
  tree | diff "$work/before" - || wrong="$injected: the root changed: $output"
  [ "$(tail -n 1 <<<"$output")" = 0 ] || wrong="$injected: a mount is left: $output"
  [[ $output != *"could not undo"* ]] || wrong="$injected: $output"
}

# bats test_tags=old-kernel
@test "each system call of the hook fails once: all or nothing" {
  local call n total=0 tolerated=0 step=1 least=80 wrong=""
  # As on an old kernel there are three times as many calls.
  [ "${GRAFT_ENOSYS:-0}" = 0 ] || { step=3 && least=60; }
  a_plan=$(plan '{kind: "directory", target: "/new/directory", mode: 493}, {kind: "file", target: "/etc/file", content: "new", mode: 292},
    {kind: "symlink", target: "/usr/lib/link", content: "y", conflict: "overwrite"}, {kind: "cover", target: "/etc/covered", content: "above", mode: 292},
    {kind: "ldcache", folders: ["/opt/driver"], missing_folders: ["/opt/driver"],
    entries: [{soname: "libcuda.so.1", path: "/opt/driver/libcuda.so.1", abi_flags: 771}]}')
  printf '%s' "$state" >"$work/state"
  fault_root
  tree >"$work/before"
  # What a run makes: those that fail in it one after the other.
  on_host unshare --mount --propagation private -- strace -o "$work/trace" "$hook_program" apply --plan "$a_plan" <"$work/state"
  sed -n 's/^\([a-z0-9_]*\)(.*/\1/p' "$work/trace" | sort -u |
    grep -v -x -e brk -e mmap -e munmap -e mprotect -e arch_prctl -e rseq -e set_robust_list -e set_tid_address -e execve -e exit_group \
      -e close -e close_range -e umask -e rt_sigaction -e getpid -e geteuid -e getegid -e chdir -e clock_gettime >"$work/calls"
  fault_root
  while read -r call <&3; do
    for n in $(seq 1 $step 400); do
      fail_call "$call" "$n" || break
      total=$((total + 1))
      [ -z "$wrong" ] || die "$wrong" || return
    done
  done 3<"$work/calls"
  say "$total calls failed, $tolerated of them without harm" >&2
  [ "$total" -gt $least ]
  [ "$tolerated" -lt $((total * 2 / 3)) ]
}

# ---- in containers ----

# The hooks as a generated CDI specification has them, with the libraries that they are about.
cdi_bundle() {
  local dir=/usr/lib/x86_64-linux-gnu
  rm "$bundle/config.json"
  make_bundle 'del(.hooks)' "$@"
  edit_bundle --arg hook "$hook_program" --arg dir "$dir" '
    def hook(a): {path: $hook, args: (["nvidia-cdi-hook"] + a), env: ["NVIDIA_CTK_DEBUG=false"]};
    .mounts += [("libcuda.so.550.54.14", "libnvidia-ml.so.550.54.14") | {destination: ($dir + "/" + .), source: ("/run/graft-sim/root" + $dir + "/" + .),
      options: ["ro", "nosuid", "nodev", "rbind", "rprivate"]}] |
    .hooks = {createContainer: [
      hook(["create-symlinks", "--link", ("libcuda.so.550.54.14::" + $dir + "/libcuda.so.1"), "--link", ("libcuda.so.1::" + $dir + "/libcuda.so")]),
      hook(["enable-cuda-compat", "--host-driver-version=550.54.14"]),
      hook(["update-ldcache", "--folder", $dir]),
      hook(["disable-device-node-modification"]),
      hook(["update-application-profile"]),
      hook(["hook-of-the-future", "--folder", $dir])]}'
}

# By the name that the C library of this release has for the directory.
expect_found() {
  local libc
  libc=$(on_host chroot "$(image debian)" ldconfig -p | sed -n 's/.*libc\.so\.6 (.*=> //p' | head -n 1)
  expect ldconfig "${libc%/*}/libcuda.so.1"
}

# bats test_tags=old-kernel
@test "runc: the hooks of a generated specification" {
  on_host umount "$root"
  make_root debian overlay
  cdi_bundle
  run_container v2
  expect_found
  [ "$(link usr/lib/x86_64-linux-gnu/libcuda.so)" = libcuda.so.1 ]
}

# Files are mounted by the hook, too, and all hooks are in a row: a specification with late mounts.
by_hook='([.mounts[] | select(.source | test("/graft-sim/"))] | map(["--file", .source + "::" + .destination]) | add) as $files |
  .mounts |= map(select(.source | test("/graft-sim/") | not)) | .hooks.createContainer[0].args[1:1] = ["sequence", "mount-files"] + $files + ["--then"]'
files_by_hook() {
  on_host umount "$root"
  make_root debian "${2:-overlay}"
  [ "$2" != copy ] || chown -R --no-dereference 100000:100000 "$root"
  [ "$2" != copy ] || show_whole_proc
  cdi_bundle "$3"
  edit_bundle "$by_hook"
  # shellcheck disable=SC2016
  edit_bundle '.process.args = ["/bin/sh", "-c", "/probe; echo mounted: $(grep -c \" /usr/lib/x86_64-linux-gnu/lib.*550.54.14 ro,nosuid,nodev\" /proc/self/mountinfo)"]'
  jq -e '[.mounts[].destination | select(test("libcuda"))] == []' "$bundle/config.json"
  chmod a+rx "$bundle"
  # shellcheck disable=SC2086
  run_container v2 $1
  expect_found
  expect mounted 2
}

# bats test_tags=old-kernel
@test "runc: files of a generated specification by the hook" { files_by_hook runc; }
# bats test_tags=old-kernel
@test "runc: the same with a root that becomes read-only" { files_by_hook runc overlay '.root.readonly = true'; }
# bats test_tags=old-kernel
@test "runc: the same with a user namespace" {
  files_by_hook runc copy '.linux.namespaces += [{type: "user"}] |
    .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
}
@test "crun: files of a generated specification by the hook" { files_by_hook "crun --cgroup-manager=disabled"; }

# bats test_tags=old-kernel
@test "runc: the same in a user namespace" {
  on_host umount "$root"
  make_root debian copy
  chown -R --no-dereference 100000:100000 "$root"
  show_whole_proc
  cdi_bundle '.linux.namespaces += [{type: "user"}] |
    .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
  chmod a+rx "$bundle"
  run_container v2
  expect uid 0
  expect_found
  [ "$(stat -c %u "$at/etc/ld.so.cache")" = 100000 ]
}

# bats test_tags=old-kernel
@test "crun: the same" {
  type crun >/dev/null || skip "this machine has no crun"
  on_host umount "$root"
  make_root debian overlay
  cdi_bundle
  run_container v2 crun --cgroup-manager=disabled
  expect_found
}
