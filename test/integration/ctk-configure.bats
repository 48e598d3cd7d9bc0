# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk runtime configure: engines' files in a directory of the test. What it prints, writes, keeps, refuses and undoes. The engines are
# stand-ins unless a test names a real one; ctk-runtime-configure.bats uses real ones.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  ctk=$build/src/cli/ctk/nvidia-ctk
  work=$BATS_TEST_TMPDIR
  cd "$work"
  mkdir etc bin
  config=$work/etc/config.toml
  drop_in=$work/etc/conf.d/99-nvidia.toml
  binary=/usr/bin/nvidia-container-runtime
  # No engine is found, but for those that a test puts there.
  path=$work/bin:/usr/bin/../bin-of-nobody
}

# configure WORD...: $status, $output and $stderr.
configure() {
  run --separate-stderr env PATH="$path" "$ctk" runtime configure "$@"
}
succeeds() { [ "$status" -eq 0 ] || { echo "status $status: $stderr"; return 1; }; }
fails() {
  [ "$status" -eq 1 ] || { echo "status $status: $stderr"; return 1; }
  says error "$1"
}
# says LEVEL TEXT: some line of the log has the text.
says() { grep -qF -- "$(printf 'level=%s msg="%s' "$1" "$2")" <<<"$stderr" || { echo "no $1 '$2' in: $stderr"; return 1; }; }
silent_about() { [[ $stderr != *"$1"* ]] || { echo "'$1' in: $stderr"; return 1; }; }

# engine NAME <<SCRIPT: a stand-in.
engine() {
  { printf '#!/bin/sh\nPATH=/usr/bin:/bin\n'; cat; } >"bin/$1"
  chmod +x "bin/$1"
}

# means FILE <<TEXT: both are the same data.
means() {
  python3 -c '
import json, sys, tomllib
read = json.loads if sys.argv[1].endswith(".json") else tomllib.loads
there, wanted = read(open(sys.argv[1]).read()), read(sys.stdin.read())
if there != wanted:
    sys.exit(f"{sys.argv[1]}:\n{there}\nwanted:\n{wanted}")' "$1"
}
containerd() { configure --runtime=containerd --config="$config" --drop-in-config="$drop_in" "$@"; }
crio() { configure --runtime=crio --config="$config" --drop-in-config="$drop_in" "$@"; }
docker() { configure --config="$work/etc/daemon.json" "$@"; }
podman() { configure --runtime=podman --config="$config" --drop-in-config="$work/etc/conf.d/99-nvidia.conf" "$@"; }

# ---- what is refused, in which order and words ----

@test "flags that are refused, before anything is read or written" {
  local words message
  while IFS='|' read -r words message; do
    # shellcheck disable=SC2086
    configure $words
    fails "$message"
    [ -z "$output" ]
  done <<'TABLE'
--runtime invalid|unrecognized runtime 'invalid'
--runtime invalid --nvidia-runtime-path x --config-source y|unrecognized runtime 'invalid'
--runtime containerd --nvidia-runtime-path bin/x|the NVIDIA runtime path \"bin/x\" is not an absolute path
--runtime crio --runtime-path x --config-source y|the NVIDIA runtime path \"x\" is not an absolute path
--runtime podman --runtime-path x|the NVIDIA runtime path \"x\" is not an absolute path
--runtime containerd --config-source x --drop-in-config y|unrecognized Config Source: x
--runtime docker --drop-in-config /x|runtime docker does not support drop-in configs
--runtime containerd --drop-in-config x|the drop-in-config path \"x\" is not an absolute path
--config-mode oci-hook --nvidia-runtime-hook-path x|the NVIDIA runtime hook path \"x\" is not an absolute path
--config-mode hook --runtime invalid --nvidia-runtime-hook-path x|the NVIDIA runtime hook path \"x\" is not an absolute path
TABLE
  [ -z "$(ls etc)" ]
}

@test "flags that are passed over with a warning" {
  docker --config-mode invalid --executable-path /x --config-source command
  succeeds
  says warning 'Ignoring unsupported config mode for docker: \"invalid\"'
  says warning 'Ignoring executable-path=\"/x\" flag for docker'
  says warning 'A command Config Source is not supported for docker; using file'
  crio --cdi.enabled
  says warning 'Ignoring cdi.enabled flag for crio'
  podman --enable-cdi
  says warning 'Ignoring cdi.enabled flag for podman'
  for mode in config-file config; do
    docker --config-mode "$mode"
    silent_about warning
  done
}

# ---- the documents ----

@test "docker: a new file, to the byte" {
  docker
  succeeds
  says info 'Config file does not exist; using empty config'
  says info "Wrote updated config to $work/etc/daemon.json"
  says info 'It is recommended that docker daemon be restarted.'
  [ -z "$output" ]
  [ "$(cat etc/daemon.json)" = '{
    "runtimes": {
        "nvidia": {
            "args": [],
            "path": "nvidia-container-runtime"
        }
    }
}' ]
  [ "$(stat -c %a etc/daemon.json)" = 644 ]
  [ "$(ls -A etc)" = $'daemon.json\ndaemon.json.nvidia-ctk.bak' ]
}

@test "docker: default runtime and CDI beside what is there" {
  printf '{\n\t"features": {"buildkit": true},\n\t"log-opts": {"max-size": "1m"} }' >etc/daemon.json
  docker --nvidia-set-as-default --cdi.enabled --nvidia-runtime-name=gpu --runtime-path=/opt/run
  succeeds
  says info "Loading config from $work/etc/daemon.json"
  means etc/daemon.json <<<'{"features": {"buildkit": true, "cdi": true}, "log-opts": {"max-size": "1m"}, "default-runtime": "gpu",
    "runtimes": {"gpu": {"path": "/opt/run", "args": []}}}'
  [[ $(cat etc/daemon.json) == *$'\n\t"log-opts": {"max-size": "1m"},\n'* ]]
}

