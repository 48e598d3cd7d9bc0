# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk doctor on hosts with one fault each: for every message that people paste, and for every link of the chain from the kernel to a
# container, the test creates the situation, and the doctor names its cause and the remedy. It changes nothing, on any host and for any user.
#
# Each host is a simulated one in mount and pid namespaces of its own: the machine's own engines, mounts and files are neither seen nor touched.

load lib.bash

ctk=$build/src/cli/ctk/nvidia-ctk

setup() {
  [ "$(id -u)" -eq 0 ]
  work=$BATS_TEST_TMPDIR
  chmod a+rx "$BATS_RUN_TMPDIR" "$work" "$work/.." "$work/../.."
  mkdir -p "$work/bin" "$work/cdi"
  find "$build/src/cli" '(' -name 'nvidia-*' -o -name graft-nvml ')' -type f -perm /100 -exec install -m 0755 {} "$work/bin" \;
  options=(--topology single)
  cat >"$work/cdi/nvidia.yaml" <<'YAML'
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
- name: all
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
YAML
}

teardown() {
  local directory
  for directory in "${made[@]}"; do rmdir "$directory" || true; done
}

made=()
# place DIRECTORY: there is one, for a host to mount something on; it goes with the test if the machine has none.
place() {
  [ ! -d "$1" ] || return 0
  mkdir "$1"
  made=("$1" "${made[@]}")
}

