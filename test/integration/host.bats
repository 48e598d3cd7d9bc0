# SPDX-License-Identifier: Apache-2.0
# What starting a container does to the host: it opens no GPU, wakes no driver library, runs no program.

load lib.bash

# As on a machine without persistence mode, the driver library is slow, so the time shows whether it
# was asked.
setup_file() { start_host dgx-h100 --fault nvml-init-delay=5; }
teardown_file() { stop_host; }
setup() {
  test_setup
  make_root debian overlay
}
teardown() { test_teardown; }

# trace WORD...: configure under strace, into $work/trace. Descriptors are shown with the paths behind them.
trace() {
  # shellcheck disable=SC2016
  on_host unshare --mount --propagation private -- sh -c '
    mount --bind "$1" "$1" && mount -t proc none "$1/proc" || exit
    shift
    exec "$@"' sh "$root" "${old_kernel[@]}" strace -f -qq -y -o "$work/trace" \
    -e trace=prctl,open,openat,openat2,open_tree,execve,execveat,fork,vfork,clone,clone3,connect "$cli" "$@" "$root" || return
  grep -q "/proc/driver/nvidia/version" "$work/trace"
}

@test "configure --device 0 opens no GPU, asks no driver library, starts no program, in less than a second" {
  local started=${EPOCHREALTIME/./} ended
  trace configure --no-cgroups --compute --utility --device 0
  ended=${EPOCHREALTIME/./}
  # Nodes are named to be mounted, which opens nothing: O_PATH, or open_tree.
  grep -E '[<"]/dev/nvidia' "$work/trace" >"$work/nodes"
  [ -s "$work/nodes" ]
  run ! grep -vE 'O_PATH|open_tree\(' "$work/nodes"
  [ "$(grep -cE 'execve(at)?\(' "$work/trace")" -eq 1 ]
  [ "$(grep -cE '(fork|clone3?)\(' "$work/trace")" -eq "$(grep -c 'PR_SET_NAME, "graft-reader"' "$work/trace")" ]
  # The link of that name in the container is held, and nothing is read through it.
  grep -E '"[^"]*libnvidia-ml\.so\.1"' "$work/trace" >"$work/links" || true
  run ! grep -v 'O_NOFOLLOW.*O_PATH' "$work/links"
  run ! grep connect "$work/trace"
  [ $((ended - started)) -lt 1000000 ]
}

@test "the same by UUID, by bus id, for all GPUs, and with a requirement that the driver version decides" {
  local uuid words
  uuid=$(on_host sed -n 's/^GPU UUID:[[:space:]]*//p' /proc/driver/nvidia/gpus/0000:43:00.0/information)
  for words in "--device=$uuid" --device=0000:43:00.0 --device=all "--device=1 --require=cuda>=9.0" "--device=1 --require=driver>=550"; do
    # shellcheck disable=SC2086
    trace configure --no-cgroups --compute --utility $words
    [ "$(grep -cE '(fork|clone3?)\(' "$work/trace")" -eq "$(grep -c 'PR_SET_NAME, "graft-reader"' "$work/trace")" ]
    run ! grep -E '[<"]/dev/nvidia' <(grep -vE 'O_PATH|open_tree\(' "$work/trace")
  done
}

@test "what the trace shows can be seen: info does ask the driver library" {
  on_host strace -f -qq -o "$work/trace" -e trace=clone,clone3,fork,openat "$cli" info >"$work/info"
  grep -qE '(fork|clone3?)\(' "$work/trace"
  grep -q 'libnvidia-ml' "$work/trace"
}
