# SPDX-License-Identifier: Apache-2.0
# nvidia-container-runtime, if an engine makes `create` write the container's process ID: work in
# the container's mounts is done between `create` and `start`, and config.json gets no hook for it
# (docs/decisions/0023-after-create.md).

load lib.bash

setup_file() {
  start_host dgx-h100
  install_cli runtime/nvidia-container-runtime cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  low_level runc
}
teardown() { test_teardown; }

low_level() {
  printf '[nvidia-container-runtime]\nlog-level = "debug"\ndebug = "%s"\nruntimes = ["%s"]\nmode = "%s"\nmodes.cdi.spec-dirs = ["%s"]\n[graft]\nlate-mounts = %s\n' \
    "$work/runtime.log" "$1" "${mode:-auto}" "$work/cdi" "${late:-false}" >"$work/config.toml"
}

# make_asking_bundle FILTER...: GPU 0, and a program that prints what it sees. Only a procfs of the
# simulated host shows the driver's procfs.
make_asking_bundle() {
  ! on_host mountpoint --quiet "$root" || on_host umount --lazy "$root"
  make_root small overlay
  rm -rf "$bundle"
  new_bundle
  edit_bundle --arg root "$root" --arg id "$container" "$(piped '.process.terminal = false | .process.args = ["/asks"] | del(.process.rlimits) |
    .root = {path: $root, readonly: false} | .linux.cgroupsPath = "/" + $id | .process.env += ["NVIDIA_VISIBLE_DEVICES=0"] |
    .mounts |= map(if .destination == "/proc" then {destination: "/proc", source: "/proc", type: "bind", options: ["rbind"]} else . end)' "$@")"
  cat >"$work/asks" <<'SH'
#!/bin/sh
/probe
grep ModifyDeviceFiles /proc/driver/nvidia/params
echo "params: $(stat -c '%a' /proc/driver/nvidia/params) $(sed -n 's|.* /proc/driver/nvidia/params \([^ ]*\) .*|\1|p' /proc/self/mountinfo)"
echo "mounts-on-driver: $(grep -c ' /proc/driver' /proc/self/mountinfo)"
echo "link: $(readlink /dev/dri/by-path/pci-0000:1b:00.0-card)"
SH
  on_host install -m 0755 "$work/asks" "$root/asks"
}

with_pid=(--pid-file PID)
# create WORLD [WORD...]: through the shim, before which the words are put.
create() {
  local world=$1
  shift
  "$world" "$@" "${old_kernel[@]}" "$runtime" --root "$state" --log "$work/log.json" --log-format json \
    create --bundle "$bundle" "${with_pid[@]/PID/$work/pid}" "$container" </dev/null >"$work/out" 2>&1 3>&- 4>&-
}

# The message that containerd's shim finds.
last_error() { jq --slurp --raw-output 'map(select(.level == "error")) | last | .msg' "$1"; }
created() { create "$@" || die "$(cat "$work/out" "$work/runtime.log")"; }
hooks() { jq -c '[.hooks // {} | .[][].args[1]]' "$bundle/config.json"; }

# works WORLD HOOKS: the container has these hooks, and sees what it should.
works() {
  [ "$(hooks)" = "$2" ] || die "$(hooks)" || return
  run_created "$1" runc --root "$state"
  expect nvidia-smi 1
  expect ModifyDeviceFiles 0
  expect params "444 ro,nosuid,nodev,noexec,relatime"
  expect mounts-on-driver "$covers"
  expect link ../card0
}
setup_covers() { covers=$(($(on_host grep -c ' /proc/driver' /proc/self/mountinfo) + 1)); }

# waits WORLD LOW-LEVEL-RUNTIME
waits() {
  local pid
  setup_covers
  low_level "$2"
  make_asking_bundle
  host_state >"$work/before"
  created "$1"
  pid=$(cat "$work/pid")
  [ "$("$1" "$2" --root "$state" state "$container" | jq -r '.status, .pid' | xargs)" = "created $pid" ]
  # It is done before the container can be started.
  grep -qx 'ModifyDeviceFiles: 0' "/proc/$pid/root/proc/driver/nvidia/params"
  [ "$(readlink "/proc/$pid/root/dev/dri/by-path/pci-0000:1b:00.0-card")" = ../card0 ]
  [ "$(hooks)" = '[]' ]
  grep -q "calling '.*/$2'" "$work/runtime.log"
  run_created "$1" "$2" --root "$state"
  expect nvidia-smi 1
  expect ModifyDeviceFiles 0
  expect params "444 ro,nosuid,nodev,noexec,relatime"
  expect mounts-on-driver "$covers"
  expect link ../card0
  host_state | diff "$work/before" -
}