# A host on which all is well, but for what a test then makes wrong. Directories that a test writes to are its own.
well='
  ctk=$work/bin/nvidia-ctk
  own() { mkdir /run/own; mount -t tmpfs -o mode=755 own /run/own; cp -a "$1/." /run/own; mount --move /run/own "$1"; rmdir /run/own; }
  engine_file() { mkdir -p "$(dirname "$1")"; cat >"$1"; touch -d @100 "$1"; }
  rm -rf /etc/docker /etc/containerd /etc/crio /etc/cdi /etc/containers/containers.conf* /etc/nvidia-container-runtime /etc/containers/oci
  mkdir /etc/docker /etc/containerd
  mount -t tmpfs -o mode=755 programs /usr/local/sbin
  for program in "$work"/bin/*; do ln -s "$program" /usr/local/sbin; done
  echo "{\"runtimes\": {\"nvidia\": {\"path\": \"nvidia-container-runtime\"}}}" | engine_file /etc/docker/daemon.json
  for daemon in nvidia-persistenced nv-fabricmanager; do
    command -v "$daemon" >/dev/null || continue
    : >"$work/said-$daemon"
    "$daemon" >"$work/said-$daemon" 2>&1 & daemons="$daemons $!"
    # It says so when it holds its socket.
    until [ -s "$work/said-$daemon" ]; do sleep 0.02; done
  done
  # started NAME: what was put into the background is that program, and no longer the shell.
  started() { until grep -qx "$1" /proc/$!/comm; do sleep 0.02; done; }
  export NVIDIA_CTK_CDI_SPEC_DIRS=$work/cdi PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
  unset XDG_CONFIG_HOME NVIDIA_CTK_CONFIG_FILE_PATH
'

# host SCRIPT: runs it on the host of "${options[@]}", which is well until then; its output is what doctor says.
host() {
  # shellcheck disable=SC2016
  run --separate-stderr timeout 60 env work="$work" unshare --mount --propagation private --pid --fork --kill-child --mount-proc -- sh -c '
    mount -t tmpfs -o mode=755 run /run
    exec "$@"' sh "$sim" run "${options[@]}" -- sh -ec "$well$1"
}

# doctor [WORD...]: what to put behind a script.
doctor() { printf '\n"$ctk" doctor --json %s' "${*@Q}"; }

# finds CHECK LEVEL CAUSE [REMEDY]: extended regular expressions.
finds() {
  jq -e --arg check "$1" --arg level "$2" --arg cause "$3" --arg remedy "${4:-}" '
    .findings | map(select(.check == $check and .level == $level and (.subject + ": " + .cause | test($cause)) and
      ((.remedy // "") | test($remedy)))) | length > 0' >/dev/null <<<"$output" && return
  say "no $2 of $1 with '$3' and '${4:-}'; status $status"
  say "$output" "$stderr"
  return 1
}

# explains CHECK: the finding is marked as a cause of the message.
explains() {
  jq -e --arg check "$1" '.message and (.findings | map(select(.check == $check and .explains)) | length > 0)' >/dev/null <<<"$output" ||
    { say "$1 does not explain the message" "$output"; return 1; }
}

# wrong CHECK...: these and no others complain; the exit status says so.
wrong() {
  local got want
  got=$(jq -r '.findings[] | select(.level == "warning" or .level == "broken") | .check' <<<"$output" | sort -u)
  want=$(printf '%s\n' "$@" | sort -u)
  [ "$got" = "$want" ] || { say "complains: $got" "not: $want" "$output" "$stderr"; return 1; }
  case "$(jq -r .verdict <<<"$output")" in
  ok) [ "$status" -eq 0 ] ;;
  warning) [ "$status" -eq 4 ] ;;
  broken) [ "$status" -eq 5 ] ;;
  esac
}

@test "all is well: nothing complains, status 0, every link of the chain is told" {
  local check
  options=(--topology dgx-h100)
  host "$(doctor)"
  wrong ""
  for check in gpu kernel-module device-nodes device-modes dev-char-links driver-library library-versions loader-cache nvml start-time \
    persistence fabric-manager mig cgroup cgroup-rights user-namespaces config programs cdi-specs cdi-stale engines docker-gpus docker-runtime; do
    finds "$check" ok .
  done
  finds gpu ok '8 GPUs: NVIDIA H100'
  finds nvml ok 'lists 8 GPUs'
  finds fabric-manager ok 'is running'
  host '"$ctk" doctor'
  [ "$status" -eq 0 ]
  # Nothing is printed of what is well but the ways to a GPU and the verdict.
  [ "${lines[0]}" = "The driver is simulated (graft-sim): there is no real GPU on this host." ]
  [[ $output == *$'\ndocker run --gpus all: works\ndocker run --runtime=nvidia: works\n'* ]]
  [[ $output == *$'\npodman run --device nvidia.com/gpu=all: works\n'* ]]
  [[ ${lines[-1]} =~ ^Healthy:\ [0-9]+\ ok,\ 0\ warnings,\ 0\ broken$ ]]
  run ! grep -E '^(warning|broken|ok) ' <<<"$output"
}

@test "an engine outside of the simulated host: its containers get no driver, and so it says" {
  local daemon='cp /usr/bin/sleep /run/dockerd; /run/dockerd 60 & started dockerd
    '
  host "$daemon"'"$ctk" doctor'
  [[ $output == *$'\ndocker run --gpus all: works\n'* ]] || { say "$output" "$stderr"; return 1; }
  host "$daemon"'unshare --mount "$ctk" doctor'
  [ "$status" -eq 5 ]
  [[ $output == *$'\ndocker run --gpus all: does not work: see engines\n'* ]] || { say "$output" "$stderr"; return 1; }
  host "$daemon"'unshare --mount "$ctk" doctor --json'
  wrong engines
  finds engines broken '^docker: it starts containers outside this simulated host' "'graft-sim run'"
}

@test "a simulated host from outside: the doctor in the mount namespace of its engine, as docs/simulated-driver.md shows" {
  grep -qF '    sudo nsenter --target "$(pidof dockerd)" --mount nvidia-ctk doctor' "$top/docs/simulated-driver.md"
  # shellcheck disable=SC2016
  run --separate-stderr timeout 60 env work="$work" unshare --mount --propagation private --pid --fork --kill-child --mount-proc -- sh -ec '
    mount -t tmpfs -o mode=755 run /run
    cp /usr/bin/sleep /run/dockerd
    "$1" run --topology single -- /run/dockerd 60 &
    n=0
    until pid=$(pidof dockerd) && nsenter --target "$pid" --mount test -e /proc/driver/nvidia/version; do n=$((n + 1)) && [ "$n" -lt 500 ] && sleep 0.1; done
    "$work/bin/nvidia-ctk" doctor --quick | head -n 1
    nsenter --target "$pid" --mount "$work/bin/nvidia-ctk" doctor --quick || true' sh "$sim"
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = 'broken   gpu                 PCI bus: no NVIDIA GPU was found' ] || { say "$output" "$stderr"; return 1; }
  [ "${lines[1]}" = "The driver is simulated (graft-sim): there is no real GPU on this host." ]
  [[ $output == *$'\ndocker run --gpus all: '* && $output != *'outside this simulated host'* ]] || { say "$output" "$stderr"; return 1; }
}

# Docker's daemon as snap installs it.
snap='mkdir -p /run/snap/docker/current/bin; mount --bind /run/snap /snap
  cp /usr/bin/sleep /snap/docker/current/bin/dockerd; /snap/docker/current/bin/dockerd 60 &'

# --- the messages that people paste, in the order in which they are pasted most ---

@test "could not select device driver \"cdi\": Docker reads no specifications" {
  host "$(doctor 'docker: Error response from daemon: could not select device driver "cdi" with capabilities: [].')"
  jq -e '.message | test("needs Docker 25 or later; before version 28, CDI must also be switched on")' <<<"$output"
}

@test "could not select device driver: the hook is not there, or came after Docker's daemon, or Docker is of snap" {
  local message='docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'
  host "rm /usr/local/sbin/nvidia-container-runtime-hook; PATH=/usr/sbin:/usr/bin:/sbin:/bin $(doctor "$message")"
  finds docker-gpus broken 'nvidia-container-runtime-hook is not installed' 'systemctl restart docker'
  explains docker-gpus
  # A daemon whose PATH does not lead to it; its name is all that the doctor needs.
  host "cp /usr/bin/sleep /run/dockerd; env -i PATH=/usr/bin:/bin /run/dockerd 60 & started dockerd $(doctor "${message/\"\"/\"nvidia\"}")"
  finds docker-gpus broken "is at /usr/local/sbin/nvidia-container-runtime-hook, which is not in the daemon's PATH: /usr/bin:/bin" 'ln -s'
  explains docker-gpus
  # One that was started before.
  host "rm /usr/local/sbin/nvidia-container-runtime-hook
    cp /usr/bin/sleep /run/dockerd; PATH=/usr/local/sbin:/usr/bin /run/dockerd 60 & sleep 2.1
    install -m 0755 $work/bin/nvidia-container-runtime-hook /usr/local/sbin; sleep 1 $(doctor "$message")"
  finds docker-gpus warning 'was installed or upgraded after the daemon started' 'systemctl restart docker'
  explains docker-gpus
  place /snap
  host "$snap started dockerd $(doctor "$message")"
  finds docker-gpus broken 'was installed by snap' 'snap remove docker'
  explains docker-gpus
}

@test "unknown or invalid runtime name: it is not registered" {
  host "echo '{}' | engine_file /etc/docker/daemon.json $(doctor 'docker: unknown or invalid runtime name: nvidia.')"
  wrong docker-runtime
  finds docker-runtime warning 'not registered in /etc/docker/daemon.json' 'nvidia-ctk runtime configure --runtime=docker'
  explains docker-runtime
  options=(--topology orin)
  host "echo '{}' | engine_file /etc/docker/daemon.json $(doctor 'docker: unknown or invalid runtime name: nvidia.')"
  finds docker-runtime broken 'on Tegra it is the only way'
  options=(--topology single)
  # Without the message nobody is known to need it.
  host "echo '{}' | engine_file /etc/docker/daemon.json $(doctor)"
  wrong ""
  finds docker-runtime ok 'not registered in /etc/docker/daemon.json' 'nvidia-ctk runtime configure --runtime=docker'
  # Registered, and the daemon cannot be asked whether it has read it (one that can: ctk-cdi-engines.bats).
  host "cp /usr/bin/sleep /run/dockerd; /run/dockerd 60 & sleep 1.1; touch /etc/docker/daemon.json
    $(doctor 'docker: Error response from daemon: unknown or invalid runtime name: nvidia.')"
  wrong docker-runtime
  finds docker-runtime warning 'could not be asked which runtimes and CDI directories it has \(/run/docker.sock: No such file or directory\)' 'systemctl reload docker'
  explains docker-runtime
  host "cp /usr/bin/sleep /run/dockerd; /run/dockerd 60 & sleep 1.1; touch /etc/docker/daemon.json $(doctor)"
  wrong ""
  finds docker-runtime '[?]' . || finds docker-runtime '?' 'could not be asked'
}

@test "load library failed: libnvidia-ml.so.1: the driver's libraries are not installed, or in a driver's container" {
  local message='nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file'
  options=(--topology half-installed)
  host "$(doctor "$message")"
  finds driver-library broken 'load library failed: not found, neither in the loader.s cache nor' 'Install the libraries of driver 550.54.14'
  explains driver-library
  options=(--topology driver-container)
  host "$(doctor "$message")"
  finds driver-library broken 'root is /run/nvidia/driver' 'nvidia-container-cli.root=/run/nvidia/driver'
  explains driver-library
  # It is installed, and the loader does not know where.
  options=(--topology single)
  host "mkdir -p /opt/driver; own /opt/driver; mv /usr/lib/x86_64-linux-gnu/libcuda.so* /opt/driver
    mv /usr/lib/x86_64-linux-gnu/libnvidia-ml.so* /opt/driver; ldconfig $(doctor "$message")"
  finds driver-library broken 'libnvidia-ml.so.1: load library failed: not found, neither in the loader.s cache nor where drivers are installed'
  explains driver-library
  host "cd /usr/lib/x86_64-linux-gnu; mkdir -p nvidia/current; mv lib*.so*.550.54.14 nvidia/current; mv libcuda.so* libnvidia-ml.so* nvidia/current
    ldconfig $(doctor "$message")"
  finds loader-cache warning '/etc/ld.so.cache: does not have libnvidia-ml.so.1, which is at /usr/lib/.*/nvidia/current' "'ldconfig'"
  explains loader-cache
  # A Docker that does not see this host's driver.
  place /snap
  host "$snap started dockerd $(doctor "$message")"
  finds docker-gpus broken 'sees neither this host.s driver nor the toolkit' 'snap remove docker'
  explains docker-gpus
  host "own /opt; mkdir /opt/docker-desktop $(doctor "$message")"
  wrong docker-gpus
  finds docker-gpus warning 'Docker Desktop .* virtual machine without a GPU' 'docker context use default'
  explains docker-gpus
  options=(--topology driver-container)
  # What the remedy says mends it.
  host "/run/nvidia/driver/usr/bin/nvidia-persistenced >/dev/null 2>&1 &
    mkdir -p /etc/nvidia-container-runtime
    printf '[nvidia-container-cli]\nroot = \"/run/nvidia/driver\"\n' >/etc/nvidia-container-runtime/config.toml $(doctor "$message")"
  wrong ""
}

