# SPDX-License-Identifier: Apache-2.0
# The simulated driver as a product: every topology makes a driver root that the usual tools agree on, programs see the GPUs that they may
# open and no others, faults do what they say, and the machine is left as it was.

bats_require_minimum_version 1.5.0

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  sim=$build/sim/graft-sim
  programs=$build/test/sim
  [ -x "$sim" ]
  root=$BATS_TEST_TMPDIR/root
  cgroups=()
}

teardown() {
  local group
  for group in "${cgroups[@]}"; do
    rmdir "$group" || true
  done
}

# every topology that ships, in $topologies
all() {
  mapfile -t topologies < <("$sim" list | awk '{ print $1 }')
  [ "${#topologies[@]}" -ge 12 ]
}

# simulated TOPOLOGY COMMAND...: runs it, without the line that says so.
simulated() {
  local topology=$1
  shift
  local rc=0
  "$sim" run --topology "$topology" -- "$@" 2>"$BATS_TEST_TMPDIR/all-said" || rc=$?
  grep -v '^graft-sim: simulated host\|simulated by Graft' "$BATS_TEST_TMPDIR/all-said" >&2 || true
  return "$rc"
}

# gpus TEXT: the number of GPUs in the output of nvidia-smi -L
gpus() {
  grep -c '^GPU [0-9]' <<< "$1"
}

# --- driver roots ---

@test "every topology makes a driver root, twice" {
  local topology
  all
  for topology in "${topologies[@]}"; do
    "$sim" create --topology "$topology" "$root"
    (cd "$root" && find . -printf '%P %y %m %l\n' | LC_ALL=C sort) > "$BATS_TEST_TMPDIR/first"
    "$sim" create --topology "$topology" "$root"
    (cd "$root" && find . -printf '%P %y %m %l\n' | LC_ALL=C sort) > "$BATS_TEST_TMPDIR/second"
    cmp "$BATS_TEST_TMPDIR/first" "$BATS_TEST_TMPDIR/second"
  done
}

