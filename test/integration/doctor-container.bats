# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk doctor --container: for containers of real engines and runtimes, what they asked for, in which way, what they got, and what they have lost since.

load lib.bash
load engines.bash

setup_file() {
  start_machine dgx-h100
  start_dockerd
  start_containerd
  import_image small
  import_archive "$machine_cgroup" small small /probe
}
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() {
  [ ! -e "$work/podman" ] || podman rm --force --time 0 "$name" >/dev/null 2>&1 || true
  [ ! -e "$work/oci" ] || oci delete --force "$name" 2>/dev/null || true
  [ ! -e "$work/version" ] || on_host umount /sys/module/nvidia/version || true
  engine_teardown
}

# doctor WORD [OPTION...]: output, status.
doctor() {
  local word=$1
  shift
  run --separate-stderr on_host "$BATS_FILE_TMPDIR/bin/nvidia-ctk" doctor --container "$word" "$@"
}

# says STATUS REGEX: the first line of a person's output.
says() {
  # Lines that were folded are one again.
  local text
  text=$(sed ':a; N; $!ba; s/\n         \([^-]\)/ \1/g' <<<"$output")
  [ "$status" -eq "$1" ] || die "status $status: $output $stderr" || return
  [[ ${text%%$'\n'*} =~ $2 ]] || die "no '$2' in: $text"
}

# finds CHECK LEVEL REGEX: among the findings of the JSON form.
finds() {
  jq -e --arg check "$1" --arg level "$2" --arg cause "$3" \
    '.findings | map(select(.check == $check and .level == $level and (.cause | test($cause)))) | length > 0' \
    >/dev/null <<<"$output" || die "no $1 $2 '$3' in: $output"
}

# fact JQ-EXPRESSION VALUE
fact() { [ "$(jq -r "$1" <<<"$output")" = "$2" ] || die "$1 is '$(jq -r "$1" <<<"$output")', not '$2': $output"; }

# docker_group ID: of its devices, in cgroup v1.
docker_group() { echo "/sys/fs/cgroup/devices/$machine_cgroup/$1"; }

@test "docker: a container that never asked: so much is said, and how to ask" {
  local id
  id=$(docker_start)
  doctor "$name"
  says 4 "^warning  $name \(docker ${id:0:12}\): it never asked for a GPU\$"
  [[ $output == *"-> Create it again with 'docker run --gpus all ...'"* ]]
  # No escape sequence where there is no terminal.
  [[ $output != *$'\033'* ]]
}

@test "docker: found by its whole ID, the beginning of that, its process and its bundle" {
  local id pid word
  id=$(docker_start)
  pid=$(docker inspect --format '{{.State.Pid}}' "$name")
  for word in "$id" "${id:0:8}" "$(on_host cat "/run/docker-exec/containerd/daemon/io.containerd.runtime.v2.task/moby/$id/init.pid")" \
    "/run/docker-exec/containerd/daemon/io.containerd.runtime.v2.task/moby/$id"; do
    doctor "$word" --json
    [ "$status" -eq 4 ] || die "$word: $output $stderr"
    fact .id "$id"
    fact .name "$name"
    fact .engine docker
  done
  # The daemon has another view of process IDs than the machine's where it runs in a namespace of its own.
  [ -n "$pid" ]
}

@test "docker --gpus: the hook gave them, and all is well" {
  local id
  id=$(docker_start --gpus '"device=0,3"')
  doctor "$name"
  says 0 "^ok       $name \(docker ${id:0:12}\): it has 2 GPUs and may use them: GPU-"
  doctor "$name" --json
  fact .way hook
  fact .mode legacy
  fact '.asked.options[0]' '--gpus device=0,3'
  fact '[.got.nodes[] | select(.gpu) | .answer] | unique | join(" ")' allowed
  fact '.got.cgroup_version' 1
  finds way ok 'prestart .*/nvidia-container-runtime-hook'
  finds versions ok 'match the loaded driver'
}

