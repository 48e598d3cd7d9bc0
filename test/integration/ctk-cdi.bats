# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk cdi list, transform root, validate: what they print, what they refuse, and their exit statuses. Needs no driver and no root.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  ctk=$build/src/cli/ctk/nvidia-ctk
  work=$BATS_TEST_TMPDIR
  cd "$work"
  mkdir etc run
}

# spec FILE KIND DEVICE...
spec() {
  local file=$1 kind=$2 device
  shift 2
  {
    printf -- '---\ncdiVersion: 0.5.0\nkind: %s\ndevices:\n' "$kind"
    for device; do
      printf -- '    - name: "%s"\n      containerEdits:\n        env:\n            - A=1\n' "$device"
    done
  } >"$file"
}

# says LEVEL TEXT: a line of the log.
says() {
  [[ $stderr == *" level=$1 msg=\"$2\""* ]] || { echo "stderr: $stderr"; return 1; }
}

@test "list: the devices of all directories, sorted; problems are warnings" {
  spec etc/a.yaml nvidia.com/gpu 1 10 2
  spec run/b.json v.com/c b a
  run -0 --separate-stderr "$ctk" cdi list --spec-dir etc,run
  [ "$output" = $'nvidia.com/gpu=1\nnvidia.com/gpu=10\nnvidia.com/gpu=2\nv.com/c=a\nv.com/c=b' ]
  says info 'Found 5 CDI devices'
  [[ $stderr != *warning* ]]
  run -0 --separate-stderr env NVIDIA_CTK_CDI_SPEC_DIRS=run,etc "$ctk" --quiet cdi list
  [ "${#lines[@]}" -eq 5 ] && [ -z "$stderr" ]

  printf 'cdiVersion: 0.5.0\nkind: v.com/c\ndevice: []\n' >etc/bad.yaml
  spec run/c.yaml v.com/c a z
  run -0 --separate-stderr "$ctk" cdi list --spec-dir=etc --spec-dir=run
  [ "$output" = $'nvidia.com/gpu=1\nnvidia.com/gpu=10\nnvidia.com/gpu=2\nv.com/c=b\nv.com/c=z' ]
  says warning 'The following registry errors were reported:'
  says warning 'etc/bad.yaml: [etc/bad.yaml: line 3, column 1: invalid CDI Spec: unknown field \"device\"]'
  says warning 'run/c.yaml: [conflicting device \"v.com/c=a\" (specs \"run/c.yaml\", \"run/b.json\")]'
  says info 'Found 5 CDI devices'
}