@test "containerd: a fresh host" {
  containerd
  succeeds
  says warning 'Could not infer options from runtimes [runc crun]'
  says info 'Using config version 2'
  says info 'Using CRI runtime plugin name \"io.containerd.grpc.v1.cri\"'
  says info 'It is recommended that containerd daemon be restarted.'
  means "$config" <<<"imports = [\"$work/etc/conf.d/*.toml\"]
version = 2"
  means "$drop_in" <<'TOML'
version = 2

[plugins]

  [plugins."io.containerd.grpc.v1.cri"]

    [plugins."io.containerd.grpc.v1.cri".containerd]

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes]

        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
          privileged_without_host_devices = false
          runtime_engine = ""
          runtime_root = ""
          runtime_type = "io.containerd.runc.v2"

          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
            BinaryName = "/usr/bin/nvidia-container-runtime"
TOML
  [ "$(stat -c %a "$drop_in")" = 644 ] && [ "$(stat -c %a etc/conf.d)" = 755 ]
}

@test "containerd: default runtime, CDI, and back to runc" {
  printf 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\ndefault_runtime_name = "runc"\n' >"$config"
  cp "$config" before
  containerd --set-as-default --cdi.enabled
  succeeds
  grep -q '^default_runtime_name = "nvidia"$' "$drop_in"
  grep -q '^enable_cdi = true$' "$drop_in"
  containerd
  succeeds
  grep -q '^default_runtime_name = "runc"$' "$drop_in"
  run ! grep -q enable_cdi "$drop_in"
}

@test "containerd: a version 1 file is edited itself, and its comments stay" {
  printf '# one\n[plugins.cri.containerd.runtimes.runc] # runc\nruntime_type = "io.containerd.runc.v1"\n' >"$config"
  containerd
  succeeds
  says warning "A containerd configuration of version 1 has no drop-in files: editing $config itself"
  [ ! -e "$drop_in" ]
  [ "$(head -n 3 "$config")" = "$(cat etc/config.toml.nvidia-ctk.bak)" ]
  means "$config" <<<"[plugins.cri.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v1'
[plugins.cri.containerd.runtimes.nvidia]
runtime_type = 'io.containerd.runc.v1'
options = { BinaryName = '$binary', Runtime = '$binary' }"
}

