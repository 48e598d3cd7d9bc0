# SPDX-License-Identifier: Apache-2.0
# config-manager, and --node-label of the device plugin: a label of the node, from the API server of test/kubernetes/apiserver.py, chooses the config file.

load lib.bash

setup_file() {
  [ -x "$build/src/daemon/config-manager" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler, libcurl4-openssl-dev)"
  start_host dgx-h100
}
teardown_file() { stop_host; }
setup() {
  test_setup
  program=$build/src/daemon/config-manager
  api=$work/api source=$work/source link=$work/config/config.yaml log=$work/log
  mkdir "$api" "$source" "$work/config"
  serve
  ctl POST /api/v1/nodes '{"metadata": {"name": "worker"}}' >/dev/null
  echo 'version: v1' >"$source/plain"
  printf 'version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n' >"$source/shared"
  export NODE_NAME=worker KUBECONFIG=$api/kubeconfig CONFIG_FILE_SRCDIR=$source CONFIG_FILE_DST=$link PROCESS_TO_SIGNAL=graft-reader-$$
}
teardown() {
  local name
  for name in manager reader noise; do [ ! -e "$work/$name.pid" ] || stop "$name"; done
  stop server
  test_teardown
}

# stop NAME: ends what start began, and waits for it; its exit status.
stop() {
  local pid status=0
  pid=$(cat "$work/$1.pid")
  rm "$work/$1.pid"
  kill "$pid" 2>/dev/null || true
  wait "$pid" || status=$?
  return "$([ "$1" = manager ] && echo "$status" || echo 0)"
}
start() {
  local name=$1
  shift
  "$@" 3>&- &
  echo $! >"$work/$name.pid"
}
serve() {
  start server /usr/bin/python3 "$top/test/kubernetes/apiserver.py" serve "$api"
  within ctl GET /-/state
}
ctl() { /usr/bin/python3 "$top/test/kubernetes/apiserver.py" ctl "$api" "$@"; }
# label VALUE: the node's; null: it has none.
label() { ctl PATCH /api/v1/nodes/worker "{\"metadata\": {\"labels\": {\"nvidia.com/device-plugin.config\": $1}}}" >/dev/null; }
links_to() { [ "$(readlink "$link")" = "$1" ]; }
logs() { grep -qF -e "$1" "$log"; }
logs_times() { [ "$(grep -cF -e "$1" "$log")" = "$2" ]; }
manager() { start manager sh -c 'exec "$0" "$@" 2>>"'"$log"'"' "$program" "$@"; }
# reader: a process of the name that gets signals; it counts them in $work/signals. A shell cannot trap what its parent ignored.
reader() {
  : >"$work/signals"
  # shellcheck disable=SC2016
  start reader env --default-signal=HUP bash -c 'exec -a "$0" bash -c "$1" "$2"' "$PROCESS_TO_SIGNAL" 'trap "echo x >>\"$0/signals\"" HUP; echo >"$0/ready"; while :; do sleep 0.1; done' "$work"
  within test -e "$work/ready"
}
signals() { [ "$(wc -l <"$work/signals")" = "$1" ]; }

@test "oneshot: the label's file, else the default, else the fallback strategies" {
  label '"shared"'
  run -0 "$program" --oneshot
  [[ $output == *"$link: $source/shared" ]]
  links_to "$source/shared"
  run -0 env ONESHOT=true DEFAULT_CONFIG=plain "$program"
  links_to "$source/shared"
  label null
  run -0 env ONESHOT=true DEFAULT_CONFIG=plain "$program"
  links_to "$source/plain"
  cp "$source/plain" "$source/default"
  run -0 env ONESHOT=true FALLBACK_STRATEGIES=single,named,empty "$program"
  links_to "$source/default"
  run -0 "$program" --oneshot=true --fallback-strategies=single --fallback-strategies=empty
  links_to /dev/null
  rm "$source/default" "$source/shared"
  run -0 "$program" --oneshot --fallback-strategies=named,single
  links_to "$source/plain"
  # Another label.
  ctl PATCH /api/v1/nodes/worker '{"metadata": {"labels": {"example.com/gpu": "other"}}}' >/dev/null
  echo >"$source/other"
  run -0 "$program" --oneshot --node-label=example.com/gpu
  links_to "$source/other"
  run ! compgen -G "$work/config/.*.tmp"
}

