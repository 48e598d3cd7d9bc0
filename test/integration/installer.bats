# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk-installer with real engines: the toolkit is complete at every moment, engines reload only files that they have not read, changes by others are
# repaired, and the engine's files are restored when it ends. installer_flags.py has each flag.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  start_dockerd
  import_image small
  start_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  make_source "$machine/source"
}
teardown_file() { stop_machine; }
setup() {
  engine_setup
  toolkit=$machine/nv/toolkit
}
teardown() {
  end_programs TERM nvidia-ctk-installer
  rm -rf "$machine/nv"
  engine_teardown
}

# installer OPTION...: in the foreground.
installer() {
  run on_host nvidia-ctk-installer --pid-file="$machine/run/toolkit.pid" --toolkit-install-dir="$machine/nv" --toolkit-source-root="$machine/source" \
    --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --hooks-dir="$machine/hooks.d" --config-source=file "$@"
}
for_docker=(--runtime=docker)
for_containerd=(--runtime=containerd)
where() {
  for_docker+=(--config="$machine/docker/daemon.json" --socket="$machine/docker/sock")
  for_containerd+=(--config="$machine/containerd/config.toml" --drop-in-config="$machine/containerd/conf.d/99-nvidia.toml" --socket=/run/containerd-suite/sock)
}
# stay OPTION...: in the background, until it waits; its log is $work/log.
stay() {
  : >"$work/log"
  on_host nvidia-ctk-installer --pid-file="$machine/run/toolkit.pid" --toolkit-install-dir="$machine/nv" --toolkit-source-root="$machine/source" \
    --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --config-source=file "$@" >"$work/log" 2>&1 3>&- 4>&- &
  within 20 grep -q 'msg="Waiting for signal"' "$work/log" || { cat "$work/log" && return 1; }
}
stop_installer() {
  on_host sh -c 'kill -TERM $(cat "$1")' sh "$machine/run/toolkit.pid"
  within 20 grep -q 'msg="Completed nvidia-ctk-installer"' "$work/log" || { cat "$work/log" && return 1; }
  [ ! -e "$machine/run/toolkit.pid" ]
}
reloads() { grep -c 'Got signal to reload configuration' "$machine/docker/log" || true; }
reloads_are() { [ "$(reloads)" = "$1" ]; }
runtime_path() { docker info --format "{{(index .Runtimes \"$1\").Path}}"; }
# is_whole: every part of the toolkit is there and what it was.
is_whole() {
  local name
  for name in nvidia-ctk nvidia-container-runtime nvidia-container-runtime.cdi nvidia-container-runtime.legacy nvidia-container-cli nvidia-container-runtime-hook; do
    cmp "$machine/source/usr/bin/$name" "$toolkit/$name" && cmp "$toolkit/$name" "$toolkit/$name.real" || return
    [ "$(stat -c %a "$toolkit/$name")" = 755 ] || return
  done
  cmp "$machine/source/usr/bin/nvidia-cdi-hook" "$toolkit/nvidia-cdi-hook" || return
  [ "$(readlink "$toolkit/nvidia-container-toolkit")" = nvidia-container-runtime-hook ] || return
  [ -e "$toolkit/libnvidia-container.so.1" ] || return
  grep -qF "path = \"$toolkit/nvidia-ctk\"" "$toolkit/.config/nvidia-container-runtime/config.toml"
}

@test "each flag and each variable, file by file, and the values that are refused" {
  run -0 python3 "$top/test/integration/installer_flags.py" "$BATS_FILE_TMPDIR/bin/nvidia-ctk-installer" "$work/flags"
  [[ $output == *" flags" ]]
}

@test "docker: reloaded once; a second run leaves it alone; the toolkit gives GPUs with the configuration beside it; at the end the file is what it was" {
  local file=$machine/docker/daemon.json before
  where
  printf '{\n  "labels": ["a=b"],   "runtimes": {"plain": {"path": "runc"}}\n}\n' >"$file"
  cp "$file" "$work/before"
  before=$(reloads)
  stay "${for_docker[@]}" --set-as-default=false
  within 5 reloads_are $((before + 1))
  is_whole
  [ "$(runtime_path nvidia) $(runtime_path nvidia-cdi) $(runtime_path nvidia-legacy)" = \
    "$toolkit/nvidia-container-runtime $toolkit/nvidia-container-runtime.cdi $toolkit/nvidia-container-runtime.legacy" ]
  # Another configuration than that of the node: its low-level runtime does not exist.
  config_toml <<<$'[nvidia-container-runtime]\nruntimes = ["none"]'
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0,1
  expect_gpus 0 1
  # The lock. Options after a word that is not one do not count.
  installer "${for_docker[@]}" extra --no-daemon
  [ "$status" -eq 1 ]
  [[ ${lines[0]} == *"level=warning msg=\"ignoring 'extra' and all that follows: write options as --option=VALUE\"" ]]
  [[ ${lines[-1]} == *"level=error msg=\"error running nvidia-ctk-installer: unable to get flock on pidfile: $machine/run/toolkit.pid: "* ]]
  stop_installer
  cmp "$file" "$work/before"
  [ ! -e "$file.nvidia-ctk.bak" ]
  within 5 reloads_are $((before + 2))
  is_whole
}

