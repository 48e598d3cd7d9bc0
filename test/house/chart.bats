# SPDX-License-Identifier: Apache-2.0
# files: disk
# The Helm chart and the static manifest: rendered with the template library that Helm is built from, and checked against the fields of Kubernetes' API.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup_file() {
  cd "$BATS_TEST_DIRNAME/../.." || return
  export go_path=/usr/share/gocode
  if ! command -v go >/dev/null || ! ls -d $go_path/src/github.com/Masterminds/sprig $go_path/src/sigs.k8s.io/yaml >/dev/null; then
    skip "golang-github-masterminds-sprig-dev or golang-k8s-sigs-yaml-dev is not installed (tools/deps test)"
  fi
  export program=$BATS_FILE_TMPDIR/chart chart=packaging/kubernetes/nvidia-device-plugin
  GO111MODULE=off GOPATH=$go_path GOCACHE=${GOCACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/go-build} go build -o "$program" test/tools/chart.go
}
setup() { cd "$BATS_TEST_DIRNAME/../.." || return; }

# render VALUES: the chart with these values, a line of YAML.
render() {
  printf '%s\n' "$1" >"$BATS_TEST_TMPDIR/values.yaml"
  run "$program" --namespace gpu --release nvdp "$chart" "$BATS_TEST_TMPDIR/values.yaml"
}

# refuses VALUES MESSAGE: the chart does not render, and the error says why.
refuses() {
  render "$1"
  [ "$status" -eq 1 ] || { echo "it was not refused: $1"; return 1; }
  [[ $output == *"$2"* ]] || { echo "$output"; return 1; }
}

@test "each set of values renders to what is kept, and the static manifest is that of the chart" {
  local file
  test/kubernetes/chart/update "$program" "$BATS_TEST_TMPDIR"
  for file in "$BATS_TEST_TMPDIR"/*.yaml; do
    case ${file##*/} in
    nvidia-device-plugin.yaml) diff -u packaging/kubernetes/nvidia-device-plugin.yaml "$file" ;;
    *) diff -u "test/kubernetes/chart/${file##*/}" "$file" ;;
    esac
  done
}

@test "what is rendered has only fields that Kubernetes knows, and they fit together" {
  local file
  for file in packaging/kubernetes/*.yaml $(find test/kubernetes/chart -name '*.yaml' ! -name '*.values.yaml'); do
    echo "$file"
    test/tools/manifests --known-config-map node-configs "$file"
    run ! grep -nE ' $|^$' "$file"
  done
}

@test "the NRI plugin sees the specifications of the node, with Helm and without" {
  local file directory
  render '{nri: {enabled: true}}'
  printf '%s\n' "$output" >"$BATS_TEST_TMPDIR/rendered.yaml"
  for file in packaging/kubernetes/nvidia-nri-plugin.yaml "$BATS_TEST_TMPDIR/rendered.yaml"; do
    # The directories that config.toml has if it does not say otherwise.
    for directory in $(sed -n 's/^#\?spec-dirs = \[\(.*\)\]/\1/p' docs/config.toml | tr -d '",'); do
      [[ $(sed -n '/NRI_NAMESPACE/,$p' "$file") == *"mountPath: $directory"*"path: $directory"* ]] || { echo "$file: $directory" && return 1; }
    done
  done
}

@test "the check of manifests finds mistakes" {
  local good=packaging/kubernetes/nvidia-device-plugin.yaml bad=$BATS_TEST_TMPDIR/bad.yaml
  sed 's/imagePullPolicy/imagePulPolicy/' "$good" >"$bad"
  run -1 test/tools/manifests "$bad"
  [[ $output == *"there is no field 'imagePulPolicy'"* ]]
  sed '0,/- name: cdi/s//- name: cdx/' "$good" >"$bad"
  run -1 test/tools/manifests "$bad"
  [[ $output == *"mounts 'cdx', which is no volume"* ]]
  sed 's/value: "false"/value: false/' "$good" >"$bad"
  run -1 test/tools/manifests "$bad"
  [[ $output == *"False is of the wrong type"* ]]
  sed '0,/name: nvidia-device-plugin-ds/s//name: other/' "$good" >"$bad"
  run -1 test/tools/manifests "$bad"
  [[ $output == *"its pods do not match its selector"* ]]
}

@test "the schema of the values accepts all that are kept, and refuses others" {
  local file
  for file in "$chart/values.yaml" test/kubernetes/chart/*.values.yaml; do schema "$file"; done
  for values in 'migStrategy: double' 'deviceListStrategy: env' 'deviceListStrategy: [cdi]' 'migStratgy: none' 'gfd: {enable: true}' 'metricsPort: -1' 'kubeletRoot: lib' \
    'config: {fallbackStrategies: [none]}' 'configSelection: both' 'failOnInitError: "no"'; do
    printf '%s\n' "$values" >"$BATS_TEST_TMPDIR/values.yaml"
    run -1 schema "$BATS_TEST_TMPDIR/values.yaml"
  done
}
schema() {
  /usr/bin/python3 -c 'import json, sys, jsonschema, yaml
try:
    jsonschema.validate(yaml.safe_load(open(sys.argv[2])) or {}, json.load(open(sys.argv[1])))
except jsonschema.ValidationError as error:
    sys.exit(error.message)' "$chart/values.schema.json" "$1"
}

@test "every value of the chart is in its schema" {
  diff <(/usr/bin/python3 -c 'import sys, yaml; print("\n".join(sorted(yaml.safe_load(sys.stdin))))' <"$chart/values.yaml") \
    <(jq -r '.properties | keys[] | select(. != "global")' "$chart/values.schema.json" | LC_ALL=C sort)
}

@test "each value reaches the program by the variable that it has" {
  # The variables of the command line are those of the program itself.
  local name
  render "$(cat test/kubernetes/chart/everything.values.yaml)"
  sed -n 's/.*ENV("\([A-Z_]*\)".*/\1/p' src/kubernetes/kube_options.c >"$BATS_TEST_TMPDIR/names"
  while read -r name; do
    case $name in
    NVIDIA_DEV_ROOT | SHARED_DEVICES_ALLOCATION_POLICY | IMEX_CHANNEL_IDS | IMEX_REQUIRED | KUBELET_SOCKET | PLUGIN_REGISTRY | CDI_ANNOTATION_PREFIX | CDI_DISABLE_HOOKS | DP_*_HEALTHCHECKS | STATE_DIR | CONFIG_FILE | HEALTH) continue ;;
    DRIVER_ROOT_CTR_PATH) name=CONTAINER_DRIVER_ROOT ;;
    esac
    grep -q -- "- name: $name\$" <<<"$output" || { echo "$name is not set"; return 1; }
  done <"$BATS_TEST_TMPDIR/names"
}