@test "oneshot waits for the API server's answer, and does not take the default meanwhile" {
  label '"shared"'
  stop server
  manager --oneshot --default-config=plain
  within logs "trying again. Check that the API server is running and can be reached from here."
  [ ! -e "$link" ]
  serve
  ctl POST /api/v1/nodes '{"metadata": {"name": "worker", "labels": {"nvidia.com/device-plugin.config": "shared"}}}' >/dev/null
  within links_to "$source/shared"
  wait "$(cat "$work/manager.pid")"
  rm "$work/manager.pid"
}

@test "oneshot: what cannot be chosen is an error with cause and remedy, and changes nothing" {
  label '"share"'
  run -1 "$program" --oneshot --fallback-strategies=empty
  [ "$output" = "config-manager: the node's label nvidia.com/device-plugin.config names the config 'share', but $source has no such file (did you mean 'shared'?); it has: plain, shared
  Correct the name, or add a file of that name, which is a key of the ConfigMap." ]
  [ ! -e "$link" ]
  label null
  run -1 "$program" --oneshot
  [ "$output" = "config-manager: no config was set, no default was provided, and all fallbacks failed
  Label the node, or give --default-config or --fallback-strategies." ]
  run -1 "$program" --oneshot --default-config=gone
  [[ $output == "config-manager: the default names the config 'gone', but $source has no such file; it has: plain, shared"* ]]
  run -1 "$program" --oneshot --default-config=plain --config-file-srcdir="$work/none"
  [[ $output == "config-manager: cannot list the config files in $work/none: no such file or directory"* ]]
  mkdir "$work/folder"
  run -1 "$program" --oneshot --default-config=plain --config-file-dst="$work/folder"
  [[ $output == "config-manager: cannot link $work/folder to $source/plain: is a directory"$'\n'"  --config-file-dst must be in a writable directory, "* ]]
}

@test "options: what is missing or wrong is named; empty variables of manifests are no error" {
  run -1 env -u NODE_NAME "$program"
  [[ $output == "config-manager: --node-name or NODE_NAME must be set"* ]]
  run -1 env CONFIG_FILE_SRCDIR= "$program"
  [[ $output == "config-manager: --config-file-srcdir or CONFIG_FILE_SRCDIR must be set"* ]]
  run -1 env CONFIG_FILE_DST= "$program"
  [[ $output == "config-manager: --config-file-dst or CONFIG_FILE_DST must be set"* ]]
  run -1 "$program" --signal=HUP
  [[ $output == "config-manager: invalid --signal option: HUP; allowed: a number from 1 to 64"* ]]
  run -1 "$program" --signal=0
  run -1 "$program" --fallback-strategies=named,sngle
  [[ $output == "config-manager: invalid --fallback-strategies option: sngle (did you mean 'single'?); allowed: named, single, empty"* ]]
  run -1 "$program" --kubeconfig="$work/none"
  [[ $output == "config-manager: unable to read kubeconfig $work/none: no such file or directory"* ]]
  run -1 env -u KUBERNETES_SERVICE_HOST KUBECONFIG= "$program"
  [[ $output == "config-manager: cannot find the API server: KUBERNETES_SERVICE_HOST"*"Outside of a pod, give --kubeconfig=FILE." ]]
  run -0 "$program" --version
  run -0 "$program" --help
  [[ $output == *'$PROCESS_TO_SIGNAL'* ]]
  label '"shared"'
  run -0 env SIGNAL= SEND_SIGNAL= NODE_LABEL= DEFAULT_CONFIG= FALLBACK_STRATEGIES= PROCESS_TO_SIGNAL= "$program" --oneshot
  links_to "$source/shared"
  ONESHOT='' manager
  within links_to "$source/shared"
  sleep 0.3
  kill -0 "$(cat "$work/manager.pid")"
}

@test "a change of the label is a new link and a signal; the same file again is neither" {
  label '"plain"'
  "$program" --oneshot 2>/dev/null
  reader
  manager
  within logs "$link: $source/plain"
  # As after the init container: the link is right, and no signal is sent.
  label '"shared"'
  within links_to "$source/shared"
  within signals 1
  ctl PATCH /api/v1/nodes/worker '{"metadata": {"labels": {"other": "x"}}}' >/dev/null
  label null
  within logs "no config was set, no default was provided, and all fallbacks failed; nothing was changed."
  links_to "$source/shared"
  signals 1
  label '"gone"'
  within logs "names the config 'gone', but $source has no such file; it has: plain, shared"
  links_to "$source/shared"
  signals 1
  label '"plain"'
  within links_to "$source/plain"
  within signals 2
  stop manager
  links_to "$source/plain"
  # The file changed while the manager was stopped. The reader is older and needs a signal; one that starts now does not.
  manager
  within logs_times "$link: $source/plain" 3
  sleep 0.3
  signals 2
  stop manager
  echo '# changed' >>"$source/plain"
  manager
  within signals 3
  stop manager
  stop reader
  rm "$work/ready"
  reader
  manager
  within logs_times "$link: $source/plain" 5
  sleep 0.3
  signals 0
}

@test "the signal is the one that is asked for, or none" {
  label '"plain"'
  reader
  manager --send-signal=false
  within links_to "$source/plain"
  label '"shared"'
  within links_to "$source/shared"
  sleep 0.3
  signals 0
  stop manager
  manager --signal=10
  within logs_times "$link: $source/shared" 2
  label '"plain"'
  # SIGUSR1 ends the reader, which has no trap for it.
  within bash -c "! kill -0 $(cat "$work/reader.pid")"
  within logs "sent signal 10 to $PROCESS_TO_SIGNAL"
  label '"shared"'
  within logs "found no process $PROCESS_TO_SIGNAL to send signal 10 to: it must be running, and the pod must have shareProcessNamespace: true"
}

# As the chart runs it beside the program: as the same user, without capabilities.
@test "without capabilities it makes the link and sends the signal" {
  label '"plain"'
  reader
  program="/usr/bin/setpriv --bounding-set=-all --inh-caps=-all --no-new-privs $program"
  # shellcheck disable=SC2016
  start manager sh -c 'exec $0 2>>"$1"' "$program" "$log"
  within links_to "$source/plain"
  within signals 1
  grep -qx 'CapEff:[[:space:]]*0*' "/proc/$(cat "$work/manager.pid")/status"
}

@test "a file that changes under its name is noticed, as is a ConfigMap that is mounted anew" {
  label '"shared"'
  rm -r "${source:?}"
  mkdir -p "$source/..2026_1" "$source/..2026_2"
  echo one >"$source/..2026_1/shared"
  echo two >"$source/..2026_2/shared"
  ln -s ..2026_1 "$source/..data"
  ln -s ..data/shared "$source/shared"
  reader
  manager
  within links_to "$source/shared"
  within signals 1
  # As the kubelet does it: a new folder, and a link that is renamed.
  ln -s ..2026_2 "$source/..data_tmp"
  mv -T "$source/..data_tmp" "$source/..data"
  within signals 2
  [ "$(cat "$link")" = two ]
  echo three >"$source/..2026_2/shared.new"
  touch "$source/..2026_2/shared"
  sleep 0.5
  signals 2
  # The folder goes, and comes back.
  mv "$source" "$source-away"
  within logs "cannot list the config files in $source: no such file or directory; nothing was changed."
  mkdir "$source"
  echo four >"$source/shared"
  within signals 3
}

@test "events without end do not put a change off; what could not be applied is tried again" {
  label '"plain"'
  start manager "$program" --send-signal=false 2>"$log"
  within links_to "$source/plain"
  # shellcheck disable=SC2016
  start noise bash -c 'while :; do : >"$0"; sleep 0.02; done' "$source/..noise"
  printf 'version: v1\n' >"$source/shared"
  label '"later"'
  sleep 0.5
  printf 'version: v1\n' >"$source/later"
  within links_to "$source/later"
  stop noise
  # A directory blocks the link, and is then removed.
  rm "$link"
  mkdir "$link"
  label '"plain"'
  within grep -q "cannot link $link to $source/plain" "$log"
  rmdir "$link"
  within links_to "$source/plain"
}

@test "API server away, revoked rights, broken streams: the link stays, and watching resumes" {
  label '"plain"'
  reader
  manager
  within links_to "$source/plain"
  within signals 1
  within grep -q watch=true "$api/log"
  ctl POST /-/stream '{"kind": "garbage"}' >/dev/null
  within logs "event: line 1, column 1"
  within logs_times "the API server answers again" 1
  ctl POST /-/fault '{"match": "/api/v1/nodes?", "kind": "status", "code": 403, "message": "nodes is forbidden: User \"x\" cannot list resource \"nodes\"", "count": 2}' >/dev/null
  ctl POST /-/stream '{"kind": "gone"}' >/dev/null
  within logs 'nodes is forbidden: User "x" cannot list resource "nodes" (status 403); trying again. Bind a role (RBAC) that grants this right'
  links_to "$source/plain"
  signals 1
  label '"shared"'
  within links_to "$source/shared"
  within signals 2
  sleep 1.1
  stop server
  within logs "Check that the API server is running"
  sleep 1
  links_to "$source/shared"
  serve
  ctl POST /api/v1/nodes '{"metadata": {"name": "worker", "labels": {"nvidia.com/device-plugin.config": "plain"}}}' >/dev/null
  within links_to "$source/plain"
  within signals 3
}

@test "in a pod: the service account's token is read anew, and a node that is not there is waited for" {
  # shellcheck disable=SC2016
  pod() {
    start manager env NODE_NAME="$1" unshare --mount sh -c 'mount -t tmpfs tmpfs /run && mkdir -p "$0" && mount --bind "$1" "$0" && shift && exec "$@"' \
      /run/secrets/kubernetes.io/serviceaccount "$api" sh -c 'exec env KUBECONFIG= KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT='"$(cat "$api/port")"' "$0" 2>>"'"$log"'"' "$program"
  }
  [ "$(readlink /var/run)" = /run ] || skip "/var/run is no link to /run"
  pod other
  within logs "node 'other' does not exist; waiting for it"
  echo second-token >"$api/token.new"
  mv "$api/token.new" "$api/token"
  within grep -q watch=true "$api/log"
  ctl POST /-/stream '{"kind": "gone"}' >/dev/null
  ctl POST /api/v1/nodes '{"metadata": {"name": "other", "labels": {"nvidia.com/device-plugin.config": "shared"}}}' >/dev/null
  within links_to "$source/shared"
  run ! grep None "$api/log"
}

@test "memory and descriptors do not grow with the changes that it sees" {
  local pid before after i
  label '"plain"'
  manager --send-signal=false
  within links_to "$source/plain"
  pid=$(cat "$work/manager.pid")
  for ((i = 0; i < 40; i++)); do
    ctl PATCH /api/v1/nodes/worker "{\"metadata\": {\"annotations\": {\"x\": \"$(printf 'y%.0s' {1..1000})$i\"}}}" >/dev/null
    [ "$i" != 10 ] || before=$(find "/proc/$pid/fd" | wc -l),$(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status")
  done
  label '"shared"'
  within links_to "$source/shared"
  after=$(find "/proc/$pid/fd" | wc -l),$(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status")
  [ "${before%,*}" = "${after%,*}" ]
  [ "${after#*,}" -le $((${before#*,} + 2)) ]
  within is_idle "$pid"
  # Nothing wakes it while nothing happens; libcurl looks once whether it is connected.
  timeout 3 strace -f -o "$work/idle" -p "$pid" || true
  [ "$(grep -c '^[0-9]* *poll(' "$work/idle")" -le 3 ]
}

# --- the device plugin, without config-manager ---

# plugin: serves without a kubelet, and answers /metrics.
plugin() {
  # shellcheck disable=SC2016
  start manager sh -c 'exec nsenter --mount="$1" -- "$2" 2>>"$0"' "$log" "/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" "$build/src/daemon/nvidia-device-plugin"
}
page() { curl -s --unix-socket "$work/metrics" "http://x/$1"; }
offers() { page metrics | grep -qF "devices{resource=\"$1\",health=\"Healthy\"} $2"; }

@test "--node-label: the plugin offers what the label chooses, and anew when label or file change" {
  export NODE_LABEL=nvidia.com/device-plugin.config KUBELET_SOCKET='' PLUGIN_REGISTRY='' LISTEN_ADDRESS=$work/metrics
  stop server
  plugin
  # Until the label is known nothing is offered: another configuration could give a pod less than it was promised.
  within logs "trying again. Check that the API server is running"
  [ "$(page healthz)" = "waiting for the node's label, which chooses the configuration" ]
  kill -HUP "$(cat "$work/manager.pid")"
  serve
  ctl POST /api/v1/nodes '{"metadata": {"name": "worker", "labels": {"nvidia.com/device-plugin.config": "shared"}}}' >/dev/null
  within offers nvidia.com/gpu 32
  logs "configuration chosen by the node's label: $source/shared"
  label '"plain"'
  within offers nvidia.com/gpu 8
  label '"none"'
  within logs "but $source has no such file; it has: plain, shared; nothing was changed. Correct the name"
  offers nvidia.com/gpu 8
  # The content of the file.
  sed 's/replicas: 4/replicas: 2/' "$source/shared" >"$source/plain"
  label '"plain"'
  within offers nvidia.com/gpu 16
  echo 'flags: {migStrategy: no}' >"$source/plain"
  within logs "nothing was changed: $source/plain: line 1, column 9: flags.migStrategy: "
  offers nvidia.com/gpu 16
  # The API server goes away; SIGHUP reads host and file all the same.
  stop server
  printf 'sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}}\n' >"$source/plain"
  within offers nvidia.com/gpu 24
  kill -HUP "$(cat "$work/manager.pid")"
  within logs_times "reread configuration and host" 4
  offers nvidia.com/gpu 24
  serve
  ctl POST /api/v1/nodes '{"metadata": {"name": "worker", "labels": {"nvidia.com/device-plugin.config": "shared"}}}' >/dev/null
  within offers nvidia.com/gpu 32
  stop manager
}

@test "--node-label: no file by the fallback strategy, errors at the start, and what only prints" {
  local plugin=$build/src/daemon/nvidia-device-plugin
  export NODE_LABEL=nvidia.com/device-plugin.config KUBELET_SOCKET='' PLUGIN_REGISTRY=''
  run -1 on_host "$plugin" --config-file=/etc/hostname
  [[ $output == "nvidia-device-plugin: --node-label chooses the config file: --config-file cannot be given as well"* ]]
  run -1 on_host env -u NODE_NAME "$plugin"
  [[ $output == *"nvidia-device-plugin: --node-name or NODE_NAME must be set"* ]]
  label '"shared"'
  run --separate-stderr -0 on_host "$plugin" --print-config
  [ "$(jq -c '.sharing.timeSlicing.resources[0].replicas' <<<"$output")" = 4 ]
  run --separate-stderr -0 on_host "$plugin" --once
  [ "$(jq '.resources[0].resource.devices | length' <<<"$output")" = 32 ]
  label null
  run --separate-stderr -0 on_host "$plugin" --print-config --fallback-strategies=empty
  [ "$(jq -c '.sharing.timeSlicing.resources | length' <<<"$output")" = 0 ]
  run -1 on_host "$plugin" --print-config
  [[ $output == *"nvidia-device-plugin: no config was set, no default was provided, and all fallbacks failed"* ]]
  # A first configuration that cannot be used ends the program, as one of --config-file does.
  echo 'flags: {migStrategy: no}' >"$source/shared"
  label '"shared"'
  run -1 timeout 30 nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" --wdns="$PWD" -- "$plugin"
  [[ $output == *"nvidia-device-plugin: $source/shared: line 1, column 9: flags.migStrategy: "* ]]
  # Unless it is to wait.
  export FAIL_ON_INIT_ERROR=false LISTEN_ADDRESS=$work/metrics
  plugin
  within logs "nothing is offered: $source/shared: line 1, column 9: flags.migStrategy: "
  echo 'version: v1' >"$source/shared"
  within offers nvidia.com/gpu 8
  stop manager
}

@test "--node-label: feature discovery labels by the file that the node's label chooses" {
  local gfd=$build/src/daemon/gpu-feature-discovery labels=$work/labels
  export NODE_LABEL=nvidia.com/device-plugin.config GFD_OUTPUT_FILE=$labels GFD_USE_NODE_FEATURE_API=false GFD_SLEEP_INTERVAL=1s
  label '"shared"'
  run -0 on_host timeout 60 "$gfd" --oneshot
  grep -qx 'nvidia.com/gpu.replicas=4' "$labels"
  label '"none"'
  run -1 on_host timeout 60 "$gfd" --oneshot
  [[ $output == *"gpu-feature-discovery: the node's label nvidia.com/device-plugin.config names the config 'none', but $source has no such file"* ]]
  rm "$labels"
  # shellcheck disable=SC2016
  start manager sh -c 'exec nsenter --mount="$1" -- "$2" 2>>"$0"' "$log" "/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" "$gfd"
  within logs "it has: plain, shared; no labels. Correct the name"
  label '"shared"'
  within grep -qx 'nvidia.com/gpu.replicas=4' "$labels"
  label '"plain"'
  within grep -qx 'nvidia.com/gpu.replicas=1' "$labels"
  stop manager
}

@test "a plugin without --node-label loads no libcurl; one with it says what is missing" {
  local plugin=$build/src/daemon/nvidia-device-plugin
  # The leak checker of a sanitized build does not work where it is traced.
  export ASAN_OPTIONS=detect_leaks=0
  run -0 strace -f -e trace=openat -o "$work/trace" -- "$program" --help
  run ! grep -q libcurl "$work/trace"
  run -0 on_host strace -f -e trace=openat -o "$work/trace" -- "$plugin" --once --kubelet-socket= --plugin-registry=
  run ! grep -q libcurl "$work/trace"
  # shellcheck disable=SC2016
  run -1 unshare --mount sh -c 'for file in /usr/lib/*/libcurl.so.4 /usr/lib/*/libcurl-gnutls.so.4; do [ ! -e "$file" ] || mount --bind /dev/null "$file"; done; exec "$0"' "$program"
  [[ $output == "config-manager: cannot load libcurl, which speaks to the API server: "*$'\n'"  Install the package libcurl4 (Debian, Ubuntu) or libcurl (Fedora, RHEL)." ]]
}

@test "an unknown option of each daemon: the one that was probably meant, if one is near" {
  misspelt config-manager -oneshott oneshot
  misspelt gpu-feature-discovery --sleep-intervall=1s sleep-interval
  misspelt mps-control-daemon --mps_rot=/x mps-root
  misspelt nvidia-device-plugin --mig-strategie=none mig-strategy
  misspelt nvidia-nri-plugin --nri-plugin-indx 10 nri-plugin-index
  run -1 "$build/src/daemon/nvidia-device-plugin" --elephant
  [ "$output" = "nvidia-device-plugin: flag provided but not defined: -elephant
  Run the command with --help to see what it accepts." ]
}
# misspelt DAEMON OPTION... MEANT: what the daemon says of the option.
misspelt() {
  local meant=${*: -1} name=${2#-}
  name=${name#-} name=${name#-} name=${name%%=*}
  run -1 "$build/src/daemon/$1" "${@:2:$#-2}"
  [ "$output" = "$1: flag provided but not defined: -$name (did you mean '--$meant'?)
  Run the command with --help to see what it accepts." ] || die "$output"
}