@test "docker: a second run changes nothing and tells nobody; a run that was killed before it told dockerd is made good" {
  local file=$machine/docker/daemon.json before after
  where
  printf '{}\n' >"$file"
  before=$(reloads)
  installer "${for_docker[@]}" --no-daemon
  [ "$status" -eq 0 ]
  within 5 reloads_are $((before + 1))
  after=$(stat -c '%i %Y' "$toolkit" "$file")
  installer "${for_docker[@]}" --no-daemon
  [ "$status" -eq 0 ]
  [[ $output == *'msg="docker has already read its configuration: not signaling it"'* ]]
  [ "$(stat -c '%i %Y' "$toolkit" "$file")" = "$after" ]
  reloads_are $((before + 1))
  touch "$machine/nv/.engine-has-to-read"
  installer "${for_docker[@]}" --no-daemon
  within 5 reloads_are $((before + 2))
  [ ! -e "$machine/nv/.engine-has-to-read" ]
  # A new release of the programs: exchanged, and dockerd is not told.
  printf x >>"$machine/source/usr/bin/nvidia-ctk"
  installer "${for_docker[@]}" --no-daemon
  [ "$status" -eq 0 ]
  is_whole
  [ "$(ls -A "$machine/nv")" = toolkit ]
  reloads_are $((before + 2))
}

@test "containers that start while installers are killed: none fails, and the toolkit is whole" {
  # GRAFT_KILLS: how often; ./check has fewer.
  local kills=${GRAFT_KILLS:-25} file=$machine/docker/daemon.json i pid n parts starter
  where
  printf '{}\n' >"$file"
  installer "${for_docker[@]}" --no-daemon
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0
  expect_gpus 0
  parts=$(find "$toolkit" -mindepth 1 | wc -l)
  cp "$machine/source/usr/bin/nvidia-ctk" "$work/ctk"
  mkdir "$work/starts"
  # shellcheck disable=SC2016
  on_host sh -c 'n=0; until [ -e "$1/stop" ]; do
    docker=$(/usr/bin/docker --host "unix://$2" run --rm --net=none --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0 small nvidia-smi -L 2>&1) &&
      [ "${docker#*GPU 0: }" != "$docker" ] || echo "$docker" >>"$1/failed"; n=$((n + 1)); echo $n >"$1/n"; done' \
    sh "$work/starts" "$machine/docker/sock" >/dev/null 2>&1 3>&- 4>&- &
  starter=$!
  for i in $(seq "$kills"); do
    # Each is another toolkit, so that there is something to exchange.
    { cat "$work/ctk" && echo "$i"; } >"$machine/source/usr/bin/nvidia-ctk"
    on_host nvidia-ctk-installer --pid-file="$machine/run/toolkit.pid" --toolkit-install-dir="$machine/nv" --toolkit-source-root="$machine/source" \
      --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --config-source=file --no-daemon "${for_docker[@]}" >/dev/null 2>&1 3>&- 4>&- &
    pid=$!
    sleep "0.$(printf %03d $((RANDOM % 120)))"
    end_programs KILL nvidia-ctk-installer
    wait "$pid" || true
    # What is there is whole: the one before or this one.
    [ -x "$toolkit/nvidia-ctk" ] && cmp "$toolkit/nvidia-ctk" "$toolkit/nvidia-ctk.real"
    [ "$(find "$toolkit" -type f -size 0)" = "$toolkit/.lock" ]
    [ "$(find "$toolkit" -mindepth 1 | wc -l)" -eq "$parts" ]
  done
  touch "$work/starts/stop"
  wait "$starter" || true
  n=$(cat "$work/starts/n")
  [ ! -e "$work/starts/failed" ] || { cat "$work/starts/failed" && return 1; }
  [ "$n" -ge 3 ]
  echo "# $kills kills, $n containers started" >&3
  installer "${for_docker[@]}" --no-daemon
  [ "$status" -eq 0 ]
  is_whole
  [ "$(ls -A "$machine/nv")" = toolkit ]
  cp "$work/ctk" "$machine/source/usr/bin/nvidia-ctk"
}

@test "installers with lock files of their own at the same time: each succeeds, and the toolkit is whole" {
  local i pid pids
  cp "$machine/source/usr/bin/nvidia-ctk" "$work/ctk"
  for i in 1 2 3; do
    # Another toolkit, so that there is something to exchange.
    { cat "$work/ctk" && echo "$i"; } >"$machine/source/usr/bin/nvidia-ctk"
    pids=()
    for pid in 1 2 3 4; do
      on_host nvidia-ctk-installer --pid-file="$work/run$pid/toolkit.pid" --toolkit-install-dir="$machine/nv" --toolkit-source-root="$machine/source" \
        --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --config-source=file --no-daemon --no-runtime-config >"$work/log$pid" 2>&1 3>&- 4>&- &
      pids+=("$!")
    done
    for pid in "${pids[@]}"; do wait "$pid" || die "$(cat "$work"/log?)"; done
    is_whole
  done
  installer --no-daemon --no-runtime-config
  [ "$(ls -A "$machine/nv")" = toolkit ]
  cp "$work/ctk" "$machine/source/usr/bin/nvidia-ctk"
}

