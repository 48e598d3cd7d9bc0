# SPDX-License-Identifier: Apache-2.0
# What nvidia-ctk writes as root, in directories where another user has put links, files and pipes before it.

load lib.bash

setup_file() { start_host dgx-h100; }
teardown_file() { stop_host; }

ctk=$build/src/cli/ctk/nvidia-ctk
mallory=12345
switch=/proc/sys/fs/protected_symlinks

setup() {
  test_setup
  shared=$work/shared
  mkdir -m 1777 "$shared"
  printf 'disable-require = false\n' >"$work/victim"
  chmod 0600 "$work/victim"
  mkdir "$work/etc"
  export NVIDIA_CTK_CONFIG_FILE_PATH=$work/config.toml
}
teardown() {
  [ ! -e "$work/switch" ] || cp "$work/switch" "$switch"
  test_teardown
}

# plant TEXT LINK [OWNER]
plant() {
  ln -s "$1" "$2"
  chown -h "${3:-$mallory}" "$2"
}

# run_ctk WORD...: on the host; the word OUT stands for the path that is tried.
run_ctk() { run on_host "$ctk" "${@//OUT/$out}"; }

victim_is_whole() {
  [ "$(stat -c '%F %a %u' "$work/victim")" = 'regular file 600 0' ]
  printf 'disable-require = false\n' | cmp - "$work/victim"
  [ -z "$(ls "$work/etc")" ] || die "made: $(ls "$work/etc")"
}

# Every command that writes a file of a name that its caller chooses, a line each.
commands() {
  cat <<COMMANDS
cdi generate --output=OUT.yaml
cdi generate --output=OUT.json
cdi transform root --from=/ --to=/x --input=$work/spec.yaml --output=OUT.yaml
config --output=OUT
config default --output=OUT
COMMANDS
}

# rewriters: those that change the file that they read.
rewriters() {
  cat <<COMMANDS
config --config-file=OUT --in-place --set disable-require
config --config-file=OUT --output=OUT --set disable-require
runtime configure --runtime=containerd --config=OUT --drop-in-config=
runtime configure --runtime=containerd --config=$work/config-1.toml --drop-in-config=OUT
runtime configure --runtime=crio --config=$work/config-2.toml --drop-in-config=OUT
runtime configure --runtime=docker --config-mode=hook --nvidia-runtime-hook-path=/usr/bin/x --oci-hook-path=OUT
COMMANDS
}

make_spec() { on_host "$ctk" --quiet cdi generate --output="$work/spec.yaml"; }

# each_command LIST FUNCTION: with `words` the words of a command, and `file` what it would write.
each_command() {
  local line n=0
  while read -r line; do
    out=$shared/out$((n++))
    read -ra words <<<"$line"
    file=$out$(grep -o 'OUT\.[a-z]*' <<<"$line" | sed 's/OUT//' | head -n 1)
    "$2"
  done < <("$1")
}

replaces_a_link() {
  plant "$work/victim" "$file"
  run_ctk "${words[@]}"
  [ "$status" -eq 0 ] || die "${words[*]}: $output"
  [ "$(stat -c '%F %u' "$file")" = 'regular file 0' ] || die "${words[*]}: $(ls -l "$file")"
  victim_is_whole
  # A link that leads nowhere yet.
  rm "$file"
  plant "$work/etc/new" "$file"
  run_ctk "${words[@]}"
  [ "$status" -eq 0 ] && [ "$(stat -c '%F %u' "$file")" = 'regular file 0' ]
  victim_is_whole
}

@test "a link of another user at the end of a path is replaced, and not followed" {
  make_spec
  each_command commands replaces_a_link
}

@test "the same where the kernel's own protection is on" {
  [ "$(cat "$switch")" = 0 ] || return 0 # the test before was one with it
  cat "$switch" >"$work/switch"
  echo 1 >"$switch" || skip "protected-symlinks: it cannot be switched here"
  make_spec
  each_command commands replaces_a_link
  each_command commands refuses_a_way
}

refuses_to_read() {
  plant "$work/victim" "$file"
  run_ctk "${words[@]}"
  [ "$status" -eq 1 ] || die "${words[*]}: $output"
  [[ $output == *"cannot read $file: $file is a link of user $mallory in a directory that others may write to; remove it, or name another place"* ]] ||
    die "${words[*]}: $output"
  [ -L "$file" ]
  victim_is_whole
}

@test "a file that is read and written is not read behind a link of another user" {
  each_command rewriters refuses_to_read
}

