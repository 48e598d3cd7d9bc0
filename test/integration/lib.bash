# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Shared by the integration suites: a simulated host, root directories, OCI bundles, and the checks
# of every container.
#
#   setup_file()    { start_host dgx-h100; }       one simulated host for the file
#   teardown_file() { stop_host; }
#   setup()         { test_setup; }
#   teardown()      { test_teardown; }             what was mounted is unmounted, and no other process of the test is left
#
# Every command that looks at devices, containers or roots goes through `on_host`, which runs it in the mount namespace of the
# simulated host. GRAFT_BUILD names the build; GRAFT_ENOSYS=1 lets our own programs, and nothing else, see an old kernel.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

top=$(cd "${BATS_TEST_DIRNAME:?}/../.." && pwd)
build=${GRAFT_BUILD:-$top/build-debug}
sim=$build/sim/graft-sim
# Made once for all suites and checkouts of this machine; see test/tools/roots.
export GRAFT_CACHE=${GRAFT_CACHE:-$top/build-roots}
export LC_ALL=C
# Where Debian has libraries of this machine, below /usr/lib.
multiarch=$(uname -m)-linux-gnu

# The program itself, for suites that trace it: "${old_kernel[@]}" strace ... "$cli".
cli=$build/src/cli/nvidia-container-cli
hook=$build/src/cli/hook/nvidia-container-runtime-hook
old_kernel=()
[ "${GRAFT_ENOSYS:-0}" != 1 ] || old_kernel=("$build/test/tools/enosys")

say() { printf '%s\n' "$*"; }
die() {
  say "$*" >&2
  return 1
}

# page_file PAGE FILE: what the page of docs/ has for this file.
page_file() { sed -n "\|^\`\`\`[a-z]* file=$2\$|,/^\`\`\`\$/{/^\`\`\`/!p}" "$top/docs/$1.md"; }

# within [SECONDS] COMMAND...: until it succeeds; otherwise the file $log is shown, if there is one. A busy machine has five times as long, since only a test that
# fails waits for the end.
within() {
  local end=$((SECONDS + 60))
  if [[ $1 =~ ^[0-9]+$ ]]; then
    end=$((SECONDS + 5 * $1))
    shift
  fi
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || {
      cat "${log:-/dev/null}" >&2 || true
      return 1
    }
    sleep 0.05
  done
}
# has_ended PID: its files are closed, and their locks released. pgrep --full and pidof(1) lose sight of it before that.
has_ended() { ! on_host kill -0 "$1" 2>/dev/null; }
# is_idle PID [SECONDS]: it does not wake up for a second, or for as many.
is_idle() {
  local before
  before=$(on_host grep ^voluntary_ctxt_switches: "/proc/$1/status")
  sleep "${2:-1}"
  [ "$(on_host grep ^voluntary_ctxt_switches: "/proc/$1/status")" = "$before" ]
}

# jq 1.6 (Debian 12) takes a text in which there is nothing for success, even with -e; so that such an assertion can fail, it gets 4 here as of jq 1.7.
jq() {
  local found
  [[ $1 =~ ^-[a-z]*e ]] || {
    command jq "$@"
    return
  }
  found=$(command jq "$@") || return
  [ -n "$found" ] || return 4
  say "$found"
}

# start_host TOPOLOGY [GRAFT-SIM OPTION...]
start_host() {
  local topology=$1 program
  shift
  [ "$(id -u)" -eq 0 ] || die "the integration tests need root" || return
  # Other users have to reach the programs and their roots; the checkout may lie in a private home.
  mkdir -p "$BATS_FILE_TMPDIR/bin" "$BATS_FILE_TMPDIR/programs"
  install -m 0755 "$build/test/tools/enosys" "$build/src/cli/runtime/graft-nvml" "$build/src/cli/hook/graft-systemd" "$BATS_FILE_TMPDIR/programs"
  for program in "$cli" "$hook"; do
    install -m 0755 "$program" "$BATS_FILE_TMPDIR/programs"
    printf '#!/bin/sh\nexec %s "$@"\n' "${old_kernel[*]:+$BATS_FILE_TMPDIR/programs/enosys} $BATS_FILE_TMPDIR/programs/${program##*/}" \
      >"$BATS_FILE_TMPDIR/bin/${program##*/}"
    chmod 0755 "$BATS_FILE_TMPDIR/bin/${program##*/}"
  done
  chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_FILE_TMPDIR/.."
  # shellcheck disable=SC2016
  "$sim" run --topology "$topology" "$@" -- sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 86400' \
    "$BATS_FILE_TMPDIR/host.pid" >"$BATS_FILE_TMPDIR/host.log" 2>&1 3>&- 4>&- &
  within 5 test -e "$BATS_FILE_TMPDIR/host.pid" && return
  cat "$BATS_FILE_TMPDIR/host.log" >&2
  die "the simulated host did not come up"
}

