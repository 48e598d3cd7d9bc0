# SPDX-License-Identifier: Apache-2.0
# info, list and plan of nvidia-container-cli on simulated hosts: output bytes, streams, statuses, errors, the debug log.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup_file() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  # Folders that everybody may look into: some tests run as nobody.
  hosts=$(mktemp -d /tmp/graft-cli-XXXXXX)
  mkdir "$hosts/open"
  chmod 755 "$hosts"
  chmod 1777 "$hosts/open"
  export build hosts
  local topology
  for topology in t4 quad dgx-h100 a100-mig geforce-laptop gb200 half-installed no-driver wsl2; do
    "$build/sim/graft-sim" create --topology $topology "$hosts/$topology"
  done
  "$build/sim/graft-sim" create --topology t4 --fault nvml-mismatch "$hosts/mismatch"
}

teardown_file() {
  rm -rf "${hosts:?}"
}

setup() {
  cli=$build/src/cli/nvidia-container-cli
  sim=$build/sim/graft-sim
  name=nvidia-container-cli
}

# on HOST WORD...: the program with that driver root; $output is stdout, $stderr the rest.
on() {
  local host=$1
  shift
  run --separate-stderr "$cli" --root="$hosts/$host" "$@"
}

# fact HOST DIRECTORY KEY: what the driver's procfs says of a GPU.
fact() {
  sed -n "s/^$3:[[:space:]]*//p" "$hosts/$1/proc/driver/nvidia/gpus/$2/information"
}

# without PATTERN [FILE]: no line of the file, or of stdin, matches.
without() {
  if grep -nE "$@"; then return 1; fi
}

