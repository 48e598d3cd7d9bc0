# SPDX-License-Identifier: Apache-2.0
# The units that keep the CDI spec up to date, on a host that systemd runs (test/tools/systemd-host). The driver has a root of its own, so that it
# can be replaced while the host is up.

load lib.bash

setup_file() {
  local status=0 name
  start_host a100-mig
  export machine=$BATS_FILE_TMPDIR/machine
  mkdir -p "$machine/bin" "$machine/settings"
  install -m 0755 "$build/src/cli/ctk/nvidia-ctk" "$build/src/cli/runtime/graft-nvml" "$build/src/cli/cdi_hook/nvidia-cdi-hook" "$top/test/tools/uevent" "$machine/bin"
  on_simulated_host "$top/test/tools/systemd-host" start v2 "$machine/host" "$BATS_RUN_TMPDIR" 2>"$machine/why" || status=$?
  case "$status" in
  0) rm "$machine/why" ;;
  77) return 0 ;;
  *) cat "$machine/why" >&2 && return 1 ;;
  esac
  for name in service path timer; do
    sed -e "s|^\(.*\)$(sed -n 's|^ExecStart=\(.*\)/nvidia-ctk .*|\1|p' "$build/packaging/systemd/nvidia-cdi-refresh.service")/nvidia-ctk|\1$machine/bin/nvidia-ctk|" \
      -e "s|/etc/nvidia-container-toolkit|$machine/settings|" "$(unit "$name")" |
      on_host tee "/usr/lib/systemd/system/nvidia-cdi-refresh.$name" >/dev/null
  done
  # udev, which a host has whose devices come and go: with our rules and no others, for what this one does to devices is not to be seen elsewhere.
  on_host sh -c 'mkdir -p /run/udev-rules && mount --bind /run/udev-rules /usr/lib/udev/rules.d && cat >/usr/lib/udev/rules.d/60-nvidia-cdi-refresh.rules' \
    <"$top/packaging/systemd/60-nvidia-cdi-refresh.rules"
  on_host tee /usr/lib/systemd/system/systemd-udevd.service >/dev/null <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
Type=notify
ExecStart=/usr/lib/systemd/systemd-udevd --resolve-names=never
UNIT
  # What depmod makes: the machine's own folder is not to be changed.
  on_host sh -c 'mkdir -p /run/modules && { [ ! -d /lib/modules ] || mount --bind /run/modules /lib/modules; }'
  driver 550.54.14
  settings ""
}

teardown_file() {
  "$top/test/tools/systemd-host" stop "$machine/host"
  stop_host
}

setup() {
  [ ! -e "$machine/why" ] || skip "$(tail -n 1 "$machine/why")"
  work=$BATS_TEST_TMPDIR
  on_host sh -c 'systemctl daemon-reload; systemctl stop nvidia-cdi-refresh.path nvidia-cdi-refresh.timer; rm -rf /run/cdi'
  driver 550.54.14
}

on_simulated_host() {
  nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" --wdns="$PWD" -- "$@"
}
on_host() {
  "$top/test/tools/systemd-host" run "$machine/host" "$@"
}

unit() {
  if [ -e "$build/packaging/systemd/nvidia-cdi-refresh.$1" ]; then
    echo "$build/packaging/systemd/nvidia-cdi-refresh.$1"
  else
    echo "$top/packaging/systemd/nvidia-cdi-refresh.$1"
  fi
}

# driver VERSION: what an installation leaves behind.
driver() {
  sed "s/^driver:.*/driver: $1/; s/^name:.*//" "$top/sim/topologies/a100-mig.yaml" >"$machine/a100-mig.yaml"
  "$sim" create --topology "$machine/a100-mig.yaml" "$machine/driver" >/dev/null
}

# settings LINES: of the file that an administrator has for this.
settings() {
  printf 'NVIDIA_CTK_DRIVER_ROOT=%s\n%s\n' "$machine/driver" "$1" >"$machine/settings/nvidia-cdi-refresh.env"
}

