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

# shares_directory [OPTIONS]: the specification mounts a directory of the host at /tmp/shared, "rw" unless options are given.
shares_directory() {
  specification
  jq --arg from "$volume" --arg options "${1:-rw}" '.containerEdits.mounts += [{hostPath: $from, containerPath: "/tmp/shared", options: (($options | split(",")) + ["rbind"])}]' \
    "$work/cdi/nvidia.json" >"$work/spec"
  mv "$work/spec" "$work/cdi/nvidia.json"
}

# created_by RUNTIME [WORD...]: nvidia-container-runtime's `create`, by runc or crun, with these options. Sets $status; the container stays.
created_by() {
  how=(on_host)
  [ "$1" = runc ] || how=(v1_alone)
  sed -i "s|^runtimes = .*|runtimes = [\"$(type -P "$1")\"]|" "$work/config.toml"
  status=0
  "${how[@]}" "$programs/nvidia-container-runtime" --root "$state" create --bundle "$bundle" "${@:2}" "$container" </dev/null >"$work/said" 2>&1 3>&- 4>&- || status=$?
}
deleted_by() { "${how[@]}" "$1" --root "$state" delete --force "$container" 2>/dev/null || true; }

# stays_as_it_was WAY: whatever becomes of the container that WAY prepares, and whoever mounts the directory: the hook, or the runtime after `create`.
stays_as_it_was() {
  local runtime option
  for runtime in runc crun; do
    for option in "" --pid-file="$work/pid"; do
      fresh_root small
      echo of the host >"$volume/exists"
      shares_directory
      "$@"
      created_by "$runtime" ${option:+"$option"}
      deleted_by "$runtime"
      [ "$(ls -A "$volume")" = exists ] || die "$runtime $option, $*: $(ls -AR "$volume") $(cat "$work/said")"
    done
  done
}

# A link of the image; twice, if another one is to hide where it leads.
by_link() {
  steered "$1" "$2"
  [ -z "${3-}" ] || steered "$3" "$4"
  mkdir -p "$work/secret"
  asks cdi "$(mounted "$work/secret" /run/secrets/token)"
}

@test "cdi, runc and crun: nothing is made in a directory of the host, by whatever way the image leads there" {
  local at to decoy leads
  while read -r at to decoy leads; do
    stays_as_it_was by_link "$at" "$to" "$decoy" "$leads"
    # Where it would cover what the container needs, it is not mounted at all.
    [[ $at != /tmp/shared || $to != @(/dev|/dev/dri|/proc|/sys/fs) || -n $decoy ]] ||
      [[ $status -ne 0 && $(cat "$work/said") == *"a link in the image leads /tmp/shared "@("to a place that must not be covered"|"outside the mount of the root")* ]] ||
      die "$at -> $to: $(cat "$work/said")"
  done <<<"$steer"
}

# What is there in the image leads elsewhere; what is there in the container, nothing, makes ".." of the link what it says.
by_covered_link() {
  steered /cover/way /elsewhere/far/off
  mkdir -p "$work/cover"
  steered /usr/bin/nvidia-smi /cover/way/../../tmp/shared/chosen
  asks cdi "$(mounted "$work/cover" /cover)"
}
# Into it and out again: crun makes what is on the way.
by_both_ways() {
  steered /usr/bin/nvidia-smi /tmp/shared/chosen/../../../usr/bin/other
  asks cdi .
}
by_volume() {
  mkdir -p "$work/linked" "$work/secret"
  ln -sfn /tmp/shared "$work/linked/to"
  asks cdi "$(mounted "$work/linked" /data)" "$(mounted "$work/secret" /data/to/token)"
}
# runc 1.1 makes the place where links lead, and mounts where they do not.
by_parents() {
  mkdir -p "$root/elsewhere" "$work/secret"
  steered /x/link /elsewhere
  asks cdi "$(mounted "$work/secret" "/x/link/../tmp/shared/new")"
}
# A relative destination is mounted as late as its depth says.
by_depth() {
  mkdir -p "$work/linked" "$work/secret"
  ln -sfn /tmp/shared "$work/linked/t"
  steered /link /p/q/r/s/t
  asks cdi "$(mounted "$work/linked" /p/q/r/s)" "$(mounted "$work/secret" ../../../../../link/token)"
}
by_node() {
  jq '.devices[0].containerEdits.deviceNodes += [{path: "/dev/dri/card9", hostPath: "/dev/nvidia0"}]' "$work/cdi/nvidia.json" >"$work/spec"
  mv "$work/spec" "$work/cdi/nvidia.json"
  mkdir -p "$work/dri"
  ln -sfn /tmp/shared/chosen "$work/dri/card9"
  asks cdi "$(mounted "$work/dri" /dev/dri)"
}
by_node_of_engine() {
  mkdir -p "$work/dri"
  ln -sfn /tmp/shared/chosen "$work/dri/card9"
  asks cdi "$(mounted "$work/dri" /tmp/dri)" '.linux.devices += [{path: "/tmp/dri/card9", type: "c", major: 1, minor: 3}]'
}
# By links of sysfs or procfs, where ".." is another directory, and by one of the image.
by_sysfs() {
  mkdir -p "$root/x/1/2/3/4"
  steered /d /x/1/2/3/4
  steered /x/y /tmp/shared
  steered /usr/bin/nvidia-smi /sys/devices/virtual/net/lo/subsystem/../../../d/../../../../y/chosen
  asks cdi .
}
by_procfs() {
  steered /d /m/n/o
  steered /y /tmp/shared
  steered /usr/bin/nvidia-smi /proc/mounts/../../d/../../y/chosen
  asks cdi .
}
by_process() {
  mkdir -p "$work/secret"
  asks cdi "$(mounted "$work/secret" /proc/self/root/tmp/shared/new)"
}
# crun mounts it over the root and goes on in the image.
by_whole_root() {
  steered /run /
  steered /usr/bin/nvidia-smi /tmp/shared/chosen
  asks cdi '.mounts += [{destination: "/run", type: "tmpfs", source: "tmpfs", options: ["nosuid"]}]'
}
by_cwd() { asks cdi '.process.cwd = "/tmp/shared/new/deep"'; }
by_linked_cwd() {
  steered /elsewhere /tmp/shared
  asks cdi '.process.cwd = "/elsewhere/new"'
}
by_dangling_cwd() {
  steered /elsewhere /tmp/shared/new
  asks cdi '.process.cwd = "/elsewhere"'
}
by_cwd_of_process() { asks cdi '.process.cwd = "/proc/self/root/tmp/shared/new"'; }

