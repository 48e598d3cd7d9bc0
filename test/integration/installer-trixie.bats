# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk-installer with containerd 1.7 of Debian 13, with the files where containerd looks for them. It comes from Debian's archive
# (test/tools/release-root); without a network each test is skipped by its name.

load lib.bash
load engines.bash
load nri.bash
load installer.bash

setup_file() { start_installer_machine trixie 2; }
teardown_file() { stop_machine; }
setup() { installer_setup; }
teardown() { installer_teardown; }

@test "installed, read by containerd, used by pods, started again, and taken back to the byte" { installer_pods; }
@test "NRI: pods get what the kubelet has given, and nothing of the engine is changed" { installer_nri; }
