# SPDX-License-Identifier: Apache-2.0
# Leases of GPUs that several share: slots by time slices, and by MPS with one daemon for each GPU, which nobody has to start or to end.
# lane: work

load lib.bash

setup_file() {
  local name
  start_host quad
  for name in runtime/nvidia-container-runtime runtime/graft-nvml cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk; do
    install -m 0755 "$build/src/cli/$name" "$BATS_FILE_TMPDIR/programs"
  done
}
teardown_file() { stop_host; }
setup() {
  test_setup
  runtime=$BATS_FILE_TMPDIR/programs/nvidia-container-runtime
  ctk=$BATS_FILE_TMPDIR/programs/nvidia-ctk
  config=$work/config.toml
  table=$work/leases
  configure 'shared = ["0=2", "1=3"]'
  export NVIDIA_CTK_CONFIG_FILE_PATH=$config
  unset XDG_CONFIG_HOME
}
teardown() {
  local name
  [ ! -d "$work/runc" ] || for name in "$work"/runc/*; do
    on_host runc --root "$work/runc" delete --force "${name##*/}" 2>/dev/null || true
  done
  [ ! -e "$work/pids" ] || xargs kill -9 <"$work/pids" 2>/dev/null || true
  test_teardown
}
# configure LINE...: of [graft.leases].
configure() {
  printf '[nvidia-container-runtime]\nruntimes = ["runc"]\n[graft.leases]\nmode = "on"\ndirectory = "%s"\n' "$table" >"$config"
  printf '%s\n' "$@" >>"$config"
}
lease() { on_host "$ctk" --quiet lease "$@"; }
make_shared() {
  make_root small overlay
  mkdir -p "$work/runc"
}
# container NAME CLAIM [JQ-FILTER...] makes one, as an engine does it.
container() {
  local name=$1 claim=$2
  shift 2
  bundle=$work/bundle-$name
  new_bundle
  edit_bundle --arg root "$root" --arg claim "$claim" --arg name "$name" "$(piped '
    .process.terminal = false | .process.args = ["sleep", "1000"] | del(.process.rlimits) | .root = {path: $root, readonly: true} |
    .linux.cgroupsPath = "/graft-lease-" + $name | .process.env += ["NVIDIA_VISIBLE_DEVICES=" + $claim]' "$@")"
  on_host "$runtime" --root "$work/runc" create --bundle "$bundle" --pid-file "$work/$name.pid" "$name" \
    </dev/null >"$work/$name.out" 2>&1 3>&- 4>&-
}
of_runc() { on_host runc --root "$work/runc" "$@"; }
# The GPUs of a container, by their nodes.
gpus_of() { on_host nsenter --target "$(cat "$work/$1.pid")" --mount sh -c 'ls /dev' | grep -x 'nvidia[0-9]*' | xargs; }
# within_seconds N COMMAND...
within_seconds() {
  local limit=$1
  shift
  for _ in $(seq $((limit * 50))); do
    ! "$@" || return 0
    sleep 0.02
  done
  die "not within $limit s: $*"
}
free_slots() { lease list --json | jq -c '[.gpus[] | select(.slots).free]'; }
has_free() { [ "$(free_slots)" = "$1" ]; }

