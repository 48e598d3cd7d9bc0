# SPDX-License-Identifier: Apache-2.0
# files: disk
# A real cluster of one node (./check cluster): API server with RBAC, scheduler, controllers, kubelet, containerd; our programs in DaemonSets of their images, as the
# pages of docs/ have them. With GRAFT_CONTAINERD=trixie on containerd of Debian 13, which has NRI.

load ../integration/lib.bash
load ../integration/engines.bash
load ../integration/docs.bash
load cluster.bash

setup_file() { start_cluster; }
teardown_file() { stop_machine; }
setup() {
  need_engines
  cluster_setup
}
teardown() { cluster_teardown; }

plugin=nvdp-nvidia-device-plugin

# configured: containerd has our runtimes, and the cluster their RuntimeClass.
configured() {
  [ ! -e "$machine/configured" ] || return 0
  on_host nvidia-ctk --quiet runtime configure --runtime=containerd
  on_host systemctl restart containerd
  kubectl apply --filename - >/dev/null <<<$'apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: nvidia}\nhandler: nvidia'
  touch "$machine/configured"
}

# with_plugin [VALUES]: the chart in namespace gpu, on every node.
with_plugin() {
  configured
  install_chart gpu "affinity: null
${1:-}"
  rolled_out gpu $plugin >/dev/null || die "$(kubectl --namespace gpu describe pods; kubectl --namespace gpu logs daemonset/$plugin)"
}
@test "nvidia-ctk-installer as a DaemonSet sets the node up from nothing; when it is deleted, the engine's files are what they were" {
  local manifest=$top/packaging/kubernetes/nvidia-container-toolkit.yaml
  files_of_engine() { on_host find /etc/containerd -type f -exec sha256sum {} + | sort; }
  files_of_engine >"$BATS_TEST_TMPDIR/before"
  kubectl apply --filename "$manifest"
  logs() { kubectl --namespace nvidia-container-toolkit logs daemonset/nvidia-container-toolkit-daemonset; }
  rolled_out nvidia-container-toolkit nvidia-container-toolkit-daemonset || die "$(logs)"
  has_waited() { logs | grep -q 'msg="Waiting for signal"'; }
  within 60 has_waited || die "$(logs)"
  on_host grep -qF /usr/local/nvidia/toolkit/nvidia-container-runtime /etc/containerd/conf.d/99-nvidia.toml
  pod by-index 0 "runtimeClassName: nvidia" ', {name: NVIDIA_VISIBLE_DEVICES, value: "0,3"}'
  expect_pod by-index 2
  [ "${gpus[*]}" = "0 3" ]
  pod by-default 0 "restartPolicy: Always" ', {name: NVIDIA_VISIBLE_DEVICES, value: "all"}'
  expect_pod by-default 0
  remove_pods by-index by-default
  kubectl delete --filename "$manifest" --timeout 120s
  within 60 no_pods --namespace=nvidia-container-toolkit
  diff "$BATS_TEST_TMPDIR/before" <(files_of_engine)
  within 60 ctr version >/dev/null
}

@test "the chart: the node has eight GPUs; pods get what they ask for, and no two the same" {
  with_plugin
  expect_allocatable 8
  kubectl describe node "$node" | sed -n '/^Capacity:/,/^System Info:/p' >"$BATS_TEST_TMPDIR/node"
  [ "$(grep -cE '^  nvidia.com/gpu: +8$' "$BATS_TEST_TMPDIR/node")" = 2 ]
  pod none
  pod one 1
  pod two 2
  kubectl apply --filename - >/dev/null <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec:
      runtimeClassName: nvidia
      restartPolicy: Never
      containers:
      - {name: main, image: $cuda, command: [nvidia-smi, -L], resources: {limits: {nvidia.com/gpu: 1}}}
YAML
  expect_pod none 0
  expect_pod one 1
  all=("${gpus[@]}")
  expect_pod two 2
  all+=("${gpus[@]}")
  [ "$(printf '%s\n' "${all[@]}" | sort -u | wc -l)" = 3 ]
  kubectl wait --for condition=Complete --timeout 120s job/job
  [ "$(kubectl logs job/job | grep -c '^GPU 0: ')" = 1 ]
}

