# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk cdi generate: every flag and mode on simulated hosts, refusals in their order, files, faults of the host, and containers made with the result.

load lib.bash

setup_file() {
  start_host dgx-h100
  install_cli runtime/nvidia-container-runtime cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  # Whatever engines this machine has; what they change is asked for by "--cdi-version=auto".
  export NVIDIA_CTK_CDI_GENERATE_CDI_VERSION=0.7.0
  specs=$work/cdi
  mkdir -p "$specs"
  cat >"$work/config.toml" <<TOML
[nvidia-container-runtime]
debug = "$work/runtime.log"
log-level = "debug"
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$specs"]
TOML
}
teardown() {
  test_teardown
  stop_other_host
}

hook_program=/usr/bin/nvidia-cdi-hook
libraries=/usr/lib/x86_64-linux-gnu
version=550.54.14

# in_host COMMAND...: on the file's host, or on the topology that $topology names.
in_host() {
  local rc=0
  if [ -z "${topology-}" ]; then
    on_host "$@"
    return
  fi
  "$sim" run --topology "$topology" "${faults[@]}" -- "$@" 2>"$work/all-said" || rc=$?
  grep -v '^graft-sim:' "$work/all-said" >&2 || true
  return "$rc"
}

faults=()

# generate WORD...: what was written to stdout is in $work/stdout, what was said on stderr in $said, the exit status in $status.
generate() {
  status=0
  # The program's own words alone.
  in_host "$programs/nvidia-ctk" cdi generate --nvidia-cdi-hook-path="$hook_program" "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
  sed 's/^time="[^"]*" //' "$work/stderr" | grep -v 'the driver of this host is simulated' >"$work/said" || true
  said=$(cat "$work/said")
}

# spec_of WORD...: generate must do; the spec, the first of them, is in $work/spec: one line of JSON.
spec_of() {
  generate "$@"
  if [ "$status" -ne 0 ]; then
    say "$said"
    return 1
  fi
  head -n 1 "$work/stdout" >"$work/spec"
}

# check FILTER: of the spec. Its values on failure.
check() {
  jq -e "$@" "$work/spec" >/dev/null && return
  jq -c "${@: -1}" "$work/spec"
  jq -c '{cdiVersion, kind, devices: [.devices[].name], containerEdits: (.containerEdits | {env, deviceNodes, hooks: [.hooks[]?.args]})}' "$work/spec"
  return 1
}

# refuse TEXT WORD...: fails with that text, and writes nothing to stdout.
refuse() {
  local text=$1
  shift
  generate "$@"
  [ "$status" -eq 1 ] || die "status $status: $said" || return
  [ ! -s "$work/stdout" ] || die "stdout: $(cat "$work/stdout")" || return
  [[ $said == *"$text"* ]] || die "$said"
}

# --- what a spec of GPUs has ---

@test "all GPUs by index and UUID, what they have in common once, and a device for all" {
  spec_of --format=json
  check '.kind == "nvidia.com/gpu" and .cdiVersion == "0.7.0"'
  check '[.devices[].name] | length == 17 and (. == sort) and ([.[] | select(startswith("GPU-"))] | length == 8) and .[-1] == "all"'
  check '.devices[0].containerEdits.deviceNodes | map(.path) == ["/dev/nvidia0", "/dev/dri/card0", "/dev/dri/renderD128"]'
  check '.devices[-1].containerEdits.deviceNodes | map(.path) | length == 24 and unique == (. | sort)'
  check '.containerEdits.deviceNodes | map(.path) == ["/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidiactl"]'
  check --arg lib "$libraries" '.containerEdits.env == ["NVIDIA_CTK_LIBCUDA_DIR=" + $lib, "NVIDIA_VISIBLE_DEVICES=void"]'
  check '[.. | .deviceNodes? // empty | .[]] | all(has("major") or has("minor") or has("type") or has("uid") | not)'
  check '.containerEdits.mounts | all(.options == ["ro", "nosuid", "nodev", "rbind", "rprivate"] or .options == ["nosuid", "nodev", "rbind", "rprivate", "noexec"])'
  check --arg v "$version" --arg lib "$libraries" '.containerEdits.mounts | any(.containerPath == "\($lib)/libcuda.so.\($v)" and .hostPath == .containerPath)'
  check '.containerEdits.mounts | map(.containerPath) | (. == (sort_by([([match("/"; "g")] | length), .])))'
}

