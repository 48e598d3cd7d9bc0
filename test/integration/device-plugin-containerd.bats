# SPDX-License-Identifier: Apache-2.0
# What the device plugin answers for a container, given to this machine's containerd: the container has the GPUs that were chosen. Newer ones are in
# device-plugin-trixie.bats and device-plugin-forky.bats.

load lib.bash
load engines.bash
load device-plugin.bash

setup_file() { start_plugin_machine; }
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() { engine_teardown; }

@test "by variables" { by_variables; }
@test "by mounts" { by_mounts; }
@test "device nodes beside variables" { by_nodes; }
@test "an IMEX channel, by variables" { by_imex envvar --handler nvidia; }
@test "a share of a GPU, by variables" { by_replicas envvar --handler nvidia; }
@test "GDRCopy, GPUDirect Storage and RDMA, by variables" { by_gates envvar --handler nvidia; }

@test "by annotations, with the specification that the plugin has written" {
  config_toml <<TOML
[nvidia-ctk]
path = "$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook"
TOML
  by_annotations --handler nvidia --env NVIDIA_VISIBLE_DEVICES=all
}
