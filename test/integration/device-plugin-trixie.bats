# SPDX-License-Identifier: Apache-2.0
# What the device plugin answers for a container, given to containerd 1.7 of Debian 13, which reads CDI specifications itself. It comes from Debian's
# archive (test/tools/release-root); without a network each test is skipped by its name.

load lib.bash
load engines.bash
load device-plugin.bash

setup_file() { start_plugin_machine trixie; }
teardown_file() { stop_machine; }
setup() {
  need_engines
  engine_setup
}
teardown() { [ -e "$machine/why" ] || engine_teardown; }

@test "it is containerd 1.7 of Debian 13" { ctr version | grep -q "^  Version: *\(v\|\)1.7."; }
@test "by variables" { by_variables; }
@test "by mounts" { by_mounts; }
@test "by annotations, without a runtime class" { by_annotations; }
@test "by annotations, with the runtime class" { by_annotations --handler nvidia; }
@test "by names of CDI devices, without a runtime class" { by_names; }
@test "by names of CDI devices, with the runtime class" { by_names --handler nvidia; }
@test "by names of CDI devices, whose files a hook mounts" { by_late_mounts; }
@test "by annotations and names, with the runtime class, as the GPU Operator has it" { by_annotations_and_names; }
@test "device nodes beside variables" { by_nodes; }
@test "an IMEX channel, by names of CDI devices" { by_imex cdi-cri; }
@test "a share of a GPU, by names of CDI devices" { by_replicas cdi-cri; }
@test "GDRCopy, GPUDirect Storage and RDMA, by names of CDI devices" { by_gates cdi-cri; }
@test "a name that the plugin has not given is refused" { by_wrong_names; }
