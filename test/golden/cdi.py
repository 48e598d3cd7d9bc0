#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CDI specifications of all simulated hosts in all modes, as the program writes them.

    cdi.py GRAFT_SIM NVIDIA_CTK FOLDER [--schema FOLDER] [--update]

FOLDER has a folder per topology, in it MODE.yaml for each mode that has something to describe, and errors.txt for the others. The driver root that a host is made of
stands in front of no path there, and the boot id is that of no machine. TAP; --update writes all anew.
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
MODES = ["csv", "gdrcopy", "gds", "imex", "management", "mofed", "nvml", "nvswitch", "wsl"]
# What some flags make of some hosts: topology, name, words.
VARIANTS = [
    ("a100-mig", "type-index", ["--mode=nvml", "--device-name-strategy=type-index"]),
    ("dgx-h100", "annotations", ["--mode=nvml", "--feature-flag=no-additional-gids-for-device-nodes", "--provenance=annotations"]),
    ("dgx-h100", "no-groups", ["--mode=nvml", "--feature-flag=no-additional-gids-for-device-nodes"]),
    ("gb200", "coherent", ["--mode=nvml", "--feature-flag=enable-coherent-annotations"]),
    ("geforce-laptop", "compat32", ["--mode=nvml", "--compat32"]),
    ("single", "compute", ["--mode=nvml", "--driver-capabilities=compute,utility"]),
    ("single", "explicit", ["--mode=nvml", "--feature-flag=enable-explicit-driver-libraries"]),
    ("dgx-h100", "late-mounts", ["--mode=nvml", "--late-mounts"]),
    ("single", "no-hooks", ["--mode=nvml", "--no-hooks"]),
    ("single", "none", ["--mode=nvml", "--device-id=none"]),
    ("single", "no-daemons", ["--mode=nvml", "--feature-flag=disable-ipc-discoverer"]),
]
# Whatever engines this machine has, the specs are for those that read the newest ones.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "NVIDIA_CTK_CDI_GENERATE_CDI_VERSION": "0.7.0"}
CSV = "/etc/nvidia-container-runtime/host-files-for-container.d/"


def topologies():
    """Each with the place of its driver root, from the hosts of the golden plans, and whether it is of the machine that the programs are built for."""
    machine = "aarch64" if EMULATOR else os.uname().machine
    hosts = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts")
    for host in sorted(os.listdir(hosts)):
        with open(os.path.join(hosts, host, "topology"), encoding="utf-8") as stream:
            topology, place = stream.read().split()[:2]
        try:
            with open(os.path.join(hosts, host, "machine"), encoding="utf-8") as stream:
                of_host = stream.read().strip()
        except FileNotFoundError:
            of_host = "x86_64"
        if topology == host:
            yield topology, place.rstrip("/"), of_host == machine


class Host:
    """A driver root on disk."""

    def __init__(self, options, topology, place, work):
        self.options, self.work = options, work
        self.top = os.path.join(work, topology)
        self.root = self.top + place
        subprocess.run([*EMULATOR, options.graft_sim, "create", "-t", topology, self.top], check=True, timeout=60, stdout=subprocess.DEVNULL)

    def generate(self, words):
        """The specification, or None and what was said instead."""
        lists = ["--csv.file=" + self.top + CSV + name + ".csv" for name in ("devices", "drivers", "l4t") if "csv" in words]
        done = subprocess.run([*EMULATOR, self.options.nvidia_ctk, "cdi", "generate", "--driver-root", self.root,
                               "--nvidia-cdi-hook-path=/usr/bin/nvidia-cdi-hook", *lists, *words],
                              env=ENVIRONMENT, timeout=60, capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "level=error" in line]
            return None, self.plain("\n".join(re.sub(r'^.*? msg="(.*)"$', r"\1", line) for line in lines))
        return self.plain(done.stdout), None

    def plain(self, text):
        text = text.replace(self.top + "/", "/").replace(self.top, "/").replace("--cdi-version=0.7.0 ", "")
        return re.sub(r"(boot-id(?:=|: ))[0-9a-f-]{36}", r"\g<1>00000000-0000-0000-0000-000000000000", text)

    def as_json(self, text):
        """Each document, by the program's own reader and writer."""
        for document in text.split("---\n")[1:]:
            source, target = os.path.join(self.work, "spec.yaml"), os.path.join(self.work, "spec.json")
            with open(source, "w", encoding="utf-8") as stream:
                stream.write(document)
            subprocess.run([*EMULATOR, self.options.nvidia_ctk, "--quiet", "cdi", "transform", "root", "--from=/", "--to=/", "--input", source,
                            "--output", target], check=True, timeout=60)
            with open(target, encoding="utf-8") as stream:
                yield stream.read()