@test "containerd 2.1: a drop-in with our keys alone; 1.7: a copy of the section" {
  printf 'version = 3\n[plugins."io.containerd.cri.v1.runtime"]\nx = 1\n' >"$config"
  engine containerd <<'SH'
[ "$1" = --version ] || exit 0
echo "containerd github.com/containerd/containerd/v2 v2.1.4 x"
SH
  containerd --executable-path=containerd
  succeeds
  run ! grep -q '^x = 1' "$drop_in"
  engine containerd <<'SH'
[ "$1" = --version ] || exit 0
echo "containerd github.com/containerd/containerd v1.7.27 x"
SH
  containerd --executable-path=containerd
  succeeds
  grep -q '^x = 1' "$drop_in"
  # Files elsewhere may be another containerd's, so the release of this one does not count.
  engine containerd <<SH
echo "\$*" >>$work/asked
echo "containerd github.com/containerd/containerd/v2 v2.1.4 x"
SH
  rm "$drop_in"
  containerd
  succeeds
  grep -q '^x = 1' "$drop_in"
  run ! grep -q -- --version asked
}

@test "crio: the drop-in alone; without one the file keeps all that is in it" {
  printf '# mine\n[crio.runtime.runtimes.runc]\nruntime_path = "/r"\nmonitor_path = "/c" # monitor\n' >"$config"
  cp "$config" before
  crio --set-as-default
  succeeds
  cmp "$config" before
  means "$drop_in" <<<"[crio.runtime]
default_runtime = 'nvidia'
[crio.runtime.runtimes.nvidia]
runtime_path = '$binary'
runtime_type = 'oci'
monitor_path = '/c'"
  configure --runtime=crio --config="$config" --drop-in-config=
  succeeds
  [ "$(head -n 4 "$config")" = "$(cat before)" ]
  means "$config" <<<"[crio.runtime.runtimes.runc]
runtime_path = '/r'
monitor_path = '/c'
[crio.runtime.runtimes.nvidia]
runtime_path = '$binary'
runtime_type = 'oci'
monitor_path = '/c'"
}

@test "podman: a runtime; a hook in a directory that Podman has to be told of" {
  podman --set-as-default
  succeeds
  says info 'podman reads it at its next call: nothing has to be restarted.'
  means etc/conf.d/99-nvidia.conf <<<'{}' && return 1
  means etc/conf.d/99-nvidia.conf <<<"[engine]
runtime = 'nvidia'
runtimes = { nvidia = ['$binary'] }"
  podman --undo
  podman --config-mode oci-hook --oci-hook-path "$work/etc/hooks.d/nvidia.json"
  succeeds
  silent_about deprecated
  means etc/conf.d/99-nvidia.conf <<<"engine.hooks_dir = ['/usr/share/containers/oci/hooks.d', '$work/etc/hooks.d']"
  means etc/hooks.d/nvidia.json <<<'{"version": "1.0.0", "hook": {"path": "/usr/bin/nvidia-container-runtime-hook",
    "args": ["nvidia-container-runtime-hook", "prestart"], "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
    "when": {"always": true, "commands": [".*"]}, "stages": ["prestart"]}'
  podman --config-mode oci-hook --oci-hook-path "$work/etc/hooks.d/nvidia.json" --undo
  succeeds
  [ -z "$(find etc -type f)" ]
}

@test "oci-hook mode: to stdout, to a file, again, and back" {
  configure --config-mode oci-hook
  succeeds
  says warning 'The \"oci-hook\" config-mode is deprecated'
  printf '%s\n' "$output" >printed
  python3 -m json.tool printed >/dev/null
  configure --config-mode hook --runtime whatever --oci-hook-path "$work/new/hook.json"
  succeeds
  cmp printed new/hook.json
  configure --config-mode hook --oci-hook-path "$work/new/hook.json"
  says info "$work/new/hook.json already exists: nothing was changed."
  echo >>new/hook.json
  configure --config-mode hook --oci-hook-path "$work/new/hook.json" --undo
  says warning "$work/new/hook.json has been changed since, so it is kept"
  cp printed new/hook.json
  configure --config-mode hook --oci-hook-path "$work/new/hook.json" --undo
  succeeds
  [ ! -e new/hook.json ]
}

# ---- seeing it first ----

