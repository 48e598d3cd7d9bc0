# SPDX-License-Identifier: Apache-2.0
# Leases: GPUs that are lent to one holder at a time, on a host of eight GPUs: nothing is ever lent twice, whoever is killed when; nothing has to be given back.
# lane: work

load lib.bash

setup_file() {
  local name
  start_host dgx-h100
  for name in runtime/nvidia-container-runtime runtime/graft-nvml cdi_hook/nvidia-cdi-hook ctk/nvidia-ctk; do
    install -m 0755 "$build/src/cli/$name" "$BATS_FILE_TMPDIR/programs"
  done
}
teardown_file() { stop_host; }
setup() {
  test_setup
  runtime=$BATS_FILE_TMPDIR/programs/nvidia-container-runtime
  ctk=$BATS_FILE_TMPDIR/programs/nvidia-ctk
  config=$work/config.toml
  table=$work/leases
  printf '[nvidia-container-runtime]\nruntimes = ["runc"]\n[graft.leases]\nmode = "on"\ndirectory = "%s"\n' "$table" >"$config"
  export NVIDIA_CTK_CONFIG_FILE_PATH=$config
  unset XDG_CONFIG_HOME
}
teardown() {
  local name
  [ ! -d "$work/runc" ] || for name in "$work"/runc/*; do
    on_host runc --root "$work/runc" delete --force "${name##*/}" 2>/dev/null || true
  done
  kill_holders
  [ ! -e "$work/pids" ] || xargs kill -9 <"$work/pids" 2>/dev/null || true
  test_teardown
}