@test "driver/library version mismatch: an upgrade without a reboot" {
  options+=(--fault nvml-mismatch)
  host "$(doctor 'Failed to initialize NVML: Driver/library version mismatch')"
  wrong library-versions nvml
  finds library-versions broken 'loaded kernel module is 550.40.07, the libraries are 550.54.14' 'Reboot'
  explains library-versions
}

@test "driver not loaded: no module" {
  "$sim" show single | sed '/^driver:/a module: none' >"$work/none.yaml"
  options=(--topology "$work/none.yaml")
  host "$(doctor 'nvidia-container-cli: initialization error: nvml error: driver not loaded')"
  finds kernel-module broken 'driver not loaded' 'modprobe nvidia'
  explains kernel-module
  # A kernel that it was not built for; the kernel's own driver before it.
  place /lib/modules
  local modules='mount -t tmpfs modules /lib/modules; mkdir "/lib/modules/$(uname -r)"'
  host "$modules; : >\"/lib/modules/\$(uname -r)/modules.dep\" $(doctor 'nvml error: driver not loaded')"
  finds kernel-module broken "driver not loaded: there is no module nvidia for kernel $(uname -r); the libraries have version 550.54.14" 'dkms autoinstall'
  explains kernel-module
  host "$modules; echo 'updates/dkms/nvidia.ko.xz:' >\"/lib/modules/\$(uname -r)/modules.dep\" $(doctor 'nvml error: driver not loaded')"
  finds kernel-module broken 'not loaded, although installed: /lib/modules/.*/nvidia.ko.xz' 'dmesg'
  host "mount -t tmpfs modules /sys/module; mkdir /sys/module/nouveau $(doctor 'nvml error: driver not loaded')"
  finds kernel-module broken 'own driver nouveau uses the GPUs' 'blacklist nouveau'
  # The node is missing, and not the driver; or the half of it that CUDA needs.
  options=(--topology single)
  host "rm /dev/nvidiactl $(doctor 'nvml error: driver not loaded')"
  finds device-nodes broken '/dev/nvidiactl: does not exist' 'create-device-nodes'
  explains device-nodes
  host "rm -r /sys/module/nvidia_uvm $(doctor)"
  wrong kernel-module
  finds kernel-module warning 'nvidia_uvm: is not loaded, and CUDA needs it' 'modprobe nvidia-uvm'
}

@test "insufficient permissions: nodes of a group, SELinux" {
  host "chgrp 44 /dev/nvidia*; chmod 0660 /dev/nvidia* $(doctor 'nvml error: insufficient permissions')"
  finds device-modes broken '/dev/nvidiactl: insufficient permissions: mode 0660, owner 0:44' 'chmod 0666'
  explains device-modes
  host "mount -t tmpfs fs /sys/fs; mkdir -p /sys/fs/selinux/booleans /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
    echo 1 >/sys/fs/selinux/enforce; echo 0 0 >/sys/fs/selinux/booleans/container_use_devices $(doctor 'insufficient permissions')"
  wrong selinux
  finds selinux warning 'does not let containers open devices' 'setsebool -P container_use_devices on'
  explains selinux
}

@test "file exists: the image ships libraries of a driver" {
  mkdir -p "$work/image/usr/lib/x86_64-linux-gnu"
  echo ELF >"$work/image/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.54.03"
  host "$(doctor --image "$work/image" 'file creation failed: /x/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.54.03: file exists')"
  wrong image
  finds image warning 'libnvidia-ml.so.535.54.03' 'apt-get purge'
  explains image
}

@test "cgroup subsystem devices not found: nothing is mounted, or not that controller" {
  host "umount -l /sys/fs/cgroup $(doctor 'cgroup subsystem devices not found')"
  wrong cgroup
  finds cgroup broken 'no control groups are mounted' 'mount -t cgroup2'
  explains cgroup
  if mountpoint -q /sys/fs/cgroup/devices; then
    host "umount -l /sys/fs/cgroup/devices $(doctor 'cgroup subsystem devices not found')"
    wrong cgroup
    finds cgroup broken 'the controller is not mounted' 'mount -t cgroup -o devices'
  fi
  # A library of before cgroup v2, beside ours; a newer one is fine.
  local v2='umount -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; cd /usr/lib/x86_64-linux-gnu; rm -f libnvidia-container.so*'
  host "$v2; : >libnvidia-container.so.1.7.0; ln -s libnvidia-container.so.1.7.0 libnvidia-container.so.1
    $(doctor 'nvidia-container-cli: container error: cgroup subsystem devices not found: unknown.')"
  wrong cgroup
  finds cgroup warning 'libnvidia-container.so.1.7.0: supports cgroup v1 only, and this host has v2' 'Upgrade its package'
  explains cgroup
  host "$v2; : >libnvidia-container.so.1.17.8; ln -s libnvidia-container.so.1.17.8 libnvidia-container.so.1 $(doctor)"
  wrong ""
}

@test "messages of programs in containers: nvidia-smi, libcuda.so.1, no CUDA GPUs, CUDA initialization, ldconfig" {
  host "rm -f /usr/bin/nvidia-smi /usr/local/bin/nvidia-smi $(doctor 'exec: "nvidia-smi": executable file not found in $PATH: unknown.')"
  wrong driver-library
  finds driver-library warning 'nvidia-smi: is not installed on this host' 'Install it'
  explains driver-library
  host "rm /dev/nvidia0 $(doctor 'RuntimeError: No CUDA GPUs are available')"
  explains device-nodes
  host "rm -r /sys/module/nvidia_uvm $(doctor 'CUDA driver initialization failed, you might not have a CUDA gpu.')"
  finds kernel-module warning 'nvidia_uvm: is not loaded' 'modprobe nvidia-uvm'
  explains kernel-module
  options+=(--fault missing=libcuda.so.1)
  host "$(doctor 'error while loading shared libraries: libcuda.so.1: cannot open shared object file: No such file or directory')"
  finds driver-library broken 'libcuda.so.1: is not installed' 'libcuda1'
  explains driver-library
  options=(--topology single)
  host "$(doctor 'ldcache error: open failed: /sbin/ldconfig.real: no such file or directory')"
  wrong ""
  jq -e '(.message | test("^Another container toolkit prints this")) and (.message_remedy | test("type -a nvidia-container-cli"))' <<<"$output"
}

@test "no space left on device: the file system is named" {
  host "own /etc; mount -o remount,size=32m /etc; head -c 64M /dev/zero >/etc/full 2>/dev/null || true
    $(doctor 'write /etc/cdi/nvidia.yaml: no space left on device')"
  wrong disk-space
  finds disk-space broken '/etc: no space left on device: the file system has no free space' "'df -h /etc' shows the use"
  explains disk-space
}

