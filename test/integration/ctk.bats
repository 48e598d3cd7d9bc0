# SPDX-License-Identifier: Apache-2.0
# The words of nvidia-ctk: help, version, complaints, exit statuses, variables, the log. Needs no driver and no root.

bats_require_minimum_version 1.5.0

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  ctk=$build/src/cli/ctk/nvidia-ctk
  work=$BATS_TEST_TMPDIR
  export NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml
}

# complains TEXT WORD...: SPEC 1.0: a line and an empty one on stderr, help on stdout, an error line with the same text, status 1.
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
  local option
  for option in --version -v -version; do
    run -0 --separate-stderr "$ctk" $option
    [ "${lines[0]}" = "NVIDIA Container Toolkit CLI version $(sed -n "s/^ *version: '\(.*\)',/\1/p" "$top/meson.build")" ]
    [ -z "$stderr" ]
    if [ ${#lines[@]} -gt 1 ]; then
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
  [[ $stderr == *'level=error msg="write failed: standard output: no space left on device'* ]]
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
