# SPDX-License-Identifier: Apache-2.0
# Hooks without an environment of their own, as older generators wrote them into specifications: a low-level runtime gives them the container's, and the image as working
# directory (CVE-2025-23266). Each program that a specification can name, with each variable that could make it load or read something of the image, through plain runc
# (an engine's own CDI) and through nvidia-container-runtime. What must hold: nothing of the image runs on the host, and the container starts.

load lib.bash

setup_file() {
  start_host dgx-h100
  install_cli runtime/nvidia-container-runtime cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk
  ln -s nvidia-container-runtime-hook "$BATS_FILE_TMPDIR/programs/nvidia-container-toolkit"
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  libraries=/usr/lib/x86_64-linux-gnu
  victim=$work/victim
  mkdir -p "$victim" "$work/cdi"
  cat >"$work/config.toml" <<TOML
[nvidia-container-runtime]
mode = "cdi"
runtimes = ["/usr/sbin/runc"]
debug = "$work/runtime.log"
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$work/cdi"]
TOML
  make_root small copy
  make_evil
}
teardown() { test_teardown; }

# What the image has: a library that leaves a mark where it is loaded on the host, as a constructor and already while it is relocated (in the place of the C library it gets no
# further), a program that does, and a configuration that names it.
make_evil() {
  cat >"$work/evil.c" <<C
static long call(long number, long a, long b, long c, long d)
{
	long result;
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return result;
}
__attribute__((constructor)) static void mark(void)
{
	call(257, -100, (long)"$victim/ran-on-the-host", 0101, 0600);
}
static void nothing(void)
{
}
static void *resolve(void)
{
	mark();
	return nothing;
}
void indirect(void) __attribute__((ifunc("resolve")));
void (*volatile kept)(void) = indirect;
unsigned int la_version(unsigned int version)
{
	mark();
	return version;
}
void gconv_init(void)
{
	mark();
}
C
  cc -shared -fPIC -nostdlib -O1 -fcf-protection=none -o "$root/x.so" "$work/evil.c"
  cp "$root/x.so" "$root/libc.so.6"
  cp "$root/x.so" "$root/libyaml-0.so.2"
  printf 'module X// INTERNAL x 1\nmodule INTERNAL X// x 1\nmodule UTF-8// INTERNAL x 1\n' >"$root/gconv-modules"
  # It would be run by a shell of the host's.
  printf '#!/bin/sh\n: >%s/ran-on-the-host\n' "$victim" >"$root/evil"
  chmod 0755 "$root/evil"
  for name in modprobe ldconfig nvidia-container-cli nvidia-cdi-hook graft-nvml graft-systemd; do
    cp "$root/evil" "$root/$name"
  done
  mkdir -p "$root/nvidia-container-runtime"
  printf '[nvidia-container-cli]\npath = "/proc/self/cwd/evil"\n' | tee "$root/evil.toml" "$root/nvidia-container-runtime/config.toml" >/dev/null
}

vectors=(
  LD_PRELOAD=./x.so LD_PRELOAD=/proc/self/cwd/x.so LD_AUDIT=./x.so LD_AUDIT=/proc/self/cwd/x.so LD_LIBRARY_PATH=. LD_LIBRARY_PATH=/proc/self/cwd
  "GCONV_PATH=.:/proc/self/cwd LC_ALL=X LANG=X PATH=.:/proc/self/cwd HOME=/proc/self/cwd"
  NVIDIA_CTK_CONFIG_FILE_PATH=./evil.toml "NVIDIA_CTK_CONFIG_FILE_PATH=/proc/self/cwd/evil.toml NVIDIA_CTK_CONFIG=./evil.toml"
  XDG_CONFIG_HOME=/proc/self/cwd)

# hooks MEMBER: one of each, without variables or with an empty list of them, as an array of JSON; MEMBER holds the stage, if it is not empty.
hooks() {
  jq -n --arg programs "$programs" --arg lib "$libraries" --arg member "$1" '
    def hook(name; words): {($member): "createContainer", path: "\($programs)/\(name)", args: ([name] + words)} | del(.[""]);
    [hook("nvidia-ctk"; ["hook", "update-ldcache", "--folder", $lib]),
     hook("nvidia-ctk"; ["hook", "create-symlinks", "--link", "a::/usr/lib/graft-test"]) + {env: []},
     hook("nvidia-ctk"; ["--debug", "hook", "chmod", "--mode", "755", "--path", "/usr/lib"]),
     hook("nvidia-ctk"; ["hook", "of-the-future", "--x=1"]),
     hook("nvidia-cdi-hook"; ["update-ldcache", "--folder", $lib]),
     hook("nvidia-cdi-hook"; ["create-symlinks", "--link", "a::/usr/lib/graft-test"]) + {env: []},
     hook("nvidia-container-runtime-hook"; ["prestart"]),
     hook("nvidia-container-toolkit"; ["prestart"]) + {env: []}]'
}

