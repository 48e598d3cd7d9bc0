# SPDX-License-Identifier: Apache-2.0
# files: disk
# The usual example: a host of four GPUs and three containers at once. One has GPU 0 and 1, one 0, 2
# and 3, one 3. 0 and 3 are shared. Each sees and may open exactly its own, however it was
# started, with time slicing and with MPS.
# bats file_tags=late-mounts

load lib.bash
load engines.bash

setup_file() {
  { "$sim" show quad && echo "mps: true"; } >"$BATS_FILE_TMPDIR/quad.yaml"
  start_machine "$BATS_FILE_TMPDIR/quad.yaml"
  start_dockerd
  import_image small
  start_containerd
  import_archive "$machine_cgroup" small small /probe
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() {
  [ ! -e "$work/daemon" ] || on_host sh -c 'echo quit | nvidia-cuda-mps-control' || true
  engine_teardown
}

# start NAME GPU...: a container whose first process uses CUDA until it is killed; every way of starting knows its own words.
start_by_gpus() {
  local name=$1
  shift
  docker run --detach --net=none --name "$name" --gpus "\"device=$(IFS=, && echo "$*")\"" \
    --volume "$build/test/sim/cuda-client:/cuda-client:ro" small /cuda-client stay
}
start_by_runtime() {
  local name=$1
  shift
  docker run --detach --net=none --name "$name" --runtime=nvidia --env "NVIDIA_VISIBLE_DEVICES=$(IFS=, && echo "$*")" \
    --volume "$build/test/sim/cuda-client:/cuda-client:ro" small /cuda-client stay
}
start_by_ctr() {
  local name=$1 gpu gpus=()
  shift
  for gpu in "$@"; do gpus+=(--gpus "$gpu"); done
  ctr run --detach "${gpus[@]}" --mount "type=bind,src=$build/test/sim/cuda-client,dst=/cuda-client,options=rbind:ro" \
    docker.io/library/small:latest "$name" /cuda-client stay
}

# inside NAME COMMAND... No name may be hexadecimal: Docker takes it for the beginning of some ID as well.
inside() {
  local name=$1
  shift
  if docker container inspect "$name" >/dev/null 2>&1; then
    docker exec --env "PROBE_MINORS=$(host_minors)" "$name" "$@"
  else
    # ctr may lose what a short command prints.
    for _ in 1 2 3; do
      ctr task exec --exec-id "probe-$RANDOM" --cwd / "$name" env "PROBE_MINORS=$(host_minors)" "$@" >"$work/said" || break
      if [ -s "$work/said" ]; then break; fi
    done
    cat "$work/said"
  fi
}

# expect_inside NAME GPU...
expect_inside() {
  local name=$1
  shift
  run inside "$name" /probe
  read_answers
  expect_gpus "$@" || return
  # What CUDA says.
  run inside "$name" /cuda-client
  [[ $output == *"count: $#"* ]] || { say "$output"; return 1; }
  case "$mps" in
  yes) [ "$(grep -c '^device .*, through MPS$' <<<"$output")" -eq $# ] ;;
  no) [[ $output != *MPS* ]] ;;
  esac
}

start_mps() {
  on_host nvidia-cuda-mps-control -d
  : >"$work/daemon"
}

# The first processes of all containers, as the machine numbers them.
clients() { on_host sh -c 'echo get_client_list | nvidia-cuda-mps-control' | sort; }
has_clients() { [ "$(clients | grep -c .)" -eq "$1" ]; }

picture() {
  local way=$1
  "$way" left 0 1
  "$way" both 0 2 3
  "$way" right 3
  if [ "$mps" = yes ]; then within 5 has_clients 3; fi
  expect_inside left 0 1
  expect_inside both 0 2 3
  expect_inside right 3
}

@test "docker run --gpus, time slices" { mps=no picture start_by_gpus; }
@test "docker run --runtime=nvidia, time slices" { mps=no picture start_by_runtime; }
@test "ctr run --gpus, time slices" { mps=no picture start_by_ctr; }

@test "docker run --gpus, MPS: the daemon serves all three" {
  start_mps
  mps=yes picture start_by_gpus
  [ "$(clients)" = "$(docker inspect --format '{{.State.Pid}}' left both right | sort)" ]
}

@test "docker run --runtime=nvidia, MPS: the daemon serves all three" {
  start_mps
  mps=yes picture start_by_runtime
  [ "$(clients)" = "$(docker inspect --format '{{.State.Pid}}' left both right | sort)" ]
}

@test "ctr run --gpus, MPS: the daemon serves all three" {
  start_mps
  mps=yes picture start_by_ctr
  [ "$(clients)" = "$(ctr task list | awk 'NR > 1 { print $2 }' | sort)" ]
}

@test "one container of each way at once: one goes, the others keep theirs" {
  mps=no
  start_by_gpus left 0 1
  start_by_runtime both 0 2 3
  start_by_ctr right 3
  expect_inside left 0 1
  expect_inside both 0 2 3
  expect_inside right 3
  docker rm --force both
  expect_inside left 0 1
  expect_inside right 3
}
