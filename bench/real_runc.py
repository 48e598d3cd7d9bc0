# SPDX-License-Identifier: Apache-2.0
"""What the shim costs with the real runc: the difference between runc through the shim and runc alone.

runc's own time is many times that difference, and varies by more. So runs of both alternate (bench/lifecycle), and the
result is the shift between the two samples: the median of the differences between each value of one and each of the
other (Hodges and Lehmann), with its 95 % confidence interval (from the rank sum, Mann and Whitney). A limit is exceeded
only if the whole interval is above it in each of several measurements, because with so many rows some interval is wrong
now and then.
"""
import functools
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile

import fixtures

RUNC = shutil.which("runc", path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
LIFECYCLE = f"{fixtures.TOP}/bench/lifecycle"
# Takes two minutes of ./check. Enough to see a start that costs twice its limit; to prove a limit,
# use --runc with some hundreds.
DEFAULT_SAMPLES = 30
ATTEMPTS = 3
# Calls that the shim passes on, for a container without a GPU. name, what it is, command, limit in
# units over runc alone
FORWARDED = [
    ("forward-create", "pass-through: create without a GPU", "create", 1.5),
    ("forward-state", "pass-through: state", "state", 1.5),
    ("forward-kill", "pass-through: kill", "kill", 1.5),
    ("forward-delete", "pass-through: delete", "delete", 1.5),
]
# All rows: name, what it is, limit in units over runc alone.
LIMITS = [(name, words, limit) for name, words, _, limit in FORWARDED] + [(row[0], row[1], row[5]) for row in fixtures.STARTS]


def container_config(variables):
    """The configuration of `runc spec`, with a writable root and a program that is never started."""
    with tempfile.TemporaryDirectory(dir=fixtures.SHIM.name) as folder:
        subprocess.run([RUNC, "spec"], cwd=folder, check=True)
        with open(f"{folder}/config.json", encoding="utf-8") as stream:
            config = json.load(stream)
    config["root"] = {"path": "/mnt/root", "readonly": False}
    config["process"].update(terminal=False, args=["/bin/true"], env=config["process"]["env"] + variables)
    config["process"].pop("rlimits", None)
    return config


def live(topology, options, variables, samples):
    """The pairs of each command of bench/lifecycle, with the current setup of the shim."""
    job = fixtures.bundle_file("job.json", {
        "runc": RUNC, "shim": fixtures.RUNTIME, "image": fixtures.root_path("debian"), "config": container_config(variables),
        "rewritten": bool(variables), "runs": samples,
    })
    command = fixtures.sim(topology, options, ["unshare", "--mount", "--propagation", "private", LIFECYCLE, job])
    # In its own session, so that it finishes what it began when this one is interrupted.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            out, errors = process.communicate()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    lines = [line for line in out.split("\n") if line.startswith("{")]
    if process.returncode != 0 or not lines:
        sys.exit(f"bench: {' '.join(command)}: status {process.returncode}\n{out}{errors}")
    return json.loads(lines[-1])


def unit_us(pairs):
    return statistics.median(unit for pair in pairs for unit in pair["units"])


def shift(more, less):
    """(low, estimate, high) of how far the values of one sample lie above those of another of the same size."""
    differences = sorted(a - b for a in more for b in less)
    n, total = len(more), len(differences)
    margin = 1.96 * math.sqrt(total * (2 * n + 1) / 12)
    low = max(0, round(total / 2 - margin) - 1)
    return differences[low], statistics.median(differences), differences[total - 1 - low]


def summary(pairs):
    low, estimate, high = shift([pair["shim"] for pair in pairs], [pair["runc"] for pair in pairs])
    unit = unit_us(pairs)
    return {
        "samples": len(pairs), "units": estimate / unit, "low": low / unit, "high": high / unit,
        "runc_us": statistics.median(pair["runc"] for pair in pairs), "unit_us": unit,
    }


def forwarded(samples):
    """{name: pairs} of all rows of FORWARDED."""
    fixtures.start_config("auto", RUNC)
    pairs = live("dgx-h100", [], [], samples)
    return {name: pairs[command] for name, _, command, _ in FORWARDED}


def started(row, samples):
    """{name: pairs} of a row of fixtures.STARTS."""
    name, _, topology, _, variables, _, options = row
    fixtures.prepare_start(row, RUNC)
    return {name: live(topology, options, variables, samples)["create"]}


def measure_best(take, attempts):
    """The summaries of the rows for which take() returns pairs. Measures again while one is above its limit; the lowest counts."""
    limits = {name: limit for name, _, limit in LIMITS}
    best = {}
    for _ in range(attempts):
        for name, pairs in take().items():
            found = summary(pairs)
            if name not in best or found["low"] < best[name]["low"]:
                best[name] = found
        if all(result["low"] <= limits[name] for name, result in best.items()):
            break
    for name, result in best.items():
        print(f"# with runc: {name}: {seen(result)}", file=sys.stderr)
    return best


def measure(samples, attempts):
    """The summary of each row of LIMITS."""
    results = measure_best(functools.partial(forwarded, samples), attempts)
    for row in fixtures.STARTS:
        results |= measure_best(functools.partial(started, row, samples), attempts)
    return results


def seen(result):
    return (f"{result['units']:.2f} units over runc alone, 95 % interval {result['low']:.2f} to {result['high']:.2f}, "
            f"{result['samples']} samples; runc alone {result['runc_us'] / 1000:.1f} ms, the unit {result['unit_us']:.0f} µs")


def check(results):
    """(name of the test, whether it holds, what was seen); without results, None for whether it holds."""
    tests = []
    for name, words, limit in LIMITS:
        test = f"with runc: {words}: at most {limit:.1f} units over runc alone"
        tests.append((test, results[name]["low"] <= limit, seen(results[name])) if results else (test, None, "runc is not installed"))
    return tests


def table(results):
    out = ["| with the real runc | units over runc alone | 95 % interval | limit | runc alone, ms | unit, µs | samples |",
           "|---|---|---|---|---|---|---|"]
    for name, words, limit in LIMITS:
        r = results[name]
        out.append(f"| {words} | {r['units']:.2f} | {r['low']:.2f} to {r['high']:.2f} | {limit:.1f} "
                   f"| {r['runc_us'] / 1000:.1f} | {r['unit_us']:.0f} | {r['samples']} |")
    return "\n".join(out)