# bats test_tags=old-kernel
@test "cdi, runc and crun: nothing is made in a directory of the host, by ways of which the image is a part" {
  local way
  for way in covered_link both_ways volume parents depth node node_of_engine sysfs procfs process whole_root cwd linked_cwd dangling_cwd cwd_of_process; do
    stays_as_it_was "by_$way"
  done
}

# Both mount a socket of the caller's after all others.
@test "cdi, runc and crun: no socket is mounted in a directory of the host" {
  local runtime
  for runtime in runc crun; do
    fresh_root small
    shares_directory
    steered /run/notify /tmp/shared
    asks cdi .
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(sys.argv[1])' "$work/$runtime.notify"
    NOTIFY_SOCKET=$work/$runtime.notify created_by "$runtime"
    deleted_by "$runtime"
    [ -z "$(ls -A "$volume")" ] || die "$runtime: $(ls -AR "$volume") $(cat "$work/said")"
  done
}

# bats test_tags=old-kernel
@test "cdi, runc and crun: the working directory is never made in a directory of the host" {
  local runtime
  for runtime in runc crun; do
    fresh_root small
    shares_directory
    asks cdi '.process.cwd = "/tmp/shared/new/deep"'
    created_by "$runtime"
    [ "$status" -ne 0 ]
    # crun does not show what a hook says.
    [ "$runtime" = crun ] || grep -qF "the working directory /tmp/shared/new/deep would be made in a directory of the host" "$work/said" || die "$(cat "$work/said")"
    deleted_by "$runtime"
    steered /elsewhere /tmp/shared/new
    asks cdi '.process.cwd = "/elsewhere"'
    created_by "$runtime"
    [ "$status" -ne 0 ]
    [ "$runtime" = crun ] || grep -qF "the working directory /elsewhere would be made where a link leads" "$work/said" || die "$(cat "$work/said")"
    deleted_by "$runtime"
    # One that exists is not made, and elsewhere it is.
    for at in /tmp/shared /tmp/new/deep; do
      asks cdi ".process.cwd = \"$at\""
      created_by "$runtime"
      [ "$status" -eq 0 ] || die "$runtime, $at: $(cat "$work/said")"
      deleted_by "$runtime"
    done
    [ -z "$(ls -A "$volume")" ] || die "$(ls -AR "$volume")"
  done
}

# flags_of PATH: the flags of each mount at that path of the container.
flags_of() { awk -v path="$1" '$5 == path { print $6 }' "/proc/$(cat "$work/pid")/mountinfo"; }

# seen_by COMMAND...: in the mounts of the container's process.
seen_by() { "${how[@]}" nsenter --target "$(cat "$work/pid")" --mount "$@"; }

