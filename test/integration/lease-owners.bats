# SPDX-License-Identifier: Apache-2.0
# The owners of leases, who goes first, how long leases are expected to last, and which GPUs are left out.

load lib.bash
load lease.bash

setup_file() { lease_host dgx-h100; }
teardown_file() { stop_host; }
setup() { lease_setup; }
teardown() { lease_teardown; }

@test "owners with a name: of commands and of containers; limits, history, metrics, and a name that is none" {
  make_shared
  printf 'limits = ["anna=3", "0=6"]\n' >>"$config"
  lease acquire --owner anna -n 2 --for 1h >"$work/id"
  lease list | grep -E "^[0-7]    held   $(cat "$work/id")  anna \(lease $(cat "$work/id"), 0 s, 59 min left\)$"
  # The annotation is the user's, and the variable may be the image's.
  lease_bundle a any:1 'sleep 1000' '.annotations += {"graft.owner": "anna"} | .process.env += ["NVIDIA_LEASE_OWNER=ben"]'
  create a || die "$(cat "$work/a.out")"
  lease_bundle b any:1 'sleep 1000' '.process.env += ["NVIDIA_LEASE_OWNER=anna"]'
  run ! create b
  grep -F 'lease: anna holds 3 and may hold 3 at once. Wait until one of them is free, or raise graft.leases.limits in config.toml.' "$work/b.out" || die "$(cat "$work/b.out")"
  lease_bundle c any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_OWNER=ben"]' "$(by_hook)"
  of_runc create --bundle "$bundle" --pid-file "$work/c.pid" c </dev/null >"$work/c.out" 2>&1 3>&- 4>&- || die "$(cat "$work/c.out")"
  # Another name does not evade the limit of the user id.
  run -126 on_host "$ctk" lease run --owner carl -n 2 -- true
  [[ $output == *"uid 0 holds 5 and may hold 6 at once. "* ]] || die "$output"
  SUDO_UID=1000 lease run --owner carl -- true
  [ "$(lease list --json | jq -c '[.leases[] | [.owner, (.slots | length)]] | sort')" = '[["anna",1],["anna",2],["ben",2]]' ]
  [ "$(lease history --owner anna | cut -d ' ' -f 2,4,5)" = $'taken owner anna\ntaken owner anna' ]
  [ "$(lease history --owner carl | cut -d ' ' -f 2,4,5 | head -n 1)" = 'taken owner carl' ]
  # The same as JSON; what is no whole line is left out. The next one finds that the last one has ended.
  SUDO_UID=1000 lease run --owner carl -- true
  printf '1 freed abc\n' >>"$table/log"
  lease history --json >"$work/history"
  [ "$(jq -c '.[0] | [(.date > 0), .event, .lease, .owner, .claim, (.devices | length), .process, .container]' "$work/history")" = "[true,\"taken\",\"$(cat "$work/id")\",\"anna\",\"any:2\",2,null,null]" ]
  [ "$(jq -c '.[1] | [.owner, .container, .uid]' "$work/history")" = '["anna","a",null]' ]
  [ "$(jq -c '[.[] | select(.event == "freed")] | map([.owner, .why])' "$work/history")" = '[["carl","its process has ended"]]' ] || die "$(cat "$work/history")"
  [ "$(lease history --json --owner carl | jq -c '[.[] | .event]')" = '["taken","freed","taken"]' ]
  [ "$(lease history --json --owner zoe)" = $'[\n]' ]
  lease metrics >"$work/metrics"
  grep -Fx 'graft_lease_owner_slots{owner="anna"} 3' "$work/metrics"
  grep -Fx 'graft_lease_owner_slots{owner="ben"} 2' "$work/metrics"
  lease_bundle d any:1 'sleep 1000' '.process.env += ["NVIDIA_LEASE_OWNER=0 or 1=1"]'
  run ! create d
  grep -F "lease: '0 or 1=1' is not a valid owner name. Use up to 32 letters, digits, '.', '-', '_' and '@', beginning with a letter." "$work/d.out" || die "$(cat "$work/d.out")"
  is_held 5
}