@test "readelf, ldconfig and the cache agree on every library" {
  local topology driver path soname line
  all
  for topology in "${topologies[@]}"; do
    "$sim" create -t "$topology" "$root"
    driver=$root
    [ "$topology" != driver-container ] || driver=$root/run/nvidia/driver
    while read -r path; do
      soname=$(readelf -d "$path" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
      [ -n "$soname" ] || { echo "no soname: $path"; return 1; }
      # the link of that name leads to this file
      [ "$(readlink -f "$(dirname "$path")/$soname")" = "$(readlink -f "$path")" ] || { echo "no link: $path ($soname)"; return 1; }
      readelf -hlSdn "$path" 2>&1 | grep -i 'warning\|error' && { echo "readelf: $path"; return 1; }
    done < <(find "$driver" -name '*.so*' -type f -not -path '*/drivers/*' -not -path '*/etc/*')
    [ -f "$driver/etc/ld.so.cache" ] || continue
    # ldconfig finds by itself what the cache says (its own order of equal names does not matter here)
    ldconfig -p -C "$driver/etc/ld.so.cache" | sed -n 's/^\t//p' | LC_ALL=C sort > "$BATS_TEST_TMPDIR/ours"
    printf '%s\n' "$(sed -n 's/ => .*//p' "$BATS_TEST_TMPDIR/ours")" > "$BATS_TEST_TMPDIR/names"
    cp "$driver/etc/ld.so.conf" "$BATS_TEST_TMPDIR/conf"
    find "$driver" -name 'libvdpau*' -printf '/%P\n' | sed 's,/[^/]*$,,' | sort -u >> "$BATS_TEST_TMPDIR/conf"
    sed -i '/^$/d' "$BATS_TEST_TMPDIR/conf"
    cp "$BATS_TEST_TMPDIR/conf" "$driver/conf"
    ldconfig -X -r "$driver" -f /conf -C /theirs
    ldconfig -p -C "$driver/theirs" | sed -n 's/^\t//p' | sed -n 's/ => .*//p' | LC_ALL=C sort > "$BATS_TEST_TMPDIR/theirs"
    rm "$driver/theirs" "$driver/conf"
    # theirs has development links as well
    while read -r line; do
      grep -qxF -- "$line" "$BATS_TEST_TMPDIR/theirs" || { echo "$topology: ldconfig does not find: $line"; return 1; }
    done < "$BATS_TEST_TMPDIR/names"
  done
}

@test "the library for thread-local storage carries its mark, the others none" {
  "$sim" create -t dgx-h100 "$root"
  readelf -n "$root"/usr/lib/*/libnvidia-tls.so.550.54.14 | grep -q 'ABI: 2.3.99'
  run readelf -n "$root"/usr/lib/*/libnvidia-glcore.so.550.54.14
  [[ $output != *ABI* ]]
}

@test "32-bit libraries are for the 32-bit machine" {
  "$sim" create -t geforce-laptop "$root"
  [ "$(uname -m)" = x86_64 ] || skip "paths are those of x86_64"
  file=$root/usr/lib/i386-linux-gnu/libcuda.so.560.35.03
  readelf -h "$file" | grep -q 'ELF32'
  readelf -h "$file" | grep -q 'Intel 80386'
  ldconfig -p -C "$root/etc/ld.so.cache" | grep -q 'libcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1'
}

@test "nodes have the driver's numbers" {
  "$sim" create -t a100-mig "$root"
  [ "$(stat -c '%F %Hr:%Lr %a' "$root/dev/nvidia3")" = 'character special file 195:3 666' ]
  [ "$(stat -c '%Hr:%Lr' "$root/dev/nvidiactl")" = 195:255 ]
  [ "$(stat -c '%Hr:%Lr %a' "$root/dev/nvidia-caps/nvidia-cap1")" = "$(awk '$2 == "nvidia-caps" { print $1 }' "$root/proc/devices"):1 400" ]
  # GPU 1, GPU instance 1, compute instance 0
  grep -qx 'gpu1/gi1/ci0/access 148' "$root/proc/driver/nvidia-caps/mig-minors"
  grep -qx 'DeviceFileMinor: 148' "$root/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access"
  [ -c "$root/dev/nvidia-caps/nvidia-cap148" ]
}

@test "a driver root of 8 GPUs takes less than a second" {
  local start
  start=$(date +%s%N)
  "$sim" create -t dgx-h100 "$root"
  [ $((($(date +%s%N) - start) / 1000000)) -lt 1000 ]
}

@test "without privileges there is a driver root, only without nodes" {
  run -0 --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs "$sim" create "/tmp/graft-sim-test-$$"
  [ -f "/tmp/graft-sim-test-$$/proc/driver/nvidia/version" ]
  [ ! -e "/tmp/graft-sim-test-$$/dev/nvidia0" ]
  [[ $stderr == *"not permitted to make device nodes"* ]]
  rm -r "/tmp/graft-sim-test-$$"
}

@test "create refuses a directory that is somebody else's" {
  mkdir "$root"
  touch "$root/precious"
  run -64 "$sim" create "$root"
  [[ $output == *"is not empty and was not made by graft-sim; give a new directory" ]]
  [ "$(ls -A "$root")" = precious ]
}

# --- topologies ---

@test "errors in a topology name file, line and column" {
  printf 'driver: 550.54.14\ncuda: "12.4"\ngpus:\n  - model: T4\n    cuont: 2\n' > "$BATS_TEST_TMPDIR/bad.yaml"
  for command in "check" "create $root -t" "run -t"; do
    # shellcheck disable=SC2086
    run -76 "$sim" $command "$BATS_TEST_TMPDIR/bad.yaml" ${command:+$([ "${command%% *}" = run ] && echo true)}
    [ "${lines[0]}" = "graft-sim: $BATS_TEST_TMPDIR/bad.yaml:5:5: unknown key 'cuont'" ]
  done
  [ ! -e "$root" ]
}

@test "check reads several files and fails when one is wrong" {
  printf 'driver: none\n' > "$BATS_TEST_TMPDIR/good.yaml"
  printf 'driver: nine\n' > "$BATS_TEST_TMPDIR/bad.yaml"
  run -0 "$sim" check "$BATS_TEST_TMPDIR/good.yaml" dgx-h100
  [ "${lines[1]}" = 'dgx-h100: 8 GPUs, driver 550.54.14' ]
  run -76 --separate-stderr "$sim" check "$BATS_TEST_TMPDIR/bad.yaml" "$BATS_TEST_TMPDIR/good.yaml"
  [ "$output" = "$BATS_TEST_TMPDIR/good.yaml: 0 GPUs, driver none" ]
}

@test "a topology can be shown, changed and used" {
  "$sim" show quad | sed 's/count: 4/count: 2/; s/bus-ids.*//; s/minors.*//' > "$BATS_TEST_TMPDIR/mine.yaml"
  run simulated "$BATS_TEST_TMPDIR/mine.yaml" nvidia-smi -L
  [ "$(gpus "$output")" = 2 ]
}

@test "unknown names, commands and options are said to be so" {
  run -72 "$sim" create -t dgx-h1000 "$root"
  [ "$output" = "graft-sim: no topology of that name: dgx-h1000 ('graft-sim list' names them)" ]
  run -64 "$sim" destroy
  [[ $output == *"unknown command 'destroy'"* ]]
  run -64 "$sim" create --colour "$root"
  [[ $output == *"unrecognized option '--colour'"* ]]
  run -64 "$sim" create
  run -0 "$sim" --version
  [[ $output == "graft-sim "[0-9]* ]]
  run -0 "$sim" create --help
  [[ $output == *"nvml-init-delay=SECONDS"* ]]
}

# --- running ---

@test "programs see the GPUs of each host" {
  local topology want
  while read -r topology want; do
    run simulated "$topology" nvidia-smi -L
    [ "$(gpus "$output")" = "$want" ] || { echo "$topology: $output"; return 1; }
  done << 'END'
dgx-h100 8
dgx-h100-16 16
a100-mig 4
gb200 4
t4 1
single 1
quad 4
rhel 2
geforce-laptop 1
nixos 1
wsl2 1
END
}

@test "nvidia-smi -L has the real program's form" {
  run simulated a100-mig nvidia-smi -L
  [ "${lines[0]}" = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: $(simulated a100-mig cat /proc/driver/nvidia/gpus/0000:07:00.0/information | sed -n 's/^GPU UUID: *\t *//p'))" ]
  [[ ${lines[2]} =~ ^"  MIG 3g.20gb     Device  0: (UUID: MIG-"[0-9a-f-]{36}\)$ ]]
}