@test "--dry-run: the documents on stdout, labels and differences on stderr, nothing written" {
  printf '# mine\nversion = 2\n' >"$config"
  containerd --dry-run
  succeeds
  [ "$(grep -c '^version = 2$' <<<"$output")" -eq 2 ]
  [[ $output == *"BinaryName = \"$binary\""*"# mine"* ]]
  says info 'Drop-in config:'
  says info 'Top-level config:'
  [[ $stderr == *$'\n--- /dev/null\n+++ '"$drop_in"$'\n'* ]]
  [[ $stderr == *$'\n--- '"$config"$'\n+++ '"$config"$'\n@@ -1,2 +1,3 @@\n # mine\n version = 2\n+imports = '* ]]
  [ "$(cat "$config")" = $'# mine\nversion = 2' ] && [ ! -e etc/conf.d ]
  # The difference is one that patch takes.
  patch --quiet etc/config.toml < <(sed -n "/^--- ${config//\//\\/}/,\$p" <<<"$stderr")
  grep -q '^imports = ' "$config"
  docker --dry-run
  [[ $output == '{'*'"nvidia-container-runtime"'* ]]
  [ ! -e etc/daemon.json ]
}

@test "--dry-run reads a pipe; what would be written must be a file" {
  local engine
  printf '# mine\nversion = 2\n' >"$config"
  containerd --dry-run
  local plain=$output
  [[ $plain == *nvidia* ]]
  run --separate-stderr bash -c 'cat "$1" | PATH=$2 "$3" runtime configure --runtime=containerd --drop-in-config="$4" --dry-run --config=-' \
    - "$config" "$path:/bin" "$ctk" "$drop_in"
  succeeds
  [ "$output" = "$plain" ]
  says info 'Loading config from standard input'
  [[ $stderr == *$'\n--- standard input\n+++ standard input\n'* ]]
  for engine in docker crio podman; do
    run --separate-stderr bash -c 'printf "" | PATH=$1 "$2" runtime configure --runtime="$3" --dry-run --config=/dev/stdin' - "$path" "$ctk" "$engine"
    succeeds
    [[ $output == *nvidia-container-runtime* ]]
  done
  run --separate-stderr bash -c 'cat "$1" | "$2" runtime configure --runtime=containerd --drop-in-config= --config=/dev/stdin' - "$config" "$ctk"
  fails 'unable to load config for runtime containerd: /dev/stdin is not a file, so it cannot be changed; --dry-run prints the result'
  run --separate-stderr bash -c 'head -c 17M /dev/zero | "$1" runtime configure --dry-run --config=-' - "$ctk"
  fails 'unable to load config for runtime docker: unable to read config: cannot read standard input: file too large'
  [ "$(cat "$config")" = $'# mine\nversion = 2' ] && [ ! -e etc/conf.d ]
}

# ---- again, and back ----

@test "a second time changes no byte, no inode and no time, and says so" {
  local engine before
  for engine in docker containerd crio podman; do
    rm -rf etc && mkdir etc
    "$engine" --set-as-default
    succeeds
    before=$(find etc -printf '%p %i %T@ %C@ %s\n')
    "$engine" --set-as-default
    succeeds
    says info "$engine is configured already: nothing was changed, and it need not be restarted."
    silent_about 'recommended'
    [ "$(find etc -printf '%p %i %T@ %C@ %s\n')" = "$before" ]
  done
}

@test "--undo takes away what was made, and gives back the bytes that were there" {
  local engine
  for engine in docker containerd crio podman; do
    rm -rf etc && mkdir -p etc/conf.d
    "$engine" --set-as-default --cdi.enabled
    "$engine"
    "$engine" --undo
    succeeds
    [ -z "$(find etc -type f)" ]
    "$engine" --undo
    succeeds
    says info "There is nothing to undo: nothing was changed, and $engine need not be restarted."
    printf '# old\nversion = 2 # two\nx = [ 1,2 ]\n' | tee "$config" >before
    printf '# drop-in\n\n[z]\n' | tee "$drop_in" >etc/conf.d/99-nvidia.conf
    printf '{ "mtu":1500}' >etc/daemon.json
    cp etc/daemon.json daemon
    "$engine" --set-as-default
    "$engine" --nvidia-runtime-path=/other
    "$engine" --undo
    succeeds
    cmp "$config" before
    cmp etc/daemon.json daemon
    [ "$(cat "$drop_in")" = $'# drop-in\n\n[z]' ]
    [ "$(cat etc/conf.d/99-nvidia.conf)" = $'# drop-in\n\n[z]' ]
    [ -z "$(find etc -name '*.bak')" ]
  done
}

