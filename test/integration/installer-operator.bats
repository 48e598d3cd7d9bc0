# SPDX-License-Identifier: Apache-2.0
# lane: work
# The image container-toolkit as the GPU Operator starts it: its entry script in our words, both kinds of driver-ready, its mounts and variables; then its check
# of the toolkit, a pod by CRI in which the injected nvidia-smi runs.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  start_containerd
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  export image_folder=$machine/image
  "$top/packaging/image" --build "$build" --only container-toolkit "$image_folder" >"$machine/image.log"
  image_version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$top/meson.build")
  export image_version
  ctr image import "$image_folder/container-toolkit-$(dpkg --print-architecture).tar" >/dev/null
  # The driver's container shows its root there; here it is the node's.
  on_host mkdir -p /run/nvidia/toolkit /run/nvidia/validations /run/nvidia/driver /run/cdi "$machine/nv" "$machine/containerd/conf.d"
  on_host mount --rbind --make-rslave / /run/nvidia/driver
  cat >"$machine/entrypoint.sh" <<'SH'
#!/bin/sh
until [ -f /run/nvidia/validations/driver-ready ]; do
  echo "waiting for the driver container"
  sleep 0.2
done
set -o allexport
cat /run/nvidia/validations/driver-ready
. /run/nvidia/validations/driver-ready
sleep 0.1
exec nvidia-toolkit
SH
  chmod +x "$machine/entrypoint.sh"
}
teardown_file() { stop_machine; }
setup() {
  engine_setup
  toolkit=$machine/nv/toolkit
}
teardown() {
  end_daemonset KILL
  rm -rf "$machine/nv/toolkit" "$machine"/nv/.[a-z]*
  on_host rm -f /run/nvidia/validations/driver-ready /run/cdi/management.nvidia.com-gpu.yaml
  engine_teardown
}

has_log() { grep -q "$1" "$machine/log"; }

# The simulated driver's part of procfs is a mount of the machine: a real one is in every procfs.
# daemonset VARIABLE...: the operator's container, which waits for the driver; its log is $machine/log.
daemonset() {
  local mounts=() variables=() mount
  for mount in "$machine/entrypoint.sh:/bin/entrypoint.sh:rbind:ro" "/run/nvidia/toolkit:/run/nvidia/toolkit:rbind:rw" \
    "/run/nvidia/validations:/run/nvidia/validations:rbind:rw" "$machine/nv:$machine/nv:rbind:rw" "/run/nvidia/driver:/driver-root:rbind:rslave:rw" \
    "/:/host:rbind:rslave:ro" "/run/cdi:/var/run/cdi:rbind:rw" "$machine/containerd:/runtime/config-dir:rbind:rw" \
    "$machine/containerd/conf.d:/runtime/config-dir.d:rbind:rw" "/run/containerd-suite:/runtime/sock-dir:rbind:rw" \
    "/proc:/proc:rbind:rslave:rw"; do
    IFS=: read -r source target options <<<"$mount"
    mounts+=(--mount "type=bind,src=$source,dst=$target,options=$options")
  done
  for variable in "$@"; do variables+=(--env "$variable"); done
  rm -f "$machine/log"
  ctr run --detach --privileged --with-ns pid:/proc/1/ns/pid --log-uri "file://$machine/log" "${mounts[@]}" "${variables[@]}" \
    --env "ROOT=$machine/nv" --env NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND=management.nvidia.com/gpu --env NVIDIA_VISIBLE_DEVICES=void \
    --env TOOLKIT_PID_FILE=/run/nvidia/toolkit/toolkit.pid --env NRI_NAMESPACE=gpu-operator --env RUNTIME=containerd --env CONTAINERD_RUNTIME_CLASS=nvidia \
    --env RUNTIME_CONFIG=/runtime/config-dir/config.toml --env CONTAINERD_CONFIG=/runtime/config-dir/config.toml \
    --env RUNTIME_DROP_IN_CONFIG=/runtime/config-dir.d/99-nvidia.toml --env "RUNTIME_DROP_IN_CONFIG_HOST_PATH=$machine/containerd/conf.d/99-nvidia.toml" \
    --env RUNTIME_SOCKET=/runtime/sock-dir/sock --env CONTAINERD_SOCKET=/runtime/sock-dir/sock \
    --env "RUNTIME_CONFIG_SOURCE=file=/host$machine/containerd/config.toml" \
    "docker.io/graft/container-toolkit:$image_version" "$name" /bin/sh -c /bin/entrypoint.sh
  within 10 has_log 'waiting for the driver container\|^IS_HOST_DRIVER='
}
cdi_on=(CDI_ENABLED=true NVIDIA_RUNTIME_SET_AS_DEFAULT=false NVIDIA_CONTAINER_RUNTIME_MODE=cdi CRIO_CONFIG_MODE=config)