# The processes of all that the table has, dead or alive: those that were started here.
kill_holders() {
  local pid cgroup
  for cgroup in $(cat "$table"/held/* 2>/dev/null | jq -r '.holder.cgroup // empty'); do
    [ ! -e "/sys/fs/cgroup/devices$cgroup/cgroup.procs" ] || xargs -r kill -9 <"/sys/fs/cgroup/devices$cgroup/cgroup.procs" 2>/dev/null || true
  done
  for pid in $(cat "$table"/held/* "$table"/queue/* 2>/dev/null | jq -r '.holder.pid // empty'); do
    [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") != @(*"$ctk"*|"sleep 1000 "|"sh -c "*) ]] || kill -9 "$pid" 2>/dev/null || true
  done
}
lease() { on_host "$ctk" --quiet lease "$@"; }
# How many GPUs are held.
held() { lease list --json | jq '[.gpus[] | select(.leases != [])] | length'; }
is_held() { [ "$(held)" = "$1" ] || die "$(lease list) instead of $1 held"; }
count_files() { find "$table/held" -type f | wc -l; }
# becomes_held N: within two seconds.
becomes_held() {
  for _ in $(seq 100); do
    [ "$(held)" != "$1" ] || return 0
    sleep 0.02
  done
  is_held "$1"
}

# lease_bundle NAME CLAIM COMMAND [JQ-FILTER...]: a container with a cgroup of that name.
lease_bundle() {
  local name=$1 claim=$2 command=$3
  shift 3
  bundle=$work/bundle-$name
  new_bundle
  edit_bundle --arg root "$root" --arg claim "$claim" --arg name "$name" --arg command "$command" --arg shared "$work/shared" "$(piped '
    .process.terminal = false | .process.args = ["sh", "-c", $command] | del(.process.rlimits) | .root = {path: $root, readonly: true} |
    .linux.cgroupsPath = "/graft-lease-" + $name | .process.env += ["NVIDIA_VISIBLE_DEVICES=" + $claim, "NAME=" + $name] |
    .mounts += [{destination: "/tmp", type: "bind", source: $shared, options: ["bind", "rw"]}]' "$@")"
}

# create NAME [OPTION...] as an engine does it: the pid file says which process it is.
create() {
  local name=$1
  shift
  on_host "$runtime" --root "$work/runc" create --bundle "$work/bundle-$name" --pid-file "$work/$name.pid" "$@" "$name" \
    </dev/null >"$work/$name.out" 2>&1 3>&- 4>&-
}
of_runc() { on_host runc --root "$work/runc" "$@"; }
make_shared() {
  make_root small overlay
  mkdir -p "$work/shared" "$work/runc"
  chmod 0777 "$work/shared"
}
# The GPUs of a container, by their nodes: "nvidia0 nvidia1".
gpus_of() { on_host nsenter --target "$(cat "$work/$1.pid")" --mount sh -c 'ls /dev' | grep -x 'nvidia[0-9]*' | xargs; }

# --- containers ---

@test "off: a claim is an unknown device, and a start makes the same system calls as ever" {
  make_shared
  : >"$config"
  lease_bundle a any:1 'sleep 1000'
  run ! create a
  grep -F 'any:1: unknown device' "$work/a.out"
  [ ! -e "$table" ]
  # A start without a claim makes the same calls whether leases are on or off, and opens nothing of theirs.
  # The first changes the root, and the others find it changed.
  for mode in off off "on"; do
    printf '[graft.leases]\nmode = "%-3s"\ndirectory = "%s"\n' $mode "$table" | sed 's/ "$/"/' >"$config"
    lease_bundle same 0 'sleep 1000'
    on_host strace -qq -e signal=none -o "$work/trace" "$runtime" --root "$work/none" create --bundle "$bundle" --pid-file "$work/none.pid" "" \
      </dev/null >"$work/out" 2>&1 || true
    sed -n '/config\.toml/,$p' "$work/trace" >"$work/$mode.trace"
    # The kernel gives a look-up up where something was renamed or mounted meanwhile, and it is made again.
    sed -E '/= -1 EAGAIN/d; s/\(.*//; /^(wait4|waitid|rt_sig.*|clone.*|vfork|mmap|munmap|brk|clock_gettime|poll|nanosleep)$/d' "$work/$mode.trace" >"$work/$mode.calls"
    run ! grep -F "$table" "$work/$mode.trace"
  done
  [ "$(wc -l <"$work/off.calls")" -gt 100 ]
  diff "$work/off.calls" "$work/on.calls"
  [ ! -e "$table" ]
}

@test "any:2 twice gives four GPUs, a third of five is refused and names both holders, and the end of one frees two" {
  make_shared
  lease_bundle a any:2 'sleep 1000'
  lease_bundle b 'any:2;model=h100' 'sleep 1000'
  lease_bundle c any:5 'sleep 1000'
  create a
  create b
  is_held 4
  [ "$(printf '%s\n' "$(gpus_of a)" "$(gpus_of b)" | tr ' ' '\n' | sort -u | wc -l)" = 4 ]
  run ! create c
  cat "$work/c.out"
  grep -E '5 GPUs were asked for, 4 of 8 are free\. Held: GPU [0-7], [0-7] by uid 0 \(container [ab], [0-9]+ s\); GPU [0-7], [0-7] by uid 0 \(container [ab], [0-9]+ s\)\. See .nvidia-ctk lease list.\.' "$work/c.out"
  of_runc kill a KILL
  becomes_held 2
  create c || die "$(cat "$work/c.out")"
  is_held 7
  [ "$(gpus_of c | wc -w)" = 5 ]
  # The log knows it all.
  lease history >"$work/history"
  [ "$(grep -c ' taken ' "$work/history")" = 3 ]
  grep ' freed .* no process is left in its cgroup' "$work/history"
}

@test "created and never started, paused, restarted under the same cgroup, deleted with force" {
  make_shared
  lease_bundle a any:1 'sleep 1000'
  create a
  is_held 1
  of_runc start a
  on_host sh -c 'echo 1' >/dev/null
  of_runc pause a 2>/dev/null || true
  is_held 1
  of_runc resume a 2>/dev/null || true
  of_runc delete --force a
  becomes_held 0
  run ! create a
  grep -E 'config.json has the GPUs of lease [a-z2-7]{12}, which are another container.s\. Make a new bundle for each container\.' "$work/a.out"
  # The record of the first is gone when the second has the same path.
  lease_bundle a any:1 'sleep 1000'
  create a
  is_held 1
  [ "$(lease list --json | jq '.leases | length')" = 1 ]
  of_runc delete --force a
  becomes_held 0
}

@test "a container whose cgroup is only known to runc is found by its pid file; without one it is refused" {
  make_shared
  lease_bundle a any:1 'sleep 1000' 'del(.linux.cgroupsPath)'
  create a
  is_held 1
  [ "$(jq -r .holder.kind "$table"/held/*)" = pid-file ]
  # Whoever looks with the lock learns which process it is.
  lease run -- true
  [ "$(jq -r 'select(.claim == "any:1" and .holder.container == "a") | .holder.kind, .holder.pid' "$table"/held/* | xargs)" = "process $(cat "$work/a.pid")" ]
  of_runc delete --force a
  becomes_held 0
  lease_bundle b any:1 'sleep 1000' 'del(.linux.cgroupsPath)'
  run ! on_host "$runtime" --root "$work/runc" create --bundle "$work/bundle-b" b
  [[ $output == *"the container cannot be found once it is made: it has neither linux.cgroupsPath nor a --pid-file. Give the container a cgroup, or call 'create' with --pid-file."* ]]
  is_held 0
}

@test "cgroup v2: a lease ends with its container" {
  make_shared
  lease_bundle a any:3 'sleep 1000'
  v2 "$runtime" --root "$work/runc" create --bundle "$bundle" --pid-file "$work/a.pid" a </dev/null >"$work/out" 2>&1 3>&- 4>&- ||
    skip "runc makes no container where there is only cgroup v2: $(cat "$work/out")"
  [ "$(v2 "$ctk" lease list --json | jq '[.gpus[] | select(.leases != [])] | length')" = 3 ]
  [ "$(jq -r .holder.cgroup_version "$table"/held/*)" = 2 ]
  # Who cannot see that hierarchy does not take it for gone.
  is_held 3
  v2 runc --root "$work/runc" delete --force a
  [ "$(v2 "$ctk" lease list --json | jq '[.gpus[] | select(.leases != [])] | length')" = 0 ]
}

@test "the hook and nvidia-container-cli: docker run --gpus device=any:2" {
  make_shared
  export PATH=$BATS_FILE_TMPDIR/bin:$PATH
  for name in a b; do
    lease_bundle $name any:2 'sleep 1000' ".hooks = {prestart: [{path: \"$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook\", args: [\"hook\", \"prestart\"],
      env: [\"NVIDIA_CTK_CONFIG_FILE_PATH=$config\", \"PATH=/usr/sbin:/usr/bin:/sbin:/bin\"]}]}"
    of_runc create --bundle "$bundle" --pid-file "$work/$name.pid" $name </dev/null >"$work/$name.out" 2>&1 3>&- 4>&- || die "$(cat "$work/$name.out")"
  done
  is_held 4
  [ "$(jq -r .holder.kind "$table"/held/* | sort -u)" = cgroup ]
  [ "$(printf '%s\n' "$(gpus_of a)" "$(gpus_of b)" | tr ' ' '\n' | sort -u | wc -l)" = 4 ]
  of_runc delete --force a
  becomes_held 2
}

@test "what cannot be read gives no GPU: mixtures, nonsense, too many" {
  local claim
  make_shared
  while read -r claim; do
    lease_bundle x "$claim" 'sleep 1000'
    run ! create x
    is_held 0
    [ "$(grep -c level=error "$work/x.out")" = 1 ]
    printf '%s\n' "$(sed -E 's/.*error modifying OCI spec: //; s/.*msg="//; s/"$//' "$work/x.out")" >>"$work/messages"
    of_runc delete --force x 2>/dev/null || true
  done <<'CLAIMS'
any:1,all
0,any:1
any:0
any:9
any:1;speed=fast
lease:abc
lease:abcdefgh2345
mig:1g.10gb
CLAIMS
  cat "$work/messages"
  diff "$work/messages" - <<'MESSAGES'
lease: 'all': a device stands beside a claim; a list has either devices or one claim. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', and constraints behind it: 'any:2;model=H100'.
lease: '0': a device stands beside a claim; a list has either devices or one claim. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', and constraints behind it: 'any:2;model=H100'.
lease: '0': the number of GPUs is 1 to 64. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', and constraints behind it: 'any:2;model=H100'.
lease: 9 GPUs were asked for, but this host has 8 that can be lent and fit. Run 'nvidia-ctk lease list' to see what this host has.
lease: 'speed': no constraint has this name; there are model=, mem>=, same=, not= and wait=. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', and constraints behind it: 'any:2;model=H100'.
lease: 'abc': no id of a lease. Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', and constraints behind it: 'any:2;model=H100'.
lease: lease abcdefgh2345 does not exist, or has ended. Run 'nvidia-ctk lease list' to see the leases of this host.
lease: 1 MIG device was asked for, but this host has 0 that can be lent and fit. Run 'nvidia-ctk lease list' to see what this host has.
MESSAGES
}

# --- two never get one ---

# The container's program takes a lock for each GPU that it sees, which the kernel frees with the process, and says so if one is taken.
witness=/witness
make_witness() {
  make_shared
  cat >"$work/witness.c" <<'C'
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
static void say(const char *file, const char *gpu)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
	char line[256] = "";
	strcat(strcat(strcat(strcat(line, gpu), " "), getenv("NAME")), "\n");
	if (write(fd, line, strlen(line)) < 0)
		_exit(1);
	close(fd);
}
int main(void)
{
	glob_t found;
	struct timespec now, pause = { 0 };
	glob("/dev/nvidia[0-9]*", 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[64] = "/tmp/";
		int fd = open(strcat(path, strrchr(found.gl_pathv[i], '/') + 1), O_RDWR | O_CREAT, 0666);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			say("/tmp/twice", found.gl_pathv[i]);
		say("/tmp/given", found.gl_pathv[i]);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	pause.tv_nsec = 100000000 + now.tv_nsec % 200000000;
	nanosleep(&pause, NULL);
	return 0;
}
C
  cc -static -o "$work/witness" "$work/witness.c"
  on_host install -m 0755 "$work/witness" "$root/witness"
}

# one NUMBER: a container from its creation to its end; it tries again when all GPUs are held.
one() {
  local name=c$1 bundle
  for _ in $(seq 200); do
    # As engines do it: one that was edited has the GPUs in it.
    lease_bundle "$name" any:1 "$witness"
    if create "$name"; then
      of_runc start "$name" >/dev/null 2>&1 || true
      for _ in $(seq 200); do
        [ "$(of_runc state "$name" 2>/dev/null | jq -r .status)" = running ] || break
        sleep 0.05
      done
      of_runc delete --force "$name" >/dev/null 2>&1 || true
      return 0
    fi
    of_runc delete --force "$name" >/dev/null 2>&1 || true
    sleep 0.1
  done
  echo "$name: $(cat "$work/$name.out")" >>"$work/failed"
}

many() {
  local i
  # Once, before they are many.
  new_bundle
  for i in $(seq "$1"); do
    while [ "$(jobs -rp | wc -l)" -ge "$2" ]; do wait -n || true; done
    one "$i" 3>&- 4>&- &
  done
  wait
}

@test "200 containers, 16 at a time: no GPU is lent twice, and all are free afterwards" {
  make_witness
  many "${GRAFT_LEASE_CONTAINERS:-200}" 16
  [ ! -e "$work/failed" ] || die "$(cat "$work/failed")"
  [ ! -e "$work/shared/twice" ] || die "$(cat "$work/shared/twice")"
  [ "$(wc -l <"$work/shared/given")" = "${GRAFT_LEASE_CONTAINERS:-200}" ]
  [ "$(cut -d ' ' -f 1 "$work/shared/given" | sort -u | wc -l)" -ge 4 ]
  becomes_held 0
  lease run -- true
  [ "$(count_files)" -le 1 ]
}

# Kills something of the test's own, at random moments.
reaper() {
  local pids pid
  while [ ! -e "$work/enough" ]; do
    mapfile -t pids < <(pgrep -f -- "--root $work/runc" || true)
    pid=${pids[RANDOM % (${#pids[@]} + 1)]:-}
    [ -z "$pid" ] || [ "$pid" = $$ ] || kill -9 "$pid" 2>/dev/null || true
    sleep 0.0$((RANDOM % 9 + 1))
  done
}

@test "the same with kill -9 of runtime, runc and init at random moments: afterwards all are free" {
  make_witness
  reaper 3>&- 4>&- &
  local reaper=$!
  many "${GRAFT_LEASE_KILLED:-60}" 16 &
  local many=$!
  wait $many || true
  touch "$work/enough"
  wait $reaper || true
  [ ! -e "$work/shared/twice" ] || die "$(cat "$work/shared/twice" "$work/shared/given" "$table/log")"
  for name in "$work"/runc/*; do of_runc delete --force "${name##*/}" 2>/dev/null || true; done
  for procs in /sys/fs/cgroup/devices/graft-lease-*/cgroup.procs; do [ ! -e "$procs" ] || xargs -r kill -9 <"$procs" 2>/dev/null || true; done
  becomes_held 0
}

@test "acquire, killed at every system call: afterwards all is free, or held by a whole lease" {
  local n=0 total
  on_host strace -f -qq -o "$work/calls" "$ctk" lease run -- true
  # From the directory of the table on.
  total=$(grep -n "$table" "$work/calls" | tail -n 1 | cut -d : -f 1)
  [ "$total" -gt 20 ]
  for n in $(seq "$(grep -n "$table" "$work/calls" | head -n 1 | cut -d : -f 1)" $((total + 10))); do
    local call when
    call=$(sed -n "${n}p" "$work/calls" | sed -E 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/')
    [[ $call =~ ^[a-z0-9_]+$ ]] && [ "$call" != execve ] && [ "$call" != arch_prctl ] || continue
    when=$(head -n "$n" "$work/calls" | grep -cE "^[0-9]+ +$call\(")
    on_host timeout 20 strace -f -qq -o /dev/null -e "inject=$call:signal=KILL:when=$when" "$ctk" lease run -- true >/dev/null 2>&1 || true
    # Whoever comes next gets all eight.
    on_host timeout 20 "$ctk" --quiet lease run -n 8 -- true 2>"$work/said" || die "killed at $call $when: $(cat "$work/said")" || return
    [ "$(count_files)" = "$(find "$table/held" -type f -regex '.*/[a-z2-7]*' | wc -l)" ] || die "killed at $call $when: $(ls -la "$table/held")" || return
  done
}

# --- holders ---

@test "reboot, another process of the same id, time" {
  local id start
  id=$(lease acquire -n 3 --for 1s)
  [ "$(lease list --json | jq -r '.leases[0].id')" = "$id" ]
  becomes_held 0
  id=$(lease acquire -n 3 --for 1h)
  sed -i 's/"boot": "[^"]*"/"boot": "00000000-0000-4000-8000-000000000000"/' "$table/held/$id"
  is_held 0
  on_host "$ctk" lease run -n 2 -- sleep 1000 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 2
  id=$(lease list --json | jq -r '.leases[0].id')
  start=$(jq .holder.start_time "$table/held/$id")
  jq .holder.pid "$table/held/$id" >>"$work/pids"
  sed -i "s/\"start_time\": $start/\"start_time\": $((start - 1))/" "$table/held/$id"
  is_held 0
  lease history | tail -n 3
  lease run -- true
  lease history | grep 'freed .* its process has ended'
  lease history | grep 'freed .* the host was started again'
}

@test "lease:ID shares what was taken by hand, and lasts when its time is over" {
  local id
  make_shared
  id=$(lease acquire -n 2 --for 2s)
  lease_bundle a "lease:$id" 'sleep 1000'
  create a
  is_held 2
  [ "$(gpus_of a | wc -w)" = 2 ]
  sleep 2.1
  is_held 2
  run ! lease release "$id"
  of_runc delete --force a
  becomes_held 0
}

@test "run, release, reclaim: variables, users, messages" {
  local id
  run -0 lease run -n 2 -- sh -c 'echo "$CUDA_VISIBLE_DEVICES|$NVIDIA_VISIBLE_DEVICES|$NVIDIA_LEASE"'
  [[ $output =~ ^(GPU-[0-9a-f-]{36},GPU-[0-9a-f-]{36})\|(.*)\|[a-z2-7]{12}$ ]]
  [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
  run -0 lease run --user nobody -- id -un
  [ "$output" = nobody ]
  run -7 lease run -- sh -c 'exit 7'
  run -126 on_host "$ctk" lease run -- /no/such/program
  [[ $output == *"exec failed: /no/such/program: no such file or directory"* ]]
  run -126 on_host "$ctk" lease run
  [[ $output == *"a command is needed, after '--'. Run the command with --help to see what it accepts."* ]]
  run -1 on_host "$ctk" lease acquire --for 3x
  [[ $output == *"'3x' is not a span of time. Write a number and a unit: 90s, 30m, 8h or 2d."* ]]
  run -1 on_host "$ctk" lease acquire -n 1 --claim any
  [[ $output == *"--count and --claim cannot be used together"* ]]
  SUDO_UID=1000 on_host "$ctk" lease run -- sh -c 'trap "" TERM; while :; do sleep 1; done' 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 1
  id=$(lease list --json | jq -r '.leases[0].id')
  lease list | grep -E "^0    held   $id  uid 1000 \(process [0-9]+, 0 s\)  sh$"
  run -1 on_host "$ctk" lease release "$id"
  [[ $output == *"lease $id ends with its holder, uid 1000 (process "*"End the holder, or run 'nvidia-ctk lease reclaim', which does it."* ]]
  lease reclaim --grace 1s --yes "$id" </dev/null
  becomes_held 0
  run -1 on_host "$ctk" lease reclaim "$id" </dev/null
  [[ $output == *"lease $id does not exist, or has ended. Run 'nvidia-ctk lease list' to see the leases of this host."* ]]
  id=$(lease acquire -n 2 --for 1h)
  lease release "$id"
  is_held 0
  sed -i 's/"on"/"off"/' "$config"
  run -1 on_host "$ctk" lease acquire
  [[ $output == *"leases are off in $config. Run 'nvidia-ctk config --in-place --set graft.leases.mode=on'."* ]]
}

@test "explain is a question: constraints, memory, places" {
  run -0 lease explain 'any:2;mem>=40G;same=numa;not=0,1'
  [ "$(wc -l <<<"$output")" = 2 ]
  run ! grep -E '^GPU [01]:' <<<"$output"
  run -0 lease explain --json any:8
  [ "$(jq length <<<"$output")" = 8 ]
  run -1 on_host "$ctk" lease explain 'any:2/mem>=999G'
  [[ $output == *"2 GPUs were asked for, but this host has 0 that can be lent and fit."* ]]
  is_held 0
  [ ! -e "$table" ]
  printf 'pool = ["0", "3"]\n' >>"$config"
  run -0 lease explain any:2
  [ "$(cut -d : -f 1 <<<"$output" | xargs)" = "GPU 0 GPU 3" ]
  lease list | grep '^1    not lent: not in graft.leases.pool$'
}

# --- a table that is damaged ---

# refuses TEXT: nothing is lent, at once, and the message says why.
refuses() {
  status=0
  on_host timeout 10 "$ctk" lease acquire -n 1 >"$work/said" 2>&1 || status=$?
  [ "$status" = 1 ] || die "status $status: $(cat "$work/said")" || return
  grep -F -- "$1" "$work/said" || die "$(cat "$work/said")"
}

@test "damage: nothing is lent, nobody hangs, and doctor repairs" {
  lease release "$(lease acquire)"
  local file=$table/held/abcdefgh2345
  mkfifo "$file"
  refuses "$table/held/abcdefgh2345 is damaged: not a file. Run 'nvidia-ctk lease doctor' as root."
  rm "$file"
  ln -s /dev/zero "$file"
  refuses "is damaged"
  rm "$file"
  truncate -s 1G "$file"
  refuses "is damaged"
  rm "$file"
  echo '{' >"$file"
  refuses "is damaged: invalid JSON"
  rm "$file"
  lease acquire --for 1h >"$work/id"
  cp "$table/held/$(cat "$work/id")" "$file"
  refuses "is damaged: it has the id of another lease"
  rm "$file"
  mkdir "$table/held/other"
  refuses "$table/held/other is damaged: not the name of a lease"
  run -1 on_host "$ctk" lease doctor
  [[ $output == *"$table: leases are on; 1 held
error: other: not the name of a lease"* ]]
  lease list | grep "$(cat "$work/id")"
  lease doctor --repair
  lease doctor
  [ ! -e "$table/held/other" ]
  is_held 1
  # The lock is the owner's alone, and no other file.
  rm "$table/lock"
  mkfifo -m 0600 "$table/lock"
  refuses "$table/lock is not a file of its owner alone"
  rm "$table/lock"
  lease acquire >/dev/null
  chmod 0777 "$table"
  refuses "is not a directory that only its owner, uid 0, may change"
  chmod 0755 "$table"
  flock "$table/lock" sleep 30 3>&- 4>&- &
  echo $! >>"$work/pids"
  sleep 0.2
  refuses "has held $table/lock for 5 s"
}

@test "100,000 dead leases are no hindrance, and a full disk refuses before it forgets" {
  local id
  # As below /run, where the table is unless somebody says otherwise.
  mkdir -m 0755 "$table"
  on_host mount -t tmpfs -o mode=755 none "$table"
  lease acquire --for 1h >"$work/id"
  id=$(cat "$work/id")
  on_host python3 - "$table/held" "$id" "${GRAFT_LEASE_DEAD:-100000}" <<'PYTHON'
import itertools, sys
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = open(folder + "/" + name).read().replace('"boot": "', '"boot": "0')
letters = "abcdefghijklmnopqrstuvwxyz234567"
for i, word in zip(range(count), itertools.product(letters, repeat=4)):
    other = "deadlyal" + "".join(word)
    open(folder + "/" + other, "w").write(text.replace(name, other))
PYTHON
  lease list | grep "$id"
  on_host timeout 60 "$ctk" lease acquire --for 1h
  is_held 2
  [ "$(on_host find "$table/held" -type f | wc -l)" = 2 ]
  on_host umount "$table"
  on_host mount -t tmpfs -o size=64k,mode=755 none "$table"
  head -c 60000 /dev/zero | on_host tee "$table/filler" >/dev/null
  on_host "$ctk" --quiet lease acquire --for 1h >/dev/null || true
  on_host sh -c "dd if=/dev/zero of=$table/filler2 2>/dev/null; true"
  run -1 on_host "$ctk" lease acquire -n 2
  [[ $output == *"no space left on device"* ]]
  on_host umount "$table"
}

@test "others can see the table, and cannot change it" {
  lease acquire --for 1h >/dev/null
  chmod a+rx "$work" "$BATS_FILE_TMPDIR/programs"
  chmod a+r "$config"
  run -0 on_host setpriv --reuid=65534 --regid=65534 --clear-groups "$ctk" --quiet lease list
  [[ $output == *"0    held"* ]]
  run -1 on_host setpriv --reuid=65534 --regid=65534 --clear-groups "$ctk" lease acquire
  [[ $output == *"is not a directory that only its owner, uid 65534, may change"* ]]
  is_held 1
}

# --- waiting ---

# hold_all FILE: holds all eight until FILE exists, and says when it ends.
hold_all() {
  # shellcheck disable=SC2016
  on_host "$ctk" --quiet lease run -n 8 -- sh -c 'while [ ! -e "$0" ]; do sleep 0.01; done; date +%s%N >"$0.ended"' "$1" 3>&- 4>&- &
  echo $! >>"$work/pids"
  becomes_held 8
}
# queued N: so many wait, within five seconds.
queued() {
  for _ in $(seq 250); do
    [ "$(find "$table/queue" -type f -name '[a-z2-7]*' 2>/dev/null | wc -l)" != "$1" ] || return 0
    sleep 0.02
  done
  die "$(lease list) instead of $1 waiting"
}
# waiter UID WORD...: in the background, with `lease run --wait 60s`.
waiter() {
  local uid=$1
  shift
  SUDO_UID=$uid on_host "$ctk" --quiet lease run --wait 60s "$@" 3>&- 4>&- &
  echo $! >>"$work/pids"
}

@test "whoever waits starts within 50 ms of the end of the holder" {
  local i best=1000000000 ended started
  for i in 1 2 3 4 5; do
    hold_all "$work/go$i"
    # shellcheck disable=SC2016
    waiter 1000 -n 2 -- sh -c 'date +%s%N >"$0.new"; mv "$0.new" "$0"' "$work/started$i"
    queued 1
    touch "$work/go$i"
    within_seconds 10 test -e "$work/started$i"
    ended=$(cat "$work/go$i.ended") started=$(cat "$work/started$i")
    [ $((started - ended)) -ge "$best" ] || best=$((started - ended))
    becomes_held 0
  done
  echo "$((best / 1000)) us"
  [ "$best" -lt 50000000 ]
}
within_seconds() {
  local limit=$1
  shift
  for _ in $(seq $((limit * 50))); do
    ! "$@" || return 0
    sleep 0.02
  done
  die "not within $limit s: $*"
}

@test "a container waits as NVIDIA_LEASE_WAIT says, by the runtime and by the hook" {
  make_shared
  lease_bundle a any:8 'sleep 1000'
  create a
  lease_bundle b any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_WAIT=60s"]'
  create b &
  queued 1
  lease list | grep -E '^-    waits  [a-z2-7]{12}  uid 0 \(process [0-9]+, [0-9]+ s\)  any:2$'
  of_runc delete --force a
  wait $!
  is_held 2
  of_runc delete --force b
  lease_bundle c 'any:8;wait=100s' 'sleep 1000'
  create c
  lease_bundle d any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_WAIT=60s"]' ".hooks = {prestart: [{path: \"$BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook\",
    args: [\"hook\", \"prestart\"], env: [\"NVIDIA_CTK_CONFIG_FILE_PATH=$config\", \"PATH=/usr/sbin:/usr/bin:/sbin:/bin\"]}]}"
  of_runc create --bundle "$bundle" --pid-file "$work/d.pid" d </dev/null >"$work/d.out" 2>&1 3>&- 4>&- &
  queued 1
  of_runc delete --force c
  wait $!
  is_held 2
  lease_bundle e any:2 'sleep 1000' '.process.env += ["NVIDIA_LEASE_WAIT=soon"]'
  run ! create e
  grep -F "the time to wait is not a span of time: 'soon'. Write a number and a unit: 90s, 30m, 8h or 2d." "$work/e.out"
}

@test "fifo: 50 who wait, of three users, start by age; one that was killed is left out" {
  local i
  printf 'order = "fifo"\n' >>"$config"
  hold_all "$work/go"
  for i in $(seq 50); do
    # shellcheck disable=SC2016
    waiter $((1000 + i % 3)) -n 8 -- sh -c 'echo "$1" >>"$0"' "$work/order" "$i"
    queued "$i"
    [ "$i" != 10 ] || jq -s 'max_by(.since).holder.pid' "$table"/queue/* >"$work/tenth"
  done
  kill -9 "$(cat "$work/tenth")"
  # Who comes now and does not wait is refused, and cannot jump the queue either.
  run -126 on_host "$ctk" lease run -- true
  touch "$work/go"
  for _ in $(seq 1500); do
    [ "$(wc -l <"$work/order" 2>/dev/null || echo 0)" -lt 49 ] || break
    sleep 0.02
  done
  diff <(seq 50 | grep -vx 10) "$work/order"
  becomes_held 0
  queued 0
}

@test "fair: who holds less goes first; a limit keeps a user waiting, and nobody else" {
  local uid
  hold_all "$work/go"
  for uid in 1001 1002 1003; do
    for _ in 1 2 3 4 5; do waiter $uid -- sleep 1000; done
  done
  queued 15
  touch "$work/go"
  becomes_held 8
  [ "$(lease list --json | jq -c '[.leases[].uid] | group_by(.) | map(length) | sort')" = "[2,3,3]" ]
  kill_holders
  becomes_held 0
  printf 'limits = ["1001=2", "default=4"]\n' >>"$config"
  waiter 1001 -n 2 -- sleep 1000
  becomes_held 2
  waiter 1001 -- sleep 1000
  queued 1
  waiter 1002 -n 4 -- sleep 1000
  becomes_held 6
  SUDO_UID=1001 run -126 on_host "$ctk" lease run -- true
  [[ $output == *"uid 1001 holds 2 and may hold 2 at once. Wait until one of them is free, or raise graft.leases.limits in config.toml."* ]]
  SUDO_UID=1003 run -126 on_host "$ctk" lease run -n 5 -- true
  [[ $output == *"uid 1003 holds 0 and may hold 4 at once."* ]]
}

@test "the head of the queue is not starved, and those behind it take what it has no use for" {
  printf 'order = "fifo"\n' >>"$config"
  waiter 1001 -n 3 -- sleep 1000
  becomes_held 3
  waiter 1002 --claim 'any:4;not=4;5;6;7' -- sleep 1000
  queued 1
  run -126 on_host "$ctk" lease run --claim 'any;not=4;5;6;7' -- true
  [[ $output == *"GPUs are free, but 1 waits first. See 'nvidia-ctk lease list'; wait with NVIDIA_LEASE_WAIT=30m or --wait."* ||
    $output == *"1 GPU was asked for, 0 of 4 are free"* ]]
  run -0 lease run -- true
}

@test "list --watch, and metrics for node_exporter" {
  lease acquire -n 3 --for 1h >/dev/null
  SUDO_UID=1000 lease acquire -n 1 --for 1h >/dev/null
  on_host timeout 3 "$ctk" --quiet lease list --watch >"$work/watched" || true
  [ "$(grep -c '^GPU  STATE' "$work/watched")" -ge 2 ]
  run ! grep $'\033' "$work/watched"
  lease metrics >"$work/metrics"
  [ "$(grep -c '^graft_lease_gpu_leases{gpu="[0-7]",uuid="GPU-[0-9a-f-]*"} 1$' "$work/metrics")" = 4 ]
  grep -Fx 'graft_lease_owner_slots{uid="0"} 3' "$work/metrics"
  grep -Fx 'graft_lease_owner_slots{uid="1000"} 1' "$work/metrics"
  grep -Fx 'graft_lease_waiting 0' "$work/metrics"
  grep -Fx 'graft_lease_damaged 0' "$work/metrics"
  lease metrics --output "$work/metrics.prom"
  diff "$work/metrics" "$work/metrics.prom"
}

# scope WORLD: which nodes a command with two GPUs can open, in a cgroup of its own.
scope() {
  # shellcheck disable=SC2016
  "$1" "$ctk" --quiet lease run --scope -n 2 -- sh -c 'for node in /dev/nvidia[0-7] /dev/nvidiactl; do
    printf "%s: " "${node#/dev/}"; (: <"$node") 2>&1 | sed "s/.*: //"; done; grep -c graft-lease /proc/self/cgroup'
}

@test "run --scope: no other GPU can be opened, what it leaves behind holds the lease, and the cgroup goes" {
  local world
  for world in on_host v2; do
    scope $world >"$work/$world" || [ $world = v2 ] || die "$(cat "$work/$world")"
    # Where a program may not be loaded, there is no such cgroup.
    ! grep -q 'cannot load device program' "$work/$world" || continue
    [ "$(grep -cE '^nvidia[0-7]: No such device or address$' "$work/$world")" = 2 ] || die "$world: $(cat "$work/$world")"
    [ "$(grep -cE '^nvidia[0-7]: Operation not permitted$' "$work/$world")" = 6 ]
    grep -Fx 'nvidiactl: No such device or address' "$work/$world"
    [ "$(tail -n 1 "$work/$world")" = 1 ]
    # From where its hierarchy is seen, it is gone.
    $world "$ctk" --quiet lease run -- true
  done
  lease run --scope -- sh -c 'sleep 1000 >/dev/null 2>&1 3>&- 4>&- &'
  is_held 1
  on_host xargs kill <"/sys/fs/cgroup/devices$(jq -r 'select(.claim == "any:1").holder.cgroup' "$table"/held/* | tail -n 1)/cgroup.procs"
  becomes_held 0
  lease run -- true
  run ! ls -d /sys/fs/cgroup/devices/graft-lease-*
  run -126 on_host "$ctk" lease run --scope -n 9 -- true
  run ! ls -d /sys/fs/cgroup/devices/graft-lease-*
}