@test "--undo removes the folders that were created, unless others put something into them" {
  local engine file
  for engine in docker containerd crio podman; do
    for file in '' etc/other etc/conf.d/other; do
      rm -rf etc
      "$engine" --set-as-default
      succeeds
      [ -d etc ]
      [ -z "$file" ] || { mkdir -p etc/conf.d && echo x >"$file"; }
      # A second time keeps the record of the first.
      "$engine" --set-as-default --nvidia-runtime-path=/other
      succeeds
      "$engine" --undo
      succeeds
      case $file in
      '') [ ! -e etc ] ;;
      etc/other) [ "$(find etc -mindepth 1 ! -name conf.d)" = etc/other ] ;;
      *) [ "$(find etc -type f)" = etc/conf.d/other ] ;;
      esac
    done
  done
  rm -rf etc
  # Folders that were there stay.
  mkdir etc
  crio
  crio --undo
  succeeds
  [ "$(find etc)" = etc ]
  # A record that was edited removes no other folder, and a link is none.
  rm -rf etc
  mkdir -p elsewhere/empty
  docker
  printf '# nvidia-ctk: there was no such file\n# nvidia-ctk: there was no folder %s\n' "$work/elsewhere/empty" >etc/daemon.json.nvidia-ctk.bak
  docker --undo
  succeeds
  [ -d etc ] && [ -d elsewhere/empty ]
  rm -rf etc
  docker
  mv etc real
  ln -s real etc
  docker --undo
  succeeds
  [ -L etc ] && [ -z "$(ls -A real)" ]
  rm -r etc real
  # A hook of Podman.
  mkdir etc
  run -0 "$ctk" runtime configure --runtime=podman --config-mode=oci-hook --oci-hook-path="$work/etc/a/hooks.d/x.json"
  [ -e etc/a/hooks.d/x.json ]
  run -0 "$ctk" runtime configure --runtime=podman --config-mode=oci-hook --oci-hook-path="$work/etc/a/hooks.d/x.json" --undo
  [ -z "$(ls -A etc)" ]
}

@test "--undo leaves what others changed since" {
  printf 'version = 2\n' >"$config"
  containerd --set-as-default
  printf '\n# new\n[metrics]\naddress = "x"\n' >>"$config"
  printf '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.other.options]\nBinaryName = "/x/nvidia-container-runtime.cdi"\n' >>"$drop_in"
  containerd --undo
  succeeds
  grep -q '^# new$' "$config"
  grep -q '^imports' "$config"
  grep -q 'nvidia-container-runtime.cdi' "$drop_in"
  run ! grep -q -e 'runtimes\.nvidia' -e default_runtime_name "$drop_in"
  printf '{"mtu": 1}' >etc/daemon.json
  docker --set-as-default
  sed -i 's/"mtu": 1/"mtu": 2/' etc/daemon.json
  docker --undo
  [ "$(cat etc/daemon.json)" = '{"mtu": 2}' ]
}

@test "--undo keeps an import that other files need" {
  mkdir etc/conf.d
  echo 'version = 2' | tee "$config" >etc/conf.d/10-mine.toml
  containerd
  containerd --undo
  succeeds
  says info "$config keeps the import of $work/etc/conf.d/*.toml, which other files need"
  [ ! -e "$drop_in" ] && grep -q '^imports' "$config"
}

@test "backups: of the file before the first time, and anew after it was put back by hand" {
  printf 'root = "a"\nversion = 2\n' >"$config"
  chmod 600 "$config"
  containerd
  containerd --nvidia-runtime-path=/x
  [ "$(cat etc/config.toml.nvidia-ctk.bak)" = $'root = "a"\nversion = 2' ]
  [ "$(stat -c %a etc/config.toml.nvidia-ctk.bak)" = 600 ]
  printf 'root = "b"\nversion = 2\n' >"$config"
  containerd
  [ "$(cat etc/config.toml.nvidia-ctk.bak)" = $'root = "b"\nversion = 2' ]
  # A runtime of that name that others made is what comes back.
  printf '{"runtimes": {"nvidia": {"path": "/mine", "runtimeArgs": ["-v"]}}}' | tee etc/daemon.json >before
  docker
  docker --cdi.enabled
  docker --undo
  cmp etc/daemon.json before
  # No file beside a drop-in: CRI-O would read it.
  echo '[crio.image]' >"$drop_in"
  crio
  [ "$(ls -A etc/conf.d)" = 99-nvidia.toml ]
  [ "$(cat etc/99-nvidia.toml.nvidia-ctk.bak)" = '[crio.image]' ]
}

