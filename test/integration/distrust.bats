# SPDX-License-Identifier: Apache-2.0
# An image must not make our programs open a device of the image, write into a volume, or compute
# without end. And these precautions must not cost a container with volumes its GPU.

load lib.bash

setup_file() {
  start_host dgx-h100
  find "$build/src/cli" -name '*nvidia-*' -type f -perm /100 -exec install -m 0755 {} "$BATS_FILE_TMPDIR/programs" \;
  install -m 0755 "$build/src/cli/runtime/graft-nvml" "$build/test/integration/nvc_walk" "$BATS_FILE_TMPDIR/programs"
  install -m 0644 "$build/src/abi/libnvidia-container.so.1" "$BATS_FILE_TMPDIR/programs"
  printf 'int graft_trees;\n' | "${CC:-cc}" -shared -fPIC -nostdlib -Wl,-soname,libtemplate0000.so.1 -o "$BATS_FILE_TMPDIR/library.so" -x c -
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  volume=$work/volume
  libraries=/usr/lib/x86_64-linux-gnu
  version=550.54.14
  # Seconds of CPU; a program that exceeds the limit is killed.
  budget=2 limit=3
  ! grep -q __asan_init "$cli" || budget=12 limit=15
}
teardown() { test_teardown; }

# ---- an image, and who is given it ----

# fresh_root KIND: of the test's own, seen from here, too.
fresh_root() {
  ! on_host mountpoint -q "$root" || on_host umount --lazy "$root"
  rm -rf "${root:?}" "$bundle" "$volume"
  make_root "$1" "${2:-copy}"
  mkdir -p "$root/etc/ld.so.conf.d" "$root$libraries" "$root/usr/local/lib" "$volume"
  [ -e "$root/etc/debian_version" ] || echo 12.1 >"$root/etc/debian_version"
}

# mounted SOURCE DESTINATION: a filter for make_bundle.
mounted() { printf '.mounts += [{destination: "%s", source: "%s", type: "bind", options: ["rbind", "rw"]}]' "$2" "$1"; }

# asks MODE FILTER...: config.toml and a bundle for GPU 0, by that mode (jit-cdi, cdi, csv, legacy).
asks() {
  local mode=$1 device=0
  shift
  cat >"$work/config.toml" <<TOML
[nvidia-ctk]
path = "$programs/nvidia-cdi-hook"
[nvidia-container-runtime-hook]
path = "$programs/nvidia-container-runtime-hook"
skip-mode-detection = true
[nvidia-container-runtime]
mode = "$mode"
log-level = "debug"
debug = "$work/runtime.log"
runtimes = ["$(type -P runc)"]
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$work/cdi"]
[nvidia-container-runtime.modes.csv]
mount-spec-path = "$work/csv"
TOML
  mkdir -p "$work/csv"
  printf 'dev, /dev/nvidia0\ndev, /dev/nvidiactl\ndev, /dev/nvidia-uvm\nlib, %s\nlib, %s\nlib, /usr/bin/nvidia-smi\n' "$libraries/libcuda.so.$version" \
    "$libraries/libnvidia-ml.so.$version" >"$work/csv/devices.csv"
  if [ "$mode" = cdi ]; then
    device=nvidia.com/gpu=0
    [ -e "$work/cdi/nvidia.json" ] || specification
  fi
  rm -rf "$bundle"
  make_bundle "del(.hooks) | .linux.cgroupsPath = \"/$container\" | .process.env += [\"NVIDIA_VISIBLE_DEVICES=$device\", \"NVIDIA_DRIVER_CAPABILITIES=compute,utility\"]" "$@"
}
unprivileged='.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {} | .process.noNewPrivileges = true'

# specification [HOOK...]: what generators write, with five hooks, which become edits, or with those that are named, "all" of them.
specification() {
  mkdir -p "$work/cdi"
  jq -n --arg lib "$libraries" --arg v "$version" --arg hook "$programs/nvidia-cdi-hook" --arg wanted "${*:-$five}" '
    def bind: {hostPath: ., containerPath: ., options: ["ro", "nosuid", "nodev", "rbind", "rprivate"]};
    def hook(words): {hookName: "createContainer", path: $hook, args: (["nvidia-cdi-hook"] + words), env: ["NVIDIA_CTK_DEBUG=false"]};
    {cdiVersion: "0.5.0", kind: "nvidia.com/gpu",
     devices: [{name: "0", containerEdits: {deviceNodes: [{path: "/dev/nvidia0"}]}}],
     containerEdits: {
       env: ["NVIDIA_VISIBLE_DEVICES=void"],
       deviceNodes: [{path: "/dev/nvidiactl"}, {path: "/dev/nvidia-uvm"}, {path: "/dev/nvidia-uvm-tools"}],
       mounts: [("/usr/bin/nvidia-smi", "\($lib)/libcuda.so.\($v)", "\($lib)/libnvidia-ml.so.\($v)") | bind],
       hooks: [hook(["create-symlinks", "--link", "libcuda.so.1::\($lib)/libcuda.so"]), hook(["enable-cuda-compat", "--host-driver-version=\($v)"]),
         hook(["update-ldcache", "--folder", $lib]), hook(["disable-device-node-modification"]), hook(["update-application-profile"]),
         hook(["chmod", "--mode", "755", "--path", "/dev/dri"])] | map(select($wanted == "all" or (.args[1] | IN($wanted | split(" ")[])))),
     }}' >"$work/cdi/nvidia.json"
}

five="create-symlinks enable-cuda-compat update-ldcache disable-device-node-modification update-application-profile"

# witnessed COMMAND...: what it opened and how long it took comes into $work/report, what it said into $work/said.
witnessed() {
  on_host "$build/test/tools/witness" --programs "$programs" --report "$work/report" --cpu "$limit" --time 60 "$@" \
    </dev/null >"$work/said" 2>&1 3>&- 4>&-
}

# Only regular files and directories were opened.
opened_no_node() { [[ $(cat "$work/report") != *unsafe* ]] || die "$(cat "$work/report")"; }

within_budget() {
  awk -v budget="$budget" '/^over/ { exit 1 } /^cpu/ { exit $2 > budget }' "$work/report" || die "$(cat "$work/report" "$work/said")"
}

# shim_create [OPTION...]: creates, and with runc behind it runs the hooks. The container ends with the witness.
shim_create() {
  status=0
  witnessed "$programs/nvidia-container-runtime" --root "$state" create --bundle "$bundle" "$@" "$container" || status=$?
  on_host runc --root "$state" delete --force "$container" 2>/dev/null || true
}

