# SPDX-License-Identifier: Apache-2.0
# files: disk
# Leases through every other way to a GPU: containerd's client and CRI, Podman, LXC, enroot, crun. Ordinary users cannot take one, and get what
# `lease run` took.

load lib.bash
load engines.bash
load lease.bash

setup_file() {
  start_machine dgx-h100
  start_containerd
  import_archive "$machine_cgroup" small small /probe
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  mkdir -p "$machine/hooks" "$machine/no-hooks"
  jq -n --arg hook "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook" --arg path "$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin:/sbin:/bin" '
    {version: "1.0.0", hook: {path: $hook, args: ["nvidia-container-runtime-hook", "prestart"], env: ["PATH=" + $path]},
     when: {always: true, commands: [".*"]}, stages: ["prestart"]}' >"$machine/hooks/oci-nvidia-hook.json"
  import_podman
}
teardown_file() { stop_machine; }
setup() {
  engine_setup
  export HOOKS=$machine/hooks
  root=$work/root
  printf '%s\n' '[graft.leases]' 'mode = "on"' | config_toml
  # Some engines do not pass on the variable that leads there. /etc is the machine's own (graft-sim).
  on_host sh -c '[ "$(findmnt --raw --noheadings --output SOURCE --mountpoint /etc)" = graft-sim ] && mkdir -p /etc/nvidia-container-runtime &&
    printf "%s\n" "[graft.leases]" "mode = \"on\"" >/etc/nvidia-container-runtime/config.toml'
}
teardown() {
  test_teardown
  engine_teardown
}

lease() { on_host nvidia-ctk --quiet lease "$@"; }

# --- containerd ---

@test "ctr: two containers of two GPUs each, a third is refused" {
  local i
  for i in 1 2; do
    ctr run --detach --runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=any:2 docker.io/library/small:latest "$name-$i" sleep 600
  done
  is_held 4
  ctr_run --runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=any:5
  [ "$status" -ne 0 ]
  [[ $output == *"5 GPUs were asked for, 4 of 8 are free. Held: GPU "*" by uid 0 (container $name-1, "*"GPU "*" by uid 0 (container $name-2, "* ||
    $output == *"5 GPUs were asked for, 4 of 8 are free. Held: GPU "*" by uid 0 (container $name-2, "*"GPU "*" by uid 0 (container $name-1, "* ]] || die "$output"
  ctr task kill --signal KILL "$name-1"
  becomes_held 2
  ctr_run --runc-binary nvidia-container-runtime.legacy --env NVIDIA_VISIBLE_DEVICES=any:5
  expect nvidia-smi 5
  becomes_held 2
  ctr task kill --signal KILL "$name-2"
  becomes_held 0
}

@test "containerd is killed and started again: its containers live, and hold what they had" {
  ctr run --detach --runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=any:3 docker.io/library/small:latest "$name" sleep 600
  on_host kill -KILL "$(our_containerd)"
  is_held 3
  restart_containerd
  is_held 3
  ctr task kill --signal KILL "$name"
  becomes_held 0
}

@test "CRI, RuntimeClass nvidia and nvidia-legacy" {
  local handler
  for handler in nvidia nvidia-legacy; do
    cri_run --handler $handler --env NVIDIA_VISIBLE_DEVICES=any:2
    expect nvidia-smi 2
    becomes_held 0
    cri_run --handler $handler --env NVIDIA_VISIBLE_DEVICES=any:9
    [ "$status" -ne 0 ]
    [[ $output == *"9 GPUs were asked for, but this host has 8 that can be lent and fit"[.\;]" Run 'nvidia-ctk lease list' to see what this host has."* ]] || die "$output"
  done
}

# --- Podman ---

limits=(--net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768)

@test "Podman: by the hooks directory and by the runtime; stopped, started again, removed" {
  podman run --detach "${limits[@]}" --cgroup-parent "/$machine_cgroup" --name anna --env NVIDIA_VISIBLE_DEVICES=any:2 small sleep 600
  is_held 2
  RUNTIME=$BATS_FILE_TMPDIR/bin/nvidia-container-runtime HOOKS=$machine/no-hooks \
    podman run --detach "${limits[@]}" --cgroup-parent "/$machine_cgroup" --name ben --env NVIDIA_VISIBLE_DEVICES=any:3 small sleep 600
  is_held 5
  run podman run --rm "${limits[@]}" --cgroup-parent "/$machine_cgroup" --env NVIDIA_VISIBLE_DEVICES=any:4 small /probe
  [ "$status" -ne 0 ]
  [[ $output =~ "4 GPUs were asked for, 3 of 8 are free; Held: GPU "[0-7\ ,]*" by uid 0 (container "[0-9a-f]{12}", "[0-9]*" s); GPU "[0-7\ ,]*" by uid 0 (container "[0-9a-f]{12}", "[0-9]*" s). See 'nvidia-ctk lease list'." ]] || die "$output"
  [[ $output == *"$(podman inspect --format '{{.Id}}' anna | cut -c 1-12)"* ]]
  podman kill anna
  becomes_held 3
  podman start anna
  becomes_held 5
  podman pause anna
  is_held 5
  podman unpause anna
  podman rm --force --time 0 anna ben
  becomes_held 0
}