@test "fair between names: who holds less goes first" {
  local name
  hold_all "$work/go"
  for name in anna ben; do
    for _ in 1 2 3 4 5 6; do waiter 1000 --owner $name -- sleep 1000; done
  done
  queued 12
  touch "$work/go"
  # Eight GPUs are held before that as well, by one.
  within_seconds 20 has_leases 8
  [ "$(lease list --json | jq -c '[.leases[].owner] | group_by(.) | map(length)')" = "[4,4]" ]
}

@test "urgent: it goes before all that wait, in either order, and nothing is taken from anybody" {
  local order
  for order in fair fifo; do
    printf '[graft.leases]\nmode = "on"\ndirectory = "%s"\norder = "%s"\n' "$table" $order >"$config"
    hold_all "$work/$order"
    # shellcheck disable=SC2016
    waiter 1000 -n 8 -- sh -c 'echo first >>"$0"' "$work/order-$order"
    queued 1
    # shellcheck disable=SC2016
    waiter 1001 -n 8 --urgent -- sh -c 'echo urgent >>"$0"' "$work/order-$order"
    queued 2
    lease list | grep -E '^-    waits  [a-z2-7]{12}  uid 1001 \(process [0-9]+, [0-9]+ s\)  any:8  urgent$'
    is_held 8
    touch "$work/$order"
    within_seconds 20 eval '[ "$(wc -l 2>/dev/null <"$work/order-$order")" = 2 ]'
    [ "$(cat "$work/order-$order")" = $'urgent\nfirst' ]
    becomes_held 0
  done
}

@test "run --for and graft.leases.max-time: others see it, nothing ends by itself, and reclaim --overdue ends it" {
  local id
  on_host "$ctk" --quiet lease run --for 1s -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 1
  id=$(lease list --json | jq -r '.leases[0].id')
  lease acquire --for 1h >"$work/token"
  SUDO_UID=1000 on_host "$ctk" --quiet lease run --for 1h -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 3
  lease list | grep -E 'uid 1000 \(process [0-9]+, [0-9]+ s, (59 min|1 h) left\)  sleep$'
  sleep 1.2
  is_held 3
  lease list | grep -E "$id  uid 0 \(process [0-9]+, [0-9]+ s, [0-9]+ s overdue\)  sleep$"
  run -0 lease reclaim --overdue --grace 5s </dev/null
  [[ $output =~ ^$id\ \ uid\ 0\ \(process\ [0-9]+,\ [0-9]+\ s,\ [0-9]+\ s\ overdue\)$ ]] || die "$output"
  is_held 2
  run -0 lease reclaim --overdue </dev/null
  [ "$output" = "" ]
  printf 'max-time = "1s"\n' >>"$config"
  sleep 1
  # Each that is not ended is reported.
  run -1 on_host script -qec "'$ctk' lease reclaim --overdue" /dev/null < <(printf 'n\nn\n')
  [ "$(grep -c 'nothing was done' <<<"$output")" = 2 ] || die "$output"
  is_held 2
  run -0 lease reclaim --overdue --grace 5s </dev/null
  [ "$(wc -l <<<"$output")" = 2 ]
  is_held 0
  run -1 on_host "$ctk" lease reclaim --overdue "$id"
  [[ $output == *"--overdue cannot be used with the id of a lease"* ]]
  run -126 on_host "$ctk" lease run --for soon -- true
  [[ $output == *"'soon' is not a duration. Write a number and a unit: 90s, 30m, 8h or 2d."* ]]
}

@test "run and acquire --model" {
  run -0 lease run --model h100 -n 2 -- printenv NVIDIA_VISIBLE_DEVICES
  [[ $output == GPU-*,GPU-* ]]
  run -126 on_host "$ctk" lease run --model A100 -- true
  [[ $output == *"1 GPU was asked for, but this host has 0 that can be lent and fit. Run 'nvidia-ctk lease list' to see what this host has."* ]]
  run -1 on_host "$ctk" lease acquire --model H100 --claim any
  [[ $output == *"--model and --claim cannot be used together"* ]]
}