# ---- what can go wrong ----

@test "wrong types are one error, and change nothing" {
  local before
  while IFS='|' read -r engine file text message; do
    rm -rf etc && mkdir -p etc/conf.d
    printf '%b' "$text" >"etc/$file"
    before=$(find etc -type f -printf '%p %i %T@\n')
    "$engine" --cdi.enabled
    fails "$message"
    [ "$(grep -c level=error <<<"$stderr")" -eq 1 ]
    [ "$(find etc -type f -printf '%p %i %T@\n')" = "$before" ]
  done <<TABLE
docker|daemon.json|{"runtimes": 1}|unable to update config: $work/etc/daemon.json: line 1, column 2: 'runtimes' is a number, but must be an object
docker|daemon.json|{"a": 1,}|unable to load config for runtime docker: $work/etc/daemon.json: line 1, column 9
docker|daemon.json|{"features": []}|unable to update config: $work/etc/daemon.json: line 1, column 2: 'features' is an array, but must be an object
containerd|config.toml|version = "2"\n|unable to load config for runtime containerd: failed to parse config version: unsupported type for version field
containerd|config.toml|version = 2\nimports = "x"\n|unable to update config: $config: line 2, column 11: imports is \"x\"
containerd|conf.d/99-nvidia.toml|x|unable to load config for runtime containerd: $drop_in: line 1
crio|config.toml|[crio]\nruntime = 1\n|unable to update config: $config: line 2, column 11: crio.runtime is 1
podman|conf.d/99-nvidia.conf|engine = 1\n|unable to update config: $work/etc/conf.d/99-nvidia.conf: line 1, column 10: engine is 1
TABLE
  rm -rf etc/daemon.json && mkdir etc/daemon.json
  docker
  fails "unable to load config for runtime docker: unable to read config: cannot read $work/etc/daemon.json"
}

@test "an engine that refuses the result: its words, and nothing is changed" {
  engine dockerd <<'SH'
[ "$*" = "--validate --config-file $3" ] && grep -q nvidia "$3" || exit 3
echo 'unable to configure the Docker daemon with file: no such thing' >&2
exit 1
SH
  # A /etc of its own, and in the end what is there.
  # shellcheck disable=SC2016
  run --separate-stderr unshare --mount env PATH="$path" work="$work" ctk="$ctk" /bin/bash -c '
    /bin/mount -t tmpfs tmpfs /etc
    "$ctk" runtime configure; status=$?
    /bin/ls -AR /etc >"$work/there"
    exit $status'
  fails 'unable to update config: dockerd rejects the new configuration; nothing was changed: unable to configure the Docker daemon with file: no such thing'
  [ "$(cat there)" = /etc: ]
  engine dockerd <<<'exit 0'
  docker
  succeeds
  engine crio <<'SH'
[ "$1 $3 $5" = "--config --config-dir config" ] && grep -q nvidia "$4/99-nvidia.toml" && grep -q ten "$4/10-ten.toml" || exit 0
echo "bad crio" >&2
exit 1
SH
  mkdir etc/conf.d
  echo '# ten' >etc/conf.d/10-ten.toml
  crio --executable-path=crio
  fails 'unable to update config: crio rejects the new configuration; nothing was changed: bad crio'
  [ ! -e "$drop_in" ]
  [ -z "$(find /tmp -maxdepth 1 -name 'nvidia-ctk-*' -newer bin/crio)" ]
}

