# SPDX-License-Identifier: Apache-2.0
# files: disk
# The pages of docs/ that show people what to type: each command is run as printed (test/tools/page), by the real engine, on a simulated host with our
# programs in /usr/bin. The images are local ones under the names that the pages use.
# lane: work

load lib.bash
load engines.bash
load docs.bash

cuda=nvcr.io/nvidia/cuda:12.6.3-base-ubuntu24.04
pytorch=pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
ubuntu=ubuntu:24.04
# The variables that NVIDIA's and PyTorch's images set.
cuda_variables=(CUDA_VERSION=12.6.3 NVIDIA_VISIBLE_DEVICES=all "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
  "NVIDIA_REQUIRE_CUDA=cuda>=12.6 brand=tesla,driver>=550,driver<551 brand=nvidia,driver>=550,driver<551")
pytorch_variables=(NVIDIA_VISIBLE_DEVICES=all "NVIDIA_DRIVER_CAPABILITIES=compute,utility")

setup() { work=$BATS_TEST_TMPDIR; }
teardown() {
  local name
  for name in $(cgroups_of_engines); do rmdir "$name" 2>/dev/null || true; done
  stop_machine
}

# Where engines make cgroups for containers below those of this suite, they must be gone when the machine ends.
cgroups_of_engines() { find /sys/fs/cgroup -depth -type d -path "*$machine_cgroup*" 2>/dev/null; }

# page_root KIND: the tar archive of a root with what images of a distribution have besides.
page_root() { tar --create --directory "$(image "$1")" .; }

# --- Docker ---

# docker_machine TOPOLOGY: with a daemon that begins without a configuration, and the images.
docker_machine() {
  page_machine "$@"
  on_host sh -c 'ip link add name graft-probe type bridge && ip link delete graft-probe' 2>/dev/null || skip "this machine's kernel has no bridges"
  mkdir -p "$machine/docker"
  command_of dockerd-of-page "exec dockerd --host unix:///run/docker.sock --data-root $machine/docker/data --exec-root /run/docker-exec \
--pidfile /run/dockerd.pid --cgroup-parent /$machine_cgroup --iptables=false \"\$@\""
  command_of docker 'export DOCKER_HOST=unix:///run/docker.sock
case $1 in
compose) shift; exec /usr/bin/docker-compose "$@" ;;
esac
exec /usr/bin/docker "$@"'
  command_of systemctl "
case \"\$1 \$2\" in
'reload docker') kill -HUP \"\$(cat /run/dockerd.pid)\"; sleep 1 ;;
'restart docker')
  if [ -e /run/dockerd.pid ]; then
    old=\$(cat /run/dockerd.pid)
    kill \"\$old\"
    while kill -0 \"\$old\" 2>/dev/null; do sleep 0.1; done
  fi
  setsid dockerd-of-page >>$machine/docker/log 2>&1 </dev/null &
  for i in \$(seq 300); do
    docker version >/dev/null 2>&1 && exit
    sleep 0.1
  done
  tail -n 20 $machine/docker/log
  exit 1
  ;;
*) echo \"systemctl \$*: not on this machine\" >&2; exit 1 ;;
esac"
  # Installed after the daemon was started, which the page says what to do about.
  on_host mv /usr/bin/nvidia-container-runtime-hook /usr/bin/later
  "$work/shell" root "systemctl restart docker"
  on_host mv /usr/bin/later /usr/bin/nvidia-container-runtime-hook
}

import_docker() {
  local name=$1 kind=$2 line changes=()
  shift 2
  for line in "$@"; do changes+=(--change "ENV ${line%%=*}=\"${line#*=}\""); done
  page_root "$kind" | on_host docker import "${changes[@]}" - "$name" >/dev/null
}

@test "docs/docker.md" {
  docker_machine dgx-h100
  import_docker "$cuda" debian "${cuda_variables[@]}"
  import_docker "$pytorch" debian "${pytorch_variables[@]}"
  import_docker "$ubuntu" debian
  on_host docker swarm init --advertise-addr 127.0.0.1 --listen-addr 127.0.0.1:2377 >/dev/null
  run_page docker
}

