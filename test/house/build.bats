# SPDX-License-Identifier: Apache-2.0
# The build installs by plain Meson commands, and what it makes is hardened.

bats_require_minimum_version 1.5.0

setup_file() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  export top
  export tree=$BATS_FILE_TMPDIR
  # The commands of the packager, in a clone: nothing that is lying about may be needed.
  git -C "$top" ls-files --cached --others --exclude-standard -z | (cd "$top" && xargs -0 cp --parents -t "$tree" 2>/dev/null) || true
  cd "$tree"
  meson setup B --prefix=/usr >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log"; return 1; }
  ninja -C B >"$BATS_FILE_TMPDIR/log" 2>&1 || { tail -n 40 "$BATS_FILE_TMPDIR/log"; return 1; }
  DESTDIR=$tree/D ninja -C B install >"$BATS_FILE_TMPDIR/log" 2>&1 || { tail -n 40 "$BATS_FILE_TMPDIR/log"; return 1; }
}

# The ELF files that were installed and run on this machine; the simulated driver's libraries go by the same rules.
elf_files() {
  find "$tree/D" -type f -print0 | while IFS= read -r -d '' file; do
    if [ "$(head -c 4 "$file" | od -An -tx1 | tr -d ' ')" = 7f454c46 ]; then
      printf '%s\n' "$file"
    fi
  done
}

@test "programs are installed where the prefix says, and run from there" {
  [ -x "$tree/D/usr/bin/nvidia-container-cli" ]
  [ -x "$tree/D/usr/bin/graft-sim" ]
  [ -x "$tree/D/usr/bin/nvidia-container-runtime-hook" ]
  [ "$(readlink "$tree/D/usr/bin/nvidia-container-toolkit")" = nvidia-container-runtime-hook ]
  local program
  for program in nvidia-container-cli nvidia-ctk nvidia-cdi-hook; do
    run -0 "$tree/D/usr/bin/$program" --version
    [[ $output == *"$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$top/meson.build")"* ]]
  done
}

@test "the man page and the completions are installed where their readers look" {
  local share=$tree/D/usr/share
  grep -q '^\.TH "nvidia-container-cli" "1"' "$share/man/man1/nvidia-container-cli.1"
  grep -q '^\.TH "nvidia-container-runtime-hook" "8"' "$share/man/man8/nvidia-container-runtime-hook.8"
  grep -q '^\.TH "nvidia-ctk" "1"' "$share/man/man1/nvidia-ctk.1"
  bash -n "$share/bash-completion/completions/nvidia-container-cli"
  bash -n "$share/bash-completion/completions/nvidia-ctk"
  head -n 1 "$share/zsh/site-functions/_nvidia-ctk" | grep -qx '#compdef nvidia-ctk'
  grep -q 'complete -c nvidia-ctk' "$share/fish/vendor_completions.d/nvidia-ctk.fish"
  head -n 1 "$share/zsh/site-functions/_nvidia-container-cli" | grep -qx '#compdef nvidia-container-cli'
  grep -q 'complete -c nvidia-container-cli' "$share/fish/vendor_completions.d/nvidia-container-cli.fish"
}

@test "units, preset and udev rules are installed where systemd and udev look, and say where the program is" {
  local systemd=$tree/D/usr/lib/systemd
  grep -qx 'ExecStart=/usr/bin/nvidia-ctk cdi refresh' "$systemd/system/nvidia-cdi-refresh.service"
  grep -qx 'PathChanged=/usr/bin/nvidia-ctk' "$systemd/system/nvidia-cdi-refresh.path"
  [ -e "$systemd/system/nvidia-cdi-refresh.timer" ]
  [ "$(cat "$systemd/system-preset/90-nvidia-cdi-refresh.preset")" = $'enable nvidia-cdi-refresh.service\nenable nvidia-cdi-refresh.path' ]
  grep -q 'start nvidia-cdi-refresh.service' "$tree/D/usr/lib/udev/rules.d/60-nvidia-cdi-refresh.rules"
  run systemd-analyze --root "$tree/D" verify nvidia-cdi-refresh.service nvidia-cdi-refresh.path nvidia-cdi-refresh.timer
  [[ $output != *"nvidia-cdi-refresh."*[Ii]gnoring* ]] || { echo "$output"; false; }
}

@test "nothing is installed outside the prefix" {
  [ "$(ls "$tree/D")" = usr ]
}

@test "nothing of the build folder or of the source is left in what is installed" {
  [ -d "$tree/D" ]
  run -1 grep -rlF "$tree" "$tree/D"
}

@test "each program and library is position independent" {
  local file
  [ "$(elf_files | wc -l)" -ge 2 ]
  for file in $(elf_files); do
    readelf -h "$file" | grep -q 'Type: *DYN' || { echo "$file"; false; }
  done
}

# A loader costs each call of an engine a third more, and what it loads could be steered.
@test "the runtime and the program of hooks are static, and the one that asks NVML is not" {
  local name
  for name in nvidia-cdi-hook nvidia-container-runtime nvidia-container-runtime.cdi nvidia-container-runtime.legacy; do
    run ! grep -q INTERP <(readelf -lW "$tree/D/usr/bin/$name")
    # musl's: nothing of glibc's start, which asks the processor 68 times what it is, and reads this variable.
    run ! grep -q GLIBC_TUNABLES "$tree/D/usr/bin/$name"
  done
  readelf -lW "$tree/D/usr/libexec/graft/graft-nvml" | grep -q INTERP
  run -64 "$tree/D/usr/libexec/graft/graft-nvml"
}

@test "full RELRO: read-only relocations, bound at start" {
  local file
  for file in $(elf_files); do
    readelf -lW "$file" | grep -q GNU_RELRO || { echo "$file has no RELRO"; false; }
    readelf -dW "$file" | grep -qE 'BIND_NOW|FLAGS_1.*NOW' || { echo "$file binds lazily"; false; }
  done
}

@test "no executable stack, no segment both writable and executable" {
  local file
  for file in $(elf_files); do
    readelf -lW "$file" | grep -q 'GNU_STACK.*RW ' || { echo "$file: stack"; false; }
    if readelf -lW "$file" | grep -E '^ +LOAD.*RWE'; then
      echo "$file: a segment is writable and executable"
      false
    fi
  done
}

@test "stack protector and fortified calls are in the programs" {
  local file=$tree/D/usr/bin/nvidia-container-cli
  readelf -sW "$file" | grep -q __stack_chk_fail
  readelf -sW "$file" | grep -qE '__[a-z]+_chk(@|$)'
}

@test "no run path, no dependency beyond the C library" {
  local file=$tree/D/usr/bin/nvidia-container-cli
  if readelf -dW "$file" | grep -E 'RPATH|RUNPATH'; then false; fi
  readelf -dW "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' >"$BATS_TEST_TMPDIR/needed"
  [ "$(grep -vcE '^(libc|libm|libpthread|libdl|ld-linux.*)\.so' "$BATS_TEST_TMPDIR/needed")" -eq 0 ]
}
