# SPDX-License-Identifier: Apache-2.0
"""What the device plugin costs while it runs: calls of a kubelet (test/kubernetes/kubelet.py) on simulated hosts, memory, wake-ups, and sizes of programs."""
import os
import re
import subprocess
import sys
import tempfile

from fixtures import CONFIG_MANAGER, GFD, PLUGIN, TOP, sim

FOLDER = tempfile.TemporaryDirectory(prefix="graft-bench-")
KUBELET = os.path.join(TOP, "test/kubernetes/kubelet.py")
# name, what it is, unit, digits, limit (absolute, not relative to a start of /bin/true, because the kubelet waits for these)
ROWS = [
    ("allocate", "Allocate: 1 of 16 GPUs and all of them, the slower one", "ms", 3, 1),
    ("prefer-4", "GetPreferredAllocation: 4 of 16 GPUs", "ms", 3, 10),
    ("prefer-8", "GetPreferredAllocation: 8 of 16 GPUs", "ms", 3, 10),
    ("prefer", "GetPreferredAllocation: any number of 16 GPUs, the slowest", "ms", 3, 10),
    ("memory", "memory after these calls", "KiB", 0, 8192),
    ("idle", "wake-ups in a minute without an event, with none due later", "", 0, 0),
    ("plugin", "nvidia-device-plugin, stripped", "bytes", 0, 400_000),
    ("discovery", "gpu-feature-discovery, stripped", "bytes", 0, 400_000),
    ("manager", "config-manager, stripped", "bytes", 0, 400_000),
]
COSTS = re.compile(r"^# Allocate (\S+) ms; GetPreferredAllocation of 4 (\S+) ms, of 8 (\S+) ms, of \d+ \(the slowest\) (\S+) ms; (\d+) KiB$", re.M)
IDLE = re.compile(r"^# (\d+) wake-ups in 60 s, none is due;", re.M)


def begin(case, topology, gpus):
    """Begins a case of the kubelet. It sleeps most of the time, so other rows may be measured meanwhile."""
    words = ["env", f"KUBELET_GPUS={gpus}", "KUBELET_IDLE_S=60", sys.executable, "-B", KUBELET, case, PLUGIN]
    return subprocess.Popen(sim(topology, [], ["sh", "-c", 'cd "$0" && exec "$@"', tempfile.mkdtemp(dir=FOLDER.name), *words]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def numbers(process, pattern):
    """Returns the numbers of the line that the case prints, even if it found them too large."""
    out, err = process.communicate(timeout=120)
    found = pattern.search(out)
    if not found:
        sys.exit(f"bench: device plugin: status {process.returncode}\n{out}{err}")
    return [float(text) for text in found.groups()]


def stripped(program):
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "-o", file.name, program], check=True)
        return os.stat(file.name).st_size


def begin_idle():
    """Begins to watch a plugin that has nothing to do."""
    return begin("idle", "dgx-h100", 8)


def measure(attempts, idle):
    """Each row's number, the best of some attempts."""
    best = None
    for _ in range(attempts):
        found = numbers(begin("costs", "dgx-h100-16", 16), COSTS)
        best = [min(pair) for pair in zip(best or found, found)]
        if all(number <= row[4] for number, row in zip(best, ROWS)):
            break
    found = [*best, *numbers(idle, IDLE), *(stripped(program) for program in (PLUGIN, GFD, CONFIG_MANAGER))]
    for row, number in zip(ROWS, found):
        print(f"# {row[0]}: {number:.{row[3]}f} {row[2]}".rstrip(), file=sys.stderr)
    return dict(zip((row[0] for row in ROWS), found))


def table(found):
    out = ["| device plugin | | limit |", "|---|---|---|"]
    out += [f"| {words} | {found[name]:.{digits}f} {unit}".rstrip() + f" | {limit} {unit}".rstrip() + " |" for name, words, unit, digits, limit in ROWS]
    return "\n".join(out)


def check(found):
    return [(f"{words}: at most {limit} {unit}".rstrip(), found[name] <= limit, f"{found[name]:.{digits}f} {unit}".rstrip())
            for name, words, unit, digits, limit in ROWS]
