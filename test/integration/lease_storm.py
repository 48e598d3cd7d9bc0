#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Many containers that want a GPU each, as an engine makes them, for lease-storm.bats.

    lease_storm.py JOB     a file of JSON: "runtime", "runc", paths of programs; "work", a directory for bundles, state and pid files;
                           "config", the configuration of a container; "hook", that of the hook; "group", a cgroup; "count", how many
                           containers, "at_a_time"; "kill", whether processes are killed at random meanwhile

Each container is created, started, awaited and deleted. Half of them get the GPU from the runtime, the others from the hook; half
of each wait for it, the others try again. Prints how many processes of each kind were killed. Fails if a container never came up.
"""
import collections
import ctypes
import json
import os
import random
import select
import subprocess
import sys
import tempfile
import threading
import time

import lease_reaper

TRIES, LIFE_S = 300, 20
PR_SET_CHILD_SUBREAPER = 36


class Processes:
    """All descendants: those that this program waits for, and those that were left to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.own = set()
        self.stopped = False
        self.killed = collections.Counter()
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            sys.exit("lease_storm: no subreaper")

    def run(self, argv, output):
        with self.lock, open(output, "wb") as stream:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
            self.own.add(child.pid)
        status = child.wait()
        with self.lock:
            self.own.discard(child.pid)
        return status

    def descendants(self):
        """(pid, parent's pid) of each."""
        parents = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stream:
                    fields = stream.read().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(name))
        found, left = [], [os.getpid()]
        while left:
            parent = left.pop()
            for pid in parents.get(parent, []):
                found.append((pid, parent))
                left.append(pid)
        return found

    def reap(self):
        while not self.stopped:
            with self.lock:
                orphans = [pid for pid, parent in self.descendants() if parent == os.getpid() and pid not in self.own]
                for pid in orphans:
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.05)

    def kill(self, chance):
        while not self.stopped:
            kinds = collections.defaultdict(list)
            for pid, _ in self.descendants():
                kinds[lease_reaper.kind_of(pid)].append(pid)
            kinds.pop(None, None)
            if kinds:
                kind = chance.choice(sorted(kinds))
                self.killed[kind] += lease_reaper.kill_one(kinds[kind], chance)
            time.sleep(chance.uniform(0.03, 0.15))


class Storm:
    def __init__(self, job):
        self.job, self.processes = job, Processes()
        self.numbers = iter(range(job["count"]))
        self.lock = threading.Lock()
        self.failures = []

    def write_bundle(self, number, name, path):
        config = json.loads(json.dumps(self.job["config"]))
        config["linux"]["cgroupsPath"] = f"/{self.job['group']}/{name}"
        config["process"]["env"] += ["NVIDIA_VISIBLE_DEVICES=any:1", f"NAME=c{number}"]
        if number % 4 >= 2:
            config["process"]["env"].append("NVIDIA_LEASE_WAIT=10s")
        if number % 2 == 1:
            config["hooks"] = {"prestart": [self.job["hook"]]}
        with open(f"{path}/config.json", "w", encoding="utf-8") as stream:
            json.dump(config, stream)

    def runc(self, program, *words):
        return self.processes.run([program, "--root", f"{self.job['work']}/runc", *words], f"{self.job['work']}/out-{words[-1]}")

    def await_end(self, pid_file):
        try:
            with open(pid_file, encoding="ascii") as stream:
                fd = os.pidfd_open(int(stream.read()))
        except (OSError, ValueError):
            return
        select.select([fd], [], [], LIFE_S)
        os.close(fd)

    def live(self, number, attempt):
        """One life, with a name and a bundle of its own, as engines make them: runc that is killed can leave a mount in its state, and then
        the name is lost. Returns None, or why the container was not created."""
        name, bundle = f"c{number}.{attempt}", tempfile.mkdtemp(dir=self.job["work"])
        pid_file = f"{bundle}/pid"
        self.write_bundle(number, name, bundle)
        program = self.job["runc" if number % 2 == 1 else "runtime"]
        created = self.runc(program, "create", "--bundle", bundle, "--pid-file", pid_file, name) == 0
        if created and self.runc(self.job["runc"], "start", name) == 0:
            self.await_end(pid_file)
        with open(f"{self.job['work']}/out-{name}", encoding="utf-8", errors="replace") as stream:
            said = stream.read()
        self.runc(self.job["runc"], "delete", "--force", name)
        if created:
            return None
        with open(f"{self.job['work']}/out-{name}", encoding="utf-8", errors="replace") as stream:
            return f"{said or 'it was killed'}; deleted: {stream.read()}"

    def work(self):
        while True:
            with self.lock:
                number = next(self.numbers, None)
            if number is None:
                return
            for attempt in range(TRIES):
                why = self.live(number, attempt)
                if not why:
                    break
                time.sleep(random.uniform(0.02, 0.2))
            else:
                self.failures.append(f"c{number}: {why}")

    def run(self):
        chance = random.Random()
        helpers = [threading.Thread(target=self.processes.reap)]
        if self.job["kill"]:
            helpers.append(threading.Thread(target=self.processes.kill, args=[chance]))
        workers = [threading.Thread(target=self.work) for _ in range(self.job["at_a_time"])]
        for thread in helpers + workers:
            thread.start()
        for thread in workers:
            thread.join()
        self.processes.stopped = True
        for thread in helpers:
            thread.join()
        for kind, number in sorted(self.processes.killed.items()):
            print(f"{kind}: {number}")
        return "\n".join(self.failures)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as opened:
        sys.exit(Storm(json.load(opened)).run() or None)