@test "share: containers have slots of the same GPU, others get whole GPUs, and the last is refused" {
  make_shared
  container a share
  container b share:1
  container c 'share:1;spread'
  # The minors of this host are in the reverse order of its GPUs.
  [ "$(gpus_of a) $(gpus_of b) $(gpus_of c)" = "nvidia3 nvidia3 nvidia2" ]
  has_free '[0,2]'
  container d any:2
  [ "$(gpus_of d)" = "nvidia0 nvidia1" ]
  run ! container e any
  grep -E '1 GPU was asked for, 0 of 2 are free\. Held: ' "$work/e.out"
  run ! container f share:2
  grep -F '2 shared GPUs were asked for, 1 of 2 is free. Held: ' "$work/f.out"
  run ! container g 'share;mem=8G'
  grep -F 'lease: mem= and sm= limit nothing where GPUs are shared by time slices. Leave them out, or set graft.leases.sharing to ' "$work/g.out"
  lease list | sed -E 's/[a-z2-7]{12}/ID/; s/, [0-9]+ s/, TIME/' | sort >"$work/list"
  diff "$work/list" - <<'LIST'
0    held   ID  uid 0 (container a, TIME)  slot 1
0    held   ID  uid 0 (container b, TIME)  slot 2
0    shared 0 of 2 slots free; time-sliced: no isolation
1    held   ID  uid 0 (container c, TIME)  slot 1
1    shared 2 of 3 slots free; time-sliced: no isolation
2    held   ID  uid 0 (container d, TIME)
3    held   ID  uid 0 (container d, TIME)
GPU  STATE  LEASE         HOLDER
LIST
  lease metrics >"$work/metrics"
  grep -E '^graft_lease_gpu_free_slots\{gpu="1",uuid="GPU-[0-9a-f-]{36}",sharing="time-slice"\} 2$' "$work/metrics"
  of_runc delete --force a
  within_seconds 2 has_free '[1,2]'
  run -0 lease explain share:2
  [[ $output =~ ^'GPU 0: GPU-'[0-9a-f-]{36}', slot 1'$'\n''GPU 1: GPU-'[0-9a-f-]{36}', slot 2'$ ]]
}

@test "share: 50 at once get five slots, and a lease that was taken by hand is used by several" {
  local id
  for _ in $(seq 50); do
    on_host "$ctk" lease acquire --share --for 1h >>"$work/ids" 2>>"$work/refused" 3>&- 4>&- &
  done
  wait
  [ "$(sort -u "$work/ids" | wc -l)" = 5 ]
  [ "$(grep -c '1 shared GPU was asked for, 0 of 2 are free' "$work/refused")" = 45 ]
  [ "$(cat "$table"/held/* | jq -r '.slots[] | "\(.gpu) \(.replica)"' | sort -u | wc -l)" = 5 ]
  has_free '[0,0]'
  id=$(head -n 1 "$work/ids")
  make_shared
  container a "lease:$id"
  has_free '[0,0]'
  lease release "$id"
  has_free '[0,0]'
  of_runc delete --force a
  within_seconds 2 eval 'has_free "[1,0]" || has_free "[0,1]"'
}

@test "share: who waits gets the slot that becomes free; a limit counts slots" {
  configure 'shared = ["0=2"]' 'limits = ["1000=1"]' 'pool = ["0"]'
  SUDO_UID=1000 on_host "$ctk" --quiet lease run --share -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  within_seconds 2 has_free '[1]'
  SUDO_UID=1000 run -126 on_host "$ctk" lease run --share -- true
  [[ $output == *"uid 1000 holds 1 and may hold 1 at once."* ]]
  lease acquire --share --for 1h >"$work/id"
  # shellcheck disable=SC2016
  on_host "$ctk" --quiet lease run --share --wait 30s -- sh -c 'echo "$CUDA_VISIBLE_DEVICES" >"$0.new"; mv "$0.new" "$0"' "$work/started" 3>&- 4>&- &
  within_seconds 2 eval 'lease list | grep -q "waits .* share:1"'
  [ ! -e "$work/started" ]
  lease release "$(cat "$work/id")"
  within_seconds 5 test -e "$work/started"
  grep -E '^GPU-[0-9a-f-]{36}$' "$work/started"
}

@test "share: what config.toml says and nobody can read" {
  local row
  for row in 0 0= 0=1 0=49 =2 0=2x 0=-2; do
    configure "shared = [\"$row\"]"
    run -1 on_host "$ctk" lease list
    [[ $output == *"graft.leases.shared: '$row' is neither GPU=N nor all=N, with N from 2 to 48. Run 'nvidia-ctk config'"* || $output == *"graft.leases.shared: '$row' is neither GPU=N nor all=N, with N from 2 to 48"* ]]
  done
  configure 'shared = ["all=2", "1=3"]'
  has_free '[2,3,2,2]'
  run -1 on_host "$ctk" lease acquire --share --claim share
  [[ $output == *"--share and --claim cannot be used together"* ]]
}