# at_hook WORD...: nvidia-cdi-hook in mounts of its own, with the root on a mount of its own and the volume at $place.
at_hook() {
  local place=$1
  shift
  printf '{"ociVersion": "1.0.2", "id": "x", "pid": 1, "status": "creating", "bundle": "%s"}' "$bundle" >"$work/state"
  # shellcheck disable=SC2016
  witnessed unshare --mount --propagation private -- bash -c 'root=$1 place=$2 volume=$3 state=$4; shift 4
    mount --rbind "$root" "$root" && cd "$root" || exit
    [ -z "$place" ] || { mkdir -p "$root$place" && mount --bind "$volume" "$root$place"; } || exit
    exec "$@" <"$state"' - "$root" "$place" "$volume" "$work/state" "$programs/nvidia-cdi-hook" "$@" || status=$?
}

# ---- devices ----

# Every line of the loader's configuration leads to a device; more patterns than are read, where `forced`.
watchdog() {
  mknod "$root/w" c 10 130
  {
    echo 'include /w'
    [ "${1-}" != forced ] || printf 'include /none%s/*.conf\n' {1..70}
  } >"$root/etc/ld.so.conf"
}

@test "jit-cdi, cdi, legacy with a volume: ld.so.conf of more patterns than are read names a device" {
  local mode
  for mode in jit-cdi cdi legacy; do
    fresh_root small
    watchdog forced
    asks "$mode" "$(mounted "$volume" /data)"
    shim_create
    opened_no_node || die "$mode" || return
    within_budget
  done
}

@test "csv, with and without a volume: ld.so.conf names a device" {
  local volumes
  for volumes in . "$(mounted "$volume" /data)"; do
    fresh_root small
    watchdog
    asks csv "$volumes"
    shim_create
    grep -q 'csv' "$work/runtime.log"
    opened_no_node || die "$volumes" || return
    within_budget
  done
}

@test "plan ROOTFS: ld.so.conf names a device" {
  local style
  fresh_root small
  watchdog
  for style in namespace oci; do
    witnessed "$programs/nvidia-container-cli" plan --style="$style" --device=0 --compute --utility "$root" || true
    opened_no_node
  done
}

@test "doctor --image: ld.so.conf names a device" {
  fresh_root small
  watchdog
  witnessed "$programs/nvidia-ctk" doctor --quick --image "$root" || true
  opened_no_node
  grep -q ' ok, ' "$work/said"
}

# table LAYOUT: each kind of node at each path that is read, for each program.
table() {
  mkdir -p "$work/tree"
  on_host "$top/test/tools/trees" --verbose --programs "$programs" --witness "$build/test/tools/witness" --library "$BATS_FILE_TMPDIR/library.so" --work "$work/tree" \
    --budget "$budget" --nodes "$@" >"$work/table" 2>&1 3>&- || { cat "$work/table" && return 1; }
  # The rows that need the image to be one that a GPU can be given to reach its files.
  [ "$1" != named ] || [ "$(grep -cE 'doctor --container [0-9]+: 4 .*|nvc_walk .*: 0 $' "$work/table")" -eq 2 ] || die "$(cat "$work/table")"
}

@test "nodes of eight kinds at each path that is read, for each program" { table at_paths; }
@test "links to nodes of eight kinds at each path that is read, for each program" { table at_links; }
@test "nodes of eight kinds where configuration or directories name them, for each program" { table named; }
@test "the same with more patterns than are read, for each program" { table forced; }
@test "nodes of eight kinds for musl's loader, for each program" { table musl; }

# ---- volumes ----

# A folder of the host's, as a container of any user may have it: an old cache, a configuration, a library without its link, a link that leads nowhere.
fill_volume() {
  local directory
  rm -rf "$volume"
  for directory in "" /lib /etc /nvidia/nvidia-application-profiles-rc.d; do
    mkdir -p "$volume$directory"
    cp "$BATS_FILE_TMPDIR/library.so" "$volume$directory/libtemplate0000.so.1.0"
    ln -s gone.so.1.0 "$volume$directory/libgone.so.1"
    echo "# of the host" >"$volume$directory/ld.so.conf"
    echo old >"$volume$directory/ld.so.cache"
  done
  cp "$(image small)"/etc/{passwd,group} "$volume"
  mkdir "$volume/ld.so.conf.d"
}

# All of it: names, types, modes, owners, sizes, times, links, contents. With "runc" not the empty places that runc makes for its mounts.
volume_state() {
  local what=()
  [ "${1-}" != runc ] || what=(! -empty ! -type d)
  (cd "$volume" && find . "${what[@]}" -printf '%p %y %#m %U:%G %s %T@ %l\n' | sort && find . "${what[@]}" -type f -print0 | sort -z | xargs -0 sha256sum
    find . -type f ! -empty -printf '%h\n' | sort -u | xargs -d '\n' stat -c '%n %a %u:%g')
}

# Each row: what the image does, and where the volume is.
volumes='etc-link       /data
conf-line      /data
local-lib      /usr/local/lib
nvidia         /etc/nvidia
lib-link       /data
conf.d         /etc/ld.so.conf.d
etc            /etc'
lead_there() {
  case "$1" in
  etc-link)
    rm -rf "${root:?}/etc"
    ln -s data "$root/etc"
    ;;
  conf-line) sed -i '1i /data/lib' "$root/etc/ld.so.conf" ;;
  lib-link)
    rm -rf "${root:?}/usr/local/lib"
    ln -s ../../data/lib "$root/usr/local/lib"
    ;;
  nvidia) mknod "$root/dev/nvidia0" c 195 0 ;;
  esac
}

# stays MODE FILTER [CREATE-OPTION...]: for each row the container of an ordinary user starts or does not start; the volume is as it was.
stays() {
  local mode=$1 filter=$2 case place told=
  shift 2
  while read -r case place; do
    fresh_root small
    lead_there "$case"
    fill_volume
    asks "$mode" "$(mounted "$volume" "$place")" "$unprivileged" "$filter"
    volume_state runc >"$work/before"
    shim_create "$@"
    volume_state runc >"$work/after"
    diff "$work/before" "$work/after" >"$work/changed" || told+="$mode, $case at $place:"$'\n'"$(cat "$work/changed")"$'\n'
    opened_no_node || told+="$mode, $case: it opens a node"$'\n'
  done <<<"$volumes"
  [ -z "$told" ] || die "$told"
}

@test "jit-cdi: no volume is changed, by whatever way the image leads there" { stays jit-cdi .; }
@test "jit-cdi, with a pid file: no volume is changed, by whatever way the image leads there" { stays jit-cdi . --pid-file "$work/pid"; }
@test "cdi, five hooks as edits: no volume is changed, by whatever way the image leads there" { stays cdi .; }
@test "csv: no volume is changed, by whatever way the image leads there" { stays csv .; }
@test "legacy: no volume is changed, by whatever way the image leads there" { stays legacy .; }

@test "cdi, the hook of the cache alone: no volume is changed, by whatever way the image leads there" {
  specification update-ldcache
  stays cdi .
}

@test "cdi, six hooks in one process: no volume is changed, by whatever way the image leads there" {
  specification all
  stays cdi .
}

