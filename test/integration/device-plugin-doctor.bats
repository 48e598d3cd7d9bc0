# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk doctor kubernetes on a node with the device plugin and a kubelet: the healthy case, and each possible fault.

load lib.bash

setup_file() {
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
}
setup() {
  test_setup
  programs=$work/programs
  mkdir -p "$programs"
  find "$build/src/cli" '(' -name 'nvidia-*' -o -name graft-nvml ')' -type f -perm /100 -exec install -m 0755 {} "$programs" \;
  # Processes are found by the names of their programs.
  cp /usr/bin/python3 "$programs/kubelet"
  cp "$(command -v sleep)" "$programs/gpu-feature-discovery"
}

# A node with containerd that has the runtime; the kubelet and its folders are those of a test.
well='
  ctk="$programs/nvidia-ctk"
  own() { mkdir -p "$1" && mount -t tmpfs -o mode=755 own "$1"; }
  own /etc/containerd
  printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]\nruntime_type = \"io.containerd.runc.v2\"\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\nBinaryName = \"nvidia-container-runtime\"\n" >/etc/containerd/config.toml
  rm -rf /etc/cdi /etc/crio /etc/docker
  mount -t tmpfs -o mode=755 programs /usr/local/sbin
  ln -s "$programs"/nvidia-* /usr/local/sbin
  export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
  unset XDG_CONFIG_HOME NVIDIA_CTK_CONFIG_FILE_PATH
  own /var/lib/kubelet
  mkdir -m 750 /var/lib/kubelet/device-plugins /var/lib/kubelet/plugins_registry
  cd /var/lib/kubelet
  within() { for i in $(seq 200); do ! "$@" || return 0; sleep 0.05; done; return 1; }
  # The device manager of kubelet.py, with the record that kubelets keep; of 8 devices, $1 are given away.
  kubelet() { "$programs/kubelet" "$top/test/kubernetes/kubelet.py" stays "$@" & within test -S device-plugins/kubelet.sock; }
  plugin() { "$@" "$build/src/daemon/nvidia-device-plugin" 2>>"$work/plugin.log" & }
  known() { within grep -qs GPU- device-plugins/kubelet_internal_checkpoint; }
'

# node SCRIPT [WORD...]: runs it on a node, then the doctor with these words; its answer is $output.
node() {
  local script=$1
  shift
  # shellcheck disable=SC2016
  run --separate-stderr timeout 60 env work="$work" programs="$programs" build="$build" top="$top" unshare --mount --propagation private --pid --fork --kill-child --mount-proc -- sh -c '
    mount -t tmpfs -o mode=755 run /run
    exec "$@"' sh "$sim" run --topology dgx-h100 -- sh -ec "$well$script"'
"$ctk" doctor --quick --json '"${*@Q}"
}

