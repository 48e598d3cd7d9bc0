# SPDX-License-Identifier: Apache-2.0
# Which capabilities each step of real starts holds, compared with the tables of docs/ARCHITECTURE.md (section "Capabilities").

load lib.bash

setup_file() {
  start_host dgx-h100
  install_cli runtime/nvidia-container-runtime cdi_hook/nvidia-cdi-hook
}
teardown_file() { stop_host; }
setup() {
  runtime_setup
  export ASAN_OPTIONS=detect_leaks=0
  printf '[nvidia-container-runtime]\nlog-level = "debug"\ndebug = "%s"\nruntimes = ["runc"]\n' "$work/runtime.log" >"$work/config.toml"
}
teardown() { test_teardown; }

calls=capset,prctl,execve,execveat,clone,clone3,fork,vfork,mount,umount2,setns,unshare,pivot_root,open_tree,move_mount,mount_setattr,fsopen
calls+=,fsconfig,fsmount,bpf,chroot,setuid,setgid,setreuid,setregid,setresuid,setresgid,setfsuid,setfsgid,setgroups,chown,lchown,fchown,fchownat
calls+=,mknod,mknodat,kill,init_module,finit_module
tracer=(strace -f -q -s 4096 -e "trace=$calls")

# holds PROCESS...: the trace is what the tables say of these processes, and has no others.
holds() {
  python3 "$BATS_TEST_DIRNAME/capability_trace.py" "$top/docs/ARCHITECTURE.md" "$work/trace" "$@" || die "$(cat "$work/trace")"
}
# traced WORD...: on the host, in a mount namespace that ends with it.
traced() {
  on_host unshare --mount --propagation private -- "${old_kernel[@]}" "${tracer[@]}" -o "$work/trace" "$@"
}

# A requirement that only NVML can decide.
needs_nvml=(--require 'arch>=3.0')

@test "configure without a container" {
  make_root small overlay
  traced "$cli" configure --no-cgroups --compute --utility --device=0 "$root"
  holds configure reader
}

# Apptainer's way: a user with capabilities of root's.
@test "configure by a user to whom capabilities were given" {
  local caps=+kill,+setuid,+setgid,+sys_chroot,+chown,+fowner,+mknod,+sys_admin,+dac_read_search,+sys_ptrace,+dac_override,+setpcap
  make_root small overlay
  traced setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps="$caps" --ambient-caps="$caps" \
    "$cli" configure --no-cgroups --compute --utility --device=0 "$root"
  on_host grep -qF libcuda.so.1 "$root/etc/ld.so.cache"
  holds "configure, as a user" reader
}

@test "configure that has to ask NVML" {
  make_root small overlay
  traced "$cli" configure --no-cgroups --compute --utility --device=0 "${needs_nvml[@]}" "$root"
  holds configure nvml reader
}

@test "configure that loads kernel modules" {
  make_root small overlay
  traced "$cli" --load-kmods configure --no-cgroups --compute --utility --device=0 "$root"
  holds "configure --load-kmods" reader
}

@test "info, list and plan" {
  make_root small overlay
  traced "$cli" info >/dev/null
  holds info nvml
  traced "$cli" list >/dev/null
  holds list
  traced "$cli" plan --device=0 --compute --utility "$root" >/dev/null
  holds plan reader
}

@test "configure as the prestart hook of runc" {
  make_root small overlay
  make_bundle
  sed -i "s|^exec nvidia-container-cli|export ASAN_OPTIONS=detect_leaks=0; exec ${old_kernel[*]} ${tracer[*]} -o $work/trace $cli|" "$work/hook"
  run_container v1
  expect nvidia-smi 1
  holds configure reader
}

@test "nvidia-container-runtime-hook at prestart" {
  make_root small overlay
  make_bundle '.process.env += ["NVIDIA_VISIBLE_DEVICES=0"]'
  : >"$work/hook.toml"
  cat >"$work/hook" <<HOOK
#!/bin/bash
export ASAN_OPTIONS=detect_leaks=0
exec ${old_kernel[*]} ${tracer[*]} -o $work/trace $BATS_FILE_TMPDIR/programs/nvidia-container-runtime-hook -config $work/hook.toml prestart
HOOK
  run_container v1
  expect nvidia-smi 1
  holds hook reader
}

# creates WORD...: by way of the shim, with these words behind `create`.
creates() {
  make_root small overlay
  new_bundle
  edit_bundle --arg root "$root" '.process.terminal = false | .process.args = ["/probe"] | del(.process.rlimits) |
    .root = {path: $root, readonly: false} | .process.env += ["NVIDIA_VISIBLE_DEVICES=0"] |
    .mounts |= map(if .destination == "/proc" then {destination: "/proc", source: "/proc", type: "bind", options: ["rbind"]} else . end)'
  # strace stays as long as the container does.
  on_host "${old_kernel[@]}" "${tracer[@]}" -o "$work/trace" "$runtime" --root "$state" create --bundle "$bundle" "$@" "$container" \
    </dev/null >"$work/out" 2>&1 3>&- 4>&- &
  for _ in $(seq 500); do
    ! grep -qE "^$(awk 'NR == 1 { print $1 }' "$work/trace" 2>/dev/null) +\+\+\+ exited" "$work/trace" 2>/dev/null || break
    sleep 0.02
  done
  run_created on_host runc --root "$state" || die "$(cat "$work/out")" || return
  wait $!
  expect nvidia-smi 1
}

