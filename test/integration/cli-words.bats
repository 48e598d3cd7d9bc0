# SPDX-License-Identifier: Apache-2.0
# The command line of nvidia-container-cli: options, abbreviations, bad values, streams, exit
# statuses. Needs no driver: values are checked with `plan --show=request`, which prints what was
# understood.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  cli=$build/src/cli/nvidia-container-cli
  name=nvidia-container-cli
}

# request OPTIONS...: the request that these options make, without white space.
request() {
  "$cli" plan --show=request "$@" | tr -d ' \n'
}

# refused TEXT WORD...: exit status 1, nothing on stdout, TEXT is the first line on stderr.
refused() {
  local text=$1
  shift
  run -1 --separate-stderr "$cli" "$@"
  [ -z "$output" ] || { echo "stdout: $output"; return 1; }
  [ "${stderr_lines[0]}" = "$text" ] || { echo "stderr: $stderr"; return 1; }
}

# complained TEXT PROGRAM WORD...: refused, and the last line says where help is.
complained() {
  local text=$1 program=$2
  shift 2
  refused "$text" "$@"
  [ "${stderr_lines[-1]}" = "Try \`$program --help' or \`$program --usage' for more information." ]
}

@test "help, usage and version go to stdout with status 0, for the program and each command" {
  local command option
  for command in '' configure info list plan; do
    for option in --help '-?' --usage --version -V --hel --usag --vers; do
      # shellcheck disable=SC2086
      run -0 --separate-stderr "$cli" $command $option
      [ -n "$output" ]
      [ -z "$stderr" ]
    done
    # shellcheck disable=SC2086
    run -0 "$cli" $command --help
    [[ ${lines[0]} == "Usage: $name${command:+ $command} [OPTION...]"* ]]
  done
}

@test "help lists commands, then options in alphabetical order" {
  run -0 "$cli" --help
  [[ $output == *" Commands:"*"  configure "*"  info "*"  list "*"  plan "*" Options:"*"-d, --debug=FILE"*"-k, --load-kmods"*"-l, --ldcache=FILE"*"-n, --no-pivot"*"-r, --root=PATH"*"-u, --user[=UID[:GID]]"*"-?, --help"*"--usage"*"-V, --version"* ]]
}

@test "no line of help or usage is wider than 79 columns" {
  local command option
  for command in '' configure info list plan; do
    for option in --help --usage; do
      # shellcheck disable=SC2086
      run -0 "$cli" $command $option
      [ "$(awk '{ if (length($0) > 79) print }' <<<"$output" | wc -l)" -eq 0 ]
    done
  done
}

