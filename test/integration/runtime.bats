# SPDX-License-Identifier: Apache-2.0
# nvidia-container-runtime in front of runc and crun: what it passes on, what it leaves alone, and how it fails.

load lib.bash

setup_file() {
  start_host dgx-h100
  install_runtime
}
teardown_file() { stop_host; }
setup() {
  test_setup
  runtime=$BATS_FILE_TMPDIR/programs/nvidia-container-runtime
  config=$work/config.toml
  : >"$config"
  export NVIDIA_CTK_CONFIG_FILE_PATH=$config
  unset XDG_CONFIG_HOME
  state=$work/runc
}
teardown() { test_teardown; }

install_runtime() {
  local name
  for name in nvidia-container-runtime nvidia-container-runtime.cdi nvidia-container-runtime.legacy; do
    install -m 0755 "$build/src/cli/runtime/$name" "$BATS_FILE_TMPDIR/programs"
  done
  cat >"$BATS_FILE_TMPDIR/programs/low-level.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
/* Says what it was started with. */
int main(int argc, char **argv)
{
	FILE *out = fopen(getenv("LOW_LEVEL_OUT"), "a");
	if (!out)
		return 99;
	for (int i = 0; i < argc; i++)
		fprintf(out, "word %s\n", argv[i]);
	for (int fd = 0; fd < 64; fd++)
		if (fd != fileno(out) && lseek(fd, 0, SEEK_CUR) != (off_t)-1)
			fprintf(out, "fd %d\n", fd);
	for (int i = 0; environ[i]; i++)
		fprintf(out, "env %s\n", environ[i]);
	fclose(out);
	return 42;
}
C
  cc -o "$BATS_FILE_TMPDIR/programs/low-level" "$BATS_FILE_TMPDIR/programs/low-level.c"
}

# A container without a GPU, that sleeps.
make_plain_bundle() {
  make_root small overlay
  new_bundle
  edit_bundle --arg root "$root" '.process.terminal = false | .process.args = ["sleep", "1000"] | del(.process.rlimits) |
    .root = {path: $root, readonly: false}'
}

edit_plain() { edit_bundle "$(piped "$@")"; }

# Whether config.json is the very same file.
config_json() {
  stat -c '%i %y %s %a %u' "$bundle/config.json"
  sha256sum "$bundle/config.json"
}

use_low_level() {
  printf 'nvidia-container-runtime.runtimes = ["%s"]\n' "$BATS_FILE_TMPDIR/programs/low-level" >>"$config"
  export LOW_LEVEL_OUT=$work/low-level.out
  : >"$LOW_LEVEL_OUT"
}

# The message of the last error in a file of JSON lines, as containerd's shim finds it.
last_error() {
  jq --slurp --raw-output 'map(select(.level == "error")) | last | .msg' "$1"
}

# lifecycle WORLD LOW-LEVEL-RUNTIME [OPTION...]: create, state, start, exec, kill, delete, all through the shim.
lifecycle() {
  local world=$1 low_level=$2
  shift 2
  printf 'nvidia-container-runtime.runtimes = ["%s"]\n' "$low_level" >"$config"
  make_plain_bundle
  config_json >"$work/before"
  mkdir -p "$state"
  local shim=("$world" "$runtime" "$@" --root "$state" --log "$work/log.json" --log-format json)
  "${shim[@]}" create --bundle "$bundle" --pid-file "$work/pid" "$container" </dev/null >"$work/out" 2>&1
  run "${shim[@]}" state "$container"
  [ "$(jq -r .status <<<"$output")" = created ]
  "${shim[@]}" start "$container"
  run "${shim[@]}" exec "$container" echo inside --version
  [ "$status" -eq 0 ]
  [ "$output" = "inside --version" ]
  "${shim[@]}" kill "$container" KILL
  stops "${shim[@]}"
  "${shim[@]}" delete "$container"
  run "${shim[@]}" state "$container"
  [ "$status" -ne 0 ]
  config_json >"$work/after"
  diff "$work/before" "$work/after"
  run ! grep -i nvidia "$work/log.json"
}

