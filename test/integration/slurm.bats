# SPDX-License-Identifier: Apache-2.0
# Slurm: one node of Debian's own packages, whose device cgroup lets a job open its GPUs and no other; in jobs, containers made in the ways that are usual in HPC. What
# docs/hpc.md shows is the configuration and the first test. Charliecloud and runc are Debian's, and so is Apptainer, of a newer release, with its own C library. No release has enroot: a
# script makes its calls. Without a network there is no Apptainer: its tests are skipped, and its section of the page.
# lane: suite slurm

load lib.bash
load engines.bash
load docs.bash

setup_file() {
  work=$BATS_FILE_TMPDIR/work
  mkdir -p "$work"
  page_machine dgx-h100
  rootless true
  apptainer_machine
  slurm_machine
}
teardown_file() {
  # The daemons' cgroups are the machine's own, named after the node.
  stop_machine
  find /sys/fs/cgroup/*/slurm_"$(node)" -depth -type d -exec rmdir {} + 2>/dev/null || true
}
setup() {
  work=$BATS_FILE_TMPDIR/work
  [ ! -e "$work/why" ] || skip "$(cat "$work/why")"
}

node() { echo gpu01; }

# apptainer_machine: what Apptainer's package installs, on the machine. Its C library replaces that of Debian 12, which the other programs can use as well.
apptainer_machine() {
  local apptainer status=0
  apptainer=$("$top/test/tools/release-root" apptainer sid 2>"$work/no-apptainer") || status=$?
  case "$status" in
  0) rm "$work/no-apptainer" ;;
  77) return 0 ;;
  *) cat "$work/no-apptainer" >&2 && return 1 ;;
  esac
  on_host cp -a --remove-destination --no-target-directory "$apptainer/usr" /usr
  on_host cp -a --no-target-directory "$apptainer/etc/apptainer" /etc/apptainer
  on_host cp -a --no-target-directory "$apptainer/var/lib/apptainer" /var/lib/apptainer
}
needs_apptainer() { [ ! -e "$work/no-apptainer" ] || skip "$(tail -n 1 "$work/no-apptainer")"; }

# slurm_machine: what a node has besides Slurm's configuration: its name, munge's key, and the programs that make containers.
slurm_machine() {
  local directory
  [ ! -e "/sys/fs/cgroup/devices/slurm_$(node)" ] || { echo "another Slurm runs on this machine" >"$work/why"; return 0; }
  [ -e /sys/fs/cgroup/devices/cgroup.procs ] || { echo "Debian 12's Slurm restricts devices by cgroup v1, which this machine has not" >"$work/why"; return 0; }
  # shellcheck disable=SC2016
  on_host sh -ec '
    touch /run/uts
    unshare --uts=/run/uts hostname "$0"
    # Names are looked up for addresses beside the loopback only.
    ip address add 192.0.2.1/32 dev lo
    printf "127.0.0.1 localhost\n192.0.2.1 %s\n" "$0" >/etc/hosts
    # Beside what the packages install, as the page takes no more for granted.
    mkdir -p /etc/enroot/hooks.d /run/munge /run/slurm
    chown munge /run/munge' "$(node)"
  : >"$work/named"
  command_of systemctl 'for name in "$@"; do
  case $name in
  munge) setpriv --reuid munge --regid munge --clear-groups munged --force >/dev/null 2>&1 ;;
  slurmctld | slurmd) "$name" >/var/log/slurm/$name.start 2>&1 ;;
  esac
done
end=$(($(date +%s) + 100))
while [ "$(date +%s)" -lt "$end" ]; do
  [ "$(timeout 5 sinfo --noheader --format %t 2>/dev/null)" != idle ] || exit 0
  sleep 0.1
done
tail /var/log/slurm/*
exit 1'
  for directory in cuda cuda.sif; do
    cp -a "$(image small)" "$work/home/$directory"
    install -m 0755 "$top/test/integration/probe" "$work/home/$directory/probe"
    mkdir -p "$work/home/$directory/var/tmp"
    chown -R --no-dereference 65534:65534 "$work/home/$directory"
  done
  enroot_command
}

# The tests below need the configuration that the page writes.
@test "docs/hpc.md, with enroot's calls made by a script" {
  if [ -e "$work/no-apptainer" ]; then
    sed '/^## Apptainer/,/^## Charliecloud/d' "$top/docs/hpc.md" >"$work/hpc.md"
    "$top/test/tools/page" run "$work/hpc.md" "$work/shell"
  else
    run_page hpc
  fi
}

# --- two jobs at once ---

# two_jobs TEXT: the same job twice, each with two GPUs, the second while the first runs. The answers are in $work/home/1 and 2.
two_jobs() {
  local job pids=()
  rm -f "$work"/home/{1,2}{,.done}
  for job in 1 2; do
    # Each waits for the other: they have their GPUs at the same time.
    timeout --kill-after=5 60 "$work/shell" user "srun --immediate=30 --gres=gpu:2 sh -c 'job=$job; touch $job.here; for i in \$(seq 200); do [ ! -e 1.here ] || [ ! -e 2.here ] || break; sleep 0.1; done; export PROBE_MINORS=\"0 1 2 3 4 5 6 7\"; echo gpus: \$SLURM_STEP_GPUS; $1' >$job 2>&1" 3>&- 4>&- &
    pids+=($!)
  done
  wait "${pids[@]}" || true
  rm -f "$work"/home/{1,2}.here
}

# expect_job JOB NODES: exactly its two GPUs are seen and may be opened. NODES: own, if it has nodes of no other; all, if it has.
expect_job() {
  local gpus gpu uuids
  output=$(cat "$work/home/$1")
  read_answers
  IFS=, read -ra gpus <<<"${answer[gpus]-}"
  [ "${#gpus[@]}" -eq 2 ] || { say "$output" && cat "$work/home/hook.log" && return 1; }
  mapfile -t uuids < <(host_uuids)
  expect nvidia-smi 2 || return
  expect nvidia-smi-uuids "${uuids[gpus[0]]} ${uuids[gpus[1]]} " || return
  for gpu in 0 1 2 3 4 5 6 7; do
    if [[ " ${gpus[*]} " == *" $gpu "* ]]; then
      expect "open-nvidia$gpu" "No such device or address" || return # the simulated node: the open was allowed
    elif [ "$2" = own ]; then
      expect "open-nvidia$gpu" "" || return # no such node
    else
      expect "open-nvidia$gpu" "Operation not permitted" || return
    fi
  done
  expect made-nvidia7 "mknod refused" || return
  echo "${gpus[*]}"
}

# expect_disjoint NODES
expect_disjoint() {
  local first second
  first=$(expect_job 1 "$1") || { say "$first" && return 1; }
  second=$(expect_job 2 "$1") || { say "$second" && return 1; }
  [ -z "$(tr ' ' '\n' <<<"$first $second" | sort | uniq -d)" ] || die "both have a GPU: $first, $second"
}

@test "two jobs at once, enroot's calls made by a script: disjoint GPUs, and nodes of no other" {
  cp -a "$work/home/cuda" "$work/home/cuda1"
  cp -a "$work/home/cuda" "$work/home/cuda2"
  two_jobs 'enroot start cuda$job /probe'
  expect_disjoint own
}

@test "two jobs at once, Apptainer with --nvccli and --contain: disjoint GPUs, and nodes of no other" {
  needs_apptainer
  two_jobs 'NVIDIA_VISIBLE_DEVICES=$SLURM_STEP_GPUS apptainer exec --contain --nvccli cuda.sif /probe'
  expect_disjoint own
}

# Without --contain, the container has the host's /dev.
@test "two jobs at once, Apptainer with --nvccli alone: nodes of all, and only the job's can be opened" {
  needs_apptainer
  two_jobs 'apptainer exec --nvccli cuda.sif /probe'
  expect_disjoint all
}

# The container stays in the job's cgroup, since an ordinary user's runc makes none.
@test "two jobs at once, runc and the hook: disjoint GPUs, and nodes of no other" {
  local job
  for job in 1 2; do
    mkdir -p "$work/home/bundle$job"
    cp -a "$(image small)" "$work/home/bundle$job/rootfs"
    install -m 0755 "$top/test/integration/probe" "$work/home/bundle$job/rootfs/probe"
    chown -R --no-dereference 65534:65534 "$work/home/bundle$job"
    "$work/shell" user "cd bundle$job && runc spec --rootless"
    jq '.process.terminal = false | .process.args = ["/probe"] | .process.env += ["PROBE_MINORS=0 1 2 3 4 5 6 7"] | del(.process.rlimits) | .root.readonly = false |
      .hooks.prestart = [{path: "/usr/bin/nvidia-container-runtime-hook", args: ["nvidia-container-runtime-hook", "prestart"]}]' \
      "$work/home/bundle$job/config.json" >"$work/home/bundle$job/job.json"
  done
  cat >"$work/home/runc-job" <<'JOB'
jq --arg gpus "$SLURM_STEP_GPUS" '.process.env += ["NVIDIA_VISIBLE_DEVICES=" + $gpus]' "bundle$1/job.json" >"bundle$1/config.json"
exec runc --root "$PWD/runc$1" run --bundle "bundle$1" "job$1"
JOB
  two_jobs 'sh ./runc-job $job'
  expect_disjoint own
}
