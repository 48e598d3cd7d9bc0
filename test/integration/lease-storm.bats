# SPDX-License-Identifier: Apache-2.0
# Leases of many who come and go, and are killed: nothing is ever lent twice, and nothing is lost.
# lane: work

load lib.bash
load lease.bash

setup_file() { lease_host dgx-h100; }
teardown_file() { stop_host; }
setup() { lease_setup; }
teardown() { lease_teardown; }

# What the containers run says whether it sees a GPU that another one has (lease_witness.c).
make_witness() {
  make_shared
  cc -static -o "$work/witness" "$top/test/integration/lease_witness.c"
  on_host install -m 0755 "$work/witness" "$root/witness"
}

# storm COUNT KILL: so many containers, 16 at a time (lease_storm.py).
storm() {
  lease_bundle all any:1 unused '.process.args = ["/witness"]' "$(by_hook)"
  jq -n --argjson count "$1" --argjson kill "$2" --arg work "$work" --arg runtime "$runtime" --arg group "$group" --slurpfile config "$bundle/config.json" '
    {$count, $kill, $work, $runtime, $group, runc: "/usr/sbin/runc", at_a_time: 16, hook: $config[0].hooks.prestart[0],
     config: ($config[0] | del(.hooks) | .process.env |= map(select(startswith("NVIDIA_") | not)))}' >"$work/job"
  on_host "$top/test/integration/lease_storm.py" "$work/job" 3>&- 4>&-
  [ ! -e "$work/shared/twice" ] || die "$(cat "$work/shared/twice" "$work/shared/given" "$table/log")"
}

# What counts as a lease lives, by the kernel's own files.
holders_live() {
  local id record start
  for id in $(lease list --json | jq -r '.leases[].id'); do
    record=$table/held/$id
    [ "$(jq -r .holder.kind "$record")" != cgroup ] ||
      [ -z "$(find "/sys/fs/cgroup/devices$(jq -r .holder.cgroup "$record")" -name cgroup.procs -exec cat {} + 2>/dev/null)" ] || continue
    start=$(sed 's/.*) //' "/proc/$(jq -r .holder.pid "$record")/stat" 2>/dev/null | cut -d ' ' -f 20) || true
    [ "$start" = "$(jq -r .holder.start_time "$record")" ] || die "$(cat "$record"): nothing lives" || return
  done
}

@test "200 containers, 16 at a time: no GPU is lent twice, and all are free afterwards" {
  make_witness
  storm "${GRAFT_LEASE_CONTAINERS:-200}" false
  [ "$(cut -d ' ' -f 2 "$work/shared/given" | sort | uniq | wc -l)" = "${GRAFT_LEASE_CONTAINERS:-200}" ]
  [ "$(wc -l <"$work/shared/given")" = "${GRAFT_LEASE_CONTAINERS:-200}" ]
  [ "$(cut -d ' ' -f 1 "$work/shared/given" | sort -u | wc -l)" -ge 4 ]
  becomes_held 0
  lease run -- true
  [ "$(count_files)" -le 1 ]
}

@test "the same with kill -9 of runtime, hook, runc and what it starts, at random moments: a GPU is free, or held by something that lives" {
  make_witness
  storm "${GRAFT_LEASE_KILLED:-200}" true >"$work/killed"
  cat "$work/killed"
  # Each kind of process was hit.
  for kind in nvidia-container-runtime nvidia-container-runtime-hook runc 'runc init' witness; do
    grep "^$kind: " "$work/killed"
  done
  holders_live
  end_group "/sys/fs/cgroup/devices/$group" || true
  becomes_held 0
  lease run -n 8 -- true
}

# at_once: 200 runtimes that have come as far as their first instruction are let go. $work/waits: how long each waited for the lock, in order.
at_once() {
  local i
  rm -rf "$work/debug" "$table"
  for i in $(seq 200); do
    mkdir -p "$work/bundle-$i"
    cp "$work/bundle-0/config.json" "$work/bundle-$i"
  done
  on_host bash -c 'for i in $(seq 200); do
      sh -c "read -r line <\"\$0/gate\"; exec \"\$1\" --root \"\$0/runc\" create --bundle \"\$0/bundle-\$2\" --pid-file \"\$0/\$2.pid\" c\$2" "$0" "$1" "$i" &
    done
    sleep 1
    : >"$0/gate"
    wait' "$work" "$runtime" >/dev/null 2>&1 3>&- 4>&- &
  within_seconds 60 all_have_locked
  becomes_held 8
  [ "$(jq -r '.slots[].gpu' "$table"/held/* | sort -u | wc -l)" = 8 ]
  [ "$(count_files)" = 8 ]
  sed -n 's/.*table of leases: locked after \([0-9]*\) us.*/\1/p' "$work/debug" | sort -n >"$work/waits"
  kill_holders
  wait $! || true
}
all_have_locked() { [ -e "$work/debug" ] && [ "$(grep -c 'table of leases: locked after' "$work/debug")" -ge 200 ]; }

@test "200 creates at once: 198 of them wait for the lock for less than 100 ms, and nothing is lent twice" {
  local try
  make_shared
  # What the runtime becomes: it holds the lease until it is killed.
  printf '#!/bin/sh\nexec sleep 1000\n' >"$work/low"
  chmod +x "$work/low"
  sed -i "s|\"runc\"|\"$work/low\"|; s|^\[nvidia-container-runtime\]|&\ndebug = \"$work/debug\"\nlog-level = \"debug\"|" "$config"
  lease_bundle 0 any:1 unused
  mkfifo "$work/gate"
  # The best of four: other jobs want the processors as well.
  for try in 1 2 3 4; do
    at_once
    echo "try $try: median $(sed -n 100p "$work/waits") us, 180 below $(sed -n 180p "$work/waits") us, 198 below $(sed -n 198p "$work/waits") us"
    [ "$(sed -n 198p "$work/waits")" -ge 100000 ] || return 0
  done
  die "too long"
}

@test "acquire, killed at every system call: afterwards all is free, or held by a whole lease" {
  local n=0 total
  on_host strace -f -qq -o "$work/calls" "$ctk" lease run -- true
  # From the directory of the table on.
  total=$(grep -n "$table" "$work/calls" | tail -n 1 | cut -d : -f 1)
  [ "$total" -gt 20 ]
  for n in $(seq "$(grep -n "$table" "$work/calls" | head -n 1 | cut -d : -f 1)" $((total + 10))); do
    local call when
    call=$(sed -n "${n}p" "$work/calls" | sed -E 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/')
    [[ $call =~ ^[a-z0-9_]+$ ]] && [ "$call" != execve ] && [ "$call" != arch_prctl ] || continue
    when=$(head -n "$n" "$work/calls" | grep -cE "^[0-9]+ +$call\(")
    on_host timeout 20 strace -f -qq -o /dev/null -e "inject=$call:signal=KILL:when=$when" "$ctk" lease run -- true >/dev/null 2>&1 || true
    # Whoever comes next gets all eight.
    on_host timeout 20 "$ctk" --quiet lease run -n 8 -- true 2>"$work/said" || die "killed at $call $when: $(cat "$work/said")" || return
    [ "$(count_files)" = "$(find "$table/held" -type f -regex '.*/[a-z2-7]*' | wc -l)" ] || die "killed at $call $when: $(ls -la "$table/held")" || return
  done
}
