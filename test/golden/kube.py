#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the device plugin offers, and what containers get from it, on all hosts of the golden tests.

    kube.py KUBE_OFFER FOLDER [--update]

FOLDER/configs has config files; the first line of each names the hosts that it is for ("# hosts: all", "# hosts: NAME..."). What they give is in FOLDER/HOST/CONFIG.txt,
and the effective configuration in FOLDER/effective/CONFIG.txt.
TAP; --update writes all anew.
"""
import os
import shlex
import subprocess
import sys

from tap import KeptTexts, Tap

# What runs a program of a cross build.
EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))


def cases(folder):
    """Each host with each config file that is for it, and the words for the program."""
    hosts = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts")
    there = [h for h in sorted(os.listdir(hosts)) if os.path.exists(os.path.join(hosts, h, "inventory.json"))]
    for name in sorted(os.listdir(os.path.join(folder, "configs"))):
        config = os.path.join(folder, "configs", name)
        with open(config, encoding="utf-8") as stream:
            wanted = stream.readline().split("# hosts:")[1].split()
        yield "effective", os.path.splitext(name)[0], [config]
        for host in there if wanted == ["all"] else wanted:
            yield host, os.path.splitext(name)[0], [os.path.join(hosts, host, "inventory.json"), config]


def main():
    program, folder = sys.argv[1:3]
    kept = KeptTexts(Tap(), folder, "--update" in sys.argv[3:])
    for host, name, words in cases(folder):
        done = subprocess.run([*EMULATOR, program, *words], capture_output=True, encoding="utf-8", timeout=60, check=True)
        kept.compare("%s/%s" % (host, name), done.stdout)
    return kept.end()


sys.exit(main())