# bats test_tags=old-kernel
@test "runc, cgroup v1: what needs the container's mounts is there before its start, without a hook" { waits on_host runc; }
# bats test_tags=old-kernel
@test "runc, cgroup v2: what needs the container's mounts is there before its start, without a hook" { waits v2 runc; }
# bats test_tags=old-kernel
@test "crun, cgroup v2: what needs the container's mounts is there before its start, without a hook" { waits v2_raising crun; }
# bats test_tags=old-kernel
@test "crun, cgroup v1: what needs the container's mounts is there before its start, without a hook" { waits v1_alone crun; }

# bats test_tags=old-kernel
@test "a root that is read-only is none for what waits" {
  setup_covers
  make_asking_bundle '.root.readonly = true' '.linux.readonlyPaths += ["/proc/driver"]'
  created on_host
  # A path that is made read-only is a mount, too.
  covers=$((covers * 2 - 1))
  [ "$(hooks)" = '[]' ]
  run_created on_host runc --root "$state"
  expect nvidia-smi 1
  expect ModifyDeviceFiles 0
  expect link ../card0
}

# bats test_tags=old-kernel
@test "what is made belongs to root, whoever the container's user is" {
  local low pid
  for low in runc crun; do
    low_level "$low"
    make_asking_bundle '.process.user = {uid: 1000, gid: 1000}'
    created v2_raising
    pid=$(cat "$work/pid")
    [ "$(hooks)" = '[]' ]
    [ "$(stat -c %u "/proc/$pid")" = 1000 ]
    run stat -c '%u:%g' "/proc/$pid/root/"{proc/driver/nvidia/params,dev/dri/by-path,dev/dri/by-path/pci-0000:1b:00.0-card}
    [ "$(sort -u <<<"$output")" = 0:0 ] || die "$output" || return
    v2_raising "$low" --root "$state" delete --force "$container"
  done
}

# A hook is left: FILTER... make the difference; `with_pid`, `low_level` and `world` may make it, too.
hook_stays() {
  setup_covers
  make_asking_bundle "$@"
  created "${world:-on_host}"
  works on_host '["apply"]'
}

@test "without a process ID, a hook does it" {
  with_pid=()
  hook_stays
}

@test "with an unknown option on the command line, a hook does it" {
  with_pid=(--pid-file PID --no-such-thing)
  make_asking_bundle
  run create on_host
  [ "$status" -ne 0 ]
  grep -q 'no-such-thing' "$work/out"
  [ "$(hooks)" = '["apply"]' ]
}

# bats test_tags=old-kernel
@test "where /dev is read-only, is the host's, or the mounts are another container's, a hook does it" {
  hook_stays '(.mounts[] | select(.destination == "/dev")).options += ["ro"]'
  # Not the machine's own, which would keep what the low-level runtime mounts there.
  make_asking_bundle
  # shellcheck disable=SC2016
  on_host unshare --mount --propagation private sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 60' "$work/other" </dev/null >"$work/sleep" 2>&1 3>&- 4>&- &
  within 5 test -e "$work/other"
  other=$(cat "$work/other")
  edit_bundle --arg path "/proc/$other/ns/mnt" '(.linux.namespaces[] | select(.type == "mount")).path = $path'
  created on_host
  on_host runc --root "$state" delete --force "$container"
  kill "$other"
  [ "$(hooks)" = '["apply"]' ]
}

# hook_does FILTER...: a hook is left, and the container is what it is where no process ID is told. `in_image`: commands in its root.
hook_does() {
  local pid before
  for pid in "" "$work/pid"; do
    with_pid=(${pid:+--pid-file "$pid"})
    make_asking_bundle "$@"
    on_host sh -c "cd '$root' && ${in_image:-:}"
    created on_host
    [ "$(hooks)" = '["apply"]' ] || die "$*: $(hooks)" || return
    run_created on_host runc --root "$state"
    before=${before:-$output}
    [ "$output" = "$before" ] || die "$*: $output" || return
  done
}

@test "where a mask or a list makes a difference between the hook and later, a hook does it" {
  local path
  for path in /proc/driver //proc/driver/nvidia/params /dev/dri //dev/dri/by-path; do
    hook_does ".linux.maskedPaths += [\"$path\"]"
  done
  for path in /dev /dev/dri/; do
    hook_does ".linux.readonlyPaths += [\"$path\"]"
  done
  expect link ../card0
}

# bats test_tags=old-kernel
@test "where a volume is at the place of the links, a hook finds it and makes none" {
  local path in_image='mkdir -p dev/dri'
  mkdir "$work/volume"
  for path in /dev/dri dev/dri/ /dev/dri/by-path /dev/./dri; do
    hook_does ".mounts += [{destination: \"$path\", source: \"$work/volume\", type: \"bind\", options: [\"rbind\", \"rw\"]}]"
  done
  hook_does '.mounts += [{destination: "/dev/dri/by-path", source: "tmpfs", type: "tmpfs", options: ["ro"]}]'
  expect link ""
  [ -z "$(find "$work/volume" -type l)" ]
}

