# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A machine on which the commands of a page of docs/ run as printed, on top of engines.bash.

# page_machine TOPOLOGY: a machine whose programs are installed, with the commands that a page takes for granted.
page_machine() {
  start_machine "$@"
  chmod a+rx "$machine"
  page_commands=$BATS_FILE_TMPDIR/bin
  private_root
  on_host cp "$BATS_FILE_TMPDIR"/programs/nvidia-* /usr/bin/
  # Where a program that was not installed looks for its helpers: below the prefix of the build.
  install -D --target-directory "$machine/local/libexec/graft" "$BATS_FILE_TMPDIR"/programs/graft-*
  on_host mount --bind "$machine/local" /usr/local
  on_host ln -sf nvidia-container-runtime-hook /usr/bin/nvidia-container-toolkit
  on_host mkdir -p /etc/nvidia-container-runtime /etc/cdi "$work/home"
  rm -f "$page_commands"/nvidia-*
  page_shell "nsenter --target $(cat "$BATS_FILE_TMPDIR/host.pid") --mount --pid --net --ipc --wdns='$work/home' --"
}

# page_shell ENTER: $work/shell root|user LINE runs a line of a page on the machine that the command ENTER enters.
page_shell() {
  chmod 1777 "$work/home"
  chmod a+rx "$work" "$work/.."
  command_of sudo 'exec "$@"'
  cat >"$work/shell" <<SHELL
#!/bin/bash
# SHELL root|user LINE
cd "$work/home"
enter=($1 \$([ ! -e "$work/named" ] || echo nsenter --uts=/run/uts) env -i PATH="$page_commands:/usr/sbin:/usr/bin:/sbin:/bin" LC_ALL=C)
case \$1 in
root) "\${enter[@]}" USER=${page_user-root} HOME="$work/home" sh -c "\$2" ;;
user) "\${enter[@]}" setpriv --reuid 65534 --regid 65534 --clear-groups env USER=nobody HOME="$machine/home" XDG_RUNTIME_DIR=/run/session TMPDIR="$machine/home" sh -c "\$2" ;;
esac 2>&1 | sed -E '/(: simulated by Graft|: note: the driver is simulated), |^srun: job [0-9]+ (queued|has been allocated)/d'
exit "\${PIPESTATUS[0]}"
SHELL
  chmod 0755 "$work/shell"
}

# newer_engines: machines have Docker, containerd and Podman of Debian 13 on top of this computer's programs, as if they were installed.
newer_engines() { newer_packages engines podman; }

# need_root KIND RELEASE: $release_root is that of test/tools/release-root; the test is skipped where it cannot be had.
need_root() {
  local status=0
  release_root=$("$top/test/tools/release-root" "$@" 2>"$BATS_TEST_TMPDIR/why") || status=$?
  [ "$status" -ne 77 ] || skip "$(tail -n 1 "$BATS_TEST_TMPDIR/why")"
  [ "$status" -eq 0 ] || die "$(cat "$BATS_TEST_TMPDIR/why")"
}

# newer_packages KIND...: the same with what test/tools/release-root has of Debian 13, the first below the others.
newer_packages() {
  local kind usr="" etc=""
  for kind in "$@"; do
    need_root "$kind" trixie || return
    usr=$release_root/usr:$usr etc=$release_root/etc:$etc
  done
  cat >"$BATS_TEST_TMPDIR/graft-sim" <<SIM
#!/bin/sh -e
[ -n "\${GRAFT_NEWER-}" ] || GRAFT_NEWER=1 exec unshare --mount --propagation private "\$0" "\$@"
mount -t overlay -o "lowerdir=$usr/usr" overlay /usr
mount -t overlay -o "lowerdir=$etc/etc" overlay /etc
exec "$sim" "\$@"
SIM
  chmod 0755 "$BATS_TEST_TMPDIR/graft-sim"
  sim=$BATS_TEST_TMPDIR/graft-sim
  export PAGE_NEWER=1
}

# private_root: what the pages change below /usr, /etc, /var and /opt is lost with the machine, since these are overlays of graft-sim. The mounts below them
# that graft-sim takes along from this computer, such as the stores of engines, are taken away; all else of this computer cannot be written to.
private_root() {
  # shellcheck disable=SC2016
  on_host sh -c '
    set -e
    mkdir /run/bats
    mount --rbind "$0" /run/bats
    # The list also has mounts that an overlay hides: these are no longer mount points.
    for place in $(findmnt --raw --noheadings --output TARGET,SOURCE,FSTYPE | grep -v " graft-sim overlay$" | grep -oE "^/(usr|etc|var|opt)/[^ ]+"); do
      while umount -l "$place" 2>/dev/null; do :; done
    done
    [ "$(findmnt --raw --noheadings --types overlay --source graft-sim --output TARGET | grep -cxE "/(usr|etc|var)")" -eq 3 ]
    mount -t tmpfs -o mode=1777 tmp /tmp
    mkdir -p "$0"
    chmod a+rx "$0"
    # Everything else in / is a mount of this computer.
    for place in /*; do
      case $place in /proc | /sys | /dev | /run | /tmp) continue ;; esac
      ! mountpoint -q "$place" || findmnt --raw --noheadings --output SOURCE --mountpoint "$place" | grep -qx graft-sim || mount -o remount,bind,ro "$place"
    done
    mount -o remount,bind,ro /
    mount --rbind /run/bats "$0"
    ! touch /graft-docs-suite 2>/dev/null
    ! touch /root/graft-docs-suite 2>/dev/null' "$BATS_RUN_TMPDIR" || die "the machine shares directories with this computer"
}

# command_of NAME TEXT: a command of the machine, in front of its own; TEXT is a shell script.
command_of() {
  printf '#!/bin/sh\n%s\n' "$2" >"$page_commands/$1"
  chmod 0755 "$page_commands/$1"
}

run_page() { "$top/test/tools/page" run "$top/docs/$1.md" "$work/shell"; }

# enroot_command: "enroot start [--env NAME] NAME COMMAND...": the hooks in their order, then the root in the current directory becomes the process's own.
enroot_command() {
  install -m 0755 "$top/test/integration/enroot-hook" "$work/98-nvidia.sh"
  command_of enroot 'shift
export ENROOT_ENVIRON=$(mktemp)
printf "NVIDIA_VISIBLE_DEVICES=all\nNVIDIA_DRIVER_CAPABILITIES=compute,utility\n" >"$ENROOT_ENVIRON"
if [ "$1" = --env ]; then
  printf "%s=%s\n" "$2" "$(printenv "$2")" >>"$ENROOT_ENVIRON"
  shift 2
fi
export ENROOT_ROOTFS=$PWD/$1
shift
exec unshare --user --map-root-user --mount --propagation private sh -ec "
mount --rbind \"\$ENROOT_ROOTFS\" \"\$ENROOT_ROOTFS\"
mount -t tmpfs -o mode=755 tmpfs \"\$ENROOT_ROOTFS/dev\"
for node in null zero urandom; do
  : >\"\$ENROOT_ROOTFS/dev/\$node\"
  mount --bind /dev/\$node \"\$ENROOT_ROOTFS/dev/\$node\"
done
mount --rbind /proc \"\$ENROOT_ROOTFS/proc\"
for hook in \$(ls /etc/enroot/hooks.d 2>/dev/null) '"$work"'/98-nvidia.sh; do
  [ -e \$hook ] || hook=/etc/enroot/hooks.d/\$hook
  \$hook 2>>'"$work"'/home/hook.log
done
cd \"\$ENROOT_ROOTFS\"
pivot_root . .
umount -l .
exec \"\$@\"" sh "$@"'
}
