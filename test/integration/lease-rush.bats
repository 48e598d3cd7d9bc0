# SPDX-License-Identifier: Apache-2.0
# lane: alone
# Leases that 200 containers want at the same moment: how long they wait for the table's lock.

load lib.bash
load lease.bash

setup_file() { lease_host dgx-h100; }
teardown_file() { stop_host; }
setup() { lease_setup; }
teardown() { lease_teardown; }

# at_once: 200 runtimes that have come as far as their first instruction are let go. $work/waits: how long each waited for the lock, in order.
at_once() {
  local i
  rm -rf "$work/debug" "$work/open" "$table"
  for i in $(seq 200); do
    mkdir -p "$work/bundle-$i"
    cp "$work/bundle-0/config.json" "$work/bundle-$i"
  done
  on_host bash -c 'for i in $(seq 200); do
      sh -c "read -r line <\"\$0/gate\"; exec \"\$1\" --root \"\$0/runc\" create --bundle \"\$0/bundle-\$2\" --pid-file \"\$0/\$2.pid\" c\$2" "$0" "$1" "$i" &
    done
    sleep 1
    # Who comes late finds it open, too.
    for i in $(seq 3600); do [ ! -e "$0/open" ] || break; : <>"$0/gate"; sleep 0.1; done
    wait' "$work" "$runtime" >/dev/null 2>&1 3>&- 4>&- &
  within_seconds 60 all_have_locked
  touch "$work/open"
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
  # The best of four, as the kernel has other work, too.
  for try in 1 2 3 4; do
    at_once
    echo "try $try: median $(sed -n 100p "$work/waits") us, 180 below $(sed -n 180p "$work/waits") us, 198 below $(sed -n 198p "$work/waits") us"
    [ "$(sed -n 198p "$work/waits")" -ge 100000 ] || return 0
  done
  die "too long"
}