@test "cdi, hooks that another maker's is among: no volume is changed, by whatever way the image leads there" {
  specification
  jq '.containerEdits.hooks += [{hookName: "createContainer", path: "/bin/true", args: ["true"]}]' "$work/cdi/nvidia.json" >"$work/new"
  mv "$work/new" "$work/cdi/nvidia.json"
  stays cdi .
}

@test "each hook by itself: no volume is changed, by whatever way the image leads there" {
  local case place hook places told=
  local hooks=("create-symlinks --link libcuda.so.1::$libraries/libcuda.so --link x::/usr/local/lib/libgone.so.1 --link x::/etc/link --link x::/data/link"
    "enable-cuda-compat --host-driver-version=$version" "update-ldcache --folder $libraries" update-application-profile "chmod --mode 777 --path /etc,/usr/local/lib,/data/lib"
    "mount-files --file /usr/bin/nvidia-smi::/usr/local/lib/libgone.so.1 --file /usr/bin/nvidia-smi::/usr/local/lib/new --file /usr/bin/nvidia-smi::/etc/ld.so.cache")
  while read -r case place; do
    for hook in "${hooks[@]}"; do
      fresh_root small
      lead_there "$case"
      mknod -m 666 "$root/dev/nvidia1" c 195 1
      mkdir -p "$root/usr/local/cuda/compat"
      cp "/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/root$libraries/libcuda.so.$version" "$root/usr/local/cuda/compat/libcuda.so.999.1"
      fill_volume
      asks jit-cdi
      places=
      [[ $hook != mount-files* || $case == *-link ]] || places=runc # it makes places in a volume, but not by a link
      volume_state "$places" >"$work/before"
      # shellcheck disable=SC2086
      at_hook "$place" $hook
      volume_state "$places" >"$work/after"
      diff "$work/before" "$work/after" >"$work/changed" || told+="$hook, $case at $place:"$'\n'"$(cat "$work/changed")"$'\n'
      opened_no_node || told+="$hook, $case: it opens a node"$'\n'
    done
  done <<<"$volumes"
  [ -z "$told" ] || die "$told"
}

# Where the volume itself covers a place that a library or file is mounted at, an empty file is made there, as low-level runtimes make it; not where a link leads there.
# A directory of the host that a container is given: a specification's, or that of MPS. Each row: where the image has a link, and where it leads; twice, if another one is to hide that.
steer='/tmp/shared /dev
/tmp/shared /dev/dri
/tmp/shared /proc
/tmp/shared /sys/fs
/tmp/shared /usr/bin
/tmp/shared /run/secrets
LIBRARIES /tmp/shared
LIBRARIES/libcuda.so.VERSION /tmp/shared/chosen
/usr/bin ../tmp/shared
/dev ../tmp/shared
/usr/bin/nvidia-smi /tmp/shared/chosen /tmp/shared/chosen /elsewhere
/tmp/shared /dev/dri /dev/dri /elsewhere
/tmp/shared /way/../dri /way /dev/a'
# steered FROM TO: a link in the image.
steered() {
  local at=${1/LIBRARIES/$libraries}
  at=${at/VERSION/$version}
  rm -rf "${root:?}$at"
  mkdir -p "$root$(dirname "$at")"
  ln -s "$2" "$root$at"
}

