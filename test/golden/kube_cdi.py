#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CDI specifications of the device plugin for simulated hosts.

    kube_cdi.py GRAFT_SIM KUBE_CDI FOLDER [--schema FOLDER] [--update]

Each case is a topology and a config file. FOLDER/CASE has the files that are written, and said.txt with warnings and errors. TAP; --update writes all anew.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from tap import Tap, schema_errors, schema_skip

# What runs a program of a cross build.
EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
PLUGIN = "flags: {%s plugin: {deviceListStrategy: cdi-cri, nvidiaCTKPath: /usr/bin/nvidia-cdi-hook%s}}\n"
# Name, topology, config file.
CASES = [
    ("index", "single", PLUGIN % ("", ", deviceIDStrategy: index")),
    ("mig", "a100-mig", PLUGIN % ("migStrategy: mixed, nvidiaDriverRoot: /run/nvidia/driver,", ", deviceIDStrategy: index")),
    ("roots", "single", PLUGIN % ("nvidiaDriverRoot: /run/nvidia/driver, nvidiaDevRoot: /host,", "")),
    ("no-hooks", "single", PLUGIN % ("", ", cdiDisableHooks: [all, nonsense], cdiFeatureFlags: [no-additional-gids-for-device-nodes, x]")),
    ("wsl", "wsl2", PLUGIN % ("", "")),
    ("gates", "dgx-h100", PLUGIN % ("gdrcopyEnabled: true, gdsEnabled: true, mofedEnabled: true,", "")),
    ("no-gdrcopy", "t4", PLUGIN % ("gdrcopyEnabled: true,", "")),
    ("no-gds", "t4", PLUGIN % ("gdsEnabled: true,", "")),
    ("no-mofed", "t4", PLUGIN % ("mofedEnabled: true,", "")),
    ("imex", "gb200", PLUGIN % ("", "") + "imex: {channelIDs: [0], required: true}\n"),
    ("no-imex", "t4", PLUGIN % ("", "") + "imex: {channelIDs: [0]}\n"),
    ("imex-required", "t4", PLUGIN % ("", "") + "imex: {channelIDs: [0], required: true}\n"),
    ("envvar", "single", "flags: {}\n"),
]


def files_of(folder):
    found = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            found[name] = stream.read()
    return found


def make(options, case, topology, config, work):
    """The files of a case."""
    root, out, file = (os.path.join(work, case, name) for name in ("root", "out", "config.yaml"))
    os.makedirs(out)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(config)
    subprocess.run([*EMULATOR, options.graft_sim, "create", "-t", topology, root], check=True, timeout=60, stdout=subprocess.DEVNULL)
    done = subprocess.run([*EMULATOR, options.kube_cdi, file, root, out], capture_output=True, encoding="utf-8", timeout=60, check=False)
    said = re.sub(r"^warning: (missing|leaving out|the driver of this host is simulated).*\n", "", done.stderr.replace(root, "ROOT"), flags=re.M)
    shutil.rmtree(root)
    return dict(files_of(out), **({"said.txt": said} if said else {}))


def main():
    parser = argparse.ArgumentParser()
    for word in ("graft_sim", "kube_cdi", "folder"):
        parser.add_argument(word)
    parser.add_argument("--schema")
    parser.add_argument("--update", action="store_true")
    options, tap = parser.parse_args(), Tap()
    if os.getuid() != 0:
        print("1..0 # SKIP device nodes need root")
        return 77
    machine = "aarch64" if EMULATOR else os.uname().machine
    if machine != "x86_64":
        print("1..0 # SKIP the files that are kept are those of x86_64")
        return 0
    no_schema = schema_skip(options.schema, "CDI")
    if no_schema:
        tap.result("cdi-schema", skip=no_schema)
    with tempfile.TemporaryDirectory() as work:
        for case, topology, config in CASES:
            found, folder = make(options, case, topology, config, work), os.path.join(options.folder, case)
            if options.update:
                shutil.rmtree(folder, ignore_errors=True)
                for name, text in found.items():
                    os.makedirs(folder, exist_ok=True)
                    with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
                        stream.write(text)
            kept = files_of(folder)
            tap.result(case, ["%s is another one now" % n for n in sorted({*found, *kept}) if found.get(n) != kept.get(n)])
            for name, text in found.items():
                if name.endswith(".json") and not no_schema:
                    tap.result("%s: the schema allows %s" % (case, name), schema_errors(options.schema, "schema.json", text))
    return tap.end()


sys.exit(main())
