# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A cluster of one node on a simulated host, on top of engines.bash and docs.bash: etcd, API server with RBAC, controller manager, scheduler, kubelet, containerd.
# The programs of Kubernetes are those of tools/kubernetes; etcd and kubectl are Debian 12's; containerd is this machine's, or that of GRAFT_CONTAINERD, a release
# of Debian.
#
#   setup_file()    { start_cluster; }
#   teardown_file() { stop_machine; }
#   setup()         { need_engines && cluster_setup; }
#   teardown()      { cluster_teardown; }
#
# The node is a machine of its own with a network namespace of its own, without a way out: pods have an address and reach the node. Without kube-proxy the
# address of the service "kubernetes" is one of the node's, and the API server listens there.

node=worker-1 # as docs/ call it
node_address=192.0.2.10
service_address=10.96.0.1
server=https://$service_address:443
cuda=nvcr.io/nvidia/cuda:12.6.3-base-ubuntu24.04
chart=$top/packaging/kubernetes/nvidia-device-plugin

start_cluster() {
  local status=0 name go_path=/usr/share/gocode
  work=$BATS_FILE_TMPDIR
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || { not_here "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)" && return; }
  [ -d "$go_path/src/github.com/Masterminds/sprig" ] || { not_here "golang-github-masterminds-sprig-dev is not installed (tools/deps test)" && return; }
  kubernetes=$("$top/tools/kubernetes" kubelet kube-apiserver kube-controller-manager kube-scheduler 2>"$work/why") || status=$?
  [ "$status" -ne 77 ] || { not_here "$(tail -n 1 "$work/why")" && return; }
  [ "$status" -eq 0 ] || { cat "$work/why" >&2 && return 1; }
  debian=$("$top/test/tools/release-root" cluster bookworm 2>"$work/why") || status=$?
  [ "$status" -ne 77 ] || { not_here "$(tail -n 1 "$work/why")" && return; }
  [ "$status" -eq 0 ] || { cat "$work/why" >&2 && return 1; }
  export kubernetes debian
  page_machine dgx-h100
  # What renders the chart, in place of Helm, which is in no release of Debian.
  GO111MODULE=off GOPATH=$go_path GOCACHE=${GOCACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/go-build} go build -o "$BATS_FILE_TMPDIR/programs/chart" "$top/test/tools/chart.go"
  if [ -n "${GRAFT_CONTAINERD:-}" ]; then
    use_engines "$GRAFT_CONTAINERD" containerd ctr || return
    [ ! -e "$machine/why" ] || return 0
    # ctr 1.7 warns of the old CRI of this kubelet, once that has called. Pages expect what ctr prints with a newer kubelet.
    mv "$page_commands/ctr" "$machine/ctr"
    command_of ctr "CONTAINERD_SUPPRESS_DEPRECATION_WARNINGS=1 exec $machine/ctr \"\$@\""
  fi
  for name in nvidia-device-plugin gpu-feature-discovery config-manager mps-control-daemon nvidia-nri-plugin; do on_host cp "$build/src/daemon/$name" /usr/bin/; done
  install -m 0755 "$top/test/cluster/systemctl" "$top/test/cluster/helm" "$page_commands"
  prepare_node
  start_engine
  start_control_plane
  start_kubelet
  import_images
  say "# $("$kubernetes/kube-apiserver" --version), $(ctr version | sed -n '/^Server:/,/Version:/s/^ *Version: */containerd /p')" >&3
  within 60 is_ready || die "the node is not ready: $(kubectl describe node "$node") $(tail -n 20 "$machine/log/kubelet")"
  within 60 has_account default || die "there is no account: $(tail -n 20 "$machine/log/controller-manager")"
}
is_ready() { [ "$(kubectl get node "$node" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; }
has_account() { [ -n "$(kubectl --namespace "$1" get serviceaccount default -o jsonpath='{.secrets}' 2>/dev/null)" ]; }

# prepare_node: folders that leave nothing here, what pods mount is seen by containerd, and the network.
prepare_node() {
  mkdir -p "$machine/log" "$machine/pki"
  : >"$machine/kmsg"
  # shellcheck disable=SC2016
  on_host sh -ec '
    mkdir -p /var/lib/kubelet /var/log/pods /var/log/containers /etc/cni/net.d /etc/containerd
    mount -t tmpfs -o mode=750 kubelet /var/lib/kubelet
    mount --make-rshared /
    ip address add "$0/32" dev lo
    ip address add "$1/32" dev lo' "$node_address" "$service_address"
  shield_sysctls
  on_host tee /etc/cni/net.d/10-ptp.conflist >/dev/null <<'JSON'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.244.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
}

# daemon NAME COMMAND...: on the machine, until that ends.
daemon() {
  local name=$1
  shift
  on_host "$@" >>"$machine/log/$name" 2>&1 3>&- 4>&- &
}

# start_engine: containerd without our runtimes, in its usual places. Whenever it ends, it is started again, as systemd does.
start_engine() {
  mkdir -p "$machine/containerd"
  cat >"$machine/containerd/config.toml" <<TOML
version = 2
root = "$machine/containerd/root"
state = "$machine/containerd/state"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/library/pause:latest"
stream_server_address = "127.0.0.1"
# Below 0 a score may only go with a right that not every machine gives its root.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.nri.v1.nri"]
disable = false
TOML
  reset_engine
  daemon containerd sh -c 'while :; do containerd & echo $! >/run/containerd.pid; wait; sleep 0.2; done'
  within 60 ctr version >/dev/null 2>&1 || die "containerd did not come up: $(tail -n 20 "$machine/log/containerd")"
}
# shellcheck disable=SC2016
reset_engine() { on_host sh -ec 'find /etc/containerd -mindepth 1 -delete; cp "$0" /etc/containerd/config.toml' "$machine/containerd/config.toml"; }
ctr() { on_host ctr --namespace "${CTR_NAMESPACE:-k8s.io}" --connect-timeout 2s "$@"; }

# certificate NAME SUBJECT [EXTENSION]
certificate() {
  (
    cd "$machine/pki" || exit
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -subj "$2" -out "$1.csr"
    printf '%s\n' "${3:-extendedKeyUsage=clientAuth}" >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile "$1.ext" -out "$1.crt"
  ) 2>>"$machine/log/openssl"
}
# kubeconfig NAME: for the certificate of that name.
kubeconfig() {
  cat >"$machine/pki/$1.conf" <<YAML
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: $1}}]
clusters: [{name: here, cluster: {server: "$server", certificate-authority: $machine/pki/ca.crt}}]
users: [{name: $1, user: {client-certificate: $machine/pki/$1.crt, client-key: $machine/pki/$1.key}}]
YAML
}