# refuses_steered OPTION WORD...: mode cdi with a directory of the specification's, mounted with that option, refuses each of the rows and makes nothing. WORD...: before the runtime.
refuses_steered() {
  local option=$1 at to decoy leads
  shift
  mkdir "$work/secret"
  while read -r at to decoy leads; do
    fresh_root small
    echo of the host >"$volume/exists"
    specification
    jq --arg from "$volume" --arg option "$option" '.containerEdits.mounts += [{hostPath: $from, containerPath: "/tmp/shared", options: [$option, "rbind"]}]' \
      "$work/cdi/nvidia.json" >"$work/spec"
    mv "$work/spec" "$work/cdi/nvidia.json"
    steered "$at" "$to"
    [ -z "$decoy" ] || steered "$decoy" "$leads"
    asks cdi "$(mounted "$work/secret" /run/secrets/token)"
    [ $# -eq 0 ] || sed -i "s|^runtimes = .*|runtimes = [\"$(type -P crun)\"]|" "$work/config.toml"
    "${@:-on_host}" "$programs/nvidia-container-runtime" --root "$state" create --bundle "$bundle" "$container" </dev/null >"$work/said" 2>&1 3>&- 4>&- || true
    "${@:-on_host}" "$([ $# -eq 0 ] && echo runc || echo crun)" --root "$state" delete --force "$container" 2>/dev/null || true
    [ "$(ls -A "$volume")" = exists ] || die "$at -> $to: $(ls -AR "$volume") $(cat "$work/said")"
    grep -qE "a link in the image or a volume leads the mount at [^ ]+ (over /dev, /proc or /sys|into a directory of the host|to a place that cannot be determined)|would be below /sys, whose links cannot be examined|/dev of the image is a link" "$work/said" ||
      die "$at -> $to: $(cat "$work/said")"
  done <<<"$steer"
}

@test "cdi: nothing is made in a directory of the specification's, by whatever way the image leads there" {
  local to
  refuses_steered rw
  # As nobody leads it elsewhere, or to where nothing else is, it is there.
  for to in /tmp/shared /var/pipes; do
    fresh_root small
    [ "$to" = /tmp/shared ] || { mkdir -p "$root/var/pipes" "$root/tmp" && ln -s "$to" "$root/tmp/shared"; }
    asks cdi .
    shim_create
    [ "$status" -eq 0 ] || die "$to: $(cat "$work/said")"
  done
}

# It makes directories read-only after it has made the mounts.
@test "cdi, crun: nothing is made in a directory that is mounted read-only, by whatever way the image leads there" {
  local name=libcuda.so.$version
  refuses_steered ro v1_alone
  # What the host has there need not be made.
  fresh_root small
  cp "/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/root$libraries/$name" "$volume/$name"
  specification
  jq --arg from "$volume" '.containerEdits.mounts |= map(select(.containerPath | endswith("/'"$name"'"))) + [{hostPath: $from, containerPath: "/opt/lib", options: ["ro", "rbind"]}]' \
    "$work/cdi/nvidia.json" >"$work/spec"
  mv "$work/spec" "$work/cdi/nvidia.json"
  steered LIBRARIES /opt/lib
  asks cdi .
  shim_create
  [ "$status" -eq 0 ] || die "$(cat "$work/said")"
}

@test "jit-cdi: no node is made in a volume, wherever the image leads it" {
  local to why
  fresh_root small
  steered /dev data
  asks jit-cdi "$(mounted "$volume" /data)"
  shim_create
  [ -z "$(ls -A "$volume")" ] || die "$(ls -AR "$volume") $(cat "$work/said")"
  grep -q "/dev of the image is a link: nodes would be made where it leads" "$work/said" || die "$(cat "$work/said")"
  for to in /dev /dev/dri dev/../dev/new /proc/sys; do
    fresh_root small
    steered /data "$to"
    asks jit-cdi "$(mounted "$volume" /data)"
    shim_create
    [ -z "$(ls -A "$volume")" ] || die "$to: $(ls -AR "$volume") $(cat "$work/said")"
    why="a link in the image or a volume leads the mount at /data over /dev, /proc or /sys"
    [ "$to" != /proc/sys ] || why="the mount at /data would be below /proc, whose links cannot be examined"
    grep -qF "$why" "$work/said" || die "$to: $(cat "$work/said")"
  done
  # What the image has there will be covered.
  fresh_root small
  steered /data /dev/dri
  steered /dev/dri /elsewhere
  asks jit-cdi "$(mounted "$volume" /data)"
  shim_create
  [ -z "$(ls -A "$volume")" ] || die "$(ls -AR "$volume") $(cat "$work/said")"
  grep -q "a link in the image or a volume leads the mount at /data over /dev, /proc or /sys" "$work/said" || die "$(cat "$work/said")"
}

@test "cdi: no directory of the host is led elsewhere by a link in a volume" {
  fresh_root small
  mkdir "$work/other"
  ln -s /dev "$work/other/shared"
  specification
  jq --arg from "$volume" '.containerEdits.mounts += [{hostPath: $from, containerPath: "/tmp/shared", options: ["rw", "rbind"]}]' "$work/cdi/nvidia.json" >"$work/spec"
  mv "$work/spec" "$work/cdi/nvidia.json"
  asks cdi "$(mounted "$work/other" /tmp)"
  shim_create
  [ -z "$(ls -A "$volume")" ] || die "$(ls -AR "$volume") $(cat "$work/said")"
  grep -qF "a link in the image or a volume leads the mount at /tmp/shared over /dev, /proc or /sys" "$work/said" || die "$(cat "$work/said")"
  # A directory of the volume is its place.
  rm "$work/other/shared"
  mkdir "$work/other/shared"
  fresh_root small
  asks cdi "$(mounted "$work/other" /tmp)"
  shim_create
  [ "$status" -eq 0 ] || die "$(cat "$work/said")"
}

# shares_directory: the specification mounts a directory of the host at /tmp/shared.
shares_directory() {
  specification
  jq --arg from "$volume" '.containerEdits.mounts += [{hostPath: $from, containerPath: "/tmp/shared", options: ["rw", "rbind"]}]' "$work/cdi/nvidia.json" >"$work/spec"
  mv "$work/spec" "$work/cdi/nvidia.json"
}

# refuses_runtime WORDS RUNTIME [COMMAND...]: it is refused with these words, and the directory of the host stays empty. COMMAND: runs the runtime.
refuses_runtime() {
  local how=()
  sed -i "s|^runtimes = .*|runtimes = [\"$(type -P "$2")\"]|" "$work/config.toml"
  [ "$2" = runc ] || how=(v1_alone)
  "${how[@]:-on_host}" "${@:3}" "$programs/nvidia-container-runtime" --root "$state" create --bundle "$bundle" "$container" </dev/null >"$work/said" 2>&1 3>&- 4>&- || true
  "${how[@]:-on_host}" "$2" --root "$state" delete --force "$container" 2>/dev/null || true
  [ -z "$(ls -A "$volume")" ] || die "$2: $(ls -AR "$volume") $(cat "$work/said")"
  grep -qF "$1" "$work/said" || die "$2: $(cat "$work/said")"
}

# What is there in the image leads elsewhere; what is there in the container, nothing, makes ".." of the link what it says.
decoy() {
  steered /cover/way /elsewhere/far/off
  mkdir -p "$work/cover"
}

@test "cdi, runc and crun: what a mount of the engine covers does not hide where a link leads" {
  local runtime
  for runtime in runc crun; do
    # Into a directory of the specification.
    fresh_root small
    shares_directory
    decoy
    steered /usr/bin/nvidia-smi /cover/way/../../tmp/shared/chosen
    asks cdi "$(mounted "$work/cover" /cover)"
    refuses_runtime "a link in the image or a volume leads the mount at /usr/bin/nvidia-smi into a directory of the host" "$runtime"
    # Into it and out again: crun makes what is on the way.
    fresh_root small
    steered /usr/bin/nvidia-smi /tmp/shared/chosen/../../../usr/bin/other
    asks cdi .
    refuses_runtime "a link in the image or a volume leads the mount at /usr/bin/nvidia-smi into a directory of the host" "$runtime"
    # A volume over /dev, in which nodes would be made.
    fresh_root small
    specification
    decoy
    steered /data /cover/way/../../dev
    asks cdi "$(mounted "$work/cover" /cover)" "$(mounted "$volume" /data)"
    refuses_runtime "a link in the image or a volume leads the mount at /data over /dev, /proc or /sys" "$runtime"
    # The link may be in the volume.
    fresh_root small
    shares_directory
    mkdir -p "$work/linked" "$work/secret"
    ln -sfn /tmp/shared "$work/linked/to"
    asks cdi "$(mounted "$work/linked" /data)" "$(mounted "$work/secret" /data/to/token)"
    refuses_runtime "a link in the image or a volume leads the mount at /data/to/token into a directory of the host" "$runtime"
    # Or in the image, before ".." in the destination, which containerd takes from an image as it is.
    fresh_root small
    shares_directory
    mkdir -p "$root/elsewhere"
    steered /x/link /elsewhere
    asks cdi "$(mounted "$work/secret" /x/link/../tmp/shared/new)"
    refuses_runtime "a link in the image or a volume leads the mount at /x/link/../tmp/shared/new to a place that cannot be determined" "$runtime"
    fresh_root small
    shares_directory
    steered /x/link loop
    steered /x/loop link
    asks cdi "$(mounted "$work/secret" /x/link/../..)"
    refuses_runtime "a link in the image or a volume leads the mount at /x/link/../.. to a place that cannot be determined" "$runtime"
    fresh_root small
    specification
    steered /link /dev/far
    asks cdi "$(mounted "$volume" /link/..)"
    refuses_runtime "a link in the image or a volume leads the mount at /link/.. to a place that cannot be determined" "$runtime"
    # A mount that the specification's replaces covers nothing.
    fresh_root small
    shares_directory
    mkdir -p "$root/dev/far"
    steered /tmp/shared/way /dev/far
    steered /mnt/data /tmp/shared/way/..
    asks cdi "$(mounted "$work/secret" /tmp/shared)" "$(mounted "$volume" /mnt/data)"
    refuses_runtime "a link in the image or a volume leads the mount at /mnt/data over /dev, /proc or /sys" "$runtime"
  done
}

# runc 1.1 makes the place where links lead, and mounts where they do not.
@test "cdi, runc and crun: no destination with .. after a link is believed" {
  local runtime at
  for runtime in runc crun; do
    for at in /k/a/../l /k/a/../..; do
      fresh_root small
      specification
      mkdir -p "$root/elsewhere/deep/x" "$root/elsewhere/deep/l"
      steered /k/a /elsewhere/deep/x
      steered /k/l /dev
      asks cdi "$(mounted "$volume" "$at")"
      refuses_runtime "a link in the image or a volume leads the mount at $at to a place that cannot be determined" "$runtime"
    done
    # A relative one is mounted as late as its depth says.
    fresh_root small
    shares_directory
    mkdir -p "$work/linked" "$work/secret"
    ln -sfn /tmp/shared "$work/linked/t"
    steered /link /p/q/r/s/t
    asks cdi "$(mounted "$work/linked" /p/q/r/s)" "$(mounted "$work/secret" ../../../../../link/token)"
    refuses_runtime "a link in the image or a volume leads the mount at ../../../../../link/token into a directory of the host" "$runtime"
  done
}

@test "cdi, runc and crun: no node is made in a directory of the host" {
  local runtime
  for runtime in runc crun; do
    fresh_root small
    shares_directory
    jq '.devices[0].containerEdits.deviceNodes += [{path: "/dev/dri/card9", hostPath: "/dev/nvidia0"}]' "$work/cdi/nvidia.json" >"$work/spec"
    mv "$work/spec" "$work/cdi/nvidia.json"
    mkdir -p "$work/dri"
    ln -sfn /tmp/shared/chosen "$work/dri/card9"
    asks cdi "$(mounted "$work/dri" /dev/dri)"
    refuses_runtime "a link in the image or a volume leads the node /dev/dri/card9 into a directory of the host" "$runtime"
    # Nor one of the engine's.
    asks cdi "$(mounted "$work/dri" /tmp/dri)" '.linux.devices += [{path: "/tmp/dri/card9", type: "c", major: 1, minor: 3}]'
    refuses_runtime "a link in the image or a volume leads the node /tmp/dri/card9 into a directory of the host" "$runtime"
  done
}

# runc follows links of procfs as text, and the kernel follows them for the working directory.
@test "cdi, runc and crun: nothing is made where links of procfs lead" {
  local runtime at
  mkdir "$work/anonymous"
  for runtime in runc crun; do
    for at in /proc/self/root /proc/self/root/dev /proc/self/root/tmp/shared/new; do
      fresh_root small
      shares_directory
      asks cdi "$(mounted "$work/anonymous" "$at")"
      refuses_runtime "the mount at $at would be below /proc, whose links cannot be examined" "$runtime"
      [ -z "$(ls -A "$work/anonymous")" ] || die "$runtime, $at: $(ls -AR "$work/anonymous")"
    done
    asks cdi '.process.cwd = "/proc/self/root/tmp/shared/new"'
    refuses_runtime "the working directory /proc/self/root/tmp/shared/new would be below /proc, whose links cannot be examined" "$runtime"
    # As a volume, procfs has links that mean our process to us, and theirs to runtimes.
    for at in self/cwd/new 1/root/new thread-self/root/new; do
      asks cdi "$(mounted /proc /host/proc)" ".process.cwd = \"/host/proc/$at\""
      refuses_runtime "the working directory /host/proc/$at would be below /host/proc, whose links cannot be examined" "$runtime"
    done
  done
}

# steered_through WAY AT TO: by links of sysfs or procfs, where ".." is another directory, and by one of the image that leads to TO.
steered_through() {
  case $1 in
  sysfs)
    mkdir -p "$root/x/1/2/3/4"
    steered /d /x/1/2/3/4
    steered /x/y "$3"
    steered "$2" /sys/devices/virtual/net/lo/subsystem/../../../d/../../../../y
    ;;
  procfs)
    steered /d /m/n/o
    steered /y "$3"
    steered "$2" /proc/mounts/../../d/../../y
    ;;
  esac
}

