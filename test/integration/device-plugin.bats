# SPDX-License-Identifier: Apache-2.0
# The device plugin on a simulated host, and a kubelet on another implementation of gRPC: each case of test/kubernetes/kubelet.py.

load lib.bash

setup_file() {
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  start_host dgx-h100
}
teardown_file() { stop_host; }
setup() {
  test_setup
  program=$build/src/daemon/nvidia-device-plugin
}
teardown() {
  test_teardown
  stop_other_host
}

# information NAME: what procfs says of each GPU, with commas between.
information() { on_host sh -c 'cat /proc/driver/nvidia/gpus/*/information' | sed -n "s/^$1:[[:space:]]*//p" | paste -sd,; }

# kubelet CASE [OPTION...]: the case, with what procfs of the host says of its GPUs.
kubelet() {
  local name=$1
  shift
  mkdir -p "$work/run"
  KUBELET_UUIDS=$(information 'GPU UUID') KUBELET_PCI=$(information 'Bus Location' | sed 's/\.[0-9]//g') \
    on_host sh -c 'cd "$0" && exec timeout 120 /usr/bin/python3 "$@"' "$work/run" "$top/test/kubernetes/kubelet.py" "$name" "$program" "$@"
}

# traced_kubelet CASE: the same, and what the program and its children open is in the file KUBELET_TRACE.
traced_kubelet() {
  printf '#!/bin/sh\nexec strace -D -f -qq -e trace=open,openat,openat2 -e signal=none -o %q %q "$@"\n' "$KUBELET_TRACE" "$program" >"$work/traced"
  chmod +x "$work/traced"
  program=$work/traced kubelet "$@"
}

# says TEXT OPTION...: the program, until it has said this and a second more; its words are in $work/log.
says() {
  : >"$work/log"
  # shellcheck disable=SC2016
  on_host timeout 60 sh -c 'text=$1; shift; "$@" 2>"$0" & until grep -q "$text" "$0"; do sleep 0.05; done; sleep 1; kill $!; wait $!' "$work/log" "$1" "$program" "${@:2}"
}