@test "bpf_prog_query failed: operation not permitted: in a user namespace" {
  # shellcheck disable=SC2016
  host 'unshare --user --map-root-user "$ctk" doctor --json "bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted"'
  finds cgroup-rights warning 'the kernel refuses changes to device rules' 'no-cgroups=true'
  explains cgroup-rights
  # shellcheck disable=SC2016
  host 'setpriv --bounding-set=-sys_admin "$ctk" doctor --json "bpf_prog_query(BPF_CGROUP_DEVICE) failed"'
  finds cgroup-rights broken 'CAP_SYS_ADMIN: is missing, although the caller is root' 'privileged'
  explains cgroup-rights
}

@test "unknown device: a replaced GPU, another MIG layout, no MIG, too high an index, a name of CDI" {
  host "$(doctor 'nvidia-container-cli: device error: GPU-01234567-89ab-cdef-0123-456789abcdef: unknown device')"
  wrong requested-devices
  finds requested-devices broken 'the GPU was replaced, or the name is from another host. This host has: GPU-' 'nvidia-smi -L'
  explains requested-devices
  host "$(doctor --device 3)"
  finds requested-devices broken 'the host has fewer GPUs'
  host "$(doctor 'device error: MIG-01234567-89ab-cdef-0123-456789abcdef: unknown device')"
  finds requested-devices broken 'no GPU has MIG instances'
  host "$(doctor 'could not inject: unresolvable CDI devices nvidia.com/gpu=7')"
  finds requested-devices broken 'nvidia.com/gpu=7: unresolvable CDI device: it is in no spec in .*/cdi' "Request one that 'nvidia-ctk cdi list' lists. If the GPU is new, run 'nvidia-ctk cdi refresh' first."
  explains requested-devices
  host "$(doctor --device all --device 0 --device nvidia.com/gpu=all)"
  wrong ""
  options=(--topology a100-mig)
  host "$(doctor 'device error: MIG-GPU-x/1/0: unknown device')"
  finds requested-devices broken 'MIG was set up again'
  explains requested-devices
  # The same, written down where nobody looks: what a node promises to Swarm.
  options=(--topology single)
  host "echo '{\"runtimes\": {\"nvidia\": {\"path\": \"nvidia-container-runtime\"}}, \"node-generic-resources\": [\"gpu=GPU-9\"]}' |
    engine_file /etc/docker/daemon.json $(doctor 'device error: GPU-9: unknown device')"
  finds docker-runtime broken 'promises GPU-9 to Swarm services' 'node-generic-resources'
  explains docker-runtime
}

@test "driver rpc error: timed out: the driver is slow, and nothing keeps the GPUs awake" {
  options+=(--fault nvml-init-delay=2.5)
  host "$(doctor 'nvidia-container-cli: initialization error: driver rpc error: timed out')"
  wrong start-time
  finds start-time warning 'answered after 2\.[0-9] s' 'nvidia-persistenced'
  explains start-time
  host "$(doctor --timeout 1 'nvcgo rpc error: timed out')"
  wrong start-time nvml
  finds start-time broken 'had not answered after 1\.[0-9] s'
  finds nvml broken 'does not answer in time'
}

@test "no runtime for nvidia is configured: not there, not imported, in another version's table, not read since" {
  place /var/lib/kubelet
  local message='failed to get sandbox runtime: no runtime for "nvidia" is configured' kubernetes='
    mount -t tmpfs kubelet /var/lib/kubelet; touch /var/lib/kubelet/config.yaml'
  local table='[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]\nBinaryName = "/usr/local/sbin/nvidia-container-runtime"\n'
  host "$kubernetes; echo 'version = 2' | engine_file /etc/containerd/config.toml $(doctor "$message")"
  wrong containerd-runtime
  finds containerd-runtime broken 'no runtime for "nvidia" is configured' 'nvidia-ctk runtime configure --runtime=containerd'
  explains containerd-runtime
  host "$kubernetes; echo 'version = 2' | engine_file /etc/containerd/config.toml
    printf 'version = 2\n$table' | engine_file /etc/containerd/conf.d/99-nvidia.toml $(doctor "$message")"
  finds containerd-runtime broken '99-nvidia.toml is not read: /etc/containerd/config.toml does not import it'
  host "$kubernetes; printf 'version = 3\n$table' | engine_file /etc/containerd/config.toml $(doctor "$message")"
  finds containerd-runtime broken 'which a file of version 3 does not have' 'io.containerd.cri.v1.runtime'
  host "$kubernetes; printf 'version = 2\nimports = [\"conf.d/*\"]\n' | engine_file /etc/containerd/config.toml
    printf 'version = 4\n$table' | engine_file /etc/containerd/conf.d/99-nvidia.toml $(doctor "$message")"
  finds containerd-runtime broken 'has version 4, and /etc/containerd/config.toml has version 2: the daemon does not start'
  host "$kubernetes; cp /usr/bin/sleep /run/containerd-sleep; mkdir /run/x; mv /run/containerd-sleep /run/x/containerd; /run/x/containerd 60 & sleep 2.1
    printf 'version = 2\n$table' >/etc/containerd/config.toml; sleep 1 $(doctor "$message")"
  finds containerd-runtime warning 'was changed after the daemon started, which has not read it since' 'systemctl restart containerd'
  explains containerd-runtime
  # And as it should be; without Kubernetes nobody asks for it.
  host "$kubernetes; printf 'version = 2\n$table' | engine_file /etc/containerd/config.toml $(doctor)"
  wrong ""
  host "echo 'version = 2' | engine_file /etc/containerd/config.toml $(doctor)"
  finds containerd-runtime ok 'only Kubernetes'
  # A distribution that brings its own.
  place /var/lib/rancher
  host "mount -t tmpfs k3s /var/lib/rancher; rm -r /etc/containerd
    echo 'version = 2' | engine_file /var/lib/rancher/k3s/agent/etc/containerd/config.toml $(doctor "$message")"
  finds containerd-runtime broken 'k3s: no runtime for "nvidia" is configured'
  explains containerd-runtime
}

@test "unsatisfied condition, errors 803 and 804: the image's CUDA and the driver" {
  host "$(doctor 'requirement error: unsatisfied condition: cuda>=13.5, please update your driver to a newer version')"
  wrong requirement
  finds requirement broken 'driver 550.54.14, which supports CUDA up to 12.4' 'Install a newer driver'
  explains requirement
  host "$(doctor --require 'cuda>=12.0')"
  wrong ""
  mkdir -p "$work/image/usr/local/cuda/compat"
  cp "$ctk" "$work/image/usr/local/cuda/compat/libcuda.so.470.57.02"
  host "$(doctor --image "$work/image" 'CUDA error 803: system has unsupported display driver / cuda driver combination')"
  wrong cuda-compat
  finds cuda-compat warning 'does not suit driver 550.54.14' 'LD_LIBRARY_PATH'
  explains cuda-compat
  mv "$work/image/usr/local/cuda/compat"/libcuda.so.{470.57.02,575.57.08}
  options=(--topology geforce-laptop)
  host "$(doctor --image "$work/image" 'error 804: forward compatibility was attempted on non supported HW')"
  finds cuda-compat warning 'data centre GPUs only' 'cuda-compat-mode=disabled'
  explains cuda-compat
}

# --- the chain, link by link, as far as the messages have not had it ---