# ordinary_containers: LXC, enroot and Podman of the user whom sudo has as its caller.
ordinary_containers() {
  rootless true
  podman_command
  page_root small | rootless env PATH="$page_commands:$PATH" podman import --quiet - docker.io/library/ubuntu:24.04
  enroot_command
  cp -a "$(image small)" "$work/home/train"
  chown --recursive --no-dereference 65534:65534 "$work/home/train"
  echo root:100000:65536 >>"$machine/subid"
  mkdir -p "$machine/lxc/train"
  cp -a "$(image small)" "$machine/lxc/train/rootfs"
  printf '#!/bin/sh\nnvidia-smi -L >/answers\n' >"$machine/lxc/train/rootfs/ask"
  chmod 0755 "$machine/lxc/train/rootfs/ask"
  chown --recursive --no-dereference 100000:100000 "$machine/lxc/train/rootfs"
  chmod a+rx "$machine/lxc" "$machine/lxc/train"
  on_host mkdir -p /run/lxc /var/lib/lxc
  on_host mount --bind "$machine/lxc" /var/lib/lxc
  printf '%s\n' "lxc.rootfs.path = dir:/var/lib/lxc/train/rootfs" "lxc.idmap = u 0 100000 65536" "lxc.idmap = g 0 100000 65536" \
    "lxc.uts.name = train" "lxc.autodev = 1" "lxc.mount.auto = proc:mixed" "lxc.net.0.type = empty" "lxc.apparmor.profile = unconfined" \
    "lxc.init.cmd = /ask" "lxc.cgroup.dir = $machine_cgroup" "lxc.hook.mount = /usr/share/lxc/hooks/nvidia" \
    "lxc.environment = NVIDIA_DRIVER_CAPABILITIES=compute,utility" "lxc.environment = NVIDIA_VISIBLE_DEVICES" >"$machine/lxc/train/config"
}

@test "docs/leases.md, docs/leases-admin.md" {
  export page_user=nobody
  docker_machine dgx-h100
  ordinary_containers
  command_of sudo 'SUDO_USER=nobody SUDO_UID=65534 exec "$@"'
  import_docker "$ubuntu" debian
  # So that it finds the hook.
  "$work/shell" root "systemctl restart docker"
  run_page leases
  [ "$(grep -c '^GPU ' "$machine/lxc/train/rootfs/answers")" -eq 2 ]
  run_page leases-admin
}

# rootless_docker: the daemon of an ordinary user, which `systemctl --user restart docker` restarts.
rootless_docker() {
  rootless true
  command_of docker "case \$(id -u) in
0) DOCKER_HOST=unix:///run/docker.sock ;;
*) DOCKER_HOST=unix:///run/session/docker.sock ;;
esac
export DOCKER_HOST
[ \"\$1\" != compose ] || { shift; exec /usr/bin/docker-compose \"\$@\"; }
exec /usr/bin/docker \"\$@\""
  mv "$page_commands/systemctl" "$page_commands/systemctl-of-root"
  command_of systemctl "[ \"\$1\" = --user ] || exec systemctl-of-root \"\$@\"
state=/run/session/dockerd-rootless
if [ -e \$state/child_pid ]; then
  kill \"\$(cat \$state/child_pid)\"
  for i in \$(seq 300); do
    [ -e \$state/lock ] && ! flock --nonblock \$state/lock true || break
    sleep 0.1
  done
fi
setsid /usr/share/docker.io/contrib/dockerd-rootless.sh --iptables=false >>$machine/home/docker.log 2>&1 </dev/null &
for i in \$(seq 300); do
  docker version >/dev/null 2>&1 && exit
  sleep 0.1
done
tail -n 20 $machine/home/docker.log
exit 1"
  "$work/shell" user "systemctl --user restart docker"
  page_root small | rootless env PATH="$page_commands:$PATH" docker import - "$ubuntu" >/dev/null
}

@test "docs/docker.md, docs/leases.md with a newer Docker, and one without root" {
  newer_engines
  export page_user=nobody
  docker_machine dgx-h100
  import_docker "$cuda" debian "${cuda_variables[@]}"
  import_docker "$pytorch" debian "${pytorch_variables[@]}"
  import_docker "$ubuntu" debian
  rootless_docker
  on_host docker swarm init --advertise-addr 127.0.0.1 --listen-addr 127.0.0.1:2377 >/dev/null
  run_page docker
  command_of sudo 'SUDO_USER=nobody SUDO_UID=65534 exec "$@"'
  ordinary_containers
  page_root small | on_host env PATH="$page_commands:$PATH" podman import --quiet - docker.io/library/ubuntu:24.04
  run_page leases
}

# --- Podman ---

