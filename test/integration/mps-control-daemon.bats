# SPDX-License-Identifier: Apache-2.0
# mps-control-daemon: one MPS daemon for each resource that sharing.mps of the device plugin's config file shares; on a simulated host.

load lib.bash
load lease.bash

setup_file() {
  [ -x "$build/src/daemon/mps-control-daemon" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler, libcurl4-openssl-dev)"
  lease_host quad
}
teardown_file() { stop_host; }
setup() {
  test_setup
  program=$build/src/daemon/mps-control-daemon
  mps=$work/mps log=$work/log out=$work/out config=$work/config.yaml gpu=nvidia.com/gpu
  export MPS_ROOT=$mps CONFIG_FILE=$config
  share '{name: gpu, replicas: 4}'
}
teardown() {
  [ ! -d "$work/runc" ] || on_host runc --root "$work/runc" delete --force c 2>/dev/null || true
  stop || true
  [ ! -e "$work/server.pid" ] || kill "$(cat "$work/server.pid")" 2>/dev/null || true
  daemons | xargs -r kill -9
  on_host nvidia-smi -c DEFAULT >/dev/null 2>&1 || true
  on_host umount "$mps/shm" 2>/dev/null || true
  test_teardown
}

# share RESOURCE...: the config file.
share() {
  printf 'version: v1\nsharing:\n  mps:\n    resources:\n' >"$config.new"
  printf '    - %s\n' "$@" >>"$config.new"
  mv "$config.new" "$config"
}
start() {
  local host
  read -r host <"$BATS_FILE_TMPDIR/host.pid"
  # As on_host, without a shell that would get the signals.
  nsenter --mount="/proc/$host/ns/mnt" --wdns="$PWD" -- env PATH="$BATS_FILE_TMPDIR/bin:$PATH" "$program" "$@" >>"$out" 2>>"$log" 3>&- 4>&- &
  echo $! >"$work/pid"
}
# Ends the program, and waits for it; its exit status.
stop() {
  local pid status=0
  [ -e "$work/pid" ] || return 0
  pid=$(cat "$work/pid")
  rm "$work/pid"
  kill "$pid" 2>/dev/null || true
  wait "$pid" || status=$?
  return "$status"
}
logged() { grep -qF -- "$1" "$log"; }
daemons() { pgrep -f "nvidia-cuda-mps-control -d" | while read -r pid; do ! tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qF "$mps" || echo "$pid"; done; }
has_started() { [ -e "$mps/${1:-$gpu}/.started" ]; }
ask() { echo "$2" | on_host env CUDA_MPS_PIPE_DIRECTORY="$mps/$1/pipe" nvidia-cuda-mps-control; }
modes() { on_host nvidia-smi --query-gpu=compute_mode --format=csv,noheader | sed 's/Exclusive_Process/exclusive/; s/Default/default/' | xargs; }
pid_of() { cat "$mps/$1/pipe/nvidia-cuda-mps-control.pid"; }

