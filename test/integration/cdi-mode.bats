# SPDX-License-Identifier: Apache-2.0
# nvidia-container-runtime in mode cdi: containers of runc and crun from specs in YAML and JSON, and
# refusals.

load lib.bash

setup_file() {
  start_host dgx-h100
  install_cli runtime/nvidia-container-runtime runtime/nvidia-container-runtime.cdi cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  specs=$work/etc-cdi
  late_specs=$work/run-cdi
  mkdir -p "$specs" "$late_specs"
  cat >"$work/config.toml" <<TOML
[nvidia-container-runtime]
debug = "$work/runtime.log"
log-level = "debug"
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$specs", "$late_specs"]
annotation-prefixes = ["cdi.k8s.io/", "nvidia.cdi.k8s.io/"]
TOML
}
teardown() { test_teardown; }

libraries=/usr/lib/$multiarch
version=550.54.14

# json_spec KIND DEVICE=MINOR...: what generators write for a host with one directory of libraries.
json_spec() {
  local kind=$1
  shift
  printf '%s\n' "$@" | jq --raw-input --slurp --arg kind "$kind" --arg lib "$libraries" --arg v "$version" \
    --arg hook "$BATS_FILE_TMPDIR/programs/nvidia-cdi-hook" '
    def bind: {hostPath: ., containerPath: ., options: ["ro", "nosuid", "nodev", "rbind", "rprivate"]};
    def hook(words): {hookName: "createContainer", path: $hook, args: (["nvidia-cdi-hook"] + words), env: ["NVIDIA_CTK_DEBUG=false"]};
    {cdiVersion: "0.5.0", kind: $kind,
     devices: [split("\n")[] | select(. != "") | split("=") | {name: .[0], containerEdits: {deviceNodes:
       [.[1] | split(",")[] | {path: "/dev/nvidia\(.)", major: 195, minor: tonumber, fileMode: 438, permissions: "rwm"}]}}],
     containerEdits: {
       env: ["NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_CTK_LIBCUDA_DIR=" + $lib],
       deviceNodes: [{path: "/dev/nvidiactl"}, {path: "/dev/nvidia-uvm"}, {path: "/dev/nvidia-uvm-tools"}],
       mounts: [("/usr/bin/nvidia-smi", "\($lib)/libcuda.so.\($v)", "\($lib)/libnvidia-ml.so.\($v)") | bind],
       hooks: [hook(["create-symlinks", "--link", "libcuda.so.1::\($lib)/libcuda.so"]), hook(["update-ldcache", "--folder", $lib])]
     }}'
}