# end_daemonset SIGNAL
end_daemonset() { end_programs "$1" nvidia-toolkit; }

# driver_ready HOST-DRIVER ROOT ROOT-IN-THE-CONTAINER: what the validator writes.
driver_ready() {
  on_host sh -c 'printf "IS_HOST_DRIVER=%s\nNVIDIA_DRIVER_ROOT=%s\nDRIVER_ROOT_CTR_PATH=%s\nNVIDIA_DEV_ROOT=%s\nDEV_ROOT_CTR_PATH=%s\n" \
    "$1" "$2" "$3" "$2" "$3" >/run/nvidia/validations/driver-ready' sh "$@"
}

# systemd starts containerd again when it has ended.
as_systemd() {
  within 20 has_log 'Sending SIGHUP signal to containerd' || { cat "$machine/log" && return 1; }
  within 10 has_ended "$1"
  restart_containerd
}

# validate: the operator's check, in a pod with the runtime class and all devices.
validate() {
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=all -- nvidia-smi -L
  [ "$status" -eq 0 ] || { say "$output" && return 1; }
  [ "$(grep -c '^GPU [0-7]: ' <<<"$output")" -eq 8 ]
}

install_and_validate() {
  local pid
  cp "$machine/containerd/config.toml" "$work/before"
  pid=$(our_containerd)
  daemonset "${cdi_on[@]}"
  driver_ready "$@"
  as_systemd "$pid"
  within 10 has_log 'msg="Waiting for signal"' || { cat "$machine/log" && return 1; }
  grep -qF "\"$machine/containerd/conf.d/*.toml\"" "$machine/containerd/config.toml"
  validate
  on_host grep -qF "$toolkit/nvidia-cdi-hook" /run/cdi/management.nvidia.com-gpu.yaml
  pid=$(our_containerd)
  end_daemonset TERM
  within 10 has_ended "$pid" || { tail -n 12 "$machine/log" && return 1; }
  restart_containerd
  cmp "$machine/containerd/config.toml" "$work/before"
  [ -z "$(ls "$machine/containerd/conf.d")" ]
}

@test "the driver of the host: / and /host" {
  install_and_validate true / /host
  grep -qxF 'root = "/"' "$toolkit/.config/nvidia-container-runtime/config.toml"
}

@test "the driver of a container: /run/nvidia/driver and /driver-root" {
  install_and_validate false /run/nvidia/driver /driver-root
  grep -qxF 'root = "/run/nvidia/driver"' "$toolkit/.config/nvidia-container-runtime/config.toml"
}

@test "the pod is started again: containerd keeps its pid, and pods their GPUs" {
  local pid
  pid=$(our_containerd)
  daemonset "${cdi_on[@]}"
  driver_ready true / /host
  as_systemd "$pid"
  within 10 has_log 'msg="Waiting for signal"'
  pid=$(our_containerd)
  # The kubelet's last word: nothing is cleaned up.
  end_daemonset KILL
  name=$name-again
  daemonset "${cdi_on[@]}"
  within 20 has_log 'msg="containerd has already read its configuration: not signaling it"' || { cat "$machine/log" && return 1; }
  within 10 has_log 'msg="Waiting for signal"'
  [ "$(our_containerd)" = "$pid" ]
  validate
  end_daemonset TERM
  within 10 has_ended "$pid"
  restart_containerd
}

@test "what others call in the image is there" {
  # shellcheck disable=SC2016
  run -0 ctr run --rm "docker.io/graft/container-toolkit:$image_version" "$name" /bin/sh -c 'for name in nvidia-toolkit cat sleep grep sh; do command -v $name; done
    ls -l /work/nvidia-toolkit | grep -o "/work.*"; ls /artifacts/deb/usr/bin /artifacts/rpm/usr/bin | grep -cx nvidia-ctk
    env | grep -x -e NVIDIA_DISABLE_REQUIRE=true -e NVIDIA_DRIVER_CAPABILITIES=utility -e NVIDIA_VISIBLE_DEVICES=void -c'
  [ "$output" = "/work/nvidia-toolkit
cat
sleep
grep
sh
/work/nvidia-toolkit -> /work/nvidia-ctk-installer
2
3" ] || { say "$output" && return 1; }
  jq -e '.[0].RepoTags == ["graft/container-toolkit:" + env.image_version]' <(tar -xOf "$image_folder"/container-toolkit-*.tar manifest.json)
  "$top/packaging/image" --build "$build" --only container-toolkit "$work/again" >/dev/null
  diff -r "$image_folder" "$work/again"
}