# Before Linux 5.2 the edits themselves read it.
@test "how much the host has mounted makes no difference: its table of mounts is not read" {
  make_asking_bundle
  created on_host strace -o "$work/trace" -e trace=open,openat,openat2
  [ "$(hooks)" = '[]' ]
  run_created on_host runc --root "$state"
  expect link ../card0
  grep -q '"dev"' "$work/trace"
  ! grep mountinfo "$work/trace" || die "it was read"
}

@test "where the pid file's name is relative or it is no plain file, a hook does it" {
  local low got reader
  cd "$work"
  for low in runc crun; do
    low_level "$low"
    with_pid=(--pid-file some.pid)
    make_asking_bundle
    created v2_raising
    [ "$(hooks)" = '["apply"]' ]
    v2_raising "$low" --root "$state" delete --force "$container"
  done
  # crun writes into what is there. It is the caller's to read.
  mkfifo "$work/pid"
  with_pid=(--pid-file PID)
  make_asking_bundle
  timeout 60 cat "$work/pid" >"$work/got" 3>&- 4>&- &
  reader=$!
  created v2_raising
  wait "$reader"
  got=$(cat "$work/got")
  [ "$(hooks)" = '["apply"]' ]
  [ "$got" = "$(v2_raising crun --root "$state" state "$container" | jq .pid)" ]
  v2_raising crun --root "$state" delete --force "$container"
}

# bats test_tags=old-kernel
@test "in a PID namespace that sees the /proc of another one, a hook does it" {
  elsewhere() { v2_raising unshare --pid --fork "$@"; }
  low_level crun
  make_asking_bundle
  # The container ends with the first process of the namespace, which is the shim.
  created elsewhere
  [ "$(hooks)" = '["apply"]' ]
  v2_raising crun --root "$state" delete --force "$container"
}

@test "sockets that systemd gives to our process ID are passed on" {
  # shellcheck disable=SC2016
  listening() { on_host bash -c 'exec 3</etc/hostname; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"' - "$@"; }
  make_asking_bundle '.process.args = ["/bin/sh", "-c", "echo \"sockets: $LISTEN_FDS $(readlink /proc/self/fd/3)\""]'
  created listening
  [ "$(hooks)" = '["apply"]' ]
  run_created on_host runc --root "$state"
  expect sockets "1 /etc/hostname"
}

@test "a low-level runtime that is a script or has another name gets a hook" {
  printf '#!/bin/sh\nexec runc "$@"\n' >"$work/runc.sh"
  chmod 755 "$work/runc.sh"
  mkdir "$work/bin"
  cp "$work/runc.sh" "$work/bin/runc"
  low_level "$work/bin/runc"
  hook_stays
  cp "$(type -P runc)" "$work/bin/other"
  low_level "$work/bin/other"
  hook_stays
}

# bats test_tags=old-kernel
@test "without the right to join the container's mounts, a hook does it" {
  without() { on_host setpriv --bounding-set=-sys_chroot --inh-caps=-sys_chroot "$@"; }
  setup_covers
  make_asking_bundle '.process.capabilities[] |= map(select(. != "CAP_SYS_CHROOT"))'
  without runc --root "$state" create --bundle "$bundle" alone </dev/null >"$work/alone" 2>&1 3>&- 4>&- ||
    ! grep -q 'join container mntns' "$work/alone" || skip "this release of runc joins them itself, and fails"
  on_host runc --root "$state" delete --force alone
  created without
  works on_host '["apply"]'
}

@test "a refusal of the low-level runtime keeps its message and status" {
  make_asking_bundle '.process.cwd = "relative"'
  status=0
  on_host runc --root "$state" --log "$work/alone.json" --log-format json create --bundle "$bundle" "$container" </dev/null >"$work/alone" 2>&1 ||
    status=$?
  [ "$status" -ne 0 ]
  wanted=$status status=0
  create on_host || status=$?
  [ "$status" -eq "$wanted" ]
  diff "$work/alone" "$work/out"
  [ "$(last_error "$work/log.json")" = "$(last_error "$work/alone.json")" ]
  [ "$(hooks)" = '[]' ]
  [ ! -e "$state/$container" ]
}