@test "cdi, jit-cdi, runc and crun: nothing is made where links of sysfs and procfs lead" {
  local runtime way mode place
  mkdir "$work/anonymous"
  for runtime in runc crun; do
    for way in sysfs procfs; do
      place=/${way/fs/}
      fresh_root small
      shares_directory
      steered_through "$way" /usr/bin/nvidia-smi /tmp/shared/chosen
      asks cdi
      refuses_runtime "the mount at /usr/bin/nvidia-smi would be below $place, whose links cannot be examined" "$runtime"
      for mode in cdi jit-cdi; do
        fresh_root small
        specification
        steered_through "$way" /data /dev
        asks "$mode" "$(mounted "$volume" /data)"
        refuses_runtime "the mount at /data would be below $place, whose links cannot be examined" "$runtime"
      done
      fresh_root small
      shares_directory
      steered_through "$way" /w /tmp/shared
      asks cdi '.process.cwd = "/w/new"'
      refuses_runtime "the working directory /w/new would be below $place, whose links cannot be examined" "$runtime"
    done
    # By a destination alone, and by one link.
    fresh_root small
    shares_directory
    steered_through sysfs /unused /tmp/shared
    asks cdi "$(mounted "$work/anonymous" /sys/devices/virtual/net/lo/subsystem/../../../d/../../../../y/new)"
    refuses_runtime "the mount at /sys/devices/virtual/net/lo/subsystem/../../../d/../../../../y/new would be below /sys, whose links cannot be examined" "$runtime"
    fresh_root small
    shares_directory
    steered /k /sys/devices/virtual/net/lo/subsystem/../../../tmp/shared
    asks cdi '.mounts += [{destination: "/k/new", type: "tmpfs", source: "tmpfs", options: ["nosuid"]}]'
    refuses_runtime "the mount at /k/new would be below /sys, whose links cannot be examined" "$runtime"
    asks cdi '.linux.devices += [{path: "/k/node", type: "c", major: 1, minor: 3}]'
    refuses_runtime "the node /k/node would be below /sys, whose links cannot be examined" "$runtime"
  done
}

# Links of sysfs enter a volume that is mounted in it.
@test "cdi, jit-cdi, runc and crun: no volume is mounted by a link of sysfs into another" {
  local runtime mode
  mkdir "$work/device"
  ln -s /dev "$work/device/evil"
  for runtime in runc crun; do
    for mode in cdi jit-cdi; do
      fresh_root small
      rm -f "$work/cdi/nvidia.json"
      asks "$mode" "$(mounted "$work/device" /sys/devices/virtual/net/lo)" "$(mounted "$volume" /sys/class/net/lo/evil)"
      refuses_runtime "the mount at /sys/class/net/lo/evil would be below /sys, whose links cannot be examined" "$runtime"
      fresh_root small
      asks "$mode" "$(mounted "$volume" /./dev)"
      refuses_runtime "a link in the image or a volume leads the mount at /./dev over /dev, /proc or /sys" "$runtime"
    done
  done
  # What the host has there as a directory is there in the container.
  fresh_root small
  asks jit-cdi "$(mounted /sys/fs/cgroup /sys/fs/cgroup)" "$(mounted "$volume" /sys/kernel)"
  shim_create
  [ "$status" -eq 0 ] || die "$(cat "$work/said")"
}

