# SPDX-License-Identifier: Apache-2.0
# The command line of nvidia-ctk: help, version, error messages, exit statuses, variables, the log. Needs neither a driver nor root.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  ctk=$build/src/cli/ctk/nvidia-ctk
  work=$BATS_TEST_TMPDIR
  export NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml
}

# complains TEXT WORD...: SPEC ctk-and-cdi 1.0: a line and an empty one on stderr, help on stdout, an error line with the same text, status 1.
complains() {
  local text=$1
  shift
  run -1 --separate-stderr "$ctk" "$@"
  [ "${stderr_lines[0]}" = "Incorrect Usage: $text" ] || { echo "stderr: $stderr"; return 1; }
  [ "$(sed -n 2p <<<"$stderr")" = "" ]
  [[ ${stderr_lines[-1]} == time=*" level=error msg=\"$text\"" ]] || { echo "stderr: $stderr"; return 1; }
  [[ $output == "Usage: nvidia-ctk"* ]]
}

@test "groups print their help and are content" {
  local command
  for command in '' runtime info cdi 'cdi transform' system; do
    # shellcheck disable=SC2086
    run -0 --separate-stderr "$ctk" $command
    [ -z "$stderr" ]
    [[ ${lines[0]} == "Usage: nvidia-ctk${command:+ $command} [OPTION...]"* ]]
    local help=$output option
    for option in --help -h -help help h; do
      # shellcheck disable=SC2086
      run -0 --separate-stderr "$ctk" $command $option
      [ "$output" = "$help" ]
      [ -z "$stderr" ]
    done
  done
}

@test "help of a command by its words" {
  run -0 "$ctk" help cdi transform
  [ "${lines[0]}" = "Usage: nvidia-ctk cdi transform [OPTION...]" ]
  run -0 "$ctk" cdi h transform
  [ "${lines[0]}" = "Usage: nvidia-ctk cdi transform [OPTION...]" ]
}

@test "what is no command has status 3" {
  run -3 --separate-stderr "$ctk" make-coffee --strong
  [ -z "$output" ] && [ "$stderr" = "No help topic for 'make-coffee'" ]
  run -3 --separate-stderr "$ctk" --debug system print-ldcache
  [ -z "$output" ] && [ "$stderr" = "No help topic for 'print-ldcache'" ]
  run -3 --separate-stderr "$ctk" info x
  [ "$stderr" = "No help topic for 'x'" ]
  run -3 --separate-stderr "$ctk" help cdi x
  [ "$stderr" = "No help topic for 'x'" ]
}

@test "what was probably meant by a wrong command, flag or value" {
  run -3 --separate-stderr "$ctk" cdi genexate
  [ "$stderr" = "No help topic for 'genexate'"$'\n'"Did you mean 'generate'?" ] || die "$stderr"
  run -1 --separate-stderr "$ctk" runtime configure --runtim docker
  [ "${stderr_lines[0]}" = "Incorrect Usage: flag provided but not defined: -runtim" ]
  [ "${stderr_lines[1]}" = "Did you mean '--runtime'?" ]
  # Other names of a flag count as well.
  run -1 --separate-stderr "$ctk" runtime configure --set-as-defualt
  [ "${stderr_lines[1]}" = "Did you mean '--set-as-default'?" ]
  run -1 --separate-stderr "$ctk" cdi generate --discovery-mod=nvml
  [ "${stderr_lines[1]}" = "Did you mean '--discovery-mode'?" ]
  run -1 --separate-stderr "$ctk" runtime configure --runtime=Docker --dry-run
  [[ $stderr == *"unrecognized runtime 'Docker'. Did you mean 'docker'? Run the command with --help"* ]] || die "$stderr"
  run -1 --separate-stderr "$ctk" runtime configure --runtime=containerd --config-source=files --dry-run
  [[ $stderr == *"unrecognized Config Source: files. Did you mean 'file'?"* ]] || die "$stderr"
  run -1 --separate-stderr "$ctk" cdi generate --mode=nvmll
  [[ $stderr == *"invalid discovery mode: nvmll. Did you mean 'nvml'?"* ]] || die "$stderr"
  run -1 --separate-stderr "$ctk" cdi generate --format=yml
  [[ $stderr == *"invalid output format: yml. Did you mean 'yaml'?"* ]] || die "$stderr"
  # What another program has, or this one elsewhere.
  run -3 --separate-stderr "$ctk" plan
  [ "$stderr" = "No help topic for 'plan'"$'\n'"Did you mean 'nvidia-container-cli plan'?" ] || die "$stderr"
  run -3 --separate-stderr "$ctk" generate
  [[ $stderr == *$'\n'"Did you mean 'nvidia-ctk cdi generate'?" ]] || die "$stderr"
  # What is far from everything gets no suggestion.
  run -1 --separate-stderr "$ctk" runtime configure --runtime=elephant --dry-run
  [[ $stderr != *"Did you mean"* ]] || die "$stderr"
  # The values are in the help.
  run -0 "$ctk" runtime configure --help
  [[ $output == *containerd*crio*docker*podman* ]]
}