# bats test_tags=old-kernel
@test "a container that cannot be finished is deleted, and the engine gets the reason" {
  local call n n_failed=0
  make_asking_bundle
  cp "$bundle/config.json" "$work/config.json.before"
  on_host cat /proc/self/mountinfo >"$work/mounts"
  for call in setns:1 setns:2 move_mount:2 move_mount:3 fsopen:1 fsopen:2 fsmount:1 open_tree:1 open_tree:2 umount2:1 mount:1 mount:2 mount:3; do
    n=${call#*:} call=${call%:*}
    cp "$work/config.json.before" "$bundle/config.json"
    rm -f "$work/log.json" "$work/pid"
    status=0
    create on_host strace -o "$work/trace" -e "trace=$call" -e "inject=$call:error=EIO:when=$n" || status=$?
    # What only asks whether the kernel can do something has a way around it.
    if [ "$status" -eq 0 ]; then
      grep -qx 'ModifyDeviceFiles: 0' "/proc/$(cat "$work/pid")/root/proc/driver/nvidia/params"
      on_host runc --root "$state" delete --force "$container"
      continue
    fi
    [ "$status" -eq 1 ] || die "$call: $status: $(cat "$work/out" "$work/trace")" || return
    [ "$(jq --slurp --raw-output 'map(select(.level == "error")) | length' "$work/log.json")" -eq 1 ]
    [[ "$(last_error "$work/log.json")" == "failed to set up the container's GPUs: "* ]]
    [ ! -e "$state/$container" ]
    [ ! -e "/proc/$(cat "$work/pid")/root/asks" ]
    on_host cat /proc/self/mountinfo | diff "$work/mounts" -
    n_failed=$((n_failed + 1))
  done
  [ "$n_failed" -ge 5 ] || die "$n_failed"
}

# bats test_tags=old-kernel
@test "where the container's mounts cannot be left again, no program of the image is executed" {
  make_asking_bundle
  cat >"$work/image.c" <<'C'
#include <fcntl.h>
int main(void)
{
	return open("/was-executed", O_CREAT | O_WRONLY, 0644) < 0;
}
C
  cc -static -o "$work/image" "$work/image.c"
  on_host install -D -m 0755 "$work/image" "$root$(type -P runc)"
  status=0
  create on_host strace -o "$work/trace" -e trace=setns -e inject=setns:error=EIO:when=2+ || status=$?
  [ "$status" -eq 1 ]
  grep -q 'EIO' "$work/trace"
  on_host test -x "$root$(type -P runc)"
  on_host test ! -e "$root/was-executed"
  grep -q "container '$container' is not deleted" "$work/runtime.log"
  [[ "$(last_error "$work/log.json")" == "failed to set up the container's GPUs: "* ]]
}

# The first line of both files comes when the container's mounts are joined and cannot be left.
@test "a log that is still empty is the host's file, not one of the image" {
  sed -i 's/"debug"$/"error"/' "$NVIDIA_CTK_CONFIG_FILE_PATH"
  grep -q 'log-level = "error"' "$NVIDIA_CTK_CONFIG_FILE_PATH"
  make_asking_bundle
  on_host mkdir -p "$root$work"
  status=0
  create on_host strace -o "$work/trace" -e trace=setns,openat -e inject=setns:error=EIO:when=2+ || status=$?
  [ "$status" -eq 1 ]
  grep -q 'EIO' "$work/trace"
  grep -q "failed to set up the container's GPUs" "$work/runtime.log"
  [[ "$(last_error "$work/log.json")" == "failed to set up the container's GPUs: "* ]]
  [ "$(on_host find "$root$work" -mindepth 1)" = "" ]
  on_host runc --root "$state" delete --force "$container"
}

# creates_despite LOW-LEVEL-RUNTIME SIGNAL: sent while another program's hook runs.
creates_despite() {
  local shim
  low_level "$1"
  make_asking_bundle ".hooks = {createRuntime: [{path: \"$work/waits\"}]}"
  rm -f "$work/goes-on" "$work/waiting" "$work/pid"
  # shellcheck disable=SC2016
  create v2_raising bash -c 'echo $$ >"$0"; exec "$@"' "$work/shim" &
  shim=$!
  within 10 test -e "$work/waiting"
  kill -s "$2" "$(cat "$work/shim")"
  sleep 0.1
  touch "$work/goes-on"
  wait "$shim" || die "$1, $2: $?" || return
  grep -qx 'ModifyDeviceFiles: 0' "/proc/$(cat "$work/pid")/root/proc/driver/nvidia/params"
  v2_raising "$1" --root "$state" delete --force "$container"
}

# bats test_tags=old-kernel
@test "a signal that the low-level runtime ignores changes nothing" {
  local low signal
  cat >"$work/waits" <<SH
#!/bin/sh
cat >/dev/null
: >"$work/waiting"
for i in \$(seq 2500); do
  [ ! -e "$work/goes-on" ] || exit 0
  sleep 0.02
done
exit 1
SH
  chmod 755 "$work/waits"
  for low in runc crun; do
    for signal in TERM HUP PIPE; do
      creates_despite "$low" "$signal"
    done
  done
}

# bats test_tags=old-kernel
@test "a pid file with another process changes nothing on the host, and there is no container" {
  # A process of the machine's own mounts and root, and one that is not there.
  local pid
  setup_covers
  for pid in $$ 4194303 0 -1 word "1 2" ""; do
    make_asking_bundle
    printf '%s' "$pid" >"$work/told"
    cat >"$work/runc.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		execv(getenv("REAL_RUNC"), argv);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--pid-file") == 0 && rename(getenv("TOLD"), argv[i + 1]) != 0)
			return 1;
	return WEXITSTATUS(status);
}
C
    mkdir -p "$work/bin"
    cc -o "$work/bin/runc" "$work/runc.c"
    low_level "$work/bin/runc"
    rm -f "$work/log.json"
    status=0
    REAL_RUNC=$(type -P runc) TOLD=$work/told create on_host || status=$?
    [ "$status" -eq 1 ] || die "'$pid': $(cat "$work/out")" || return
    [[ "$(last_error "$work/log.json")" == "failed to set up the container's GPUs: "* ]]
    [ ! -e "$state/$container" ]
  done
  on_host grep -qx 'ModifyDeviceFiles: 1' /proc/driver/nvidia/params
  grep -h -o '"msg":"failed[^"]*' "$work/log.json"
}