# podman_command: Podman's limits go beyond what a test's machine may give its root; crun of Debian 12 needs one hierarchy of cgroups, so runc is used.
podman_command() {
  mkdir -p "$machine/containers" "$machine/podman"
  [ ! -d /etc/containers ] || cp -a /etc/containers/. "$machine/containers"
  on_host mount --bind "$machine/containers" /etc/containers
  command_of podman "
if [ \"\$(id -u)\" = 0 ]; then
  store='--root $machine/podman/root --runroot /run/podman --tmpdir /run/podman-tmp --storage-driver overlay' group=--cgroup-parent=/$machine_cgroup
else
  store='--root $machine/rootless/root --runroot /run/rootless --tmpdir /run/session/tmp --storage-driver vfs' group=
  export HOME=$machine/home TMPDIR=$machine/home XDG_RUNTIME_DIR=/run/session
fi
verb=\$1
shift
case \$verb in
run) set -- --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 \$group \"\$@\" ;;
build) set -- --network none --isolation oci --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 \$group/build \"\$@\" ;;
esac
export PODMAN_IGNORE_CGROUPSV1_WARNING=1
exec /usr/bin/podman \$store --cgroup-manager cgroupfs --events-backend none --runtime \"\${PODMAN_RUNTIME:-/usr/sbin/runc}\" \"\$verb\" \"\$@\""
}

@test "docs/podman.md" {
  page_machine dgx-h100
  podman_command
  rootless true
  for image in docker.io/library/ubuntu:24.04 "$cuda" "docker.io/$pytorch"; do
    page_root small | on_host podman import --quiet - "$image"
  done
  page_root small | rootless podman import --quiet - docker.io/library/ubuntu:24.04
  run_page podman
}

@test "docs/coming-from-nvidia.md, docs/troubleshooting.md, docs/faq.md" {
  docker_machine dgx-h100
  import_docker "$cuda" debian "${cuda_variables[@]}"
  import_docker "$ubuntu" small
  # As it was set up before.
  on_host nvidia-ctk --quiet runtime configure --runtime=docker
  "$work/shell" root "systemctl restart docker"
  run_page coming-from-nvidia
  run_page troubleshooting
  run_page faq
}

# --- other hosts, with Docker ---

@test "docs/jetson.md" {
  docker_machine orin
  # Without libraries of ours: the C library of the small root is enough for what the page runs.
  import_docker nvcr.io/nvidia/l4t-base:r35.4.1 small NVIDIA_VISIBLE_DEVICES=all
  import_docker nvcr.io/nvidia/l4t-jetpack:r35.4.1 small NVIDIA_VISIBLE_DEVICES=all
  run_page jetson
}

@test "docs/wsl2.md" {
  docker_machine wsl2
  import_docker nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04 small NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility "NVIDIA_REQUIRE_CUDA=cuda>=12.4"
  run_page wsl2
}

# --- Kubernetes' node ---