@test "hooks have the names and arguments that other toolkits know" {
  spec_of --format=json --ldconfig-path=/sbin/ldconfig
  check '.containerEdits.hooks | map(.args[1]) == ["create-symlinks", "enable-cuda-compat", "update-ldcache",
    "disable-device-node-modification", "update-application-profile"]'
  check --arg hook "$hook_program" '[.. | .hooks? // empty | .[]] | all(.hookName == "createContainer" and .path == $hook and .args[0] == "nvidia-cdi-hook" and
    .env[0] == "NVIDIA_CTK_DEBUG=false")'
  check --arg v "$version" '.containerEdits.hooks[1].args[2:] == ["--host-driver-version=\($v)"]'
  check --arg lib "$libraries" '.containerEdits.hooks[2].args[2:6] == ["--ldconfig-path", "/sbin/ldconfig", "--folder", $lib]'
  check --arg lib "$libraries" '.containerEdits.hooks[0].args | index("libcuda.so.1::\($lib)/libcuda.so")'
  check '.devices[0].containerEdits.hooks | map(.args[1:]) == [["create-symlinks", "--link", "../card0::/dev/dri/by-path/pci-0000:1b:00.0-card",
    "--link", "../renderD128::/dev/dri/by-path/pci-0000:1b:00.0-render"]]'
  hook_program=/opt/nvidia-ctk
  spec_of --format=json
  check '[.. | .hooks? // empty | .[]] | all(.path == "/opt/nvidia-ctk" and .args[0:2] == ["nvidia-ctk", "hook"])'
}

@test "hooks are switched off and on; without any the mounts stay" {
  spec_of --format=json --disable-hook=update-ldcache,create-symlinks --disable-hooks enable-cuda-compat
  check '[.. | .hooks? // empty | .[].args[1]] | unique == ["disable-device-node-modification", "update-application-profile"]'
  spec_of --format=json --disable-hook=all
  check '([.. | .hooks? // empty | .[]] == []) and (.containerEdits.mounts | length > 20)'
  spec_of --format=json --disable-hook=all --enable-hook=update-ldcache
  check '[.. | .hooks? // empty | .[].args[1]] == ["update-ldcache"]'
  spec_of --format=json --disable-hook=chmod --enable-hook=chmod --device-id=0
  check '.devices[0].containerEdits.hooks | map(.args[1:])[1] == ["chmod", "--mode", "755", "--path", "/dev/dri"]'
  spec_of --format=json --disable-hook=of-the-future
  [[ $said == *"there is no hook 'of-the-future'"* ]]
}

@test "devices by ids of every form, names by every strategy" {
  local uuid
  uuid=$(on_host nvidia-smi -L | sed -n 's/^GPU 2: .*UUID: \(.*\))/\1/p')
  spec_of --format=json --device-id=1 --device-id="$uuid,0000:1b:00.0" --device-name-strategy=index
  check '[.devices[].name] == ["0", "1", "2", "all"]'
  check '.devices[-1].containerEdits.deviceNodes | map(.path) | map(select(startswith("/dev/nvidia"))) == ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"]'
  spec_of --format=json --devices=3 --device-name-strategy=type-index,index,uuid
  check '[.devices[].name] | .[0] == "3" and (.[1] | startswith("GPU-")) and .[2:] == ["all", "gpu3"]'
  spec_of --format=json --device=0,all --no-all-device
  check '[.devices[].name] | length == 16 and index("all") == null'
  spec_of --format=json --device-id=none
  check '.devices == [{name: "none", containerEdits: {env: ["NVCT_EMPTY_DEVICE="]}}]'
  [[ $said == *"Disabling generation of 'all' device"* ]]
  refuse 'failed to generate CDI spec: failed to create device CDI specs: failed to construct device spec generators: failed to get device handle from index: ERROR_INVALID_ARGUMENT' --device-id=99
  refuse 'identifier is not a valid UUID or index: \"bogus\"' --device-id=bogus
  refuse 'failed to get device handle from UUID: ERROR_NOT_FOUND' --device-id=GPU-0
}