@test "runc: the life of a container without a GPU; config.json is not touched" {
  lifecycle on_host runc
}

@test "crun: the life of a container without a GPU; config.json is not touched" {
  lifecycle v2 crun --cgroup-manager=disabled
}

@test "run is forwarded as it is" {
  make_plain_bundle
  edit_plain '.process.args = ["/bin/echo", "inside"]' '.process.env += ["NVIDIA_VISIBLE_DEVICES=0"]' \
    '.hooks = {poststop: [{path: "/bin/true"}]}'
  config_json >"$work/before"
  run on_host "$runtime" --root "$state" run --bundle "$bundle" "$container"
  [ "$status" -eq 0 ]
  [ "$output" = inside ]
  config_json >"$work/after"
  diff "$work/before" "$work/after"
}

@test "words, environment and descriptors reach the low-level runtime as they came" {
  use_low_level
  make_plain_bundle
  # The first is what comes without us.
  for program in "$BATS_FILE_TMPDIR/programs/low-level" "$runtime"; do
    : >"$LOW_LEVEL_OUT"
    run env -i HOME=/x "A=b c" LD_DEBUG= NVIDIA_CTK_CONFIG_FILE_PATH="$config" LOW_LEVEL_OUT="$LOW_LEVEL_OUT" \
      "$program" --root "a b" --log= create --bundle "$bundle" -- '*' 7</dev/null </dev/null >"$work/o" 2>"$work/e"
    [ "$status" -eq 42 ]
    sed "1s:$runtime\$:$BATS_FILE_TMPDIR/programs/low-level:" "$LOW_LEVEL_OUT" >"$work/of-${program##*/}"
  done
  diff "$work/of-low-level" "$work/of-nvidia-container-runtime"
  for wanted in "word $BATS_FILE_TMPDIR/programs/low-level" "word a b" "word --log=" "word --" "word *" "fd 7" "env A=b c"; do
    grep -qxF "$wanted" "$work/of-nvidia-container-runtime"
  done
}

@test "the bundle is the working directory when none is named" {
  use_low_level
  make_plain_bundle
  edit_plain '.hooks = {prestart: [{path: "/x/nvidia-container-runtime-hook"}, {path: "/x/other"}]}'
  (cd "$bundle" && run -42 "$runtime" create "$container")
  [ "$(jq -c .hooks "$bundle/config.json")" = '{"prestart":[{"path":"/x/other"}]}' ]
  edit_plain '.hooks = {prestart: [{path: "/x/nvidia-container-toolkit"}]}'
  (cd "$bundle" && run -42 "$runtime" create --bundle= "$container")
  [ "$(jq -c .hooks "$bundle/config.json")" = '{}' ]
}

@test "create without a value of --bundle fails" {
  use_low_level
  run "$runtime" create --bundle
  [ "$status" -eq 1 ]
  [[ $output == *'bundle option requires an argument'* ]]
  [ ! -s "$LOW_LEVEL_OUT" ]
}

@test "a container without a GPU: NVIDIA's hook goes, all else stays" {
  use_low_level
  make_plain_bundle
  edit_plain '.unknown = {"a": 1}' '.hooks = {prestart: [{path: "/usr/bin/nvidia-container-runtime-hook", args: ["x"]}]}'
  # Numbers as no ordinary reader keeps them.
  sed -i 's/"a": 1/"a": 18446744073709551615, "b": 1.50e2/' "$bundle/config.json"
  chmod 0640 "$bundle/config.json"
  chown 1:2 "$bundle/config.json"
  cp "$bundle/config.json" "$work/before"
  run "$runtime" create --bundle "$bundle" "$container"
  [ "$status" -eq 42 ]
  [ "$(stat -c '%a %u %g' "$bundle/config.json")" = "640 1 2" ]
  [ "$(ls -A "$bundle")" = config.json ]
  grep -q '"a": 18446744073709551615, "b": 1.50e2' "$bundle/config.json"
  diff <(jq -S 'del(.hooks)' "$work/before") <(jq -S 'del(.hooks)' "$bundle/config.json")
  [ "$(jq -c .hooks "$bundle/config.json")" = '{}' ]
}