@test "registration says version, socket and resource, and the plugin serves meanwhile" { kubelet registers; }
@test "the plugin is there before the kubelet's folder" { kubelet starts-before-the-kubelet; }
@test "the plugin is there before the kubelet's socket" { kubelet starts-before-the-socket; }
@test "a kubelet that refuses is asked again" { kubelet is-refused; }
@test "fifty kubelet restarts: every device is back within a second of each" { kubelet restarts; }
@test "a stream that is lost is made again" { kubelet stream-is-lost; }
@test "a kubelet that drops the stream at once is asked less and less often" { kubelet stream-is-dropped-at-once; }
@test "a stream that is dropped before Register is answered is missed soon" { kubelet stream-is-dropped-before-the-answer; }
@test "a socket that could not be made again is tried again" { kubelet socket-cannot-be-made; }
@test "without a driver the plugin answers over HTTP, and a new kubelet ends the wait" { kubelet waits-for-the-driver; }
@test "in the registry, the first kubelet of a node ends the wait" { kubelet waits-for-the-first-kubelet; }
@test "a driver that comes later is found" { kubelet driver-comes-later; }
@test "a new kubelet ends the wait for what was in the way" { kubelet waits-to-serve; }
@test "a socket that is removed is made again" { kubelet socket-is-removed; }
@test "a folder that is replaced is found again" { kubelet folder-is-replaced; }
@test "a second plugin takes over, and the first one is there again when it has died" { kubelet two-plugins; }
@test "containers get the devices that the kubelet gives them" { kubelet allocates; }
@test "unknown devices are refused with the message that users know" { kubelet refuses-unknown-devices; }
@test "a request for no device is refused" { kubelet refuses-nothing; }
@test "the plugin has a preference, and refuses what is impossible" { kubelet prefers; }
@test "PreStartContainer is answered with nothing" { kubelet pre-start; }
@test "a failed GPU is unhealthy at once, and healthy again by the driver's word" { kubelet health; }
@test "a GPU is healthy again when it was reset, by whatever its driver says of that" { kubelet health-after-reset; }
@test "a recovery and a failure that are read at once are both seen" { kubelet health-in-one-read; }
@test "a GPU whose device node is gone is unhealthy until it is back" { kubelet health-of-what-is-gone; }
@test "a failed GPU takes all of its replicas with it" { kubelet health-of-replicas; }
@test "what MPS shares is healthy while its daemon runs" { kubelet health-of-mps; }
@test "the administrator can say that a GPU is healthy, and that outlives the plugin" { kubelet health-is-cleared; }
@test "NVML can be the source of health, in a process without rights" { kubelet health-by-nvml; }
@test "NVML can be a second source of health" { kubelet health-by-both; }
@test "which failures count is the administrator's choice" { kubelet health-rules; }
@test "SIGHUP reads everything anew; a wrong configuration changes nothing" { kubelet hang-up; }
@test "a wrong configuration at the start is an error, or is waited for" { kubelet waits-for-the-configuration; }
@test "what NVML has not ready is asked for again, and by SIGHUP at once" {
  other_host quad
  KUBELET_GPUS=4 kubelet nvml-answers-later
}
@test "what SIGHUP asks of NVML is asked, when a wrong configuration is right again" {
  other_host quad
  KUBELET_GPUS=4 kubelet reload-fails-and-asks
}
@test "while NVML is asked, kubelet, HTTP and signals are answered" {
  other_host quad --fault nvml-init-delay=5
  KUBELET_GPUS=4 kubelet nvml-takes-long
}
@test "a MIG device that is made or removed is noticed" {
  other_host a100-mig
  kubelet migs-change
}
@test "a GPU that appears after the start is offered" { kubelet gpu-comes-later; }
@test "a device node that appears after the start is given to the next container" { kubelet node-comes-later; }
@test "without inotify the plugin serves, and looks for what no event reports" { kubelet without-inotify; }
@test "a reload that fails takes nothing away, and is made up for" { kubelet reload-fails; }
@test "SIGTERM, SIGINT and SIGQUIT end it without a trace" { kubelet ends; }
@test "the kubelet finds the plugin in its registry, and Register is not called" { kubelet registry; }
@test "in the registry, the plugin can be first" { kubelet registry-is-first; }
@test "each container of a pod is answered for itself" { kubelet several-containers; }
@test "the next plugin answers as the last one did" { kubelet answers-last; }
@test "a new kubelet gives out what its checkpoint leaves" { kubelet uses-the-checkpoint; }
@test "GPUs that others lease are not offered, and pods have leases as long as their cgroup" { KUBELET_CTK=$build/src/cli/ctk/nvidia-ctk kubelet respects-leases; }
@test "pods have leases wherever --cgroup-root puts their cgroups, and where none is seen" { KUBELET_CTK=$build/src/cli/ctk/nvidia-ctk kubelet cgroup-root; }
@test "a GPU that fails between choice and call is answered for" { kubelet fails-meanwhile; }
@test "a preference includes what it must, or is refused" { kubelet must-include; }
@test "a kubelet that dies in the middle of a call leaves nothing" { kubelet dies-in-allocate; }
@test "two thousand calls, many at a time, have their own answers" { kubelet many-at-once; }
@test "requests that are too large are refused" { kubelet large-requests; }
@test "unknown methods are refused by their name; pings are answered" { kubelet unknown-methods; }
@test "devices have the NUMA nodes of their GPUs" { kubelet topology; }
@test "a kubelet that lags reads the newest state" { kubelet lags; }
@test "a slow kubelet is asked once" { kubelet registers-slowly; }
@test "a plugin that the kubelet takes twice stays registered" { kubelet registers-twice; }
@test "a resource that is renamed leaves nothing behind" { kubelet is-renamed; }
@test "the next plugin follows one that was killed" { kubelet is-killed; }
@test "in the registry, the plugin says what it is" { kubelet registry-is-asked; }
@test "in the registry, a kubelet that refuses says why, and asks again" { kubelet registry-refuses; }
@test "in the registry, a socket that is removed is made again" { kubelet registry-socket-is-removed; }
@test "in the registry, a plugin that was too slow is registered later" { kubelet registry-is-slow; }
@test "in the registry, a stream that is lost is made again" { kubelet registry-stream-is-lost; }
@test "in the registry, a stream that never begins is missed" { kubelet registry-brings-no-stream; }
@test "in the registry, a plugin leaves the resource to another one that has registered it" { kubelet registry-has-a-rival; }
@test "in the registry, a plugin that another one has lost the resource to is offered again" { kubelet registry-had-a-rival; }
@test "metrics and health are answered over HTTP" { kubelet metrics; }
@test "the service manager hears of start, reload and end" { kubelet notifies; }
@test "nothing wakes an idle plugin; it opens no GPU and loads no NVML" { kubelet idle; }
@test "with sixteen GPUs, calls are answered within milliseconds and 8 MiB are enough" {
  other_host dgx-h100-16
  KUBELET_GPUS=16 kubelet costs
}
@test "calls are answered within milliseconds where one of the driver's nodes is missing, as it is on servers" {
  other_host dgx-h100-16 --fault missing=/dev/nvidia-modeset
  on_host test ! -e /dev/nvidia-modeset
  KUBELET_GPUS=16 kubelet costs
}
@test "no GPU is opened, be it at the start, by calls, by failures, or by a reload" {
  local name
  # The tracer is a child of the program, so that signals go to the program.
  for name in allocates health hang-up; do
    KUBELET_TRACE=$work/$name.trace traced_kubelet "$name"
    grep -q '"/proc/driver/nvidia/' "$work/$name.trace"
    # By its path, or below /dev by its name. O_PATH opens no device, and the folder of IMEX channels is none.
    run -1 grep -E '"(/dev/)?nvidia([0-9]|ctl|-uvm|-caps)[^.]*"' <(grep -vE 'O_PATH|O_DIRECTORY' "$work/$name.trace")
  done
}
@test "processes that talk nonsense disturb nobody" { kubelet nonsense; }
@test "more devices than a message can hold are refused" { kubelet too-many-devices; }