# What we have made in the root is undone.
@test "jit-cdi, runc and crun: no link that we make ourselves leads a volume" {
  local runtime
  for runtime in runc crun; do
    fresh_root small
    mkdir -p "$root/p/q"
    steered "$libraries/gbm" /p/q
    steered /p/libnvidia-allocator.so.1 /
    asks jit-cdi "$(mounted "$volume" /p/q/nvidia-drm_gbm.so/dev)" '.process.env |= map(select(startswith("NVIDIA_DRIVER_CAPABILITIES") | not)) + ["NVIDIA_DRIVER_CAPABILITIES=all"]'
    refuses_runtime "a link in the image or a volume leads the mount at /p/q/nvidia-drm_gbm.so/dev over /dev, /proc or /sys" "$runtime"
    grep -q "symlink $libraries/gbm/nvidia-drm_gbm.so" "$work/runtime.log" || die "no link was made: $(cat "$work/runtime.log")"
    [ ! -L "$root/p/q/nvidia-drm_gbm.so" ] && [ ! -e "$root$libraries/libcuda.so" ] || die "$(find "$root" -type l)"
  done
}

@test "cdi, runc and crun: no tmpfs that is mounted over the root or by a specification hides where links lead" {
  local runtime run='.mounts += [{destination: "/run", type: "tmpfs", source: "tmpfs", options: ["nosuid"]}]'
  for runtime in runc crun; do
    fresh_root small
    shares_directory
    steered /run /
    steered /usr/bin/nvidia-smi /tmp/shared/chosen
    asks cdi "$run"
    refuses_runtime "a link in the image or a volume leads the mount at /run over the whole root" "$runtime"
    fresh_root small
    specification
    jq '.containerEdits.mounts += [{hostPath: "tmpfs", containerPath: "/t", type: "tmpfs", options: ["nosuid", "nodev"]}]' "$work/cdi/nvidia.json" >"$work/spec"
    mv "$work/spec" "$work/cdi/nvidia.json"
    mkdir -p "$root/a/b/c"
    steered /t/l /a/b/c
    steered /y /dev
    steered /opt/data /t/l/../../y
    asks cdi "$(mounted "$volume" /opt/data)"
    refuses_runtime "a link in the image or a volume leads the mount at /opt/data" "$runtime"
  done
}

@test "cdi, runc and crun: no node is made in a volume below /dev by a link of another" {
  local runtime
  for runtime in runc crun; do
    fresh_root small
    specification
    jq '.devices[0].containerEdits.deviceNodes += [{path: "/dev/dri/card9", hostPath: "/dev/nvidia0"}]' "$work/cdi/nvidia.json" >"$work/spec"
    mv "$work/spec" "$work/cdi/nvidia.json"
    mkdir -p "$work/dri"
    ln -sfn /dev/shm/chosen "$work/dri/card9"
    asks cdi "$(mounted "$work/dri" /dev/dri)" "$(mounted "$volume" /dev/shm)"
    refuses_runtime "a link in the image or a volume leads the node /dev/dri/card9 into a volume" "$runtime"
  done
}

@test "cdi, runc and crun: no working directory is made in a directory of the host" {
  local runtime
  for runtime in runc crun; do
    fresh_root small
    shares_directory
    asks cdi '.process.cwd = "/tmp/shared/new/deep"'
    refuses_runtime "the working directory /tmp/shared/new/deep would be made in a directory of the host, $volume" "$runtime"
    steered /elsewhere /tmp/shared
    asks cdi '.process.cwd = "/elsewhere/new"'
    refuses_runtime "a link in the image or a volume leads the working directory /elsewhere/new into a directory of the host" "$runtime"
  done
  # One that exists is not made.
  asks cdi '.process.cwd = "/elsewhere"'
  shim_create
  [ "$status" -eq 0 ] || die "$(cat "$work/said")"
}

# What mode csv and a gated feature give is made by one runtime.
@test "csv, crun: no file is made in a directory of a gated feature" {
  fresh_root small
  steered /usr/bin/nvidia-smi /run/udev/chosen
  asks csv '.process.env += ["NVIDIA_GDS=enabled"]'
  mkdir "$work/udev"
  # shellcheck disable=SC2016
  refuses_runtime "a link in the image or a volume leads the mount at /usr/bin/nvidia-smi into a directory of the host" crun unshare --mount --propagation private -- \
    sh -c 'mount -t tmpfs none /run && mkdir /run/udev && mount --bind "$0" /run/udev && exec "$@"' "$work/udev"
  [ -z "$(ls -A "$work/udev")" ] || die "$(ls -AR "$work/udev")"
}

@test "cdi, runc and crun: no volume is made in a directory of the specification" {
  local runtime
  mkdir "$work/anonymous"
  for runtime in runc crun; do
    fresh_root small
    shares_directory
    asks cdi "$(mounted "$work/anonymous" /tmp/shared/new)"
    refuses_runtime "the mount at /tmp/shared/new would be made in a directory of the host, $volume" "$runtime"
  done
  # It may cover what the directory has, and have others in itself.
  fresh_root small
  mkdir "$volume/old"
  asks cdi "$(mounted "$work/anonymous" /tmp/shared/old)" "$(mounted "$work/anonymous" /tmp/shared/old/new)"
  shim_create
  ! grep -q "a directory of the host" "$work/said" || die "$(cat "$work/said")"
}

# crun runs hooks before it finds that such a container has no /dev.
@test "crun alone: no hook takes a volume that a link leads over the whole root for the root" {
  local hook words
  for hook in "createContainer nvidia-cdi-hook update-ldcache --folder $libraries" "createContainer nvidia-cdi-hook create-symlinks --link a::/b" \
    "prestart nvidia-container-runtime-hook prestart"; do
    fresh_root small
    steered /data /
    read -ra words <<<"$hook"
    asks legacy "$(mounted "$volume" /data)"
    edit_bundle --arg stage "${words[0]}" --arg path "$programs/${words[1]}" --arg words "${words[*]:1}" --arg config "$NVIDIA_CTK_CONFIG_FILE_PATH" \
      '.hooks = {($stage): [{path: $path, args: ($words | split(" ")), env: ["NVIDIA_CTK_CONFIG_FILE_PATH=\($config)"]}]}'
    v1_alone crun --root "$state" create --bundle "$bundle" "$container" </dev/null >"$work/said" 2>&1 3>&- 4>&- || true
    v1_alone crun --root "$state" delete --force "$container" 2>/dev/null || true
    [ -z "$(ls -A "$volume")" ] || die "$hook: $(ls -AR "$volume") $(cat "$work/said")"
    grep -q "error executing hook" "$work/said" || die "$hook: $(cat "$work/said")"
    # The root itself may be mounted in the container.
    fresh_root small
    asks legacy "$(mounted "$root" /mnt)"
    edit_bundle --arg stage "${words[0]}" --arg path "$programs/${words[1]}" --arg words "${words[*]:1}" --arg config "$NVIDIA_CTK_CONFIG_FILE_PATH" \
      '.hooks = {($stage): [{path: $path, args: ($words | split(" ")), env: ["NVIDIA_CTK_CONFIG_FILE_PATH=\($config)"]}]}'
    v1_alone crun --root "$state" create --bundle "$bundle" "$container" </dev/null >"$work/said" 2>&1 3>&- 4>&- || die "$hook: $(cat "$work/said")"
    v1_alone crun --root "$state" delete --force "$container"
  done
}

