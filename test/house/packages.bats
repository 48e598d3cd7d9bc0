# SPDX-License-Identifier: Apache-2.0
# files: disk
# A release: its packages for Debian and for RPM distributions, its repositories and signatures; the
# packages are installed on a clean Debian, upgraded and removed.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

# Those that a Debian without a network can install.
names=(graft-sim libnvidia-container-dev libnvidia-container-tools libnvidia-container1 nvidia-container-toolkit nvidia-container-toolkit-base)

setup_file() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  export top release=$BATS_FILE_TMPDIR/release key=$BATS_FILE_TMPDIR/key
  architecture=$(dpkg --print-architecture) machine=$(uname -m)
  export architecture machine debs=$release/apt/pool rpms=$release/rpm/$machine
  GNUPGHOME=$(mktemp -d)
  export GNUPGHOME
  gpg --batch --quiet --passphrase '' --faked-system-time 20200101T000000 --quick-generate-key 'Test <test@localhost>' rsa3072 sign never 2>/dev/null
  gpg --batch --pinentry-mode loopback --passphrase '' --export-secret-keys >"$key"
  # A copy: what is compiled here has no fatal warnings.
  [ ! -d "${results:-}/ccache" ] || cp -a "$results/ccache" "$BATS_FILE_TMPDIR/cache"
  make_release "$release" --arch "$architecture" >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log" && return 1; }
}

teardown_file() {
  gpgconf --kill all
  rm -rf "$GNUPGHOME"
}

# make_release DIRECTORY [OPTION...]: its programs are not optimised; build.bats and the benchmarks
# use optimised ones.
# The packages of both kinds, and both releases, share what is compiled, since -O0 and -g0 at the end
# override the options that differ; what ./check has compiled before them will do, however it was
# optimised: with test/tools/cached, by a compiler of the same name. build.bats compares what is
# compiled from nothing.
make_release() {
  CC=gcc DEB_CFLAGS_APPEND="-O0 -g0" CFLAGS="-O0 -g0" DEB_BUILD_OPTIONS=noautodbgsym DPKG_DEB_COMPRESSOR_LEVEL=1 \
    "$top/test/tools/cached" "$BATS_FILE_TMPDIR/cache" --ignore "$(sed -n 's/^export alike="\(.*\)"$/\1/p' "$top/check")" "$top/packaging/release" "${@:2}" --key "$key" "$1"
}

# make_both: $both, a release for every architecture that this machine can build, made once, in other circumstances than $release.
make_both() {
  both=$BATS_FILE_TMPDIR/both
  [ ! -e "$both/SHA256SUMS" ] || return 0
  run in_other_circumstances make_release "$both"
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
}
in_other_circumstances() {
  umask 077
  TZ=Asia/Tokyo LC_ALL=C "$@"
}

# package NAME: its file.
package() { find "$debs" -name "$1_*_$architecture.deb"; }

