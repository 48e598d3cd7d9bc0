# SPDX-License-Identifier: Apache-2.0
# lane: work
# The container image of the programs for Kubernetes: what is in it, and the device plugin in it, started as a DaemonSet does, with a kubelet.

load lib.bash
load engines.bash

image_name=docker.io/graft/k8s-device-plugin

setup_file() {
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  start_machine dgx-h100
  start_containerd
  export image_folder=$machine/image
  "$top/packaging/image" --build "$build" "$image_folder" >"$machine/image.log"
  image_version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$top/meson.build")
  export image_version
  ctr image import "$image_folder/k8s-device-plugin-$(dpkg --print-architecture).tar" >/dev/null
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() { engine_teardown; }

# plugin_program OPTION...: a program for kubelet.py that runs the image's plugin with these options of ctr. Options that name the kubelet's folders become
# what they are in a pod. daemonset_program MANIFEST: the same with what a kubelet makes of the manifest.
plugin_program() {
  write_program "$(printf '%q ' "$@")" 'folders+=(--mount "type=bind,src=$path,dst=/var/lib/kubelet/${path##*/},options=rbind:rw") && mkdir -p "$path"'
}
daemonset_program() {
  on_host mkdir -p /run/cdi
  # shellcheck disable=SC2016
  write_program '$(cat "$PWD/arguments")' 'mkdir -p "$path"'
  manifest=$1
}
write_program() {
  manifest=
  cat >"$work/plugin" <<SH
#!/bin/bash
set -e
folders=() options=() variables=()
while [ \$# -gt 0 ]; do
  case \$1 in
  --kubelet-socket) path=\${2%/*} && shift && $2 ;;
  --plugin-registry) path=\$2 && shift && $2 ;;
  *) options+=("\$1") ;;
  esac
  shift
done
for name in DP_DISABLE_HEALTHCHECKS DP_ENABLE_HEALTHCHECKS SIMULATED_KMSG; do
  [ -z "\${!name:-}" ] || variables+=(--env "\$name=\${!name}")
done
[ -z "\${SIMULATED_KMSG:-}" ] || variables+=(--mount "type=bind,src=\$SIMULATED_KMSG,dst=\$SIMULATED_KMSG,options=bind:ro")
[ -z "\${MANIFEST:-}" ] || "$top/test/tools/daemonset" "\$MANIFEST" "\$PWD" >arguments
exec /usr/bin/ctr --address /run/containerd-suite/sock --namespace $machine_cgroup run --rm $1 "\${folders[@]}" "\${variables[@]}" \
  $image_name:$image_version $name-\$\$ nvidia-device-plugin "\${options[@]}"
SH
  chmod +x "$work/plugin"
}

kubelet() {
  local case=$1
  shift
  mkdir -p "$work/run"
  KUBELET_UUIDS=$(host_uuids | paste -sd,) KUBELET_PCI=$(information 'Bus Location' | sed 's/\.[0-9]//g' | paste -sd,) \
    MANIFEST=${manifest:+$top/$manifest} KUBELET_REGISTRY=$manifest \
    on_host sh -c 'cd "$0" && mkdir -p plugins_registry device-plugins && exec timeout 120 /usr/bin/python3 "$@"' \
    "$work/run" "$top/test/kubernetes/kubelet.py" "$case" "$work/plugin" "$@"
}

static=packaging/kubernetes/nvidia-device-plugin.yaml

# contents: the image's files, links with their targets.
contents() {
  local digest
  digest=$(jq -r '.layers[0].digest[7:]' "$image_folder"/k8s-device-plugin/blobs/sha256/"$(jq -r '.manifests[0].digest[7:]' "$image_folder/k8s-device-plugin/index.json")")
  tar -tvzf "$image_folder/k8s-device-plugin/blobs/sha256/$digest"
}

# spec: what the plugin's specification says; a node that is in the same place on the host may say so or not.
spec() { on_host jq --sort-keys 'walk(if type == "object" and .path and .hostPath == .path then del(.hostPath) else . end)' /run/cdi/k8s.device-plugin.nvidia.com-gpu.json; }

@test "it holds the programs that were built, the libraries that they need, and no shell" {
  local program
  contents >"$work/contents"
  for program in nvidia-device-plugin gpu-feature-discovery config-manager mps-control-daemon nvidia-nri-plugin; do
    if [ -x "$build/src/daemon/$program" ]; then
      grep -q "^-rwxr-xr-x root/root .* usr/bin/$program\$" "$work/contents" || die "$program is missing"
    else
      grep -qx "  without $program: it was not built" "$machine/image.log"
    fi
  done
  run ! grep -E ' (usr/)?bin/(sh|bash|busybox)$' "$work/contents"
  # Each library has its licence, and a record of its package for those who look for known flaws.
  grep -q ' usr/lib/.*/libnghttp2.so.14$' "$work/contents"
  grep -q ' usr/share/doc/libnghttp2-14/copyright$' "$work/contents"
  grep -q ' var/lib/dpkg/status.d/libnghttp2-14$' "$work/contents"
  ctr run --rm "$image_name:$image_version" "$name" nvidia-device-plugin --version | grep -qx "nvidia-device-plugin version $image_version"
}

@test "every library that a program or a library names is there" {
  mkdir -p "$machine/mounted"
  ctr image mount "$image_name:$image_version" "$machine/mounted" >/dev/null
  # shellcheck disable=SC2016
  on_host sh -c 'cd "$0"; for file in usr/bin/* usr/lib/*-linux-gnu/*; do
    for library in $(readelf --dynamic "$file" | sed -n "s/.*(NEEDED).*\[\(.*\)\]/\1/p"); do
      [ -e usr/lib/*-linux-gnu/$library ] || echo "$file: no $library"
    done
  done' "$machine/mounted" >"$work/missing"
  ctr image unmount "$machine/mounted" >/dev/null
  [ ! -s "$work/missing" ] || die "$(cat "$work/missing")"
}

@test "the same programs make the same bytes" {
  "$top/packaging/image" --build "$build" "$work/again" >/dev/null
  diff -r "$image_folder" "$work/again"
}

@test "what it says of itself" {
  local config
  config=$(jq -r '.[0].Config' <(tar -xOf "$image_folder"/k8s-device-plugin-*.tar manifest.json))
  tar -xOf "$image_folder"/k8s-device-plugin-*.tar "$config" >"$work/config"
  jq -e --arg machine "$(dpkg --print-architecture)" --arg version "$image_version" '.architecture == $machine and .config.User == "0:0" and
    .config.Entrypoint == ["nvidia-device-plugin"] and .config.Labels["org.opencontainers.image.version"] == $version' "$work/config"
  jq -r '.config.Env[]' "$work/config" >"$work/variables"
  for variable in NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=utility NVIDIA_DISABLE_REQUIRE=true; do grep -qx "$variable" "$work/variables"; done
}

# package NAME PROGRAM...: a Debian package that has no more than these programs of the build.
package() {
  local root=$work/root-$1 program
  mkdir -p "$root/DEBIAN" "$root/usr/bin" "$work/packages"
  printf '%s\n' "Package: $1" "Version: 1" "Architecture: $(dpkg --print-architecture)" "Maintainer: Test <test@localhost>" "Description: test" >"$root/DEBIAN/control"
  for program in "${@:2}"; do cp "$program" "$root/usr/bin"; done
  dpkg-deb --build "$root" "$work/packages/$1_1_$(dpkg --print-architecture).deb" >/dev/null
}

@test "from packages it has the same programs as from a build" {
  local name programs=()
  for name in config-manager mps-control-daemon nvidia-device-plugin nvidia-nri-plugin; do programs+=("$build/src/daemon/$name"); done
  package nvidia-device-plugin "${programs[@]}"
  package gpu-feature-discovery "$build/src/daemon/gpu-feature-discovery"
  package nvidia-container-toolkit-base "$build/src/cli/cdi_hook/nvidia-cdi-hook"
  run -0 "$top/packaging/image" --packages "$work/packages" --only k8s-device-plugin "$work/image"
  [ "${lines[0]% (*}" = "$work/image/k8s-device-plugin-$(dpkg --print-architecture).tar: config-manager, gpu-feature-discovery, mps-control-daemon, nvidia-cdi-hook, nvidia-device-plugin, nvidia-nri-plugin" ]
  [[ $output != *without* ]]
}

# Where busybox-static is not installed, its package is fetched: that of Debian 12 has bin/busybox.
@test "the toolkit's image gets its shell from the package of either release of Debian" {
  local place
  for place in bin usr/bin; do
    mkdir -p "$work/$place/DEBIAN" "$work/$place/$place" "$work/$place/usr/share/doc/busybox-static"
    printf '%s\n' "Package: busybox-static" "Version: 1" "Architecture: $(dpkg --print-architecture)" "Maintainer: Test <test@localhost>" "Description: test" >"$work/$place/DEBIAN/control"
    cp "$(type -P busybox)" "$work/$place/$place/busybox"
    echo licence >"$work/$place/usr/share/doc/busybox-static/copyright"
    printf '#!/bin/sh\n[ "$*" = "download busybox-static:%s" ] && dpkg-deb --build "%s" busybox-static_1.deb\n' "$(dpkg --print-architecture)" "$work/$place" >"$work/apt-get"
    chmod +x "$work/apt-get"
    # As if it were not installed.
    run -0 on_host unshare --mount sh -ec 'mkdir -p /run/doc
      mount -t tmpfs doc /run/doc
      mkdir /run/doc/upper /run/doc/work
      mount -t overlay -o lowerdir=/usr/share/doc,upperdir=/run/doc/upper,workdir=/run/doc/work overlay /usr/share/doc
      rm -r /usr/share/doc/busybox-static
      PATH=$0:$PATH
      exec "$@"' "$work" "$top/packaging/image" --build "$build" --only container-toolkit "$work/image-${place%%/*}"
    [[ $output == *"container-toolkit-$(dpkg --print-architecture).tar: nvidia-ctk-installer, "* ]] || die "$output"
  done
}

@test "mistakes are named" {
  run -1 "$top/packaging/image" --build "$work" "$work/image"
  [ "$output" = "image: there is no nvidia-device-plugin for $(dpkg --print-architecture) in '$work'" ]
  run -1 "$top/packaging/image" --build "$build" "$image_folder"
  [ "$output" = "image: '$image_folder/k8s-device-plugin' exists already" ]
  mkdir "$work/packages"
  run -1 "$top/packaging/image" --packages "$work/packages" "$work/other"
  [ "$output" = "image: there are no packages of nvidia-device-plugin in '$work/packages'" ]
  run -1 "$top/packaging/image" --build "$build" --arch arm64 "$work/third"
  [[ $output == "image: --build has the programs of this machine's architecture"* ]]
}

@test "the DaemonSet: the kubelet finds it in its registry" {
  daemonset_program $static
  kubelet registry
}

@test "the DaemonSet: containers get their devices" {
  daemonset_program $static
  kubelet allocates
}

@test "the DaemonSet: a failed GPU is unhealthy" {
  daemonset_program $static
  kubelet health-rules
}

@test "the DaemonSet: the specification is that of a plugin on the host" {
  daemonset_program $static
  kubelet container --device-list-strategy cdi-cri
  spec >"$work/in-container"
  mkdir "$work/host"
  on_host rm /run/cdi/k8s.device-plugin.nvidia.com-gpu.json
  on_host sh -c 'cd "$0" && exec timeout 120 /usr/bin/python3 "$@"' "$work/host" "$top/test/kubernetes/kubelet.py" container \
    "$build/src/daemon/nvidia-device-plugin" --device-list-strategy cdi-cri
  spec >"$work/on-host"
  diff "$work/on-host" "$work/in-container"
  grep -q libcuda "$work/in-container"
}

@test "the DaemonSet without rights: the kubelet finds it, and containers get their devices" {
  daemonset_program test/kubernetes/chart/unprivileged.yaml
  kubelet registry
  rm -r "$work/run"
  kubelet allocates
}

@test "the DaemonSet with a wrong folder of the kubelet does not start" {
  run -1 "$top/test/tools/daemonset" "$top/$static" "$work/nothing"
  [ "$output" = "hostPath type check failed: $work/nothing/device-plugins is not a directory" ]
}

@test "the runtime gives the driver: no rights, and one folder" {
  plugin_program --runc-binary "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime.legacy"
  kubelet registers
}

# The container's sysfs is the kernel's own, and has no simulated GPU.
without_numa() { jq --sort-keys 'del(.. | .has_numa_node?, .numa_node?)'; }

@test "a driver that is installed elsewhere: MIG devices are found by NVML, whose child enters the driver root" {
  local arguments=(--once --mig-strategy mixed --nvidia-driver-root /run/nvidia/driver)
  on_host "$sim" create --topology a100-mig "$machine/driver" >/dev/null
  ctr run --rm --privileged --mount "type=bind,src=$machine/driver,dst=/driver-root,options=rbind:ro" "$image_name:$image_version" "$name" \
    nvidia-device-plugin "${arguments[@]}" 2>"$work/log" | without_numa >"$work/in-container"
  jq -e '[.resources[].resource.name] | index("nvidia.com/mig-1g.5gb")' "$work/in-container" >/dev/null
  on_host "$build/src/daemon/nvidia-device-plugin" "${arguments[@]}" --driver-root-ctr-path "$machine/driver" 2>/dev/null | without_numa >"$work/on-host"
  diff "$work/on-host" "$work/in-container"
}

# The chart's mounts; a container ends its first process alone, which has to end the daemon, its child by then.
@test "the MPS daemon of the chart: in the driver's root, with shared memory that the host sees, until it is ended" {
  local mps=$work/mps gpu=nvidia.com/gpu
  mkdir "$mps"
  on_host mount --bind "$mps" "$mps"
  on_host mount --make-shared "$mps"
  printf 'version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 4}]}}\n' >"$work/config.yaml"
  ctr run --detach --privileged --rootfs-propagation rshared --env CONTAINER_DRIVER_ROOT=/driver-root --env CONFIG_FILE=/config.yaml \
    --mount "type=bind,src=/,dst=/driver-root,options=rbind:ro:rslave" --mount "type=bind,src=$mps,dst=/mps,options=rbind:rw:rshared" \
    --mount "type=bind,src=$work/config.yaml,dst=/config.yaml,options=rbind:ro" \
    "$image_name:$image_version" "$name" mps-control-daemon >"$work/out" 2>&1 3>&- 4>&-
  within 20 test -e "$mps/$gpu/.started" || die "$(cat "$work/out")"
  ask() { echo "$1" | on_host env CUDA_MPS_PIPE_DIRECTORY="$mps/$gpu/pipe" nvidia-cuda-mps-control; }
  [ "$(ask get_default_active_thread_percentage)" = 25.0 ]
  on_host mountpoint -q "$mps/shm"
  [[ $(on_host nvidia-smi -i 7 --query-gpu=compute_mode --format=csv,noheader) == Exclusive_Process ]]
  ctr task kill --signal SIGTERM "$name"
  for _ in $(seq 100); do
    [[ $(ctr task list | awk -v name="$name" '$1 == name { print $3 }') == RUNNING ]] || break
    sleep 0.1
  done
  ctr task delete "$name" >/dev/null
  ctr container delete "$name"
  [ ! -e "$mps/$gpu/.started" ] && [ ! -e "$mps/$gpu/.daemon" ]
  run ! on_host mountpoint -q "$mps/shm"
  [[ $(on_host nvidia-smi -i 7 --query-gpu=compute_mode --format=csv,noheader) == Default ]]
}

@test "docker load and podman load take it" {
  local archive
  archive=$(echo "$image_folder"/k8s-device-plugin-*.tar)
  start_dockerd
  docker load --input "$archive" | grep -qx "Loaded image: graft/k8s-device-plugin:$image_version"
  docker run --rm --net=none "graft/k8s-device-plugin:$image_version" --version | grep -qx "nvidia-device-plugin version $image_version"
  on_host podman --root "$machine/podman" --runroot /run/podman --storage-driver vfs load --input "$archive" 2>/dev/null |
    grep -q "^Loaded image.*graft/k8s-device-plugin:$image_version$"
}