@test "docker --gpus: rules that somebody has rewritten" {
  local id minor
  id=$(docker_start --gpus all)
  for minor in 0 1 2 3 4 5 6 7 255; do echo "c 195:$minor rwm" >"$(docker_group "$id")/devices.deny"; done
  doctor "$name"
  says 5 "^broken   $name .*: its device cgroup \(v1\) no longer lets it open /dev/nvidia0, .*daemon-reload"
  [[ $output == *'-> Start the container again.'* ]]
}

@test "docker --runtime=nvidia: the runtime gave them, and its variable is that of the user" {
  docker_start --runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=1
  doctor "$name" --json
  [ "$status" -eq 0 ] || die "$output $stderr"
  fact .way runtime
  fact .mode jit-cdi
  fact '.asked.devices | join(" ")' 1
  fact '[.got.nodes[] | select(.gpu)] | length' 1
}

@test "docker: asked by its environment, and nobody was in the way" {
  docker_start --env NVIDIA_VISIBLE_DEVICES=all
  doctor "$name"
  says 5 "^broken   $name .*: nothing read its request for GPUs: runc created it, without a hook or CDI device"
  [[ $output == *'docker run --gpus all'* ]]
}

@test "docker --device: single nodes without the driver's files" {
  docker_start --device /dev/nvidia0 --device /dev/nvidiactl
  doctor "$name"
  says 4 "^warning  $name .*: it has only device nodes, such as /dev/nvidia(0|ctl), and nothing else of the driver"
}

@test "docker: what is missing because its capabilities do not ask for it" {
  docker_start --gpus 1 --env NVIDIA_DRIVER_CAPABILITIES=compute
  doctor "$name"
  [ "$status" -eq 0 ] || die "$output $stderr"
  [[ $output == *'it has no nvidia-smi: its NVIDIA_DRIVER_CAPABILITIES=compute does not ask for utility'* ]] || die "$output"
}

@test "docker: a container that has ended" {
  docker_start --gpus all
  docker kill "$name"
  doctor "$name"
  says 0 "^\?        $name \(docker [0-9a-f]+, not running\): it is not running, so what it got cannot be seen"
  doctor "$name" --json
  fact '.asked.options[0]' '--gpus all'
}

@test "docker: a container that could not be started: the words of the engine, and the remedy" {
  run docker run --detach --name "$name" --network none --gpus all --env "NVIDIA_REQUIRE_CUDA=cuda>=99.1" small /bin/sleep 600
  [ "$status" -ne 0 ]
  doctor "$name"
  says 5 "^broken   $name \(docker [0-9a-f]+, not running\): it could not be started: .*unsatisfied condition: cuda>=99\.1"
  [[ $(tr -s ' \n' ' ' <<<"$output") == *"-> Install a newer driver, or use an image for an older CUDA. 'nvidia-ctk doctor' checks the host."* ]] ||
    die "$output"
}

@test "docker: a GPU that has fallen off the bus since the start" {
  local lost=/sys/bus/pci/devices/0000:43:00.0/config
  docker_start --gpus '"device=0,1"'
  head -c 64 /dev/zero | tr '\0' '\377' >"$work/lost"
  on_host mount --bind "$work/lost" "$lost"
  doctor "$name"
  on_host umount "$lost"
  says 5 "^broken   $name .*: the GPU GPU-[0-9a-f-]+ of /dev/nvidia1 no longer answers: it has fallen off the PCI bus"
  [ "$(grep -c 'no longer answers' <<<"$output")" -eq 2 ]
  doctor "$name"
  says 0 "^ok       $name .*: it has 2 GPUs and may use them"
}

@test "docker: the driver was replaced after the start" {
  docker_start --gpus all
  echo 560.35.03 >"$work/version"
  on_host mount --bind "$work/version" /sys/module/nvidia/version
  doctor "$name" --json
  finds versions broken 'its libraries belong to driver 5.* and the loaded kernel module is 560\.35\.03'
}

@test "docker: a node with other numbers than the host's" {
  local id
  id=$(docker_start --gpus all --cap-add MKNOD)
  docker exec "$name" /bin/sh -c 'mknod /dev/nvidia9 c 195 9'
  doctor "$name" --json
  [ "$status" -eq 5 ]
  finds nodes broken '^/dev/nvidia9 is no longer on the host'
  finds rules broken 'no longer lets it open /dev/nvidia9'
  fact '.id' "$id"
}