# yaml_spec KIND [WORD...]: GPUs 0 and 1, by index and by UUID, and all of them; and a third hook of these words.
yaml_spec() {
  local kind=$1 third=
  shift
  [ $# -eq 0 ] || third="{hookName: createContainer, path: $BATS_FILE_TMPDIR/programs/nvidia-cdi-hook, args: [nvidia-cdi-hook, $(printf '"%s", ' "$@")], env: [NVIDIA_CTK_DEBUG=false]}"
  cat <<YAML
---
cdiVersion: 0.5.0
kind: $kind
devices:
    - name: 0
      containerEdits: &first
        deviceNodes:
            - path: /dev/nvidia0
              major: 195
              fileMode: 0666
              permissions: rwm
    - name: "1"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia1
              hostPath: /dev/nvidia1
    - name: $(uuid_of 0)
      containerEdits: *first
    - name: all
      containerEdits:
        deviceNodes: [{path: /dev/nvidia0}, {path: /dev/nvidia1}]
containerEdits:
    env:
        - NVIDIA_VISIBLE_DEVICES=void
    deviceNodes:
        - path: /dev/nvidiactl
        - path: /dev/nvidia-uvm
        - path: /dev/nvidia-uvm-tools
    hooks:
        - hookName: createContainer
          path: $BATS_FILE_TMPDIR/programs/nvidia-cdi-hook
          args: [nvidia-cdi-hook, create-symlinks, --link, "libcuda.so.1::$libraries/libcuda.so"]
          env: [NVIDIA_CTK_DEBUG=false]
        - hookName: createContainer
          path: $BATS_FILE_TMPDIR/programs/nvidia-cdi-hook
          args: [nvidia-cdi-hook, update-ldcache, --folder, $libraries]
          env: [NVIDIA_CTK_DEBUG=false]
        ${third:+- $third}
    mounts:
        - &bind
          hostPath: /usr/bin/nvidia-smi
          containerPath: /usr/bin/nvidia-smi
          options: &ro [ro, nosuid, nodev, rbind, rprivate]
        - {hostPath: $libraries/libcuda.so.$version, containerPath: $libraries/libcuda.so.$version, options: *ro}
        - {hostPath: $libraries/libnvidia-ml.so.$version, containerPath: $libraries/libnvidia-ml.so.$version, options: *ro}
YAML
}

uuid_of() {
  on_host nvidia-smi -L | sed -n "s/^GPU $1: .*UUID: \(.*\))/\1/p"
}

# make_gpu_bundle FILTER...: the probe as the container's program, and what an engine writes.
make_gpu_bundle() {
  make_root small overlay
  rm -rf "$bundle"
  make_bundle 'del(.hooks)' "$@"
}

wants() {
  printf '.process.env += ["NVIDIA_VISIBLE_DEVICES=%s"]' "$1"
}

# shim WORLD WORD...
shim() {
  local world=$1
  shift
  "$world" "$runtime" --root "$state" --log "$work/log.json" --log-format json "$@"
}

create_options=()
# start_container WORLD: create, start, wait for the end, read the probe's answers.
start_container() {
  if ! shim "$1" create --bundle "$bundle" "${late_pid[@]}" "${create_options[@]}" "$container" </dev/null >"$work/out" 2>&1; then
    cat "$work/out" "$work/runtime.log"
    return 1
  fi
  run_created shim "$1"
}

# refuse PATTERN: create fails with that message in --log, and nothing has changed.
refuse() {
  sha256sum "$bundle/config.json" >"$work/before"
  status=0
  # Not by `run`: a container that comes up all the same would hold the output that it waits for.
  shim on_host create --bundle "$bundle" "$container" </dev/null >"$work/out" 2>&1 3>&- 4>&- || status=$?
  [ "$status" -eq 1 ]
  message=$(jq --slurp --raw-output 'map(select(.level == "error")) | last | .msg' "$work/log.json")
  # shellcheck disable=SC2053
  [[ $message == $1 ]] || die "$message"
  sha256sum --check --quiet "$work/before"
}

# bats test_tags=old-kernel,arm64
@test "runc: GPU 0 by index from a YAML spec, whose links and cache need no hook; other GPUs stay out" {
  yaml_spec nvidia.com/gpu >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)" '.hooks = {prestart: [{path: "/usr/bin/nvidia-container-runtime-hook"}]}'
  start_container on_host
  expect_one_gpu
  expect made-nvidia0 "No such device or address"
  expect made-nvidia1 "Operation not permitted"
  [ "$(jq '.hooks | has("prestart")' "$bundle/config.json")" = false ]
  jq -e 'has("hooks") | not' "$bundle/config.json" || jq -e '.hooks | has("createContainer") | not' "$bundle/config.json"
  [ "$(on_host readlink "$root$libraries/libcuda.so")" = libcuda.so.1 ]
  [ "$(on_host readlink "$root$libraries/libcuda.so.1")" = "libcuda.so.$version" ]
  [ "$(on_host readlink "$root$libraries/libnvidia-ml.so.1")" = "libnvidia-ml.so.$version" ]
  on_host /sbin/ldconfig -p -C "$root/etc/ld.so.cache" >"$work/cache"
  grep -q "libcuda.so.1 .*=> $libraries/libcuda.so.1$" "$work/cache"
  grep -q "libnvidia-ml.so.1 .*=> $libraries/libnvidia-ml.so.1$" "$work/cache"
  jq -e '.process.env | map(select(startswith("NVIDIA_VISIBLE_DEVICES="))) == ["NVIDIA_VISIBLE_DEVICES=void"]' "$bundle/config.json"
}

# bats test_tags=old-kernel
@test "hooks of a spec run, where one of them is no edit, in one process which need not wait for the state" {
  yaml_spec nvidia.com/gpu chmod --mode 755 --path /usr/bin >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  start_container on_host
  expect_one_gpu
  jq -e --arg lib "$libraries" --arg root "$(on_host stat -c "%d:%i:%n" "$root")" '.hooks.createContainer | map(.args) == [["nvidia-cdi-hook",
    "sequence", "--rootfs", $root, "create-symlinks", "--link", "libcuda.so.1::\($lib)/libcuda.so", "--then", "update-ldcache", "--folder", $lib,
    "--then", "chmod", "--mode", "755", "--path", "/usr/bin"]]' "$bundle/config.json"
}

