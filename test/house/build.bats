# SPDX-License-Identifier: Apache-2.0
# files: disk
# The release build installs files in the right places, and hardens programs.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup_file() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  export top
  export tree=$BATS_FILE_TMPDIR
  # packages.bats builds in a copy, and so shows that a build needs only files that git tracks.
  [ -f "$top/build-release/build.ninja" ] || "$top/tools/build" release >"$tree/log" 2>&1 || { tail -n 40 "$tree/log"; return 1; }
  DESTDIR=$tree/D meson install -C "$top/build-release" --no-rebuild >"$tree/log" 2>&1 || { tail -n 40 "$tree/log"; return 1; }
}

# The ELF files that were installed and run on this machine; the same rules hold for the simulated
# driver's libraries.
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
  [ -z "$(find "$tree/D" -name 'libnvidia-container-go*')" ]
  local program
  for program in nvidia-container-cli nvidia-ctk nvidia-cdi-hook; do
    run -0 "$tree/D/usr/bin/$program" --version
    [[ $output == *"version"*"$(sed -n "s/^compatible = '\(.*\)'/\1/p" "$top/meson.build")"* ]]
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
  local program
  for program in config-manager gpu-feature-discovery mps-control-daemon nvidia-device-plugin; do
    [ -e "$tree/D/usr/bin/$program" ] || continue
    bash -n "$share/bash-completion/completions/$program"
    grep -qx "complete -o filenames -F _${program//-/_} $program" "$share/bash-completion/completions/$program"
    grep -qx "#compdef $program" "$share/zsh/site-functions/_$program"
    grep -q "^complete -c $program -n __fish_use_subcommand -l node-label " "$share/fish/vendor_completions.d/$program.fish"
  done
}

@test "every man page has examples and leads to others" {
  local page
  for page in "$tree"/D/usr/share/man/man*/*; do
    grep -q '^\.so ' "$page" || { grep -q '^\.SH EXAMPLES' "$page" && grep -q '^\.SH SEE ALSO' "$page"; } || { echo "$page" && return 1; }
  done
}

@test "SEE ALSO: our pages that it names are there, and each names those that name it" {
  local page name named status=0
  for page in "$tree"/D/usr/share/man/man*/*; do
    ! grep -q '^\.so ' "$page" || continue
    # As "nvidia-ctk(1)": the end of the page, without the marks of its letters.
    sed -n '/^\.SH SEE ALSO/,$p' "$page" | sed 's/\\f.//g; s/\\//g' | grep -oE '[a-z][a-z0-9-]*\([0-9]\)' | sed "s/^/$(basename "$page" | sed 's/\.\([0-9]\)$/(\1)/') /"
  done >"$BATS_TEST_TMPDIR/named"
  named=$(<"$BATS_TEST_TMPDIR/named")
  [ -n "$named" ]
  while read -r page name; do
    [[ $name =~ ^(nvidia|graft|config-manager|gpu-feature|mps-control) ]] || continue
    # Without the libraries of gRPC there is no plugin.
    [ -e "$tree/D/usr/bin/nvidia-device-plugin" ] || [[ $name != @(nvidia-device-plugin|nvidia-nri-plugin)* ]] || continue
    grep -qxF "$name $page" <<<"$named" || { echo "$page names $name, which is not there or does not name it" && status=1; }
  done <<<"$named"
  return $status
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
  [ ! -e "$tree/D/usr/bin/gpu-feature-discovery" ] || {
    grep -qx 'ExecStart=/usr/bin/gpu-feature-discovery' "$systemd/system/gpu-feature-discovery.service"
    grep -qx 'ExecStart=/usr/bin/nvidia-nri-plugin' "$systemd/system/nvidia-nri-plugin.service"
    grep -qx 'ExecStart=/usr/bin/nvidia-device-plugin' "$systemd/system/nvidia-device-plugin.service"
    # The plugin is there before the kubelet admits the first pod, and waits for a driver that is late.
    grep -qx 'Before=kubelet.service' "$systemd/system/nvidia-device-plugin.service"
    grep -qx 'Environment=FAIL_ON_INIT_ERROR=false' "$systemd/system/nvidia-device-plugin.service"
    grep -qx 'Type=notify' "$systemd/system/nvidia-device-plugin.service"
    run systemd-analyze --root "$tree/D" verify gpu-feature-discovery.service mps-control-daemon.service nvidia-device-plugin.service nvidia-nri-plugin.service
    [[ $output != *[Ii]gnoring* ]] || { echo "$output"; false; }
  }
}

