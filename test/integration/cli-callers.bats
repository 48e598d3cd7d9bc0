# SPDX-License-Identifier: Apache-2.0
# The command line exactly as other programs call it: the container toolkit's hook, containerd, LXC,
# LXD, Apptainer, Singularity; and its errors. (enroot: enroot.bats.) The containers are a small
# root below a mount namespace of their own, on a simulated host.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup_file() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  build=${GRAFT_BUILD:-$top/build-debug}
  cli=$build/src/cli/nvidia-container-cli
  name=nvidia-container-cli
  base=$("$top/test/tools/roots" small | tail -n 1)
  export top build cli name base
}

setup() {
  root=$BATS_TEST_TMPDIR/root
  log=$BATS_TEST_TMPDIR/log
  export root log
}

# Shell functions for the inside of the simulated host.
prelude='
set -u
# A container root of its own, owned by whoever we are here; /proc is ours.
make_root() {
  cp -a "$base" "$root" && mount --bind "$root" "$root" && mount --rbind /proc "$root/proc" && mount -t tmpfs tmpfs "$root/dev"
}
mounts() { grep -F " $root/" /proc/self/mountinfo | cut -d " " -f 4-6 | sort; }
seen() { chroot "$root" nvidia-smi -L 2>/dev/null; }
'

# host COMMANDS: runs them by bash on a simulated host ($topology, else a DGX H100), in a mount namespace.
host() {
  run --separate-stderr timeout 60 "$build/sim/graft-sim" run -t "${topology:-dgx-h100}" -- unshare -m --propagation private bash -c "$prelude$1"
}

# host_rootless COMMANDS: the same in a user namespace where we are root.
host_rootless() {
  run --separate-stderr timeout 60 "$build/sim/graft-sim" run -t dgx-h100 -- \
    unshare --user --map-root-user -m --propagation private bash -c "$prelude$1"
}

# without PATTERN: no line of stdin matches.
without() {
  if grep -nE -- "$@"; then return 1; fi
}

gpu_lines() {
  grep -c '^GPU [0-9]: NVIDIA H100' <<<"$output"
}

@test "LXC: mount hook of an unprivileged container" {
  host_rootless 'make_root && "$cli" --debug="$log" --user configure --no-cgroups --ldconfig=@/sbin/ldconfig.real --device=0,3 --utility "$root" && seen'
  [ "$status" -eq 0 ] || { echo "$stderr"; cat "$log"; return 1; }
  [ "$(gpu_lines)" -eq 2 ]
  grep -q "configuring container with 'standalone no-cgroups utility'" "$log"
}

@test "LXC: all devices, all capabilities in its order, a requirement, no driver root" {
  host_rootless 'make_root && "$cli" --user configure --no-cgroups --ldconfig=@/sbin/ldconfig --device=all --compute --compat32 --display --graphics --utility --video "--require=cuda>=12.0 brand=tesla,driver>=418" "$root" && seen'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [ "$(gpu_lines)" -eq 8 ]
}