@test "containerd 1.6: ended by SIGHUP once; pods get GPUs; a second run leaves its pid; taken back at the end" {
  local pid
  where
  cp "$machine/containerd/config.toml" "$work/before"
  pid=$(our_containerd)
  installer "${for_containerd[@]}" --no-daemon --set-as-default=false --cdi-enabled --cdi-output-dir="$machine/cdi-out"
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  [[ $output == *"msg=\"Sending SIGHUP signal to containerd (PID $pid)\""* ]]
  within 10 has_ended "$pid"
  restart_containerd
  pid=$(our_containerd)
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=2,3
  expect_gpus 2 3
  cri_run --handler nvidia-legacy --env NVIDIA_VISIBLE_DEVICES=1
  expect_gpus 1
  [ "$(on_host nvidia-ctk cdi list --spec-dir="$machine/cdi-out" 2>/dev/null)" = management.nvidia.com/gpu=all ]
  grep -qF "$toolkit/nvidia-cdi-hook" "$machine/cdi-out/management.nvidia.com-gpu.yaml"
  installer "${for_containerd[@]}" --no-daemon --set-as-default=false --cdi-enabled --cdi-output-dir="$machine/cdi-out"
  [[ $output == *'msg="containerd has already read its configuration: not signaling it"'* ]]
  [ "$(our_containerd)" = "$pid" ]
  stay "${for_containerd[@]}" --set-as-default=false --cdi-enabled --cdi-output-dir="$machine/cdi-out"
  [ "$(our_containerd)" = "$pid" ]
  stop_installer
  within 10 has_ended "$pid"
  cmp "$machine/containerd/config.toml" "$work/before"
  [ ! -e "$machine/containerd/conf.d/99-nvidia.toml" ]
  restart_containerd
}

@test "what others change is repaired and said so, three times; then it is left alone" {
  local i
  where
  printf '{}\n' >"$machine/docker/daemon.json"
  stay "${for_docker[@]}"
  for i in 1 2; do
    printf '{}\n' >"$machine/docker/daemon.json"
    within 20 grep -qF "$toolkit/nvidia-container-runtime.cdi" "$machine/docker/daemon.json"
    within 20 eval "[ \$(grep -c 'msg=\"Another program has changed the configuration of docker: it was repaired\"' '$work/log') -eq $i ]"
  done
  rm "$toolkit/nvidia-ctk"
  within 20 test -x "$toolkit/nvidia-ctk"
  is_whole
  within 20 grep -qF "msg=\"Another program has changed $toolkit: reinstalled it\"" "$work/log"
  printf '{}\n' >"$machine/docker/daemon.json"
  within 20 grep -q "level=error msg=\"Files of this installation were changed again after 3 repairs: not repairing for [0-9]* seconds. 'nvidia-ctk doctor node' names other installers on this node\"" "$work/log"
  [ "$(cat "$machine/docker/daemon.json")" = "{}" ]
  stop_installer
  [ "$(cat "$machine/docker/daemon.json")" = "{}" ]
}

@test "a configuration that imports the directory of drop-ins itself: it stays as it is" {
  local config=$work/etc/config.toml words
  mkdir -p "$work/etc/conf.d"
  words=(--runtime=containerd --config="$config" --drop-in-config="$work/etc/conf.d/99-nvidia.toml" --restart-mode=none)
  printf 'version = 2\nimports = ["%s/etc/conf.d/*.toml"]\n' "$work" | tee "$work/before" >"$config"
  stay "${words[@]}"
  cmp "$work/before" "$config"
  [ -e "$work/etc/conf.d/99-nvidia.toml" ]
  stop_installer
  cmp "$work/before" "$config"
  [ "$(find "$work/etc" -type f)" = "$config" ]
}

@test "a configuration that is a link: what is written to its target is repaired, and the link stays" {
  local there=$work/there config=$work/etc/config.toml pid
  mkdir "$there" "$work/etc"
  printf 'version = 2\n' | tee "$work/before" >"$there/config.toml"
  ln -s ../there/config.toml "$config"
  stay --runtime=containerd --config="$config" --drop-in-config="$work/etc/conf.d/99-nvidia.toml" --restart-mode=none
  grep -q ^imports "$there/config.toml"
  pid=$(cat "$machine/run/toolkit.pid")
  within 15 is_idle "$pid"
  cp "$work/before" "$there/config.toml"
  within 20 grep -q ^imports "$there/config.toml"
  within 15 is_idle "$pid"
  cp "$work/before" "$there/new"
  mv "$there/new" "$there/config.toml"
  within 20 grep -q ^imports "$there/config.toml"
  stop_installer
  [ "$(readlink "$config")" = ../there/config.toml ]
  cmp "$work/before" "$there/config.toml"
}

@test "told to end while a repaired engine does not answer: it does not wait for that" {
  local file=$machine/docker/daemon.json
  printf '{}\n' >"$file"
  ln -s "$machine/docker/sock" "$work/sock"
  stay --runtime=docker --config="$file" --socket="$work/sock"
  rm "$work/sock"
  printf '{\n  "labels": ["a=b"]\n}\n' >"$file"
  within 20 grep -q "Error signaling docker, attempt 1/6: unable to dial $work/sock: no such file or directory" "$work/log" || { cat "$work/log" && return 1; }
  ln -s "$machine/docker/sock" "$work/sock"
  stop_installer
  [ "$(cat "$file")" = $'{\n  "labels": ["a=b"]\n}' ]
  # At its start and at its end.
  [ "$(grep -c 'Sending SIGHUP signal to docker' "$work/log")" -eq 2 ] || { cat "$work/log" && return 1; }
}