@test "capabilities limit what containers get; 32-bit libraries are asked for" {
  spec_of --format=json --driver-capabilities=utility
  check '(.containerEdits.mounts | map(.containerPath) | any(test("libnvidia-ml")) and (any(test("libcuda.so")) | not)) and
    (.containerEdits.deviceNodes | map(.path) == ["/dev/nvidiactl"]) and ([.. | .path? // empty | strings | select(startswith("/dev/dri"))] == [])'
  spec_of --format=json --driver-capabilities=compute,utility
  check '.containerEdits.mounts | map(.containerPath) | any(test("libcuda.so")) and (any(test("libGLX_nvidia|libnvidia-encode")) | not)'
  refuse 'unsupported capability: flying' --driver-capabilities=flying
  topology=geforce-laptop
  spec_of --format=json
  check '[.containerEdits.mounts[].containerPath | select(startswith("/usr/lib/i386"))] == []'
  spec_of --format=json --compat32
  check '[.containerEdits.mounts[].containerPath | select(startswith("/usr/lib/i386"))] | length > 2'
}

# --- refusals ---

@test "what is wrong with the flags is told in the usual order, before the host is looked at" {
  refuse 'invalid output format: xml' --format=xml --mode=odd
  refuse 'invalid discovery mode: odd' --mode=odd --device-name-strategy=odd
  refuse 'invalid device name strategy: odd' --device-name-strategy=index,odd --vendor=1
  refuse 'invalid CDI vendor name: invalid vendor. \"1\", should start with letter' --vendor=1 --class=1
  refuse 'invalid CDI class name: invalid class. \"1\", should start with letter' --class=1 --enable-hook=all
  refuse 'enabling all hooks is not supported' --enable-hook=all
  refuse 'invalid --provenance value: odd' --provenance=odd --cdi-version=odd
  refuse 'invalid --cdi-version value: 0.8.0' --cdi-version=0.8.0
  refuse "is not an absolute path" --library-search-path=lib
  generate --odd
  [ "$status" -eq 1 ]
  [[ $said == *"flag provided but not defined: -odd"* ]]
}

@test "flags come from variables, and win over them" {
  NVIDIA_CTK_CDI_GENERATE_DEVICE_IDS=0,1 NVIDIA_CTK_CDI_GENERATE_CLASS=mine NVIDIA_CTK_CDI_GENERATE_OUTPUT_FORMAT=json \
    NVIDIA_CTK_CDI_GENERATE_NO_ALL_DEVICE=true NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES=index \
    spec_of --vendor=example.com
  check '.kind == "example.com/mine" and ([.devices[].name] == ["0", "1"])'
  NVIDIA_CTK_CDI_GENERATE_CLASS=mine NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=$specs/from-variable.json spec_of --class=yours
  [ "$(jq -r .kind "$specs/from-variable.json")" = nvidia.com/yours ]
}

@test "XDG_DATA_DIRS of the caller does not count" {
  spec_of --format=json
  check '[.containerEdits.mounts[].hostPath] | any(startswith("/usr/share/vulkan/"))'
  XDG_DATA_DIRS=/nowhere spec_of --format=json
  check '[.containerEdits.mounts[].hostPath] | any(startswith("/usr/share/vulkan/"))'
}

# --- files ---

@test "a file's name says its format; it is readable for all, new each time, and the same for the same host" {
  local inode
  generate --output="$specs/a.json"
  jq -e .cdiVersion "$specs/a.json"
  [ "$(stat -c %a "$specs/a.json")" = 644 ]
  inode=$(stat -c %i "$specs/a.json")
  cp "$specs/a.json" "$work/before"
  generate --output="$specs/a.json"
  cmp "$specs/a.json" "$work/before"
  [ "$(stat -c %i "$specs/a.json")" != "$inode" ]
  [ "$(ls -A "$specs")" = a.json ]
  generate --output="$specs/new/b.yaml" --format=yaml
  [ "$(head -n 1 "$specs/new/b.yaml")" = --- ]
  generate --output="$specs/c"
  [ "$(head -n 1 "$specs/c.yaml")" = --- ]
  generate --output="$specs/c" --format=JSON
  jq -e .kind "$specs/c.json"
  (cd "$specs" && generate --output=d.yaml)
  [ -s "$specs/d.yaml" ]
}

@test "names that readers of specs pass over are corrected, and a format that does not fit is told" {
  generate --output="$specs/x.yml"
  [ -s "$specs/x.yaml" ] && [ ! -e "$specs/x.yml" ]
  [[ $said == *"specs are read from *.json and *.yaml only: writing $specs/x.yaml"* ]]
  generate --output="$specs/y.JSON"
  jq -e .kind "$specs/y.json"
  generate --output="$specs/z.json" --format=yaml
  jq -e .kind "$specs/z.json"
  [[ $said == *"--format=yaml contradicts the name $specs/z.json, by which engines read the file"* ]]
}

@test "stdout has the spec alone; the layout is that of other toolkits" {
  generate --device-id=0 --device-name-strategy=index
  [ "$(grep -v graft "$work/stdout" | head -n 8)" = "---
cdiVersion: 0.7.0
kind: nvidia.com/gpu
annotations:
devices:
    - name: \"0\"
      containerEdits:
        deviceNodes:" ]
  [[ $said == *'level=info msg="Generated CDI spec with version 0.7.0"'* ]]
}

# --- where it is from ---

@test "a spec says what it was made from: in annotations where readers know them, else in a hook" {
  local boot
  boot=$(cat /proc/sys/kernel/random/boot_id)
  spec_of --format=json
  check --arg boot "$boot" --arg v "$version" '.annotations | ."graft.boot-id" == $boot and ."graft.driver-version" == $v and
    (."graft.gpus" | split(",") | length == 8) and ."graft.mig" == ""'
  # Without groups of nodes 0.5.0 is enough, and stays so: Debian 12's Podman takes nothing newer.
  spec_of --format=json --feature-flag=no-additional-gids-for-device-nodes
  check --arg v "$version" '.cdiVersion == "0.5.0" and (has("annotations") | not) and
    (.containerEdits.hooks[0].env | length == 2 and (.[1] | startswith("GRAFT_MADE_FROM=boot-id=")) and (.[1] | contains("driver-version=" + $v)))'
  spec_of --format=json --feature-flag=no-additional-gids-for-device-nodes --provenance=annotations
  check '.cdiVersion == "0.6.0" and has("annotations")'
  spec_of --format=json --provenance=none
  check '(has("annotations") | not) and ([.. | .env? // empty | .[] | select(startswith("GRAFT"))] == [])'
}

# --- for whom it is ---

@test "the spec has no newer version than the oldest engine of the host reads, or says so" {
  command -v podman >/dev/null
  # Debian 12's Podman; another one in its place; none.
  spec_of --format=json --cdi-version=auto
  check '.cdiVersion == "0.5.0" and ([.. | .additionalGids? // empty] == [])'
  [[ $said == *'level=warning msg="podman 4.3.1 reads CDI specs up to version 0.5.0: the spec has no additionalGids, so users other than root need '"'--group-add'"' for nodes of groups (/dev/dri); --cdi-version=0.7.0 keeps them"'* ]]
  spec_of --format=json --cdi-version=auto --provenance=annotations
  check '.cdiVersion == "0.7.0" and ([.. | .additionalGids? // empty] != [])'
  [[ $said == *'level=warning msg="the spec needs CDI version 0.7.0: podman 4.3.1, which reads up to 0.5.0, will ignore it"'* ]]
  # shellcheck disable=SC2016
  in_host sh -ec '
    mkdir -p "$1/dpkg"
    sed "/^Package: podman$/,/^$/s/^Version: .*/Version: $2/" /var/lib/dpkg/status >"$1/dpkg/status"
    exec unshare --mount --propagation private -- sh -ec "mount --bind \"\$1/dpkg\" /var/lib/dpkg; shift; exec \"\$@\"" sh "$1" "$3" cdi generate --cdi-version=auto --format=json --output="$1/new.json"' \
    sh "$work" 5.4.2+ds1-2 "$programs/nvidia-ctk" 2>"$work/stderr"
  [ "$(jq -r .cdiVersion "$work/new.json")" = 0.7.0 ]
  run ! grep -E "reads CDI specs|will ignore it" "$work/stderr"
  # A host without a database of packages, where the program says what it was built with: that of the corpus has CDI library 0.6.2.
  gcc -o "$work/podman" -x c - <<<'__attribute__((section(".go.buildinfo"), used)) static const char info[] = { '"$(od -An -v -tu1 "$BATS_TEST_DIRNAME/../fuzz/corpus/go_build/replaced" | sed 's/\([0-9]\+\)/(char)\1,/g')"' }; int main(void) { return 0; }'
  # shellcheck disable=SC2016
  in_host sh -ec '
    mkdir -p "$1/empty"
    exec unshare --mount --propagation private -- sh -ec "mount --bind \"\$1/empty\" /var/lib/dpkg; mount --bind \"\$1/podman\" /usr/bin/podman; shift; exec \"\$@\"" sh "$1" "$2" cdi generate --cdi-version=auto --format=json --output="$1/library.json"' \
    sh "$work" "$programs/nvidia-ctk" 2>"$work/stderr"
  [ "$(jq -r .cdiVersion "$work/library.json")" = 0.5.0 ]
  grep -F 'podman with CDI library 0.6.2 reads CDI specs up to version 0.6.0: the spec has no additionalGids' "$work/stderr"
}

@test "--cdi-version: what an older version lacks is left out, and what cannot be is refused" {
  spec_of --format=json --cdi-version=0.7.0
  check '.cdiVersion == "0.7.0"'
  spec_of --format=json --cdi-version=0.6.0
  check '.cdiVersion == "0.5.0"'
  run ! grep additionalGids <<<"$said"
  refuse 'the spec needs CDI version 0.6.0, and --cdi-version is 0.5.0' --cdi-version=0.5.0 --provenance=annotations
  refuse 'the spec needs CDI version 0.6.0, and --cdi-version is 0.5.0' --cdi-version=0.5.0 --class=a.b
}

# --- modes ---

@test "gates and channels are kinds of their own, unless flags say otherwise" {
  local mode
  for mode in gds gdrcopy mofed nvswitch; do
    spec_of --format=json --mode="$mode"
    check --arg mode "$mode" '.kind == "nvidia.com/" + $mode and ([.devices[].name] == ["all"]) and
      (.containerEdits | del(.hooks) == {env: ["NVIDIA_VISIBLE_DEVICES=void"]})'
  done
  check '.devices[0].containerEdits.deviceNodes | map(.path) | any(startswith("/dev/nvidia-nvswitch"))'
  spec_of --format=json --mode=GDS --vendor=nvidia.com --class=gpu
  check '.kind == "nvidia.com/gpu"'
  refuse 'no devices: this host has no /dev/nvidia-caps-imex-channels/channel*' --mode=imex
  topology=gb200
  spec_of --format=json --mode=imex
  check '.kind == "nvidia.com/imex-channel" and ([.devices[].name] == ["0", "1", "2", "3", "all"]) and
    .devices[1].containerEdits.deviceNodes[0].path == "/dev/nvidia-caps-imex-channels/channel1"'
  spec_of --format=json --mode=imex --device-id=channel2 --no-all-device
  check '[.devices[].name] == ["2"]'
  refuse 'invalid channel ID bogus' --mode=imex --device-id=bogus
  refuse 'invalid channel ID 1048576' --mode=imex --device-id=1048576
  refuse 'IMEX channel 5 not found at /dev/nvidia-caps-imex-channels/channel5' --mode=imex --device-id=5
  refuse 'no devices: this host has no /dev/nvidia-fs*' --mode=gds
}

@test "management: without the file of NVML" {
  other_host single --fault missing=libnvidia-ml.so.1 --fault "missing=libnvidia-ml.so.$version"
  run --separate-stderr on_host "$programs/nvidia-ctk" cdi generate --format=json --mode=management
  [ "$status" -eq 0 ] || die "$stderr"
  jq -e '[.devices[].containerEdits.deviceNodes[].path] | contains(["/dev/nvidia0", "/dev/nvidiactl"])' <<<"$output"
  run -1 --separate-stderr on_host "$programs/nvidia-ctk" cdi generate --format=json --mode=nvml
  [[ $stderr == *"libnvidia-ml.so.1: cannot open shared object file"* ]] || die "$stderr"
}

@test "management: every node of the driver, and nothing for displays" {
  spec_of --format=json --mode=management --enable-hook=chmod
  check '.kind == "management.nvidia.com/gpu" and ([.devices[].name] == ["all"])'
  check '.devices[0].containerEdits.deviceNodes | map(.path) | (contains(["/dev/nvidia0", "/dev/nvidia7", "/dev/nvidiactl", "/dev/nvidia-uvm"])) and
    (any(startswith("/dev/nvidia-fs") or startswith("/dev/nvidia-nvswitch")) | not)'
  check '.containerEdits | (has("deviceNodes") | not) and (.hooks | map(.args[1]) == ["create-symlinks", "enable-cuda-compat", "update-ldcache"]) and
    (.mounts | map(.containerPath) | any(test("libcuda.so")) and (any(startswith("/etc/")) | not))'
  spec_of --format=json --mode=management --enable-hook=disable-device-node-modification
  check '.containerEdits.hooks | map(.args[1]) | index("disable-device-node-modification")'
  topology=a100-mig
  spec_of --format=json --mode=management --enable-hook=chmod
  check '.devices[0].containerEdits | (.deviceNodes | map(.path) | any(startswith("/dev/nvidia-caps/nvidia-cap"))) and
    (.hooks | map(.args[1:]) == [["chmod", "--mode", "755", "--path", "/dev/nvidia-caps"]])'
}

@test "MIG devices by index and by the UUID that NVML alone knows; NVML is asked for nothing else" {
  local id
  topology=a100-mig
  spec_of --format=json
  check '[.devices[].name | select(startswith("MIG-"))] | length > 2'
  check '[.devices[] | select(.name | test("^[0-9]+:[0-9]+$"))] | all(.containerEdits.deviceNodes | map(.path) |
    length == 3 and (.[0] | test("^/dev/nvidia[0-9]+$")) and (.[1:] | all(startswith("/dev/nvidia-caps/nvidia-cap"))))'
  id=$(jq -r '[.devices[].name | select(test("^[0-9]+:1$"))][0]' "$work/spec")
  spec_of --format=json --device-id="$id" --no-all-device
  check --arg id "$id" '[.devices[].name] | length == 2 and .[0] == $id and (.[1] | startswith("MIG-"))'
  faults=(--fault nvml-crash)
  refuse 'failed to create CDI library' --device-id=all
  spec_of --format=json --device-name-strategy=index,type-index
  check '[.devices[].name | select(startswith("MIG-"))] == []'
  # Whole GPUs have their UUID in procfs.
  topology=single
  spec_of --format=json
  check '[.devices[].name | select(startswith("GPU-"))] | length == 1'
}

@test "specs for GPUs with coherent memory and for those without, beside the one for all" {
  topology=gb200
  spec_of --format=json --feature-flag=enable-coherent-annotations --output="$specs/nvidia.json"
  [ "$(cd "$specs" && echo *)" = "nvidia.coherent.json nvidia.json" ]
  jq -e '.kind == "nvidia.com/gpu.coherent" and ([.devices[].name] | length == 9 and .[-1] == "all") and
    ([.. | .annotations? // empty | keys[] | select(startswith("gpu."))] == [])' "$specs/nvidia.coherent.json"
  jq -e '.kind == "nvidia.com/gpu" and ([.devices[].name] | length == 9)' "$specs/nvidia.json"
  generate --feature-flag=enable-coherent-annotations
  [ "$(grep -c '^---$' "$work/stdout")" -eq 2 ]
  topology=single
  generate --feature-flag=enable-coherent-annotations --output="$specs/single.yaml"
  [ "$(cd "$specs" && echo single*)" = "single.noncoherent.yaml single.yaml" ]
}

@test "a Tegra board by its lists; names, ids, patterns, compatibility libraries" {
  topology=orin
  spec_of --format=json
  [[ $said == *"Auto-detected mode as 'csv'"* ]]
  check '[.devices[].name] == ["0", "all"] and (.devices[0].containerEdits.deviceNodes | map(.path) | index("/dev/nvmap") != null)'
  check '.containerEdits.hooks | map(.args[1]) | .[0] == "create-symlinks" and .[-1] == "update-ldcache"'
  check '.containerEdits.mounts | map(.containerPath) | index("/etc/nv_tegra_release")'
  check '.containerEdits.env == ["NVIDIA_VISIBLE_DEVICES=void"]'
  refuse 'unsupported device id: 1' --device-id=1
  refuse 'no devices' --device-name-strategy=uuid
  printf 'dev, /dev/nvmap\nsym, /usr/lib/x86_64-linux-gnu/tegra/libcuda.so\n' >"$work/my.csv"
  spec_of --format=json --csv.file="$work/my.csv"
  check '(.devices[0].containerEdits.deviceNodes | map(.path) == ["/dev/nvmap"]) and ([.containerEdits.hooks[0].args[] | select(test("::"))] | length > 0)'
  spec_of --format=json --csv.file="$work/my.csv" --csv.ignore-pattern='**/*.so'
  check '.containerEdits.mounts | map(.containerPath) == ["/etc/nv_tegra_release"]'
}

@test "WSL2: one node for all, the driver store for everybody" {
  topology=wsl2
  spec_of --format=json
  [[ $said == *"Auto-detected mode as 'wsl'"* ]]
  check '.kind == "nvidia.com/gpu" and .cdiVersion == "0.3.0" and ([.devices[].name] == ["all"]) and
    (.devices[0].containerEdits | {deviceNodes: [.deviceNodes[].path], rest: (keys - ["deviceNodes"])} == {deviceNodes: ["/dev/dxg"], rest: []})'
  check '.containerEdits.mounts | map(.containerPath) | any(startswith("/usr/lib/wsl/drivers/")) and index("/usr/bin/nvidia-smi") != null'
}

# --- other roots ---

@test "a driver container: host paths have its root, container paths and links have not" {
  topology=driver-container
  refuse 'libnvidia-ml.so.1'
  spec_of --format=json --driver-root=/run/nvidia/driver --provenance=none
  check '.containerEdits.mounts | map(select(.containerPath | test("libcuda.so"))) | length == 1 and
    .[0].hostPath == "/run/nvidia/driver" + .[0].containerPath'
  check '[.. | .args? // empty | .[] | select(test("/run/nvidia/driver"))] == []'
  check '[.devices[].containerEdits.deviceNodes[].path] | all(startswith("/dev/"))'
  printf '[nvidia-container-cli]\nroot = "/run/nvidia/driver"\n' >"$work/config.toml"
  cp "$work/spec" "$work/by-flag"
  spec_of --format=json --provenance=none
  cmp "$work/spec" "$work/by-flag"
  # Set to nothing is nothing, whatever the configuration says.
  NVIDIA_CTK_DRIVER_ROOT='' refuse 'libnvidia-ml.so.1'
  spec_of --format=json --dev-root=/
  check '[.devices[].containerEdits.deviceNodes[] | has("hostPath")] | any | not'
  # The configuration that is named instead, by a flag or a variable; the spec says so, for whoever makes it again.
  mv "$work/config.toml" "$work/other.toml"
  refuse 'libnvidia-ml.so.1'
  spec_of --format=json --provenance=none --config="$work/other.toml"
  cmp "$work/spec" "$work/by-flag"
  NVIDIA_CTK_CONFIG=$work/other.toml spec_of --format=json
  check '[.. | strings | select(contains("--config="))] | length == 1'
  refuse 'libnvidia-ml.so.1' --config="$work/nowhere.toml"
  [[ $said == *"$work/nowhere.toml does not exist: using the default driver root"* ]]
  mv "$work/other.toml" "$work/config.toml"
  refuse 'is not below the driver root /run/nvidia/driver' --library-search-path=/opt/lib
  spec_of --format=json --library-search-path=/run/nvidia/driver/usr/lib/x86_64-linux-gnu
  check '.containerEdits.mounts | map(.hostPath) | any(test("libcuda.so"))'
}

# --- hosts at fault ---

@test "a half-installed driver and a missing node are errors with a remedy, and an old spec stays" {
  echo old >"$specs/nvidia.yaml"
  topology=half-installed
  refuse 'load library failed: libnvidia-ml.so.1: cannot open shared object file' --output="$specs/nvidia.yaml"
  topology=no-driver
  refuse 'failed to generate CDI spec' --output="$specs/nvidia.yaml"
  topology=single
  faults=(--fault missing=nvidiactl)
  refuse 'device node /dev/nvidiactl is missing on the host; running nvidia-smi or nvidia-modprobe there creates the nodes' --output="$specs/nvidia.yaml"
  faults=(--fault missing=nvidia0)
  refuse 'GPU 0: device node /dev/nvidia0 is missing on the host' --output="$specs/nvidia.yaml"
  faults=(--fault nvml-mismatch)
  refuse 'driver/library version mismatch' --output="$specs/nvidia.yaml"
  [ "$(cat "$specs/nvidia.yaml")" = old ]
  faults=(--fault missing=libcuda.so.1)
  spec_of --format=json
  [[ $said == *"libcuda of this driver was not found: containers will have no CUDA"* ]]
  faults=()
  chmod 0 "$specs"
  generate --output=/proc/nothing/nvidia.yaml
  [ "$status" -eq 1 ]
  [[ $said == *"failed to save CDI spec: failed to write spec"* ]]
}

# --- containers ---

# container_from WORD...: a container of GPU 0 by what generate writes with these words. Its answers are in `answer`.
container_from() {
  hook_program=$programs/nvidia-cdi-hook
  generate --output="$specs/nvidia.yaml" "$@"
  [ "$status" -eq 0 ] || die "$said" || return
  make_root "${image:-small}" overlay
  new_bundle
  edit_bundle --arg root "$root" '.process.terminal = false | .process.args = ["/probe"] | del(.process.rlimits) |
    .root = {path: $root, readonly: false} | (.process.capabilities[]) |= (. + ["CAP_MKNOD", "CAP_DAC_OVERRIDE"] | unique) |
    .process.env += ["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"]'
  if ! on_host "$programs/nvidia-container-runtime" --root "$state" --log "$work/log.json" create --bundle "$bundle" "$container" \
    </dev/null >"$work/out" 2>&1; then
    cat "$work/out" "$work/runtime.log"
    return 1
  fi
  run_created on_host "$programs/nvidia-container-runtime" --root "$state"
}

expect_gpu_0() {
  expect open-nvidia0 "No such device or address"
  expect nvidia-smi 1
  expect made-nvidia1 "Operation not permitted"
}

@test "our runtime starts a container from it: one GPU, its libraries, nothing else of the host" {
  container_from
  expect_gpu_0
  expect_libraries
}

@test "without hooks, on an image whose loader looks where the host's does" {
  image=debian
  container_from --no-hooks
  expect_gpu_0
  expect loader "$libraries/libcuda.so.1"
  jq -e 'has("hooks") | not or .hooks == {}' "$bundle/config.json"
}

@test "late mounts: files are in the hook, and ours starts a container from it as from any other" {
  refuse '--late-mounts and --no-hooks cannot be used together' --late-mounts --no-hooks
  spec_of --format=json --provenance=none
  jq '[.containerEdits.mounts[] | select(.hostPath | endswith("/socket") | not) | .containerPath]' "$work/spec" >"$work/files"
  spec_of --format=json --provenance=none --late-mounts
  check --argjson files "$(cat "$work/files")" '.containerEdits | (.hooks | length == 1) and .hooks[0].args[1:3] == ["sequence", "mount-files"] and
    ([.mounts[].hostPath] | all(endswith("/socket"))) and
    ([.hooks[0].args as $a | range($a | length) | select($a[. - 1] == "--file") | $a[.] | split("::")[-1]] | sort) == ($files | sort)'
  container_from --late-mounts
  expect_gpu_0
  expect_libraries
}

@test "without hooks: links are mounts and nodes" {
  spec_of --format=json --no-hooks --device-id=0
  check '([.. | .hooks? // empty] == []) and (.annotations | has("graft.driver-version"))'
  check --arg v "$version" --arg lib "$libraries" '.containerEdits.mounts | map({(.containerPath): .hostPath}) | add |
    .["\($lib)/libcuda.so.1"] == "\($lib)/libcuda.so.\($v)" and .["\($lib)/libcuda.so"] == "\($lib)/libcuda.so.\($v)"'
  check '.devices[0].containerEdits.deviceNodes | map(select(.path | test("by-path"))) | length == 2 and
    .[0] == {path: "/dev/dri/by-path/pci-0000:1b:00.0-card", hostPath: "/dev/dri/card0", fileMode: 432, permissions: "rwm", gid: 44}'
}
