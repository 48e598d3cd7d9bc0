# SPDX-License-Identifier: Apache-2.0
# Leases of GPUs that several share: slots by time slices, and by MPS with one daemon for each GPU, which is started and ended automatically.
# lane: work

load lib.bash
load lease.bash

setup_file() { lease_host quad; }
teardown_file() { stop_host; }
setup() {
  lease_setup
  configure 'shared = ["0=2", "1=3"]'
}
teardown() {
  local name
  [ ! -d "$work/runc" ] || for name in "$work"/runc/*; do
    on_host runc --root "$work/runc" delete --force "${name##*/}" 2>/dev/null || true
  done
  [ ! -e "$work/pids" ] || xargs kill -9 <"$work/pids" 2>/dev/null || true
  # What the table has was started here. With the last lease its daemons go.
  cat "$table"/held/* "$table"/queue/* 2>/dev/null | jq -r '.holder.pid // empty' | xargs -r kill -9 2>/dev/null || true
  rm -f "$table"/held/*
  within_seconds 15 no_daemon >/dev/null 2>&1 || { keepers; daemons; } | xargs -r kill -9 2>/dev/null || true
  on_host nvidia-smi -c DEFAULT >/dev/null 2>&1 || true
  on_host sh -c 'umount "$0"/mps/*/shm' "$table" 2>/dev/null || true
  test_teardown
}
# configure LINE...: of [graft.leases].
configure() {
  printf '[nvidia-container-runtime]\nruntimes = ["runc"]\n[graft.leases]\nmode = "on"\ndirectory = "%s"\n' "$table" >"$config"
  printf '%s\n' "$@" >>"$config"
}
# container NAME CLAIM [JQ-FILTER...] makes one, as an engine does it.
container() {
  local name=$1 claim=$2
  shift 2
  bundle=$work/bundle-$name
  new_bundle
  edit_bundle --arg root "$root" --arg claim "$claim" --arg group "/$group-" --arg name "$name" "$(piped '
    .process.terminal = false | .process.args = ["sleep", "1000"] | del(.process.rlimits) | .root = {path: $root, readonly: true} |
    .linux.cgroupsPath = $group + $name | .process.env += ["NVIDIA_VISIBLE_DEVICES=" + $claim]' "$@")"
  on_host "$runtime" --root "$work/runc" create --bundle "$bundle" --pid-file "$work/$name.pid" "$name" \
    </dev/null >"$work/$name.out" 2>&1 3>&- 4>&-
}
of_runc() { on_host runc --root "$work/runc" "$@"; }
# The GPUs of a container, by their nodes.
gpus_of() { on_host nsenter --target "$(cat "$work/$1.pid")" --mount sh -c 'ls /dev' | grep -x 'nvidia[0-9]*' | xargs; }
free_slots() { lease list --json | jq -c '[.gpus[] | select(.slots).free]'; }
has_free() { [ "$(free_slots)" = "$1" ]; }

@test "share: containers have slots of the same GPU, others get whole GPUs, and the last is refused" {
  make_shared
  container a share
  container b share:1
  container c 'share:1;spread'
  # The minors of this host are not in the order of its GPUs: 3, 2, 0, 1.
  [ "$(gpus_of a) $(gpus_of b) $(gpus_of c)" = "nvidia3 nvidia3 nvidia2" ]
  has_free '[0,2]'
  container d any:2
  [ "$(gpus_of d)" = "nvidia0 nvidia1" ]
  run ! container e any
  grep -E '1 GPU was asked for, 0 of 2 are free\. Held: ' "$work/e.out"
  run ! container f share:2
  grep -F '2 shared GPUs were asked for, 1 of 2 is free. Held: ' "$work/f.out"
  run ! container g 'share;mem=8G'
  grep -F 'lease: mem= and sm= have no effect on GPUs that are shared by time slicing. Leave them out, or set graft.leases.sharing to ' "$work/g.out"
  lease list | sed -E 's/[a-z2-7]{12}/ID/; s/, [0-9]+ s/, TIME/' | sort >"$work/list"
  diff "$work/list" - <<'LIST'
0    held   ID  uid 0 (container a, TIME)  sleep  slot 1
0    held   ID  uid 0 (container b, TIME)  sleep  slot 2
0    shared 0 of 2 slots free; time-sliced: no isolation
1    held   ID  uid 0 (container c, TIME)  sleep  slot 1
1    shared 2 of 3 slots free; time-sliced: no isolation
2    held   ID  uid 0 (container d, TIME)  sleep
3    held   ID  uid 0 (container d, TIME)  sleep
GPU  STATE  LEASE         HOLDER
LIST
  lease metrics >"$work/metrics"
  grep -E '^graft_lease_gpu_free_slots\{gpu="1",uuid="GPU-[0-9a-f-]{36}",sharing="time-slice"\} 2$' "$work/metrics"
  of_runc delete --force a
  within_seconds 2 has_free '[1,2]'
  run -0 lease explain share:2
  [[ $output =~ ^'GPU 0: GPU-'[0-9a-f-]{36}', slot 1'$'\n''GPU 1: GPU-'[0-9a-f-]{36}', slot 2'$ ]]
}