# start VARIABLES COMMAND...: a container whose image has these variables; it must start, and the mark must not be there.
start() {
  local variables=$1
  shift
  read -ra variables <<<"$variables"
  make_bundle '.process.args = ["/bin/sh", "-c", "echo started"] | del(.hooks)' \
    '.process.env = (.process.env | map(select(startswith("PATH=") | not))) + ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]' "${edits[@]}"
  for variable in "${variables[@]}"; do
    edit_bundle --arg variable "$variable" '.process.env += [$variable]'
  done
  status=0
  on_host "$@" --root "$state" create --bundle "$bundle" "$container" </dev/null >"$work/output" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    on_host runc --root "$state" start "$container"
    stops on_host runc --root "$state"
  fi
  on_host runc --root "$state" delete --force "$container" 2>/dev/null || true
  [ ! -e "$victim/ran-on-the-host" ] || die "with ${variables[*]} the image ran on the host: $*"
  if [ "$status" -ne 0 ] || ! grep -qx started "$work/output"; then
    cat "$work/output"
    die "with ${variables[*]} the container does not start: $*"
  fi
}

# Whether this runc gives a container's variables to a hook, and what is tried is dangerous: a dynamic program of the host's.
@test "the mark is made by a program that is linked dynamically" {
  local vector
  grep -q 'libc\.so\.6' < <(readelf -d /bin/true)
  for vector in LD_PRELOAD=./x.so LD_AUDIT=/proc/self/cwd/x.so LD_LIBRARY_PATH=.; do
    make_bundle '.process.args = ["/bin/true"] | .hooks = {createContainer: [{path: "/bin/true"}]}'
    edit_bundle --arg vector "$vector" '.process.env += [$vector]'
    on_host runc --root "$state" run --bundle "$bundle" "$container" </dev/null >"$work/output" 2>&1 || true
    [ -e "$victim/ran-on-the-host" ] || skip "this runc does not hand a container's variables to hooks any more"
    rm "$victim/ran-on-the-host"
    rm -rf "$bundle"
  done
}

@test "runc alone, with the hooks in config.json" {
  local vector
  ! grep -q __asan_init "$programs/nvidia-ctk" || skip "sanitizers need a loader"
  edits=(".hooks = {createContainer: $(hooks '')}" '.process.env += ["NVIDIA_VISIBLE_DEVICES=void"]')
  for vector in "${vectors[@]}"; do
    start "$vector" runc
  done
}

@test "nvidia-container-runtime, with the hooks in config.json" {
  local vector
  # One of another vendor, too: a dynamic program.
  edits=(".hooks = {createContainer: ($(hooks '') + [{path: \"/bin/true\", args: [\"true\"]}, {path: \"/bin/true\", env: []}])}"
    '.process.env += ["NVIDIA_VISIBLE_DEVICES=void"]')
  for vector in "${vectors[@]}"; do
    start "$vector" "$programs/nvidia-container-runtime"
    jq -e '[.hooks.createContainer[] | (.env | length) > 0] | all' "$bundle/config.json"
  done
}

# specification HOOKS: a device whose hooks these are.
specification() {
  jq -n --argjson hooks "$1" '{cdiVersion: "0.5.0", kind: "nvidia.com/gpu", devices: [{name: "0", containerEdits: {deviceNodes: [{path: "/dev/nvidia0"}]}}],
    containerEdits: {env: ["NVIDIA_VISIBLE_DEVICES=void"], hooks: $hooks}}' >"$work/cdi/nvidia.json"
}