# bats test_tags=old-kernel
@test "links and the cache are left to the hooks where an image has a folder that its loader did not search, or no loader configuration" {
  yaml_spec nvidia.com/gpu | sed "s|--folder, |&/opt/libraries, --folder, |" >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  on_host mkdir -p "$root/opt/libraries"
  start_container on_host
  expect_one_gpu
  jq -e '.hooks.createContainer | map(.args[1]) == ["sequence"]' "$bundle/config.json"
  yaml_spec nvidia.com/gpu >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  on_host rm "$root/etc/ld.so.conf"
  start_container on_host
  expect_one_gpu
  jq -e '.hooks.createContainer | map(.args[1]) == ["sequence"]' "$bundle/config.json"
}

# cached NAME: whether the container's cache has a library of that name in /opt/vendor/lib.
cached() { on_host /sbin/ldconfig -p -C "$root/etc/ld.so.cache" | grep -q "$1 .*=> /opt/vendor/lib/$1"; }

@test "directories of libraries that a spec or a volume mounts are left to the hooks" {
  mkdir -p "$work/vendor"
  "${CC:-cc}" -shared -nostdlib -Wl,-soname,libvendor.so.1 -o "$work/vendor/libvendor.so.1" -x c /dev/null
  yaml_spec nvidia.com/gpu | sed "s|--folder, |&/opt/vendor/lib, --folder, |
    s|^    mounts:|&\n        - {hostPath: $work/vendor, containerPath: /opt/vendor/lib, options: [ro, rbind]}|" >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  start_container on_host
  expect_one_gpu
  jq -e '.hooks.createContainer | map(.args[1]) == ["apply", "sequence"]' "$bundle/config.json"
  cached libvendor.so.1
  # The same folder, mounted by the caller.
  yaml_spec nvidia.com/gpu | sed "s|--folder, |&/opt/vendor/lib, --folder, |" >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)" ".mounts += [{destination: \"/opt/vendor/lib\", source: \"$work/vendor\", type: \"bind\", options: [\"rbind\", \"ro\"]}]"
  start_container on_host
  expect_one_gpu
  jq -e '.hooks.createContainer | map(.args[1]) == ["sequence"]' "$bundle/config.json"
  cached libvendor.so.1
}

@test "a library that a spec mounts by another name of a folder is left to the hooks" {
  mkdir -p "$work/vendor"
  "${CC:-cc}" -shared -nostdlib -Wl,-soname,libvendor.so.1 -o "$work/vendor/libvendor.so.1" -x c /dev/null
  yaml_spec nvidia.com/gpu | sed "s|--folder, |&/opt/vendor/lib, --folder, |
    s|^    mounts:|&\n        - {hostPath: $work/vendor/libvendor.so.1, containerPath: /opt/link/lib/libvendor.so.1, options: [ro, rbind]}|" >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  on_host mkdir -p "$root/opt/vendor/lib"
  on_host ln -s vendor "$root/opt/link"
  echo /opt/vendor/lib >>"$work/vendor.conf"
  on_host cp "$work/vendor.conf" "$root/etc/ld.so.conf.d/vendor.conf"
  start_container on_host
  expect_one_gpu
  jq -e '.hooks.createContainer | map(.args[1]) == ["sequence"]' "$bundle/config.json"
  cached libvendor.so.1
}

# bats test_tags=old-kernel
@test "what a mount of the bundle covers is left to a hook, which leaves it; the rest is done in the root" {
  yaml_spec nvidia.com/gpu | sed 's|create-symlinks, |&--link, "x::/opt/covered/link", |' >"$specs/nvidia.yaml"
  mkdir -p "$work/covered"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)" ".mounts += [{destination: \"/opt/covered\", source: \"$work/covered\", type: \"bind\", options: [\"rbind\"]}]"
  start_container on_host
  expect_one_gpu
  [ -z "$(ls "$work/covered")" ]
  [ "$(on_host readlink "$root$libraries/libcuda.so")" = libcuda.so.1 ]
  jq -e '.hooks.createContainer | map(.args[1]) == ["apply"]' "$bundle/config.json"
}

@test "hooks of a spec that are not all ours stay as they are, in their order" {
  yaml_spec nvidia.com/gpu | sed "s|programs/nvidia-cdi-hook|programs/of-another-maker|" >"$specs/nvidia.yaml"
  ln -s nvidia-cdi-hook "$BATS_FILE_TMPDIR/programs/of-another-maker"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  start_container on_host
  expect_one_gpu
  jq -e '.hooks.createContainer | map(.args[1]) == ["create-symlinks", "update-ldcache"]' "$bundle/config.json"
  run ! grep -q -e --rootfs "$bundle/config.json"
}

# image_hook: a program of the image, of a name that the host's hook has; it writes down that it ran.
image_hook() {
  printf '#!/bin/sh\necho "$0 $*" >/opt/ran\n' >"$work/image-hook"
  on_host install -D -m 0755 "$work/image-hook" "$root/opt/bin/nvidia-cdi-hook"
}

# bats test_tags=old-kernel
@test "a startContainer hook is the image's: it goes in as it is written, and the host's hooks are edits all the same" {
  local start='{hookName: startContainer, path: /opt/bin/nvidia-cdi-hook, args: [nvidia-cdi-hook, chmod, --path, /x]}'
  yaml_spec nvidia.com/gpu | sed "s|^    mounts:|        - $start\n&|" >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  image_hook
  start_container on_host
  expect_one_gpu
  jq -e '.hooks | has("createContainer") | not' "$bundle/config.json"
  jq -e '.hooks.startContainer == [{path: "/opt/bin/nvidia-cdi-hook", args: ["nvidia-cdi-hook", "chmod", "--path", "/x"]}]' "$bundle/config.json"
  [ "$(on_host readlink "$root$libraries/libcuda.so")" = libcuda.so.1 ]
  [ "$(on_host cat "$root/opt/ran")" = '/opt/bin/nvidia-cdi-hook chmod --path /x' ]

  # Beside hooks that have to run, with variables of its own, and relative to nothing of the host.
  start='{hookName: startContainer, path: opt/bin/nvidia-ctk, args: [nvidia-ctk, hook, chmod], env: [A=1]}'
  yaml_spec nvidia.com/gpu chmod --mode 755 --path /usr/bin | sed "s|^    mounts:|        - $start\n&|" >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  on_host mkdir -p "$root/opt/bin"
  shim on_host create --bundle "$bundle" "$container" </dev/null >"$work/out" 2>&1 3>&- 4>&- || true
  jq -e '.hooks.startContainer == [{path: "opt/bin/nvidia-ctk", args: ["nvidia-ctk", "hook", "chmod"], env: ["A=1"]}]' "$bundle/config.json"
  jq -e '.hooks.createContainer | map(.args[1]) == ["sequence"]' "$bundle/config.json"
  shim on_host delete --force "$container" || true
}

low_level() { sed -i "s/^\[nvidia-container-runtime\]\$/&\nruntimes = [\"$1\"]/" "$work/config.toml"; }

# lives WORLD LOW-LEVEL-RUNTIME: create, start, exec, delete; what exec sees is one GPU.
lives() {
  low_level "$2"
  yaml_spec nvidia.com/gpu chmod --mode 755 --path /usr/bin >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=1)" '.process.args = ["/bin/sleep", "600"]'
  shim "$1" create --bundle "$bundle" "$container" </dev/null >"$work/out" 2>&1 3>&- 4>&- || die "$(cat "$work/out" "$work/runtime.log")" || return
  case $2 in
  runc) [ "$(jq -c '.hooks.createContainer | map(.args[1:3])' "$bundle/config.json")" = '[["sequence","--rootfs"]]' ] ;;
  *) [ "$(jq -c '.hooks.createContainer | map(.args[1:3])' "$bundle/config.json")" = '[["sequence","create-symlinks"]]' ] ;;
  esac
  shim "$1" start "$container"
  run shim "$1" exec "$container" /probe
  read_answers
  expect nvidia-smi 1
  expect open-nvidia1 "No such device or address"
  expect open-nvidia0 ""
  expect_libraries
  shim "$1" delete --force "$container"
  run -1 shim "$1" state "$container"
}