@test "legacy: every container gets the hook, once" {
  use_low_level
  make_plain_bundle
  printf '[nvidia-container-runtime-hook]\npath = "/opt/nvidia-container-runtime-hook"\n' >>"$config"
  for _ in 1 2; do
    run "$runtime.legacy" create --bundle "$bundle" "$container"
    [ "$status" -eq 42 ]
    [ "$(jq -c '.hooks.prestart | map(del(.env))' "$bundle/config.json")" = \
      '[{"path":"/opt/nvidia-container-runtime-hook","args":["nvidia-container-runtime-hook","prestart"]}]' ]
    # What the hook reads of our environment, and no more: it believes what stands here alone.
    jq -e --arg config "$config" --arg path "PATH=$PATH" '.hooks.prestart[0].env | sort == (["NVIDIA_CTK_CONFIG_FILE_PATH=\($config)", $path] | sort)' "$bundle/config.json"
  done
  # Of any path, and of the old name.
  edit_plain '.hooks = {prestart: [{path: "/x/nvidia-container-toolkit"}]}'
  config_json >"$work/before"
  run "$runtime.legacy" create --bundle "$bundle" "$container"
  config_json >"$work/after"
  diff "$work/before" "$work/after"
}

# bats test_tags=arm64
@test "legacy with runc: one GPU of eight, and another container without the variable has none" {
  make_root debian overlay
  mkdir -p "$state"
  new_bundle
  edit_bundle --arg root "$root" '.process.terminal = false | .process.args = ["/probe"] | del(.process.rlimits) |
    .root = {path: $root, readonly: false} | .process.env += ["NVIDIA_VISIBLE_DEVICES=0"]'
  probe_through_shim
  expect_one_gpu
  edit_plain '.process.env -= ["NVIDIA_VISIBLE_DEVICES=0"]' 'del(.hooks)'
  layer "$(image debian)" "$root"
  on_host install -m 0755 "$top/test/integration/probe" "$root/probe"
  probe_through_shim
  expect nvidia-smi failed
  expect ls-nvidia ""
}

# create and start by the legacy runtime; the answers of /probe into $output.
probe_through_shim() {
  local shim=(on_host "$runtime.legacy" --root "$state")
  "${shim[@]}" create --bundle "$bundle" "$container" </dev/null >"$work/answers" 2>&1 || die "$(cat "$work/answers")"
  "${shim[@]}" start "$container"
  stops "${shim[@]}"
  "${shim[@]}" delete "$container"
  output=$(cat "$work/answers")
  read_answers
}

@test "the three programs differ in the mode alone, whatever they are called" {
  use_low_level
  printf 'nvidia-container-runtime.mode = "none-such"\n' >>"$config"
  make_plain_bundle
  run "$runtime" create --bundle "$bundle" "$container"
  [ "$status" -eq 1 ]
  [[ $output == *'invalid mode \"none-such\"'* ]]
  cp "$runtime.legacy" "$work/nvidia-container-runtime.cdi.real"
  run "$work/nvidia-container-runtime.cdi.real" create --bundle "$bundle" "$container"
  [ "$status" -eq 42 ]
  [ "$(jq '.hooks.prestart | length' "$bundle/config.json")" = 1 ]
  cp "$runtime.cdi" "$work/x"
  run bash -c 'exec -a nvidia-container-runtime.legacy "$@"' - "$work/x" create --bundle "$bundle" "$container"
  [ "$status" -eq 42 ]
  [ "$(jq -c '.hooks' "$bundle/config.json")" = '{}' ]
}