@test "GPUs: none on the bus, one that has fallen off, one that other drivers have" {
  options=(--topology no-driver)
  host "$(doctor)"
  finds kernel-module broken 'not loaded'
  finds driver-library broken 'libnvidia-ml.so.1' 'Install the NVIDIA driver'
  [ "$status" -eq 5 ]
  options=(--topology quad --fault gpu-lost=1)
  host "$(doctor)"
  finds nvml broken 'lists 3 of 4 GPUs: 00000000:65:00.0 has failed' 'dmesg'
  options=(--topology quad)
  host "umount -l /proc/driver 2>/dev/null || true; rm -rf /proc/driver/nvidia/gpus/0000:65:00.0 $(doctor)"
  [ "$status" -ne 1 ]
}

@test "device nodes: gone, of another driver, a directory in their place" {
  host "rm /dev/nvidia0 $(doctor)"
  finds device-nodes broken '/dev/nvidia0: does not exist' 'nvidia-modprobe'
  host "rm /dev/nvidia-uvm $(doctor)"
  finds device-nodes broken '/dev/nvidia-uvm: does not exist' 'nvidia-ctk system create-device-nodes'
  host "rm /dev/nvidia-uvm; mknod -m 666 /dev/nvidia-uvm c 499 0 $(doctor)"
  finds device-nodes broken "is device 499:0, but the driver now uses" 'rm /dev/nvidia-uvm'
  host "rm /dev/nvidia-uvm; mkdir /dev/nvidia-uvm $(doctor)"
  finds device-nodes broken 'is not a character device' 'rm -r /dev/nvidia-uvm'
}

@test "/dev/char: missing links matter where systemd runs; the remedy makes them" {
  host "mkdir -p /run/systemd/system $(doctor 'Failed to initialize NVML: Unknown Error')"
  wrong dev-char-links
  finds dev-char-links warning '/dev/char/195:255: does not exist for /dev/nvidiactl, and links for other nodes are missing too' 'create-dev-char-symlinks --create-all'
  explains dev-char-links
  # The toolkit makes them; an engine that calls runc with what it read in a spec needs them. crun does without.
  host "mkdir -p /run/systemd/system $(doctor)"
  wrong ""
  finds dev-char-links ok 'the toolkit creates it when a container starts'
  host "mkdir -p /run/systemd/system /etc/containers; printf '[engine]\nruntime = \"runc\"\n' >/etc/containers/containers.conf $(doctor)"
  wrong dev-char-links
  finds dev-char-links warning "containers that get GPUs through CDI .podman. lose them at the next 'systemctl daemon-reload'"
  # shellcheck disable=SC2016
  host 'mkdir -p /run/systemd/system; "$ctk" system create-dev-char-symlinks >/dev/null 2>&1; "$ctk" doctor --json'
  wrong ""
  finds dev-char-links ok 'has a link for each'
}

@test "libraries: parts of two drivers, no CUDA" {
  host "cd /usr/lib/x86_64-linux-gnu; mv libcuda.so.550.54.14 libcuda.so.535.54.03; rm libcuda.so.1; ln -s libcuda.so.535.54.03 libcuda.so.1
    $(doctor 'Driver/library version mismatch')"
  finds library-versions broken 'libcuda.so.1: has version 535.54.03, and NVML has 550.54.14: parts of two drivers are installed' 'Remove the driver that'
  explains library-versions
  options+=(--fault missing=libcuda.so.1)
  host "$(doctor)"
  finds driver-library broken 'libcuda.so.1: is not installed' 'compute'
}

@test "the loader's cache: damaged, gone" {
  host "echo nonsense >/etc/ld.so.cache $(doctor)"
  finds loader-cache broken 'is damaged' 'ldconfig'
  host "rm /etc/ld.so.cache $(doctor)"
  wrong ""
  finds loader-cache ok 'not needed'
}

@test "NVML: crashes, fails; is not asked when it shall not be" {
  options=(--topology single --fault nvml-crash)
  host "$(doctor)"
  wrong nvml
  finds nvml broken 'NVML: fails: ' 'nvidia-smi'
  options=(--topology single --fault nvml-init-fail=999)
  host "$(doctor)"
  wrong nvml
  options=(--topology single --fault nvml-init-delay=30)
  host "$(doctor --quick)"
  [ "$status" -eq 0 ]
  finds nvml '\?' . || finds nvml '?' 'was not asked'
}

@test "a driver that only NVML knows: its GPUs, and nothing that is broken" {
  local fault
  for fault in '' --fault=missing=/sys/module/nvidia; do
    options=(--topology dgx-h100 --fault missing=/proc/driver/nvidia ${fault:+"$fault"})
    host "$(doctor)"
    wrong ""
    finds gpu ok '8 GPUs: NVIDIA H100 80GB HBM3 .simulated.; only NVML lists them, procfs does not'
    jq -e .simulated <<<"$output"
  done
  # And where NVML knows none either.
  options+=(--fault nvml-init-fail=9)
  host "$(doctor)"
  finds kernel-module broken 'nvidia: driver not loaded' 'modprobe nvidia'
}

@test "persistence daemon, fabric manager: of a simulated driver nobody says that they have crashed" {
  options=(--topology dgx-h100)
  host "kill \$daemons; wait \$daemons || true; rm -rf /run/nvidia-persistenced /run/nvidia-fabricmanager 2>/dev/null || umount -l /run/nvidia-persistenced /run/nvidia-fabricmanager
    rm -rf /run/nvidia-persistenced /run/nvidia-fabricmanager $(doctor)"
  wrong ""
  finds persistence ok 'nvidia-persistenced: is not judged: the driver is simulated'
  finds fabric-manager ok 'nv-fabricmanager: is not judged: the driver is simulated'
  # Their sockets are left behind.
  host "kill -KILL \$daemons; wait \$daemons || true $(doctor)"
  wrong ""
  finds persistence ok 'is not judged'
  jq -e .simulated <<<"$output"
}

@test "MIG: a GPU in MIG mode without instances" {
  cat >"$work/empty.yaml" <<'YAML'
driver: 535.161.08
cuda: "12.2"
persistenced: true
gpus:
  - model: A100-SXM4-40GB
    mig: []
YAML
  options=(--topology "$work/empty.yaml")
  host "$(doctor)"
  wrong mig
  finds mig warning 'GPU 0: is in MIG mode without instances' 'nvidia-smi mig -i 0 -cgi'
  options=(--topology a100-mig)
  host "$(doctor)"
  wrong ""
  finds mig ok '13 MIG devices: on 3 GPUs'
}

@test "user namespaces: an ordinary user without ids" {
  # shellcheck disable=SC2016
  host 'echo root:1:2 >/etc/subuid; setpriv --reuid 65534 --regid 65534 --clear-groups "$ctk" doctor --json'
  finds user-namespaces warning '/etc/subuid: has no entry for this user' 'usermod --add-subuids'
  host "echo 0 >/run/none; mount --bind /run/none /proc/sys/user/max_user_namespaces $(doctor)"
  wrong user-namespaces
  finds user-namespaces warning 'user.max_user_namespaces: is 0: rootless engines cannot start' 'sysctl -w user.max_user_namespaces'
}

