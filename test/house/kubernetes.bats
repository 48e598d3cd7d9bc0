# SPDX-License-Identifier: Apache-2.0
# files: disk
# tools/kubernetes: what it keeps, and how it ends. Scripts stand in for Debian's archive and Go; ./check kubelet and ./check cluster use the real ones.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  copy=$BATS_TEST_TMPDIR/copy
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
  mkdir -p "$copy/tools" "$copy/test/tools"
  cp "$top/tools/kubernetes" "$copy/tools"
  archive 'Kubernetes v1.20.2'
}

# archive VERSION: what release-root unpacks. Its Go makes programs that say so.
archive() {
  cat >"$copy/test/tools/release-root" <<ROOT
#!/bin/bash
set -e
[ "\$*" = "kubernetes bookworm" ]
root=\$GRAFT_CACHE/kubernetes-bookworm
mkdir -p "\$root"/usr/src/kubernetes/{vendor/k8s.io/kube-openapi/cmd/openapi-gen,pkg,staging/src/k8s.io/{api/v1,code-generator}} "\$root"/usr/src/kubernetes/cmd/{kubelet,kube-apiserver,kube-controller-manager,kube-scheduler} "\$root/usr/lib/go-1.19/bin"
for folder in src/kubernetes/vendor share/gocode/src; do
  mkdir -p "\$root/usr/\$folder/github.com/modern-go/reflect2"
  echo "\$folder" >"\$root/usr/\$folder/github.com/modern-go/reflect2/from"
done
for name in api/v1 code-generator; do echo "// +k8s:openapi-gen=true" >"\$root/usr/src/kubernetes/staging/src/k8s.io/\$name/doc.go"; done
cat >"\$root/usr/lib/go-1.19/bin/go" <<'GO'
#!/bin/bash
[ "\$1" = build ] && [ "\$PWD" = "\$GOPATH/src/k8s.io/kubernetes" ] && [ "\$GO111MODULE" = off ] || exit 1
[ "\$(cat vendor/github.com/modern-go/reflect2/from)" = share/gocode/src ] || exit 1
while [ "\$1" != -o ]; do shift; done
to=\$2
shift 2
for package; do
  [ -d "\$package" ] || exit 1
  if [ "\${package##*/}" = openapi-gen ]; then
    printf '#!/bin/sh\necho "\$*" >>"$BATS_TEST_TMPDIR/described"\n' >"\$to"
    chmod +x "\$to"
    exit
  fi
  printf '#!/bin/sh\necho "$1"\n' >"\$to/\${package##*/}"
  chmod +x "\$to/\${package##*/}"
done
echo "\$*" >>"$BATS_TEST_TMPDIR/built"
GO
chmod +x "\$root/usr/lib/go-1.19/bin/go"
echo "\$root"
ROOT
  chmod +x "$copy/test/tools/release-root"
}

@test "kubernetes: each program is built once, those of one call together, and nothing else is left" {
  run -0 "$copy/tools/kubernetes" --where
  where=$output
  [[ $where == "$XDG_CACHE_HOME/graft/kubernetes-"* ]]
  [ ! -e "$XDG_CACHE_HOME" ]
  run -0 --separate-stderr "$copy/tools/kubernetes" kubelet
  [ "$output" = "$where" ]
  run -0 "$where/kubelet" --version
  [ "$output" = "Kubernetes v1.20.2" ]
  run -0 "$copy/tools/kubernetes" kubelet
  [ "$output" = "$where" ]
  run -0 --separate-stderr "$copy/tools/kubernetes" kubelet kube-apiserver kube-scheduler
  [ "$output" = "$where" ]
  [ "$(cat "$BATS_TEST_TMPDIR/built")" = $'./cmd/kubelet\n./cmd/kube-apiserver ./cmd/kube-scheduler' ]
  # Only the API server needs a description of all objects.
  [ "$(wc -l <"$BATS_TEST_TMPDIR/described")" = 1 ]
  grep -q -- "--input-dirs k8s.io/kubernetes/vendor/k8s.io/api/v1 --output-package k8s.io/kubernetes/pkg/generated/openapi " "$BATS_TEST_TMPDIR/described"
  [ "$(ls "$where")" = $'kube-apiserver\nkube-scheduler\nkubelet\nlock' ]
}

@test "kubernetes: another script builds other programs" {
  "$copy/tools/kubernetes" kubelet
  echo "# another line" >>"$copy/tools/kubernetes"
  "$copy/tools/kubernetes" kubelet
  [ "$(cat "$BATS_TEST_TMPDIR/built")" = $'./cmd/kubelet\n./cmd/kubelet' ]
}

@test "kubernetes: another version than this script is for is refused, and not kept" {
  archive 'Kubernetes v1.20.3'
  run -1 "$copy/tools/kubernetes" kubelet kube-scheduler
  [ "$output" = "kubernetes: what was built is not kubelet 1.20.2" ]
  [ "$(ls "$("$copy/tools/kubernetes" --where)")" = lock ]
}

@test "kubernetes: without Debian's archive they cannot be had, and it says why; what is no program is refused" {
  printf '#!/bin/sh\necho "release-root: not to be had" >&2\nexit 77\n' >"$copy/test/tools/release-root"
  run -77 "$copy/tools/kubernetes" kubelet
  [ "$output" = "release-root: not to be had" ]
  for words in "" --nonsense kubectl "kubelet --where"; do
    # shellcheck disable=SC2086 # words
    run -64 "$copy/tools/kubernetes" $words
    [ "$output" = "usage: tools/kubernetes --where | kubelet|kube-apiserver|kube-controller-manager|kube-scheduler..." ]
  done
}