@test "a daemon for the resource: limits, compute mode, shared memory, ready file, log; all gone after SIGTERM" {
  local half
  start
  within has_started
  [ "$(daemons)" = "$(pid_of "$gpu")" ]
  [ "$(ask "$gpu" get_default_active_thread_percentage)" = 25.0 ]
  for i in 0 1 2 3; do [ "$(ask "$gpu" "get_default_device_pinned_mem_limit $i")" = 5757M ]; done
  [ "$(modes)" = "exclusive exclusive exclusive exclusive" ]
  [ "$(tr '\0' '\n' <"/proc/$(pid_of "$gpu")/environ" | sed -n 's/CUDA_VISIBLE_DEVICES=//p')" = "$(on_host nvidia-smi --query-gpu=uuid --format=csv,noheader | paste -sd,)" ]
  [ "$(stat -c %a "$mps/$gpu/pipe" "$mps/$gpu/log" | xargs)" = "755 755" ]
  half=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo) / 2))
  # In whole pages.
  [[ $(on_host findmnt -no FSTYPE,OPTIONS "$mps/shm") =~ ^tmpfs\ +rw,nosuid,nodev,noexec,relatime,size=([0-9]+)k ]]
  [ $((half - BASH_REMATCH[1])) -ge 0 ] && [ $((half - BASH_REMATCH[1])) -lt 64 ]
  # The daemon's /dev/shm is that one; the host's stays.
  [ "$(on_host nsenter --target "$(pid_of "$gpu")" --mount stat -c %d /dev/shm)" = "$(on_host stat -c %d "$mps/shm")" ]
  [ "$(on_host stat -c %d /dev/shm)" != "$(on_host stat -c %d "$mps/shm")" ]
  # What it writes to its log later is copied, too.
  within grep -qE '^\[Graft\] Start, process [0-9]+$' "$out"
  ask "$gpu" "start_server -uid 65534"
  within grep -qxF '[Graft] Starting new server for user 65534' "$out"
  stop
  within eval '[ -z "$(daemons)" ]'
  [ "$(modes)" = "default default default default" ]
  [ "$(cd "$mps" && find . -type f | sort | xargs)" = "./$gpu/pipe/control_lock" ]
  [ ! -e "$mps/$gpu/log" ]
  run ! on_host findmnt "$mps/shm"
  within grep -qE '^\[Graft\] Exit, process [0-9]+$' "$out"
  [ "$(sed -En '/mps_daemon|program\.c/{s/^[IW]([0-9]+) [0-9:.]+ +[0-9]+ [a-z_.]+:[0-9]+\] //; s/process [0-9]+/process N/; p}' "$log")" = "mounted a tmpfs at $mps/shm
$gpu: MPS daemon started, process N, for 4 GPUs; each program gets 25% of one
exiting on signal 15
$gpu: MPS daemon ended" ] || { cat "$log"; false; }
}

@test "mount-shm: the tmpfs that an init container makes is used, and left; without rights it fails" {
  on_host "$program" mount-shm 2>>"$log"
  on_host "$program" --config-file=/nowhere mount-shm 2>>"$log"
  [ "$(on_host grep -c " $mps/shm " /proc/self/mountinfo)" = 1 ]
  start
  within has_started
  stop
  [ "$(on_host grep -c " $mps/shm " /proc/self/mountinfo)" = 1 ]
  on_host umount "$mps/shm"
  run -1 on_host setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$program" mount-shm
  [[ $output == "mps-control-daemon: cannot mount a tmpfs at $mps/shm: operation not permitted"$'\n'* ]] || die "$output"
  # In a container the directory is at /mps.
  on_host unshare --mount sh -c 'mount -t tmpfs none /mnt && mkdir -p /mnt/upper /mnt/work && mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work none /srv &&
    mkdir /srv/mps && chroot /srv "$0" mount-shm 2>&1; ls /srv/mps' "$program" >"$work/in-container"
  grep -F "mounted a tmpfs at /mps/shm" "$work/in-container"
}

