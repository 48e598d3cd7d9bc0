#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The apply stage on real mount namespaces: the C programs of this folder. meson test --list shows what each does.

load ../tools/trace.bash

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	build=${GRAFT_BUILD:-build-debug}/test/integration
}

# bats test_tags=old-kernel
@test "every kind of edit, for every kind of target, and back" {
	"$build/test_apply_edits"
}

# The second run (GRAFT_ENOSYS=1) takes all calls away at once; here they are missing one group at a time.
@test "every kind of edit without mount_setattr" {
	"$build/../tools/enosys" --only mount_setattr "$build/test_apply_edits"
}

@test "every kind of edit without fsopen" {
	"$build/../tools/enosys" --only fsopen,fsconfig,fsmount "$build/test_apply_edits"
}

@test "every kind of edit without open_tree" {
	"$build/../tools/enosys" --only open_tree,move_mount "$build/test_apply_edits"
}

@test "every kind of edit without openat2" {
	"$build/../tools/enosys" --only openat2 "$build/test_apply_edits"
}

@test "each system call and each allocation fails once" {
	"$build/test_apply_faults"
}

@test "hostile images: traps at every place, hard links, read-only, overlay, names that change all the time" {
	"$build/test_apply_hostile"
}
