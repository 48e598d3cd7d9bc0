# SPDX-License-Identifier: Apache-2.0
# lane: alone
# The NRI plugin with an engine in Python: its answers, how long they take, what it uses while idle, and its command line.

load lib.bash
load engines.bash

setup_file() {
  [ -x "$build/src/daemon/nvidia-nri-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  start_machine dgx-h100
  install -m 0755 "$build/src/daemon/nvidia-nri-plugin" "$BATS_FILE_TMPDIR/bin/"
  install -m 0755 "$top/test/kubernetes/nri_engine.py" "$BATS_FILE_TMPDIR/programs"
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() {
  local pid
  rm -f "$work/open"
  for pid in $(on_host pgrep 'nvidia-nri-plug|python3'); do on_host kill "$pid" 2>/dev/null || true; done
  on_host rm -f /run/nri.sock
}

# answers N VARIABLE=VALUE...: of the plugin, about N containers; $result is what the engine says.
answers() {
  mkfifo "$work/open"
  on_host /usr/bin/python3 "$BATS_FILE_TMPDIR/programs/nri_engine.py" /run/nri.sock "$@" <"$work/open" >"$work/result" 2>"$work/engine.log" 3>&- 4>&- &
  exec 7>"$work/open"
  within 10 on_host test -S /run/nri.sock
  on_host nvidia-nri-plugin --nri-socket=/run/nri.sock --listen=/run/nri-metrics >"$work/nri.log" 2>&1 3>&- 4>&- 7>&- &
  within 60 test -s "$work/result" || { cat "$work/engine.log" "$work/nri.log" >&2 && return 1; }
  result=$(cat "$work/result")
  echo "$result"
}
field() { jq --raw-output ".$1" <<<"$result"; }

@test "two GPUs, in the time of two starts of /bin/true, in frames of at most 4096 bytes" {
  printf '[nri]\nenvironment = "accept"\n' | config_toml
  answers 1000 NVIDIA_VISIBLE_DEVICES=2,5
  [ "$(field given)" -eq 1000 ]
  [ "$(field devices)" -ge 5 ]
  [ "$(field hooks)" -eq 1 ]
  [ "$(field longest_frame)" -eq 4096 ]
  # With the engine's own time. On a machine that does nothing else, that is below a millisecond, as is the 99th percentile.
  [ "$(field median_us)" -lt "$((2 * $(field unit_us)))" ]
  [ -z "${GRAFT_NRI_P99_US:-}" ] || [ "$(field p99_us)" -lt "$GRAFT_NRI_P99_US" ]
}

@test "what cannot be given is refused, with cause and remedy" {
  printf '[nri]\nenvironment = "accept"\n' | config_toml
  answers 2 NVIDIA_VISIBLE_DEVICES=9
  [ "$(field refused)" -eq 2 ]
  [ "$(field why)" = "graft: container container of pod default/pod: device error: 9: unknown device. Run 'nvidia-container-cli info' to list the devices of this host." ]
}

@test "a kubelet that is not there: refused, since it cannot be known what was given" {
  answers 1 NVIDIA_VISIBLE_DEVICES=0
  [ "$(field refused)" -eq 1 ]
  [ "$(field why)" = "graft: container container of pod default/pod: the kubelet does not say which devices it has allocated to this container: cannot connect to '/var/lib/kubelet/pod-resources/kubelet.sock': no such file or directory. Check that the plugin can reach the kubelet's PodResources socket." ]
}

@test "while nothing happens: less than 8 MB, and it does not wake up" {
  local pid
  printf '[nri]\nenvironment = "accept"\n' | config_toml
  answers 200 NVIDIA_VISIBLE_DEVICES=all
  pid=$(on_host pgrep --oldest nvidia-nri-plug)
  # It may not wait yet when its last answer has come.
  within 20 is_idle "$pid"
  is_idle "$pid" "${GRAFT_NRI_IDLE:-3}"
  on_host sed -n '/^Vm\(RSS\|HWM\)\|^Rss/p' "/proc/$pid/status"
  # Real-time, where its root may have that.
  [ "$(on_host awk '{ print $41 }' "/proc/$pid/stat")" -eq "$(chrt --rr 1 true && echo 2 || echo 0)" ]
  [[ ${GRAFT_BUILD:-} == *asan ]] || [ "$(on_host sed -n 's/^VmRSS:\s*\([0-9]*\) kB/\1/p' "/proc/$pid/status")" -lt 8192 ]
}

@test "a flood of questions for its pages is slowed down; a right that it lacks is told" {
  local pid begun
  on_host setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice nvidia-nri-plugin --nri-socket=/run/nri.sock --listen="$work/pages" >"$work/nri.log" 2>&1 3>&- 4>&- &
  within 10 curl --silent --unix-socket "$work/pages" http://x/healthz
  begun=${EPOCHREALTIME/[.,]/}
  for _ in {1..15}; do
    [ "$(curl --silent --unix-socket "$work/pages" http://x/healthz)" = ok ]
  done
  # One connection in 50 ms.
  [ $((${EPOCHREALTIME/[.,]/} - begun)) -ge 690000 ]
  pid=$(on_host pgrep --oldest nvidia-nri-plug)
  [ "$(on_host awk '{ print $41 }' "/proc/$pid/stat")" -eq 0 ]
  grep -q 'no real-time priority (Operation not permitted): answers take longer while the processors are busy$' "$work/nri.log"
}

@test "an option, a value and a configuration that are wrong" {
  run on_host nvidia-nri-plugin --nri-plugin-index=100
  [ "$status" -eq 1 ]
  [[ $output == *"invalid plugin index '100'; allowed: 00 to 99"* ]]
  printf '[nri]\nenvironment = "allot"\n' | config_toml
  run on_host nvidia-nri-plugin
  [ "$status" -eq 1 ]
  [[ $output == *"config.toml: nri.environment = 'allot'; it can be allotted, accept or ignore"* ]]
}

@test "--install-hook copies the hook, and names that one" {
  local log=$work/log
  on_host nvidia-nri-plugin --nri-socket=/run/none --install-hook=/run/toolkit >"$log" 2>&1 3>&- 4>&- &
  within 10 on_host cmp /run/toolkit/nvidia-cdi-hook "$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook"
}