@test "a daemon for each resource, and SIGHUP restarts only what has changed" {
  local quarter half
  share '{name: gpu, replicas: 4, devices: [0, 1], rename: gpu.quarter}' '{name: gpu, replicas: 2, devices: [2], rename: gpu.half}'
  start
  within has_started nvidia.com/gpu.half
  quarter=$(pid_of nvidia.com/gpu.quarter) half=$(pid_of nvidia.com/gpu.half)
  [ "$(daemons | wc -l)" = 2 ]
  [ "$(ask nvidia.com/gpu.quarter get_default_active_thread_percentage) $(ask nvidia.com/gpu.half get_default_active_thread_percentage)" = "25.0 50.0" ]
  [ "$(ask nvidia.com/gpu.half 'get_default_device_pinned_mem_limit 0')" = 11514M ]
  [ "$(modes)" = "exclusive exclusive exclusive default" ]
  # Of the file, what concerns others changes nothing; a file that is wrong, neither.
  sed -i '1a flags: {plugin: {passDeviceSpecs: true}}' "$config"
  kill -HUP "$(cat "$work/pid")"
  share '{name: gpu, replicas: 1}'
  kill -HUP "$(cat "$work/pid")"
  within logged "trying again in 5 s"
  [ "$(pid_of nvidia.com/gpu.quarter) $(pid_of nvidia.com/gpu.half)" = "$quarter $half" ] || die "$(cat "$log")"
  # Another GPU, other limits, no resource any more, a new one.
  share '{name: gpu, replicas: 4, devices: [0, 1], rename: gpu.quarter}' '{name: gpu, replicas: 3, devices: [2], rename: gpu.half}'
  kill -HUP "$(cat "$work/pid")"
  within eval '[ "$(ask nvidia.com/gpu.half get_default_active_thread_percentage)" = 33.0 ]'
  [ "$(pid_of nvidia.com/gpu.quarter)" = "$quarter" ] && [ "$(pid_of nvidia.com/gpu.half)" != "$half" ]
  share '{name: gpu, replicas: 8, devices: [0, 3]}'
  kill -HUP "$(cat "$work/pid")"
  within has_started
  [ "$(daemons)" = "$(pid_of "$gpu")" ]
  [ "$(modes)" = "exclusive default default exclusive" ]
  ! has_started nvidia.com/gpu.quarter && ! has_started nvidia.com/gpu.half
  # None at all.
  echo 'version: v1' >"$config"
  kill -HUP "$(cat "$work/pid")"
  within logged "no resource is shared by MPS: waiting for another configuration"
  [ "$(modes)" = "default default default default" ] && [ -z "$(daemons)" ]
  stop
}

@test "kill -9 of the daemon: it is started again; of the program: the next one goes on, or ends what is not wanted" {
  local pid
  start
  within has_started
  pid=$(pid_of "$gpu")
  kill -9 "$pid"
  within logged "$gpu: the MPS daemon, process $pid, has ended, and so have its programs"
  within logged "starting it again in 1 s"
  within eval '[ -n "$(daemons)" ] && has_started && [ "$(pid_of "$gpu")" != "$pid" ]'
  [ "$(ask "$gpu" get_default_active_thread_percentage)" = 25.0 ]
  pid=$(pid_of "$gpu")
  kill -9 "$(cat "$work/pid")"
  stop || true
  [ "$(daemons)" = "$pid" ]
  start
  within logged "$gpu: MPS daemon found running, process $pid"
  [ "$(daemons)" = "$pid" ]
  # It is watched as one that was started here. One that ends again and again is started less and less often.
  kill -9 "$pid"
  within logged "starting it again in 1 s"
  within eval '[ "$(daemons)" != "$pid" ] && [ -n "$(daemons)" ] && has_started'
  pid=$(daemons)
  kill -9 "$pid"
  within logged "starting it again in 2 s"
  within eval '[ "$(daemons)" != "$pid" ] && [ -n "$(daemons)" ] && has_started'
  pid=$(pid_of "$gpu")
  kill -9 "$(cat "$work/pid")"
  stop || true
  share '{name: gpu, replicas: 2, devices: [1]}'
  start
  within eval '[ "$(modes)" = "default exclusive default default" ]'
  within has_started
  [ "$(ask "$gpu" get_default_active_thread_percentage)" = 50.0 ] && [ "$(daemons)" = "$(pid_of "$gpu")" ] && [ "$(daemons)" != "$pid" ]
  # After both, with a process id that is somebody else's now.
  kill -9 "$(cat "$work/pid")" "$(pid_of "$gpu")"
  stop || true
  sleep 1000 3>&- 4>&- &
  pid=$!
  echo $pid >"$mps/$gpu/pipe/nvidia-cuda-mps-control.pid"
  echo '{"resource": "nvidia.com/other", "gpus": [], "percent": 1}' >"$mps/$gpu/.daemon.old"
  share '{name: gpu, replicas: 2, devices: [2]}'
  # That of the one before does not say that this one is ready.
  rm "$mps/$gpu/.started"
  start
  within has_started
  kill -0 "$pid"
  kill "$pid"
  stop
}