@test "nothing is installed outside the prefix" {
  [ "$(ls "$tree/D")" = usr ]
}

@test "nothing of the build folder or of the source is left in what is installed" {
  [ -d "$tree/D" ]
  run -1 grep -rlF "$top" "$tree/D"
}

# packages.bats compares what is made of the same objects.
@test "daemons, which are optimised while they are linked, and objects of static programs are the same from nothing in another folder" {
  local copy=$BATS_TEST_TMPDIR/graft name objects
  local programs=(src/daemon/config-manager src/daemon/gpu-feature-discovery src/daemon/mps-control-daemon src/daemon/nvidia-device-plugin src/daemon/nvidia-nri-plugin)
  [ -e "$top/build-release/${programs[0]}" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  mkdir "$copy"
  (cd "$top" && . packaging/source.sh && source_files | tar --null --files-from=- -c) | tar -x -C "$copy"
  # They name the commit.
  GIT_DIR=$(git -C "$top" rev-parse --absolute-git-dir) TZ=Asia/Tokyo run "$copy/tools/build" release "${programs[@]}"
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  # Without debug information, in which an object that the cache has from another build names that build's folder.
  for name in "${programs[@]}"; do
    objcopy --strip-all --remove-section=.note.gnu.build-id "$top/build-release/$name" "$copy/ours"
    objcopy --strip-all --remove-section=.note.gnu.build-id "$copy/build-release/$name" "$copy/theirs"
    cmp "$copy/ours" "$copy/theirs"
  done
  # Of what static programs are linked from, every tenth file.
  mapfile -t objects < <(ninja -C "$copy/build-release" -t inputs src/libgraft_musl.a | grep '\.o$' | awk 'NR % 10 == 1')
  [ ${#objects[@]} -gt 20 ] || [ ! -e "$top/build-release/src/libgraft_musl.a" ]
  [ ${#objects[@]} -eq 0 ] || run -0 "$copy/tools/build" release "${objects[@]}"
  for name in "${objects[@]}"; do
    objcopy --strip-debug "$top/build-release/$name" "$copy/ours"
    objcopy --strip-debug "$copy/build-release/$name" "$copy/theirs"
    cmp "$copy/ours" "$copy/theirs"
  done
}

@test "each program and library is position independent" {
  local file
  [ "$(elf_files | wc -l)" -ge 2 ]
  for file in $(elf_files); do
    readelf -h "$file" | grep -q 'Type: *DYN' || { echo "$file"; false; }
  done
}

# A loader makes each call of an engine cost a third more, and could be made to load something else.
@test "the runtime and what a specification can name as a hook are static; what loads a library is not" {
  local name
  for name in nvidia-cdi-hook nvidia-ctk nvidia-container-runtime-hook nvidia-container-runtime nvidia-container-runtime.cdi nvidia-container-runtime.legacy; do
    run ! grep -q INTERP <(readelf -lW "$tree/D/usr/bin/$name")
    # musl's: nothing of glibc's start, which asks the processor 68 times what it is, and reads this variable.
    run ! grep -q GLIBC_TUNABLES "$tree/D/usr/bin/$name"
  done
  for name in graft-nvml graft-systemd; do
    readelf -lW "$tree/D/usr/libexec/graft/$name" | grep -q INTERP
    run -64 "$tree/D/usr/libexec/graft/$name"
  done
}

@test "without the archive of libyaml no build makes these programs dynamic, unless it is told to" {
  local folder=$BATS_TEST_TMPDIR/yaml
  mkdir -p "$folder"
  cp -L "$(pkg-config --variable=libdir yaml-0.1)/libyaml.so" "$folder/libyaml-shared.so"
  printf 'Name: yaml-0.1\nDescription: \nVersion: 0.2.5\nLibs: -L%s -lyaml-shared\nCflags: -I%s\n' "$folder" "$(pkg-config --variable=includedir yaml-0.1)" >"$folder/yaml-0.1.pc"
  export PKG_CONFIG_LIBDIR=$folder
  cd "$top"
  local reason='nvidia-ctk and nvidia-container-runtime-hook are not static: if a CDI specification names them without an environment, an image can put its libraries into them (CVE-2025-23266)'
  run -1 meson setup "$BATS_TEST_TMPDIR/B" -Dtests=disabled -Ddaemons=disabled
  [[ $output == *"ERROR: Problem encountered: libyaml.a is missing, without which $reason - install it, or choose -Dstatic-yaml=disabled"* ]] || { echo "$output"; return 1; }
  run -0 meson setup "$BATS_TEST_TMPDIR/B" -Dtests=disabled -Ddaemons=disabled -Dstatic-yaml=disabled
  [[ $output == *"WARNING: $reason"* ]] || { echo "$output"; return 1; }
  grep -q -- -Dstatic-yaml=enabled packaging/graft.spec
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

@test "what starts containers is not linked to the libraries of daemons" {
  local file
  while read -r file; do
    # libcurl is loaded when it is needed: daemons are not linked to it, either.
    if readelf -dW "$file" | grep -E 'NEEDED.*curl'; then false; fi
    [[ ${file##*/} != @(nvidia-device-plugin|gpu-feature-discovery|config-manager|mps-control-daemon|nvidia-nri-plugin) ]] || continue
    if readelf -dW "$file" | grep -E 'NEEDED.*(nghttp2|protobuf)' || readelf -sW "$file" | grep -E '(nghttp2|protobuf_c)_'; then
      echo "$file"
      false
    fi
  done < <(elf_files)
}

@test "daemons are programs of less than 400,000 bytes, and are linked to no more than they need" {
  [ -e "$tree/D/usr/bin/nvidia-device-plugin" ] || skip "this build is without daemons (libnghttp2-dev, libprotobuf-c-dev, protobuf-c-compiler)"
  linked_to nvidia-device-plugin libnghttp2 libprotobuf-c libyaml-0
  linked_to gpu-feature-discovery libyaml-0
  linked_to config-manager libyaml-0
  linked_to mps-control-daemon libyaml-0
  linked_to nvidia-nri-plugin libnghttp2 libprotobuf-c libyaml-0
}
# linked_to PROGRAM LIBRARY...: beside the C library; and its size as a package has it.
linked_to() {
  local file=$tree/D/usr/bin/$1
  shift
  strip -o "$BATS_TEST_TMPDIR/stripped" "$file"
  echo "# ${file##*/}: $(stat -c %s "$BATS_TEST_TMPDIR/stripped") bytes" >&3
  [ "$(stat -c %s "$BATS_TEST_TMPDIR/stripped")" -lt 400000 ]
  [ "$(readelf -dW "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\.so.*\]/\1/p' | grep -vE '^(libc|libdl|ld-linux.*)$' | sort | tr '\n' ' ')" = "$* " ]
}

@test "no run path, no dependency beyond the C library" {
  local file=$tree/D/usr/bin/nvidia-container-cli
  if readelf -dW "$file" | grep -E 'RPATH|RUNPATH'; then false; fi
  readelf -dW "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' >"$BATS_TEST_TMPDIR/needed"
  [ "$(grep -vcE '^(libc|libm|libpthread|libdl|ld-linux.*)\.so' "$BATS_TEST_TMPDIR/needed")" -eq 0 ]
}