@test "the low-level runtime sees the descriptors, the environment and the directory of the caller" {
  make_asking_bundle
  cat >"$work/runc.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char cwd[4096];
	int death = 0;
	prctl(PR_GET_PDEATHSIG, &death);
	printf("cwd %s fd9 %s variable %s argc %d last %s death %d\n", getcwd(cwd, sizeof(cwd)), write(9, "written", 7) == 7 ? "open" : "closed",
	       getenv("VARIABLE"), argc, argv[argc - 1], death);
	return 42;
}
C
  mkdir "$work/bin"
  cc -o "$work/bin/runc" "$work/runc.c"
  low_level "$work/bin/runc"
  cd "$work"
  status=0
  VARIABLE=value create on_host 9>"$work/nine" || status=$?
  [ "$status" -eq 42 ]
  grep -qx "cwd $work fd9 open variable value argc 13 last $container death 9" "$work/out" || die "$(cat "$work/out")"
  [ "$(cat "$work/nine")" = written ]
  run ! grep -q '"level":"error"' "$work/log.json"
}

# ---- graft.late-mounts ----

# Files of the driver that config.json has.
driver_files() { jq -r '[.mounts[].destination | select(test("nvidia|cuda"))] | length' "$bundle/config.json"; }
# What the container of the pid file sees: sources, paths, flags, propagation, in any order.
container_mounts() { awk '{ $1 = $2 = $3 = ""; print }' "/proc/$(cat "$work/pid")/mountinfo" | sed 's/\(master\|shared\):[0-9]*/\1/' | sort; }

# same_mounts WORLD LOW-LEVEL-RUNTIME
same_mounts() {
  local way
  for way in false true; do
    late=$way low_level "$2"
    make_asking_bundle
    created "$1"
    container_mounts >"$work/mounts.$way"
    driver_files >"$work/files.$way"
    run_created "$1" "$2" --root "$state"
    expect nvidia-smi 1
    expect ModifyDeviceFiles 0
    printf '%s\n' "$output" >"$work/output.$way"
  done
  [ "$(hooks)" = '[]' ]
  [ "$(cat "$work/files.false")" -gt 40 ]
  # Sockets, and the directory of MPS.
  [ "$(cat "$work/files.true")" -le 3 ] || die "$(cat "$work/files.true"): $(jq .mounts "$bundle/config.json")" || return
  sed "s|${work}[^ ]*|ROOT|" "$work/mounts.false" >"$work/wanted"
  sed "s|${work}[^ ]*|ROOT|" "$work/mounts.true" | diff "$work/wanted" - || return
  diff "$work/output.false" "$work/output.true"
}

@test "runc: files that we mount are those that runc mounts, with the same flags" { same_mounts on_host runc; }
@test "crun: files that we mount are those that crun mounts, with the same flags" { same_mounts v2_raising crun; }

# describe [OPTION...]: the specification that mode cdi uses.
describe() { on_host "$BATS_FILE_TMPDIR/programs/nvidia-ctk" --quiet cdi generate --nvidia-cdi-hook-path="$BATS_FILE_TMPDIR/programs/nvidia-cdi-hook" \
  --output "$work/cdi/nvidia.json" "$@"; }

# Links and other hooks of the specification make no difference, nor does who was to mount its files.
same_in_mode_cdi() {
  local option
  mode=cdi
  for option in '' --late-mounts; do
    # shellcheck disable=SC2086
    describe $option
    same_mounts "$@"
    cp "$work/wanted" "$work/wanted.$option"
  done
  diff "$work/wanted." "$work/wanted.--late-mounts"
}
@test "runc, mode cdi: files of a specification that we mount are those that runc mounts" { same_in_mode_cdi on_host runc; }
@test "crun, mode cdi: files of a specification that we mount are those that crun mounts" { same_in_mode_cdi v2_raising crun; }

@test "mode cdi: what a specification mounts otherwise is mounted by the low-level runtime" {
  late=true mode=cdi low_level runc
  describe --format=json
  jq '.containerEdits.mounts |= map(if .containerPath | test("libcuda.so") then .options -= ["nosuid"]
    elif .containerPath | test("libnvidia-opencl.so") then .options += ["noexec"] else . end)' \
    "$work/cdi/nvidia.json" >"$work/spec" && mv "$work/spec" "$work/cdi/nvidia.json"
  make_asking_bundle
  created on_host
  [ "$(jq -r '.mounts[].destination | select(test("nvidia|cuda")) | split("/")[-1]' "$bundle/config.json" | sort | xargs)" = \
    "libcuda.so.550.54.14 libnvidia-opencl.so.550.54.14 socket socket" ] || die "$(jq .mounts "$bundle/config.json")" || return
  run_created on_host runc --root "$state"
  expect nvidia-smi 1
}