@test "files that were left there and cannot be read are nobody's daemons" {
  local text
  mkdir -p "$mps/$gpu" "$mps/nvidia.com/gone"
  for text in '' '{' '[]' '{"resource": "../../etc", "gpus": [], "percent": 1}' '{"resource": "nvidia.com/gpu"}' '{"resource": "nvidia.com/gpu", "gpus": 1, "percent": 1}' \
    '{"resource": "nvidia.com/gpu", "gpus": [{"uuid": "GPU-0"}], "percent": 1}'; do
    printf '%s' "$text" >"$mps/$gpu/.daemon"
    printf '%s' "$text" >"$mps/nvidia.com/gone/.daemon"
    start
    within has_started
    [ "$(jq -r .percent "$mps/$gpu/.daemon")" = 25 ]
    [ "$(cat "$mps/nvidia.com/gone/.daemon")" = "$text" ]
    stop
    rm "$mps/nvidia.com/gone/.daemon"
  done
}

# refused CONFIGURATION MESSAGE
refused() {
  share "$1"
  run -1 on_host "$program" "${@:3}"
  [ "$(grep '^mps-control-daemon: ' <<<"$output")" = "mps-control-daemon: $2" ] || { echo "$output"; return 1; }
  [ -z "$(daemons)" ] && [ "$(modes)" = "default default default default" ]
}

@test "what MPS cannot share is refused; without fail-on-init-error it is tried again" {
  refused '{name: gpu, replicas: 49}' "$gpu: MPS serves at most 48 programs on GPU 0, but 49 replicas are configured"
  refused '{name: gpu, replicas: 4}' "using --mig-strategy=mixed is not supported with MPS" --mig-strategy=mixed
  on_host mount --bind /bin/false /usr/bin/nvidia-cuda-mps-control
  refused '{name: gpu, replicas: 4}' "$gpu: MPS cannot be started: nvidia-cuda-mps-control failed with exit status 1: (no output)"
  FAIL_ON_INIT_ERROR=false start
  within logged "$gpu: MPS cannot be started: nvidia-cuda-mps-control failed with exit status 1: (no output); trying again in 5 s"
  on_host umount /usr/bin/nvidia-cuda-mps-control
  kill -HUP "$(cat "$work/pid")"
  within has_started
  stop
}