# clean_root: a Debian of the test's own at $root, without a network.
clean_root() {
  root=$BATS_TEST_TMPDIR/root
  cp -a --reflink=auto "$("$top/test/tools/roots" debian)/." "$root"
  rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
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

# lacks [FOLDER/]FILE: the lines that $release has there, and $both has not.
lacks() { grep -Fxvf "$both/$1" "$release/$1" || true; }

@test "release: made again, with whatever else, it is the same to the last byte, mode and time" {
  local name all=apt/dists/stable sbom digest
  make_both
  sbom=$(basename "$release"/graft-*.spdx.json)
  # These name every architecture that was made.
  [ "$(lacks SHA256SUMS | cut -d ' ' -f 3 | grep -vxE "README\.md|image/(k8s-device-plugin|container-toolkit)/index\.json|$sbom|$all/(Release|Release\.gpg|InRelease)")" = "" ] || { lacks SHA256SUMS && return 1; }
  # Nothing is there that is of no architecture.
  run grep -Fxvf <(cd "$release" && find . -printf '%P %y %m %u %T@\n') <(cd "$both" && find . ! -path '*/blobs/sha256/*' ! -path '*arm64*' ! -path '*aarch64*' -printf '%P %y %m %u %T@\n')
  [ "$output" = "" ] || { echo "$output" && return 1; }
  run grep -Fxvf <(cd "$both" && find . -printf '%P %y %m %u %T@\n') <(cd "$release" && find . -printf '%P %y %m %u %T@\n')
  [ "$output" = "" ] || { echo "$output" && return 1; }
  # They differ in that.
  [ "$(lacks README.md | grep -v '^Compatible with .* For: [a-z0-9]*\.$')$(lacks "$all/Release" | grep -v '^Architectures: [a-z0-9]*$')" = "" ]
  jq -e --slurpfile both "$both/$sbom" '.packages - $both[0].packages == [] and .relationships - $both[0].relationships == [] and
    del(.packages, .relationships) == ($both[0] | del(.packages, .relationships))' "$release/$sbom" >"$BATS_TEST_TMPDIR/same"
  name=image/k8s-device-plugin/index.json
  digest=$(jq -r '.manifests[0].digest' "$release/$name")
  grep -qrF "\"$digest\"" "$both/image/k8s-device-plugin"
  [ "$(jq -c '.manifests[0].annotations' "$release/$name")" = "$(jq -c '.manifests[0].annotations' "$both/$name")" ]
  (cd "$both" && sha256sum --check --strict --quiet SHA256SUMS)
  gpg --quiet --verify "$both/SHA256SUMS.asc" "$both/SHA256SUMS" 2>/dev/null
  gpg --quiet --verify "$both/$all/Release.gpg" "$both/$all/Release" 2>/dev/null
  gpg --quiet --decrypt "$both/$all/InRelease" 2>/dev/null | cmp - "$both/$all/Release"
  # What names every architecture, and sums and signatures, of the packages that were found to be the same.
  run in_other_circumstances make_release "$BATS_TEST_TMPDIR/again" --arch "$architecture" --from "$release"
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  run diff -r "$release" "$BATS_TEST_TMPDIR/again"
  [ "$output" = "" ] || { echo "$output" && return 1; }
  cmp <(cd "$release" && find . -printf '%P %y %m %u %T@\n' | sort) <(cd "$BATS_TEST_TMPDIR/again" && find . -printf '%P %y %m %u %T@\n' | sort)
}

@test "release: amd64 and arm64 from one run, in one repository of each kind; apt and dnf find those of their machine" {
  local apt=$BATS_TEST_TMPDIR/apt at=$BATS_TEST_TMPDIR/at file name
  [ "$architecture" = amd64 ] || skip "only amd64 builds for the other architecture"
  [ -z "$(cd "$top" && . packaging/source.sh && lacks arm64)" ] || skip "the cross compiler is missing: sudo tools/deps arm64"
  make_both
  head -n 3 "$both/README.md" | grep -q 'For: amd64 arm64\.$'
  mkdir -p "$at"/{deb,rpm}
  # The same packages, whose programs are of that machine.
  for name in "${names[@]}"; do
    [ "$(cd "$both/apt/pool" && dpkg-deb -f "$name"_*_arm64.deb Architecture)" = arm64 ]
    dpkg-deb --extract "$both/apt/pool/$name"_*_arm64.deb "$at/deb"
  done
  for file in "$both"/rpm/aarch64/*.rpm; do
    [ "$(rpm -qp --queryformat '%{ARCH}' "$file" 2>/dev/null)" = aarch64 ]
    rpm2archive - <"$file" | tar -xz -C "$at/rpm"
  done
  [ "$(cd "$both/rpm/aarch64" && printf '%s\n' *.rpm | sed 's/aarch64/x86_64/')" = "$(cd "$both/rpm/x86_64" && printf '%s\n' *.rpm)" ]
  find "$at" -type f ! -name '*.a' -exec sh -c 'head -c 4 "$1" | grep -q "^.ELF"' sh {} \; -print >"$BATS_TEST_TMPDIR/programs"
  for name in nvidia-ctk nvidia-cdi-hook nvidia-container-cli nvidia-container-runtime nvidia-container-runtime-hook graft-sim libnvidia-container.so; do
    [ "$(grep -c "/$name\(\.[0-9.]*\)\?$" "$BATS_TEST_TMPDIR/programs")" -eq 2 ] || { echo "$name" && cat "$BATS_TEST_TMPDIR/programs" && return 1; }
  done
  while read -r file; do
    readelf -h "$file" | grep -q 'Machine: *AArch64$' || { echo "$file" && return 1; }
  done <"$BATS_TEST_TMPDIR/programs"
  [ "$(qemu-aarch64 "$at/deb/usr/bin/nvidia-ctk" --version | head -n 1)" = "$(qemu-aarch64 "$at/rpm/usr/bin/nvidia-ctk" --version | head -n 1)" ]
  # apt of an arm64 machine, which has what the packages need of others by name alone.
  mkdir -p "$apt"/{etc/apt/{apt.conf.d,preferences.d,sources.list.d,trusted.gpg.d},state/lists/partial,cache/archives/partial}
  for name in $(for file in "$both"/apt/pool/*_arm64.deb; do dpkg-deb -f "$file" Depends Pre-Depends; done | sed 's/^[A-Z][A-Za-z-]*: //; s/([^)]*)//g; s/|[^,]*//g' | tr ',' '\n' | sort -u); do
    [[ $name == *nvidia* ]] || printf 'Package: %s\nStatus: install ok installed\nArchitecture: arm64\nVersion: 99\nMaintainer: x\nDescription: x\n\n' "${name%%:*}"
  done >"$apt/status"
  gpg --dearmor <"$both/graft.asc" >"$apt/graft.gpg"
  printf 'deb [signed-by=%s] file:%s stable main\n' "$apt/graft.gpg" "$both/apt" >"$apt/etc/apt/sources.list"
  of_arm64() { (cd "$apt" && apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::Etc="$apt/etc/apt" -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@"); }
  run of_arm64 update
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  run of_arm64 --simulate --no-install-recommends install nvidia-container-toolkit
  [ "$(grep -c '^Inst .* \[arm64\])' <<<"$output")" -eq 4 ] || { echo "$output" && return 1; }
  run of_arm64 download nvidia-container-toolkit
  cmp "$apt"/nvidia-container-toolkit_*_arm64.deb "$both"/apt/pool/nvidia-container-toolkit_*_arm64.deb
  for name in x86_64 aarch64; do
    run dnf --quiet --installroot "$BATS_TEST_TMPDIR/dnf" --forcearch "$name" --releasever 1 --setopt reposdir=/nonexistent --repofrompath "graft,file://$both/rpm/$name" \
      repoquery --queryformat '%{arch}' nvidia-container-toolkit
    [ "${lines[-1]}" = "$name" ] || { echo "$output" && return 1; }
  done
}

@test "release: every file has its sum, and what vouches for others is signed" {
  local file database=$BATS_TEST_TMPDIR/rpm
  (cd "$release" && sha256sum --check --strict --quiet SHA256SUMS)
  [ "$(sed 's/^[0-9a-f]*  //' "$release/SHA256SUMS")" = "$(cd "$release" && find . -type f ! -name 'SHA256SUMS*' -printf '%P\n' | LC_ALL=C sort)" ]
  for file in SHA256SUMS "rpm/$machine/repodata/repomd.xml"; do
    gpg --quiet --verify "$release/$file.asc" "$release/$file" 2>/dev/null || { echo "$file is not signed"; return 1; }
  done
  gpg --quiet --verify "$release/apt/dists/stable/Release.gpg" "$release/apt/dists/stable/Release" 2>/dev/null
  gpg --quiet --verify "$release/apt/dists/stable/InRelease" 2>/dev/null
  rpmkeys --dbpath "$database" --import "$release/graft.asc"
  for file in "$rpms"/*.rpm; do
    rpmkeys --dbpath "$database" --checksig "$file" | grep -q 'digests signatures OK$' || { echo "$file is not signed"; return 1; }
  done
  # The key itself is not part of the release.
  run ! grep -rlE 'PRIVATE KEY' "$release"
}

@test "release: the source archive is the source, in one folder, owned by root" {
  local archive
  archive=$(echo "$release"/graft-*.tar.gz)
  run tar -tzvf "$archive"
  [ "$(grep -cv ' 0/0 .* graft-[0-9.]*/' <<<"$output")" -eq 0 ]
  tar -xzf "$archive" -C "$BATS_TEST_TMPDIR"
  [ "$(cd "$BATS_TEST_TMPDIR"/graft-*/ && find . -type f -o -type l | sed 's|^./||' | LC_ALL=C sort)" = "$(cd "$top" && git ls-files --cached --others --exclude-standard | LC_ALL=C sort)" ]
}

@test "release: its README names packages that it has, for each kind of host" {
  local name
  grep -q '^| Docker' "$release/README.md"
  grep -q '^| Apptainer' "$release/README.md"
  # shellcheck disable=SC2016
  for name in $(sed -n '/^| host/,/^$/p' "$release/README.md" | cut -d '|' -f 3 | grep -oE '`[a-z][a-z0-9-]*`' | tr -d '`' | sort -u); do
    [ -n "$(package "$name")" ] || { echo "$name is in the README alone"; return 1; }
  done
}

@test "release: the SBOM is SPDX 2.3, and has every file of the release, with its sum" {
  run python3 - "$release" <<'PYTHON'
import datetime, hashlib, json, os, re, sys
release = sys.argv[1]
(name,) = [n for n in os.listdir(release) if n.endswith(".spdx.json")]
text = json.load(open(os.path.join(release, name)))
assert text["spdxVersion"] == "SPDX-2.3" and text["dataLicense"] == "CC0-1.0" and text["SPDXID"] == "SPDXRef-DOCUMENT"
assert re.fullmatch(r"https://[^#\s]+", text["documentNamespace"])
datetime.datetime.strptime(text["creationInfo"]["created"], "%Y-%m-%dT%H:%M:%SZ")
assert all(re.match(r"(Tool|Organization|Person): ", creator) for creator in text["creationInfo"]["creators"])
ids = [package["SPDXID"] for package in text["packages"]]
assert len(set(ids)) == len(ids) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
for package in text["packages"]:
    for field in ("name", "versionInfo", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"):
        assert isinstance(package[field], str) and package[field], (package["name"], field)
    assert package["filesAnalyzed"] is False and all(r["referenceLocator"].startswith("pkg:") for r in package["externalRefs"])
    assert "\n" not in package["versionInfo"]
described = {p["packageFileName"]: p for p in text["packages"] if "packageFileName" in p}
there = {}
for folder, _, files in os.walk(release):
    there.update({f: os.path.join(folder, f) for f in files if f.endswith((".deb", ".rpm", ".tar.gz")) and "repodata" not in folder})
assert set(described) == set(there), set(described) ^ set(there)
for file, path in there.items():
    (checksum,) = described[file]["checksums"]
    assert checksum == {"algorithm": "SHA256", "checksumValue": hashlib.sha256(open(path, "rb").read()).hexdigest()}, file
known = set(ids) | {"SPDXRef-DOCUMENT"}
relations = {(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in text["relationships"]}
assert all(a in known and b in known for a, _, b in relations)
assert {kind for _, kind, _ in relations} == {"DESCRIBES", "GENERATED_FROM", "STATIC_LINK", "DEPENDS_ON"}
# What the linker put into the runtime, and what the packages ask for.
base = next(p["SPDXID"] for f, p in described.items() if f.startswith("nvidia-container-toolkit-base_"))
linked = {p["SPDXID"]: p for p in text["packages"] if (base, "STATIC_LINK", p["SPDXID"]) in relations}
assert {p["name"] for p in linked.values()} == {"libyaml", "musl"}, linked
assert all(re.match(r"\d", p["versionInfo"]) for p in linked.values())
assert any(a.endswith("nvidia-container-toolkit") and b.endswith("nvidia-container-toolkit-base") for a, k, b in relations if k == "DEPENDS_ON")
PYTHON
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
}

@test "release: apt installs from it, with what a package needs; an index that was changed is refused" {
  clean_root
  rm -r "$root/packages"
  cp -a "$release" "$root/release"
  # As docs/packages.md says.
  sed -n 's/^    //p' "$release/README.md" | sed -n '/apt stable/,/apt-get install/p' | sed "s|sudo ||g; s|file:[^ ]*/apt|file:/release/apt|; s|install nvid|install --no-install-recommends -qq -y nvid|" >"$root/commands"
  grep -q 'apt-get update && apt-get install' "$root/commands"
  in_root install -m 644 /release/graft.asc /usr/share/keyrings/graft.asc
  run in_root sh -ec ". /commands"
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  run in_root dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' 'nvidia-*' 'libnvidia-*' graft-sim
  [ "$(grep -c ' installed$' <<<"$output")" -eq 4 ] || { echo "$output" && return 1; }
  in_root nvidia-container-cli --version | grep -q '^graft-version: '
  sed -i 's/^Description: /Description: not /' "$root"/release/apt/dists/stable/main/binary-*/Packages
  rm "$root"/release/apt/dists/stable/main/binary-*/Packages.gz
  in_root rm -rf /var/lib/apt/lists
  run in_root apt-get update
  [ "$status" -ne 0 ]
  run in_root sh -c 'apt-get update; apt-get install --reinstall -y graft-sim'
  [ "$status" -ne 0 ]
}

# dnf_root ROOT: a root whose dnf knows the release, as docs/packages.md says, and a distribution that has what the packages need by name alone.
dnf_root() {
  local host=$BATS_TEST_TMPDIR/host
  mkdir -p "$host" "$1/etc/yum.repos.d"
  {
    printf 'Name: host\nVersion: 1\nRelease: 1\nSummary: stand-in\nLicense: none\n'
    rpm -qp --requires "$rpms"/*.rpm 2>/dev/null | cut -d ' ' -f 1 | grep -v -e '^rpmlib' -e nvidia | sort -u | sed 's/^/Provides: /'
    printf '%%description\nstand-in\n%%files\n'
  } >"$host/host.spec"
  rpmbuild -bb --quiet --define "_topdir $host" --define "_rpmdir $host" "$host/host.spec"
  createrepo_c --quiet "$host"
  printf '[host]\nname=host\nbaseurl=file://%s\ngpgcheck=0\n' "$host" >"$1/etc/yum.repos.d/host.repo"
  (cd "$release" && sed -n '/^    printf/,/tee/s/^    //p' README.md | sed "s|sudo tee .*|cat|" | sh) >"$1/etc/yum.repos.d/graft.repo"
  grep -qx 'repo_gpgcheck=1' "$1/etc/yum.repos.d/graft.repo"
  mkdir "$BATS_TEST_TMPDIR/dnf-bin"
  printf '#!/bin/sh\nexec /usr/bin/dnf --assumeyes --installroot "%s" --forcearch "%s" --releasever 1 --setopt reposdir="%s" --setopt cachedir="%s" "$@"\n' \
    "$1" "$machine" "$1/etc/yum.repos.d" "$1/cache" >"$BATS_TEST_TMPDIR/dnf-bin/dnf"
  chmod +x "$BATS_TEST_TMPDIR/dnf-bin/dnf"
}
in_dnf() { "$BATS_TEST_TMPDIR/dnf-bin/dnf" "$@"; }

@test "release: dnf installs from it, with signatures of the index and of the packages" {
  local root=$BATS_TEST_TMPDIR/dnf name
  dnf_root "$root"
  run in_dnf --setopt tsflags=noscripts install nvidia-container-toolkit
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  for name in nvidia-container-cli nvidia-ctk nvidia-container-runtime nvidia-container-runtime-hook; do
    [ -x "$root/usr/bin/$name" ]
  done
  cp -a "$release/rpm" "$BATS_TEST_TMPDIR/changed"
  echo >>"$(echo "$BATS_TEST_TMPDIR/changed/$machine"/graft-sim-*.rpm)"
  sed -i "s|^baseurl=.*/rpm/|baseurl=file://$BATS_TEST_TMPDIR/changed/|" "$root/etc/yum.repos.d/graft.repo"
  rm -rf "$root/cache"
  run in_dnf install graft-sim
  [ "$status" -ne 0 ]
  [ ! -e "$root/usr/bin/graft-sim" ]
}

@test "release: what it cannot do is one error, and nothing is made" {
  local to=$BATS_TEST_TMPDIR/to
  refuses() {
    run -"$1" --separate-stderr "$top/packaging/release" "${@:3}"
    [ "$stderr" = "release: $2" ] || { echo "$stderr" && return 1; }
    [ ! -e "$to" ]
  }
  refuses 64 "no option '--sign'; see packaging/release --help" --sign "$to"
  refuses 64 "--arch takes amd64 or arm64, not 'i386'; see packaging/release --help" --arch i386 --test-key "$to"
  refuses 64 "a directory is missing; see packaging/release --help" --test-key
  refuses 64 "--key and --test-key exclude each other; see packaging/release --help" --key "$key" --test-key "$to"
  refuses 64 "no key to sign with: give --key FILE, or --test-key for a trial; see packaging/release --help" "$to"
  refuses 1 "the key '$BATS_TEST_TMPDIR/nothing' cannot be read" --key "$BATS_TEST_TMPDIR/nothing" "$to"
  refuses 1 "'$release' is not empty" --key "$key" "$release"
  refuses 64 "--from takes a directory; see packaging/release --help" --from
  refuses 1 "'$BATS_TEST_TMPDIR' is not a release for $architecture" --from "$BATS_TEST_TMPDIR" --key "$key" "$to"
  # This machine without the cross compiler.
  if [ "$architecture" = amd64 ]; then
    mkdir "$BATS_TEST_TMPDIR/bin"
    printf '#!/bin/sh\n/usr/bin/dpkg-query "$@" | grep -v "^gcc-aarch64-linux-gnu "\n' >"$BATS_TEST_TMPDIR/bin/dpkg-query"
    chmod +x "$BATS_TEST_TMPDIR/bin/dpkg-query"
    PATH=$BATS_TEST_TMPDIR/bin:$PATH refuses 1 "arm64 needs gcc-aarch64-linux-gnu: sudo tools/deps arm64 installs it" --arch arm64 --key "$key" "$to"
  fi
  run -0 "$top/packaging/release" --help
  [[ ${lines[0]} == "Makes a complete release"* && $output == *--test-key* && $output != *"set -e"* ]]
}

@test "packages installed for the build are listed at the end; a folder that apt cannot enter is reported before" {
  local tree=$BATS_TEST_TMPDIR/tree
  mkdir -p "$tree/tools" "$tree/open" "$tree/closed/within"
  printf '#!/bin/sh\ncase $1 in --missing) [ -e there ] || printf "rpm\\ngit\\n" ;; *) : >there ;; esac\n' >"$tree/tools/deps"
  chmod 755 "$BATS_TEST_TMPDIR" "$tree" "$tree/open" "$tree/tools/deps"
  chmod 750 "$tree/closed"
  cd "$tree"
  # shellcheck disable=SC2016 # for the shell
  run -0 bash -euo pipefail -c '. "$0"; tell_installed; need build package; need build; tell_installed' "$top/packaging/source.sh"
  [ "$output" = $'To remove what was installed to build this:\n  sudo apt-get purge --auto-remove rpm git' ]
  # Everything is there now.
  # shellcheck disable=SC2016
  run -0 bash -euo pipefail -c '. "$0"; need build package; tell_installed' "$top/packaging/source.sh"
  [ -z "$output" ]
  # shellcheck disable=SC2016
  run -0 bash -euo pipefail -c '. "$0"; note_closed "$1/closed/within"; note_closed "$1/open/not-yet"' "$top/packaging/source.sh" "$tree"
  [ "$(grep -F "$tree" <<<"$output")" = "note: not every user can enter $tree/closed, and so apt cannot; a release in /srv/graft can be registered with it" ]
}

@test "build-deb and build-rpm name what is missing before they begin" {
  local bin name
  bin=$(mktemp -d)
  # This machine without debhelper and rpm.
  printf '#!/bin/sh\n/usr/bin/dpkg-query "$@" | grep -vE "^(debhelper|rpm) "\n' >"$bin/dpkg-query"
  chmod a+rx "$bin" "$bin/dpkg-query"
  for name in build-deb build-rpm; do
    run -1 setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ "PATH=$bin:$PATH" "$top/packaging/$name" /tmp/graft-packages-of-nobody
    [ "$output" = "deps: not installed: debhelper rpm; run this as root (sudo tools/deps build package)" ] || { echo "$output" && return 1; }
  done
  rm -r "$bin"
}

@test "every file that is installed is in exactly one package, of Debian as of RPM" {
  local name
  DESTDIR=$BATS_TEST_TMPDIR/all meson install -C "$top/build-release" --no-rebuild >/dev/null
  # Where the two are the same: names below the prefix, without the folder of libraries; man pages are packed.
  plain() { sed -e 's|^\./||' -e 's|^usr/local/||' -e 's|^usr/||' -e 's|^lib/[^/]*-linux-gnu[^/]*/|lib/|' -e 's|^lib64/|lib/|' -e 's|\.gz$||' | grep -v -e '^$' -e '/$' -e '^share/doc' -e '^share/lintian' -e '^lib/\.build-id' -e '^etc/nvidia' | sort; }
  (cd "$BATS_TEST_TMPDIR/all" && find . -type f -o -type l) | plain >"$BATS_TEST_TMPDIR/installed"
  for name in "${names[@]}" nvidia-device-plugin gpu-feature-discovery; do
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
  dpkg --compare-versions "$(field libnvidia-container1 Version)" gt "$(sed -n "s/^compatible = '\(.*\)'/\1/p" "$top/meson.build")-1"
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
  # A specification of an older generator is named, and stays.
  mkdir "$root/etc/cdi"
  printf 'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: [{name: a, containerEdits: {hooks: [{hookName: createContainer, path: /usr/bin/nvidia-ctk, args: [nvidia-ctk, hook, chmod]}]}}]\n' >"$root/etc/cdi/old.yaml"
  cp "$root/etc/cdi/old.yaml" "$BATS_TEST_TMPDIR/old.yaml"
  in_root sh -c 'dpkg -i /packages/*.deb' >"$BATS_TEST_TMPDIR/log" 2>&1
  grep -qF "CDI spec /etc/cdi/old.yaml has hooks without an environment (/usr/bin/nvidia-ctk): an image's variables reach them (CVE-2025-23266). Run 'nvidia-ctk cdi refresh' as root" "$BATS_TEST_TMPDIR/log" || { cat "$BATS_TEST_TMPDIR/log" && return 1; }
  cmp "$root/etc/cdi/old.yaml" "$BATS_TEST_TMPDIR/old.yaml"
  rm -r "$root/etc/cdi"
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

# engines: a host whose engines are configured for us by default, with CDI. What was there before is in $BATS_TEST_TMPDIR/etc.
engines() {
  mkdir -p "$root"/etc/{docker,containerd/conf.d,crio/crio.conf.d}
  printf '{\n\t"log-level": "warn",  "runtimes": {"kata": {"path": "/opt/kata"}}\n}\n' >"$root/etc/docker/daemon.json"
  printf '# ours\nversion = 2\n' >"$root/etc/containerd/config.toml"
  printf '[crio.runtime]\nlog_level = "warn" # loud\n' >"$root/etc/crio/crio.conf"
  rm -rf "${BATS_TEST_TMPDIR:?}/etc"
  mkdir "$BATS_TEST_TMPDIR/etc"
  cp -a "$root"/etc/{docker,containerd,crio} "$BATS_TEST_TMPDIR/etc"
}
configure_engines() {
  in_root nvidia-ctk --quiet runtime configure --runtime=docker --set-as-default --cdi.enabled
  in_root nvidia-ctk --quiet runtime configure --runtime=containerd --set-as-default
  in_root nvidia-ctk --quiet runtime configure --runtime=crio
}
engines_are_as_before() {
  local name
  for name in docker containerd crio; do
    diff -r "$BATS_TEST_TMPDIR/etc/$name" "$root/etc/$name" || return 1
  done
}

# page SECTION: the commands of docs/removal.md there.
page() { sed -n "/^## $1\$/,/^## /s/^    //p" "$top/docs/removal.md" | sed 's/sudo //g; s/apt-get \(purge\|install\)/apt-get -qq -y \1/'; }

# repository NAME [OPTION]: the packages in the root's /NAME, for apt alone.
repository() {
  (cd "$root/$1" && dpkg-scanpackages --multiversion . 2>/dev/null >Packages)
  printf 'deb [trusted=yes] file:/%s ./\n' "$1" >"$root/etc/apt/sources.list.d/$1.list"
}

@test "purged, every engine is as it was before; while a container needs the runtime, the package stays" {
  clean_root
  engines
  repository packages
  in_root sh -c 'apt-get -qq update && dpkg -i /packages/*.deb' >"$BATS_TEST_TMPDIR/log" 2>&1
  configure_engines
  run ! engines_are_as_before
  cp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/configured"
  page Remove >"$root/commands"
  [ "$(wc -l <"$root/commands")" -eq 1 ]
  # A dockerd that runs with it by default.
  cp "$(command -v sleep)" "$root/run/dockerd"
  run in_root bash -c '/run/dockerd 60 & until grep -qx dockerd /proc/$!/comm; do sleep 0.02; done; . /commands'
  [ "$status" -ne 0 ]
  [[ $output == *"docker starts containers with the runtime 'nvidia' by default, and could not start any without it. Run 'nvidia-ctk runtime configure --runtime=docker --undo' and restart docker first; it is running."* ]] ||
    { echo "$output" && return 1; }
  cmp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/configured"
  [ -x "$root/usr/bin/nvidia-container-runtime" ]
  # It was the only reason.
  mkdir -p "$root/run/cdi" && touch "$root/run/cdi/nvidia.yaml"
  run in_root bash -e /commands
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  engines_are_as_before
  run in_root dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' 'nvidia-container*' 'libnvidia-container[1t]*'
  [[ $output != *" installed"* && $output != *" config-files"* ]] || { echo "$output" && return 1; }
  [ ! -e "$root/usr/bin/nvidia-container-runtime" ]
  in_root test ! -e /run/cdi/nvidia.yaml
}

# rpm_root: a root with a shell at $root, our packages in it by dnf, engines configured for us. in_rpm_root COMMAND...: as an administrator's shell whose dnf and
# rpm work on the root, and with it their scriptlets; its processes are those of the root.
rpm_root() {
  clean_root
  engines
  dnf_root "$root"
  run in_rpm_root dnf install nvidia-container-toolkit
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  configure_engines
  cp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/configured"
  mkdir -p "$root/run/cdi" && touch "$root/run/cdi/nvidia.yaml"
}
in_rpm_root() {
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --propagation private -- sh -ec '
    mount --bind "$1" "$1" && mount -t proc proc /proc && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && PATH=$2:$PATH
    shift 2 && exec "$@"' sh "$root" "$BATS_TEST_TMPDIR/dnf-bin" "$@"
}
# dnf_page NUMBER: the command of docs/removal.md for Fedora and RHEL: 1 removes, 2 goes back to NVIDIA's packages, 3 comes from them.
dnf_page() { page 'Fedora and RHEL' | sed -e ':a; /\\$/{N; s/\\\n *//; ba}' | sed -n "$1p"; }
rpms_of_root() { rpm --root "$root" -qa --queryformat '%{NAME} %{VERSION}-%{RELEASE}\n' '*nvidia*' | sort; }

@test "RPM: removed, every engine is as it was before; while a container needs the runtime, the package stays" {
  rpm_root
  run ! engines_are_as_before
  dnf_page 1 >"$BATS_TEST_TMPDIR/commands"
  grep -q '^dnf remove ' "$BATS_TEST_TMPDIR/commands"
  # A dockerd that runs with it by default.
  cp "$(command -v sleep)" "$root/run/dockerd"
  # shellcheck disable=SC2016
  run in_rpm_root bash -c 'chroot "$1" /run/dockerd 60 & until grep -qx dockerd /proc/$!/comm; do sleep 0.02; done; . "$2"' bash "$root" "$BATS_TEST_TMPDIR/commands"
  [ "$status" -ne 0 ]
  [[ $output == *"docker starts containers with the runtime 'nvidia' by default, and could not start any without it. Run 'nvidia-ctk runtime configure --runtime=docker --undo' and restart docker first; it is running."* ]] ||
    { echo "$output" && return 1; }
  cmp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/configured"
  [ -x "$root/usr/bin/nvidia-container-runtime" ] && [ -e "$root/run/cdi/nvidia.yaml" ]
  [[ $(rpms_of_root) == *"nvidia-container-toolkit-base "* ]]
  # It was the only reason.
  run in_rpm_root dnf install nvidia-container-toolkit
  run in_rpm_root bash -e "$BATS_TEST_TMPDIR/commands"
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  engines_are_as_before
  [ "$(rpms_of_root)" = "" ]
  [ ! -e "$root/usr/bin/nvidia-container-runtime" ] && [ ! -e "$root/run/cdi/nvidia.yaml" ]
}

@test "RPM: 'rpm -e' does the same; the hook leaves hooks.d with its own package, and an upgrade leaves engines alone" {
  rpm_root
  mkdir -p "$root/usr/share/containers/oci/hooks.d"
  in_root nvidia-ctk --quiet runtime configure --runtime=podman --config-mode=oci-hook
  [ -e "$root/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json" ]
  in_rpm_root rpm --root "$root" -U --replacepkgs --nosignature "$rpms"/nvidia-container-toolkit-{1,base}*.rpm
  cmp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/configured"
  in_rpm_root rpm --root "$root" -e nvidia-container-toolkit
  [ ! -e "$root/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json" ]
  cmp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/configured"
  in_rpm_root rpm --root "$root" -e nvidia-container-toolkit-base
  engines_are_as_before
}

@test "RPM: from ours to NVIDIA's packages and back, by the commands of the page; engines and settings stay" {
  local nvidia=$BATS_TEST_TMPDIR/nvidia
  rpm_root
  echo '# mine' >>"$root/etc/nvidia-container-runtime/config.toml"
  cp "$root/etc/nvidia-container-runtime/config.toml" "$BATS_TEST_TMPDIR"
  # As NVIDIA's are named and tied.
  mkdir "$nvidia"
  cat >"$nvidia/nvidia.spec" <<'SPEC'
Name: libnvidia-container1
Version: 1.20.1
Release: 1
Summary: stand-in
License: none
%description
stand-in
%package -n libnvidia-container-tools
Summary: stand-in
Requires: libnvidia-container1 >= %{version}-%{release}
%description -n libnvidia-container-tools
stand-in
%package -n nvidia-container-toolkit-base
Summary: stand-in
%description -n nvidia-container-toolkit-base
stand-in
%package -n nvidia-container-toolkit
Summary: stand-in
Requires: nvidia-container-toolkit-base = %{version}-%{release}, libnvidia-container-tools >= %{version}-%{release}
%description -n nvidia-container-toolkit
stand-in
%install
mkdir -p %{buildroot}/usr/bin %{buildroot}/etc/nvidia-container-runtime
for name in nvidia-container-cli nvidia-ctk nvidia-container-runtime nvidia-container-runtime-hook; do printf '#!/bin/sh\n# theirs\n' >%{buildroot}/usr/bin/$name; done
chmod 755 %{buildroot}/usr/bin/*
echo '# theirs' >%{buildroot}/etc/nvidia-container-runtime/config.toml
%files
%files -n libnvidia-container-tools
/usr/bin/nvidia-container-cli
%files -n nvidia-container-toolkit-base
/usr/bin/nvidia-ctk
/usr/bin/nvidia-container-runtime
%config(noreplace) /etc/nvidia-container-runtime/config.toml
%files -n nvidia-container-toolkit
/usr/bin/nvidia-container-runtime-hook
SPEC
  rpmbuild -bb --quiet --target "$machine" --define "_topdir $nvidia" --define "_rpmdir $nvidia/rpms" "$nvidia/nvidia.spec"
  createrepo_c --quiet "$nvidia/rpms"
  printf '[nvidia]\nname=nvidia\nbaseurl=file://%s\ngpgcheck=0\n' "$nvidia/rpms" >"$root/etc/yum.repos.d/nvidia.repo"
  mv "$root/etc/yum.repos.d/graft.repo" "$BATS_TEST_TMPDIR"
  dnf_page 2 >"$BATS_TEST_TMPDIR/commands"
  grep -q '^dnf downgrade ' "$BATS_TEST_TMPDIR/commands"
  run in_rpm_root bash -e "$BATS_TEST_TMPDIR/commands"
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  [ "$(rpms_of_root)" = $'libnvidia-container-tools 1.20.1-1\nlibnvidia-container1 1.20.1-1\nnvidia-container-toolkit 1.20.1-1\nnvidia-container-toolkit-base 1.20.1-1' ] ||
    { rpms_of_root && return 1; }
  grep -q theirs "$root/usr/bin/nvidia-container-runtime"
  cmp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/configured"
  cmp "$root/etc/nvidia-container-runtime/config.toml" "$BATS_TEST_TMPDIR/config.toml"
  # From theirs to ours, which are newer. NVIDIA's repository is still there.
  mv "$BATS_TEST_TMPDIR/graft.repo" "$root/etc/yum.repos.d"
  dnf_page 3 >"$BATS_TEST_TMPDIR/commands"
  grep -q '^dnf upgrade ' "$BATS_TEST_TMPDIR/commands"
  run in_rpm_root bash -e "$BATS_TEST_TMPDIR/commands"
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  [ "$(rpms_of_root | cut -d ' ' -f 2 | uniq -c | awk '{ print $1 }')" -eq 4 ]
  [[ $(rpms_of_root) == *graft* ]] || { rpms_of_root && return 1; }
  run ! grep -lr theirs "$root"/usr/bin/nvidia-*
  [ "$output" = "" ]
  in_root nvidia-ctk --version | grep -q '^graft-version: '
  cmp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/configured"
  cmp "$root/etc/nvidia-container-runtime/config.toml" "$BATS_TEST_TMPDIR/config.toml"
  # Theirs excluded, as the page says.
  sed -n '/^## Fedora and RHEL/,$s/.*`\(exclude=[^`]*\)`.*/\1/p' "$top/docs/removal.md" >>"$root/etc/yum.repos.d/nvidia.repo"
  grep -q '^exclude=' "$root/etc/yum.repos.d/nvidia.repo"
  dnf_page 2 >"$BATS_TEST_TMPDIR/commands"
  run in_rpm_root bash -e "$BATS_TEST_TMPDIR/commands"
  [[ $(rpms_of_root) != *1.20.1-1* ]] || { rpms_of_root && return 1; }
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

# nvidia VERSION: packages as NVIDIA names them, in the root's /nvidia: a program each, and the configuration file as one that dpkg watches.
nvidia() {
  local at=$BATS_TEST_TMPDIR libraries=usr/lib/x/libnvidia-container.so.1 name
  stand_in libnvidia-container1 "$1" "$libraries"
  stand_in libnvidia-container-tools "$1" usr/bin/nvidia-container-cli
  stand_in nvidia-container-toolkit-base "$1" usr/bin/nvidia-ctk usr/bin/nvidia-container-runtime etc/nvidia-container-runtime/config.toml
  stand_in nvidia-container-toolkit "$1" usr/bin/nvidia-container-runtime-hook
  echo /etc/nvidia-container-runtime/config.toml >"$at/nvidia-container-toolkit-base/DEBIAN/conffiles"
  sed -i "/^Version/aDepends: libnvidia-container1 (= $1)" "$at/libnvidia-container-tools/DEBIAN/control"
  sed -i "/^Version/aDepends: libnvidia-container-tools (= $1), nvidia-container-toolkit-base (= $1)" "$at/nvidia-container-toolkit/DEBIAN/control"
  mkdir -p "$root/nvidia"
  for name in libnvidia-container1 libnvidia-container-tools nvidia-container-toolkit-base nvidia-container-toolkit; do
    dpkg-deb --build --root-owner-group "$at/$name" "$root/nvidia" >/dev/null
  done
  repository nvidia
}
versions() { in_root dpkg-query --show --showformat '${Version} ${db:Status-Status}\n' libnvidia-container1 libnvidia-container-tools nvidia-container-toolkit nvidia-container-toolkit-base | sort -u; }

@test "from NVIDIA's packages to ours, and back: by the commands of the page; engines and settings stay" {
  clean_root
  rm "$root"/packages/graft-sim_*
  repository packages
  nvidia 1.20.1-1
  in_root sh -c 'apt-get -qq update && apt-get -qq -y install nvidia-container-toolkit=1.20.1-1 nvidia-container-toolkit-base=1.20.1-1 libnvidia-container-tools=1.20.1-1 libnvidia-container1=1.20.1-1' >"$BATS_TEST_TMPDIR/log" 2>&1 ||
    { cat "$BATS_TEST_TMPDIR/log" && return 1; }
  [ "$(versions)" = "1.20.1-1 installed" ]
  echo '# mine' >>"$root/etc/nvidia-container-runtime/config.toml"
  cp "$root/etc/nvidia-container-runtime/config.toml" "$BATS_TEST_TMPDIR/config.toml"
  engines
  printf '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}, "default-runtime": "nvidia"}' >"$root/etc/docker/daemon.json"
  cp "$root/etc/docker/daemon.json" "$BATS_TEST_TMPDIR/etc/docker"
  page "From NVIDIA's packages to Graft" >"$root/commands"
  run in_root bash -e /commands
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  [ "$(versions)" = "$(sed -n 's/^Version: *//p' "$top/packaging/graft.spec") installed" ]
  in_root nvidia-ctk --version | grep -q '^graft-version: '
  engines_are_as_before
  cmp "$root/etc/nvidia-container-runtime/config.toml" "$BATS_TEST_TMPDIR/config.toml"
  [ "$(in_root apt-mark showhold | wc -l)" -eq 4 ]
  page "Go back to NVIDIA's packages" | sed '/cdi generate/d' >"$root/commands"
  grep -q 'rm -f /etc/apt/sources.list.d/graft.list' "$root/commands"
  run in_root bash -e /commands
  [ "$status" -eq 0 ] || { echo "$output" && return 1; }
  [ "$(versions)" = "1.20.1-1 installed" ]
  [ "$(cat "$root/usr/bin/nvidia-ctk")" = old ]
  engines_are_as_before
  cmp "$root/etc/nvidia-container-runtime/config.toml" "$BATS_TEST_TMPDIR/config.toml"
  [ "$(in_root dpkg --audit)" = "" ]
}

@test "our packages replace older ones and their files, and none of them remains" {
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

@test "the device plugin is a package of its own: program, page, service, and the libraries that nothing else needs" {
  local file
  file=$(package nvidia-device-plugin)
  run dpkg-deb --field "$file" Depends
  [ "$(grep -oE '[a-z0-9.+-]+' <<<"$output" | grep -E '^lib[a-z]' | tr '\n' ' ')" = "libc6 libnghttp2-14 libprotobuf-c1 libyaml-0-2 " ]
  # What asks a cluster loads it; the service does not need it.
  [[ $(dpkg-deb --field "$file" Recommends) == *"libcurl4 | libcurl3-gnutls"* ]]
  run dpkg-deb --contents "$file"
  [[ $output == *./usr/bin/config-manager$'\n'* && $output == *./usr/share/man/man8/config-manager.8.gz* && $output == *./usr/bin/nvidia-device-plugin$'\n'* && $output == *./usr/share/man/man8/nvidia-device-plugin.8.gz* && $output == */systemd/system/nvidia-device-plugin.service* ]]
  [[ $output == *./usr/bin/mps-control-daemon$'\n'* && $output == *./usr/share/man/man8/mps-control-daemon.8.gz* && $output == */systemd/system/mps-control-daemon.service* ]]
  [[ $output == *./usr/bin/nvidia-nri-plugin$'\n'* && $output == *./usr/share/man/man8/nvidia-nri-plugin.8.gz* && $output == */systemd/system/nvidia-nri-plugin.service* ]]
}

@test "feature discovery is a package of its own: program, page, service; libcurl is not needed for a file" {
  local file
  file=$(package gpu-feature-discovery)
  run dpkg-deb --field "$file" Depends
  [ "$(grep -oE '[a-z0-9.+-]+' <<<"$output" | grep -E '^lib[a-z]' | tr '\n' ' ')" = "libc6 libyaml-0-2 " ]
  [ "$(dpkg-deb --field "$file" Recommends)" = "libcurl4 | libcurl3-gnutls" ]
  run dpkg-deb --contents "$file"
  [[ $output == *./usr/bin/gpu-feature-discovery$'\n'* && $output == *./usr/share/man/man8/gpu-feature-discovery.8.gz* && $output == */systemd/system/gpu-feature-discovery.service* ]]
}

@test "RPM: names, ties and the configuration file" {
  run --separate-stderr rpm -qp --queryformat '%{NAME}\n' "$rpms"/*.rpm
  [ "$(sort <<<"$output" | tr '\n' ' ')" = "gpu-feature-discovery graft-sim libnvidia-container-devel libnvidia-container-static libnvidia-container-tools libnvidia-container1 nvidia-container-toolkit nvidia-container-toolkit-base nvidia-device-plugin " ]
  [ "$(rpm -qcp "$rpms"/nvidia-container-toolkit-base-*.rpm)" = /etc/nvidia-container-runtime/config.toml ]
  rpm -qp --requires "$rpms"/nvidia-container-toolkit-1*.rpm | grep -q '^libnvidia-container-tools'
  rpm -qp --provides "$rpms"/libnvidia-container1-*.rpm | grep -q '^libnvidia-container.so.1(NVC_1.0)'
}

@test "nvidia-docker: run and create get the runtime and NV_GPU, whatever options precede them; nothing else changes" {
  local docker=$top/packaging/nvidia-docker
  words() { NV_DOCKER='printf <%s>' NV_GPU=${gpus-} "$docker" "$@"; }
  [ "$(words run -it image sh -c 'a b')" = "<run><--runtime=nvidia><-it><image><sh><-c><a b>" ]
  [ "$(gpus='0 1' words -H tcp://run container create image run)" = "<-H><tcp://run><container><create><--runtime=nvidia><-e><NVIDIA_VISIBLE_DEVICES=0,1><image><run>" ]
  [ "$(gpus=GPU-1,GPU-2 words --config x --debug run image)" = "<--config><x><--debug><run><--runtime=nvidia><-e><NVIDIA_VISIBLE_DEVICES=GPU-1,GPU-2><image>" ]
  [ "$(gpus=0 words build -t run .)" = "<build><-t><run><.>" ]
  [ "$(words ps)" = "<ps>" ]
  [ "$(words)" = "<>" ]
}