@test "a program of the driver can be what the container starts" {
  local low args
  for low in runc crun; do
    for args in '["nvidia-smi", "-L"]' '["/usr/bin/nvidia-smi", "-L"]' '["/shows-gpus", "-L"]' '["shows-gpus", "-L"]'; do
      late=true low_level "$low"
      make_asking_bundle ".process.args = $args" '.process.env += ["PATH=/usr/bin:/bin:/"]'
      on_host ln -s usr/bin/nvidia-smi "$root/shows-gpus"
      created v2_raising
      [ "$(driver_files)" -gt 2 ]
      [ "$(driver_files)" -lt 12 ]
      run_created v2_raising "$low" --root "$state"
      grep -q '^GPU 0: ' <<<"$output" || die "$low, $args: $output" || return
    done
  done
}

# doctor: the line about late mounts.
doctor_late() {
  on_host "$BATS_FILE_TMPDIR/programs/nvidia-ctk" doctor --quick --container "$bundle" | sed ':a; N; $!ba; s/\n         / /g' | sed -n 's/^  late *//p'
}

@test "the doctor says of a container which files the low-level runtime has mounted, and why" {
  late=true low_level runc
  make_asking_bundle '.process.args = ["nvidia-smi"] | .process.env += ["PATH=/usr/bin:/bin"]'
  created on_host
  [[ $(doctor_late) =~ ^[0-9]+' files; by the low-level runtime: /usr/bin/'.*nvidia-smi.*' (the low-level runtime may look for this program)'$ ]] ||
    die "$(doctor_late)" || return
  on_host runc --root "$state" delete --force "$container"
  make_asking_bundle '.root.readonly = true'
  created on_host
  [ "$(doctor_late)" = "no file: the root will be read-only" ] || die "$(doctor_late)" || return
  on_host runc --root "$state" delete --force "$container"
  make_asking_bundle
  created on_host
  [ "$(doctor_late)" = "all files" ] || die "$(doctor_late)" || return
  on_host runc --root "$state" delete --force "$container"
  late=false low_level runc
  make_asking_bundle
  created on_host
  [ -z "$(doctor_late)" ]
  on_host runc --root "$state" delete --force "$container"
}

# plan_late [WORD...]: the same of the plan for the bundle. Nothing is changed.
plan_late() {
  local before
  before=$(sha256sum "$bundle/config.json"; on_host find "$root" -xdev -newer "$bundle/config.json")
  on_host nvidia-container-cli plan --style=oci --bundle="$bundle" --device=0 --compute --utility --graphics --video --display --ngx "$@" || return
  [ "$before" = "$(sha256sum "$bundle/config.json"; on_host find "$root" -xdev -newer "$bundle/config.json")" ]
}
# foreseen WORDS FILTER...: the plan says these words, as text and as JSON, and so do the runtime and the doctor afterwards.
foreseen() {
  local words=$1 planned
  shift
  make_asking_bundle "$@"
  plan_late --json >"$work/plan.json" 2>/dev/null
  plan_late >"$work/plan" 2>/dev/null
  plan_late --all >"$work/plan.all" 2>/dev/null
  planned=$(jq -r .late_mounts "$work/plan.json")
  # shellcheck disable=SC2053
  [[ $planned == $words ]] || die "$*: $planned" || return
  grep -qxF "late mounts: $planned" "$work/plan" || die "$(cat "$work/plan")" || return
  grep -qxF "late mounts: $planned" "$work/plan.all"
  created on_host
  [ "$(jq -r '.annotations["graft.late-mounts"]' "$bundle/config.json")" = "$planned" ] ||
    die "$*: $(jq .annotations "$bundle/config.json") $planned" || return
  on_host "$BATS_FILE_TMPDIR/programs/nvidia-ctk" doctor --quick --json --container "$bundle" >"$work/doctor.json" || :
  [ "$(jq -r .late_mounts "$work/doctor.json")" = "$planned" ] || die "$(jq .late_mounts "$work/doctor.json")" || return
  on_host runc --root "$state" delete --force "$container"
}