@test "a file system that cannot exchange names: a container finds a whole toolkit in each moment" {
  local i old
  where
  printf '{}\n' >"$machine/docker/daemon.json"
  for i in 1 2; do
    run -0 on_host "$BATS_FILE_TMPDIR/programs/enosys" --only renameat2 "$BATS_FILE_TMPDIR/programs/nvidia-ctk-installer" --pid-file="$machine/run/toolkit.pid" \
      --toolkit-install-dir="$machine/nv" --toolkit-source-root="$machine/source" --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --config-source=file \
      --no-daemon "${for_docker[@]}"
    is_whole
    [ "$(readlink "$toolkit")" != "${old:-}" ]
    old=$(readlink "$toolkit")
    [[ $old =~ ^\.graft-toolkit-[0-9]+$ ]]
    docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES="$i"
    expect_gpus "$i"
    printf x >>"$machine/source/usr/bin/nvidia-ctk"
  done
  [ "$(find "$machine/nv" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | paste -sd' ')" = "$old toolkit" ]
}

@test "what was changed meanwhile stays when it goes; a runtime of a package stays" {
  where
  printf '{\n  "labels": ["a=b"]\n}\n' >"$machine/docker/daemon.json"
  stay "${for_docker[@]}"
  jq '.labels = ["c=d"]' "$machine/docker/daemon.json" >"$work/new"
  cp "$work/new" "$machine/docker/daemon.json"
  stop_installer
  [ "$(jq -c . "$machine/docker/daemon.json")" = '{"labels":["c=d"]}' ]
  printf '{"runtimes": {"nvidia": {"path": "/usr/bin/env"}}}\n' >"$machine/docker/daemon.json"
  installer "${for_docker[@]}" --no-daemon --restart-mode=none
  [[ $output == *"level=warning msg=\"The runtime \\\"nvidia\\\" of docker is /usr/bin/env, which a package of this node has registered: leaving it. To use $toolkit, run 'nvidia-ctk runtime configure --runtime=docker --undo' on the node\""* ]]
  [ "$(jq -r '.runtimes.nvidia.path, .runtimes["nvidia-cdi"].path' "$machine/docker/daemon.json" | paste -sd' ')" = "/usr/bin/env $toolkit/nvidia-container-runtime.cdi" ]
}

@test "a signal during the installation: exit 0 at once, without the pid file, and what was there is whole" {
  local signal pid
  where
  printf '{}\n' >"$machine/docker/daemon.json"
  installer "${for_docker[@]}" --no-daemon
  for signal in HUP INT QUIT PIPE TERM; do
    # It waits for an engine that is not there.
    # shellcheck disable=SC2016
    on_host sh -c 'env --default-signal nvidia-ctk-installer --pid-file="$1/run/toolkit.pid" --toolkit-install-dir="$1/nv" --toolkit-source-root="$1/source" \
      --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --config-source=file --runtime=docker --config="$1/docker/daemon.json" --socket=/none 2>"$2"; echo $? >"$3"' \
      sh "$machine" "$work/log" "$work/status" >/dev/null 3>&- 4>&- &
    pid=$!
    within 10 grep -q 'Error signaling docker, attempt 1/6: unable to dial /none: no such file or directory' "$work/log" || { cat "$work/log" && return 1; }
    on_host sh -c 'kill "-$1" "$(cat "$2")"' sh "$signal" "$machine/run/toolkit.pid"
    wait "$pid"
    [ "$(cat "$work/status")" = 0 ]
    [ "$(tail -n 1 "$work/log")" = 'level=info msg="Signal received, exiting early"' ]
    [ ! -e "$machine/run/toolkit.pid" ]
    rm "$work/log"
  done
  is_whole
}

@test "before the driver is loaded the runtime is the low-level one; so it is for a bundle that asks for nothing" {
  where
  printf '{}\n' >"$machine/docker/daemon.json"
  installer "${for_docker[@]}" --no-daemon --driver-root=/none
  # shellcheck disable=SC2016
  run on_host unshare --mount --propagation private sh -c 'mount -t tmpfs none /proc/driver && exec "$1" create --bundle /none x' sh "$toolkit/nvidia-container-runtime"
  [ "$status" -ne 0 ]
  [[ ${lines[0]} =~ ^"nvidia driver modules are not yet loaded, invoking "/.*/runc" directly"$ ]]
}

@test "CRI-O: the configuration and the hook, and what stays when it goes" {
  local conf=$machine/crio.conf.d/99-nvidia.toml pid
  mkdir -p "$machine/crio.conf.d"
  installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=none --no-daemon
  [ "$status" -eq 0 ]
  grep -qxF 'default_runtime = "nvidia"' "$conf"
  [ "$(grep -cE 'runtime_path = "'"$toolkit"'/nvidia-container-runtime(|.cdi|.legacy)"' "$conf")" -eq 3 ]
  stay --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=none
  pid=$(cat "$machine/run/toolkit.pid")
  within 15 is_idle "$pid"
  [[ ${GRAFT_BUILD:-} == *asan ]] || [ "$(on_host sed -n 's/^VmRSS:\s*\([0-9]*\) kB/\1/p' "/proc/$pid/status")" -lt 8192 ]
  stop_installer
  run ! grep -q default_runtime "$conf"
  [ "$(grep -c runtime_path "$conf")" -eq 3 ]
  stay --runtime=crio --config-mode=hook --hooks-dir="$machine/hooks.d"
  [ "$(jq -r .hook.path "$machine/hooks.d/oci-nvidia-hook.json")" = "$toolkit/nvidia-container-runtime-hook" ]
  rm "$machine/hooks.d/oci-nvidia-hook.json"
  within 5 test -e "$machine/hooks.d/oci-nvidia-hook.json"
  stop_installer
  [ ! -e "$machine/hooks.d/oci-nvidia-hook.json" ]
}