# install_cli FOLDER/NAME...: programs of src/cli, beside those that start_host has installed.
install_cli() {
  local name
  for name; do
    install -m 0755 "$build/src/cli/$name" "$BATS_FILE_TMPDIR/programs"
  done
}

stop_host() {
  [ -e "$BATS_FILE_TMPDIR/host.pid" ] || return 0
  kill "$(cat "$BATS_FILE_TMPDIR/host.pid")"
  rm "$BATS_FILE_TMPDIR/host.pid"
}

# The host of another topology, for one test, whose root is not made yet: on_host leads there until stop_other_host, which belongs into teardown.
other_host() {
  first_host=$BATS_FILE_TMPDIR
  export BATS_FILE_TMPDIR=$work/other
  mkdir -p "$BATS_FILE_TMPDIR"
  start_host "$@"
}
stop_other_host() {
  [ -n "${first_host:-}" ] || return 0
  stop_host
  export BATS_FILE_TMPDIR=$first_host
}

# on_host COMMAND...
on_host() {
  local pid
  # Called thousands of times: by nothing but the shell.
  read -r pid <"$BATS_FILE_TMPDIR/host.pid" || return
  PATH=$BATS_FILE_TMPDIR/bin:$PATH nsenter --mount="/proc/$pid/ns/mnt" --wdns="$PWD" -- "$@"
}

test_setup() {
  work=$BATS_TEST_TMPDIR
  root=$work/root
  bundle=$work/bundle
  hook_log=$work/hook.log
  chmod a+rx "$work" "$work/.."
  container=graft-$$-$BATS_TEST_NUMBER
  # For `create` by the runtime: only with it can files be mounted late (test/tools/late-mounts). Tests of hooks and of config.json empty it.
  late_pid=()
  # shellcheck disable=SC2034 # for the tests
  [ -z "${GRAFT_LATE_MOUNTS:-}" ] || late_pid=(--pid-file "$work/late.pid")
}

# runtime_setup: test_setup for a suite that calls the runtime itself, with its configuration and low-level state in files of the test.
runtime_setup() {
  test_setup
  programs=$BATS_FILE_TMPDIR/programs
  # shellcheck disable=SC2034 # for the tests
  runtime=$programs/nvidia-container-runtime
  state=$work/runc
  config=$work/config.toml
  mkdir -p "$state"
  export NVIDIA_CTK_CONFIG_FILE_PATH=$config
  unset XDG_CONFIG_HOME
}

test_teardown() {
  local pid mount_points
  if [ -d "$work/runc" ]; then
    on_host runc --root "$work/runc" delete --force "$container" 2>/dev/null || true
  fi
  read -r pid <"$BATS_FILE_TMPDIR/host.pid" || [ -n "${pid:-}" ] || return 0
  # The deepest first.
  mapfile -t mount_points < <(awk -v at="$work/" 'index($5 "/", at) == 1 { found[++n] = $5 } END { while (n) print found[n--] }' "/proc/$pid/mountinfo")
  [ ${#mount_points[@]} -eq 0 ] || on_host umount --lazy "${mount_points[@]}"
}

# image KIND: the directory of a root that nobody may write to (test/tools/roots).
image() {
  # Whether it is made of what is there today is asked once, before the suites (./check).
  if [ -e "$GRAFT_CACHE/$1.made" ]; then say "$GRAFT_CACHE/$1"; else "$top/test/tools/roots" "$1"; fi
}

# make_root KIND overlay|tmpfs|copy: a root of the test's own at $root. An overlay's lower layer is the image itself.
make_root() {
  local image
  image=$(image "$1") || return
  mkdir -p "$root"
  case "$2" in
  overlay)
    layer "$image" "$root"
    ;;
  tmpfs)
    on_host mount -t tmpfs -o mode=755 tmpfs "$root"
    on_host cp -a "$image/." "$root"
    ;;
  copy)
    cp -a --reflink=auto "$image/." "$root"
    ;;
  *) die "make_root: $2?" ;;
  esac
  on_host install -m 0755 "$top/test/integration/probe" "$root/probe"
}