@test "nvidia-container-runtime that leaves the rest to a hook" {
  creates
  holds runtime cdi-hook reader
}

@test "nvidia-container-runtime that does the rest between create and start" {
  creates --pid-file "$work/pid"
  grep -q 'setns(.*CLONE_NEWNS) *= 0' "$work/trace"
  holds runtime reader
}

# Between setns(2) there and back every path is one of the image: only "." and "/" are opened by name, as O_PATH.
opens_nothing_inside() {
  awk '/setns\([0-9]+, CLONE_NEWNS\) *= 0/ { inside[$1] = !inside[$1]; n++ }
    inside[$1] && /^[0-9]+ +open(at)?\((AT_FDCWD, )?"/ && !/\((AT_FDCWD, )?"[.\/]", [^)]*O_PATH/ { print; bad = 1 }
    END { exit bad || n < 2 }' "$work/trace"
}

@test "while a container's mounts are joined, nothing is opened by a path of the host" {
  tracer=(strace -f -q -e 'trace=setns,open,openat')
  sed -i 's/"debug"$/"error"/' "$NVIDIA_CTK_CONFIG_FILE_PATH"
  creates --pid-file "$work/pid"
  opens_nothing_inside
  make_root small overlay
  # shellcheck disable=SC2016
  on_host unshare --mount --propagation private -- bash -c 'unshare --mount sh -c "echo \$\$ >$0.new; mv $0.new $0; exec sleep 60" &
    trap "kill $!" EXIT
    until [ -s "$0" ]; do sleep 0.01; done
    "${@:1:$#-1}" --pid="$(cat "$0")" "${@: -1}"' "$work/sleeper" \
    "${old_kernel[@]}" "${tracer[@]}" -o "$work/trace" "$cli" --debug="$work/cli.log" configure --no-cgroups --compute --utility --device=0 \
    "$root" </dev/null 3>&- 4>&-
  grep -q 'mounting' "$work/cli.log"
  opens_nothing_inside
}

@test "hooks of specifications" {
  make_root small overlay
  printf '{"ociVersion":"1.0.2","id":"x","pid":1,"bundle":"%s"}' "$bundle" >"$work/state"
  mkdir -p "$bundle"
  printf '{"ociVersion":"1.0.2","root":{"path":"%s"}}' "$root" >"$bundle/config.json"
  for words in "create-symlinks --link libcuda.so.1::/usr/lib/libcuda.so" "update-ldcache --folder /usr/lib" "chmod --mode 755 --path /etc" \
    "enable-cuda-compat --host-driver-version 550.54.14" disable-device-node-modification update-application-profile \
    "mount-files --file /etc/hostname::/etc/a-file" "sequence mount-files --file /etc/hostname::/etc/b-file --then update-ldcache --folder /usr/lib"; do
    # shellcheck disable=SC2086
    traced "$BATS_FILE_TMPDIR/programs/nvidia-cdi-hook" $words <"$work/state" || die "$words: $(cat "$work/trace")" || return
    holds cdi-hook || holds cdi-hook reader || die "$words" || return
  done
}

# The oracle itself: each of these is found.
@test "a trace that breaks a rule is told from one that does not" {
  make_root small overlay
  traced "$cli" configure --no-cgroups --compute --utility --device=0 "$root"
  cp "$work/trace" "$work/right"
  broken() {
    sed -E "$1" "$work/right" >"$work/trace"
    ! cmp -s "$work/right" "$work/trace" || die "nothing is broken by $1" || return
    run holds configure reader
    [ "$status" -eq 1 ] || die "$1 is not found" || return
    [[ $output == *"$2"* ]] || die "$1: ${lines[0]}"
  }
  broken '/PR_SET_NO_NEW_PRIVS/d' 'mount without no_new_privs'
  broken 's/(effective=)[^,]*(, .*inheritable=)/\10\2/' 'steps are'
  broken 's/effective=1<<CAP_KILL,/effective=1<<CAP_KILL|1<<CAP_SYS_BOOT,/' 'a set that is no row'
  broken '0,/inheritable=0/s//inheritable=1<<CAP_KILL/' 'inheritable'
  broken 's/^([0-9]+) +(move_mount.* = 0)$/\1 \2\n\1 execve("\/bin\/sh", ["sh"], 0x1) = 0/' 'after the container was touched'
  broken '0,/capset.*effective=1<<CAP_KILL,.*/s//&\n'"$(head -1 "$work/right" | cut -d ' ' -f 1)"' setns(3, CLONE_NEWNS) = 0/' 'setns(3, CLONE_NEWNS)'
  broken '0,/capset.*/s//&\n'"$(head -1 "$work/right" | cut -d ' ' -f 1)"' prctl(PR_CAPBSET_DROP, CAP_CHOWN) = 0/' 'drops from the bounding set'
}