@test "plan foresees which files will be mounted late in the container of a bundle, and why others will not" {
  late=true low_level runc
  mkdir "$work/volume"
  foreseen "all files"
  foreseen "no file: the root will be read-only" '.root.readonly = true'
  foreseen "no file: a hook may use them" '.hooks = {createRuntime: [{path: "/bin/true"}]}'
  foreseen "no file: NVIDIA_LATE_MOUNTS of the container is false" '.process.env += ["NVIDIA_LATE_MOUNTS=false"]'
  foreseen "* files; by the low-level runtime: */nvidia-smi* (the low-level runtime may look for this program)" \
    '.process.args = ["nvidia-smi"] | .process.env += ["PATH=/usr/bin:/bin"]'
  foreseen "* files; by the low-level runtime: */nvidia_icd.json* (a mount covers it)" \
    '.mounts += [{destination: "/etc/vulkan", source: "'"$work/volume"'", type: "bind", options: ["rbind", "rw"]}]'
  foreseen "no file: nothing can be done between creation and start" '.linux.namespaces += [{type: "user"}] |
    .linux.uidMappings = [{containerID: 0, hostID: 0, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
  # One of an earlier start.
  make_asking_bundle '.annotations["graft.late-mounts"] = "no file: of old"'
  [ "$(plan_late --json 2>/dev/null | jq -r .late_mounts)" = "all files" ]
  run -77 setpriv --reuid=65534 --clear-groups "$BATS_FILE_TMPDIR/programs/nvidia-container-cli" plan --style=oci --bundle="$bundle"
  [ "${lines[0]}" = "nvidia-container-cli: input error: --bundle is for root, whose runtime makes the mounts" ] || die "$output"
  late=false low_level runc
  make_asking_bundle
  [ "$(plan_late --json 2>/dev/null | jq -r .late_mounts)" = "no file: graft.late-mounts in config.toml is false" ]
  late=true mode=legacy low_level runc
  make_asking_bundle
  [ "$(plan_late --json 2>/dev/null | jq -r .late_mounts)" = "no file: the hook mounts them in mode legacy" ]
  plan_late 2>/dev/null | grep -x 'late mounts: no file: the hook mounts them in mode legacy'
  run -64 plan_late --style=namespace
  [ "${lines[0]}" = "nvidia-container-cli: input error: --bundle is for --style=oci" ] || die "$output"
  [ "$(on_host nvidia-container-cli plan --style=oci --json --device=0 --compute 2>/dev/null | jq .late_mounts)" = null ]
}

# Nobody can know whether a variable is the image's: so it can only decline what the administrator has enabled.
@test "a container's variable switches late mounts off, and never on" {
  local late value
  for late in true false; do
    low_level runc
    for value in true false 0 ''; do
      make_asking_bundle ".process.env += [\"NVIDIA_LATE_MOUNTS=$value\"]"
      created on_host
      case $late$value in
      true | true0 | truetrue) [ "$(driver_files)" -le 3 ] && [ "$(doctor_late)" = "all files" ] ;;
      truefalse) [ "$(driver_files)" -gt 40 ] && [ "$(doctor_late)" = "no file: NVIDIA_LATE_MOUNTS of the container is false" ] ;;
      *) [ "$(driver_files)" -gt 40 ] && [ -z "$(doctor_late)" ] ;;
      esac || die "$late $value: $(driver_files) $(doctor_late)" || return
      run_created on_host runc --root "$state"
      expect nvidia-smi 1
    done
  done
}

# stays FILTER...: the low-level runtime mounts all files but those that were named.
stays() {
  make_asking_bundle "$@"
  created on_host
  [ "$(driver_files)" -gt 40 ] || die "$*: $(driver_files)" || return
  on_host runc --root "$state" delete --force "$container"
}

@test "where it would make a difference, the low-level runtime mounts all files" {
  late=true low_level runc
  stays '.root.readonly = true'
  grep -q 'mounted by the low-level runtime: .*/libcuda.so.550.54.14: the root will be read-only' "$work/runtime.log"
  stays '.hooks = {createRuntime: [{path: "/bin/true"}]}'
  grep -q 'mounted by the low-level runtime: .*/libcuda.so.550.54.14: a hook may use them' "$work/runtime.log"
  old_kernel=("$build/test/tools/enosys" --only open_tree)
  stays
  grep -q 'mounted by the low-level runtime: .*/libcuda.so.550.54.14: this kernel cannot mount them later' "$work/runtime.log"
  old_kernel=() with_pid=()
  stays
}