# bats test_tags=old-kernel
@test "runc, cgroup v1: create, start, exec, delete" { lives on_host runc; }
# bats test_tags=old-kernel
@test "runc, cgroup v2: create, start, exec, delete" { lives v2 runc; }
# bats test_tags=old-kernel
@test "crun, cgroup v2: create, start, exec, delete" { lives v2_raising crun; }
# bats test_tags=old-kernel
@test "crun, cgroup v1: create, start, exec, delete" { lives v1_alone crun; }

# --- all hooks of today's generator ---

# generated_spec [JQ-FILTER]: what nvidia-ctk says of this host, changed.
generated_spec() {
  on_host "$BATS_FILE_TMPDIR/programs/nvidia-ctk" --quiet cdi generate --format=json \
    --nvidia-cdi-hook-path="$BATS_FILE_TMPDIR/programs/nvidia-cdi-hook" >"$work/generated"
  head -n 1 "$work/generated" | jq "${1:-.}" >"$specs/nvidia.json"
}

# With one more hook, which is no edit and changes nothing, all of them run.
and_a_hook='.containerEdits.hooks += [.containerEdits.hooks[0] | .args = ["nvidia-cdi-hook", "chmod", "--mode", "755", "--path", "/usr/bin"]]'

# make_looking_bundle FILTER...: GPU 0; besides the probe's answers lines "seen ..." of all that the hooks are for. The driver's procfs is only seen in a procfs of the
# simulated host's.
make_looking_bundle() {
  make_gpu_bundle "$(wants nvidia.com/gpu=0)" '.process.args = ["/looks"]' \
    '.mounts |= map(if .destination == "/proc" then {destination: "/proc", source: "/proc", type: "bind", options: ["rbind"]} else . end)' "$@"
  cat >"$work/looks" <<'SH'
#!/bin/sh
/probe
{
  find /dev /etc /lib /lib64 /opt /usr -type l 2>/dev/null | sort | while read -r link; do
    echo "link $link $(readlink "$link")"
  done
  # By the files that the names lead to. The loader itself is not in the image's own cache.
  ldconfig -p | sed -n '/ld-linux/d; s/^\t\(.*\) => \(.*\)/\1 \2/p' | while read -r name abi file; do
    echo "cache $name $abi $(readlink -f "$file")"
  done
  cd /etc/nvidia/nvidia-application-profiles-rc.d && stat -c 'profile %n %a %u:%g %F' . * && cat 10-container.conf && echo
  echo "params $(stat -c '%a %s' /proc/driver/nvidia/params) $(sed -n 's|.* /proc/driver/nvidia/params \([^ ]*\) .*|\1|p' /proc/self/mountinfo)"
  cat /proc/driver/nvidia/params
} | sed 's/^/seen /'
SH
  on_host install -m 0755 "$work/looks" "$root/looks"
}