@test "MIG devices: a resource for each kind" {
  other_host a100-mig
  KUBELET_RESOURCES=nvidia.com/gpu=1,nvidia.com/mig-1g.5gb=8,nvidia.com/mig-2g.10gb=1,nvidia.com/mig-3g.20gb=1,nvidia.com/mig-4g.20gb=1 MIG_STRATEGY=mixed kubelet several-resources
}

@test "MIG devices of GPUs that are divided alike are offered as GPUs" {
  other_host a100-uniform
  KUBELET_RESOURCES=nvidia.com/gpu=14 MIG_STRATEGY=single kubelet several-resources
}

@test "without a kubelet's socket the plugin serves, and registers nowhere" {
  # shellcheck disable=SC2016
  on_host unshare --mount sh -c 'mkdir -p /var/lib/kubelet && mount -t tmpfs tmpfs /var/lib/kubelet && mkdir "$0" && cd "$0" && exec timeout 60 /usr/bin/python3 "$@"' \
    "$work/run" "$top/test/kubernetes/kubelet.py" registers-nowhere "$program"
}

@test "every case of the kubelet is run" {
  local name
  for name in $(/usr/bin/python3 "$top/test/kubernetes/kubelet.py" --list); do
    grep -qE "kubelet(\.py\")? ${name}([; ]|\$)" "$BATS_TEST_DIRNAME"/device-plugin* || die "$name is missing"
  done
}

@test "no driver: an error that says what to do, or with fail-on-init-error=false nothing to offer" {
  local options=(--kubelet-socket "$work/kubelet.sock" --plugin-registry "" --driver-root "$work/empty")
  mkdir "$work/empty"
  run -1 on_host "$program" "${options[@]}"
  [[ $output == *$'\n'"nvidia-device-plugin: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory"$'\n  Install the driver'* ]]
  says 'No devices found. Waiting indefinitely.$' "${options[@]}" --fail-on-init-error=false
  grep -q 'exiting on signal 15$' "$work/log"
  [ ! -e "$work/nvidia-gpu.sock" ]
}

