# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk cdi refresh: specs are made on one simulated host and refreshed on another one, like a host after an update, a MIG
# command or new hardware. Needs root, for the simulated hosts.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  work=$BATS_TEST_TMPDIR
  [ "$(id -u)" -eq 0 ] || { echo "the integration tests need root" >&2; return 1; }
  chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.."
  cd "$work"
  mkdir bin etc run
  install -m 0755 "$build/src/cli/ctk/nvidia-ctk" "$build/src/cli/runtime/graft-nvml" "$build/src/cli/cdi_hook/nvidia-cdi-hook" bin
  topology old
  topology new 's/550.54.14/560.35.03/'
  faults=()
}

# topology NAME [SED-SCRIPT]: the lab, changed. The GPUs keep their UUIDs: those come from its name and their places.
topology() {
  sed "${2:-}" >"$1.yaml" <<'YAML'
name: lab
driver: 550.54.14
cuda: "12.4"
files: [base, video]
gpus:
  - model: A100-SXM4-40GB
    bus-ids: ["0000:07:00.0"]
  - model: A100-SXM4-40GB
    bus-ids: ["0000:0f:00.0"]
    mig: [3g.20gb, 2g.10gb]
YAML
}

# ctk TOPOLOGY WORD...: nvidia-ctk on that host.
ctk() {
  local host=$1
  shift
  "$build/sim/graft-sim" run --topology "$work/$host.yaml" "${faults[@]}" -- env -C "$work" PATH="$work/bin:$PATH" \
    NVIDIA_CTK_CONFIG_FILE_PATH=/nonexistent NVIDIA_CTK_CDI_SPEC_DIRS="$work/etc,$work/run" "${variables[@]}" \
    nvidia-ctk "$@"
}

# refresh TOPOLOGY WORD...: what it prints is in $output, its log in $stderr.
refresh() {
  local want=$1 host=$2
  shift 2
  run "$want" --separate-stderr ctk "$host" cdi refresh "$@"
  stderr=$(grep -v 'driver of this host is simulated' <<<"$stderr" || true)
}

says() {
  [[ $stderr == *"$1"* ]] || { echo "stderr: $stderr"; return 1; }
}

identity() { stat -c '%i %Y' "$@"; }

@test "what fits is not touched" {
  ctk old cdi generate --output "$work/run/nvidia.yaml"
  identity run/nvidia.yaml >before
  refresh -0 old
  [ -z "$output" ]
  says "level=info msg=\"CDI spec $work/run/nvidia.yaml is up to date\""
  refresh -0 old --check --exit-code
  [ -z "$output" ]
  # Another boot of the same host is no reason.
  grep -qE 'boot-id[=:]' run/nvidia.yaml
  sed -i -E 's/(boot-id[=:] *)[0-9a-f]{8}/\100000000/' run/nvidia.yaml
  identity run/nvidia.yaml >before
  refresh -0 old --exit-code
  [ -z "$output" ]
  identity run/nvidia.yaml | diff - before
}

@test "another driver: told, then mended; the exit status says so where it is asked to" {
  ctk old cdi generate --output "$work/run/nvidia.yaml"
  cp run/nvidia.yaml before
  local why="CDI spec $work/run/nvidia.yaml is stale: it was made for driver 550.54.14, and this host has 560.35.03" option
  for option in --check --dry-run; do
    refresh -2 new "$option"
    [ "$output" = "$work/run/nvidia.yaml" ]
    says "$why"
    cmp run/nvidia.yaml before
  done
  refresh -0 new
  [ "$output" = "$work/run/nvidia.yaml" ]
  says "$why"
  says "Wrote CDI spec $work/run/nvidia.yaml"
  grep -q 'libcuda.so.560.35.03' run/nvidia.yaml
  run -1 grep -q '550.54.14' run/nvidia.yaml
  [ "$(ls -A run)" = nvidia.yaml ]
  # It is what generate makes there.
  ctk new cdi generate --output "$work/fresh.yaml"
  cmp run/nvidia.yaml fresh.yaml
  refresh -0 new --check
  refresh -2 old --exit-code
  [ "$output" = "$work/run/nvidia.yaml" ]
}