@test "nvidia-smi prints its table, details and CSV, and says that nothing is real" {
  run simulated a100-mig nvidia-smi
  [[ $output == *"NVIDIA-SMI 535.161.08"*"Driver Version: 535.161.08"*"CUDA Version: 12.2"* ]]
  [[ $output == *"simulated by Graft, there is no real GPU"* ]]
  [[ $output == *"MIG devices:"* ]]
  # a rectangle: every line of it is 91 characters wide
  [ "$(grep '^[|+]' <<< "$output" | awk '{ print length($0) }' | sort -u)" = 91 ]
  run simulated t4 nvidia-smi -q
  [[ $output == *"Product Brand                         : Tesla"* ]]
  run simulated quad nvidia-smi --query-gpu=index,name,pci.bus_id,memory.total,compute_cap --format=csv
  [ "${lines[0]}" = 'index, name, pci.bus_id, memory.total [MiB], compute_cap' ]
  [ "${lines[4]}" = '3, NVIDIA A10, 00000000:E3:00.0, 23028 MiB, 8.6' ]
  run simulated quad nvidia-smi -i 2 --query-gpu=name --format=csv,noheader,nounits
  [ "$output" = 'NVIDIA A10' ]
  "$sim" run -t single -- nvidia-smi -L 2>&1 > /dev/null | grep -q 'nvidia-smi: simulated by Graft'
}

@test "NVML answers all that callers ask" {
  simulated a100-mig "$programs/nvml-client"
  simulated dgx-h100 "$programs/nvml-client"
  simulated t4 "$programs/nvml-client"
}

