# SPDX-License-Identifier: Apache-2.0
# Leases: GPUs that are lent to one holder at a time, on a host of eight GPUs: what a container and a command get, and when it ends.

load lib.bash
load lease.bash

setup_file() { lease_host dgx-h100; }
teardown_file() { stop_host; }
setup() { lease_setup; }
teardown() { lease_teardown; }

# --- containers ---

@test "off: a claim is an unknown device, and a start makes the same system calls as ever" {
  make_shared
  : >"$config"
  lease_bundle a any:1 'sleep 1000'
  run ! create a
  grep -F 'any:1: unknown device' "$work/a.out"
  [ ! -e "$table" ]
  # A start without a claim makes the same calls without a configuration of leases, with them off and on, and opens nothing of theirs.
  # The first changes the root, and the others find it changed.
  for mode in none none off "on"; do
    printf '[nvidia-container-runtime]\nruntimes = ["runc"]\n' >"$config"
    [ $mode = none ] || printf '[graft.leases]\nmode = "%-3s"\ndirectory = "%s"\n' $mode "$table" | sed 's/ "$/"/' >>"$config"
    lease_bundle same 0 'sleep 1000'
    on_host strace -qq -e signal=none -o "$work/trace" "$runtime" --root "$work/none" create --bundle "$bundle" --pid-file "$work/none.pid" "" \
      </dev/null >"$work/out" 2>&1 || true
    sed -n '/config\.toml/,$p' "$work/trace" >"$work/$mode.trace"
    # The kernel gives a look-up up where something was renamed or mounted meanwhile, and it is made again.
    # Whether there is still a process to wait for is chance, too.
    sed -E '/= -1 EAGAIN/d; /^pidfd_open/,/^close/d; s/\(.*//; /^(wait4|waitid|rt_sig.*|clone.*|vfork|mmap|munmap|brk|clock_gettime|poll|nanosleep)$/d' "$work/$mode.trace" >"$work/$mode.calls"
    run ! grep -F "$table" "$work/$mode.trace"
  done
  [ "$(wc -l <"$work/off.calls")" -gt 100 ]
  for mode in off "on"; do
    diff "$work/none.calls" "$work/$mode.calls" && continue
    # With what they were called with, but for numbers, each of which is another.
    for name in none $mode; do sed -E 's/0x[0-9a-f]+|[0-9]{2,}/N/g; /^(sendto|clock_gettime)/s/\(.*//' "$work/$name.trace" >"$work/$name.plain"; done
    diff -U 3 "$work/none.plain" "$work/$mode.plain" | cut -c 1-150
    return 1
  done
  [ ! -e "$table" ]
}

@test "the cgroup of a command is found without the table of mounts, and with it in another cgroup namespace" {
  on_host strace -f -qq -e trace=openat2 -o "$work/trace" "$ctk" lease run --scope -- true
  grep -F '/cgroup"' "$work/trace"
  [ "$(stat -c %i /sys/fs/cgroup/devices 2>/dev/null || stat -c %i /sys/fs/cgroup)" != 1 ] || run ! grep -F mountinfo "$work/trace"
  on_host strace -f -qq -e trace=openat2 -o "$work/trace" unshare --cgroup "$ctk" lease run --scope -- true
  grep -F mountinfo "$work/trace"
}

@test "any:2 twice gives four GPUs, a third of five is refused and names both holders, and the end of one frees two" {
  make_shared
  lease_bundle a any:2 'sleep 1000'
  lease_bundle b 'any:2;model=h100' 'sleep 1000'
  lease_bundle c any:5 'sleep 1000'
  create a
  create b
  is_held 4
  [ "$(printf '%s\n' "$(gpus_of a)" "$(gpus_of b)" | tr ' ' '\n' | sort -u | wc -l)" = 4 ]
  run ! create c
  cat "$work/c.out"
  grep -E '5 GPUs were asked for, 4 of 8 are free\. Held: GPU [0-7], [0-7] by uid 0 \(container [ab], [0-9]+ s\); GPU [0-7], [0-7] by uid 0 \(container [ab], [0-9]+ s\)\. See .nvidia-ctk lease list.\.' "$work/c.out"
  of_runc kill a KILL
  becomes_held 2
  create c || die "$(cat "$work/c.out")"
  is_held 7
  [ "$(gpus_of c | wc -w)" = 5 ]
  # The log knows it all.
  lease history >"$work/history"
  [ "$(grep -c ' taken ' "$work/history")" = 3 ]
  grep ' freed .* no process is left in its cgroup' "$work/history"
}

@test "created and never started, paused, restarted under the same cgroup, deleted with force" {
  make_shared
  lease_bundle a any:1 'sleep 1000'
  create a
  is_held 1
  of_runc start a
  # Whoever looks with the lock learns which cgroup and which process it is; somebody may move that to another cgroup.
  lease run -- true
  [ ! -e /sys/fs/cgroup/devices/cgroup.procs ] || {
    cat "$work/a.pid" >/sys/fs/cgroup/devices/cgroup.procs
    is_held 1
    cat "$work/a.pid" >"/sys/fs/cgroup/devices/$group/a/cgroup.procs"
  }
  of_runc pause a 2>/dev/null || true
  is_held 1
  of_runc resume a 2>/dev/null || true
  of_runc delete --force a
  becomes_held 0
  run ! create a
  grep -E 'config.json has the GPUs of lease [a-z2-7]{12}, which belong to another container\. Make a new bundle for each container\.' "$work/a.out"
  # The record of the first is gone when the second has the same path.
  lease_bundle a any:1 'sleep 1000'
  create a
  is_held 1
  [ "$(lease list --json | jq '.leases | length')" = 1 ]
  of_runc delete --force a
  becomes_held 0
}