# layer DIRECTORY POINT: an overlay over DIRECTORY at POINT, empty again each time.
layer() {
  local layers=$work/layers-${2##*/}
  ! on_host mountpoint -q "$2" || on_host umount "$2"
  rm -rf "$layers"
  mkdir -p "$layers/upper" "$layers/scratch" "$2"
  on_host mount -t overlay -o "lowerdir=$1,upperdir=$layers/upper,workdir=$layers/scratch" overlay "$2"
}

# What must not change: the driver's files, what the host's own view is made of, the image below an overlay, and the mounts.
host_state() {
  on_host bash -c '
    cd /
    sha256sum /etc/ld.so.cache
    find /dev /run/graft-sim/root /proc/driver /etc/ld.so.conf* "$@" -xdev -path /dev/shm -prune -o -printf "%p %y %#m %U:%G %s %T@ %l %n %i\n"
    find /run/graft-sim/root -xdev -type f -print0 | xargs -0 sha256sum
    grep -v "^[^ ]* [^ ]* [^ ]* [^ ]* '"$work"'" /proc/self/mountinfo
  ' - "$GRAFT_CACHE"/{small,debian}/{dev,etc,usr/bin,usr/lib}
}

# new_bundle: the config.json of "runc spec" at $bundle. runc is asked once for each file of tests.
new_bundle() {
  mkdir -p "$bundle"
  [ -e "$BATS_FILE_TMPDIR/config.json" ] || on_host runc spec --bundle "$BATS_FILE_TMPDIR"
  cp "$BATS_FILE_TMPDIR/config.json" "$bundle/config.json"
}

# piped JQ-FILTER...: prints them as one, since jq takes longer to begin than for all of them.
piped() {
  local filter all=.
  for filter; do
    all+=" | (${filter:-.}
    )"
  done
  say "$all"
}

# make_bundle [JQ-FILTER...]: a bundle at $bundle for the root at $root that runs /probe, with our hook at prestart.
make_bundle() {
  [ -e "$bundle/config.json" ] || new_bundle
  edit_bundle --arg root "$root" --arg hook "$work/hook" "$(piped '
    .process.terminal = false | .process.args = ["/probe"] | del(.process.rlimits) |
    .root = {path: $root, readonly: false} |
    (.process.capabilities[]) |= (. + ["CAP_MKNOD", "CAP_DAC_OVERRIDE"] | unique) |
    .hooks = {prestart: [{path: $hook}]}' "$@")"
  : >"$hook_log"
  chmod a+rw "$hook_log"
  make_hook --device=0 --compute --utility
}

# The kernel lets a user namespace mount proc and sysfs only where a whole one is in view; the simulated host's have parts mounted over.
show_whole_proc() {
  mkdir -p "$work/proc" "$work/sys"
  on_host mount -t proc proc "$work/proc"
  on_host mount -t sysfs sysfs "$work/sys"
}

# make_user_bundle [JQ-FILTER...]: a bundle whose container has a user namespace; id 0 of it is 100000 outside.
make_user_bundle() {
  show_whole_proc
  make_bundle '.linux.namespaces += [{type: "user"}] |
    .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings' "$@"
  chmod a+rx "$bundle"
}

# edit_bundle [JQ-OPTION...] FILTER
edit_bundle() {
  jq "$@" <"$bundle/config.json" >"$bundle/config.json.new"
  mv "$bundle/config.json.new" "$bundle/config.json"
}

# make_hook [--global=OPTION] [CONFIGURE-OPTION...]: what an engine runs. It reads the state on stdin and gives all else to us.
make_hook() {
  local option global=()
  for option in "$@"; do
    case "$option" in
    --global=*)
      global+=("${option#--global=}")
      shift
      ;;
    esac
  done
  cat >"$work/hook" <<HOOK