@test "files of another engine than the one in PATH: what that one says is a warning" {
  engine dockerd <<<'echo "dockerd: no" >&2; exit 1'
  engine crio <<<'echo "crio: no" >&2; exit 1'
  engine containerd <<<'echo "containerd: no" >&2; exit 1'
  engine podman <<<'echo "podman: no" >&2; exit 1'
  local engine file
  while read -r engine file hint; do
    "$engine"
    succeeds
    says warning "The $engine in PATH does not accept the new configuration: "
    [[ $stderr == *": $engine"*": no"* || $stderr == *": dockerd: no"* ]]
    says warning "It may not be the one that reads $work/etc/$file$hint\""
    silent_about 'nothing was changed'
    says info "Wrote updated config to $work/etc/"
    "$engine" --undo
    succeeds
    [ -z "$(find etc -type f)" ]
  done <<'TABLE'
docker daemon.json
containerd config.toml ; name the right one with --executable-path
crio config.toml ; name the right one with --executable-path
podman config.toml
TABLE
  # Named, it is believed, wherever the files are.
  containerd --executable-path="$work/bin/containerd"
  fails "unable to update config: $work/bin/containerd rejects the new configuration; nothing was changed: containerd: no"
  [ -z "$(find etc -type f)" ]
}

@test "a path that was given and whose folder is missing: the folder is created with a warning, as for drop-ins one above it" {
  configure --config="$work/misspelt/daemon.json"
  succeeds
  says warning "The directory $work/misspelt does not exist; creating it. Is $work/misspelt/daemon.json the right path?\""
  [ -e misspelt/daemon.json ]
  # --undo removes the folder again.
  configure --config="$work/misspelt/daemon.json" --undo
  succeeds
  [ ! -e misspelt ]
  # Once it is there, no more.
  mkdir misspelt
  configure --config="$work/misspelt/daemon.json"
  succeeds
  silent_about 'is created'
  configure --config="$work/misspelt/daemon.json" --undo
  succeeds
  [ -d misspelt ]
  configure --config="$work/mistyped/daemon.json" --dry-run
  succeeds
  silent_about 'is created'
  [ ! -e mistyped ]
  configure --config="$work/mistyped/daemon.json" --undo
  succeeds
  silent_about 'is created'
  [ ! -e mistyped ]
  # conf.d need not be there.
  rm -rf etc/conf.d
  crio
  succeeds
  silent_about 'is created'
  [ -e "$drop_in" ]
  configure --runtime=crio --config="$config" --drop-in-config="$work/mistyped/conf.d/99-nvidia.toml"
  succeeds
  says warning "The directory $work/mistyped/conf.d does not exist; creating it. Is $work/mistyped/conf.d/99-nvidia.toml the right path?\""
}

@test "a dockerd without --validate is not asked" {
  engine dockerd <<'SH'
echo "unknown flag: --validate" >&2
exit 125
SH
  run --separate-stderr env PATH="$path" "$ctk" --debug runtime configure --config="$work/etc/daemon.json"
  succeeds
  says debug 'The new configuration was not checked: this dockerd has no --validate'
}

@test "containerd itself reads the result: what it refuses, what it does not find" {
  local path_of_containerd
  path_of_containerd=$(type -P containerd) || skip "containerd is not installed"
  path=/usr/sbin:/usr/bin:/sbin:/bin
  printf 'version = 2\n[grpc]\naddress = 5\n' >"$config"
  containerd --executable-path=containerd
  fails 'unable to update config: containerd rejects the new configuration; nothing was changed: containerd: '
  [ "$(ls -A etc)" = config.toml ]
  printf 'version = 2\n' >"$config"
  # To containerd 1, the section of a later file is all that there is of it.
  if [[ $("$path_of_containerd" --version) != */v2* ]]; then
    mkdir etc/conf.d
    printf 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "native"\n' >etc/conf.d/99-zz.toml
    containerd --executable-path=containerd
    fails 'unable to update config: containerd rejects the new configuration; nothing was changed: it reads the files, but finds no such runtime in them'
    rm etc/conf.d/99-zz.toml
  fi
  containerd --executable-path=containerd --cdi.enabled --set-as-default
  succeeds
}