@test "GPUs and MIG instances come and go" {
  topology split 's/3g.20gb, 2g.10gb/1g.5gb, 2g.10gb/'
  topology whole '/mig:/d'
  head -n -2 whole.yaml >lost.yaml
  topology third '$a\  - model: A100-SXM4-40GB\n    bus-ids: ["0000:47:00.0"]'
  ctk old cdi generate --output "$work/run/nvidia.yaml"
  refresh -2 split --check
  says 'is stale: the MIG devices of the GPU at 00000000:0f:00.0 have changed'
  refresh -2 whole --check
  says 'is stale: the MIG devices of the GPU at 00000000:0f:00.0 have changed'
  refresh -2 third --check
  says 'is stale: the GPU at 00000000:47:00.0 is new'
  refresh -2 lost --check
  says 'is stale: the GPU at 00000000:0f:00.0 is no longer there'
  refresh -0 third
  run -0 --separate-stderr ctk third cdi list
  [[ $output == *nvidia.com/gpu=2* ]]
  refresh -0 lost
  run -0 --separate-stderr ctk lost cdi list
  [[ $output != *nvidia.com/gpu=2* && $output != *nvidia.com/gpu=1:* ]]
}

@test "a library that came or went is seen as well" {
  ctk old cdi generate --output "$work/run/nvidia.yaml"
  faults=(--fault missing=libnvidia-encode.so.1)
  refresh -0 old
  [ "$output" = "$work/run/nvidia.yaml" ]
  says 'is stale: what containers get from it has changed'
  run -1 grep -q libnvidia-encode run/nvidia.yaml
  faults=()
  refresh -0 old
  grep -q libnvidia-encode run/nvidia.yaml
}

@test "each spec keeps the options that it was made with, variables or not" {
  ctk old cdi generate --output "$work/etc/a.json" --class video --device-name-strategy uuid --driver-capabilities=utility \
    --nvidia-cdi-hook-path "/opt/a b;%/hook"
  variables=(NVIDIA_CTK_CDI_GENERATE_CLASS=b NVIDIA_CTK_CDI_GENERATE_NO_ALL_DEVICE=)
  ctk old cdi generate --output "$work/run/b.yaml"
  variables=(NVIDIA_CTK_CDI_GENERATE_CLASS=wrong NVIDIA_CTK_CDI_GENERATE_NO_ALL_DEVICE=true)
  ctk old cdi list 2>/dev/null >before
  grep -q nvidia.com/video=GPU- before && grep -qx nvidia.com/b=all before
  refresh -0 new
  [ "$output" = "$work/etc/a.json"$'\n'"$work/run/b.yaml" ]
  ctk new cdi list 2>/dev/null | cmp - before
  jq -e '[.containerEdits.hooks[].path] | unique == ["/opt/a b;%/hook"]' etc/a.json
  run -1 grep -q libcuda etc/a.json
  refresh -0 new --check
}

@test "--output: a spec that there has to be, with the options of now" {
  variables=(NVIDIA_CTK_CDI_OUTPUT_FILE_PATH="$work/run/nvidia.yaml" NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES=index)
  refresh -2 old --check
  says "CDI spec $work/run/nvidia.yaml is stale: there is none"
  [ ! -e run/nvidia.yaml ]
  refresh -0 old
  [ "$output" = "$work/run/nvidia.yaml" ]
  [ "$(stat -c %a run/nvidia.yaml)" = 644 ]
  run -1 grep -q 'GPU-' <(ctk old cdi list 2>/dev/null)
  refresh -0 old --exit-code
  variables[1]=NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES=uuid,index
  refresh -2 old --exit-code
  says 'is stale: it was made with different options'
  grep -q 'GPU-' <(ctk old cdi list 2>/dev/null)
  # The same file by another name is one spec.
  ln -s run other
  variables=(NVIDIA_CTK_CDI_OUTPUT_FILE_PATH="$work/other/nvidia.yaml")
  refresh -0 old
  refresh -0 old --exit-code
  # What is no spec at all is replaced; it bears the name.
  echo nonsense >run/nvidia.yaml
  refresh -2 old --exit-code
  [[ $output == "$work/other/nvidia.yaml" ]]
  says 'is stale: '
}

