# SPDX-License-Identifier: Apache-2.0
# What docs/lxc.md says about Incus, with Incus of Debian 13. It comes from Debian's archive (test/tools/release-root); without a network the test is
# skipped. The image is a local one under the name that the page uses.
# files: disk

load lib.bash
load engines.bash
load docs.bash

setup() { work=$BATS_TEST_TMPDIR; }
teardown() { stop_machine; }

# incus_machine: with a daemon, and what "incus admin init" would make: a pool, and a default profile; without a network.
incus_machine() {
  page_machine dgx-h100
  mkdir -p "$machine/incus" "$work/home/.config/incus"
  on_host sh -ec 'printf "root:1000000:65536\n" | tee /etc/subuid >/etc/subgid; mkdir -p /var/lib/incus; mount --bind "$0" /var/lib/incus' "$machine/incus"
  on_host setsid /usr/libexec/incus/incusd >"$work/incusd.log" 2>&1 3>&- 4>&- &
  on_host /usr/libexec/incus/incusd waitready --timeout 60 || die "$(cat "$work/incusd.log")" || return
  # QUIRK: "incus exec" of 6.0 now and then loses what a command prints that ends at once.
  command_of incus '[ "$1" = exec ] || exec /usr/bin/incus "$@"
for _ in 1 2 3; do
  output=$(/usr/bin/incus "$@") || exit
  [ -z "$output" ] || break
  echo "# repeated: incus $*" >&2
done
printf "%s\n" "$output"'
  # The server of the images is this one.
  cat >"$work/home/.config/incus/config.yml" <<'YAML'
default-remote: local
remotes:
  images:
    addr: unix:///var/lib/incus/unix.socket
    protocol: incus
  local:
    addr: unix://
YAML
  "$work/shell" root "incus storage create default dir
incus profile device add default root disk path=/ pool=default
incus profile set default raw.lxc='lxc.cgroup.dir.container = $machine_cgroup/container
lxc.cgroup.dir.monitor = $machine_cgroup/monitor
lxc.cgroup.dir.monitor.pivot = $machine_cgroup/pivot'"
}

# import_incus ALIAS: an image whose init ends when Incus asks it to.
import_incus() {
  mkdir -p "$work/image"
  cp -a "$(image small)" "$work/image/rootfs"
  rm -f "$work/image/rootfs/sbin/init"
  printf '#!/bin/sh\ntrap "exit 0" PWR TERM\nsleep 86400 &\nwait\n' >"$work/image/rootfs/sbin/init"
  chmod 0755 "$work/image/rootfs/sbin/init"
  printf 'architecture: %s\ncreation_date: 1700000000\n' "$(uname -m)" >"$work/image/metadata.yaml"
  tar --create --directory "$work/image" --file "$work/home/image.tar" metadata.yaml rootfs
  "$work/shell" root "incus image import image.tar --alias $1"
}

@test "docs/lxc.md, Incus" {
  newer_packages incus
  incus_machine
  import_incus ubuntu/24.04
  sed -n '/^## Incus/,/^## LXD/p' "$top/docs/lxc.md" >"$work/incus.md"
  PAGE_NEWER=1 "$top/test/tools/page" run "$work/incus.md" "$work/shell"
  # All that it had to do was for one GPU of eight.
  run -0 "$work/shell" root 'incus info --resources | grep -c UUID'
  [ "$output" = 8 ]
}
