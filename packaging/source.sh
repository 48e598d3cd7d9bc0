# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts of this directory, in the root of a checkout or of an unpacked source archive:
# facts about the source.
# shellcheck shell=bash

# The files of the source as they are now, each followed by a NUL: those that git tracks or would
# add; in an archive, all.
source_files() {
	if [ -e .git ]; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . -type f -not -path './build*' -printf '%P\0'
	fi | sort -z
}

# When the source last changed, in seconds since 1970: with it, builds are the same byte for byte.
source_date() {
	if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
		echo "$SOURCE_DATE_EPOCH"
	elif [ -e .git ]; then
		git log -1 --format=%ct
	else
		date --date="$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%s
	fi
}

# The version of the packages, which has Graft's own after "+graft".
package_version() {
	sed -n 's/^Version: *//p' packaging/graft.spec
}

# What need() has installed.
installed=()

# need MODE...: installs what tools/deps lists for the modes, or lists it and exits. On other
# distributions rpmbuild says what it lacks.
need() {
	local missing mode asked=false
	command -v dpkg-query >/dev/null || return 0
	# What calls this script has asked already.
	for mode in "$@"; do
		[[ " ${found_modes:-} " == *" $mode "* ]] || asked=true
	done
	$asked || return 0
	mapfile -t missing < <(tools/deps --missing "$@")
	if [ ${#missing[@]} -gt 0 ]; then
		tools/deps "$@" >&2 || exit 1
		installed+=("${missing[@]}")
	fi
	export found_modes="${found_modes:-} $*"
}

# Prints how to remove that.
tell_installed() {
	[ ${#installed[@]} -eq 0 ] || printf 'To remove what was installed to build this:\n  sudo apt-get purge --auto-remove %s\n' "${installed[*]}"
}

# note_closed FOLDER: apt reads a repository as its own user, who usually cannot enter a home
# directory.
note_closed() {
	local folder=$1
	while [ "$folder" != / ]; do
		if [ -d "$folder" ] && [ $(($(stat -c 0%a "$folder") & 1)) -eq 0 ]; then
			echo "note: not every user can enter $folder, and so apt cannot; a release in /srv/graft can be registered with it"
		fi
		folder=$(dirname "$folder")
	done
}

# lacks ARCHITECTURE: prints what this machine lacks to build for it, if anything.
lacks() {
	local missing
	[ "$(dpkg --print-architecture)" != "$1" ] || return 0
	missing=$(tools/deps --missing "$1" 2>/dev/null | xargs) || missing=
	[ -n "$missing" ] || command -v "aarch64-linux-gnu-gcc" >/dev/null || missing="a cross compiler, and Debian"
	# There are no cross builds on arm64.
	[ "$1" = arm64 ] || missing="a machine of that kind"
	echo "$missing"
}

can_build() { [ -z "$(lacks "$1")" ]; }