@test "CUDA counts devices and moves bytes" {
  run simulated quad "$programs/cuda-client"
  [ "$status" = 0 ]
  [ "${lines[0]}" = 'version: 12020' ]
  [ "${lines[1]}" = 'count: 4' ]
  [ "${lines[5]}" = 'device 3: NVIDIA A10, 23028 MiB, 8.6, 0000:E3:00.0' ]
  [ "${lines[6]}" = 'copied: through the device' ]
  # MIG devices are not mixed with whole GPUs
  run simulated a100-mig "$programs/cuda-client"
  [ "${lines[1]}" = 'count: 1' ]
}

@test "CUDA_VISIBLE_DEVICES is obeyed" {
  local mig
  CUDA_VISIBLE_DEVICES=3,0,9,1 run simulated quad "$programs/cuda-client"
  [ "${lines[1]}" = 'count: 2' ]
  [[ ${lines[2]} == *0000:E3:00.0 ]]
  [[ ${lines[3]} == *0000:17:00.0 ]]
  CUDA_VISIBLE_DEVICES='' run simulated quad "$programs/cuda-client"
  [ "${lines[1]}" = 'cuInit: CUDA_ERROR_NO_DEVICE' ]
  mig=$(simulated a100-mig nvidia-smi -L | sed -n 's/.*2g.10gb.*UUID: \(.*\))/\1/p')
  CUDA_VISIBLE_DEVICES=$mig run simulated a100-mig "$programs/cuda-client"
  [[ ${lines[2]} == 'device 0: NVIDIA A100-SXM4-40GB MIG 2g.10gb, '* ]]
}

@test "the host looks the part: procfs, sysfs, firmware, sockets, loader" {
  run simulated dgx-h100 sh -c '
    cat /proc/driver/nvidia/version
    grep -c nvidia /proc/devices
    ls /lib/firmware/nvidia/550.54.14
    test -S /run/nvidia-persistenced/socket && test -S /var/run/nvidia-fabricmanager/socket && echo sockets
    ldconfig -p | grep -c "libcuda.so.1 "
    test -c /dev/null && echo x > /dev/null && test -d /dev/pts && echo dev
    ls /dev/nvidia-nvswitchctl'
  [ "$status" = 0 ]
  [[ ${lines[0]} == "NVRM version: NVIDIA UNIX Open Kernel Module for "*"  550.54.14  (Graft simulated driver)" ]]
  [[ $output == *gsp_ga10x.bin*sockets*1*dev*/dev/nvidia-nvswitchctl ]]
}

@test "opening a node says that nobody is behind it" {
  run simulated single sh -c 'exec 3< /dev/nvidia0'
  [[ $output == *"No such device or address"* ]]
  run simulated single sh -c 'exec 3< /dev/nvidia-uvm'
  [[ $output == *"No such device or address"* ]]
}