# What NVML is asked for: graft-nvml is executed, which an emulator does not see.
ASKS_NVML = {"coherent"}


def look(options, tap, topology, place, work):
    """All of one host: files by name."""
    host, files, errors = Host(options, topology, place, work), {}, ""
    cases = [(mode, ["--mode", mode]) for mode in MODES] + [v[1:] for v in VARIANTS if v[0] == topology]
    for name, words in cases:
        if EMULATOR and name in ASKS_NVML:
            tap.result("%s/%s" % (topology, name), skip="an emulator does not see a program that is executed")
            with open(os.path.join(options.folder, topology, name + ".yaml"), encoding="utf-8") as stream:
                files[name + ".yaml"] = stream.read()
            continue
        spec, error = host.generate(words)
        if error:
            errors += "%s: %s\n" % (name, error)
            continue
        files[name + ".yaml"] = spec
        again = host.generate(words)[0]
        tap.result("%s/%s: twice the same" % (topology, name), [] if again == spec else ["it is not"])
        if not options.no_schema:
            tap.result("%s/%s: the schema allows it" % (topology, name),
                       [e for text in host.as_json(spec) for e in schema_errors(options.schema, "schema.json", text)])
    if errors:
        files["errors.txt"] = errors
    shutil.rmtree(host.top)
    return files


def read_folder(folder):
    if not os.path.isdir(folder):
        return {}
    files = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            files[name] = stream.read()
    return files


def write_folder(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            stream.write(text)


def first_difference(kept, found):
    for number, (old, new) in enumerate(zip(kept.splitlines() + [""], found.splitlines() + [""]), 1):
        if old != new:
            return ["line %d" % number, "- " + old, "+ " + new, "read the difference, and run test/golden/update"]
    return ["one has more lines than the other"]


def compare(tap, topology, kept, found):
    for name in sorted(set(kept) | set(found)):
        if name not in found or name not in kept:
            problems = ["there is a kept file and nothing is found" if name in kept else "nothing is kept"]
        else:
            problems = [] if kept[name] == found[name] else first_difference(kept[name], found[name])
        tap.result("%s/%s" % (topology, name), problems)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("graft_sim")
    parser.add_argument("nvidia_ctk")
    parser.add_argument("folder")
    parser.add_argument("--schema")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    if os.getuid() != 0:
        print("1..0 # SKIP device nodes need root")
        return 77
    tap, seen = Tap(), []
    options.no_schema = schema_skip(options.schema, "CDI")
    with tempfile.TemporaryDirectory() as work:
        for topology, place, is_ours in topologies():
            seen.append(topology)
            if not is_ours:
                continue
            folder = os.path.join(options.folder, topology)
            found = look(options, tap, topology, place, work)
            if options.update:
                write_folder(folder, found)
            compare(tap, topology, read_folder(folder), found)
    left = [name for name in os.listdir(options.folder) if name not in seen]
    for name in left if options.update else []:
        shutil.rmtree(os.path.join(options.folder, name))
    tap.result("every kept folder has its host", [] if options.update else left)
    if options.no_schema:
        tap.result("cdi-schema", skip=options.no_schema)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
