# SPDX-License-Identifier: Apache-2.0
# The packages of Debian and the RPM ones: built of this checkout, installed on a clean Debian, upgraded, taken off again.

bats_require_minimum_version 1.5.0

names=(graft-sim libnvidia-container-dev libnvidia-container-tools libnvidia-container1 nvidia-container-toolkit nvidia-container-toolkit-base)

setup_file() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  export top debs=$BATS_FILE_TMPDIR/deb rpms=$BATS_FILE_TMPDIR/rpm
  "$top/packaging/build-deb" "$debs" >"$BATS_FILE_TMPDIR/deb.log" 2>&1 &
  "$top/packaging/build-rpm" "$rpms" --nodeps >"$BATS_FILE_TMPDIR/rpm.log" 2>&1 || { tail -n 40 "$BATS_FILE_TMPDIR/rpm.log" && return 1; }
  wait $! || { tail -n 40 "$BATS_FILE_TMPDIR/deb.log" && return 1; }
}

# package NAME: its file.
package() { find "$debs" -name "$1_*.deb"; }

# clean_root: a Debian of the test's own at $root, without a network.
clean_root() {
  root=$BATS_TEST_TMPDIR/root
  cp -a --reflink=auto "$("$top/test/tools/roots" debian)/." "$root"
  mkdir -p "$root/packages"
  for name in "${names[@]}"; do
    cp "$(package "$name")" "$root/packages"
  done
}

# in_root COMMAND...: as an administrator's shell there. The root is a mount of its own, so that programs may make namespaces.
in_root() {
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --propagation private -- sh -c '
    root=$1
    shift
    mount --bind "$root" "$root" && cd "$root" && mount -t proc proc proc && mount -t sysfs sysfs sys && mount --rbind /dev dev &&
      mkdir -p old && pivot_root . old && umount -l /old && rmdir /old &&
      exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"' sh "$root" "$@"
}

files_of() { (cd "$root" && find . -xdev \( -path ./packages -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache -o -path ./proc -o -path ./old -o -path ./run \) -prune -o -print | sort); }

@test "every file that is installed is in exactly one package, of Debian as of RPM" {
  local name
  DESTDIR=$BATS_TEST_TMPDIR/all meson install -C "$top/build-release" --no-rebuild >/dev/null
  # Where the two are the same: names below the prefix, without the folder of libraries; man pages are packed.
  plain() { sed -e 's|^\./||' -e 's|^usr/local/||' -e 's|^usr/||' -e 's|^lib/[^/]*-linux-gnu[^/]*/|lib/|' -e 's|^lib64/|lib/|' -e 's|\.gz$||' | grep -v -e '^$' -e '/$' -e '^share/doc' -e '^share/lintian' -e '^lib/\.build-id' -e '^etc/nvidia' | sort; }
  (cd "$BATS_TEST_TMPDIR/all" && find . -type f -o -type l) | plain >"$BATS_TEST_TMPDIR/installed"
  for name in "${names[@]}"; do
    dpkg-deb --fsys-tarfile "$(package "$name")" | tar -t
  done | plain >"$BATS_TEST_TMPDIR/in-deb"
  diff "$BATS_TEST_TMPDIR/installed" "$BATS_TEST_TMPDIR/in-deb"
  find "$rpms" -name '*.rpm' -exec rpm -qlp {} \; 2>/dev/null | grep -v -e '^/usr/share/graft$' -e '^/usr/share/graft/topologies$' -e '^/etc/nvidia-container-runtime$' -e '^/usr/share/licenses' | sed 's|^/|./|' | plain >"$BATS_TEST_TMPDIR/in-rpm"
  diff "$BATS_TEST_TMPDIR/installed" "$BATS_TEST_TMPDIR/in-rpm"
}