@test "AppArmor is told" {
  # shellcheck disable=SC2016
  host 'mkdir -p /sys/module/apparmor/parameters && echo Y >/sys/module/apparmor/parameters/enabled; "$ctk" doctor --json'
  wrong ""
  finds apparmor ok 'is enabled'
}

@test "CDI: a spec that nobody can read, one whose files are gone, one of another driver" {
  echo '{' >"$work/cdi/bad.json"
  host "$(doctor)"
  wrong cdi-specs
  finds cdi-specs broken 'bad.json: cannot be used' 'cdi validate'
  rm "$work/cdi/bad.json"
  sed -i 's,/dev/nvidia0,/dev/nvidia5,' "$work/cdi/nvidia.yaml"
  host "$(doctor 'crun: cannot stat /dev/nvidia5')"
  wrong cdi-stale
  finds cdi-stale broken 'is stale: .*/dev/nvidia5' 'nvidia-ctk cdi refresh'
  explains cdi-stale
  # Engines take its devices from a directory that counts more.
  mkdir "$work/later"
  sed 's,/dev/nvidia5,/dev/nvidia0,' "$work/cdi/nvidia.yaml" >"$work/later/gpus.yaml"
  host "export NVIDIA_CTK_CDI_SPEC_DIRS=$work/cdi,$work/later $(doctor)"
  wrong ""
  finds cdi-stale ok "^$work/cdi/nvidia.yaml: is stale, but not used: $work/later/gpus.yaml has its devices\$"
  rm "$work/cdi/nvidia.yaml"
  host "echo '{\"features\": {\"cdi\": true}, \"runtimes\": {\"nvidia\": {\"path\": \"nvidia-container-runtime\"}}}' | engine_file /etc/docker/daemon.json $(doctor)"
  finds cdi-specs warning 'docker: CDI is enabled, but version 20.10.24 does not read CDI specs' '--gpus'
}

@test "CDI: a spec whose hooks have no environment" {
  cat >>"$work/cdi/nvidia.yaml" <<'YAML'
containerEdits:
  hooks:
  - hookName: createContainer
    path: /usr/bin/env
    args: [env]
YAML
  host "$(doctor)"
  finds cdi-specs warning 'nvidia.yaml: has hooks without an environment \(/usr/bin/env\)' 'nvidia-ctk cdi refresh'
}

@test "CDI: a spec that was made for another driver, by what it says of itself" {
  cat >"$work/cdi/nvidia.yaml" <<'YAML'
cdiVersion: 0.6.0
kind: nvidia.com/gpu
annotations:
  DRIVER-KEY: 535.161.08
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
YAML
  local key
  key=$(sed -n 's/^#define KEY_PREFIX *"\(.*\)"$/\1/p' "$top/src/plan/cdi_fingerprint.c")driver-version
  [ "$key" != driver-version ]
  sed -i "s,DRIVER-KEY,$key," "$work/cdi/nvidia.yaml"
  host "$(doctor)"
  # Debian 12's Podman does not read annotations.
  wrong cdi-stale podman
  finds cdi-stale broken 'made for driver 535.161.08, and this host has 550.54.14'
}

@test "config.toml: malformed, of a mode that is none, of a root that is not there, without control groups for everybody" {
  local config='mkdir -p /etc/nvidia-container-runtime; cat >/etc/nvidia-container-runtime/config.toml'
  host "$config </dev/null; echo 'a = ' >/etc/nvidia-container-runtime/config.toml $(doctor)"
  finds config broken 'cannot be used.*line 1' 'nvidia-ctk config default'
  host "mkdir -p /etc/nvidia-container-runtime
    printf '[nvidia-container-runtime]\nmode = \"magic\"\nruntimes = [\"/opt/no-runc\"]\n' >/etc/nvidia-container-runtime/config.toml $(doctor)"
  wrong config programs
  finds config broken "'magic', so no container with a GPU starts; it can be auto, legacy," 'mode=auto'
  finds programs broken 'low-level runtime' 'Install runc'
  host "mkdir -p /etc/nvidia-container-runtime
    printf '[nvidia-container-cli]\nroot = \"/run/nowhere\"\nno-cgroups = true\n' >/etc/nvidia-container-runtime/config.toml
    $(doctor 'Failed to initialize NVML: Unknown Error')"
  wrong config
  finds config broken 'root is /run/nowhere: No such file or directory' 'root=/'
  finds config warning 'no-cgroups is true for every container' 'no-cgroups=false'
  explains config
}

@test "Docker: a file that it cannot use, a runtime whose program is gone, a rootless daemon" {
  host "echo '{\"runtimes\":' | engine_file /etc/docker/daemon.json $(doctor)"
  finds engines broken '/etc/docker/daemon.json: docker cannot read it' "Correct line 2; then run 'systemctl reset-failed docker; systemctl restart docker'. Until then it does not start"
  host "printf '{\\n  // GPUs\\n  \"debug\": true\\n}\\n' | engine_file /etc/docker/daemon.json $(doctor "unable to configure the Docker daemon with file /etc/docker/daemon.json: invalid character '/' looking for beginning of object key string")"
  finds engines broken 'line 2, column 3: a comment, and JSON has none' '^Remove the comment in line 2;'
  explains engines
  [ "$status" -eq 5 ]
  host "echo '{\"runtimes\": {\"nvidia\": {\"path\": \"/opt/nvidia-container-runtime\"}}}' | engine_file /etc/docker/daemon.json $(doctor)"
  wrong docker-runtime
  finds docker-runtime broken 'the program of the runtime nvidia does not exist: /opt/nvidia-container-runtime'
  host "cp /usr/bin/sleep /run/dockerd; echo 'u:x:4711:4711::/run/u:/bin/sh' >>/etc/passwd
    setpriv --reuid 4711 --regid 4711 --clear-groups env PATH=\$PATH /run/dockerd 60 & started dockerd $(doctor)"
  wrong ""
  finds docker-runtime ok 'docker .rootless, uid 4711.: the runtime nvidia is not registered' 'systemctl --user reload docker'
  finds docker-gpus ok 'docker .rootless, uid 4711.'
}

@test "CRI-O: without the runtime, with it, with a hook whose program is gone" {
  host "echo '[crio.runtime]' | engine_file /etc/crio/crio.conf; rm $work/cdi/nvidia.yaml $(doctor 'no runtime for "nvidia" is configured')"
  finds crio-runtime broken 'cri-o: no runtime for "nvidia"' 'nvidia-ctk runtime configure --runtime=crio'
  explains crio-runtime
  host "echo '[crio.runtime]' | engine_file /etc/crio/crio.conf
    printf '[crio.runtime.runtimes.nvidia]\nruntime_path = \"/usr/local/sbin/nvidia-container-runtime\"\n' | engine_file /etc/crio/crio.conf.d/99-nvidia.toml $(doctor)"
  finds crio-runtime ok 'the runtime nvidia is /usr/local/sbin/nvidia-container-runtime'
  host "echo '[crio.runtime]' | engine_file /etc/crio/crio.conf
    echo '{\"hook\": {\"path\": \"/usr/bin/nvidia-old-hook\"}}' | engine_file /etc/containers/oci/hooks.d/nvidia.json $(doctor)"
  finds crio-runtime broken 'the program of the hook /etc/containers/oci/hooks.d/nvidia.json does not exist: /usr/bin/nvidia-old-hook' 'rm /etc/containers/oci/hooks.d/nvidia.json'
}