@test "a failure is one line in --log that engines can read, with cause and remedy" {
  printf 'nvidia-container-runtime.mode = "cdi"\n[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["%s"]\n' "$work/none" >"$config"
  use_low_level
  make_plain_bundle
  edit_plain '.process.env += ["NVIDIA_VISIBLE_DEVICES=0"]'
  config_json >"$work/before"
  printf '{"level":"info","msg":"earlier","time":"2026-01-01T00:00:00Z"}\n' >"$work/log.json"
  run --separate-stderr "$runtime" --root "$state" --log "$work/log.json" --log-format json create --bundle "$bundle" "$container"
  [ "$status" -eq 1 ]
  [ "$output" = "" ]
  [ ! -s "$LOW_LEVEL_OUT" ]
  [ "$(head -n 1 "$work/log.json" | jq -r .msg)" = earlier ]
  message=$(last_error "$work/log.json")
  [[ $message == 'could not apply required modification to OCI specification: error modifying OCI spec: '* ]]
  # The same once more, as text.
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  [[ $stderr =~ ^time=\"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z\"\ level=error\ msg=\" ]]
  [[ $stderr == *"${message//\"/\\\"}"* ]]
  config_json >"$work/after"
  diff "$work/before" "$work/after"
}

@test "config.json: not there, damaged" {
  use_low_level
  mkdir -p "$bundle"
  run "$runtime" --log "$work/log.json" --log-format json create --bundle "$bundle/" "$container"
  [ "$status" -eq 1 ]
  [[ $(last_error "$work/log.json") == "error opening OCI specification file '$bundle/"*"config.json': no such file or directory"* ]]
  printf '{\n  "ociVersion": 1.}' >"$bundle/config.json"
  run "$runtime" --log "$work/log.json" --log-format json create --bundle "$bundle" "$container"
  [ "$status" -eq 1 ]
  [[ $(last_error "$work/log.json") == "error loading OCI specification from file: error reading OCI specification: "*"line 2"* ]]
  [ ! -s "$LOW_LEVEL_OUT" ]
}

@test "config.toml: malformed, wrong, unreadable; the error reaches --log" {
  local row
  while IFS='|' read -r toml row; do
    printf '%b' "$toml" >"$config"
    rm -f "$work/log.json"
    run "$runtime" --log "$work/log.json" --log-format json state "$container"
    [ "$status" -eq 1 ]
    [[ $output == *"error loading config: failed to load specified config file: "* ]]
    [[ $(last_error "$work/log.json") == "error loading config: failed to load specified config file: $config$row"* ]] ||
      die "$(cat "$work/log.json")"
  done <<'EOF'
\n[features\n|: line 2, column
nvidia-container-runtime.runtimes = "runc"|: line 1, column 37: nvidia-container-runtime.runtimes is "runc"; allowed: a list of strings
\n\ndisable-require = 1|: line 3, column 19: disable-require is 1; allowed: true or false
nvidia-container-cli.ldconfig = "/sbin/ldconfig"|: line 1, column 33: invalid config value: nvidia-container-cli.ldconfig value "/sbin/ldconfig" is not host-relative (does not start with a '@')
EOF
  NVIDIA_CTK_CONFIG_FILE_PATH=$work run "$runtime" state "$container"
  [ "$status" -eq 1 ]
  [[ $output == *"open failed: $work: not a regular file"* ]]
}

@test "config.toml is looked for where it is said; without one there are the defaults" {
  use_low_level
  printf 'nvidia-container-runtime.runtimes = []\n' >"$work/other.toml"
  mkdir -p "$work/xdg/nvidia-container-runtime"
  cp "$work/other.toml" "$work/xdg/nvidia-container-runtime/config.toml"
  XDG_CONFIG_HOME=$work/xdg run "$runtime" state x # the named file counts
  [ "$status" -eq 42 ]
  NVIDIA_CTK_CONFIG_FILE_PATH='' XDG_CONFIG_HOME=$work/xdg run "$runtime" state x
  [ "$status" -eq 1 ]
  [[ $output == *"at least one runtime candidate must be specified (nvidia-container-runtime.runtimes in $work/xdg/nvidia-container-runtime/config.toml)"* ]]
  NVIDIA_CTK_CONFIG_FILE_PATH=$work/none run on_host "$runtime" --version
  [ "$status" -eq 0 ]
  [[ $output == *"runc version"* ]]
}

@test "--version: ours, an empty line, the low-level runtime's; and no log file" {
  run "$runtime" --log "$work/log.json" --debug --version
  [ "$status" -eq 0 ]
  [[ ${lines[0]} =~ ^"NVIDIA Container Runtime version "[0-9]+\.[0-9]+\.[0-9]+ ]]
  [[ ${lines[1]} =~ ^"commit: "[0-9a-f]{40}$ ]] || [ "${lines[1]}" = "commit: unknown" ]
  [ "${lines[2]}" = "spec: 1.3.0" ]
  [[ ${lines[3]} == "runc version "* ]]
  "$runtime" --version | sed -n 4p | grep -qx ''
  [ ! -e "$work/log.json" ]
  # Without a low-level runtime the first lines are all there is.
  printf 'nvidia-container-runtime.runtimes = ["/none"]' >"$config"
  run "$runtime" --version
  [ "$status" -eq 1 ]
  [[ $output == *"spec: 1.3.0"*"no runtime binary found from candidate list: [/none]"* ]]
}

@test "--version of what exec runs is not ours" {
  use_low_level
  run "$runtime" exec x tool --version
  [ "$status" -eq 42 ]
  [ "$output" = "" ]
}

# Every one of these would never end; each has a limit here.
@test "the shim never becomes itself" {
  mkdir -p "$work/path"
  export PATH=$work/path:$PATH
  make_plain_bundle
  # By another name, before the true one.
  ln -s "$runtime" "$work/path/runc"
  run timeout 10 "$runtime" --version
  [ "$status" -eq 0 ]
  [[ $output == *"runc version"* ]]
  rm "$work/path/runc"
  ln "$runtime" "$work/path/runc"
  run timeout 10 "$runtime" --version
  [ "$status" -eq 0 ]
  rm "$work/path/runc"
  # As the only candidate, by path, by link, by the name of its kind, through /proc.
  cp "$runtime" "$work/path/nvidia-container-runtime"
  cp "$runtime.cdi" "$work/path/nvidia-container-runtime.cdi"
  ln -s "$work/path/nvidia-container-runtime" "$work/path/link"
  for candidate in "$runtime" "$work/path/link" nvidia-container-runtime nvidia-container-runtime.cdi /proc/self/exe; do
    printf 'nvidia-container-runtime.runtimes = ["%s"]' "$candidate" >"$config"
    run timeout 10 "$work/path/nvidia-container-runtime" state x
    [ "$status" -eq 1 ]
    [[ $output == *"no runtime binary found from candidate list: [$candidate]"*"is this program itself"*"install runc or crun"* ]]
  done
}

@test "a wrapper that calls the shim again is refused; one that calls runc is not" {
  mkdir -p "$work/path"
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$runtime" >"$work/path/runc"
  chmod 0755 "$work/path/runc"
  PATH=$work/path:$PATH run timeout 10 "$runtime" --log "$work/log.json" --log-format json state x
  [ "$status" -eq 1 ]
  [[ $(last_error "$work/log.json") == *"'$work/path/runc' is a script that calls this program again"* ]]
  # Not by exec, but as a child.
  printf '#!/bin/sh\n"%s" "$@"\nexit $?\n' "$runtime" >"$work/path/runc"
  PATH=$work/path:$PATH run timeout 10 "$runtime" state x
  [ "$status" -eq 1 ]
  [[ $output == *"calls this program again"* ]]
  printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v runc)" >"$work/path/runc"
  PATH=$work/path:$PATH run timeout 10 "$runtime" --version
  [ "$status" -eq 0 ]
  [[ $output == *"runc version"* ]]
}

@test "nothing in the bundle is taken for the low-level runtime" {
  make_plain_bundle
  printf '#!/bin/sh\ntouch "%s"\n' "$work/taken" >"$bundle/runc"
  chmod 0755 "$bundle/runc"
  cd "$bundle"
  PATH=:.:$PATH run "$runtime" --version
  [ "$status" -eq 0 ]
  [ ! -e "$work/taken" ]
}

@test "debug: a line for each decision, in both files" {
  use_low_level
  printf 'nvidia-container-runtime.debug = "%s"\n' "$work/new/dir/debug.log" >>"$config"
  make_plain_bundle
  run "$runtime" --debug --log "$work/log" create --bundle "$bundle" "$container"
  [ "$status" -eq 42 ]
  diff "$work/log" "$work/new/dir/debug.log"
  for wanted in "configuration: $config" "low-level runtime is" "the container asks for no GPU" "config.json stays unchanged" becoming; do
    grep -q "^time=\"[^\"]*\" level=debug msg=\".*$wanted" "$work/log" || die "no '$wanted': $(cat "$work/log")"
  done
  # Without it a container that has no GPU is not worth a line, nor a file.
  rm -r "$work/log" "$work/new"
  run "$runtime" --log "$work/log" create --bundle "$bundle" "$container"
  [ ! -e "$work/log" ]
  [ ! -e "$work/new" ]
  # A word that is no level is a warning.
  printf 'nvidia-container-runtime.log-level = "loud"\n' >>"$config"
  run "$runtime" --log "$work/log" state x
  grep -q "level=warning msg=\"Error getting log level: invalid log-level 'loud'" "$work/log"
}

# traced WORD...: the system calls of the shim alone, up to its becoming the low-level runtime.
traced() {
  on_host strace -o "$work/trace" "$runtime" "$@" || [ $? -eq 42 ]
  awk '/^execve/ && NR > 1 { exit } { print }' "$work/trace"
}

@test "without a GPU nothing of the driver is looked at, and little is done" {
  use_low_level
  make_plain_bundle
  traced create --bundle "$bundle" "$container" >"$work/calls"
  run ! grep -E 'nvidia(-smi|-ml|[0-9]|ctl|-caps)|/proc/driver|/dev/|/sys/|libcuda|libdxcore|nv_tegra|O_WRONLY|O_RDWR|clone|fork' "$work/calls"
  # Behind what the loader does. The limits are what it takes today and a few.
  [ "$(sed -n '/F_GETFD/,$p' "$work/calls" | wc -l)" -le 32 ] || die "$(cat "$work/calls")"
  traced state x >"$work/calls"
  [ "$(sed -n '/F_GETFD/,$p' "$work/calls" | wc -l)" -le 20 ] || die "$(cat "$work/calls")"
}

@test "a key of config.toml that nobody reads: one warning for a container, and it starts" {
  printf 'debug = "x"\n[nvidia-container-runtime]\nruntimes = ["%s"]\ndebug = "%s"\nlog_level = "debug"\n' "$BATS_FILE_TMPDIR/programs/low-level" "$work/log" >"$config"
  make_plain_bundle
  export LOW_LEVEL_OUT=$work/low-level.out
  run "$runtime" create --bundle "$bundle" "$container"
  [ "$status" -eq 42 ] || die "$status $output"
  grep -q "level=warning msg=\"$config: line 1: ignoring unknown key 'debug' (did you mean 'nvidia-container-cli.debug'?)" "$work/log" || die "$(cat "$work/log")"
  [ "$(grep -c "line 5: ignoring unknown key 'nvidia-container-runtime.log_level' (did you mean 'log-level'?)" "$work/log")" -eq 1 ]
  run "$runtime" state "$container"
  [ "$status" -eq 42 ]
  [ "$(grep -c 'ignoring unknown' "$work/log")" -eq 2 ]
}