@test "they take the places of the packages they replace, with versions that tie them together" {
  field() { dpkg-deb --field "$(package "$1")" "$2"; }
  [[ $(field nvidia-container-toolkit Provides) == *nvidia-docker2* ]]
  [[ $(field nvidia-container-toolkit Depends) == *"libnvidia-container-tools (= "* ]]
  [[ $(field libnvidia-container-tools Depends) == *"libnvidia-container1 (= "* ]]
  [[ $(field nvidia-container-toolkit-base Conflicts) == *nvidia-container-runtime* ]]
  # Newer than the packages of the same upstream version.
  dpkg --compare-versions "$(field libnvidia-container1 Version)" gt "$(sed -n "s/^  version: '\(.*\)',/\1/p" "$top/meson.build")-1"
  dpkg-deb --info "$(package libnvidia-container1)" symbols | grep -q ' nvc_init@NVC_1.0 1.0.0'
  # What is linked in at build time is all that they need besides the C library.
  for name in "${names[@]}"; do
    ! field "$name" Depends | grep -oE '[a-z0-9.+-]+' | grep -E '^lib' | grep -qvE '^(libc6|libnvidia-container.*)$' || { field "$name" Depends && return 1; }
  done
}

@test "a clean Debian: installed, works with the simulated driver; an administrator's configuration stays; purged, nothing is left" {
  clean_root
  files_of >"$BATS_TEST_TMPDIR/before"
  in_root sh -c 'dpkg -i /packages/*.deb' >"$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log" && return 1; }
  run in_root nvidia-ctk --version
  [[ $output == "NVIDIA Container Toolkit CLI version "* ]]
  run in_root sh -c 'nvidia-ctk config default | diff - /etc/nvidia-container-runtime/config.toml'
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  run in_root sh -c '/usr/lib/*/libnvidia-container.so.1 | head -n 1'
  [[ $output == "version: "* ]]
  run in_root graft-sim run --topology quad -- nvidia-container-cli info
  [ "$(grep -c '^GPU UUID' <<<"$output")" -eq 4 ] || { echo "$output" && return 1; }
  run in_root nvidia-container-toolkit --version
  [ "$status" -eq 0 ]
  # Where K3s, Docker and hooks of Podman and CRI-O look for them.
  in_root stat /usr/bin/nvidia-container-runtime /usr/bin/nvidia-container-runtime-hook /usr/bin/nvidia-cdi-hook >/dev/null
  # Apptainer runs it only then.
  [ "$(in_root stat --format '%u:%g %a' /usr/bin/nvidia-container-cli)" = "0:0 755" ]
  echo '# ours' >>"$root/etc/nvidia-container-runtime/config.toml"
  in_root sh -c 'dpkg -i /packages/*.deb' >"$BATS_TEST_TMPDIR/log" 2>&1
  tail -n 1 "$root/etc/nvidia-container-runtime/config.toml" | grep -qx '# ours'
  in_root dpkg --remove "${names[@]}" >"$BATS_TEST_TMPDIR/log" 2>&1
  [ -e "$root/etc/nvidia-container-runtime/config.toml" ]
  in_root dpkg --purge "${names[@]}" >"$BATS_TEST_TMPDIR/log" 2>&1
  rm -f "$root"/etc/ld.so.cache
  files_of | grep -v -x -e ./etc/ld.so.cache >"$BATS_TEST_TMPDIR/after"
  grep -v -x -e ./etc/ld.so.cache "$BATS_TEST_TMPDIR/before" | diff - "$BATS_TEST_TMPDIR/after"
}

# The project has no mail address of its own; nothing is uploaded to an archive that would write to it.
@test "lintian finds no error in the packages of Debian" {
  run lintian --allow-root --no-tag-display-limit --fail-on error --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$debs"/*.deb
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
}