@test "docker: what the loader does not find: a link that is gone, a cache that is damaged, lacks the name, or is not there" {
  local link to missing="^warning  $name .*: its loader does not find libcuda\.so\.1, which is mounted at /usr/[^ ]*/libcuda\.so\.[0-9.]*: "
  docker_start --gpus '"device=0"'
  link=$(docker exec "$name" find /usr -name libcuda.so.1)
  to=$(docker exec "$name" readlink "$link")
  # A cache of this machine's own libraries.
  ldconfig -C "$work/cache" -f /dev/null -X
  docker exec "$name" rm "$link"
  doctor "$name"
  says 4 "${missing}there is no link of that name beside it\$"
  [[ $output == *"-> Start the container again, or run 'ldconfig' in it."* ]] || die "$output"
  docker exec "$name" ln -s "$to" "$link"
  docker exec "$name" sh -c 'echo x >/etc/ld.so.cache'
  doctor "$name"
  says 4 "^warning  $name .*: its /etc/ld\.so\.cache cannot be used: it is damaged, or of an unknown format\$"
  docker exec --interactive "$name" sh -c 'cat >/etc/ld.so.cache' <"$work/cache"
  doctor "$name"
  says 4 "^warning  $name .*: its loader does not find lib(cuda|nvidia-ml)\.so\.1, .*: /etc/ld\.so\.cache does not have that name\$"
  # Without a cache the loader looks at the names in its directories.
  docker exec "$name" rm /etc/ld.so.cache
  doctor "$name"
  says 0 "^ok       $name "
  docker exec "$name" rm "$link"
  doctor "$name"
  says 4 "${missing}there is no link of that name beside it\$"
}

@test "a name that is not there: one line, with one that is near" {
  docker_start
  doctor "${name/t/tt}"
  [ "$status" -eq 1 ]
  [[ $stderr == *"no container '${name/t/tt}' (did you mean '$name'?)"* ]] || die "$stderr"
  [ "$(grep -c . <<<"$stderr")" -eq 1 ]
  doctor elephant
  [ "$status" -eq 1 ]
  [[ $stderr == *"no container 'elephant' among the "*" that can be seen"*"docker ps"* ]] || die "$stderr"
}

@test "a process of the host is in no container" {
  # shellcheck disable=SC2016
  run --separate-stderr on_host sh -c '"$0" doctor --container $$' "$BATS_FILE_TMPDIR/bin/nvidia-ctk"
  [ "$status" -eq 1 ]
  [[ $stderr == *"is not in a container: it has the same mounts as this program"* ]] || die "$stderr"
  doctor 999999999
  [ "$status" -eq 1 ]
  [[ $stderr == *"no container and no process 999999999"* ]] || die "$stderr"
}

@test "ctr run --gpus, and without" {
  ctr run --detach --gpus 2 docker.io/library/small:latest "$name" /bin/sleep 600
  doctor "$name" --json
  [ "$status" -eq 0 ] || die "$output $stderr"
  fact .engine containerd
  fact .way hook
  fact '.asked.devices | join(" ")' 2
  ctr task kill --signal KILL "$name"
  within 5 ctr container delete "$name"
  ctr run --detach docker.io/library/small:latest "$name" /bin/sleep 600
  doctor "$name"
  says 4 "^warning  $name \(containerd\): it never asked for a GPU\$"
  [[ $output == *"'ctr run --gpus 0 ...'"* ]]
}

@test "ctr run --runc-binary nvidia-container-runtime" {
  ctr run --detach --runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=2,3 docker.io/library/small:latest "$name" /bin/sleep 600
  doctor "$name" --json
  [ "$status" -eq 0 ] || die "$output $stderr"
  fact .way runtime
  fact .asked.replaced true
  fact '[.got.nodes[] | select(.gpu)] | length' 2
}

