# SPDX-License-Identifier: Apache-2.0
# files: disk
# Leases with Docker's own daemon, on a host of eight GPUs: by --gpus, by the runtime and by Compose; and whatever happens to the container,
# its shim or the daemon, a GPU is held as long as a process that has it runs.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  start_dockerd
  import_image small
}
teardown_file() { stop_machine; }
setup() {
  engine_setup
  lend
  mkdir -p "$work/shared"
  chmod 0777 "$work/shared"
}
teardown() {
  [ ! -e "$work/again" ] || dockerd_again
  engine_teardown
}

# lend [LINE...]: leases are on, with these settings.
lend() { printf '%s\n' '[graft.leases]' 'mode = "on"' "$@" | config_toml; }
lease() { on_host nvidia-ctk --quiet lease "$@"; }
held() { lease list --json | jq '[.gpus[] | select(.leases != [])] | length'; }
holds() { [ "$(held)" = "$1" ]; }
# becomes_held N: soon.
becomes_held() { within 5 holds "$1" || die "$(lease list) instead of $1 held"; }
stays_held() { holds "$1" || die "$(lease list) instead of $1 held"; }

# sleeper NAME OPTION...: a container that sleeps.
sleeper() {
  local name=$1
  shift
  docker run --detach --net=none --stop-timeout 1 --name "$name" "$@" small sleep 600 >/dev/null
}
# gpus_of CONTAINER: the nodes of its GPUs, a word each.
gpus_of() { docker exec "$1" sh -c 'ls /dev' | grep -x 'nvidia[0-9]*' | xargs; }

# --- the daemon, killed ---

# dockerd_again [OPTION...]: another daemon of the same data, and no other.
dockerd_again() {
  local pid
  rm -f "$work/again"
  pid=$(cat "$machine/docker/pid" 2>/dev/null) || pid=
  [ -z "$pid" ] || ! on_host kill -TERM "$pid" 2>/dev/null || within 20 has_ended "$pid"
  rm -f "$machine/docker/pid"
  run_dockerd "$@"
}
kill_dockerd() {
  local pid
  pid=$(cat "$machine/docker/pid")
  touch "$work/again"
  on_host kill -KILL "$pid"
  within 5 has_ended "$pid"
  rm -f "$machine/docker/pid"
}

@test "docker run, by --gpus and by the runtime: no GPU is in two; a refusal names both who hold; rm --force frees" {
  sleeper anna --gpus device=any:2
  sleeper ben --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=any:2
  sleeper carl --runtime=nvidia-legacy --env NVIDIA_VISIBLE_DEVICES=any:1 --env NVIDIA_DRIVER_CAPABILITIES=utility
  stays_held 5
  [ "$(printf '%s\n' "$(gpus_of anna)" "$(gpus_of ben)" "$(gpus_of carl)" | tr ' ' '\n' | sort -u | wc -l)" = 5 ]
  docker_run --gpus device=any:4
  expect_refusal '4 GPUs were asked for, 3 of 8 are free. Held: (GPU [0-7, ]+ by uid 0 \(container [0-9a-f]+, [0-9]+ s\)[;.] ?){3}' \
    "See 'nvidia-ctk lease list'"
  docker rm --force anna >/dev/null
  becomes_held 3
  docker_run --gpus device=any:4
  expect nvidia-smi 4
  becomes_held 3
  docker rm --force ben carl >/dev/null
  becomes_held 0
}

is_state() { [ "$(docker inspect --format '{{.State.ExitCode}} {{.State.OOMKilled}}' "$1")" = "$2" ]; }