@test "the scheduler keeps what does not fit, says so, and the doctor explains it; what a pod releases, the next one gets" {
  with_plugin
  expect_allocatable 8
  pod most 6
  await_pods most
  pod too-many 3
  expect_event too-many '^FailedScheduling: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu\.$'
  [ "$(of_pod too-many '{.status.phase}')" = Pending ]
  on_host nvidia-ctk doctor --json "$(events_of too-many | sed -n 's/^FailedScheduling: //p' | head -n 1)" >"$BATS_TEST_TMPDIR/doctor" || true
  [ "$(jq -r '.findings[] | select(.check == "node-capacity") | "\(.level) \(.subject): \(.cause)"' "$BATS_TEST_TMPDIR/doctor")" = \
    "ok nvidia.com/gpu: the kubelet has 8 healthy devices, and has given 6 to pods" ] || die "$(cat "$BATS_TEST_TMPDIR/doctor")"
  pod rest 2
  expect_pod rest 2
  remove_pods most
  expect_pod too-many 3
}

@test "an Xid takes a GPU away: the node's allocatable falls, and rises after the reset" {
  with_plugin
  expect_allocatable 8
  xid 7 "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
  expect_allocatable 7
  kubectl get node "$node" -o 'jsonpath={.status.capacity.nvidia\.com/gpu}' | grep -qx 8
  pod without-it 7
  expect_pod without-it 7
  [ "${gpus[*]}" = "0 1 2 3 4 5 6" ]
  pod that-one 1
  expect_event that-one '1 Insufficient nvidia.com/gpu'
  SIMULATED_KMSG=$machine/kmsg on_host nvidia-smi --gpu-reset -i 7
  expect_allocatable 8
  expect_pod that-one 1
  [ "${gpus[*]}" = 7 ]
}
xid() {
  printf 'NVRM: Xid (PCI:%s): %s\n' "$(information 'Bus Location' | sed -n "$(($1 + 1)){s/\.[0-9]$//;p}")" "$2" >>"$machine/kmsg"
}

configs='config:
  map:
    plain: "version: v1\n"
    halves: "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"
  default: plain'

# choose VALUE: the node's label; without: none.
choose() { kubectl label --overwrite node "$node" "nvidia.com/device-plugin.config$([ -z "$1" ] && echo - || echo "=$1")" >/dev/null; }

# choices: the label of the node chooses the configuration, while the programs run.
choices() {
  expect_allocatable 8
  choose halves
  expect_allocatable 16
  pod first-half 8
  pod second-half 8
  expect_pod first-half 8
  expect_pod second-half 8
  choose plain
  expect_allocatable 8
  # A file that is not there changes nothing.
  choose nothing
  within 60 says "$1" "names the config 'nothing', but /available-configs has no such file; it has: halves, plain; nothing was changed. Correct the name, or add a file" || die "$(kubectl --namespace gpu logs daemonset/$plugin --container "$1")"
  is_allocatable 8
  choose halves
  expect_allocatable 16
  choose ""
  expect_allocatable 8
}
says() { kubectl --namespace gpu logs "daemonset/$plugin" --container "$1" | grep -q "$2"; }

@test "the plugin chooses its configuration by the node's label" {
  with_plugin "$configs"
  choices nvidia-device-plugin-ctr
}

@test "config-manager does, and the plugin reloads" {
  with_plugin "$configs
configSelection: sidecar"
  choices nvidia-device-plugin-sidecar
}

# node_features: the kind as Node Feature Discovery defines it.
node_features() {
  kubectl apply --filename "$top/test/cluster/nodefeatures.yaml" >/dev/null
  kubectl wait --for condition=Established --timeout 60s crd/nodefeatures.nfd.k8s-sigs.io >/dev/null
}
# feature [LABEL]: of the node's object.
feature() { kubectl --namespace gpu get nodefeature nvidia-features-for-"$node" -o json 2>/dev/null | jq -re --arg name "nvidia.com/${1:-gpu.count}" '.spec.labels[$name]'; }
has_feature() { [ "$(feature "$1")" = "$2" ]; }
no_feature() {
  local left
  left=$(kubectl --namespace gpu get nodefeatures --output name) && [ -z "$left" ]
}

@test "feature discovery: its object has the node's labels, is made again, and goes away with the DaemonSet" {
  local gfd=$plugin-gpu-feature-discovery uid
  node_features
  with_plugin "$configs
gfd: {enabled: true}"
  rolled_out gpu $gfd
  within 60 has_feature gpu.count 8 || die "$(kubectl --namespace gpu logs daemonset/$gfd)"
  has_feature gpu.product NVIDIA-H100-80GB-HBM3
  has_feature gpu.replicas 1
  choose halves
  within 60 has_feature gpu.replicas 2
  has_feature gpu.product NVIDIA-H100-80GB-HBM3-SHARED
  choose ""
  within 60 has_feature gpu.replicas 1
  uid=$(kubectl --namespace gpu get nodefeature nvidia-features-for-"$node" -o 'jsonpath={.metadata.uid}')
  kubectl --namespace gpu delete nodefeature nvidia-features-for-"$node"
  is_another() { feature && [ "$(kubectl --namespace gpu get nodefeature nvidia-features-for-"$node" -o 'jsonpath={.metadata.uid}')" != "$uid" ]; }
  within 60 is_another
  kubectl --namespace gpu patch nodefeature nvidia-features-for-"$node" --type merge --patch '{"spec": {"labels": {"nvidia.com/gpu.count": "9"}}}'
  within 60 has_feature gpu.count 8
  # Its owners are the pod and the DaemonSet.
  kubectl --namespace gpu get nodefeature nvidia-features-for-"$node" -o 'jsonpath={.metadata.ownerReferences[*].kind}' | tr ' ' '\n' | sort | paste -sd ' ' | grep -qx "DaemonSet Pod"
  remove_chart
  within 60 no_feature
}

# asked ACCOUNT: what it has asked the API server for, "VERB RESOURCE CODE".
asked() {
  jq -r --arg user "system:serviceaccount:gpu:$1" 'select(.user.username == $user and .objectRef) |
    "\(.verb) \([.objectRef.apiGroup, .objectRef.resource] | map(select(.)) | join("/")) \(.responseStatus.code // 200)"' "$machine/log/audit" | sort -u
}

@test "the programs of the chart ask the API server for what their accounts may do, and nothing is refused" {
  # What the tests before this one have made them ask.
  for name in $plugin $plugin-gpu-feature-discovery; do asked "$name"; done >"$BATS_TEST_TMPDIR/asked"
  cat "$BATS_TEST_TMPDIR/asked"
  run ! grep ' 403$' "$BATS_TEST_TMPDIR/asked"
  asked $plugin | cut -d ' ' -f 1,2 | sort -u >"$BATS_TEST_TMPDIR/plugin"
  asked $plugin-gpu-feature-discovery | cut -d ' ' -f 1,2 | sort -u >"$BATS_TEST_TMPDIR/discovery"
  diff "$BATS_TEST_TMPDIR/plugin" <(printf '%s nodes\n' list watch)
  diff "$BATS_TEST_TMPDIR/discovery" <(printf '%s\n' "create nfd.k8s-sigs.io/nodefeatures" "get pods" "list nfd.k8s-sigs.io/nodefeatures" "list nodes" \
    "update nfd.k8s-sigs.io/nodefeatures" "watch nfd.k8s-sigs.io/nodefeatures" "watch nodes")
}

@test "MPS: the DaemonSet of the chart serves shared GPUs, and a pod finds its daemon" {
  with_plugin 'config: {map: {quarters: "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"}}
mps: {root: /run/nvidia/mps}'
  rolled_out gpu $plugin-mps-control-daemon || die "$(kubectl --namespace gpu logs daemonset/$plugin-mps-control-daemon)"
  expect_allocatable 32
  pod share 1
  expect_pod share 1
  # Its own driver's program asks the daemon through the folder that the plugin has mounted.
  [ "$(kubectl exec share -- sh -c 'echo get_default_active_thread_percentage | nvidia-cuda-mps-control')" = 25.0 ]
  pod two-shares 2 "restartPolicy: Never"
  within 60 has_failed two-shares || die "$(kubectl describe pod two-shares)"
  [[ $(of_pod two-shares '{.status.message}') == *"invalid request: maximum request size for shared resources is 1; found 2"* ]]
  remove_pods share two-shares
  on_host mountpoint -q /run/nvidia/mps/shm
  on_host test -e /run/nvidia/mps/nvidia.com/gpu/.started
  remove_chart
  run ! on_host mountpoint -q /run/nvidia/mps/shm
  run ! on_host test -e /run/nvidia/mps/nvidia.com/gpu/.started
}
has_failed() { [ "$(of_pod "$1" '{.status.phase}')" = Failed ]; }

@test "a demand that is refused: the pod's events have cause and remedy" {
  configured
  pod unknown 0 "runtimeClassName: nvidia" ', {name: NVIDIA_VISIBLE_DEVICES, value: "99"}'
  expect_event unknown "device error: 99: unknown device. Run 'nvidia-container-cli info' to list the devices of this host."
  kubectl describe pod unknown | grep -qF "device error: 99: unknown device. Run 'nvidia-container-cli info' to list the devices of this host."
}

need_nri() {
  [ -n "${GRAFT_CONTAINERD:-}" ] || skip "containerd 1.6 has no NRI"
  on_host test -S /var/run/nri/nri.sock || die "containerd has no NRI socket: $(tail -n 20 "$machine/log/containerd")"
}

@test "NRI: a pod without a RuntimeClass has its GPUs; what a foreign namespace asks for is refused, and its events say why" {
  need_nri
  with_plugin
  expect_allocatable 8
  kubectl apply --filename "$top/packaging/kubernetes/nvidia-nri-plugin.yaml"
  rolled_out kube-system nvidia-nri-plugin || die "$(kubectl --namespace kube-system logs daemonset/nvidia-nri-plugin)"
  pod by-nri 2 "restartPolicy: Never"
  expect_pod by-nri 2
  pod foreign 0 "restartPolicy: Never" "" 'nvidia.cdi.k8s.io/pod: management.nvidia.com/gpu=all'
  expect_event foreign "graft: container main of pod default/foreign: the annotation nvidia.cdi.k8s.io/pod asks for the CDI device 'management.nvidia.com/gpu=all', which pods in the namespace 'default' may not use; to allow it, add \"management.nvidia.com/gpu:default\" to 'allowed' in \[nri\] of /etc/nvidia-container-runtime/config.toml on this node. Only the administrator of the node can do that."
  kubectl delete --filename "$top/packaging/kubernetes/nvidia-nri-plugin.yaml" --timeout 120s
}

# --- the pages ---

# run_cluster_page NAME: with the blocks that need a cluster.
run_cluster_page() { PAGE_CLUSTER=1 run_page "$1"; }
version() { sed -n "s/^  version: '\(.*\)',$/\1/p" "$top/meson.build"; }
# The folder that the pages are read in has what a checkout has there.
checkout() {
  mkdir -p "$work/home/packaging"
  cp -r "$top/packaging/kubernetes" "$work/home/packaging"
  printf '#!/bin/sh\ncp -r "%s" "$1"\n' "$machine/image" >"$work/home/packaging/image"
  chmod +x "$work/home/packaging/image"
}

@test "docs/kubernetes.md" {
  remove_chart
  # In the place of NVIDIA's chart, which comes from the network: its DaemonSet has the same name.
  install_chart nvidia-device-plugin "affinity: null"
  run_cluster_page kubernetes
  as_before
}

@test "docs/kubernetes-install.md" {
  configured
  remove_chart
  checkout
  ctr image tag "docker.io/graft/k8s-device-plugin:$(version)" "registry.example.com/graft/k8s-device-plugin:$(version)" >/dev/null
  run_cluster_page kubernetes-install
  kubectl delete --filename "$top/packaging/kubernetes/nvidia-device-plugin.yaml" --timeout 120s
}

@test "docs/gpu-operator.md: without the operator" {
  remove_chart
  checkout
  on_host nvidia-ctk --quiet runtime configure --runtime=containerd --undo
  on_host systemctl restart containerd
  rm -f "$machine/configured"
  run_cluster_page gpu-operator
}

@test "docs/device-plugin.md" {
  configured
  remove_chart
  run_cluster_page device-plugin
  as_before
}

@test "docs/nri.md" {
  need_nri
  with_plugin
  checkout
  run_cluster_page nri
  kubectl delete --filename "$top/packaging/kubernetes/nvidia-nri-plugin.yaml" --timeout 120s
}