# podman OPTION...
podman() {
  mkdir -p "$work/podman"
  on_host /usr/bin/podman --root "$machine/podman/root" --runroot /run/podman --storage-driver vfs --tmpdir /run/podman-tmp --cgroup-manager cgroupfs \
    --events-backend none --runtime "${RUNTIME:-/usr/sbin/runc}" "$@"
}

@test "podman: its name by conmon, with the runtime and without" {
  tar --create --directory "$(image small)" . --directory "$top/test/integration" ./probe | podman import - small
  podman run --detach --name "$name" --net none --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" small sleep 600
  doctor "$name"
  says 4 "^warning  $name \(podman [0-9a-f]{12}\): it never asked for a GPU\$"
  [[ $output == *"'podman run --device nvidia.com/gpu=all ...'"* ]]
  podman rm --force --time 0 "$name"
  RUNTIME=$BATS_FILE_TMPDIR/bin/nvidia-container-runtime podman run --detach --name "$name" --net none --ulimit nofile=20000:20000 \
    --ulimit nproc=32768:32768 --cgroup-parent "/$machine_cgroup" --env NVIDIA_VISIBLE_DEVICES=5 small sleep 600
  doctor "$name" --json
  [ "$status" -eq 0 ] || die "$output $stderr"
  fact .engine podman
  fact .way runtime
  fact '[.got.nodes[] | select(.gpu)] | length' 1
}

@test "a pod's container by CRI: the names are those of Kubernetes" {
  import_archive k8s.io small small /probe
  import_archive k8s.io pause small /bin/sleep 86400
  mkdir -p "$work/pod"
  cat >"$work/look" <<SH
set -x
"$BATS_FILE_TMPDIR/bin/nvidia-ctk" doctor --container pod/container >"$work/answer" 2>&1
echo "status \$?" >>"$work/answer"
SH
  run on_host "$BATS_FILE_TMPDIR/programs/cri" /run/containerd-suite/sock "$work/pod" --cgroup "/$machine_cgroup" --handler nvidia \
    --between "sh $work/look" -- /bin/true
  status=$(sed -n 's/^status //p' "$work/answer") output=$(cat "$work/answer")
  says 4 "^warning  .*/.* \(kubernetes [0-9a-f]{12}\): it never asked for a GPU\$"
  [[ $output == *"runtimeClassName: nvidia"* ]]
}

# --- runc and crun alone; cgroup v2 ---

# oci WORD...: the low-level runtime with its usual state directory, in the world of the test.
oci() { "${world:-on_host}" "${runtime:-runc}" "$@"; }

# oci_start [JQ-FILTER]: a container of the small image that sleeps, by nvidia-container-runtime.
oci_start() {
  root=$work/root
  mkdir -p "$root" "$work/oci"
  cp -a "$(image small)/." "$root"
  bundle=$work/bundle
  mkdir -p "$bundle"
  on_host runc spec --bundle "$bundle"
  edit_bundle --arg root "$root" --arg id "/$machine_cgroup/$name" '.process.terminal = false | .process.args = ["/bin/sleep", "600"] |
    del(.process.rlimits) | .root = {path: $root} | .linux.cgroupsPath = $id |
    (.process.capabilities[]) |= (. + ["CAP_MKNOD"] | unique)'
  edit_bundle "${1:-.}"
  config_toml <<TOML
[nvidia-container-runtime]
runtimes = ["${runtime:-runc}"]
TOML
  "${world:-on_host}" "$BATS_FILE_TMPDIR/bin/nvidia-container-runtime" create --bundle "$bundle" "$name" </dev/null >"$work/out" 2>&1 3>&- 4>&- ||
    die "$(cat "$work/out")" || return
  oci start "$name"
}

# As doctor(), in the world of the test.
doctor_there() {
  run --separate-stderr "${world:-on_host}" "$BATS_FILE_TMPDIR/bin/nvidia-ctk" doctor --container "$@"
}

gpu1='.process.env += ["NVIDIA_VISIBLE_DEVICES=1"]'

@test "runc, cgroup v1: by its ID in /run/runc" {
  oci_start "$gpu1"
  doctor "$name" --json
  [ "$status" -eq 0 ] || die "$output $stderr"
  fact .engine runc
  fact .bundle "$bundle"
  fact .got.cgroup_version 1
  doctor "$bundle" --json
  fact .id "$name"
}

