# SPDX-License-Identifier: Apache-2.0
# files: disk
# The simulated driver as a product: every topology makes a driver root that the usual tools agree on, programs see the GPUs that they may
# open and no others, faults do what they say, and the machine is left as it was.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

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
    # the process that removes mount points may be in it for another moment
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      rmdir "$group" 2> /dev/null && break
      sleep 0.1
    done
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
    # This machine's ldconfig ignores the libraries of another one.
    ! "$sim" show "$topology" | grep "^machine: " | grep -qv "$(uname -m)" || continue
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

@test "a driver root of 8 GPUs takes less than a second of the processor" {
  local TIMEFORMAT='%3U %3S' user system
  { time "$sim" create -t dgx-h100 "$root"; } 2>"$BATS_TEST_TMPDIR/time"
  read -r user system < <(tail -n 1 "$BATS_TEST_TMPDIR/time")
  [ $((10#${user/./} + 10#${system/./})) -lt 1000 ] || { cat "$BATS_TEST_TMPDIR/time" && return 1; }
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
  run -0 "$sim" check "$BATS_TEST_TMPDIR/good.yaml" dgx-h100 single
  [ "${lines[1]}" = 'dgx-h100: 8 GPUs, driver 550.54.14' ]
  [ "${lines[2]}" = 'single: 1 GPU, driver 550.54.14' ]
  run -76 --separate-stderr "$sim" check "$BATS_TEST_TMPDIR/bad.yaml" "$BATS_TEST_TMPDIR/good.yaml"
  [ "$output" = "$BATS_TEST_TMPDIR/good.yaml: 0 GPUs, driver none" ]
}

@test "a topology can be shown, changed and used" {
  "$sim" show quad | sed 's/count: 4/count: 2/; s/bus-ids.*//; s/minors.*//' > "$BATS_TEST_TMPDIR/mine.yaml"
  run simulated "$BATS_TEST_TMPDIR/mine.yaml" nvidia-smi -L
  [ "$(gpus "$output")" = 2 ]
}

@test "what was probably meant by an unknown topology, fault or command" {
  run -72 "$sim" create -t dgx-h10 "$root"
  [ "$output" = "graft-sim: no topology of that name: dgx-h10 (did you mean 'dgx-h100'?) ('graft-sim list' names them)" ]
  run -72 "$sim" show qaud
  [[ $output == *"no topology of that name: qaud (did you mean 'quad'?)"* ]]
  run -64 "$sim" create --fault nvml-mismach "$root"
  [[ $output == *"fault 'nvml-mismach': unknown (did you mean 'nvml-mismatch'?); 'graft-sim run --help' lists the faults"* ]] || die "$output"
  run -64 "$sim" create --fault gpu_lst=0 "$root"
  [[ $output == *"(did you mean 'gpu-lost'?)"* ]] || die "$output"
  run -64 "$sim" creatx
  [[ $output == *"unknown command 'creatx' (did you mean 'create'?); 'graft-sim --help' lists them"* ]] || die "$output"
}

@test "unknown names, commands and options are said to be so" {
  run -72 "$sim" create -t elephant "$root"
  [ "$output" = "graft-sim: no topology of that name: elephant ('graft-sim list' names them)" ]
  run -64 "$sim" destroy
  [[ $output == *"unknown command 'destroy'"* ]]
  run -64 "$sim" create --colour "$root"
  [[ $output == *"unrecognized option '--colour'"* ]]
  run -64 "$sim" create
  run -0 "$sim" --version
  [[ $output == "graft-sim "[0-9]* ]]
}

@test "the help of the commands that take faults lists each with what it does, and so does the man page" {
  local command
  for command in create run; do
    run -0 "$sim" $command --help
    [[ $output == *"
 Faults:
  nvml-init-delay=SECONDS    NVML takes that long to initialise, for example 0.5
  nvml-init-fail=CODE        Initialising NVML fails with that nvmlReturn_t code
  nvml-mismatch              Kernel module and libraries have different versions
  nvml-crash                 Initialising NVML ends in SIGSEGV
  gpu-lost=INDEX             That GPU has fallen off the bus
  xid=INDEX:NUMBER           The kernel log reports that Xid for that GPU
  missing=NAME               That file, or all below that path, is missing"* ]] || { echo "$output"; return 1; }
    [ "$(awk '{ print length($0) }' <<< "$output" | sort -n | tail -n 1)" -le 80 ]
  done
  run -0 "$sim" list --help
  [[ $output != *Faults* ]]
  run -0 "$build/sim/sim-generate" man
  [[ $output == *$'*gpu-lost*=INDEX\n\tThat GPU has fallen off the bus.'* ]]
  run -64 "$sim" run --fault fire -- true
  [[ $output == "graft-sim: fault 'fire': unknown; 'graft-sim run --help' lists the faults"* ]]
}

# completed WORD...: what bash offers after these words
completed() {
  # shellcheck disable=SC2016
  bash -c 'source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _graft_sim; printf "%s\n" "${COMPREPLY[@]}"' - \
    "$build/sim/completion/graft-sim" graft-sim "$@" | LC_ALL=C sort
}

@test "completion offers topologies and faults" {
  all
  cd "$BATS_TEST_TMPDIR"
  [ "$(completed show '')" = "$(printf '%s\n' "${topologies[@]}" | LC_ALL=C sort)" ]
  [ "$(completed run -t dgx-)" = $'dgx-h100\ndgx-h100-16' ]
  [ "$(completed create --topology = qu)" = quad ]
  # one's own, in a file
  touch quarry.yaml
  [ "$(completed run -t qua)" = $'quad\nquarry.yaml' ]
  [ "$(completed run --fault nvml-init)" = $'nvml-init-delay=\nnvml-init-fail=' ]
  [ "$(completed create -f nvml-cr)" = nvml-crash ]
  [[ $(completed run env) == *env* ]]
  grep -q -- "-a 'a100-mig .*quad" "$build/sim/completion/graft-sim.fish"
  grep -q -- 'compadd a100-mig .*; _files' "$build/sim/completion/_graft-sim"
  ! command -v zsh > /dev/null || zsh -n "$build/sim/completion/_graft-sim"
  ! command -v fish > /dev/null || fish -n "$build/sim/completion/graft-sim.fish"
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

@test "a host for arm64 says on another machine that nothing of it runs there" {
  [ "$(uname -m)" != aarch64 ] || skip "this machine is arm64"
  run -126 simulated gh200 nvidia-smi -L
  [[ $output == *"graft-sim: its driver is for aarch64: programs built for that machine find it (nvidia-container-cli plan), but nothing of it runs on x86_64"* ]]
  [[ $output == *"/usr/bin/nvidia-smi: this simulated driver is for aarch64, but was made on x86_64: its programs and libraries cannot run here"* ]]
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
  local topology
  for topology in a100-mig dgx-h100 dgx1-v100 gb200 pcie-8 quad rhel geforce-laptop t4; do
    run -0 simulated "$topology" "$programs/nvml-client"
    printf '%s\n' "$output" > "$BATS_TEST_TMPDIR/$topology"
  done
  # 4 GPUs without switches, one of them split into two GPU instances of which one has two compute instances
  [ "$(tail -n 5 "$BATS_TEST_TMPDIR/a100-mig")" = "12 links of version 3
fabric: state 0, clique 0
MIG 1c.3g.20gb: MIG 3g.20gb at 4:4
MIG 2c.3g.20gb: MIG 3g.20gb at 4:4
MIG 4g.20gb: MIG 4g.20gb at 0:4" ]
  [ "$(sort -u "$BATS_TEST_TMPDIR/dgx-h100")" = $'18 links of version 4\nfabric: state 3, clique 0' ]
  [ "$(sort -u "$BATS_TEST_TMPDIR/gb200")" = $'18 links of version 5\nfabric: state 3, clique 1' ]
  [ "$(sort -u "$BATS_TEST_TMPDIR/t4")" = $'0 links of version 0\nfabric: state 0, clique 0' ]
}

# release_root KIND SUITE: $root is one that test/tools/release-root made, and $libraries where its libraries are
release_root() {
  local status=0
  root=$("$top/test/tools/release-root" "$@" 2>"$BATS_TEST_TMPDIR/why") || status=$?
  [ "$status" != 77 ] || skip "$(tail -n 1 "$BATS_TEST_TMPDIR/why")"
  [ "$status" = 0 ] || { cat "$BATS_TEST_TMPDIR/why"; return 1; }
  libraries=$root/usr/lib/$(uname -m)-linux-gnu
}

@test "Debian's programs that ask NVML run on it" {
  release_root nvml bookworm
  export PYTHONPATH=$root/usr/lib/python3/dist-packages
  run -0 --separate-stderr simulated quad python3 -m gpustat --no-color
  [ "${lines[1]}" = '[0] NVIDIA A10 | 33°C,   0 % |     4 / 23028 MB |' ] || { echo "$output"; return 1; }
  [ "${#lines[@]}" = 5 ]
  # a device plugin's questions, and one that no version of the library answers
  run -0 --separate-stderr simulated a100-mig python3 - << 'END'
from pynvml import *
nvmlInit()
print(nvmlSystemGetDriverVersion(), nvmlSystemGetCudaDriverVersion_v2())
for i in range(nvmlDeviceGetCount()):
    gpu = nvmlDeviceGetHandleByIndex(i)
    most = nvmlDeviceGetMaxMigDeviceCount(gpu)
    print(i, nvmlDeviceGetPciInfo(gpu).busId, nvmlDeviceGetCudaComputeCapability(gpu), "MIG devices:", most)
    for k in range(most):
        try:
            mig = nvmlDeviceGetMigDeviceHandleByIndex(gpu, k)
        except NVMLError_NotFound:
            break
        instance = nvmlDeviceGetGpuInstanceById(gpu, nvmlDeviceGetGpuInstanceId(mig))
        print(" ", k, nvmlDeviceGetAttributes(mig).memorySizeMB, nvmlGpuInstanceGetInfo(instance).profileId)
sets = nvmlEventSetCreate()
nvmlDeviceRegisterEvents(gpu, nvmlEventTypeXidCriticalError, sets)
for ask in (lambda: nvmlEventSetWait_v2(sets, 1), lambda: nvmlDeviceGetFanSpeed(gpu), lambda: nvmlDeviceGetHandleByUUID("GPU-0")):
    try:
        ask()
    except NVMLError as error:
        print(error)
END
  [ "$output" = "535.161.08 12020
0 00000000:07:00.0 (8, 0) MIG devices: 0
1 00000000:0F:00.0 (8, 0) MIG devices: 7
  0 19968 9
  1 9856 14
  2 4864 19
2 00000000:47:00.0 (8, 0) MIG devices: 7
  0 4864 19
  1 4864 19
  2 4864 19
  3 4864 19
  4 4864 19
  5 4864 19
  6 4864 19
3 00000000:4E:00.0 (8, 0) MIG devices: 7
  0 19968 9
  1 19968 9
  2 19968 5
Timeout
Not Supported
Not Found" ] || { echo "$output"; return 1; }
}

@test "hwloc finds the GPUs of NVML at their places, and how far they are from each other" {
  release_root nvml-plugins bookworm
  cat > "$BATS_TEST_TMPDIR/lstopo" <<END
#!/bin/sh
export LD_LIBRARY_PATH=$libraries HWLOC_PLUGINS_PATH=$libraries/hwloc
exec $root/usr/bin/lstopo-no-graphics --of console --verbose --filter io:important
END
  chmod +x "$BATS_TEST_TMPDIR/lstopo"
  run -0 --separate-stderr simulated a100-mig "$BATS_TEST_TMPDIR/lstopo"
  [ "$(grep -c 'GPU(NVML)' <<< "$output")" = 4 ]
  [ "$(grep -A 1 'busid=0000:47:00.0 id=10de:20b0 class=0302(3D)' <<< "$output" | sed -n 's/.*GPU(NVML).* \(GPUModel.*\) NVIDIASerial=.*\( NVIDIAUUID.*\)/\1\2/p')" = \
    'GPUModel="NVIDIA A100-SXM4-40GB" NVIDIAUUID=GPU-239c6ff1-8887-a366-6d15-0bd49f6abf27) "nvml2"' ] || { echo "$output"; return 1; }
  [[ $output == *"   index   nvml0   nvml1   nvml2   nvml3
   nvml0 1000000  200000  200000  200000"* ]] || { echo "$output"; return 1; }
}

@test "Slurm finds GPUs and MIG devices by NVML" {
  [[ $(slurmd -V 2> /dev/null) == "slurm-wlm 22.05"* ]] || skip "the plugin of Debian 12 needs Slurm 22.05"
  release_root nvml-plugins bookworm
  # shellcheck disable=SC2016
  printf '%s\n' '#!/bin/sh -e
mkdir -p /etc/slurm /var/spool/slurmd
cp "$1"/slurm-wlm/gpu_nvml.so /usr/lib/*/slurm-wlm/
hostname gpu01
printf "%s\n" ClusterName=cluster SlurmctldHost=gpu01 GresTypes=gpu "NodeName=gpu01 CPUs=1 Gres=$2" >/etc/slurm/slurm.conf
echo AutoDetect=nvml >/etc/slurm/gres.conf
slurmd -G 2>&1' > "$BATS_TEST_TMPDIR/slurmd"
  chmod +x "$BATS_TEST_TMPDIR/slurmd"
  run -0 --separate-stderr unshare --uts "$sim" run -t a100-mig -- "$BATS_TEST_TMPDIR/slurmd" "$libraries" \
    gpu:nvidia_a100-sxm4-40gb:1,gpu:nvidia_a100_1g.5gb:8,gpu:nvidia_a100_2g.10gb:1,gpu:nvidia_a100_3g.20gb:3,gpu:nvidia_a100_4g.20gb:1
  [[ $output != *"Not Supported"* ]] || { echo "$output"; return 1; }
  [[ $output == *"4 GPU system device(s) detected"* ]] || { echo "$output"; return 1; }
  [ "$(sed -n 's/.*Gres Name=gpu Type=\([^ ]*\) .*File=\([^ ]*\) .*/\1 \2/p' <<< "$output" | sort | sed -n '1p;2p;$p')" = \
"nvidia_a100-sxm4-40gb /dev/nvidia0
nvidia_a100_1g.5gb /dev/nvidia1,/dev/nvidia-caps/nvidia-cap201,/dev/nvidia-caps/nvidia-cap202
nvidia_a100_4g.20gb /dev/nvidia3,/dev/nvidia-caps/nvidia-cap426,/dev/nvidia-caps/nvidia-cap427" ] || { echo "$output"; return 1; }
  [ "$(grep -c 'Gres Name=gpu' <<< "$output")" = 14 ]
}

@test "Debian's terminal programs show the GPUs" {
  release_root nvml bookworm
  export PYTHONPATH=$root/usr/lib/python3/dist-packages
  release_root monitors trixie
  PYTHONPATH+=:$root/usr/lib/python3/dist-packages
  run -0 --separate-stderr simulated a100-mig python3 -m nvitop --once --ascii
  [[ $output == *"| 1:1      2g.10gb @ GI/CI: 3/0 |   4.00MiB /  9856MiB |"* ]] || { echo "$output"; return 1; }
  local loader=("$root"/usr/lib64/ld-linux-*)
  local newer=("${loader[0]}" --library-path "$libraries:/usr/lib/$(uname -m)-linux-gnu")
  run -0 --separate-stderr simulated t4 "${newer[@]}" "$root/usr/bin/nvtop" --snapshot
  [ "$(jq -r '.[] | [.device_name, .temp, .power_draw, .gpu_util] | join(" ")' <<< "$output")" = "Tesla T4 30C 7W 0%" ] || { echo "$output"; return 1; }
  mkdir -p "$BATS_TEST_TMPDIR/.config/btop"
  echo 'shown_boxes = "gpu0"' > "$BATS_TEST_TMPDIR/.config/btop/btop.conf"
  # It reads a terminal, and goes on until it is ended.
  script --quiet --flush --return --echo never --command "stty rows 24 cols 100; TERM=xterm HOME=$BATS_TEST_TMPDIR LC_ALL=C.UTF-8 exec $sim run -t t4 -- \
    ${newer[*]} $root/usr/bin/btop --utf-force" "$BATS_TEST_TMPDIR/screen" < /dev/null &> /dev/null 3>&- &
  SECONDS=0
  until [[ $(tr -d '\0' < "$BATS_TEST_TMPDIR/screen") == *"Tesla T4"*"15.0 GiB"* ]] || ((SECONDS > 60)); do sleep 0.2; done
  kill $!
  wait $! || true
  ((SECONDS <= 60)) || { cat "$BATS_TEST_TMPDIR/screen"; return 1; }
}

# docs/simulated-driver.md says so.
@test "NVIDIA's own nvidia-smi says on it that its library is not the driver's" {
  release_root nvidia-smi bookworm
  local program=$root/usr/lib/nvidia/current/nvidia-smi
  run -0 "$program" --help
  [[ ${lines[0]} =~ ^"NVIDIA System Management Interface -- v"([0-9.]+)$ ]]
  printf 'driver: %s\ncuda: "12.2"\ngpus:\n  - model: A100-SXM4-40GB\n' "${BASH_REMATCH[1]}" > "$BATS_TEST_TMPDIR/same.yaml"
  run -255 --separate-stderr simulated "$BATS_TEST_TMPDIR/same.yaml" "$program" -L
  [ "$output" = "Mismatch in versions between nvidia-smi and NVML.
Are you sure you are using nvidia-smi provided with the driver?" ]
}

@test "the library of driver files cannot be initialised, which its callers expect" {
  run -0 --separate-stderr simulated gb200 python3 -c '
import ctypes
library = ctypes.CDLL("libnvidia-sandboxutils.so.1")
library.nvSandboxUtilsErrorString.restype = ctypes.c_char_p
answer = library.nvSandboxUtilsInit(None)
print(answer, library.nvSandboxUtilsErrorString(answer).decode(), library.nvSandboxUtilsGetDriverVersion(None))'
  [ "$output" = '2 Not supported by the simulated driver 2' ]
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

@test "sysfs has the links and numbers by which programs find the driver of a GPU and its nodes" {
  # shellcheck disable=SC2016
  run -0 --separate-stderr simulated dgx-h100 sh -ec '
    cd /sys/bus/pci/devices/0000:43:00.0
    cat drm/card1/dev drm/renderD129/dev
    readlink -f driver
    cat driver/module/version
    [ "$(readlink -f driver/0000:43:00.0)" = "$(pwd -P)" ] && echo bound
    stat -c %F "/dev/$(sed -n s/DEVNAME=//p drm/card1/uevent)"'
  [ "$output" = $'226:1\n226:129\n/sys/bus/pci/drivers/nvidia\n550.54.14\nbound\ncharacter special file' ] || { echo "$output $stderr"; return 1; }
}

@test "a container with a user namespace can mount proc and sysfs of its own" {
  # shellcheck disable=SC2016
  run -0 --separate-stderr simulated dgx-h100 unshare --user --map-root-user --mount --net --pid --fork sh -ec '
    mount -t proc proc /mnt
    cat /mnt/1/comm
    ls /mnt/driver/nvidia 2>/dev/null || echo "no driver"
    mount -t sysfs sysfs /mnt
    ls /mnt/class/net'
  [ "$output" = $'sh\nno driver\nlo' ] || { echo "$output $stderr"; return 1; }
}

@test "sysfs and NVML agree on the NUMA nodes of GPUs and their processors" {
  [ -e /sys/devices/system/node/node0 ] && [ ! -e /sys/devices/system/node/node1 ] && [ "$(nproc --all)" -gt 1 ] ||
    skip "a machine with one NUMA node and several processors is needed"
  # shellcheck disable=SC2016
  run -0 --separate-stderr simulated quad sh -ec '
    cd /sys/devices/system/node
    cat online node0/distance node1/distance
    for node in 0 1; do
      [ "$(cat node$node/cpulist)" = "$(cat /sys/bus/pci/devices/0000:$([ $node = 0 ] && echo 65 || echo ca):00.0/local_cpulist)" ]
      python3 -c "
import ctypes, sys
map = int(open(\"node$node/cpumap\").read().replace(\",\", \"\"), 16)
nvml = ctypes.CDLL(\"libnvidia-ml.so.1\")
nvml.nvmlInit_v2()
gpu, cpus, nodes = ctypes.c_void_p(), (ctypes.c_ulong * 16)(), (ctypes.c_ulong * 1)()
nvml.nvmlDeviceGetHandleByIndex_v2($node * 2, ctypes.byref(gpu))
nvml.nvmlDeviceGetCpuAffinity(gpu, 16, cpus)
nvml.nvmlDeviceGetMemoryAffinity(gpu, 1, nodes, 0)
print(cpus[0] == map & (2**64 - 1), nodes[0], bool(map))"
    done
    for gpu in 17 65 ca e3; do cat /sys/bus/pci/devices/0000:$gpu:00.0/numa_node; done | tr "\n" " "'
  [[ $output == $'0-1\n10 21\n21 10\nTrue 1 True\nTrue 2 True\n'*'0 0 1 1 ' ]] || { echo "$output $stderr"; return 1; }
}

@test "sysfs and NVML agree on the PCI bridges between GPUs, and NVLinks have two ends" {
  local topology
  cat > "$BATS_TEST_TMPDIR/compare.py" << 'END'
import ctypes, os
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class Pci(ctypes.Structure):
    _fields_ = [("legacy", ctypes.c_char * 16), ("numbers", ctypes.c_uint * 5), ("id", ctypes.c_char * 32)]
def ask(name, *arguments, out=ctypes.c_uint):
    value = out()
    assert getattr(nvml, name)(*arguments, ctypes.byref(value)) == 0, name
    return value.value if out == ctypes.c_uint else value
def parents(gpu):  # from the host bridge down
    place = os.path.realpath("/sys/bus/pci/devices/" + gpu)
    assert place.endswith("/" + gpu) and os.path.exists(place + "/config"), place
    for bridge in place.split("/")[4:-1]:
        assert open("/sys/bus/pci/devices/%s/class" % bridge).read() == "0x060400\n", bridge
    return place.split("/")[3:-1]
nvml.nvmlInit_v2()
count = ask("nvmlDeviceGetCount_v2")
handles = [ask("nvmlDeviceGetHandleByIndex_v2", i, out=ctypes.c_void_p) for i in range(count)]
ids = [ask("nvmlDeviceGetPciInfo_v3", h, out=Pci).id.decode().lower()[4:] for h in handles]
links = [[0] * count for _ in ids]
for i, handle in enumerate(handles):
    for link in range(18):
        state = ctypes.c_uint()
        if nvml.nvmlDeviceGetNvLinkState(handle, link, ctypes.byref(state)) == 0 and state.value:
            remote = ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link, out=Pci).id.decode().lower()[4:]
            assert ask("nvmlDeviceGetNvLinkCapability", handle, link, 0) == 1
            if remote in ids:
                links[i][ids.index(remote)] += 1
for i in range(count):
    for k in range(count):
        a, b = parents(ids[i]), parents(ids[k])
        common = len(os.path.commonprefix([a, b]))
        nodes = [open("/sys/bus/pci/devices/%s/numa_node" % g).read() for g in (ids[i], ids[k])]
        want = (0 if i == k else 10 if common > 2 and len(a) == len(b) == common + 1 else 20 if common > 2 else 30 if common > 0
                else 40 if nodes[0] == nodes[1] else 50)
        assert ask("nvmlDeviceGetTopologyCommonAncestor", handles[i], handles[k]) == want, (ids[i], ids[k], want)
        assert links[i][k] == links[k][i]
        if i != k and any(map(any, links)):
            assert ask("nvmlDeviceGetP2PStatus", handles[i], handles[k], 2) == (0 if links[i][k] else 5)
print(count, sorted({ask("nvmlDeviceGetTopologyCommonAncestor", a, b) for a in handles for b in handles}), [sum(row) for row in links][0])
END
  while read -r topology want; do
    run -0 --separate-stderr simulated "$topology" python3 "$BATS_TEST_TMPDIR/compare.py"
    [ "$output" = "$want" ] || { echo "$topology: $output $stderr"; return 1; }
  done <<< "dgx1-v100 8 [0, 10, 30, 50] 6
hgx-a100 8 [0, 10, 40, 50] 0
pcie-8 8 [0, 10, 50] 0
t4-16 16 [0, 10, 20, 50] 0
quad 4 [0, 40, 50] 0"
  run -0 --separate-stderr simulated dgx1-v100 nvidia-smi topo -m
  [ "$(cut -f 1-9 <<< "$output" | sed -n '2,9p' | tr '\t' ' ')" = "GPU0  X  NV1 NV1 NV2 NV2 SYS SYS SYS
GPU1 NV1  X  NV2 NV1 SYS NV2 SYS SYS
GPU2 NV1 NV2  X  NV2 SYS SYS NV1 SYS
GPU3 NV2 NV1 NV2  X  SYS SYS SYS NV1
GPU4 NV2 SYS SYS SYS  X  NV1 NV1 NV2
GPU5 SYS NV2 SYS SYS NV1  X  NV2 NV1
GPU6 SYS SYS NV1 SYS NV1 NV2  X  NV2
GPU7 SYS SYS SYS NV1 NV2 NV1 NV2  X " ] || { echo "$output"; return 1; }
  # the machine's own devices are not below an overlay: what is written there reaches the kernel
  # shellcheck disable=SC2016
  run -0 --separate-stderr simulated dgx1-v100 stat -f -c %T /sys/devices/virtual /sys/devices/pci0000:80
  [ "$output" = $'sysfs\noverlayfs' ] || { echo "$output"; return 1; }
}

@test "GPUs that NVLinks connect are reset together" {
  # shellcheck disable=SC2016
  run -0 --separate-stderr "$sim" run -t dgx1-v100 --fault xid=1:79 -- sh -c '
    : until Volta, all of them
    nvidia-smi -r -i 1 || echo "status $?"
    nvidia-smi -r -i 0,1,2,3,4,5,6,8 || echo "status $?"
    nvidia-smi -L 2>/dev/null | grep -c V100
    nvidia-smi -r -i 7,6,5,4,3,2,1,0 | tail -n 1
    nvidia-smi -L 2>/dev/null | grep -c V100
    grep -c "GPU reset" "$SIMULATED_KMSG"
    tail -n 1 "$SIMULATED_KMSG" && sed -n "s/^.*154, //p" "$SIMULATED_KMSG"'
  [ "$output" = "GPU 00000000:07:00.0 could not be reset: NVLinks connect it to GPU 00000000:06:00.0, which has to be reset with it
status 16
Unable to determine the device handle for GPU 8: Not Found
status 6
7
All done.
8
8
NVRM: GPU 0000:8a:00.0: GPU reset
GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)" ] || { echo "$output $stderr"; return 1; }
  # since Ampere each one, but behind NVSwitches only with the fabric manager
  run -0 --separate-stderr simulated hgx-a100 nvidia-smi -r -i 3
  [ "$output" = $'GPU 00000000:47:00.0 was successfully reset.\nAll done.' ] || { echo "$output"; return 1; }
  "$sim" show hgx-a100 | grep -v fabricmanager > "$BATS_TEST_TMPDIR/unmanaged.yaml"
  run -16 --separate-stderr simulated "$BATS_TEST_TMPDIR/unmanaged.yaml" nvidia-smi -r -i 3
  [ "$output" = "GPU 00000000:47:00.0 could not be reset: NVLinks connect it to GPU 00000000:13:00.0, which has to be reset with it" ] ||
    { echo "$output"; return 1; }
  run -0 --separate-stderr simulated dgx-h100 nvidia-smi -r -i 3
}

@test "a new MIG mode waits for the reset of the GPU; since Hopper it does not" {
  local query='--query-gpu=mig.mode.current,mig.mode.pending --format=csv,noheader'
  # shellcheck disable=SC2016
  run -0 --separate-stderr "$sim" run -t hgx-a100 -- sh -c '
    nvidia-smi -mig 1 -i 2
    nvidia-smi '"$query"' -i 2
    nvidia-smi -r -i 2 >/dev/null
    nvidia-smi '"$query"' | sort | uniq -c | tr -s " "
    "$1" | grep count
    nvidia-smi -i 2 -mig 0 | grep -v Warning
    nvidia-smi -r -i 2 >/dev/null
    nvidia-smi '"$query"' | sort -u
    nvidia-smi -mig 2 2>&1 || echo "status $?"' - "$programs/cuda-client"
  [ "$output" = "Warning: MIG mode is in pending enable state for GPU 00000000:43:00.0: In use by another client
Reset the GPU (nvidia-smi -r -i 2) to make it effective.
Enabled MIG Mode for GPU 00000000:43:00.0
All done.
Disabled, Enabled
 7 Disabled, Disabled
 1 Enabled, Enabled
count: 7
Reset the GPU (nvidia-smi -r -i 2) to make it effective.
Disabled MIG Mode for GPU 00000000:43:00.0
All done.
Disabled, Disabled
Option -mig takes 0 or 1, not '2'.
status 2" ] || { echo "$output $stderr"; return 1; }
  run -0 --separate-stderr "$sim" run -t dgx-h100 -- sh -c "nvidia-smi -mig 1 -i 0; nvidia-smi $query -i 0"
  [ "$output" = $'Enabled MIG Mode for GPU 00000000:1B:00.0\nAll done.\nEnabled, Enabled' ] || { echo "$output"; return 1; }
  # a GPU that has instances stays in MIG mode, and some have none
  run -19 --separate-stderr simulated a100-mig nvidia-smi -mig 0 -i 1
  [ "${lines[0]}" = "Unable to disable MIG Mode for GPU 00000000:0F:00.0: In use by another client" ]
  run -3 --separate-stderr simulated t4 nvidia-smi -mig 1
  [ "${lines[0]}" = "Unable to enable MIG Mode for GPU 00000000:00:1E.0: Not Supported" ]
}

@test "as many GPUs as there can be are reset, and the table has their compute mode" {
  printf 'driver: 550.54.14\ncuda: "12.4"\ngpus:\n  - model: T4\n    count: 32\n' > "$BATS_TEST_TMPDIR/many.yaml"
  # shellcheck disable=SC2016
  run -0 --separate-stderr "$sim" run -t "$BATS_TEST_TMPDIR/many.yaml" -- sh -c '
    nvidia-smi -r | tail -n 1
    nvidia-smi -i 3 -c EXCLUSIVE_PROCESS
    nvidia-smi -i 3 --query-gpu=compute_mode --format=csv,noheader
    nvidia-smi | grep -c "|      0%      Default |"
    nvidia-smi | grep "E. Process"'
  [ "$output" = "All done.
Set compute mode to EXCLUSIVE_PROCESS for GPU 00000000:22:00.0.
All done.
Exclusive_Process
31
| N/A   33C    P0              7W /   70W |       4MiB /  15360MiB |      0%   E. Process |" ] || { echo "$output $stderr"; return 1; }
}

@test "the room that is left for MIG instances is that of a GPU of this size" {
  printf 'driver: 535.161.08\ncuda: "12.2"\ngpus:\n  - model: A30\n    mig: [2g.12gb]\n' > "$BATS_TEST_TMPDIR/a30.yaml"
  run -0 --separate-stderr simulated "$BATS_TEST_TMPDIR/a30.yaml" python3 -c '
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
gpu, n = ctypes.c_void_p(), ctypes.c_uint()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))
for profile in 14, 5, 0:
    print(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, profile, ctypes.byref(n)), n.value)'
  [ "$output" = $'0 2\n0 1\n0 0' ] || { echo "$output $stderr"; return 1; }
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
    for i in $(seq 200); do grep -q copied $CUDA_MPS_PIPE_DIRECTORY/said && break; sleep 0.1; done
    grep "^device 0" $CUDA_MPS_PIPE_DIRECTORY/said
    [ "$(echo get_client_list | nvidia-cuda-mps-control)" = $client ] && echo "one client"
    kill $client; wait $client
    for i in $(seq 200); do [ -n "$(echo get_client_list | nvidia-cuda-mps-control)" ] || break; sleep 0.1; done
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
    for i in $(seq 200); do grep -q /run/nvidia-fabricmanager/socket /proc/net/unix && break; sleep 0.1; done
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
    ls -A /
    cat /proc/self/mountinfo
    cat /proc/devices
  }
  state > "$BATS_TEST_TMPDIR/before"
  simulated dgx-h100 sh -c 'nvidia-smi -L; touch /usr/bin/new /etc/new /dev/new; rm /usr/bin/nvidia-smi; mkdir /graft-sim-test; touch /graft-sim-test-file' > /dev/null
  simulated wsl2 true
  simulated orin true
  state > "$BATS_TEST_TMPDIR/after"
  diff "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
}

@test "what is made directly in / is lost at the end; its other directories and mounts are the machine's" {
  mkdir "$BATS_TEST_TMPDIR/root"
  # shellcheck disable=SC2016
  run -0 --separate-stderr unshare -m bash -ec '
    # A machine of its own, whose / has a directory, a mount of a directory, one of a file, and links.
    mount -t tmpfs root "$1"
    cd "$1"
    mkdir own mounted old proc sys dev run tmp
    for name in bin etc lib lib32 lib64 libx32 opt sbin usr var; do
      if [ -L "/$name" ]; then cp -a "/$name" .; elif [ -d "/$name" ]; then mkdir "$name" && mount --rbind "/$name" "$name"; fi
    done
    for name in proc sys dev; do mount --rbind "/$name" "$name"; done
    mount -t tmpfs mounted mounted
    echo text >mounted/text
    touch there file removed
    mount --bind mounted/text file
    cp "$2" run/graft-sim-of-test
    pivot_root . old
    umount -l old
    rmdir old
    before=$(ls -A /)
    cd /own
    /run/graft-sim-of-test run -t single -- bash -ec "
      pwd
      mkdir /new
      echo new >/new/file
      touch /there
      rm /removed
      cat /file
      rmdir /opt 2>/dev/null || echo busy
      touch /own/file /mounted/file /tmp/file /etc/file /usr/file
      findmnt --noheadings --output FSTYPE,PROPAGATION --target /
      grep -c new-root /proc/self/mountinfo || :
      nvidia-smi -L | wc -l"
    [ "$(ls -A /)" = "$before" ]
    find / /own /mounted /etc /usr -maxdepth 1 -name file' - "$BATS_TEST_TMPDIR/root" "$sim"
  [ "$output" = "/own
text
busy
overlay private
0
1
/file
/own/file
/mounted/file" ] || { echo "$output $stderr"; return 1; }
}

# with_packages COMMAND [ARGUMENT...]: COMMAND, in a shell of a mount namespace with package databases of its own, since another
# program may be changing those of the machine. Before and after, what is noted about packages and libraries has to be the same.
with_packages() {
  # shellcheck disable=SC2016
  unshare -m bash -ec '
    state() {
      sha256sum /var/lib/dpkg/status /etc/ld.so.cache
      find /var/lib/dpkg /var/lib/apt /var/cache/apt /var/cache/ldconfig /var/log /etc -printf "%p %y %s %C@ %l\n" | LC_ALL=C sort
      find /usr /opt /var/lib -maxdepth 4 -name "*graft-sim-test*" -o -name "libof-package*"
    }
    work=$1
    shift
    for directory in /var/lib/dpkg /var/lib/apt /var/cache/ldconfig /var/log /etc; do
      mkdir -p "$work/own$directory"
      cp -a "$directory/." "$work/own$directory"
      mount --bind "$work/own$directory" "$directory"
    done
    mkdir -p "$work/own/cache/archives/partial"
    mount --bind "$work/own/cache" /var/cache/apt
    state >"$work/before"
    bash -ec "$@"
    state | diff "$work/before" - >&2' - "$BATS_TEST_TMPDIR" "$@"
}

# make_package DIRECTORY: a package with a library, a program, a configuration file, state and a service that it restarts.
make_package() {
  local tree=$1/tree libraries
  "$sim" create -t single "$1/driver"
  libraries=$(cd "$1/driver/usr/lib" && echo *-linux-gnu)
  mkdir -p "$tree"/{DEBIAN,usr/bin,"usr/lib/$libraries",etc,var/lib/graft-sim-test,opt/graft-sim-test}
  sed 's/libnvidia-cfg.so.1/libof-package.so.1/' "$1/driver/usr/lib/$libraries"/libnvidia-cfg.so.*.* > "$tree/usr/lib/$libraries/libof-package.so.1"
  printf '#!/bin/sh\necho installed\n' > "$tree/usr/bin/graft-sim-test"
  chmod 755 "$tree/usr/bin/graft-sim-test"
  echo setting > "$tree/etc/graft-sim-test.conf"
  echo state > "$tree/var/lib/graft-sim-test/file"
  echo option > "$tree/opt/graft-sim-test/file"
  printf '%s\n' 'Package: graft-sim-test' 'Version: 1' 'Architecture: all' 'Maintainer: nobody <nobody@example.org>' \
    'Description: made by a test' > "$tree/DEBIAN/control"
  printf '#!/bin/sh\nset -e\nldconfig\nif [ -x /usr/sbin/policy-rc.d ]; then /usr/sbin/policy-rc.d x restart || echo "policy $?"; fi\n' > "$tree/DEBIAN/postinst"
  chmod 755 "$tree/DEBIAN/postinst"
  dpkg-deb --root-owner-group -b "$tree" "$1/graft-sim-test.deb" > /dev/null
}

@test "packages can be installed, and are gone at the end" {
  command -v dpkg-deb apt-get > /dev/null || skip "no dpkg"
  local topology gpus
  make_package "$BATS_TEST_TMPDIR"
  # shellcheck disable=SC2016
  while read -r topology gpus; do
    run -0 --separate-stderr with_packages '"$1" run -t "$2" -- sh -ec "$3" - "$4"' - "$sim" "$topology" '
      dpkg -i "$1" | grep policy
      graft-sim-test
      dpkg -s graft-sim-test | grep Status
      cat /var/lib/graft-sim-test/file /opt/graft-sim-test/file /etc/graft-sim-test.conf
      # ldconfig saw both: what is new and what the driver has
      ldconfig -p | grep -o "\(libnvidia-cfg\|libof-package\).so.1 ([^,]*," | sort
      nvidia-smi -L | wc -l
      apt-get remove -y graft-sim-test 2>&1 | grep -o "^Removing graft-sim-test"
      ! graft-sim-test 2>/dev/null
      apt-get install -y "$1" >/dev/null 2>&1
      graft-sim-test' "$BATS_TEST_TMPDIR/graft-sim-test.deb"
    [ "$output" = "policy 101
installed
Status: install ok installed
state
option
setting
libnvidia-cfg.so.1 (libc6,
libof-package.so.1 (libc6,
$gpus
Removing graft-sim-test
installed" ] || { echo "$output $stderr"; return 1; }
  done << 'END'
dgx-h100 8
rhel 2
END
}

@test "without overlays a package manager stops before it changes anything" {
  command -v dpkg-deb apt-get > /dev/null || skip "no dpkg"
  make_package "$BATS_TEST_TMPDIR"
  run -0 with_packages '"$1" run --bind-libs -t rhel -- sh -c "$2" - "$3"' - "$sim" '
    dpkg -i "$1" || echo "dpkg: $?"
    apt-get install -y "$1" || echo "apt-get: $?"
    ldconfig && ldconfig -p | grep "libcuda.so.1 "' "$BATS_TEST_TMPDIR/graft-sim-test.deb"
  [[ $output == *"dpkg: error:"*"Read-only file system"*"dpkg: 2"*"Read-only file system"*"apt-get: 100"*"libcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1"* ]] || { echo "$output"; return 1; }
}

@test "stores of engines stay the machine's, also on a partition of which the rest is covered" {
  # shellcheck disable=SC2016
  run -0 --separate-stderr unshare -m sh -ec '
    mount -t tmpfs disk /var/lib
    mkdir -p /var/lib/docker/overlay2 /var/lib/other /var/lib/containers
    mount -t tmpfs inner /var/lib/containers
    echo before >/var/lib/other/file
    "$1" run -t quad -- sh -ec "
      echo image >/var/lib/docker/overlay2/file
      echo image >/var/lib/containers/file
      cat /var/lib/other/file
      echo after >/var/lib/other/file
      cd /var/lib/docker && mkdir upper work merged && mount -t overlay -o lowerdir=/usr/share/misc,upperdir=upper,workdir=work overlay merged && echo overlay
      umount merged"
    cat /var/lib/docker/overlay2/file /var/lib/containers/file /var/lib/other/file' - "$sim"
  [ "$output" = $'before\noverlay\nimage\nimage\nbefore' ] || { echo "$output $stderr"; return 1; }
}

@test "a link of the machine to a directory stays one" {
  # as on Fedora, where /usr/sbin is /usr/bin, and Arch, where /usr/lib64 is /usr/lib
  [ "$(uname -m)" = x86_64 ] || skip "the loader is elsewhere"
  run -0 --separate-stderr unshare -m sh -ec '
    cd "$1"
    mkdir upper work && mount -t tmpfs t upper && mkdir upper/u upper/w
    mount -t overlay -o lowerdir=/usr,upperdir=upper/u,workdir=upper/w overlay /usr
    cp -a /usr/lib64/. /usr/lib/ && mv /usr/lib64 /usr/old64 && /usr/lib/ld-linux-x86-64.so.2 /bin/ln -s lib /usr/lib64
    "$2" run -t rhel -- sh -c "readlink /usr/lib64; stat -c %F /usr/lib/libcuda.so.1; nvidia-smi -L | wc -l; for i in /usr /etc; do stat -f -c %T \$i; done"' \
    - "$BATS_TEST_TMPDIR" "$sim"
  [ "$output" = $'lib\nsymbolic link\n2\noverlayfs\noverlayfs' ] || { echo "$output $stderr"; return 1; }
}

# machine COMMAND [ARGUMENT...]: a shell in a namespace whose /run and /tmp are new, so that what is left there is ours.
machine() {
  unshare -m sh -ec 'mount --bind "$1" /mnt; mount -t tmpfs run /run; mount -t tmpfs tmp /tmp; shift; sh -ec "$@"' - "$BATS_TEST_TMPDIR" "$@"
}

@test "nothing is left on the machine, however it ends" {
  cp "$sim" "$BATS_TEST_TMPDIR/graft-sim"
  # shellcheck disable=SC2016
  run -0 --separate-stderr machine '
    # Mounts of other tests, below /tmp, go with their directories.
    state() { find /run /tmp -printf "%p %y %m\n" | sort; grep -v " /tmp/[^ ]*/" /proc/self/mountinfo; ls /dev | grep nvidia || :; cat /proc/devices; }
    gone() { for i in $(seq 300); do state >/mnt/after; cmp -s /mnt/before /mnt/after && return; sleep 0.1; done; diff /mnt/before /mnt/after; }
    host() { rm -f /mnt/up; /mnt/graft-sim run -t "$1" -- sh -c "echo >/mnt/up; exec $2" 2>/dev/null & host=$!; for i in $(seq 600); do [ ! -e /mnt/up ] || return 0; sleep 0.05; done; }
    state >/mnt/before
    for topology in dgx-h100 rhel nixos driver-container; do
      for signal in TERM KILL; do
        host $topology "sleep 600"
        find /run /tmp -maxdepth 1 -mindepth 1 ! -name mount | sort | tr "\n" " "
        kill -$signal $host; wait $host || true
        gone
        echo "$topology $signal"
      done
    done
    # it ended by itself, and what it had started did not
    host rhel "sh -c \"sleep 5 & exit 0\""
    wait $host
    ls -d /run/graft-sim
    gone
    # two at a time share mount points; the one that goes first leaves them to the other
    host rhel "sleep 600"; first=$host
    host rhel "sleep 600"
    kill -KILL $first; wait $first || true
    sleep 0.5
    ls -d /tmp/nvidia-mps
    nsenter -t $host -m ls /tmp/nvidia-mps
    kill -KILL $host; wait $host || true
    gone
    # one that cannot begin
    : >/run/nvidia
    /mnt/graft-sim run -t driver-container -- true 2>&1 || echo "status $?"
    rm /run/nvidia
    gone'
  [ "$output" = "/run/graft-sim /run/nvidia-fabricmanager /run/nvidia-persistenced dgx-h100 TERM
/run/graft-sim /run/nvidia-fabricmanager /run/nvidia-persistenced dgx-h100 KILL
/run/graft-sim /run/nvidia-persistenced /tmp/nvidia-mps rhel TERM
/run/graft-sim /run/nvidia-persistenced /tmp/nvidia-mps rhel KILL
/run/current-system /run/graft-sim /run/opengl-driver nixos TERM
/run/current-system /run/graft-sim /run/opengl-driver nixos KILL
/run/graft-sim /run/nvidia /run/nvidia-persistenced driver-container TERM
/run/graft-sim /run/nvidia /run/nvidia-persistenced driver-container KILL
/run/graft-sim
/tmp/nvidia-mps
control
graft-sim: open failed: /run/nvidia: not a directory
See the system error; the kernel log may say more.
status 74" ] || { echo "$output $stderr"; return 1; }
}

@test "a link in /tmp leads no mount elsewhere" {
  cp "$sim" "$BATS_TEST_TMPDIR/graft-sim"
  run machine 'mkdir /tmp/elsewhere; ln -s elsewhere /tmp/nvidia-mps; /mnt/graft-sim run -t rhel -- true'
  [[ $output == "graft-sim: open failed: /tmp/nvidia-mps: "* ]]
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
  local folder
  folder=$(mktemp --directory /run/graft-sim-test.XXXXXX)
  # shellcheck disable=SC2016
  run -0 unshare -m sh -c '
    mount -t tmpfs t "$1" && mkdir "$1/usr" &&
    mount -t tmpfs inner /usr/share/misc && echo here > /usr/share/misc/file &&
    "$0" run -t geforce-laptop -- sh -c "cat /usr/share/misc/file; ls /usr/share/vulkan/icd.d"' "$sim" "$folder"
  [[ $output == *here*nvidia_icd.json* ]]
  rmdir "$folder"
}

@test "every user sees the host, whatever mask its maker has; the command has that mask" {
  local way
  for way in '' --bind-libs; do
    # shellcheck disable=SC2016
    run -0 --separate-stderr sh -c 'umask 077; "$@"' - "$sim" run $way -t geforce-laptop -- sh -c '
      umask
      stat -c "%a %n" /proc/devices /etc/ld.so.cache /dev/dri
      setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "ldconfig -p | grep -c libcuda.so.1; nvidia-smi -L | grep -c RTX"'
    [ "$output" = $'0077\n644 /proc/devices\n644 /etc/ld.so.cache\n755 /dev/dri\n2\n1' ] || { echo "$output $stderr"; return 1; }
  done
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
  # and its MIG devices with it: of the two that are split, CUDA takes the other one
  printf '%s\n' 'driver: 550.54.14' 'cuda: "12.4"' 'gpus:' '  - model: A100-SXM4-40GB' '    mig: [7g.40gb]' \
    '  - model: A100-SXM4-40GB' '    bus-ids: ["0000:02:00.0"]' '    mig: [3g.20gb]' > "$BATS_TEST_TMPDIR/split.yaml"
  run "$sim" run -t "$BATS_TEST_TMPDIR/split.yaml" --fault gpu-lost=0 -- "$programs/cuda-client"
  [[ $output == *$'\ncount: 1\ndevice 0: NVIDIA A100-SXM4-40GB MIG 3g.20gb, 19968 MiB, 8.0'* ]] || { echo "$output"; return 1; }
  run "$sim" run -t "$BATS_TEST_TMPDIR/split.yaml" --fault gpu-lost=0 --fault gpu-lost=1 -- "$programs/cuda-client"
  [[ $output == *"cuInit: CUDA_ERROR_NO_DEVICE"* ]]
}

@test "the kernel log decides about the health of GPUs, for NVML and CUDA alike" {
  # shellcheck disable=SC2016
  run -0 --separate-stderr "$sim" run -t quad --fault xid=1:79 --fault xid=2:48 -- sh -c '
    cat "$SIMULATED_KMSG"
    nvidia-smi -L 2>/dev/null | cut -c1-50
    "$1" | grep count
    nvidia-smi --gpu-reset -i 1
    nvidia-smi -L 2>/dev/null | grep -c A10
    echo "4,33,2,-;NVRM: Xid (PCI:0000:e3:00): 79, pid=3, name=python, GPU has fallen off the bus." >>"$SIMULATED_KMSG"
    nvidia-smi -L 2>/dev/null | grep -c A10
    setpriv --reuid 65534 --regid 65534 --clear-groups nvidia-smi -r 2>/dev/null
    nvidia-smi -r | tail -n 2
    nvidia-smi -L 2>/dev/null | grep -c A10
    tail -n 1 "$SIMULATED_KMSG"' - "$programs/cuda-client"
  [ "$output" = "NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
NVRM: Xid (PCI:0000:ca:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected
GPU 0: NVIDIA A10 (UUID: GPU-ac83bb1e-786d-777f-30
Unable to determine the device handle for gpu 1: G
GPU 2: NVIDIA A10 (UUID: GPU-7c586678-4fa5-db14-1f
GPU 3: NVIDIA A10 (UUID: GPU-f9c30051-db1c-fd35-f9
count: 3
GPU 00000000:65:00.0 was successfully reset.
All done.
4
3
GPU 00000000:17:00.0 could not be reset: Insufficient Permissions
GPU 00000000:E3:00.0 was successfully reset.
All done.
4
NVRM: GPU 0000:e3:00.0: GPU reset" ] || { echo "$output $stderr"; return 1; }
  # a fault for good: no reset helps, and nobody answers on the bus
  run -0 --separate-stderr "$sim" run -t quad --fault gpu-lost=1 -- sh -c '
    cat "$SIMULATED_KMSG"; nvidia-smi -r -i 1; od -An -tx1 -N4 /sys/bus/pci/devices/0000:65:00.0/config'
  [ "$output" = "NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
GPU 00000000:65:00.0 could not be reset: GPU is lost
 ff ff ff ff" ] || { echo "$output $stderr"; return 1; }
  run -64 "$sim" create --fault xid=0:79 "$root"
  [ "${lines[0]}" = "graft-sim: fault 'xid': only 'graft-sim run' has a kernel log" ]
  run -64 "$sim" run --fault xid=0 -- true
  [ "${lines[0]}" = "graft-sim: fault 'xid=0': an index and a number from 1 to 999 are expected, such as 0:79" ]
  run -64 "$sim" run --fault xid=1:79 -- true
  [ "${lines[0]}" = "graft-sim: fault 'xid=1:79': the topology has no GPU of that index" ]
}

@test "NVML reports what is written to the kernel log, be it a file or a FIFO" {
  local log
  mkfifo "$BATS_TEST_TMPDIR/fifo"
  : > "$BATS_TEST_TMPDIR/file"
  for log in file fifo; do
    # shellcheck disable=SC2016
    SIMULATED_KMSG=$BATS_TEST_TMPDIR/$log run -0 --separate-stderr simulated a100-mig sh -ec '
      "$1" 1000 >"$2" & client=$!
      for i in $(seq 600); do grep -q waiting "$2" && break; sleep 0.05; done
      {
        echo "NVRM: Xid (PCI:0000:0f:00 GPU-I:03 GPU-CI:00): 43, pid=1234, name=python, Ch 00000010"
        echo "[ 12.5] NVRM: Xid (0000:07:00): 31, Channel 00000001"
        echo "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal"
        echo "NVRM: Xid (PCI:0000:99:00): 79, no GPU of this host"
        echo "NVRM: Xid (PCI:0000:4e:00): 79, pid=1, name=x, GPU has fallen off the bus."
      } >>"$SIMULATED_KMSG"
      wait $client
      cat "$2"' - "$programs/nvml-client" "$BATS_TEST_TMPDIR/$log.said"
    # a FIFO has no past: after its line has been read, the GPU is as before
    [ "$output" = "waiting
GPU 1: Xid 43, instances 3/0
GPU 0: Xid 31, instances -1/-1
$([ $log = fifo ] && echo "GPU 3: Xid 79, instances -1/-1" || echo "a lost GPU: Xid 79")" ] || { echo "$output $stderr"; return 1; }
  done
}

@test "anything can be missing" {
  run -127 "$sim" run -t quad --fault missing=nvidia-smi -- nvidia-smi
  run "$sim" run -t quad --fault missing=/dev/nvidia0 --fault missing=libcuda.so.1 -- sh -c "nvidia-smi -L; $programs/cuda-client"
  [ "$(gpus "$output")" = 3 ]
  [[ $output == *"libcuda.so.1: cannot open shared object file"* ]]
  run -64 "$sim" run --fault missing -- true
  [ "${lines[0]}" = "graft-sim: fault 'missing': a value is missing" ]
}
