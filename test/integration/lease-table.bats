# SPDX-License-Identifier: Apache-2.0
# A table of leases that is damaged, full or owned by another user: nothing is lent twice, and nothing hangs.

load lib.bash
load lease.bash

setup_file() { lease_host dgx-h100; }
teardown_file() { stop_host; }
setup() { lease_setup; }
teardown() { lease_teardown; }

# --- a table that is damaged ---

# refuses TEXT: nothing is lent, at once, and the message says why.
refuses() {
  status=0
  on_host timeout 60 "$ctk" lease acquire -n 1 >"$work/said" 2>&1 || status=$?
  [ "$status" = 1 ] || die "status $status: $(cat "$work/said")" || return
  grep -F -- "$1" "$work/said" || die "$(cat "$work/said")"
}

@test "damage: nothing is lent, nobody hangs, and doctor repairs" {
  lease release "$(lease acquire)"
  local file=$table/held/abcdefgh2345
  mkfifo "$file"
  refuses "$table/held/abcdefgh2345 is damaged: not a file. Run 'nvidia-ctk lease doctor' as root."
  rm "$file"
  ln -s /dev/zero "$file"
  refuses "is damaged"
  rm "$file"
  truncate -s 1G "$file"
  refuses "is damaged"
  rm "$file"
  echo '{' >"$file"
  refuses "is damaged: invalid JSON"
  rm "$file"
  lease acquire --for 1h >"$work/id"
  cp "$table/held/$(cat "$work/id")" "$file"
  refuses "is damaged: it has the id of another lease"
  rm "$file"
  mkdir "$table/held/other"
  refuses "$table/held/other is damaged: not the name of a lease"
  run -1 on_host "$ctk" lease doctor
  [[ $output == *"$table: leases are on; 1 held
error: other: not the name of a lease"* ]]
  lease list | grep "$(cat "$work/id")"
  # Not while any process of this computer has a GPU open without a lease: other tests may run.
  within_seconds 60 lease doctor --repair
  within_seconds 60 lease doctor
  [ ! -e "$table/held/other" ]
  is_held 1
  # The lock is the owner's alone, and no other file.
  rm "$table/lock"
  mkfifo -m 0600 "$table/lock"
  refuses "$table/lock must be a regular file that only its owner can use"
  rm "$table/lock"
  lease acquire >/dev/null
  chmod 0777 "$table"
  refuses "must be a directory that only uid 0 can write to"
  chmod 0755 "$table"
  flock "$table/lock" sleep 30 3>&- 4>&- &
  echo $! >>"$work/pids"
  within 5 eval '! flock --nonblock "$table/lock" true'
  refuses "has held $table/lock for 5 s"
}

@test "100,000 dead leases are no hindrance" {
  local id
  # As below /run, where the table is unless somebody says otherwise.
  mkdir -m 0755 "$table"
  on_host mount -t tmpfs -o mode=755 none "$table"
  lease acquire --for 1h >"$work/id"
  id=$(cat "$work/id")
  on_host python3 - "$table/held" "$id" "${GRAFT_LEASE_DEAD:-100000}" <<'PYTHON'
import itertools, sys
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = open(folder + "/" + name).read().replace('"boot": "', '"boot": "0')
letters = "abcdefghijklmnopqrstuvwxyz234567"
for i, word in zip(range(count), itertools.product(letters, repeat=4)):
    other = "deadlyal" + "".join(word)
    open(folder + "/" + other, "w").write(text.replace(name, other))
PYTHON
  lease list | grep "$id"
  on_host timeout 60 "$ctk" lease acquire --for 1h
  is_held 2
  [ "$(on_host find "$table/held" -type f | wc -l)" = 2 ]
  on_host umount "$table"
}

# The records of the table, as they are.
records() { on_host sh -c 'cd "$0/held" && for file in *; do echo "$file: "$(cat "$file"); done' "$table"; }

@test "a full disk refuses before it forgets: the table keeps what it held, whoever holds it, and gives it back" {
  local mine others
  make_shared
  mkdir -m 0755 "$table"
  on_host mount -t tmpfs -o size=128k,mode=755 none "$table"
  mine=$(lease acquire --for 1h)
  others=$(SUDO_UID=1000 lease acquire -n 2 --owner anna --for 1h)
  SUDO_UID=1001 on_host "$ctk" --quiet lease run -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 4
  # The table goes with its mount, and with it what the test's end would kill.
  on_host sh -c 'cat "$0"/held/*' "$table" | jq 'select(.holder.pid) | .holder.pid' >>"$work/pids"
  lease_bundle a any:1 'sleep 1000'
  create a
  is_held 5
  # The record of the container is not yet the one with its cgroup's id: who comes next would write that.
  records | grep -F '"container": "a"' >"$work/record"
  run ! grep cgroup_id "$work/record"
  on_host sh -c 'dd if=/dev/zero of="$0/filler" bs=4k 2>/dev/null; true' "$table"
  records >"$work/before"
  run -1 on_host "$ctk" lease acquire -n 2
  [[ $output == *"msg=\"table of leases: $table/held: no space left on device. Free some space: 'df -h' and 'df -i' show which file system is full.\""* ]] ||
    die "$output"
  run -126 on_host "$ctk" lease run -- true
  [[ $output == *"no space left on device"* ]] || die "$output"
  lease_bundle b any:1 'sleep 1000'
  run ! create b
  grep -F 'no space left on device' "$work/b.out"
  is_held 5
  records | diff "$work/before" -
  lease list --json | jq -c '[.leases[] | [.uid, .owner, (.slots | length)]] | sort' >"$work/holders"
  [ "$(cat "$work/holders")" = '[[0,null,1],[0,null,1],[1000,"anna",2],[1001,null,1]]' ] || die "$(cat "$work/holders")"
  # Giving back needs no room, and what lives is as it was.
  lease release "$mine"
  of_runc delete --force a
  becomes_held 3
  on_host rm "$table/filler"
  lease run -n 5 -- true
  is_held 3
  lease list | grep -F "$others  anna"
  on_host umount "$table"
}

@test "a lease that cannot get its name is not lent" {
  local error
  lease run -- true
  for error in ENOSPC EDQUOT EIO; do
    run -1 on_host strace -qq -o /dev/null -e "inject=renameat:error=$error" "$ctk" lease acquire -n 2
    [[ $output == *"msg=\"table of leases: $table/held: "* ]] || die "$output"
    [ "$(count_files)" = 0 ]
  done
  is_held 0
}

@test "a signal while one waits for the lock, or for GPUs, does not matter" {
  lease run -- true
  flock "$table/lock" sleep 0.5 3>&- 4>&- &
  sleep 0.1
  run -0 on_host strace -qq -o /dev/null -e inject=flock:error=EINTR:when=1..5 "$ctk" --quiet lease run -- true
  lease acquire -n 8 --for 1s
  run -0 on_host strace -qq -o /dev/null -e inject=poll,clock_nanosleep:error=EINTR:when=1..9 "$ctk" --quiet lease run --wait 60s -- true
}

@test "others can see the table, and cannot change it" {
  lease acquire --for 1h >/dev/null
  chmod a+rx "$work" "$BATS_FILE_TMPDIR/programs"
  chmod a+r "$config"
  run -0 on_host setpriv --reuid=65534 --regid=65534 --clear-groups "$ctk" --quiet lease list
  [[ $output == *"0    held"* ]]
  run -1 on_host setpriv --reuid=65534 --regid=65534 --clear-groups "$ctk" lease acquire
  [[ $output == *"msg=\"only root can take GPUs: this process may not change $table. Run the command with sudo.\""* ]] || die "$output"
  is_held 1
}

