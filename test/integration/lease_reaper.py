#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Kills processes at random moments, for lease-docker.bats.

    lease_reaper.py STOP PROGRAM=SECONDS...     until the file STOP exists, of each program one process in so many seconds, on average

Prints how many processes of each were killed. "runc init" is what runc starts as the first process of a container.
"""
import collections
import os
import random
import signal
import sys
import time

ROUND_S = 0.05


def kind_of(pid):
    """The name of the program that a process runs, or None."""
    try:
        name = os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read().split(b"\0")
    except OSError:
        return None
    # That runs a copy of runc which has no name.
    return "runc init" if b"init" in words[1:2] else name


def kill_one(pids, chance):
    """Returns whether it was there."""
    try:
        os.kill(chance.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def main():
    stop, chance = sys.argv[1], random.Random()
    seconds = {name: float(number) for name, _, number in (word.partition("=") for word in sys.argv[2:])}
    killed = collections.Counter()
    while not os.path.exists(stop):
        kinds = collections.defaultdict(list)
        for name in os.listdir("/proc"):
            if name.isdigit():
                kinds[kind_of(name)].append(int(name))
        for name, mean in seconds.items():
            if kinds[name] and chance.random() < ROUND_S / mean and kill_one(kinds[name], chance):
                killed[name] += 1
        time.sleep(ROUND_S)
    for name, number in sorted(killed.items()):
        print(f"{name}: {number}")


if __name__ == "__main__":
    main()
