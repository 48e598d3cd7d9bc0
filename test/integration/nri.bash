# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the suites share that give pods their GPUs through NRI; on top of engines.bash. The engine knows nothing of us: it has neither our runtimes nor CDI,
# and the pods have no RuntimeClass.

# start_nri_machine RELEASE: containerd of that release of Debian with NRI, a kubelet that says which devices it has given, and the plugin.
start_nri_machine() {
  need_nri_plugin
  start_machine "${topology:-dgx-h100}"
  install_nri_plugin
  use_engines "$1" containerd ctr || return
  [ ! -e "$machine/why" ] || return 0
  configure_nri_containerd
  restart_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  start_pod_resources
}
need_nri_plugin() {
  [ -x "$build/src/daemon/nvidia-nri-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
}
install_nri_plugin() {
  install -m 0755 "$build/src/daemon/nvidia-nri-plugin" "$BATS_FILE_TMPDIR/bin/"
  install -m 0755 "$top/test/kubernetes/pod_resources.py" "$top/test/tools/cri_storm" "$BATS_FILE_TMPDIR/programs"
}
start_pod_resources() {
  given </dev/null
  on_host /usr/bin/python3 "$BATS_FILE_TMPDIR/programs/pod_resources.py" /run/pods.sock "$machine/given" >"$machine/pods.log" 2>&1 3>&- 4>&- &
  within 10 on_host test -S /run/pods.sock
}

# A suite with another engine defines these two, and CRI_SOCKET.
engine_pid() { our_containerd; }
restart_engine() { restart_containerd; }

# containerd_head VERSION: how its configuration begins: in places of the machine's own, and with NRI, whose table is the last one.
containerd_head() {
  cat <<TOML
version = $1
root = "$machine/containerd/root"
state = "$machine/containerd/state"
[grpc]
  address   = "/run/containerd-suite/sock"
$(page_file nri nri.toml)
socket_path = "/run/nri/nri.sock"
TOML
}

# configure_nri_containerd [CDI]: whether it reads CDI specifications itself; by default not.
configure_nri_containerd() {
  mkdir -p "$machine/containerd"
  containerd_head 2 >"$machine/containerd/config.toml"
  cat >>"$machine/containerd/config.toml" <<TOML
plugin_path = "$machine/nri-plugins"
plugin_config_path = "$machine/nri-config"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/library/pause:latest"
stream_server_address = "127.0.0.1"
# Below 0 a score may only go with a right that not every machine gives its root.
restrict_oom_score_adj = true
enable_cdi = ${1:-false}
cdi_spec_dirs = ["$machine/cdi"]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
TOML
}

# given: what stands on stdin, "NAMESPACE POD CONTAINER ID...", is what the kubelet has given.
given() { cat >"$machine/given.new" && mv "$machine/given.new" "$machine/given"; }
# give_gpus INDEX...: to the pod of test/tools/cri; $uuids are their names, with commas between.
give_gpus() {
  local index all
  mapfile -t all < <(host_uuids)
  uuids=
  for index; do uuids+=${uuids:+,}${all[index]}; done
  given <<<"default pod container ${uuids//,/ }"
}

# start_nri [OPTION...]: the plugin, which is registered then.
start_nri() {
  launch_nri "$@"
  await_nri
}
launch_nri() {
  # In the background of a shell of the machine: nsenter would stop along with it, and not go on.
  on_host sh -c '"$@" & wait' sh nvidia-nri-plugin --nri-socket=/run/nri/nri.sock --pod-resources-socket=/run/pods.sock --kubelet-checkpoint="$machine/checkpoint" \
    --nri-namespace=graft-system --listen=/run/nri-metrics "$@" >"$work/nri.log" 2>&1 3>&- 4>&- &
}
await_nri() {
  within 20 nri_is_registered && return
  cat "$work/nri.log" >&2
  die "the plugin is not registered"
}
nri_is_registered() { [ "$(metric graft_nri_registered)" = 1 ] && [ "$(metric graft_nri_host_reads_total)" != 0 ]; }
# metric NAME: its value.
metric() { on_host curl --silent --max-time 5 --unix-socket /run/nri-metrics http://plugin/metrics | sed -n "s/^$1 //p"; }
nri_has_read() { [ "$(metric graft_nri_host_reads_total)" -ge "$1" ]; }
nri_pid() { on_host pgrep --oldest nvidia-nri-plug; }
stop_nri() {
  local pid
  pid=$(nri_pid) || return 0
  on_host kill -CONT "$pid"
  on_host kill "$pid"
  within 10 has_ended "$pid"
}

nri_setup() {
  need_engines
  engine_setup
  given </dev/null
  rm -f "$machine/checkpoint"
}
nri_teardown() {
  [ -e "$machine/why" ] && return
  stop_nri
  engine_teardown
}

# --- cases of both releases ---

nri_by_variable() {
  start_nri
  give_gpus 2 5
  cri_run --env "NVIDIA_VISIBLE_DEVICES=$uuids"
  expect_gpus 2 5
  expect_libraries
  [ "$(metric 'graft_nri_containers_total{result="given"}')" = 1 ]
}

nri_by_mounts() {
  start_nri
  give_gpus 6
  cri_run --env NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices --mount "/dev/null:/var/run/nvidia-container-devices/$uuids"
  expect_gpus 6
}

# What an image or a pod sets itself gives nothing.
nri_own_request() {
  start_nri
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
  cri_run --env NVIDIA_VISIBLE_DEVICES=0 --mount /dev/null:/var/run/nvidia-container-devices/0
  expect_no_gpu
  # Not even what would be an error is a reason to refuse a container that has no GPU.
  cri_run --env NVIDIA_VISIBLE_DEVICES=example.com/device=all
  expect_no_gpu
  give_gpus 1
  # CUDA's images say so: it is all that the kubelet has given.
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  expect_gpus 1
  cri_run --env NVIDIA_VISIBLE_DEVICES=0
  [ "$status" -ne 0 ]
  [[ $output == *"graft: container container of pod default/pod: NVIDIA_VISIBLE_DEVICES asks for $(host_uuids | sed -n 1p), which the kubelet has not allocated to this container. Ask for GPUs in the container's limits, and do not set NVIDIA_VISIBLE_DEVICES yourself."* ]]
}

# A device plugin with cdi-cri or cdi-annotations: the engine gives the GPU by CDI, whatever the image says, and the plugin adds nothing; nor where the
# specification leaves the image's variable as it is.
nri_by_cdi() {
  make_cdi
  configure_nri_containerd true
  restart_engine
  start_nri
  give_gpus 2
  for void in '.' 'del(.containerEdits.env)'; do
    jq "$void" "$machine/cdi/nvidia.json" >"$machine/cdi/new" && mv "$machine/cdi/new" "$machine/cdi/nvidia.json"
    for said in all 0 void; do
      cri_run --env NVIDIA_VISIBLE_DEVICES=$said --cdi-device nvidia.com/gpu=2
      expect_gpus 2
    done
    cri_run --env NVIDIA_VISIBLE_DEVICES=all --annotation cdi.k8s.io/nvidia-device-plugin_1=nvidia.com/gpu=2
    expect_gpus 2
  done
  [ "$(metric 'graft_nri_containers_total{result="nothing"}')" = 8 ]
  rm "$machine/cdi/nvidia.json"
  configure_nri_containerd
  restart_engine
  await_nri
  # Where the engine does not read CDI, the plugin gives what the kubelet has given.
  cri_run --env NVIDIA_VISIBLE_DEVICES=all --cdi-device nvidia.com/gpu=2
  expect_gpus 2
}

nri_foreign_annotation() {
  local expected
  start_nri --nri-management-cdi-device-namespaces=monitoring
  cri_run --annotation nvidia.cdi.k8s.io/pod=management.nvidia.com/gpu=all
  [ "$status" -ne 0 ]
  expected=$(page_file nri event.txt)
  expected=${expected/container main of pod default\/probe/container container of pod default/pod}
  [ -n "$expected" ]
  [[ $output == *"$expected"* ]] || die "$output"
  # The existing plugin gives this to everybody.
  cri_run --annotation nvidia.cdi.k8s.io/pod=nvidia.com/gpu=all
  [ "$status" -ne 0 ]
  [[ $output == *"which pods in the namespace 'default' may not use"* ]]
  cri_run --annotation nvidia.cdi.k8s.io/pod=management.nvidia.com/gpu=all,nvidia.com/gpu=0 --namespace graft-system
  [ "$status" -ne 0 ]
  for namespace in graft-system monitoring; do
    cri_run --annotation nvidia.cdi.k8s.io/pod=management.nvidia.com/gpu=all --namespace "$namespace"
    expect_gpus 0 1 2 3 4 5 6 7
  done
  [ "$(metric 'graft_nri_containers_total{result="refused"}')" = 3 ]
}

# With the switch, as the existing plugin: the container starts without.
nri_skipped_annotation() {
  config_toml <<TOML
[nri]
refused = "skip"
TOML
  start_nri
  cri_run --annotation nvidia.cdi.k8s.io/pod=management.nvidia.com/gpu=all
  expect_no_gpu
}

# Other kinds, where the administrator says so, in the words of docs/nri.md.
nri_allowed_kind() {
  make_cdi
  config_toml <<TOML
$(page_file nri allowed.toml)
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$machine/cdi"]
TOML
  start_nri
  cri_run --namespace monitoring --annotation nvidia.cdi.k8s.io/container.container=nvidia.com/gpu=3
  expect_gpus 3
  expect_libraries
  cri_run --namespace debug --annotation nvidia.cdi.k8s.io/pod=management.nvidia.com/gpu=all
  expect_gpus 0 1 2 3 4 5 6 7
  for namespace in default debug; do
    cri_run --namespace "$namespace" --annotation nvidia.cdi.k8s.io/pod=nvidia.com/gpu=3
    [ "$status" -ne 0 ]
    [[ $output == *"which pods in the namespace '$namespace' may not use"* ]]
  done
  cri_run --namespace monitoring --annotation nvidia.cdi.k8s.io/container.container=nvidia.com/gpu=9
  [ "$status" -ne 0 ]
  [[ $output == *"unresolvable CDI devices nvidia.com/gpu=9"* ]]
  cri_run --namespace monitoring --annotation nvidia.cdi.k8s.io/container.other=nvidia.com/gpu=3
  expect_no_gpu
  # Another configuration, and another specification, without a restart.
  jq '.devices |= map(select(.name != "3"))' "$machine/cdi/nvidia.json" >"$machine/cdi/new" && mv "$machine/cdi/new" "$machine/cdi/nvidia.json"
  within 10 nri_has_read 2
  cri_run --namespace monitoring --annotation nvidia.cdi.k8s.io/container.container=nvidia.com/gpu=3
  [ "$status" -ne 0 ]
  config_toml </dev/null
  on_host kill -HUP "$(nri_pid)"
  within 10 nri_has_read 3
  cri_run --namespace monitoring --annotation nvidia.cdi.k8s.io/container.container=nvidia.com/gpu=2
  [ "$status" -ne 0 ]
  [[ $output == *"which pods in the namespace 'monitoring' may not use"* ]]
}

# SPEC installer-and-nri 12: 20 kB in one frame would end the connection, and the container would start without them.
nri_large_adjustment() {
  mkdir -p "$machine/cdi"
  jq -n '{cdiVersion: "0.5.0", kind: "example.com/large", devices: [{name: "one", containerEdits: {env: ["LAST=1"]}}],
    containerEdits: {env: [range(200) | "LARGE_\(.)=" + ("x" * 100)]}}' >"$machine/cdi/large.json"
  config_toml <<TOML
[nri]
allowed = ["example.com/large:*"]
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$machine/cdi"]
TOML
  start_nri
  # shellcheck disable=SC2016
  cri_run --annotation nvidia.cdi.k8s.io=example.com/large=one -- /bin/sh -c 'env | grep -c ^LARGE_; env | grep ^LAST; cat /proc/self/environ | wc -c'
  [ "$status" -eq 0 ]
  [[ $output == $'200\nLAST=1\n'2[0-9][0-9][0-9][0-9] ]]
  [ "$(metric graft_nri_connections_lost_total)" = 0 ]
  rm "$machine/cdi/large.json"
}

# While it stands still, for more than two seconds, the engine does not wait for it. That is not hidden: the plugin registers again, and names the container.
nri_stopped_plugin() {
  local pid
  start_nri
  give_gpus 4
  pid=$(nri_pid)
  on_host kill -STOP "$pid"
  cri_run --env "NVIDIA_VISIBLE_DEVICES=$uuids" --between "kill -CONT $pid; sleep 2"
  expect_no_gpu
  await_nri
  [ "$(metric graft_nri_connections_lost_total)" = 1 ]
  [ "$(metric graft_nri_registrations_total)" = 2 ]
  [ "$(metric graft_nri_missed_containers_total)" = 1 ]
  grep -q "container container of pod default/pod was created without its devices while this plugin did not answer; delete the pod" "$work/nri.log"
  cri_run --env "NVIDIA_VISIBLE_DEVICES=$uuids"
  expect_gpus 4
}
# A kubelet that takes too long is a refusal before the engine stops waiting.
nri_slow_kubelet() {
  start_nri
  given <<<"wait 3"
  cri_run --env NVIDIA_VISIBLE_DEVICES=all
  [ "$status" -ne 0 ]
  [[ $output == *"desc = graft: container container of pod default/pod: the kubelet does not say which devices it has allocated to this container: no answer in time. Check that the plugin can reach the kubelet's PodResources socket." ]]
  given </dev/null
  cri_run
  expect_no_gpu
  [ "$(metric graft_nri_connections_lost_total)" = 0 ]
}

# Init containers are not in PodResources; the kubelet's checkpoint has them.
nri_init_container() {
  start_nri
  give_gpus 7
  given <<<"default pod other"
  jq -n --arg uuid "$uuids" '{Data: {PodDeviceEntries: [{PodUID: "uid-of-the-pod", ContainerName: "container", ResourceName: "nvidia.com/gpu",
    DeviceIDs: {"0": [$uuid]}, AllocResp: ""}], RegisteredDevices: {}}, Checksum: 0}' >"$machine/checkpoint"
  cri_run --env "NVIDIA_VISIBLE_DEVICES=$uuids"
  expect_gpus 7
}