@test "docker: created, paused, stopped, started again, restarted by itself, killed for its memory" {
  # Docker makes no container before the start.
  docker create --name anna --net=none --gpus device=any:2 small sleep 600 >/dev/null
  stays_held 0
  docker start anna
  stays_held 2
  docker pause anna
  sleep 1
  stays_held 2
  docker unpause anna
  docker kill anna
  becomes_held 0
  docker start anna
  stays_held 2
  docker restart --time 0 anna
  stays_held 2
  docker rm --force anna >/dev/null
  becomes_held 0
  # By the daemon, whenever it ends. The container looks whether it has the one GPU before.
  docker run --detach --name ben --net=none --gpus device=any:1 --restart=always --volume "$work/shared:/shared" small \
    sh -c 'ls /dev | grep -xc "nvidia[0-9]*" >>/shared/starts; sleep 0.2' >/dev/null
  within 20 sh -c '[ "$(wc -l <"$0")" -ge 3 ]' "$work/shared/starts"
  [ "$(sort -u "$work/shared/starts")" = 1 ]
  docker rm --force ben >/dev/null
  becomes_held 0
  docker run --detach --name carl --net=none --gpus device=any:1 --memory 32m --volume "$work/shared:/shared" small \
    sh -c 'until [ -e /shared/go ]; do sleep 0.1; done; tail /dev/zero' >/dev/null
  stays_held 1
  touch "$work/shared/go"
  within 20 is_state carl '137 true'
  becomes_held 0
  docker rm --force carl >/dev/null
}

compose() { DOCKER_CONFIG=$machine/docker docker-compose --host "unix://$machine/docker/sock" --file "$work/compose.yaml" --project-name graft "$@"; }

@test "Compose: two services, a reservation and a variable" {
  cat >"$work/compose.yaml" <<'YAML'
version: "3.8"
x-common: &common
  image: small
  command: sleep 600
  network_mode: none
services:
  reserved:
    <<: *common
    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ["any:3"], capabilities: [gpu]}]}}}
  named:
    <<: *common
    runtime: nvidia
    environment: {NVIDIA_VISIBLE_DEVICES: "any:2;not=0"}
YAML
  compose up --detach
  stays_held 5
  compose down --timeout 0
  becomes_held 0
}

@test "the daemon is killed, with live-restore: the containers live, and hold what they had" {
  dockerd_again --live-restore
  sleeper anna --gpus device=any:2
  sleeper ben --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=any:3
  kill_dockerd
  stays_held 5
  dockerd_again --live-restore
  stays_held 5
  [ "$(docker ps --quiet | wc -l)" = 2 ]
  # In good order, too.
  dockerd_again --live-restore
  stays_held 5
  docker_run --gpus device=any:4
  [ "$status" -ne 0 ]
  docker rm --force anna >/dev/null
  becomes_held 3
  docker rm --force ben >/dev/null
  becomes_held 0
  touch "$work/again"
}

@test "the daemon is killed, without live-restore: the GPUs are free when it has ended what it finds" {
  sleeper anna --gpus device=any:2
  sleeper ben --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=any:3
  kill_dockerd
  stays_held 5
  dockerd_again
  becomes_held 0
  docker start anna >/dev/null
  stays_held 2
  # Its containers end with it.
  dockerd_again
  becomes_held 0
}

@test "a shim is killed: the GPUs are held as long as the container lives" {
  local pid shim
  sleeper anna --gpus device=any:2
  pid=$(docker inspect --format '{{.State.Pid}}' anna)
  shim=$(on_host sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 2)
  on_host kill -KILL "$shim"
  # containerd ends what has lost its shim.
  becomes_held 0
  within 5 has_ended "$pid"
}

@test "another process gets the id of a holder that ended: the GPUs are free" {
  on_host sh -c 'nvidia-ctk --quiet lease run -n 2 -- sleep 1000 >/dev/null 2>&1 3>&- 4>&- & echo $!' >"$work/pid"
  becomes_held 2
  on_host sh -c '
    kill -KILL "$0"
    while [ -e "/proc/$0" ]; do sleep 0.01; done
    # The next process gets the next id, unless another one is started meanwhile.
    for try in $(seq 100); do
      echo $(($0 - 1)) >/proc/sys/kernel/ns_last_pid
      sleep 1000 >/dev/null 2>&1 3>&- 4>&- &
      [ "$!" = "$0" ] && exit 0
      kill -KILL $!
    done
    exit 1' "$(cat "$work/pid")"
  [ "$(on_host cat "/proc/$(cat "$work/pid")/comm")" = sleep ]
  stays_held 0
  on_host kill -KILL "$(cat "$work/pid")"
}

