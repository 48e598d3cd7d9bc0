# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk cdi list, transform root, validate: what they print, what they refuse, and their exit statuses. Needs no driver and no root.

bats_require_minimum_version 1.5.0

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
    '  hooks:' '  - {hookName: createContainer, path: /root/bin/hook, args: [hook, --link, "a::/root/b"]}' >in.yaml
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
etc/bad.yaml:7:11: warning: the hook'\''s timeout is -1 seconds, and must be more than none' ]
  says info '2 CDI specs, 1 of them invalid'
  spec run/a.yaml v/c a x
  spec run/b.yaml v/c x
  run -1 --separate-stderr env NVIDIA_CTK_CDI_SPEC_DIRS=etc,run,nowhere "$ctk" cdi validate
  [ "${#lines[@]}" -eq 7 ]
  [ "${lines[4]}" = 'etc/good.yaml: warning: v/c=a: overridden by run/a.yaml' ]
  [ "${lines[5]}" = 'run/a.yaml: error: conflicting device "v/c=x": run/b.yaml defines it as well, so nobody can use it' ]
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
