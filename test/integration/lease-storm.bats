# SPDX-License-Identifier: Apache-2.0
# Leases of many processes that start, end and are killed: nothing is ever lent twice, and nothing is lost.
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

# --- killed at every system call ---

# calls_of STRIDE FILE: of a trace, a line "CALL NUMBER" for each call from the first look at the table until the lease is in it and in the
# log. Those that change something and, unless GRAFT_LEASE_CALLS is set, of the others one in so many, another one each time.
calls_of() {
  local seed=$RANDOM
  echo "seed $seed"
  awk -v table="$table" -v stride="${GRAFT_LEASE_CALLS:+1}" -v usual="$1" -v seed="$seed" '
    BEGIN { if (stride == "") stride = usual; srand(seed); offset = int(rand() * stride) }
    { call = $0; sub(/\(.*/, "", call); seen[call]++; line[NR] = call " " seen[call] }
    index($0, table) { if (!first) first = NR; last = NR }
    END {
      for (n = first; first && n <= last + 40 && n <= NR; n++) {
        split(line[n], word, " ")
        if (word[1] !~ /^[a-z0-9_]+$/ || word[1] ~ /^(execve|arch_prctl)$/) continue
        if ((n + offset) % stride == 0 || word[1] ~ /^(write|rename|renameat2?|mkdir(at)?|flock|fchmod|utimensat|unlinkat)$/) print line[n]
      }
    }' "$2" >"$work/calls"
  [ "$(wc -l <"$work/calls")" -ge 10 ] || die "$(cat "$2")"
}
# killed_at CALL NUMBER COMMAND...: it is killed when it makes this call for so many times.
killed_at() { on_host timeout 20 strace -qq -o /dev/null -e "inject=$1:signal=KILL:when=$2" "${@:3}" </dev/null >"$work/said" 2>/dev/null; }
# Each lease of the table has both of its GPUs.
is_whole() { [ "$(lease list --json | jq "[.leases[] | select((.slots | length) != 2)] | length")" = 0 ] || die "$(lease list)"; }
# Whoever comes next gets all eight, and nothing else is left.
all_are_free() {
  on_host timeout 20 "$ctk" --quiet lease run -n 8 -- true 2>"$work/said" || die "killed at $*: $(cat "$work/said")" || return
  [ "$(count_files)" = "$(find "$table/held" -type f -regex '.*/[a-z2-7]*' | wc -l)" ] || die "killed at $*: $(ls -la "$table/held")"
}

@test "run, killed at every system call: afterwards all is free" {
  local call when n=0
  # The first one makes the table.
  lease run -- true
  on_host strace -qq -o "$work/trace" "$ctk" lease run -n 2 -- true
  calls_of 3 "$work/trace"
  while read -r call when; do
    killed_at "$call" "$when" "$ctk" lease run -n 2 -- true || [ $? -ne 137 ] || n=$((n + 1))
    is_held 0
    all_are_free "$call" "$when"
  done <"$work/calls"
  echo "$n of $(wc -l <"$work/calls") were killed"
  [ "$n" -ge $(($(wc -l <"$work/calls") / 2)) ]
}

@test "acquire, killed at every system call: afterwards all is free, or held by a whole lease that can be released" {
  local call when id free=0 whole=0
  lease run -- true
  on_host strace -qq -o "$work/trace" "$ctk" lease acquire -n 2 --for 1h >"$work/said"
  lease release "$(cat "$work/said")"
  calls_of 5 "$work/trace"
  while read -r call when; do
    killed_at "$call" "$when" "$ctk" --quiet lease acquire -n 2 --for 1h || true
    is_whole
    id=$(lease list --json | jq -r '.leases[].id')
    # Who was told an id has that lease.
    [ ! -s "$work/said" ] || [ "$(cat "$work/said")" = "$id" ] || die "killed at $call $when: $(cat "$work/said"), not $id"
    [ -z "$id" ] && free=$((free + 1)) || whole=$((whole + 1))
    [ -z "$id" ] || lease release "$id"
    all_are_free "$call" "$when"
  done <"$work/calls"
  echo "$free free, $whole whole, of $(wc -l <"$work/calls")"
  [ "$free" -gt 0 ]
  [ "$whole" -gt 0 ]
}

@test "a container's runtime, killed at every system call while it takes the lease: afterwards all is free" {
  local call when n=0
  make_shared
  sed -i 's|"runc"|"/bin/true"|' "$config"
  lease_bundle a any:2 'sleep 1000'
  cp "$bundle/config.json" "$work/config.json"
  # The first one changes the root and makes the table.
  create a
  # As each time below.
  all_are_free
  cp "$work/config.json" "$bundle/config.json"
  on_host strace -qq -o "$work/trace" "$runtime" --root "$work/runc" create --bundle "$bundle" --pid-file "$work/a.pid" a </dev/null
  calls_of 5 "$work/trace"
  while read -r call when; do
    cp "$work/config.json" "$bundle/config.json"
    killed_at "$call" "$when" "$runtime" --root "$work/runc" create --bundle "$bundle" --pid-file "$work/a.pid" a && echo "not killed at $call $when" || n=$((n + 1))
    is_held 0
    all_are_free "$call" "$when"
  done <"$work/calls"
  echo "$n of $(wc -l <"$work/calls") were killed"
  [ "$n" = "$(wc -l <"$work/calls")" ]
}

@test "a container's hook, killed at every system call while it takes the lease: no container, and all is free" {
  local call when n=0
  make_shared
  # What runc starts: the hook, under a tracer that the test tells what to do.
  printf '#!/bin/sh\nexec strace -qq $(cat "%s") "%s" "$@"\n' "$work/inject" "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook" >"$work/hook"
  chmod +x "$work/hook"
  lease_bundle a any:2 'sleep 1000' "$(by_hook)" ".hooks.prestart[0].path = \"$work/hook\""
  lease run -- true
  echo "-o $work/trace" >"$work/inject"
  of_runc create --bundle "$bundle" a </dev/null >"$work/said" 2>&1 3>&- 4>&- || die "$(cat "$work/said")"
  is_held 2
  of_runc delete --force a
  calls_of 12 "$work/trace"
  while read -r call when; do
    echo "-o /dev/null -e inject=$call:signal=KILL:when=$when" >"$work/inject"
    if of_runc create --bundle "$bundle" a </dev/null >"$work/said" 2>&1 3>&- 4>&-; then
      of_runc delete --force a
    else
      n=$((n + 1))
      grep -q 'error running hook #0: .*killed' "$work/said" || die "killed at $call $when: $(cat "$work/said")" || return
    fi
    becomes_held 0
    all_are_free "$call" "$when"
  done <"$work/calls"
  echo "$n of $(wc -l <"$work/calls") were killed"
  [ "$n" = "$(wc -l <"$work/calls")" ]
}