# finds CHECK LEVEL CAUSE [REMEDY]: extended regular expressions.
finds() {
  jq -e --arg check "$1" --arg level "$2" --arg cause "$3" --arg remedy "${4:-}" '
    .findings | map(select(.check == $check and .level == $level and (.subject + ": " + .cause | test($cause)) and
      ((.remedy // "") | test($remedy)))) | length > 0' >/dev/null <<<"$output" && return
  say "no $2 of $1 with '$3' and '${4:-}'; status $status" "$output" "$stderr"
  return 1
}

@test "a node on which all is well" {
  node 'kubelet 2; plugin env; known' kubernetes
  finds kubelet ok 'is running, and accepts device plugins in /var/lib/kubelet/device-plugins and plugins_registry'
  finds device-plugin ok 'process [0-9]+: serves, and the kubelet is connected to it'
  finds node-capacity ok 'nvidia.com/gpu: the kubelet has 8 healthy devices, and has given 2 to pods'
  finds runtime-handler ok "containerd: has the runtime nvidia, which is not the default: pods need 'runtimeClassName: nvidia'"
  [ "$(jq '[.findings[] | select(.level == "broken")] | length' <<<"$output")" -eq 0 ]
  [ "$status" -ne 5 ]
  # Of its own accord, the doctor does not look at Kubernetes.
  node 'kubelet 2; plugin env; known'
  [ "$(jq '[.findings[] | select(.check == "kubelet" or .check == "device-plugin")] | length' <<<"$output")" -eq 0 ]
}

@test "the report for people" {
  # shellcheck disable=SC2016
  node 'kubelet 2; plugin env; known; "$ctk" doctor kubernetes --quick --all >"$work/report"' kubernetes
  grep -q '^ok       device-plugin       process [0-9]*: serves, and the kubelet is connected to it$' "$work/report"
  grep -q '^pods with the runtime handler nvidia (containerd): works$' "$work/report"
}

@test "no kubelet, and no device plugin" {
  node '' kubernetes
  [ "$status" -eq 5 ]
  finds kubelet broken 'is not running on this host' 'systemctl restart kubelet'
  finds device-plugin broken 'is not running on this node' 'systemctl enable --now nvidia-device-plugin'
  node 'kubelet 0' kubernetes
  finds device-plugin broken 'is not running on this node' 'systemctl enable --now nvidia-device-plugin'
  finds node-capacity broken 'does not know this resource'
}

@test "a device plugin that nobody watches, or that serves nothing" {
  # Its folder is not the kubelet's.
  node 'kubelet 0; mkdir "$work/other"; plugin env KUBELET_SOCKET="$work/other/kubelet.sock" PLUGIN_REGISTRY=; within test -S "$work/other/nvidia-gpu.sock"' kubernetes
  finds device-plugin broken 'serves, but has no socket in the kubelet.s directory /var/lib/kubelet' kubeletRoot
  node 'plugin env; within test -S plugins_registry/nvidia.com-gpu-reg.sock' kubernetes
  finds device-plugin broken 'serves, but no kubelet is connected to it' 'journalctl --unit kubelet'
  node 'kubelet 0; mkdir "$work/empty"; plugin env FAIL_ON_INIT_ERROR=false CONTAINER_DRIVER_ROOT="$work/empty"; within grep -q "No devices found" "$work/plugin.log"' kubernetes
  finds device-plugin broken 'offers nothing' 'journalctl --unit nvidia-device-plugin'
}

@test "two device plugins" {
  node 'kubelet 0; plugin env; known; mkdir "$work/other"; plugin env KUBELET_SOCKET="$work/other/kubelet.sock" PLUGIN_REGISTRY=; within test -S "$work/other/nvidia-gpu.sock"' kubernetes
  finds device-plugin broken 'both offer GPUs, and replace each other.s registration' 'Keep one'
}

@test "what has the name of a device plugin and is none is not taken for one" {
  node 'kubelet 0; plugin env; known; mkdir "$work/users"; chmod 755 "$work" "$work/users"
    cp "$(command -v sleep)" "$work/users/nvidia-device-plugin"; ln -s "$(command -v sleep)" "$work/users/gpu-feature-discovery"
    setpriv --reuid 1000 --regid 1000 --clear-groups "$work/users/nvidia-device-plugin" 60 & "$work/users/gpu-feature-discovery" 60 &
    within sh -c "grep -lx nvidia-device-p /proc/[0-9]*/comm | wc -l | grep -qx 2 && grep -qx gpu-feature-dis /proc/[0-9]*/comm"' kubernetes
  finds device-plugin ok 'process [0-9]+: serves, and the kubelet is connected to it'
  [ "$(jq '[.findings[] | select(.check == "device-plugin")] | length' <<<"$output")" -eq 1 ]
  run -1 grep -q 'gpu-feature-discovery.*runs' <<<"$output"
}

@test "no GPU is free, or healthy: the message of the scheduler is understood, with the word and without" {
  local message='0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available'
  node 'kubelet 8; plugin env; known' kubernetes "$message"
  finds node-capacity warning 'has 8 healthy devices, and has given 8 to pods' 'timeSlicing'
  jq -e '.message | test("No node has as many free devices")' <<<"$output"
  node 'kubelet 8; plugin env; known' "$message"
  finds node-capacity warning 'has given 8 to pods'
  jq -e '.findings | map(select(.check == "node-capacity" and .explains)) | length == 1' <<<"$output"
}

@test "the runtime is missing, and then CDI's specifications" {
  node 'kubelet 0; echo "version = 2" >/etc/containerd/config.toml; plugin env; known' kubernetes
  finds runtime-handler broken 'no runtime for "nvidia" is configured' 'nvidia-ctk runtime configure --runtime=containerd'
  node 'kubelet 0; echo "version = 2" >/etc/containerd/config.toml; plugin env DEVICE_LIST_STRATEGY=cdi-cri; known' kubernetes
  finds runtime-handler ok 'names CDI devices, which need none'
  finds plugin-specs ok '/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json: is the device plugin.s'
  node 'kubelet 0; plugin env DEVICE_LIST_STRATEGY=cdi-cri; known; rm /var/run/cdi/k8s.*' kubernetes
  finds plugin-specs broken 'has no CDI spec from the device plugin'
}

@test "the operator's files, and labels that have grown old" {
  node 'mkdir -p /run/nvidia/validations; own /etc/kubernetes; mkdir -p /etc/kubernetes/node-feature-discovery/features.d; echo nvidia.com/gpu.count=8 >/etc/kubernetes/node-feature-discovery/features.d/gfd' kubernetes
  finds gpu-operator warning 'has no driver-ready' 'driver-validation'
  finds node-labels warning 'is no longer running' 'rm /etc/kubernetes'
  node 'mkdir -p /run/nvidia/validations; touch /run/nvidia/validations/driver-ready /run/nvidia/validations/toolkit-ready; own /etc/kubernetes; mkdir -p /etc/kubernetes/node-feature-discovery/features.d
    echo nvidia.com/gpu.count=8 >/etc/kubernetes/node-feature-discovery/features.d/gfd; "$programs/gpu-feature-discovery" 60 &' kubernetes
  finds gpu-operator ok 'usable'
  finds node-labels ok 'has 1 label for'
}

@test "facts of one host are judged on another" {
  # shellcheck disable=SC2016
  node 'kubelet 1; plugin env; known; "$ctk" doctor kubernetes --quick --facts >"$work/facts"' kubernetes
  run "$programs/nvidia-ctk" doctor --json --from "$work/facts"
  finds node-capacity ok 'has 8 healthy devices, and has given 1 to pods'
}

@test "an ordinary user sees less, and is told so" {
  # shellcheck disable=SC2016
  node 'kubelet 1; plugin env; known; chmod a+rx "$work"; setpriv --reuid 65534 --regid 65534 --clear-groups "$ctk" doctor kubernetes --quick --json >"$work/report" || true' kubernetes
  output=$(cat "$work/report")
  finds kubelet '?' 'its directory /var/lib/kubelet cannot be seen' 'sudo'
  finds device-plugin '?' 'cannot be seen' 'sudo'
}