# --- who is not root ---

only_root="only root can take GPUs: this process may not change /run/graft/leases"
remedy="Run 'sudo nvidia-ctk lease run --claim \"any:2\" --user NAME -- COMMAND', where COMMAND starts the container with the NVIDIA_VISIBLE_DEVICES that \
it finds: 'podman run --env NVIDIA_VISIBLE_DEVICES ...'."

# make_enroot: enroot's own steps (enroot.bats) for $root: what it says is the probe's, or the hook's.
make_enroot() {
  make_root small copy
  chown -R --no-dereference 65534:65534 "$root"
  cat >"$work/enroot" <<START
#!/bin/bash
set -euo pipefail
printf '%s\n' "NVIDIA_VISIBLE_DEVICES=\$NVIDIA_VISIBLE_DEVICES" NVIDIA_DRIVER_CAPABILITIES=compute,utility >"$root/environ"
exec unshare --user --map-root-user --mount --propagation private "$work/start"
START
  cat >"$work/start" <<START
#!/bin/bash
set -euo pipefail
mount --rbind "$root" "$root"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mount --rbind /proc "$root/proc"
ENROOT_ROOTFS=$root ENROOT_ENVIRON=$root/environ "$top/test/integration/enroot-hook" 2>&1 || exit 70
cd "$root"
pivot_root . .
umount -l .
exec env -i PROBE_MINORS="\${PROBE_MINORS-}" /probe
START
  chmod 0755 "$work/enroot" "$work/start"
}

@test "enroot: what lease run took, while it runs; a claim of its own is refused, with what to do" {
  make_enroot
  lease release "$(lease acquire -n 1 --for 1h)"
  run on_host setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all env NVIDIA_VISIBLE_DEVICES=any:2 "$work/enroot"
  [ "$status" -eq 70 ]
  [[ $output == *"nvidia-container-cli: device error: lease: $only_root"* && $output == *"nvidia-container-cli: hint: $remedy"* ]] || die "$output"
  is_held 0
  run lease run -n 2 --user nobody -- "$work/enroot"
  read_answers
  [ "$status" -eq 0 ] || die "$output"
  expect nvidia-smi 2
  is_held 0
}

# make_lxc VISIBLE: an unprivileged container (lxc.bats) that leaves the answers of the probe in its root.
make_lxc() {
  make_root small copy
  printf '#!/bin/sh\n/probe >/answers 2>&1\nwhile [ -e /stay ]; do sleep 0.1; done\n' >"$root/init"
  chmod 0755 "$root/init"
  chown --recursive --no-dereference 100000:100000 "$root"
  show_whole_proc
  printf 'root:100000:65536\n' >"$work/subid"
  on_host mount --bind "$work/subid" /etc/subuid
  on_host mount --bind "$work/subid" /etc/subgid
  mkdir -p "$work/lxc"
  cat >"$work/config" <<CONFIG
lxc.rootfs.path = dir:$root
lxc.idmap = u 0 100000 65536
lxc.idmap = g 0 100000 65536
lxc.uts.name = lease
lxc.autodev = 1
lxc.mount.auto = proc:mixed
lxc.net.0.type = empty
lxc.apparmor.profile = unconfined
lxc.init.cmd = /init
lxc.cgroup.dir = $machine_cgroup
lxc.hook.mount = /usr/share/lxc/hooks/nvidia
lxc.environment = PATH=$BATS_FILE_TMPDIR/bin:/usr/sbin:/usr/bin:/sbin:/bin
lxc.environment = NVIDIA_DRIVER_CAPABILITIES=compute,utility
lxc.environment = NVIDIA_VISIBLE_DEVICES$1
CONFIG
}
lxc_start=(lxc-start --foreground --name lease --logpriority DEBUG)

@test "LXC: what lease run took, while it runs; a claim of its own is refused, with what to do" {
  make_lxc '=any:2'
  lease release "$(lease acquire -n 1 --for 1h)"
  run on_host timeout 60 "${lxc_start[@]}" --lxcpath "$work/lxc" --rcfile "$work/config" --logfile "$work/log" </dev/null
  [ "$status" -ne 0 ]
  [ ! -e "$root/answers" ]
  grep -F "nvidia-container-cli: device error: lease: $only_root" "$work/log" || die "$(tail -n 20 "$work/log")"
  grep -F "nvidia-container-cli: hint: $remedy" "$work/log"
  is_held 0
  # Without a value, LXC takes its own.
  sed -i 's/^\(lxc.environment = NVIDIA_VISIBLE_DEVICES\)=.*/\1/' "$work/config"
  touch "$root/stay"
  lease run -n 2 -- timeout 60 "${lxc_start[@]}" --lxcpath "$work/lxc" --rcfile "$work/config" --logfile "$work/log" </dev/null >"$work/out" 2>&1 3>&- 4>&- &
  within 20 grep -q '^uid' "$root/answers" || die "$(tail -n 20 "$work/log")"
  is_held 2
  rm "$root/stay"
  wait $!
  becomes_held 0
  output=$(cat "$root/answers")
  read_answers
  expect nvidia-smi 2
}