@test "a volume over a directory of the driver gets its files from the low-level runtime" {
  local library
  late=true low_level runc
  make_asking_bundle
  created on_host
  library=$(sed -n 's|.* \(/[^ ]*/libcuda.so.550.54.14\) .*|\1|p' "/proc/$(cat "$work/pid")/mountinfo")
  on_host runc --root "$state" delete --force "$container"
  mkdir "$work/volume"
  make_asking_bundle "$(printf '.mounts += [{destination: "%s", source: "%s", type: "bind", options: ["rbind", "rw"]}]' "${library%/*}" "$work/volume")"
  created on_host
  jq -e --arg path "$library" '.mounts[] | select(.destination == $path)' "$bundle/config.json" >"$work/mount"
  on_host runc --root "$state" delete --force "$container"
  [ -z "$(find "$work/volume" -type l)" ]
}

@test "a container whose files cannot be mounted is deleted, and nothing stays" {
  local call n n_failed=0
  late=true low_level runc
  make_asking_bundle
  cp "$bundle/config.json" "$work/config.json.before"
  on_host cat /proc/self/mountinfo >"$work/mounts"
  for call in setns:1 move_mount:9 move_mount:30 open_tree:3 open_tree:30 mount:20; do
    n=${call#*:} call=${call%:*}
    cp "$work/config.json.before" "$bundle/config.json"
    rm -f "$work/log.json" "$work/pid"
    status=0
    create on_host strace -o "$work/trace" -e "trace=$call" -e "inject=$call:error=EIO:when=$n" || status=$?
    if [ "$status" -eq 0 ]; then
      on_host runc --root "$state" delete --force "$container"
      continue
    fi
    [ "$status" -eq 1 ] || die "$call: $status: $(cat "$work/out" "$work/trace")" || return
    [[ "$(last_error "$work/log.json")" == "failed to set up the container's GPUs: "* ]]
    [ ! -e "$state/$container" ]
    on_host cat /proc/self/mountinfo | diff "$work/mounts" -
    n_failed=$((n_failed + 1))
  done
  [ "$n_failed" -ge 3 ] || die "$n_failed"
}

# tries CAPABILITY...: what a container with these more can do to files of the driver, as its root.
tries() {
  local capabilities
  capabilities=$(printf '"%s",' "$@")
  make_asking_bundle '.process.args = ["/tries"]' ".process.capabilities[] |= (. + [${capabilities%,}] | unique)"
  cat >"$work/tries" <<'SH'
#!/bin/sh
n=0
for file in $(sed -n 's|.* \(/[^ ]*\(nvidia-smi\|libcuda.so\|libEGL_nvidia.so\|nvidia_icd.json\)[^ ]*\) .*|\1|p' /proc/self/mountinfo); do
  n=$((n + 1))
  sed -n "s|.* $file \([^ ]*\) .*|flags: \1|p" /proc/self/mountinfo
  (echo x >>"$file") 2>/dev/null && echo "wrote $file"
  truncate -s 0 "$file" 2>/dev/null && echo "cut $file"
  chmod 777 "$file" 2>/dev/null && echo "changed $file"
  rm "$file" 2>/dev/null && echo "removed $file"
  mv "$file" "$file.old" 2>/dev/null && echo "renamed $file"
  ln "$file" "/link$n" 2>/dev/null && echo "linked $file"
  umount "$file" 2>/dev/null && echo "unmounted $file"
  mount -o remount,bind,rw "$file" 2>/dev/null && echo "remounted $file"
  (echo x >>"$file") 2>/dev/null && echo "wrote $file after all"
done
echo "files: $n"
SH
  on_host install -m 0755 "$work/tries" "$root/tries"
  created on_host
  run_created on_host runc --root "$state"
}

# SECURITY: read-only, without privileges of the file system, and only the right to mount, which gives everything, can change that.
@test "a container cannot write to files that are mounted late, nor remove them" {
  local way
  on_host sh -c 'sha256sum /usr/bin/nvidia-smi /usr/lib/*/libcuda.so.*' >"$work/before"
  host_state >"$work/host.before"
  for way in true false; do
    late=$way low_level runc
    tries CAP_DAC_OVERRIDE CAP_FOWNER CAP_CHOWN CAP_LINUX_IMMUTABLE
    [ "$way" = false ] || [ "$(jq -r '.annotations["graft.late-mounts"]' "$bundle/config.json")" = "all files" ]
    sort -u <<<"$output" >"$work/tried.$way"
    [ "$(cat "$work/tried.$way")" = "$(printf 'files: 4\nflags: ro,nosuid,nodev,relatime')" ] || die "$way: $output" || return
  done
  on_host sh -c 'sha256sum /usr/bin/nvidia-smi /usr/lib/*/libcuda.so.*' | diff "$work/before" -
  host_state | diff "$work/host.before" -
}

@test "a driver that is upgraded: a container keeps the files with which it started, and they go with it" {
  local library inode
  late=true low_level runc
  host_state >"$work/before"
  make_asking_bundle '.process.args = ["/bin/sleep", "100"]'
  created on_host
  on_host runc --root "$state" start "$container"
  library=$(on_host sh -c 'echo /usr/lib/*/libcuda.so.550.54.14')
  inode=$(on_host stat -c %i "$library")
  on_host sh -c 'cp "$1" "$1.old" && echo new >"$1.new" && mv "$1.new" "$1"' - "$library"
  run on_host runc --root "$state" exec "$container" stat -c %i "$library"
  [ "$output" = "$inode" ] || {
    on_host mv "$library.old" "$library"
    die "$output, not $inode" || return
  }
  on_host runc --root "$state" delete --force "$container"
  # The next one has the new one.
  make_asking_bundle ".process.args = [\"/bin/cat\", \"$library\"]"
  created on_host
  run_created on_host runc --root "$state"
  on_host mv "$library.old" "$library"
  [ "$output" = new ] || die "$output" || return
  host_state | diff "$work/before" -
}
