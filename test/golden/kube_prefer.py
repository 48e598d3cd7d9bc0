#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which devices the device plugin prefers on simulated hosts, compared with what is kept, and judged.

    kube_prefer.py GRAFT_SIM KUBE_PREFER FOLDER [--update]

FOLDER/configs has config files; "# hosts:" in the first line of each names topologies. The answers are in FOLDER/TOPOLOGY/CONFIG.txt.
Besides, each answer is judged by the topology's page and the rules (SPEC kubernetes 6.6, 6.7), written anew here: that of whole GPUs
has to be one of the best up to 8 GPUs, and of more at least BOUND of the best set; of other devices each choice has to fit the policy.
TAP; --update writes all anew.
"""
import functools
import itertools
import os
import subprocess
import sys

import yaml
from tap import KeptTexts, Tap

BOUND = 0.8  # a set may score less so that what remains scores more
TOO_FEW = "not enough available devices to satisfy allocation"


# --- what a topology says ---

def listed(group, key, place):
    values = group.get(key, [])
    return values[place] if place < len(values) else None


class Host:
    """The GPUs of a topology, in the order of their bus ids, which is the order of the pages used here."""

    def __init__(self, page):
        groups = [(group, place) for group in page["gpus"] for place in range(group.get("count", 1))]
        self.n = len(groups)
        self.nodes = [listed(group, "numa-nodes", place) for group, place in groups]
        self.nodes = [(i >= self.n // 2) if node is None else node for i, node in enumerate(self.nodes)]
        self.bridges = [(listed(group, "bridges", place) or "alone-%d" % i).split("/") for i, (group, place) in enumerate(groups)]
        self.switches = page.get("nvswitches", 0) > 0
        self.links = {}
        for text in page.get("nvlinks", []):
            pair, _, count = text.partition(":")
            self.links[frozenset(map(int, pair.split("-")))] = int(count or 1)

    @functools.lru_cache(maxsize=None)
    def pair(self, a, b):
        x, y = self.bridges[a], self.bridges[b]
        common = len(os.path.commonprefix([x, y]))
        links = 100 * (1 if self.switches else self.links.get(frozenset((a, b)), 0))
        if common == len(x) == len(y) and common > 1:
            return links + 60
        if common > 2:
            return links + (50 if len(x) == len(y) == common + 1 else 40)
        if common > 0:
            return links + 30
        return links + (20 if self.nodes[a] == self.nodes[b] else 10)

    def score(self, gpus):
        return sum(self.pair(a, b) for a, b in itertools.combinations(sorted(gpus), 2))


# --- whole GPUs ---

def best_sets(host, available, required, size):
    """All sets that may be the answer: of the cuts with the highest total, the best sets."""
    n_sets = -(-len(available) // size)

    @functools.lru_cache(maxsize=None)
    def best_rest(left, sets):
        """The highest total of a cut of what is left; None if there is none."""
        if not left:
            return 0 if sets == 0 else None
        totals = []
        for n in range(1, size + 1) if sets > 0 else ():
            for others in itertools.combinations(left[1:], n - 1):
                rest = best_rest(tuple(gpu for gpu in left[1:] if gpu not in others), sets - 1)
                if rest is not None:
                    totals.append(rest + host.score((left[0],) + others))
        return max(totals, default=None)

    found = []
    for others in itertools.combinations([gpu for gpu in available if gpu not in required], size - len(required)):
        gpus = tuple(sorted(tuple(required) + others))
        rest = best_rest(tuple(gpu for gpu in available if gpu not in gpus), n_sets - 1)
        if rest is not None:
            found.append((host.score(gpus) + rest, host.score(gpus), gpus))
    best = max(found)[:2]
    return [gpus for *scores, gpus in found if tuple(scores) == best]


def judge_gpus(host, available, required, size, answer):
    available, required, answer = (list(map(int, words)) for words in (available, required, answer))
    if len(available) <= 8:
        allowed = best_sets(host, sorted(available), required, size)
        return None if tuple(sorted(answer)) in allowed else "the best are %s" % allowed
    others = [gpu for gpu in available if gpu not in required]
    best = max(host.score(tuple(required) + more) for more in itertools.combinations(others, size - len(required)))
    reached = host.score(answer)
    return None if reached >= BOUND * best else "it scores %d, the best set %d" % (reached, best)


# --- shared and MIG devices ---

def judge_choices(policy, everything, available, required, answer):
    """Follows the answer, choice by choice."""
    base = {device: device.split("::")[0] for device in everything}
    left, picked = list(available), dict.fromkeys(base.values(), 0)
    for i, device in enumerate(answer):
        def rank(other):
            used = sum(base[x] == base[other] for x in everything) - sum(base[x] == base[other] for x in left)
            return -used if policy == "packed" else (used, picked[base[other]])
        candidates = [other for other in left if policy != "distinct" or picked[base[other]] == 0]
        if i >= len(required) and (device not in candidates or rank(device) != min(map(rank, candidates))):
            return "choice %d is not %s" % (i + 1, policy)
        left.remove(device)
        picked[base[device]] += 1
    return None


def may_be_refused(policy, available, required, size):
    bases = [device.split("::")[0] for device in required]
    return policy == "distinct" and (len(set(bases)) < len(bases) or size > len({device.split("::")[0] for device in available}))


def judge(host, policy, lines):
    """What is wrong with the answers of a host."""
    everything = {}
    for line in lines:
        resource, words = line.split(" ", 1)
        everything.setdefault(resource, words.split(" of ", 1)[1].split(" with")[0].split())
    for line in lines:
        question, answer = line.split(":: ")[0] if ":: " in line else line.rsplit(": ", 1)[0], line.rsplit(": ", 1)[1]
        resource, size, _, rest = question.split(" ", 3)
        available, required = (part.split() for part in rest.split("with"))
        size, answer, whole = int(size), answer.split(" "), not policy or not any("::" in x or "mig" in resource for x in available)
        if " ".join(answer) == TOO_FEW:
            problem = None if may_be_refused(policy, available, required, size) else "it could be answered"
        elif len(set(answer)) != size or not set(required) <= set(answer) <= set(available) or answer[:len(required)] != required:
            problem = "it is no answer to that"
        elif whole and resource == "nvidia.com/gpu":
            problem = judge_gpus(host, available, required, size, answer)
        else:
            problem = judge_choices(policy, everything[resource], available, required, answer)
        if problem:
            yield "%s: %s" % (line, problem)


# --- the test ---

def answers(simulator, program, topology, config):
    done = subprocess.run([simulator, "run", "-t", topology, "--", program, config], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding="utf-8", timeout=60, check=True)
    return done.stdout


def read_config(path):
    with open(path, encoding="utf-8") as stream:
        hosts = stream.readline().split("# hosts:")[1].split()
        flags = (yaml.safe_load(stream) or {}).get("flags", {})
    return hosts, flags.get("plugin", {}).get("sharedDevicesAllocationPolicy")


def main():
    simulator, program, folder = (os.path.abspath(word) for word in sys.argv[1:4])
    tap = Tap()
    kept = KeptTexts(tap, folder, "--update" in sys.argv[4:])
    if os.geteuid() != 0:
        print("1..0 # SKIP a simulated host needs root")
        return 77
    if os.environ.get("MESON_EXE_WRAPPER"):
        print("1..0 # SKIP an emulator does not see a program that is executed")
        return 0
    for name in sorted(os.listdir(os.path.join(folder, "configs"))):
        config = os.path.join(folder, "configs", name)
        hosts, policy = read_config(config)
        for topology in hosts:
            text = answers(simulator, program, topology, config)
            kept.compare("%s/%s" % (topology, os.path.splitext(name)[0]), text)
            page = yaml.safe_load(subprocess.run([simulator, "show", topology], capture_output=True, check=True).stdout)
            tap.result("%s/%s: the answers are right" % (topology, name), list(judge(Host(page), policy, text.splitlines())) if text else ["no answers"])
    return kept.end()


sys.exit(main())