@test "CRI-O is restarted by systemctl of the host's root where systemd's socket is not there; its failure is told" {
  local conf=$machine/crio.conf.d/99-nvidia.toml root=$work/host variable
  where
  mkdir -p "$machine/crio.conf.d" "$root/bin" "$root/usr/bin"
  cp /bin/busybox "$root/bin/"
  # shellcheck disable=SC2016
  printf '#!/bin/busybox sh\necho "$PWD $PATH: $0 $*" >>/told\n[ ! -e /fails ] || { echo "Unit crio.service not found." >&2; exit 5; }\n' >"$root/usr/bin/systemctl"
  chmod +x "$root/usr/bin/systemctl"
  installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=systemd --host-root="$root" --no-daemon
  [ "$status" -eq 0 ]
  [[ $output == *'msg="Restarting crio using systemd"'* ]]
  [ "$(cat "$root/told")" = "/ /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin: /usr/bin/systemctl restart crio.service" ]
  # Nothing changed.
  installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=systemd --host-root="$root" --no-daemon
  [ "$(wc -l <"$root/told")" -eq 1 ]
  # CRI-O sends nothing before it is asked: it is the process that listens. The file is newer than that.
  # shellcheck disable=SC2016
  on_host python3 -c 'import socket, sys, time
open("/proc/self/comm", "w").write("crio"); s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(8); time.sleep(60)' "$work/crio" >/dev/null 2>&1 3>&- 4>&- &
  within 5 test -S "$work/crio"
  installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=systemd --host-root="$root" --socket="$work/crio" --no-daemon
  [[ $output == *'msg="crio has already read its configuration: not restarting it"'* ]]
  for variable in RUNTIME_SOCKET CONTAINERD_SOCKET DOCKER_SOCKET; do
    export "$variable=$work/crio"
    installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=systemd --host-root="$root" --no-daemon
    [[ $output == *'msg="crio has already read its configuration: not restarting it"'* ]] || die "$variable: $output"
    unset "$variable"
  done
  # The clock has been set back since.
  touch -d '1 day' "$conf"
  installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=systemd --host-root="$root" --socket="$work/crio" --no-daemon
  [[ $output == *'msg="crio has already read its configuration: not restarting it"'* ]] || die "$output"
  touch "$conf"
  installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=systemd --host-root="$root" --socket="$work/crio" --no-daemon
  [ "$(wc -l <"$root/told")" -eq 2 ]
  end_programs KILL crio
  touch "$root/fails" "$machine/nv/.engine-has-to-read"
  installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=systemd --host-root="$root" --no-daemon
  [ "$status" -eq 1 ]
  [[ $output == *"error restarting crio using systemd: systemctl restart crio.service: exit status 5: Unit crio.service not found."* ]]
  # What could not be done is done at the next start.
  [ -e "$machine/nv/.engine-has-to-read" ]
  rm "$root/usr/bin/systemctl"
  installer --runtime=crio --config=/none --drop-in-config="$conf" --restart-mode=systemd --host-root="$root" --no-daemon
  [ "$status" -eq 1 ]
  [[ $output == *"error restarting crio using systemd: "*systemctl*"no such file or directory"* ]]
}

