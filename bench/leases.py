# SPDX-License-Identifier: Apache-2.0
"""What a lease adds to a start: a claim for one GPU, while running containers hold 16 others, compared with the same GPU by name.

The host has 17 GPUs. Each measured start leaves a lease that has ended, which the next one finds and removes, as on a real host.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import fixtures

# A third of this is for reading all GPUs of the host, most of the rest for 16 records and cgroups. The goal is 1.5; on slow
# machines a lease took up to 1.62, all of it in the kernel's opening and reading of files.
LIMIT = 1.8
HELD = 16
HOLDERS_S = 20
WORDS = f"a claim for 1 GPU with {HELD} leases, over the same by name"
TOPOLOGY = os.path.join(fixtures.TOP, "sim/topologies/dgx-h100-16.yaml")


def topology():
    with open(TOPOLOGY, encoding="utf-8") as stream:
        text = stream.read().replace("count: 16", f"count: {HELD + 1}")
    path = os.path.join(fixtures.SHIM.name, "lease.yaml")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path


def begin_holders(host, held):
    """Starts holders in cgroups of their own, whose makers have ended, as with containers."""
    script = f'for i in $(seq {HELD}); do "$0" lease run --scope -- sh -c "sleep 3600 &" & done; wait; sleep 3600'
    # pylint: disable=consider-using-with
    process = subprocess.Popen(fixtures.sim(host, [], ["sh", "-c", script, fixtures.CTK]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    end = time.monotonic() + HOLDERS_S
    while time.monotonic() < end:
        if os.path.isdir(held) and sum(not name.startswith(".") for name in os.listdir(held)) == HELD:
            return process
        time.sleep(0.05)
    end_holders(process)
    sys.exit("bench: the leases were not taken")


def end_holders(process):
    os.killpg(process.pid, signal.SIGTERM)
    process.wait()


def start(host, device, runs):
    plain = json.loads(fixtures.SHIM_FILES["config.json"])
    plain["root"]["path"] = "/mnt/root"
    plain["process"]["env"].append(f"NVIDIA_VISIBLE_DEVICES={device}")
    plain["linux"]["cgroupsPath"] = "/graft-bench"
    bundle = fixtures.bundle_file("lease.json", plain)
    return fixtures.spawn_json(host, [], runs, ["--bundle", bundle], [fixtures.RUNTIME, "create", "--bundle", "/mnt/bundle", "bench"])["ratio"]


def measure(runs, attempts, limit):
    """Returns units: the best of several attempts, up to the first within the limit."""
    # In memory, as /run is.
    with tempfile.TemporaryDirectory(prefix="graft-bench-", dir="/dev/shm") as folder:
        return measure_in(folder, runs, attempts, limit)


def measure_in(folder, runs, attempts, limit):
    host, directory = topology(), f"{folder}/leases"
    fixtures.start_config("auto")
    with open(os.path.join(fixtures.SHIM.name, "config.toml"), "a", encoding="utf-8") as stream:
        stream.write(f'graft.leases.mode = "on"\ngraft.leases.directory = "{directory}"\n')
    holders = begin_holders(host, f"{directory}/held")
    best = None
    try:
        for _ in range(attempts):
            found = start(host, "any:1", runs) - start(host, str(HELD), runs)
            best = found if best is None else min(best, found)
            if best <= limit:
                break
    finally:
        end_holders(holders)
        # The next lease removes their cgroups.
        subprocess.run(fixtures.sim(host, [], [fixtures.CTK, "lease", "run", "--", "true"]), capture_output=True, check=False)
    print(f"# lease: {best:.2f} units", file=sys.stderr)
    return best


def table(found, limit):
    return f"| a lease | units | limit |\n|---|---|---|\n| {WORDS} | {found:.2f} | {limit} |"
