# SPDX-License-Identifier: Apache-2.0
# files: disk
# Docker on broken or unusual hosts: an error is one line that names cause and remedy, and
# containers that ask for no GPU run as usual.

load lib.bash
load engines.bash

# host TOPOLOGY [GRAFT-SIM OPTION...]: with a daemon and the small image.
host() {
  start_machine "$@"
  start_dockerd
  import_image small
  engine_setup
}
teardown() { stop_machine; }

@test "--gpus: what cannot be given is refused in one line" {
  host dgx-h100
  on_host cut -d ' ' -f 4- /proc/self/mountinfo >"$work/before"
  docker_run --gpus '"device=0,9"'
  expect_refusal 'device error: 9: unknown device' 'nvidia-container-cli info'
  docker_run --gpus device=GPU-00000000-0000-0000-0000-000000000000
  expect_refusal 'GPU-00000000-0000-0000-0000-000000000000: unknown device' 'nvidia-container-cli info'
  docker_run --gpus all --env 'NVIDIA_REQUIRE_CUDA=cuda>=99.9'
  expect_refusal 'unsatisfied condition: cuda>=99.9' 'update your driver|older'
  docker_run --gpus all --env 'NVIDIA_REQUIRE_CUDA=cuda!'
  expect_refusal 'requirement error: invalid expression' "'cuda!'.*NVIDIA_DISABLE_REQUIRE"
  docker_run --gpus all --env NVIDIA_DRIVER_CAPABILITIES=compute,nonsense
  expect_refusal 'nonsense' 'NVIDIA_DRIVER_CAPABILITIES'
  docker_run --gpus all --env NVIDIA_MIG_CONFIG_DEVICES=all
  expect_refusal 'MIG_CONFIG_DEVICES' 'CAP_SYS_ADMIN'
  config_toml <<<'disable-require = 1'
  docker_run --gpus all
  expect_refusal 'disable-require' 'config.toml'
  # Nothing is left of the attempts.
  on_host cut -d ' ' -f 4- /proc/self/mountinfo >"$work/after"
  diff "$work/before" "$work/after"
  [ -z "$(docker ps --all --quiet)" ]
}

@test "--runtime=nvidia: what cannot be given is refused in one line" {
  host dgx-h100
  on_host cut -d ' ' -f 4- /proc/self/mountinfo >"$work/before"
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0,9
  expect_refusal "'?9'?" 'nvidia-container-cli info'
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=GPU-00000000-0000-0000-0000-000000000000
  expect_refusal GPU-00000000-0000-0000-0000-000000000000 'nvidia-container-cli info'
  docker_run --runtime=nvidia-legacy --env NVIDIA_VISIBLE_DEVICES=all --env 'NVIDIA_REQUIRE_CUDA=cuda>=99.9'
  expect_refusal 'unsatisfied condition: cuda>=99.9' 'update your driver|older'
  config_toml <<<'nvidia-container-runtime.mode = "jit"'
  docker_run --runtime=nvidia
  expect_refusal 'nvidia-container-runtime.mode|jit' 'jit-cdi'
  config_toml <<<'disable-require = 1'
  docker_run --runtime=nvidia
  expect_refusal 'disable-require' 'config.toml'
  on_host cut -d ' ' -f 4- /proc/self/mountinfo >"$work/after"
  diff "$work/before" "$work/after"
  [ -z "$(docker ps --all --quiet)" ]
}

@test "--gpus and --runtime=nvidia, a host without a driver" {
  host no-driver
  docker_run --gpus all
  expect_refusal 'load library failed: libnvidia-ml.so.1' 'no kernel driver is loaded.*Install the driver'
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=all
  expect_refusal 'load library failed: libnvidia-ml.so.1' 'no kernel driver is loaded.*Install the driver'
  docker_run
  [ "$status" -eq 0 ]
}

@test "--gpus and --runtime=nvidia, a driver whose libraries are not installed" {
  host half-installed
  docker_run --gpus all
  expect_refusal 'load library failed: libnvidia-ml.so.1' 'Install the driver, with user-space libraries'
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=all
  expect_refusal 'load library failed: libnvidia-ml.so.1' 'Install the driver, with user-space libraries'
}

@test "--gpus and --runtime=nvidia, an upgraded driver and no reboot" {
  host dgx-h100 --fault nvml-mismatch
  docker_run --gpus all
  expect_refusal 'driver/library version mismatch' '550.40.07.*550.54.14.*(Reboot|reboot)'
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=all
  expect_refusal 'driver/library version mismatch' '550.40.07.*550.54.14.*(Reboot|reboot)'
}

@test "--gpus, a host with cgroup v2" {
  MACHINE_CGROUP=v2 host dgx-h100
  [ "$(docker info --format '{{.CgroupVersion}}')" = 2 ]
  docker_start --gpus '"device=1,2"'
  docker_probe
  expect_gpus 1 2
  docker restart --time 0 "$name"
  docker_probe
  expect_gpus 1 2
  docker update --pids-limit 100 "$name" || say "this machine's cgroup v2 has no controller of pids"
  docker_probe
  expect_gpus 1 2
}