@test "a container's process that left its cgroup: the lease lasts while any of the container's processes does" {
  local devices=/sys/fs/cgroup/devices init
  make_shared
  [ -e $devices/cgroup.procs ] || devices=/sys/fs/cgroup
  lease_bundle a any:1 'sleep 1000 & exec sleep 1000'
  create a
  of_runc start a
  within_seconds 10 eval '[ "$(wc -l <"$devices/$group/a/cgroup.procs")" = 2 ]'
  lease run -- true
  init=$(cat "$work/a.pid")
  [ "$(jq -r 'select(.holder.container == "a").holder.pid' "$table"/held/*)" = "$init" ]
  echo "$init" >$devices/cgroup.procs
  within_seconds 10 eval '[ "$(wc -l <"$devices/$group/a/cgroup.procs")" = 1 ]'
  is_held 1
  # Nobody is left in the cgroup.
  xargs kill -9 <"$devices/$group/a/cgroup.procs"
  within_seconds 10 eval '[ ! -s "$devices/$group/a/cgroup.procs" ]'
  is_held 1
  lease run -- true
  is_held 1
  kill -9 "$init"
  becomes_held 0
}

@test "a container whose cgroup is only known to runc is found by its pid file; without one it is refused" {
  # runc calls its cgroup like the container.
  local name=$group-a
  make_shared
  lease_bundle "$name" any:1 'sleep 1000' 'del(.linux.cgroupsPath)'
  create "$name"
  is_held 1
  [ "$(jq -r .holder.kind "$table"/held/*)" = pid-file ]
  # Whoever looks with the lock learns which process it is.
  lease run -- true
  [ "$(jq -r --arg name "$name" 'select(.claim == "any:1" and .holder.container == $name) | .holder.kind, .holder.pid' "$table"/held/* | xargs)" = "process $(cat "$work/$name.pid")" ]
  of_runc delete --force "$name"
  becomes_held 0
  # A path that no record can have.
  lease_bundle a any:1 'sleep 1000' '.linux.cgroupsPath += "-ü"'
  create a || die "$(cat "$work/a.out")"
  [ "$(jq -r .holder.kind "$table"/held/*)" = pid-file ]
  of_runc delete --force a
  becomes_held 0
  lease_bundle a any:1 'sleep 1000' '.linux.cgroupsPath += "-ü"' "$(by_hook)"
  of_runc create --bundle "$bundle" a </dev/null >"$work/a.out" 2>&1 3>&- 4>&- || die "$(cat "$work/a.out")"
  [ "$(jq -r .holder.kind "$table"/held/*)" = process ]
  of_runc delete --force a
  becomes_held 0
  name=$group-b
  lease_bundle "$name" any:1 'sleep 1000' 'del(.linux.cgroupsPath)'
  run ! on_host "$runtime" --root "$work/runc" create --bundle "$bundle" "$name"
  [[ $output == *"the container cannot be found after its creation: it has neither a usable linux.cgroupsPath nor a --pid-file. Give the container a cgroup, or call 'create' with --pid-file."* ]]
  is_held 0
}

@test "cgroup v2: a lease ends with its container" {
  make_shared
  lease_bundle a any:3 'sleep 1000'
  v2 "$runtime" --root "$work/runc" create --bundle "$bundle" --pid-file "$work/a.pid" a </dev/null >"$work/out" 2>&1 3>&- 4>&- ||
    skip "runc makes no container where there is only cgroup v2: $(cat "$work/out")"
  [ "$(v2 "$ctk" lease list --json | jq '[.gpus[] | select(.leases != [])] | length')" = 3 ]
  [ "$(jq -r .holder.cgroup_version "$table"/held/*)" = 2 ]
  # Who cannot see that hierarchy does not take it for gone.
  is_held 3
  v2 runc --root "$work/runc" delete --force a
  [ "$(v2 "$ctk" lease list --json | jq '[.gpus[] | select(.leases != [])] | length')" = 0 ]
}

# crun, with what it needs on a machine whose root may not do all (lib.bash).
of_crun() { v2_raising crun --root "$work/crun" "$@"; }

@test "crun, cgroup v2: a lease ends with its container" {
  make_shared
  sed -i 's/"runc"/"crun"/' "$config"
  lease_bundle a any:3 'sleep 1000'
  v2_raising "$runtime" --root "$work/crun" create --bundle "$bundle" --pid-file "$work/a.pid" a </dev/null >"$work/out" 2>&1 3>&- 4>&- || die "$(cat "$work/out")"
  [ "$(v2 "$ctk" lease list --json | jq '[.gpus[] | select(.leases != [])] | length')" = 3 ]
  of_crun start a
  [ "$(gpus_of a | wc -w)" = 3 ]
  [ "$(v2 "$ctk" lease list --json | jq '[.gpus[] | select(.leases != [])] | length')" = 3 ]
  of_crun delete --force a
  [ "$(v2 "$ctk" lease list --json | jq '[.gpus[] | select(.leases != [])] | length')" = 0 ]
}