@test "list: on a terminal the devices stand below their kinds, with the files that define them" {
  local escape=$'\e'
  spec etc/a.yaml nvidia.com/gpu 1 10
  spec run/b.json v.com/c a
  run -0 script -qec "env LC_ALL=C.UTF-8 TERM=xterm '$ctk' --quiet cdi list --spec-dir etc,run" /dev/null </dev/null
  [ "${output//$'\r'/}" = "${escape}[1mnvidia.com/gpu${escape}[0m
├─ nvidia.com/gpu=1  ${escape}[2metc/a.yaml${escape}[0m
└─ nvidia.com/gpu=10  ${escape}[2metc/a.yaml${escape}[0m
${escape}[1mv.com/c${escape}[0m
└─ v.com/c=a  ${escape}[2mrun/b.json${escape}[0m" ]
  run -0 script -qec "env NO_COLOR=1 TERM=xterm '$ctk' --quiet cdi list --spec-dir etc,run" /dev/null </dev/null
  [ "${output//$'\r'/}" = $'nvidia.com/gpu=1\nnvidia.com/gpu=10\nv.com/c=a' ]
}

@test "list: hooks without an environment are named" {
  printf 'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: [{name: a, containerEdits: {hooks: [{hookName: createContainer, path: /usr/bin/nvidia-ctk, args: [nvidia-ctk, hook, chmod]}]}}]\n' >etc/old.yaml
  sed 's/chmod\]/&, env: []/; s,nvidia.com/gpu,v.com/c,' etc/old.yaml >etc/empty.yaml
  sed 's/chmod\]/&, env: [A=1]/; s,nvidia.com/gpu,v.com/d,' etc/old.yaml >etc/right.yaml
  sed 's/createContainer/prestart/; s,nvidia.com/gpu,v.com/e,' etc/old.yaml >etc/prestart.yaml
  run -0 --separate-stderr "$ctk" cdi list --spec-dir etc
  for name in old empty; do
    says warning "CDI spec etc/$name.yaml has hooks without an environment (/usr/bin/nvidia-ctk): an image's variables reach them (CVE-2025-23266). Run 'nvidia-ctk cdi refresh' as root"
  done
  [ "$(grep -c level=warning <<<"$stderr")" -eq 2 ]
}

@test "list: nothing there, no directory, one that cannot be read" {
  run -0 --separate-stderr "$ctk" cdi list --spec-dir nowhere
  [ -z "$output" ]
  says info 'Found 0 CDI devices'
  run -1 --separate-stderr "$ctk" cdi list --spec-dir=
  [[ $stderr == *'level=error msg="at least one CDI specification directory must be specified. '* ]]
  : >file
  run -1 --separate-stderr "$ctk" cdi list --spec-dir file
  [[ $stderr == *'failed to read CDI directory: file: not a directory'* ]]
}

@test "transform root: from standard input to standard output" {
  printf '%s\n' 'cdiVersion: 0.3.0' 'kind: v/c' 'devices:' '- name: d' '  containerEdits:' '    deviceNodes:' \
    '    - path: /root/dev/a' '    - path: /dev/b' 'containerEdits:' '  mounts:' \
    '  - {hostPath: /root/lib/x, containerPath: /lib/x, options: [ro]}' '  - {hostPath: /rootfs/y, containerPath: /y}' \
    '  hooks:' '  - {hookName: createContainer, path: /root/bin/hook, args: [hook, --link, "a::/root/b"], env: [A=1]}' >in.yaml
  run -0 --separate-stderr "$ctk" cdi transform root --from /root --to /target <in.yaml
  [ -z "$stderr" ]
  [ "$output" = "$(cat <<'END'
---
cdiVersion: 0.5.0
kind: v/c
devices:
    - name: d
      containerEdits:
        deviceNodes:
            - path: /root/dev/a
              hostPath: /target/dev/a
            - path: /dev/b
containerEdits:
    hooks:
        - hookName: createContainer
          path: /target/bin/hook
          args:
            - hook
            - --link
            - a::/root/b
          env:
            - A=1
    mounts:
        - hostPath: /target/lib/x
          containerPath: /lib/x
          options:
            - ro
        - hostPath: /rootfs/y
          containerPath: /y
END
)" ]
  # There and back is what it was, but for the version and a host path that is now said.
  "$ctk" cdi transform root --from /root --to /target --input in.yaml --output there.json
  "$ctk" cdi transform root --from /target --to /root --input there.json --output back
  [ -e back.yaml ] && [ ! -e back ]
  diff <("$ctk" cdi transform root --input in.yaml) back.yaml | grep '^[<>]' >changes || true
  [ "$(cat changes)" = $'< cdiVersion: 0.3.0\n> cdiVersion: 0.5.0\n>               hostPath: /root/dev/a' ]
  [ "$(stat -c %a there.json back.yaml | sort -u)" = 644 ]
  jq -e '.containerEdits.mounts[0].hostPath == "/target/lib/x"' there.json
}

@test "transform root: hooks without an environment get one" {
  printf '%s\n' 'cdiVersion: 0.3.0' 'kind: v/c' 'devices:' '- name: d' '  containerEdits:' '    hooks:' \
    '    - {hookName: createContainer, path: /usr/bin/nvidia-ctk, args: [nvidia-ctk, hook, chmod]}' 'containerEdits:' \
    '  hooks:' '  - {hookName: createContainer, path: /root/bin/hook}' '  - {hookName: createContainer, path: /bin/x, env: [A=1]}' >in.yaml
  "$ctk" cdi transform root --from /root --to /target --input in.yaml --output out.json
  [ "$(jq -c '[.devices[0].containerEdits.hooks[], .containerEdits.hooks[]] | map([.path, .env])' out.json)" = \
    '[["/usr/bin/nvidia-ctk",["NVIDIA_CTK_DEBUG=false"]],["/target/bin/hook",["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]],["/bin/x",["A=1"]]]' ]
}

@test "transform root, validate: pipes, named in every way, and no more than a file may have" {
  spec in.yaml v/c d
  "$ctk" cdi transform root --input in.yaml >plain
  for way in 'cat in.yaml | "$1" cdi transform root' 'cat in.yaml | "$1" cdi transform root --input -' \
    'cat in.yaml | "$1" cdi transform root --input /dev/stdin' '"$1" cdi transform root --input <(cat in.yaml)' \
    'cat in.yaml | "$1" cdi transform root | "$1" cdi transform root' 'mkfifo f; (cat in.yaml >f) & "$1" cdi transform root --input f'; do
    run -0 --separate-stderr timeout 60 bash -c "$way" - "$ctk"
    [ "$output" = "$(cat plain)" ] || { echo "$way: $output $stderr"; return 1; }
  done
  for way in 'cat in.yaml | "$1" cdi validate -' 'cat in.yaml | "$1" cdi validate /dev/stdin' '"$1" cdi validate <(cat in.yaml)'; do
    run -0 --separate-stderr timeout 60 bash -c "$way" - "$ctk"
    [ -z "$output" ]
    says info '1 CDI specs, 0 of them invalid'
  done
  run -1 --separate-stderr bash -c 'echo "cdiVersion: 0.5.0" | "$1" cdi validate -' - "$ctk"
  [[ $output == 'standard input:1:1: error: '* ]]
  run -1 --separate-stderr bash -c 'echo "cdiVersion: 0.5.0" | "$1" cdi transform root' - "$ctk"
  [[ $stderr == *'level=error msg="failed to load CDI specification: standard input: line 1, column 1: invalid CDI Spec: '* ]]
  run -1 --separate-stderr "$ctk" cdi transform root --input /dev/zero
  [[ $stderr == *'level=error msg="failed to load CDI specification: failed to read CDI spec: /dev/zero: file too large'* ]]
  run -1 --separate-stderr "$ctk" cdi transform root --input .
  [[ $stderr == *'level=error msg="failed to load CDI specification: failed to read CDI spec: .: is a directory'* ]]
  # A pipe in a directory of specs was put there by nobody who reads it.
  mkfifo etc/p.yaml
  run -1 --separate-stderr timeout 60 "$ctk" cdi validate etc
  [[ $output == 'etc/p.yaml: error: failed to read CDI spec: etc/p.yaml: '* ]]
}

@test "transform root: relative to the container" {
  printf '{"cdiVersion":"0.3.0","kind":"v/c","devices":[{"name":"d","containerEdits":{"mounts":[{"hostPath":"/r/a","containerPath":"/r/a"}]}}]}' >in.json
  run -0 "$ctk" cdi transform root -input=in.json -from=/r -to / --relative-to container --output out.json
  jq -ce '.devices[0].containerEdits.mounts[0] == {hostPath: "/r/a", containerPath: "/a"}' out.json
}

@test "transform root: what is refused, before anything is written" {
  echo 'cdiVersion: 0.5.0' >bad.yaml
  run -1 --separate-stderr "$ctk" cdi transform root --input bad.yaml --output out.yaml
  [[ $stderr == *'level=error msg="failed to load CDI specification: bad.yaml: line 1, column 1: invalid CDI Spec: '* ]]
  run -1 --separate-stderr "$ctk" cdi transform root --input gone.yaml --output out.yaml
  [[ $stderr == *'failed to load CDI specification: failed to open CDI spec: gone.yaml: no such file'* ]]
  spec good.yaml v/c d
  run -1 --separate-stderr "$ctk" cdi transform root --input good.yaml --output out.yaml --relative-to moon
  [[ $stderr == *'invalid --relative-to value: moon'* ]]
  run -1 --separate-stderr "$ctk" cdi transform root --input good.yaml --output out.yaml --from root
  [[ $stderr == *"failed to transform CDI specification: the root 'root' to change from is not an absolute path"* ]]
  [ ! -e out.yaml ]
  run -1 --separate-stderr "$ctk" cdi transform root --input good.yaml --output "$work/good.yaml/x.yaml"
  [[ $stderr == *'failed to save CDI specification: '* ]]
  run -1 --separate-stderr bash -c '"$1" cdi transform root --input good.yaml >/dev/full' - "$ctk"
  [[ $stderr == *'write failed: standard output: no space left on device'* ]]
}

@test "validate: files, directories, every fault with its place, exit status" {
  spec etc/good.yaml v/c a
  run -0 --separate-stderr "$ctk" cdi validate etc/good.yaml
  [ -z "$output" ]
  says info '1 CDI specs, 0 of them invalid'
  printf '%s\n' 'cdiVersion: 0.9.0' 'kind: v/c' 'devices:' '- name: -d' '  containerEdits: {env: [A]}' \
    'containerEdits:' '  hooks: [{hookName: poststop, path: /x, timeout: -1}]' >etc/bad.yaml
  run -1 --separate-stderr "$ctk" cdi validate etc/good.yaml etc/bad.yaml
  [ "$output" = 'etc/bad.yaml:1:1: error: invalid version "0.9.0"
etc/bad.yaml:4:3: error: invalid class "-d", should start with a letter or digit
etc/bad.yaml:5:3: error: invalid environment variable "A"
etc/bad.yaml:7:11: warning: the hook'\''s timeout is -1 seconds, but must be at least 1' ]
  says info '2 CDI specs, 1 of them invalid'
  spec run/a.yaml v/c a x
  spec run/b.yaml v/c x
  run -1 --separate-stderr env NVIDIA_CTK_CDI_SPEC_DIRS=etc,run,nowhere "$ctk" cdi validate
  [ "${#lines[@]}" -eq 7 ]
  [ "${lines[4]}" = 'etc/good.yaml: warning: v/c=a: overridden by run/a.yaml' ]
  [ "${lines[5]}" = 'run/a.yaml: error: conflicting device "v/c=x": run/b.yaml defines it as well, so no container can use it' ]
  # Without the conflict all of it is well; warnings do not change the exit status.
  rm run/b.yaml etc/bad.yaml
  run -0 "$ctk" cdi validate --spec-dir etc --spec-dir run
  run -0 "$ctk" cdi validate etc run
  # A file whose name is given is there.
  run -1 --separate-stderr "$ctk" cdi validate run gone.yaml
  [[ $output == 'gone.yaml: error: failed to open CDI spec: gone.yaml: no such file'* ]]
}

@test "validate: as JSON" {
  spec etc/good.yaml v/c a
  printf 'cdiVersion: "0.5.0"\nkind: v/"c\n' >etc/bad.yaml
  run -1 --separate-stderr "$ctk" cdi validate --json etc
  jq -e '[.[].file] == ["etc/bad.yaml", "etc/good.yaml"] and [.[].valid] == [false, true]' <<<"$output"
  jq -e '.[0].faults[] | select(.line == 2) | .severity == "error" and .column == 1 and (.message | startswith("invalid class."))' <<<"$output"
  jq -e '.[1].faults == []' <<<"$output"
  rm etc/*
  run -0 --separate-stderr "$ctk" cdi validate etc --json
  [ "$output" = '[]' ]
}
