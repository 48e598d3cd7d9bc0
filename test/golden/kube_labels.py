#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The labels of all simulated hosts, as gpu-feature-discovery prints them there.

    kube_labels.py GRAFT_SIM GPU_FEATURE_DISCOVERY CONFIGS FOLDER [--update]

CONFIGS are those of kube.py, without the ones about answers to the kubelet; "# hosts:" in their first lines names hosts of the golden tests, which have topologies. What they give is in FOLDER/TOPOLOGY/CONFIG.txt: warnings, labels or the
error, and the exit status if it is not 0. The first run on a host asks NVML, all others take what is kept.
TAP; --update writes all anew.
"""
import os
import re
import subprocess
import sys

from tap import KeptTexts, Tap

HOSTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts")
MARK = "== "
# Each configuration with its mark, and what the program writes about it.
SCRIPT = """
program=$1 machine=$2
shift 2
for config; do
    echo "$config" | sed 's|.*/|== |'
    "$program" --config-file="$config" --oneshot --no-timestamp --output-file= --machine-type-file="$machine" --use-node-feature-api=false 2>&1 || echo "status $?"
done
"""
# The only log lines that are kept are warnings, without time and place; that the host is simulated is known.
LOG = re.compile(r"^([DIWE])\d{4} [0-9:.]+ \d+ \S+\] (.*)$")


def wanted(config):
    """The topologies that a config file is for, or None for all."""
    with open(config, encoding="utf-8") as stream:
        names = stream.readline().split("# hosts:")[1].split()
    return None if names == ["all"] else [topology_of(name) for name in names]


def topology_of(host):
    with open(os.path.join(HOSTS, host, "topology"), encoding="utf-8") as stream:
        return stream.read().split()[0]


def plain(line):
    found = LOG.match(line)
    if not found:
        return line
    return "warning: " + found[2] if found[1] == "W" and found[2] != "the driver of this host is simulated" else None


def labels(simulator, program, topology, configs, machine):
    """What each configuration gives, by name."""
    done = subprocess.run([simulator, "run", "-t", topology, "--", "/bin/sh", "-c", SCRIPT, "sh", program, machine, *configs],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", timeout=100, check=True)
    texts, name = {}, None
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            name = os.path.splitext(line[len(MARK):])[0]
            texts[name] = ""
        elif plain(line) is not None:
            texts[name] += plain(line) + "\n"
    return texts


def main():
    simulator, program, folder_of_configs, folder = (os.path.abspath(word) for word in sys.argv[1:5])
    kept = KeptTexts(Tap(), folder, "--update" in sys.argv[5:])
    if os.geteuid() != 0:
        print("1..0 # SKIP a simulated host needs root")
        return 77
    if os.environ.get("MESON_EXE_WRAPPER"):
        print("1..0 # SKIP an emulator does not see a program that is executed")
        return 0
    if os.uname().machine != "x86_64":
        print("1..0 # SKIP the files that are kept are those of x86_64")
        return 0
    configs = [os.path.join(folder_of_configs, name) for name in sorted(os.listdir(folder_of_configs))
               if not name.startswith(("answer-", "sample"))]
    machine = os.path.join(folder, "machine-type")
    topologies = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sim", "topologies")
    for topology in sorted(os.path.splitext(name)[0] for name in os.listdir(topologies)):
        mine = [config for config in configs if wanted(config) is None or topology in wanted(config)]
        for name, text in labels(simulator, program, topology, mine, machine).items():
            kept.compare("%s/%s" % (topology, name), text)
    return kept.end()


sys.exit(main())