@test "a hook that nvidia-cdi-hook does not know is a warning, with the one that was meant" {
  run -0 --separate-stderr "$build/src/cli/cdi_hook/nvidia-cdi-hook" create-symlink
  [[ $stderr == *"Unsupported CDI hook: create-symlink"*"Did you mean 'create-symlinks'?"* ]] || die "$stderr"
}

@test "a wrong flag, a flag without its value" {
  complains 'flag provided but not defined: -strong' --strong
  complains 'flag provided but not defined: -strong' -strong=yes cdi
  complains 'flag provided but not defined: -strong' cdi --strong
  complains 'flag needs an argument: --config' --config
  complains 'flag provided but not defined: -dx' -dx
  # The version is the program's alone.
  complains 'flag provided but not defined: -version' cdi --version
}

@test "version" {
  local option compatible
  compatible=$(sed -n "s/^compatible = '\(.*\)'/\1/p" "$top/meson.build")
  for option in --version -v -version; do
    run -0 --separate-stderr "$ctk" $option
    [ "${lines[0]}" = "NVIDIA Container Toolkit CLI version $compatible" ]
    [ -z "$stderr" ]
    [ "${lines[-1]}" = "graft-version: $(sed -n "s/^ *version: '\(.*\)',/\1/p" "$top/meson.build") (compatible with $compatible)" ]
    if [ ${#lines[@]} -gt 2 ]; then
      [[ ${lines[1]} =~ ^commit:\ [0-9a-f]{40}$ ]]
    fi
  done
}

@test "flags of the program: anywhere, with values as Go takes them, bundled, from the environment" {
  local word
  for word in 1 t T TRUE true True 0 f F FALSE false False; do
    run -0 "$ctk" --debug=$word cdi
    run -0 env NVIDIA_CTK_DEBUG=$word "$ctk" cdi
  done
  run -0 "$ctk" cdi --debug --quiet=false --config /nowhere transform -d
  run -0 "$ctk" -dh
  run -1 --separate-stderr "$ctk" --debug=maybe cdi
  [[ $stderr == *"level=error msg=\"invalid boolean value 'maybe' for --debug"* ]]
  run -1 --separate-stderr env NVIDIA_CTK_QUIET=maybe "$ctk" cdi
  [ -z "$output" ]
  [[ $stderr == *'could not parse \"maybe\" as bool value from environment variable \"NVIDIA_CTK_QUIET\" for flag quiet: '* ]]
  # Given, so the variable is not looked at; empty, so it is false.
  run -0 env NVIDIA_CTK_QUIET=maybe "$ctk" --quiet cdi
  run -0 env NVIDIA_CTK_QUIET= "$ctk" cdi
}

@test "hook is nvidia-cdi-hook" {
  run -0 --separate-stderr "$ctk" hook
  [[ $stderr == *'level=warning msg="No CDI hook specified"' ]]
  run -0 --separate-stderr "$ctk" hook make-coffee --strong
  [[ $stderr == *'level=warning msg="Unsupported CDI hook: make-coffee"' ]]
  run -0 --separate-stderr "$ctk" --quiet hook make-coffee
  [ -z "$stderr" ]
  run -0 "$ctk" hook noop
  run -1 --separate-stderr "$ctk" hook chmod --strong
  [[ ${lines[0]} == "Usage: nvidia-ctk hook chmod "* ]]
  [[ $stderr == *"Incorrect Usage: flag provided but not defined: -strong"* ]]
}

@test "standard output that cannot be written is an error" {
  run -1 --separate-stderr bash -c '"$1" --help >/dev/full' - "$ctk"
  [[ $stderr == *'level=error msg="write failed: standard output: no space left on device. Free some space: '"'df -h' and 'df -i'"' show which file system is full.'* ]]
}

@test "standard descriptors that are closed are nobody else's" {
  run bash -c '"$1" --help >&- 2>&- <&-' - "$ctk"
  [ "$status" -eq 0 ]
}

@test "a terminal gets coloured lines" {
  command -v script >/dev/null
  run script -qec "'$ctk' --strong" /dev/null
  [[ $output == *$'\e[31mERRO\e[0m[0000] flag provided but not defined: -strong'* ]]
}

# ---- config ----

# fails TEXT WORD...: status 1, nothing on stdout, one error line that has TEXT.
fails() {
  local text=$1
  shift
  run -1 --separate-stderr "$ctk" "$@"
  [ -z "$output" ] || { echo "stdout: $output"; return 1; }
  [ "${#stderr_lines[@]}" -eq 1 ] || { echo "stderr: $stderr"; return 1; }
  [[ $stderr == *" level=error msg=\""* ]] || { echo "stderr: $stderr"; return 1; }
  [[ ${stderr//\\\"/\"} == *"$text"* ]] || { echo "stderr: $stderr"; return 1; }
}

# same FILE COMMAND...: the command prints exactly this, and nothing on stderr.
same() {
  local file=$1
  shift
  "$@" >"$work/printed" 2>"$work/told"
  cmp "$file" "$work/printed"
  [ ! -s "$work/told" ] || { cat "$work/told"; return 1; }
}

# A configuration that a person wrote: comments, an order of its own, keys nobody knows, no newline at the end.
write_config() {
  cat >"$NVIDIA_CTK_CONFIG_FILE_PATH" <<'CONFIG'
# ours
mine = [ 1,
  2 ] # two

[nvidia-container-runtime]   # the runtime
  mode = "legacy" # as always
#  debug = "x"
[nvidia-container-cli]
load-kmods=false
CONFIG
  printf 'root = "/run/nvidia/driver"' >>"$NVIDIA_CTK_CONFIG_FILE_PATH"
}

@test "at a terminal it says what it waits for, after a second" {
  local sim="$build/sim/graft-sim run --topology a100-mig --fault nvml-init-delay=1.5 --" command
  for command in 'doctor' 'cdi generate'; do
    run env TERM=dumb script -qec "$sim $ctk $command" /dev/null </dev/null
    [[ $output == *'level=info msg="waiting for NVML, which wakes the GPUs: 1 s"'* ]] || die "$output"
    # Elsewhere, and for those who want quiet, there is no such line.
    # shellcheck disable=SC2086 # words
    run $sim "$ctk" $command </dev/null
    [[ $output != *waiting* ]] || die "$output"
    run env TERM=dumb script -qec "$sim $ctk --quiet $command" /dev/null </dev/null
    [[ $output != *waiting* ]] || die "$output"
  done
}

@test "config prints the file as it stands, and the defaults where there is none" {
  run -0 --separate-stderr "$ctk" config default
  [ -z "$stderr" ]
  [[ $output == *$'\n[nvidia-container-runtime]\n#debug = "/var/log/nvidia-container-runtime.log"\nlog-level = "info"\nmode = "auto"\nruntimes = ["runc", "crun"]\n'* ]]
  [ "$(grep -c '^#' <<<"$output")" -eq 10 ]
  "$ctk" config default >"$work/defaults"
  same "$work/defaults" "$ctk" config
  same "$work/defaults" "$ctk" config create-default
  same "$work/defaults" "$ctk" config generate-default
  same "$work/defaults" "$ctk" config --config-file=
  write_config
  same "$NVIDIA_CTK_CONFIG_FILE_PATH" "$ctk" config
  same "$NVIDIA_CTK_CONFIG_FILE_PATH" "$ctk" config words that are ignored
  printf 'disable-require = true\r\n# end\r\n' >"$work/dos.toml"
  for option in --config-file --config -c; do
    same "$work/dos.toml" "$ctk" config $option "$work/dos.toml"
    same "$work/defaults" "$ctk" config $option="$work/nothing.toml"
  done
}

@test "config reads a pipe, which it cannot change in place" {
  write_config
  sed 's/"legacy"/"cdi"/' "$NVIDIA_CTK_CONFIG_FILE_PATH" >"$work/wanted"
  # shellcheck disable=SC2016
  for way in 'cat "$2" | "$1" config -c -' 'cat "$2" | "$1" config -c /dev/stdin' '"$1" config --config-file=<(cat "$2")'; do
    same "$work/wanted" timeout 60 bash -c "$way --set nvidia-container-runtime.mode=cdi" - "$ctk" "$NVIDIA_CTK_CONFIG_FILE_PATH"
  done
  run -1 --separate-stderr bash -c 'echo x = 1 | "$1" config --in-place -c -' - "$ctk"
  [[ $stderr == *'level=error msg="--in-place needs a file, and standard input is not one'* ]]
  run -1 --separate-stderr "$ctk" config -c /dev/zero
  [[ $stderr == *'failed to load specified config file: read failed: /dev/zero: over 1048576 bytes'* ]]
  run -1 --separate-stderr bash -c 'echo x = | "$1" config -c -' - "$ctk"
  [[ $stderr == *'level=error msg="unable to create config: failed to load specified config file: standard input: '* ]]
}

@test "config finds its file where the other programs do" {
  unset NVIDIA_CTK_CONFIG_FILE_PATH
  mkdir -p "$work/home/nvidia-container-runtime"
  printf 'x = 1\n' >"$work/home/nvidia-container-runtime/config.toml"
  same "$work/home/nvidia-container-runtime/config.toml" env XDG_CONFIG_HOME="$work/home" "$ctk" config
  printf 'y = 1\n' >"$work/other.toml"
  same "$work/other.toml" env XDG_CONFIG_HOME="$work/home" NVIDIA_CTK_CONFIG_FILE_PATH="$work/other.toml" "$ctk" config
  # That variable is of `cdi generate`.
  same "$work/other.toml" env NVIDIA_CTK_CONFIG="$work/home/nvidia-container-runtime/config.toml" NVIDIA_CTK_CONFIG_FILE_PATH="$work/other.toml" "$ctk" config
}

@test "config --set changes what it names, and nothing else" {
  write_config
  sed -e 's/"legacy"/"cdi"/' -e 's/load-kmods=false/load-kmods=true/' "$NVIDIA_CTK_CONFIG_FILE_PATH" >"$work/wanted"
  printf '\nenvironment = ["A=1", "B=2"]\n\n[features]\nhonor-requirements = true\n' >>"$work/wanted"
  same "$work/wanted" "$ctk" config --set nvidia-container-runtime.mode=cdi --set nvidia-container-cli.load-kmods \
    --set nvidia-container-cli.environment=A=1:B=2 --set features.honor-requirements
  # In one word: a comma in front of a key ends a setting, others are of the value.
  same "$work/wanted" "$ctk" config --set nvidia-container-runtime.mode=cdi,nvidia-container-cli.load-kmods \
    --set nvidia-container-cli.environment=A=1,B=2,features.honor-requirements=true
  same "$NVIDIA_CTK_CONFIG_FILE_PATH" "$ctk" config --set features.honor-requirements=nil --set nvidia-container-runtime.mode=legacy
  # The samples of the defaults give way.
  rm "$NVIDIA_CTK_CONFIG_FILE_PATH"
  "$ctk" config default | sed -e 's|^#root = .*|root = "/driver"|' -e 's|^#no-cgroups = .*|no-cgroups = true|' >"$work/wanted"
  same "$work/wanted" "$ctk" config --set nvidia-container-cli.no-cgroups=true --set nvidia-container-cli.root=/driver
  run -0 "$ctk" config --set-list-separator ';' --set 'nvidia-container-runtime.runtimes=a:b;c'
  [[ $output == *'runtimes = ["a:b", "c"]'* ]]
}

@test "config refuses settings that are none, and then changes nothing" {
  write_config
  cp "$NVIDIA_CTK_CONFIG_FILE_PATH" "$work/before"
  fails 'msg="invalid --set option x=1: invalid config option: undefined field: "x"' config -i --set disable-require --set x=1
  fails "undefined field: \"no_cgroups\" (did you mean 'nvidia-container-cli.no-cgroups'?). See 'man nvidia-container-runtime-config'" config -i --set no_cgroups
  fails 'invalid --set option swarm-resource: invalid format: expected key=value; got swarm-resource' config -i --set swarm-resource
  fails 'invalid format' config -i --set disable-require=something
  fails 'unsupported type for [features] (table)' config -i --set features=true
  fails 'set-list-separator must be set' config -i --set-list-separator= --set disable-require
  # What no program could read is not written.
  fails 'nvidia-container-cli.ldconfig value "/sbin/ldconfig" is not host-relative' config -i --set nvidia-container-cli.ldconfig=/sbin/ldconfig
  cmp "$work/before" "$NVIDIA_CTK_CONFIG_FILE_PATH"
}

@test "config warns of values that no program understands, and writes them" {
  run -0 --separate-stderr "$ctk" config --set nvidia-container-runtime.mode=jitcdi --set nvidia-container-runtime.log-level=trace
  [[ $output == *$'\nmode = "jitcdi"\n'* ]]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ $stderr == *" level=warning msg=\"nvidia-container-runtime.mode is 'jitcdi'; it can be auto, legacy, cdi, jit-cdi or csv (did you mean 'jit-cdi'?)\"" ]]
}

@test "config in place: whole, with owner, mode and links kept, and only when something changes" {
  write_config
  chmod 0640 "$NVIDIA_CTK_CONFIG_FILE_PATH"
  mv "$NVIDIA_CTK_CONFIG_FILE_PATH" "$work/real.toml"
  ln -s real.toml "$NVIDIA_CTK_CONFIG_FILE_PATH"
  local before
  before=$(stat -c '%i %Y %Z' "$work/real.toml")
  run -0 --separate-stderr "$ctk" config --in-place --set nvidia-container-runtime.mode=legacy
  [ -z "$output$stderr" ]
  [ "$(stat -c '%i %Y %Z' "$work/real.toml")" = "$before" ]
  run -0 --separate-stderr "$ctk" config -i --set nvidia-container-runtime.mode=cdi
  [ -z "$output$stderr" ]
  [ -L "$NVIDIA_CTK_CONFIG_FILE_PATH" ]
  [ "$(stat -c '%a' "$work/real.toml")" = 640 ]
  grep -qx '  mode = "cdi" # as always' "$work/real.toml"
  [ -z "$(find "$work" -name '*.tmp')" ]
  # Where there is no file, one is made, with its directory.
  run -0 "$ctk" config -ic "$work/new/config.toml"
  "$ctk" config default | cmp - "$work/new/config.toml"
  [ "$(stat -c %a "$work/new/config.toml") $(stat -c %a "$work/new")" = '644 755' ]
}

@test "config to another file" {
  write_config
  run -0 --separate-stderr "$ctk" config --set disable-require -o "$work/new/out.toml"
  [ -z "$output$stderr" ]
  grep -qx 'disable-require = true' "$work/new/out.toml"
  run -1 grep disable-require "$NVIDIA_CTK_CONFIG_FILE_PATH"
  same "$NVIDIA_CTK_CONFIG_FILE_PATH" "$ctk" config --output=
  same "$NVIDIA_CTK_CONFIG_FILE_PATH" "$ctk" config --output=/dev/stdout
  run -0 "$ctk" config default -o "$work/default.toml"
  "$ctk" config default | cmp - "$work/default.toml"
  cp "$work/default.toml" "$work/before"
  fails '--in-place and --output cannot both be given' config -c "$work/default.toml" -io "$work/y" --set disable-require
  [ ! -e "$work/y" ] && cmp "$work/before" "$work/default.toml"
  fails '--in-place needs a file' config -i --config-file=
  mkdir "$work/directory"
  fails 'unable to save config: ' config --output "$work/directory"
  run -1 --separate-stderr "$ctk" config default --output "$work/directory"
  [[ $stderr == *'unable to save config: '* ]]
}

@test "config tells what is wrong with a file, and mends it" {
  printf 'a = 1\ndisable-require = "yes"\n' >"$NVIDIA_CTK_CONFIG_FILE_PATH"
  fails 'unable to create config: '"$NVIDIA_CTK_CONFIG_FILE_PATH"': line 2, column 19: disable-require is "yes"; allowed: true or false' config
  run -0 "$ctk" config --set disable-require=false --in-place
  [ "$(cat "$NVIDIA_CTK_CONFIG_FILE_PATH")" = $'a = 1\ndisable-require = false' ]
  printf 'a = \n' >"$NVIDIA_CTK_CONFIG_FILE_PATH"
  fails 'unable to create config: failed to load specified config file: ' config --set disable-require
  fails 'unable to create config: failed to load specified config file: ' config -c "$work"
}

# ---- completion ----

@test "candidates: any command line that ends so is not run" {
  run -0 --separate-stderr "$ctk" --generate-shell-completion
  [ -z "$stderr" ]
  for word in runtime cdi system config hook; do grep -qx "$word" <<<"$output"; done
  run ! grep -x completion <<<"$output"
  run -0 "$ctk" config --in-place --set disable-require --generate-shell-completion
  [ "$output" = default ] && [ ! -e "$NVIDIA_CTK_CONFIG_FILE_PATH" ]
  run -0 "$ctk" cdi transform root --relative-to --generate-shell-completion
  [ "${lines[*]}" = 'host container --relative-to' ]
  run -0 "$ctk" config --o --generate-shell-completion
  [ "$output" = --output ]
  run -0 "$ctk" hook --generate-shell-completion
  grep -qx update-ldcache <<<"$output"
}

@test "scripts: of four shells, and of no other" {
  local shell
  for shell in bash zsh fish pwsh; do
    run -0 --separate-stderr "$ctk" completion $shell
    [ -n "$output" ] && [ -z "$stderr" ]
    [[ $output == *--generate-shell-completion* ]]
  done
  fails "unknown shell 'csh', available shells are bash, zsh, fish, pwsh" completion csh
  fails "unknown shell ''" completion
}

# bash_offers WORD...: what bash offers, with the cursor at the end of the last word, sorted.
bash_offers() {
  "$ctk" completion bash >"$work/complete.bash"
  # shellcheck disable=SC2016
  bash -c 'source "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nvidia_ctk; printf "%s\n" "${COMPREPLY[@]}"' - "$work/complete.bash" "$ctk" "$@" | sort | xargs
}

@test "bash completes" {
  [ "$(bash_offers conf)" = config ]
  [ "$(bash_offers cdi transform '')" = root ]
  [ "$(bash_offers config --set x --in)" = --in-place ]
  [ "$(bash_offers cdi transform root --relative-to '')" = 'container host' ]
  [ "$(bash_offers cdi transform root --relative-to = c)" = container ]
  [ "$(bash_offers cdi transform root --relative-to =)" = 'container host' ]
  [ "$(bash_offers cdi transform root --relative-to)" = --relative-to ]
  [ "$(bash_offers lease re)" = 'reclaim release' ]
  [ "$(bash_offers lease run --w)" = --wait ]
  [ "$(bash_offers lease list --w)" = --watch ]
  [ "$(bash_offers lease reclaim --o)" = --overdue ]
  # Nothing: bash goes on with files.
  [ "$(bash_offers config --output /et)" = '' ]
}

@test "fish completes" {
  command -v fish >/dev/null || skip 'fish is not installed'
  "$ctk" completion fish >"$work/complete.fish"
  fish_offers() { HOME=$work PATH=${ctk%/*}:$PATH fish --no-config -c "source '$work/complete.fish'; complete -C '$1'" | xargs; }
  [ "$(fish_offers 'nvidia-ctk conf')" = config ]
  [ "$(fish_offers 'nvidia-ctk cdi transform root --relative-to ')" = 'container host' ]
  [ "$(fish_offers 'nvidia-ctk config --in')" = --in-place ]
  [ "$(fish_offers 'nvidia-ctk lease re')" = 'reclaim release' ]
  [ "$(fish_offers 'nvidia-ctk lease acquire --u')" = --urgent ]
  [[ " $(fish_offers 'nvidia-ctk config --output /et') " == *' /etc/ '* ]]
}

@test "zsh completes" {
  command -v zsh >/dev/null || skip 'zsh is not installed'
  "$ctk" completion zsh >"$work/_nvidia-ctk"
  # shellcheck disable=SC2016
  zsh_offers() {
    zsh -f -c 'compdef() { }
      compadd() { print -r -- ${(o)candidates} }
      _files() { print files }
      file=$1; shift
      source $file
      words=("$@"); CURRENT=$#words
      _nvidia_ctk' - "$work/_nvidia-ctk" "$ctk" "$@"
  }
  [[ " $(zsh_offers conf) " == *' config '* ]]
  [ "$(zsh_offers cdi transform root --relative-to '')" = 'container host' ]
  [ "$(zsh_offers cdi transform root --relative-to=c)" = '--relative-to=container --relative-to=host' ]
  [ "$(zsh_offers config --in)" = --in-place ]
  [[ " $(zsh_offers lease re) " == *' reclaim release '* ]]
  [[ " $(zsh_offers lease acquire --u) " == *' --urgent '* ]]
  [ "$(zsh_offers config --output /et)" = files ]
}