@test "what cannot be made stays, and does not keep the others from it" {
  ctk old cdi generate --output "$work/etc/a.yaml"
  cp etc/a.yaml before
  faults=(--fault missing=/proc/driver/nvidia --fault nvml-init-fail=9)
  refresh -1 old
  [ -z "$output" ]
  says "level=error msg=\"CDI spec $work/etc/a.yaml is left unchanged"
  cmp etc/a.yaml before
  faults=()
  ctk old cdi generate --output "$work/etc/b.yaml" --class b --device-id 1:0
  topology whole '/mig:/d'
  refresh -1 whole
  [ "$output" = "$work/etc/a.yaml" ]
  says "CDI spec $work/etc/b.yaml is left unchanged"
}

@test "specs of others, and those that do not say how they were made" {
  printf 'cdiVersion: 0.5.0\nkind: v.com/c\ndevices: [{name: a, containerEdits: {env: [A=1]}}]\n' >etc/other.yaml
  echo nonsense >etc/broken.yaml
  ctk old cdi generate --provenance none --output "$work/run/silent.yaml"
  identity etc/* run/* >before
  refresh -0 new --exit-code
  [ -z "$output" ]
  says 'skipping CDI spec: '
  says 'No CDI spec records how it was made; there is nothing to refresh'
  identity etc/* run/* | diff - before
}

@test "annotations do as well; files that are made together are refreshed together" {
  cp "$top/sim/topologies/gb200.yaml" grace.yaml
  sed 's/^driver:.*/driver: 580.65.06/' grace.yaml >later.yaml
  ctk grace cdi generate --provenance annotations --feature-flag enable-coherent-annotations --output "$work/run/nvidia.yaml"
  [ -e run/nvidia.coherent.yaml ]
  grep -q 'graft.flags: ' run/nvidia.yaml
  local files
  files=$(ls "$work"/run/*)
  refresh -2 later --exit-code
  [ "$(sort <<<"$output")" = "$(sort <<<"$files")" ]
  [ "$(ls "$work"/run/*)" = "$files" ]
  refresh -0 later --check
  # GPUs of the other kind: no engine shall find the old ones.
  cp "$top/sim/topologies/dgx-h100.yaml" other.yaml
  refresh -2 other --exit-code
  says 'run/nvidia.coherent.yaml is stale: this host no longer has such GPUs'
  [ "$(ls run)" = $'nvidia.noncoherent.yaml\nnvidia.yaml' ]
  refresh -0 other --check
}

@test "a place that cannot be written, a wrong flag" {
  ctk old cdi generate --output "$work/run/nvidia.yaml"
  cp run/nvidia.yaml before
  run -1 --separate-stderr ctk new cdi refresh --strong
  says 'flag provided but not defined: -strong'
  variables=(NVIDIA_CTK_CDI_OUTPUT_FILE_PATH="$work/run/nvidia.yaml/x.yaml")
  refresh -1 old
  says 'level=error'
  cmp run/nvidia.yaml before
}

# old_spec FILE [JQ-FILTER]: what an nvidia-ctk wrote that gave its hooks no environment.
old_spec() {
  jq -n --arg bin "$work/bin" '
    def hook(words): {hookName: "createContainer", path: "\($bin)/nvidia-ctk", args: (["nvidia-ctk", "hook"] + words)};
    {cdiVersion: "0.5.0", kind: "nvidia.com/gpu",
     devices: [{name: "9", containerEdits: {deviceNodes: [{path: "/dev/nvidia0"}], hooks: [hook(["create-symlinks", "--link", "a::/b"])]}}],
     containerEdits: {env: ["NVIDIA_VISIBLE_DEVICES=void"], hooks: [hook(["update-ldcache", "--folder", "/x"])]}}' |
    jq "${2:-.}" >"$1"
}

@test "hooks without an environment: an nvidia-ctk's spec is mended, others are named" {
  old_spec etc/old.json
  jq '.kind = "nvidia.com/yaml"' etc/old.json >run/old.yaml # JSON is YAML
  old_spec etc/foreign.json '.kind = "vendor.example/gpu"'
  old_spec etc/changed.json '.kind = "nvidia.com/changed" | .containerEdits.hooks += [{hookName: "createContainer", path: "/opt/own"}]'
  { echo '# ours' && printf 'cdiVersion: 0.5.0\nkind: nvidia.com/noted\ndevices: [{name: a, containerEdits: {hooks: [{hookName: createContainer, path: %s/bin/nvidia-ctk, args: [nvidia-ctk, hook, chmod]}]}}]\ncontainerEdits: {env: [NVIDIA_VISIBLE_DEVICES=void]}\n' "$work"; } >etc/noted.yaml
  mkdir kept && cp etc/* run/* kept
  refresh -2 old --check
  [ "$output" = "$work/etc/old.json"$'\n'"$work/run/old.yaml" ]
  says "CDI spec $work/etc/old.json has hooks without an environment ($work/bin/nvidia-ctk)"
  says "CDI spec $work/etc/foreign.json has hooks without an environment ($work/bin/nvidia-ctk)"
  says "It is left alone, as nvidia-ctk did not write it"
  says "It is left alone, as it has comments, which would be lost"
  says "CDI spec $work/etc/changed.json has"
  for name in old foreign changed; do cmp "etc/$name.json" "kept/$name.json"; done
  refresh -0 old
  [ "$output" = "$work/etc/old.json"$'\n'"$work/run/old.yaml" ]
  for name in foreign.json changed.json noted.yaml; do cmp "etc/$name" "kept/$name"; done
  jq -e --arg hook "$work/bin/nvidia-cdi-hook" '[.devices[0].containerEdits, .containerEdits | .hooks[]] == [
    {hookName: "createContainer", path: $hook, args: ["nvidia-cdi-hook", "create-symlinks", "--link", "a::/b"], env: ["NVIDIA_CTK_DEBUG=false"]},
    {hookName: "createContainer", path: $hook, args: ["nvidia-cdi-hook", "update-ldcache", "--folder", "/x"], env: ["NVIDIA_CTK_DEBUG=false"]}]' etc/old.json
  # Nothing else is another thing now.
  diff <(jq -S 'del(.. | .hooks?)' etc/old.json) <(jq -S 'del(.. | .hooks?)' kept/old.json)
  [ "$(grep -c 'NVIDIA_CTK_DEBUG=false' run/old.yaml)" -eq 2 ]
  identity etc/* run/* >before
  refresh -0 old --exit-code
  [ -z "$output" ]
  identity etc/* run/* | diff - before
  # Where nvidia-cdi-hook is not beside it, nvidia-ctk stays, and is safe by the list.
  rm etc/* run/* bin/nvidia-cdi-hook
  old_spec etc/old.json
  refresh -2 old --exit-code
  jq -e --arg hook "$work/bin/nvidia-ctk" '.containerEdits.hooks == [
    {hookName: "createContainer", path: $hook, args: ["nvidia-ctk", "hook", "update-ldcache", "--folder", "/x"], env: ["NVIDIA_CTK_DEBUG=false"]}]' etc/old.json
}