#!/bin/bash
export PATH=$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec 2>>"$hook_log"
state=\$(cat)
[[ \$state =~ \"pid\"\ *:\ *([0-9]+) ]] && pid=\${BASH_REMATCH[1]}
[[ \$state =~ \"bundle\"\ *:\ *\"([^\"]+)\" ]] && root=\$(jq -r .root.path "\${BASH_REMATCH[1]}/config.json")
exec nvidia-container-cli --debug=/dev/stderr ${global[@]@Q} configure ${@@Q} --pid="\$pid" "\$root"
HOOK
  chmod 0755 "$work/hook"
}

# v2 COMMAND...: where /sys/fs/cgroup is a cgroup2 mount and no other cgroup file system is to be seen.
v2() {
  # shellcheck disable=SC2016
  on_host unshare --mount --propagation private -- sh -c '
    umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"' sh "$@"
}

# v1_alone COMMAND...: in a mount namespace without the cgroup2 that a hybrid host has beside v1, which Debian's crun refuses.
v1_alone() {
  # shellcheck disable=SC2016
  on_host unshare --mount --propagation private -- sh -c '
    { ! mountpoint -q /sys/fs/cgroup/unified || umount -l /sys/fs/cgroup/unified; } && exec "$@"' sh "$@"
}

# v2_raising COMMAND...: the same for crun, which raises RLIMIT_MEMLOCK for its device program; without CAP_SYS_RESOURCE (24) it only seems to.
v2_raising() {
  may_raise_limits || set -- "$build/test/tools/memlock" "$@"
  v2 "$@"
}

may_raise_limits() {
  (((16#$(sed -n 's/^CapEff:\t//p' /proc/self/status) >> 24) & 1))
}

# run_container [v1|v2] [RUNTIME...]: runs the bundle; the answers of the probe come into $output, and into the array `answer`.
run_container() {
  local world=$1
  shift
  local runtime=("${@:-runc}")
  case "$world" in
  v1) world=on_host ;;
  v2) world=v2 ;;
  esac
  mkdir -p "$work/runc"
  run "$world" "${runtime[@]}" --root "$work/runc" run --bundle "$bundle" "$container"
  if [ "$status" -ne 0 ]; then
    say "$output"
    cat "$hook_log"
    return 1
  fi
  read_answers
}

# stops RUNTIME...: waits for the end of the container of this runtime, with its options.
stops() {
  within 10 is_stopped "$@" || die "the container does not stop"
}
is_stopped() { [[ $("$@" state "$container") == *'"status": "stopped"'* ]]; }

# run_created RUNTIME...: starts the container that this runtime, with its options, has created ($container; it writes to $work/out), waits for its end and reads the
# probe's answers.
run_created() {
  "$@" start "$container"
  stops "$@"
  "$@" delete "$container"
  # shellcheck disable=SC2154 # the test's own
  output=$(cat "$work/out")
  read_answers
}

# The probe's lines "key: value" of $output.
read_answers() {
  local line
  declare -gA answer=()
  while IFS= read -r line; do
    # An engine's own lines may begin with the colon.
    [[ $line != [!:]*": "* ]] || answer[${line%%: *}]=${line#*: }
  done <<<"$output"
}

# expect KEY VALUE: what the probe said.
expect() {
  [ "${answer[$1]-}" = "$2" ] && return
  printf '%s: "%s", not "%s"\nall answers:\n%s\n' "$1" "${answer[$1]-}" "$2" "$output"
  cat "$hook_log" 2>/dev/null
  return 1
}

# expect_one_gpu [LIBRARY-FOLDER]: exactly GPU 0 of 8: seen, to be opened, and no other.
expect_one_gpu() {
  expect open-nvidia0 "No such device or address" # the simulated node: the open was allowed
  expect open-nvidiactl "No such device or address"
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidia0 nvidiactl"
  expect nvidia-smi 1
  expect nvidia-smi-first "GPU 0: NVIDIA H100 80GB HBM3"
  expect_libraries "$@"
}

# expect_libraries [LIBRARY-FOLDER]: the loader's cache knows the injected library, and the loader takes it.
expect_libraries() {
  local folder=${1:-/usr/lib/$multiarch}
  expect ldconfig "$folder/libcuda.so.1"
  expect loader "$folder/libcuda.so.550.54.14"
}
