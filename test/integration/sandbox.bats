# SPDX-License-Identifier: Apache-2.0
# files: disk
# A tool that makes its own containers needs only the output of plan --json: bubblewrap, unprivileged
# namespaces with a procfs of their own, by a dozen lines of jq. (cli-callers.bats has the same of list --json, on the host's /proc.)

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }
setup() {
  test_setup
  make_root debian overlay
  show_whole_proc
}
teardown() { test_teardown; }

# arguments FILE: the options of bwrap for the edits of that file, in the array `arguments`.
arguments() {
  mapfile -t arguments < <(jq -r --arg work "$work" '.edits | to_entries[] | .key as $n | .value |
    if .kind == "bind" then if (.flags // []) | index("ro") then "--ro-bind" else "--bind" end, .source, .target
    elif .kind == "device" then "--dev-bind", .source, .target
    elif .kind == "directory" then "--dir", .target
    elif .kind == "tmpfs" then "--tmpfs", .target
    elif .kind == "file" then "--ro-bind", "\($work)/file-\($n)", .target
    elif .kind == "symlink" then "--symlink", .content, .target
    elif .kind == "env" then "--setenv", .target, .content
    elif .kind == "ldcache" then "--setenv", "LD_LIBRARY_PATH", (.folders | join(":"))
    elif .kind == "cgroup" then empty
    else error("an edit that bubblewrap cannot make: " + .kind) end' "$1")
  local n
  for n in $(jq -r '.edits | to_entries[] | select(.value.kind == "file") | .key' "$1"); do
    jq -j ".edits[$n].content" "$1" >"$work/file-$n"
  done
}

# sandbox COMMAND...: what bubblewrap makes of COMMAND's JSON has one GPU.
sandbox() {
  on_host "$@" 2>/dev/null >"$work/edits"
  jq -e 'all(.edits[]; .why != null and .why != "")' "$work/edits"
  arguments "$work/edits"
  [ ${#arguments[@]} -gt 30 ]
  run on_host bwrap --bind "$root" / --proc /proc --dev /dev --unshare-all "${arguments[@]}" /probe
  read_answers
  expect open-nvidia0 "No such device or address"
  expect open-nvidia1 ""
  expect nvidia-smi 1
  expect nvidia-smi-first "GPU 0: NVIDIA H100 80GB HBM3"
}

@test "bubblewrap makes a sandbox with one GPU of what plan --json says" {
  sandbox nvidia-container-cli plan --json --compute --utility --device 0 "$root"
  expect ls-nvidia "nvidia-uvm nvidia-uvm-tools nvidia0 nvidiactl"
  expect loader /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14
}
