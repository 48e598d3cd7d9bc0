# SPDX-License-Identifier: Apache-2.0
# MPS with systemd: the daemon of a lease is in a unit of its own, which outlives the session that took the lease; and the service of
# mps-control-daemon. On a host that systemd runs (test/tools/systemd-host).

load lib.bash
load lease.bash

setup_file() {
  local status=0
  lease_host quad
  machine=$BATS_FILE_TMPDIR/machine
  export machine
  mkdir "$machine"
  nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" --wdns="$PWD" -- \
    "$top/test/tools/systemd-host" start v2 "$machine/host" "$BATS_RUN_TMPDIR" 2>"$machine/why" || status=$?
  case "$status" in
  0) rm "$machine/why" ;;
  77) skip "$(tail -n 1 "$machine/why")" ;;
  *)
    cat "$machine/why" >&2
    return 1
    ;;
  esac
}
teardown_file() {
  "$top/test/tools/systemd-host" stop "$machine/host" || true
  stop_host
}
setup() {
  lease_setup
  export NVIDIA_CTK_CONFIG_FILE_PATH=$config
  printf '[graft.leases]\nmode = "on"\ndirectory = "%s"\nshared = ["all=4"]\nsharing = "mps"\n' "$table" >"$config"
  gpu=$(lease list --json | jq -r '.gpus[0].uuid')
  unit=graft-mps@$gpu.service
}
teardown() {
  rm -f "$table"/held/*
  on_host systemctl stop "graft-mps@*" session.scope mps-control-daemon 2>/dev/null || true
  on_host rm -f /run/systemd/system/mps-control-daemon.service
  on_host nvidia-smi -c DEFAULT >/dev/null
  test_teardown
}
on_host() {
  "$top/test/tools/systemd-host" run "$machine/host" env PATH="$BATS_FILE_TMPDIR/bin:$PATH" "$@"
}
is_active() { [ "$(on_host systemctl is-active "$1")" = active ]; }
is_gone() { ! is_active "$1"; }
# The programs of a unit, as ids of that host: "nvidia-ctk nvidia-cuda-mps".
# shellcheck disable=SC2016
programs_of() { on_host sh -c 'for pid in $(cat "/sys/fs/cgroup$(systemctl show --value --property=ControlGroup "$0")/cgroup.procs"); do cat "/proc/$pid/comm"; done' "$1" | sort | xargs; }
mode_of_first() { on_host nvidia-smi -i 0 --query-gpu=compute_mode --format=csv,noheader; }

@test "the daemon of a lease is in a unit of its own, with its keeper, and ends with the last lease" {
  run -0 on_host systemd-run --quiet --scope --unit=session "$ctk" --quiet lease acquire --share --for 1h
  id=${lines[-1]}
  is_active "$unit"
  [ "$(programs_of "$unit")" = "nvidia-ctk nvidia-cuda-mps" ]
  [ "$(mode_of_first)" = Exclusive_Process ]
  # The session in which it was taken is no matter.
  on_host systemctl stop session.scope 2>/dev/null || true
  is_active "$unit"
  # A second lease has the same one, by the same keeper.
  keeper=$(on_host systemctl show --value --property=MainPID "$unit")
  lease run --share -- true
  [ "$(on_host systemctl show --value --property=MainPID "$unit")" = "$keeper" ]
  lease release "$id"
  within_seconds 20 is_gone "$unit"
  [ "$(mode_of_first)" = Default ]
  [ "$(on_host systemctl list-units --all --no-legend 'graft-mps@*')" = "" ]
}

@test "a unit that is stopped, killed, or fails does not keep the next lease from its daemon" {
  lease acquire --share --for 1h >"$work/id"
  on_host systemctl stop "$unit"
  is_gone "$unit"
  lease run --share -- true
  is_active "$unit"
  on_host systemctl kill --signal=KILL "$unit"
  within_seconds 10 is_gone "$unit"
  lease run --share -- true
  is_active "$unit"
  lease release "$(cat "$work/id")"
  within_seconds 20 is_gone "$unit"
  on_host mount --bind /bin/false /usr/bin/nvidia-cuda-mps-control
  run -1 on_host "$ctk" lease acquire --share
  on_host umount /usr/bin/nvidia-cuda-mps-control
  [[ $output == *"$gpu cannot be shared: MPS cannot be started: nvidia-cuda-mps-control failed with exit status 1: (no output)."* ]]
  within_seconds 10 is_gone "$unit"
  lease acquire --share --for 1h >"$work/id"
  is_active "$unit"
  lease release "$(cat "$work/id")"
  within_seconds 20 is_gone "$unit"
}

@test "mps-control-daemon as a service: ready when its daemons are, its mount is the host's, and stop ends everything" {
  [ -x "$build/src/daemon/mps-control-daemon" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler, libcurl4-openssl-dev)"
  install "$build/src/daemon/mps-control-daemon" "$BATS_FILE_TMPDIR/programs"
  printf 'version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 4}]}}\n' >"$work/config.yaml"
  sed "s|^ExecStart=.*|ExecStart=$BATS_FILE_TMPDIR/programs/mps-control-daemon|; s|^EnvironmentFile=.*mps-control.*|Environment=CONFIG_FILE=$work/config.yaml MPS_ROOT=$work/mps|" \
    "$build/packaging/systemd/mps-control-daemon.service" >"$work/unit"
  on_host cp "$work/unit" /run/systemd/system/mps-control-daemon.service
  on_host systemctl daemon-reload
  on_host systemctl start mps-control-daemon || die "$(on_host journalctl -u mps-control-daemon)"
  [ -e "$work/mps/nvidia.com/gpu/.started" ]
  [ "$(programs_of mps-control-daemon)" = "mps-control-dae nvidia-cuda-mps" ]
  on_host findmnt "$work/mps/shm" >/dev/null
  printf 'version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n' >"$work/config.yaml"
  on_host systemctl reload mps-control-daemon
  within_seconds 10 grep -q '"percent": *50' "$work/mps/nvidia.com/gpu/.daemon"
  within_seconds 10 test -e "$work/mps/nvidia.com/gpu/.started"
  on_host systemctl stop mps-control-daemon
  [ ! -e "$work/mps/nvidia.com/gpu/.started" ] && [ ! -e "$work/mps/nvidia.com/gpu/.daemon" ]
  run ! on_host findmnt "$work/mps/shm"
  [ "$(mode_of_first)" = Default ]
  [ "$(on_host systemctl show --value --property=Result mps-control-daemon)" = success ]
}