@test "nodes: 'control' makes them below the root of devices; none or an empty item, wherever it stands, turns all off" {
  local value given dev=$work/root
  for given in --create-device-nodes={control,none,",","control,",",control","control,none","control,,control",""} CREATE_DEVICE_NODES={control,none}; do
    value=${given#*=}
    rm -rf "$dev"
    mkdir -p "$dev/dev"
    if [[ $given == --* ]]; then
      installer --no-daemon --no-runtime-config --cdi-enabled --cdi-output-dir="$work/cdi" --dev-root=/other --dev-root-ctr-path="$dev" "$given"
    else
      export "${given?}"
      installer --no-daemon --no-runtime-config --cdi-enabled --cdi-output-dir="$work/cdi" --dev-root=/other --dev-root-ctr-path="$dev"
      unset CREATE_DEVICE_NODES
    fi
    if [ "$value" = control ]; then
      [ "$(stat -c '%F %t:%T' "$dev/dev/nvidiactl")" = "character special file c3:ff" ] || { say "$output" && return 1; }
    else
      [ -z "$(ls "$dev/dev")" ] || { say "$given: $(ls "$dev/dev")" && return 1; }
    fi
  done
}

@test "the management specification: of another kind, and with the nodes of another root, by flag and by variable" {
  local file=$work/cdi/a.b-c.yaml dev=$work/root given
  local words=(--no-daemon --no-runtime-config --cdi-enabled --cdi-output-dir="$work/cdi" --create-device-nodes=none --dev-root-ctr-path="$dev")
  mkdir -p "$dev/dev"
  on_host cp -a /dev/nvidia0 /dev/nvidiactl "$dev/dev"
  installer "${words[@]}"
  [ "$status" -eq 0 ] || die "$output"
  [ "$(ls "$work/cdi")" = management.nvidia.com-gpu.yaml ]
  grep -qxF 'kind: management.nvidia.com/gpu' "$work/cdi/management.nvidia.com-gpu.yaml"
  run ! grep -F /other "$work/cdi/management.nvidia.com-gpu.yaml"
  for given in NVIDIA_DEV_ROOT DEV_ROOT --; do
    rm -r "$work/cdi"
    if [ "$given" = -- ]; then
      installer "${words[@]}" --cdi-kind=a.b/c --dev-root=/other
    else
      export CDI_KIND=a.b/c "$given=/other"
      installer "${words[@]}"
      unset CDI_KIND "$given"
    fi
    [ "$status" -eq 0 ] || die "$given: $output"
    [ "$(ls "$work/cdi")" = a.b-c.yaml ] || die "$given: $(ls "$work/cdi")"
    grep -qxF 'kind: a.b/c' "$file"
    # The nodes alone.
    grep -qE '(hostPath|path): /other/dev/nvidia0$' "$file" || die "$given: $(grep -n nvidia0 -B1 -A1 "$file")"
    run ! grep -E '/other/(usr|lib)' "$file"
  done
  # Nodes and files are seen below the same directory, but are elsewhere on the node.
  on_host mkdir "$work/seen"
  on_host mount --rbind --make-rslave / "$work/seen"
  installer "${words[@]}" --driver-root-ctr-path="$work/seen" --dev-root-ctr-path= --driver-root=/driver --dev-root=/other
  on_host umount --recursive --lazy "$work/seen"
  [ "$status" -eq 0 ] || die "$output"
  file=$work/cdi/management.nvidia.com-gpu.yaml
  grep -oE '(hostPath|path): /(other|driver)/[^/]*' "$file" | sort -u >"$work/places"
  [ "$(paste -sd, "$work/places")" = "hostPath: /driver/lib,hostPath: /driver/run,hostPath: /driver/usr,hostPath: /other/dev" ] || die "$(cat "$work/places")"
  run ! grep -F "$work/seen" "$file"
}

@test "config-source=command: containerd's own answer, from the host's root; then the file" {
  local host=$work/host conf=$work/etc/conf.d/99-nvidia.toml words
  cp -a "$(image small)" "$host"
  mkdir -p "$host/usr/bin"
  cat >"$host/usr/bin/containerd" <<'SH'
#!/bin/sh
echo "$* $(pwd)" >>/said
case "$*" in
--version) echo "containerd github.com/containerd/containerd 1.7.24 x" ;;
"config dump") printf 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\ndefault_runtime_name = "kata"\n%s\nruntime_type = "io.dumped.v9"\n%s\nBinaryName = "/opt/kata"\n' \
  '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]' '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata.options]' ;;
*) exit 9 ;;
esac
SH
  chmod 0755 "$host/usr/bin/containerd"
  words=(--runtime=containerd --no-daemon --restart-mode=none --pid-file="$machine/run/toolkit.pid" --toolkit-install-dir="$machine/nv"
    --toolkit-source-root="$machine/source" --host-root="$host" --driver-root=/ --driver-root-ctr-path=/ --config="$work/etc/config.toml" --drop-in-config="$conf")
  # The default of the option.
  run -0 on_host nvidia-ctk-installer "${words[@]}"
  [ "$(sort -u "$host/said" | paste -sd,)" = "--version /,config dump /" ]
  # Of our three; and of kata, which containerd 1.7 would forget if the file did not repeat it.
  [ "$(grep -cxF 'runtime_type = "io.dumped.v9"' "$conf")" -eq 4 ]
  grep -qxF 'runtimes = ["/opt/kata", "runc", "crun"]' "$toolkit/.config/nvidia-container-runtime/config.toml"
  printf '#!/bin/sh\necho "no such thing" >&2; exit 4\n' >"$host/usr/bin/containerd"
  run -0 on_host nvidia-ctk-installer "${words[@]}"
  [[ $output == *'level=info msg="Could not load config from \"command\": failed to load config: failed to run command containerd [config dump]: exit status 4: no such thing"'* ]]
  run -1 on_host nvidia-ctk-installer "${words[@]}" --config-source=command
  [[ ${lines[-1]} == *'error running nvidia-ctk-installer: unable to determine the low-level runtimes: unable to load config for runtime containerd: failed to load config: failed to run command containerd [config dump]: exit status 4: no such thing. See its message, or run it by hand to find out more."' ]] || die "$output"
  # A program by its path is one of the host's root, too.
  printf '#!/bin/sh\necho "$0" >>/said\n' >"$host/opt-containerd"
  chmod 0755 "$host/opt-containerd"
  run -0 on_host nvidia-ctk-installer "${words[@]}" --config-source=command --executable-path=/opt-containerd
  [ "$(tail -n 1 "$host/said")" = /opt-containerd ]
  echo none >>"$host/said"
  run -0 on_host env RUNTIME_EXECUTABLE_PATH=/opt-containerd nvidia-ctk-installer "${words[@]}" --config-source=command
  [ "$(tail -n 1 "$host/said")" = /opt-containerd ]
}

