# SPDX-License-Identifier: Apache-2.0
# files: disk
# gpu-feature-discovery on a simulated host: files, events, signals, and what is not done. The labels themselves are compared by golden-kube-labels.

load lib.bash

setup_file() {
  [ -x "$build/src/daemon/gpu-feature-discovery" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  start_host dgx-h100
}
teardown_file() { stop_host; }
setup() {
  test_setup
  program=$build/src/daemon/gpu-feature-discovery
  features=$work/features.d/gfd
  facts=/run/graft-sim/facts.json
  daemon=
  log=$work/log
  server=
  pods=/api/v1/namespaces/gpu-tools/pods/gfd-x
  nodefeatures=/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/gpu-tools/nodefeatures
  say 'Simulated machine' >"$work/machine"
  : >"$work/kmsg"
  options=(--use-node-feature-api=false --output-file "$features" --machine-type-file "$work/machine")
}
teardown() {
  [ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null || true
  [ -z "$server" ] || kill -KILL "$server"
  test_teardown
  stop_other_host
}

# once [OPTION...]: labels the host once.
once() { on_host env "${variables[@]}" "$program" "${options[@]}" --oneshot "$@"; }
# serve: an API server in $work/api, which has a pod of a DaemonSet.
serve() {
  mkdir "$work/api"
  /usr/bin/python3 "$top/test/kubernetes/apiserver.py" serve "$work/api" >"$work/api.log" 2>&1 3>&- 4>&- &
  server=$!
  within test -s "$work/api/port"
  # The namespace by its variable, as manifests have it.
  export NAMESPACE=gpu-tools
  options=(--kubeconfig "$work/api/kubeconfig" --node-name gpu-node --pod-name gfd-x --machine-type-file "$work/machine" --no-timestamp)
  ctl POST "${pods%/*}" '{"metadata": {"name": "gfd-x", "uid": "pod-uid", "ownerReferences": [
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gfd", "uid": "set-uid", "controller": true, "blockOwnerDeletion": true}]}}' >"$work/answer"
}
ctl() { /usr/bin/python3 "$top/test/kubernetes/apiserver.py" ctl "$work/api" "$@"; }
object() { ctl GET "$nodefeatures/nvidia-features-for-gpu-node"; }
is_object() { object >"$work/object" && jq -e "$1" "$work/object" >"$work/answer"; }
requests() { grep -cE "^($1) $nodefeatures" "$work/api/log"; }
# begin [OPTION...]: the daemon, when it has made labels or waits for the driver. Its log is in $log.
begin() {
  rm -f "$log"
  nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" --wdns="$PWD" -- env SIMULATED_KMSG="$work/kmsg" "${variables[@]}" \
    "$program" "${options[@]}" "$@" 2>"$log" 3>&- 4>&- &
  daemon=$!
  within grep -qsE "labels (written|sent) to|waiting for the driver|trying again later" "$log"
}
# end SIGNAL: ends the daemon; $status is its exit status.
end() {
  kill -"$1" "$daemon"
  status=0
  wait "$daemon" || status=$?
  daemon=
}
label() { sed -n "s|^nvidia.com/$1=||p" "$features"; }
is_label() { [ "$(label "$1")" = "$2" ]; }
is_other_file() { [ "$(stat -c '%i %Z' "$features" 2>/dev/null)" != "$1" ] && [ -s "$features" ]; }
written() { grep -c 'labels written' "$log"; }

@test "once: the file is written as a whole, readable for all, and stays" {
  run -0 once
  [ "$(stat -c %a "$features")" = 644 ]
  [ "$(ls -A "$work/features.d")" = gfd ]
  is_label gpu.product NVIDIA-H100-80GB-HBM3
  is_label gpu.machine Simulated-machine
  [ $(($(date +%s) - $(label gfd.timestamp))) -le 60 ]
  [[ $output == *"labels written to $features" ]]
}

@test "a file that would be the same is not written again" {
  local before
  once --no-timestamp
  before=$(stat -c '%i %Y %Z' "$features")
  [ -z "$(label gfd.timestamp)" ]
  run -0 once --no-timestamp
  [ "$(stat -c '%i %Y %Z' "$features")" = "$before" ]
  [[ $output != *"labels written"* ]]
  say 'nvidia.com/gpu.count=99' >"$features"
  once --no-timestamp
  is_label gpu.count 8
}

@test "options, variables, config file: in this order; aliases" {
  variables=(GFD_MIG_STRATEGY=mixed MIG_STRATEGY=single GFD_NO_TIMESTAMP=true)
  run -0 on_host env "${variables[@]}" "$program" --print-config
  [ "$(jq -r '.flags | .migStrategy, .gfd.noTimestamp, .useNodeFeatureAPI, .gfd.outputFile' <<<"$output" | paste -sd' ')" = \
    "mixed true true /etc/kubernetes/node-feature-discovery/features.d/gfd" ]
  cat >"$work/config.yaml" <<YAML
flags:
  migStrategy: none
  gfd: {sleepInterval: 1h30m, outputFile: /from/file, oneshot: true}
YAML
  run -0 on_host env "${variables[@]}" "$program" --config-file "$work/config.yaml" --mig-strategy single -o /from/option --sleep-interval infinite --print-config
  [ "$(jq -r '.flags | .migStrategy, .gfd.oneshot, .gfd.sleepInterval, .gfd.outputFile' <<<"$output" | paste -sd' ')" = "single true infinite /from/option" ]
  run -0 on_host env GFD_CONFIG_FILE="$work/config.yaml" "$program" --output= --print-config
  [ "$(jq -r '.flags.gfd | .outputFile, .sleepInterval' <<<"$output" | paste -sd' ')" = " 1h30m" ]
  # Of two names, that of this program comes first.
  run -0 on_host env GFD_FAIL_ON_INIT_ERROR=false FAIL_ON_INIT_ERROR=true GFD_ONESHOT=true GFD_MACHINE_TYPE_FILE=/from/variable USE_NODE_FEATURE_API=false \
    DRIVER_ROOT_CTR_PATH=/driver CONTAINER_DRIVER_ROOT=/other "$program" --print-config
  [ "$(jq -r '.flags | .failOnInitError, .gfd.oneshot, .gfd.machineTypeFile, .useNodeFeatureAPI, .plugin.containerDriverRoot' <<<"$output" | paste -sd' ')" = \
    "false true /from/variable false /driver" ] || die "$output"
  run -0 on_host env FAIL_ON_INIT_ERROR=false GFD_USE_NODE_FEATURE_API=true USE_NODE_FEATURE_API=false "$program" --print-config
  [ "$(jq -r '.flags | .failOnInitError, .useNodeFeatureAPI' <<<"$output" | paste -sd' ')" = "false true" ]
  run -0 "$program" --version
  [[ $output == "gpu-feature-discovery version "* ]]
  run -0 "$program" --help
  [[ $output == *--sleep-interval* && $output == *GFD_SLEEP_INTERVAL* ]]
}

@test "labels to standard output" {
  run -0 --separate-stderr once --output-file= --no-timestamp
  [[ $output == "nvidia.com/cuda.driver-version.full=550.54.14"$'\n'* ]]
  LC_ALL=C sort --check <<<"$output"
  [ ! -e "$features" ]
}

@test "a wrong configuration: file, line, key and exit status 1; nothing is written" {
  printf 'version: v1\nflags:\n  gfd:\n    sleepInterval: soon\n' >"$work/config.yaml"
  run -1 once --config-file "$work/config.yaml"
  [[ $output == "gpu-feature-discovery: $work/config.yaml: line 4, column "*": flags.gfd.sleepInterval: invalid duration \"soon\"; allowed: "* ]] || die "$output"
  [ ! -e "$features" ]
  run -1 once --mig-strategy both
  [[ $output == "gpu-feature-discovery: invalid --mig-strategy option: both; allowed: none, single, mixed"* ]]
  run -1 once --device-discovery-strategy=vfio
  [[ $output == "gpu-feature-discovery: invalid --device-discovery-strategy option: vfio; allowed: auto, nvml, tegra"* ]] || die "$output"
  run -1 once --sleep-interval soon
  [[ $output == "gpu-feature-discovery: invalid --sleep-interval option: soon; allowed: 90s, 1h30m, infinite, or a number of nanoseconds"* ]]
  run -1 once --config-file "$work/none.yaml"
  [[ $output == "gpu-feature-discovery: unable to read config file $work/none.yaml"* ]]
  run -1 once --output-file /proc/gfd
  [[ $output == *"gpu-feature-discovery: cannot write /proc/gfd"* ]]
}

@test "a wrong configuration at the start, with --fail-on-init-error=false: it is waited for" {
  say 'flags: {migStrategy: no}' >"$work/config.yaml"
  run -1 once --config-file "$work/config.yaml" --fail-on-init-error=false
  begin --config-file "$work/config.yaml" --fail-on-init-error=false --sleep-interval 300ms
  grep -q "no labels: $work/config.yaml: line 1, column 9: flags.migStrategy: .*; trying again later$" "$log"
  [ ! -e "$features" ]
  say 'flags: {migStrategy: mixed}' >"$work/config.yaml"
  within is_label mig.strategy mixed
  end TERM
  [ "$status" -eq 0 ]
  run -1 grep "gpu-feature-discovery: " "$log"
}

@test "no driver: an error that says what to do; or the daemon waits, and labels when the driver is there" {
  mkdir "$work/empty"
  run -1 once --driver-root-ctr-path "$work/empty"
  [[ $output == *$'\n'"gpu-feature-discovery: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory"$'\n  Install the driver'* ]]
  [ ! -e "$features" ]
  begin --driver-root-ctr-path "$work/empty" --fail-on-init-error=false --sleep-interval infinite
  grep -q 'no labels: .*libnvidia-ml.so.1.*; waiting for the driver$' "$log"
  # What procfs and devices are is known to this host; now the libraries come, too.
  rmdir "$work/empty"
  say '6,1,1,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14' >>"$work/kmsg"
  within is_label gpu.count 8
  end TERM
  [ "$status" -eq 0 ]
  [ -e "$features" ]
}

@test "NVML is asked once per boot, by a child; the daemon opens no GPU" {
  on_host rm -f "$facts"
  run -0 on_host strace -f -qq -e trace=open,openat,openat2,clone,clone3,fork,vfork -o "$work/first" "$program" "${options[@]}" --oneshot
  [[ $output == *"asking NVML"* ]]
  grep -q 'libnvidia-ml.so' "$work/first"
  on_host jq -e '.version == 3 and .nvml.gpus[7].memory_mib == 81559' "$facts"
  [ "$(on_host stat -c %a "$facts")" = 644 ]
  run -0 on_host strace -f -qq -e trace=open,openat,openat2,clone,clone3,fork,vfork -o "$work/second" "$program" "${options[@]}" --oneshot
  [[ $output != *"asking NVML"* ]]
  run -1 grep -E 'libnvidia-ml.so.*O_RDONLY|"(/dev/)?nvidia[0-9c]|clone|fork' "$work/second"
}

@test "a fabric that is not ready is kept as preliminary; a daemon asks again after an event" {
  "$build/sim/graft-sim" show dgx-h100 | sed 's/^fabricmanager: true/fabricmanager: false/' >"$work/early.yaml"
  other_host "$work/early.yaml"
  begin --sleep-interval 300ms
  grep -q "NVML's answer is preliminary: GPU 0 has not joined its NVLink fabric (1 of 8 reasons); asking again later" "$log"
  on_host sed -i 's/"n_asked": 1/"n_asked": 8/; s/"asked_s": [0-9]*/"asked_s": 0/' "$facts"
  say '6,2,2,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14' >>"$work/kmsg"
  within on_host jq -e '.n_asked == 2' "$facts"
  end TERM
}

@test "kept facts that are damaged or of another boot are made anew" {
  once --no-timestamp
  cp "$features" "$work/before"
  on_host truncate -s 100 "$facts"
  run -0 once --no-timestamp
  [[ $output == *"the kept facts are damaged, collecting them again: "*"asking NVML"* ]]
  cmp "$features" "$work/before"
  on_host sed -i 's/"boot_id": "[^"]*"/"boot_id": "00000000-0000-0000-0000-000000000000"/' "$facts"
  run -0 once --no-timestamp
  [[ $output == *"the kept facts are of another boot, collecting them again"*"asking NVML"* ]]
  run -0 once --no-timestamp
  [[ $output != *"collecting"* && $output != *"asking NVML"* ]]
}

@test "a user without rights gets labels, and keeps nothing" {
  on_host rm -f "$facts"
  run -0 --separate-stderr on_host setpriv --reuid 65534 --regid 65534 --clear-groups "$program" "${options[@]}" --oneshot --output-file=
  [[ $output == *"nvidia.com/gpu.memory=81559"* ]]
  # shellcheck disable=SC2154
  [[ $stderr == *"cannot save the answer of NVML: cannot write $facts"* ]]
}

@test "NVML does not answer: an error, or the labels that the kernel knows" {
  other_host dgx-h100 --fault nvml-init-fail=15
  run -1 once
  [[ $output == *$'\n'"gpu-feature-discovery: nvml error: "* ]] || die "$output"
  begin --fail-on-init-error=false
  grep -q 'omitting the labels that need NVML: nvml error: ' "$log"
  is_label gpu.product NVIDIA-H100-80GB-HBM3
  is_label gpu.memory ''
  end TERM
}

@test "SIGTERM, SIGINT and SIGQUIT end it, and the labels go; with an infinite interval they stay" {
  local name
  for name in TERM INT QUIT; do
    begin
    [ -s "$features" ]
    end "$name"
    [ "$status" -eq 0 ]
    [ ! -e "$features" ]
  done
  grep -q 'exiting on signal 3$' "$log"
  begin --sleep-interval infinite
  end TERM
  [ "$status" -eq 0 ]
  [ -s "$features" ]
}

@test "SIGHUP reads everything anew and asks NVML; a wrong configuration changes nothing" {
  say 'flags: {migStrategy: single}' >"$work/config.yaml"
  begin --config-file "$work/config.yaml" --sleep-interval 1h
  is_label mig.strategy single
  say 'flags: {migStrategy: mixed}' >"$work/config.yaml"
  kill -HUP "$daemon"
  within is_label mig.strategy mixed
  within grep -q 'asking NVML' "$log"
  say 'flags: {migStrategy: 7}' >"$work/config.yaml"
  kill -HUP "$daemon"
  within grep -q "the labels stay as they are: $work/config.yaml: line 1, column .*flags.migStrategy" "$log"
  is_label mig.strategy mixed
  # Another place: the labels are not left behind at the one before.
  say "flags: {gfd: {outputFile: $work/features.d/other}}" >"$work/config.yaml"
  variables=()
  end TERM
  options=(--use-node-feature-api=false --machine-type-file "$work/machine")
  say "flags: {gfd: {outputFile: $features}}" >"$work/config.yaml"
  begin --config-file "$work/config.yaml" --sleep-interval 1h
  say "flags: {gfd: {outputFile: $work/features.d/other}}" >"$work/config.yaml"
  kill -HUP "$daemon"
  within test -s "$work/features.d/other"
  within test ! -e "$features"
  end TERM
  [ -z "$(ls -A "$work/features.d")" ]
}

@test "events: kernel log, configuration, device nodes, and the file of the labels" {
  mkdir "$work/map" "$work/map/one" "$work/map/two"
  say 'flags: {migStrategy: single}' >"$work/map/one/config.yaml"
  say 'flags: {migStrategy: mixed}' >"$work/map/two/config.yaml"
  ln -s one "$work/map/..data"
  ln -s ..data/config.yaml "$work/map/config.yaml"
  begin --config-file "$work/map/config.yaml" --sleep-interval 300ms
  is_label mig.strategy single
  # As a ConfigMap is mounted: a new link replaces the one before.
  ln -s two "$work/map/..new"
  mv -T "$work/map/..new" "$work/map/..data"
  within is_label mig.strategy mixed
  say One >"$work/machine"
  say '6,2,2,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14' >>"$work/kmsg"
  within is_label gpu.machine One
  say Two >"$work/machine"
  on_host touch /dev/nvidia-new
  within is_label gpu.machine Two
  on_host rm /dev/nvidia-new
  rm "$features"
  within is_label gpu.count 8
  say 'nvidia.com/gpu.count=1' >"$features"
  within is_label gpu.count 8
  say 'flags: {migStrategy: single}' >"$work/map/two/config.yaml"
  within is_label mig.strategy single
  # What is odd about a file is logged when it is read for an event; not when nothing has happened.
  say 'flags: {migStrtegy: none}' >"$work/map/two/config.yaml"
  within grep -q "line 1: ignoring unknown key 'flags.migStrtegy' (did you mean 'migStrategy'?)$" "$log"
  end TERM
  [ "$status" -eq 0 ]
}

@test "what is odd about the configuration is logged once at the start" {
  say 'flags: {migStrtegy: none}' >"$work/config.yaml"
  begin --config-file "$work/config.yaml" --sleep-interval 300ms extra
  end TERM
  [ "$(grep -c "line 1: ignoring unknown key 'flags.migStrtegy' (did you mean 'migStrategy'?)$" "$log")" -eq 1 ] || die "$(cat "$log")"
  [ "$(grep -c "ignoring 'extra' and all that follows: write options as --option=VALUE$" "$log")" -eq 1 ] || die "$(cat "$log")"
  run -0 --separate-stderr once --config-file "$work/config.yaml"
  [ "$(grep -c "ignoring unknown key" <<<"$stderr")" -eq 1 ]
  run -1 once --config-file - </dev/null
  [[ $output == "gpu-feature-discovery: --config-file=-: a daemon rereads its config file, which standard input does not allow"$'\n'* ]] || die "$output"
}

@test "what happens while NVML is asked for the first time is not missed" {
  other_host t4 --fault nvml-init-delay=2
  on_host rm -f "$facts"
  say 'flags: {migStrategy: single}' >"$work/config.yaml"
  # shellcheck disable=SC2016
  timeout 10 bash -c 'until grep -qs "asking NVML" "$0"; do sleep 0.05; done; echo "flags: {migStrategy: mixed}" >"$1"' "$log" "$work/config.yaml" 3>&- 4>&- &
  begin --config-file "$work/config.yaml" --sleep-interval 300ms
  within is_label mig.strategy mixed
  end TERM
}

@test "SIMULATED_KMSG is a simulated host's; elsewhere it is ignored" {
  [ ! -e /proc/driver/nvidia/version ] || skip "this machine has a driver"
  SIMULATED_KMSG=$work/kmsg "$program" "${options[@]}" --fail-on-init-error=false --sleep-interval infinite 2>"$log" 3>&- 4>&- &
  daemon=$!
  within grep -q 'waiting for the driver' "$log"
  say '6,1,1,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14' >>"$work/kmsg"
  sleep 1
  [ "$(grep -c 'no labels: ' "$log")" -eq 1 ]
  [ -z "$(find "/proc/$daemon/fd" -lname "$work/kmsg")" ]
  end TERM
}

@test "memory does not grow with the events that change nothing" {
  local before
  # rewrite N: the file of the labels is written again, as it is.
  rewrite() {
    /usr/bin/python3 -c 'import sys, time
with open(sys.argv[1], "rb") as f: text = f.read()
for i in range(int(sys.argv[2])):
    with open(sys.argv[1], "wb") as f: f.write(text)
    time.sleep(0.002)' "$features" "$1"
  }
  memory() { awk '$1 == "RssAnon:" { print $2 }' "/proc/$daemon/status"; }
  begin --sleep-interval 1h --no-timestamp
  rewrite 200
  before=$(memory)
  rewrite 2000
  sleep 0.5
  [ "$(memory)" -le $((before + 300)) ] || die "$before KiB, then $(memory)"
  end TERM
}

@test "without inotify, files are checked once per interval" {
  say 'flags: {migStrategy: single}' >"$work/config.yaml"
  begin_without_inotify() {
    nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" --wdns="$PWD" -- env SIMULATED_KMSG="$work/kmsg" \
      unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"' - \
      "$program" "${options[@]}" --config-file "$work/config.yaml" --sleep-interval 500ms 2>"$log" 3>&- 4>&- &
    daemon=$!
    within grep -q "labels written" "$log"
  }
  begin_without_inotify
  grep -q 'cannot watch files, checking once per --sleep-interval: Too many open files$' "$log"
  say 'flags: {migStrategy: mixed}' >"$work/config.yaml"
  within is_label mig.strategy mixed
  end TERM
}

@test "labels change no more often than the interval says" {
  local before
  begin --sleep-interval 3s
  before=$(stat -c '%i %Z' "$features") first=$(stat -c %.9Z "$features")
  sleep 0.5
  say One >"$work/machine"
  say '6,2,2,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14' >>"$work/kmsg"
  within is_other_file "$before"
  awk -v first="$first" -v second="$(stat -c %.9Z "$features")" 'BEGIN { exit second - first < 2.9 }'
  is_label gpu.machine One
  # It logs afterwards.
  within eval '[ "$(written)" -eq 2 ]'
  end TERM
}

@test "MIG devices, of which nothing reports changes, are looked at once in an interval; NVML is asked when they are others" {
  other_host a100-mig
  begin --mig-strategy mixed --sleep-interval 500ms
  is_label mig-1g.5gb.count 8
  sleep 1.2
  [ "$(written)" -eq 1 ]
  [ "$(grep -c 'asking NVML' "$log")" -eq 1 ]
  on_host rm -r /proc/driver/nvidia/capabilities/gpu2/mig/gi13
  within is_label mig-1g.5gb.count 7
  end TERM
}

@test "nothing wakes it when nothing happens; it holds no GPU and no NVML" {
  local before
  begin
  # What it does first may take its time.
  for _ in $(seq 20); do
    before=$(grep ctxt_switches "/proc/$daemon/status")
    sleep 1
    [ "$(grep ctxt_switches "/proc/$daemon/status")" != "$before" ] || break
  done
  sleep 4
  [ "$(grep ctxt_switches "/proc/$daemon/status")" = "$before" ]
  [ "$(find "/proc/$daemon/task" -mindepth 1 -maxdepth 1 -printf .)" = . ]
  run -1 grep nvidia-ml "/proc/$daemon/maps"
  [ -z "$(find "/proc/$daemon/fd" -lname "/dev/nvidia*")" ]
  awk '$1 == "VmRSS:" { exit $2 >= 8192 }' "/proc/$daemon/status"
  end TERM
}

@test "NodeFeature: once, with owners; and again, where nothing is to be written" {
  serve
  run -0 once
  [[ $output == *"labels sent to https://127.0.0.1:"*" as nvidia-features-for-gpu-node in namespace gpu-tools" ]]
  is_object '.apiVersion == "nfd.k8s-sigs.io/v1alpha1" and .kind == "NodeFeature"'
  is_object '.metadata | .name == "nvidia-features-for-gpu-node" and .namespace == "gpu-tools" and .labels == {"nfd.node.kubernetes.io/node-name": "gpu-node"}'
  is_object '.metadata.ownerReferences | sort_by(.kind) == [
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gfd", "uid": "set-uid", "controller": true},
    {"apiVersion": "v1", "kind": "Pod", "name": "gfd-x", "uid": "pod-uid"}]'
  is_object '.spec.features == {"flags": {}, "attributes": {}, "instances": {}}'
  # The same labels as in a file.
  jq -r '.spec.labels | to_entries[] | "\(.key)=\(.value)"' "$work/object" | LC_ALL=C sort >"$work/given"
  options+=(--use-node-feature-api=false --output-file "$features")
  once
  cmp "$features" "$work/given"
  [ "$(requests 'POST|PUT')" -eq 1 ]
  options+=(--use-node-feature-api=true)
  run -0 once
  [ "$(requests 'POST|PUT')" -eq 1 ]
  run -0 once --mig-strategy mixed
  [ "$(requests PUT)" -eq 1 ]
  is_object '.spec.labels["nvidia.com/mig.strategy"] == "mixed"'
}

@test "NodeFeature: kept while the daemon lives: others change it, remove it, or the server is away; it stays at the end" {
  serve
  begin --sleep-interval 300ms
  within is_object '.spec.labels["nvidia.com/gpu.count"] == "8"'
  ctl PATCH "$nodefeatures/nvidia-features-for-gpu-node" '{"spec": {"labels": {"nvidia.com/gpu.count": "99"}}}' >"$work/answer"
  within is_object '.spec.labels["nvidia.com/gpu.count"] == "8"'
  ctl DELETE "$nodefeatures/nvidia-features-for-gpu-node" >"$work/answer"
  within is_object '.spec.labels["nvidia.com/gpu.count"] == "8"'
  say One >"$work/machine"
  say '6,2,2,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14' >>"$work/kmsg"
  within is_object '.spec.labels["nvidia.com/gpu.machine"] == "One"'
  # Refused: said once, and tried again.
  ctl POST /-/fault "{\"match\": \"$nodefeatures/nvidia\", \"method\": \"PUT\", \"kind\": \"status\", \"code\": 403, \"message\": \"you may not\", \"count\": 2}" >"$work/answer"
  say Two >"$work/machine"
  say '6,2,2,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14' >>"$work/kmsg"
  within is_object '.spec.labels["nvidia.com/gpu.machine"] == "Two"'
  [ "$(grep -c 'cannot send the labels to the API server: .*you may not' "$log")" -eq 1 ]
  kill -KILL "$server"
  say Three >"$work/machine"
  say '6,2,2,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14' >>"$work/kmsg"
  sleep 1
  /usr/bin/python3 "$top/test/kubernetes/apiserver.py" serve "$work/api" >"$work/api.log" 2>&1 3>&- 4>&- &
  server=$!
  within is_object '.spec.labels["nvidia.com/gpu.machine"] == "Three"'
  end TERM
  [ "$status" -eq 0 ]
  object
}

@test "NodeFeature: what is missing is an error that says what to do" {
  options=(--machine-type-file "$work/machine")
  run -1 once
  [[ $output == *$'\n'"gpu-feature-discovery: cannot send labels to the API server without a node name; set --node-name (NODE_NAME), or write a file: --use-node-feature-api=false"* ]]
  run -1 once --node-name gpu-node
  [[ $output == *$'\n'"gpu-feature-discovery: "*KUBERNETES_SERVICE_HOST* ]] || die "$output"
  serve
  ctl POST /-/fault "{\"match\": \"$nodefeatures\", \"kind\": \"status\", \"code\": 403, \"message\": \"you may not list\", \"count\": 9}" >"$work/answer"
  run -1 once
  [[ $output == *$'\n'"gpu-feature-discovery: "*"you may not list"* ]] || die "$output"
}

@test "NodeFeature: a pod that cannot be read, and a faster writer, are no obstacle" {
  serve
  ctl POST /-/fault "{\"match\": \"$pods\", \"kind\": \"status\", \"code\": 403, \"message\": \"no pods\"}" >"$work/answer"
  run -0 once
  [[ $output == *"the labels will not be removed with this pod, because the pod cannot be read: "*"no pods"* ]]
  is_object '.metadata.ownerReferences == []'
  ctl POST /-/fault "{\"match\": \"$nodefeatures/nvidia\", \"method\": \"PUT\", \"kind\": \"status\", \"code\": 409}" >"$work/answer"
  run -0 once --mig-strategy mixed
  is_object '.spec.labels["nvidia.com/mig.strategy"] == "mixed" and (.metadata.ownerReferences | length) == 2'
  ctl POST /-/fault "{\"match\": \"$nodefeatures/nvidia\", \"method\": \"PUT\", \"kind\": \"status\", \"code\": 409, \"message\": \"modified\", \"count\": 99}" >"$work/answer"
  run -1 timeout 120 nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" --wdns="$PWD" -- "$program" "${options[@]}" --oneshot
  [[ $output == *"gpu-feature-discovery: PUT https://"*": modified (status 409)"* ]] || die "$output"
}

@test "NodeFeature: with a second writer, pauses grow, and one line says what to do" {
  local other n
  serve
  begin --sleep-interval 1h
  within is_object '.spec.labels["nvidia.com/gpu.count"] == "8"'
  # Another program that wants the object otherwise, and does not wait.
  (
    while :; do
      is_object '.spec.labels["nvidia.com/gpu.count"] == "8"' &&
        ctl PATCH "$nodefeatures/nvidia-features-for-gpu-node" '{"spec": {"labels": {"nvidia.com/gpu.count": "99"}}}' >"$work/answer"
      sleep 0.05
    done
  ) 3>&- 4>&- &
  other=$!
  sleep 8
  # At once, then after 1, 2 and 4 s; not as often where the other one is slow.
  n=$(requests PUT)
  [ "$n" -le 5 ] || die "$n times"
  within eval '[ "$(requests PUT)" -ge 3 ]'
  within grep -q 'another client keeps overwriting' "$log"
  kill "$other"
  wait "$other" || true
  [ "$(grep -c "another client keeps overwriting nvidia-features-for-gpu-node in namespace gpu-tools; .*Run only one gpu-feature-discovery per node: see 'kubectl get pods --all-namespaces --field-selector spec.nodeName=gpu-node'" "$log")" -eq 1 ]
  # The other one is gone: the labels are given once more, and stay.
  within is_object '.spec.labels["nvidia.com/gpu.count"] == "8"'
  n=$(requests PUT)
  sleep 2
  [ "$(requests PUT)" -eq "$n" ]
  end TERM
}

@test "NodeFeature: an object that the server changes while it writes it is not pressed" {
  serve
  begin --sleep-interval 1h
  within is_object '.spec.labels["nvidia.com/gpu.count"] == "8"'
  ctl POST /-/fault "{\"match\": \"$nodefeatures/nvidia\", \"method\": \"PUT\", \"kind\": \"status\", \"code\": 409, \"count\": 99}" >"$work/answer"
  ctl PATCH "$nodefeatures/nvidia-features-for-gpu-node" '{"spec": {"labels": {"nvidia.com/gpu.count": "99"}}}' >"$work/answer"
  sleep 6
  n=$(requests PUT)
  [ "$n" -le 4 ] || die "$n times"
  within grep -q 'another client keeps overwriting' "$log"
  [ "$(requests PUT)" -ge 2 ]
  [ "$(grep -c "another client keeps overwriting" "$log")" -eq 1 ]
  end TERM
}

@test "NodeFeature: a pod that cannot be read is read again, and meanwhile the object keeps its owners" {
  serve
  run -0 once
  is_object '(.metadata.ownerReferences | length) == 2'
  ctl POST /-/fault "{\"match\": \"$pods\", \"kind\": \"status\", \"code\": 403, \"message\": \"no pods\", \"count\": 2}" >"$work/answer"
  say One >"$work/machine"
  begin --sleep-interval 300ms
  within is_object '.spec.labels["nvidia.com/gpu.machine"] == "One"'
  is_object '(.metadata.ownerReferences | length) == 2'
  [ "$(grep -c 'cannot be read: .*no pods .*Allow the service account to get pods' "$log")" -eq 1 ]
  # The object goes, with its owners; they are known when the pod can be read.
  ctl DELETE "$nodefeatures/nvidia-features-for-gpu-node" >"$work/answer"
  within is_object '(.metadata.ownerReferences | length) == 2'
  [ "$(grep -c "^GET $pods" "$work/api/log")" -eq 4 ]
  end TERM
}

@test "requests to the API server keep to --kube-api-qps and --kube-api-burst" {
  local before
  run -1 once --kube-api-qps some
  [[ $output == "gpu-feature-discovery: invalid --kube-api-qps option: some; allowed: a number up to 100000, negative: no limit"* ]]
  run -1 once --kube-api-burst -1
  [[ $output == "gpu-feature-discovery: invalid --kube-api-burst option: -1; allowed: a number up to 100000"* ]]
  serve
  # The pod, the list, the object.
  variables=(KUBE_API_QPS=0.5 KUBE_API_BURST=1)
  before=$(date +%s%N)
  run -0 once
  [ $((($(date +%s%N) - before) / 1000000)) -ge 4000 ]
  variables=(KUBE_API_QPS= KUBE_API_BURST=)
  run -0 once --mig-strategy mixed
  is_object '.spec.labels["nvidia.com/mig.strategy"] == "mixed"'
}