@test "MPS: the control daemon knows its clients, CUDA says through what it works" {
  run --separate-stderr simulated quad sh -c '
    export CUDA_MPS_PIPE_DIRECTORY=/dev/shm/graft-mps-$$
    echo get_server_list | nvidia-cuda-mps-control 2>/dev/null || echo "no daemon"
    '"$programs"'/cuda-client | grep "^device 0"
    nvidia-cuda-mps-control -d >/dev/null
    '"$programs"'/cuda-client stay >$CUDA_MPS_PIPE_DIRECTORY/said & client=$!
    for i in 1 2 3 4 5 6 7 8 9 10; do grep -q copied $CUDA_MPS_PIPE_DIRECTORY/said && break; sleep 0.1; done
    grep "^device 0" $CUDA_MPS_PIPE_DIRECTORY/said
    [ "$(echo get_client_list | nvidia-cuda-mps-control)" = $client ] && echo "one client"
    kill $client; wait $client
    for i in 1 2 3 4 5 6 7 8 9 10; do [ -n "$(echo get_client_list | nvidia-cuda-mps-control)" ] || break; sleep 0.1; done
    [ -z "$(echo get_client_list | nvidia-cuda-mps-control)" ] && echo "no client"
    echo quit | nvidia-cuda-mps-control
    '"$programs"'/cuda-client | grep "^device 0"
    rm -r $CUDA_MPS_PIPE_DIRECTORY'
  [ "$output" = "no daemon
device 0: NVIDIA A10, 23028 MiB, 8.6, 0000:17:00.0
device 0: NVIDIA A10, 23028 MiB, 8.6, 0000:17:00.0, through MPS
one client
no client
device 0: NVIDIA A10, 23028 MiB, 8.6, 0000:17:00.0" ] || { echo "$output $stderr"; return 1; }
}

@test "daemons hold their sockets until they are told to end" {
  run -0 simulated dgx-h100 sh -c '
    nv-fabricmanager & daemon=$!
    for i in 1 2 3 4 5 6 7 8 9 10; do grep -q /run/nvidia-fabricmanager/socket /proc/net/unix && break; sleep 0.1; done
    grep -c /run/nvidia-fabricmanager/socket /proc/net/unix
    kill $daemon; wait $daemon; echo "status $?"
    test ! -e /run/nvidia-fabricmanager/socket && echo gone'
  [ "$output" = "nv-fabricmanager: simulated by Graft; holding /run/nvidia-fabricmanager/socket"$'\n1\nstatus 0\ngone' ]
  run -0 simulated dgx-h100 nvidia-debugdump --list
  [ "$output" = 'nvidia-debugdump: simulated by Graft; it does nothing' ]
}

@test "what a host lacks is lacking" {
  run -127 simulated no-driver sh -c 'ls /proc/driver/nvidia /dev/nvidiactl; command -v nvidia-smi'
  [[ $output == *"cannot access '/proc/driver/nvidia'"*"cannot access '/dev/nvidiactl'"* ]]
  run -12 simulated half-installed nvidia-smi -L
  [[ $output == *"couldn't find libnvidia-ml.so library"* ]]
  run simulated orin sh -c 'cat /etc/nv_tegra_release; ldconfig -p | grep -c "libcuda.so.1 "'
  [[ ${lines[0]} == "# R35 (release)"* ]]
  run simulated driver-container ls /run/nvidia/driver/usr/bin/nvidia-smi /run/nvidia/driver/dev/nvidia0 /dev/nvidia1
  [ "$status" = 0 ]
}

@test "the command's status, arguments and directory are its own" {
  cd "$BATS_TEST_TMPDIR"
  run simulated single sh -c 'pwd; printf "%s|" "$@"; exit 7' x 'a b' '' --fault
  [ "$status" = 7 ]
  [ "${lines[0]}" = "$BATS_TEST_TMPDIR" ]
  [ "${lines[1]}" = 'a b||--fault|' ]
  run -127 simulated single /no/such/program
  run -126 simulated single /etc/passwd
}

@test "the machine is left as it was" {
  state() {
    find /dev /usr/lib /usr/bin /usr/share/vulkan /etc /proc/driver -xdev -printf '%p %y %s %l\n' 2> /dev/null | grep -v '^/dev/\(pts\|shm\)' | LC_ALL=C sort
    cat /proc/self/mountinfo
    cat /proc/devices
  }
  state > "$BATS_TEST_TMPDIR/before"
  simulated dgx-h100 sh -c 'nvidia-smi -L; touch /usr/bin/new /etc/new /dev/new; rm /usr/bin/nvidia-smi' > /dev/null
  simulated wsl2 true
  simulated orin true
  state > "$BATS_TEST_TMPDIR/after"
  diff "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
}

@test "without overlays there are links" {
  run -0 "$sim" run --bind-libs -t dgx-h100 -- sh -c "
    nvidia-smi -L; $programs/nvml-client; ldconfig -p | grep -c 'libcuda.so.1 '
    readlink -f /usr/lib/*/libcuda.so.1
    ls -l /usr/bin/env > /dev/null && python3 -c 'print(1 + 1)' 2> /dev/null || echo 2
    ! grep -q ' overlay graft-sim' /proc/self/mountinfo"
  [ "$(gpus "$output")" = 8 ]
  [[ $output == *$'\n1\n/usr/lib/'*/libcuda.so.550.54.14$'\n2' ]]
}

