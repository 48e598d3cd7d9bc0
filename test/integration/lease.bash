# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Leases on a simulated host, without an engine, on top of lib.bash: the programs, a configuration that has leases on, a table and
# cgroups of each test's own.
#
#   setup_file()    { lease_host dgx-h100; }
#   teardown_file() { stop_host; }
#   setup()         { lease_setup; }
#   teardown()      { lease_teardown; }

# lease_host TOPOLOGY [GRAFT-SIM OPTION...]
lease_host() {
  start_host "$@"
  lease_programs
}
lease_programs() {
  local name
  for name in runtime/nvidia-container-runtime runtime/graft-nvml cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk; do
    install -m 0755 "$build/src/cli/$name" "$BATS_FILE_TMPDIR/programs"
  done
}

lease_setup() {
  test_setup
  runtime=$BATS_FILE_TMPDIR/programs/nvidia-container-runtime
  ctk=$BATS_FILE_TMPDIR/programs/nvidia-ctk
  config=$work/config.toml
  table=$work/leases
  # Of this test alone: others may run on this computer at the same time.
  group=graft-${BATS_RUN_TMPDIR##*-}-$BATS_TEST_NUMBER
  printf '[nvidia-container-runtime]\nruntimes = ["runc"]\n[graft.leases]\nmode = "on"\ndirectory = "%s"\n' "$table" >"$config"
  export NVIDIA_CTK_CONFIG_FILE_PATH=$config
  unset XDG_CONFIG_HOME SUDO_UID
}

lease_teardown() {
  local name
  [ ! -d "$work/runc" ] || for name in "$work"/runc/*; do
    on_host runc --root "$work/runc" delete --force "${name##*/}" 2>/dev/null || true
  done
  kill_holders
  [ ! -e "$work/pids" ] || xargs kill -9 <"$work/pids" 2>/dev/null || true
  for name in /sys/fs/cgroup/*/"$group" /sys/fs/cgroup/"$group"; do
    [ ! -d "$name" ] || end_group "$name" || die "cgroup $name is still in use"
  done
  test_teardown
  stop_other_host
}

# another_host TOPOLOGY: for one test.
another_host() {
  other_host "$@"
  lease_programs
  lease_setup
}

# end_group DIRECTORY: a cgroup, those below it and all their processes.
end_group() {
  for _ in $(seq 250); do
    find "$1" -name cgroup.procs -exec xargs --arg-file {} --no-run-if-empty kill -9 ';' 2>/dev/null || true
    find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
    [ -d "$1" ] || return 0
    sleep 0.02
  done
  return 1
}

# The processes of all that the table has, dead or alive: those that were started here.
kill_holders() {
  local pid cgroup
  for cgroup in $(cat "$table"/held/* 2>/dev/null | jq -r '.holder.cgroup // empty'); do
    [ ! -e "/sys/fs/cgroup/devices$cgroup/cgroup.procs" ] || xargs -r kill -9 <"/sys/fs/cgroup/devices$cgroup/cgroup.procs" 2>/dev/null || true
  done
  for pid in $(cat "$table"/held/* "$table"/queue/* 2>/dev/null | jq -r '.holder.pid // empty'); do
    [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") != @(*"$ctk"*|"sleep 1000 "|"sh -c "*) ]] || kill -9 "$pid" 2>/dev/null || true
  done
}

lease() { on_host "$ctk" --quiet lease "$@"; }
# How many GPUs are held.
held() { lease list --json | jq '[.gpus[] | select(.leases != [])] | length'; }
is_held() { [ "$(held)" = "$1" ] || die "$(lease list) instead of $1 held"; }
count_files() { find "$table/held" -type f | wc -l; }
becomes_held() { within 2 eval "[ \$(held) = $1 ]" || is_held "$1"; }

# has_leases N: so many leases, of however many GPUs.
has_leases() { [ "$(lease list --json | jq '.leases | length')" = "$1" ]; }

make_shared() {
  make_root small overlay
  mkdir -p "$work/shared" "$work/runc"
  chmod 0777 "$work/shared"
}

# lease_bundle NAME CLAIM COMMAND [JQ-FILTER...]: a container with a cgroup of that name.
lease_bundle() {
  local name=$1 claim=$2 command=$3
  shift 3
  # shellcheck disable=SC2034 # of lib.bash
  bundle=$work/bundle-$name
  new_bundle
  edit_bundle --arg root "$root" --arg claim "$claim" --arg cgroup "/$group/$name" --arg command "$command" --arg shared "$work/shared" "$(piped '
    .process.terminal = false | .process.args = ["sh", "-c", $command] | del(.process.rlimits) | .root = {path: $root, readonly: true} |
    .linux.cgroupsPath = $cgroup | .process.env += ["NVIDIA_VISIBLE_DEVICES=" + $claim] |
    .mounts += [{destination: "/tmp", type: "bind", source: $shared, options: ["bind", "rw"]}]' "$@")"
}

# create NAME [OPTION...] as an engine does it: the pid file says which process it is.
create() {
  local name=$1
  shift
  on_host "$runtime" --root "$work/runc" create --bundle "$work/bundle-$name" --pid-file "$work/$name.pid" "$@" "$name" \
    </dev/null >"$work/$name.out" 2>&1 3>&- 4>&-
}
of_runc() { on_host runc --root "$work/runc" "$@"; }
# The GPUs of a container, by their nodes: "nvidia0 nvidia1".
gpus_of() { on_host nsenter --target "$(cat "$work/$1.pid")" --mount sh -c 'ls /dev' | grep -x 'nvidia[0-9]*' | xargs; }

# A filter that gives a container the hook, as `docker run --gpus` does.
by_hook() {
  say ".hooks = {prestart: [{path: \"$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook\", args: [\"hook\", \"prestart\"],
    env: [\"NVIDIA_CTK_CONFIG_FILE_PATH=$config\", \"PATH=/usr/sbin:/usr/bin:/sbin:/bin\"]}]}"
}

# within_seconds SECONDS COMMAND...: as within, and says what it waited for.
within_seconds() { within "$@" || die "still not: ${*:2}"; }

# --- waiting ---

# hold_all FILE: holds all eight until FILE exists, and says when it ends.
hold_all() {
  # shellcheck disable=SC2016
  on_host "$ctk" --quiet lease run -n 8 -- sh -c 'while [ ! -e "$0" ]; do sleep 0.01; done; date +%s%N >"$0.ended"' "$1" 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 8
}
# queued N: so many wait.
queued() { within 5 waiting_are "$1" || die "$(lease list) instead of $1 waiting"; }
waiting_are() { [ "$(find "$table/queue" -type f -name '[a-z2-7]*' 2>/dev/null | wc -l)" = "$1" ]; }
# waiter UID WORD...: in the background, with `lease run --wait 60s`.
waiter() {
  local uid=$1
  shift
  SUDO_UID=$uid on_host "$ctk" --quiet lease run --wait 60s "$@" 3>&- 4>&- &
  echo $! >>"$work/pids"
}