# The engine starts the plugin itself, and gives it a connection; the plugin ends with it.
nri_started_by_engine() {
  local pid
  mkdir -p "$machine/nri-plugins"
  cat >"$machine/nri-plugins/20-graft" <<SH
#!/bin/sh
exec $BATS_FILE_TMPDIR/bin/nvidia-nri-plugin --pod-resources-socket=/run/pods.sock --listen=/run/nri-metrics 2>>$work/nri.log
SH
  chmod +x "$machine/nri-plugins/20-graft"
  restart_engine
  await_nri
  grep -q "registered as 20-graft" "$work/nri.log"
  give_gpus 1
  cri_run --env "NVIDIA_VISIBLE_DEVICES=$uuids"
  rm "$machine/nri-plugins/20-graft"
  expect_gpus 1
  pid=$(nri_pid)
  restart_engine
  within 10 has_ended "$pid"
}

# storm N: pods while the engine restarts; none may be without its devices.
nri_storm() {
  local n=${GRAFT_NRI_PODS:-12} i engine storm
  start_nri
  give_gpus 3
  for ((i = 0; i < n; i++)); do echo "default pod-$i container $uuids"; done | given
  mkdir -p "$work/storm"
  on_host "$BATS_FILE_TMPDIR/programs/cri_storm" "${CRI_SOCKET:-/run/containerd-suite/sock}" "$work/storm" "$n" "/$machine_cgroup" "NVIDIA_VISIBLE_DEVICES=$uuids" -- \
    /bin/sh -c 'nvidia-smi -L' >"$work/pods" 2>"$work/pods.err" 3>&- 4>&- &
  storm=$!
  within 20 test -e "$work/storm/begun"
  for ((i = 0; i < (n + 24) / 25; i++)); do
    engine=$(engine_pid)
    on_host kill -KILL "$engine"
    within 10 has_ended "$engine"
    restart_engine
    sleep 1
  done
  within 120 storm_is_over "$storm" || { cat "$work/pods.err" >&2 && return 1; }
  [ "$(grep -c "^pod-[0-9]* GPU 0: .* (UUID: $uuids)$" "$work/pods")" -eq "$n" ] || { cat "$work/pods" "$work/pods.err" "$work/nri.log" >&2 && return 1; }
  [ "$(metric graft_nri_missed_containers_total)" = 0 ]
}
# What gRPC logs meanwhile does not end it.
storm_is_over() { ! kill -0 "$1" 2>/dev/null; }