@test "mounts of the machine stay in view" {
  run -0 unshare -m sh -c '
    mkdir -p /run/graft-sim-test && mount -t tmpfs t /run/graft-sim-test && mkdir /run/graft-sim-test/usr &&
    mount -t tmpfs inner /usr/share/misc && echo here > /usr/share/misc/file &&
    '"'$sim'"' run -t geforce-laptop -- sh -c "cat /usr/share/misc/file; ls /usr/share/vulkan/icd.d"'
  [[ $output == *here*nvidia_icd.json* ]]
  rmdir /run/graft-sim-test
}

@test "nodes of the machine that may not be made again are shown as they are" {
  local group=/sys/fs/cgroup/devices/graft-sim-test-$$
  [ -d /sys/fs/cgroup/devices ] || skip "no cgroup v1 device controller"
  mkdir "$group"
  cgroups+=("$group")
  echo 'c 1:8 m' > "$group/devices.deny"
  run sh -c "echo \$\$ > $group/cgroup.procs; mknod $BATS_TEST_TMPDIR/r c 1 8; exec $sim run -t quad -- sh -c 'head -c 4 /dev/random | wc -c; nvidia-smi -L'"
  [ "$(gpus "$output")" = 4 ]
  [[ ${lines[0]} == mknod:*"Operation not permitted" ]]
  [ "${lines[2]}" = 4 ]
}

@test "a real driver is never hidden unasked" {
  printf 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n' > "$BATS_TEST_TMPDIR/version"
  run -81 simulated single sh -c "mount --bind $BATS_TEST_TMPDIR/version /proc/driver/nvidia/version && $sim run -t quad -- nvidia-smi -L"
  [[ $output == *"a real NVIDIA driver is loaded; --force hides it from COMMAND"* ]]
  run -0 simulated single sh -c "mount --bind $BATS_TEST_TMPDIR/version /proc/driver/nvidia/version && $sim run --force -t quad -- nvidia-smi -L"
  [ "$(gpus "$output")" = 4 ]
}

@test "a simulated host within a simulated host" {
  run simulated single "$sim" run -t quad -- nvidia-smi -L
  [ "$(gpus "$output")" = 4 ]
}

# --- isolation ---

@test "a GPU without its node is not there, and indexes move up" {
  run simulated quad sh -c 'rm /dev/nvidia3; nvidia-smi --query-gpu=index,pci.bus_id --format=csv,noheader'
  [ "${#lines[@]}" = 3 ]
  [ "${lines[0]}" = '0, 00000000:65:00.0' ]
  run simulated quad sh -c 'rm /dev/nvidia[0-9]; nvidia-smi -L'
  [ "$output" = 'No devices were found' ]
  run -9 simulated quad sh -c 'rm /dev/nvidiactl; nvidia-smi -L'
  [[ $output == *"couldn't communicate with the NVIDIA driver"* ]]
}

@test "owner and mode count" {
  run simulated quad sh -c 'chmod 600 /dev/nvidia2 && setpriv --reuid 65534 --regid 65534 --clear-groups nvidia-smi -L'
  [ "$(gpus "$output")" = 3 ]
  run -4 simulated quad sh -c 'chmod 600 /dev/nvidiactl && setpriv --reuid 65534 --regid 65534 --clear-groups nvidia-smi -L'
  [ "$output" = 'Failed to initialize NVML: Insufficient Permissions' ]
}

@test "a MIG device needs both its nodes" {
  run simulated a100-mig sh -c 'rm /dev/nvidia-caps/nvidia-cap148; nvidia-smi -L'
  [[ $output != *'MIG 3g.20gb '* ]]
  [[ $output == *"MIG 2g.10gb     Device  0"* ]]
  [[ $output == *"GPU 1:"* ]]
}