@test "nvidia-container-runtime in mode cdi, with the hooks in a specification" {
  local vector
  specification "$(hooks hookName | jq '. + [{hookName: "createContainer", path: "/bin/true", args: ["true"]}]')"
  edits=('.process.env += ["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"]')
  for vector in "${vectors[@]}"; do
    start "$vector" "$programs/nvidia-container-runtime"
    jq -e '[.hooks.createContainer[] | (.env | length) > 0] | all' "$bundle/config.json"
    # Calls of nvidia-ctk that we know are ours.
    jq -e '[.hooks.createContainer[] | select(.path | endswith("/nvidia-ctk")) | .args[1:3] | join(" ")] | sort == ["--debug hook", "hook of-the-future"]' "$bundle/config.json"
    [ "$(readlink "$root/usr/lib/graft-test")" = a ]
    rm "$root/usr/lib/graft-test"
  done
}

@test "the hooks of an older generator are edits, as those of a new one" {
  specification "$(hooks hookName | jq '[.[1], .[0]]')"
  edits=('.process.env += ["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"]')
  start LD_PRELOAD=./x.so "$programs/nvidia-container-runtime"
  jq -e '.hooks.createContainer == null' "$bundle/config.json"
  [ "$(readlink "$root/usr/lib/graft-test")" = a ]
}

# call VARIABLE...: the hook as a low-level runtime starts it, in the image's directory; no container is there that it could change.
call() {
  (cd "$root" && on_host env -i "$@" "$programs/nvidia-container-runtime-hook" prestart) <<<"{\"pid\":$pid,\"bundle\":\"$bundle\"}"
}

@test "the hook of prestart believes what config.json gives to it, and nothing else" {
  local config=$work/other.toml pid=4194305 # above what Linux has
  make_bundle '.process.env += ["NVIDIA_VISIBLE_DEVICES=0"]'
  printf '[nvidia-container-cli]\npath = "%s"\n' "$work/recorder" >"$config"
  printf '#!/bin/sh\nenv >%q\n' "$work/environment" >"$work/recorder"
  chmod 0755 "$work/recorder"
  edit_bundle --arg config "$config" '.hooks = {prestart: [{path: "/x", env: ["NVIDIA_CTK_CONFIG_FILE_PATH=\($config)", "B=2"]}]}'
  call "NVIDIA_CTK_CONFIG_FILE_PATH=$config" A=1 B=2
  grep -qx B=2 "$work/environment"
  run ! grep -q ^A= "$work/environment"
  rm "$work/environment"
  # Another value is not the engine's. The file would be an error, for a container without a GPU, too.
  edit_bundle '.process.env |= map(select(startswith("NVIDIA_") | not))'
  echo 'a = ' | tee "$root/bad.toml" >"$config"
  run -1 call "NVIDIA_CTK_CONFIG_FILE_PATH=$config"
  call NVIDIA_CTK_CONFIG_FILE_PATH=./bad.toml
  call NVIDIA_CTK_CONFIG_FILE_PATH=/proc/self/cwd/bad.toml
  edit_bundle 'del(.hooks)'
  call "NVIDIA_CTK_CONFIG_FILE_PATH=$config"
  [ ! -e "$victim/ran-on-the-host" ]
}

@test "a hook of a specification without an absolute path is refused: it would be the image's" {
  cp "$root/evil" "$root/true"
  specification '[{"hookName": "createContainer", "path": "true", "args": ["true"]}]'
  edits=('.process.env += ["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"]')
  run start A=1 "$programs/nvidia-container-runtime"
  [ "$status" -ne 0 ]
  [[ $output == *"the path of hook program 'true' is not absolute"* ]]
  [ ! -e "$victim/ran-on-the-host" ]
}

@test "so is one that somebody else put into config.json, with or without an environment" {
  local hook

  cp "$root/evil" "$root/true"
  for hook in '{path: "true", args: ["true"]}' '{path: "true", args: ["true"], env: ["A=1"]}'; do
    edits=(".hooks.createContainer = [$hook]")
    run start A=1 "$programs/nvidia-container-runtime"
    [ "$status" -ne 0 ]
    [[ $output == *"the path of hook program 'true' is not absolute"* ]]
    [ ! -e "$victim/ran-on-the-host" ]
  done
}

@test "what a specification can name needs no loader" {
  local name
  ! grep -q __asan_init "$programs/nvidia-ctk" || skip "sanitizers need a loader"
  for name in nvidia-ctk nvidia-cdi-hook nvidia-container-runtime-hook nvidia-container-toolkit; do
    run ! grep INTERP < <(readelf -lW "$programs/$name")
  done
}