spec_is_of() { on_host grep -qs "libcuda.so.$1" /run/cdi/nvidia.yaml; }
service_is_idle() { [[ $(on_host systemctl show --value --property ActiveState nvidia-cdi-refresh.service) == @(inactive|failed) ]]; }

@test "the service makes the spec, and makes it anew when it has to" {
  on_host systemctl start nvidia-cdi-refresh.service
  spec_is_of 550.54.14
  [ "$(on_host stat -c '%a %U' /run/cdi/nvidia.yaml)" = "644 root" ]
  on_host stat -c '%i' /run/cdi/nvidia.yaml >"$work/before"
  on_host systemctl start nvidia-cdi-refresh.service
  on_host stat -c '%i' /run/cdi/nvidia.yaml | diff - "$work/before"
  driver 560.35.03
  on_host systemctl start nvidia-cdi-refresh.service
  spec_is_of 560.35.03
}

@test "the path unit notices: modules, libraries, MIG's nodes, the program, the settings" {
  local kernel
  kernel=$(uname -r)
  if [ -d /lib/modules ]; then on_host sh -c "mkdir -p /lib/modules/$kernel && : >/lib/modules/$kernel/modules.dep"; fi
  on_host systemctl start nvidia-cdi-refresh.service nvidia-cdi-refresh.path
  spec_is_of 550.54.14
  if [ -d /lib/modules ]; then
    driver 555.42.06
    on_host sh -c "echo >/lib/modules/$kernel/modules.dep"
    within 10 spec_is_of 555.42.06
  fi
  driver 560.35.03
  on_host sh -c ': >>/etc/ld.so.cache'
  within 10 spec_is_of 560.35.03
  within 10 service_is_idle
  driver 565.57.01
  on_host mknod /dev/nvidia-caps/nvidia-cap300 c 235 300
  within 10 spec_is_of 565.57.01
  within 10 service_is_idle
  driver 570.86.15
  install -m 0755 "$build/src/cli/ctk/nvidia-ctk" "$machine/bin/nvidia-ctk"
  within 10 spec_is_of 570.86.15
  within 10 service_is_idle
  settings NVIDIA_CTK_CDI_GENERATE_CLASS=changed
  within 10 on_host grep -qs 'kind: nvidia.com/changed' /run/cdi/nvidia.yaml
  settings ""
}

@test "a broken driver does not leave the units failed for good" {
  on_host systemctl start nvidia-cdi-refresh.path
  rm -r "$machine/driver"
  mkdir "$machine/driver"
  for _ in $(seq 12); do
    run on_host systemctl start nvidia-cdi-refresh.service
    [ "$status" -ne 0 ]
  done
  [ "$(on_host systemctl is-active nvidia-cdi-refresh.path)" = active ]
  rmdir "$machine/driver"
  driver 560.35.03
  on_host sh -c ': >>/etc/ld.so.cache'
  within 10 spec_is_of 560.35.03
}

@test "the timer, where somebody enables it" {
  on_host sh -c 'mkdir -p /run/systemd/system/nvidia-cdi-refresh.timer.d
    printf "[Timer]\nOnActiveSec=\nOnUnitActiveSec=\nOnActiveSec=1\nOnUnitActiveSec=1\nAccuracySec=100ms\n" >/run/systemd/system/nvidia-cdi-refresh.timer.d/fast.conf
    systemctl daemon-reload; systemctl start nvidia-cdi-refresh.timer'
  within 10 spec_is_of 550.54.14
  driver 560.35.03
  within 10 spec_is_of 560.35.03
  on_host systemctl stop nvidia-cdi-refresh.timer
}

# event ACTION DEVPATH SUBSYSTEM [NAME=VALUE...]: as the kernel tells it; all that rules do because of it has been done then.
event() {
  on_host "$machine/bin/uevent" "$@"
  on_host udevadm settle --timeout=10
}

no_jobs() { [ -z "$(on_host systemctl list-jobs --no-legend)" ]; }

