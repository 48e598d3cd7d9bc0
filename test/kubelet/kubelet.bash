# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2119
#
# A node of Kubernetes without a cluster, on top of engines.bash: a simulated host with containerd, whose default runtime is ours, a kubelet that takes its pods
# from a folder, and our device plugin.
#
#   setup_file()    { start_node; }          the kubelet is that of GRAFT_KUBELET, else that of tools/kubernetes; containerd is that of GRAFT_CONTAINERD, a
#                                            release of Debian, else this machine's
#   teardown_file() { stop_machine; }
#   setup()         { need_engines && engine_setup; }
#   teardown()      { [ -e "$machine/why" ] || clear_node; }          no pod is left, and kubelet and plugin are there
#
# QUIRK: a pod from a folder is admitted without devices where its resource is not registered yet (SPEC kubernetes 15.1), and a name that was refused
# stays refused: pods follow the plugin, and each has a name of its own.

resource=nvidia.com/gpu
port=10255 # of the machine's own loopback

start_node() {
  local status=0 found release=${GRAFT_CONTAINERD:-}
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || { not_here "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)" && return; }
  kubelet=${GRAFT_KUBELET:-}
  [ -n "$kubelet" ] || kubelet=$("$top/tools/kubernetes" kubelet 2>"$BATS_FILE_TMPDIR/why")/kubelet || status=$?
  [ "$status" -ne 77 ] || { not_here "$(tail -n 1 "$BATS_FILE_TMPDIR/why")" && return; }
  [ "$status" -eq 0 ] || { cat "$BATS_FILE_TMPDIR/why" >&2 && return 1; }
  start_machine dgx-h100
  install -m 0755 "$kubelet" "$BATS_FILE_TMPDIR/programs/kubelet"
  install -m 0755 "$build/src/daemon/nvidia-device-plugin" "$BATS_FILE_TMPDIR/programs"
  found=$("$BATS_FILE_TMPDIR/programs/kubelet" --version)
  say "# $found" >&3
  echo "${found#*v1.}" | cut -d . -f 1 >"$machine/minor"
  # The last one for containerd 1 is 1.35; the first one that speaks as containerd 2 does is 1.23.
  [ "$(cat "$machine/minor")" -le 35 ] || release=${release:-forky}
  case "$release:$(cat "$machine/minor")" in
  trixie:3[6-9] | trixie:[4-9]?) echo "kubelet 1.$(cat "$machine/minor") needs containerd 2" >"$machine/why" ;;
  forky:? | forky:1? | forky:2[0-2]) echo "kubelet 1.$(cat "$machine/minor") speaks a version of CRI that containerd 2 does not have" >"$machine/why" ;;
  ?*:*) use_engines "$release" containerd ctr || return ;;
  esac
  [ ! -e "$machine/why" ] || return 0
  # Folders of the machine's own, which leave nothing here. What the kubelet mounts for pods is seen by containerd.
  # shellcheck disable=SC2016
  on_host sh -ec 'for name in lib log; do
      mkdir -p "$0/$name/upper" "$0/$name/work"
      mount -t overlay -o "lowerdir=/var/$name,upperdir=$0/$name/upper,workdir=$0/$name/work" overlay "/var/$name"
    done
    mkdir -p /var/lib/kubelet /var/log/pods /var/log/containers "$0/manifests"
    mount -t tmpfs -o mode=750 kubelet /var/lib/kubelet
    mount --make-shared /var/lib/kubelet' "$machine/own"
  shield_sysctls
  configure_containerd ""
  # From 1.7 it reads CDI specifications itself.
  [ -z "$release" ] || sed -i 's/^enable_cdi = false$/enable_cdi = true/' "$machine/containerd/config.toml"
  # A pod without a cluster has no RuntimeClass.
  cat >>"$machine/containerd/config.toml" <<'TOML'
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"
TOML
  restart_containerd
  say "# $(ctr version | sed -n '/^Server:/,/Version:/s/^ *Version: */containerd /p')" >&3
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  : >"$machine/kmsg"
  touch "$machine/plugin.log"
  configure_kubelet
  run_kubelet
  run_plugin
  expect_registered 8
}

configure_kubelet() {
  local minor
  minor=$(cat "$machine/minor")
  cat >"$machine/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: $machine/own/manifests
fileCheckFrequency: 1s
syncFrequency: 1s
address: 127.0.0.1
readOnlyPort: $port
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$machine_cgroup
cgroupsPerQOS: false
enforceNodeAllocatable: []
evictionHard: {memory.available: "0%"}
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
YAML
  [ "$minor" -lt 27 ] || echo "containerRuntimeEndpoint: unix:///run/containerd-suite/sock" >>"$machine/kubelet.yaml"
  [ "$minor" -lt 31 ] || echo "failCgroupV1: false" >>"$machine/kubelet.yaml"
}

