# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the suites share that let nvidia-ctk-installer register with containerd of another release, whose files are in their usual places; on top of
# engines.bash and nri.bash. Only containerd itself knows that it is in a test: its configuration is $machine/containerd, mounted at /etc/containerd.

# start_installer_machine RELEASE VERSION: of Debian, and of containerd's configuration.
start_installer_machine() {
  need_nri_plugin
  start_machine dgx-h100
  install_nri_plugin
  use_engines "$1" containerd ctr || return
  [ ! -e "$machine/why" ] || return 0
  on_host mountpoint -q /etc/containerd || { say "this machine has no /etc/containerd" >"$machine/why" && return; }
  configure_plain_containerd "$2"
  on_host mount --bind "$machine/containerd" /etc/containerd
  restart_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  make_source "$machine/source"
  start_pod_resources
}

# configure_plain_containerd VERSION: knows nothing of us; its NRI is on.
configure_plain_containerd() {
  local cri='io.containerd.grpc.v1.cri' image='io.containerd.grpc.v1.cri' pause='sandbox_image = "docker.io/library/pause:latest"'
  if [ "$1" = 3 ]; then
    cri=io.containerd.cri.v1.runtime image=io.containerd.cri.v1.images pause='pinned_images = {sandbox = "docker.io/library/pause:latest"}'
  fi
  mkdir -p "$machine/containerd/conf.d"
  {
    say "# An administrator's own words."
    containerd_head "$1"
  } >"$machine/containerd/config.toml"
  [ "$1" = 2 ] || printf '[plugins."%s"]\n%s\n' "$image" "$pause" >>"$machine/containerd/config.toml"
  cat >>"$machine/containerd/config.toml" <<TOML
[plugins."$cri"]
$([ "$1" = 3 ] || say "$pause")
# Below 0 a score may only go with a right that not every machine gives its root.
restrict_oom_score_adj = true
[plugins."$cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
TOML
}

installer_setup() {
  need_engines
  engine_setup
  toolkit=$machine/nv/toolkit
}
installer_teardown() {
  [ ! -e "$machine/why" ] || return 0
  # shellcheck disable=SC2016
  on_host sh -c 'kill $(pidof nvidia-ctk-installer) 2>/dev/null; while pidof nvidia-ctk-installer >/dev/null; do sleep 0.05; done; true'
  engine_teardown
}

# stay OPTION...: in the background; its log is $work/log.
stay() {
  : >"$work/log" # here, so that nobody reads what an earlier one wrote
  on_host nvidia-ctk-installer --pid-file="$machine/run/toolkit.pid" --toolkit-install-dir="$machine/nv" --toolkit-source-root="$machine/source" \
    --runtime=containerd --socket=/run/containerd-suite/sock --host-root=/ --driver-root=/ --driver-root-ctr-path=/ --set-as-default=false "$@" \
    >"$work/log" 2>&1 3>&- 4>&- &
}
# pidof(1) does not find a process that is about to close its files.
installer_is_gone() { ! on_host pidof nvidia-ctk-installer >/dev/null && flock --nonblock "$machine/run/toolkit.pid" true; }
has_log() { grep -q "$1" "$work/log"; }
await_log() { within 20 has_log "$1" || { cat "$work/log" && return 1; }; }
# as_systemd PID: containerd, which a signal ends, is started again.
as_systemd() {
  within 20 has_ended "$1" || { cat "$work/log" && return 1; }
  restart_containerd
}

# --- cases of both releases ---

installer_pods() {
  local pid drop_in=$machine/containerd/conf.d/99-nvidia.toml
  cp "$machine/containerd/config.toml" "$work/before"
  pid=$(our_containerd)
  stay --cdi-enabled
  await_log "Sending SIGHUP signal to containerd (PID $pid)"
  as_systemd "$pid"
  await_log 'msg="Waiting for signal"'
  # What was added to the file is an import.
  diff "$work/before" "$machine/containerd/config.toml" | grep '^[<>]' >"$work/added" || true
  [ "$(cat "$work/added")" = '> imports = ["/etc/containerd/conf.d/*.toml"]' ] || { cat "$machine/containerd/config.toml" && return 1; }
  grep -qF "BinaryName = \"$toolkit/nvidia-container-runtime\"" "$drop_in"
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=2,3
  expect_gpus 2 3
  expect_libraries
  cri_run --handler nvidia-legacy --env NVIDIA_VISIBLE_DEVICES=1
  expect_gpus 1
  # CDI is on; the specification is the one for management.
  cri_run --cdi-device management.nvidia.com/gpu=all
  expect_gpus 0 1 2 3 4 5 6 7
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
  # The pod is started again.
  pid=$(our_containerd)
  on_host sh -c 'kill -KILL $(pidof nvidia-ctk-installer)'
  within 10 installer_is_gone
  stay --cdi-enabled
  await_log 'msg="Waiting for signal"'
  has_log 'msg="containerd has already read its configuration: not signaling it"'
  [ "$(our_containerd)" = "$pid" ]
  on_host sh -c 'kill -TERM $(pidof nvidia-ctk-installer)'
  await_log 'msg="Completed nvidia-ctk-installer"'
  as_systemd "$pid"
  cmp "$work/before" "$machine/containerd/config.toml"
  [ -z "$(ls "$machine/containerd/conf.d")" ]
  cri_run --handler nvidia
  [ "$status" -ne 0 ]
}

# k3s_start: as K3s starts: writes containerd's configuration anew, with the runtimes that it finds; a template that extends its own changes nothing here.
k3s_start() {
  local cri="plugins.'io.containerd.cri.v1.runtime'" name
  {
    say '# File generated by k3s. DO NOT EDIT. Use config-v3.toml.tmpl instead.'
    say "imports = [\"$k3s/config-v3.toml.d/*.toml\"]"
    containerd_head 3
    cat <<TOML
[plugins.'io.containerd.cri.v1.images']
pinned_images = {sandbox = "docker.io/library/pause:latest"}
[$cri]
restrict_oom_score_adj = true
[$cri.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
TOML
    for name in nvidia nvidia-cdi; do
      [ -e "$toolkit/${name/nvidia/nvidia-container-runtime}" ] || continue
      printf "[%s.containerd.runtimes.'%s']\n" "$cri" "$name"
      printf 'runtime_type = "io.containerd.runc.v2"\n'
      printf "[%s.containerd.runtimes.'%s'.options]\n" "$cri" "$name"
      printf 'BinaryName = "%s"\n' "$toolkit/nvidia-container-runtime${name#nvidia}"
    done
  } >"$k3s/config.toml"
  sed -i s/runtime-cdi/runtime.cdi/ "$k3s/config.toml"
  cp "$k3s/config.toml" "$machine/containerd/config.toml"
  restart_containerd
}

installer_k3s() {
  local k3s=$machine/k3s/agent/etc/containerd pid
  mkdir -p "$k3s" "$machine/k3s/data/current/bin"
  ln -sf "$(readlink -f "$BATS_FILE_TMPDIR/bin/containerd")" "$machine/k3s/data/current/bin/containerd"
  printf '{{ template "base" . }}\n[debug]\n  level = "info"\n' | tee "$work/template" >"$k3s/config-v3.toml.tmpl"
  rm -rf "$toolkit"
  k3s_start
  pid=$(our_containerd)
  stay --config="$k3s/config-v3.toml.tmpl"
  await_log "config.toml is written by K3s or RKE2, and imports $k3s/config-v3.toml.d: using $k3s/config-v3.toml.d/99-nvidia.toml"
  await_log "Sending SIGHUP signal to containerd (PID $pid)"
  within 20 has_ended "$pid"
  # K3s ends with its containerd, and is started again.
  k3s_start
  grep -qF "$toolkit/nvidia-container-runtime" "$k3s/config.toml"
  # This containerd merges key by key: nothing of K3s's is repeated.
  run ! grep "runc]" "$k3s/config-v3.toml.d/99-nvidia.toml"
  await_log 'msg="Waiting for signal"'
  for name in nvidia nvidia-legacy; do
    cri_run --handler "$name" --env NVIDIA_VISIBLE_DEVICES=2,3
    expect_gpus 2 3
  done
  # systemctl restart k3s
  k3s_start
  pid=$(our_containerd)
  cri_run --handler nvidia-legacy --env NVIDIA_VISIBLE_DEVICES=1
  expect_gpus 1
  sleep 1
  [ "$(our_containerd)" = "$pid" ]
  run ! grep 'was repaired' "$work/log"
  on_host sh -c 'kill -TERM $(pidof nvidia-ctk-installer)'
  await_log 'msg="Completed nvidia-ctk-installer"'
  within 20 has_ended "$pid"
  k3s_start
  [ -z "$(ls "$k3s/config-v3.toml.d")" ]
  cmp "$work/template" "$k3s/config-v3.toml.tmpl"
  cri_run --handler nvidia-legacy
  [ "$status" -ne 0 ]
  # What K3s has found by itself stays.
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=4
  expect_gpus 4
}

# The operator's pod has nothing of the kubelet but the node's root.
installer_nri() {
  local pid host=$work/host kubelet=$work/host/data/kubelet
  cp -r "$machine/containerd/conf.d" "$machine/containerd/config.toml" "$work"
  pid=$(our_containerd)
  mkdir -p "$kubelet/pod-resources" "$kubelet/device-plugins" "$host/var/lib"
  ln -s /data/kubelet "$host/var/lib/kubelet"
  touch "$kubelet/pod-resources/kubelet.sock"
  on_host mount --bind /run/pods.sock "$kubelet/pod-resources/kubelet.sock"
  stay --enable-nri-plugin --nri-namespace=gpu-operator --nri-socket=/run/nri/nri.sock --host-root="$host"
  await_log 'registered as 10-graft'
  await_log 'msg="Waiting for signal"'
  [ "$(our_containerd)" = "$pid" ]
  give_gpus 2 5
  cri_run --env "NVIDIA_VISIBLE_DEVICES=$uuids"
  expect_gpus 2 5
  given </dev/null
  # An image that asks for itself.
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
  cri_run --annotation nvidia.cdi.k8s.io/pod=management.nvidia.com/gpu=all --namespace gpu-operator
  expect_gpus 0 1 2 3 4 5 6 7
  on_host sh -c 'kill -TERM $(pidof nvidia-ctk-installer)'
  await_log 'msg="Completed nvidia-ctk-installer"'
  within 5 eval '! on_host pidof nvidia-nri-plugin >/dev/null'
  [ "$(our_containerd)" = "$pid" ]
  diff -r "$machine/containerd/conf.d" "$work/conf.d" && cmp "$machine/containerd/config.toml" "$work/config.toml"
  on_host umount "$kubelet/pod-resources/kubelet.sock"
}