# What Apptainer hands on with the program that it runs as a user whom it has made root, or not.
apptainer='
run_as() { setpriv "$@" --inh-caps="$caps" --ambient-caps="$caps" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$cli" configure --no-cgroups "${words[@]}" --ldconfig=@/sbin/ldconfig "$root"; }
'

@test "Apptainer: twelve ambient capabilities, its order of words; as root, as an ordinary user, and as one and the other" {
  local who
  local caps=+kill,+setuid,+setgid,+sys_chroot,+chown,+fowner,+mknod,+sys_admin,+dac_read_search,+sys_ptrace,+dac_override,+setpcap
  for who in '' '--reuid 65534 --regid 65534 --clear-groups' '--ruid 65534' '--euid 65534'; do
    rm -rf "$root"
    who=$who caps=$caps host "$apptainer"'make_root; words=(--device=2 --compute --utility "--require=cuda>=12.0"); run_as $who && seen; grep -l libcuda.so.1 "$root/etc/ld.so.cache"'
    [ "$status" -eq 0 ] || { echo "$who: $stderr"; return 1; }
    [ "$(gpu_lines)" -eq 1 ] || { echo "$who: $output"; return 1; }
    grep -qx "$root/etc/ld.so.cache" <<<"$output" || { echo "$who: $output"; return 1; }
  done
  # One less is too few.
  rm -rf "$root"
  caps=${caps/,+sys_ptrace/} host "$apptainer"'make_root; words=(--device=2 --utility); run_as --reuid 65534 --regid 65534 --clear-groups'
  [ "$status" -eq 1 ]
  [[ $stderr == *"$name: permission error: capability change failed: operation not permitted"* ]]
}

@test "Apptainer: a user namespace; the parts of GPUs and the right to watch them" {
  host_rootless 'make_root && "$cli" --user configure --no-cgroups --device=2 --utility --compute "--require=cuda>=12.0" --ldconfig=@/sbin/ldconfig "$root" && seen'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [ "$(gpu_lines)" -eq 1 ]
  rm -rf "$root"
  topology=a100-mig host 'make_root && "$cli" configure --no-cgroups --device=1 --mig-config=all --mig-monitor=all --compute --utility --ldconfig=@/sbin/ldconfig "$root" &&
    chroot "$root" find /proc/driver/nvidia/capabilities/mig -type f'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [ "$(sort <<<"$output" | tr '\n' ' ')" = "/proc/driver/nvidia/capabilities/mig/config /proc/driver/nvidia/capabilities/mig/monitor " ] || { echo "$output"; return 1; }
}

@test "LXD, Incus: info --csv, two tables between which is an empty line; a container's GPU by the old name of a part" {
  host '"$cli" info --csv 2>/dev/null | python3 -c "
import csv, sys
tables = [list(csv.DictReader(text.splitlines())) for text in sys.stdin.read().split(chr(10) * 2)]
assert len(tables) == 2 and len(tables[0]) == 1, tables
print(tables[0][0][\"NVRM version\"], tables[0][0][\"CUDA version\"])
for gpu in tables[1]:
    assert None not in gpu and None not in gpu.values(), gpu
    print(*(gpu[name] for name in (\"Device Index\", \"Device Minor\", \"Model\", \"Brand\", \"Architecture\")), gpu[\"GPU UUID\"][:4], gpu[\"Bus Location\"][:9])
"'
  [ "$status" -eq 0 ] || { echo "$output $stderr"; return 1; }
  [ "${lines[0]}" = "550.54.14 12.4" ]
  [ "${lines[8]}" = "7 7 NVIDIA H100 80GB HBM3 Nvidia 9.0 GPU- 00000000:" ] || { echo "$output"; return 1; }
  [ "${#lines[@]}" -eq 9 ]
  # No driver: a status by which they know that there is no GPU, and nothing to parse.
  topology=no-driver host '"$cli" info --csv'
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  # What LXD writes into NVIDIA_VISIBLE_DEVICES for a part of a GPU of an older driver.
  topology=a100-mig host 'make_root; uuid=$(sed -n "s/^GPU UUID:[ \t]*//p" /proc/driver/nvidia/gpus/*/information | sed -n 2p)
    part=$(find /proc/driver/nvidia/capabilities/gpu1/mig -name "ci*" | sort | head -n 1); gi=${part%/ci*}
    "$cli" --user configure --no-cgroups --ldconfig=@/sbin/ldconfig.real --device="MIG-$uuid/${gi##*gi}/${part##*ci}" --utility "$root" && find "$root$part"'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [[ $output == *"/mig/gi"*"/ci"*"/access"* ]] || { echo "$output"; return 1; }
}

@test "old Singularity: list -cguv names what it then looks up by ldconfig -p and PATH, and binds" {
  host 'make_root && mount --rbind /dev "$root/dev" && mkdir -p "$root/.singularity.d/libs" "$root/.singularity.d/bin"
    bind() { [ -e "$2" ] || { : >"$2" && mount --bind "$1" "$2"; }; }
    "$cli" list -cguv 2>/dev/null >"$log" || exit
    while read -r path; do
      [[ $path == /* && -e $path ]] || { echo "not there: $path"; exit 1; }
      name=${path##*/}
      case $path in
      *.so*)
        ldconfig -p | sed -n "s|.*x86-64.* => \(.*/${name%%.so*}\.so.*\)|\1|p" | while read -r library; do
          bind "$library" "$root/.singularity.d/libs/${library##*/}"
        done
        ;;
      /usr/bin/*) bind "$(command -v "$name")" "$root/.singularity.d/bin/$name" ;;
      esac
    done <"$log"
    ls "$root/.singularity.d/libs"
    chroot "$root" env PATH="$PATH:/.singularity.d/bin" LD_LIBRARY_PATH=/.singularity.d/libs nvidia-smi -L'
  [ "$status" -eq 0 ] || { echo "$output $stderr"; return 1; }
  [ "$(gpu_lines)" -eq 8 ] || { echo "$output"; return 1; }
  local library
  for library in libcuda.so.1 libnvidia-ml.so.1 libGLX_nvidia.so.0 libnvcuvid.so.1; do
    grep -qx "$library" <<<"$output" || { echo "no $library: $output"; return 1; }
  done
}

# A container that is another process, with its own mount namespace and root.
supervised='
make_root
mkfifo "$root/go"
unshare -m --propagation private bash -c "echo \$\$ >$root/pid; read -r _ <$root/go; exec chroot $root nvidia-smi -L" >"$root/out" 2>/dev/null &
until [ -s "$root/pid" ]; do sleep 0.02; done
pid=$(cat "$root/pid")
finish() { echo go >"$root/go"; wait; cat "$root/out"; }
'

@test "containerd: prestart hook, device list, no ldconfig" {
  host "$supervised"'"$cli" --load-kmods configure --device=0,1 --compute --utility "--require=cuda>=12.0" --no-cgroups --pid=$pid "$root"; rc=$?; finish; exit $rc'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [ "$(gpu_lines)" -eq 2 ]
}

@test "the container toolkit's hook, with every argument that it can pass" {
  topology=gb200 host "$supervised"'"$cli" --root=/ --load-kmods --no-create-imex-channels --no-pivot --debug="$log" --ldcache=/etc/ld.so.cache --user=root:root configure --cuda-compat-mode=ldconfig --ldconfig=@/sbin/ldconfig.real --no-cgroups --device=3 --imex-channel=0 --compute --compat32 --graphics --utility --video --display --ngx "--require=cuda>=12.0" "--require=brand=tesla brand=nvidia" --pid=$pid "$root"; rc=$?; echo go >"$root/go"; wait; exit $rc'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  grep -q "setting pid to [0-9]" "$log"
  grep -q "setting rootfs to $root" "$log"
  grep -q "setting mount namespace to /proc/[0-9]*/ns/mnt" "$log"
  grep -q "mounting /dev/nvidia-caps-imex-channels/channel0 at $root/dev/nvidia-caps-imex-channels/channel0" "$log"
  grep -q "using IMEX channel 0" "$log"
  grep -q "using unprivileged user 0:0" "$log"
}

@test "older hooks: --no-cntlibs; older callers: ldconfig in the container" {
  host "$supervised"'"$cli" configure --no-cntlibs --ldconfig=/sbin/ldconfig --no-cgroups --device=5 --utility --pid=$pid "$root"; rc=$?; finish; exit $rc'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [ "$(gpu_lines)" -eq 1 ]
}

@test "a missing ldconfig, or a directory in its place, is no error: none is run" {
  local program
  for program in @/no/such/program /no/such/program @/tmp ''; do
    program=$program host 'make_root && ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=execve -o "$log" "$cli" configure --ldconfig="$program" --no-cgroups --device=0 --utility "$root"; echo "rc $?"; grep -c execve "$log"'
    [ "$output" = "rc 0
1" ] || { echo "$output $stderr"; return 1; }
    rm -rf "$root"
  done
}

@test "people: -k -d /dev/stderr info" {
  host '"$cli" -k -d /dev/stderr info'
  [ "$status" -eq 0 ]
  [[ $output == "NVRM version:   550.54.14"* ]]
  [[ $stderr == *"] initializing library context"* ]]
}

@test "configure wakes no GPU and runs nothing" {
  host 'make_root && ASAN_OPTIONS=detect_leaks=0 strace -f -o "$log" "$cli" configure --no-cgroups --device=0 --compute --utility "$root"'
  [ "$status" -eq 0 ]
  [ "$(grep -c execve "$log")" -eq 1 ]
  [ "$(grep -cE '(fork|clone3?)\(' "$log")" -eq "$(grep -c 'PR_SET_NAME, "graft-reader"' "$log")" ]
  # nodes are opened as places (O_PATH), and mount points made (O_CREAT | O_EXCL), but no device is opened
  [ "$(grep -cE 'open(at|at2|_tree)?\(.*nvidia(ctl|[0-9]|-uvm)' "$log")" -gt 3 ]
  grep -E 'open(at|at2)?\(.*nvidia(ctl|[0-9]|-uvm)' "$log" | without -v 'O_PATH|O_EXCL'
}

@test "each step fails with its prefix, and nothing is left behind" {
  local words text
  while IFS='|' read -r words text; do
    rm -rf "$root"
    words=$words host 'make_root; before=$(mounts; find "$root" -xdev | sort); eval "\"$cli\" configure --no-cgroups $words"; rc=$?
      after=$(mounts; find "$root" -xdev | sort); [ "$before" = "$after" ] || echo "changed"; exit $rc'
    [ "$status" -eq 1 ] || { echo "$words: status $status"; return 1; }
    [ -z "$output" ] || { echo "$words: $output"; return 1; }
    # the first line of graft-sim stands before ours
    # shellcheck disable=SC2053
    [[ ${stderr_lines[1]} == "$name: "$text ]] || { echo "$words: $stderr"; return 1; }
    [[ ${stderr_lines[2]} == "$name: hint: "* ]]
  done <<'ROWS'
-d 8 $root|device error: 8: unknown device
-d 0,x $root|device error: x: unknown device
-d 0 --require=cuda\>=99 $root|requirement error: unsatisfied condition: cuda>=99, please update your driver to a newer version, or use an earlier cuda container
-d 0 --require=brand=tesla $root|requirement error: unsatisfied condition: brand=tesla
-d 0 --require=x=1 $root|requirement error: invalid expression
-d 0 --imex-channel=y $root|error parsing IMEX info: unsupported IMEX channel value: y
-d 0 --imex-channel=7 $root|mount error: stat failed: /dev/nvidia-caps-imex-channels/channel7: no such file or directory
-d 0 --pid=y $root|input error: parse pid failed: invalid argument
-d 0 --pid=4194304 $root|container error: *
-d 0 /no/such/root|container error: *no such file or directory
-d 0 relative|input error: invalid rootfs directory
-d 0 /|input error: invalid rootfs directory
ROWS
}

@test "a root that cannot be written: mount error, nothing is left behind" {
  host 'make_root; mount -o remount,bind,ro "$root"; before=$(mounts); "$cli" configure --no-cgroups -d 0 -u "$root"; rc=$?
    [ "$before" = "$(mounts)" ] || echo changed; exit $rc'
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [[ ${stderr_lines[1]} == "$name: mount error: "*"read-only file system" ]] || { echo "$stderr"; return 1; }
}

@test "no device asked for: no GPU, but the driver's files" {
  host 'make_root && "$cli" configure --no-cgroups --utility "$root"; echo "rc $?"; ls "$root/dev"; ls "$root/usr/bin/nvidia-smi"'
  [ "$output" = "rc 0
nvidiactl
$root/usr/bin/nvidia-smi" ] || { echo "$output"; return 1; }
}

@test "--timing of configure: its phases, in order" {
  host 'make_root && "$cli" --timing configure --no-cgroups -d 0 -u "$root"'
  [ "$status" -eq 0 ]
  [ "$(sed -nE "s/^$name: timing: ([a-z-]+) .*/\1/p" <<<"$stderr" | tr '\n' ' ')" = "parse discover select container image plan mount ldcache " ]
}

@test "what plan prints is what configure does" {
  host 'make_root; "$cli" plan --json -d 1 -cu "$root" 2>/dev/null >"$log"; "$cli" configure --no-cgroups -d 1 -cu "$root"; mounts | cut -d " " -f 2 | sort -u'
  [ "$status" -eq 0 ]
  local target
  while read -r target; do
    grep -qxF "$root$target" <<<"$output" || { echo "planned, not there: $target"; return 1; }
  done < <(jq -r '.edits[] | select(.kind == "bind" or .kind == "device" or .kind == "tmpfs") | .target' "$log")
  while read -r target; do
    target=${target#"$root"}
    case $target in /proc | /dev | /proc/*) continue ;; esac
    jq -e --arg t "$target" 'any(.edits[]; .target == $t)' "$log" >/dev/null || { echo "there, not planned: $target"; return 1; }
  done <<<"$output"
}

@test "a device cgroup that is not ours to change is skipped, unless it is asked for" {
  host_rootless 'make_root && "$cli" --debug="$log" --user configure --device=0 --utility "$root" && seen'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [ "$(gpu_lines)" -eq 1 ]
  [ "$(grep -ci 'cgroup' "$log")" -ge 1 ]
  # without nodes the rights are still looked after
  rm -rf "$root" "$log"
  host_rootless 'make_root && "$cli" --debug="$log" --user configure --no-devbind --device=0 --utility "$root" && ls "$root/dev"'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [ -z "$output" ]
  [ "$(grep -ci 'cgroup' "$log")" -ge 1 ]
  rm -rf "$root" "$log"
  host_rootless 'make_root && "$cli" --debug="$log" --user configure --no-cgroups --device=0 --utility "$root"'
  [ "$status" -eq 0 ]
  [ "$(grep -i 'cgroup' "$log" | grep -vc 'configuring container with')" -eq 0 ]
  rm -rf "$root"
  host_rootless 'make_root && before=$(mounts) && "$cli" --user configure --force-cgroups --device=0 --utility "$root"; rc=$?; [ "$before" = "$(mounts)" ] || echo changed; exit $rc'
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  # finding the cgroup is part of the container, writing its rules part of the mounts
  [[ ${stderr_lines[1]} == "$name: container error: "* || ${stderr_lines[1]} == "$name: mount error: "* ]] ||
    { echo "$stderr"; return 1; }
}

# Words for bubblewrap from a plan on stdin; files are written below $1.
bubblewrap_words='
bubblewrap_words() {
  jq -r --arg dir "$1" "$(cat <<"JQ"
.edits | to_entries[] | .value + {file: ($dir + "/" + (.key | tostring))} |
if .kind == "bind" then "--ro-bind\n\(.source)\n\(.target)"
elif .kind == "device" then "--dev-bind\n\(.source)\n\(.target)"
elif .kind == "directory" then "--dir\n\(.target)"
elif .kind == "tmpfs" then "--tmpfs\n\(.target)"
elif .kind == "symlink" then "--symlink\n\(.content)\n\(.target)"
elif .kind == "file" then "--ro-bind\n\(.file)\n\(.target)"
elif .kind == "env" then "--setenv\n\(.target)\n\(.content)"
elif .kind == "ldcache" then "--setenv\nLD_LIBRARY_PATH\n\(.folders | join(":"))"
elif .kind == "cgroup" then empty
else error("a kind of edit that bubblewrap does not know: \(.kind)") end
JQ
)"
}
write_files() {
  jq -c --arg dir "$1" ".edits | to_entries[] | select(.value.kind == \"file\") | {file: (\$dir + \"/\" + (.key | tostring)), content: .value.content}" |
    while IFS= read -r line; do jq -rj .content <<<"$line" >"$(jq -r .file <<<"$line")"; done
}
'

@test "list --json is enough for bubblewrap to do the work itself" {
  host "$bubblewrap_words"'cp -a "$base" "$root" && mkdir "$log.d" && "$cli" list --json -d 2,5 -lbi 2>/dev/null >"$log" &&
    write_files "$log.d" <"$log" && mapfile -t words < <(bubblewrap_words "$log.d" <"$log") && [ ${#words[@]} -gt 50 ] &&
    bwrap --bind "$root" / --bind /proc /proc --dev /dev "${words[@]}" -- sh -c "nvidia-smi -L; ls /proc/driver/nvidia/gpus; ls /dev | grep nvidia; grep ModifyDeviceFiles /proc/driver/nvidia/params"'
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
  [ "$(gpu_lines)" -eq 2 ]
  [ "$(tail -n +3 <<<"$output")" = "0000:52:00.0
0000:c3:00.0
nvidia-modeset
nvidia-uvm
nvidia-uvm-tools
nvidia2
nvidia5
nvidiactl
ModifyDeviceFiles: 0" ] || { echo "$output"; return 1; }
}

# The driver's table has 135 possible instances of each of 32 GPUs.
@test "--load-kmods looks for MIG instances only on GPUs that have some" {
  local driver=$BATS_TEST_TMPDIR/driver gpu gi ci minor=3 table=$BATS_TEST_TMPDIR/table
  mkdir -p "$driver"/{dev,proc/driver/{nvidia,nvidia-caps}}
  printf '%s 1 0 - Live 0x0\n' nvidia nvidia_uvm nvidia_modeset >"$driver/proc/modules"
  printf 'Character devices:\n195 nvidia\n234 nvidia-caps\n510 nvidia-uvm\n\nBlock devices:\n' >"$driver/proc/devices"
  printf 'ModifyDeviceFiles: 1\n' >"$driver/proc/driver/nvidia/params"
  for gpu in {0..31}; do
    for gi in {0..14}; do
      echo "gpu$gpu/gi$gi/access $((minor++))"
      for ci in {0..7}; do echo "gpu$gpu/gi$gi/ci$ci/access $((minor++))"; done
    done
  done >"$table"
  printf 'config 1\nmonitor 2\n' | cat - "$table" >"$driver/proc/driver/nvidia-caps/mig-minors"
  for gpu in {0..7}; do
    mkdir -p "$driver/sys/bus/pci/devices/0000:0$gpu:00.0" "$driver/proc/driver/nvidia/capabilities/gpu$gpu/mig"
    echo 0x10de >"$driver/sys/bus/pci/devices/0000:0$gpu:00.0/vendor"
    echo 0x030200 >"$driver/sys/bus/pci/devices/0000:0$gpu:00.0/class"
  done
  mkdir -p "$driver/proc/driver/nvidia/capabilities/gpu5/mig/gi7/ci0"
  printf 'DeviceFileMinor: 0\nDeviceFileMode: 292\nDeviceFileModify: 1\n' |
    tee "$driver/proc/driver/nvidia/capabilities/gpu5/mig/gi7/access" >"$driver/proc/driver/nvidia/capabilities/gpu5/mig/gi7/ci0/access"
  # There is no library of a driver: it fails after that.
  run strace -f -e trace=openat2 -o "$BATS_TEST_TMPDIR/trace" "$cli" --root="$driver" --load-kmods info
  for ci in gi7 gi7/ci0; do
    minor=$(sed -n "s,^gpu5/$ci/access ,,p" "$table")
    [ "$(stat -c %a:%t:%T "$driver/dev/nvidia-caps/nvidia-cap$minor")" = "444:$(printf 'ea:%x' "$minor")" ]
  done
  [ "$(find "$driver/dev/nvidia-caps" -type c | wc -l)" -eq 2 ]
  [ -c "$driver/dev/nvidia7" ]
  grep -c capabilities/gpu "$BATS_TEST_TMPDIR/trace"
  [ "$(grep -c 'capabilities/gpu5/' "$BATS_TEST_TMPDIR/trace")" -lt 300 ]
  [ "$(grep -c 'capabilities/gpu[0-46-9]' "$BATS_TEST_TMPDIR/trace")" -le 14 ]
}