# containerd_machine TOPOLOGY: with containerd, which begins without our runtime.
containerd_machine() {
  page_machine "$@"
  mkdir -p "$machine/containerd"
  configure_containerd ""
  # Without the handlers that the other suites have: the page registers its own.
  sed '/runtimes.nvidia\]/,$d' "$machine/containerd/config.toml" | sed '/enable_cdi/d' | on_host tee /etc/containerd/config.toml >/dev/null
  command_of ctr 'exec /usr/bin/ctr --address /run/containerd-suite/sock "$@"'
  command_of systemctl "
old=\$(pgrep --full --oldest 'containerd --config /etc/containerd/config.toml') && kill \"\$old\"
while [ -n \"\$old\" ] && kill -0 \"\$old\" 2>/dev/null; do sleep 0.1; done
setsid containerd --config /etc/containerd/config.toml >>$machine/containerd/log 2>&1 </dev/null &
for i in \$(seq 300); do
  ctr version >/dev/null 2>&1 && exit
  sleep 0.1
done
tail -n 20 $machine/containerd/log
exit 1"
  on_host systemctl restart containerd
}

@test "docs/kubernetes.md: containerd, and pods of the runtime class by CRI" {
  containerd_machine dgx-h100
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  on_host ctr --namespace k8s.io image tag docker.io/library/small:latest "$cuda"
  daemons_of_page
  # run_page kubernetes , with a stop where the page takes back what it registered.
  sed 's/^## Undo the configuration$/&\n\n```sh\npods-of-the-class\n```/' "$top/docs/kubernetes.md" >"$work/kubernetes.md"
  command_of pods-of-the-class 'touch "$HOME/reached" && while [ ! -e "$HOME/go-on" ]; do sleep 0.1; done'
  "$top/test/tools/page" run "$work/kubernetes.md" "$work/shell" &
  within 120 test -e "$work/home/reached"
  # The page has told the runtime that a variable of the image counts for nothing, and a mount of the device plugin does.
  name=docs
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=all
  expect_no_gpu
  cri_run --handler nvidia --env NVIDIA_VISIBLE_DEVICES=all --mount "/dev/null:/var/run/nvidia-container-devices/$(host_uuids | sed -n 7p)"
  expect_gpus 6
  touch "$work/home/go-on"
  wait $!
}

# daemons_of_page: the programs for Kubernetes, which packages of their own install.
daemons_of_page() {
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  on_host cp "$build/src/daemon/nvidia-device-plugin" "$build/src/daemon/gpu-feature-discovery" "$build/src/daemon/nvidia-nri-plugin" /usr/bin/
}

# node_of_page: the label of the node worker-1 chooses the configuration "shared"; the plugin finds the API server as in a pod, and no kubelet.
node_of_page() {
  local api=$work/api
  mkdir "$api"
  on_host python3 "$top/test/kubernetes/apiserver.py" serve "$api" >"$work/api.log" 2>&1 3>&- 4>&- &
  control() { on_host python3 "$top/test/kubernetes/apiserver.py" ctl "$api" "$@" >/dev/null 2>&1; }
  within 20 control GET /-/state || die "$(cat "$work/api.log")"
  control POST /api/v1/nodes '{"metadata": {"name": "worker-1", "labels": {"nvidia.com/device-plugin.config": "shared"}}}'
  on_host mkdir -p /etc/nvidia-container-toolkit/configs
  on_host tee /etc/nvidia-container-toolkit/configs/shared >/dev/null <<<'{version: v1, sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}}'
  command_of nvidia-device-plugin "case \$1 in
--node-label=*) export KUBECONFIG=$api/kubeconfig KUBELET_SOCKET= PLUGIN_REGISTRY= ;;
esac
exec /usr/bin/nvidia-device-plugin \"\$@\""
}

@test "docs/device-plugin.md, docs/feature-discovery.md, docs/nri.md" {
  page_machine dgx-h100
  daemons_of_page
  # The plugin that the page speaks to.
  on_host nvidia-device-plugin --kubelet-socket "$work/kubelet.sock" --plugin-registry "" 2>"$work/log" &
  within 20 grep -q '/dev/nvidia7' "$work/log"
  node_of_page
  PAGE_STAYS=10 run_page device-plugin
  run_page feature-discovery
  run_page nri
}

# The configuration that the page has, with a node that is named instead of those of a cluster: Debian's Prometheus cannot ask an API server.
@test "docs/device-plugin.md: Prometheus reads the metrics" {
  local prometheus
  need_root prometheus bookworm
  prometheus=$release_root
  page_machine dgx-h100
  daemons_of_page
  on_host nvidia-device-plugin --kubelet-socket "$work/kubelet.sock" --plugin-registry "" --listen 127.0.0.1:9400 2>"$work/log" 3>&- 4>&- &
  within 20 grep -q '/dev/nvidia7' "$work/log"
  on_host curl --silent --fail http://127.0.0.1:9400/metrics >"$work/metrics"
  "$prometheus/usr/bin/promtool" check metrics <"$work/metrics"
  page_file device-plugin prometheus.yml |
    sed "s/kubernetes_sd_configs: .*/static_configs: [{targets: ['127.0.0.1:10250']}]/; s/^scrape_configs:/global: {scrape_interval: 1s, scrape_timeout: 1s}\n&/" >"$work/prometheus.yml"
  "$prometheus/usr/bin/promtool" check config "$work/prometheus.yml"
  on_host "$prometheus/usr/bin/prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address=127.0.0.1:9090 \
    2>"$work/prometheus.log" 3>&- 4>&- &
  query() { on_host curl --silent --get --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query | jq -r '.data.result[] | [.metric.instance, .value[1]] | join(" ")'; }
  is_up() { [ "$(query up)" = "127.0.0.1:9400 1" ]; }
  within 30 is_up || die "$(tail -n 5 "$work/prometheus.log")"
  [ "$(query 'graft_device_plugin_devices{resource="nvidia.com/gpu",health="Healthy"}')" = "127.0.0.1:9400 8" ]
}

