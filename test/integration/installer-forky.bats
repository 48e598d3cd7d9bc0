# SPDX-License-Identifier: Apache-2.0
# nvidia-ctk-installer with containerd 2 of Debian's next release, with the files where containerd looks for them. It comes from Debian's archive
# (test/tools/release-root); without a network each test is skipped by its name.

load lib.bash
load engines.bash
load nri.bash
load installer.bash

setup_file() { start_installer_machine forky 3; }
teardown_file() { stop_machine; }
setup() { installer_setup; }
teardown() { installer_teardown; }

@test "installed, read by containerd, used by pods, started again, and taken back to the byte" { installer_pods; }
@test "NRI: pods get what the kubelet has given, and nothing of the engine is changed" { installer_nri; }
@test "K3s: its template stays, the runtimes are in its directory of drop-ins, and a restart of K3s keeps them" { installer_k3s; }