@test "doctor node: whose the engine's files are, and two installers by name" {
  local drop_in=/etc/containerd/conf.d/99-nvidia.toml pid
  on_host mountpoint -q /etc/containerd || skip "this machine has no /etc/containerd"
  stay --runtime=containerd --restart-mode=none
  pid=$(cat "$machine/run/toolkit.pid")
  run on_host nvidia-ctk doctor node
  [[ $(tr -s ' \n' ' ' <<<"$output") == *"ok toolkit-owner $drop_in: gives containerd the runtime 'nvidia': $toolkit/nvidia-container-runtime, of an installer: process $pid, which installs to $toolkit"* ]] || { say "$output" && return 1; }
  [[ $output == *$'\nThis node is '*"ready for pods with GPUs."$'\n'* ]]
  on_host env TOOLKIT_INSTALL_DIR="$machine/nv2" nvidia-ctk-installer --pid-file="$machine/run2/toolkit.pid" --toolkit-source-root="$machine/source" --host-root=/ \
    --no-runtime-config >"$work/log2" 2>&1 3>&- 4>&- &
  within 20 grep -q 'msg="Waiting for signal"' "$work/log2"
  run on_host nvidia-ctk doctor node
  [[ $(tr -s ' \n' ' ' <<<"$output") == *"broken toolkit-owner two installers: process "*"which installs to $machine/nv"*", and process "*", change the same files of the engine -> Keep one: "* ]] || { say "$output" && return 1; }
  rm "$toolkit/nvidia-cdi-hook"
  end_programs KILL nvidia-ctk-installer
  rm -rf "$toolkit/nvidia-ctk"
  run on_host nvidia-ctk doctor node
  [[ $(tr -s ' \n' ' ' <<<"$output") == *"broken toolkit-owner $toolkit: is incomplete: "* ]] || { say "$output" && return 1; }
  on_host rm -rf /etc/containerd/conf.d /etc/containerd/config.toml "$machine/nv2"
}