# images_of_page: the page has them made from packages.
images_of_page() {
  [ -x "$build/src/daemon/nvidia-device-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  "$top/packaging/image" --build "$build" "$work/image" >/dev/null
  mkdir "$work/home/packaging"
  printf '#!/bin/sh\ncp -rT "%s" "$1"\n' "$work/image" >"$work/home/packaging/image"
  chmod +x "$work/home/packaging/image"
}

@test "docs/kubernetes-install.md: the image" {
  containerd_machine dgx-h100
  images_of_page
  run_page kubernetes-install
}

# start_registry: the machine's registry.example.com, whose certificate the machine's Docker trusts.
start_registry() {
  local keys=/etc/docker/certs.d/registry.example.com
  on_host mkdir -p "$keys"
  on_host openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=registry.example.com \
    -addext subjectAltName=DNS:registry.example.com -keyout "$work/registry.key" -out "$keys/ca.crt" 2>/dev/null
  echo 127.0.0.1 registry.example.com | on_host tee --append /etc/hosts >/dev/null
  cat >"$work/registry.yml" <<YAML
version: 0.1
storage: {filesystem: {rootdirectory: "$work/registry"}}
http: {addr: "127.0.0.1:443", tls: {certificate: $keys/ca.crt, key: "$work/registry.key"}}
YAML
  on_host "$release_root/usr/bin/docker-registry" serve "$work/registry.yml" >"$work/registry.log" 2>&1 3>&- 4>&- &
  within 20 of_registry v2/ >/dev/null || die "$(cat "$work/registry.log")"
}
# of_registry PATH: what it answers.
of_registry() {
  on_host curl --silent --fail --cacert /etc/docker/certs.d/registry.example.com/ca.crt \
    --header "Accept: application/vnd.docker.distribution.manifest.v2+json" "https://registry.example.com/$1"
}
# config_of_layout FOLDER: the digest of what describes the image for this machine.
config_of_layout() {
  local digest
  digest=$(jq -r --arg machine "$(dpkg --print-architecture)" '.manifests[] | select(.platform.architecture == $machine).digest' "$1/index.json")
  jq -r .config.digest "$1/blobs/sha256/${digest#sha256:}"
}

@test "docs/kubernetes-install.md, docs/gpu-operator.md: the images, by a registry" {
  local name
  need_root registry bookworm
  docker_machine dgx-h100
  images_of_page
  start_registry
  command_of ctr 'exec /usr/bin/ctr --address /run/docker-exec/containerd/containerd.sock "$@"'
  export PAGE_REGISTRY=1
  run_page gpu-operator
  run_page kubernetes-install
  # What the registry has is what was made, and a node can run it.
  [ "$(of_registry v2/_catalog | jq -c .repositories)" = '["graft/container-toolkit","graft/k8s-device-plugin"]' ]
  for name in container-toolkit k8s-device-plugin; do
    [ "$(of_registry "v2/graft/$name/manifests/0.9.0" | jq -r .config.digest)" = "$(config_of_layout "$work/image/$name")" ]
  done
  "$work/shell" root 'docker rmi --force $(docker images --quiet)' >/dev/null
  run "$work/shell" root "docker run --rm --net none registry.example.com/graft/k8s-device-plugin:0.9.0 --version"
  [ "$status" -eq 0 ]
  [[ $output == *"Status: Downloaded newer image for registry.example.com/graft/k8s-device-plugin:0.9.0"*nvidia-device-plugin* ]]
}

# --- LXC ---

# lxc_image: ubuntu noble, where lxc-create keeps what it downloaded.
lxc_image() {
  local kept=$machine/noble
  mkdir -p "$kept/default"
  page_root small | xz -0 >"$kept/default/rootfs.tar.xz"
  cat >"$kept/default/config" <<CONFIG
lxc.autodev = 1
lxc.mount.auto = proc:mixed
lxc.init.cmd = /bin/sleep infinity
CONFIG
  echo 4102444800 >"$kept/default/expiry"
  on_host mkdir -p "$1"
  on_host cp -r "$kept/default" "$1"
}

@test "docs/lxc.md" {
  page_machine dgx-h100
  mkdir "$machine/lxc"
  chmod a+rx "$machine/lxc"
  on_host mkdir -p /run/lxc /var/lib/lxc
  on_host mount --bind "$machine/lxc" /var/lib/lxc
  show_whole_proc
  printf '%s\n' "lxc.net.0.type = empty" "lxc.apparmor.profile = unconfined" "lxc.cgroup.dir = $machine_cgroup" |
    on_host tee /etc/lxc/default.conf >/dev/null
  lxc_image /var/cache/lxc/download/ubuntu/noble/amd64
  # Before root's containers have IDs of their own.
  "$work/shell" root "lxc-create --name privileged --template download -- --dist ubuntu --release noble --arch amd64"
  run_page lxc
}