# configured alone|supervised: for every GPU; supervised as by an engine, at a process whose root is still the host's.
configured() {
  local run=(nvidia-container-cli configure --no-cgroups --device=all --compute --utility --compat32)
  rm -f "$work/pid"
  if [ "$1" = alone ]; then
    run on_host env CUDA_MPS_PIPE_DIRECTORY="$volume" unshare --mount --propagation private -- "${run[@]}" "$root"
    return
  fi
  # shellcheck disable=SC2016
  on_host unshare --mount --propagation private -- bash -c 'mount --rbind "$0" "$0" && echo $$ >"$1.new" && mv "$1.new" "$1" && exec sleep 60' \
    "$root" "$work/pid" 3>&- &
  within 5 test -e "$work/pid"
  run on_host env CUDA_MPS_PIPE_DIRECTORY="$volume" "${run[@]}" --pid="$(cat "$work/pid")" "$root"
  kill "$(cat "$work/pid")"
}

# bats test_tags=old-kernel
@test "configure: nothing is made in the directory of MPS, by whatever way the image leads there" {
  local at to decoy leads why how
  while read -r at to decoy leads; do
    at=${at/#\/tmp\/shared/$volume}
    case "$at:$to$decoy" in
    *:/dev | *:/dev/dri | *:/proc | *:/sys/fs | *:/usr/bin | *:/way/*) why="$root$volume to a place that must not be covered" ;;
    /dev:*) why="$root/dev/nvidiactl outside the mount of the root" ;;
    *) why= ;;
    esac
    for how in alone supervised; do
      fresh_root small
      steered "$at" "${to/\/tmp\/shared/$volume}"
      [ -z "$decoy" ] || steered "${decoy/#\/tmp\/shared/$volume}" "$leads"
      configured "$how"
      [ -z "$(ls -A "$volume")" ] || die "$how: $at -> $to: $(ls -AR "$volume") $output"
      [ "${lines[0]:-}" = "${why:+nvidia-container-cli: mount error: path error: a link in the image leads $why}" ] || die "$how: $at -> $to: $output"
    done
  done <<<"$steer"
}

# bats test_tags=old-kernel
@test "prestart hook: nothing is made in the directory of MPS, by a link of the image" {
  fresh_root small
  steered "$volume" /dev
  rm -rf "$bundle"
  make_bundle
  sed -i "s|^exec nvidia|export CUDA_MPS_PIPE_DIRECTORY=$volume; &|; s| configure | configure --no-cgroups |" "$work/hook"
  run on_host runc --root "$state" create --bundle "$bundle" "$container" </dev/null 3>&- 4>&-
  [ "$status" -ne 0 ]
  [ -z "$(ls -A "$volume")" ] || die "$(ls -A "$volume")"
  grep -q "^nvidia-container-cli: mount error: path error: a link in the image leads .*$volume to a place that must not be covered\$" "$hook_log" || die "$(cat "$hook_log")"
}

# bats test_tags=old-kernel
@test "configure: a link and the directory of MPS in the image change places" {
  local racer turn
  fresh_root small
  steered "$volume" /dev
  mkdir "$root$volume.alt"
  "$build/test/tools/exchange" "$work/rounds" "$root$volume" "$root$volume.alt" 3>&- &
  racer=$!
  within 5 test -s "$work/rounds"
  for turn in $(seq 60); do
    configured alone
    [ -z "$(ls -A "$volume")" ] || break
  done
  kill "$racer"
  [ -z "$(ls -A "$volume")" ] || die "turn $turn: $(ls -A "$volume")"
  [ "$(stat -c %s "$work/rounds")" -gt 100 ]
}

@test "configure at a container that runs: no volume is changed, by whatever way the image leads there" {
  local case place told='' places
  while read -r case place; do
    fresh_root small
    lead_there "$case"
    fill_volume
    case "$case" in
    *-link) places='' ;;
    *) places=runc ;;
    esac
    volume_state "$places" >"$work/before"
    # shellcheck disable=SC2016
    witnessed unshare --mount --propagation private -- bash -c 'root=$1 place=$2 volume=$3; shift 3
      mount --rbind "$root" "$root" && cd / && { [ -d "$root$place" ] || mkdir -p "$root$place"; } && mount --bind "$volume" "$root$place" || exit
      exec "$@" "$root"' - "$root" "$place" "$volume" "$programs/nvidia-container-cli" configure --no-cgroups --device=0 --compute --utility || true
    volume_state "$places" >"$work/after"
    diff "$work/before" "$work/after" >"$work/changed" || told+="$case at $place:"$'\n'"$(cat "$work/changed")"$'\n'
    opened_no_node || told+="$case: it opens a node"$'\n'
  done <<<"$volumes"
  [ -z "$told" ] || die "$told"
}

# ---- CPU ----

# N lines, each of a long path behind a chain of links, of which nothing is there: each look costs the kernel milliseconds, and each part of the path may get one.
# Thirteen links: the kernel counts up to 40, and those of a first, quick try as well.
slow_configuration() {
  on_host perl -e 'my ($root, $n) = @ARGV;
    open F, ">", "$root/etc/ld.so.conf" or die;
    print F "/d/l0", "/x" x 100, "/$_\n" for 1 .. $n;
    print F "/usr/lib/x86_64-linux-gnu\n";
    mkdir "$root/d"; chdir "$root/d" or die;
    my $far = "/d/" . "s/" x 1800;
    symlink $far . "l1", "l0" or die;
    for (1 .. 1800) { mkdir "s"; chdir "s" or die $! }
    for my $i (1 .. 12) { symlink($far . ($i < 12 ? "l" . ($i + 1) : ""), "l$i") or die $! }' "$root" "$1"
}

@test "jit-cdi with a volume: 4,000 directories with deep paths and links" {
  fresh_root small
  slow_configuration 4000
  asks jit-cdi "$(mounted "$volume" /data)"
  shim_create
  within_budget
}

@test "jit-cdi: 3,000 volumes whose paths differ only at their end" {
  fresh_root small
  asks jit-cdi '.mounts += [range(3000) | {destination: ("/m" * 1000 + "/\(.)"), source: "/tmp", type: "bind", options: ["rbind"]}]'
  # The low-level runtime would take its time.
  sed -i 's|^runtimes = .*|runtimes = ["/bin/true"]|' "$work/config.toml"
  shim_create
  within_budget
  [[ $(cat "$work/runtime.log") == *"comparing the mounts in config.json takes too long"* ]] || die "$(cat "$work/runtime.log")"
}

@test "cdi without a volume: 2,000 directories with deep paths and links, two mounts of the specification" {
  fresh_root small
  slow_configuration 2000
  specification
  jq --arg source "$volume" '.containerEdits.mounts += [("/usr/share/one", "/usr/share/two") | {hostPath: $source, containerPath: ., options: ["ro", "rbind"]}]' \
    "$work/cdi/nvidia.json" >"$work/new"
  mv "$work/new" "$work/cdi/nvidia.json"
  asks cdi
  shim_create
  within_budget
}

@test "csv and legacy, and cdi with the hook of the cache alone: 4,000 directories with deep paths and links" {
  local mode
  specification update-ldcache
  for mode in csv legacy cdi; do
    fresh_root small
    slow_configuration 4000
    asks "$mode" "$(mounted "$volume" /data)"
    shim_create
    within_budget || die "$mode" || return
  done
}

# The six hooks that existing specifications name, as an engine writes them into config.json; the first two as their generators of earlier years have them. And those of the loader's cache that
# further specifications bring.
old_hooks() {
  specification all
  jq -c --arg ctk "$programs/nvidia-ctk" '.containerEdits.hooks | . + [limit(6; repeat(.[2]))] | to_entries | map(.key as $i | .value | del(.hookName) |
    if $i < 2 then .path = $ctk | .args = ["nvidia-ctk", "hook"] + .args[1:] | del(.env) else . end)' "$work/cdi/nvidia.json"
}

# low_level NAME: the container is created by runc or crun itself.
low_level() {
  # shellcheck disable=SC2016
  case "$1" in
  runc) witnessed runc --root "$state" create --bundle "$bundle" "$container" ;;
  crun) witnessed unshare --mount --propagation private -- sh -c 'umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"' sh \
    crun --cgroup-manager=disabled --root "$state" create --bundle "$bundle" "$container" ;;
  esac
}

@test "runc and crun with an old specification's hooks: 4,000 directories with deep paths and links" {
  local program filter
  for program in runc crun; do
    for filter in . 'del(.linux.namespaces[] | select(.type == "pid"))'; do
      fresh_root small
      slow_configuration 4000
      asks jit-cdi ".hooks = {createContainer: $(old_hooks)} | .process.env -= [\"NVIDIA_VISIBLE_DEVICES=0\"]" "$filter"
      low_level "$program" || :
      "$program" --root "$state" delete --force "$container" 2>/dev/null || :
      within_budget || die "$program, $filter" || return
      # One alone takes some time.
      awk '/^cpu/ { exit $2 < 0.2 }' "$work/report" || die "$program, $filter: $(cat "$work/report" "$work/said")" || return
    done
  done
}

@test "cdi with another maker's hook between ours: 4,000 directories with deep paths and links" {
  specification all
  jq '.containerEdits.hooks |= (. + [limit(3; repeat(.[2]))] | map(., {hookName: "createContainer", path: "/bin/true", args: ["true"]}))' "$work/cdi/nvidia.json" >"$work/new"
  mv "$work/new" "$work/cdi/nvidia.json"
  fresh_root small
  slow_configuration 4000
  asks cdi "$(mounted "$volume" /data)"
  shim_create
  within_budget
}

@test "each hook by itself, configure, plan, doctor: 4,000 directories with deep paths and links" {
  local hook
  for hook in "create-symlinks --link x::/d/l0/a --link x::/d/l0/b" "enable-cuda-compat --host-driver-version=$version --cuda-compat-container-root /d/l0" \
    "update-ldcache --folder /d/l0 --folder /opt" "sequence --rootfs $root update-ldcache --folder /opt --then update-ldcache --folder /opt/b" update-application-profile; do
    fresh_root small
    slow_configuration 4000
    asks jit-cdi
    # shellcheck disable=SC2086
    at_hook "" $hook
    within_budget || die "$hook" || return
  done
  fresh_root small
  slow_configuration 4000
  witnessed "$programs/nvidia-container-cli" plan --device=0 --compute "$root" || true
  within_budget
  witnessed "$programs/nvidia-container-cli" plan --style=oci --device=0 --compute "$root" || true
  within_budget
  witnessed "$programs/nvidia-ctk" doctor --quick --image "$root" || true
  within_budget
  witnessed unshare --mount --propagation private -- "$programs/nvidia-container-cli" configure --no-cgroups --device=0 --compute --utility "$root" || true
  within_budget
}

@test "4,000 directories with deep paths and links, for each program" { table slow; }

# ---- friendly containers ----

# works MODE PLACE [CREATE-OPTION...]: with a volume there, a program of the container finds its GPU by dlopen(3).
works() {
  local mode=$1 place=$2
  shift 2
  fresh_root debian overlay
  case "$place" in
  /data | /usr/local/lib)
    cp "$BATS_FILE_TMPDIR/library.so" "$volume/libtemplate0000.so.1.0"
    ;;
  *)
    rm -rf "$volume"
    # As a copy of what the image has there.
    cp -a "$(image debian)$(realpath -m --relative-base=/ "/$place")" "$volume" 2>/dev/null || cp -a "$(image debian)$place" "$volume"
    ;;
  esac
  asks "$mode" "$(mounted "$volume" "$place")"
  on_host "$programs/nvidia-container-runtime" --root "$state" create --bundle "$bundle" "$@" "$container" </dev/null >"$work/out" 2>&1 3>&- 4>&- ||
    die "$mode, $place: $(cat "$work/out")" || return
  run_created on_host runc --root "$state"
  expect nvidia-smi 1 || die "$mode, $place" || return
  [[ ${answer[loader]} == */libcuda.so.$version ]] || die "$mode, $place: libcuda.so.1 is '${answer[loader]}': $output"
}

# in_all PLACE
in_all() {
  local mode
  for mode in jit-cdi cdi legacy; do works "$mode" "$1" || return; done
  works jit-cdi "$1" --pid-file "$work/pid"
}

@test "a volume at /data costs nobody the GPU" { in_all /data; }
@test "a volume at /usr/local/lib costs nobody the GPU" { in_all /usr/local/lib; }
@test "a volume at the directory of the libraries costs nobody the GPU" { in_all "$libraries"; }
@test "a volume at /etc costs nobody the GPU" { in_all /etc; }
@test "a volume that is the cache of the loader costs nobody the GPU" { in_all /etc/ld.so.cache; }
@test "a volume that is the configuration of the loader costs nobody the GPU" { in_all /etc/ld.so.conf; }