@test "--runtime=nvidia, a host with cgroup v2" {
  MACHINE_CGROUP=v2 host dgx-h100
  docker_start --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=1,2
  docker_probe
  expect_gpus 1 2
  docker restart --time 0 "$name"
  docker_probe
  expect_gpus 1 2
}

@test "--gpus, containers in a user namespace" {
  local file
  start_machine dgx-h100
  mkdir -p "$machine/proc" "$machine/sys"
  # The kernel lets a user namespace mount proc and sysfs only where a whole one is in view.
  on_host mount -t proc proc "$machine/proc"
  on_host mount -t sysfs sysfs "$machine/sys"
  for file in subuid subgid; do
    echo nobody:100000:65536 >"$machine/$file"
    on_host sh -c '[ -e "/etc/$2" ] || : >"/etc/$2"; mount --bind "$1" "/etc/$2"' sh "$machine/$file" "$file"
  done
  chmod a+rx "$machine"
  start_dockerd --userns-remap=nobody:nogroup
  import_image small
  engine_setup
  docker_start --gpus '"device=1,2"'
  docker exec "$name" cat /proc/self/uid_map
  [ "$(docker exec "$name" awk '{ print $2 }' /proc/self/uid_map)" = 100000 ]
  docker_probe
  # A node that is made by hand can be opened by nobody there.
  expect nvidia-smi 2
  expect open-nvidia1 "No such device or address"
  expect open-nvidia0 ""
  expect made-nvidia1 "mknod refused"
  docker restart --time 0 "$name"
  docker_probe
  expect nvidia-smi 2
}

@test "--gpus, WSL2: every GPU through one node" {
  host wsl2
  docker_run --gpus all
  expect ls-nodes "/dev/dxg "
  expect nvidia-smi 1
}

@test "--gpus, a driver in a container of its own" {
  host driver-container
  config_toml <<<'nvidia-container-cli.root = "/run/nvidia/driver"'
  docker_run --gpus 1
  expect_gpus 0
}

@test "--gpus, a Jetson: the hook says which way to go" {
  host orin
  docker_run --gpus all
  expect_refusal 'invoking the NVIDIA Container Runtime Hook directly' 'runtime=nvidia'
  docker_run
  [ "$status" -eq 0 ]
}

@test "--runtime=nvidia, a Jetson: by the board's own lists" {
  host orin
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=all
  expect ls-nodes "/dev/nvgpu/igpu0/power /dev/nvhost-as-gpu /dev/nvhost-ctrl /dev/nvhost-gpu /dev/nvmap "
  expect ldconfig /usr/lib/x86_64-linux-gnu/tegra/libcuda.so.1
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0 -- sh -c ': <>/dev/nvhost-gpu'
  [[ $output == *"No such device or address"* ]] # the simulated node: the open was allowed
  docker_run --runtime=nvidia
  expect ls-nodes ""
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=1
  expect_refusal 'unsupported device id: 1' 'there are 0 and all'
  docker_run --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=0 --env 'NVIDIA_REQUIRE_CUDA=cuda>=99.9'
  expect_refusal 'unsatisfied condition: cuda>=99.9 \(cuda=11.4\)' 'Update the driver'
}

# capability NAME: the node of that line of the driver's table, and its numbers.
capability() {
  local major minor
  major=$(on_host sed -n 's/ *\([0-9]*\) nvidia-caps$/\1/p' /proc/devices)
  minor=$(on_host sed -n "s|^$1 ||p" /proc/driver/nvidia-caps/mig-minors)
  say "/dev/nvidia-caps/nvidia-cap$minor c $major $minor"
}

# opened NODE: what the container $name is told when it opens that, having made the node if there is none.
opened() {
  # shellcheck disable=SC2016
  docker exec "$name" sh -c '
    [ -c "$1" ] || { mknod /dev/made "$2" "$3" "$4" && set -- /dev/made; }
    error=$( (: <"$1") 2>&1) && error=": opened"
    rm -f /dev/made
    echo "${error##*: }"' sh "$@"
}

@test "MIG: a container that may configure it uses the instances that it has and those that it will make, of its GPU alone" {
  local runtime existing later foreign
  host a100-mig
  read -ra existing < <(capability gpu1/gi1/access)
  read -ra later < <(capability gpu1/gi5/access)
  read -ra foreign < <(capability gpu2/gi7/access)
  on_host test -c "${existing[0]}"
  on_host test ! -e "${later[0]}"
  on_host test -c "${foreign[0]}"
  for runtime in nvidia nvidia-legacy; do
    docker_start --runtime="$runtime" --cap-add SYS_ADMIN --env NVIDIA_VISIBLE_DEVICES=1 --env NVIDIA_MIG_CONFIG_DEVICES=all
    # As the host's nvidia-modprobe does it when the instance is made.
    on_host mknod "${later[@]}"
    [ "$(opened "${existing[@]}")" = "No such device or address" ]
    [ "$(opened "${later[@]}")" = "No such device or address" ]
    docker exec "$name" test -c "${later[0]}"
    [ "$(opened "${foreign[@]}")" = "Operation not permitted" ]
    on_host rm "${later[0]}"
    docker rm --force "$name"
  done
}