# --- everything, killed at random ---

# one NUMBER: a container until its program has run, however often that takes.
one() {
  local name=c$1 how
  how=(--gpus device=any:1)
  [ $(($1 % 2)) = 0 ] || how=(--runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=any:1)
  for _ in $(seq 200); do
    # Docker's client can wait for ever, if what was killed should have said that the container did not start.
    patience=60 docker run --rm --net=none --env "NAME=$name" --volume "$work/shared:/tmp" "${how[@]}" small /tmp/witness >"$work/$name.out" 2>&1 || true
    ! grep -q " $name$" "$work/shared/given" 2>/dev/null || return 0
    sleep 0.$((RANDOM % 5 + 1))
  done
  echo "$name: $(cat "$work/$name.out")" >>"$work/failed"
}

# Starts the daemon again when it was killed.
supervise() {
  while [ ! -e "$work/enough" ]; do
    if ! on_host pgrep -x dockerd >/dev/null; then
      rm -f "$machine/docker/pid"
      run_dockerd --live-restore || true
    fi
    sleep 0.2
  done
}

# What counts as a lease lives, by the kernel's own files.
holders_live() {
  local id holder
  for id in $(lease list --json | jq -r '.leases[].id'); do
    holder=$(on_host cat "/run/graft/leases/held/$id" | jq -c .holder)
    [ -n "$(find "/sys/fs/cgroup/devices$(jq -r .cgroup <<<"$holder")" -name cgroup.procs -exec cat {} + 2>/dev/null)" ] ||
      [ "$(on_host sed 's/.*) //' "/proc/$(jq -r .pid <<<"$holder")/stat" | cut -d ' ' -f 20)" = "$(jq -r .start_time <<<"$holder")" ] ||
      die "$holder: nothing lives" || return
  done
}

@test "containers, 8 at a time, with kill -9 of daemon, containerd, shims, runc, runtime and hook: no GPU twice, and all are free afterwards" {
  local i jobs=() reaper supervisor
  lend 'wait = "5s"'
  cc -static -o "$work/shared/witness" "$top/test/integration/lease_witness.c"
  dockerd_again --live-restore
  touch "$work/again"
  supervise >"$work/supervisor" 2>&1 3>&- 4>&- &
  supervisor=$!
  on_host "$top/test/integration/lease_reaper.py" "$work/calm" dockerd=12 containerd=15 containerd-shim-runc-v2=3 runc=2 "runc init=3" \
    nvidia-container-runtime=1 nvidia-container-runtime-hook=0.5 witness=3 >"$work/killed" 3>&- 4>&- &
  reaper=$!
  # An engine of which something is killed each second gets nowhere: the rest is made in peace.
  sh -c 'sleep "$0"; touch "$1"' "${GRAFT_LEASE_STORM:-12}" "$work/calm" 3>&- 4>&- &
  for i in $(seq "${GRAFT_LEASE_ENGINE:-16}"); do
    while [ "${#jobs[@]}" -ge 8 ]; do
      wait -n "${jobs[@]}" || true
      mapfile -t jobs < <(for job in "${jobs[@]}"; do ! kill -0 "$job" 2>/dev/null || echo "$job"; done)
    done
    one "$i" 3>&- 4>&- &
    jobs+=($!)
  done
  wait "${jobs[@]}" || true
  touch "$work/enough" "$work/calm"
  wait $reaper $supervisor || true
  cat "$work/killed"
  [ ! -e "$work/failed" ] || die "$(cat "$work/failed")"
  [ ! -e "$work/shared/twice" ] || die "$(cat "$work/shared/twice" "$work/shared/given")"
  [ "$(cut -d ' ' -f 2 "$work/shared/given" | sort -u | wc -l)" = "${GRAFT_LEASE_ENGINE:-16}" ]
  holders_live
  dockerd_again
  docker ps --all --quiet | while read -r i; do docker rm --force "$i"; done >/dev/null
  # Containers of which the engine lost all trace between create and start.
  on_host pkill -KILL --full '^[^ ]*runc init' || true
  becomes_held 0
}