@test "share: 50 at once get five slots, and a lease that was taken by hand is used by several" {
  local id
  for _ in $(seq 50); do
    on_host "$ctk" lease acquire --share --for 1h >>"$work/ids" 2>>"$work/refused" 3>&- 4>&- &
  done
  wait
  [ "$(sort -u "$work/ids" | wc -l)" = 5 ]
  [ "$(grep -c '1 shared GPU was asked for, 0 of 2 are free' "$work/refused")" = 45 ]
  [ "$(cat "$table"/held/* | jq -r '.slots[] | "\(.gpu) \(.replica)"' | sort -u | wc -l)" = 5 ]
  has_free '[0,0]'
  id=$(head -n 1 "$work/ids")
  make_shared
  container a "lease:$id"
  has_free '[0,0]'
  lease release "$id"
  has_free '[0,0]'
  of_runc delete --force a
  within_seconds 2 eval 'has_free "[1,0]" || has_free "[0,1]"'
}

@test "share: who waits gets the slot that becomes free; a limit counts slots" {
  configure 'shared = ["0=2"]' 'limits = ["1000=1"]' 'pool = ["0"]'
  SUDO_UID=1000 on_host "$ctk" --quiet lease run --share -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  within_seconds 2 has_free '[1]'
  SUDO_UID=1000 run -126 on_host "$ctk" lease run --share -- true
  [[ $output == *"uid 1000 holds 1 and may hold 1 at once."* ]]
  lease acquire --share --for 1h >"$work/id"
  # shellcheck disable=SC2016
  on_host "$ctk" --quiet lease run --share --wait 30s -- sh -c 'echo "$CUDA_VISIBLE_DEVICES" >"$0.new"; mv "$0.new" "$0"' "$work/started" 3>&- 4>&- &
  within_seconds 2 eval 'lease list | grep -q "waits .* share:1"'
  [ ! -e "$work/started" ]
  lease release "$(cat "$work/id")"
  within_seconds 5 test -e "$work/started"
  grep -E '^GPU-[0-9a-f-]{36}$' "$work/started"
}

@test "share: what config.toml says and nobody can read" {
  local row
  for row in 0 0= 0=1 0=49 =2 0=2x 0=-2; do
    configure "shared = [\"$row\"]"
    run -1 on_host "$ctk" lease list
    [[ $output == *"graft.leases.shared: '$row' is neither GPU=N nor all=N, with N from 2 to 48. Run 'nvidia-ctk config'"* || $output == *"graft.leases.shared: '$row' is neither GPU=N nor all=N, with N from 2 to 48"* ]]
  done
  configure 'shared = ["all=2", "1=3"]'
  has_free '[2,3,2,2]'
  run -1 on_host "$ctk" lease acquire --share --claim share
  [[ $output == *"--share and --claim cannot be used together"* ]]
}

# --- MPS ---

