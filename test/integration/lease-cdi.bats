# SPDX-License-Identifier: Apache-2.0
# GPUs by number as CDI devices: nvidia.com/lease=2, for engines that know CDI and neither our runtime nor our variables. Here a low-level runtime gets what such
# an engine takes from the spec; cdi-engines.bats and podman.bats have engines.
# lane: work

load lib.bash
load lease.bash

setup_file() { lease_host dgx-h100; }
teardown_file() { stop_host; }
setup() {
  test_setup
  programs=$BATS_FILE_TMPDIR/programs
  config=$work/config.toml
  spec=$work/cdi/nvidia.yaml
  printf '[nvidia-container-runtime]\nruntimes = ["runc"]\nmodes.cdi.spec-dirs = ["%s"]\n[graft.leases]\nmode = "on"\ndirectory = "%s"\n' "$work/cdi" "$work/leases" >"$config"
  make_root small overlay
  mkdir -p "$work/runc" "$work/cdi"
}
teardown() {
  local name
  for name in "$work"/runc/*; do
    on_host runc --root "$work/runc" delete --force "${name##*/}" 2>/dev/null || true
  done
  test_teardown
}

ctk() { on_host "$programs/nvidia-ctk" --quiet --config "$config" "$@"; }
generate() { ctk cdi generate --leases --nvidia-cdi-hook-path "$programs/nvidia-cdi-hook" --output "$spec"; }
held() { ctk lease list --json | jq '[.gpus[] | select(.leases != [])] | length'; }
becomes_held() { within 2 eval "[ \$(held) = $1 ]" || die "$(ctk lease list) instead of $1 held"; }
# The spec as JSON.
read_spec() { python3 -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))' "$1"; }
# lease_bundle NAME [JQ-FILTER...]
lease_bundle() {
  local name=$1
  shift
  # shellcheck disable=SC2034
  bundle=$work/bundle-$name
  new_bundle
  edit_bundle --arg root "$root" --arg own "$$" --arg name "$name" "$(piped '
    .process.terminal = false | .process.args = ["sleep", "1000"] | del(.process.rlimits) | .root = {path: $root, readonly: true} | .linux.cgroupsPath = "/graft-lease-cdi-" + $own + "-" + $name' "$@")"
}
# as_engine NAME DEVICE: what an engine makes of nvidia.com/lease=DEVICE.
as_engine() {
  lease_bundle "$1" "$(read_spec "${spec%.yaml}.lease.yaml" | jq -r --arg device "$2" '
    ([.containerEdits, (.devices[] | select(.name == $device).containerEdits)] | map(select(.)) ) as $edits |
    ".process.env += " + ($edits | map(.env // []) | add | tojson) + " | .hooks.createRuntime += " + ($edits | map(.hooks // []) | add | map(del(.hookName)) | tojson)')"
}
# create NAME RUNTIME [OPTION...]
create() {
  on_host env "NVIDIA_CTK_CONFIG_FILE_PATH=$config" "$2" --root "$work/runc" create --bundle "$work/bundle-$1" --pid-file "$work/$1.pid" "$1" </dev/null >"$work/$1.out" 2>&1 3>&- 4>&-
}
gpus_of() { on_host nsenter --target "$(cat "$work/$1.pid")" --mount sh -c 'ls /dev' | grep -x 'nvidia[0-9]*' | xargs; }
delete() { on_host runc --root "$work/runc" delete --force "$1"; }

@test "the spec: one device for each number of GPUs, whose only edit is a hook" {
  generate
  [ "$(ls "$work/cdi")" = $'nvidia.lease.yaml\nnvidia.yaml' ]
  [ "$(grep -c -e '-hook.*lease' -e 'kind:.*lease' "$spec")" = 0 ]
  read_spec "$work/cdi/nvidia.lease.yaml" >"$work/spec.json"
  jq -e '.cdiVersion == "0.5.0" and .kind == "nvidia.com/lease" and .containerEdits == {env: ["NVIDIA_VISIBLE_DEVICES=void"]} and
    [.devices[].name] == ["1", "2", "3", "4", "5", "6", "7", "8"] and all(.devices[].containerEdits; keys == ["hooks"] and (.hooks | length) == 1)' "$work/spec.json"
  jq -e --arg hook "$programs/nvidia-container-runtime-hook" --arg config "$config" '.devices[1].containerEdits.hooks[0] == {hookName: "createRuntime", path: $hook,
    args: ["nvidia-container-runtime-hook", "--config", $config, "lease", "--count", "2"], env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}' "$work/spec.json"
  ctk cdi validate --spec-dir "$work/cdi"
  ctk cdi list --spec-dir "$work/cdi" | grep -qx nvidia.com/lease=8
  # What is not asked for is not made.
  ctk cdi generate --output "$work/other/nvidia.yaml"
  [ "$(ls "$work/other")" = nvidia.yaml ]
}

@test "refresh: the spec of leases is made again with the other one" {
  generate
  ctk cdi refresh --check --spec-dir "$work/cdi"
  sed -i 's/--count/--other/' "$work/cdi/nvidia.lease.yaml"
  run ctk cdi refresh --spec-dir "$work/cdi"
  [ "$status" = 0 ]
  [ "$output" = "$work/cdi/nvidia.lease.yaml" ]
  grep -q -e --count "$work/cdi/nvidia.lease.yaml"
  rm "$work/cdi/nvidia.lease.yaml"
  [ "$(ctk cdi refresh --spec-dir "$work/cdi")" = "$work/cdi/nvidia.lease.yaml" ]
}

@test "what cannot be described: other modes, no hooks, a relative configuration, no hook program" {
  run ctk cdi generate --leases --mode management
  [ "$status" = 1 ]
  [[ $output == *"--leases needs mode nvml, and the mode is management. "* ]] || die "$output"
  run ctk cdi generate --leases --no-hooks
  [ "$status" = 1 ]
  [[ $output == *"--leases and --no-hooks cannot be used together. "* ]] || die "$output"
  run on_host "$programs/nvidia-ctk" --config config.toml cdi generate --leases
  [ "$status" = 1 ]
  [[ $output == *"--config must be an absolute path with --leases: 'config.toml'. "* ]] || die "$output"
  run on_host "$programs/nvidia-ctk" cdi generate --leases --nvidia-cdi-hook-path /opt/nowhere/nvidia-cdi-hook --output "$work/else.yaml"
  [ "$status" = 0 ]
  grep -q "path: $BATS_FILE_TMPDIR/bin/nvidia-container-runtime-hook" "$work/else.lease.yaml"
}

@test "runc alone: two containers with nvidia.com/lease=2 have four GPUs, and leave them" {
  generate
  as_engine a 2
  as_engine b 2
  as_engine c 5
  create a runc || die "$(cat "$work/a.out")"
  create b runc || die "$(cat "$work/b.out")"
  becomes_held 4
  [ "$(printf '%s\n' "$(gpus_of a)" "$(gpus_of b)" | tr ' ' '\n' | sort -u | wc -l)" = 4 ]
  on_host nsenter --target "$(cat "$work/a.pid")" --mount sh -c 'ls /usr/bin/nvidia-smi' >/dev/null
  # The rules of its cgroup are those GPUs' as well.
  [ "$(jq -r '.holder.kind + " " + (.holder.cgroup | sub(".*graft"; "graft"))' "$work"/leases/held/* | sort)" = "cgroup graft-lease-cdi-$$-a"$'\n'"cgroup graft-lease-cdi-$$-b" ]
  create c runc && die "it has started"
  grep -q "lease: 5 GPUs were asked for, 4 of 8 are free" "$work/c.out" || die "$(cat "$work/c.out")"
  grep -q "Held: GPU .* by uid 0 (container graft-lease-, " "$work/c.out" || die "$(cat "$work/c.out")"
  delete a
  becomes_held 2
  delete b
  becomes_held 0
}

@test "our runtime: the engine's edits, and names that it resolves itself" {
  generate
  as_engine a 2
  create a "$programs/nvidia-container-runtime" || die "$(cat "$work/a.out")"
  becomes_held 2
  lease_bundle b '.process.env += ["NVIDIA_VISIBLE_DEVICES=nvidia.com/lease=3"]'
  sed -i 's/^runtimes.*/&\nmodes.cdi.allowed-envvar-kinds = ["nvidia.com\/lease"]/' "$config"
  create b "$programs/nvidia-container-runtime" || die "$(cat "$work/b.out")"
  becomes_held 5
  [ "$(printf '%s\n' "$(gpus_of a)" "$(gpus_of b)" | tr ' ' '\n' | sort -u | wc -l)" = 5 ]
}

@test "a spec by hand: constraints; what cannot be read gives no GPU; leases that are off" {
  generate
  sed -i 's/ --count$/ --claim/; s/- "2"$/- any;not=0;1;2/' "$work/cdi/nvidia.lease.yaml"
  as_engine a 2
  create a runc || die "$(cat "$work/a.out")"
  [ "$(gpus_of a)" = nvidia3 ]
  delete a
  sed -i 's/- any;not=0;1;2/- GPU-1/' "$work/cdi/nvidia.lease.yaml"
  as_engine b 2
  create b runc && die "it has started"
  grep -qF "'GPU-1' is not a claim; Write 'any:2' or 'mig:1g.10gb', and constraints after it." "$work/b.out" || die "$(cat "$work/b.out")"
  sed -i 's/^mode = "on"/mode = "off"/' "$config"
  as_engine c 1
  create c runc && die "it has started"
  grep -qF "nvidia-container-runtime-hook: leases are off in $config; Run 'nvidia-ctk config --in-place --set graft.leases.mode=on'." "$work/c.out" || die "$(cat "$work/c.out")"
  run "$hook" lease --count 1 --claim any
  [ "$status" = 2 ]
  [ "${lines[0]}" = "--count and --claim cannot be used together" ]
  run "$hook" lease --help
  [ "$status" = 0 ]
  [ "${lines[0]}" = "Usage: nvidia-container-runtime-hook lease [OPTION...]" ]
}
