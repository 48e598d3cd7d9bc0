#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which GPUs a claim gets on simulated hosts, with some held and some not, compared with what is kept.

    lease.py GRAFT_SIM NVIDIA_CTK FOLDER [--update] [TOPOLOGY...]

Each line of FOLDER/TOPOLOGY.txt is "CLAIM of what is left: GPUS", after "held: CLAIM" lines that take leases. TAP; --update writes them. Without
a TOPOLOGY it is all of them.
"""
import os
import subprocess
import sys
import tempfile

from tap import Tap

TOPOLOGIES = ["a100-mig", "dgx-h100", "dgx-h100-16", "dgx1-v100", "no-driver", "pcie-8", "quad", "single", "workstation", "wsl2"]
CLAIMS = ["any", "any:2", "any:3", "any:4", "any:8", "any:2;same=nvlink", "any:2;same=numa", "any:2;same=pcie", "any:4;same=numa", "any;not=0;1",
          "any;model=h100", "any;mem>=40G", "mig:1g.5gb", "mig:3g.20gb:2", "mig:2g.10gb", "lease:abcdefgh2345"]
# The same hosts with two GPUs that are shared.
SHARED = 'shared = ["0=2", "1=3"]\n'
SHARE_CLAIMS = ["share", "share;spread", "share:2", "share:2;same=numa", "share:2;same=nvlink", "share:3", "share;not=0", "share;mem=8G", "any", "any:2"]
SHARE_HELD = ["share", "share;spread", "share", "share:2", "share", "any"]
# After each of these is taken, all claims are explained again.
HELD = ["any", "any:2", "mig:1g.5gb"]
SCRIPT = """
program=$1 held=$2 claims=$3
explain() {
    for claim in $claims; do
        printf '%s: ' "$claim"
        "$program" lease explain "$claim" 2>&1 >"$0.out" | sed -E 's/.*msg="(.*)"$/\\1/; s/\\. (Held|See|Run|Write|Install).*//' >"$0.said"
        sed -E 's/^GPU ([0-9]+): GPU[^,]*/\\1/; s/, slot / slot /; s/^GPU ([0-9]+): (MIG.*)/\\1 \\2/' "$0.out" "$0.said" | paste -sd , -
    done
}
explain
for claim in $held; do
    "$program" lease acquire --for 1h --claim "$claim" >/dev/null 2>&1 || continue
    echo "held: $claim"
    explain
done
"""


def answers(simulator, program, topology, settings, held, claims):
    with tempfile.TemporaryDirectory() as work:
        config = os.path.join(work, "config.toml")
        with open(config, "w", encoding="utf-8") as stream:
            stream.write('[graft.leases]\nmode = "on"\ndirectory = "%s/leases"\n%s' % (work, settings))
        done = subprocess.run([simulator, "run", "-t", topology, "--", "/bin/sh", "-c", SCRIPT, os.path.join(work, "x"), program, " ".join(held),
                               " ".join(claims)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", timeout=100, check=True,
                              env=dict(os.environ, NVIDIA_CTK_CONFIG_FILE_PATH=config))
    return done.stdout


def main():
    simulator, program, folder = (os.path.abspath(word) for word in sys.argv[1:4])
    update, tap = "--update" in sys.argv[4:], Tap()
    topologies = [word for word in sys.argv[4:] if word != "--update"] or TOPOLOGIES
    if os.geteuid() != 0:
        print("1..0 # SKIP a simulated host needs root")
        return 77
    if os.environ.get("MESON_EXE_WRAPPER"):
        print("1..0 # SKIP an emulator does not see a program that is executed")
        return 0
    for topology in topologies:
        path = os.path.join(folder, topology + ".txt")
        text = answers(simulator, program, topology, "", HELD, CLAIMS)
        text += "shared:\n" + answers(simulator, program, topology, SHARED, SHARE_HELD, SHARE_CLAIMS)
        if update:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
        with open(path, encoding="utf-8") as stream:
            kept = stream.read()
        new, old = text.splitlines(), kept.splitlines()
        problems = ["%s, not %s" % pair for pair in zip(new, old) if pair[0] != pair[1]]
        tap.result(topology, problems if len(new) == len(old) else problems + ["%d lines, not %d" % (len(new), len(old))])
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