@test "runc, cgroup v2: what the device programs let through" {
  world=v2
  oci_start "$gpu1"
  doctor_there "$name" --json
  [ "$status" -eq 0 ] || die "$output $stderr"
  fact .got.cgroup_version 2
  fact '[.got.nodes[].answer] | unique | join(" ")' allowed
  oci exec "$name" /bin/sh -c 'mknod /dev/nvidia5 c 195 5'
  doctor_there "$name"
  says 5 "^broken   $name \(runc\): its device cgroup \(v2\) no longer lets it open /dev/nvidia5: its rules were rewritten"
}

@test "crun, cgroup v2" {
  world=v2_raising
  runtime=crun
  oci_start "$gpu1"
  doctor_there "$name" --json
  [ "$status" -eq 0 ] || die "$output $stderr"
  fact .engine crun
  fact '[.got.nodes[].answer] | unique | join(" ")' allowed
  oci exec "$name" /bin/sh -c 'mknod /dev/nvidia5 c 195 5'
  doctor_there "$name" --json
  finds rules broken 'no longer lets it open /dev/nvidia5'
}

@test "crun, cgroup v1" {
  world=v1_alone
  runtime=crun
  oci_start "$gpu1"
  doctor_there "$name" --json
  [ "$status" -eq 0 ] || die "$output $stderr"
  fact .engine crun
  fact .got.cgroup_version 1
}

@test "what config.toml does not let count" {
  oci_start "$gpu1"'| .process.capabilities.bounding -= ["CAP_SYS_ADMIN"]'
  oci delete --force "$name"
  edit_bundle '.process.env += ["NVIDIA_VISIBLE_DEVICES=all"] | del(.hooks) | .linux.devices = [] |
    .mounts |= map(select(.destination | test("nvidia|cuda") | not))'
  oci run --detach --bundle "$bundle" "$name" </dev/null >"$work/out" 2>&1 3>&- 4>&-
  printf 'accept-nvidia-visible-devices-envvar-when-unprivileged = false\n' | config_toml
  doctor "$name"
  says 5 "^broken   $name \(runc\): it asks through NVIDIA_VISIBLE_DEVICES=all, which config.toml allows only for privileged containers"
}

@test "a container that wants to be believed: nothing of it reaches the terminal or is opened" {
  oci_start "$gpu1"' | .process.env += ["NVIDIA_X=a\u001b]0;owned\u0007\nbroken   b: c\u202e\\ "] | .annotations = {"x.nvidia.com/\u001b[2J": "\u009b31m"}'
  oci exec "$name" /bin/sh -c 'rm -f /etc/ld.so.cache && mkfifo /etc/ld.so.cache; mkdir -p /dev/nvidia-caps; ln -s /proc/kcore /dev/nvidia-caps/nvidia-cap1;
    mknod "/dev/nvidia$(printf "\033[31m")" c 195 77'
  run --separate-stderr on_host timeout 20 "$BATS_FILE_TMPDIR/bin/nvidia-ctk" doctor --container "$name"
  [ "$status" -eq 5 ] || die "$status $output"
  [[ $output == *'NVIDIA_X=a\x1b]0;owned\x07\x0abroken   b: c\xe2\x80\xae\\ '* ]] || die "$output"
  [[ $output == *'x.nvidia.com/\x1b[2J=\xc2\x9b31m'* ]] || die "$output"
  [[ $output == *'/dev/nvidia\x1b[31m'* ]] || die "$output"
  [[ $output != *$'\033'* ]]
  [[ $output != *$'\007'* ]]
  [[ $output != *nvidia-cap1* ]]
}

@test "an ordinary user: what he cannot see is said, and that root can" {
  docker_start --gpus all
  run --separate-stderr on_host setpriv --reuid 65534 --regid 65534 --clear-groups "$BATS_FILE_TMPDIR/bin/nvidia-ctk" doctor --container "$name"
  [ "$status" -eq 1 ]
  [[ $stderr == *"no container '$name'"*"Run it as root"* ]] || die "$stderr"
}
