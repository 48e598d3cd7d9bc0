# SPDX-License-Identifier: Apache-2.0
# The first command of the README does what it says, twice, and leaves nothing behind.

bats_require_minimum_version 1.5.0

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  cd "$top"
}

# What a start could leave behind; of other starts on this machine it takes no note.
state() {
  findmnt -rno TARGET | grep -E 'quickstart|nvidia' | sort
  find /run /tmp -maxdepth 1 -name 'graft-quickstart*' | sort
  runc list -q | grep quickstart
  find /sys/fs/cgroup -maxdepth 2 -name '*quickstart*'
  find /dev -maxdepth 1 -name "*nvidia*"
  md5sum /etc/ld.so.cache
}

@test "quickstart: a container with one GPU shows it from inside, and the plan; twice, without a trace" {
  local before
  # What it builds and keeps stays for the second time.
  before=$(state)
  run -0 ./quickstart </dev/null
  [ "$(grep -c '^GPU 0: ' <<<"$output")" -eq 1 ]
  [ "$(grep -c '^GPU [1-9]' <<<"$output")" -eq 0 ]
  # What is seen inside, then the plan that the hook applied, with the procfs view that only a running container can get.
  [[ $output == *"== inside a container"*"nvidia-smi -L"*"GPU 0: "*"== the plan that was applied"*"/dev/nvidia0"* ]]
  [[ ${output#*== the plan that was applied} == *" /proc/driver/nvidia"*"gpu-node:"* ]]
  [[ $output != *"refused: "*"procfs view"* ]]
  # Inside, the loader finds the driver, and the other GPUs' nodes are absent.
  [[ $output == *libcuda.so.1* ]]
  [[ $output == *" /dev/nvidia0"* ]]
  [ "$(grep -c ' /dev/nvidia[1-9]' <<<"$(sed -n '/^== inside a container/,/^== the plan/p' <<<"$output")")" -eq 0 ]
  if [ ! -e /proc/driver/nvidia/version ]; then
    [[ $output == *"no NVIDIA driver is loaded: using the simulated host"* ]]
  fi
  [ "$(state)" = "$before" ]
  run -0 ./quickstart </dev/null
  [[ $output == *"deps: nothing to install"*"GPU 0: "* ]]
  [ "$(state)" = "$before" ]
}

@test "quickstart: without root it says so, and does nothing" {
  run -1 setpriv --reuid=65534 --regid=65534 --clear-groups ./quickstart
  [ "$output" = "quickstart: run this as root (sudo ./quickstart): it installs packages and starts a container" ]
}
