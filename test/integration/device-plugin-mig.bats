# SPDX-License-Identifier: Apache-2.0
# What the device plugin answers for MIG devices, given to this machine's containerd.

load lib.bash
load engines.bash
load device-plugin.bash

setup_file() { topology=a100-mig start_plugin_machine; }
teardown_file() { stop_machine; }
setup() { engine_setup; }
teardown() { engine_teardown; }

@test "a MIG device, by variables" { by_mig envvar --handler nvidia; }

@test "a MIG device, by annotations" {
  config_toml <<TOML
[nvidia-ctk]
path = "$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook"
TOML
  by_mig cdi-annotations --handler nvidia
}

@test "two kinds of MIG devices: the kubelet keeps one variable of two, and the container has one device" { by_two_kinds envvar 1 --handler nvidia; }

@test "two kinds of MIG devices, by mounts: the container has both" {
  config_toml <<TOML
accept-nvidia-visible-devices-as-volume-mounts = true
TOML
  by_two_kinds volume-mounts 2 --handler nvidia
}

@test "two kinds of MIG devices, by annotations: the container has both" {
  config_toml <<TOML
[nvidia-ctk]
path = "$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook"
TOML
  by_two_kinds cdi-annotations 2 --handler nvidia
}
