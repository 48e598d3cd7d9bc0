# SPDX-License-Identifier: Apache-2.0
# Waiting for GPUs: who goes first, who is kept waiting, and how soon.

load lib.bash
load lease.bash

setup_file() { lease_host dgx-h100; }
teardown_file() { stop_host; }
setup() { lease_setup; }
teardown() { lease_teardown; }

@test "whoever waits starts within 50 ms of the end of the holder" {
  local i best=1000000000 ended started
  # The best of ten: other jobs want the processors as well.
  for i in 1 2 3 4 5 6 7 8 9 10; do
    hold_all "$work/go$i"
    # shellcheck disable=SC2016
    waiter 1000 -n 2 -- sh -c 'date +%s%N >"$0.new"; mv "$0.new" "$0"' "$work/started$i"
    queued 1
    touch "$work/go$i"
    within_seconds 10 test -e "$work/started$i"
    ended=$(cat "$work/go$i.ended") started=$(cat "$work/started$i")
    [ $((started - ended)) -ge "$best" ] || best=$((started - ended))
    becomes_held 0
    [ "$best" -ge 50000000 ] || break
  done
  echo "$((best / 1000)) us"
  [ "$best" -lt 50000000 ]
}

@test "a container waits as NVIDIA_LEASE_WAIT says, by the runtime and by the hook" {
  make_shared
  lease_bundle a any:8 'sleep 1000'
  create a
  lease_bundle b any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_WAIT=60s"]'
  create b &
  queued 1
  lease list | grep -E '^-    waits  [a-z2-7]{12}  uid 0 \(process [0-9]+, [0-9]+ s\)  any:2$'
  of_runc delete --force a
  wait $!
  is_held 2
  of_runc delete --force b
  lease_bundle c 'any:8;wait=100s' 'sleep 1000'
  create c
  lease_bundle d any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_WAIT=60s"]' "$(by_hook)"
  of_runc create --bundle "$bundle" --pid-file "$work/d.pid" d </dev/null >"$work/d.out" 2>&1 3>&- 4>&- &
  queued 1
  of_runc delete --force c
  wait $!
  is_held 2
  lease_bundle e any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_WAIT=soon"]'
  run ! create e
  grep -F "the time to wait is not a duration: 'soon'. Write a number and a unit: 90s, 30m, 8h or 2d." "$work/e.out"
}

# says_that_it_waits FILE: not before 10 of its 60 s are over.
says_that_it_waits() { grep --max-count=1 waiting "$1" | grep -E 'waiting for GPUs behind [012] others?, for up to ([1-4][0-9]|50) s more'; }

@test "whoever waits says so every 10 s: the runtime in its log, a command on a terminal" {
  make_shared
  lease_bundle a any:8 'sleep 1000'
  create a
  lease_bundle b any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_WAIT=60s"]'
  on_host "$runtime" --root "$work/runc" --log "$work/b.log" create --bundle "$work/bundle-b" --pid-file "$work/b.pid" b \
    </dev/null >"$work/b.out" 2>&1 3>&- 4>&- &
  on_host script --quiet --return --command "$ctk lease run --wait 60s -n 2 -- true" /dev/null </dev/null >"$work/c.out" 2>&1 3>&- 4>&- &
  on_host "$ctk" lease run --wait 60s -n 2 -- true >"$work/d.out" 2>&1 3>&- 4>&- &
  queued 3
  within_seconds 15 says_that_it_waits "$work/b.log"
  within_seconds 15 says_that_it_waits "$work/c.out"
  of_runc delete --force a
  wait
  is_held 2
  # Where nobody reads, it is silent.
  [ ! -s "$work/d.out" ] || die "$(cat "$work/d.out")"
}