# opens FILE NODE...: a process that has these nodes open, as CUDA does; it makes the file when it has.
write_stranger() {
  cat >"$work/stranger" <<'PYTHON'
import os, sys, time
open("/proc/self/comm", "w").write("stranger")
for node in sys.argv[2:]:
    os.open(node, os.O_PATH)
with open(sys.argv[1] + ".new", "w") as stream:
    stream.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(1000)
PYTHON
}
opens() {
  write_stranger
  on_host /usr/bin/python3 "$work/stranger" "$work/$1" "${@:2}" 3>&- 4>&- &
  within_seconds 10 test -e "$work/$1"
  cat "$work/$1" >>"$work/pids"
  echo >>"$work/pids"
}

# Programs of other tests have nodes open as well, for a moment, while they give them to containers.
sees_stranger() {
  [ "$(lease explain --json any:6 | jq length)" = 6 ] || return
  lease list | grep -Fx "0    used   -             process $1 (stranger, uid 0), without a lease" || return
  lease list | grep -Fx "3    free" || return
  [ "$(lease list --json | jq -c '[.gpus[] | select(.in_use) | .index]')" = "[0,2]" ] || return
  run -126 on_host "$ctk" lease run -n 7 -- true || return
  [[ $output == *"7 GPUs were asked for, 6 of 8 are free. Held: GPU 0 by process $1 (stranger, uid 0) without a lease; GPU 2 by process $1 (stranger, uid 0) without a lease. See 'nvidia-ctk lease list'."* ]]
}

@test "busy = open: what somebody computes on without a lease is not lent, until that has ended" {
  local pid
  printf 'busy = "open"\n' >>"$config"
  opens a /dev/nvidia0 /dev/nvidia2 /dev/nvidia-uvm /dev/nvidiactl
  pid=$(cat "$work/a")
  # Monitoring has the nodes open, and not that of unified memory.
  opens b /dev/nvidia3 /dev/nvidiactl
  within_seconds 20 sees_stranger "$pid"
  run -0 on_host "$ctk" lease doctor
  [[ $output == *"warning: process $pid (stranger, uid 0) uses GPU 0, 2 without a lease"* ]] || die "$output"
  [[ $output == *"warning: process $(cat "$work/b") (stranger, uid 0) has open, and does not compute on, GPU 3 without a lease"* ]] || die "$output"
  # Who has a lease may have them all open, and its children.
  # shellcheck disable=SC2016
  on_host "$ctk" --quiet lease run -- sh -c '/usr/bin/python3 "$0/stranger" "$0/c" /dev/nvidia4 /dev/nvidia5 /dev/nvidia-uvm; true' "$work" 3>&- 4>&- &
  within_seconds 10 test -e "$work/c"
  cat "$work/c" >>"$work/pids"
  echo >>"$work/pids"
  within_seconds 20 eval '[ "$(lease explain --json any:5 | jq length)" = 5 ]'
  # shellcheck disable=SC2016
  waiter 1000 -n 7 -- sh -c ': >"$0"' "$work/started"
  queued 1
  kill -9 "$pid"
  within_seconds 10 test -e "$work/started"
}

# A file system of FUSE, whose program answers nothing.
@test "busy = open: a file that a process has open on a file system that hangs holds nobody up" {
  local pid directory
  [ -c /dev/fuse ] || skip "there is no /dev/fuse"
  printf 'busy = "open"\n' >>"$config"
  mkdir "$work/hangs"
  cat >"$work/hang" <<'PYTHON'
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
if libc.unshare(0x20000) or libc.mount(b"x", b"/", None, 0x44000, None) or libc.mount(
        b"x", sys.argv[1].encode(), b"fuse", 0, f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()):
    sys.exit(os.strerror(ctypes.get_errno()))
directory = os.open(sys.argv[1], os.O_PATH)
with open(sys.argv[2], "w", encoding="ascii") as stream:
    stream.write(f"{os.getpid()} {directory}\n")
signal.pause()
PYTHON
  /usr/bin/python3 "$work/hang" "$work/hangs" "$work/hung" 3>&- 4>&- &
  echo $! >>"$work/pids"
  within_seconds 10 test -s "$work/hung"
  read -r pid directory <"$work/hung"
  run -137 timeout --signal KILL 1 stat -L "/proc/$pid/fd/$directory"
  timeout --signal KILL 20 nsenter --target "$(cat "$BATS_FILE_TMPDIR/host.pid")" --mount "$ctk" --quiet lease explain any:2
}