@test "udev: what the kernel tells of modules, GPUs and nodes starts the service, and nothing else does" {
  local pci=/devices/pci0000:00/0000:00:02.0/0000:1b:00.0 words version n=0
  on_host systemctl daemon-reload
  on_host systemctl start systemd-udevd.service nvidia-cdi-refresh.service
  spec_is_of 550.54.14
  while read -r -a words; do
    n=$((n + 1)) version=560.35.$((10 + n))
    driver "$version"
    event "${words[@]}"
    within 10 spec_is_of "$version"
    within 10 service_is_idle
  done <<TABLE
add /module/nvidia module
remove /module/nvidia_uvm module
add /module/nvidia_drm module
bind $pci pci PCI_CLASS=30200 PCI_ID=10DE:2330 DRIVER=nvidia
unbind $pci pci PCI_CLASS=30200 PCI_ID=10DE:2330
remove $pci pci PCI_CLASS=30000 PCI_ID=10DE:1EB8
bind $pci pci PCI_CLASS=68000 PCI_ID=10DE:22A3 DRIVER=nvidia-nvswitch
add $pci/drm/card1 drm DEVTYPE=drm_minor
remove $pci/drm/renderD128 drm DEVTYPE=drm_minor
add /devices/virtual/nvidia-caps-imex-channels/channel0 nvidia-caps-imex-channels
TABLE
  driver 570.86.15
  while read -r -a words; do
    event "${words[@]}"
    within 10 no_jobs
    spec_is_of "$version" || { echo "started by: ${words[*]}"; return 1; }
  done <<TABLE
add /module/nvidiafb module
change /module/nvidia module
add $pci pci PCI_CLASS=30200 PCI_ID=10DE:2330
bind $pci pci PCI_CLASS=30000 PCI_ID=1002:73BF DRIVER=amdgpu
bind $pci pci PCI_CLASS=40300 PCI_ID=10DE:10F8 DRIVER=snd_hda_intel
change $pci/drm/card1 drm DEVTYPE=drm_minor
add $pci/drm/card1/card1-DP-1 drm DEVTYPE=drm_connector
add /devices/virtual/block/loop0 block
TABLE
  on_host systemctl stop systemd-udevd.service
}

@test "udev takes each line of the rules" {
  # Its complaints go where systemd's go; a line that it does not understand is one. (A newer one has \`udevadm verify\`.)
  if udevadm verify --help >/dev/null 2>&1; then
    udevadm verify "$top/packaging/systemd/60-nvidia-cdi-refresh.rules"
  fi
  run -0 on_host udevadm test --action=add /devices/virtual/mem/null
  grep -qF 'Reading rules file: /usr/lib/udev/rules.d/60-nvidia-cdi-refresh.rules' <<<"$output"
  run ! grep -F '60-nvidia-cdi-refresh.rules:' <<<"$output"
  # And it would have complained.
  echo 'ACTION=="add" SUBSISTEM=="x", RUM+="y"' | on_host tee /usr/lib/udev/rules.d/99-wrong.rules >/dev/null
  run on_host udevadm test --action=add /devices/virtual/mem/null
  on_host rm /usr/lib/udev/rules.d/99-wrong.rules
  grep -F '/99-wrong.rules:1' <<<"$output"
}

@test "the preset enables the service and the path unit, and not the timer" {
  on_host sh -c 'mkdir -p /run/systemd/system-preset; tee /run/systemd/system-preset/90-nvidia-cdi-refresh.preset' \
    <"$top/packaging/systemd/90-nvidia-cdi-refresh.preset" >/dev/null
  on_host systemctl preset nvidia-cdi-refresh.service nvidia-cdi-refresh.path
  [ "$(on_host systemctl is-enabled nvidia-cdi-refresh.service)" = enabled ]
  [ "$(on_host systemctl is-enabled nvidia-cdi-refresh.path)" = enabled ]
  [ "$(on_host systemctl is-enabled nvidia-cdi-refresh.timer || true)" = disabled ]
}