@test "rootless Podman: what lease run took, while it runs; a claim of its own is refused, with what to do" {
  local podman options
  lease release "$(lease acquire -n 1 --for 1h)"
  rootless true
  podman=(/usr/bin/podman --root "$machine/rootless/root" --runroot /run/rootless --storage-driver vfs --tmpdir /run/session/tmp --cgroup-manager cgroupfs
    --events-backend none --hooks-dir "$machine/hooks" --runtime /usr/sbin/runc)
  tar --create --directory "$(image small)" . --directory "$top/test/integration" ./probe | rootless "${podman[@]}" import - small
  run rootless "${podman[@]}" run --rm "${limits[@]}" --env NVIDIA_VISIBLE_DEVICES=any:2 small /probe
  [ "$status" -ne 0 ]
  [[ $output == *"$only_root"*"$remedy"* ]] || die "$output"
  is_held 0
  # The command of the message: the GPUs are held as long as the container runs. --scope: also when what started it is killed.
  for options in '' --scope; do
    : >"$work/out"
    # shellcheck disable=SC2086
    lease run --claim any:2 $options --user nobody -- env HOME="$machine/home" TMPDIR="$machine/home" XDG_RUNTIME_DIR=/run/session \
      XDG_CONFIG_HOME="$machine/home/.config" sh -c 'cd / && exec "$@"' sh "${podman[@]}" run --rm --name "held$options" "${limits[@]}" \
      --env NVIDIA_VISIBLE_DEVICES small sh -c '/probe; sleep 1000' >"$work/out" 2>&1 3>&- 4>&- &
    within 20 grep -q '^procfs' "$work/out" || die "$(cat "$work/out")"
    output=$(cat "$work/out")
    read_answers
    expect nvidia-smi 2
    is_held 2
    if [ -n "$options" ]; then
      on_host pkill -9 -f 'podman .*--name held--scope'
      wait $! || true
      is_held 2
    fi
    rootless "${podman[@]}" kill "held$options"
    wait $! || true
    becomes_held 0
  done
}

# --- root without an engine ---

# holds_two FILE COMMAND...: a container, whose answers come into that file, holds two GPUs as long as it lives, and no longer, also if it is killed.
holds_two() {
  local answers=$1 how
  shift
  for how in end kill; do
    rm -f "$answers"
    touch "$root/stay"
    "$@" >"$work/out" 2>&1 3>&- 4>&- &
    within 20 grep -q '^procfs' "$answers" || die "$(cat "$work/out" "$work/log")"
    output=$(cat "$answers")
    read_answers
    expect nvidia-smi 2
    is_held 2
    if [ $how = end ]; then rm "$root/stay"; else on_host pkill -9 -f "^/bin/sh .*$inside"; fi
    wait $! || true
    becomes_held 0
  done
}

@test "enroot, by root: a claim is met, held while the container lives, and free afterwards" {
  make_enroot
  chown -R --no-dereference 0:0 "$root"
  sed -i "s|^exec env -i .*|exec env -i /bin/sh -c '/probe; while [ -e /stay ]; do sleep 0.1; done'|" "$work/start"
  inside=/probe
  holds_two "$work/out" on_host env NVIDIA_VISIBLE_DEVICES=any:2 "$work/enroot"
}

@test "LXC, privileged: its hook refuses; by one of one's own a claim is met, held while the container lives, and free afterwards" {
  local start
  make_lxc '=any:2'
  chown --recursive --no-dereference 0:0 "$root"
  sed -i '/^lxc.idmap/d' "$work/config"
  start=(timeout 60 "${lxc_start[@]}" --lxcpath "$work/lxc" --rcfile "$work/config" --logfile "$work/log")
  run on_host "${start[@]}" </dev/null
  [ "$status" -ne 0 ]
  grep -F 'This hook currently only works in unprivileged mode.' "$work/log"
  is_held 0
  # The hook of docs/lxc.md.
  sed -n '/^```sh file=\/etc\/lxc\/gpu-hook$/,/^```$/{/^```/!p}' "$top/docs/lxc.md" >"$work/hook"
  chmod 0755 "$work/hook"
  sed -i "s|^lxc.hook.mount = .*|lxc.hook.mount = $work/hook|" "$work/config"
  inside=/init
  holds_two "$root/answers" on_host "${start[@]}"
}