as_nobody() {
  run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

simulated="nvidia-container-cli: note: the driver is simulated: there is no real GPU"

@test "info: the bytes of the plain output" {
  on t4 info
  [ "$status" -eq 0 ]
  diff - <(printf '%s\n' "$output") <<EXPECTED
NVRM version:   418.226.00
CUDA version:   10.1

Device Index:   0
Device Minor:   0
Model:          Tesla T4
Brand:          Tesla
GPU UUID:       $(fact t4 0000:00:1e.0 'GPU UUID')
Bus Location:   00000000:00:1e.0
Architecture:   7.5
EXPECTED
  [ "$stderr" = "$simulated" ]
  [ "$("$cli" -r "$hosts/t4" info 2>/dev/null | tail -c 1 | od -An -c | tr -d ' ')" = '\n' ]
}

@test "info --csv: the bytes, the order by bus id, the minors as they are" {
  on quad info --csv
  [ "$status" -eq 0 ]
  diff - <(printf '%s\n' "$output") <<EXPECTED
NVRM version,CUDA version
535.161.08,12.2

Device Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture
0,3,NVIDIA A10,Nvidia,$(fact quad 0000:17:00.0 'GPU UUID'),00000000:17:00.0,8.6
1,2,NVIDIA A10,Nvidia,$(fact quad 0000:65:00.0 'GPU UUID'),00000000:65:00.0,8.6
2,0,NVIDIA A10,Nvidia,$(fact quad 0000:ca:00.0 'GPU UUID'),00000000:ca:00.0,8.6
3,1,NVIDIA A10,Nvidia,$(fact quad 0000:e3:00.0 'GPU UUID'),00000000:e3:00.0,8.6
EXPECTED
  [ "$stderr" = "$simulated" ]
}

# no_gpu: a driver in $BATS_TEST_TMPDIR/none whose procfs has an empty list of GPUs, and whose NVML knows none either.
no_gpu() {
  printf 'driver: 418.226.00\ncuda: "10.1"\ngpus: []\n' >"$BATS_TEST_TMPDIR/none.yaml"
  "$build/sim/graft-sim" create --topology "$BATS_TEST_TMPDIR/none.yaml" "$BATS_TEST_TMPDIR/none" >/dev/null 2>&1
  mkdir "$BATS_TEST_TMPDIR/none/proc/driver/nvidia/gpus"
}

@test "info --csv: the header of the second table is there without a GPU too" {
  no_gpu
  run --separate-stderr "$cli" -r "$BATS_TEST_TMPDIR/none" info --csv
  [ "$status" -eq 0 ]
  [ "$output" = "NVRM version,CUDA version
418.226.00,10.1

Device Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture" ]
}

@test "info --json: the whole inventory, each fact with its source" {
  on dgx-h100 info --json
  [ "$status" -eq 0 ]
  jq -e '.version == 1 and .simulated and (.gpus | length) == 8 and .driver_version.value == "550.54.14"' <<<"$output"
  jq -e '[.libraries, .binaries, .gpus, .ipcs] | flatten | all(.source != null and .source != "")' <<<"$output"
  jq -e '.gpus | all(.uuid.source != null and .brand.value == "Nvidia" and .arch.source == "nvml")' <<<"$output"
  jq -e '(.firmwares | length) > 0 and (.omissions | length) > 0 and (.omissions | all(.why != ""))' <<<"$output"
}

@test "list: everything, in the order that callers know" {
  on dgx-h100 list
  [ "$status" -eq 0 ]
  local lib=/usr/lib/x86_64-linux-gnu version=550.54.14
  diff - <(printf '%s\n' "$output") <<EXPECTED
/dev/nvidiactl
/dev/nvidia-uvm
/dev/nvidia-uvm-tools
/dev/nvidia-modeset
$(printf '/dev/nvidia%d\n' 0 1 2 3 4 5 6 7)
$(printf '/usr/bin/%s\n' nvidia-smi nvidia-debugdump nvidia-persistenced nv-fabricmanager nvidia-cuda-mps-control nvidia-cuda-mps-server nvidia-xconfig)
$(printf "$lib/%s.so.$version\n" libnvidia-ml libnvidia-cfg libnvidia-nscq libcuda libcudadebugger libnvidia-opencl \
    libnvidia-gpucomp libnvidia-ptxjitcompiler libnvidia-allocator libnvidia-pkcs11 libnvidia-pkcs11-openssl3 \
    libnvidia-nvvm libnvidia-ngx vdpau/libvdpau_nvidia libnvidia-encode libnvidia-opticalflow libnvcuvid \
    libnvidia-eglcore libnvidia-glcore libnvidia-tls libnvidia-glsi libnvidia-fbc libnvidia-rtcore libnvoptix \
    libGLX_nvidia libEGL_nvidia libGLESv2_nvidia libGLESv1_CM_nvidia libnvidia-glvkspirv)
$lib/libnvidia-egl-gbm.so.1.1.1
$lib/libnvidia-egl-wayland.so.1.1.13
$lib/libnvidia-vulkan-producer.so.$version
/run/nvidia-persistenced/socket
/run/nvidia-fabricmanager/socket
/lib/firmware/nvidia/$version/gsp_ga10x.bin
/lib/firmware/nvidia/$version/gsp_tu10x.bin
EXPECTED
  [ "$stderr" = "$simulated" ]
}

@test "list: the default goes by the number of words" {
  on dgx-h100 list
  local everything=$output words
  # words that leave the default alone
  for words in --imex-channel=3 -cguv -c --json; do
    on dgx-h100 list $words
    [ "$status" -eq 0 ]
    [ "$(wc -l <<<"$output")" -ge 20 ] || { echo "$words: $output"; return 1; }
  done
  on dgx-h100 list --imex-channel=3
  [ "$(grep -v channel3 <<<"$output")" = "$everything" ]
  [ "$(grep -n channel3 <<<"$output")" = "13:/dev/nvidia-caps-imex-channels/channel3" ]
  # words that say what is wanted: nothing
  for words in --no-persistenced --no-fabricmanager --no-gsp-firmware --compat32 --mig-config=all --no-cntlibs -- \
    '-f --no-gsp-firmware' '--compat32 --no-persistenced'; do
    # shellcheck disable=SC2086
    on dgx-h100 list $words
    [ "$status" -eq 0 ]
    [ -z "$output" ] || { echo "$words: $output"; return 1; }
  done
  on dgx-h100 list --imex-channel 3
  [ "$output" = /dev/nvidia-caps-imex-channels/channel3 ]
  on dgx-h100 list --imex-channel=3 --imex-channel=0,3
  [ "$output" = "$(printf '/dev/nvidia-caps-imex-channels/channel%d\n' 3 0 3)" ]
}

@test "list: parts, long and short" {
  local short long pattern
  while read -r short long pattern; do
    on dgx-h100 list "$short"
    [ "$status" -eq 0 ]
    local first=$output
    on dgx-h100 list "$long"
    [ "$output" = "$first" ]
    [ -n "$output" ]
    [ "$(grep -cE "$pattern" <<<"$output")" -eq "$(wc -l <<<"$output")" ]
  done <<'ROWS'
-l --libraries \.so\.
-b --binaries ^/usr/bin/
-i --ipcs /socket$
-f --firmwares /gsp_
ROWS
  on dgx-h100 list -lbif
  [ "$(wc -l <<<"$output")" -eq 43 ]
  on dgx-h100 list -i --no-persistenced
  [ "$output" = /run/nvidia-fabricmanager/socket ]
  on dgx-h100 list -i --no-fabricmanager
  [ "$output" = /run/nvidia-persistenced/socket ]
  on dgx-h100 list --no-gsp-firmware -f
  [ -z "$output" ]
  on geforce-laptop list -l
  local libraries=$output
  on geforce-laptop list -l --compat32
  [ "$(head -n "$(wc -l <<<"$libraries")" <<<"$output")" = "$libraries" ]
  [ "$(tail -n +"$(($(wc -l <<<"$libraries") + 1))" <<<"$output" | grep -c /i386-linux-gnu/)" -gt 5 ]
}

@test "list: what configure mounts, with every capability on every host; and so does the library's nvc_driver_info" {
  local topology
  cat >"$BATS_TEST_TMPDIR/compare" <<'SCRIPT'
set -u
cli=$1 walk=$2 work=$3 fs=$3/root different=0
mkdir -p "$fs"
mount -t tmpfs tmpfs "$fs"
mkdir -p "$fs"/{etc,proc,dev,tmp,run,sbin,usr/bin,usr/lib}
# Files of other kinds have no option of list.
names() { grep -v -e ^/proc -e ^/etc -e /share/ -e ^/dev/dri -e /xorg/ | sed 's|.*/||' | sort -u; }
for caps in --utility --compute --graphics --video --display --ngx '--compute --compat32' '--compute --utility --graphics --video --display --ngx --compat32'; do
  unshare --mount --propagation private sleep 600 3>&- 4>&- &
  pid=$!
  until [ "$(readlink "/proc/$pid/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]; do sleep 0.01; done
  "$cli" --user=root configure --pid=$pid --no-cgroups --device=all $caps "$fs" 2>"$work/err"
  status=$?
  awk -v fs="$fs/" 'index($5, fs) == 1 { print substr($5, length(fs)) }' "/proc/$pid/mountinfo" | names >"$work/mounted"
  kill $pid
  wait $pid 2>/dev/null
  "$cli" list --device=all --libraries --binaries --ipcs --firmwares $caps 2>/dev/null | names >"$work/listed"
  if [ $status -ne 0 ]; then
    grep -q 'load library failed' "$work/err" || different=1
  elif ! [ -s "$work/mounted" ] || ! diff "$work/listed" "$work/mounted"; then
    echo "differs: $caps"
    different=1
  fi
done
"$cli" list 2>/dev/null | grep -v -e '^/dev/nvidia[0-9]' -e ^/dev/nvidia-caps -e ^/proc | sort >"$work/listed"
"$walk" driver | sort >"$work/told"
diff "$work/listed" "$work/told" || different=1
exit $different
SCRIPT
  "$sim" list >"$BATS_TEST_TMPDIR/topologies"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/topologies")" -gt 10 ]
  while read -r topology _; do
    run "$sim" run --topology "$topology" -- bash "$BATS_TEST_TMPDIR/compare" "$cli" "$build/test/integration/nvc_walk" "$BATS_TEST_TMPDIR" \
      </dev/null 3>&- 4>&-
    [ "$status" -eq 0 ] || { echo "$topology: $output"; return 1; }
  done <"$BATS_TEST_TMPDIR/topologies"
}

@test "list: devices in the order of their selection" {
  local nodes uuid
  nodes=$(printf '/dev/nvidia%s\n' ctl -uvm -uvm-tools -modeset)
  uuid=$(fact quad 0000:ca:00.0 'GPU UUID')
  while IFS='|' read -r words minors; do
    # shellcheck disable=SC2086
    on quad list $words
    [ "$status" -eq 0 ]
    # shellcheck disable=SC2086
    [ "$output" = "$nodes${minors:+$(printf '\n/dev/nvidia%s' $minors)}" ] || { echo "$words: $output"; return 1; }
  done <<ROWS
-d 0|3
-d0|3
--device=0|3
--device=3,0|1 3
-d 3 -d 0|1 3
-d 0,0,0|3
--dev=0,,1|3 2
--device=|
-d all|3 2 0 1
-d ALL|3 2 0 1
-d all,nonsense|3 2 0 1
-d 1,all|2 3 0 1
-d $uuid|0
-d ${uuid,,}|0
-d 0000:ca:00.0|0
-d 0:ca:0|0
-d 00000000:CA:00.0|0
ROWS
}

@test "list: a name that matches no device is an error, whatever is beside it" {
  local word
  for word in 4 none void GPU-00000000-0000-0000-0000-000000000000 MIG-GPU-x/1/0 0:0 x -1 0x0 1c:00.0; do
    on quad list --device="0,$word"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [ "${stderr_lines[0]}" = "$name: device error: $word: unknown device" ] || { echo "$stderr"; return 1; }
    [[ ${stderr_lines[1]} == "$name: hint: "* ]]
  done
}

@test "list: MIG devices, by index, and all of them for configuration" {
  local caps=/proc/driver/nvidia/capabilities
  on a100-mig list -d 1:0
  [ "$status" -eq 0 ]
  [ "$(sed -n 5p <<<"$output")" = /dev/nvidia1 ]
  [[ $(sed -n 6p <<<"$output") == $caps/gpu1/mig/gi*/access ]]
  [[ $(sed -n 7p <<<"$output") == $caps/gpu1/mig/gi*/ci0/access ]]
  [[ $(sed -n 8p <<<"$output") == /dev/nvidia-caps/nvidia-cap* ]]
  [[ $(sed -n 9p <<<"$output") == /dev/nvidia-caps/nvidia-cap* ]]
  [ "$(wc -l <<<"$output")" -eq 9 ]
  # a GPU in MIG mode by its own index: the node alone
  on a100-mig list -d 1
  [ "$(wc -l <<<"$output")" -eq 5 ]
  on a100-mig list -d 1 --mig-config=all
  [ "$(sed -n 6,9p <<<"$output")" = "$caps/mig/config
/dev/nvidia-caps/nvidia-cap1
$caps/gpu1
/dev/nvidia-caps" ]
  on a100-mig list -d all --mig-monitor=all
  [ "$(sed -n 9,10p <<<"$output")" = "$caps/mig/monitor
/dev/nvidia-caps/nvidia-cap2" ]
  without /access <<<"$output"
  on a100-mig list -d 1:0 --mig-config=all
  [ "$status" -eq 1 ]
  [ "${stderr_lines[0]}" = "$name: mig-config error: all: cannot enable mig-config with specific MIG devices selected" ]
  on a100-mig list -d 1:0 --mig-monitor=all
  [ "${stderr_lines[0]}" = "$name: mig-monitor error: all: cannot enable mig-monitor with specific MIG devices selected" ]
}

@test "list: a MIG device by its UUID, which only NVML knows" {
  local uuid
  uuid=$("$cli" -r "$hosts/a100-mig" info --json 2>/dev/null | jq -r '.gpus[1].mig_devices[1].uuid.value')
  [[ $uuid == MIG-* ]]
  on a100-mig list -d "$uuid"
  local by_uuid=$output
  [ "$status" -eq 0 ]
  on a100-mig list -d 1:1
  [ "$output" = "$by_uuid" ]
  on a100-mig list -d "${uuid%?}"
  [ "$status" -eq 1 ]
  [ "${stderr_lines[0]}" = "$name: device error: ${uuid%?}: unknown device" ]
}

@test "list --json: a plan that another program can carry out" {
  on dgx-h100 list --json -d 2 -l
  [ "$status" -eq 0 ]
  jq -e '.grants | length == 1 and .[0].index == 2' <<<"$output"
  jq -e '[.edits[] | select(.kind == "device") | .target] | index("/dev/nvidia2") != null and index("/dev/nvidia1") == null' <<<"$output"
  jq -e '[.edits[] | select(.kind == "bind")] | length > 20 and all(.source | startswith("'"$hosts"'/dgx-h100/"))' <<<"$output"
  jq -e '[.edits[] | select(.kind == "symlink" and (.target | endswith("/libcuda.so.1")))] | length == 1' <<<"$output"
  jq -e '[.edits[] | select(.kind == "ldcache") | .folders[]] | length > 0' <<<"$output"
  jq -e '.edits | all(.why != null and .why != "")' <<<"$output"
  jq -e '[.edits[] | select(.target == "/usr/bin/nvidia-smi")] | length == 0' <<<"$output"
}

@test "a broken driver's states have their texts, statuses and hints" {
  on half-installed info
  [ "$status" -eq 1 ]
  [ "${stderr_lines[0]}" = "$name: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory" ]
  on half-installed list
  [ "$status" -eq 1 ]
  on mismatch info
  [ "$status" -eq 1 ]
  [ "${stderr_lines[0]}" = "$name: initialization error: nvml error: driver/library version mismatch" ]
  [ "${stderr_lines[1]}" = "$name: hint: The kernel module is 418.10.02, the library 418.226.00. Reboot, or reload the kernel module, so that the module and the libraries have the same version." ]
  on no-driver info
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [[ ${stderr_lines[0]} == "$name: initialization error: "* ]]
}

@test "the host itself has no driver here, or a real one" {
  run --separate-stderr "$cli" info
  if [ -e /proc/driver/nvidia/version ]; then
    [ "$status" -eq 0 ]
  else
    [ "$status" -eq 1 ]
    [ -z "$output" ]
  fi
}

@test "info: NVML that fails, crashes, hangs" {
  local fault text
  while IFS='|' read -r fault text; do
    "$build/sim/graft-sim" create -t t4 --fault "$fault" "$BATS_TEST_TMPDIR/$fault"
    run --separate-stderr "$cli" -r "$BATS_TEST_TMPDIR/$fault" --nvml-timeout=0.5 info
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    # shellcheck disable=SC2053
    [[ ${stderr_lines[0]} == "$name: initialization error: "$text ]] || { echo "$fault: $stderr"; return 1; }
    [[ ${stderr_lines[1]} == "$name: hint: "* ]]
    # list does not ask NVML
    run --separate-stderr "$cli" -r "$BATS_TEST_TMPDIR/$fault" list
    [ "$status" -eq 0 ]
    rm -r "${BATS_TEST_TMPDIR:?}/$fault"
  done <<'ROWS'
nvml-init-fail=9|nvml error: driver not loaded
nvml-init-fail=4|nvml error: insufficient permissions
nvml-crash|nvml error: *
nvml-init-delay=30|driver rpc error: timed out
ROWS
}

@test "plan: the reader of an image on an unbindable mount has no more of procfs than its own descriptors" {
  mkdir -p "$BATS_TEST_TMPDIR/root"
  # shellcheck disable=SC2016
  run "$sim" run --topology single -- sh -c '
    mount -t tmpfs tmpfs "$2/root" && mkdir "$2/root/etc" && mount --make-unbindable "$2/root" &&
      strace -f -o "$2/trace" -e trace=open_tree,mount_setattr "$1" plan --device=0 --compute "$2/root"' - "$cli" "$BATS_TEST_TMPDIR"
  [ "$status" -eq 0 ]
  grep -q 'open_tree([0-9]*, "", .* = -1 EINVAL' "$BATS_TEST_TMPDIR/trace"
  grep -q 'open_tree([0-9]*, "self/fd", .* = [0-9]*$' "$BATS_TEST_TMPDIR/trace"
  grep -q 'mount_setattr([0-9]*, "", AT_EMPTY_PATH, .* = 0$' "$BATS_TEST_TMPDIR/trace"
}

@test "info, list and plan need no privileges" {
  local command
  # NVML below another root needs chroot: info is tried where the driver root is /.
  for command in info list 'plan -d all -cu'; do
    # shellcheck disable=SC2086
    run --separate-stderr "$build/sim/graft-sim" run -t dgx-h100 -- setpriv --reuid=12 --regid=34 --clear-groups "$cli" $command
    [ "$status" -eq 0 ] || { echo "$command: $stderr"; return 1; }
    local output_of_nobody=$output
    # shellcheck disable=SC2086
    run --separate-stderr "$build/sim/graft-sim" run -t dgx-h100 -- "$cli" $command
    [ "$status" -eq 0 ]
    [ -n "$output" ]
    [ "$output" = "$output_of_nobody" ]
  done
}

@test "configure without its capabilities" {
  as_nobody "$cli" -r "$hosts/t4" configure -d 0 /tmp
  [ "$status" -eq 1 ]
  [ "${stderr_lines[0]}" = "$name: permission error: capability change failed: operation not permitted" ]
  # one of the 13 is enough to miss
  run --separate-stderr setpriv --bounding-set=-chown --inh-caps=-chown "$cli" -r "$hosts/t4" configure -d 0 /tmp
  [ "$status" -eq 1 ]
  [ "${stderr_lines[0]}" = "$name: permission error: capability change failed: operation not permitted" ]
}

@test "while it runs it holds no more capabilities than the step needs, and cannot be dumped" {
  "$build/sim/graft-sim" create -t t4 --fault nvml-init-delay=3 "$BATS_TEST_TMPDIR/slow"
  "$cli" -r "$BATS_TEST_TMPDIR/slow" info >/dev/null 2>&1 3>&- &
  local pid=$!
  for _ in $(seq 500); do
    sleep 0.05
    [ -z "$(cat "/proc/$pid/task/$pid/children")" ] || break
  done
  grep -E '^(CapInh|CapPrm|CapEff|NoNewPrivs)' "/proc/$pid/status" >"$BATS_TEST_TMPDIR/status"
  local child
  child=$(tr -d ' ' <"/proc/$pid/task/$pid/children")
  # It gives up its own privileges first.
  for _ in $(seq 500); do
    ! grep -qx $'CapPrm:\t0000000000000000' "/proc/$child/status" || break
    sleep 0.05
  done
  grep -E '^(Uid|CapPrm|CapEff|NoNewPrivs)' "/proc/$child/status" >"$BATS_TEST_TMPDIR/child"
  kill "$pid"
  wait "$pid" || true
  diff - <(tr '\t' ' ' <"$BATS_TEST_TMPDIR/status") <<'EXPECTED'
CapInh: 0000000000000000
CapPrm: 00000000082c11ef
CapEff: 00000000000400e0
NoNewPrivs: 1
EXPECTED
  diff - <(tr '\t' ' ' <"$BATS_TEST_TMPDIR/child") <<'EXPECTED'
Uid: 65534 65534 65534 65534
CapPrm: 0000000000000000
CapEff: 0000000000000000
NoNewPrivs: 1
EXPECTED
}

@test "--user: who asks NVML" {
  local words expected
  while IFS='|' read -r words expected; do
    # shellcheck disable=SC2086
    run -0 bash -c '"$@" 2>&1 >/dev/null' - "$cli" -r "$hosts/t4" -d /dev/stderr $words info
    [[ $output == *"using unprivileged user $expected"* ]] || { echo "$words: $output"; return 1; }
    [[ $output == *"asking NVML "*" as $expected"* ]] || { echo "$words: $output"; return 1; }
  done <<'ROWS'
|65534:65534
-u|0:0
--user|0:0
-u1:2|1:2
--user=daemon|1:1
--user=root:daemon|0:1
--user=7:|7:65534
ROWS
  run -0 "$build/sim/graft-sim" run -t t4 -- setpriv --reuid=12 --regid=34 --clear-groups "$cli" -d "$hosts/open/log" info
  grep -q 'using unprivileged user 12:34$' "$hosts/open/log"
  grep -q 'asking NVML .* as 12:34$' "$hosts/open/log"
}

@test "debug log: banner, form of each line, appended" {
  local log=$BATS_TEST_TMPDIR/log
  "$cli" -r "$hosts/dgx-h100" --debug="$log" list >/dev/null 2>&1
  [ "$(head -n 3 "$log")" = "
-- WARNING, the following logs are for debugging purposes only --" ]
  tail -n +4 "$log" | without -v '^[IWE][01][0-9][0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6} [0-9]+ [a-z0-9_]+\.c:[0-9]+\] .'
  [[ $(tail -n +4 "$log" | head -n 1) =~ \]\ initializing\ library\ context\ \(version=[0-9.]+,\ build=.+\)$ ]]
  local text
  while read -r text; do
    grep -qF "] $text" "$log" || { echo "no line '$text'"; return 1; }
  done <<ROWS
using root $hosts/dgx-h100
using ldcache /etc/ld.so.cache
requesting driver information with ''
requesting device information with ''
selecting /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14
missing library libnvidia-fatbinaryloader.so
missing compat32 library libcuda.so
selecting /usr/bin/nvidia-smi
listing device /dev/nvidiactl
listing device /dev/nvidia0 ($(fact dgx-h100 0000:1b:00.0 'GPU UUID') at 00000000:1b:00.0)
listing ipc path /run/nvidia-fabricmanager/socket
listing firmware path /lib/firmware/nvidia/550.54.14/gsp_ga10x.bin
ROWS
  local lines
  lines=$(wc -l <"$log")
  "$cli" -r "$hosts/dgx-h100" --debug="$log" list >/dev/null 2>&1
  [ "$(wc -l <"$log")" -eq $((2 * lines)) ]
}

@test "debug log: the variable, the option before it, a failure in it, a file that cannot be written" {
  local a=$BATS_TEST_TMPDIR/a b=$BATS_TEST_TMPDIR/b
  NVC_DEBUG_FILE=$a run -0 "$cli" -r "$hosts/t4" list
  [ -s "$a" ]
  rm "$a"
  NVC_DEBUG_FILE=$a run -0 "$cli" -r "$hosts/t4" -d "$b" list
  [ ! -e "$a" ]
  [ -s "$b" ]
  run -1 "$cli" -r "$hosts/mismatch" -d "$a" info
  grep -qE '^E.*\] initialization error: nvml error: driver/library version mismatch \[MISMATCH\]$' "$a"
  run -0 --separate-stderr "$cli" -r "$hosts/t4" -d /no/such/directory/log list
  [ "$(grep warning <<<"$stderr")" = "$name: warning: cannot log to /no/such/directory/log: no such file or directory" ] || { echo "$stderr"; return 1; }
  run -0 "$cli" -r "$hosts/t4" -d /dev/full list
  run -0 "$cli" -r "$hosts/t4" -d '' list
  NVC_DEBUG_FILE='' run -0 "$cli" -r "$hosts/t4" list
}

@test "closed standard descriptors: no file takes their place" {
  local log=$BATS_TEST_TMPDIR/log
  run bash -c 'exec "$@" <&- >&- 2>&-' - "$cli" -r "$hosts/t4" --timing -d "$log" list
  [ "$status" -eq 0 ]
  [ "$(grep -c '] selecting ' "$log")" -gt 5 ]
  tail -n +4 "$log" | without -v '^[IWE][0-9]{4} '
}

@test "set-user-ID: the caller chooses no file that is opened with our rights" {
  local dir
  dir=$(mktemp -d /tmp/graft-suid-XXXXXX)
  chmod 755 "$dir"
  cp "$cli" "$dir/cli"
  chmod 4755 "$dir/cli"
  as_nobody env NVC_DEBUG_FILE="$dir/variable" "$dir/cli" --root="$hosts/t4" list
  as_nobody "$dir/cli" --root="$hosts/t4" --debug="$dir/option" list
  [ "$(ls "$dir")" = cli ]
  rm -r "$dir"
}

@test "--timing: a line for each phase, on stderr" {
  on t4 --timing info
  [ "$status" -eq 0 ]
  [ "$(sed -nE "s/^$name: timing: ([a-z-]+) +[0-9]+ us, +[0-9]+ us since the start$/\1/p" <<<"$stderr" | tr '\n' ' ')" = "parse discover nvml report " ]
  on t4 --timing list
  [ "$(sed -nE "s/^$name: timing: ([a-z-]+) +[0-9]+ us, +[0-9]+ us since the start$/\1/p" <<<"$stderr" | tr '\n' ' ')" = "parse discover select report " ]
  on t4 list
  [[ $stderr != *timing* ]]
}

@test "plan: a tree, and JSON of the same" {
  on dgx-h100 plan -d 0 -cu
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "driver 550.54.14 (SIMULATED)" ]
  [[ $output == *"/dev/nvidia0"* ]]
  [[ $output != *"/dev/nvidia1"* ]]
  on dgx-h100 plan -d 0 -cu --json
  [ "$status" -eq 0 ]
  jq -e '.version == 1 and (.grants | length) == 1 and (.edits | length) > 20' <<<"$output"
}

@test "plan: the exit status tells the kind of failure" {
  on quad plan -d 9
  [ "$status" -eq 65 ]
  on quad plan -d 0 --require='cuda>=99.0'
  [ "$status" -eq 66 ]
  [ "${stderr_lines[0]}" = "$name: requirement error: unsatisfied condition: cuda>=99.0, please update your driver to a newer version, or use an earlier cuda container" ]
  on quad plan -d 0 --require='nonsense'
  [ "$status" -eq 66 ]
  [ "${stderr_lines[0]}" = "$name: requirement error: invalid expression" ]
  [ "${stderr_lines[1]}" = "$name: hint: 'nonsense' cannot be evaluated. Write it like 'cuda>=12.0,brand=tesla', or set NVIDIA_DISABLE_REQUIRE=true in the container." ]
  on half-installed plan -d 0
  [ "$status" -eq 68 ]
  on mismatch plan -d 0
  [ "$status" -eq 69 ]
  on quad plan -d 0 /no/such/directory
  [ "$status" -eq 72 ]
  [[ ${stderr_lines[0]} == "$name: container error: "* ]]
}

@test "plan: requirements ask NVML only when the answer depends on it" {
  "$build/sim/graft-sim" create -t quad --fault nvml-init-fail=999 "$BATS_TEST_TMPDIR/broken"
  local words
  for words in --require=cuda\>=12.0 --require=driver\>=535 '--require=cuda>=12.0 brand=none' --require=driver\<1,arch\>=9; do
    run --separate-stderr "$cli" -r "$BATS_TEST_TMPDIR/broken" plan -d 0 "$words"
    [[ $stderr != *"nvml error"* ]] || { echo "$words: $stderr"; return 1; }
  done
  run --separate-stderr "$cli" -r "$BATS_TEST_TMPDIR/broken" plan -d 0 --require=brand=tesla
  [ "$status" -eq 84 ]
  on quad plan -d 0 --require=brand=tesla
  [ "$status" -eq 66 ]
  on quad plan -d 0 --require=brand=nvidia,arch\>=8.0
  [ "$status" -eq 0 ]
}

@test "plan: does nothing, opens no node, runs nothing" {
  local trace=$BATS_TEST_TMPDIR/trace
  mkdir "$BATS_TEST_TMPDIR/rootfs"
  ASAN_OPTIONS=detect_leaks=0 strace -f -o "$trace" "$cli" -r "$hosts/dgx-h100" plan -d all -cu "$BATS_TEST_TMPDIR/rootfs" >/dev/null
  [ "$(grep -c execve "$trace")" -eq 1 ]
  # What reads the image gives up its rights by some of these.
  awk 'NR == FNR { if (/PR_SET_NAME, "graft-reader"/) reader[$1] = 1; next } !($1 in reader)' "$trace" "$trace" >"$trace.own"
  [ "$(grep -cE '(fork|clone3?)\(' "$trace.own")" -eq 1 ]
  without '(mount|mkdir|mknod|symlink|unlink|rename|chmod|chown|setns|unshare|O_WRONLY|O_RDWR|O_CREAT)' "$trace.own"
  without 'open.*"(/dev/)?nvidia[0-9c]' "$trace"
  [ -z "$(ls -A "$BATS_TEST_TMPDIR/rootfs")" ]
}

@test "plan: display nodes are those of the selected GPU, and others are not looked at" {
  local trace=$BATS_TEST_TMPDIR/trace style
  for style in namespace oci; do
    ASAN_OPTIONS=detect_leaks=0 strace -f -o "$trace" "$cli" -r "$hosts/dgx-h100" plan --all --style=$style -d 3 -g 2>/dev/null >"$BATS_TEST_TMPDIR/plan"
    [ "$(grep -c ' device .*/dev/dri/' "$BATS_TEST_TMPDIR/plan")" -eq 2 ]
    grep -q ' symlink .*/dev/dri/by-path/pci-0000:61:00.0-card -> ../card3' "$BATS_TEST_TMPDIR/plan"
    grep -q '0000:61:00.0/drm' "$trace"
    without '(1b|43|52|9d|c3|d1|df):00.0/drm|card[0124567]|renderD(12[89]|13[02-5])' "$trace"
  done
  ASAN_OPTIONS=detect_leaks=0 strace -f -o "$trace" "$cli" -r "$hosts/dgx-h100" plan -d 3 -cu >/dev/null 2>&1
  without '/drm|dri/(card|render|by-path)' "$trace"
}

@test "plan --style=oci: the host's paths, the runtime's nodes, nothing in procfs" {
  on geforce-laptop plan --all --style=oci -d 0 -cugvDn
  [ "$status" -eq 0 ]
  [ "$(uname -m)" = x86_64 ] || skip "paths are those of x86_64"
  [[ $output == *" bind      /usr/lib/x86_64-linux-gnu/libcuda.so.560.35.03"* ]]
  [[ $output == *" cgroup    c 195:0 rwm"* ]]
  [[ $output == *" cover     /proc/driver/nvidia/params"* ]]
  [[ $output == *" env       NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu"* ]]
  without '(tmpfs|bind) .*/proc/' <<<"$output"
  on a100-mig plan --style=oci -d 7 -cu
  [ "$status" -eq 65 ]
}

# at_terminal COMMAND...: runs it with a terminal for its output; what it printed goes to `output`, without carriage returns.
at_terminal() {
  local words
  printf -v words '%q ' "$@"
  run script -qec "$words" /dev/null </dev/null
  output=${output//$'\r'/}
}

@test "plan: what is missing comes first, then what the container gets, then what it does not" {
  local sim=("$build/sim/graft-sim" run --topology t4 --fault missing=libcuda.so.1 --fault missing=nvidia-uvm --)
  run --separate-stderr "${sim[@]}" "$cli" plan -d 0 -cu
  [ "$status" -eq 0 ]
  [ "${output%%  GPU 0*}" = "driver 418.226.00 (SIMULATED)

Missing:
  libcuda.so: the host's driver 418.226.00 does not have it; CUDA programs cannot start
  /dev/nvidia-uvm: the host does not have it; CUDA programs cannot start; run 'nvidia-modprobe -u -c 0' on the host

The container gets:
" ]
  [[ $output == *$'\n  5 programs: nvidia-smi, '*" and 1 more"$'\n'* ]]
  [[ $output == *$'\nLeft out:\n'*$'\n\nEvery edit, with its reason: --all' ]]
  # the same in the whole, and as data
  "${sim[@]}" "$cli" plan --all -d 0 -cu 2>/dev/null | sed -n 3,5p | diff - <(echo "missing: 2"; sed -n 4,5p <<<"$output")
  [ "$("${sim[@]}" "$cli" plan --json -d 0 -cu 2>/dev/null | jq -r '.missing[].what' | xargs)" = "libcuda.so /dev/nvidia-uvm" ]
}

@test "plan: a request for no device is reported" {
  on t4 plan -cu
  [ "$status" -eq 0 ]
  [[ $output == *$'\n\nMissing:\n  GPU: no device was asked for\n\n'* ]]
  [[ $output == *$'\n\nTo ask for a GPU: --device=all, or --device=0.\n\nEvery edit, with its reason: --all' ]]
  on t4 plan -d 0 -cu
  [[ $output != *Missing* && $output != *"To ask for"* ]]
}

@test "plan: a host whose driver lists no GPU" {
  local word
  no_gpu
  for word in all 0; do
    run --separate-stderr "$cli" -r "$BATS_TEST_TMPDIR/none" plan -d "$word" -cu
    [ "$status" -eq 0 ]
    [[ $output == *$'\n\nMissing:\n  GPU: the host\'s driver lists none\n\n'* && $output != *"To ask for"* ]]
  done
}

@test "plan, info: colours and lines on a terminal, unless NO_COLOR or TERM forbid them" {
  local escape=$'\e'
  at_terminal env LC_ALL=C.UTF-8 TERM=xterm "$cli" -r "$hosts/t4" plan -cu
  [[ $output == *"${escape}[31mMissing:${escape}[0m"$'\n'"└─ GPU: no device was asked for"$'\n'* ]]
  at_terminal env LC_ALL=C TERM=xterm "$cli" -r "$hosts/t4" plan -cu
  [[ $output == *"${escape}[31mMissing:${escape}[0m"$'\n'"  GPU: no device was asked for"$'\n'* ]]
  at_terminal env TERM=xterm "$cli" -r "$hosts/t4" info
  [[ $output == *"${escape}[36mNVRM version:${escape}[0m   418.226.00"$'\n'* ]]
  for words in NO_COLOR=1 TERM=dumb; do
    at_terminal env LC_ALL=C.UTF-8 TERM=xterm "$words" "$cli" -r "$hosts/t4" plan -cu
    [[ $output != *"$escape"* && $output == *$'\nMissing:\n  GPU: '* ]]
    at_terminal env TERM=xterm "$words" "$cli" -r "$hosts/t4" info
    [[ $output != *"$escape"* && $output == *"NVRM version:   418.226.00"$'\n'* ]]
  done
}

@test "info: at a terminal it says what it waits for, after a second" {
  local sim=("$build/sim/graft-sim" run --topology t4 --fault nvml-init-delay=1.5 --)
  at_terminal "${sim[@]}" "$cli" info
  [[ $output == *"$name: waiting for NVML, which wakes the GPUs: 1 s"$'\n'*"Device Index"* ]]
  run --separate-stderr "${sim[@]}" "$cli" info
  [[ $stderr != *waiting* ]]
}

@test "plan: what happened on one machine is seen on another" {
  local here=$BATS_TEST_TMPDIR
  mkdir -p "$here/rootfs/usr/lib" "$here/rootfs/etc"
  echo 12.5 >"$here/rootfs/etc/debian_version"
  "$cli" -r "$hosts/a100-mig" info --json >"$here/inventory" 2>/dev/null
  "$cli" plan --show=request -d 0,1:0 -cu --require='cuda>=12.0' >"$here/request"
  "$cli" plan --show=image "$here/rootfs" >"$here/image"
  on a100-mig plan --all -d 0,1:0 -cu --require='cuda>=12.0' "$here/rootfs"
  [ "$status" -eq 0 ]
  # UUIDs of MIG devices are in the inventory, and not asked for by the live plan: only the edits are the same
  local live
  live=$output
  run --separate-stderr "$cli" plan --all --inventory="$here/inventory" --request="$here/request" --image="$here/image"
  [ "$status" -eq 0 ]
  diff <(sed -n '/^edits/,/^$/p' <<<"$live") <(sed -n '/^edits/,/^$/p' <<<"$output")
  [ "$stderr" = "$simulated" ]
}

@test "plan: an inventory from a file is all there is" {
  "$cli" -r "$hosts/quad" plan --show=inventory 2>/dev/null >"$BATS_TEST_TMPDIR/inventory"
  run --separate-stderr "$cli" plan --inventory="$BATS_TEST_TMPDIR/inventory" -d 0 --require=brand=tesla
  [ "$status" -eq 84 ]
  [[ ${stderr_lines[0]} == "$name: initialization error: the inventory lacks the brands, which only NVML on the host reports" ]]
  sed -i 's/"version": 1,/"version": 2,/' "$BATS_TEST_TMPDIR/inventory"
  run --separate-stderr "$cli" plan --inventory="$BATS_TEST_TMPDIR/inventory" -d 0
  [ "$status" -eq 81 ]
}

@test "WSL2: its own nodes and files" {
  run --separate-stderr "$build/sim/graft-sim" run --topology wsl2 -- "$cli" list
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = /dev/dxg ]
  [[ $output != */dev/nvidia* ]]
}

@test "every simulated host says that it is one, and its output stays as it is" {
  local topology
  for topology in t4 wsl2 orin nixos rhel; do
    run --separate-stderr "$build/sim/graft-sim" run --topology $topology -- "$cli" list
    [ "$status" -eq 0 ]
    [ -n "$output" ]
    without -i simulated <<<"$output"
    [ "${stderr_lines[-1]}" = "$simulated" ] || { echo "$topology: $stderr"; return 1; }
  done
  on wsl2 list
  [ "$stderr" = "$simulated" ]
}

@test "info: says so where NVML counts differently" {
  local host=$BATS_TEST_TMPDIR/moved
  "$build/sim/graft-sim" create -t quad "$host"
  mv "$host/proc/driver/nvidia/gpus/0000:17:00.0" "$host/proc/driver/nvidia/gpus/0000:f7:00.0"
  sed -i 's/0000:17:/0000:f7:/' "$host/proc/driver/nvidia/gpus/0000:f7:00.0/information"
  run --separate-stderr "$cli" -r "$host" info --csv
  [ "$status" -eq 0 ]
  [[ ${lines[-1]} == 3,3,*00000000:f7:00.0,* ]]
  [[ $stderr == *"$name: warning: 00000000:17:00.0: NVML lists this GPU, procfs does not"* ]]
  [[ $stderr == *"$name: warning: 00000000:65:00.0: NVML lists it as GPU 1, by bus id it is GPU 0"* ]]
  on quad info
  [ "$stderr" = "$simulated" ]
}

@test "environment: PATH for programs, CUDA_MPS_PIPE_DIRECTORY for the pipe" {
  mkdir -p "$hosts/dgx-h100/opt/bin"
  cp "$hosts/dgx-h100/usr/bin/nvidia-smi" "$hosts/dgx-h100/opt/bin/"
  on dgx-h100 list -b
  [ "${lines[0]}" = /usr/bin/nvidia-smi ]
  run --separate-stderr env PATH=/nowhere:/opt/bin:/usr/bin "$cli" -r "$hosts/dgx-h100" list -b
  [ "${lines[0]}" = /opt/bin/nvidia-smi ]
  rm -r "$hosts/dgx-h100/opt"
  mkdir -p "$hosts/dgx-h100/var/mps"
  run -0 env CUDA_MPS_PIPE_DIRECTORY=/var/mps "$cli" -r "$hosts/dgx-h100" list -i
  [[ $output == */var/mps* ]]
  run -0 env NVC_INSECURE_MODE=1 "$cli" -r "$hosts/dgx-h100" list -b
}

@test "--ldcache is a file below the driver root" {
  mv "$hosts/t4/etc/ld.so.cache" "$hosts/t4/etc/other.cache"
  on t4 -l /etc/other.cache list -l
  local output_of_other=$output
  [ "$status" -eq 0 ]
  mv "$hosts/t4/etc/other.cache" "$hosts/t4/etc/ld.so.cache"
  on t4 list -l
  [ "$output" = "$output_of_other" ]
  echo nonsense >"$hosts/t4/etc/bad.cache"
  on t4 --ldcache=/etc/bad.cache list -l
  [ "$status" -eq 0 ] || [[ ${stderr_lines[0]} == "$name: detection error: unsupported file format: "* ]]
}

@test "--ldcache: one that cannot be used is a warning, with what to make of it; the default one is none" {
  local then="; searching the usual directories for libraries" command
  echo text >"$hosts/t4/etc/text"
  for command in "list --libraries" info "plan --compute /" ; do
    # shellcheck disable=SC2086
    on t4 --ldcache=/nothing $command
    [ "$status" -eq 0 ]
    # Devices alone need no cache.
    [ "$command" = info ] || grep -qFx "nvidia-container-cli: warning: open failed: /nothing: no such file or directory$then" <<<"$stderr"
  done
  on t4 --ldcache=/etc/text list --libraries
  [ "$stderr" = "$simulated
nvidia-container-cli: warning: unsupported file format: /etc/text$then" ]
  grep -q libcuda <<<"$output"
  on t4 --ldcache=/etc/ld.so.cache list --libraries
  [ "$stderr" = "$simulated" ]
  mv "$hosts/t4/etc/ld.so.cache" "$hosts/t4/etc/other.cache"
  on t4 list --libraries
  mv "$hosts/t4/etc/other.cache" "$hosts/t4/etc/ld.so.cache"
  [ "$stderr" = "$simulated" ]
}