@test "config-source=command: what containerd says, by a clean environment" {
  engine containerd <<SH
env >$work/environment
[ "\$*" = "config dump" ] || exit 0
printf 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\nruntime_type = "dumped"\n'
SH
  run --separate-stderr env PATH="$path" LD_X=1 GODEBUG=1 "$ctk" runtime configure --runtime=containerd --config="$config" --drop-in-config="$drop_in" \
    --config-source=command
  succeeds
  grep -q '^runtime_type = "dumped"' "$drop_in"
  run ! grep -vE '^(PATH|HOME|LC_ALL|PWD|SHLVL|_)=' environment
  engine containerd <<<'echo "no such thing" >&2; exit 4'
  containerd --config-source=command
  fails 'unable to load config for runtime containerd: failed to load config: failed to run command containerd [config dump]: exit status 4: no such thing'
  rm bin/containerd
  containerd --config-source=command --executable-path=/nowhere/containerd
  fails 'unable to load config for runtime containerd: failed to load config: failed to run command /nowhere/containerd [config dump]: /nowhere/containerd cannot be run'
}

@test "config-source=command: crio, and the older program beside it" {
  engine crio <<<'[ "$1" != status ] || { echo "no socket" >&2; exit 1; }'
  crio --config-source=command
  fails 'unable to load config for runtime crio: failed to load config: '
  [[ $stderr == *'failed to run command crio [status config]: exit status 1: no socket'* ]]
  [[ $stderr == *'failed to run command crio-status [config]: '* ]]
  engine crio-status <<<'[ "$1" = config ] && printf "[crio.runtime.runtimes.crun]\nx = 1\n"'
  crio --config-source=command
  succeeds
  grep -q '^x = 1' "$drop_in"
}

# ---- how files are replaced ----

@test "mode, owner and links are kept" {
  printf '{}' >etc/real.json
  chmod 640 etc/real.json
  [ "$(id -u)" -ne 0 ] || chown 65534:7 etc/real.json
  before=$(stat -c '%a %u %g' etc/real.json)
  ln -s real.json etc/daemon.json
  docker
  succeeds
  [ "$(readlink etc/daemon.json)" = real.json ]
  [ "$(stat -c '%a %u %g' etc/real.json)" = "$before" ]
  grep -q nvidia etc/real.json
}

@test "kill -9 at any moment leaves the old or the new file" {
  local old=0 new=0
  { printf '{"x": "'; head -c 300000 /dev/zero | tr '\0' x; printf '"}'; } >big.json
  for _ in $(seq 40); do
    cp big.json etc/daemon.json
    rm -f etc/*.bak
    env PATH="$path" "$ctk" --quiet runtime configure --config="$work/etc/daemon.json" 3>&- &
    sleep "0.0$((RANDOM % 30 + 1))"
    kill -KILL $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    if cmp -s big.json etc/daemon.json; then
      old=$((old + 1))
    else
      python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["runtimes"]["nvidia"]' etc/daemon.json
      cmp big.json etc/daemon.json.nvidia-ctk.bak
      new=$((new + 1))
    fi
  done
  echo "# old $old times, new $new times" >&3
  [ "$new" -gt 0 ]
  docker --undo
  docker
  succeeds
  [ "$(find etc -name '*.tmp' | wc -l)" -eq 0 ]
}

@test "a directory that cannot be written: one clear error, and nothing half done" {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  printf 'version = 2\n' >"$config"
  mkdir drop
  run --separate-stderr unshare --mount sh -c 'mount --bind "$1/etc" "$1/etc" && mount -o remount,bind,ro "$1/etc" && shift && exec "$@"' sh "$work" \
    env PATH="$path" "$ctk" runtime configure --runtime=containerd --config="$config" --drop-in-config="$work/drop/99-nvidia.toml"
  fails "unable to flush config: cannot write $config.nvidia-ctk.bak: read-only file system"
  [ "$(cat "$config")" = 'version = 2' ]
  # The drop-in, which was written first, is gone again.
  [ -z "$(ls -A drop)" ] && [ ! -e 99-nvidia.toml.nvidia-ctk.bak ]
}

@test "a file that is a mount of its own is written in place" {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  echo '{}' >etc/daemon.json
  echo '{"mounted": true}' >source.json
  run --separate-stderr unshare --mount sh -c 'mount --bind "$1/source.json" "$1/etc/daemon.json" && shift && exec "$@"' sh "$work" \
    env PATH="$path" "$ctk" runtime configure --config="$work/etc/daemon.json"
  succeeds
  means source.json <<<'{"mounted": true, "runtimes": {"nvidia": {"path": "nvidia-container-runtime", "args": []}}}'
  [ "$(cat etc/daemon.json)" = '{}' ]
}