@test "a second program in the same directory is refused, and takes nothing from the first one" {
  local pid
  # Any user can lock a directory that he can read.
  mkdir -p "$mps"
  flock --no-fork "$mps" sleep 600 3>&- 4>&- &
  echo $! >"$work/server.pid"
  within eval '! flock --nonblock "$mps" true'
  start
  within has_started
  pid=$(daemons)
  run -1 on_host "$program"
  [ "$(tail -n 2 <<<"$output")" = "mps-control-daemon: another mps-control-daemon uses $mps
  Run only one: either the service of the node or the one in a pod." ] || die "$output"
  [ "$(daemons)" = "$pid" ] && has_started
  [ "$(stat -c %a "$mps/.lock")" = 600 ]
  stop
  [ ! -e "$mps/.lock" ]
  start
  within has_started
  stop
  # What the lock of a killed one may have become.
  ln -s pipe "$mps/.lock"
  run -1 on_host "$program"
  rm "$mps/.lock"
  [ "$(tail -n 2 <<<"$output")" = "mps-control-daemon: cannot lock: $mps/.lock is not a regular file
  Remove it." ] || die "$output"
}

@test "with --node-label a label of the node chooses the file" {
  local api=$work/api
  mkdir "$api" "$work/source"
  mv "$config" "$work/source/quarters"
  echo 'version: v1' >"$work/source/whole"
  /usr/bin/python3 "$top/test/kubernetes/apiserver.py" serve "$api" 3>&- 4>&- &
  echo $! >"$work/server.pid"
  ctl() { /usr/bin/python3 "$top/test/kubernetes/apiserver.py" ctl "$api" "$@"; }
  within ctl GET /-/state
  ctl POST /api/v1/nodes '{"metadata": {"name": "worker", "labels": {"nvidia.com/device-plugin.config": "whole"}}}' >/dev/null
  unset CONFIG_FILE
  export NODE_NAME=worker KUBECONFIG=$api/kubeconfig CONFIG_FILE_SRCDIR=$work/source NODE_LABEL=nvidia.com/device-plugin.config
  start
  within logged "configuration chosen by the node's label: $work/source/whole"
  within logged "no resource is shared by MPS: waiting for another configuration"
  ctl PATCH /api/v1/nodes/worker '{"metadata": {"labels": {"nvidia.com/device-plugin.config": "quarters"}}}' >/dev/null
  within has_started
  ctl PATCH /api/v1/nodes/worker '{"metadata": {"labels": {"nvidia.com/device-plugin.config": "halves"}}}' >/dev/null
  within logged "nothing was changed."
  has_started
  ctl PATCH /api/v1/nodes/worker '{"metadata": {"labels": {"nvidia.com/device-plugin.config": "whole"}}}' >/dev/null
  within eval '[ -z "$(daemons)" ]'
  stop
}

@test "what the device plugin gives a container makes it a program of the daemon, within the limits" {
  start
  within has_started
  on_host "$build/src/daemon/nvidia-device-plugin" --once 2>/dev/null >"$work/offer"
  make_root small overlay
  mkdir "$work/runc"
  printf '[nvidia-container-runtime]\nruntimes = ["runc"]\n' >"$work/config.toml"
  new_bundle
  edit_bundle --arg root "$root" --arg client "$build/test/sim/cuda-client" --slurpfile offer "$work/offer" '$offer[0].resources[0].example as $answer |
    .process.terminal = false | .process.args = ["/cuda-client", "stay"] | del(.process.rlimits) | .root = {path: $root, readonly: false} |
    .process.env += [$answer.envs[] | "\(.name)=\(.value)"] |
    .mounts = [.mounts[] | select(.destination != "/dev/shm")] +
      [($answer.mounts + [{container_path: "/cuda-client", host_path: $client}])[] | {destination: .container_path, source: .host_path, type: "bind", options: ["rbind"]}]'
  NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml on_host "$BATS_FILE_TMPDIR/programs/nvidia-container-runtime" --root "$work/runc" create --bundle "$bundle" --pid-file "$work/c.pid" c \
    </dev/null >"$work/c.out" 2>&1 3>&- 4>&-
  on_host runc --root "$work/runc" start c
  within grep -E '^device 0: .*, through MPS$' "$work/c.out"
  [ "$(grep -c '^device' "$work/c.out")" = 1 ]
  [ "$(ask "$gpu" get_client_list)" = "$(cat "$work/c.pid")" ]
  # No program bypasses the daemon.
  run on_host "$build/test/sim/cuda-client"
  [[ $output != *"through MPS"* && $output != *copied* ]]
  on_host runc --root "$work/runc" delete --force c
  stop
}

@test "a driver whose root is not this system's: its programs run in it, and the daemon is found as ever" {
  local pid
  mkdir "$work/driver"
  on_host mount --rbind / "$work/driver"
  on_host mount --make-rprivate "$work/driver"
  start --driver-root="$work/driver"
  within has_started
  pid=$(pid_of "$gpu")
  [ "$(tr '\0' '\n' <"/proc/$pid/environ" | grep -E '^(CUDA_MPS|LD_|PATH=)' | sort | xargs)" = "CUDA_MPS_LOG_DIRECTORY=/tmp/log CUDA_MPS_PIPE_DIRECTORY=/tmp/pipe PATH=/usr/bin:/usr/sbin:/usr/local/bin:/bin:/sbin:/run/current-system/sw/bin:/usr/local/nvidia/bin:/opt/nvidia/current/usr/bin:/opt/bin:/usr/bin:/bin" ]
  [ "$(stat -Lc %i "/proc/$pid/root/tmp/pipe")" = "$(stat -c %i "$mps/$gpu/pipe")" ]
  [ "$(stat -Lc %d "/proc/$pid/root/dev/shm")" = "$(on_host stat -c %d "$mps/shm")" ]
  [ "$(ask "$gpu" get_default_active_thread_percentage)" = 25.0 ]
  [ "$(modes)" = "exclusive exclusive exclusive exclusive" ]
  run ! on_host grep -F "$work/driver/tmp/pipe" /proc/self/mountinfo
  stop
  [ "$(modes)" = "default default default default" ]
  within test ! -e "/proc/$pid"
}