refuses_a_way() {
  local way=$shared/way-${file##*/}
  rm -f "$way"
  plant "$work/etc" "$way"
  out=$way/${out##*/}
  run_ctk "${words[@]}"
  [ "$status" -eq 1 ] || die "${words[*]}: $output"
  [[ $output == *"$way is a link of user $mallory in a directory that others may write to"* ]] || die "${words[*]}: $output"
  victim_is_whole
  # Nor are directories made there.
  out=$way/deep/${out##*/}
  run_ctk "${words[@]}"
  [ "$status" -eq 1 ]
  victim_is_whole
}

@test "a link of another user on the way is an error that names it" {
  make_spec
  each_command commands refuses_a_way
  each_command rewriters refuses_a_way
}

refuses_a_file() {
  echo theirs >"$file"
  chown "$mallory" "$file"
  run_ctk "${words[@]}"
  [ "$status" -eq 1 ] || die "${words[*]}: $output"
  [[ $output == *"cannot write $file: $file is a file of user $mallory in a directory that others may write to"* ]] || die "${words[*]}: $output"
  [ "$(cat "$file")" = theirs ]
  rm "$file"
  mkfifo "$file"
  chown "$mallory" "$file"
  run timeout 10 nsenter --mount="/proc/$(cat "$BATS_FILE_TMPDIR/host.pid")/ns/mnt" -- "$ctk" "${words[@]//OUT/$out}"
  [ "$status" -eq 1 ] || die "${words[*]}: $output"
  [[ $output == *"$file is a pipe of user $mallory"* ]] || die "${words[*]}: $output"
}

@test "another user's file or pipe in a shared directory is not written to" {
  commands() { printf '%s\n' 'cdi generate --output=OUT.yaml' 'config --output=OUT' 'config default --output=OUT'; }
  each_command commands refuses_a_file
}

@test "backups: neither written through a link, nor read, nor left for others to read" {
  out=$work/etc/config.toml
  rmdir "$work/etc"
  mkdir -m 1777 "$work/etc"
  printf 'version = 2\n' >"$out"
  chmod 0600 "$out"
  plant "$work/victim" "$out.nvidia-ctk.bak"
  run_ctk runtime configure --runtime=containerd --config=OUT --drop-in-config=
  [ "$status" -eq 1 ]
  [[ $output == *"cannot read $out.nvidia-ctk.bak: $out.nvidia-ctk.bak is a link of user $mallory"* ]] || die "$output"
  [ "$(cat "$out")" = "version = 2" ]
  rm "$out.nvidia-ctk.bak"
  run_ctk runtime configure --runtime=containerd --config=OUT --drop-in-config=
  [ "$status" -eq 0 ] || die "$output"
  [ "$(stat -c '%F %a %u' "$out.nvidia-ctk.bak")" = 'regular file 600 0' ]
  # What undoes it removes a link, and nothing behind it.
  run_ctk runtime configure --runtime=containerd --config=OUT --drop-in-config= --undo
  [ "$status" -eq 0 ] || die "$output"
  [ "$(cat "$out")" = "version = 2" ]
  [ ! -e "$out.nvidia-ctk.bak" ]
}

@test "refresh: a specification of that name behind a link of another user is not taken, and not touched" {
  make_spec
  plant "$work/spec.yaml" "$shared/nvidia.yaml"
  sha256sum "$work/spec.yaml" >"$work/sum"
  out=$shared/nvidia.yaml
  run_ctk cdi refresh --output=OUT --spec-dir="$work/none"
  [ "$status" -eq 1 ]
  [[ $output == *"cannot read $out: $out is a link of user $mallory"* ]] || die "$output"
  sha256sum --check --quiet "$work/sum"
}

@test "links that the system's owner made are followed: in a directory of root's, and root's own in a shared one" {
  printf 'disable-require = false\n' >"$work/real.toml"
  local link
  for link in "$work/etc/config.toml" "$shared/config.toml"; do
    plant "$work/real.toml" "$link" 0
    out=$link
    run_ctk config --config-file=OUT --in-place --set disable-require=true
    [ "$status" -eq 0 ] || die "$output"
    [ -L "$link" ]
    grep -qx 'disable-require = true' "$work/real.toml"
    printf 'disable-require = false\n' >"$work/real.toml"
  done
  rm "$work/etc/config.toml"
  # On the way, links are only a matter of shared directories.
  mkdir "$work/there"
  plant "$work/there" "$work/etc/dir"
  out=$work/etc/dir/config.toml
  run_ctk config default --output=OUT
  [ "$status" -eq 0 ] && [ -f "$work/there/config.toml" ]
  # At the end, in a directory of root's: another's link is not followed, and the error says what to do.
  plant "$work/victim" "$work/etc/config.toml"
  out=$work/etc/config.toml
  run_ctk config --config-file=OUT --in-place --set disable-require=true
  [ "$status" -eq 1 ]
  [[ $output == *"$out is a link of user $mallory; remove it, or give it to yourself or to root ('chown -h')"* ]] || die "$output"
  rm -r "$work/etc/dir" "$work/etc/config.toml"
  victim_is_whole
}

@test "links in /dev/char: their directory is not behind another's link, and another's right link is replaced" {
  mkdir "$work/real"
  plant "$work/real" "$shared/char"
  run on_host "$ctk" system create-dev-char-symlinks --dev-char-path "$shared/char"
  [ "$status" -eq 1 ]
  [[ $output == *"open failed: $shared/char: $shared/char is a link of user $mallory in a directory that others may write to"* ]] || die "$output"
  [ -z "$(ls "$work/real")" ]
  plant /dev/nvidiactl "$shared/195:255"
  run on_host "$ctk" system create-dev-char-symlinks --dev-char-path "$shared"
  [ "$status" -eq 0 ] || die "$output"
  [ "$(stat -c '%F %u' "$shared/195:255")" = 'symbolic link 0' ]
}

@test "nodes: neither the root nor its dev is behind another's link" {
  mkdir -p "$work/real/dev"
  plant "$work/real" "$shared/root"
  run on_host "$ctk" system create-device-nodes --control-devices --dev-root "$shared/root"
  [ "$status" -eq 1 ]
  [[ $output == *"open failed: $shared/root: $shared/root is a link of user $mallory"* ]] || die "$output"
  mkdir "$shared/other"
  plant other "$shared/dev"
  run on_host "$ctk" system create-device-nodes --control-devices --dev-root "$shared"
  [ "$status" -eq 1 ]
  [[ $output == *"failed to create device node $shared/dev/nvidiactl: /dev is a link of user $mallory"* ]] || die "$output"
  [ -z "$(find "$work/real/dev" "$shared/other" -name 'nvidia*')" ]
}