start_control_plane() {
  local pki=$machine/pki name
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/ca.key" -out "$pki/ca.crt" -days 2 -subj /CN=kubernetes 2>/dev/null
  openssl genrsa -out "$pki/accounts.key" 2048 2>/dev/null
  certificate apiserver /CN=kube-apiserver "subjectAltName=IP:$service_address,IP:127.0.0.1,DNS:kubernetes,DNS:kubernetes.default.svc"
  certificate admin /O=system:masters/CN=admin
  certificate controller-manager /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  certificate kubelet "/O=system:nodes/CN=system:node:$node"
  for name in admin controller-manager scheduler kubelet; do kubeconfig "$name"; done
  command_of kubectl "exec $debian/usr/bin/kubectl --kubeconfig $pki/admin.conf \"\$@\""
  # Each answer to one of our accounts, by which tests see what it needs.
  printf '%s\n' 'apiVersion: audit.k8s.io/v1' 'kind: Policy' 'omitStages: [RequestReceived]' 'rules:' \
    '- {level: Metadata, userGroups: ["system:serviceaccounts:gpu"]}' '- {level: None}' >"$machine/audit.yaml"
  daemon etcd "$debian/usr/bin/etcd" --data-dir "$machine/etcd" --listen-peer-urls http://127.0.0.1:2380 --logger zap
  daemon apiserver "$kubernetes/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --secure-port 443 --advertise-address "$service_address" \
    --service-cluster-ip-range "${service_address%.*}.0/24" --allow-privileged --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
    --kubelet-client-certificate "$pki/admin.crt" --kubelet-client-key "$pki/admin.key" --kubelet-preferred-address-types InternalIP \
    --service-account-issuer "$server" --service-account-key-file "$pki/accounts.key" --service-account-signing-key-file "$pki/accounts.key" \
    --audit-policy-file "$machine/audit.yaml" --audit-log-path "$machine/log/audit"
  within 120 kubectl get --raw /readyz >/dev/null 2>&1 || die "the API server did not come up: $(tail -n 20 "$machine/log/apiserver")"
  daemon controller-manager "$kubernetes/kube-controller-manager" --kubeconfig "$pki/controller-manager.conf" --leader-elect=false \
    --use-service-account-credentials --service-account-private-key-file "$pki/accounts.key" --root-ca-file "$pki/ca.crt"
  daemon scheduler "$kubernetes/kube-scheduler" --kubeconfig "$pki/scheduler.conf" --leader-elect=false
}