# run_kubelet: as it was left, with the pods that stand in the folder.
run_kubelet() {
  local options=(--config "$machine/kubelet.yaml" --hostname-override node)
  [ "$(cat "$machine/minor")" -ge 24 ] || options+=(--container-runtime=remote)
  [ "$(cat "$machine/minor")" -ge 27 ] || options+=(--container-runtime-endpoint=unix:///run/containerd-suite/sock)
  on_host "$BATS_FILE_TMPDIR/programs/kubelet" "${options[@]}" >>"$machine/kubelet.log" 2>&1 3>&- 4>&- &
  within 60 kubelet_is_there || die "the kubelet did not come up: $(tail -n 20 "$machine/kubelet.log")"
}
kubelet_is_there() { node pods "$port" >/dev/null 2>&1 && on_host test -S /var/lib/kubelet/device-plugins/kubelet.sock; }

# launch_plugin [OPTION...]
launch_plugin() {
  SIMULATED_KMSG=$machine/kmsg on_host "$BATS_FILE_TMPDIR/programs/nvidia-device-plugin" --listen 127.0.0.1:9400 "$@" >>"$machine/plugin.log" 2>&1 3>&- 4>&- &
}

# run_plugin [OPTION...]: and the kubelet watches its devices.
run_plugin() {
  local before
  before=$(watched)
  launch_plugin "$@"
  await_watched "$before"
}

# plugin_with OPTION...: one of another configuration; a test that wants it ends it.
plugin_with() {
  end TERM nvidia-device-plugin
  run_plugin "$@"
}

# end SIGNAL PROGRAM: kubelet or nvidia-device-plugin, and waits for its end.
end() {
  local pid
  pid=$(on_host pgrep --exact "${2:0:15}") || die "there is no $2" || return
  on_host kill "-$1" "$pid"
  within 20 has_ended "$pid" || die "$2 has not ended"
}

node() { on_host /usr/bin/python3 "$top/test/kubernetes/node.py" "$@"; }
devices() { node devices /var/lib/kubelet/pod-resources/kubelet.sock; }

# registered: the healthy devices, given to pods or not, in the kubelet's own record.
# QUIRK: it is written when the plugin says something, and when a pod is admitted; not when the plugin has ended.
registered() { on_host jq -r --arg resource "$resource" '.Data.RegisteredDevices[$resource] // [] | sort[]' /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint; }
has_registered() { [ "$(registered | wc -l)" -eq "$1" ]; }
expect_registered() { within 20 has_registered "$1" || die "the kubelet has $(registered | wc -l) devices, not $1: $(tail -n 20 "$machine/plugin.log")"; }

# add_pod NAME GPUS [CONTAINER=GPUS...]: containers, the first one is called main, that sleep.
add_pod() {
  local name=$1
  shift
  jq -n --arg name "$name" --arg resource "$resource" --arg minors "$(host_minors)" '
    def one($name; $n): {name: $name, image: "docker.io/library/small:latest", imagePullPolicy: "Never", command: ["/bin/sleep", "86400"],
      env: [{name: "PROBE_MINORS", value: $minors}], resources: {limits: (if $n == 0 then {} else {($resource): $n} end)}};
    {apiVersion: "v1", kind: "Pod", metadata: {name: $name, namespace: "default"},
     spec: {hostNetwork: true, automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, restartPolicy: "Always",
       containers: [one("main"; $ARGS.positional[0] | tonumber), ($ARGS.positional[1:][] | split("=") | one(.[0]; .[1] | tonumber))]}}' \
    --args "$@" >"$machine/$name.json"
  mv "$machine/$name.json" "$machine/own/manifests/"
}
# remove_pod NAME: until it is gone.
remove_pod() {
  rm "$machine/own/manifests/$1.json"
  await_gone "$1"
}

# of_pod NAME FILTER: what the kubelet says of a pod.
of_pod() { sleep 0.2 && node pods "$port" | jq -r --arg name "$1-node" '.[] | select(.metadata.name == $name) | '"$2"; }
is_running() { [ "$(of_pod "$1" '[.status.containerStatuses[]? | .state | has("running")] | any and all')" = true ]; }
is_refused() { [ "$(of_pod "$1" .status.phase)" = Failed ]; }
is_gone() { [ -z "$(of_pod "$1" .metadata.name)" ] && ! runs_container "$1"; }
# runs_container NAME: whether a container of the pod is alive. What is left of those that have ended, the kubelet removes minutes later.
runs_container() {
  local left
  left=$(CTR_NAMESPACE=k8s.io ctr container list --quiet "labels.\"io.kubernetes.pod.name\"==\"$1-node\"")
  [ -n "$left" ] && CTR_NAMESPACE=k8s.io ctr task list | grep -F "$left" | grep -q RUNNING
}

await_running() { within 60 is_running "$1" || die "pod $1 does not run: $(of_pod "$1" .status)"; }
# await_refused NAME: refused, for want of devices.
await_refused() {
  within 60 is_refused "$1" || die "pod $1 is not refused: $(of_pod "$1" .status)"
  of_pod "$1" '"\(.status.reason): \(.status.message)"' | tee "$work/refused" | grep -qE "^(UnexpectedAdmissionError|OutOf$resource): .*$resource" || die "$(cat "$work/refused")"
  [ "$(of_pod "$1" '.status.containerStatuses | length')" = 0 ]
}
await_gone() { within 60 is_gone "$1" || die "pod $1 is still there: $(of_pod "$1" .status)"; }

# gpus_of NAME [CONTAINER]: the indexes of a container's GPUs, as the kubelet knows them, in order.
gpus_of() {
  devices | jq -r --arg name "$1-node" --arg container "${2:-main}" --arg resource "$resource" '.[$name][$container][$resource][]?' | sed 's/::.*//' >"$work/devices"
  host_uuids | grep -nFf "$work/devices" | while IFS=: read -r line _; do echo $((line - 1)); done
}
container_id() { of_pod "$1" ".status.containerStatuses[] | select(.name == \"${2:-main}\") | .containerID | ltrimstr(\"containerd://\")"; }

# expect_pod NAME N [CONTAINER]: it runs, the kubelet has given the container N GPUs, and it sees those and no others. Their indexes come into the array `gpus`.
expect_pod() {
  await_running "$1"
  mapfile -t gpus < <(gpus_of "$1" "${3:-}")
  [ ${#gpus[@]} -eq "$2" ] || die "pod $1 has GPUs ${gpus[*]}" || return
  probe_pod "$1" "${3:-}"
  if [ "$2" -eq 0 ]; then expect_no_gpu; else expect_gpus "${gpus[@]}"; fi
}

# probe_pod NAME [CONTAINER]: what the container sees.
probe_pod() {
  CTR_NAMESPACE=k8s.io run ctr task exec --exec-id "probe-$RANDOM" "$(container_id "$1" "${2:-}")" /probe
  read_answers
}

# uuid_of INDEX, xid INDEX TEXT: of a GPU; a line of the kernel's log about it.
uuid_of() { host_uuids | sed -n "$(($1 + 1))p"; }
xid() {
  printf 'NVRM: Xid (PCI:%s): %s\n' "$(information 'Bus Location' | sed -n "$(($1 + 1)){s/\.[0-9]$//;p}")" "$2" >>"$machine/kmsg"
}

# reset_gpu INDEX: as an administrator does. The driver says so in its log.
reset_gpu() {
  local pci
  pci=$(information 'Bus Location' | sed -n "$(($1 + 1))p")
  SIMULATED_KMSG=$machine/kmsg run on_host nvidia-smi --gpu-reset -i "$1"
  [ "$status" -eq 0 ] && [[ $output == *" was successfully reset."* ]] || die "$output" || return
  [ "$(tail -n 1 "$machine/kmsg")" = "NVRM: GPU $pci: GPU reset" ] || die "$(tail -n 1 "$machine/kmsg")"
}

# watched: how often a kubelet has begun to watch the plugin's devices; what it has done since then is after all of it.
watched() { grep -c "the kubelet watches" "$machine/plugin.log" || true; }
has_watched() { [ "$(watched)" -gt "$1" ]; }
await_watched() { within 20 has_watched "$1" || die "no kubelet watches: $(tail -n 20 "$machine/plugin.log")"; }

clear_node() {
  local manifest name left=()
  [ -n "${BATS_TEST_COMPLETED:-}" ] || { tail -n 30 "$machine/plugin.log" && grep -v "node status\|not ready" "$machine/kubelet.log" | tail -n 30; }
  on_host pgrep --exact kubelet >/dev/null || run_kubelet
  on_host pgrep --exact nvidia-device-p >/dev/null || run_plugin
  expect_registered 8
  for manifest in "$machine"/own/manifests/*.json; do
    [ -e "$manifest" ] || continue
    rm "$manifest"
    left+=("$(basename "$manifest" .json)")
  done
  for name in "${left[@]}"; do await_gone "$name"; done
}