mps() { configure 'shared = ["all=4"]' 'sharing = "mps"' "$@"; }
uuid_of() { lease list --json | jq -r ".gpus[$1].uuid"; }
# The processes of MPS daemons and keepers of this test.
daemons() { pgrep -f "nvidia-cuda-mps-control -d" | while read -r pid; do ! tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qF "$table" || echo "$pid"; done; }
keepers() { pgrep -f "lease mps .*GPU-" | while read -r pid; do ! tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qF "$config" || echo "$pid"; done; }
no_daemon() { [ -z "$(daemons)$(keepers)" ]; }
has_daemons() { [ "$(daemons | wc -l)" = "$1" ] && [ "$(keepers | wc -l)" = "$1" ]; }
ask_mps() { echo "$2" | on_host env CUDA_MPS_PIPE_DIRECTORY="$table/mps/$1/pipe" nvidia-cuda-mps-control; }
modes() { on_host nvidia-smi --query-gpu=compute_mode --format=csv,noheader | xargs; }

@test "MPS: one daemon for each GPU under 50 at once, and none after the last; the compute mode comes back" {
  local gpu
  mps
  gpu=$(uuid_of 0)
  for _ in $(seq 50); do
    # shellcheck disable=SC2016
    on_host "$ctk" --quiet lease run --share -- sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY" >>"$0"; while [ ! -e "$0.go" ]; do sleep 0.05; done' "$work/pipes" \
      >>"$work/refused" 2>&1 3>&- 4>&- &
  done
  within_seconds 30 eval '[ "$(wc -l <"$work/pipes" 2>/dev/null)" = 16 ]'
  within_seconds 30 eval '[ "$(grep -c "1 shared GPU was asked for, 0 of 4 are free" "$work/refused")" = 34 ]'
  has_daemons 4 || die "$(pgrep -af mps)"
  [ "$(sort "$work/pipes" | uniq -c | awk '{ print $1 }' | xargs)" = "4 4 4 4" ]
  [ "$(grep -c 'Start, process' "$table/mps/$gpu/log/control.log")" = 1 ]
  [ "$(ask_mps "$gpu" get_default_active_thread_percentage)" = 25.0 ]
  [ "$(ask_mps "$gpu" 'get_default_device_pinned_mem_limit 0')" = 5757M ]
  [ "$(modes)" = "Exclusive_Process Exclusive_Process Exclusive_Process Exclusive_Process" ]
  touch "$work/pipes.go"
  within_seconds 20 no_daemon
  wait
  [ "$(modes)" = "Default Default Default Default" ]
  run ! grep -F "$table" /proc/self/mountinfo
  run ! on_host grep -F "$table" /proc/self/mountinfo
}

# The environment of a container's process, as config.json has it.
env_of() { jq -r '.process.env[]' "$work/bundle-$1/config.json" | grep '^CUDA_MPS_'; }