@test "enforce and busy = open: a GPU that is used without a lease is refused to who names it" {
  make_shared
  sed -i 's/"on"/"enforce"/' "$config"
  printf 'busy = "open"\n' >>"$config"
  opens a /dev/nvidia1 /dev/nvidia-uvm
  lease_bundle a 1 'sleep 1000'
  run ! create a
  grep -F "1 GPU was asked for, 0 of 1 are free. Held: GPU 1 by process $(cat "$work/a") (stranger, uid 0) without a lease. See 'nvidia-ctk lease list'." "$work/a.out" || die "$(cat "$work/a.out")"
  lease_bundle b 0 'sleep 1000'
  create b || die "$(cat "$work/b.out")"
}

@test "a GPU that has failed is not lent until it has recovered; who does not care says so" {
  local bus
  bus=$(on_host ls /proc/driver/nvidia/gpus | head -n 1)
  on_host sh -c 'echo "NVRM: Xid (PCI:${0%.*}): 79, pid=1, name=python, GPU has fallen off the bus." >>/run/graft-sim/kmsg' "$bus"
  lease list | grep -Fx '0    not lent: it has failed: Xid 79'
  [ "$(lease list --json | jq -r '.gpus[0].failed')" = "it has failed: Xid 79" ]
  lease metrics | grep -E '^graft_lease_gpu_failed{gpu="0",uuid="GPU-[0-9a-f-]+"} 1$'
  [ "$(lease explain any | cut -d : -f 1)" = "GPU 1" ]
  run -126 on_host "$ctk" lease run -n 8 -- true
  [[ $output == *"8 GPUs were asked for, but this host has 7 that can be lent and fit."* ]]
  printf 'health = false\n' >>"$config"
  lease run -n 8 -- true
  sed -i '/^health/d' "$config"
  on_host sh -c 'echo "NVRM: GPU $0: GPU reset" >>/run/graft-sim/kmsg' "$bus"
  lease run -n 8 -- true
}

@test "sticky: a container that is started again has the same GPUs, if they are free; others get those that were free for longest" {
  local first
  make_shared
  lease_bundle a 'any:2;sticky;not=0' 'sleep 1000'
  create a || die "$(cat "$work/a.out")"
  first=$(gpus_of a)
  of_runc delete --force a
  becomes_held 0
  # Links do not decide here: these are not the ones that were just freed.
  lease run -n 2 -- printenv NVIDIA_VISIBLE_DEVICES >"$work/others"
  lease run -n 2 -- printenv NVIDIA_VISIBLE_DEVICES >"$work/again"
  run ! cmp -s "$work/others" "$work/again"
  lease_bundle a 'any:2;sticky;not=0' 'sleep 1000'
  create a || die "$(cat "$work/a.out")"
  [ "$(gpus_of a)" = "$first" ]
  of_runc delete --force a
  becomes_held 0
  lease acquire --claim "any;not=0;$(seq -s ';' 0 7 | sed "s/;\?${first##*nvidia}//")" --for 1h >/dev/null
  lease_bundle a 'any:2;sticky;not=0' 'sleep 1000'
  create a || die "$(cat "$work/a.out")"
  [ "$(gpus_of a)" != "$first" ]
}

@test "a claim of an image's own ENV counts as little as its list of devices would" {
  make_shared
  sed -i '1i accept-nvidia-visible-devices-envvar-when-unprivileged = false' "$config"
  lease_bundle a any:8 'sleep 1000'
  create a || die "$(cat "$work/a.out")"
  is_held 0
  [ "$(gpus_of a)" = "" ]
  # The table is not in a container.
  run ! on_host nsenter --target "$(cat "$work/a.pid")" --mount ls "$table"
}