@test "the hook and nvidia-container-cli: docker run --gpus device=any:2" {
  make_shared
  export PATH=$BATS_FILE_TMPDIR/bin:$PATH
  for name in a b; do
    lease_bundle $name any:2 'sleep 1000' "$(by_hook)"
    of_runc create --bundle "$bundle" --pid-file "$work/$name.pid" $name </dev/null >"$work/$name.out" 2>&1 3>&- 4>&- || die "$(cat "$work/$name.out")"
  done
  is_held 4
  [ "$(jq -r .holder.kind "$table"/held/* | sort -u)" = cgroup ]
  [ "$(printf '%s\n' "$(gpus_of a)" "$(gpus_of b)" | tr ' ' '\n' | sort -u | wc -l)" = 4 ]
  of_runc delete --force a
  becomes_held 2
}

@test "what cannot be read gives no GPU: mixtures, nonsense, too many" {
  local claim
  make_shared
  while read -r claim; do
    lease_bundle x "$claim" 'sleep 1000'
    run ! create x
    is_held 0
    [ "$(grep -c level=error "$work/x.out")" = 1 ]
    printf '%s\n' "$(sed -E 's/.*error modifying OCI spec: //; s/.*msg="//; s/"$//' "$work/x.out")" >>"$work/messages"
    of_runc delete --force x 2>/dev/null || true
  done <<'CLAIMS'
any:1,all
0,any:1
any:0
any:9
any:1;speed=fast
lease:abc
lease:abcdefgh2345
mig:1g.10gb
named:99
CLAIMS
  cat "$work/messages"
  diff "$work/messages" - <<'MESSAGES'
lease: 'all': a list has either devices or one claim, not both. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', with constraints after it: 'any:2;model=H100'.
lease: '0': a list has either devices or one claim, not both. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', with constraints after it: 'any:2;model=H100'.
lease: '0': the number of GPUs must be 1 to 64. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', with constraints after it: 'any:2;model=H100'.
lease: 9 GPUs were asked for, but this host has 8 that can be lent and fit. Run 'nvidia-ctk lease list' to see what this host has.
lease: 'speed': unknown constraint; the constraints are model=, mem>=, same=, not=, wait= and sticky. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', with constraints after it: 'any:2;model=H100'.
lease: 'abc': not the id of a lease. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', with constraints after it: 'any:2;model=H100'.
lease: lease abcdefgh2345 does not exist, or has ended. Run 'nvidia-ctk lease list' to see the leases of this host.
lease: 1 MIG device was asked for, but this host has 0 that can be lent and fit. Run 'nvidia-ctk lease list' to see what this host has.
lease: 99: unknown device. Run 'nvidia-ctk lease list' to see what this host has.
MESSAGES
  for claim in "run --claim named:99 -- true" "acquire --claim named:99" "explain named:99"; do
    # shellcheck disable=SC2086
    run ! on_host "$ctk" lease $claim
    [[ $output == *'msg="99: unknown device. Run '"'nvidia-ctk lease list' to see what this host has.\""* ]] || die "$claim: $output"
  done
  is_held 0
}