start_kubelet() {
  cat >"$machine/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
syncFrequency: 5s
# How long a change of a ConfigMap takes to reach a pod, at most.
configMapAndSecretChangeDetectionStrategy: Watch
clusterDNS: [${service_address%.*}.10]
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $machine/pki/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /$machine_cgroup
cgroupsPerQOS: false
enforceNodeAllocatable: []
evictionHard: {memory.available: "0%"}
imageGCHighThresholdPercent: 100
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
YAML
  daemon kubelet "$kubernetes/kubelet" --config "$machine/kubelet.yaml" --kubeconfig "$machine/pki/kubelet.conf" --hostname-override "$node" \
    --node-ip "$node_address" --container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock
}

# import_images: those that packaging/image makes, and local ones under the names that pages use.
import_images() {
  local archive
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  ctr image tag docker.io/library/small:latest "$cuda" >/dev/null
  "$top/packaging/image" --build "$build" "$machine/image" >"$machine/log/image"
  for archive in "$machine"/image/*.tar; do ctr image import "$archive" >/dev/null; done
}

kubectl() { on_host kubectl "$@"; }

cluster_setup() {
  work=$BATS_FILE_TMPDIR
  # shellcheck disable=SC2034 # lib.bash shows it when an answer is wrong
  hook_log=$BATS_TEST_TMPDIR/hook.log
}

# cluster_teardown: no pod of the test is left. A test that passes has removed what it has installed, but for the chart; of one that fails, all is removed.
cluster_teardown() {
  [ ! -e "$machine/why" ] || return 0
  [ -n "${BATS_TEST_COMPLETED:-}" ] || show_cluster || true
  kubectl delete --all deployments,jobs,pods --namespace default --grace-period 0 --force --wait=false >/dev/null 2>&1 || true
  [ -n "${BATS_TEST_COMPLETED:-}" ] || remove_installed || true
  within 60 no_pods --namespace=default || die "pods are left: $(kubectl get pods)"
}
# no_pods OPTION: in the namespaces that it chooses.
no_pods() {
  local left
  left=$(kubectl get pods "$1" --output name 2>/dev/null) && [ -z "$left" ]
}
# remove_installed: from the cluster and its node. Called where no failure ends it.
remove_installed() {
  remove_chart
  kubectl delete --all daemonsets --all-namespaces --timeout 120s
  # The toolkit's pod takes back what it has changed when it ends.
  within 60 no_pods --all-namespaces
  kubectl label node "$node" nvidia.com/device-plugin.config- device-plugin-
  : >"$machine/kmsg"
  as_before
}
# as_before: the node has nothing that pages and tests install, and containerd no runtime of ours.
as_before() {
  local unit
  for unit in nvidia-device-plugin gpu-feature-discovery mps-control-daemon nvidia-nri-plugin; do on_host systemctl disable --now $unit; done
  on_host sh -c 'rm -rf /etc/nvidia-container-runtime/config.toml /etc/nvidia-container-toolkit/* /var/run/cdi/*'
  reset_engine
  on_host systemctl restart containerd
  rm -f "$machine/configured"
}
show_cluster() {
  kubectl get pods --all-namespaces -o wide
  kubectl get events --all-namespaces --sort-by .lastTimestamp | tail -n 20
}

# install_chart NAMESPACE [VALUES]: the chart as release nvdp with these values, lines of YAML, in place of the one before, unless that is the same. The plugin's kernel
# log is the simulated one. remove_chart: with its pods.
install_chart() {
  printf '%s\n' "${2:-}" >"$BATS_TEST_TMPDIR/values.yaml"
  "$BATS_FILE_TMPDIR/programs/chart" --namespace "$1" --release nvdp "$chart" "$BATS_TEST_TMPDIR/values.yaml" | sed "/^ *- name: nvidia-device-plugin-ctr/,/^---/{
s|^        env:|&\\n        - {name: SIMULATED_KMSG, value: $machine/kmsg}|
s|^        volumeMounts:|&\\n        - {name: kmsg, mountPath: $machine/kmsg, readOnly: true}|
s|^      volumes:|&\\n      - {name: kmsg, hostPath: {path: $machine/kmsg, type: File}}|
}" >"$BATS_TEST_TMPDIR/rendered.yaml"
  ! cmp -s "$machine/rendered.yaml" "$BATS_TEST_TMPDIR/rendered.yaml" || return 0
  remove_chart
  kubectl create namespace "$1" >/dev/null 2>&1 || true
  kubectl apply --filename "$BATS_TEST_TMPDIR/rendered.yaml" >"$BATS_TEST_TMPDIR/applied"
  echo "$1" >"$machine/rendered.in"
  cp "$BATS_TEST_TMPDIR/rendered.yaml" "$machine/rendered.yaml"
}
remove_chart() {
  [ -e "$machine/rendered.yaml" ] || return 0
  kubectl delete --filename "$machine/rendered.yaml" --ignore-not-found --timeout 120s >/dev/null
  within 60 no_pods --namespace="$(cat "$machine/rendered.in")"
  rm "$machine/rendered.yaml"
}
# rolled_out NAMESPACE DAEMONSET
rolled_out() { kubectl --namespace "$1" rollout status daemonset "$2" --timeout 120s; }

# pod NAME [GPUS [FIELD-OF-THE-POD [VARIABLES [ANNOTATION]]]]: one that sleeps. Its field is by default the RuntimeClass; variables are more of a list in YAML, with a
# comma in front.
pod() {
  kubectl apply --filename - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {${5:-}}}
spec:
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  ${3:-runtimeClassName: nvidia}
  containers:
  - name: main
    image: docker.io/library/small:latest
    imagePullPolicy: Never
    command: [/bin/sleep, "86400"]
    env: [{name: PROBE_MINORS, value: "$(host_minors)"}${4:-}]
    resources: {limits: {$([ "${2:-0}" = 0 ] || echo "nvidia.com/gpu: $2")}}
YAML
}
remove_pods() {
  kubectl delete pod "$@" --grace-period 1 --timeout 60s >/dev/null
}
await_pods() {
  kubectl wait --for condition=Ready --timeout 120s "${@/#/pod/}" >/dev/null || die "$(kubectl describe pod "$@" | tail -n 40)"
}
# of_pod NAME JSONPATH
of_pod() { kubectl get pod "$1" -o "jsonpath=$2"; }

# expect_pod NAME N: it runs and sees N GPUs, whose indexes come into the array gpus, and no other.
expect_pod() {
  local line
  await_pods "$1" || return
  run kubectl exec "$1" -- /probe
  read_answers
  [ "$2" -ne 0 ] || {
    expect_no_gpu
    return
  }
  gpus=()
  while read -r line; do gpus+=("$((line - 1))"); done < <(host_uuids | grep -nFf <(tr ' ' '\n' <<<"${answer[nvidia-smi-uuids]}" | grep .) | cut -d : -f 1)
  [ ${#gpus[@]} -eq "$2" ] || die "pod $1 has GPUs ${gpus[*]}: $output" || return
  expect_gpus "${gpus[@]}"
}

# allocatable [RESOURCE], is_allocatable N [RESOURCE]
allocatable() { kubectl get node "$node" -o json | jq -r --arg name "${1:-nvidia.com/gpu}" '.status.allocatable[$name] // "none"'; }
is_allocatable() { [ "$(allocatable "${2:-}")" = "$1" ]; }
expect_allocatable() { within 60 is_allocatable "$@" || die "allocatable: $(allocatable "${2:-}"), not $1"; }

# events_of POD: their messages. has_event POD REGEX
events_of() { kubectl get events --field-selector "involvedObject.name=$1" -o jsonpath='{range .items[*]}{.reason}{": "}{.message}{"\n"}{end}'; }
has_event() { events_of "$1" | grep -qE "$2"; }
expect_event() { within 60 has_event "$@" || die "no such event: $(events_of "$1")"; }