# taken NAME: when the lease of a container was written, in microseconds.
taken() {
  local record
  record=$(grep -l "\"container\": \"$1\"" "$table"/held/*)
  date --date "$(stat --format %y "$record")" +%s%6N
}

@test "four GPUs: any:2 twice takes all, a third is refused and names both, or waits, and has them within 50 ms of the end of the first" {
  local i ended best=1000000000
  another_host quad
  make_shared
  lease_bundle ben any:2 'sleep 1000'
  create ben
  for i in 1 2 3 4 5 6; do
    lease_bundle anna any:2 'sleep 1000'
    create anna
    is_held 4
    [ "$(printf '%s\n' "$(gpus_of anna)" "$(gpus_of ben)" | tr ' ' '\n' | sort -u | wc -l)" = 4 ]
    lease_bundle carl any:2 'sleep 1000'
    run ! create carl
    grep -E '2 GPUs were asked for, 0 of 4 are free\. Held: GPU [0-3], [0-3] by uid 0 \(container (anna|ben), [0-9]+ s\); GPU [0-3], [0-3] by uid 0 \(container (anna|ben), [0-9]+ s\)\. See' "$work/carl.out"
    grep -E 'container anna.*container ben|container ben.*container anna' "$work/carl.out"
    lease_bundle carl any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_WAIT=60s"]'
    create carl &
    queued 1
    # Without its program, it is the container that ends. Before that, or the clock may be read after the next has started.
    ended=$(date +%s%6N)
    kill -9 "$(cat "$work/anna.pid")"
    wait $!
    [ $(($(taken carl) - ended)) -ge "$best" ] || best=$(($(taken carl) - ended))
    [ "$(gpus_of carl | wc -w)" = 2 ]
    of_runc delete --force anna
    of_runc delete --force carl
    [ "$best" -ge 50000 ] || break
  done
  echo "$best us"
  [ "$best" -lt 50000 ]
}

# wait_in_line UID...: each waits for all eight, and writes its number when it has them.
wait_in_line() {
  local i=0 uid
  for uid; do
    i=$((i + 1))
    # shellcheck disable=SC2016
    waiter "$uid" -n 8 -- sh -c 'echo "$1" >>"$0"' "$work/order" "$i"
    queued "$i"
    jq -s 'max_by(.since).holder.pid' "$table"/queue/* >"$work/waiter-$i"
  done
}
have_gone() { [ "$(wc -l <"$work/order" 2>/dev/null || echo 0)" -ge "$1" ]; }

@test "fair: 50 who wait, of three users, start by what each user has had, then by age; one that was killed is left out" {
  local i uids=() now
  now=$(date +%s)
  hold_all "$work/go"
  # What they have had an hour ago: 1001 the most, then 1002.
  printf '%s\n' "$((now - 5000)) taken aaaaaaaaaaaa uid 1001 any:2 GPU-1,GPU-2 process 1" "$((now - 4900)) taken bbbbbbbbbbbb uid 1002 any GPU-3 process 1" \
    "$((now - 3000)) freed aaaaaaaaaaaa uid 1001 its process has ended" "$((now - 3000)) freed bbbbbbbbbbbb uid 1002 its process has ended" >>"$table/log"
  for i in $(seq 50); do uids+=("$((1001 + i % 3))"); done
  wait_in_line "${uids[@]}"
  kill -9 "$(cat "$work/waiter-17")"
  touch "$work/go"
  within_seconds 40 have_gone 49
  for i in 1003 1002 1001; do seq 50 | awk -v uid=$i '1001 + $1 % 3 == uid && $1 != 17'; done >"$work/want"
  diff "$work/want" "$work/order"
  becomes_held 0
  queued 0
}

@test "fifo: 50 who wait, of three users, start by age; one that was killed is left out" {
  local i uids=()
  printf 'order = "fifo"\n' >>"$config"
  hold_all "$work/go"
  for i in $(seq 50); do uids+=("$((1000 + i % 3))"); done
  wait_in_line "${uids[@]}"
  kill -9 "$(cat "$work/waiter-10")"
  # Who comes now and does not wait is refused, and cannot jump the queue either.
  run -126 on_host "$ctk" lease run -- true
  touch "$work/go"
  within_seconds 40 have_gone 49
  diff <(seq 50 | grep -vx 10) "$work/order"
  becomes_held 0
  queued 0
}

@test "fair: who holds less goes first; a limit keeps a user waiting, and nobody else" {
  local uid
  hold_all "$work/go"
  for uid in 1001 1002 1003; do
    for _ in 1 2 3 4 5; do waiter $uid -- sleep 1000; done
  done
  queued 15
  touch "$work/go"
  # Eight GPUs are held before that as well, by one.
  within_seconds 20 has_leases 8
  [ "$(lease list --json | jq -c '[.leases[].uid] | group_by(.) | map(length) | sort')" = "[2,3,3]" ]
  kill_holders
  becomes_held 0
  printf 'limits = ["1001=2", "default=4"]\n' >>"$config"
  waiter 1001 -n 2 -- sleep 1000
  becomes_held 2
  waiter 1001 -- sleep 1000
  queued 1
  waiter 1002 -n 4 -- sleep 1000
  becomes_held 6
  SUDO_UID=1001 run -126 on_host "$ctk" lease run -- true
  [[ $output == *"uid 1001 holds 2 and may hold 2 at once. Wait until one of them is free, or raise graft.leases.limits in config.toml."* ]]
  SUDO_UID=1003 run -126 on_host "$ctk" lease run -n 5 -- true
  [[ $output == *"uid 1003 holds 0 and may hold 4 at once."* ]]
  SUDO_UID=1003 run -1 on_host "$ctk" lease explain any:5
  [[ $output == *"uid 1003 holds 0 and may hold 4 at once."* ]]
}

@test "a lease's time begins when it is taken, and not when its process begins to wait" {
  local now record
  hold_all "$work/go"
  on_host "$ctk" --quiet lease acquire --for 1h --wait 60s >"$work/id" 3>&- 4>&- &
  queued 1
  sleep 0.2
  now=$(cut -d ' ' -f 1 /proc/uptime | tr -d .)0
  touch "$work/go"
  wait $!
  record=$table/held/$(cat "$work/id")
  [ "$(jq '.until - .since' "$record")" = 3600000 ]
  [ "$(jq .since "$record")" -ge "$now" ]
}

@test "whoever waits in a table that is replaced waits in the new one, for as long as before" {
  local waits since
  hold_all "$work/go"
  # shellcheck disable=SC2016
  waiter 1000 -n 8 -- sh -c ': >"$0"' "$work/started"
  queued 1
  waits=$(jq -r .holder.pid "$table"/queue/*) since=$(jq -c '[.id, .since]' "$table"/queue/*)
  # It may not see a moment without a table, in which all is free.
  kill -STOP "$waits"
  mv "$table" "$work/replaced"
  lease acquire -n 8 --for 1h >"$work/id"
  kill -CONT "$waits"
  within_seconds 10 waiting_are 1
  [ "$(jq -c '[.id, .since]' "$table"/queue/*)" = "$since" ]
  touch "$work/go"
  # Woken by the table that is there now.
  lease release "$(cat "$work/id")"
  timeout 3 sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$work/started"
  queued 0
}

@test "the head of the queue is not starved, and those behind it take what it has no use for" {
  printf 'order = "fifo"\n' >>"$config"
  waiter 1001 -n 3 -- sleep 1000
  becomes_held 3
  waiter 1002 --claim 'any:4;not=4;5;6;7' -- sleep 1000
  queued 1
  run -126 on_host "$ctk" lease run --claim 'any;not=4;5;6;7' -- true
  [[ $output == *"GPUs are free, but 1 claim comes first. See 'nvidia-ctk lease list'; wait with NVIDIA_LEASE_WAIT=30m or --wait."* ||
    $output == *"1 GPU was asked for, 0 of 4 are free"* ]]
  # `explain` says so, too.
  run -1 on_host "$ctk" lease explain 'any;not=4;5;6;7'
  [[ $output == *"GPUs are free, but 1 claim comes first. See 'nvidia-ctk lease list'; wait with NVIDIA_LEASE_WAIT=30m or --wait."* ||
    $output == *"1 GPU was asked for, 0 of 4 are free"* ]]
  run -0 lease run -- true
  # Whoever is killed does not keep the next from what is free.
  waiter 1003 --claim 'any;not=4;5;6;7' -- sh -c 'echo >"$0"' "$work/started"
  queued 2
  sleep 6
  kill -9 "$(jq -s 'min_by(.since).holder.pid' "$table"/queue/*)"
  # Woken by that: by itself it looks four seconds later.
  timeout 3 sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$work/started"
}

