# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk runtime remove, on a host made by the test, with the files of all engines: what it removes, what it leaves, and when it refuses.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  host=$BATS_TEST_TMPDIR/host
  runtime=/usr/bin/nvidia-container-runtime
  mkdir -p "$host"/{bundle,dev,proc,run,sys,tmp} "$host"/etc/{cdi,containerd/conf.d,containers/containers.conf.d,crio/crio.conf.d,docker} "$host"/usr/{bin,share/containers/oci/hooks.d}
  cp "$build/src/cli/ctk/nvidia-ctk" "$host/usr/bin"
  # Found, but never run: no engine looks at the files here.
  for name in podman nvidia-container-runtime nvidia-container-runtime-hook; do
    printf '#!/bin/sh\nexit 0\n' >"$host/usr/bin/$name"
    chmod +x "$host/usr/bin/$name"
  done
}

# ctk WORD...: on that host, where the processes named in $processes run, each a folder and a command line; as $user, if that is set.
ctk() {
  # shellcheck disable=SC2016
  run --separate-stderr env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin processes="${processes:-}" user="${user:-0}" unshare --mount --pid --fork --kill-child --propagation private -- bash -c '
    host=$1
    shift
    mount -t proc proc "$host/proc"
    while read -r folder name words; do
      [ -n "$name" ] || continue
      program=bash
      [ ! -x "$host/bundle/${name##*/}" ] || program=$host/bundle/${name##*/}
      (cd "$host$folder" && exec setpriv --reuid="$user" bash -c "exec -a \"\$0\" \"\$@\"" "$name" "$program" "$host/wait" $words) </dev/null >/dev/null 2>&1 &
    done <<<"$processes"
    until [ "$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" "\n" | grep -cxF "$host/wait")" -eq "$(grep -c . <<<"$processes")" ]; do sleep 0.02; done
    exec chroot "$host" /usr/bin/nvidia-ctk "$@"' bash "$host" "$@"
}
# open_to_all: lets processes of other users reach what lies on that host.
open_to_all() {
  local directory=$host
  while [[ $directory == /* && $directory != /tmp ]]; do
    chmod a+x "$directory"
    directory=${directory%/*}
  done
}
succeeds() { [ "$status" -eq 0 ] || { echo "status $status: $stderr"; return 1; }; }
# refuses TEXT: with that one error, and nothing is changed.
refuses() {
  [ "$status" -eq 1 ] || { echo "status $status: $stderr"; return 1; }
  [ "$(grep -o 'level=error msg=.*' <<<"$stderr")" = "level=error msg=\"$1\"" ] || { echo "$stderr"; return 1; }
  unchanged
}
keep() { cp -a "$host/etc" "$host/usr/share" "$BATS_TEST_TMPDIR" && printf 'sleep 60\n:\n' >"$host/wait"; }
unchanged() { diff -r "$BATS_TEST_TMPDIR/etc" "$host/etc" && diff -r "$BATS_TEST_TMPDIR/share" "$host/usr/share"; }

# The files of a host whose engines were in use before.
engines() {
  printf '{\n\t"log-level": "warn",  "runtimes": {"kata": {"path": "/opt/kata"}}\n}\n' >"$host/etc/docker/daemon.json"
  printf '# ours\nversion = 2\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "x"\n' >"$host/etc/containerd/config.toml"
  printf '[crio.runtime]\nlog_level = "warn" # loud\n' >"$host/etc/crio/crio.conf"
  printf '[engine]\nevents_logger = "file"\n' >"$host/etc/containers/containers.conf"
}

@test "nothing is configured: nothing is changed, and it says so" {
  engines
  keep
  ctk runtime remove
  succeeds
  [[ $stderr == *'level=info msg="No engine of this host is configured for our programs: nothing was changed."'* ]]
  unchanged
  ctk runtime remove --hooks-only
  succeeds
  [[ $stderr == *'level=info msg="No engine of this host has a file that runs our hook: nothing was changed."'* ]]
  unchanged
}

@test "all engines, by default, with CDI and with hooks: every file is as it was, to the byte" {
  engines
  keep
  ctk runtime configure --runtime=docker --set-as-default --cdi.enabled && succeeds
  ctk runtime configure --runtime=containerd --set-as-default && succeeds
  ctk runtime configure --runtime=crio --set-as-default && succeeds
  ctk runtime configure --runtime=crio --nvidia-runtime-name=nvidia-legacy --nvidia-runtime-path="$runtime.legacy" --set-as-default && succeeds
  ctk runtime configure --runtime=podman && succeeds
  ctk runtime configure --runtime=podman --config-mode=oci-hook && succeeds
  run ! unchanged
  ctk runtime remove
  succeeds
  unchanged
}

@test "--hooks-only takes the hook, and leaves the runtime" {
  engines
  keep
  ctk runtime configure --runtime=docker && succeeds
  ctk runtime configure --runtime=podman --config-mode=oci-hook && succeeds
  [ -n "$(ls "$host/usr/share/containers/oci/hooks.d")" ]
  ctk runtime remove --hooks-only
  succeeds
  [ -z "$(ls "$host/usr/share/containers/oci/hooks.d")" ]
  grep -q '"nvidia"' "$host/etc/docker/daemon.json"
}

@test "a hook that CRI-O alone reads is taken, too" {
  engines
  keep
  ctk runtime configure --runtime=podman --config-mode=oci-hook && succeeds
  rm "$host/usr/bin/podman"
  [ -n "$(ls "$host/usr/share/containers/oci/hooks.d")" ]
  ctk runtime remove
  succeeds
  [ -z "$(ls "$host/usr/share/containers/oci/hooks.d")" ]
  unchanged
}

@test "--dry-run shows what would change, and changes nothing" {
  engines
  ctk runtime configure --runtime=docker && succeeds
  keep
  ctk runtime remove --dry-run
  succeeds
  [[ $stderr == *'
-	"log-level": "warn",  "runtimes": {"kata": {"path": "/opt/kata"}, "nvidia": {'*'
+	"log-level": "warn",  "runtimes": {"kata": {"path": "/opt/kata"}}'* ]]
  unchanged
}

@test "entries that another tool made go as well; those of other programs stay, whatever their names" {
  printf '{"features": {"cdi": true}, "runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}, "kata": {"path": "/opt/kata"}}}\n' >"$host/etc/docker/daemon.json"
  printf '[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/local/nvidia/toolkit/nvidia-container-runtime"\n' >"$host/etc/crio/crio.conf.d/99-nvidia.toml"
  touch "$host/etc/crio/crio.conf"
  keep
  ctk runtime remove
  succeeds
  [ "$(jq -c . "$host/etc/docker/daemon.json")" = '{"features":{"cdi":true},"runtimes":{"kata":{"path":"/opt/kata"}}}' ]
  cmp "$host/etc/crio/crio.conf.d/99-nvidia.toml" "$BATS_TEST_TMPDIR/etc/crio/crio.conf.d/99-nvidia.toml"
}

@test "an engine that runs with it by default: refused, with the command; stopped, it goes" {
  engines
  ctk runtime configure --runtime=docker --set-as-default && succeeds
  # Daemons are known by the names of their programs.
  for name in dockerd crio; do
    cp "$(command -v bash)" "$host/bundle/$name"
  done
  keep
  processes="/ dockerd" ctk runtime remove
  refuses "docker starts containers with the runtime 'nvidia' by default, and could not start any without it. Run 'nvidia-ctk runtime configure --runtime=docker --undo' and restart docker first; it is running."
  ctk runtime remove
  succeeds
  run ! grep -q nvidia "$host/etc/docker/daemon.json"
  # By name alone, nothing but its own containers needs it.
  ctk runtime configure --runtime=crio && succeeds
  processes="/ crio" ctk runtime remove
  succeeds
  [ ! -e "$host/etc/crio/crio.conf.d/99-nvidia.toml" ]
}

@test "containers that it started: refused, with their names; those of other runtimes do not count" {
  engines
  ctk runtime configure --runtime=docker && succeeds
  mkdir -p "$host"/bundle/{ours,theirs}
  printf nvidia-container-runtime >"$host/bundle/ours/runtime"
  printf runc >"$host/bundle/theirs/runtime"
  for name in containerd-shim-runc-v2 conmon; do
    cp "$(command -v bash)" "$host/bundle/$name"
  done
  keep
  processes="/bundle/ours /usr/bin/containerd-shim-runc-v2 -namespace moby -id 0123456789abcdef
/bundle/theirs /usr/bin/containerd-shim-runc-v2 -namespace moby -id ffff
/ /usr/bin/conmon --api-version 1 -c fedcba9876543210 -r $runtime.cdi
/ /usr/bin/conmon -c eeee -r /usr/bin/crun" ctk runtime remove
  [ "$status" -eq 1 ]
  [[ $stderr == *'msg="2 containers run with nvidia-container-runtime and cannot be stopped without it: '*'. Stop and remove them first."'* ]]
  [[ $stderr == *0123456789ab* && $stderr == *fedcba987654* && $stderr != *0123456789abc* && $stderr != *ffff* && $stderr != *eeee* ]]
  unchanged
  processes="/bundle/theirs /usr/bin/containerd-shim-runc-v2 -namespace moby -id ffff" ctk runtime remove
  succeeds
}

@test "files that another user's engine names are left to that user" {
  engines
  mkdir -p "$host/home/evil"
  printf '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}, "default-runtime": "nvidia"}' >"$host/home/evil/x.sh"
  cp "$(command -v bash)" "$host/bundle/dockerd"
  keep
  open_to_all
  cp "$host/home/evil/x.sh" "$BATS_TEST_TMPDIR/x.sh"
  user=65534 processes="/ dockerd --config-file /home/evil/x.sh" ctk runtime remove
  succeeds
  [[ $stderr == *"keeps the runtime"* ]] || { echo "$stderr"; return 1; }
  cmp "$BATS_TEST_TMPDIR/x.sh" "$host/home/evil/x.sh"
}

@test "processes of other users, and what only calls itself so, keep nobody from removing it" {
  engines
  ctk runtime configure --runtime=docker && succeeds
  cp "$(command -v bash)" "$host/bundle/conmon"
  keep
  open_to_all
  user=65534 processes="/ /usr/bin/conmon -c fedcba9876543210 -r nvidia-container-runtime" ctk runtime remove --dry-run
  succeeds
  rm "$host/bundle/conmon"
  processes="/ /usr/bin/conmon -c fedcba9876543210 -r nvidia-container-runtime" ctk runtime remove
  succeeds
  run ! grep -q nvidia "$host/etc/docker/daemon.json"
}

@test "what was changed by hand is named, not guessed at; a file that nobody can read stays" {
  engines
  ctk runtime configure --runtime=podman --config-mode=oci-hook && succeeds
  sed -i 's/"prestart"/"prestart", "poststop"/' "$host"/usr/share/containers/oci/hooks.d/*.json
  keep
  ctk runtime remove
  refuses "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json still names /usr/bin/nvidia-container-runtime-hook. It was changed by hand: remove that from the file, then try again."
  rm "$host"/usr/share/containers/oci/hooks.d/*
  echo '{' >"$host/etc/docker/daemon.json"
  keep
  rm -rf "${BATS_TEST_TMPDIR:?}"/{etc,share}
  keep
  ctk runtime remove
  succeeds
  [[ $stderr == *"level=warning msg=\"/etc/docker/daemon.json is left unchanged, because it cannot be parsed: "* ]]
  unchanged
}
