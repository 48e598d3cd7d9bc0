# SPDX-License-Identifier: Apache-2.0
# GPUs of pods through NRI, with containerd 1.7 of Debian 13, which has no other configuration for us. It comes from Debian's archive (test/tools/release-root); without a
# network each test is skipped by its name.

load lib.bash
load engines.bash
load nri.bash

setup_file() { start_nri_machine trixie; }
teardown_file() { stop_machine; }
setup() { nri_setup; }
teardown() { nri_teardown; }

@test "it is containerd 1.7 of Debian 13" { ctr version | grep -q "^  Version: *\(v\|\)1\.7\."; }
@test "GPUs that the kubelet has given, by variables" { nri_by_variable; }
@test "GPUs that the kubelet has given, by mounts" { nri_by_mounts; }
@test "what an image or a pod asks for itself gives nothing" { nri_own_request; }
@test "GPUs by CDI from the engine, with an image that asks for all" { nri_by_cdi; }
@test "an annotation of a foreign namespace is refused, and the answer says why" { nri_foreign_annotation; }
@test "the same, skipped in silence where the administrator wants that" { nri_skipped_annotation; }
@test "other kinds of CDI devices, where they are allowed" { nri_allowed_kind; }
@test "20 kB of edits" { nri_large_adjustment; }
@test "a plugin that is stopped for three seconds" { nri_stopped_plugin; }
@test "a kubelet that does not answer in time" { nri_slow_kubelet; }
@test "an init container" { nri_init_container; }
@test "pods during a restart of the engine: none without its devices" { nri_storm; }
@test "the engine starts the plugin itself" { nri_started_by_engine; }
