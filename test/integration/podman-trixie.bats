# SPDX-License-Identifier: Apache-2.0
# docs/podman.md with Podman 5 of Debian 13, on a host that systemd runs: quadlets, and builds that take CDI devices. It comes from Debian's archive
# (test/tools/release-root); without a network the test is skipped.
# files: disk

load lib.bash
load engines.bash
load docs.bash

setup() { work=$BATS_TEST_TMPDIR; }
teardown() {
  [ ! -e "$machine/host/leader" ] || "$top/test/tools/systemd-host" stop "$machine/host"
  stop_host
}

on_host() { "$top/test/tools/systemd-host" run "$machine/host" env PATH="$BATS_FILE_TMPDIR/bin:$PATH" "$@"; }

# systemd_machine: a host of cgroup v2 with our programs installed, and the commands that a page takes for granted.
systemd_machine() {
  local status=0
  machine=$BATS_FILE_TMPDIR/machine
  mkdir -p "$machine/local/libexec/graft" "$work/home"
  start_host dgx-h100
  install_programs
  nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" -- "$top/test/tools/systemd-host" start v2 "$machine/host" "$BATS_RUN_TMPDIR" 2>"$work/why" || status=$?
  [ "$status" -ne 77 ] || skip "$(tail -n 1 "$work/why")"
  [ "$status" -eq 0 ] || die "$(cat "$work/why")" || return
  on_host cp "$BATS_FILE_TMPDIR"/programs/nvidia-* /usr/bin/
  cp "$BATS_FILE_TMPDIR"/programs/graft-* "$machine/local/libexec/graft/"
  on_host mount --bind "$machine/local" /usr/local
  on_host mkdir -p /etc/nvidia-container-runtime /etc/cdi
  page_commands=$BATS_FILE_TMPDIR/bin
  rm -f "$page_commands"/nvidia-*
  page_shell "'$top/test/tools/systemd-host' run '$machine/host'"
}

# podman_settings: no network, and limits that any machine's root can give. The generator of units is one that the package has installed.
podman_settings() {
  on_host mkdir -p /etc/containers/containers.conf.d
  on_host tee /etc/containers/containers.conf.d/test.conf >/dev/null <<'TOML'
[containers]
netns = "none"
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
pids_limit = 0
default_sysctls = []
log_driver = "k8s-file"
[engine]
events_logger = "none"
TOML
  command_of podman '[ "$1" != build ] || { shift && set -- build --network none "$@"; }
exec /usr/bin/podman "$@"'
  on_host cp /usr/libexec/podman/quadlet /usr/lib/systemd/system-generators/podman-system-generator
  rootless mkdir -p "$machine/home/.config/containers"
  printf '[engine]\ncgroup_manager = "cgroupfs"\n' | rootless tee "$machine/home/.config/containers/containers.conf" >/dev/null
}

@test "docs/podman.md with Podman 5" {
  local image
  newer_engines
  systemd_machine
  podman_settings
  cp -a "$(image small)" "$work/image"
  # The page's program for training.
  printf '#!/bin/sh\ntrap exit TERM\nsleep 600 &\nwait\n' >"$work/image/usr/bin/python"
  chmod 0755 "$work/image/usr/bin/python"
  for image in docker.io/library/ubuntu:24.04 nvcr.io/nvidia/cuda:12.6.3-base-ubuntu24.04 docker.io/pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime; do
    tar --create --directory "$work/image" . | on_host podman import --quiet - "$image"
  done
  tar --create --directory "$work/image" . | rootless podman import --quiet - docker.io/library/ubuntu:24.04
  run_page podman
}
