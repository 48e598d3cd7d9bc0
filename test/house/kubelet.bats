# SPDX-License-Identifier: Apache-2.0
# files: disk
# tools/kubelet: what it keeps, and how it ends. Scripts stand in for Debian's archive and Go; ./check kubelet uses the real ones.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  copy=$BATS_TEST_TMPDIR/copy
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
  mkdir -p "$copy/tools" "$copy/test/tools"
  cp "$top/tools/kubelet" "$copy/tools"
  archive 'Kubernetes v1.20.2'
}

# archive VERSION: what release-root unpacks. Its Go makes a kubelet that says so.
archive() {
  cat >"$copy/test/tools/release-root" <<ROOT
#!/bin/bash
set -e
[ "\$*" = "kubernetes bookworm" ]
root=\$GRAFT_CACHE/kubernetes-bookworm
mkdir -p "\$root/usr/src/kubernetes/cmd/kubelet" "\$root/usr/lib/go-1.19/bin"
cat >"\$root/usr/lib/go-1.19/bin/go" <<'GO'
#!/bin/bash
[ "\$1" = build ] && [ "\$PWD" = "\$GOPATH/src/k8s.io/kubernetes" ] && [ "\$GO111MODULE" = off ] && [ -d "\${!#}" ] || exit 1
while [ "\$1" != -o ]; do shift; done
printf '#!/bin/sh\necho "$1"\n' >"\$2"
chmod +x "\$2"
echo "built" >>"$BATS_TEST_TMPDIR/built"
GO
chmod +x "\$root/usr/lib/go-1.19/bin/go"
echo "\$root"
ROOT
  chmod +x "$copy/test/tools/release-root"
}

@test "kubelet: it is built once, and nothing else is left" {
  run -0 "$copy/tools/kubelet" --where
  where=$output
  [[ $where == "$XDG_CACHE_HOME/graft/kubelet-"*/kubelet ]]
  [ ! -e "$XDG_CACHE_HOME" ]
  run -0 --separate-stderr "$copy/tools/kubelet"
  [ "$output" = "$where" ]
  run -0 "$where" --version
  [ "$output" = "Kubernetes v1.20.2" ]
  run -0 "$copy/tools/kubelet"
  [ "$output" = "$where" ]
  [ "$(cat "$BATS_TEST_TMPDIR/built")" = built ]
  [ "$(ls "${where%/*}")" = $'kubelet\nlock' ]
}

@test "kubelet: another script builds another one" {
  "$copy/tools/kubelet"
  echo "# another line" >>"$copy/tools/kubelet"
  "$copy/tools/kubelet"
  [ "$(cat "$BATS_TEST_TMPDIR/built")" = $'built\nbuilt' ]
}

@test "kubelet: another version than this script is for is refused, and not kept" {
  archive 'Kubernetes v1.20.3'
  run -1 "$copy/tools/kubelet"
  [ "$output" = "kubelet: what was built is not kubelet 1.20.2" ]
  [ ! -e "$("$copy/tools/kubelet" --where)" ]
}

@test "kubelet: without Debian's archive it cannot be had, and says why; what is no command is refused" {
  printf '#!/bin/sh\necho "release-root: not to be had" >&2\nexit 77\n' >"$copy/test/tools/release-root"
  run -77 "$copy/tools/kubelet"
  [ "$output" = "release-root: not to be had" ]
  run -64 "$copy/tools/kubelet" --nonsense
  [ "$output" = "usage: tools/kubelet [--where]" ]
}