@test "what is odd about the configuration is logged once; standard input is for what only prints" {
  printf 'version: v1\nflags: {migStrtegy: none}\n' >"$work/config.yaml"
  local options=(--kubelet-socket "" --plugin-registry "" --state-dir "$work/state" --config-file)
  says 'ignoring unknown key' "${options[@]}" "$work/config.yaml" extra
  [ "$(grep -c "line 2: ignoring unknown key 'flags.migStrtegy' (did you mean 'migStrategy'?)$" "$work/log")" -eq 1 ] || die "$(cat "$work/log")"
  [ "$(grep -c "ignoring 'extra' and all that follows: write options as --option=VALUE$" "$work/log")" -eq 1 ] || die "$(cat "$work/log")"
  run -1 on_host "$program" "${options[@]}" - </dev/null
  [ "$output" = "nvidia-device-plugin: --config-file=-: a daemon rereads its config file, which standard input does not allow
  Run the command with --help to see what it accepts." ]
  run -0 --separate-stderr on_host "$program" "${options[@]}" - --print-config <"$work/config.yaml"
  [ "$(grep -c "^.*standard input: line 2: ignoring unknown key" <<<"$stderr")" -eq 1 ]
}

@test "--health=nvml with an NVML that does not work: a warning, and every GPU is offered" {
  other_host dgx-h100 --fault nvml-init-fail=999
  says 'cannot watch GPUs through NVML' --kubelet-socket "$work/kubelet.sock" --plugin-registry "" --state-dir "$work/state" --health=nvml
  [ "$(grep -c 'cannot watch GPUs through NVML: nvml error: .*; trying again$' "$work/log")" -eq 1 ] || die "$(cat "$work/log")"
  run -1 grep 'unhealthy' "$work/log"
  run -1 on_host "$program" --health=kmsg,none --once
  [[ $output == *"nvidia-device-plugin: invalid --health option: none cannot be combined with kmsg or nvml"* ]]
}

@test "a preliminary answer of NVML is kept, and asked for again: later, and eight times at most" {
  local facts=/run/graft-sim/facts.json pci
  other_host quad
  pci=$(information 'Bus Location' | cut -d, -f2)
  say "NVRM: Xid (PCI:${pci%.*}): 79, pid=1, name=app, GPU has fallen off the bus." >"$work/kmsg"
  chmod 755 "$work"
  # look N_ASKED ASKED_S: what the plugin logs if that is kept. A time that lies ahead is another boot's: whatever was to be asked is due.
  look() {
    [ $# -eq 0 ] || on_host sed -i -E "s/\"n_asked\": [0-9]+/\"n_asked\": $1/; s/\"asked_s\": [0-9]+/\"asked_s\": $2/" "$facts"
    run -0 --separate-stderr on_host env SIMULATED_KMSG="$work/kmsg" "$program" --once
  }
  # kept: reasons, questions, GPUs.
  kept() { on_host jq -c '[.nvml.unsettled // [], .n_asked // 0, (.nvml.gpus | length)]' "$facts"; }
  on_host rm -f "$facts"
  look
  [[ $stderr == *"NVML's answer is preliminary: NVML does not list GPU 0000$pci (1 of 1 reasons); asking again later"* ]] || die "$stderr"
  [ "$(kept)" = "[[\"NVML does not list GPU 0000$pci\"],1,3]" ] || die "$(kept)"
  look
  [[ $stderr != *"asking NVML"* ]]
  look 1 4294967295
  [[ $stderr == *"asking NVML"*"is preliminary"* ]]
  [ "$(kept)" = "[[\"NVML does not list GPU 0000$pci\"],2,3]" ] || die "$(kept)"
  look 7 4294967295
  [[ $stderr == *"asking again after an event or SIGHUP"* ]]
  look 8 4294967295
  [[ $stderr != *"asking NVML"* ]]
  say "NVRM: GPU ${pci%.*}.0: GPU reset" >>"$work/kmsg"
  look 3 4294967295
  [ "$(kept)" = '[[],0,4]' ] || die "$(kept)"
  look
  [[ $stderr != *"asking NVML"* ]]
}

@test "NVLinks between GPUs are asked for once per boot; without them GPUs are offered as well" {
  printf '%s\n' 'driver: 535.161.08' 'cuda: "12.2"' 'gpus: [{model: A100-SXM4-40GB, count: 4}]' >"$work/four.yaml"
  # shellcheck disable=SC2016
  run -0 "$build/sim/graft-sim" run --topology "$work/four.yaml" -- sh -c '
    facts=/run/graft-sim/facts.json && "$0" --once >"$1/first" && cp $facts "$1" && stat -c %i $facts && "$0" --once >/dev/null && stat -c %i $facts' "$program" "$work"
  [ "$(grep -xcE '[0-9]+' <<<"$output")" = 2 ]
  [ "$(grep -xE '[0-9]+' <<<"$output" | sort -u | wc -l)" = 1 ]
  [ "$(jq -c '[.nvml.gpus[].links | map(.count)]' "$work/facts.json")" = '[[4,4,4],[4,4,4],[4,4,4],[4,4,4]]' ]
  # shellcheck disable=SC2016
  run -0 "$build/sim/graft-sim" run --topology "$work/four.yaml" --fault nvml-init-fail=999 -- sh -c '"$0" --once >"$1/second"' "$program" "$work"
  [[ $output == *'] cannot determine the NVLinks between GPUs: nvml error: '* ]]
  cmp "$work/first" "$work/second"
}