# The directories are mounted before the hooks of the specification. One of those makes a link, in a directory and to a place that links of the image choose.
# links_library [FOUND]: to a directory of the host; FOUND: what is there before.
links_library() {
  fresh_root small
  shares_directory
  jq --arg lib "$libraries" '(.containerEdits.hooks[] | select(.args[1] == "create-symlinks") | .args) += ["--link", "../libnvidia-allocator.so.1::\($lib)/gbm/nvidia-drm_gbm.so"]' \
    "$work/cdi/nvidia.json" >"$work/spec"
  mv "$work/spec" "$work/cdi/nvidia.json"
  # That hooks have to run can be the image's choice.
  mkdir -p "$root/etc/ld.so.conf.d" "$root/w/gbm" "$root/elsewhere/chosen/deep"
  echo x >"$root/etc/ld.so.conf.d/00-compat-graft.conf"
  steered "$libraries/gbm" /w/gbm
  steered /w/libnvidia-allocator.so.1 "${2:-/tmp/shared}"
  [ -z "${1-}" ] || steered /w/gbm/nvidia-drm_gbm.so "$1"
}
at_gbm='.process.cwd = "/w/gbm/nvidia-drm_gbm.so/chosen/deep"'

@test "cdi, runc and crun: no later hook leads the working directory into a directory of the host" {
  local runtime option found
  for runtime in runc crun; do
    for option in "" "--pid-file=$work/pid"; do
      for found in "" /elsewhere /tmp/shared; do
        links_library "$found"
        asks cdi "$at_gbm" '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {} | .process.noNewPrivileges = true'
        created_by "$runtime" ${option:+"$option"}
        deleted_by "$runtime"
        [ "$(jq -c '[.hooks.createContainer[].args[1]]' "$bundle/config.json")" = '["apply","sequence"]' ] || die "$(jq -c .hooks "$bundle/config.json")"
        [ "$status" -ne 0 ] || die "$runtime $option $found"
        [ -z "$(ls -A "$volume")" ] || die "$runtime $option $found: $(ls -AR "$volume")"
        [[ $runtime = crun || $found != /elsewhere ]] ||
          grep -qF "the path of the working directory /w/gbm/nvidia-drm_gbm.so/chosen/deep has a link or " "$work/said" ||
          die "$(cat "$work/said")"
      done
    done
    # In a volume it is made as the low-level runtime makes it.
    links_library
    steered "$libraries/gbm" /vol/gbm
    rm -rf "$work/vol"
    mkdir -p "$work/vol/gbm"
    # Another maker's hook makes links there as well.
    ln -s /tmp/shared "$work/vol/libnvidia-allocator.so.1"
    printf '#!/bin/sh\nln -sT ../libnvidia-allocator.so.1 "%s/vol/gbm/nvidia-drm_gbm.so" 2>/dev/null\nexit 0\n' "$work" >"$work/vendor"
    chmod 0755 "$work/vendor"
    jq --arg hook "$work/vendor" '.containerEdits.hooks += [{hookName: "createContainer", path: $hook, args: ["vendor"]}]' "$work/cdi/nvidia.json" >"$work/spec"
    mv "$work/spec" "$work/cdi/nvidia.json"
    asks cdi "$(mounted "$work/vol" /vol)" '.process.cwd = "/vol/gbm/nvidia-drm_gbm.so/chosen"'
    created_by "$runtime"
    deleted_by "$runtime"
    [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
    [ -z "$(ls -A "$volume")" ] || die "$runtime: $(ls -AR "$volume")"
    [ -d "$work/vol/gbm/nvidia-drm_gbm.so/chosen" ] || die "$runtime: $(ls -lR "$work/vol") $(cat "$work/said")"
    # Without such a link it is made, and the hooks run.
    links_library
    asks cdi '.process.cwd = "/w/new/deep"'
    created_by "$runtime"
    [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
    [ -z "$(ls -A "$volume")" ]
    [ "$(stat -c %a:%U "$root/w/new/deep")" = 755:root ]
    [ "$(readlink "$root/w/gbm/nvidia-drm_gbm.so")" = ../libnvidia-allocator.so.1 ]
    deleted_by "$runtime"
  done
}

# sees_directory RUNTIME: creates the container, which has the directory at /tmp/shared, and deletes it.
sees_directory() {
  created_by "$1" --pid-file "$work/pid"
  [ "$status" -eq 0 ] || die "$1: $(cat "$work/said")"
  [ "$(seen_by cat /tmp/shared/exists)" = "of the host" ] || die "$1"
  deleted_by "$1"
}

# Each row: the options, and the flags in the container. An old kernel needs the hook, and sets flags of one mount.
# bats test_tags=old-kernel
@test "cdi, runc and crun: a directory of the host is given as the specification says" {
  local runtime options flags hook
  mkdir "$work/below"
  for runtime in runc crun; do
    # Without its working directory, the image needs a hook.
    for hook in 0 1; do
      while read -r options flags; do
        fresh_root small
        echo of the host >"$volume/exists"
        mkdir "$volume/below"
        on_host mount --bind "$work/below" "$volume/below"
        echo below >"$work/below/file"
        shares_directory "$options"
        # A file of it is mounted in the directory, and found there.
        jq --arg from "$work/config.toml" '.containerEdits.mounts = [{hostPath: $from, containerPath: "/tmp/shared/exists", options: ["ro", "nosuid", "nodev", "bind"]}] + .containerEdits.mounts' \
          "$work/cdi/nvidia.json" >"$work/spec"
        mv "$work/spec" "$work/cdi/nvidia.json"
        asks cdi "$([ "$hook" = 0 ] && echo . || echo '.process.cwd = "/nowhere"')"
        created_by "$runtime" --pid-file "$work/pid"
        [ "$status" -eq 0 ] || die "$runtime, $options: $(cat "$work/said")"
        [[ $(flags_of /tmp/shared), == $flags,* ]] || die "$runtime, $options: $(flags_of /tmp/shared), expected: $flags"
        [[ $(flags_of /tmp/shared/below), == $flags,* || -n ${GRAFT_ENOSYS-} ]] || die "$runtime, $options: $(flags_of /tmp/shared/below), expected: $flags"
        [ "$(seen_by cat /tmp/shared/below/file)" = below ]
        seen_by grep -q spec-dirs /tmp/shared/exists
        [ "$(cat "$volume/exists")" = "of the host" ]
        [ "$(grep -c '"destination": *"/tmp/shared' "$bundle/config.json")" = 0 ] || die "$(jq -c .mounts "$bundle/config.json")"
        [ "$(jq '[.hooks.createContainer[]?] | length' "$bundle/config.json")" = "${GRAFT_ENOSYS:-$hook}" ] || die "$(jq -c .hooks "$bundle/config.json")"
        deleted_by "$runtime"
        on_host umount "$volume/below"
      done <<<'rw rw
ro,nosuid ro,nosuid
ro,nosuid,nodev,noexec ro,nosuid,nodev,noexec'
    done
  done
}

# spec_mounts FILTER: the specification's mounts, changed.
spec_mounts() {
  jq --arg from "$volume" --arg work "$work" ".containerEdits.mounts |= ($1)" "$work/cdi/nvidia.json" >"$work/spec"
  mv "$work/spec" "$work/cdi/nvidia.json"
}

@test "cdi, runc and crun: a directory of the host is where the image's harmless links and mounts lead it" {
  local runtime option
  mkdir -p "$work/other/below" "$work/secret" "$work/run"
  echo secret >"$work/secret/file"
  echo other >"$work/other/file"
  ln -s other/file "$work/linked"
  for runtime in runc crun; do
    for option in 0 1; do
      cwd=$([ "$option" = 0 ] && echo . || echo '.process.cwd = "/nowhere"')
      # Without "rbind", what is mounted below stays the host's.
      fresh_root small
      specification
      spec_mounts '. + [{hostPath: "\($work)/other", containerPath: "/tmp/shared", options: ["ro", "bind"]}]'
      on_host mount --bind "$work/secret" "$work/other/below"
      asks cdi "$cwd"
      created_by "$runtime" --pid-file "$work/pid"
      on_host umount "$work/other/below"
      [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
      [ -z "$(seen_by ls -A /tmp/shared/below)" ]
      deleted_by "$runtime"
      # Of two mounts at one path the last counts; a file may be a link on the host, and have another name of the directory.
      fresh_root small
      mkdir -p "$root/usr/lib"
      [ -L "$root/lib" ] || { [ ! -e "$root/lib" ] || cp -a "$root/lib/." "$root/usr/lib/" && rm -rf "${root:?}/lib"; ln -s usr/lib "$root/lib"; }
      specification
      spec_mounts '. + [{hostPath: $from, containerPath: "/lib/vendor", options: ["rw", "bind"]}, {hostPath: "\($work)/other", containerPath: "/lib/vendor", options: ["rw", "bind"]},
        {hostPath: "\($work)/linked", containerPath: "/usr/lib/vendor/below/x", options: ["ro", "bind"]}]'
      touch "$work/other/below/x"
      asks cdi "$cwd"
      created_by "$runtime" --pid-file "$work/pid"
      [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
      [ "$(seen_by cat /lib/vendor/file /lib/vendor/below/x | xargs)" = "other other" ]
      [ "$(flags_of /usr/lib/vendor | wc -l)" = 1 ]
      deleted_by "$runtime"
      rm "$work/other/below/x"
      # /var/run is a link, and /run a mount of the container's own.
      fresh_root small
      mkdir -p "$root/run" "$root/var"
      rm -rf "$root/var/run"
      ln -s /run "$root/var/run"
      specification
      spec_mounts '. + [{hostPath: "\($work)/other", containerPath: "/var/run/shared", options: ["ro", "bind"]}]'
      asks cdi "$cwd" '.mounts += [{destination: "/run", type: "tmpfs", source: "tmpfs", options: ["nosuid"]}]'
      created_by "$runtime" --pid-file "$work/pid"
      [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
      [ "$(seen_by cat /run/shared/file)" = other ]
      deleted_by "$runtime"
      # A volume there is not changed by a link.
      asks cdi "$cwd" "$(mounted "$work/run" /run)"
      created_by "$runtime" --pid-file "$work/pid"
      deleted_by "$runtime"
      [ "$status" -ne 0 ]
      [ -z "$(ls -A "$work/run")" ]
      # What is mounted in a directory is there, whatever the image has at this path.
      fresh_root small
      mkdir -p "$root/opt/y/below" "$root/etc"
      echo image >"$root/etc/foo"
      ln -s y "$root/opt/x"
      ln -s /etc/foo "$root/opt/y/file"
      specification
      spec_mounts '. + [{hostPath: "\($work)/other", containerPath: "/opt/x", options: ["ro", "rbind"]}, {hostPath: "\($work)/secret/file", containerPath: "/opt/x/file", options: ["ro", "bind"]},
        {hostPath: "\($work)/secret", containerPath: "/opt/x/below", options: ["ro", "rbind"]}]'
      asks cdi "$cwd"
      created_by "$runtime" --pid-file "$work/pid"
      [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
      [ "$(seen_by cat /opt/x/file /opt/y/file /opt/x/below/file /etc/foo | xargs)" = "secret secret secret image" ]
      deleted_by "$runtime"
      # A directory that can be written to keeps its name.
      fresh_root small
      shares_directory
      mkdir -p "$root/tmp/real"
      ln -s real "$root/tmp/shared"
      asks cdi "$cwd"
      created_by "$runtime" --pid-file "$work/pid"
      deleted_by "$runtime"
      [ "$status" -ne 0 ]
      [[ $runtime = crun && $option = 1 ]] || grep -q "a link in the image leads .*/tmp/shared to a place that must not be covered" "$work/said" || die "$(cat "$work/said")"
      # The hook of the cache finds what is mounted in one of its directories, by whatever name.
      fresh_root debian
      specification update-ldcache
      mkdir -p "$work/vendor"
      cp "$BATS_FILE_TMPDIR/library.so" "$work/vendor/libtemplate0000.so.1"
      spec_mounts '. + [{hostPath: "\($work)/vendor", containerPath: "/lib/vendor", options: ["ro", "rbind"]}]'
      jq '.containerEdits.hooks[0].args += ["--folder", "/usr/lib/vendor"]' "$work/cdi/nvidia.json" >"$work/spec"
      mv "$work/spec" "$work/cdi/nvidia.json"
      asks cdi "$cwd"
      created_by "$runtime" --pid-file "$work/pid"
      [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
      seen_by /sbin/ldconfig -p >"$work/cache"
      grep -q "libtemplate0000.so.1 .*=> /usr/lib/vendor/libtemplate0000.so.1" "$work/cache" || die "$runtime: $(cat "$work/cache")"
      deleted_by "$runtime"
      fresh_root small
      mkdir -p "$root/run" "$root/var"
      rm -rf "$root/var/run"
      ln -s /run "$root/var/run"
      # What a link leads into the directory would be hidden as well.
      specification
      spec_mounts '. + [{hostPath: "\($work)/other", containerPath: "/run/shared", options: ["ro", "bind"]}]'
      asks cdi "$cwd" "$(mounted "$work/secret" /var/run/shared/below)"
      created_by "$runtime" --pid-file "$work/pid"
      deleted_by "$runtime"
      [[ $status -ne 0 && $(cat "$work/said") == *"the mount at /var/run/shared/below would be made in a directory of the host, $work/other. Mount it elsewhere."* ]] || die "$(cat "$work/said")"
    done
  done
}

# with_console COMMAND...: one that makes a container with a terminal; $work/console.sock takes it.
with_console() {
  rm -f "$work/console.sock"
  python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(1); s.settimeout(20)
c = s.accept()[0]; socket.recv_fds(c, 4096, 1)' "$work/console.sock" 2>/dev/null 3>&- 4>&- &
  within 5 test -S "$work/console.sock"
  "$@"
  kill $! 2>/dev/null || true
}

# runc 1.1 writes to /dev/console after the hooks.
@test "cdi, runc and crun: the console is neither made nor emptied in a directory of the host" {
  local runtime at to place
  for runtime in runc crun; do
    for to in exists made; do
      for place in /x /dev; do
        fresh_root small
        echo of the host >"$volume/exists"
        shares_directory
        rm -rf "${work:?}/dev"
        mkdir -p "$work/dev/pts" "$work/dev/shm" "$work/dev/mqueue"
        ln -s pts/ptmx "$work/dev/ptmx"
        ln -s "/tmp/shared/$to" "$work/dev/console"
        steered /x /dev
        asks cdi "$(mounted "$work/dev" "$place")" '.process.terminal = true' '.process.cwd = "/nowhere"' \
          "$([ "$place" = /x ] && echo . || echo '.mounts |= map(select(.destination != "/dev" or .type != "tmpfs"))')" '.mounts |= sort_by(.destination | split("/") | length)'
        with_console created_by "$runtime" --console-socket "$work/console.sock"
        deleted_by "$runtime"
        [ "$(ls -A "$volume"):$(cat "$volume/exists")" = "exists:of the host" ] || die "$runtime, $place, $to: $(ls -lA "$volume") $(cat "$work/said")"
        [ "$runtime" = crun ] || [[ $status -ne 0 && $(cat "$work/said") == *"the console /dev/console would be made where a link leads"* ]] || die "$place, $to: $status $(cat "$work/said")"
      done
    done
  done
}

# By the devices that it asks for, an image can choose what is mounted in a directory.
@test "cdi, runc and crun: no choice of devices leaves a directory to the low-level runtime" {
  local runtime
  for runtime in runc crun; do
    fresh_root small
    echo of the host >"$volume/exists"
    shares_directory
    jq --arg from "$work/config.toml" '.devices += [{name: "x", containerEdits: {mounts: [{hostPath: $from, containerPath: "/tmp/shared/exists", options: ["rslave", "bind"]}]}}]' \
      "$work/cdi/nvidia.json" >"$work/spec"
    mv "$work/spec" "$work/cdi/nvidia.json"
    steered /usr/bin/nvidia-smi /tmp/shared/chosen
    asks cdi '.process.env |= map(sub("nvidia.com/gpu=0"; "nvidia.com/gpu=0,nvidia.com/gpu=x"))'
    created_by "$runtime"
    deleted_by "$runtime"
    [ "$(ls -A "$volume")" = exists ] || die "$runtime: $(ls -A "$volume")"
    [[ $status -ne 0 && $(cat "$work/said") == *"the mount at /tmp/shared/exists cannot be made in a directory of the host, $volume: only files, sockets and directories, without propagation, can"* ]] ||
      die "$runtime: $(cat "$work/said")"
  done
}

@test "cdi, runc: no working directory is made in what is mounted in a directory of the host" {
  mkdir "$work/below"
  fresh_root small
  shares_directory
  mkdir "$volume/below"
  on_host mount --bind "$work/below" "$volume/below"
  asks cdi '.process.cwd = "/tmp/shared/below/new"'
  created_by runc
  deleted_by runc
  on_host umount "$volume/below"
  [ "$status" -ne 0 ]
  [ -z "$(ls -A "$work/below")" ]
  [[ $(cat "$work/said") == *"the working directory /tmp/shared/below/new would be made in a directory of the host"* ]] || die "$(cat "$work/said")"
}

@test "jit-cdi: a mount of config.json may be the root" {
  fresh_root small
  mkdir "$work/empty"
  asks jit-cdi "$(mounted "$root" /)" ".mounts |= .[-1:] + .[:-1] | .root.path = \"$work/empty\""
  created_by runc
  deleted_by runc
  [ "$status" -eq 0 ] || die "$(cat "$work/said")"
}

# The loader's cache is made when the directory is there, with a volume in the loader's directories, too.
@test "csv, runc and crun: the loader finds the libraries of a directory of the host" {
  local runtime with
  mkdir "$work/vendor"
  cp "$BATS_FILE_TMPDIR/library.so" "$work/vendor/libtemplate0000.so.1"
  for runtime in runc runc crun crun; do
    # With a volume and without.
    with=$([ "${with:-.}" = . ] && mounted "$volume" /usr/local/lib || echo .)
    fresh_root debian
    asks csv "$with"
    printf 'dir, %s\n' "$work/vendor" >>"$work/csv/devices.csv"
    echo "$work/vendor" >"$root/etc/ld.so.conf.d/vendor.conf"
    created_by "$runtime" --pid-file "$work/pid"
    [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
    seen_by /sbin/ldconfig -p -C "$root/etc/ld.so.cache" >"$work/cache" 2>/dev/null || on_host /sbin/ldconfig -p -C "$root/etc/ld.so.cache" >"$work/cache"
    grep -q "libtemplate0000.so.1 .*=> $work/vendor/libtemplate0000.so.1" "$work/cache" || die "$runtime: $(cat "$work/cache")"
    deleted_by "$runtime"
  done
}

# The low-level runtime makes there only what the container's root may make, and opens what a hook may not look at.
@test "cdi, runc and crun: in a user namespace, a directory of the host is given that only root can reach" {
  local runtime
  mkdir -m 0700 "$work/closed"
  mkdir "$work/closed/shared"
  echo of the host >"$work/closed/shared/exists"
  for runtime in runc crun; do
    fresh_root small
    volume=$work/closed/shared shares_directory
    chown -R 100000:100000 "$root"
    asks cdi '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
    sees_directory "$runtime"
  done
}

# Some versions of crun start hooks before they mount.
@test "hook apply: no directory of the host is mounted before /proc is" {
  fresh_root small
  asks jit-cdi .
  at_hook "" apply --plan "{\"version\": 1, \"edits\": [{\"kind\": \"bind\", \"source\": \"$volume\", \"target\": \"/tmp/shared\", \"type\": \"directory\", \"rule\": \"x\", \"why\": \"x\"}]}"
  [ "$status" -eq 1 ]
  grep -qF "the low-level runtime has not mounted /proc yet, so no directory of the host can be given" "$work/said" || die "$(cat "$work/said")"
  [ ! -e "$root/tmp/shared" ]
}

# crun makes the root read-only before its hooks.
@test "cdi, runc and crun: a directory of the host gets its place in a root that will be read-only" {
  local runtime change
  mkdir "$work/mine"
  for runtime in runc crun; do
    for change in '.root.readonly = true' ".root.readonly = true | $(mounted "$work/mine" /tmp/shared)" '.linux.readonlyPaths += ["/tmp"]'; do
      fresh_root small
      echo of the host >"$volume/exists"
      shares_directory
      mkdir -p "$root/tmp"
      asks cdi "$change"
      sees_directory "$runtime"
    done
  done
}

# A hook of another maker may need the directory; it precedes it, whatever else is known.
@test "cdi: a directory of the host is there for the hooks of the specification" {
  fresh_root small
  echo of the host >"$volume/exists"
  shares_directory
  printf '#!/bin/sh\nexec cat "%s/tmp/shared/exists" >"%s/found"\n' "$root" "$work" >"$work/vendor"
  chmod 0755 "$work/vendor"
  jq --arg hook "$work/vendor" '.containerEdits.hooks = [{hookName: "createContainer", path: $hook, args: ["vendor"]}] + .containerEdits.hooks' "$work/cdi/nvidia.json" >"$work/spec"
  mv "$work/spec" "$work/cdi/nvidia.json"
  asks cdi .
  created_by runc --pid-file "$work/pid"
  deleted_by runc
  [ "$status" -eq 0 ] || die "$(cat "$work/said")"
  [ "$(cat "$work/found")" = "of the host" ]
}

@test "cdi, runc and crun: config.json mounts nothing in a directory of the host, and what it mounts there is replaced" {
  local runtime
  mkdir "$work/own"
  for runtime in runc crun; do
    fresh_root small
    mkdir "$volume/old"
    shares_directory
    asks cdi "$(mounted "$work/own" /tmp/shared/old)"
    created_by "$runtime"
    [ "$status" -ne 0 ]
    grep -qF "the mount at /tmp/shared/old would be made in a directory of the host, $volume. Mount it elsewhere." "$work/said" || die "$runtime: $(cat "$work/said")"
    asks cdi "$(mounted "$work/own" /tmp/shared/)"
    created_by "$runtime" --pid-file "$work/pid"
    [ "$status" -eq 0 ] || die "$runtime: $(cat "$work/said")"
    [ "$(seen_by ls -A /tmp/shared)" = old ]
    [ "$(flags_of /tmp/shared | wc -l)" = 1 ]
    deleted_by "$runtime"
  done
}

# What such a mount needs is the low-level runtime's alone.
@test "cdi: a directory with an option that Graft does not know is mounted by the low-level runtime" {
  fresh_root small
  shares_directory rslave
  asks cdi .
  created_by runc --pid-file "$work/pid"
  [ "$status" -eq 0 ] || die "$(cat "$work/said")"
  [ "$(jq -r '.mounts[] | select(.destination == "/tmp/shared") | .options[0]' "$bundle/config.json")" = rslave ]
  [ "$(flags_of /tmp/shared | wc -l)" = 1 ]
  deleted_by runc
}

# What mode csv and a gated feature give is made by one hook, so that no link is made after a directory is mounted.
@test "csv, crun: no file is made in a directory of a gated feature" {
  fresh_root small
  steered /usr/bin/nvidia-smi /run/udev/chosen
  asks csv '.process.env += ["NVIDIA_GDS=enabled"]'
  mkdir "$work/udev" "$work/vendor"
  printf 'dir, %s\n' "$work/vendor" >>"$work/csv/devices.csv"
  sed -i "s|^runtimes = .*|runtimes = [\"$(type -P crun)\"]|" "$work/config.toml"
  # shellcheck disable=SC2016
  v1_alone unshare --mount --propagation private -- sh -c 'mount -t tmpfs none /run && mkdir /run/udev && mount --bind "$0" /run/udev && exec "$@"' "$work/udev" \
    "$programs/nvidia-container-runtime" --root "$state" create --bundle "$bundle" "$container" </dev/null >"$work/said" 2>&1 3>&- 4>&- || true
  v1_alone crun --root "$state" delete --force "$container" 2>/dev/null || true
  [ -z "$(ls -A "$work/udev")" ] || die "$(ls -AR "$work/udev")"
  [ "$(jq -r '[.hooks.createContainer[].args[1]] | join(" ")' "$bundle/config.json")" = apply ] || die "$(jq -c .hooks "$bundle/config.json")"
}

@test "an image whose /dev is a link is refused" {
  fresh_root small
  steered /dev data
  asks jit-cdi "$(mounted "$volume" /data)"
  shim_create
  [ -z "$(ls -A "$volume")" ] || die "$(ls -AR "$volume") $(cat "$work/said")"
  grep -q "/dev of the image is a link: nodes would be made where it leads" "$work/said" || die "$(cat "$work/said")"
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
    *:/dev | *:/dev/dri* | *:/proc | *:/sys/fs | *:/usr/bin | *:/run/secrets | *:/way/*) why="$root$volume to a place that must not be covered" ;;
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

@test "prestart hook: the working directory is not made in the directory of MPS" {
  fresh_root small
  asks legacy ".process.cwd = \"$volume/new\""
  edit_bundle --arg path "$programs/nvidia-container-runtime-hook" --arg config "$NVIDIA_CTK_CONFIG_FILE_PATH" \
    '.hooks = {prestart: [{path: $path, args: ["nvidia-container-runtime-hook", "prestart"], env: ["NVIDIA_CTK_CONFIG_FILE_PATH=\($config)"]}]}'
  sed -i "1i [nvidia-container-cli]\nenvironment = [\"CUDA_MPS_PIPE_DIRECTORY=$volume\"]\nno-cgroups = true" "$work/config.toml"
  run on_host runc --root "$state" create --bundle "$bundle" "$container" </dev/null 3>&- 4>&-
  on_host runc --root "$state" delete --force "$container" 2>/dev/null || true
  [ "$status" -ne 0 ]
  [ -z "$(ls -A "$volume")" ] || die "$(ls -A "$volume") $output"
  [[ $output == *"the working directory $volume/new would be made in a directory of the host"* ]] || die "$output"
}

@test "prestart hook: no later hook leads the working directory into the directory of MPS" {
  links_library "" "$volume"
  asks legacy "$at_gbm"
  # shellcheck disable=SC2016
  edit_bundle --arg path "$programs/nvidia-container-runtime-hook" --arg config "$NVIDIA_CTK_CONFIG_FILE_PATH" --arg cdi "$programs/nvidia-cdi-hook" --arg lib "$libraries" \
    '.hooks = {prestart: [{path: $path, args: ["nvidia-container-runtime-hook", "prestart"], env: ["NVIDIA_CTK_CONFIG_FILE_PATH=\($config)"]}],
      createContainer: [{path: $cdi, args: ["nvidia-cdi-hook", "create-symlinks", "--link", "../libnvidia-allocator.so.1::\($lib)/gbm/nvidia-drm_gbm.so"], env: ["A=b"]}]}'
  sed -i "1i [nvidia-container-cli]\nenvironment = [\"CUDA_MPS_PIPE_DIRECTORY=$volume\"]\nno-cgroups = true" "$work/config.toml"
  status=0
  on_host runc --root "$state" create --bundle "$bundle" "$container" </dev/null >"$work/said" 2>&1 3>&- 4>&- || status=$?
  on_host runc --root "$state" delete --force "$container" 2>/dev/null || true
  [ "$status" -ne 0 ]
  [ -z "$(ls -A "$volume")" ] || die "$(ls -AR "$volume")"
  grep -qF "failed to create link [../libnvidia-allocator.so.1 " "$work/said" || die "$(cat "$work/said")"
  [ -d "$root/w/gbm/nvidia-drm_gbm.so/chosen/deep" ]
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

@test "cdi: 4,000 directories with deep paths and links, 200 mounts of directories" {
  fresh_root small
  slow_configuration 4000
  specification "$five"
  jq --arg source "$volume" '.containerEdits.mounts += [range(200) | {hostPath: $source, containerPath: "/mnt/\(.)/shared", options: ["ro", "rbind"]}]' "$work/cdi/nvidia.json" >"$work/new"
  mv "$work/new" "$work/cdi/nvidia.json"
  asks cdi
  sed -i 's|^runtimes = .*|runtimes = ["/bin/true"]|' "$work/config.toml"
  shim_create
  within_budget
  [ "$status" -eq 0 ] || die "$(cat "$work/said")"
  [ "$(jq -c '[.hooks.createContainer[].args[1]]' "$bundle/config.json")" = '["apply","sequence"]' ] || die "$(jq -c .hooks "$bundle/config.json")"
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