@test "version 1 device cgroups hide GPUs" {
  local group=/sys/fs/cgroup/devices/graft-sim-test-$$
  [ -d /sys/fs/cgroup/devices ] || skip "no cgroup v1 device controller"
  mkdir "$group"
  cgroups+=("$group")
  echo 'c 195:1 rwm' > "$group/devices.deny"
  run simulated quad sh -c "echo \$\$ > $group/cgroup.procs; nvidia-smi -L; exec 3< /dev/nvidia1"
  [ "$(gpus "$output")" = 3 ]
  [[ $output != *$'\n'"GPU 3"* ]]
  [[ $output == *"Operation not permitted"* ]]
  # all of the driver refused: what containers show after their cgroup was rewritten
  echo 'c 195:* rwm' > "$group/devices.deny"
  run simulated quad sh -c "echo \$\$ > $group/cgroup.procs; nvidia-smi -L"
  [ "$output" = 'Failed to initialize NVML: Unknown Error' ]
  run simulated quad sh -c "echo \$\$ > $group/cgroup.procs; $programs/cuda-client"
  [ "${lines[1]}" = 'cuInit: CUDA_ERROR_NO_DEVICE' ]
}

@test "version 2 device programs hide GPUs" {
  local mount group
  mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
  [ -n "$mount" ] || skip "no cgroup v2"
  group=$mount/graft-sim-test-$$
  mkdir "$group"
  cgroups+=("$group")
  "$programs/deny-device" "$group" 195 2
  run simulated quad sh -c "echo \$\$ > $group/cgroup.procs; nvidia-smi -L; exec 3< /dev/nvidia2"
  [ "$(gpus "$output")" = 3 ]
  [[ $output == *"Operation not permitted"* ]]
  run simulated quad sh -c "echo \$\$ > $group/cgroup.procs; $programs/cuda-client"
  [ "${lines[1]}" = 'count: 3' ]
}

@test "libraries know their topology without procfs" {
  "$sim" create -t dgx-h100 "$root"
  run simulated no-driver sh -ec "
    cp -a $root/dev/nvidia* /dev
    LD_LIBRARY_PATH=\$(echo $root/usr/lib/*-linux-gnu) $root/usr/bin/nvidia-smi -L"
  [ "$(gpus "$output")" = 8 ]
}

# --- faults ---

@test "NVML can be slow, fail, or crash" {
  local start
  start=$(date +%s%N)
  "$sim" run --fault nvml-init-delay=0.5 -- nvidia-smi -L
  [ $((($(date +%s%N) - start) / 1000000)) -ge 500 ]
  run -15 "$sim" run --fault nvml-init-fail=15 -- nvidia-smi -L
  [[ $output == *"Failed to initialize NVML: GPU is lost"* ]]
  run -139 sh -c "$sim run --fault nvml-crash -- nvidia-smi -L; exit \$?"
}

@test "module and libraries can be of different versions" {
  run -18 "$sim" run -t dgx-h100 --fault nvml-mismatch -- nvidia-smi
  [[ $output == *$'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54.14' ]]
  run "$sim" run -t dgx-h100 --fault nvml-mismatch -- sh -c "cat /proc/driver/nvidia/version; $programs/cuda-client"
  [[ $output == *"  550.40.07  "* ]]
  [[ $output == *"cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"* ]]
}

@test "a GPU can be lost" {
  run "$sim" run -t quad --fault gpu-lost=1 -- nvidia-smi -L
  [[ $output == *"Unable to determine the device handle for gpu 1: GPU is lost.  Reboot the system to recover this GPU"* ]]
  [ "$(gpus "$output")" = 3 ]
  run "$sim" run -t quad --fault gpu-lost=1 -- "$programs/cuda-client"
  [[ $output == *"count: 3"* ]]
}

@test "anything can be missing" {
  run -127 "$sim" run -t quad --fault missing=nvidia-smi -- nvidia-smi
  run "$sim" run -t quad --fault missing=/dev/nvidia0 --fault missing=libcuda.so.1 -- sh -c "nvidia-smi -L; $programs/cuda-client"
  [ "$(gpus "$output")" = 3 ]
  [[ $output == *"libcuda.so.1: cannot open shared object file"* ]]
  run -64 "$sim" run --fault missing -- true
  [ "${lines[0]}" = "graft-sim: fault 'missing': a value is missing" ]
}