# look WORLD NAME: runs it; what was seen is in the file $work/NAME.
look() {
  start_container "$1" || return
  sed -n 's/^seen //p' <<<"$output" >"$work/$2"
}
# The hooks that the low-level runtime was given.
ways() { jq -c '[.hooks.createContainer[]?.args[1]]' "$bundle/config.json"; }

expect_generated() {
  expect nvidia-smi 1
  expect nvidia-smi-first "GPU 0: NVIDIA H100 80GB HBM3"
  expect open-nvidia0 "No such device or address"
  expect made-nvidia1 "Operation not permitted"
  expect ls-nvidia "nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia0 nvidiactl"
}

# same_both_ways WORLD LOW-LEVEL-RUNTIME [PREPARE]: one hook for what has to wait, and what it and the edits make is what the hooks make; as is what is made after `create`.
same_both_ways() {
  late_pid=()
  low_level "$2"
  generated_spec
  [ "$(jq '[.containerEdits.hooks, .devices[0].containerEdits.hooks | .[]] | length' "$specs/nvidia.json")" -eq 6 ]
  make_looking_bundle
  "${3:-true}"
  look "$1" edits
  expect_generated
  [ "$(ways)" = '["apply"]' ] || die "$(ways)" || return
  generated_spec "$and_a_hook"
  make_looking_bundle
  "${3:-true}"
  look "$1" hooks
  expect_generated
  [ "$(ways)" = '["sequence"]' ] || die "$(ways)" || return
  diff "$work/hooks" "$work/edits"
  # Where the engine is told the process ID, what waits for mounts needs no hook either.
  generated_spec
  make_looking_bundle
  "${3:-true}"
  create_options=(--pid-file "$work/pid")
  look "$1" after
  create_options=()
  expect_generated
  [ "$(ways)" = '[]' ] || die "$(ways)" || return
  diff "$work/hooks" "$work/after"
}

# What both have seen.
seen() { grep -qxF -- "$1" "$work/edits" || { cat "$work/edits" && die "not seen: $1"; }; }

sees_all() {
  same_both_ways "$1" "$2"
  expect_libraries
  seen "link $libraries/libcuda.so libcuda.so.1"
  seen "link $libraries/libcuda.so.1 libcuda.so.$version"
  seen "cache libcuda.so (libc6,x86-64) $libraries/libcuda.so.$version"
  seen 'link /dev/dri/by-path/pci-0000:1b:00.0-card ../card0'
  seen 'profile 10-container.conf 444 0:0 regular file'
  seen 'profile . 555 0:0 directory'
  seen '{"profiles":[{"name":"_container_","settings":["EGLVisibleDGPUDevices",0x1]}],"rules":[{"pattern":[],"profile":"_container_"}]}'
  seen 'ModifyDeviceFiles: 0'
  grep -q '^params 444 [0-9]* ro,nosuid,nodev,noexec' "$work/edits"
}