@test "NRI: served by a program of its own, which ends with the installer; without a socket nothing is served" {
  [ -x "$build/src/daemon/nvidia-nri-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  install -m 0755 "$build/src/daemon/nvidia-nri-plugin" "$BATS_FILE_TMPDIR/bin"
  installer --runtime=containerd --enable-nri-plugin --nri-namespace=gpu-operator --nri-socket=/none
  [ "$status" -eq 1 ]
  [[ ${lines[-1]} == *'msg="error running nvidia-ctk-installer: unable to start the NRI plugin: unable to connect to the NRI socket /none: no such file or directory.'* ]]
  # An engine that accepts and says nothing.
  # shellcheck disable=SC2016
  on_host python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(8); time.sleep(60)' "$work/nri" >/dev/null 2>&1 3>&- 4>&- &
  within 5 test -S "$work/nri"
  stay --runtime=containerd --config=/none/config.toml --enable-nri-plugin --nri-namespace=gpu-operator --nri-socket="$work/nri" --nri-plugin-index=7 \
    --nri-management-cdi-device-namespaces=a,b
  grep -qF "Serving NRI on $work/nri by $BATS_FILE_TMPDIR/bin/nvidia-nri-plugin" "$work/log"
  within 5 on_host pidof nvidia-nri-plugin
  on_host sh -c 'tr "\\0" " " </proc/$(pidof nvidia-nri-plugin)/cmdline' >"$work/words" || { cat "$work/log" && return 1; }
  grep -qF -- "--nri-socket=$work/nri --nri-plugin-index=07 --nri-namespace=gpu-operator --nri-management-cdi-device-namespaces=a,b --cdi-kind=management.nvidia.com/gpu --driver-root=/ --driver-root-ctr-path=/ --config=$toolkit/.config/nvidia-container-runtime/config.toml --nvidia-cdi-hook-path=$toolkit/nvidia-cdi-hook" "$work/words"
  [ ! -e /none ]
  stop_installer
  within 5 no_program nvidia-nri-plugin
  # The same by variables, as the operator gives them.
  export ENABLE_NRI_PLUGIN=true NRI_NAMESPACE=own NRI_SOCKET=$work/nri NRI_PLUGIN_INDEX=8 NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES=x,y
  stay --runtime=containerd
  unset ENABLE_NRI_PLUGIN NRI_NAMESPACE NRI_SOCKET NRI_PLUGIN_INDEX NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES
  within 5 on_host pidof nvidia-nri-plugin
  on_host sh -c 'tr "\\0" " " </proc/$(pidof nvidia-nri-plugin)/cmdline' >"$work/words" || { cat "$work/log" && return 1; }
  grep -qF -- "--nri-socket=$work/nri --nri-plugin-index=08 --nri-namespace=own --nri-management-cdi-device-namespaces=x,y --cdi-kind=management.nvidia.com/gpu" "$work/words"
  end_programs KILL nvidia-nri-plugin
  within 5 grep -qF 'msg="error running nvidia-ctk-installer: the NRI plugin has ended with status 137.' "$work/log" || { cat "$work/log" && return 1; }
}

@test "K3s that imports no drop-ins: an error, but its next start finds the toolkit" {
  local config=$work/k3s/config.toml
  mkdir "$work/k3s"
  printf '# File generated by k3s. DO NOT EDIT. Use config-v3.toml.tmpl instead.\nversion = 3\n' | tee "$work/before" >"$config"
  installer --no-daemon --runtime=containerd --config="$config" --drop-in-config= --socket=/run/containerd-suite/sock
  [ "$status" -eq 1 ]
  [[ $output == *"unable to setup runtime: $config is written by K3s or RKE2 at each start, and no directory of drop-in files is imported"* ]] || die "$output"
  is_whole
  cmp "$work/before" "$config"
}

@test "K3s that imports drop-ins since an upgrade: a template that an earlier run has changed is restored" {
  local k3s=$work/k3s words
  words=(--no-daemon --runtime=containerd --config="$k3s/config-v3.toml.tmpl" --drop-in-config= --restart-mode=none)
  mkdir "$k3s"
  printf 'version = 3\n# mine\n' | tee "$work/before" >"$k3s/config-v3.toml.tmpl"
  printf '# File generated by k3s. DO NOT EDIT. Use config-v3.toml.tmpl instead.\nversion = 3\n' >"$k3s/config.toml"
  installer "${words[@]}"
  grep -qF "$toolkit/nvidia-container-runtime" "$k3s/config-v3.toml.tmpl"
  printf 'imports = ["%s/config-v3.toml.d/*.toml"]\n' "$k3s" >>"$k3s/config.toml"
  installer "${words[@]}"
  [ "$status" -eq 0 ] || die "$output"
  cmp "$work/before" "$k3s/config-v3.toml.tmpl"
  grep -qF "$toolkit/nvidia-container-runtime" "$k3s/config-v3.toml.d/99-nvidia.toml"
  # The same entries by an administrator, of which no backup tells, stay.
  rm -f "$k3s/config-v3.toml.tmpl.nvidia-ctk.bak"
  printf 'version = 3\n[plugins."io.containerd.cri.v1.runtime".containerd]\ndefault_runtime_name = "nvidia"\n' | tee "$work/before" >"$k3s/config-v3.toml.tmpl"
  installer "${words[@]}"
  [ "$status" -eq 0 ] || die "$output"
  cmp "$work/before" "$k3s/config-v3.toml.tmpl"
}

@test "where nothing can be installed or locked: the cause, and what to do" {
  local mode failed='error running nvidia-ctk-installer: ' words=(--no-daemon --runtime=docker --config="$work/daemon.json" --restart-mode=none)
  mkdir -p "$machine/nv/toolkit"
  on_host mount -t tmpfs none "$machine/nv/toolkit"
  installer "${words[@]}"
  on_host umount "$machine/nv/toolkit"
  [[ ${lines[-1]} == *"$failed""unable to install toolkit: failed to exchange $toolkit: resource busy. It is a mount point: mount its parent directory instead.\"" ]] || die "$output"
  on_host mount -t tmpfs -o ro none "$machine/nv"
  installer "${words[@]}"
  on_host umount "$machine/nv"
  [[ ${lines[-1]} == *"$failed""unable to install toolkit: failed to create $machine/nv/.graft-toolkit-0: read-only file system. Set --toolkit-install-dir to a directory that can be written, such as one below /var.\"" ]] || die "$output"
  on_host mount -t tmpfs -o size=64k none "$machine/nv"
  installer "${words[@]}"
  [ -z "$(on_host ls -A "$machine/nv")" ]
  on_host umount "$machine/nv"
  [[ ${lines[-1]} == *"no space left on device. Free some space: 'df -h' and 'df -i' show which file system is full.\"" ]] || die "$output"
  for kind in "ln -s /etc/passwd" mkfifo mkdir; do
    # shellcheck disable=SC2086
    $kind "$machine/run/toolkit.pid"
    installer "${words[@]}"
    rm -r "$machine/run/toolkit.pid"
    [[ ${lines[-1]} == *"$failed""unable to create pidfile: $machine/run/toolkit.pid is not a regular file. Remove it.\"" ]] || die "$output"
  done
  # What other users may have put there: another name of root's file, and their own file.
  mode=$(stat -c %a "$machine/run")
  chmod 1777 "$machine/run"
  echo precious >"$machine/run/file"
  for kind in ln mv; do
    "$kind" "$machine/run/file" "$machine/run/toolkit.pid"
    [ "$kind" = ln ] || chown 12345 "$machine/run/toolkit.pid"
    installer "${words[@]}"
    [[ ${lines[-1]} == *"$failed""unable to create pidfile: $machine/run/toolkit.pid belongs to another user or has another name. Remove it.\"" ]] || die "$output"
    [ "$(cat "$machine/run/toolkit.pid")" = precious ]
    rm "$machine/run/toolkit.pid"
  done
  chmod "$mode" "$machine/run"
  [ ! -e "$work/daemon.json" ]
  mkdir "$work/daemon.json"
  installer "${words[@]}"
  rmdir "$work/daemon.json"
  [[ ${lines[-1]} == *"$failed""unable to determine the low-level runtimes: unable to load config for runtime docker: unable to read config: cannot read $work/daemon.json: it is not a regular file. Remove it, or name another file.\"" ]] || die "$output"
  # A link of the node, as the operator's pod sees it.
  ln -s "$work/elsewhere/daemon.json" "$work/daemon.json"
  mkdir "$work/elsewhere"
  installer "${words[@]}" --host-root="$work"
  [[ ${lines[-1]} == *"$failed""unable to setup runtime: $work/daemon.json is a link to $work/elsewhere/daemon.json, which this container does not have. Mount the directory of the link's target at the same path.\"" ]] || die "$output"
  [ -z "$(ls "$work/elsewhere")" ]
  # On the node itself it is made.
  installer "${words[@]}"
  [ "$status" -eq 0 ] || die "$output"
  [ -s "$work/elsewhere/daemon.json" ]
}