@test "MPS: pipes, shared memory and limits arrive in the container; more than a slot's part is refused" {
  local gpu
  make_shared
  mps
  gpu=$(uuid_of 0)
  container a 'share;mem=2G;sm=10' '.mounts += [{destination: "/dev/shm", type: "tmpfs", source: "shm", options: ["nosuid", "size=65536k"]}]'
  [ "$(env_of a | sort | xargs)" = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=10 CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps" ]
  on_host nsenter --target "$(cat "$work/a.pid")" --mount sh -c 'test -S /tmp/nvidia-mps/control && stat -f -c %b /dev/shm' >"$work/shm"
  [ "$(cat "$work/shm")" = "$(on_host stat -f -c %b "$table/mps/$gpu/shm")" ]
  has_daemons 1
  # Nobody goes past the daemon, and whoever goes through it has 2 GiB.
  run on_host "$build/test/sim/cuda-client"
  [[ $output != *"through MPS"* ]]
  # One that was given a /dev/shm keeps it.
  container b share '.mounts += [{destination: "/dev/shm", type: "tmpfs", source: "shm", options: ["nosuid", "size=1g"]}]'
  [ "$(on_host nsenter --target "$(cat "$work/b.pid")" --mount stat -f -c %b /dev/shm)" = "$(((1 << 30) / $(getconf PAGESIZE)))" ]
  run ! container c 'share;mem=20G'
  grep -F "mem= and sm= cannot exceed a slot's share of the GPU. Leave them out to get the whole share; 'nvidia-ctk lease list' shows the slots." "$work/c.out"
  run ! container d share:2
  grep -F 'a program can use one GPU that is shared by MPS, not 2. Ask for ' "$work/d.out"
  lease list | grep -E '^0    shared 2 of 4 slots free; MPS: a fatal fault of one program ends all of them$'
  # What is taken by hand has limits as well, wherever it is used.
  lease acquire --claim 'share;sm=5' --for 1h >"$work/id"
  container e "lease:$(cat "$work/id")"
  env_of e | grep -x CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=5
  lease release "$(cat "$work/id")"
  of_runc delete --force a
  of_runc delete --force b
  of_runc delete --force e
  within_seconds 20 no_daemon
}

# The image has a link where a directory of MPS is mounted, or one to there.
@test "MPS: nothing is made in the directories of its daemon, by whatever way the image leads there" {
  local at to before
  make_shared
  mps
  # A lease that keeps the daemon.
  lease acquire --share --for 1h >"$work/id"
  before=$(ls -AR "$table/mps/$(uuid_of 0)"/{pipe,shm})
  while read -r at to; do
    ! on_host mountpoint -q "$root" || on_host umount "$root"
    rm -rf "${root:?}" "$work/bundle-a"
    make_root small copy
    rm -rf "${root:?}$at"
    mkdir -p "$root$(dirname "$at")"
    ln -s "$to" "$root$at"
    run container a 'share' '.root.readonly = false'
    [[ $status -eq 0 || $(cat "$work/a.out") == *@("/tmp/nvidia-mps to a place that must not be covered"|"in a directory of the host, to mount over"|"/dev of the image is a link")* ]] ||
      die "$at -> $to: $(cat "$work/a.out")"
    of_runc delete --force a 2>/dev/null || true
    diff <(echo "$before") <(ls -AR "$table/mps/$(uuid_of 0)"/{pipe,shm}) || die "$at -> $to"
  done <<LINKS
/tmp/nvidia-mps /dev
/tmp/nvidia-mps /usr/lib/x86_64-linux-gnu
/usr/bin ../tmp/nvidia-mps
/usr/bin/nvidia-smi /dev/shm/chosen
/dev tmp/nvidia-mps
LINKS
}

@test "MPS: another user is refused with the reason, and gets another GPU, or waits" {
  make_shared
  configure 'shared = ["0=4"]' 'pool = ["0"]' 'sharing = "mps"'
  on_host "$ctk" --quiet lease run --share --user nobody -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  within_seconds 10 has_free '[3]'
  run -126 on_host "$ctk" lease run --share -- true
  [[ $output == *"GPU 0 has free slots, but is used by programs of uid 65534, and MPS serves one user at a time, not uid 0 as well. Wait until they have ended, or run the programs as the same user."* ]]
  run ! container a share
  grep -F 'GPU 0 has free slots, but is used by programs of uid 65534, and MPS serves one user at a time, not uid 0 as well.' "$work/a.out"
  # The container's user counts, as the host sees it.
  container b share '.process.user = {uid: 65534, gid: 65534}'
  has_free '[2]'
  run ! container c share '.process.user = {uid: 1000, gid: 1000}'
  grep -F 'not uid 1000 as well' "$work/c.out"
  on_host "$ctk" --quiet lease run --share --wait 60s -- touch "$work/started" 3>&- 4>&- &
  within_seconds 5 eval 'lease list | grep -q waits'
  of_runc delete --force b
  [ ! -e "$work/started" ]
  lease list --json | jq '.leases[].holder.pid' | xargs kill
  within_seconds 20 test -e "$work/started"
  within_seconds 20 no_daemon
}

@test "MPS: kill -9 of the daemon, of the keeper, and of both; doctor ends what nobody uses" {
  local gpu
  mps
  gpu=$(uuid_of 0)
  lease acquire --share --for 1h >"$work/id"
  has_daemons 1
  # Other users, who cannot see whether there is a keeper, are not told that there is none.
  chmod a+rx "$work" "$BATS_FILE_TMPDIR/programs"
  chmod a+r "$config"
  run -0 on_host setpriv --reuid=65534 --regid=65534 --clear-groups "$ctk" --quiet lease doctor
  [[ $output == "$table: leases are on; 1 held"* && $output != *supervises* ]] || die "$output"
  kill -9 "$(daemons)"
  within_seconds 10 eval 'has_daemons 1 && ask_mps "$gpu" get_default_active_thread_percentage | grep -x 25.0'
  # One that ends again and again is started less and less often.
  kill -9 "$(daemons)"
  within_seconds 20 eval 'has_daemons 1 && ask_mps "$gpu" get_default_active_thread_percentage | grep -x 25.0'
  [ "$(sed -n 's/.*starting it again; the next restart is at least \([0-9]*\) s away.*/\1/p' "$table/mps/$gpu/supervisor.log" | xargs)" = "1 2" ] ||
    die "$(cat "$table/mps/$gpu/supervisor.log")"
  # The daemon outlives its keeper, and the next lease finds it.
  kill -9 "$(keepers)"
  within_seconds 5 eval '[ -z "$(keepers)" ]'
  daemons >"$work/daemon"
  # Programs that share the GPU can write which process it is, and have one of its name.
  cp "$(command -v sleep)" "$work/nvidia-cuda-mps-control"
  "$work/nvidia-cuda-mps-control" 1000 3>&- 4>&- &
  echo $! | tee -a "$work/pids" >"$table/mps/$gpu/pipe/nvidia-cuda-mps-control.pid"
  run -0 lease doctor
  [[ $output == *"warning: $gpu: no process supervises MPS: nothing would end it and reset the compute mode"* ]]
  lease run --share -- true
  has_daemons 1
  [ "$(daemons)" = "$(cat "$work/daemon")" ]
  # Nobody is left who would end it.
  kill -9 "$(keepers)"
  within_seconds 5 eval '[ -z "$(keepers)" ]'
  lease release "$(cat "$work/id")"
  [ "$(daemons)" = "$(cat "$work/daemon")" ]
  [[ $(modes) == Exclusive_Process* ]]
  lease doctor --repair
  within_seconds 20 no_daemon
  kill -0 "$(cat "$table/mps/$gpu/pipe/nvidia-cuda-mps-control.pid" 2>/dev/null || tail -n 1 "$work/pids")"
  [ "$(modes)" = "Default Default Default Default" ]
  # After both.
  lease acquire --share --for 1h >"$work/id"
  kill -9 "$(keepers)" "$(daemons)"
  within_seconds 5 no_daemon
  lease run --share -- true
  has_daemons 1 || die "keepers: $(keepers), daemons: $(daemons); $(cat "$table/mps/$gpu/supervisor.log")"
  lease release "$(cat "$work/id")"
  within_seconds 20 no_daemon
}

# hangs: from now on the daemon does not answer; whoever asks it is in $work/pids. keeper_dies: at that point.
hangs() { on_host mount --bind "$work/hang" /usr/bin/nvidia-cuda-mps-control; }
answers() { on_host umount /usr/bin/nvidia-cuda-mps-control; }
keeper_dies() {
  within_seconds 10 eval '[[ $(modes) == Exclusive_Process* && -n $(keepers) ]]' || die "$(modes)" || return
  kill -9 "$(keepers)"
  within_seconds 5 eval '[ -z "$(keepers)" ]'
}

@test "MPS: a keeper is killed while it starts: another one starts, or doctor resets the compute mode" {
  local gpu
  mps
  gpu=$(uuid_of 0)
  printf '#!/bin/sh\necho $$ >>"%s"\nexec sleep 60\n' "$work/pids" >"$work/hang"
  chmod 0755 "$work/hang"
  hangs
  lease acquire --share --for 1h >"$work/id" 2>&1 3>&- 4>&- &
  keeper_dies
  answers
  wait $! || die "$(cat "$work/id")"
  has_daemons 1
  lease release "$(cat "$work/id")"
  within_seconds 20 no_daemon
  [ "$(modes)" = "Default Default Default Default" ]
  # The second one, too.
  hangs
  lease acquire --share --for 1h >"$work/said" 2>&1 3>&- 4>&- &
  keeper_dies
  keeper_dies
  ! wait $! || die "$(cat "$work/said")" || return
  [[ $(cat "$work/said") == *"$gpu cannot be shared: MPS is not ready after 5 s"* ]] || die "$(cat "$work/said")"
  answers
  [[ $(modes) == Exclusive_Process* ]]
  [ "$(count_held)" = 0 ]
  run -0 lease doctor
  [[ $output == *"warning: $gpu: no process supervises MPS: nothing would end it and reset the compute mode"* ]] || die "$output"
  lease doctor --repair
  within_seconds 20 no_daemon
  [ "$(modes)" = "Default Default Default Default" ]
  run -0 lease doctor
  [[ $output != *supervises* ]] || die "$output"
}

@test "MPS: a driver without it, one that fails, and a compute mode that is left alone" {
  mps
  on_host mount --bind /bin/false /usr/bin/nvidia-cuda-mps-control
  run -1 on_host "$ctk" lease acquire --share
  [[ $output =~ "GPU-"[0-9a-f-]{36}" cannot be shared: MPS cannot be started: nvidia-cuda-mps-control failed with exit status 1: (no output)." ]]
  on_host umount /usr/bin/nvidia-cuda-mps-control
  [ "$(count_held)" = 0 ]
  [ "$(modes)" = "Default Default Default Default" ]
  # Nothing is left to end.
  run -0 lease doctor
  [[ $output != *supervises* ]] || die "$output"
  mps 'mps-exclusive = false'
  lease acquire --share --for 1h >"$work/id"
  [ "$(modes)" = "Default Default Default Default" ]
  lease release "$(cat "$work/id")"
  within_seconds 20 no_daemon
}
@test "MPS: the driver's programs are found where Container-Optimized OS has them" {
  mps
  # What cannot be executed is no program.
  install -m 644 /dev/null "$work/nothing"
  on_host sh -c 'mount -t tmpfs -o mode=755 none /usr/local && mkdir -p /usr/local/nvidia/bin && cp /usr/bin/nvidia-cuda-mps-control /usr/local/nvidia/bin && mount --bind "$0" /usr/bin/nvidia-cuda-mps-control' "$work/nothing"
  lease acquire --share --for 1h >"$work/id" || { on_host umount /usr/bin/nvidia-cuda-mps-control /usr/local; false; }
  on_host umount /usr/bin/nvidia-cuda-mps-control
  [ "$(tr '\0' ' ' <"/proc/$(daemons)/cmdline")" = "/usr/local/nvidia/bin/nvidia-cuda-mps-control -d " ]
  on_host umount --lazy /usr/local
  lease release "$(cat "$work/id")"
  within_seconds 20 no_daemon
}
count_held() { lease list --json | jq '.leases | length'; }

# bats test_tags=old-kernel
@test "MPS by the hook: docker run --gpus device=share gets pipes and shared memory, and limits are refused there" {
  make_shared
  mps
  # Late mounts need the shared memory in the container's view of the host, where it does not come later: mounts of the simulated host are private.
  [ "${GRAFT_ENOSYS:-0}" = 0 ] || lease acquire --share --for 1h >"$work/id"
  export PATH=$BATS_FILE_TMPDIR/bin:$PATH
  hooks=".hooks = {prestart: [{path: \"$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook\", args: [\"hook\", \"prestart\"],
    env: [\"NVIDIA_CTK_CONFIG_FILE_PATH=$config\", \"PATH=/usr/sbin:/usr/bin:/sbin:/bin\"]}]}"
  real_runtime=$runtime
  runtime=runc container a share "$hooks" || die "$(cat "$work/a.out")"
  on_host nsenter --target "$(cat "$work/a.pid")" --mount sh -c 'test -S /tmp/nvidia-mps/control && stat -f -c %b /dev/shm' >"$work/shm"
  [ "$(cat "$work/shm")" = "$(on_host stat -f -c %b "$table/mps/$(uuid_of 0)/shm")" ]
  runtime=runc run ! container b 'share;sm=10' "$hooks"
  grep -F "mem= and sm= are variables, which a hook cannot give a container; Use nvidia-container-runtime ('docker run --runtime=nvidia'), or leave them out." "$work/b.out" || die "$(cat "$work/b.out")"
  runtime=$real_runtime
  of_runc delete --force a
  [ ! -e "$work/id" ] || lease release "$(cat "$work/id")"
  within_seconds 20 no_daemon
}

renewed() { tr "\0" " " <"/proc/$keeper/cmdline" | grep -q "lease mps --lock="; }

@test "MPS: a keeper that has looked often starts itself anew, and keeps lock, daemon and little memory" {
  local keeper daemon
  mps 'mps-exclusive = false'
  lease acquire --share --for 1h >"$work/id"
  keeper=$(keepers) daemon=$(daemons)
  # Each changes the table twice; a keeper that is slow sees several changes as one.
  for _ in 1 2 3 4 5 6; do
    on_host sh -c 'for i in $(seq 300); do "$0" --quiet lease run --share -- true || exit; done' "$ctk"
    if renewed; then break; fi
  done
  renewed
  [ "$(keepers) $(daemons)" = "$keeper $daemon" ]
  [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$keeper/status")" -lt 4000 ]
  lease run --share -- true
  lease release "$(cat "$work/id")"
  within_seconds 20 no_daemon
}

# --- enforce ---

@test "enforce: who names GPUs holds them, conflicts are refused, and what is not lent is free" {
  make_shared
  configure 'shared = ["1=2"]' 'pool = ["0", "1", "2"]'
  sed -i 's/"on"/"enforce"/' "$config"
  container a 0
  [ "$(gpus_of a)" = nvidia3 ]
  [ "$(lease list --json | jq -r '.leases[] | .claim, .holder.container' | xargs)" = "named:0 a" ]
  run ! container b 0
  grep -E 'lease: 1 GPU was asked for, 0 of 1 are free\. Held: GPU 0 by uid 0 \(container a, [0-9]+ s\)\. See .nvidia-ctk lease list.\.' "$work/b.out"
  run ! container b all
  grep -F 'lease: 3 GPUs were asked for, 2 of 3 are free. Held: GPU 0 by uid 0 (container a, ' "$work/b.out"
  # By its UUID, as a CDI device of this runtime, and one that is not in the pool.
  container c "$(uuid_of 2)"
  run ! container d "runtime.nvidia.com/gpu=2"
  grep -E 'lease: 1 GPU was asked for, 0 of 1 are free\. Held: .*GPU 2 by uid 0 \(container c, ' "$work/d.out"
  container e 3
  container f 3
  [ "$(gpus_of e) $(gpus_of f)" = "nvidia1 nvidia1" ]
  # Of a shared GPU, a slot.
  container g 1
  container h 1
  run ! container i 1
  [ "$(lease list --json | jq '.leases | length')" = 4 ]
  run ! container j any
  grep -F '1 GPU was asked for, 0 of 2 are free. Held: ' "$work/j.out"
  # Who waits gets it; an unknown name is an unknown device as ever, and nothing is held for it.
  container k 0 '.process.env += ["NVIDIA_LEASE_WAIT=60s"]' &
  within_seconds 5 eval 'lease list | grep -q waits'
  of_runc delete --force a
  wait $!
  [ "$(gpus_of k)" = nvidia3 ]
  run ! container l 9
  grep -F '9: unknown device' "$work/l.out"
  container m none
  [ "$(lease list --json | jq '.leases | length')" = 4 ]
  run ! container n named:3
  grep -F "lease: this host lends no GPU of that name. Run 'nvidia-ctk lease list' to see what this host has." "$work/n.out"
}

# refused NAME WORD MESSAGE: a container that asks for WORD is refused, with this message.
refused() {
  run ! container "$1" "$2"
  sed -E 's/, [0-9]+ s\)/, N s)/' "$work/$1.out" | grep -F "msg=\"$3\"" || die "$2: $(cat "$work/$1.out")"
}

@test "enforce: no other way to write a name gives a GPU that is held" {
  local word uuid bus n=0 held
  make_shared
  configure
  sed -i 's/"on"/"enforce"/' "$config"
  uuid=$(uuid_of 0)
  bus=$(on_host nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i 0)
  container a 0
  [ "$(gpus_of a)" = nvidia3 ]
  held="are free. Held: GPU 0 by uid 0 (container a, N s). See 'nvidia-ctk lease list'."
  for word in 0 +0 00 "$bus" "${bus%.*}" "${bus,,}" "$uuid" "gpu-${uuid#GPU-}" "GPU-$(tr a-f A-F <<<"${uuid#GPU-}")" "runtime.nvidia.com/gpu=$bus"; do
    refused "b$((++n))" "$word" "lease: 1 GPU was asked for, 0 of 1 $held"
  done
  for word in ALL All runtime.nvidia.com/gpu=ALL; do
    refused "b$((++n))" "$word" "lease: 4 GPUs were asked for, 3 of 4 $held"
  done
  # What cannot be read is refused too, rather than left to selection.
  for word in "$bus=x" "${bus%.*}/gpu=1" runtime.nvidia.com/gpu=+0; do
    refused "b$((++n))" "$word" "lease: '$word': not the name of a GPU. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', with constraints after it: 'any:2;model=H100'."
  done
  refused c 1,9 "lease: 9: unknown device. Run 'nvidia-ctk lease list' to see what this host has."
  [ "$(lease list --json | jq -r '.leases[].claim')" = named:0 ]
  # A free GPU by such a name is held like any other.
  container f +1
  [ "$(gpus_of f) $(lease list --json | jq -r '.leases[].claim' | sort | xargs)" = "nvidia2 named:0 named:1" ]
}

@test "enforce: names of CDI devices, of every strategy and class, hold GPUs as well" {
  local word n=0 held
  make_shared
  configure
  sed -i 's/"on"/"enforce"/; s|^runtimes.*|&\nmode = "cdi"\nmodes.cdi.spec-dirs = ["'"$work/cdi"'"]\nmodes.cdi.allowed-envvar-kinds = ["*"]|' "$config"
  mkdir -p "$work/cdi"
  for word in nvidia.com/gpu nvidia.com/gpu.coherent nvidia.com/mig management.nvidia.com/gpu; do
    on_host "$ctk" --quiet cdi generate --device-name-strategy index --device-name-strategy uuid --device-name-strategy type-index \
      --nvidia-cdi-hook-path "$BATS_FILE_TMPDIR/programs/nvidia-cdi-hook" --vendor "${word%/*}" --class "${word#*/}" --output "$work/cdi/$((++n)).yaml"
  done
  container a nvidia.com/gpu=gpu0 || die "$(cat "$work/a.out")"
  [ "$(gpus_of a) $(lease list --json | jq -r '.leases[].claim')" = "nvidia3 named:0" ]
  held="are free. Held: GPU 0 by uid 0 (container a, N s). See 'nvidia-ctk lease list'."
  for word in nvidia.com/gpu=0 nvidia.com/gpu=gpu0 "nvidia.com/gpu=$(uuid_of 0)" gpu0 nvidia.com/gpu.coherent=gpu0 nvidia.com/mig=0; do
    refused "b$((++n))" "$word" "lease: 1 GPU was asked for, 0 of 1 $held"
  done
  for word in nvidia.com/gpu=all management.nvidia.com/gpu=all nvidia.com/gpu.coherent=all; do
    refused "b$((++n))" "$word" "lease: 4 GPUs were asked for, 3 of 4 $held"
  done
  sed -i 's/name: gpu0$/name: card0/' "$work/cdi/1.yaml"
  refused c nvidia.com/gpu=card0 "lease: card0: unknown device. Run 'nvidia-ctk lease list' to see what this host has."
  [ "$(lease list --json | jq -r '.leases[].claim')" = named:0 ]
}

@test "enforce by the hook: docker run --gpus device=0" {
  make_shared
  configure
  sed -i 's/"on"/"enforce"/' "$config"
  export PATH=$BATS_FILE_TMPDIR/bin:$PATH
  hooks=".hooks = {prestart: [{path: \"$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook\", args: [\"hook\", \"prestart\"],
    env: [\"NVIDIA_CTK_CONFIG_FILE_PATH=$config\", \"PATH=/usr/sbin:/usr/bin:/sbin:/bin\"]}]}"
  runtime=runc
  container a 0,1 "$hooks" || die "$(cat "$work/a.out")"
  [ "$(lease list --json | jq -r '.leases[].claim')" = "named:0;1" ]
  run ! container b 1 "$hooks"
  grep -F 'lease: 1 GPU was asked for, 0 of 1 are free; Held: GPU 0, 1 by uid 0 (container ' "$work/b.out" || die "$(cat "$work/b.out")"
  run ! container e 00 "$hooks"
  grep -F 'lease: 1 GPU was asked for, 0 of 1 are free; Held: GPU 0, 1 by uid 0 (container ' "$work/e.out" || die "$(cat "$work/e.out")"
  run ! container f 9 "$hooks"
  grep -F "device error: lease: 9: unknown device; Run 'nvidia-ctk lease list' to see what this host has." "$work/f.out" || die "$(cat "$work/f.out")"
  container c 2 "$hooks"
  of_runc delete --force a
  container d 1 "$hooks"
}