# bats test_tags=old-kernel
@test "runc, cgroup v1: all hooks of nvidia-ctk's spec are edits and one hook for what waits for mounts" { sees_all on_host runc; }
# bats test_tags=old-kernel
@test "crun, cgroup v2: all hooks of nvidia-ctk's spec are edits and one hook for what waits for mounts" { sees_all v2_raising crun; }

compat=/usr/local/cuda-12.6/compat
found=$compat/libcuda.so.560.35.05
# A library of a newer driver with its links, as images of CUDA have it, the directory behind a link.
add_compat() {
  on_host mkdir -p "$root$compat"
  on_host ln -s cuda-12.6 "$root/usr/local/cuda"
  on_host cp "$libraries/libcuda.so.$version" "$root$found"
  on_host ln -s "${found##*/}" "$root$compat/libcuda.so.1"
  on_host ln -s libcuda.so.1 "$root$compat/libcuda.so"
}

finds_compat() {
  same_both_ways "$1" "$2" add_compat
  [ "$(grep -m 1 '^cache libcuda.so.1 ' "$work/edits")" = "cache libcuda.so.1 (libc6,x86-64) $found" ]
  [ "$(grep -m 1 '^cache libcuda.so ' "$work/edits")" = "cache libcuda.so (libc6,x86-64) $found" ]
  expect loader "$found"
}

# bats test_tags=old-kernel
@test "runc, cgroup v1: an image's newer CUDA library is found first, with edits as with hooks" { finds_compat on_host runc; }
# bats test_tags=old-kernel
@test "crun, cgroup v2: an image's newer CUDA library is found first, with edits as with hooks" { finds_compat v2_raising crun; }

# look_again WORLD NAME: the same container of the same root once more.
look_again() {
  cp "$work/config.json.first" "$bundle/config.json"
  look "$@"
}

# After the first start the driver is upgraded, so that the image's library does not suit it any more: by edits, and by hooks.
forgets_compat() {
  late_pid=()
  local ours=$root/etc/ld.so.conf.d/00-graft.conf way=$1
  generated_spec
  make_looking_bundle
  add_compat
  cp "$bundle/config.json" "$work/config.json.first"
  look on_host first
  expect loader "$found"
  on_host grep -qx "$compat" "$ours"
  on_host cp "$ours" "$work/ours"
  # A folder that was added before is none that nobody has read yet.
  look_again on_host second
  expect loader "$found"
  [ "$(ways)" = '["apply"]' ]
  on_host diff "$work/ours" "$ours"
  generated_spec '(.containerEdits.hooks[].args[] | select(startswith("--host-driver-version"))) = "--host-driver-version=570.10.01" |
    del(.containerEdits.hooks[].args[] | select(startswith("--host-cuda-version")))'" | $2"
  look_again on_host third
  expect_generated
  expect_libraries
  [ "$(ways)" = "[\"$way\"]" ]
  expect loader "$libraries/libcuda.so.$version"
  grep -q "^cache libcuda.so.1 .* .*/libcuda.so.$version\$" "$work/third"
  ! grep "^cache .*$compat" "$work/third" || die "$compat is in the cache" || return
  [ "$(on_host grep -c "$compat" "$ours")" = 0 ]
}

# bats test_tags=old-kernel
@test "a driver's upgrade: the image's library that an earlier start wanted is not found any more, with edits" { forgets_compat apply .; }
# bats test_tags=old-kernel
@test "a driver's upgrade: the image's library that an earlier start wanted is not found any more, with hooks" { forgets_compat sequence "$and_a_hook"; }

@test "where a hook has written of compatibility libraries before, hooks run" {
  generated_spec
  make_looking_bundle
  add_compat
  on_host sh -c "echo $compat >'$root/etc/ld.so.conf.d/00-compat-graft.conf'"
  look on_host seen
  expect_generated
  [ "$(ways)" = '["sequence"]' ]
  expect loader "$found"
}

@test "where a mount changes the compatibility libraries, hooks run" {
  local place
  generated_spec
  mkdir -p "$work/empty"
  for place in /usr/local/cuda/compat "$compat" /opt/cuda/compat; do
    make_looking_bundle ".mounts += [{destination: \"$place\", source: \"$work/empty\", type: \"bind\", options: [\"rbind\"]}]"
    add_compat
    on_host mkdir -p "$root/opt"
    on_host ln -s /usr/local/cuda "$root/opt/cuda"
    look on_host seen
    expect_generated
    expect_libraries
    [ "$(ways)" = '["sequence"]' ]
  done
}