@test "Podman: with neither a spec nor a hook, and a hook whose program is gone" {
  rm "$work/cdi/nvidia.yaml"
  host "$(doctor 'Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all')"
  wrong podman requested-devices
  finds podman warning 'neither a CDI spec nor a hook' 'nvidia-ctk cdi generate'
  explains podman
  host "echo '{\"hook\": {\"path\": \"/usr/bin/nvidia-old-hook\"}}' | engine_file /etc/containers/oci/hooks.d/nvidia.json $(doctor)"
  finds podman broken 'containers that need the hook do not start' 'rm /etc/containers/oci/hooks.d/nvidia.json'
}

@test "every topology that ships: no failure, and the facts say the same twice and read back" {
  local topology
  for topology in $("$sim" list | awk '{ print $1 }'); do
    options=(--topology "$topology")
    # shellcheck disable=SC2016
    host '
      "$ctk" doctor --facts --quick >"$work/facts.json"
      "$ctk" doctor --facts --from "$work/facts.json" | cmp - "$work/facts.json"
      cat "$work/facts.json" | "$ctk" doctor --facts --from - | cmp - "$work/facts.json"
      "$ctk" doctor --json --quick >"$work/now.json" || [ $? -gt 3 ]
      "$ctk" doctor --json --from "$work/facts.json" >"$work/then.json" || [ $? -gt 3 ]
      cmp "$work/now.json" "$work/then.json"
      "$ctk" doctor --all >/dev/null || [ $? -gt 3 ]'
    [ "$status" -eq 0 ] || { say "$topology: $output" "$stderr"; return 1; }
  done
}

# --- manners ---

@test "it opens nothing for writing, opens no device node, runs nothing, asks dockerd alone, leaves everything as it was" {
  # shellcheck disable=SC2016
  host '
    find /etc /run /dev "$work/cdi" -path "/run/graft-sim/[ps][ry]*" -prune -o -printf "%p %y %m %U:%G %s %T@ %C@ %l\n" 2>/dev/null | grep -v "^/dev/pts" >"$work/before"
    strace -f -qq -o "$work/trace" -e trace=openat,open,openat2,creat,mkdir,mkdirat,mknod,mknodat,unlink,unlinkat,rename,renameat,renameat2,symlink,symlinkat,link,linkat,chmod,fchmod,fchmodat,chown,fchown,fchownat,mount,execve,execveat,connect,bind \
      "$ctk" doctor --quick >/dev/null || true
    find /etc /run /dev "$work/cdi" -path "/run/graft-sim/[ps][ry]*" -prune -o -printf "%p %y %m %U:%G %s %T@ %C@ %l\n" 2>/dev/null | grep -v "^/dev/pts" >"$work/after"
    cp /usr/bin/sleep /run/dockerd; /run/dockerd 60 & started dockerd
    mkfifo /run/docker.sock
    strace -f -qq -o "$work/asked" -e trace=connect,sendto,execve "$ctk" doctor >/dev/null || true'
  diff "$work/before" "$work/after"
  grep -q /proc/self/mountinfo "$work/trace" || grep -q mountinfo "$work/trace"
  run ! grep -E 'O_(WRONLY|RDWR|CREAT|TRUNC)' "$work/trace"
  run ! grep -E '(creat|mkdir|mkdirat|mknod|mknodat|unlink|unlinkat|rename|renameat2?|symlink|symlinkat|linkat?|f?chmod|fchmodat|f?chown|fchownat|mount|connect|bind)\(' "$work/trace"
  run ! grep -E '"(/dev/)?nvidia([0-9]|ctl|-uvm)' <(grep -v O_PATH "$work/trace")
  [ "$(grep -c execve "$work/trace")" -eq 1 ]
  # What is no socket is not connected to.
  run ! grep -E '(connect|sendto)\(' <(grep -v 'sendto(.*nvml' "$work/asked")
}