# stand_in NAME VERSION FILE...: a package as an older toolkit had it.
stand_in() {
  local at=$BATS_TEST_TMPDIR/$1 file
  mkdir -p "$at/DEBIAN"
  printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: a <a@localhost>\nDescription: stand-in\n' "$1" "$2" >"$at/DEBIAN/control"
  sed -i "s/amd64/$(dpkg --print-architecture)/" "$at/DEBIAN/control"
  for file in "${@:3}"; do
    mkdir -p "$at/${file%/*}"
    echo old >"$at/$file"
  done
  dpkg-deb --build --root-owner-group "$at" "$root/packages/old-$1.deb" >/dev/null
}

@test "in the place of older packages: their files become ours, and none of them is left" {
  clean_root
  local libraries
  libraries=usr/lib/$(in_root dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
  mkdir "$root/packages/new"
  mv "$root"/packages/*.deb "$root/packages/new"
  stand_in libnvidia-container1 1.17.0-1 "$libraries/libnvidia-container.so.1.17.0"
  stand_in libnvidia-container-tools 1.17.0-1 usr/bin/nvidia-container-cli
  stand_in nvidia-container-toolkit-base 1.17.0-1 usr/bin/nvidia-ctk usr/bin/nvidia-container-runtime
  stand_in nvidia-container-toolkit 1.17.0-1 usr/bin/nvidia-container-runtime-hook
  stand_in nvidia-docker2 2.13.0-1 usr/bin/nvidia-docker
  in_root sh -c 'dpkg -i /packages/old-*.deb' >"$BATS_TEST_TMPDIR/log" 2>&1
  in_root sh -c 'dpkg -i --auto-deconfigure /packages/new/*.deb' >"$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log" && return 1; }
  run in_root dpkg-query --show --showformat '${Package} ${Version} ${db:Status-Abbrev}\n'
  [[ $output != *1.17.0-1* && $output != *"nvidia-docker2 2.13.0-1 ii"* ]] || { echo "$output" && return 1; }
  [ "$(in_root dpkg --audit)" = "" ]
  run in_root sh -c 'grep -lx old /usr/bin/nvidia-* /usr/lib/*/libnvidia-container*'
  [ "$output" = "" ]
}

@test "RPM: names, ties and the configuration file" {
  run rpm -qp --queryformat '%{NAME}\n' "$rpms"/*.rpm
  [ "$(sort <<<"$output" | tr '\n' ' ')" = "graft-sim libnvidia-container-devel libnvidia-container-static libnvidia-container-tools libnvidia-container1 nvidia-container-toolkit nvidia-container-toolkit-base " ]
  [ "$(rpm -qcp "$rpms"/nvidia-container-toolkit-base-*.rpm)" = /etc/nvidia-container-runtime/config.toml ]
  rpm -qp --requires "$rpms"/nvidia-container-toolkit-1*.rpm | grep -q '^libnvidia-container-tools'
  rpm -qp --provides "$rpms"/libnvidia-container1-*.rpm | grep -q '^libnvidia-container.so.1(NVC_1.0)'
}

@test "nvidia-docker: run and create get the runtime and NV_GPU, whatever stands in front of them; nothing else is touched" {
  local docker=$top/packaging/nvidia-docker
  words() { NV_DOCKER='printf <%s>' NV_GPU=${gpus-} "$docker" "$@"; }
  [ "$(words run -it image sh -c 'a b')" = "<run><--runtime=nvidia><-it><image><sh><-c><a b>" ]
  [ "$(gpus='0 1' words -H tcp://run container create image run)" = "<-H><tcp://run><container><create><--runtime=nvidia><-e><NVIDIA_VISIBLE_DEVICES=0,1><image><run>" ]
  [ "$(gpus=GPU-1,GPU-2 words --config x --debug run image)" = "<--config><x><--debug><run><--runtime=nvidia><-e><NVIDIA_VISIBLE_DEVICES=GPU-1,GPU-2><image>" ]
  [ "$(gpus=0 words build -t run .)" = "<build><-t><run><.>" ]
  [ "$(words ps)" = "<ps>" ]
  [ "$(words)" = "<>" ]
}