# bats test_tags=old-kernel
@test "a privileged container has the host's GPUs: its hooks run, and the profile shows them all" {
  generated_spec
  make_looking_bundle '.linux.devices = [range(8) | {path: "/dev/nvidia\(.)", type: "c", major: 195, minor: .}]' \
    '.linux.resources.devices = [{allow: true, access: "rwm"}]'
  look on_host edits
  [ "$(ways)" = '["sequence"]' ]
  expect open-nvidia1 "No such device or address"
  grep -q '"EGLVisibleDGPUDevices",0xff' "$work/edits"
}

@test "crun, cgroup v2: all by the default kind from a JSON spec, through nvidia-container-runtime.cdi" {
  low_level crun
  json_spec nvidia.com/gpu 0=0 1=1 all=0,1 >"$specs/nvidia.json"
  make_gpu_bundle "$(wants all)"
  runtime=$runtime.cdi
  start_container v2_raising
  expect nvidia-smi 2
  expect open-nvidia0 "No such device or address"
  expect open-nvidia1 "No such device or address"
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidia0 nvidia1 nvidiactl"
  expect_libraries
}

@test "annotations of Kubernetes: a device plugin's kind and a UUID, by a prefix of the operator's" {
  yaml_spec k8s.device-plugin.nvidia.com/gpu >"$late_specs/plugin.yaml"
  sed -i 's/^cdiVersion.*/cdiVersion: 0.6.0/' "$late_specs/plugin.yaml"
  yaml_spec nvidia.com/gpu >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants 1)" ".annotations = {\"nvidia.cdi.k8s.io/nvidia-device-plugin_x\": \"k8s.device-plugin.nvidia.com/gpu=$(uuid_of 0)\"}"
  start_container on_host
  expect_one_gpu
}

@test "several kinds in one container; what a later directory says counts" {
  yaml_spec nvidia.com/gpu >"$specs/nvidia.yaml"
  mkdir -p "$work/weights"
  echo old >"$work/weights/old"
  cat >"$specs/extra.yaml" <<YAML
{cdiVersion: 0.3.0, kind: vendor.example/weights, devices: [{name: small, containerEdits: {env: [WEIGHTS=old]}}]}
YAML
  cat >"$late_specs/extra.json" <<JSON
{"cdiVersion": "0.3.0", "kind": "vendor.example/weights", "devices": [{"name": "small", "containerEdits": {
  "env": ["WEIGHTS=new"], "mounts": [{"hostPath": "$work/weights", "containerPath": "/weights", "options": ["ro", "rbind"]}]}}]}
JSON
  printf 'allowed-envvar-kinds = ["nvidia.com/gpu", "vendor.example/*"]\n' >>"$work/config.toml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0,vendor.example/weights=small,nvidia.com/gpu=0)" \
    '.process.args = ["/bin/sh", "-c", "/probe; echo weights: $WEIGHTS $(ls /weights)"]'
  start_container on_host
  expect_one_gpu
  expect weights "new old"
}

@test "an image's variable names devices of NVIDIA's kinds alone; an annotation and a mount those of all" {
  local kind mode
  yaml_spec nvidia.com/gpu >"$specs/nvidia.yaml"
  mkdir "$work/secret"
  for kind in vendor.example/host management.nvidia.com/gpu; do
    cat >"$specs/${kind%/*}.yaml" <<YAML
{cdiVersion: 0.3.0, kind: $kind, devices: [{name: all, containerEdits: {env: [HOST=given], mounts: [{hostPath: $work/secret, containerPath: /secret, options: [ro, rbind]}]}}]}
YAML
    for mode in auto cdi jit-cdi legacy; do
      sed -i "/^mode =/d; s/^debug = /mode = \"$mode\"\n&/" "$work/config.toml"
      make_gpu_bundle "$(wants "nvidia.com/gpu=0,$kind=all")"
      refuse "NVIDIA_VISIBLE_DEVICES asks for the CDI device '$kind=all': variables of containers may not name devices of the kind '$kind'; request it with an annotation or a volume mount, or add the kind to nvidia-container-runtime.modes.cdi.allowed-envvar-kinds in $work/config.toml"
    done
    make_gpu_bundle "$(wants "$kind=all")" '.process.capabilities.bounding += ["CAP_SYS_ADMIN"]'
    refuse "*'$kind=all'*allowed-envvar-kinds*"
    sed -i '/^mode =/d' "$work/config.toml"
    make_gpu_bundle "$(wants 1)" '.process.args = ["/bin/sh", "-c", "/probe; echo host: $HOST"]' \
      ".annotations = {\"cdi.k8s.io/x\": \"nvidia.com/gpu=0,$kind=all\"}"
    start_container on_host
    expect_one_gpu
    expect host given
  done
  sed -i '1i accept-nvidia-visible-devices-as-volume-mounts = true' "$work/config.toml"
  make_gpu_bundle '.process.args = ["/bin/sh", "-c", "/probe; echo host: $HOST"]' \
    '.mounts += ["nvidia.com/gpu/0", "vendor.example/host/all" | {source: "/dev/null", destination: "/var/run/nvidia-container-devices/cdi/\(.)", type: "bind", options: ["bind"]}]'
  start_container on_host
  expect_one_gpu
  expect host given
}