@test "enforce: a MIG device is the same device in every form of its name" {
  local mig gpu word n=0
  another_host a100-mig
  sed -i 's/"on"/"enforce"/' "$config"
  make_shared
  mig=$(on_host nvidia-smi -L | sed -n 's/.*Device  *0: (UUID: \(MIG-.*\))/\1/p' | head -n 1)
  gpu=$(on_host nvidia-smi -L | sed -n 's/^GPU 1: .*UUID: \(.*\))/\1/p')
  lease_bundle a "$mig" 'sleep 1000'
  create a || die "$(cat "$work/a.out")"
  for word in "$mig" "mig-${mig#MIG-}" "MIG-$(tr a-f A-F <<<"${mig#MIG-}")" 1:0 +1:00 "MIG-$gpu/1/0" "mig-gpu-${gpu#GPU-}/01/0"; do
    lease_bundle "b$((++n))" "$word" 'sleep 1000'
    run ! create "b$n"
    grep -E "msg=\"lease: 1 GPU was asked for, 0 of 1 are free\. Held: GPU 1 by uid 0 \(container a, [0-9]+ s\)\. See 'nvidia-ctk lease list'\.\"" "$work/b$n.out" || die "$word: $(cat "$work/b$n.out")"
  done
  [ "$(lease list --json | jq -r '.leases[].claim')" = "named:$mig" ]
  lease_bundle c "MIG-$gpu/3/0" 'sleep 1000'
  create c || die "$(cat "$work/c.out")"
  is_held 1
  [ "$(lease list --json | jq '.leases | length')" = 2 ]
}

@test "what cannot be read gives no GPU by the hook either, and one error" {
  local claim
  make_shared
  for claim in any:1,all any:0 'any:1;speed=fast' lease:abc any:9; do
    lease_bundle x "$claim" 'sleep 1000' "$(by_hook)"
    run ! of_runc create --bundle "$bundle" x </dev/null
    is_held 0
    printf '%s\n' "$output" | sed -nE 's/.*(device error: .*)/\1/p' | sed -E 's/\\n.*//; s/"$//' >>"$work/messages"
  done
  diff "$work/messages" - <<'MESSAGES'
device error: lease: 'all': a list has either devices or one claim, not both; Correct the NVIDIA_* variables of the container, or config.toml.
device error: lease: '0': the number of GPUs must be 1 to 64; Correct the NVIDIA_* variables of the container, or config.toml.
device error: lease: 'speed': unknown constraint; the constraints are model=, mem>=, same=, not=, wait= and sticky; Correct the NVIDIA_* variables of the container, or config.toml.
device error: lease: 'abc': not the id of a lease; Correct the NVIDIA_* variables of the container, or config.toml.
device error: lease: 9 GPUs were asked for, but this host has 8 that can be lent and fit; Run 'nvidia-ctk lease list' to see what this host has.
MESSAGES
}

# --- holders ---

@test "the host is started again: the kernel says another boot id, and all GPUs are free, though the table is still there" {
  make_shared
  lease_bundle a any:2 'sleep 1000'
  create a
  lease acquire -n 3 --for 1h >/dev/null
  is_held 5
  echo 00000000-0000-4000-8000-000000000000 >"$work/boot_id"
  on_host mount --bind "$work/boot_id" /proc/sys/kernel/random/boot_id
  is_held 0
  lease run -n 8 -- true
  lease history >"$work/history"
  on_host umount /proc/sys/kernel/random/boot_id
  [ "$(grep -c ' freed .* the host was restarted$' "$work/history")" = 2 ] || die "$(cat "$work/history")"
}

@test "a record of another boot, another process of the same id, time" {
  local id start
  id=$(lease acquire -n 3 --for 1s)
  [ -e "$table/held/$id" ]
  becomes_held 0
  id=$(lease acquire -n 3 --for 1h)
  sed -i 's/"boot": "[^"]*"/"boot": "00000000-0000-4000-8000-000000000000"/' "$table/held/$id"
  is_held 0
  on_host "$ctk" lease run -n 2 -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 2
  id=$(lease list --json | jq -r '.leases[0].id')
  start=$(jq .holder.start_time "$table/held/$id")
  jq .holder.pid "$table/held/$id" >>"$work/pids"
  sed -i "s/\"start_time\": $start/\"start_time\": $((start - 1))/" "$table/held/$id"
  is_held 0
  lease history | tail -n 3
  lease run -- true
  lease history | grep 'freed .* its process has ended'
  lease history | grep 'freed .* the host was restarted'
}

@test "lease:ID shares what was taken by hand, and lasts when its time is over" {
  local id
  make_shared
  printf 'limits = ["default=2"]\n' >>"$config"
  id=$(lease acquire -n 2 --for 1h)
  lease_bundle a "lease:$id" 'sleep 1000'
  create a
  on_host "$ctk" --quiet lease run --claim "lease:$id" -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  within_seconds 2 has_leases 3
  is_held 2
  [ "$(gpus_of a | wc -w)" = 2 ]
  sed -i -E 's/"until": [0-9]+/"until": 1/' "$table/held/$id"
  has_leases 2
  is_held 2
  run ! lease release "$id"
  # They count once, before and afterwards.
  lease metrics | grep -xF 'graft_lease_owner_slots{uid="0"} 2'
  run -126 on_host "$ctk" lease run -- true
  [[ $output == *"uid 0 holds 2 and may hold 2 at once."* ]]
  kill_holders
  of_runc delete --force a
  becomes_held 0
}

@test "run, release, reclaim: variables, users, messages" {
  local id
  run -0 lease run -n 2 -- sh -c 'echo "$CUDA_VISIBLE_DEVICES|$NVIDIA_VISIBLE_DEVICES|$NVIDIA_LEASE"'
  [[ $output =~ ^(GPU-[0-9a-f-]{36},GPU-[0-9a-f-]{36})\|(.*)\|[a-z2-7]{12}$ ]]
  [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
  run -0 lease run --user nobody -- id -un
  [ "$output" = nobody ]
  run -7 lease run -- sh -c 'exit 7'
  run -126 on_host "$ctk" lease run -- /no/such/program
  [[ $output == *"exec failed: /no/such/program: no such file or directory"* ]]
  run -126 on_host "$ctk" lease run
  [[ $output == *"a command is needed, after '--'. Run the command with --help to see what it accepts."* ]]
  run -1 on_host "$ctk" lease acquire --for 3x
  [[ $output == *"'3x' is not a duration. Write a number and a unit: 90s, 30m, 8h or 2d."* ]]
  run -1 on_host "$ctk" lease acquire -n 1 --claim any
  [[ $output == *"--count and --claim cannot be used together"* ]]
  SUDO_UID=1000 on_host "$ctk" lease run -- sh -c 'trap "" TERM; while :; do sleep 1; done' 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 1
  id=$(lease list --json | jq -r '.leases[0].id')
  lease list | grep -E "^[0-7]    held   $id  uid 1000 \(process [0-9]+, [0-9]+ s\)  sh$"
  run -1 on_host "$ctk" lease release "$id"
  [[ $output == *"lease $id ends with its holder, uid 1000 (process "*"End the holder, or let 'nvidia-ctk lease reclaim' do so."* ]]
  lease reclaim --grace 1s --yes "$id" </dev/null
  becomes_held 0
  run -1 on_host "$ctk" lease reclaim "$id" </dev/null
  [[ $output == *"lease $id does not exist, or has ended. Run 'nvidia-ctk lease list' to see the leases of this host."* ]]
  id=$(lease acquire -n 2 --for 1h)
  lease release "$id"
  is_held 0
  sed -i 's/"on"/"off"/' "$config"
  run -1 on_host "$ctk" lease acquire
  [[ $output == *"leases are off in $config. Run 'nvidia-ctk config --in-place --set graft.leases.mode=on'."* ]]
}

@test "explain is a question: constraints, memory, places" {
  run -0 lease explain 'any:2;mem>=40G;same=numa;not=0,1'
  [ "$(wc -l <<<"$output")" = 2 ]
  run ! grep -E '^GPU [01]:' <<<"$output"
  run -0 lease explain --json any:8
  [ "$(jq length <<<"$output")" = 8 ]
  run -1 on_host "$ctk" lease explain 'any:2/mem>=999G'
  [[ $output == *"2 GPUs were asked for, but this host has 0 that can be lent and fit."* ]]
  is_held 0
  [ ! -e "$table" ]
  printf 'pool = ["0", "3"]\n' >>"$config"
  run -0 lease explain any:2
  [ "$(cut -d : -f 1 <<<"$output" | xargs)" = "GPU 0 GPU 3" ]
  lease list | grep '^1    not lent: not in graft.leases.pool$'
}

@test "list --watch, and metrics for node_exporter" {
  lease acquire -n 3 --for 1h >/dev/null
  SUDO_UID=1000 lease acquire -n 1 --for 1h >/dev/null
  # It is written again and again, until nobody reads it any more.
  on_host timeout 60 "$ctk" --quiet lease list --watch | tee "$work/watched" | grep --max-count=2 '^GPU  STATE'
  [ "$(grep -c '^GPU  STATE' "$work/watched")" -ge 2 ]
  run ! grep $'\033' "$work/watched"
  lease metrics >"$work/metrics"
  [ "$(grep -c '^graft_lease_gpu_leases{gpu="[0-7]",uuid="GPU-[0-9a-f-]*"} 1$' "$work/metrics")" = 4 ]
  grep -Fx 'graft_lease_owner_slots{uid="0"} 3' "$work/metrics"
  grep -Fx 'graft_lease_owner_slots{uid="1000"} 1' "$work/metrics"
  grep -Fx 'graft_lease_waiting 0' "$work/metrics"
  grep -Fx 'graft_lease_damaged 0' "$work/metrics"
  lease metrics --output "$work/metrics.prom"
  diff "$work/metrics" "$work/metrics.prom"
}

@test "list --watch on a terminal: it follows what is lent and the size, keeps warnings in sight, and Ctrl-C leaves the terminal as it was" {
  lease run -- true
  on_host "$top/test/integration/lease_watch.py" "$ctk" "$table" 3>&- 4>&-
}

@test "plan: a claim is replaced by what it would get now, and nothing is taken" {
  local gpus gpu plan=(on_host nvidia-container-cli plan)
  "${plan[@]}" --device='any:2;not=0' --compute >"$work/out" 2>"$work/err"
  gpus=$(lease explain 'any:2;not=0' | sed 's/.*: //' | paste -sd, | sed 's/,/, /')
  diff - "$work/err" <<EOF
nvidia-container-cli: note: any:2,not=0 would get $gpus now; nothing is taken
nvidia-container-cli: note: the driver is simulated: there is no real GPU
EOF
  [ "$(grep -c '^  GPU [1-7]  .*GPU-' "$work/out")" = 2 ]
  for gpu in ${gpus/,/}; do grep -F "$gpu" "$work/out"; done
  [ ! -e "$table" ]
  # Of JSON only the note differs from the plan for these names.
  "${plan[@]}" --json --device='any:2;not=0' --compute 2>/dev/null >"$work/claim"
  "${plan[@]}" --json --device="${gpus/, /,}" --compute 2>/dev/null | diff "$work/claim" -
  # What is held is not in it.
  lease acquire -n 7
  run -88 --separate-stderr "${plan[@]}" --device=any:2 --compute
  [[ $stderr == 'nvidia-container-cli: device error: lease: 2 GPUs were asked for, 1 of 8 is free'* ]] || die "status $status: $stderr"
  is_held 7
  [ -z "$(find "$table/queue" -type f 2>/dev/null)" ]
  on_host nvidia-container-cli info --json >"$work/inventory" 2>/dev/null
  run --separate-stderr "${plan[@]}" --device=any:1 --inventory="$work/inventory"
  [ "$stderr" = 'nvidia-container-cli: device error: --inventory needs --leases if a claim is made, which depends on the leases of the host
nvidia-container-cli: hint: Run the command with --help to see what it accepts.' ] || die "status $status: $stderr"
  # The request is shown as it is.
  "${plan[@]}" --device=any:1 --show=request | grep -F any:1
  sed -i s/on/off/ "$config"
  run --separate-stderr "${plan[@]}" --device=any:1 --compute
  [ "$stderr" = "nvidia-container-cli: device error: any:1: unknown device
nvidia-container-cli: hint: It is a claim, which counts where leases are on: 'nvidia-ctk config --in-place --set graft.leases.mode=on'." ] || die "$stderr"
}

@test "plan --leases: what a claim would get, by files from a host, whatever is lent here" {
  local claim
  another_host dgx1-v100
  local plan=(on_host nvidia-container-cli plan)
  lease acquire -n 3 --for 1h
  on_host nvidia-container-cli info --json >"$work/inventory" 2>/dev/null
  for claim in any:2 'any:2;same=nvlink' 'any;mem>=16G' 'any:6'; do
    "${plan[@]}" --device="$claim" --show=leases >"$work/state-$claim" 2>/dev/null
    "${plan[@]}" --json --device="$claim" --compute >"$work/plan-$claim" 2>"$work/said-$claim" || true
  done
  jq -e '.leases | length == 1' "$work/state-any:2"
  # Read and written again it is the same.
  "${plan[@]}" --device=any:2 --leases="$work/state-any:2" --show=leases | diff "$work/state-any:2" -
  lease acquire -n 5 --for 1h
  find "$table" -type f -exec stat -c '%n %Y' {} + | sort >"$work/before"
  for claim in any:2 'any:2;same=nvlink' 'any;mem>=16G' 'any:6'; do
    # Neither the configuration nor the GPUs of where it is replayed matter.
    NVIDIA_CTK_CONFIG_FILE_PATH=/dev/null run --separate-stderr on_host unshare --mount --propagation private sh -c '
      mount -t tmpfs none /proc/driver && exec "$@"' sh nvidia-container-cli plan --json --device="$claim" --compute \
      --inventory="$work/inventory" --leases="$work/state-$claim"
    diff -q "$work/said-$claim" - <<<"$stderr" || die "status $status: $stderr"
    # The file of the host has more than this request needs.
    diff <(jq -c .grants "$work/plan-$claim") <(jq -c .grants <<<"$output") || die "$claim"
  done
  grep -F '6 GPUs were asked for, 5 of 8 are free' "$work/said-any:6"
  [ -s "$work/plan-any:2" ] && [ -s "$work/plan-any;mem>=16G" ]
  find "$table" -type f -exec stat -c '%n %Y' {} + | sort | diff "$work/before" -
  # What is no such file.
  run -76 --separate-stderr "${plan[@]}" --device=any:1 --leases="$work/inventory"
  jq '.leases[0].slots[0].replica = 99' "$work/state-any:2" >"$work/bad"
  run -76 --separate-stderr "${plan[@]}" --device=any:1 --leases="$work/bad"
  [[ $stderr == 'nvidia-container-cli: input error: --leases: slots: not valid in the state of leases'* ]] || die "status $status: $stderr"
  run --separate-stderr "${plan[@]}" --device=0 --show=leases
  [[ $stderr == 'nvidia-container-cli: device error: --show=leases needs a claim, such as --device=any:2'* ]] || die "status $status: $stderr"
}

@test "a lease says what its container runs: the image if the engine names it, else the program, by the runtime and by the hook" {
  local name
  make_shared
  lease_bundle a any:1 'sleep 1000'
  lease_bundle b any:1 'sleep 1000' '.annotations += {"io.kubernetes.cri.image-name": "docker.io/library/train:2"}'
  lease_bundle c any:1 'sleep 1000' '.annotations += {"io.kubernetes.cri-o.ImageName": "quay.io/infer\u001b:1"}'
  for name in a b c; do create $name; done
  for name in d e; do
    lease_bundle $name any:1 'sleep 1000' "$(by_hook)"
    [ $name = d ] || edit_bundle '.annotations += {"io.kubernetes.cri.image-name": "by-hook"}'
    of_runc create --bundle "$bundle" --pid-file "$work/$name.pid" $name </dev/null >"$work/$name.out" 2>&1 3>&- 4>&-
  done
  lease list | sed -nE 's/.*\(container ([a-e]), [0-9]+ s\)  /\1 /p' | sort >"$work/list"
  diff - "$work/list" <<'EOF'
a sh
b docker.io/library/train:2
c quay.io/infer?:1
d sh
e by-hook
EOF
}

# own_cgroup WORLD COMMAND...: in a cgroup of this test, below which those of --scope are made.
own_cgroup() {
  local world=$1 directory
  shift
  for directory in /sys/fs/cgroup/{devices,unified,}; do
    [ ! -e "$directory/cgroup.procs" ] || mkdir -p "$directory/$group"
  done
  # shellcheck disable=SC2016
  sh -c 'for procs in "/sys/fs/cgroup/devices/$0" "/sys/fs/cgroup/unified/$0" "/sys/fs/cgroup/$0"; do
    [ ! -d "$procs" ] || echo $$ >"$procs/cgroup.procs"; done; exec "$@"' "$group" \
    bash -c '. "$0"; "$@"' "$work/functions" "$world" "$@"
}
# Which nodes a command with two GPUs can open, in a cgroup of its own.
scope() {
  # shellcheck disable=SC2016
  own_cgroup "$1" "$ctk" --quiet lease run --scope -n 2 -- sh -c 'for node in /dev/nvidia[0-7] /dev/nvidiactl; do
    printf "%s: " "${node#/dev/}"; (: <"$node") 2>&1 | sed "s/.*: //"; done; grep -c graft-lease /proc/self/cgroup'
}
no_scope() { [ -z "$(find /sys/fs/cgroup -path "*/$group/*" -name 'graft-lease-*' 2>/dev/null)" ] || die "a cgroup is left"; }

@test "run --scope: no other GPU can be opened, what it leaves behind holds the lease, and the cgroup goes" {
  local world
  declare -f on_host v2 >"$work/functions"
  for world in on_host v2; do
    scope $world >"$work/$world" || [ $world = v2 ] || die "$(cat "$work/$world")"
    # Where a program may not be loaded, there is no such cgroup.
    ! grep -q 'cannot load device program' "$work/$world" || continue
    [ "$(grep -cE '^nvidia[0-7]: No such device or address$' "$work/$world")" = 2 ] || die "$world: $(cat "$work/$world")"
    [ "$(grep -cE '^nvidia[0-7]: Operation not permitted$' "$work/$world")" = 6 ]
    grep -Fx 'nvidiactl: No such device or address' "$work/$world"
    [ "$(tail -n 1 "$work/$world")" = 1 ]
    # From where its hierarchy is seen, it is gone.
    $world "$ctk" --quiet lease run -- true
    no_scope
  done
  own_cgroup on_host "$ctk" --quiet lease run --scope -- sh -c 'sleep 1000 >/dev/null 2>&1 3>&- 4>&- &'
  is_held 1
  on_host xargs kill <"/sys/fs/cgroup/devices$(jq -r 'select(.claim == "any:1").holder.cgroup' "$table"/held/* | grep graft-lease)/cgroup.procs"
  becomes_held 0
  lease run -- true
  no_scope
  run -126 own_cgroup on_host "$ctk" lease run --scope -n 9 -- true
  no_scope
}

@test "run --scope: one that is killed while it waits, or before it is in its cgroup, leaves none" {
  local world call
  declare -f on_host v2 >"$work/functions"
  lease acquire -n 8 --for 1h >"$work/id"
  own_cgroup on_host "$ctk" --quiet lease run --scope --wait 60s -- true 3>&- 4>&- &
  queued 1
  kill -9 "$(jq -r .holder.pid "$table"/queue/*)"
  wait $! || true
  no_scope
  lease release "$(cat "$work/id")"
  for world in on_host v2; do
    for call in mkdir:2 write; do
      own_cgroup $world timeout 20 strace -qq -o /dev/null -e "inject=${call%:*}:signal=KILL" "$ctk" --quiet lease run --scope -- true >/dev/null 2>&1 || true
    done
    $world "$ctk" --quiet lease run -n 8 -- true
    no_scope
  done
}

@test "from other PID, cgroup and time namespaces, what cannot be seen to have ended counts as held" {
  make_shared
  lease_bundle a any:8 'sleep 1000'
  create a
  # A cgroup of the same path in another part of the hierarchy is not the container's.
  sed -i 's/"cgroup_root": \([0-9]*\)/"cgroup_root": \10/' "$table"/held/*
  run -126 lease run -- true
  [ "$(jq .holder.cgroup_id "$table"/held/*)" = null ] || die "$(cat "$table"/held/*)"
  sed -i 's/"cgroup_root": \([0-9]*\)0/"cgroup_root": \1/' "$table"/held/*
  # From now on the lease has its cgroup's id.
  run -126 lease run -- true
  [ "$(jq .holder.cgroup_id "$table"/held/*)" != null ] || die "$(cat "$table"/held/*)"
  declare -f on_host >"$work/functions"
  mkdir "$work/driver"
  # shellcheck disable=SC2016
  run -126 on_host unshare --pid --fork --mount --propagation private sh -c '
    mount --rbind /proc/driver "$1" && mount -t proc proc /proc && mount --rbind "$1" /proc/driver && "$0" lease run -- true' "$ctk" "$work/driver"
  [[ $output == *'1 GPU was asked for, 0 of 8 are free'* ]] || die "$output"
  # shellcheck disable=SC2016
  run -126 own_cgroup on_host unshare --cgroup --mount --propagation private sh -c '
    if mountpoint -q /sys/fs/cgroup/devices; then
      umount -l /sys/fs/cgroup/devices && mount -t cgroup -o devices none /sys/fs/cgroup/devices
    else
      umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
    fi && exec "$0" lease run -- true' "$ctk"
  [[ $output == *'1 GPU was asked for, 0 of 8 are free'* ]] || die "$output"
  of_runc delete --force a
  becomes_held 0
  # Where processes seem to have started at another time, and time to be over.
  on_host "$ctk" --quiet lease run -n 7 -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 7
  lease acquire --for 10s
  if [ -e /proc/self/ns/time ]; then
    run -126 on_host unshare --time --boottime 100000 --fork "$ctk" lease run -- true
    [[ $output == *'1 GPU was asked for, 0 of 8 are free'* ]] || die "$output"
  fi
  is_held 8
}

@test "a container that is made in another PID namespace holds its GPUs before it has a cgroup, for ten minutes" {
  make_shared
  printf '#!/bin/sh\nwhile [ -e "%s" ]; do sleep 0.05; done\n' "$work/slow" >"$work/slow"
  chmod 0755 "$work/slow"
  sed -i "s|^runtimes = .*|runtimes = [\"$work/slow\"]|" "$config"
  lease_bundle a any:8 'sleep 1000'
  mkdir "$work/driver"
  # shellcheck disable=SC2016
  on_host unshare --pid --fork --mount --propagation private sh -c '
    mount --rbind /proc/driver "$1" && mount -t proc proc /proc && mount --rbind "$1" /proc/driver || exit
    "$0" create --bundle "$2" a; exit' "$runtime" "$work/driver" "$work/bundle-a" </dev/null >"$work/a.out" 2>&1 3>&- 4>&- &
  echo $! >>"$work/pids"
  within_seconds 10 eval '[ "$(count_files)" = 1 ]' || die "$(cat "$work/a.out")"
  run -126 lease run -- true
  [[ $output == *'1 GPU was asked for, 0 of 8 are free'* ]] || die "$output"
  # One that takes longer is no longer believed. The clock begins when the host starts.
  sed -i 's/"since": [0-9]*/"since": 1/' "$table"/held/*
  [ "$(cut -d. -f1 /proc/uptime)" -lt 610 ] || lease run -n 8 -- true
  rm "$work/slow"
  wait
}

# In a PID namespace that still sees the /proc of another one.
unable_to_examine() { on_host unshare --pid --fork setpriv --bounding-set=-sys_ptrace "$@"; }

@test "root that may not examine processes is told so, and not that it is not root" {
  local why='cannot find out whose processes /proc shows: /proc/1/ns/pid: permission denied' hint
  hint="Let the process examine others, by CAP_SYS_PTRACE and by AppArmor or SELinux, or mount the /proc of its own PID namespace."
  make_shared
  run -126 unable_to_examine "$ctk" lease run -- true
  [[ $output == *"msg=\"$why. $hint\""* ]] || die "$output"
  run --separate-stderr unable_to_examine "$BATS_FILE_TMPDIR/programs/nvidia-container-cli" configure --device=any:1 --no-cgroups "$root"
  [ "$stderr" = "nvidia-container-cli: device error: lease: $why
nvidia-container-cli: hint: $hint" ] || die "status $status: $stderr"
  is_held 0
}

# Which nodes a command with MIG devices can open, its devices, and those that nvidia-smi sees.
scope_of_migs() {
  # shellcheck disable=SC2016
  own_cgroup "$1" "$ctk" --quiet lease run --scope --claim "$2" -- sh -c '
    for node in /dev/nvidia[0-9]* /dev/nvidia-caps/*; do
      printf "%s: " "$node"; (: <"$node") 2>&1 | sed "s/.*: //"; done; echo "devices: $NVIDIA_VISIBLE_DEVICES"; nvidia-smi -L'
}

@test "run --scope with MIG devices: of all instances only their own nodes can be opened, and no right to change any" {
  local world claim devices
  another_host a100-mig
  declare -f on_host v2 >"$work/functions"
  # The second has a GPU instance whose other compute instance is not its own.
  for claim in mig:1g.5gb:2 mig:1c.3g.20gb; do
    for world in on_host v2; do
      scope_of_migs $world $claim >"$work/$world" 2>&1 || [ $world = v2 ] || die "$(cat "$work/$world")"
      ! grep -q 'cannot load device program' "$work/$world" || continue
      devices=$(sed -n 's/^devices: //p' "$work/$world")
      on_host nvidia-container-cli list --device="$devices" | grep -E '^/dev/nvidia([0-9]|-caps/)' | sort >"$work/wanted"
      [ "$(grep -c /dev/nvidia-caps/ "$work/wanted")" = $((2 * ($(say "$devices" | tr -cd , | wc -c) + 1))) ]
      sed -n 's/^\(\/dev\/.*\): No such device or address$/\1/p' "$work/$world" | sort | diff "$work/wanted" - || die "$world: $(cat "$work/$world")"
      [ "$(grep -c '^/dev/.*: Operation not permitted$' "$work/$world")" = $(($(grep -c '^/dev/' "$work/$world") - $(wc -l <"$work/wanted"))) ]
      # As variable and from nvidia-smi.
      grep -oE 'MIG-[0-9a-f-]+' "$work/$world" | sort | uniq -c | awk '$1 != 2 {exit 1}'
      # From where its hierarchy is seen, it is gone.
      $world "$ctk" --quiet lease run -- true
      no_scope
    done
  done
  # The list has a row for each.
  lease acquire --claim mig:1g.5gb:3 --for 1h >/dev/null
  [ "$(lease list | grep -oE '^[12] .* MIG-[0-9a-f-]+$' | sort -u | wc -l)" = 3 ] || die "$(lease list)"
}