@test "values that cannot be meant are refused, with what to do" {
  refuses 'nfd: {enabled: true}' "nfd.enabled: this chart does not hold Node Feature Discovery; install it by its own chart"
  refuses 'namespaceOverride: default' "the namespace is 'default': install into one of its own with --namespace nvidia-device-plugin --create-namespace"
  refuses 'config: {name: a, map: {b: ""}}' "config.name and config.map: give one of them"
  refuses 'config: {default: c, map: {b: "", a: ""}}' "config.default is 'c', which is not in config.map: a, b"
  refuses 'mps: {enableHostPID: true}' "mps.enableHostPID needs mps.root"
  refuses '{nri: {enabled: true}, deviceListStrategy: cdi-cri}' "nri.enabled needs deviceListStrategy envvar or volume-mounts, not cdi-cri: the NRI plugin reads which GPUs a container asks for from these"
  render 'allowDefaultNamespace: true
namespaceOverride: default'
  [ "$status" -eq 0 ]
}

@test "a device plugin that needs no right has none" {
  render 'healthChecks: false'
  [[ $output == *"drop: [ALL]"* ]] && [[ $output != *privileged* ]]
  render '{healthChecks: false, compatWithCPUManager: true}'
  [[ $output == *"privileged: true"* ]]
  render '{healthChecks: false, migStrategy: mixed}'
  [[ $output == *"privileged: true"* ]]
  # Nothing of the API server where nothing is asked of it.
  render ''
  [[ $output == *"automountServiceAccountToken: false"* ]] && [[ $output != *ServiceAccount$'\n'* ]]
}

@test "no port is open unless one is asked for" {
  run ! grep -rlE 'LISTEN_ADDRESS|containerPort|hostNetwork: true' packaging/kubernetes/nvidia-device-plugin.yaml test/kubernetes/chart/defaults.yaml
  render 'metricsPort: 9401'
  [[ $output == *'value: "9401"'* && $output == *'containerPort: 9401'* ]]
}

@test "only feature discovery may write to the API server, and config-manager has no right" {
  /usr/bin/python3 - test/kubernetes/chart/sidecar.yaml <<'PYTHON'
import sys, yaml
with open(sys.argv[1], encoding="utf-8") as stream:
    objects = list(yaml.safe_load_all(stream))
def of(kind): return [o for o in objects if o["kind"] == kind]
pods = {o["metadata"]["name"]: o["spec"]["template"]["spec"] for o in of("DaemonSet")}
writers = {s["name"] for kind in ("RoleBinding", "ClusterRoleBinding") for o in of(kind) for s in o["subjects"]
           if any(set(rule["verbs"]) - {"get", "list", "watch"} for r in of(o["roleRef"]["kind"]) if r["metadata"]["name"] == o["roleRef"]["name"] for rule in r["rules"])}
assert {name for name, pod in pods.items() if pod["serviceAccountName"] in writers} == {"nvdp-nvidia-device-plugin-gpu-feature-discovery"}, writers
managers = [c for pod in pods.values() for c in pod["containers"] + pod["initContainers"] if c["command"] == ["config-manager"]]
assert len(managers) == 6
for manager in managers:
    assert manager["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}, manager
PYTHON
}

@test "the notes name the DaemonSet and the doctor" {
  run -0 "$program" --namespace gpu --release nvdp --notes "$chart"
  [[ $output == *"kubectl --namespace gpu rollout status daemonset nvdp-nvidia-device-plugin"* ]]
  [[ $output == *'nvidia-ctk doctor kubernetes'* ]]
}

@test "chart, program and image are of one version" {
  local version
  version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
  grep -qx "version: $version" "$chart/Chart.yaml"
  grep -qx "appVersion: $version" "$chart/Chart.yaml"
  [ "$(sed -nE 's/^ *(app.kubernetes.io\/version: |image: graft\/[a-z0-9-]*:)"?([0-9.]*)"?$/\2/p' packaging/kubernetes/*.yaml | sort -u)" = "$version" ]
}