@test "a conflict is reported with both files, and with the available devices" {
  yaml_spec nvidia.com/gpu >"$specs/a.yaml"
  json_spec nvidia.com/gpu 0=0 7=7 >"$specs/b.json"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  refuse "*failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=0 (searched $specs, $late_specs)*conflicting device \"nvidia.com/gpu=0\" (specs \"$specs/a.yaml\", \"$specs/b.json\")*"
  # A directory of higher priority resolves it.
  json_spec nvidia.com/gpu 0=0 >"$late_specs/c.json"
  start_container on_host
  expect_one_gpu
}

@test "a missing device is reported with the existing ones, the directories, and the skipped files" {
  make_gpu_bundle "$(wants nvidia.com/gpu=9)"
  refuse "*unresolvable CDI devices nvidia.com/gpu=9 (searched $specs, $late_specs); make a spec: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml*"
  json_spec nvidia.com/gpu 0=0 1=1 >"$specs/nvidia.json"
  printf 'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevice: []\n' >"$specs/broken.yaml"
  refuse "*unresolvable CDI devices nvidia.com/gpu=9 (searched *); devices of that kind: 0, 1; ask for one of them, or regenerate the spec; skipped $specs/broken.yaml: line 3, column 1: invalid CDI Spec: unknown field \"device\"*"
}

@test "a spec of a removed driver is reported, with what is missing" {
  yaml_spec nvidia.com/gpu | sed "s/libcuda.so.$version, c/libcuda.so.535.1, c/" >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  refuse "*CDI spec $specs/nvidia.yaml is stale: mount source $libraries/libcuda.so.535.1 is not on this host; regenerate the spec*--output=$specs/nvidia.yaml*"
  json_spec nvidia.com/gpu 0=0 9=9 >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=9)"
  refuse "*CDI spec $specs/nvidia.yaml is stale: device node /dev/nvidia9 is not on this host; regenerate*"
  # A major number from before a reboot: the node that is there is meant.
  json_spec nvidia.com/gpu 0=0 | jq '.containerEdits.deviceNodes[1].major = 511 | .containerEdits.deviceNodes[1].minor = 7' >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  start_container on_host
  expect_one_gpu
  grep -q 'is stale: it has device node /dev/nvidia-uvm as 511:7' "$work/runtime.log"
}

@test "names that are generated do not mix with those of specs" {
  yaml_spec nvidia.com/gpu >"$specs/nvidia.yaml"
  make_gpu_bundle "$(wants nvidia.com/gpu=0,runtime.nvidia.com/gpu=1)"
  refuse "*requesting a CDI device with vendor 'runtime.nvidia.com' is not supported when requesting other CDI devices*"
}

@test "the nodes of a spec get links in /dev/char, for systemd" {
  yaml_spec nvidia.com/gpu >"$specs/nvidia.yaml"
  on_host rm -f /dev/char/195:0 /dev/char/195:255
  make_gpu_bundle "$(wants nvidia.com/gpu=0)"
  start_container on_host
  [ "$(on_host readlink /dev/char/195:0)" = ../nvidia0 ]
  [ "$(on_host readlink /dev/char/195:255)" = ../nvidiactl ]
}

@test "names of runtime.nvidia.com are generated, without any spec" {
  make_gpu_bundle "$(wants runtime.nvidia.com/gpu=0)"
  start_container on_host
  expect nvidia-smi 1
  expect open-nvidia0 "No such device or address"
  expect made-nvidia1 "Operation not permitted"
  grep -q "Auto-detected mode as 'cdi'" "$work/runtime.log"
}
