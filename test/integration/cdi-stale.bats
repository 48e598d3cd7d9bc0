# SPDX-License-Identifier: Apache-2.0
# A host changes under its CDI spec: the runtime refuses the spec and says why, the command that it
# names repairs it, and the container gets what the host has now. Each change is two simulated
# hosts, one after the other, with one spec.

load lib.bash

setup_file() {
  local name
  mkdir -p "$BATS_FILE_TMPDIR/bin"
  for name in runtime/nvidia-container-runtime runtime/graft-nvml cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk; do
    install -m 0755 "$build/src/cli/$name" "$BATS_FILE_TMPDIR/bin"
  done
}

setup() {
  test_setup
  specs=$work/cdi
  export NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml NVIDIA_CTK_CDI_SPEC_DIRS=$specs
  unset XDG_CONFIG_HOME
  mkdir -p "$specs" "$work/runc"
  printf '[nvidia-container-runtime]\nmode = "cdi"\n[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["%s"]\n' "$specs" >"$work/config.toml"
}
teardown() {
  test_teardown
  stop_host
}

# topology NAME [SED-SCRIPT]: the lab, changed. The GPUs keep their UUIDs: those come from its name and their places.
topology() {
  sed "${2:-}" >"$work/$1.yaml" <<'YAML'
name: lab
driver: 550.54.14
cuda: "12.4"
files: [base]
gpus:
  - model: A100-SXM4-40GB
    bus-ids: ["0000:07:00.0"]
  - model: A100-SXM4-40GB
    bus-ids: ["0000:0f:00.0"]
    mig: [3g.20gb, 2g.10gb]
YAML
}

# becomes NAME: replaces the simulated host by another one.
becomes() {
  stop_host
  start_host "$work/$1.yaml"
}

# container NAME...: one that asks for these devices; the answers of its probe, or the runtime's message in $message.
container() {
  local names
  names=$(printf ',%s' "$@")
  [ -d "$root" ] || make_root small copy
  rm -rf "$bundle"
  new_bundle
  edit_bundle --arg root "$root" --arg devices "NVIDIA_VISIBLE_DEVICES=${names#,}" '.process.terminal = false | .process.args = ["/probe"] |
    del(.process.rlimits) | .root = {path: $root, readonly: false} | .process.env += [$devices] | (.process.capabilities[]) |= (. + ["CAP_MKNOD"] | unique)'
  : >"$work/log.json"
  status=0
  shim create --bundle "$bundle" "$container" </dev/null >"$work/out" 2>&1 || status=$?
  message=$(jq --slurp --raw-output 'map(select(.level == "error")) | last | .msg' "$work/log.json")
  [ "$status" -eq 0 ] || return 0
  run_created shim
}

shim() {
  on_host nvidia-container-runtime --root "$work/runc" --log "$work/log.json" --log-format json "$@"
}

# refused REASON
refused() {
  [ "$status" -ne 0 ]
  [[ $message == *"CDI spec $specs/nvidia.yaml is stale: $1"* ]] || { say "$message"; return 1; }
  [[ $message == *"nvidia-ctk cdi refresh"* ]] || { say "$message"; return 1; }
}

@test "another driver" {
  topology old
  topology new 's/550.54.14/560.35.03/'
  becomes old
  on_host nvidia-ctk --quiet cdi generate --output "$specs/nvidia.yaml"
  container 0
  expect nvidia-smi 1
  becomes new
  container 0
  refused 'it was made for driver 550.54.14, and this host has 560.35.03'
  on_host nvidia-ctk --quiet cdi refresh
  container 0
  expect nvidia-smi 1
  expect open-nvidia0 "No such device or address"
  find "$root" -name 'libcuda.so.*' | grep -q '560.35.03$'
}

@test "MIG instances are created and destroyed" {
  topology old
  topology split 's/3g.20gb, 2g.10gb/1g.5gb, 1g.5gb, 1g.5gb/'
  topology whole '/mig:/d'
  becomes old
  on_host nvidia-ctk --quiet cdi generate --output "$specs/nvidia.yaml"
  container 1:0 1:1
  expect nvidia-smi-mig 2
  becomes split
  container 1:0
  refused 'the MIG devices of the GPU at 00000000:0f:00.0 have changed'
  container all
  refused 'the MIG devices of the GPU at 00000000:0f:00.0 have changed'
  # They are nothing to a container that has the other GPU.
  container 0
  expect nvidia-smi 1
  # Also what is new is told from what is unknown.
  container 1:2
  [[ $message == *"unresolvable CDI devices nvidia.com/gpu=1:2"*"is stale: the MIG devices of the GPU at 00000000:0f:00.0 have changed; run 'nvidia-ctk cdi refresh'"* ]]
  on_host nvidia-ctk --quiet cdi refresh
  container 1:2
  expect nvidia-smi-mig 1
  becomes whole
  container 1
  [ "$status" -ne 0 ]
  on_host nvidia-ctk --quiet cdi refresh
  container 1
  expect nvidia-smi 1
  expect nvidia-smi-mig 0
  expect open-nvidia1 "No such device or address"
}

@test "a GPU disappears, and another one comes in its place" {
  topology old '/mig:/d'
  head -n -2 "$work/old.yaml" >"$work/lost.yaml"
  topology swapped '/mig:/d; s/^name: lab/name: other-lab/'
  becomes old
  on_host nvidia-ctk --quiet cdi generate --output "$specs/nvidia.yaml"
  container all
  expect nvidia-smi 2
  becomes lost
  container all
  refused 'the GPU at 00000000:0f:00.0 is no longer there'
  on_host nvidia-ctk --quiet cdi refresh
  container all
  expect nvidia-smi 1
  # The one that was there all the time is no exception: its index depends on the others.
  becomes old
  container 0
  refused 'the GPU at 00000000:0f:00.0 is new'
  on_host nvidia-ctk --quiet cdi refresh
  becomes swapped
  container 0
  refused 'at 00000000:07:00.0 there is another GPU: GPU-'
  on_host nvidia-ctk --quiet cdi refresh
  container 0
  expect nvidia-smi 1
}

@test "the driver leaves a GPU alone, and counts the others anew" {
  topology old '/mig:/d'
  topology fewer '/mig:/d; s/^  - model/&/; 0,/bus-ids: .*/s//&\n    excluded: true\n    minors: [1]/; s/bus-ids: ."0000:0f.*/&\n    minors: [0]/'
  becomes old
  on_host nvidia-ctk --quiet cdi generate --output "$specs/nvidia.yaml"
  container 1
  expect nvidia-smi 1
  becomes fewer
  container 1
  refused 'the GPU at 00000000:0f:00.0 is /dev/nvidia0 now, not /dev/nvidia1'
  container all
  refused 'the GPU at 00000000:07:00.0 is no longer there'
  on_host nvidia-ctk --quiet cdi refresh
  container 0
  expect nvidia-smi 1
}

@test "nothing has changed but the boot" {
  topology old
  becomes old
  on_host nvidia-ctk --quiet cdi generate --output "$specs/nvidia.yaml"
  sed -i -E 's/(boot-id[=:] *)[0-9a-f]{8}/\100000000/' "$specs/nvidia.yaml"
  container 0 1:1
  expect nvidia-smi 2
}