@test "an ordinary user: what he may not see is told as not seen, and counts for nothing" {
  # shellcheck disable=SC2016
  host 'echo nobody:100000:65536 >/etc/subuid
    cp /usr/bin/sleep /run/dockerd; chmod 755 /run/dockerd; touch -d @100 "$work"/bin/*; /run/dockerd 60 & started dockerd
    chmod 600 /etc/docker/daemon.json
    setpriv --reuid 65534 --regid 65534 --clear-groups "$ctk" doctor --json'
  finds unseen '\?' . || finds unseen '?' 'could not be read'
  finds cgroup-rights ok 'uid 65534'
  finds engines broken 'daemon.json: docker cannot read it: Permission denied' || finds engines '?' 'daemon.json'
}

@test "hosts that lack everything: no /proc, no /sys, no /etc, nothing but the program" {
  mkdir -p "$work/root/bin"
  cp "$ctk" "$work/root/bin"
  ldd "$ctk" | grep -oE '/[^ ]+' | while read -r library; do install -D "$library" "$work/root$library"; done
  run -5 --separate-stderr chroot "$work/root" /bin/nvidia-ctk doctor --json
  [ -z "$stderr" ]
  jq -e '.verdict == "broken"' <<<"$output" >/dev/null
  # shellcheck disable=SC2016
  run -5 --separate-stderr unshare --mount --propagation private -- sh -c '
    for directory in /proc /sys /etc /run /dev; do mount -t tmpfs x "$directory"; done; exec "$0" doctor --json' "$ctk"
  [ -z "$stderr" ]
}

@test "odd files: fifos, endless and huge ones, links in circles, where files should be" {
  # shellcheck disable=SC2016
  host '
    rm /etc/docker/daemon.json; mkfifo /etc/docker/daemon.json
    mkdir -p /etc/containerd /etc/crio/crio.conf.d /etc/containers/oci/hooks.d
    ln -s /dev/zero /etc/containerd/config.toml
    ln -s crio.conf /etc/crio/crio.conf
    ln -s /dev/urandom /etc/crio/crio.conf.d/x
    mkfifo /etc/containers/oci/hooks.d/a.json
    truncate -s 10G /etc/containers/containers.conf
    mkdir "$work/cdi/d.yaml"; mkfifo "$work/cdi/e.yaml"; truncate -s 1G "$work/cdi/f.json"
    rm /etc/passwd; mkdir /etc/passwd
    mkdir -p /etc/nvidia-container-runtime; mkfifo /etc/nvidia-container-runtime/config.toml
    timeout 20 "$ctk" doctor --json'
  [ "$status" -eq 5 ] || { say "$status: $output" "$stderr"; return 1; }
  finds engines broken '/etc/docker/daemon.json'
  finds engines broken '/etc/containerd/config.toml'
  finds cdi-specs broken 'e.yaml'
  finds cdi-specs broken 'f.json'
  finds config broken 'config.toml'
}

@test "words: a wrong option, a wrong time, facts that are none, a full disk" {
  run -1 --separate-stderr "$ctk" doctor --timeout soon
  [[ $stderr == *"--timeout is 'soon'; allowed: 1 to 3600 seconds"* ]]
  run -1 --separate-stderr "$ctk" doctor --no-such-option
  run -1 --separate-stderr "$ctk" doctor --from /dev/null
  [[ $stderr == *"level=error"* ]]
  run -1 --separate-stderr "$ctk" doctor --from "$work/nothing"
  [[ $stderr == *"read failed: $work/nothing: no such file or directory"* ]]
  run -1 --separate-stderr "$ctk" doctor --image "$work/nothing"
  [[ $stderr == *"image"*"$work/nothing"* ]]
  run -1 --separate-stderr sh -c '"$0" doctor >/dev/full' "$ctk"
  run -1 --separate-stderr "$ctk" doctor ' '
  [[ $stderr == *"the message is empty. Give the text that the engine or the program printed."* ]]
  run -0 "$ctk" doctor --help
  [[ $output == *"[MESSAGE]"* ]]
}

@test "the table: what is wrong, the remedy below it, the message first" {
  # shellcheck disable=SC2016
  host 'rm /dev/nvidia0; mkdir -p /run/systemd/system; "$ctk" doctor "nvml error: driver not loaded"'
  [ "$status" -eq 5 ]
  [[ $output == *"Usual cause: The host has no driver, its kernel module is not loaded, or its device nodes are
    missing; or the container was started without a GPU.
Usual remedy: Run 'nvidia-smi' on the host. If it fails, install the driver or load it with
    'modprobe nvidia'; if it works, start the container with a GPU ('docker run --gpus all').

On this host:
broken   device-nodes        /dev/nvidia0: does not exist
                             -> Run 'nvidia-smi' once as root, or 'nvidia-modprobe -c N -u' with the
                             number N of each GPU; nvidia-persistenced does it at every boot.

"* ]]
  [[ $output == *$'\ndocker run --gpus all: does not work: see device-nodes\n'* ]]
  [[ ${lines[-1]} =~ ^Broken:\ [0-9]+\ ok,\ [01]\ warnings?,\ [0-9]+\ broken ]]
  # A long subject is broken as well as its cause.
  # shellcheck disable=SC2016
  host 'umount /usr/local/sbin; "$ctk" doctor'
  [[ $output == *"
warning  programs            nvidia-container-runtime-hook"* ]]
  run ! grep -qE '^.{101}' <<<"$output"
  # Who does not quote the message is understood as well.
  # shellcheck disable=SC2016
  host '"$ctk" doctor nvml error: driver not loaded'
  [[ $output == *"Usual cause: The host has no driver, its kernel module is not loaded"* ]]
  # A message that nobody knows: everything that is wrong.
  # shellcheck disable=SC2016
  host 'rm /dev/nvidia0; "$ctk" doctor "the coffee is cold"'
  [[ $output == *$"I don't know this message. Here is everything that looks wrong on this host:"$'\n\nbroken   '* ]]
  # shellcheck disable=SC2016
  host '"$ctk" doctor "the coffee is cold"'
  [[ $output == *"I don't know this message, and nothing looks wrong on this host."$'\n\n'* ]]
  # shellcheck disable=SC2016
  host '"$ctk" doctor "nvml error: driver not loaded"'
  [ "$status" -eq 0 ]
  [[ $output == *$'\nOn this host:\nThe checks for this message find nothing wrong.\nTo check one container, run \'nvidia-ctk doctor --container NAME\'.\n'* && $output != *"Other checks:"* ]]
  # What does not explain the message is below a heading of its own.
  # shellcheck disable=SC2016
  host 'umount /usr/local/sbin; "$ctk" doctor "nvml error: driver not loaded"'
  [[ $output == *$'\nThe checks for this message find nothing wrong.\nTo check one container, run \'nvidia-ctk doctor --container NAME\'.\n\nOther checks:\nwarning  programs '* ]]
}

@test "config.toml: a value that no program understands is named, with what comes of it and what was meant" {
  host "mkdir -p /etc/nvidia-container-runtime
    printf 'supported-driver-capabilities = \"compute,videos\"\n[nvidia-container-cli]\nuser = \"nobody:nowhere\"\n' >/etc/nvidia-container-runtime/config.toml $(doctor)"
  wrong config
  finds config broken "supported-driver-capabilities is 'videos', so no container with '--gpus' starts; it can be all, compat32, .* or video \(did you mean 'video'\?\)\$" \
    "'nvidia-ctk config --in-place --set supported-driver-capabilities=compat32,compute,display,graphics,ngx,utility,video'"
  finds config broken "nvidia-container-cli.user is 'nobody:nowhere', so no container with '--gpus' starts; it can be USER or USER:GROUP of this host\$"
  # Only the hook reads them.
  jq -e '[.ways[] | select(.why == "see config") | .command] == ["docker run --gpus all"]' >/dev/null <<<"$output" || { say "$output"; return 1; }
  jq -e '.ways | map(select(.command == "docker run --runtime=nvidia" and .level == "ok")) | length == 1' >/dev/null <<<"$output"
  host "mkdir -p /etc/nvidia-container-runtime
    printf '[nvidia-container-runtime]\nlog-level = \"loud\"\n[nvidia-container-runtime.modes]\nlegacy.cuda-compat-mode = \"mounts\"\n' >/etc/nvidia-container-runtime/config.toml $(doctor)"
  wrong config
  [ "$status" -eq 4 ]
  finds config warning "nvidia-container-runtime.log-level is 'loud', so the level is info instead;" "'nvidia-ctk config --in-place --set nvidia-container-runtime.log-level=info'"
  finds config warning "cuda-compat-mode is 'mounts', so containers do not use a newer CUDA of their image; it can be ldconfig, mount, hook or disabled \(did you mean 'mount'\?\)\$"
}

@test "config.toml: a key that nobody reads is told with its line and the one that was meant" {
  host "mkdir -p /etc/nvidia-container-runtime; printf '[nvidia-container-cli]\nno_cgroups = true\n' >/etc/nvidia-container-runtime/config.toml $(doctor)"
  finds config warning "config.toml: line 2: ignoring unknown key 'nvidia-container-cli.no_cgroups' \(did you mean 'no-cgroups'\?\)\$" \
    'man nvidia-container-runtime-config'
}

@test "the page of the operator has the paths of distributions that the doctor says" {
  local setting n=0
  while read -r setting; do
    grep -qF "\`$setting\`" "$top/docs/gpu-operator.md" || die "docs/gpu-operator.md lacks $setting"
    n=$((n + 1))
  done < <(grep -o '[A-Z_]*=/[^ "]*' "$top/src/doctor/distributions.c")
  [ "$n" -eq 6 ]
}

@test "doctor node: RKE2 by its files" {
  # shellcheck disable=SC2016
  host 'mount -t tmpfs none /var/lib && mkdir -p /var/lib/rancher/rke2/agent && { "$ctk" doctor node || true; }'
  [[ $(tr -s ' \n' ' ' <<<"$output") == *"ok toolkit-owner RKE2: keeps the engine's files in its own places (found by /var/lib/rancher/rke2/agent): set CONTAINERD_CONFIG=/var/lib/rancher/rke2/agent/etc/containerd/config.toml CONTAINERD_SOCKET=/run/k3s/containerd/containerd.sock for an installer, which writes a drop-in file that RKE2 imports; before March 2026 it imports none: set NO_RUNTIME_CONFIG=true, and restart RKE2, which finds /usr/local/nvidia/toolkit when it starts"* ]] || die "$output"
}