@test "version: labels that tools look for, in their order" {
  run -0 "$cli" -V
  [ "${#lines[@]}" -eq 8 ]
  [[ ${lines[0]} =~ ^cli-version:\ [0-9]+\.[0-9]+\.[0-9]+ ]]
  [ "${lines[1]}" = "lib-version: ${lines[0]#cli-version: }" ]
  [[ ${lines[2]} =~ ^build\ date:\ (unknown|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}\+00:00)$ ]]
  [[ ${lines[3]} =~ ^build\ revision:\ ([0-9a-f]{40}|unknown)$ ]]
  [[ ${lines[4]} =~ ^build\ compiler:\ (gcc|clang)\ [0-9] ]]
  [ "${lines[5]}" = "build platform: $(uname -m)" ]
  [[ ${lines[6]} == "build flags: "?* ]]
  [[ ${lines[7]} =~ ^graft-version:\ [0-9]+\.[0-9]+\.[0-9]+\ \(compatible\ with\ ${lines[0]#cli-version: }\)$ ]]
}

@test "a wrong option, for the program and each command" {
  complained "$name: unrecognized option '--wrong'" "$name" --wrong
  complained "$name: unrecognized option '--wrong'" "$name" --wrong info
  complained "$name: invalid option -- 'z'" "$name" -z
  local command
  for command in configure info list plan; do
    complained "$name $command: unrecognized option '--wrong'" "$name $command" $command --wrong
    complained "$name $command: unrecognized option '--wrong=x'" "$name $command" $command --wrong=x
    complained "$name $command: invalid option -- 'z'" "$name $command" $command -z
  done
}

@test "what was probably meant by a wrong option or value" {
  run --separate-stderr "$cli" list --libaries
  [ "$status" -eq 1 ]
  [ "${stderr_lines[0]}" = "$name list: unrecognized option '--libaries'" ]
  [ "${stderr_lines[1]}" = "Did you mean '--libraries'?" ]
  run --separate-stderr "$cli" plan --style=ocl /
  [ "$status" -eq 1 ]
  [[ $stderr == *"unsupported value of --style: ocl (did you mean 'oci'?)"* ]] || die "$stderr"
}

@test "global options behind the command mean nothing or something else" {
  complained "$name info: invalid option -- 'k'" "$name info" info -k
  complained "$name info: unrecognized option '--root=/'" "$name info" info --root=/
  complained "$name list: unrecognized option '--debug'" "$name list" list --debug
  [[ $(request -d 0) == *'"text":"0"'* ]]
}

@test "no command, an unknown command, too many and missing arguments" {
  complained "Usage: $name [OPTION...] COMMAND [ARG...]" "$name"
  complained "Usage: $name [OPTION...] COMMAND [ARG...]" "$name" -k
  complained "$name: unknown command 'frobnicate'" "$name" frobnicate
  complained "$name: unknown command ''" "$name" ''
  complained "$name: unknown command 'doctor' (did you mean 'nvidia-ctk doctor'?)" "$name" doctor
  complained "$name: unknown command 'inf' (did you mean 'info'?)" "$name" inf
  complained "$name info: Too many arguments" "$name info" info x
  complained "$name list: Too many arguments" "$name list" list x
  complained "$name plan: Too many arguments" "$name plan" plan / /
  complained "$name configure: Too many arguments" "$name configure" configure /a /b
  complained "Usage: $name configure [OPTION...] ROOTFS" "$name configure" configure
  complained "Usage: $name configure [OPTION...] ROOTFS" "$name configure" configure -c
}

@test "missing values" {
  local option
  for option in debug root ldcache nvml-timeout; do
    complained "$name: option '--$option' requires an argument" "$name" --$option
  done
  for option in d r l; do
    complained "$name: option requires an argument -- '$option'" "$name" -$option
  done
  for option in device require ldconfig pid mig-config mig-monitor imex-channel cuda-compat-mode; do
    complained "$name configure: option '--$option' requires an argument" "$name configure" configure /x --$option
  done
  for option in d r l p; do
    complained "$name configure: option requires an argument -- '$option'" "$name configure" configure /x -$option
  done
}

@test "values where none belongs" {
  complained "$name: option '--load-kmods' doesn't allow an argument" "$name" --load-kmods=1 info
  complained "$name configure: option '--compute' doesn't allow an argument" "$name configure" configure --compute=1 /x
  complained "$name info: option '--csv' doesn't allow an argument" "$name info" info --csv=x
}

@test "abbreviations" {
  [[ $(request --dev=0 --comput --uti) == *'"capabilities":["compute","utility"]'* ]]
  complained "$name plan: option '--no' is ambiguous; possibilities: '--no-persistenced' '--no-fabricmanager' '--no-gsp-firmware' '--no-cgroups' '--no-devbind' '--no-cntlibs'" "$name plan" plan --no
  complained "$name: option '--us' is ambiguous; possibilities: '--user' '--usage'" "$name" --us
  [[ $(request --mig-c=all) == *'"mig_config":true'* ]]
  # what is new takes no abbreviation away that worked before
  local old
  for old in --d=/x --loa --no-p --no-c --use --ro=/ --ld=x; do
    run -1 --separate-stderr "$cli" $old configure /
    [ "${stderr_lines[0]}" = "$name: input error: invalid rootfs directory" ] || { echo "$old: $stderr"; return 1; }
  done
  for old in --p=1 --de=0 --req=cuda\>1 --ld=x --compu --ut --vi --g --di --ng --compa --mig-c=all --mig-m=all --i=1 --no-cg \
    --no-d --no-p --no-f --no-g --no-cn --cu=mount; do
    run -1 --separate-stderr "$cli" configure $old /
    [ "${stderr_lines[0]}" = "$name: input error: invalid rootfs directory" ] || { echo "$old: $stderr"; return 1; }
  done
}

@test "options and arguments mix; -- ends options" {
  [[ $(request / -c) == *compute* ]]
  [[ $(request -c -- /) == *compute* ]]
  complained "$name plan: Too many arguments" "$name plan" plan -- / -c
}

@test "each capability, long and short" {
  local long short
  while read -r long short; do
    [ "$(request --"$long")" = "$(request "$short")" ]
    [[ $(request --"$long") == *'"capabilities":["'"$long"'"]'* ]]
  done <<<'compute -c
utility -u
video -v
graphics -g
display -D
ngx -n
compat32 --compat32'
  [ "$(request -cuvgDn)" = "$(request -c -u -v -g -D -n)" ]
}

@test "each other option of a container reaches the request" {
  local option member
  while read -r option member; do
    [[ $(request "$option") == *"$member"* ]] || { echo "$option: $(request "$option")"; return 1; }
  done <<'ROWS'
--device=0 {"kind":"index","text":"0"}
-d0 {"kind":"index","text":"0"}
--device=all {"kind":"all","text":"all"}
--device=GPU-00000000-0000-0000-0000-000000000000 "kind":"uuid"
--device=MIG-00000000-0000-0000-0000-000000000000 "kind":"mig-uuid"
--device=0:1 "kind":"mig-index"
--require=cuda>=12 "requirements":["cuda>=12"]
-rcuda>=12 "requirements":["cuda>=12"]
--mig-config=all "mig_config":true
--mig-monitor=all "mig_monitor":true
--imex-channel=0,5 "imex_channels":[{"id":0},{"id":5}]
--no-cgroups "no_cgroups":true
--no-devbind "no_devbind":true
--no-persistenced "no_persistenced":true
--no-fabricmanager "no_fabricmanager":true
--no-gsp-firmware "no_gsp_firmware":true
--no-cntlibs "compat_mode":"disabled"
--cuda-compat-mode=disabled "compat_mode":"disabled"
--cuda-compat-mode=ldconfig "compat_mode":"ldconfig"
ROWS
  [[ $(request --cuda-compat-mode=mount) == *'"version"'* ]]
  [ "$(request -d 0 -d 1)" = "$(request -d 0,1)" ]
  # nothing that cannot be seen in the request
  run -0 "$cli" plan --show=request --ldconfig=@/sbin/ldconfig.real
  run -0 "$cli" plan --show=request -l /no/such/program
  run -0 "$cli" plan --show=request --pid=1
  run -0 "$cli" plan --show=request -p 0
  run -0 "$cli" plan --show=request --force-cgroups
}

@test "each bad value has its text" {
  local text option
  while IFS='|' read -r option text; do
    refused "$name: $text" plan --show=request "$option" /
  done <<'ROWS'
--pid=abc|input error: parse pid failed: invalid argument
--pid=|input error: parse pid failed: invalid argument
--pid=-1|input error: parse pid failed: invalid argument
--pid=99999999999|input error: parse pid failed: numerical result out of range
--mig-config=0|mig-config error: 0: only 'all' devices are currently supported
--mig-monitor=all,x|mig-monitor error: x: only 'all' devices are currently supported
--imex-channel=x|error parsing IMEX info: unsupported IMEX channel value: x
--imex-channel=1048576|error parsing IMEX info: unsupported IMEX channel value: 1048576
--imex-channel=0,-1|error parsing IMEX info: unsupported IMEX channel value: -1
--cuda-compat-mode=maybe|input error: unsupported cuda-compat-mode: maybe
--show=nothing|input error: unsupported value of --show: nothing
--style=cdi|input error: unsupported value of --style: cdi
ROWS
  while IFS='|' read -r option text; do
    refused "$name: $text" "$option" info
  done <<'ROWS'
--user=nosuchuser|input error: parse user/group failed: no such file or directory
-unosuchuser|input error: parse user/group failed: no such file or directory
-u=0|input error: parse user/group failed: no such file or directory
--user=1x|input error: parse user/group failed: invalid argument
--user=99999999999|input error: parse user/group failed: numerical result out of range
--user=0:nosuchgroup|input error: parse user/group failed: no such file or directory
--nvml-timeout=x|input error: parse NVML timeout failed: invalid argument
--nvml-timeout=-1|input error: parse NVML timeout failed: invalid argument
--nvml-timeout=|input error: parse NVML timeout failed: invalid argument
--nvml-timeout=nan|input error: parse NVML timeout failed: invalid argument
--nvml-timeout=1e300|input error: parse NVML timeout failed: numerical result out of range
ROWS
}

@test "33 requirements are too many, 32 are not" {
  local options=() i
  for i in $(seq 32); do options+=(--require="cuda>=$i"); done
  run -0 "$cli" plan --show=request "${options[@]}"
  refused "$name: input error: too many requirements" plan --show=request "${options[@]}" --require='cuda>=33'
}

@test "the root file system must be absolute and not the host's" {
  local rootfs
  for rootfs in '' . x ../x / // /. /./ //.//; do
    refused "$name: input error: invalid rootfs directory" configure "$rootfs"
  done
}

@test "an error has its hint on a line of its own" {
  run -1 --separate-stderr "$cli" --user=1x info
  [ "${#stderr_lines[@]}" -eq 2 ]
  [[ ${stderr_lines[1]} == "$name: hint: "?* ]]
}

@test "a request survives being printed and read back" {
  local first=$BATS_TEST_TMPDIR/request.json
  "$cli" plan --show=request -d 0,GPU-x,0:1,MIG-y -cuv --require='cuda>=1 brand=x' --imex-channel=3 --no-cgroups >"$first"
  run -0 "$cli" plan --show=request --request="$first"
  [ "$output" = "$(cat "$first")" ]
  # shellcheck disable=SC2016
  for way in 'cat "$2" | "$1" plan --show=request --request=-' '"$1" plan --show=request --request=<(cat "$2")'; do
    run -0 timeout 60 bash -c "$way" - "$cli" "$first"
    [ "$output" = "$(cat "$first")" ]
  done
}

@test "files of plan that cannot be used" {
  local file=$BATS_TEST_TMPDIR/file option
  echo '{' >"$file"
  for option in --request --inventory --image --leases; do
    run -72 --separate-stderr "$cli" plan $option=/no/such/file
    [ "${stderr_lines[0]}" = "$name: input error: $option: cannot read '/no/such/file': no such file or directory" ]
    run -76 --separate-stderr "$cli" plan $option="$file"
    [[ ${stderr_lines[0]} == "$name: input error: $option: "* ]]
    # does not hang
    run ! timeout 5 "$cli" plan $option=/dev/zero
    [ "$status" -ne 124 ]
  done
}

@test "what cannot be written is an error" {
  run -1 bash -c '"$1" -V >/dev/full' - "$cli"
  [[ $output == *"output error: write failed: standard output: no space left on device"* ]]
  run -1 bash -c '"$1" plan --show=request >/dev/full' - "$cli"
}
